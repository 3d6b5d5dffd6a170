//! Products of values that have places: of whole tiles, and one matrix instruction by the layouts that AMD
//! gives its operands.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::super::product::{Extents, contracted, unpacked};
use super::super::tensor::{Data, bits_of, data_of};
use super::fragment::{Fragment, places};
use super::operate::misfit;
use super::{Machine, PlacedWave, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::{Expansion, FoldsMasked, PaddedFactors};
use crate::ir::layout::{Dim, Layout, Mma, Mode, Place, SCALED_BLOCK, Source};
use crate::ir::node::*;
use crate::ir::op::ContractionOp;
use crate::ir::types::DType;

/// The dimensions of the operands of a matrix instruction.
const ROW: Dim = Dim(0);
const COLUMN: Dim = Dim(1);
const WORD: Dim = Dim(2);

impl Machine<'_> {
    pub(super) fn product(
        &self,
        node: Entity,
        (op, operands): (ContractionOp, &[Entity]),
        frame: usize,
        wave: &PlacedWave,
        group: &RunningGroup,
    ) -> Result<Fragment, Diagnostic> {
        let (factors, scales) = match *operands {
            [lhs, rhs, acc] => ([lhs, rhs, acc], None),
            [lhs, rhs, acc, lhs_scale, rhs_scale] => ([lhs, rhs, acc], Some([lhs_scale, rhs_scale])),
            _ => return Err(misfit()),
        };
        self.mma(node, op, factors, scales, wave, (frame, group))
    }

    /// Of a product whose factors are padded, elements beyond the end of k take no part until a pass has put
    /// others in their place.
    fn mma(
        &self,
        node: Entity,
        op: ContractionOp,
        [lhs, rhs, acc]: [Entity; 3],
        scales: Option<[Entity; 2]>,
        wave: &PlacedWave,
        (frame, group): (usize, &RunningGroup),
    ) -> Result<Fragment, Diagnostic> {
        let choice = op.choice();
        if let (MmaChoice::Explicit(mma), Some(expansion)) = (choice, self.world.get::<Expansion>(node)) {
            return self.instruction(node, (op, mma), expansion.slice, [lhs, rhs, acc], scales, wave);
        }
        let dims = |node: Entity| self.get::<ValueType>(node).map(|ty| ty.dims.clone());
        let result = dims(acc)?;
        let &[ref batch @ .., m, n] = &result[..] else { return Err(bug("an mma without m and n")) };
        let summed = |node: Entity| -> Result<Dims, Diagnostic> {
            Ok(dims(node)?.iter().copied().filter(|dim| !result.contains(dim)).collect())
        };
        let values = [lhs, rhs, node].into_iter().chain(scales.into_iter().flatten());
        let layouts: SmallVec<[Layout; 5]> = values.map(|value| self.layout(value)).collect();
        let extent =
            |dim: Dim| layouts.iter().map(|layout| layout.tile_extent(dim)).max().unwrap_or(1) as usize;
        let tile = |at: usize, own: Dim, last: &[Dim]| {
            let dims = batch.iter().chain([&own]).chain(last);
            MatrixTile { layout: &layouts[at], dims: dims.map(|&dim| (dim, extent(dim))).collect() }
        };
        let matrix = |at: usize, value: Entity, own: Dim, last: &[Dim]| {
            let fragment = self.value(value, wave)?;
            tile(at, own, last).matrix(&fragment, fragment.places(wave.number), 0)
        };
        let inputs = match choice {
            MmaChoice::Explicit(mma) => mma.inputs().map(Some),
            MmaChoice::Kernel | MmaChoice::Shape(_) => [None; 2],
        };
        let factor = |at: usize, value: Entity, own: Dim| {
            let along = summed(value)?;
            let held = [0, 1].map(|at| along.get(at).map_or(1, |&dim| extent(dim)));
            Ok::<_, Diagnostic>(elements(matrix(at, value, own, &along)?, inputs[at], held))
        };
        let ((left, k), (right, _)) = (factor(0, lhs, m)?, factor(1, rhs, n)?);
        let (sum, of_sum) = (self.operand(node, acc, wave)?, tile(2, m, &[n]));
        let before = of_sum.matrix(&sum, sum.places(wave.number), 0)?;
        let taken = self.taken(node, summed(lhs)?.first().copied(), k, (frame, group))?;
        let batches = batch.iter().map(|&dim| extent(dim)).product();
        let extents = Extents { batch: batches, m: extent(m), n: extent(n), k, taken };
        let scales = match scales {
            Some([x, y]) => {
                let block = summed(x)?.first().copied().ok_or_else(|| bug("scales of no blocks"))?;
                Some(([matrix(3, x, m, &[block])?, matrix(4, y, n, &[block])?], extent(block)))
            }
            None => None,
        };
        let after = multiply(op, [left, right, before], scales, extents)?;
        let places = sum.places(wave.number);
        Ok(of_sum.fragment(sum, places, after))
    }

    /// How many of the `k` elements that the factors of a product have along a dimension are summed up.
    fn taken(
        &self,
        node: Entity,
        along: Option<Dim>,
        k: usize,
        (frame, group): (usize, &RunningGroup),
    ) -> Result<usize, Diagnostic> {
        let is_masked = self.world.get::<FoldsMasked>(self.root).is_some();
        let is_padded = !is_masked && self.fact::<PaddedFactors>(node).is_some();
        let Some(unit) = along.filter(|_| is_padded) else { return Ok(k) };
        let of_k = self.geometry.loop_dim(unit);
        let first = self.first_element(of_k, &self.frames[frame], self.iteration_of(node), group)?;
        Ok(usize::try_from(self.size(of_k)? as i64 - first).unwrap_or(0).min(k))
    }

    /// One matrix instruction, by the layouts that AMD gives its operands.
    fn instruction(
        &self,
        node: Entity,
        (op, mma): (ContractionOp, Mma),
        slice: u32,
        [lhs, rhs, acc]: [Entity; 3],
        scales: Option<[Entity; 2]>,
        wave: &PlacedWave,
    ) -> Result<Fragment, Diagnostic> {
        let matrix = |value: Entity, tile: &MatrixTile<'_>, first: u32| {
            let fragment = self.value(value, wave)?;
            let registers = tile.layout.extent(Source::Register);
            tile.matrix(&fragment, places(fragment.first, 1, registers, 0), first)
        };
        // A product with scales takes a part of these.
        let (slice, scale) = if scales.is_some() { (0, slice) } else { (slice, 0) };
        let (m, n, k) = (mma.m(), mma.n(), mma.k());
        let factor = |value: Entity, at: usize, rows: u32| {
            // What the instruction takes: a value may have registers beside it.
            let (units, words) = (mma.held_k(at), mma.held(at).taken);
            let layout = mma.factor_layout(at, ROW, COLUMN, (words > 1).then_some((WORD, words)));
            // The words of a unit are columns of their own.
            let beside = |mode: &Mode| match mode.dim {
                Some(COLUMN) => Mode { stride: mode.stride * words, ..*mode },
                Some(WORD) => Mode { dim: Some(COLUMN), ..*mode },
                _ => *mode,
            };
            let layout =
                Layout::new(layout.modes().iter().map(beside)).map_err(|_| bug("a factor too large"))?;
            let matrix = matrix(value, &MatrixTile::of_instruction(&layout, [rows, units * words]), slice)?;
            let (matrix, _) = elements(matrix, Some(mma.inputs()[at]), [units as usize, words as usize]);
            Ok::<_, Diagnostic>(matrix)
        };
        let (left, right) = (factor(lhs, 0, m)?, factor(rhs, 1, n)?);
        let sums = mma.c_layout(ROW, COLUMN);
        let of_sum = MatrixTile::of_instruction(&sums, [m, n]);
        let before = matrix(acc, &of_sum, 0)?;
        let [m_extent, n_extent, k_extent] = [m, n, k].map(|extent| extent as usize);
        let extents = Extents { batch: 1, m: m_extent, n: n_extent, k: k_extent, taken: k_extent };
        let scales = match scales {
            Some([x, y]) => {
                let (layout, blocks) = (mma.scale_layout(ROW, COLUMN), k / SCALED_BLOCK);
                let [x, y] = [(x, m), (y, n)].map(|(value, rows)| {
                    matrix(value, &MatrixTile::of_instruction(&layout, [rows, blocks]), scale)
                });
                Some(([x?, y?], blocks as usize))
            }
            None => None,
        };
        let after = multiply(op, [left, right, before], scales, extents)?;
        let result = self.empty(node, &self.layout(node))?;
        let places = places(0, 1, result.registers, 0);
        Ok(of_sum.fragment(result, places, after))
    }
}

