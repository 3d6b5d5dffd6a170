//! Diagnostics for people, with the lines of the text that they are about.

use std::collections::BTreeMap;
use std::fmt::Write;

use groundswell::ir::diagnostic::{Kind, Location};
use groundswell::prelude::Diagnostic;

use super::failure::Source;
use super::terminal::{Style, paint_error};

/// Columns of a line that are shown, the marks of what is left out included.
const MOST_COLUMNS: usize = 200;

/// Columns before the one that is at fault, if the line is longer than what is shown.
const COLUMNS_BEFORE: usize = 80;

/// Characters that are underlined at most.
const LONGEST_MARK: usize = 40;

/// Stands for what is left out.
const LEFT_OUT: char = '…';

/// The lines of a text that some diagnostics point at.
pub struct Lines<'a> {
    file: &'a str,
    lines: BTreeMap<usize, &'a str>,
}

impl<'a> Lines<'a> {
    /// Finds them in one walk over the text.
    pub fn new(source: &'a Source, diagnostics: &[Diagnostic]) -> Lines<'a> {
        let places = diagnostics.iter().flat_map(places);
        let wanted = places.filter(|place| place.file == source.file).map(|place| place.line as usize);
        let mut lines: BTreeMap<usize, &str> = wanted.map(|line| (line, "")).collect();
        let last = lines.last_key_value().map_or(0, |(&last, _)| last);
        for (index, line) in source.text.lines().take(last).enumerate() {
            if let Some(found) = lines.get_mut(&(index + 1)) {
                *found = line;
            }
        }
        Lines { file: &source.file, lines }
    }

    fn line(&self, place: &Location) -> Option<&'a str> {
        let line = self.lines.get(&(place.line as usize)).filter(|_| *self.file == *place.file);
        line.copied().filter(|line| !line.is_empty())
    }
}

/// All places that a diagnostic names.
fn places(diagnostic: &Diagnostic) -> impl Iterator<Item = &Location> {
    diagnostic.location.iter().chain(diagnostic.notes.iter().filter_map(|(_, place)| place.as_ref()))
}

/// A diagnostic, each of its places with its line where there is one.
pub fn render(diagnostic: &Diagnostic, lines: Option<&Lines>) -> String {
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
fn show(out: &mut String, place: &Location, lines: Option<&Lines>, indent: usize) {
    let _ = writeln!(out, "{:indent$}{} {place}", "", paint_error(Style::Dim, "-->"));
    let Some(line) = lines.and_then(|lines| lines.line(place)) else { return };
    let window = Window::of(line, place.column as usize);
    let number = place.line.to_string();
    let (pad, width, before) = (indent - 1, number.len(), window.before);
    let bar = paint_error(Style::Dim, "|");
    let mark = paint_error(Style::Bad, &"^".repeat(window.marked));
    let _ = writeln!(out, "{:pad$}{:width$} {bar}", "", "");
    let _ = writeln!(out, "{:pad$}{} {bar} {}", "", paint_error(Style::Dim, &number), window.text);
    let _ = writeln!(out, "{:pad$}{:width$} {bar} {:before$}{mark}", "", "", "");
}

/// The part of a line that is shown.
#[derive(PartialEq, Eq, Debug)]
struct Window {
    text: String,
    /// Characters before what is marked.
    before: usize,
    marked: usize,
}

impl Window {
    /// The part around a column, counted from 1.
    fn of(line: &str, column: usize) -> Window {
        let at = column.saturating_sub(1);
        let is_longer = line.chars().nth(MOST_COLUMNS).is_some();
        let first = if is_longer { at.saturating_sub(COLUMNS_BEFORE) } else { 0 };
        let mut rest = line.chars().skip(first);
        // Control characters would move the mark, or the terminal's cursor.
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let mut text = String::new();
        if first > 0 {
            text.push(LEFT_OUT);
            rest.next();
        }
        let room = if is_longer { MOST_COLUMNS - 1 - usize::from(first > 0) } else { MOST_COLUMNS };
        text.extend(rest.by_ref().take(room).map(shown));
        match (rest.next(), rest.next()) {
            (Some(_), Some(_)) => text.push(LEFT_OUT),
            (Some(last), None) => text.push(shown(last)),
            _ => {}
        }
        let before = (at - first).min(text.chars().count());
        let is_word = |c: &char| c.is_alphanumeric() || "_%@".contains(*c);
        let word = text.chars().skip(before).take_while(is_word).count();
        Window { text, before, marked: word.clamp(1, LONGEST_MARK) }
    }
}

/// A message without the middle of what is far too long: messages quote what was read.
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
    fn a_short_line_is_shown_whole() {
        let window = Window::of("\tv_mov_b32 v0", 2);
        assert_eq!(window, Window { text: " v_mov_b32 v0".to_owned(), before: 1, marked: 9 });
        assert_eq!(Window::of("x", 9), Window { text: "x".to_owned(), before: 1, marked: 1 });
    }

    #[test]
    fn a_long_line_is_shown_around_the_column() {
        let line = format!("{}wrong{}", "é ".repeat(5000), "x ".repeat(5000));
        let window = Window::of(&line, 10_001);
        assert_eq!(window.text.chars().count(), MOST_COLUMNS);
        let marked: String = window.text.chars().skip(window.before).take(5).collect();
        assert_eq!((marked.as_str(), window.before, window.marked), ("wrong", COLUMNS_BEFORE, 6));
        assert!(window.text.starts_with(LEFT_OUT) && window.text.ends_with(LEFT_OUT));
    }

    #[test]
    fn every_column_of_every_length_is_in_the_window() {
        for length in [1, 199, 200, 201, 202, 279, 280, 281, 500] {
            let line: String = (0..length).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
            for column in 1..=length {
                let window = Window::of(&line, column);
                assert!(window.text.chars().count() <= MOST_COLUMNS, "{length}, {column}");
                let shown = window.text.chars().nth(window.before);
                assert_eq!(shown, line.chars().nth(column - 1), "{length}, {column}");
            }
        }
    }

    #[test]
    fn a_long_message_keeps_its_ends() {
        let message = shortened(&format!("begin {} end", "m".repeat(100_000)));
        assert!(message.starts_with("begin m") && message.ends_with("m end") && message.len() < 1000);
        assert_eq!(shortened("short"), "short");
    }
}
