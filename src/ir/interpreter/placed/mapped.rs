//! The elements of a memory that an access touches. The coordinates of its own elements become those in the
//! memory by its mapping, which is the identity if it has none, and there each is at an index of a tensor or
//! at a byte of LDS. What is the same for all places of an access is found once.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::super::mapped::programs;
use super::address::{LdsTile, TileDim};
use super::trace::LoopFrame;
use super::{Machine, PlacedWave, RunningGroup, bug};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::Bounds;
use crate::ir::layout::{Dim, Layout, Place};
use crate::ir::mapping::{CoordinateProgram, Mapping};
use crate::ir::node::*;

/// The place of an element of an access.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ElementPlace {
    /// In the tensor, at this index; in LDS, at this byte.
    At(usize),
    /// Outside, where the access reads zero and writes nothing.
    Masked,
    /// Outside, where the access must not be used.
    Undefined,
}

/// How an access finds its elements in one iteration.
pub(super) struct AccessPath<'a> {
    /// Dimensions of its own elements; none if they are those of its tile of LDS.
    dims: SmallVec<[TileDim; 4]>,
    bounds: Option<&'a Bounds>,
    /// None is the identity.
    mapping: Option<PlacedMapping>,
    /// The tile of LDS; none of a memory.
    lds: Option<LdsTile<'a>>,
}

/// A mapping that is being evaluated.
struct PlacedMapping {
    /// Dimensions of the memory.
    dims: SmallVec<[TileDim; 4]>,
    programs: Vec<CoordinateProgram>,
    /// Elements of the operands of the mapping, in the order of the access's places; `None` for undefined
    /// ones.
    operands: Vec<Vec<Option<i64>>>,
}

/// Coordinates in a tensor, or what becomes of an element that has none.
type Found = Result<SmallVec<[i64; 4]>, ElementPlace>;

impl AccessPath<'_> {
    /// True if the coordinates are expressions.
    pub(super) fn is_mapped(&self) -> bool {
        self.mapping.is_some()
    }

    /// The element that the access touches at its place number `at`, whose coordinates in the workgroup's
    /// tile are given.
    pub(super) fn element(
        &self,
        at: usize,
        coordinate: impl Fn(Dim) -> u32,
    ) -> Result<ElementPlace, Diagnostic> {
        let own = match (&self.mapping, &self.lds) {
            (None, Some(lds)) => return Ok(ElementPlace::At(lds.byte(coordinate)? as usize)),
            _ => self.own_coordinates(coordinate)?,
        };
        let own = match own {
            Ok(own) => own,
            Err(outside) => return Ok(outside),
        };
        let Some(mapping) = &self.mapping else { return Ok(index(&self.dims, &own)) };
        let coordinates = match mapping.coordinates(at, own, self.bounds)? {
            Ok(coordinates) => coordinates,
            Err(outside) => return Ok(outside),
        };
        match &self.lds {
            None => Ok(index(&mapping.dims, &coordinates)),
            Some(lds) => Ok(ElementPlace::At(mapping.byte(lds, &coordinates)? as usize)),
        }
    }

    /// The coordinates of the access's own element in the whole tensor.
    fn own_coordinates(&self, coordinate: impl Fn(Dim) -> u32) -> Result<Found, Diagnostic> {
        let mut own = SmallVec::new();
        let mut is_undefined = false;
        for entry in &self.dims {
            let whole = i64::from(coordinate(entry.dim)) + entry.first;
            own.push(whole);
            if entry.inside(whole).is_some() {
                continue;
            }
            match self.bounds {
                Some(bounds) if !bounds.masks.contains(&entry.dim) => {
                    if !bounds.leaves.contains(&entry.dim) {
                        return Err(unmarked(entry, whole));
                    }
                    is_undefined = true;
                }
                _ => return Ok(Err(ElementPlace::Masked)),
            }
        }
        Ok(if is_undefined { Err(ElementPlace::Undefined) } else { Ok(own) })
    }
}

