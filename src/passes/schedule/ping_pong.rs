//! Ping-pong: the two waves of a SIMD take turns, one computing while the other moves data.
//!
//! A loop that multiplies what it has loaded through LDS is cut into four clusters with a barrier behind each; a barrier more before the loop holds
//! one half of the waves one cluster behind the other half, so that one half's matrix instructions meet the other's memory operations. All
//! of it is written down as an author's schedule ([`schedule`]), which authors can print, copy and change. Where factors are loaded straight
//! into LDS, there is nothing to write, and the second cluster of memory operations reads the second half ([`schedule_of_direct_loads`]).

use bevy_ecs::prelude::*;
use smallvec::SmallVec;
use thiserror::Error;

use super::copies::{self, TooLarge};
use super::dependences::LoopGraph;
use super::graph::GraphNode;
use super::pressure;
use super::resources::Class;
use super::selection::coordinate;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::schedule::{Directive, Interleave, NodeType, Nodes, WaveSchedule};
use crate::ir::types::AddressSpace::Global;
use crate::ir::types::DType;
use crate::passes::expand::Expansion;
use crate::passes::facts::{Geometry, Settings};

/// Clocks of a load from idle HBM on MI300X (MrRoy09/AMD-CDNA3-CacheBenchmarking; 801 to 900 by others).
const GLOBAL_LATENCY: u32 = 865;

/// Clocks from an LDS read to its data, or from a write to the barrier behind it, with the queue that a whole cluster makes: assumed.
const LDS_LATENCY: u32 = 100;

/// Bytes that LDS moves per clock for a compute unit (CDNA3 white paper).
const LDS_RATE: u32 = 128;

/// Parts into which the matrix instructions of an iteration are cut: one for each compute cluster.
const SLICES: u32 = 2;

/// Clocks in which a compute unit takes a load straight into LDS (MI308X, from HBM).
const DIRECT_LOAD: u32 = 11;

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

/// How factors come into LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// By global loads and LDS writes.
    ThroughRegisters,
    /// By loads straight into LDS.
    Direct,
}

/// How the operations of an iteration fall into clusters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Global loads of both factors, per wave and iteration; they matter where some are late.
    pub loads: [u32; 2],
    /// How many of each, the last ones, wait until half of the first compute cluster has given its registers back.
    pub late_loads: [u32; 2],
    /// Matrix instructions of the first compute cluster.
    pub products: u32,
    /// Parts into which the LDS reads of each factor fall along `k`: 1 or 2.
    pub read_parts: [u32; 2],
    /// The dimension along which the first compute cluster goes part by part, and how many parts, where late loads wait for the registers
    /// of the right factor; otherwise it runs as expanded, and gives back those of the left one.
    pub columns: Option<(Symbol, u32)>,
}

