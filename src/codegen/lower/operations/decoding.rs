//! Numbers of narrow floats from codes, and codes of numbers, by the instructions that convert two elements
//! with a scale, of which the exponent counts (CDNA4 ISA guide, V_CVT_SCALEF32_*).
//!
//! Those for 6-bit floats convert 32 elements that a lane has side by side, which it seldom has. But such a
//! code is, denormals among them, that of an 8-bit float with its sign in another place, whose number is
//! smaller by a power of two: the scale makes up for it. Which code a NaN becomes is not published, so that
//! numbers to encode have been limited.
//!
//! Casts of 8-bit floats take the same instructions, where there are any.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::values::places::ValuePlace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{self, Dim, Layout};
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::loops::expand::Expansion;

/// The instructions of a dtype.
#[derive(Copy, Clone)]
struct ScaledConversions {
    dtype: DType,
    /// By which power of two the numbers that they take codes for are too small.
    power: u32,
    /// The largest number.
    largest: f32,
    /// Two codes to each of [`GIVEN`].
    widen: [Opcode; 3],
    /// Two f32 to codes.
    narrow: Opcode,
}

const CONVERSIONS: [ScaledConversions; 5] = {
    use Opcode::*;
    const fn row(
        dtype: DType,
        (power, largest): (u32, f32),
        widen: [Opcode; 3],
        narrow: Opcode,
    ) -> ScaledConversions {
        ScaledConversions { dtype, power, largest, widen, narrow }
    }
    let fp4 = [VCvtScalef32PkF32Fp4, VCvtScalef32PkF16Fp4, VCvtScalef32PkBf16Fp4];
    let fp8 = [VCvtScalef32PkF32Fp8, VCvtScalef32PkF16Fp8, VCvtScalef32PkBf16Fp8];
    let bf8 = [VCvtScalef32PkF32Bf8, VCvtScalef32PkF16Bf8, VCvtScalef32PkBf16Bf8];
    [
        row(DType::F4E2M1, (0, 6.0), fp4, VCvtScalef32PkFp4F32),
        row(DType::F6E2M3, (6, 7.5), fp8, VCvtScalef32PkFp8F32),
        row(DType::F6E3M2, (12, 28.0), bf8, VCvtScalef32PkBf8F32),
        row(DType::F8E4M3Fn, (0, 448.0), fp8, VCvtScalef32PkFp8F32),
        row(DType::F8E5M2, (0, 57344.0), bf8, VCvtScalef32PkBf8F32),
    ]
};

/// What codes are widened to.
const GIVEN: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// The scale 2^0 as scales are encoded, and as the exponent of an f32.
pub(crate) const ONE: u32 = 127;

/// The largest exponent of an f32 that is not a NaN.
const MOST: u32 = 254;

/// Bits of a byte in each byte of a register.
const fn in_each_byte(bits: u8) -> u32 {
    bits as u32 * 0x0101_0101
}

/// In which byte of a register something is.
type RegisterByte = (Operand, u32);

/// What pairs of elements are multiplied with.
#[derive(Copy, Clone)]
pub(crate) enum PairScales {
    /// All with this scale.
    One(Operand),
    /// Those of this value, of which runs of so many elements have one.
    OfRuns(Entity, u32),
}

/// A register and the part of it, a byte or a half, in which an instruction finds two codes.
type CodePair = (Operand, u32);

