//! Iterations that change nothing: a loop hands on what it carries if it adds zeros, takes the maximum with
//! minus infinity, and multiplies with one. That is what a softmax does with scores of which none counts.
//!
//! The values of an iteration are followed from a selection whose condition holds nowhere. What it selects
//! there is a number; so are powers of it, its sums and products; and what is carried stays as it is.

use bevy_ecs::prelude::*;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{Bug, NodeItem};
use crate::ir::op::OpClass;
use crate::ir::types::DType;
use crate::passes::analysis::fractions::{NodeReader, is_above};
use crate::passes::analysis::positive_values::{KnownSizes, positive_range};

/// What is known of all elements of a value.
#[derive(Copy, Clone, PartialEq, Debug)]
enum IdleValue {
    /// They are this number.
    Number(f64),
    /// They are those of the carried value of a number.
    Carried(usize),
}

/// One iteration of a loop.
pub(super) struct LoopIteration<'a, 'w> {
    read: NodeReader<'a, 'w>,
    /// What it hands on.
    yields: &'a [Entity],
    /// What the first one begins with.
    inits: &'a [Entity],
    body: &'a [Entity],
}

impl<'a, 'w> LoopIteration<'a, 'w> {
    pub(super) fn new(
        read: NodeReader<'a, 'w>,
        yields: Option<&'a Yields>,
        inits: &'a [Entity],
        body: &'a [Entity],
    ) -> LoopIteration<'a, 'w> {
        LoopIteration { read, yields: yields.map_or(&[], |yields| &yields.0), inits, body }
    }

    /// True if an iteration in which the condition of a selection holds nowhere hands on what it carries.
    ///
    /// # Errors
    /// Kernels that are broken.
    pub(super) fn is_idle_without(&self, mask: Entity, sizes: KnownSizes<'_>) -> Result<bool, Diagnostic> {
        let mut known: NodeMap<IdleValue> = NodeMap::default();
        for &node in self.body {
            let found = (self.read)(node)?;
            let value = if node == mask {
                self.known(found.operand(2)?, &known)?
            } else {
                self.value(&found, &known, sizes)?
            };
            if let Some(value) = value {
                known.insert(node, value);
            }
        }
        let is_kept =
            |(number, &next): (usize, &Entity)| known.get(next) == Some(&IdleValue::Carried(number));
        Ok(!self.yields.is_empty() && self.yields.iter().enumerate().all(is_kept))
    }

    /// What is known of an operand: of one from outside of the loop if it is a number.
    fn known(&self, node: Entity, known: &NodeMap<IdleValue>) -> Result<Option<IdleValue>, Bug> {
        if let Some(&value) = known.get(node) {
            return Ok(Some(value));
        }
        Ok(match (self.read)(node)?.op.constant() {
            Some(Constant::Float(number)) => Some(IdleValue::Number(number)),
            _ => None,
        })
    }

    fn value(
        &self,
        node: &NodeItem,
        known: &NodeMap<IdleValue>,
        sizes: KnownSizes<'_>,
    ) -> Result<Option<IdleValue>, Bug> {
        use IdleValue::Number;
        let op = *node.op;
        if let Op::IterArg(number) = op {
            return Ok(Some(IdleValue::Carried(number as usize)));
        }
        let operand = |at: usize| match node.operands.0.get(at) {
            Some(&operand) => self.known(operand, known),
            None => Ok(None),
        };
        let [a, b, c] = [operand(0)?, operand(1)?, operand(2)?];
        if op.row().class == OpClass::Contraction {
            // What has weight zero counts as zero.
            let adds_nothing = [a, b].contains(&Some(Number(0.0)));
            return Ok(c.filter(|_| adds_nothing));
        }
        if let Some(reduction) = op.reduction() {
            return Ok(match (reduction.op, a) {
                (ReductionOp::Max, Some(Number(number))) => Some(Number(number)),
                (ReductionOp::Sum, Some(Number(0.0))) => a,
                _ => None,
            });
        }
        self.arithmetic(node, [a, b, c], sizes)
    }

