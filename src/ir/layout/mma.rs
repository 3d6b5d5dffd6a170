//! MFMA shapes and the layouts of their operands.
//!
//! One rule gives the layouts of every shape, dense or sparse; it agrees with AMD's published matrix
//! instruction calculator for all 93 instructions of gfx908, gfx90a and gfx942 (`tests/isa/mfma_layouts.rs`).
//! Another one is for the products that lanes make one by one where a chip has no matrix instructions
//! ([`Mma::is_of_lanes`]).
//!
//! To add a matrix instruction, add its row of the instruction table (`codegen/isa/rows/matrix.rs`) and a
//! row here: its layouts follow from its shape, its opcode and passes on each chip from the rows
//! (`codegen/target/matrix.rs`).
use super::{Dim, LANES, Layout, LayoutError, Mode, Source};
use crate::ir::types::DType;
use smallvec::SmallVec;
use std::fmt;

/// Whether A is stored in full.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Sparsity {
    /// Every element of A is in a register.
    Dense,
    /// SMFMAC: of each four elements along k two are in registers. The layout of A then gives the first of
    /// the four; which two are stored is in the index register, chosen by the modifiers CBSZ and ABID.
    TwoOfFour,
}

/// Elements of k that share a scale in products with scales (OCP Microscaling Formats, 5.2).
pub(crate) const SCALED_BLOCK: u32 = 32;

/// How registers hold a factor of a product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct HeldFactor {
    /// What its elements are to everything but the instruction.
    pub(crate) dtype: DType,
    /// Elements of k that share a unit, if they are not whole bytes.
    pub(crate) elements: u32,
    /// Elements of `dtype` that a lane has for a unit: a power of two.
    pub(crate) words: u32,
    /// As many of them, the first ones, are the unit.
    pub(crate) taken: u32,
}

/// The shape of one matrix instruction: `D[block] = A[block] * B[block] + C[block]`, A of m x k and B of k x
/// n.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct MmaShape {
    m: u32,
    n: u32,
    k: u32,
    blocks: u32,
    accumulator_bits: u32,
    sparsity: Sparsity,
}

impl MmaShape {
    /// A shape, if one wave can hold its operands by the rule: powers of two, rows and columns of all blocks
    /// fit the lanes, and A, B and D divide evenly.
    pub fn new(
        [m, n, k, blocks]: [u32; 4],
        accumulator_bits: u32,
        sparsity: Sparsity,
    ) -> Result<MmaShape, LayoutError> {
        let shape = MmaShape { m, n, k, blocks, accumulator_bits, sparsity };
        let small = [m, n, k, blocks].iter().all(|extent| extent.is_power_of_two() && *extent <= 1024);
        let least = match sparsity {
            Sparsity::Dense => 1,
            Sparsity::TwoOfFour => 4,
        };
        let fits = small
            && m * blocks <= LANES
            && n * blocks <= LANES
            && m * k * blocks >= LANES * least
            && n * k * blocks >= LANES
            && m >= shape.rows_held()
            && m * n * blocks >= LANES * shape.rows_held();
        if fits { Ok(shape) } else { Err(LayoutError::NotAnMmaShape) }
    }

    /// Consecutive rows of D in one lane.
    const fn rows_held(self) -> u32 {
        if self.accumulator_bits == 64 { 1 } else { 4 }
    }

    /// Which element of A (rows `m`, columns `k`) each lane and register holds.
    pub fn a_layout(&self, m: Dim, k: Dim, block: Option<Dim>) -> Layout {
        self.input_layout(m, self.m, k, block, self.sparsity)
    }

    /// Which element of B (rows `k`, columns `n`) each lane and register holds.
    pub fn b_layout(&self, n: Dim, k: Dim, block: Option<Dim>) -> Layout {
        self.input_layout(n, self.n, k, block, Sparsity::Dense)
    }

