//! How the dimensions of a kernel are spread, how large they are, and what else is said of them before the
//! first operation.

use std::fmt::Write;

use super::super::Choices;
use super::generator::{DIMS, Spread};

/// A matrix instruction, with the dtypes of its factors and of its sums.
pub(super) type Product = (&'static str, &'static str, &'static str);

/// What stands in front of a kernel's memories.
pub(super) struct Distribution {
    /// The lines.
    pub(super) constraints: String,
    /// Sizes: symbol, number, and whether it is left open until the launch.
    pub(super) sizes: Vec<(&'static str, i64, bool)>,
    pub(super) spread: [Spread; 3],
    /// How many elements of each dimension a workgroup has at a time.
    pub(super) extents: [i64; 3],
    pub(super) product: Option<Product>,
    /// Whether the number of iterations is read from a memory.
    pub(super) is_counted: bool,
    /// Memories alone have the dimension F, which follows M.
    pub(super) has_follower: bool,
}

impl Distribution {
    pub(super) fn new(choices: &mut Choices<'_>) -> Distribution {
        let product = choices.one(&[
            None,
            None,
            None,
            None,
            Some(("f32_16x16x16_f16", "f16", "f32")),
            Some(("f32_16x16x16_bf16", "bf16", "f32")),
            Some(("i32_16x16x32_i8", "i8", "i32")),
            Some(("f32_16x16x4_f32", "f32", "f32")),
            Some(("f64_16x16x4_f64", "f64", "f64")),
            Some(("f32_16x16x32_f8e4m3fnuz", "f8e4m3fnuz", "f32")),
            Some(("f32_32x32x8_f16", "f16", "f32")),
        ]);
        let mut distribution = Distribution {
            constraints: String::new(),
            sizes: Vec::new(),
            spread: [Spread::Workgroups, Spread::No, Spread::Loop],
            extents: [1; 3],
            product,
            is_counted: false,
            has_follower: false,
        };
        let axes = choices.one(&[[0, 1], [1, 0], [0, 2], [0, 3]]);
        distribution.rows(choices, axes[0]);
        distribution.columns(choices, axes[1]);
        distribution.depth(choices);
        distribution.sizes.push(("L", choices.one(&[7, 64, 1]), choices.sometimes(4)));
        distribution.sizes.push(("LL", choices.one(&[5, 40]), choices.sometimes(4)));
        distribution.order(choices);
        if let Some((name, ..)) = product {
            distribution.line(&format!("mma {name}"));
        }
        distribution.promises(choices);
        let Distribution { sizes, spread, extents, .. } = &mut distribution;
        for ((dim, spread), extent) in DIMS.iter().zip(spread).zip(extents) {
            if *spread == Spread::No {
                *extent = sizes.iter().find(|size| size.0 == *dim).map_or(1, |size| size.1);
            }
        }
        distribution
    }

    fn line(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.constraints, "  {text}");
    }

    /// Tiles of these sizes; matrix instructions want whole ones of their own.
    fn tile(&self, choices: &mut Choices<'_>, usual: &[i64]) -> i64 {
        choices.one(if self.product.is_some() { &[32, 64] } else { usual })
    }

    fn rows(&mut self, choices: &mut Choices<'_>, axis: u32) {
        let tile = self.tile(choices, &[16, 32, 64, 8, 1]);
        self.line(&format!("workgroup M, {tile}, {axis}"));
        self.extents[0] = tile;
        if choices.below(2) == 1 && tile > 1 {
            let waves = if self.product.is_some() { tile / 32 } else { choices.one(&[2, 2, 4, 8]).min(tile) };
            self.line(&format!("wave M, {}", tile / waves));
        }
        self.sizes.push(("M", choices.one(&[16, 64, 5, 33, 1, 47]), choices.sometimes(4)));
    }

    fn columns(&mut self, choices: &mut Choices<'_>, axis: u32) {
        match choices.below(4) {
            0 => {
                self.spread[1] = Spread::Workgroups;
                let tile = self.tile(choices, &[16, 32]);
                self.line(&format!("workgroup N, {tile}, {axis}"));
                self.extents[1] = tile;
                self.sizes.push(("N", choices.one(&[16, 32, 40, 7]), choices.sometimes(4)));
            }
            1 => {
                let waves: &[i64] = if self.product.is_some() { &[32, 16] } else { &[16, 8, 32] };
                let tile = choices.one(waves);
                self.line(&format!("wave N, {tile}"));
                self.sizes.push(("N", choices.one(&[32, 16, 5, 30, 48]), false));
            }
            2 => {
                self.spread[1] = Spread::Loop;
                let tile = self.tile(choices, &[16, 4]);
                self.line(&format!("tile N, {tile}"));
                self.extents[1] = tile;
                self.sizes.push(("N", choices.one(&[32, 16, 5, 30]), choices.sometimes(4)));
            }
            _ => self.sizes.push(("N", choices.one(&[16, 4, 32, 1, 23]), false)),
        }
    }

    fn depth(&mut self, choices: &mut Choices<'_>) {
        if choices.below(3) == 2 {
            self.spread[2] = Spread::No;
            self.sizes.push(("K", choices.one(&[16, 32, 2, 1, 11]), false));
            return;
        }
        let tile = self.tile(choices, &[32, 16, 4]);
        self.line(&format!("tile K, {tile}"));
        self.extents[2] = tile;
        self.sizes.push(("K", choices.one(&[64, 32, 20, 100, 1]), choices.sometimes(3)));
        if choices.sometimes(5) {
            let counts = ["2", "1", "0", "workgroup_0 + 1", "COUNT", "4"];
            let [first, count] =
                [&["0", "1", "workgroup_0", "L // 8"][..], &counts].map(|numbers| choices.one(numbers));
            let is_nested = self.spread[1] == Spread::Loop && count == "0";
            let count = if is_nested { "iteration_N + 1" } else { count };
            let step = choices.one(&["", "", ", step 2", ", step 3"]);
            self.line(&format!("iterations K, {first}, {count}{step}"));
            self.is_counted = count == "COUNT";
        }
    }

    fn order(&mut self, choices: &mut Choices<'_>) {
        if choices.sometimes(5) {
            let order = choices.one(&["grouped 2", "xcd 8", "0, grid_0 - 1 - workgroup_0", "grouped 3"]);
            self.line(&format!("reorder {order}"));
        }
        if choices.sometimes(5) {
            let workgroups = choices.one(&[1, 2, 3]);
            self.line(&format!("persistent {workgroups}"));
        }
    }

    /// A dimension that follows another one, and what is known of open sizes.
    fn promises(&mut self, choices: &mut Choices<'_>) {
        self.has_follower = choices.sometimes(4);
        if self.has_follower {
            let place = choices.one(&["M // 4", "M", "M + 1", "M // 2"]);
            self.line(&format!("follow F, {place} as [M]"));
            self.sizes.push(("F", choices.one(&[16, 4, 33]), choices.sometimes(4)));
        }
        for at in 0..self.sizes.len() {
            let (name, size, is_open) = self.sizes[at];
            if is_open && DIMS.contains(&name) && choices.sometimes(3) {
                let divisor = [16, 8, 4].into_iter().find(|by| size % by == 0).unwrap_or(1);
                let promise = match choices.below(3) {
                    0 => format!("% {divisor} == 0"),
                    1 => format!(">= {}", size - size / 3),
                    _ => format!("<= {}", size + size / 2),
                };
                self.line(&format!("assume {name} {promise}"));
            }
        }
    }
}
