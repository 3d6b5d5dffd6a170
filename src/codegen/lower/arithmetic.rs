//! Element-wise operations, constants and casts.
//!
//! Elements of 64 bits are computed by `pairs`, those of f16 by `halves` where it has an instruction, and
//! everything else in 32 bits: elements of packed dtypes are widened, computed, and rounded back once. For
//! f16 and bf16 that gives the correctly rounded result of + - * and /, since f32 has more than twice their
//! precision and two bits to spare.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::emitter::Scalar;
use super::{Lowering, ValuePlace, float8};
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand, Sdwa, Select, Unused};
use crate::codegen::machine::RegisterFile;
use crate::codegen::target::Target;
use crate::float16::f16;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{self, Dim, Layout, Source};
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// Registers that single memory instructions fill, and the instructions that join them.
pub(super) struct LoadedParts {
    pub(super) registers: SmallVec<[Operand; 16]>,
    pub(super) joins: Vec<Inst>,
}

/// The most joins of narrow loads that may wait, so that loads overlap without filling the registers.
const MOST_UNFINISHED: usize = 24;

/// How a 32-bit operation reads and writes elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum OperationFamily {
    Float,
    Integer,
}

pub(super) fn family(dtype: DType) -> OperationFamily {
    if dtype.is_float() { OperationFamily::Float } else { OperationFamily::Integer }
}

/// Which element of an operand belongs to an element of a node: the one with the same coordinates.
pub(super) enum Matching<'a> {
    /// The layouts are alike.
    Same,
    /// Found through the layouts of both.
    Coordinates { own: &'a Layout, other: &'a Layout },
    /// One of them has no layout, and so one element.
    First,
}

impl Matching<'_> {
    /// The operand's element for element `at`.
    pub(super) fn element(&self, at: u32) -> u32 {
        let (own, other) = match *self {
            Matching::Same => return at,
            Matching::Coordinates { own, other } => (own, other),
            Matching::First => return 0,
        };
        let place = layout::Place { register: at, ..layout::Place::default() };
        let coordinate = |dim: Dim| own.coordinate(dim, place);
        let (mut index, mut weight) = (0, 1);
        for mode in other.of_source(Source::Register) {
            if let Some(dim) = mode.dim {
                index += coordinate(dim) / mode.stride % mode.extent * weight;
            }
            weight *= mode.extent;
        }
        index
    }
}

impl<'a> Lowering<'a> {
    /// Registers for pieces of `part` bytes of a value of `total` bytes in `value`, and the instructions that
    /// join them.
    pub(super) fn parts(&mut self, value: Operand, total: u32, part: u32) -> LoadedParts {
        let count = total / part;
        if part >= 4 {
            let registers = (0..count).map(|at| value.offset(at * part / 4)).collect();
            return LoadedParts { registers, joins: Vec::new() };
        }
        let per_register = (4 / part).min(count);
        let mut parts = LoadedParts { registers: SmallVec::new(), joins: Vec::new() };
        for dword in 0..total.div_ceil(4) {
            let dst = value.offset(dword);
            if per_register == 1 {
                parts.registers.push(dst);
                continue;
            }
            let pieces: SmallVec<[Operand; 4]> = (0..per_register).map(|_| self.emitter.vgpr(1)).collect();
            let mut pending = pieces.clone();
            let mut shift = part * 8;
            // Neighbours join to pairs, pairs to quadruples.
            while pending.len() > 1 {
                let last = pending.len() == 2;
                pending = pending
                    .chunks(2)
                    .map(|pair| {
                        let joined = if last { dst } else { self.emitter.vgpr(1) };
                        let amount = Operand::constant(shift);
                        let operands = [joined, pair[1], amount, pair[0]];
                        parts.joins.push(Inst::new(Opcode::VLshlOrB32, &operands));
                        joined
                    })
                    .collect();
                shift *= 2;
            }
            parts.registers.extend(pieces);
        }
        parts
    }

