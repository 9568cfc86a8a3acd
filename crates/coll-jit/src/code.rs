//! Finished code: where it is put into memory, called, and given back. The one file of this crate with unsafe code, for
//! calling what the compiler of this program does not know, and for freeing it.
#![allow(unsafe_code)]

use crate::JitError;
use crate::element::Element;
use crate::float::remainder_function;
use crate::loops;
use crate::lower::Body;
use crate::machine::Machine;
use cranelift_codegen::ir::{AbiParam, FuncRef, Function};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITMemoryProvider, JITModule, SystemMemoryProvider};
use cranelift_module::{FuncId, Linkage, Module};
use std::sync::Mutex;

/// What `loops` writes: target, the two operands, bytes of each.
type Loop = unsafe extern "C" fn(*mut u8, *const u8, *const u8, i64);

/// Where code is put.
pub(crate) struct Memory(Box<dyn JITMemoryProvider + Send>);

impl Memory {
    /// Pages of the system, written first and then made executable: never both at once.
    pub(crate) fn system() -> Memory {
        Memory(Box::new(SystemMemoryProvider::new()))
    }
}

/// The loops of an operator.
pub(crate) struct Code {
    combine: Loop,
    given: Option<Loop>,
    ensure: Option<Loop>,
    element_size_bytes: usize,
    /// Holds what the loops point to.
    _owner: Mutex<Owner>,
}

/// A module whose memory goes with it, whether code was finished or making it failed half-way: by itself Cranelift would
/// leave finished code in memory for good.
struct Owner(Option<JITModule>);

impl Owner {
    fn module(&mut self) -> &mut JITModule {
        self.0.as_mut().expect("invariant: it is taken by drop alone")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(module) = self.0.take() {
            // SAFETY: `Code` owns this beside the pointers into it, and lends none of them out; a call borrows `Code`. So
            // none runs now, and none can be made later.
            unsafe { module.free_memory() };
        }
    }
}

impl Code {
    /// Compiles the loops of `combine`, `given` and `ensure`.
    pub(crate) fn new(
        memory: Memory,
        machine: &Machine,
        element: Element,
        bodies: &[Option<Body>; 3],
    ) -> Result<Code, JitError> {
        let mut builder =
            JITBuilder::with_isa(machine.isa.clone(), cranelift_module::default_libcall_names());
        builder.memory_provider(memory.0);
        if let Some((name, address)) = remainder_function(element.number) {
            builder.symbol(name, address);
        }
        let mut owner = Owner(Some(JITModule::new(builder)));
        let mut functions = [None; 3];
        for (function, body) in functions.iter_mut().zip(bodies) {
            *function =
                body.as_ref().map(|body| define(owner.module(), machine, element, body)).transpose()?;
        }
        owner.module().finalize_definitions()?;
        let [combine, given, ensure] = functions.map(|function| {
            function.map(|function: FuncId| {
                let address = owner.module().get_finalized_function(function);
                // SAFETY: the address is that of a function with the signature of `loops::signature`, which is `Loop`'s.
                unsafe { std::mem::transmute::<*const u8, Loop>(address) }
            })
        });
        Ok(Code {
            combine: combine.expect("invariant: every operator combines"),
            given,
            ensure,
            element_size_bytes: element.size_bytes() as usize,
            _owner: Mutex::new(owner),
        })
    }

    /// `target := a ⊕ b`; where an operand is not given it is the target itself.
    pub(crate) fn combine(&self, target: &mut [u8], a: Option<&[u8]>, b: Option<&[u8]>) {
        self.call(self.combine, target, a, b);
    }

    /// `given`, or a copy.
    pub(crate) fn prepare(&self, input: &[u8], working: &mut [u8]) {
        self.one(self.given, input, working);
    }

    /// `ensure`, or a copy.
    pub(crate) fn finish(&self, working: &[u8], output: &mut [u8]) {
        self.one(self.ensure, working, output);
    }

    fn one(&self, function: Option<Loop>, from: &[u8], to: &mut [u8]) {
        match function {
            Some(function) => self.call(function, to, Some(from), Some(from)),
            None => to.copy_from_slice(from),
        }
    }

    fn call(&self, function: Loop, target: &mut [u8], a: Option<&[u8]>, b: Option<&[u8]>) {
        for operand in [a, b].into_iter().flatten() {
            assert_eq!(operand.len(), target.len(), "an operand is as long as its target");
        }
        let bytes = target.len() - target.len() % self.element_size_bytes;
        let to = target.as_mut_ptr();
        let [a, b] = [a, b].map(|operand| operand.map_or(to.cast_const(), <[u8]>::as_ptr));
        // SAFETY: the function reads `bytes` bytes from each operand and writes as many to the target, at any alignment.
        // Target and operands are at least so long. An operand is the target itself or, being a shared slice beside an
        // exclusive one, apart from it; of the first kind each element is read before it is written. The code lives as
        // long as `self`. Slices have at most `isize::MAX` bytes, so the length fits.
        unsafe { function(to, a, b, bytes as i64) };
    }
}

