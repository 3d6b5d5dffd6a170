//! Vector ALU: which loop executes an instruction.

use crate::codegen::isa::{Calc, Element};

use super::super::error::Stopped;
use super::super::program::Step;
use super::super::wave::Wave;
use super::{host, saturating};

/// Executes one `Vector` instruction. Each type has a function of its own, because the frame of one for all
/// would be large.
pub(super) fn calculate(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    use Element::*;
    let is_float = matches!(element, F16 | F32 | F64);
    if s.modifiers.has_clamp() && !is_float && saturating::calculate(w, s, calc, element) {
        return Ok(());
    }
    match element {
        F32 => host::float32(w, s, calc),
        F16 => host::float16(w, s, calc),
        F64 => host::float64(w, s, calc),
        B64 | U64 | I64 => host::wide(w, s, calc, element),
        B16 | U16 | I16 => host::short(w, s, calc, element),
        _ => host::integer(w, s, calc, element),
    }
}
