//! Lowering: expanded nodes become machine code with virtual registers. This is the border between the ECS
//! and the dense world; nothing flows back but summaries.
//!
//! - `emitter`: instructions, registers, blocks
//! - `scalar`: symbolic expressions on the scalar unit
//! - `lane_moves`: registers of other lanes
//! - `lanes`: values that depend on the lane: digits, coordinates, masks
//! - `global`: buffer descriptors and offsets of global accesses; their loads and stores
//! - `access`: facts of an access to global memory, and the pieces that it is made of
//! - `alike`: offsets that accesses of memories of one shape share
//! - `mapped`, `mapped_places`, `mapped_values`, `mapped_widths`: accesses whose coordinates are expressions
//! - `atomic`: updates of global memory in one step
//! - `lds`: addresses of LDS accesses; their reads and writes
//! - `lds_mapped`: those at coordinates, and atomic updates of LDS
//! - `load_to_lds`: loads from global memory straight into LDS
//! - `arithmetic`: element-wise operations, constants, casts
//! - `float8`: 8-bit floats to and from f32
//! - `pairs`: elements of 64 bits
//! - `halves`: operations on both elements of a register at once
//! - `reduce`: reductions inside a wave
//! - `packed_floats`: arithmetic of f32 on two elements at once
//! - `rearrange`: elements that change places within a wave
//! - `self_index`: places of elements and sizes of dimensions as values
//! - `functions`: powers, logarithms, roots, reciprocals around the approximating instructions
//! - `preload`: arguments that firmware loads, and the prologue for firmware which cannot
//! - `contents`: how often the contents of registers are used
//! - `lane_products`: products where there are no matrix instructions
//! - `control`: regions, loops, matrix instructions; `carried_moves`: what loops hand on
//! - `iterations`: which iteration an access belongs to
//! - `beside_products`: scalar instructions between the last matrix instructions of a loop
//! - `late_writes`: LDS writes of one tile between matrix instructions, one beside each
//!
//! Everything that does not change in a loop (descriptors, offsets, masks, addresses) is prepared in front of
//! it; inside, a global access only needs its scalar offset advanced, and an LDS access nothing.
// A new operation has to be considered wherever operations are distinguished.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod access;
mod alike;
mod arithmetic;
mod atomic;
mod beside_products;
mod carried_moves;
mod conditions;
mod contents;
mod control;
mod decoding;
mod emitter;
mod exchange;
mod float8;
mod functions;
mod global;
mod halves;
mod integers;
mod iterations;
mod lane_moves;
mod lane_products;
mod lanes;
mod late_writes;
mod lds;
mod lds_mapped;
mod load_to_lds;
mod mapped;
mod mapped_places;
mod mapped_values;
mod mapped_widths;
mod operations;
mod packed_floats;
mod pairs;
mod persistent;
pub(crate) mod preload;
mod rearrange;
mod reduce;
mod scalar;
mod scan;
mod self_index;
mod under_condition;

use std::ops::Range;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use self::access::TilePlace;
use self::emitter::{Emitter, Scalar};
use self::global::GlobalPlan;
use self::lds::LdsPlan;
use self::lds_mapped::MappedLdsPlan;
use self::load_to_lds::ToLdsPlan;
use self::mapped::MappedPlan;
use self::mapped_values::MappedState;
use crate::codegen::isa::{Opcode, Operand, VReg};
use crate::codegen::machine::{BlockId, MachineBody};
use crate::codegen::target::Target;
use crate::ir::constraint::{GridSymbol, MAX_AXES};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprArena, ExprError, Symbol};
use crate::ir::kernel::Locations;
use crate::ir::layout::Dim;
use crate::ir::memory_layout::Strides;
use crate::ir::node::{self, *};
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::{self, ExpandedNodeItem, ExpandedNodes};
use crate::passes::facts::{Expressions, Geometry, LdsBytes, Settings};
use crate::passes::loops::expand::Arguments;
use crate::passes::options::{FloatFunctions, KernargPreload};
use crate::passes::workspace::Workspace;

