//! Values in other registers and lanes: every place of the result holds the element with its coordinates,
//! which has to be somewhere in the same wave.

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::fragment::Fragment;
use super::{Machine, PlacedWave, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Operands;

impl Machine<'_> {
    pub(super) fn rearrange(&self, node: Entity, wave: &PlacedWave) -> Result<Fragment, Diagnostic> {
        let pieces = &self.get::<Operands>(node)?.0;
        let from = self.layout(*pieces.first().ok_or_else(|| bug("nothing is rearranged"))?);
        let own = self.layout(node);
        let dims = own.dims();
        let mut found: FxHashMap<SmallVec<[u32; 4]>, (u64, bool)> = FxHashMap::default();
        for &piece in pieces {
            let fragment = self.value(piece, wave)?;
            let all = fragment.places(wave.number);
            for (at, place) in all.enumerate() {
                let coordinates = dims.iter().map(|&dim| from.coordinate(dim, place)).collect();
                found.insert(coordinates, (fragment.bits[at], fragment.defined[at]));
            }
        }
        let mut result = self.empty(node, &own)?;
        for place in result.places(wave.number) {
            let coordinates: SmallVec<[u32; 4]> =
                dims.iter().map(|&dim| own.coordinate(dim, place)).collect();
            let (bits, defined) =
                *found.get(&coordinates).ok_or_else(|| bug("an element of another wave"))?;
            result.bits.push(bits);
            result.defined.push(defined);
        }
        Ok(result)
    }
}
