//! Which bytes of memory a launch has used, and how: for whoever knows what else uses them at the same time.

use std::ops::Range;

/// Bytes that a launch has used, as ranges of addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TouchedBytes {
    /// Stored to.
    pub written: Vec<Range<u64>>,
    /// Changed by what may coincide with the like of it: atomics, and stores with the scope of the device.
    pub updated: Vec<Range<u64>>,
    /// Loaded as something that the launch has not stored itself.
    pub read: Vec<Range<u64>>,
}

/// A way to use memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum TouchKind {
    Write,
    Update,
    Read,
}

impl TouchedBytes {
    /// Adds a range. Most come in rising order, each where the last one ends.
    pub(super) fn add(&mut self, kind: TouchKind, bytes: Range<u64>) {
        let ranges = match kind {
            TouchKind::Write => &mut self.written,
            TouchKind::Update => &mut self.updated,
            TouchKind::Read => &mut self.read,
        };
        match ranges.last_mut() {
            Some(last) if last.end == bytes.start => last.end = bytes.end,
            _ => ranges.push(bytes),
        }
    }

    /// Ranges in rising order that do not touch each other.
    pub fn tidy(&mut self) {
        for ranges in [&mut self.written, &mut self.updated, &mut self.read] {
            ranges.sort_unstable_by_key(|range| range.start);
            ranges.dedup_by(|next, last| {
                let joins = next.start <= last.end;
                if joins {
                    last.end = last.end.max(next.end);
                }
                joins
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut touched = TouchedBytes::default();
        for bytes in [8..12, 12..16, 40..44, 0..4, 2..8] {
            touched.add(TouchKind::Read, bytes);
        }
        touched.add(TouchKind::Write, 0..4);
        touched.tidy();
        assert_eq!(touched.read, [0..16, 40..44]);
        assert_eq!(touched.written.first(), Some(&(0..4)));
    }
}
