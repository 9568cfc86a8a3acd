//! The text of users' operators, compiled by a host's C++ compiler, against the interpreter: those that people write and
//! random ones, on every type, as elements are and accumulated in `f32`. Which NaN comes of an operator is not said.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod native;
mod operators;
#[path = "../../coll-jit/tests/random/mod.rs"]
#[allow(dead_code)]
mod random;
mod stage;
mod values;

use coll_base::DType;
use coll_cuda::{ARITIES, Kernels, source_of};
use coll_kernel::{Binary, Expr, Reducer, UserOperator};
use native::HostModule;
use random::Random;
use stage::Stage;
use values::{Nan, difference, elements, special_pairs};

/// An operator for a type, and its text under names of its own.
struct Case {
    what: String,
    reducer: Reducer,
    kernels: Kernels,
    number: usize,
    arities: &'static [usize],
}

/// Many operators in one library: what all texts share is compiled once.
#[derive(Default)]
struct Cases {
    cases: Vec<Case>,
    text: String,
    /// Leave out what is accumulated in `f32`.
    without_f32: bool,
}

impl Cases {
    fn add(&mut self, operator: &UserOperator, dtype: DType, params: &[f64]) -> bool {
        let Ok(reducer) = Reducer::user(operator, dtype, params) else { return false };
        let wide = if self.without_f32 { None } else { reducer.in_f32() };
        for reducer in wide.into_iter().chain([reducer]) {
            let (kernels, number) = (Kernels::of(&reducer).unwrap(), self.cases.len());
            let source = kernels.source().unwrap();
            let shared = source_of(&[]);
            let own = source.strip_prefix(shared.strip_suffix("using namespace collc;\n").unwrap()).unwrap();
            let mut own = own.replace("collc_user_", &format!("case{number}_"));
            for word in ["User", "Given", "Ensure"] {
                own = own.replace(word, &format!("{word}{number}"));
            }
            // All arities are one template: of most operators one will do, for compilers take their time.
            let arities: &'static [usize] = if number.is_multiple_of(6) { &ARITIES } else { &ARITIES[..1] };
            for part in own.split_inclusive("}\n\n") {
                let left_out = ARITIES.iter().filter(|arity| !arities.contains(arity));
                let mut names = left_out.map(|arity| format!("COLLC_ENTRY(case{number}_combine{arity},"));
                if !names.any(|name| part.starts_with(&name)) {
                    self.text.push_str(part);
                }
            }
            let what = format!("{operator:?} with {params:?} on {dtype}, in f32: {}", reducer.is_in_f32());
            self.cases.push(Case { what, reducer, kernels, number, arities });
        }
        true
    }

    fn run(&self, random: &mut Random, rounds: usize) {
        let shared = source_of(&[]);
        let Some(module) = HostModule::compile(&(shared + &self.text)) else { return };
        for case in &self.cases {
            for &sources in case.arities {
                for round in 0..rounds {
                    case.combines(random, &module, sources, round);
                }
            }
            for _ in 0..rounds {
                case.prepares_and_finishes(random, &module);
            }
        }
    }
}

impl Case {
    fn name(&self, name: &str) -> String {
        name.replace("collc_user_", &format!("case{}_", self.number))
    }

    fn working(&self) -> DType {
        self.reducer.working_dtype().unwrap()
    }

    fn combines(&self, random: &mut Random, module: &HostModule, sources: usize, round: usize) {
        let (parts, count) = ([self.working()], random.below(70));
        let columns: Vec<Vec<u8>> = (0..sources).map(|_| elements(random, &parts, count)).collect();
        let mut stage = Stage::new(random, &parts);
        let operands: Vec<usize> = columns.iter().map(|column| stage.input(column)).collect();
        let target = match operands.get(round % (sources + 1)) {
            Some(&source) => source,
            None => stage.output(columns[0].len()),
        };
        let (arguments, output) = stage.combine(target, &operands, count);
        let all: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
        let mut due = vec![0; columns[0].len()];
        self.reducer.combine_many(&mut due, &all);
        let name = self.name(self.kernels.combine(sources).unwrap());
        let found = stage.launch(module, &name, &arguments, output);
        let differs = difference(&parts, Nan::Any, &due, &found);
        assert_eq!(differs, None, "{sources} operands of {}", self.what);
    }

    fn prepares_and_finishes(&self, random: &mut Random, module: &HostModule) {
        let (memory, working) = (self.reducer.dtype(), self.working());
        for (name, from, to) in
            [(self.kernels.prepare(), memory, working), (self.kernels.finish(), working, memory)]
        {
            let is_prepare = name == self.kernels.prepare();
            let Some(name) = name else { continue };
            let count = random.below(70);
            let input = elements(random, &[from], count);
            let mut due = vec![0; count * to.size_bytes() as usize];
            if is_prepare {
                self.reducer.prepare(1, &input, &mut due);
            } else {
                self.reducer.finish(1, 1, &input, &mut due);
            }
            let widest = if from.size_bytes() > to.size_bytes() { from } else { to };
            let mut stage = Stage::new(random, &[widest]);
            let source = stage.input(&input);
            let target = stage.output(due.len());
            let (arguments, output) = stage.map(target, due.len(), source, input.len(), count, &[]);
            let found = stage.launch(module, &self.name(name), &arguments, output);
            assert_eq!(difference(&[to], Nan::Any, &due, &found), None, "{name} of {}", self.what);
        }
    }
}

