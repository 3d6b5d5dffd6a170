//! The default choices for a matrix product of a given shape: tile, waves and schedule.
//!
//! Every chip has its [`Candidate`]s with what time mode finds them to take. Small tiles spread a small
//! product over more compute units, deep ones wait for fewer loads, large ones read less, and those between
//! leave less of the last round idle. A shape gets the candidate whose workgroups, distributed over the
//! compute units, end first by [`ChipCosts::clocks`].

mod candidates;

use self::candidates::{Candidate, OF_DEVICES};
use crate::codegen::target::{DeviceModel, DeviceParameter, Target};
use crate::ir::layout::{Mma, MmaType};
use crate::ir::types::DType;
use crate::passes::options::Schedule;

/// The choice for a product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProductChoice {
    /// Rows and columns of C that a workgroup computes, and elements of K that it takes per iteration.
    pub(crate) tile: [u32; 3],
    /// Waves along the rows and the columns of the tile.
    pub(crate) waves: [u32; 2],
    /// How the loop over K is scheduled.
    pub(crate) schedule: Schedule,
}

/// A product whose tile is to be chosen.
#[derive(Copy, Clone)]
pub(crate) struct MatrixProduct {
    /// M, N and K.
    pub(crate) size: [i128; 3],
    /// Products of that size.
    pub(crate) batches: i128,
    /// Elements of A and B.
    pub(crate) inputs: DType,
    /// The matrix instruction, as far as it is given.
    pub(crate) matrix: MmaType,
    /// How many of the two factors are turned on their way into LDS.
    pub(crate) turned: u32,
}

/// Sizes beyond this one count as this one.
const MOST: i128 = 1 << 31;

impl MatrixProduct {
    fn fits(self, candidate: &Candidate) -> bool {
        let Candidate { m, n, waves: [along_m, along_n], .. } = *candidate;
        let edge = self.matrix.edge();
        // For the largest tiles there are too few registers with elements of 32 bits, and with bytes that are
        // turned, one by one to 16 rows.
        let bytes = self.inputs.bytes();
        let largest_fit = if self.turned > 0 { bytes == 2 } else { bytes < 4 };
        let is_whole = (m / along_m).is_multiple_of(edge) && (n / along_n).is_multiple_of(edge);
        is_whole && (largest_fit || m * n <= 128 * 256)
    }
}

/// A product on a chip, as the choice sees both.
struct ChipCosts {
    product: MatrixProduct,
    compute_units: f64,
    /// Bytes a clk that each compute unit gets of lines that no other one reads, all busy.
    unshared: f64,
    /// clk for which one multiplication and addition occupies the matrix cores of a compute unit.
    matrix: f64,
}

impl ChipCosts {
    fn new(product: MatrixProduct, device: &DeviceModel) -> ChipCosts {
        let number = |parameter| device.get(parameter);
        // A pass is four clk, and there are four matrix cores.
        let passes = |mma: Mma| {
            let passes = device.target.matrix_instruction(mma)?.passes;
            Some(f64::from(passes) / f64::from(mma.m() * mma.n() * mma.k()))
        };
        let matrix = match product.matrix {
            MmaType::Instruction(mma) => passes(mma),
            MmaType::Shape(shape) => {
                shape.instructions([product.inputs; 2]).filter_map(passes).min_by(f64::total_cmp)
            }
        };
        ChipCosts {
            product,
            compute_units: number(DeviceParameter::ComputeUnits),
            unshared: number(DeviceParameter::MallRate).max(number(DeviceParameter::MemoryRate)),
            matrix: matrix.unwrap_or(0.0),
        }
    }

    /// clk of a launch: that of the compute unit with the most workgroups, which run in rounds of as many as
    /// fit at once. A step of a round takes as long as one of a workgroup alone, as the units are busy, as
    /// the matrix cores are, or as memory brings what no other workgroup reads.
    fn clocks(&self, candidate: &Candidate) -> f64 {
        let product = self.product;
        let Candidate { m, n, k_bytes, resident, alone, full, .. } = *candidate;
        let [rows, columns, sum] = product.size.map(|size| size.clamp(1, MOST) as f64);
        let bytes = f64::from(product.inputs.bytes());
        let (m, n, k_bytes, resident) = (f64::from(m), f64::from(n), f64::from(k_bytes), f64::from(resident));
        let (tile_rows, tile_columns) = ((rows / m).ceil(), (columns / n).ceil());
        let workgroups = tile_rows * tile_columns * product.batches.clamp(1, MOST) as f64;
        let of_unit = (workgroups / self.compute_units).ceil();
        let rounds = (of_unit / resident).ceil();
        let steps = (sum * bytes / k_bytes).ceil();
        let busy_units = (workgroups / self.compute_units).min(1.0);
        // Ends grow with the workgroups that load and store at the same time.
        let share = (of_unit / resident).min(1.0) * busy_units;
        let [least, most] = [alone.ends, full.ends].map(f64::from);
        let ends = least + (most - least) * share;
        // Memory brings so much to all units, of which only those that have workgroups ask.
        let unshared = (m / tile_columns + n / tile_rows) * k_bytes / self.unshared * busy_units;
        // The costs of candidates are those of f16; other elements take longer or as long for as many bytes.
        let matrix = m * n * (k_bytes / bytes) * self.matrix;
        let busy = f64::from(full.step).max(matrix).max(unshared);
        rounds * ends + steps * (rounds * f64::from(alone.step)).max(of_unit * busy)
    }
}

/// The choice for a product on a chip.
pub(crate) fn choose(product: MatrixProduct, target: Target) -> ProductChoice {
    let device = DeviceModel::nearest(target);
    let costs = ChipCosts::new(product, device);
    let of_device = DeviceModel::ALL.iter().position(|one| one.name == device.name);
    let candidates = OF_DEVICES[of_device.unwrap_or(0)];
    let fitting = candidates.iter().filter(|candidate| product.fits(candidate));
    let fitting = fitting.map(|candidate| (costs.clocks(candidate), candidate));
    // The first of equals: they are ordered by size. Instructions of 16 x 16 and of 32 x 32 fit some.
    let best = fitting.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(&candidates[0], |(_, candidate)| candidate);
    ProductChoice {
        tile: [best.m, best.n, best.k_bytes / product.inputs.bytes()],
        waves: best.waves,
        schedule: best.schedule.clone(),
    }
}
