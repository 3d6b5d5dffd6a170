//! The order of what comes after loops: a result is written as soon as it is there.
//!
//! Expansion makes all pieces of an operation before the next one's, so that everything is computed before
//! the first store. Memory takes longer for the stores than the vector unit for the arithmetic in front of
//! them, and waits for the first one: 256 x 256 results of f16 on MI355X are rounded for 1150 clk in time
//! mode, and stored for 8192. So what computes comes right before the first node that needs it, and
//! everything else stays in its order.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::node_map::NodeSet;
use crate::ir::nodes::{self, Bug};
use crate::ir::op::OpClass;

/// Brings the nodes after the last region of a body into such an order.
pub(super) fn write_early(world: &World, body: &mut [Entity]) -> Result<(), Bug> {
    let seen = |node: Entity| nodes::node(world, node);
    let class = |node: Entity| Ok::<OpClass, Bug>(seen(node)?.op.row().class);
    let computes = |class: OpClass| matches!(class, OpClass::ElementWise | OpClass::Rearrangement);
    let mut first = body.len();
    let mut some_compute = false;
    while first > 0 && class(body[first - 1])? != OpClass::Region {
        first -= 1;
        some_compute |= computes(class(body[first])?);
    }
    if first == 0 || !some_compute {
        return Ok(());
    }
    let mut waiting = NodeSet::default();
    let mut order: Vec<Entity> = Vec::with_capacity(body.len() - first);
    let mut needed: SmallVec<[(Entity, usize); 16]> = SmallVec::new();
    for &node in &body[first..] {
        if computes(class(node)?) {
            waiting.insert(node);
            continue;
        }
        needed.push((node, 0));
        // What is needed comes first, operand by operand.
        while let Some((node, operand)) = needed.last_mut() {
            match seen(*node)?.operands.0.get(*operand) {
                Some(&value) => {
                    *operand += 1;
                    if waiting.contains(value) {
                        waiting.remove(value);
                        needed.push((value, 0));
                    }
                }
                None => {
                    order.push(*node);
                    needed.pop();
                }
            }
        }
    }
    // What nothing needs here may be what a region around hands on.
    order.extend(body[first..].iter().copied().filter(|&node| waiting.contains(node)));
    body[first..].copy_from_slice(&order);
    Ok(())
}
