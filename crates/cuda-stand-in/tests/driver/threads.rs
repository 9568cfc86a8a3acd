//! Many threads at once: each does its own, and none waits for another for ever.

use crate::support::*;
use cuda_stand_in::Config;
use cudarc::driver::CudaContext;
use std::sync::Barrier;

const THREADS: usize = 6;

#[test]
fn threads_with_streams_of_their_own() {
    for seed in 0..3 {
        let session = session(Config { seed, devices: 3, ..Config::default() });
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let context = CudaContext::new(thread % 3).unwrap();
                    let stream = context.new_stream().unwrap();
                    for round in 0..20u32 {
                        let input: Vec<u32> = (0..50).map(|i| i * 3 + round + thread as u32).collect();
                        let a = stream.clone_htod(&input).unwrap();
                        let b = stream.clone_dtod(&a).unwrap();
                        assert_eq!(stream.clone_dtoh(&b).unwrap(), input);
                    }
                });
            }
        });
        clean(&session);
    }
}

/// A ring of threads, each of which hands a buffer to the next by an event, as ranks of one process do.
#[test]
fn threads_that_wait_for_each_others_events() {
    for seed in 0..6 {
        let session = session(Config { seed, ..Config::default() });
        let context = CudaContext::new(0).unwrap();
        let buffers: Vec<u64> = (0..THREADS).map(|_| malloc(64).unwrap()).collect();
        let events: Vec<u64> = (0..THREADS).map(|_| event() as u64).collect();
        put(buffers[0], &[7; 64]).unwrap();
        let (context, buffers, events, turns) = (&context, &buffers, &events, &Barrier::new(THREADS));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    context.bind_to_thread().unwrap();
                    let mine = stream();
                    for turn in 0..THREADS {
                        // What comes before must have been enqueued before it can be waited for.
                        if turn == thread && thread > 0 {
                            wait(mine, events[thread - 1] as _);
                            copy(buffers[thread], buffers[thread - 1], 64, mine).unwrap();
                        }
                        if turn == thread {
                            record(events[thread] as _, mine);
                        }
                        turns.wait();
                    }
                    sync(mine).unwrap();
                });
            }
        });
        assert_eq!(bytes(buffers[THREADS - 1], 64).unwrap(), [7; 64]);
        clean(&session);
    }
}
