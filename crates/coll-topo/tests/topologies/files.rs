//! The file format: what it can say, and what it says of what is wrong.

use super::{counts, network, refused, topology, way};
use coll_topo::{Description, load, write};

const LAB: &str = r#"
name = "lab"

[defaults]
message = "2us"

[[machine]]
name = "node"
count = 2

[[machine.device]]
name = "gpu"
count = 4
reduce = "free"

[[machine.nic]]
name = "nic"
count = 2

[[machine.switch]]
name = "bus"
bandwidth = "32GB/s"

[[machine.link]]
between = ["gpu*", "bus"]
bandwidth = "16GB/s"
latency = "500ns"

[[machine.link]]
between = ["bus", "nic*"]
bandwidth = "16GB/s"

[[machine]]
name = "old"

[[machine.device]]
name = "gpu"

[[machine.nic]]
name = "nic"

[[machine.link]]
between = ["gpu", "nic"]
bandwidth = "8GB/s"
duplex = "half"

[[switch]]
name = "core"

[[link]]
between = ["*.nic*", "core"]
bandwidth = "100Gb/s"
latency = "1us"
count = 2
"#;

#[test]
fn a_file_describes_machines_of_several_kinds() {
    let topology = topology(LAB);
    assert_eq!(topology.name, "lab");
    assert_eq!(counts(&topology), [9, 5, 3, 3, 8 + 4 + 1 + 5]);
    let network = topology.network();
    let names: Vec<&str> = network.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names[..5], ["node0.gpu0", "node0.gpu1", "node0.gpu2", "node0.gpu3", "node1.gpu0"]);
    assert_eq!(names[8], "old.gpu");
    let machines: Vec<u32> = network.devices.iter().map(|device| device.machine).collect();
    assert_eq!(machines, [0, 0, 0, 0, 1, 1, 1, 1, 2]);
    let first = &network.devices[0];
    assert_eq!((first.message_us, first.reduce_ns, first.copy_ns), (2.0, 0.0, 0.005));
    assert_eq!(network.devices[8].reduce_ns, 0.01);
    // A node with a bandwidth is crossed once by all that passes through it.
    assert_eq!(way(&network, 0, 1), ["node0.gpu0->node0.bus", "node0.bus", "node0.bus->node0.gpu1"]);
    let link = |name: &str| network.links.iter().find(|link| link.name == name).expect("it is there");
    assert_eq!((link("node0.bus").bytes_per_us, link("node0.bus").latency_us), (32e3, 0.0));
    assert_eq!(link("node0.gpu0->node0.bus").latency_us, 0.5);
    assert_eq!(link("node0.bus->node0.nic0").latency_us, 1.0, "the default");
    // Parallel wires add up; a half-duplex wire is one link.
    assert_eq!(link("node0.nic0->core").bytes_per_us, 25e3);
    assert_eq!(link("old.gpu--old.nic").bytes_per_us, 8e3);
    assert_eq!(way(&network, 8, 0)[0], "old.gpu--old.nic");
    assert_eq!(way(&network, 0, 8).last().map(String::as_str), Some("old.gpu--old.nic"));
}

#[test]
fn what_is_written_is_read() {
    for text in [LAB, "dgx-h100:2", "fat-tree:k=4", "torus:3x4,bw=10GB/s,lat=2us", "dragonfly:2x2x1"] {
        let loaded = load("test", text);
        let description = loaded.description.expect("it is right");
        let written = write(&description, &["A comment\nof two lines".to_string()]);
        let again = load("test", &written);
        let read = again.topology.as_ref().unwrap_or_else(|| panic!("{}\n{written}", again.first_error()));
        let first = loaded.topology.expect("it is right");
        assert_eq!((&read.machines, &read.wires), (&first.machines, &first.wires), "{text}");
        for (one, other) in read.nodes.iter().zip(&first.nodes) {
            assert_eq!((&one.name, one.kind, one.forwards), (&other.name, other.kind, other.forwards));
            // A rate and the time of a byte are each other's inverse, but for rounding.
            let (one, other) = (one.figures, other.figures);
            assert_eq!(one.message_us, other.message_us);
            assert!(
                (one.reduce_ns - other.reduce_ns).abs() <= 1e-15
                    && (one.copy_ns - other.copy_ns).abs() <= 1e-15
            );
        }
        assert_eq!(write(&again.description.expect("it is right"), &[]), write(&description, &[]));
    }
    let named = Description { name: Some("a \"b\\c\"\n\u{7f}".into()), ..Description::default() };
    let text = write(&named, &[]) + "[[device]]\nname = \"a\"\n";
    assert_eq!(topology(&text).name, "a \"b\\c\"\n\u{7f}");
}

