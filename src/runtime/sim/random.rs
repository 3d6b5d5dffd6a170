//! Numbers that only a seed decides.

/// Pseudo-random numbers (SplitMix64, Steele, Lea and Flood 2014).
#[derive(Clone, Debug, Default)]
pub(super) struct Random(u64);

impl Random {
    /// The numbers of a seed and one of its streams.
    pub(super) fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17));
        random.next();
        random
    }

    /// The next one.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// One of `0` to `end - 1`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}