    /// What is known of arithmetic on what is known.
    fn arithmetic(
        &self,
        node: &NodeItem,
        [a, b, c]: [Option<IdleValue>; 3],
        sizes: KnownSizes<'_>,
    ) -> Result<Option<IdleValue>, Bug> {
        use IdleValue::Number;
        Ok(match (*node.op, a) {
            (Op::Broadcast, _) => a,
            (Op::Convert(_), _) if node.ty.dtype.is_some_and(DType::is_float) => {
                a.filter(|a| matches!(a, Number(0.0 | 1.0 | f64::NEG_INFINITY)))
            }
            (Op::Unary(UnaryOp::Exp | UnaryOp::Exp2), _) => match a {
                Some(Number(f64::NEG_INFINITY)) => Some(Number(0.0)),
                Some(Number(0.0)) => Some(Number(1.0)),
                _ => None,
            },
            (Op::Binary(BinaryOp::Max), _) => match (a, b) {
                (Some(Number(f64::NEG_INFINITY)), kept) | (kept, Some(Number(f64::NEG_INFINITY))) => kept,
                _ => None,
            },
            (Op::Binary(BinaryOp::Add), _) => sum(a, b),
            (Op::Binary(BinaryOp::Sub), _) => match (a, b) {
                (Some(IdleValue::Carried(a)), Some(IdleValue::Carried(b))) if a == b => Some(Number(0.0)),
                (Some(Number(f64::NEG_INFINITY)), Some(b)) if self.is_above_all(b)? => a,
                _ => None,
            },
            (Op::Binary(BinaryOp::Mul), _) => self.product(node, [a, b], sizes)?,
            (Op::Ternary(TernaryOp::Fma), _) => sum(self.product(node, [a, b], sizes)?, c),
            (Op::Compare(predicate), _) => self.compared(predicate, [a, b])?,
            (Op::Select, _) => match (a, b == c) {
                (_, true) => b,
                (Some(Number(condition)), _) => {
                    if condition == 0.0 {
                        c
                    } else {
                        b
                    }
                }
                _ => None,
            },
            _ => None,
        })
    }

    /// A product: with one, or of minus infinity and what is positive.
    fn product(
        &self,
        node: &NodeItem,
        factors: [Option<IdleValue>; 2],
        sizes: KnownSizes<'_>,
    ) -> Result<Option<IdleValue>, Bug> {
        use IdleValue::Number;
        for (factor, other, at) in [(factors[0], factors[1], 1), (factors[1], factors[0], 0)] {
            match factor {
                Some(Number(1.0)) => return Ok(other),
                Some(Number(f64::NEG_INFINITY)) => {
                    let is_positive = positive_range(self.read, node.operand(at)?, sizes)?.is_some();
                    return Ok(factor.filter(|_| is_positive));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// A comparison that minus infinity decides, as 0 or 1.
    fn compared(
        &self,
        predicate: Predicate,
        [a, b]: [Option<IdleValue>; 2],
    ) -> Result<Option<IdleValue>, Bug> {
        let lowest = Some(IdleValue::Number(f64::NEG_INFINITY));
        let never = match predicate {
            Predicate::Gt => a == lowest,
            Predicate::Lt => b == lowest,
            Predicate::Ge => a == lowest && b.map_or(Ok(false), |b| self.is_above_all(b))?,
            Predicate::Le => b == lowest && a.map_or(Ok(false), |a| self.is_above_all(a))?,
            Predicate::Eq | Predicate::Ne => false,
        };
        Ok(never.then_some(IdleValue::Number(0.0)))
    }

    /// True of what is never minus infinity: numbers that are not, and carried values that begin as one of
    /// these and never fall.
    fn is_above_all(&self, value: IdleValue) -> Result<bool, Bug> {
        let number = match value {
            IdleValue::Number(number) => return Ok(number > f64::NEG_INFINITY),
            IdleValue::Carried(number) => number,
        };
        let [Some(&init), Some(&next)] = [self.inits.get(number), self.yields.get(number)] else {
            return Ok(false);
        };
        let Some(Constant::Float(first)) = (self.read)(init)?.op.constant() else { return Ok(false) };
        let argument = |node: Entity| Ok::<_, Bug>(*(self.read)(node)?.op == Op::IterArg(number as u32));
        let next = (self.read)(next)?;
        let rises = match (*next.op, &next.operands.0[..]) {
            (Op::Binary(BinaryOp::Max), &[a, b]) => argument(a)? || argument(b)?,
            (Op::Select, &[condition, above, below]) => {
                argument(below)? && is_above(self.read, condition, [above, below])?
            }
            _ => false,
        };
        Ok(first > f64::NEG_INFINITY && rises)
    }
}

/// A sum: with zero, or of two numbers that are not opposite infinities.
fn sum(a: Option<IdleValue>, b: Option<IdleValue>) -> Option<IdleValue> {
    use IdleValue::Number;
    match (a?, b?) {
        (Number(0.0), other) | (other, Number(0.0)) => Some(other),
        (Number(a), Number(b)) => Some(Number(a + b)).filter(|_| !(a + b).is_nan()),
        _ => None,
    }
}
