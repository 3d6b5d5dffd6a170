//! `.if` and its kind: which lines count.

use super::error::other;
use crate::codegen::isa::parse::InstructionFault;

/// A directive that decides about lines.
#[derive(Copy, Clone, Debug)]
pub(super) enum ConditionDirective {
    If(Test),
    ElseIf,
    Else,
    EndIf,
}

/// What a condition asks.
#[derive(Copy, Clone, Debug)]
pub(super) enum Test {
    /// Whether a number compares so with zero.
    Number(fn(i64) -> bool),
    /// Whether there is no text.
    Blank(WantedAnswer),
    /// Whether two texts are the same.
    SameText(WantedAnswer),
    /// Whether two strings in quotes are the same.
    SameString(WantedAnswer),
    /// Whether a symbol is defined.
    Defined(WantedAnswer),
}

/// The answer that a condition wants.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum WantedAnswer {
    Yes,
    No,
}

impl WantedAnswer {
    /// True if this is the answer.
    pub(super) fn is(self, answer: bool) -> bool {
        (self == WantedAnswer::Yes) == answer
    }
}

/// The directives by name (LLVM, AsmParser's `parseDirectiveIf` and its like).
const NAMES: [(&str, ConditionDirective); 19] = [
    (".if", ConditionDirective::If(Test::Number(|number| number != 0))),
    (".ifne", ConditionDirective::If(Test::Number(|number| number != 0))),
    (".ifeq", ConditionDirective::If(Test::Number(|number| number == 0))),
    (".ifge", ConditionDirective::If(Test::Number(|number| number >= 0))),
    (".ifgt", ConditionDirective::If(Test::Number(|number| number > 0))),
    (".ifle", ConditionDirective::If(Test::Number(|number| number <= 0))),
    (".iflt", ConditionDirective::If(Test::Number(|number| number < 0))),
    (".ifb", ConditionDirective::If(Test::Blank(WantedAnswer::Yes))),
    (".ifnb", ConditionDirective::If(Test::Blank(WantedAnswer::No))),
    (".ifc", ConditionDirective::If(Test::SameText(WantedAnswer::Yes))),
    (".ifnc", ConditionDirective::If(Test::SameText(WantedAnswer::No))),
    (".ifeqs", ConditionDirective::If(Test::SameString(WantedAnswer::Yes))),
    (".ifnes", ConditionDirective::If(Test::SameString(WantedAnswer::No))),
    (".ifdef", ConditionDirective::If(Test::Defined(WantedAnswer::Yes))),
    (".ifndef", ConditionDirective::If(Test::Defined(WantedAnswer::No))),
    (".ifnotdef", ConditionDirective::If(Test::Defined(WantedAnswer::No))),
    (".elseif", ConditionDirective::ElseIf),
    (".else", ConditionDirective::Else),
    (".endif", ConditionDirective::EndIf),
];

/// The directive of that name.
pub(super) fn find(name: &str) -> Option<ConditionDirective> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, directive)| *directive)
}

/// Conditions inside each other.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    open: Vec<OpenCondition>,
}

#[derive(Debug)]
struct OpenCondition {
    /// Lines around it do not count, so none of its own do.
    is_outside_ignored: bool,
    /// One of its parts was taken.
    is_met: bool,
    /// The lines of the current part do not count.
    is_ignored: bool,
    has_else: bool,
}

/// The most conditions inside each other.
const MOST_OPEN: usize = 10_000;

impl Conditions {
    /// True where lines do not count.
    pub(super) fn are_ignoring(&self) -> bool {
        self.open.last().is_some_and(|condition| condition.is_ignored)
    }

    /// How many are open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Closes those that were opened after there were so many.
    pub(super) fn close_to(&mut self, count: usize) {
        self.open.truncate(count);
    }

    /// Opens one; where lines do not count, the answer has no meaning.
    pub(super) fn begin(&mut self, answer: bool) -> Result<(), InstructionFault> {
        if self.open.len() == MOST_OPEN {
            return Err(other(format!("conditions nest {MOST_OPEN} deep at most")));
        }
        let is_outside_ignored = self.are_ignoring();
        let is_ignored = is_outside_ignored || !answer;
        self.open.push(OpenCondition { is_outside_ignored, is_met: answer, is_ignored, has_else: false });
        Ok(())
    }

    /// At `.elseif`: whether its own question counts.
    pub(super) fn asks_again(&self) -> Result<bool, InstructionFault> {
        match self.open.last() {
            Some(condition) if !condition.has_else => Ok(!condition.is_outside_ignored && !condition.is_met),
            _ => Err(other("`.elseif` without `.if`")),
        }
    }

    /// Goes on with the part after an `.elseif` whose question does not count.
    pub(super) fn else_if_not_asked(&mut self) {
        if let Some(condition) = self.open.last_mut() {
            condition.is_ignored = true;
        }
    }

    /// Goes on with the part after `.elseif`.
    pub(super) fn else_if(&mut self, answer: bool) {
        if let Some(condition) = self.open.last_mut() {
            condition.is_ignored = !answer;
            condition.is_met |= answer;
        }
    }

    /// `.else`
    pub(super) fn otherwise(&mut self) -> Result<(), InstructionFault> {
        match self.open.last_mut() {
            Some(condition) if !condition.has_else => {
                condition.has_else = true;
                condition.is_ignored = condition.is_outside_ignored || condition.is_met;
                Ok(())
            }
            _ => Err(other("`.else` without `.if`")),
        }
    }

    /// `.endif`
    pub(super) fn end(&mut self) -> Result<(), InstructionFault> {
        self.open.pop().map(drop).ok_or_else(|| other("`.endif` without `.if`"))
    }
}
