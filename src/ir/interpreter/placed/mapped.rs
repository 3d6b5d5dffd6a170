//! The elements of a memory that an access touches: those of its tile, or those that a mapping names.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::super::mapped::programs;
use super::address::{AccessedTile, ElementPlace};
use super::trace::LoopFrame;
use super::{Machine, PlacedWave, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::Bounds;
use crate::ir::layout::{Dim, Layout, Place};
use crate::ir::mapping::{CoordinateProgram, Mapping};
use crate::ir::node::*;

/// How an access finds its elements in one iteration.
pub(super) enum AccessPath<'a> {
    Mapped(MappedAccess),
    Tile(AccessedTile<'a>),
}

/// A mapped access that is being executed.
pub(super) struct MappedAccess {
    memory: Entity,
    /// Dimensions of the memory, and elements along each.
    memory_dims: Dims,
    memory_shape: Vec<usize>,
    dims: Dims,
    /// Elements along each of `dims`.
    sizes: Vec<usize>,
    programs: Vec<CoordinateProgram>,
    /// Elements of the operands of the mapping, in the order of the access's places; `None` for undefined
    /// ones.
    operands: Vec<Vec<Option<i64>>>,
}

impl<'a> Machine<'a> {
    /// How `node` finds its elements of `memory`.
    pub(super) fn access_path(
        &self,
        node: Entity,
        memory: Entity,
        frame: &LoopFrame,
        wave: &PlacedWave,
        group: &RunningGroup,
    ) -> Result<AccessPath<'a>, Diagnostic> {
        Ok(match self.mapped(node, &self.get::<Operands>(node)?.0, wave)? {
            Some(mapped) => AccessPath::Mapped(mapped),
            None => AccessPath::Tile(self.tile(node, memory, frame, group)?),
        })
    }

    /// The element that `node` touches at its place number `at`.
    pub(super) fn addressed(
        &self,
        node: Entity,
        path: &AccessPath<'_>,
        layout: &Layout,
        (at, place): (usize, Place),
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<ElementPlace, Diagnostic> {
        match path {
            AccessPath::Mapped(mapped) => {
                self.mapped_element(node, mapped, layout, (at, place), frame, group)
            }
            AccessPath::Tile(tile) => tile
                .element(|dim| layout.coordinate(dim, place))
                .map_err(|fault| fault.at(self.location(node))),
        }
    }

    /// The mapping of an access whose value has the elements of `layout`; `None` for one without.
    fn mapped(
        &self,
        node: Entity,
        operands: &[Entity],
        wave: &PlacedWave,
    ) -> Result<Option<MappedAccess>, Diagnostic> {
        let Some(mapping) = self.fact::<Mapping>(node) else { return Ok(None) };
        let Some((&memory, others)) = operands.split_last() else {
            return Err(bug("an access without memory"));
        };
        let front = self.get::<Op>(node)?.values_in_front();
        let (written, others) = others.split_at_checked(front).ok_or_else(|| bug("a write without value"))?;
        let typed = written.first().copied().unwrap_or(node);
        let dims = self.get::<ValueType>(typed)?.dims.clone();
        let memory_dims = self.get::<ValueType>(memory)?.dims.clone();
        let sizes_of = |dims: &Dims| dims.iter().map(|&dim| self.size(dim)).collect::<Result<Vec<_>, _>>();
        let (sizes, memory_shape) = (sizes_of(&dims)?, sizes_of(&memory_dims)?);
        let names: Vec<&str> = dims.iter().map(|&dim| self.geometry.dim(dim).symbol.name()).collect();
        let programs = programs(mapping, &names, others.len(), &|symbol| (self.sizes)(symbol))?;
        let mut known = Vec::new();
        for &other in others {
            let fragment = self.operand(node, other, wave)?;
            let defined = fragment.bits.iter().zip(&fragment.defined);
            known.push(defined.map(|(&bits, &defined)| defined.then_some(i64::from(bits as i32))).collect());
        }
        let operands = known;
        Ok(Some(MappedAccess { memory, memory_dims, memory_shape, dims, sizes, programs, operands }))
    }

    /// The element of its memory that an access touches at its place number `at`: its index in the tensor or,
    /// of an LDS buffer, its first byte.
    fn mapped_element(
        &self,
        node: Entity,
        access: &MappedAccess,
        layout: &Layout,
        at_place: (usize, Place),
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<ElementPlace, Diagnostic> {
        let Some(coordinates) = self.mapped_coordinates(node, access, layout, at_place, frame, group)? else {
            return Ok(ElementPlace::Masked);
        };
        if self.by_node.get(access.memory).is_some() {
            let index = coordinates.iter().zip(&access.memory_shape);
            return Ok(ElementPlace::At(index.fold(0, |index, (&at, &size)| index * size + at as usize)));
        }
        let mut within: SmallVec<[(Dim, u32); 4]> = SmallVec::new();
        for (&dim, &coordinate) in access.memory_dims.iter().zip(&coordinates) {
            let first = self.first_element(dim, frame, self.iteration_of(node), group)?;
            let own = u32::try_from(coordinate - first);
            let another = || {
                let name = self.geometry.dim(dim).symbol.name();
                let text = format!("an access reaches {name} = {coordinate} of another workgroup's LDS");
                Diagnostic::invalid(text).at(self.location(node))
            };
            within.push((dim, own.map_err(|_| another())?));
        }
        let own = |dim: Dim| within.iter().find(|w| w.0 == dim).map_or(0, |w| w.1);
        let byte = self.lds_tile(node, access.memory, frame)?.byte(own);
        Ok(ElementPlace::At(byte.map_err(|fault| fault.at(self.location(node)))? as usize))
    }

    /// The coordinates that an access touches at its place number `at`; `None` for what is outside.
    fn mapped_coordinates(
        &self,
        node: Entity,
        access: &MappedAccess,
        layout: &Layout,
        (at, place): (usize, Place),
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<Option<SmallVec<[i64; 4]>>, Diagnostic> {
        let bounds = self.fact::<Bounds>(node);
        let mut slots: SmallVec<[i64; 8]> = SmallVec::new();
        for (&dim, &size) in access.dims.iter().zip(&access.sizes) {
            let coordinate = self.whole_coordinate(node, dim, layout, place, frame, group)?;
            if usize::try_from(coordinate).ok().is_none_or(|at| at >= size) {
                return match bounds.is_none_or(|bounds| bounds.masks.contains(&dim)) {
                    true => Ok(None),
                    false => {
                        let name = self.geometry.dim(dim).symbol.name();
                        Err(unmarked(name, coordinate).at(self.location(node)))
                    }
                };
            }
            slots.push(coordinate);
        }
        for operand in &access.operands {
            let value = operand.get(at).copied().flatten();
            slots.push(value.ok_or_else(|| {
                Diagnostic::invalid("an undefined element is used as a coordinate").at(self.location(node))
            })?);
        }
        let (mut found, mut stack) = (Some(SmallVec::new()), Vec::new());
        for ((program, &size), &dim) in
            access.programs.iter().zip(&access.memory_shape).zip(&access.memory_dims)
        {
            let coordinate = program.value(&slots, &mut stack)?;
            let inside = usize::try_from(coordinate).is_ok_and(|at| at < size);
            if !inside && bounds.is_some_and(|bounds| !bounds.outside.contains(&dim)) {
                let name = self.geometry.dim(dim).symbol.name();
                return Err(unmarked(name, coordinate).at(self.location(node)));
            }
            match &mut found {
                Some(coordinates) if inside => coordinates.push(coordinate),
                _ => found = None,
            }
        }
        Ok(found)
    }
}

fn unmarked(name: &str, coordinate: i64) -> Diagnostic {
    let text = format!("an access reaches {name} = {coordinate}, although it is not marked as leaving it");
    Diagnostic::invalid(text)
}
