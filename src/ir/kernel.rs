//! A kernel as its author wrote it: one world of logical nodes, its constraints, and its identity for the
//! cache.

use cranelift_entity::PrimaryMap;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bevy_ecs::prelude::*;

use smallvec::SmallVec;

use super::constraint::{Constraint, GridSymbol, Reordering, dim_of_iteration};
use super::diagnostic::{Diagnostic, Location, SourceText};
use super::expr::{ExprArena, Symbol};
use super::facts::{Geometry, KernelStage};
use super::layout::Dim;
use super::mapping::{Mapping, is_value};
#[cfg(test)]
use super::node::Body;
use super::node::{Conversion, Dims, Name, Op, Tag, ValueType};
use super::types::{DType, PackedUnit};
use super::walk;

/// The most operations of a kernel, as it is written and, for one wave, when its tiles are divided into
/// instructions: far more than any wave has registers for, and few enough to be found out early.
pub(crate) const MAX_OPERATIONS: usize = 1 << 16;

/// Largest size of a dimension: sizes are kernel arguments of 32 bits, and index arithmetic is signed.
pub(crate) const MAX_SIZE: i64 = i32::MAX as i64;

/// Dimensions of the kernel: [`Dim`] number `i` is the symbol at `i`. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct DimTable(pub PrimaryMap<Dim, Symbol>);

impl DimTable {
    /// The number of a symbol, entering it if it is new; `None` when the kernel has too many dimensions
    /// (256).
    pub(crate) fn enter(&mut self, symbol: Symbol) -> Option<Dim> {
        self.find(symbol).or_else(|| (self.0.len() < 256).then(|| self.0.push(symbol)))
    }

    /// The number of a symbol, if it is a dimension.
    pub(crate) fn find(&self, symbol: Symbol) -> Option<Dim> {
        self.0.keys().find(|&dim| self.0[dim] == symbol)
    }

    /// What a scaled dimension follows: its base, and the elements of a block.
    pub(crate) fn scaled_from(&self, dim: Dim) -> Option<(Dim, u32)> {
        let (base, by) = self.0.get(dim)?.scaled_from()?;
        Some((self.find(base)?, by))
    }

    /// The scaled dimensions, each with its base and the elements of a block.
    pub(crate) fn scaled(&self) -> SmallVec<[ScaledDim; 2]> {
        let ids = self.0.keys();
        ids.filter_map(|dim| self.scaled_from(dim).map(|(base, by)| ScaledDim { dim, base, by })).collect()
    }

    /// The dimension that packed elements along `dim` have their units along, and that of the words of a
    /// unit, if there are several.
    pub(crate) fn packed(&self, dim: Dim, packing: PackedUnit) -> Option<(Dim, Option<Dim>)> {
        let [units, words] = packed_symbols(*self.0.get(dim)?, packing);
        let words = match words {
            Some(words) => Some(self.find(words)?),
            None => None,
        };
        Some((self.find(units?)?, words))
    }

    /// The dimensions of a value of some dtype as one of another dtype. They are the same, but if the one has
    /// two elements in an element of the other: `K/2` of bytes is `K` of 4-bit floats. `None` if there are no
    /// such dimensions.
    pub(crate) fn converted(&self, conversion: Conversion, from: &ValueType, to: DType) -> Option<Dims> {
        let mut dims = from.dims.clone();
        let last = match (conversion, from.dtype, to) {
            (Conversion::Bitcast, Some(DType::I8), DType::F4E2M1) => {
                self.scaled_from(*dims.last()?).filter(|&(_, by)| by == 2)?.0
            }
            (Conversion::Bitcast, Some(DType::F4E2M1), DType::I8) => {
                self.find(self.0.get(*dims.last()?)?.scaled(2))?
            }
            _ => return Some(dims),
        };
        dims.pop();
        dims.push(last);
        Some(dims)
    }

    /// Name of a dimension.
    pub(crate) fn name(&self, dim: Dim) -> &'static str {
        self.0.get(dim).map_or("?", |s| s.name())
    }
}

/// What memories with packed elements along a symbol are of instead: their units, and the words of a unit, if
/// there are several.
pub(crate) fn packed_symbols(last: Symbol, packing: PackedUnit) -> [Option<Symbol>; 2] {
    let words = (packing.words > 1).then(|| Symbol::new(&packing.words.to_string()));
    [Some(last.scaled(packing.elements)), words]
}

/// A dimension that has an element for each block of another one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ScaledDim {
    /// The dimension.
    pub dim: Dim,
    /// Whose blocks it counts.
    pub base: Dim,
    /// Elements of a block.
    pub by: u32,
}

/// Constraints in the order the author gave them, each with its location's index. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Constraints(pub Vec<(Constraint, u32)>);

