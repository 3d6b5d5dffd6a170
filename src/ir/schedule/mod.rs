//! An author's schedule as data: a straight list of operations over tags and numbered values, which knows no kernel.
//!
//! It is traced from a closure ([`WaveSchedule::trace`]) or read from a `schedule` block ([`WaveSchedule::parse`]; the grammar is in
//! [`text::schedule`](super::text::schedule)). Nothing is looked up when it is written, so one schedule fits every kernel that has its
//! tags; mistakes that need no kernel are found all the same. Compiling a kernel walks [`WaveSchedule::operations`].
//!
//! A pipelined loop of two stages: while the matrix instructions of one iteration run, the tiles of the next are on their way.
//! ```
//! use groundswell::prelude::*;
//!
//! let [m, n, k] = symbols(["M", "N", "K"]);
//! let gemm_prefetch = Kernel::trace("gemm_prefetch", |w| {
//!     w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1), tile(k, 32), wave(m, 32), wave(n, 32)]);
//!     w.mma_type(Mma::F32_16x16x16_F16);
//!     let a = w.memory("a", [m, k], Shared, F16);
//!     let b = w.memory("b", [n, k], Shared, F16);
//!     let c = w.memory("c", [m, n], Global, F32);
//!     let c_reg = w.register([m, n], F32, 0.0);
//!     let [repeat] = w.iterate(k, [c_reg], |w, [acc]| {
//!         let a_reg = w.read(a).tag("read_a");
//!         let b_reg = w.read(b).tag("read_b");
//!         [w.mma(a_reg, b_reg, acc).tag("mma")]
//!     });
//!     repeat.tag_loop("k_loop");
//!     w.write(repeat, c);
//! })?;
//!
//! let prefetch_schedule = WaveSchedule::trace("prefetch", |s| {
//!     // Nodes to be manipulated in the schedule.
//!     let k_loop = s.get_node_by_tag("k_loop");
//!     let load_a = s.get_node_by_tag_and_type("read_a", NodeType::Read);
//!     let (global_load_a, shared_load_a) = s.partition_by_address_space(load_a, Global);
//!     let shared_write_a = s.get_node_by_tag_and_type("read_a", NodeType::Write);
//!     let load_b = s.get_node_by_tag_and_type("read_b", NodeType::Read);
//!     let (global_load_b, shared_load_b) = s.partition_by_address_space(load_b, Global);
//!     let shared_write_b = s.get_node_by_tag_and_type("read_b", NodeType::Write);
//!     let mma = s.get_node_by_tag("mma");
//!
//!     // A pipeline with two stages; two tuples each make an initiation interval of two.
//!     s.pipeline(k_loop, |pipelined_loop| {
//!         pipelined_loop.set_stage([
//!             (global_load_a, global_load_b),
//!             (shared_write_a, shared_write_b),
//!         ]);
//!         pipelined_loop.set_stage((
//!             (shared_load_a, shared_load_b),
//!             (mma,),
//!         ));
//!     });
//! })?;
//!
//! // The same, written as text behind the kernel.
//! let text = format!("{gemm_prefetch}\n{prefetch_schedule}");
//! let (kernel, schedule) = groundswell::ir::text::parse_file(&text, "gemm.gsw").unwrap();
//! assert_eq!(kernel.identity(), gemm_prefetch.identity());
//! assert_eq!(schedule, Some(prefetch_schedule));
//! # Ok::<(), Diagnostic>(())
//! ```

mod builder;
mod handles;
mod node_type;
mod operations;
mod recorder;
mod rules;
#[cfg(test)]
mod tests;

pub use builder::{PipelineTracer, ScheduleTracer};
pub use handles::{Cluster, Entry, Interleave, Listed, Nodes, PipelineStage, PipelinedLoop, Slots, Target};
pub use node_type::NodeType;
pub use operations::{
    Directive, Group, Item, Operation, Pipeline, Place, Scheduled, Stage, ValueId, ValueKind, WaveSchedule,
};
pub(in crate::ir) use recorder::Recorder;
