//! Sessions over sockets of this machine, with somebody between them who listens or meddles.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::handshake::{Keys, challenge, introduce};
use crate::wire::LinkClaim;

/// One end.
struct End {
    session: Session,
    socket: TcpStream,
}

impl End {
    fn send(&mut self, parts: &[&[u8]]) -> Result<usize, String> {
        self.session.send(&self.socket, parts)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<usize, String> {
        self.session.recv(&self.socket, into)
    }
}

/// Somebody between two ends.
#[derive(Clone, Default)]
struct Tap {
    heard: Arc<Mutex<Vec<u8>>>,
    /// From now on the last byte of all that comes is another.
    alters: Arc<AtomicBool>,
}

impl Tap {
    /// Where to connect to in order to reach `target`.
    fn towards(&self, target: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let tap = self.clone();
        std::thread::spawn(move || {
            let there = TcpStream::connect(target).unwrap();
            let here = listener.accept().unwrap().0;
            let (other, back) = (tap.clone(), (there.try_clone().unwrap(), here.try_clone().unwrap()));
            std::thread::spawn(move || other.carry(back.0, back.1));
            tap.carry(here, there);
        });
        address
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            self.heard.lock().unwrap().extend_from_slice(&bytes[..count]);
            if self.alters.load(Ordering::Relaxed) {
                bytes[count - 1] ^= 1;
            }
            if to.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Write);
    }
}

fn pair(tap: Option<&Tap>) -> [End; 2] {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let keys = Keys::new("sesame".into(), true).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let address = tap.map_or(address, |tap| tap.towards(address));
        let here = tokio::net::TcpStream::connect(address).await.unwrap();
        let there = listener.accept().await.unwrap().0;
        let claim = LinkClaim { generation: 1, from: 2, to: 1, channel: 0 };
        let met =
            tokio::join!(introduce(here, &keys, claim), challenge(there, &keys, |_: &LinkClaim| Ok(())));
        [met.0.unwrap(), met.1.unwrap().0].map(|stream| {
            let (socket, tls) = stream.into_parts().unwrap();
            End { session: Session::new(tls.unwrap()), socket }
        })
    })
}

/// Bytes that differ by end and place.
fn stream(end: usize, length: usize) -> Vec<u8> {
    (0..length).map(|place| ((place * 31 + end * 101) ^ (place >> 8)) as u8).collect()
}

fn in_time() -> impl FnMut() {
    let began = Instant::now();
    move || assert!(began.elapsed() < Duration::from_secs(20), "nothing moves")
}

#[test]
fn streams_of_all_sizes_cross() {
    let mut ends = pair(None);
    for length in [0, 1, 2, 40, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 300_001, 3 << 20] {
        let streams = [stream(0, length), stream(1, length)];
        let (mut sent, mut got) = ([0; 2], [vec![0; length], vec![0; length]]);
        let mut received = [0; 2];
        let mut still = in_time();
        while sent != [length; 2] || received != [length; 2] {
            still();
            for (at, end) in ends.iter_mut().enumerate() {
                let rest = &streams[at][sent[at]..];
                let (head, tail) = rest.split_at(rest.len().min(40));
                sent[at] += end.send(&[head, &[], tail]).unwrap();
                if received[at] < length {
                    // Pieces of other lengths than those that were sent.
                    let upto = length.min(received[at] + 7 + received[at] % 90_000);
                    received[at] += end.recv(&mut got[at][received[at]..upto]).unwrap();
                }
            }
        }
        assert!(got[0] == streams[1] && got[1] == streams[0], "{length} bytes");
    }
    let mut more = [0; 8];
    assert_eq!(ends[0].recv(&mut more), Ok(0));
    assert!(!ends[0].session.holds(), "there is nothing but what poll would see");
}

