//! Errors as HIP tells them: a code, kept for each thread; and the reason, which HIP has no place for and
//! which goes to standard error if `GROUNDSWELL_HIP_LOG` is set.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use groundswell::simulator::SimError;

/// Declares the codes of `hipError_t`, with their names.
macro_rules! codes {
    ($($code:ident = $number:literal,)*) => {
        /// A code of `hipError_t` that this library answers with.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        #[repr(i32)]
        pub enum Code {
            $(
                #[doc = concat!("`hipError", stringify!($code), "`.")]
                $code = $number,
            )*
        }

        /// The name of a code; those that are never answered have one, too, as programs may ask.
        fn name(code: c_int) -> &'static CStr {
            match code {
                0 => c"hipSuccess",
                $($number => {
                    const NAME: &str = concat!("hipError", stringify!($code), "\0");
                    CStr::from_bytes_with_nul(NAME.as_bytes()).unwrap_or(c"hipErrorUnknown")
                })*
                _ => c"hipErrorUnknown",
            }
        }
    };
}

// hip_runtime_api.h of HIP 6.4, `hipError_t`.
codes! {
    InvalidValue = 1,
    OutOfMemory = 2,
    NotInitialized = 3,
    Deinitialized = 4,
    InvalidConfiguration = 9,
    InvalidPitchValue = 12,
    InvalidSymbol = 13,
    InvalidDevicePointer = 17,
    InvalidMemcpyDirection = 21,
    InsufficientDriver = 35,
    MissingConfiguration = 52,
    InvalidDeviceFunction = 98,
    NoDevice = 100,
    InvalidDevice = 101,
    InvalidImage = 200,
    InvalidContext = 201,
    NoBinaryForGpu = 209,
    UnsupportedLimit = 215,
    ContextAlreadyInUse = 216,
    PeerAccessUnsupported = 217,
    InvalidKernelFile = 218,
    InvalidSource = 300,
    FileNotFound = 301,
    SharedObjectSymbolNotFound = 302,
    SharedObjectInitFailed = 303,
    OperatingSystem = 304,
    InvalidHandle = 400,
    IllegalState = 401,
    NotFound = 500,
    NotReady = 600,
    IllegalAddress = 700,
    LaunchOutOfResources = 701,
    LaunchTimeOut = 702,
    PeerAccessAlreadyEnabled = 704,
    PeerAccessNotEnabled = 705,
    Assert = 710,
    HostMemoryAlreadyRegistered = 712,
    HostMemoryNotRegistered = 713,
    LaunchFailure = 719,
    CooperativeLaunchTooLarge = 720,
    NotSupported = 801,
    StreamCaptureUnsupported = 900,
    StreamCaptureInvalidated = 901,
    StreamCaptureMerge = 902,
    StreamCaptureUnmatched = 903,
    StreamCaptureUnjoined = 904,
    StreamCaptureIsolation = 905,
    StreamCaptureImplicit = 906,
    CapturedEvent = 907,
    StreamCaptureWrongThread = 908,
    GraphExecUpdateFailure = 910,
    Unknown = 999,
}

/// Why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct HipError {
    /// What HIP is told.
    pub code: Code,
    /// What happened, and a way out.
    pub reason: String,
}

/// The result of a call.
pub type HipResult<T = ()> = Result<T, HipError>;

impl HipError {
    /// An error.
    pub fn new(code: Code, reason: impl Into<String>) -> HipError {
        HipError { code, reason: reason.into() }
    }
}

/// An argument that no call takes.
pub fn invalid(reason: impl Into<String>) -> HipError {
    HipError::new(Code::InvalidValue, reason)
}

impl From<SimError> for HipError {
    fn from(error: SimError) -> HipError {
        let code = match &error {
            SimError::OutOfMemory { .. } => Code::OutOfMemory,
            SimError::BadAddress { .. } | SimError::NotAllocated { .. } | SimError::Lent { .. } => {
                Code::InvalidValue
            }
            SimError::Object(_) => Code::SharedObjectInitFailed,
            SimError::OtherTarget(_) => Code::NoBinaryForGpu,
            SimError::NoKernel(_) => Code::NotFound,
            SimError::Launch { .. } => Code::InvalidConfiguration,
            SimError::Fault(_) => Code::LaunchFailure,
        };
        HipError::new(code, error.to_string())
    }
}

thread_local! {
    /// The last error of this thread.
    static LAST: Cell<c_int> = const { Cell::new(0) };
}

/// Whether reasons are printed.
fn is_logged() -> bool {
    static LOGGED: OnceLock<bool> = OnceLock::new();
    *LOGGED.get_or_init(|| std::env::var_os("GROUNDSWELL_HIP_LOG").is_some_and(|value| value != "0"))
}

/// Makes a call: its error becomes a code, and that of this thread. A panic, which would be a bug of this
/// library, does not reach the program.
pub fn answer(function: &str, call: impl FnOnce() -> HipResult) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err(HipError::new(Code::Unknown, "this library panicked, which is a bug of it")));
    let Err(error) = result else { return 0 };
    let code = error.code as c_int;
    if is_logged() {
        eprintln!("groundswell: {function}: {} ({code}): {}", text(code).to_string_lossy(), error.reason);
    }
    // That something is still running is an answer, no error.
    if error.code != Code::NotReady {
        LAST.set(code);
    }
    code
}

/// The name of a code, as text.
pub fn text(code: c_int) -> &'static CStr {
    name(code)
}

/// `hipGetLastError`: the last error of this thread, which is forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetLastError() -> c_int {
    LAST.replace(0)
}

/// `hipExtGetLastError`, likewise.
#[unsafe(no_mangle)]
pub extern "C" fn hipExtGetLastError() -> c_int {
    LAST.replace(0)
}

/// `hipPeekAtLastError`: the last error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn hipPeekAtLastError() -> c_int {
    LAST.get()
}

/// `hipGetErrorName`.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(code: c_int) -> *const c_char {
    text(code).as_ptr()
}

/// `hipGetErrorString`.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorString(code: c_int) -> *const c_char {
    text(code).as_ptr()
}
