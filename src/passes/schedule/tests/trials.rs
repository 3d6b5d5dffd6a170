//! Trials of the schedulers: known loops, random graphs against brute force, and large graphs to see how much
//! work they take.

use bevy_ecs::prelude::Entity;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::codegen::target::Target;
use crate::index::Stretches;
use crate::ir::schedule::table::MOST_CYCLES;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::{
    Dependence, DependenceGraph, Edge, GraphNode, NodeId,
};
use crate::passes::schedule::graph::resources::{Class, RESOURCES, Resource, ResourceModel};
use crate::passes::schedule::strategies::components::GraphShape;
use crate::passes::schedule::strategies::modulo::Quality;
use crate::passes::schedule::strategies::modulo::bounds::IntervalBounds;
use crate::passes::schedule::strategies::modulo::longest::Longest;
use crate::passes::schedule::strategies::phases::keeps_order;
use crate::passes::schedule::strategies::refusal::Refusal;
use crate::passes::schedule::strategies::{four_stage, modulo, prefetch};
use cranelift_entity::{EntityRef, PrimaryMap};

/// A graph under construction, with the delays of a model as latencies.
struct Loop {
    model: ResourceModel,
    nodes: PrimaryMap<NodeId, GraphNode>,
    edges: Vec<Edge>,
}

impl Loop {
    fn new(model: ResourceModel) -> Loop {
        Loop { model, nodes: PrimaryMap::default(), edges: Vec::new() }
    }

    fn node(&mut self, class: Class) -> NodeId {
        self.nodes.push(GraphNode { entity: Entity::PLACEHOLDER, class })
    }

    fn nodes<const N: usize>(&mut self, class: Class) -> [NodeId; N] {
        std::array::from_fn(|_| self.node(class))
    }

    fn depend(&mut self, from: NodeId, to: NodeId, distance: u32, kind: Dependence) {
        let delay = self.model.cost(self.nodes[from].class).delay;
        let latency = if kind == Dependence::Anti { 0 } else { u32::from(delay) };
        self.edges.push(Edge { from, to, latency, distance, kind });
    }

    fn value(&mut self, from: NodeId, to: NodeId) {
        self.depend(from, to, 0, Dependence::Value);
    }

    fn graph(&self) -> DependenceGraph {
        DependenceGraph::new(self.nodes.clone(), self.edges.clone())
    }
}

/// Nodes of the GEMM of tiles 64x64x32 with 2x2 waves, as each wave sees it.
struct Gemm {
    body: Loop,
    loads: [NodeId; 2],
    stores: [NodeId; 2],
    reads: Vec<NodeId>,
    mmas: Vec<NodeId>,
    carried: Vec<NodeId>,
}

fn gemm(model: ResourceModel) -> Gemm {
    let mut body = Loop::new(model);
    let carried: [NodeId; 4] = body.nodes(Class::Free);
    let loads: [NodeId; 2] = body.nodes(Class::ReadGlobal);
    let stores: [NodeId; 2] = body.nodes(Class::WriteShared);
    // Of A, then of B: rows or columns by k.
    let reads: [NodeId; 8] = body.nodes(Class::ReadShared);
    let mut mmas = Vec::new();
    for (tile, &accumulator) in carried.iter().enumerate() {
        let (m, n) = (tile / 2, tile % 2);
        let mut before = accumulator;
        for k in 0..2 {
            let mma = body.node(Class::Mma);
            body.value(reads[m * 2 + k], mma);
            body.value(reads[4 + n * 2 + k], mma);
            body.value(before, mma);
            mmas.push(mma);
            before = mma;
        }
        body.depend(before, accumulator, 1, Dependence::Value);
    }
    for (operand, (&load, &store)) in loads.iter().zip(&stores).enumerate() {
        body.value(load, store);
        let (written, read) = (body.node(Class::Free), body.node(Class::Free));
        body.depend(store, written, 0, Dependence::Flow);
        for &from in &reads[operand * 4..operand * 4 + 4] {
            body.depend(written, from, 0, Dependence::Flow);
            body.depend(from, read, 0, Dependence::Anti);
        }
        body.depend(read, store, 1, Dependence::Anti);
    }
    Gemm { body, loads, stores, reads: reads.to_vec(), mmas, carried: carried.to_vec() }
}

