//! What the ready kernels with weights of 4 bits compute, as plain loops in f64.

use super::{Outputs, ReadyLaunch};

impl ReadyLaunch<'_> {
    /// The integer of row `j` and column `k`: halfword t of a block of 128 has every 32nd element from t on.
    fn integer(&self, j: usize, k: usize) -> f64 {
        let (block, t) = (k / 128, k % 32);
        let halfword = self.of("w")[((block * 4 + t / 8) * self.size("N") + j) * 8 + t % 8];
        f64::from((halfword as i32 >> (4 * (k % 128 / 32))) & 15)
    }

    /// The weight of row `j` and column `k`, of groups of so many columns.
    fn int4(&self, j: usize, k: usize, group: usize) -> f64 {
        let at = k / group * self.size("N") + j;
        let zero = self.arguments.get("zeros").map_or(8.0, |zeros| zeros[at]);
        (self.integer(j, k) - zero) * self.of("scales")[at]
    }

    /// Products of rows with the integers, as parts of so many elements of K.
    pub(super) fn int4_parts(&self, group: usize, part: usize) -> Vec<f64> {
        let k = self.size("K");
        let of = |s: usize| {
            let element = move |[i, j, l]: [usize; 3]| match l / part == s {
                true => self.of("a")[i * k + l] * self.int4(j, l, group),
                false => 0.0,
            };
            self.product(element, |sum, _, _| sum)
        };
        (0..self.arguments.get("parts").map_or(1, |_| self.size("SPLITS"))).flat_map(of).collect()
    }

    /// Products of rows with 4-bit floats, eight of which lie side by side.
    pub(super) fn mxfp4(&self) -> Outputs {
        let [n, k] = ["N", "K"].map(|name| self.size(name));
        let weight = |j: usize, l: usize| {
            self.of("w")[(l / 8 * n + j) * 8 + l % 8] * self.of("scales")[l / 32 * n + j]
        };
        vec![("c", self.product(|[i, j, l]| self.of("a")[i * k + l] * weight(j, l), |sum, _, _| sum))]
    }

    /// Rows of two integers in a byte, as blocks of halfwords.
    pub(super) fn arranged_int4(&self) -> Outputs {
        let [n, k] = ["N", "K"].map(|name| self.size(name));
        let row = k.div_ceil(2);
        let integer = |j: usize, l: usize| match l / 2 < row {
            true => (self.of("a")[j * row + l / 2] as i32 >> (4 * (l % 2))) & 15,
            false => 0,
        };
        let halfword = |at: usize| {
            let (j, t) = (at / 8 % n, at / 8 / n % 4 * 8 + at % 8);
            let of_quarter =
                |quarter: usize| integer(j, at / 32 / n * 128 + 32 * quarter + t) << (4 * quarter);
            f64::from((0..4).fold(0, |all, quarter| all | of_quarter(quarter)) as i16)
        };
        vec![("b", (0..k.div_ceil(128) * 32 * n).map(halfword).collect())]
    }

    /// Rows of bytes and of scales, as groups of four of each row and columns.
    pub(super) fn arranged_mxfp4(&self) -> Outputs {
        let [n, k] = ["N", "K"].map(|name| self.size(name));
        let (row, scales) = (k.div_ceil(2), k.div_ceil(32));
        let mut b = self.of("b").to_vec();
        for (at, byte) in b.iter_mut().enumerate() {
            let (j, place) = (at / 4 % n, at / 4 / n * 4 + at % 4);
            if place < row {
                *byte = self.of("a")[j * row + place];
            }
        }
        let turned = |at: usize| self.of("a_scales")[at % n * scales + at / n];
        vec![("b", b), ("b_scales", (0..scales * n).map(turned).collect())]
    }
}
