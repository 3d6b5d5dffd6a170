//! Building a kernel's world node by node: what tracing and parsing have in common, so that a kernel gives
//! the same world whichever way it was written.

#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

pub(in crate::ir) mod derived;
mod finish;
pub(in crate::ir) mod following;

use std::sync::Arc;

use bevy_ecs::prelude::{Entity, World};
use bevy_ecs::world::EntityWorldMut;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use self::following::FollowingDim;
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::kernel::{Constraints, DimTable, MAX_OPERATIONS, MAX_SIZE, packed_symbols};
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, is_value};
use crate::ir::memory_layout::{DebugLog, Strides};
use crate::ir::node::*;
use crate::ir::nodes::NodeBundle;
use crate::ir::op::OpClass;
use crate::ir::set_symbols::SetSymbols;
use crate::ir::types::{AddressSpace, DType, PackedUnit};

/// The most factors of a stride.
const MAX_STRIDE_FACTORS: usize = 8;

/// A kernel whose nodes are still being added.
pub(crate) struct KernelAssembler {
    world: World,
    root: Entity,
    /// Open regions, innermost last: their nodes so far.
    regions: Vec<Vec<Entity>>,
    dims: DimTable,
    constraints: Constraints,
    symbols: SetSymbols,
    /// Dimensions that go with others.
    following: SmallVec<[FollowingDim; 1]>,
    locations: Vec<Location>,
    /// Names of the kernel arguments.
    arguments: FxHashSet<Arc<str>>,
    /// Nodes so far.
    count: usize,
    /// The first node beyond the limit.
    excess: Option<Origin>,
}

impl KernelAssembler {
    /// An empty kernel with its body open.
    pub(crate) fn new() -> KernelAssembler {
        let mut world = World::new();
        let root = world.spawn_empty().id();
        KernelAssembler {
            world,
            root,
            regions: vec![Vec::new()],
            dims: DimTable::default(),
            constraints: Constraints::default(),
            symbols: SetSymbols::default(),
            following: SmallVec::new(),
            locations: Vec::new(),
            arguments: FxHashSet::default(),
            count: 0,
            excess: None,
        }
    }

    /// Enters a location; nodes and constraints refer to it by the number returned.
    pub(crate) fn location(&mut self, location: Location) -> Origin {
        self.locations.push(location);
        Origin(self.locations.len() as u32 - 1)
    }

    /// The location entered last.
    pub(crate) fn last_location(&self) -> Option<&Location> {
        self.locations.last()
    }

    /// The location of an origin.
    pub(crate) fn location_of(&self, origin: Origin) -> Option<Location> {
        self.locations.get(origin.0 as usize).cloned()
    }

    /// True if `node` is a node of this kernel.
    pub(crate) fn contains(&self, node: Entity) -> bool {
        self.world.get_entity(node).is_ok()
    }

    /// Adds a constraint.
    pub(crate) fn constrain(&mut self, constraint: Constraint, origin: Origin) {
        self.constraints.0.push((constraint, origin.0));
    }

    /// The fault of a kernel that has too many operations: those beyond the limit have not become nodes.
    pub(crate) fn excess(&self) -> Option<Diagnostic> {
        let at = self.location_of(self.excess?);
        let text = format!("the kernel has more than {MAX_OPERATIONS} operations");
        let fault = Diagnostic::new(Kind::Limit, text).at(at);
        Some(fault.help("put what repeats itself into loops, or write several kernels"))
    }

    /// Appends a node to the innermost open region.
    pub(crate) fn push(&mut self, origin: Origin, op: Op, operands: &[Entity], ty: ValueType) -> Entity {
        if self.count == MAX_OPERATIONS {
            self.excess.get_or_insert(origin);
            return Entity::PLACEHOLDER;
        }
        self.count += 1;
        let operands = Operands(SmallVec::from_slice(operands));
        let node = NodeBundle { op, operands, ty, origin }.spawn(&mut self.world, ());
        if let Some(region) = self.regions.last_mut() {
            region.push(node);
        }
        node
    }