/// One kernel argument in the kernarg segment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ArgumentSlot {
    /// Pointer to a memory, 8 bytes.
    Pointer {
        /// The memory node.
        memory: Entity,
        /// Byte offset in the segment.
        offset: u32,
    },
    /// A number by value.
    Scalar {
        /// The scalar node.
        scalar: Entity,
        /// Its bytes: 4 or 8.
        bytes: u32,
        /// Byte offset in the segment.
        offset: u32,
    },
    /// A dynamic symbol, 4 bytes.
    Symbol {
        /// The symbol.
        symbol: Symbol,
        /// Byte offset in the segment.
        offset: u32,
    },
}

impl ArgumentSlot {
    /// Byte offset after it.
    fn end(&self) -> u32 {
        match *self {
            ArgumentSlot::Pointer { offset, .. } => offset + 8,
            ArgumentSlot::Scalar { offset, bytes, .. } => offset + bytes,
            ArgumentSlot::Symbol { offset, .. } => offset + 4,
        }
    }
}

/// The results of lowering apart from the code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lowered {
    /// Registers that are set when the kernel starts: virtual register and physical register number.
    pub fixed: Vec<(VReg, Operand)>,
    /// Kernel arguments in order.
    pub arguments: Vec<ArgumentSlot>,
    /// Memories that the code stores to.
    pub written: NodeSet,
    /// Bytes of the kernarg segment.
    pub kernarg_bytes: u32,
    /// Leading dwords of the segment that are in SGPRs when the kernel starts.
    pub preloaded_dwords: u32,
    /// The code has `v_min_f32` or `v_max_f32`, which treat any NaN as the lesser operand only where IEEE
    /// mode is off.
    pub float_extremum: bool,
    /// Grid axes whose workgroup id the kernel reads.
    pub workgroup_ids: [bool; 3],
    /// Machine blocks that are loop bodies, outermost first.
    pub loops: Vec<Range<BlockId>>,
    /// Largest byte offsets inside one descriptor that must stay below 2^31, as expressions to check at
    /// launch.
    pub reaches: Vec<(Entity, Expr)>,
    /// Mapped accesses, by their logical nodes, whose instructions move fewer elements than a lane has side
    /// by side: how many they move, and how many they could.
    pub splits: Vec<(Entity, [u32; 2])>,
}

/// Where a value is.
#[derive(Copy, Clone, Debug)]
enum ValuePlace {
    /// In consecutive registers, elements packed.
    Registers(Operand),
    /// In registers that do not follow each other: those in [`Lowering::scattered`] from this number on.
    Scattered(u32),
    /// The same in every lane: the bits of two registers that follow each other, which is one element of 64
    /// bits, or twice the same.
    Constant(u64),
    /// A number in an SGPR, or in a pair of them.
    Uniform(Operand),
    /// i1: compared anew at each use, since the lane masks of a whole tile would not fit into the SGPRs. How
    /// many comparisons that takes.
    Comparison(u32),
    /// i1 that takes too many of them: a register per element, which is not zero where it holds.
    Flags(Operand),
}

