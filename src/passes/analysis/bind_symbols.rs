//! Binds symbols: constraints and sizes become numbers (or dynamic symbols), giving the kernel's
//! [`Geometry`].

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::binder::{Binder, plain_symbol};
use super::loop_iterations::{bind_iterations, check_nesting};
use super::memory_strides::check_strides;
use super::workgroup_order::place_workgroups;
use crate::codegen::target::LANES;
use crate::ir::constraint::{Constraint, MAX_AXES};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{Expr, ExprError, SymExpr, Symbol};
use crate::ir::kernel::{Constraints, DimTable, Locations, MAX_SIZE, ScaledDim};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::Strides;
use crate::ir::node::{Body, Name, Op, Operands, Origin, ValueType};
use crate::ir::op::OpClass;
use crate::ir::types::DType;
use crate::ir::walk::{self, NodeList};
use crate::passes::PassResult;
use crate::passes::facts::{DimGeometry, Expressions, Geometry, Settings};
use crate::passes::options::Options;

/// The most waves in a workgroup: 1,024 work-items (AMDGPUUsage, "Target properties").
pub(crate) const MAX_WAVES: u32 = 16;

/// Elements of a tile along a dimension.
const TILES: std::ops::RangeInclusive<i64> = 1..=1 << 20;

type WrittenNodes<'w, 's> = Query<'w, 's, (&'static Op, &'static ValueType, &'static Origin)>;
type StridedMemories<'w, 's> =
    Query<'w, 's, (&'static ValueType, &'static Strides, &'static Name, &'static Origin)>;

/// The pass itself; see the module.
pub(crate) fn bind_symbols(
    mut kernel: Single<(
        &Settings,
        &mut Expressions,
        &DimTable,
        &Constraints,
        &Locations,
        &Body,
        &mut Geometry,
    )>,
    nodes: WrittenNodes,
    strided: StridedMemories,
    mapped: Query<&Operands, With<Mapping>>,
    scalars: Query<(&Op, &ValueType, &Name)>,
    bodies: Query<&Body, Without<Settings>>,
) -> PassResult {
    let (settings, expressions, dims, constraints, locations, body, geometry) = &mut *kernel;
    let mut order = NodeList::new();
    walk::preorder(body, &|node| bodies.get(node).ok(), &mut order);
    let written = WrittenKernel { order, nodes: &nodes, strided: &strided, dims, locations };
    let (options, constraints) = (&settings.0, &constraints.0[..]);
    let mut binder = Binder { options, arena: &mut expressions.0, dims, constraints, locations };
    check_bindings(options).map_err(|(symbol, fault)| fault.at(written.place(symbol)))?;
    binder.assume()?;
    **geometry = Geometry { waves: [1; 3], ..Geometry::default() };
    for &symbol in dims.0.values() {
        let size = binder.size(symbol).map_err(|fault| written.about_size(symbol, fault))?;
        geometry.dims.push(size);
    }
    let scaled = dims.scaled();
    for &ScaledDim { dim, base, by } in &scaled {
        geometry.dims[dim].scaled_from = Some((base, by));
    }
    for (constraint, origin) in constraints {
        binder.apply(geometry, constraint, *origin)?;
    }
    binder.waves_and_grid(geometry)?;
    for &dim in &scaled {
        binder.follow(geometry, dim)?;
    }
    place_workgroups(&mut binder, geometry)?;
    let is_dynamic = |symbol: &Symbol| options.dynamic_symbols().contains(symbol);
    geometry.dynamic = dims.0.values().copied().filter(is_dynamic).collect();
    if constraints.iter().any(|(constraint, _)| matches!(constraint, Constraint::Iterations { .. })) {
        bind_iterations(&mut binder, geometry, &written.symbols_of_iterations(&scalars))?;
        let region = |node: Entity| Some((*nodes.get(node).ok()?.0, bodies.get(node).ok().cloned()));
        check_nesting(body, geometry, constraints, &region, &mut SmallVec::new())
            .map_err(|(node, fault)| fault.at(written.location(node)))?;
    }
    for (ty, strides, name, origin) in written.order.iter().filter_map(|&node| strided.get(node).ok()) {
        let at = || locations.get(origin.0);
        check_strides(binder.arena, geometry, &name.0, &ty.dims, strides, &at)?;
    }
    // They may be repeated by way of a buffer.
    if !scaled.is_empty() || written.covers(geometry, &mapped)? {
        geometry.dims.values_mut().for_each(cover);
    }
    written.check_loops(geometry)
}

/// The nodes of the kernel as the author wrote them.
struct WrittenKernel<'a, 'w, 's> {
    /// All of them, in order.
    order: NodeList,
    nodes: &'a WrittenNodes<'w, 's>,
    strided: &'a StridedMemories<'w, 's>,
    dims: &'a DimTable,
    locations: &'a Locations,
}

