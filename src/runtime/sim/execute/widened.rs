//! Widened sources of matrix instructions, kept for reuse.

use super::super::wave::{LANES, Row};
use super::host;
use super::widen::{Format, Order};

/// Widened sources by first register.
#[derive(Debug, Default)]
pub(in super::super) struct Cache(Vec<Option<Entry>>);

/// A widened source and the bits that it was widened from.
#[derive(Debug)]
struct Entry {
    kind: (Format, Order),
    source: Vec<Row>,
    wide: Vec<Row>,
}

impl Cache {
    /// Widened source in the `registers` rows from `row` on: element e of every lane in row e, as bits. It is
    /// widened on the first call for a row and whenever its bits have changed.
    pub(super) fn get(
        &mut self,
        rows: &[Row],
        row: usize,
        registers: usize,
        format: Format,
        order: Order,
    ) -> &[Row] {
        if self.0.len() <= row {
            self.0.resize_with(row + 1, || None);
        }
        let source = &rows[row..row + registers];
        let kind = (format, order);
        let entry = self.0[row].get_or_insert_with(|| Entry { kind, source: Vec::new(), wide: Vec::new() });
        if entry.kind != kind || entry.source != *source {
            entry.kind = kind;
            entry.source.clear();
            entry.source.extend_from_slice(source);
            entry.wide.resize(registers * 32 / format.bits(), [0; LANES]);
            host::widen(format, source, &mut entry.wide);
            if let Order::HalvesJoined(m) = order {
                entry.wide = join_halves(&entry.wide, m);
            }
        }
        &entry.wide
    }
}

/// Elements with consecutive k from elements in two halves.
fn join_halves(halves: &[Row], m: usize) -> Vec<Row> {
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
