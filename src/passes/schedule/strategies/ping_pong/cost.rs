//! What taking turns gains, and for which loads there is no register.

use bevy_ecs::prelude::*;

use super::operations::Operations;
use super::unsuitable::Unsuitable;
use crate::codegen::target::{DeviceModel, DeviceParameter, LDS_PORTS, Target};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::schedule::apply::pressure;
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
    let view = operations.view;
    let device = DeviceModel::nearest(target);
    let of = |parameter| device.count(parameter) as u32;
    let global_latency = of(DeviceParameter::MemoryLatency);
    let lds_latency = of(DeviceParameter::LdsLatencyQueued);
    let [read_rate, write_rate] =
        [DeviceParameter::LdsPortRead, DeviceParameter::LdsPortWrite].map(|port| LDS_PORTS * of(port));
    let pass = of(DeviceParameter::Turn);
    let (mut compute, mut reads, mut writes, mut loads) = (0, 0, 0, 0);
    for (node, own) in operations.body.iter().zip(&operations.found.nodes) {
        if let Op::Mma(MmaChoice::Explicit(mma)) = own.op {
            let passes = target.matrix_instruction(mma).map_or(0, |instruction| instruction.passes);
            compute += pass * u32::from(passes) * half.per_simd;
        }
        match node.class {
            Class::ReadShared => reads += 256 * own.registers,
            Class::WriteShared => writes += 256 * view.registers(view.node(node.entity)?.operands.at(0)?)?,
            Class::GlobalToShared => loads += half.waves * of(DeviceParameter::DirectLds),
            Class::ReadGlobal
            | Class::WriteGlobal
            | Class::Mma
            | Class::Valu
            | Class::Shuffle
            | Class::Free => {}
        }
    }
    let (half_reads, half_writes) = (reads * half.waves / read_rate, writes * half.waves / write_rate);
    let half_loads = loads;
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
pub(super) fn late_loads(operations: &Operations, loads: [Entity; 2]) -> Result<[u32; 2], Bug> {
    let mut all = 0;
    let (mut counts, mut registers) = ([0u32; 2], [0u32; 2]);
    for (node, own) in operations.body.iter().zip(&operations.found.nodes) {
        let is_read = matches!(node.class, Class::ReadShared | Class::ReadGlobal);
        if !is_read && !matches!(own.op, Op::IterArg(_)) {
            continue;
        }
        let width = own.registers;
        all += width;
        if let Some(side) = loads.iter().position(|load| *load == own.expansion.logical) {
            counts[side] += 1;
            registers[side] += width;
        }
    }
    let mut excess = all.saturating_sub(pressure::available(operations.view)?);
    let mut late = [0; 2];
    for side in [1, 0] {
        let each = (registers[side] / counts[side].max(1)).max(1);
        late[side] = excess.div_ceil(each).min(counts[side]);
        excess = excess.saturating_sub(late[side] * each);
    }
    Ok(late)
}
