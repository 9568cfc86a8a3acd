//! Ranks that are threads: bytes of any sizes arrive in order, however they are read, and those who wait hear of those
//! who went.

#![allow(clippy::print_stderr)]

use coll_exec::{Fault, Interest, Link, Loan, Transport};
use coll_shm::{Memory, Options, ShmTransport, Waiting, Watch, threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn link(peer: u32) -> Link {
    Link { peer, channel: 0 }
}

fn readable(peer: u32) -> [Interest; 1] {
    [Interest::readable(link(peer))]
}

fn writable(peer: u32) -> [Interest; 1] {
    [Interest::writable(link(peer))]
}

/// Two connected ranks with the smallest rings there are.
fn pair(waiting: Option<Waiting>) -> [ShmTransport; 2] {
    let options = Options { ring_bytes: Some(0), waiting, ..Options::default() };
    let mut world = threads::world_with(2, &options).unwrap();
    for (rank, transport) in (0..).zip(&mut world) {
        transport.connect([link(1 - rank)]).unwrap();
        transport.begin(Duration::from_secs(20));
    }
    world.try_into().unwrap()
}

/// Numbers from a seed: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Small sizes as likely as large ones.
    fn size(&mut self, bits: u64) -> usize {
        let magnitude = self.next() % bits;
        (self.next() % (1 << magnitude)) as usize + 1
    }
}

/// The byte at a place of the stream.
fn byte(at: usize) -> u8 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

fn stream(start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(byte).collect()
}

fn send_stream(transport: &mut ShmTransport, peer: u32, total: usize, mut random: Random) {
    let mut sent = 0;
    while sent < total {
        // Up to three parts, some of them empty.
        let sizes = [0; 3].map(|_| if random.next() & 7 == 0 { 0 } else { random.size(17) });
        let message = stream(sent, sizes.iter().sum::<usize>().min(total - sent));
        let first = sizes[0].min(message.len());
        let second = (first + sizes[1]).min(message.len());
        let parts = [&message[..first], &message[first..second], &message[second..]];
        let taken = transport.try_send(link(peer), &parts).unwrap();
        assert!(taken <= message.len());
        sent += taken;
        if taken == 0 && !message.is_empty() {
            transport.wait(&writable(peer)).unwrap();
        }
    }
    transport.flush();
}

fn receive_stream(transport: &mut ShmTransport, peer: u32, total: usize, mut random: Random) {
    let mut read = 0;
    while read < total {
        let wanted = random.size(17);
        let got = if random.next() & 1 == 0 {
            let mut into = vec![0; wanted];
            let got = transport.try_recv(link(peer), &mut into).unwrap();
            assert_eq!(into[..got], stream(read, got));
            got
        } else {
            let come = transport.peek(link(peer)).unwrap().unwrap();
            let got = come.len().min(wanted);
            assert_eq!(come[..got], stream(read, got));
            transport.consume(link(peer), got);
            got
        };
        read += got;
        if got == 0 {
            transport.wait(&readable(peer)).unwrap();
        }
    }
    transport.flush();
}