    /// Gives an access its mapping.
    pub(crate) fn map(&mut self, node: Entity, mapping: Mapping) {
        if let Ok(mut node) = self.world.get_entity_mut(node) {
            node.insert(mapping);
        }
    }

    /// Gives an update of an LDS buffer that has no mapping one: each element is at its own coordinates.
    pub(crate) fn map_to_itself(&mut self, node: Entity, memory: Entity) {
        if self.world.get::<Op>(memory) != Some(&Op::Allocate) || self.world.get::<Mapping>(node).is_some() {
            return;
        }
        self.map(node, Mapping::identity(self.dims_of(memory)));
    }

    /// The dimensions of a memory.
    pub(super) fn dims_of(&self, memory: Entity) -> SmallVec<[Symbol; 4]> {
        let dims = self.world.get::<ValueType>(memory).map(|ty| ty.dims.clone()).unwrap_or_default();
        dims.iter().filter_map(|&dim| self.dims.0.get(dim).copied()).collect()
    }

    /// Gives an access its flags.
    ///
    /// # Errors
    /// It is no read or write of a kernel argument.
    pub(crate) fn flag(&mut self, access: Entity, flags: MemoryAccessFlags) -> Result<(), Diagnostic> {
        let (op, operands) = (self.world.get::<Op>(access), self.world.get::<Operands>(access));
        // A load to LDS reads its first operand.
        let memory = operands.and_then(|operands| match op.is_some_and(|op| op.copies()) {
            true => operands.0.first().copied(),
            false => operands.0.last().copied(),
        });
        let accessed = memory.and_then(|memory| self.world.get::<Op>(memory));
        let words: Vec<&str> = flags.words().collect();
        let fault = match (op, accessed) {
            (Some(op), _) if op.updates() => {
                ("an atomic update is", "nothing comes between its parts, and every wave sees it")
            }
            (_, Some(Op::Memory)) => {
                if let Ok(mut node) = self.world.get_entity_mut(access) {
                    node.insert(flags);
                }
                return Ok(());
            }
            _ => ("an access of an LDS buffer or of a value is", "nobody but the workgroup sees it"),
        };
        let text = format!("{} {}", fault.0, words.join(" and "));
        Err(Diagnostic::invalid(text)
            .note(fault.1, None)
            .help("only reads and writes of memories take such words"))
    }

    /// Names a node for schedules and listings.
    pub(crate) fn tag(&mut self, node: Entity, tag: &str) {
        if let Ok(mut node) = self.world.get_entity_mut(node) {
            node.insert(Tag(tag.into()));
        }
    }

    /// The loop that a node is a result of; otherwise the node itself.
    pub(crate) fn loop_of(&self, node: Entity) -> Entity {
        match (self.world.get::<Op>(node), self.world.get::<Operands>(node)) {
            (Some(Op::LoopResult(_)), Some(operands)) => operands.0.first().copied().unwrap_or(node),
            _ => node,
        }
    }

    /// The number of one dimension.
    pub(crate) fn dim(&mut self, symbol: Symbol) -> Result<Dim, Diagnostic> {
        if let Some(size) = symbol.value().filter(|size| !(1..=MAX_SIZE).contains(size)) {
            return Err(Diagnostic::invalid(format!("{size} is not a size"))
                .help(format!("a dimension has 1 to {MAX_SIZE} elements")));
        }
        if is_value(symbol) {
            let text = format!("`{}` is no name of a dimension", symbol.name());
            return Err(Diagnostic::invalid(text).help("names with `%` are those of values"));
        }
        if self.symbols.contains(symbol) {
            let text = format!("{symbol} was set to a value, and is not a dimension");
            return Err(Diagnostic::invalid(text).help("choose another name for one of the two"));
        }
        // A scaled dimension comes after its base.
        match symbol.scaled_from() {
            Some((base, by)) if base.value().is_some() => {
                let blocks = symbol.value_where(&|_| None).unwrap_or(1);
                let text = format!("{symbol} is no dimension: {base} is a number");
                return Err(Diagnostic::invalid(text)
                    .help(format!("write the {blocks} blocks of {by}, or give {base} a name")));
            }
            Some((base, _)) => drop(self.dim(base)?),
            None => not_by_less_than_two(symbol)?,
        }
        self.dims.enter(symbol).ok_or_else(|| Diagnostic::invalid("a kernel has at most 256 dimensions"))
    }

