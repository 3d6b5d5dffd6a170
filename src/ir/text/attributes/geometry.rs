//! The kernel's distribution with all symbols bound.

use smallvec::SmallVec;

use super::{Attach, Parsed, Parser, Printed, attach, put};
use crate::ir::constraint::MAX_AXES;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::{Expr, Symbol};
use crate::ir::facts::{DimGeometry, Geometry};
use crate::ir::text::Detail;
use crate::ir::text::constraints::mma_type_text;
use crate::ir::text::lex::Token;
use crate::ir::text::symbolic::{dimension, symbol, write_symbol};

/// One line per dimension: `dim M(64, axis 0, workgroup 32, wave 16)`; then the kernel as a whole.
pub(super) fn print(place: Printed<'_>, out: &mut String) -> Option<()> {
    let geometry = place.get::<Geometry>().filter(|geometry| geometry.waves != [0; 3])?;
    for (word, symbols) in [("dynamic", &geometry.dynamic), ("mask_values", &geometry.mask_values)] {
        if !symbols.is_empty() {
            out.push_str(word);
            for symbol in symbols {
                out.push(' ');
                write_symbol(out, symbol.name());
            }
            out.push_str(",\n      ");
        }
    }
    for dim in geometry.dims.values() {
        print_dim(place, dim, out);
    }
    out.push_str("grid");
    for &count in &geometry.grid {
        out.push(' ');
        out.push('(');
        place.expr(count, out);
        out.push(')');
    }
    if !geometry.places.is_empty() {
        out.push_str(", places");
        for &place_of in &geometry.places {
            out.push_str(" (");
            place.expr(place_of, out);
            out.push(')');
        }
    }
    let [x, y, z] = geometry.waves;
    put!(out, ", waves {x} {y} {z}");
    if let Some(workgroups) = geometry.persistent {
        put!(out, ", persistent {workgroups}");
    }
    if let Some(mma) = geometry.mma {
        put!(out, ", mma {}", mma_type_text(mma));
    }
    Some(())
}

/// Writes how one dimension is spread.
fn print_dim(place: Printed<'_>, dim: &DimGeometry, out: &mut String) {
    out.push_str("dim ");
    write_symbol(out, dim.symbol.name());
    out.push('(');
    place.expr(dim.size, out);
    if let Some((axis, tile)) = dim.workgroup {
        put!(out, ", axis {axis}, workgroup {tile}");
    }
    for (word, value) in [("wave", dim.wave), ("tile", dim.tiling), ("covered", dim.covered)] {
        if let Some(value) = value {
            put!(out, ", {word} {value}");
        }
    }
    let chosen = dim.iterations.iter().map(|limits| ("iterations", limits));
    let divided = dim.masks.divided.iter().map(|limits| ("divided", limits));
    let unmasked = dim.masks.unmasked.iter().map(|limits| ("unmasked", limits));
    for (word, &(first, end)) in chosen.chain(divided).chain(unmasked) {
        put!(out, ", {word} (");
        place.expr(first, out);
        out.push_str(") (");
        place.expr(end, out);
        out.push(')');
    }
    if let Some((first, step)) = dim.step {
        put!(out, ", step {step} (");
        place.expr(first, out);
        out.push(')');
    }
    if place.detail == Detail::Stage && dim.origin != u32::MAX {
        put!(out, ", at {}", dim.origin);
    }
    out.push_str("),\n      ");
}

/// The symbols that a word is followed by, if it is there.
fn symbols_after(parser: &mut Parser<'_>, word: &str) -> Parsed<Vec<Symbol>> {
    let mut symbols = Vec::new();
    if parser.cursor.take_word(word) {
        while matches!(parser.cursor.peek(), Token::Name(_) | Token::Quoted(_)) {
            symbols.push(symbol(&mut parser.cursor, "a symbol")?);
        }
        parser.cursor.expect(",")?;
    }
    Ok(symbols)
}

