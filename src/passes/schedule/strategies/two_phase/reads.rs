//! After which products LDS is read.
//!
//! Products walk along their summed dimension, and so do the reads of their factors, which fall into a part
//! for each place along it. Each part is read while the one before it is multiplied, evenly, and so early
//! that its data arrive in time. What is needed too soon for that comes before all products.

use super::late_products::LateProducts;
use super::product_order::{ProductOrder, WalkedDim, pieces, place_along};
use super::tiles::TileRead;
use crate::ir::nodes::Bug;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::node_costs::NodeCosts;
use crate::passes::schedule::graph::view::SchedulerView;

/// A part of what a logical read of a tile reads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ReadPart {
    /// The number of the read.
    pub read: usize,
    /// The number of the part.
    pub part: u32,
}

/// Reads that come at even distances between products; those of the first group come before all products.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReadGroup {
    /// The matrix instruction, counted from the first of the trip, after which they begin.
    pub first: u32,
    /// Matrix instructions from one read to the next; 0 for those before all products.
    pub interval: u32,
    /// What is read.
    pub parts: Vec<ReadPart>,
    /// For so many clk the first of the reads takes LDS; zero without reads.
    pub clk: u32,
}

/// A part of a read while it gets its place.
struct PlacedPart {
    part: ReadPart,
    /// The first use of each of its nodes, in the order in which the schedule has them.
    uses: Vec<u32>,
    /// For so many clk the first of them takes LDS.
    clk: u32,
}

/// The parts of a read, in their order; none for a read that no product uses.
fn uses(
    (view, found): (SchedulerView, &LoopGraph),
    order: &ProductOrder,
    (number, read): (usize, &TileRead),
    walked: Option<WalkedDim>,
) -> Result<Vec<PlacedPart>, Bug> {
    let mut costs = NodeCosts::of(view, found)?;
    let mut reads = Vec::new();
    for node in pieces(found, read.logical) {
        let Some(used) = order.use_of(found, node) else { continue };
        let place = match walked {
            Some(WalkedDim { dim, .. }) => place_along(view, found, node, dim)?,
            None => (0, 0),
        };
        let clk = costs.cost(node)?.1.map_or(0, |cost| cost.served);
        reads.push((place, used, clk));
    }
    reads.sort_by_key(|&(place, ..)| place);
    let mut parts: Vec<PlacedPart> = Vec::new();
    for (reads, part) in reads.chunk_by(|one, other| one.0 == other.0).zip(0..) {
        let uses = reads.iter().map(|read| read.1).collect();
        let clk = reads[0].2;
        parts.push(PlacedPart { part: ReadPart { read: number, part }, uses, clk });
    }
    Ok(parts)
}

/// The groups of the reads that products use, with the dimensions along which they are walked: a
/// group for what comes before all products, and one for each part that comes between them. What products
/// after the barrier use is read before it.
///
/// # Errors
/// A kernel that is broken.
pub(super) fn groups(
    view: SchedulerView,
    found: &LoopGraph,
    (order, late): (&ProductOrder, Option<LateProducts>),
    (reads, walked): (&[TileRead], &[Option<WalkedDim>]),
) -> Result<Vec<ReadGroup>, Bug> {
    let mut parts = Vec::new();
    // What vectors read first is there for products that read it, too.
    let factors = reads.iter().enumerate().zip(walked).filter(|((_, read), _)| read.is_factor());
    for ((number, read), walked) in factors {
        parts.extend(uses((view, found), order, (number, read), *walked)?);
    }
    if let Some(late) = late {
        let uses = parts.iter_mut().flat_map(|part| &mut part.uses);
        uses.for_each(|used| *used = late.needed_at(*used, order.count()));
    }
    parts.sort_by_key(|own| (own.uses.iter().min().copied(), own.part.read));
    let latency = order.latency(view, found)?;
    let mut groups = vec![ReadGroup { first: 0, interval: 0, parts: Vec::new(), clk: 0 }];
    let mut before = 0;
    for PlacedPart { part, uses, clk } in parts {
        let used = uses.iter().min().copied().unwrap_or(0);
        // A part is read while the one before it is multiplied.
        let interval = (used.saturating_sub(before) / uses.len().max(1) as u32).max(1);
        match latest(interval, latency, &uses) {
            Some(first) => groups.push(ReadGroup { first, interval, parts: vec![part], clk }),
            None => {
                groups[0].clk = if groups[0].parts.is_empty() { clk } else { groups[0].clk };
                groups[0].parts.push(part);
            }
        }
        before = used;
    }
    Ok(groups)
}

/// The last matrix instruction after which reads at a distance can begin, so that the data of each are there
/// when they are used; none if they have to come before all matrix instructions.
fn latest(interval: u32, latency: u32, uses: &[u32]) -> Option<u32> {
    let begin = uses.iter().zip(0..).map(|(&used, number)| used.checked_sub(1 + latency + number * interval));
    begin.min().flatten()
}

#[cfg(test)]
mod tests {
    use super::latest;

    #[test]
    fn reads_come_as_late_as_their_uses_allow() {
        assert_eq!(latest(2, 4, &[16, 18, 20, 22]), Some(11));
        assert_eq!(latest(4, 4, &[16, 18, 20, 22]), Some(5));
        assert_eq!(latest(1, 0, &[1, 2, 3]), Some(0));
        assert_eq!(latest(1, 1, &[1, 2, 3]), None);
        assert_eq!(latest(1, 0, &[1, 1]), None);
    }
}
