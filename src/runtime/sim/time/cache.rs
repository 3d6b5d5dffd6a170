//! Which lines a cache holds: tags only, the data is always right.

/// A set-associative cache that forgets the line which was used longest ago.
#[derive(Debug)]
pub(super) struct Tags {
    sets: u64,
    ways: usize,
    /// Number of the line plus one; zero is empty.
    lines: Vec<u64>,
    /// When each was last used.
    used: Vec<u64>,
    clock: u64,
    /// Way in which a line was last seen, by its low bits: saves the search.
    hints: Vec<u8>,
}

/// Number of hints.
const HINTS: u64 = 1024;

impl Tags {
    /// An empty cache. It has at least one set.
    pub fn new(bytes: u64, line: u64, ways: u64) -> Tags {
        let sets = (bytes / (line * ways)).max(1);
        let count = (sets * ways) as usize;
        let hints = vec![0; HINTS as usize];
        Tags { sets, ways: ways as usize, lines: vec![0; count], used: vec![0; count], clock: 0, hints }
    }

    /// Uses line number `line`: true if it was there. It is from now on.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        let first = (line % self.sets) as usize * self.ways;
        let tag = line.wrapping_add(1);
        self.clock += 1;
        let hint = &mut self.hints[(line % HINTS) as usize];
        let guess = first + usize::from(*hint) % self.ways;
        if self.lines[guess] == tag {
            self.used[guess] = self.clock;
            return true;
        }
        let set = first..first + self.ways;
        let found = self.lines[set.clone()].iter().position(|&t| t == tag);
        let oldest = || {
            let ages = self.used[set].iter().enumerate();
            ages.min_by_key(|&(_, &age)| age).map_or(0, |(way, _)| way)
        };
        let way = found.unwrap_or_else(oldest);
        *hint = way as u8;
        self.lines[first + way] = tag;
        self.used[first + way] = self.clock;
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
