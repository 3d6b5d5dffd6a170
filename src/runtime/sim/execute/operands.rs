//! Where the operands of a step stand, for those who replace one.

use crate::codegen::isa::{Field, OpInfo};

use super::super::program::{OperandPlace, SCRATCH};
use super::super::wave::Wave;

/// Where an adjusted source or result is kept temporarily: two rows each after the wave's registers.
pub(super) fn scratch(w: &Wave, which: usize) -> OperandPlace {
    OperandPlace::Row((w.rows.len() - SCRATCH + 2 * which) as u16)
}

/// Index of the operand in that field.
pub(super) fn position(info: &OpInfo, field: Field) -> Option<usize> {
    info.operands.iter().position(|spec| spec.field == field)
}
