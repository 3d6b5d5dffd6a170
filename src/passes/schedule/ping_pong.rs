//! Ping-pong: the two waves of a SIMD take turns, one computing while the other moves data.
//!
//! A loop that multiplies what it has loaded through LDS is cut into four clusters with a barrier behind each; a barrier more before the loop holds
//! one half of the waves one cluster behind the other half, so that one half's matrix instructions meet the other's memory operations. All
//! of it is written down as an author's schedule ([`schedule`]), which authors can print, copy and change.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;
use thiserror::Error;

use super::dependences::LoopGraph;
use super::resources::Class;
use super::selection::coordinate;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::schedule::{Directive, NodeType, WaveSchedule};
use crate::ir::types::AddressSpace::Global;
use crate::passes::expand::Expansion;
use crate::passes::facts::{Geometry, Settings};

/// Parts into which the matrix instructions of an iteration are cut: one for each compute cluster.
const SLICES: u32 = 2;

/// Tags of the operations that the schedule speaks of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roles<'a> {
    /// The loop.
    pub k_loop: &'a str,
    /// The read of the left factor, which is promoted to LDS.
    pub lhs: &'a str,
    /// The read of the right factor.
    pub rhs: &'a str,
    /// The product.
    pub mma: &'a str,
    /// The dimension that the loop runs over.
    pub k: Symbol,
}

/// Why a loop gets no ping-pong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Unsuitable {
    /// No two waves of a workgroup meet on a SIMD.
    #[error("a workgroup has {0} waves: ping-pong takes two for each of the four SIMDs, or four")]
    Waves(u32),
    /// Nothing to compute.
    #[error("the loop has no matrix product over its dimension")]
    NoProduct,
    /// More than one.
    #[error("the loop has more than one matrix product")]
    SeveralProducts,
    /// Factors do not come through LDS.
    #[error("the {0} factor of the product is not loaded through LDS")]
    NotThroughLds(&'static str),
    /// Both factors are the same.
    #[error("both factors of the product are one")]
    OneFactor,
    /// Something that belongs to no cluster.
    #[error("the loop holds {0} beside loads and the product")]
    Others(&'static str),
    /// Matrix instructions that cannot be cut in two.
    #[error("a tile has {0} steps along the loop's dimension, which are not two equal parts")]
    Steps(usize),
    /// LDS reads that cannot be cut in two.
    #[error(
        "an LDS read of the {0} factor brings all that a tile has along the loop's dimension, which cannot be cut in two"
    )]
    WideReads(&'static str),
    /// The memory clusters take longer than the compute clusters, so taking turns gains nothing.
    #[error(
        "matrix instructions take {compute} cycles per iteration and LDS {memory}: there is nothing to hide behind"
    )]
    MemoryBound {
        /// Clocks of the matrix instructions of one wave.
        compute: u32,
        /// Clocks of the LDS accesses of half of the waves.
        memory: u32,
    },
}

/// The logical nodes of a loop that multiplies what it has loaded through LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// The loop.
    k_loop: Entity,
    /// Logical reads from LDS, writes to it and global reads of both factors.
    factors: [[Entity; 3]; 2],
    mma: Entity,
    axis: Dim,
}

fn logical(world: &World, node: Entity) -> Entity {
    world.get::<Expansion>(node).map_or(node, |e| e.logical)
}