/// True if no resource has more uses than units, counted operation by operation and slot by slot.
fn within_units(graph: &DependenceGraph, model: &ResourceModel, assignment: &Assignment) -> bool {
    let interval = assignment.interval as usize;
    let mut used = vec![[0u32; RESOURCES]; interval];
    for (node, &cycle) in graph.nodes().values().zip(assignment.cycles.values()) {
        for (column, &busy) in model.cost(node.class).busy.iter().enumerate() {
            for offset in 0..usize::from(busy) {
                used[(cycle as usize + offset) % interval][column] += 1;
            }
        }
    }
    used.iter().all(|slot| slot.iter().zip(&model.units).all(|(&used, &units)| used <= u32::from(units)))
}

fn assert_valid(graph: &DependenceGraph, model: &ResourceModel, assignment: &Assignment) {
    assert_eq!(assignment.cycles.len(), graph.nodes().len());
    assert!(assignment.interval >= 1);
    assert!(assignment.respects(graph), "dependences broken: {graph:?} {assignment:?}");
    assert!(within_units(graph, model, assignment), "too few units: {graph:?} {assignment:?}");
    assert!(assignment.cycles.is_empty() || assignment.cycles.as_values_slice().contains(&0));
}

const ONE_UNIT: ResourceModel = ResourceModel { units: [1; RESOURCES], ..ResourceModel::ABSTRACT };

/// One unit of each kind, and times that differ.
fn slow_model() -> ResourceModel {
    let mut model = ONE_UNIT;
    model.units = [2, 1, 1, 1, 1];
    model.costs[Class::Mma as usize].busy[Resource::Mma as usize] = 3;
    model.costs[Class::ReadGlobal as usize].busy[Resource::Global as usize] = 5;
    model.costs[Class::ReadShared as usize].busy[Resource::Shared as usize] = 2;
    model.costs[Class::GlobalToShared as usize].busy = [3, 2, 0, 0, 0];
    model
}

#[test]
fn gemm_of_the_reference_has_interval_3() {
    let Gemm { body, .. } = gemm(ResourceModel::ABSTRACT);
    let graph = body.graph();
    let found = modulo::search(&graph, &ResourceModel::ABSTRACT).unwrap();
    assert_valid(&graph, &ResourceModel::ABSTRACT, &found.assignment);
    assert_eq!((found.bounds.resource, found.bounds.scarce), (3, Some(Resource::Shared)));
    assert_eq!(found.bounds.recurrence, 2);
    assert_eq!((found.assignment.interval, found.interval), (3, Quality::Least));
    // Six cycles are enough: operands of the first k come first.
    assert_eq!(found.assignment.stages(), 2);
    // The published table has three stages: operands come in program order there.
    let published = modulo::in_program_order(&graph, &ResourceModel::ABSTRACT).unwrap();
    assert_valid(&graph, &ResourceModel::ABSTRACT, &published);
    assert_eq!((published.interval, published.stages()), (3, 3));
}

#[test]
fn prefetch_of_gemm_is_the_reference() {
    let Gemm { body, loads, stores, reads, mmas, carried } = gemm(ResourceModel::ABSTRACT);
    let graph = body.graph();
    let assignment = prefetch::schedule(&graph).unwrap();
    let cycles = |nodes: &[NodeId]| nodes.iter().map(|&node| assignment.cycles[node]).collect::<Vec<_>>();
    assert_eq!(cycles(&loads), [0, 0]);
    assert_eq!(cycles(&stores), [1, 1]);
    assert_eq!(cycles(&reads), [2; 8]);
    assert_eq!(cycles(&mmas), [3; 8]);
    assert_eq!(cycles(&carried), [3; 4]);
    assert_eq!((assignment.interval, assignment.stages()), (2, 2));
    assert!(keeps_order(&graph, &assignment));
}

