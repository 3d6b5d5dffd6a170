//! The distribution of a kernel said by a task mapping in place of constraints.

use std::panic::Location as Caller;

use smallvec::SmallVec;

use super::builder::{Tracer, with};
use super::constraint::{Constraint, wave, workgroup};
use super::diagnostic::Diagnostic;
use super::expr::Symbol;
use super::layout::task_mapping::TaskMapping;
use super::layout::{Dim, LANES, Layout, MatrixShape, Mma, MmaType, Source};

/// The part of a mapping that is about the waves of a workgroup.
struct WaveTiles {
    /// Elements of the workgroup along each dimension.
    workgroup: Vec<u32>,
    /// Elements of a wave.
    wave: Vec<u32>,
    /// The dimensions that waves divide, that of the fastest digit first.
    order: SmallVec<[usize; 3]>,
    /// Who has which element.
    layout: Layout,
}

impl Tracer {
    /// Distributes `dims` as the mapping says, whose workers are the *waves* of a workgroup and whose shape
    /// is the workgroup's tile: [`workgroup`](crate::prelude::workgroup) and [`wave`](crate::prelude::wave)
    /// constraints. Every wave has to have one box of elements; where in it each lane has its elements is up
    /// to the compiler, and so is the order of a wave's tasks.
    ///
    /// Waves are numbered along grid axis 0 first. So the dimension of the mapping's fastest digit lies along
    /// axis 0, the next one along axis 1; dimensions that waves do not divide follow in their order.
    ///
    /// A mapping that is not so, or a faulty one, is a fault of the kernel.
    ///
    /// # Example
    /// ```
    /// use groundswell::mapping::spatial;
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let kernel = Kernel::trace("double", |w| {
    ///     // Four waves beside each other along N, each with 16 rows of 64 elements.
    ///     w.distribute_waves([m, n], &spatial([1, 4]).repeat([16, 64]));
    ///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
    ///     w.write(w.read(a) * 2.0, b);
    /// })?;
    /// assert!(kernel.to_string().contains("workgroup N, 256, 0"));
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn distribute_waves<const N: usize>(&self, dims: [Symbol; N], mapping: &TaskMapping) {
        self.distribute_mapped(Caller::caller(), of_waves(mapping, N), &dims);
    }

    /// As [`Tracer::distribute_waves`], for a mapping whose workers are the *work-items* of a workgroup that
    /// computes a product: each has the elements of the result `[dims[0], dims[1]]` that a matrix instruction
    /// gives it, as in `spatial(2,2)*repeat(4,4)*spatial(4,1)*repeat(4,1)*spatial(1,16)`. The instruction's
    /// shape becomes that of the kernel ([`Tracer::mma_type`]).
    ///
    /// # Example
    /// ```
    /// use groundswell::author::Mma;
    /// use groundswell::mapping::{MmaConfig, spatial};
    /// use groundswell::prelude::*;
    /// let [m, n, k] = symbols(["M", "N", "K"]);
    /// let config = MmaConfig::new(Mma::F32_16x16x16_F16).map_err(Diagnostic::from)?;
    /// let tiles = spatial([2, 2]).repeat([4, 4]) * config.c_store_map();
    /// let product = Kernel::trace("product", |w| {
    ///     w.distribute_workitems([m, n], &tiles);
    ///     w.distribute([tile(k, 32)]);
    ///     let [a, b] = [w.memory("a", [m, k], Shared, F16), w.memory("b", [n, k], Shared, F16)];
    ///     let c = w.memory("c", [m, n], Global, F32);
    ///     let zero = w.register([m, n], F32, 0.0);
    ///     let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
    ///     w.write(sum, c);
    /// })?;
    /// product.compile(&Options::new(Target::GFX942).set(m, 256).set(n, 256).set(k, 64))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn distribute_workitems(&self, dims: [Symbol; 2], mapping: &TaskMapping) {
        self.distribute_mapped(Caller::caller(), of_workitems(mapping), &dims);
    }

    fn distribute_mapped(
        &self,
        caller: &'static Caller<'static>,
        distribution: Result<(WaveTiles, Option<MmaType>), Diagnostic>,
        dims: &[Symbol],
    ) {
        with(self.trace, |f| {
            let Some((tiles, instruction)) = f.check(caller, distribution) else { return };
            let at = f.location(caller);
            let undivided = (0..dims.len()).filter(|dim| !tiles.order.contains(dim));
            for (axis, dim) in (0..).zip(tiles.order.iter().copied().chain(undivided)) {
                f.nodes.constrain(workgroup(dims[dim], tiles.workgroup[dim], axis), at);
                f.nodes.constrain(wave(dims[dim], tiles.wave[dim]), at);
            }
            if let Some(instruction) = instruction {
                f.nodes.constrain(Constraint::MmaType(instruction), at);
            }
        });
    }
}

fn refused(mapping: &TaskMapping, why: &str) -> Diagnostic {
    Diagnostic::invalid(format!("{mapping} cannot distribute a kernel: {why}"))
}

/// Workers are waves.
fn of_waves(mapping: &TaskMapping, dims: usize) -> Result<(WaveTiles, Option<MmaType>), Diagnostic> {
    let layout = mapping.layout()?.and_then(|layout| layout.with_waves(1));
    wave_tiles(mapping, layout, dims).map(|tiles| (tiles, None))
}

/// Workers are work-items, and lanes have what a matrix instruction gives them.
fn of_workitems(mapping: &TaskMapping) -> Result<(WaveTiles, Option<MmaType>), Diagnostic> {
    let workers = mapping.workers()?;
    if workers == 0 || workers % LANES != 0 {
        let why = format!("its {workers} workers are no whole number of waves of {LANES} lanes");
        return Err(refused(mapping, &why).help("use distribute_waves for a mapping to waves"));
    }
    let layout = mapping.layout()?.and_then(|layout| layout.with_waves(LANES));
    let tiles = wave_tiles(mapping, layout, 2)?;
    let shapes = [
        (MatrixShape::M16x16.into(), Mma::F32_16x16x16_F16),
        (MatrixShape::M32x32.into(), Mma::F32_32x32x8_F16),
        (Mma::F64_16x16x4_F64.into(), Mma::F64_16x16x4_F64),
    ];
    let is_of = |(_, mma): &(MmaType, Mma)| {
        let [rows, columns] = [(tiles.wave[0], mma.m()), (tiles.wave[1], mma.n())];
        let divides = rows.0 % rows.1 == 0 && columns.0 % columns.1 == 0;
        let copies = [(Dim(0), rows.0 / rows.1), (Dim(1), columns.0 / columns.1)];
        let one = mma.c_layout(Dim(0), Dim(1));
        let of_wave = Layout::repeat(&copies).and_then(|copies| copies.compose(&one));
        divides && of_wave.is_ok_and(|of_wave| of_wave.lanes_hold_alike(&tiles.layout.of_one_wave()))
    };
    let Some((instruction, _)) = shapes.into_iter().find(is_of) else {
        let why = "no matrix instruction gives its lanes the elements that they have in it";
        return Err(refused(mapping, why).help("end the product with the c_store_map of a MmaConfig"));
    };
    Ok((tiles, Some(instruction)))
}

/// The tiles of a mapping whose workers are the lanes and waves of a layout.
fn wave_tiles(mapping: &TaskMapping, layout: Option<Layout>, dims: usize) -> Result<WaveTiles, Diagnostic> {
    let shape = mapping.shape()?;
    if shape.len() != dims {
        let why = format!("it has {} dimensions, and {dims} are distributed", shape.len());
        return Err(refused(mapping, &why));
    }
    if shape.contains(&0) {
        return Err(refused(mapping, "it has no tasks"));
    }
    let Some(layout) = layout.map(|layout| layout.canonical()) else {
        let why = format!("no digit of its workers ends at the {LANES} lanes of a wave");
        return Err(refused(mapping, &why));
    };
    if !layout.is_injective() {
        return Err(refused(mapping, "several workers have the same tasks"));
    }
    let mut tiles = WaveTiles { workgroup: shape.clone(), wave: shape, order: SmallVec::new(), layout };
    for mode in tiles.layout.of_source(Source::Wave) {
        let dim = mode.dim.map_or(0, |dim| usize::from(dim.0));
        if mode.stride * mode.extent != tiles.workgroup[dim] || tiles.order.contains(&dim) {
            let why = format!("the elements of a wave are several pieces along dimension {dim}");
            return Err(refused(mapping, &why).help("put the factor that spreads the waves outermost"));
        }
        tiles.wave[dim] = mode.stride;
        tiles.order.push(dim);
    }
    Ok(tiles)
}