#[test]
fn operators_that_people_write() {
    let mut cases = Cases::default();
    for operator in operators::operators() {
        let params: Vec<f64> = (0..operator.params.len()).map(|index| 3.0 + index as f64).collect();
        let works = DType::ALL.into_iter().filter(|&dtype| cases.add(&operator, dtype, &params)).count();
        assert!(works >= 6, "{} works on {works} types", operator.name);
    }
    cases.run(&mut Random::seeded(), 6);
}

#[test]
fn random_operators() {
    let (mut random, mut cases) = (Random::seeded(), Cases::default());
    for dtype in DType::ALL {
        for _ in 0..5 {
            let (operator, params) = random.operator(dtype);
            cases.add(&operator, dtype, &params);
        }
    }
    assert!(cases.cases.len() > 50, "only {} operators suit their types", cases.cases.len());
    cases.run(&mut random, 3);
}

/// Each operator on two operands alone, on special values beside special values; all pairs of bytes are among them.
#[test]
fn every_function_on_special_values() {
    use Binary::{
        Add, BitAnd, BitOr, BitXor, Div, Eq, Ge, Gt, Le, Lt, Max, Min, Mod, Mul, Ne, Shl, Shr, Sub,
    };
    let mut cases = Cases { without_f32: true, ..Cases::default() };
    let all = [Add, Sub, Mul, Div, Mod, Min, Max, BitAnd, BitOr, BitXor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge];
    for dtype in DType::ALL {
        for op in all {
            let both = Expr::Binary(op, Expr::Left.into(), Expr::Right.into());
            let compares = matches!(op, Eq | Ne | Lt | Le | Gt | Ge);
            let combine =
                if compares { Expr::If(both.into(), Expr::Int(1).into(), Expr::Int(0).into()) } else { both };
            let (given, ensure) = (None, None);
            let name = format!("{op:?}");
            let operator = UserOperator { name, commutative: false, params: vec![], combine, given, ensure };
            cases.add(&operator, dtype, &[]);
        }
    }
    let Some(module) = HostModule::compile(&(source_of(&[]) + &cases.text)) else { return };
    for case in &cases.cases {
        let working = case.working();
        let [a, b] = special_pairs(working);
        let count = a.len() / working.size_bytes() as usize;
        let mut stage = Stage::aligned(&[working], false);
        let operands = [stage.input(&a), stage.input(&b)];
        let (arguments, output) = stage.combine(operands[0], &operands, count);
        let mut due = a.clone();
        case.reducer.combine_into(&mut due, None, &b, false);
        let name = case.name(case.kernels.combine(2).unwrap());
        let found = stage.launch(&module, &name, &arguments, output);
        assert_eq!(difference(&[working], Nan::Any, &due, &found), None, "{}", case.what);
    }
}

#[test]
fn constants_are_those_of_the_type() {
    const TYPES: [DType; 8] =
        [DType::I8, DType::U8, DType::U32, DType::I64, DType::U64, DType::F8E5M2, DType::F32, DType::F64];
    let whole = [0, -1, 255, 16_777_217, i64::from(i32::MIN), i64::MAX, i64::MIN + 1, i64::MIN];
    let real = [0.1, -0.0, 1e-45, 1e300, f64::NAN, f64::NEG_INFINITY];
    let params = [255.0, -3.0, 1.844_674_407_370_955e19, 0.7];
    let constants = whole.map(Expr::Int).into_iter().chain(real.map(Expr::Float));
    let constants = constants.map(|constant| (constant, 0.0));
    let mut cases = Cases { without_f32: true, ..Cases::default() };
    for (constant, param) in constants.chain(params.map(|param| (Expr::Param(0), param))) {
        let combine = Expr::Binary(Binary::Sub, constant.into(), Expr::Right.into());
        let (name, params, given, ensure) = ("constant".into(), vec!["k".into()], None, None);
        let operator = UserOperator { name, commutative: false, params, combine, given, ensure };
        for dtype in TYPES {
            cases.add(&operator, dtype, &[param]);
        }
    }
    assert!(cases.cases.len() > 60, "only {} constants suit their types", cases.cases.len());
    cases.run(&mut Random::seeded(), 1);
}

#[test]
fn operators_that_are_too_large_are_refused_in_words() {
    fn sum(leaves: usize) -> Expr {
        match leaves {
            1 => Expr::Left,
            _ => Expr::Binary(Binary::Add, sum(leaves / 2).into(), sum(leaves - leaves / 2).into()),
        }
    }
    let (given, ensure) = (None, None);
    let large = UserOperator {
        name: "large".into(),
        commutative: true,
        params: vec![],
        combine: sum(3000),
        given,
        ensure,
    };
    let reducer = Reducer::user(&large, DType::F32, &[]).unwrap();
    assert_eq!(
        Kernels::of(&reducer).unwrap_err().to_string(),
        "operator `large` does not work on f32: it has 5999 operations, constants and operands, and 4000 are the most for a GPU"
    );
}

/// What runs a user's kernels on a host finds in the library how wide elements are.
#[test]
fn a_host_is_told_how_wide_elements_are() {
    let operators = operators::operators();
    let reducer = Reducer::user(&operators[1], DType::Bf16, &[]).unwrap();
    for (reducer, working) in [(reducer.in_f32().unwrap(), 4), (reducer, 2)] {
        let source = Kernels::of(&reducer).unwrap().source().unwrap().to_string();
        let line = format!("collc_user_working_bytes = {working}, collc_user_element_bytes = 2;");
        let before = source.split(&line).next().unwrap();
        assert!(before.len() < source.len(), "{line}");
        assert!(before.ends_with("#ifdef COLLC_HOST\nextern \"C\" {\ncollc::u64 "));
    }
}
