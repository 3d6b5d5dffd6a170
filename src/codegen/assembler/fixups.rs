//! Places that depend on symbols: noted while lines are read, filled in when all addresses are known.

use super::error::AssemblerError;
use super::error::MOST_FAULTS;
use super::sections::Section;
use super::symbols::{SymbolPlaces, Symbols};
use crate::codegen::isa::parse::{Binary, Expression, ExpressionValue, InstructionFault, Variant};

/// A place in a section that depends on symbols.
#[derive(Clone, Debug)]
pub(super) struct Fixup {
    pub section: usize,
    pub offset: usize,
    pub kind: FixupKind,
    pub expression: Expression,
    /// The value of `.` in the expression.
    pub here: ExpressionValue,
    pub line: usize,
    pub column: usize,
}

/// The place that is filled in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum FixupKind {
    /// simm16 of a branch.
    Branch,
    /// A literal.
    Literal(Option<Variant>),
    /// A number of this many bytes.
    Data(usize),
    /// The distance from here to an address, in eight bytes.
    Distance,
    /// Distance from the descriptor that begins here to the kernel, in its field.
    Entry,
}

impl FixupKind {
    /// True for what LLVM has relocations for.
    fn holds_distances(self) -> bool {
        matches!(self, FixupKind::Literal(None) | FixupKind::Data(4 | 8))
    }
}

/// An address that depends on where the object is loaded.
#[derive(Copy, Clone, Debug)]
pub(super) struct FixupAddress {
    /// Section and offset where it is.
    pub place: (usize, usize),
    /// Section and offset that it is of.
    pub value: (usize, i64),
}

/// The addresses in writable data: whole ones, which a loader knows.
pub(super) fn addresses(fixups: &[Fixup], symbols: &Symbols, sections: &[Section]) -> Vec<FixupAddress> {
    let address = |fixup: &Fixup| {
        let is_one = fixup.kind == FixupKind::Data(8) && sections[fixup.section].takes_addresses();
        let value = fixup.expression.value(&SymbolPlaces::new(symbols, Some(fixup.here)));
        let value = value.ok().filter(|_| is_one)?;
        let section = value.section? as usize;
        sections[section]
            .is_loaded()
            .then_some(FixupAddress { place: (fixup.section, fixup.offset), value: (section, value.offset) })
    };
    fixups.iter().filter_map(address).collect()
}

/// Fills in all places, given the address of each section; faults are appended, up to the number that is
/// reported.
pub(super) fn apply(
    fixups: &[Fixup],
    symbols: &Symbols,
    sections: &mut [Section],
    addresses: &[u64],
    faults: &mut Vec<AssemblerError>,
) {
    for fixup in fixups {
        if let Err(fault) = one(fixup, symbols, sections, addresses) {
            faults.push(AssemblerError::new(fixup.line, fixup.column, fault));
        }
        if faults.len() >= MOST_FAULTS {
            return;
        }
    }
}

fn one(
    fixup: &Fixup,
    symbols: &Symbols,
    sections: &mut [Section],
    addresses: &[u64],
) -> Result<(), InstructionFault> {
    let places = SymbolPlaces::new(symbols, Some(fixup.here));
    let value = match fixup.expression.value(&places) {
        Err(InstructionFault::NotConstant) if fixup.kind.holds_distances() => {
            distance_of_sections(&fixup.expression, &places, addresses)?
        }
        other => other?,
    };
    let address = |value: ExpressionValue| match value.section {
        Some(section) => (addresses[section as usize] as i64).wrapping_add(value.offset),
        None => value.offset,
    };
    let place = (addresses[fixup.section] as i64).wrapping_add(fixup.offset as i64);
    let is_loaded = sections[fixup.section].is_loaded();
    let (offset, bits, size) = match fixup.kind {
        FixupKind::Branch => (fixup.offset, branch(value, address(value).wrapping_sub(place + 4))?, 2),
        FixupKind::Literal(variant) => {
            let distance = address(value).wrapping_sub(place);
            (fixup.offset, literal(variant, value, distance, &fixup.expression)?, 4)
        }
        FixupKind::Data(size) if value.section.is_none() || !is_loaded => {
            (fixup.offset, fitting(address(value), size)?, size)
        }
        // The loader writes it: see `addresses`.
        FixupKind::Data(8)
            if sections[fixup.section].takes_addresses()
                && value.section.is_some_and(|section| sections[section as usize].is_loaded()) =>
        {
            (fixup.offset, 0, 8)
        }
        FixupKind::Data(_) => return Err(unresolved()),
        FixupKind::Distance if value.section.is_some() => {
            (fixup.offset, address(value).wrapping_sub(place), 8)
        }
        FixupKind::Distance => return Err(undefined_distance()),
        FixupKind::Entry => {
            const FIELD: usize = 16;
            if value.section.is_none() {
                return Err(InstructionFault::Other("the kernel is not a label".to_owned()));
            }
            (fixup.offset + FIELD, address(value).wrapping_sub(place), 8)
        }
    };
    let data = sections[fixup.section].data_mut().get_mut(offset..offset + size);
    let data = data.ok_or(InstructionFault::NotConstant)?;
    data.copy_from_slice(&bits.to_le_bytes()[..size]);
    Ok(())
}

