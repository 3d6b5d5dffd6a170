//! The options of a compilation: target, symbol values, schedule, and what the author does not accept.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::panic::Location as Caller;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::codegen::target::{ObjectVersion, Target, TargetId};
use crate::ir::expr::Symbol;
use crate::ir::schedule::WaveSchedule;
use crate::ir::schedule::table::ScheduleTable;
use crate::ir::types::DType;

/// What the author does not accept; the compilation then fails and names the place.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Deny {
    /// Registers spilled: vector registers to scratch memory, SGPRs to VGPRs.
    Spills,
    /// An LDS access with a bank conflict degree above one.
    BankConflicts,
    /// A mapped access of global memory that takes several instructions where one would do, if neighbouring
    /// elements of the value were certainly neighbours in memory.
    SplitAccesses,
    /// A read of a shared memory that does not go through LDS: one whose coordinates are made of values that
    /// have dimensions, or that come after other loads, or a volatile one.
    UnsharedReads,
    /// Results whose bits depend on which lane, wave or workgroup comes first: atomic sums of floats, atomic
    /// exchanges, what an atomic update gives back, and writes to coordinates that are made of values.
    Nondeterministic,
}

/// How loops are scheduled.
/// Its strategies are rows of a table in `passes/schedule/strategies`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Schedule {
    /// As written: loads, LDS, compute, one iteration after the other.
    #[default]
    None,
    /// Two stages: global loads and LDS writes of the next iteration beside LDS reads and arithmetic of this
    /// one.
    Prefetch,
    /// Four stages, one for each step of an iteration's data: global load, LDS write, LDS read, arithmetic.
    FourStage,
    /// The least interval between iterations that units and dependences of the target allow.
    Modulo,
    /// Prefetching, with two waves per SIMD that take turns: one computes while the other moves data.
    PingPong,
    /// Ping-pong quadrant by quadrant of a wave's tile: halves of one factor share registers, and what has
    /// been read of LDS is refilled half a tile at a time.
    Quadrants,
    /// Prefetching, with each wave's loads, LDS writes and LDS reads spread between its matrix instructions.
    Interleaved,
    /// For loops with several products, or with arithmetic beside one: of the two waves of a SIMD one
    /// multiplies while the other one does everything else of its iteration.
    TwoPhase,
    /// For loops of several products with arithmetic between them: of the two waves of a SIMD one
    /// multiplies and computes while the other one reads the factors of its next product.
    Clusters,
    /// Whichever of these takes the fewest clocks per iteration on the target, loop by loop.
    Automatic,
    /// The author's own.
    Manual(WaveSchedule),
    /// A table of cycles.
    Table(ScheduleTable),
}

/// Whether firmware loads kernel arguments into SGPRs before the kernel starts.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum KernargPreload {
    /// The kernel loads its arguments.
    #[default]
    Off,
    /// The first arguments, as many as fit into the user SGPRs. Kernels on targets that cannot do this do not
    /// compile. On gfx950
    /// [`Executable::warnings`](crate::compile::Executable::warnings) says so where more than four dwords are
    /// preloaded: its firmware may start waves with stale ones after page faults.
    Fitting,
}

/// Bytes per lane of the widest load from global memory to registers.
const WIDEST_LOAD: u32 = 16;

/// How tiles of shared memories get into LDS.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum GlobalToShared {
    /// As ping-pong takes the fewest clocks: straight into LDS on chips whose loads bring as many bytes per
    /// lane to LDS as to registers, through registers on others and with other schedules.
    #[default]
    Automatic,
    /// Through registers: global loads, then LDS writes.
    Off,
    /// With loads straight into LDS, for every tile that such loads can bring (`Report::direct_loads_why`
    /// says why others are not).
    Fitting,
}

/// How exact roots, powers, logarithms, reciprocals and quotients of floats are; docs/numerics.md has their
/// error bounds.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum FloatFunctions {
    /// Within their bounds everywhere: denormals are treated like other numbers, quotients and f32 roots are
    /// correctly rounded.
    #[default]
    Accurate,
    /// Only the approximating instructions of the vector unit. Denormal f32 arguments and results count as
    /// zeros, quotients are products with a reciprocal, and `exp` loses a unit in the last place for every
    /// unit of its argument. Products that are added to something are rounded once, with the sum.
    Fast,
}

