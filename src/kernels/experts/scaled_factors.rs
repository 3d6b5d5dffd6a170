//! The factors of products of experts whose elements are narrow floats with scales, and the hidden rows that
//! become such a factor.

use super::axes::{ExpertAxes, GateRows};
use crate::prelude::*;

/// How elements of narrow floats are scaled.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ExpertScales {
    /// 8-bit floats of the dtype with scales of f32: a row has one for each 128 of K, a matrix one for as
    /// much of K and `BLOCK_N` columns.
    Blocks(DType),
    /// 4-bit floats with powers of two, one for each row, or column, and 32 of K, where products take them
    /// ([`crate::kernels::ScaleOrder::SideBySide`]).
    Powers,
}

/// Elements of K that have one scale of f32.
const BLOCK: u32 = 128;

/// Elements of K that have one power of two, and those of which the powers lie side by side.
const POWER_BLOCK: u32 = 32;
const POWERS: u32 = 8;

/// What the largest element of a block counts as at least, so that a block of zeros has a scale to be divided
/// by.
const LEAST: f64 = 1e-30;

/// Where in the last two dimensions of powers that of a block is.
fn side_by_side(blocks: Symbol) -> [Coordinate; 2] {
    [(blocks / i64::from(POWERS)).into(), (blocks % i64::from(POWERS)).into()]
}

impl ExpertScales {
    /// How inputs of a dtype are scaled, if they are.
    pub(super) fn of(inputs: DType) -> Option<ExpertScales> {
        match inputs {
            F8E4M3Fnuz | F8E4M3Fn => Some(ExpertScales::Blocks(inputs)),
            F4E2M1 => Some(ExpertScales::Powers),
            _ => None,
        }
    }

    /// The dimensions of a product, with what an iteration has of K.
    pub(super) fn axes(self, w: &Tracer) -> ExpertAxes {
        let block_k = match self {
            ExpertScales::Blocks(_) => BLOCK.into(),
            ExpertScales::Powers => Symbol::new("BLOCK_K"),
        };
        ExpertAxes::of_column_blocks(w, block_k)
    }

    fn elements(self) -> DType {
        match self {
            ExpertScales::Blocks(dtype) => dtype,
            ExpertScales::Powers => F4E2M1,
        }
    }

    /// A sum and what a tile of columns and one of rows, with their scales, add to it.
    pub(super) fn multiplied(
        self,
        w: &Tracer,
        [columns, of_columns]: [Value; 2],
        [rows, of_rows]: [Value; 2],
        (sum, nothing): (Value, Value),
        tag: &str,
    ) -> Value {
        match self {
            // The block of the matrix has one scale: with it, those of rows are as many as before.
            ExpertScales::Blocks(_) => w.mma(columns, rows, nothing).tag(tag).fma(of_rows * of_columns, sum),
            ExpertScales::Powers => w.scaled_mma(columns, of_columns, rows, of_rows, sum).tag(tag),
        }
    }

    /// The memories of the hidden rows.
    pub(super) fn declare_hidden(self, w: &Tracer, axes: &ExpertAxes) -> HiddenRows {
        let ExpertAxes { blocks, rows, n, .. } = *axes;
        let column_blocks = Symbol::new("N_BLOCKS");
        let elements = w.memory("h", [blocks, rows, column_blocks, n], Global, self.elements());
        let scales = match self {
            ExpertScales::Blocks(_) => w.memory("h_scale", [column_blocks, blocks, rows], Global, F32),
            ExpertScales::Powers => {
                let shape = [Symbol::new("N_GROUPS"), blocks, rows, POWERS.into()];
                w.memory("h_scale", shape, Global, F8E8M0)
            }
        };
        HiddenRows { scaled: self, elements, scales }
    }
}

/// Rows of tokens, or of blocks.
#[derive(Copy, Clone)]
pub(super) struct ScaledRows {
    scaled: ExpertScales,
    elements: MemoryRef,
    scales: MemoryRef,
}

