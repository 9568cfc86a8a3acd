//! Every operator on every type, on devices: built-in ones by the kernels' names, users' own by their generated text.

use crate::support::devices::{LIMIT, Memory, check, dealt, machine, prepare};
use crate::support::{Call, Case, plan, seed};
use coll::trial::Operator;
use coll::{Options, Source};
use coll_base::{DType, RedOp};
use coll_gpu::{Compile, GpuError, Group, GroupError};
use std::process::Command;
use std::sync::Arc;

#[test]
fn every_operator_on_every_type() {
    let seed = seed();
    let options = [
        Options::default(),
        Options { accumulate: Some(DType::F32), ..Options::default() },
        Options { wire: Some(DType::F16), ..Options::default() },
    ];
    for (at, options) in options.iter().enumerate() {
        let plan = plan("allreduce", "two_shot", 4, 0, options).expect("it applies");
        let pairs = RedOp::ALL.into_iter().flat_map(|op| DType::ALL.map(|dtype| Case::of(op, dtype)));
        for (number, case) in pairs.flatten().enumerate() {
            let case = Case { seed, in_place: number % 2 == 0, ..case };
            check(&Call::new(&plan, &case), 1 + number % 2, (number + at) % 3 > 0, seed);
        }
    }
}

/// Whatever is shipped can be tried: the stand-in knows every kernel by its name, and its arguments as the text has them.
#[test]
fn every_kernel_that_is_shipped_is_known_without_a_device() {
    let session = machine(1, true, 1);
    {
        let context = cudarc::driver::CudaContext::new(0).expect("the device opens");
        let text = cudarc::nvrtc::Ptx::from_src(coll_cuda::builtin_ptx());
        let module = context.load_module(text).expect("it is PTX");
        for entry in coll_cuda::builtin_entries() {
            let found = module.load_function(entry.name());
            found.unwrap_or_else(|error| panic!("{}: {error:?}", entry.name()));
        }
    }
    session.verdict().expect("nothing is wrong");
}

/// A host's C++ compiler in the place of NVRTC: the generated text itself runs.
struct WithHost {
    compiler: &'static str,
}

impl Compile for WithHost {
    fn compile(&self, operator: &str, source: &str, _: (u32, u32)) -> Result<Vec<u8>, GpuError> {
        let failed = |log: String| GpuError::Compile { operator: operator.to_string(), log };
        let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let [text, library] = ["operator.cu", "operator.so"].map(|name| folder.path().join(name));
        std::fs::write(&text, source).map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(self.compiler);
        command.args(["-x", "c++", "-O1", "-shared", "-fPIC"]).args(coll_cuda::HOST_OPTIONS);
        let output = command.arg("-o").arg(&library).arg(&text).output();
        let output = output.map_err(|error| failed(error.to_string()))?;
        match output.status.success() {
            true => std::fs::read(&library).map_err(|error| failed(error.to_string())),
            false => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }
}

const OPERATORS: &str = "operator clamped(a, b) = min(a + b, 100)
operator halves(a, b) = a + b given x: x / 2 ensure x: x * 3
";

fn operators() -> Vec<Operator> {
    let source = Source::from_text("mine.coll", OPERATORS);
    assert!(source.diagnostics.is_empty(), "{:?}", source.diagnostics);
    let declared = source.module.operators();
    declared.iter().map(|operator| Operator::User(operator.clone(), Vec::new())).collect()
}

#[test]
fn operators_of_ones_own_run_as_their_generated_text() {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let Some(compiler) = ["c++", "g++", "clang++"].into_iter().find(runs) else {
        println!("SKIPPED: no c++, g++ or clang++ on PATH");
        return;
    };
    let seed = seed();
    for accumulate in [None, Some(DType::F32)] {
        let options = Options { accumulate, ..Options::default() };
        let plan = plan("allreduce", "ring", 3, 0, &options).expect("it applies");
        for operator in operators() {
            let dtype = if accumulate.is_some() { DType::Bf16 } else { DType::F64 };
            let case = Case { operator, dtype, elements: 61, in_place: false, seed };
            let call = Call::new(&plan, &case);
            let session = machine(2, true, seed);
            {
                let group = Group::new(&dealt(3, 2)).expect("the devices open");
                let group = group.compiler(Arc::new(WithHost { compiler }));
                let memory = Memory::new(&group, &call);
                let mut prepared = prepare(&group, &call);
                prepared.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
                prepared.wait(LIMIT).expect("it ends");
                assert!(memory.outputs() == call.on_cpu(), "{:?}", call.case);
            }
            session.verdict().unwrap_or_else(|verdict| panic!("{:?}: {verdict}", call.case));
        }
    }
}

/// Without a compiler an operator of one's own is refused by name, and a built-in one is not.
#[test]
fn no_compiler_is_told() {
    let plan = plan("allreduce", "ring", 2, 0, &Options::default()).expect("it applies");
    let operator = operators().remove(0);
    let case = Case { operator, dtype: DType::F32, elements: 9, in_place: false, seed: 1 };
    let call = Call::new(&plan, &case);
    let _session = machine(1, true, 1);
    let group = Group::new(&[0, 0]).expect("the device opens");
    if coll_gpu::probe().expect("there is a stand-in").nvrtc.is_ok() {
        println!("SKIPPED: there is an NVRTC here");
        return;
    }
    let stream_plan = crate::support::devices::stream_plan(&group, &call).expect("it makes a stream plan");
    let refused = group.prepare_stream_plan(stream_plan).expect_err("nothing compiles it");
    let GroupError::Enqueue { fault, .. } = &refused else { panic!("{refused}") };
    assert!(matches!(&**fault, GpuError::NoNvrtc { operator, .. } if operator == "clamped"), "{refused}");
}
