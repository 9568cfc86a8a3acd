//! The other ways to call: in the background, prepared, custom; new communicators out of old ones; the flight record.

#[path = "comm/world.rs"]
mod ranks;

use coll::{Buffer, CommError, Communicator, Pending, RedOp, Source};
use ranks::{badly, well, world, world_of};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

#[test]
fn calls_in_the_background_keep_their_order_and_give_buffers_back() {
    well(3, |comm| {
        let pending: Vec<Pending<Vec<i64>>> = (0..20)
            .map(|i| comm.start_all_reduce(vec![i; i as usize * 50], RedOp::Sum))
            .collect::<Result<_, _>>()?;
        let mut last = [i64::from(comm.rank())];
        // A blocking call waits for those before it.
        comm.all_reduce_in_place(&mut last, RedOp::Max)?;
        assert_eq!(last, [2]);
        for (i, pending) in pending.into_iter().enumerate() {
            assert!(pending.test(), "calls before a blocking one are done with it");
            assert_eq!(pending.wait()?, vec![3 * i as i64; i * 50]);
        }
        Ok(())
    });
}

#[test]
fn every_call_can_be_started() {
    well(2, |comm| {
        let (rank, peer) = (comm.rank(), 1 - comm.rank());
        comm.start_barrier()?.wait()?;
        assert_eq!(comm.start_broadcast(vec![rank as i32], 1)?.wait()?, [1]);
        let (mine, all) = comm.start_all_gather(vec![rank as u8], vec![9; 2])?.wait()?;
        assert_eq!((mine, all), (vec![rank as u8], vec![0, 1]));
        let all = vec![1.5, 2.5].into_boxed_slice();
        let (_, mine) = comm.start_reduce_scatter(all, [0.0], RedOp::Sum)?.wait()?;
        assert_eq!(mine, [3.0 + 2.0 * f64::from(rank)]);
        let (_, output) = comm.start_all_to_all(vec![rank as i32, 5], vec![0; 2])?.wait()?;
        assert_eq!(output, if rank == 0 { [0, 1] } else { [5, 5] });
        match rank {
            0 => drop(comm.start_send(vec![4u8, 5], peer)?.wait()?),
            _ => assert_eq!(comm.start_receive(vec![0u8; 2], peer)?.wait()?, [4, 5]),
        }
        Ok(())
    });
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor there is.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park_timeout(Duration::from_secs(5)),
        }
    }
}

#[test]
fn a_pending_call_is_a_future() {
    well(2, |comm| {
        if comm.rank() == 0 {
            thread::sleep(Duration::from_millis(100));
        }
        let pending = comm.start_all_reduce(vec![1u8; 4], RedOp::Sum)?;
        assert_eq!(block_on(pending)?, [2; 4]);
        Ok(())
    });
}

/// B087.
#[test]
fn waiting_has_a_limit_and_dropping_detaches() {
    well(2, |comm| {
        if comm.rank() == 0 {
            let pending = comm.start_all_reduce(vec![1i32], RedOp::Sum)?;
            assert!(!pending.wait_for(Duration::from_millis(100)), "rank 1 has not come yet");
            assert!(!pending.test());
            drop(pending);
        } else {
            thread::sleep(Duration::from_millis(300));
            assert_eq!(comm.start_all_reduce(vec![1i32], RedOp::Sum)?.wait()?, [2], "rank 0 took part");
        }
        comm.barrier()
    });
}

#[test]
fn buffers_come_back_from_a_failed_call_and_panics_are_errors() {
    let messages = badly(2, |comm| {
        if comm.rank() == 0 {
            let pending = comm.start(vec![7], |_, _| panic!("a bug in the caller"))?;
            let (buffers, result) = pending.outcome();
            assert_eq!(buffers, [7]);
            assert!(result.unwrap_err().is_fatal());
        }
        comm.barrier()
    });
    for message in messages {
        assert!(message.contains("panicked: a bug in the caller"), "{message}");
    }
}

#[test]
fn a_communicator_may_go_before_its_background_calls_are_done() {
    let ranks = Communicator::local(2).unwrap();
    let pending: Vec<_> =
        ranks.into_iter().map(|mut comm| comm.start_all_reduce(vec![1u8; 9], RedOp::Sum).unwrap()).collect();
    for pending in pending {
        assert_eq!(pending.wait().unwrap(), [2; 9]);
    }
}