#[test]
fn four_stages_of_gemm() {
    let Gemm { body, loads, stores, reads, mmas, .. } = gemm(ResourceModel::ABSTRACT);
    let graph = body.graph();
    let assignment = four_stage::schedule(&graph).unwrap();
    assert_eq!((assignment.interval, assignment.stages()), (1, 4));
    assert_eq!(assignment.stage(loads[0]), 0);
    assert_eq!(assignment.stage(stores[0]), 1);
    assert_eq!(assignment.stage(reads[0]), 2);
    assert_eq!(assignment.stage(mmas[0]), 3);
    assert!(keeps_order(&graph, &assignment));
}

#[test]
fn gemm_on_chips_reaches_the_bound() {
    for target in Target::ALL {
        let model = ResourceModel::of_target(target, 4);
        let graph = gemm(model).body.graph();
        let found = modulo::search(&graph, &model).unwrap();
        assert_valid(&graph, &model, &found.assignment);
        assert_eq!(found.interval, Quality::Least, "{target}: {:?} {:?}", found.bounds, found.assignment);
    }
}

#[test]
fn chips_have_the_numbers_of_their_documents() {
    let model = ResourceModel::of_target(Target::GFX942, 4);
    assert_eq!(model.name, "gfx942");
    assert_eq!(model.cost(Class::Mma).delay, 4);
    assert_eq!(model.cost(Class::Mma).busy, [0, 0, 4, 1, 0]);
    // 1024 bytes over a quarter of 128 bytes per clock are 32 clocks, over a quarter of 64 bytes per clock
    // 64.
    assert_eq!(model.cost(Class::ReadShared).busy[Resource::Shared as usize], 8);
    assert_eq!(model.cost(Class::ReadGlobal).busy[Resource::Global as usize], 16);
    assert_eq!(model.cost(Class::ReadShared).delay, 16);
    let newer = ResourceModel::of_target(Target::GFX950, 8);
    assert_eq!(newer.cost(Class::ReadShared).busy[Resource::Shared as usize], 4);
    assert_eq!(newer.cost(Class::WriteShared).busy[Resource::Shared as usize], 8);
}

#[test]
fn empty_loop_has_an_empty_schedule() {
    let graph = DependenceGraph::default();
    let empty = DependenceGraph::new(PrimaryMap::default(), Vec::new());
    assert_eq!(modulo::schedule(&empty, &ONE_UNIT).unwrap().interval, 1);
    assert!(modulo::schedule(&graph, &ONE_UNIT).unwrap().cycles.is_empty());
    assert_eq!(prefetch::schedule(&empty), Err(Refusal::NoLoads));
    assert_eq!(four_stage::schedule(&empty), Err(Refusal::NoLoads));
}

#[test]
fn nodes_that_need_themselves_are_refused() {
    let mut body = Loop::new(ONE_UNIT);
    let [a, b, c] = body.nodes(Class::Valu);
    body.value(a, b);
    body.value(b, c);
    let mut itself = body.graph().edges().to_vec();
    itself.push(Edge { from: b, to: b, latency: 0, distance: 0, kind: Dependence::Value });
    let itself = DependenceGraph::new(body.nodes.clone(), itself);
    assert_eq!(modulo::schedule(&itself, &ONE_UNIT), Err(Refusal::Circular { node: b }));
    body.value(c, b);
    let refusal = modulo::schedule(&body.graph(), &ONE_UNIT).unwrap_err();
    assert!(matches!(refusal, Refusal::Circular { node } if node == b || node == c));
    assert!(refusal.to_string().contains("depends on itself"));
}

