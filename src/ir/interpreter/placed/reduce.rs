//! Reductions of values that have places: elements are found by their coordinates, whoever holds them. Those
//! beyond the end of the dimension take no part, as in the kernel that its author wrote, until a pass has put
//! others in their place.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

use super::super::reduce::{Fold, reduce};
use super::super::tensor::{bits_of, data_of};
use super::fragment::Fragment;
use super::{Machine, PlacedWave, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::FoldsMasked;
use crate::ir::layout::Place;
use crate::ir::node::*;

/// Coordinates along the dimensions that a reduction keeps, and the part if it keeps parts.
type Kept = SmallVec<[u32; 4]>;

impl Machine<'_> {
    /// What wave `number` holds of a reduction's result; `waves` are those whose elements can be seen.
    pub(super) fn reduce(
        &self,
        node: Entity,
        reduction: Reduction,
        number: u32,
        waves: &[&PlacedWave],
        (frame, group): (usize, &RunningGroup),
    ) -> Result<Fragment, Diagnostic> {
        let pieces = &self.get::<Operands>(node)?.0;
        let from = self.layout(*pieces.first().ok_or_else(|| bug("a reduction of nothing"))?);
        let own = self.layout(node);
        let dims: SmallVec<[_; 4]> =
            own.dims().into_iter().filter(|dim| Some(*dim) != reduction.parts).collect();
        // Parts are those of lanes and waves, so the place of an element says whose it is.
        let part = |place: Place| reduction.parts.map(|parts| own.coordinate(parts, place));
        let first = self.first_element(reduction.dim, &self.frames[frame], self.iteration_of(node), group)?;
        let end = match self.world.get::<FoldsMasked>(self.root) {
            Some(_) => i64::MAX,
            None => self.size(reduction.dim)? as i64 - first,
        };
        let mut found: FxHashMap<Kept, BTreeMap<u32, (u64, bool)>> = FxHashMap::default();
        for wave in waves.iter().filter(|wave| reduction.parts.is_none() || wave.number == number) {
            for &piece in pieces {
                let fragment = self.value(piece, wave)?;
                let all = fragment.places(wave.number);
                for (at, place) in all.enumerate() {
                    let along = from.coordinate(reduction.dim, place);
                    if i64::from(along) >= end {
                        continue;
                    }
                    let kept =
                        dims.iter().map(|&dim| from.coordinate(dim, place)).chain(part(place)).collect();
                    let element = (fragment.bits[at], fragment.defined[at]);
                    found.entry(kept).or_default().insert(along, element);
                }
            }
        }
        let mut result = self.empty(node, &own)?;
        for place in result.places(number) {
            let kept: Kept = dims.iter().map(|&dim| own.coordinate(dim, place)).chain(part(place)).collect();
            // A wave whose part lies outside folds nothing.
            let elements = found.entry(kept).or_default();
            let bits: Vec<u64> = elements.values().map(|element| element.0).collect();
            let fold = Fold { outer: 1, extent: bits.len(), taken: bits.len(), inner: 1 };
            let folded = reduce(reduction.op, &data_of(result.dtype, &bits), fold);
            result.bits.extend(bits_of(&folded.map_err(Diagnostic::invalid)?));
            result.defined.push(elements.values().all(|element| element.1));
        }
        Ok(result)
    }
}
