//! What LDS holds at each place of a kernel. Buffers of different loops share memory
//! (`passes/allocate_lds.rs`), so a loop has what those that lie before and after it leave when they end.

use bevy_ecs::prelude::*;

use crate::ir::node_map::NodeMap;

/// Bytes of LDS in use at each place: a place is a node of the kernel's body that accesses LDS, with all that
/// stands in it. What rebuilding a loop puts before and after it belongs to its place.
#[derive(Debug)]
pub(crate) struct LdsUse {
    /// First and last place of each buffer.
    lives: NodeMap<[usize; 2]>,
    /// Bytes of the buffers that live there, with their copies.
    bytes: Vec<u64>,
}

impl LdsUse {
    /// A kernel's, place by place.
    pub(super) fn new() -> LdsUse {
        LdsUse { lives: NodeMap::default(), bytes: Vec::new() }
    }

    /// The next place is one where these buffers are accessed. A place without any is none.
    pub(super) fn add(&mut self, accessed: &[Entity]) {
        let place = self.bytes.len();
        for &buffer in accessed {
            match self.lives.get_mut(buffer) {
                Some([_, last]) => *last = place,
                None => self.lives.insert(buffer, [place; 2]),
            }
        }
        if !accessed.is_empty() {
            self.bytes.push(0);
        }
    }

    /// The buffers that are accessed somewhere.
    pub(super) fn buffers(&self) -> Vec<Entity> {
        self.lives.iter().map(|(buffer, _)| buffer).collect()
    }

    /// A buffer takes other bytes from now on.
    pub(crate) fn resize(&mut self, buffer: Entity, [before, after]: [u32; 2]) {
        if let Some(&[first, last]) = self.lives.get(buffer) {
            for bytes in &mut self.bytes[first..=last] {
                *bytes = bytes.saturating_sub(before.into()) + u64::from(after);
            }
        }
    }

    /// The most bytes in use at a place where one of these buffers lives, if they took others: each with the
    /// bytes that it takes and those that it would take.
    pub(crate) fn around(&self, resized: &[(Entity, [u32; 2])]) -> u64 {
        let lives = |&(buffer, _): &(Entity, _)| self.lives.get(buffer).copied();
        let at = |place: usize| {
            let here = resized.iter().filter(|one| lives(one).is_some_and(|[f, l]| f <= place && place <= l));
            here.fold(self.bytes[place], |bytes, &(_, [before, after])| {
                bytes.saturating_sub(before.into()) + u64::from(after)
            })
        };
        let places =
            resized.iter().filter_map(lives).reduce(|[f, l], [first, last]| [f.min(first), l.max(last)]);
        places.map_or(0, |[first, last]| (first..=last).map(at).max().unwrap_or(0))
    }
}
