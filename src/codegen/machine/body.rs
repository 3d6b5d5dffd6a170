//! The body of one kernel as machine code: a dense list of instructions cut into blocks, and the virtual
//! registers.

use std::fmt;

use super::access::as_copy;
use crate::codegen::isa::{Inst, Operand, VReg};
use crate::index::{Neighbours, Stretches};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, entity_impl, iter_entity_range};

/// The number of a block in its body.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockId(u32);
entity_impl!(BlockId, "bb");

/// The number of an instruction in its body.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InstId(u32);
entity_impl!(InstId, "");

/// Which register file a virtual register lives in.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum RegisterFile {
    /// Scalar general purpose registers.
    Sgpr,
    /// Architectural vector registers.
    Vgpr,
    /// Accumulation vector registers.
    Agpr,
}

impl fmt::Display for RegisterFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RegisterFile::Sgpr => "SGPRs",
            RegisterFile::Vgpr => "VGPRs",
            RegisterFile::Agpr => "AGPRs",
        })
    }
}

/// What the allocator knows of a virtual register: its file and how many consecutive 32-bit registers it is.
/// Alignment follows from both: SGPR pairs even, larger SGPR tuples by four; VGPR and AGPR tuples even
/// (gfx90a on).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct VirtualRegister {
    /// Register file.
    pub file: RegisterFile,
    /// Number of 32-bit registers, 1 to 32.
    pub width: u8,
}

/// A basic block: a range of [`MachineBody::insts`] and where control goes after it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// First instruction.
    pub start: InstId,
    /// One past the last instruction.
    pub end: InstId,
    /// Blocks that control may go to: fall-through and branch target. A block that ends the kernel has none.
    pub successors: [Option<BlockId>; 2],
}

impl Block {
    /// The numbers of its instructions.
    pub fn insts(&self) -> impl DoubleEndedIterator<Item = InstId> + ExactSizeIterator + use<> {
        iter_entity_range(self.start..self.end)
    }
}

/// One instruction with the node it came from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MachineInst {
    /// The instruction; a branch holds the number of its target block in `imm` until encoding.
    pub inst: Inst,
    /// Index into the kernel's table of author locations, or `u32::MAX`.
    pub source: u32,
}

/// For every instruction of a body which one it was before, none for those that have been inserted.
pub type Origins = PrimaryMap<InstId, PackedOption<InstId>>;

/// Machine code of one kernel. Blocks are in layout order and cover `insts` without gaps. A pass that inserts
/// instructions writes them to `spare` and swaps, so nothing is ever inserted in the middle.
#[derive(Clone, Default, Debug)]
pub struct MachineBody {
    /// All instructions in layout order.
    pub insts: PrimaryMap<InstId, MachineInst>,
    /// Blocks in layout order.
    pub blocks: PrimaryMap<BlockId, Block>,
    /// Virtual registers.
    pub registers: PrimaryMap<VReg, VirtualRegister>,
    /// The other half of the double buffer of inserting passes.
    pub spare: PrimaryMap<InstId, MachineInst>,
}

impl MachineBody {
    /// Empties the body and keeps its memory.
    pub fn clear(&mut self) {
        self.insts.clear();
        self.blocks.clear();
        self.registers.clear();
        self.spare.clear();
    }

    /// Renames virtual registers: `name` takes a register and a part of it. Copies of a register to itself
    /// are removed, from `origins` as well. `moved` is called with the new number of each instruction in
    /// turn; for one that is removed, with that of the next.
    pub(super) fn rename(
        &mut self,
        origins: &mut Origins,
        name: impl Fn(VReg, u32) -> Operand,
        mut moved: impl FnMut(InstId),
    ) {
        let mut kept = InstId::from_u32(0);
        for block in self.blocks.values_mut() {
            let insts = block.insts();
            block.start = kept;
            for index in insts {
                moved(kept);
                let i = &mut self.insts[index];
                let named = i.inst.op.info().operands.len();
                for operand in i.inst.operands.iter_mut().take(named) {
                    if let Some((id, first)) = operand.as_virtual() {
                        *operand = name(id, first);
                    }
                }
                if as_copy(&i.inst).is_some_and(|(to, from)| to == from) {
                    continue;
                }
                if kept != index {
                    self.insts[kept] = *i;
                    origins[kept] = origins[index];
                }
                kept = kept.next();
            }
            block.end = kept;
        }
        self.insts.truncate(kept);
        origins.truncate(kept);
    }

    /// Instructions of one block.
    pub fn block(&self, block: BlockId) -> &[MachineInst] {
        let b = self.blocks[block];
        self.insts.range(b.start..b.end)
    }
}
