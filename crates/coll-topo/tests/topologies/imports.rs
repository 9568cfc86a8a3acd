//! Imports: real files whole, and files with something missing, damaged or hostile.

use super::{counts, fault, refused, root, topology, warnings, way};
use coll_topo::{Format, Kind, Loaded, load, write};
use std::collections::BTreeMap;
use std::io::Read;

/// The real files by name.
fn real() -> BTreeMap<String, String> {
    let archive = std::fs::File::open(root().join("tests/topo/real.tar.gz")).expect("it is there");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a path").to_string_lossy().into_owned();
        if name.ends_with(".xml") {
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("text");
            files.insert(name, text);
        }
    }
    files
}

#[test]
fn all_real_files_are_imported_whole() {
    let files = real();
    assert_eq!(files.len(), 66);
    let (mut gpus, mut nics) = (0, 0);
    for (name, text) in &files {
        let loaded = load(name, text);
        if name == "azure/ncv4-graph.xml" {
            let line = loaded.first_error();
            assert!(line.starts_with("azure/ncv4-graph.xml:1:1: this is an NCCL graph file"), "{line}");
            continue;
        }
        let topology = loaded.topology.as_ref().unwrap_or_else(|| panic!("{name}: {}", loaded.first_error()));
        // Counted in the text, without reading it as XML.
        let of = |what: &str| text.matches(what).count();
        let implied = |class: &str| {
            text.lines()
                .filter(|line| line.contains("<pci") && line.contains(class) && line.contains("/>"))
                .count()
        };
        let expected_gpus = of("<gpu ") + implied("class=\"0x0302");
        let expected_nics = of("<nic>") + implied("class=\"0x02");
        assert_eq!(topology.count(Kind::Device), expected_gpus, "{name}");
        assert_eq!(topology.count(Kind::Nic), expected_nics, "{name}");
        // What NVLinks and xGMI links there are, each at both ends.
        let linked = of("<xgmi ");
        let direct = topology
            .wires
            .iter()
            .filter(|wire| wire.ends.iter().all(|&at| topology.nodes[at as usize].kind == Kind::Device));
        assert_eq!(2 * direct.count(), linked, "{name}");
        let network = topology.network();
        let devices = network.devices.len() as u32;
        for (from, to) in (0..devices).flat_map(|from| (0..devices).map(move |to| (from, to))) {
            assert_eq!(way(&network, from, to).is_empty(), from == to, "{name}: {from} to {to}");
        }
        let written = write(loaded.description.as_ref().expect("it is right"), &[]);
        if devices > 0 {
            assert_eq!(counts(&super::topology(&written)), counts(topology), "{name}");
        }
        gpus += expected_gpus;
        nics += expected_nics;
    }
    assert_eq!((gpus, nics), (466 + 40, 203 + 25), "all files together");
}

#[test]
fn b096_large_and_deep_files_are_imported_or_refused() {
    let p5 = &real()["aws/p5.48xl-topo-full.xml"];
    assert_eq!(counts(&topology(p5))[..2], [8, 32]);
    // 5000 devices below one bridge.
    let gpu = |at: usize| {
        format!("<pci busid=\"{at:x}\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"/>\n")
    };
    let many: String = (0..5000).map(gpu).collect();
    assert_eq!(counts(&topology(&system(&many)))[0], 5000);
    // 64 bridges below each other, and a value of 10 kB.
    let bridge = format!(
        "<pci busid=\"{}\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">",
        "b".repeat(10_000)
    );
    let deep =
        |levels: usize| system(&format!("{}{}{}", bridge.repeat(levels), gpu(1), "</pci>".repeat(levels)));
    assert_eq!(counts(&topology(&deep(64)))[..3], [1, 0, 65]);
    let (code, line) = fault(&deep(10_000));
    assert_eq!(code, "E0807", "{line}");
    assert!(line.contains("nested deeper than 128 levels"), "{line}");
    let wide = format!("<system version=\"1\">{}</system>", "<x/>".repeat(1_100_000));
    assert_eq!(fault(&wide).0, "E0807");
    let cpus = format!("<system version=\"1\">{}</system>", "<cpu/>".repeat(5000));
    assert_eq!(fault(&cpus).0, "E0807");
}

#[test]
fn b102_a_file_that_cannot_be_read_leaks_nothing() {
    let open = || std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count());
    let before = open();
    let bad = root().join("tests/topo/README.md");
    for _ in 0..2000 {
        let text = std::fs::read_to_string(&bad).expect("it is there");
        assert!(load("bad", &format!("<system>{text}")).topology.is_none());
        assert!(load("bad", &text).topology.is_none());
    }
    // Other tests run beside this one and open files of their own.
    assert!(open() < before + 200, "{} files are open, {before} before", open());
}

