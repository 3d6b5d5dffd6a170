//! Accesses and LDS: bounds, buffers, conflicts.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Attach, Parsed, Parser, Printed, attach, put};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::{
    BankConflicts, Bounds, BoundsChecks, CheckedCoordinate, DirectLoads, InPlace, LdsBuffer, LdsBytes,
    PaddedFactors, SplitAccess, Swizzle, TransposingRead, TurnedUnits, UnitFactor, Unshared, WordSpacing,
};
use crate::ir::layout::UnitDims;
use crate::ir::node::{Dims, Origin};
use crate::ir::reasons::{MaskReason, Narrowness, UnsharedReason};
use crate::ir::text::lex::Token;

/// `leaves M K, masks K: summed, granule 2 of 8: edges`: after a colon why there are masks, and why no more
/// elements move at once.
pub(super) fn print_bounds(place: Printed<'_>, out: &mut String) -> Option<()> {
    let bounds = place.get::<Bounds>()?;
    for (what, dims) in
        [("leaves ", &bounds.leaves), ("masks ", &bounds.masks), ("outside ", &bounds.outside)]
    {
        if !dims.is_empty() {
            out.push_str(what);
            place.dims(dims, out);
            if let Some(why) = bounds.masked_as.filter(|_| what == "masks ") {
                put!(out, ": {}", why.word());
            }
            out.push_str(", ");
        }
    }
    put!(out, "granule {}", bounds.granule);
    if let Some((possible, why)) = bounds.narrowed {
        put!(out, " of {possible}: {}", why.word());
    }
    Some(())
}

pub(super) fn read_bounds(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let mut lists = [SmallVec::new(), SmallVec::new(), SmallVec::new()];
    let mut masked_as = None;
    for (word, list) in ["leaves", "masks", "outside"].into_iter().zip(&mut lists) {
        if parser.cursor.take_word(word) {
            *list = parser.dimensions()?;
            if word == "masks" {
                parser.cursor.expect(":")?;
                masked_as = Some(parser.reason(MaskReason::WORDS)?);
            }
            parser.cursor.expect(",")?;
        }
    }
    let [leaves, masks, outside] = lists;
    let Some(granule) = parser.labelled("granule")?.filter(|&granule| granule > 0) else {
        return Err(parser.cursor.expected("`granule` and a positive number"));
    };
    let mut narrowed = None;
    if let Some(possible) = parser.labelled("of")? {
        parser.cursor.expect(":")?;
        narrowed = Some((possible, parser.reason(Narrowness::WORDS)?));
    }
    attach(Bounds { leaves, masks, masked_as, outside, granule, narrowed })
}

/// `1 of 4: apart`: elements that an instruction moves, those that it could, and why it does not.
pub(super) fn print_split(place: Printed<'_>, out: &mut String) -> Option<()> {
    let SplitAccess { elements, possible, why } = place.get::<SplitAccess>()?;
    put!(out, "{elements} of {possible}: {}", why.word());
    Some(())
}

pub(super) fn read_split(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let elements = parser.number()?;
    let Some(possible) = parser.labelled("of")?.filter(|&possible| (1..possible).contains(&elements)) else {
        return Err(parser.cursor.expected("`of` and more elements than that"));
    };
    parser.cursor.expect(":")?;
    attach(SplitAccess { elements, possible, why: parser.reason(Narrowness::WORDS)? })
}

/// Why a read of a shared memory does not go through LDS.
pub(super) fn print_unshared(place: Printed<'_>, out: &mut String) -> Option<()> {
    put!(out, "{}", place.get::<Unshared>()?.0.word());
    Some(())
}

pub(super) fn read_unshared(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(Unshared(parser.reason(UnsharedReason::WORDS)?))
}

/// For each check the memory, its dimension, and the number of the place of the access.
pub(super) fn print_checks(place: Printed<'_>, out: &mut String) -> Option<()> {
    for (at, check) in place.get::<BoundsChecks>()?.0.iter().enumerate() {
        put!(out, "{}{} ", if at == 0 { "" } else { ", " }, check.memory);
        place.dim(check.dim, out);
        put!(out, " {}", check.origin.0);
    }
    Some(())
}

pub(super) fn read_checks(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let mut checks = BoundsChecks::default();
    loop {
        let Token::Name(memory) = *parser.cursor.peek() else {
            return Err(parser.cursor.expected("a memory"));
        };
        parser.cursor.bump();
        let dim = parser.dimension()?;
        checks.0.push(CheckedCoordinate { memory: memory.into(), dim, origin: Origin(parser.number()?) });
        if !parser.cursor.take(",") {
            break;
        }
    }
    attach(checks)
}

