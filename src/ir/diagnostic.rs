//! What the user is told when a kernel cannot be compiled or run: what is wrong, where, why, and what to do
//! about it.

use std::fmt;
use std::panic::Location as Caller;
use std::sync::Arc;

use super::excerpt::{Excerpt, Lines};
use super::expr::Symbol;

/// A place in the author's source: a Rust file (tracing) or a text kernel (parsing).
#[derive(Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct Location {
    /// File name as the compiler or the reader knows it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl From<&Caller<'_>> for Location {
    fn from(caller: &Caller<'_>) -> Location {
        Location { file: Arc::from(caller.file()), line: caller.line(), column: caller.column() }
    }
}

/// The kind of a fault, which says who has to act.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The kernel or the options are wrong or contradict each other.
    Invalid,
    /// Valid, but more than the target has.
    Limit,
    /// Valid, but not supported.
    Unsupported,
    /// The author's options forbid what the compiler would do.
    Denied,
    /// A broken promise of the compiler itself.
    Bug,
}

/// A text that diagnostics can show lines of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceText {
    /// The name that locations give it.
    pub file: Arc<str>,
    /// Its content.
    pub text: Arc<str>,
}

/// One fault, anchored at the author's source where there is such a place.
///
/// Its `Display` is the fault with its places. Its `Debug`, which is what `unwrap` and a `main` that returns
/// `Result<(), Diagnostic>` print, also shows the lines of a text kernel, and the other faults that were
/// found with it.
#[derive(Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of fault it is.
    pub kind: Kind,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where.
    pub location: Option<Location>,
    /// Why: further places and facts, one sentence each.
    pub notes: Vec<(String, Option<Location>)>,
    /// What the author can do about it.
    pub help: Option<String>,
    /// What few diagnostics have, kept apart so that the others stay small.
    context: Option<Box<FaultContext>>,
}

/// What surrounds a fault.
#[derive(Clone, PartialEq, Eq, Default)]
struct FaultContext {
    source: Option<SourceText>,
    more: Vec<Diagnostic>,
    about: Vec<Symbol>,
}

