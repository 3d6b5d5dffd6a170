//! Faults in the text of an instruction.

use super::super::{Arch, Arches, EncodeError, OperandError};

/// A fault in a line of assembler text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("column {column}: {fault}")]
pub struct LineError {
    /// Column of the first character that is wrong, from 1.
    pub column: usize,
    /// What is wrong with it.
    pub fault: InstructionFault,
}

impl LineError {
    pub(super) fn new(text: &str, at: usize, fault: InstructionFault) -> LineError {
        LineError { column: 1 + text[..at].chars().count(), fault }
    }
}

/// Punctuation between quotes, words as they are.
fn quoted(what: &str) -> String {
    if what.contains(|c: char| c.is_ascii_alphanumeric()) { what.to_owned() } else { format!("`{what}`") }
}

/// What is wrong with an instruction's text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InstructionFault {
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
        /// The name.
        name: String,
        /// A similar mnemonic.
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
    /// A name that is not a modifier.
    #[error("`{name}` is not a modifier")]
    NoModifier {
        /// The name.
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
    /// A modifier that the chip names differently or does not have.
    #[error("`{name}` is called `{other}` on {arch}")]
    Renamed {
        /// The name.
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
        /// The number.
        found: i64,
    },
    /// A number that is not one of a few.
    #[error("{what} cannot be {found}")]
    Choice {
        /// What the number is.
        what: &'static str,
        /// The number.
        found: i64,
    },
    /// A number too large for 64 bits, or digits of another base.
    #[error("`{text}` is not a number")]
    Number {
        /// The text.
        text: String,
    },
    /// A symbol that has to be known here and is not.
    #[error("`{name}` is not defined here as a number")]
    Symbol {
        /// Its name.
        name: String,
    },
    /// An expression that is not a number here.
    #[error("this is not a number that is known here")]
    NotConstant,
    /// An expression that divides by zero.
    #[error("division by zero")]
    Division,
    /// An expression or a list that is too long.
    #[error("this is too long or nested too deeply")]
    TooLong,
    /// A register that does not exist.
    #[error("there is no register `{text}`")]
    Register {
        /// The text.
        text: String,
    },
    /// Registers in a list that do not follow each other.
    #[error("the registers of a list must follow each other")]
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
        /// The sign that it does not take.
        sign: &'static str,
    },
    /// A name of something that does not exist.
    #[error("no {what} is called `{name}`")]
    Name {
        /// The kind of thing.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A rule of the instruction's operands.
    #[error(transparent)]
    Operand(#[from] OperandError),
    /// Something that cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A fault that the syntax around an instruction reports.
    #[error("{0}")]
    Other(String),
}