    /// Lanes count rows first, then blocks, then groups of k; each lane holds one group in consecutive
    /// elements. Where that is more than 16, which are 16 bytes, it holds one of each half of k, so that
    /// lanes hold neighbouring ones (CDNA4 ISA guide, 8-bit sources of `V_MFMA_F32_16X16X128_F8F6F4`).
    fn input_layout(&self, row: Dim, rows: u32, k: Dim, block: Option<Dim>, sparsity: Sparsity) -> Layout {
        let groups = LANES / (rows * self.blocks);
        let held = self.k / groups;
        let (held, halves) = if held > 16 && sparsity == Sparsity::Dense { (held / 2, 2) } else { (held, 1) };
        let mut modes: SmallVec<[Mode; 12]> = SmallVec::new();
        match sparsity {
            Sparsity::Dense => {
                modes.push(Mode::new(Source::Register, held, k, 1));
                modes.push(Mode::new(Source::Register, halves, k, self.k / 2));
            }
            Sparsity::TwoOfFour => {
                modes.push(Mode::broadcast(Source::Register, 2));
                modes.push(Mode::new(Source::Register, held / 4, k, 4));
            }
        }
        modes.push(Mode::new(Source::Lane, rows, row, 1));
        modes.push(block_mode(Source::Lane, self.blocks, block, 1));
        modes.push(Mode::new(Source::Lane, groups, k, held));
        modes.retain(|mode| mode.extent > 1);
        Layout { modes }
    }

    /// Which element of C and D (rows `m`, columns `n`) each lane and register holds.
    ///
    /// Lanes count columns first. A lane holds four rows (one for 64-bit elements) in consecutive registers,
    /// lanes share the next rows, registers hold the rest; blocks take lanes only when the rows leave some.
    pub fn c_layout(&self, m: Dim, n: Dim, block: Option<Dim>) -> Layout {
        let held = self.rows_held();
        let groups = (LANES / self.n).min(self.m / held);
        let lane_blocks = LANES / (self.n * groups);
        let mut modes: SmallVec<[Mode; 12]> = SmallVec::new();
        modes.push(Mode::new(Source::Register, held, m, 1));
        modes.push(Mode::new(Source::Register, self.m / (held * groups), m, held * groups));
        modes.push(block_mode(Source::Register, self.blocks / lane_blocks, block, lane_blocks));
        modes.push(Mode::new(Source::Lane, self.n, n, 1));
        modes.push(block_mode(Source::Lane, lane_blocks, block, 1));
        modes.push(Mode::new(Source::Lane, groups, m, held));
        modes.retain(|mode| mode.extent > 1);
        Layout { modes }
    }
}

fn block_mode(source: Source, extent: u32, block: Option<Dim>, stride: u32) -> Mode {
    match block {
        Some(dim) => Mode::new(source, extent, dim, stride),
        None => Mode::broadcast(source, extent),
    }
}

struct MmaRow {
    mma: Mma,
    name: &'static str,
    mnk: (u32, u32, u32),
    inputs: [DType; 2],
    accumulator: DType,
}

macro_rules! instructions {
    ($($name:ident $m:literal $n:literal $k:literal $lhs:ident $rhs:ident $accumulator:ident $(, $chips:literal)?;)*) => {
        /// The matrix instructions, and the products of lanes one by one, that `mma` can be lowered to, named
        /// accumulator, shape, input, or both inputs.
        #[allow(non_camel_case_types)] // The field writes the names so.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Mma {
            $(
                #[doc = concat!(
                    stringify!($m), "x", stringify!($n), "x", stringify!($k), ", ", stringify!($lhs), " and ",
                    stringify!($rhs), " to ", stringify!($accumulator), $(" (", $chips, ")",)? "."
                )]
                $name,
            )*
        }

        /// What each computes. Which instruction of a chip that is, and how long it takes, is a fact of the
        /// chip ([`TargetInfo::matrix_instruction`](crate::codegen::target::TargetInfo::matrix_instruction)).
        const ROWS: &[MmaRow] = &[
            $(MmaRow {
                mma: Mma::$name,
                name: stringify!($name),
                mnk: ($m, $n, $k),
                inputs: [DType::$lhs, DType::$rhs],
                accumulator: DType::$accumulator,
            },)*
        ];
    };
}

