//! Binds symbols: constraints and sizes become numbers (or dynamic symbols), giving the kernel's
//! [`Geometry`].

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::loop_iterations::{bind_iterations, check_nesting};
use super::memory_strides::check_strides;
use super::workgroup_order::place_workgroups;
use crate::codegen::target::LANES;
use crate::ir::constraint::{Constraint, MAX_AXES};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{Expr, ExprArena, ExprError, SymExpr, Symbol};
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

struct Binder<'a> {
    options: &'a Options,
    arena: &'a mut ExprArena,
    locations: &'a Locations,
}

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
    nodes: Query<(&Op, &ValueType, &Origin)>,
    strided: Query<(&ValueType, &Strides, &Name, &Origin)>,
    mapped: Query<&Operands, With<Mapping>>,
    scalars: Query<(&Op, &ValueType, &Name)>,
    bodies: Query<&Body, Without<Settings>>,
) -> PassResult {
    let (settings, expressions, dims, constraints, locations, body, geometry) = &mut *kernel;
    let mut order = NodeList::new();
    walk::preorder(body, &|node| bodies.get(node).ok(), &mut order);
    // The memory of which a symbol is a stride.
    let memory_of_stride = |symbol: Symbol| {
        let dim = dims.find(symbol)?;
        let is_factor = |strides: &Strides| strides.0.iter().any(|stride| stride.contains(&dim));
        let mut strided = order.iter().filter_map(|&node| strided.get(node).ok());
        strided.find(|(_, strides, ..)| is_factor(strides)).map(|found| found.3)
    };
    // Where the kernel first names a dimension.
    let place = |symbol: Symbol| {
        let dim = dims.find(symbol)?;
        let mut uses = order.iter().filter_map(|&node| nodes.get(node).ok());
        let used = uses.find(|(op, ty, _)| ty.dims.contains(&dim) || **op == Op::Iterate(dim));
        let origin = match used {
            Some((_, _, origin)) => origin,
            None => memory_of_stride(symbol)?,
        };
        locations.get(origin.0)
    };
    let mut binder = Binder { options: &settings.0, arena: &mut expressions.0, locations };
    check_bindings(binder.options).map_err(|(symbol, fault)| fault.at(place(symbol)))?;
    binder.assume(&constraints.0)?;
    **geometry = Geometry { waves: [1; 3], ..Geometry::default() };
    for &symbol in dims.0.values() {
        let dim = binder.size(symbol).map_err(|fault| {
            let fault = fault.at(place(symbol));
            match memory_of_stride(symbol).is_some() {
                true => fault.note(format!("{symbol} is a stride"), None),
                false => fault,
            }
        })?;
        geometry.dims.push(dim);
    }
    let scaled = dims.scaled();
    for &ScaledDim { dim, base, by } in &scaled {
        geometry.dims[dim].scaled_from = Some((base, by));
    }
    for (constraint, origin) in &constraints.0 {
        binder.apply(geometry, dims, constraint, *origin)?;
    }
    binder.waves_and_grid(geometry)?;
    for &dim in &scaled {
        binder.follow(geometry, dim)?;
    }
    place_workgroups(geometry, binder.arena, &constraints.0, (binder.options, locations))?;
    geometry.dynamic =
        dims.0.values().copied().filter(|s| binder.options.dynamic_symbols().contains(s)).collect();
    let chooses =
        constraints.0.iter().any(|(constraint, _)| matches!(constraint, Constraint::Iterations { .. }));
    if chooses {
        let scalars: SmallVec<[Symbol; 4]> = scalars
            .iter()
            .filter(|(op, ty, _)| **op == Op::Scalar && ty.dtype == Some(DType::I32))
            .map(|(.., name)| Symbol::new(&name.0))
            .filter(|&name| dims.find(name).is_none())
            .chain(order.iter().filter_map(|&node| {
                if let Op::SetSymbol(symbol) = *nodes.get(node).ok()?.0 { Some(symbol) } else { None }
            }))
            .collect();
        let stated = (&**dims, &constraints.0[..]);
        bind_iterations(geometry, binder.arena, stated, &scalars, (binder.options, locations))?;
        let region = |node: Entity| {
            let op = *nodes.get(node).ok()?.0;
            Some((op, bodies.get(node).ok().cloned()))
        };
        check_nesting(body, geometry, &constraints.0, &region, &mut SmallVec::new()).map_err(
            |(node, fault)| fault.at(nodes.get(node).ok().and_then(|(.., origin)| locations.get(origin.0))),
        )?;
    }
    for &node in &order {
        if let Ok((ty, strides, name, origin)) = strided.get(node) {
            let at = || locations.get(origin.0);
            check_strides(binder.arena, geometry, &name.0, &ty.dims, strides, &at)?;
        }
    }
    // They may be repeated by way of a buffer.
    let mut covers = !scaled.is_empty();
    for &node in &order {
        // A value that is read at coordinates goes through a buffer.
        let reads_value = || {
            let accessed = mapped.get(node).ok().and_then(|operands| operands.0.last());
            let accessed = accessed.and_then(|&accessed| nodes.get(accessed).ok());
            accessed.is_some_and(|(op, ..)| op.row().class != OpClass::Declaration)
        };
        let (op, ty, _) = nodes.get(node)?;
        covers |= op.runs_along().is_some()
            || (*op == Op::Memory && ty.dtype.is_none())
            || *op == Op::Allocate
            || reads_value()
            || !spreads_evenly(geometry, &ty.dims);
    }
    if covers {
        geometry.dims.values_mut().for_each(cover);
    }
    for &node in &order {
        let (op, _, origin) = nodes.get(node)?;
        if let Op::Iterate(dim) = *op
            && let Some((base, _)) = geometry.dim(dim).scaled_from
        {
            let (name, base) = (dims.name(dim), dims.name(base));
            let fault = Diagnostic::invalid(format!("a loop is over {name}")).at(locations.get(origin.0));
            return Err(fault.help(format!("loop over {base}: its iterations take their part of {name}")));
        }
        if let Op::Iterate(dim) = *op
            && geometry.dim(dim).tiling.is_none()
        {
            let name = dims.name(dim);
            return Err(Diagnostic::invalid(format!("the loop over {name} has no tile size"))
                .at(locations.get(origin.0))
                .help(format!(
                    "say how many elements an iteration takes: `tile {name}, 32`, in Rust `tile({name}, 32)`"
                )));
        }
    }
    Ok(())
}

