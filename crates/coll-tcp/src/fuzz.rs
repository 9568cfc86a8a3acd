//! Whatever comes over the wire, in whatever order: no panic, no more memory than bytes that came, no word to a rank
//! that has left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::DeserializeOwned;

use crate::board::Board;
use crate::call::{Report, Told};
use crate::job::{Job, Member, Telling};
use crate::wire::{
    Challenge, Claim, FrameError, Limits, LinkClaim, RankClaim, ToRank, ToServer, Welcome, frame_head,
    read_frame,
};

/// Reads one frame of these bytes as each kind of message. Says whether any was understood.
fn read_as_all(bytes: &[u8], limits: Limits) -> bool {
    [
        read_as::<ToServer>(bytes, limits),
        read_as::<ToRank>(bytes, limits),
        read_as::<Challenge>(bytes, limits),
        read_as::<Claim<RankClaim>>(bytes, limits),
        read_as::<Claim<LinkClaim>>(bytes, limits),
        read_as::<Welcome>(bytes, limits),
    ]
    .contains(&true)
}

fn read_as<M: DeserializeOwned>(bytes: &[u8], limits: Limits) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut reader = bytes;
    match runtime.block_on(read_frame::<_, M>(&mut reader, limits)) {
        Ok((_, body)) => {
            assert!(body.len() <= limits.body_bytes && body.len() + 12 <= bytes.len());
            true
        }
        Err(FrameError::Closed | FrameError::Io(_) | FrameError::Garbage(_)) => false,
    }
}

fn words() -> impl Strategy<Value = Vec<(String, String)>> {
    vec((".{0,8}", ".{0,8}"), 0..4)
}

fn report() -> impl Strategy<Value = Report> {
    let told = (0..4u64, any::<u8>(), words()).prop_map(|(operation, print, words)| Told {
        operation,
        fingerprint: [print % 2; 16],
        words,
    });
    (vec(told, 0..3), any::<bool>(), any::<u64>(), vec(any::<u32>(), 0..3))
        .prop_map(|(recent, within, since_ms, waits_for)| Report { recent, within, since_ms, waits_for })
}

fn to_server() -> impl Strategy<Value = ToServer> {
    prop_oneof![
        Just(ToServer::Ready),
        (0..3u64).prop_map(|sequence| ToServer::Blob { sequence }),
        (0..3u64).prop_map(|sequence| ToServer::WhoIsMissing { sequence }),
        vec(any::<u32>(), 0..3).prop_map(|ranks| ToServer::WhereAre { ranks }),
        (any::<u64>(), report()).prop_map(|(sequence, report)| ToServer::Stalled { sequence, report }),
        report().prop_map(|report| ToServer::Doing { report }),
        ".{0,8}".prop_map(|reason| ToServer::Abort { reason }),
        Just(ToServer::Goodbye),
    ]
}

fn to_rank() -> impl Strategy<Value = ToRank> {
    prop_oneof![
        (0..3u64, vec(any::<u64>(), 0..4))
            .prop_map(|(sequence, lengths)| ToRank::Gathered { sequence, lengths }),
        (0..3u64, vec(0..9u64, 0..4)).prop_map(|(sequence, lengths)| ToRank::Gathered { sequence, lengths }),
        (0..3u64, vec(any::<u32>(), 0..4)).prop_map(|(sequence, ranks)| ToRank::Missing { sequence, ranks }),
        (0..3u64, vec(any::<u32>(), 0..4), ".{0,8}")
            .prop_map(|(sequence, ranks, detail)| ToRank::Explained { sequence, ranks, detail }),
        (any::<u64>(), ".{0,8}").prop_map(|(operation, detail)| ToRank::Mismatch { operation, detail }),
        (any::<u32>(), ".{0,8}").prop_map(|(rank, detail)| ToRank::Gone { rank, detail }),
        Just(ToRank::AllReady),
        Just(ToRank::Peers { peers: vec![] }),
    ]
}

/// What the ranks of a job do.
#[derive(Clone, Debug)]
enum Happening {
    Said(u32, ToServer),
    Lost(u32),
    TimePassed,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        8 => (0..4u32, to_server()).prop_map(|(rank, message)| Happening::Said(rank, message)),
        1 => (0..4u32).prop_map(Happening::Lost),
        1 => Just(Happening::TimePassed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn bytes_that_are_no_frame_are_refused(bytes in vec(any::<u8>(), 0..64), marked in any::<bool>()) {
        let bytes = if marked { [b"coll", &bytes[..]].concat() } else { bytes };
        read_as_all(&bytes, Limits::HANDSHAKE);
        read_as_all(&bytes, Limits::FROM_RANK);
        read_as_all(&bytes, Limits::from_server(u32::MAX));
    }

    #[test]
    fn a_frame_with_a_byte_changed_is_understood_or_refused(
        message in to_server(), place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = frame_head(&message, 3).unwrap();
        bytes.extend_from_slice(b"abc");
        prop_assert!(read_as::<ToServer>(&bytes, Limits::FROM_RANK), "the frame itself is good");
        let place = place.index(bytes.len());
        bytes[place] = byte;
        read_as_all(&bytes, Limits::FROM_RANK);
        read_as_all(&bytes[..cut.index(bytes.len())], Limits::FROM_RANK);
    }

    #[test]
    fn what_the_server_says_is_understood_or_a_fault(messages in vec((to_rank(), vec(any::<u8>(), 0..9)), 1..6)) {
        let (board, _woken) = Board::new(1).unwrap();
        for (message, body) in messages {
            let frame = frame_head(&message, 0).unwrap();
            prop_assert!(read_as::<ToRank>(&frame, Limits::from_server(4)));
            board.pin(message, &body);
        }
        if let Some(blobs) = board.take_gathered(0) {
            prop_assert!(blobs.iter().map(Vec::len).sum::<usize>() < 9);
        }
    }

    #[test]
    fn a_job_tells_only_ranks_that_are_there_and_its_verdict_once(happenings in vec(happening(), 1..60)) {
        let member = |rank| (rank, Member { line: u64::from(rank), whence: "pid".into(), entry: None });
        let mut job = Job::new((0..4).map(member).collect());
        let mut now = Instant::now();
        let mut present: BTreeSet<u64> = (0..4).collect();
        let mut verdicts: BTreeMap<u64, u32> = BTreeMap::new();
        for happening in happenings {
            let tellings: Vec<Telling> = match happening {
                Happening::TimePassed => {
                    now += Duration::from_secs(1);
                    let tellings = job.expire(now);
                    prop_assert!(job.deadline().is_none_or(|deadline| deadline > now));
                    tellings
                }
                Happening::Lost(rank) => {
                    present.remove(&u64::from(rank));
                    job.lost(rank, "closed")
                }
                // The server hears nothing of a rank that has left.
                Happening::Said(rank, _) if !present.contains(&u64::from(rank)) => continue,
                Happening::Said(rank, message) => {
                    if matches!(message, ToServer::Goodbye) {
                        present.remove(&u64::from(rank));
                    }
                    job.hear(rank, message, vec![0; 3], now)
                }
            };
            for telling in tellings {
                prop_assert!(present.contains(&telling.line), "{telling:?}");
                if let ToRank::Gone { .. } | ToRank::Aborted { .. } | ToRank::Mismatch { .. } = telling.message {
                    *verdicts.entry(telling.line).or_default() += 1;
                }
            }
        }
        prop_assert!(verdicts.values().all(|count| *count == 1), "{verdicts:?}");
        prop_assert_eq!(job.is_over(), present.is_empty());
    }
}
