//! Flags of reads and writes: what an author wants of the caches and of the passes.
//!
//! They come from the reference to a memory by which the access is made, follow the access of global memory
//! (`promote_to_lds` and `load_to_lds` hand them on) and become cache bits in lowering. A volatile access is
//! an effect for simplification and is not promoted, and its loop is not pipelined.

use bevy_ecs::prelude::*;

/// How an access of global memory is made. Of an access that says nothing there is no such component.
#[derive(Component, Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct MemoryAccessFlags {
    /// It is made as often as it is written, in the order of all such accesses, and goes to what the whole
    /// system sees.
    pub volatile: bool,
    /// Nobody will want the data again soon, so caches need not keep them.
    pub non_temporal: bool,
}

/// A word of the text, and what it sets.
type FlagWord = (&'static str, fn(&mut MemoryAccessFlags));

impl MemoryAccessFlags {
    /// All words.
    const WORDS: [FlagWord; 2] =
        [("volatile", |flags| flags.volatile = true), ("non_temporal", |flags| flags.non_temporal = true)];

    /// Whether it says anything.
    pub(crate) fn is_empty(self) -> bool {
        self == MemoryAccessFlags::default()
    }

    /// Sets what a word says; false if it is none.
    pub(crate) fn set(&mut self, word: &str) -> bool {
        let known = MemoryAccessFlags::WORDS.iter().find(|known| known.0 == word);
        known.map(|known| known.1(self)).is_some()
    }

    /// The words for what is set.
    pub(crate) fn words(self) -> impl Iterator<Item = &'static str> {
        let is_set = move |&(_, set): &FlagWord| {
            let mut more = self;
            set(&mut more);
            more == self
        };
        MemoryAccessFlags::WORDS.into_iter().filter(is_set).map(|known| known.0)
    }
}
