//! Type inference: one forward walk gives every value its dims and dtype, and reports operands that do not
//! fit together.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::arrival;
use super::atomic_updates;
use super::mapped_accesses::{checked, with_sizes};
use super::product_types;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::kernel::{DimTable, KernelName, Locations};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::{DTypes, NodeRole, OpClass, ResultType};
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::{self, NodeList};
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings};
use crate::passes::options::Deny;

type Types<'w, 's> = Query<'w, 's, &'static mut ValueType>;

/// The names that the rules need for messages.
struct RuleContext<'a> {
    dims: &'a DimTable,
    at: Option<Location>,
}

impl RuleContext<'_> {
    fn show(&self, ty: &ValueType) -> String {
        let names: Vec<_> = ty.dims.iter().map(|&d| self.dims.name(d)).collect();
        format!("[{}] {}", names.join(", "), ty.dtype.map_or("?", DType::name))
    }

    /// How a value gets dimensions that it lacks.
    fn widen(&self, dims: &Dims) -> String {
        let names: Vec<_> = dims.iter().map(|&d| self.dims.name(d)).collect();
        let names = names.join(", ");
        format!("repeat it with `broadcast %x [{names}]` (in Rust, `broadcast([..])`)")
    }

    /// Whether a dimension of an operand is one of the result, or follows one of them: its elements are
    /// repeated then.
    fn repeats(&self, dim: Dim, result: &Dims) -> bool {
        result.contains(&dim) || self.dims.scaled_from(dim).is_some_and(|(base, _)| result.contains(&base))
    }

    fn fail(&self, text: String, help: &str) -> Diagnostic {
        Diagnostic::invalid(text).at(self.at.clone()).help(help)
    }
}

/// The pass itself; see the module.
pub(crate) fn infer_types(
    kernel: Single<(&Body, &DimTable, &Locations, &Geometry, &Settings), With<KernelName>>,
    nodes: Query<(&Op, &Operands, &Origin)>,
    bodies: Query<&Body>,
    yields: Query<&Yields>,
    mut types: Types,
    mut mappings: Query<&mut Mapping>,
) -> PassResult {
    let (body, dims, locations, geometry, settings) = *kernel;
    let mut order = NodeList::new();
    walk::preorder(body, &|node| bodies.get(node).ok(), &mut order);
    for &node in &order {
        let (op, operands, origin) = nodes.get(node)?;
        let context = RuleContext { dims, at: locations.get(origin.0) };
        if op.row().class == OpClass::Region {
            if let Some(condition) = op.condition(&operands.0) {
                judge_condition(*op, types.get(condition)?, &context)?;
            }
            // The carried values have the types of the initial ones, which are known by now.
            let args = NodeList::from_slice(&bodies.get(node)?.0);
            for arg in args {
                if let Op::IterArg(number) = *nodes.get(arg)?.0 {
                    let ty = types.get(operands.0[number as usize])?.clone();
                    if ty.dtype == Some(DType::I1) {
                        let text = format!("a {} carries {}", in_words(*op), context.show(&ty));
                        return Err(context.fail(text, "carry a number: `select` makes one of a condition, and `compare` the condition again"));
                    }
                    *types.get_mut(arg)? = ty;
                }
            }
            continue;
        }
        if op.is_access()
            && let Ok(mut mapping) = mappings.get_mut(node)
        {
            let ty = match is_log(operands, &nodes, &types)? {
                // The slot alone is written; `type_logs` checks the rest.
                true if *op == Op::Write => types.get(operands.at(0)?)?.clone(),
                true => return Err(only_written(&context)),
                false => mapped(*op, operands, node, &nodes, &mut types, &mapping, &context)?,
            };
            *mapping = with_sizes(&mapping, &ty.dims, geometry, &settings.0)
                .map_err(|fault| fault.at(context.at.clone()))?;
            if let Op::Atomic(op) = op {
                judge_update(*op, operands, &nodes, &types, &context)?;
            }
            if op.row().gives == NodeRole::Value {
                *types.get_mut(node)? = ty;
            }
            continue;
        }
        if op.is_access() && is_log(operands, &nodes, &types)? {
            if *op == Op::Write {
                continue;
            }
            return Err(only_written(&context));
        }
        let ty = infer(op, operands, node, &nodes, &mut types, &context)?;
        if let Some(ty) = ty {
            *types.get_mut(node)? = ty;
        }
    }
    for &node in &order {
        let (op, operands, origin) = nodes.get(node)?;
        if op.row().class != OpClass::Region {
            continue;
        }
        let context = RuleContext { dims, at: locations.get(origin.0) };
        let yields = yields.get(node)?;
        if let (Op::While, Some(&again)) = (op, yields.0.last()) {
            judge_condition(*op, types.get(again)?, &context)?;
        }
        for (&init, &next) in op.initial(&operands.0).iter().zip(&yields.0) {
            let (init, next) = (types.get(init)?, types.get(next)?);
            if init != next {
                let what = if let Op::Iterate(axis) = op {
                    format!("the loop over {}", dims.name(*axis))
                } else {
                    format!("the {}", in_words(*op))
                };
                let text =
                    format!("{what} starts with {} but hands on {}", context.show(init), context.show(next));
                return Err(context.fail(text, "carried values keep their type"));
            }
        }
    }
    if settings.0.denies(Deny::Nondeterministic) {
        arrival::judge(&order, &nodes, &types, &yields, &mappings.as_readonly(), locations)?;
    }
    let Some((node, dim)) = outside_of_loop(body, geometry, &nodes, &bodies, &types, &mut Vec::new())? else {
        return Ok(());
    };
    let context = RuleContext { dims, at: locations.get(nodes.get(node)?.2.0) };
    let name = dims.name(dim);
    if let Op::Iterate(_) = nodes.get(node)?.0 {
        let text = format!("a loop over {name} is inside a loop over {name}");
        let help = format!(
            "in there the part of {name} that a value has would be either loop's: give the inner one a dimension of \
             its own, of the same size, and read at its places, `read a at [{name}2] as [{name}2]`"
        );
        return Err(context.fail(text, &help));
    }
    if let Op::Iteration(_) = nodes.get(node)?.0 {
        let text = format!("the iteration of a loop over {name} outside of such a loop");
        return Err(context.fail(text, "use it inside of the loop"));
    }
    let text = format!("{name} has a loop tile, and this value has {name} outside of a loop over it");
    Err(context.fail(text, "use it inside of a loop over the dimension, or remove the loop tile"))
}

