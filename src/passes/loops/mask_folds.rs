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
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
use crate::ir::type_rules::contraction::MmaDims;
use crate::ir::types::DType;
use crate::passes::PassResult;
use crate::passes::facts::{FoldsMasked, Geometry, PaddedFactors, Remainder};
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module. It makes nodes that use one another, so it takes the whole world.
pub(crate) fn mask_folds(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let mut folds = false;
    for node in editor.nodes() {
        folds =
            editor.op(node)?.row().class == OpClass::Reduction || editor.get::<PaddedFactors>(node).is_some();
        if folds {
            break;
        }
    }
    if !folds {
        return Ok(());
    }
    let root = editor.root();
    editor.with_expressions(|editor, arena| {
        region(editor, root, &mut DimEnds { arena, loops: Loops::new() })
    })??;
    editor.attach(root, FoldsMasked);
    Ok(())
}

/// What tells whether tiles reach beyond the end of a dimension.
struct DimEnds<'a> {
    arena: &'a mut ExprArena,
    /// The loops around what is looked at.
    loops: Loops,
}

impl DimEnds<'_> {
    /// True if a tile may reach beyond the end of `dim`.
    fn leaves(&mut self, editor: &KernelEditor<'_>, dim: Dim) -> Result<bool, Bug> {
        Ok(can_leave(editor.kernel::<Geometry>()?, self.arena, &self.loops, dim))
    }
}

fn region(editor: &mut KernelEditor<'_>, region: Entity, ends: &mut DimEnds<'_>) -> PassResult {
    // Factors that several products of the region take are masked once.
    let mut masked: SmallVec<[(Entity, Dim, Entity); 4]> = SmallVec::new();
    editor.rewrite_region(region, &mut |editor, node| {
        let op = editor.op(node)?;
        if op.row().class == OpClass::Region {
            let around = ends.loops.len();
            ends.loops.extend(op.walks().map(|axis| (axis, editor.get::<Remainder>(node).is_some())));
            self::region(editor, node, ends)?;
            ends.loops.truncate(around);
        }
        if let Op::Reduce(reduction) = op
            && ends.leaves(editor, reduction.dim)?
        {
            let value = editor.node(node)?.operand(0)?;
            let instead = mask(editor, value, reduction.dim, |dtype| reduction.op.identity(dtype))?;
            editor.set_operand(node, 0, instead)?;
        }
        for (at, dim) in padded_factors(editor, node)? {
            if !ends.leaves(editor, dim)? {
                continue;
            }
            let value = editor.node(node)?.operand(at)?;
            let known = masked.iter().find(|(of, along, _)| (*of, *along) == (value, dim));
            let instead = match known {
                Some(&(.., instead)) => instead,
                None => {
                    let instead = mask(editor, value, dim, nothing_added)?;
                    masked.push((value, dim, instead));
                    instead
                }
            };
            editor.set_operand(node, at, instead)?;
        }
        Ok(())
    })
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
fn padded_factors(
    editor: &KernelEditor<'_>,
    node: Entity,
) -> Result<SmallVec<[(usize, Dim); 2]>, Diagnostic> {
    let mut factors: SmallVec<[(usize, Dim); 2]> = SmallVec::new();
    let Some(PaddedFactors(padded)) = editor.get::<PaddedFactors>(node) else { return Ok(factors) };
    let node = editor.node(node)?;
    let [lhs, rhs, acc] = [node.operand(0)?, node.operand(1)?, node.operand(2)?];
    let ty = |value: Entity| Ok::<_, Bug>(editor.node(value)?.ty);
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

/// A value with another element in the place of each that is beyond the end of a dimension.
fn mask(
    editor: &mut KernelEditor<'_>,
    value: Entity,
    dim: Dim,
    instead: impl Fn(DType) -> Constant,
) -> Result<Entity, Bug> {
    editor.model_on(value)?;
    let ty = editor.node(value)?.ty.clone();
    let dtype = ty.dtype.ok_or(Bug::new("a value without dtype"))?;
    let held = editor.fact::<Placement>(value, "a folded value without layout")?.clone();
    let along = Placement(projection(&held.0, &[dim])?);
    let typed = |dims: Dims, dtype: DType| ValueType { dims, dtype: Some(dtype) };
    let of_dim = |dtype| typed(smallvec![dim], dtype);
    let place = editor.add(Op::SelfIndex(dim), &[], of_dim(DType::I32), along.clone());
    let size = editor.add(Op::Size(dim), &[], typed(Dims::new(), DType::I32), ());
    let inside = editor.add(Op::Compare(Predicate::Lt), &[place, size], of_dim(DType::I1), along);
    let other = editor.add(Op::Register(instead(dtype)), &[], typed(Dims::new(), dtype), ());
    Ok(editor.add(Op::Select, &[inside, value, other], ty, held))
}

fn projection(layout: &Layout, dims: &[Dim]) -> Result<Layout, Bug> {
    crate::passes::layout::element_layouts::projected(layout, dims)
        .map_err(|_| Bug::new("a layout that became too large"))
}
