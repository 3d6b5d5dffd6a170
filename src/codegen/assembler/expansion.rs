//! Directives that decide which lines are read, and how often: conditions, macros, repetitions.

use super::conditions::{ConditionDirective, Test};
use super::directives::{MessageKind, RepeatedFor};
use super::error::other;
use super::input::{MOST_EXPANDED, TextExpansion};
use super::macros::{self, Counting, Macro, MacroSyntax, ReadNumber};
use super::strings;
use super::walk::{Note, TextAssembler, end, symbol_name};
use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::cursor::StatementCursor;

impl TextAssembler {
    /// `.if` and its kind.
    pub(super) fn condition(
        &mut self,
        directive: ConditionDirective,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        let at = |fault| start.fault(fault);
        match directive {
            ConditionDirective::If(_) if self.source.conditions.are_ignoring() => {
                return self.source.conditions.begin(false).map_err(at);
            }
            ConditionDirective::If(test) => {
                let answer = self.test(test, cursor);
                // It is open in any case, or its end would be another fault.
                self.source.conditions.begin(*answer.as_ref().unwrap_or(&false)).map_err(at)?;
                answer?;
            }
            ConditionDirective::ElseIf => {
                if !self.source.conditions.asks_again().map_err(at)? {
                    self.source.conditions.else_if_not_asked();
                    return Ok(());
                }
                let answer = self.test(Test::Number(|number| number != 0), cursor);
                self.source.conditions.else_if(*answer.as_ref().unwrap_or(&false));
                answer?;
            }
            ConditionDirective::Else => self.source.conditions.otherwise().map_err(at)?,
            ConditionDirective::EndIf => self.source.conditions.end().map_err(at)?,
        }
        end(cursor)
    }

    fn test(&mut self, test: Test, cursor: &mut StatementCursor) -> Result<bool, LineError> {
        Ok(match test {
            Test::Number(holds) => holds(self.number(cursor, i64::MIN, i64::MAX)?),
            Test::Blank(wanted) => {
                let is_blank = cursor.is_at_end();
                cursor.advance(cursor.rest().len());
                wanted.is(is_blank)
            }
            Test::SameText(wanted) => {
                let rest = cursor.rest();
                let comma =
                    comma_outside_quotes(rest).ok_or_else(|| cursor.expected("two texts with a comma"))?;
                cursor.advance(rest.len());
                wanted.is(rest[..comma].trim() == rest[comma + 1..].trim())
            }
            Test::SameString(wanted) => {
                let first = strings::parse(cursor)?;
                cursor.expect(",")?;
                wanted.is(first == strings::parse(cursor)?)
            }
            Test::Defined(wanted) => {
                let name = symbol_name(cursor)?;
                wanted.is(self.symbols.get(&name).is_some_and(|symbol| symbol.definition.is_some()))
            }
        })
    }

    /// `.macro name a b` up to `.endm`.
    pub(super) fn define(
        &mut self,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        let header = macros::header(cursor);
        // The body belongs to it even if its parameters are wrong.
        let body = self.body(&[".macro"], &[".endm", ".endmacro"]);
        let (name, parameters) = header?;
        let body = body.ok_or_else(|| start.fault(other("`.macro` without `.endm`")))?;
        if self.macros.known.contains_key(&*name) {
            return Err(start.fault(other(format!("macro `{name}` is defined already"))));
        }
        self.macros.known.insert(name.to_string(), Macro { name, parameters, body: body.into() });
        Ok(())
    }

    /// The lines up to one that begins with a word that closes, with what is opened in between; none if there
    /// is no such line.
    fn body(&mut self, opening: &[&str], closing: &[&str]) -> Option<String> {
        let (mut body, mut depth) = (String::new(), 0u32);
        while let Some(line) = self.source.input.next_inside() {
            let line = self.source.comments.strip(line.as_str());
            match StatementCursor::new(&line).name() {
                Some(name) if opening.contains(&name) => depth += 1,
                Some(name) if closing.contains(&name) && depth == 0 => return Some(body),
                Some(name) if closing.contains(&name) => depth -= 1,
                _ => {}
            }
            body.push_str(&line);
            body.push('\n');
        }
        None
    }

