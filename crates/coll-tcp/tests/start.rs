//! A job that cannot start says why, on every rank, within the time limit.

mod world;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use coll_exec::Link;
use coll_tcp::{JoinOptions, Rendezvous, StartError, join};
use expect_test::{Expect, expect};

fn first_line(error: &StartError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Every rank's error, each once, first lines only; the rendezvous' port and this process's id masked.
fn check(server: &Rendezvous, ranks: Vec<JoinOptions>, expect: Expect) {
    let mut lines: Vec<String> = world::errors(ranks).iter().map(first_line).collect();
    lines.dedup();
    let text = lines.join("\n").replace(&server.address().port().to_string(), "PORT");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let whence = format!("pid {} on {}", std::process::id(), host.trim());
    expect.assert_eq(&text.replace(&whence, "PROCESS"));
}

/// B068.
#[test]
fn missing_ranks_are_named_on_all_others_in_time() {
    let server = world::server();
    let mut ranks = world::ring(&server, 5);
    for rank in &mut ranks {
        rank.time_limit = Duration::from_millis(700);
    }
    ranks.remove(3);
    ranks.remove(1);
    let began = Instant::now();
    let errors = world::errors(ranks);
    let took = began.elapsed();
    assert!(took > Duration::from_millis(600) && took < Duration::from_millis(1600), "it took {took:?}");
    for error in errors {
        let StartError::Missing { missing, present, world, .. } = error else { panic!("{error}") };
        assert_eq!((missing.0, present, world), (vec![1, 3], 3, 5));
    }
}

#[test]
fn a_late_rank_is_waited_for() {
    let server = world::server();
    let ranks = world::mesh(&server, 2, 1);
    std::thread::scope(|scope| {
        let early = scope.spawn(|| join(ranks[1].clone()).map(|transport| transport.shutdown()));
        std::thread::sleep(Duration::from_millis(800));
        join(ranks[0].clone()).unwrap().shutdown();
        early.join().unwrap().unwrap();
    });
}

/// B068.
#[test]
fn a_late_server_is_waited_for() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut options = JoinOptions::new(0, 2, port.to_string());
    options.token = world::TOKEN.into();
    std::thread::scope(|scope| {
        let ranks = [0, 1].map(|rank| JoinOptions { rank, ..options.clone() });
        let threads =
            ranks.map(|options| scope.spawn(|| join(options).map(|transport| transport.shutdown())));
        std::thread::sleep(Duration::from_millis(500));
        let server = Rendezvous::bind(&port.to_string(), world::TOKEN).unwrap();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
        assert!(server.finish(Duration::from_secs(5)));
    });
}

/// B071.
#[test]
fn a_mismatch_is_told_to_every_rank() {
    let server = world::server();
    let mut ranks = world::ring(&server, 4);
    for rank in &mut ranks {
        let count = if rank.rank == 2 { "8" } else { "4" };
        rank.fingerprint = vec![("plan".into(), "ab12".into()), ("count".into(), count.into())];
    }
    check(&server, ranks, expect!["the ranks disagree on count: rank 2 has 8, ranks 0-1, 3 have 4"]);
}

#[test]
fn worlds_of_two_sizes_are_told_to_every_rank() {
    let server = world::server();
    let mut ranks = world::ring(&server, 4);
    ranks[1].world = 8;
    check(
        &server,
        ranks,
        expect!["the ranks disagree on the number of ranks: rank 1 has 8, ranks 0, 2-3 have 4"],
    );
}

#[test]
fn a_rank_that_comes_twice_is_told_to_every_rank() {
    let server = world::server();
    let mut ranks = world::ring(&server, 4);
    ranks[3] = ranks[1].clone();
    check(&server, ranks, expect!["rank 1 came 2 times: PROCESS, PROCESS"]);
}

#[test]
fn a_rank_outside_of_the_world_is_told_to_every_rank() {
    let server = world::server();
    let mut ranks = world::ring(&server, 4);
    ranks[3].rank = 4;
    ranks[3].links.clear();
    check(&server, ranks, expect!["rank 4 (PROCESS) is outside a world of 4 ranks"]);
}

#[test]
fn a_link_with_one_end_is_told_to_every_rank() {
    let server = world::server();
    let mut ranks = world::ring(&server, 4);
    ranks[0].links.push(Link { peer: 2, channel: 0 });
    check(&server, ranks, expect!["rank 0 has a link to rank 2 on channel 0, but rank 2 has none to rank 0"]);
}

#[test]
fn another_token_is_refused() {
    let server = world::server();
    let mut ranks = world::mesh(&server, 2, 1);
    for rank in &mut ranks {
        rank.token = "mustard".into();
    }
    check(&server, ranks, expect!["the rendezvous at 127.0.0.1:PORT refused this rank's token"]);
}

