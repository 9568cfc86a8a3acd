//! Networks of hosts: rings, grids, trees, dragonflies. Each host is a machine of its own.

use super::DEVICES_MAX;
use super::words::Words;
use crate::codes;
use crate::description::{Description, Duplex, Kind, LinkDecl, NodeDecl, Pairs};
use crate::topology::Shape;
use coll_base::{Diagnostic, Span};

/// A port of 200 Gb/s, in bytes in a microsecond.
const BANDWIDTH_DEFAULT: f64 = 25e3;
/// A cable and half a switch, in microseconds.
const LATENCY_DEFAULT_US: f64 = 0.5;

/// What the links of a network are like.
struct Links {
    bytes_per_us: f64,
    latency_us: f64,
    span: Span,
}

impl Links {
    fn of(words: &mut Words) -> Result<Links, Diagnostic> {
        let bytes_per_us = words.bandwidth("bw", BANDWIDTH_DEFAULT)?;
        let latency_us = words.latency_us("lat", LATENCY_DEFAULT_US)?;
        Ok(Links { bytes_per_us, latency_us, span: words.span })
    }

    fn link(&self, a: impl Into<String>, b: impl Into<String>, pairs: Option<Pairs>) -> LinkDecl {
        LinkDecl {
            between: [a.into(), b.into()],
            pairs,
            bytes_per_us: self.bytes_per_us,
            latency_us: self.latency_us,
            duplex: Duplex::Full,
            count: 1,
            span: self.span,
        }
    }
}

fn hosts(words: &Words, count: u32) -> NodeDecl {
    NodeDecl::new(Kind::Device, "host", words.span).times(count)
}

fn switches(words: &Words, name: &str, count: u32) -> NodeDecl {
    NodeDecl::new(Kind::Switch, name, words.span).times(count)
}

/// Host, then next host, round.
pub(super) fn ring(words: &mut Words) -> Result<Description, Diagnostic> {
    let [count] = words.exactly()?;
    let links = Links::of(words)?;
    let joined = (count > 1).then(|| links.link("host*", "host*", Some(Pairs::Next)));
    Ok(Description {
        nodes: vec![hosts(words, count)],
        links: joined.into_iter().collect(),
        shape: Shape::Grid { extents: vec![count], wraps: true },
        ..Description::default()
    })
}

/// A grid of any dimensions, in row-major order: the last coordinate counts fastest.
pub(super) fn grid(words: &mut Words, wraps: bool) -> Result<Description, Diagnostic> {
    let extents = words.extents()?.filter(|extents| extents.len() <= 8);
    let extents = extents.ok_or_else(|| words.fault("a grid has one to eight extents"))?;
    let links = Links::of(words)?;
    let count: u32 = extents.iter().product();
    let mut joined = Vec::new();
    let mut stride = count;
    for &extent in &extents {
        stride /= extent;
        for at in 0..count {
            let coordinate = at / stride % extent;
            let next = if coordinate + 1 < extent {
                at + stride
            } else if wraps && extent > 2 {
                at - coordinate * stride
            } else {
                continue;
            };
            joined.push(links.link(format!("host{at}"), format!("host{next}"), None));
        }
    }
    Ok(Description {
        nodes: vec![hosts(words, count)],
        links: joined,
        shape: Shape::Grid { extents, wraps },
        ..Description::default()
    })
}

/// The most hosts that are joined each with each: two million wires.
const FULL_MAX: u32 = 2_000;

/// Each with each.
pub(super) fn full(words: &mut Words) -> Result<Description, Diagnostic> {
    let [count] = words.exactly()?;
    if count > FULL_MAX {
        let message = format!("`full` joins at most {FULL_MAX} hosts");
        return Err(Diagnostic::new(codes::BOUNDS, words.span, message));
    }
    let links = Links::of(words)?;
    let joined = (count > 1).then(|| links.link("host*", "host*", Some(Pairs::All)));
    Ok(Description {
        nodes: vec![hosts(words, count)],
        links: joined.into_iter().collect(),
        ..Description::default()
    })
}

/// All on one switch.
pub(super) fn switch(words: &mut Words) -> Result<Description, Diagnostic> {
    let [count] = words.exactly()?;
    let links = Links::of(words)?;
    Ok(Description {
        nodes: vec![hosts(words, count), NodeDecl::new(Kind::Switch, "switch", words.span)],
        links: vec![links.link("host*", "switch", None)],
        ..Description::default()
    })
}

