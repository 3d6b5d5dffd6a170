//! Which lines a cache holds: only tags, as the data is always right.

/// A set-associative cache that evicts the least recently used line.
///
/// A line lies in one slot. Slots are numbered way by way, so that adjacent lines have adjacent slots. The
/// slots of a set form a list in the order of use. Lines also fall into buckets, which know how many of their
/// lines are present and where one of them was last seen; so most questions are answered without a search.
///
/// Everything starts as zeros: unused parts of a large cache cost nothing.
#[derive(Debug)]
pub(super) struct CacheTags {
    ways: u32,
    /// Number of the line in each slot.
    lines: Vec<u64>,
    /// For each slot, the one that was used before it and the one that was used after it; at the ends of the
    /// list, the slot itself.
    links: Vec<[u32; 2]>,
    /// For each set, how many slots are in use, and the first and the last of its list.
    sets: Vec<[u32; 3]>,
    /// For each bucket, how many of its lines are present, and the slot of the one that was last seen.
    buckets: Vec<[u32; 2]>,
}

const BEFORE: usize = 0;
const AFTER: usize = 1;

const USED: usize = 0;
const OLDEST: usize = 1;
const NEWEST: usize = 2;

impl CacheTags {
    /// An empty cache. It has at least one set.
    pub(super) fn new(bytes: u64, line: u64, ways: u64) -> CacheTags {
        let sets = (bytes / (line * ways)).max(1);
        let slots = (sets * ways) as usize;
        CacheTags {
            ways: ways as u32,
            lines: vec![0; slots],
            links: vec![[0; 2]; slots],
            sets: vec![[0; 3]; sets as usize],
            // Many more buckets than slots: a bucket that contains other lines costs a search.
            buckets: vec![[0; 2]; 8 * slots.next_power_of_two()],
        }
    }

    /// Uses line number `line`; true if it was there. From now on it is.
    #[inline]
    pub(super) fn touch(&mut self, line: u64) -> bool {
        let bucket = self.bucket(line);
        let [there, slot] = self.buckets[bucket];
        if there > 0 && self.lines[slot as usize] == line {
            self.use_again(slot);
            return true;
        }
        self.search(line, bucket)
    }

    /// Bucket of a line: adjacent lines have adjacent buckets, and lines at a distance of a power of two do
    /// not collide for that reason.
    #[inline]
    fn bucket(&self, line: u64) -> usize {
        let page = line >> self.buckets.len().trailing_zeros();
        let start = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        line.wrapping_add(start) as usize & (self.buckets.len() - 1)
    }

    /// Uses a line that is not where its bucket says.
    fn search(&mut self, line: u64, bucket: usize) -> bool {
        let count = self.sets.len();
        let set = (line % count as u64) as usize;
        let used = self.sets[set][USED];
        let [there, _] = self.buckets[bucket];
        let mut slots = (0..used).map(|way| way * count as u32 + set as u32);
        if there > 0
            && let Some(slot) = slots.find(|&slot| self.lines[slot as usize] == line)
        {
            self.buckets[bucket][1] = slot;
            self.use_again(slot);
            return true;
        }
        let slot = if used < self.ways {
            self.take(set)
        } else {
            let oldest = self.sets[set][OLDEST];
            let leaves = self.bucket(self.lines[oldest as usize]);
            self.buckets[leaves][0] -= 1;
            self.use_again(oldest);
            oldest
        };
        self.lines[slot as usize] = line;
        self.buckets[bucket] = [self.buckets[bucket][0] + 1, slot];
        false
    }

    /// Puts an unused slot at the end of its set's list.
    fn take(&mut self, set: usize) -> u32 {
        let [used, _, newest] = self.sets[set];
        let slot = used * self.sets.len() as u32 + set as u32;
        self.sets[set][USED] += 1;
        if used == 0 {
            self.sets[set][OLDEST] = slot;
            self.sets[set][NEWEST] = slot;
            self.links[slot as usize] = [slot; 2];
        } else {
            self.append(set, newest, slot);
        }
        slot
    }

    /// Moves a slot to the end of its set's list.
    #[inline]
    fn use_again(&mut self, slot: u32) {
        let [before, after] = self.links[slot as usize];
        if after == slot {
            return;
        }
        // Numbers of slots fit into 32 bits, for which division is cheaper.
        let set = (slot % self.sets.len() as u32) as usize;
        if before == slot {
            self.sets[set][OLDEST] = after;
            self.links[after as usize][BEFORE] = after;
        } else {
            self.links[before as usize][AFTER] = after;
            self.links[after as usize][BEFORE] = before;
        }
        self.append(set, self.sets[set][NEWEST], slot);
    }

    #[inline]
    fn append(&mut self, set: usize, newest: u32, slot: u32) {
        self.links[newest as usize][AFTER] = slot;
        self.links[slot as usize] = [newest, slot];
        self.sets[set][NEWEST] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_line_of_a_set_goes() {
        let mut tags = CacheTags::new(4 * 64, 64, 2);
        assert!(!tags.touch(0) && !tags.touch(2) && tags.touch(0));
        assert!(!tags.touch(4), "a third line of set 0");
        assert!(tags.touch(0) && !tags.touch(2), "line 2 was used longest ago");
        assert!(!tags.touch(1), "another set");
    }

    /// The definition: a list of lines per set, in the order of use.
    #[test]
    fn lines_stay_as_long_as_the_order_of_use_says() {
        let mut seed = 1u64;
        for (sets, ways, lines) in [(1, 1, 3), (4, 2, 20), (3, 5, 40), (8, 16, 300), (4, 64, 400)] {
            let mut tags = CacheTags::new(sets * ways * 64, 64, ways);
            let mut model = vec![Vec::new(); sets as usize];
            for _ in 0..20_000 {
                seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let line = (seed >> 33) % lines * [1, 64][(seed >> 32) as usize & 1];
                let set: &mut Vec<u64> = &mut model[(line % sets) as usize];
                let found = set.iter().position(|&other| other == line);
                if let Some(place) = found {
                    set.remove(place);
                } else if set.len() == ways as usize {
                    set.remove(0);
                }
                set.push(line);
                assert_eq!(tags.touch(line), found.is_some(), "{sets} sets of {ways}");
            }
        }
    }

    #[test]
    fn a_tiny_cache_has_one_set() {
        let mut tags = CacheTags::new(1, 64, 4);
        assert!(!tags.touch(9) && tags.touch(9));
    }
}
