//! NVIDIA's run-time compiler, found where its Python wheel or a toolkit puts it, and the assembler behind it.

use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, ptr};

/// A loaded NVRTC.
pub(crate) struct Nvrtc {
    library: Library,
}

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type SizeOf = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Write = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type CountArchitectures = unsafe extern "C" fn(*mut c_int) -> c_int;
type Architectures = unsafe extern "C" fn(*mut c_int) -> c_int;

impl Nvrtc {
    /// In the folder that `COLLC_NVRTC` names, in the Python package `nvidia.cuda_nvrtc`, or where the system's loader looks.
    /// None, and a line on standard error, if it is nowhere.
    pub(crate) fn find() -> Option<Nvrtc> {
        let named = env::var_os("COLLC_NVRTC").map(PathBuf::from);
        let mut candidates: Vec<PathBuf> = Vec::new();
        for folder in named.iter().cloned().chain(python_package()) {
            let listed = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
            let is_it = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                name.starts_with("libnvrtc.so") && !name.contains("alt")
            };
            candidates.extend(listed.filter(is_it));
        }
        assert!(named.is_none() || !candidates.is_empty(), "COLLC_NVRTC={named:?} holds no libnvrtc.so");
        candidates.extend(["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(PathBuf::from));
        // SAFETY: a library of this name is NVIDIA's compiler, which opening does nothing but load.
        let found = candidates.iter().find_map(|path| unsafe { Library::new(path) }.ok());
        if found.is_none() {
            eprintln!("SKIPPED: no NVRTC in COLLC_NVRTC, in Python's nvidia.cuda_nvrtc or on the system");
        }
        found.map(|library| Nvrtc { library })
    }

    fn symbol<T>(&self, name: &str) -> Symbol<'_, T> {
        // SAFETY: the types above are those of NVRTC's header, the same since CUDA 11.2.
        unsafe { self.library.get(name.as_bytes()) }.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Compute capabilities times ten that it compiles for.
    pub(crate) fn architectures(&self) -> Vec<u32> {
        let mut count = 0;
        // SAFETY: it writes one number.
        unsafe { self.symbol::<CountArchitectures>("nvrtcGetNumSupportedArchs")(&mut count) };
        let mut all = vec![0; count as usize];
        // SAFETY: it writes as many numbers as it has said.
        unsafe { self.symbol::<Architectures>("nvrtcGetSupportedArchs")(all.as_mut_ptr()) };
        all.into_iter().map(|architecture| architecture as u32).collect()
    }

    /// PTX of a text, or what the compiler says.
    pub(crate) fn compile(&self, source: &str, options: &[String]) -> Result<String, String> {
        let source = CString::new(source).unwrap();
        let options: Vec<CString> =
            options.iter().map(|option| CString::new(option.as_str()).unwrap()).collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program: Program = ptr::null_mut();
        // SAFETY: the strings end with zero and outlive the calls; the program is made, used by this thread and destroyed.
        unsafe {
            let create = self.symbol::<Create>("nvrtcCreateProgram");
            let made =
                create(&mut program, source.as_ptr(), c"collc.cu".as_ptr(), 0, ptr::null(), ptr::null());
            assert_eq!(made, 0, "nvrtcCreateProgram");
            let compile = self.symbol::<Compile>("nvrtcCompileProgram");
            let compiled = compile(program, options.len() as c_int, options.as_ptr());
            let result = if compiled == 0 {
                Ok(self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX"))
            } else {
                Err(self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog"))
            };
            self.symbol::<Destroy>("nvrtcDestroyProgram")(&mut program);
            result
        }
    }

    fn text(&self, program: Program, size: &str, write: &str) -> String {
        let mut bytes = 0;
        // SAFETY: the program lives; it is asked for the size first, which counts the zero at the end.
        unsafe {
            self.symbol::<SizeOf>(size)(program, &mut bytes);
            let mut text = vec![0u8; bytes.max(1)];
            self.symbol::<Write>(write)(program, text.as_mut_ptr().cast());
            CStr::from_bytes_until_nul(&text).unwrap().to_string_lossy().into_owned()
        }
    }
}

fn python_package() -> Option<PathBuf> {
    let code = "import nvidia.cuda_nvrtc as m; print(list(m.__path__)[0])";
    let output = Command::new("python3").args(["-c", code]).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(path.trim()).join("lib"))
}

/// Assembles PTX for an architecture, or says what ptxas says. None if there is no ptxas, in `COLLC_PTXAS` or on PATH, or one
/// that does not know the architecture.
pub(crate) fn assemble(ptx: &str, architecture: u32) -> Option<Result<(), String>> {
    let named = env::var_os("COLLC_PTXAS").map(PathBuf::from);
    let ptxas = named.as_deref().unwrap_or(Path::new("ptxas"));
    let help = Command::new(ptxas).arg("--help").output();
    assert!(named.is_none() || help.is_ok(), "COLLC_PTXAS={named:?} does not run");
    let name = format!("sm_{architecture}");
    if !String::from_utf8_lossy(&help.ok()?.stdout).contains(&format!("'{name}'")) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let [text, code] = ["kernels.ptx", "kernels.cubin"].map(|name| folder.path().join(name));
    fs::write(&text, ptx).unwrap();
    let output = Command::new(ptxas).arg("-arch").arg(&name).arg("-o").args([&code, &text]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(if output.status.success() { Ok(()) } else { Err(said) })
}
