//! Writing machine code: instructions, virtual registers, blocks, and small arithmetic that folds constants.

use std::ops::Range;

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::late_constants::LateConstants;
use super::late_writes::LateWrites;
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand, VReg};
use crate::codegen::lower::lowered::{Lowered, NodeSpan};
use crate::codegen::machine::late_uses::put_uses_last;
use crate::codegen::machine::{
    Block, BlockId, InstId, MachineBody, MachineInst, RegisterFile, VirtualRegister,
};
use crate::index::{Neighbours, Stretches};

/// A value that is the same in all lanes, or an element: of 32 bits, unless the dtype that goes with it says
/// 64.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scalar {
    /// Known now; of 32 bits the low ones count.
    Const(i64),
    /// In a register.
    Reg(Operand),
}

impl Scalar {
    /// Zero.
    pub(crate) const ZERO: Scalar = Scalar::Const(0);

    /// The operand of an instruction, and its literal.
    pub(crate) fn source(self) -> (Operand, u32) {
        match self {
            Scalar::Const(value) => (Operand::constant(value as u32), value as u32),
            Scalar::Reg(operand) => (operand, 0),
        }
    }
}

/// How far a body has been written.
#[derive(Copy, Clone)]
pub(crate) struct BodyMark {
    pub(crate) inst: InstId,
    pub(crate) register: VReg,
}

/// A branch to a block that is not there yet: the last instruction of its own block.
#[derive(Copy, Clone)]
pub(crate) struct Branch {
    inst: InstId,
    block: BlockId,
}

/// Appends to a body.
pub(crate) struct Emitter<'a> {
    /// The body being written.
    pub body: &'a mut MachineBody,
    /// Author location of the instructions that follow.
    pub source: u32,
    /// Results apart from the code.
    pub out: Lowered,
    /// LDS writes that are put off.
    pub(crate) late: LateWrites,
    /// Initial values that are put off.
    pub(crate) late_constants: LateConstants,
    /// Registers that arguments are loaded into, and how many for each.
    pub(crate) loaded_arguments: SmallVec<[(Operand, u32); 4]>,
}

