//! The processor that code is made for.

use crate::JitError;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};

/// A processor, and which of its instructions code may use.
#[derive(Clone)]
pub struct Machine {
    pub(crate) isa: OwnedTargetIsa,
    /// Whether loops over vectors of 16 bytes can be made.
    pub(crate) vectors: bool,
}

impl Machine {
    /// This processor, with all it can do.
    ///
    /// # Errors
    /// There is no back end for it, or none that was tried.
    pub fn this() -> Result<Machine, JitError> {
        Machine::with(true, &[])
    }

    /// What every processor of this architecture can do.
    ///
    /// # Errors
    /// As [`Machine::this`].
    pub fn oldest() -> Result<Machine, JitError> {
        Machine::with(false, &[])
    }

    /// The least that loops over vectors need: on x86-64, AVX. On a processor without it, as [`Machine::oldest`].
    ///
    /// # Errors
    /// As [`Machine::this`].
    pub fn older() -> Result<Machine, JitError> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx") {
            return Machine::with(false, &["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_avx"]);
        }
        Machine::oldest()
    }

    fn with(all: bool, features: &[&str]) -> Result<Machine, JitError> {
        let refuse = |reason: String| JitError::Processor { reason };
        if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            return Err(refuse("it is neither x86-64 nor 64-bit Arm".into()));
        }
        let mut builder =
            cranelift_native::builder_with_options(all).map_err(|error| refuse(error.to_string()))?;
        for feature in features {
            builder.enable(feature).map_err(|error| refuse(error.to_string()))?;
        }
        let mut flags = settings::builder();
        let chosen = [
            ("opt_level", "speed"),
            // A fault of this crate shall be an error, not wrong code.
            ("enable_verifier", "true"),
            ("is_pic", "false"),
            // Functions of this program may lie farther from the code than a short call reaches.
            ("use_colocated_libcalls", "false"),
            // A large frame must touch each page of the stack, so as not to step over its guard.
            ("enable_probestack", "true"),
            ("probestack_strategy", "inline"),
            ("unwind_info", "false"),
        ];
        for (name, value) in chosen {
            flags.set(name, value).map_err(|error| refuse(error.to_string()))?;
        }
        let isa = builder.finish(settings::Flags::new(flags)).map_err(|error| refuse(error.to_string()))?;
        let has = |name| isa.isa_flags().iter().any(|flag| flag.name == name && flag.as_bool() == Some(true));
        // Without AVX, operands of vector instructions in memory must be aligned, and Cranelift 0.125 takes some there that
        // are not (those of `fcmp`): single numbers have no such rule.
        let vectors = cfg!(target_arch = "aarch64") || has("has_avx");
        Ok(Machine { isa, vectors })
    }
}