    /// Whether a symbol is a dimension so far.
    pub(crate) fn is_dim(&self, symbol: Symbol) -> bool {
        self.dims.find(symbol).is_some()
    }

    /// From here on a symbol stands for a value, up to the end of the region around it. If iterations of
    /// loops depend on it, this is a node.
    pub(crate) fn set_symbol(
        &mut self,
        origin: Origin,
        symbol: Symbol,
        value: Entity,
    ) -> Result<Option<Entity>, Diagnostic> {
        if symbol.value().is_some() || is_value(symbol) || self.is_dim(symbol) {
            let what =
                if self.is_dim(symbol) { "a dimension, or a size that was used before" } else { "no symbol" };
            return Err(Diagnostic::invalid(format!("{symbol} is {what}, and is set to a value"))
                .help("set a symbol with a name of its own before it is used"));
        }
        self.symbols.set(symbol, value, self.regions.len());
        let counts = self.symbols.is_counted(symbol)
            || self.constraints.0.iter().any(|(constraint, _)| constraint.counts_by(symbol));
        Ok(counts.then(|| self.push(origin, Op::SetSymbol(symbol), &[value], ValueType::unknown())))
    }

    /// Loops of a kernel in a later stage depend on a symbol: setting it is an operation.
    pub(crate) fn count_by(&mut self, symbol: Symbol) {
        self.symbols.count(symbol);
    }

    /// The value that a symbol was set to, if it was.
    ///
    /// # Errors
    /// It was set in a region that has ended.
    pub(crate) fn symbol_value(&self, symbol: Symbol) -> Result<Option<Entity>, Diagnostic> {
        match self.symbols.get(symbol) {
            None if self.symbols.contains(symbol) => {
                let text = format!("{symbol} was set inside a loop or a conditional that ends before");
                Err(Diagnostic::invalid(text)
                    .help("set it again after the loop, to a value that it carries out"))
            }
            value => Ok(value),
        }
    }

    /// What a scaled dimension follows.
    pub(crate) fn scaled_from(&self, dim: Dim) -> Option<(Dim, u32)> {
        self.dims.scaled_from(dim)
    }

    /// The dims of a shape; an error if it names a dimension twice.
    pub(crate) fn dims(&mut self, shape: &[Symbol]) -> Result<Dims, Diagnostic> {
        let mut dims = Dims::new();
        for &symbol in shape {
            let dim = self.dim(symbol)?;
            if dims.contains(&dim) {
                let text = format!("dimension {} occurs twice in one shape", symbol.name());
                let help = match symbol.value() {
                    Some(_) => "a number is one dimension wherever it stands: use a symbol for the other",
                    None => "use a different symbol for each dimension",
                };
                return Err(Diagnostic::invalid(text).help(help));
            }
            dims.push(dim);
        }
        for (at, &symbol) in shape.iter().enumerate() {
            let Some((base, _)) = symbol.scaled_from() else { continue };
            let follows = |other: &Symbol| other.scaled_from().map_or(*other, |(base, _)| base) == base;
            let mut others = shape.iter().enumerate().filter(|(other, _)| *other != at);
            if let Some((_, other)) = others.find(|(_, other)| follows(other)) {
                let text = format!("{symbol} and {other} stand in one shape, and follow the same dimension");
                return Err(Diagnostic::invalid(text).help("use a symbol of its own for one of them"));
            }
        }
        Ok(dims)
    }