impl<'a> Emitter<'a> {
    /// Starts an empty body with one open block. `out` says what has to be noted.
    pub(crate) fn new(body: &'a mut MachineBody, out: Lowered) -> Emitter<'a> {
        body.clear();
        let start = body.insts.next_key();
        body.blocks.push(Block { start, end: start, successors: [None; 2] });
        Emitter {
            body,
            source: u32::MAX,
            out,
            late: LateWrites::default(),
            late_constants: LateConstants::default(),
            loaded_arguments: SmallVec::new(),
        }
    }

    /// A fresh virtual register (or tuple).
    pub(crate) fn register(&mut self, file: RegisterFile, width: u32) -> Operand {
        let register = VirtualRegister { file, width: width as u8 };
        Operand::virtual_register(self.body.registers.push(register), 0)
    }

    /// A fresh SGPR tuple.
    pub(crate) fn sgpr(&mut self, width: u32) -> Operand {
        self.register(RegisterFile::Sgpr, width)
    }

    /// A fresh VGPR tuple.
    pub(crate) fn vgpr(&mut self, width: u32) -> Operand {
        self.register(RegisterFile::Vgpr, width)
    }

    /// How far the body has been written.
    pub(crate) fn mark(&self) -> BodyMark {
        BodyMark { inst: self.body.insts.next_key(), register: self.body.registers.next_key() }
    }

    /// Brings a vector result of `width` registers to `to`, which no instruction since `mark` names: a result
    /// made since then is computed there directly, and may not be named any more; an older one is copied.
    /// Otherwise half of the instructions of a long element-wise kernel would be copies.
    pub(crate) fn deliver(&mut self, mark: BodyMark, result: Operand, to: Operand, width: u32) {
        let whole = VirtualRegister { file: RegisterFile::Vgpr, width: width as u8 };
        let made = |(id, _): (VReg, u32)| id >= mark.register && self.body.registers.get(id) == Some(&whole);
        if !result.as_virtual().is_some_and(made) {
            for at in 0..width {
                self.op(Opcode::VMovB32, &[to.offset(at), result.offset(at)]);
            }
            return;
        }
        let end = self.body.insts.next_key();
        for i in self.body.insts.range_mut(mark.inst..end) {
            for operand in &mut i.inst.operands {
                if let Some(at) = (0..width).find(|&at| *operand == result.offset(at)) {
                    *operand = to.offset(at);
                }
            }
        }
        if let Some((id, _)) = result.as_virtual()
            && id.next() == self.body.registers.next_key()
        {
            self.body.registers.truncate(id);
        }
    }

    /// Register file of a virtual register.
    pub(crate) fn file(&self, operand: Operand) -> RegisterFile {
        operand
            .as_virtual()
            .and_then(|(id, _)| self.body.registers.get(id))
            .map_or(RegisterFile::Vgpr, |r| r.file)
    }

    /// Notes the instructions from `start` on as those of a node, if that is asked for.
    pub(crate) fn note_node(&mut self, node: Entity, start: InstId) {
        self.note_span(node, start..self.body.insts.next_key());
    }

    /// The same of other instructions.
    pub(crate) fn note_span(&mut self, node: Entity, insts: Range<InstId>) {
        if let Some(nodes) = &mut self.out.nodes {
            nodes.push(NodeSpan { node, insts });
        }
    }

    /// Notes that what comes next is ordered by cost, up to what keeps its place.
    pub(crate) fn note_interleaved(&mut self) {
        self.out.loops.interleaved.push(self.body.insts.next_key());
    }

    /// Notes that the open block is left out most of the time.
    pub(crate) fn note_seldom(&mut self) {
        self.out.loops.seldom.push(self.current_block());
    }

    /// True if the instructions of a node stay together.
    pub(super) fn keeps_nodes(&self) -> bool {
        self.out.nodes.is_some()
    }

    /// Puts off LDS writes to a buffer, all but the first of the instructions from `first` on.
    pub(crate) fn put_off_writes(&mut self, buffer: Entity, first: InstId) {
        if !self.keeps_nodes() {
            self.late.put_off(self.body, buffer, first);
        }
    }

    /// Appends one of the writes that were put off.
    pub(crate) fn write_next_late(&mut self) {
        self.late.write_one(self.body);
    }

    /// Appends all of the writes that were put off.
    pub(crate) fn write_all_late(&mut self) {
        self.late.write_all(self.body);
    }

    /// Puts off the constants that the instructions from `first` on bring into registers.
    pub(crate) fn put_off_constants(&mut self, first: InstId) {
        self.late_constants.put_off(self.body, first);
    }

    /// Puts what depends on loaded arguments after the other instructions since `mark`, if these are one
    /// block.
    pub(crate) fn put_uses_of_arguments_last(&mut self, mark: BodyMark) {
        let is_open = self.body.blocks.values().next_back().is_some_and(|block| block.start <= mark.inst);
        if is_open {
            put_uses_last(self.body, mark.inst, &self.loaded_arguments);
        }
    }

    /// Appends the constants that were put off.
    pub(crate) fn write_late_constants(&mut self) {
        self.late_constants.write(self.body);
    }

    /// Appends an instruction.
    pub(crate) fn push(&mut self, inst: Inst) {
        self.body.insts.push(MachineInst { inst, source: self.source });
    }

    /// Appends a barrier that a node asks for, or the end of a persistent kernel's tile.
    pub(crate) fn barrier(&mut self, node: Option<Entity>, imm: u32) {
        self.out.reasons.barriers.push(node);
        self.push(Inst::new(Opcode::SBarrier, &[]).imm(imm));
    }

    /// Appends an instruction without immediate.
    pub(crate) fn op(&mut self, op: Opcode, operands: &[Operand]) {
        self.push(Inst::new(op, operands));
    }

    /// Appends `op dst, sources..`, at most one of which needs a literal.
    pub(crate) fn with(&mut self, op: Opcode, dst: Operand, sources: &[Scalar]) {
        let mut operands = [Operand::NONE; 4];
        operands[0] = dst;
        let mut imm = 0;
        for (slot, source) in operands[1..].iter_mut().zip(sources) {
            let (operand, literal) = source.source();
            *slot = operand;
            if operand == Operand::LITERAL {
                imm = literal;
            }
        }
        self.push(Inst::new(op, &operands[..=sources.len()]).imm(imm));
    }

    /// Appends an instruction with modifiers.
    pub(crate) fn modified(&mut self, op: Opcode, operands: &[Operand], modifiers: Modifiers) {
        self.push(Inst::new(op, operands).modifiers(modifiers));
    }

    /// The block that is open.
    pub(crate) fn current_block(&self) -> BlockId {
        self.body.blocks.next_key().before().unwrap_or_default()
    }

    /// Closes the open block, which control may leave to `target` as well as by falling through, and opens
    /// the next one. Returns the new block.
    pub(crate) fn next_block(&mut self, target: Option<BlockId>) -> BlockId {
        let at = self.body.insts.next_key();
        let next = self.body.blocks.next_key();
        if let Some((_, open)) = self.body.blocks.last_mut() {
            open.end = at;
            open.successors = [Some(next), target];
        }
        self.body.blocks.push(Block { start: at, end: at, successors: [None; 2] })
    }

    /// Ends the kernel.
    pub(crate) fn finish(&mut self) {
        self.op(Opcode::SEndpgm, &[]);
        let at = self.body.insts.next_key();
        if let Some((_, open)) = self.body.blocks.last_mut() {
            open.end = at;
        }
    }

    /// Ends the open block with a branch whose target becomes known later, and opens the next one. Returns
    /// what to [`Emitter::patch`].
    pub(crate) fn branch_ahead(&mut self, op: Opcode) -> Branch {
        let branch = Branch { inst: self.body.insts.next_key(), block: self.current_block() };
        self.op(op, &[]);
        self.next_block(None);
        branch
    }

    /// Points a branch to `target`.
    pub(crate) fn patch(&mut self, branch: Branch, target: BlockId) {
        self.body.insts[branch.inst].inst.imm = target.as_u32();
        self.body.blocks[branch.block].successors[1] = Some(target);
    }

    /// The scalar in an SGPR.
    pub(crate) fn in_sgpr(&mut self, value: Scalar) -> Operand {
        match value {
            Scalar::Reg(register) => register,
            Scalar::Const(_) => {
                let register = self.sgpr(1);
                self.with(Opcode::SMovB32, register, &[value]);
                register
            }
        }
    }

    /// `a + b`, wrapping.
    pub(crate) fn add(&mut self, a: Scalar, b: Scalar) -> Scalar {
        match (a, b) {
            (Scalar::Const(x), Scalar::Const(y)) => Scalar::Const(x.wrapping_add(y)),
            (Scalar::Const(0), other) | (other, Scalar::Const(0)) => other,
            _ => self.binary(Opcode::SAddU32, a, b),
        }
    }

    /// `a - b`, wrapping.
    pub(crate) fn sub(&mut self, a: Scalar, b: Scalar) -> Scalar {
        match (a, b) {
            (Scalar::Const(x), Scalar::Const(y)) => Scalar::Const(x.wrapping_sub(y)),
            (other, Scalar::Const(0)) => other,
            _ => self.binary(Opcode::SSubU32, a, b),
        }
    }

    /// The low 32 bits of `a * b`.
    pub(crate) fn mul(&mut self, a: Scalar, b: Scalar) -> Scalar {
        match (a, b) {
            (Scalar::Const(x), Scalar::Const(y)) => Scalar::Const(x.wrapping_mul(y)),
            (Scalar::Const(0), _) | (_, Scalar::Const(0)) => Scalar::ZERO,
            (Scalar::Const(1), other) | (other, Scalar::Const(1)) => other,
            (Scalar::Const(x), other) | (other, Scalar::Const(x))
                if x > 0 && (x as u64).is_power_of_two() =>
            {
                self.binary(Opcode::SLshlB32, other, Scalar::Const(i64::from(x.trailing_zeros())))
            }
            _ => self.binary(Opcode::SMulI32, a, b),
        }
    }

    /// A two-operand scalar instruction.
    pub(crate) fn binary(&mut self, op: Opcode, a: Scalar, b: Scalar) -> Scalar {
        // Two different literals do not fit in one instruction.
        let wide = |s: Scalar| s.source().0 == Operand::LITERAL;
        let a = if wide(a) && wide(b) { Scalar::Reg(self.in_sgpr(a)) } else { a };
        let register = self.sgpr(1);
        self.with(op, register, &[a, b]);
        Scalar::Reg(register)
    }

    /// `a / d` for `0 <= a < 2^31` and a constant `d > 0`.
    pub(crate) fn divide(&mut self, a: Scalar, d: u32) -> Scalar {
        self.divide_up_to(a, d, MOST_DIVIDED)
    }

    /// `a / d` for `0 <= a <= most`, below 2^31, and a constant `d > 0`.
    pub(crate) fn divide_up_to(&mut self, a: Scalar, d: u32, most: u32) -> Scalar {
        if let Scalar::Const(x) = a {
            return Scalar::Const(x.div_euclid(i64::from(d)));
        }
        if d.is_power_of_two() {
            if d == 1 {
                return a;
            }
            return self.binary(Opcode::SLshrB32, a, Scalar::Const(i64::from(d.ilog2())));
        }
        let (magic, shift) = magic_divisor(d, most);
        let high = self.binary(Opcode::SMulHiU32, a, Scalar::Const(i64::from(magic)));
        if shift == 0 { high } else { self.binary(Opcode::SLshrB32, high, Scalar::Const(i64::from(shift))) }
    }

    /// `a / d` rounded down for any `a` of 32 bits with a sign and a constant `d > 0`.
    ///
    /// The complement of a negative number is `-1 - a`, which is not negative, and the complement of its
    /// quotient is that of `a`.
    pub(crate) fn floor_divide(&mut self, a: Scalar, d: u32) -> Scalar {
        if let Scalar::Const(x) = a {
            return Scalar::Const(x.div_euclid(i64::from(d)));
        }
        if d == 1 {
            return a;
        }
        if d.is_power_of_two() {
            return self.binary(Opcode::SAshrI32, a, Scalar::Const(i64::from(d.ilog2())));
        }
        let sign = self.binary(Opcode::SAshrI32, a, Scalar::Const(31));
        let positive = self.binary(Opcode::SXorB32, a, sign);
        let quotient = self.divide(positive, d);
        self.binary(Opcode::SXorB32, quotient, sign)
    }
}

/// The largest dividend.
pub(crate) const MOST_DIVIDED: u32 = 0x7fff_ffff;

/// Multiplier and shift with which `mul_hi(a, multiplier) >> shift` is `a / d` for `a` up to `most`, which is
/// below 2^31; `d` is no power of two.
///
/// With `l = ceil(log2 d)` and `m = floor(2^(31+l) / d) + 1`, which fits in 32 bits, `(a * m) >> (31 + l)` is
/// the quotient for every `a` below 2^31, because `m * d` exceeds `2^(31+l)` by at most `d <= 2^l`. In the
/// same way `m = floor(2^32 / d) + 1` gives the quotient without a shift as long as `a * d` is below 2^32.
pub(crate) fn magic_divisor(d: u32, most: u32) -> (u32, u32) {
    if u64::from(most) * u64::from(d) < 1 << 32 {
        return (((1u64 << 32) / u64::from(d) + 1) as u32, 0);
    }
    let l = d.ilog2() + 1;
    let magic = (1u64 << (31 + l)) / u64::from(d) + 1;
    (magic as u32, l - 1)
}

#[cfg(test)]
mod tests {
    use super::{MOST_DIVIDED, magic_divisor};

    #[test]
    fn division_by_multiplication_is_exact_up_to_the_largest_dividend() {
        for d in (3u32..2000).chain([4095, 65_537, 1 << 30 | 1, 0x7fff_ffff]).filter(|d| !d.is_power_of_two())
        {
            for most in [MOST_DIVIDED, (u32::MAX / d).min(MOST_DIVIDED), 5 * d.min(1000)] {
                let (magic, shift) = magic_divisor(d, most);
                let quotient = |a: u32| ((u64::from(a) * u64::from(magic)) >> 32) as u32 >> shift;
                let top = most / d * d;
                for a in [0, 1, d - 1, d, d + 1, 2 * (d / 2), top, top.saturating_sub(1), most] {
                    if a <= most {
                        assert_eq!(quotient(a), a / d, "{a} / {d}");
                    }
                }
            }
        }
    }

    #[test]
    fn small_dividends_need_no_shift() {
        assert_eq!(magic_divisor(144, 2304).1, 0);
        assert_ne!(magic_divisor(144, MOST_DIVIDED).1, 0);
    }
}
