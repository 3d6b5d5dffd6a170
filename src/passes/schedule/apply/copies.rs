//! How many copies of LDS buffers a schedule takes: as many as iterations lie between filling one and reading
//! it for the last time. Iteration `i` uses copy `i mod copies`, in unrolled loops too.
//!
//! With one copy more than the order of a trip needs, the next iteration's writes and this one's reads need
//! no barrier between them. Where LDS is too small for that, the copies that the order needs have to do.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;
use thiserror::Error;

use crate::ir::node::Op;
use crate::ir::nodes::Bug;
use crate::passes::facts::LdsBuffer;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::dependences::{LoopBuffer, LoopGraph};
use crate::passes::schedule::graph::view::{SchedulerView, Scheduling};

/// The copies do not fit.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("its LDS buffers would take {needed} bytes, and a workgroup has {limit}")]
pub(crate) struct TooLarge {
    /// Bytes of all buffers with their copies.
    pub needed: u32,
    /// Bytes of the target.
    pub limit: u32,
}

/// Another loop uses a buffer, too, with a number of copies that does not suit this one: the parts into which
/// a loop around them is divided (`passes/loops/peel_remainders.rs`) share the buffers of the loops in them.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("an LDS buffer has {has} copies in another loop that was scheduled, and this one needs {needed}")]
pub(crate) struct SharedCopies {
    /// Copies that it has.
    pub has: u32,
    /// Copies that this loop needs.
    pub needed: u32,
}

/// Why buffers do not get their copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotGiven {
    /// They do not fit.
    TooLarge(TooLarge),
    /// They have others.
    Shared(SharedCopies),
    /// The kernel is broken.
    Broken(Bug),
}

impl From<TooLarge> for NotGiven {
    fn from(why: TooLarge) -> NotGiven {
        NotGiven::TooLarge(why)
    }
}

impl From<SharedCopies> for NotGiven {
    fn from(why: SharedCopies) -> NotGiven {
        NotGiven::Shared(why)
    }
}

impl From<Bug> for NotGiven {
    fn from(bug: Bug) -> NotGiven {
        NotGiven::Broken(bug)
    }
}

/// How many copies a buffer gets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Need {
    /// A write comes in a later slot than the reads of what it overwrites.
    Apart,
    /// It may come in the same slot, in which the older iteration reads first.
    InOrder,
}

fn needed(found: &LoopGraph, buffer: Entity, assignment: &Assignment, need: Need) -> u32 {
    let cycle = |node: &NodeId| assignment.cycles[*node];
    let fills = found.buffers.iter().filter(|fill| fill.buffer == buffer);
    // In the order of iterations.
    let spans: SmallVec<[[u32; 2]; 4]> = fills
        .map(|fill| {
            let first = fill.writes.iter().map(cycle).min().unwrap_or(0);
            [first, fill.reads.iter().map(cycle).max().unwrap_or(0)]
        })
        .collect();
    let (count, interval) = (spans.len().max(1), assignment.interval.max(1));
    let fits = |copies: usize| {
        spans.iter().enumerate().all(|(at, [_, last])| {
            let (trip, next) = ((at + copies) / count, (at + copies) % count);
            spans[next][0] + trip as u32 * interval >= last + u32::from(need == Need::Apart)
        })
    };
    // All cycles of an assignment are over after this many trips.
    let most = spans.iter().map(|[_, last]| last / interval + 2).max().unwrap_or(1) as usize * count;
    (1..most).find(|&copies| fits(copies)).unwrap_or(most) as u32
}

/// The fewest copies with which the order of an assignment is right.
pub(crate) fn least(found: &LoopGraph, buffer: &LoopBuffer, assignment: &Assignment) -> u32 {
    needed(found, buffer.buffer, assignment, Need::InOrder)
}

/// Copies that buffers would have.
pub(crate) type PlannedCopies = SmallVec<[(Entity, u32); 4]>;

/// Buffers with the bytes that they take and those that they would take.
type ResizedBuffers = SmallVec<[(Entity, [u32; 2]); 4]>;

/// The copies that [`give`] would give the buffers of a loop.
///
/// # Errors
/// A kernel that is broken; LDS that is too small.
pub(crate) fn planned(
    view: SchedulerView,
    found: &LoopGraph,
    assignment: &Assignment,
) -> Result<Result<PlannedCopies, TooLarge>, Bug> {
    let limit = view.settings()?.target().max_lds_per_workgroup;
    let mut total = 0;
    for need in [Need::Apart, Need::InOrder] {
        let copies = each(found, |buffer| needed(found, buffer, assignment, need));
        total = bytes_of(view, &copies)?;
        if total <= limit {
            return Ok(Ok(copies));
        }
    }
    Ok(Err(TooLarge { needed: total, limit }))
}

/// So many copies of each buffer of a loop.
///
/// # Errors
/// A kernel that is broken; LDS that is too small.
pub(crate) fn of_all(
    view: SchedulerView,
    found: &LoopGraph,
    copies: u32,
) -> Result<Result<PlannedCopies, TooLarge>, Bug> {
    let limit = view.settings()?.target().max_lds_per_workgroup;
    let all = each(found, |_| copies);
    let needed = bytes_of(view, &all)?;
    Ok(if needed > limit { Err(TooLarge { needed, limit }) } else { Ok(all) })
}

/// The buffers of a loop, each once, with so many copies.
fn each(found: &LoopGraph, copies: impl Fn(Entity) -> u32) -> PlannedCopies {
    let mut all = PlannedCopies::new();
    for &LoopBuffer { buffer, .. } in &found.buffers {
        if !all.iter().any(|known| known.0 == buffer) {
            all.push((buffer, copies(buffer)));
        }
    }
    all
}

