//! Ranks that are processes: late, killed, stopped, gone. A test starts its own program again for rank 1, and the two
//! meet over the child's standard input and output.

use coll_exec::{Fault, Interest, Link, Transport};
use coll_shm::{Options, ShmTransport, processes};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PART: &str = "COLL_SHM_TEST_PART";
const LINK: Link = Link { peer: 1, channel: 0 };
const BACK: Link = Link { peer: 0, channel: 0 };

/// A mark before blobs, as the test's own words come out of the child, too.
const MARK: &[u8] = b"<<blob>>";

/// A process that does not outlive its test.
struct Playing(Child);

impl Playing {
    /// Starts this program again, to run the test `name` as rank 1.
    fn start(name: &str) -> Playing {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(PART, "1");
        Playing(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Rank 0 of two, once the child is there.
    fn join(&mut self) -> ShmTransport {
        let mut exchange = |blob: Vec<u8>| {
            let theirs = read(self.0.stdout.as_mut().unwrap());
            write(self.0.stdin.as_mut().unwrap(), &blob);
            Ok(vec![blob, theirs])
        };
        connected(processes::join(0, 2, &mut exchange, &Options::default()).unwrap(), LINK)
    }

    fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }

    fn stop(&self) {
        rustix::process::kill_process(self.pid(), rustix::process::Signal::STOP).unwrap();
        let state = format!("/proc/{}/stat", self.0.id());
        while !std::fs::read_to_string(&state).unwrap().contains(") T ") {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Rank 1's part, if this is its process.
fn play() -> Option<ShmTransport> {
    std::env::var(PART).ok()?;
    let mut exchange = |blob: Vec<u8>| {
        write(&mut std::io::stdout(), &blob);
        Ok(vec![read(&mut std::io::stdin()), blob])
    };
    Some(connected(processes::join(1, 2, &mut exchange, &Options::default()).unwrap(), BACK))
}

fn connected(mut transport: ShmTransport, link: Link) -> ShmTransport {
    assert_eq!(transport.unreached().count(), 0);
    transport.connect([link]).unwrap();
    transport.begin(Duration::from_secs(20));
    transport
}

fn write(to: &mut impl Write, blob: &[u8]) {
    to.write_all(&[MARK, &(blob.len() as u64).to_le_bytes(), blob].concat()).unwrap();
    to.flush().unwrap();
}

fn read(from: &mut impl Read) -> Vec<u8> {
    let mut before = Vec::new();
    while !before.ends_with(MARK) {
        let mut byte = [0];
        from.read_exact(&mut byte).unwrap();
        before.extend(byte);
    }
    let mut length = [0; 8];
    from.read_exact(&mut length).unwrap();
    let mut blob = vec![0; u64::from_le_bytes(length) as usize];
    from.read_exact(&mut blob).unwrap();
    blob
}

fn readable(link: Link) -> [Interest; 1] {
    [Interest::readable(link)]
}

fn send(transport: &mut ShmTransport, link: Link, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let taken = transport.try_send(link, &[bytes]).unwrap();
        bytes = &bytes[taken..];
        if taken == 0 {
            transport.wait(&[Interest::writable(link)]).unwrap();
        }
    }
    transport.flush();
}

fn receive(transport: &mut ShmTransport, link: Link, len: usize) -> Vec<u8> {
    let (mut bytes, mut got) = (vec![0; len], 0);
    while got < len {
        let more = transport.try_recv(link, &mut bytes[got..]).unwrap();
        got += more;
        if more == 0 {
            transport.wait(&readable(link)).unwrap();
        }
    }
    transport.flush();
    bytes
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * at / 7) as u8).collect()
}

#[test]
fn bytes_go_there_and_back_and_a_late_rank_is_waited_for() {
    const SIZES: [usize; 5] = [1, 56, 57, 5000, 5_000_000];
    if let Some(mut transport) = play() {
        for len in SIZES {
            let bytes = receive(&mut transport, BACK, len);
            // Longer than any way of waiting without sleep.
            std::thread::sleep(Duration::from_millis(100));
            send(&mut transport, BACK, &bytes);
        }
        return transport.shutdown();
    }
    let mut child = Playing::start("bytes_go_there_and_back_and_a_late_rank_is_waited_for");
    let mut transport = child.join();
    for len in SIZES {
        send(&mut transport, LINK, &pattern(len));
        assert!(receive(&mut transport, LINK, len) == pattern(len), "{len} bytes came back changed");
    }
    // In good order; then it is missed by who still wants something.
    let left = Fault::PeerLost { peer: 1, detail: "it has left".into() };
    assert_eq!(transport.wait(&readable(LINK)), Err(left));
    assert!(child.0.wait().unwrap().success());
    assert!(matches!(transport.wait(&readable(LINK)), Err(Fault::PeerLost { peer: 1, .. })));
}

/// B075.
#[test]
fn a_killed_rank_is_an_error_within_a_second() {
    if let Some(mut transport) = play() {
        send(&mut transport, BACK, b"here");
        std::thread::sleep(Duration::from_secs(30));
        return;
    }
    let mut child = Playing::start("a_killed_rank_is_an_error_within_a_second");
    let mut transport = child.join();
    receive(&mut transport, LINK, 4);
    let pid = child.pid();
    let began = std::thread::scope(|scope| {
        let killer = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            let now = Instant::now();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            now
        });
        let lost = transport.wait(&readable(LINK));
        let lost_at = Instant::now();
        let detail = "it ended in the middle of things".into();
        assert_eq!(lost, Err(Fault::PeerLost { peer: 1, detail }));
        (killer.join().unwrap(), lost_at)
    });
    assert!(began.1 - began.0 < Duration::from_secs(1));
}

#[test]
fn a_stopped_rank_is_an_error_at_the_time_limit_and_goes_on_where_it_was() {
    if let Some(mut transport) = play() {
        let bytes = receive(&mut transport, BACK, 8);
        send(&mut transport, BACK, &bytes);
        return transport.shutdown();
    }
    let name = "a_stopped_rank_is_an_error_at_the_time_limit_and_goes_on_where_it_was";
    let mut child = Playing::start(name);
    let mut transport = child.join();
    child.stop();
    send(&mut transport, LINK, b"are you?");
    transport.begin(Duration::from_millis(300));
    assert_eq!(transport.wait(&readable(LINK)), Err(Fault::TimedOut { limit_s: 0.3 }));
    rustix::process::kill_process(child.pid(), rustix::process::Signal::CONT).unwrap();
    transport.begin(Duration::from_secs(20));
    assert_eq!(receive(&mut transport, LINK, 8), b"are you?");
}

/// B082.
#[test]
fn a_rank_that_panics_is_an_error_and_leaves_nothing_behind() {
    if let Some(transport) = play() {
        drop(transport);
        return;
    }
    let files = || std::fs::read_dir("/dev/shm").map_or(0, Iterator::count);
    let before = files();
    let mut child = Playing::start("a_rank_that_panics_is_an_error_and_leaves_nothing_behind");
    let mut transport = child.join();
    let lost = transport.wait(&readable(LINK));
    assert_eq!(lost, Err(Fault::PeerLost { peer: 1, detail: "it ended in the middle of things".into() }));
    assert!(files() <= before, "nothing in /dev/shm is this crate's");
}
