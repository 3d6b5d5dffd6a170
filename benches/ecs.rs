//! What the ECS costs: a permanent guard, so that an upgrade of the engine that moves costs shows here first.
//! Each figure is compared with the dense alternative; the ratio decides what may be an entity and what must
//! not.

use std::hint::black_box;

use bevy_ecs::prelude::*;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const NODES: usize = 1500;

#[derive(Component, Copy, Clone)]
struct Opcode(u32);
#[derive(Component, Copy, Clone)]
struct Reads([Option<Entity>; 2]);
#[derive(Component, Copy, Clone, Default)]
struct Uses(u32);
#[derive(Component, Copy, Clone, Default)]
struct Slot(u32);

#[derive(Copy, Clone)]
struct Dense {
    opcode: u32,
    reads: [Option<u32>; 2],
    uses: u32,
    slot: u32,
}

fn fill(world: &mut World) -> Vec<Entity> {
    let mut nodes: Vec<Entity> = Vec::with_capacity(NODES);
    for n in 0..NODES {
        let reads = Reads([n.checked_sub(1).map(|i| nodes[i]), n.checked_sub(7).map(|i| nodes[i])]);
        nodes.push(world.spawn((Opcode(n as u32), reads, Uses(0), Slot(0))).id());
    }
    nodes
}

fn dense() -> Vec<Dense> {
    let back = |n: usize, by: usize| n.checked_sub(by).map(|i| i as u32);
    (0..NODES)
        .map(|n| Dense { opcode: n as u32, reads: [back(n, 1), back(n, 7)], uses: 0, slot: 0 })
        .collect()
}

fn create(c: &mut Criterion) {
    let mut group = c.benchmark_group("create");
    group.throughput(Throughput::Elements(NODES as u64));
    let mut world = World::new();
    group.bench_function("entities in a pooled world", |b| {
        b.iter(|| {
            world.clear_entities();
            fill(&mut world)
        });
    });
    group.bench_function("entities in a fresh world", |b| {
        b.iter(|| {
            let mut world = World::new();
            fill(&mut world)
        });
    });
    group.bench_function("dense", |b| b.iter(dense));
    group.finish();
}

fn sweep(c: &mut Criterion) {
    let mut group = c.benchmark_group("sweep a column");
    group.throughput(Throughput::Elements(NODES as u64));
    let mut world = World::new();
    fill(&mut world);
    let mut query = world.query::<(&Opcode, &mut Slot)>();
    group.bench_function("query", |b| {
        b.iter(|| {
            for (opcode, mut slot) in query.iter_mut(&mut world) {
                slot.0 = opcode.0 + 1;
            }
        });
    });
    let mut nodes = dense();
    group.bench_function("dense", |b| b.iter(|| nodes.iter_mut().for_each(|n| n.slot = n.opcode + 1)));
    group.finish();
}

fn follow_operands(c: &mut Criterion) {
    let mut group = c.benchmark_group("count uses");
    group.throughput(Throughput::Elements(NODES as u64));
    let mut world = World::new();
    let order = fill(&mut world);
    let mut state = bevy_ecs::system::SystemState::<(Query<&Reads>, Query<&mut Uses>)>::new(&mut world);
    group.bench_function("query get_mut", |b| {
        b.iter(|| {
            let (reads, mut uses) = state.get_mut(&mut world).expect("both queries are valid");
            for &node in &order {
                let operands = reads.get(node).expect("the node is there").0;
                for operand in operands.into_iter().flatten() {
                    uses.get_mut(operand).expect("the operand is there").0 += 1;
                }
            }
        });
    });
    let mut side = vec![0u32; order.iter().map(|n| n.index_u32() as usize + 1).max().unwrap_or(0)];
    group.bench_function("side table by entity index", |b| {
        b.iter(|| {
            for &node in &order {
                let operands = world.get::<Reads>(node).expect("the node is there").0;
                for operand in operands.into_iter().flatten() {
                    side[operand.index_u32() as usize] += 1;
                }
            }
        });
    });
    let mut nodes = dense();
    group.bench_function("dense", |b| {
        b.iter(|| {
            for n in 0..nodes.len() {
                for operand in nodes[n].reads.into_iter().flatten() {
                    nodes[operand as usize].uses += 1;
                }
            }
            black_box(nodes[0].uses)
        });
    });
    group.finish();
}

fn calls(c: &mut Criterion) {
    let mut group = c.benchmark_group("call");
    let mut world = World::new();
    let order = fill(&mut world);
    let mut system = IntoSystem::into_system(|nodes: Query<&Uses>| nodes.is_empty());
    system.initialize(&mut world);
    group.bench_function("boxed system", |b| b.iter(|| system.run((), &mut world).is_ok()));
    group.bench_function("insert one late component", |b| {
        #[derive(Component)]
        struct Late(#[expect(dead_code, reason = "only its insertion is measured")] u32);
        b.iter(|| {
            world.entity_mut(order[0]).insert(Late(1));
            world.entity_mut(order[0]).remove::<Late>();
        });
    });
    group.finish();
}

criterion_group!(benches, create, sweep, follow_operands, calls);
criterion_main!(benches);
