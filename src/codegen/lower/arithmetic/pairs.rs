//! Elements of 64 bits, each in a pair of registers: f64 by the instructions of that width, i64 half by half.
//!
//! A [`Scalar`] that stands for such an element is a constant of 64 bits, or a pair.

use super::ArithmeticLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::arithmetic::functions::wide::one;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::types::DType;

/// 2^-32
const LOW_TO_HIGH: f64 = 1.0 / 4_294_967_296.0;

/// -2^32
const HIGH_FROM_ALL: f64 = -4_294_967_296.0;

/// Sign of an f64 in its upper half.
const SIGN: i64 = 0x8000_0000;

/// Half of an element: 0 is the low one.
pub(crate) fn half(x: Scalar, half: u32) -> Scalar {
    match x {
        Scalar::Const(value) => Scalar::Const(i64::from((value >> (32 * half)) as u32)),
        Scalar::Reg(pair) => Scalar::Reg(pair.offset(half)),
    }
}

pub(crate) fn halves(x: Scalar) -> [Scalar; 2] {
    [half(x, 0), half(x, 1)]
}

impl ArithmeticLayer<'_> {
    /// The element in a pair of VGPRs.
    pub(crate) fn pair(&mut self, x: Scalar) -> Operand {
        match x {
            Scalar::Reg(pair) if !self.is_uniform(x) => pair,
            Scalar::Reg(_) | Scalar::Const(_) => self.joined(halves(x)),
        }
    }

    /// An element of its halves.
    pub(crate) fn joined(&mut self, halves: [Scalar; 2]) -> Operand {
        let out = self.emitter.vgpr(2);
        for (at, half) in (0..).zip(halves) {
            self.emitter.with(Opcode::VMovB32, out.offset(at), &[half]);
        }
        out
    }

    /// The element in VGPRs, as many as its dtype takes.
    pub(crate) fn in_vectors(&mut self, x: Scalar, dtype: DType) -> Operand {
        if dtype.bits() == 64 { self.pair(x) } else { self.in_vector(x) }
    }

    /// An operand that takes neither literals nor SGPRs.
    fn plain(&mut self, x: Scalar) -> Scalar {
        match x {
            Scalar::Const(_) if x.source().0 != Operand::LITERAL => x,
            Scalar::Const(_) | Scalar::Reg(_) => Scalar::Reg(self.in_vector(x)),
        }
    }

    /// Sources of one instruction of 64 bits, which reads one pair of SGPRs at most and no literals.
    fn wide_sources<const N: usize>(&mut self, sources: [Scalar; N], dtype: DType) -> [Operand; N] {
        let mut uniform = None;
        sources.map(|source| {
            let pair = match source {
                Scalar::Const(bits) => match inline(bits, dtype) {
                    Some(inline) => return inline,
                    None => self.wide_constant(f64::from_bits(bits as u64)),
                },
                Scalar::Reg(pair) => pair,
            };
            if self.is_uniform(Scalar::Reg(pair)) {
                if uniform.is_some_and(|first| first != pair) {
                    return self.pair(Scalar::Reg(pair));
                }
                uniform = Some(pair);
            }
            pair
        })
    }

    fn wide_op<const N: usize>(&mut self, op: Opcode, sources: [Scalar; N], negated: u32) -> Operand {
        let sources = self.wide_sources(sources, DType::F64);
        self.wide(op, &sources, negated)
    }

    /// The sum or difference of two i64: the carry is in VCC. An instruction that reads it takes no SGPR
    /// beside it.
    fn long_sum(&mut self, [low, high]: [Opcode; 2], a: Scalar, b: Scalar) -> Operand {
        let [al, ah] = halves(a).map(|x| self.plain(x));
        let [bl, bh] = halves(b).map(|x| Scalar::Reg(self.in_vector(x)));
        let out = self.emitter.vgpr(2);
        let vcc = Scalar::Reg(Operand::VCC);
        self.emitter.with(low, out, &[vcc, al, bl]);
        let [(ah, _), (bh, _)] = [ah, bh].map(Scalar::source);
        self.emitter.op(high, &[out.offset(1), Operand::VCC, ah, bh, Operand::VCC]);
        out
    }

    fn long_add(&mut self, a: Scalar, b: Scalar) -> Operand {
        self.long_sum([Opcode::VAddCoU32, Opcode::VAddcCoU32], a, b)
    }

    fn long_sub(&mut self, a: Scalar, b: Scalar) -> Operand {
        self.long_sum([Opcode::VSubCoU32, Opcode::VSubbCoU32], a, b)
    }

    /// The low 64 bits of a product.
    fn long_mul(&mut self, a: Scalar, b: Scalar) -> Operand {
        let [[al, ah], [bl, bh]] = [a, b].map(|x| halves(x).map(|x| self.plain(x)));
        let low = self.emitter.vgpr(2);
        let carry = self.emitter.sgpr(2);
        let [(al_operand, _), (bl_operand, _)] = [al, bl].map(Scalar::source);
        self.emitter.op(Opcode::VMadU64U32, &[low, carry, al_operand, bl_operand, Operand::ZERO]);
        let crossed = [(al, bh), (ah, bl)].map(|(x, y)| self.vop3(Opcode::VMulLoU32, &[x, y]));
        let out = self.emitter.vgpr(2);
        self.emitter.op(Opcode::VMovB32, &[out, low]);
        self.emitter.op(Opcode::VAdd3U32, &[out.offset(1), low.offset(1), crossed[0], crossed[1]]);
        out
    }

    /// An instruction for each half.
    fn by_halves(&mut self, op: Opcode, a: Scalar, b: Scalar) -> Operand {
        let out = self.emitter.vgpr(2);
        for at in 0..2 {
            let mark = self.emitter.mark();
            let (a, b) = (half(a, at), half(b, at));
            let (a, b) = if matches!(b, Scalar::Const(_)) { (b, a) } else { (a, b) };
            let b = Scalar::Reg(self.in_vector(b));
            let result = self.vop2(op, a, b);
            self.emitter.deliver(mark, result, out.offset(at), 1);
        }
        out
    }

    /// The lanes in which a comparison of two elements holds.
    pub(crate) fn wide_compare(
        &mut self,
        mask: Operand,
        predicate: Predicate,
        sides: [Scalar; 2],
        dtype: DType,
    ) {
        let op = match (predicate, dtype.is_float()) {
            (Predicate::Eq, true) => Opcode::VCmpEqF64,
            (Predicate::Ne, true) => Opcode::VCmpNeqF64,
            (Predicate::Lt, true) => Opcode::VCmpLtF64,
            (Predicate::Le, true) => Opcode::VCmpLeF64,
            (Predicate::Gt, true) => Opcode::VCmpGtF64,
            (Predicate::Ge, true) => Opcode::VCmpGeF64,
            (Predicate::Eq, false) => Opcode::VCmpEqI64,
            (Predicate::Ne, false) => Opcode::VCmpNeI64,
            (Predicate::Lt, false) => Opcode::VCmpLtI64,
            (Predicate::Le, false) => Opcode::VCmpLeI64,
            (Predicate::Gt, false) => Opcode::VCmpGtI64,
            (Predicate::Ge, false) => Opcode::VCmpGeI64,
        };
        let [a, b] = self.wide_sources(sides, dtype);
        self.emitter.op(op, &[mask, a, b]);
    }

    /// The lanes in which a comparison of two i64 holds.
    fn long_mask(&mut self, predicate: Predicate, a: Scalar, b: Scalar) -> Operand {
        let mask = self.emitter.sgpr(2);
        self.wide_compare(mask, predicate, [a, b], DType::I64);
        mask
    }

    /// `yes` in the lanes of the mask, `no` in the others.
    pub(crate) fn choose_pair(&mut self, mask: Operand, yes: Scalar, no: Scalar) -> Operand {
        let out = self.emitter.vgpr(2);
        for at in 0..2 {
            let sources = [no, yes].map(|x| self.plain(half(x, at)));
            self.emitter.with(
                Opcode::VCndmaskB32,
                out.offset(at),
                &[sources[0], sources[1], Scalar::Reg(mask)],
            );
        }
        out
    }

    pub(crate) fn wide_unary(&mut self, op: UnaryOp, x: Scalar, dtype: DType) -> Result<Operand, Diagnostic> {
        let float = dtype.is_float();
        let opcode = match (op, float) {
            (UnaryOp::Floor, true) => Opcode::VFloorF64,
            (UnaryOp::Ceil, true) => Opcode::VCeilF64,
            (UnaryOp::Trunc, true) => Opcode::VTruncF64,
            (UnaryOp::RoundEven, true) => Opcode::VRndneF64,
            (UnaryOp::Neg, true) => return Ok(self.of_upper_half(Opcode::VXorB32, SIGN, x)),
            (UnaryOp::Abs, true) => return Ok(self.of_upper_half(Opcode::VAndB32, SIGN - 1, x)),
            (UnaryOp::Sqrt, true) => return Ok(self.wide_sqrt(x)),
            (UnaryOp::Reciprocal, true) => {
                return Ok(self.divide_doubles(Scalar::Const(1f64.to_bits() as i64), x));
            }
            (UnaryOp::Round, true) => return Ok(self.wide_round(x)),
            (UnaryOp::Neg, false) => return Ok(self.long_sub(Scalar::ZERO, x)),
            (UnaryOp::Abs, false) => return Ok(self.long_magnitude(x).0),
            (UnaryOp::Not, false) => return Ok(self.by_halves(Opcode::VXorB32, Scalar::Const(-1), x)),
            // The rows of the others do not admit 64 bits.
            _ => return Err(Diagnostic::bug("an operation that its dtype lacks")),
        };
        Ok(self.wide_op(opcode, [x], 0))
    }

    pub(super) fn wide_binary(
        &mut self,
        op: BinaryOp,
        a: Scalar,
        b: Scalar,
        dtype: DType,
    ) -> Result<Operand, Diagnostic> {
        Ok(match (op, dtype.is_float()) {
            (BinaryOp::Add, true) => self.wide_op(Opcode::VAddF64, [a, b], 0),
            (BinaryOp::Sub, true) => self.wide_op(Opcode::VAddF64, [a, b], 0b10),
            (BinaryOp::Mul, true) => self.wide_op(Opcode::VMulF64, [a, b], 0),
            (BinaryOp::Div, true) => self.divide_doubles(a, b),
            (BinaryOp::Min, true) => self.wide_extremum(Opcode::VMinF64, a, b),
            (BinaryOp::Max, true) => self.wide_extremum(Opcode::VMaxF64, a, b),
            (BinaryOp::Add, false) => self.long_add(a, b),
            (BinaryOp::Sub, false) => self.long_sub(a, b),
            (BinaryOp::Mul, false) => self.long_mul(a, b),
            (BinaryOp::Min, false) => {
                let mask = self.long_mask(Predicate::Lt, a, b);
                self.choose_pair(mask, a, b)
            }
            (BinaryOp::Max, false) => {
                let mask = self.long_mask(Predicate::Gt, a, b);
                self.choose_pair(mask, a, b)
            }
            (BinaryOp::And, false) => self.by_halves(Opcode::VAndB32, a, b),
            (BinaryOp::Or, false) => self.by_halves(Opcode::VOrB32, a, b),
            (BinaryOp::Xor, false) => self.by_halves(Opcode::VXorB32, a, b),
            (BinaryOp::ShiftLeft, false) => self.long_shift(Opcode::VLshlrevB64, a, b),
            (BinaryOp::ShiftRight, false) => self.long_shift(Opcode::VAshrrevI64, a, b),
            (BinaryOp::Div, false) => self.divide_longs(a, b),
            (BinaryOp::FloorDiv, false) => self.floor_divide_longs(a, b),
            (BinaryOp::Rem, false) => self.long_remainder(a, b),
            // The rows of the others do not admit 64 bits.
            _ => return Err(Diagnostic::bug("an operation that its dtype lacks")),
        })
    }

    pub(crate) fn wide_ternary(&mut self, op: TernaryOp, sources: [Scalar; 3]) -> Operand {
        match op {
            TernaryOp::Fma => self.wide_op(Opcode::VFmaF64, sources, 0),
        }
    }

    /// An f64 whose upper half is joined with a constant.
    fn of_upper_half(&mut self, op: Opcode, constant: i64, x: Scalar) -> Operand {
        let [low, high] = halves(x);
        let high = Scalar::Reg(self.in_vector(high));
        let changed = self.vop2(op, Scalar::Const(constant), high);
        self.joined([low, Scalar::Reg(changed)])
    }

    /// As for f32, any NaN is less than a number only without IEEE mode.
    fn wide_extremum(&mut self, op: Opcode, a: Scalar, b: Scalar) -> Operand {
        self.emitter.out.float_extremum = true;
        self.wide_op(op, [a, b], 0)
    }

    /// As [`divide_floats`](Self::divide_floats), in f64: there the estimate has half of the bits, and is
    /// refined twice.
    fn divide_doubles(&mut self, a: Scalar, b: Scalar) -> Operand {
        let [a, b] = [a, b].map(|x| self.pair(x));
        let (scaled_b, scaled_a, unused) = (self.emitter.vgpr(2), self.emitter.vgpr(2), self.emitter.sgpr(2));
        self.emitter.op(Opcode::VDivScaleF64, &[scaled_b, unused, b, b, a]);
        let mut reciprocal = self.wide(Opcode::VRcpF64, &[scaled_b], 0);
        for _ in 0..2 {
            let error = self.wide(Opcode::VFmaF64, &[scaled_b, reciprocal, one()], 1);
            reciprocal = self.wide(Opcode::VFmaF64, &[error, reciprocal, reciprocal], 0);
        }
        self.emitter.op(Opcode::VDivScaleF64, &[scaled_a, Operand::VCC, a, b, a]);
        let quotient = self.wide(Opcode::VMulF64, &[scaled_a, reciprocal], 0);
        let rest = self.wide(Opcode::VFmaF64, &[scaled_b, quotient, scaled_a], 1);
        let unscaled = self.wide(Opcode::VDivFmasF64, &[rest, reciprocal, quotient], 0);
        self.wide(Opcode::VDivFixupF64, &[unscaled, b, a], 0)
    }

    /// The square root, correctly rounded: the estimate of the instruction (CDNA3 ISA guide, V_RSQ_F64: 2^29
    /// ULP) gives root and half its reciprocal, which are refined together, and twice the root alone by its
    /// exact remainder. Small numbers are scaled, so that no remainder is denormal.
    fn wide_sqrt(&mut self, x: Scalar) -> Operand {
        let x = self.pair(x);
        let least = self.wide_constant(2f64.powi(-767));
        let small = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpGtF64, &[small, least, x]);
        let [up, down] = [256, -128].map(|power| {
            let power = self.in_vgpr(Scalar::Const(power));
            self.vop3(Opcode::VCndmaskB32, &[Scalar::ZERO, Scalar::Reg(power), Scalar::Reg(small)])
        });
        let scaled = self.wide(Opcode::VLdexpF64, &[x, up], 0);
        let estimate = self.wide(Opcode::VRsqF64, &[scaled], 0);
        let one_half = Operand::constant(0.5f32.to_bits());
        let mut root = self.wide(Opcode::VMulF64, &[scaled, estimate], 0);
        let mut half_reciprocal = self.wide(Opcode::VMulF64, &[estimate, one_half], 0);
        let error = self.wide(Opcode::VFmaF64, &[half_reciprocal, root, one_half], 1);
        root = self.wide(Opcode::VFmaF64, &[root, error, root], 0);
        half_reciprocal = self.wide(Opcode::VFmaF64, &[half_reciprocal, error, half_reciprocal], 0);
        for _ in 0..2 {
            let rest = self.wide(Opcode::VFmaF64, &[root, root, scaled], 1);
            root = self.wide(Opcode::VFmaF64, &[rest, half_reciprocal, root], 0);
        }
        let root = self.wide(Opcode::VLdexpF64, &[root, down], 0);
        // Zeros and infinity are their own roots (classes 5, 6 and 9 of V_CMP_CLASS_F64).
        let classes = self.constant_sgpr(0x260);
        let own = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpClassF64, &[own, x, classes]);
        self.choose_pair(own, Scalar::Reg(x), Scalar::Reg(root))
    }

    /// The nearest whole number, of two the one further from zero: the whole part, and one more where the
    /// rest is at least a half.
    fn wide_round(&mut self, x: Scalar) -> Operand {
        let x = self.pair(x);
        let whole = self.wide(Opcode::VTruncF64, &[x], 0);
        let rest = self.wide(Opcode::VAddF64, &[x, whole], 0b10);
        let rest = self.of_upper_half(Opcode::VAndB32, SIGN - 1, Scalar::Reg(rest));
        let more = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpLeF64, &[more, Operand::constant(0.5f32.to_bits()), rest]);
        let upper_one = self.in_vgpr(Scalar::Const((1f64.to_bits() >> 32) as i64));
        let step = self.vop3(Opcode::VCndmaskB32, &[Scalar::ZERO, Scalar::Reg(upper_one), Scalar::Reg(more)]);
        let sign = self.vop2(Opcode::VAndB32, Scalar::Const(SIGN), Scalar::Reg(x.offset(1)));
        let signed = self.vop2(Opcode::VOrB32, Scalar::Reg(step), Scalar::Reg(sign));
        let step = self.joined([Scalar::ZERO, Scalar::Reg(signed)]);
        self.wide(Opcode::VAddF64, &[whole, step], 0)
    }

    /// The instructions look at six bits of the count.
    fn long_shift(&mut self, op: Opcode, x: Scalar, count: Scalar) -> Operand {
        let count = match half(count, 0) {
            Scalar::Const(count) => Scalar::Const(count & 63),
            register => Scalar::Reg(self.in_vector(register)),
        };
        let x = self.pair(x);
        let out = self.emitter.vgpr(2);
        self.emitter.op(op, &[out, count.source().0, x]);
        out
    }

    /// The magnitude of an i64, and all bits of its sign. That of the least number is itself, read as
    /// unsigned.
    fn long_magnitude(&mut self, x: Scalar) -> (Operand, Operand) {
        let x = self.pair(x);
        let sign = self.vop2(Opcode::VAshrrevI32, Scalar::Const(31), Scalar::Reg(x.offset(1)));
        (self.signed_by(x, sign), sign)
    }

    /// The number, or with the other sign where the bits of `sign` are set.
    fn signed_by(&mut self, x: Operand, sign: Operand) -> Operand {
        let flipped = [0, 1]
            .map(|at| Scalar::Reg(self.vop2(Opcode::VXorB32, Scalar::Reg(sign), Scalar::Reg(x.offset(at)))));
        let out = self.emitter.vgpr(2);
        let [(low, _), (high, _)] = flipped.map(Scalar::source);
        self.emitter.op(Opcode::VSubCoU32, &[out, Operand::VCC, low, sign]);
        self.emitter.op(Opcode::VSubbCoU32, &[out.offset(1), Operand::VCC, high, sign, Operand::VCC]);
        out
    }

    /// A number without sign in f64.
    fn double_of_unsigned(&mut self, x: Operand) -> Operand {
        let high = self.wide(Opcode::VCvtF64U32, &[x.offset(1)], 0);
        self.double_of_halves(high, x)
    }

    fn double_of_halves(&mut self, high: Operand, x: Operand) -> Operand {
        let shift = Operand::constant(32);
        let high = self.wide(Opcode::VLdexpF64, &[high, shift], 0);
        let low = self.wide(Opcode::VCvtF64U32, &[x.offset(0)], 0);
        self.wide(Opcode::VAddF64, &[high, low], 0)
    }

    /// The upper half of the whole part of an f64, as a whole number, and the lower half.
    fn halves_of_double(&mut self, x: Operand) -> (Operand, Operand) {
        let whole = self.wide(Opcode::VTruncF64, &[x], 0);
        let factor = self.wide_constant(LOW_TO_HIGH);
        let scaled = self.wide(Opcode::VMulF64, &[whole, factor], 0);
        let high = self.wide(Opcode::VFloorF64, &[scaled], 0);
        let factor = self.wide_constant(HIGH_FROM_ALL);
        let low = self.wide(Opcode::VFmaF64, &[high, factor, whole], 0);
        (high, low)
    }

    /// The quotient of two numbers without sign, below 2^63 or equal to it, and what it leaves. Unspecified
    /// where `b` is zero.
    ///
    /// The reciprocal in f64 is good to 51 bits. Quotients by it are made a little smaller, so that they
    /// never exceed the true one: the first lacks no more than 2^15 then, of which the second lacks no more
    /// than one.
    fn divide_magnitudes(&mut self, a: Operand, b: Operand) -> Operand {
        let wide_b = self.double_of_unsigned(b);
        let mut reciprocal = self.wide(Opcode::VRcpF64, &[wide_b], 0);
        for _ in 0..2 {
            let error = self.wide(Opcode::VFmaF64, &[wide_b, reciprocal, one()], 1);
            reciprocal = self.wide(Opcode::VFmaF64, &[error, reciprocal, reciprocal], 0);
        }
        let less = self.wide_constant(1.0 - 2f64.powi(-49));
        reciprocal = self.wide(Opcode::VMulF64, &[reciprocal, less], 0);
        let wide_a = self.double_of_unsigned(a);
        let estimate = self.wide(Opcode::VMulF64, &[wide_a, reciprocal], 0);
        let (high, low) = self.halves_of_double(estimate);
        let first = self.emitter.vgpr(2);
        self.emitter.op(Opcode::VCvtU32F64, &[first, low]);
        self.emitter.op(Opcode::VCvtU32F64, &[first.offset(1), high]);
        let [first, b] = [first, b].map(Scalar::Reg);
        let product = self.long_mul(first, b);
        let rest = self.long_sub(Scalar::Reg(a), Scalar::Reg(product));
        let wide_rest = self.double_of_unsigned(rest);
        let estimate = self.wide(Opcode::VMulF64, &[wide_rest, reciprocal], 0);
        let second = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCvtU32F64, &[second, estimate]);
        let second = self.joined([Scalar::Reg(second), Scalar::ZERO]);
        let product = self.long_mul(Scalar::Reg(second), b);
        let rest = self.long_sub(Scalar::Reg(rest), Scalar::Reg(product));
        let quotient = self.long_add(first, Scalar::Reg(second));
        let mask = self.emitter.sgpr(2);
        self.emitter.with(Opcode::VCmpGeU64, mask, &[Scalar::Reg(rest), b]);
        let more = self.choose_pair(mask, Scalar::Const(1), Scalar::ZERO);
        self.long_add(Scalar::Reg(quotient), Scalar::Reg(more))
    }

    /// Truncated quotient; unspecified where `b` is zero.
    fn long_quotient(&mut self, a: Scalar, b: Scalar) -> Operand {
        let (a, a_sign) = self.long_magnitude(a);
        let (b, b_sign) = self.long_magnitude(b);
        let quotient = self.divide_magnitudes(a, b);
        let differ = self.vop2(Opcode::VXorB32, Scalar::Reg(a_sign), Scalar::Reg(b_sign));
        self.signed_by(quotient, differ)
    }

    fn zero_where_long_zero(&mut self, b: Scalar, quotient: Operand) -> Operand {
        let mask = self.long_mask(Predicate::Eq, Scalar::ZERO, b);
        self.choose_pair(mask, Scalar::ZERO, Scalar::Reg(quotient))
    }

    fn divide_longs(&mut self, a: Scalar, b: Scalar) -> Operand {
        let b = Scalar::Reg(self.pair(b));
        let quotient = self.long_quotient(a, b);
        self.zero_where_long_zero(b, quotient)
    }

    /// What a truncated quotient leaves, and the lanes in which it is one too large.
    fn long_rest(&mut self, a: Scalar, b: Operand, quotient: Operand) -> (Operand, Operand) {
        let product = self.long_mul(Scalar::Reg(quotient), Scalar::Reg(b));
        let rest = self.long_sub(a, Scalar::Reg(product));
        let any = self.long_mask(Predicate::Ne, Scalar::ZERO, Scalar::Reg(rest));
        let signs = self.vop2(Opcode::VXorB32, Scalar::Reg(rest.offset(1)), Scalar::Reg(b.offset(1)));
        let (differ, above) = (self.emitter.sgpr(2), self.emitter.sgpr(2));
        self.emitter.op(Opcode::VCmpGtI32, &[differ, Operand::ZERO, signs]);
        self.emitter.op(Opcode::SAndB64, &[above, any, differ]);
        (rest, above)
    }

    fn floor_divide_longs(&mut self, a: Scalar, b: Scalar) -> Operand {
        if let Some(shift) = power_of_two(b) {
            return self.long_shift(Opcode::VAshrrevI64, a, Scalar::Const(shift.into()));
        }
        let (a, b) = (Scalar::Reg(self.pair(a)), self.pair(b));
        let quotient = self.long_quotient(a, Scalar::Reg(b));
        let (_, above) = self.long_rest(a, b, quotient);
        let step = self.choose_pair(above, Scalar::Const(-1), Scalar::ZERO);
        let floor = self.long_add(Scalar::Reg(quotient), Scalar::Reg(step));
        self.zero_where_long_zero(Scalar::Reg(b), floor)
    }

    /// Whatever the quotient by zero is, its product is zero.
    fn long_remainder(&mut self, a: Scalar, b: Scalar) -> Operand {
        if let Some(shift) = power_of_two(b) {
            return self.by_halves(Opcode::VAndB32, a, Scalar::Const((1 << shift) - 1));
        }
        let (a, b) = (Scalar::Reg(self.pair(a)), self.pair(b));
        let quotient = self.long_quotient(a, Scalar::Reg(b));
        let (rest, above) = self.long_rest(a, b, quotient);
        let step = self.choose_pair(above, Scalar::Reg(b), Scalar::ZERO);
        self.long_add(Scalar::Reg(rest), Scalar::Reg(step))
    }

    /// An i64 rounded to f32. From 2^52 on, the lowest eleven bits only say whether anything is there, so
    /// that the f64 on the way is exact and is rounded once.
    fn single_of_long(&mut self, x: Operand) -> Operand {
        let shifted = self.vop2(Opcode::VAddU32, Scalar::Const(1 << 20), Scalar::Reg(x.offset(1)));
        let large = self.emitter.sgpr(2);
        let limit = self.in_vgpr(Scalar::Const((1 << 21) - 1));
        self.emitter.op(Opcode::VCmpLtU32, &[large, limit, shifted]);
        let lost = self.vop2(Opcode::VAndB32, Scalar::Const(0x7ff), Scalar::Reg(x.offset(0)));
        let any = self.emitter.sgpr(2);
        self.emitter.op(Opcode::VCmpNeU32, &[any, Operand::ZERO, lost]);
        let sticky = self.in_vgpr(Scalar::Const(0x800));
        let sticky = self.vop3(Opcode::VCndmaskB32, &[Scalar::ZERO, Scalar::Reg(sticky), Scalar::Reg(any)]);
        let kept = self.vop2(Opcode::VAndB32, Scalar::Const(!0x7ff), Scalar::Reg(x.offset(0)));
        let jammed = self.vop2(Opcode::VOrB32, Scalar::Reg(kept), Scalar::Reg(sticky));
        let operands = [Scalar::Reg(x.offset(0)), Scalar::Reg(jammed), Scalar::Reg(large)];
        let low = self.vop3(Opcode::VCndmaskB32, &operands);
        let exact = self.joined([Scalar::Reg(low), Scalar::Reg(x.offset(1))]);
        let double = self.double_of_long(exact);
        self.rounded(double)
    }

    fn double_of_long(&mut self, x: Operand) -> Operand {
        let high = self.wide(Opcode::VCvtF64I32, &[x.offset(1)], 0);
        self.double_of_halves(high, x)
    }

    /// An f64 as an i64: truncated, the nearest end beyond the range, zero for NaN.
    fn long_of_double(&mut self, x: Operand) -> Operand {
        let (high, low) = self.halves_of_double(x);
        let [high_part, low_part, out] = [self.emitter.vgpr(1), self.emitter.vgpr(1), self.emitter.vgpr(2)];
        self.emitter.op(Opcode::VCvtI32F64, &[high_part, high]);
        self.emitter.op(Opcode::VCvtU32F64, &[low_part, low]);
        // The upper half saturates by itself.
        let [least, most] = [-(1i64 << 31), 1 << 31].map(|end| self.wide_constant(end as f64));
        let [below, above] = [(Opcode::VCmpGtF64, least), (Opcode::VCmpLeF64, most)].map(|(op, end)| {
            let mask = self.emitter.sgpr(2);
            self.emitter.op(op, &[mask, end, high]);
            mask
        });
        let low = [Scalar::Reg(low_part), Scalar::ZERO, Scalar::Reg(below)];
        let low = self.vop3(Opcode::VCndmaskB32, &low);
        let low = [Scalar::Reg(low), Scalar::Const(-1), Scalar::Reg(above)];
        self.emitter.with(Opcode::VCndmaskB32, out, &low);
        self.emitter.op(Opcode::VMovB32, &[out.offset(1), high_part]);
        out
    }

    /// An f64 rounded to f32 so that rounding the result to fewer bits is as good as rounding the f64: where
    /// it is not exact, the neighbour whose last bit is set.
    fn single_to_odd(&mut self, x: Operand) -> Operand {
        let nearest = self.rounded(x);
        let back = self.widened(nearest);
        let absolute = |lowering: &mut Self, x: Operand| {
            lowering.of_upper_half(Opcode::VAndB32, SIGN - 1, Scalar::Reg(x))
        };
        let [from, to] = [x, back].map(|x| absolute(self, x));
        let [up, down] = [Opcode::VCmpGtF64, Opcode::VCmpLtF64].map(|op| {
            let mask = self.emitter.sgpr(2);
            self.emitter.op(op, &[mask, from, to]);
            mask
        });
        let step = self.vop3(Opcode::VCndmaskB32, &[Scalar::ZERO, Scalar::Const(1), Scalar::Reg(up)]);
        let step = [Scalar::Reg(step), Scalar::Const(-1), Scalar::Reg(down)];
        let step = self.vop3(Opcode::VCndmaskB32, &step);
        // Nothing is added to a last bit that is set.
        let odd = self.vop2(Opcode::VAndB32, Scalar::Const(1), Scalar::Reg(nearest));
        let even = self.vop2(Opcode::VSubU32, Scalar::Reg(odd), Scalar::ZERO);
        let even = self.vop2(Opcode::VAddU32, Scalar::Const(-1), Scalar::Reg(even));
        let step = self.vop2(Opcode::VAndB32, Scalar::Reg(even), Scalar::Reg(step));
        self.vop2(Opcode::VAddU32, Scalar::Reg(nearest), Scalar::Reg(step))
    }

    /// A numeric conversion from or to 64 bits. Of narrower dtypes, the form of 32 bits is taken and given.
    pub(crate) fn wide_cast(&mut self, x: Scalar, from: DType, to: DType) -> Operand {
        let narrow = |lowering: &mut Self, x: Scalar| lowering.in_vector(x);
        match (from, to) {
            (DType::F64, DType::F64) | (DType::I64, DType::I64) => self.pair(x),
            (DType::I64, DType::F64) => {
                let x = self.pair(x);
                self.double_of_long(x)
            }
            (DType::F64, DType::I64) => {
                let x = self.pair(x);
                self.long_of_double(x)
            }
            (DType::I64, to) if to.is_float() => {
                let x = self.pair(x);
                self.single_of_long(x)
            }
            (DType::I64, _) => {
                let low = half(x, 0);
                self.in_vector(low)
            }
            (DType::F64, to) => {
                let x = self.pair(x);
                match (to.is_float(), to.bits()) {
                    (true, 32) => self.rounded(x),
                    (true, _) => self.single_to_odd(x),
                    (false, _) => {
                        let whole = self.emitter.vgpr(1);
                        self.emitter.op(Opcode::VCvtI32F64, &[whole, x]);
                        self.limited(whole, to)
                    }
                }
            }
            (from, to) if from.is_float() => {
                let x = narrow(self, x);
                let double = self.widened(x);
                if to == DType::I64 { self.long_of_double(double) } else { double }
            }
            (_, DType::F64) => {
                let x = narrow(self, x);
                self.wide(Opcode::VCvtF64I32, &[x], 0)
            }
            _ => {
                let x = narrow(self, x);
                let sign = self.vop2(Opcode::VAshrrevI32, Scalar::Const(31), Scalar::Reg(x));
                self.joined([Scalar::Reg(x), Scalar::Reg(sign)])
            }
        }
    }
}

/// The operand of a constant that needs no register.
pub(crate) fn inline(bits: i64, dtype: DType) -> Option<Operand> {
    if dtype.is_float() {
        let value = f64::from_bits(bits as u64);
        let single = value as f32;
        let exact = f64::from(single).to_bits() == value.to_bits() && (value == 0.0 || value.abs() >= 0.5);
        let operand = Operand::constant(single.to_bits());
        return (exact && operand != Operand::LITERAL).then_some(operand);
    }
    i32::try_from(bits).ok().and_then(Operand::inline_integer)
}

/// The exponent of a constant that is a power of two.
fn power_of_two(x: Scalar) -> Option<u32> {
    match x {
        Scalar::Const(value) if value > 0 && (value as u64).is_power_of_two() => Some(value.trailing_zeros()),
        Scalar::Const(_) | Scalar::Reg(_) => None,
    }
}