#[test]
fn a_rank_that_listens_at_one_address_is_found_there() {
    let server = world::server();
    let mut ranks = world::mesh(&server, 2, 1);
    ranks[0].listen = Some("127.0.0.2:0".parse().unwrap());
    world::run_all(ranks, |transport| transport.shutdown());
}

/// B064.
#[test]
fn a_taken_port_is_named_at_once() {
    let server = world::server();
    let address = server.address();
    let began = Instant::now();
    let error = Rendezvous::bind(&address.to_string(), "x").unwrap_err();
    assert_eq!(error, StartError::PortTaken { address });
    assert!(error.to_string().starts_with(&format!("port {} is taken", address.port())));
    let mut ranks = world::mesh(&server, 2, 1);
    for rank in &mut ranks {
        rank.listen = Some(address);
    }
    let errors = world::errors(ranks.split_off(1));
    assert_eq!(errors, [StartError::PortTaken { address }]);
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn nobody_at_the_rendezvous_is_an_error_with_the_number_of_tries() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut options = JoinOptions::new(0, 2, address.to_string());
    options.time_limit = Duration::from_millis(600);
    let StartError::Unreachable { tries, waited_s, last, .. } = join(options).unwrap_err() else {
        panic!("nobody listens there")
    };
    assert!(tries > 3 && waited_s < 1.0 && last.contains("refused"), "{tries} tries in {waited_s} s: {last}");
}

#[test]
fn an_address_that_is_none_is_refused() {
    for address in ["localhost", "localhost:0", "localhost:99999", ""] {
        let error = join(JoinOptions::new(0, 2, address)).unwrap_err();
        assert!(matches!(error, StartError::Resolve { .. }), "{address:?}: {error}");
    }
    let error = Rendezvous::bind("127.0.0.1", "x").unwrap_err();
    assert!(matches!(error, StartError::Resolve { .. }), "{error}");
}

#[test]
fn something_else_at_the_port_is_recognised() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = other.accept() {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n");
        }
    });
    let error = join(JoinOptions::new(0, 2, address.to_string())).unwrap_err();
    expect![[r#"what answers at ADDRESS is no rendezvous: a frame begins with "SSH-", not "coll""#]]
        .assert_eq(&first_line(&error).replace(&address.to_string(), "ADDRESS"));
}

/// B071.
#[test]
fn a_server_of_another_version_is_named_with_both() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = other.accept() {
            let head = br#"{"version":7,"nonce":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#;
            let frame = [b"coll", &(head.len() as u32).to_le_bytes()[..], &[0; 4], head].concat();
            let _ = stream.write_all(&frame);
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    let error = join(JoinOptions::new(0, 2, address.to_string())).unwrap_err();
    assert_eq!(
        error,
        StartError::Version { address: address.to_string(), ours: coll_tcp::PROTOCOL_VERSION, theirs: 7 }
    );
}

#[test]
fn a_server_that_stops_is_told_to_those_who_wait() {
    let server = world::server();
    let mut ranks = world::mesh(&server, 3, 1);
    ranks.pop();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world::errors(ranks));
        std::thread::sleep(Duration::from_millis(400));
        drop(server);
        for error in waiting.join().unwrap() {
            assert!(matches!(error, StartError::ServerGone { .. }), "{error}");
        }
    });
}

/// B083.
#[test]
fn too_few_descriptors_are_named_before_anything_is_connected() {
    const NAME: &str = "too_few_descriptors_are_named_before_anything_is_connected";
    if std::env::var_os("COLL_TEST_FEW_DESCRIPTORS").is_none() {
        // Once more, in a process that may not have many.
        let command = format!("ulimit -n 64; exec \"$0\" --exact {NAME}");
        let program = std::env::current_exe().unwrap();
        let status = std::process::Command::new("sh")
            .arg("-c")
            .arg(command)
            .arg(program)
            .env("COLL_TEST_FEW_DESCRIPTORS", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let mut options = JoinOptions::new(0, 16, "127.0.0.1:1");
    options.links = (1..16).flat_map(|peer| (0..8).map(move |channel| Link { peer, channel })).collect();
    let StartError::Descriptors { links, need, limit } = join(options).unwrap_err() else {
        panic!("120 links do not fit")
    };
    assert_eq!((links, limit), (120, 64));
    assert!(need > 120);
}

#[test]
fn options_that_cannot_be_are_refused_without_a_server() {
    let mut options = JoinOptions::new(0, 2, "127.0.0.1:1");
    options.links = vec![Link { peer: 0, channel: 0 }];
    let error = join(options.clone()).unwrap_err();
    assert_eq!(first_line(&error), "these options cannot be: rank 0 has a link to itself, on channel 0");
    options.links.clear();
    options.fingerprint = vec![("plan".into(), "x".repeat(2 << 20))];
    let server = world::server();
    options.address = server.address().to_string();
    options.token = world::TOKEN.into();
    assert!(matches!(join(options), Err(StartError::Options { .. })));
}
