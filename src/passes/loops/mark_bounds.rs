//! Bounds: which accesses of global memory can leave the tensor, along which dimensions that matters, and how
//! wide an access may be.
//!
//! Elements of a read that lie outside along a dimension that no operation contracts only reach results that
//! are outside as well, and those are never stored; so such reads need no mask (the buffer descriptor keeps
//! them inside the tensor's memory). A contracted dimension must read zeros outside. A read of a memory that
//! the kernel writes has a mask along all dimensions: past the end of a row lies the next row, which another
//! workgroup may be writing.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::ExprArena;
use crate::ir::kernel::KernelName;
use crate::ir::layout::{Dim, Source};
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::{self, Bug, Node, NodeItem};
use crate::ir::op::OpClass;
use crate::ir::reasons::{MaskReason, Narrowness};
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::PassResult;
use crate::passes::analysis::{mapped_accesses, memory_strides};
use crate::passes::facts::{Bounds, Expressions, Geometry, Remainder};
use crate::passes::layout::element_layouts::most_elements;

/// Loops around a node, outermost first: the dimension, and whether the loop is over a remainder.
pub(super) type Loops = SmallVec<[(Dim, bool); 4]>;

/// The pass itself; see the module.
pub(crate) fn mark_bounds(
    mut kernel: Single<(Entity, &Geometry, &mut Expressions), With<KernelName>>,
    accesses: Accesses,
    mut commands: Commands,
) -> PassResult {
    let (root, geometry, expressions) = &mut *kernel;
    let masked = Masked::of(&accesses, *root, geometry)?;
    let mut loops = Loops::new();
    let mut marker = Marker { geometry, arena: &mut expressions.0, accesses: &accesses, masked };
    marker.region(*root, &mut loops, &mut commands)
}

/// The components that the pass reads.
#[derive(SystemParam)]
pub(crate) struct Accesses<'w, 's> {
    bodies: Query<'w, 's, &'static Body>,
    nodes: Query<'w, 's, Node>,
    strides: Query<'w, 's, &'static Strides>,
    found: Query<'w, 's, (Option<&'static Placement>, Option<&'static Mapping>, Has<Remainder>)>,
}

/// What decides which reads need a mask.
struct Masked<'a> {
    geometry: &'a Geometry,
    /// Dimensions that an `mma` sums over or that a loop walks along.
    contracted: SmallVec<[Dim; 4]>,
    /// Memories that the kernel writes.
    written: NodeSet,
}

