//! Programs made by a seed, against an oracle that shares nothing with the stand-in: which operations come before which by a
//! walk over all pairs, and what memory holds at the end if no two race.

use crate::support::*;
use cudarc::driver::sys::{CUevent, CUstream, CUstreamCaptureMode};
use std::ptr::null_mut;

const STREAMS: usize = 3;
const EVENTS: usize = 4;
const CELLS: usize = 6;
const CELL_BYTES: usize = 16;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

/// One call of a program.
#[derive(Clone, Copy, Debug)]
enum Call {
    Fill { stream: usize, cell: usize, cells: usize, value: u8 },
    Copy { stream: usize, to: usize, from: usize },
    Record { stream: usize, event: usize },
    Wait { stream: usize, event: usize },
    Sync { stream: usize },
    SyncEvent { event: usize },
}

/// Fills or copies some cells.
fn touching(random: &mut Random, stream: usize, value: u8) -> Call {
    let cell = random.below(CELLS);
    match random.below(2) {
        0 => Call::Fill { stream, cell, cells: 1 + random.below(2).min(CELLS - 1 - cell), value },
        _ => Call::Copy { stream, to: cell, from: (cell + 1 + random.below(CELLS - 1)) % CELLS },
    }
}

/// Work goes on in one stream, and mostly in another only after it was handed over to that by an event.
fn program(seed: u64, captured: bool) -> Vec<Call> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9).wrapping_add(1));
    let length = 4 + random.below(10);
    let mut calls = Vec::new();
    if captured {
        // All streams become part of the capture.
        calls.push(Call::Record { stream: 0, event: 0 });
        calls.extend((1..STREAMS).map(|stream| Call::Wait { stream, event: 0 }));
    }
    let mut stream = 0;
    for step in 0..length {
        let (event, value) = (random.below(EVENTS), step as u8 + 1);
        if random.below(4) == 0 {
            stream = random.below(STREAMS);
        }
        match random.below(if captured { 12 } else { 14 }) {
            0..=2 => calls.push(touching(&mut random, stream, value)),
            3..=9 => {
                calls.push(Call::Record { stream, event });
                stream = (stream + 1 + random.below(STREAMS - 1)) % STREAMS;
                calls.push(Call::Wait { stream, event });
                calls.push(touching(&mut random, stream, value));
            }
            10 => calls.push(Call::Record { stream, event }),
            11 => calls.push(Call::Wait { stream, event }),
            12 => calls.push(Call::Sync { stream }),
            _ => calls.push(Call::SyncEvent { event }),
        }
    }
    if captured {
        for stream in 1..STREAMS {
            calls.push(Call::Record { stream, event: 0 });
            calls.push(Call::Wait { stream: 0, event: 0 });
        }
    }
    calls
}

/// What a call reads and writes, cell by cell.
fn touched(call: Call) -> Vec<(usize, bool)> {
    match call {
        Call::Fill { cell, cells, .. } => (cell..cell + cells).map(|cell| (cell, true)).collect(),
        Call::Copy { to, from, .. } => vec![(from, false), (to, true)],
        _ => Vec::new(),
    }
}

/// Whether two calls race, by all paths between them; those through waits count if `waits`.
fn races(calls: &[Call], waits: bool) -> bool {
    let count = calls.len();
    // A bit for each call that comes before; programs have fewer than 64.
    let mut before = vec![0u64; count];
    let mut last = [None; STREAMS];
    let mut events: [Option<usize>; EVENTS] = [None; EVENTS];
    let mut host: Vec<usize> = Vec::new();
    for (at, &call) in calls.iter().enumerate() {
        let mut direct = Vec::new();
        match call {
            Call::Fill { stream, .. }
            | Call::Copy { stream, .. }
            | Call::Record { stream, .. }
            | Call::Wait { stream, .. } => {
                direct.extend(last[stream]);
                direct.extend(&host);
                if let (Call::Wait { event, .. }, true) = (call, waits) {
                    direct.extend(events[event]);
                }
                last[stream] = Some(at);
            }
            Call::Sync { stream } => host.extend(last[stream]),
            Call::SyncEvent { event } => host.extend(events[event]),
        }
        if let Call::Record { event, .. } = call {
            events[event] = Some(at);
        }
        before[at] = direct.into_iter().fold(0, |all, earlier: usize| all | before[earlier] | 1 << earlier);
    }
    let conflict = |a: usize, b: usize| {
        touched(calls[a]).iter().any(|x| touched(calls[b]).iter().any(|y| x.0 == y.0 && (x.1 || y.1)))
    };
    (0..count).any(|b| (0..b).any(|a| conflict(a, b) && before[b] >> a & 1 == 0))
}

