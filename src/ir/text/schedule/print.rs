//! The printer of schedules.

use std::fmt::Write;

use super::super::controls::write_control;
use super::super::symbolic::write_symbol;
use super::names::{Names, value_names};
use crate::ir::schedule::{Directive, Group, InsertPlace, Item, Operation, Pipeline, Scheduled, ValueId};

/// The text of a schedule.
pub(in crate::ir) fn print(name: &str, operations: &[Scheduled], names: Names) -> String {
    let mut printer =
        SchedulePrinter { names: value_names(operations, names), out: String::with_capacity(1024) };
    printer.write(format_args!("schedule {name} {{\n"));
    for scheduled in operations {
        printer.statement(scheduled);
    }
    printer.out.push_str("}\n");
    printer.out
}

struct SchedulePrinter {
    names: Vec<String>,
    out: String,
}

impl SchedulePrinter {
    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(arguments);
    }

    fn name(&self, value: ValueId) -> &str {
        self.names.get(value.index()).map_or("?", String::as_str)
    }

    fn value(&mut self, value: ValueId) {
        self.out.push_str(self.names.get(value.index()).map_or("?", String::as_str));
    }

    /// A word and the value after it.
    fn of(&mut self, word: &str, value: ValueId) {
        self.out.push_str(word);
        self.out.push(' ');
        self.value(value);
    }

    fn statement(&mut self, scheduled: &Scheduled) {
        self.out.push_str("  ");
        let first = scheduled.results.start;
        if let Operation::Pipeline(_) = scheduled.operation {
            let name = self.name(ValueId(first)).rsplit_once('.').map_or("?", |(name, _)| name).to_owned();
            self.write(format_args!("{name} = "));
        } else if !scheduled.results.is_empty() {
            for value in scheduled.results.clone() {
                self.out.push_str(if value == first { "" } else { ", " });
                self.value(ValueId(value));
            }
            self.out.push_str(" = ");
        }
        self.operation(&scheduled.operation);
        self.out.push('\n');
    }

    fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::GetNodeByTag { tag } => {
                self.write(format_args!("get_node_by_tag \"{}\"", tag.escape_default()));
            }
            Operation::GetNodeByTagAndType { tag, node_type } => {
                self.write(format_args!("get_node_by_tag_and_type \"{}\" {node_type}", tag.escape_default()));
            }
            Operation::GetNodeByTagAndIteration { tag, iteration } => {
                let tag = tag.escape_default();
                self.write(format_args!("get_node_by_tag_and_iteration \"{tag}\" {iteration}"));
            }
            Operation::PartitionByAddressSpace { list, space } => {
                self.of("partition_by_address_space", *list);
                self.write(format_args!(" {space}"));
            }
            Operation::PartitionByDim { list, dim, parts } => {
                self.of("partition_by_dim", *list);
                self.out.push(' ');
                write_symbol(&mut self.out, dim.name());
                self.write(format_args!(" {parts}"));
            }
            Operation::FilterNodes { list, stage, node_type } => {
                self.of("filter_nodes", *list);
                if let Some(stage) = stage {
                    self.of(" stage", *stage);
                }
                if let Some(node_type) = node_type {
                    self.write(format_args!(" type {node_type}"));
                }
            }
            Operation::GetItem { list, index } => {
                self.of("getitem", *list);
                self.write(format_args!(" {index}"));
            }
            Operation::Pipeline(pipeline) => self.pipeline(pipeline),
            Operation::Cluster { items } => {
                self.out.push_str("cluster [");
                self.separated(items, |printer, item| match *item {
                    Item::Value(value) => printer.value(value),
                    Item::Directive(directive) => printer.directive(directive),
                });
                self.out.push(']');
            }
            Operation::ReorderGraph { region, clusters } => {
                self.of("reorder_graph", *region);
                self.out.push_str(" [");
                self.separated(clusters, |printer, &cluster| printer.value(cluster));
                self.out.push(']');
            }
            Operation::Insert { place, target, directive } => {
                let word = InsertPlace::WORDS.iter().find(|row| row.0 == *place).map_or("?", |row| row.1);
                self.of(word, *target);
                self.out.push(' ');
                self.directive(*directive);
            }
            Operation::Stagger { region } => self.of("stagger", *region),
            Operation::InterleaveOps { base, groups } => {
                self.out.push_str("interleave_ops ");
                self.lists(base);
                self.out.push_str(" [");
                self.separated(groups, SchedulePrinter::group);
                self.out.push(']');
            }
            Operation::Unroll { region, factor } => {
                self.of("unroll", *region);
                self.write(format_args!(" {factor}"));
            }
            Operation::ScheduleLoop { target, strategy } => {
                self.of("schedule_loop", *target);
                self.write(format_args!(" {strategy}"));
            }
            Operation::TagNodes { tag, nodes } => {
                self.write(format_args!("tag_nodes \"{}\" [", tag.escape_default()));
                self.separated(nodes, |printer, node| {
                    printer.write(format_args!("\"{}\"", node.escape_default()));
                });
                self.out.push(']');
            }
            Operation::LoadToLds => self.out.push_str("load_to_lds"),
        }
    }

    fn separated<T>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, &T)) {
        for (at, item) in items.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            print(self, item);
        }
    }

    fn tuple(&mut self, lists: &[ValueId]) {
        self.out.push('(');
        self.separated(lists, |printer, &list| printer.value(list));
        self.out.push(')');
    }

    /// Several lists taken as one; a single one has no brackets.
    fn lists(&mut self, lists: &[ValueId]) {
        match *lists {
            [list] => self.value(list),
            _ => self.tuple(lists),
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        self.of("pipeline", pipeline.target);
        self.out.push_str(" {\n");
        if pipeline.eliminate_epilogue {
            self.out.push_str("    eliminate_epilogue\n");
        }
        if let Some(count) = pipeline.multi_buffer_count {
            self.write(format_args!("    multi_buffer_count {count}\n"));
        }
        for stage in &pipeline.stages {
            self.out.push_str("    set_stage");
            for slot in &stage.slots {
                self.out.push(' ');
                self.tuple(slot);
            }
            self.out.push('\n');
        }
        self.out.push_str("  }");
    }

    fn directive(&mut self, directive: Directive) {
        match directive {
            Directive::SharedMemoryBarrier => self.out.push_str("barrier"),
            Directive::Control(control) => {
                self.out.push_str(control.word());
                write_control(&mut self.out, control);
            }
        }
    }

    fn group(&mut self, group: &Group) {
        self.lists(&group.lists);
        if group.interval != 1 {
            self.write(format_args!(" interval {}", group.interval));
        }
        if group.start_offset != 0 {
            self.write(format_args!(" start_offset {}", group.start_offset));
        }
        if !group.start_after_groups.is_empty() {
            self.out.push_str(" start_after_groups [");
            self.separated(&group.start_after_groups, |printer, number| {
                printer.write(format_args!("{number}"))
            });
            self.out.push(']');
        }
    }
}
