//! Rules that an operation obeys whatever kernel it is for. A fault without a place is about the operation as
//! a whole; the caller that records the operation knows where it is written.

use std::collections::BTreeMap;

use super::operations::{
    Directive, Group, InsertPlace, Item, Operation, Pipeline, Scheduled, ValueId, ValueKind,
};
use super::recorded::Recorded;
use crate::ir::assemble::is_identifier;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::types::AddressSpace;

/// The most parts of a list, iterations of an unrolled loop, or copies of a buffer: a larger number must be a
/// typing error.
pub(in crate::ir) const MOST: u32 = 1 << 16;

type RuleResult = Result<(), Diagnostic>;

/// Whether an operation on values of `recorded` obeys the rules.
pub(super) fn check(operation: &Operation, recorded: &Recorded) -> RuleResult {
    match operation {
        Operation::GetNodeByTag { .. }
        | Operation::GetNodeByTagAndType { .. }
        | Operation::GetNodeByTagAndIteration { .. }
        | Operation::GetItem { .. }
        | Operation::LoadToLds => Ok(()),
        Operation::TagNodes { tag, .. } => new_tag(tag, recorded),
        Operation::ScheduleLoop { strategy, .. } if !is_identifier(strategy) => {
            let fault = Diagnostic::invalid(format!("`{}` names no schedule", strategy.escape_default()));
            Err(fault.help("take a word of `--schedule`"))
        }
        Operation::ScheduleLoop { target, .. } => match recorded.pipelined(*target) {
            Some(first) => Err(Diagnostic::invalid("this loop is scheduled twice")
                .note("it is scheduled here first", Some(first.clone()))
                .help("give it one strategy, or stages")),
            None => Ok(()),
        },
        Operation::PartitionByAddressSpace { space: AddressSpace::Register, .. } => {
            Err(Diagnostic::invalid("no read or write is in register space")
                .help("divide by global or by shared"))
        }
        Operation::PartitionByAddressSpace { .. } => Ok(()),
        Operation::PartitionByDim { parts, .. } => match *parts {
            1..=MOST => Ok(()),
            parts => Err(Diagnostic::invalid(format!("a list cannot be divided into {parts}"))
                .help(format!("ask for 1 to {MOST} parts"))),
        },
        Operation::FilterNodes { stage, .. } => stage.map_or(Ok(()), |stage| exists(stage, recorded)),
        Operation::Pipeline(data) => pipeline(data, recorded),
        Operation::Cluster { items } => cluster(items),
        Operation::ReorderGraph { region, clusters } => {
            exists(*region, recorded)?;
            reorder(clusters, recorded)
        }
        Operation::Insert { place, target, directive } => {
            exists(*target, recorded)?;
            if matches!(place, InsertPlace::Before | InsertPlace::After) {
                is_loop_or_nodes(*target, recorded)
                    .map_err(|fault| fault.help("insert at its start or at its end"))?;
            }
            known(*directive)
        }
        Operation::Stagger { region } => is_loop_or_nodes(*region, recorded)
            .map_err(|fault| fault.help("waves are staggered for a loop: take the pipeline's kernel")),
        Operation::InterleaveOps { base, groups } => interleave(base, groups),
        Operation::Unroll { region, factor } => {
            is_loop_or_nodes(*region, recorded)
                .map_err(|fault| fault.help("loops are unrolled: take the pipeline's kernel"))?;
            match *factor {
                2..=MOST => Ok(()),
                factor => Err(Diagnostic::invalid(format!("a loop cannot be unrolled {factor} times"))
                    .help(format!("the factor is 2 to {MOST}"))),
            }
        }
    }
}

/// Refuses a tag that an operation has given before.
fn new_tag(tag: &str, recorded: &Recorded) -> RuleResult {
    let is_same = |one: &&Scheduled| matches!(&one.operation, Operation::TagNodes { tag: known, .. } if **known == *tag);
    let Some(first) = recorded.operations.iter().find(is_same) else { return Ok(()) };
    Err(Diagnostic::invalid(format!("the tag \"{}\" is given twice", tag.escape_default()))
        .note("it is given here first", Some(first.location.clone()))
        .help("name all of its nodes at once"))
}

/// Whether the numbers of a directive are in range.
fn known(directive: Directive) -> RuleResult {
    match directive {
        Directive::SharedMemoryBarrier => Ok(()),
        Directive::Control(control) => control.checked().map(|_| ()),
    }
}

/// Checks that a part of a pipeline exists.
fn exists(value: ValueId, recorded: &Recorded) -> RuleResult {
    let Some(scheduled) = recorded.definition(value) else { return Ok(()) };
    match &scheduled.operation {
        Operation::Pipeline(pipeline)
            if pipeline.eliminate_epilogue && recorded.kind(value) == Some(ValueKind::Epilogue) =>
        {
            Err(Diagnostic::invalid("this pipeline has no epilogue")
                .note("its epilogue is eliminated here", Some(scheduled.location.clone()))
                .help("its last iterations run in its kernel"))
        }
        _ => Ok(()),
    }
}

/// Checks that a value is not the straight code before or after a loop.
fn is_loop_or_nodes(value: ValueId, recorded: &Recorded) -> RuleResult {
    exists(value, recorded)?;
    match recorded.kind(value) {
        Some(part @ (ValueKind::Prologue | ValueKind::Epilogue)) => {
            let name = if part == ValueKind::Prologue { "prologue" } else { "epilogue" };
            Err(Diagnostic::invalid(format!("the {name} of a pipeline is neither a loop nor a node")))
        }
        _ => Ok(()),
    }
}