    /// Reads numbers among arguments, while macros are written in the way that has them.
    fn alternate(&self) -> Option<Box<ReadNumber<'_>>> {
        let read = |cursor: &mut StatementCursor| {
            let start = *cursor;
            let expression = self.expression(cursor)?;
            self.number_now(&expression).map_err(|fault| start.fault(fault))
        };
        (self.macros.syntax == MacroSyntax::Alternate).then(|| Box::new(read) as Box<ReadNumber>)
    }

    /// Goes on with the lines of a macro.
    pub(super) fn call(&mut self, called: &Macro, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        let values = called.arguments(cursor, self.alternate().as_deref())?;
        let names = called.parameters.iter().map(|parameter| parameter.name.as_str());
        let mut text = String::with_capacity(called.body.len());
        let pairs = names.zip(values.iter().map(String::as_str));
        let how = (self.macros.syntax, Counting::By(self.macros.expanded));
        macros::expand(&mut text, &called.body, pairs, how).map_err(|fault| start.fault(fault))?;
        self.macros.expanded += 1;
        let expansion = TextExpansion {
            name: called.name.clone(),
            conditions: self.source.conditions.open(),
            is_macro: true,
        };
        self.source.input.enter(text, expansion).map_err(|fault| start.fault(fault))
    }

    /// `.purgem name, name`
    pub(super) fn purge(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        loop {
            let start = *cursor;
            let name = symbol_name(cursor)?;
            if self.macros.known.remove(&name).is_none() {
                return Err(start.fault(other(format!("no macro is called `{name}`"))));
            }
            if !cursor.eat(",") {
                return Ok(());
            }
        }
    }

    /// `.exitm`
    pub(super) fn exit(&mut self, start: &StatementCursor) -> Result<(), LineError> {
        let left = self.source.input.leave_macro();
        let conditions = left.ok_or_else(|| start.fault(other("`.exitm` outside of a macro")))?;
        self.source.conditions.close_to(conditions);
        Ok(())
    }

    /// `.rept 4`, `.irp r, a, b`, `.irpc c, abc` up to `.endr`.
    pub(super) fn repeat(
        &mut self,
        name: &str,
        what: RepeatedFor,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        let header = self.repetition(what, cursor);
        let body = self.body(&[".rept", ".rep", ".irp", ".irpc"], &[".endr"]);
        let (parameter, values) = header?;
        let body = body.ok_or_else(|| start.fault(other(format!("`{name}` without `.endr`"))))?;
        let mut text = String::new();
        let at = |fault| start.fault(fault);
        match values {
            RepeatedValues::Count(count) => {
                if body.len().checked_mul(count).is_none_or(|bytes| bytes > MOST_EXPANDED) {
                    let most = MOST_EXPANDED >> 20;
                    return Err(start.fault(other(format!("an expansion has more than {most} MiB"))));
                }
                for _ in 0..count {
                    let how = (self.macros.syntax, Counting::Not);
                    macros::expand(&mut text, &body, [].into_iter(), how).map_err(at)?;
                }
            }
            RepeatedValues::Each(values) => {
                for value in &values {
                    let pair = [(parameter.as_str(), value.as_str())];
                    let how = (self.macros.syntax, Counting::By(self.macros.expanded));
                    macros::expand(&mut text, &body, pair.into_iter(), how).map_err(at)?;
                }
            }
        }
        let expansion =
            TextExpansion { name: name.into(), conditions: self.source.conditions.open(), is_macro: false };
        self.source.input.enter(text, expansion).map_err(at)
    }

    /// The parameter of a repetition, and its values.
    fn repetition(
        &mut self,
        what: RepeatedFor,
        cursor: &mut StatementCursor,
    ) -> Result<(String, RepeatedValues), LineError> {
        if what == RepeatedFor::Count {
            let count = self.number(cursor, 0, i64::from(i32::MAX))?;
            end(cursor)?;
            return Ok((String::new(), RepeatedValues::Count(count as usize)));
        }
        let parameter = symbol_name(cursor)?;
        cursor.expect(",")?;
        let start = *cursor;
        let values = macros::values(cursor, self.alternate().as_deref())?;
        let values = match (what, &*values) {
            (RepeatedFor::Characters, [word]) => word.chars().map(String::from).collect(),
            (RepeatedFor::Characters, _) => return Err(start.expected("one word")),
            _ => values,
        };
        Ok((parameter, RepeatedValues::Each(values)))
    }

    /// `.error "text"`, `.warning "text"`
    pub(super) fn message(
        &mut self,
        name: &str,
        kind: MessageKind,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        let said = match cursor.is_at_end() || name == ".err" {
            true => format!("`{name}`"),
            false => String::from_utf8_lossy(&strings::parse(cursor)?).into_owned(),
        };
        match kind {
            MessageKind::Error => Err(start.fault(other(said))),
            MessageKind::Remark => {
                self.notes.push(Note { line: self.source.line, message: said });
                end(cursor)
            }
        }
    }
}

/// What lines are repeated for.
enum RepeatedValues {
    Count(usize),
    Each(Vec<String>),
}

fn comma_outside_quotes(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.bytes().position(|byte| {
        is_quoted ^= byte == b'"';
        byte == b',' && !is_quoted
    })
}
