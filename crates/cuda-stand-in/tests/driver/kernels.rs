//! Kernels by name give what `coll-kernel` gives; an image of the host runs as it is.

use crate::support::*;
use coll_base::{DType, RedOp};
use coll_kernel::{Cast, Reducer};
use std::io::Write;
use std::process::Command;

/// Some bytes, and the same for good.
fn some(bytes: usize, salt: u8) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(37).wrapping_add(salt)).collect()
}

/// Device memory that holds these bytes.
fn device(content: &[u8]) -> u64 {
    let at = malloc(content.len().max(1)).unwrap();
    put(at, content).unwrap();
    at
}

#[test]
fn every_operator_and_type_combines_as_on_the_processor() {
    let (session, context) = machine(4);
    let stream = context.new_stream().unwrap();
    let mut kinds = 0;
    for op in RedOp::ALL {
        for dtype in DType::ALL {
            let Ok(reducer) = Reducer::builtin(op, dtype) else { continue };
            if !reducer.is_direct() {
                continue;
            }
            let width = dtype.size_bytes() as usize;
            for sources in [2, 3, 4, 8] {
                let name = format!("collc_combine{sources}_{op}_{dtype}");
                let inputs: Vec<Vec<u8>> = (0..sources).map(|i| some(7 * width, i as u8)).collect();
                let addresses: Vec<u64> = inputs.iter().map(|input| device(input)).collect();
                // The first source is the target too.
                let arguments = [&addresses[..1], &addresses, &[7]].concat();
                launch(kernel(&name).unwrap(), &arguments, stream.cu_stream()).unwrap();
                stream.synchronize().unwrap();
                let mut due = vec![0; 7 * width];
                let operands: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
                reducer.combine_many(&mut due, &operands);
                assert_eq!(bytes(addresses[0], due.len()).unwrap(), due, "{name}");
                addresses.into_iter().for_each(|at| cu!(cuMemFree_v2(at)).unwrap());
                kinds += 1;
            }
        }
    }
    assert!(kinds > 400, "only {kinds} kernels");
    clean(&session);
}

#[test]
fn averages_and_scaled_sums_are_prepared_combined_and_finished() {
    let (session, context) = machine(5);
    let stream = context.new_stream().unwrap();
    let mut kinds = 0;
    for (op, params) in [(RedOp::Avg, vec![]), (RedOp::PremulSum, vec![3.0])] {
        for dtype in DType::ALL {
            let Ok(reducer) = Reducer::builtin_with(op, dtype, &params) else { continue };
            let (width, working) = (dtype.size_bytes() as usize, reducer.working_size_bytes() as usize);
            let input = some(9 * width, 3);
            let (at, made, out) = (device(&input), malloc(9 * working).unwrap(), malloc(9 * width).unwrap());
            let factor = params.first().copied().unwrap_or(0.0).to_bits();
            let stream = stream.cu_stream();
            let name = format!("collc_prepare_{op}_{dtype}");
            launch(kernel(&name).unwrap(), &[made, at, 9, 3, factor], stream).unwrap();
            let element = match (reducer.working_dtype(), dtype, working) {
                (Some(dtype), ..) => dtype.to_string(),
                (None, DType::U8 | DType::U16, 4) => "u32".into(),
                (None, DType::U32, 8) => "u64".into(),
                (None, DType::U64, 16) => "u128".into(),
                (None, _, bytes) => format!("i{}", bytes * 8),
            };
            let combine = format!("collc_combine2_sum_{element}");
            launch(kernel(&combine).unwrap(), &[made, made, made, 9], stream).unwrap();
            let name = format!("collc_finish_{op}_{dtype}");
            launch(kernel(&name).unwrap(), &[out, made, 9, 3, 2], stream).unwrap();
            sync(stream).unwrap();
            let (mut prepared, mut due) = (vec![0; 9 * working], vec![0; 9 * width]);
            reducer.prepare(3, &input, &mut prepared);
            let twice = prepared.clone();
            reducer.combine_into(&mut prepared, None, &twice, false);
            reducer.finish(3, 2, &prepared, &mut due);
            assert_eq!(bytes(out, due.len()).unwrap(), due, "{op} of {dtype}");
            kinds += 1;
        }
    }
    assert!(kinds > 25, "only {kinds}");
    clean(&session);
}

