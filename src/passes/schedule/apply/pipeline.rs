//! Software pipelining: a loop body whose nodes have stages becomes prologue, steady state and epilogue.
//!
//! Trip `p` of a pipelined loop runs stage `g` of iteration `p + ahead - g`, where `ahead` is the number of
//! stages less one. Trips below zero are the prologue, those after the last are the epilogue; both leave out
//! what belongs to no iteration. A value that is used in a later trip than the one that makes it is carried
//! by the loop, once for each trip between: the newest first.
//!
//! The pipeline overlaps trips of the loop as it is: for an unrolled loop, several iterations at a time.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::nodes::{self, NodeBundle};
use crate::ir::walk::{self, NodeList};
use crate::passes::expand::{Base, Expansion, Iteration};
use crate::passes::facts::Expressions;
use crate::passes::schedule::graph::view::Scheduling;
use crate::passes::schedule::graph::words::bug;

/// A node of the loop body in the order of the steady state.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PlacedNode {
    /// The expanded node.
    pub node: Entity,
    /// Its pipeline stage.
    pub stage: u32,
}

/// The nodes that stand for one node: two in a pipeline of two stages.
pub(crate) type PipelineCopies = SmallVec<[Entity; 2]>;

/// What became of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rebuilt {
    /// The region of prologue, steady state and epilogue.
    pub whole: Entity,
    /// The loop of the steady state.
    pub steady: Entity,
    /// For every node of the order, the nodes that stand for it now, in the prologue, the steady state and
    /// the epilogue.
    pub copies: Vec<PipelineCopies>,
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
    /// From the node with this number.
    Node(u32),
    /// The carried value with this number, which the node yields.
    Carried(u32, u32),
}

/// Values that the steady state carries for one source: the one made `k` trips ago has the number `first + k
/// - 1`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Chain {
    source: OperandSource,
    length: u32,
    first: u32,
}

/// Copies of the body's nodes for one trip; `None` where the trip leaves a node out.
type TripCopies = Vec<Option<Entity>>;