    /// Appends a kernel argument.
    pub(crate) fn memory(
        &mut self,
        origin: Origin,
        name: &str,
        shape: &[Symbol],
        space: AddressSpace,
        dtype: DType,
    ) -> Result<Entity, Diagnostic> {
        let dims = self.dims(shape)?;
        check_argument_name(name)?;
        if dims.is_empty() {
            return Err(Diagnostic::invalid(format!("memory `{name}` has no dimension")));
        }
        if space == AddressSpace::Register || dtype == DType::I1 {
            let text = format!("memory `{name}` cannot be {dtype} in {} space", space.name());
            return Err(Diagnostic::invalid(text).help("memories are global or shared, and not i1"));
        }
        if self.regions.len() > 1 {
            let text = format!("memory `{name}` is declared inside a loop");
            return Err(Diagnostic::invalid(text).help("declare the kernel's memories before its loops"));
        }
        if let Some(packing) = dtype.packing() {
            self.units_of(name, shape, dtype, packing)?;
        }
        let name = self.argument_name(name)?;
        let node = self.push(origin, Op::Memory, &[], ValueType { dims, dtype: Some(dtype) });
        if let Ok(mut node) = self.world.get_entity_mut(node) {
            node.insert((Name(name), Space(space)));
        }
        Ok(node)
    }

    /// Enters the dimensions of a memory whose elements share units.
    fn units_of(
        &mut self,
        name: &str,
        shape: &[Symbol],
        dtype: DType,
        packing: PackedUnit,
    ) -> Result<(), Diagnostic> {
        let Some(&last) = shape.last() else { return Ok(()) };
        let what = match (last.value(), last.scaled_from()) {
            (None, None) => {
                let all = packed_symbols(last, packing).into_iter().flatten();
                return all.into_iter().try_for_each(|symbol| self.dim(symbol).map(drop));
            }
            (Some(_), _) => format!("the number {last}"),
            (None, Some((base, _))) => format!("{last}, which follows {base}"),
        };
        let text = format!("memory `{name}` is {dtype}, and its last dimension is {what}");
        let share = match packing.elements {
            2 => "two elements along it share a byte",
            _ => "elements along it share words",
        };
        let help = format!("{share}: give it a name of its own, and bind that to a size");
        Err(Diagnostic::invalid(text).help(help))
    }

    /// Makes a memory a log.
    pub(crate) fn keep_as_log(&mut self, memory: Entity) {
        if let Ok(mut node) = self.world.get_entity_mut(memory) {
            node.insert(DebugLog);
        }
    }

    /// Whether an LDS buffer can be declared here: passes look for them at the beginning of the kernel.
    pub(crate) fn check_outside_of_loops(&self) -> Result<(), Diagnostic> {
        match self.regions.len() {
            0 | 1 => Ok(()),
            _ => Err(Diagnostic::invalid("an LDS buffer is declared inside a loop or a conditional")
                .help("declare the kernel's LDS buffers before its loops")),
        }
    }

    /// Adds an LDS buffer.
    pub(crate) fn allocate(
        &mut self,
        origin: Origin,
        shape: &[Symbol],
        dtype: DType,
    ) -> Result<Entity, Diagnostic> {
        let dims = self.dims(shape)?;
        check_allocation(dtype)?;
        self.check_outside_of_loops()?;
        Ok(self.push(origin, Op::Allocate, &[], ValueType { dims, dtype: Some(dtype) }))
    }

    /// Gives a memory strides: the factors of each.
    pub(crate) fn lay_out(&mut self, memory: Entity, strides: &[Vec<Symbol>]) -> Result<(), Diagnostic> {
        let name = self.world.get::<Name>(memory).map_or("?".into(), |name| name.0.clone());
        let rank = self.world.get::<ValueType>(memory).map_or(0, |ty| ty.dims.len());
        if strides.len() != rank {
            let text =
                format!("memory `{name}` has {rank} dimensions, and strides are given for {}", strides.len());
            return Err(Diagnostic::invalid(text).help("give a stride for each dimension"));
        }
        let dtype = self.world.get::<ValueType>(memory).and_then(|ty| ty.dtype);
        if let Some((dtype, packing)) = dtype.and_then(|dtype| Some((dtype, dtype.packing()?))) {
            let text = format!("memory `{name}` is {dtype}, and has strides");
            return Err(Diagnostic::invalid(text).help(match packing.elements {
                2 => {
                    "declare its bytes, i8 along half of the last dimension (`[M, K/2]`), with strides in bytes, \
                     and `bitcast` what is read"
                }
                _ => "its rows lie one after the other: give the memory a dimension for what is between them",
            }));
        }
        let is_one = |factor: &&Symbol| factor.value() == Some(1);
        let mut all = SmallVec::new();
        for stride in strides {
            if stride.len() > MAX_STRIDE_FACTORS {
                let text = format!("a stride of memory `{name}` has {} factors", stride.len());
                return Err(Diagnostic::invalid(text).help("name their product by a symbol of its own"));
            }
            let factors = stride.iter().filter(|factor| !is_one(factor));
            all.push(factors.map(|&factor| self.dim(factor)).collect::<Result<Dims, _>>()?);
        }
        let strides = Strides(all);
        let is_number = |symbol: &Symbol| symbol.value().is_some_and(|size| size > 1);
        if strides.lie_apart()
            && let Some(number) = self.dims_of(memory).into_iter().find(is_number)
        {
            let text = format!("memory `{name}` has the dimension {number}, and its last stride is not 1");
            return Err(Diagnostic::invalid(text)
                .help(format!("give the dimension {number} a name, and bind it to the number")));
        }
        if let Ok(mut node) = self.world.get_entity_mut(memory) {
            node.insert(strides);
        }
        Ok(())
    }

