//! Which logical node an expanded one is a piece of, and what expansion says about the kernel.

use bevy_ecs::prelude::*;
use bevy_ecs::world::EntityWorldMut;

use super::{Attach, Parsed, Parser, Printed, Renamed, attach, put};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::{
    Arguments, Base, ExpandedCount, Expansion, Iteration, LayoutConversion, OrderedAccesses,
};
use crate::ir::node::{Name, Op, Origin};
use crate::ir::text::Detail;
use crate::ir::text::lex::Token;
use crate::ir::text::scope::{Definition, NameMeaning};

/// Words for what iterations are counted from.
const BASES: &[(Base, &str)] =
    &[(Base::Written, "written"), (Base::Start, "start"), (Base::Trip, "trip"), (Base::End, "end")];

/// The number of a logical node.
pub(super) fn print_number(place: Printed<'_>, out: &mut String) -> Option<()> {
    put!(out, "{}", place.logical.get(place.node)?);
    Some(())
}

pub(super) fn read_number(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let number = parser.number()?;
    parser.numbered = Some(number);
    Ok(Box::new(|_| {}))
}

/// `4, replica 1, slice 8, trip 2, copy 1`: the node's number, and what is not zero.
pub(super) fn print(place: Printed<'_>, out: &mut String) -> Option<()> {
    let expansion = place.get::<Expansion>()?;
    match place.logical.get(expansion.logical) {
        Some(number) => put!(out, "{number}"),
        None => out.push('?'),
    }
    let Expansion { replica, slice, iteration: Iteration { base, ahead }, copy, .. } = *expansion;
    for (word, value) in [("replica", replica), ("slice", slice)] {
        if value > 0 {
            put!(out, ", {word} {value}");
        }
    }
    if base != Base::Written || ahead > 0 {
        let word = BASES.iter().find(|row| row.0 == base).map_or("?", |row| row.1);
        put!(out, ", {word} {ahead}");
    }
    if copy > 0 {
        put!(out, ", copy {copy}");
    }
    Some(())
}

/// The logical node of a number.
fn logical(parser: &mut Parser<'_>) -> Parsed<Entity> {
    let at = parser.cursor.location();
    let number = parser.number()?;
    parser.logical.get(&number).copied().ok_or_else(|| {
        let fault = Diagnostic::invalid(format!("no logical node has the number {number}"));
        fault.at(Some(at)).help("the block `logical` holds nodes with `!node(number)`")
    })
}

pub(super) fn read(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let mut expansion = Expansion::of(logical(parser)?);
    while parser.cursor.take(",") {
        if let Some(replica) = parser.labelled("replica")? {
            expansion.replica = replica;
        } else if let Some(slice) = parser.labelled("slice")? {
            expansion.slice = slice;
        } else if let Some(copy) = parser.labelled("copy")? {
            expansion.copy = copy;
        } else if let Token::Name(word) = *parser.cursor.peek()
            && let Some(&(base, word)) = BASES.iter().find(|row| row.1 == word)
        {
            let ahead = parser.labelled(word)?.unwrap_or(0);
            expansion.iteration = Iteration { base, ahead };
        } else {
            return Err(parser.cursor.expected("`replica`, `slice`, `copy`, or an iteration"));
        }
    }
    attach(expansion)
}

pub(super) fn copy(from: &World, node: Entity, to: &mut EntityWorldMut<'_>, renamed: Renamed<'_>) {
    if let Some(expansion) = from.get::<Expansion>(node) {
        to.insert(Expansion { logical: renamed(expansion.logical), ..*expansion });
    }
}

/// `mma at 14, vector 8, lds 2`: the operation that asks for another layout, where it is written, and the
/// instructions that it takes.
pub(super) fn print_conversion(place: Printed<'_>, out: &mut String) -> Option<()> {
    let &LayoutConversion { user, origin, vector, lds } = place.get::<LayoutConversion>()?;
    out.push_str(user);
    if place.detail == Detail::Stage && origin.0 != u32::MAX {
        put!(out, " at {}", origin.0);
    }
    for (word, count) in [("vector", vector), ("lds", lds)] {
        if count > 0 {
            put!(out, ", {word} {count}");
        }
    }
    Some(())
}