impl Cut {
    /// All loads beside the LDS reads, and reads that fall into two parts.
    pub const EVEN: Cut =
        Cut { loads: [0; 2], late_loads: [0; 2], products: 0, read_parts: [2; 2], columns: None };
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
    /// One of the two is loaded straight into LDS.
    #[error("one factor of the product is loaded straight into LDS and the other is not")]
    DifferentWays,
    /// Both factors are the same.
    #[error("both factors of the product are one")]
    OneFactor,
    /// Loads straight into LDS bring two copies of it, whose addresses the vector ALU adds.
    #[error(
        "products of {0} run on the vector ALU, which addresses of loads straight into LDS would wait for"
    )]
    VectorAlu(DType),
    /// Something that belongs to no cluster.
    #[error("the loop holds {0} beside loads and the product")]
    Others(&'static str),
    /// Matrix instructions that cannot be cut in two.
    #[error("a tile has {0} steps along the loop's dimension, which are not two equal parts")]
    Steps(usize),
    /// The tiles, or two copies of those that are loaded straight into LDS, do not fit.
    #[error(transparent)]
    Lds(#[from] TooLarge),
    /// Taking turns costs more than it hides.
    #[error("taking turns would need about {turns} clocks per iteration, and prefetching alone {together}")]
    NoGain {
        /// Clocks of an iteration with ping-pong.
        turns: u32,
        /// Clocks of an iteration without.
        together: u32,
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
    way: Way,
    /// How its operations fall into clusters.
    pub cut: Cut,
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
    if waves == 0 || !waves.is_multiple_of(2 * simds) {
        return Err(Unsuitable::Waves(waves));
    }
    let Some(&Op::Iterate(axis)) = world.get::<Op>(node) else { return Err(Unsuitable::NoProduct) };
    let body = &found.graph.nodes()[..found.body as usize];
    let origins: Vec<Entity> = body.iter().map(|n| logical(world, n.entity)).collect();
    let mut mma = None;
    for (_, &own) in body.iter().zip(&origins).filter(|(n, _)| n.class == Class::Mma) {
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
            let read = origins[*buffer.reads.first()? as usize];
            let write = *buffer.writes.first()? as usize;
            let entity = body[write].entity;
            let load = match world.get::<Op>(entity)? {
                Op::GlobalToShared => entity,
                _ => world.get::<Operands>(entity)?.0.first().copied()?,
            };
            (read == operand).then_some([read, origins[write], logical(world, load)])
        });
        *slot = through.ok_or(Unsuitable::NotThroughLds(side))?;
    }
    if factors[0] == factors[1] {
        return Err(Unsuitable::OneFactor);
    }
    let way = match factors.map(|[_, write, load]| write == load) {
        [true, true] => Way::Direct,
        [false, false] => Way::ThroughRegisters,
        _ => return Err(Unsuitable::DifferentWays),
    };
    let known: SmallVec<[Entity; 8]> = factors.iter().flatten().copied().chain([mma]).collect();
    for (graph_node, own) in body.iter().zip(&origins).filter(|(n, _)| n.class != Class::Free) {
        if !known.contains(own) {
            return Err(Unsuitable::Others(match graph_node.class {
                Class::ReadGlobal => "other global reads",
                Class::WriteGlobal => "global writes",
                Class::ReadShared | Class::WriteShared | Class::GlobalToShared => "other LDS accesses",
                Class::Valu | Class::Shuffle | Class::Mma | Class::Free => "arithmetic",
            }));
        }
    }
    let is_control = |n: &GraphNode| matches!(world.get::<Op>(n.entity), Some(Op::Barrier | Op::Control(_)));
    if body.iter().any(is_control) {
        return Err(Unsuitable::Others("barriers or controls"));
    }
    let places_along = |node: Entity, dim: Dim| {
        let own = body.iter().zip(&origins).filter(|(_, own)| **own == node);
        let mut places: Vec<(u32, u32)> = own.map(|(n, _)| coordinate(world, n.entity, dim)).collect();
        places.sort_unstable();
        places.dedup();
        places.len()
    };
    let places = |node: Entity| places_along(node, axis);
    let steps = places(mma);
    if !steps.is_multiple_of(SLICES as usize) {
        return Err(Unsuitable::Steps(steps));
    }
    let read_parts = factors.map(|factor| places(factor[0]).min(2) as u32);
    // The vector ALU runs nothing beside matrix instructions on f32 (AMD matrix instruction calculator, "VALU co-execution").
    let input = world.get::<ValueType>(factors[0][0]).and_then(|ty| ty.dtype);
    if let (Way::Direct, Some(input @ DType::F32)) = (way, input) {
        return Err(Unsuitable::VectorAlu(input));
    }
    let needed = copies::all_bytes(world, root).saturating_mul(match way {
        Way::ThroughRegisters => 1,
        Way::Direct => 2,
    });
    let limit = world.get::<Settings>(root).map_or(u32::MAX, |s| s.0.target().max_lds_per_workgroup);
    if needed > limit {
        return Err(TooLarge { needed, limit }.into());
    }
    let half = Halves { waves: waves / 2, per_simd: waves / (2 * simds) };
    gain(world, found, &half, read_parts)?;
    let count = |node: Entity| origins.iter().filter(|own| **own == node).count() as u32;
    let loads = factors.map(|factor| count(factor[2]));
    let late_loads = match way {
        Way::ThroughRegisters => late_loads(world, root, body, &origins, factors.map(|factor| factor[2])),
        Way::Direct => [0; 2],
    };
    let own_dims = factors.map(|[read, ..]| {
        let dims = world.get::<ValueType>(read).map(|ty| &ty.dims[..]).unwrap_or_default();
        dims.iter().copied().find(|&dim| dim != axis)
    });
    let [rows, columns] = own_dims.map(|dim| dim.map_or(1, |dim| places_along(mma, dim)));
    let symbol = || world.get::<DimTable>(root)?.0.get(own_dims[1]?.0 as usize).copied();
    let columns = match late_loads {
        [0, 0] => None,
        _ if columns <= rows => None,
        _ => symbol().map(|symbol| (symbol, columns as u32)),
    };
    let cut = Cut { loads, late_loads, products: count(mma) / SLICES, read_parts, columns };
    Ok(Product { k_loop: node, factors, mma, axis, way, cut })
}