impl WrittenKernel<'_, '_, '_> {
    /// The memory of which a symbol is a stride.
    fn memory_of_stride(&self, symbol: Symbol) -> Option<&Origin> {
        let dim = self.dims.find(symbol)?;
        let is_factor = |strides: &Strides| strides.0.iter().any(|stride| stride.contains(&dim));
        let mut strided = self.order.iter().filter_map(|&node| self.strided.get(node).ok());
        strided.find(|(_, strides, ..)| is_factor(strides)).map(|found| found.3)
    }

    fn location(&self, node: Entity) -> Option<Location> {
        self.locations.get(self.nodes.get(node).ok()?.2.0)
    }

    /// The place at which the kernel first names a dimension.
    fn place(&self, symbol: Symbol) -> Option<Location> {
        let dim = self.dims.find(symbol)?;
        let mut uses = self.order.iter().filter_map(|&node| self.nodes.get(node).ok());
        let used = uses.find(|(op, ty, _)| ty.dims.contains(&dim) || op.over_tiles() == Some(dim));
        let origin = match used {
            Some((_, _, origin)) => origin,
            None => self.memory_of_stride(symbol)?,
        };
        self.locations.get(origin.0)
    }

    /// What is wrong about the size of a dimension, with its place.
    fn about_size(&self, symbol: Symbol, fault: Diagnostic) -> Diagnostic {
        let fault = fault.at(self.place(symbol));
        match self.memory_of_stride(symbol).is_some() {
            true => fault.note(format!("{symbol} is a stride"), None),
            false => fault,
        }
    }

    /// Scalars, and what the kernel itself sets, that the iterations of loops may depend on.
    fn symbols_of_iterations(&self, scalars: &Query<(&Op, &ValueType, &Name)>) -> SmallVec<[Symbol; 4]> {
        let set = self.order.iter().filter_map(|&node| {
            let Op::SetSymbol(symbol) = *self.nodes.get(node).ok()?.0 else { return None };
            Some(symbol)
        });
        scalars
            .iter()
            .filter(|(op, ty, _)| **op == Op::Scalar && ty.dtype == Some(DType::I32))
            .map(|(.., name)| Symbol::new(&name.0))
            .filter(|&name| self.dims.find(name).is_none())
            .chain(set)
            .collect()
    }

    /// True if the kernel has a node for which lanes have to [`cover`] dimensions.
    fn covers(
        &self,
        geometry: &Geometry,
        mapped: &Query<&Operands, With<Mapping>>,
    ) -> Result<bool, Diagnostic> {
        for &node in &self.order {
            // A value that is read at coordinates goes through a buffer.
            let reads_value = || {
                let accessed = mapped.get(node).ok().and_then(|operands| operands.0.last());
                let accessed = accessed.and_then(|&accessed| self.nodes.get(accessed).ok());
                accessed.is_some_and(|(op, ..)| op.row().class != OpClass::Declaration)
            };
            let (op, ty, _) = self.nodes.get(node)?;
            if op.runs_along().is_some()
                || (*op == Op::Memory && ty.dtype.is_none())
                || *op == Op::Allocate
                || reads_value()
                || !spreads_evenly(geometry, &ty.dims)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks that loops are over dimensions that have a tile and are not scaled.
    fn check_loops(&self, geometry: &Geometry) -> PassResult {
        for &node in &self.order {
            let (op, _, origin) = self.nodes.get(node)?;
            let Some(dim) = op.over_tiles() else { continue };
            let (name, at) = (self.dims.name(dim), self.locations.get(origin.0));
            if let Some((base, _)) = geometry.dim(dim).scaled_from {
                let base = self.dims.name(base);
                let fault = Diagnostic::invalid(format!("a loop is over {name}")).at(at);
                return Err(fault.help(format!("loop over {base}: its iterations take their part of {name}")));
            }
            if geometry.dim(dim).tiling.is_none() {
                let fault = Diagnostic::invalid(format!("the loop over {name} has no tile size")).at(at);
                return Err(fault.help(format!(
                    "say how many elements an iteration takes: `tile {name}, 32`, in Rust `tile({name}, 32)`"
                )));
            }
        }
        Ok(())
    }
}

/// Checks that no symbol has two values; the error names the symbol.
fn check_bindings(options: &Options) -> Result<(), (Symbol, Diagnostic)> {
    if let Some((symbol, value)) = options.out_of_range() {
        return Err((symbol, no_size(&format!("{symbol} = {value} is out of range"))));
    }
    let bound = options.bindings().iter().map(|binding| binding.0);
    if let Some(number) = bound.chain(options.dynamic_symbols().iter().copied()).find(|s| s.value().is_some())
    {
        let fault = Diagnostic::invalid(format!("{number} is a number, and not a symbol"));
        return Err((number, fault.help("name the dimension to choose its size")));
    }
    let bound = options.bindings().iter().map(|binding| binding.0);
    for symbol in bound.chain(options.dynamic_symbols().iter().copied()) {
        if let Some((base, _)) = symbol.scaled_from() {
            let fault = Diagnostic::invalid(format!("{symbol} has no size of its own"));
            return Err((symbol, fault.help(format!("it follows {base}: choose the size of {base}"))));
        }
    }
    for (at, &(symbol, value)) in options.bindings().iter().enumerate() {
        let name = symbol.name();
        if let Some(&(_, first)) = options.bindings()[..at].iter().find(|b| b.0 == symbol) {
            let fault = Diagnostic::invalid(format!("{name} is bound twice, to {first} and to {value}"))
                .help("bind each symbol once");
            return Err((symbol, fault));
        }
        if options.dynamic_symbols().contains(&symbol) {
            let fault = Diagnostic::invalid(format!("{name} is bound to {value} and declared dynamic"))
                .help("either bind the symbol or leave it open until launch");
            return Err((symbol, fault));
        }
    }
    Ok(())
}

impl Binder<'_> {
    fn assume(&mut self) -> Result<(), Diagnostic> {
        for &symbol in self.options.dynamic_symbols() {
            self.arena.assume_range(symbol, 1..=MAX_SIZE).map_err(|e| bug(&e))?;
        }
        for (constraint, origin) in self.constraints {
            let at = self.locations.get(*origin);
            match constraint {
                Constraint::Divisible { symbol, by } => {
                    let by = i64::from(*by);
                    let holds = |value: i64| by != 0 && value % by == 0;
                    let otherwise = format_args!("is not a multiple of {by}");
                    let Some(symbol) = self.open_symbol(symbol, &at, holds, otherwise)? else { continue };
                    if by == 0 {
                        let fault = Diagnostic::invalid("nothing is a multiple of 0").at(at);
                        return Err(fault.help("drop the assumption"));
                    }
                    let assumed = self.arena.assume_divisible(symbol, by);
                    assumed.map_err(|e| contradiction(&e, symbol, at))?;
                }
                Constraint::AtLeast { symbol, least } => {
                    let holds = |value: i64| value >= *least;
                    let otherwise = format_args!("is below {least}");
                    let Some(symbol) = self.open_symbol(symbol, &at, holds, otherwise)? else { continue };
                    if *least > MAX_SIZE {
                        return Err(no_size(&format!("no size of {symbol} is at least {least}")).at(at));
                    }
                    self.assume_range(symbol, (*least).clamp(1, MAX_SIZE)..=MAX_SIZE, at)?;
                }
                Constraint::AtMost { symbol, most } => {
                    let holds = |value: i64| value <= *most;
                    let otherwise = format_args!("is above {most}");
                    let Some(symbol) = self.open_symbol(symbol, &at, holds, otherwise)? else { continue };
                    if *most < 1 {
                        return Err(no_size(&format!("no size of {symbol} is at most {most}")).at(at));
                    }
                    self.assume_range(symbol, ..=(*most).min(MAX_SIZE), at)?;
                }
                Constraint::Workgroup { .. } | Constraint::Tiling { .. } | Constraint::Iterations { .. } => {}
                Constraint::Wave { .. } | Constraint::MmaType(_) | Constraint::Reorder(_) => {}
                Constraint::Persistent { .. } | Constraint::Emulate(_) => {}
            }
        }
        Ok(())
    }

    /// The symbol that something is assumed of, if its size is left open. One that is known has to be as
    /// assumed; `otherwise` says what else it is.
    fn open_symbol(
        &self,
        symbol: &SymExpr,
        at: &Option<Location>,
        holds: impl Fn(i64) -> bool,
        otherwise: std::fmt::Arguments,
    ) -> Result<Option<Symbol>, Diagnostic> {
        let symbol = plain_symbol(symbol, at.clone())?;
        match self.options.value(symbol) {
            Some(value) if !holds(value) => {
                let fault = Diagnostic::invalid(format!("{symbol} = {value} {otherwise}")).at(at.clone());
                Err(fault.help("bind another value or drop the assumption"))
            }
            Some(_) => Ok(None),
            None => Ok(Some(symbol)),
        }
    }

    fn assume_range(
        &mut self,
        symbol: Symbol,
        range: impl std::ops::RangeBounds<i64>,
        at: Option<Location>,
    ) -> Result<(), Diagnostic> {
        self.arena.assume_range(symbol, range).map_err(|e| contradiction(&e, symbol, at))
    }

    fn size(&mut self, symbol: Symbol) -> Result<DimGeometry, Diagnostic> {
        let name = symbol.name();
        let (size, static_size) = match self.options.value(symbol) {
            Some(value) if (1..=MAX_SIZE).contains(&value) => (self.arena.int(value), Some(value as u32)),
            Some(value) => {
                return Err(no_size(&format!("{name} = {value} is not a size")));
            }
            None if self.options.dynamic_symbols().contains(&symbol) => (self.arena.symbol(symbol), None),
            None if let Some((base, by)) = self.open_base(symbol) => {
                let (size, by) = (self.arena.symbol(base), self.arena.int(i64::from(by)));
                (self.arena.ceil_div(size, by).map_err(|e| bug(&e))?, None)
            }
            None => {
                return Err(Diagnostic::invalid(format!("the dimension {name} has no size"))
                    .help(format!(
                        "set it, with `-s {name}=..` or `set({name}, ..)`, or leave it open until the launch, with \
                         `--dynamic {name}` or `dynamic({name})`"
                    )));
            }
        };
        Ok(DimGeometry::new(symbol, size, static_size))
    }

    /// What a symbol is scaled from, if that is left open.
    fn open_base(&self, symbol: Symbol) -> Option<(Symbol, u32)> {
        symbol.scaled_from().filter(|(base, _)| self.options.dynamic_symbols().contains(base))
    }

    /// A positive integer that is known now; `help` says which there are.
    fn positive(
        &mut self,
        tile: &SymExpr,
        what: impl std::fmt::Display,
        at: Option<Location>,
        help: impl Fn() -> String,
    ) -> Result<u32, Diagnostic> {
        let options = self.options;
        // Mostly the sizes of all its symbols are known. The rest finds out what is wrong, or that a symbol
        // without a size does not matter.
        if let Some(value) = tile.value(&|symbol| options.value(symbol)).filter(|value| TILES.contains(value))
        {
            return Ok(value as u32);
        }
        let fail = |text: String| Diagnostic::invalid(text).at(at.clone());
        let overflow = |error: ExprError| fail(format!("{what} cannot be computed: {error}"));
        let expr = tile.intern(self.arena).map_err(overflow)?;
        let mut values: SmallVec<[(Symbol, Expr); 4]> = SmallVec::new();
        for symbol in self.arena.symbols(expr) {
            let Some(value) = options.value(symbol) else {
                let name = symbol.name();
                let why = match options.dynamic_symbols().contains(&symbol) {
                    true => "is left open until the launch",
                    false => "has no value",
                };
                return Err(fail(format!("{what} depends on {name}, which {why}")).help(format!(
                    "set it, with `-s {name}=..` or `set({name}, ..)`: only sizes of dimensions can be left open"
                )));
            };
            values.push((symbol, self.arena.int(value)));
        }
        let bound = self
            .arena
            .substitute(expr, &mut |s: Symbol| values.iter().find(|v| v.0 == s).map(|v| v.1))
            .map_err(overflow)?;
        match self.arena.as_integer(bound) {
            Some(value) if TILES.contains(&value) => Ok(value as u32),
            Some(value) => Err(fail(format!("{what} is {value}")).help(help())),
            None => Err(fail(format!("{what} is not an integer")).help("choose sizes that divide evenly")),
        }
    }

    /// Notes in the geometry what a constraint says.
    fn apply(
        &mut self,
        geometry: &mut Geometry,
        constraint: &Constraint,
        origin: u32,
    ) -> Result<(), Diagnostic> {
        let at = self.locations.get(origin);
        match constraint {
            Constraint::Workgroup { dim, tile, axis } => {
                let (dim, tile) = self.tiled(geometry, (dim, tile), "workgroup tile", origin)?;
                self.spread(geometry, dim, (*axis, tile), at)
            }
            Constraint::Tiling { dim, tile } => {
                let (dim, tile) = self.tiled(geometry, (dim, tile), "loop tile", origin)?;
                let entry = &mut geometry.dims[dim];
                no_second(entry.tiling.replace(tile), entry.symbol, "loop tile", at)
            }
            Constraint::Wave { dim, tile } => {
                let (dim, tile) = self.tiled(geometry, (dim, tile), "wave tile", origin)?;
                let entry = &mut geometry.dims[dim];
                no_second(entry.wave.replace(tile), entry.symbol, "wave tile", at)
            }
            Constraint::MmaType(mma) => {
                geometry.mma = Some(*mma);
                Ok(())
            }
            Constraint::Persistent { workgroups } => {
                let help = || format!("1 to {} workgroups share the tiles of a grid", TILES.end());
                let count = self.positive(workgroups, "the number of workgroups", at.clone(), help)?;
                if geometry.persistent.replace(count).is_some() {
                    let fault = Diagnostic::invalid("the number of workgroups is given twice").at(at);
                    return Err(fault.help("keep one of the constraints"));
                }
                Ok(())
            }
            // They are assumed.
            Constraint::Divisible { .. } | Constraint::AtLeast { .. } | Constraint::AtMost { .. } => Ok(()),
            // They are bound once the grid is known.
            Constraint::Iterations { .. } | Constraint::Reorder(_) => Ok(()),
            // It is about products alone.
            Constraint::Emulate(_) => Ok(()),
        }
    }

    /// The dimension that a constraint gives a tile, and the tile's elements.
    fn tiled(
        &mut self,
        geometry: &mut Geometry,
        (dim, tile): (&SymExpr, &SymExpr),
        what: &str,
        origin: u32,
    ) -> Result<(Dim, u32), Diagnostic> {
        let at = self.locations.get(origin);
        let symbol = plain_symbol(dim, at.clone())?;
        let name = symbol.name();
        let help = || format!("a tile has 1 to {} elements along a dimension", TILES.end());
        let tile = self
            .positive(tile, format_args!("the {what} of {name}"), at.clone(), help)
            .map_err(|fault| fault.about(symbol))?;
        let Some(dim) = self.dims.find(symbol) else {
            return Err(Diagnostic::invalid(format!(
                "{name} has a {what}, but no memory or loop has this dimension"
            ))
            .at(at)
            .help("remove the constraint or use the dimension"));
        };
        geometry.dims[dim].origin = origin;
        Ok((dim, tile))
    }

    /// Spreads a dimension over the workgroups along an axis of the grid, with tiles of so many elements.
    fn spread(
        &self,
        geometry: &mut Geometry,
        dim: Dim,
        (axis, tile): (u32, u32),
        at: Option<Location>,
    ) -> Result<(), Diagnostic> {
        if axis as usize >= MAX_AXES {
            let fault = Diagnostic::invalid(format!("grid axis {axis} does not exist")).at(at);
            return Err(fault.help("use one of the axes 0 to 4"));
        }
        let entry = &mut geometry.dims[dim];
        let name = entry.symbol;
        no_second(entry.workgroup.replace((axis, tile)), name, "workgroup tile", at.clone())?;
        let is_along = |entry: &DimGeometry| entry.workgroup.is_some_and(|(along, _)| along == axis);
        if let Some((_, other)) = geometry.dims.iter().find(|(other, d)| *other != dim && is_along(d)) {
            let text = format!("{name} and {} are both spread over grid axis {axis}", other.symbol);
            return Err(Diagnostic::invalid(text)
                .at(at)
                .note("the other constraint is here", self.locations.get(other.origin))
                .help("give each dimension an axis of its own"));
        }
        Ok(())
    }

    fn waves_and_grid(&mut self, geometry: &mut Geometry) -> Result<(), Diagnostic> {
        let one = self.arena.int(1);
        let axes = geometry.dims.values().filter_map(|dim| Some(dim.workgroup?.0 as usize + 1)).max();
        geometry.grid = SmallVec::from_elem(one, axes.unwrap_or(0).max(3));
        for dim in geometry.dims.values() {
            let name = dim.symbol.name();
            let at = self.locations.get(dim.origin);
            let Some((axis, tile)) = dim.workgroup else {
                continue;
            };
            if dim.tiling.is_some() {
                let text = format!("{name} has a workgroup tile and a loop tile");
                return Err(Diagnostic::invalid(text)
                    .at(at)
                    .help("spread a dimension over workgroups or loop over it"));
            }
            let per_tile = self.arena.int(i64::from(tile));
            geometry.grid[axis as usize] = self.arena.ceil_div(dim.size, per_tile).map_err(|e| bug(&e))?;
            if let Some(wave) = dim.wave {
                if tile % wave != 0 {
                    return Err(Diagnostic::invalid(format!(
                        "the workgroup tile of {name} ({tile}) is not a multiple of its wave tile ({wave})"
                    ))
                    .at(at)
                    .about(dim.symbol)
                    .help("choose tiles that divide"));
                }
                let Some(waves) = geometry.waves.get_mut(axis as usize) else {
                    let text = format!("{name} has a wave tile and lies along grid axis {axis}");
                    return Err(Diagnostic::invalid(text)
                        .at(at)
                        .about(dim.symbol)
                        .help("waves divide dimensions of the grid axes 0 to 2: exchange the axes"));
                };
                *waves = tile / wave;
            }
        }
        self.waves_of_whole(geometry)?;
        let count = geometry.wave_count();
        if count > MAX_WAVES {
            let origin = geometry.dims.values().filter(|d| d.wave.is_some()).map(|d| d.origin).max();
            let [x, y, z] = geometry.waves;
            let text = format!("a workgroup would have {x} x {y} x {z} = {count} waves");
            let fault = Diagnostic::new(Kind::Limit, text)
                .at(origin.and_then(|o| self.locations.get(o)))
                .help(format!("a workgroup has at most {MAX_WAVES} waves: use larger wave tiles"));
            let spread = geometry.dims.values().filter(|d| d.wave.is_some());
            return Err(spread.fold(fault, |fault, dim| fault.about(dim.symbol)));
        }
        Ok(())
    }
}

