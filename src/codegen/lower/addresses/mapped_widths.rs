//! How wide mapped accesses are: how many elements an instruction takes, and where each instruction begins.
//!
//! Elements of neighbouring registers are neighbours in memory, or one and the same: of bytes that hold two
//! elements each, and of values for blocks, an instruction loads what is there once, and it is repeated in
//! registers.

use smallvec::SmallVec;

use super::AddressLayer;
use super::access::{AccessWidth, ElementConditions, instruction_places};
use super::mapped_places::MappedExpressions;
use crate::codegen::lower::values::dependence::PlaceSymbol;
use crate::ir::expr::{Expr, ExprError, Symbol};
use crate::ir::layout::{self, Dim, Layout, Source};
use crate::ir::mapping::{OPERAND_RANGE, is_certainly_inside, operand_symbol};
use crate::ir::reasons::Narrowness;

/// The accesses of a width, and what keeps them from being wider.
pub(super) struct Drafts {
    pub(super) width: AccessWidth,
    /// The accesses of the instructions, one each.
    pub(super) pieces: Vec<MappedDraft>,
    pub(super) why: Option<Narrowness>,
}

/// The address and the conditions of the elements of one instruction.
pub(super) struct MappedDraft {
    pub(super) address: Expr,
    pub(super) conditions: ElementConditions,
}