/// Numbers of operands.
pub(super) fn print_padded(place: Printed<'_>, out: &mut String) -> Option<()> {
    for (at, operand) in place.get::<PaddedFactors>()?.0.iter().enumerate() {
        put!(out, "{}{operand}", if at == 0 { "" } else { ", " });
    }
    Some(())
}

pub(super) fn read_padded(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let mut operands = SmallVec::new();
    loop {
        operands.push(parser.number()?);
        if !parser.cursor.take(",") {
            break;
        }
    }
    attach(PaddedFactors(operands))
}

pub(super) fn print_unit_factor(place: Printed<'_>, out: &mut String) -> Option<()> {
    put!(out, "{}", place.get::<UnitFactor>()?.0);
    Some(())
}

pub(super) fn read_unit_factor(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let number = parser.number()?;
    attach(UnitFactor(number))
}

/// Dimensions slowest first, then how rows are stored and where.
pub(super) fn print_buffer(place: Printed<'_>, out: &mut String) -> Option<()> {
    let buffer = place.get::<LdsBuffer>()?;
    for (at, (&dim, extent)) in buffer.dims.iter().zip(&buffer.extents).enumerate() {
        out.push_str(if at == 0 { "" } else { " " });
        place.dim(dim, out);
        put!(out, "*{extent}");
    }
    put!(out, ", element {}, pitch {}", buffer.element_bytes, buffer.pitch);
    if let Some(WordSpacing { together, apart }) = buffer.spacing {
        put!(out, ", room {apart} for {together}");
    }
    if let Some(Swizzle { unit, group, phases, block }) = buffer.swizzle {
        put!(out, ", swizzle {unit} group {group} phases {phases}");
        if let Some(block) = block {
            put!(out, " block {block}");
        }
    }
    put!(out, ", bytes {}, copies {}, offset {}", buffer.bytes, buffer.copies, buffer.offset);
    Some(())
}

pub(super) fn read_buffer(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let at = parser.cursor.location();
    let (mut dims, mut extents) = (Dims::new(), SmallVec::new());
    while matches!(parser.cursor.peek(), Token::Name(_) | Token::Quoted(_) | Token::Integer(_)) {
        dims.push(parser.dimension()?);
        parser.cursor.expect("*")?;
        extents.push(parser.number()?);
    }
    let field = |parser: &mut Parser<'_>, word: &str| {
        parser.cursor.expect(",")?;
        match parser.labelled(word)? {
            Some(value) => Ok(value),
            None => Err(parser.cursor.expected(&format!("`{word}` and a number"))),
        }
    };
    let (element_bytes, pitch) = (field(parser, "element")?, field(parser, "pitch")?);
    parser.cursor.expect(",")?;
    let mut spacing = None;
    if let Some(apart) = parser.labelled("room")? {
        let Some(together) = parser.labelled("for")?.filter(|&together| (1..=apart).contains(&together))
        else {
            return Err(parser.cursor.expected("`for` and how many elements of a buffer have the room"));
        };
        spacing = Some(WordSpacing { together, apart });
        parser.cursor.expect(",")?;
    }
    let mut swizzle = None;
    if let Some(unit) = parser.labelled("swizzle")? {
        let (group, phases) =
            (parser.labelled("group")?.unwrap_or(0), parser.labelled("phases")?.unwrap_or(0));
        let block = parser.labelled("block")?;
        if ![unit, group, phases, block.unwrap_or(1)].iter().all(|value| value.is_power_of_two()) {
            let text = "unit, group, phases and block of a swizzle are powers of two";
            return Err(Diagnostic::invalid(text).at(Some(at)));
        }
        swizzle = Some(Swizzle { unit, group, phases, block });
        parser.cursor.expect(",")?;
    }
    let Some(bytes) = parser.labelled("bytes")? else {
        return Err(parser.cursor.expected("`bytes` and a number"));
    };
    let (copies, offset) = (field(parser, "copies")?, field(parser, "offset")?);
    if copies == 0 || element_bytes == 0 || extents.contains(&0) {
        return Err(Diagnostic::invalid("a buffer of nothing").at(Some(at)));
    }
    attach(LdsBuffer { dims, extents, element_bytes, pitch, spacing, swizzle, offset, bytes, copies })
}

/// `M*4`: the dimension of a row, and elements of it that a lane loads at a time.
pub(super) fn print_transposing(place: Printed<'_>, out: &mut String) -> Option<()> {
    let &TransposingRead { along, elements } = place.get::<TransposingRead>()?;
    place.dim(along, out);
    put!(out, "*{elements}");
    Some(())
}

