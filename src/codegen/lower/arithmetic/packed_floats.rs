//! Arithmetic of f32 on two elements at once.
//!
//! Code of a node is written element by element. Where two neighbouring elements have the same code, it is
//! written anew for both: sums, products and fused products become packed instructions, which take as long as
//! one of the two (CDNA3 ISA guide, "Packed math"), and the others stand side by side. Registers of the first
//! element that a packed instruction names become pairs, whose upper halves replace those of the second.
//!
//! A packed instruction never runs beside a matrix instruction (`DeviceParameter::PackedAfterMatrix`), so
//! loops with products keep the code of single elements.

use smallvec::SmallVec;

use super::ArithmeticLayer;
use crate::codegen::isa::{Implicit, Inst, Modifiers, Opcode, Operand, Role, Unit, VReg};
use crate::codegen::lower::emit::emitter::{BodyMark, Scalar};
use crate::codegen::machine::{InstId, MachineBody, MachineInst, RegisterFile, VirtualRegister};
use crate::index::{Neighbours, Stretches};
use crate::ir::node::*;
use crate::ir::types::DType;
use cranelift_entity::{EntityRef, iter_entity_range};

/// An instruction for one element, that for two, and the sources whose signs change on the way.
const PACKED: [(Opcode, Opcode, u32); 5] = [
    (Opcode::VMulF32, Opcode::VPkMulF32, 0),
    (Opcode::VAddF32, Opcode::VPkAddF32, 0),
    (Opcode::VSubF32, Opcode::VPkAddF32, 0b10),
    (Opcode::VSubrevF32, Opcode::VPkAddF32, 0b01),
    (Opcode::VFmaF32, Opcode::VPkFmaF32, 0),
];

/// Two moves fill a pair of registers with one value: this is done where at least so many pairs of elements
/// use it.
const PAIRS_FOR_A_COPY: u32 = 3;

/// One step of the code for two elements: instructions by their place in the code of each.
#[derive(Copy, Clone)]
enum PairStep {
    /// A constant that only the first element's code makes, because the second one's finds it there.
    Constant(InstId),
    /// The same instruction for each.
    Each(InstId, InstId),
    /// One instruction for both, and the number of its operands.
    Packed(InstId, usize),
}

/// What a register of the first element's code is to the second one's.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Partner {
    /// Nothing so far.
    Unknown,
    /// The same register.
    Shared,
    /// This one.
    Register(VReg),
    /// This one, and the two become a pair.
    Pair(VReg),
}

/// What both halves of an operand are.
#[derive(Copy, Clone, PartialEq, Eq)]
enum PairOperand {
    /// Neighbouring registers, of which this is the first.
    Registers(Operand),
    /// A constant that instructions have room for.
    Inline(Operand),
    /// Another constant.
    Constant(u32),
    /// One register for both.
    Repeated(Operand),
}

type PairOperands = SmallVec<[PairOperand; 4]>;

/// The code of two elements while it is joined. The memory is kept from one pair to the next.
#[derive(Default)]
pub(super) struct ElementPair {
    steps: Vec<PairStep>,
    /// For each register of the first element's code.
    partners: Vec<Partner>,
    /// For each register of the second element's code, that of the first.
    firsts: Vec<Option<VReg>>,
    /// Operands of packed instructions: the result, then the sources.
    packed: Vec<PairOperands>,
    /// For each register of the second element's code, what it is called in the joined code.
    names: Vec<Operand>,
    /// The code of each element.
    old: Vec<MachineInst>,
    /// Registers whose value is in both halves of a pair, for the node that is being written.
    copies: SmallVec<[(Operand, Operand); 4]>,
}

/// Where the code of two elements begins and ends.
struct PairRange {
    first: BodyMark,
    second: BodyMark,
    end: BodyMark,
}

impl PairRange {
    /// The place of a register among those of the first element's code.
    fn in_first(&self, register: VReg) -> Option<usize> {
        let own = register >= self.first.register && register < self.second.register;
        own.then(|| register.index() - self.first.register.index())
    }