fn system(inside: &str) -> String {
    format!(
        "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"17\">\n{inside}</cpu>\n</system>\n"
    )
}

/// Two machines' worth of parts, with everything that can be missing.
fn complete() -> String {
    let gpu = |at: u32| {
        format!(
            "<pci busid=\"0000:0{at}:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n\
             <gpu dev=\"{at}\" sm=\"90\" rank=\"{at}\" gdr=\"1\">\n\
             <nvlink target=\"0000:0{}:00.0\" count=\"6\" tclass=\"0x030200\"/>\n</gpu>\n</pci>\n",
            1 - at
        )
    };
    let nic = "<pci busid=\"0000:41:00.0\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n\
               <nic>\n<net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" port=\"1\" guid=\"0xabc\" maxconn=\"1\" gdr=\"1\"/>\n</nic>\n</pci>\n";
    let cpu =
        "</cpu>\n<cpu numaid=\"1\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"17\">\n";
    system(&format!("{}{nic}{cpu}{}", gpu(0), gpu(1)))
}

fn loaded(text: &str) -> Loaded {
    let loaded = load("test", text);
    assert!(loaded.topology.is_some(), "{}", loaded.first_error());
    loaded
}

#[test]
fn b097_what_is_missing_is_told_or_has_a_default() {
    let whole = loaded(&complete());
    assert_eq!(whole.format, Format::NcclXml);
    assert_eq!(warnings(&whole), Vec::<String>::new());
    let network = whole.network().expect("it is right");
    let rate =
        |name: &str| network.links.iter().find(|link| link.name == name).expect("it is there").bytes_per_us;
    assert!((rate("node0.gpu0->node0.gpu1") - 6.0 * 20.6e3).abs() < 1e-6);
    assert_eq!(rate("node0.cpu0->node0.gpu0"), 48e3);
    assert_eq!(rate("node0.mlx5_0->fabric"), 25e3);
    assert_eq!(rate("node0.cpu0->node0.cpu1"), 16e3);
    for (missing, warning) in [
        (" arch=\"x86_64\"", "2: a `<cpu>` has no `arch`; 10GB/s between processors is assumed"),
        (" vendor=\"AuthenticAMD\"", "2: a `<cpu>` has no `vendor`; 10GB/s between processors is assumed"),
        (" numaid=\"0\"", "2: a `<cpu>` has no `numaid`; processors are numbered in order"),
        (" link_speed=\"32.0 GT/s PCIe\"", "3: a `<pci>` has no `link_speed`; `8 GT/s` is assumed"),
        (" link_width=\"16\"", "3: a `<pci>` has no `link_width`; 16 lanes are assumed"),
        (" sm=\"90\"", "4: a `<gpu>` has no `sm`; NVLinks of 20GB/s are assumed"),
        (" dev=\"0\" sm", "4: a `<gpu>` has no `dev`; GPUs are numbered in order"),
        (" count=\"6\"", "5: a `<nvlink>` has no `count`; one link is assumed"),
        (
            " target=\"0000:01:00.0\"",
            "5: a `<nvlink>` leads to without `target`, which is no GPU of this file; it is not used",
        ),
        (" speed=\"200000\"", "10: a `<net>` has no `speed`; 1.25GB/s is assumed"),
    ] {
        let replacement = if missing.ends_with(" sm") { " sm" } else { "" };
        let text = complete().replace(missing, replacement);
        assert_ne!(text, complete(), "{missing}");
        let found = warnings(&loaded(&text));
        assert!(found.iter().any(|line| line == warning), "{missing}: {found:?}");
        // B099: the same each time, whatever was not said.
        assert_eq!(
            loaded(&text).network().expect("right").links,
            loaded(&text).network().expect("right").links
        );
    }
    // Without its class a device is what is in it; without both, nobody can tell.
    assert_eq!(counts(&topology(&complete().replace(" class=\"0x030200\"", "")))[..2], [2, 1]);
    let g5 = &real()["aws/g5.48xl-topo.xml"];
    let found = warnings(&loaded(g5)).join("\n");
    assert!(
        found.contains("PCI device 0000:00:16.0 has no `class`, so what it is cannot be told"),
        "{found}"
    );
    assert!(found.contains("no GPU is described"), "{found}");
}

#[test]
fn b098_a_nic_without_a_bus_id_breaks_nothing() {
    for gpus in [1, 2, 4] {
        let gpu = |at: usize| {
            format!(
                "<pci busid=\"{at:x}\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"{at}\"/></pci>"
            )
        };
        let all: String = (0..gpus).map(gpu).collect();
        let nic = "<pci class=\"0x020000\"><nic><net name=\"usb0\" dev=\"0\" speed=\"1000\" port=\"0\" guid=\"0x0\"/></nic></pci>";
        let bare = "<nic><net name=\"eth1\" dev=\"1\" speed=\"1000\" port=\"0\" guid=\"0x0\"/></nic>";
        assert_eq!(counts(&topology(&system(&format!("{all}{nic}{bare}"))))[..2], [gpus, 2]);
    }
}

