//! Instructions of element-wise operations, on elements that are 32 bits wide: one row per operation, for
//! floats and for integers. Operations that take several instructions are sequences in `arithmetic` or
//! `functions`.

use super::ArithmeticLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::arithmetic::functions::Sinusoid;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{BinaryOp, TernaryOp, UnaryOp};
use crate::ir::types::DType;

/// The code for floats and for integers.
struct OperationCode<T> {
    float: T,
    integer: T,
}

impl<T> OperationCode<T> {
    fn of(self, dtype: DType) -> T {
        if dtype.is_float() { self.float } else { self.integer }
    }
}

/// Code of an operation on one element.
enum UnaryCode {
    /// An instruction.
    One(Opcode),
    /// An instruction with a constant as its first source.
    With(Opcode, u32),
    /// Several instructions.
    Sequence(fn(&mut ArithmeticLayer<'_>, Scalar, DType) -> Operand),
    /// The operation's row does not admit the dtype.
    None,
}

/// Code of an operation on two elements.
enum BinaryCode {
    /// An instruction whose sources may change places.
    Commutes(Opcode),
    /// An instruction, and the one with its sources in the other order.
    Reverses(Opcode, Opcode),
    /// Several instructions.
    Sequence(fn(&mut ArithmeticLayer<'_>, Scalar, Scalar, DType) -> Operand),
    /// The operation's row does not admit the dtype.
    None,
}

fn unary_code(op: UnaryOp) -> OperationCode<UnaryCode> {
    use UnaryCode::{None, One, Sequence, With};
    match op {
        UnaryOp::Neg => {
            OperationCode { float: With(Opcode::VXorB32, 0x8000_0000), integer: With(Opcode::VSubU32, 0) }
        }
        UnaryOp::Abs => OperationCode {
            float: With(Opcode::VAndB32, 0x7fff_ffff),
            integer: Sequence(|lowering, x, _| {
                let negated = lowering.vop2(Opcode::VSubU32, Scalar::ZERO, x);
                lowering.vop2(Opcode::VMaxI32, x, Scalar::Reg(negated))
            }),
        },
        UnaryOp::Exp => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.exp(x, dtype)), integer: None }
        }
        UnaryOp::Exp2 => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.exp2(x, dtype)), integer: None }
        }
        UnaryOp::Log2 => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.log2(x, dtype)), integer: None }
        }
        UnaryOp::Sqrt => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.sqrt(x, dtype)), integer: None }
        }
        UnaryOp::Reciprocal => {
            OperationCode { float: Sequence(|lowering, x, _| lowering.reciprocal(x)), integer: None }
        }
        UnaryOp::Tanh => OperationCode { float: Sequence(|lowering, x, _| lowering.tanh(x)), integer: None },
        UnaryOp::Floor => OperationCode { float: One(Opcode::VFloorF32), integer: None },
        UnaryOp::Ceil => OperationCode { float: One(Opcode::VCeilF32), integer: None },
        UnaryOp::Trunc => OperationCode { float: One(Opcode::VTruncF32), integer: None },
        UnaryOp::RoundEven => OperationCode { float: One(Opcode::VRndneF32), integer: None },
        UnaryOp::Round => {
            OperationCode { float: Sequence(|lowering, x, _| lowering.round(x)), integer: None }
        }
        UnaryOp::Rsqrt => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.rsqrt(x, dtype)), integer: None }
        }
        UnaryOp::Cbrt => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.cbrt(x, dtype)), integer: None }
        }
        UnaryOp::Log => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.log(x, dtype)), integer: None }
        }
        UnaryOp::Log10 => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.log10(x, dtype)), integer: None }
        }
        UnaryOp::Sigmoid => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.sigmoid(x, dtype)), integer: None }
        }
        UnaryOp::Silu => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.silu(x, dtype)), integer: None }
        }
        UnaryOp::Gelu => {
            OperationCode { float: Sequence(|lowering, x, dtype| lowering.gelu(x, dtype)), integer: None }
        }
        UnaryOp::GeluTanh => OperationCode {
            float: Sequence(|lowering, x, dtype| lowering.gelu_tanh(x, dtype)),
            integer: None,
        },
        UnaryOp::Log1p => {
            OperationCode { float: Sequence(|lowering, x, _| lowering.log1p(x)), integer: None }
        }
        UnaryOp::Expm1 => {
            OperationCode { float: Sequence(|lowering, x, _| lowering.expm1(x)), integer: None }
        }
        UnaryOp::Sinh => OperationCode { float: Sequence(|lowering, x, _| lowering.sinh(x)), integer: None },
        UnaryOp::Cosh => OperationCode { float: Sequence(|lowering, x, _| lowering.cosh(x)), integer: None },
        UnaryOp::Erf => OperationCode { float: Sequence(|lowering, x, _| lowering.erf(x)), integer: None },
        UnaryOp::Sin => OperationCode {
            float: Sequence(|lowering, x, _| lowering.sinusoid(Sinusoid::Sine, x)),
            integer: None,
        },
        UnaryOp::Cos => OperationCode {
            float: Sequence(|lowering, x, _| lowering.sinusoid(Sinusoid::Cosine, x)),
            integer: None,
        },
        UnaryOp::Not => OperationCode { float: None, integer: One(Opcode::VNotB32) },
    }
}

