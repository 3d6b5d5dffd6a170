//! The result of a compilation: a code object and what launching it needs.

use std::sync::Arc;

use smallvec::SmallVec;

#[cfg(feature = "compiler")]
use super::compiled_code::CompiledCode;
use crate::codegen::target::{MOST_WORKGROUPS, Target, TargetId};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{EvalError, Expr, ExprArena, LastingName, Symbol, lasting_name};
use crate::ir::grid_symbol::GridSymbol;
use crate::ir::types::DType;

/// A coordinate that a kernel checks, if the options ask for that
/// ([`Options::bounds_check`](crate::prelude::Options::bounds_check)).
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct BoundsCheck {
    /// Where the author wrote the access.
    pub at: Option<Location>,
    /// The memory.
    pub memory: Arc<str>,
    /// The dimension of the memory, by its name.
    #[serde(with = "lasting_name")]
    pub dim: LastingName,
    /// Its size.
    pub size: Size,
}

/// One argument of a kernel, in launch order.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Parameter {
    /// A tensor.
    Buffer {
        /// The author's name of the memory.
        name: Arc<str>,
        /// Element type.
        dtype: DType,
        /// Size of each dimension, outermost first.
        shape: SmallVec<[Size; 4]>,
        /// Elements from one coordinate to the next, for each dimension, as the product of these sizes. Empty
        /// if the elements lie row after row.
        strides: SmallVec<[SmallVec<[Size; 2]>; 4]>,
        /// True if the kernel writes to it.
        written: bool,
        /// Byte offset in the kernarg segment.
        offset: u32,
    },
    /// What the kernel logs: a tensor that a launch makes and hands back
    /// ([`LaunchResult::logs`](super::launch::LaunchResult::logs)).
    Log {
        /// The author's name of the log.
        name: Arc<str>,
        /// What its elements are about, if they are not the author's values.
        checks: Vec<BoundsCheck>,
        /// Where the author declares it.
        at: Option<Location>,
        /// Element type.
        dtype: DType,
        /// Size of each dimension, outermost first.
        shape: SmallVec<[Size; 4]>,
        /// Byte offset in the kernarg segment.
        offset: u32,
    },
    /// A number by value.
    Scalar {
        /// The author's name of the scalar.
        name: Arc<str>,
        /// f32, f64, i32 or i64.
        dtype: DType,
        /// Byte offset in the kernarg segment.
        offset: u32,
    },
    /// A dynamic symbol.
    Symbol {
        /// The symbol.
        symbol: Symbol,
        /// Byte offset in the kernarg segment.
        offset: u32,
    },
}

/// Size of a dimension.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Size {
    /// Known at compile time.
    Static(u32),
    /// Given at launch.
    Dynamic(Symbol),
}

/// A compiled kernel. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Executable {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) name: String,
    pub(super) target: TargetId,
    pub(super) object: Vec<u8>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) kernarg_bytes: u32,
    /// LDS of a workgroup, in bytes.
    pub(super) lds_bytes: u32,
    pub(super) block: [u32; 3],
    /// Parameters that may be one tensor: the number of one that is only read, and of one that is written.
    pub(super) in_place: Vec<[u32; 2]>,
    pub(super) launch: LaunchExpressions,
    /// What launching does not need.
    #[cfg(feature = "compiler")]
    pub(super) code: CompiledCode,
}

/// The expressions that are evaluated at each launch.
pub(super) struct LaunchExpressions {
    pub(super) arena: ExprArena,
    pub(super) grid: [Expr; 3],
    /// Tiles along the grid's axes: those of `grid`, unless workgroups share them.
    pub(super) tiles: [Expr; 3],
    /// Iterations that some sizes would take out of the range of 32-bit integers: the dimension, the first
    /// one and the end.
    pub(super) iterations: Vec<(Symbol, [Expr; 2])>,
    /// Scalars on which iterations depend, and numbers of iterations of loops around: the least and the
    /// largest that they may be.
    pub(super) counted: Vec<(Symbol, (i64, i64))>,
    /// Workgroups of the grid, if their places are computed: fewer than 2^31.
    pub(super) numbered: Option<Expr>,
    /// Byte spans that must stay below 2^31.
    pub(super) reaches: Vec<Expr>,
    /// The assumptions that the kernel was compiled with, each with its symbol.
    pub(super) assumptions: Vec<(Symbol, Assumption)>,
}