pub(super) fn read_transposing(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let along = parser.dimension()?;
    parser.cursor.expect("*")?;
    attach(TransposingRead { along, elements: parser.number()? })
}

/// `N N/2 as K K/2, 2 of 4 bits`: what elements and units lie along in the memory, then in the value, and
/// words of units, if these have several: `N N/32 6 as K K/32 6, 32 of 6 bits`.
pub(super) fn print_turned(place: Printed<'_>, out: &mut String) -> Option<()> {
    let &TurnedUnits { stored, held, elements, bits } = place.get::<TurnedUnits>()?;
    for (before, UnitDims { elements, units, words }) in [("", stored), (" as ", held)] {
        out.push_str(before);
        place.dim(elements, out);
        for dim in [Some(units), words].into_iter().flatten() {
            out.push(' ');
            place.dim(dim, out);
        }
    }
    put!(out, ", {elements} of {bits} bits");
    Some(())
}

pub(super) fn read_turned(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let dims = |parser: &mut Parser<'_>| {
        let (elements, units) = (parser.dimension()?, parser.dimension()?);
        let words = match parser.cursor.peek() {
            Token::Integer(_) => Some(parser.dimension()?),
            _ => None,
        };
        Ok::<_, Diagnostic>(UnitDims { elements, units, words })
    };
    let word = |parser: &mut Parser<'_>, word: &str| match parser.cursor.take_word(word) {
        true => Ok(()),
        false => Err(parser.cursor.expected(&format!("`{word}`"))),
    };
    let stored = dims(parser)?;
    word(parser, "as")?;
    let held = dims(parser)?;
    parser.cursor.expect(",")?;
    let elements = parser.number()?;
    word(parser, "of")?;
    let bits = parser.number()?;
    word(parser, "bits")?;
    attach(TurnedUnits { stored, held, elements, bits })
}

pub(super) fn print_conflicts(place: Printed<'_>, out: &mut String) -> Option<()> {
    put!(out, "{}", place.get::<BankConflicts>()?.0);
    Some(())
}

pub(super) fn read_conflicts(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(BankConflicts(parser.number()?))
}

/// Bytes of LDS per workgroup.
pub(super) fn print_lds(place: Printed<'_>, out: &mut String) -> Option<()> {
    put!(out, "{}", place.get::<LdsBytes>()?.0);
    Some(())
}

pub(super) fn read_lds(parser: &mut Parser<'_>) -> Parsed<Attach> {
    attach(LdsBytes(parser.number()?))
}

/// Tiles that are loaded directly, and why there are not more.
pub(super) fn print_direct(place: Printed<'_>, out: &mut String) -> Option<()> {
    let direct = place.get::<DirectLoads>()?;
    put!(out, "{}", direct.tiles);
    if !direct.why.is_empty() {
        put!(out, ", \"{}\"", direct.why.escape_default());
    }
    Some(())
}

pub(super) fn read_direct(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let tiles = parser.number()?;
    let why = if parser.cursor.take(",") { parser.quoted("the reason")? } else { String::new() };
    attach(DirectLoads { tiles, why })
}

/// `a as b`: of memories that may be one tensor the one that is read, and the one that is written.
pub(super) fn print_in_place(place: Printed<'_>, out: &mut String) -> Option<()> {
    for (at, [read, written]) in place.get::<InPlace>()?.0.iter().enumerate() {
        put!(out, "{}{read} as {written}", if at == 0 { "" } else { ", " });
    }
    Some(())
}

pub(super) fn read_in_place(parser: &mut Parser<'_>) -> Parsed<Attach> {
    let mut pairs = Vec::new();
    loop {
        let read = parser.memory_name()?;
        if !parser.cursor.take_word("as") {
            return Err(parser.cursor.expected("`as`"));
        }
        pairs.push([read, parser.memory_name()?]);
        if !parser.cursor.take(",") {
            return attach(InPlace(pairs));
        }
    }
}

impl Parser<'_> {
    /// The reason that a word stands for.
    fn reason<R: Copy>(&mut self, words: &[(R, &str)]) -> Parsed<R> {
        for &(reason, word) in words {
            if self.cursor.take_word(word) {
                return Ok(reason);
            }
        }
        let known: Vec<&str> = words.iter().map(|row| row.1).collect();
        Err(self.cursor.expected(&format!("one of the reasons `{}`", known.join("`, `"))))
    }

    /// The name of a memory, which may be declared later.
    fn memory_name(&mut self) -> Parsed<Arc<str>> {
        let Token::Name(name) = *self.cursor.peek() else {
            return Err(self.cursor.expected("the name of a memory"));
        };
        self.cursor.bump();
        Ok(name.into())
    }
}
