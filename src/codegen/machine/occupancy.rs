//! Which registers of one file are taken at which points of the program: bit sets over points, summed up in
//! chunks so that long intervals cost little.

/// A set of registers of one file.
pub(super) type Set = [u64; 4];

/// The empty set.
pub(super) const EMPTY: Set = [0; 4];

/// Points per chunk.
const CHUNK: usize = 32;

/// Taken registers by point. A point lies in `rows`; a chunk that is covered from end to end is noted in
/// `all` only, and `any` holds everything that is taken somewhere in the chunk.
#[derive(Default)]
pub(super) struct RegisterOccupancy {
    rows: Vec<Set>,
    any: Vec<Set>,
    all: Vec<Set>,
}

pub(super) fn unite(into: &mut Set, other: &Set) {
    for (word, more) in into.iter_mut().zip(other) {
        *word |= more;
    }
}

impl RegisterOccupancy {
    /// Resets to nothing taken at `points` points.
    pub(super) fn reset(&mut self, points: usize) {
        for (sets, len) in [
            (&mut self.rows, points),
            (&mut self.any, points.div_ceil(CHUNK)),
            (&mut self.all, points.div_ceil(CHUNK)),
        ] {
            sets.clear();
            sets.resize(len, EMPTY);
        }
    }

    /// Registers taken at any point from `first` to `last`.
    #[inline]
    pub(super) fn taken(&self, first: usize, last: usize) -> Set {
        let mut taken = EMPTY;
        let (first_chunk, last_chunk) = (first / CHUNK, last / CHUNK);
        for chunk in first_chunk..=last_chunk {
            let (start, end) = (first.max(chunk * CHUNK), last.min(chunk * CHUNK + CHUNK - 1));
            if end - start + 1 == CHUNK {
                unite(&mut taken, &self.any[chunk]);
            } else {
                unite(&mut taken, &self.all[chunk]);
                self.rows[start..=end].iter().for_each(|row| unite(&mut taken, row));
            }
        }
        taken
    }

    /// Takes `registers` at every point from `first` to `last`.
    #[inline]
    pub(super) fn take(&mut self, first: usize, last: usize, registers: &Set) {
        let (first_chunk, last_chunk) = (first / CHUNK, last / CHUNK);
        for chunk in first_chunk..=last_chunk {
            let (start, end) = (first.max(chunk * CHUNK), last.min(chunk * CHUNK + CHUNK - 1));
            unite(&mut self.any[chunk], registers);
            if end - start + 1 == CHUNK {
                unite(&mut self.all[chunk], registers);
            } else {
                self.rows[start..=end].iter_mut().for_each(|row| unite(row, registers));
            }
        }
    }
}

/// The registers `first..first + width` (`width` up to 64).
pub(super) fn tuple(first: u32, width: u32) -> Set {
    place_bits(first, u64::MAX >> (64 - width.clamp(1, 64)) & u64::from(width > 0).wrapping_neg())
}

/// The registers of a tuple at `first` whose bits are set in `parts`.
pub(super) fn parts_of_tuple(first: u32, parts: u32) -> Set {
    place_bits(first, parts.into())
}

fn place_bits(first: u32, bits: u64) -> Set {
    let mut set = EMPTY;
    let (word, shift) = (first as usize / 64, first % 64);
    let bits = u128::from(bits) << shift;
    if let Some(low) = set.get_mut(word) {
        *low = bits as u64;
    }
    if let Some(high) = set.get_mut(word + 1) {
        *high = (bits >> 64) as u64;
    }
    set
}

/// One more than the highest register of a set; 0 for the empty set.
pub(super) fn end_of(set: &Set) -> u32 {
    let last = set.iter().rposition(|word| *word != 0);
    last.map_or(0, |i| 64 * i as u32 + 64 - set[i].leading_zeros())
}

/// True if a register is in both.
pub(super) fn intersect(a: &Set, b: &Set) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// The set moved down by `by` registers (below 64).
pub(super) fn shift_down(set: &Set, by: u32) -> Set {
    let mut shifted = EMPTY;
    for (i, word) in shifted.iter_mut().enumerate() {
        let next = set.get(i + 1).copied().unwrap_or(0);
        *word = set[i] >> by | if by == 0 { 0 } else { next << (64 - by) };
    }
    shifted
}