/// How running sums are multiplied with factors that are one most of the time, as those of a softmax that
/// goes through its keys tile by tile: they change where a running maximum rises.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum UnitFactors {
    /// A wave branches around the products where all of its factors are one, if they take so many
    /// instructions that this pays. Results are the same.
    #[default]
    Skip,
    /// Every time, without branches.
    Multiply,
}

/// What becomes of loops whose values are masked by their places, as the scores of causal attention are.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum MaskedTiles {
    /// Tiles of which nothing is masked do without the mask: loops are divided or, if they have several
    /// products, branch around it. Tiles that are masked entirely are not visited if they change nothing.
    /// Infinities and NaN that such tiles would multiply with zero are not seen; all else is the same.
    #[default]
    Skip,
    /// Every tile is visited, with the mask.
    Visit,
}

/// Whether a kernel notes which of its coordinates leave their memories.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum BoundsChecking {
    /// What is outside is read as zero and not written, and nobody hears of it.
    #[default]
    Off,
    /// Of accesses at coordinates ([`Tracer::read_at`](crate::prelude::Tracer::read_at) and the like): a
    /// launch in which a coordinate leaves its memory is an error.
    Coordinates,
}

/// What the code object says about the origin of its instructions.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum DebugInfo {
    /// Nothing.
    None,
    /// The author's file and line of each instruction, for debuggers and profilers.
    #[default]
    Lines,
}

/// Where the value of a symbol comes from. Diagnostics mention it; it is not part of what is compiled.
#[derive(Clone, Debug)]
pub enum SetBy {
    /// A call.
    Call(&'static Caller<'static>),
    /// An argument of a program, as its user wrote it.
    Argument(Arc<str>),
    /// A ready kernel's default.
    Default,
}

/// A part of the options that does not distinguish them.
#[derive(Clone, Default, Debug)]
struct Unkeyed<T>(T);

impl<T> PartialEq for Unkeyed<T> {
    fn eq(&self, _: &Unkeyed<T>) -> bool {
        true
    }
}

impl<T> Eq for Unkeyed<T> {}

impl<T> Hash for Unkeyed<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Options of one compilation. Everything in here can change the code, so all of it is part of the cache key.
///
/// # Example
/// ```
/// use groundswell::prelude::*;
/// let [m, block_m] = symbols(["M", "BLOCK_M"]);
/// let options = Options::new(Target::GFX942).set(block_m, 128).dynamic(m).max_vgprs(128);
/// assert_eq!(options.target(), Target::GFX942);
/// // Names do as well as symbols, and integers may be of any type.
/// assert_eq!(options.set("N", 1000usize).value("N"), Some(1000));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    target: TargetId,
    bindings: SmallVec<[(Symbol, i64); 16]>,
    /// By position in `bindings`.
    set_by: Unkeyed<SmallVec<[SetBy; 8]>>,
    /// The first value that does not fit in 64 bits.
    out_of_range: Option<(Symbol, i128)>,
    dynamic: SmallVec<[Symbol; 4]>,
    /// By position in `dynamic`.
    dynamic_by: Unkeyed<SmallVec<[SetBy; 4]>>,
    schedule: Schedule,
    deny: SmallVec<[Deny; 2]>,
    max_vgprs: Option<u32>,
    object_version: Option<ObjectVersion>,
    kernarg_preload: KernargPreload,
    global_to_shared: GlobalToShared,
    functions: FloatFunctions,
    unit_factors: UnitFactors,
    masked_tiles: MaskedTiles,
    bounds_checking: BoundsChecking,
    emulated: Option<DType>,
    debug_info: DebugInfo,
}

impl Options {
    /// No symbol bound, no schedule, nothing denied. The target is a [`Target`] or, for an object that runs
    /// only in certain modes of the chip, a [`TargetId`].
    pub fn new(target: impl Into<TargetId>) -> Options {
        Options {
            target: target.into(),
            bindings: SmallVec::new(),
            set_by: Unkeyed::default(),
            out_of_range: None,
            dynamic: SmallVec::new(),
            dynamic_by: Unkeyed::default(),
            schedule: Schedule::None,
            deny: SmallVec::new(),
            max_vgprs: None,
            object_version: None,
            kernarg_preload: KernargPreload::default(),
            global_to_shared: GlobalToShared::default(),
            functions: FloatFunctions::default(),
            unit_factors: UnitFactors::default(),
            masked_tiles: MaskedTiles::default(),
            bounds_checking: BoundsChecking::default(),
            emulated: None,
            debug_info: DebugInfo::default(),
        }
    }

