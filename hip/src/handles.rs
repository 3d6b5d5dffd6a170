//! Handles: what HIP's opaque pointers are. A handle is a number that is never used twice, so one that was
//! destroyed is found to be so.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use crate::error::{Code, HipError, HipResult};

/// A handle as it crosses the C interface.
pub type Handle = u64;

/// Values by their handles.
pub struct Handles<T> {
    what: &'static str,
    values: RwLock<BTreeMap<Handle, Arc<T>>>,
}

/// The number of the next handle. Small numbers are HIP's own handles: the default streams.
static NEXT: AtomicU64 = AtomicU64::new(0x1000);

/// A handle that stands for nothing yet.
pub fn fresh() -> Handle {
    NEXT.fetch_add(16, Relaxed)
}

impl<T> Handles<T> {
    /// No values yet; `what` names one in errors.
    pub const fn new(what: &'static str) -> Handles<T> {
        Handles { what, values: RwLock::new(BTreeMap::new()) }
    }

    /// Keeps a value.
    pub fn add(&self, value: T) -> Handle {
        let handle = fresh();
        // A poisoned lock guards a map that is whole after each change.
        let mut values = self.values.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        values.insert(handle, Arc::new(value));
        handle
    }

    /// The value of a handle.
    ///
    /// # Errors
    /// There is none, or there is none any more.
    pub fn get(&self, handle: Handle) -> HipResult<Arc<T>> {
        let values = self.values.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        values.get(&handle).cloned().ok_or_else(|| self.unknown(handle))
    }

    /// All values.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.values.read().unwrap_or_else(|poisoned| poisoned.into_inner()).values().cloned().collect()
    }

    /// Forgets a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn remove(&self, handle: Handle) -> HipResult<Arc<T>> {
        let mut values = self.values.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        values.remove(&handle).ok_or_else(|| self.unknown(handle))
    }

    /// Forgets the values for which `goes` holds.
    pub fn remove_where(&self, goes: impl Fn(&T) -> bool) {
        let mut values = self.values.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        values.retain(|_, value| !goes(value));
    }

    fn unknown(&self, handle: Handle) -> HipError {
        let reason = match handle {
            0 => format!("the {} is null", self.what),
            _ => format!("{handle:#x} is no {} of this process, or it was destroyed", self.what),
        };
        HipError::new(Code::InvalidHandle, reason)
    }
}
