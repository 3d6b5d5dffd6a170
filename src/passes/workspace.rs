//! The pooled world of a compilation. Only this module knows how worlds are reused.
//!
//! A workspace is a world together with the systems of the pipeline, which belong to that world for good.
//! Between compilations all entities are cleared; archetypes, tables and their memory stay, so a warm
//! compilation allocates almost nothing. A pooled world holds no resources of its own, and nothing outside
//! may keep an entity of it: after clearing, the same ids stand for other nodes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bevy_ecs::entity_disabling::DefaultQueryFilters;
use bevy_ecs::prelude::*;
use bevy_ecs::system::BoxedSystem;

use super::analysis::find_in_place::has_alike_memories;
use super::facts::{
    BankConflicts, Expressions, Geometry, KernelStage, LdsBuffer, LdsBytes, LogicalBody, PaddedFactors,
    Settings,
};
use super::options::{BoundsChecking, FloatFunctions, Options, Schedule};
use super::{PIPELINE, PassResult};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::ExprArena;
use crate::ir::kernel::{Constraints, Declaration, DimTable, Kernel, KernelName, Locations};
use crate::ir::layout::MmaType;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::{DebugLog, Strides};
use crate::ir::node::{Name, *};
use crate::ir::node_map::Side;
use crate::ir::nodes::{self, ExpandedNode};
use crate::ir::op::{KernelTraits, NodeRole, OpClass};
use crate::ir::text::{Detail, copy_attributes, print_after};
use crate::ir::{verifier, walk};

/// A world that compiles one kernel after the other.
pub struct Workspace {
    /// The world; between [`Workspace::load`] and the next load it holds one kernel.
    pub world: World,
    /// The kernel entity.
    pub root: Entity,
    /// Where its expanded nodes are, for what comes after the pipeline.
    pub(crate) expanded: QueryState<ExpandedNode>,
    /// What its nodes do.
    pub(crate) ops: QueryState<&'static Op>,
    /// Logical accesses of LDS with the bank conflicts that they have left; for the first kernel with LDS.
    pub(crate) conflicts: Option<QueryState<(Entity, &'static BankConflicts)>>,
    /// Lowers the kernel as it stands and enters what its nodes become (`schedule::estimate::node_code`).
    pub(crate) measure: Option<fn(&mut Workspace) -> PassResult>,
    /// The systems of the passes, made when they are needed first.
    systems: Vec<Option<BoxedSystem<(), PassResult>>>,
    /// Traits of the kernel, except those that its passes find.
    traits: KernelTraits,
    map: Side<Entity>,
    /// An empty arena for the next kernel, and one that stands in for its own while it is lowered.
    arena: Option<Box<ExprArena>>,
    pub(crate) spare: Box<ExprArena>,
    reached: ReachedPass,
}

/// How far a kernel is.
#[derive(Default)]
struct ReachedPass {
    /// The number of passes of the list that it has been through.
    done: usize,
    /// The pass after which it says that it stands, if that pass does not exist.
    unknown: Option<Arc<str>>,
}

/// The pass that compares schedules, the pass that gives LDS its places, and the phase in which lowering says
/// what nodes become.
const SCHEDULING: &str = "schedule_loops";
const PLACING: &str = "allocate_lds";
const MEASURING: &str = "measure";

static POOL: Mutex<Vec<Workspace>> = Mutex::new(Vec::new());

/// Workspaces kept between compilations; if more threads need one at once, they make new ones.
const POOL_LIMIT: usize = 16;

/// Runs `body` with a workspace from the pool.
pub(crate) fn with_workspace<R>(body: impl FnOnce(&mut Workspace) -> R) -> R {
    let pooled = POOL.lock().ok().and_then(|mut pool| pool.pop());
    let mut workspace = pooled.unwrap_or_else(Workspace::new);
    let result = body(&mut workspace);
    // A panic in `body` drops the workspace instead: its world may be in any state.
    if let Ok(mut pool) = POOL.lock()
        && pool.len() < POOL_LIMIT
    {
        pool.push(workspace);
    }
    result
}

impl Workspace {
    fn new() -> Workspace {
        let mut world = World::new();
        // No entity is ever disabled, and every query would carry the filter against it.
        world.insert_resource(DefaultQueryFilters::empty());
        Workspace {
            expanded: QueryState::new(&mut world),
            ops: QueryState::new(&mut world),
            conflicts: None,
            measure: None,
            world,
            root: Entity::PLACEHOLDER,
            systems: PIPELINE.iter().map(|_| None).collect(),
            traits: KernelTraits::empty(),
            map: Side::of(&[], Entity::PLACEHOLDER),
            arena: None,
            spare: Box::default(),
            reached: ReachedPass::default(),
        }
    }

