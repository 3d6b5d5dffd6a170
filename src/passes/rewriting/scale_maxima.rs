//! Maxima and minima of scaled values, under fast math: what is looked through is not scaled, but its maximum
//! is. That is the same number, as rounding keeps an order. Then only a difference uses the scaled values, as
//! in a softmax, and `contract_products` makes one operation of both.
//!
//! A negative scale turns a maximum into a minimum. The sign of a constant is known, and so is that of what
//! is made of a size. The sign of another scale goes to a factor of the product that is scaled, if a loop has
//! that factor from outside, where multiplying it costs nothing in a trip; the scale's magnitude is left, and
//! the least number above zero where it is zero.
//!
//! Scaled values may be masked: where a selection takes infinity instead of them, it takes infinity instead
//! of what is scaled. A magnitude of zero would make no number of that.
//!
//! It is fast math because infinite values that are scaled by zero are no numbers otherwise.

use bevy_ecs::prelude::*;

use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::{Bug, NodeItem};
use crate::ir::types::DType;
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::analysis::fractions::NodeReader;
use crate::passes::analysis::positive_values::{KnownSizes, positive_range};
use crate::passes::facts::{Expressions, Geometry};
use crate::passes::kernel_editor::KernelEditor;

/// The dtypes of factors that have a sign to turn, exactly and by one multiplication.
const SIGNED_FACTORS: [DType; 3] = [DType::F16, DType::Bf16, DType::F32];

/// The pass itself; see the module. It makes nodes in front of others, so it takes the whole world.
pub(crate) fn scale_maxima(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let uses = editor.use_counts()?;
    for region in editor.regions() {
        let arena = &editor.kernel::<Expressions>()?.0;
        let sizes = KnownSizes { geometry: editor.kernel::<Geometry>()?, arena };
        let read = |node| editor.node(node);
        let found = scaled_maxima(&read, sizes, &uses, &editor.body(region))?;
        if found.is_empty() {
            continue;
        }
        let mut before: NodeMap<NodeList> = NodeMap::default();
        for maximum in found {
            maximum.scale_late(&mut editor, &mut before)?;
        }
        editor.rewrite_region(region, &mut |editor, node| {
            editor.written().extend(before.get(node).into_iter().flatten().copied());
            Ok(())
        })?;
    }
    Ok(())
}

/// A maximum or a minimum of scaled values that one difference uses as well.
struct ScaledMaximum {
    reduced: Entity,
    reduction: Reduction,
    /// Type of the reduction.
    ty: ValueType,
    /// The operand of the reduction: the scaled values, or a selection between them and infinity.
    scaled: Entity,
    mask: Option<Mask>,
    /// The factors of the scaled values.
    values: Entity,
    scale: Entity,
    sign: ScaleSign,
}

/// A selection between scaled values and infinity.
#[derive(Copy, Clone)]
struct Mask {
    condition: Entity,
    /// Which of its operands the scaled values are.
    at: usize,
    other: f64,
}

/// The sign of a scale, as far as it is known.
enum ScaleSign {
    Positive,
    Negative,
    /// Nothing: it goes to a factor of the product that is scaled.
    OfFactor(SignedFactor),
}

/// A factor of a product that can take a sign.
struct SignedFactor {
    factor: Entity,
    ty: ValueType,
    dtype: DType,
    /// Which of the product's operands it is.
    at: usize,
}

/// Those of a body, in its order.
fn scaled_maxima(
    read: NodeReader<'_, '_>,
    sizes: KnownSizes<'_>,
    uses: &NodeMap<u32>,
    body: &[Entity],
) -> Result<Vec<ScaledMaximum>, Bug> {
    let mut found = Vec::new();
    let mut inside: Option<NodeSet> = None;
    for &reduced in body {
        let extremum = read(reduced)?;
        let Op::Reduce(reduction) = *extremum.op else { continue };
        if !matches!(reduction.op, ReductionOp::Max | ReductionOp::Min) {
            continue;
        }
        let scaled = extremum.operand(0)?;
        let (product, mask) = without_mask(read, scaled)?;
        let is_used_once = mask.is_none() || uses.get(product) == Some(&1);
        let product = read(product)?;
        if *product.op != Op::Binary(BinaryOp::Mul)
            || product.ty.dtype != Some(DType::F32)
            || !is_used_once
            // The reduction and the difference, and nothing else.
            || uses.get(scaled) != Some(&2)
            || !has_difference(read, body, scaled)?
        {
            continue;
        }
        let inside = inside.get_or_insert_with(|| body.iter().copied().collect());
        if !inside.contains(scaled) {
            continue;
        }
        let operands = [product.operand(0)?, product.operand(1)?];
        for (values, scale) in [(operands[0], operands[1]), (operands[1], operands[0])] {
            if let Some(sign) = sign((read, sizes), uses, inside, values, scale)? {
                let ty = extremum.ty.clone();
                found.push(ScaledMaximum { reduced, reduction, ty, scaled, mask, values, scale, sign });
                break;
            }
        }
    }
    Ok(found)
}

/// The operand that a selection takes where it does not take infinity, and how it selects; of anything else
/// the value itself.
fn without_mask(read: NodeReader<'_, '_>, value: Entity) -> Result<(Entity, Option<Mask>), Bug> {
    let selection = read(value)?;
    if *selection.op != Op::Select {
        return Ok((value, None));
    }
    for (at, constant) in [(1, 2), (2, 1)] {
        if let Op::Register(Constant::Float(other)) = *read(selection.operand(constant)?)?.op
            && other.is_infinite()
        {
            let mask = Mask { condition: selection.operand(0)?, at, other };
            return Ok((selection.operand(at)?, Some(mask)));
        }
    }
    Ok((value, None))
}