/// Waves that take turns.
struct Halves {
    /// Waves of one half.
    waves: u32,
    /// Those of them on one SIMD.
    per_simd: u32,
}

/// Estimates what taking turns gains: four epochs, each as long as its memory cluster or half of the matrix instructions, but two of them no
/// shorter than a global load, against LDS reads and matrix instructions of both halves one after the other.
fn gain(world: &World, found: &LoopGraph, half: &Halves, read_parts: [u32; 2]) -> Result<(), Unsuitable> {
    let body = &found.graph.nodes()[..found.body as usize];
    let of = |class: Class| body.iter().filter(move |n| n.class == class);
    let clocks = |node: &GraphNode| match world.get::<Op>(node.entity) {
        Some(Op::Mma(MmaChoice::Explicit(mma))) => 4 * mma.passes(),
        _ => 0,
    };
    let bytes = |node: &GraphNode| {
        let value = match node.class {
            Class::WriteShared => world.get::<Operands>(node.entity).and_then(|o| o.0.first().copied()),
            _ => Some(node.entity),
        };
        256 * value.map_or(0, |value| pressure::registers(world, value))
    };
    let compute = of(Class::Mma).map(clocks).sum::<u32>() * half.per_simd;
    let half_reads = of(Class::ReadShared).map(bytes).sum::<u32>() * half.waves / LDS_RATE;
    let half_writes = of(Class::WriteShared).map(bytes).sum::<u32>() * half.waves / LDS_RATE;
    let half_loads = of(Class::GlobalToShared).count() as u32 * half.waves * DIRECT_LOAD;
    let memory = match (half_loads, read_parts) {
        (0, _) => [half_reads, half_writes],
        (_, [1, 1]) => [half_reads + half_loads, 0],
        _ => [half_reads / 2 + half_loads, half_reads / 2],
    };
    let epoch = |memory: u32| (memory + LDS_LATENCY).max(compute / 2);
    let turns = (2 * epoch(memory[0]) + 2 * epoch(memory[1])).max(2 * GLOBAL_LATENCY);
    let together = (2 * half_reads + 2 * compute).max(GLOBAL_LATENCY + 3 * LDS_LATENCY).max(2 * half_loads);
    if turns < together { Ok(()) } else { Err(Unsuitable::NoGain { turns, together }) }
}

/// How many global loads of each factor find no register while all factors of a tile are in registers: first those of the right one.
/// `origins` are the logical nodes of `body`, `loads` those of the two factors' loads.
fn late_loads(
    world: &World,
    root: Entity,
    body: &[GraphNode],
    origins: &[Entity],
    loads: [Entity; 2],
) -> [u32; 2] {
    let mut all = 0;
    let (mut counts, mut registers) = ([0u32; 2], [0u32; 2]);
    for (node, own) in body.iter().zip(origins) {
        let is_read = matches!(node.class, Class::ReadShared | Class::ReadGlobal);
        if !is_read && !matches!(world.get::<Op>(node.entity), Some(Op::IterArg(_))) {
            continue;
        }
        let width = pressure::registers(world, node.entity);
        all += width;
        if let Some(side) = loads.iter().position(|load| load == own) {
            counts[side] += 1;
            registers[side] += width;
        }
    }
    let mut excess = all.saturating_sub(pressure::available(world, root));
    let mut late = [0; 2];
    for side in [1, 0] {
        let each = (registers[side] / counts[side].max(1)).max(1);
        late[side] = excess.div_ceil(each).min(counts[side]);
        excess = excess.saturating_sub(late[side] * each);
    }
    late
}

