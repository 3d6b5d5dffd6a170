//! Names of a kernel being parsed: what each stands for, and where it is visible.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::Entity;
use rustc_hash::FxHashMap;

use crate::ir::node::Origin;

/// What a name stands for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum NameMeaning {
    /// The result of a node.
    Value(Entity),
    /// A scalar argument: a value with a name like a memory's.
    Scalar(Entity),
    /// A memory, or an LDS buffer.
    Place(Entity),
    /// Something whose definition has a fault: its uses are not reported again.
    Unknown,
}

/// A name that was defined.
#[derive(Copy, Clone, Debug)]
pub(super) struct Definition {
    pub(super) meaning: NameMeaning,
    pub(super) origin: Origin,
    /// False after the end of the region around the definition.
    pub(super) visible: bool,
}

/// All names so far. Values are entered with their `%`.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: FxHashMap<&'a str, Definition>,
    /// Names of the open regions, innermost last.
    regions: Vec<Vec<&'a str>>,
}

impl<'a> Scopes<'a> {
    /// Opens a region.
    pub(super) fn open(&mut self) {
        self.regions.push(Vec::new());
    }

    /// Closes the innermost region: its names are no longer visible.
    pub(super) fn close(&mut self) {
        for name in self.regions.pop().unwrap_or_default() {
            if let Some(definition) = self.names.get_mut(name) {
                definition.visible = false;
            }
        }
    }

    /// The definition of this name, visible or not.
    pub(super) fn get(&self, name: &str) -> Option<Definition> {
        self.names.get(name).copied()
    }

    /// The names that are visible, in the order of their definitions.
    pub(super) fn visible(&self) -> impl Iterator<Item = &'a str> {
        self.regions.iter().flatten().copied()
    }

    /// Defines a name in the innermost region.
    ///
    /// # Errors
    /// The visible definition that already has the name.
    pub(super) fn define(
        &mut self,
        name: &'a str,
        meaning: NameMeaning,
        origin: Origin,
    ) -> Result<(), Definition> {
        if let Some(&first) = self.names.get(name).filter(|first| first.visible) {
            return Err(first);
        }
        self.names.insert(name, Definition { meaning, origin, visible: true });
        if let Some(region) = self.regions.last_mut() {
            region.push(name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_free_again_after_its_region() {
        let mut scopes = Scopes::default();
        let at = Origin(0);
        scopes.open();
        assert!(scopes.define("%x", NameMeaning::Unknown, at).is_ok());
        assert!(scopes.define("%x", NameMeaning::Unknown, at).is_err());
        scopes.close();
        assert!(!scopes.get("%x").unwrap().visible);
        assert!(scopes.define("%x", NameMeaning::Unknown, at).is_ok());
    }
}
