//! From GOAL to a plan of messages. Each message carries a block of its own, which its sender is given and its receiver ends up
//! with: that is what the plan promises, and what a run of it verifies. Sizes are those of the file, a class of blocks
//! for each.
//!
//! 1. `rank`: the order of a rank's operations, and which messages each has to wait for. Computations take no time here: who
//!    waits for one waits for what it waits for. Who waits for a start waits for what that waits for;
//! 2. `link`: the nth send to a rank with a tag meets the nth receive, as they are posted: in the order of the file, where
//!    nothing is required of them;
//! 3. here: all ranks run on paper, and what they do is woven.

mod link;
mod rank;

use crate::Imported;
use crate::Limits;
use crate::attempt::word;
use crate::codes::{RING, SYNTAX, UNSUPPORTED};
use crate::goal::{Goal, GoalKind};
use crate::weave::finish::Title;
use crate::weave::{Memory, OpRef, Place, Staged, Told, Weaver};
use coll_base::{Diagnostic, FileId, SourceMap, Span};
use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract, Ensure, Leaf, Value};
use link::{End, Message};
use rank::Needs;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// The most blocks of all ranks together.
const BLOCKS_MAX: u64 = 1 << 25;

/// How many operations of a ring are named.
const TOLD_MAX: usize = 6;

/// A GOAL file that can become a plan.
#[derive(Clone, Debug)]
pub struct Schedule {
    goal: Goal,
    name: String,
    limits: Limits,
    file: FileId,
    /// Where each line begins and ends.
    lines: Vec<(usize, usize)>,
}

/// The block of each message at its sender and its receiver.
type Places = Vec<(u32, u32)>;

impl Schedule {
    /// What stands for a collective, which GOAL does not know.
    pub const COLLECTIVE: &str = "goal";

