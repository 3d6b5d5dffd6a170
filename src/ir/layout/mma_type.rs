//! What a kernel says about the matrix instruction of its products: which one it is, or the shape of its
//! result, for which each chip has an instruction of its own.

use super::Mma;
use crate::ir::types::DType;
use std::fmt;

/// Output tile of one matrix instruction.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum MatrixShape {
    /// 16 x 16.
    #[default]
    M16x16,
    /// 32 x 32.
    M32x32,
}

impl MatrixShape {
    /// Every shape.
    pub const ALL: [MatrixShape; 2] = [MatrixShape::M16x16, MatrixShape::M32x32];

    /// Rows and columns.
    pub const fn edge(self) -> u32 {
        match self {
            MatrixShape::M16x16 => 16,
            MatrixShape::M32x32 => 32,
        }
    }

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            MatrixShape::M16x16 => "16x16",
            MatrixShape::M32x32 => "32x32",
        }
    }

    /// The instructions of all chips that have this shape and multiply elements of these two types, those of
    /// newer chips after the others; and products of lanes one by one, of which all shapes are made.
    pub fn instructions(self, inputs: [DType; 2]) -> impl Iterator<Item = Mma> {
        Mma::all().filter(move |mma| mma.inputs() == inputs && (mma.m() == self.edge() || mma.is_of_lanes()))
    }
}

impl fmt::Display for MatrixShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The matrix instruction of products, or what is known of it before there is a chip.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum MmaType {
    /// This one, on every chip.
    Instruction(Mma),
    /// Of those with this output tile, the one that takes the most of the dimension that is summed over, of
    /// those that the chip has and that divide the tile of that dimension.
    Shape(MatrixShape),
}

impl MmaType {
    /// Rows and columns of the output tile.
    pub const fn edge(self) -> u32 {
        match self {
            MmaType::Instruction(mma) => mma.m(),
            MmaType::Shape(shape) => shape.edge(),
        }
    }

    /// Element type of sums of products of such inputs; none if no chip multiplies them.
    pub fn accumulator(self, inputs: DType) -> Option<DType> {
        match self {
            MmaType::Instruction(mma) => Some(mma.accumulator()),
            MmaType::Shape(shape) => shape.instructions([inputs; 2]).next().map(Mma::accumulator),
        }
    }
}

impl Default for MmaType {
    fn default() -> MmaType {
        MmaType::Shape(MatrixShape::default())
    }
}

impl From<Mma> for MmaType {
    fn from(mma: Mma) -> MmaType {
        MmaType::Instruction(mma)
    }
}

impl From<MatrixShape> for MmaType {
    fn from(shape: MatrixShape) -> MmaType {
        MmaType::Shape(shape)
    }
}
