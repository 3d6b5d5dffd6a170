//! Casts to bf16 that may round NaNs as they round numbers.
//!
//! A chip without an instruction for it rounds an f32 to bf16 by a sum: of its bits, half of what is cut
//! off, and the last bit that stays, for ties. A NaN whose fraction is all ones down to the bits that are cut
//! off would become a zero by that, and one whose fraction has no other bits an infinity, so it takes three
//! instructions more to keep them.
//!
//! Where NaNs are made by arithmetic they are the default one, whose fraction is its top bit (CDNA3 ISA
//! guide, "NaN"), or that of an operand made quiet; where they come from bf16 numbers their lower half is
//! zero. These survive the sum: nothing is carried into their upper half, which stays as it is. So the cast
//! of what is computed from bf16 numbers and constants alone by arithmetic is marked; f32 values of the
//! caller's have any bits.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::constant::Constant;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::NodeItem;
use crate::ir::types::DType;
use crate::passes::PassResult;
use crate::passes::facts::{RoundsPlainly, Settings};
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module. It looks at nodes as they refer to each other, so it takes the whole
/// world.
pub(crate) fn find_plain_roundings(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    if editor.kernel::<Settings>()?.0.target().rounds_pairs() {
        return Ok(());
    }
    let mut casts: SmallVec<[(Entity, Entity); 4]> = SmallVec::new();
    for node in editor.nodes() {
        let seen = editor.node(node)?;
        if *seen.op == Op::Convert(Conversion::Cast) && seen.ty.dtype == Some(DType::Bf16) {
            casts.push((node, seen.operand(0)?));
        }
    }
    if casts.is_empty() {
        return Ok(());
    }
    let carried = CarriedOwners::of(&editor)?;
    for (cast, value) in casts {
        if has_short_nans(&editor, &carried, value)? {
            editor.attach(cast, RoundsPlainly);
        }
    }
    Ok(())
}

/// The region of each carried value as its body sees it.
struct CarriedOwners(NodeMap<Entity>);

impl CarriedOwners {
    fn of(editor: &KernelEditor) -> Result<CarriedOwners, Diagnostic> {
        let mut regions = NodeMap::default();
        for region in editor.regions() {
            for node in editor.body(region) {
                if let Op::IterArg(_) = editor.op(node)? {
                    regions.insert(node, region);
                }
            }
        }
        Ok(CarriedOwners(regions))
    }
}

/// True if all that a value is computed from is arithmetic on bf16 numbers, integers and constants: what is
/// carried around a loop counts as such unless something else is found.
fn has_short_nans(editor: &KernelEditor, carried: &CarriedOwners, value: Entity) -> Result<bool, Diagnostic> {
    let mut waiting: SmallVec<[Entity; 16]> = smallvec![value];
    let mut known = NodeSet::default();
    while let Some(value) = waiting.pop() {
        if known.contains(value) {
            continue;
        }
        known.insert(value);
        let seen = editor.node(value)?;
        let dtype = seen.ty.dtype;
        if dtype.is_some_and(|dtype| dtype == DType::Bf16 || !dtype.is_float()) {
            continue;
        }
        if dtype != Some(DType::F32) {
            return Ok(false);
        }
        let of_region = match (*seen.op, &seen.operands.0[..]) {
            (Op::IterArg(number), _) => carried.0.get(value).map(|&region| (region, number)),
            (Op::LoopResult(number), &[region]) => Some((region, number)),
            _ => None,
        };
        if let Some((region, number)) = of_region {
            let head = editor.node(region)?;
            let initial = head.op.initial(&head.operands.0).get(number as usize);
            let yields = editor.get::<Yields>(region).map_or(&[][..], |yields| &yields.0);
            let (Some(&initial), Some(&next)) = (initial, yields.get(number as usize)) else {
                return Ok(false);
            };
            waiting.extend([initial, next]);
        } else if let Some(constant) = seen.op.constant() {
            if matches!(constant, Constant::Float(number) if number.is_nan()) {
                return Ok(false);
            }
        } else if is_arithmetic(&seen) {
            waiting.extend(seen.operands.0.iter().copied());
        } else {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True for what lowering makes of one instruction, or of a few that multiply, add and choose.
fn is_arithmetic(seen: &NodeItem) -> bool {
    let is_plain = matches!(
        seen.op,
        Op::Unary(UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Exp | UnaryOp::Exp2 | UnaryOp::Rsqrt)
            | Op::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Max | BinaryOp::Min)
            | Op::Ternary(TernaryOp::Fma)
            | Op::Convert(Conversion::Cast)
            | Op::Broadcast
            | Op::Select
            | Op::Rearrange
            | Op::Reduce(_)
    );
    is_plain || seen.op.is_product()
}
