//! How the kernels of the backward pass read tensors and write them.

use super::super::choices::{Attention, AttentionLayout};
use super::super::head_parts::HeadPart;
use super::super::heads::AttentionDims;
use super::super::places::WorkgroupSequence;
use crate::prelude::*;

/// Rows of heads as a value has them.
#[derive(Clone)]
pub(super) struct RowsOfValue {
    /// Queries or keys.
    pub(super) rows: Symbol,
    /// The value's dimension of heads.
    pub(super) heads: Symbol,
    /// The head in memory, where it has another place than along that dimension.
    pub(super) head: Option<Coordinate>,
    /// The place of a row among those of all sequences, where these are packed.
    pub(super) row: Option<Coordinate>,
}

impl RowsOfValue {
    /// The rows that a workgroup has of a sequence.
    pub(super) fn own(sequence: WorkgroupSequence, rows: Symbol, heads: Symbol) -> RowsOfValue {
        let row = match sequence {
            WorkgroupSequence::Whole => None,
            WorkgroupSequence::Packed(part) => Some(part.own_place.into()),
        };
        RowsOfValue { rows, heads, head: None, row }
    }

    /// The rows of a tile of a loop.
    pub(super) fn walked(
        attention: &Attention,
        sequence: WorkgroupSequence,
        [rows, heads]: [Symbol; 2],
        head: Option<Coordinate>,
    ) -> RowsOfValue {
        let row = match sequence {
            WorkgroupSequence::Whole => None,
            WorkgroupSequence::Packed(part) => Some(part.walked_place(AttentionDims::of(attention.heads))),
        };
        RowsOfValue { rows, heads, head, row }
    }

    /// Reads parts of each head, or all of it. Reads with different tags stay apart, so that each may have a
    /// layout of its own.
    pub(super) fn read(
        &self,
        attention: &Attention,
        w: &Tracer,
        memory: MemoryRef,
        (parts, tag): (&[HeadPart], &str),
    ) -> Vec<Value> {
        let batch = AttentionDims::of(attention.heads).batch;
        let read = |part: &HeadPart| match self.place(attention, part) {
            None => w.read(memory),
            Some(place) => w.read_at(memory, place, [batch, self.heads, self.rows, part.dim]),
        };
        parts.iter().map(|part| read(part).tag(tag)).collect()
    }

    /// Writes a part of each head, or all of it.
    pub(super) fn write(
        &self,
        attention: &Attention,
        w: &Tracer,
        memory: MemoryRef,
        (value, part): (Value, &HeadPart),
    ) {
        match self.place(attention, part) {
            None => w.write(value, memory),
            Some(place) => w.write_at(value, memory, place),
        }
    }

    /// Reads a number of each row.
    pub(super) fn read_terms(&self, attention: &Attention, w: &Tracer, memory: MemoryRef) -> Value {
        let batch = AttentionDims::of(attention.heads).batch;
        let dims = [batch, self.heads, self.rows];
        let head = self.head.clone().unwrap_or(self.heads.into());
        match (&self.row, &self.head) {
            (Some(row), _) => w.read_at(memory, (head, row.clone()), dims),
            (None, Some(_)) => w.read_at(memory, (batch, head, self.rows), dims),
            (None, None) => w.read(memory),
        }
    }

    fn place(&self, attention: &Attention, part: &HeadPart) -> Option<Vec<Coordinate>> {
        let head = self.head.clone().unwrap_or(self.heads.into());
        let element = Coordinate::from(part.coordinate());
        match &self.row {
            Some(row) => Some(vec![row.clone(), head, element]),
            None if self.head.is_none() && part.place.is_none() => None,
            None => Some(attention.place([self.rows.into(), head, element]).to_vec()),
        }
    }
}

/// Of each row the exponent of two that is the sum of its powers, negated.
pub(super) fn minus_log_sum_exp(attention: &Attention, w: &Tracer, space: AddressSpace) -> MemoryRef {
    terms(attention, w, ("minus_log_sum_exp", space))
}

/// Of each row the sum of its output times the gradient of that, negated.
pub(super) fn minus_delta(attention: &Attention, w: &Tracer, space: AddressSpace) -> MemoryRef {
    terms(attention, w, ("minus_delta", space))
}

fn terms(attention: &Attention, w: &Tracer, (name, space): (&str, AddressSpace)) -> MemoryRef {
    let axes = AttentionDims::of(attention.heads);
    match attention.tensors.layout {
        AttentionLayout::Packed => w.memory(name, [axes.heads, Symbol::new("TOTAL_M")], space, F32),
        AttentionLayout::Bhsd | AttentionLayout::Bshd => w.memory(name, axes.rows(), space, F32),
    }
}
