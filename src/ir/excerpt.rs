//! Lines of a text as they are shown below a fault: cut to what fits, with a mark below the column at fault.
//! The program and the diagnostics that `main` returns use the same form.

use std::collections::BTreeMap;

/// Columns of a line that are shown, including the marks for what is left out.
const MOST_COLUMNS: usize = 200;

/// Columns before the one at fault, if the line is too long to be shown whole.
const COLUMNS_BEFORE: usize = 80;

/// The most characters that are underlined.
const LONGEST_MARK: usize = 40;

/// Stands for what is left out.
const LEFT_OUT: char = '…';

/// Some lines of a text.
pub struct Lines<'a> {
    by_number: BTreeMap<usize, &'a str>,
}

impl<'a> Lines<'a> {
    /// Finds the lines with the `wanted` numbers, counted from 1, in one walk over the text.
    pub fn of(text: &'a str, wanted: impl IntoIterator<Item = u32>) -> Lines<'a> {
        let mut by_number: BTreeMap<usize, &str> =
            wanted.into_iter().map(|line| (line as usize, "")).collect();
        let last = by_number.last_key_value().map_or(0, |(&last, _)| last);
        for (index, line) in text.lines().take(last).enumerate() {
            if let Some(found) = by_number.get_mut(&(index + 1)) {
                *found = line;
            }
        }
        Lines { by_number }
    }

    /// The part of a line around a column, both counted from 1; none if the line is empty or was not asked
    /// for.
    pub fn excerpt(&self, line: u32, column: u32) -> Option<Excerpt> {
        let line = self.by_number.get(&(line as usize)).filter(|line| !line.is_empty())?;
        Some(Excerpt::of(line, column as usize))
    }
}

/// The part of a line that is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excerpt {
    /// The text that is shown, on one line of a terminal.
    pub text: String,
    /// Characters before the mark.
    pub before: usize,
    /// Characters that are marked, at least one.
    pub marked: usize,
}

impl Excerpt {
    /// The part around a column, counted from 1.
    pub fn of(line: &str, column: usize) -> Excerpt {
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
        Excerpt { text, before, marked: word.clamp(1, LONGEST_MARK) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_is_shown_whole() {
        let excerpt = Excerpt::of("\tv_mov_b32 v0", 2);
        assert_eq!(excerpt, Excerpt { text: " v_mov_b32 v0".to_owned(), before: 1, marked: 9 });
        assert_eq!(Excerpt::of("x", 9), Excerpt { text: "x".to_owned(), before: 1, marked: 1 });
    }

    #[test]
    fn a_long_line_is_shown_around_the_column() {
        let line = format!("{}wrong{}", "é ".repeat(5000), "x ".repeat(5000));
        let excerpt = Excerpt::of(&line, 10_001);
        assert_eq!(excerpt.text.chars().count(), MOST_COLUMNS);
        let marked: String = excerpt.text.chars().skip(excerpt.before).take(5).collect();
        assert_eq!((marked.as_str(), excerpt.before, excerpt.marked), ("wrong", COLUMNS_BEFORE, 6));
        assert!(excerpt.text.starts_with(LEFT_OUT) && excerpt.text.ends_with(LEFT_OUT));
    }

    #[test]
    fn every_column_of_every_length_is_in_the_window() {
        for length in [1, 199, 200, 201, 202, 279, 280, 281, 500] {
            let line: String = (0..length).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
            for column in 1..=length {
                let excerpt = Excerpt::of(&line, column);
                assert!(excerpt.text.chars().count() <= MOST_COLUMNS, "{length}, {column}");
                let shown = excerpt.text.chars().nth(excerpt.before);
                assert_eq!(shown, line.chars().nth(column - 1), "{length}, {column}");
            }
        }
    }
}
