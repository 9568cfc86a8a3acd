//! Which of this machine's addresses peers should use, if its user says so: by interface or by network.
//!
//! A list of entries apart by commas. `eth` stands for every interface whose name begins so, `=eth0` for that one alone,
//! `10.0.0.0/8` or `fd00::/8` for a network, `10.0.0.7` for an address; a `^` before an entry rules it out. One list may
//! serve machines whose interfaces are named differently. With nothing but `^` entries, all others but loopback count.
//! Prefix, `^` and `=` mean what they mean to NCCL and its users.

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use crate::error::StartError;

/// An address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) ip: IpAddr,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.ip)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    excluded: bool,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Prefix(String),
    Name(String),
    Network(IpAddr, u32),
}

impl What {
    fn meets(&self, seen: &Seen) -> bool {
        match self {
            What::Prefix(prefix) => seen.name.starts_with(prefix),
            What::Name(name) => seen.name == *name,
            What::Network(network, bits) => same_network(*network, seen.ip, *bits),
        }
    }
}

/// The addresses of this machine that a list names, each once; at least one.
pub(crate) fn choose(wanted: &str) -> Result<Vec<IpAddr>, StartError> {
    let entries = parse(wanted).map_err(|detail| StartError::Options { detail })?;
    let seen = seen_here().map_err(|error| StartError::System {
        what: "list this machine's interfaces",
        detail: error.to_string(),
    })?;
    let chosen = select(&entries, &seen);
    if chosen.is_empty() {
        let seen = seen.iter().map(ToString::to_string).collect();
        return Err(StartError::NoInterface { wanted: wanted.to_owned(), seen });
    }
    Ok(chosen)
}

/// The interface by which this machine would reach an address, for people; nothing where no route leads there.
pub(crate) fn towards(address: SocketAddr) -> Option<String> {
    let here = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(here).ok()?;
    // Sends nothing: only chooses the route.
    socket.connect(address).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    let seen = seen_here().unwrap_or_default();
    seen.into_iter().find(|seen| seen.ip == ip).map(|seen| seen.name)
}

fn parse(wanted: &str) -> Result<Vec<Entry>, String> {
    wanted.split(',').map(|entry| parse_entry(wanted, entry.trim())).collect()
}

fn parse_entry(wanted: &str, entry: &str) -> Result<Entry, String> {
    let wrong = |what: &str| Err(format!("{what} in the list of interfaces {wanted:?}"));
    let (excluded, entry) = match entry.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, entry),
    };
    let what = match (entry.strip_prefix('='), entry.split_once('/'), entry.parse::<IpAddr>()) {
        (Some(name), ..) => What::Name(name.to_owned()),
        (None, Some((network, bits)), _) => match (network.parse::<IpAddr>(), bits.parse()) {
            (Ok(network), Ok(bits)) if bits <= width(network) => What::Network(network, bits),
            _ => return wrong(&format!("{entry:?} is no network")),
        },
        (None, None, Ok(address)) => What::Network(address, width(address)),
        (None, None, Err(_)) => What::Prefix(entry.to_owned()),
    };
    match &what {
        What::Prefix(name) | What::Name(name) if name.is_empty() => wrong("an entry without a name"),
        _ => Ok(Entry { excluded, what }),
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn same_network(a: IpAddr, b: IpAddr, bits: u32) -> bool {
    let differing = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    differing.leading_zeros() >= bits
}

/// In the system's order, and each address once, however many names it has.
fn select(entries: &[Entry], seen: &[Seen]) -> Vec<IpAddr> {
    let some_included = entries.iter().any(|entry| !entry.excluded);
    let mut chosen = Vec::new();
    for seen in seen {
        let meets =
            |excluded| entries.iter().any(|entry| entry.excluded == excluded && entry.what.meets(seen));
        let included = if some_included { meets(false) } else { !seen.ip.is_loopback() };
        if included && !meets(true) && !chosen.contains(&seen.ip) {
            chosen.push(seen.ip);
        }
    }
    chosen
}

/// The addresses of interfaces that are up. Those of a link alone are left out: they mean nothing without its name.
fn seen_here() -> nix::Result<Vec<Seen>> {
    let mut seen = Vec::new();
    for interface in nix::ifaddrs::getifaddrs()? {
        let up = interface.flags.contains(nix::net::if_::InterfaceFlags::IFF_UP);
        let Some(address) = interface.address.filter(|_| up) else { continue };
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let v6 = address.as_sockaddr_in6().map(nix::sys::socket::SockaddrIn6::ip);
        let v6 = v6.filter(|ip| !ip.is_unicast_link_local()).map(IpAddr::V6);
        seen.extend(v4.or(v6).map(|ip| Seen { name: interface.interface_name.clone(), ip }));
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Seen> {
        [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("eth0", "10.0.0.7"),
            ("eth0", "fd00::7"),
            ("eth01", "10.1.0.7"),
            ("alias", "10.1.0.7"),
            ("docker0", "172.17.0.1"),
        ]
        .map(|(name, ip)| Seen { name: name.to_owned(), ip: ip.parse().unwrap() })
        .to_vec()
    }

    fn check(wanted: &str, expected: &str) {
        let chosen = select(&parse(wanted).unwrap(), &machine());
        let chosen: Vec<String> = chosen.iter().map(ToString::to_string).collect();
        assert_eq!(chosen.join(" "), expected, "{wanted}");
    }

    #[test]
    fn names_prefixes_networks_and_their_opposites_choose() {
        check("eth", "10.0.0.7 fd00::7 10.1.0.7");
        check("=eth0", "10.0.0.7 fd00::7");
        check("eno1, eth01", "10.1.0.7");
        check("10.0.0.0/8", "10.0.0.7 10.1.0.7");
        check("eth,^fd00::/8,^10.1.0.7", "10.0.0.7");
        check("^docker", "10.0.0.7 fd00::7 10.1.0.7");
        check("lo", "127.0.0.1 ::1");
        check("0.0.0.0/0", "127.0.0.1 10.0.0.7 10.1.0.7 172.17.0.1");
        check("ib", "");
    }

    #[test]
    fn a_list_that_cannot_be_is_refused() {
        for (wanted, detail) in [
            ("", "an entry without a name in the list of interfaces \"\""),
            ("eth0,,", "an entry without a name in the list of interfaces \"eth0,,\""),
            ("=", "an entry without a name in the list of interfaces \"=\""),
            ("10.0.0.0/33", "\"10.0.0.0/33\" is no network in the list of interfaces \"10.0.0.0/33\""),
            ("eth0/8", "\"eth0/8\" is no network in the list of interfaces \"eth0/8\""),
        ] {
            assert_eq!(parse(wanted), Err(detail.to_owned()));
        }
    }

    #[test]
    fn loopback_leads_to_loopback() {
        assert_eq!(towards("127.0.0.1:9".parse().unwrap()).as_deref(), Some("lo"));
    }

    #[test]
    fn this_machine_has_loopback_and_says_what_else_there_is() {
        assert!(choose("127.0.0.1").unwrap().contains(&"127.0.0.1".parse().unwrap()));
        let error = choose("=no such interface").unwrap_err();
        assert!(error.to_string().contains("lo 127.0.0.1"), "{error}");
    }
}
