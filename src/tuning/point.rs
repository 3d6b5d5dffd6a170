//! Points of a space: a value for each of its choices.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;

/// A value of a choice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ChoiceValue {
    /// A number, or a few that go together, as the sides of a tile: `256x256x64`.
    Numbers(SmallVec<[i64; 3]>),
    /// A word, as the name of a schedule.
    Word(Arc<str>),
}

impl From<i64> for ChoiceValue {
    fn from(number: i64) -> ChoiceValue {
        ChoiceValue::Numbers(SmallVec::from_slice(&[number]))
    }
}

impl<const N: usize> From<[i64; N]> for ChoiceValue {
    fn from(numbers: [i64; N]) -> ChoiceValue {
        ChoiceValue::Numbers(SmallVec::from_slice(&numbers))
    }
}

impl From<&str> for ChoiceValue {
    fn from(word: &str) -> ChoiceValue {
        ChoiceValue::Word(word.into())
    }
}

impl fmt::Display for ChoiceValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChoiceValue::Word(word) => f.write_str(word),
            ChoiceValue::Numbers(numbers) => {
                for (at, number) in numbers.iter().enumerate() {
                    write!(f, "{}{number}", if at > 0 { "x" } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

/// Numbers with `x` between them, or else a word.
impl FromStr for ChoiceValue {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<ChoiceValue, Diagnostic> {
        let numbers: Result<SmallVec<[i64; 3]>, _> = text.split('x').map(str::parse).collect();
        match numbers {
            Ok(numbers) => Ok(ChoiceValue::Numbers(numbers)),
            Err(_) if is_word(text) => Ok(ChoiceValue::Word(text.into())),
            Err(_) => {
                let text = format!("`{text}` is no value of a choice");
                Err(Diagnostic::invalid(text)
                    .help("write numbers as 256x256x64, or a word of letters and digits"))
            }
        }
    }
}

/// True if a name or a word can be read back from a line of text.
fn is_word(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '+' | ',');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_part)
}

/// A value for each choice of a space, in the order of the choices. It prints as `tile=256x256x64
/// schedule=pingpong`, and is read back from that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Point {
    values: Vec<(Arc<str>, ChoiceValue)>,
}

impl Point {
    /// The same with a value for one more choice.
    #[must_use]
    pub fn with(&self, name: impl Into<Arc<str>>, value: impl Into<ChoiceValue>) -> Point {
        let mut values = Vec::with_capacity(self.values.len() + 1);
        values.extend_from_slice(&self.values);
        values.push((name.into(), value.into()));
        Point { values }
    }

    /// Names and values in order.
    pub fn values(&self) -> impl Iterator<Item = (&str, &ChoiceValue)> {
        self.values.iter().map(|(name, value)| (&**name, value))
    }

    /// The value of a choice.
    pub fn value(&self, name: &str) -> Option<&ChoiceValue> {
        self.values.iter().find(|value| *value.0 == *name).map(|value| &value.1)
    }

    /// The number that is chosen, if it is one.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.numbers::<1>(name).map(|[number]| number)
    }

    /// The numbers that are chosen, if they are so many.
    pub fn numbers<const N: usize>(&self, name: &str) -> Option<[i64; N]> {
        match self.value(name)? {
            ChoiceValue::Numbers(numbers) => numbers.as_slice().try_into().ok(),
            ChoiceValue::Word(_) => None,
        }
    }

    /// The word that is chosen, if it is one.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            ChoiceValue::Word(word) => Some(word),
            ChoiceValue::Numbers(_) => None,
        }
    }

    /// Choices in which it differs from another point.
    pub fn distance(&self, other: &Point) -> usize {
        let differs = |(name, value): &&(Arc<str>, ChoiceValue)| other.value(name) != Some(value);
        self.values.iter().filter(differs).count()
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.values.iter().enumerate() {
            write!(f, "{}{name}={value}", if at > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Point {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Point, Diagnostic> {
        let mut point = Point::default();
        for part in text.split_ascii_whitespace() {
            let choice =
                part.split_once('=').filter(|(name, _)| is_word(name) && point.value(name).is_none());
            let Some((name, value)) = choice else {
                let text = format!("`{part}` is no choice, or one that was made before");
                return Err(Diagnostic::invalid(text).help("write each choice once, as tile=256x256x64"));
            };
            point.values.push((name.into(), value.parse()?));
        }
        Ok(point)
    }
}