#[test]
fn sums_of_latencies_do_not_wrap() {
    let mut body = Loop::new(ONE_UNIT);
    let nodes: [NodeId; 4] = body.nodes(Class::Valu);
    let edge = |from, to, distance| Edge { from, to, latency: u32::MAX, distance, kind: Dependence::Value };
    let chain = vec![edge(nodes[0], nodes[1], 0), edge(nodes[1], nodes[2], 0), edge(nodes[2], nodes[3], 0)];
    let chained = DependenceGraph::new(body.nodes.clone(), chain.clone());
    assert!(matches!(modulo::schedule(&chained, &ONE_UNIT), Err(Refusal::TooLong { .. })));
    let mut circle = chain.clone();
    circle.push(edge(nodes[3], nodes[0], 1));
    let circle = DependenceGraph::new(body.nodes.clone(), circle);
    assert!(matches!(modulo::schedule(&circle, &ONE_UNIT), Err(Refusal::TooLong { .. })));
    // With as many iterations between them as possible, the same circle asks for almost nothing.
    let apart = vec![edge(nodes[0], nodes[1], u32::MAX), edge(nodes[1], nodes[0], u32::MAX)];
    let apart = DependenceGraph::new(body.nodes.clone(), apart);
    let found = modulo::search(&apart, &ONE_UNIT).unwrap();
    assert_eq!((found.bounds.recurrence, found.assignment.interval), (1, 4));
    assert_valid(&apart, &ONE_UNIT, &found.assignment);
}

#[test]
fn missing_units_and_endless_bodies_are_refused() {
    let mut body = Loop::new(ONE_UNIT);
    body.node(Class::Valu);
    let mut model = ONE_UNIT;
    model.units[Resource::Valu as usize] = 0;
    let refusal = modulo::schedule(&body.graph(), &model).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::NoUnit { node: NodeId::default(), class: Class::Valu, resource: Resource::Valu }
    );
    let mut model = ONE_UNIT;
    model.costs[Class::Valu as usize].busy[Resource::Valu as usize] = u16::MAX;
    body.node(Class::Valu);
    assert!(matches!(modulo::schedule(&body.graph(), &model), Err(Refusal::TooLong { .. })));
}

#[test]
fn arithmetic_goes_with_the_access_it_leads_to() {
    let mut body = Loop::new(ONE_UNIT);
    let pointer = body.node(Class::Free);
    let advance = body.node(Class::Valu);
    let load = body.node(Class::ReadGlobal);
    let convert = body.node(Class::Valu);
    let store = body.node(Class::WriteShared);
    let read = body.node(Class::ReadShared);
    let mma = body.node(Class::Mma);
    let write = body.node(Class::WriteGlobal);
    body.value(pointer, advance);
    body.value(pointer, load);
    body.depend(advance, pointer, 1, Dependence::Value);
    for (from, to) in [(load, convert), (convert, store), (read, mma), (mma, write)] {
        body.value(from, to);
    }
    body.depend(store, read, 0, Dependence::Flow);
    let assignment = prefetch::schedule(&body.graph()).unwrap();
    assert_eq!(assignment.cycles.as_values_slice(), [0, 0, 0, 1, 1, 2, 3, 3]);
    assert!(keeps_order(&body.graph(), &assignment));
}

#[test]
fn a_second_trip_through_lds_belongs_to_the_computation() {
    let mut body = Loop::new(ONE_UNIT);
    let classes = [
        Class::ReadGlobal,
        Class::WriteShared,
        Class::ReadShared,
        Class::Mma,
        Class::Valu,
        Class::WriteShared,
        Class::ReadShared,
        Class::Mma,
    ];
    let nodes = classes.map(|class| body.node(class));
    for pair in nodes.windows(2) {
        body.value(pair[0], pair[1]);
    }
    let assignment = prefetch::schedule(&body.graph()).unwrap();
    assert_eq!(assignment.cycles.as_values_slice(), [0, 1, 2, 3, 3, 3, 3, 3]);
}

