//! Modules, functions and launches.

use super::{api, get, get_all, get_text, put};
use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::image;
use crate::work::Work;
use std::ffi::c_char;

fn load(driver: &mut Driver, out: *mut u64, bytes: *const u8) -> Answer {
    let context = driver.current_context()?;
    // Drivers before CUDA 12.3 refuse it.
    driver.no_capture_minds()?;
    if bytes.is_null() {
        return Err(driver.wrong(Code::INVALID_VALUE, "there is no image"));
    }
    put(out, driver.load(context, &image::bytes(bytes))?)
}

/// A launch as `cuLaunchKernel` is given it.
struct Launch {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: u64,
    arguments: *const *const u64,
    extra: usize,
}

const BLOCK_MAX: u32 = 1024;

fn launch(driver: &mut Driver, function: u64, launch: &Launch) -> Answer {
    let stream = driver.stream(launch.stream)?;
    let Some((module, kernel)) = driver.functions.get(&function).cloned() else {
        return Err(driver.wrong(Code::INVALID_HANDLE, format!("{function:#x} is no function")));
    };
    let of_module = driver.modules.get(&module).map(|module| module.context);
    let of_stream = driver.streams[&stream].context;
    if of_module != Some(of_stream) {
        let text = format!("kernel {} was loaded into another context than the stream's", kernel.name);
        return Err(driver.wrong(Code::INVALID_HANDLE, text));
    }
    if driver.current_context()? != of_stream {
        let text = format!("kernel {} on a stream whose context is not current", kernel.name);
        return Err(driver.wrong(Code::INVALID_HANDLE, text));
    }
    let ([grid, grid_y, grid_z], [block, block_y, block_z]) = (launch.grid, launch.block);
    let flat = [grid_y, grid_z, block_y, block_z] == [1; 4];
    if !flat
        || grid == 0
        || grid > i32::MAX as u32
        || block == 0
        || block > BLOCK_MAX
        || launch.shared_bytes > 0
    {
        let Launch { grid, block, shared_bytes, .. } = launch;
        let text = format!(
            "kernel {} with grid {grid:?}, block {block:?} and {shared_bytes} bytes of shared memory; grids and blocks of \
             these kernels have one dimension, blocks up to {BLOCK_MAX} threads, and no shared memory",
            kernel.name
        );
        return Err(driver.wrong(Code::INVALID_VALUE, text));
    }
    if launch.extra != 0 || launch.arguments.is_null() {
        return Err(driver.wrong(Code::NOT_SUPPORTED, "arguments are taken by their addresses alone"));
    }
    if !kernel.runs() {
        let text = format!(
            "kernel {} cannot be run: it is a text, or of an image that does not say how wide elements are",
            kernel.name
        );
        return Err(driver.wrong(Code::NOT_SUPPORTED, text));
    }
    let addresses = get_all(launch.arguments, kernel.arity())?;
    let arguments = addresses.into_iter().map(get).collect::<Answer<Vec<u64>>>()?;
    driver.enqueue(stream, Work::Launch { kernel, arguments, grid, block })
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: u64,
    attributes: usize,
    attribute_count: u32,
}

api! {
    fn cuModuleLoadData(out: *mut u64, bytes: *const u8) => |driver| load(driver, out, bytes);
    /// Options are of the compiler of PTX, which there is none of.
    fn cuModuleLoadDataEx(out: *mut u64, bytes: *const u8, _count: u32, _options: usize, _values: usize) => |driver| {
        load(driver, out, bytes)
    };
    fn cuModuleLoad(out: *mut u64, path: *const c_char) => |driver| {
        let context = driver.current_context()?;
        let path = get_text(path)?;
        match std::fs::read(&path) {
            Ok(bytes) => put(out, driver.load(context, &bytes)?),
            Err(error) => Err(driver.wrong(Code::FILE_NOT_FOUND, format!("{path}: {error}"))),
        }
    };
    fn cuModuleUnload(module: u64) => |driver| {
        if !driver.modules.contains_key(&module) {
            return Err(driver.wrong(Code::INVALID_HANDLE, format!("{module:#x} is no module")));
        }
        driver.unload(module);
        Ok(())
    };
    fn cuModuleGetFunction(out: *mut u64, module: u64, name: *const c_char) => |driver| {
        let name = get_text(name)?;
        put(out, driver.function(module, &name)?)
    };
    fn cuFuncGetAttribute(out: *mut i32, number: u32, function: u64) => |driver| {
        if !driver.functions.contains_key(&function) {
            return Err(driver.wrong(Code::INVALID_HANDLE, format!("{function:#x} is no function")));
        }
        // Threads of a block; kernels here use nothing else that is counted.
        put(out, if number == 0 { BLOCK_MAX as i32 } else { 0 })
    };
    fn cuLaunchKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: u64, arguments: *const *const u64, extra: usize,
    ) => |driver| {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(driver, function, &Launch { grid, block, shared_bytes, stream, arguments, extra })
    };
    fn cuLaunchKernelEx(config: *const Config, function: u64, arguments: *const *const u64, extra: usize) => |driver| {
        let Config { grid, block, shared_bytes, stream, attributes, attribute_count } = get(config)?;
        if attributes != 0 && attribute_count != 0 {
            return Err(driver.wrong(Code::NOT_SUPPORTED, "launches have no attributes here"));
        }
        launch(driver, function, &Launch { grid, block, shared_bytes, stream, arguments, extra })
    };
}
