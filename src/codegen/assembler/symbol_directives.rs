//! Directives about symbols: values, sizes, types, and who sees them.

use super::directives::SymbolDirective;
use super::error::other;
use super::symbols::{Binding, NumberSymbols};
use super::walk::{TextAssembler, end, symbol_name};
use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::cursor::StatementCursor;
use crate::codegen::isa::parse::{Expression, InstructionFault};

impl TextAssembler {
    /// Does what a directive says about symbols.
    pub(super) fn symbol_directive(
        &mut self,
        directive: SymbolDirective,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        match directive {
            SymbolDirective::Global
            | SymbolDirective::Weak
            | SymbolDirective::Local
            | SymbolDirective::Visibility(_) => self.attribute(directive, cursor),
            SymbolDirective::Type => self.symbol_type(cursor),
            SymbolDirective::Size => {
                let name = symbol_name(cursor)?;
                cursor.expect(",")?;
                let expression = self.expression(cursor)?;
                let here = self.sections.here();
                self.symbols.entry(&name, self.source.line).size = Some((expression, here));
                Ok(())
            }
            SymbolDirective::Set | SymbolDirective::SetOnce => {
                let at = *cursor;
                let name = symbol_name(cursor)?;
                cursor.expect(",")?;
                let is_defined = self.symbols.get(&name).is_some_and(|symbol| symbol.definition.is_some());
                if directive == SymbolDirective::SetOnce && is_defined {
                    return Err(at.fault(other(format!("`{name}` is defined already"))));
                }
                self.set(&name, cursor)
            }
        }
    }

    /// Gives a list of symbols a binding or a visibility.
    fn attribute(
        &mut self,
        directive: SymbolDirective,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        loop {
            let name = symbol_name(cursor)?;
            let symbol = self.symbols.entry(&name, self.source.line);
            match directive {
                SymbolDirective::Global => symbol.binding = Binding::Global,
                SymbolDirective::Weak => symbol.binding = Binding::Weak,
                SymbolDirective::Visibility(visibility) => symbol.visibility = visibility,
                _ => symbol.binding = Binding::Local,
            }
            if !cursor.eat(",") {
                return Ok(());
            }
        }
    }

    /// `.type name,@function`
    fn symbol_type(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        const TYPES: [(&str, u8); 6] = [
            ("notype", 0),
            ("object", 1),
            ("function", 2),
            ("STT_NOTYPE", 0),
            ("STT_OBJECT", 1),
            ("STT_FUNC", 2),
        ];
        let name = symbol_name(cursor)?;
        cursor.eat(",");
        if !cursor.eat("@") {
            cursor.eat("%");
        }
        let at = *cursor;
        let word = cursor.take_name().unwrap_or("");
        let found = TYPES.iter().find(|(known, _)| *known == word);
        let (_, kind) = found.ok_or_else(|| at.expected("`@function`, `@object` or `@notype`"))?;
        self.symbols.entry(&name, self.source.line).kind = *kind;
        Ok(())
    }

    /// Gives a symbol a value, or the dot another place.
    pub(super) fn set(&mut self, name: &str, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        // Another place is another value of the dot.
        if name == "." {
            self.origin(cursor)?;
            return end(cursor);
        }
        let expression = self.expression(cursor)?;
        end(cursor)?;
        let here = self.sections.here();
        // An expression that needs addresses stays one: an instruction that mentions it has a literal, as in
        // LLVM.
        let value = match expression.number(&NumberSymbols(&self.symbols)) {
            Ok(number) => Expression::Number(number),
            Err(InstructionFault::Division) => return Err(start.fault(InstructionFault::Division)),
            Err(_) => expression,
        };
        self.symbols.set(name, value, Some(here), self.source.line).map_err(|fault| start.fault(fault))
    }
}
