//! Quadrants: waves take turns as in ping-pong, with four memory and four compute regions in a trip instead
//! of two. A compute region multiplies half of the rows of a wave's tile with half of its columns, all of
//! k, so that a wave holds both halves of one factor, and of the other one the half that it multiplies: the
//! halves follow each other in the same registers.
//!
//! | region | reads | multiplies | loads anew what was read in region |
//! | --- | --- | --- | --- |
//! | 0 | first half of the factor whose halves share registers | first with first | 3 |
//! | 1 | second half of the factor that is kept | first with second | 0 |
//! | 2 | second half of the first one | second with first | 1 |
//! | 3 | first half of the kept one, of the next iteration | second with second | 2 |
//!
//! No memory region reads more than half of a factor, so that LDS takes less time for it than the matrix
//! cores for the compute region that it runs beside. What is not read any more is written anew one region
//! later: tiles that go through registers have one copy in LDS. Loads straight into LDS fill the part of a
//! copy that the region before was the last one to read, so that almost all of the time between two uses of
//! a copy is left for their latency, and one copy is enough where a region takes long (AMD's tutorials on
//! Gluon for gfx950 and gfx942, `gemm/inter_wave`). No wave has priority: the time model takes 2060 clk for
//! a trip of 256 x 256 x 64 with f16 on MI355X, and 2072 with the higher priority for memory regions.
//!
//! - `halves`: which rows loads straight into LDS bring
//! - `regions`: where they go
//! - `order`: the schedule
//! - `unsuitable`: why a loop gets none

mod halves;
mod order;
mod regions;
mod unsuitable;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

pub use self::order::schedule_of_quadrants;
use self::unsuitable::NotInQuadrants;
use super::super::products::operations::Operations;
use super::super::products::tags::plain;
use super::super::products::{OtherLoop, ProductLoop};
use super::cost::LoopWork;
pub use super::cost::REGIONS;
use super::unsuitable::Unsuitable;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::layout::{Dim, Layout};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::types::DType;
use crate::passes::schedule::apply::copies::LdsRoom;
use crate::passes::schedule::apply::pressure;
use crate::passes::schedule::apply::written::WrittenSchedule;
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::view::SchedulerView;

/// The region in which scales are written, and loaded anew.
const SCALES: usize = 2;

/// A factor of a product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Factor {
    /// The left one, with the rows of the result.
    Left,
    /// The right one, with its columns.
    Right,
}

impl Factor {
    /// Its number among the factors, and that of the other one.
    pub(super) fn and_other(self) -> [usize; 2] {
        match self {
            Factor::Left => [0, 1],
            Factor::Right => [1, 0],
        }
    }
}

/// How the tiles of an iteration come into LDS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QuadrantMoves {
    /// By global loads and LDS writes.
    ThroughRegisters,
    /// By loads straight into LDS.
    Direct {
        /// Copies of the tiles in LDS.
        copies: u32,
        /// For each factor and each region, the loads that come there, by their numbers in the list of the
        /// factor's loads.
        loads: Box<[[Vec<u32>; REGIONS]; 2]>,
        /// For each region that waits for what the next one reads, how many loads are then still under way.
        under_way: [Option<u8>; REGIONS],
    },
}

/// How the operations of an iteration fall into regions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quadrants {
    /// For each factor, the dimension along which it and the product are cut in two.
    pub halves: [Symbol; 2],
    /// The factor whose halves share registers.
    pub shared: Factor,
    /// How tiles come into LDS.
    pub moves: QuadrantMoves,
}

impl Quadrants {
    /// Copies of the tiles in LDS.
    fn copies(&self) -> u32 {
        match self.moves {
            QuadrantMoves::ThroughRegisters => 1,
            QuadrantMoves::Direct { copies, .. } => copies,
        }
    }

    /// How many loads are still under way at the end of a region, if there is a wait for others.
    fn under_way(&self, region: usize) -> Option<u8> {
        match self.moves {
            QuadrantMoves::ThroughRegisters => None,
            QuadrantMoves::Direct { under_way, .. } => under_way[region],
        }
    }
}

