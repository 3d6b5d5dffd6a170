//! Values of symbolic expressions over places: what is the same in all lanes is computed on the scalar unit,
//! what differs from lane to lane on the vector unit, and either of them once for each scope in which it does
//! not change.
//!
//! Remainders are written as quotients (`ir/expr/remainders.rs`) where fewer divisions are left: an address
//! of a 3 x 3 filter has one.

#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::ValueLayer;
use super::dependence::{DependenceClass, HeldValue, MOST_24_BITS, PlaceSymbol};
use super::quotients::{Dividend, Divisor};
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::{Scalar, magic_divisor};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Atom, Expr, ExprError, Rational, Symbol};
use crate::ir::facts::Iteration;
use crate::ir::types::DType;

/// What is known only where an access stands: its iteration, and the operands of its mapping.
#[derive(Clone, Default, Debug)]
pub(crate) struct LateFacts {
    pub(crate) iteration: Iteration,
    pub(crate) operands: SmallVec<[Entity; 2]>,
}

/// Values of expressions over places.
#[derive(Default)]
pub(super) struct ExpressionValues {
    /// Those whose symbols are kernel arguments, on the scalar unit.
    pub(super) scalars: SmallVec<[(Expr, Scalar); 16]>,
    pub(super) kinds: SmallVec<[(Symbol, PlaceSymbol); 16]>,
    pub(super) classes: FxHashMap<Expr, DependenceClass>,
    /// Values that are valid at this point; those that depend on an iteration by iteration.
    values: FxHashMap<(Expr, Option<Iteration>), HeldValue>,
    /// The keys of `values`, oldest first.
    known: Vec<(Expr, Option<Iteration>)>,
    /// Values that others may differ from by a constant.
    bases: Vec<(Expr, Option<Iteration>, Operand)>,
}

/// How many of them are valid at a point of the code.
#[derive(Copy, Clone)]
pub(super) struct ExpressionScope {
    scalars: usize,
    known: usize,
    bases: usize,
}

impl ExpressionValues {
    pub(super) fn scope(&self) -> ExpressionScope {
        ExpressionScope { scalars: self.scalars.len(), known: self.known.len(), bases: self.bases.len() }
    }

    pub(super) fn leave(&mut self, scope: ExpressionScope) {
        for key in self.known.drain(scope.known..) {
            self.values.remove(&key);
        }
        self.scalars.truncate(scope.scalars);
        self.bases.truncate(scope.bases);
    }
}

/// Whether the product with a factor is worth an instruction for numbers of 24 bits: shifts are as short.
fn is_small_factor(factor: i64) -> bool {
    (0..=MOST_24_BITS).contains(&factor) && !(factor as u64).is_power_of_two()
}