impl Binder<'_> {
    /// Waves that divide dimensions which no workgroups divide: all of a dimension, or the tile of a loop.
    fn waves_of_whole(&self, geometry: &mut Geometry) -> Result<(), Diagnostic> {
        let whole = |dim: &DimGeometry| dim.wave.is_some() && dim.workgroup.is_none();
        let axes: SmallVec<[(u32, Dim); 3]> =
            (0..3).filter_map(|axis| Some((axis, geometry.wave_dim(axis)?))).collect();
        for dim in geometry.dims.keys() {
            let entry = &geometry.dims[dim];
            if !whole(entry) {
                continue;
            }
            let (name, location) = (entry.symbol.name(), self.locations.get(entry.origin));
            let fault = |text: String| Diagnostic::invalid(text).at(location.clone()).about(entry.symbol);
            let wave = entry.wave.unwrap_or(1);
            let Some(&(axis, _)) = axes.iter().find(|(_, divided)| *divided == dim) else {
                let text = format!("the waves of a workgroup divide {name} as a fourth dimension");
                return Err(fault(text).help("waves divide at most three dimensions"));
            };
            let (waves, covered) = match (entry.tiling, entry.static_size) {
                (Some(tile), _) if tile % wave != 0 => {
                    let text = format!(
                        "the loop tile of {name} ({tile}) is not a multiple of its wave tile ({wave})"
                    );
                    return Err(fault(text).help("choose tiles that divide"));
                }
                (Some(tile), _) => (tile / wave, None),
                (None, Some(size)) => {
                    let waves = size.div_ceil(wave);
                    (waves, Some(waves.saturating_mul(wave)).filter(|&covered| covered > size))
                }
                (None, None) => {
                    let text = format!("{name} is dynamic, and has a wave tile but no other one");
                    return Err(
                        fault(text).help(format!("add workgroup({name}, .., axis) or tile({name}, ..)"))
                    );
                }
            };
            geometry.waves[axis as usize] = waves;
            geometry.dims[dim].covered = covered;
        }
        Ok(())
    }
}

