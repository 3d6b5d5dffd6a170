//! What can be wrong with the text of an instruction.

use super::super::{Arch, Arches, EncodeError, OperandError};

/// A fault in a line of assembler text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("column {column}: {fault}")]
pub struct ParseError {
    /// Column of the first character that is wrong, from 1.
    pub column: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

impl ParseError {
    pub(super) fn new(text: &str, at: usize, fault: Fault) -> ParseError {
        ParseError { column: 1 + text[..at].chars().count(), fault }
    }
}

/// Punctuation between quotes, words as they are.
fn quoted(what: &str) -> String {
    if what.contains(|c: char| c.is_ascii_alphanumeric()) { what.to_owned() } else { format!("`{what}`") }
}

/// What is wrong with an instruction's text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Something else was expected.
    #[error("expected {}, found {}", quoted(what), found.as_ref().map_or("the end of the line".to_owned(), |text| format!("`{text}`")))]
    Expected {
        /// What was expected.
        what: &'static str,
        /// The word or character that is there; none at the end.
        found: Option<String>,
    },
    /// No chip has such an instruction.
    #[error("no instruction is called `{name}`{}", nearest.map_or(String::new(), |name| format!("; there is `{name}`")))]
    Mnemonic {
        /// What stands there.
        name: String,
        /// A mnemonic that looks much like it.
        nearest: Option<&'static str>,
    },
    /// Another chip has such an instruction.
    #[error("`{name}` does not exist on {arch}, only on {arches}")]
    Arch {
        /// The mnemonic, or the name of something else.
        name: String,
        /// The chip.
        arch: Arch,
        /// The chips that have it.
        arches: Arches,
    },
    /// The instruction has no such encoding.
    #[error("`{mnemonic}` has no {form} form with these operands and modifiers")]
    Form {
        /// The instruction.
        mnemonic: &'static str,
        /// Suffix of the encoding.
        form: &'static str,
    },
    /// A name that is no modifier.
    #[error("`{name}` is no modifier")]
    NoModifier {
        /// What stands there.
        name: String,
    },
    /// A modifier that the instruction does not have.
    #[error("`{mnemonic}` does not have the modifier `{name}`")]
    Modifier {
        /// The instruction.
        mnemonic: &'static str,
        /// The modifier.
        name: String,
    },
    /// A modifier that the chip calls otherwise or does not have.
    #[error("`{name}` is called `{other}` on {arch}")]
    Renamed {
        /// What stands there.
        name: &'static str,
        /// The name on this chip.
        other: &'static str,
        /// The chip.
        arch: Arch,
    },
    /// A modifier twice.
    #[error("`{name}` is there twice")]
    Twice {
        /// The modifier.
        name: String,
    },
    /// A number that does not fit.
    #[error("{what} goes from {low} to {high}, {found} is outside")]
    Range {
        /// What the number is.
        what: &'static str,
        /// Smallest.
        low: i64,
        /// Largest.
        high: i64,
        /// What stands there.
        found: i64,
    },
    /// A number that is none of a few.
    #[error("{what} cannot be {found}")]
    Choice {
        /// What the number is.
        what: &'static str,
        /// What stands there.
        found: i64,
    },
    /// A number too large for 64 bits, or digits of another base.
    #[error("`{text}` is no number")]
    Number {
        /// What stands there.
        text: String,
    },
    /// A symbol that is not known where it must be.
    #[error("`{name}` is not defined here as a number")]
    Symbol {
        /// Its name.
        name: String,
    },
    /// An expression that is no number here.
    #[error("this is no number that is known here")]
    NotConstant,
    /// An expression that divides by zero.
    #[error("division by zero")]
    Division,
    /// An expression or a list too long for anything sensible.
    #[error("this is too long or nested too deeply")]
    TooLong,
    /// A register that does not exist.
    #[error("there is no register `{text}`")]
    Register {
        /// What stands there.
        text: String,
    },
    /// Registers in a list that do not follow each other.
    #[error("the registers of a list follow each other")]
    Gap,
    /// A register tuple of the wrong size.
    #[error("`{mnemonic}` takes {wanted} of these registers, not {found}")]
    Width {
        /// The instruction.
        mnemonic: &'static str,
        /// How many there are.
        found: u32,
        /// How many there should be.
        wanted: u32,
    },
    /// A number that the operand cannot hold.
    #[error("{text} does not fit an operand of {bits} bits")]
    Fit {
        /// The number.
        text: String,
        /// Bits of the operand.
        bits: u32,
    },
    /// Two literals.
    #[error("an instruction has room for one literal")]
    TwoLiterals,
    /// Negation, absolute value or sign extension where the operand has none.
    #[error("`{mnemonic}` does not take {sign} of this operand")]
    Sign {
        /// The instruction.
        mnemonic: &'static str,
        /// What it does not take.
        sign: &'static str,
    },
    /// Something of which there is no such name.
    #[error("no {what} is called `{name}`")]
    Name {
        /// What it would be.
        what: &'static str,
        /// What stands there.
        name: String,
    },
    /// A rule of the instruction's operands.
    #[error(transparent)]
    Operand(#[from] OperandError),
    /// Something without encoding.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// What the text around an instruction says of its own syntax.
    #[error("{0}")]
    Other(String),
}
