//! Generators: what they make, and what is wrong with their texts.

use super::{counts, refused, topology, way};
use coll_topo::{Summary, load};

#[test]
fn generators_make_what_their_names_say() {
    // Devices, NICs, switches, machines, wires.
    for (text, expected) in [
        ("ring:8", [8, 0, 0, 8, 8]),
        ("ring:2", [2, 0, 0, 2, 1]),
        ("ring:1", [1, 0, 0, 1, 0]),
        ("torus:4x4", [16, 0, 0, 16, 32]),
        ("torus:2x3", [6, 0, 0, 6, 3 + 6]),
        ("torus:3x3x3", [27, 0, 0, 27, 81]),
        ("mesh:4x4", [16, 0, 0, 16, 24]),
        ("mesh:5", [5, 0, 0, 5, 4]),
        ("full:8", [8, 0, 0, 8, 28]),
        ("switch:8", [8, 0, 1, 8, 8]),
        ("fat-tree:k=4", [16, 0, 20, 16, 48]),
        ("fat-tree:4x2", [8, 0, 6, 8, 8 + 8]),
        ("fat-tree:4x8,spines=2", [32, 0, 6, 32, 32 + 8]),
        ("dragonfly:2x4x2", [72, 0, 36, 72, 72 + 9 * 6 + 36]),
        ("dragonfly:p=1,a=2,h=1", [6, 0, 6, 6, 6 + 3 + 3]),
        ("nvswitch:8", [8, 0, 1, 1, 8]),
        ("dgx-h100:4", [32, 32, 4 + 9, 4, 4 * 16 + 32 + 8]),
        ("dgx-a100:1", [8, 8, 10, 1, 16 + 8 + 8]),
    ] {
        assert_eq!(counts(&topology(text)), expected, "{text}");
        assert_eq!(topology(text).name, text);
    }
}

#[test]
fn options_set_figures() {
    let topology = topology(" ring:4 , bw=100Gb/s, lat=3us, message=1us, reduce=free, copy=10GB/s ");
    assert!(topology.wires.iter().all(|wire| (wire.bytes_per_us, wire.latency_us) == (12.5e3, 3.0)));
    let device = &topology.network().devices[3];
    assert_eq!((device.message_us, device.reduce_ns, device.copy_ns), (1.0, 0.0, 0.1));
    let dgx = super::topology("dgx-h100:2,bw=25GB/s,nvlink=200GB/s").network();
    let link =
        |name: &str| dgx.links.iter().find(|link| link.name == name).expect("it is there").bytes_per_us;
    assert_eq!(link("node1.gpu7->node1.nvswitch"), 200e3);
    assert_eq!(link("rail7->node1.nic7"), 25e3);
    assert_eq!(link("rail0->spine"), 50e3);
}

#[test]
fn ways_lead_over_the_fitting_parts() {
    let dgx = topology("dgx-h100:2").network();
    assert_eq!(way(&dgx, 0, 7), ["node0.gpu0->node0.nvswitch", "node0.nvswitch->node0.gpu7"]);
    assert_eq!(
        way(&dgx, 1, 9),
        ["node0.gpu1->node0.nic1", "node0.nic1->rail1", "rail1->node1.nic1", "node1.nic1->node1.gpu1"]
    );
    // No GPU's memory is on the way of what is not its own.
    assert!(way(&dgx, 0, 9).contains(&"spine->rail1".to_string()), "{:?}", way(&dgx, 0, 9));
    let mut latency = Vec::new();
    dgx.routes.route(1, 9, &mut latency);
    let us: f64 = latency.iter().map(|&link| dgx.links[link as usize].latency_us).sum();
    assert!((us - 2.7).abs() < 1e-9, "NCCL reckons 2.7 µs for a hop over the network: {us}");
}

