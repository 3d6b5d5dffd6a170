//! Vector memory: which cache lines the lanes of an access touch, and for how long they occupy the address
//! path.
//!
//! Measured on MI210 (GB); later chips are assumed similar. Lanes are taken in order, 64 bytes worth of them
//! at a time. Such a group costs a clk per line if its quads of lanes are runs of dwords; scattered dwords
//! fall into four classes by their address modulo four dwords, and each class gives one per clk.

use super::super::wave::LANES;

/// The cost of an access before caches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct AccessShape {
    /// Clk of the address path.
    pub clk: u64,
    /// Lines, relative to that of the first active lane, in the order of lanes; and the bytes of each.
    pub lines: Vec<(i64, u32)>,
    /// Bytes of all lanes.
    pub bytes: u64,
    /// At least one group is not a run of lanes.
    pub scattered: bool,
}

/// Lanes and bytes of an access of which address differences are known.
pub(super) fn shape(active: u64, address: &[u64; LANES], bytes: &[u16; LANES], line: u64) -> AccessShape {
    let mut shape = AccessShape::default();
    let Some(base) = (0..LANES).find(|&l| active >> l & 1 != 0).map(|l| address[l] / line) else {
        return shape;
    };
    let widest = bytes.iter().copied().max().unwrap_or(4).max(1);
    let together = (64 / usize::from(widest.next_power_of_two())).clamp(1, 16);
    for first in (0..LANES).step_by(together) {
        let lanes = first..first + together;
        let mask = active & (u64::MAX >> (64 - together)) << first;
        if mask == 0 {
            continue;
        }
        let mut lines = 0u64;
        let mut last = u64::MAX;
        for lane in lanes.clone().filter(|&l| active >> l & 1 != 0) {
            // Addresses at the very end of the address space fault when they are used.
            let size = u64::from(bytes[lane]).max(1);
            let start = address[lane].min(u64::MAX - size - line);
            shape.bytes += u64::from(bytes[lane]);
            for number in start / line..=(start + size - 1) / line {
                let part = (start + size).min((number + 1) * line) - start.max(number * line);
                note(&mut shape.lines, number.wrapping_sub(base) as i64, part as u32);
                if number != last {
                    lines += 1;
                    last = number;
                }
            }
        }
        let runs = widest > 4 || is_runs(mask, address, lanes.clone());
        shape.clk += if runs {
            lines
        } else {
            shape.scattered = true;
            lines.max(classes(mask, address, lanes))
        };
    }
    shape
}

/// Adds bytes of a line; lines of neighbours are looked at first.
fn note(lines: &mut Vec<(i64, u32)>, number: i64, bytes: u32) {
    match lines.iter_mut().rev().find(|(n, _)| *n == number) {
        Some((_, sum)) => *sum += bytes,
        None => lines.push((number, bytes)),
    }
}

/// True if each quad of active lanes has rising consecutive dwords, or one address.
fn is_runs(mask: u64, address: &[u64; LANES], lanes: std::ops::Range<usize>) -> bool {
    lanes.clone().skip(1).all(|l| {
        let both = mask >> (l - 1) & 3 == 3;
        let step = address[l].wrapping_sub(address[l - 1]);
        !both || l % 4 == 0 || step <= 4
    })
}

/// Lanes with distinct dwords in the fullest class.
fn classes(mask: u64, address: &[u64; LANES], lanes: std::ops::Range<usize>) -> u64 {
    let mut counts = [0u64; 4];
    let mut last = [u64::MAX; 4];
    for lane in lanes.filter(|&l| mask >> l & 1 != 0) {
        let dword = address[lane] / 4;
        let class = (dword % 4) as usize;
        if last[class] != dword {
            last[class] = dword;
            counts[class] += 1;
        }
    }
    counts.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stride(bytes: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| 4096 + bytes * lane as u64)
    }

    #[test]
    fn runs_of_lanes_take_a_clk_per_line() {
        let dwords = shape(u64::MAX, &stride(4), &[4; LANES], 64);
        assert_eq!((dwords.clk, dwords.lines.len(), dwords.bytes), (4, 4, 256));
        let wide = shape(u64::MAX, &stride(16), &[16; LANES], 128);
        assert_eq!((wide.clk, wide.lines.len(), wide.bytes), (16, 8, 1024));
        let same = shape(u64::MAX, &[4096; LANES], &[4; LANES], 64);
        assert_eq!((same.clk, same.lines.len()), (4, 1));
    }

    /// Published for MI210, clk of a dword load: stride 2: 32; 3: 16; 4: 64; 7: 28.
    #[test]
    fn strides_of_dwords_cost_what_was_measured() {
        for (dwords, clk) in [(2, 32), (3, 16), (4, 64), (7, 28), (8, 64)] {
            let found = shape(u64::MAX, &stride(4 * dwords), &[4; LANES], 64).clk;
            assert!(found.abs_diff(clk) <= 2, "stride {dwords}: {found} instead of {clk}");
        }
    }

    #[test]
    fn an_access_over_the_end_of_a_line_touches_two() {
        let mut address = [0; LANES];
        address[5] = 126;
        let crossing = shape(1 << 5, &address, &[4; LANES], 128);
        assert_eq!(crossing.lines, [(0, 2), (1, 2)]);
        assert_eq!(shape(0, &address, &[4; LANES], 128), AccessShape::default());
    }
}