    /// The same where each element of `bytes` bytes that is loaded is `repeats` elements of the value.
    pub(super) fn repeated_parts(
        &mut self,
        value: Operand,
        total: u32,
        part: u32,
        [bytes, repeats]: [u32; 2],
    ) -> LoadedParts {
        let count = total / (part * repeats);
        let registers: SmallVec<[Operand; 16]> =
            (0..count).map(|_| self.emitter.vgpr(part.div_ceil(4))).collect();
        let mut joins = Vec::new();
        // The register and the byte in it that a byte of the value is.
        let source = |at: u32| {
            let byte = at / (bytes * repeats) * bytes + at % bytes;
            (registers[(byte / part) as usize].offset(byte % part / 4), byte % part % 4)
        };
        for dword in 0..total.div_ceil(4) {
            let places = 4 * dword..(4 * dword + 4).min(total);
            let (first, last) = (source(places.start).0, source(places.end - 1).0);
            // Bytes of the second operand, those of the first one from 4 on, and zero (ISA, V_PERM_B32).
            let mut selector = 0x0c0c_0c0c;
            for (at, place) in places.enumerate() {
                let (register, byte) = source(place);
                let chosen = if register == first { byte } else { 4 + byte };
                selector = selector & !(0xff << (8 * at)) | chosen << (8 * at);
            }
            let selector = self.constant_sgpr(selector);
            joins.push(Inst::new(Opcode::VPermB32, &[value.offset(dword), last, first, selector]));
        }
        LoadedParts { registers, joins }
    }

    /// Notes instructions that finish the value of `node` before its first use. When too many registers wait
    /// for that, the values loaded first are finished now.
    pub(super) fn finish_later(&mut self, node: Entity, joins: Vec<Inst>) {
        if joins.is_empty() {
            return;
        }
        self.unfinished[node.index_u32() as usize] = joins;
        self.finishing.push_back(node);
        let mut waiting: usize =
            self.finishing.iter().map(|n| self.unfinished[n.index_u32() as usize].len()).sum();
        while waiting > MOST_UNFINISHED
            && self.finishing.len() > 1
            && let Some(first) = self.finishing.pop_front()
        {
            waiting -= self.unfinished[first.index_u32() as usize].len();
            self.finish(first);
        }
    }

    /// Emits the remaining instructions for the value of `node`.
    pub(super) fn finish(&mut self, node: Entity) {
        for inst in std::mem::take(&mut self.unfinished[node.index_u32() as usize]) {
            self.emitter.push(inst);
        }
    }

    /// Emits what remains for all values. What follows may be left out or repeated, and a value is finished
    /// once for all of its uses.
    pub(super) fn finish_all(&mut self) {
        while let Some(node) = self.finishing.pop_front() {
            self.finish(node);
        }
    }

    /// Forgets what would finish values that nothing uses any more.
    pub(super) fn drop_unfinished(&mut self) {
        while let Some(first) = self.finishing.pop_front() {
            self.unfinished[first.index_u32() as usize].clear();
        }
    }

    pub(super) fn set_place(&mut self, node: Entity, place: ValuePlace) {
        self.note_contents(node, &place);
        self.places[node.index_u32() as usize] = Some(place);
    }

    pub(super) fn place(&self, node: Entity) -> Result<&ValuePlace, Diagnostic> {
        let place = self.places.get(node.index_u32() as usize).and_then(Option::as_ref);
        place.ok_or_else(|| self.bug("a value is used before it is computed"))
    }

    /// A value of `elements` elements in VGPRs, constants spread out.
    pub(super) fn in_registers(
        &mut self,
        node: Entity,
        elements: u32,
        bytes: u32,
    ) -> Result<Operand, Diagnostic> {
        self.finish(node);
        match *self.place(node)? {
            ValuePlace::Registers(registers) => Ok(registers),
            ValuePlace::Scattered(first) => Ok(self.gathered(first, (elements * bytes).div_ceil(4))),
            ValuePlace::Constant(bits) => {
                let width = (elements * bytes).div_ceil(4);
                let registers = self.emitter.vgpr(width);
                for at in 0..width {
                    let value = constant_register(bits, at);
                    self.emitter.with(Opcode::VMovB32, registers.offset(at), &[value]);
                }
                Ok(registers)
            }
            ValuePlace::Uniform(register) => {
                let width = bytes.div_ceil(4);
                let copy = self.emitter.vgpr(width);
                for at in 0..width {
                    self.emitter.op(Opcode::VMovB32, &[copy.offset(at), register.offset(at)]);
                }
                Ok(copy)
            }
            ValuePlace::Comparison(_) | ValuePlace::Flags(_) => {
                Err(self.bug("a condition is used as a value"))
            }
        }
    }

