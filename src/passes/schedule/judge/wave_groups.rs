//! Barriers of waves that do not run in step: when some waves meet more barriers before a loop than others,
//! they run the loop that much later, and the barriers of its body pair up differently.
//!
//! A trip of the loop has `barriers` barriers, and these cut time into epochs: for a wave that has met
//! `offset` barriers more than others, a node after `e` barriers of the body is in epoch
//! `trip * barriers + e + offset`. An access is over, as far as other waves can see, in the epoch in which
//! its wave waits for it: at the first barrier with an LDS fence, at a wait that counts it, or at the first
//! use of the value that it reads ([`super::in_flight`]). Two accesses of one place by waves of any two
//! groups are in order if the earlier one is over in an epoch before that of the later one.
//!
//! Only loops are proved in this way. In straight-line code between conditional barriers there may be no
//! access to LDS and no barrier.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::entry::{loads_under_way, reads_are_over};
use super::trip_barriers::{AccessPair, TripOrder, WaveGroup, order};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
use crate::ir::walk;
pub(crate) use crate::passes::facts::{EnteredInOrder, EnteredWithLoads, Settled, Staggered};
use crate::passes::schedule::graph::view::{SchedulerView, Scheduling};
use crate::passes::schedule::graph::words::{describe, place};

/// A region and what its nodes do.
struct WalkedRegion {
    region: Entity,
    ops: Vec<Op>,
}

impl WalkedRegion {
    fn has(&self, is: impl Fn(&Op) -> bool) -> bool {
        self.ops.iter().any(is)
    }

    fn holds_loop(&self) -> bool {
        self.has(|op| op.row().class == OpClass::Region)
    }
}

/// Counts the barriers that each wave meets, marks loops whose waves do not run in step, and looks for
/// accesses of LDS that are unordered there. Returns the first fault, if there is one.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn check(kernel: &mut Scheduling) -> Result<Option<Diagnostic>, Bug> {
    let is_conditional = |op: &Op| matches!(op, Op::Control(Control::ConditionalBarrier(_)));
    let is_plain = |op: &Op| matches!(op, Op::Control(Control::WorkgroupBarrier));
    // Most kernels have none, and their regions are not looked at.
    if !kernel.view().any(|op| is_conditional(&op) || is_plain(&op)) {
        return Ok(None);
    }
    let view = kernel.view();
    let mut regions: SmallVec<[WalkedRegion; 8]> = SmallVec::new();
    for region in walk::regions(view.world, view.root) {
        let body = view.body(region)?;
        let mut ops = Vec::with_capacity(body.len());
        for &node in body {
            ops.push(view.op(node)?);
        }
        regions.push(WalkedRegion { region, ops });
    }
    let mut staggered: SmallVec<[Entity; 2]> = SmallVec::new();
    for walked in regions.iter().filter(|walked| walked.has(is_conditional)) {
        if let Some(fault) = check_region(kernel, walked, (&regions, &mut staggered))? {
            return Ok(Some(fault));
        }
    }
    for walked in regions.iter().filter(|walked| walked.has(is_plain) && !walked.holds_loop()) {
        if !staggered.contains(&walked.region) {
            keep_own_barriers(kernel, walked.region)?;
        }
    }
    Ok(None)
}

/// Marks a region if it is a loop whose waves run in step and whose own barriers and counted waits keep all
/// accesses of LDS in order, so that it gets no others: a barrier that the compiler places waits for all
/// accesses that are under way.
fn keep_own_barriers(kernel: &mut Scheduling, region: Entity) -> Result<(), Bug> {
    let view = kernel.view();
    let Ok(Op::Iterate(_)) = view.op(region) else { return Ok(()) };
    for &node in view.body(region)? {
        let seen = view.node(node)?;
        // Of accesses at coordinates, and of global memory that is written, the proof knows nothing.
        let is_mapped = view.world.get::<Mapping>(seen.piece(node).logical).is_some();
        if is_mapped || seen.op.is_write() && view.buffer_of(&seen)?.is_none() {
            return Ok(());
        }
    }
    let in_step = [WaveGroup { late: 0, waves: (0..view.waves()?).collect() }];
    let found = order(view, region, &in_step)?;
    mark(kernel, region, found, &in_step)
}

