//! A process that the system lets make nothing executable: compiling is an error, and the interpreter serves.
//!
//! This asks the system to refuse for good, so it is alone in its process.
#![allow(unsafe_code)]
#![allow(clippy::print_stdout)]
#![cfg(target_os = "linux")]

use coll_base::DType;
use coll_jit::{JitError, compile};
use coll_kernel::{Binary, Expr, Reducer, UserOperator};

/// `PR_SET_MDWE` with `PR_MDWE_REFUSE_EXEC_GAIN`: memory that was writable never becomes executable. Linux 6.3.
const MEMORY_DENY_WRITE_EXECUTE: libc::c_int = 65;
const REFUSE_EXECUTABLE_GAIN: libc::c_ulong = 1;

#[test]
fn where_nothing_becomes_executable_there_is_an_error_and_the_interpreter() {
    let combine = Expr::Binary(Binary::Max, Expr::Left.into(), Expr::Right.into());
    let (params, given, ensure) = (vec![], None, None);
    let operator = UserOperator { name: "f".into(), commutative: true, params, combine, given, ensure };
    compile(&operator, DType::I32, &[]).expect("as yet it compiles");

    let none: libc::c_ulong = 0;
    // SAFETY: it takes numbers alone, and only forbids this process later changes of memory.
    let status = unsafe { libc::prctl(MEMORY_DENY_WRITE_EXECUTE, REFUSE_EXECUTABLE_GAIN, none, none, none) };
    if status != 0 {
        println!("this system cannot be asked to refuse: {}", std::io::Error::last_os_error());
        return;
    }
    for _ in 0..3 {
        let error = compile(&operator, DType::I32, &[]).err().expect("nothing can be made executable");
        assert!(matches!(error, JitError::Memory { .. }), "{error:?}");
        println!("{error}");
    }
    let reducer = Reducer::user(&operator, DType::I32, &[]).unwrap();
    let mut target = 3i32.to_ne_bytes();
    reducer.combine_into(&mut target, None, &8i32.to_ne_bytes(), false);
    assert_eq!(i32::from_ne_bytes(target), 8);
}
