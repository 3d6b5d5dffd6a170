//! In which tiles of a loop a condition on places holds: sums of places, sizes and numbers are compared, so
//! each comparison limits the tiles from one side, as far as it is known which places a workgroup has.

use bevy_ecs::prelude::*;

use crate::ir::constraint::GridSymbol;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprArena, ExprError};
use crate::ir::layout::Dim;
use crate::ir::node::*;
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

/// Finds the tiles of a loop.
pub(super) struct SpanFinder<'a, 'w> {
    pub(super) read: NodeReader<'a, 'w>,
    pub(super) geometry: &'a Geometry,
    pub(super) arena: &'a mut ExprArena,
    /// The dimension of the loop, and its elements per iteration.
    pub(super) axis: Dim,
    pub(super) tile: i64,
}

impl SpanFinder<'_, '_> {
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
                let [Some(a), Some(b)] = [self.sum(a)?, self.sum(b)?] else { return Ok(None) };
                self.compared(predicate, [a, b]).map_err(|e| bug(&e))
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
        let tile = self.arena.int(self.tile);
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
                let last = self.arena.int(self.tile - 1);
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
        let tile = self.arena.int(self.tile);
        self.arena.floor_div(elements, tile)
    }

    /// The numbers of a value; nothing if it is no sum of places, sizes and numbers.
    fn sum(&mut self, node: Entity) -> Result<Option<PlaceSum>, Diagnostic> {
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
            (Op::SelfIndex(dim), _) if dim == self.axis => Some(PlaceSum { along: 1, ..fixed(Expr::ZERO) }),
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