/// Tags of a product's operations: the author's where they name one operation alone, else new ones.
pub fn tag(world: &mut World, root: Entity, product: &Product) -> Tags {
    let loop_node = logical(world, product.k_loop);
    let [lhs, rhs] = product.factors;
    let tagged = tagged(world, root);
    let k_loop = tag_as(world, &tagged, &[loop_node], "ping_pong_loop");
    let lhs = tag_as(world, &tagged, &lhs, "ping_pong_lhs");
    let rhs = tag_as(world, &tagged, &rhs, "ping_pong_rhs");
    let mma = tag_as(world, &tagged, &[product.mma], "ping_pong_mma");
    let k = world.get::<DimTable>(root).and_then(|d| d.0.get(product.axis.0 as usize).copied());
    let k = k.unwrap_or_else(|| Symbol::new("K"));
    Tags { k_loop, lhs, rhs, mma, k }
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
        let &Tags { ref k_loop, ref lhs, ref rhs, ref mma, k } = self;
        Roles { k_loop, lhs, rhs, mma, k }
    }
}

/// All tagged logical nodes but carried values, which share the tag of what they carry.
fn tagged(world: &World, root: Entity) -> Vec<Entity> {
    let mut found: Vec<Entity> = Vec::new();
    let mut last = root;
    crate::ir::walk::visit(world, root, &mut |node| {
        let own = logical(world, node);
        if own != last {
            last = own;
            let carried = matches!(world.get::<Op>(node), Some(Op::IterArg(_) | Op::LoopResult(_)));
            if !carried && world.get::<Tag>(own).is_some() && !found.contains(&own) {
                found.push(own);
            }
        }
    });
    found
}

/// The tag that all of `nodes` and none of the other `tagged` ones have; if there is none, `fresh` is given to them.
fn tag_as(world: &mut World, tagged: &[Entity], nodes: &[Entity], fresh: &str) -> Box<str> {
    let tag_of = |node: Entity| world.get::<Tag>(node).map(|tag| &tag.0);
    if let Some(own) = nodes.first().and_then(|&n| tag_of(n)) {
        let same = |&node: &Entity| tag_of(node) == Some(own);
        // Remainders are copies with the same tags, which no schedule touches.
        let others = |node: &Entity| !nodes.contains(node) && !is_copy(world, *node, nodes);
        if nodes.iter().all(same) && !tagged.iter().filter(|n| same(n)).any(others) {
            return own.clone();
        }
    }
    // Other loops that take turns have tags like these already.
    let used = |name: &str| tagged.iter().any(|&n| tag_of(n).is_some_and(|tag| **tag == *name));
    let mut name = fresh.to_owned();
    for number in 2.. {
        if !used(&name) {
            break;
        }
        name = format!("{fresh}_{number}");
    }
    for &node in nodes {
        world.entity_mut(node).insert(Tag(name.as_str().into()));
    }
    name.into()
}

/// True for a copy of one of the nodes: what the author wrote at the same place.
fn is_copy(world: &World, node: Entity, nodes: &[Entity]) -> bool {
    let origin = world.get::<Origin>(node);
    nodes.iter().any(|&n| world.get::<Origin>(n) == origin && world.get::<Op>(n) == world.get::<Op>(node))
}

/// The schedule of a product.
///
/// # Errors
/// As [`schedule`].
pub fn schedule_of(product: &Product, tags: &Tags) -> Result<WaveSchedule, Diagnostic> {
    match product.way {
        Way::ThroughRegisters => schedule(&tags.roles(), &product.cut),
        Way::Direct => schedule_of_direct_loads(&tags.roles(), &product.cut),
    }
}

