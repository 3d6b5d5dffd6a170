//! Loops: trip counts, pipelines, unrolling, and what became of their schedules.

use smallvec::SmallVec;

use super::{Attach, Parsed, Parser, Printed, attach, put};
use crate::ir::expr::Symbol;
use crate::ir::facts::{EnteredWithLoads, ScheduledLoops, Staggered, UnmaskedTiles};
use crate::ir::node::{Drain, Pipelined, Trip, Unrolled};
use crate::ir::text::lex::Token;

/// `0 .. ceildiv(K, 32)`, in tiles.
fn print_range(Trip { start, end }: Trip, place: Printed<'_>, out: &mut String) {
    place.expr(start, out);
    out.push_str(" .. ");
    place.expr(end, out);
}

fn read_range(parser: &mut Parser<'_>) -> Parsed<Trip> {
    let start = parser.expression()?;
    parser.cursor.expect(".")?;
    parser.cursor.expect(".")?;
    Ok(Trip { start, end: parser.expression()? })
}

pub(super) fn print_trip(place: Printed<'_>, out: &mut String) -> Option<()> {
    let &trip = place.get::<Trip>()?;
    print_range(trip, place, out);
    Some(())
}

pub(super) fn read_trip(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(read_range(parser)?)
}

/// The tiles in which a selection hides nothing.
pub(super) fn print_unmasked(place: Printed<'_>, out: &mut String) -> Option<()> {
    let &UnmaskedTiles(tiles) = place.get::<UnmaskedTiles>()?;
    print_range(tiles, place, out);
    Some(())
}

pub(super) fn read_unmasked(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(UnmaskedTiles(read_range(parser)?))
}

pub(super) fn print_unrolled(place: Printed<'_>, out: &mut String) -> Option<()> {
    put!(out, "{}", place.get::<Unrolled>()?.0);
    Some(())
}

pub(super) fn read_unrolled(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(Unrolled(parser.number()?.max(1)))
}

/// Iterations ahead, and how the last ones end.
pub(super) fn print_pipelined(place: Printed<'_>, out: &mut String) -> Option<()> {
    let &Pipelined { ahead, drain } = place.get::<Pipelined>()?;
    put!(out, "{ahead}");
    if drain == Drain::Loop {
        out.push_str(", drained by the loop");
    }
    Some(())
}

pub(super) fn read_pipelined(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let ahead = parser.number()?;
    let mut drain = Drain::Epilogue;
    if parser.cursor.take(",") {
        for word in ["drained", "by", "the", "loop"] {
            if !parser.cursor.take_word(word) {
                return Err(parser.cursor.expected("`drained by the loop`"));
            }
        }
        drain = Drain::Loop;
    }
    attach(Pipelined { ahead, drain })
}

/// For each group of waves, how many barriers more than the others it has met.
pub(super) fn print_staggered(place: Printed<'_>, out: &mut String) -> Option<()> {
    for (at, offset) in place.get::<Staggered>()?.0.iter().enumerate() {
        put!(out, "{}{offset}", if at == 0 { "" } else { ", " });
    }
    Some(())
}

pub(super) fn read_staggered(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let mut offsets = SmallVec::new();
    while matches!(parser.cursor.peek(), Token::Integer(_)) {
        offsets.push(parser.number()?);
        if !parser.cursor.take(",") {
            break;
        }
    }
    attach(Staggered(offsets))
}

/// How many loads may be under way when waves enter a loop.
pub(super) fn print_entered_with_loads(place: Printed<'_>, out: &mut String) -> Option<()> {
    put!(out, "{}", place.get::<EnteredWithLoads>()?.0);
    Some(())
}

pub(super) fn read_entered_with_loads(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(EnteredWithLoads(parser.number()?))
}

/// The schedule that was applied, and why it is not the one asked for.
pub(super) fn print_scheduled(place: Printed<'_>, out: &mut String) -> Option<()> {
    let scheduled = place.get::<ScheduledLoops>()?;
    out.push_str(scheduled.applied);
    if !scheduled.why.is_empty() {
        put!(out, ", \"{}\"", scheduled.why.escape_default());
    }
    Some(())
}

pub(super) fn read_scheduled(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let Token::Name(name) = *parser.cursor.peek() else {
        return Err(parser.cursor.expected("the name of a schedule"));
    };
    parser.cursor.bump();
    // Names of symbols live as long as the process, and this one has to as well.
    let applied = Symbol::new(name).name();
    let why = if parser.cursor.take(",") { parser.quoted("the reason")? } else { String::new() };
    attach(ScheduledLoops { applied, why })
}

impl Parser<'_> {
    /// A quoted text.
    pub(super) fn quoted(&mut self, what: &str) -> Parsed<String> {
        let Token::Quoted(text) = self.cursor.peek().clone() else {
            return Err(self.cursor.expected(&format!("{what}, quoted")));
        };
        self.cursor.bump();
        Ok(text)
    }
}