/// Author locations that nodes refer to by index. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Locations(pub Arc<Vec<Location>>);

impl Locations {
    /// The location with index `at`, if there is one.
    pub(crate) fn get(&self, at: u32) -> Option<Location> {
        self.0.get(at as usize).cloned()
    }
}

/// Where the author wrote the kernel itself: the call that traces it, or the line that names it. On the
/// kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Declaration(pub Option<Location>);

/// Name of the kernel. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelName(pub Arc<str>);

/// A kernel: what is computed and how it is distributed, before any symbol is bound. Made by
/// [`Kernel::trace`] or by [`Kernel::parse`]; immutable afterwards.
pub struct Kernel {
    pub(crate) world: World,
    pub(crate) root: Entity,
    identity: Identity,
    sources: Arc<Sources>,
    /// The text that it was read from.
    text: Option<SourceText>,
    /// What the user of a ready kernel chose about its dimensions, apart from symbols.
    chosen: Vec<ChosenFor>,
}

/// A choice that faults about a dimension mention.
#[derive(Clone, Debug)]
pub(crate) struct ChosenFor {
    pub(crate) dim: Symbol,
    /// What was chosen, and by whom.
    pub(crate) text: String,
    /// Where.
    pub(crate) location: Option<Location>,
}

/// Where all of a kernel (or of a schedule) was written and how its author calls the parts, as a key for
/// caches: objects that hold lines, and reports, differ when these do.
#[derive(Clone, Debug)]
pub struct Sources {
    hash: u64,
    declaration: Declaration,
    locations: Locations,
    /// The tags of nodes, in the order of the world.
    tags: Arc<[(Entity, Box<str>)]>,
    /// The file that a ready kernel is written in, and where this one was asked for.
    ready: Option<(Arc<str>, Option<Location>)>,
}

impl Sources {
    /// Bytes that it keeps, without the names of files.
    pub(crate) fn bytes(&self) -> usize {
        let tags: usize = self.tags.iter().map(|(_, tag)| tag.len()).sum();
        self.locations.0.len() * size_of::<Location>() + size_of_val(&self.tags[..]) + tags
    }

    /// Appends everything that distinguishes them, as text that is the same in every process.
    pub(crate) fn write_key(&self, out: &mut String) {
        let Sources { hash: _, declaration, locations, tags, ready } = self;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:?} {ready:?}", declaration.0);
        let mut file: Option<&Arc<str>> = None;
        for Location { file: own, line, column } in locations.0.iter() {
            if file != Some(own) {
                let _ = writeln!(out, "file {own:?}");
                file = Some(own);
            }
            let _ = writeln!(out, "{line}:{column}");
        }
        for (node, tag) in tags.iter() {
            let _ = writeln!(out, "tag {} {tag:?}", node.to_bits());
        }
    }

    fn of(world: &World, root: Entity) -> Sources {
        let declaration = world.get::<Declaration>(root).cloned().unwrap_or_default();
        let sources = Sources::new(declaration, world.get::<Locations>(root).cloned().unwrap_or_default());
        // None if the world has no tag at all.
        let tagged = world.try_query::<(Entity, &Tag)>();
        let tags =
            tagged.map(|mut tagged| tagged.iter(world).map(|(node, tag)| (node, tag.0.clone())).collect());
        Sources { tags: tags.unwrap_or_default(), ..sources }
    }

    pub(in crate::ir) fn new(declaration: Declaration, locations: Locations) -> Sources {
        let mut hasher = rustc_hash::FxHasher::default();
        for location in declaration.0.iter().chain(locations.0.iter()) {
            // Files are compared last: they rarely differ where lines and columns do not.
            hasher.write_u64(u64::from(location.line) << 32 | u64::from(location.column));
        }
        Sources { hash: hasher.finish(), declaration, locations, tags: Arc::default(), ready: None }
    }
}

impl PartialEq for Sources {
    fn eq(&self, other: &Sources) -> bool {
        self.hash == other.hash
            && self.declaration == other.declaration
            && self.ready == other.ready
            && (Arc::ptr_eq(&self.tags, &other.tags) || self.tags == other.tags)
            && (Arc::ptr_eq(&self.locations.0, &other.locations.0) || self.locations == other.locations)
    }
}

impl Eq for Sources {}

impl Hash for Sources {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What makes two kernels the same kernel for the compiler: their text without tags and locations. Schedules
/// have one too: their text with names of values that do not depend on how they were written.
#[derive(Clone, Debug)]
pub struct Identity {
    hash: u64,
    text: Arc<str>,
}

impl Identity {
    /// Bytes of its text.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Appends the text and its length.
    pub(crate) fn write_key(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}\n{}", self.text.len(), self.text);
    }

