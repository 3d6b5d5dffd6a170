//! Directives that put bytes into sections: numbers, strings, fillers, alignment.

use super::directives::{AlignmentUnit, DataDirective, Signedness};
use super::error::other;
use super::fixups::{FixupKind, fitting};
use super::sections::EXECUTE;
use super::strings;
use super::symbols::SymbolPlaces;
use super::walk::TextAssembler;
use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::cursor::StatementCursor;
use crate::codegen::isa::parse::expression;
use crate::codegen::isa::parse::{InstructionFault, Variant};

/// `s_nop 0`, the filler of code.
pub(super) const S_NOP: [u8; 4] = 0xbf80_0000u32.to_le_bytes();

impl TextAssembler {
    /// Puts into the section what a directive says.
    pub(super) fn data_directive(
        &mut self,
        directive: DataDirective,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        match directive {
            DataDirective::Numbers(size) => self.numbers(cursor, size),
            DataDirective::Wide => self.wide_numbers(cursor),
            DataDirective::Leb128(signedness) => self.short_numbers(cursor, signedness),
            DataDirective::Origin => self.origin(cursor),
            DataDirective::Float(size) => self.floats(cursor, size),
            DataDirective::Ascii => self.strings(cursor, b""),
            DataDirective::Asciz => self.strings(cursor, b"\0"),
            DataDirective::Zero => self.zeros(cursor),
            DataDirective::Fill => self.fill(cursor),
            DataDirective::Align(unit, width) => self.align(cursor, unit, width),
        }
    }

    /// `.long 1, a - b`
    fn numbers(&mut self, cursor: &mut StatementCursor, size: usize) -> Result<(), LineError> {
        while !cursor.is_at_end() {
            let start = *cursor;
            let (expression, variant) = self.address(cursor)?;
            let kind = match (variant, size) {
                (None, _) => FixupKind::Data(size),
                (Some(Variant::Rel64), 8) => FixupKind::Distance,
                _ => return Err(start.expected("a number, or `@rel64` in eight bytes")),
            };
            match self.number_now(&expression) {
                _ if variant.is_some() => {
                    let column = start.fault(InstructionFault::NotConstant).column;
                    self.fixup(kind, expression, 0, column);
                    self.append(&start, &[0; 8])?;
                }
                Ok(number) => {
                    let number = fitting(number, size).map_err(|fault| start.fault(fault))?;
                    self.append(&start, &number.to_le_bytes()[..size])?;
                }
                Err(InstructionFault::Division) => return Err(start.fault(InstructionFault::Division)),
                Err(_) => {
                    let column = start.fault(InstructionFault::NotConstant).column;
                    self.fixup(kind, expression, 0, column);
                    self.append(&start, &[0; 8][..size])?;
                }
            }
            comma_or_end(cursor)?;
        }
        Ok(())
    }

    /// `.octa 0x123456789abcdef0fedcba9876543210`
    fn wide_numbers(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        while !cursor.is_at_end() {
            let start = *cursor;
            let digits = expression::digits(cursor);
            let number = expression::wide_integer(digits)
                .ok_or_else(|| start.fault(InstructionFault::Number { text: digits.to_owned() }))?;
            cursor.advance(digits.len());
            self.append(&start, &number.to_le_bytes())?;
            comma_or_end(cursor)?;
        }
        Ok(())
    }

    /// `.uleb128 624485`, `.sleb128 -2`: seven bits per byte, the lowest first; all but the last have the top
    /// bit set (DWARF standard, "Variable Length Data").
    fn short_numbers(
        &mut self,
        cursor: &mut StatementCursor,
        signedness: Signedness,
    ) -> Result<(), LineError> {
        while !cursor.is_at_end() {
            let start = *cursor;
            let mut left = self.number(cursor, i64::MIN, i64::MAX)?;
            let mut bytes = Vec::new();
            loop {
                let low = (left & 0x7f) as u8;
                let is_last = match signedness {
                    Signedness::Unsigned => {
                        left = (left as u64 >> 7) as i64;
                        left == 0
                    }
                    Signedness::Signed => {
                        left >>= 7;
                        left == if low & 0x40 == 0 { 0 } else { -1 }
                    }
                };
                bytes.push(if is_last { low } else { low | 0x80 });
                if is_last {
                    break;
                }
            }
            self.append(&start, &bytes)?;
            comma_or_end(cursor)?;
        }
        Ok(())
    }

    /// `.org table + 64, 0xff`: a number is a place of this section too.
    pub(super) fn origin(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        let expression = self.expression(cursor)?;
        let filler = if cursor.eat(",") { self.number(cursor, -0x80, 0xff)? as u8 } else { 0 };
        let here = self.sections.here();
        let found = expression.value(&SymbolPlaces::new(&self.symbols, Some(here)));
        let place = found.map_err(|fault| start.fault(fault))?;
        let is_here = place.section.is_none() || place.section == here.section;
        let missing = place.offset.checked_sub(here.offset).and_then(|bytes| usize::try_from(bytes).ok());
        match missing.filter(|_| is_here) {
            Some(bytes) => self.sections.fill(&[filler], bytes).map_err(|fault| start.fault(fault)),
            None => Err(start.fault(other("`.org` goes on at a later place of the same section"))),
        }
    }

