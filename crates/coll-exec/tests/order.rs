//! Operands keep their sides: operators that are not commutative, and every way in which the three places of a local
//! reduction can be the same memory.

mod plans;

use coll_base::DType;
use coll_contract::{Blocks, BufferRole, Value};
use coll_exec::world::World;
use coll_exec::{Binding, Bound, BufferMemory, Placement, RunOptions};
use coll_kernel::{Binary, Expr, Reducer, UserOperator};
use coll_plan::{Action, Plan, Store};
use plans::{Part, Promise, leaf, library, plan, region};

fn ordered(name: &str, combine: Expr) -> Reducer {
    let operator = UserOperator {
        name: name.into(),
        commutative: false,
        params: vec![],
        combine,
        given: None,
        ensure: None,
    };
    Reducer::user(&operator, DType::F64, &[]).unwrap()
}

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

/// What every rank of a plan ends with, if rank r puts in 10r + 1 and 10r + 2.
fn ends(plan: &Plan, reducer: &Reducer) -> Vec<Vec<f64>> {
    let bind = |rank| {
        let placements = &[Placement::InPlace];
        let reducer = Some(reducer);
        Bound::new(Binding { plan, rank, counts: &[2], element_size_bytes: 8, reducer, placements }).unwrap()
    };
    let mut bounds: Vec<Bound> = (0..plan.world()).map(bind).collect();
    let put_in = |rank| bytes_of(&[f64::from(rank) * 10.0 + 1.0, f64::from(rank) * 10.0 + 2.0]);
    let mut memory: Vec<Vec<u8>> = (0..plan.world()).map(put_in).collect();
    let mut buffers: Vec<Vec<BufferMemory<'_>>> =
        memory.iter_mut().map(|all| vec![BufferMemory::InPlace(all)]).collect();
    for result in World::new(9).link_bytes(5).run(&mut bounds, &mut buffers, 0..1) {
        result.unwrap();
    }
    let read = |bytes: &Vec<u8>| bytes.chunks(8).map(|x| f64::from_ne_bytes(x.try_into().unwrap())).collect();
    memory.iter().map(read).collect()
}

#[test]
fn the_first_and_the_last_operand_stay_first_and_last() {
    let (first, last) = (ordered("first", Expr::Left), ordered("last", Expr::Right));
    assert_eq!(ends(&library::exchange(), &first), [[1.0, 2.0], [1.0, 2.0]]);
    assert_eq!(ends(&library::exchange(), &last), [[11.0, 12.0], [11.0, 12.0]]);
    assert_eq!(ends(&library::scan_chain(3), &first), [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]);
    assert_eq!(ends(&library::scan_chain(3), &last), [[1.0, 2.0], [11.0, 12.0], [21.0, 22.0]]);
    assert_eq!(ends(&library::reduce_chain(3), &first)[0], [1.0, 2.0]);
    assert_eq!(ends(&library::reduce_chain(3), &last)[0], [21.0, 22.0]);
}

/// One rank with three blocks, and one reduction among them.
fn reduction(target: u32, operand: u32, source: u32, left: bool) -> Plan {
    let mut promise = Promise::new("three", 1).buffer("data", BufferRole::InOut, 3, Blocks::All);
    (0..3).for_each(|block| promise.ensure(0, 0, block, Value::Reduce(vec![leaf(0, 0, block)])));
    let mut part = Part::new(0);
    let block = |block| [region(Store::Out(0), block, 0..1, 0), region(Store::Out(0), block, 1..2, 0)];
    part.lane().op(Action::Reduce { left }, [&block(source), &block(operand), &block(target)], &[]);
    plan("three.reduction", promise.classes(|_, _, _| 0), 2, vec![part])
}

#[test]
fn a_local_reduction_does_not_mind_which_places_are_one() {
    let minus = ordered("minus", Expr::Binary(Binary::Sub, Expr::Left.into(), Expr::Right.into()));
    // More than a staging buffer and more than a turn hold.
    let elements = 150_001;
    let value = |block: u32, element: usize| (element % 1000) as f64 * 3.0 + f64::from(block) * 1e6;
    for case in 0..54 {
        let [target, operand, source] = [case % 3, case / 3 % 3, case / 9 % 3];
        let left = case >= 27;
        let plan = reduction(target, operand, source, left);
        let (counts, placements) = ([elements as u64], [Placement::InPlace]);
        let binding = Binding {
            plan: &plan,
            rank: 0,
            counts: &counts,
            element_size_bytes: 8,
            reducer: Some(&minus),
            placements: &placements,
        };
        let mut memory: Vec<u8> =
            (0..3).flat_map(|block| (0..elements).flat_map(move |i| value(block, i).to_ne_bytes())).collect();
        let mut nobody = World::new(0);
        let mut buffers = [vec![BufferMemory::InPlace(&mut memory)]];
        let ends = nobody.run(&mut [Bound::new(binding).unwrap()], &mut buffers, 0..1);
        ends.into_iter().for_each(|end| end.unwrap());
        for (at, found) in memory.chunks(8).enumerate() {
            let (block, element) = ((at / elements) as u32, at % elements);
            let (a, b) = (value(operand, element), value(source, element));
            let reduced = if left { b - a } else { a - b };
            let due = if block == target { reduced } else { value(block, element) };
            let found = f64::from_ne_bytes(found.try_into().unwrap());
            assert_eq!(found, due, "{target} := {operand} - {source}, left {left}, block {block}[{element}]");
        }
    }
}

#[test]
fn a_run_that_has_ended_stays_ended() {
    let plan = library::ring(1);
    let (counts, placements) = ([1], [Placement::InPlace]);
    let reducer = ordered("first", Expr::Left);
    let binding = Binding {
        plan: &plan,
        rank: 0,
        counts: &counts,
        element_size_bytes: 8,
        reducer: Some(&reducer),
        placements: &placements,
    };
    let mut bound = Bound::new(binding).unwrap();
    let mut all = [0; 8];
    let mut buffers = [BufferMemory::InPlace(&mut all)];
    let mut nothing = plans::Nothing;
    let mut running = bound.begin(&mut buffers, RunOptions::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(running.advance(&mut nothing).unwrap(), coll_exec::Progress::Done);
    }
}