/// Checks that no symbol has two values; the error names the symbol.
fn check_bindings(options: &Options) -> Result<(), (Symbol, Diagnostic)> {
    if let Some((symbol, value)) = options.out_of_range() {
        let fault = Diagnostic::invalid(format!("{symbol} = {value} is out of range"))
            .help(format!("a dimension has 1 to {MAX_SIZE} elements"));
        return Err((symbol, fault));
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
    fn assume(&mut self, constraints: &[(Constraint, u32)]) -> Result<(), Diagnostic> {
        for &symbol in self.options.dynamic_symbols() {
            self.arena.assume_range(symbol, 1..=MAX_SIZE).map_err(|e| bug(&e))?;
        }
        for (constraint, origin) in constraints {
            let at = self.locations.get(*origin);
            match constraint {
                Constraint::Divisible { symbol, by } => {
                    let symbol = plain_symbol(symbol, at.clone())?;
                    match self.options.value(symbol) {
                        Some(value) if *by == 0 || value % i64::from(*by) != 0 => {
                            let text = format!("{} = {value} is not a multiple of {by}", symbol.name());
                            return Err(Diagnostic::invalid(text)
                                .at(at)
                                .help("bind another value or drop the assumption"));
                        }
                        Some(_) => {}
                        None if *by == 0 => {
                            let fault = Diagnostic::invalid("nothing is a multiple of 0").at(at);
                            return Err(fault.help("drop the assumption"));
                        }
                        None => {
                            let assumed = self.arena.assume_divisible(symbol, i64::from(*by));
                            assumed.map_err(|e| contradiction(&e, symbol, at))?;
                        }
                    }
                }
                Constraint::AtLeast { symbol, least } => {
                    let symbol = plain_symbol(symbol, at.clone())?;
                    match self.options.value(symbol) {
                        Some(value) if value < *least => {
                            let text = format!("{} = {value} is below {least}", symbol.name());
                            return Err(Diagnostic::invalid(text)
                                .at(at)
                                .help("bind another value or drop the assumption"));
                        }
                        Some(_) => {}
                        None if *least > MAX_SIZE => {
                            let text = format!("no size of {} is at least {least}", symbol.name());
                            return Err(Diagnostic::invalid(text)
                                .at(at)
                                .help(format!("a dimension has 1 to {MAX_SIZE} elements")));
                        }
                        None => {
                            self.assume_range(symbol, (*least).clamp(1, MAX_SIZE)..=MAX_SIZE, at)?;
                        }
                    }
                }
                Constraint::AtMost { symbol, most } => {
                    let symbol = plain_symbol(symbol, at.clone())?;
                    match self.options.value(symbol) {
                        Some(value) if value > *most => {
                            let text = format!("{} = {value} is above {most}", symbol.name());
                            return Err(Diagnostic::invalid(text)
                                .at(at)
                                .help("bind another value or drop the assumption"));
                        }
                        Some(_) => {}
                        None if *most < 1 => {
                            let text = format!("no size of {} is at most {most}", symbol.name());
                            return Err(Diagnostic::invalid(text)
                                .at(at)
                                .help(format!("a dimension has 1 to {MAX_SIZE} elements")));
                        }
                        None => self.assume_range(symbol, ..=(*most).min(MAX_SIZE), at)?,
                    }
                }
                Constraint::Workgroup { .. } | Constraint::Tiling { .. } | Constraint::Iterations { .. } => {}
                Constraint::Wave { .. } | Constraint::MmaType(_) | Constraint::Reorder(_) => {}
                Constraint::Persistent { .. } | Constraint::Emulate(_) => {}
            }
        }
        Ok(())
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
                return Err(Diagnostic::invalid(format!("{name} = {value} is not a size"))
                    .help(format!("a dimension has 1 to {MAX_SIZE} elements")));
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

    /// A tile size: a positive integer that is known now.
    fn tile(
        &mut self,
        tile: &SymExpr,
        what: impl std::fmt::Display,
        at: Option<Location>,
    ) -> Result<u32, Diagnostic> {
        let help = || format!("a tile has 1 to {} elements along a dimension", TILES.end());
        self.positive(tile, what, at, help)
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

    fn apply(
        &mut self,
        geometry: &mut Geometry,
        dims: &DimTable,
        constraint: &Constraint,
        origin: u32,
    ) -> Result<(), Diagnostic> {
        let at = self.locations.get(origin);
        let (dim, tile, what) = match constraint {
            Constraint::Workgroup { dim, tile, .. } => (dim, tile, "workgroup tile"),
            Constraint::Tiling { dim, tile } => (dim, tile, "loop tile"),
            Constraint::Wave { dim, tile } => (dim, tile, "wave tile"),
            Constraint::MmaType(mma) => {
                geometry.mma = Some(*mma);
                return Ok(());
            }
            Constraint::Divisible { .. } | Constraint::AtLeast { .. } | Constraint::AtMost { .. } => {
                return Ok(());
            }
            Constraint::Persistent { workgroups } => {
                let help = || format!("1 to {} workgroups share the tiles of a grid", TILES.end());
                let count = self.positive(workgroups, "the number of workgroups", at.clone(), help)?;
                if geometry.persistent.replace(count).is_some() {
                    let fault = Diagnostic::invalid("the number of workgroups is given twice").at(at);
                    return Err(fault.help("keep one of the constraints"));
                }
                return Ok(());
            }
            // They are bound once the grid is known.
            Constraint::Iterations { .. } | Constraint::Reorder(_) => return Ok(()),
            // It is about products alone.
            Constraint::Emulate(_) => return Ok(()),
        };
        let symbol = plain_symbol(dim, at.clone())?;
        let name = symbol.name();
        let tile = self
            .tile(tile, format_args!("the {what} of {name}"), at.clone())
            .map_err(|fault| fault.about(symbol))?;
        let Some(dim) = dims.find(symbol) else {
            return Err(Diagnostic::invalid(format!(
                "{name} has a {what}, but no memory or loop has this dimension"
            ))
            .at(at)
            .help("remove the constraint or use the dimension"));
        };
        let entry = &mut geometry.dims[dim];
        entry.origin = origin;
        let taken = match constraint {
            Constraint::Workgroup { axis, .. } if *axis as usize >= MAX_AXES => {
                return Err(Diagnostic::invalid(format!("grid axis {axis} does not exist"))
                    .at(at)
                    .help("use one of the axes 0 to 4"));
            }
            Constraint::Workgroup { axis, .. } => entry.workgroup.replace((*axis, tile)).is_some(),
            Constraint::Tiling { .. } => entry.tiling.replace(tile).is_some(),
            Constraint::Wave { .. } => entry.wave.replace(tile).is_some(),
            Constraint::MmaType(_)
            | Constraint::Emulate(_)
            | Constraint::Divisible { .. }
            | Constraint::AtLeast { .. }
            | Constraint::AtMost { .. }
            | Constraint::Iterations { .. }
            | Constraint::Persistent { .. }
            | Constraint::Reorder(_) => false,
        };
        if taken {
            return Err(Diagnostic::invalid(format!("{name} has two constraints of one kind ({what})"))
                .at(at)
                .help("keep one of them"));
        }
        if let Constraint::Workgroup { axis, .. } = constraint
            && let Some(other) = geometry
                .dims
                .iter()
                .find(|(other, d)| *other != dim && d.workgroup.is_some_and(|w| w.0 == *axis))
        {
            let text = format!("{name} and {} are both spread over grid axis {axis}", other.1.symbol.name());
            return Err(Diagnostic::invalid(text)
                .at(at)
                .note("the other constraint is here", self.locations.get(other.1.origin))
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

/// The dimension of a constraint must be a plain symbol or a number.
fn plain_symbol(expr: &SymExpr, at: Option<Location>) -> Result<Symbol, Diagnostic> {
    let Some(symbol) = expr.as_dimension() else {
        let fault = Diagnostic::invalid(format!("{expr} is not a dimension")).at(at);
        return Err(fault.help("constrain plain symbols"));
    };
    if let Some((base, _)) = symbol.scaled_from() {
        let fault = Diagnostic::invalid(format!("{symbol} has a constraint of its own")).at(at);
        return Err(fault.help(format!("{symbol} is spread as {base} is: constrain {base}")));
    }
    Ok(symbol)
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
