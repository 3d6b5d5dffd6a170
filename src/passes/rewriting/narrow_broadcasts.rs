//! Arithmetic on repeated values is done before they are repeated: a sum of a broadcast and a number is a
//! broadcast of the sum, which takes one instruction where each copy would take its own. Masks are full of
//! such sums, since places of two dimensions meet in them.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::PassResult;
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module. It looks at nodes that it has made, so it takes the whole world.
pub(crate) fn narrow_broadcasts(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    editor.rewrite(|editor, node| {
        let Some((operands, dims)) = narrowed(editor, node)? else { return Ok(()) };
        let (op, dtype) = (editor.op(node)?, editor.node(node)?.ty.dtype);
        let narrow = editor.add(op, &operands, ValueType { dims, dtype }, ());
        editor.turn_into(node, Op::Broadcast, &[narrow]);
        Ok(())
    })
}

/// Operands, and the dimensions of a result.
type NarrowOperands = (SmallVec<[Entity; 3]>, Dims);

/// The operands of an element-wise operation before they are repeated, and the dimensions of its result then;
/// nothing if it needs more than one of them has.
fn narrowed(editor: &KernelEditor<'_>, node: Entity) -> Result<Option<NarrowOperands>, Bug> {
    let found = editor.node(node)?;
    if !matches!(*found.op, Op::Unary(_) | Op::Binary(_) | Op::Ternary(_)) {
        return Ok(None);
    }
    let mut operands: SmallVec<[Entity; 3]> = SmallVec::new();
    let mut widest = Dims::new();
    for &operand in &found.operands.0 {
        let value = editor.node(operand)?;
        let source = if *value.op == Op::Broadcast { value.operand(0)? } else { operand };
        let dims = &editor.node(source)?.ty.dims;
        if dims.len() > widest.len() {
            widest = dims.clone();
        }
        operands.push(source);
    }
    for &operand in &operands {
        if editor.node(operand)?.ty.dims.iter().any(|dim| !widest.contains(dim)) {
            return Ok(None);
        }
    }
    Ok((widest.len() < found.ty.dims.len()).then_some((operands, widest)))
}