#[test]
fn bytes_of_any_sizes_arrive_in_order_both_ways() {
    let seed = std::env::var("COLLC_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    eprintln!("COLLC_TEST_SEED={seed} replays this run");
    // Waiting in the usual way, and falling asleep at once.
    let sleepy = Waiting { spins: 0, yielding: Duration::ZERO };
    for (round, waiting) in [None, Some(sleepy), None, Some(sleepy)].into_iter().enumerate() {
        let total = 3 << 20;
        std::thread::scope(|scope| {
            for mut transport in pair(waiting) {
                scope.spawn(move || {
                    let (rank, seed) = (transport.rank(), seed + round as u64);
                    let random = |role| Random(seed * 4 + role);
                    // First one way, then the other.
                    for sender in [0, 1] {
                        match rank == sender {
                            true => send_stream(&mut transport, 1 - rank, total, random(0)),
                            false => receive_stream(&mut transport, 1 - rank, total, random(1)),
                        }
                    }
                    transport.shutdown();
                });
            }
        });
    }
}

#[test]
fn links_are_made_by_either_end_first_and_only_where_they_are_asked_for() {
    let mut world = threads::world(3).unwrap();
    let far = Link { peer: 1, channel: 5 };
    world[0].connect([far]).unwrap();
    assert_eq!(world[0].try_send(far, &[b"early"]), Ok(5));
    let back = Link { peer: 0, channel: 5 };
    assert_eq!(world[1].peek(back), Err(Fault::NoLink { peer: 0, channel: 5 }));
    world[1].connect([back, back]).unwrap();
    assert_eq!(world[1].peek(back), Ok(Some(&b"early"[..])));
    // Another link makes room in the table and changes nothing of this one.
    world[1].connect([Link { peer: 2, channel: 9 }]).unwrap();
    assert_eq!(world[1].peek(back), Ok(Some(&b"early"[..])));
    let refused = [(0, 0), (3, 0), (1, coll_shm::CHANNELS_MAX), (u32::MAX, 0), (1, u32::MAX)];
    for (peer, channel) in refused {
        let link = Link { peer, channel };
        assert_eq!(world[0].connect([link]), Err(Fault::NoLink { peer, channel }));
        assert_eq!(world[0].try_send(link, &[b"x"]), Err(Fault::NoLink { peer, channel }));
    }
}

#[test]
fn time_limits_hold_whatever_the_way_of_waiting() {
    for spins in [0, 100] {
        for yielding in [Duration::ZERO, Duration::from_secs(5)] {
            let [mut waits, _peer] = pair(Some(Waiting { spins, yielding }));
            waits.begin(Duration::from_millis(120));
            let began = Instant::now();
            assert_eq!(waits.wait(&readable(1)), Err(Fault::TimedOut { limit_s: 0.12 }));
            let took = began.elapsed();
            assert!((Duration::from_millis(119)..Duration::from_secs(5)).contains(&took), "{took:?}");
            assert_eq!(waits.wait(&[]), Err(Fault::TimedOut { limit_s: 0.12 }));
        }
    }
}

#[test]
fn what_was_sent_counts_before_the_going_of_who_sent_it() {
    let [mut stays, mut goes] = pair(None);
    goes.try_send(link(0), &[b"last words"]).unwrap();
    drop(goes);
    assert_eq!(stays.wait(&readable(1)), Ok(()));
    let mut words = [0; 10];
    assert_eq!(stays.try_recv(link(1), &mut words), Ok(10));
    let lost = Err(Fault::PeerLost { peer: 1, detail: "it ended in the middle of things".into() });
    assert_eq!(stays.wait(&readable(1)), lost);
    assert_eq!(stays.wait(&[]), lost, "even if nobody asks for it");
}

#[test]
fn who_leaves_in_good_order_is_missed_only_where_it_is_needed() {
    let [mut stays, leaves] = pair(None);
    leaves.shutdown();
    stays.begin(Duration::from_millis(60));
    assert_eq!(stays.wait(&[]), Err(Fault::TimedOut { limit_s: 0.06 }));
    assert_eq!(stays.wait(&readable(1)), Err(Fault::PeerLost { peer: 1, detail: "it has left".into() }));
}

#[test]
fn sleepers_are_woken_by_what_they_wait_for_by_aborts_and_by_watches() {
    struct Flag(AtomicBool);
    impl Watch for Flag {
        fn fault(&self) -> Option<Fault> {
            let set = self.0.load(Ordering::Acquire);
            set.then(|| Fault::Aborted { origin: 5, reason: "told by a watch".into() })
        }
    }
    let sleepy = Some(Waiting { spins: 0, yielding: Duration::ZERO });
    let soon = Duration::from_millis(150);
    // Bytes.
    let [mut sleeps, mut wakes] = pair(sleepy);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || (sleeps.wait(&readable(1)), Instant::now(), sleeps));
        std::thread::sleep(soon);
        let began = Instant::now();
        wakes.try_send(link(0), &[b"x"]).unwrap();
        wakes.flush();
        let (woken, at, _) = sleeper.join().unwrap();
        assert_eq!(woken, Ok(()));
        assert!(at - began < Duration::from_millis(45), "woken, and not by the end of a slice");
    });
    // An abort; the first reason counts.
    let [mut sleeps, mut fails] = pair(sleepy);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || (sleeps.wait(&readable(1)), sleeps.abort("later")));
        std::thread::sleep(soon);
        assert_eq!(fails.abort("first"), None);
        let first = Fault::Aborted { origin: 1, reason: "first".into() };
        assert_eq!(sleeper.join().unwrap(), (Err(first.clone()), Some(first)));
    });
    // A watch.
    let [mut sleeps, _peer] = pair(sleepy);
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    sleeps.set_watch(flag.clone());
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || sleeps.wait(&readable(1)));
        std::thread::sleep(soon);
        let began = Instant::now();
        flag.0.store(true, Ordering::Release);
        assert!(matches!(sleeper.join().unwrap(), Err(Fault::Aborted { origin: 5, .. })));
        assert!(began.elapsed() < Duration::from_secs(1));
    });
}

#[test]
fn looking_without_waiting_tells_what_is_ready_and_what_is_lost() {
    let [mut looks, mut peer] = pair(None);
    assert_eq!(looks.poll_ready(&readable(1)), Ok(false));
    assert_eq!(looks.poll_ready(&writable(1)), Ok(true));
    while looks.try_send(link(1), &[&[1; 5000]]).unwrap() > 0 {}
    assert_eq!(looks.poll_ready(&writable(1)), Ok(false));
    assert_eq!(peer.poll_ready(&readable(0)), Ok(true));
    peer.try_recv(link(0), &mut [0; 16 << 10]).unwrap();
    assert_eq!(looks.poll_ready(&writable(1)), Ok(true));
    drop(peer);
    assert!(matches!(looks.poll_ready(&readable(1)), Err(Fault::PeerLost { peer: 1, .. })));
}

