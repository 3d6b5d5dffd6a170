//! A copy of memory whose pages are copied when they are first used, so that it costs what is used of it and
//! not what there is: time mode works on a copy of all memory at every launch, and most kernels touch little.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::words::DeviceWords;

/// Words of a page.
const PAGE: usize = 1024;

/// A copy, but for its words.
#[derive(Debug)]
pub(super) struct LazyCopy {
    /// The original.
    from: &'static [AtomicU32],
    /// A bit for each page that has been copied. It is set when all of the page is there.
    copied: DeviceWords,
    /// Held while a page is copied: another thread may have stored to one that is there already.
    copying: Mutex<()>,
}

impl LazyCopy {
    /// A copy of words, with the place for its own; nothing if the host has no memory for it.
    pub(super) fn new(from: &'static [AtomicU32]) -> Option<(LazyCopy, DeviceWords)> {
        let words = DeviceWords::zeroed(from.len())?;
        let copied = DeviceWords::zeroed(from.len().div_ceil(PAGE).div_ceil(32))?;
        Some((LazyCopy { from, copied, copying: Mutex::new(()) }, words))
    }

    /// Has the pages of words `first` to `end - 1` in `words`, which are those of the copy.
    #[inline(never)]
    pub(super) fn fetch(&self, words: &[AtomicU32], first: usize, end: usize) {
        for page in first / PAGE..end.min(words.len()).div_ceil(PAGE) {
            let (bits, bit) = (&self.copied.all()[page / 32], 1 << (page % 32));
            if bits.load(Acquire) & bit != 0 {
                continue;
            }
            // A poisoned lock guards nothing: a page that is half copied is copied again.
            let _guard = self.copying.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if bits.load(Relaxed) & bit != 0 {
                continue;
            }
            let place = page * PAGE..((page + 1) * PAGE).min(words.len());
            for (own, word) in words[place.clone()].iter().zip(&self.from[place]) {
                own.store(word.load(Relaxed), Relaxed);
            }
            bits.fetch_or(bit, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_when_they_are_used_and_keep_what_is_stored() {
        let from: &'static [AtomicU32] =
            (0..3 * PAGE as u32 - 7).map(AtomicU32::new).collect::<Vec<_>>().leak();
        let (copy, words) = LazyCopy::new(from).expect("it is small");
        let words = words.all();
        copy.fetch(words, PAGE, PAGE + 1);
        words[PAGE].store(5, Relaxed);
        from[2 * PAGE].store(9, Relaxed);
        copy.fetch(words, PAGE, words.len());
        let at = |index: usize| words[index].load(Relaxed);
        assert_eq!([at(1), at(PAGE), at(PAGE + 1), at(2 * PAGE)], [0, 5, PAGE as u32 + 1, 9]);
        copy.fetch(words, 0, words.len() + 3);
        assert_eq!([at(1), at(words.len() - 1)], [1, 3 * PAGE as u32 - 8]);
    }
}
