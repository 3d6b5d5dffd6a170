//! Dependence graphs as text: a listing of nodes with the dependences that leave them, and a drawing in the
//! DOT language of Graphviz.

use std::fmt::Write;

use super::view::{KernelView, LoopView};
use crate::passes::loops::expand::Expansion;
use crate::passes::schedule::graph::dependence_graph::{Dependence, Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::words::describe;

/// Appends to a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {{
        let _ = writeln!($out, $($argument)*);
    }};
}

impl Dependence {
    /// Its name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Dependence::Value => "value",
            Dependence::Flow => "flow",
            Dependence::Anti => "anti",
            Dependence::Output => "output",
            Dependence::Order => "order",
        }
    }
}

/// The graphs of all loops as listings.
pub(crate) fn listing(kernel: &KernelView) -> String {
    let mut out = String::new();
    put!(out, "dependences of {} for {}, schedule {}", kernel.kernel, kernel.target, kernel.applied);
    if kernel.loops.is_empty() {
        put!(out, "; there is no loop");
    }
    for view in &kernel.loops {
        let tag = view.tag.as_ref().map(|tag| format!(" @{tag}")).unwrap_or_default();
        put!(out, "\n{}{tag}", view.title());
        if !view.why.is_empty() {
            put!(out, "; {}", view.why);
        }
        match &view.found {
            Ok(found) => loop_listing(kernel, view, found, &mut out),
            Err(why) => {
                put!(out, "; no graph: {why}");
            }
        }
    }
    out
}

fn loop_listing(kernel: &KernelView, view: &LoopView, found: &LoopGraph, out: &mut String) {
    let graph = &found.graph;
    put!(
        out,
        "; {} nodes, {} junctions, {} dependences; latencies of the {} model",
        found.nodes.len(),
        found.junctions().len(),
        graph.edges().len(),
        view.model().name
    );
    for (number, node) in graph.nodes().iter() {
        let at = view.schedule.as_ref().map_or_else(String::new, |schedule| {
            let assignment = &schedule.assignment;
            format!(
                "  cycle {} = stage {} slot {}",
                assignment.cycles[number],
                assignment.stage(number),
                assignment.slot(number)
            )
        });
        let what = match number < found.body_end {
            true => describe(kernel.view.world, kernel.view.root, node.entity),
            false => junction(graph.entering(number).next()),
        };
        let (at_left, key) = (number.as_u32(), &view.keys[number]);
        put!(out, "{at_left:4} {:<16} {key:<22} {what}{at}", node.class.name());
        for edge in graph.leaving(number) {
            let Edge { to, latency, distance, kind, .. } = *edge;
            let (name, to) = (&view.keys[to], to.as_u32());
            put!(out, "       -> {to:4} {name:<22} {} latency {latency} distance {distance}", kind.name());
        }
    }
}

/// What a junction stands for.
fn junction(entering: Option<&Edge>) -> String {
    match entering.map(|edge| edge.kind) {
        Some(Dependence::Flow) => "all is written",
        Some(Dependence::Anti) => "all is read",
        Some(Dependence::Output) => "all is written for the first time",
        _ => "all is over",
    }
    .to_owned()
}

/// The graphs of all loops as one drawing.
pub(crate) fn dot(kernel: &KernelView) -> String {
    let mut out = String::new();
    put!(out, "digraph {} {{", quoted(&kernel.kernel));
    put!(out, "  graph [rankdir=TB, fontname=\"sans-serif\", newrank=true];");
    put!(
        out,
        "  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10, margin=\"0.06,0.03\"];"
    );
    put!(out, "  edge [arrowsize=0.6, fontname=\"sans-serif\", fontsize=9];");
    for view in &kernel.loops {
        if let Ok(found) = &view.found {
            loop_dot(kernel, view, found, &mut out);
        }
    }
    out.push_str("}\n");
    out
}

/// The replica of a node, and its place in the schedule.
fn label(view: &LoopView, n: NodeId, class: Class, expansion: Expansion) -> String {
    let Expansion { replica, slice, .. } = expansion;
    let mut label =
        if class == Class::Mma { format!("{replica}, part {slice}") } else { replica.to_string() };
    if let Some(schedule) = &view.schedule {
        let assignment = &schedule.assignment;
        let _ = write!(label, "\nstage {} slot {}", assignment.stage(n), assignment.slot(n));
    }
    label
}

fn loop_dot(kernel: &KernelView, view: &LoopView, found: &LoopGraph, out: &mut String) {
    let graph = &found.graph;
    let loop_number = view.number;
    put!(out, "  subgraph cluster_{loop_number} {{");
    put!(out, "    label={};", quoted(&view.title()));
    // Nodes of one logical node stand together, in the order of the body.
    let expansion = |n: NodeId| {
        let entity = graph.nodes()[n].entity;
        Expansion::at(kernel.view.world, entity)
    };
    let mut groups: Vec<(bevy_ecs::prelude::Entity, Vec<NodeId>)> = Vec::new();
    for n in found.body() {
        let logical = expansion(n).logical;
        match groups.iter_mut().find(|group| group.0 == logical) {
            Some(group) => group.1.push(n),
            None => groups.push((logical, vec![n])),
        }
    }
    for (number, (_, members)) in groups.iter().enumerate() {
        let Some(&first) = members.first() else { continue };
        let whole = describe(kernel.view.world, kernel.view.root, graph.nodes()[first].entity);
        let title = whole.split(" (replica").next().unwrap_or_default();
        put!(out, "    subgraph cluster_{loop_number}_{number} {{");
        put!(out, "      label={}; style=rounded; color=\"#9aa3af\";", quoted(title));
        for &n in members {
            let class = graph.nodes()[n].class;
            let name = quoted(&label(view, n, class, expansion(n)));
            put!(
                out,
                "      n{loop_number}_{n} [label={name}, tooltip={}, fillcolor={}];",
                quoted(&view.keys[n]),
                quoted(colour(class))
            );
        }
        put!(out, "    }}");
    }
    for n in found.junctions() {
        let label = quoted(&junction(graph.entering(n).next()));
        put!(out, "    n{loop_number}_{n} [shape=ellipse, label={label}, fillcolor=\"#ffffff\"];");
    }
    for edge in graph.edges() {
        let Edge { from, to, latency, distance, kind } = *edge;
        let mut look = format!("tooltip=\"{}, latency {latency}\"", kind.name());
        if distance > 0 {
            let _ = write!(look, ", style=dashed, constraint=false, label=\"{distance}\"");
        }
        if kind != Dependence::Value {
            look.push_str(", color=\"#b45309\"");
        }
        put!(out, "    n{loop_number}_{from} -> n{loop_number}_{to} [{look}];");
    }
    put!(out, "  }}");
}

/// Background of nodes of a class.
fn colour(class: Class) -> &'static str {
    match class {
        Class::ReadGlobal => "#bfdbfe",
        Class::WriteGlobal => "#fecaca",
        Class::ReadShared => "#bbf7d0",
        Class::WriteShared => "#fde68a",
        Class::GlobalToShared => "#c7d2fe",
        Class::Mma => "#e9d5ff",
        Class::Valu => "#fbcfe8",
        Class::Shuffle => "#a5f3fc",
        Class::Free => "#e5e7eb",
    }
}

/// A quoted string of the DOT language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
