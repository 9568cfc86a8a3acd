//! Pictures: whole, legible, and refused where nothing could be seen.

use super::{root, topology};
use coll_topo::{dot, load, svg};

fn number(text: &str, name: &str) -> f64 {
    let value = text.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn names_are_legible() {
    let smi = std::fs::read_to_string(root().join("tests/topo/smi/dgx-1v.txt")).expect("it is there");
    for text in
        ["ring:8", "torus:4x4", "fat-tree:k=4", "dgx-h100:4", "dragonfly:2x4x2", "nvswitch:8", smi.as_str()]
    {
        let topology = topology(text);
        let picture = svg(&topology).expect("it is small enough");
        let boxes: Vec<&str> =
            picture.lines().filter(|line| line.starts_with("<rect x=") && line.contains("#444")).collect();
        assert_eq!(boxes.len(), topology.nodes.len(), "{text}");
        assert_eq!(picture.matches("<path d=").count(), topology.wires.len(), "{text}");
        // No two nodes lie on each other, and each is within the picture.
        let (width, height) = (number(&picture, "width"), number(&picture, "height"));
        let frames: Vec<[f64; 4]> =
            boxes.iter().map(|line| ["x", "y", "width", "height"].map(|name| number(line, name))).collect();
        for (at, a) in frames.iter().enumerate() {
            assert!(
                a[0] >= 0.0 && a[0] + a[2] <= width && a[1] >= 0.0 && a[1] + a[3] <= height,
                "{text}: {a:?}"
            );
            for b in &frames[at + 1..] {
                let apart =
                    a[0] + a[2] <= b[0] || b[0] + b[2] <= a[0] || a[1] + a[3] <= b[1] || b[1] + b[3] <= a[1];
                assert!(apart, "{text}: {a:?} {b:?}");
            }
        }
        let machines = topology.machines.len();
        assert!(picture.contains("GB/s</text>"), "{text} of {machines} machines has no legend");
    }
}

#[test]
fn graphviz_text_has_all_nodes_and_wires() {
    let topology = topology("dgx-h100:2");
    let text = dot(&topology).expect("it is small enough");
    assert_eq!(text.matches(" -- ").count(), topology.wires.len());
    assert_eq!(text.matches("subgraph").count(), 2);
    assert_eq!(text.matches('{').count(), text.matches('}').count());
}

#[test]
fn what_is_too_large_is_not_drawn() {
    let large = load("test", "torus:100x100").topology.expect("right");
    let error = svg(&large).unwrap_err().to_string();
    assert!(error.contains("10000 nodes"), "{error}");
    assert!(dot(&large).is_err());
}

#[test]
fn strange_names_do_not_break_a_picture() {
    let topology = topology("name = \"<a & \\\"b\\\">\"\n[[device]]\nname = \"d\"\n");
    assert!(svg(&topology).expect("small").contains("&lt;a &amp; &quot;b&quot;&gt;"));
    assert!(dot(&topology).expect("small").starts_with("graph \"<a & \\\"b\\\">\" {"));
}