/// Checks that all lanes and waves of a workgroup agree on a condition: it is one value, and has no elements.
fn judge_condition(op: Op, ty: &ValueType, context: &RuleContext) -> PassResult {
    if ty.dtype != Some(DType::I1) {
        let text = format!("the condition of a {} is {}, and has to be i1", in_words(op), context.show(ty));
        return Err(context.fail(text, "compare something: comparisons are i1"));
    }
    if !ty.dims.is_empty() {
        let text = format!(
            "the condition of a {} is {}: it differs from element to element, and with it from lane to lane",
            in_words(op),
            context.show(ty)
        );
        let help = "choose between elements with `select`, or make one condition of all of them: reduce \
                    numbers over all dimensions, and compare the result";
        return Err(context.fail(text, help));
    }
    Ok(())
}

/// A region in words.
fn in_words(op: Op) -> &'static str {
    if op == Op::Conditional {
        "conditional"
    } else if op == Op::While {
        "while loop"
    } else {
        "loop"
    }
}

/// Whether an access is one of a log that has no type yet.
fn is_log(
    operands: &Operands,
    nodes: &Query<(&Op, &Operands, &Origin)>,
    types: &Types,
) -> Result<bool, Diagnostic> {
    let memory = operands.last()?;
    Ok(types.get(memory)?.dtype.is_none() && *nodes.get(memory)?.0 == Op::Memory)
}

fn only_written(context: &RuleContext) -> Diagnostic {
    context.fail("a log is read or updated".to_owned(), "logs are written; keep a memory to read it again")
}