#[test]
fn one_machine_needs_no_part_between_machines() {
    // B104: an optional section that is absent.
    let alone = "[[machine]]\nname = \"box\"\n[[machine.device]]\nname = \"cpu\"\ncount = 2\n\
                 [[machine.link]]\nbetween = [\"cpu0\", \"cpu1\"]\nbandwidth = \"10GB/s\"\n";
    assert_eq!(counts(&topology(alone)), [2, 0, 0, 1, 1]);
    assert_eq!(counts(&topology("[[device]]\nname = \"only\"\n")), [1, 0, 0, 1, 0]);
}

#[test]
fn a_key_that_is_misspelt_is_told_with_the_nearest() {
    // B104: a key of another name.
    let text = |wrong: &str| {
        format!("[[device]]\nname = \"a\"\ncount = 2\n[[link]]\nbetween = [\"a0\", \"a1\"]\n{wrong}\n")
    };
    refused(
        &text("bandwith = \"1GB/s\""),
        "E0802",
        "6:1",
        "unknown key `bandwith` in a [[link]]; did you mean `bandwidth`?",
    );
    refused("[[devise]]\nname = \"a\"\n", "E0802", "1:3", "did you mean `device`?");
    refused(
        "[defaults]\nlatency = \"1us\"\n",
        "E0802",
        "2:1",
        "[defaults] has the keys message, reduce, copy",
    );
    refused(&text("bandwidth = \"1GB/s\"\npairs = \"al\""), "E0802", "7:9", "did you mean `all`?");
    refused(&text("bandwidth = \"1GB/s\"\nduplex = \"simplex\""), "E0802", "7:10", "cannot be `simplex`");
    let link = "[[link]]\nbetween = [\"gpu0\", \"swich\"]\nbandwidth = \"1GB/s\"\n";
    let text = format!("[[device]]\nname = \"gpu\"\ncount = 2\n[[switch]]\nname = \"switch\"\n{link}");
    refused(&text, "E0802", "7:11", "no node is called `swich`; did you mean `switch`?");
    refused(
        &text.replace("gpu0", "cpu[0..4]").replace("swich", "switch"),
        "E0802",
        "7:11",
        "no node is called `cpu[0..4]`",
    );
}

#[test]
fn a_range_that_names_nodes_in_vain_is_refused() {
    let text = |range: &str| {
        format!(
            "[[device]]\nname = \"gpu\"\ncount = 4\n[[switch]]\nname = \"s\"\n\
             [[link]]\nbetween = [\"gpu{range}\", \"s\"]\nbandwidth = \"1GB/s\"\n"
        )
    };
    assert_eq!(counts(&topology(&text("[0..4]")))[4], 4);
    refused(&text("[0..5]"), "E0802", "7:11", "`gpu[0..5]` names 5 nodes, and there are 4 of these");
    refused(&text("[0..999999999999]"), "E0802", "7:11", "there are 4 of these");
    refused(&text("[4..9]"), "E0802", "7:11", "no node is called `gpu[4..9]`");
}

/// Every prefix of a file, and the file with each byte replaced, is taken or refused, without a panic.
#[test]
fn no_damage_is_a_panic() {
    for text in [LAB, "fat-tree:4x8,spines=2,bw=25GB/s,lat=1us"] {
        for end in 0..text.len() {
            load("test", &text[..end]);
        }
        for at in 0..text.len() {
            for other in *b"\"[]=.*0-\n" {
                let mut damaged = text.as_bytes().to_vec();
                damaged[at] = other;
                load("test", &String::from_utf8(damaged).expect("ASCII"));
            }
        }
    }
}

#[test]
fn figures_that_no_machine_has_are_refused() {
    let text = |figure: &str| {
        format!(
            "[[device]]\nname = \"a\"\ncount = 2\n[[link]]\nbetween = [\"a0\", \"a1\"]\nbandwidth = {figure}\n"
        )
    };
    for (figure, code, word) in [
        ("\"0GB/s\"", "E0803", "more than 0"),
        ("\"-1GB/s\"", "E0803", "more than 0"),
        ("\"NaNGB/s\"", "E0803", "more than 0"),
        ("\"infGB/s\"", "E0803", "possible"),
        ("nan", "E0803", "0 or more"),
        ("-2", "E0803", "0 or more"),
        ("0", "E0803", "0 or more"),
        ("25", "E0801", "without a unit"),
        ("25.5", "E0801", "without a unit"),
        ("\"25\"", "E0801", "no unit"),
        ("\"fast\"", "E0801", "cannot be read"),
        ("true", "E0801", "boolean"),
    ] {
        refused(&text(figure), code, "6:13", word);
    }
    refused(&(text("\"1GB/s\"") + "latency = \"-1us\""), "E0803", "7:11", "0 or more");
    refused(&(text("\"1GB/s\"") + "count = 0"), "E0803", "7:9", "1 to 4096");
    refused("[[device]]\nname = \"a\"\ncount = 0\n", "E0803", "3:9", "1 to 1000000");
    refused("[[device]]\nname = \"a\"\ncount = -1\n", "E0803", "3:9", "1 to 1000000");
    refused("[[device]]\nname = \"a\"\ncount = 99999999999999999999\n", "E0803", "3:9", "1 to 1000000");
    refused("[[device]]\nname = \"a\"\ncount = 1.5\n", "E0801", "3:9", "no whole number");
}