fn binary_code(op: BinaryOp) -> OperationCode<BinaryCode> {
    use BinaryCode::{Commutes, None, Reverses, Sequence};
    match op {
        BinaryOp::Add => {
            OperationCode { float: Commutes(Opcode::VAddF32), integer: Commutes(Opcode::VAddU32) }
        }
        BinaryOp::Sub => OperationCode {
            float: Reverses(Opcode::VSubF32, Opcode::VSubrevF32),
            integer: Reverses(Opcode::VSubU32, Opcode::VSubrevU32),
        },
        BinaryOp::Mul => OperationCode {
            float: Commutes(Opcode::VMulF32),
            integer: Sequence(|lowering, a, b, _| {
                let (a, b) = (lowering.in_vector(a), lowering.in_vector(b));
                lowering.vop3(Opcode::VMulLoU32, &[Scalar::Reg(a), Scalar::Reg(b)])
            }),
        },
        BinaryOp::Div => OperationCode {
            float: Sequence(|lowering, a, b, _| lowering.quotient(a, b)),
            integer: Sequence(|lowering, a, b, _| lowering.divide_integers(a, b)),
        },
        BinaryOp::Min => OperationCode {
            float: Sequence(|lowering, a, b, _| lowering.float_extremum(Opcode::VMinF32, a, b)),
            integer: Commutes(Opcode::VMinI32),
        },
        BinaryOp::Max => OperationCode {
            float: Sequence(|lowering, a, b, _| lowering.float_extremum(Opcode::VMaxF32, a, b)),
            integer: Commutes(Opcode::VMaxI32),
        },
        BinaryOp::FloorDiv => OperationCode {
            float: None,
            integer: Sequence(|lowering, a, b, _| lowering.floor_divide_integers(a, b)),
        },
        BinaryOp::Rem => {
            OperationCode { float: None, integer: Sequence(|lowering, a, b, _| lowering.remainder(a, b)) }
        }
        BinaryOp::Pow => {
            OperationCode { float: Sequence(|lowering, a, b, _| lowering.pow(a, b)), integer: None }
        }
        BinaryOp::Atan2 => {
            OperationCode { float: Sequence(|lowering, a, b, _| lowering.atan2(a, b)), integer: None }
        }
        BinaryOp::And => OperationCode { float: None, integer: Commutes(Opcode::VAndB32) },
        BinaryOp::Or => OperationCode { float: None, integer: Commutes(Opcode::VOrB32) },
        BinaryOp::Xor => OperationCode { float: None, integer: Commutes(Opcode::VXorB32) },
        BinaryOp::ShiftLeft => OperationCode {
            float: None,
            integer: Sequence(|lowering, a, b, dtype| lowering.shift(Opcode::VLshlrevB32, a, b, dtype)),
        },
        BinaryOp::ShiftRight => OperationCode {
            float: None,
            integer: Sequence(|lowering, a, b, dtype| lowering.shift(Opcode::VAshrrevI32, a, b, dtype)),
        },
    }
}

impl ArithmeticLayer<'_> {
    pub(crate) fn unary(&mut self, op: UnaryOp, x: Scalar, dtype: DType) -> Result<Operand, Diagnostic> {
        match unary_code(op).of(dtype) {
            UnaryCode::One(opcode) => Ok(self.vop1(opcode, x)),
            UnaryCode::With(opcode, constant) => Ok(self.vop2(opcode, Scalar::Const(constant.into()), x)),
            UnaryCode::Sequence(code) => Ok(code(self, x, dtype)),
            UnaryCode::None => Err(Diagnostic::bug("an operation that its dtype lacks")),
        }
    }

    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        a: Scalar,
        b: Scalar,
        dtype: DType,
    ) -> Result<Operand, Diagnostic> {
        if dtype.bits() == 64 {
            return self.wide_binary(op, a, b, dtype);
        }
        Ok(match binary_code(op).of(dtype) {
            BinaryCode::Commutes(opcode) => self.commuting(opcode, a, b),
            BinaryCode::Reverses(_, reversed) if self.goes_first(b) => self.vop2(reversed, b, a),
            BinaryCode::Reverses(opcode, _) => self.vop2(opcode, a, b),
            BinaryCode::Sequence(code) => code(self, a, b, dtype),
            BinaryCode::None => return Err(Diagnostic::bug("an operation that its dtype lacks")),
        })
    }

    pub(crate) fn ternary(&mut self, op: TernaryOp, sources: [Scalar; 3]) -> Operand {
        match op {
            TernaryOp::Fma => {
                // Of literals, which the instruction does not take, one may be in an SGPR.
                let mut literal = true;
                let sources = sources.map(|source| match source {
                    Scalar::Const(value) if source.source().0 == Operand::LITERAL && literal => {
                        literal = false;
                        Scalar::Reg(self.constant_sgpr(value as u32))
                    }
                    Scalar::Const(_) | Scalar::Reg(_) => source,
                });
                self.vop3(Opcode::VFmaF32, &sources)
            }
        }
    }

    /// True for a source that may only be the first one: a constant or an SGPR.
    fn goes_first(&self, source: Scalar) -> bool {
        matches!(source, Scalar::Const(_)) || self.is_uniform(source)
    }

    /// An instruction whose sources may change places.
    fn commuting(&mut self, opcode: Opcode, a: Scalar, b: Scalar) -> Operand {
        let (first, second) = if self.goes_first(b) { (b, a) } else { (a, b) };
        self.vop2(opcode, first, second)
    }

    /// Minimum or maximum, in which a number wins against any NaN. In IEEE mode a signalling NaN would win,
    /// and be made quiet; without it, it loses like a quiet one (CDNA3 ISA guide, V_MIN_F32; LLVM lowers
    /// `llvm.minnum` in the same way in both modes, llvm/test/CodeGen/AMDGPU/amdgcn-ieee.ll). So the kernel
    /// starts with the mode off.
    pub(crate) fn float_extremum(&mut self, opcode: Opcode, a: Scalar, b: Scalar) -> Operand {
        self.emitter.out.float_extremum = true;
        self.commuting(opcode, a, b)
    }
}
