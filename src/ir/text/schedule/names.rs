//! Names of a schedule's values: the author's, or names made from what the operations are about, so that a
//! traced schedule reads well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{PARTS, RESERVED};
use crate::ir::node::Control;
use crate::ir::schedule::{Operation, Scheduled, ValueId};

/// Whose names are printed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::ir) enum Names {
    /// The author's where they exist.
    Kept,
    /// Made-up ones, which only depend on the operations.
    Generated,
}

/// The longest name that is made from other names.
const LONGEST: usize = 40;

/// Names of all values, by number; those of a pipeline's parts are written `name.part`.
pub(in crate::ir) fn value_names(operations: &[Scheduled], names: Names) -> Vec<String> {
    let mut made = Made { taken: BTreeSet::new(), next: BTreeMap::new(), names: Vec::new() };
    made.taken.extend(RESERVED.iter().chain(&Control::WORDS).map(|word| (*word).to_owned()));
    let kept = |scheduled: &Scheduled, at: usize| -> Option<Arc<str>> {
        scheduled.names.get(at).cloned().flatten().filter(|_| names == Names::Kept)
    };
    // A name that the author chose is never given to anything else.
    for scheduled in operations {
        made.taken
            .extend((0..scheduled.names.len()).filter_map(|at| kept(scheduled, at)).map(|n| n.to_string()));
    }
    for scheduled in operations {
        if let Operation::Pipeline(pipeline) = &scheduled.operation {
            let name = match kept(scheduled, 0) {
                Some(name) => name.to_string(),
                None => made.new_name(&made.of(pipeline.target, "pipeline")),
            };
            made.names.extend(PARTS.iter().map(|part| format!("{name}.{part}")));
            continue;
        }
        for at in 0..scheduled.results.len() {
            let name = match kept(scheduled, at) {
                Some(name) => name.to_string(),
                None => made.new_name(&made.subject(&scheduled.operation, at)),
            };
            made.names.push(name);
        }
    }
    made.names
}

struct Made {
    taken: BTreeSet<String>,
    /// The last number after each name that was wanted twice.
    next: BTreeMap<String, u32>,
    names: Vec<String>,
}

impl Made {
    /// `wanted`, followed by a number if it is taken.
    fn new_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while !self.taken.insert(name.clone()) {
            let number = self.next.entry(wanted.to_owned()).or_insert(1);
            *number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }

    /// The name of a value that is made from another one.
    fn of(&self, value: ValueId, what: &str) -> String {
        match self.names.get(value.index()) {
            Some(name) if name.len() + what.len() < LONGEST => format!("{}_{what}", name.replace('.', "_")),
            _ => format!("nodes_{what}"),
        }
    }

    /// A name for result number `at` of an operation.
    fn subject(&self, operation: &Operation, at: usize) -> String {
        match operation {
            Operation::GetNodeByTag { tag } => of_tag(tag),
            Operation::GetNodeByTagAndType { tag, node_type } => {
                format!("{}_{}", of_tag(tag), node_type.name())
            }
            Operation::GetNodeByTagAndIteration { tag, iteration } => format!("{}_{iteration}", of_tag(tag)),
            Operation::PartitionByAddressSpace { list, space } => {
                self.of(*list, if at == 0 { space.name() } else { "others" })
            }
            Operation::PartitionByDim { list, .. } => self.of(*list, &at.to_string()),
            Operation::FilterNodes { list, stage, node_type } => {
                let part = stage.and_then(|stage| self.names.get(stage.index()));
                let part = part.and_then(|name| name.rsplit('.').next());
                let parts = part.into_iter().chain(node_type.map(|node_type| node_type.name()));
                let parts: Vec<_> = parts.collect();
                self.of(*list, if parts.is_empty() { "all".to_owned() } else { parts.join("_") }.as_str())
            }
            Operation::GetItem { list, index } => self.of(*list, &index.to_string()),
            Operation::Cluster { .. } => "cluster".to_owned(),
            Operation::InterleaveOps { .. } => "interleaved".to_owned(),
            Operation::Pipeline(_)
            | Operation::ReorderGraph { .. }
            | Operation::Insert { .. }
            | Operation::Stagger { .. }
            | Operation::Unroll { .. }
            | Operation::ScheduleLoop { .. }
            | Operation::TagNodes { .. }
            | Operation::LoadToLds => "nothing".to_owned(),
        }
    }
}

/// A tag with the characters replaced that names cannot have.
fn of_tag(tag: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = tag.chars().take(LONGEST / 2).map(letter).collect();
    match name.chars().find(|c| *c != '_') {
        None => "nodes".to_owned(),
        Some(_) if name.starts_with(|c: char| c.is_ascii_digit()) => format!("_{name}"),
        Some(_) => name,
    }
}
