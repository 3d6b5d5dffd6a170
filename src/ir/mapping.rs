//! Mapped accesses: which element of a memory an element of a value is, as an expression for each dimension
//! of the memory.
//!
//! The expressions speak of
//! - the element's coordinates in the whole tensor that the value is a part of, each by the symbol of its
//!   dimension,
//! - sizes, by any other symbol,
//! - elements of further i32 operands of the access, at the same coordinates: [`operand_symbol`].
//!
//! Division and modulo round towards minus infinity. What lies outside of the memory along any of its
//! dimensions is read as zero and is not written; so is what lies outside of the value's own dimensions. If
//! several elements are written to one place, it holds one of them afterwards.

use std::ops::RangeInclusive;

use bevy_ecs::prelude::{Component, Entity, World};
use smallvec::SmallVec;

use super::diagnostic::Diagnostic;
use super::expr::{Expr, ExprArena, ExprError, SymExpr, SymNode, SymOp, Symbol};
use super::facts::{Expansion, Geometry};
use super::layout::Dim;

/// Of an access: a coordinate for each dimension of its memory. The dimensions that the expressions speak of
/// are those of the value that is read or written. The operands that they use stand before the memory: those
/// of a read from the first on, those of a write after the value. An access without one has the identity.
#[derive(Component, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Mapping(pub SmallVec<[SymExpr; 4]>);

/// The values that an operand may have.
pub(crate) const OPERAND_RANGE: RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;

/// The most operations of one coordinate.
const MAX_OPERATIONS: u32 = 400;

/// The symbol that stands for operand `number` of a mapping. No dimension has such a name.
pub(crate) fn operand_symbol(number: usize) -> Symbol {
    Symbol::new(&format!("%{number}"))
}

/// True for symbols that stand for values: text that names a value, and [`operand_symbol`].
pub(crate) fn is_value(symbol: Symbol) -> bool {
    symbol.name().starts_with('%')
}

/// The operand that a symbol stands for.
pub(crate) fn operand_number(symbol: Symbol) -> Option<usize> {
    symbol.name().strip_prefix('%')?.parse().ok()
}

impl Mapping {
    /// The one of accesses that have none: an element is at its own coordinates in the memory.
    pub(crate) fn identity(coordinates: impl IntoIterator<Item = Symbol>) -> Mapping {
        Mapping(coordinates.into_iter().map(SymExpr::from).collect())
    }

    /// That of an access, or of the one that it is a piece of.
    pub(crate) fn of(world: &World, access: Entity) -> Option<&Mapping> {
        let logical = || world.get::<Expansion>(access).map(|expansion| expansion.logical);
        world.get::<Mapping>(access).or_else(|| world.get::<Mapping>(logical()?))
    }

    /// Checks the size of the expressions and the operands that they name.
    ///
    /// # Errors
    /// Too many operations, or an operand that is not there.
    pub(crate) fn checked(self, operands: usize) -> Result<Mapping, Diagnostic> {
        for coordinate in &self.0 {
            check_expression(coordinate, operands, "a coordinate")?;
        }
        Ok(self)
    }

    /// Calls `see` with each symbol of the coordinates, as often as it occurs.
    pub(crate) fn visit(&self, see: &mut impl FnMut(Symbol)) {
        self.0.iter().for_each(|coordinate| visit(coordinate, see));
    }

    /// The same over the symbols of coordinates along dimensions.
    pub(crate) fn over(
        &self,
        geometry: &Geometry,
        coordinates: impl Iterator<Item = (Dim, Symbol)> + Clone,
    ) -> Mapping {
        self.replaced(&|symbol| {
            let found = coordinates.clone().find(|known| geometry.dim(known.0).symbol == symbol);
            found.map(|known| SymExpr::from(known.1))
        })
    }

    /// The same with symbols replaced.
    pub(crate) fn replaced(&self, replace: &impl Fn(Symbol) -> Option<SymExpr>) -> Mapping {
        Mapping(self.0.iter().map(|coordinate| coordinate.replaced(replace)).collect())
    }
}

