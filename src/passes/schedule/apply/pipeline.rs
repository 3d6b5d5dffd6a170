//! Software pipelining: a loop body whose nodes have stages becomes prologue, steady state and epilogue.
//!
//! Trip `p` of a pipelined loop runs stage `g` of iteration `p + ahead - g`, where `ahead` is the number of
//! stages less one. Trips below zero are the prologue, those after the last are the epilogue; both leave out
//! what belongs to no iteration. A value that is used in a later trip than the one that makes it is carried
//! by the loop, once for each trip between: the newest first.
//!
//! The pipeline overlaps trips of the loop as it is: for an unrolled loop, several iterations at a time.
//!
//! `Op::Pipeline` is the region that holds prologue, loop and epilogue. It runs once if the loop has at
//! least as many iterations as stages less one, and otherwise not at all. Its carried values are those of
//! the loop, and after it comes the loop as it was written, for trip counts that are too short; with two
//! stages "too short" is zero, and there is none. Every expanded access says which iteration it belongs to
//! (`Iteration`: a base, which is the start, the running trip or the end, and how far ahead of it). Lowering
//! turns that into scalar offsets, one register per distance, and into the copy of the LDS buffer in use.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::codegen::target::{DeviceModel, DeviceParameter, Target};
use crate::index::{Neighbours, Stretches};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::nodes::{self, NodeBundle};
use crate::ir::walk::{self, NodeList};
use crate::passes::facts::{Expressions, LdsBuffer, OfSchedule};
use crate::passes::loops::expand::{Base, Expansion, Iteration};
use crate::passes::schedule::graph::numbers::EntityNumbers;
use crate::passes::schedule::graph::view::Scheduling;
use crate::passes::schedule::graph::words::bug;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, entity_impl};

/// A place in the order of a steady state.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct OrderPlace(u32);
entity_impl!(OrderPlace, "");

/// The number of a [`Chain`]. Those of the loop's own carried values come first and have their numbers.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ChainId(u32);
entity_impl!(ChainId, "");

/// The number of a value that the steady state carries.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
struct ArgumentId(u32);
entity_impl!(ArgumentId, "");

/// A node of the loop body in the order of the steady state.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PlacedNode {
    /// The expanded node.
    pub node: Entity,
    /// Its pipeline stage.
    pub stage: u32,
}

/// The nodes that stand for one node: one for each stage of the pipeline.
pub(crate) type PipelineCopies = SmallVec<[Entity; 4]>;

/// What became of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rebuilt {
    /// The region of prologue, steady state and epilogue.
    pub whole: Entity,
    /// The loop of the steady state.
    pub steady: Entity,
    /// For every node of the order, the nodes that stand for it now, in the prologue, the steady state and
    /// the epilogue.
    pub copies: PrimaryMap<OrderPlace, PipelineCopies>,
}

/// What to do with a loop whose trip count may be shorter than the pipeline.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Short {
    /// The trip count is known to be large enough.
    Never,
    /// The loop may have no iteration at all: then nothing runs.
    Empty,
    /// The loop may have fewer iterations than the pipeline needs: then it runs as it was written.
    AsWritten,
}

/// Where an operand comes from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum OperandSource {
    /// From outside of the loop.
    Outside(Entity),
    /// From the node at this place.
    Node(OrderPlace),
    /// The carried value with this number, which the node yields.
    Carried(ChainId, OrderPlace),
}

/// Values that the steady state carries for one source, the newest first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Chain {
    source: OperandSource,
    length: u32,
    first: ArgumentId,
}

impl Chain {
    /// The value that was made `age` trips ago, 1 or more.
    fn argument(&self, age: u32) -> ArgumentId {
        ArgumentId::from_u32(self.first.as_u32() + age - 1)
    }
}

/// Copies of the body's nodes for one trip; `None` where the trip leaves a node out.
type TripCopies = PrimaryMap<OrderPlace, Option<Entity>>;

