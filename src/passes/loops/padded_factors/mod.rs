//! Factors of products beyond the end of the dimension that is summed over. A product sums up the elements
//! that exist, while the machine sums up whole tiles: what stands beyond the end has to add nothing. Reads
//! bring zeros, and zero times a finite number is zero. What is computed from them may be anything: `x + 1`
//! is one, `1 / x` is infinite, and so is a scale. This pass marks such factors, as long as values are what
//! the author wrote; [`mask_folds`](super::mask_folds) puts zeros in their place where a tile can reach
//! beyond the end.
//!
//! - `padding`: what is known of the elements beyond the end, and what operations make of it

mod padding;

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use self::padding::Padding;
use super::mark_bounds::can_leave;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::ExprArena;
use crate::ir::kernel::KernelName;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::{Bug, Node, NodeItem};
use crate::ir::op::KernelTraits;
use crate::ir::op::OpClass;
use crate::ir::type_rules::contraction::MmaDims;
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::PassResult;
use crate::passes::facts::{Expressions, Geometry, PaddedFactors};

/// The pass itself; see the module.
pub(crate) fn find_padded_factors(
    mut kernel: Single<(Entity, &Geometry, &mut Expressions), With<KernelName>>,
    bodies: Query<&Body>,
    nodes: Query<Node>,
    mut commands: Commands,
) -> PassResult {
    let (root, geometry, expressions) = &mut *kernel;
    let order = walk::order(&bodies, *root);
    let products = products(&order, &nodes, geometry, &mut expressions.0)?;
    if products.is_empty() {
        return Ok(());
    }
    let mut summed: SmallVec<[Dim; 4]> = products.iter().map(|product| product.summed).collect();
    summed.sort_unstable();
    summed.dedup();
    let mut analysis =
        Analysis { geometry, arena: &expressions.0, nodes: &nodes, summed, known: NodeMap::default() };
    for &node in &order {
        analysis.note(node)?;
    }
    for product in products {
        let padded = analysis.padded(&product)?;
        if !padded.is_empty() {
            commands.entity(product.node).insert(PaddedFactors(padded));
            commands.entity(*root).insert(KernelTraits::PADDED_FACTORS);
        }
    }
    Ok(())
}

/// A product whose tiles can reach beyond the end of the dimension that it sums over.
struct RaggedProduct {
    node: Entity,
    summed: Dim,
}

/// The products that there is anything to find out of: those with factors that are more than read.
fn products(
    order: &[Entity],
    nodes: &Query<Node>,
    geometry: &Geometry,
    arena: &mut ExprArena,
) -> Result<Vec<RaggedProduct>, Diagnostic> {
    let mut found = Vec::new();
    for &id in order {
        let node = nodes.get(id)?;
        if !node.op.is_product() {
            continue;
        }
        let mut computed = false;
        for (at, &operand) in node.operands.0.iter().enumerate() {
            computed |= at != ACCUMULATOR && !is_read(nodes, &nodes.get(operand)?)?;
        }
        if !computed {
            continue;
        }
        let ty = |at: usize| Ok::<_, Diagnostic>(nodes.get(node.operand(at)?)?.ty);
        let MmaDims { k: [k, _], .. } = MmaDims::of(ty(0)?, ty(1)?, ty(2)?).map_err(Diagnostic::bug)?;
        if can_leave(geometry, arena, &[], k.dim) {
            found.push(RaggedProduct { node: id, summed: k.dim });
        }
    }
    Ok(found)
}

/// The operand of a product that is added to.
const ACCUMULATOR: usize = 2;

/// Whether a value comes straight from a memory, which has zeros beyond its end.
fn is_read(nodes: &Query<Node>, value: &NodeItem) -> Result<bool, Diagnostic> {
    Ok(value.op.loads() && *nodes.get(value.memory()?)?.op == Op::Memory)
}

/// What is known of a value: what is true of all its elements, and what is beyond the end of dimensions.
#[derive(Clone, Default)]
struct KnownPadding {
    everywhere: Option<Padding>,
    beyond: SmallVec<[(Dim, Padding); 2]>,
}

struct Analysis<'a> {
    geometry: &'a Geometry,
    arena: &'a ExprArena,
    nodes: &'a Query<'a, 'a, Node>,
    /// The dimensions that are asked about.
    summed: SmallVec<[Dim; 4]>,
    known: NodeMap<KnownPadding>,
}