/// The ping-pong schedule of two clusters of memory operations and two of matrix instructions, for a kernel with these tags.
///
/// # Errors
/// None for tags and symbols that exist; the schedule itself is judged when a kernel is compiled with it.
pub fn schedule(roles: &Roles<'_>, cut: &Cut) -> Result<WaveSchedule, Diagnostic> {
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
        // Reads that bring both halves at once come first.
        let parts = |list, parts| match parts {
            1 => (of_kernel(list), Vec::new()),
            _ => {
                let [first, second] = halves(list);
                (first, vec![second])
            }
        };
        let (lhs_0, lhs_1) = parts(local_load_lhs, cut.read_parts[0]);
        let (rhs_0, rhs_1) = parts(local_load_rhs, cut.read_parts[1]);
        let [mma_0, mma_1] = halves(mma);
        let loads = [global_load_lhs, global_load_rhs].map(of_kernel);
        let items = |side: usize, range: std::ops::Range<u32>| {
            range.map(|at| s.getitem(loads[side], at)).collect::<Vec<_>>()
        };
        let early = |side: usize| match (cut.loads[side], cut.late_loads[side]) {
            (_, 0) => vec![loads[side]],
            (all, late) => items(side, 0..all.saturating_sub(late)),
        };
        let late: Vec<Nodes> = [0, 1]
            .into_iter()
            .flat_map(|side| {
                items(side, cut.loads[side].saturating_sub(cut.late_loads[side])..cut.loads[side])
            })
            .collect();
        let first_products = match late.len() as u32 {
            0 => mma_0,
            count => {
                let half = cut.products / 2;
                let group = Interleave::of(late).start_offset(half).interval((half / count).max(1));
                match cut.columns {
                    None => s.interleave_ops(mma_0, [group]),
                    Some((dim, parts)) => {
                        s.interleave_ops(s.partition_by_dim_into(mma_0, dim, parts as usize), [group])
                    }
                }
            }
        };
        let read = s
            .cluster(((lhs_0, rhs_0, fixed, early(0), fixed), (lhs_1, rhs_1, fixed, early(1), fence, fixed)));
        let first = s.cluster((priority(1), first_products, priority(0), fence, fixed));
        let write = s.cluster((of_kernel(local_write_lhs), of_kernel(local_write_rhs), fence, fixed));
        let second = s.cluster((priority(1), mma_1, priority(0), fixed));
        s.reorder_graph(kernel, (read, first, write, second));
        s.insert_at_end(kernel, fence);
        s.insert_before(kernel, fence);
        s.stagger(kernel);
    })
}

/// The ping-pong schedule of a kernel whose factors are loaded straight into LDS: no cluster writes, and loads have until the end of the second
/// memory cluster.
///
/// # Errors
/// As [`schedule`].
pub fn schedule_of_direct_loads(roles: &Roles<'_>, cut: &Cut) -> Result<WaveSchedule, Diagnostic> {
    let fence = Directive::SharedMemoryBarrier;
    let barrier = Directive::Control(Control::WorkgroupBarrier);
    let priority = |level| Directive::Control(Control::SetWavePriority(level));
    let fixed = Directive::Control(Control::SchedulingBarrier);
    let under_way = u8::try_from(cut.loads[0] + cut.loads[1]).unwrap_or(u8::MAX);
    let wait = Directive::Control(Control::WaitForLoads(under_way));
    WaveSchedule::trace("async_two_pp_cluster", |s| {
        let k_loop = s.get_node_by_tag(roles.k_loop);
        let [(load_lhs, local_load_lhs), (load_rhs, local_load_rhs)] = [roles.lhs, roles.rhs].map(|tag| {
            let load = s.get_node_by_tag_and_type(tag, NodeType::GlobalToShared);
            (load, s.get_node_by_tag_and_type(tag, NodeType::Read))
        });
        let mma = s.get_node_by_tag(roles.mma);
        let pipelined = s.pipeline(k_loop, |p| {
            p.set_stage(((load_lhs, load_rhs), ()));
            p.set_stage(((local_load_lhs, local_load_rhs), mma));
        });
        let kernel = pipelined.kernel();
        let of_kernel = |list| s.filter_nodes(list, Some(kernel), None);
        let halves = |list| s.partition_by_dim::<2>(of_kernel(list), roles.k);
        let parts = |list, parts| match parts {
            1 => (of_kernel(list), Vec::new()),
            _ => {
                let [first, second] = halves(list);
                (first, vec![second])
            }
        };
        let (lhs_0, lhs_1) = parts(local_load_lhs, cut.read_parts[0]);
        let (rhs_0, rhs_1) = parts(local_load_rhs, cut.read_parts[1]);
        let [mma_0, mma_1] = halves(mma);
        let loads = (of_kernel(load_lhs), of_kernel(load_rhs));
        let read = s.cluster((lhs_0, rhs_0, fixed, loads, fixed, barrier, fixed));
        let first = s.cluster((priority(1), mma_0, priority(0), fixed, wait, barrier, fixed));
        // Where no reads are left for the second memory cluster, its barrier stands in front of the matrix instructions.
        let second = match cut.read_parts {
            [1, 1] => s.cluster((fence, fixed, priority(1), mma_1, priority(0), fixed)),
            _ => s.cluster((lhs_1, rhs_1, fixed, fence, fixed, priority(1), mma_1, priority(0), fixed)),
        };
        s.reorder_graph(kernel, (read, first, second));
        s.insert_at_end(kernel, fence);
        s.insert_before(kernel, fence);
        s.stagger(kernel);
    })
}