/// The symbol of an element's coordinate along a dimension, and the range in which it is.
pub(crate) fn coordinate_along(geometry: &Geometry, dim: Dim) -> (Symbol, RangeInclusive<i64>) {
    let entry = geometry.dim(dim);
    let last = entry.static_size.map_or(i64::from(i32::MAX), i64::from) - 1;
    (Symbol::new(&format!("%at {}", entry.symbol.name())), 0..=last)
}

/// True if `0 <= e < size` is certain.
///
/// # Errors
/// Expressions that the algebra cannot hold.
pub(crate) fn is_certainly_inside(arena: &mut ExprArena, e: Expr, size: Expr) -> Result<bool, ExprError> {
    let left = arena.sub(size, e)?;
    Ok(arena.range(e).at_least(0) && arena.range(left).at_least(1))
}

/// Checks the size of `what`, an expression, and the operands that it names.
///
/// # Errors
/// Too many operations, or an operand that is not there.
pub(crate) fn check_expression(e: &SymExpr, operands: usize, what: &str) -> Result<(), Diagnostic> {
    let mut left = MAX_OPERATIONS;
    if !within(e, &mut left) {
        let text = format!("{what} has more than {MAX_OPERATIONS} operations");
        return Err(Diagnostic::invalid(text).help("compute a part of it as an i32 value"));
    }
    let mut missing = None;
    visit(e, &mut |symbol| {
        if is_value(symbol) && operand_number(symbol).is_none_or(|number| number >= operands) {
            missing = Some(symbol);
        }
    });
    match missing {
        Some(symbol) => Err(Diagnostic::invalid(format!("there is no value `{symbol}` in this access"))),
        None => Ok(()),
    }
}

/// Whether an expression has at most so many operations; counting stops beyond.
fn within(e: &SymExpr, left: &mut u32) -> bool {
    match e.node() {
        SymNode::Int(_) | SymNode::Symbol(_) => true,
        SymNode::TooDeep => false,
        SymNode::Operation(_, a, b) => match left.checked_sub(1) {
            Some(less) => {
                *left = less;
                within(a, left) && within(b, left)
            }
            None => false,
        },
    }
}

fn visit(e: &SymExpr, see: &mut impl FnMut(Symbol)) {
    match e.node() {
        SymNode::Int(_) | SymNode::TooDeep => {}
        SymNode::Symbol(symbol) => see(*symbol),
        SymNode::Operation(_, a, b) => {
            visit(a, see);
            visit(b, see);
        }
    }
}

/// An expression ready to be evaluated many times, as the interpreter does: independent of the algebra in
/// which passes simplify it.
#[derive(Clone, Debug)]
pub(crate) struct CoordinateProgram(Vec<ProgramStep>);

#[derive(Copy, Clone, Debug)]
enum ProgramStep {
    /// A constant.
    Int(i64),
    /// A value that changes from one evaluation to the next.
    Slot(usize),
    /// An operation on the two values made last.
    Operation(SymOp),
}

/// What a symbol stands for in a [`CoordinateProgram`].
#[derive(Copy, Clone, Debug)]
pub(crate) enum SymbolMeaning {
    /// Always the same number.
    Constant(i64),
    /// The entry of this number in the list that is given to an evaluation.
    Slot(usize),
}

impl CoordinateProgram {
    /// A program for an expression.
    ///
    /// # Errors
    /// The first symbol that has no meaning, or a constant that is too large.
    pub(crate) fn new(
        e: &SymExpr,
        meaning: &impl Fn(Symbol) -> Result<SymbolMeaning, Diagnostic>,
    ) -> Result<CoordinateProgram, Diagnostic> {
        let mut steps = Vec::new();
        compile(e, meaning, &mut steps)?;
        Ok(CoordinateProgram(steps))
    }

    /// The value for the entries of `slots`; `stack` is scratch space.
    ///
    /// # Errors
    /// Divisions by zero, and values that do not fit in 64 bits.
    pub(crate) fn value(&self, slots: &[i64], stack: &mut Vec<i64>) -> Result<i64, Diagnostic> {
        stack.clear();
        for step in &self.0 {
            let value = match *step {
                ProgramStep::Int(value) => value,
                ProgramStep::Slot(at) => slots.get(at).copied().unwrap_or_default(),
                ProgramStep::Operation(op) => {
                    let (b, a) = (stack.pop().unwrap_or_default(), stack.pop().unwrap_or_default());
                    apply(op, a, b).ok_or_else(|| no_value(op, a, b))?
                }
            };
            stack.push(value);
        }
        Ok(stack.pop().unwrap_or_default())
    }
}