struct Pipeliner<'w> {
    world: &'w mut World,
    /// What the nodes are.
    nodes: PrimaryMap<OrderPlace, (NodeBundle, Expansion)>,
    ahead: u32,
    drain: Drain,
    /// Iterations of one trip.
    per_trip: u32,
    order: &'w PrimaryMap<OrderPlace, PlacedNode>,
    /// Places in `order`.
    place: EntityNumbers<OrderPlace>,
    carried: CarriedChains,
    /// All nodes that stand for each node.
    copies: PrimaryMap<OrderPlace, PipelineCopies>,
    prologue: Vec<TripCopies>,
    epilogue: Vec<TripCopies>,
    /// Loads straight into LDS of the prologue, in their order.
    loads: Vec<PrologueLoad>,
}

/// A load straight into LDS in front of the steady state.
struct PrologueLoad {
    /// Its place in the body of the pipeline.
    place: usize,
    /// Its iteration, counted from the first one.
    iteration: u32,
    /// The LDS buffer.
    tile: Entity,
}

/// What the loop carries, and what its steady state does.
struct CarriedChains {
    /// The sources of all operands, with the trips between the making of each and its use, and where those of
    /// each node begin.
    sources: Vec<(OperandSource, u32)>,
    starts: PrimaryMap<OrderPlace, usize>,
    /// The carried values that nodes are.
    argument: EntityNumbers<ChainId>,
    yields: PrimaryMap<ChainId, Entity>,
    chains: PrimaryMap<ChainId, Chain>,
    /// The chain of each node's value.
    chain_of: PrimaryMap<OrderPlace, PackedOption<ChainId>>,
    /// The initial values as the pipeline's region sees them.
    inits: PrimaryMap<ChainId, Entity>,
    /// The carried values as the steady state sees them, and as it leaves them.
    arguments: PrimaryMap<ArgumentId, Entity>,
    results: PrimaryMap<ArgumentId, Entity>,
}

/// Replaces the loop `node` in `region` by a pipeline of `stages` stages. The loop may be unrolled, but not
/// pipelined yet. `order` holds all nodes of its body but the carried values; the order and the stages
/// respect all dependences. With [`Drain::Loop`], everything that is carried must be made in the last stage,
/// and no earlier stage may write to global memory.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn pipeline(
    kernel: &mut Scheduling,
    [region, node]: [Entity; 2],
    order: &PrimaryMap<OrderPlace, PlacedNode>,
    stages: u32,
    short: Short,
    drain: Drain,
) -> Result<Rebuilt, Diagnostic> {
    let root = kernel.root;
    let seen = kernel.view().node(node)?;
    let Op::Iterate(axis) = *seen.op else { return Err(bug("no loop")) };
    let (expansion, origin, init) = (seen.expansion()?, *seen.origin, seen.operands.clone());
    let ahead = stages.saturating_sub(1);
    let per_trip = Unrolled::of(kernel.world, node);
    let trip = *nodes::fact::<Trip>(kernel.world, node, "a loop without trip count")?;
    let loop_trip = match drain {
        Drain::Epilogue => shortened(kernel.world, root, trip, ahead.saturating_mul(per_trip))?,
        Drain::Loop => trip,
    };

    let (waves, target) = (kernel.view().waves()?, kernel.view().settings()?.target());
    let unrolled = kernel.world.get::<Unrolled>(node).copied();
    let mut pipeliner = Pipeliner::new(kernel, node, order, Pipelined { ahead, drain })?;
    pipeliner.find_chains()?;
    let carried = pipeliner.original_arguments()?;
    for (at, shape) in (0..).zip(&carried) {
        let argument =
            shape.value(Op::IterArg(at), Operands::default()).spawn(pipeliner.world, shape.expansion);
        pipeliner.carried.inits.push(argument);
    }
    let mut body = pipeliner.prologue_nodes((waves, target), origin)?;
    let steady = pipeliner.steady_state(axis, loop_trip, expansion, origin)?;
    body.push(steady);
    body.extend(pipeliner.carried.results.values());
    let yields = match drain {
        Drain::Epilogue => {
            for trip in 0..ahead {
                pipeliner.epilogue_trip(trip, &mut body)?;
            }
            pipeliner.final_values()?
        }
        Drain::Loop => pipeliner.values_of_the_loop()?,
    };
    let copies = std::mem::take(&mut pipeliner.copies);
    let world = pipeliner.world;
    let whole = NodeBundle { operands: init, ..NodeBundle::effect(Op::Pipeline(axis), origin) };
    let parts = (Body(body), Yields(yields), trip, Pipelined { ahead, drain });
    let whole = whole.spawn(world, (expansion, parts));
    if let Some(tag) = world.get::<Tag>(node).cloned() {
        world.entity_mut(whole).insert(tag);
    }
    if let Some(unrolled) = unrolled {
        world.entity_mut(whole).insert(unrolled);
        world.entity_mut(steady).insert(unrolled);
    }
    let pipeline = Pipelined { ahead, drain };
    install(kernel, [region, node, whole], pipeline, &carried, short)?;
    Ok(Rebuilt { whole, steady, copies })
}

