//! What a wave holds of a node: the layout of its elements, its replicas, and the value as others see it.

use std::rc::Rc;

use bevy_ecs::prelude::*;

use super::fragment::{Fragment, index_of, places};
use super::{LANES, Machine, PlacedWave, bug};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::facts::Expansion;
use crate::ir::layout::{Dim, Layout, Mode, Place, Source};
use crate::ir::node::*;

impl<'a> Machine<'a> {
    /// The logical node that a node is a piece of; the node itself before expansion.
    pub(super) fn logical(&self, node: Entity) -> Entity {
        self.world.get::<Expansion>(node).map_or(node, |expansion| expansion.logical)
    }

    /// A fact about an access: about the logical node, if it is a piece of one.
    pub(super) fn fact<C: Component>(&self, node: Entity) -> Option<&'a C> {
        self.world.get::<C>(self.logical(node))
    }

    /// Which element each place of a node holds.
    pub(super) fn layout(&self, node: Entity) -> Layout {
        match self.fact::<Placement>(node) {
            Some(placement) => placement.0.clone(),
            None => self.whole_tile(node).unwrap_or_default(),
        }
    }

    /// The layout of a value that no pass has distributed yet, such as loads of tiles for LDS: each wave has
    /// the workgroup's whole tile.
    fn whole_tile(&self, node: Entity) -> Option<Layout> {
        let dims = |node: Entity| self.world.get::<ValueType>(node).map(|ty| ty.dims.clone());
        let memory = self.world.get::<Operands>(node).and_then(|operands| operands.0.last().copied());
        let is_write = self.world.get::<Op>(node).is_some_and(|op| op.is_write());
        let dims = if is_write { dims(memory?)? } else { dims(node)? };
        let extent = |&dim: &Dim| {
            let entry = self.geometry.dims.get(dim);
            Some((dim, entry?.workgroup_extent()?))
        };
        let tile = dims.iter().map(extent).collect::<Option<Vec<_>>>()?;
        let registers = || {
            let modes = tile.iter().rev().map(|&(dim, extent)| Mode::new(Source::Register, extent, dim, 1));
            Layout::new(modes).ok()
        };
        Layout::distribute(&tile, 1, LANES, 1).ok().or_else(registers)
    }

    /// The replicas that a node stands for: the first, and how many.
    pub(super) fn replicas(&self, node: Entity, layout: &Layout) -> (u32, u32) {
        match self.world.get::<Expansion>(node) {
            Some(expansion) => (expansion.replica, 1),
            None => (0, layout.extent(Source::Replica)),
        }
    }

    /// A fragment of a node whose elements are all undefined.
    pub(super) fn empty(&self, node: Entity, layout: &Layout) -> Result<Fragment, Diagnostic> {
        let dtype = self.get::<ValueType>(node)?.dtype.ok_or_else(|| bug("a value without dtype"))?;
        let (first, replicas) = self.replicas(node, layout);
        let registers = layout.extent(Source::Register);
        let count = u64::from(replicas) * u64::from(registers) * u64::from(LANES);
        if count > 1 << 24 {
            return Err(Diagnostic::new(Kind::Limit, format!("a wave holds {count} elements of one value")));
        }
        Ok(Fragment { dtype, registers, first, replicas, bits: Vec::new(), defined: Vec::new() })
    }

    pub(super) fn value(&self, node: Entity, wave: &PlacedWave) -> Result<Rc<Fragment>, Diagnostic> {
        let value = wave.values.get(node).and_then(Option::as_ref).cloned();
        value.ok_or_else(|| bug("a value is used before it is made").at(self.location(node)))
    }

    /// An operand as `node` sees it: its elements at the places of the node's own layout.
    pub(super) fn operand(
        &self,
        node: Entity,
        operand: Entity,
        wave: &PlacedWave,
    ) -> Result<Fragment, Diagnostic> {
        let (own, other) = (self.layout(node), self.layout(operand));
        let from = self.value(operand, wave)?;
        let (first, replicas) = self.replicas(node, &own);
        let registers = own.extent(Source::Register);
        if own == other && (first, replicas, registers) == (from.first, from.replicas, from.registers) {
            return Ok(Fragment::clone(&from));
        }
        let mut seen =
            Fragment { dtype: from.dtype, registers, first, replicas, bits: Vec::new(), defined: Vec::new() };
        let dims = other.dims();
        for place in places(first, replicas, registers, wave.number) {
            let coordinate = |dim: Dim| own.coordinate(dim, place);
            let (register, replica) = match own == other {
                true => (place.register, place.replica),
                false => (
                    index_of(&other, Source::Register, coordinate),
                    index_of(&other, Source::Replica, coordinate),
                ),
            };
            let at = from.at(replica, place.lane, register);
            let at = at.ok_or_else(|| bug("an operand does not hold what its user needs"))?;
            // The operand's layout must say that it holds exactly the element asked for.
            let held =
                Place { register, replica: if from.replicas == 1 { from.first } else { replica }, ..place };
            if dims.iter().any(|&dim| other.coordinate(dim, held) != coordinate(dim)) {
                return Err(bug("an operand holds other elements than its user needs"));
            }
            seen.bits.push(from.bits[at]);
            seen.defined.push(from.defined[at]);
        }
        Ok(seen)
    }
}