/// The type of the value of a mapped access.
fn mapped(
    op: Op,
    operands: &Operands,
    node: Entity,
    nodes: &Query<(&Op, &Operands, &Origin)>,
    types: &mut Types,
    mapping: &Mapping,
    context: &RuleContext,
) -> Result<ValueType, Diagnostic> {
    for at in 0..op.values_in_front() {
        adopt_dtype(operands.at(at)?, operands.last()?, nodes, types, context)?;
    }
    let mut known: SmallVec<[&ValueType; 4]> = SmallVec::new();
    for &operand in &operands.0 {
        known.push(types.get(operand)?);
    }
    let show = |ty: &ValueType| context.show(ty);
    checked(op, types.get(node)?, mapping, &known, &show).map_err(|fault| fault.at(context.at.clone()))
}

/// The first value that has a tiled dimension where no loop walks along it, or the first loop over a
/// dimension that a loop around it already walks along: there it is ambiguous which tile is meant.
fn outside_of_loop(
    body: &Body,
    geometry: &Geometry,
    nodes: &Query<(&Op, &Operands, &Origin)>,
    bodies: &Query<&Body>,
    types: &Types,
    loops: &mut Vec<Dim>,
) -> Result<Option<(Entity, Dim)>, Diagnostic> {
    for &node in &body.0 {
        let op = nodes.get(node)?.0;
        if let Op::Conditional | Op::While = *op {
            let found = outside_of_loop(bodies.get(node)?, geometry, nodes, bodies, types, loops)?;
            if found.is_some() {
                return Ok(found);
            }
        } else if let Op::Iterate(axis) = *op {
            if loops.contains(&axis) {
                return Ok(Some((node, axis)));
            }
            loops.push(axis);
            let found = outside_of_loop(bodies.get(node)?, geometry, nodes, bodies, types, loops)?;
            loops.pop();
            if found.is_some() {
                return Ok(found);
            }
        } else if op.row().class != OpClass::Declaration {
            if let Op::Iteration(dim) = *op
                && !loops.contains(&dim)
            {
                return Ok(Some((node, dim)));
            }
            let outside =
                |d: &&Dim| geometry.dim(**d).tiling.is_some() && !loops.contains(&geometry.loop_dim(**d));
            if let Some(&dim) = types.get(node)?.dims.iter().find(outside) {
                return Ok(Some((node, dim)));
            }
        }
    }
    Ok(None)
}

