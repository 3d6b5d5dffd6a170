//! The vector registers that instructions of a body access, as values of which so many may be alive.

use smallvec::SmallVec;

use super::super::access::{RegisterAccess, accesses};
use super::super::body::{MachineBody, MachineInst, RegisterFile};
use super::super::register_parts::ADDEND;
use crate::codegen::isa::{Inst, Unit, VReg};
use crate::codegen::issue::{LiveRegisters, ValueAccess};

/// Vector registers that an instruction makes, apart from those that a result takes over from an operand: a
/// matrix instruction's takes those of the addend.
pub(crate) fn made_registers(body: &MachineBody, inst: &Inst) -> u8 {
    if matches!(inst.op.info().unit, Unit::Mfma(_)) && inst.operands[ADDEND].as_virtual().is_some() {
        return 0;
    }
    let register = |access: RegisterAccess| {
        let (register, _) = access.operand.as_virtual()?;
        (body.registers[register].file != RegisterFile::Sgpr).then_some(register)
    };
    let is_read = |made| accesses(inst).any(|access| access.reads() && register(access) == Some(made));
    let made = accesses(inst).filter(|access| access.writes());
    made.map(|access| (access.width as u8, register(access)))
        .filter_map(|(width, made)| made.is_some_and(|made| !is_read(made)).then_some(width))
        .sum()
}

/// The registers of a body that are alive in a region.
#[derive(Default)]
pub(super) struct RegionRegisters {
    alive: LiveRegisters<VReg>,
}

impl RegionRegisters {
    /// Begins with a body.
    pub(super) fn begin(&mut self, body: &MachineBody) {
        self.alive.begin();
        for (id, register) in body.registers.iter() {
            if register.file != RegisterFile::Sgpr {
                self.alive.set_width(id, register.width.into());
            }
        }
        for inst in body.insts.values() {
            for access in self.of(inst) {
                self.alive.count(access.value);
            }
        }
    }

    /// Begins with a region of it.
    pub(super) fn enter(&mut self, insts: &[MachineInst]) -> &mut LiveRegisters<VReg> {
        self.alive.begin_region();
        for inst in insts {
            let accesses = self.of(inst);
            self.alive.push(accesses);
        }
        self.alive.enter();
        &mut self.alive
    }

    /// The vector registers that an instruction accesses, each once.
    fn of(&self, inst: &MachineInst) -> SmallVec<[ValueAccess<VReg>; 8]> {
        let mut found: SmallVec<[ValueAccess<VReg>; 8]> = SmallVec::new();
        for access in accesses(&inst.inst) {
            let Some((value, _)) = access.operand.as_virtual() else { continue };
            if !self.alive.has_registers(value) {
                continue;
            }
            match found.iter_mut().find(|known| known.value == value) {
                Some(known) => known.makes &= !access.reads(),
                None => found.push(ValueAccess { value, makes: !access.reads() }),
            }
        }
        found
    }
}
