//! In which tiles of a loop a condition on places holds: sums of places, sizes and numbers are compared, so
//! each comparison limits the tiles from one side, as far as it is known which places a workgroup has. Values
//! without dimensions count as sizes do, once the kernel has a symbol for them.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::value_symbols::ValueSymbols;
use crate::ir::constraint::GridSymbol;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprArena, ExprError, Symbol};
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::op::OpClass;
use crate::ir::types::DType;
use crate::passes::analysis::bind_symbols::bug;
use crate::passes::analysis::fractions::NodeReader;
use crate::passes::facts::Geometry;

/// Tiles from one on and up to another one; a side without a number has no limit.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct TileSpan {
    /// The first one.
    pub(super) from: Option<Expr>,
    /// One past the last one.
    pub(super) end: Option<Expr>,
}

impl TileSpan {
    /// The tiles that are in another span, too.
    pub(super) fn within(self, arena: &mut ExprArena, other: TileSpan) -> Result<TileSpan, ExprError> {
        let both = |a: Option<Expr>, b: Option<Expr>| a.zip(b).ok_or(a.or(b));
        let from = match both(self.from, other.from) {
            Ok((a, b)) => Some(arena.max(a, b)?),
            Err(one) => one,
        };
        let end = match both(self.end, other.end) {
            Ok((a, b)) => Some(arena.min(a, b)?),
            Err(one) => one,
        };
        Ok(TileSpan { from, end })
    }

    /// True if no tile is left out.
    pub(super) fn is_all(self) -> bool {
        self == TileSpan::default()
    }
}

/// Where a condition holds.
#[derive(Copy, Clone, Debug)]
pub(super) struct ConditionSpans {
    /// No tile outside of these has an element for which it holds.
    pub(super) somewhere: TileSpan,
    /// It holds for each element of these, if that is known of any.
    pub(super) everywhere: Option<TileSpan>,
}

/// The numbers of a value in one workgroup.
#[derive(Copy, Clone)]
struct PlaceSum {
    /// How often the place along the dimension of the loop is added.
    along: i64,
    /// The least of all else.
    least: Expr,
    /// The greatest of all else.
    most: Expr,
}

/// The largest number in a kernel that counts as a place: sums of some of them, and of sizes, are i32 values
/// that do not wrap.
const MOST: i64 = 1 << 28;

/// Most values without dimensions in a comparison, so that sums do not wrap where none is beyond [`MOST`].
const MOST_VALUES: usize = 2;

/// The tiles of a loop.
#[derive(Copy, Clone)]
pub(super) struct LoopTiles<'a> {
    /// The dimension of the loop.
    pub(super) axis: Dim,
    /// Its elements per iteration.
    pub(super) tile: u32,
    pub(super) body: &'a [Entity],
}

/// Finds the tiles of a loop.
pub(super) struct SpanFinder<'a, 'w> {
    read: NodeReader<'a, 'w>,
    geometry: &'a Geometry,
    arena: &'a mut ExprArena,
    tiles: LoopTiles<'a>,
    values: &'a mut ValueSymbols,
    /// Symbols of the values in the comparison at hand.
    used: SmallVec<[Symbol; MOST_VALUES]>,
}

impl<'a, 'w> SpanFinder<'a, 'w> {
    pub(super) fn new(
        read: NodeReader<'a, 'w>,
        (geometry, arena): (&'a Geometry, &'a mut ExprArena),
        tiles: LoopTiles<'a>,
        values: &'a mut ValueSymbols,
    ) -> SpanFinder<'a, 'w> {
        SpanFinder { read, geometry, arena, tiles, values, used: SmallVec::new() }
    }

    /// In which tiles a condition holds; nothing if that does not depend on places that are known.
    ///
    /// # Errors
    /// Kernels that are broken.
    pub(super) fn condition(&mut self, node: Entity) -> Result<Option<ConditionSpans>, Diagnostic> {
        let found = (self.read)(node)?;
        let (op, operands) = (*found.op, &found.operands.0[..]);
        match (op, operands) {
            (Op::Broadcast, &[value]) => self.condition(value),
            (Op::Binary(BinaryOp::And), &[a, b]) => self.both(a, b),
            (Op::Compare(predicate), &[a, b]) => {
                self.used.clear();
                let [Some(a), Some(b)] = [self.sum(a)?, self.sum(b)?] else { return Ok(None) };
                if self.used.len() > MOST_VALUES {
                    return Ok(None);
                }
                let spans = self.compared(predicate, [a, b]).map_err(|e| bug(&e))?;
                spans.map(|spans| self.where_values_fit(spans)).transpose().map_err(|e| bug(&e))
            }
            _ => Ok(None),
        }
    }