#[test]
fn loops_without_lds_have_two_stages() {
    let mut body = Loop::new(ONE_UNIT);
    let load = body.node(Class::ReadGlobal);
    let mma = body.node(Class::Mma);
    body.value(load, mma);
    assert_eq!(prefetch::schedule(&body.graph()).unwrap().cycles.as_values_slice(), [0, 3]);
    let four = four_stage::schedule(&body.graph()).unwrap();
    assert_eq!((four.cycles.as_values_slice(), four.stages()), ([0, 1].as_slice(), 2));
    // Straight into LDS: no stores, so three stages are left.
    let mut body = Loop::new(ONE_UNIT);
    let direct = body.node(Class::GlobalToShared);
    let read = body.node(Class::ReadShared);
    let mma = body.node(Class::Mma);
    body.depend(direct, read, 0, Dependence::Flow);
    body.value(read, mma);
    assert_eq!(prefetch::schedule(&body.graph()).unwrap().cycles.as_values_slice(), [0, 2, 3]);
    assert_eq!(four_stage::schedule(&body.graph()).unwrap().cycles.as_values_slice(), [0, 1, 2]);
}

#[test]
fn loads_that_need_the_iteration_before_are_refused() {
    let mut body = Loop::new(ONE_UNIT);
    let address = body.node(Class::Free);
    let load = body.node(Class::ReadGlobal);
    let mma = body.node(Class::Mma);
    body.value(address, load);
    body.value(load, mma);
    body.depend(mma, address, 1, Dependence::Value);
    let refusal = prefetch::schedule(&body.graph()).unwrap_err();
    assert_eq!(refusal, Refusal::Recurrence { from: mma, to: load });
    assert_eq!(four_stage::schedule(&body.graph()), Err(refusal));
    // With another load it may stay, after the computation that it waits for.
    let other = body.node(Class::ReadGlobal);
    let last = body.node(Class::Mma);
    body.value(other, last);
    let assignment = prefetch::schedule(&body.graph()).unwrap();
    assert_eq!(assignment.cycles.as_values_slice(), [1, 1, 3, 0, 3]);
    assert!(keeps_order(&body.graph(), &assignment));
}

#[test]
fn loads_that_need_lds_are_refused() {
    let mut body = Loop::new(ONE_UNIT);
    let read = body.node(Class::ReadShared);
    let load = body.node(Class::ReadGlobal);
    body.value(read, load);
    assert_eq!(prefetch::schedule(&body.graph()), Err(Refusal::LateLoad { from: read, to: load }));
    let mut alone = Loop::new(ONE_UNIT);
    alone.node(Class::ReadGlobal);
    assert_eq!(prefetch::schedule(&alone.graph()), Err(Refusal::OneStage));
    assert_eq!(four_stage::schedule(&alone.graph()), Err(Refusal::OneStage));
}

/// A graph that a loop can have: dependences within an iteration go forward.
fn random_graph(random: &mut StdRng, most: usize, latency: u32) -> DependenceGraph {
    let count = random.random_range(1..=most);
    let class = |random: &mut StdRng| Class::NAMES[random.random_range(0..Class::NAMES.len())].0;
    let nodes: PrimaryMap<NodeId, GraphNode> =
        (0..count).map(|_| GraphNode { entity: Entity::PLACEHOLDER, class: class(random) }).collect();
    let edges = (0..random.random_range(0..=count * 2)).map(|_| {
        let (a, b) = (NodeId::new(random.random_range(0..count)), NodeId::new(random.random_range(0..count)));
        let distance = if a < b { random.random_range(0..3) } else { random.random_range(1..3) };
        let kind = if random.random() { Dependence::Value } else { Dependence::Anti };
        Edge { from: a, to: b, latency: random.random_range(0..=latency), distance, kind }
    });
    let edges = edges.collect();
    DependenceGraph::new(nodes, edges)
}

/// Tries all cycles from 0 to `last`, node by node.
fn exists(graph: &DependenceGraph, model: &ResourceModel, interval: u32, last: u32) -> bool {
    fn extend(
        graph: &DependenceGraph,
        model: &ResourceModel,
        interval: u32,
        last: u32,
        cycles: &mut PrimaryMap<NodeId, u32>,
    ) -> bool {
        if cycles.len() == graph.nodes().len() {
            return true;
        }
        for cycle in 0..=last {
            let node = cycles.push(cycle);
            let known = cycles.next_key();
            let kept = |edge: &Edge| {
                edge.from >= known
                    || edge.to >= known
                    || cycles[edge.to] + edge.distance * interval >= cycles[edge.from] + edge.latency
            };
            let part = Assignment { interval, cycles: cycles.clone() };
            if graph.edges().iter().all(kept)
                && within_units(graph, model, &part)
                && extend(graph, model, interval, last, cycles)
            {
                return true;
            }
            cycles.truncate(node);
        }
        false
    }
    extend(graph, model, interval, last, &mut PrimaryMap::default())
}

