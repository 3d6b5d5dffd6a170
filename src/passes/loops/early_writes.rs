//! The order of what comes after loops: a result is written as soon as it is there.
//!
//! Expansion makes all pieces of an operation before the next one's, so that everything is computed before
//! the first store. Memory takes longer for the stores than the vector unit for the arithmetic in front of
//! them, and waits for the first one: 256 x 256 results of f16 on MI355X are rounded for 1150 clk in time
//! mode, and stored for 8192. So what computes comes right before the first node that needs it, and
//! everything else stays in its order.

use std::ops::Range;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::node::Operands;
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::{self, Bug};
use crate::ir::op::OpClass;

/// The nodes after the last region of a body.
#[derive(Default)]
pub(super) struct AfterRegions {
    /// The place of the first node, if there is a region.
    first: Option<usize>,
    /// The places of nodes that only compute.
    computing: SmallVec<[Range<usize>; 4]>,
}

impl AfterRegions {
    /// The nodes at these places have been made of an operation of this class.
    pub(super) fn note(&mut self, class: OpClass, places: Range<usize>) {
        match class {
            OpClass::Region => *self = AfterRegions { first: Some(places.end), ..AfterRegions::default() },
            OpClass::ElementWise | OpClass::Rearrangement => self.computing.push(places),
            OpClass::Declaration
            | OpClass::Constant
            | OpClass::Access
            | OpClass::Contraction
            | OpClass::Reduction
            | OpClass::Scan
            | OpClass::Carried
            | OpClass::Order => {}
        }
    }

    /// Brings these nodes of a body into such an order.
    pub(super) fn write_early(&self, world: &World, body: &mut [Entity]) -> Result<(), Bug> {
        let Some(first) = self.first.filter(|_| !self.computing.is_empty()) else { return Ok(()) };
        let mut waiting = NodeSet::default();
        let mut others: SmallVec<[usize; 64]> = SmallVec::new();
        let mut at = first;
        for places in &self.computing {
            body[places.clone()].iter().for_each(|&node| waiting.insert(node));
            others.extend(at..places.start);
            at = places.end;
        }
        others.extend(at..body.len());
        let mut order: Vec<Entity> = Vec::with_capacity(body.len() - first);
        let mut needed: SmallVec<[(Entity, usize); 16]> = SmallVec::new();
        for place in others {
            needed.push((body[place], 0));
            // What is needed comes first, operand by operand.
            while let Some((node, operand)) = needed.last_mut() {
                let operands = nodes::fact::<Operands>(world, *node, "a node without operands")?;
                match operands.0.get(*operand) {
                    Some(&value) => {
                        *operand += 1;
                        if waiting.contains(value) {
                            waiting.remove(value);
                            needed.push((value, 0));
                        }
                    }
                    None => {
                        order.push(*node);
                        needed.pop();
                    }
                }
            }
        }
        // What nothing needs here may be what a region around hands on.
        order.extend(body[first..].iter().copied().filter(|&node| waiting.contains(node)));
        body[first..].copy_from_slice(&order);
        Ok(())
    }
}
