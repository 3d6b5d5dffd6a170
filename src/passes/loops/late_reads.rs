//! The order of reads in front of products of lanes. A lane holds whole rows and columns of its wave's tile,
//! eight times as much of a factor as for a matrix instruction, so that all of a deep tile would not fit into
//! the registers: what a step of k takes is read shortly before it.

use bevy_ecs::prelude::*;

use crate::codegen::issue::IssueRates;
use crate::codegen::target::{CostKind, DeviceModel, LdsKind, Target};
use crate::ir::layout::Mma;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{self, Bug};
use crate::passes::facts::Settings;

/// How many products a read comes before the first one that takes it: as many as a wave issues until what it
/// reads of LDS is there, 16 bytes per lane.
fn products_ahead(target: Target, mma: Mma) -> usize {
    let device = DeviceModel::nearest(target);
    let rates = IssueRates::of(device);
    let read = rates.cost(&CostKind::Lds { kind: LdsKind::Read, dwords: 4 }, 1);
    let product = target.matrix_instruction(mma).map(|product| product.cost(device, target.arch));
    let held = product.map_or(1, |product| rates.cost(&product.kind, product.turns).held);
    read.results[0].div_ceil(held.max(1)) as usize
}

/// Puts the reads that stand directly in front of the products `mma`, which are the nodes of `out` from
/// `first` on, among them.
pub(super) fn read_late(
    world: &World,
    root: Entity,
    mma: Mma,
    (out, first): (&mut [Entity], usize),
) -> Result<(), Bug> {
    let Settings(settings) = nodes::fact(world, root, "a kernel without settings")?;
    let ahead = products_ahead(settings.target(), mma);
    let seen = |node| nodes::node(world, node);
    let mut start = first;
    while start > 0 && seen(out[start - 1])?.op.loads() {
        start -= 1;
    }
    let mut first_use = NodeMap::<usize>::default();
    for (at, &product) in out.iter().enumerate().skip(first) {
        for &factor in seen(product)?.operands.0.iter().take(2) {
            if first_use.get(factor).is_none() {
                first_use.insert(factor, at);
            }
        }
    }
    let mut order: Vec<(usize, usize, Entity)> = Vec::with_capacity(out.len() - start);
    for (at, &node) in out.iter().enumerate().skip(start) {
        let place = match (at < first, first_use.get(node)) {
            (true, Some(user)) => user.saturating_sub(ahead).max(first),
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
