//! Symbolic expressions as scalar code: uniform values are computed on the scalar unit, once per expression
//! and scope.

use super::ValueLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Atom, Expr};

impl ValueLayer<'_> {
    /// The value of an expression; its symbols are kernel arguments.
    pub(crate) fn scalar(&mut self, expr: Expr) -> Result<Scalar, Diagnostic> {
        if let Some(value) = self.arena.as_integer(expr) {
            return Ok(Scalar::Const(value));
        }
        if let Some(&(_, value)) = self.expressions.scalars.iter().find(|s| s.0 == expr) {
            return Ok(value);
        }
        let value = self.scalar_sum(expr)?;
        self.expressions.scalars.push((expr, value));
        Ok(value)
    }

    fn scalar_sum(&mut self, expr: Expr) -> Result<Scalar, Diagnostic> {
        // Over the common denominator, then divided once: the sum as a whole is an integer.
        let constant = self.arena.constant(expr);
        // The places of workgroups are long enough for the order to matter: a kernel that is read back after
        // a pass compiles to the same code.
        let terms: Vec<_> = match self.kernel.counts_workgroups {
            false => self.arena.terms(expr).map(|(c, atoms)| (c, atoms.to_vec())).collect(),
            true => self.arena.terms_in_order(expr),
        };
        let denominator = terms.iter().fold(*constant.denom(), |d, (c, _)| lcm(d, *c.denom()));
        let mut sum = Scalar::Const(*constant.numer() * (denominator / *constant.denom()));
        for (coefficient, atoms) in terms {
            let mut product = Scalar::Const(*coefficient.numer() * (denominator / *coefficient.denom()));
            for atom in atoms {
                let atom = self.arena.atom(atom);
                let factor = self.scalar_atom(atom)?;
                product = self.emitter.mul(product, factor);
            }
            sum = match product {
                Scalar::Const(x) if x < 0 => self.emitter.sub(sum, Scalar::Const(-x)),
                Scalar::Const(_) | Scalar::Reg(_) => self.emitter.add(sum, product),
            };
        }
        match u32::try_from(denominator) {
            Ok(1) => Ok(sum),
            Ok(d) if self.arena.range(expr).at_least(0) => Ok(self.emitter.divide(sum, d)),
            Ok(d) => Ok(self.emitter.floor_divide(sum, d)),
            Err(_) => Err(self.no_scalar_code(expr)),
        }
    }

    fn scalar_atom(&mut self, atom: Atom) -> Result<Scalar, Diagnostic> {
        Ok(match atom {
            Atom::Symbol(symbol) => {
                let found = self.symbols.iter().find(|s| s.0 == symbol);
                Scalar::Reg(found.map(|s| s.1).ok_or_else(|| {
                    Diagnostic::new(Kind::Bug, format!("{} is not a kernel argument", symbol.name()))
                })?)
            }
            Atom::FloorDiv(a, b) => self.floor_div(a, b)?,
            Atom::Mod(a, b) => {
                let quotient = self.floor_div(a, b)?;
                let (a, b) = (self.scalar(a)?, self.scalar(b)?);
                let whole = self.emitter.mul(quotient, b);
                self.emitter.sub(a, whole)
            }
            Atom::Min(a, b) => self.extremum(Opcode::SMinI32, a, b)?,
            Atom::Max(a, b) => self.extremum(Opcode::SMaxI32, a, b)?,
        })
    }

    fn extremum(&mut self, op: Opcode, a: Expr, b: Expr) -> Result<Scalar, Diagnostic> {
        let (a, b) = (self.scalar(a)?, self.scalar(b)?);
        Ok(self.emitter.binary(op, a, b))
    }

    pub(crate) fn floor_div(&mut self, a: Expr, b: Expr) -> Result<Scalar, Diagnostic> {
        let divisor = self.arena.as_integer(b).and_then(|d| u32::try_from(d).ok()).filter(|&d| d > 0);
        let Some(divisor) = divisor else { return self.floor_div_by_any(a, b) };
        let value = self.scalar(a)?;
        Ok(match self.arena.range(a).at_least(0) && !divisor.is_power_of_two() {
            true => self.emitter.divide(value, divisor),
            false => self.emitter.floor_divide(value, divisor),
        })
    }

    /// The scalar unit does not divide: the same quotient in all lanes, of which one is read.
    fn floor_div_by_any(&mut self, a: Expr, b: Expr) -> Result<Scalar, Diagnostic> {
        if self.arena.as_integer(b).is_some() {
            return Err(self.no_scalar_code(b));
        }
        let whole = self.arena.floor_div(a, b).map_err(|_| self.no_scalar_code(a))?;
        if let Some(&(_, value)) = self.expressions.scalars.iter().find(|s| s.0 == whole) {
            return Ok(value);
        }
        let (a, b) = (self.scalar(a)?, self.scalar(b)?);
        let quotient = self.floor_divide_integers(a, b);
        let number = self.emitter.sgpr(1);
        self.emitter.op(Opcode::VReadfirstlaneB32, &[number, quotient]);
        self.expressions.scalars.push((whole, Scalar::Reg(number)));
        Ok(Scalar::Reg(number))
    }

    fn no_scalar_code(&self, expr: Expr) -> Diagnostic {
        let text = format!("the expression {} cannot be computed in the kernel", self.arena.display(expr));
        Diagnostic::new(Kind::Unsupported, text).help("bind more symbols at compile time")
    }

    /// The product of scalars with 64 bits, low and high half.
    pub(crate) fn product64(&mut self, factors: &[Scalar]) -> [Scalar; 2] {
        let [mut low, mut high] = [Scalar::Const(1), Scalar::ZERO];
        for &factor in factors {
            if let (Scalar::Const(l), Scalar::Const(h), Scalar::Const(f)) = (low, high, factor) {
                let value = (i128::from(h) << 32 | i128::from(l as u32)) * i128::from(f);
                (low, high) = (Scalar::Const(i64::from(value as u32)), Scalar::Const((value >> 32) as i64));
                continue;
            }
            if low == Scalar::Const(1) && high == Scalar::ZERO {
                low = factor;
                continue;
            }
            let carried = self.emitter.binary(Opcode::SMulHiU32, low, factor);
            let upper = self.emitter.mul(high, factor);
            low = self.emitter.mul(low, factor);
            high = self.emitter.add(carried, upper);
        }
        [low, high]
    }

    /// `a + b` or `a - b` with 64 bits.
    pub(crate) fn sum64(&mut self, a: [Scalar; 2], b: [Scalar; 2], sign: Sign) -> [Scalar; 2] {
        if b == [Scalar::ZERO; 2] {
            return a;
        }
        if a == [Scalar::ZERO; 2] && sign == Sign::Plus {
            return b;
        }
        let (first, second) = match sign {
            Sign::Plus => (Opcode::SAddU32, Opcode::SAddcU32),
            Sign::Minus => (Opcode::SSubU32, Opcode::SSubbU32),
        };
        if let ([Scalar::Const(al), Scalar::Const(ah)], [Scalar::Const(bl), Scalar::Const(bh)]) = (a, b) {
            let join = |l: i64, h: i64| (h << 32) | i64::from(l as u32);
            let (a, b) = (join(al, ah), join(bl, bh));
            let sum = if sign == Sign::Plus { a.wrapping_add(b) } else { a.wrapping_sub(b) };
            return [Scalar::Const(i64::from(sum as u32)), Scalar::Const(sum >> 32)];
        }
        // The halves must follow each other: the carry travels in SCC, and no other instruction may come in
        // between.
        let prepare = |lowering: &mut Self, x: Scalar, y: Scalar| {
            let wide = |s: Scalar| s.source().0 == Operand::LITERAL;
            if wide(x) && wide(y) { Scalar::Reg(lowering.emitter.in_sgpr(x)) } else { x }
        };
        let (al, ah) = (prepare(self, a[0], b[0]), prepare(self, a[1], b[1]));
        let (low, high) = (self.emitter.sgpr(1), self.emitter.sgpr(1));
        self.emitter.with(first, low, &[al, b[0]]);
        self.emitter.with(second, high, &[ah, b[1]]);
        [Scalar::Reg(low), Scalar::Reg(high)]
    }
}

/// Direction of [`ValueLayer::sum64`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sign {
    /// Sum.
    Plus,
    /// Difference.
    Minus,
}

pub(crate) fn lcm(a: i64, b: i64) -> i64 {
    let gcd = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    a / gcd(a, b) * b
}