impl ScaledRows {
    pub(super) fn declared(
        w: &Tracer,
        scaled: ExpertScales,
        axes: &ExpertAxes,
        (name, from): (&str, GateRows),
    ) -> ScaledRows {
        let (ExpertAxes { blocks, rows, k, .. }, t) = (*axes, Symbol::new("T"));
        let dtype = scaled.elements();
        let elements = match from {
            GateRows::Gathered => w.memory(name, [blocks, rows, k], Shared, dtype),
            GateRows::OfTokens => w.memory(name, [t, k], Global, dtype),
        };
        let name = format!("{name}_scale");
        let groups = k.scaled(POWERS * POWER_BLOCK);
        let scales = match (scaled, from) {
            (ExpertScales::Blocks(_), GateRows::Gathered) => {
                w.memory(&name, [k.scaled(BLOCK), blocks, rows], Global, F32)
            }
            (ExpertScales::Blocks(_), GateRows::OfTokens) => {
                w.memory(&name, [k.scaled(BLOCK), t], Global, F32)
            }
            (ExpertScales::Powers, GateRows::Gathered) => {
                w.memory(&name, [groups, blocks, rows, POWERS.into()], Shared, F8E8M0)
            }
            (ExpertScales::Powers, GateRows::OfTokens) => {
                w.memory(&name, [groups, t, POWERS.into()], Global, F8E8M0)
            }
        };
        ScaledRows { scaled, elements, scales }
    }

    /// The tile of an iteration and its scales: of the workgroup's block, or of tokens.
    pub(super) fn read(
        self,
        w: &Tracer,
        axes: &ExpertAxes,
        token: Option<Value>,
        [tag, scale_tag]: [&str; 2],
    ) -> [Value; 2] {
        let ExpertAxes { rows, k, .. } = *axes;
        let row: Vec<Coordinate> = match token {
            None => vec![w.workgroup_id(1).into(), rows.into()],
            Some(token) => vec![token.into()],
        };
        let elements: Vec<Coordinate> = row.iter().cloned().chain([k.into()]).collect();
        let of_rows = match self.scaled {
            ExpertScales::Blocks(_) => {
                let place: Vec<Coordinate> = [w.iteration(k).into()].into_iter().chain(row).collect();
                w.read_at(self.scales, place, [rows])
            }
            ExpertScales::Powers => {
                let powers = k.scaled(POWER_BLOCK);
                let [group, place] = side_by_side(powers);
                let place: Vec<Coordinate> = [group].into_iter().chain(row).chain([place]).collect();
                w.read_at(self.scales, place, [rows, powers])
            }
        };
        [w.read_at(self.elements, elements, [rows, k]).tag(tag), of_rows.tag(scale_tag)]
    }
}

/// The matrices of experts, of which each may have several.
#[derive(Copy, Clone)]
pub(super) struct ScaledColumns {
    scaled: ExpertScales,
    elements: MemoryRef,
    scales: MemoryRef,
}

impl ScaledColumns {
    pub(super) fn declared(
        w: &Tracer,
        scaled: ExpertScales,
        axes: &ExpertAxes,
        matrices: Option<Symbol>,
    ) -> ScaledColumns {
        let ExpertAxes { n, k, experts, .. } = *axes;
        let (column_blocks, dtype) = (Symbol::new("N_BLOCKS"), scaled.elements());
        let elements = match matrices {
            Some(each) => w.memory("w", [experts, each, column_blocks, n, k], Shared, dtype),
            None => w.memory("w", [experts, column_blocks, n, k], Shared, dtype),
        };
        let (blocks, groups) = (k.scaled(BLOCK), k.scaled(POWERS * POWER_BLOCK));
        let powers = Symbol::from(POWERS);
        let scales = match (scaled, matrices) {
            (ExpertScales::Blocks(_), Some(each)) => {
                w.memory("w_scale", [experts, each, column_blocks, blocks], Global, F32)
            }
            (ExpertScales::Blocks(_), None) => {
                w.memory("w_scale", [experts, column_blocks, blocks], Global, F32)
            }
            (ExpertScales::Powers, Some(each)) => {
                let shape = [groups, experts, each, column_blocks, n, powers];
                w.memory("w_scale", shape, Shared, F8E8M0)
            }
            (ExpertScales::Powers, None) => {
                w.memory("w_scale", [groups, experts, column_blocks, n, powers], Shared, F8E8M0)
            }
        };
        ScaledColumns { scaled, elements, scales }
    }

