//! Constraints: how the dimensions of a kernel are spread over the machine, kept apart from what the kernel
//! computes.

use super::diagnostic::Diagnostic;
use super::expr::{SymExpr, Symbol};
pub(crate) use super::grid_symbol::{GridSymbol, MAX_AXES};
use super::layout::MmaType;
use super::types::DType;

/// One distribution constraint, hardware fact or assumption, as the author states it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Constraint {
    /// A workgroup covers `tile` elements of `dim`; tiles go along grid axis `axis` (0 to 4).
    Workgroup {
        /// The dimension: a plain symbol, or the number that is the dimension.
        dim: SymExpr,
        /// Elements per workgroup.
        tile: SymExpr,
        /// Grid axis.
        axis: u32,
    },
    /// Loops over `dim` take `tile` elements per iteration.
    Tiling {
        /// The dimension: a plain symbol, or the number that is the dimension.
        dim: SymExpr,
        /// Elements per iteration.
        tile: SymExpr,
    },
    /// Of the tiles of `dim`, loops take `count` from number `first` on, as far as there are so many.
    Iterations {
        /// The dimension: a plain symbol, or the number that is the dimension.
        dim: SymExpr,
        /// The first iteration.
        first: SymExpr,
        /// Iterations.
        count: SymExpr,
        /// Of these, from the first one on, each that is so many after the one before.
        step: SymExpr,
    },
    /// A wave covers `tile` elements of `dim` inside its workgroup's tile.
    Wave {
        /// The dimension: a plain symbol, or the number that is the dimension.
        dim: SymExpr,
        /// Elements per wave.
        tile: SymExpr,
    },
    /// Which tiles a workgroup takes.
    Reorder(Reordering),
    /// At most so many workgroups share all tiles of the grid, each takes one after the other.
    Persistent {
        /// Workgroups.
        workgroups: SymExpr,
    },
    /// The matrix instruction of `mma` nodes that do not choose their own.
    MmaType(MmaType),
    /// In which dtype factors are multiplied with their scales where the chip has no instruction for that.
    Emulate(DType),
    /// A symbol is a multiple of a constant.
    Divisible {
        /// The symbol.
        symbol: SymExpr,
        /// What divides it.
        by: u32,
    },
    /// A symbol is at least a constant.
    AtLeast {
        /// The symbol.
        symbol: SymExpr,
        /// Its smallest value.
        least: i64,
    },
    /// A symbol is at most a constant.
    AtMost {
        /// The symbol.
        symbol: SymExpr,
        /// Its largest value.
        most: i64,
    },
}

/// Which tiles a workgroup takes, in place of those with the numbers that the hardware gives it. Orders that
/// follow one another are composed: each one starts from the places that those before it give.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reordering {
    /// Along the grid's axes 0 and 1: so many rows of tiles together, column after column.
    Grouped(u32),
    /// Along the grid's axes 0 and 1: workgroups of one die, of so many that take turns, take tiles that
    /// follow one another.
    Xcd(u32),
    /// Along the grid's axes 0 and 1: the order above that suits the grid and the chip.
    Cached,
    /// The place along one axis. Orders of several axes that follow one another are one order.
    Place {
        /// Grid axis.
        axis: u32,
        /// The place, of [`workgroup_id`], [`grid_size`] and sizes.
        place: SymExpr,
    },
}

/// The symbol that stands for the number of the running iteration of the loop over `dim`.
pub(crate) fn iteration_symbol(dim: Symbol) -> Symbol {
    Symbol::new(&format!("iteration_{dim}"))
}

/// The dimension of the loop whose running iteration a symbol stands for.
pub(crate) fn dim_of_iteration(symbol: Symbol) -> Option<Symbol> {
    symbol.name().strip_prefix("iteration_").map(Symbol::new)
}

/// Scalars that say which iterations loops run are in this range, so that sums of two of them fit into 32
/// bits.
pub(crate) const SCALARS_OF_ITERATIONS: std::ops::RangeInclusive<i64> = -(1 << 30)..=(1 << 30) - 1;

impl Constraint {
    /// The dimension that it spreads, if it spreads one.
    pub(in crate::ir) fn constrained(&self) -> Option<&SymExpr> {
        match self {
            Constraint::Workgroup { dim, .. }
            | Constraint::Tiling { dim, .. }
            | Constraint::Iterations { dim, .. }
            | Constraint::Wave { dim, .. } => Some(dim),
            Constraint::Reorder(_) | Constraint::Persistent { .. } => None,
            Constraint::MmaType(_) | Constraint::Emulate(_) => None,
            Constraint::Divisible { .. } | Constraint::AtLeast { .. } | Constraint::AtMost { .. } => None,
        }
    }

    /// Whether the iterations of loops depend on a symbol.
    pub(in crate::ir) fn counts_by(&self, symbol: Symbol) -> bool {
        let Constraint::Iterations { first, count, .. } = self else { return false };
        let mut found = false;
        [first, count].into_iter().for_each(|e| e.visit(&mut |used| found |= used == symbol));
        found
    }