    /// The same for another target.
    #[must_use]
    pub fn for_target(self, target: impl Into<TargetId>) -> Options {
        Options { target: target.into(), ..self }
    }

    /// Gives a symbol, or the one of a name, its value: an integer of any type. A value that is out of range
    /// is an error at compilation, and so is binding a symbol twice with different values; a default of a
    /// ready kernel gives way.
    #[must_use]
    #[track_caller]
    pub fn set(self, symbol: impl Into<Symbol>, value: impl TryInto<i128>) -> Options {
        self.set_by(symbol, value, SetBy::Call(Caller::caller()))
    }

    /// [`Options::set`] on behalf of someone else: diagnostics about the value name `by`.
    #[must_use]
    pub fn set_by(mut self, symbol: impl Into<Symbol>, value: impl TryInto<i128>, by: SetBy) -> Options {
        // Only a u128 can fail to be an i128, by being larger.
        let (symbol, value) = (symbol.into(), value.try_into().unwrap_or(i128::MAX));
        let is_default = |by: &SetBy| matches!(by, SetBy::Default);
        let known = self.bindings.iter().position(|bound| bound.0 == symbol);
        let known = known.map(|at| (at, is_default(&self.set_by.0[at])));
        match i64::try_from(value) {
            Ok(value) if self.bindings.contains(&(symbol, value)) => {}
            Ok(_) if is_default(&by) && known.is_some() => {}
            Ok(value) if let Some((at, true)) = known => {
                self.bindings[at].1 = value;
                self.set_by.0[at] = by;
            }
            Ok(value) => {
                self.bindings.push((symbol, value));
                self.set_by.0.push(by);
            }
            Err(_) => self.out_of_range = self.out_of_range.or(Some((symbol, value))),
        }
        self
    }

    /// Leaves a symbol, or the one of a name, open until launch: it becomes a kernel argument. Tile sizes
    /// cannot be dynamic.
    #[must_use]
    #[track_caller]
    pub fn dynamic(self, symbol: impl Into<Symbol>) -> Options {
        self.dynamic_by(symbol, SetBy::Call(Caller::caller()))
    }

    /// [`Options::dynamic`] on behalf of someone else: diagnostics about the symbol name `by`.
    #[must_use]
    pub fn dynamic_by(mut self, symbol: impl Into<Symbol>, by: SetBy) -> Options {
        let symbol = symbol.into();
        if !self.dynamic.contains(&symbol) {
            self.dynamic.push(symbol);
            self.dynamic_by.0.push(by);
        }
        self
    }

