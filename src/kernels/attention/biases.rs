//! Shapes of biases.

use super::heads::AttentionDims;
use crate::prelude::*;

/// What a bias is broadcast over.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum BiasShape {
    /// `[B, H, M, N]`: each head of each sequence has its own.
    #[default]
    Own,
    /// `[H, M, N]`: all sequences have that of the head.
    OfHeads,
    /// `[B, M, N]`: all heads have that of the sequence.
    OfSequences,
    /// `[M, N]`: there is one.
    One,
}

impl BiasShape {
    /// Declares a memory of this shape.
    pub(super) fn declared(self, w: &Tracer, axes: AttentionDims, (name, dtype): (&str, DType)) -> MemoryRef {
        let AttentionDims { batch, heads, queries, keys, .. } = axes;
        match self {
            BiasShape::Own => w.memory(name, [batch, heads, queries, keys], Global, dtype),
            BiasShape::OfHeads => w.memory(name, [heads, queries, keys], Global, dtype),
            BiasShape::OfSequences => w.memory(name, [batch, queries, keys], Global, dtype),
            BiasShape::One => w.memory(name, [queries, keys], Global, dtype),
        }
    }
}
