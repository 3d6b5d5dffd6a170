//! Workgroup barriers, where and only where an LDS hazard between waves needs one: before a read of what another wave may just have
//! written, and before a write over what another wave may still read. Loop bodies are walked twice, so hazards around the back edge
//! count, and a kernel of one wave needs none: a wave's LDS operations are executed in order.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::facts::Geometry;
use super::{PassResult, kernel_entity};
use crate::ir::node::*;
use crate::ir::walk::{self, NodeList};

/// Buffers touched since the last barrier.
#[derive(Clone, Default, PartialEq)]
struct Touched {
    written: SmallVec<[Entity; 8]>,
    read: SmallVec<[Entity; 8]>,
}

impl Touched {
    fn join(&mut self, other: &Touched) {
        for (own, others) in [(&mut self.written, &other.written), (&mut self.read, &other.read)] {
            for &buffer in others {
                if !own.contains(&buffer) {
                    own.push(buffer);
                }
            }
        }
    }

    fn clear(&mut self) {
        self.written.clear();
        self.read.clear();
    }
}

/// The pass; see the module.
pub fn place_barriers(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    if world.get::<Geometry>(root).is_some_and(|g| g.wave_count() > 1) {
        place_in_region(world, root, &mut Touched::default());
    }
    Ok(())
}

fn place_in_region(world: &mut World, region: Entity, touched: &mut Touched) {
    let mut out = NodeList::new();
    for node in walk::body(world, region) {
        match world.get::<Op>(node) {
            Some(Op::Iterate(_)) => {
                let before = touched.clone();
                // First with what came before, then with what an iteration leaves behind.
                place_in_region(world, node, touched);
                touched.join(&before);
                place_in_region(world, node, touched);
                touched.join(&before);
            }
            Some(Op::Barrier) => touched.clear(),
            Some(&op @ (Op::Read | Op::Write)) => {
                let memory = world.get::<Operands>(node).and_then(|o| o.0.last().copied());
                if let Some(buffer) = memory.filter(|&m| world.get::<Op>(m) == Some(&Op::Allocate)) {
                    let hazard = touched.written.contains(&buffer)
                        || (op == Op::Write && touched.read.contains(&buffer));
                    if hazard {
                        out.push(spawn_barrier(world, node));
                        touched.clear();
                    }
                    let list = if op == Op::Write { &mut touched.written } else { &mut touched.read };
                    if !list.contains(&buffer) {
                        list.push(buffer);
                    }
                }
            }
            _ => {}
        }
        out.push(node);
    }
    walk::set_body(world, region, &out);
}

fn spawn_barrier(world: &mut World, before: Entity) -> Entity {
    let origin = world.get::<Origin>(before).copied().unwrap_or(Origin(u32::MAX));
    world.spawn((Op::Barrier, Operands::default(), ValueType::unknown(), origin)).id()
}