/// A message that is lent may take longer to read than the time limit, as long as its reader comes on.
#[test]
fn who_lends_waits_as_long_as_the_reader_comes_on() {
    const LIMIT: Duration = Duration::from_millis(400);
    let [mut lender, mut reader] = pair(None);
    lender.begin(LIMIT);
    let mut memory = Memory::new(100).unwrap();
    memory.fill(7);
    let loan = lender.lend(link(1), &memory).unwrap();
    lender.lent(link(1));
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..6 {
                assert_eq!(reader.borrow(link(0), &loan).unwrap(), [7; 100]);
                std::thread::sleep(LIMIT / 3);
                reader.still_lent(link(0), &loan).unwrap();
            }
            reader.give_back(link(0));
        });
        lender.wait(&[Interest::returned(link(1))]).unwrap();
    });
    assert!(began.elapsed() > LIMIT && lender.is_returned(link(1)).unwrap());
    lender.lent(link(1));
    assert!(!lender.is_returned(link(1)).unwrap());
    lender.begin(LIMIT);
    let fault = lender.wait(&[Interest::returned(link(1))]).unwrap_err();
    assert_eq!(fault, Fault::TimedOut { limit_s: LIMIT.as_secs_f64() });
    // What the owner takes back while it is read is not used.
    reader.still_lent(link(0), &loan).unwrap();
    lender.revoke();
    let fault = reader.still_lent(link(0), &loan).unwrap_err();
    assert!(fault.to_string().contains("it gave up while its memory was being read"), "{fault}");
}

#[test]
fn memory_that_is_let_go_of_is_not_used() {
    let [mut lender, mut reader] = pair(None);
    let memory = Memory::new(5000).unwrap();
    let loan = lender.lend(link(1), &memory[100..200]).unwrap();
    assert_eq!(reader.borrow(link(0), &loan).unwrap(), [0; 100]);
    reader.still_lent(link(0), &loan).unwrap();
    drop(memory);
    assert!(matches!(reader.still_lent(link(0), &loan), Err(Fault::PeerLost { peer: 0, .. })));
}

/// Room is given again when all have read what lay there, and not before; what is staged outlives its owner's going.
#[test]
fn a_stage_is_filled_again_when_all_have_read() {
    const BYTES: usize = 700 << 10;
    let mut ranks = coll_shm::threads::world(3).unwrap();
    for (rank, transport) in (0..).zip(&mut ranks) {
        transport.connect((0..3).filter(|&peer| peer != rank).map(link)).unwrap();
    }
    let [owner, first, second] = &mut ranks[..] else { unreachable!() };
    let lend = |owner: &mut ShmTransport, message: usize| {
        let at = owner.stage(BYTES as u64)?;
        owner.write_staged(at, &stream(message, BYTES));
        owner.lent_staged(link(1), at, false);
        owner.lent_staged(link(2), at, true);
        Some(owner.lend_staged(at, BYTES as u64))
    };
    let read = |peer: &mut ShmTransport, loan: &Loan, message: usize| {
        assert_eq!(peer.borrow(link(0), loan).unwrap(), stream(message, BYTES), "message {message}");
        peer.still_lent(link(0), loan).unwrap();
        peer.give_back(link(0));
    };
    assert_eq!(owner.stage(100 << 20), None, "more than a stage holds");
    // Two fit a half.
    let loans: Vec<Loan> = (0..4).map(|message| lend(owner, message).expect("there is room")).collect();
    assert_eq!(lend(owner, 4), None, "nobody has read anything");
    (0..2).for_each(|message| read(first, &loans[message], message));
    assert_eq!(lend(owner, 4), None, "one has not read");
    (0..2).for_each(|message| read(second, &loans[message], message));
    let fifth = lend(owner, 4).expect("the first half is free");
    for (message, loan) in [(2, &loans[2]), (3, &loans[3]), (4, &fifth)] {
        read(first, loan, message);
    }
    for loan in
        [Loan { bytes: 0, ..fifth }, Loan { offset: u64::MAX, ..fifth }, Loan { bytes: 5 << 20, ..fifth }]
    {
        assert!(matches!(first.borrow(link(0), &loan), Err(Fault::Damaged { peer: 0, .. })), "{loan:?}");
    }
    drop(ranks.remove(0));
    let second = &mut ranks[1];
    for (message, loan) in [(2, &loans[2]), (3, &loans[3]), (4, &fifth)] {
        read(second, loan, message);
    }
}
