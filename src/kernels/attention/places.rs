//! Where a score is: the query and the key, and the sequence that they belong to.

use std::sync::Arc;

use super::biases::BiasShape;
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

/// A sequence among the tokens of all. A workgroup has some of its rows and walks along the others: queries
/// and keys, or the other way round.
#[derive(Copy, Clone)]
pub(super) struct PackedSequence {
    /// The place of each row of the workgroup among those of all sequences, and -1 beyond the last one.
    pub(super) own_place: Value,
    /// Where the rows that the loop walks along begin.
    pub(super) first_walked: Value,
    pub(super) walked: WalkedRows,
    pub(super) queries: Value,
    pub(super) keys: Value,
}

/// The rows that a loop walks along.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum WalkedRows {
    Keys,
    Queries,
}

impl PackedSequence {
    /// The place of each row of a tile of the loop. What the tile has beyond the last row of the sequence is
    /// that row.
    pub(super) fn walked_place(self, axes: AttentionDims) -> Coordinate {
        let (rows, count) = match self.walked {
            WalkedRows::Keys => (axes.keys, self.keys),
            WalkedRows::Queries => (axes.queries, self.queries),
        };
        Coordinate::from(self.first_walked) + Coordinate::from(rows).min(Coordinate::from(count) - 1)
    }
}

impl ScorePlace {
    /// What an author's function makes of scores that have the dimension of heads of queries, which the
    /// scores of one head of a loop lack.
    pub(super) fn with_heads(self, scores: Value, of: impl FnOnce(Value) -> Value) -> Value {
        let AttentionDims { batch, heads, queries, keys, kv_heads, .. } = self.axes;
        match self.heads {
            HeadsOfScores::Along => of(scores),
            HeadsOfScores::Walked(_) => {
                of(scores.broadcast([batch, kv_heads, heads, queries, keys])).sum(heads)
            }
        }
    }

    /// Which keys are seen, where an author says so with or without the dimension of heads of queries.
    pub(super) fn seen_with_heads(self, w: &Tracer, sees: Value) -> Value {
        let AttentionDims { batch, heads, queries, keys, kv_heads, .. } = self.axes;
        match self.heads {
            HeadsOfScores::Along => sees,
            HeadsOfScores::Walked(_) => {
                let one = w.register([batch, kv_heads, heads, queries, keys], F32, 1.0);
                w.select(sees, one, 0.0).sum(heads).greater(0.5)
            }
        }
    }
}

impl WorkgroupSequence {
    /// How many keys there are more than queries.
    pub(super) fn more_keys(self, w: &Tracer, axes: AttentionDims) -> Value {
        match self {
            WorkgroupSequence::Whole => w.size(axes.keys) - w.size(axes.queries),
            WorkgroupSequence::Packed(PackedSequence { queries, keys, .. }) => keys - queries,
        }
    }

    /// Whether the sequence has the row that the loop walks along, where it does not have all that the tile
    /// has.
    pub(super) fn has(self, query: Value, key: Value) -> Option<Value> {
        match self {
            WorkgroupSequence::Whole => None,
            WorkgroupSequence::Packed(part) => Some(match part.walked {
                WalkedRows::Keys => key.less(part.keys),
                WalkedRows::Queries => query.less(part.queries),
            }),
        }
    }
}

/// The heads of queries that scores belong to.
#[derive(Copy, Clone)]
pub(super) enum HeadsOfScores {
    /// Those along the dimension of heads, which scores have.
    Along,
    /// This one, whose number the loop around the scores says: they have the heads of keys instead.
    Walked(Value),
}

/// Where scores are.
#[derive(Copy, Clone)]
pub(super) struct ScorePlace {
    pub(super) heads: HeadsOfScores,
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

/// A function of scores that has been declared.
pub(super) struct ScoreStep {
    pub(super) function: ScoreFunction,
    /// Its derivative, as a function of what it is a function of; none where that is one, or not known.
    pub(super) derivative: Option<ScoreFunction>,
}

/// A function of scores that an author has chosen, by what is known of its derivative.
#[derive(Clone)]
pub(super) enum ScoreChoice {
    /// Nothing.
    Opaque(PreparedStep<ScoreFunction>),
    /// It is one: something is added that does not depend on the score.
    Shift(PreparedStep<ScoreFunction>),
    /// It is one: a bias of this shape is added.
    Bias(BiasShape, PreparedStep<ScoreFunction>),
    /// It comes with the function.
    Differentiable(PreparedStep<ScoreStep>),
}

impl ScoreChoice {
    /// Declares what it reads.
    pub(super) fn prepared(&self, w: &Tracer) -> ScoreStep {
        match self {
            ScoreChoice::Opaque(step) | ScoreChoice::Shift(step) | ScoreChoice::Bias(_, step) => {
                ScoreStep { function: step(w), derivative: None }
            }
            ScoreChoice::Differentiable(step) => step(w),
        }
    }
}

/// Which keys a query sees.
pub(super) type SeenKeys = Box<dyn Fn(&Tracer, ScorePlace) -> Value>;

/// Declares what a function of scores or a mask reads, before the loop, and gives the function.
pub(super) type PreparedStep<T> = Arc<dyn Fn(&Tracer) -> T + Send + Sync>;
