//! The pooled world of a compilation. This is the only place that knows how worlds are reused.
//!
//! A workspace is a world together with the systems of the pipeline, which belong to that world for good. Between compilations all
//! entities are cleared; archetypes, tables and their memory stay, so a warm compilation allocates almost nothing. A pooled world never
//! holds resources, and nothing outside may keep an entity of it: after clearing, the same ids name other nodes.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use bevy_ecs::system::BoxedSystem;

use super::columns::COLUMNS;
use super::facts::{Expressions, Geometry, Settings};
use super::options::Options;
use super::{PIPELINE, PassResult};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::ExprArena;
use crate::ir::kernel::{Constraints, Declaration, DimTable, Kernel, KernelName, Locations};
use crate::ir::node::{Name, *};
use crate::ir::text::{Detail, print_with};
use crate::ir::{nodes, verifier, walk};

/// A world that compiles one kernel after the other.
pub struct Workspace {
    /// The world; between [`Workspace::load`] and the next load it holds one kernel.
    pub world: World,
    /// The kernel entity.
    pub root: Entity,
    systems: Vec<BoxedSystem<(), PassResult>>,
    map: Vec<Entity>,
    arena: ExprArena,
}

static POOL: Mutex<Vec<Workspace>> = Mutex::new(Vec::new());

/// Workspaces kept between compilations; more threads than that at once make fresh ones.
const POOL_LIMIT: usize = 16;

/// Runs `body` with a workspace from the pool.
pub fn with_workspace<R>(body: impl FnOnce(&mut Workspace) -> R) -> R {
    let pooled = POOL.lock().ok().and_then(|mut pool| pool.pop());
    let mut workspace = pooled.unwrap_or_else(Workspace::new);
    let result = body(&mut workspace);
    // A panic in `body` drops the workspace instead: its world may be in the middle of anything.
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
        let systems = PIPELINE
            .iter()
            .map(|pass| {
                let mut system = (pass.make)();
                system.initialize(&mut world);
                system
            })
            .collect();
        Workspace { world, root: Entity::PLACEHOLDER, systems, map: Vec::new(), arena: ExprArena::new() }
    }

    /// Empties the world and copies a kernel's logical nodes into it.
    pub fn load(&mut self, kernel: &Kernel, options: &Options) {
        if let Ok(mut root) = self.world.get_entity_mut(self.root)
            && let Some(expressions) = root.take::<Expressions>()
        {
            self.arena = expressions.0;
        }
        self.world.clear_entities();
        self.arena.clear();
        let expressions = Expressions(std::mem::take(&mut self.arena));
        let (from, root) = (&kernel.world, kernel.root);
        self.root = self
            .world
            .spawn((
                from.get::<KernelName>(root).cloned().unwrap_or(KernelName("".into())),
                from.get::<DimTable>(root).cloned().unwrap_or_default(),
                from.get::<Constraints>(root).cloned().unwrap_or_default(),
                from.get::<Locations>(root).cloned().unwrap_or_default(),
                from.get::<Declaration>(root).cloned().unwrap_or_default(),
                Settings(options.clone()),
                Geometry::default(),
                expressions,
            ))
            .id();
        let order = walk::nodes(from, root);
        let size = order.iter().map(|n| n.index_u32() as usize + 1).max().unwrap_or(0);
        self.map.clear();
        self.map.resize(size, Entity::PLACEHOLDER);
        for &node in &order {
            self.map[node.index_u32() as usize] = self.copy_node(from, node);
        }
        // Yields name nodes that come later in the order, so they are mapped when all copies exist.
        for &node in &order {
            let copy = self.map[node.index_u32() as usize];
            if let Some(yields) = from.get::<Yields>(node) {
                let yields = Yields(yields.0.iter().map(|y| self.map[y.index_u32() as usize]).collect());
                let body = self.mapped_body(from, node);
                self.world.entity_mut(copy).insert((yields, body));
            }
        }
        let body = self.mapped_body(from, root);
        self.world.entity_mut(self.root).insert(body);
    }

    fn mapped_body(&self, from: &World, node: Entity) -> Body {
        let nodes = from.get::<Body>(node).map(|b| &b.0[..]).unwrap_or_default();
        // Room for what passes add, so that the list is not moved for it.
        let mut body = Vec::with_capacity(2 * nodes.len() + 8);
        body.extend(nodes.iter().map(|n| self.map[n.index_u32() as usize]));
        Body(body)
    }

    fn copy_node(&mut self, from: &World, node: Entity) -> Entity {
        let map = |e: &Entity| self.map[e.index_u32() as usize];
        // Passes tell whoever uses a node that is none: it is in no world.
        let Ok(mut bundle) = nodes::node(from, node).map(|node| node.bundle()) else {
            return Entity::PLACEHOLDER;
        };
        bundle.operands = Operands(bundle.operands.0.iter().map(map).collect());
        let copy = bundle.spawn(&mut self.world, ());
        let mut entity = self.world.entity_mut(copy);
        if let Some(name) = from.get::<Name>(node) {
            entity.insert(name.clone());
        }
        if let Some(tag) = from.get::<Tag>(node) {
            entity.insert(tag.clone());
        }
        if let Some(space) = from.get::<Space>(node) {
            entity.insert(*space);
        }
        copy
    }

    /// The kernel as it stands, with all that passes have found out so far.
    pub fn text(&self) -> String {
        print_with(&self.world, self.root, Detail::Full, COLUMNS)
    }

    /// Runs all passes up to and including `last` (all of them for `None`).
    ///
    /// # Errors
    /// The first fault that a pass reports; with `verify`, also the first invariant that a pass breaks, with the pass's name.
    pub fn run(
        &mut self,
        last: Option<&str>,
        verify: Verify,
        times: &mut Vec<(&'static str, Duration)>,
    ) -> PassResult {
        for (pass, system) in PIPELINE.iter().zip(&mut self.systems) {
            let start = Instant::now();
            let result = system.run((), &mut self.world);
            times.push((pass.name, start.elapsed()));
            match result {
                Ok(result) => result?,
                Err(error) => {
                    let text = format!("pass {} could not run: {error}", pass.name);
                    return Err(Diagnostic::new(Kind::Bug, text));
                }
            }
            if verify == Verify::AfterEachPass
                && let Some(fault) = verifier::verify(&self.world, self.root).into_iter().next()
            {
                return Err(fault.note(format!("pass {} broke this", pass.name), None));
            }
            if last == Some(pass.name) {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the verifier looks at the kernel after each pass.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Verify {
    /// No.
    #[default]
    Off,
    /// Yes.
    AfterEachPass,
}