/// The type of one node's result; `None` when it has none or already has its type.
fn infer(
    op: &Op,
    operands: &Operands,
    node: Entity,
    nodes: &Query<(&Op, &Operands, &Origin)>,
    types: &mut Types,
    context: &RuleContext,
) -> Result<Option<ValueType>, Diagnostic> {
    let of = |at: usize| operands.0[at];
    Ok(match op {
        Op::Register(constant) => {
            if let Some(dtype) = types.get(node)?.dtype {
                judge(*constant, dtype, context)?;
            }
            None
        }
        Op::Memory
        | Op::Scalar
        | Op::SelfIndex(_)
        | Op::Size(_)
        | Op::WorkgroupId(_)
        | Op::Iteration(_)
        | Op::Conditional
        | Op::While
        | Op::Allocate
        | Op::IterArg(_)
        | Op::Iterate(_)
        | Op::Pipeline(_)
        | Op::Barrier
        | Op::Control(_) => None,
        Op::SetSymbol(symbol) => {
            let ty = types.get(of(0))?;
            if ty.dtype != Some(DType::I32) || !ty.dims.is_empty() {
                let text = format!(
                    "iterations depend on {symbol}, which is set to {}, and has to be an i32 without dimensions",
                    context.show(ty)
                );
                let help =
                    "read one element, `read counts at [%number] as []`, or make one of all by a reduction";
                return Err(context.fail(text, help));
            }
            None
        }
        Op::GlobalToShared => {
            let text = "a load to LDS is written".to_owned();
            return Err(context.fail(text, "read a shared memory, and compile with loads straight into LDS"));
        }
        Op::Read => Some(types.get(of(0))?.clone()),
        Op::LoopResult(number) => {
            let init = nodes.get(of(0))?.1.0[*number as usize];
            Some(types.get(init)?.clone())
        }
        Op::Atomic(op) => {
            let memory = operands.last()?;
            if *nodes.get(memory)?.0 != Op::Memory {
                let text = "an LDS buffer is updated atomically".to_owned();
                return Err(context.fail(text, "update a memory, or read and write the buffer"));
            }
            for &value in &operands.0[..op.values()] {
                adopt_dtype(value, memory, nodes, types, context)?;
                check_write(types.get(value)?, types.get(memory)?, context)?;
            }
            judge_update(*op, operands, nodes, types, context)?;
            Some(types.get(of(0))?.clone())
        }
        Op::Write => {
            adopt_dtype(of(0), of(1), nodes, types, context)?;
            let (value, memory) = (types.get(of(0))?, types.get(of(1))?);
            check_write(value, memory, context)?;
            None
        }
        Op::Mma(_) | Op::ScaledMma(_) => {
            let operands = operands.0.iter().map(|&operand| types.get(operand));
            let operands: SmallVec<[&ValueType; 5]> = operands.collect::<Result<_, _>>()?;
            let sum = product_types::sum_type(*op, &operands, context.dims, &|ty| context.show(ty));
            Some(sum.map_err(|(text, help)| context.fail(text, &help))?)
        }
        Op::Convert(conversion) => {
            let (from, to) = (types.get(of(0))?, types.get(node)?.dtype);
            if to == Some(DType::I1) {
                let text = format!("`{}` does not turn {} into i1", op.row().word, context.show(from));
                return Err(context.fail(text, "compare with zero instead"));
            }
            admitted(op, from, context)?;
            if let (ResultType::Converted(sizes), Some(old), Some(new)) = (op.row().result, from.dtype, to)
                && !sizes.admit(old, new)
            {
                let text = format!("`{}` does not turn {} into {new}", op.row().word, context.show(from));
                return Err(context.fail(text, "choose a dtype of the same size, or cast"));
            }
            let dims = to.and_then(|to| context.dims.converted(*conversion, from, to)).ok_or_else(|| {
                let word = op.row().word;
                let text =
                    format!("`{word}` makes {} of {}", to.map_or("?", DType::name), context.show(from));
                context
                    .fail(text, "elements of f4e2m1 along K are two in a byte along K/2, the last dimension")
            })?;
            Some(ValueType { dims, dtype: to })
        }
        Op::Unary(_) => {
            let ty = types.get(of(0))?;
            admitted(op, ty, context)?;
            Some(ty.clone())
        }
        Op::Binary(_) => {
            let ty = broadcast(of(0), of(1), op.row().operands, nodes, types, context)?;
            admitted(op, &ty, context)?;
            Some(ty)
        }
        Op::Ternary(_) => {
            // A number takes the dtype of any of the others.
            for (scalar, other) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
                adopt_dtype(of(scalar), of(other), nodes, types, context)?;
            }
            let admit = op.row().operands;
            let first = broadcast(of(0), of(1), admit, nodes, types, context)?;
            broadcast(of(1), of(2), admit, nodes, types, context)?;
            admitted(op, &first, context)?;
            Some(ValueType { dims: join_dims(&first, types.get(of(2))?, context)?, dtype: first.dtype })
        }
        Op::Compare(_) => {
            let ty = broadcast(of(0), of(1), op.row().operands, nodes, types, context)?;
            Some(ValueType { dims: ty.dims, dtype: Some(DType::I1) })
        }
        Op::Broadcast => {
            let operand = types.get(of(0))?;
            admitted(op, operand, context)?;
            let dims = types.get(node)?.dims.clone();
            if let Some(&missing) = operand.dims.iter().find(|&&dim| !context.repeats(dim, &dims)) {
                let text = format!(
                    "a value {} is repeated to dimensions without {}",
                    context.show(operand),
                    context.dims.name(missing)
                );
                return Err(context.fail(text, "name all dimensions that the value has, in any order"));
            }
            Some(ValueType { dims, dtype: operand.dtype })
        }
        // These are made later.
        Op::Decode(_) | Op::Encode(_) => {
            let dims = match operands.0.len() {
                1 => types.get(of(0))?.dims.clone(),
                _ => join_dims(types.get(of(0))?, types.get(of(1))?, context)?,
            };
            Some(ValueType { dims, dtype: types.get(node)?.dtype })
        }
        Op::Rearrange => types.get(of(0)).ok().cloned(),
        Op::Reduce(reduction) => {
            let operand = types.get(of(0))?;
            admitted(op, operand, context)?;
            let mut dims = operand.dims.clone();
            dims.retain(|dim| *dim != reduction.dim);
            if dims.len() == operand.dims.len() {
                let along = context.dims.name(reduction.dim);
                let (word, value) = (op.row().word, context.show(operand));
                let text = format!("`{word}` runs along {along}, which the value {value} does not have");
                return Err(context.fail(text, "reduce along a dimension of the value"));
            }
            Some(ValueType { dims, dtype: operand.dtype })
        }
        Op::Scan(scan) => {
            let operand = types.get(of(0))?;
            admitted(op, operand, context)?;
            if !operand.dims.contains(&scan.dim) {
                let along = context.dims.name(scan.dim);
                let (word, value) = (op.row().word, context.show(operand));
                let text = format!("`{word}` runs along {along}, which the value {value} does not have");
                return Err(context.fail(text, "sum up along a dimension of the value"));
            }
            Some(operand.clone())
        }
        Op::Sort(sort) => {
            let operand = types.get(of(0))?;
            admitted(op, operand, context)?;
            if !operand.dims.contains(&sort.dim) {
                let along = context.dims.name(sort.dim);
                let (word, value) = (op.row().word, context.show(operand));
                let text = format!("`{word}` runs along {along}, which the value {value} does not have");
                return Err(context.fail(text, "sort along a dimension of the value"));
            }
            let dtype = if sort.op.gives_places() { Some(DType::I32) } else { operand.dtype };
            Some(ValueType { dims: operand.dims.clone(), dtype })
        }
        Op::Select => {
            let condition = types.get(of(0))?.clone();
            if condition.dtype != Some(DType::I1) {
                let text =
                    format!("the condition of select is {}, and has to be i1", context.show(&condition));
                return Err(context.fail(text, "compare it with something: `compare gt %x, %y`"));
            }
            let ty = broadcast(of(1), of(2), DTypes::Numbers, nodes, types, context)?;
            Some(ValueType { dims: join_dims(&condition, &ty, context)?, dtype: ty.dtype })
        }
    })
}

