//! Values that lie from 0 to 1 whatever the data are, so that a multiple with one is never larger than what
//! is multiplied.

use bevy_ecs::prelude::*;

use crate::ir::constant::Constant;
use crate::ir::node::*;
use crate::ir::nodes::{Bug, NodeItem};

/// How a caller looks at nodes.
pub(in crate::passes) type NodeReader<'a, 'w> = &'a dyn Fn(Entity) -> Result<NodeItem<'w, 'static>, Bug>;

/// True if every element of a value lies from 0 to 1 or is no number: constants that do, and powers of
/// differences that cannot be above zero, as a softmax multiplies its running sum with when a maximum rises.
pub(in crate::passes) fn is_fraction(read: NodeReader<'_, '_>, node: Entity) -> Result<bool, Bug> {
    let mut value = read(node)?;
    while let Op::Broadcast | Op::Convert(_) = value.op {
        value = read(value.operand(0)?)?;
    }
    if let Some(Constant::Float(constant)) = value.op.constant() {
        return Ok((0.0..=1.0).contains(&constant));
    }
    let is_power = matches!(value.op, Op::Unary(UnaryOp::Exp | UnaryOp::Exp2));
    Ok(is_power && is_less_a_maximum(read, &read(value.operand(0)?)?)?)
}

/// True for `x - max(x, y)`, and for `x - y` where `y` is chosen only if it is above `x` and `x` otherwise.
fn is_less_a_maximum(read: NodeReader<'_, '_>, difference: &NodeItem) -> Result<bool, Bug> {
    let (Op::Binary(BinaryOp::Sub), &[x, maximum]) = (*difference.op, &difference.operands.0[..]) else {
        return Ok(false);
    };
    let maximum = read(maximum)?;
    match (*maximum.op, &maximum.operands.0[..]) {
        (Op::Binary(BinaryOp::Max), operands) => Ok(operands.contains(&x)),
        (Op::Select, &[condition, above, below]) if below == x => is_above(read, condition, [above, x]),
        _ => Ok(false),
    }
}

/// True if a condition holds only where `y` is above `x`: it compares with `x` or with that and a constant
/// more.
pub(in crate::passes) fn is_above(
    read: NodeReader<'_, '_>,
    condition: Entity,
    [y, x]: [Entity; 2],
) -> Result<bool, Bug> {
    let compared = read(condition)?;
    let (above, least) = match (*compared.op, &compared.operands.0[..]) {
        (Op::Compare(Predicate::Gt | Predicate::Ge), &[above, least])
        | (Op::Compare(Predicate::Lt | Predicate::Le), &[least, above]) => (above, least),
        _ => return Ok(false),
    };
    if above != y {
        return Ok(false);
    }
    let sum = read(least)?;
    let (Op::Binary(BinaryOp::Add), &[a, b]) = (*sum.op, &sum.operands.0[..]) else { return Ok(least == x) };
    let other = if a == x { b } else { a };
    let more = read(other)?.op.constant();
    Ok((a == x || b == x) && matches!(more, Some(Constant::Float(more)) if more >= 0.0))
}