#[test]
fn small_graphs_get_the_least_interval_and_the_fewest_stages() {
    let mut random = StdRng::seed_from_u64(1);
    let models = [ResourceModel::ABSTRACT, ONE_UNIT, slow_model()];
    for round in 0..240 {
        let graph = random_graph(&mut random, 4, 3);
        let model = &models[round % models.len()];
        let found = modulo::search(&graph, model).unwrap();
        assert_valid(&graph, model, &found.assignment);
        assert_eq!(found.interval, Quality::Least);
        // Any schedule can be compressed until no two neighbours are further apart than this.
        let last = |interval: u32| (graph.nodes().len() as u32 - 1) * (2 * interval + 3) + interval;
        let least = (1..).find(|&interval| exists(&graph, model, interval, last(interval)));
        assert_eq!(Some(found.assignment.interval), least, "{graph:?}");
        let interval = found.assignment.interval;
        let stages = (1..).find(|&stages| exists(&graph, model, interval, stages * interval - 1));
        assert_eq!(Some(found.assignment.stages()), stages, "{graph:?}");
    }
}

#[test]
fn random_graphs_get_valid_schedules() {
    let mut random = StdRng::seed_from_u64(2);
    let models =
        [ResourceModel::ABSTRACT, ONE_UNIT, slow_model(), ResourceModel::of_target(Target::GFX942, 8)];
    let (mut least, mut rounds) = (0, 0);
    for round in 0..400 {
        let graph = random_graph(&mut random, 60, 9);
        let model = &models[round % models.len()];
        let found = modulo::search(&graph, model).unwrap();
        assert_valid(&graph, model, &found.assignment);
        assert!(found.assignment.interval >= found.bounds.interval());
        least += usize::from(found.assignment.interval == found.bounds.interval());
        rounds += 1;
        for assignment in [prefetch::schedule(&graph), four_stage::schedule(&graph)].into_iter().flatten() {
            assert!(keeps_order(&graph, &assignment), "{graph:?} {assignment:?}");
            assert!(assignment.stages() <= 4 / assignment.interval);
        }
    }
    assert!(least * 10 >= rounds * 9, "only {least} of {rounds} at the bound");
}

#[test]
fn any_edges_at_all_give_a_schedule_or_a_refusal() {
    let mut random = StdRng::seed_from_u64(3);
    let extreme = [0, 1, 2, 7, 1000, MOST_CYCLES, u32::MAX];
    for _ in 0..600 {
        let count = random.random_range(0..12);
        let nodes = (0..count).map(|_| GraphNode {
            entity: Entity::PLACEHOLDER,
            class: Class::NAMES[random.random_range(0..Class::NAMES.len())].0,
        });
        let nodes: PrimaryMap<NodeId, GraphNode> = nodes.collect();
        let edges = (0..random.random_range(0..20)).map(|_| Edge {
            from: NodeId::new(random.random_range(0..=count)),
            to: NodeId::new(random.random_range(0..=count)),
            latency: extreme[random.random_range(0..extreme.len())],
            distance: extreme[random.random_range(0..extreme.len())],
            kind: Dependence::Order,
        });
        let edges: Vec<Edge> = edges.collect();
        let graph = DependenceGraph::new(nodes, edges);
        for model in [ResourceModel::ABSTRACT, slow_model()] {
            if let Ok(assignment) = modulo::schedule(&graph, &model) {
                assert_valid(&graph, &model, &assignment);
            }
        }
        for assignment in [prefetch::schedule(&graph), four_stage::schedule(&graph)].into_iter().flatten() {
            assert!(keeps_order(&graph, &assignment));
        }
    }
}