struct Lowering<'a> {
    pub(super) world: &'a World,
    nodes: ExpandedNodes<'a, 'a>,
    /// What the query says of each node of the kernel, by entity index: every walk asks again.
    pub(super) seen: Vec<Option<ExpandedNodeItem<'a, 'a>>>,
    pub(super) geometry: &'a Geometry,
    pub(super) locations: &'a Locations,
    pub(super) target: Target,
    pub(super) functions: FloatFunctions,
    pub(super) arena: &'a mut ExprArena,
    pub(super) emitter: Emitter<'a>,
    pub(super) out: Lowered,
    /// Dynamic symbols in SGPRs.
    pub(super) symbols: SmallVec<[(Symbol, Operand); 4]>,
    /// Pointers of memories in SGPR pairs.
    pub(super) pointers: NodeMap<Operand>,
    /// The kernel computes with the numbers of its workgroup.
    pub(super) counts_workgroups: bool,
    /// Places of the workgroup along the grid axes in SGPRs.
    pub(super) workgroup: [Operand; MAX_AXES],
    /// Lane number in a VGPR.
    pub(super) lane: Operand,
    /// Wave number in its workgroup.
    pub(super) wave: Scalar,
    /// Values of expressions that are valid at this point.
    pub(super) scalars: SmallVec<[(Expr, Scalar); 16]>,
    /// Digits of the lane number that are valid at this point: weight, extent, VGPR.
    pub(super) digits: SmallVec<[(u32, u32, Operand); 16]>,
    /// Values that depend on the lane alone and are valid at this point.
    pub(super) lane_values: SmallVec<[(lane_moves::LaneValue, Operand); 2]>,
    /// VGPRs that hold a constant or the value of an SGPR, valid at this point.
    pub(super) vector_copies: SmallVec<[(Scalar, Operand); 4]>,
    /// Constants in SGPRs that are valid at this point.
    pub(super) constants: SmallVec<[(u32, Operand); 16]>,
    /// The same in the lower halves of pairs.
    pub(super) constant_pairs: SmallVec<[(u32, Operand); 16]>,
    /// The same for f64 constants, in pairs.
    pub(super) wide_constants: SmallVec<[(u64, Operand); 8]>,
    /// f64 constants in pairs of VGPRs.
    pub(super) wide_copies: SmallVec<[(u64, Operand); 2]>,
    /// Where each expanded value is, by entity index.
    pub(super) places: Vec<Option<ValuePlace>>,
    /// Registers of scattered values, one value after the other.
    pub(super) scattered: Vec<Operand>,
    /// True if the kernel has products.
    pub(super) multiplies: bool,
    /// Registers of bf16 that have been widened in this region, oldest first.
    pub(super) widened_pairs: std::collections::VecDeque<lane_products::WidenedPair>,
    /// The code of neighbouring elements that is being joined.
    pub(super) element_pair: packed_floats::ElementPair,
    /// Number of uses of each expanded value, by entity index.
    pub(super) uses: Vec<u32>,
    /// What is known of the contents of virtual registers, by number.
    pub(super) contents: SmallVec<[contents::Contents; 512]>,
    /// Instructions that finish a loaded value, emitted before its first use, by entity index.
    pub(super) unfinished: Vec<Vec<crate::codegen::isa::Inst>>,
    /// Values that have such instructions, oldest first.
    pub(super) finishing: std::collections::VecDeque<Entity>,
    /// Address plans of logical accesses that are valid at this point.
    pub(super) global_plans: NodeMap<GlobalPlan>,
    pub(super) lds_plans: NodeMap<LdsPlan>,
    pub(super) mapped_lds_plans: NodeMap<MappedLdsPlan>,
    pub(super) to_lds_plans: NodeMap<ToLdsPlan>,
    /// LDS addresses of lanes or waves with something added, the place of a copy or what is out of reach:
    /// address, what is added, sum.
    pub(super) moved_addresses: SmallVec<[(Operand, Scalar, Operand); 8]>,
    /// Buffer descriptors that are valid at this point.
    pub(super) descriptors: NodeMap<Operand>,
    /// Places of the workgroup's tile in memories, valid at this point.
    pub(super) tile_places: SmallVec<[TilePlace; 4]>,
    /// Places of the values that finished loops carried, by expanded loop.
    pub(super) results: NodeMap<SmallVec<[ValuePlace; 4]>>,
    /// Plans of mapped accesses that are valid at this point.
    pub(super) mapped_plans: NodeMap<MappedPlan>,
    /// Values of expressions in mapped accesses.
    pub(super) mapped: MappedState,
    /// Bytes of LDS that a workgroup has.
    pub(super) lds_bytes: u32,
    /// The loop over tiles of workgroups that share the grid.
    pub(super) tiles: Option<persistent::OpenTiles>,
    /// Loops around this point that run as long as a condition holds.
    pub(super) whiles: u32,
    /// The other loops around this point.
    pub(super) loops: SmallVec<[iterations::OpenLoop; 2]>,
}

/// Lowers the expanded kernel in a workspace into `body`.
///
/// # Errors
/// Kernels that the target or this back end cannot compile.
pub(crate) fn lower(workspace: &mut Workspace, body: &mut MachineBody) -> Result<Lowered, Diagnostic> {
    let Workspace { world, root, expanded, spare, .. } = workspace;
    let (root, missing) = (*root, "a kernel without expressions");
    std::mem::swap(&mut nodes::fact_mut::<Expressions>(world, root, missing)?.0, spare);
    let result = lower_with(world, expanded.query(world), root, body, spare);
    std::mem::swap(&mut nodes::fact_mut::<Expressions>(world, root, missing)?.0, spare);
    result
}

