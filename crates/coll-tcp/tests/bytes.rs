//! What is sent on a link arrives on that link, all of it and in order, while everyone sends to everyone at once.

mod world;

use std::time::Duration;

use coll_exec::{Fault, Interest, Link, Transport};
use coll_tcp::{JoinOptions, Rendezvous, TcpTransport, join};

/// How a test cuts its streams.
#[derive(Clone, Copy)]
struct Cut {
    stream_bytes: usize,
    /// Writes have from 1 to so many bytes in each of up to three parts; reads as many.
    piece_bytes: usize,
}

/// A stream that differs by sender, receiver and channel, and from byte to byte.
fn stream(from: u32, to: u32, channel: u32, length: usize) -> Vec<u8> {
    let mut state = u64::from(from) << 40 | u64::from(to) << 20 | u64::from(channel) << 4 | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..length).map(|_| next().to_le_bytes()[3]).collect()
}

struct Flow {
    link: Link,
    outgoing: Vec<u8>,
    sent: usize,
    incoming: Vec<u8>,
}

/// Sends a stream on every link and takes one from every link; sleeps when nothing moves.
fn talk(transport: &mut TcpTransport, cut: Cut) -> Result<Vec<(Link, Vec<u8>)>, Fault> {
    let rank = transport.rank();
    let flow = |link: Link| Flow {
        link,
        outgoing: stream(rank, link.peer, link.channel, cut.stream_bytes),
        sent: 0,
        incoming: Vec::new(),
    };
    let mut flows: Vec<Flow> = transport.links().map(flow).collect();
    let mut piece = vec![0; cut.piece_bytes];
    loop {
        let mut moved = 0;
        for flow in &mut flows {
            let size = 1 + (flow.sent * 31 + flow.incoming.len()) % cut.piece_bytes;
            let rest = &flow.outgoing[flow.sent..];
            let (first, rest) = rest.split_at(size.min(rest.len()));
            let (second, rest) = rest.split_at((size / 2).min(rest.len()));
            let third = &rest[..size.min(rest.len())];
            let sent = transport.try_send(flow.link, &[first, &[], second, third])?;
            let wanted = size.min(cut.stream_bytes - flow.incoming.len());
            let received = transport.try_recv(flow.link, &mut piece[..wanted])?;
            flow.sent += sent;
            flow.incoming.extend_from_slice(&piece[..received]);
            moved += sent + received;
        }
        let interests: Vec<Interest> = flows
            .iter()
            .map(|flow| Interest {
                link: flow.link,
                readable: flow.incoming.len() < cut.stream_bytes,
                writable: flow.sent < cut.stream_bytes,
                returned: false,
            })
            .collect();
        if interests.iter().all(|interest| !interest.readable && !interest.writable) {
            return Ok(flows.into_iter().map(|flow| (flow.link, flow.incoming)).collect());
        }
        if moved == 0 {
            transport.wait(&interests)?;
        }
    }
}

/// Bare, and within TLS.
fn check(ranks: u32, channels: u32, socket_buffer_bytes: Option<usize>, cut: Cut) {
    check_within(false, ranks, channels, socket_buffer_bytes, cut);
    check_within(true, ranks, channels, socket_buffer_bytes, cut);
}

fn check_within(tls: bool, ranks: u32, channels: u32, socket_buffer_bytes: Option<usize>, cut: Cut) {
    let server = Rendezvous::bind_tls("127.0.0.1:0", world::TOKEN, tls).unwrap();
    let mut options = world::mesh(&server, ranks, channels);
    for rank in &mut options {
        rank.socket_buffer_bytes = socket_buffer_bytes;
        rank.tls = tls;
    }
    let received = world::run_all(options, |mut transport| {
        let received = talk(&mut transport, cut).unwrap_or_else(|fault| panic!("{fault}"));
        transport.exchange(vec![]).unwrap();
        let rank = transport.rank();
        transport.shutdown();
        (rank, received)
    });
    for (rank, flows) in received {
        assert_eq!(flows.len(), ((ranks - 1) * channels) as usize);
        for (link, bytes) in flows {
            let right = stream(link.peer, rank, link.channel, cut.stream_bytes);
            assert!(bytes == right, "rank {rank}: other bytes than were sent on {link:?}");
        }
    }
    assert!(server.finish(Duration::from_secs(5)), "every rank said goodbye");
}

#[test]
fn two_ranks_move_large_pieces() {
    check(2, 1, None, Cut { stream_bytes: 16 << 20, piece_bytes: 256 << 10 });
}

#[test]
fn eight_ranks_all_to_all() {
    check(8, 2, None, Cut { stream_bytes: 200_003, piece_bytes: 10_000 });
}

/// B073.
#[test]
fn small_buffers_on_both_sides_hold_up_nobody() {
    check(4, 1, Some(4096), Cut { stream_bytes: 64 << 10, piece_bytes: 16 << 10 });
}

/// B073.
#[test]
fn single_bytes_arrive_like_any_others() {
    check(3, 1, Some(4096), Cut { stream_bytes: 3001, piece_bytes: 1 });
}

