//! The order of reads in front of products of lanes. A lane holds whole rows and columns of its wave's tile,
//! eight times as much of a factor as for a matrix instruction, so that all of a deep tile would not fit into
//! the registers: what a step of k takes is read shortly before it.

use bevy_ecs::prelude::*;

use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{self, Bug};

/// How many products a read comes before the first one that takes it: about the time of a read of LDS, four
/// clk for each.
const PRODUCTS_AHEAD: usize = 24;

/// Puts the reads that stand directly in front of the products, which are the nodes of `out` from `first` on,
/// among them.
pub(super) fn read_late(world: &World, out: &mut [Entity], first: usize) -> Result<(), Bug> {
    let mut start = first;
    while start > 0 && nodes::op(world, out[start - 1])?.loads() {
        start -= 1;
    }
    let mut first_use = NodeMap::<usize>::default();
    for (at, &product) in out.iter().enumerate().skip(first) {
        for &factor in nodes::node(world, product)?.operands.0.iter().take(2) {
            if first_use.get(factor).is_none() {
                first_use.insert(factor, at);
            }
        }
    }
    let mut order: Vec<(usize, usize, Entity)> = Vec::with_capacity(out.len() - start);
    for (at, &node) in out.iter().enumerate().skip(start) {
        let place = match (at < first, first_use.get(node)) {
            (true, Some(user)) => user.saturating_sub(PRODUCTS_AHEAD).max(first),
            _ => at,
        };
        order.push((place, at, node));
    }
    // Reads have smaller numbers than the product in whose place they are put.
    order.sort_unstable();
    for (slot, (_, _, node)) in out[start..].iter_mut().zip(order) {
        *slot = node;
    }
    Ok(())
}