/// Rejects an operand whose dtype the operation's row does not admit.
fn admitted(op: &Op, operand: &ValueType, context: &RuleContext) -> PassResult {
    let row = op.row();
    let Some(dtype) = operand.dtype else {
        let text = format!("{} of a constant without a dtype", row.word);
        return Err(context.fail(text, "give it one: `register [] f32 1.0`"));
    };
    if row.operands.admit(dtype) {
        return Ok(());
    }
    let text = format!("`{}` does not take {}", row.word, context.show(operand));
    Err(context.fail(text, row.operands.help(dtype)))
}

/// Gives the untyped scalar `scalar` the dtype of `other`.
fn adopt_dtype(
    scalar: Entity,
    other: Entity,
    nodes: &Query<(&Op, &Operands, &Origin)>,
    types: &mut Types,
    context: &RuleContext,
) -> Result<(), Diagnostic> {
    if types.get(scalar)?.dtype.is_none()
        && let Op::Register(constant) = nodes.get(scalar)?.0
    {
        let ty = types.get(other)?;
        let dtype = ty.dtype;
        if let (Constant::Float(value), Some(dtype)) = (constant, dtype)
            && !dtype.is_float()
            && dtype != DType::I1
        {
            let text = format!("the constant {value:?} meets {}", context.show(ty));
            return Err(context.fail(text, "use a constant without a fraction, or cast to a floating dtype"));
        }
        if let Some(dtype) = dtype.filter(|&dtype| dtype != DType::I1) {
            judge(*constant, dtype, context)?;
        }
        types.get_mut(scalar)?.dtype = dtype;
    }
    Ok(())
}

/// Rejects a constant that its dtype does not hold.
fn judge(constant: Constant, dtype: DType, context: &RuleContext) -> PassResult {
    constant.bits(dtype).map(|_| ()).map_err(|fault| fault.at(context.at.clone()))
}