    /// Whether the elements along the last dimension of a memory do not lie side by side.
    fn lies_apart(&self, memory: Entity) -> bool {
        self.world.get::<Strides>(memory).is_some_and(Strides::lie_apart)
    }

    /// Appends an access of a memory's own tile that says so by coordinates: what is known of accesses
    /// without them is that rows lie side by side.
    fn push_at_own_place(&mut self, origin: Origin, op: Op, operands: &[Entity], memory: Entity) -> Entity {
        let dims = self.world.get::<ValueType>(memory).map(|ty| ty.dims.clone()).unwrap_or_default();
        let ty = if op.loads() { ValueType { dims, dtype: None } } else { ValueType::unknown() };
        let own = self.dims_of(memory).into_iter().map(|symbol| match symbol.value() {
            Some(_) => SymExpr::from(0),
            None => symbol.into(),
        });
        let mapping = Mapping(own.collect());
        let node = self.push(origin, op, operands, ty);
        self.map(node, mapping);
        node
    }

    /// Adds a log with slots for so many values, or for one, to the arguments. What is written to it says
    /// what it is.
    pub(crate) fn debug_log(
        &mut self,
        origin: Origin,
        name: &str,
        slots: &[Symbol],
    ) -> Result<Entity, Diagnostic> {
        let dims = self.dims(slots)?;
        check_argument_name(name)?;
        if dims.len() > 1 || slots.iter().any(|count| count.value().is_none()) {
            let text = format!("the slots of log `{name}` are not one number");
            return Err(Diagnostic::invalid(text)
                .help("write `debug_log [8]` for eight slots, and number those of nested loops"));
        }
        let name = self.argument_name(name)?;
        // A value without dimensions is logged along a dimension of one element.
        self.dim(Symbol::from(1u32))?;
        let node = NodeBundle {
            op: Op::Memory,
            operands: Operands(SmallVec::new()),
            ty: ValueType { dims, dtype: None },
            origin,
        };
        let node = node.spawn(&mut self.world, (Name(name), Space(AddressSpace::Global), DebugLog));
        if let Some(body) = self.regions.first_mut() {
            let is_declaration = |node: &&Entity| {
                let op = self.world.get::<Op>(**node);
                op.is_some_and(|op| op.row().class == OpClass::Declaration)
            };
            let declared = body.iter().take_while(is_declaration).count();
            body.insert(declared, node);
        }
        Ok(node)
    }

    /// Appends a kernel argument by value.
    pub(crate) fn scalar(&mut self, origin: Origin, name: &str, dtype: DType) -> Result<Entity, Diagnostic> {
        check_argument_name(name)?;
        if matches!(name, "inf" | "nan") {
            let text = format!("`{name}` is a number, and not a name for a scalar");
            return Err(Diagnostic::invalid(text).help("choose another name"));
        }
        if !Op::SCALAR_DTYPES.contains(&dtype) {
            let text = format!("scalar `{name}` cannot be {dtype}");
            return Err(Diagnostic::invalid(text)
                .help("scalars are f32, f64, i32 or i64: cast them where they are used"));
        }
        if self.regions.len() > 1 {
            let text = format!("scalar `{name}` is declared inside a loop");
            return Err(Diagnostic::invalid(text).help("declare the kernel's scalars before its loops"));
        }
        let name = self.argument_name(name)?;
        let node = self.push(origin, Op::Scalar, &[], ValueType { dims: Dims::new(), dtype: Some(dtype) });
        if let Ok(mut node) = self.world.get_entity_mut(node) {
            node.insert(Name(name));
        }
        Ok(node)
    }