/// The trip count of the steady state.
fn shortened(world: &mut World, root: Entity, trip: Trip, ahead: u32) -> Result<Trip, Diagnostic> {
    let mut expressions = nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")?;
    let arena = &mut expressions.0;
    let ahead = arena.int(i64::from(ahead));
    let end = arena.sub(trip.end, ahead).map_err(|e| bug(&format!("a trip count: {e}")))?;
    Ok(Trip { start: trip.start, end })
}

/// Puts the pipeline in the loop's place; for trip counts that may be too short, the loop stays after it.
fn install(
    kernel: &mut Scheduling,
    [region, node, whole]: [Entity; 3],
    pipelined: Pipelined,
    carried: &[CarriedShape],
    short: Short,
) -> Result<(), Diagnostic> {
    let view = kernel.view();
    let mut nodes: NodeList = view.body(region)?.into();
    let at = nodes.iter().position(|&n| n == node).ok_or_else(|| bug("a loop that its region lacks"))?;
    if short != Short::AsWritten {
        nodes[at] = whole;
        walk::set_body(kernel.world, region, &nodes);
        return take_results(kernel, &nodes, node, whole);
    }
    let (world, root) = (&mut *kernel.world, kernel.root);
    let mut front: SmallVec<[Entity; 64]> = smallvec![whole];
    for (number, shape) in (0..).zip(carried) {
        let result = shape.value(Op::LoopResult(number), Operands(smallvec![whole]));
        front.push(result.spawn(world, shape.expansion));
    }
    nodes::fact_mut::<Operands>(world, node, "a loop without initial values")?.0 =
        SmallVec::from_slice(&front[1..]);
    nodes.insert_many(at, front);
    walk::set_body(world, region, &nodes);
    // `min(n, max(0, (needed - n) * (ahead - 1)))` is n below `needed` and nothing from there on: `needed`
    // and n are multiples of the iterations of a trip. Where the product may leave the 32 bits of scalar
    // code, what is multiplied is not negative.
    let ahead = i64::from(pipelined.ahead);
    let needed = ahead * i64::from(Unrolled::of(world, node));
    let mut trip = *nodes::fact::<Trip>(world, node, "a loop without trip count")?;
    let mut expressions = nodes::fact_mut::<Expressions>(world, root, "a kernel without expressions")?;
    let arena = &mut expressions.0;
    let short = (|| {
        let count = arena.sub(trip.end, trip.start)?;
        let (needed, factor, zero) = (arena.int(needed), arena.int(ahead - 1), arena.int(0));
        let missing = arena.sub(needed, count)?;
        let product = arena.mul(missing, factor)?;
        let range = arena.range(product);
        let missing = if range.at_least(i32::MIN.into()) && range.at_most(i32::MAX.into()) {
            arena.max(product, zero)?
        } else {
            let missing = arena.max(missing, zero)?;
            arena.mul(missing, factor)?
        };
        let count = arena.min(count, missing)?;
        arena.add(trip.start, count)
    })();
    trip.end = short.map_err(|e| bug(&format!("a trip count: {e}")))?;
    world.entity_mut(node).insert(trip);
    Ok(())
}

fn unchanged() -> Diagnostic {
    bug("a pipelined loop hands a carried value on unchanged")
}