    /// The same for the second one's.
    fn in_second(&self, register: VReg) -> Option<usize> {
        let own = register >= self.second.register && register < self.end.register;
        own.then(|| register.index() - self.second.register.index())
    }
}

impl ElementPair {
    fn begin(&mut self, range: &PairRange) {
        let count = |from: VReg, to: VReg| to.index() - from.index();
        self.steps.clear();
        self.packed.clear();
        self.partners.clear();
        self.partners.resize(count(range.first.register, range.second.register), Partner::Unknown);
        self.firsts.clear();
        self.firsts.resize(count(range.second.register, range.end.register), None);
    }

    /// Whether two instructions have the same place in the code of the one and the other element; if so,
    /// their registers are partners. They need not be the same: an upper half of a register is widened by
    /// another instruction than a lower one.
    fn takes(&mut self, left: &Inst, right: &Inst, range: &PairRange, body: &MachineBody) -> bool {
        if [left, right]
            .into_iter()
            .map(|inst| inst.op.info())
            .any(|info| !matches!(info.unit, Unit::Valu | Unit::Trans) || info.writes != Implicit::NONE)
        {
            return false;
        }
        let mut new = SmallVec::<[(usize, usize, VReg, VReg); 4]>::new();
        for (at, (&a, &b)) in left.operands.iter().zip(&right.operands).enumerate() {
            if a.is_none() && b.is_none() {
                break;
            }
            let (Some((a, part)), Some((b, other_part))) = (a.as_virtual(), b.as_virtual()) else {
                // Registers that have their numbers, such as VCC, serve one element after the other.
                if !a.is_constant() || !b.is_constant() {
                    return false;
                }
                continue;
            };
            let Some(place) = range.in_first(a) else {
                let written_twice = (a, part) == (b, other_part) && left.role(at) != Role::Use;
                if range.in_second(b).is_some() || written_twice {
                    return false;
                }
                continue;
            };
            let same = match (self.partners[place], range.in_second(b)) {
                (Partner::Shared, _) => a == b,
                (Partner::Register(partner) | Partner::Pair(partner), _) => partner == b,
                (Partner::Unknown, Some(second)) => {
                    new.push((place, second, a, b));
                    self.firsts[second].is_none() && body.registers[a] == body.registers[b]
                }
                (Partner::Unknown, None) => false,
            };
            if !same || part != other_part {
                return false;
            }
        }
        for (place, second, a, b) in new {
            self.partners[place] = Partner::Register(b);
            self.firsts[second] = Some(a);
        }
        true
    }

    /// Makes a register of the first element's code and its partner a pair.
    fn widen(&mut self, register: Operand, range: &PairRange) {
        let place = register.as_virtual().and_then(|(id, _)| range.in_first(id));
        if let Some(place) = place
            && let Partner::Register(partner) = self.partners[place]
        {
            self.partners[place] = Partner::Pair(partner);
        }
    }

    /// What an operand of the second element's code is called in the joined code.
    fn name(&self, operand: Operand, range: &PairRange) -> Operand {
        let own = operand.as_virtual().and_then(|(id, part)| Some((range.in_second(id)?, part)));
        own.map_or(operand, |(place, part)| self.names[place].offset(part))
    }

    /// Makes pairs of registers, and gives those that are left of the second element's code new numbers.
    fn name_registers(&mut self, range: &PairRange, body: &mut MachineBody) {
        self.names.clear();
        let mut next = range.second.register;
        for (place, id) in iter_entity_range(range.second.register..range.end.register).enumerate() {
            let first = self.firsts[place].filter(|&first| {
                let place = range.in_first(first);
                place.is_some_and(|place| self.partners[place] == Partner::Pair(id))
            });
            if let Some(first) = first {
                body.registers[first].width = 2;
                self.names.push(Operand::virtual_register(first, 1));
                continue;
            }
            body.registers[next] = body.registers[id];
            self.names.push(Operand::virtual_register(next, 0));
            next = next.next();
        }
        body.registers.truncate(next);
    }

