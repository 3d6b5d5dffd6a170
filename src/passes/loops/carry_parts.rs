//! Loops that add a reduction to what they carry: lanes and waves carry sums of their own, and these are
//! joined once, after the loop. So a trip has no exchange among lanes and no barrier.
//!
//! It is done where the reduction goes nowhere but into the carried value, joined by its own operation, and
//! the carried value nowhere but into that: then nothing else can see the sums on the way. What the loop
//! begins with is joined last.
//!
//! The carried value may be multiplied on the way with a value from 0 to 1, as the running sum of a softmax
//! is, if the loop begins with zero: parts of a multiple are multiples of the parts. Not with any factor:
//! one that is infinite makes no number of a part that is zero, and a large one makes infinities of parts
//! that cancel.
//!
//! The parts are a dimension of the reduction (`Reduction::parts`), whose digits are the lanes and waves
//! that held the reduced one. The order of the sum changes with it, and the hash of the order: the levels of
//! a lane, what the loop carries, then lanes and waves.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::split_reductions::folded_as;
use crate::ir::constant::Constant;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{Dim, Layout, Mode, Source};
use crate::ir::node::*;
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::{Bug, NodeItem};
use crate::ir::op::OpClass;
use crate::passes::PassResult;
use crate::passes::analysis::counted_dims::{counted_dim, dim_name};
use crate::passes::analysis::fractions::{NodeReader, is_fraction};
use crate::passes::kernel_editor::KernelEditor;
use crate::passes::layout::element_layouts::{projected, too_large};

/// The pass itself; see the module. It makes nodes that use one another, so it takes the whole world.
pub(crate) fn carry_parts(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let mut uses = None;
    let mut joined: NodeMap<JoinedParts> = NodeMap::default();
    for region in editor.regions() {
        let mut carried: SmallVec<[CarriedParts; 2]> = SmallVec::new();
        editor.rewrite_region(region, &mut |editor, node| {
            let op = editor.op(node)?;
            if let Op::Iterate(_) = op
                && reduces(editor, node)?
            {
                let uses = match &uses {
                    Some(uses) => uses,
                    None => uses.insert(editor.use_counts()?),
                };
                for sum in accumulations(editor, node, uses)? {
                    carried.push(carry(editor, sum)?);
                }
            }
            if let Op::LoopResult(number) = op {
                let owner = editor.node(node)?.operand(0)?;
                let own = carried.iter().find(|own| (own.sum.owner, own.sum.number) == (owner, number));
                if let Some(own) = own {
                    joined.insert(node, join(editor, own, node)?);
                }
            }
            Ok(())
        })?;
    }
    if !joined.is_empty() {
        use_joined(&mut editor, &joined);
    }
    Ok(())
}

/// A carried value that a loop joins a reduction to.
struct Accumulation {
    owner: Entity,
    /// Its number among the carried values.
    number: u32,
    /// In the loop: the carried value, the reduction, and what joins them.
    nodes: SmallVec<[Entity; 4]>,
    reduced: Entity,
    reduction: Reduction,
    /// What the loop begins with.
    init: Entity,
    /// The type and layout of the result.
    ty: ValueType,
    layout: Layout,
    /// The layout of what is reduced.
    from: Layout,
}

/// How a loop joins a reduction to what it carries.
struct ReductionJoin {
    before: Entity,
    reduced: Entity,
    op: BinaryOp,
    /// What the carried value is multiplied with before that, and the product, if it has a node of its own.
    factor: Option<Entity>,
    scaled: Option<Entity>,
}