#[test]
fn recurrence_bound_is_that_of_all_simple_cycles() {
    fn walk(
        graph: &DependenceGraph,
        first: NodeId,
        at: NodeId,
        sums: (u64, u64),
        seen: &mut Vec<NodeId>,
        bound: &mut u64,
    ) {
        for edge in graph.leaving(at) {
            let sums = (sums.0 + u64::from(edge.latency), sums.1 + u64::from(edge.distance));
            if edge.to == first {
                *bound = (*bound).max(sums.0.div_ceil(sums.1));
            } else if edge.to > first && !seen.contains(&edge.to) {
                seen.push(edge.to);
                walk(graph, first, edge.to, sums, seen, bound);
                seen.pop();
            }
        }
    }
    let mut random = StdRng::seed_from_u64(4);
    for _ in 0..300 {
        let graph = random_graph(&mut random, 8, 9);
        let shape = GraphShape::of(&graph).unwrap();
        let bounds = IntervalBounds::of(&graph, &ResourceModel::ABSTRACT, &shape).unwrap();
        let mut bound = 1;
        for first in graph.nodes().keys() {
            walk(&graph, first, first, (0, 0), &mut Vec::new(), &mut bound);
        }
        assert_eq!(u64::from(bounds.recurrence), bound, "{graph:?}");
    }
}

/// All triples of nodes; the first is the slowest to change.
fn triples(graph: &DependenceGraph) -> impl Iterator<Item = (NodeId, NodeId, NodeId)> {
    let nodes = || graph.nodes().keys();
    nodes().flat_map(move |a| nodes().flat_map(move |b| nodes().map(move |c| (a, b, c))))
}

#[test]
fn envelopes_are_longest_paths_at_every_interval() {
    let mut random = StdRng::seed_from_u64(5);
    for _ in 0..200 {
        let graph = random_graph(&mut random, 8, 9);
        let count = graph.nodes().len();
        let shape = GraphShape::of(&graph).unwrap();
        let least = IntervalBounds::of(&graph, &ResourceModel::ABSTRACT, &shape).unwrap().recurrence;
        let nodes: Vec<NodeId> = graph.nodes().keys().rev().collect();
        let longest = Longest::of(&graph, &nodes, least);
        for interval in least..least + 6 {
            let mut lengths = graph.table(graph.table(None::<i64>));
            for edge in graph.edges() {
                let length = i64::from(edge.latency) - i64::from(edge.distance * interval);
                let entry = &mut lengths[edge.from][edge.to];
                *entry = (*entry).max(Some(length));
            }
            for _ in 0..count {
                for (a, b, c) in triples(&graph) {
                    let via = lengths[a][b].zip(lengths[b][c]).map(|(first, second)| first + second);
                    lengths[a][c] = lengths[a][c].max(via);
                }
            }
            for (a, &from) in nodes.iter().enumerate() {
                for (b, &to) in nodes.iter().enumerate() {
                    let lines = longest.at(a, b, interval);
                    let expected = lengths[from][to];
                    // Circles are not followed beyond what their own sums are worth.
                    assert_eq!(lines, expected, "{from} to {to} at {interval}: {graph:?}");
                }
            }
        }
    }
}

#[test]
fn components_are_what_reaches_each_other() {
    let mut random = StdRng::seed_from_u64(6);
    for _ in 0..200 {
        let graph = random_graph(&mut random, 12, 1);
        let mut reaches = graph.table(graph.table(false));
        graph.nodes().keys().for_each(|node| reaches[node][node] = true);
        graph.edges().iter().for_each(|edge| reaches[edge.from][edge.to] = true);
        for (via, a, b) in triples(&graph) {
            reaches[a][b] |= reaches[a][via] && reaches[via][b];
        }
        let shape = GraphShape::of(&graph).unwrap();
        for (_, a, b) in triples(&graph) {
            let same = shape.components.of(a) == shape.components.of(b);
            assert_eq!(same, reaches[a][b] && reaches[b][a]);
        }
        for edge in graph.edges() {
            assert!(shape.components.of(edge.from) <= shape.components.of(edge.to));
            let (from, to) = (shape.rank[edge.from], shape.rank[edge.to]);
            assert!(edge.distance > 0 || from < to);
        }
    }
}

