//! Values that are positive whatever the data are, as the scale of a softmax is that comes from a size.

use bevy_ecs::prelude::*;

use super::fractions::NodeReader;
use crate::ir::expr::ExprArena;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::facts::Geometry;

/// What is known of sizes.
#[derive(Copy, Clone)]
pub(in crate::passes) struct KnownSizes<'a> {
    pub(in crate::passes) geometry: &'a Geometry,
    pub(in crate::passes) arena: &'a ExprArena,
}

/// Magnitudes that products and roots of some such numbers, rounded to f32, neither lose nor exceed.
const MODERATE: std::ops::Range<f64> = 1e-30..1e30;

/// The least and the greatest number that a value can be which is positive and finite; nothing of others.
///
/// # Errors
/// Kernels that are broken.
pub(in crate::passes) fn positive_range(
    read: NodeReader<'_, '_>,
    node: Entity,
    sizes: KnownSizes<'_>,
) -> Result<Option<(f64, f64)>, Bug> {
    let found = read(node)?;
    let of = |at: usize| positive_range(read, found.operand(at)?, sizes);
    let range = match (*found.op, &found.operands.0[..]) {
        (Op::Register(Constant::Float(number)), _) => Some((number, number)),
        (Op::Size(dim), _) => {
            let range = sizes.arena.range(sizes.geometry.dim(dim).size);
            range.lo.zip(range.hi).map(|(least, most)| (least.max(1) as f64, most as f64))
        }
        (Op::Broadcast | Op::Convert(_), _) => of(0)?,
        (Op::Unary(UnaryOp::Rsqrt), _) => {
            of(0)?.map(|(least, most)| (most.sqrt().recip(), least.sqrt().recip()))
        }
        (Op::Unary(UnaryOp::Sqrt), _) => of(0)?.map(|(least, most)| (least.sqrt(), most.sqrt())),
        (Op::Unary(UnaryOp::Reciprocal), _) => of(0)?.map(|(least, most)| (most.recip(), least.recip())),
        (Op::Binary(BinaryOp::Mul), _) => of(0)?.zip(of(1)?).map(|(a, b)| (a.0 * b.0, a.1 * b.1)),
        _ => None,
    };
    Ok(range.filter(|(least, most)| MODERATE.contains(least) && MODERATE.contains(most)))
}