    /// Empties the world and copies a kernel into it: if the kernel stands after a pass, with all facts that
    /// passes have found.
    pub fn load(&mut self, kernel: &Kernel, options: &Options) {
        if let Ok(mut root) = self.world.get_entity_mut(self.root)
            && let Some(mut expressions) = root.take::<Expressions>()
        {
            expressions.0.clear();
            self.arena = Some(expressions.0);
        }
        self.world.clear_entities();
        let (from, root) = (&kernel.world, kernel.root);
        let stage = from.get::<KernelStage>(root).map(|stage| &stage.0);
        let after = stage.and_then(|stage| PIPELINE.iter().position(|pass| *pass.name == **stage));
        self.reached.done = after.map_or(0, |at| at + 1);
        self.reached.unknown = stage.filter(|_| after.is_none()).cloned();
        self.copy_root(from, root, options);
        let mut order = walk::nodes(from, root);
        if let Some(logical) = from.get::<LogicalBody>(root) {
            // In front of their pieces, which refer to them.
            let pieces = std::mem::replace(&mut order, walk::nodes_of_list(from, &logical.0));
            order.extend(pieces);
        }
        self.traits = described_traits(kernel, options);
        self.copy_nodes(from, root, &order);
        if stage.is_some() {
            self.copy_facts(from, root, &order);
        }
    }

    /// Makes the entity of the kernel, with what the author states.
    fn copy_root(&mut self, from: &World, root: Entity, options: &Options) {
        let expressions = Expressions(match from.get::<Expressions>(root) {
            Some(expressions) => expressions.0.clone(),
            None => self.arena.take().unwrap_or_default(),
        });
        let copy = self.world.spawn((
            from.get::<KernelName>(root).cloned().unwrap_or(KernelName("".into())),
            from.get::<DimTable>(root).cloned().unwrap_or_default(),
            from.get::<Constraints>(root).cloned().unwrap_or_default(),
            from.get::<Locations>(root).cloned().unwrap_or_default(),
            from.get::<Declaration>(root).cloned().unwrap_or_default(),
            Settings(options.clone()),
            Geometry::default(),
            expressions,
            Body::default(),
        ));
        self.root = copy.id();
    }

    fn copy_nodes(&mut self, from: &World, root: Entity, order: &[Entity]) {
        self.map.refill(order, Entity::PLACEHOLDER);
        let places =
            |node: &&Entity| from.get::<Op>(**node).is_some_and(|op| op.row().class == OpClass::Declaration);
        for &node in order.iter().filter(places) {
            self.map[node] = self.copy_node(from, node);
        }
        for &node in order.iter().filter(|node| !places(node)) {
            self.map[node] = self.copy_node(from, node);
        }
        // Yields refer to nodes that come later in the order, so they are mapped when all copies exist.
        for &node in order {
            let copy = self.map[node];
            if let Some(yields) = from.get::<Yields>(node) {
                let yields = Yields(yields.0.iter().map(|y| self.map[*y]).collect());
                let body = self.mapped_body(from, node);
                self.world.entity_mut(copy).insert((yields, body));
            }
        }
        let nodes = self.mapped_body(from, root);
        if let Some(mut body) = self.world.get_mut::<Body>(self.root) {
            *body = nodes;
        }
    }

    /// Copies what passes have found out about a kernel.
    fn copy_facts(&mut self, from: &World, root: Entity, order: &[Entity]) {
        let map = &self.map;
        let renamed = |node: Entity| map[node];
        if let Some(logical) = from.get::<LogicalBody>(root) {
            let logical = LogicalBody(logical.0.iter().map(|&node| renamed(node)).collect());
            self.world.entity_mut(self.root).insert(logical);
        }
        for &node in order {
            if from.get::<PaddedFactors>(node).is_some() {
                self.traits |= KernelTraits::PADDED_FACTORS;
            }
            copy_attributes(from, node, &mut self.world.entity_mut(renamed(node)), &renamed);
        }
        copy_attributes(from, root, &mut self.world.entity_mut(self.root), &renamed);
    }

    fn mapped_body(&self, from: &World, node: Entity) -> Body {
        let nodes = from.get::<Body>(node).map(|b| &b.0[..]).unwrap_or_default();
        // Room for nodes that passes add, so that the list is not moved for them.
        let mut body = Vec::with_capacity(2 * nodes.len() + 8);
        body.extend(nodes.iter().map(|n| self.map[*n]));
        Body(body)
    }