    /// Reads a file of a map.
    ///
    /// # Errors
    /// The first thing that is wrong, at its place.
    pub fn read(file: FileId, map: &SourceMap) -> Result<Schedule, Vec<Diagnostic>> {
        let text = map.text(file);
        let mut lines = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let indent = line.len() - line.trim_start().len();
            lines.push((start + indent, start + line.trim_end().len().max(indent)));
            start += line.len();
        }
        let goal = Goal::from_text(map.name(file), text).map_err(|error| {
            let at = lines.get(error.line as usize - 1).copied().unwrap_or((0, 0));
            let told = Diagnostic::new(SYNTAX, Span::new(file, at.0, at.1), error.message);
            vec![match error.help {
                Some(help) => told.help(help),
                None => told.help("`docs/formats.md` tells what GOAL looks like"),
            }]
        })?;
        let stem =
            Path::new(map.name(file)).file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into());
        Ok(Schedule { goal, name: word(&stem), limits: Limits::NONE, file, lines })
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many ranks it is for.
    pub fn ranks(&self) -> u32 {
        self.goal.ranks.len() as u32
    }

    /// It has no limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Makes a plan of it.
    ///
    /// # Errors
    /// If messages have no other side or one of another size, if a receive takes a message of any rank or tag, or if
    /// operations wait for each other in a ring.
    pub fn import(&self, map: &SourceMap) -> Result<Imported, Vec<Diagnostic>> {
        let needs: Result<Vec<Needs>, Box<Diagnostic>> =
            (0..self.ranks()).map(|rank| self.needs(rank)).collect();
        let needs = needs.map_err(|told| vec![*told])?;
        let messages = self.messages(&needs)?;
        let (contract, sizes_bytes, blocks) = self.contract(&messages)?;
        let title = Title { name: format!("goal.{}", self.name), root: None, file: map.name(self.file) };
        let order = self.order(&needs, &messages)?;
        let plan = self.weave(&contract, &needs, &messages, &order, &blocks).finish(title);
        let (races, unordered) = self.unordered(&needs, &messages);
        Ok(Imported {
            plan,
            copies: 0,
            equal_chunks_only: false,
            warnings: Vec::new(),
            races,
            unordered,
            sizes_bytes: Some(sizes_bytes),
        })
    }

    /// Where an operation stands.
    fn span(&self, (rank, op): End) -> Span {
        let line = self.goal.ranks[rank as usize].ops[op as usize].line;
        let (start, end) = self.lines.get(line as usize - 1).copied().unwrap_or((0, 0));
        Span::new(self.file, start, end)
    }

    /// An operation in words.
    fn words(&self, (rank, op): End) -> String {
        let op = &self.goal.ranks[rank as usize].ops[op as usize];
        let label = if op.label.is_empty() { String::new() } else { format!("`{}`, ", op.label) };
        format!("rank {rank}, {label}line {}: {}", op.line, op.kind)
    }

    /// What is promised: every block that is sent arrives. With it the bytes of each class, and the block of each message
    /// at its sender and its receiver.
    fn contract(&self, messages: &[Message]) -> Result<(Contract, Vec<u64>, Places), Vec<Diagnostic>> {
        let ranks = self.ranks();
        let (mut sent, mut received) = (vec![0; ranks as usize], vec![0; ranks as usize]);
        let mut blocks = Vec::with_capacity(messages.len());
        let mut sizes: BTreeMap<u64, u32> = BTreeMap::new();
        for message in messages {
            let take = |counts: &mut Vec<u32>, rank: u32| {
                counts[rank as usize] += 1;
                counts[rank as usize] - 1
            };
            blocks.push((take(&mut sent, message.send.0), take(&mut received, message.receive.0)));
            sizes.insert(message.size_bytes, 0);
        }
        sizes.values_mut().zip(0..).for_each(|(class, number)| *class = number);
        let most = |counts: &[u32]| counts.iter().copied().max().unwrap_or(0).max(1);
        let (inputs, outputs) = (most(&sent), most(&received));
        let width = u64::from(inputs) + u64::from(outputs);
        if width * u64::from(ranks) > BLOCKS_MAX {
            let span = Span::new(self.file, 0, 0);
            let told = Diagnostic::new(UNSUPPORTED, span, "too many messages for one plan")
                .expected(format!("at most {BLOCKS_MAX} blocks, the busiest rank's messages times the ranks"))
                .found(format!("{}", width * u64::from(ranks)))
                .help("simulate it with `collc sim`, which needs no plan");
            return Err(vec![told]);
        }
        let mut table = vec![0; (width * u64::from(ranks)) as usize];
        let (mut given, mut arrives) = (Vec::new(), Vec::new());
        for (message, &(from, to)) in messages.iter().zip(&blocks) {
            let ((sender, _), (receiver, _)) = (message.send, message.receive);
            let class = sizes[&message.size_bytes];
            table[sender as usize * width as usize + from as usize] = class;
            table[receiver as usize * width as usize + (inputs + to) as usize] = class;
            given.push((sender, from));
            arrives.push((receiver, to, Leaf { rank: sender, buffer: 0, block: from }));
        }
        given.sort_unstable();
        arrives.sort_unstable_by_key(|&(rank, block, _)| (rank, block));
        let ensures = arrives.iter().zip(0..).map(|(&(rank, block, _), value)| Ensure {
            rank,
            buffer: 1,
            block,
            value,
        });
        let buffer = |name: &str, role, blocks| BufferDecl { name: name.into(), role, blocks };
        let contract = Contract {
            collective: Schedule::COLLECTIVE.to_string(),
            ranks,
            only: None,
            buffers: vec![
                buffer("sent", BufferRole::In, inputs),
                buffer("received", BufferRole::Out, outputs),
            ],
            given: vec![Blocks::Listed(given), Blocks::None],
            ensures: ensures.collect(),
            values: arrives.iter().map(|&(_, _, leaf)| Value::Copy(leaf)).collect(),
            after: Vec::new(),
            classes: Classes { count: sizes.len().max(1) as u32, table },
        };
        let sizes = if sizes.is_empty() { vec![0] } else { sizes.into_keys().collect() };
        Ok((contract, sizes, blocks))
    }

    /// An order in which all messages can be sent and received, as ends.
    fn order(&self, needs: &[Needs], messages: &[Message]) -> Result<Vec<End>, Vec<Diagnostic>> {
        let mut before: BTreeMap<End, Vec<End>> = BTreeMap::new();
        for (rank, needs) in (0..).zip(needs) {
            for (&op, after) in &needs.after {
                before.insert((rank, op), after.iter().map(|&on| (rank, on)).collect());
            }
        }
        for message in messages {
            before.entry(message.receive).or_default().push(message.send);
            for (end, earlier) in
                [(message.send, message.send_after), (message.receive, message.receive_after)]
            {
                before.entry(end).or_default().extend(earlier.map(|op| (end.0, op)));
            }
        }
        let mut due: BTreeMap<End, usize> = BTreeMap::new();
        let mut behind: BTreeMap<End, Vec<End>> = BTreeMap::new();
        for (&end, on) in &before {
            due.insert(end, on.len());
            on.iter().for_each(|&on| behind.entry(on).or_default().push(end));
        }
        let mut ready: VecDeque<End> =
            due.iter().filter(|(_, due)| **due == 0).map(|(&end, _)| end).collect();
        let mut order = Vec::with_capacity(due.len());
        while let Some(end) = ready.pop_front() {
            order.push(end);
            for &next in behind.get(&end).into_iter().flatten() {
                let due = due.get_mut(&next).expect("invariant: every end has an entry");
                *due -= 1;
                if *due == 0 {
                    ready.push_back(next);
                }
            }
        }
        if order.len() == before.len() {
            return Ok(order);
        }
        Err(vec![self.ring(&before, &due)])
    }

    /// Operations that wait for each other: from one that stands still, back until one comes again.
    fn ring(&self, before: &BTreeMap<End, Vec<End>>, due: &BTreeMap<End, usize>) -> Diagnostic {
        let stands = |end: &End| due[end] > 0;
        let mut way: Vec<End> = due.keys().find(|end| stands(end)).copied().into_iter().collect();
        let ring = loop {
            let last = way.last().copied().unwrap_or((0, 0));
            let next = before.get(&last).and_then(|on| on.iter().find(|end| stands(end))).copied();
            let Some(next) = next else { break way };
            if let Some(at) = way.iter().position(|&known| known == next) {
                break way.split_off(at);
            }
            way.push(next);
        };
        let first = ring.first().copied().unwrap_or((0, 0));
        let mut told =
            Diagnostic::new(RING, self.span(first), format!("{} operations wait for each other", ring.len()))
                .expected("an order in which all messages can be sent and received")
                .found("none");
        for &end in ring.iter().take(TOLD_MAX) {
            told = told.note(format!("{} waits for the next", self.words(end)));
        }
        told.help("take one of the `requires` of these operations away, or let one rank send first")
    }

    fn weave<'c>(
        &self,
        contract: &'c Contract,
        needs: &[Needs],
        messages: &[Message],
        order: &[End],
        blocks: &[(u32, u32)],
    ) -> Weaver<'c> {
        let (inputs, outputs) = (contract.buffers[0].blocks, contract.buffers[1].blocks);
        let place = |buffer, block| Some(Place { buffer, block, piece: 0 });
        let memory = |_| {
            let given = (0..inputs).map(|block| Memory::Buffer { given: place(0, block), kept: None });
            given
                .chain((0..outputs).map(|block| Memory::Buffer { given: None, kept: place(1, block) }))
                .collect()
        };
        let mut weaver = Weaver::new(contract, 1, memory, &Staged::new());
        let mut of: BTreeMap<End, usize> = BTreeMap::new();
        let mut lanes: BTreeMap<(u32, u32, u32, bool), u32> = BTreeMap::new();
        for (at, message) in messages.iter().enumerate() {
            of.insert(message.send, at);
            of.insert(message.receive, at);
            let (from, to) = (message.send.0, message.receive.0);
            for (rank, sends) in [(from, true), (to, false)] {
                lanes.entry((from, to, message.channel, sends)).or_insert_with(|| weaver.lane(rank));
            }
        }
        let mut done: BTreeMap<End, OpRef> = BTreeMap::new();
        for &end in order {
            let (rank, op) = end;
            let at = of[&end];
            let message = &messages[at];
            let (from, to) = (message.send.0, message.receive.0);
            let sends = message.send == end;
            let waits: Vec<OpRef> =
                needs[rank as usize].after[&op].iter().map(|&on| done[&(rank, on)]).collect();
            let lane = lanes[&(from, to, message.channel, sends)];
            let line = self.goal.ranks[rank as usize].ops[op as usize].line;
            let told = Told { rank, lane, waits: &waits, line };
            let woven = match sends {
                true => weaver.send(told, (to, message.channel), &[blocks[at].0], None),
                false => weaver.receive(told, (from, message.channel), &[inputs + blocks[at].1], None),
            };
            done.insert(end, woven.expect("invariant: both ends of a message have blocks of one class"));
        }
        weaver
    }
}

/// Whether an operation is a message's end.
fn is_message(kind: &GoalKind) -> bool {
    !matches!(kind, GoalKind::Calc { .. })
}
