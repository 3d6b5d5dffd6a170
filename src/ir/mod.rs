//! What a kernel is: expressions, types and layouts (pure algebra), and above them nodes as entities, the
//! tracing builder, the text form, the verifier and the reference interpreter.

pub(crate) mod assemble;
pub mod builder;
pub mod constant;
pub mod constraint;
pub mod control;
pub mod diagnostic;
pub mod excerpt;
pub mod expr;
pub mod facts;
pub mod interpreter;
pub mod kernel;
pub mod layout;
pub mod node;
pub mod node_map;
pub mod nodes;
pub mod op;
pub mod schedule;
pub mod text;
pub mod types;
pub mod verifier;
pub mod walk;
