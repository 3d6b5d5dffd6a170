//! What the user is told when a kernel cannot be compiled or run: what is wrong, where, why, and a way out.

use std::fmt;

/// A place in the author's source: a Rust file (tracing) or a text kernel (parsing).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// File name as the compiler or the reader knows it.
    pub file: std::sync::Arc<str>,
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

/// Whose turn it is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The kernel or the options are wrong or contradict each other.
    Invalid,
    /// Right, but more than the target has.
    Limit,
    /// Right, but not supported.
    Unsupported,
    /// The author's options refuse what the compiler would do.
    Denied,
    /// A broken promise of the compiler itself.
    Bug,
}

/// One fault, anchored at the author's source where there is such a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Whose turn it is.
    pub kind: Kind,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where.
    pub location: Option<Location>,
    /// Why: further places and facts, one sentence each.
    pub notes: Vec<(String, Option<Location>)>,
    /// A way out.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A fault of the given kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Diagnostic {
        Diagnostic { kind, message: message.into(), location: None, notes: Vec::new(), help: None }
    }

    /// A fault in the kernel or the options.
    pub fn invalid(message: impl Into<String>) -> Diagnostic {
        Self::new(Kind::Invalid, message)
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

    /// The same, with a way out.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Invalid => "error",
            Kind::Limit => "error: limit exceeded",
            Kind::Unsupported => "error: not supported",
            Kind::Denied => "error: denied by options",
            Kind::Bug => "internal error",
        };
        write!(f, "{kind}: {}", self.message)?;
        if let Some(location) = &self.location {
            write!(f, "\n  --> {location}")?;
        }
        for (text, location) in &self.notes {
            write!(f, "\n  note: {text}")?;
            if let Some(location) = location {
                write!(f, "\n    --> {location}")?;
            }
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}