    /// Element `at` of a value, widened to 32 bits unless it has 64: a constant, a VGPR or a pair, or the
    /// SGPRs of a scalar argument.
    pub(super) fn element(&mut self, node: Entity, at: u32, dtype: DType) -> Result<Scalar, Diagnostic> {
        self.finish(node);
        match *self.place(node)? {
            ValuePlace::Constant(bits) if dtype.bits() == 64 => Ok(Scalar::Const(bits as i64)),
            ValuePlace::Constant(bits) => Ok(Scalar::Const(i64::from(widened_constant(bits as u32, dtype)))),
            ValuePlace::Uniform(register) => Ok(Scalar::Reg(register)),
            // Only elements that fill registers are scattered.
            ValuePlace::Scattered(first) => {
                let at = first + at * dtype.bytes() / 4;
                Ok(Scalar::Reg(self.scattered[at as usize]))
            }
            ValuePlace::Comparison(_) | ValuePlace::Flags(_) => {
                Err(self.bug("a condition is used as a number"))
            }
            ValuePlace::Registers(registers) => {
                let bytes = dtype.bytes();
                let register = registers.offset(at * bytes / 4);
                let bit = at * bytes % 4 * 8;
                Ok(Scalar::Reg(self.widen(register, bit, dtype)))
            }
        }
    }

    fn widen(&mut self, register: Operand, bit: u32, dtype: DType) -> Operand {
        let source = Scalar::Reg(register);
        match dtype {
            DType::F64 | DType::I64 | DType::F32 | DType::I32 | DType::I1 => register,
            DType::F16 => {
                let wide = self.emitter.vgpr(1);
                let inst = Inst::new(Opcode::VCvtF32F16, &[wide, register]);
                // The second source, which there is none of, is zero as in LLVM's encoding.
                let upper = Sdwa { sources: [Select::Word1, Select::Byte0], ..Sdwa::default() };
                self.emitter.push(match bit {
                    0 => inst,
                    _ => inst.modifiers(Modifiers::new().sdwa()).imm(upper.to_imm()),
                });
                wide
            }
            DType::Bf16 => {
                let wide = self.emitter.vgpr(1);
                if bit == 0 {
                    self.emitter.with(Opcode::VLshlrevB32, wide, &[Scalar::Const(16), source]);
                } else {
                    self.emitter.with(Opcode::VAndB32, wide, &[Scalar::Const(0xffff_0000), source]);
                }
                wide
            }
            DType::I16 | DType::I8 => {
                let wide = self.emitter.vgpr(1);
                let width = i64::from(dtype.bits());
                let field = [source, Scalar::Const(i64::from(bit)), Scalar::Const(width)];
                self.emitter.with(Opcode::VBfeI32, wide, &field);
                wide
            }
            // `pack_small_floats` has made integers of them.
            DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => register,
            DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0 => {
                match float8::format_of(dtype) {
                    Some(format) => self.widen_float8(register, bit, dtype, format),
                    None => register,
                }
            }
        }
    }

