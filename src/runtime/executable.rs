//! The result of a compilation: a code object and what launching it needs.

use std::fmt::Write as _;
use std::sync::Arc;

use smallvec::SmallVec;

use super::report::Report;
use crate::codegen::isa::{self, Arch, Meaning};
use crate::codegen::object::{self, KernelInfo, ObjectForm, ObjectOptions, SourceLines, assembly};
use crate::codegen::target::{Target, TargetId};
use crate::ir::constraint::GridSymbol;
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{Expr, ExprArena, LastingName, Symbol, lasting_name};
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
    pub(super) format: ObjectOptions,
    pub(super) lines: Option<SourceLines>,
    pub(super) info: KernelInfo,
    pub(super) object: Vec<u8>,
    pub(super) code: Vec<u32>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) block: [u32; 3],
    pub(super) launch: LaunchExpressions,
    pub(super) report: Report,
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

impl Executable {
    /// The approximate number of bytes that it keeps.
    pub(super) fn bytes(&self) -> usize {
        let Inner { lines, info, object, code, parameters, report, .. } = &*self.inner;
        let rows = lines.as_ref().map_or(0, |lines| size_of_val(&lines.rows[..]));
        let splits = report.split_accesses.iter().map(|access| access.what.len());
        let accesses: usize = report.lds_accesses.iter().map(|access| access.what.len()).chain(splits).sum();
        size_of::<Inner>()
            + object.len()
            + size_of_val(&code[..])
            + rows
            + size_of_val(&parameters[..])
            + size_of_val(&info.arguments[..])
            + size_of_val(&report.lds_accesses[..])
            + size_of_val(&report.split_accesses[..])
            + size_of_val(&report.reductions[..])
            + accesses
            + size_of_val(&report.phases[..])
    }

    /// What it has in common with its clones and nothing else, as long as one of them is there.
    pub(super) fn identity(&self) -> usize {
        Arc::as_ptr(&self.inner) as usize
    }

    /// Name of the kernel, which is the symbol in the code object.
    pub fn name(&self) -> &str {
        &self.inner.info.name
    }

    /// The target it was compiled for.
    pub fn target(&self) -> Target {
        self.inner.format.target.target()
    }

    /// The target with the modes that its object is for.
    pub fn target_id(&self) -> TargetId {
        self.inner.format.target
    }

    /// The code object: an ELF file that the HIP runtime loads.
    pub fn object(&self) -> &[u8] {
        &self.inner.object
    }

    /// Machine code words of the kernel.
    pub fn code(&self) -> &[u32] {
        &self.inner.code
    }

    /// Arguments in launch order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.inner.parameters
    }

    /// Work-items per workgroup.
    pub fn block(&self) -> [u32; 3] {
        self.inner.block
    }

    /// Bytes of the kernarg segment.
    pub fn kernarg_bytes(&self) -> u32 {
        self.inner.info.resources.kernarg_bytes
    }

    /// The compiler's report about the code.
    pub fn report(&self) -> &Report {
        &self.inner.report
    }

    /// Workgroups along the grid axes for the given values of dynamic symbols.
    ///
    /// # Errors
    /// A dynamic symbol without a value or with one that is not a size, sizes that break an assumption of the
    /// kernel, or a tensor that is too large for it.
    pub fn grid(&self, value: &impl Fn(Symbol) -> Option<i64>) -> Result<[u32; 3], Diagnostic> {
        let launch = &self.inner.launch;
        for parameter in &self.inner.parameters {
            let Parameter::Symbol { symbol, .. } = parameter else { continue };
            let name = symbol.name();
            match value(*symbol) {
                None => {
                    return Err(Diagnostic::invalid(format!("the launch gives no value for {name}"))
                        .help(format!("set {name}, which was left dynamic")));
                }
                Some(v) if !(1..=i64::from(i32::MAX)).contains(&v) => {
                    return Err(Diagnostic::invalid(format!("{name} = {v} is not a size"))
                        .help(format!("a dimension has 1 to {} elements", i32::MAX)));
                }
                Some(v) => self.check_assumptions(*symbol, v)?,
            }
        }
        let evaluate = |e: Expr| {
            launch.arena.evaluate(e, value).map_err(|error| {
                Diagnostic::new(Kind::Bug, format!("the launch could not be computed: {error}"))
            })
        };
        for &reach in &launch.reaches {
            let bytes = evaluate(reach)?;
            if bytes > i64::from(i32::MAX) {
                let text = format!("a workgroup's tile of a tensor spans {bytes} bytes");
                return Err(Diagnostic::new(Kind::Limit, text).help("tiles must lie within 2 GiB"));
            }
        }
        if let Some(count) = launch.numbered.map(evaluate).transpose()?
            && count > i64::from(i32::MAX)
        {
            let text = format!("the grid has {count} workgroups");
            return Err(Diagnostic::new(Kind::Limit, text)
                .help("workgroups whose places are computed are fewer than 2147483648: use larger tiles"));
        }
        for &(dim, ends) in &launch.iterations {
            let mut tiles = [1; 3];
            for (tiles, &count) in tiles.iter_mut().zip(&launch.tiles) {
                *tiles = evaluate(count)?;
            }
            let bounds = |symbol: Symbol| match GridSymbol::of(symbol) {
                Some(GridSymbol::Workgroup(axis)) => {
                    (0, i128::from(tiles.get(axis as usize).map_or(0, |&count| count.max(1) - 1)))
                }
                Some(GridSymbol::Size(_)) | None => {
                    let counted = launch.counted.iter().find(|(of, _)| *of == symbol);
                    if let Some(&(_, (lo, hi))) = counted {
                        return (lo.into(), hi.into());
                    }
                    value(symbol).map_or((i32::MIN.into(), i32::MAX.into()), |v| (v.into(), v.into()))
                }
            };
            if ends.iter().any(|&e| launch.arena.narrow_bounds(e, &bounds).is_none()) {
                let text = format!("the iterations over {dim} leave the range of 32-bit integers");
                return Err(Diagnostic::new(Kind::Limit, text).help("launch with smaller sizes"));
            }
        }
        let mut grid = [1; 3];
        for (axis, &count) in launch.grid.iter().enumerate() {
            grid[axis] = u32::try_from(evaluate(count)?).ok().filter(|&g| g > 0).ok_or_else(|| {
                Diagnostic::new(Kind::Limit, "the grid has no workgroup or too many along an axis")
            })?;
        }
        Ok(grid)
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

    /// Assembler text of the whole object, which LLVM's assembler and linker turn into the same code and
    /// descriptor.
    pub fn assembly(&self) -> Result<String, Diagnostic> {
        let bug = |text: String| Diagnostic::new(Kind::Bug, text);
        let body = listing(&self.inner.code, self.target().arch).map_err(bug)?;
        let text = assembly::KernelText { info: &self.inner.info, body: &body };
        let format = self.inner.format;
        assembly::print(format.target, format.version, &[text]).map_err(|error| bug(error.to_string()))
    }

    /// The kernel as an entry of an object with several kernels.
    pub fn kernel_info(&self) -> &KernelInfo {
        &self.inner.info
    }
}

