//! Sums and differences of products, under fast math: where nothing else uses the product, both become one
//! operation that rounds once. Of a difference, what becomes negative has to have fewer elements than the
//! result, or to be a constant: otherwise nothing would be gained.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{self, NodeBundle};
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::{PassResult, kernel_entity};

/// The dtypes that have such an operation of their own.
const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::F64];

/// The pass itself; see the module. It makes nodes in front of others, so it takes the whole world.
pub(crate) fn contract_products(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let uses = walk::use_counts(world, root)?;
    for region in walk::regions(world, root) {
        let mut body = Vec::new();
        for node in walk::body(world, region) {
            contract(world, node, &uses, &mut body)?;
            body.push(node);
        }
        walk::set_body(world, region, &body);
    }
    Ok(())
}

/// Makes one operation of a sum and a product, if it can be; what it needs in front of it goes to `body`.
fn contract(world: &mut World, id: Entity, uses: &NodeMap<u32>, body: &mut Vec<Entity>) -> PassResult {
    let node = nodes::node(world, id)?;
    let Op::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) = *node.op else { return Ok(()) };
    if !node.ty.dtype.is_some_and(|dtype| DTYPES.contains(&dtype)) {
        return Ok(());
    }
    let operands = [node.operand(0)?, node.operand(1)?];
    for at in [0, 1] {
        let product = nodes::node(world, operands[at])?;
        if *product.op != Op::Binary(BinaryOp::Mul) || uses.get(operands[at]) != Some(&1) {
            continue;
        }
        let mut parts = [product.operand(0)?, product.operand(1)?, operands[1 - at]];
        if op == BinaryOp::Sub {
            // What is subtracted: the other operand, or one of the factors.
            let subtracted: &[usize] = if at == 0 { &[2] } else { &[0, 1] };
            let count = nodes::node(world, id)?.ty.dims.len();
            let mut negative = None;
            for &part in subtracted {
                let value = nodes::node(world, parts[part])?;
                if matches!(value.op, Op::Register(Constant::Float(_))) || value.ty.dims.len() < count {
                    negative = Some(part);
                }
            }
            let Some(part) = negative else { continue };
            parts[part] = negated(world, parts[part])?;
            body.push(parts[part]);
        }
        world.entity_mut(id).insert((Op::Ternary(TernaryOp::Fma), Operands(SmallVec::from_slice(&parts))));
        return Ok(());
    }
    Ok(())
}

/// The value with the other sign, as a new node.
fn negated(world: &mut World, value: Entity) -> Result<Entity, Diagnostic> {
    let NodeBundle { op, ty, origin, .. } = nodes::node(world, value)?.bundle();
    let (op, operands) = if let Op::Register(Constant::Float(number)) = op {
        (Op::Register(Constant::Float(-number)), SmallVec::new())
    } else {
        (Op::Unary(UnaryOp::Neg), SmallVec::from_slice(&[value]))
    };
    let operands = Operands(operands);
    Ok(NodeBundle { op, operands, ty, origin }.spawn(world, ()))
}