impl OperationLayer<'_> {
    /// One `decode`.
    pub(crate) fn decode(
        &mut self,
        node: Entity,
        expansion: Expansion,
        decoding: Decoding,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let &[codes, scales] = operands else { return Err(Diagnostic::bug("codes without scales")) };
        let dtype = self.get::<ValueType>(expansion.logical)?.dtype;
        let dtype = dtype.ok_or_else(|| Diagnostic::bug("numbers of no dtype"))?;
        let elements = self.elements(expansion.logical);
        let run = self.decoded_run(expansion.logical, decoding);
        let held = match decoding.form {
            CodeForm::Elements => self.logical_dtype(codes)?,
            CodeForm::Integers(dtype) => dtype,
            CodeForm::Bytes => DType::F4E2M1,
        };
        let row = self.scaled_conversions(held)?;
        let pairs = self.code_pairs(expansion, (decoding, held), codes, run)?;
        // What both elements of a pair are multiplied with in the same step, if there is such a thing.
        let constant = if let ValuePlace::Constant(bits) = *self.place(scales)? {
            Some((bits & 0xff) as u32 + row.power).filter(|&scale| scale <= MOST)
        } else {
            None
        };
        let at_once = constant.is_some() || (run > 1 && row.power == 0);
        let given = GIVEN.iter().position(|&given| at_once && given == dtype).unwrap_or(0);
        let fixed = constant.or((!at_once).then_some(ONE + row.power));
        let by = match fixed {
            Some(scale) => PairScales::One(self.fixed_scale(scale)),
            None => PairScales::OfRuns(scales, run),
        };
        let value = self.widened_pairs(expansion, row.widen[given], (&pairs, elements), by)?;
        let value = match at_once {
            true => value,
            false => self.multiplied_by(expansion, scales, (value, elements), dtype)?,
        };
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    /// A cast of 8-bit floats two elements at a time, where the chip can do that; false if it cannot.
    pub(super) fn in_pairs(
        &mut self,
        node: Entity,
        expansion: Expansion,
        (op, dtype): (Op, DType),
        operands: &[Entity],
    ) -> Result<bool, Diagnostic> {
        let (Op::Convert(Conversion::Cast), &[codes]) = (op, operands) else { return Ok(false) };
        let held = self.logical_dtype(codes)?;
        let given = GIVEN.iter().position(|&given| given == dtype);
        let row = CONVERSIONS.into_iter().find(|row| row.dtype == held);
        let (Some(given), Some(row)) = (given, row) else { return Ok(false) };
        if !self.target.has_scaled_conversions() || held.bits() != 8 {
            return Ok(false);
        }
        let ValuePlace::Registers(_) = *self.place(codes)? else { return Ok(false) };
        let elements = self.elements(expansion.logical);
        let decoding = Decoding { form: CodeForm::Elements, along: None };
        let pairs = self.code_pairs(expansion, (decoding, held), codes, 1)?;
        let one = PairScales::One(self.fixed_scale(ONE));
        let value = self.widened_pairs(expansion, row.widen[given], (&pairs, elements), one)?;
        self.set_place(node, ValuePlace::Registers(value));
        Ok(true)
    }

    /// Pairs of codes as elements of one or two in a register.
    pub(crate) fn widened_pairs(
        &mut self,
        expansion: Expansion,
        widen: Opcode,
        (pairs, elements): (&[CodePair], u32),
        by: PairScales,
    ) -> Result<Operand, Diagnostic> {
        let per_register = if CONVERSIONS.iter().any(|row| row.widen[0] == widen) { 1 } else { 2 };
        let value = self.emitter.vgpr(elements.div_ceil(per_register));
        let mut scale = Operand::ZERO;
        for (at, &(register, part)) in (0..elements).step_by(2).zip(pairs) {
            match by {
                PairScales::One(one) => scale = one,
                PairScales::OfRuns(scales, run) if at.is_multiple_of(run) => {
                    scale = self.scale_of(expansion, scales, at)?;
                }
                PairScales::OfRuns(..) => {}
            }
            let is_single = per_register == 1 && at + 1 == elements;
            let to = if is_single { self.emitter.vgpr(2) } else { value.offset(at / per_register) };
            let inst = Inst::new(widen, &[to, register, scale]);
            self.emitter.push(inst.modifiers(Modifiers::new().op_sel(part)));
            if is_single {
                self.emitter.op(Opcode::VMovB32, &[value.offset(at), to]);
            }
        }
        Ok(value)
    }

    /// A scale that is the same for all elements.
    fn fixed_scale(&mut self, scale: u32) -> Operand {
        match scale {
            ONE => Operand::constant(1f32.to_bits()),
            _ => self.constant_sgpr(scale << 23),
        }
    }

    /// One `encode`.
    pub(crate) fn encode(
        &mut self,
        node: Entity,
        expansion: Expansion,
        dtype: DType,
        operands: &[Entity],
    ) -> Result<(), Diagnostic> {
        let &[numbers] = operands else { return Err(Diagnostic::bug("codes of no numbers")) };
        let row = self.scaled_conversions(dtype)?;
        let elements = self.elements(expansion.logical);
        let matching = self.matching(expansion.logical, numbers)?;
        let value = self.emitter.vgpr(elements.div_ceil(4));
        let scale = self.fixed_scale(ONE + row.power);
        for first in (0..elements).step_by(4) {
            let mut group: SmallVec<[Operand; 4]> = SmallVec::new();
            for at in first..(first + 4).min(elements) {
                let number = self.element(numbers, matching.element(at), DType::F32)?;
                group.push(self.in_vector(number));
            }
            let to = value.offset(first / 4);
            // The instructions leave the rest of the register as it is.
            self.emitter.with(Opcode::VMovB32, to, &[Scalar::ZERO]);
            if dtype == DType::F4E2M1 {
                for (byte, &number) in (0..).zip(&group) {
                    let inst = Inst::new(row.narrow, &[to, number, Operand::ZERO, scale]);
                    self.emitter.push(inst.modifiers(Modifiers::new().op_sel(byte << 2)));
                }
                continue;
            }
            // What is too large for the 8-bit float becomes no number of it.
            let least = Scalar::Const(i64::from((-row.largest).to_bits()));
            for number in &mut group {
                *number = self.vop2(Opcode::VMaxF32, least, Scalar::Reg(*number));
            }
            for (pair, op_sel) in group.chunks(2).zip([0, 8]) {
                let second = pair.get(1).copied().unwrap_or(Operand::ZERO);
                let inst = Inst::new(row.narrow, &[to, pair[0], second, scale]);
                self.emitter.push(inst.modifiers(Modifiers::new().op_sel(op_sel)));
            }
            let signs = self.vop2(Opcode::VLshrrevB32, Scalar::Const(2), Scalar::Reg(to));
            self.with_signs(to, [(to, 0x1f), (signs, 0x20)]);
        }
        self.set_place(node, ValuePlace::Registers(value));
        Ok(())
    }

    fn scaled_conversions(&self, dtype: DType) -> Result<ScaledConversions, Diagnostic> {
        let row = CONVERSIONS.into_iter().find(|row| row.dtype == dtype);
        row.ok_or_else(|| Diagnostic::bug("codes that no instruction converts"))
    }

    /// The magnitudes of one register beside the signs of another, each with their bits of every byte.
    fn with_signs(&mut self, to: Operand, [(magnitudes, of_one), (signs, of_other)]: [(Operand, u8); 2]) {
        let kept = Scalar::Const(i64::from(in_each_byte(of_one)));
        let magnitudes = self.vop2(Opcode::VAndB32, kept, Scalar::Reg(magnitudes));
        let mask = self.constant_sgpr(in_each_byte(of_other));
        self.emitter.op(Opcode::VAndOrB32, &[to, signs, mask, magnitudes]);
    }

    /// For each two elements of a node the codes as its instructions take them.
    fn code_pairs(
        &mut self,
        expansion: Expansion,
        (decoding, held): (Decoding, DType),
        codes: Entity,
        run: u32,
    ) -> Result<SmallVec<[CodePair; 16]>, Diagnostic> {
        let elements = self.elements(expansion.logical);
        let bytes = self.logical_dtype(codes)?.bytes();
        let source = Expansion::at(self.kernel.world, codes).logical;
        let held_elements = self.elements(source);
        let registers = self.in_registers(codes, held_elements, bytes)?;
        let matching = self.matching(expansion.logical, codes)?;
        let byte = |at: u32| {
            let at = matching.element(at) * bytes;
            (registers.offset(at / 4), at % 4)
        };
        let firsts = (0..elements).step_by(2);
        let mut held_at: SmallVec<[RegisterByte; 16]> = (0..elements).map(byte).collect();
        if let (CodeForm::Bytes, Some(dim)) = (decoding.form, decoding.along) {
            if run > 1 {
                return Ok(firsts.map(|at| held_at[at as usize]).collect());
            }
            self.move_halves_down(expansion, dim, &mut held_at)?;
        }
        let mut pairs = SmallVec::new();
        for group in held_at.chunks(4) {
            let mut joined = self.joined_bytes(group);
            let mut parts = [0, 1];
            if held == DType::F4E2M1 {
                let upper = self.vop2(Opcode::VLshrrevB32, Scalar::Const(4), Scalar::Reg(joined));
                let lower = self.constant_sgpr(0x000f_000f);
                let halves = self.emitter.vgpr(1);
                self.emitter.op(Opcode::VBfiB32, &[halves, lower, joined, upper]);
                (joined, parts) = (halves, [0, 2]);
            } else if held.packing().is_some() {
                let signs = self.vop2(Opcode::VLshlrevB32, Scalar::Const(2), Scalar::Reg(joined));
                let moved = self.emitter.vgpr(1);
                self.with_signs(moved, [(joined, 0x1f), (signs, 0x80)]);
                joined = moved;
            }
            pairs.extend(parts.into_iter().take(group.len().div_ceil(2)).map(|part| (joined, part)));
        }
        Ok(pairs)
    }

    /// Elements whose codes are halves of bytes, where lanes do not have both halves: the half that the place
    /// along a dimension says moves down.
    fn move_halves_down(
        &mut self,
        expansion: Expansion,
        dim: Dim,
        held_at: &mut [RegisterByte],
    ) -> Result<(), Diagnostic> {
        let scalar = Layout::default();
        let layout =
            self.kernel.world.get::<Placement>(expansion.logical).map_or(&scalar, |placement| &placement.0);
        let base = self.first_place(layout, expansion, dim)?;
        let odd = self.vop2(Opcode::VAndB32, Scalar::Const(1), Scalar::Reg(base));
        let even = self.vop2(Opcode::VLshlrevB32, Scalar::Const(2), Scalar::Reg(odd));
        let odd = self.vop2(Opcode::VXorB32, Scalar::Const(4), Scalar::Reg(even));
        // What comes from the byte above is above the code.
        let mut last = None;
        for (register, (held, _)) in (0..).zip(held_at.iter_mut()) {
            let place = layout::Place { register, replica: expansion.replica, ..layout::Place::default() };
            let count = if layout.coordinate(dim, place).is_multiple_of(2) { even } else { odd };
            let moved = match last {
                Some((of, by, moved)) if (of, by) == (*held, count) => moved,
                _ => self.vop2(Opcode::VLshrrevB32, Scalar::Reg(count), Scalar::Reg(*held)),
            };
            last = Some((*held, count, moved));
            *held = moved;
        }
        Ok(())
    }

    /// Up to four bytes in the bytes of one register.
    fn joined_bytes(&mut self, bytes: &[RegisterByte]) -> Operand {
        let first = bytes[0].0;
        if (0..).zip(bytes).all(|(at, &byte)| byte == (first, at)) {
            return first;
        }
        let other = bytes.iter().map(|byte| byte.0).find(|&register| register != first);
        let second = other.unwrap_or(first);
        if bytes.iter().any(|byte| byte.0 != first && byte.0 != second) {
            let (low, high) = bytes.split_at(2);
            let [low, high] = [low, high].map(|half| self.joined_bytes(half));
            // Bytes of the last source, and of the one before it (CDNA3 ISA guide, V_PERM_B32).
            return self.permuted([high, low], 0x0504_0100);
        }
        let mut selector = 0x0c0c_0c0c;
        for (at, &(register, byte)) in bytes.iter().enumerate() {
            let chosen = if register == first { byte } else { 4 + byte };
            selector = selector & !(0xff << (8 * at)) | chosen << (8 * at);
        }
        self.permuted([second, first], selector)
    }

    fn permuted(&mut self, [upper, lower]: [Operand; 2], selector: u32) -> Operand {
        let selector = self.constant_sgpr(selector);
        let joined = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VPermB32, &[joined, upper, lower, selector]);
        joined
    }

    /// The scale of an element as the exponent of an f32, whose other bits do not count.
    fn scale_of(&mut self, expansion: Expansion, scales: Entity, at: u32) -> Result<Operand, Diagnostic> {
        let source = Expansion::at(self.kernel.world, scales).logical;
        let elements = self.elements(source);
        let registers = self.in_registers(scales, elements, 1)?;
        let at = self.matching(expansion.logical, scales)?.element(at);
        let register = Scalar::Reg(registers.offset(at / 4));
        Ok(match at % 4 {
            3 => self.vop2(Opcode::VLshrrevB32, Scalar::Const(1), register),
            byte => self.vop2(Opcode::VLshlrevB32, Scalar::Const(i64::from(23 - 8 * byte)), register),
        })
    }

    /// f32 numbers times their scales, which is exact, rounded to a dtype.
    fn multiplied_by(
        &mut self,
        expansion: Expansion,
        scales: Entity,
        (numbers, elements): (Operand, u32),
        dtype: DType,
    ) -> Result<Operand, Diagnostic> {
        let matching = self.matching(expansion.logical, scales)?;
        let mut products: SmallVec<[Operand; 16]> = SmallVec::new();
        for at in 0..elements {
            let scale = self.element(scales, matching.element(at), DType::F8E8M0)?;
            products.push(self.vop2(Opcode::VMulF32, scale, Scalar::Reg(numbers.offset(at))));
        }
        if dtype != DType::F32 {
            return Ok(self.packed(&products, dtype));
        }
        let value = self.emitter.vgpr(elements);
        for (at, product) in (0..).zip(products) {
            self.emitter.op(Opcode::VMovB32, &[value.offset(at), product]);
        }
        Ok(value)
    }
}