/// Marks a loop whose own barriers keep all accesses of LDS in order.
fn mark(kernel: &mut Scheduling, node: Entity, found: TripOrder, groups: &[WaveGroup]) -> Result<(), Bug> {
    if let TripOrder::Unordered(_) = found {
        return Ok(());
    }
    let under_way = loads_under_way(kernel.view(), node)?;
    let mut node = kernel.world.entity_mut(node);
    node.insert(Staggered(groups.iter().map(|group| group.late).collect()));
    if found == TripOrder::Settled {
        node.insert(Settled);
    }
    if let Some(loads) = under_way {
        node.insert(EnteredWithLoads(loads));
    }
    Ok(())
}

/// True if conditional barriers in front of `node`, in its region, put its waves out of step.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn out_of_step(view: SchedulerView, region: Entity, node: Entity) -> Result<bool, Bug> {
    Ok(Met::before(view, region, node)?.offsets().len() > 1)
}

/// The waves of a workgroup in groups that run a loop in step.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn groups_of(view: SchedulerView, node: Entity) -> Result<Vec<WaveGroup>, Bug> {
    Ok(match walk::region_of(view.world, view.root, node) {
        Some(region) => Met::before(view, region, node)?.groups(),
        None => Met::new(view)?.groups(),
    })
}

/// The same for one of these regions, which has conditional barriers; its loops whose waves do not run in
/// step are `staggered`.
fn check_region(
    kernel: &mut Scheduling,
    walked: &WalkedRegion,
    (regions, staggered): (&[WalkedRegion], &mut SmallVec<[Entity; 2]>),
) -> Result<Option<Diagnostic>, Bug> {
    let (view, region) = (kernel.view(), walked.region);
    let body = view.body(region)?;
    let ops = || body.iter().copied().zip(walked.ops.iter().copied());
    let holds_loop = |node| regions.iter().any(|inner| inner.region == node && inner.holds_loop());
    let mut met = Met::new(view)?;
    for (node, op) in ops() {
        met.count(node, op);
    }
    if let Some(fault) = met.unbalanced(view) {
        return Ok(Some(fault));
    }
    let mut met = Met::new(view)?;
    let mut apart: SmallVec<[(Entity, TripOrder, Vec<WaveGroup>); 2]> = SmallVec::new();
    let mut entered: SmallVec<[Entity; 2]> = SmallVec::new();
    // Since the waves parted there have been only control operations.
    let mut at_once = true;
    let mut offsets = met.offsets();
    for (at, (node, op)) in ops().enumerate() {
        if met.count(node, op) {
            offsets = met.offsets();
        }
        if offsets.len() == 1 {
            at_once = true;
            continue;
        }
        let fault = |why: &str| Ok(Some(apart_fault(view, node, op, met.last, why)));
        if matches!(op, Op::Control(Control::WorkgroupBarrier) | Op::Barrier) {
            return fault("pairs up with another barrier");
        } else if matches!(op, Op::Control(_)) {
            continue;
        } else if matches!(op, Op::Iterate(_)) && !at_once {
            return fault("does not begin where waves part");
        } else if matches!(op, Op::Iterate(_)) && !holds_loop(node) {
            let groups = met.groups();
            let found = order(view, node, &groups)?;
            if let TripOrder::Unordered(pair) = found {
                let parted = met.last.and_then(|last| place(view.world, view.root, last));
                return Ok(Some(unordered_fault(view, pair).at(parted)));
            }
            if reads_are_over(view, &body[..at], node, &groups)? {
                entered.push(node);
            }
            apart.push((node, found, groups));
        } else if op.row().class == OpClass::Region || view.buffer_of(&view.node(node)?)?.is_some() {
            return fault("accesses LDS in an order that no barrier keeps");
        }
        at_once = false;
    }
    for node in entered {
        kernel.world.entity_mut(node).insert(EnteredInOrder);
    }
    for (node, found, groups) in apart {
        mark(kernel, node, found, &groups)?;
        staggered.push(node);
    }
    Ok(None)
}

