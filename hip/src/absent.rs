//! Functions of HIP that are not there. Each answers `hipErrorNotSupported`, and the first call of each says
//! its name on standard error.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::error::{Code, HipError, answer};

/// A call of a function that is not there.
fn refuse(name: &str, said: &AtomicBool) -> c_int {
    if !said.swap(true, Relaxed) {
        eprintln!("groundswell: {name} is not there in the HIP library over the simulator");
    }
    answer(name, || Err(HipError::new(Code::NotSupported, format!("{name} is not there"))))
}

/// Makes them: whatever their arguments are, a C function may leave them unread.
macro_rules! absent {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int {
            static SAID: AtomicBool = AtomicBool::new(false);
            refuse(stringify!($name), &SAID)
        }
    )*};
}

include!(concat!(env!("OUT_DIR"), "/absent.rs"));
