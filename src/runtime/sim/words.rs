//! The words of a piece of device memory: the simulator's own, or memory of the host that is part of the
//! device's for a while.

use std::alloc::{Layout, alloc_zeroed};
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
    /// `count` words of zero. The host has memory for them once they are written: systems give zeroed pages
    /// out when they are first touched.
    #[allow(unsafe_code)]
    pub(super) fn zeroed(count: usize) -> Option<DeviceWords> {
        let layout = Layout::array::<AtomicU32>(count).ok()?;
        if layout.size() == 0 {
            return Some(DeviceWords::Owned(Vec::new()));
        }
        // SAFETY: the layout has a size.
        let words = unsafe { alloc_zeroed(layout) }.cast::<AtomicU32>();
        if words.is_null() {
            return None;
        }
        // SAFETY: the memory comes from the global allocator with the layout of so many words, and bytes of
        // zero are a word of zero.
        Some(DeviceWords::Owned(unsafe { Vec::from_raw_parts(words, count, count) }))
    }

    /// The simulator's own words of the same values. Those of zero take no memory, as in [`Self::zeroed`].
    pub(super) fn copied(&self) -> Option<DeviceWords> {
        let copy = DeviceWords::zeroed(self.all().len())?;
        for (own, word) in copy.all().iter().zip(self.all()) {
            match word.load(Relaxed) {
                0 => {}
                value => own.store(value, Relaxed),
            }
        }
        Some(copy)
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
