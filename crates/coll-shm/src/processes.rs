//! Ranks that are processes of one machine. Each has one nameless file in memory, sealed at its full length and empty
//! until used, with its head, its stage, and room for a ring from each other rank on each channel. A peer opens it through
//! `/proc`, and believes it once it has read there the random token that the rank told it by another way; so ranks
//! find each other by what they can reach, never by their numbers or their machine's name. Nothing is left when the
//! last process that has it open is gone, however it went.

use crate::head::{HEAD_BYTES, Head, Token};
use crate::memory::Block;
use crate::options::Options;
use crate::ring::Ring;
use crate::stage::STAGE_BYTES;
use crate::transport::{CHANNELS_MAX, Home, ShmTransport};
use coll_exec::{Fault, Link};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// What the files are called, and how `/proc` shows that; only for people and for a first look.
const NAME: &str = "coll-shm";
const LINK: &str = "/memfd:coll-shm";

/// An exchange of small blobs, one from every rank to every rank: takes this rank's and gives all, by rank.
pub type Exchange<'a> = &'a mut dyn FnMut(Vec<u8>) -> Result<Vec<Vec<u8>>, Fault>;

/// The version of what ranks tell each other and of what lies in shared memory.
const VERSION: u32 = 3;

/// Meets the ranks of this machine: every rank of the world calls it, and `exchange` twice with it. Ranks that cannot be
/// reached are told by [`ShmTransport::unreached`]; only a failed exchange is an error.
pub fn join(rank: u32, world: u32, exchange: Exchange<'_>, options: &Options) -> Result<ShmTransport, Fault> {
    let limit = raise_descriptors(world);
    let own = Segment::create(world, options.ring_bytes(world), &options.host);
    let mut reason = own.as_ref().err().map(|error| in_words(rank, world, error, limit));
    let blob = own.as_ref().map_or(Vec::new(), |(_, told)| told.to_bytes());
    let blobs = exchange(blob)?;
    let mut peers: Vec<Option<Segment>> = (0..world).map(|_| None).collect();
    let mut neighbours = 1;
    if let Ok((_, told)) = &own {
        for peer in (0..world).filter(|&peer| peer != rank) {
            let theirs = blobs.get(peer as usize).and_then(|blob| Told::from_bytes(blob));
            let theirs = theirs.filter(|theirs| theirs.boot == told.boot && !told.boot.is_empty());
            neighbours += u32::from(theirs.is_some());
            let theirs = theirs.filter(|theirs| theirs.host == told.host);
            match theirs.map(|theirs| Segment::open(&theirs, world)) {
                Some(Ok(segment)) => peers[peer as usize] = Some(segment),
                Some(Err(error)) => _ = reason.get_or_insert_with(|| in_words(rank, world, &error, limit)),
                None => {}
            }
        }
    }
    // Only what both ends reach counts. What keeps a rank from reaching another stands behind, for both to tell of.
    let mut reached: Vec<u8> = peers.iter().map(|peer| peer.is_some().into()).collect();
    reached.extend(reason.unwrap_or_default().bytes());
    let mutual = exchange(reached)?;
    let told = |peer: u32| mutual.get(peer as usize).and_then(|blob| blob.get(world as usize..));
    let reasons = (0..world).map(|peer| String::from_utf8_lossy(told(peer).unwrap_or(&[])).into_owned());
    let reasons: Vec<String> = reasons.collect();
    for (peer, segment) in peers.iter_mut().enumerate() {
        let back = mutual.get(peer).and_then(|reached| reached.get(rank as usize));
        if back != Some(&1) {
            *segment = None;
        }
    }
    let head = match &own {
        Ok((segment, _)) => segment.head.clone(),
        // Nobody reaches this rank, and its head serves itself alone.
        Err(_) => Head::private().map_err(|error| lost(rank, &error))?,
    };
    let machine = Machine { own: own.ok().map(|(segment, _)| segment), peers, reasons };
    Ok(ShmTransport::new(rank, world, Home::Machine(machine), head, neighbours, options))
}

/// Each rank that is reached takes two descriptors here, one for its memory and one for its process: raises the limit as far
/// as it need be, and may. Returns what it is then.
fn raise_descriptors(world: u32) -> Option<u64> {
    const OVERHEAD: u64 = 32;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let open = fs::read_dir("/proc/self/fd").map_or(64, |entries| entries.count() as u64);
    let need = 2 * u64::from(world) + open + OVERHEAD;
    if current.is_some_and(|current| current < need) && current != maximum {
        let raised = maximum.map_or(need, |maximum| maximum.min(need));
        // If it is refused, what cannot be opened for it says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum });
    }
    getrlimit(Resource::Nofile).current
}