impl ValueLayer<'_> {
    /// The fault of an expression that the algebra cannot hold.
    pub(crate) fn unmappable(&self, error: ExprError) -> Diagnostic {
        Diagnostic::new(Kind::Limit, format!("a coordinate cannot be computed: {error}"))
            .at(self.kernel.locations.get(self.emitter.source))
            .help("use smaller sizes or shorter expressions")
    }

    /// Computes what of an expression is known already, so that only the rest is left for later.
    pub(crate) fn prepare(&mut self, e: Expr) -> Result<(), Diagnostic> {
        let class = self.class(e);
        if class.is_early() {
            if self.arena.as_integer(e).is_none() {
                self.held(e, &LateFacts::default())?;
            }
            return Ok(());
        }
        let [early, late] = self.early_and_late(e).map_err(|e| self.unmappable(e))?;
        self.prepare(early)?;
        for (coefficient, factors) in self.terms(late) {
            self.prepare_factor(&factors, coefficient);
            for factor in factors {
                let atom = self.arena.as_atom(factor);
                match atom.and_then(Atom::operands) {
                    Some((a, b)) => {
                        self.prepare(a)?;
                        self.prepare(b)?;
                        if let Some(Atom::FloorDiv(..)) = atom {
                            self.prepare_divisor(a, b);
                        }
                    }
                    None if self.class(factor).is_early() => self.prepare(factor)?,
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Has the constant that the product with a vector needs in a register.
    fn prepare_factor(&mut self, factors: &[Expr], coefficient: Rational) {
        let [factor] = factors else { return };
        let is_literal = |x: i64| is_small_factor(x) && Operand::inline_integer(x as i32).is_none();
        if *coefficient.denom() == 1
            && is_literal(*coefficient.numer())
            && self.has_24_bits(*factor)
            && !self.class(*factor).is_uniform()
        {
            self.constant_sgpr(*coefficient.numer() as u32);
        }
    }

    /// Has the multiplier of a division of vectors in a register.
    fn prepare_divisor(&mut self, a: Expr, b: Expr) {
        let dividend = Dividend::of(self.arena.range(a));
        let divisor = self.arena.as_integer(b).and_then(|d| u32::try_from(d).ok());
        let divisor = divisor.filter(|d| *d < 1 << 31 && *d > 0 && !d.is_power_of_two());
        if let Some(divisor) = divisor
            && !self.class(a).is_uniform()
        {
            self.constant_sgpr(magic_divisor(divisor, dividend.most).0);
        }
    }

    /// The value of an expression, in 32 bits.
    pub(crate) fn held(&mut self, e: Expr, late: &LateFacts) -> Result<HeldValue, Diagnostic> {
        if let Some(value) = self.arena.as_integer(e) {
            return Ok(HeldValue::Uniform(Scalar::Const(value)));
        }
        let class = self.class(e);
        let key = (e, class.has(DependenceClass::TRIP).then_some(late.iteration));
        let remembered = !class.has(DependenceClass::OPERAND);
        if remembered && let Some(&held) = self.expressions.values.get(&key) {
            return Ok(held);
        }
        let held = match self.arena.as_atom(e) {
            Some(atom) => self.held_atom(atom, late)?,
            None => self.held_sum(e, class, late)?,
        };
        if remembered {
            self.expressions.values.insert(key, held);
            self.expressions.known.push(key);
        }
        Ok(held)
    }

    /// The same of an expression that differs by a constant from one that was held in this way before, as
    /// the elements of a lane do from each other: one addition.
    pub(crate) fn held_near(&mut self, e: Expr, late: &LateFacts) -> Result<HeldValue, Diagnostic> {
        let class = self.class(e);
        if class.is_uniform() || class.has(DependenceClass::OPERAND) {
            return self.held(e, late);
        }
        let key = (e, class.has(DependenceClass::TRIP).then_some(late.iteration));
        if let Some(&held) = self.expressions.values.get(&key) {
            return Ok(held);
        }
        for &(other, iteration, register) in &self.expressions.bases {
            let arena = &mut self.arena;
            let step = arena.sub(e, other).ok().filter(|_| iteration == key.1);
            let step = step.and_then(|step| arena.as_integer(step));
            if let Some(step) = step.filter(|step| i32::try_from(*step).is_ok()) {
                let moved = self.emitter.vgpr(1);
                self.emitter.with(Opcode::VAddU32, moved, &[Scalar::Const(step), Scalar::Reg(register)]);
                self.expressions.values.insert(key, HeldValue::Vector(moved));
                self.expressions.known.push(key);
                return Ok(HeldValue::Vector(moved));
            }
        }
        let held = self.held(e, late)?;
        if let HeldValue::Vector(register) = held {
            self.expressions.bases.push((e, key.1, register));
        }
        Ok(held)
    }

    fn held_sum(
        &mut self,
        e: Expr,
        class: DependenceClass,
        late: &LateFacts,
    ) -> Result<HeldValue, Diagnostic> {
        let denominator = self.denominator(e);
        let mut own = e;
        let mut sum = (None, Scalar::ZERO);
        if !class.is_early() && denominator == 1 {
            // Apart, so that it is found in front of the loop.
            let [early, rest] = self.early_and_late(e).map_err(|e| self.unmappable(e))?;
            if early != Expr::ZERO {
                own = rest;
                match self.held(early, late)? {
                    HeldValue::Uniform(scalar) => sum.1 = scalar,
                    HeldValue::Vector(vector) => sum.0 = Some(vector),
                }
            }
        }
        // Over the common denominator, then divided once: the sum as a whole is an integer.
        sum = self.add_terms(sum, own, denominator, late)?;
        let total = match sum {
            (None, scalar) => HeldValue::Uniform(scalar),
            (vector, scalar) => HeldValue::Vector(self.add_uniform(vector, scalar)),
        };
        match denominator {
            1 => Ok(total),
            _ => self.floored_quotient(
                (total, Dividend::ANY),
                HeldValue::Uniform(Scalar::Const(denominator)),
                Divisor::Positive,
            ),
        }
    }

    /// `base` plus an expression without fractions, in a VGPR.
    pub(crate) fn held_onto(
        &mut self,
        base: Operand,
        e: Expr,
        late: &LateFacts,
    ) -> Result<Operand, Diagnostic> {
        let (vector, scalar) = self.add_terms((Some(base), Scalar::ZERO), e, 1, late)?;
        Ok(self.add_uniform(vector, scalar))
    }

    /// A sum of a vector, if there is one, and a scalar, to which the terms of an expression are added,
    /// `denominator` times each.
    fn add_terms(
        &mut self,
        mut sum: (Option<Operand>, Scalar),
        e: Expr,
        denominator: i64,
        late: &LateFacts,
    ) -> Result<(Option<Operand>, Scalar), Diagnostic> {
        let constant = self.arena.constant(e);
        let scaled = |c: Rational| *c.numer() * (denominator / *c.denom());
        sum.1 = self.emitter.add(sum.1, Scalar::Const(scaled(constant)));
        for (coefficient, factors) in self.terms(e) {
            let mut product = Scalar::Const(scaled(coefficient));
            let mut vector = None;
            let mut is_small = true;
            for factor in factors {
                match (self.held(factor, late)?, vector) {
                    (HeldValue::Uniform(scalar), _) => product = self.emitter.mul(product, scalar),
                    (HeldValue::Vector(value), None) => {
                        vector = Some(value);
                        is_small = self.has_24_bits(factor);
                    }
                    (HeldValue::Vector(value), Some(other)) => {
                        let both = self.emitter.vgpr(1);
                        self.emitter.op(Opcode::VMulLoU32, &[both, other, value]);
                        vector = Some(both);
                        is_small = false;
                    }
                }
            }
            match (vector, product) {
                (Some(value), Scalar::Const(-1)) if sum.0.is_some() => {
                    let total = self.emitter.vgpr(1);
                    self.emitter.op(Opcode::VSubU32, &[total, sum.0.unwrap_or(value), value]);
                    sum.0 = Some(total);
                }
                (Some(value), Scalar::Const(factor)) if is_small && is_small_factor(factor) => {
                    sum.0 = Some(self.add_small_product(sum.0, value, factor));
                }
                (Some(value), _) => sum.0 = Some(self.add_scaled(sum.0, value, product)),
                (None, Scalar::Const(x)) if x < 0 => sum.1 = self.emitter.sub(sum.1, Scalar::Const(-x)),
                (None, _) => sum.1 = self.emitter.add(sum.1, product),
            }
        }
        Ok(sum)
    }

    /// `sum + value * factor`, both of 24 bits: one instruction at the full rate, where the product of 32
    /// bits takes four times as long.
    fn add_small_product(&mut self, sum: Option<Operand>, value: Operand, factor: i64) -> Operand {
        let factor = match Operand::inline_integer(factor as i32) {
            Some(inline) => inline,
            None => self.constant_sgpr(factor as u32),
        };
        let total = self.emitter.vgpr(1);
        match sum {
            Some(sum) => self.emitter.op(Opcode::VMadU32U24, &[total, value, factor, sum]),
            None => self.emitter.op(Opcode::VMulU32U24, &[total, factor, value]),
        }
        total
    }

    fn held_atom(&mut self, atom: Atom, late: &LateFacts) -> Result<HeldValue, Diagnostic> {
        match atom {
            Atom::Symbol(symbol) => self.held_symbol(symbol, late),
            Atom::FloorDiv(a, b) => {
                let dividend = Dividend::of(self.arena.range(a));
                let divisor = Divisor::of(self.arena.range(b));
                let (a, b) = (self.held(a, late)?, self.held(b, late)?);
                self.floored_quotient((a, dividend), b, divisor)
            }
            Atom::Mod(a, b) => {
                let divisor = self.arena.as_integer(b).filter(|d| *d > 0 && (*d as u64).is_power_of_two());
                if let Some(divisor) = divisor {
                    let mask = Scalar::Const(divisor - 1);
                    return Ok(match self.held(a, late)? {
                        HeldValue::Uniform(a) => {
                            HeldValue::Uniform(self.emitter.binary(Opcode::SAndB32, a, mask))
                        }
                        HeldValue::Vector(a) => {
                            let rest = self.emitter.vgpr(1);
                            self.emitter.with(Opcode::VAndB32, rest, &[mask, Scalar::Reg(a)]);
                            HeldValue::Vector(rest)
                        }
                    });
                }
                let quotient = self.arena.floor_div(a, b).map_err(|e| self.unmappable(e))?;
                let quotient = self.held(quotient, late)?;
                let (a, b) = (self.held(a, late)?, self.held(b, late)?);
                Ok(match (quotient, a, b) {
                    (HeldValue::Uniform(quotient), HeldValue::Uniform(a), HeldValue::Uniform(b)) => {
                        let whole = self.emitter.mul(quotient, b);
                        HeldValue::Uniform(self.emitter.sub(a, whole))
                    }
                    _ => {
                        let [quotient, a, b] = [quotient, a, b].map(|held| self.vector_of(held));
                        let (whole, rest) = (self.emitter.vgpr(1), self.emitter.vgpr(1));
                        self.emitter.op(Opcode::VMulLoU32, &[whole, quotient, b]);
                        self.emitter.op(Opcode::VSubU32, &[rest, a, whole]);
                        HeldValue::Vector(rest)
                    }
                })
            }
            Atom::Min(a, b) => self.least_or_most([Opcode::SMinI32, Opcode::VMinI32], a, b, late),
            Atom::Max(a, b) => self.least_or_most([Opcode::SMaxI32, Opcode::VMaxI32], a, b, late),
        }
    }

    fn least_or_most(
        &mut self,
        [scalar, vector]: [Opcode; 2],
        a: Expr,
        b: Expr,
        late: &LateFacts,
    ) -> Result<HeldValue, Diagnostic> {
        Ok(match (self.held(a, late)?, self.held(b, late)?) {
            (HeldValue::Uniform(a), HeldValue::Uniform(b)) => {
                HeldValue::Uniform(self.emitter.binary(scalar, a, b))
            }
            (a, b) => {
                let (a, b, chosen) = (self.vector_of(a), self.vector_of(b), self.emitter.vgpr(1));
                self.emitter.op(vector, &[chosen, a, b]);
                HeldValue::Vector(chosen)
            }
        })
    }

    fn held_symbol(&mut self, symbol: Symbol, late: &LateFacts) -> Result<HeldValue, Diagnostic> {
        let Some(kind) = self.kind_of(symbol) else {
            let found = self.symbols.iter().find(|s| s.0 == symbol);
            let missing = || Diagnostic::bug(format!("{} is not a kernel argument", symbol.name()));
            return Ok(HeldValue::Uniform(Scalar::Reg(found.ok_or_else(missing)?.1)));
        };
        Ok(match kind {
            PlaceSymbol::Workgroup(axis) => HeldValue::Uniform(Scalar::Reg(self.workgroup[axis as usize])),
            PlaceSymbol::Lane { weight, extent } => HeldValue::Vector(self.lane_digit(weight, extent)),
            PlaceSymbol::Wave { weight, extent, top } => {
                let wave = self.thread.wave;
                let quotient = self.emitter.divide(wave, weight);
                HeldValue::Uniform(match top {
                    true => quotient,
                    false => {
                        let rounds = self.emitter.divide(quotient, extent);
                        let whole = self.emitter.mul(rounds, Scalar::Const(i64::from(extent)));
                        self.emitter.sub(quotient, whole)
                    }
                })
            }
            PlaceSymbol::Trip(dim) => HeldValue::Uniform(self.mapped_iteration(dim, late.iteration)?),
            PlaceSymbol::Operand { number, element } => {
                let operand = late.operands.get(number).copied();
                let operand =
                    operand.ok_or_else(|| Diagnostic::bug("a coordinate of an operand that is not there"))?;
                match self.element(operand, element, DType::I32)? {
                    Scalar::Reg(register) if self.is_vector(register) => HeldValue::Vector(register),
                    scalar @ (Scalar::Reg(_) | Scalar::Const(_)) => HeldValue::Uniform(scalar),
                }
            }
        })
    }

    fn is_vector(&self, register: Operand) -> bool {
        use crate::codegen::machine::RegisterFile;
        self.emitter.file(register) == RegisterFile::Vgpr
    }
}
