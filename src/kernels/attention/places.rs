//! Where a score is: the query and the key, and the sequence that they belong to.

use std::sync::Arc;

use super::heads::AttentionDims;
use crate::prelude::*;

/// The sequence of a workgroup.
#[derive(Copy, Clone)]
pub(super) enum WorkgroupSequence {
    /// Each is as long as the dimensions.
    Whole,
    /// A part of the tokens of all sequences.
    Packed(PackedSequence),
}

/// A sequence among the tokens of all.
#[derive(Copy, Clone)]
pub(super) struct PackedSequence {
    /// The place of each query among those of all sequences, and -1 beyond the last one.
    pub(super) query_place: Value,
    pub(super) queries: Value,
    /// Where its keys begin.
    pub(super) first_key: Value,
    pub(super) keys: Value,
}

impl WorkgroupSequence {
    /// How many keys there are more than queries.
    pub(super) fn more_keys(self, w: &Tracer, axes: AttentionDims) -> Value {
        match self {
            WorkgroupSequence::Whole => w.size(axes.keys) - w.size(axes.queries),
            WorkgroupSequence::Packed(PackedSequence { queries, keys, .. }) => keys - queries,
        }
    }

    /// Whether the sequence has a key, where it does not have all that the tile has.
    pub(super) fn has(self, key: Value) -> Option<Value> {
        match self {
            WorkgroupSequence::Whole => None,
            WorkgroupSequence::Packed(PackedSequence { keys, .. }) => Some(key.less(keys)),
        }
    }
}

/// Where scores are.
#[derive(Copy, Clone)]
pub(super) struct ScorePlace {
    /// The place of the query, along queries and keys.
    pub(super) query: Value,
    /// The place of the key.
    pub(super) key: Value,
    pub(super) axes: AttentionDims,
    /// The sequence, which has so many queries and keys.
    pub(super) sequence: WorkgroupSequence,
}

/// A function of scores.
pub(super) type ScoreFunction = Box<dyn Fn(&Tracer, Value, ScorePlace) -> Value>;

/// Which keys a query sees.
pub(super) type SeenKeys = Box<dyn Fn(&Tracer, ScorePlace) -> Value>;

/// Declares what a function of scores or a mask reads, before the loop, and gives the function.
pub(super) type PreparedStep<T> = Arc<dyn Fn(&Tracer) -> T + Send + Sync>;