/// True if something with fewer dimensions is subtracted from a value, so that the difference can become one
/// operation with the product that the value is.
fn has_difference(read: NodeReader<'_, '_>, body: &[Entity], value: Entity) -> Result<bool, Bug> {
    let dims = read(value)?.ty.dims.len();
    for &node in body {
        let seen = read(node)?;
        if *seen.op == Op::Binary(BinaryOp::Sub)
            && seen.operand(0)? == value
            && read(seen.operand(1)?)?.ty.dims.len() < dims
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The sign of `scale`, by which a body, `inside`, multiplies `values`; none if the scale is no single
/// number, is zero or infinite as an f32, or if nothing could take an unknown sign.
fn sign(
    (read, sizes): (NodeReader<'_, '_>, KnownSizes<'_>),
    uses: &NodeMap<u32>,
    inside: &NodeSet,
    values: Entity,
    scale: Entity,
) -> Result<Option<ScaleSign>, Bug> {
    let number = read(scale)?;
    if !number.ty.dims.is_empty() {
        return Ok(None);
    }
    if let Op::Register(Constant::Float(constant)) = *number.op {
        let rounded = constant as f32;
        let sign = if rounded > 0.0 { ScaleSign::Positive } else { ScaleSign::Negative };
        return Ok((rounded != 0.0 && rounded.is_finite()).then_some(sign));
    }
    if inside.contains(scale) {
        return Ok(None);
    }
    if positive_range(read, scale, sizes)?.is_some() {
        return Ok(Some(ScaleSign::Positive));
    }
    if uses.get(values) != Some(&1) {
        return Ok(None);
    }
    let product = read(values)?;
    if !inside.contains(values) || !is_product_alone(read, &product)? {
        return Ok(None);
    }
    for at in [0, 1] {
        let factor = product.operand(at)?;
        let ty = read(factor)?.ty;
        let dtype = ty.dtype.filter(|dtype| SIGNED_FACTORS.contains(dtype) && !inside.contains(factor));
        if let Some(dtype) = dtype {
            return Ok(Some(ScaleSign::OfFactor(SignedFactor { factor, ty: ty.clone(), dtype, at })));
        }
    }
    Ok(None)
}

/// True for a product of matrices that is added to zeros.
fn is_product_alone(read: NodeReader<'_, '_>, product: &NodeItem) -> Result<bool, Bug> {
    if !product.op.is_product() {
        return Ok(false);
    }
    let sum = read(product.operand(2)?)?;
    Ok(matches!(*sum.op, Op::Register(Constant::Float(start)) if start == 0.0))
}

impl ScaledMaximum {
    /// Reduces what is scaled, and scales the result; new nodes are noted with those that they come before.
    fn scale_late(self, editor: &mut KernelEditor<'_>, before: &mut NodeMap<NodeList>) -> PassResult {
        let ScaledMaximum { reduced, mut reduction, ty, scaled, mask, mut values, mut scale, sign } = self;
        editor.model_on(reduced)?;
        // The factor of a mask's infinity.
        let mut turned = 1.0;
        match sign {
            ScaleSign::Positive => {}
            ScaleSign::Negative => {
                let is_maximum = reduction.op == ReductionOp::Max;
                reduction.op = if is_maximum { ReductionOp::Min } else { ReductionOp::Max };
                turned = -1.0;
            }
            ScaleSign::OfFactor(signed) => {
                let at = signed.at;
                let factor;
                (scale, factor) = move_sign(editor, scale, signed);
                before.insert(values, std::mem::take(editor.written()));
                editor.set_operand(values, at, factor)?;
            }
        }
        if let Some(Mask { condition, at, other }) = mask {
            let masked = editor.node(scaled)?.ty.clone();
            let single = ValueType { dims: Dims::new(), dtype: masked.dtype };
            let infinity = editor.add(Op::Register((turned * other).into()), &[], single, ());
            let taken = if at == 1 { [condition, values, infinity] } else { [condition, infinity, values] };
            values = editor.add(Op::Select, &taken, masked, ());
            before.insert(scaled, std::mem::take(editor.written()));
        }
        let unscaled = editor.add(Op::Reduce(reduction), &[values], ty, ());
        before.insert(reduced, std::mem::take(editor.written()));
        for (node, unscaled) in [(scaled, values), (reduced, unscaled)] {
            editor.turn_into(node, Op::Binary(BinaryOp::Mul), &[unscaled, scale]);
        }
        Ok(())
    }
}

/// Multiplies a factor with the sign of a scale: the scale's magnitude, and the product.
fn move_sign(editor: &mut KernelEditor<'_>, scale: Entity, signed: SignedFactor) -> (Entity, Entity) {
    let mut single = |op: Op, operands: &[Entity], dtype: DType| {
        editor.add(op, operands, ValueType { dims: Dims::new(), dtype: Some(dtype) }, ())
    };
    let zero = single(Op::Register(0.0.into()), &[], DType::F32);
    let is_negative = single(Op::Compare(Predicate::Lt), &[scale, zero], DType::I1);
    let [minus, plus] = [-1.0, 1.0].map(|one: f64| single(Op::Register(one.into()), &[], signed.dtype));
    let sign = single(Op::Select, &[is_negative, minus, plus], signed.dtype);
    let magnitude = single(Op::Unary(UnaryOp::Abs), &[scale], DType::F32);
    let least = single(Op::Register(f64::from(f32::from_bits(1)).into()), &[], DType::F32);
    let is_zero = single(Op::Compare(Predicate::Eq), &[scale, zero], DType::I1);
    let magnitude = single(Op::Select, &[is_zero, least, magnitude], DType::F32);
    (magnitude, editor.add(Op::Binary(BinaryOp::Mul), &[signed.factor, sign], signed.ty, ()))
}
