//! The shipped PTX, and modules cut out of it.
//!
//! It is made for compute capability 7.0 by `tests/nvrtc.rs` with `UPDATE_PTX=1`, and compressed. Its first line holds the
//! hash of the source that it was made of. A driver compiles PTX for its device when a module is loaded, so a module of a few
//! entries is ready much sooner than one of all.

use flate2::read::GzDecoder;
use std::fmt::Write;
use std::io::Read;
use std::sync::OnceLock;

static PACKED: &[u8] = include_bytes!("../ptx/builtin.ptx.gz");
const ENTRY: &str = ".visible .entry ";

/// PTX of every built-in kernel.
pub fn builtin_ptx() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = String::new();
        GzDecoder::new(PACKED).read_to_string(&mut text).expect("invariant: what is shipped is whole");
        text
    })
}

/// PTX of some of the built-in kernels, as a module of its own. None if one of them does not exist.
pub fn ptx_of(entries: &[&str]) -> Option<String> {
    let text = builtin_ptx();
    let (head, _) = text.split_once(ENTRY)?;
    let mut module = head.to_string();
    for name in entries {
        let start = text.find(&format!("{ENTRY}{name}("))?;
        let length = text[start..].find("\n}\n")?;
        write!(module, "{}\n}}\n\n", &text[start..start + length]).ok()?;
    }
    Some(module)
}
