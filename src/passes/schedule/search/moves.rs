//! Small changes of a schedule that a strategy wrote: lists change places in their clusters, go to another
//! cluster or stage, are spread otherwise; LDS gets more or fewer copies; waves other priorities. Whether
//! what comes out is legal is for others to find.

use crate::ir::node::Control;
use crate::ir::schedule::{Directive, Item, Operation, Pipeline, Scheduled, Stage, ValueId, WaveSchedule};

/// A change. Operations are named by their numbers in the schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ScheduleMove {
    /// An item of a cluster and the one after it change places.
    Swap { operation: usize, item: usize },
    /// A cluster of a loop and the one after it change places.
    SwapClusters { operation: usize, cluster: usize },
    /// A list goes to the cluster and the slot of the pipeline that are so many places later.
    Shift { operation: usize, item: usize, by: i32 },
    /// Every LDS buffer has so many copies more.
    Copies { operation: usize, by: i32 },
    /// So many nodes more stand between those of a group.
    Interval { operation: usize, group: usize, by: i32 },
    /// The first of a group's nodes stands so many nodes later.
    Offset { operation: usize, group: usize, by: i32 },
    /// The priority that a cluster sets is so much higher.
    Priority { operation: usize, item: usize, by: i32 },
}

/// The greatest priority of a wave.
const HIGHEST_PRIORITY: i32 = 3;

/// The changes that a schedule admits by its form, in the order in which they are tried: what is moved
/// between clusters first.
pub(super) fn moves(schedule: &WaveSchedule) -> Vec<ScheduleMove> {
    let (mut shifts, mut others) = (Vec::new(), Vec::new());
    let interval = schedule.operations().iter().find_map(|one| {
        let Operation::Pipeline(pipeline) = &one.operation else { return None };
        Some(pipeline.initiation_interval() as i32)
    });
    for (operation, one) in schedule.operations().iter().enumerate() {
        match &one.operation {
            Operation::Cluster { items } => {
                of_cluster(operation, items, interval.unwrap_or(1), (&mut shifts, &mut others));
            }
            Operation::ReorderGraph { clusters, .. } => {
                let swaps =
                    (1..clusters.len()).map(|at| ScheduleMove::SwapClusters { operation, cluster: at - 1 });
                others.extend(swaps);
            }
            Operation::Pipeline(_) => {
                others.extend([1, -1].map(|by| ScheduleMove::Copies { operation, by }));
            }
            Operation::InterleaveOps { groups, .. } => {
                for group in 0..groups.len() {
                    others.extend([1, -1].map(|by| ScheduleMove::Interval { operation, group, by }));
                    others.extend([1, -1, 4, -4].map(|by| ScheduleMove::Offset { operation, group, by }));
                }
            }
            Operation::GetNodeByTag { .. }
            | Operation::GetNodeByTagAndType { .. }
            | Operation::GetNodeByTagAndIteration { .. }
            | Operation::PartitionByAddressSpace { .. }
            | Operation::PartitionByDim { .. }
            | Operation::FilterNodes { .. }
            | Operation::GetItem { .. }
            | Operation::Insert { .. }
            | Operation::Stagger { .. }
            | Operation::Unroll { .. }
            | Operation::ScheduleLoop { .. }
            | Operation::TagNodes { .. }
            | Operation::LoadToLds => {}
        }
    }
    shifts.extend(others);
    shifts
}

/// The changes of a cluster's items, apart from each other those that move a list away.
fn of_cluster(
    operation: usize,
    items: &[Item],
    interval: i32,
    (shifts, others): (&mut Vec<ScheduleMove>, &mut Vec<ScheduleMove>),
) {
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Value(_) => {
                let mut distances = vec![-2, 2, -1, 1, -interval, interval];
                distances.dedup();
                shifts.extend(distances.iter().map(|&by| ScheduleMove::Shift { operation, item: at, by }));
                if matches!(items.get(at + 1), Some(Item::Value(_))) && !is_skipped(items, at) {
                    others.push(ScheduleMove::Swap { operation, item: at });
                }
            }
            Item::Directive(Directive::Control(Control::SetWavePriority(_))) => {
                others.extend([1, -1].map(|by| ScheduleMove::Priority { operation, item: at, by }));
            }
            Item::Directive(_) => {}
        }
    }
}

/// True if a branch stands around an item.
fn is_skipped(items: &[Item], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| items.get(before));
    matches!(before, Some(Item::Directive(Directive::Control(Control::SkipUnitFactors))))
}

/// The schedule after a change, if it has what the change is about.
pub(super) fn moved(schedule: &WaveSchedule, change: ScheduleMove) -> Option<WaveSchedule> {
    let mut operations: Vec<Operation> =
        schedule.operations().iter().map(|one| one.operation.clone()).collect();
    apply(schedule, &mut operations, change)?;
    WaveSchedule::of_operations(schedule.name(), operations, schedule.location()).ok()
}