#[test]
fn prepared_calls_of_all_kinds() {
    well(3, |comm| {
        let rank = comm.rank();
        let sum = comm.prepare_all_reduce::<f32>(5, RedOp::Sum)?;
        let max = comm.prepare_all_reduce_in_place::<i32>(2, RedOp::Max)?;
        let from_2 = comm.prepare_broadcast::<u8>(3, 2)?;
        let gather = comm.prepare_all_gather::<i64>(1)?;
        let scatter = comm.prepare_reduce_scatter::<f64>(1, RedOp::Sum)?;
        let exchange = comm.prepare_all_to_all::<i32>(1)?;
        for round in 0..5 {
            let mut output = [0.0; 5];
            sum.run(comm, &[round as f32; 5], &mut output)?;
            assert_eq!(output, [3.0 * round as f32; 5]);
            let mut data = [rank as i32, round];
            max.run_in_place(comm, &mut data)?;
            assert_eq!(data, [2, round]);
            let mut data = [rank as u8; 3];
            from_2.run_in_place(comm, &mut data)?;
            assert_eq!(data, [2; 3]);
            let mut all = [0i64; 3];
            gather.run(comm, &[i64::from(rank)], &mut all)?;
            assert_eq!(all, [0, 1, 2]);
            let mut mine = [0.0];
            scatter.run(comm, &[1.0, 2.0, 3.0], &mut mine)?;
            assert_eq!(mine, [3.0 * f64::from(rank + 1)]);
            let mut output = [0; 3];
            exchange.run(comm, &[rank as i32; 3], &mut output)?;
            assert_eq!(output, [0, 1, 2]);
        }
        Ok(())
    });
}

#[test]
fn a_prepared_call_refuses_what_it_is_not_for() {
    let mut one = Communicator::alone().unwrap();
    let mut other = Communicator::alone().unwrap();
    let sum = one.prepare_all_reduce::<f32>(2, RedOp::Sum).unwrap();
    let message = |result: Result<(), CommError>| result.unwrap_err().to_string();
    let mut out = [0f32; 2];
    assert!(message(sum.run(&mut other, &[0f32; 2], &mut out)).contains("another communicator"));
    assert!(one.prepare_broadcast::<u8>(1, 1).unwrap_err().to_string().contains("root 1 is no rank"));
    other.barrier().expect("it has nothing to do with it");
    sum.run(&mut one, &[1f32; 2], &mut out).unwrap();
    assert!(message(sum.run(&mut one, &[0f32; 3], &mut out)).contains("12 B"));
    assert!(message(one.barrier()).contains("has ended"));
    let mut one = Communicator::alone().unwrap();
    let sum = one.prepare_all_reduce::<f32>(2, RedOp::Sum).unwrap();
    assert!(message(sum.run_in_place(&mut one, &mut out)).contains("prepared to run out of place"));
    let mut one = Communicator::alone().unwrap();
    let sum = one.prepare_all_reduce::<f32>(2, RedOp::Sum).unwrap();
    assert!(message(sum.run(&mut one, &[0i32; 2], &mut out)).contains("prepared for f32"));
}

#[test]
fn many_kinds_of_call_do_not_pile_up() {
    well(2, |comm| {
        let held = comm.prepare_all_reduce::<u8>(3, RedOp::Sum)?;
        for len in 0..1500 {
            let mut data = vec![1u8; len];
            comm.all_reduce_in_place(&mut data, RedOp::Sum)?;
            assert_eq!(data, vec![2; len]);
        }
        let mut out = [0u8; 3];
        held.run(comm, &[1u8; 3], &mut out)?;
        assert_eq!(out, [2; 3]);
        Ok(())
    });
}

#[test]
fn collectives_of_every_shape_can_be_custom() {
    const TEXT: &str = "
        collective shift { in data out next ensure each r, q where q == (r - 1) % n: next == q.data }
        schedule shift_once: shift { step each r { send data to (r + 1) % n as next } }
    ";
    well(3, |comm| {
        let rank = comm.rank();
        let allgather = Source::builtin("allgather", "ring").expect("the library has it");
        let ring = comm.load(&allgather, Some("ring"), &[], 0)?;
        // By class: blocks of 3, 0 and 7.
        let mut all = [9u8; 10];
        let mine = vec![rank as u8; [3, 0, 7][rank as usize]];
        comm.run_custom(&ring, &[3, 0, 7], vec![Buffer::separate(&mine, &mut all)], None)?;
        assert_eq!(all, [0, 0, 0, 2, 2, 2, 2, 2, 2, 2]);
        let alltoall = Source::builtin("alltoall", "linear").expect("the library has it");
        let linear = comm.load(&alltoall, None, &[], 0)?;
        let (input, mut output) = ([rank as i32; 3], [9; 3]);
        let buffers = vec![Buffer::input(&input), Buffer::output(&mut output)];
        comm.run_custom(&linear, &linear.counts(3)?, buffers, None)?;
        assert_eq!(output, [0, 1, 2]);
        let broadcast = Source::builtin("broadcast", "chain").expect("the library has it");
        let chain = comm.load(&broadcast, None, &[], 2)?;
        let mut data = [i64::from(rank)];
        comm.run_custom(&chain, &chain.counts(1)?, vec![Buffer::in_place(&mut data)], None)?;
        assert_eq!(data, [2]);
        let missing = comm.run_custom(&chain, &[1], vec![], None).unwrap_err();
        assert!(missing.to_string().contains("0 buffers are given, and broadcast.chain has 1"), "{missing}");
        let shift = comm.load(&Source::from_text("shift.coll", TEXT), None, &[], 0)?;
        let (mine, mut next) = ([f32::from(rank as u8); 2], [9f32; 2]);
        let buffers = vec![Buffer::input(&mine), Buffer::output(&mut next)];
        comm.run_custom(&shift, &shift.counts(2)?, buffers, None)?;
        assert_eq!(next, [f32::from(((rank + 2) % 3) as u8); 2]);
        comm.barrier()
    });
}