impl AddressLayer<'_> {
    /// The widest instructions that the algebra allows, of at most `widest` elements.
    pub(super) fn drafts(&mut self, access: &MappedExpressions, widest: u32) -> Result<Drafts, ExprError> {
        let layout = &access.facts.layout;
        let along = access.dims.iter().find(|d| layout.contiguous_run(d.0) > 1);
        let run = along.map_or(1, |d| layout.contiguous_run(d.0));
        // If all that depends on the coordinate are multiples of more than an element, neighbours lie apart.
        let unit = along.and_then(|&(_, symbol, _)| self.arena.unit_along(access.address, symbol));
        let (mut granule, mut why) = match unit {
            Some(unit) if i64::from(access.facts.element_bytes) % unit != 0 => (1, Some(Narrowness::Apart)),
            _ => ((1 << run.trailing_zeros()).min(widest), None),
        };
        let lanes = along.map(|d| d.0);
        loop {
            let width = AccessWidth::of(granule);
            match self.drafts_of(access, lanes, width)? {
                Ok(pieces) => return Ok(Drafts { width, pieces, why }),
                Err(narrow) => (granule, why) = (granule / 2, Some(narrow)),
            }
        }
    }

    /// The same where neighbours along a dimension are one element; `None` if that is not certain for any
    /// number of them.
    pub(super) fn repeated_drafts(
        &mut self,
        access: &MappedExpressions,
        widest: u32,
    ) -> Result<Option<Drafts>, ExprError> {
        // Wider elements fill registers of their own.
        let along = access.dims.iter().find(|d| access.facts.layout.contiguous_run(d.0) > 1).map(|d| d.0);
        let Some(dim) = along.filter(|_| access.facts.element_bytes < 4) else { return Ok(None) };
        let mut granule = 1 << access.facts.layout.contiguous_run(dim).min(widest).trailing_zeros();
        while granule > 1 {
            let mut repeats = 2;
            while repeats <= granule {
                let width = AccessWidth { granule, repeats };
                if let Ok(pieces) = self.drafts_of(access, Some(dim), width)? {
                    return Ok(Some(Drafts { width, pieces, why: None }));
                }
                repeats *= 2;
            }
            granule /= 2;
        }
        Ok(None)
    }

    /// The accesses of the instructions of a width along a dimension, or why it is not certain that they can
    /// be so wide.
    fn drafts_of(
        &mut self,
        access: &MappedExpressions,
        along: Option<Dim>,
        width: AccessWidth,
    ) -> Result<Result<Vec<MappedDraft>, Narrowness>, ExprError> {
        let mut drafts = Vec::new();
        for place in instruction_places(&access.facts.layout, width.granule) {
            let draft = self.draft(access, place, None)?;
            if let Some(dim) = along
                && width.granule > 1
                && let Some(narrow) = self.narrowness(access, place, &draft, dim, width)?
            {
                return Ok(Err(narrow));
            }
            drafts.push(draft);
        }
        Ok(Ok(drafts))
    }

    /// The element at a place; along `moved` a symbol is added to its coordinate.
    fn draft(
        &mut self,
        access: &MappedExpressions,
        place: layout::Place,
        moved: Option<(Dim, Expr)>,
    ) -> Result<MappedDraft, ExprError> {
        let mut known: SmallVec<[(Symbol, Expr); 8]> = SmallVec::new();
        for &(dim, symbol, base) in &access.dims {
            let constant = self.arena.int(i64::from(access.facts.layout.coordinate(dim, place)));
            let mut coordinate = self.arena.add(base, constant)?;
            if let Some((_, step)) = moved.filter(|moved| moved.0 == dim) {
                coordinate = self.arena.add(coordinate, step)?;
            }
            known.push((symbol, coordinate));
        }
        for (number, other) in access.operands.iter().enumerate() {
            let (mut element, mut weight) = (0, 1);
            for mode in other.of_source(Source::Register) {
                if let Some(dim) = mode.dim {
                    element +=
                        access.facts.layout.coordinate(dim, place) / mode.stride % mode.extent * weight;
                }
                weight *= mode.extent;
            }
            let symbol = Symbol::new(&format!("%{number} element {element}"));
            let kind = PlaceSymbol::Operand { number, element };
            self.name_place(symbol, kind, OPERAND_RANGE)?;
            known.push((operand_symbol(number), self.arena.symbol(symbol)));
        }
        let mut replace = |symbol: Symbol| known.iter().find(|k| k.0 == symbol).map(|k| k.1);
        let address = self.arena.substitute(access.address, &mut replace)?;
        let mut conditions = SmallVec::new();
        for &(coordinate, size) in &access.conditions {
            let coordinate = self.arena.substitute(coordinate, &mut replace)?;
            if !is_certainly_inside(self.arena, coordinate, size)? {
                conditions.push((coordinate, size));
            }
        }
        Ok(MappedDraft { address, conditions })
    }

    /// The reason why one instruction cannot access the elements along `dim` from a place on, if there is
    /// one: they have to lie side by side, start at a whole dword or more, and be inside or outside together.
    fn narrowness(
        &mut self,
        access: &MappedExpressions,
        place: layout::Place,
        first: &MappedDraft,
        dim: Dim,
        AccessWidth { granule, repeats }: AccessWidth,
    ) -> Result<Option<Narrowness>, ExprError> {
        let depends = |layout: &Layout| layout.of_source(Source::Register).any(|mode| mode.dim == Some(dim));
        if access.operands.iter().any(depends) {
            return Ok(Some(Narrowness::OwnCoordinates));
        }
        let symbol = Symbol::new(&format!("%step {granule}"));
        self.arena.assume_range(symbol, 0..=i64::from(granule) - 1)?;
        let step = self.arena.symbol(symbol);
        let other = self.draft(access, place, Some((dim, step)))?;
        let scale = self.arena.int(i64::from(access.facts.element_bytes));
        let repeated = self.arena.int(i64::from(repeats));
        let own = if repeats == 1 { step } else { self.arena.floor_div(step, repeated)? };
        let expected = self.arena.mul(own, scale)?;
        let expected = self.arena.add(first.address, expected)?;
        let aligned =
            i64::from((granule / repeats * access.facts.element_bytes).min(access.facts.limits.alignment));
        if other.address != expected {
            return Ok(Some(Narrowness::Apart));
        }
        if !self.arena.is_multiple_of(first.address, aligned) {
            return Ok(Some(Narrowness::Unaligned));
        }
        if other.conditions.len() != first.conditions.len() {
            return Ok(Some(Narrowness::Edges));
        }
        for (&(a, size), &(b, _)) in first.conditions.iter().zip(&other.conditions) {
            let next = self.arena.add(a, step)?;
            let g = i64::from(granule);
            let together = b == next && self.arena.is_multiple_of(a, g) && self.arena.is_multiple_of(size, g);
            if a != b && !together {
                return Ok(Some(Narrowness::Edges));
            }
        }
        Ok(None)
    }
}