/// A k-ary fat tree (Al-Fares, Loukissas and Vahdat 2008), or leaves and spines.
pub(super) fn fat_tree(words: &mut Words) -> Result<Description, Diagnostic> {
    match (words.count("k", 92)?, words.extents()?) {
        (Some(ports), None) if ports % 2 == 0 => k_ary(words, ports),
        (Some(ports), None) => {
            Err(words.fault(format!("`k` is {ports}, and half of the ports lead up: it is even")))
        }
        (None, Some(_)) => leaf_spine(words),
        _ => Err(words.fault("`fat-tree` takes either `k` or leaves and hosts")),
    }
}

fn k_ary(words: &mut Words, ports: u32) -> Result<Description, Diagnostic> {
    let links = Links::of(words)?;
    let half = ports / 2;
    let (in_layer, cores, count) = (ports * half, half * half, ports * half * half);
    let mut joined = Vec::new();
    for edge in 0..in_layer {
        let below = format!("host[{}..{}]", edge * half, (edge + 1) * half);
        joined.push(links.link(below, format!("edge{edge}"), None));
        let pod = edge / half;
        let above = format!("agg[{}..{}]", pod * half, (pod + 1) * half);
        joined.push(links.link(format!("edge{edge}"), above, None));
    }
    for agg in 0..in_layer {
        let place = agg % half;
        let above = format!("core[{}..{}]", place * half, (place + 1) * half);
        joined.push(links.link(format!("agg{agg}"), above, None));
    }
    Ok(Description {
        nodes: vec![
            hosts(words, count),
            switches(words, "edge", in_layer),
            switches(words, "agg", in_layer),
            switches(words, "core", cores),
        ],
        links: joined,
        shape: Shape::FatTree { ports },
        ..Description::default()
    })
}

fn leaf_spine(words: &mut Words) -> Result<Description, Diagnostic> {
    let [leaves, below] = words.exactly()?;
    let spines = words.count("spines", 10_000)?.unwrap_or(below);
    let links = Links::of(words)?;
    let mut joined = Vec::new();
    for leaf in 0..leaves {
        let hosts = format!("host[{}..{}]", leaf * below, (leaf + 1) * below);
        joined.push(links.link(hosts, format!("leaf{leaf}"), None));
    }
    joined.push(links.link("leaf*", "spine*", Some(Pairs::All)));
    Ok(Description {
        nodes: vec![
            hosts(words, leaves * below),
            switches(words, "leaf", leaves),
            switches(words, "spine", spines),
        ],
        links: joined,
        shape: Shape::LeafSpine { leaves, hosts: below, spines },
        ..Description::default()
    })
}

/// Groups of routers, all joined within, with one link between any two groups (Kim, Dally, Scott and Abts 2008).
pub(super) fn dragonfly(words: &mut Words) -> Result<Description, Diagnostic> {
    let [below, routers, global] = match words.extents()? {
        Some(_) => words.exactly()?,
        None => {
            let mut take = |name| {
                let given = words.count(name, 1024)?;
                given.ok_or_else(|| words.fault("`dragonfly` takes hosts, routers and global links"))
            };
            [take("p")?, take("a")?, take("h")?]
        }
    };
    let groups = u64::from(routers) * u64::from(global) + 1;
    let count = groups * u64::from(routers) * u64::from(below);
    if count > DEVICES_MAX {
        let message = format!("this makes {count} devices, and a generator makes at most {DEVICES_MAX}");
        return Err(Diagnostic::new(codes::BOUNDS, words.span, message));
    }
    let links = Links::of(words)?;
    let (groups, count) = (groups as u32, count as u32);
    let mut joined = Vec::new();
    for router in 0..groups * routers {
        let hosts = format!("host[{}..{}]", router * below, (router + 1) * below);
        joined.push(links.link(hosts, format!("router{router}"), None));
    }
    for group in 0..groups {
        let own = group * routers;
        if routers > 1 {
            let all = format!("router[{own}..{}]", own + routers);
            joined.push(links.link(all.clone(), all, Some(Pairs::All)));
        }
        // Channel c of a group leads to the group that is c + 1 further on.
        for channel in 0..groups - 1 {
            let other = (group + channel + 1) % groups;
            if group < other {
                let back = groups - 2 - channel;
                let (here, there) = (own + channel / global, other * routers + back / global);
                joined.push(links.link(format!("router{here}"), format!("router{there}"), None));
            }
        }
    }
    Ok(Description {
        nodes: vec![hosts(words, count), switches(words, "router", groups * routers)],
        links: joined,
        ..Description::default()
    })
}
