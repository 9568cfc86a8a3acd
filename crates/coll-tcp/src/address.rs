//! Which addresses of a peer to try, in which order.
//!
//! A rank cannot know by which of its addresses others reach it: it may have many, a container's bridge has the same
//! on every host, its own name may resolve to loopback, and a rank beside the server reaches that by loopback. So
//! everything known is a candidate, and a connection counts only once the peer has proved who it is:
//!
//! 1. loopback, if the peer is on this machine (same boot, same network namespace);
//! 2. what its user says (advertise); then nothing else of this list;
//! 3. its end of its control connection, as it saw it and as the server saw it;
//! 4. if it is on the server's machine: the address by which this rank reached the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::host::Host;
use crate::wire::Entry;

/// The addresses to try for a peer, best first, each once.
pub(crate) fn candidates(here: &Host, server_ip: IpAddr, peer: &Entry) -> Vec<SocketAddr> {
    let contact = &peer.contact;
    let port = contact.listen.port();
    let bound_ip = contact.listen.ip();
    let together = here.shares_loopback_with(&contact.host);
    let mut found = Vec::new();
    if together && bound_ip.is_unspecified() {
        found.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        if bound_ip.is_ipv6() {
            found.push(SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
        }
    } else if together {
        found.push(contact.listen);
    }
    if contact.advertise.is_empty() {
        if bound_ip.is_unspecified() {
            let reached = peer.beside_server.then_some(server_ip);
            let ips = [contact.control_ip, peer.observed_ip].into_iter().chain(reached);
            found.extend(ips.map(|ip| SocketAddr::new(ip, port)));
        } else {
            found.push(contact.listen);
        }
    } else {
        let own_port = |given: &SocketAddr| if given.port() == 0 { port } else { given.port() };
        found.extend(contact.advertise.iter().map(|given| SocketAddr::new(given.ip(), own_port(given))));
    }
    // Elsewhere's loopback leads to this machine; but where machines cannot be told apart, it may be the only way.
    let elsewhere = !together && !here.loopback_id.is_empty() && !contact.host.loopback_id.is_empty();
    let mut unique: Vec<SocketAddr> = Vec::new();
    for address in found {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let leads_nowhere = elsewhere && address.ip().is_loopback();
        if !leads_nowhere && !unique.contains(&address) {
            unique.push(address);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Contact;
    use expect_test::{Expect, expect};

    fn host(loopback_id: &str) -> Host {
        Host { name: "node".into(), loopback_id: loopback_id.into(), pid: 1 }
    }

    fn peer(loopback_id: &str, listen: &str, control_ip: &str, observed_ip: &str) -> Entry {
        let contact = Contact {
            listen: listen.parse().unwrap(),
            advertise: vec![],
            control_ip: control_ip.parse().unwrap(),
            host: host(loopback_id),
            chosen: vec![],
        };
        Entry { rank: 1, contact, observed_ip: observed_ip.parse().unwrap(), beside_server: false }
    }

    fn check(peer: &Entry, expect: Expect) {
        let found = candidates(&host("here"), "10.0.0.1".parse().unwrap(), peer);
        expect.assert_eq(&found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn ranks_on_one_machine_try_loopback_first() {
        check(&peer("here", "0.0.0.0:5000", "10.0.0.7", "10.0.0.7"), expect!["127.0.0.1:5000 10.0.0.7:5000"]);
        check(&peer("here", "[::]:5000", "127.0.0.1", "127.0.0.1"), expect!["127.0.0.1:5000 [::1]:5000"]);
        check(&peer("here", "10.0.0.7:5000", "10.0.0.7", "10.0.0.7"), expect!["10.0.0.7:5000"]);
    }

    #[test]
    fn a_rank_behind_a_translated_address_is_tried_at_both() {
        check(
            &peer("there", "0.0.0.0:5000", "172.18.0.3", "192.0.2.10"),
            expect!["172.18.0.3:5000 192.0.2.10:5000"],
        );
    }

    #[test]
    fn a_rank_beside_the_server_is_where_the_server_is() {
        let mut peer = peer("there", "0.0.0.0:5000", "127.0.0.1", "127.0.0.1");
        peer.beside_server = true;
        check(&peer, expect!["10.0.0.1:5000"]);
    }

    #[test]
    fn what_the_user_advertises_replaces_what_was_seen() {
        let mut peer = peer("there", "0.0.0.0:5000", "172.18.0.3", "172.18.0.3");
        peer.contact.advertise = vec!["192.0.2.10:0".parse().unwrap(), "192.0.2.10:7000".parse().unwrap()];
        check(&peer, expect!["192.0.2.10:5000 192.0.2.10:7000"]);
    }

    #[test]
    fn loopback_is_kept_where_machines_cannot_be_told_apart() {
        check(&peer("", "0.0.0.0:5000", "127.0.0.1", "127.0.0.1"), expect!["127.0.0.1:5000"]);
    }
}