#[test]
fn halves_are_cut_where_they_are_narrow() {
    for (text, gb) in [
        ("ring:8,bw=1GB/s", 2.0),
        ("mesh:4x4,bw=1GB/s", 4.0),
        ("torus:4x4,bw=1GB/s", 8.0),
        ("torus:4x8,bw=1GB/s", 8.0),
        ("torus:8x4,bw=1GB/s", 8.0),
        ("full:8,bw=1GB/s", 16.0),
        ("switch:8,bw=1GB/s", 4.0),
        ("fat-tree:k=4,bw=1GB/s", 8.0),
        ("fat-tree:4x8,spines=2,bw=1GB/s", 4.0),
        ("nvswitch:8", 1800.0),
        // Four times eight NICs on one side.
        ("dgx-h100:8", 4.0 * 8.0 * 50.0),
    ] {
        let bisection = Summary::new(&topology(text)).bisection.expect("it has halves");
        assert!((bisection.bytes_per_us / 1e3 - gb).abs() < 1e-6, "{text}: {bisection:?}");
    }
    assert_eq!(Summary::new(&topology("ring:1")).bisection, None);
}

#[test]
fn ways_are_told_by_kind() {
    let summary = Summary::new(&topology("dgx-h100:2"));
    assert!(summary.is_whole);
    let classes: Vec<_> = summary
        .classes
        .iter()
        .map(|class| (class.within_machine, class.links, class.bytes_per_us, class.pairs))
        .collect();
    assert_eq!(classes, [(true, 2, 450e3, 2 * 56), (false, 4, 50e3, 16), (false, 6, 50e3, 2 * 64 - 16)]);
}

#[test]
fn wrong_texts_are_one_clear_message() {
    for (text, code, word) in [
        ("ring:", "E0805", "has 0 extents"),
        ("ring:8x8", "E0805", "there is to be 1 number"),
        ("ring:0", "E0805", "leaves nothing"),
        ("ring:-1", "E0805", "no extents"),
        ("ring:8,bw=0GB/s", "E0803", "more than 0"),
        ("ring:8,bw=NaNGB/s", "E0803", "more than 0"),
        ("ring:8,bw=25", "E0805", "no unit"),
        ("ring:8,bandwidth=25GB/s", "E0805", "unknown key `bandwidth`"),
        ("ring:8,lst=1us", "E0805", "did you mean `lat`?"),
        ("ring:8,bw=1GB/s,bw=2GB/s", "E0805", "given twice"),
        ("ring:8,fast", "E0805", "sets nothing"),
        ("torus:4xx4", "E0805", "no extents"),
        ("torus:1000000x1000000", "E0807", "at most 200000"),
        ("torus:99999999999999x99999999999999x99999999999999", "E0807", "at most 200000"),
        ("full:5000", "E0807", "at most 2000"),
        ("fat-tree:k=5", "E0805", "even"),
        ("fat-tree:k=1000", "E0805", "1 to 92"),
        ("fat-tree:4x4,k=4", "E0805", "either"),
        ("dragonfly:4", "E0805", "3 numbers"),
        ("dragonfly:64x64x64", "E0807", "at most 200000"),
        ("dgx-h100:", "E0805", "0 extents"),
        ("rign:8", "E0805", "did you mean `ring:…`?"),
        ("star:8", "E0805", "or a generator: ring:N"),
        ("nowhere", "E0805", "a topology is a file, or a generator"),
    ] {
        refused(text, code, "1:1", word);
    }
}

#[test]
fn ten_thousand_devices_are_made_at_once() {
    for text in ["torus:100x100", "fat-tree:k=34", "dragonfly:5x13x12", "dgx-h100:1250", "fat-tree:100x100"] {
        let loaded = load("test", text);
        let network = loaded.network().expect("it is right");
        assert!(network.devices.len() > 9_800, "{text}: {}", network.devices.len());
        let last = network.devices.len() as u32 - 1;
        let mut way = Vec::new();
        for step in 0..2_000 {
            network.routes.route(step, last - step * 3, &mut way);
            assert!(!way.is_empty(), "{text}");
        }
        // A ring over all of them asks for each end once.
        for from in 0..last {
            network.routes.route(from, from + 1, &mut way);
            assert!(!way.is_empty(), "{text}");
        }
    }
}
