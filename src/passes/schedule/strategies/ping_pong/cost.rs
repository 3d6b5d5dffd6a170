//! What taking turns gains, and for which loads there is no register.

use bevy_ecs::prelude::*;

use super::Unsuitable;
use super::operations::Operations;
use crate::codegen::target::{Device, LDS_PORTS, Parameter, Target};
use crate::ir::node::*;
use crate::passes::schedule::apply::pressure;
use crate::passes::schedule::graph::dependence_graph::GraphNode;
use crate::passes::schedule::graph::resources::Class;

/// Waves that take turns.
pub(super) struct Halves {
    /// Waves of one half.
    pub(super) waves: u32,
    /// Those of them on one SIMD.
    pub(super) per_simd: u32,
}

/// Estimates what taking turns gains. It compares four epochs, each as long as its memory cluster or half of
/// the matrix instructions, two of them at least as long as a global load, with the LDS reads and matrix
/// instructions of both halves one after the other.
///
/// A global load counts as one from idle memory, an LDS access as one in the queue that a whole cluster
/// makes.
pub(super) fn gain(
    operations: &Operations,
    target: Target,
    half: &Halves,
    read_parts: [u32; 2],
) -> Result<(), Unsuitable> {
    let world = operations.world;
    let device = Device::nearest(target);
    let of = |parameter| device.count(parameter) as u32;
    let global_latency = of(Parameter::MemoryLatency);
    let lds_latency = of(Parameter::LdsLatencyQueued);
    let [read_rate, write_rate] =
        [Parameter::LdsPortRead, Parameter::LdsPortWrite].map(|port| LDS_PORTS * of(port));
    let pass = of(Parameter::Turn);
    let nodes = |class: Class| operations.body.iter().filter(move |n| n.class == class);
    let clocks = |node: &GraphNode| match world.get::<Op>(node.entity) {
        Some(Op::Mma(MmaChoice::Explicit(mma))) => {
            target.matrix_instruction(*mma).map_or(0, |instruction| pass * u32::from(instruction.passes))
        }
        _ => 0,
    };
    let bytes = |node: &GraphNode| {
        let value = if node.class == Class::WriteShared {
            world.get::<Operands>(node.entity).and_then(|o| o.0.first().copied())
        } else {
            Some(node.entity)
        };
        256 * value.map_or(0, |value| pressure::registers(world, value))
    };
    let compute = nodes(Class::Mma).map(clocks).sum::<u32>() * half.per_simd;
    let half_reads = nodes(Class::ReadShared).map(bytes).sum::<u32>() * half.waves / read_rate;
    let half_writes = nodes(Class::WriteShared).map(bytes).sum::<u32>() * half.waves / write_rate;
    let half_loads = nodes(Class::GlobalToShared).count() as u32 * half.waves * of(Parameter::DirectLds);
    let memory = match (half_loads, read_parts) {
        (0, _) => [half_reads, half_writes],
        (_, [1, 1]) => [half_reads + half_loads, 0],
        _ => [half_reads / 2 + half_loads, half_reads / 2],
    };
    let epoch = |memory: u32| (memory + lds_latency).max(compute / 2);
    let turns = (2 * epoch(memory[0]) + 2 * epoch(memory[1])).max(2 * global_latency);
    let together = (2 * half_reads + 2 * compute).max(global_latency + 3 * lds_latency).max(2 * half_loads);
    if turns < together { Ok(()) } else { Err(Unsuitable::NoGain { turns, together }) }
}

/// How many global loads of each factor have no register while all factors of a tile are in registers: first
/// those of the right factor. `loads` are the logical nodes of the two factors' loads.
pub(super) fn late_loads(operations: &Operations, root: Entity, loads: [Entity; 2]) -> [u32; 2] {
    let world = operations.world;
    let mut all = 0;
    let (mut counts, mut registers) = ([0u32; 2], [0u32; 2]);
    for (node, own) in operations.pairs() {
        let is_read = matches!(node.class, Class::ReadShared | Class::ReadGlobal);
        if !is_read && !matches!(world.get::<Op>(node.entity), Some(Op::IterArg(_))) {
            continue;
        }
        let width = pressure::registers(world, node.entity);
        all += width;
        if let Some(side) = loads.iter().position(|load| *load == own) {
            counts[side] += 1;
            registers[side] += width;
        }
    }
    let mut excess = all.saturating_sub(pressure::available(world, root));
    let mut late = [0; 2];
    for side in [1, 0] {
        let each = (registers[side] / counts[side].max(1)).max(1);
        late[side] = excess.div_ceil(each).min(counts[side]);
        excess = excess.saturating_sub(late[side] * each);
    }
    late
}
