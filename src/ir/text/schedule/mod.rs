//! The text form of schedules: a `schedule` block, in a file of its own or after the kernel that it is for
//! ([`parse_file`](super::parse_file)).
//!
//! ```text
//! schedule prefetch {
//!   k_loop = get_node_by_tag "k_loop"
//!   load_a = get_node_by_tag_and_type "read_a" read
//!   global_load_a, shared_load_a = partition_by_address_space load_a global
//!   shared_write_a = get_node_by_tag_and_type "read_a" write
//!   load_b = get_node_by_tag_and_type "read_b" read
//!   global_load_b, shared_load_b = partition_by_address_space load_b global
//!   shared_write_b = get_node_by_tag_and_type "read_b" write
//!   mma = get_node_by_tag "mma"
//!   loop = pipeline k_loop {
//!     set_stage (global_load_a, global_load_b) (shared_write_a, shared_write_b)
//!     set_stage (shared_load_a, shared_load_b) (mma)
//!   }
//!   insert_at_start loop.kernel set_wave_priority 1
//! }
//! ```
//!
//! # Grammar
//! Statements and notation are those of [kernels](super).
//!
//! ```text
//! schedule   = "schedule" name "{" {statement} "}"
//! statement  = [result {"," result} "="] operation
//! operation  = "get_node_by_tag" quoted
//!            | "get_node_by_tag_and_type" quoted type
//!            | "get_node_by_tag_and_iteration" quoted integer
//!            | "partition_by_address_space" list space            two results: those in it, the others
//!            | "partition_by_dim" list symbol integer             as many results
//!            | "filter_nodes" list ["stage" part] ["type" type]
//!            | "getitem" list integer
//!            | "pipeline" list "{" {stage} "}"
//!            | "cluster" "[" item {"," item} "]"
//!            | "reorder_graph" place "[" list {"," list} "]"      lists or clusters
//!            | ("insert_before" | "insert_after" | "insert_at_start" | "insert_at_end") place directive
//!            | ("insert_cond_barrier_before" | "insert_cond_barrier_after") condition place
//!            | "stagger" place
//!            | "interleave_ops" lists "[" [group {"," group}] "]"
//!            | "unroll" place integer
//!            | "schedule_loop" list name                          a loop, a word of `--schedule`
//!            | "tag_nodes" quoted "[" quoted {"," quoted} "]"     a tag, "loop.0" or "loop.0.mma.7"
//!            | "load_to_lds"
//! stage      = "set_stage" {tuple} | "eliminate_epilogue" | "multi_buffer_count" integer
//! tuple      = "(" [list {"," list}] ")"
//! lists      = list | tuple                                       several lists, taken as one
//! group      = lists ["interval" integer] ["start_offset" integer]
//!              ["start_after_groups" "[" [integer {"," integer}] "]"]
//! item       = list | directive                                   a list or a cluster
//! place      = list | part                                        a loop, a node
//! part       = name "." ("prologue" | "kernel" | "epilogue")      of a pipeline
//! directive  = "barrier" | control
//! control    = "workgroup_barrier" | "conditional_barrier" condition | "set_wave_priority" integer
//!            | "scheduling_barrier" | "interleave_by_cost" | "skip_unit_factors"
//!            | ("wait_for_loads" | "wait_for_shared") integer
//! condition  = predicate (integer | "waves" ["/" integer])        of a wave's number
//! type       = "read" | "write" | "mma" | "iterate" | "register" | "compare" | "select" | "cast" | unary
//!            | binary
//! list       = name
//! result     = name | "_"                                         "_": nothing uses it
//! ```
//!
//! All operations define lists of nodes, except `cluster`, which defines a cluster, and `pipeline`, whose one
//! name is that of its three parts and may be left out; those from `reorder_graph` on define nothing, except
//! `interleave_ops`. A name is defined once, above its uses. What each operation does is documented at
//! [`Operation`](crate::ir::schedule::Operation). The names of values are kept; they make no difference
//! between schedules.

