//! Ping-pong: the two waves of a SIMD take turns, one computing while the other moves data.
//!
//! A loop that multiplies what it has loaded through LDS is cut into four clusters with a barrier after each;
//! one more barrier before the loop holds back one half of the waves by one cluster, so that one half's
//! matrix instructions meet the other's memory operations. All of it is written down as an author's schedule
//! ([`schedule`]), which authors can print, copy and change. Where factors are loaded straight into LDS,
//! there is nothing to write: one cluster of memory operations reads tiles, and the other one loads others
//! ([`schedule_of_whole_tiles`]), or reads the second half where there are too few registers for whole tiles
//! ([`schedule_of_direct_loads`]).
//!
//! - `cost`: what taking turns gains, and for which loads there is no register
//! - `clusters`: the schedules in which each half of a tile is read and multiplied
//! - `early_loads`: the same where there are registers in which loads can wait for a whole trip
//! - `whole_tiles`: the schedule in which tiles are read whole
//! - `quadrants`: four regions instead of two clusters, of which each multiplies a quarter of the tile
//! - `unsuitable`: why a loop gets none

mod clusters;
mod cost;
mod early_loads;
pub(crate) mod quadrants;
mod unsuitable;
mod whole_tiles;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use self::cost::{LoopWork, late_loads};
pub(crate) use self::unsuitable::Unsuitable;
use self::whole_tiles::{alone_and_beside_reads, loads_under_way};
pub use super::products::Roles;
use super::products::operations::Operations;
pub(crate) use super::products::tags::{Tags, plain};
use super::products::{OtherLoop, ProductLoop};
use crate::ir::control::MAX_LOADS;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::schedule::WaveSchedule;
use crate::ir::types::DType;
use crate::passes::schedule::apply::copies::LdsRoom;
use crate::passes::schedule::apply::pressure;
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::SchedulerView;

pub use self::clusters::{schedule, schedule_of_direct_loads};
pub use self::early_loads::schedule_of_early_loads;
pub use self::whole_tiles::schedule_of_whole_tiles;

/// Writes down the schedule of a loop in which the two waves of a SIMD take turns, or says why the loop is
/// not suited to that.
///
/// # Errors
/// A schedule that cannot be written, which is a bug of this compiler.
pub(crate) fn write(
    view: SchedulerView,
    node: Entity,
    found: &LoopGraph,
) -> Result<Result<WrittenSchedule, String>, Diagnostic> {
    match classify(view, node, found) {
        Ok(product) => {
            let (tags, tagged) = plain(view, &product.nodes)?;
            Ok(Ok(WrittenSchedule::new(schedule_of(&product, &tags)?, tagged)))
        }
        Err(Unsuitable::Other(OtherLoop::Broken(bug))) => Err(bug.into()),
        Err(why) => Ok(Err(why.to_string())),
    }
}

/// Parts into which the matrix instructions of an iteration are cut: one for each compute cluster.
const SLICES: u32 = 2;

/// How factors come into LDS and from there into registers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// By global loads and LDS writes.
    ThroughRegisters,
    /// Likewise, with registers in which the loads of a whole tile can wait for a trip.
    LoadedEarly,
    /// By loads straight into LDS; reads of each half of a tile come before its matrix instructions.
    DirectInHalves,
    /// By loads straight into LDS; all reads of a tile come together.
    DirectWhole,
}

/// When the tiles of an iteration are read that are loaded straight into LDS.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TileReads {
    /// All in the first memory cluster.
    Together,
    /// The second half of the factor whose loads come beside reads in the second memory cluster, where all of
    /// them would take LDS longer than the matrix instructions that they run beside.
    SecondHalfLater,
}

/// How the operations of an iteration fall into clusters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Global loads of both factors, per wave and iteration; they matter where some are late.
    pub loads: [u32; 2],
    /// Global loads of scales, per wave and iteration.
    pub scale_loads: u32,
    /// How many loads of each factor, the last ones, wait until half of the first compute cluster has
    /// released its registers.
    pub late_loads: [u32; 2],
    /// Copies of the tiles of each factor in LDS, where they are read whole. The left factor has as many as
    /// the right one, or one more.
    pub copies: [u32; 2],
    /// The dimension along which the products of tiles that are read whole are cut in two; `None` for `k`.
    pub halves: Option<Symbol>,
    /// When tiles that are read whole are read.
    pub tile_reads: TileReads,
    /// Matrix instructions of the first compute cluster.
    pub products: u32,
    /// Parts into which the LDS reads of each factor fall along `k`: 1 or 2.
    pub read_parts: [u32; 2],
    /// The dimension along which the first compute cluster runs part by part, and the number of parts, where
    /// late loads wait for the registers of the right factor; otherwise the cluster runs as expanded, and
    /// releases those of the left one.
    pub columns: Option<(Symbol, u32)>,
}

