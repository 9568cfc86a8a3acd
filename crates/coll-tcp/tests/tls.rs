//! Jobs within TLS: they start, move bytes and end as others do, nobody between reads what is said, and ranks that do
//! not have it alike are told so, all of them and soon.

mod world;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coll_exec::Fault;
use coll_tcp::{JoinOptions, Rendezvous, StartError, join};

fn server(tls: bool) -> Rendezvous {
    Rendezvous::bind_tls("127.0.0.1:0", world::TOKEN, tls).unwrap()
}

/// Each rank with TLS on or off.
fn mesh(address: &str, tls: &[bool]) -> Vec<JoinOptions> {
    let mut ranks = world::mesh_at(address, tls.len() as u32, 1);
    ranks.iter_mut().zip(tls).for_each(|(rank, tls)| rank.tls = *tls);
    ranks
}

/// The first line of each rank's error, which all must have within two seconds.
fn told(server: &Rendezvous, ranks: Vec<JoinOptions>) -> Vec<String> {
    let began = Instant::now();
    let errors = world::errors(ranks);
    assert!(began.elapsed() < Duration::from_secs(2), "it took {:?}", began.elapsed());
    let port = server.address().port().to_string();
    let line = |error: &StartError| {
        let text = error.to_string();
        assert!(text.contains("COLLC_TLS"), "it names the option: {text}");
        text.lines().next().unwrap_or_default().replace(&port, "PORT")
    };
    errors.iter().map(line).collect()
}

#[test]
fn a_rank_without_tls_is_told_to_every_rank() {
    for tls in [true, false] {
        let server = server(tls);
        let address = server.address().to_string();
        let (own, other) = if tls { ("on", "off") } else { ("off", "on") };
        let lines = told(&server, mesh(&address, &[tls, !tls, tls]));
        assert_eq!(
            lines[1],
            format!("TLS is {other} for this rank and {own} for the rendezvous at 127.0.0.1:PORT")
        );
        for line in [&lines[0], &lines[2]] {
            let right = format!(
                "the ranks disagree on TLS (`--tls`, COLLC_TLS): rank 1 has {other}, ranks 0, 2 have {own}"
            );
            assert_eq!(*line, right);
        }
        // The server is none the worse, and does not count on those that have gone.
        let lines = told(&server, mesh(&address, &[!tls, !tls]));
        assert!(lines.iter().all(|line| line.starts_with(&format!("TLS is {other} for this rank"))));
        world::run_all(mesh(&address, &[tls, tls]), |transport| transport.shutdown());
        assert!(server.finish(Duration::from_secs(5)), "nobody is left");
    }
}

#[test]
fn another_token_is_refused_within_tls_too() {
    let server = server(true);
    let mut ranks = mesh(&server.address().to_string(), &[true, true]);
    ranks.iter_mut().for_each(|rank| rank.token = "mustard".into());
    for error in world::errors(ranks) {
        assert!(matches!(error, StartError::ServerUnproven { .. }), "{error}");
    }
}

#[test]
fn tls_needs_a_token() {
    let mut options = JoinOptions::new(0, 1, "unused:1");
    options.tls = true;
    assert_eq!(join(options).unwrap_err(), StartError::TlsWithoutToken);
    assert_eq!(Rendezvous::bind_tls("127.0.0.1:0", "", true).unwrap_err(), StartError::TlsWithoutToken);
}

#[test]
fn blobs_are_exchanged_and_a_death_is_told() {
    let server = server(true);
    let faults = world::run_all(mesh(&server.address().to_string(), &[true; 3]), |mut transport| {
        let rank = transport.rank();
        let all = transport.exchange(vec![rank as u8; 1 << 20]).unwrap();
        assert!(all.iter().enumerate().all(|(rank, blob)| *blob == vec![rank as u8; 1 << 20]));
        if rank == 2 {
            drop(transport);
            return None;
        }
        Some(world::await_fault(&mut transport))
    });
    for fault in faults.into_iter().flatten() {
        assert!(matches!(fault, Fault::PeerLost { peer: 2, .. }), "{fault}");
    }
}

/// Carries connections to an address, and keeps what it hears.
fn tap(target: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heard);
    std::thread::spawn(move || {
        while let Ok((here, _)) = listener.accept() {
            let Ok(there) = TcpStream::connect(target) else { return };
            let ways = [(here.try_clone(), there.try_clone()), (Ok(there), Ok(here))];
            for (from, to) in ways {
                let (mut from, mut to, heard) = (from.unwrap(), to.unwrap(), Arc::clone(&heard));
                std::thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        heard.lock().unwrap().extend_from_slice(&bytes[..count]);
                        if to.write_all(&bytes[..count]).is_err() {
                            return;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    (address, kept)
}

#[test]
fn nobody_between_reads_what_ranks_and_rendezvous_say() {
    for tls in [false, true] {
        let server = server(tls);
        let (address, heard) = tap(server.address());
        let mut ranks = mesh(&address.to_string(), &[tls, tls]);
        ranks.iter_mut().for_each(|rank| rank.fingerprint = vec![("count".into(), "a-secret-count".into())]);
        world::run_all(ranks, |mut transport| {
            transport.exchange(b"a secret blob".to_vec()).unwrap();
            transport.shutdown();
        });
        let heard = heard.lock().unwrap();
        for secret in [&b"a-secret-count"[..], b"a secret blob", b"patience_ms"] {
            let found = heard.windows(secret.len()).any(|window| window == secret);
            assert_eq!(found, !tls, "{}", String::from_utf8_lossy(secret));
        }
    }
}