fn lowest(set: &Set) -> Option<u32> {
    set.iter()
        .enumerate()
        .find(|(_, word)| **word != 0)
        .map(|(i, word)| 64 * i as u32 + word.trailing_zeros())
}

/// Where `width` consecutive registers begin that are not in `taken` and are all below `limit`.
pub(super) fn free_runs(taken: &Set, width: u32, limit: u32) -> Set {
    let mut runs = EMPTY;
    for i in 0..4 {
        let below = limit.saturating_sub(64 * i as u32);
        runs[i] = !taken[i] & 1u64.checked_shl(below).map_or(u64::MAX, |bit| bit - 1);
    }
    let mut length = 1;
    while length < width {
        let step = length.min(width - length);
        let shifted = shift_down(&runs, step);
        for i in 0..4 {
            runs[i] &= shifted[i];
        }
        length += step;
    }
    runs
}

/// The lowest of the places `runs` at a multiple of `alignment` (1, 2 or 4). A single register goes beside a
/// taken one of its pair if such a place is free below `used`, so that pairs stay whole.
pub(super) fn find_free(runs: &Set, taken: &Set, alignment: u32, used: u32) -> Option<u32> {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    if alignment == 1 {
        let mut halves = EMPTY;
        for i in 0..4 {
            halves[i] = runs[i] & ((taken[i] & EVEN) << 1 | taken[i] >> 1 & EVEN);
        }
        if let Some(half) = lowest(&halves).filter(|half| *half < used) {
            return Some(half);
        }
    }
    let places = match alignment {
        1 => u64::MAX,
        2 => EVEN,
        _ => 0x1111_1111_1111_1111,
    };
    lowest(&runs.map(|word| word & places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_across_chunks() {
        let mut occupancy = RegisterOccupancy::default();
        occupancy.reset(200);
        occupancy.take(10, 150, &tuple(3, 2));
        occupancy.take(40, 41, &tuple(100, 1));
        assert_eq!(occupancy.taken(0, 9), EMPTY);
        assert_eq!(occupancy.taken(151, 199), EMPTY);
        assert_eq!(occupancy.taken(9, 10), tuple(3, 2));
        assert_eq!(occupancy.taken(64, 64), tuple(3, 2));
        let mut both = tuple(3, 2);
        unite(&mut both, &tuple(100, 1));
        assert_eq!(occupancy.taken(0, 199), both);
        assert_eq!(occupancy.taken(41, 41), both);
        assert_eq!(occupancy.taken(42, 63), tuple(3, 2));
    }

    fn place(taken: &Set, width: u32, alignment: u32, limit: u32, used: u32) -> Option<u32> {
        find_free(&free_runs(taken, width, limit), taken, alignment, used)
    }

    #[test]
    fn free_runs_cross_words_and_respect_alignment() {
        let mut taken = tuple(0, 61);
        assert_eq!(end_of(&taken), 61);
        assert_eq!(end_of(&EMPTY), 0);
        assert_eq!(place(&taken, 4, 2, 256, 0), Some(62));
        assert_eq!(place(&taken, 4, 4, 256, 0), Some(64));
        assert_eq!(place(&taken, 32, 2, 94, 0), Some(62));
        assert_eq!(place(&taken, 32, 2, 93, 0), None);
        taken[0] &= !0b10;
        assert_eq!(place(&taken, 1, 1, 256, 64), Some(1));
        assert_eq!(place(&taken, 2, 2, 256, 64), Some(62));
    }

    #[test]
    fn single_registers_fill_broken_pairs_first() {
        let mut taken = tuple(4, 1);
        assert_eq!(place(&taken, 1, 1, 256, 8), Some(5));
        assert_eq!(place(&taken, 1, 1, 256, 5), Some(0));
        taken[0] |= 0b10_0000;
        assert_eq!(place(&taken, 1, 1, 256, 8), Some(0));
    }

    #[test]
    fn parts_of_a_tuple_across_words() {
        assert_eq!(parts_of_tuple(62, 0b1111), tuple(62, 4));
        assert_eq!(parts_of_tuple(252, 0b1010), [0, 0, 0, 0b1010 << 60]);
    }
}
