//! Rotary position embedding of queries and keys as they are read.

use super::choices::Attention;
use super::heads::AttentionDims;
use super::places::WorkgroupSequence;
use crate::prelude::*;

/// The tables of angles by position, if queries and keys are turned.
#[derive(Copy, Clone)]
pub(super) struct Rotary {
    tables: Option<[MemoryRef; 2]>,
    pairs: Symbol,
    dtype: DType,
}

impl Rotary {
    /// Declares the tables.
    pub(super) fn of(attention: &Attention, w: &Tracer) -> Rotary {
        let [positions, pairs] = symbols(["POSITIONS", "PAIRS"]);
        let tables = attention
            .rotary
            .map(|_| ["cos", "sin"].map(|name| w.memory(name, [positions, pairs], Global, F32)));
        Rotary { tables, pairs, dtype: attention.tensors.inputs }
    }

    /// Queries, turned by the angles of their places among the keys.
    pub(super) fn queries(
        self,
        w: &Tracer,
        parts: Vec<Value>,
        sequence: WorkgroupSequence,
        axes: AttentionDims,
    ) -> Vec<Value> {
        let position = || w.self_index(axes.queries) + sequence.more_keys(w, axes);
        self.turned(w, parts, |w, table| {
            w.read_at(table, (position(), self.pairs), [axes.queries, self.pairs])
        })
    }

    /// Keys, turned by the angles of their places.
    pub(super) fn keys(self, w: &Tracer, parts: Vec<Value>, axes: AttentionDims) -> Vec<Value> {
        self.turned(w, parts, |w, table| w.read_at(table, (axes.keys, self.pairs), [axes.keys, self.pairs]))
    }

    fn turned(
        self,
        w: &Tracer,
        parts: Vec<Value>,
        angles: impl Fn(&Tracer, MemoryRef) -> Value,
    ) -> Vec<Value> {
        let (Some(tables), &[one, other]) = (self.tables, &parts[..]) else { return parts };
        let [cos, sin] = tables.map(|table| angles(w, table).tag("read_angles"));
        let dtype = self.dtype;
        let (one, other) = (one.cast(F32), other.cast(F32));
        vec![(one * cos - other * sin).cast(dtype), (other * cos + one * sin).cast(dtype)]
    }
}