/// Finds the operations of a loop that can take turns.
///
/// # Errors
/// Why it is not such a loop, or gains nothing.
pub fn classify(world: &World, root: Entity, node: Entity, found: &LoopGraph) -> Result<Product, Unsuitable> {
    let waves = world.get::<Geometry>(root).map_or(0, Geometry::wave_count);
    let simds = world.get::<Settings>(root).map_or(4, |s| s.0.target().simds_per_compute_unit);
    if waves == 0 || waves % (2 * simds) != 0 {
        return Err(Unsuitable::Waves(waves));
    }
    let Some(&Op::Iterate(axis)) = world.get::<Op>(node) else { return Err(Unsuitable::NoProduct) };
    let body = &found.graph.nodes()[..found.body as usize];
    let mut mma = None;
    for graph_node in body.iter().filter(|n| n.class == Class::Mma) {
        let own = logical(world, graph_node.entity);
        if mma.is_some_and(|known| known != own) {
            return Err(Unsuitable::SeveralProducts);
        }
        mma = Some(own);
    }
    let mma = mma.ok_or(Unsuitable::NoProduct)?;
    let operands = world.get::<Operands>(mma).map(|o| o.0.clone()).unwrap_or_default();
    let mut factors = [[mma; 3]; 2];
    for ((slot, &operand), side) in factors.iter_mut().zip(&operands).zip(["left", "right"]) {
        let has_axis = world.get::<ValueType>(operand).is_some_and(|ty| ty.dims.contains(&axis));
        if !has_axis {
            return Err(Unsuitable::NoProduct);
        }
        let through = found.buffers.iter().find_map(|buffer| {
            let entity = |n: u32| body[n as usize].entity;
            let read = logical(world, entity(*buffer.reads.first()?));
            let write = entity(*buffer.writes.first()?);
            let load = world.get::<Operands>(write)?.0.first().copied()?;
            (read == operand).then_some([read, logical(world, write), logical(world, load)])
        });
        *slot = through.ok_or(Unsuitable::NotThroughLds(side))?;
    }
    if factors[0] == factors[1] {
        return Err(Unsuitable::OneFactor);
    }
    let known: SmallVec<[Entity; 8]> = factors.iter().flatten().copied().chain([mma]).collect();
    for graph_node in body.iter().filter(|n| n.class != Class::Free) {
        if !known.contains(&logical(world, graph_node.entity)) {
            return Err(Unsuitable::Others(match graph_node.class {
                Class::ReadGlobal => "other global reads",
                Class::WriteGlobal => "global writes",
                Class::ReadShared | Class::WriteShared | Class::GlobalToShared => "other LDS accesses",
                Class::Valu | Class::Shuffle | Class::Mma | Class::Free => "arithmetic",
            }));
        }
    }
    let places = |of: Entity| {
        let own = body.iter().filter(|n| logical(world, n.entity) == of);
        let mut places: Vec<(u32, u32)> = own.map(|n| coordinate(world, n.entity, axis)).collect();
        places.sort_unstable();
        places.dedup();
        places.len()
    };
    let steps = places(mma);
    if steps % SLICES as usize != 0 {
        return Err(Unsuitable::Steps(steps));
    }
    for ([read, ..], side) in factors.iter().zip(["left", "right"]) {
        if places(*read) < SLICES as usize {
            return Err(Unsuitable::WideReads(side));
        }
    }
    Ok(Product { k_loop: node, factors, mma, axis })
}

/// Tags of a product's operations: the author's where they name one operation alone, else new ones.
pub fn tag(world: &mut World, root: Entity, product: &Product) -> Tags {
    let loop_node = logical(world, product.k_loop);
    let [lhs, rhs] = product.factors;
    let k_loop = tag_as(world, root, &[loop_node], "ping_pong_loop");
    let lhs = tag_as(world, root, &lhs, "ping_pong_lhs");
    let rhs = tag_as(world, root, &rhs, "ping_pong_rhs");
    let mma = tag_as(world, root, &[product.mma], "ping_pong_mma");
    let k = world.get::<DimTable>(root).and_then(|d| d.0.get(product.axis.0 as usize).copied());
    Tags { k_loop, lhs, rhs, mma, k: k.unwrap_or_else(|| Symbol::new("K")) }
}

/// Owned [`Roles`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tags {
    k_loop: Box<str>,
    lhs: Box<str>,
    rhs: Box<str>,
    mma: Box<str>,
    k: Symbol,
}

impl Tags {
    /// As the schedule takes them.
    pub fn roles(&self) -> Roles<'_> {
        let Tags { k_loop, lhs, rhs, mma, k } = self;
        Roles { k_loop, lhs, rhs, mma, k: *k }
    }
}