/// In bf16 itself 256 and a one are 256; as bf16 travels what is a little more than one.
#[test]
fn custom_schedules_are_tuned_as_they_say() {
    const WIDE: &str = "schedule star: allreduce {
        tune { accumulate f32 }
        step each r in 1..n { send data to 0 reduce }
        step each r in 1..n { recv data from 0 }
    }";
    const NARROW: &str = "schedule flat: broadcast {
        tune { wire bf16 }
        step { for q in 1..n { send data from 0 to q } }
    }";
    well(3, |comm| {
        let star = comm.load(&Source::from_text("star.coll", WIDE), None, &[], 0)?;
        let mine = if comm.rank() == 1 { 256.0 } else { 1.0 };
        let mut sum = [half::bf16::from_f32(mine); 5];
        let buffers = vec![Buffer::in_place(&mut sum)];
        comm.run_custom(&star, &star.counts(5)?, buffers, Some(RedOp::Sum.into()))?;
        assert_eq!(sum.map(f32::from), [258.0; 5]);

        let flat = comm.load(&Source::from_text("flat.coll", NARROW), None, &[], 0)?;
        let fine = 1.0 + 1.0 / 4096.0;
        let mut data = [if comm.rank() == 0 { fine } else { 0f32 }; 2];
        comm.run_custom(&flat, &flat.counts(2)?, vec![Buffer::in_place(&mut data)], None)?;
        assert_eq!(data, [if comm.rank() == 0 { fine } else { 1.0 }; 2]);
        Ok(())
    });
}

#[test]
fn bundles_and_plans_can_be_loaded() {
    let source = Source::builtin("allreduce", "ring").expect("the library has it");
    let bundle = coll::Bundle::new(&source, 0, Vec::new(), vec![2]);
    let instance = coll::Instance { ranks: 2, root: 0, params: Vec::new() };
    let coll::Outcome::Right(proved) = coll::prove(&source, 0, &instance, &coll::Options::default()) else {
        panic!("the ring is right");
    };
    let plan = proved.plan;
    let run = move |comm: &mut Communicator| {
        let whole = comm.load_plan(&coll_plan::to_bytes(&plan))?;
        let slice = plan.slice(comm.rank()).expect("the rank is there");
        for custom in [comm.load_bundle(&bundle, 0)?, whole, comm.load_plan(&coll_plan::to_bytes(&slice))?] {
            let (mut sum, counts) = ([0f64; 3], custom.counts(3)?);
            let buffers = vec![Buffer::separate(&[1.5f64; 3], &mut sum)];
            comm.run_custom(&custom, &counts, buffers, Some(RedOp::Sum.into()))?;
            assert_eq!(sum, [3.0; 3]);
        }
        Ok(())
    };
    well(2, run.clone());
    let refused = world(3, move |comm| run(comm).unwrap_err().to_string());
    assert!(refused[0].contains("it is a plan for 2 ranks, and there are 3"), "{}", refused[0]);
}

