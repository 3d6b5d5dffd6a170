//! Texts and objects from C and to it.

use std::ffi::{CStr, CString, c_char};

use groundswell::author::DType;
use groundswell::internals::foreign_dtype;

use crate::failure::Failure;

/// The version of groundswell; it is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn groundswell_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Frees a text that a function has returned; NULL is left alone.
///
/// # Safety
/// `text` comes from a function of this interface that says so, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it is one of ours, as the caller says.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// A text of the caller.
///
/// # Safety
/// `text` is NULL or ends with a zero byte, and stays as it is for as long as the result is used.
pub(crate) unsafe fn text_of<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: it ends with a zero byte, as the caller says.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| Failure::from(format!("{what} is no UTF-8")))
}

/// The dtype of a name.
pub(crate) fn dtype_named(name: &str) -> Result<DType, Failure> {
    DType::from_name(name).ok_or_else(|| {
        let help = foreign_dtype(name).unwrap_or_else(|| {
            let names: Vec<&str> = DType::all().map(DType::name).collect();
            format!("there are {}", names.join(", "))
        });
        Failure::from(format!("no dtype is called `{name}`; {help}"))
    })
}

/// An object of the caller.
///
/// # Safety
/// `object` is NULL or a living object of its type.
pub(crate) unsafe fn object_of<'a, T>(object: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: as the caller says.
    unsafe { object.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// An object of the caller that is changed.
///
/// # Safety
/// `object` is NULL or a living object of its type that nobody else uses meanwhile.
pub(crate) unsafe fn changed<'a, T>(object: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller says.
    unsafe { object.as_mut() }.ok_or_else(|| Failure::null(what))
}

/// Frees an object; NULL is left alone.
///
/// # Safety
/// `object` is NULL, or one of ours that is freed once.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: it comes from `failure::object`, as the caller says.
        drop(unsafe { Box::from_raw(object) });
    }
}