fn lower_with(
    world: &World,
    nodes: ExpandedNodes,
    root: Entity,
    body: &mut MachineBody,
    arena: &mut ExprArena,
) -> Result<Lowered, Diagnostic> {
    let missing = |what: &str| Diagnostic::new(Kind::Bug, format!("the kernel has no {what}"));
    let entities = world.entities().len() as usize + 64;
    // About as many instructions as nodes: a first guess.
    body.insts.reserve(entities);
    body.registers.reserve(entities);
    let options = &world.get::<Settings>(root).ok_or_else(|| missing("settings"))?.0;
    let mut lowering = Lowering {
        world,
        nodes,
        seen: Vec::with_capacity(entities),
        target: options.target(),
        functions: options.requested_functions(),
        geometry: world.get::<Geometry>(root).ok_or_else(|| missing("geometry"))?,
        locations: world.get::<Locations>(root).ok_or_else(|| missing("locations"))?,
        arena,
        emitter: Emitter::new(body),
        out: Lowered::default(),
        symbols: SmallVec::new(),
        pointers: NodeMap::default(),
        counts_workgroups: false,
        workgroup: [Operand::NONE; MAX_AXES],
        lane: Operand::NONE,
        wave: Scalar::ZERO,
        scalars: SmallVec::new(),
        digits: SmallVec::new(),
        vector_copies: SmallVec::new(),
        constants: SmallVec::new(),
        constant_pairs: SmallVec::new(),
        wide_constants: SmallVec::new(),
        lane_values: SmallVec::new(),
        wide_copies: SmallVec::new(),
        places: vec![None; entities],
        scattered: Vec::new(),
        multiplies: false,
        widened_pairs: std::collections::VecDeque::new(),
        element_pair: packed_floats::ElementPair::default(),
        uses: vec![0; entities],
        contents: SmallVec::new(),
        unfinished: Vec::new(),
        finishing: std::collections::VecDeque::new(),
        global_plans: NodeMap::default(),
        lds_plans: NodeMap::default(),
        mapped_lds_plans: NodeMap::default(),
        to_lds_plans: NodeMap::default(),
        moved_addresses: SmallVec::new(),
        descriptors: NodeMap::default(),
        tile_places: SmallVec::new(),
        results: NodeMap::default(),
        mapped_plans: NodeMap::default(),
        mapped: MappedState::default(),
        loops: SmallVec::new(),
        tiles: None,
        lds_bytes: world.get::<LdsBytes>(root).map_or(0, |bytes| bytes.0),
        whiles: 0,
    };
    let arguments = world.get::<Arguments>(root).ok_or_else(|| missing("arguments"))?;
    lowering.count_uses(root)?;
    let user_sgprs = match options.requested_kernarg_preload() {
        KernargPreload::Off => 0,
        // Those that a kernel is given to find its scratch stand between the pointer and the arguments.
        KernargPreload::Fitting => options.target().max_user_sgprs - options.target().scratch_user_sgprs(),
    };
    lowering.prologue(&arguments.0, user_sgprs)?;
    lowering.region(root)?;
    lowering.close_tiles();
    lowering.emitter.finish();
    Ok(lowering.out)
}

impl<'a> Lowering<'a> {
    pub(super) fn bug(&self, text: &str) -> Diagnostic {
        Diagnostic::new(Kind::Bug, text)
    }

    /// What a walk over the kernel asks of each node.
    pub(super) fn expanded(&self, node: Entity) -> Result<ExpandedNodeItem<'a, 'a>, Diagnostic> {
        match self.seen.get(node.index_u32() as usize) {
            Some(Some(seen)) => Ok(*seen),
            Some(None) | None => Ok(self.nodes.get_inner(node)?),
        }
    }