    /// The grid axes on which the iterations of loops depend, as bits.
    pub(crate) fn workgroup_axes(&self) -> u32 {
        let Constraint::Iterations { first, count, .. } = self else { return 0 };
        let mut axes = 0;
        for e in [first, count] {
            e.visit(&mut |symbol| {
                if let Some(GridSymbol::Workgroup(axis)) = GridSymbol::of(symbol) {
                    axes |= 1 << axis;
                }
            });
        }
        axes
    }
}

/// The fault of an axis that a grid cannot have.
pub(in crate::ir) fn no_axis() -> Diagnostic {
    Diagnostic::invalid("a grid has the axes 0 to 4")
}

/// The number of the workgroup along grid axis `axis`, for [`reorder`] and [`iterations`]: the symbol
/// `workgroup_0` of axis 0.
pub fn workgroup_id(axis: u32) -> SymExpr {
    GridSymbol::Workgroup(axis).symbol().into()
}

/// The number of the running iteration of the loop over `dim` around another loop, for [`iterations`] of that
/// one: the symbol `iteration_M` of a loop over M.
pub fn iteration_of(dim: impl Into<Symbol>) -> SymExpr {
    iteration_symbol(dim.into()).into()
}

/// Workgroups along grid axis `axis`, for [`reorder`] and [`iterations`]: the symbol `grid_0` of axis 0.
pub fn grid_size(axis: u32) -> SymExpr {
    GridSymbol::Size(axis).symbol().into()
}

/// Workgroups take the tiles at `place` along grid axis `axis`, an expression of [`workgroup_id`],
/// [`grid_size`] and sizes. Every tile has to be taken once, which is checked when the kernel is compiled:
/// the grid has to be known then, and has at most 65,536 workgroups.
///
/// # Example
/// ```
/// use groundswell::prelude::*;
/// let n = Symbol::new("N");
/// let double = Kernel::trace("double", |w| {
///     // The last tile first.
///     w.distribute([workgroup(n, 64, 0), reorder(0, grid_size(0) - 1 - workgroup_id(0))]);
///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [n], Global, F32));
///     w.write(w.read(a) * 2.0, b);
/// })?;
/// double.compile(&Options::new(Target::GFX942).set(n, 1000))?;
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn reorder(axis: u32, place: impl Into<SymExpr>) -> Constraint {
    Constraint::Reorder(Reordering::Place { axis, place: place.into() })
}

/// Workgroups that run at the same time share what they read: they take `rows` tiles along grid axis 0, then
/// as many beside them along axis 1, and so on. For products, where the tiles along axis 0 and those along
/// axis 1 each read one operand.
pub fn grouped_order(rows: u32) -> Constraint {
    Constraint::Reorder(Reordering::Grouped(rows))
}

/// Workgroups of one die take tiles that follow one another along axes 0 and 1, so that they share its L2:
/// the hardware gives the workgroups to `dies` dies (XCDs) in turns, 8 on MI300X. Followed by
/// [`grouped_order`], every die takes groups of its own.
pub fn xcd_order(dies: u32) -> Constraint {
    Constraint::Reorder(Reordering::Xcd(dies))
}

/// Workgroups take tiles in the order in which those that run at the same time bring the fewest bytes from
/// beyond the L2 of their dies. For products, where the tiles along axis 0 and those along axis 1 each read
/// one operand: it is the hardware's order, or [`xcd_order`] with the chip's dies and [`grouped_order`] in
/// the groups that suit its compute units, where these bring much less. A grid that is not known when the
/// kernel is compiled keeps the hardware's.
pub fn cached_order() -> Constraint {
    Constraint::Reorder(Reordering::Cached)
}

/// A workgroup covers `tile` elements of `dim` along grid axis `axis`. A dimension whose size is a number is
/// named by it, here and in the other constraints: `workgroup(64, 32, 0)` spreads the 64 of a shape `[M,
/// 64]`.
///
/// A memory without `dim` belongs to all workgroups along it, whatever their number: they may all store the
/// same value to it, once, but not update it, and no `mma` may sum over `dim`. Making a kernel that does is
/// an error.
pub fn workgroup(dim: impl Into<SymExpr>, tile: impl Into<SymExpr>, axis: u32) -> Constraint {
    Constraint::Workgroup { dim: dim.into(), tile: tile.into(), axis }
}

/// Loops over `dim` take `tile` elements per iteration.
pub fn tile(dim: impl Into<SymExpr>, tile: impl Into<SymExpr>) -> Constraint {
    Constraint::Tiling { dim: dim.into(), tile: tile.into() }
}

