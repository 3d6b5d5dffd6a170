//! Selections by places that are decided: an element that exists is at a place from zero up to the size of
//! its dimension, so `self_index N < size N` holds for each. What does not exist takes part in nothing:
//! reductions and products leave it out themselves, where a tile can reach beyond the end. So authors may
//! guard what they fold, and it costs nothing.
//!
//! Ranges of i32 values are followed through sums with numbers, products, quotients, remainders, minima and
//! maxima; comparisons that they decide make selections what they select.

use bevy_ecs::prelude::*;

use crate::ir::kernel::KernelName;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::PassResult;
use crate::passes::facts::{Expressions, Geometry};

/// What is known of the elements of an i32 value that exist.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct PlaceRange {
    least: i64,
    most: i64,
    /// No element is more than the size of the dimension and this number.
    up_to: Option<(Dim, i64)>,
    /// Each element is at least the size of the dimension and this number.
    from: Option<(Dim, i64)>,
}

impl PlaceRange {
    fn between(least: i64, most: i64) -> PlaceRange {
        PlaceRange { least, most, up_to: None, from: None }
    }

    /// Nothing where numbers would wrap.
    fn checked(self) -> Option<PlaceRange> {
        let fits = i64::from(i32::MIN) <= self.least && self.most <= i64::from(i32::MAX);
        (fits && self.least <= self.most).then_some(self)
    }

    fn number(self) -> Option<i64> {
        (self.least == self.most).then_some(self.least)
    }

    fn moved(self, by: i64) -> Option<PlaceRange> {
        let moved = |(dim, offset): (Dim, i64)| (dim, offset + by);
        let PlaceRange { least, most, up_to, from } = self;
        let all =
            PlaceRange { least: least + by, most: most + by, up_to: up_to.map(moved), from: from.map(moved) };
        all.checked()
    }

    /// Whether each element of one is less than each of the other, or at most so much if `slack` is one.
    fn is_below(self, other: PlaceRange, slack: i64) -> bool {
        let by_size = match (self.up_to, other.from) {
            (Some((dim, most)), Some((of, least))) => dim == of && most < least + slack,
            _ => false,
        };
        by_size || self.most < other.least + slack
    }

    /// What comparing elements of both always says.
    fn compared(self, predicate: Predicate, other: PlaceRange) -> Option<bool> {
        let decided = |one: PlaceRange, two: PlaceRange, slack: i64| {
            let holds = one.is_below(two, slack);
            (holds || two.is_below(one, 1 - slack)).then_some(holds)
        };
        match predicate {
            Predicate::Lt => decided(self, other, 0),
            Predicate::Le => decided(self, other, 1),
            Predicate::Gt => decided(other, self, 0),
            Predicate::Ge => decided(other, self, 1),
            Predicate::Eq | Predicate::Ne => {
                let differ = self.is_below(other, 0) || other.is_below(self, 0);
                differ.then_some(predicate == Predicate::Ne)
            }
        }
    }
}

/// What is known of a value.
#[derive(Copy, Clone)]
enum KnownPlaces {
    Numbers(PlaceRange),
    Condition(bool),
}

/// The pass itself; see the module.
pub(crate) fn fold_places(
    kernel: Single<(Entity, &Geometry, &Expressions), With<KernelName>>,
    bodies: Query<&Body>,
    mut nodes: Query<(&mut Op, &mut Operands, &ValueType)>,
    mut yields: Query<&mut Yields>,
) -> PassResult {
    let (root, geometry, expressions) = *kernel;
    let order = walk::order(&bodies, root);
    let mut known: NodeMap<KnownPlaces> = NodeMap::default();
    let mut instead: NodeMap<Entity> = NodeMap::default();
    for &id in &order {
        if let Ok((_, mut operands, _)) = nodes.get_mut(id) {
            rename(&mut operands.0, &instead);
        }
        let (op, operands, ty) = nodes.get(id)?;
        if let Some(found) = known_of(*op, operands, ty, geometry, expressions, &known) {
            known.insert(id, found);
        }
        let Some(chosen) = chosen(*op, operands, &known) else { continue };
        let whole = ty.dims.clone();
        if nodes.get(chosen)?.2.dims == whole {
            instead.insert(id, chosen);
        } else if *op == Op::Select {
            let (mut op, mut operands, _) = nodes.get_mut(id)?;
            *op = Op::Broadcast;
            operands.0.clear();
            operands.0.push(chosen);
        }
    }
    if instead.iter().next().is_some() {
        yields.iter_mut().for_each(|mut yields| rename(&mut yields.0, &instead));
    }
    Ok(())
}

fn rename(values: &mut [Entity], instead: &NodeMap<Entity>) {
    for value in values {
        *value = instead.get(*value).copied().unwrap_or(*value);
    }
}