    /// The same for a node that has not been seen before.
    pub(super) fn first_seen(&mut self, node: Entity) -> Result<ExpandedNodeItem<'a, 'a>, Diagnostic> {
        let (index, seen) = (node.index_u32() as usize, self.nodes.get_inner(node)?);
        if index >= self.seen.len() {
            self.seen.resize(index + 1, None);
        }
        self.seen[index] = Some(seen);
        Ok(seen)
    }

    pub(super) fn get<C: Component>(&self, node: Entity) -> Result<&'a C, Diagnostic> {
        self.world
            .get::<C>(node)
            .ok_or_else(|| self.bug(&format!("a node has no {}", std::any::type_name::<C>())))
    }

    pub(super) fn at(&self, node: Entity) -> Option<crate::ir::diagnostic::Location> {
        self.world.get::<Origin>(node).and_then(|o| self.locations.get(o.0))
    }

    /// Size of an element of a value or memory in bytes.
    pub(super) fn element_bytes(&self, node: Entity) -> Result<u32, Diagnostic> {
        self.get::<ValueType>(node)?.dtype.map(|d| d.bytes()).ok_or_else(|| self.bug("a value without dtype"))
    }

    /// The sizes whose product is the number of elements from one coordinate of `dim` to the next in a memory
    /// of dimensions `dims`: those of the inner dimensions, unless the memory has strides.
    pub(super) fn stride_factors(&self, memory: Entity, dims: &[Dim], dim: Dim) -> Dims {
        let strides = self.world.get::<Strides>(memory);
        match strides.and_then(|strides| strides.0.get(dims.iter().position(|&d| d == dim)?)) {
            Some(factors) => Dims::from_slice(factors),
            None => dims.iter().rev().copied().take_while(|&d| d != dim).collect(),
        }
    }

    /// Elements from one coordinate of `dim` to the next in a memory of dimensions `dims`.
    pub(super) fn stride(&mut self, memory: Entity, dims: &[Dim], dim: Dim) -> Result<Expr, Diagnostic> {
        let mut stride = self.arena.int(1);
        for inner in self.stride_factors(memory, dims, dim) {
            let size = self.geometry.dim(inner).size;
            stride = self.arena.mul(stride, size).map_err(|e| self.too_large(&e))?;
        }
        Ok(stride)
    }

    /// The fault of offsets that cannot be computed.
    fn too_large(&self, error: &ExprError) -> Diagnostic {
        Diagnostic::new(Kind::Limit, format!("a memory is too large: {error}"))
            .at(self.locations.get(self.emitter.source))
            .help("offsets are computed with 64 bits: use smaller sizes")
    }

    /// Loads the arguments and names the registers that the hardware sets. Arguments at the beginning that
    /// fit into `user_sgprs` after the pointer to the segment are already in registers.
    fn prologue(&mut self, arguments: &[Entity], user_sgprs: u32) -> Result<(), Diagnostic> {
        let geometry = self.geometry;
        let mut offset: u32 = 0;
        // In the order of declaration, each aligned to its size, as C compilers lay out the parameters of a
        // kernel.
        for &argument in arguments {
            let slot = match self.nodes.get(argument).map(|node| *node.op) {
                Ok(Op::Scalar) => {
                    let bytes = self.element_bytes(argument)?;
                    ArgumentSlot::Scalar { scalar: argument, bytes, offset: offset.next_multiple_of(bytes) }
                }
                _ => ArgumentSlot::Pointer { memory: argument, offset: offset.next_multiple_of(8) },
            };
            self.out.arguments.push(slot);
            offset = slot.end();
        }
        for &symbol in &geometry.dynamic {
            self.out.arguments.push(ArgumentSlot::Symbol { symbol, offset });
            offset += 4;
        }
        self.out.kernarg_bytes = offset;
        let room = user_sgprs.saturating_sub(preload::FIRST_SGPR);
        let fits = |end: u32| end / 4 <= room;
        let preloaded = self.out.arguments.iter().map(|slot| slot.end()).take_while(|&end| fits(end)).last();
        self.out.preloaded_dwords = preloaded.unwrap_or(0) / 4;

        // A kernel without arguments gets no pointer to them.
        let kernarg = self.emitter.sgpr(2);
        let mut next_sgpr = 0;
        if offset > 0 {
            self.fix(kernarg, Operand::sgpr(0));
            next_sgpr = preload::FIRST_SGPR + self.out.preloaded_dwords;
        }
        self.counts_workgroups = geometry.counts_workgroups() || geometry.persistent.is_some();
        let used = |axis| geometry.dims.iter().any(|d| d.workgroup.is_some_and(|w| w.0 == axis));
        // Axes of which workgroups that share the grid need the numbers.
        let mut shared = [false; 3];
        for axis in 0..3 {
            let number = GridSymbol::Workgroup(axis);
            let counted = || {
                let number = number.symbol();
                let chosen = geometry.dims.iter().filter_map(|dim| dim.iterations);
                let mut limits = chosen.flat_map(|(first, end)| [first, end]);
                limits.any(|limit| self.arena.symbols(limit).contains(&number))
            };
            let counted = self.counts_workgroups && counted();
            let wanted = counted
                || match geometry.places.is_empty() {
                    true => used(axis),
                    false => {
                        let number = number.symbol();
                        let places = (0..).zip(&geometry.places).filter(|&(axis, _)| used(axis));
                        places.into_iter().any(|(_, &place)| self.arena.symbols(place).contains(&number))
                    }
                };
            if wanted && geometry.persistent.is_some() {
                shared[axis as usize] = true;
            } else if wanted {
                let id = self.emitter.sgpr(1);
                self.fix(id, Operand::sgpr(next_sgpr));
                self.workgroup[axis as usize] = id;
                self.out.workgroup_ids[axis as usize] = true;
                next_sgpr += 1;
                if self.counts_workgroups {
                    self.symbols.push((number.symbol(), id));
                }
            }
        }
        let mut number = None;
        if geometry.persistent.is_some() {
            let id = self.emitter.sgpr(1);
            self.fix(id, Operand::sgpr(next_sgpr));
            self.out.workgroup_ids[0] = true;
            number = Some(id);
        }
        let thread = self.emitter.vgpr(1);
        self.fix(thread, Operand::vgpr(0));
        for at in 0..self.out.arguments.len() {
            match self.out.arguments[at] {
                ArgumentSlot::Pointer { memory, offset } => {
                    let pointer = self.argument(2, Opcode::SLoadDwordx2, kernarg, offset);
                    self.pointers.insert(memory, pointer);
                }
                ArgumentSlot::Scalar { scalar, bytes, offset } => {
                    let load = if bytes == 8 { Opcode::SLoadDwordx2 } else { Opcode::SLoadDword };
                    let register = self.argument(bytes / 4, load, kernarg, offset);
                    self.set_place(scalar, ValuePlace::Uniform(register));
                    if geometry.chooses_iterations()
                        && let Some(name) = self.world.get::<node::Name>(scalar)
                    {
                        let symbol = Symbol::new(&name.0);
                        if !geometry.dynamic.contains(&symbol) && self.chooses_iterations(symbol) {
                            self.symbols.push((symbol, register));
                        }
                    }
                }
                ArgumentSlot::Symbol { symbol, offset } => {
                    let register = self.argument(1, Opcode::SLoadDword, kernarg, offset);
                    self.symbols.push((symbol, register));
                }
            }
        }
        self.thread_position(thread);
        if let Some(number) = number {
            self.open_tiles(number, shared)?;
        }
        for (axis, &place) in (0..).zip(&geometry.places).filter(|&(axis, _)| used(axis)) {
            let place = self.scalar(place)?;
            self.workgroup[axis as usize] = self.emitter.in_sgpr(place);
        }
        Ok(())
    }

    fn fix(&mut self, register: Operand, physical: Operand) {
        if let Some((id, _)) = register.as_virtual() {
            self.out.fixed.push((id, physical));
        }
    }

    /// The registers of an argument: where firmware has put it, or where it is loaded to.
    fn argument(&mut self, width: u32, op: Opcode, kernarg: Operand, offset: u32) -> Operand {
        let register = self.emitter.sgpr(width);
        if offset / 4 < self.out.preloaded_dwords {
            self.fix(register, Operand::sgpr(preload::FIRST_SGPR + offset / 4));
        } else {
            self.emitter.push(crate::codegen::isa::Inst::new(op, &[register, kernarg]).imm(offset));
        }
        register
    }
}