    fn copy_node(&mut self, from: &World, node: Entity) -> Entity {
        let copy = self.copy_described(from, node);
        if let Some(&flags) = from.get::<MemoryAccessFlags>(node) {
            self.world.entity_mut(copy).insert(flags);
        }
        copy
    }

    fn copy_described(&mut self, from: &World, node: Entity) -> Entity {
        let map = |e: &Entity| self.map[*e];
        // An id that is in no world: a pass that uses it reports a bug.
        let Ok(mut bundle) = nodes::node(from, node).map(|node| node.bundle()) else {
            return Entity::PLACEHOLDER;
        };
        bundle.operands = Operands(bundle.operands.0.iter().map(map).collect());
        self.traits |= bundle.op.raises(bundle.ty.dtype);
        // What there is comes with the node: one fact after the other would move it each time.
        let named = (from.get::<Name>(node).cloned(), from.get::<Space>(node).copied());
        let mapping = if bundle.op.is_access() { from.get::<Mapping>(node).cloned() } else { None };
        let world = &mut self.world;
        if let Some(mapping) = mapping {
            let accessed = nodes::node(from, node).and_then(|node| node.memory());
            let is_value =
                |node: Entity| from.get::<Op>(node).is_some_and(|op| op.row().gives == NodeRole::Value);
            if accessed.is_ok_and(is_value) {
                self.traits |= KernelTraits::READ_VALUES;
            }
            let copy = bundle.spawn(world, mapping);
            if let Some(tag) = from.get::<Tag>(node) {
                world.entity_mut(copy).insert(tag.clone());
            }
            return copy;
        }
        let copy = match named {
            (None, None) => match from.get::<Tag>(node).cloned() {
                Some(tag) => return bundle.spawn(world, tag),
                None => return bundle.spawn(world, ()),
            },
            (Some(name), None) => bundle.spawn(world, name),
            (None, Some(space)) => bundle.spawn(world, space),
            (Some(name), Some(space)) => {
                let copy = bundle.spawn(world, (name, space));
                if let Some(Strides(strides)) = from.get::<Strides>(node) {
                    world.entity_mut(copy).insert(Strides(strides.clone()));
                }
                if let Some(log) = from.get::<DebugLog>(node) {
                    self.traits |= KernelTraits::LOGS;
                    world.entity_mut(copy).insert(*log);
                }
                copy
            }
        };
        if let Some(tag) = from.get::<Tag>(node) {
            world.entity_mut(copy).insert(tag.clone());
        }
        copy
    }

    /// The kernel as it stands, with all facts that passes have found so far.
    pub fn text(&self, detail: Detail) -> String {
        print_after(&self.world, self.root, self.stage(), detail)
    }

    /// Checks the kernel as it stands against the invariants of every kernel.
    pub fn verified(&self) -> PassResult {
        verifier::verify(&self.world, self.root).into_iter().next().map_or(Ok(()), Err)
    }

    /// The last pass that the kernel has been through.
    pub fn stage(&self) -> Option<&'static str> {
        Some(PIPELINE.get(self.reached.done.checked_sub(1)?)?.name)
    }