    /// Rounds 32-bit elements to `dtype` and packs them.
    pub(super) fn packed(&mut self, elements: &[Operand], dtype: DType) -> Operand {
        if let Some(packed) = self.packed_float8(elements, dtype) {
            return packed;
        }
        let bytes = dtype.bytes();
        let per_register = (4 / bytes) as usize;
        let value = self.emitter.vgpr((elements.len() as u32 * bytes).div_ceil(4));
        let rounding = pair_rounding(self.target, dtype);
        for (at, group) in elements.chunks(per_register).enumerate() {
            let dst = value.offset(at as u32);
            if let Some(opcode) = rounding {
                let second = group.get(1).copied().unwrap_or(Operand::ZERO);
                self.emitter.op(opcode, &[dst, group[0], second]);
                continue;
            }
            match (dtype, group) {
                (DType::F16, &[low, high]) => {
                    self.pair_of_f16(dst, [low, high]);
                    continue;
                }
                (DType::Bf16, &[low, high]) => {
                    self.pair_of_bf16(dst, [low, high]);
                    continue;
                }
                _ => {}
            }
            let narrow: SmallVec<[Operand; 4]> = group.iter().map(|&e| self.narrow(e, dtype)).collect();
            match narrow[..] {
                [one] => self.emitter.op(Opcode::VMovB32, &[dst, one]),
                [low, high] => {
                    let shift = Operand::constant(bytes * 8);
                    self.emitter.op(Opcode::VLshlOrB32, &[dst, high, shift, low]);
                }
                _ => {
                    let pairs: SmallVec<[Operand; 2]> = narrow
                        .chunks(2)
                        .map(|pair| match *pair {
                            [low, high] => {
                                let joined = self.emitter.vgpr(1);
                                let operands = [joined, high, Operand::constant(8), low];
                                self.emitter.op(Opcode::VLshlOrB32, &operands);
                                joined
                            }
                            _ => pair[0],
                        })
                        .collect();
                    let operands = [dst, pairs[1], Operand::constant(16), pairs[0]];
                    self.emitter.op(Opcode::VLshlOrB32, &operands);
                }
            }
        }
        value
    }

