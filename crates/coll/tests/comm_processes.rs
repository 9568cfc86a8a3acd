//! Ranks that are processes: they meet by what a launcher sets, share memory, split, and hear of a killed one.

#[path = "comm/port.rs"]
mod port;

use coll::{CommError, Communicator, RedOp, Via};
use port::free_port;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Set in the processes that this test starts: what they are to do.
const ROLE: &str = "COLL_TEST_ROLE";

/// Starts this test again as rank `rank` of `world`.
fn start(role: &str, rank: u32, world: u32, port: u16) -> Child {
    Command::new(std::env::current_exe().expect("this test has a file"))
        .args(["--exact", "as_a_rank", "--nocapture"])
        .env(ROLE, role)
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", world.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// What each process does: nothing if it is not one of those that were started for a role.
#[test]
fn as_a_rank() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let via = if role.ends_with("tcp") { Via::Tcp } else { Via::Fastest };
    let mut builder = Communicator::builder().from_env().via(via).time_limit(Duration::from_secs(10));
    if role.ends_with("apart") {
        builder = builder.ranks_per_host(2);
    }
    let mut comm = builder.build().unwrap_or_else(|error| panic!("{error}"));
    let done = match role.split(' ').next() {
        Some("well") => well(&mut comm),
        Some("reading") => until_reader_is_lost(&mut comm),
        _ => until_lost(&mut comm),
    };
    done.unwrap_or_else(|error| panic!("{error}"));
}

fn well(comm: &mut Communicator) -> Result<(), CommError> {
    let (rank, world) = (comm.rank(), comm.world());
    for len in [1, 1000, 1_000_000] {
        let mut sum = vec![0f32; len];
        comm.all_reduce(&vec![rank as f32; len], &mut sum, RedOp::Sum)?;
        assert!(sum.iter().all(|&sum| sum == (world * (world - 1) / 2) as f32), "{len} elements");
    }
    let mut part = comm.split(Some(u64::from(rank % 2)), 0)?.expect("each has a colour");
    let mut all = vec![0; part.world() as usize];
    part.all_gather(&[rank], &mut all)?;
    let due: Vec<u32> = (0..world).filter(|other| other % 2 == rank % 2).collect();
    assert_eq!(all, due);
    comm.barrier()
}

/// Rank 2 kills itself; the others must hear of it.
fn until_lost(comm: &mut Communicator) -> Result<(), CommError> {
    let mut sum = vec![0i64; 1000];
    for round in 0.. {
        if round == 50 && comm.rank() == 2 {
            let me = std::process::id().to_string();
            let _ = Command::new("kill").args(["-KILL", &me]).status();
            thread::sleep(Duration::from_secs(20));
        }
        let began = Instant::now();
        if let Err(error) = comm.all_reduce(&[1; 1000], &mut sum, RedOp::Sum) {
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            let text = error.to_string();
            assert!(text.contains("rank 2"), "{text}");
            assert!(text.contains("allreduce of 1000 i64, sum"), "{text}");
            let again = comm.barrier().expect_err("it has ended").to_string();
            assert!(again.contains("the communicator has ended"), "{again}");
            return Ok(());
        }
    }
    Ok(())
}

/// Rank 2 kills itself where its peers wait until it has read what lies in their memory.
fn until_reader_is_lost(comm: &mut Communicator) -> Result<(), CommError> {
    let mut memory = comm.alloc::<i64>(1_000_000)?;
    for round in 0..10 {
        memory.fill(1);
        comm.all_reduce_in_place(&mut memory, RedOp::Sum)?;
        assert!(memory.iter().all(|&sum| sum == i64::from(comm.world())), "round {round}");
    }
    if comm.rank() == 2 {
        thread::sleep(Duration::from_millis(300));
        let me = std::process::id().to_string();
        let _ = Command::new("kill").args(["-KILL", &me]).status();
        thread::sleep(Duration::from_secs(20));
    }
    let began = Instant::now();
    let error =
        comm.all_reduce_in_place(&mut memory, RedOp::Sum).expect_err("rank 2 reads nothing").to_string();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(error.contains("rank 2"), "{error}");
    // Nobody reads in it any more.
    memory.fill(0);
    Ok(())
}

/// All end well, but for one that may be killed.
fn all_end_well(ranks: Vec<Child>, killed: Option<usize>) {
    for (rank, child) in ranks.into_iter().enumerate() {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), Some(rank) != killed, "rank {rank}: {said}");
    }
}

#[test]
fn processes_meet_as_a_launcher_has_it() {
    for (role, world) in [("well", 4), ("well apart", 5), ("well tcp", 3), ("well", 1)] {
        let port = free_port();
        all_end_well((0..world).map(|rank| start(role, rank, world, port)).collect(), None);
    }
}

/// B075.
#[test]
fn a_killed_process_is_named_by_all_others() {
    for role in ["lost", "lost tcp", "lost apart", "reading", "reading apart"] {
        let port = free_port();
        all_end_well((0..4).map(|rank| start(role, rank, 4, port)).collect(), Some(2));
    }
}