/// The fault of a node that runs while waves are out of step, and is not the loop that may.
fn apart_fault(view: SchedulerView, node: Entity, op: Op, parted: Option<Entity>, why: &str) -> Diagnostic {
    let SchedulerView { world, root, .. } = view;
    let is_barrier = matches!(op, Op::Barrier | Op::Control(_));
    let what = if is_barrier { "a barrier".to_owned() } else { describe(world, root, node) };
    let fault = Diagnostic::invalid(format!("{what} between conditional barriers {why}"));
    let fault = match place(world, root, node) {
        Some(at) => fault.note("it is written here", Some(at)),
        None => fault,
    };
    let fault = fault.at(parted.and_then(|node| place(world, root, node)));
    fault.help("let waves part right before a loop without loops in it, and meet right after it")
}

/// Conditional barriers that each wave has met.
struct Met {
    counts: SmallVec<[u32; 16]>,
    last: Option<Entity>,
}

impl Met {
    /// None so far, by any wave of the kernel.
    fn new(view: SchedulerView) -> Result<Met, Bug> {
        Ok(Met { counts: SmallVec::from_elem(0, view.waves()? as usize), last: None })
    }

    /// The barriers that waves have met in a region when they come to a node of it.
    fn before(view: SchedulerView, region: Entity, node: Entity) -> Result<Met, Bug> {
        let mut met = Met::new(view)?;
        for &other in view.body(region)?.iter().take_while(|&&other| other != node) {
            met.count(other, view.op(other)?);
        }
        Ok(met)
    }

    /// Counts a conditional barrier for the waves that meet it; true if `node` is one.
    fn count(&mut self, node: Entity, op: Op) -> bool {
        let Op::Control(Control::ConditionalBarrier(condition)) = op else { return false };
        let waves = self.counts.len() as u32;
        for (met, wave) in self.counts.iter_mut().zip(0..) {
            *met += u32::from(condition.holds(wave, waves));
        }
        self.last = Some(node);
        true
    }

    /// For every wave, how many barriers more it has met than the waves that have met the fewest.
    fn surplus(&self) -> impl Iterator<Item = u32> {
        let fewest = self.counts.iter().copied().min().unwrap_or(0);
        self.counts.iter().map(move |met| met - fewest)
    }

    /// The distinct values of [`Met::surplus`]; one value if all waves are in step.
    fn offsets(&self) -> SmallVec<[u32; 4]> {
        let mut offsets: SmallVec<[u32; 4]> = self.surplus().collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// The groups, with the waves of each.
    fn groups(&self) -> Vec<WaveGroup> {
        let waves = |late| self.surplus().zip(0..).filter(|one| one.0 == late).map(|one| one.1).collect();
        self.offsets().into_iter().map(|late| WaveGroup { late, waves: waves(late) }).collect()
    }

    /// The fault of a region in which some waves meet more barriers than others.
    fn unbalanced(&self, view: SchedulerView) -> Option<Diagnostic> {
        let (most, fewest) = (self.counts.iter().max()?, self.counts.iter().min()?);
        let of = |count| self.counts.iter().position(|met| met == count).unwrap_or(0);
        (most != fewest).then(|| {
            let barriers = if *most == 1 { "barrier" } else { "barriers" };
            let text = format!(
                "wave {} meets {most} conditional {barriers} here and wave {} meets {fewest}: one of them would wait for ever",
                of(most),
                of(fewest)
            );
            let at = self.last.and_then(|node| place(view.world, view.root, node));
            let fault = Diagnostic::invalid(text).at(at);
            fault.help("let every wave meet as many: some before the loop, the others after it")
        })
    }
}

fn unordered_fault(view: SchedulerView, pair: AccessPair) -> Diagnostic {
    let SchedulerView { world, root, .. } = view;
    let AccessPair { earlier, later, trips, earlier_offset, later_offset, .. } = pair;
    let [first, second] = [earlier, later].map(|node| describe(world, root, node));
    let group = |offset| match offset {
        0 => "waves that run ahead".to_owned(),
        1 => "waves that are one barrier late".to_owned(),
        more => format!("waves that are {more} barriers late"),
    };
    let when = match trips {
        0 => "the same trip of the loop".to_owned(),
        1 => "the next trip of the loop".to_owned(),
        more => format!("{more} trips of the loop later"),
    };
    let text = format!(
        "no barrier keeps {first} of {} in front of {second} of {} in {when}",
        group(earlier_offset),
        group(later_offset)
    );
    Diagnostic::invalid(text)
        .note("what has to be over first is here", place(world, root, earlier))
        .note("what has to wait is here", place(world, root, later))
        .help("put a shared memory barrier between them that both groups meet")
}