#[test]
fn floats_are_cast_and_bytes_copied() {
    let (session, context) = machine(6);
    let kept = context.new_stream().unwrap();
    let stream = kept.cu_stream();
    let floats = DType::ALL.into_iter().filter(|dtype| dtype.is_float());
    for (from, to) in floats.clone().flat_map(|from| floats.clone().map(move |to| (from, to))) {
        let (narrow, wide) = (Cast::narrowing(from, to), Cast::narrowing(to, from));
        if narrow.is_none() && wide.is_none() {
            continue;
        }
        let input = some(10 * from.size_bytes() as usize, 1);
        let (at, out) = (device(&input), malloc(10 * to.size_bytes() as usize).unwrap());
        launch(kernel(&format!("collc_cast_{from}_{to}")).unwrap(), &[out, at, 10], stream).unwrap();
        sync(stream).unwrap();
        let mut due = vec![0; 10 * to.size_bytes() as usize];
        match (narrow, wide) {
            (Some(cast), _) => cast.narrow(&input, &mut due),
            (_, Some(cast)) => cast.widen(&input, &mut due),
            _ => {}
        }
        assert_eq!(bytes(out, due.len()).unwrap(), due, "{from} to {to}");
    }
    let (at, out) = (device(&some(33, 2)), malloc(33).unwrap());
    launch(kernel("collc_copy").unwrap(), &[out, at, 33], stream).unwrap();
    sync(stream).unwrap();
    assert_eq!(bytes(out, 33).unwrap(), some(33, 2));
    clean(&session);
}

#[test]
fn nothing_is_combined_without_elements() {
    let (session, context) = machine(0);
    launch(kernel("collc_combine2_sum_f32").unwrap(), &[0, 0, 0, 0], context.default_stream().cu_stream())
        .unwrap();
    context.synchronize().unwrap();
    assert_eq!(session.stats().launches, 1);
    clean(&session);
}

/// A library of kernels, if there is a host compiler.
fn compiled(text: &str) -> Option<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("cuda-stand-in-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("kernels.cc"), folder.join("kernels.so"));
    std::fs::write(&source, text).unwrap();
    let command =
        Command::new("c++").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).status();
    let made = command.is_ok_and(|status| status.success()).then(|| std::fs::read(&library).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    made
}

#[test]
fn an_image_of_the_host_runs_as_it_is_and_is_checked_like_any_kernel() {
    let text = r#"
        extern "C" void collc_user_combine2(void** arguments, unsigned grid, unsigned block) {
            int* target = *(int**)arguments[0];
            const int *a = *(const int**)arguments[1], *b = *(const int**)arguments[2];
            unsigned long long count = *(unsigned long long*)arguments[3];
            for (unsigned long long i = 0; i < count; i++) target[i] = a[i] * 100 + b[i] + grid + block;
        }"#;
    let Some(image) = compiled(&format!("{text}\n{}", cuda_stand_in::widths(4, 4))) else {
        std::io::stderr().write_all(b"skipped: there is no host compiler c++\n").unwrap();
        return;
    };
    let (session, _context) = machine(7);
    let (user, one, other) = (function(&image, "collc_user_combine2").unwrap(), stream(), stream());
    let a = device(&[1i32, 2, 3].map(i32::to_ne_bytes).concat());
    let b = device(&[5i32, 6, 7].map(i32::to_ne_bytes).concat());
    launch(user, &[a, a, b, 3], one).unwrap();
    sync(one).unwrap();
    let due = [105, 206, 307].map(|value: i32| (value + 2 + 32).to_ne_bytes()).concat();
    assert_eq!(bytes(a, 12).unwrap(), due);
    clean(&session);
    launch(user, &[a, a, b, 3], one).unwrap();
    fill(b + 8, 0, 4, other).unwrap();
    cu!(cuCtxSynchronize()).unwrap();
    says(&session.races(), &["kernel collc_user_combine2", "bytes 8..12"]);
    launch(user, &[a, a, b, 4], one).unwrap();
    assert_eq!(sync(one), Err(cudarc::driver::sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    let without = compiled(text).unwrap();
    let (_session, _context) = {
        drop(_context);
        drop(session);
        machine(8)
    };
    let user = function(&without, "collc_user_combine2").unwrap();
    assert_eq!(launch(user, &[0; 4], stream()), Err(cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_SUPPORTED));
}
