//! Results of functions, and the text of a thread's last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use groundswell::prelude::{Diagnostic, Diagnostics};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// A failure as text.
pub(crate) struct Failure(String);

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Failure {
        Failure(format!("{diagnostic:?}"))
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Failure {
        Failure(format!("{diagnostics:?}"))
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure(text)
    }
}

impl Failure {
    /// An argument that is NULL and must not be.
    pub(crate) fn null(what: &str) -> Failure {
        Failure(format!("NULL was given for {what}"))
    }
}

/// Runs the body of a function of the interface: a failure is noted as the thread's last error. A panic, which
/// would be a fault of ours, is a failure as well, because it may not cross into C.
fn call<R>(body: impl FnOnce() -> Result<R, Failure>) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(body));
    let (value, text) = match result {
        Ok(Ok(value)) => (Some(value), String::new()),
        Ok(Err(Failure(text))) => (None, text),
        Err(_) => (None, "a fault of groundswell itself; standard error says where".to_owned()),
    };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that is about to end may have none any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
    value
}

/// The result of a function that makes an object.
pub(crate) fn object<T>(body: impl FnOnce() -> Result<T, Failure>) -> *mut T {
    call(body).map_or(null_mut(), |made| Box::into_raw(Box::new(made)))
}

/// The result of a function that makes a text.
pub(crate) fn text(body: impl FnOnce() -> Result<String, Failure>) -> *mut c_char {
    let made = call(|| CString::new(body()?).map_err(|_| Failure("the text has a zero byte".to_owned())));
    made.map_or(null_mut(), CString::into_raw)
}

/// The result of a function that gives a pointer of somebody else's.
pub(crate) fn pointer<T>(body: impl FnOnce() -> Result<*mut T, Failure>) -> *mut T {
    call(body).unwrap_or(null_mut())
}

/// The result of a function that does something: 0 if it worked.
pub(crate) fn status(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match call(body) {
        Some(()) => 0,
        None => 1,
    }
}

/// The text of the last error of this thread, with its reason and a way out; empty if the last function that
/// can fail worked. Functions that cannot (those that free something, the version, the bytes and the address
/// of a buffer) leave it as it is. It is valid until the thread calls another function.
#[unsafe(no_mangle)]
pub extern "C" fn groundswell_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