#[test]
fn splits_number_anew_and_are_apart() {
    well(5, |comm| {
        let rank = comm.rank();
        // Odd and even, backwards; rank 4 stays out.
        let color = (rank < 4).then_some(u64::from(rank % 2));
        let part = comm.split(color, -i64::from(rank))?;
        assert_eq!(part.is_some(), rank < 4);
        if let Some(mut part) = part {
            assert_eq!((part.rank(), part.world()), (u32::from(rank < 2), 2));
            let mut all = [0; 2];
            part.all_gather(&[rank as i32], &mut all)?;
            assert_eq!(all, if rank % 2 == 0 { [2, 0] } else { [3, 1] });
            // A split of a split.
            let mut again = part.duplicate()?;
            again.all_gather(&[rank as i32], &mut all)?;
            assert_eq!(all, if rank % 2 == 0 { [2, 0] } else { [3, 1] });
        }
        if let Some(mut three) = comm.subgroup(&[4, 0, 2])? {
            let mut sum = [0];
            three.all_reduce(&[rank as i32], &mut sum, RedOp::Sum)?;
            assert_eq!((sum, three.rank()), ([6], [1, 9, 2, 9, 0][rank as usize]));
        }
        assert!(comm.subgroup(&[0, 0]).unwrap_err().to_string().contains("rank 0 is listed twice"));
        assert!(comm.subgroup(&[5]).unwrap_err().to_string().contains("rank 5 is listed"));
        let alone = comm.split(Some(rank.into()), 0)?.expect("each has a colour");
        assert_eq!((alone.rank(), alone.world()), (0, 1));
        comm.barrier()
    });
}

#[test]
fn what_ends_a_part_does_not_end_the_whole() {
    well(4, |comm| {
        let mut part = comm.split(Some(u64::from(comm.rank() % 2)), 0)?.expect("each has a colour");
        if comm.rank() % 2 == 0 {
            if comm.rank() == 2 {
                part.abort("only here");
            }
            let error = part.barrier().unwrap_err().to_string();
            assert!(error.contains("only here"), "{error}");
        } else {
            part.barrier()?;
        }
        comm.barrier()
    });
}

#[test]
fn the_last_operations_are_recorded() {
    let records = world(2, |comm| {
        for len in 0..300 {
            comm.all_reduce_in_place(&mut vec![0u8; len], RedOp::Sum).unwrap();
        }
        match comm.rank() {
            0 => comm.send(&[1f32], 1).unwrap(),
            _ => comm.receive(&mut [1f32], 0).unwrap(),
        }
        (comm.flight_record(), comm.flight_record_json(), comm.flight_record_pickle())
    });
    for (rank, (record, json, pickle)) in records.into_iter().enumerate() {
        // Each key as a word behind its length.
        assert!(pickle.starts_with(b"\x80\x02}(") && pickle.ends_with(b"u."));
        assert!(pickle.windows(12).any(|bytes| bytes == b"X\x07\0\0\0entries"));
        assert_eq!(record.len(), 256);
        assert_eq!((record[0].operation, record[0].call.as_str()), (45, "allreduce of 45 u8, sum"));
        assert!(record.iter().all(|one| one.ended_ns >= Some(one.started_ns) && one.error.is_none()));
        assert!(record[255].is_message && record[255].operation == 0);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let entry = &json["entries"][0];
        assert_eq!(entry["collective_seq_id"], 45);
        assert_eq!(entry["profiling_name"], "nccl:all_reduce");
        assert_eq!((&entry["state"], &entry["input_sizes"][0][0]), (&"completed".into(), &45.into()));
        assert_eq!(json["pg_status"]["world"]["last_completed_collective"], 299);
        let message = &json["entries"][255];
        let ends = ["nccl:send 0->1", "nccl:recv 1<-0"][rank];
        assert_eq!((&message["profiling_name"], &message["output_sizes"][0][0]), (&ends.into(), &1.into()));
        for entry in [entry, message] {
            let group = &json["pg_config"][entry["process_group"][0].as_str().unwrap()];
            assert_eq!(group["ranks"], "[0, 1]");
        }
        assert_eq!((&message["is_p2p"], &json["rank"]), (&true.into(), &rank.into()));
    }
}

#[test]
fn records_are_written_when_a_communicator_fails_and_not_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("record");
    let builder = Communicator::builder().record_to(&path);
    let written = world_of(builder, 2, move |comm| {
        comm.barrier().unwrap();
        let before = std::fs::exists(format!("{}{}", path.display(), comm.rank())).unwrap();
        if comm.rank() == 0 {
            comm.abort("it is time");
        }
        assert!(comm.barrier().is_err());
        before
    });
    assert_eq!(written, [false, false]);
    for rank in 0..2 {
        let record = std::fs::read(folder.path().join(format!("record{rank}"))).expect("it was written");
        // The other rank was in a call.
        let told = record.windows(10).any(|bytes| bytes == b"it is time");
        assert_eq!(told, rank == 1, "rank {rank}");
    }
}

#[test]
fn a_failed_operation_stands_in_the_record() {
    let records = world(2, |comm| {
        let result = if comm.rank() == 0 { comm.barrier() } else { comm.broadcast(&mut [0u8], 1) };
        let later = comm.barrier();
        assert!(result.is_err() || later.is_err());
        comm.flight_record()
    });
    let failed = records.iter().flatten().find(|one| one.error.is_some()).expect("it is recorded");
    assert_eq!(failed.ended_ns, None);
}
