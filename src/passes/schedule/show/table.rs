//! Writing tables.

use std::fmt::Write;

use bevy_ecs::prelude::Entity;

use super::view::{KernelView, ScheduledLoop};
use crate::ir::node::{Drain, Tag};
use crate::ir::schedule::table::Checks;
use crate::passes::loops::expand::Expansion;
use crate::passes::schedule::graph::dependence_graph::NodeId;
use crate::passes::schedule::graph::resources::Resource;
use crate::passes::schedule::judge::usage;

/// The schedules of a kernel's loops as a table. Loops that stayed as they were written are comments.
pub(crate) fn write(kernel: &KernelView) -> String {
    let mut out = format!("schedule table of {}\nrequested: {}\n", kernel.kernel, kernel.requested);
    if kernel.loops.is_empty() {
        out.push_str("; there is no loop to schedule\n");
    }
    for view in &kernel.loops {
        out.push('\n');
        match view.scheduled(kernel) {
            Some(one) => {
                decisions(one, &mut out);
                units(one, &mut out);
                nodes(one, &mut out);
                junctions(one, &mut out);
            }
            None => {
                let why = if view.why.is_empty() { "no schedule was asked for" } else { &view.why };
                let _ = writeln!(out, "; {} stays as it was written: {}", view.title(), one_line(why));
            }
        }
    }
    out
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// Decisions that hold for the whole loop.
fn decisions(one: ScheduledLoop, out: &mut String) {
    let ScheduledLoop { view, schedule, .. } = one;
    if !view.why.is_empty() {
        let _ = writeln!(out, "; {}", one_line(&view.why));
    }
    let checks = match schedule.checks {
        Checks::Order => "order",
        Checks::Machine => "machine",
    };
    let buffers = schedule.request.copies.map_or("fitting".to_owned(), |copies| copies.to_string());
    let drain = match schedule.request.drain {
        Drain::Epilogue => "epilogue",
        Drain::Loop => "loop",
    };
    let _ = writeln!(out, "{}", view.title());
    for (name, value) in [
        ("interval", schedule.assignment.interval.to_string()),
        ("stages", schedule.assignment.stages().to_string()),
        ("model", view.model().name.to_owned()),
        ("checks", checks.to_owned()),
        ("buffers", buffers),
        ("drain", drain.to_owned()),
    ] {
        let _ = writeln!(out, "  {name}: {value}");
    }
}

/// Units of each kind that are in use, slot by slot.
fn units(one: ScheduledLoop, out: &mut String) {
    let model = one.view.model();
    out.push_str("\n  ; units in use in each cycle of the interval\n");
    let header = ["slot"].into_iter().chain(Resource::NAMES.map(|row| row.1)).map(str::to_owned);
    let mut rows: Vec<Vec<String>> = vec![header.collect()];
    rows.push(["units".to_owned()].into_iter().chain(model.units.map(|u| u.to_string())).collect());
    for (slot, uses) in usage::uses(&one.found.graph, &model, &one.schedule.assignment).iter().enumerate() {
        rows.push([slot.to_string()].into_iter().chain(uses.map(|u| u.to_string())).collect());
    }
    aligned(&rows, out);
}

/// The cycle of every node.
fn nodes(one: ScheduledLoop, out: &mut String) {
    let ScheduledLoop { kernel, view, found, schedule } = one;
    let (graph, assignment) = (&found.graph, &schedule.assignment);
    out.push('\n');
    let header = ["node", "cycle", "slot", "stage", "what", "predecessors", "successors"];
    let mut rows: Vec<Vec<String>> = vec![header.map(str::to_owned).to_vec()];
    for n in found.body() {
        let neighbours = |edges: &mut dyn Iterator<Item = (NodeId, u32)>| {
            let all = edges.map(|(node, distance)| format!("{} +{distance}", view.keys[node]));
            all.collect::<Vec<_>>().join(", ")
        };
        rows.push(vec![
            view.keys[n].clone(),
            assignment.cycles[n].to_string(),
            assignment.slot(n).to_string(),
            assignment.stage(n).to_string(),
            what(kernel, graph.nodes()[n].entity),
            neighbours(&mut graph.entering(n).map(|e| (e.from, e.distance))),
            neighbours(&mut graph.leaving(n).iter().map(|e| (e.to, e.distance))),
        ]);
    }
    aligned(&rows, out);
}

/// What the junctions among the neighbours stand for.
fn junctions(one: ScheduledLoop, out: &mut String) {
    let ScheduledLoop { view, found, .. } = one;
    let graph = &found.graph;
    if found.junctions().len() > 0 {
        out.push_str("\n  ; junctions stand between all accesses before them and all after them\n");
    }
    for n in found.junctions() {
        let before = graph.entering(n).next().map_or("", |edge| &view.keys[edge.from]);
        let after = graph.leaving(n).first();
        let distance = after.map_or(0, |edge| edge.distance);
        let after = after.map_or("", |edge| &view.keys[edge.to]);
        let key = &view.keys[n];
        let _ = writeln!(out, "  ; {key}: {before} and its like, then {after} and its like +{distance}");
    }
}

/// The author's name for a node, where a cell can hold it.
fn what(kernel: &KernelView, node: Entity) -> String {
    let logical = Expansion::at(kernel.view.world, node).logical;
    let fits = |tag: &&Tag| tag.0.chars().all(|c| c.is_alphanumeric() || "_-./ ".contains(c));
    let tag = kernel.view.world.get::<Tag>(logical).filter(fits);
    tag.map(|tag| format!("@{}", tag.0)).unwrap_or_default()
}

/// Rows of cells in columns.
fn aligned(rows: &[Vec<String>], out: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    // Lists of neighbours in the last column are not padded.
    let widths: Vec<usize> = (0..columns).map(|column| width(column).min(40)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(out, "  {}", line.trim_end());
    }
}
