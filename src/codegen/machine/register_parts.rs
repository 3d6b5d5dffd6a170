//! The registers of a body, one number for each 32 bits of them: those of the hardware, and after them the
//! virtual ones.

use super::access::{RegisterRange, accesses, as_copy, hidden_read, implicit_ranges};
use super::body::{MachineBody, MachineInst};
use crate::codegen::isa::{Implicit, Inst, Operand, VReg};
use cranelift_entity::{EntityRef, PrimaryMap};

/// The number of 32 bits of a register.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct RegisterPart(u32);
cranelift_entity::entity_impl!(RegisterPart, "");

/// The numbers of the registers of a body.
#[derive(Default)]
pub(crate) struct RegisterPartNumbers {
    /// The number of the first part of each virtual register.
    first: PrimaryMap<VReg, RegisterPart>,
    /// Number of parts.
    count: usize,
}

/// The operand on which a matrix instruction accumulates.
pub(super) const ADDEND: usize = 3;

/// Kinds of accesses of a part.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PartAccess {
    /// Reads it.
    Read,
    /// Reads it, at the place of a matrix instruction's addend.
    Addend,
    /// Writes it.
    Write,
}

impl RegisterPartNumbers {
    /// Numbers the registers of a body.
    pub(crate) fn number(&mut self, body: &MachineBody) {
        self.first.clear();
        let mut next = Operand::END as usize;
        for register in body.registers.values() {
            self.first.push(RegisterPart::new(next));
            next += usize::from(register.width);
        }
        self.count = next;
    }

    /// Number of parts.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The number of an operand's first part, if it is a register.
    pub(crate) fn of(&self, operand: Operand) -> Option<RegisterPart> {
        match operand.as_virtual() {
            Some((register, first)) => Some(RegisterPart(self.first[register].0 + first)),
            None => operand.number().map(RegisterPart),
        }
    }

    /// The parts that copies among these instructions write, each with the one that it is a copy of.
    pub(crate) fn copied(&self, insts: &[MachineInst]) -> impl Iterator<Item = [RegisterPart; 2]> {
        let copies = insts.iter().filter_map(|inst| {
            let (to, from) = as_copy(&inst.inst)?;
            Some(([self.of(to)?, self.of(from)?], u32::from(inst.inst.width(0))))
        });
        copies.flat_map(|(first, width)| {
            (0..width).map(move |part| first.map(|first| RegisterPart(first.0 + part)))
        })
    }

    /// Visits what an instruction reads, and then what it writes, apart from EXEC, which no instruction that
    /// changes places writes.
    pub(crate) fn visit(&self, inst: &Inst, mut visit: impl FnMut(RegisterPart, PartAccess)) {
        let info = inst.op.info();
        let mut range = |range: RegisterRange, access| {
            range.numbers().filter(|_| range != RegisterRange::EXEC).for_each(|number| {
                visit(RegisterPart::new(number), access);
            });
        };
        if info.reads != Implicit::EXEC && info.reads != Implicit::NONE {
            implicit_ranges(info.reads).for_each(|own| range(own, PartAccess::Read));
        }
        hidden_read(info).into_iter().for_each(|own| range(own, PartAccess::Read));
        for (at, access) in accesses(inst).enumerate().filter(|(_, access)| access.reads()) {
            let kind = if at == ADDEND { PartAccess::Addend } else { PartAccess::Read };
            let Some(first) = self.of(access.operand) else { continue };
            (first.0..first.0 + access.width).for_each(|part| visit(RegisterPart(part), kind));
        }
        if info.writes != Implicit::NONE {
            implicit_ranges(info.writes)
                .flat_map(RegisterRange::numbers)
                .for_each(|number| visit(RegisterPart::new(number), PartAccess::Write));
        }
        for access in accesses(inst).filter(|access| access.writes()) {
            let Some(first) = self.of(access.operand) else { continue };
            (first.0..first.0 + access.width).for_each(|part| visit(RegisterPart(part), PartAccess::Write));
        }
    }
}