impl Binder<'_> {
    /// Spreads a scaled dimension as its base is.
    fn follow(&self, geometry: &mut Geometry, scaled: ScaledDim) -> Result<(), Diagnostic> {
        let ScaledDim { dim, base, by } = scaled;
        let of_base = geometry.dims[base].clone();
        let (name, base) = (geometry.dims[dim].symbol, of_base.symbol);
        let blocks = |tile: u32, what: &str| match tile % by {
            0 => Ok(tile / by),
            _ => Err(Diagnostic::invalid(format!(
                "the {what} of {base} ({tile}) does not hold whole blocks of {by}, and {name} counts them"
            ))
            .at(self.locations.get(of_base.origin))
            .about(base)
            .help(format!("use tiles of {base} that are multiples of {by}"))),
        };
        let entry = &mut geometry.dims[dim];
        entry.origin = of_base.origin;
        if let Some((axis, tile)) = of_base.workgroup {
            entry.workgroup = Some((axis, blocks(tile, "workgroup tile")?));
        }
        entry.tiling = of_base.tiling.map(|tile| blocks(tile, "loop tile")).transpose()?;
        entry.wave = of_base.wave.map(|tile| blocks(tile, "wave tile")).transpose()?;
        let covered = of_base.covered.map(|elements| elements.div_ceil(by));
        entry.covered = covered.filter(|&covered| entry.static_size.is_some_and(|size| covered > size));
        Ok(())
    }
}

