//! What a kernel is: expressions, types and layouts (pure algebra), and above them nodes as entities, the
//! tracing builder, the text form, the verifier and the reference interpreter.
//!
//! Without the compiler only what launches need: expressions, types and diagnostics.

#[cfg(feature = "compiler")]
pub(crate) mod access_flags;
#[cfg(feature = "compiler")]
mod along_dims;
#[cfg(feature = "compiler")]
pub(crate) mod assemble;
#[cfg(feature = "compiler")]
pub(crate) mod builder;
#[cfg(feature = "compiler")]
pub(crate) mod constant;
#[cfg(feature = "compiler")]
pub(crate) mod constraint;
#[cfg(feature = "compiler")]
pub(crate) mod control;
#[cfg(feature = "compiler")]
pub(crate) mod coordinates;
#[cfg(feature = "compiler")]
mod debug_log;
#[cfg(feature = "compiler")]
mod derived_expressions;
#[cfg(feature = "compiler")]
pub(crate) mod derived_reductions;
pub mod diagnostic;
pub mod excerpt;
pub(crate) mod expr;
#[cfg(feature = "compiler")]
pub(crate) mod facts;
pub(crate) mod grid_symbol;
#[cfg(feature = "compiler")]
pub mod interpreter;
#[cfg(feature = "compiler")]
pub(crate) mod kernel;
pub(crate) mod lanes;
#[cfg(feature = "compiler")]
pub(crate) mod layout;
#[cfg(feature = "compiler")]
pub(crate) mod mapped_access;
#[cfg(feature = "compiler")]
mod mapped_distribution;
#[cfg(feature = "compiler")]
pub(crate) mod mapping;
#[cfg(feature = "compiler")]
#[cfg(feature = "compiler")]
pub(crate) mod memory_layout;
#[cfg(feature = "compiler")]
pub(crate) mod node;
#[cfg(feature = "compiler")]
pub(crate) mod node_map;
#[cfg(feature = "compiler")]
pub(crate) mod nodes;
#[cfg(feature = "compiler")]
pub(crate) mod op;
#[cfg(feature = "compiler")]
mod operations_as_data;
#[cfg(feature = "compiler")]
pub(crate) mod packed_f4;
#[cfg(feature = "compiler")]
pub(crate) mod reasons;
#[cfg(feature = "compiler")]
pub(crate) mod reduced_dims;
#[cfg(feature = "compiler")]
mod regions;
#[cfg(feature = "compiler")]
mod scaled_product;
#[cfg(feature = "compiler")]
mod scatter_add;
#[cfg(feature = "compiler")]
pub mod schedule;
#[cfg(feature = "compiler")]
mod set_symbols;
#[cfg(feature = "compiler")]
pub(crate) mod task_lowering;
#[cfg(feature = "compiler")]
pub mod text;
#[cfg(feature = "compiler")]
pub(crate) mod type_rules;
pub(crate) mod types;
#[cfg(feature = "compiler")]
pub(crate) mod verifier;
#[cfg(feature = "compiler")]
pub mod walk;