/// Writes down the schedule of a loop whose waves take turns quadrant by quadrant, or says why the loop is
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
        Ok(Classified { product, quadrants, layouts }) => {
            let loads = product.factors.map(|[.., load]| load);
            let layouts = loads.into_iter().zip(layouts);
            let layouts = layouts.filter_map(|(load, layout)| Some((load, layout?))).collect();
            let (tags, tagged) = plain(view, &product)?;
            let schedule = schedule_of_quadrants(&tags.roles(), &quadrants)?;
            Ok(Ok(WrittenSchedule { schedule, tagged, layouts }))
        }
        Err(NotInQuadrants::Broken(bug)) => Err(bug.into()),
        Err(why) => Ok(Err(why.to_string())),
    }
}

/// A loop whose waves can take turns quadrant by quadrant.
struct Classified {
    product: ProductLoop,
    quadrants: Quadrants,
    /// Layouts that the loads of the factors get.
    layouts: [Option<Layout>; 2],
}

/// Finds the operations of a loop, and the regions that they go to.
fn classify(view: SchedulerView, node: Entity, found: &LoopGraph) -> Result<Classified, NotInQuadrants> {
    let (waves, simds) = (view.waves()?, view.settings()?.target().simds_per_compute_unit);
    if waves == 0 || !waves.is_multiple_of(2 * simds) {
        return Err(Unsuitable::Waves(waves).into());
    }
    let Op::Iterate(walked) = view.op(node)? else { return Err(OtherLoop::NoProduct.into()) };
    let (operations, mma) = Operations::of(view, found, walked)?;
    let factors = operations.factors(mma)?;
    let scales = operations.scales(mma)?;
    let moved: SmallVec<[[Entity; 3]; 4]> = factors.into_iter().chain(scales.into_iter().flatten()).collect();
    operations.are_only(&moved, mma)?;
    let direct = match factors.map(|[_, write, load]| write == load) {
        [left, right] if left == right => left,
        _ => return Err(OtherLoop::DifferentWays.into()),
    };
    let input = view.node(factors[0][0])?.ty.dtype;
    if let (true, Some(input @ DType::F32)) = (direct, input) {
        return Err(Unsuitable::VectorAlu(input).into());
    }
    let reads = factors.map(|[read, ..]| read);
    let cut = [cut(&operations, (mma, reads), 0)?, cut(&operations, (mma, reads), 1)?];
    let of_reads = reads.map(|read| operations.registers_of(read));
    let (shared, saved) = match of_reads[1] > of_reads[0] {
        true => (Factor::Right, of_reads[1] / 2),
        false => (Factor::Left, of_reads[0] / 2),
    };
    let (needed, available) = (operations.registers_of_values() - saved, pressure::available(view)?);
    if needed > available {
        return Err(NotInQuadrants::Registers { needed, available });
    }
    let work = LoopWork::of(&operations, reads, waves / 2)?;
    work.gain(work.in_quadrants(shared.and_other()))?;
    let room = LdsRoom::of(view, found)?;
    let (moves, layouts) = match direct {
        false => {
            room.copies(1, 1).map_err(Unsuitable::from)?;
            (QuadrantMoves::ThroughRegisters, [None, None])
        }
        true => {
            let iterations = view.most_iterations(node)?.unwrap_or(u32::MAX);
            let wanted = work.copies_of_quadrants().min(iterations.max(1));
            let copies = room.copies(1, wanted).map_err(Unsuitable::from)?;
            let scale_loads = scales.iter().flatten().map(|&[.., load]| operations.count(load)).sum();
            regions::direct(&operations, &factors, (cut, shared), (copies, scale_loads))?
        }
    };
    let symbol = |dim: Dim| view.dims()?.0.get(dim).copied().ok_or(Bug::new("a dimension without symbol"));
    let halves = [symbol(cut[0])?, symbol(cut[1])?];
    let product = ProductLoop { k_loop: node, factors, scales, mma, axis: operations.axis };
    Ok(Classified { product, quadrants: Quadrants { halves, shared, moves }, layouts })
}

/// The dimension of a factor, not the summed one, along which both it and the product are two equal halves.
fn cut(
    operations: &Operations,
    (mma, reads): (Entity, [Entity; 2]),
    side: usize,
) -> Result<Dim, NotInQuadrants> {
    let is_even = |node, dim| Ok::<_, Bug>(operations.places_along(node, dim)?.is_multiple_of(2));
    for &dim in &operations.view.node(reads[side])?.ty.dims {
        let halves = dim != operations.axis && is_even(mma, dim)? && is_even(reads[side], dim)?;
        if halves && operations.halves_match([mma, reads[0], reads[1]], dim)? {
            return Ok(dim);
        }
    }
    Err(NotInQuadrants::Halves(["left", "right"][side]))
}