mod lists;
mod names;
mod parse;
mod parser;
mod print;
#[cfg(test)]
mod tests;

pub(in crate::ir) use names::{Names, value_names};
pub(super) use parse::parse;
pub(in crate::ir) use print::print;

use super::cursor::{Cursor, TextFaults};
use super::lex::Token;
use crate::ir::diagnostic::Diagnostics;
use crate::ir::schedule::WaveSchedule;

/// Words of the text form that cannot name a value.
const RESERVED: &[&str] = &["_", "barrier"];

/// Operations and how many results they have.
const OPERATIONS: &[(&str, Arity)] = &[
    ("get_node_by_tag", Arity::Exactly(1)),
    ("get_node_by_tag_and_type", Arity::Exactly(1)),
    ("get_node_by_tag_and_iteration", Arity::Exactly(1)),
    ("partition_by_address_space", Arity::Exactly(2)),
    ("partition_by_dim", Arity::Parts),
    ("filter_nodes", Arity::Exactly(1)),
    ("getitem", Arity::Exactly(1)),
    ("pipeline", Arity::Pipeline),
    ("cluster", Arity::Exactly(1)),
    ("reorder_graph", Arity::Exactly(0)),
    ("insert_before", Arity::Exactly(0)),
    ("insert_after", Arity::Exactly(0)),
    ("insert_at_start", Arity::Exactly(0)),
    ("insert_at_end", Arity::Exactly(0)),
    ("insert_cond_barrier_before", Arity::Exactly(0)),
    ("insert_cond_barrier_after", Arity::Exactly(0)),
    ("stagger", Arity::Exactly(0)),
    ("interleave_ops", Arity::Exactly(1)),
    ("unroll", Arity::Exactly(0)),
    ("schedule_loop", Arity::Exactly(0)),
    ("tag_nodes", Arity::Exactly(0)),
    ("load_to_lds", Arity::Exactly(0)),
];

/// Statements inside a pipeline.
const PIPELINE: &[&str] = &["set_stage", "eliminate_epilogue", "multi_buffer_count"];

/// Parts of a pipeline in the order of their values.
const PARTS: [&str; 3] = ["prologue", "kernel", "epilogue"];

/// How many names stand before an operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Arity {
    /// This many.
    Exactly(usize),
    /// As many as its operand says.
    Parts,
    /// One for all results, or none.
    Pipeline,
}

impl WaveSchedule {
    /// Reads the text form. `file` is the name that diagnostics give the text.
    ///
    /// # Errors
    /// All mistakes found, in the order of the text, each with its line (at most twenty).
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let text = "schedule unrolled {\n  k_loop = get_node_by_tag \"k_loop\"\n  unroll k_loop 2\n}\n";
    /// assert_eq!(WaveSchedule::parse(text, "s.gsw").unwrap().to_string(), text);
    /// let misspelt = text.replace("unroll k_loop", "unrol k_loop");
    /// let faults = WaveSchedule::parse(&misspelt, "s.gsw").unwrap_err();
    /// assert_eq!(
    ///     faults[0].to_string(),
    ///     "error: there is no operation `unrol`\n  --> s.gsw:3:3\n  help: did you mean `unroll`?"
    /// );
    /// ```
    pub fn parse(text: &str, file: &str) -> Result<WaveSchedule, Diagnostics> {
        let mut cursor = Cursor::new(text, file);
        let mut faults = TextFaults::default();
        cursor.skip_newlines();
        let read = parse(&mut cursor, &mut faults).and_then(|schedule| {
            cursor.skip_newlines();
            if faults.0.is_empty() && *cursor.peek() != Token::End {
                return Err(cursor.expected("the end of the text").help("a text holds one schedule"));
            }
            Ok(schedule)
        });
        match read {
            Ok(Some(schedule)) if faults.0.is_empty() => Ok(schedule),
            Ok(_) => Err(Diagnostics::of_text(faults.0, file, text)),
            Err(fault) => {
                faults.add(fault, &mut cursor);
                Err(Diagnostics::of_text(faults.0, file, text))
            }
        }
    }
}
