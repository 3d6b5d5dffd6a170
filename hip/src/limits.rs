//! Limits of the device (`hipLimit_t`). Stacks grow as kernels need them, texts that kernels print are taken
//! as they come, and the heap has a size of its own: so what a program sets is remembered, and nothing has to
//! be done about it.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{Out, exports};

/// A limit: its number in HIP, what it is at first, and the most that may be asked for.
struct Limit {
    number: c_int,
    most: usize,
    value: AtomicUsize,
}

/// Bytes of a work-item's stack at first and at most, and of the buffer for texts (ROCm clr,
/// hip_device_runtime.cpp and device.hpp of 6.4.3).
const STACK: usize = 1024;
const MOST_STACK: usize = 128 << 10;
const PRINTF: usize = 1 << 20;

static LIMITS: [Limit; 3] = [
    Limit { number: 0, most: MOST_STACK, value: AtomicUsize::new(STACK) },
    Limit { number: 1, most: usize::MAX, value: AtomicUsize::new(PRINTF) },
    Limit {
        number: 2,
        most: crate::heap::BYTES as usize,
        value: AtomicUsize::new(crate::heap::BYTES as usize),
    },
];

fn find(number: c_int) -> HipResult<&'static Limit> {
    let found = LIMITS.iter().find(|limit| limit.number == number);
    found.ok_or_else(|| HipError::new(Code::UnsupportedLimit, format!("limit {number} is not known")))
}

exports! {
    fn hipDeviceGetLimit(value: Out<usize>, limit: c_int) {
        value.put(find(limit)?.value.load(Relaxed))
    }
    fn hipDeviceSetLimit(limit: c_int, value: usize) {
        let limit = find(limit)?;
        if value > limit.most {
            return Err(invalid(format!("{value} bytes are more than the {} that there are", limit.most)));
        }
        limit.value.store(value, Relaxed);
        Ok(())
    }
}