    /// Where both of two conditions hold.
    fn both(&mut self, a: Entity, b: Entity) -> Result<Option<ConditionSpans>, Diagnostic> {
        let (a, b) = match (self.condition(a)?, self.condition(b)?) {
            (Some(a), Some(b)) => (a, b),
            // Of the other one nothing is known.
            (Some(one), None) | (None, Some(one)) => {
                return Ok(Some(ConditionSpans { everywhere: None, ..one }));
            }
            (None, None) => return Ok(None),
        };
        let somewhere = a.somewhere.within(self.arena, b.somewhere).map_err(|e| bug(&e))?;
        let everywhere = match a.everywhere.zip(b.everywhere) {
            Some((a, b)) => Some(a.within(self.arena, b).map_err(|e| bug(&e))?),
            None => None,
        };
        Ok(Some(ConditionSpans { somewhere, everywhere }))
    }

    /// Where a comparison holds: the difference of its sides and a number is at most zero.
    fn compared(
        &mut self,
        predicate: Predicate,
        [a, b]: [PlaceSum; 2],
    ) -> Result<Option<ConditionSpans>, ExprError> {
        let (less, more, by) = match predicate {
            Predicate::Le => (a, b, 0),
            Predicate::Lt => (a, b, 1),
            Predicate::Ge => (b, a, 0),
            Predicate::Gt => (b, a, 1),
            Predicate::Eq | Predicate::Ne => return Ok(None),
        };
        let PlaceSum { along, least, most } = self.less(less, more)?;
        let by = self.arena.int(by);
        let [least, most] = [self.arena.add(least, by)?, self.arena.add(most, by)?];
        let tile = self.arena.int(i64::from(self.tiles.tile));
        let spans = match along {
            // The place is at most `-most` everywhere, and `-least` somewhere.
            1 => {
                let everywhere = self.arena.sub(Expr::ONE, most)?;
                let somewhere = self.arena.sub(tile, least)?;
                let end = |end: Expr| TileSpan { from: None, end: Some(end) };
                [somewhere, everywhere].map(|places| Ok(end(self.tiles(places)?)))
            }
            // The place is at least `most` everywhere, and `least` somewhere.
            -1 => {
                let last = self.arena.int(i64::from(self.tiles.tile) - 1);
                let everywhere = self.arena.add(most, last)?;
                let from = |from: Expr| TileSpan { from: Some(from), end: None };
                [least, everywhere].map(|places| Ok(from(self.tiles(places)?)))
            }
            _ => return Ok(None),
        };
        let [somewhere, everywhere] = spans;
        Ok(Some(ConditionSpans { somewhere: somewhere?, everywhere: Some(everywhere?) }))
    }

    /// How many whole tiles so many elements are; none of a negative number.
    fn tiles(&mut self, elements: Expr) -> Result<Expr, ExprError> {
        let elements = self.arena.max(elements, Expr::ZERO)?;
        let tile = self.arena.int(i64::from(self.tiles.tile));
        self.arena.floor_div(elements, tile)
    }

    /// The spans of a comparison for all values that it has. Where one is beyond [`MOST`], sums in the kernel
    /// may wrap: then it may hold in any tile, and holds everywhere in none.
    fn where_values_fit(&mut self, spans: ConditionSpans) -> Result<ConditionSpans, ExprError> {
        let ConditionSpans { mut somewhere, mut everywhere } = spans;
        for symbol in std::mem::take(&mut self.used) {
            let arena = &mut *self.arena;
            let value = arena.symbol(symbol);
            // At most zero for values beyond `MOST`, and negative ones, or as far from zero as half of it.
            let [mut fits, mut fits_by_half] = [Expr::ZERO; 2];
            for (limit, of) in [(MOST, &mut fits), (MOST / 2, &mut fits_by_half)] {
                let limit = arena.int(limit);
                let (above, below) = (arena.sub(limit, value)?, arena.add(limit, value)?);
                *of = arena.min(above, below)?;
            }
            if let Some(from) = somewhere.from {
                somewhere.from = Some(arena.min(from, fits_by_half)?);
            }
            if let Some(end) = somewhere.end {
                let least = arena.sub(Expr::ZERO, fits_by_half)?;
                somewhere.end = Some(arena.max(end, least)?);
            }
            if let Some(tiles) = everywhere {
                let end = tiles.end.map_or(Ok(fits), |end| arena.min(end, fits))?;
                everywhere = Some(TileSpan { end: Some(end), ..tiles });
            }
        }
        Ok(ConditionSpans { somewhere, everywhere })
    }

