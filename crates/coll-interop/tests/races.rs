//! Races are all counted: as many as an interpreter written apart finds, which knows nothing of plans. It takes the steps of an
//! XML file as they stand, orders them by thread block, dependency and message, and compares every two of a rank.

mod support;

use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use support::{corpus, examine, text_of};

/// A step: its rank, and the addresses that it reads and writes.
struct Step {
    rank: usize,
    reads: Vec<(u8, i64)>,
    writes: Vec<(u8, i64)>,
    /// Steps that come before.
    after: Vec<usize>,
}

fn number(node: Node, name: &str) -> i64 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or(-1)
}

fn children<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

/// Chunks of a buffer as addresses of a call in place.
fn addresses(gpu: Node, coll: &str, buffer: &str, first: i64, count: i64) -> Vec<(u8, i64)> {
    let (rank, input, output) = (number(gpu, "id"), number(gpu, "i_chunks"), number(gpu, "o_chunks"));
    let start = match (coll, buffer) {
        (_, "s") => return (first..first + count).map(|chunk| (1, chunk)).collect(),
        ("allgather", "i") if input < output => rank * input,
        ("reduce_scatter" | "reducescatter", "o") if output < input => rank * output,
        // What is not known has its buffers apart.
        ("custom", "o") => return (first..first + count).map(|chunk| (2, chunk)).collect(),
        _ => 0,
    };
    (first..first + count).map(|chunk| (0, start + chunk)).collect()
}

/// All steps, with what each comes after.
fn steps(text: &str) -> Vec<Step> {
    let document = Document::parse(text).expect("it is XML");
    let algorithm = document.root_element();
    let coll = algorithm.attribute("coll").expect("it names a collective");
    let (mut steps, mut waits, mut ids) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut sends, mut receives): (BTreeMap<_, Vec<usize>>, BTreeMap<_, Vec<usize>>) = Default::default();
    for gpu in children(algorithm, "gpu") {
        let rank = number(gpu, "id");
        for block in children(gpu, "tb") {
            let (to, from) = (number(block, "send"), number(block, "recv"));
            let (id, channel) = (number(block, "id"), number(block, "chan"));
            for (at, step) in children(block, "step").enumerate() {
                let own = steps.len();
                let kind = step.attribute("type").expect("a type");
                let count = number(step, "cnt");
                let side = |buffer: &str, offset: &str| {
                    let buffer = step.attribute(buffer).unwrap_or("i");
                    addresses(gpu, coll, buffer, number(step, offset), count)
                };
                let source = || side("srcbuf", "srcoff");
                let target = || side("dstbuf", "dstoff");
                let (mut reads, mut writes) = (Vec::new(), Vec::new());
                if ["s", "rrs", "rrc", "rrcs", "cpy", "re"].contains(&kind) {
                    reads.extend(source());
                }
                if ["r", "rcs", "rrc", "rrcs", "cpy", "re"].contains(&kind) {
                    writes.extend(target());
                }
                if kind == "re" {
                    reads.extend(target());
                }
                if ["s", "rcs", "rrs", "rrcs"].contains(&kind) {
                    sends.entry((rank, to, channel)).or_default().push(own);
                }
                if kind.starts_with('r') && kind != "re" {
                    receives.entry((from, rank, channel)).or_default().push(own);
                }
                ids.insert((rank, id, number(step, "s")), own);
                waits.push((own, (rank, number(step, "depid"), number(step, "deps"))));
                let after = if at > 0 { vec![own - 1] } else { Vec::new() };
                steps.push(Step { rank: rank as usize, reads, writes, after });
            }
        }
    }
    for (own, on) in waits {
        steps[own].after.extend(ids.get(&on));
    }
    for (link, sent) in &sends {
        for (&send, &receive) in sent.iter().zip(receives.get(link).into_iter().flatten()) {
            steps[receive].after.push(send);
        }
    }
    steps
}

/// Pairs of steps of one rank that conflict, and of which neither comes after the other.
fn races(text: &str) -> u64 {
    let steps = steps(text);
    let words = steps.len().div_ceil(64);
    let mut before: Vec<Option<Vec<u64>>> = vec![None; steps.len()];
    // Steps come after few others, so that a walk back from each is quick enough.
    for own in 0..steps.len() {
        let mut seen = vec![0u64; words];
        let mut open = steps[own].after.clone();
        while let Some(at) = open.pop() {
            if seen[at / 64] >> (at % 64) & 1 == 1 {
                continue;
            }
            seen[at / 64] |= 1 << (at % 64);
            match &before[at] {
                Some(known) => seen.iter_mut().zip(known).for_each(|(seen, known)| *seen |= known),
                None => open.extend(&steps[at].after),
            }
        }
        before[own] = Some(seen);
    }
    let is_before =
        |a: usize, b: usize| before[b].as_ref().is_some_and(|seen| seen[a / 64] >> (a % 64) & 1 == 1);
    let mut count = 0;
    for a in 0..steps.len() {
        for b in a + 1..steps.len() {
            let (one, other) = (&steps[a], &steps[b]);
            let meet = |x: &[(u8, i64)], y: &[(u8, i64)]| x.iter().any(|address| y.contains(address));
            let conflicts = one.rank == other.rank
                && (meet(&one.writes, &other.writes)
                    || meet(&one.writes, &other.reads)
                    || meet(&one.reads, &other.writes));
            count += u64::from(conflicts && !is_before(a, b) && !is_before(b, a));
        }
    }
    count
}

/// The text without the dependencies of steps, but for those of `nop`s.
fn without_dependencies(text: &str) -> String {
    let drop = |line: &str| {
        if line.contains("type=\"nop\"") {
            return line.to_string();
        }
        let mut line = line.to_string();
        for name in [" depid=\"", " deps=\""] {
            if let Some((before, rest)) = line.split_once(name) {
                let after = rest.split_once('"').map_or("", |(_, after)| after);
                line = format!("{before}{name}-1\"{after}");
            }
        }
        line
    };
    text.lines().map(|line| drop(line) + "\n").collect()
}

/// Larger files take long here.
const STEPS_MAX: usize = 1200;

#[test]
fn as_many_races_as_an_interpreter_apart_finds() {
    let table = std::fs::read_to_string(corpus("msccl-xml/expected.csv")).expect("it can be read");
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a head");
    let at = |name: &str| head.iter().position(|known| *known == name).expect("a column");
    let (mut compared, mut many, mut wrong) = (0, 0, Vec::new());
    for row in rows {
        let file = row[at("file")];
        let text = text_of(&format!("msccl-xml/{file}.gz"));
        let size: usize = row[at("total_steps")].parse().expect("a number");
        if row[at("inplace")] == "0" || size > STEPS_MAX {
            continue;
        }
        assert_eq!(races(&text).to_string(), row[at("data_races")], "{file}: the interpreter itself");
        let mutant = without_dependencies(&text);
        let due = races(&mutant);
        let found = match examine(file, &mutant) {
            Ok(found) => found.races,
            Err(told) => {
                wrong.push(format!("{file}: {told:#?}"));
                continue;
            }
        };
        if found != due {
            wrong.push(format!("{file}: {found} races were counted, and there are {due}"));
        }
        compared += 1;
        many += usize::from(due > 6);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 20 && many >= 5, "{compared} files were compared, {many} with more than six races");
}
