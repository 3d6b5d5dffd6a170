//! Diagnostics for people, with the lines of the text that they are about.

use std::fmt::Write;
use std::sync::Arc;

use groundswell::diagnostic::{Kind, Location};
use groundswell::internals::excerpt::{self, Excerpt};
use groundswell::prelude::Diagnostic;

use super::terminal::{Style, paint_error};

/// Stands for what is left out.
const LEFT_OUT: char = '…';

/// A text whose lines diagnostics can show.
#[derive(Clone, Debug)]
pub struct NamedText {
    /// Name of the file.
    pub file: Arc<str>,
    /// Its content.
    pub text: Arc<str>,
}

/// The lines of a text that some diagnostics point at.
pub struct SnippetLines<'a> {
    file: &'a str,
    lines: excerpt::Lines<'a>,
}

impl<'a> SnippetLines<'a> {
    /// Finds them in one walk over the text.
    pub fn new(source: &'a NamedText, diagnostics: &[Diagnostic]) -> SnippetLines<'a> {
        let places = diagnostics.iter().flat_map(places);
        let wanted = places.filter(|place| place.file == source.file).map(|place| place.line);
        SnippetLines { file: &source.file, lines: excerpt::Lines::of(&source.text, wanted) }
    }

    fn excerpt(&self, place: &Location) -> Option<Excerpt> {
        let lines = Some(&self.lines).filter(|_| *self.file == *place.file)?;
        lines.excerpt(place.line, place.column)
    }
}

/// All places that a diagnostic names.
fn places(diagnostic: &Diagnostic) -> impl Iterator<Item = &Location> {
    diagnostic.location.iter().chain(diagnostic.notes.iter().filter_map(|(_, place)| place.as_ref()))
}

/// A diagnostic, with the line of each of its places that has one.
pub fn render(diagnostic: &Diagnostic, lines: Option<&SnippetLines>) -> String {
    let kind = match diagnostic.kind {
        Kind::Invalid => "error",
        Kind::Limit => "error: limit exceeded",
        Kind::Unsupported => "error: not supported",
        Kind::Denied => "error: denied by options",
        Kind::Bug => "internal error",
    };
    // Writing to a string cannot fail, here and below.
    let mut out = String::new();
    let _ = writeln!(out, "{}: {}", paint_error(Style::Bad, kind), shortened(&diagnostic.message));
    if let Some(place) = &diagnostic.location {
        show(&mut out, place, lines, 2);
    }
    for (text, place) in &diagnostic.notes {
        let _ = writeln!(out, "  {}: {}", paint_error(Style::Bold, "note"), shortened(text));
        if let Some(place) = place {
            show(&mut out, place, lines, 4);
        }
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(out, "  {}: {help}", paint_error(Style::Good, "help"));
    }
    out
}

/// A place, and below it its line with a mark.
fn show(out: &mut String, place: &Location, lines: Option<&SnippetLines>, indent: usize) {
    let _ = writeln!(out, "{:indent$}{} {place}", "", paint_error(Style::Dim, "-->"));
    let Some(excerpt) = lines.and_then(|lines| lines.excerpt(place)) else { return };
    let number = place.line.to_string();
    let (pad, width, before) = (indent - 1, number.len(), excerpt.before);
    let bar = paint_error(Style::Dim, "|");
    let mark = paint_error(Style::Bad, &"^".repeat(excerpt.marked));
    let _ = writeln!(out, "{:pad$}{:width$} {bar}", "", "");
    let _ = writeln!(out, "{:pad$}{} {bar} {}", "", paint_error(Style::Dim, &number), excerpt.text);
    let _ = writeln!(out, "{:pad$}{:width$} {bar} {:before$}{mark}", "", "", "");
}

/// A message without the middle of parts that are far too long: messages quote their input.
pub fn shortened(message: &str) -> String {
    const HEAD: usize = 500;
    const TAIL: usize = 300;
    let count = message.chars().count();
    if count <= HEAD + TAIL {
        return message.to_owned();
    }
    let head: String = message.chars().take(HEAD).collect();
    let tail: String = message.chars().skip(count - TAIL).collect();
    format!("{head}{LEFT_OUT}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_ends() {
        let message = shortened(&format!("begin {} end", "m".repeat(100_000)));
        assert!(message.starts_with("begin m") && message.ends_with("m end") && message.len() < 1000);
        assert_eq!(shortened("short"), "short");
    }
}
