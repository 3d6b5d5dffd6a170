//! How many vector registers the values of a region take, beside those that live through it.

use super::super::access::accesses;
use super::super::body::{MachineBody, MachineInst, RegisterFile};
use crate::codegen::isa::VReg;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// A register in a region.
#[derive(Copy, Clone, Default)]
struct RegionValue {
    /// Instructions that access it and are still to come.
    left: u32,
    /// Instructions of the region that access it.
    own: u32,
    is_alive: bool,
}

/// An instruction's access of a virtual vector register.
#[derive(Copy, Clone)]
struct ValueAccess {
    register: VReg,
    /// It makes the value.
    makes: bool,
}

/// Registers that are alive while the instructions of a region pass.
#[derive(Default)]
pub(super) struct LiveRegisters {
    /// 32-bit registers of each virtual one; none for those of other files.
    width: SecondaryMap<VReg, u32>,
    /// Instructions of the body that access it.
    all: SecondaryMap<VReg, u32>,
    values: SecondaryMap<VReg, RegionValue>,
    /// The accesses of the region's instructions, and where those of each begin.
    accesses: Vec<ValueAccess>,
    starts: Vec<u32>,
    now: u32,
    most: u32,
}

impl LiveRegisters {
    /// Begins with a body.
    pub(super) fn begin(&mut self, body: &MachineBody) {
        self.all.clear();
        self.width.clear();
        for (id, register) in body.registers.iter() {
            let is_vector = register.file != RegisterFile::Sgpr;
            self.width[id] = if is_vector { register.width.into() } else { 0 };
        }
        for inst in body.insts.values() {
            for access in self.of(inst) {
                self.all[access.register] += 1;
            }
        }
    }

    /// Begins with a region of it: as many registers may be alive as in the order in which it stands.
    pub(super) fn enter(&mut self, insts: &[MachineInst]) {
        self.values.clear();
        self.accesses.clear();
        self.starts.clear();
        self.starts.push(0);
        for inst in insts {
            for access in self.of(inst) {
                self.values[access.register].own += 1;
                self.accesses.push(access);
            }
            self.starts.push(self.accesses.len() as u32);
        }
        self.begin_order();
        let mut most = 0;
        for number in 0..insts.len() as u32 {
            self.pass(number);
            most = most.max(self.now);
        }
        self.begin_order();
        self.most = most;
    }

    fn begin_order(&mut self) {
        // What is read first has been made outside.
        for access in self.accesses.iter().rev() {
            let value = &mut self.values[access.register];
            (value.left, value.is_alive) = (value.own, !access.makes);
        }
        self.now = 0;
    }

    /// The virtual vector registers that an instruction accesses, each once.
    fn of(&self, inst: &MachineInst) -> SmallVec<[ValueAccess; 8]> {
        let mut found: SmallVec<[ValueAccess; 8]> = SmallVec::new();
        for access in accesses(&inst.inst) {
            let Some((register, _)) = access.operand.as_virtual() else { continue };
            if self.width[register] == 0 {
                continue;
            }
            match found.iter_mut().find(|known| known.register == register) {
                Some(known) => known.makes &= !access.reads(),
                None => found.push(ValueAccess { register, makes: !access.reads() }),
            }
        }
        found
    }

    fn accesses(&self, number: u32) -> &[ValueAccess] {
        let at = number as usize;
        &self.accesses[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Registers that come to life with an instruction, and that are free after it.
    fn change(&self, number: u32) -> [u32; 2] {
        let (mut made, mut freed) = (0, 0);
        for access in self.accesses(number) {
            let (value, width) = (&self.values[access.register], self.width[access.register]);
            if !value.is_alive {
                made += width;
            }
            if value.left == 1 && value.own == self.all[access.register] {
                freed += width;
            }
        }
        [made, freed]
    }

    /// True if there are registers for an instruction if it comes next.
    pub(super) fn allows(&self, number: u32) -> bool {
        let [made, freed] = self.change(number);
        made <= freed || self.now + made - freed <= self.most
    }

    /// Lets an instruction come next.
    pub(super) fn pass(&mut self, number: u32) {
        let [made, freed] = self.change(number);
        self.now = (self.now + made).saturating_sub(freed);
        for at in self.starts[number as usize]..self.starts[number as usize + 1] {
            let value = &mut self.values[self.accesses[at as usize].register];
            value.left -= 1;
            value.is_alive = true;
        }
    }
}
