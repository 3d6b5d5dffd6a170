//! Factors that are one most of the time: a softmax that goes through its keys tile by tile multiplies what
//! it has added up with a power of how much the running maximum has risen, which is one wherever it has
//! not.
//!
//! Such a factor is `exp(x - y)` or `exp2(x - y)`, where a loop carries `x` and hands `y` on in its place.
//! A product of a carried value with it, which takes an instruction for each register, is marked: lowering
//! may ask once whether a factor of the wave is not one, and leave the product out otherwise. Nothing but
//! time depends on the mark, because multiplying with one changes nothing.

use bevy_ecs::prelude::*;

use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::types::DType;
use crate::passes::PassResult;
use crate::passes::analysis::fractions::NodeReader;
use crate::passes::facts::{Settings, UnitFactor};
use crate::passes::kernel_editor::KernelEditor;
use crate::passes::options::UnitFactors;

/// The pass itself; see the module. It looks at nodes as they refer to each other, so it takes the whole
/// world.
pub(crate) fn find_unit_factors(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    if editor.kernel::<Settings>()?.0.requested_unit_factors() == UnitFactors::Multiply {
        return Ok(());
    }
    for region in editor.regions() {
        let Some(yields) = editor.get::<Yields>(region) else { continue };
        let body = editor.body(region);
        let is_argument = |node: &&Entity| matches!(editor.op(**node), Ok(Op::IterArg(_)));
        let count = body.iter().take_while(is_argument).count();
        let carried = LoopCarry { arguments: &body[..count], yields: &yields.0 };
        let mut found = Vec::new();
        for &node in &body {
            found.extend(carried.unit_factor(&|node| editor.node(node), node)?.map(|fact| (node, fact)));
        }
        for (node, fact) in found {
            editor.attach(node, fact);
        }
    }
    Ok(())
}

/// What a loop carries: the values as an iteration finds them, with which its body begins, and those that
/// it hands on in their places.
struct LoopCarry<'a> {
    arguments: &'a [Entity],
    yields: &'a [Entity],
}

impl LoopCarry<'_> {
    /// Which operand of a product is such a factor, if one is.
    fn unit_factor(&self, read: NodeReader<'_, '_>, node: Entity) -> Result<Option<UnitFactor>, Bug> {
        let product = read(node)?;
        let (Op::Binary(BinaryOp::Mul), &[x, y]) = (*product.op, &product.operands.0[..]) else {
            return Ok(None);
        };
        if product.ty.dtype != Some(DType::F32) {
            return Ok(None);
        }
        for (value, factor, at) in [(x, y, 1), (y, x, 0)] {
            let is_shared = read(factor)?.ty.dims.len() < product.ty.dims.len();
            if is_shared && self.arguments.contains(&value) && self.is_power_of_a_rise(read, factor)? {
                return Ok(Some(UnitFactor(at)));
            }
        }
        Ok(None)
    }

    /// True for a power of the difference between a carried value and the one that takes its place.
    fn is_power_of_a_rise(&self, read: NodeReader<'_, '_>, factor: Entity) -> Result<bool, Bug> {
        let power = read(factor)?;
        let Op::Unary(UnaryOp::Exp | UnaryOp::Exp2) = *power.op else { return Ok(false) };
        let difference = read(power.operand(0)?)?;
        let (Op::Binary(BinaryOp::Sub), &[before, after]) = (*difference.op, &difference.operands.0[..])
        else {
            return Ok(false);
        };
        let number = self.arguments.iter().position(|&argument| argument == before);
        Ok(number.is_some_and(|number| self.yields.get(number) == Some(&after)))
    }
}