/// The tag that all of `nodes` and no others have; if there is none, `fresh` is given to them.
fn tag_as(world: &mut World, root: Entity, nodes: &[Entity], fresh: &str) -> Box<str> {
    let own = nodes.first().and_then(|&n| world.get::<Tag>(n)).map(|tag| tag.0.clone());
    if let Some(own) = own {
        let mut alone = nodes.iter().all(|&n| world.get::<Tag>(n).is_some_and(|tag| tag.0 == own));
        crate::ir::walk::visit(world, root, &mut |node| {
            let logical = logical(world, node);
            let same = world.get::<Tag>(logical).is_some_and(|tag| tag.0 == own);
            let carried = matches!(world.get::<Op>(node), Some(Op::IterArg(_) | Op::LoopResult(_)));
            // Remainders are copies with the same tags, which no schedule touches.
            alone &= !same || carried || nodes.contains(&logical) || is_copy(world, logical, nodes);
        });
        if alone {
            return own;
        }
    }
    for &node in nodes {
        world.entity_mut(node).insert(Tag(fresh.into()));
    }
    fresh.into()
}

/// True for a copy of one of the nodes: what the author wrote at the same place.
fn is_copy(world: &World, node: Entity, nodes: &[Entity]) -> bool {
    let origin = world.get::<Origin>(node);
    nodes.iter().any(|&n| world.get::<Origin>(n) == origin && world.get::<Op>(n) == world.get::<Op>(node))
}

/// The ping-pong schedule of two clusters of memory operations and two of matrix instructions, for a kernel with these tags.
///
/// # Errors
/// None for tags and symbols that exist; the schedule itself is judged when a kernel is compiled with it.
pub fn schedule(roles: &Roles<'_>) -> Result<WaveSchedule, Diagnostic> {
    let fence = Directive::SharedMemoryBarrier;
    let priority = |level| Directive::Control(Control::SetWavePriority(level));
    let fixed = Directive::Control(Control::SchedulingBarrier);
    WaveSchedule::trace("two_pp_cluster", |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let factor = |tag: &str| {
            let reads = s.get_node_by_tag_and_type(tag, NodeType::Read);
            let (global, shared) = s.partition_by_address_space(reads, Global);
            (global, shared, s.get_node_by_tag_and_type(tag, NodeType::Write))
        };
        let (global_load_lhs, local_load_lhs, local_write_lhs) = factor(roles.lhs);
        let (global_load_rhs, local_load_rhs, local_write_rhs) = factor(roles.rhs);
        let mma = s.get_node_by_tag(roles.mma);
        let pipelined = s.pipeline(k_loop, |p| {
            p.set_stage(((global_load_lhs, global_load_rhs), (local_write_lhs, local_write_rhs)));
            p.set_stage(((local_load_lhs, local_load_rhs), mma));
        });
        let kernel = pipelined.kernel();
        let of_kernel = |list| s.filter_nodes(list, Some(kernel), None);
        let halves = |list| s.partition_by_dim::<2>(of_kernel(list), roles.k);
        let [lhs_0, lhs_1] = halves(local_load_lhs);
        let [rhs_0, rhs_1] = halves(local_load_rhs);
        let [mma_0, mma_1] = halves(mma);
        let read = s.cluster((
            (lhs_0, rhs_0, fixed, of_kernel(global_load_lhs), fixed),
            (lhs_1, rhs_1, fixed, of_kernel(global_load_rhs), fence, fixed),
        ));
        let first = s.cluster((priority(1), mma_0, priority(0), fence, fixed));
        let write = s.cluster((of_kernel(local_write_lhs), of_kernel(local_write_rhs), fence, fixed));
        let second = s.cluster((priority(1), mma_1, priority(0), fixed));
        s.reorder_graph(kernel, (read, first, write, second));
        s.insert_at_end(kernel, fence);
        s.insert_before(kernel, fence);
        s.stagger(kernel);
    })
}
