//! The words of a piece of device memory: the simulator's own, or memory of the host that is part of the
//! device's for a while.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::error::SimError;

/// The words of an allocation.
#[derive(Debug)]
pub(super) enum DeviceWords {
    /// They are the simulator's.
    Owned(Vec<AtomicU32>),
    /// They are the host's, who keeps them until they are given back.
    Lent(&'static [AtomicU32]),
}

impl DeviceWords {
    /// `count` words of zero.
    pub(super) fn zeroed(count: usize) -> Option<DeviceWords> {
        let mut words = Vec::new();
        words.try_reserve_exact(count).ok()?;
        words.resize_with(count, || AtomicU32::new(0));
        Some(DeviceWords::Owned(words))
    }

    /// The simulator's own words of the same values.
    pub(super) fn copied(&self) -> Option<DeviceWords> {
        let mut words = Vec::new();
        words.try_reserve_exact(self.all().len()).ok()?;
        words.extend(self.all().iter().map(|word| AtomicU32::new(word.load(Relaxed))));
        Some(DeviceWords::Owned(words))
    }

    /// The words that hold `bytes` bytes of the host at `address`.
    ///
    /// # Errors
    /// The address is not one of a word.
    ///
    /// # Safety
    /// All of these words are mapped, readable and writable, from now on until the last use of what is
    /// returned, and meanwhile nobody else holds a Rust reference to any part of them.
    #[allow(unsafe_code)]
    pub(super) unsafe fn lent(address: *mut u8, bytes: u64) -> Result<DeviceWords, SimError> {
        let refuse = |reason: &str| SimError::Lent { address: address as u64, reason: reason.to_owned() };
        let count = usize::try_from(bytes.div_ceil(4)).map_err(|_| refuse("it is too large"))?;
        let words: *const AtomicU32 = address.cast();
        if words.is_null() || !words.is_aligned() {
            return Err(refuse("its address is not a multiple of 4"));
        }
        if count > isize::MAX as usize / 4 {
            return Err(refuse("it is too large"));
        }
        // SAFETY: the pointer is aligned and not null, and the length was checked. The caller vouches for the
        // memory and for its life. Any bits are a valid `AtomicU32`, which has the representation of a word
        // and whose accesses through a shared reference may come from several threads.
        Ok(DeviceWords::Lent(unsafe { std::slice::from_raw_parts(words, count) }))
    }

    /// All of them.
    #[inline(always)]
    pub(super) fn all(&self) -> &[AtomicU32] {
        match self {
            DeviceWords::Owned(words) => words,
            DeviceWords::Lent(words) => words,
        }
    }
}
