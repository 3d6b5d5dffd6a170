//! Stages by slot, with the units in use, and the strip of prologue, steady state and epilogue.

use std::fmt::Write;

use bevy_ecs::prelude::*;

use super::labels::{Iterations, operations};
use super::{bar, put};
use crate::ir::node::Drain;
use crate::ir::nodes::Bug;
use crate::ir::schedule::table::Checks;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::resources::{RESOURCES, Resource};
use crate::passes::schedule::judge::usage;
use crate::passes::schedule::show::view::ScheduledLoop;

/// Colour of each kind of unit.
const COLOURS: [&str; RESOURCES] = ["rg", "rs", "mm", "va", "sh"];

/// Trips of the steady state that the strip draws.
const STEADY: u32 = 3;

/// The most stages that the strip draws: it grows with their square.
const MOST_DRAWN: u32 = 24;

/// From this many slots on a table scrolls by itself.
const LONG: u32 = 48;

/// Which stage of which iteration each trip runs.
pub(super) fn strip(stages: u32, drain: Drain, out: &mut String) {
    let ahead = stages - 1;
    if stages > MOST_DRAWN {
        put!(out, "<p class=\"note\">{ahead} trips of prologue are too many to draw</p>\n");
        return;
    }
    let (after, steady) = match drain {
        Drain::Epilogue => (ahead, STEADY),
        Drain::Loop => (0, STEADY + ahead),
    };
    let iterations = STEADY + ahead;
    let part = |trip: u32| match trip {
        _ if trip < ahead => "prologue",
        _ if trip < ahead + steady => "steady",
        _ => "epilogue",
    };
    out.push_str("<div class=\"scroll\"><table class=\"strip\">\n<tr><th></th>");
    for (title, trips) in [("prologue", ahead), ("steady state", steady), ("epilogue", after)] {
        if trips > 0 {
            let class = title.split(' ').next().unwrap_or_default();
            put!(out, "<th colspan=\"{trips}\" class=\"{class}\">{title}</th>");
        }
    }
    out.push_str("</tr>\n");
    for iteration in 0..iterations {
        put!(out, "<tr><th>iteration {iteration}</th>");
        for trip in 0..ahead + steady + after {
            match trip.checked_sub(iteration).filter(|stage| *stage < stages) {
                Some(stage) => put!(out, "<td class=\"{} on\">stage {stage}</td>", part(trip)),
                None => put!(out, "<td class=\"{}\"></td>", part(trip)),
            };
        }
        out.push_str("</tr>\n");
    }
    put!(
        out,
        "</table></div>\n<p class=\"note\">drawn for {iterations} iterations; each column is one trip</p>\n"
    );
}

/// Units in use in every slot.
struct UnitUsage {
    checks: Checks,
    uses: Vec<[u32; RESOURCES]>,
    /// The height of a full bar.
    full: [u32; RESOURCES],
    /// Kinds that are used at all.
    columns: Vec<usize>,
}

impl UnitUsage {
    /// Units in use where cycles are the chip's; where they are phases, the time for which operations keep
    /// units busy.
    fn of(one: ScheduledLoop) -> UnitUsage {
        let (graph, chip, checks) = (&one.found.graph, &one.view.chip, one.schedule.checks);
        let (uses, full) = match checks {
            Checks::Machine => {
                (usage::uses(graph, chip, &one.schedule.assignment), chip.units.map(u32::from))
            }
            Checks::Order => {
                let busy = usage::busy(graph, chip, &one.schedule.assignment);
                let most = busy.iter().flatten().max().copied().unwrap_or(0);
                (busy, [most; RESOURCES])
            }
        };
        let is_used = |&column: &usize| uses.iter().any(|slot| slot[column] > 0);
        let columns = (0..RESOURCES).filter(is_used).collect();
        UnitUsage { checks, uses, full, columns }
    }

    fn header(&self, out: &mut String) {
        for &column in &self.columns {
            let name = Resource::NAMES[column].1;
            match self.checks {
                Checks::Machine => put!(out, "<th>{name}<small>of {}</small></th>", self.full[column]),
                Checks::Order => put!(out, "<th>{name}<small>cycles</small></th>"),
            };
        }
    }

    fn bars(&self, slot: u32, out: &mut String) {
        let uses = &self.uses[slot as usize];
        for &column in &self.columns {
            out.push_str("<td class=\"use\">");
            if uses[column] > 0 {
                bar(uses[column], self.full[column], COLOURS[column], &uses[column].to_string(), out);
            }
            out.push_str("</td>");
        }
    }
}

/// A row per slot and a column per stage; consecutive empty rows are merged.
pub(super) fn table(one: ScheduledLoop, out: &mut String) -> Result<(), Bug> {
    let ScheduledLoop { kernel, found, schedule, .. } = one;
    let assignment = &schedule.assignment;
    let stages = assignment.stages();
    let usage = UnitUsage::of(one);
    let mut order: Vec<NodeId> = found.body().collect();
    order.sort_by_key(|&n| (assignment.slot(n), assignment.stage(n), n));

    let long = if assignment.interval > LONG { " long" } else { "" };
    put!(out, "<div class=\"scroll{long}\">");
    out.push_str("<table class=\"stages\">\n<thead><tr><th>slot</th>");
    for stage in 0..stages {
        match stages - 1 - stage {
            0 => put!(out, "<th>stage {stage}<small>iteration i</small></th>"),
            ahead => put!(out, "<th>stage {stage}<small>iteration i+{ahead}</small></th>"),
        };
    }
    usage.header(out);
    out.push_str("</tr></thead>\n<tbody>\n");
    let mut empty: Option<(u32, u32)> = None;
    let mut rest = &order[..];
    for slot in 0..assignment.interval {
        let length = rest.iter().take_while(|&&n| assignment.slot(n) == slot).count();
        let (own, others) = rest.split_at(length);
        rest = others;
        let mut cells: Vec<String> = Vec::new();
        for stage in 0..stages {
            let nodes = own.iter().filter(|&&n| assignment.stage(n) == stage);
            let nodes: Vec<Entity> = nodes.map(|&n| found.graph.nodes()[n].entity).collect();
            let mut cell = String::new();
            operations(kernel.view, &nodes, Iterations::Hidden, &mut cell)?;
            cells.push(cell);
        }
        let alike = |other: u32| usage.uses[other as usize] == usage.uses[slot as usize];
        if cells.iter().all(String::is_empty) {
            match &mut empty {
                Some((first, last)) if alike(*first) => *last = slot,
                _ => {
                    idle(empty.take(), stages, &usage, out);
                    empty = Some((slot, slot));
                }
            }
            continue;
        }
        idle(empty.take(), stages, &usage, out);
        put!(out, "<tr><th>{slot}</th>");
        for cell in cells {
            put!(out, "<td>{cell}</td>");
        }
        usage.bars(slot, out);
        out.push_str("</tr>\n");
    }
    idle(empty, stages, &usage, out);
    out.push_str("</tbody></table></div>\n");
    Ok(())
}

/// A row of slots in which nothing starts.
fn idle(slots: Option<(u32, u32)>, stages: u32, usage: &UnitUsage, out: &mut String) {
    let Some((first, last)) = slots else { return };
    let name = if first == last { first.to_string() } else { format!("{first}-{last}") };
    put!(out, "<tr class=\"idle\"><th>{name}</th><td colspan=\"{stages}\"></td>");
    usage.bars(first, out);
    out.push_str("</tr>\n");
}
