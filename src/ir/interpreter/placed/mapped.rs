//! The elements of a memory that a mapped access touches.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::super::mapped::{in_lds, programs};
use super::address::ElementPlace;
use super::trace::LoopFrame;
use super::{Machine, PlacedWave, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::Bounds;
use crate::ir::layout::{Layout, Place};
use crate::ir::mapping::{CoordinateProgram, Mapping};
use crate::ir::node::*;

/// A mapped access that is being executed.
pub(super) struct MappedAccess {
    /// The memory's number.
    memory: usize,
    dims: Dims,
    /// Elements along each of `dims`.
    sizes: Vec<usize>,
    programs: Vec<CoordinateProgram>,
    /// Elements of the operands of the mapping, in the order of the access's places; `None` for undefined
    /// ones.
    operands: Vec<Vec<Option<i64>>>,
}

impl Machine<'_> {
    /// The mapping of an access whose value has the elements of `layout`; `None` for one without.
    pub(super) fn mapped(
        &self,
        node: Entity,
        operands: &[Entity],
        wave: &PlacedWave,
    ) -> Result<Option<MappedAccess>, Diagnostic> {
        let Some(mapping) = self.fact::<Mapping>(node) else { return Ok(None) };
        let (Some((&memory, others)), write) = (operands.split_last(), self.get::<Op>(node)?.is_write())
        else {
            return Err(bug("an access without memory"));
        };
        let Some(&number) = self.by_node.get(memory) else { return Err(in_lds()) };
        let (typed, others) = match (write, others.split_first()) {
            (true, Some((&value, others))) => (value, others),
            _ => (node, others),
        };
        let dims = self.get::<ValueType>(typed)?.dims.clone();
        let sizes = dims.iter().map(|&dim| self.size(dim)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&str> = dims.iter().map(|&dim| self.geometry.dim(dim).symbol.name()).collect();
        let programs = programs(mapping, &names, others.len(), &|symbol| (self.sizes)(symbol))?;
        let mut known = Vec::new();
        for &other in others {
            let fragment = self.operand(node, other, wave)?;
            let defined = fragment.bits.iter().zip(&fragment.defined);
            known.push(defined.map(|(&bits, &defined)| defined.then_some(i64::from(bits as i32))).collect());
        }
        Ok(Some(MappedAccess { memory: number, dims, sizes, programs, operands: known }))
    }

    /// The element of its memory that an access touches at its place number `at`.
    pub(super) fn mapped_element(
        &self,
        node: Entity,
        access: &MappedAccess,
        layout: &Layout,
        (at, place): (usize, Place),
        frame: &LoopFrame,
        group: &RunningGroup,
    ) -> Result<ElementPlace, Diagnostic> {
        let memory = &self.memories[access.memory];
        let bounds = self.fact::<Bounds>(node);
        let mut slots: SmallVec<[i64; 8]> = SmallVec::new();
        for (&dim, &size) in access.dims.iter().zip(&access.sizes) {
            let coordinate = self.whole_coordinate(node, dim, layout, place, frame, group)?;
            if usize::try_from(coordinate).ok().is_none_or(|at| at >= size) {
                return match bounds.is_none_or(|bounds| bounds.masks.contains(&dim)) {
                    true => Ok(ElementPlace::Masked),
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
        let (mut index, mut stack) = (Some(0usize), Vec::new());
        for ((program, &size), &dim) in access.programs.iter().zip(&memory.shape).zip(&memory.dims) {
            let coordinate = program.value(&slots, &mut stack)?;
            let inside = usize::try_from(coordinate).ok().filter(|&at| at < size);
            if inside.is_none() && bounds.is_some_and(|bounds| !bounds.outside.contains(&dim)) {
                let name = self.geometry.dim(dim).symbol.name();
                return Err(unmarked(name, coordinate).at(self.location(node)));
            }
            index = index.zip(inside).map(|(index, inside)| index * size + inside);
        }
        Ok(index.map_or(ElementPlace::Masked, ElementPlace::At))
    }
}

fn unmarked(name: &str, coordinate: i64) -> Diagnostic {
    let text = format!("an access reaches {name} = {coordinate}, although it is not marked as leaving it");
    Diagnostic::invalid(text)
}