#[test]
fn more_parts_than_one_call_takes_are_not_lost() {
    let server = world::server();
    world::run_all(world::mesh(&server, 2, 1), |mut transport| {
        let link = Link { peer: 1 - transport.rank(), channel: 0 };
        if transport.rank() == 0 {
            // Fifty parts, most of them empty: none but the empty ones may be skipped.
            let whole: Vec<u8> = (0..50).collect();
            let parts: Vec<&[u8]> = whole.chunks(1).flat_map(|part| [&[][..], part]).collect();
            let sent = transport.try_send(link, &parts).unwrap();
            assert!(sent > 0, "there is room for a few bytes");
            assert_eq!(transport.try_send(link, &[&whole[sent..]]), Ok(50 - sent));
            assert_eq!(transport.try_send(link, &[]), Ok(0));
            assert_eq!(transport.try_send(link, &[&[], &[]]), Ok(0));
        } else {
            let mut bytes = Vec::new();
            while bytes.len() < 50 {
                let mut piece = [0; 64];
                let count = transport.try_recv(link, &mut piece).unwrap();
                bytes.extend_from_slice(&piece[..count]);
                if count == 0 {
                    transport.wait(&[Interest::readable(link)]).unwrap();
                }
            }
            assert_eq!(bytes, (0..50).collect::<Vec<u8>>());
            assert_eq!(
                transport.try_recv(link, &mut []),
                Ok(0),
                "an empty read is not the end of the stream"
            );
        }
        transport.exchange(vec![]).unwrap();
        transport.shutdown();
    });
}

#[test]
fn an_unknown_link_is_named() {
    let server = world::server();
    world::run_all(world::mesh(&server, 2, 1), |mut transport| {
        let link = Link { peer: 1 - transport.rank(), channel: 7 };
        let no_link = Fault::NoLink { peer: link.peer, channel: 7 };
        assert_eq!(transport.try_send(link, &[b"x"]), Err(no_link.clone()));
        assert_eq!(transport.try_recv(link, &mut [0]), Err(no_link.clone()));
        assert_eq!(transport.wait(&[Interest::readable(link)]), Err(no_link));
        transport.shutdown();
    });
}

#[test]
fn blobs_are_exchanged_by_rank() {
    let server = world::server();
    let gathered = world::run_all(world::ring(&server, 5), |mut transport| {
        let rank = transport.rank();
        let first = transport.exchange(vec![rank as u8; rank as usize]).unwrap();
        let second = transport.exchange(vec![10 + rank as u8]).unwrap();
        let large = transport.exchange(vec![rank as u8; 1 << 20]).unwrap();
        assert!(large.iter().enumerate().all(|(rank, blob)| *blob == vec![rank as u8; 1 << 20]));
        transport.shutdown();
        (first, second)
    });
    for (first, second) in gathered {
        assert_eq!(first, [vec![], vec![1], vec![2, 2], vec![3, 3, 3], vec![4, 4, 4, 4]]);
        assert_eq!(second, [[10], [11], [12], [13], [14]]);
    }
}

#[test]
fn one_rank_needs_nobody() {
    let mut transport = join(JoinOptions::new(0, 1, "there.is.no.such.host.invalid:1")).unwrap();
    assert_eq!(transport.links().count(), 0);
    assert_eq!(transport.exchange(b"me".to_vec()), Ok(vec![b"me".to_vec()]));
    transport.begin(Duration::from_millis(50));
    assert_eq!(transport.wait(&[]), Err(Fault::TimedOut { limit_s: 0.05 }));
    transport.shutdown();
}

#[test]
fn a_small_message_takes_one_call_on_each_side() {
    let server = world::server();
    world::run_all(world::mesh(&server, 2, 1), |mut transport| {
        let link = Link { peer: 1 - transport.rank(), channel: 0 };
        let mut bytes = [0; 40];
        for _ in 0..500 {
            assert_eq!(transport.try_send(link, &[&[1; 32], &[2; 8]]), Ok(40));
            let mut received = 0;
            while received < bytes.len() {
                match transport.try_recv(link, &mut bytes[received..]).unwrap() {
                    0 => {
                        transport.wait(&[Interest::readable(link)]).unwrap();
                    }
                    count => received += count,
                }
            }
        }
        let counters = transport.counters();
        assert_eq!((counters.sends, counters.sent_bytes), (500, 20_000));
        assert_eq!(counters.receives - counters.in_vain, 500, "{counters:?}");
        transport.exchange(vec![]).unwrap();
        transport.shutdown();
    });
}

#[test]
fn a_rank_that_waits_does_not_burn_its_core() {
    let server = world::server();
    world::run_all(world::mesh(&server, 2, 1), |mut transport| {
        let link = Link { peer: 1 - transport.rank(), channel: 0 };
        transport.begin(Duration::from_millis(600));
        world::wait_long(&mut transport, &[Interest::readable(link)]);
        let looks = transport.counters().yields;
        // Yielding takes a tenth of a microsecond at the very least, and a millisecond is the most that is spun.
        assert!(looks < 10_000, "{looks}");
    });
}
