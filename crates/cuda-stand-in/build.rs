//! The shared library has the name of the driver's: who asks the loader for `libcuda.so` once it is loaded gets it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so");
    println!("cargo::rerun-if-changed=build.rs");
}
