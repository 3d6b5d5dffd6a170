//! Logs: each gets the dimensions and the dtype of the value that is written to it, in front of them its
//! slots, and writes get the coordinates that their author did not write. From here on a log is a memory like
//! others. Where the options ask for checks of bounds, the kernel gets a log of its own for them.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::check_bounds::check_bounds;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::SymExpr;
use crate::ir::interpreter::own_coordinate;
use crate::ir::kernel::DimTable;
use crate::ir::mapping::Mapping;
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
use crate::ir::type_rules::{TypeRules, TypedAccess, TypedNode, WrittenBy};
use crate::ir::types::DType;
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings};
use crate::passes::kernel_editor::KernelEditor;
use crate::passes::options::BoundsChecking;

/// The pass itself; see the module.
pub(crate) fn type_logs(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let mut logs: NodeMap<usize> = NodeMap::default();
    for node in editor.nodes() {
        let ty = editor.node(node)?.ty;
        if ty.dtype.is_none() && editor.get::<DebugLog>(node).is_some() {
            logs.insert(node, ty.dims.len());
        }
    }
    let root = editor.root();
    type_writes(&mut editor, root, &logs)?;
    for (log, _) in logs.iter() {
        if editor.node(log)?.ty.dtype.is_none() {
            let fault = Diagnostic::invalid("nothing is written to this log").at(editor.location(log));
            return Err(fault.help("write a value to it, or remove it"));
        }
    }
    match editor.kernel::<Settings>()?.0.requested_bounds_checks() {
        BoundsChecking::Off => Ok(()),
        BoundsChecking::Coordinates => check_bounds(&mut editor),
    }
}

/// Types the logs that a region and those inside it write to; `logs` has the slots of each.
fn type_writes(editor: &mut KernelEditor<'_>, region: Entity, logs: &NodeMap<usize>) -> PassResult {
    editor.rewrite_region(region, &mut |editor, node| {
        let seen = editor.node(node)?;
        if seen.op.row().class == OpClass::Region {
            return type_writes(editor, node, logs);
        }
        if *seen.op != Op::Write {
            return Ok(());
        }
        let log = seen.memory()?;
        let Some(&slots) = logs.get(log) else { return Ok(()) };
        type_write(editor, node, log, slots).map_err(|fault| fault.at(editor.location(node)))
    })
}

/// Gives the log of a write its type, or checks that the write fits the type that it has.
fn type_write(editor: &mut KernelEditor<'_>, write: Entity, log: Entity, slots: usize) -> PassResult {
    let value = with_dims(editor, write)?;
    let (ty, own) = (editor.node(value)?.ty, editor.node(log)?.ty);
    let rules = TypeRules { dims: editor.kernel::<DimTable>()?, written_by: WrittenBy::Author };
    can_be_logged(&rules, ty)?;
    match own.dtype {
        None => {
            if let Some(&dim) = ty.dims.iter().find(|dim| own.dims.contains(dim)) {
                let name = rules.dims.name(dim);
                let text = format!("a log of {name} slots has a value with a dimension {name}");
                return Err(
                    Diagnostic::invalid(text).help("equal numbers are one dimension: ask for one slot more")
                );
            }
            let dims: Dims = own.dims.iter().chain(&ty.dims).copied().collect();
            let logged = ValueType { dims, dtype: ty.dtype };
            editor.attach(log, logged);
        }
        Some(_) => fits(&rules, ty, own, slots)?,
    }
    let written = editor.get::<Mapping>(write).map_or(0, |mapping| mapping.0.len());
    if written != slots {
        let given = match written {
            1 => "1 coordinate is".to_owned(),
            count => format!("{count} coordinates are"),
        };
        let text = format!("{given} given for a log with {slots} for its slots");
        let help = "a log without slots is written without coordinates, one with slots `at [slot]`";
        return Err(Diagnostic::invalid(text).help(help));
    }
    complete(editor, write, log, slots)
}

/// A log has values of dtypes that the host reads.
fn can_be_logged(rules: &TypeRules<'_>, ty: &ValueType) -> PassResult {
    let (text, help) = match ty.dtype {
        None => ("a number without dtype is logged".to_owned(), "log a value, or a register with a dtype"),
        Some(DType::I1) => (
            format!("a condition {} is logged", rules.show(ty)),
            "make it a number with `select`, and log that",
        ),
        Some(dtype) if dtype.packing().is_some() => {
            (format!("a value {} is logged", rules.show(ty)), "cast it to a wider float, and log that")
        }
        Some(_) => return Ok(()),
    };
    Err(Diagnostic::invalid(text).help(help))
}

/// All values of a log have one type.
fn fits(rules: &TypeRules<'_>, ty: &ValueType, log: &ValueType, slots: usize) -> PassResult {
    if log.dtype == ty.dtype
        && log.dims.len() == slots + ty.dims.len()
        && log.dims[slots..].iter().all(|dim| ty.dims.contains(dim))
    {
        return Ok(());
    }
    let held = ValueType { dims: log.dims[slots..].into(), dtype: log.dtype };
    let text = format!("a value {} is logged where {} was logged", rules.show(ty), rules.show(&held));
    Err(Diagnostic::invalid(text).help("log it under another name"))
}

/// The value that a write logs, along a dimension of one element if it has none.
fn with_dims(editor: &mut KernelEditor<'_>, write: Entity) -> Result<Entity, Bug> {
    let value = editor.node(write)?.operand(0)?;
    let ValueType { dims, dtype } = editor.node(value)?.ty;
    let dtype = *dtype;
    if !dims.is_empty() || dtype.is_none_or(|dtype| dtype == DType::I1) {
        return Ok(value);
    }
    let one = editor.kernel::<DimTable>()?.find(1u32.into());
    let one = one.ok_or(Bug::new("a kernel with logs has no dimension 1"))?;
    let ty = ValueType { dims: smallvec![one], dtype };
    let broadcast = editor.add(Op::Broadcast, &[value], ty, ());
    editor.set_operand(write, 0, broadcast)?;
    Ok(broadcast)
}

/// Adds the coordinates of the value to that of the slot.
fn complete(editor: &mut KernelEditor<'_>, write: Entity, log: Entity, slots: usize) -> PassResult {
    if slots == 0 {
        return Ok(());
    }
    let geometry = editor.kernel::<Geometry>()?;
    let mut own: SmallVec<[SymExpr; 4]> = SmallVec::new();
    for &dim in &editor.node(log)?.ty.dims[slots..] {
        own.push(own_coordinate(geometry.dim(dim).symbol)?);
    }
    editor.fact_mut::<Mapping>(write, "a write without coordinates")?.0.extend(own);
    let node = editor.node(write)?;
    let mut operands: SmallVec<[&ValueType; 5]> = SmallVec::new();
    for &operand in &node.operands.0 {
        operands.push(editor.node(operand)?.ty);
    }
    let access = TypedAccess { mapping: editor.get(write), ..TypedAccess::default() };
    let typed = TypedNode { op: Op::Write, stated: node.ty, operands, access };
    let rules = TypeRules { dims: editor.kernel::<DimTable>()?, written_by: WrittenBy::Author };
    rules.result(&typed).map(|_| ()).map_err(|fault| fault.diagnostic)
}