impl ReductionJoin {
    /// What joins carried value `number` and something else into `sum`; none if `sum` is something else.
    fn of(read: NodeReader<'_, '_>, number: u32, sum: &NodeItem) -> Result<Option<ReductionJoin>, Bug> {
        let carried = |node: Entity| read(node).is_ok_and(|seen| *seen.op == Op::IterArg(number));
        let pair = |a: Entity, b: Entity| match [carried(a), carried(b)] {
            [true, _] => Some((a, b)),
            [false, true] => Some((b, a)),
            [false, false] => None,
        };
        Ok(match (*sum.op, &sum.operands.0[..]) {
            (Op::Binary(op), &[a, b]) => match pair(a, b) {
                Some((before, reduced)) => {
                    Some(ReductionJoin { before, reduced, op, factor: None, scaled: None })
                }
                None => {
                    let mut found = None;
                    for (scaled, reduced) in [(a, b), (b, a)] {
                        let product = read(scaled)?;
                        let (Op::Binary(BinaryOp::Mul), &[x, y]) = (*product.op, &product.operands.0[..])
                        else {
                            continue;
                        };
                        found = found.or(pair(x, y).map(|(before, factor)| {
                            let (factor, scaled) = (Some(factor), Some(scaled));
                            ReductionJoin { before, reduced, op, factor, scaled }
                        }));
                    }
                    found.filter(|found| found.op == BinaryOp::Add)
                }
            },
            (Op::Ternary(TernaryOp::Fma), &[a, b, reduced]) => pair(a, b).map(|(before, factor)| {
                ReductionJoin { before, reduced, op: BinaryOp::Add, factor: Some(factor), scaled: None }
            }),
            _ => None,
        })
    }

    /// The nodes that have the type of the parts.
    fn nodes(&self, sum: Entity) -> impl Iterator<Item = Entity> + use<> {
        [Some(self.before), Some(self.reduced), self.scaled, Some(sum)].into_iter().flatten()
    }
}

/// True for a register of zeros.
fn is_zero(read: NodeReader<'_, '_>, node: Entity) -> Result<bool, Bug> {
    Ok(matches!(*read(node)?.op, Op::Register(Constant::Float(value)) if value == 0.0))
}

/// A sum of which a loop carries parts.
struct CarriedParts {
    sum: Accumulation,
    /// The dimension that counts the parts, and how they are held.
    parts: Dim,
    held: Layout,
}

/// What a loop's result became.
struct JoinedParts {
    /// The reduction of its parts.
    reduced: Entity,
    /// That with what the loop began with.
    whole: Entity,
}

/// True for a loop with a reduction.
fn reduces(editor: &KernelEditor<'_>, owner: Entity) -> Result<bool, Bug> {
    let body = editor.fact::<Body>(owner, "a loop without body")?;
    let reduces = |&node: &Entity| editor.op(node).is_ok_and(|op| op.row().class == OpClass::Reduction);
    Ok(body.0.iter().any(reduces))
}

/// True if lanes or waves share a dimension.
fn is_spread(layout: &Layout, dim: Dim) -> bool {
    let parts = |mode: &Mode| matches!(mode.source, Source::Lane | Source::Wave) && mode.extent > 1;
    layout.modes().iter().any(|mode| parts(mode) && mode.dim == Some(dim))
}

/// The carried values of a loop that are such sums.
fn accumulations(
    editor: &KernelEditor<'_>,
    owner: Entity,
    uses: &NodeMap<u32>,
) -> Result<SmallVec<[Accumulation; 2]>, Diagnostic> {
    let mut found = SmallVec::new();
    let yields = &editor.fact::<Yields>(owner, "a loop that hands nothing on")?.0;
    let once = |node: Entity| uses.get(node) == Some(&1);
    let body = editor.fact::<Body>(owner, "a loop without body")?;
    let inside: NodeSet = body.0.iter().copied().collect();
    let read = |node| editor.node(node);
    let inits = read(owner)?.operands;
    for (number, &sum) in (0..).zip(yields) {
        let seen = read(sum)?;
        let Some(joining) = ReductionJoin::of(&read, number, &seen)? else { continue };
        let reduced = read(joining.reduced)?;
        let Op::Reduce(reduction) = *reduced.op else { continue };
        let own: SmallVec<[Entity; 4]> = joining.nodes(sum).collect();
        let init = inits.at(number as usize)?;
        let is_joined = joining.op == reduction.op.joins() && reduction.parts.is_none();
        // What the loop begins with would be scaled with the parts.
        let may_be_scaled = match joining.factor {
            Some(factor) => is_zero(&read, init)? && is_fraction(&read, factor)?,
            None => true,
        };
        let in_loop = own.iter().all(|&node| inside.contains(node));
        if !is_joined || !may_be_scaled || !in_loop || !own.iter().all(|&node| once(node)) {
            continue;
        }
        // A sum of fewer bits is rounded in every trip.
        let ty = seen.ty.clone();
        if ty.dtype.is_none_or(|dtype| folded_as(dtype) != dtype) {
            continue;
        }
        // A value without dimensions has no layout.
        let layout = |node| editor.get::<Placement>(node).map(|placement| &placement.0);
        let (Some(from), Some(placed)) = (layout(reduced.operand(0)?), layout(sum)) else { continue };
        let is_alike = |node: Entity| layout(node) == Some(placed);
        let others = joining.factor.into_iter().chain([joining.reduced]);
        if !is_spread(from, reduction.dim) || !others.clone().all(is_alike) {
            continue;
        }
        found.push(Accumulation {
            owner,
            number,
            nodes: own,
            reduced: joining.reduced,
            reduction,
            init,
            layout: placed.clone(),
            from: from.clone(),
            ty,
        });
    }
    Ok(found)
}

