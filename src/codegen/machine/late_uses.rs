//! Instructions that use what is being loaded, after those that do not.
//!
//! A kernel begins with loads of its arguments, which take some 600 clk on MI355X at the clock that it
//! sustains, and the base of a tile's descriptor is a sum of one of them. Instructions are written in the
//! order in which lowering asks for them, so that a wave would wait for its arguments in front of the
//! arithmetic for the lanes' offsets, which needs none.

use smallvec::SmallVec;

use super::access::accesses;
use super::body::{InstId, MachineBody, MachineInst};
use crate::codegen::isa::{Implicit, Operand, Unit, VReg};
use crate::index::Stretches;
use cranelift_entity::SecondaryMap;

/// Parts of virtual registers, one bit each.
type NamedParts = SecondaryMap<VReg, u32>;

/// So many parts from one on.
fn bits(part: u32, width: u32) -> u32 {
    if width == 0 {
        return 0;
    }
    // Parts from the 32nd on share the last bit: what is not told apart counts as the same.
    let (first, last) = (part.min(31), (part + width - 1).min(31));
    ((2u64 << last) - (1u64 << first)) as u32
}

/// Puts the scalar instructions from `first` to the end of `body` that depend on `loaded`, registers and how
/// many they are, after all others. They stay where they are if anything else but these values orders them.
pub(crate) fn put_uses_last(body: &mut MachineBody, first: InstId, loaded: &[(Operand, u32)]) {
    let mut late = LateUses::default();
    for &(operand, width) in loaded {
        let Some((register, part)) = operand.as_virtual() else { continue };
        late.made[register] |= bits(part, width);
    }
    let end = body.insts.next_key();
    if late.made.values().all(|&parts| parts == 0)
        || !body.insts.range(first..end).iter().all(|inst| late.take(inst))
    {
        return;
    }
    let moved = late.others.iter().chain(&late.insts);
    for (slot, inst) in body.insts.range_mut(first..end).iter_mut().zip(moved) {
        *slot = *inst;
    }
}

/// Instructions that wait for loaded values, and those that do not.
#[derive(Default)]
struct LateUses {
    insts: SmallVec<[MachineInst; 16]>,
    others: Vec<MachineInst>,
    /// Registers that are loaded, and those that late instructions write.
    made: NamedParts,
    /// Registers that late instructions read.
    read: NamedParts,
    /// The last instruction that has written SCC is late.
    scc: bool,
}

impl LateUses {
    /// Takes the next instruction; false if it does not allow the late ones to be moved after it.
    fn take(&mut self, inst: &MachineInst) -> bool {
        let info = inst.inst.op.info();
        let (mut uses, mut is_named) = (false, true);
        for access in accesses(&inst.inst) {
            match access.operand.as_virtual() {
                Some((register, part)) => {
                    uses |= access.reads() && self.made[register] & bits(part, access.width) != 0;
                }
                None => is_named = false,
            }
        }
        let reads_scc = info.reads.contains(Implicit::SCC);
        let is_late = uses || reads_scc && self.scc;
        if !is_late {
            for access in accesses(&inst.inst).filter(|access| access.writes()) {
                let Some((register, part)) = access.operand.as_virtual() else { continue };
                if (self.made[register] | self.read[register]) & bits(part, access.width) != 0 {
                    return false;
                }
            }
            self.scc &= !info.writes.contains(Implicit::SCC);
            self.others.push(*inst);
            return true;
        }
        // An SCC that another instruction makes would be overwritten.
        if info.unit != Unit::Salu || !is_named || reads_scc && !self.scc {
            return false;
        }
        for access in accesses(&inst.inst) {
            let Some((register, part)) = access.operand.as_virtual() else { continue };
            let parts = if access.writes() { &mut self.made } else { &mut self.read };
            parts[register] |= bits(part, access.width);
        }
        self.scc |= info.writes.contains(Implicit::SCC);
        self.insts.push(*inst);
        true
    }
}
