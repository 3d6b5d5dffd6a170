//! Masks of reductions and products: where the tile of a value reaches beyond the end of the dimension that
//! is folded, the elements outside are replaced by one that changes nothing. So padding never takes part,
//! whatever it holds, and loops have masks in their remainders alone. Of products those factors are masked
//! that [`padded_factors`](super::padded_factors) has marked.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::mark_bounds::{Loops, can_leave};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::ExprArena;
use crate::ir::layout::{Dim, Layout};
use crate::ir::node::*;
use crate::ir::nodes::{self, Bug, NodeBundle};
use crate::ir::op::OpClass;
use crate::ir::type_rules::contraction::MmaDims;
use crate::ir::types::DType;
use crate::ir::walk;
use crate::passes::facts::{Expressions, FoldsMasked, Geometry, PaddedFactors, Remainder};
use crate::passes::{PassResult, kernel_entity};

/// The pass itself; see the module. It makes nodes that use one another, so it takes the whole world.
pub(crate) fn mask_folds(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let mut folds = false;
    for node in walk::nodes(world, root) {
        folds = nodes::op(world, node)?.row().class == OpClass::Reduction
            || world.get::<PaddedFactors>(node).is_some();
        if folds {
            break;
        }
    }
    if !folds {
        return Ok(());
    }
    // The arena and what is asked of it are on one entity, so it is taken out.
    let expressions = &mut nodes::fact_mut::<Expressions>(world, root, WITHOUT_EXPRESSIONS)?.0;
    let arena = std::mem::take(expressions);
    let mut ends = DimEnds { root, arena, loops: Loops::new() };
    let masked = region(world, root, &mut ends);
    nodes::fact_mut::<Expressions>(world, root, WITHOUT_EXPRESSIONS)?.0 = ends.arena;
    masked?;
    world.entity_mut(root).insert(FoldsMasked);
    Ok(())
}

const WITHOUT_EXPRESSIONS: &str = "a kernel without expressions";

/// What tells whether tiles reach beyond the end of a dimension.
struct DimEnds {
    root: Entity,
    arena: Box<ExprArena>,
    /// The loops around what is looked at.
    loops: Loops,
}

impl DimEnds {
    /// True if a tile may reach beyond the end of `dim`.
    fn leaves(&mut self, world: &World, dim: Dim) -> Result<bool, Diagnostic> {
        let geometry = nodes::fact::<Geometry>(world, self.root, "a kernel without geometry")?;
        Ok(can_leave(geometry, &mut self.arena, &self.loops, dim))
    }
}

fn region(world: &mut World, region: Entity, ends: &mut DimEnds) -> PassResult {
    let mut body = Vec::new();
    // Factors that several products of the region take are masked once.
    let mut masked: SmallVec<[(Entity, Dim, Entity); 4]> = SmallVec::new();
    for node in walk::body(world, region) {
        let op = nodes::op(world, node)?;
        if let Some(axis) = op.over_tiles() {
            ends.loops.push((axis, world.get::<Remainder>(node).is_some()));
            self::region(world, node, ends)?;
            ends.loops.pop();
        }
        if op.runs_under_condition() {
            self::region(world, node, ends)?;
        }
        if let Some(reduction) = op.reduction()
            && ends.leaves(world, reduction.dim)?
        {
            let value = nodes::node(world, node)?.operand(0)?;
            let identity = |dtype| reduction.op.identity(dtype);
            let instead = mask(world, value, reduction.dim, identity, &mut body)?;
            replace(world, node, 0, instead)?;
        }
        for (at, dim) in padded_factors(world, node)? {
            if !ends.leaves(world, dim)? {
                continue;
            }
            let value = nodes::node(world, node)?.operand(at)?;
            let known = masked.iter().find(|(of, along, _)| (*of, *along) == (value, dim));
            let instead = match known {
                Some(&(.., instead)) => instead,
                None => {
                    let instead = mask(world, value, dim, nothing_added, &mut body)?;
                    masked.push((value, dim, instead));
                    instead
                }
            };
            replace(world, node, at, instead)?;
        }
        body.push(node);
    }
    walk::set_body(world, region, &body);
    Ok(())
}