pub(super) fn read_conversion(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let Token::Name(word) = *parser.cursor.peek() else {
        return Err(parser.cursor.expected("the operation that asks for the layout"));
    };
    let Some(user) = Op::rows().map(|row| row.word).find(|known| *known == word) else {
        return Err(parser.cursor.expected("the word of an operation"));
    };
    parser.cursor.bump();
    let mut conversion = LayoutConversion { user, origin: Origin(u32::MAX), vector: 0, lds: 0 };
    if let Some(origin) = parser.labelled("at")? {
        conversion.origin = Origin(origin);
    }
    while parser.cursor.take(",") {
        if let Some(count) = parser.labelled("vector")? {
            conversion.vector = count;
        } else if let Some(count) = parser.labelled("lds")? {
            conversion.lds = count;
        } else {
            return Err(parser.cursor.expected("`vector` or `lds`, and how many instructions"));
        }
    }
    attach(conversion)
}

/// `7 after 4`: the numbers of two logical nodes.
pub(super) fn print_orders(place: Printed<'_>, out: &mut String) -> Option<()> {
    let OrderedAccesses { later, earlier } = place.get::<OrderedAccesses>()?;
    put!(out, "{} after {}", place.logical.get(*later)?, place.logical.get(*earlier)?);
    Some(())
}

pub(super) fn read_orders(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let later = logical(parser)?;
    if !parser.cursor.take_word("after") {
        return Err(parser.cursor.expected("`after`"));
    }
    let earlier = logical(parser)?;
    attach(OrderedAccesses { later, earlier })
}

pub(super) fn copy_orders(from: &World, node: Entity, to: &mut EntityWorldMut<'_>, renamed: Renamed<'_>) {
    if let Some(&OrderedAccesses { later, earlier }) = from.get::<OrderedAccesses>(node) {
        to.insert(OrderedAccesses { later: renamed(later), earlier: renamed(earlier) });
    }
}

/// Names of memories and scalars in the order of the kernel's arguments.
pub(super) fn print_arguments(place: Printed<'_>, out: &mut String) -> Option<()> {
    for (at, &memory) in place.get::<Arguments>()?.0.iter().enumerate() {
        let name = place.world.get::<Name>(memory).map_or("?", |name| &name.0);
        put!(out, "{}{name}", if at == 0 { "" } else { ", " });
    }
    Some(())
}

/// The arguments are defined later, so their names are looked up at the end.
pub(super) fn read_arguments(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let mut names = Vec::new();
    while let Token::Name(name) = *parser.cursor.peek() {
        names.push((name.to_owned(), parser.cursor.location()));
        parser.cursor.bump();
        if !parser.cursor.take(",") {
            break;
        }
    }
    parser.arguments = Some(names);
    Ok(Box::new(|_| {}))
}

pub(super) fn copy_arguments(from: &World, node: Entity, to: &mut EntityWorldMut<'_>, renamed: Renamed<'_>) {
    if let Some(arguments) = from.get::<Arguments>(node) {
        to.insert(Arguments(arguments.0.iter().map(|&memory| renamed(memory)).collect()));
    }
}

pub(super) fn print_count(place: Printed<'_>, out: &mut String) -> Option<()> {
    put!(out, "{}", place.get::<ExpandedCount>()?.0);
    Some(())
}

pub(super) fn read_count(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(ExpandedCount(parser.number()?))
}

impl Parser<'_> {
    /// The kernel's arguments, now that all memories are known.
    pub(in crate::ir::text) fn find_arguments(&mut self) -> Parsed<Option<Arguments>> {
        let Some(names) = self.arguments.take() else { return Ok(None) };
        let mut memories = Vec::with_capacity(names.len());
        for (name, at) in names {
            match self.scopes.get(&name) {
                Some(Definition {
                    meaning: NameMeaning::Place(memory) | NameMeaning::Scalar(memory),
                    ..
                }) => memories.push(memory),
                _ => {
                    let fault = Diagnostic::invalid(format!("`{name}` is not an argument of the kernel"));
                    return Err(fault.at(Some(at)));
                }
            }
        }
        Ok(Some(Arguments(memories)))
    }
}