/// Bytes of LDS that the kernel would take where these buffers live if they had so many copies: those of all
/// buffers side by side if they fit, and otherwise of those that hold data at the same time.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn bytes_of(view: SchedulerView, copies: &PlannedCopies) -> Result<u32, Bug> {
    let mut total = all_bytes(view)?;
    let resized = resized(view, copies)?;
    for &(_, [before, after]) in &resized {
        total = total.saturating_sub(before).saturating_add(after);
    }
    if total <= view.settings()?.target().max_lds_per_workgroup {
        return Ok(total);
    }
    view.lds_use(|held| held.around(&resized).try_into().unwrap_or(u32::MAX))
}

/// These buffers with the bytes that they take and those that they would take with so many copies.
fn resized(view: SchedulerView, copies: &PlannedCopies) -> Result<ResizedBuffers, Bug> {
    let resized = copies.iter().map(|&(buffer, count)| {
        let lds = view.buffer(buffer)?;
        Ok((buffer, [lds.all_bytes(), lds.bytes.saturating_mul(count)]))
    });
    resized.collect()
}

/// The LDS that a loop can have for its buffers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LdsRoom {
    /// Bytes of one copy of each of them.
    pub one: u32,
    /// Bytes that nothing else holds where they live.
    pub free: u32,
    /// Bytes of the target.
    limit: u32,
}

impl LdsRoom {
    /// That of a loop.
    ///
    /// # Errors
    /// A kernel that is broken.
    pub(crate) fn of(view: SchedulerView, found: &LoopGraph) -> Result<LdsRoom, Bug> {
        let limit = view.settings()?.target().max_lds_per_workgroup;
        let own = resized(view, &each(found, |_| 0))?;
        let (mut one, mut others) = (0u32, all_bytes(view)?);
        for &(buffer, [now, _]) in &own {
            one = one.saturating_add(view.buffer(buffer)?.bytes);
            others = others.saturating_sub(now);
        }
        if others > 0 {
            others = view.lds_use(|held| held.around(&own))?.try_into().unwrap_or(u32::MAX);
        }
        Ok(LdsRoom { one, free: limit.saturating_sub(others), limit })
    }

    /// As many copies of all buffers as there is room for, at most `most`.
    ///
    /// # Errors
    /// If there is no room for `least`.
    pub(crate) fn copies(self, least: u32, most: u32) -> Result<u32, TooLarge> {
        let needed = self.one.saturating_mul(least);
        if needed > self.free {
            return Err(TooLarge {
                needed: needed.saturating_add(self.limit - self.free),
                limit: self.limit,
            });
        }
        Ok((self.free / self.one.max(1)).min(most).max(least))
    }
}

/// Gives every buffer of a loop its copies: `forced`, or as many as the assignment needs. One that another
/// scheduled loop uses has its copies already, of which there may be more than an assignment needs.
///
/// # Errors
/// If LDS is too small, or a buffer has another number of copies.
pub(crate) fn give(
    kernel: &mut Scheduling,
    found: &LoopGraph,
    assignment: &Assignment,
    forced: Option<u32>,
) -> Result<(), NotGiven> {
    let limit = kernel.view().settings()?.target().max_lds_per_workgroup;
    kernel.lds_bytes = Some(all_bytes(kernel.view())?.into());
    let mut refused = NotGiven::from(TooLarge { needed: 0, limit });
    for need in [Need::Apart, Need::InOrder] {
        let wanted = |buffer| forced.unwrap_or_else(|| needed(found, buffer, assignment, need));
        let mut copies = each(found, wanted);
        let mut shared = None;
        for (buffer, count) in &mut copies {
            if kernel.settled.binary_search(buffer).is_err() {
                continue;
            }
            let (has, needed) = (kernel.view().copies(*buffer), *count);
            if has < needed || (has > needed && forced.is_some()) {
                shared = shared.or(Some(SharedCopies { has, needed }));
            }
            *count = has;
        }
        if let Some(shared) = shared {
            refused = shared.into();
            continue;
        }
        let needed = bytes_of(kernel.view(), &copies)?;
        if needed <= limit {
            settle(kernel, &copies);
            return Ok(());
        }
        refused = TooLarge { needed, limit }.into();
    }
    Err(refused)
}

/// Gives buffers their copies, on which a scheduled loop relies from now on.
fn settle(kernel: &mut Scheduling, copies: &PlannedCopies) {
    for &(buffer, count) in copies {
        if let Err(at) = kernel.settled.binary_search(&buffer) {
            kernel.settled.insert(at, buffer);
        }
        let Some(mut lds) = kernel.world.get_mut::<LdsBuffer>(buffer) else { continue };
        let before = lds.all_bytes();
        lds.copies = count;
        let after = lds.all_bytes();
        if let Some(total) = &mut kernel.lds_bytes {
            *total = total.saturating_sub(before.into()) + u64::from(after);
        }
        if let Some(held) = kernel.lds_use.get_mut() {
            held.resize(buffer, [before, after]);
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Nodes that this thread has looked at to add up LDS.
    pub(crate) static WALKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Bytes of all LDS buffers of the kernel, with their copies.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn all_bytes(view: SchedulerView) -> Result<u32, Bug> {
    if let Some(known) = view.lds_bytes {
        return Ok(known.try_into().unwrap_or(u32::MAX));
    }
    let mut sum = 0u32;
    for &node in view.body(view.root)? {
        #[cfg(test)]
        WALKED.set(WALKED.get() + 1);
        if view.op(node)? == Op::Allocate {
            sum = sum.saturating_add(view.buffer(node)?.all_bytes());
        }
    }
    Ok(sum)
}
