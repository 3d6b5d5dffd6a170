//! Operations as the page shows them: those of one logical node and iteration together, with their number and
//! their replicas.

use std::fmt::Write;

use bevy_ecs::prelude::*;

use super::{escaped, put};
use crate::ir::node::{Control, Name, Op, Tag};
use crate::ir::nodes::{Bug, ExpandedNodeItem};
use crate::ir::schedule::NodeType;
use crate::passes::loops::expand::{Base, Expansion};
use crate::passes::schedule::graph::dependences::class_of;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;

/// Classes that are shown: a readable name and a colour for each.
const CLASSES: &[(Class, &str, &str)] = &[
    (Class::ReadGlobal, "global read", "rg"),
    (Class::WriteGlobal, "global write", "wg"),
    (Class::ReadShared, "LDS read", "rs"),
    (Class::WriteShared, "LDS write", "ws"),
    (Class::GlobalToShared, "global to LDS", "gs"),
    (Class::Mma, "matrix", "mm"),
    (Class::Valu, "vector", "va"),
    (Class::Shuffle, "shuffle", "sh"),
];

/// The colours of the page.
pub(super) fn legend(out: &mut String) {
    out.push_str("<p class=\"facts\">");
    for (_, name, colour) in CLASSES {
        put!(out, "<span class=\"op {colour}\">{name}</span>");
    }
    out.push_str("</p>\n");
}

/// Operations of one logical node.
struct LabelGroup {
    logical: Entity,
    class: Class,
    /// How many iterations ahead of the trip, where that is known.
    ahead: Option<u32>,
    replicas: Vec<u32>,
    count: u32,
    name: String,
}

/// Whether operations say which iteration they belong to.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Iterations {
    /// Their position on the page makes it clear.
    Hidden,
    /// Each operation says it.
    Shown,
}

/// Operations as one entry per group, in order; operations that take no time are left out, except for control
/// operations.
pub(super) fn operations(
    view: SchedulerView,
    nodes: &[Entity],
    iterations: Iterations,
    out: &mut String,
) -> Result<(), Bug> {
    let mut groups: Vec<LabelGroup> = Vec::new();
    let flush = |groups: &mut Vec<LabelGroup>, out: &mut String| {
        groups.drain(..).for_each(|group| group.write(out));
    };
    for &node in nodes {
        let seen = view.node(node)?;
        let op = *seen.op;
        if let Op::Control(control) = op {
            flush(&mut groups, out);
            put!(out, "<span class=\"op ct\">{}</span>", escaped(&control_text(control)));
            continue;
        }
        let class = class_of(view, &seen);
        if class == Class::Free {
            continue;
        }
        let Expansion { logical, replica, iteration, .. } = seen.piece(node);
        let in_trip = iteration.base == Base::Trip && iterations == Iterations::Shown;
        let ahead = in_trip.then_some(iteration.ahead);
        let same = |group: &&mut LabelGroup| group.logical == logical && group.ahead == ahead;
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.replicas.push(replica);
                group.count += 1;
            }
            None => {
                let name = name(view, node, &seen);
                groups.push(LabelGroup { logical, class, ahead, replicas: vec![replica], count: 1, name });
            }
        }
    }
    flush(&mut groups, out);
    Ok(())
}

impl LabelGroup {
    fn write(self, out: &mut String) {
        let LabelGroup { class, ahead, mut replicas, count, name, .. } = self;
        let (title, colour) =
            CLASSES.iter().find(|row| row.0 == class).map_or(("", ""), |row| (row.1, row.2));
        replicas.sort_unstable();
        replicas.dedup();
        let ahead = match ahead {
            Some(0) => " <small>i</small>".to_owned(),
            Some(ahead) => format!(" <small>i+{ahead}</small>"),
            None => String::new(),
        };
        let times = if count == 1 { String::new() } else { format!(" &times;{count}") };
        put!(
            out,
            "<span class=\"op {colour}\" title=\"replicas {}\">{title} <b>{}</b>{times}{ahead} <small>r{}</small></span>",
            ranges(&replicas),
            escaped(&name),
            shortened(&ranges(&replicas))
        );
    }
}

/// The author's name for an operation: its tag, the memory that it touches, or what it does.
fn name(view: SchedulerView, node: Entity, seen: &ExpandedNodeItem) -> String {
    let (world, logical, op) = (view.world, seen.piece(node).logical, *seen.op);
    if let Some(tag) = world.get::<Tag>(logical).or_else(|| world.get::<Tag>(node)) {
        return tag.0.to_string();
    }
    match (op, seen.memory().ok().and_then(|m| world.get::<Name>(m))) {
        (Op::Read | Op::Write, Some(name)) => name.0.to_string(),
        (Op::Read | Op::Write, None) => String::new(),
        (op, _) if op.is_product() => String::new(),
        _ => NodeType::of(op).map_or("", NodeType::name).to_owned(),
    }
}

/// A control operation in words.
fn control_text(control: Control) -> String {
    match control {
        Control::WorkgroupBarrier => "barrier".to_owned(),
        Control::ConditionalBarrier(condition) => format!("barrier for waves {condition}"),
        Control::SetWavePriority(priority) => format!("priority {priority}"),
        Control::SchedulingBarrier => "order fixed".to_owned(),
        Control::InterleaveByCost => "ordered by cost".to_owned(),
        Control::SkipUnitFactors => "factors of one skipped".to_owned(),
        Control::WaitForLoads(count) => format!("wait for loads but {count}"),
        Control::WaitForShared(count) => format!("wait for LDS but {count}"),
    }
}

/// Sorted numbers as `0-3, 8`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut rest = numbers;
    while let [first, ..] = rest {
        let length = rest.iter().zip(0..).take_while(|(number, offset)| **number - first == *offset).count();
        let comma = if out.is_empty() { "" } else { ", " };
        match length {
            1 => put!(out, "{comma}{first}"),
            _ => put!(out, "{comma}{first}-{}", rest[length - 1]),
        };
        rest = &rest[length..];
    }
    out
}

/// The beginning of a long list.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(14) {
        Some(_) => {
            text.rfind(", ").map_or(text, |_| text.split(", ").next().unwrap_or(text)).to_owned() + ", .."
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn neighbours_are_one_range() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[4]), "4");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(ranges(&[u32::MAX]), u32::MAX.to_string());
        assert_eq!(ranges(&[u32::MAX - 1, u32::MAX]), format!("{}-{}", u32::MAX - 1, u32::MAX));
    }
}
