//! What depends on what: a graph whose nodes are a program's transfers and whose edges are the reasons why one
//! must come after another. Passes and pictures ask it; petgraph stays behind it.
//!
//! Reads happen as a step begins, so two transfers of one step are tied only where both reduce into one piece (the
//! later in the list builds on the earlier) or where one overwrites what the other read.

use crate::{Cells, Kind, Program, Transfer};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use petgraph::{Direction, Graph};

/// Why one transfer comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dependence {
    /// It reads what the other wrote; or, of signals, passes on the token that the other brought.
    Reads,
    /// It reduces into what the other wrote.
    Builds,
    /// It overwrites what the other read.
    Overwrites,
    /// It overwrites what the other wrote and nobody need have read.
    Replaces,
}

impl Dependence {
    /// How the transfer relates to the one that it comes after, in a word.
    pub fn word(self) -> &'static str {
        match self {
            Dependence::Reads => "reads",
            Dependence::Builds => "builds on",
            Dependence::Overwrites => "overwrites",
            Dependence::Replaces => "replaces",
        }
    }

    /// True if a value flows along it; the others are only about memory.
    pub fn carries_value(self) -> bool {
        matches!(self, Dependence::Reads | Dependence::Builds)
    }
}

/// The dependences of a program. Nodes are indices into [`Program::transfers`]; every edge leads to a higher index
/// or stays within a step.
#[derive(Clone, Debug)]
pub struct Dependences {
    graph: DiGraph<(), Dependence>,
}

impl Dependences {
    /// Finds them all. The program has passed verification. Takes time in proportion to pieces moved and edges.
    pub fn of(program: &Program) -> Dependences {
        let mut finder = Finder::new(program);
        let mut start = 0;
        while start < program.transfers.len() {
            let step = program.transfers[start].step;
            let length = program.transfers[start..].iter().take_while(|t| t.step == step).count();
            finder.step(start, &program.transfers[start..start + length]);
            start += length;
        }
        Dependences { graph: finder.graph }
    }

    /// How many edges there are.
    pub fn edge_count(&self) -> usize {
        self.graph.edge_count()
    }

    /// Every edge `(from, to, why)`, by `to`, then by `from`.
    pub fn edges(&self) -> Vec<(u32, u32, Dependence)> {
        let edges = self.graph.edge_references();
        let mut edges: Vec<_> =
            edges.map(|e| (e.source().index() as u32, e.target().index() as u32, *e.weight())).collect();
        edges.sort_by_key(|&(from, to, why)| (to, from, why));
        edges
    }

    /// What a transfer comes after, and why. In no order that means anything.
    pub fn before(&self, transfer: u32) -> impl Iterator<Item = (u32, Dependence)> + '_ {
        let edges = self.graph.edges_directed(NodeIndex::new(transfer as usize), Direction::Incoming);
        edges.map(|edge| (edge.source().index() as u32, *edge.weight()))
    }
}

const NONE: u32 = u32::MAX;

struct Finder {
    cells: Cells,
    graph: DiGraph<(), Dependence>,
    /// For each cell, the transfer that wrote it last.
    writer: Vec<u32>,
    /// For each cell, the head of the list of those who read it since, in `readers`.
    reader: Vec<u32>,
    /// `(transfer, next)`
    readers: Vec<(u32, u32)>,
    /// For each rank, the signals that reached it in earlier steps.
    signals: Vec<Vec<u32>>,
    /// For each transfer, the last one that got an edge from it, and why: to leave doubles out.
    last_edge: Vec<(u32, Option<Dependence>)>,
}

impl Finder {
    fn new(program: &Program) -> Finder {
        let cells = Cells::of(program);
        let nodes = program.transfers.len();
        let mut graph = Graph::with_capacity(nodes, nodes * 2);
        for _ in 0..nodes {
            graph.add_node(());
        }
        Finder {
            writer: vec![NONE; cells.count()],
            reader: vec![NONE; cells.count()],
            readers: Vec::new(),
            signals: vec![Vec::new(); program.ranks() as usize],
            last_edge: vec![(NONE, None); nodes],
            cells,
            graph,
        }
    }