/// Whoever was told that all is taken does not come by again: nothing may be left that needs it.
#[test]
fn what_was_taken_arrives_though_its_sender_sleeps() {
    let [mut sender, mut reader] = pair(None);
    for length in [1, 2, 100_000, 9 << 20] {
        let whole = stream(0, length);
        let (mut sent, mut got, mut stuck) = (0, Vec::new(), 0);
        let mut piece = [0; 10_000];
        let mut still = in_time();
        while sent < length {
            still();
            let taken = sender.send(&[&whole[sent..]]).unwrap();
            sent += taken;
            if taken == 0 {
                stuck += 1;
                assert!(sender.session.owes, "it waits for the socket");
                let count = reader.recv(&mut piece).unwrap();
                got.extend_from_slice(&piece[..count]);
            }
        }
        assert!(!sender.session.owes && !sender.session.tls.wants_write());
        assert_eq!(stuck > 0, length > 1 << 20, "a large message fills the socket");
        while got.len() < length {
            still();
            let count = reader.recv(&mut piece).unwrap();
            got.extend_from_slice(&piece[..count]);
        }
        assert!(got == whole);
    }
}

#[test]
fn a_single_byte_is_owed_and_paid() {
    let [mut sender, mut reader] = pair(None);
    let filler = vec![7; 1 << 20];
    let mut sent = 0;
    let mut still = in_time();
    // Until the socket is full, and one byte is owed.
    while !sender.session.owes {
        still();
        sent += sender.send(&[&filler]).unwrap();
    }
    assert_eq!(sender.send(&[&[7]]), Ok(0));
    let (mut got, mut paid, mut piece) = (0, 0, vec![0; 1 << 16]);
    while got < sent + 1 {
        still();
        if paid == 0 {
            paid = sender.send(&[&[7]]).unwrap();
        }
        let count = reader.recv(&mut piece).unwrap();
        assert!(piece[..count].iter().all(|byte| *byte == 7));
        got += count;
    }
    assert_eq!((paid, got, reader.recv(&mut piece)), (1, sent + 1, Ok(0)), "no byte comes twice");
}

#[test]
fn nobody_between_reads_what_is_sent() {
    let tap = Tap::default();
    let [mut sender, mut reader] = pair(Some(&tap));
    let secret = b"what nobody else is to read";
    assert_eq!(sender.send(&[secret]), Ok(secret.len()));
    let (mut got, mut piece) = (Vec::new(), [0; 64]);
    let mut still = in_time();
    while got.len() < secret.len() {
        still();
        let count = reader.recv(&mut piece).unwrap();
        got.extend_from_slice(&piece[..count]);
    }
    assert_eq!(got, secret);
    let heard = tap.heard.lock().unwrap();
    let has = |what: &[u8]| heard.windows(what.len()).any(|window| window == what);
    assert!(heard.len() > secret.len() && has(b"coll"), "it did hear the challenge");
    assert!(!has(secret) && !has(&secret[..8]) && !has(b"generation"), "nor who claims what");
}

#[test]
fn a_byte_that_somebody_alters_is_the_end() {
    let tap = Tap::default();
    let [mut sender, mut reader] = pair(Some(&tap));
    tap.alters.store(true, Ordering::Relaxed);
    assert_eq!(sender.send(&[b"take this"]), Ok(9));
    let mut still = in_time();
    let mut piece = [0; 64];
    let broken = loop {
        still();
        match reader.recv(&mut piece) {
            Ok(count) => assert_eq!(count, 0, "no altered byte is given out"),
            Err(broken) => break broken,
        }
    };
    assert_eq!(broken, "TLS: bytes on the way were altered, or are not this job's");
    assert_eq!((reader.recv(&mut piece), reader.send(&[b"x"])), (Err(broken.clone()), Err(broken)));
}

#[test]
fn an_end_that_is_meant_and_one_that_is_not() {
    let mut still = in_time();
    for meant in [true, false] {
        let [mut sender, mut reader] = pair(None);
        assert_eq!(sender.send(&[b"the last"]), Ok(8));
        if meant {
            sender.session.part(&sender.socket);
        }
        drop(sender);
        let (mut got, mut piece) = (Vec::new(), [0; 64]);
        let end = loop {
            still();
            match reader.recv(&mut piece) {
                Ok(count) => got.extend_from_slice(&piece[..count]),
                Err(end) => break end,
            }
        };
        assert_eq!(got, b"the last", "what came before the end is heard");
        let without = "it closed the connection without TLS's word of the end";
        assert_eq!(end, if meant { "it closed the connection" } else { without });
    }
}
