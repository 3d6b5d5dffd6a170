//! Failures: diagnostics with the lines of the text that they are about, for people and for scripts.

use std::sync::Arc;

use groundswell::ir::diagnostic::{Kind, Location};
use groundswell::prelude::Diagnostic;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity, SourceOffset};
use serde_json::{Value, json};

use super::terminal;

/// A text kernel that diagnostics can show lines of.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the file.
    pub file: Arc<str>,
    /// What is in it.
    pub text: Arc<str>,
}

/// Why a verb could not do its work.
#[derive(Debug)]
pub struct Failure {
    diagnostics: Vec<Diagnostic>,
    source: Option<Source>,
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Failure {
        Failure { diagnostics: vec![diagnostic], source: None }
    }
}

impl Failure {
    /// Diagnostics about a text.
    pub fn of_source(diagnostics: impl IntoIterator<Item = Diagnostic>, source: Source) -> Failure {
        Failure { diagnostics: diagnostics.into_iter().collect(), source: Some(source) }
    }

    /// Arguments that make no sense, as clap says it.
    pub fn arguments(text: &str) -> Failure {
        let text = text.trim();
        Diagnostic::invalid(text.strip_prefix("error: ").unwrap_or(text)).into()
    }

    /// Something that a later version will do.
    pub fn not_yet(what: &str, help: &str) -> Failure {
        Diagnostic::new(Kind::Unsupported, format!("{what} is not available yet")).help(help).into()
    }

    /// A file that cannot be read or written.
    pub fn file(action: &str, path: &std::path::Path, error: &dyn std::fmt::Display) -> Failure {
        Diagnostic::invalid(format!("cannot {action} {}: {error}", path.display())).into()
    }

    /// The same, showing lines of a text where they are known.
    pub fn with_source(mut self, source: Option<&Source>) -> Failure {
        self.source = self.source.or_else(|| source.cloned());
        self
    }

    /// For people.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for diagnostic in &self.diagnostics {
            match &self.source {
                // What is blamed elsewhere, such as in a table, is told whole, with all places.
                Some(source)
                    if diagnostic.location.as_ref().is_none_or(|l| l.file == source.file)
                        && labels(diagnostic, source).next().is_some() =>
                {
                    let theme = match terminal::colours_on_stderr() {
                        true => GraphicalTheme::unicode(),
                        false => GraphicalTheme::unicode_nocolor(),
                    };
                    let shown = Shown { diagnostic, source, named: named(source) };
                    let handler = GraphicalReportHandler::new_themed(theme).with_links(false);
                    if handler.render_report(&mut out, &shown).is_err() {
                        out.push_str(&diagnostic.to_string());
                    }
                }
                _ => out.push_str(&diagnostic.to_string()),
            }
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
        out
    }

    /// For scripts: the first fault, and all of them.
    pub fn json(&self) -> Value {
        let all: Vec<Value> = self.diagnostics.iter().map(fault).collect();
        let mut first = all.first().cloned().unwrap_or_else(|| json!({ "message": "unknown" }));
        if all.len() > 1
            && let Some(first) = first.as_object_mut()
        {
            first.insert("all".to_string(), Value::Array(all));
        }
        json!({ "error": first })
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

fn fault(diagnostic: &Diagnostic) -> Value {
    let place = |location: &Option<Location>| {
        location.as_ref().map(|l| json!({ "file": &*l.file, "line": l.line, "column": l.column }))
    };
    let notes: Vec<Value> = diagnostic
        .notes
        .iter()
        .map(|(text, location)| json!({ "message": text, "location": place(location) }))
        .collect();
    json!({
        "kind": kind_name(diagnostic.kind),
        "message": diagnostic.message,
        "location": place(&diagnostic.location),
        "notes": notes,
        "help": diagnostic.help,
    })
}

fn named(source: &Source) -> NamedSource<String> {
    NamedSource::new(&*source.file, source.text.to_string())
}

/// Places of a diagnostic that lie in the text, with what is said about each.
fn labels<'a>(diagnostic: &'a Diagnostic, source: &'a Source) -> impl Iterator<Item = LabeledSpan> + 'a {
    let first = diagnostic.location.iter().map(|l| ("here", l));
    let notes = diagnostic.notes.iter().filter_map(|(text, l)| l.as_ref().map(|l| (text.as_str(), l)));
    first.chain(notes).filter(|(_, l)| l.file == source.file).map(|(text, l)| {
        let offset = SourceOffset::from_location(&*source.text, l.line as usize, l.column as usize);
        let rest = source.text.get(offset.offset()..).unwrap_or_default();
        let length = rest.find(|c: char| !c.is_alphanumeric() && !"_%@".contains(c)).unwrap_or(rest.len());
        LabeledSpan::at(offset.offset()..offset.offset() + length, text)
    })
}

/// A diagnostic as miette wants it.
#[derive(Debug)]
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    source: &'a Source,
    named: NamedSource<String>,
}

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.diagnostic.message)?;
        let elsewhere = |l: &Option<Location>| l.as_ref().is_none_or(|l| l.file != self.source.file);
        for (text, _) in self.diagnostic.notes.iter().filter(|(_, l)| elsewhere(l)) {
            write!(f, "; {text}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

    fn help<'b>(&'b self) -> Option<Box<dyn std::fmt::Display + 'b>> {
        self.diagnostic.help.as_ref().map(|help| Box::new(help) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.named)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(labels(self.diagnostic, self.source)))
    }
}