/// Why a rank reaches no memory, where the system is the reason.
fn in_words(rank: u32, world: u32, error: &io::Error, limit: Option<u64>) -> String {
    match (error.raw_os_error() == Some(Errno::MFILE.raw_os_error()), limit) {
        (true, Some(limit)) => format!(
            "rank {rank} may have {limit} file descriptors, and memory of {world} ranks needs {} and some; raise the limit with `ulimit -n`",
            2 * world
        ),
        _ => format!("rank {rank}: {error}"),
    }
}

fn lost(peer: u32, error: &io::Error) -> Fault {
    Fault::PeerLost { peer, detail: format!("no memory: {error}") }
}

/// The files of the ranks of this machine.
pub(crate) struct Machine {
    own: Option<Segment>,
    peers: Vec<Option<Segment>>,
    /// By rank: what kept it from reaching another.
    reasons: Vec<String>,
}

/// A rank's file.
struct Segment {
    file: OwnedFd,
    head: Head,
    world: u32,
    ring_bytes: usize,
    /// A handle to another rank's process.
    process: Option<OwnedFd>,
    pid: u32,
}

impl Machine {
    pub(crate) fn reaches(&self, peer: u32) -> bool {
        self.peer(peer).is_some()
    }

    /// What kept one of two ranks from reaching the other, if it was the system.
    pub(crate) fn reason(&self, rank: u32, peer: u32) -> Option<&str> {
        let of = |rank: u32| self.reasons.get(rank as usize).map(String::as_str);
        [of(rank), of(peer)].into_iter().flatten().find(|reason| !reason.is_empty())
    }

    /// The process of a peer.
    #[inline]
    pub(crate) fn pid(&self, peer: u32) -> Option<u32> {
        self.peer(peer).map(|segment| segment.pid)
    }

    /// Whether a peer's process is gone.
    pub(crate) fn is_dead(&self, peer: u32) -> bool {
        let Some(process) = self.peer(peer).and_then(|segment| segment.process.as_ref()) else {
            return false;
        };
        let mut ears = [PollFd::new(process, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut ears, Some(&now)), Ok(1)) && !ears[0].revents().is_empty()
    }

    /// The ring outwards, the ring inwards and the other end's head.
    pub(crate) fn rings(&self, rank: u32, link: Link) -> io::Result<(Ring, Ring, Head)> {
        let (Some(own), Some(peer)) = (&self.own, self.peer(link.peer)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        Ok((peer.ring(rank, link.channel)?, own.ring(link.peer, link.channel)?, peer.head.clone()))
    }

    /// This rank's stage, or a peer's.
    pub(crate) fn stage(&self, peer: Option<u32>) -> io::Result<Block> {
        let segment = peer.map_or(self.own.as_ref(), |peer| self.peer(peer));
        let segment = segment.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        match peer {
            None => Block::mapped(segment.file.as_fd(), HEAD_BYTES as u64, STAGE_BYTES),
            Some(_) => Block::mapped_to_read(segment.file.as_fd(), HEAD_BYTES as u64, STAGE_BYTES),
        }
    }

    fn peer(&self, peer: u32) -> Option<&Segment> {
        self.peers.get(peer as usize)?.as_ref()
    }
}

impl Segment {
    /// This rank's own file, and what to tell of it.
    fn create(world: u32, ring_bytes: usize, host: &str) -> io::Result<(Segment, Told)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(NAME, flags)?;
        rustix::fs::ftruncate(&file, file_bytes(world, ring_bytes))?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let head = Head::shared(Block::mapped(file.as_fd(), 0, HEAD_BYTES)?);
        let mut token = Token::default();
        rustix::rand::getrandom(&mut token, rustix::rand::GetRandomFlags::empty())?;
        head.set_token(token);
        let told = Told {
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            host: host.to_owned(),
            pid: std::process::id(),
            fd: file.as_raw_fd() as u32,
            token,
            ring_bytes: ring_bytes as u64,
        };
        Ok((Segment { file, head, world, ring_bytes, process: None, pid: told.pid }, told))
    }

    /// A peer's file, if it is what the peer says.
    fn open(told: &Told, world: u32) -> io::Result<Segment> {
        let refused = || io::Error::from(io::ErrorKind::InvalidData);
        let ring_bytes = usize::try_from(told.ring_bytes).map_err(|_| refused())?;
        if !ring_bytes.is_power_of_two() {
            return Err(refused());
        }
        let path = format!("/proc/{}/fd/{}", told.pid, told.fd);
        // Where processes are numbered anew, this one is a stranger, and what it has open may be anything: to be looked
        // at before it is opened, and then without waiting.
        if !fs::read_link(&path)?.as_os_str().as_encoded_bytes().starts_with(LINK.as_bytes()) {
            return Err(refused());
        }
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        let sealed = rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
        let size = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        if !sealed || size < file_bytes(world, ring_bytes) {
            return Err(refused());
        }
        let head = Head::shared(Block::mapped(file.as_fd(), 0, HEAD_BYTES)?);
        if head.token() != told.token {
            return Err(refused());
        }
        let pid = i32::try_from(told.pid).ok().and_then(Pid::from_raw);
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(Segment { file, head, world, ring_bytes, process, pid: told.pid })
    }