    /// Runs all passes up to and including `last` (all of them for `None`).
    ///
    /// # Errors
    /// The first fault that a pass reports; with `verify`, also the first invariant that a pass breaks, with
    /// the pass's name.
    pub fn run(
        &mut self,
        last: Option<&str>,
        verify: Verify,
        times: &mut Vec<(&'static str, Duration)>,
    ) -> PassResult {
        if let Some(unknown) = &self.reached.unknown {
            let names: Vec<&str> = PIPELINE.iter().map(|pass| pass.name).collect();
            let text = format!("the kernel stands after a pass `{unknown}`, and there is none of this name");
            return Err(Diagnostic::invalid(text).help(format!("the passes are {}", names.join(", "))));
        }
        if let Some(last) = last
            && let Some(at) = PIPELINE.iter().position(|pass| pass.name == last)
            && at < self.reached.done
        {
            let stage = self.stage().unwrap_or_default();
            return match stage == last {
                true => Ok(()),
                false => Err(Diagnostic::invalid(format!("the kernel stands after {stage} already"))
                    .help("name a later pass, or start from an earlier text")),
            };
        }
        let compares = self.compares_schedules();
        for (number, pass) in PIPELINE.iter().enumerate().skip(self.reached.done) {
            if compares && pass.name == SCHEDULING {
                self.measure_code(times)?;
            }
            let start = Instant::now();
            let result = self.run_pass(number);
            times.push((pass.name, start.elapsed()));
            result?;
            if verify == Verify::AfterEachPass
                && let Some(fault) = verifier::verify(&self.world, self.root).into_iter().next()
            {
                return Err(fault.note(format!("pass {} broke this", pass.name), None));
            }
            self.reached.done += 1;
            if last == Some(pass.name) {
                break;
            }
        }
        Ok(())
    }

    /// Runs all passes in front of the one that schedules loops, and finds out what nodes become.
    ///
    /// # Errors
    /// As for [`Workspace::run`].
    pub(crate) fn run_to_schedules(&mut self) -> PassResult {
        let scheduling = PIPELINE.iter().position(|pass| pass.name == SCHEDULING);
        let last = scheduling.and_then(|at| Some(PIPELINE.get(at.checked_sub(1)?)?.name));
        self.run(last, Verify::Off, &mut Vec::new())?;
        self.measure_code(&mut Vec::new())
    }

    /// Runs one pass, if it has anything to do for the kernel.
    fn run_pass(&mut self, number: usize) -> PassResult {
        let (pass, system) = (&PIPELINE[number], &mut self.systems[number]);
        let found = || self.world.get::<KernelTraits>(self.root).copied().unwrap_or_default();
        let needed = self.traits.intersects(pass.traits)
            || pass.traits.intersects(KernelTraits::FOUND) && found().intersects(pass.traits);
        if !needed {
            return Ok(());
        }
        let system = system.get_or_insert_with(|| {
            let mut system = (pass.make)();
            system.initialize(&mut self.world);
            system
        });
        system.run((), &mut self.world).unwrap_or_else(|error| {
            let text = format!("pass {} could not run: {error}", pass.name);
            Err(Diagnostic::new(Kind::Bug, text))
        })
    }

    /// True if schedules of the kernel are compared by what nodes become.
    fn compares_schedules(&self) -> bool {
        let settings = self.world.get::<Settings>(self.root);
        settings.is_some_and(|settings| {
            let asked = settings.0.requested_schedule();
            let leaves_loops = matches!(asked, Schedule::Manual(written) if written.names_strategies());
            *asked == Schedule::Automatic || leaves_loops
        })
    }

    /// Takes back the places that LDS buffers have: schedules give them copies.
    fn forget_places(&mut self) {
        self.world.entity_mut(self.root).remove::<LdsBytes>();
        let body = self.world.get_mut::<Body>(self.root).map(|mut body| std::mem::take(&mut *body));
        let Some(body) = body else { return };
        for &node in &body.0 {
            if let Some(mut buffer) = self.world.get_mut::<LdsBuffer>(node) {
                buffer.offset = 0;
            }
        }
        self.world.entity_mut(self.root).insert(body);
    }

    /// Finds out what the nodes of the kernel become: LDS gets its places for that as if nothing were
    /// scheduled.
    fn measure_code(&mut self, times: &mut Vec<(&'static str, Duration)>) -> PassResult {
        let start = Instant::now();
        if let Some(measure) = self.measure {
            let places = PIPELINE.iter().position(|pass| pass.name == PLACING);
            places.map_or(Ok(()), |number| self.run_pass(number))?;
            let measured = measure(self);
            self.forget_places();
            measured?;
        }
        times.push((MEASURING, start.elapsed()));
        Ok(())
    }
}

/// Whether the verifier checks the kernel after each pass.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Verify {
    /// No.
    #[default]
    Off,
    /// Yes.
    AfterEachPass,
}

/// The traits that a kernel's dimensions, constraints and options raise.
fn described_traits(kernel: &Kernel, options: &Options) -> KernelTraits {
    let (world, root) = (&kernel.world, kernel.root);
    let says_shape =
        |(constraint, _): &(Constraint, u32)| matches!(constraint, Constraint::MmaType(MmaType::Shape(_)));
    let shapes = world.get::<Constraints>(root).is_some_and(|all| all.0.iter().any(says_shape));
    let scaled = world.get::<DimTable>(root).is_some_and(|dims| !dims.scaled().is_empty());
    let fast = options.requested_functions() == FloatFunctions::Fast;
    let checks = options.requested_bounds_checks() != BoundsChecking::Off;
    let mut traits = KernelTraits::ANY;
    for (raised, is_raised) in [
        (KernelTraits::MATRIX_SHAPES, shapes),
        (KernelTraits::SCALED_DIMS, scaled),
        (KernelTraits::FAST_MATH, fast),
        (KernelTraits::BOUNDS_CHECKS, checks),
        (KernelTraits::DIRECT_LOADS, options.loads_to_lds()),
        (KernelTraits::ALIKE_MEMORIES, has_alike_memories(world, root)),
    ] {
        traits.set(raised, is_raised);
    }
    traits
}