/// Compiles one function.
fn define(
    module: &mut JITModule,
    machine: &Machine,
    element: Element,
    body: &Body,
) -> Result<FuncId, JitError> {
    let signature = loops::signature(machine.isa.default_call_conv());
    let id = module.declare_anonymous_function(&signature)?;
    let mut context = module.make_context();
    context.func.signature = signature;
    let remainder = declare_remainder(module, machine, element, &mut context.func)?;
    let mut builder_context = FunctionBuilderContext::new();
    loops::write(&mut context.func, &mut builder_context, element, body, machine.vectors, remainder);
    module.define_function(id, &mut context)?;
    Ok(id)
}

fn declare_remainder(
    module: &mut JITModule,
    machine: &Machine,
    element: Element,
    function: &mut Function,
) -> Result<Option<FuncRef>, JitError> {
    let Some((name, _)) = remainder_function(element.number) else { return Ok(None) };
    let number = AbiParam::new(element.number.scalar());
    let mut signature = module.make_signature();
    signature.call_conv = machine.isa.default_call_conv();
    signature.params.extend([number; 2]);
    signature.returns.push(number);
    let id = module.declare_function(name, Linkage::Import, &signature)?;
    Ok(Some(module.declare_func_in_func(id, function)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NativeOperator, compile_in};
    use coll_base::DType;
    use coll_kernel::{Binary, Expr, Reducer, UserCode, UserOperator};
    use cranelift_jit::BranchProtection;
    use cranelift_module::{ModuleError, ModuleResult};
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Refuses at one of its calls, and counts what it was asked to free.
    struct Provider {
        inner: SystemMemoryProvider,
        refuses_pages: bool,
        refuses_execution: bool,
        freed: Arc<AtomicUsize>,
    }

    impl Provider {
        fn memory(refuses_pages: bool, refuses_execution: bool) -> (Memory, Arc<AtomicUsize>) {
            let freed = Arc::new(AtomicUsize::new(0));
            let provider = Provider {
                inner: SystemMemoryProvider::new(),
                refuses_pages,
                refuses_execution,
                freed: freed.clone(),
            };
            (Memory(Box::new(provider)), freed)
        }
    }

    impl JITMemoryProvider for Provider {
        fn allocate_readexec(&mut self, size: usize, align: u64) -> io::Result<*mut u8> {
            match self.refuses_pages {
                true => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
                false => self.inner.allocate_readexec(size, align),
            }
        }

        fn allocate_readwrite(&mut self, size: usize, align: u64) -> io::Result<*mut u8> {
            self.inner.allocate_readwrite(size, align)
        }

        fn allocate_readonly(&mut self, size: usize, align: u64) -> io::Result<*mut u8> {
            self.inner.allocate_readonly(size, align)
        }

        unsafe fn free_memory(&mut self) {
            self.freed.fetch_add(1, Ordering::SeqCst);
            // SAFETY: handed on as it is.
            unsafe { self.inner.free_memory() };
        }

        fn finalize(&mut self, branch_protection: BranchProtection) -> ModuleResult<()> {
            match self.refuses_execution {
                true => Err(ModuleError::Backend(io::Error::from(io::ErrorKind::PermissionDenied).into())),
                false => self.inner.finalize(branch_protection),
            }
        }
    }

    fn sum() -> UserOperator {
        let combine = Expr::Binary(Binary::Add, Expr::Left.into(), Expr::Right.into());
        let (params, given, ensure) = (vec![], None, None);
        UserOperator { name: "f".into(), commutative: true, params, combine, given, ensure }
    }

    fn compiled(memory: Memory) -> Result<NativeOperator, JitError> {
        compile_in(memory, &Machine::this().unwrap(), &sum(), DType::I32, &[])
    }

    #[test]
    fn memory_that_is_refused_is_an_error_and_leaves_nothing_behind() {
        for (pages, execution) in [(true, false), (false, true)] {
            let (memory, freed) = Provider::memory(pages, execution);
            let error = compiled(memory).err().expect("it cannot be compiled");
            assert!(matches!(error, JitError::Memory { .. }), "{error:?}");
            let text = error.to_string();
            assert!(text.starts_with("the system gives no executable memory: "), "{text}");
            assert!(text.contains("permission denied"), "{text}");
            assert_eq!(freed.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn memory_goes_with_the_last_reducer() {
        let (memory, freed) = Provider::memory(false, false);
        let code = compiled(memory).unwrap();
        let reducer = Reducer::user_native(&sum(), DType::I32, &[], Arc::new(code)).unwrap();
        let last = reducer.clone();
        drop(reducer);
        assert_eq!(freed.load(Ordering::SeqCst), 0);
        let mut target = 5i32.to_ne_bytes();
        last.combine_into(&mut target, None, &7i32.to_ne_bytes(), false);
        assert_eq!(i32::from_ne_bytes(target), 12);
        drop(last);
        assert_eq!(freed.load(Ordering::SeqCst), 1);
    }

    #[test]
    #[should_panic(expected = "an operand is as long as its target")]
    fn operands_of_another_length_are_not_read() {
        let code = compiled(Memory::system()).unwrap();
        code.combine(&mut [0; 8], Some(&[0; 4]), None);
    }
}