/// Results of the loop `from` become those of another.
pub(super) fn take_results(
    kernel: &mut Scheduling,
    nodes: &[Entity],
    from: Entity,
    to: Entity,
) -> Result<(), Diagnostic> {
    let view = kernel.view();
    let mut results: SmallVec<[Entity; 64]> = SmallVec::new();
    for &node in nodes {
        if matches!(view.op(node)?, Op::LoopResult(_)) && view.node(node)?.operands.0.contains(&from) {
            results.push(node);
        }
    }
    for result in results {
        let mut operands = nodes::fact_mut::<Operands>(kernel.world, result, "a result of no loop")?;
        operands.0.iter_mut().filter(|operand| **operand == from).for_each(|operand| *operand = to);
    }
    Ok(())
}

/// What a value that a pipeline carries is.
#[derive(Clone, Debug)]
struct CarriedShape {
    ty: ValueType,
    expansion: Expansion,
    origin: Origin,
}

type CarriedValues = (SmallVec<[Entity; 4]>, SmallVec<[CarriedShape; 4]>);

impl CarriedShape {
    /// A node with such a value.
    fn value(&self, op: Op, operands: Operands) -> NodeBundle {
        NodeBundle { op, operands, ty: self.ty.clone(), origin: self.origin }
    }
}