/// True if a literal without a word after its symbol is the distance to it: for symbols and sums of them, but
/// not for differences (LLVM, AMDGPUMCCodeEmitter.cpp, `needsPCRel`).
fn is_distance(expression: &Expression) -> bool {
    match expression {
        Expression::Symbol(_) => true,
        Expression::Binary(Binary::Subtract, ..) | Expression::Number(_) | Expression::Here => false,
        Expression::Unary(_, inner) => is_distance(inner),
        Expression::Binary(_, left, right) => is_distance(left) || is_distance(right),
    }
}

/// The distance between places of two sections, which their addresses give.
fn distance_of_sections(
    expression: &Expression,
    places: &SymbolPlaces,
    addresses: &[u64],
) -> Result<ExpressionValue, InstructionFault> {
    let Expression::Binary(Binary::Subtract, to, from) = expression else {
        return Err(InstructionFault::NotConstant);
    };
    let address = |side: &Expression| match side.value(places)? {
        ExpressionValue { section: Some(section), offset } => {
            Ok((addresses[section as usize] as i64).wrapping_add(offset))
        }
        _ => Err(InstructionFault::NotConstant),
    };
    Ok(ExpressionValue::number(address(to)?.wrapping_sub(address(from)?)))
}

/// The 32 bits of a literal `distance` bytes before what it names.
fn literal(
    variant: Option<Variant>,
    value: ExpressionValue,
    distance: i64,
    expression: &Expression,
) -> Result<i64, InstructionFault> {
    match (variant, value.section) {
        (None, None) => fitting(value.offset, 4),
        (None, Some(_)) if !is_distance(expression) => Err(unresolved()),
        (Some(Variant::Rel32Low) | None, Some(_)) => Ok(distance),
        (Some(Variant::Rel32High), Some(_)) => Ok(distance >> 32),
        (Some(Variant::Rel64), _) => Err(InstructionFault::Other("a literal holds 32 bits".to_owned())),
        (Some(_), None) => Err(undefined_distance()),
    }
}

fn unresolved() -> InstructionFault {
    InstructionFault::Other("an address here needs a relocation, which is not supported".to_owned())
}

fn undefined_distance() -> InstructionFault {
    InstructionFault::Other("the distance to a number is not defined".to_owned())
}

/// simm16: a number stands for itself.
fn branch(target: ExpressionValue, bytes: i64) -> Result<i64, InstructionFault> {
    if target.section.is_none() {
        return fitting(target.offset, 2);
    }
    if bytes % 4 != 0 {
        return Err(InstructionFault::Other("branches go to multiples of four bytes".to_owned()));
    }
    let words = bytes / 4;
    match i16::try_from(words) {
        Ok(words) => Ok(words.into()),
        Err(_) => {
            let what = "the distance of a branch in words";
            Err(InstructionFault::Range { what, low: -0x8000, high: 0x7fff, found: words })
        }
    }
}

/// The number if it fits in this many bytes, signed or not.
pub(super) fn fitting(number: i64, size: usize) -> Result<i64, InstructionFault> {
    let bits = 8 * size as u32;
    if size >= 8 || (-1i64 << (bits - 1)..1 << bits).contains(&number) {
        Ok(number)
    } else {
        Err(InstructionFault::Fit { text: number.to_string(), bits })
    }
}