/// Memory after all calls, one after the other.
fn serially(calls: &[Call], memory: &mut [u8]) {
    for &call in calls {
        match call {
            Call::Fill { cell, cells, value, .. } => {
                memory[cell * CELL_BYTES..(cell + cells) * CELL_BYTES].fill(value);
            }
            Call::Copy { to, from, .. } => {
                memory.copy_within(from * CELL_BYTES..(from + 1) * CELL_BYTES, to * CELL_BYTES);
            }
            _ => {}
        }
    }
}

fn enqueue(calls: &[Call], streams: &[CUstream], events: &[CUevent], at: u64) {
    let cell_at = |cell: usize| at + (cell * CELL_BYTES) as u64;
    for &call in calls {
        match call {
            Call::Fill { stream, cell, cells, value } => {
                fill(cell_at(cell), value, cells * CELL_BYTES, streams[stream]).unwrap();
            }
            Call::Copy { stream, to, from } => {
                copy(cell_at(to), cell_at(from), CELL_BYTES, streams[stream]).unwrap();
            }
            Call::Record { stream, event } => record(events[event], streams[stream]),
            Call::Wait { stream, event } => wait(streams[stream], events[event]),
            Call::Sync { stream } => sync(streams[stream]).unwrap(),
            Call::SyncEvent { event } => cu!(cuEventSynchronize(events[event])).unwrap(),
        }
    }
}

/// How many programs raced, how many did not, and how many of these would have without waits. Each is judged as the oracle
/// does.
fn judged(seeds: u64, captured: bool) -> [u64; 3] {
    let mut verdicts = [0; 3];
    for seed in 0..seeds {
        let calls = program(seed, captured);
        let (session, context) = machine(seed);
        let streams: Vec<CUstream> = (0..STREAMS).map(|_| stream()).collect();
        let events: Vec<CUevent> = (0..EVENTS).map(|_| event()).collect();
        let start: Vec<u8> = (0..CELLS * CELL_BYTES).map(|byte| 100 + byte as u8).collect();
        let at = malloc(start.len()).unwrap();
        put(at, &start).unwrap();
        let mut launches = 1;
        if captured {
            launches = 2;
            let (mut graph, mut made) = (null_mut(), null_mut());
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
            cu!(cuStreamBeginCapture_v2(streams[0], mode)).unwrap();
            enqueue(&calls, &streams, &events, at);
            cu!(cuStreamEndCapture(streams[0], &mut graph)).unwrap();
            cu!(cuGraphInstantiateWithFlags(&mut made, graph, 0)).unwrap();
            (0..launches).for_each(|_| cu!(cuGraphLaunch(made, streams[1])).unwrap());
        } else {
            enqueue(&calls, &streams, &events, at);
        }
        context.synchronize().unwrap();
        let due = races(&calls, true);
        assert_eq!(session.race_count() > 0, due, "seed {seed}: {calls:#?}\n{:?}", session.races());
        assert!(session.log().is_empty(), "{:?}", session.log());
        if !due {
            let mut memory = start;
            (0..launches).for_each(|_| serially(&calls, &mut memory));
            assert_eq!(bytes(at, memory.len()).unwrap(), memory, "seed {seed}: {calls:#?}");
        }
        verdicts[usize::from(!due)] += 1;
        verdicts[2] += u64::from(!due && races(&calls, false));
    }
    verdicts
}

#[test]
fn programs_race_exactly_where_the_oracle_says() {
    let verdicts = judged(600, false);
    assert!(verdicts.iter().all(|&many| many > 100), "{verdicts:?}");
}

#[test]
fn and_so_do_their_graphs() {
    let verdicts = judged(400, true);
    assert!(verdicts.iter().all(|&many| many > 60), "{verdicts:?}");
}
