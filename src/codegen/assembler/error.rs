//! Faults in a text, with their places.

use std::fmt;

use crate::codegen::isa::LineError;
use crate::codegen::isa::parse::InstructionFault;

/// A fault in an assembler text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}:{column}: {fault}")]
pub struct AssemblerError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: InstructionFault,
}

impl AssemblerError {
    pub(super) fn new(line: usize, column: usize, fault: InstructionFault) -> AssemblerError {
        AssemblerError { line, column, fault }
    }

    /// A fault in a statement whose columns are those of the line.
    pub(super) fn at(line: usize, error: LineError) -> AssemblerError {
        AssemblerError { line, column: error.column, fault: error.fault }
    }
}

/// The number of faults after which the rest is not looked at.
pub(super) const MOST_FAULTS: usize = 100;

/// Why a text gives no object: its faults, up to a limit, by line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults(pub Vec<AssemblerError>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// A fault without a variant of its own.
pub(super) fn other(message: impl Into<String>) -> InstructionFault {
    InstructionFault::Other(message.into())
}
