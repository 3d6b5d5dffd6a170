//! Removes branches to the next block as soon as registers are allocated, and encodes a finished body: block
//! indexes become offsets.

use super::body::{BlockId, InstId, MachineBody};
use crate::codegen::isa::{Arch, EncodeError, Meaning, encode};
use crate::index::{Neighbours, Stretches};
use cranelift_entity::{EntityRef, PrimaryMap, iter_entity_range};

/// The most 32-bit words that a branch can skip, counted from the end of the branch (CDNA3 ISA guide,
/// S_BRANCH: a signed 16-bit immediate).
pub(crate) const BRANCH_REACH: i64 = i16::MAX as i64;

/// Why a body cannot be encoded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeError {
    /// A branch target is further away than the immediate reaches.
    #[error(
        "the branch at instruction {inst} would have to go {distance} instruction words, its reach is {BRANCH_REACH}"
    )]
    BranchRange {
        /// Instruction.
        inst: InstId,
        /// Distance in 32-bit words.
        distance: i64,
    },
    /// A branch names a block that does not exist.
    #[error("the branch at instruction {inst} goes to {target}, which does not exist")]
    BranchTarget {
        /// Instruction.
        inst: InstId,
        /// Block.
        target: BlockId,
    },
    /// An instruction cannot be encoded.
    #[error("instruction {inst}: {error}")]
    Encode {
        /// Instruction.
        inst: InstId,
        /// Why.
        error: EncodeError,
    },
}

/// Code of a body and where its instructions lie.
#[derive(Clone, Default, Debug)]
pub struct Code {
    /// Instruction words.
    pub words: Vec<u32>,
    /// Byte offset of every instruction.
    pub offsets: PrimaryMap<InstId, u32>,
    /// Byte offset of every block.
    pub blocks: PrimaryMap<BlockId, u32>,
    /// Instructions that are branches.
    branches: Vec<InstId>,
}

impl Code {
    /// Size in bytes.
    pub fn size(&self) -> u32 {
        4 * self.words.len() as u32
    }
}

/// Removes branches at the end of a block that only lead to the place after them. This has to be done before
/// waits and hazards: a branch is a wait state, and it ends a run of memory instructions.
pub fn drop_branches_to_next(body: &mut MachineBody) {
    // From the end, so that the blocks before an emptied block see that it is empty.
    let mut dropped = 0;
    for index in body.blocks.keys().rev() {
        let Some(last) = body.block(index).last() else { continue };
        // Nothing unless it is a branch.
        let target = BlockId::from_bits(last.inst.imm);
        let is_branch = matches!(last.inst.op.info().meaning, Meaning::Branch(_));
        if is_branch
            && target > index
            && iter_entity_range(index.next()..target.min(body.blocks.next_key()))
                .all(|b| body.block(b).is_empty())
        {
            body.blocks[index].end = InstId::from_u32(body.blocks[index].end.as_u32() - 1);
            dropped += 1;
        }
    }
    if dropped == 0 {
        return;
    }
    let mut kept = InstId::new(0);
    for block in body.blocks.values_mut() {
        let insts = block.insts();
        block.start = kept;
        for inst in insts {
            body.insts[kept] = body.insts[inst];
            kept = kept.next();
        }
        block.end = kept;
    }
    body.insts.truncate(kept);
}

/// Encodes `body` for `arch`. Its branches hold block indexes; `code` is emptied first.
pub fn encode_body(body: &MachineBody, arch: Arch, code: &mut Code) -> Result<(), CodeError> {
    code.words.clear();
    // Most instructions take two words.
    code.words.reserve(2 * body.insts.len());
    code.offsets.clear();
    code.blocks.clear();
    code.branches.clear();
    let Code { words, offsets, blocks, branches } = code;
    for block in body.blocks.keys() {
        blocks.push(4 * words.len() as u32);
        for i in body.block(block) {
            let index = offsets.push(4 * words.len() as u32);
            let encoded = if matches!(i.inst.op.info().meaning, Meaning::Branch(_)) {
                branches.push(index);
                encode(&i.inst.imm(0), arch, words)
            } else {
                encode(&i.inst, arch, words)
            };
            encoded.map_err(|error| CodeError::Encode { inst: index, error })?;
        }
    }
    // Where blocks are is known now. A branch has one word.
    for &index in &*branches {
        let inst = &body.insts[index].inst;
        let target = BlockId::from_bits(inst.imm);
        let target = *blocks.get(target).ok_or(CodeError::BranchTarget { inst: index, target })?;
        let distance = (i64::from(target) - i64::from(offsets[index]) - 4) / 4;
        let simm16 = i16::try_from(distance).map_err(|_| CodeError::BranchRange { inst: index, distance })?;
        encode(&inst.imm(u32::from(simm16 as u16)), arch, words)
            .map_err(|error| CodeError::Encode { inst: index, error })?;
        // The new word takes the place of the one without a distance.
        words.swap_remove(offsets[index] as usize / 4);
    }
    Ok(())
}