    /// True if the joined code reads the register itself.
    fn reads(&self, register: VReg, range: &PairRange) -> bool {
        let is = |operand: &Operand| names(*operand, register).is_some();
        let single = self.steps.iter().any(|step| match *step {
            PairStep::Each(first, _) => self.old(first, range).operands[1..].iter().any(is),
            PairStep::Packed(..) | PairStep::Constant(_) => false,
        });
        let repeated = |operand: &PairOperand| matches!(operand, PairOperand::Repeated(of) if is(of));
        single || self.packed.iter().flatten().any(repeated)
    }

    /// An instruction of the code of each.
    fn old(&self, inst: InstId, range: &PairRange) -> &Inst {
        &self.old[inst.index() - range.first.inst.index()].inst
    }
}

impl ArithmeticLayer<'_> {
    /// True if elements of a node may be computed in pairs, as far as that depends on them.
    pub(crate) fn may_pair_elements(&mut self, op: Op, dtypes: [DType; 2], elements: u32) -> bool {
        self.element_pair.copies.clear();
        let arithmetic = matches!(op, Op::Unary(_) | Op::Binary(_) | Op::Ternary(_));
        let narrow = |dtype: DType| dtype.is_float() && dtype.bits() <= 32;
        let has = PACKED.iter().all(|row| self.target.executes(row.1));
        elements > 1 && arithmetic && dtypes.into_iter().all(narrow) && has
    }

    /// Joins the code of two neighbouring elements, which begins at `first` and at `second`, if that makes it
    /// shorter; false if not. The node has `pairs` of them. `result` is the register of the second one's
    /// result if it is not delivered yet, and may have another name after that.
    pub(crate) fn pair_elements(
        &mut self,
        [first, second]: [BodyMark; 2],
        pairs: u32,
        result: Option<&mut Operand>,
    ) -> bool {
        let range = PairRange { first, second, end: self.emitter.mark() };
        let code = self.emitter.body.insts.range(first.inst..second.inst);
        if !code.iter().any(|code| PACKED.iter().any(|row| row.0 == code.inst.op)) {
            return false;
        }
        let mut pair = std::mem::take(&mut self.element_pair);
        let joined = self.align(&mut pair, &range) && self.choose_packed(&mut pair, &range, pairs);
        if joined {
            self.write_pair(&mut pair, &range);
            if let Some(result) = result {
                *result = pair.name(*result, &range);
            }
        }
        self.element_pair = pair;
        joined
    }

    /// Finds which instructions of the two are the same; false if the code differs.
    fn align(&self, pair: &mut ElementPair, range: &PairRange) -> bool {
        let body = &*self.emitter.body;
        pair.begin(range);
        let mut second = range.second.inst;
        for first in iter_entity_range(range.first.inst..range.second.inst) {
            let left = &body.insts[first].inst;
            let right = (second < range.end.inst).then(|| &body.insts[second].inst);
            if right.is_some_and(|right| pair.takes(left, right, range, body)) {
                pair.steps.push(PairStep::Each(first, second));
                second = second.next();
            } else if let Some(place) = constant_of(left).and_then(|register| range.in_first(register)) {
                pair.partners[place] = Partner::Shared;
                pair.steps.push(PairStep::Constant(first));
            } else {
                return false;
            }
        }
        second == range.end.inst
    }

    /// Decides which instructions are packed, and so which registers are pairs; false if the code would not
    /// be shorter.
    fn choose_packed(&self, pair: &mut ElementPair, range: &PairRange, pairs: u32) -> bool {
        let mut prepared = PairOperands::new();
        for at in 0..pair.steps.len() {
            let PairStep::Each(first, second) = pair.steps[at] else { continue };
            let insts = &self.emitter.body.insts;
            let both = [&insts[first].inst, &insts[second].inst];
            let Some(operands) = self.packed_operands(pair, both, range, pairs) else { continue };
            for &operand in &operands {
                match operand {
                    PairOperand::Registers(register) => pair.widen(register, range),
                    PairOperand::Inline(_) => {}
                    PairOperand::Constant(_) | PairOperand::Repeated(_) if prepared.contains(&operand) => {}
                    PairOperand::Constant(_) | PairOperand::Repeated(_) => prepared.push(operand),
                }
            }
            pair.steps[at] = PairStep::Packed(first, pair.packed.len());
            pair.packed.push(operands);
        }
        let cost = |operand: &PairOperand| match *operand {
            PairOperand::Constant(bits) => u32::from(!self.constant_pairs.iter().any(|c| c.0 == bits)),
            PairOperand::Repeated(register) if pair.copies.iter().any(|copy| copy.0 == register) => 0,
            PairOperand::Repeated(_) => 2,
            PairOperand::Registers(_) | PairOperand::Inline(_) => 0,
        };
        pair.packed.len() as u32 * pairs > prepared.iter().map(cost).sum()
    }

    /// The operands of the packed instruction for two, if there is one: the result, then the sources.
    fn packed_operands(
        &self,
        pair: &ElementPair,
        [left, right]: [&Inst; 2],
        range: &PairRange,
        pairs: u32,
    ) -> Option<PairOperands> {
        PACKED.iter().find(|row| row.0 == left.op)?;
        if (left.op, left.imm, left.modifiers) != (right.op, right.imm, right.modifiers) {
            return None;
        }
        if !left.modifiers.without_e64().within(Modifiers::new().neg(0b111)) {
            return None;
        }
        let mut operands = PairOperands::new();
        let mut constants = 0;
        for (&a, &b) in left.operands.iter().zip(&right.operands).take_while(|(a, _)| !a.is_none()) {
            let operand = self.pair_operand(pair, [a, b], left.imm, range)?;
            match operand {
                PairOperand::Registers(_) => {}
                _ if operands.is_empty() => return None,
                PairOperand::Repeated(_) if pairs < PAIRS_FOR_A_COPY => return None,
                PairOperand::Constant(_) if !operands.contains(&operand) => constants += 1,
                PairOperand::Inline(_) | PairOperand::Constant(_) | PairOperand::Repeated(_) => {}
            }
            operands.push(operand);
        }
        // Vector instructions read one scalar register, or pair of them (CDNA3 ISA guide, "SGPR limits").
        (constants <= 1).then_some(operands)
    }

    /// What the operands of two instructions are together, unless they have nothing to do with each other.
    fn pair_operand(
        &self,
        pair: &ElementPair,
        [a, b]: [Operand; 2],
        literal: u32,
        range: &PairRange,
    ) -> Option<PairOperand> {
        if a.is_constant() {
            let constant =
                if a == Operand::LITERAL { PairOperand::Constant(literal) } else { PairOperand::Inline(a) };
            return (a == b).then_some(constant);
        }
        let (id, part) = a.as_virtual()?;
        if a == b {
            let known = self.constants.iter().chain(&self.constant_pairs).find(|constant| constant.1 == a);
            return Some(known.map_or(PairOperand::Repeated(a), |&(bits, _)| PairOperand::Constant(bits)));
        }
        let VirtualRegister { file, width } = self.emitter.body.registers[id];
        let become_pair = match range.in_first(id) {
            Some(place) => {
                width == 1 && matches!(pair.partners[place], Partner::Register(_) | Partner::Pair(_))
            }
            None => part.is_multiple_of(2) && a.offset(1) == b,
        };
        (file == RegisterFile::Vgpr && become_pair).then_some(PairOperand::Registers(a))
    }

    /// Writes the joined code in the place of that of each.
    fn write_pair(&mut self, pair: &mut ElementPair, range: &PairRange) {
        let body = &mut *self.emitter.body;
        pair.old.clear();
        pair.old.extend_from_slice(body.insts.range(range.first.inst..range.end.inst));
        body.insts.truncate(range.first.inst);
        pair.name_registers(range, body);
        for at in 0..pair.steps.len() {
            match pair.steps[at] {
                PairStep::Constant(inst) => {
                    let inst = *pair.old(inst, range);
                    let unread =
                        |register: &VReg| inst.op == Opcode::SMovB32 && !pair.reads(*register, range);
                    match constant_of(&inst).filter(unread) {
                        Some(unread) => self.constants.retain(|constant| names(constant.1, unread).is_none()),
                        None => self.emitter.push(inst),
                    }
                }
                PairStep::Each(first, second) => {
                    let mut insts = [*pair.old(first, range), *pair.old(second, range)];
                    insts[1].operands = insts[1].operands.map(|operand| pair.name(operand, range));
                    insts.into_iter().for_each(|inst| self.emitter.push(inst));
                }
                PairStep::Packed(first, operands) => {
                    let inst = *pair.old(first, range);
                    let operands = pair.packed[operands].clone();
                    self.write_packed(pair, &inst, &operands);
                }
            }
        }
    }

    fn write_packed(&mut self, pair: &mut ElementPair, single: &Inst, operands: &[PairOperand]) {
        let Some(&(_, op, negated)) = PACKED.iter().find(|row| row.0 == single.op) else { return };
        let mut all = SmallVec::<[Operand; 4]>::new();
        let mut low_halves = 0;
        for (at, operand) in operands.iter().enumerate() {
            // What is no pair of its own has the value in its lower half alone (as LLVM's SIInstructions.td
            // reads an inline constant, in the pattern of fcanonicalize).
            let (register, is_low) = match *operand {
                PairOperand::Registers(register) => (register, false),
                PairOperand::Repeated(register) => (self.repeated_register(pair, register), false),
                PairOperand::Inline(constant) => (constant, true),
                PairOperand::Constant(bits) => (self.constant_pair(bits), true),
            };
            low_halves |= u32::from(is_low) << at >> 1;
            all.push(register);
        }
        let signs = single.modifiers.get_neg() ^ negated;
        let modifiers = Modifiers::new().neg_lo(signs).neg_hi(signs).op_sel_hi_flip(low_halves);
        self.emitter.push(Inst::new(op, &all).modifiers(modifiers));
    }

    /// A register's value in both halves of a pair.
    fn repeated_register(&mut self, pair: &mut ElementPair, register: Operand) -> Operand {
        if let Some(&(_, copy)) = pair.copies.iter().find(|copy| copy.0 == register) {
            return copy;
        }
        let copy = self.emitter.vgpr(2);
        for half in [copy, copy.offset(1)] {
            self.emitter.op(Opcode::VMovB32, &[half, register]);
        }
        pair.copies.push((register, copy));
        copy
    }

    /// A pair of SGPRs with a constant in its lower half.
    fn constant_pair(&mut self, bits: u32) -> Operand {
        if let Some(&(_, pair)) = self.constant_pairs.iter().find(|constant| constant.0 == bits) {
            return pair;
        }
        let pair = self.emitter.sgpr(2);
        self.emitter.with(Opcode::SMovB64, pair, &[Scalar::Const(i64::from(bits))]);
        self.constant_pairs.push((bits, pair));
        pair
    }
}

/// The part of a register that an operand names.
pub(crate) fn names(operand: Operand, register: VReg) -> Option<u32> {
    operand.as_virtual().filter(|(id, _)| *id == register).map(|(_, part)| part)
}

/// The register that an instruction fills with a constant, or a copy of what is uniform.
fn constant_of(inst: &Inst) -> Option<VReg> {
    let moves = [Opcode::SMovB32, Opcode::VMovB32];
    moves.contains(&inst.op).then(|| inst.operands[0].as_virtual())?.map(|(id, _)| id)
}
