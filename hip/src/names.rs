//! Functions that answer no error code: names of things, and conversions that compilers call.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr::null;

use groundswell::prelude::f16;

use crate::error::HipResult;
use crate::ffi::{Out, exports};
use crate::handles::Handle;
use crate::registration;
use crate::runtime::runtime;

/// The names of `hiprtcResult` (hiprtc.h of HIP 6.4).
const RESULTS: [&CStr; 12] = [
    c"HIPRTC_SUCCESS",
    c"HIPRTC_ERROR_OUT_OF_MEMORY",
    c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
    c"HIPRTC_ERROR_INVALID_INPUT",
    c"HIPRTC_ERROR_INVALID_PROGRAM",
    c"HIPRTC_ERROR_INVALID_OPTION",
    c"HIPRTC_ERROR_COMPILATION",
    c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    c"HIPRTC_ERROR_INTERNAL_ERROR",
];

/// `hiprtcGetErrorString`.
#[unsafe(no_mangle)]
pub extern "C" fn hiprtcGetErrorString(result: c_uint) -> *const c_char {
    match result {
        100 => c"HIPRTC_ERROR_LINKING",
        _ => RESULTS.get(result as usize).copied().unwrap_or(c"Invalid HIPRTC error code"),
    }
    .as_ptr()
}

/// `hipApiName`: the numbers are those of a profiler, which is not there.
#[unsafe(no_mangle)]
pub extern "C" fn hipApiName(_number: c_uint) -> *const c_char {
    c"unknown".as_ptr()
}

/// `hipGetCmdName`, likewise.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetCmdName(_number: c_uint) -> *const c_char {
    c"unknown".as_ptr()
}

/// A name that lives as long as its kernel; null if there is none.
fn name(found: HipResult<*const c_char>) -> *const c_char {
    found.unwrap_or(null())
}

/// `hipKernelNameRef`: the name of a kernel of a module.
#[unsafe(no_mangle)]
pub extern "C" fn hipKernelNameRef(function: Handle) -> *const c_char {
    name(runtime().and_then(|runtime| Ok(runtime.functions.get(function)?.c_name.as_ptr())))
}

/// `hipKernelNameRefByPtr`: the name of a kernel of the program.
#[unsafe(no_mangle)]
pub extern "C" fn hipKernelNameRefByPtr(host: u64, _stream: Handle) -> *const c_char {
    name(runtime().and_then(|runtime| Ok(registration::function(runtime, host)?.c_name.as_ptr())))
}

/// `amd_dbgapi_get_build_name`: no debugger comes with this library.
#[unsafe(no_mangle)]
pub extern "C" fn amd_dbgapi_get_build_name() -> *const c_char {
    c"".as_ptr()
}

/// `amd_dbgapi_get_git_hash`, likewise.
#[unsafe(no_mangle)]
pub extern "C" fn amd_dbgapi_get_git_hash() -> *const c_char {
    c"".as_ptr()
}

/// `amd_dbgapi_get_build_id`, likewise.
#[unsafe(no_mangle)]
pub extern "C" fn amd_dbgapi_get_build_id() -> usize {
    0
}

/// `__gnu_f2h_ieee`: f32 to the bits of f16.
#[unsafe(no_mangle)]
pub extern "C" fn __gnu_f2h_ieee(value: f32) -> u16 {
    f16::from_f32(value).to_bits()
}

/// `__gnu_h2f_ieee`: the bits of f16 to f32.
#[unsafe(no_mangle)]
pub extern "C" fn __gnu_h2f_ieee(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}

exports! {
    // A precompiled header for compiling at run time, which is not there.
    fn __hipGetPCH(header: Out<*const c_char>, bytes: Out<c_int>) {
        header.put(null())?;
        bytes.put(0)
    }
}
