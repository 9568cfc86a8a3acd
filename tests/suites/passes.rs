//! Bytes that each rank moves through shared memory: counted, and compared with what `docs/performance.md` says.

mod support;

use coll_base::{DType, RedOp};
use coll_exec::{Bound, BufferMemory, Fault, Interest, Link, Loan, RunError, RunOptions, Transport};
use coll_plan::Action;
use coll_shm::{Options, ShmTransport, threads};
use std::collections::HashMap;
use std::time::Duration;
use support::{Call, Case, library_plan};

/// Large enough that headers are nothing beside it.
const BYTES: u64 = 4 << 20;

/// A transport between processes that counts. What only threads can do it leaves out.
struct Counted<'t> {
    inner: &'t mut ShmTransport,
    written: u64,
    read: u64,
    /// What is being read in place on each link, maybe in several turns.
    loans: HashMap<Link, Loan>,
}

impl Transport for Counted<'_> {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        let taken = self.inner.try_send(link, parts)?;
        self.written += taken as u64;
        Ok(taken)
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        let got = self.inner.try_recv(link, into)?;
        self.read += got as u64;
        Ok(got)
    }

    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        self.inner.peek(link)
    }

    fn consume(&mut self, link: Link, bytes: usize) {
        self.read += bytes as u64;
        self.inner.consume(link, bytes);
    }

    fn checks(&self, link: Link) -> bool {
        self.inner.checks(link)
    }

    fn lends(&self, link: Link) -> Option<u64> {
        self.inner.lends(link)
    }

    fn lend(&mut self, link: Link, bytes: &[u8]) -> Option<Loan> {
        self.inner.lend(link, bytes)
    }

    fn lent(&mut self, link: Link) {
        self.inner.lent(link);
    }

    fn stage(&mut self, bytes: u64) -> Option<u64> {
        self.inner.stage(bytes)
    }

    fn write_staged(&mut self, at: u64, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        self.inner.write_staged(at, bytes);
    }

    fn lend_staged(&mut self, at: u64, bytes: u64) -> Loan {
        self.inner.lend_staged(at, bytes)
    }

    fn lent_staged(&mut self, link: Link, at: u64, last: bool) {
        self.inner.lent_staged(link, at, last);
    }

    fn is_returned(&mut self, link: Link) -> Result<bool, Fault> {
        self.inner.is_returned(link)
    }

    fn borrow(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        if self.loans.insert(link, *loan) != Some(*loan) {
            self.read += loan.bytes;
        }
        self.inner.borrow(link, loan)
    }

    fn still_lent(&mut self, link: Link, loan: &Loan) -> Result<(), Fault> {
        self.inner.still_lent(link, loan)
    }

    fn give_back(&mut self, link: Link) {
        self.inner.give_back(link);
    }

    fn revoke(&mut self) {
        self.inner.revoke();
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        self.inner.wait(interests)
    }
}

/// One rank's run: what it wrote to shared memory, and what it read there.
fn one(
    transport: &mut ShmTransport,
    bound: &mut Bound,
    buffers: &mut [BufferMemory<'_>],
) -> (Result<(), RunError>, [u64; 2]) {
    transport.begin(Duration::from_secs(60));
    transport.connect(bound.links().collect::<Vec<_>>()).expect("threads reach each other");
    let mut counted = Counted { inner: transport, written: 0, read: 0, loans: HashMap::new() };
    let ended = bound.run(&mut counted, buffers, RunOptions::default());
    (ended, [counted.written, counted.read])
}

/// What the ranks of a library schedule move, as multiples of the size: the most that one of them writes to shared memory, reads
/// there, and copies or reduces beside it.
fn moved(name: &str, ranks: u32) -> [f64; 3] {
    let (operation, schedule) = name.split_once('.').expect("a schedule's name has a point");
    let entry = coll::library::entry(operation, schedule).expect("it is in the library");
    let plan = library_plan(&entry, ranks, 0).expect("it applies");
    let case = Case { elements: BYTES / 4, ..Case::new(RedOp::Sum, DType::F32) };
    let mut world = threads::world_with(ranks, &Options::default()).expect("there is memory");
    let mut all = Vec::new();
    let mut call = Call::new(&plan, &case).expect("it can be bound");
    let ran = call.run_by(|bounds, buffers| {
        std::thread::scope(|scope| {
            let ranks = world.iter_mut().zip(bounds).zip(buffers);
            let running: Vec<_> = ranks
                .map(|((transport, bound), buffers)| scope.spawn(move || one(transport, bound, buffers)))
                .collect();
            let (ends, counts) = running.into_iter().map(|rank| rank.join().expect("no rank panics")).unzip();
            all = counts;
            ends
        })
    });
    ran.unwrap_or_else(|message| panic!("{name}: {message}"));
    let counts = plan.contract.counts(case.elements).expect("it divides");
    let local = |part: &coll_plan::RankPlan| -> u64 {
        let local = part.ops.iter().filter(|op| matches!(op.action, Action::Copy | Action::Reduce { .. }));
        let length = |region: &coll_plan::Region| {
            let count = counts[region.class as usize];
            4 * (plan.cuts[region.high as usize].of(count) - plan.cuts[region.low as usize].of(count))
        };
        local.flat_map(|op| part.regions(op.target)).map(length).sum()
    };
    let most = |of: &dyn Fn(usize) -> u64| {
        (0..ranks as usize).map(of).max().expect("there are ranks") as f64 / BYTES as f64
    };
    [most(&|rank| all[rank][0]), most(&|rank| all[rank][1]), most(&|rank| local(&plan.ranks[rank]))]
}

/// The rows of the table: a schedule, a rank count, and what is written, read and copied.
fn rows() -> Vec<(String, u32, [f64; 3])> {
    let page = include_str!("../../docs/performance.md");
    let (_, table) =
        page.split_once("| schedule | ranks | written | read | copied |\n").expect("the page has it");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> =
            row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let number = |at: usize| cells[at].parse::<f64>().expect("a number");
        (cells[0].to_string(), number(1) as u32, [number(2), number(3), number(4)])
    })
    .collect()
}

#[test]
fn each_rank_moves_what_the_page_says() {
    let rows = rows();
    assert!(rows.len() > 10, "{rows:?}");
    let wrong: Vec<String> = rows
        .into_iter()
        .filter_map(|(name, ranks, said)| {
            let found = moved(&name, ranks);
            let off = |(found, said): (&f64, &f64)| (found - said).abs() > 0.1 * said + 0.005;
            let is_off = found.iter().zip(&said).any(off);
            is_off.then(|| format!("{name} on {ranks} ranks: {found:.3?}, and the page says {said:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
