//! Which lines a cache holds: tags only, the data is always right.

/// A set-associative cache that forgets the line which was used longest ago.
#[derive(Debug)]
pub(super) struct Tags {
    sets: u64,
    ways: usize,
    /// Number of the line plus one, most recently used first; zero is empty.
    lines: Vec<u64>,
}

impl Tags {
    /// An empty cache. It has at least one set.
    pub fn new(bytes: u64, line: u64, ways: u64) -> Tags {
        let sets = (bytes / (line * ways)).max(1);
        Tags { sets, ways: ways as usize, lines: vec![0; (sets * ways) as usize] }
    }

    /// Uses line number `line`: true if it was there. It is from now on.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        let first = (line % self.sets) as usize * self.ways;
        let set = &mut self.lines[first..first + self.ways];
        let tag = line.wrapping_add(1);
        if set[0] == tag {
            return true;
        }
        let found = set.iter().position(|&t| t == tag);
        let last = found.unwrap_or(self.ways - 1);
        set.copy_within(..last, 1);
        set[0] = tag;
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_line_of_a_set_goes() {
        let mut tags = Tags::new(4 * 64, 64, 2);
        assert!(!tags.touch(0) && !tags.touch(2) && tags.touch(0));
        assert!(!tags.touch(4), "a third line of set 0");
        assert!(tags.touch(0) && !tags.touch(2), "line 2 was used longest ago");
        assert!(!tags.touch(1), "another set");
    }

    #[test]
    fn a_tiny_cache_has_one_set() {
        let mut tags = Tags::new(1, 64, 4);
        assert!(!tags.touch(9) && tags.touch(9));
    }
}
