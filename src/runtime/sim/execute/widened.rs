//! Widened sources of matrix instructions, kept for reuse.

use super::super::wave::{LANES, VectorRow};
use super::host;
use super::widen::{ElementOrder, SourceFormat};

/// Widened sources by first register.
#[derive(Debug, Default)]
pub(in super::super) struct WidenedCache(Vec<Option<WidenedSource>>);

/// A widened source and the bits that it was widened from.
#[derive(Debug)]
struct WidenedSource {
    kind: (SourceFormat, ElementOrder),
    source: Vec<VectorRow>,
    wide: Vec<VectorRow>,
}

impl WidenedCache {
    /// Widened source in the `registers` rows from `row` on: element e of every lane in row e, as bits. It is
    /// widened on the first call for a row and whenever its bits have changed.
    pub(super) fn get(
        &mut self,
        rows: &[VectorRow],
        row: usize,
        registers: usize,
        format: SourceFormat,
        order: ElementOrder,
    ) -> &[VectorRow] {
        if self.0.len() <= row {
            self.0.resize_with(row + 1, || None);
        }
        let source = &rows[row..row + registers];
        let kind = (format, order);
        let entry =
            self.0[row].get_or_insert_with(|| WidenedSource { kind, source: Vec::new(), wide: Vec::new() });
        if entry.kind != kind || entry.source != *source {
            entry.kind = kind;
            entry.source.clear();
            entry.source.extend_from_slice(source);
            entry.wide.resize(registers * 32 / format.bits(), [0; LANES]);
            host::widen(format, source, &mut entry.wide);
            if let ElementOrder::HalvesJoined(m) = order {
                entry.wide = join_halves(&entry.wide, m);
            }
        }
        &entry.wide
    }
}

/// Elements with consecutive k from elements in two halves.
fn join_halves(halves: &[VectorRow], m: usize) -> Vec<VectorRow> {
    const PART: usize = 16;
    let (groups, mut joined) = (LANES / m, vec![[0; LANES]; halves.len()]);
    for group in 0..groups {
        for (e, row) in joined.iter_mut().enumerate() {
            let k = halves.len() * group + e;
            let (half, within) = (k / (PART * groups), k % (PART * groups));
            let from = &halves[PART * half + within % PART];
            let lane = within / PART * m;
            row[group * m..][..m].copy_from_slice(&from[lane..lane + m]);
        }
    }
    joined
}
