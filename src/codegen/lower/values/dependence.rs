//! What expressions over places depend on, their parts by that, and the registers that hold either.
//!
//! A place of an element is a workgroup, a lane, a wave and an iteration: each is a symbol with a range, and
//! so are the elements of operands that are coordinates. Any other symbol is a kernel argument.

use std::ops::RangeInclusive;

use smallvec::SmallVec;

use super::ValueLayer;
use super::scalars::lcm;
use crate::codegen::isa::Operand;
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::expr::{Atom, Expr, ExprError, Rational, Symbol};
use crate::ir::layout::Dim;

/// The meaning of a symbol of a place; any other symbol is a kernel argument.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PlaceSymbol {
    /// Number of the workgroup along a grid axis.
    Workgroup(u32),
    /// A digit of the lane number.
    Lane { weight: u32, extent: u32 },
    /// A digit of the wave number.
    Wave { weight: u32, extent: u32, top: bool },
    /// The number of the iteration of the loop over a dimension.
    Trip(Dim),
    /// An element of an operand of the mapping.
    Operand { number: usize, element: u32 },
}

/// The things that an expression depends on.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct DependenceClass(u8);

impl DependenceClass {
    const LANE: DependenceClass = DependenceClass(1);
    pub(super) const TRIP: DependenceClass = DependenceClass(2);
    pub(super) const OPERAND: DependenceClass = DependenceClass(4);

    fn with(self, other: DependenceClass) -> DependenceClass {
        DependenceClass(self.0 | other.0)
    }

    pub(super) fn has(self, other: DependenceClass) -> bool {
        self.0 & other.0 != 0
    }

    /// The same in all lanes.
    pub(crate) fn is_uniform(self) -> bool {
        !self.has(DependenceClass::LANE)
    }

    /// Known in front of all loops and loads.
    pub(crate) fn is_early(self) -> bool {
        !self.has(DependenceClass::TRIP) && !self.has(DependenceClass::OPERAND)
    }
}

/// A coefficient and the factors that it belongs to.
pub(crate) type ExprFactors = (Rational, SmallVec<[Expr; 4]>);

/// The place of a value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum HeldValue {
    /// The same in all lanes.
    Uniform(Scalar),
    /// In a VGPR.
    Vector(Operand),
}

/// The largest number of 24 bits.
pub(super) const MOST_24_BITS: i64 = (1 << 24) - 1;

impl ValueLayer<'_> {
    /// Says what a symbol stands for, and in which range it is.
    pub(crate) fn name_place(
        &mut self,
        symbol: Symbol,
        kind: PlaceSymbol,
        range: RangeInclusive<i64>,
    ) -> Result<(), ExprError> {
        if self.kind_of(symbol).is_none() {
            self.arena.assume_range(symbol, range)?;
            self.expressions.kinds.push((symbol, kind));
        }
        Ok(())
    }

    /// The things that an expression depends on.
    pub(crate) fn class(&mut self, e: Expr) -> DependenceClass {
        if let Some(&class) = self.expressions.classes.get(&e) {
            return class;
        }
        let mut class = DependenceClass::default();
        let atoms: SmallVec<[Atom; 8]> =
            self.arena.terms(e).flat_map(|(_, atoms)| atoms).map(|&atom| self.arena.atom(atom)).collect();
        for atom in atoms {
            class = class.with(match atom {
                Atom::Symbol(symbol) => match self.kind_of(symbol) {
                    Some(PlaceSymbol::Lane { .. }) => DependenceClass::LANE,
                    Some(PlaceSymbol::Trip(_)) => DependenceClass::TRIP,
                    Some(PlaceSymbol::Operand { .. }) => DependenceClass::OPERAND.with(DependenceClass::LANE),
                    Some(PlaceSymbol::Workgroup(_) | PlaceSymbol::Wave { .. }) | None => {
                        DependenceClass::default()
                    }
                },
                Atom::FloorDiv(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                    self.class(a).with(self.class(b))
                }
            });
        }
        self.expressions.classes.insert(e, class);
        class
    }

    pub(crate) fn kind_of(&self, symbol: Symbol) -> Option<PlaceSymbol> {
        self.expressions.kinds.iter().find(|kind| kind.0 == symbol).map(|kind| kind.1)
    }

    pub(crate) fn terms(&mut self, e: Expr) -> Vec<ExprFactors> {
        let terms: Vec<_> =
            self.arena.terms(e).map(|(c, atoms)| (c, SmallVec::<[_; 4]>::from_slice(atoms))).collect();
        terms
            .into_iter()
            .map(|(c, atoms)| (c, atoms.into_iter().map(|atom| self.arena.atom_expr(atom)).collect()))
            .collect()
    }

    /// The terms of a sum for whose class `of_first` holds, and the others with the constant.
    pub(crate) fn partition(
        &mut self,
        e: Expr,
        of_first: impl Fn(DependenceClass) -> bool,
    ) -> Result<[Expr; 2], ExprError> {
        let constant = self.arena.constant(e);
        let mut parts = [Expr::ZERO, self.arena.rational(constant)];
        for (coefficient, factors) in self.terms(e) {
            let class =
                factors.iter().fold(DependenceClass::default(), |class, &f| class.with(self.class(f)));
            let mut product = self.arena.rational(coefficient);
            for factor in factors {
                product = self.arena.mul(product, factor)?;
            }
            let part = &mut parts[usize::from(!of_first(class))];
            *part = self.arena.add(*part, product)?;
        }
        Ok(parts)
    }

    /// What of a sum is known in front of all loops, with the constant if there is anything, and the rest.
    pub(crate) fn early_and_late(&mut self, e: Expr) -> Result<[Expr; 2], ExprError> {
        let [early, late] = self.partition(e, DependenceClass::is_early)?;
        if early == Expr::ZERO {
            return Ok([early, late]);
        }
        let constant = self.arena.constant(e);
        let constant = self.arena.rational(constant);
        Ok([self.arena.add(early, constant)?, self.arena.sub(late, constant)?])
    }

    /// The least common denominator of the coefficients.
    pub(crate) fn denominator(&self, e: Expr) -> i64 {
        let own = *self.arena.constant(e).denom();
        self.arena.terms(e).fold(own, |all, (coefficient, _)| lcm(all, *coefficient.denom()))
    }

    /// True if a value is certainly a number of 24 bits without a sign.
    pub(super) fn has_24_bits(&self, e: Expr) -> bool {
        let range = self.arena.range(e);
        range.at_least(0) && range.at_most(MOST_24_BITS)
    }

    /// The value in a VGPR.
    pub(crate) fn vector_of(&mut self, held: HeldValue) -> Operand {
        match held {
            HeldValue::Vector(vector) => vector,
            HeldValue::Uniform(scalar) => self.add_uniform(None, scalar),
        }
    }
}
