//! Scalar instructions that decide which instruction or register comes next: calls, forks, relative
//! registers, indexing.

use crate::codegen::isa::{Element, Meaning};

use super::super::error::{FaultKind, Stopped};
use super::super::program::{OperandPlace, Program, Step};
use super::super::wave::{EXEC, M0, SGPRS, Wave};
use super::hardware::{BRANCH_STACK, GPR_INDEX, VSKIP};
use super::jump;

/// The SGPR at the distance in M0 from `place`. Out of range it is s0 for reads, and writes do nothing (CDNA4
/// ISA guide, "Out-of-Range behavior").
fn relative(w: &Wave, place: OperandPlace, width: usize) -> Option<OperandPlace> {
    let OperandPlace::Scalar(n) = place else { return Some(place) };
    let index = (usize::from(n)).saturating_add(w.s[M0] as usize);
    (index + width <= SGPRS).then_some(OperandPlace::Scalar(index as u8))
}

/// Executes S_MOVRELS and S_MOVRELD.
fn move_relative(w: &mut Wave, s: &Step, meaning: Meaning) {
    let [d, a, ..] = s.operands;
    let (Meaning::MoveFromRelative(element) | Meaning::MoveToRelative(element)) = meaning else { return };
    let width = usize::from(element.registers());
    let (to, from) = match meaning {
        Meaning::MoveFromRelative(_) => (Some(d), relative(w, a, width).unwrap_or(OperandPlace::Scalar(0))),
        _ => (relative(w, d, width), a),
    };
    let Some(to) = to else { return };
    if element == Element::B64 {
        w.set_scalar_wide(to, w.scalar_wide(from));
    } else {
        w.set_scalar(to, w.scalar(from));
    }
}

/// Writes a field of M0.
fn set_m0(w: &mut Wave, mask: u32, bits: u32) {
    w.s[M0] = w.s[M0] & !mask | bits & mask;
}

/// Executes instructions that change M0 and the modes of vector instructions (CDNA4 ISA guide, "VGPR
/// Indexing").
pub(super) fn execute(w: &mut Wave, s: &Step, meaning: Meaning) {
    const INDEX: u32 = 0xff;
    const WHICH: u32 = 0xf000;
    let a = s.operands[0];
    match meaning {
        Meaning::SetGprIndexOn => {
            w.mode |= GPR_INDEX;
            set_m0(w, INDEX, w.scalar(a));
            set_m0(w, WHICH, s.imm << 12);
        }
        Meaning::SetGprIndex => set_m0(w, INDEX, w.scalar(a)),
        Meaning::SetGprIndexMode => set_m0(w, WHICH, s.imm << 12),
        Meaning::SetGprIndexOff => w.mode &= !GPR_INDEX,
        Meaning::SetVskip => {
            let skips = w.scalar(a) >> (w.scalar(s.operands[1]) & 31) & 1 != 0;
            w.mode = if skips { w.mode | VSKIP } else { w.mode & !VSKIP };
        }
        _ => move_relative(w, s, meaning),
    }
}

/// The most entries of the branch stack that MODE can count.
const STACK: u32 = 8;

/// Executes a fork: the lanes of the smaller part wait on the stack in SGPRs, which has an entry of an
/// address and a mask of lanes (Vega ISA guide, S_CBRANCH_G_FORK).
pub(super) fn fork(
    w: &mut Wave,
    program: &Program,
    mask: u64,
    target: u64,
    next: u64,
) -> Result<Option<usize>, Stopped> {
    let exec = w.exec();
    let (pass, fail) = (mask & exec, !mask & exec);
    if pass == exec {
        return jump(program, target);
    }
    if fail == exec {
        return Ok(None);
    }
    let depth = w.mode >> BRANCH_STACK;
    if depth + 1 >= STACK {
        return Err(Stopped::wave(FaultKind::Unsupported("more nested forks than the branch stack holds")));
    }
    w.mode += 1 << BRANCH_STACK;
    let entry = depth as usize * 4;
    let (stays, waits, address) = match fail.count_ones() < pass.count_ones() {
        true => (fail, pass, target),
        false => (pass, fail, next),
    };
    w.set_pair(entry, waits);
    w.set_pair(entry + 2, address);
    w.set_pair(EXEC, stays);
    if stays == fail { Ok(None) } else { jump(program, target) }
}

/// Executes a join: the lanes on top of the stack go on, unless the stack is back where it was before the
/// fork.
pub(super) fn join(w: &mut Wave, program: &Program, before: u32) -> Result<Option<usize>, Stopped> {
    let depth = w.mode >> BRANCH_STACK;
    if depth == before & 7 || depth == 0 {
        return Ok(None);
    }
    w.mode -= 1 << BRANCH_STACK;
    let entry = (depth as usize - 1) * 4;
    let (lanes, address) = (w.pair(entry), w.pair(entry + 2));
    w.set_pair(EXEC, lanes);
    jump(program, address)
}