    /// `.float 1.0, -0.5`
    fn floats(&mut self, cursor: &mut StatementCursor, size: usize) -> Result<(), LineError> {
        while !cursor.is_at_end() {
            let start = *cursor;
            let negative = cursor.eat("-");
            let (value, length) = match expression::float_length(cursor.rest()) {
                Some(length) => (expression::float(&cursor.rest()[..length]), length),
                None => {
                    let end = cursor.rest().bytes().position(|b| !b.is_ascii_digit());
                    let length = end.unwrap_or(cursor.rest().len());
                    (cursor.rest()[..length].parse().ok(), length)
                }
            };
            let value: f64 = value.ok_or_else(|| start.expected("a float"))?;
            cursor.advance(length);
            let value = if negative { -value } else { value };
            match size {
                4 => self.append(&start, &(value as f32).to_le_bytes())?,
                _ => self.append(&start, &value.to_le_bytes())?,
            }
            comma_or_end(cursor)?;
        }
        Ok(())
    }

    /// `.ascii "a", "b"`
    fn strings(&mut self, cursor: &mut StatementCursor, terminator: &[u8]) -> Result<(), LineError> {
        while !cursor.is_at_end() {
            let start = *cursor;
            let mut bytes = strings::parse(cursor)?;
            bytes.extend_from_slice(terminator);
            self.append(&start, &bytes)?;
            comma_or_end(cursor)?;
        }
        Ok(())
    }

    /// `.zero 16, 0xff`
    fn zeros(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        let count = self.count(cursor)?;
        let value = if cursor.eat(",") { self.number(cursor, -0x80, 0xff)? } else { 0 };
        self.sections.fill(&[value as u8], count).map_err(|fault| start.fault(fault))
    }

    /// `.fill count, size, value`: in numbers of more than four bytes, the rest is zero.
    fn fill(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        let count = self.count(cursor)?;
        let size = if cursor.eat(",") { self.number(cursor, 0, 8)? as usize } else { 1 };
        let value = if cursor.eat(",") { self.number(cursor, i64::MIN, i64::MAX)? } else { 0 };
        let mut pattern = [0; 8];
        pattern[..4].copy_from_slice(&value.to_le_bytes()[..4]);
        let bytes = count.checked_mul(size).ok_or_else(|| start.fault(self.sections.too_many_bytes()))?;
        self.sections.fill(&pattern[..size], bytes).map_err(|fault| start.fault(fault))
    }

    /// `.p2align 8`, `.p2alignl 6, 0xbf800000`, `.balign 16, 0, 8`
    fn align(
        &mut self,
        cursor: &mut StatementCursor,
        unit: AlignmentUnit,
        width: usize,
    ) -> Result<(), LineError> {
        const MOST: u32 = 16;
        let start = *cursor;
        let align = match unit {
            AlignmentUnit::PowerOfTwo => 1usize << self.number(cursor, 0, MOST.into())?,
            AlignmentUnit::Bytes => match self.number(cursor, 0, 1 << MOST)? as usize {
                0 => 1,
                align => align,
            },
        };
        if !align.is_power_of_two() {
            return Err(start.fault(other("an alignment is a power of two")));
        }
        let mut filler = None;
        let mut most = usize::MAX;
        if cursor.eat(",") {
            if cursor.peek() != Some(b',') {
                filler = Some(self.number(cursor, i64::MIN, i64::MAX)?);
            }
            if cursor.eat(",") {
                most = self.count(cursor)?;
            }
        }
        let section = self.sections.current_mut();
        let missing = section.len().next_multiple_of(align) - section.len();
        section.align = section.align.max(align as u64);
        if missing > most {
            return Ok(());
        }
        let is_code = section.flags & EXECUTE != 0;
        let at = section.len();
        let (head, pattern) = match filler {
            // Words of code start at multiples of four; bytes before the first one are zero.
            None if is_code => (missing.min(at.next_multiple_of(4) - at), S_NOP.to_vec()),
            _ => {
                // Whole numbers of the filler's width end at the alignment.
                (missing % width, filler.unwrap_or(0).to_le_bytes()[..width].to_vec())
            }
        };
        let filled =
            self.sections.fill(&[0], head).and_then(|()| self.sections.fill(&pattern, missing - head));
        filled.map_err(|fault| start.fault(fault))
    }

    fn append(&mut self, start: &StatementCursor, bytes: &[u8]) -> Result<(), LineError> {
        self.sections.append(bytes).map_err(|fault| start.fault(fault))
    }
}

/// A comma with something after it, or nothing.
fn comma_or_end(cursor: &mut StatementCursor) -> Result<(), LineError> {
    if cursor.is_at_end() {
        return Ok(());
    }
    cursor.expect(",")?;
    if cursor.is_at_end() { Err(cursor.expected("something after the comma")) } else { Ok(()) }
}
