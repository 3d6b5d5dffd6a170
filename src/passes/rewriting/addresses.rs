//! The number of memories that one wave can reach, judged as soon as it is known which of them are used: the
//! allocator would find out as well, but after almost all of the work.

use bevy_ecs::prelude::*;

use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::node_map::NodeSet;
use crate::passes::PassResult;
use crate::passes::options::Options;

/// Registers of an address.
const POINTER: u32 = 2;

/// Memories whose addresses fit into the registers of a wave. It starts with all of them, in SGPRs and, if
/// these are too few, in lanes of VGPRs.
pub(super) fn most_memories(options: &Options) -> usize {
    let target = options.target();
    let vgprs = options.vgpr_limit().unwrap_or(u32::MAX).min(target.addressable_vgprs);
    ((target.addressable_sgprs + target.wave_size * vgprs) / POINTER) as usize
}

/// Rejects a kernel whose operations use more than `most` different memories.
pub(super) fn judge_memories(
    uses: impl Iterator<Item = Entity>,
    most: usize,
    location: impl Fn(Entity) -> Option<Location>,
) -> PassResult {
    let (mut used, mut count, mut excess) = (NodeSet::default(), 0, None);
    for memory in uses {
        if !used.contains(memory) {
            used.insert(memory);
            count += 1;
            excess = excess.or((count > most).then_some(memory));
        }
    }
    let Some(memory) = excess else { return Ok(()) };
    let text = format!("the kernel uses {count} memories, and a wave has registers for {most} addresses");
    Err(Diagnostic::new(Kind::Limit, text)
        .at(location(memory))
        .help("give tensors of one shape one memory with one more dimension, or make several kernels"))
}
