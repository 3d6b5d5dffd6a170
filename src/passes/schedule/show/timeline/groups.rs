//! What waves do between the barriers of a loop: one column for waves that run in step, otherwise one for
//! each group.
//!
//! Barriers cut a trip of the loop into clusters. Waves that have met `o` barriers more before the loop are
//! `o` clusters late, so one row here shows what happens at the same time.

use std::fmt::Write;

use bevy_ecs::prelude::*;

use super::labels::{Iterations, operations, ranges};
use super::{bar, put};
use crate::ir::node::{Control, Op};
use crate::ir::nodes::Bug;
use crate::passes::schedule::graph::dependences::class_of;
use crate::passes::schedule::graph::resources::{RESOURCES, Resource};
use crate::passes::schedule::judge::trip_barriers::{BarrierRole, WaveGroup, roles};
use crate::passes::schedule::judge::wave_groups::groups_of;
use crate::passes::schedule::show::view::{KernelView, LoopView};

/// The operations that one barrier ends.
#[derive(Default)]
struct TimelineGroup {
    nodes: Vec<Entity>,
    /// The barrier or control operation that ends it.
    end: &'static str,
    /// Cycles for which it keeps units of each kind busy.
    busy: [u32; RESOURCES],
}

impl TimelineGroup {
    /// The end of one with a barrier alone.
    const BARRIER: &str = "barrier";
}

/// Units whose bars are drawn, with their colours.
const SHOWN: [(Resource, &str); 3] =
    [(Resource::Mma, "mm"), (Resource::Shared, "rs"), (Resource::Global, "rg")];

/// The clusters of a loop's body. The operations after the last barrier are part of the first cluster of the
/// next trip.
fn clusters(kernel: &KernelView, view: &LoopView) -> Result<Vec<TimelineGroup>, Bug> {
    let mut found: Vec<TimelineGroup> = vec![TimelineGroup::default()];
    for &node in kernel.view.body(view.running)? {
        let seen = kernel.view.node(node)?;
        let op = *seen.op;
        let end = if op == Op::Barrier {
            "LDS fence and barrier"
        } else if op == Op::Control(Control::WorkgroupBarrier) {
            TimelineGroup::BARRIER
        } else {
            ""
        };
        let Some(last) = found.last_mut() else { continue };
        if !end.is_empty() {
            last.end = end;
            found.push(TimelineGroup::default());
            continue;
        }
        let class = class_of(kernel.view, &seen);
        for (sum, &busy) in last.busy.iter_mut().zip(&view.chip.cost(class).busy) {
            *sum += u32::from(busy);
        }
        last.nodes.push(node);
    }
    if found.len() > 1
        && let Some(tail) = found.pop()
        && let Some(first) = found.first_mut()
    {
        first.nodes.splice(0..0, tail.nodes);
        first.busy.iter_mut().zip(tail.busy).for_each(|(sum, busy)| *sum += busy);
    }
    Ok(found)
}

/// The row that names the groups of waves.
fn head(groups: &[WaveGroup], out: &mut String) {
    out.push_str("<thead><tr><th></th>");
    for WaveGroup { late, waves } in groups {
        let late = match late {
            0 if groups.len() == 1 => String::new(),
            0 => "<small>ahead</small>".to_owned(),
            1 => "<small>one barrier late</small>".to_owned(),
            more => format!("<small>{more} barriers late</small>"),
        };
        put!(out, "<th>waves {}{late}</th>", ranges(waves));
    }
    out.push_str("</tr></thead>\n");
}

/// How long a cluster keeps units busy; the longest bar is `most` cycles.
fn bars(cluster: &TimelineGroup, most: u32, out: &mut String) {
    out.push_str("</div><div class=\"bars\">");
    for (resource, colour) in SHOWN {
        let busy = cluster.busy[resource as usize];
        if busy > 0 {
            bar(busy, most, colour, &format!("{} {busy} cycles", resource.name()), out);
        }
    }
    out.push_str("</div></td>");
}

/// The clusters of a loop as a table.
pub(super) fn between_barriers(kernel: &KernelView, view: &LoopView, out: &mut String) -> Result<(), Bug> {
    let groups = groups_of(kernel.view, view.running)?;
    let mut clusters = clusters(kernel, view)?;
    for (cluster, role) in clusters.iter_mut().zip(roles(kernel.view, view.running, &groups)?) {
        if role == BarrierRole::Pace {
            cluster.end = match cluster.end {
                TimelineGroup::BARRIER => "barrier for the pace",
                _ => "LDS fence, and barrier for the pace",
            };
        }
    }
    let count = clusters.len();
    if clusters.iter().all(|cluster| cluster.nodes.is_empty()) {
        return Ok(());
    }
    let step = match groups.len() {
        0 | 1 => "One trip between its barriers",
        _ => "One trip between its barriers: what stands side by side runs at the same time",
    };
    put!(out, "<h3>{step}</h3>\n<div class=\"scroll\"><table class=\"groups\">\n");
    head(&groups, out);
    out.push_str("<tbody>\n");
    let most = clusters.iter().flat_map(|cluster| cluster.busy).max().unwrap_or(0);
    for time in 0..count {
        put!(out, "<tr><th>{time}</th>");
        let mut ends: Vec<&str> = Vec::new();
        for group in &groups {
            let late = group.late as usize % count;
            let number = (time + count - late) % count;
            let cluster = &clusters[number];
            let before = if time < late { ", of the previous trip" } else { "" };
            put!(out, "<td><div class=\"cluster\">cluster {number}{before}</div><div>");
            operations(kernel.view, &cluster.nodes, Iterations::Shown, out)?;
            bars(cluster, most, out);
            if !ends.contains(&cluster.end) {
                ends.push(cluster.end);
            }
        }
        put!(out, "</tr>\n");
        ends.retain(|end| !end.is_empty());
        if !ends.is_empty() {
            let columns = groups.len();
            put!(
                out,
                "<tr class=\"barrier\"><th></th><td colspan=\"{columns}\">{}</td></tr>\n",
                ends.join(" meets ")
            );
        }
    }
    put!(
        out,
        "</tbody></table></div>\n<p class=\"note\">cycles of four clocks in which one wave keeps units busy, in the model of {}; small letters: the iteration, and the replicas</p>\n",
        view.chip.name
    );
    Ok(())
}