impl<'a> Masked<'a> {
    fn of(accesses: &Accesses, root: Entity, geometry: &'a Geometry) -> Result<Masked<'a>, Diagnostic> {
        let mut masked = Masked { geometry, contracted: SmallVec::new(), written: NodeSet::default() };
        for id in walk::order(&accesses.bodies, root) {
            let node = accesses.nodes.get(id)?;
            if let Some(axis) = node.op.walks() {
                masked.contract(axis);
            }
            if node.op.row().class == OpClass::Contraction {
                for &operand in &node.operands.0 {
                    let dims = &accesses.nodes.get(operand)?.ty.dims;
                    let summed = dims.iter().filter(|dim| !node.ty.dims.contains(dim));
                    summed.for_each(|&dim| masked.contract(dim));
                }
            }
            if node.op.is_write() {
                masked.written.insert(node.memory()?);
            }
        }
        Ok(masked)
    }

    fn contract(&mut self, dim: Dim) {
        let dim = self.geometry.loop_dim(dim);
        if !self.contracted.contains(&dim) {
            self.contracted.push(dim);
        }
    }

    /// Why an access of `memory` must be masked outside of it along `dim`, if it must.
    fn applies(&self, op: Op, memory: Entity, dim: Dim) -> Option<MaskReason> {
        if op.is_write() {
            Some(MaskReason::Stored)
        } else if self.written.contains(memory) {
            Some(MaskReason::Rewritten)
        } else {
            let summed = self.contracted.contains(&self.geometry.loop_dim(dim));
            summed.then_some(MaskReason::Summed)
        }
    }
}

/// Whether the tile of an access can reach beyond the end of a dimension, in the loops around it.
pub(super) fn can_leave(geometry: &Geometry, arena: &mut ExprArena, loops: &[(Dim, bool)], dim: Dim) -> bool {
    let is_covered = geometry.dim(dim).covered.is_some();
    // Blocks exist where their elements do.
    let dim = geometry.loop_dim(dim);
    let entry = geometry.dim(dim);
    if let Some(tile) = entry.tiling {
        match loops.iter().rev().find(|l| l.0 == dim) {
            Some(&(_, remainder)) => remainder,
            None => !arena.is_multiple_of(entry.size, i64::from(tile)),
        }
    } else if let Some((_, tile)) = entry.workgroup {
        !arena.is_multiple_of(entry.size, i64::from(tile))
    } else {
        is_covered || entry.covered.is_some()
    }
}

/// True if all strides are multiples of so many elements: the dword that wide accesses are aligned to. Those
/// along a dimension of one element lead nowhere.
fn aligned(
    arena: &mut ExprArena,
    geometry: &Geometry,
    dims: &[Dim],
    strides: &Strides,
    elements: u32,
) -> Result<bool, Diagnostic> {
    for (&dim, factors) in dims.iter().zip(strides.0.split_last().map_or(&[][..], |(_, outer)| outer)) {
        if geometry.dim(dim).static_size == Some(1) {
            continue;
        }
        let stride = memory_strides::product(arena, geometry, factors)?;
        if !arena.is_multiple_of(stride, i64::from(elements)) {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Marker<'a, 'w, 's> {
    geometry: &'a Geometry,
    arena: &'a mut ExprArena,
    accesses: &'a Accesses<'w, 's>,
    masked: Masked<'a>,
}

impl Marker<'_, '_, '_> {
    fn region(&mut self, region: Entity, loops: &mut Loops, commands: &mut Commands) -> PassResult {
        for &node in nodes::body(&self.accesses.bodies, region)? {
            let op = *self.accesses.nodes.get(node)?.op;
            match op.row().class {
                OpClass::Region => {
                    let outer = loops.len();
                    if let Some(axis) = op.over_tiles() {
                        loops.push((axis, self.accesses.found.get(node)?.2));
                    }
                    self.region(node, loops, commands)?;
                    loops.truncate(outer);
                }
                // Copies to LDS are made later, with bounds.
                OpClass::Access if op.copies() => {}
                OpClass::Access => {
                    if let Some(bounds) = self.bounds_of(node, loops)? {
                        commands.entity(node).insert(bounds);
                    }
                }
                OpClass::Declaration | OpClass::Constant | OpClass::ElementWise | OpClass::Rearrangement => {}
                OpClass::Contraction | OpClass::Reduction | OpClass::Scan => {}
                OpClass::Carried | OpClass::Order => {}
            }
        }
        Ok(())
    }

    /// Bounds of an access of global memory, or of one of LDS at coordinates; `None` for others of LDS.
    fn bounds_of(&mut self, access: Entity, loops: &[(Dim, bool)]) -> Result<Option<Bounds>, Diagnostic> {
        let node = self.accesses.nodes.get(access)?;
        let (op, memory) = (*node.op, node.memory()?);
        let (placement, mapping, _) = self.accesses.found.get(access)?;
        let NodeItem { op: accessed, ty: ValueType { dims, dtype }, .. } = self.accesses.nodes.get(memory)?;
        if *accessed != Op::Memory && mapping.is_none() {
            return Ok(None);
        }
        let memory_dims = dims;
        let dims = match (mapping, op.is_write()) {
            (None, _) => memory_dims,
            (Some(_), false) => &node.ty.dims,
            (Some(_), true) => &self.accesses.nodes.get(node.operand(0)?)?.ty.dims,
        };
        let bytes = dtype.map_or(1, DType::bytes);
        let widest = most_elements(op, bytes);
        let layout = &placement.ok_or_else(|| Bug::new("an access without layout"))?.0;
        let arena = &mut *self.arena;
        let masked = &self.masked;
        let geometry = self.geometry;
        let mut can_leave = |dim: Dim| can_leave(geometry, arena, loops, dim);
        // Words of units are covered to a power of two, and some accesses have those alone that there are.
        let reaches_cover = |dim: Dim| {
            let entry = geometry.dim(dim);
            let size = entry.static_size.filter(|_| entry.covered.is_some());
            size.is_none_or(|size| layout.tile_extent(dim) > size)
        };
        let leaves: SmallVec<[Dim; 4]> =
            dims.iter().copied().filter(|&dim| can_leave(dim) && reaches_cover(dim)).collect();
        let bounds = match mapping {
            Some(mapping) => {
                let outside = mapped_accesses::outside(arena, geometry, mapping, dims, memory_dims);
                let why = if op.is_write() { MaskReason::Stored } else { MaskReason::Mapped };
                let masked_as = (!leaves.is_empty()).then_some(why);
                let granule = layout.extent(Source::Register).min(widest);
                Bounds { masks: leaves.clone(), leaves, masked_as, outside, granule, narrowed: None }
            }
            // The identity leads out of the memory only where the value leaves it.
            None => {
                let why = |dim: &Dim| masked.applies(op, memory, *dim);
                let masks: SmallVec<[Dim; 4]> =
                    leaves.iter().copied().filter(|dim| why(dim).is_some()).collect();
                let masked_as = masks.first().and_then(why);
                let Some(&innermost) = dims.last() else { return Ok(None) };
                let run = layout.contiguous_run(innermost).clamp(1, widest);
                let granule = self.width_in_rows(memory, dims, &leaves, (run, bytes))?;
                let has_strides = self.accesses.strides.contains(memory);
                let why = if has_strides { Narrowness::Strides } else { Narrowness::Edges };
                let narrowed = (granule < run).then_some((run, why));
                Bounds { leaves, masks, masked_as, outside: SmallVec::new(), granule, narrowed }
            }
        };
        debug_assert!(bounds.granule <= layout.extent(Source::Register));
        Ok(Some(bounds))
    }

    /// Elements that an access of a memory's rows may take at once, of `run` side by side of so many bytes:
    /// all of them exist or none does, and they begin at a whole dword.
    fn width_in_rows(
        &mut self,
        memory: Entity,
        dims: &[Dim],
        leaves: &[Dim],
        (run, bytes): (u32, u32),
    ) -> Result<u32, Diagnostic> {
        let (arena, geometry) = (&mut *self.arena, self.geometry);
        let mut granule = run;
        if let Some(innermost) = dims.last().filter(|dim| leaves.contains(dim)) {
            let size = geometry.dim(*innermost).size;
            while !arena.is_multiple_of(size, i64::from(granule)) && granule > 1 {
                granule /= 2;
            }
        }
        if let Ok(strides) = self.accesses.strides.get(memory) {
            // An element of 64 bits is two dwords.
            while !aligned(arena, geometry, dims, strides, ((granule * bytes).min(4) / bytes).max(1))? {
                granule /= 2;
            }
        }
        Ok(granule)
    }
}
