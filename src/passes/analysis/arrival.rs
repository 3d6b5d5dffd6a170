//! What depends on which lane, wave or workgroup comes first: refused where the options deny it
//! ([`Deny::Nondeterministic`](crate::passes::options::Deny)).

use bevy_ecs::prelude::*;

use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::Locations;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::op::DataMovement;
use crate::ir::types::DType;
use crate::passes::PassResult;

/// Checks nodes whose types are known.
///
/// # Errors
/// The first node of which a result depends on the order of arrival.
pub(super) fn judge(
    order: &[Entity],
    nodes: &Query<(&Op, &Operands, &Origin)>,
    types: &Query<&mut ValueType>,
    yields: &Query<&Yields>,
    mappings: &Query<&Mapping>,
    locations: &Locations,
) -> PassResult {
    let mut used = NodeSet::default();
    for &node in order {
        nodes.get(node)?.1.0.iter().for_each(|&operand| used.insert(operand));
        yields.get(node).iter().flat_map(|yields| &yields.0).for_each(|&handed_on| used.insert(handed_on));
    }
    for &node in order {
        let (op, operands, origin) = nodes.get(node)?;
        let found = if let Some(DataMovement::Update(atomic)) = op.movement() {
            let is_float = types.get(node)?.dtype.is_some_and(DType::is_float);
            of_update(atomic, is_float, used.contains(node))
        } else if op.stores() && operands.0.len() > 2 && mappings.contains(node) {
            Some((
                "elements are written to coordinates that are made of values",
                "of two that meet, one stays",
            ))
        } else {
            None
        };
        if let Some((what, why)) = found {
            let text = format!("{what}: the result may differ from one launch to the next");
            return Err(Diagnostic::new(Kind::Denied, text)
                .at(locations.get(origin.0))
                .note(why, None)
                .help("compute it by a reduction, in a second kernel if need be, or do not deny it"));
        }
    }
    Ok(())
}

/// What of an atomic update depends on the order, and why.
fn of_update(op: AtomicOp, is_float: bool, is_used: bool) -> Option<(&'static str, &'static str)> {
    match op {
        _ if is_used => Some((
            "what an atomic update gives back is used",
            "it depends on the updates that come before it",
        )),
        AtomicOp::CompareExchange => Some((
            "elements are compared and exchanged atomically",
            "the first one that finds its match stays",
        )),
        AtomicOp::Exchange => Some(("elements are exchanged atomically", "the last one stays")),
        AtomicOp::Add if is_float => {
            Some(("floats are added atomically", "the order of a sum decides its last bits"))
        }
        AtomicOp::Add | AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => None,
    }
}
