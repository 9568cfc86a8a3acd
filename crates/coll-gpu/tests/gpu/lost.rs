//! What goes wrong between machines: each rank ends in time with an error that says who, where and why, and its streams go on.

use crate::support::devices::LIMIT;
use crate::support::network::Mesh;
use crate::support::world::{Own, Setup, prepare};
use crate::support::{Call, Case, plan, seed};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_exec::{Fault, FrameFault};
use coll_gpu::GroupError;
use coll_plan::Plan;
use std::sync::Arc;
use std::time::Duration;

fn ring(ranks: u32) -> Plan {
    plan("allreduce", "ring", ranks, 0, &Options::default()).expect("it applies")
}

fn network(error: &GroupError) -> &Fault {
    match error {
        GroupError::Network { fault, .. } => fault,
        other => panic!("{other}"),
    }
}

/// A rank dies before it runs: the others say that they have lost it, and what they were at.
#[test]
fn a_lost_rank_ends_all() {
    let plan = ring(3);
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    for seed in seed()..seed() + 5 {
        let setup = Setup::apart(3, seed);
        let session = setup.session();
        let mesh = Arc::new(Mesh::default());
        let ends = setup.run(&session, &mesh, |mut shared, rank| {
            let own = Own::new(&shared, &call, rank);
            let mut ready = prepare(&mut shared, &call, &own).expect("it is made ready");
            if rank == 1 {
                mesh.lose(1);
                return None;
            }
            ready.launch(own.stream.handle()).expect("it is put on a stream");
            let error = ready.wait(LIMIT).expect_err("rank 1 is gone");
            // The caller's stream is not held up, and the call stays refused.
            own.stream.synchronize().expect("it goes on");
            assert_eq!(ready.launch(own.stream.handle()).expect_err("it stays so"), error);
            Some(error)
        });
        assert_eq!(ends[1], None);
        for (rank, error) in [(0, &ends[0]), (2, &ends[2])] {
            let error = error.as_ref().expect("it failed");
            assert!(matches!(network(error), Fault::PeerLost { peer: 1, .. }), "{error}");
            let text = error.to_string();
            let words = [
                format!("rank {rank}, operation 1 (allreduce.ring), device {rank}, step "),
                "lost rank 1".into(),
            ];
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
            assert!(text.contains("rank 1: lost"), "it names the message: {text}");
        }
    }
}

/// A rank does not run what the others run: their time is up, by the limit of the wait or that of the network.
#[test]
fn a_rank_that_does_not_come_ends_the_wait() {
    let plan = ring(2);
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let setup = Setup::apart(2, seed());
    let session = setup.session();
    setup.run(&session, &Arc::new(Mesh::default()), |mut shared, rank| {
        let own = Own::new(&shared, &call, rank);
        let mut ready = prepare(&mut shared, &call, &own).expect("it is made ready");
        if rank == 0 {
            ready.launch(own.stream.handle()).expect("it is put on a stream");
            let error = ready.wait(Duration::from_millis(50)).expect_err("nobody comes");
            assert!(matches!(error, GroupError::TimedOut { rank: 0, operation: 1, .. }), "{error}");
            own.stream.synchronize().expect("it goes on");
            shared.meet().expect("all come");
        } else {
            shared.meet().expect("all come");
            // The others have heard of it: a run now ends at once.
            ready.launch(own.stream.handle()).expect("it is put on a stream");
            let error = ready.wait(LIMIT).expect_err("rank 0 has given up");
            assert!(matches!(network(&error), Fault::Aborted { origin: 0, .. }), "{error}");
            assert!(error.to_string().contains("rank 0 gave up"), "{error}");
        }
    });
}

/// Nobody waits for the call: it is dropped while it hangs, and that ends when the network says so.
#[test]
fn dropping_does_not_hang() {
    let plan = ring(2);
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let setup = Setup::apart(2, seed());
    let session = setup.session();
    let mesh = Arc::new(Mesh::default());
    setup.run(&session, &mesh, |mut shared, rank| {
        let own = Own::new(&shared, &call, rank);
        let mut ready = prepare(&mut shared, &call, &own).expect("it is made ready");
        if rank == 0 {
            ready.launch(own.stream.handle()).expect("it is put on a stream");
            std::thread::sleep(Duration::from_millis(20));
            drop(ready);
        } else {
            std::thread::sleep(Duration::from_millis(50));
            mesh.lose(1);
        }
    });
}