/// Writes one code object with several compiled kernels.
///
/// # Errors
/// Kernels for different targets or of different object versions, or two of one name.
pub fn link(executables: &[&Executable]) -> Result<Vec<u8>, Diagnostic> {
    write_together(executables, ObjectForm::Loadable)
}

/// Writes one object with several compiled kernels for a linker, which makes a code object of it and of
/// others: `ld.lld -shared`.
///
/// # Errors
/// Those of [`link`].
pub fn relocatable(executables: &[&Executable]) -> Result<Vec<u8>, Diagnostic> {
    write_together(executables, ObjectForm::Relocatable)
}

fn write_together(executables: &[&Executable], form: ObjectForm) -> Result<Vec<u8>, Diagnostic> {
    let Some(first) = executables.first() else {
        return Err(Diagnostic::invalid("an object needs at least one kernel"));
    };
    let format = ObjectOptions { form, ..first.inner.format };
    if executables.iter().any(|e| e.inner.format.target != format.target) {
        return Err(Diagnostic::invalid("one object cannot hold kernels for different targets"));
    }
    if executables.iter().any(|e| e.inner.format.version != format.version) {
        return Err(Diagnostic::invalid("one object cannot hold kernels of different object versions"));
    }
    let codes: Vec<Vec<u8>> =
        executables.iter().map(|e| e.code().iter().flat_map(|w| w.to_le_bytes()).collect()).collect();
    let kernels: Vec<object::KernelCode> = executables
        .iter()
        .zip(&codes)
        .map(|(e, code)| object::KernelCode { info: &e.inner.info, code, lines: e.inner.lines.as_ref() })
        .collect();
    object::write(format, &kernels).map_err(|error| Diagnostic::invalid(error.to_string()))
}

/// Instructions of a kernel as assembler text with labels.
pub fn listing(code: &[u32], arch: Arch) -> Result<String, String> {
    let mut insts = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let (inst, words) =
            isa::decode(&code[at..], arch).map_err(|e| format!("at byte {:#x}: {e}", at * 4))?;
        insts.push((at, inst));
        at += words;
    }
    let target = |at: usize, inst: &isa::Inst| -> Option<usize> {
        matches!(inst.op.info().meaning, Meaning::Branch(_))
            .then(|| usize::try_from(at as i64 + 1 + i64::from(inst.imm as u16 as i16)).ok())
            .flatten()
    };
    let mut labels: Vec<usize> = insts.iter().filter_map(|(at, inst)| target(*at, inst)).collect();
    labels.sort_unstable();
    labels.dedup();
    let mut out = String::with_capacity(insts.len() * 48);
    for (at, inst) in &insts {
        if let Ok(label) = labels.binary_search(at) {
            let _ = writeln!(out, ".L{label}:");
        }
        out.push('\t');
        let label = target(*at, inst).and_then(|t| labels.binary_search(&t).ok()).map(|l| format!(".L{l}"));
        let _ = isa::write_inst(&mut out, inst, arch, label.as_deref());
        out.push('\n');
    }
    Ok(out)
}