impl Cut {
    /// All loads together with the LDS reads, and reads that fall into two parts.
    pub const EVEN: Cut = Cut {
        loads: [0; 2],
        scale_loads: 0,
        late_loads: [0; 2],
        copies: [2; 2],
        halves: None,
        tile_reads: TileReads::Together,
        products: 0,
        read_parts: [2; 2],
        columns: None,
    };
}

/// A loop that can take turns.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Product {
    /// Its nodes.
    pub nodes: ProductLoop,
    way: Way,
    /// How its operations fall into clusters.
    pub cut: Cut,
}

/// Finds the operations of a loop that can take turns.
///
/// # Errors
/// Why it is not such a loop, or gains nothing.
pub(crate) fn classify(view: SchedulerView, node: Entity, found: &LoopGraph) -> Result<Product, Unsuitable> {
    let (waves, simds) = (view.waves()?, view.settings()?.target().simds_per_compute_unit);
    if waves == 0 || !waves.is_multiple_of(2 * simds) {
        return Err(Unsuitable::Waves(waves));
    }
    let Op::Iterate(walked) = view.op(node)? else { return Err(OtherLoop::NoProduct.into()) };
    let (operations, mma) = Operations::of(view, found, walked)?;
    let axis = operations.axis;
    let factors = operations.factors(mma)?;
    let own_loads = factors.map(|[.., load]| load);
    let direct = factors.map(|[_, write, load]| write == load);
    let (way, late_loads) = match direct {
        [true, true] if operations.registers_of_values() <= pressure::available(view)? => {
            (Way::DirectWhole, [0; 2])
        }
        [true, true] => (Way::DirectInHalves, [0; 2]),
        [false, false] => match late_loads(&operations, own_loads)? {
            [0, 0] => (Way::LoadedEarly, [0; 2]),
            late => (Way::ThroughRegisters, late),
        },
        _ => return Err(OtherLoop::DifferentWays.into()),
    };
    let scales = operations.scales(mma)?;
    let moved: SmallVec<[[Entity; 3]; 4]> = factors.into_iter().chain(scales.into_iter().flatten()).collect();
    operations.are_only(&moved, mma)?;
    if scales.is_some() && way != Way::DirectWhole {
        return Err(Unsuitable::ScalesBesideHalves);
    }
    let halves = halves(&operations, mma, way)?;
    let parts = |read| Ok::<_, Bug>(operations.places_along(read, axis)?.min(2));
    let read_parts = [parts(factors[0][0])?, parts(factors[1][0])?];
    // The vector ALU runs nothing beside matrix instructions on f32 (AMD matrix instruction calculator, "VALU
    // co-execution").
    let input = view.node(factors[0][0])?.ty.dtype;
    if let (Way::DirectInHalves | Way::DirectWhole, Some(input @ DType::F32)) = (way, input) {
        return Err(Unsuitable::VectorAlu(input));
    }
    let loads = own_loads.map(|load| operations.count(load));
    let scale_loads = scales.iter().flatten().map(|&[.., load]| operations.count(load)).sum();
    let own_reads = factors.map(|[read, ..]| read);
    let work = LoopWork::of(&operations, own_reads, waves / 2)?;
    let iterations = view.most_iterations(node)?.unwrap_or(u32::MAX);
    let is_possible = |copies: [u32; 2]| {
        let is_counted = i64::from(loads_under_way(copies, loads, scale_loads)) <= MAX_LOADS;
        // A stage for each copy of the left factor comes before that of the products.
        is_counted && copies[0] <= iterations
    };
    let left = match view.buffer_of(&view.node(factors[0][0])?)? {
        Some(buffer) => Some(view.buffer(buffer)?.bytes),
        None => None,
    };
    let copies = copies(way, &work, (LdsRoom::of(view, found)?, left), is_possible)?;
    let tile_reads = match way {
        Way::DirectWhole => tile_reads(&operations, &work, (mma, own_reads), (copies, loads), halves)?,
        Way::ThroughRegisters | Way::LoadedEarly | Way::DirectInHalves => TileReads::Together,
    };
    work.gain(match way {
        Way::ThroughRegisters => work.through_registers(),
        Way::LoadedEarly => work.loaded_early(),
        Way::DirectInHalves => work.in_halves(read_parts),
        Way::DirectWhole => {
            let late = late_reads(&work, tile_reads, copies);
            work.whole(copies[1], alone_and_beside_reads(copies, loads), late)
        }
    })?;
    let columns = match late_loads {
        [0, 0] => None,
        _ => columns(&operations, &factors, mma)?,
    };
    let products = operations.count(mma) / SLICES;
    let halves = match halves == axis {
        true => None,
        false => view.dims()?.0.get(halves).copied(),
    };
    let cut =
        Cut { loads, scale_loads, late_loads, copies, halves, tile_reads, products, read_parts, columns };
    let nodes = ProductLoop { k_loop: node, factors, scales, mma, axis };
    Ok(Product { nodes, way, cut })
}