/// Bytes that are not those that were sent, in a header: the receiver says what it got, the others that it gave up.
#[test]
fn a_damaged_header_is_told() {
    let plan = ring(2);
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    // Bytes of the first message's header: its magic, the operation, the message's number, its length, the fingerprint.
    for byte in [0, 9, 16, 25, 40] {
        let setup = Setup::apart(2, seed());
        let session = setup.session();
        let mesh = Arc::new(Mesh::default());
        mesh.damage(0, 1, byte);
        let ends = setup.run(&session, &mesh, |mut shared, rank| {
            let own = Own::new(&shared, &call, rank);
            let mut ready = prepare(&mut shared, &call, &own).expect("it is made ready");
            ready.launch(own.stream.handle()).expect("it is put on a stream");
            ready.wait(LIMIT).expect_err("the header is damaged")
        });
        let told = network(&ends[1]);
        match byte {
            40 => assert!(matches!(told, Fault::Mismatch { peer: 0, .. }), "{told}"),
            _ => assert!(matches!(told, Fault::Frame { peer: 0, .. }), "{told}"),
        }
        assert!(
            byte != 0 || matches!(told, Fault::Frame { fault: FrameFault::Foreign { .. }, .. }),
            "{told}"
        );
        assert!(matches!(network(&ends[0]), Fault::Aborted { origin: 1, .. }), "{}", ends[0]);
    }
}

/// Ranks that make different calls find out by the first message.
#[test]
fn another_call_is_told() {
    let plan = ring(2);
    let calls = [RedOp::Sum, RedOp::Max].map(|op| Call::new(&plan, &Case::new(op, DType::F32)));
    let setup = Setup::apart(2, seed());
    let session = setup.session();
    let ends = setup.run(&session, &Arc::new(Mesh::default()), |mut shared, rank| {
        let call = &calls[rank as usize];
        let own = Own::new(&shared, call, rank);
        let mut ready = prepare(&mut shared, call, &own).expect("it is made ready");
        ready.launch(own.stream.handle()).expect("it is put on a stream");
        ready.wait(LIMIT).expect_err("the other one makes another call")
    });
    let mismatched = |error: &GroupError| matches!(network(error), Fault::Mismatch { .. });
    assert!(ends.iter().any(mismatched), "{ends:?}");
}

/// The driver refuses what the porter asks of it: told with rank and message, and the others hear of it.
#[test]
fn a_device_that_fails_is_told() {
    const LAUNCH_FAILED: u32 = 719;
    let plan = ring(2);
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let setup = Setup::apart(2, seed());
    let session = setup.session();
    let ends = setup.run(&session, &Arc::new(Mesh::default()), |mut shared, rank| {
        let own = Own::new(&shared, &call, rank);
        let mut ready = prepare(&mut shared, &call, &own).expect("it is made ready");
        shared.meet().expect("all come");
        if rank == 0 {
            session.fail_next("cuStreamWaitValue32_v2", 6, LAUNCH_FAILED).expect("it will");
        }
        shared.meet().expect("all come");
        let launched = ready.launch(own.stream.handle());
        launched.and_then(|()| ready.wait(LIMIT)).expect_err("a device fails")
    });
    let failed = |error: &&GroupError| matches!(error, GroupError::Enqueue { .. });
    let error = ends.iter().find(failed).unwrap_or_else(|| panic!("{ends:?}"));
    assert!(error.to_string().contains("cuStreamWaitValue32"), "{error}");
    let others: Vec<&GroupError> = ends.iter().filter(|error| !failed(error)).collect();
    assert!(others.iter().all(|error| matches!(network(error), Fault::Aborted { .. })), "{others:?}");
}

/// No pinned memory is left: the call is refused on all ranks, and another one can be made.
#[test]
fn no_pinned_memory_is_told() {
    const OUT_OF_MEMORY: u32 = 2;
    let plan = ring(2);
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let setup = Setup::apart(2, seed());
    let session = setup.session();
    session.fail_next("cuMemHostAlloc", 0, OUT_OF_MEMORY).expect("it will");
    let due = call.on_cpu();
    let refused = setup.run(&session, &Arc::new(Mesh::default()), |mut shared, rank| {
        let own = Own::new(&shared, &call, rank);
        let refused = prepare(&mut shared, &call, &own).err().expect("there is no memory");
        let mut ready = prepare(&mut shared, &call, &own).expect("it is made ready");
        ready.launch(own.stream.handle()).expect("it is put on a stream");
        ready.wait(LIMIT).expect("it ends");
        assert!(own.outputs() == due[rank as usize]);
        shared.meet().expect("all come");
        refused.to_string()
    });
    assert!(refused.iter().all(|text| text.contains("pinned memory")), "{refused:?}");
}

/// A graph cannot post messages to other machines: capturing one is refused on all ranks, in words.
#[test]
fn a_graph_of_messages_to_other_machines_is_refused() {
    let plan = ring(2);
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let setup = Setup::apart(2, seed());
    let session = setup.session();
    setup.run(&session, &Arc::new(Mesh::default()), |mut shared, rank| {
        let own = Own::new(&shared, &call, rank);
        let ready = prepare(&mut shared, &call, &own).expect("it is made ready");
        let refused = shared.capture(ready, LIMIT).err().expect("it is refused").to_string();
        assert!(refused.contains("is not captured into a graph"), "{refused}");
    });
    session.verdict().expect("nothing is left to chance");
}
