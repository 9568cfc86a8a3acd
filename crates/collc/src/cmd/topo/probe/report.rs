//! What was measured, as a topology file and as words.

use super::measure::Measured;
use super::shape::{Ways, description, is_lopsided, mean, rounded, ways};
use super::together::Together;
use crate::failure::Failure;
use crate::output;
use coll::Bytes;
use coll_topo::{Kind, show_bandwidth, show_time};
use std::path::Path;

/// Writes the file, and says what is in it.
pub(super) fn write(
    measured: &Measured,
    transport: &str,
    bytes: u64,
    path: &Path,
) -> Result<String, Failure> {
    let description = description(measured);
    let ranks = measured.machines.len();
    let mut comments = vec![format!(
        "Measured by `collc topo probe` over {transport}, between {ranks} ranks, with messages of {}.",
        Bytes(bytes)
    )];
    comments.extend(measured.together.iter().map(|set| at_once(measured, set)));
    let order: Vec<&str> = description
        .machines
        .iter()
        .flat_map(|machine| machine.nodes.iter().filter(|node| node.kind == Kind::Device))
        .map(|node| node.name.as_str())
        .collect();
    let in_order: Vec<String> = (0..ranks).map(|rank| format!("rank{rank}")).collect();
    let mut told = String::new();
    if order != in_order {
        let note = "ranks of one host do not follow each other, so device r is not the one that rank r had";
        comments.push(format!("Take care: {note}."));
        told += &format!("note: {note}; names tell which it was\n");
    }
    output::write_file(path, coll_topo::write(&description, &comments).as_bytes())?;
    for machine in &description.machines {
        let ranks = machine.nodes.iter().filter(|node| node.kind == Kind::Device).count();
        told += &format!("{}: {ranks} ranks\n", machine.name);
    }
    told += &format!(
        "a message costs each side {}; a byte is copied at {} and summed at {}\n",
        show_time(description.figures.message_us),
        show_bandwidth(1e3 / description.figures.copy_ns),
        show_bandwidth(1e3 / description.figures.reduce_ns)
    );
    told += "pair        one way  bandwidth\n";
    let mut pairs = measured.pairs.iter();
    for a in 0..ranks {
        for b in a + 1..ranks {
            let Some(pair) = pairs.next() else { break };
            let pair_name = format!("{a} - {b}");
            told += &format!(
                "{pair_name:<9}{:>10}  {}\n",
                show_time(rounded(pair.latency_us)),
                shown(ways(pair))
            );
        }
    }
    measured.together.iter().for_each(|set| told += &(at_once(measured, set) + "\n"));
    Ok(told + &format!("written to {}\n", path.display()))
}

/// What pairs that send at once get, and what that says.
fn at_once(measured: &Measured, set: &Together) -> String {
    let pairs: Vec<String> = set.pairs.iter().map(|(a, b)| format!("{a} - {b}")).collect();
    let (got, alone) = (shown(set.bytes_per_us), shown(measured.alone(set)));
    let verdict = match (measured.is_shared(set), set.machines[0] == set.machines[1]) {
        (false, _) => "they share nothing that is full",
        (true, true) => "they share the machine's memory or cores",
        (true, false) => "they share a way between the machines",
    };
    format!("at once, {} get {got} together, and one by one {alone}: {verdict}", pairs.join(", "))
}

/// One figure, or one for each direction.
fn shown(ways: Ways) -> String {
    match is_lopsided(ways) {
        false => show_bandwidth(mean(ways)),
        true => {
            let [there, back] = ways.map(|way| show_bandwidth(rounded(way)));
            format!("{there} there, {back} back")
        }
    }
}