impl Analysis<'_> {
    /// Notes what is known of a node's result, if that is more than its dtype says.
    fn note(&mut self, id: Entity) -> PassResult {
        let nodes = self.nodes;
        let node = nodes.get(id)?;
        let Some(dtype) = node.ty.dtype else { return Ok(()) };
        let mut known = KnownPadding::default();
        if let Some(constant) = node.op.constant() {
            known.everywhere = Some(Padding::Known(constant.bits(dtype)?));
        } else if is_read(self.nodes, &node)? {
            let summed = |dim: &&Dim| self.summed.contains(&self.geometry.loop_dim(**dim));
            known.beyond = node.ty.dims.iter().filter(summed).map(|&dim| (dim, Padding::Known(0))).collect();
        } else if node.op.row().class == OpClass::ElementWise {
            known.everywhere = Some(self.made(&node, dtype, None)?);
            for at in 0..self.summed.len() {
                let dim = self.summed[at];
                let here = self.geometry.walked(&node.ty.dims, dim);
                if let Some(here) = here {
                    let padding = self.made(&node, dtype, Some(here))?;
                    known.beyond.push((here, padding));
                }
            }
        } else if let Some(Reduction { op: ReductionOp::Sum, dim, .. }) = node.op.reduction() {
            // A sum of zeros, also of none.
            let rest = |&&(of, padding): &&(Dim, Padding)| of != dim && padding.is_zero(dtype);
            let operand = self.known.get(node.operand(0)?).cloned().unwrap_or_default();
            known.beyond = operand.beyond.iter().filter(rest).map(|&(of, _)| (of, Padding::Zero)).collect();
        }
        if known.everywhere.is_some() || !known.beyond.is_empty() {
            self.known.insert(id, known);
        }
        Ok(())
    }

    /// What an element-wise operation makes of its operands beyond the end of a dimension, or anywhere.
    fn made(&self, node: &NodeItem, dtype: DType, beyond: Option<Dim>) -> Result<Padding, Diagnostic> {
        let mut operands: SmallVec<[(Padding, DType); 3]> = SmallVec::new();
        for &operand in &node.operands.0 {
            let of = self.nodes.get(operand)?.ty.dtype.ok_or(Bug::new("a value without dtype"))?;
            operands.push((self.padding(operand, of, beyond)?, of));
        }
        Ok(match (*node.op, operands.first()) {
            (Op::Broadcast, Some(&(padding, _))) => padding,
            (op, _) => padding::made(op, &operands, dtype),
        })
    }

    /// What is known of a value beyond the end of a dimension, or of all its elements.
    fn padding(&self, value: Entity, dtype: DType, beyond: Option<Dim>) -> Result<Padding, Diagnostic> {
        let anything = Padding::of_dtype(dtype);
        let Some(known) = self.known.get(value) else { return Ok(anything) };
        let everywhere = known.everywhere.unwrap_or(anything);
        let Some(dim) = beyond else { return Ok(everywhere) };
        if let Some(&(_, padding)) = known.beyond.iter().find(|(of, _)| *of == dim) {
            return Ok(padding);
        }
        // Blocks end where their elements do, if the last one is whole.
        let blocks = known.beyond.iter().find(|(of, _)| self.geometry.loop_dim(*of) == dim);
        let Some(&(of, padding)) = blocks else { return Ok(everywhere) };
        let Some((_, by)) = self.geometry.dim(of).scaled_from else { return Ok(everywhere) };
        let is_whole = self.arena.is_multiple_of(self.geometry.dim(dim).size, i64::from(by));
        Ok(if is_whole { padding } else { everywhere })
    }

    /// The operands of a product that need zeros in the place of what stands beyond the end, so that it adds
    /// nothing: zero times anything but a finite number is not zero.
    fn padded(&self, product: &RaggedProduct) -> Result<SmallVec<[u32; 4]>, Diagnostic> {
        let operands = self.nodes.get(product.node)?.operands.0.clone();
        let mut padded: SmallVec<[u32; 4]> = SmallVec::new();
        let mut is_zero = false;
        for (at, &operand) in operands.iter().enumerate().filter(|&(at, _)| at != ACCUMULATOR) {
            let node = self.nodes.get(operand)?;
            // A scale that is not a number makes all of its block so, also what exists of it.
            let is_scale = at > ACCUMULATOR;
            if is_scale && is_read(self.nodes, &node)? {
                continue;
            }
            let dtype = node.ty.dtype.ok_or(Bug::new("a factor without dtype"))?;
            let dim = self.geometry.walked(&node.ty.dims, product.summed);
            let padding = self.padding(operand, dtype, dim)?;
            if !padding.is_finite(dtype) {
                padded.push(at as u32);
            }
            is_zero |= !is_scale && (padding.is_zero(dtype) || !padding.is_finite(dtype));
        }
        Ok(if is_zero {
            padded
        } else {
            let mut first: SmallVec<[u32; 4]> = smallvec![0];
            first.extend(padded);
            first
        })
    }
}
