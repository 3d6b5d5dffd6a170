//! What a kernel is: expressions, types and layouts (pure algebra), and above them nodes as entities, the
//! tracing builder, the text form, the verifier and the reference interpreter.

pub(crate) mod access_flags;
mod along_dims;
pub(crate) mod assemble;
pub(crate) mod builder;
pub(crate) mod constant;
pub(crate) mod constraint;
pub(crate) mod control;
pub(crate) mod coordinates;
mod debug_log;
mod derived_expressions;
pub(crate) mod derived_reductions;
pub mod diagnostic;
pub mod excerpt;
pub(crate) mod expr;
pub(crate) mod facts;
pub mod interpreter;
pub(crate) mod kernel;
pub(crate) mod layout;
pub(crate) mod mapped_access;
pub(crate) mod mapping;
pub(crate) mod memory_layout;
pub(crate) mod node;
pub(crate) mod node_map;
pub(crate) mod nodes;
pub(crate) mod op;
pub(crate) mod packed_f4;
pub(crate) mod reduced_dims;
mod regions;
mod scaled_product;
mod scatter_add;
pub mod schedule;
mod set_symbols;
pub mod text;
pub(crate) mod types;
pub(crate) mod verifier;
pub mod walk;
