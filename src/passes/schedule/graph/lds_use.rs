//! What LDS holds at each position of a kernel. Buffers of different loops share memory
//! (`passes/lds/allocate_lds.rs`), so a loop has what those that lie before and after it leave when they end.

use bevy_ecs::prelude::*;

use crate::passes::lds::lds_lifetimes::LdsLifetimes;

/// Bytes of LDS in use at each position, with innermost loops as they are written: what rebuilding one puts
/// before and after it belongs to its position.
#[derive(Debug)]
pub(crate) struct LdsUse {
    lifetimes: LdsLifetimes,
    /// Bytes of the buffers that live there, with their copies.
    bytes: Vec<u64>,
}

impl LdsUse {
    /// That of buffers without a size, which [`LdsUse::resize`] gives them.
    pub(super) fn of(lifetimes: LdsLifetimes) -> LdsUse {
        let bytes = vec![0; lifetimes.positions as usize];
        LdsUse { lifetimes, bytes }
    }

    /// The buffers that are accessed somewhere.
    pub(super) fn buffers(&self) -> Vec<Entity> {
        self.lifetimes.spans.iter().map(|(buffer, _)| buffer).collect()
    }

    /// A buffer takes other bytes from now on.
    pub(crate) fn resize(&mut self, buffer: Entity, [before, after]: [u32; 2]) {
        for &[first, last] in self.lifetimes.spans.get(buffer).into_iter().flatten() {
            for bytes in &mut self.bytes[first as usize..=last as usize] {
                *bytes = bytes.saturating_sub(before.into()) + u64::from(after);
            }
        }
    }

    /// The most bytes in use at a position where one of these buffers lives, if they took others: each with
    /// the bytes that it takes and those that it would take.
    pub(crate) fn around(&self, resized: &[(Entity, [u32; 2])]) -> u64 {
        let spans = |buffer| self.lifetimes.spans.get(buffer).into_iter().flatten();
        let lives = |buffer, at: u32| spans(buffer).any(|&[first, last]| first <= at && at <= last);
        let bytes = |at: u32| {
            let here = resized.iter().filter(|&&(buffer, _)| lives(buffer, at));
            here.fold(self.bytes[at as usize], |bytes, &(_, [before, after])| {
                bytes.saturating_sub(before.into()) + u64::from(after)
            })
        };
        let positions = resized.iter().flat_map(|&(buffer, _)| spans(buffer)).flat_map(|&[f, l]| f..=l);
        positions.map(bytes).max().unwrap_or(0)
    }
}