#[test]
fn b060_a_port_that_is_listed_twice_counts_once() {
    let net = "<net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" port=\"1\" guid=\"0xabc\" maxconn=\"1\" gdr=\"1\"/>\n";
    let twice = complete().replace(net, &format!("{net}{}", net.replace("mlx5_0", "bond0")));
    let loaded = loaded(&twice);
    assert!(warnings(&loaded)[0].contains("port `bond0` of guid 0xabc is listed twice; it is counted once"));
    let topology = loaded.topology.as_ref().expect("right");
    assert_eq!(topology.count(Kind::Nic), 1);
    let fabric = topology.network().links.into_iter().find(|link| link.name == "node0.mlx5_0->fabric");
    assert_eq!(fabric.expect("it is there").bytes_per_us, 25e3, "not doubled");
    // Two ports of one NIC add up.
    let other = complete().replace(net, &format!("{net}{}", net.replace("port=\"1\"", "port=\"2\"")));
    let fabric = super::network(&other).links.into_iter().find(|link| link.name == "node0.mlx5_0->fabric");
    assert_eq!(fabric.expect("it is there").bytes_per_us, 50e3);
}

#[test]
fn links_are_counted_once_and_strays_are_told() {
    let text = complete();
    let with = |from: &str, to: &str| warnings(&loaded(&text.replacen(from, to, 1))).join("\n");
    assert!(with("target=\"0000:01:00.0\"", "target=\"0000:00:00.0\"").contains("from a GPU to itself"));
    assert!(
        with("target=\"0000:01:00.0\"", "target=\"0000:99:00.0\"")
            .contains("leads to 0000:99:00.0, which is no GPU")
    );
    assert!(with("<nic>", "<nic><mac/>").contains("a `<mac>` within <nic> is not used"));
    assert!(
        with("class=\"0x020700\"", "class=\"0x020700\" link_sped=\"8 GT/s\"")
            .contains("attribute `link_sped` of a `<pci>` is not known")
    );
    assert!(
        with("link_speed=\"32.0 GT/s PCIe\"", "link_speed=\"warp 9\"")
            .contains("`link_speed` `warp 9` is not known")
    );
    assert!(
        with("vendor=\"AuthenticAMD\"", "vendor=\"Zilog\"")
            .contains("a processor `x86_64` `Zilog` is not known")
    );
    let switch = text
        .replace(
            "target=\"0000:00:00.0\" count=\"6\" tclass=\"0x030200\"",
            "target=\"ffff\" count=\"18\" tclass=\"0x068000\"",
        )
        .replace(
            "target=\"0000:01:00.0\" count=\"6\" tclass=\"0x030200\"",
            "target=\"fffe\" count=\"18\" tclass=\"0x068000\"",
        );
    let network = super::network(&switch);
    assert_eq!(way(&network, 0, 1), ["node0.gpu0->node0.nvswitch", "node0.nvswitch->node0.gpu1"]);
    let rate = network
        .links
        .iter()
        .find(|link| link.name == "node0.gpu0->node0.nvswitch")
        .expect("there")
        .bytes_per_us;
    assert!((rate - 18.0 * 20.6e3).abs() < 1e-6);
}

#[test]
fn gpus_come_in_the_order_of_their_ranks() {
    // B051: the order of the file is not that of the ranks.
    let text = complete().replace("rank=\"0\"", "rank=\"7\"");
    let names: Vec<String> =
        topology(&text).network().devices.into_iter().map(|device| device.name).collect();
    assert_eq!(names, ["node0.gpu1", "node0.gpu0"]);
}