    /// The numbers of a value; nothing if it is no sum of places, sizes, numbers, and values without
    /// dimensions.
    fn sum(&mut self, node: Entity) -> Result<Option<PlaceSum>, Diagnostic> {
        let (used, values) = (self.used.len(), self.values.count());
        let sum = self.sum_of_places(node)?;
        let has_values = self.used.len() > used;
        if !self.is_set_before(node)? || (sum.is_some() && !has_values) {
            return Ok(sum);
        }
        // A sum of values is one, too.
        self.values.forget(values);
        let Some(symbol) = self.values.symbol(node) else { return Ok(sum) };
        self.used.truncate(used);
        self.used.push(symbol);
        self.limited(symbol).map(Some).map_err(|e| bug(&e))
    }

    /// True for an i32 from outside of the loop that no lane has another one of.
    fn is_set_before(&self, node: Entity) -> Result<bool, Diagnostic> {
        let found = (self.read)(node)?;
        let is_number = found.ty.dims.is_empty() && found.ty.dtype == Some(DType::I32);
        Ok(is_number && found.op.row().class != OpClass::Carried && !self.tiles.body.contains(&node))
    }

    /// A value within [`MOST`].
    fn limited(&mut self, symbol: Symbol) -> Result<PlaceSum, ExprError> {
        let [least, most] = [-MOST, MOST].map(|limit| self.arena.int(limit));
        let value = self.arena.symbol(symbol);
        let value = self.arena.min(value, most)?;
        let value = self.arena.max(value, least)?;
        Ok(PlaceSum { along: 0, least: value, most: value })
    }

    fn sum_of_places(&mut self, node: Entity) -> Result<Option<PlaceSum>, Diagnostic> {
        let found = (self.read)(node)?;
        if found.ty.dtype != Some(DType::I32) {
            return Ok(None);
        }
        let (op, operands) = (*found.op, &found.operands.0[..]);
        let fixed = |number: Expr| PlaceSum { along: 0, least: number, most: number };
        Ok(match (op, operands) {
            (Op::Register(Constant::Integer(number)), _) => {
                (-MOST..=MOST).contains(&number).then(|| fixed(self.arena.int(number)))
            }
            (Op::Size(dim), _) => Some(fixed(self.geometry.dim(dim).size)),
            (Op::SelfIndex(dim), _) if dim == self.tiles.axis => {
                Some(PlaceSum { along: 1, ..fixed(Expr::ZERO) })
            }
            (Op::SelfIndex(dim), _) => self.places(dim).map_err(|e| bug(&e))?,
            (Op::Broadcast, &[value]) => self.sum(value)?,
            (Op::Binary(sum @ (BinaryOp::Add | BinaryOp::Sub)), &[a, b]) => {
                let [Some(a), Some(b)] = [self.sum(a)?, self.sum(b)?] else { return Ok(None) };
                let sum = if sum == BinaryOp::Add { self.more(a, b) } else { self.less(a, b) };
                Some(sum.map_err(|e| bug(&e))?)
            }
            _ => None,
        })
    }

    fn more(&mut self, a: PlaceSum, b: PlaceSum) -> Result<PlaceSum, ExprError> {
        let (least, most) = (self.arena.add(a.least, b.least)?, self.arena.add(a.most, b.most)?);
        Ok(PlaceSum { along: a.along + b.along, least, most })
    }

    fn less(&mut self, a: PlaceSum, b: PlaceSum) -> Result<PlaceSum, ExprError> {
        let (least, most) = (self.arena.sub(a.least, b.most)?, self.arena.sub(a.most, b.least)?);
        Ok(PlaceSum { along: a.along - b.along, least, most })
    }

    /// The places that a workgroup has along a dimension, unless a loop walks along it.
    fn places(&mut self, dim: Dim) -> Result<Option<PlaceSum>, ExprError> {
        let entry = self.geometry.dim(dim);
        if entry.tiling.is_some() || entry.scaled_from.is_some() {
            return Ok(None);
        }
        let (least, end) = match entry.workgroup {
            Some((axis, tile)) => {
                let place = match self.geometry.places.get(axis as usize) {
                    Some(&place) => place,
                    None => self.arena.symbol(GridSymbol::Workgroup(axis).symbol()),
                };
                let tile = self.arena.int(i64::from(tile));
                let least = self.arena.mul(place, tile)?;
                let end = self.arena.add(least, tile)?;
                (least, self.arena.min(end, entry.size)?)
            }
            None => (Expr::ZERO, entry.size),
        };
        let most = self.arena.sub(end, Expr::ONE)?;
        Ok(Some(PlaceSum { along: 0, least, most }))
    }
}