impl PlacedMapping {
    /// The coordinates in the memory of the element number `at`, which has its own ones.
    fn coordinates(
        &self,
        at: usize,
        own: SmallVec<[i64; 4]>,
        bounds: Option<&Bounds>,
    ) -> Result<Found, Diagnostic> {
        let mut slots = own;
        for operand in &self.operands {
            let value = operand.get(at).copied().flatten();
            let undefined = || Diagnostic::invalid("an undefined element is used as a coordinate");
            slots.push(value.ok_or_else(undefined)?);
        }
        let (mut found, mut stack) = (Ok(SmallVec::new()), Vec::new());
        for (program, entry) in self.programs.iter().zip(&self.dims) {
            let coordinate = program.value(&slots, &mut stack)?;
            let is_inside = entry.inside(coordinate).is_some();
            if !is_inside && bounds.is_some_and(|bounds| !bounds.outside.contains(&entry.dim)) {
                return Err(unmarked(entry, coordinate));
            }
            match &mut found {
                Ok(coordinates) if is_inside => coordinates.push(coordinate),
                _ => found = Err(ElementPlace::Masked),
            }
        }
        Ok(found)
    }

    /// The byte of LDS at these coordinates in the whole tensor.
    fn byte(&self, lds: &LdsTile<'_>, coordinates: &[i64]) -> Result<u32, Diagnostic> {
        let mut within: SmallVec<[(Dim, u32); 4]> = SmallVec::new();
        for (entry, &coordinate) in self.dims.iter().zip(coordinates) {
            let own = u32::try_from(coordinate - entry.first);
            let another = |_| {
                let name = entry.symbol.name();
                let text = format!("an access reaches {name} = {coordinate} of another workgroup's LDS");
                Diagnostic::invalid(text)
            };
            within.push((entry.dim, own.map_err(another)?));
        }
        lds.byte(|dim| within.iter().find(|own| own.0 == dim).map_or(0, |own| own.1))
    }
}

/// The index of an element at coordinates that are inside of a row-major tensor.
fn index(dims: &[TileDim], coordinates: &[i64]) -> ElementPlace {
    let all = coordinates.iter().zip(dims);
    ElementPlace::At(all.fold(0, |index, (&at, entry)| index * entry.size + at as usize))
}

fn unmarked(TileDim { symbol, size, .. }: &TileDim, coordinate: i64) -> Diagnostic {
    Diagnostic::invalid(format!(
        "an access reaches {symbol} = {coordinate}, beyond its {size} elements, although it is not marked as \
         leaving them",
    ))
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
        let bounds = self.fact::<Bounds>(node);
        let number = self.by_node.get(memory).copied();
        let lds = match number {
            Some(_) => None,
            None => Some(self.lds_tile(node, memory, frame)?),
        };
        let Some(mapping) = self.fact::<Mapping>(node) else {
            let own = number.map(|number| &self.memories[number]);
            let own = own.into_iter().flat_map(|own| own.dims.iter().copied().zip(own.shape.iter().copied()));
            let dims = self.tile_dims(node, own, frame, group)?;
            return Ok(AccessPath { dims, bounds, mapping: None, lds });
        };
        let operands = &self.get::<Operands>(node)?.0;
        let others = operands.split_last().map_or(&[][..], |(_, others)| others);
        let front = self.get::<Op>(node)?.values_in_front();
        let (written, others) = others.split_at_checked(front).ok_or_else(|| bug("a write without value"))?;
        let typed = written.first().copied().unwrap_or(node);
        let mut known = Vec::new();
        for &other in others {
            let fragment = self.operand(node, other, wave)?;
            let defined = fragment.bits.iter().zip(&fragment.defined);
            known.push(defined.map(|(&bits, &defined)| defined.then_some(i64::from(bits as i32))).collect());
        }
        let tile = |typed: Entity| {
            let dims = &self.get::<ValueType>(typed)?.dims;
            let sized = dims.iter().map(|&dim| Ok((dim, self.size(dim)?)));
            let sized = sized.collect::<Result<SmallVec<[(Dim, usize); 4]>, Diagnostic>>()?;
            self.tile_dims(node, sized.into_iter(), frame, group)
        };
        let (dims, memory_dims) = (tile(typed)?, tile(memory)?);
        let names: SmallVec<[&str; 4]> = dims.iter().map(|entry| entry.symbol.name()).collect();
        let programs = programs(mapping, &names, others.len(), &|symbol| (self.sizes)(symbol))?;
        let mapping = PlacedMapping { dims: memory_dims, programs, operands: known };
        Ok(AccessPath { dims, bounds, mapping: Some(mapping), lds })
    }

    /// The element that `node` touches at its place number `at`.
    pub(super) fn addressed(
        &self,
        node: Entity,
        path: &AccessPath<'_>,
        layout: &Layout,
        (at, place): (usize, Place),
    ) -> Result<ElementPlace, Diagnostic> {
        let element = path.element(at, |dim| layout.coordinate(dim, place));
        element.map_err(|fault| fault.at(self.location(node)))
    }
}
