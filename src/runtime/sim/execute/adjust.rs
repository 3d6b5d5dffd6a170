//! Steps whose operands are not simply those of the encoding: DPP, SDWA, and VGPR indexing. Each executes a
//! copy of the step with other operands, so that the instructions themselves need not know about it.

use crate::codegen::isa::{Field, Meaning, OpInfo};

use super::super::error::{FaultKind, Stopped};
use super::super::program::{OperandPlace, Step};
use super::super::wave::{M0, Wave};
use super::hardware::{GPR_INDEX, VSKIP};
use super::{ExecutionContext, dpp, execute, sdwa};

/// Executes an adjusted step.
pub(super) fn run(
    w: &mut Wave,
    context: &mut ExecutionContext<'_>,
    s: &Step,
    meaning: Meaning,
) -> Result<Option<usize>, Stopped> {
    let Some(op) = s.op else { return Err(Stopped::wave(FaultKind::Undecodable)) };
    if w.mode & VSKIP != 0 {
        return Ok(None);
    }
    let info = op.info();
    let mut step = s.clone();
    if w.mode & GPR_INDEX != 0 && info.format.is_vop() {
        let vgprs = context.program.registers().0;
        if !index(w.s[M0], vgprs, info, &mut step) {
            return Ok(None);
        }
    }
    if s.modifiers.has_dpp() {
        dpp::run(w, context, step, info, meaning)
    } else if s.modifiers.has_sdwa() {
        sdwa::run(w, context, step, info, meaning)
    } else {
        execute(w, context, &step, meaning)
    }
}

/// Adds M0's index to the VGPRs that M0 selects; false if the result would lie past the last one, in which
/// case the instruction does nothing. A source past the last one is v0 (CDNA4 ISA guide, "VGPR Indexing" and
/// "Out-of-Range behavior").
fn index(m0: u32, vgprs: usize, info: &OpInfo, step: &mut Step) -> bool {
    let by = (m0 & 0xff) as u16;
    let literal_first = matches!(info.operands.get(2), Some(spec) if spec.field == Field::Literal);
    for (spec, place) in info.operands.iter().zip(&mut step.operands) {
        let bit = match spec.field {
            Field::Src0 => 12,
            // After a literal factor this is the addend, which the hardware calls the third source.
            Field::Src1 if literal_first => 14,
            Field::Src1 => 13,
            Field::Src2 => 14,
            Field::Dst => 15,
            _ => continue,
        };
        let OperandPlace::Row(row) = place else { continue };
        if usize::from(*row) >= vgprs || m0 >> bit & 1 == 0 {
            continue;
        }
        if usize::from(*row + by) + usize::from(spec.width) <= vgprs {
            *row += by;
        } else if spec.field == Field::Dst {
            return false;
        } else {
            *row = 0;
        }
    }
    true
}