    /// An f32 rounded to bf16, which is the upper half of the result; the lower one has any bits. Round to
    /// nearest even: add 0x7fff and the bit that will be the last; NaNs keep their top bits and stay quiet.
    fn rounded_to_bf16(&mut self, element: Operand) -> Operand {
        let (last, bias, sum) = (self.emitter.vgpr(1), self.constant_sgpr(0x7fff), self.emitter.vgpr(1));
        let field = [Scalar::Reg(element), Scalar::Const(16), Scalar::Const(1)];
        self.emitter.with(Opcode::VBfeU32, last, &field);
        self.emitter.op(Opcode::VAdd3U32, &[sum, element, last, bias]);
        let quiet = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VOrB32, quiet, &[Scalar::Const(0x40_0000), Scalar::Reg(element)]);
        let nan = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpUF32, &[nan, element, element]);
        let chosen = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCndmaskB32, &[chosen, sum, quiet, nan]);
        chosen
    }

    /// Two f32 as bf16 side by side: the upper halves of what they are rounded to, by one instruction (CDNA3
    /// ISA guide, `V_PERM_B32`: bytes 0 to 3 are those of the last source).
    fn pair_of_bf16(&mut self, to: Operand, pair: [Operand; 2]) {
        let [low, high] = pair.map(|element| self.rounded_to_bf16(element));
        let upper_halves = self.constant_sgpr(0x0706_0302);
        self.emitter.op(Opcode::VPermB32, &[to, high, low, upper_halves]);
    }

    /// Two f32 as f16 side by side. The second conversion writes the upper half and keeps the lower
    /// one (CDNA3 ISA guide, "SDWA"). There is no second source: zero as in LLVM's encoding.
    fn pair_of_f16(&mut self, to: Operand, [low, high]: [Operand; 2]) {
        let upper =
            Sdwa { dst: Select::Word1, unused: Unused::Preserve, sources: [Select::Dword, Select::Byte0] };
        self.emitter.op(Opcode::VCvtF16F32, &[to, low]);
        let inst = Inst::new(Opcode::VCvtF16F32, &[to, high]);
        self.emitter.push(inst.modifiers(Modifiers::new().sdwa()).imm(upper.to_imm()));
    }

    /// One element in the low bits, zeros above. A 16-bit result leaves zeros in the upper half on gfx9 (LLVM
    /// SIISelLowering, `zeroesHigh16BitsOfDest`).
    fn narrow(&mut self, element: Operand, dtype: DType) -> Operand {
        if let Some(format) = float8::format_of(dtype) {
            return self.narrow_float8(element, format);
        }
        let out = self.emitter.vgpr(1);
        match dtype {
            DType::F64 | DType::I64 | DType::F32 | DType::I32 | DType::I1 => return element,
            DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0 => {
                return element;
            }
            DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => {
                return element;
            }
            DType::F16 => self.emitter.op(Opcode::VCvtF16F32, &[out, element]),
            DType::Bf16 => {
                let rounded = Scalar::Reg(self.rounded_to_bf16(element));
                self.emitter.with(Opcode::VLshrrevB32, out, &[Scalar::Const(16), rounded]);
            }
            DType::I16 | DType::I8 => {
                let mask = Scalar::Const((1 << dtype.bits()) - 1);
                self.emitter.with(Opcode::VAndB32, out, &[mask, Scalar::Reg(element)])
            }
        }
        out
    }

    /// One element-wise node.
    pub(super) fn elementwise(
        &mut self,
        node: Entity,
        expansion: Expansion,
        op: Op,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let ty = self.get::<ValueType>(expansion.logical)?;
        let dtype = ty.dtype.ok_or_else(|| self.bug("a value without dtype"))?;
        if let Op::Register(constant) = op {
            // Type inference has judged the constant.
            let bits = constant.bits(dtype)?;
            self.set_place(node, ValuePlace::Constant(repeated(bits, dtype)));
            return Ok(());
        }
        let elements = self.elements(expansion.logical);
        if self.in_halves(node, expansion.logical, (op, dtype), operands, elements)? {
            return Ok(());
        }
        if dtype == DType::I1 {
            return self.condition(node, op, operands, elements);
        }
        if self.in_pairs(node, expansion, (op, dtype), operands)? {
            return Ok(());
        }
        // Bytes that stay where they are need not be taken apart.
        if let (Op::Broadcast, 8, &[operand]) = (op, dtype.bits(), operands)
            && let Matching::Same = self.matching(expansion.logical, operand)?
        {
            return self.same_bits(node, operand, elements);
        }
        if let (Op::Convert(Conversion::Bitcast), &[operand]) = (op, operands) {
            return self.same_bits(node, operand, elements);
        }
        let from =
            self.logical_dtype(*operands.last().ok_or_else(|| self.bug("an operation without operands"))?)?;
        let values = match op {
            Op::Select => &operands[1..],
            Op::Convert(Conversion::Cast) if from == DType::I1 => &[],
            Op::Unary(_) | Op::Binary(_) | Op::Ternary(_) | Op::Convert(_) | Op::Broadcast => operands,
            Op::SelfIndex(_) | Op::Size(_) | Op::Rearrange | Op::Reduce(_) | Op::Scan(_) | Op::Sort(_) => &[],
            Op::WorkgroupId(_) | Op::Iteration(_) | Op::Decode(_) | Op::Encode(_) => &[],
            Op::Memory | Op::Scalar | Op::Allocate => &[],
            Op::Read | Op::Write | Op::Atomic(_) | Op::GlobalToShared | Op::Mma(_) | Op::ScaledMma(_) => &[],
            Op::Iterate(_) | Op::Pipeline(_) | Op::IterArg(_) | Op::LoopResult(_) => &[],
            Op::Conditional | Op::While => &[],
            Op::Register(_) | Op::Compare(_) | Op::Barrier | Op::Control(_) => &[],
            Op::SetSymbol(_) => &[],
        };
        let matchings: Result<SmallVec<[Matching; 3]>, Diagnostic> =
            values.iter().map(|&operand| self.matching(expansion.logical, operand)).collect();
        let matchings = matchings?;
        // Elements that fill a register are computed in place; others are packed at the end.
        let width = dtype.bytes() / 4;
        let value = (width > 0).then(|| self.emitter.vgpr(width * elements));
        let mut results: SmallVec<[Operand; 16]> = SmallVec::new();
        let mut pairs = self.may_pair_elements(op, dtype, from, elements);
        if pairs {
            values.iter().for_each(|&operand| self.finish(operand));
        }
        let mut starts = [self.emitter.mark(); 2];
        for at in 0..elements {
            let mark = self.emitter.mark();
            starts[at as usize % 2] = mark;
            let mut inputs: SmallVec<[Scalar; 3]> = SmallVec::new();
            for (&operand, matching) in values.iter().zip(&matchings) {
                inputs.push(self.element(operand, matching.element(at), from)?);
            }
            // One operand of two-operand arithmetic may be an SGPR; everything else takes VGPRs.
            let most_uniform = usize::from(matches!(op, Op::Binary(_)));
            let is_wide = from.bits() == 64 || dtype.bits() == 64;
            if !is_wide {
                self.limit_uniform(&mut inputs, most_uniform);
            }
            let result = match (op, inputs.as_slice()) {
                (Op::Unary(op), &[x]) if is_wide => self.wide_unary(op, x, from)?,
                (Op::Unary(op), &[x]) => self.unary(op, x, from)?,
                (Op::Binary(op), &[a, b]) => self.binary(op, a, b, from)?,
                (Op::Ternary(op), &[a, b, c]) if is_wide => self.wide_ternary(op, [a, b, c]),
                (Op::Ternary(op), &[a, b, c]) => self.ternary(op, [a, b, c]),
                (Op::Convert(Conversion::Cast), &[x]) if is_wide => self.wide_cast(x, from, dtype),
                (Op::Convert(Conversion::Cast), &[x]) => self.cast(x, from, dtype),
                (Op::Broadcast, &[x]) => self.in_vectors(x, dtype),
                (Op::Convert(Conversion::Cast), &[]) => {
                    let mask = self.matching(expansion.logical, operands[0])?.element(at);
                    let one = match (dtype.is_float(), dtype.bits()) {
                        (true, 64) => 1f64.to_bits() as i64,
                        (true, _) => i64::from(1f32.to_bits()),
                        (false, _) => 1,
                    };
                    self.select(operands[0], mask, [Scalar::Const(one), Scalar::ZERO], dtype)?
                }
                (Op::Select, &[yes, no]) => {
                    let mask = self.matching(expansion.logical, operands[0])?.element(at);
                    self.select(operands[0], mask, [yes, no], dtype)?
                }
                _ => return Err(self.bug("an element-wise operation without its operands")),
            };
            match value {
                Some(value) => {
                    // A copy of a uniform value is kept for its other uses.
                    let stays = self.vector_copies.iter().any(|copy| copy.1 == result);
                    let mark = if stays { self.emitter.mark() } else { mark };
                    self.emitter.deliver(mark, result, value.offset(at * width), width);
                }
                None => results.push(result),
            }
            if pairs && at % 2 == 1 {
                pairs = self.pair_elements(starts, elements / 2, results.last_mut());
            }
        }
        let value = value.unwrap_or_else(|| self.packed(&results, dtype));
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// Leaves the first `most` of the sources that are SGPRs, and copies the others to VGPRs.
    pub(super) fn limit_uniform(&mut self, sources: &mut [Scalar], most: usize) {
        let mut left = most;
        for source in sources {
            if !self.is_uniform(*source) {
                continue;
            }
            if left == 0 {
                *source = Scalar::Reg(self.in_vector(*source));
            }
            left = left.saturating_sub(1);
        }
    }

    pub(super) fn is_uniform(&self, value: Scalar) -> bool {
        matches!(value, Scalar::Reg(register) if self.emitter.file(register) == RegisterFile::Sgpr)
    }

    /// The scalar in a VGPR, wherever it is now. An SGPR is copied once for all its uses here.
    pub(super) fn in_vector(&mut self, value: Scalar) -> Operand {
        let Scalar::Reg(register) = value else { return self.in_vgpr(value) };
        if !self.is_uniform(value) {
            return register;
        }
        self.vector_copy(value)
    }

    /// A uniform value in a VGPR that is kept for its other uses.
    pub(super) fn vector_copy(&mut self, value: Scalar) -> Operand {
        if let Some(&(_, copy)) = self.vector_copies.iter().find(|copy| copy.0 == value) {
            return copy;
        }
        let copy = self.add_uniform(None, value);
        self.vector_copies.push((value, copy));
        copy
    }

    /// A node whose registers are those of its operand.
    fn same_bits(&mut self, node: Entity, operand: Entity, elements: u32) -> Result<(), Diagnostic> {
        self.settle(operand)?;
        let place = *self.place(operand)?;
        if let ValuePlace::Registers(_) = place {
            let logical = Expansion::at(self.world, node).logical;
            let matching = self.matching(logical, operand)?;
            if (0..elements).any(|at| matching.element(at) != at) {
                return Err(self.bug("a value seen as another dtype has another layout"));
            }
        }
        self.set_place(node, place);
        Ok(())
    }

    pub(super) fn elements(&self, logical: Entity) -> u32 {
        self.world.get::<Placement>(logical).map_or(1, |p| p.0.extent(Source::Register))
    }

    pub(super) fn logical_dtype(&self, node: Entity) -> Result<DType, Diagnostic> {
        let logical = Expansion::at(self.world, node).logical;
        self.get::<ValueType>(logical)?.dtype.ok_or_else(|| self.bug("a value without dtype"))
    }

    /// Which elements of `operand` belong to those of a node.
    pub(super) fn matching(&self, logical: Entity, operand: Entity) -> Result<Matching<'a>, Diagnostic> {
        let source = Expansion::at(self.world, operand).logical;
        let layouts = (self.world.get::<Placement>(logical), self.world.get::<Placement>(source));
        Ok(match layouts {
            (Some(own), Some(other)) if own.0 == other.0 => Matching::Same,
            (Some(own), Some(other)) => Matching::Coordinates { own: &own.0, other: &other.0 },
            _ => Matching::First,
        })
    }

    /// The scalar in a VGPR.
    pub(super) fn in_vgpr(&mut self, value: Scalar) -> Operand {
        match value {
            Scalar::Reg(register) => register,
            Scalar::Const(_) => self.add_uniform(None, value),
        }
    }

    /// A two-operand VOP2 instruction; only its first source may be a constant.
    pub(super) fn vop2(&mut self, op: Opcode, a: Scalar, b: Scalar) -> Operand {
        // An SGPR as the second source takes the VOP3 encoding, which has no room for a literal.
        let is_literal = a.source().0 == Operand::LITERAL;
        let b = if is_literal && self.is_uniform(b) { self.in_vector(b) } else { self.in_vgpr(b) };
        let out = self.emitter.vgpr(1);
        self.emitter.with(op, out, &[a, Scalar::Reg(b)]);
        out
    }

    pub(super) fn vop1(&mut self, op: Opcode, a: Scalar) -> Operand {
        let out = self.emitter.vgpr(1);
        self.emitter.with(op, out, &[a]);
        out
    }

    /// A VOP3 instruction.
    pub(super) fn vop3(&mut self, op: Opcode, sources: &[Scalar]) -> Operand {
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::from_slice(&[Operand::NONE]);
        operands.extend(sources.iter().map(|&source| self.vop3_source(source)));
        operands[0] = self.emitter.vgpr(1);
        self.emitter.op(op, &operands);
        operands[0]
    }

    /// A source of a VOP3 instruction, which takes no literals (CDNA3 ISA guide, "VOP3"): such a constant is
    /// in a VGPR that is kept for its other uses.
    pub(super) fn vop3_source(&mut self, source: Scalar) -> Operand {
        match source.source().0 {
            Operand::LITERAL => self.vector_copy(source),
            operand => operand,
        }
    }

    /// IEEE division: scales both operands so that nothing overflows or is denormal, refines a reciprocal
    /// estimate by two fused multiply-adds, refines the quotient in the same way, and undoes the scaling
    /// (CDNA3 ISA guide, `v_div_scale_f32`, `v_div_fmas_f32`, `v_div_fixup_f32`).
    pub(super) fn divide_floats(&mut self, a: Scalar, b: Scalar) -> Operand {
        let (a, b) = (self.in_vector(a), self.in_vector(b));
        let (scaled_b, scaled_a, unused) = (self.emitter.vgpr(1), self.emitter.vgpr(1), self.emitter.sgpr(2));
        self.emitter.op(Opcode::VDivScaleF32, &[scaled_b, unused, b, b, a]);
        self.emitter.op(Opcode::VDivScaleF32, &[scaled_a, Operand::VCC, a, b, a]);
        let estimate = self.vop1(Opcode::VRcpF32, Scalar::Reg(scaled_b));
        let one = Operand::constant(1f32.to_bits());
        let error = self.fma([scaled_b, estimate, one], 1);
        let reciprocal = self.fma([error, estimate, estimate], 0);
        let quotient = self.vop2(Opcode::VMulF32, Scalar::Reg(scaled_a), Scalar::Reg(reciprocal));
        let rest = self.fma([scaled_b, quotient, scaled_a], 1);
        let better = self.fma([rest, reciprocal, quotient], 0);
        let rest = self.fma([scaled_b, better, scaled_a], 1);
        let unscaled = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VDivFmasF32, &[unscaled, rest, reciprocal, better]);
        let out = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VDivFixupF32, &[out, unscaled, b, a]);
        out
    }

    /// The nearest number that an integer dtype holds.
    pub(super) fn limited(&mut self, whole: Operand, to: DType) -> Operand {
        match to.bits() {
            32 => whole,
            bits => {
                let most = (1 << (bits - 1)) - 1;
                let ends = [Scalar::Const(-most - 1), Scalar::Const(most)];
                self.vop3(Opcode::VMed3I32, &[Scalar::Reg(whole), ends[0], ends[1]])
            }
        }
    }

    /// Numeric conversion between the 32-bit forms; rounding to a packed dtype comes with packing.
    fn cast(&mut self, x: Scalar, from: DType, to: DType) -> Operand {
        match (family(from), family(to)) {
            (OperationFamily::Float, OperationFamily::Integer) => {
                let whole = self.vop1(Opcode::VCvtI32F32, x);
                self.limited(whole, to)
            }
            (OperationFamily::Integer, OperationFamily::Float) => self.vop1(Opcode::VCvtF32I32, x),
            _ => self.in_vgpr(x),
        }
    }
}