    /// Chooses a schedule.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Options {
        self.schedule = schedule;
        self
    }

    /// Schedules the kernel as the author says.
    #[must_use]
    pub fn wave_schedule(mut self, schedule: &WaveSchedule) -> Options {
        self.schedule = Schedule::Manual(schedule.clone());
        self
    }

    /// Schedules loops as a table says.
    #[must_use]
    pub fn schedule_table(mut self, table: &ScheduleTable) -> Options {
        self.schedule = Schedule::Table(table.clone());
        self
    }

    /// Makes something that the compiler would otherwise do an error.
    #[must_use]
    pub fn deny(mut self, what: Deny) -> Options {
        if !self.deny.contains(&what) {
            self.deny.push(what);
            self.deny.sort_unstable();
        }
        self
    }

    /// Compiles for at most `count` vector registers (AGPRs included; on gfx908, whose AGPRs have a file of
    /// their own, of either kind): more waves fit, and values that do not fit are spilled. If spilling cannot
    /// meet the limit, that is an error; with [`Deny::Spills`] spilling is one as well.
    #[must_use]
    pub fn max_vgprs(mut self, count: u32) -> Options {
        self.max_vgprs = Some(count);
        self
    }

    /// Chooses the version of the code object.
    #[must_use]
    pub fn object_version(mut self, version: ObjectVersion) -> Options {
        self.object_version = Some(version);
        self
    }

    /// Chooses how tiles of shared memories come into LDS.
    #[must_use]
    pub fn global_to_shared(mut self, how: GlobalToShared) -> Options {
        self.global_to_shared = how;
        self
    }

    /// Computes functions of floats with fewer instructions, and less exactly: see [`FloatFunctions::Fast`].
    #[must_use]
    pub fn fast_math(mut self) -> Options {
        self.functions = FloatFunctions::Fast;
        self
    }

    /// Chooses how running sums are multiplied with factors that are one most of the time.
    #[must_use]
    pub fn unit_factors(mut self, how: UnitFactors) -> Options {
        self.unit_factors = how;
        self
    }

    /// Chooses whether loops visit tiles that are masked entirely.
    #[must_use]
    pub fn masked_tiles(mut self, which: MaskedTiles) -> Options {
        self.masked_tiles = which;
        self
    }

    /// Adds checks to accesses at coordinates: a launch in which a coordinate leaves its memory is an error
    /// that names the access, the memory and the coordinate. Such kernels are larger and slower.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [n, rows] = symbols(["N", "ROWS"]);
    /// let gather = Kernel::trace("gather", |w| {
    ///     w.distribute([workgroup(n, 64, 0)]);
    ///     let table = w.memory("table", [rows], Global, F32);
    ///     let ids = w.memory("ids", [n], Global, I32);
    ///     let out = w.memory("out", [n], Global, F32);
    ///     w.write(w.read_at(table, [w.read(ids)], [n]), out);
    /// })?;
    /// let options = Options::new(Target::GFX942).set(n, 2).set(rows, 3).bounds_check();
    /// let gather = gather.compile(&options)?;
    /// let device = Device::open()?;
    /// let [table, out] = [device.upload(&[1.0f32; 3])?, device.upload(&[0.0f32; 2])?];
    /// let ids = device.upload(&[2i32, 7])?;
    /// let fault = device.launch(&gather).buffer(&table).buffer(&ids).buffer(&out).run();
    /// assert!(fault.is_err_and(|fault| fault.message.contains("7 along ROWS")));
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[must_use]
    pub fn bounds_check(mut self) -> Options {
        self.bounds_checking = BoundsChecking::Coordinates;
        self
    }

    /// Multiplies the factors of products with scales
    /// ([`Tracer::scaled_mma`](crate::prelude::Tracer::scaled_mma)) with these in a dtype, and takes an
    /// ordinary product of it: bf16, which holds each such factor exactly unless it leaves the range of f32,
    /// f16 or f32. Chips without an instruction for such products need it, others obey it all the same.
    #[must_use]
    pub fn emulate(mut self, dtype: DType) -> Options {
        self.emulated = Some(dtype);
        self
    }

    /// Chooses who loads the kernel's arguments.
    #[must_use]
    pub fn kernarg_preload(mut self, preload: KernargPreload) -> Options {
        self.kernarg_preload = preload;
        self
    }

    /// Chooses what the object says of its sources.
    #[must_use]
    pub fn debug_info(mut self, debug: DebugInfo) -> Options {
        self.debug_info = debug;
        self
    }

    /// Appends everything that can change the code, as text that is the same in every process.
    pub(crate) fn write_key(&self, out: &mut String) {
        let Options {
            target,
            bindings,
            set_by: _,
            out_of_range,
            dynamic,
            dynamic_by: _,
            schedule,
            deny,
            max_vgprs,
            object_version,
            kernarg_preload,
            global_to_shared,
            functions,
            unit_factors,
            masked_tiles,
            bounds_checking,
            emulated,
            debug_info,
        } = self;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "target {target}");
        for (symbol, value) in bindings {
            let _ = writeln!(out, "set {:?} {value}", symbol.name());
        }
        for symbol in dynamic {
            let _ = writeln!(out, "dynamic {:?}", symbol.name());
        }
        let _ =
            writeln!(out, "{out_of_range:?} {deny:?} {max_vgprs:?} {object_version:?} {kernarg_preload:?}");
        let _ = writeln!(
            out,
            "{global_to_shared:?} {functions:?} {unit_factors:?} {masked_tiles:?} {bounds_checking:?} {emulated:?}"
        );
        let _ = writeln!(out, "{debug_info:?}");
        match schedule {
            Schedule::Manual(schedule) => {
                schedule.identity().write_key(out);
                schedule.sources().write_key(out);
            }
            Schedule::Table(table) => {
                let _ = writeln!(out, "table {} {}\n{}", table.location(), table.text().len(), table.text());
            }
            Schedule::None
            | Schedule::Prefetch
            | Schedule::FourStage
            | Schedule::Modulo
            | Schedule::PingPong
            | Schedule::Quadrants
            | Schedule::Interleaved
            | Schedule::TwoPhase
            | Schedule::Clusters
            | Schedule::Automatic => {
                let _ = writeln!(out, "schedule {schedule:?}");
            }
        }
    }

    /// The target.
    pub fn target(&self) -> Target {
        self.target.target()
    }

    /// The target with the modes that the object is for.
    pub fn target_id(&self) -> TargetId {
        self.target
    }

    /// Version of the code object.
    pub fn requested_object_version(&self) -> ObjectVersion {
        self.object_version.unwrap_or(self.target().object_version())
    }

    /// How tiles of shared memories come into LDS.
    pub fn requested_global_to_shared(&self) -> GlobalToShared {
        self.global_to_shared
    }

    /// Whether tiles are loaded straight into LDS where that is possible.
    pub(crate) fn loads_to_lds(&self) -> bool {
        match self.global_to_shared {
            GlobalToShared::Off => false,
            GlobalToShared::Fitting => true,
            GlobalToShared::Automatic => {
                let widest = self.target().lds_load_widths.first() == Some(&WIDEST_LOAD);
                widest
                    && match &self.schedule {
                        Schedule::PingPong
                        | Schedule::Quadrants
                        | Schedule::Interleaved
                        | Schedule::Clusters
                        | Schedule::Automatic => true,
                        Schedule::Manual(written) => written.loads_to_lds(),
                        Schedule::None
                        | Schedule::Prefetch
                        | Schedule::FourStage
                        | Schedule::Modulo
                        | Schedule::TwoPhase
                        | Schedule::Table(_) => false,
                    }
            }
        }
    }

    /// How exact functions of floats are.
    pub fn requested_functions(&self) -> FloatFunctions {
        self.functions
    }

    /// How running sums are multiplied with factors that are one most of the time.
    pub(crate) fn requested_unit_factors(&self) -> UnitFactors {
        self.unit_factors
    }

    /// Whether loops visit tiles that are masked entirely.
    pub(crate) fn requested_masked_tiles(&self) -> MaskedTiles {
        self.masked_tiles
    }

    /// Which accesses note that they leave their memories.
    pub fn requested_bounds_checks(&self) -> BoundsChecking {
        self.bounds_checking
    }

    /// The dtype in which factors of products are multiplied with their scales, if the chip's own instruction
    /// is not to do it.
    pub fn emulated(&self) -> Option<DType> {
        self.emulated
    }

    /// Who loads the kernel's arguments.
    pub fn requested_kernarg_preload(&self) -> KernargPreload {
        self.kernarg_preload
    }

    /// What the object says of its sources.
    pub fn requested_debug_info(&self) -> DebugInfo {
        self.debug_info
    }

    /// Symbol values in the order they were given.
    pub fn bindings(&self) -> &[(Symbol, i64)] {
        &self.bindings
    }

    /// Symbols left open until launch, in the order they were given.
    pub fn dynamic_symbols(&self) -> &[Symbol] {
        &self.dynamic
    }

    /// The schedule.
    pub fn requested_schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The author's schedule, if that is what was asked for.
    pub fn requested_wave_schedule(&self) -> Option<&WaveSchedule> {
        match &self.schedule {
            Schedule::Manual(written) => Some(written),
            Schedule::None
            | Schedule::Prefetch
            | Schedule::FourStage
            | Schedule::Modulo
            | Schedule::PingPong
            | Schedule::Quadrants
            | Schedule::Interleaved
            | Schedule::TwoPhase
            | Schedule::Clusters
            | Schedule::Automatic
            | Schedule::Table(_) => None,
        }
    }

    /// True if `what` is denied.
    pub fn denies(&self, what: Deny) -> bool {
        self.deny.contains(&what)
    }

    /// Most vector registers that the code may use.
    pub fn vgpr_limit(&self) -> Option<u32> {
        self.max_vgprs
    }

    /// Value of a symbol, if it or what it follows is bound.
    pub fn value(&self, symbol: impl Into<Symbol>) -> Option<i64> {
        let bound = |symbol| self.bindings.iter().find(|b| b.0 == symbol).map(|b| b.1);
        symbol.into().value_where(&bound)
    }

    /// Who gave a symbol its value.
    pub fn value_set_by(&self, symbol: Symbol) -> Option<&SetBy> {
        let at = self.bindings.iter().position(|b| b.0 == symbol)?;
        self.set_by.0.get(at)
    }

    /// Who left a symbol open.
    pub fn left_open_by(&self, symbol: Symbol) -> Option<&SetBy> {
        let at = self.dynamic.iter().position(|&open| open == symbol)?;
        self.dynamic_by.0.get(at)
    }

    /// The first value given that does not fit in 64 bits, and its symbol.
    pub(super) fn out_of_range(&self) -> Option<(Symbol, i128)> {
        self.out_of_range
    }
}
