//! What the driver answers: CUDA's result codes, those of them that the stand-in gives, with their names and texts.

use std::ffi::CStr;

/// A `CUresult`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

/// What comes of a call.
pub(crate) type Answer<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Code {
            $(#[allow(dead_code, reason = "some are only told: tests have calls fail with them")]
            pub(crate) const $name: Code = Code($number);)*

            /// The name and a sentence, if the code is one of CUDA's that are known here.
            pub(crate) fn told(self) -> Option<(&'static CStr, &'static CStr)> {
                let (name, text): (&str, &str) = match self.0 {
                    0 => ("CUDA_SUCCESS\0", "no error\0"),
                    $($number => (concat!("CUDA_ERROR_", stringify!($name), "\0"), concat!($text, "\0")),)*
                    _ => return None,
                };
                let c = |text: &'static str| CStr::from_bytes_with_nul(text.as_bytes()).ok();
                Some((c(name)?, c(text)?))
            }
        }
    };
}

impl Code {
    pub(crate) const SUCCESS: Code = Code(0);
}

codes! {
    INVALID_VALUE = 1, "invalid argument";
    OUT_OF_MEMORY = 2, "out of memory";
    NOT_INITIALIZED = 3, "initialization error";
    DEINITIALIZED = 4, "driver shutting down";
    NO_DEVICE = 100, "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "invalid device ordinal";
    INVALID_IMAGE = 200, "device kernel image is invalid";
    INVALID_CONTEXT = 201, "invalid device context";
    MAP_FAILED = 205, "mapping of buffer object failed";
    ALREADY_MAPPED = 208, "resource already mapped";
    PEER_ACCESS_UNSUPPORTED = 217, "peer access is not supported between these two devices";
    INVALID_PTX = 218, "a PTX JIT compilation failed";
    FILE_NOT_FOUND = 301, "file not found";
    OPERATING_SYSTEM = 304, "OS call failed or operation not supported on this OS";
    INVALID_HANDLE = 400, "invalid resource handle";
    ILLEGAL_STATE = 401, "the operation cannot be performed in the present state";
    NOT_FOUND = 500, "named symbol not found";
    NOT_READY = 600, "device not ready";
    ILLEGAL_ADDRESS = 700, "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, "the launch timed out and was terminated";
    PEER_ACCESS_ALREADY_ENABLED = 704, "peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, "peer access has not been enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, "cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709, "context is destroyed";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, "pointer does not correspond to a registered memory region";
    MISALIGNED_ADDRESS = 716, "misaligned address";
    LAUNCH_FAILED = 719, "unspecified launch failure";
    NOT_PERMITTED = 800, "operation not permitted";
    NOT_SUPPORTED = 801, "operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, "operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE = 902, "operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED = 903, "capture was not ended in the same stream as it began";
    STREAM_CAPTURE_UNJOINED = 904, "capturing stream has unjoined work";
    STREAM_CAPTURE_ISOLATION = 905, "dependency created on uncaptured work in another stream";
    STREAM_CAPTURE_IMPLICIT = 906, "operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907, "operation not permitted on an event last recorded in a capturing stream";
    STREAM_CAPTURE_WRONG_THREAD = 908, "attempt to terminate a thread-local capture sequence from another thread";
    UNKNOWN = 999, "unknown error";
}