/// Lets a loop carry parts; what it begins with comes in front of it.
fn carry(editor: &mut KernelEditor<'_>, sum: Accumulation) -> Result<CarriedParts, Diagnostic> {
    let reduced = sum.reduction.dim;
    let is_part = |mode: &Mode| mode.dim == Some(reduced);
    let count = |source| {
        let modes = sum.from.of_source(source).filter(|mode| is_part(mode));
        modes.map(|mode| mode.extent).product::<u32>()
    };
    let (lanes, waves) = (count(Source::Lane), count(Source::Wave));
    let name = format!("{} parts of {}", lanes * waves, dim_name(editor, reduced)?);
    let of_wave = (waves > 1).then_some(lanes);
    let parts = counted_dim(editor, &name, lanes * waves, of_wave)?;
    let mut dims = sum.ty.dims.clone();
    dims.push(parts);
    // The digits that were those of the reduced dimension count the parts.
    let mut next = [1, lanes];
    let counted = sum.from.modes().iter().map(|mode| {
        let step = match mode.source {
            Source::Lane => &mut next[0],
            Source::Wave => &mut next[1],
            Source::Register | Source::Replica => return *mode,
        };
        if !is_part(mode) {
            return *mode;
        }
        let counted = Mode::new(mode.source, mode.extent, parts, *step);
        *step *= mode.extent;
        counted
    });
    let counted: SmallVec<[Mode; 12]> = counted.collect();
    let held = projected(&Layout::new(counted).map_err(too_large)?, &dims)?;
    let ty = ValueType { dims, dtype: sum.ty.dtype };
    let dtype = ty.dtype.ok_or(Bug::new("a value without dtype"))?;
    let identity = Op::Register(sum.reduction.op.identity(dtype));
    editor.model_on(sum.init)?;
    let start = editor.add(identity, &[], ty.clone(), Placement(held.clone()));
    editor.set_operand(sum.owner, sum.number as usize, start)?;
    for &node in &sum.nodes {
        editor.attach(node, (ty.clone(), Placement(held.clone())));
    }
    editor.attach(sum.reduced, Op::Reduce(Reduction { parts: Some(parts), ..sum.reduction }));
    Ok(CarriedParts { sum, parts, held })
}

/// Joins the parts that a loop leaves, `result`, and what it began with, behind the result.
fn join(
    editor: &mut KernelEditor<'_>,
    CarriedParts { sum, parts, held }: &CarriedParts,
    result: Entity,
) -> Result<JoinedParts, Bug> {
    let ty = editor.node(sum.reduced)?.ty.clone();
    editor.attach(result, (ty, Placement(held.clone())));
    editor.put_down();
    editor.model_on(sum.reduced)?;
    let mut add =
        |op: Op, operands: &[Entity]| editor.add(op, operands, sum.ty.clone(), Placement(sum.layout.clone()));
    let op = sum.reduction.op;
    let reduced = add(Op::Reduce(Reduction { op, dim: *parts, parts: None }), &[result]);
    let whole = add(Op::Binary(op.joins()), &[sum.init, reduced]);
    Ok(JoinedParts { reduced, whole })
}

/// Puts what was joined in place of loops' results.
fn use_joined(editor: &mut KernelEditor<'_>, joined: &NodeMap<JoinedParts>) {
    for user in editor.nodes() {
        editor.rename(user, |used| match joined.get(*used) {
            Some(joined) if joined.reduced != user => *used = joined.whole,
            _ => {}
        });
    }
}