/// What a kernel was compiled to rely on.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Assumption {
    /// A number divides the symbol.
    Divisible(u32),
    /// The least value of the symbol.
    AtLeast(i64),
    /// The largest value of the symbol.
    AtMost(i64),
}

impl std::fmt::Debug for LaunchExpressions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.grid.iter().map(|&e| self.arena.display(e).to_string())).finish()
    }
}

impl LaunchExpressions {
    fn evaluate(&self, e: Expr, value: &impl Fn(Symbol) -> Option<i64>) -> Result<i64, Diagnostic> {
        self.arena.evaluate(e, value).map_err(|error| {
            let kind = if error == EvalError::Overflow { Kind::Limit } else { Kind::Bug };
            Diagnostic::new(kind, format!("the launch could not be computed: {error}"))
                .help("launch it with smaller sizes")
        })
    }

    /// Refuses sizes with which tiles or the numbers of workgroups do not fit 32 bits.
    fn check_reaches(&self, value: &impl Fn(Symbol) -> Option<i64>) -> Result<(), Diagnostic> {
        for &reach in &self.reaches {
            let bytes = self.evaluate(reach, value)?;
            if bytes > i64::from(i32::MAX) {
                let text = format!("a workgroup's tile of a tensor spans {bytes} bytes");
                return Err(Diagnostic::new(Kind::Limit, text).help("tiles must lie within 2 GiB"));
            }
        }
        let count = self.numbered.map(|numbered| self.evaluate(numbered, value)).transpose()?;
        match count {
            Some(count) if count > i64::from(i32::MAX) => {
                let text = format!("the grid has {count} workgroups");
                Err(Diagnostic::new(Kind::Limit, text)
                    .help("workgroups whose places are computed are fewer than 2147483648: use larger tiles"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses sizes with which an iteration leaves the range of 32-bit integers.
    fn check_iterations(&self, value: &impl Fn(Symbol) -> Option<i64>) -> Result<(), Diagnostic> {
        for &(dim, ends) in &self.iterations {
            let mut tiles = [1; 3];
            for (tiles, &count) in tiles.iter_mut().zip(&self.tiles) {
                *tiles = self.evaluate(count, value)?;
            }
            let bounds = |symbol: Symbol| match GridSymbol::of(symbol) {
                Some(GridSymbol::Workgroup(axis)) => {
                    (0, i128::from(tiles.get(axis as usize).map_or(0, |&count| count.max(1) - 1)))
                }
                Some(GridSymbol::Size(_)) | None => {
                    let counted = self.counted.iter().find(|(of, _)| *of == symbol);
                    if let Some(&(_, (lo, hi))) = counted {
                        return (lo.into(), hi.into());
                    }
                    value(symbol).map_or((i32::MIN.into(), i32::MAX.into()), |v| (v.into(), v.into()))
                }
            };
            if ends.iter().any(|&e| self.arena.narrow_bounds(e, &bounds).is_none()) {
                let text = format!("the iterations over {dim} leave the range of 32-bit integers");
                return Err(Diagnostic::new(Kind::Limit, text).help("launch with smaller sizes"));
            }
        }
        Ok(())
    }
}

impl Executable {
    /// What it has in common with its clones and nothing else, as long as one of them is there.
    pub(super) fn identity(&self) -> usize {
        Arc::as_ptr(&self.inner) as usize
    }

    /// Name of the kernel, which is the symbol in the code object.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The target it was compiled for.
    pub fn target(&self) -> Target {
        self.inner.target.target()
    }

    /// The target with the modes that its object is for.
    pub fn target_id(&self) -> TargetId {
        self.inner.target
    }

    /// The code object: an ELF file that the HIP runtime loads.
    pub fn object(&self) -> &[u8] {
        &self.inner.object
    }

    /// The expressions that are evaluated at each launch.
    #[cfg(feature = "compiler")]
    pub(super) fn launch_expressions(&self) -> &LaunchExpressions {
        &self.inner.launch
    }

    /// Arguments in launch order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.inner.parameters
    }

    /// Arguments that a launch may give one and the same memory: the number among [`Self::parameters`] of a
    /// tensor that the kernel only reads, and that of one that it writes. Each element that it writes then
    /// replaces the one that it was computed from, and that no other part of the launch reads. Launches
    /// refuse other arguments that overlap, if the kernel writes one of them.
    pub fn in_place(&self) -> &[[u32; 2]] {
        &self.inner.in_place
    }

    /// Work-items per workgroup.
    pub fn block(&self) -> [u32; 3] {
        self.inner.block
    }

    /// Bytes of the kernarg segment.
    pub fn kernarg_bytes(&self) -> u32 {
        self.inner.kernarg_bytes
    }

    /// Workgroups along the grid axes for the given values of dynamic symbols. There are none, and a launch
    /// does nothing, if a size of 0 leaves nothing to do.
    ///
    /// # Errors
    /// A dynamic symbol without a value or with one that is not a size, sizes that break an assumption of the
    /// kernel, or a tensor that is too large for it.
    pub fn grid(&self, value: &impl Fn(Symbol) -> Option<i64>) -> Result<[u32; 3], Diagnostic> {
        let launch = &self.inner.launch;
        self.check_sizes(value)?;
        if let Some(empty) = self.empty_size(value) {
            let counts = launch.tiles.map(|tiles| launch.evaluate(tiles, value));
            if counts.contains(&Ok(0)) || self.writes_nothing(value) {
                return Ok([0; 3]);
            }
            let text = format!("{empty} = 0 leaves nothing to compute the results from");
            return Err(Diagnostic::invalid(text)
                .help(format!("fill the results without a launch, or launch with {empty} of 1 and more")));
        }
        launch.check_reaches(value)?;
        launch.check_iterations(value)?;
        let mut grid = [1; 3];
        for (axis, &count) in launch.grid.iter().enumerate() {
            let count = launch.evaluate(count, value)?;
            grid[axis] = u32::try_from(count).ok().filter(|&g| g > 0).ok_or_else(|| {
                Diagnostic::new(Kind::Limit, "the grid has no workgroup or too many along an axis")
            })?;
        }
        self.check_grid(grid)?;
        Ok(grid)
    }

    /// Refuses dynamic symbols without a value that is a size, and sizes that break an assumption.
    fn check_sizes(&self, value: &impl Fn(Symbol) -> Option<i64>) -> Result<(), Diagnostic> {
        for parameter in &self.inner.parameters {
            let Parameter::Symbol { symbol, .. } = parameter else { continue };
            let name = symbol.name();
            match value(*symbol) {
                None => {
                    return Err(Diagnostic::invalid(format!("the launch gives no value for {name}"))
                        .help(format!("set {name}, which was left dynamic")));
                }
                Some(v) if !(0..=i64::from(i32::MAX)).contains(&v) => {
                    return Err(Diagnostic::invalid(format!("{name} = {v} is not a size"))
                        .help(format!("a dimension has 0 to {} elements", i32::MAX)));
                }
                Some(v) => self.check_assumptions(*symbol, v)?,
            }
        }
        Ok(())
    }

    /// Refuses what HIP does not launch: many workgroups along Y or Z, and as many work-items along X as do
    /// not fit 32 bits (clr, hip_module.cpp).
    fn check_grid(&self, grid: [u32; 3]) -> Result<(), Diagnostic> {
        let fault = |text: String, help: String| Err(Diagnostic::new(Kind::Limit, text).help(help));
        if let Some(axis) = (1..3).find(|&axis| grid[axis] > MOST_WORKGROUPS) {
            let text = format!("the grid has {} workgroups along axis {axis}", grid[axis]);
            let help = "spread the longest dimension over axis 0, or use larger tiles";
            return fault(text, format!("at most {MOST_WORKGROUPS} are launched: {help}"));
        }
        let items = u64::from(grid[0]) * u64::from(self.inner.block[0]);
        if items > u64::from(u32::MAX) {
            let help = "use larger tiles, or spread dimensions over other axes";
            let text = format!("the grid has {items} work-items along axis 0");
            return fault(text, format!("at most {} are launched: {help}", u32::MAX));
        }
        Ok(())
    }

    /// True for symbols that are strides and no sizes of tensors.
    fn is_stride(&self, symbol: Symbol) -> bool {
        let names = |sizes: &[Size]| sizes.contains(&Size::Dynamic(symbol));
        let (mut in_strides, mut in_shapes) = (false, false);
        for parameter in &self.inner.parameters {
            if let Parameter::Buffer { shape, strides, .. } = parameter {
                in_strides |= strides.iter().any(|factors| names(factors));
                in_shapes |= names(shape);
            }
        }
        in_strides && !in_shapes
    }

    /// A dynamic size that is 0.
    fn empty_size(&self, value: &impl Fn(Symbol) -> Option<i64>) -> Option<Symbol> {
        let is_empty = |&symbol: &Symbol| value(symbol) == Some(0) && !self.is_stride(symbol);
        self.inner.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Symbol { symbol, .. } => Some(*symbol).filter(is_empty),
            Parameter::Buffer { .. } | Parameter::Log { .. } | Parameter::Scalar { .. } => None,
        })
    }

    /// Whether all tensors that the kernel writes are without elements.
    fn writes_nothing(&self, value: &impl Fn(Symbol) -> Option<i64>) -> bool {
        let is_empty = |shape: &[Size]| {
            shape.iter().any(|size| match *size {
                Size::Static(_) => false,
                Size::Dynamic(symbol) => symbol.value_where(value) == Some(0),
            })
        };
        self.inner.parameters.iter().all(|parameter| match parameter {
            Parameter::Buffer { shape, written: true, .. } | Parameter::Log { shape, .. } => is_empty(shape),
            Parameter::Buffer { .. } | Parameter::Scalar { .. } | Parameter::Symbol { .. } => true,
        })
    }

    /// Checks the value of a scalar on which the iterations of loops depend.
    pub(super) fn check_scalar(&self, name: &str, value: i64) -> Result<(), Diagnostic> {
        let counted = self.inner.launch.counted.iter().find(|(symbol, _)| symbol.name() == name);
        match counted {
            Some(&(_, (lo, hi))) if !(lo..=hi).contains(&value) => {
                let text = format!("the scalar `{name}` chooses iterations, and is {value}");
                Err(Diagnostic::invalid(text).help(format!("pass a number from {lo} to {hi}")))
            }
            _ => Ok(()),
        }
    }

    fn check_assumptions(&self, symbol: Symbol, value: i64) -> Result<(), Diagnostic> {
        for (_, assumption) in self.inner.launch.assumptions.iter().filter(|(of, _)| *of == symbol) {
            let assumed = match *assumption {
                Assumption::Divisible(by) if value.checked_rem(by.into()) != Some(0) => {
                    format!("that {by} divides {symbol}")
                }
                Assumption::AtLeast(least) if value < least => format!("{symbol} >= {least}"),
                Assumption::AtMost(most) if value > most => format!("{symbol} <= {most}"),
                Assumption::Divisible(_) | Assumption::AtLeast(_) | Assumption::AtMost(_) => continue,
            };
            let text = format!("the kernel assumes {assumed}, and {symbol} = {value}");
            return Err(Diagnostic::invalid(text).help("launch with a fitting size or drop the assumption"));
        }
        Ok(())
    }
}
