//! Giving up from another thread, and calls after it. Known faults B076, B077 and B078.

use coll::{CommError, Communicator, RedOp, Via};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(1);

/// Two ranks of which the second never comes; `each` gets the first, which waits in a call of its own thread, and the
/// second.
fn waiting(via: Via) -> (coll::AbortHandle, Communicator, thread::JoinHandle<CommError>) {
    let mut ranks = Communicator::builder().via(via).local(2).unwrap();
    let (late, mut comm) = (ranks.pop().unwrap(), ranks.pop().unwrap());
    let handle = comm.abort_handle();
    let (sender, begun) = mpsc::channel();
    let call = thread::spawn(move || {
        sender.send(()).unwrap();
        let mut sum = [0f32; 1000];
        comm.all_reduce(&[1f32; 1000], &mut sum, RedOp::Sum).expect_err("it is aborted")
    });
    begun.recv().unwrap();
    thread::sleep(Duration::from_millis(100));
    (handle, late, call)
}

#[test]
fn a_pending_call_ends_at_once_and_so_do_the_others() {
    for via in [Via::Fastest, Via::Tcp] {
        let (handle, mut late, call) = waiting(via);
        let began = Instant::now();
        handle.abort("enough");
        handle.clone().abort("of two reasons the first counts");
        assert!(began.elapsed() < SOON, "{via:?}");
        let error = call.join().unwrap();
        assert!(began.elapsed() < SOON, "{via:?}: {:?}", began.elapsed());
        assert_eq!(error.to_string(), "rank 0 gave up: aborted: enough", "{via:?}");
        assert!(matches!(error, CommError::Aborted { rank: 0, .. }) && error.is_fatal());
        assert!(handle.is_aborted());
        // What rank 0 had sent before may have been all that the late rank needs; of the next call it has sent nothing.
        let mut sum = [0f32; 1000];
        if late.all_reduce(&[1f32; 1000], &mut sum, RedOp::Sum).is_ok() {
            assert_eq!(sum, [2f32; 1000], "{via:?}");
        }
        let error = late.all_reduce(&[1f32; 1000], &mut sum, RedOp::Sum).expect_err("rank 0 gave up");
        assert!(error.to_string().contains("rank 0 gave up: aborted: enough"), "{via:?}: {error}");
    }
}

#[test]
fn calls_in_the_background_end_too() {
    let mut ranks = Communicator::local(2).unwrap();
    let (_late, mut comm) = (ranks.pop().unwrap(), ranks.pop().unwrap());
    let handle = comm.abort_handle();
    let pending = comm.start_all_reduce(vec![1f32; 10], RedOp::Sum).unwrap();
    let next = comm.start_barrier().unwrap();
    let began = Instant::now();
    handle.abort("enough");
    let first = pending.wait().unwrap_err();
    assert!(first.to_string().contains("aborted: enough"), "{first}");
    assert!(next.wait().unwrap_err().to_string().contains("aborted: enough"));
    assert!(began.elapsed() < SOON);
}

#[test]
fn b077_communicators_are_aborted_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let all: Vec<_> = (0..3).map(|_| waiting(Via::Fastest)).collect();
        for at in order {
            let began = Instant::now();
            all[at].0.abort("in turn");
            assert!(began.elapsed() < SOON, "{order:?}");
        }
        for (_, _late, call) in all {
            assert!(call.join().unwrap().to_string().contains("aborted: in turn"), "{order:?}");
        }
    }
}

#[test]
fn b078_an_aborted_communicator_says_so_to_every_call() {
    let mut comm = Communicator::alone().unwrap();
    let handle = comm.abort_handle();
    let prepared = comm.prepare_all_reduce::<i32>(1, RedOp::Sum).unwrap();
    handle.abort("enough");
    let mut all = [0; 1];
    let results = [
        comm.all_gather(&[1], &mut all),
        comm.barrier(),
        comm.broadcast(&mut all, 0),
        prepared.run(&mut comm, &[1], &mut all),
        comm.prepare_barrier().map(|_| ()),
        comm.group(|group| {
            group.broadcast(&mut all, 0);
        }),
        comm.duplicate().map(|_| ()),
        comm.start_barrier().and_then(|pending| pending.wait()),
    ];
    for (at, result) in results.into_iter().enumerate() {
        let error = result.expect_err("it has ended");
        assert!(matches!(error, CommError::Ended { .. }), "{at}: {error:?}");
        let text = error.to_string();
        assert_eq!(text, "the communicator has ended: rank 0 gave up: aborted: enough", "{at}");
    }
    assert!(comm.ended().is_some());
    comm.abort("again");
    drop(comm);
    // Nobody is left to hear of it.
    handle.abort("after its end");
}

/// Set in the processes that this test starts.
const ROLE: &str = "COLL_TEST_ABORT";

#[test]
fn as_a_rank() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let via = if role == "tcp" { Via::Tcp } else { Via::Fastest };
    let mut comm = Communicator::builder().from_env().via(via).build().unwrap();
    comm.barrier().unwrap();
    if comm.rank() == 1 {
        let me = std::process::id().to_string();
        let _ = Command::new("kill").args(["-STOP", &me]).status();
        // The signal may go to another thread first: this one must not leave before it stops.
        thread::sleep(Duration::from_secs(60));
        return;
    }
    let handle = comm.abort_handle();
    let took = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        handle.abort("it is stopped");
        began.elapsed()
    });
    let mut sum = [0f32; 100_000];
    // The peer may have been quick enough for one call.
    let error = loop {
        if let Err(error) = comm.all_reduce(&[1f32; 100_000], &mut sum, RedOp::Sum) {
            break error;
        }
    };
    assert!(error.to_string().contains("aborted: it is stopped"), "{error}");
    assert!(took.join().unwrap() < SOON);
}

fn start(role: &str, rank: u32, port: u16) -> Child {
    Command::new(std::env::current_exe().expect("this test has a file"))
        .args(["--exact", "as_a_rank", "--nocapture"])
        .env(ROLE, role)
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", "2")
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

#[test]
fn b076_a_stopped_peer_does_not_keep_an_abort_waiting() {
    for role in ["fastest", "tcp"] {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = socket.local_addr().expect("it has an address").port();
        drop(socket);
        let (first, mut stopped) = (start(role, 0, port), start(role, 1, port));
        let began = Instant::now();
        let output = first.wait_with_output().expect("it ends");
        stopped.kill().expect("it is ours");
        stopped.wait().expect("it is killed");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{role}: {said}");
        assert!(began.elapsed() < Duration::from_secs(20), "{role}");
    }
}
