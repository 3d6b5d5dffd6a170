//! How K is divided: among workgroups, and among the waves of each.

use crate::prelude::*;

/// Elements of K that have one block of weights: parts are whole blocks.
pub(super) const BLOCK: i64 = 128;

/// The elements of K of each wave, where so many waves in all have a part of it.
pub(in crate::kernels) fn part_of_wave(k: i64, waves: i64) -> i64 {
    let blocks = k.max(1).unsigned_abs().div_ceil(BLOCK.unsigned_abs());
    blocks.div_ceil(waves.max(1).unsigned_abs()).cast_signed().saturating_mul(BLOCK)
}

/// The symbols of a product.
#[derive(Copy, Clone)]
pub(super) struct FourBitAxes {
    pub(super) m: Symbol,
    pub(super) n: Symbol,
    pub(super) k: Symbol,
    /// Workgroups along K: one, unless results are parts.
    pub(super) splits: Symbol,
    /// Waves of a workgroup along K.
    pub(super) waves: Symbol,
    /// The elements of K of a workgroup, and of a wave.
    split: Symbol,
    part: Symbol,
    results: FourBitResults,
}

/// The destination of a workgroup's sums.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum FourBitResults {
    /// C itself, of workgroups that have all of K.
    Whole,
    /// Into a memory of parts.
    Parts,
}

impl FourBitAxes {
    pub(super) fn new(results: FourBitResults) -> FourBitAxes {
        let [m, n, k] = symbols(["M", "N", "K"]);
        let [splits, waves, split, part] = symbols(["SPLITS", "WAVES", "SPLIT", "PART"]);
        let splits = match results {
            FourBitResults::Whole => Symbol::from(1),
            FourBitResults::Parts => splits,
        };
        FourBitAxes { m, n, k, splits, waves, split, part, results }
    }

    /// Where a wave's part begins, in blocks of so many elements.
    pub(super) fn start(&self, elements: i64) -> SymExpr {
        let of_wave = self.waves * (self.part / elements);
        match self.results {
            FourBitResults::Whole => of_wave,
            FourBitResults::Parts => self.splits * (self.split / elements) + of_wave,
        }
    }

    /// How a kernel is spread over the machine: a wave has all columns of its workgroup.
    pub(super) fn distribute(&self, w: &Tracer) {
        let [block_m, block_n] = symbols(["BLOCK_M", "BLOCK_N"]);
        w.distribute([workgroup(self.n, block_n, 0), workgroup(self.m, block_m, 1), wave(self.waves, 1)]);
        if self.results == FourBitResults::Parts {
            w.distribute([workgroup(self.splits, 1, 2)]);
        }
        w.mma_type(MatrixShape::M16x16);
    }

    /// Writes the sums of all waves.
    pub(super) fn write(&self, w: &Tracer, sums: Value, inputs: DType) {
        let FourBitAxes { m, n, splits, waves, results, .. } = *self;
        let sum = sums.sum(waves);
        match results {
            FourBitResults::Whole => {
                w.write_at(sum.cast(inputs), w.memory("c", [m, n], Global, inputs), [m, n])
            }
            FourBitResults::Parts => w.write(sum, w.memory("parts", [splits, m, n], Global, F32)),
        }
    }
}