/// A matrix and which of its elements are defined.
type Matrix = (Data, Vec<bool>);

/// The elements of a value in the order of its dimensions.
struct MatrixTile<'a> {
    layout: &'a Layout,
    /// The dimensions, each with its extent.
    dims: SmallVec<[(Dim, usize); 4]>,
}

impl MatrixTile<'_> {
    /// An operand of a matrix instruction.
    fn of_instruction(layout: &Layout, [rows, columns]: [u32; 2]) -> MatrixTile<'_> {
        MatrixTile { layout, dims: smallvec![(ROW, rows as usize), (COLUMN, columns as usize)] }
    }

    fn index(&self, place: Place) -> usize {
        self.dims.iter().fold(0, |at, &(dim, size)| at * size + self.layout.coordinate(dim, place) as usize)
    }

    /// The elements that a fragment has at the places, its registers counted from `first` on.
    fn matrix(
        &self,
        fragment: &Fragment,
        places: impl Iterator<Item = Place>,
        first: u32,
    ) -> Result<Matrix, Diagnostic> {
        let count = self.dims.iter().map(|of| of.1).product();
        let (mut bits, mut defined) = (vec![0u64; count], vec![false; count]);
        for place in places {
            let at = fragment.at(place.replica, place.lane, first + place.register);
            let at = at.ok_or_else(|| bug("a matrix operand with too few elements"))?;
            let to = self.index(place);
            (bits[to], defined[to]) = (fragment.bits[at], fragment.defined[at]);
        }
        Ok((data_of(fragment.dtype, &bits), defined))
    }

    /// A fragment with the elements of a matrix at the places.
    fn fragment(
        &self,
        like: Fragment,
        places: impl Iterator<Item = Place>,
        (data, defined): Matrix,
    ) -> Fragment {
        let bits = bits_of(&data);
        let (bits, defined) = places.map(|place| self.index(place)).map(|at| (bits[at], defined[at])).unzip();
        Fragment { bits, defined, ..like }
    }
}

