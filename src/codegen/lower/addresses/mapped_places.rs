//! Coordinates of the elements of a mapped access, as expressions over the places that hold them: lane, wave,
//! workgroup and iteration.

use smallvec::SmallVec;

use super::AddressLayer;
use super::mapped_values::PlaceSymbol;
use crate::ir::expr::{Expr, ExprError, SymExpr, Symbol};
use crate::ir::layout::{Dim, Layout, Mode, Source};

impl AddressLayer<'_> {
    /// The coordinate inside the workgroup's tile along a dimension that is divided; nothing along others. It
    /// is `written` in terms of the value's own element along it, or along a dimension that follows it or
    /// that it follows, which is divided alike.
    pub(super) fn within_tile(
        &mut self,
        layout: &Layout,
        dim: Dim,
        written: &SymExpr,
        dims: &mut SmallVec<[(Dim, Symbol, Expr); 4]>,
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
    pub(super) fn coordinate_of(&mut self, layout: &Layout, dim: Dim) -> Result<Expr, ExprError> {
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
    pub(super) fn digits_of(
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

    pub(crate) fn sum(&mut self, parts: SmallVec<[Expr; 8]>) -> Result<Expr, ExprError> {
        parts.into_iter().try_fold(Expr::ZERO, |sum, part| self.arena.add(sum, part))
    }

    /// `symbol * step`, where the symbol is at most `last`.
    fn digit(&mut self, symbol: Symbol, kind: PlaceSymbol, last: i64, step: u32) -> Result<Expr, ExprError> {
        if self.kind_of(symbol).is_none() {
            self.arena.assume_range(symbol, 0..=last)?;
            self.mapped.kinds.push((symbol, kind));
        }
        let (symbol, step) = (self.arena.symbol(symbol), self.arena.int(i64::from(step)));
        self.arena.mul(symbol, step)
    }
}