impl<'w> Pipeliner<'w> {
    fn new(
        kernel: &'w mut Scheduling,
        node: Entity,
        order: &'w PrimaryMap<OrderPlace, PlacedNode>,
        Pipelined { ahead, drain }: Pipelined,
    ) -> Result<Pipeliner<'w>, Diagnostic> {
        let view = kernel.view();
        let body = view.body(node)?;
        let mut place = EntityNumbers::of(body.iter().copied());
        let mut argument = EntityNumbers::of(body.iter().copied());
        let mut nodes: PrimaryMap<OrderPlace, _> = Vec::with_capacity(order.len()).into();
        for (at, placed) in order.iter() {
            place.insert(placed.node, at);
            let seen = view.node(placed.node)?;
            nodes.push((seen.bundle(), seen.piece(placed.node)));
        }
        for &inner in body {
            // They come first.
            let Op::IterArg(carried) = view.op(inner)? else { break };
            argument.insert(inner, ChainId::from_u32(carried));
        }
        let yields = nodes::fact::<Yields>(view.world, node, "a loop that hands nothing on")?
            .0
            .iter()
            .copied()
            .collect();
        let per_trip = Unrolled::of(view.world, node);
        Ok(Pipeliner {
            world: kernel.world,
            nodes,
            ahead,
            drain,
            per_trip,
            order,
            place,
            carried: CarriedChains {
                sources: Vec::new(),
                starts: PrimaryMap::default(),
                argument,
                yields,
                chains: PrimaryMap::default(),
                chain_of: vec![PackedOption::default(); order.len()].into(),
                inits: PrimaryMap::default(),
                arguments: PrimaryMap::default(),
                results: PrimaryMap::default(),
            },
            copies: vec![PipelineCopies::new(); order.len()].into(),
            prologue: Vec::new(),
            epilogue: Vec::new(),
            loads: Vec::new(),
        })
    }

    fn stage(&self, place: OrderPlace) -> u32 {
        self.order[place].stage
    }

    fn source(&self, operand: Entity) -> Result<OperandSource, Diagnostic> {
        if let Some(place) = self.place.get(operand) {
            return Ok(OperandSource::Node(place));
        }
        let Some(carried) = self.carried.argument.get(operand) else {
            return Ok(OperandSource::Outside(operand));
        };
        let made = self.carried.yields.get(carried).and_then(|&y| self.place.get(y));
        let made = made.ok_or_else(unchanged)?;
        Ok(OperandSource::Carried(carried, made))
    }

    /// Trips between the making of a source and its use in stage `stage`.
    fn lag(&self, source: OperandSource, stage: u32) -> Result<u32, Diagnostic> {
        let lag = match source {
            OperandSource::Outside(_) => Some(0),
            OperandSource::Node(made) => stage.checked_sub(self.stage(made)),
            OperandSource::Carried(_, made) => (stage + 1).checked_sub(self.stage(made)),
        };
        lag.ok_or_else(|| bug("a pipelined loop uses a value of a later trip"))
    }

    fn operands(&self, place: OrderPlace) -> &Operands {
        &self.nodes[place].0.operands
    }

    /// The sources of a node's operands, each with the trips between its making and this use.
    fn sources(&self, place: OrderPlace) -> &[(OperandSource, u32)] {
        let CarriedChains { sources, starts, .. } = &self.carried;
        &sources[starts[place]..starts[place.next()]]
    }

    /// Which values the steady state carries, and how long.
    fn find_chains(&mut self) -> Result<(), Diagnostic> {
        // The loop's own carried values come first. A value that the steady state neither uses in a later
        // trip nor hands to the code after it is not carried: an accumulator that the last stage finishes and
        // that an earlier stage of the next iteration takes up in the same trip.
        for carried in self.carried.yields.keys() {
            let made = self.place.get(self.carried.yields[carried]);
            let made = made.ok_or_else(unchanged)?;
            let left = self.drain == Drain::Loop || self.stage(made) == 0;
            let source = OperandSource::Carried(carried, made);
            self.carried.chains.push(Chain { source, length: u32::from(left), first: ArgumentId::default() });
        }
        self.carried.sources.reserve(4 * self.order.len());
        for user in self.order.keys() {
            self.carried.starts.push(self.carried.sources.len());
            for at in 0..self.operands(user).0.len() {
                let source = self.source(self.operands(user).0[at])?;
                let lag = self.lag(source, self.stage(user))?;
                self.carried.sources.push((source, lag));
                let at = match source {
                    OperandSource::Outside(_) => continue,
                    OperandSource::Carried(carried, _) => carried,
                    OperandSource::Node(_) if lag == 0 => continue,
                    OperandSource::Node(made) => {
                        let chains = &mut self.carried.chains;
                        let new = || chains.push(Chain { source, length: 0, first: ArgumentId::default() });
                        let chain = self.carried.chain_of[made].expand().unwrap_or_else(new);
                        self.carried.chain_of[made] = chain.into();
                        chain
                    }
                };
                self.carried.chains[at].length = self.carried.chains[at].length.max(lag);
            }
        }
        self.carried.starts.push(self.carried.sources.len());
        let mut first = ArgumentId::default();
        for chain in self.carried.chains.values_mut() {
            chain.first = first;
            first = chain.argument(chain.length + 1);
        }
        Ok(())
    }

    /// The loop's carried values, as the nodes that make them.
    fn original_arguments(&self) -> Result<Vec<CarriedShape>, Diagnostic> {
        let made = self.carried.yields.values().map(|&made| self.place.get(made));
        made.map(|made| made.map(|made| self.shape_of(made)).ok_or_else(unchanged)).collect()
    }

    fn shape_of(&self, place: OrderPlace) -> CarriedShape {
        let (node, expansion) = &self.nodes[place];
        CarriedShape { ty: node.ty.clone(), expansion: *expansion, origin: node.origin }
    }

    fn made_by(source: OperandSource) -> Option<OrderPlace> {
        match source {
            OperandSource::Outside(_) => None,
            OperandSource::Node(made) | OperandSource::Carried(_, made) => Some(made),
        }
    }

    fn chain(&self, source: OperandSource) -> Result<Chain, Diagnostic> {
        let at = match source {
            OperandSource::Outside(_) => None,
            OperandSource::Carried(carried, _) => Some(carried),
            OperandSource::Node(made) => self.carried.chain_of[made].expand(),
        };
        let chain = at.and_then(|at| self.carried.chains.get(at)).copied();
        chain.ok_or_else(|| bug("a value that a pipelined loop does not carry"))
    }

    /// The copy of a node for the trip that is so many trips ahead of the base.
    fn copy(&mut self, place: OrderPlace, operands: SmallVec<[Entity; 4]>, base: Base, ahead: u32) -> Entity {
        let (node, expansion) = &self.nodes[place];
        let ahead = ahead * self.per_trip + expansion.iteration.ahead;
        let expansion = Expansion { iteration: Iteration { base, ahead }, ..*expansion };
        let copy = NodeBundle {
            op: node.op,
            operands: Operands(operands),
            ty: node.ty.clone(),
            origin: node.origin,
        };
        let copy = copy.spawn(self.world, expansion);
        self.copies[place].push(copy);
        copy
    }

    /// The nodes in front of the steady state.
    fn prologue_nodes(
        &mut self,
        (waves, target): (u32, Target),
        origin: Origin,
    ) -> Result<Vec<Entity>, Diagnostic> {
        let mut body = self.carried.inits.as_values_slice().to_vec();
        for trip in 0..self.ahead {
            self.prologue_trip(trip, &mut body)?;
        }
        if let Some(place) = self.first_trip_loaded(target)?.filter(|_| waves > 1) {
            let meet = NodeBundle::effect(Op::Barrier, origin);
            body.insert(place, meet.spawn(self.world, OfSchedule));
        }
        Ok(body)
    }

    /// The place at which waves meet in front of loads straight into LDS for trips after the first one: after
    /// the loads of the first trip, unless all of them can be under way together.
    ///
    /// Otherwise waves would issue what they load for several trips, the oldest first (the older one of two
    /// waves that may issue always does: SC25). So the last wave's part of the tile that all of them wait for
    /// would come after the others' parts of the next one, for which there is no room yet. A tile that leaves
    /// room for the next one gets it: its loads are over one latency later than those of the first.
    fn first_trip_loaded(&self, target: Target) -> Result<Option<usize>, Diagnostic> {
        let of_first_trip = |load: &&PrologueLoad| load.iteration < self.per_trip;
        let follows = self.loads.last().is_some_and(|load| load.iteration >= self.per_trip);
        let mut bytes = 0;
        let mut tiles: SmallVec<[(Entity, u32); 4]> = SmallVec::new();
        for load in self.loads.iter().filter(of_first_trip) {
            if !tiles.contains(&(load.tile, load.iteration)) {
                let buffer = nodes::fact::<LdsBuffer>(self.world, load.tile, "a tile without a place")?;
                tiles.push((load.tile, load.iteration));
                bytes += u64::from(buffer.bytes);
            }
        }
        let room = DeviceModel::nearest(target).count(DeviceParameter::VectorFlight);
        let last = self.loads.iter().rev().find(of_first_trip);
        Ok(last.filter(|_| follows && bytes > room).map(|load| load.place + 1))
    }

    fn prologue_trip(&mut self, trip: u32, body: &mut Vec<Entity>) -> Result<(), Diagnostic> {
        self.prologue.push(vec![None; self.order.len()].into());
        for place in self.order.keys() {
            // Trip `trip` of the prologue is trip `trip - ahead` of the loop.
            let Some(ahead) = trip.checked_sub(self.stage(place)) else { continue };
            let mut operands = SmallVec::new();
            for &(source, lag) in self.sources(place) {
                operands.push(match source {
                    OperandSource::Outside(entity) => entity,
                    OperandSource::Carried(carried, _) if ahead == 0 => self.carried.inits[carried],
                    OperandSource::Node(made) | OperandSource::Carried(_, made) => {
                        let from = trip.checked_sub(lag).and_then(|p| self.prologue[p as usize][made]);
                        from.ok_or_else(|| bug("a prologue uses what it does not make"))?
                    }
                });
            }
            let copy = self.copy(place, operands, Base::Start, ahead);
            self.prologue[trip as usize][place] = Some(copy);
            let (node, expansion) = &self.nodes[place];
            if node.op.copies() {
                let iteration = ahead * self.per_trip + expansion.iteration.ahead;
                self.loads.push(PrologueLoad { place: body.len(), iteration, tile: node.operands.last()? });
            }
            body.push(copy);
        }
        Ok(())
    }

    /// Makes the arguments of the steady state; what it begins with, and what the values are like.
    fn carried_values(&mut self) -> Result<CarriedValues, Diagnostic> {
        let (mut init, mut shapes) = CarriedValues::default();
        for chain in self.carried.chains.clone().values().copied() {
            let made = Self::made_by(chain.source).ok_or_else(|| bug("a chain without source"))?;
            for lag in 1..=chain.length {
                let from = self.ahead.checked_sub(lag).and_then(|p| self.prologue[p as usize][made]);
                init.push(match (from, chain.source) {
                    (Some(copy), _) => copy,
                    (None, OperandSource::Carried(carried, _)) => self.carried.inits[carried],
                    _ => return Err(bug("a steady state begins with what the prologue does not make")),
                });
                let shape = self.shape_of(made);
                let number = self.carried.arguments.next_key().as_u32();
                let argument = shape.value(Op::IterArg(number), Operands::default());
                self.carried.arguments.push(argument.spawn(self.world, shape.expansion));
                shapes.push(shape);
            }
        }
        Ok((init, shapes))
    }

    /// The loop of the steady state.
    fn steady_state(
        &mut self,
        axis: crate::ir::layout::Dim,
        trip: Trip,
        expansion: Expansion,
        origin: Origin,
    ) -> Result<Entity, Diagnostic> {
        let (init, shapes) = self.carried_values()?;
        let mut copies: TripCopies = vec![None; self.order.len()].into();
        let mut body = self.carried.arguments.as_values_slice().to_vec();
        for place in self.order.keys() {
            let mut operands = SmallVec::new();
            for &(source, lag) in self.sources(place) {
                operands.push(match source {
                    OperandSource::Outside(entity) => entity,
                    OperandSource::Node(made) | OperandSource::Carried(_, made) if lag == 0 => {
                        copies[made].ok_or_else(|| bug("a pipelined loop uses a value before it is made"))?
                    }
                    OperandSource::Node(_) | OperandSource::Carried(..) => {
                        self.carried.arguments[self.chain(source)?.argument(lag)]
                    }
                });
            }
            let ahead = self.ahead - self.stage(place);
            let copy = self.copy(place, operands, Base::Trip, ahead);
            copies[place] = Some(copy);
            body.push(copy);
        }
        let mut yields = SmallVec::new();
        for chain in self.carried.chains.values().filter(|chain| chain.length > 0) {
            let made = Self::made_by(chain.source).and_then(|made| copies[made]);
            yields.push(made.ok_or_else(|| bug("a chain without source"))?);
            yields.extend_from_slice(self.carried.arguments.range(chain.first..chain.argument(chain.length)));
        }
        let steady = NodeBundle { operands: Operands(init), ..NodeBundle::effect(Op::Iterate(axis), origin) };
        let steady = steady.spawn(self.world, (expansion, (Body(body), Yields(yields), trip)));
        for (number, shape) in (0..).zip(&shapes) {
            let result = shape.value(Op::LoopResult(number), Operands(smallvec![steady]));
            self.carried.results.push(result.spawn(self.world, shape.expansion));
        }
        Ok(steady)
    }

    fn epilogue_trip(&mut self, trip: u32, body: &mut Vec<Entity>) -> Result<(), Diagnostic> {
        self.epilogue.push(vec![None; self.order.len()].into());
        for place in self.order.keys() {
            // A node that is this far ahead belongs to no iteration.
            if trip >= self.stage(place) {
                continue;
            }
            let mut operands = SmallVec::new();
            for &(source, lag) in self.sources(place) {
                operands.push(match (source, trip.checked_sub(lag)) {
                    (OperandSource::Outside(entity), _) => entity,
                    (OperandSource::Node(made) | OperandSource::Carried(_, made), Some(from)) => self
                        .epilogue[from as usize][made]
                        .ok_or_else(|| bug("an epilogue uses what it does not make"))?,
                    (_, None) => self.carried.results[self.chain(source)?.argument(lag - trip)],
                });
            }
            let ahead = trip + self.ahead - self.stage(place);
            let copy = self.copy(place, operands, Base::End, ahead);
            self.epilogue[trip as usize][place] = Some(copy);
            body.push(copy);
        }
        Ok(())
    }

    /// The carried values as the loop leaves them.
    fn values_of_the_loop(&self) -> Result<SmallVec<[Entity; 4]>, Diagnostic> {
        let carried = self.carried.chains.values().take(self.carried.yields.len());
        let last = carried.map(|chain| self.carried.results.get(chain.first).copied());
        last.map(|value| value.ok_or_else(|| bug("a carried value without end"))).collect()
    }

    /// The loop's carried values after the last iteration.
    fn final_values(&self) -> Result<SmallVec<[Entity; 4]>, Diagnostic> {
        let carried = self.carried.chains.values().take(self.carried.yields.len());
        let last = carried.map(|chain| {
            let made = Self::made_by(chain.source)?;
            match self.stage(made).checked_sub(1) {
                Some(trip) => self.epilogue[trip as usize][made],
                None => self.carried.results.get(chain.first).copied(),
            }
        });
        last.map(|value| value.ok_or_else(|| bug("a carried value without end"))).collect()
    }
}
