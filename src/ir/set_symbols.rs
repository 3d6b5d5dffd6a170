//! Symbols that stand for values from one place in the program on, up to the end of the region around it.

use bevy_ecs::prelude::Entity;

use super::expr::Symbol;

/// The symbols of a kernel that were set so far.
#[derive(Default)]
pub(super) struct SetSymbols {
    /// Each with the number of regions around it. Those set later hide earlier ones.
    visible: Vec<(Symbol, Entity, usize)>,
    /// All symbols that were ever set.
    all: Vec<Symbol>,
    /// Symbols on which loops depend without a constraint that says so.
    counted: Vec<Symbol>,
}

impl SetSymbols {
    /// From now on `symbol` is `value`, inside of `regions` open regions.
    pub(super) fn set(&mut self, symbol: Symbol, value: Entity, regions: usize) {
        self.visible.push((symbol, value, regions));
        if !self.contains(symbol) {
            self.all.push(symbol);
        }
    }

    /// A region was closed, and so many are left.
    pub(super) fn close(&mut self, regions: usize) {
        while self.visible.pop_if(|set| set.2 > regions).is_some() {}
    }

    /// What a symbol stands for here.
    pub(super) fn get(&self, symbol: Symbol) -> Option<Entity> {
        self.visible.iter().rev().find(|set| set.0 == symbol).map(|set| set.1)
    }

    /// Loops depend on a symbol, though no constraint says so.
    pub(super) fn count(&mut self, symbol: Symbol) {
        self.counted.push(symbol);
    }

    /// True for symbols that [`SetSymbols::count`] was told of.
    pub(super) fn is_counted(&self, symbol: Symbol) -> bool {
        self.counted.contains(&symbol)
    }

    /// Whether a symbol was set anywhere before.
    pub(super) fn contains(&self, symbol: Symbol) -> bool {
        self.all.contains(&symbol)
    }
}
