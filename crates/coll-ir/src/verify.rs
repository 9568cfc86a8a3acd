//! The promise that a program keeps: whatever reads one may index freely. See the crate's documentation.

use crate::{Kind, Origins, Place, Program, Transfer};
use coll_base::Fraction;

/// Checks the promise; the error says what is broken first, in words for those who write a pass.
pub fn verify(program: &Program) -> Result<(), String> {
    contract(program)?;
    cuts(program)?;
    origins(program)?;
    steps(program)?;
    for (at, transfer) in program.transfers.iter().enumerate() {
        ids(program, transfer).map_err(|broken| format!("transfer {at}: {broken}"))?;
    }
    single_writes(program)
}

fn require(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

fn contract(program: &Program) -> Result<(), String> {
    let contract = &program.contract;
    require(contract.only.is_none(), || "the contract is a slice".into())?;
    require(contract.given.len() == contract.buffers.len(), || "one `given` for each buffer".into())?;
    let places = contract.ranks as usize * contract.blocks_per_rank() as usize;
    require(contract.classes.table.len() == places, || format!("{places} places, each with a class"))?;
    let classes = contract.classes.count;
    require(contract.classes.table.iter().all(|&class| class < classes), || "classes are in range".into())?;
    require(contract.ensures.iter().all(|e| (e.value as usize) < contract.values.len()), || {
        "values are in range".into()
    })?;
    let key =
        |at: usize| (contract.ensures[at].rank, contract.ensures[at].buffer, contract.ensures[at].block);
    require((1..contract.ensures.len()).all(|at| key(at - 1) < key(at)), || "ensures ascend".into())?;
    require(!program.rooted && program.root == 0 || program.root < contract.ranks, || {
        "the root is a rank".into()
    })
}

fn cuts(program: &Program) -> Result<(), String> {
    let cuts = &program.cuts.0;
    require(cuts.first() == Some(&Fraction::ZERO), || "cuts start at 0".into())?;
    require(cuts.len() >= 2 && cuts.last() == Some(&Fraction::ONE), || "cuts end at 1".into())?;
    require(cuts.windows(2).all(|pair| pair[0] < pair[1]), || "cuts ascend".into())
}

fn origins(program: &Program) -> Result<(), String> {
    let origins = &program.origins;
    for (at, binding) in origins.bindings.iter().enumerate() {
        let parent = binding.parent == Origins::NO_BINDING || (binding.parent as usize) < at;
        let named = (binding.name as usize) < origins.names.len();
        require(parent && named, || format!("binding {at} names a variable and an earlier binding"))?;
    }
    let bound = |binding| binding == Origins::NO_BINDING || (binding as usize) < origins.bindings.len();
    require(origins.origins.iter().all(|origin| bound(origin.binding)), || "origins name bindings".into())?;
    for (at, call) in origins.calls.iter().enumerate() {
        let parent = call.parent == Origins::NO_CALL || (call.parent as usize) < at;
        require(parent && bound(call.binding), || format!("call {at} names a binding and an earlier call"))?;
    }
    let called = |call| call == Origins::NO_CALL || (call as usize) < origins.calls.len();
    let calls =
        origins.origins.iter().map(|origin| origin.call).chain(origins.idle.iter().map(|idle| idle.call));
    require(calls.into_iter().all(called), || "origins name calls".into())?;
    let known = |origin: u32| (origin as usize) < origins.origins.len();
    require(program.steps.iter().all(|step| known(step.origin)), || "steps have origins".into())?;
    require(program.transfers.iter().all(|transfer| known(transfer.origin)), || {
        "transfers have origins".into()
    })
}

fn steps(program: &Program) -> Result<(), String> {
    let count = program.steps.len() as u32;
    require(program.transfers.is_sorted_by_key(|transfer| transfer.step), || {
        "transfers ascend by step".into()
    })?;
    require(program.transfers.last().is_none_or(|transfer| transfer.step < count), || {
        "steps are in range".into()
    })?;
    let mut open: Vec<u32> = Vec::new();
    for stage in &program.stages {
        open.retain(|&end| end > stage.start);
        let inside = open.last().is_none_or(|&end| stage.end <= end);
        require(stage.start < stage.end && stage.end <= count && inside, || {
            format!("stage {} is a run of steps within its outer stage", stage.name)
        })?;
        open.push(stage.end);
    }
    require(program.stages.is_sorted_by_key(|stage| stage.start), || "stages ascend".into())?;
    let mixed = |pair: &[Transfer]| {
        pair[0].step == pair[1].step && (pair[0].kind == Kind::Drop) != (pair[1].kind == Kind::Drop)
    };
    require(!program.transfers.windows(2).any(mixed), || "drops stand in steps of their own".into())
}

fn ids(program: &Program, transfer: &Transfer) -> Result<(), String> {
    let ranks = program.ranks();
    require(transfer.source.rank < ranks && transfer.target.rank < ranks, || "ranks are in range".into())?;
    if transfer.kind == Kind::Signal {
        let zero = |place: Place| place.buffer == 0 && place.block == 0;
        let bare = zero(transfer.source) && zero(transfer.target) && (transfer.low, transfer.high) == (0, 0);
        return require(bare, || "a signal names no buffer".into());
    }
    for place in [transfer.source, transfer.target] {
        let buffers = program.contract.buffers.len() + program.scratch.len();
        require((place.buffer as usize) < buffers, || format!("buffer {} is declared", place.buffer))?;
        let blocks = program.block_count(place.buffer);
        require(place.block < blocks, || format!("block {} of {blocks}", place.block))?;
    }
    let pieces = program.cuts.pieces();
    require(transfer.low < transfer.high && transfer.high <= pieces, || {
        format!("pieces {}..{} of {pieces}", transfer.low, transfer.high)
    })?;
    require(transfer.class < program.contract.classes.count, || "the class is in range".into())?;
    if !program.is_scratch(transfer.source.buffer) {
        let source = transfer.source;
        let class = program.contract.class(source.rank, source.buffer, source.block);
        require(transfer.class == class, || format!("class {} is the source's, {class}", transfer.class))?;
    }
    let target = transfer.target.buffer as usize;
    let read_only = |decl: &coll_contract::BufferDecl| decl.role == coll_contract::BufferRole::In;
    require(!program.contract.buffers.get(target).is_some_and(read_only), || {
        "an `in` buffer is never written".into()
    })?;
    let drops_itself = transfer.kind != Kind::Drop || transfer.source == transfer.target;
    require(drops_itself, || "a drop's source is its target".into())
}

/// No plain write beside another write to one piece in one step. A scratch slot is written whole.
fn single_writes(program: &Program) -> Result<(), String> {
    let mut writes: Vec<(u32, Place, u32, u32, bool)> = Vec::new();
    for transfer in program.transfers.iter().filter(|transfer| transfer.carries_data()) {
        let whole = program.is_scratch(transfer.target.buffer);
        let (low, high) = if whole { (0, u32::MAX) } else { (transfer.low, transfer.high) };
        writes.push((transfer.step, transfer.target, low, high, transfer.kind == Kind::Move));
    }
    writes.sort_unstable();
    let mut at = None;
    // The furthest reach so far in this step and place, of any write and of a plain one.
    let (mut any, mut plain) = (0, 0);
    for (step, target, low, high, is_plain) in writes {
        if at != Some((step, target)) {
            (at, any, plain) = (Some((step, target)), 0, 0);
        }
        let reach = if is_plain { any } else { plain };
        require(low >= reach, || {
            let name = program.buffer_name(target.buffer);
            format!("step {step} writes {name}[{}] of rank {} twice", target.block, target.rank)
        })?;
        any = any.max(high);
        plain = if is_plain { plain.max(high) } else { plain };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cuts, Origin, Step, Tune};
    use coll_base::Span;
    use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract};

    /// Two ranks with a buffer in two pieces; rank 0 sends the first piece and reduces the second.
    fn program() -> Program {
        let place = |rank| Place { rank, buffer: 0, block: 0 };
        let transfer = |kind, low| Transfer {
            kind,
            step: 0,
            source: place(0),
            target: place(1),
            low,
            high: low + 1,
            class: 0,
            origin: 0,
        };
        let data = BufferDecl { name: "data".into(), role: BufferRole::InOut, blocks: 1 };
        let contract = Contract {
            collective: "any".into(),
            ranks: 2,
            only: None,
            buffers: vec![data],
            given: vec![Blocks::All],
            ensures: Vec::new(),
            values: Vec::new(),
            after: Vec::new(),
            classes: Classes { count: 1, table: vec![0, 0] },
        };
        let origin = Origin { span: Span::default(), binding: Origins::NO_BINDING, call: Origins::NO_CALL };
        Program {
            schedule: "any".into(),
            params: Vec::new(),
            root: 0,
            rooted: false,
            contract,
            scratch: Vec::new(),
            cuts: Cuts(vec![Fraction::ZERO, Fraction::new(1, 2), Fraction::ONE]),
            steps: vec![Step { origin: 0 }],
            transfers: vec![transfer(Kind::Move, 0), transfer(Kind::Reduce, 1)],
            stages: Vec::new(),
            origins: Origins { origins: vec![origin], ..Origins::default() },
            tune: Tune::default(),
        }
    }

    fn check(spoil: impl FnOnce(&mut Program), expected: &str) {
        let mut program = program();
        spoil(&mut program);
        assert_eq!(verify(&program).err().as_deref().unwrap_or("sound"), expected);
    }

    #[test]
    fn a_sound_program_passes_and_each_fault_is_found() {
        check(|_| {}, "sound");
        check(|p| p.transfers[0].source.rank = 2, "transfer 0: ranks are in range");
        check(|p| p.transfers[1].high = 3, "transfer 1: pieces 1..3 of 2");
        check(|p| p.transfers[1].target.buffer = 1, "transfer 1: buffer 1 is declared");
        check(|p| p.transfers[1].step = 1, "steps are in range");
        check(|p| p.transfers[0].class = 1, "transfer 0: the class is in range");
        check(|p| p.transfers[0].origin = 1, "transfers have origins");
        check(|p| p.transfers[0].kind = Kind::Drop, "drops stand in steps of their own");
        check(|p| p.contract.buffers[0].role = BufferRole::In, "transfer 0: an `in` buffer is never written");
        check(|p| p.transfers[1].low = 0, "step 0 writes data[0] of rank 1 twice");
        check(|p| p.cuts.0.swap(0, 1), "cuts start at 0");
    }

    #[test]
    fn two_reductions_into_one_piece_are_sound() {
        check(
            |p| p.transfers.iter_mut().for_each(|t| (t.kind, t.low, t.high) = (Kind::Reduce, 0, 2)),
            "sound",
        );
    }
}