pub(super) fn read(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let (dynamic, mask_values) = (symbols_after(parser, "dynamic")?, symbols_after(parser, "mask_values")?);
    let mut geometry = Geometry { dynamic, mask_values, ..Geometry::default() };
    parser.assume(&geometry.dynamic, &geometry.mask_values)?;
    while parser.cursor.take_word("dim") {
        let at = parser.cursor.location();
        let symbol = dimension(&mut parser.cursor, "a dimension")?;
        let dim = parser.nodes.dim(symbol).map_err(|fault| fault.at(Some(at.clone())))?;
        if dim != geometry.dims.next_key() {
            let text = format!("the dimension {symbol} does not stand in its place");
            return Err(Diagnostic::invalid(text).at(Some(at)));
        }
        let mut entry = parser.dim_geometry(symbol)?;
        entry.scaled_from = parser.nodes.scaled_from(dim);
        geometry.dims.push(entry);
        parser.cursor.expect(",")?;
    }
    if !parser.cursor.take_word("grid") {
        return Err(parser.cursor.expected("`grid`"));
    }
    let at = parser.cursor.location();
    geometry.grid = parser.bracketed()?;
    if !(3..=MAX_AXES).contains(&geometry.grid.len()) {
        return Err(Diagnostic::invalid("a grid has 3 to 5 axes here").at(Some(at)));
    }
    parser.cursor.expect(",")?;
    let at = parser.cursor.location();
    if parser.cursor.take_word("places") {
        geometry.places = parser.bracketed()?;
        parser.cursor.expect(",")?;
    }
    if geometry.places.len() != geometry.grid.len()
        && (!geometry.places.is_empty() || geometry.grid.len() > 3)
    {
        return Err(Diagnostic::invalid("there is a place for each axis of the grid").at(Some(at)));
    }
    let at = parser.cursor.location();
    if !parser.cursor.take_word("waves") {
        return Err(parser.cursor.expected("`waves`"));
    }
    geometry.waves = [parser.number()?, parser.number()?, parser.number()?];
    if !(1..=16).contains(&geometry.waves.iter().fold(1u32, |all, &waves| all.saturating_mul(waves))) {
        return Err(Diagnostic::invalid("a workgroup has 1 to 16 waves").at(Some(at)));
    }
    while parser.cursor.take(",") {
        let at = parser.cursor.location();
        if let Some(workgroups) = parser.labelled("persistent")? {
            if !(1..=1 << 20).contains(&workgroups) {
                return Err(Diagnostic::invalid("1 to 1048576 workgroups share a grid").at(Some(at)));
            }
            geometry.persistent = Some(workgroups);
        } else if parser.cursor.take_word("mma") {
            geometry.mma = Some(parser.mma_type()?);
        } else {
            return Err(parser.cursor.expected("`persistent` or `mma`"));
        }
    }
    attach(geometry)
}

impl Parser<'_> {
    /// Expressions, each in brackets.
    fn bracketed(&mut self) -> Parsed<SmallVec<[Expr; 3]>> {
        let mut all = SmallVec::new();
        while self.cursor.take("(") {
            all.push(self.expression()?);
            self.cursor.expect(")")?;
        }
        Ok(all)
    }

    /// `(first) (end)`.
    fn iteration_limits(&mut self, at: Location) -> Parsed<(Expr, Expr)> {
        let both = self.bracketed()?;
        let &[first, end] = both.as_slice() else {
            return Err(Diagnostic::invalid("iterations have a first one and an end").at(Some(at)));
        };
        Ok((first, end))
    }

    /// `(size, axis A, workgroup N, wave N, tile N, at N)`.
    fn dim_geometry(&mut self, symbol: Symbol) -> Parsed<DimGeometry> {
        self.cursor.expect("(")?;
        let size = self.expression()?;
        let static_size = self.expressions.as_integer(size).and_then(|size| u32::try_from(size).ok());
        let mut entry = DimGeometry::new(symbol, size, static_size);
        while self.cursor.take(",") {
            let at = self.cursor.location();
            let positive = |value: u32| {
                let fault = || Diagnostic::invalid("a tile has 1 to 1048576 elements").at(Some(at.clone()));
                Some(value).filter(|value| (1..=1 << 20).contains(value)).ok_or_else(fault)
            };
            if let Some(axis) = self.labelled("axis")? {
                self.cursor.expect(",")?;
                match self.labelled("workgroup")? {
                    Some(tile) if (axis as usize) < MAX_AXES => {
                        entry.workgroup = Some((axis, positive(tile)?))
                    }
                    _ => return Err(self.cursor.expected("an axis below 5, and `workgroup`")),
                }
            } else if let Some(tile) = self.labelled("wave")? {
                entry.wave = Some(positive(tile)?);
            } else if let Some(tile) = self.labelled("tile")? {
                entry.tiling = Some(positive(tile)?);
            } else if let Some(elements) = self.labelled("covered")? {
                entry.covered = Some(positive(elements)?);
            } else if self.cursor.take_word("iterations") {
                entry.iterations = Some(self.iteration_limits(at)?);
            } else if self.cursor.take_word("divided") {
                let limits = self.iteration_limits(at)?;
                entry.masks.divided.push(limits);
            } else if self.cursor.take_word("unmasked") {
                let limits = self.iteration_limits(at)?;
                entry.masks.unmasked.push(limits);
            } else if let Some(step) = self.labelled("step")? {
                let first = self.bracketed()?;
                let &[first] = first.as_slice() else {
                    return Err(
                        Diagnostic::invalid("a step has the tile of the first iteration").at(Some(at))
                    );
                };
                entry.step = Some((first, positive(step)?));
            } else if let Some(at) = self.labelled("at")? {
                entry.origin = at;
            } else {
                return Err(self.cursor.expected(
                    "`axis`, `wave`, `tile`, `iterations`, `divided`, `unmasked`, `step` or `covered`",
                ));
            }
        }
        self.cursor.expect(")")?;
        Ok(entry)
    }
}
