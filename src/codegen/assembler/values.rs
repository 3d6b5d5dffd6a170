//! The values that statements hold: numbers that are known now, and expressions that become known later, at
//! places that are noted until then.

use super::fixups::{Fixup, FixupKind};
use super::symbols::SymbolPlaces;
use super::walk::TextAssembler;
use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::cursor::StatementCursor;
use crate::codegen::isa::parse::expression::{self, ExpressionPlace};
use crate::codegen::isa::parse::{Expression, InstructionFault, Variant};

impl TextAssembler {
    /// Notes a place that depends on symbols, `ahead` bytes from here.
    pub(super) fn fixup(&mut self, kind: FixupKind, expression: Expression, ahead: usize, column: usize) {
        let here = self.sections.here();
        let offset = self.sections.current().len() + ahead;
        let section = self.sections.index() as usize;
        let column = if self.source.input.expansion().is_some() { 1 } else { column };
        self.fixups.push(Fixup { section, offset, kind, expression, here, line: self.source.line, column });
    }

    /// An expression, which may become known later.
    pub(super) fn expression(&self, cursor: &mut StatementCursor) -> Result<Expression, LineError> {
        let start = *cursor;
        let expression = expression::parse(cursor, ExpressionPlace::Plain)?;
        self.symbols.fix_locals(expression).map_err(|fault| start.fault(fault))
    }

    /// An expression with a symbol that may have a variant.
    pub(super) fn address(
        &self,
        cursor: &mut StatementCursor,
    ) -> Result<(Expression, Option<Variant>), LineError> {
        let start = *cursor;
        let (expression, variant) = expression::parse_address(cursor, ExpressionPlace::Plain)?;
        Ok((self.symbols.fix_locals(expression).map_err(|fault| start.fault(fault))?, variant))
    }

    /// The value of an expression if it is already a number, like differences of places in a section.
    pub(super) fn number_now(&self, expression: &Expression) -> Result<i64, InstructionFault> {
        expression.number(&SymbolPlaces::new(&self.symbols, Some(self.sections.here())))
    }

    /// A number of bytes or of repetitions.
    pub(super) fn count(&mut self, cursor: &mut StatementCursor) -> Result<usize, LineError> {
        Ok(self.number(cursor, 0, i64::MAX)? as usize)
    }

    /// A number that is known now.
    pub(super) fn number(
        &mut self,
        cursor: &mut StatementCursor,
        low: i64,
        high: i64,
    ) -> Result<i64, LineError> {
        let start = *cursor;
        let expression = expression::parse(cursor, ExpressionPlace::Plain)?;
        let found = self.number_now(&expression).map_err(|fault| start.fault(fault))?;
        match (low..=high).contains(&found) {
            true => Ok(found),
            false => Err(start.fault(InstructionFault::Range { what: "the number", low, high, found })),
        }
    }
}
