//! Types of values that an operation's own text does not show, and layouts.

use smallvec::SmallVec;

use super::{Attach, Parsed, Parser, Printed, attach, put};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::PackedElements;
use crate::ir::layout::{Layout, Mode, Source};
use crate::ir::node::{Dims, Op, Placement, ValueType};
use crate::ir::text::lex::Token;

pub(super) fn print_type(place: Printed<'_>, out: &mut String) -> Option<()> {
    let ty = place.get::<ValueType>()?;
    let shown = matches!(place.get::<Op>(), Some(Op::Memory | Op::Scalar | Op::Allocate | Op::Register(_)));
    if shown { None } else { print_value_type(place, ty, out) }
}

/// `[M, K] f32`.
fn print_value_type(place: Printed<'_>, ty: &ValueType, out: &mut String) -> Option<()> {
    let dtype = ty.dtype?;
    out.push('[');
    for (at, &dim) in ty.dims.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        place.dim(dim, out);
    }
    put!(out, "] {dtype}");
    Some(())
}

fn value_type(parser: &mut Parser<'_>) -> Parsed<ValueType> {
    let (shape, at) = parser.shape()?;
    let dims: Dims = parser.nodes.dims(&shape).map_err(|fault| fault.at(Some(at)))?;
    Ok(ValueType { dims, dtype: Some(parser.cursor.dtype()?) })
}

pub(super) fn read_type(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(value_type(parser)?)
}

/// What a memory of bytes is to its user.
pub(super) fn print_packed(place: Printed<'_>, out: &mut String) -> Option<()> {
    print_value_type(place, &place.get::<PackedElements>()?.0, out)
}

pub(super) fn read_packed(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(PackedElements(value_type(parser)?))
}

/// `lane M*16:1 K*4:4, register K*4:1`: by source, extents and strides of the dimensions; `_*2` holds the
/// same element twice.
pub(super) fn print(place: Printed<'_>, out: &mut String) -> Option<()> {
    let mut last = None;
    for mode in place.get::<Placement>()?.0.modes() {
        if last != Some(mode.source) {
            out.push_str(if last.is_none() { "" } else { ", " });
            out.push_str(mode.source.name());
            last = Some(mode.source);
        }
        out.push(' ');
        match mode.dim {
            Some(dim) => {
                place.dim(dim, out);
                put!(out, "*{}:{}", mode.extent, mode.stride);
            }
            None => put!(out, "_*{}", mode.extent),
        }
    }
    Some(())
}

pub(super) fn read(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let at = parser.cursor.location();
    let mut modes: SmallVec<[Mode; 12]> = SmallVec::new();
    while let Token::Name(word) = *parser.cursor.peek() {
        let Some(source) = Source::ALL.into_iter().find(|source| source.name() == word) else {
            return Err(parser.cursor.expected("`register`, `replica`, `lane` or `wave`"));
        };
        parser.cursor.bump();
        while matches!(parser.cursor.peek(), Token::Name(_) | Token::Quoted(_) | Token::Integer(_)) {
            let dim = if parser.cursor.take_word("_") { None } else { Some(parser.dimension()?) };
            parser.cursor.expect("*")?;
            let extent = parser.number()?;
            modes.push(match dim {
                None => Mode::broadcast(source, extent),
                Some(dim) => {
                    parser.cursor.expect(":")?;
                    Mode::new(source, extent, dim, parser.number()?)
                }
            });
        }
        if !parser.cursor.take(",") {
            break;
        }
    }
    let layout = Layout::new(modes).map_err(|error| Diagnostic::invalid(error.to_string()).at(Some(at)))?;
    attach(Placement(layout))
}