    fn step(&mut self, start: usize, transfers: &[Transfer]) {
        let numbered = || transfers.iter().enumerate().map(|(i, t)| ((start + i) as u32, t));
        for (id, transfer) in numbered().filter(|(_, t)| t.carries_data()) {
            for cell in self.cells.source(transfer) {
                self.edge(self.writer[cell], id, Dependence::Reads);
                self.readers.push((id, self.reader[cell]));
                self.reader[cell] = self.readers.len() as u32 - 1;
            }
        }
        for (id, transfer) in numbered() {
            match transfer.kind {
                Kind::Signal => {
                    for i in 0..self.signals[transfer.source.rank as usize].len() {
                        let from = self.signals[transfer.source.rank as usize][i];
                        self.edge(from, id, Dependence::Reads);
                    }
                }
                _ => self.write(id, transfer),
            }
        }
        for (id, signal) in numbered().filter(|(_, t)| t.kind == Kind::Signal) {
            self.signals[signal.target.rank as usize].push(id);
        }
    }

    fn write(&mut self, id: u32, transfer: &Transfer) {
        let builds = matches!(transfer.kind, Kind::Reduce | Kind::ReduceLeft);
        for cell in self.cells.target(transfer) {
            let mut at = self.reader[cell];
            let unread = at == NONE;
            while at != NONE {
                let (reader, next) = self.readers[at as usize];
                self.edge(reader, id, Dependence::Overwrites);
                at = next;
            }
            if builds {
                self.edge(self.writer[cell], id, Dependence::Builds);
            } else if unread {
                self.edge(self.writer[cell], id, Dependence::Replaces);
            }
            self.writer[cell] = id;
            self.reader[cell] = NONE;
        }
    }

    fn edge(&mut self, from: u32, to: u32, why: Dependence) {
        if from == NONE || from == to || self.last_edge[from as usize] == (to, Some(why)) {
            return;
        }
        self.last_edge[from as usize] = (to, Some(why));
        self.graph.add_edge(NodeIndex::new(from as usize), NodeIndex::new(to as usize), why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_base::FileId;
    use expect_test::{Expect, expect};

    fn check(steps: &str, expected: Expect) {
        let head = "program test.t for 3 ranks\nbuffer data: inout\ncuts 0 1/2 1\nscratch tmp\n";
        let program = crate::read(FileId(0), &format!("{head}{steps}")).unwrap();
        let edges = Dependences::of(&program).edges();
        let lines = edges.into_iter().map(|(from, to, why)| format!("{from} -> {to} {why:?}\n"));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn values_flow_piece_by_piece() {
        check(
            "step\nmove 0.data{0} to 1.data\nmove 0.data{1} to 1.data\nstep\nmove 1.data{1} to 2.data\n\
             step\nmove 2.data to 0.data\n",
            expect![[r#"
                1 -> 2 Reads
                0 -> 3 Overwrites
                1 -> 3 Overwrites
                2 -> 3 Reads
            "#]],
        );
    }

    #[test]
    fn an_exchange_has_no_flow_and_reductions_of_a_step_build_on_each_other() {
        check(
            "step\nreduce 0.data into 1.data\nreduce 1.data into 0.data\nreduce 2.data into 0.data\n",
            expect![[r#"
                1 -> 0 Overwrites
                0 -> 1 Overwrites
                1 -> 2 Builds
            "#]],
        );
    }

    #[test]
    fn a_slot_is_one_thing_and_tokens_are_another() {
        check(
            "step\nmove 0.data{0} to 1.tmp\nsignal 0 to 1\nstep\nmove 1.tmp{0} to 2.data class 0\nsignal 1 to 2\n\
             step\nmove 0.data{1} to 1.tmp\n",
            expect![[r#"
                0 -> 2 Reads
                1 -> 3 Reads
                2 -> 4 Overwrites
            "#]],
        );
    }
}
