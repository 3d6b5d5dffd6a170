//! Products after the barrier of their half.
//!
//! Where the other half of the waves begins to multiply, it reads its first factors, and matrix cores would
//! wait for them, and for the last wave to get to the barrier. So the last products of a half stand behind
//! its barrier: their factors have been read before it, and nothing else of the half needs an access of LDS.
//! They go first where both waves could issue, because without that the products of the other wave, once it
//! has its factors, would keep this one from its arithmetic.
//!
//! They come in whole parts of the last product, as many as the first reads of the other waves take. But a
//! wave that multiplies after the barrier computes later: where arithmetic takes longer than products, that
//! would only add to it. Beside products it takes a quarter longer than alone (1,690 clk instead of 1,330 in
//! attention on gfx942).

use super::product_order::{ProductOrder, WalkedDim};
use crate::ir::nodes::Bug;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::node_costs::NodeCosts;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;

/// Products of a trip that come after the barrier of their half.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LateProducts {
    /// The dimension along which the last product walks.
    pub walked: WalkedDim,
    /// How many of its parts, from the last one on, come after the barrier.
    pub parts: u32,
    /// The first matrix instruction of that product, counted from the first of the trip.
    pub first: u32,
    /// The first matrix instruction after the barrier.
    pub barrier: u32,
}

impl LateProducts {
    /// The matrix instruction at which what a matrix instruction uses has to be there: reads of the last
    /// product are as much denser as they have fewer matrix instructions to stand beside.
    pub(super) fn needed_at(self, used: u32, count: u32) -> u32 {
        let LateProducts { first, barrier, .. } = self;
        match used.checked_sub(first) {
            Some(after) => first + after * (barrier - first) / (count - first).max(1),
            None => used,
        }
    }
}

/// The products of a loop that come after the barrier, if LDS takes so many clk for the first of the reads
/// before all products.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn of(
    view: SchedulerView,
    found: &LoopGraph,
    order: &ProductOrder,
    first_read: u32,
) -> Result<Option<LateProducts>, Bug> {
    let Some((walked, first)) = order.last_product(view, found)? else { return Ok(None) };
    let count = order.count();
    let each = (count - first) / walked.parts;
    let mut costs = NodeCosts::of(view, found)?;
    let least = order.least_busy(&mut costs)?;
    let (mut products, mut arithmetic) = (0, 0);
    for node in found.body() {
        match costs.cost(node)? {
            (Class::Mma, Some(cost)) => products += u64::from(cost.busy),
            (Class::Valu | Class::Shuffle, _)
                if view.seldom(found.nodes[node].expansion.logical).is_none() =>
            {
                arithmetic += costs.vector_clk(node)?;
            }
            _ => {}
        }
    }
    let waits = costs.latency_in_cluster() + first_read;
    let room = products.saturating_sub(arithmetic * 5 / 4) / u64::from(least);
    let wanted = waits.div_ceil(least).next_multiple_of(each);
    let late = u64::from(wanted).min(room) as u32 / each;
    // Half of the product at least is left for reads to stand beside.
    let parts = late.min(walked.parts / 2);
    let barrier = count - parts * each;
    Ok((parts > 0).then_some(LateProducts { walked, parts, first, barrier }))
}