/// An element repeated in all places of two registers that elements of its dtype have.
fn repeated(bits: u64, dtype: DType) -> u64 {
    match dtype.bytes() {
        4 => bits * 0x1_0000_0001,
        2 => bits * 0x0001_0001_0001_0001,
        1 if dtype != DType::I1 => bits * 0x0101_0101_0101_0101,
        _ => bits,
    }
}

/// What register number `at` of a constant holds.
pub(super) fn constant_register(bits: u64, at: u32) -> Scalar {
    Scalar::Const(i64::from((bits >> (32 * (at % 2))) as u32))
}

/// The instruction that rounds two f32 to a 16-bit float, to nearest even, and packs them (gfx950; CDNA4 ISA
/// guide, `V_CVT_PK_F16_F32` and `V_CVT_PK_BF16_F32`): NaNs stay NaNs, denormals stay as they are.
fn pair_rounding(target: Target, dtype: DType) -> Option<Opcode> {
    let opcode = if dtype == DType::Bf16 {
        Opcode::VCvtPkBf16F32
    } else if dtype == DType::F16 {
        Opcode::VCvtPkF16F32
    } else {
        return None;
    };
    target.executes(opcode).then_some(opcode)
}

/// The 32-bit form of a packed constant.
fn widened_constant(bits: u32, dtype: DType) -> u32 {
    if let Some(format) = float8::format_of(dtype) {
        return format.decode(bits as u8).to_bits();
    }
    match dtype {
        DType::F64 | DType::I64 | DType::F32 | DType::I32 | DType::I1 => bits,
        DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0 => bits,
        DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => bits,
        DType::F16 => f16::from_bits(bits as u16).to_f32().to_bits(),
        DType::Bf16 => bits << 16,
        DType::I16 => (bits as u16 as i16) as i32 as u32,
        DType::I8 => (bits as u8 as i8) as i32 as u32,
    }
}