    /// The ring in this file that a rank writes.
    fn ring(&self, from: u32, channel: u32) -> io::Result<Ring> {
        let bytes = Ring::block_bytes(self.ring_bytes);
        let number = u64::from(channel) * u64::from(self.world) + u64::from(from);
        let block = Block::mapped(self.file.as_fd(), RINGS_AT + number * bytes as u64, bytes)?;
        Ok(Ring::new(block.into(), self.ring_bytes))
    }
}

/// Where rings begin: after the head and the stage.
const RINGS_AT: u64 = (HEAD_BYTES + STAGE_BYTES) as u64;

/// Bytes of a rank's file. Most are never written, and take no memory.
fn file_bytes(world: u32, ring_bytes: usize) -> u64 {
    let rings = u64::from(world) * u64::from(CHANNELS_MAX);
    (Ring::block_bytes(ring_bytes) as u64).saturating_mul(rings).saturating_add(RINGS_AT)
}

/// What a rank tells the others of its file.
#[derive(Debug, PartialEq)]
struct Told {
    /// The machine's boot: two machines never have the same.
    boot: String,
    /// What the rank was told to call its machine.
    host: String,
    pid: u32,
    fd: u32,
    token: Token,
    ring_bytes: u64,
}

impl Told {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        bytes.extend(self.pid.to_le_bytes());
        bytes.extend(self.fd.to_le_bytes());
        bytes.extend(self.ring_bytes.to_le_bytes());
        bytes.extend(self.token);
        bytes.extend(self.boot.as_bytes());
        bytes.push(b'\n');
        bytes.extend(self.host.as_bytes());
        bytes
    }

    /// Nothing if a peer has no file, or speaks another version.
    fn from_bytes(bytes: &[u8]) -> Option<Told> {
        let (version, rest) = bytes.split_first_chunk()?;
        let (pid, rest) = rest.split_first_chunk()?;
        let (fd, rest) = rest.split_first_chunk()?;
        let (ring_bytes, rest) = rest.split_first_chunk()?;
        let (token, names) = rest.split_first_chunk()?;
        (u32::from_le_bytes(*version) == VERSION).then_some(())?;
        let (boot, host) = std::str::from_utf8(names).ok()?.split_once('\n')?;
        Some(Told {
            boot: boot.to_owned(),
            host: host.to_owned(),
            pid: u32::from_le_bytes(*pid),
            fd: u32::from_le_bytes(*fd),
            token: *token,
            ring_bytes: u64::from_le_bytes(*ring_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment() -> (Segment, Told) {
        Segment::create(2, 16 << 10, "").unwrap()
    }

    #[test]
    fn a_file_is_believed_only_if_it_is_what_was_told() {
        let (own, told) = segment();
        assert_eq!(Told::from_bytes(&told.to_bytes()).as_ref(), Some(&told));
        let back = Segment::open(&told, 2).unwrap();
        assert_eq!(back.head.token(), own.head.token());
        let refuse = |change: fn(&mut Told), world: u32| {
            let mut told = Told::from_bytes(&told.to_bytes()).unwrap();
            change(&mut told);
            Segment::open(&told, world).map(|_| ()).unwrap_err()
        };
        refuse(|told| told.token[3] ^= 1, 2);
        refuse(|told| told.fd = 1_000_000, 2);
        refuse(|told| told.pid = u32::MAX, 2);
        refuse(|told| told.ring_bytes = 3000, 2);
        refuse(|told| told.ring_bytes = 1 << 40, 2);
        refuse(|_| {}, 3);
        // Some other file that is open here.
        refuse(|told| told.fd = 0, 2);
        for len in 0..36 {
            assert_eq!(Told::from_bytes(&told.to_bytes()[..len]), None);
        }
    }

    #[test]
    fn an_empty_file_takes_no_memory_and_cannot_be_cut() {
        let (own, _) = segment();
        let blocks = rustix::fs::fstat(&own.file).unwrap().st_blocks;
        assert!(blocks * 512 <= 2 * HEAD_BYTES as i64, "{blocks} blocks");
        assert!(rustix::fs::ftruncate(&own.file, 0).is_err());
    }

    #[test]
    fn a_rank_alone_reaches_nobody_and_a_failed_exchange_is_told() {
        let transport =
            join(0, 3, &mut |blob| Ok(vec![blob, Vec::new(), b"?".to_vec()]), &Options::default());
        assert_eq!(transport.unwrap().unreached().collect::<Vec<_>>(), [1, 2]);
        let fault = Fault::TimedOut { limit_s: 1.0 };
        let failed = join(0, 2, &mut |_| Err(Fault::TimedOut { limit_s: 1.0 }), &Options::default());
        assert_eq!(failed.map(|_| ()).unwrap_err(), fault);
    }
}