/// Whether reading the second half of a tile later makes a trip shorter.
fn tile_reads(
    operations: &Operations,
    work: &LoopWork,
    (mma, reads): (Entity, [Entity; 2]),
    (copies, loads): ([u32; 2], [u32; 2]),
    halves: Dim,
) -> Result<TileReads, Bug> {
    let [_, beside] = alone_and_beside_reads(copies, [0, 1]);
    if !operations.view.node(reads[beside])?.ty.dims.contains(&halves) {
        return Ok(TileReads::Together);
    }
    let is_even = operations.places_along(reads[beside], halves)?.is_multiple_of(SLICES);
    let loads = alone_and_beside_reads(copies, loads);
    let [together, later] = [TileReads::Together, TileReads::SecondHalfLater]
        .map(|reads| work.whole(copies[1], loads, late_reads(work, reads, copies)));
    match is_even && later < together && operations.halves_match([mma, reads[0], reads[1]], halves)? {
        true => Ok(TileReads::SecondHalfLater),
        false => Ok(TileReads::Together),
    }
}

/// Clk of the reads in the second memory cluster.
fn late_reads(work: &LoopWork, reads: TileReads, copies: [u32; 2]) -> u32 {
    let [_, beside] = alone_and_beside_reads(copies, [0, 1]);
    match reads {
        TileReads::Together => 0,
        TileReads::SecondHalfLater => work.half_of_reads(beside),
    }
}

/// The dimension along which products are cut in two.
fn halves(operations: &Operations, mma: Entity, way: Way) -> Result<Dim, Unsuitable> {
    let is_even = |dim| Ok::<_, Bug>(operations.places_along(mma, dim)?.is_multiple_of(SLICES));
    if is_even(operations.axis)? {
        return Ok(operations.axis);
    }
    if way == Way::DirectWhole {
        for &dim in &operations.view.node(mma)?.ty.dims {
            if is_even(dim)? {
                return Ok(dim);
            }
        }
    }
    Err(OtherLoop::Steps(operations.places_along(mma, operations.axis)?).into())
}

/// Copies of the tiles of each factor in LDS: one where they are written from registers, two where loads
/// fill one while the other is read, and more where a trip is shorter than what loads take. The loads
/// that come together with the reads have half a trip less than the others: if that is too little and LDS
/// has room, the left factor, a copy of which takes `left` bytes, has one more. `is_possible` says for
/// which copies a wave can wait for loads with those that come after them under way, and the loop has
/// iterations enough.
///
/// # Errors
/// If LDS is too small.
fn copies(
    way: Way,
    work: &LoopWork,
    (room, left): (LdsRoom, Option<u32>),
    is_possible: impl Fn([u32; 2]) -> bool,
) -> Result<[u32; 2], Unsuitable> {
    let (least, most) = match way {
        Way::ThroughRegisters | Way::LoadedEarly => (1, 1),
        Way::DirectInHalves => (2, 2),
        Way::DirectWhole => (2, work.copies_that_hide_loads()),
    };
    let most = (least + 1..=most).rev().find(|&copies| is_possible([copies; 2])).unwrap_or(least);
    let copies = room.copies(least, most)?;
    let more = way == Way::DirectWhole
        && work.are_late_beside_reads(copies)
        && left.is_some_and(|left| left <= room.free - copies * room.one)
        && is_possible([copies + 1, copies]);
    Ok([copies + u32::from(more), copies])
}

/// The right factor's own dimension and its parts, if there are more of them than of the left factor's.
fn columns(
    operations: &Operations,
    factors: &[[Entity; 3]; 2],
    mma: Entity,
) -> Result<Option<(Symbol, u32)>, Bug> {
    let view = operations.view;
    let own_dim = |[read, ..]: [Entity; 3]| -> Result<Option<Dim>, Bug> {
        Ok(view.node(read)?.ty.dims.iter().copied().find(|&dim| dim != operations.axis))
    };
    let parts = |dim: Option<Dim>| dim.map_or(Ok(1), |dim| operations.places_along(mma, dim));
    let [left, right] = [own_dim(factors[0])?, own_dim(factors[1])?];
    let (rows, columns) = (parts(left)?, parts(right)?);
    let Some(dim) = right.filter(|_| columns > rows) else { return Ok(None) };
    Ok(view.dims()?.0.get(dim).map(|&symbol| (symbol, columns)))
}

/// The schedule of a product.
///
/// # Errors
/// As [`schedule`].
pub(crate) fn schedule_of(product: &Product, tags: &Tags) -> Result<WaveSchedule, Diagnostic> {
    match product.way {
        Way::ThroughRegisters => schedule(&tags.roles(), &product.cut),
        Way::LoadedEarly => schedule_of_early_loads(&tags.roles()),
        Way::DirectInHalves => schedule_of_direct_loads(&tags.roles(), &product.cut),
        Way::DirectWhole => schedule_of_whole_tiles(&tags.roles(), &product.cut),
    }
}
