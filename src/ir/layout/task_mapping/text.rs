//! The text of a task mapping, as in `spatial(2,2)*repeat(4,4)`, and its parser.
use super::{FactorKind, MappingError, MappingFactor, MappingParts, TaskMapping};
use std::fmt::{self, Write};
use std::str::FromStr;

/// Brackets inside brackets that a text may have.
const MAX_DEPTH: u32 = 64;

/// Numbers as a tuple without blanks: `(2,3)`.
pub(super) fn tuple_text<T: fmt::Display>(numbers: &[T]) -> String {
    let numbers: Vec<String> = numbers.iter().map(T::to_string).collect();
    format!("({})", numbers.join(","))
}

/// A product of factors; that of none is the mapping without dimensions.
pub(super) fn factors_text(factors: &[MappingFactor]) -> String {
    let factors: Vec<String> = factors.iter().map(factor_text).collect();
    factors.join("*")
}

fn factor_text(factor: &MappingFactor) -> String {
    match factor {
        MappingFactor::Digits { kind, extents, ranks } => {
            let mut text = format!("{}{}", kind.name(), tuple_text(extents));
            if !ranks.iter().copied().eq(0..ranks.len()) {
                text.pop();
                let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
                // Writing to a string does not fail.
                let _ = write!(text, ", ranks=[{}])", ranks.join(","));
            }
            text
        }
        MappingFactor::Projected { factors, dims } => {
            let dims = tuple_text(dims);
            match &factors[..] {
                [one] => format!("{}.projection{dims}", factor_text(one)),
                product => format!("({}).projection{dims}", factors_text(product)),
            }
        }
    }
}

impl fmt::Display for TaskMapping {
    /// The factors, outer ones first: `spatial(2,2)*repeat(4,4)`. A faulty mapping prints as its fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.made {
            Ok(parts) => f.pad(&parts.text()),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

impl FromStr for TaskMapping {
    type Err = MappingError;

    /// Reads what a mapping prints, and the chained form: `repeat(8, 1).spatial(16, 8)`, with `col_spatial`
    /// and `col_repeat`.
    fn from_str(text: &str) -> Result<TaskMapping, MappingError> {
        let mut reader = MappingReader { text, at: 0, depth: 0 };
        let parts = reader.product()?;
        match reader.rest().is_empty() {
            true => Ok(TaskMapping { made: Ok(parts) }),
            false => Err(reader.fault("`*`, `.` or the end")),
        }
    }
}

/// A text that is being read.
struct MappingReader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> MappingReader<'a> {
    /// The rest, without blanks in front.
    fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or("");
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn takes(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), MappingError> {
        if self.takes(token) { Ok(()) } else { Err(self.fault(expected)) }
    }

    fn fault(&self, expected: &'static str) -> MappingError {
        MappingError::Text { text: self.text.to_owned(), at: self.at, expected }
    }

    fn product(&mut self) -> Result<MappingParts, MappingError> {
        let mut product = self.chain()?;
        while self.takes("*") {
            product = product.around(&self.chain()?)?;
        }
        Ok(product)
    }

    /// A factor or a bracket, and what follows it after points.
    fn chain(&mut self) -> Result<MappingParts, MappingError> {
        let mut chain = match self.takes("(") {
            true => self.bracket()?,
            false => self.factor()?,
        };
        while self.takes(".") {
            chain = match self.takes("projection") {
                true => {
                    self.expect("(", "`(`")?;
                    let dims = self.numbers(")")?;
                    chain.projected(&dims.into_iter().map(|dim| dim as usize).collect::<Vec<usize>>())?
                }
                false => chain.around(&self.factor()?)?,
            };
        }
        Ok(chain)
    }

    fn bracket(&mut self) -> Result<MappingParts, MappingError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(
                self.fault("no further bracket: texts have at most 64 inside one another, and a factor")
            );
        }
        let inside = self.product()?;
        self.depth -= 1;
        self.expect(")", "`)`")?;
        Ok(inside)
    }

    fn factor(&mut self) -> Result<MappingParts, MappingError> {
        let by_columns = self.takes("col_");
        let kind = match (self.takes("spatial"), by_columns) {
            (true, _) => FactorKind::Spatial,
            (false, _) if self.takes("repeat") => FactorKind::Repeat,
            (false, false) => return Err(self.fault("`spatial`, `repeat`, `col_spatial` or `col_repeat`")),
            (false, true) => return Err(self.fault("`spatial` or `repeat`")),
        };
        self.expect("(", "`(`")?;
        let mut extents = Vec::new();
        let mut ranks = None;
        while !self.takes(")") {
            if self.takes("ranks") {
                self.expect("=", "`=`")?;
                self.expect("[", "`[`")?;
                ranks = Some(self.numbers("]")?);
                self.expect(")", "`)`")?;
                break;
            }
            extents.push(self.number()?);
            if !self.takes(",") {
                self.expect(")", "`,` or `)`")?;
                break;
            }
        }
        match (ranks, by_columns) {
            (None, true) => MappingParts::by_columns(kind, &extents),
            (Some(ranks), false) => {
                let ranks: Vec<usize> = ranks.into_iter().map(|rank| rank as usize).collect();
                MappingParts::of_digits(kind, &extents, Some(&ranks))
            }
            (None, false) => MappingParts::of_digits(kind, &extents, None),
            (Some(_), true) => Err(self.fault("either `col_` or ranks, not both,")),
        }
    }

    /// Numbers up to a closing bracket.
    fn numbers(&mut self, end: &str) -> Result<Vec<u32>, MappingError> {
        let mut numbers = Vec::new();
        while !self.takes(end) {
            numbers.push(self.number()?);
            if !self.takes(",") {
                self.expect(end, "`,` or a closing bracket")?;
                break;
            }
        }
        Ok(numbers)
    }

    fn number(&mut self) -> Result<u32, MappingError> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..digits].parse().map_err(|_| self.fault("a number of 32 bits"))?;
        self.at += digits;
        Ok(number)
    }
}