    pub(crate) fn new(text: String) -> Identity {
        let mut hasher = rustc_hash::FxHasher::default();
        text.hash(&mut hasher);
        Identity { hash: hasher.finish(), text: text.into() }
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        self.hash == other.hash && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Kernel {
    pub(crate) fn new(world: World, root: Entity, identity: Identity) -> Kernel {
        let sources = Arc::new(Sources::of(&world, root));
        Kernel { world, root, identity, sources, text: None, chosen: Vec::new() }
    }

    /// The same, read from a text.
    pub(in crate::ir) fn of_text(mut self, text: SourceText) -> Kernel {
        self.text = Some(text);
        self
    }

    /// The same kernel as a ready one, for users who did not write it: faults that lie in the file that
    /// traces it are reported at `location` instead, or without a place if it is `None`. Lines of the machine
    /// code do not change.
    #[must_use]
    pub fn told_at(mut self, location: Option<Location>) -> Kernel {
        let declaration = self.world.get::<Declaration>(self.root).and_then(|d| d.0.as_ref());
        Arc::make_mut(&mut self.sources).ready = declaration.map(|own| (own.file.clone(), location));
        self
    }

    /// The same kernel, whose faults about dimension `dim` say that `text` was chosen for it at `location`,
    /// instead of what was said of the dimension before: for ready kernels that are made of numbers as well
    /// as symbols.
    #[must_use]
    pub fn chosen_for(mut self, dim: Symbol, text: String, location: Option<Location>) -> Kernel {
        self.chosen.retain(|chosen| chosen.dim != dim);
        self.chosen.push(ChosenFor { dim, text, location });
        self
    }

    /// What was chosen for a dimension.
    pub(crate) fn choice_for(&self, dim: Symbol) -> Option<&ChosenFor> {
        self.chosen.iter().find(|chosen| chosen.dim == dim)
    }

    /// The place that the user of a kernel is given for something inside of it.
    pub(crate) fn told_place(&self, location: Option<Location>) -> Option<Location> {
        match &self.sources.ready {
            Some((_, asked)) if self.is_inside(location.as_ref()) => asked.clone(),
            _ => location,
        }
    }

    /// True for a place inside of a ready kernel.
    pub(crate) fn is_inside(&self, location: Option<&Location>) -> bool {
        matches!((&self.sources.ready, location), (Some((own, _)), Some(at)) if at.file == *own)
    }

    /// A fault of this kernel as its author, or its user if it is a ready one, is to see it.
    pub(crate) fn told(&self, mut fault: Diagnostic) -> Diagnostic {
        fault.location = self.told_place(fault.location);
        if self.sources.ready.is_some() {
            for (_, location) in &mut fault.notes {
                if self.is_inside(location.as_ref()) {
                    *location = None;
                }
            }
        }
        match &self.text {
            Some(text) => fault.in_text(text),
            None => fault,
        }
    }

    /// Symbols that the tiles of dimensions are made of, each once, in the order of the constraints.
    pub(crate) fn symbols_of_tiles(&self, dims: &[Symbol]) -> Vec<Symbol> {
        let constraints = self.world.get::<Constraints>(self.root).map(|c| &c.0[..]).unwrap_or_default();
        let mut arena = ExprArena::new();
        let mut found = Vec::new();
        for (constraint, _) in constraints {
            let (Constraint::Workgroup { dim, tile, .. }
            | Constraint::Tiling { dim, tile }
            | Constraint::Wave { dim, tile }) = constraint
            else {
                continue;
            };
            let Some(dim) = dim.as_dimension().filter(|dim| dims.contains(dim)) else { continue };
            let tile = tile.intern(&mut arena).map(|tile| arena.symbols(tile)).unwrap_or_default();
            for symbol in tile.into_iter().filter(|&symbol| symbol != dim) {
                if !found.contains(&symbol) {
                    found.push(symbol);
                }
            }
        }
        found
    }

    /// The pass that left the kernel as it is; `None` for a kernel as its author wrote it.
    pub fn stage(&self) -> Option<&str> {
        self.world.get::<KernelStage>(self.root).map(|stage| &*stage.0)
    }

    /// Name of the kernel; the code object's symbol.
    pub fn name(&self) -> &str {
        self.world.get::<KernelName>(self.root).map_or("", |n| &n.0)
    }

    /// Identity for caches.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where its parts were written, for caches.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The same, for who keeps it.
    pub(crate) fn shared_sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// All symbols that the kernel mentions: first its dimensions that are not numbers, then those of its
    /// constraints, each once, in order of mention.
    ///
    /// # Example
    /// ```
    /// use groundswell::author::Kernel;
    /// let text = "kernel k {\n tile K, BLOCK_K\n a = memory [M, K] global f32\n}\n";
    /// let symbols = Kernel::parse(text, "k.gsw").unwrap().symbols();
    /// let names: Vec<_> = symbols.iter().map(|symbol| symbol.name()).collect();
    /// assert_eq!(names, ["M", "K", "BLOCK_K"]);
    /// ```
    pub fn symbols(&self) -> Vec<Symbol> {
        let dims = self.world.get::<DimTable>(self.root);
        let names = dims.iter().flat_map(|dims| dims.0.values()).copied();
        let mut found: Vec<Symbol> =
            names.filter(|name| name.value().is_none() && name.scaled_from().is_none()).collect();
        let mut arena = ExprArena::new();
        for (constraint, _) in self.world.get::<Constraints>(self.root).map(|c| &c.0[..]).unwrap_or_default()
        {
            let parts = match constraint {
                Constraint::Workgroup { dim, tile, .. }
                | Constraint::Tiling { dim, tile }
                | Constraint::Wave { dim, tile } => [Some(dim), Some(tile), None, None],
                Constraint::Iterations { dim, first, count, step } => {
                    [Some(dim), Some(first), Some(count), Some(step)]
                }
                Constraint::Persistent { workgroups } => [Some(workgroups), None, None, None],
                Constraint::Divisible { symbol, .. }
                | Constraint::AtLeast { symbol, .. }
                | Constraint::AtMost { symbol, .. } => [Some(symbol), None, None, None],
                Constraint::Reorder(Reordering::Place { place, .. }) => [Some(place), None, None, None],
                Constraint::Reorder(_) | Constraint::MmaType(_) | Constraint::Emulate(_) => {
                    [None, None, None, None]
                }
            };
            for part in parts.into_iter().flatten() {
                // An expression that cannot be computed is reported when the kernel is compiled.
                let Ok(expr) = part.intern(&mut arena) else { continue };
                for symbol in arena.symbols(expr) {
                    let of_grid =
                        matches!(constraint, Constraint::Reorder(_) | Constraint::Iterations { .. });
                    let is_grid = of_grid && (GridSymbol::of(symbol).is_some() || self.is_counted(symbol));
                    if !is_grid && !found.contains(&symbol) {
                        found.push(symbol);
                    }
                }
            }
        }
        for node in walk::nodes(&self.world, self.root) {
            if let Some(mapping) = self.world.get::<Mapping>(node) {
                mapping.visit(&mut |symbol| {
                    let symbol = symbol.scaled_from().map_or(symbol, |(base, _)| base);
                    if !is_value(symbol) && !found.contains(&symbol) {
                        found.push(symbol);
                    }
                });
            }
        }
        found
    }

    /// Whether a symbol of `iterations` stands for a scalar, or for an iteration of a loop around.
    fn is_counted(&self, symbol: Symbol) -> bool {
        let Some(dims) = self.world.get::<DimTable>(self.root) else { return false };
        let is_scalar = |&node: &Entity| {
            self.world.get::<Op>(node) == Some(&Op::Scalar)
                && self.world.get::<Name>(node).is_some_and(|name| &*name.0 == symbol.name())
        };
        let is_set = |node: &Entity| self.world.get::<Op>(*node) == Some(&Op::SetSymbol(symbol));
        if walk::nodes(&self.world, self.root).iter().any(is_set) {
            return true;
        }
        match dim_of_iteration(symbol) {
            Some(around) if dims.find(around).is_some() => true,
            _ => dims.find(symbol).is_none() && walk::body(&self.world, self.root).iter().any(is_scalar),
        }
    }

    /// Nodes of the kernel body, in order.
    #[cfg(test)]
    pub(crate) fn body(&self) -> &[Entity] {
        self.world.get::<Body>(self.root).map_or(&[], |b| &b.0)
    }

    /// The extents of dimensions.
    pub(crate) fn shape(
        &self,
        dims: &[Dim],
        value: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<Vec<usize>, Diagnostic> {
        let names = self.world.get::<DimTable>(self.root);
        let bound = self.world.get::<Geometry>(self.root);
        let size = |dim: &Dim| {
            if let Some(size) = bound.and_then(|bound| bound.dims.get(*dim)?.static_size) {
                return Ok(size as usize);
            }
            let symbol = names.and_then(|names| names.0.get(*dim)).copied();
            let size = symbol
                .and_then(|symbol| symbol.value_where(value))
                .and_then(|size| usize::try_from(size).ok());
            size.ok_or_else(|| {
                let name = symbol.map_or("?", Symbol::name);
                Diagnostic::invalid(format!("the dimension {name} has no size"))
            })
        };
        dims.iter().map(size).collect()
    }
}