#[test]
fn parts_that_make_no_network_are_refused() {
    let two = "[[device]]\nname = \"a\"\ncount = 2\n";
    let link = |ends: &str| format!("{two}[[link]]\nbetween = {ends}\nbandwidth = \"1GB/s\"\n");
    refused(&link("[\"a0\", \"a0\"]"), "E0804", "5:11", "a link joins `a0` with itself");
    refused(&link("[\"a*\", \"a0\"]"), "E0804", "5:11", "a link joins `a0` with itself");
    refused(two, "E0804", "1:1", "no way from device `a0` to device `a1`");
    refused(&format!("{two}[[device]]\nname = \"a1\"\n"), "E0804", "4:1", "two nodes are called `a1`");
    refused("", "E0804", "1:1", "no device");
    refused("[[switch]]\nname = \"s\"\n", "E0804", "1:1", "no device");
    refused("[[machine]]\nname = \"m\"\n", "E0804", "1:1", "nothing in it");
    refused(
        &link("[\"a*\", \"a*\"]").replace("count = 2", "count = 3"),
        "E0804",
        "5:11",
        "which are joined?",
    );
    refused(
        &(link("[\"a0\", \"a1\"]") + "duplex = \"one-way\"\n"),
        "E0804",
        "1:1",
        "no way from device `a1`",
    );
    refused(
        "[[machine]]\nname = \"m\"\n[[machine.device]]\nname = \"a\"\n[[machine]]\nname = \"m\"\n[[machine.device]]\nname = \"b\"\n",
        "E0804",
        "5:1",
        "two machines are called `m`",
    );
    // Devices that are no way for others.
    let chain = "[[device]]\nname = \"a\"\ncount = 3\nforward = false\n[[link]]\nbetween = [\"a0\", \"a1\"]\nbandwidth = \"1GB/s\"\n\
                 [[link]]\nbetween = [\"a1\", \"a2\"]\nbandwidth = \"1GB/s\"\n";
    refused(chain, "E0804", "1:1", "no way from device `a0` to device `a2`");
    assert_eq!(way(&network(&chain.replace("forward = false\n", "")), 0, 2), ["a0->a1", "a1->a2"]);
}

#[test]
fn texts_that_are_no_files_are_refused() {
    refused("name = ", "E0801", "1:8", "no TOML");
    refused("[[device]\nname = 1", "E0801", "1:10", "no TOML");
    refused("name = 1", "E0801", "1:8", "not a text");
    refused("device = 3", "E0801", "1:10", "[[device]]");
    refused("[[device]]\ncount = 3", "E0801", "1:1", "has no `name`");
    refused("[[device]]\nname = \"a.b\"", "E0801", "2:8", "no name");
    refused(
        "[[device]]\nname = \"a\"\n[[link]]\nbetween = [\"a\"]\nbandwidth=\"1GB/s\"",
        "E0801",
        "4:11",
        "two ends",
    );
    let deep = format!("name = {}{}", "[".repeat(5000), "]".repeat(5000));
    let (code, line) = super::fault(&deep);
    assert_eq!(code, "E0807", "{line}");
    refused("\u{0}\u{1}", "E0801", "1:3", "no TOML");
}

#[test]
fn files_that_ask_for_too_much_are_refused_in_time() {
    let machine =
        "[[machine]]\nname = \"m\"\ncount = 1000000\n[[machine.device]]\nname = \"d\"\ncount = 1000000\n";
    refused(machine, "E0807", "1:1", "nodes");
    let all = "[[device]]\nname = \"d\"\ncount = 100000\n[[link]]\nbetween = [\"d*\", \"d*\"]\npairs = \"all\"\nbandwidth = \"1GB/s\"\n";
    refused(all, "E0807", "5:11", "pairs");
    let link = "[[link]]\nbetween = [\"d*\", \"s\"]\nbandwidth = \"1GB/s\"\n";
    let many =
        format!("[[device]]\nname = \"d\"\ncount = 300000\n[[switch]]\nname = \"s\"\n{}", link.repeat(500));
    let (code, line) = super::fault(&many);
    assert_eq!(code, "E0807", "{line}");
}