/// What adds nothing to a product whose other factor is finite: zero, or one as the scale of zeros.
fn nothing_added(dtype: DType) -> Constant {
    if dtype == DType::F8E8M0 {
        Constant::Float(1.0)
    } else if dtype.is_float() {
        Constant::Float(0.0)
    } else {
        Constant::Integer(0)
    }
}

/// The operands of a product that need a mask, each with the dimension along which it is summed. A product
/// that was made of one with scales has factors that were multiplied with these.
fn padded_factors(world: &World, node: Entity) -> Result<SmallVec<[(usize, Dim); 2]>, Diagnostic> {
    let mut factors: SmallVec<[(usize, Dim); 2]> = SmallVec::new();
    let Some(PaddedFactors(padded)) = world.get::<PaddedFactors>(node) else { return Ok(factors) };
    let node = nodes::node(world, node)?;
    let [lhs, rhs, acc] = [node.operand(0)?, node.operand(1)?, node.operand(2)?];
    let ty = |value: Entity| Ok::<_, Bug>(nodes::node(world, value)?.ty);
    let MmaDims { k, .. } = MmaDims::of(ty(lhs)?, ty(rhs)?, ty(acc)?).map_err(Diagnostic::bug)?;
    for &at in padded {
        let (factor, is_scale) = if at > 2 { (at as usize - 3, true) } else { (at as usize, false) };
        let scales = is_scale.then(|| node.operands.0.get(at as usize)).flatten();
        let masked = match scales {
            Some(&scales) => {
                let of_blocks =
                    ty(scales)?.dims.iter().find(|dim| !ty(acc).is_ok_and(|ty| ty.dims.contains(dim)));
                (at as usize, *of_blocks.ok_or(Bug::new("scales of no blocks"))?)
            }
            None => (factor, k.get(factor).ok_or(Bug::new("a factor that a product lacks"))?.dim),
        };
        if !factors.contains(&masked) {
            factors.push(masked);
        }
    }
    Ok(factors)
}

/// Gives a node another operand.
fn replace(world: &mut World, node: Entity, at: usize, instead: Entity) -> Result<(), Bug> {
    let mut operands = nodes::fact_mut::<Operands>(world, node, "a fold without operands")?;
    *operands.0.get_mut(at).ok_or(Bug::new("a fold that lacks an operand"))? = instead;
    Ok(())
}

/// A value with another element in the place of each that is beyond the end of a dimension; its nodes go to
/// `body`.
fn mask(
    world: &mut World,
    value: Entity,
    dim: Dim,
    instead: impl Fn(DType) -> Constant,
    body: &mut Vec<Entity>,
) -> Result<Entity, Bug> {
    let origin = *nodes::node(world, value)?.origin;
    let ty = nodes::node(world, value)?.ty.clone();
    let dtype = ty.dtype.ok_or(Bug::new("a value without dtype"))?;
    let layout = nodes::fact::<Placement>(world, value, "a folded value without layout")?.0.clone();
    let along = projection(&layout, &[dim])?;
    let mut push = |op: Op, operands: &[Entity], ty: ValueType, layout: Option<&Layout>| {
        let operands = Operands(SmallVec::from_slice(operands));
        let made = NodeBundle { op, operands, ty, origin }.spawn(world, ());
        if let Some(layout) = layout {
            world.entity_mut(made).insert(Placement(layout.clone()));
        }
        body.push(made);
        made
    };
    let dims: Dims = smallvec![dim];
    let typed = |dims: &Dims, dtype: DType| ValueType { dims: dims.clone(), dtype: Some(dtype) };
    let place = push(Op::SelfIndex(dim), &[], typed(&dims, DType::I32), Some(&along));
    let size = push(Op::Size(dim), &[], typed(&Dims::new(), DType::I32), None);
    let inside = push(Op::Compare(Predicate::Lt), &[place, size], typed(&dims, DType::I1), Some(&along));
    let other = push(Op::Register(instead(dtype)), &[], typed(&Dims::new(), dtype), None);
    Ok(push(Op::Select, &[inside, value, other], ty, Some(&layout)))
}

fn projection(layout: &Layout, dims: &[Dim]) -> Result<Layout, Bug> {
    crate::passes::layout::element_layouts::projected(layout, dims)
        .map_err(|_| Bug::new("a layout that became too large"))
}