#[rustfmt::skip]
instructions! {
    // name                              m  n   k lhs        rhs        accumulator, chips if not most
    F32_16x16x16_F16                     16 16  16 F16        F16        F32;
    F32_32x32x8_F16                      32 32   8 F16        F16        F32;
    F32_16x16x16_BF16                    16 16  16 Bf16       Bf16       F32;
    F32_32x32x8_BF16                     32 32   8 Bf16       Bf16       F32;
    F32_16x16x8_BF16                     16 16   8 Bf16       Bf16       F32, "gfx908, gfx90a";
    F32_32x32x4_BF16                     32 32   4 Bf16       Bf16       F32, "gfx908, gfx90a";
    I32_16x16x32_I8                      16 16  32 I8         I8         I32;
    I32_32x32x16_I8                      32 32  16 I8         I8         I32;
    F32_16x16x32_F16                     16 16  32 F16        F16        F32, "gfx950";
    F32_32x32x16_F16                     32 32  16 F16        F16        F32, "gfx950";
    F32_16x16x32_BF16                    16 16  32 Bf16       Bf16       F32, "gfx950";
    F32_32x32x16_BF16                    32 32  16 Bf16       Bf16       F32, "gfx950";
    I32_16x16x64_I8                      16 16  64 I8         I8         I32, "gfx950";
    I32_32x32x32_I8                      32 32  32 I8         I8         I32, "gfx950";
    I32_16x16x16_I8                      16 16  16 I8         I8         I32, "gfx908, gfx90a";
    I32_32x32x8_I8                       32 32   8 I8         I8         I32, "gfx908, gfx90a";
    F32_16x16x4_F32                      16 16   4 F32        F32        F32;
    F32_32x32x2_F32                      32 32   2 F32        F32        F32;
    F32_16x16x32_F8E4M3FNUZ              16 16  32 F8E4M3Fnuz F8E4M3Fnuz F32, "gfx942";
    F32_32x32x16_F8E4M3FNUZ              32 32  16 F8E4M3Fnuz F8E4M3Fnuz F32, "gfx942";
    F32_16x16x32_F8E5M2FNUZ              16 16  32 F8E5M2Fnuz F8E5M2Fnuz F32, "gfx942";
    F32_32x32x16_F8E5M2FNUZ              32 32  16 F8E5M2Fnuz F8E5M2Fnuz F32, "gfx942";
    F32_16x16x32_F8E4M3FN                16 16  32 F8E4M3Fn   F8E4M3Fn   F32, "gfx950";
    F32_32x32x16_F8E4M3FN                32 32  16 F8E4M3Fn   F8E4M3Fn   F32, "gfx950";
    F32_16x16x32_F8E5M2                  16 16  32 F8E5M2     F8E5M2     F32, "gfx950";
    F32_32x32x16_F8E5M2                  32 32  16 F8E5M2     F8E5M2     F32, "gfx950";
    F32_16x16x32_F8E4M3FNUZ_F8E5M2FNUZ   16 16  32 F8E4M3Fnuz F8E5M2Fnuz F32, "gfx942";
    F32_16x16x32_F8E5M2FNUZ_F8E4M3FNUZ   16 16  32 F8E5M2Fnuz F8E4M3Fnuz F32, "gfx942";
    F32_32x32x16_F8E4M3FNUZ_F8E5M2FNUZ   32 32  16 F8E4M3Fnuz F8E5M2Fnuz F32, "gfx942";
    F32_32x32x16_F8E5M2FNUZ_F8E4M3FNUZ   32 32  16 F8E5M2Fnuz F8E4M3Fnuz F32, "gfx942";
    F32_16x16x32_F8E4M3FN_F8E5M2         16 16  32 F8E4M3Fn   F8E5M2     F32, "gfx950";
    F32_16x16x32_F8E5M2_F8E4M3FN         16 16  32 F8E5M2     F8E4M3Fn   F32, "gfx950";
    F32_32x32x16_F8E4M3FN_F8E5M2         32 32  16 F8E4M3Fn   F8E5M2     F32, "gfx950";
    F32_32x32x16_F8E5M2_F8E4M3FN         32 32  16 F8E5M2     F8E4M3Fn   F32, "gfx950";
    F32_16x16x128_F8E4M3FN               16 16 128 F8E4M3Fn   F8E4M3Fn   F32, "gfx950";
    F32_16x16x128_F8E5M2                 16 16 128 F8E5M2     F8E5M2     F32, "gfx950";
    F32_16x16x128_F8E4M3FN_F8E5M2        16 16 128 F8E4M3Fn   F8E5M2     F32, "gfx950";
    F32_16x16x128_F8E5M2_F8E4M3FN        16 16 128 F8E5M2     F8E4M3Fn   F32, "gfx950";
    F32_32x32x64_F8E4M3FN                32 32  64 F8E4M3Fn   F8E4M3Fn   F32, "gfx950";
    F32_32x32x64_F8E5M2                  32 32  64 F8E5M2     F8E5M2     F32, "gfx950";
    F32_32x32x64_F8E4M3FN_F8E5M2         32 32  64 F8E4M3Fn   F8E5M2     F32, "gfx950";
    F32_32x32x64_F8E5M2_F8E4M3FN         32 32  64 F8E5M2     F8E4M3Fn   F32, "gfx950";
    F64_16x16x4_F64                      16 16   4 F64        F64        F64, "gfx90a on";
    F32_8x8x2_F16                         8  8   2 F16        F16        F32, "gfx906";
    F32_8x8x2_BF16                        8  8   2 Bf16       Bf16       F32, "gfx906";
    I32_8x8x4_I8                          8  8   4 I8         I8         I32, "gfx906";
    F32_8x8x1_F32                         8  8   1 F32        F32        F32, "gfx906";
    F64_8x8x1_F64                         8  8   1 F64        F64        F64, "gfx906";
    F32_16x16x128_F4E2M1                 16 16 128 F4E2M1     F4E2M1     F32, "gfx950";
    F32_32x32x64_F4E2M1                  32 32  64 F4E2M1     F4E2M1     F32, "gfx950";
    F32_16x16x128_F4E2M1_F6E2M3          16 16 128 F4E2M1     F6E2M3     F32, "gfx950";
    F32_16x16x128_F4E2M1_F6E3M2          16 16 128 F4E2M1     F6E3M2     F32, "gfx950";
    F32_16x16x128_F4E2M1_F8E4M3FN        16 16 128 F4E2M1     F8E4M3Fn   F32, "gfx950";
    F32_16x16x128_F4E2M1_F8E5M2          16 16 128 F4E2M1     F8E5M2     F32, "gfx950";
    F32_16x16x128_F6E2M3_F4E2M1          16 16 128 F6E2M3     F4E2M1     F32, "gfx950";
    F32_16x16x128_F6E2M3                 16 16 128 F6E2M3     F6E2M3     F32, "gfx950";
    F32_16x16x128_F6E2M3_F6E3M2          16 16 128 F6E2M3     F6E3M2     F32, "gfx950";
    F32_16x16x128_F6E2M3_F8E4M3FN        16 16 128 F6E2M3     F8E4M3Fn   F32, "gfx950";
    F32_16x16x128_F6E2M3_F8E5M2          16 16 128 F6E2M3     F8E5M2     F32, "gfx950";
    F32_16x16x128_F6E3M2_F4E2M1          16 16 128 F6E3M2     F4E2M1     F32, "gfx950";
    F32_16x16x128_F6E3M2_F6E2M3          16 16 128 F6E3M2     F6E2M3     F32, "gfx950";
    F32_16x16x128_F6E3M2                 16 16 128 F6E3M2     F6E3M2     F32, "gfx950";
    F32_16x16x128_F6E3M2_F8E4M3FN        16 16 128 F6E3M2     F8E4M3Fn   F32, "gfx950";
    F32_16x16x128_F6E3M2_F8E5M2          16 16 128 F6E3M2     F8E5M2     F32, "gfx950";
    F32_16x16x128_F8E4M3FN_F4E2M1        16 16 128 F8E4M3Fn   F4E2M1     F32, "gfx950";
    F32_16x16x128_F8E4M3FN_F6E2M3        16 16 128 F8E4M3Fn   F6E2M3     F32, "gfx950";
    F32_16x16x128_F8E4M3FN_F6E3M2        16 16 128 F8E4M3Fn   F6E3M2     F32, "gfx950";
    F32_16x16x128_F8E5M2_F4E2M1          16 16 128 F8E5M2     F4E2M1     F32, "gfx950";
    F32_16x16x128_F8E5M2_F6E2M3          16 16 128 F8E5M2     F6E2M3     F32, "gfx950";
    F32_16x16x128_F8E5M2_F6E3M2          16 16 128 F8E5M2     F6E3M2     F32, "gfx950";
    F32_32x32x64_F4E2M1_F6E2M3           32 32  64 F4E2M1     F6E2M3     F32, "gfx950";
    F32_32x32x64_F4E2M1_F6E3M2           32 32  64 F4E2M1     F6E3M2     F32, "gfx950";
    F32_32x32x64_F4E2M1_F8E4M3FN         32 32  64 F4E2M1     F8E4M3Fn   F32, "gfx950";
    F32_32x32x64_F4E2M1_F8E5M2           32 32  64 F4E2M1     F8E5M2     F32, "gfx950";
    F32_32x32x64_F6E2M3_F4E2M1           32 32  64 F6E2M3     F4E2M1     F32, "gfx950";
    F32_32x32x64_F6E2M3                  32 32  64 F6E2M3     F6E2M3     F32, "gfx950";
    F32_32x32x64_F6E2M3_F6E3M2           32 32  64 F6E2M3     F6E3M2     F32, "gfx950";
    F32_32x32x64_F6E2M3_F8E4M3FN         32 32  64 F6E2M3     F8E4M3Fn   F32, "gfx950";
    F32_32x32x64_F6E2M3_F8E5M2           32 32  64 F6E2M3     F8E5M2     F32, "gfx950";
    F32_32x32x64_F6E3M2_F4E2M1           32 32  64 F6E3M2     F4E2M1     F32, "gfx950";
    F32_32x32x64_F6E3M2_F6E2M3           32 32  64 F6E3M2     F6E2M3     F32, "gfx950";
    F32_32x32x64_F6E3M2                  32 32  64 F6E3M2     F6E3M2     F32, "gfx950";
    F32_32x32x64_F6E3M2_F8E4M3FN         32 32  64 F6E3M2     F8E4M3Fn   F32, "gfx950";
    F32_32x32x64_F6E3M2_F8E5M2           32 32  64 F6E3M2     F8E5M2     F32, "gfx950";
    F32_32x32x64_F8E4M3FN_F4E2M1         32 32  64 F8E4M3Fn   F4E2M1     F32, "gfx950";
    F32_32x32x64_F8E4M3FN_F6E2M3         32 32  64 F8E4M3Fn   F6E2M3     F32, "gfx950";
    F32_32x32x64_F8E4M3FN_F6E3M2         32 32  64 F8E4M3Fn   F6E3M2     F32, "gfx950";
    F32_32x32x64_F8E5M2_F4E2M1           32 32  64 F8E5M2     F4E2M1     F32, "gfx950";
    F32_32x32x64_F8E5M2_F6E2M3           32 32  64 F8E5M2     F6E2M3     F32, "gfx950";
    F32_32x32x64_F8E5M2_F6E3M2           32 32  64 F8E5M2     F6E3M2     F32, "gfx950";
}

