//! Sums and differences of products, under fast math: where nothing else uses the product, both become one
//! operation that rounds once. Of a difference, what becomes negative has to have fewer elements than the
//! result, or to be a constant: otherwise nothing would be gained.

use bevy_ecs::prelude::*;

use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::Bug;
use crate::ir::types::DType;
use crate::passes::PassResult;
use crate::passes::kernel_editor::KernelEditor;

/// The dtypes that have such an operation of their own.
const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::F64];

/// The pass itself; see the module. It makes nodes in front of others, so it takes the whole world.
pub(crate) fn contract_products(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let uses = editor.use_counts()?;
    editor.rewrite(|editor, node| contract(editor, node, &uses))
}

/// Makes one operation of a sum and a product, if it can be.
fn contract(editor: &mut KernelEditor<'_>, sum: Entity, uses: &NodeMap<u32>) -> PassResult {
    let node = editor.node(sum)?;
    let Op::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) = *node.op else { return Ok(()) };
    if !node.ty.dtype.is_some_and(|dtype| DTYPES.contains(&dtype)) {
        return Ok(());
    }
    let count = node.ty.dims.len();
    let operands = [node.operand(0)?, node.operand(1)?];
    for at in [0, 1] {
        let product = editor.node(operands[at])?;
        if *product.op != Op::Binary(BinaryOp::Mul) || uses.get(operands[at]) != Some(&1) {
            continue;
        }
        let mut parts = [product.operand(0)?, product.operand(1)?, operands[1 - at]];
        if op == BinaryOp::Sub {
            // What is subtracted: the other operand, or one of the factors.
            let subtracted: &[usize] = if at == 0 { &[2] } else { &[0, 1] };
            let mut negative = None;
            for &part in subtracted {
                let value = editor.node(parts[part])?;
                if matches!(value.op, Op::Register(Constant::Float(_))) || value.ty.dims.len() < count {
                    negative = Some(part);
                }
            }
            let Some(part) = negative else { continue };
            parts[part] = negated(editor, parts[part])?;
        }
        editor.turn_into(sum, Op::Ternary(TernaryOp::Fma), &parts);
        return Ok(());
    }
    Ok(())
}

/// The value with the other sign, as a new node where the value was written.
fn negated(editor: &mut KernelEditor<'_>, value: Entity) -> Result<Entity, Bug> {
    editor.model_on(value)?;
    let node = editor.node(value)?;
    let ty = node.ty.clone();
    if let Op::Register(Constant::Float(number)) = *node.op {
        return Ok(editor.add(Op::Register(Constant::Float(-number)), &[], ty, ()));
    }
    Ok(editor.add(Op::Unary(UnaryOp::Neg), &[value], ty, ()))
}
