//! Where the author wrote each part: lines of the first text or program, which machine code refers to.

use std::sync::Arc;

use bevy_ecs::prelude::*;

use super::{Attach, Parsed, Parser, Printed, attach, put};
use crate::ir::diagnostic::Location;
use crate::ir::kernel::{Declaration, Locations};
use crate::ir::node::Origin;
use crate::ir::text::Detail;
use crate::ir::text::lex::Token;

/// The place of a node among the kernel's sources, where the text of a node gives one.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::ir::text) struct Given(pub(in crate::ir::text) u32);

pub(super) fn print_origin(place: Printed<'_>, out: &mut String) -> Option<()> {
    let origin = place.get::<Origin>().filter(|origin| origin.0 != u32::MAX)?;
    (place.detail == Detail::Stage).then(|| put!(out, "{}", origin.0))
}

pub(super) fn read_origin(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(Given(parser.number()?))
}

/// First the place of the kernel itself, or `none`, then all others: a file, named once for all of its lines
/// that follow, then line and column.
pub(super) fn print_sources(place: Printed<'_>, out: &mut String) -> Option<()> {
    let locations = place.get::<Locations>().filter(|_| place.detail == Detail::Stage)?;
    let mut file: Option<&str> = None;
    let declaration = place.get::<Declaration>().and_then(|declaration| declaration.0.as_ref());
    if declaration.is_none() {
        out.push_str("none");
    }
    for (at, location) in declaration.into_iter().chain(locations.0.iter()).enumerate() {
        if at > 0 || declaration.is_none() {
            out.push_str(if at % 16 == 15 { ",\n      " } else { ", " });
        }
        if file != Some(&location.file) {
            put!(out, "\"{}\" ", location.file.escape_default());
            file = Some(&location.file);
        }
        put!(out, "{} {}", location.line, location.column);
    }
    Some(())
}

pub(super) fn read_sources(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let mut file: Arc<str> = "".into();
    let mut all = Vec::new();
    let none = parser.cursor.take_word("none");
    let mut more = !none || parser.cursor.take(",");
    while more {
        if let Token::Quoted(name) = parser.cursor.peek().clone() {
            parser.cursor.bump();
            file = name.into();
        }
        let (line, column) = (parser.number()?, parser.number()?);
        all.push(Location { file: file.clone(), line, column });
        more = parser.cursor.take(",");
    }
    let declaration = if none { None } else { Some(all.remove(0)) };
    parser.sources = Some((Declaration(declaration), Locations(Arc::new(all))));
    Ok(Box::new(|_| {}))
}