#[test]
fn damaged_and_hostile_files_are_refused() {
    let text = complete();
    let with = |from: &str, to: &str| text.replacen(from, to, 1);
    refused(&text[..text.len() / 2], "E0801", "10:1", "no XML");
    refused(&text[..60], "E0801", "2:1", "no XML");
    refused(&with("</nic>", "</nik>"), "E0801", "11:1", "no XML");
    refused(
        &with("link_width=\"16\"", "link_width=\"wide\""),
        "E0801",
        "3:84",
        "attribute `link_width` of a `<pci>` is no whole number",
    );
    refused(&with("link_width=\"16\"", "link_width=\"4000\""), "E0803", "3:1", "1 to 32 lanes");
    refused(
        &with("speed=\"200000\"", "speed=\"-5\""),
        "E0803",
        "10:35",
        "attribute `speed` of a `<net>` is no speed",
    );
    refused(&with("dev=\"0\"", "dev=\"0\" dev=\"1\""), "E0801", "4:1", "cannot be read");
    refused(&with("dev=\"0\"", "dev=\"&boom;\""), "E0801", "4:11", "attribute `dev` cannot be read");
    refused(&with("<nic>", "<nic>words"), "E0801", "9:6", "no text between its elements");
    let bomb = "<!DOCTYPE system [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>\n";
    refused(&format!("{bomb}{text}"), "E0801", "1:1", "declares a document type");
    refused("<system/><system/>", "E0801", "1:10", "beside the first element");
    refused("<", "E0801", "1:1", "no XML");
    refused("<!-- nothing -->", "E0801", "1:1", "no element");
    refused("<algo name=\"x\"/>", "E0806", "1:1", "MSCCL algorithm");
    refused("<html></html>", "E0806", "1:1", "`<html>`, which is no topology");
    let bom = format!("\u{feff}<?xml version=\"1.0\"?>\n{}", text.replace('\n', "\r\n"));
    assert_eq!(counts(&topology(&bom)), counts(&topology(&text)));
}

/// Every prefix of a file, and the file with each byte replaced, is taken or refused, without a panic.
#[test]
fn no_damage_is_a_panic() {
    let text = complete();
    for end in 0..text.len() {
        load("test", &text[..end]);
    }
    let bytes = text.as_bytes();
    for at in 0..bytes.len() {
        for other in *b"<>\"&0 /" {
            let mut damaged = bytes.to_vec();
            damaged[at] = other;
            load("test", &String::from_utf8(damaged).expect("ASCII"));
        }
    }
}

fn smi(name: &str) -> Loaded {
    let path = root().join("tests/topo/smi").join(name);
    loaded(&std::fs::read_to_string(path).expect("it is there"))
}

#[test]
fn the_matrix_of_nvidia_smi_becomes_a_machine() {
    let h100 = smi("dgx-h100.txt");
    assert_eq!(h100.format, Format::SmiMatrix);
    let topology = h100.topology.as_ref().expect("right");
    assert_eq!(counts(topology)[..2], [8, 8]);
    let network = topology.network();
    assert_eq!(way(&network, 0, 7), ["node0.gpu0->node0.nvswitch", "node0.nvswitch->node0.gpu7"]);
    let to_switch =
        network.links.iter().find(|link| link.name == "node0.gpu0->node0.nvswitch").expect("there");
    assert_eq!(to_switch.bytes_per_us, 18.0 * 20e3);
    // A GPU and the NIC that is nearest to it share a bridge.
    let joined = |a: &str| -> Vec<String> {
        let at = topology.nodes.iter().position(|node| node.name == a).expect("there") as u32;
        let other = |ends: [u32; 2]| if ends[0] == at { ends[1] } else { ends[0] };
        let wires = topology.wires.iter().filter(|wire| wire.ends.contains(&at));
        wires.map(|wire| topology.nodes[other(wire.ends) as usize].name.clone()).collect()
    };
    assert_eq!(joined("node0.pxb0"), ["node0.gpu0", "node0.NIC0", "node0.numa0"]);
    assert_eq!(joined("node0.sys"), ["node0.numa0", "node0.numa1"]);
    assert!(warnings(&h100)[0].contains("the matrix has no speeds"), "{:?}", warnings(&h100));

    let v100 = smi("dgx-1v.txt");
    let network = v100.network().expect("right");
    assert_eq!(way(&network, 0, 3), ["node0.gpu0->node0.gpu3"]);
    let double = network.links.iter().find(|link| link.name == "node0.gpu0->node0.gpu3").expect("there");
    assert_eq!(double.bytes_per_us, 40e3);
    assert_eq!(way(&network, 0, 5).len(), 2, "by way of a GPU that both are linked with");
    assert_eq!(counts(v100.topology.as_ref().expect("right"))[..2], [8, 4]);

    let two = smi("two-gpus.txt");
    assert_eq!(
        way(&two.network().expect("right"), 0, 1),
        ["node0.gpu0->node0.phb0", "node0.phb0->node0.gpu1"]
    );
}

#[test]
fn damaged_matrices_are_refused() {
    let text = std::fs::read_to_string(root().join("tests/topo/smi/two-gpus.txt")).expect("it is there");
    refused(&text.replace("GPU1\tPHB", "GPU1\tPHX"), "E0802", "3:6", "the matrix cannot have `PHX`");
    refused(
        &text.replace("GPU0\t X \tPHB\t0-15\t\tN/A", "GPU0\t X "),
        "E0801",
        "2:1",
        "the row of GPU0 has 1 cells",
    );
    refused(&text[..text.find("GPU1\tPHB").expect("there")], "E0801", "1:7", "GPU1 has a column and no row");
    for end in 0..text.len() {
        load("test", &text[..end]);
    }
}