    /// The tile of an iteration and its scales, of the matrix with a number among those of the expert.
    pub(super) fn read(
        self,
        w: &Tracer,
        axes: &ExpertAxes,
        expert: Value,
        number: Option<i64>,
    ) -> [Value; 2] {
        let ExpertAxes { n, k, .. } = *axes;
        let matrix = [Some(expert.into()), number.map(|number| SymExpr::from(number).into())];
        let block: Vec<Coordinate> = matrix.into_iter().flatten().chain([w.workgroup_id(0).into()]).collect();
        let with = |front: Option<Coordinate>, last: &[Coordinate]| -> Vec<Coordinate> {
            front.into_iter().chain(block.iter().cloned()).chain(last.iter().cloned()).collect()
        };
        let elements = w.read_at(self.elements, with(None, &[n.into(), k.into()]), [n, k]);
        let of_columns = match self.scaled {
            ExpertScales::Blocks(_) => w.read_at(self.scales, with(None, &[w.iteration(k).into()]), []),
            ExpertScales::Powers => {
                let powers = k.scaled(POWER_BLOCK);
                let [group, place] = side_by_side(powers);
                w.read_at(self.scales, with(Some(group), &[n.into(), place]), [n, powers])
            }
        };
        [elements.tag("read_w"), of_columns.tag("read_w_scale")]
    }
}

/// The rows that the first product gives and the second one takes.
pub(super) struct HiddenRows {
    scaled: ExpertScales,
    elements: MemoryRef,
    scales: MemoryRef,
}

impl HiddenRows {
    /// Writes rows with the scales that their largest elements ask for.
    pub(super) fn write(self, w: &Tracer, axes: &ExpertAxes, rows_of: Value) {
        let ExpertAxes { blocks, rows, n, .. } = *axes;
        let column_blocks = Symbol::new("N_BLOCKS");
        let scale = match self.scaled {
            ExpertScales::Blocks(dtype) => {
                let largest = if dtype == F8E4M3Fnuz { 240.0 } else { 448.0 };
                rows_of.abs().max(n).maximum(LEAST) * (1.0 / largest)
            }
            ExpertScales::Powers => power(w, axes, rows_of),
        };
        let narrow = (rows_of * scale.reciprocal().broadcast([n, rows])).cast(self.scaled.elements());
        w.write(narrow.broadcast([blocks, rows, column_blocks, n]), self.elements);
        match self.scaled {
            ExpertScales::Blocks(_) => w.write(scale.broadcast([column_blocks, blocks, rows]), self.scales),
            ExpertScales::Powers => {
                let powers = n.scaled(POWER_BLOCK);
                let scale = scale.cast(F8E8M0).broadcast([blocks, rows, column_blocks, powers]);
                // A group of scales that lie side by side is that of two blocks of 128 columns.
                let place = Coordinate::from(column_blocks) * w.size(powers) + powers;
                let group = place.clone() / i64::from(POWERS);
                let place = (group, blocks, rows, place % i64::from(POWERS));
                w.write_at(scale, self.scales, place);
            }
        }
    }
}

/// The power of two of each 32 columns: their largest element is at least 3.5 and less than 7 times as much,
/// and what is beyond 6 becomes 6.
fn power(w: &Tracer, axes: &ExpertAxes, rows_of: Value) -> Value {
    let (ExpertAxes { rows, n, .. }, block) = (*axes, Symbol::from(POWER_BLOCK));
    let blocks = n.scaled(POWER_BLOCK);
    let column = Coordinate::from(w.self_index(blocks)) * i64::from(POWER_BLOCK) + w.self_index(block);
    let most = rows_of.abs().at((column, rows), [rows, blocks, block]).max(block).maximum(LEAST);
    // From 1.75 on a fraction counts as 2.
    let exponent = (most.bitcast(I32) + (1 << 21)) & 0x7f80_0000;
    exponent.bitcast(F32) * 0.25
}