/// The type of two operands together, of dtypes that are admitted.
fn broadcast(
    a: Entity,
    b: Entity,
    admit: DTypes,
    nodes: &Query<(&Op, &Operands, &Origin)>,
    types: &mut Types,
    context: &RuleContext,
) -> Result<ValueType, Diagnostic> {
    adopt_dtype(a, b, nodes, types, context)?;
    adopt_dtype(b, a, nodes, types, context)?;
    for scalar in [a, b] {
        if types.get(scalar)?.dtype.is_none()
            && let Op::Register(constant) = nodes.get(scalar)?.0
        {
            // Two bare numbers.
            let dtype = constant.dtype_alone();
            judge(*constant, dtype, context)?;
            types.get_mut(scalar)?.dtype = Some(dtype);
        }
    }
    let (left, right) = (types.get(a)?, types.get(b)?);
    let conditions = [left, right].iter().filter(|ty| ty.dtype == Some(DType::I1)).count();
    if conditions == 2 && admit.admit(DType::I1) {
        for scalar in [a, b] {
            if let Op::Register(constant) = nodes.get(scalar)?.0 {
                judge(*constant, DType::I1, context)?;
            }
        }
    }
    if left.dtype != right.dtype || conditions == 2 && !admit.admit(DType::I1) {
        let text = format!("the operands are {} and {}", context.show(left), context.show(right));
        let help = match (left.dtype, right.dtype) {
            (Some(DType::I1), _) | (_, Some(DType::I1)) if admit.admit(DType::I1) => {
                "compare the other one, or cast the condition"
            }
            (Some(DType::I1), _) | (_, Some(DType::I1)) => "conditions have no arithmetic: use select",
            _ => "arithmetic wants equal dtypes: cast one of them",
        };
        return Err(context.fail(text, help));
    }
    Ok(ValueType { dims: join_dims(left, right, context)?, dtype: left.dtype })
}

/// Dims of an element-wise result: those of the operand that has all of the other's.
fn join_dims(a: &ValueType, b: &ValueType, context: &RuleContext) -> Result<Dims, Diagnostic> {
    let contains = |big: &Dims, small: &Dims| small.iter().all(|&dim| context.repeats(dim, big));
    if contains(&a.dims, &b.dims) {
        Ok(a.dims.clone())
    } else if contains(&b.dims, &a.dims) {
        Ok(b.dims.clone())
    } else {
        let text = format!("{} and {} have no common shape", context.show(a), context.show(b));
        let mut dims = a.dims.clone();
        dims.extend(b.dims.iter().filter(|dim| !a.dims.contains(dim)).copied());
        let help = format!("one operand must have all dimensions of the other: {}", context.widen(&dims));
        Err(context.fail(text, &help))
    }
}

/// Checks the values of an atomic update.
fn judge_update(
    op: AtomicOp,
    operands: &Operands,
    nodes: &Query<(&Op, &Operands, &Origin)>,
    types: &Types,
    context: &RuleContext,
) -> PassResult {
    let mut values: SmallVec<[&ValueType; 2]> = SmallVec::new();
    for &value in &operands.0[..op.values()] {
        values.push(types.get(value)?);
    }
    let in_lds = *nodes.get(operands.last()?)?.0 == Op::Allocate;
    let space = if in_lds { AddressSpace::Shared } else { AddressSpace::Global };
    let show = |ty: &ValueType| context.show(ty);
    atomic_updates::judge(op, &values, space, &show).map_err(|fault| fault.at(context.at.clone()))
}

fn check_write(value: &ValueType, memory: &ValueType, context: &RuleContext) -> Result<(), Diagnostic> {
    let same_dims =
        value.dims.len() == memory.dims.len() && value.dims.iter().all(|d| memory.dims.contains(d));
    if same_dims && value.dtype == memory.dtype {
        return Ok(());
    }
    let text = format!("a value {} is written to a memory {}", context.show(value), context.show(memory));
    let missing = value.dims.iter().all(|d| memory.dims.contains(d));
    let help = match (same_dims, missing) {
        (true, _) => "cast the value".to_owned(),
        (false, true) => {
            format!("the value needs exactly the memory's dimensions: {}", context.widen(&memory.dims))
        }
        (false, false) => "the value needs exactly the memory's dimensions".to_owned(),
    };
    Err(context.fail(text, &help))
}
