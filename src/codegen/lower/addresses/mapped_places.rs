//! Coordinates of the elements of a mapped access, as expressions over the places that hold them: lane, wave,
//! workgroup and iteration.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{AccessFacts, ElementConditions};
use crate::codegen::lower::values::dependence::PlaceSymbol;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprError, SymExpr, Symbol};
use crate::ir::layout::{Dim, Layout, Mode, Source};
use crate::ir::mapping::{Mapping, OPERAND_RANGE, coordinate_along, operand_symbol};
use crate::ir::node::*;
use crate::passes::facts::Bounds;

/// Dimensions, each with the symbol of the coordinate along it, and that coordinate.
pub(super) type ValueCoordinates = SmallVec<[(Dim, Symbol, Expr); 4]>;

/// A mapped access as expressions.
pub(super) struct MappedExpressions<'a> {
    pub(super) facts: AccessFacts<'a>,
    /// Dimensions of the value; the symbol of the coordinate along each, and that coordinate in terms of
    /// lanes, waves, workgroups and iterations, without what register and replica add. Of an access of LDS
    /// also the coordinates inside the workgroup's tile.
    pub(super) dims: ValueCoordinates,
    /// The address in bytes over these symbols.
    pub(super) address: Expr,
    /// Conditions over them.
    pub(super) conditions: ElementConditions,
    /// Layouts of the operands of the mapping.
    pub(super) operands: SmallVec<[Layout; 2]>,
}

impl MappedExpressions<'_> {
    /// The elements that a lane has side by side, and could move at once, of at most `widest`.
    pub(super) fn widest_run(&self, widest: u32) -> u32 {
        let runs = self.dims.iter().map(|d| self.facts.layout.contiguous_run(d.0));
        runs.max().unwrap_or(1).min(widest)
    }
}