/// The value that a selection always selects, or that a condition is joined with in vain.
fn chosen(op: Op, operands: &Operands, known: &NodeMap<KnownPlaces>) -> Option<Entity> {
    let condition = |at: usize| match known.get(*operands.0.get(at)?)? {
        KnownPlaces::Condition(holds) => Some(*holds),
        KnownPlaces::Numbers(_) => None,
    };
    let at = if op == Op::Select {
        if condition(0)? { 1 } else { 2 }
    } else if let Op::Binary(joined @ (BinaryOp::And | BinaryOp::Or)) = op {
        let nothing = joined == BinaryOp::And;
        (0..2).find(|&at| condition(1 - at) == Some(nothing))?
    } else {
        return None;
    };
    operands.0.get(at).copied()
}

/// What is known of a node's result.
fn known_of(
    op: Op,
    operands: &Operands,
    ty: &ValueType,
    geometry: &Geometry,
    expressions: &Expressions,
    known: &NodeMap<KnownPlaces>,
) -> Option<KnownPlaces> {
    let numbers = |at: usize| match known.get(*operands.0.get(at)?)? {
        KnownPlaces::Numbers(range) => Some(*range),
        KnownPlaces::Condition(_) => None,
    };
    let condition = |at: usize| match known.get(*operands.0.get(at)?)? {
        KnownPlaces::Condition(holds) => Some(*holds),
        KnownPlaces::Numbers(_) => None,
    };
    if ty.dtype == Some(DType::I1) {
        let holds = if let Op::Compare(predicate) = op {
            numbers(0)?.compared(predicate, numbers(1)?)
        } else if let Op::Binary(joined @ (BinaryOp::And | BinaryOp::Or)) = op {
            decided(condition(0), condition(1), joined == BinaryOp::Or)
        } else if let Op::Unary(UnaryOp::Not) = op {
            condition(0).map(|holds| !holds)
        } else if let Op::Broadcast = op {
            condition(0)
        } else {
            None
        };
        return holds.map(KnownPlaces::Condition);
    }
    if ty.dtype != Some(DType::I32) {
        return None;
    }
    let range = if let Op::Register(Constant::Integer(number)) = op {
        Some(PlaceRange::between(number, number))
    } else if let Op::SelfIndex(dim) = op {
        let most = geometry.dim(dim).static_size.map_or(i64::from(i32::MAX), i64::from) - 1;
        Some(PlaceRange { up_to: Some((dim, -1)), ..PlaceRange::between(0, most.max(0)) })
    } else if let Op::Size(dim) = op {
        let size = expressions.0.range(geometry.dim(dim).size);
        let known = geometry.dim(dim).static_size.map(i64::from);
        let least = known.unwrap_or(i64::from(size.at_least(1)));
        let most = known.unwrap_or(i64::from(i32::MAX));
        let here = Some((dim, 0));
        Some(PlaceRange { least, most, up_to: here, from: here })
    } else if let Op::Binary(op) = op {
        joined(op, numbers(0)?, numbers(1)?)
    } else if let Op::Broadcast = op {
        numbers(0)
    } else {
        None
    };
    range.and_then(PlaceRange::checked).map(KnownPlaces::Numbers)
}

/// What two conditions together are, if `deciding` is what either of them makes both.
fn decided(one: Option<bool>, other: Option<bool>, deciding: bool) -> Option<bool> {
    match (one, other) {
        (Some(known), _) | (_, Some(known)) if known == deciding => Some(deciding),
        (Some(_), Some(_)) => Some(!deciding),
        _ => None,
    }
}

/// The range of what arithmetic makes of two values.
fn joined(op: BinaryOp, one: PlaceRange, other: PlaceRange) -> Option<PlaceRange> {
    let PlaceRange { least, most, .. } = one;
    match (op, one.number(), other.number()) {
        (BinaryOp::Add, _, Some(by)) => one.moved(by),
        (BinaryOp::Add, Some(by), _) => other.moved(by),
        (BinaryOp::Add, ..) => Some(PlaceRange::between(least + other.least, most + other.most)),
        (BinaryOp::Sub, _, Some(by)) => one.moved(-by),
        (BinaryOp::Sub, ..) => Some(PlaceRange::between(least - other.most, most - other.least)),
        (BinaryOp::Mul, _, Some(by)) if by >= 0 => Some(PlaceRange::between(least * by, most * by)),
        (BinaryOp::Mul, Some(by), _) if by >= 0 => {
            Some(PlaceRange::between(other.least * by, other.most * by))
        }
        (BinaryOp::FloorDiv, _, Some(by)) if by > 0 => {
            Some(PlaceRange::between(least.div_euclid(by), most.div_euclid(by)))
        }
        (BinaryOp::Rem, _, Some(by)) if by > 0 => Some(PlaceRange::between(0, by - 1)),
        (BinaryOp::Min, ..) => Some(PlaceRange {
            up_to: one.up_to.or(other.up_to),
            ..PlaceRange::between(least.min(other.least), most.min(other.most))
        }),
        (BinaryOp::Max, ..) => Some(PlaceRange {
            from: one.from.or(other.from),
            ..PlaceRange::between(least.max(other.least), most.max(other.most))
        }),
        _ => None,
    }
}
