//! Ranks that are processes: killed, stopped, and hosts of the rendezvous.
//!
//! A test starts its own program again, with the part to play in the environment.

mod world;

use std::net::TcpListener;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use coll_exec::{Fault, Interest, Link, Transport};
use coll_tcp::{Rendezvous, StartError, TcpTransport, join};

const PART: &str = "COLL_TEST_ADDRESS";

/// Starts this program again, to run the test `name` with the address of a rendezvous.
fn play(name: &str, address: &str) -> Killed {
    let program = std::env::current_exe().unwrap();
    Killed(Command::new(program).args(["--exact", name, "--nocapture"]).env(PART, address).spawn().unwrap())
}

/// A process that does not outlive its test.
struct Killed(Child);

impl Killed {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn stop(&self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        // On a busy machine its threads run on until one of them has taken the signal.
        let state = format!("/proc/{}/stat", self.0.id());
        while !std::fs::read_to_string(&state).unwrap().contains(") T ") {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// The child's part: hosts the rendezvous, is rank 0 of three, and waits to be killed.
fn host_and_wait(address: &str) {
    let server = Rendezvous::bind(address, world::TOKEN).unwrap();
    let mut transport = join(world::mesh(&server, 3, 1).remove(0)).unwrap();
    transport.exchange(vec![]).unwrap();
    std::thread::sleep(Duration::from_secs(30));
}

/// Ranks 1 and 2 of three, in this process.
fn others(address: &str, body: impl Fn(TcpTransport) + Sync) {
    let mut ranks = world::mesh_at(address, 3, 1);
    ranks.remove(0);
    world::run_all(ranks, |mut transport| {
        transport.exchange(vec![]).unwrap();
        // Until the other rank has its part of the exchange, too: the child may be the one that sends it.
        std::thread::sleep(Duration::from_millis(200));
        body(transport);
    });
}

#[test]
fn a_killed_rank_that_hosts_the_rendezvous_is_named() {
    if let Ok(address) = std::env::var(PART) {
        return host_and_wait(&address);
    }
    let address = free_address();
    let child = std::sync::Mutex::new(play("a_killed_rank_that_hosts_the_rendezvous_is_named", &address));
    others(&address, |mut transport| {
        let began = Instant::now();
        if transport.rank() == 1 {
            child.lock().unwrap().kill();
        }
        // No interest in any link: the news comes all the same.
        let Err(Fault::PeerLost { peer: 0, detail }) = transport.wait(&[]) else {
            panic!("rank 0 was killed")
        };
        assert!(detail.contains("rendezvous"), "{detail}");
        assert!(began.elapsed() < Duration::from_secs(2));
        let began = Instant::now();
        transport.shutdown();
        assert!(began.elapsed() < Duration::from_millis(1500), "the dead are not waited for");
    });
}

#[test]
fn a_stopped_rank_that_hosts_the_rendezvous_stops_nobody() {
    if let Ok(address) = std::env::var(PART) {
        return host_and_wait(&address);
    }
    let address = free_address();
    let child = play("a_stopped_rank_that_hosts_the_rendezvous_stops_nobody", &address);
    others(&address, |mut transport| {
        let began = Instant::now();
        if transport.rank() == 1 {
            child.stop();
        } else {
            std::thread::sleep(Duration::from_millis(200));
        }
        transport.begin(Duration::from_millis(300));
        let link = Link { peer: 0, channel: 0 };
        let check = |fault: Fault| {
            let Fault::Late { ranks, detail, .. } = fault else { panic!("{fault}") };
            assert!(ranks == [0] && detail.starts_with("rank 0, which hosts the rendezvous"), "{detail}");
        };
        check(world::wait_long(&mut transport, &[Interest::readable(link)]));
        check(transport.exchange(vec![]).unwrap_err());
        transport.abort("timed out");
        drop(transport);
        assert!(began.elapsed() < Duration::from_secs(4), "the stopped are not waited for");
    });
}

#[test]
fn a_stopped_rank_is_named_by_an_exchange() {
    if let Ok(address) = std::env::var(PART) {
        let mut transport = join(world::mesh_at(&address, 3, 1).remove(0)).unwrap();
        transport.exchange(vec![]).unwrap();
        std::thread::sleep(Duration::from_secs(30));
        return;
    }
    let server = world::server();
    let child = play("a_stopped_rank_is_named_by_an_exchange", &server.address().to_string());
    others(&server.address().to_string(), |mut transport| {
        child.stop();
        transport.begin(Duration::from_millis(400));
        let Err(Fault::PeerLost { peer: 0, detail }) = transport.exchange(vec![]) else {
            panic!("rank 0 is stopped")
        };
        let expected = "rank 0 did not come to exchange 1 within 0.4 s; rank 0 (pid ";
        assert!(detail.starts_with(expected) && detail.contains("does not answer"), "{detail}");
        transport.shutdown();
    });
}

#[test]
fn a_stopped_rank_is_named_by_those_who_wait_in_an_operation() {
    let call = std::sync::Arc::new(coll_tcp::Call { fingerprint: [1; 16], words: vec![] });
    if let Ok(address) = std::env::var(PART) {
        let mut transport = join(world::mesh_at(&address, 3, 1).remove(0)).unwrap();
        transport.begin_call(Duration::from_secs(30), 1, &call);
        transport.exchange(vec![]).unwrap();
        std::thread::sleep(Duration::from_secs(30));
        return;
    }
    let server = world::server();
    let name = "a_stopped_rank_is_named_by_those_who_wait_in_an_operation";
    let child = play(name, &server.address().to_string());
    others(&server.address().to_string(), |mut transport| {
        child.stop();
        let began = Instant::now();
        transport.begin_call(Duration::from_millis(1200), 1, &call);
        // Rank 2 waits for rank 1, which waits for the stopped one: both name the one that is to blame.
        let link = Link { peer: if transport.rank() == 2 { 1 } else { 0 }, channel: 0 };
        let fault = world::wait_long(&mut transport, &[Interest::readable(link)]);
        let Fault::Late { ranks, detail, .. } = &fault else { panic!("{fault}") };
        assert!(*ranks == [0] && detail.contains("does not answer"), "{detail}");
        assert!(began.elapsed() < Duration::from_secs(2));
        // Until the other one knows by itself.
        std::thread::sleep(Duration::from_millis(600));
    });
}

#[test]
fn a_stopped_server_is_an_error_in_time() {
    if let Ok(address) = std::env::var(PART) {
        let _server = Rendezvous::bind(&address, world::TOKEN).unwrap();
        std::thread::sleep(Duration::from_secs(30));
        return;
    }
    let address = free_address();
    let child = play("a_stopped_server_is_an_error_in_time", &address);
    while std::net::TcpStream::connect(&address).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.stop();
    let mut ranks = world::mesh_at(&address, 2, 1);
    for rank in &mut ranks {
        rank.time_limit = Duration::from_millis(500);
    }
    let began = Instant::now();
    for error in world::errors(ranks) {
        let StartError::Silent { .. } = error else { panic!("{error}") };
    }
    assert!(began.elapsed() < Duration::from_secs(2));
}