fn no_value(op: SymOp, a: i64, b: i64) -> Diagnostic {
    let text = format!("a coordinate has no value: {op:?} of {a} and {b}");
    Diagnostic::invalid(text).help("divisors are not zero, and coordinates fit in 64 bits")
}

fn compile(
    e: &SymExpr,
    meaning: &impl Fn(Symbol) -> Result<SymbolMeaning, Diagnostic>,
    steps: &mut Vec<ProgramStep>,
) -> Result<(), Diagnostic> {
    let large = || Diagnostic::invalid("a coordinate has a constant that does not fit in 64 bits");
    let step = match e.node() {
        SymNode::Int(value) => ProgramStep::Int(i64::try_from(*value).map_err(|_| large())?),
        SymNode::TooDeep => return Err(Diagnostic::invalid("a coordinate is nested too deeply")),
        SymNode::Symbol(symbol) => match meaning(*symbol)? {
            SymbolMeaning::Constant(value) => ProgramStep::Int(value),
            SymbolMeaning::Slot(at) => ProgramStep::Slot(at),
        },
        SymNode::Operation(op, a, b) => {
            compile(a, meaning, steps)?;
            compile(b, meaning, steps)?;
            ProgramStep::Operation(*op)
        }
    };
    steps.push(step);
    Ok(())
}

fn apply(op: SymOp, a: i64, b: i64) -> Option<i64> {
    let floored = |a: i64, b: i64| {
        let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
        Some(if rest != 0 && (rest < 0) != (b < 0) { quotient - 1 } else { quotient })
    };
    match op {
        SymOp::Add => a.checked_add(b),
        SymOp::Sub => a.checked_sub(b),
        SymOp::Mul => a.checked_mul(b),
        SymOp::FloorDiv => floored(a, b),
        SymOp::CeilDiv => floored(a.checked_neg()?, b)?.checked_neg(),
        SymOp::Mod => a.checked_sub(floored(a, b)?.checked_mul(b)?),
        SymOp::Min => Some(a.min(b)),
        SymOp::Max => Some(a.max(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::expr::symbols;

    #[test]
    fn division_and_modulo_are_floored_for_all_signs() {
        let [a, b] = symbols(["a", "b"]);
        let slot = |symbol: Symbol| Ok(SymbolMeaning::Slot(usize::from(symbol == b)));
        let program = |e: SymExpr| CoordinateProgram::new(&e, &slot).expect("both symbols have a meaning");
        let (quotient, rest, up) = (program(a / b), program(a % b), program(a.ceil_div(b)));
        let mut stack = Vec::new();
        for x in -9i64..=9 {
            for y in (-4i64..=4).filter(|&y| y != 0) {
                let exact = x as f64 / y as f64;
                let mut value = |p: &CoordinateProgram| p.value(&[x, y], &mut stack).expect("a value");
                assert_eq!(value(&quotient), exact.floor() as i64, "{x} / {y}");
                assert_eq!(value(&up), exact.ceil() as i64, "{x} / {y}");
                assert_eq!(value(&rest), x - y * exact.floor() as i64, "{x} % {y}");
            }
        }
        assert!(quotient.value(&[1, 0], &mut stack).is_err() && rest.value(&[1, 0], &mut stack).is_err());
    }

    #[test]
    fn expressions_that_grow_without_end_are_refused() {
        let x = Symbol::new("x");
        let doubled = (0..60).fold(SymExpr::from(x), |e, _| &e + &e);
        assert!(Mapping(SmallVec::from_elem(doubled, 1)).checked(0).is_err());
        let beyond = SymExpr::from(operand_symbol(1));
        assert!(Mapping(SmallVec::from_elem(beyond.clone(), 1)).checked(1).is_err());
        assert!(Mapping(SmallVec::from_elem(beyond, 1)).checked(2).is_ok());
    }
}