fn apply(schedule: &WaveSchedule, operations: &mut [Operation], change: ScheduleMove) -> Option<()> {
    match change {
        ScheduleMove::Swap { operation, item } => {
            items(operations, operation)?.swap(item, item + 1);
        }
        ScheduleMove::SwapClusters { operation, cluster } => {
            let Operation::ReorderGraph { clusters, .. } = operations.get_mut(operation)? else {
                return None;
            };
            clusters.swap(cluster, cluster + 1);
        }
        ScheduleMove::Shift { operation, item, by } => shift(schedule, operations, (operation, item), by)?,
        ScheduleMove::Copies { operation, by } => {
            let Operation::Pipeline(pipeline) = operations.get_mut(operation)? else { return None };
            let copies = pipeline.multi_buffer_count?.checked_add_signed(by).filter(|&copies| copies > 0)?;
            pipeline.multi_buffer_count = Some(copies);
        }
        ScheduleMove::Interval { operation, group, by } => {
            let Operation::InterleaveOps { groups, .. } = operations.get_mut(operation)? else { return None };
            let group = groups.get_mut(group)?;
            group.interval = group.interval.checked_add_signed(by).filter(|&interval| interval > 0)?;
        }
        ScheduleMove::Offset { operation, group, by } => {
            let Operation::InterleaveOps { groups, .. } = operations.get_mut(operation)? else { return None };
            let group = groups.get_mut(group)?;
            group.start_offset = group.start_offset.checked_add_signed(by)?;
        }
        ScheduleMove::Priority { operation, item, by } => {
            let item = items(operations, operation)?.get_mut(item)?;
            let Item::Directive(Directive::Control(Control::SetWavePriority(level))) = item else {
                return None;
            };
            let higher = i32::from(*level) + by;
            *level = u8::try_from(higher).ok().filter(|_| higher <= HIGHEST_PRIORITY)?;
        }
    }
    Some(())
}

fn items(operations: &mut [Operation], operation: usize) -> Option<&mut Vec<Item>> {
    let Operation::Cluster { items } = operations.get_mut(operation)? else { return None };
    Some(items)
}

/// Moves a list to another cluster, and its nodes to another slot: only where the loop has a cluster for each
/// slot of a stage. What comes earlier goes behind all that is there, what comes later in front of it.
fn shift(
    schedule: &WaveSchedule,
    operations: &mut [Operation],
    (operation, item): (usize, usize),
    by: i32,
) -> Option<()> {
    let own = ValueId(schedule.operations().get(operation)?.results.start);
    let &Item::Value(list) = items(operations, operation)?.get(item)? else { return None };
    // The nodes of the steady state are those of a list before the pipeline.
    let of_steady = &schedule.definition(list)?.operation;
    let whole = if let Operation::FilterNodes { list, .. } = of_steady { *list } else { list };
    let order = operations.iter().find_map(|operation| {
        let Operation::ReorderGraph { clusters, .. } = operation else { return None };
        clusters.contains(&own).then(|| clusters.clone())
    })?;
    let pipeline = operations.iter_mut().find_map(|operation| {
        let Operation::Pipeline(pipeline) = operation else { return None };
        Some(pipeline)
    })?;
    if pipeline.initiation_interval() != order.len() {
        return None;
    }
    to_slot(pipeline, whole, by)?;
    let count = order.len() as i32;
    if by.rem_euclid(count) == 0 {
        return Some(());
    }
    let from = order.iter().position(|&cluster| cluster == own)? as i32;
    let to = order[(from + by).rem_euclid(count) as usize];
    let is_target = |one: &Scheduled| one.results.start == to.0 && !one.results.is_empty();
    let target = schedule.operations().iter().position(is_target)?;
    let from = items(operations, operation)?;
    let first = item - usize::from(is_skipped(from, item));
    let moved: Vec<Item> = from.drain(first..=item).collect();
    let others = items(operations, target)?;
    let is_list = |item: &Item| matches!(item, Item::Value(_));
    let at = match by < 0 {
        true => others.iter().rposition(is_list)? + 1,
        false => others.iter().position(is_list)?,
    };
    others.splice(at..at, moved);
    Some(())
}

/// Moves a list of a pipeline so many slots on; stages are added as needed.
fn to_slot(pipeline: &mut Pipeline, list: ValueId, by: i32) -> Option<()> {
    let interval = pipeline.initiation_interval();
    let slots = pipeline.stages.iter().flat_map(|stage| &stage.slots);
    let from = slots.into_iter().position(|slot| slot.contains(&list))?;
    let to = from.checked_add_signed(by as isize)?;
    let location = pipeline.stages.last()?.location.clone();
    while pipeline.stages.len() * interval <= to {
        pipeline.stages.push(Stage { slots: vec![Vec::new(); interval], location: location.clone() });
    }
    pipeline.stages[from / interval].slots[from % interval].retain(|&own| own != list);
    pipeline.stages[to / interval].slots[to % interval].push(list);
    while pipeline.stages.len() > 1 && pipeline.stages.last()?.slots.iter().all(Vec::is_empty) {
        pipeline.stages.pop();
    }
    Some(())
}