/// Loops over `dim` run `count` of the iterations that its tile gives, from number `first` on, as far as
/// there are so many: expressions of sizes, [`workgroup_id`], [`grid_size`], i32 scalars by their names (from
/// -2³⁰ to 2³⁰ - 1), and [`iteration_of`] loops around, computed with 32 bits when the loop starts. Where
/// they differ from workgroup to workgroup, everything that is written has the dimensions along which they
/// differ.
///
/// # Example
/// ```
/// use groundswell::prelude::*;
/// let [m, k] = symbols(["M", "K"]);
/// let below = Kernel::trace("below", |w| {
///     w.distribute([workgroup(m, 16, 0), tile(k, 16), iterations(k, 0, workgroup_id(0) + 1)]);
///     let [a, sums] = [w.memory("a", [m, k], Global, F32), w.memory("sums", [m], Global, F32)];
///     let zero = w.register([m], F32, 0.0);
///     let [sum] = w.iterate(k, [zero], |w, [sum]| {
///         let row = w.self_index(m).broadcast([m, k]);
///         [sum + w.select(w.self_index(k).less_equal(row), w.read(a), 0.0).sum(k)]
///     });
///     w.write(sum, sums);
/// })?;
/// below.compile(&Options::new(Target::GFX942).set(m, 100).set(k, 100))?;
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn iterations(
    dim: impl Into<SymExpr>,
    first: impl Into<SymExpr>,
    count: impl Into<SymExpr>,
) -> Constraint {
    iterations_by(dim, first, count, 1)
}

/// As [`iterations`], and of these only every `step`-th one, from number `first` on: a positive number that
/// is known when the kernel is compiled.
///
/// # Example
/// The sum of every second block of columns:
/// ```
/// use groundswell::prelude::*;
/// let [m, k] = symbols(["M", "K"]);
/// let every_second = Kernel::trace("every_second", |w| {
///     w.distribute([workgroup(m, 16, 0), tile(k, 16), iterations_by(k, 1, k, 2)]);
///     let [a, sums] = [w.memory("a", [m, k], Global, F32), w.memory("sums", [m], Global, F32)];
///     let zero = w.register([m], F32, 0.0);
///     let [sum] = w.iterate(k, [zero], |w, [sum]| [sum + w.read(a).sum(k)]);
///     w.write(sum, sums);
/// })?;
/// every_second.compile(&Options::new(Target::GFX942).set(m, 100).set(k, 100))?;
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn iterations_by(
    dim: impl Into<SymExpr>,
    first: impl Into<SymExpr>,
    count: impl Into<SymExpr>,
    step: impl Into<SymExpr>,
) -> Constraint {
    Constraint::Iterations { dim: dim.into(), first: first.into(), count: count.into(), step: step.into() }
}

/// A launch has `workgroups` workgroups, or as many as the grid has tiles if these are fewer. Each takes the
/// tile of its number, in the order that the grid has otherwise, and then every `workgroups`-th one after it:
/// the kernel's constraints, and what it computes, are those of a kernel with a workgroup for each tile.
///
/// # Example
/// ```
/// # use groundswell::prelude::*;
/// let n = Symbol::new("N");
/// let kernel = Kernel::trace("double", |w| {
///     w.distribute([workgroup(n, 256, 0), persistent(4)]);
///     let [a, b] = ["a", "b"].map(|name| w.memory(name, [n], Global, F32));
///     let x = w.read(a);
///     w.write(x + x, b);
/// })?;
/// # kernel.compile(&Options::new(Target::GFX942).set(n, 10_000))?;
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn persistent(workgroups: impl Into<SymExpr>) -> Constraint {
    Constraint::Persistent { workgroups: workgroups.into() }
}

/// Chips without an instruction for products with scales
/// ([`Tracer::scaled_mma`](crate::prelude::Tracer::scaled_mma)) multiply the factors with their scales in
/// `dtype`, and take an ordinary product: bf16 holds each such factor exactly unless it leaves the range of
/// f32. [`Options::emulate`](crate::prelude::Options::emulate) asks for the same on every chip.
pub fn emulate(dtype: DType) -> Constraint {
    Constraint::Emulate(dtype)
}

/// A wave covers `tile` elements of `dim`.
pub fn wave(dim: impl Into<SymExpr>, tile: impl Into<SymExpr>) -> Constraint {
    Constraint::Wave { dim: dim.into(), tile: tile.into() }
}

/// `symbol` is a multiple of `by`.
pub fn assume_divisible(symbol: impl Into<SymExpr>, by: u32) -> Constraint {
    Constraint::Divisible { symbol: symbol.into(), by }
}

/// `symbol` is at most `most`.
///
/// # Example
/// Rows that fit into one tile take no loop:
/// ```
/// use groundswell::prelude::*;
/// let [m, n] = symbols(["M", "N"]);
/// let kernel = Kernel::trace("short_rows", |w| {
///     w.distribute([workgroup(m, 4, 0), tile(n, 256), assume_at_most(n, 256)]);
///     let [a, sums] = [w.memory("a", [m, n], Global, F32), w.memory("sums", [m], Global, F32)];
///     let zero = w.register([m], F32, 0.0);
///     let [sum] = w.iterate(n, [zero], |w, [sum]| [sum + w.read(a).sum(n)]);
///     w.write(sum, sums);
/// })?;
/// # kernel.compile(&Options::new(Target::GFX942).set(m, 10).dynamic(n))?;
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn assume_at_most(symbol: impl Into<SymExpr>, most: i64) -> Constraint {
    Constraint::AtMost { symbol: symbol.into(), most }
}

/// `symbol` is at least `least`.
pub fn assume_at_least(symbol: impl Into<SymExpr>, least: i64) -> Constraint {
    Constraint::AtLeast { symbol: symbol.into(), least }
}
