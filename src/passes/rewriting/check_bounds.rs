//! Bounds checks, on request: in front of each access at coordinates that may leave its memory, the kernel
//! notes what left it, in a log of its own with an element for each coordinate of each such access. The
//! launch reads it and says which access went where.
//!
//! What is noted is the largest coordinate that is outside, so it does not depend on who comes first. All of
//! it is ordinary arithmetic and an atomic update, so neither lowering nor the simulator knows of it.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, operand_symbol};
use crate::ir::memory_layout::DebugLog;
use crate::ir::node::{Name, *};
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
use crate::ir::types::{AddressSpace, DType};
use crate::passes::PassResult;
use crate::passes::analysis::mapped_accesses::outside;
use crate::passes::facts::{
    BOUNDS_BIAS, BoundsChecks, CheckedCoordinate, DimGeometry, Expressions, Geometry,
};
use crate::passes::kernel_editor::KernelEditor;

/// Adds the checks; see the module.
pub(super) fn check_bounds(editor: &mut KernelEditor<'_>) -> PassResult {
    let mut found = Vec::new();
    for region in editor.regions() {
        for access in editor.body(region) {
            for dim in leaving(editor, access)? {
                found.push((access, dim));
            }
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let log = declare(editor, found.len())?;
    let mut checks = BoundsChecks::default();
    let mut left = found.into_iter().peekable();
    editor.rewrite(|editor, node| {
        while let Some((_, dim)) = left.next_if(|check| check.0 == node) {
            checks.0.push(check(editor, (node, dim), (log, checks.0.len()))?);
        }
        Ok(())
    })?;
    editor.attach(log, checks);
    Ok(())
}

/// The dimensions of the memory of an access along which its coordinates may be outside.
fn leaving(editor: &mut KernelEditor<'_>, access: Entity) -> Result<SmallVec<[Dim; 4]>, Diagnostic> {
    if editor.get::<Mapping>(access).is_none() {
        return Ok(SmallVec::new());
    }
    let memory = editor.node(access)?.memory()?;
    // Elements that a log has no slot for are dropped on purpose.
    if editor.op(memory)? != Op::Memory || editor.get::<DebugLog>(memory).is_some() {
        return Ok(SmallVec::new());
    }
    editor.with_expressions(|editor, arena| {
        let (dims, memory_dims) = (value_dims(editor, access)?, &editor.node(memory)?.ty.dims);
        let mapping = editor.fact::<Mapping>(access, WITHOUT_COORDINATES)?;
        Ok(outside(arena, editor.kernel::<Geometry>()?, mapping, &dims, memory_dims))
    })?
}

const WITHOUT_COORDINATES: &str = "an access without coordinates";

/// The dimensions of the value of an access.
fn value_dims(editor: &KernelEditor<'_>, access: Entity) -> Result<Dims, Bug> {
    let node = editor.node(access)?;
    editor.dims(if node.op.is_write() { node.operand(0)? } else { access })
}

/// Declares the log, of so many elements.
fn declare(editor: &mut KernelEditor<'_>, count: usize) -> Result<Entity, Diagnostic> {
    let count = u32::try_from(count).map_err(|_| Diagnostic::bug("more checks than operations"))?;
    let symbol = Symbol::new("bounds checks");
    let Some(dim) = editor.kernel_mut::<DimTable>()?.enter(symbol) else {
        let text = "a kernel has at most 256 dimensions, with the one that counts checks of bounds";
        return Err(Diagnostic::new(Kind::Limit, text).help("compile it without checks of bounds"));
    };
    let size = editor.kernel_mut::<Expressions>()?.0.int(count.into());
    editor.kernel_mut::<Geometry>()?.dims.push(DimGeometry::new(symbol, size, Some(count)));
    let body = editor.body(editor.root());
    let is_named =
        |name: &str| body.iter().any(|&node| editor.get::<Name>(node).is_some_and(|known| &*known.0 == name));
    let mut name = "bounds_checks".to_owned();
    while is_named(&name) {
        name.push('_');
    }
    let ty = ValueType { dims: smallvec![dim], dtype: Some(DType::I64) };
    let facts = (Name(name.as_str().into()), Space(AddressSpace::Global), DebugLog);
    let log = editor.make(Op::Memory, &[], ty, facts);
    // After the logs of the author.
    let is_declaration =
        |node: &&Entity| editor.op(**node).is_ok_and(|op| op.row().class == OpClass::Declaration);
    let declared = body.iter().take_while(is_declaration).count();
    editor.kernel_mut::<Body>()?.0.insert(declared, log);
    Ok(log)
}

/// Adds the check of one coordinate in front of its access.
fn check(
    editor: &mut KernelEditor<'_>,
    (access, dim): (Entity, Dim),
    (log, number): (Entity, usize),
) -> Result<CheckedCoordinate, Diagnostic> {
    let node = editor.node(access)?;
    let (memory, origin, front) = (node.memory()?, *node.origin, node.op.values_in_front());
    let operands = node.operands.0.clone();
    let at = editor.node(memory)?.ty.dims.iter().position(|&own| own == dim);
    let mapping = editor.fact::<Mapping>(access, WITHOUT_COORDINATES)?;
    let coordinate = at.and_then(|at| mapping.0.get(at)).cloned();
    let coordinate = coordinate.ok_or(Bug::new("a coordinate that is not there"))?;
    let dims = value_dims(editor, access)?;
    let mut maker = editor.maker(&dims);
    maker.values = operands.get(front..operands.len() - 1).unwrap_or_default();
    let place = maker.value_of(&coordinate)?;
    let (zero, size) = (maker.number(0, DType::I32), maker.size(dim));
    let (low, high) = (maker.compare(Predicate::Lt, place, zero), maker.compare(Predicate::Ge, place, size));
    let mut leaves = maker.binary(BinaryOp::Or, low, high, DType::I1);
    // Elements that the value does not have are nowhere.
    for &own in &dims {
        let (index, size) = (maker.index(own), maker.size(own));
        let exists = maker.compare(Predicate::Lt, index, size);
        leaves = maker.binary(BinaryOp::And, leaves, exists, DType::I1);
    }
    let own = i32::try_from(number).map_err(|_| Diagnostic::bug("more checks than operations"))?;
    let (own, nowhere) = (maker.number(i64::from(own), DType::I32), maker.number(-1, DType::I32));
    let slot = maker.made(Op::Select, &[leaves, own, nowhere], DType::I32);
    let wide = maker.converted(Conversion::Cast, place, DType::I64);
    let noted = maker.with(BinaryOp::Add, wide, BOUNDS_BIAS, DType::I64);
    let update = maker.made(Op::Atomic(AtomicOp::Max), &[noted, slot, log], DType::I64);
    editor.attach(update, Mapping(smallvec![operand_symbol(0).into()]));
    let name = editor.fact::<Name>(memory, "a memory without name")?.0.clone();
    Ok(CheckedCoordinate { memory: name, dim, origin })
}