fn pipeline(pipeline: &Pipeline, recorded: &Recorded) -> RuleResult {
    if let Some(first) = recorded.pipelined(pipeline.target) {
        return Err(Diagnostic::invalid("this loop is pipelined twice")
            .note("it is pipelined here first", Some(first.clone()))
            .help("set all stages in one pipeline"));
    }
    let Some(first) = pipeline.stages.first() else {
        let help = "set its stages inside it, one after the other";
        return Err(Diagnostic::invalid("a pipeline without stages").help(help));
    };
    if pipeline.multi_buffer_count.is_some_and(|count| !(1..=MOST).contains(&count)) {
        let help =
            format!("the count is 1 to {MOST}; without one, there are as many copies as the stages need");
        return Err(Diagnostic::invalid("an LDS buffer cannot have so many copies").help(help));
    }
    let clusters = |count: usize| format!("{count} cluster{}", if count == 1 { "" } else { "s" });
    let interval = first.slots.len();
    if interval == 0 {
        let fault = Diagnostic::invalid("a stage without clusters").at(Some(first.location.clone()));
        return Err(fault.help("give it one per slot of the initiation interval"));
    }
    let mut placed: BTreeMap<ValueId, &Location> = BTreeMap::new();
    for stage in &pipeline.stages {
        if stage.slots.len() != interval {
            let here = clusters(stage.slots.len());
            let text =
                format!("all stages of a pipeline have the same number of clusters, and this one has {here}");
            return Err(Diagnostic::invalid(text)
                .at(Some(stage.location.clone()))
                .note(format!("the first stage has {}", clusters(interval)), Some(first.location.clone()))
                .help("write `()` for a slot in which a stage does nothing"));
        }
        for &value in stage.slots.iter().flatten() {
            let Some(before) = placed.insert(value, &stage.location) else { continue };
            let made = recorded.definition(value).map(|scheduled| scheduled.location.clone());
            return Err(Diagnostic::invalid("a list of nodes is scheduled twice")
                .at(Some(stage.location.clone()))
                .note("it is scheduled here first", Some(before.clone()))
                .note("it is this list", made)
                .help("every node has one stage and one slot"));
        }
    }
    Ok(())
}

fn cluster(items: &[Item]) -> RuleResult {
    let mut nodes = false;
    for item in items {
        match *item {
            Item::Value(_) => nodes = true,
            Item::Directive(directive) => known(directive)?,
        }
    }
    if nodes {
        return Ok(());
    }
    let help = "put a list of nodes into it: an inserted operation needs a node as its place";
    Err(Diagnostic::invalid("a cluster without nodes").help(help))
}

fn reorder(clusters: &[ValueId], recorded: &Recorded) -> RuleResult {
    if clusters.is_empty() {
        let help = "name all clusters in the order that they should have";
        return Err(Diagnostic::invalid("an order without clusters").help(help));
    }
    let mut sorted = clusters.to_vec();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    match twice {
        None => Ok(()),
        Some(value) => {
            let made = recorded.definition(value).map(|scheduled| scheduled.location.clone());
            Err(Diagnostic::invalid("a cluster has two places in one order")
                .note("it is this cluster", made)
                .help("every node has one place"))
        }
    }
}

fn interleave(base: &[ValueId], groups: &[Group]) -> RuleResult {
    if base.is_empty() {
        let help = "name the list between whose nodes the others go";
        return Err(Diagnostic::invalid("nothing to interleave with").help(help));
    }
    if let Some(at) = groups.iter().position(|group| group.interval == 0) {
        return Err(Diagnostic::invalid(format!("group {at} has the interval 0"))
            .help("an interval is at least 1: a node of the group after every node of the base"));
    }
    let count = groups.len();
    for (at, group) in groups.iter().enumerate() {
        if let Some(other) = group.start_after_groups.iter().find(|&&other| other as usize >= count) {
            let plural = if count == 1 { "is 1 group" } else { "are groups" };
            return Err(Diagnostic::invalid(format!(
                "group {at} starts after group {other}, which does not exist"
            ))
            .help(format!("groups are numbered from 0, and there {plural} 0 to {}", count - 1)));
        }
    }
    match never_started(groups) {
        None => Ok(()),
        Some(at) => Err(Diagnostic::invalid(format!("group {at} never starts"))
            .help("it starts after groups that start after it; leave one of them out")),
    }
}

/// The first group that waits, directly or not, for itself or for a group that does.
fn never_started(groups: &[Group]) -> Option<usize> {
    let mut waiting: Vec<usize> = groups.iter().map(|group| group.start_after_groups.len()).collect();
    let mut followers = vec![Vec::new(); groups.len()];
    for (at, group) in groups.iter().enumerate() {
        for &other in &group.start_after_groups {
            followers[other as usize].push(at);
        }
    }
    let mut ready: Vec<usize> = (0..groups.len()).filter(|&at| waiting[at] == 0).collect();
    while let Some(at) = ready.pop() {
        for &follower in &followers[at] {
            waiting[follower] -= 1;
            if waiting[follower] == 0 {
                ready.push(follower);
            }
        }
    }
    waiting.iter().position(|&count| count > 0)
}