    /// The name of one more argument.
    fn argument_name(&mut self, name: &str) -> Result<Arc<str>, Diagnostic> {
        let shared: Arc<str> = name.into();
        match self.arguments.insert(shared.clone()) {
            true => Ok(shared),
            false => Err(Diagnostic::invalid(format!("two arguments are called `{name}`"))),
        }
    }

    /// The kernel entity.
    pub(crate) fn root(&self) -> Entity {
        self.root
    }

    /// The constraints so far.
    pub(crate) fn constraints(&self) -> &[(Constraint, u32)] {
        &self.constraints.0
    }

    /// A node, to be given components.
    pub(crate) fn node_mut(&mut self, node: Entity) -> Option<EntityWorldMut<'_>> {
        self.world.get_entity_mut(node).ok()
    }

    /// Opens a region that belongs to no node.
    pub(crate) fn open(&mut self) {
        self.regions.push(Vec::new());
    }

    /// Closes the innermost region; returns its nodes.
    pub(crate) fn close(&mut self) -> Vec<Entity> {
        let nodes = self.regions.pop().unwrap_or_default();
        self.symbols.close(self.regions.len());
        nodes
    }

    /// Appends a node with a region, and opens its body.
    pub(crate) fn open_region(&mut self, origin: Origin, op: Op, init: &[Entity]) -> Entity {
        let node = self.push(origin, op, init, ValueType::unknown());
        self.regions.push(Vec::new());
        node
    }

    /// Closes the body of `node`, the innermost open loop.
    pub(crate) fn close_loop(&mut self, node: Entity, yields: &[Entity]) {
        let nodes = self.close();
        if let Ok(mut node) = self.world.get_entity_mut(node) {
            node.insert((Body(nodes), Yields(SmallVec::from_slice(yields))));
        }
    }
}

/// Checks that a value of `dtype` whose elements are all `constant` can be declared.
pub(crate) fn check_register(constant: Constant, dtype: DType) -> Result<(), Diagnostic> {
    if dtype == DType::I1 {
        return Err(Diagnostic::invalid("a register is declared i1")
            .help("i1 is what comparisons give: compare something"));
    }
    constant.bits(dtype).map(drop)
}

/// Whether LDS can hold elements of a dtype: conditions are bits of a wave's mask and have no bytes.
pub(crate) fn check_allocation(dtype: DType) -> Result<(), Diagnostic> {
    if dtype == DType::I1 {
        return Err(Diagnostic::invalid("an LDS buffer is declared i1").help(
            "keep numbers in it: `select` makes one of a condition, and `compare` the condition again",
        ));
    }
    Ok(())
}

/// Refuses dimensions whose names look like those of scaled ones, and that have no blocks.
fn not_by_less_than_two(symbol: Symbol) -> Result<(), Diagnostic> {
    let divisor = symbol.name().rsplit_once('/').and_then(|(_, by)| by.parse::<u64>().ok());
    match divisor {
        Some(by) => {
            Err(Diagnostic::invalid(format!("{symbol} is no dimension: its blocks have {by} elements"))
                .help("divide a dimension by a number from 2 to 4294967295, once"))
        }
        None => Ok(()),
    }
}

fn check_argument_name(name: &str) -> Result<(), Diagnostic> {
    if is_identifier(name) {
        return Ok(());
    }
    let text = format!("`{name}` is not an argument name");
    Err(Diagnostic::invalid(text).help("use letters, digits and underscores"))
}

/// True for a name that can stand in text kernels and as a symbol of a code object. A lone `_` cannot: in
/// text it stands for a value without uses.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name != "_"
}