/// A GEMM of `tiles` accumulators with chains of `depth` matrix instructions and `copies` LDS buffers.
fn large_gemm(model: ResourceModel, tiles: usize, depth: usize, copies: u32) -> DependenceGraph {
    let mut body = Loop::new(model);
    let carried: Vec<NodeId> = (0..tiles).map(|_| body.node(Class::Free)).collect();
    let side = tiles.isqrt();
    let loads: Vec<NodeId> = (0..side).map(|_| body.node(Class::ReadGlobal)).collect();
    let stores: Vec<NodeId> = (0..side).map(|_| body.node(Class::WriteShared)).collect();
    let reads: Vec<NodeId> = (0..2 * side * depth).map(|_| body.node(Class::ReadShared)).collect();
    for (tile, &accumulator) in carried.iter().enumerate() {
        let mut before = accumulator;
        for k in 0..depth {
            let mma = body.node(Class::Mma);
            body.value(reads[tile / side % side * depth + k], mma);
            body.value(reads[(side + tile % side) * depth + k], mma);
            body.value(before, mma);
            before = mma;
        }
        body.depend(before, accumulator, 1, Dependence::Value);
    }
    let (written, read) = (body.node(Class::Free), body.node(Class::Free));
    for (&load, &store) in loads.iter().zip(&stores) {
        body.value(load, store);
        body.depend(store, written, 0, Dependence::Flow);
        body.depend(read, store, copies, Dependence::Anti);
    }
    for &from in &reads {
        body.depend(written, from, 0, Dependence::Flow);
        body.depend(from, read, 0, Dependence::Anti);
    }
    body.graph()
}

#[test]
fn work_grows_with_the_graph() {
    for model in [ResourceModel::ABSTRACT, ResourceModel::of_target(Target::GFX942, 4)] {
        for (tiles, depth) in [(16, 4), (64, 4), (256, 4), (784, 4), (64, 48)] {
            let graph = large_gemm(model, tiles, depth, 2);
            let found = modulo::search(&graph, &model).unwrap();
            assert_valid(&graph, &model, &found.assignment);
            assert_eq!(found.interval, Quality::Least, "{} {tiles} {depth}", model.name);
            let nodes = graph.nodes().len() as u64;
            assert!(found.steps <= 200 * nodes, "{}: {} steps for {nodes} nodes", model.name, found.steps);
        }
    }
}

#[test]
fn one_buffer_costs_little() {
    // Stores wait for reads and reads for stores, with delays on one of the ways; the bounds do not know that
    // LDS idles in between.
    let model = ResourceModel::of_target(Target::GFX942, 4);
    for (tiles, depth) in [(16, 4), (64, 4), (256, 4)] {
        let graph = large_gemm(model, tiles, depth, 1);
        let found = modulo::search(&graph, &model).unwrap();
        assert_valid(&graph, &model, &found.assignment);
        assert!(found.assignment.interval * 8 <= found.bounds.interval() * 9, "{:?}", found.bounds);
    }
}

#[test]
fn full_matrix_units_are_possible() {
    // 64 matrix instructions of four passes, nothing to spare: gaps of fewer than four turns would be lost.
    let model = ResourceModel::of_target(Target::GFX942, 4);
    let graph = large_gemm(model, 16, 4, 2);
    let found = modulo::search(&graph, &model).unwrap();
    assert_eq!((found.bounds.scarce, found.bounds.resource), (Some(Resource::Shared), 288));
    assert_eq!(found.assignment.interval, 288);
    let graph = large_gemm(model, 64, 2, 2);
    let found = modulo::search(&graph, &model).unwrap();
    assert_eq!((found.bounds.scarce, found.assignment.interval), (Some(Resource::Mma), 512));
}
