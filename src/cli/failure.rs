//! Failures: why a verb could not do its work, for people and for scripts.

use groundswell::diagnostic::{Kind, Location};
use groundswell::prelude::Diagnostic;
use serde_json::{Value, json};

use super::exit::Exit;
use super::snippet::{self, NamedText, SnippetLines, shortened};

/// Why a verb could not do its work.
#[derive(Debug)]
pub struct Failure {
    diagnostics: Vec<Diagnostic>,
    source: Option<NamedText>,
    exit: Exit,
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Failure {
        Failure { exit: diagnostic.kind.into(), diagnostics: vec![diagnostic], source: None }
    }
}

impl Failure {
    /// Diagnostics about a text.
    pub fn of_source(diagnostics: impl IntoIterator<Item = Diagnostic>, source: NamedText) -> Failure {
        let diagnostics: Vec<Diagnostic> = diagnostics.into_iter().collect();
        let exit = diagnostics.first().map_or(Exit::Failed, |first| first.kind.into());
        Failure { diagnostics, source: Some(source), exit }
    }

    /// Arguments that make no sense, in clap's words.
    pub fn arguments(text: &str) -> Failure {
        let text = text.trim();
        Failure::usage(Diagnostic::invalid(text.strip_prefix("error: ").unwrap_or(text)))
    }

    /// Arguments that make no sense.
    pub fn usage(diagnostic: Diagnostic) -> Failure {
        Failure { exit: Exit::Usage, ..diagnostic.into() }
    }

    /// A file that cannot be read, or is not what it should be.
    pub fn file(action: &str, path: &std::path::Path, error: &dyn std::fmt::Display) -> Failure {
        Diagnostic::invalid(format!("cannot {action} {}: {error}", path.display())).into()
    }

    /// A file that cannot be written.
    pub fn unwritable(name: &dyn std::fmt::Display, error: &dyn std::fmt::Display) -> Failure {
        let diagnostic = Diagnostic::invalid(format!("cannot write {name}: {error}"));
        Failure { exit: Exit::Cannot, ..diagnostic.into() }
    }

    /// The same, showing lines of a text where they are known.
    pub fn with_source(mut self, source: Option<&NamedText>) -> Failure {
        self.source = self.source.or_else(|| source.cloned());
        self
    }

    /// The same, with something that the user can do about it.
    pub fn help(mut self, text: &str) -> Failure {
        if let Some(first) = self.diagnostics.first_mut() {
            first.help = Some(text.to_owned());
        }
        self
    }

    /// The same of one of several kernels.
    pub fn of_kernel(mut self, name: &str) -> Failure {
        if let Some(first) = self.diagnostics.first_mut() {
            first.notes.push((format!("this is about the kernel {name}"), None));
        }
        self
    }

    /// The exit code of the program.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// For people.
    pub fn render(&self) -> String {
        let lines = self.source.as_ref().map(|source| SnippetLines::new(source, &self.diagnostics));
        self.diagnostics.iter().map(|diagnostic| snippet::render(diagnostic, lines.as_ref())).collect()
    }

    /// For scripts: the first fault, and all of them.
    pub fn json(&self) -> Value {
        let all: Vec<Value> = self.diagnostics.iter().map(|diagnostic| self.fault(diagnostic)).collect();
        let mut first = all.first().cloned().unwrap_or_else(|| json!({ "message": "unknown" }));
        if all.len() > 1
            && let Some(first) = first.as_object_mut()
        {
            first.insert("all".to_string(), Value::Array(all));
        }
        json!({ "error": first })
    }

    fn fault(&self, diagnostic: &Diagnostic) -> Value {
        let place = |location: &Option<Location>| {
            location.as_ref().map(|l| json!({ "file": &*l.file, "line": l.line, "column": l.column }))
        };
        let notes: Vec<Value> = diagnostic
            .notes
            .iter()
            .map(|(text, location)| json!({ "message": shortened(text), "location": place(location) }))
            .collect();
        let kind = match self.exit {
            Exit::Usage => "usage",
            _ => kind_name(diagnostic.kind),
        };
        json!({
            "kind": kind,
            "message": shortened(&diagnostic.message),
            "location": place(&diagnostic.location),
            "notes": notes,
            "help": diagnostic.help,
        })
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid => "invalid",
        Kind::Limit => "limit",
        Kind::Unsupported => "unsupported",
        Kind::Denied => "denied",
        Kind::Bug => "bug",
    }
}