struct Pipeliner<'w> {
    world: &'w mut World,
    /// What the nodes are, by number.
    nodes: Vec<(NodeBundle, Expansion)>,
    ahead: u32,
    drain: Drain,
    /// Iterations of one trip.
    per_trip: u32,
    order: &'w [PlacedNode],
    /// Position in `order` by entity index, plus one.
    number: Vec<u32>,
    /// The carried value that an entity is, by entity index, plus one.
    argument: Vec<u32>,
    yields: SmallVec<[Entity; 4]>,
    chains: Vec<Chain>,
    /// The chain of each node's value, by number, plus one.
    chain_of: Vec<u32>,
    /// All nodes that stand for each node, by number.
    copies: Vec<PipelineCopies>,
    prologue: Vec<TripCopies>,
    epilogue: Vec<TripCopies>,
    /// The initial values as the pipeline's region sees them.
    inits: Vec<Entity>,
    /// The carried values as the steady state sees them, and as it leaves them.
    arguments: Vec<Entity>,
    results: Vec<Entity>,
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
    order: &[PlacedNode],
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

    let mut pipeliner = Pipeliner::new(kernel, node, order, Pipelined { ahead, drain })?;
    pipeliner.find_chains()?;
    let carried = pipeliner.original_arguments()?;
    for (at, shape) in (0..).zip(&carried) {
        let argument =
            shape.value(Op::IterArg(at), Operands::default()).spawn(pipeliner.world, shape.expansion);
        pipeliner.inits.push(argument);
    }
    let mut body = pipeliner.inits.clone();
    for trip in 0..ahead {
        pipeliner.prologue_trip(trip, &mut body)?;
    }
    let steady = pipeliner.steady_state(axis, loop_trip, expansion, origin)?;
    body.push(steady);
    body.extend_from_slice(&pipeliner.results);
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
    if let Some(&unrolled) = world.get::<Unrolled>(node) {
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
        let seen = view.node(node)?;
        if matches!(seen.op, Op::LoopResult(_)) && seen.operands.0.contains(&from) {
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
        order: &'w [PlacedNode],
        Pipelined { ahead, drain }: Pipelined,
    ) -> Result<Pipeliner<'w>, Diagnostic> {
        let view = kernel.view();
        let body = view.body(node)?;
        let size = body.iter().map(|n| n.index_u32() as usize + 1).max().unwrap_or(0);
        let (mut number, mut argument) = (vec![0; size], vec![0; size]);
        let mut nodes = Vec::with_capacity(order.len());
        for (at, placed) in order.iter().enumerate() {
            number[placed.node.index_u32() as usize] = at as u32 + 1;
            let seen = view.node(placed.node)?;
            nodes.push((seen.bundle(), seen.piece(placed.node)));
        }
        for &inner in body {
            // They come first.
            let Op::IterArg(carried) = view.op(inner)? else { break };
            argument[inner.index_u32() as usize] = carried + 1;
        }
        let yields = nodes::fact::<Yields>(view.world, node, "a loop that hands nothing on")?.0.clone();
        let per_trip = Unrolled::of(view.world, node);
        Ok(Pipeliner {
            world: kernel.world,
            nodes,
            ahead,
            drain,
            per_trip,
            order,
            number,
            argument,
            yields,
            chains: Vec::new(),
            chain_of: vec![0; order.len()],
            copies: vec![PipelineCopies::new(); order.len()],
            prologue: Vec::new(),
            epilogue: Vec::new(),
            inits: Vec::new(),
            arguments: Vec::new(),
            results: Vec::new(),
        })
    }

    fn stage(&self, number: u32) -> u32 {
        self.order[number as usize].stage
    }

    fn number_of(&self, entity: Entity) -> Option<u32> {
        self.number.get(entity.index_u32() as usize).copied()?.checked_sub(1)
    }

    fn source(&self, operand: Entity) -> Result<OperandSource, Diagnostic> {
        if let Some(number) = self.number_of(operand) {
            return Ok(OperandSource::Node(number));
        }
        let carried = self.argument.get(operand.index_u32() as usize).and_then(|a| a.checked_sub(1));
        let Some(carried) = carried else { return Ok(OperandSource::Outside(operand)) };
        let made = self.yields.get(carried as usize).and_then(|&y| self.number_of(y));
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

    fn operands(&self, number: u32) -> &Operands {
        &self.nodes[number as usize].0.operands
    }

    /// Which values the steady state carries, and how long.
    fn find_chains(&mut self) -> Result<(), Diagnostic> {
        // The loop's own carried values come first. A value that the steady state neither uses in a later
        // trip nor hands to the code after it is not carried: an accumulator that the last stage finishes and
        // that an earlier stage of the next iteration takes up in the same trip.
        for carried in 0..self.yields.len() as u32 {
            let made = self.number_of(self.yields[carried as usize]);
            let made = made.ok_or_else(unchanged)?;
            let left = self.drain == Drain::Loop || self.stage(made) == 0;
            let source = OperandSource::Carried(carried, made);
            self.chains.push(Chain { source, length: u32::from(left), first: 0 });
        }
        for user in 0..self.order.len() as u32 {
            for at in 0..self.operands(user).0.len() {
                let source = self.source(self.operands(user).0[at])?;
                let lag = self.lag(source, self.stage(user))?;
                let at = match source {
                    OperandSource::Outside(_) => continue,
                    OperandSource::Carried(carried, _) => carried as usize,
                    OperandSource::Node(_) if lag == 0 => continue,
                    OperandSource::Node(made) => {
                        let known = &mut self.chain_of[made as usize];
                        if *known == 0 {
                            self.chains.push(Chain { source, length: 0, first: 0 });
                            *known = self.chains.len() as u32;
                        }
                        *known as usize - 1
                    }
                };
                self.chains[at].length = self.chains[at].length.max(lag);
            }
        }
        let mut first = 0;
        for chain in &mut self.chains {
            chain.first = first;
            first += chain.length;
        }
        Ok(())
    }

    /// The loop's carried values, as the nodes that make them.
    fn original_arguments(&self) -> Result<Vec<CarriedShape>, Diagnostic> {
        let made = self.yields.iter().map(|&made| self.number_of(made));
        made.map(|made| made.map(|made| self.shape_of(made)).ok_or_else(unchanged)).collect()
    }

    fn shape_of(&self, number: u32) -> CarriedShape {
        let (node, expansion) = &self.nodes[number as usize];
        CarriedShape { ty: node.ty.clone(), expansion: *expansion, origin: node.origin }
    }

    fn made_by(source: OperandSource) -> Option<u32> {
        match source {
            OperandSource::Outside(_) => None,
            OperandSource::Node(made) | OperandSource::Carried(_, made) => Some(made),
        }
    }

    fn chain(&self, source: OperandSource) -> Result<Chain, Diagnostic> {
        let at = match source {
            OperandSource::Outside(_) => None,
            OperandSource::Carried(carried, _) => Some(carried),
            OperandSource::Node(made) => self.chain_of[made as usize].checked_sub(1),
        };
        let chain = at.and_then(|at| self.chains.get(at as usize)).copied();
        chain.ok_or_else(|| bug("a value that a pipelined loop does not carry"))
    }

    /// The copy of a node for the trip that is so many trips ahead of the base.
    fn copy(&mut self, number: u32, operands: SmallVec<[Entity; 4]>, base: Base, ahead: u32) -> Entity {
        let (node, expansion) = &self.nodes[number as usize];
        let ahead = ahead * self.per_trip + expansion.iteration.ahead;
        let expansion = Expansion { iteration: Iteration { base, ahead }, ..*expansion };
        let copy = NodeBundle {
            op: node.op,
            operands: Operands(operands),
            ty: node.ty.clone(),
            origin: node.origin,
        };
        let copy = copy.spawn(self.world, expansion);
        self.copies[number as usize].push(copy);
        copy
    }

    fn prologue_trip(&mut self, trip: u32, body: &mut Vec<Entity>) -> Result<(), Diagnostic> {
        self.prologue.push(vec![None; self.order.len()]);
        for number in 0..self.order.len() as u32 {
            // Trip `trip` of the prologue is trip `trip - ahead` of the loop.
            let Some(ahead) = trip.checked_sub(self.stage(number)) else { continue };
            let mut operands = self.operands(number).0.clone();
            for operand in &mut operands {
                let source = self.source(*operand)?;
                let lag = self.lag(source, self.stage(number))?;
                *operand = match source {
                    OperandSource::Outside(entity) => entity,
                    OperandSource::Carried(carried, _) if ahead == 0 => self.inits[carried as usize],
                    OperandSource::Node(made) | OperandSource::Carried(_, made) => {
                        let from =
                            trip.checked_sub(lag).and_then(|p| self.prologue[p as usize][made as usize]);
                        from.ok_or_else(|| bug("a prologue uses what it does not make"))?
                    }
                };
            }
            let copy = self.copy(number, operands, Base::Start, ahead);
            self.prologue[trip as usize][number as usize] = Some(copy);
            body.push(copy);
        }
        Ok(())
    }

    /// The loop of the steady state.
    fn steady_state(
        &mut self,
        axis: crate::ir::layout::Dim,
        trip: Trip,
        expansion: Expansion,
        origin: Origin,
    ) -> Result<Entity, Diagnostic> {
        let mut init: SmallVec<[Entity; 4]> = SmallVec::new();
        let mut shapes: SmallVec<[CarriedShape; 4]> = SmallVec::new();
        for chain in self.chains.clone() {
            let made = Self::made_by(chain.source).ok_or_else(|| bug("a chain without source"))?;
            for lag in 1..=chain.length {
                let from = self.ahead.checked_sub(lag).and_then(|p| self.prologue[p as usize][made as usize]);
                init.push(match (from, chain.source) {
                    (Some(copy), _) => copy,
                    (None, OperandSource::Carried(carried, _)) => self.inits[carried as usize],
                    _ => return Err(bug("a steady state begins with what the prologue does not make")),
                });
                let shape = self.shape_of(made);
                let number = self.arguments.len() as u32;
                let argument = shape.value(Op::IterArg(number), Operands::default());
                self.arguments.push(argument.spawn(self.world, shape.expansion));
                shapes.push(shape);
            }
        }
        let mut copies: TripCopies = vec![None; self.order.len()];
        let mut body = self.arguments.clone();
        for number in 0..self.order.len() as u32 {
            let mut operands = self.operands(number).0.clone();
            for operand in &mut operands {
                let source = self.source(*operand)?;
                let lag = self.lag(source, self.stage(number))?;
                *operand = match source {
                    OperandSource::Outside(entity) => entity,
                    OperandSource::Node(made) | OperandSource::Carried(_, made) if lag == 0 => copies
                        [made as usize]
                        .ok_or_else(|| bug("a pipelined loop uses a value before it is made"))?,
                    OperandSource::Node(_) | OperandSource::Carried(..) => {
                        self.arguments[(self.chain(source)?.first + lag - 1) as usize]
                    }
                };
            }
            let ahead = self.ahead - self.stage(number);
            let copy = self.copy(number, operands, Base::Trip, ahead);
            copies[number as usize] = Some(copy);
            body.push(copy);
        }
        let mut yields = SmallVec::new();
        for chain in self.chains.iter().filter(|chain| chain.length > 0) {
            let made = Self::made_by(chain.source).and_then(|made| copies[made as usize]);
            yields.push(made.ok_or_else(|| bug("a chain without source"))?);
            let older = chain.first as usize..(chain.first + chain.length) as usize - 1;
            yields.extend_from_slice(&self.arguments[older]);
        }
        let steady = NodeBundle { operands: Operands(init), ..NodeBundle::effect(Op::Iterate(axis), origin) };
        let steady = steady.spawn(self.world, (expansion, (Body(body), Yields(yields), trip)));
        for (number, shape) in (0..).zip(&shapes) {
            let result = shape.value(Op::LoopResult(number), Operands(smallvec![steady]));
            self.results.push(result.spawn(self.world, shape.expansion));
        }
        Ok(steady)
    }

    fn epilogue_trip(&mut self, trip: u32, body: &mut Vec<Entity>) -> Result<(), Diagnostic> {
        self.epilogue.push(vec![None; self.order.len()]);
        for number in 0..self.order.len() as u32 {
            // A node that is this far ahead belongs to no iteration.
            if trip >= self.stage(number) {
                continue;
            }
            let mut operands = self.operands(number).0.clone();
            for operand in &mut operands {
                let source = self.source(*operand)?;
                let lag = self.lag(source, self.stage(number))?;
                *operand = match (source, trip.checked_sub(lag)) {
                    (OperandSource::Outside(entity), _) => entity,
                    (OperandSource::Node(made) | OperandSource::Carried(_, made), Some(from)) => self
                        .epilogue[from as usize][made as usize]
                        .ok_or_else(|| bug("an epilogue uses what it does not make"))?,
                    (_, None) => self.results[(self.chain(source)?.first + lag - trip - 1) as usize],
                };
            }
            let ahead = trip + self.ahead - self.stage(number);
            let copy = self.copy(number, operands, Base::End, ahead);
            self.epilogue[trip as usize][number as usize] = Some(copy);
            body.push(copy);
        }
        Ok(())
    }

    /// The carried values as the loop leaves them.
    fn values_of_the_loop(&self) -> Result<SmallVec<[Entity; 4]>, Diagnostic> {
        let carried = self.chains.iter().take(self.yields.len());
        let last = carried.map(|chain| self.results.get(chain.first as usize).copied());
        last.map(|value| value.ok_or_else(|| bug("a carried value without end"))).collect()
    }

    /// The loop's carried values after the last iteration.
    fn final_values(&self) -> Result<SmallVec<[Entity; 4]>, Diagnostic> {
        let carried = self.chains.iter().take(self.yields.len());
        let last = carried.map(|chain| {
            let made = Self::made_by(chain.source)?;
            match self.stage(made).checked_sub(1) {
                Some(trip) => self.epilogue[trip as usize][made as usize],
                None => self.results.get(chain.first as usize).copied(),
            }
        });
        last.map(|value| value.ok_or_else(|| bug("a carried value without end"))).collect()
    }
}
