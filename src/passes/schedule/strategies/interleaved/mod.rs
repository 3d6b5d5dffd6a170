//! Interleaving: each wave moves data between its matrix instructions, at the rate at which LDS and the
//! caches serve it, so that no wave waits for another one to fill its pauses.
//!
//! The matrix instructions of an iteration are cut in two halves along the summed dimension. While one half
//! multiplies, the other half's factors are read from LDS; tiles are written to LDS (or loaded into it) in
//! between. All of it is written down as an author's schedule ([`schedule_of_interleaved`]), which authors
//! can print, copy and change. It suits one wave per SIMD with as much of a tile as its registers hold, whose
//! accumulators are in AGPRs, and several workgroups on a compute unit.
//!
//! - `spacing`: after which matrix instructions memory operations come
//! - `order`: the schedule
//! - `not_interleaved`: why a loop gets none
//!
//! Tiles come through registers with one copy in LDS and two barriers, or straight into LDS with counted
//! waits in front of two plain barriers. A loop whose waves run in step and whose own barriers and counted
//! waits are proved sufficient (`judge/wave_groups`) gets no others: it is `Staggered` by nothing,
//! `!staggered(0)` in text.

mod not_interleaved;
mod order;
mod spacing;

use bevy_ecs::prelude::*;

use self::not_interleaved::NotInterleaved;
pub use self::order::schedule_of_interleaved;
pub use self::spacing::{Moves, Spacing};
use self::spacing::{Paces, WaveWork};
use super::products::operations::Operations;
use super::products::tags::plain;
use super::products::{OtherLoop, ProductLoop};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::schedule::apply::copies::LdsRoom;
use crate::passes::schedule::apply::pressure;
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::SchedulerView;

/// Writes down the schedule of a loop whose waves move data between matrix instructions, or says why the loop
/// is not suited to that.
///
/// # Errors
/// A schedule that cannot be written, which is a bug of this compiler.
pub(crate) fn write(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
) -> Result<Result<WrittenSchedule, String>, Diagnostic> {
    match classify(view, node, found) {
        Ok((product, spacing)) => {
            let (tags, tagged) = plain(view, &product)?;
            let schedule = schedule_of_interleaved(&tags.roles(), &spacing)?;
            Ok(Ok(WrittenSchedule::new(schedule, tagged)))
        }
        Err(NotInterleaved::Other(OtherLoop::Broken(bug))) => Err(bug.into()),
        Err(why) => Ok(Err(why.to_string())),
    }
}

/// Parts into which an iteration is cut along the summed dimension.
const HALVES: u32 = 2;

/// Finds the operations of a loop, and where they go.
///
/// # Errors
/// Why it is not such a loop.
fn classify(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
) -> Result<(ProductLoop, Spacing), NotInterleaved> {
    let Op::Iterate(walked) = view.op(node)? else { return Err(OtherLoop::NoProduct.into()) };
    let (operations, mma) = Operations::of(view, found, walked)?;
    let factors = operations.factors(mma)?;
    if operations.scales(mma)?.is_some() {
        return Err(NotInterleaved::Scales);
    }
    operations.are_only(&factors, mma)?;
    let axis = operations.axis;
    let cut = [mma, factors[0][0], factors[1][0]];
    for part in cut {
        let steps = operations.places_along(part, axis)?;
        if !steps.is_multiple_of(HALVES) {
            return Err(OtherLoop::Steps(steps).into());
        }
    }
    if !operations.halves_match(cut, axis)? {
        return Err(NotInterleaved::Halves);
    }
    let direct = factors.map(|[_, write, load]| write == load);
    if direct[0] != direct[1] {
        return Err(OtherLoop::DifferentWays.into());
    }
    let (needed, available) = (operations.registers_of_values(), pressure::available(view)?);
    if needed > available {
        return Err(NotInterleaved::Registers { needed, available });
    }
    let work = WaveWork::of(&operations, mma, &factors);
    let (reads, products) = work.of_a_half();
    if reads > products {
        return Err(NotInterleaved::Few { reads, products });
    }
    let paces = Paces::of(&operations)?;
    let room = LdsRoom::of(view, found)?;
    let spacing = match direct[0] {
        false => {
            room.copies(1, 1)?;
            Spacing::through_registers(&work, &paces)
        }
        true => {
            // Two are needed where loads fill one while the other is read.
            let wanted = paces.copies_that_hide_loads(&work);
            let copies = room.copies(wanted.min(2), wanted)?;
            Spacing::straight_to_lds(&work, &paces, copies)
        }
    };
    Ok((ProductLoop { k_loop: node, factors, scales: None, mma, axis }, spacing))
}

impl From<Bug> for NotInterleaved {
    fn from(bug: Bug) -> NotInterleaved {
        NotInterleaved::Other(bug.into())
    }
}
