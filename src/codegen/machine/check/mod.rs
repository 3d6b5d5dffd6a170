//! The machine verifier: looks at what the passes left and says what is wrong, by rules of its own.
//!
//! Interleaving is checked by who has written what each instruction reads, allocation by following values
//! through the registers, waits by following what is in flight along every path, hazards by walking back
//! from every instruction. The passes share nothing with this but the instruction table; it is slow, and
//! meant for tests and `--verify`.
mod allocation;
mod hazards;
mod order;
mod places;
mod waits;

pub use allocation::{Allocated, check_allocation};
pub use hazards::{check_hazards, check_replay};
pub use order::check_order;
pub use waits::check_waits;

use super::body::{InstId, MachineBody};
use crate::codegen::isa::{Arch, check};
use cranelift_entity::EntityRef;

/// Something wrong with one instruction.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
#[error("instruction {inst}: {message}")]
pub struct MachineFault {
    /// Instruction.
    pub inst: InstId,
    /// What is wrong.
    pub message: String,
}

impl MachineFault {
    fn new(inst: InstId, message: impl Into<String>) -> MachineFault {
        MachineFault { inst, message: message.into() }
    }
}

/// Checks every instruction against its row, which knows the errata of the chips, and that blocks cover the
/// body without gaps.
pub fn check_operands(body: &MachineBody, arch: Arch) -> Vec<MachineFault> {
    let mut faults = Vec::new();
    let mut at = InstId::new(0);
    for (index, block) in body.blocks.iter() {
        if block.start != at || block.end < at {
            faults
                .push(MachineFault::new(at, format!("{index} does not start where the one before it ends")));
        }
        at = block.end;
    }
    if at != body.insts.next_key() {
        faults.push(MachineFault::new(at, "the blocks do not cover the body"));
    }
    for (index, i) in body.insts.iter() {
        if let Err(error) = check(&i.inst, arch) {
            faults.push(MachineFault::new(index, error.to_string()));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand};
    use crate::codegen::machine::body::{Block, MachineInst};
    use crate::codegen::machine::text;
    use cranelift_entity::packed_option::PackedOption;

    fn faults(inst: Inst, arch: Arch) -> usize {
        let body = MachineBody {
            insts: vec![MachineInst { inst, source: 0 }].into(),
            blocks: vec![Block { start: InstId::new(0), end: InstId::new(1), successors: [None; 2] }].into(),
            ..MachineBody::default()
        };
        check_operands(&body, arch).len()
    }

    #[test]
    fn a_run_that_a_replay_gets_wrong_goes_on_where_a_block_falls_through() {
        let faults = |between: &str| {
            let text = format!(
                "bb0:\n s_load_dword s4, s[0:1], 0x0\n{between}bb1:\nbb2:\n s_load_dword s0, s[2:3], 0x0\n s_endpgm\n"
            );
            check_replay(&text::parse(&text).expect("a body")).len()
        };
        assert_eq!(faults(""), 1);
        assert_eq!(faults(" s_cbranch_scc1 bb2\n"), 0);
        assert_eq!(faults(" s_nop 0\n"), 0);
    }

    /// A matrix instruction that overwrites its accumulator although that is read later, and one that does
    /// not.
    #[test]
    fn an_accumulator_that_is_overwritten_too_early_is_a_fault() {
        let body = |made: [&str; 3]| {
            // A virtual register is given its width where it is defined, and not where it is read.
            let [x, acc, sum] = made.map(|name| name.split_once(":v").map_or(name, |(name, _)| name));
            let [make_x, make_acc, make_sum] = made;
            let text = format!(
                "bb0:\n global_load_dwordx2 {make_x}, v0, s[0:1]\n \
                 global_load_dwordx4 {make_acc}, v0, s[0:1]\n \
                 v_mfma_f32_16x16x16_f16 {make_sum}, {x}, {x}, {acc}\n \
                 global_store_dwordx4 v0, {sum}, s[0:1]\n global_store_dwordx4 v0, {acc}, s[0:1]\n s_endpgm\n"
            );
            text::parse(&text).expect("a body")
        };
        let before = body(["%0:v2", "%1:v4", "%2:v4"]);
        let faults = |sum: &str| {
            let after = body(["v[2:3]", "v[4:7]", sum]);
            let origins = before.insts.keys().map(PackedOption::from).collect();
            let allocated = Allocated {
                before: &before,
                after: &after,
                origins: &origins,
                inputs: &[],
                scratch_bytes: 0,
            };
            check_allocation(&allocated).len()
        };
        assert_eq!(faults("v[8:11]"), 0);
        assert_eq!(faults("v[4:7]"), 1);
    }

    #[test]
    fn errata_of_operands_are_faults_on_the_chips_that_have_them() {
        let (v, a) = (Operand::vgpr, Operand::agpr);
        let mfma = Inst::new(Opcode::VMfmaF32_32x32x8F16, &[a(0), v(0), v(2), Operand::ZERO]);
        assert_eq!(Arch::ALL[1..].iter().map(|&arch| faults(mfma, arch)).collect::<Vec<_>>(), [1, 0, 0, 0]);

        let dot = Inst::new(Opcode::VDot2F32F16, &[v(0), v(1), v(2), v(3)]);
        let dot = dot.modifiers(Modifiers::new().op_sel(1));
        assert_eq!([Arch::Gfx942, Arch::Gfx950].map(|arch| faults(dot, arch)), [1, 1]);

        let odd = Inst::new(Opcode::VAddF64, &[v(0), v(3), v(4)]);
        assert_eq!(Arch::ALL.map(|arch| faults(odd, arch)), [0, 0, 1, 1, 1]);
    }
}
