//! Jobs over several hosts: bridges with the same address everywhere, names that mean loopback, packets that get lost,
//! cables that are cut. Numbers such as B059 are those of the list of known faults of this field.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "ranks that are processes speak by printing")]

mod hosts;
mod world;

use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use coll_exec::{Interest, Link, Transport};
use coll_tcp::{Call, JoinOptions, Rendezvous, join};
use hosts::{BRIDGE, Hosts, NAMES, SHARED, SHARED_V6};

/// What a rank prints before its outcome.
const SAYS: &str = "the rank says: ";

/// In a process that is to be a rank: its part, and true.
fn played() -> bool {
    let variable = |name: &str| env::var(format!("COLL_TEST_{name}")).ok();
    let Some(rank) = variable("RANK") else { return false };
    let outcome = play(rank.parse().unwrap(), &variable).unwrap_or_else(|error| error.to_string());
    println!("{SAYS}{}", outcome.replace('\n', " | "));
    true
}

/// Rank 0 hosts the rendezvous. Both greet each other, and then, if they are told to, wait for what never comes.
fn play(rank: u32, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Box<dyn std::error::Error>> {
    let address = variable("ADDRESS").unwrap();
    let server = if rank == 0 { Some(Rendezvous::bind(&address, world::TOKEN)?) } else { None };
    if let Some(ends) = variable("FORWARD") {
        let (from, to) = ends.split_once(' ').unwrap();
        forward(TcpListener::bind(from)?, to.to_owned());
    }
    let mut options = JoinOptions::new(rank, 2, address);
    options.token = world::TOKEN.into();
    options.interfaces = variable("INTERFACES");
    options.listen = variable("LISTEN").map(|address| address.parse().unwrap());
    options.advertise = variable("ADVERTISE").iter().map(|address| address.parse().unwrap()).collect();
    options.time_limit =
        Duration::from_secs_f64(variable("LIMIT_S").map_or(10.0, |limit| limit.parse().unwrap()));
    let mut transport = join(options)?;
    let link = Link { peer: 1 - rank, channel: 0 };
    transport.connect(&[link])?;
    transport.try_send(link, &[&[rank as u8]])?;
    let interest = [Interest::readable(link)];
    let mut byte = [9];
    while transport.try_recv(link, &mut byte)? == 0 {
        transport.wait(&interest)?;
    }
    assert_eq!(u32::from(byte[0]), link.peer);
    transport.exchange(vec![])?;
    if variable("THEN").as_deref() == Some("wait") {
        transport.begin_call(Duration::from_secs(3), 1, &Call::default().into());
        let began = Instant::now();
        let fault = world::wait_long(&mut transport, &interest);
        assert!(began.elapsed() < Duration::from_secs(4));
        transport.abort(&fault.to_string());
        return Ok(fault.to_string());
    }
    transport.shutdown();
    if let Some(server) = server {
        assert!(server.finish(Duration::from_secs(5)));
    }
    Ok("all is well".to_owned())
}

/// Carries connections on, as a translation of addresses does.
fn forward(listener: TcpListener, to: String) {
    fn carry(mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
    }
    thread::spawn(move || {
        while let Ok((theirs, _)) = listener.accept() {
            let Ok(ours) = TcpStream::connect(&to) else { continue };
            let (back_from, back_to) = (ours.try_clone().unwrap(), theirs.try_clone().unwrap());
            thread::spawn(move || carry(theirs, ours));
            thread::spawn(move || carry(back_from, back_to));
        }
    });
}

/// Runs rank 0 on the first host and rank 1 on the second, while something happens. Returns what each says.
fn run(
    hosts: &Hosts,
    name: &str,
    address: &str,
    more: [&[(&str, &str)]; 2],
    meanwhile: impl FnOnce(),
) -> [String; 2] {
    let start = |host: usize| {
        let rank = host.to_string();
        let mut variables = vec![("COLL_TEST_RANK", rank.as_str()), ("COLL_TEST_ADDRESS", address)];
        variables.extend(more[host]);
        hosts.run(host, name, &variables)
    };
    let ranks = [start(0), start(1)];
    meanwhile();
    ranks.map(|rank| {
        let output = rank.join().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.lines().find_map(|line| line.split_once(SAYS)) {
            Some((_, says)) => says.to_owned(),
            None => panic!("no word of a rank: {text}{}", String::from_utf8_lossy(&output.stderr)),
        }
    })
}

const WELL: [&str; 2] = ["all is well"; 2];

fn address(port: u16) -> String {
    format!("{}:{port}", SHARED[0])
}

#[test]
fn the_network_that_hosts_share_is_found_and_may_be_chosen() {
    // B059, B061; and B072: both hosts have the same name, and loopback leads to neither from the other.
    if played() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let name = "the_network_that_hosts_share_is_found_and_may_be_chosen";
    let list = NAMES.join(",");
    for interfaces in
        [None, Some(list.as_str()), Some("^docker,^inside"), Some("10.99.0.0/16"), Some("en,=eth0")]
    {
        let more: Vec<(&str, &str)> =
            interfaces.map(|list| ("COLL_TEST_INTERFACES", list)).into_iter().collect();
        assert_eq!(run(&hosts, name, &address(7100), [&more, &more], || {}), WELL, "{interfaces:?}");
    }
    let v6 = format!("[{}]:7101", SHARED_V6[0]);
    assert_eq!(run(&hosts, name, &v6, [&[], &[]], || {}), WELL, "IPv6");
}

#[test]
fn a_bridge_that_is_the_same_everywhere_is_refused_when_it_is_forced() {
    // B059
    if played() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let name = "a_bridge_that_is_the_same_everywhere_is_refused_when_it_is_forced";
    let more: &[(&str, &str)] = &[("COLL_TEST_INTERFACES", "docker0")];
    for says in run(&hosts, name, &address(7102), [more, more], || {}) {
        let expected = format!("address {BRIDGE} belongs to ranks 0-1, which are on different machines");
        assert!(says.starts_with(&expected), "{says}");
    }
}

#[test]
fn an_interface_that_is_not_there_is_an_error_that_lists_what_is() {
    // B061
    if played() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let name = "an_interface_that_is_not_there_is_an_error_that_lists_what_is";
    let more = [("COLL_TEST_INTERFACES", "ib0"), ("COLL_TEST_LIMIT_S", "1")];
    let [_, says] = run(&hosts, name, &address(7103), [&more[1..], &more], || {});
    assert!(
        says.starts_with("no interface of this machine is one of \"ib0\"; it has lo 127.0.0.1, "),
        "{says}"
    );
    assert!(says.contains("eth0 10.99.0.2") && says.contains("docker0 172.17.0.1"), "{says}");
}

#[test]
fn a_host_whose_own_name_means_loopback_is_found_by_the_others() {
    // B062
    if played() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let name = "a_host_whose_own_name_means_loopback_is_found_by_the_others";
    hosts.name(0, "node-a.test", "127.0.1.1");
    hosts.name(1, "node-a.test", SHARED[0]);
    assert_eq!(run(&hosts, name, "node-a.test:7104", [&[], &[]], || {}), WELL);
}

#[test]
fn behind_translated_addresses_what_is_advertised_is_used_and_else_what_was_tried_is_told() {
    // B063
    if played() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let name = "behind_translated_addresses_what_is_advertised_is_used_and_else_what_was_tried_is_told";
    let listen = ("COLL_TEST_LISTEN", "172.17.0.1:7106");
    let from = format!("{}:7107", SHARED[0]);
    let forward = format!("{from} 172.17.0.1:7106");
    let advertised = [listen, ("COLL_TEST_FORWARD", &forward), ("COLL_TEST_ADVERTISE", &from)];
    assert_eq!(run(&hosts, name, &address(7105), [&advertised, &[]], || {}), WELL);
    let limit: (&str, &str) = ("COLL_TEST_LIMIT_S", "2");
    let says = run(&hosts, name, &address(7108), [&[listen, limit], &[limit]], || {});
    assert!(
        says[1].contains("rank 0     channel 0   172.17.0.1:7106          by docker0")
            && says[1].contains("tried"),
        "{says:?}"
    );
}

#[test]
fn lost_packets_and_missing_routes_at_the_start_are_tried_again() {
    // B066
    if played() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let name = "lost_packets_and_missing_routes_at_the_start_are_tried_again";
    hosts.lose_packets(1, true);
    let mend = || {
        thread::sleep(Duration::from_millis(700));
        hosts.lose_packets(1, false);
    };
    assert_eq!(run(&hosts, name, &address(7109), [&[], &[]], mend), WELL);
    let route = format!("{} table main", SHARED[0]);
    hosts.ip(1, &format!("route add unreachable {route}"));
    let mend = || {
        thread::sleep(Duration::from_millis(700));
        hosts.ip(1, &format!("route del unreachable {route}"));
    };
    assert_eq!(run(&hosts, name, &address(7110), [&[], &[]], mend), WELL);
    // For good: who, where, why and how often.
    hosts.ip(1, &format!("route add unreachable {route}"));
    let limit: &[(&str, &str)] = &[("COLL_TEST_LIMIT_S", "1.5")];
    let says = run(&hosts, name, &address(7111), [limit, limit], || {});
    assert!(says[0].starts_with("rank 1 never came"), "{says:?}");
    let expected = "no rendezvous at 10.99.0.1:7111: No route to host (os error 113), ";
    assert!(says[1].starts_with(expected) && says[1].contains(" tries in "), "{says:?}");
}

#[test]
fn a_host_that_is_cut_off_in_an_operation_is_named_in_time() {
    // B067, and what a stopped process looks like from elsewhere.
    if played() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let name = "a_host_that_is_cut_off_in_an_operation_is_named_in_time";
    let more: &[(&str, &str)] = &[("COLL_TEST_THEN", "wait")];
    let cut = || {
        thread::sleep(Duration::from_millis(1500));
        hosts.lose_packets(0, true);
        hosts.lose_packets(1, true);
    };
    let says = run(&hosts, name, &address(7112), [more, more], cut);
    let late = "nothing moved for the time limit of 3 s: ";
    assert!(says[0].starts_with(&format!("{late}rank 1 (pid ")), "{says:?}");
    assert!(says[0].ends_with("does not answer: is it stopped, or its machine cut off?"), "{says:?}");
    assert!(
        says[1].starts_with(&format!("{late}rank 0, which hosts the rendezvous at {}", address(7112))),
        "{says:?}"
    );
}