impl Diagnostic {
    /// A fault of the given kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            kind,
            message: message.into(),
            location: None,
            notes: Vec::new(),
            help: None,
            context: None,
        }
    }

    /// A fault in the kernel or the options.
    pub fn invalid(message: impl Into<String>) -> Diagnostic {
        Self::new(Kind::Invalid, message)
    }

    /// A broken promise of the compiler itself.
    pub fn bug(message: impl Into<String>) -> Diagnostic {
        Self::new(Kind::Bug, message)
    }

    /// The same, anchored.
    pub fn at(mut self, location: Option<Location>) -> Diagnostic {
        self.location = location;
        self
    }

    /// The same, with a further fact.
    pub fn note(mut self, text: impl Into<String>, location: Option<Location>) -> Diagnostic {
        self.notes.push((text.into(), location));
        self
    }

    /// The same, with something that the author can do about it.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// The same, with the text whose lines it may show.
    #[must_use]
    pub fn in_text(mut self, source: &SourceText) -> Diagnostic {
        self.context.get_or_insert_default().source.get_or_insert_with(|| source.clone());
        self
    }

    /// The same, caused by the dimension (or other symbol) `symbol`: its size, its tiles.
    #[must_use]
    pub(crate) fn about(mut self, symbol: Symbol) -> Diagnostic {
        self.context.get_or_insert_default().about.push(symbol);
        self
    }

    /// Dimensions that have caused it.
    pub(crate) fn subjects(&self) -> &[Symbol] {
        self.context.as_ref().map_or(&[], |context| &context.about)
    }

    /// The text that it is about, if it is known.
    pub fn source_text(&self) -> Option<&SourceText> {
        self.context.as_ref().and_then(|context| context.source.as_ref())
    }

    /// Other faults that were found with this one, in the order of the text.
    pub fn more(&self) -> &[Diagnostic] {
        self.context.as_ref().map_or(&[], |context| &context.more)
    }

    /// All places that it names.
    fn places(&self) -> impl Iterator<Item = &Location> {
        self.location.iter().chain(self.notes.iter().filter_map(|(_, place)| place.as_ref()))
    }

    /// One fault. `lead` comes before it, and `lines` are shown below its places if they lie in its text.
    fn write(&self, f: &mut fmt::Formatter<'_>, lead: &str, lines: Option<&Lines>) -> fmt::Result {
        let file = self.source_text().map(|source| &source.file);
        let draw = |f: &mut fmt::Formatter<'_>, at: &Location| match lines.filter(|_| file == Some(&at.file))
        {
            Some(lines) => excerpt(f, lines, at),
            None => Ok(()),
        };
        write!(f, "{lead}{}", self.message)?;
        if let Some(location) = &self.location {
            write!(f, "\n  --> {location}")?;
            draw(f, location)?;
        }
        for (text, location) in &self.notes {
            write!(f, "\n  note: {text}")?;
            if let Some(location) = location {
                write!(f, "\n    --> {location}")?;
                draw(f, location)?;
            }
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// The line of a location, if the text has it, with a mark below the column.
fn excerpt(f: &mut fmt::Formatter<'_>, lines: &Lines, at: &Location) -> fmt::Result {
    let Some(Excerpt { text, before, marked }) = lines.excerpt(at.line, at.column) else { return Ok(()) };
    let width = at.line.to_string().len();
    write!(
        f,
        "\n {:width$} |\n {} | {text}\n {:width$} | {:before$}{}",
        "",
        at.line,
        "",
        "",
        "^".repeat(marked)
    )
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lead = match self.kind {
            Kind::Invalid => "error: ",
            Kind::Limit => "error: limit exceeded: ",
            Kind::Unsupported => "error: not supported: ",
            Kind::Denied => "error: denied by options: ",
            Kind::Bug => "internal error: ",
        };
        self.write(f, lead, None)
    }
}

/// For `unwrap` and for what `main` returns, which print "Error: " before it.
impl fmt::Debug for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lead = |kind| match kind {
            Kind::Invalid => "",
            Kind::Limit => "limit exceeded: ",
            Kind::Unsupported => "not supported: ",
            Kind::Denied => "denied by options: ",
            Kind::Bug => "internal error: ",
        };
        // Faults that are reported together are about one text, whose lines are looked up once.
        let places = self.places().chain(self.more().iter().flat_map(Diagnostic::places));
        let lines = self.source_text().map(|source| {
            let inside = places.filter(|place| place.file == source.file);
            Lines::of(&source.text, inside.map(|place| place.line))
        });
        self.write(f, lead(self.kind), lines.as_ref())?;
        for other in self.more() {
            f.write_str("\n\nError: ")?;
            other.write(f, lead(other.kind), lines.as_ref())?;
        }
        Ok(())
    }
}

/// All faults of a text, at least one, in the order of the text. `?` turns them into one [`Diagnostic`],
/// which shows them all.
#[derive(Clone, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// The faults of the text `text`, which locations call `file`.
    pub(crate) fn of_text(faults: Vec<Diagnostic>, file: &str, text: &str) -> Diagnostics {
        let source = SourceText { file: file.into(), text: text.into() };
        let faults = match faults.is_empty() {
            false => faults,
            true => vec![Diagnostic::new(Kind::Bug, "a text was refused without a reason")],
        };
        Diagnostics(faults.into_iter().map(|fault| fault.in_text(&source)).collect())
    }
}

impl std::ops::Deref for Diagnostics {
    type Target = [Diagnostic];
    fn deref(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl From<Diagnostics> for Diagnostic {
    fn from(all: Diagnostics) -> Diagnostic {
        let mut faults = all.0.into_iter();
        // There is at least one.
        let mut first = faults.next().unwrap_or_else(|| Diagnostic::new(Kind::Bug, "no fault"));
        if faults.len() > 0 {
            first.context.get_or_insert_default().more.extend(faults);
        }
        first
    }
}

/// One after the other, with a blank line between them.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if at == 0 { "" } else { "\n\n" })?;
        }
        Ok(())
    }
}

/// As the one [`Diagnostic`] that `?` makes of them.
impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Diagnostic::from(self.clone()), f)
    }
}

impl std::error::Error for Diagnostics {}

impl std::error::Error for Diagnostic {}
