//! The symbols of values without dimensions that masks compare places with, as the length of a sequence is
//! one.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::node::*;
use crate::passes::facts::Geometry;
use crate::passes::kernel_editor::KernelEditor;

/// The symbols of values.
pub(super) enum ValueSymbols {
    /// None is set yet: the values that should have one.
    Asked(SmallVec<[Entity; 2]>),
    /// Those that a kernel has set.
    Set(SmallVec<[(Entity, Symbol); 2]>),
}

impl ValueSymbols {
    /// Those that a kernel has set for its masks.
    ///
    /// # Errors
    /// Broken kernels.
    pub(super) fn of(editor: &KernelEditor<'_>) -> Result<ValueSymbols, Diagnostic> {
        let symbols = &editor.kernel::<Geometry>()?.mask_values;
        let mut set = SmallVec::new();
        if symbols.is_empty() {
            return Ok(ValueSymbols::Set(set));
        }
        for node in editor.nodes() {
            if let Op::SetSymbol(symbol) = editor.op(node)?
                && symbols.contains(&symbol)
            {
                set.push((editor.node(node)?.operand(0)?, symbol));
            }
        }
        Ok(ValueSymbols::Set(set))
    }

    /// The symbol of a value; while symbols are asked for, one that stands for it.
    pub(super) fn symbol(&mut self, value: Entity) -> Option<Symbol> {
        match self {
            ValueSymbols::Set(set) => set.iter().find(|set| set.0 == value).map(|set| set.1),
            ValueSymbols::Asked(values) => {
                if !values.contains(&value) {
                    values.push(value);
                }
                Some(Symbol::new("mask_value"))
            }
        }
    }

    /// How many values there are.
    pub(super) fn count(&self) -> usize {
        match self {
            ValueSymbols::Asked(values) => values.len(),
            ValueSymbols::Set(set) => set.len(),
        }
    }

    /// Forgets values that were asked for after the first so many.
    pub(super) fn forget(&mut self, count: usize) {
        if let ValueSymbols::Asked(values) = self {
            values.truncate(count);
        }
    }
}
