//! Where the next line comes from: the text, what a macro or a repetition has become, or another file.

use std::ops::Range;
use std::rc::Rc;

use super::error::other;
use crate::codegen::isa::parse::InstructionFault;

/// Texts inside each other: the innermost one is read to its end first.
#[derive(Debug)]
pub(super) struct SourceInput {
    /// The first is the whole text.
    open: Vec<OpenText>,
    /// Bytes of all expansions so far.
    expanded: usize,
}

#[derive(Debug)]
struct OpenText {
    text: Rc<str>,
    at: usize,
    /// Number of the last line that was read.
    line: usize,
    expansion: Option<TextExpansion>,
}

/// What an inner text has come from.
#[derive(Clone, Debug)]
pub(super) struct TextExpansion {
    /// The macro, the directive that repeats, or the file.
    pub name: Rc<str>,
    /// Conditions that were open before it.
    pub conditions: usize,
    /// True for a macro, which can be left early.
    pub is_macro: bool,
}

/// A line, which stays while the input goes on.
#[derive(Clone, Debug)]
pub(super) struct InputLine {
    text: Rc<str>,
    range: Range<usize>,
}

impl InputLine {
    pub(super) fn as_str(&self) -> &str {
        &self.text[self.range.clone()]
    }
}

/// Macros inside macros (LLVM, `-asm-macro-max-nesting-depth`).
const MOST_MACROS: usize = 20;
/// Macros, repetitions and files inside each other.
const MOST_OPEN: usize = 100;
/// Bytes of all expansions: a text of a few lines could ask for any number.
pub(super) const MOST_EXPANDED: usize = 1 << 28;

impl SourceInput {
    pub(super) fn new(text: &str) -> SourceInput {
        SourceInput {
            open: vec![OpenText { text: text.into(), at: 0, line: 0, expansion: None }],
            expanded: 0,
        }
    }

    /// The next line, from outside of an expansion that has ended if need be.
    pub(super) fn next(&mut self) -> Option<InputLine> {
        while self.open.len() > 1 {
            if let Some(line) = self.next_inside() {
                return Some(line);
            }
            self.open.pop();
        }
        self.next_inside()
    }

    /// The next line of the innermost text.
    pub(super) fn next_inside(&mut self) -> Option<InputLine> {
        let text = self.open.last_mut()?;
        let rest = &text.text[text.at..];
        if rest.is_empty() {
            return None;
        }
        let length = rest.find('\n').unwrap_or(rest.len());
        let range = text.at..text.at + rest[..length].trim_end_matches('\r').len();
        text.at += (length + 1).min(rest.len());
        text.line += 1;
        Some(InputLine { text: text.text.clone(), range })
    }

    /// Number of the line of the whole text that is being read or expanded.
    pub(super) fn line(&self) -> usize {
        self.open.first().map_or(0, |text| text.line)
    }

    /// What the innermost text has come from, unless it is the whole text.
    pub(super) fn expansion(&self) -> Option<&TextExpansion> {
        self.open.last()?.expansion.as_ref()
    }

    /// Goes on with the lines of an expansion.
    pub(super) fn enter(&mut self, text: String, expansion: TextExpansion) -> Result<(), InstructionFault> {
        let expansions = self.open.iter().filter_map(|text| text.expansion.as_ref());
        let macros = expansions.filter(|expansion| expansion.is_macro).count();
        if expansion.is_macro && macros == MOST_MACROS {
            return Err(other(format!("macros cannot be nested more than {MOST_MACROS} levels deep")));
        }
        if self.open.len() == MOST_OPEN {
            let what = "macros, repetitions and files";
            return Err(other(format!("{what} cannot be nested more than {MOST_OPEN} levels deep")));
        }
        self.expanded = self.expanded.saturating_add(text.len());
        if self.expanded > MOST_EXPANDED {
            return Err(other(format!("all expansions have more than {} MiB", MOST_EXPANDED >> 20)));
        }
        self.open.push(OpenText { text: text.into(), at: 0, line: 0, expansion: Some(expansion) });
        Ok(())
    }

    /// Leaves the innermost macro and everything in it; returns how many conditions were open before.
    pub(super) fn leave_macro(&mut self) -> Option<usize> {
        let is_macro = |text: &OpenText| text.expansion.as_ref().is_some_and(|expansion| expansion.is_macro);
        let innermost = self.open.iter().rposition(is_macro)?;
        let left = self.open.drain(innermost..).next()?;
        left.expansion.map(|expansion| expansion.conditions)
    }
}
