//! Terminals: colours and progress, neither of them in a pipe.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::ProgressBar;

/// How a piece of text is set off.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Style {
    Bold,
    Dim,
    Good,
    Bad,
}

fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The text in a style, if standard output is a terminal.
pub fn paint(style: Style, text: &str) -> String {
    match std::io::stdout().is_terminal() {
        true => painted(style, text),
        false => text.to_string(),
    }
}

/// The text in a style, if standard error is a terminal.
pub fn paint_error(style: Style, text: &str) -> String {
    match std::io::stderr().is_terminal() {
        true => painted(style, text),
        false => text.to_string(),
    }
}

fn painted(style: Style, text: &str) -> String {
    if !wanted() {
        return text.to_string();
    }
    let code = match style {
        Style::Bold => "1",
        Style::Dim => "2",
        Style::Good => "32",
        Style::Bad => "1;31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// A progress indicator on standard error while something takes long; invisible in a pipe.
pub fn progress(what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(what.to_string());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
