//! What a call of HIP answered, as a value: its code and name, what was asked, and a way out.

use std::fmt;

use crate::ir::diagnostic::{Diagnostic, Kind};

/// A call that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HipFailure {
    /// HIP's number (`hipError_t`).
    pub(super) code: i32,
    /// HIP's name of it.
    pub(super) name: String,
    /// The function.
    pub(super) function: &'static str,
    /// What it was asked to do.
    pub(super) asked: String,
}

impl fmt::Display for HipFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} answers {} ({})", self.asked, self.function, self.name, self.code)
    }
}

/// Codes of `hipError_t` (HIP 6.4, hip_runtime_api.h) with what can be done about them.
const WAYS_OUT: &[(i32, Kind, &str)] = &[
    (2, Kind::Limit, "free buffers, or use smaller ones; `Device::memory` tells what is left"),
    (9, Kind::Invalid, "launch fewer work-items"),
    (100, Kind::Unsupported, "no GPU is visible: look at /dev/kfd, its permissions, and HIP_VISIBLE_DEVICES"),
    (101, Kind::Unsupported, "no GPU is visible: look at /dev/kfd, its permissions, and HIP_VISIBLE_DEVICES"),
    (200, Kind::Invalid, "the bytes are no code object that this version of HIP loads"),
    (209, Kind::Invalid, "compile for the device's target"),
    (303, Kind::Invalid, "AMD_LOG_LEVEL=3 has HIP say why it refuses the object"),
    (500, Kind::Invalid, "the object has no kernel of that name"),
    (700, Kind::Invalid, "a kernel used memory that is not there: run it with check mode on the simulator"),
    (701, Kind::Limit, "the kernel needs more than the device has"),
    (719, Kind::Invalid, "a kernel stopped: run it with check mode on the simulator"),
];

/// Codes after which a device does nothing any more until the process ends.
const LOST: &[i32] = &[4, 700, 709, 719];

impl HipFailure {
    /// Whether the device is lost for this process.
    pub(super) fn loses_the_device(&self) -> bool {
        LOST.contains(&self.code)
    }
}

impl From<HipFailure> for Diagnostic {
    fn from(failure: HipFailure) -> Diagnostic {
        let way = WAYS_OUT.iter().find(|(code, ..)| *code == failure.code);
        let (kind, help) = match way {
            Some(&(_, kind, help)) => (kind, help),
            None => (Kind::Unsupported, "AMD_LOG_LEVEL=3 has HIP say more"),
        };
        Diagnostic::new(kind, failure.to_string()).help(help)
    }
}
