//! Scans of values that have places: elements are found by their coordinates, whoever holds them.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;
use std::collections::BTreeMap;

use super::super::reduce::Fold;
use super::super::scan::sum_up;
use super::super::tensor::{bits_of, data_of};
use super::fragment::Fragment;
use super::{Machine, PlacedWave, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{Dim, Layout, Place, Source};
use crate::ir::node::*;
use crate::ir::types::DType;

/// Coordinates along the dimensions that are not scanned.
type LineCoordinates = SmallVec<[u32; 4]>;

/// The elements of one line in the order of their coordinates: bits, and whether they are defined.
type ScannedLine = BTreeMap<u32, (u64, bool)>;

impl Machine<'_> {
    /// What wave `number` holds of a scan's result; `waves` are those whose elements can be seen.
    pub(super) fn scan(
        &self,
        node: Entity,
        scan: Scan,
        number: u32,
        waves: &[&PlacedWave],
    ) -> Result<Fragment, Diagnostic> {
        let operands = &self.get::<Operands>(node)?.0;
        let (&piece, before) = operands.split_first().ok_or_else(|| bug("a scan of nothing"))?;
        let own = self.layout(node);
        let dims: SmallVec<[Dim; 4]> = own.dims().into_iter().filter(|dim| *dim != scan.dim).collect();
        let (first, _) = self.replicas(node, &own);
        let goes_on = own.coordinate(scan.dim, Place { replica: first, ..Place::default() }) > 0;
        let mut lines: BTreeMap<LineCoordinates, ScannedLine> = BTreeMap::default();
        // Until a pass gives waves what others sum up to, they look at each other's elements.
        let looks = scan.by_wave.is_none()
            && own.of_source(Source::Wave).any(|mode| mode.dim == Some(scan.dim) && mode.extent > 1);
        for wave in waves.iter().filter(|wave| looks || wave.number == number) {
            self.note_line(piece, &own, scan.dim, &dims, wave, &mut lines)?;
        }
        let wave = waves.iter().find(|wave| wave.number == number).ok_or_else(|| bug("no such wave"))?;
        // What comes before the elements of this wave, of each operand.
        let mut preceding: SmallVec<[BTreeMap<LineCoordinates, ScannedLine>; 2]> = SmallVec::new();
        for &part in before {
            let along = if goes_on { scan.dim } else { scan.by_wave.unwrap_or(scan.dim) };
            // The pieces of what waves sum up to are one operand.
            if goes_on || preceding.is_empty() {
                preceding.push(BTreeMap::default());
            }
            if let Some(lines) = preceding.last_mut() {
                self.note_line(part, &self.layout(part), along, &dims, wave, lines)?;
            }
        }
        let part = self.wave_digit(&own, scan.dim, number);
        let dtype = self.get::<ValueType>(node)?.dtype.ok_or_else(|| bug("a value without dtype"))?;
        let mut summed: BTreeMap<LineCoordinates, ScannedLine> = BTreeMap::default();
        for (kept, line) in &lines {
            let mut before: Vec<(u64, bool)> = Vec::new();
            for lines in &preceding {
                let line = lines.get(kept).ok_or_else(|| bug("a scan that does not go on"))?;
                match goes_on {
                    true => before.extend(line.values().next_back()),
                    false => before.extend(line.range(..part).map(|element| element.1)),
                }
            }
            summed.insert(kept.clone(), sums_of_line(scan.op, dtype, before, line)?);
        }
        let mut result = self.empty(node, &own)?;
        for place in result.places(number) {
            let kept: LineCoordinates = dims.iter().map(|&dim| own.coordinate(dim, place)).collect();
            let along = own.coordinate(scan.dim, place);
            let element = summed.get(&kept).and_then(|line| line.get(&along));
            let &(bits, defined) = element.ok_or_else(|| bug("a scan of an element that is nowhere"))?;
            result.bits.push(bits);
            result.defined.push(defined);
        }
        Ok(result)
    }

    /// Notes the elements that a wave holds of a value, by their coordinates.
    fn note_line(
        &self,
        value: Entity,
        layout: &Layout,
        along: Dim,
        dims: &[Dim],
        wave: &PlacedWave,
        lines: &mut BTreeMap<LineCoordinates, ScannedLine>,
    ) -> Result<(), Diagnostic> {
        let fragment = self.value(value, wave)?;
        let all = fragment.places(wave.number);
        for (at, place) in all.enumerate() {
            let kept = dims.iter().map(|&dim| layout.coordinate(dim, place)).collect();
            let element = (fragment.bits[at], fragment.defined[at]);
            lines.entry(kept).or_default().insert(layout.coordinate(along, place), element);
        }
        Ok(())
    }

    /// The number of a wave along a dimension.
    fn wave_digit(&self, layout: &Layout, dim: Dim, number: u32) -> u32 {
        let mut rest = number;
        for mode in layout.of_source(Source::Wave) {
            if mode.dim == Some(dim) {
                return rest % mode.extent;
            }
            rest /= mode.extent;
        }
        0
    }
}

/// The sums of a line, whose first one starts from the elements before it.
fn sums_of_line(
    op: ScanOp,
    dtype: DType,
    before: Vec<(u64, bool)>,
    line: &ScannedLine,
) -> Result<ScannedLine, Diagnostic> {
    let skipped = before.len();
    let elements = before.into_iter().chain(line.values().copied());
    let (bits, are_defined): (Vec<u64>, Vec<bool>) = elements.unzip();
    let fold = Fold { outer: 1, extent: bits.len(), taken: bits.len(), inner: 1 };
    let sums = sum_up(op, &data_of(dtype, &bits), fold).map_err(Diagnostic::invalid)?;
    let mut defined = true;
    let flags = are_defined.into_iter().map(|is_defined| {
        let before = defined;
        defined &= is_defined;
        if op.is_exclusive() { before } else { defined }
    });
    let sums = bits_of(&sums).into_iter().zip(flags).skip(skipped);
    Ok(line.keys().copied().zip(sums).collect())
}