/// Elements from which on lanes take a dimension in steps of a wave's widest accesses.
const WHOLE_STEP: u32 = 512;

/// Whether lanes can take the same number of elements each of what a wave has of a value, or hold copies.
fn spreads_evenly(geometry: &Geometry, dims: &[Dim]) -> bool {
    let extents = || dims.iter().filter_map(|&dim| geometry.dim(dim).wave_extent());
    let count = extents().fold(1u64, |count, extent| count.saturating_mul(u64::from(extent)));
    count < u64::from(LANES) || count.is_multiple_of(u64::from(LANES))
}

/// In a kernel with reductions, LDS buffers, or values that cannot be spread evenly, lanes cover so much of a
/// dimension that a workgroup has as a whole that it can be spread over them: what reductions take of it is
/// masked.
fn cover(dim: &mut DimGeometry) {
    if let (None, None, None, Some(size)) = (dim.workgroup, dim.tiling, dim.wave, dim.static_size) {
        let covered =
            if size < WHOLE_STEP { size.next_power_of_two() } else { size.next_multiple_of(WHOLE_STEP) };
        dim.covered = Some(covered).filter(|&covered| covered > size);
    }
}

/// Refuses a second constraint of one kind on a dimension; `before` is what the first one said.
fn no_second<T>(before: Option<T>, name: Symbol, what: &str, at: Option<Location>) -> Result<(), Diagnostic> {
    if before.is_none() {
        return Ok(());
    }
    let fault = Diagnostic::invalid(format!("{name} has two constraints of one kind ({what})")).at(at);
    Err(fault.help("keep one of them"))
}

/// No dimension has such a size.
fn no_size(text: &str) -> Diagnostic {
    Diagnostic::invalid(text).help(format!("a dimension has 1 to {MAX_SIZE} elements"))
}

/// Assumptions that no size fulfils together.
fn contradiction(error: &ExprError, symbol: Symbol, at: Option<Location>) -> Diagnostic {
    if !matches!(error, ExprError::NoValue(_)) {
        return bug(error);
    }
    Diagnostic::invalid(format!("no size of {symbol} is all that is assumed of it"))
        .at(at)
        .help("drop one of the assumptions")
}

/// An expression that cannot fail for sizes below 2^31 did.
pub(in crate::passes) fn bug(error: &ExprError) -> Diagnostic {
    Diagnostic::new(Kind::Bug, format!("index arithmetic failed: {error}"))
}