/// A factor with one element for each place along k, and how many these are in a row: of units of so many
/// words, those that the instruction takes. `held` counts the units of a row and the words of each.
fn elements((data, defined): Matrix, input: Option<DType>, held: [usize; 2]) -> (Matrix, usize) {
    let packing = input.and_then(DType::packing).filter(|packing| packing.word == data.dtype());
    let (Some(packing), Some(input)) = (packing, input) else { return ((data, defined), held[0]) };
    let (each, taken) = (packing.elements as usize, packing.words as usize);
    let k = held[0] * each;
    let whole = |unit: &[bool]| unit.iter().take(taken).all(|&defined| defined);
    let units = defined.chunks(held[1].max(1)).map(whole);
    let defined = units.flat_map(|defined| std::iter::repeat_n(defined, each)).collect();
    ((unpacked(&data, input, held, k).unwrap_or(data), defined), k)
}

/// `before + left . right`, with scales and how many a row has of them, if there are any; an element is
/// defined if everything that it is computed from is.
fn multiply(
    op: ContractionOp,
    [left, right, before]: [Matrix; 3],
    scales: Option<([Matrix; 2], usize)>,
    extents: Extents,
) -> Result<Matrix, Diagnostic> {
    let of_blocks = scales.as_ref().map(|([x, y], blocks)| ([&x.0, &y.0], *blocks));
    let after = contracted(op, [&left.0, &right.0, &before.0], of_blocks, extents);
    let after = after.map_err(Diagnostic::invalid)?;
    let Extents { m, n, k, taken, .. } = extents;
    let whole = |defined: &[bool], width: usize, taken: usize| {
        let row = |row: &[bool]| row.iter().take(taken).all(|&d| d);
        defined.chunks(width.max(1)).map(row).collect::<Vec<_>>()
    };
    let (mut rows, mut columns) = (whole(&left.1, k, taken), whole(&right.1, k, taken));
    if let Some((of_factors, blocks)) = &scales {
        let taken = taken.div_ceil(SCALED_BLOCK as usize);
        for (rows, scales) in [&mut rows, &mut columns].into_iter().zip(of_factors) {
            rows.iter_mut().zip(whole(&scales.1, *blocks, taken)).for_each(|(row, scales)| *row &= scales);
        }
    }
    let is_defined = |at: usize| {
        let (batch, row, column) = (at / (m * n), at / n % m, at % n);
        before.1[at] && rows[batch * m + row] && columns[batch * n + column]
    };
    Ok((after, (0..before.1.len()).map(is_defined).collect()))
}