impl Mma {
    const fn row(self) -> &'static MmaRow {
        &ROWS[self as usize]
    }

    /// Every instruction, in declaration order.
    pub const ALL: [Mma; ROWS.len()] = {
        let (mut all, mut at) = ([ROWS[0].mma; ROWS.len()], 0);
        while at < ROWS.len() {
            all[at] = ROWS[at].mma;
            at += 1;
        }
        all
    };

    /// Every instruction, in declaration order.
    pub fn all() -> impl Iterator<Item = Mma> {
        Mma::ALL.into_iter()
    }

    /// The instruction with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Mma> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.mma)
    }

    /// Its name here: accumulator, shape, input, or both inputs if they differ.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Rows of A and D.
    pub const fn m(self) -> u32 {
        self.row().mnk.0
    }

    /// Columns of B and D.
    pub const fn n(self) -> u32 {
        self.row().mnk.1
    }

    /// Columns of A and rows of B.
    pub const fn k(self) -> u32 {
        self.row().mnk.2
    }

    /// Element type of A.
    pub const fn input(self) -> DType {
        self.row().inputs[0]
    }

    /// Element types of A and B.
    pub const fn inputs(self) -> [DType; 2] {
        self.row().inputs
    }

    /// Element type of C and D.
    pub const fn accumulator(self) -> DType {
        self.row().accumulator
    }

    /// Whether lanes multiply, each for an element of the result, because the chip has no matrix
    /// instructions: the lanes of a wave are 8 rows of 8 columns, and each holds one row of A and one column
    /// of B, so that neighbours share what they read. Tiles of a wave are made of many such products side by
    /// side.
    pub const fn is_of_lanes(self) -> bool {
        self.m() * self.n() == LANES
    }

    /// How registers hold A (factor 0) or B (factor 1).
    pub(crate) const fn held(self, factor: usize) -> HeldFactor {
        let input = self.inputs()[factor];
        match input.packing() {
            Some(packing) => HeldFactor {
                dtype: packing.word,
                elements: packing.elements,
                words: packing.words.next_power_of_two(),
                taken: packing.words,
            },
            None => HeldFactor { dtype: input, elements: 1, words: 1, taken: 1 },
        }
    }

    /// Places along k in a row of A or B as registers hold it: [`Mma::k`], or the units of packed elements.
    pub const fn held_k(self, factor: usize) -> u32 {
        self.k() / self.held(factor).elements
    }

    /// Whether gfx950 also has it with a scale for each 32 elements of k.
    pub const fn has_scales(self) -> bool {
        let is_f8f6f4 =
            matches!(self.input(), DType::F8E4M3Fn | DType::F8E5M2) || self.input().packing().is_some();
        is_f8f6f4 && self.k() * self.m() == LANES * SCALED_BLOCK
    }

    /// The shape as the general rule takes it, of what registers hold of A or B.
    pub const fn shape(self, factor: usize) -> MmaShape {
        let (m, n, k) = (self.m(), self.n(), self.held_k(factor));
        let accumulator_bits = self.accumulator().bits();
        MmaShape { m, n, k, blocks: 1, accumulator_bits, sparsity: Sparsity::Dense }
    }

    /// Elements of A or B in each lane, as they are held.
    pub(crate) const fn input_elements(self, factor: usize) -> u32 {
        match self.is_of_lanes() {
            true => self.k(),
            false => self.m() * self.held_k(factor) / LANES * self.held(factor).words,
        }
    }

    /// Those that the instruction takes.
    pub(crate) const fn taken_elements(self, factor: usize) -> u32 {
        let HeldFactor { words, taken, .. } = self.held(factor);
        self.input_elements(factor) / words * taken
    }

    /// VGPRs of A or B that the instruction takes.
    pub const fn input_registers(self, factor: usize) -> u32 {
        self.taken_elements(factor) * self.held(factor).dtype.bits() / 32
    }

    /// Elements of C and D in each lane.
    pub(crate) const fn accumulator_elements(self) -> u32 {
        self.m() * self.n() / LANES
    }

    /// VGPRs or AGPRs of C and D.
    pub const fn accumulator_registers(self) -> u32 {
        self.accumulator_elements() * self.accumulator().bits() / 32
    }

    /// Which element of A each lane and register holds; of elements that share units which unit.
    pub fn a_layout(self, m: Dim, k: Dim) -> Layout {
        match self.is_of_lanes() {
            true => of_lanes(
                Mode::new(Source::Register, self.k(), k, 1),
                [Mode::broadcast(Source::Lane, self.n()), Mode::new(Source::Lane, self.m(), m, 1)],
            ),
            false => self.shape(0).a_layout(m, k, None),
        }
    }

    /// Which element of B each lane and register holds; of elements that share units which unit.
    pub fn b_layout(self, n: Dim, k: Dim) -> Layout {
        match self.is_of_lanes() {
            true => of_lanes(
                Mode::new(Source::Register, self.k(), k, 1),
                [Mode::new(Source::Lane, self.n(), n, 1), Mode::broadcast(Source::Lane, self.m())],
            ),
            false => self.shape(1).b_layout(n, k, None),
        }
    }

    /// The layout of a factor with a dimension for the words of a unit, and as many registers, if units have
    /// several.
    pub(crate) fn factor_layout(self, factor: usize, row: Dim, k: Dim, words: Option<(Dim, u32)>) -> Layout {
        let layout = match factor {
            0 => self.a_layout(row, k),
            _ => self.b_layout(row, k),
        };
        let Some((words, registers)) = words else { return layout };
        let mut modes: SmallVec<[Mode; 12]> =
            SmallVec::from_slice(&[Mode::new(Source::Register, registers, words, 1)]);
        modes.extend_from_slice(layout.modes());
        Layout { modes }
    }

    /// Which element of C and D each lane and register holds.
    pub fn c_layout(self, m: Dim, n: Dim) -> Layout {
        match self.is_of_lanes() {
            true => of_lanes(
                Mode::broadcast(Source::Register, 1),
                [Mode::new(Source::Lane, self.n(), n, 1), Mode::new(Source::Lane, self.m(), m, 1)],
            ),
            false => self.shape(0).c_layout(m, n, None),
        }
    }

    /// Which scale of A (and of B, with its columns for `row`) each lane holds, where there is one for each
    /// 32 elements of k: lanes count rows first, then blocks (CDNA4 ISA guide, "Block
    /// Scaling").
    pub fn scale_layout(self, row: Dim, block: Dim) -> Layout {
        let rows = Mode::new(Source::Lane, self.m(), row, 1);
        Layout { modes: SmallVec::from_slice(&[rows, Mode::new(Source::Lane, LANES / self.m(), block, 1)]) }
    }
}

/// What lanes hold that multiply one by one: their registers, and the two digits of the lane number.
fn of_lanes(registers: Mode, lanes: [Mode; 2]) -> Layout {
    let [columns, rows] = lanes;
    let mut modes: SmallVec<[Mode; 12]> = SmallVec::from_slice(&[registers, columns, rows]);
    modes.retain(|mode| mode.extent > 1);
    Layout { modes }
}

impl fmt::Display for Mma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