impl<'a> AddressLayer<'a> {
    /// A mapped access as expressions.
    pub(super) fn mapped_access(
        &mut self,
        facts: AccessFacts<'a>,
    ) -> Result<MappedExpressions<'a>, Diagnostic> {
        let (node, op) = (facts.node, *self.get::<Op>(facts.node)?);
        let operands = &self.get::<Operands>(node)?.0;
        let typed = if op.is_write() { operands.first().copied().unwrap_or(node) } else { node };
        let others = &operands[op.values_in_front()..operands.len() - 1];
        let value_dims = &self.get::<ValueType>(typed)?.dims;
        let held = self.operand_layouts(others).map_err(|e| self.unmappable(e))?;
        let dims = self.value_coordinates(&facts.layout, value_dims).map_err(|e| self.unmappable(e))?;
        let (address, conditions) = (Expr::ZERO, SmallVec::new());
        let mut access = MappedExpressions { facts, dims, address, conditions, operands: held };
        let coordinates = self.add_address(&mut access)?;
        self.add_conditions(&coordinates, &mut access).map_err(|e| self.unmappable(e))?;
        Ok(access)
    }

    /// Layouts of the operands of a mapping, whose elements are any numbers of 32 bits.
    fn operand_layouts(&mut self, operands: &[Entity]) -> Result<SmallVec<[Layout; 2]>, ExprError> {
        let mut held = SmallVec::new();
        for (number, &other) in operands.iter().enumerate() {
            self.arena.assume_range(operand_symbol(number), OPERAND_RANGE)?;
            held.push(self.kernel.world.get::<Placement>(other).map(|p| p.0.clone()).unwrap_or_default());
        }
        Ok(held)
    }

    fn value_coordinates(&mut self, layout: &Layout, dims: &[Dim]) -> Result<ValueCoordinates, ExprError> {
        let mut coordinates = ValueCoordinates::new();
        for &dim in dims {
            let (symbol, range) = coordinate_along(self.kernel.geometry, dim);
            self.arena.assume_range(symbol, range)?;
            coordinates.push((dim, symbol, self.coordinate_of(layout, dim)?));
        }
        Ok(coordinates)
    }

    /// Gives an access its address; returns the coordinates in the memory.
    fn add_address(&mut self, access: &mut MappedExpressions) -> Result<SmallVec<[Expr; 4]>, Diagnostic> {
        let mapping = self.get::<Mapping>(access.facts.node)?;
        let geometry = self.kernel.geometry;
        let named = mapping.over(geometry, access.dims.iter().map(|known| (known.0, known.1)));
        let mut coordinates = SmallVec::new();
        for (number, (coordinate, written)) in named.0.iter().zip(&mapping.0).enumerate() {
            let Some(&(dim, stride)) = access.facts.strides.get(number) else { continue };
            let coordinate = coordinate.intern(self.arena).map_err(|e| self.unmappable(e))?;
            coordinates.push(coordinate);
            let mut place = coordinate;
            if access.facts.buffer.is_some() {
                let within = self.within_tile(&access.facts.layout, dim, written, &mut access.dims);
                place = within.map_err(|e| self.unmappable(e))?.unwrap_or(coordinate);
            }
            let part = self.arena.mul(place, stride).map_err(|e| self.unmappable(e))?;
            access.address = self.arena.add(access.address, part).map_err(|e| self.unmappable(e))?;
        }
        Ok(coordinates)
    }

    /// Gives an access, of a memory at these coordinates, what has to hold of its elements.
    fn add_conditions(
        &mut self,
        coordinates: &[Expr],
        access: &mut MappedExpressions,
    ) -> Result<(), ExprError> {
        let node = access.facts.node;
        let world = self.kernel.world;
        let op = |node: Entity| world.get::<Op>(node).copied();
        let is_update = |op: Option<Op>| op.is_some_and(Op::updates);
        let written = world.get::<Operands>(node).and_then(|operands| operands.0.first().copied());
        // Of what an update gives back, the first copy alone is known.
        let of_update = op(node).is_some_and(Op::stores) && written.is_some_and(|value| is_update(op(value)));
        if of_update || is_update(op(node)) {
            let copies = |mode: &Mode| mode.dim.is_none().then_some(1);
            let parts = self.digits_of(&access.facts.layout, &copies)?;
            let copy = self.sum(parts)?;
            access.conditions.push((copy, self.arena.int(1)));
        }
        let Some(bounds) = world.get::<Bounds>(node) else { return Ok(()) };
        let geometry = self.kernel.geometry;
        for &(dim, symbol, _) in access.dims.iter().filter(|d| bounds.masks.contains(&d.0)) {
            access.conditions.push((self.arena.symbol(symbol), geometry.dim(dim).size));
        }
        for (&coordinate, &(dim, _)) in coordinates.iter().zip(&access.facts.strides) {
            if bounds.outside.contains(&dim) {
                access.conditions.push((coordinate, geometry.dim(dim).size));
            }
        }
        Ok(())
    }

    /// The coordinate inside the workgroup's tile along a dimension that is divided; nothing along others. It
    /// is `written` in terms of the value's own element along it, or along a dimension that follows it or
    /// that it follows, which is divided alike.
    fn within_tile(
        &mut self,
        layout: &Layout,
        dim: Dim,
        written: &SymExpr,
        dims: &mut ValueCoordinates,
    ) -> Result<Option<Expr>, ExprError> {
        let alike = |known: &&(Dim, Symbol, Expr)| {
            self.kernel.geometry.loop_dim(known.0) == self.kernel.geometry.loop_dim(dim)
        };
        let memory_dim = dim;
        let dim = dims.iter().find(alike).map_or(dim, |known| known.0);
        let entry = self.kernel.geometry.dim(dim);
        if entry.workgroup.is_none() && entry.tiling.is_none() {
            return Ok(None);
        }
        let symbol = Symbol::new(&format!("%in {}", entry.symbol.name()));
        let last = entry.workgroup_extent().map_or(i64::from(i32::MAX), i64::from) - 1;
        self.arena.assume_range(symbol, 0..=last)?;
        let along = |mode: &Mode| (mode.dim == Some(dim) && mode.stride > 0).then_some(mode.stride);
        let parts = self.digits_of(layout, &along)?;
        let place = self.sum(parts)?;
        dims.push((dim, symbol, place));
        if dim == memory_dim {
            return Ok(Some(self.arena.symbol(symbol)));
        }
        let own = entry.symbol;
        let within = written.replaced(&|name| (name == own).then(|| symbol.into()));
        within.intern(self.arena).map(Some)
    }

    /// The coordinate along a dimension, without what register and replica add.
    fn coordinate_of(&mut self, layout: &Layout, dim: Dim) -> Result<Expr, ExprError> {
        let mut parts: SmallVec<[Expr; 8]> = SmallVec::new();
        let entry = self.kernel.geometry.dim(dim);
        if let Some((axis, tile)) = entry.workgroup {
            let last =
                entry.static_size.map_or(i64::from(i32::MAX), |size| i64::from(size.div_ceil(tile))) - 1;
            let symbol = Symbol::new(&format!("%workgroup {axis}"));
            parts.push(self.digit(symbol, PlaceSymbol::Workgroup(axis), last, tile)?);
        }
        let axis = self.kernel.geometry.loop_dim(dim);
        let around = self.loops.iter().rev().find(|open| open.axis == axis);
        if let (Some(open), Some(tile)) = (around, entry.tiling) {
            let pipelined = self.loops.iter().any(|open| open.pipeline && open.axis == axis);
            if open.single && !pipelined {
                let start = open.first_tile();
                let tile = self.arena.int(i64::from(tile));
                parts.push(self.arena.mul(start, tile)?);
            } else {
                let last =
                    entry.static_size.map_or(i64::from(i32::MAX), |size| i64::from(size.div_ceil(tile))) - 1;
                let symbol = Symbol::new(&format!("%trip {}", self.kernel.geometry.dim(axis).symbol.name()));
                parts.push(self.digit(symbol, PlaceSymbol::Trip(axis), last, tile)?);
            }
        }
        let along = |mode: &Mode| (mode.dim == Some(dim) && mode.stride > 0).then_some(mode.stride);
        parts.extend(self.digits_of(layout, &along)?);
        self.sum(parts)
    }

    /// The digits of lane and wave for which `step` gives a number, times that number.
    fn digits_of(
        &mut self,
        layout: &Layout,
        step: &dyn Fn(&Mode) -> Option<u32>,
    ) -> Result<SmallVec<[Expr; 8]>, ExprError> {
        let mut parts = SmallVec::new();
        for source in [Source::Lane, Source::Wave] {
            let (mut weight, total) = (1, layout.extent(source));
            for mode in layout.of_source(source) {
                let (extent, own) = (mode.extent, weight);
                weight *= extent;
                let Some(step) = step(mode).filter(|_| extent > 1) else { continue };
                let name = if source == Source::Lane { "lane" } else { "wave" };
                let symbol = Symbol::new(&format!("%{name} {own} {extent} {total}"));
                let kind = match source {
                    Source::Lane => PlaceSymbol::Lane { weight: own, extent },
                    Source::Wave | Source::Register | Source::Replica => {
                        PlaceSymbol::Wave { weight: own, extent, top: weight == total }
                    }
                };
                parts.push(self.digit(symbol, kind, i64::from(extent) - 1, step)?);
            }
        }
        Ok(parts)
    }

    fn sum(&mut self, parts: SmallVec<[Expr; 8]>) -> Result<Expr, ExprError> {
        parts.into_iter().try_fold(Expr::ZERO, |sum, part| self.arena.add(sum, part))
    }

    /// `symbol * step`, where the symbol is at most `last`.
    fn digit(&mut self, symbol: Symbol, kind: PlaceSymbol, last: i64, step: u32) -> Result<Expr, ExprError> {
        self.name_place(symbol, kind, 0..=last)?;
        let (symbol, step) = (self.arena.symbol(symbol), self.arena.int(i64::from(step)));
        self.arena.mul(symbol, step)
    }
}
