//! Values that are read at coordinates: each is written to an LDS buffer of its own as soon as it exists, and
//! the reads are reads of the buffer. So elements change places among the lanes and waves of a workgroup.
//!
//! It is done before any layout is chosen, and later passes see buffers alone. The reference interpreter
//! takes the elements from the value.

use bevy_ecs::prelude::*;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, SymNode, SymOp};
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
use crate::ir::types::DType;
use crate::ir::walk::NodeList;
use crate::passes::PassResult;
use crate::passes::analysis::mapped_accesses::block_of;
use crate::passes::facts::{DimGeometry, Geometry};
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module.
pub(crate) fn stage_values(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    // The buffer of a value, and the write that fills it.
    let mut staged: NodeMap<[Entity; 2]> = NodeMap::default();
    for node in editor.nodes() {
        let seen = editor.node(node)?;
        if *seen.op != Op::Read || editor.get::<Mapping>(node).is_none() {
            continue;
        }
        let (value, at) = (seen.memory()?, seen.operands.0.len() - 1);
        if editor.op(value)?.row().class == OpClass::Declaration {
            continue;
        }
        judge(&editor, node, value)?;
        let buffer = match staged.get(value) {
            Some(&[buffer, _]) => buffer,
            None => {
                editor.model_on(node)?;
                let buffer = editor.add_buffer(editor.node(value)?.ty.clone());
                let write = editor.make(Op::Write, &[value, buffer], ValueType::unknown(), ());
                staged.insert(value, [buffer, write]);
                buffer
            }
        };
        editor.set_operand(node, at, buffer)?;
    }
    for region in editor.regions() {
        let with_writes = with_writes(&editor, &editor.body(region), &staged)?;
        editor.set_body(region, &with_writes);
    }
    editor.place_buffers()
}

/// Refuses what LDS cannot hold, and coordinates in what another workgroup or iteration has of a value.
fn judge(editor: &KernelEditor<'_>, read: Entity, value: Entity) -> PassResult {
    let at = || editor.location(read);
    let ty = editor.node(value)?.ty;
    if ty.dtype == Some(DType::I1) {
        let help = "read a number at coordinates: `select` makes one of a condition, and `compare` the \
                    condition again";
        return Err(Diagnostic::invalid("a condition is read at coordinates").at(at()).help(help));
    }
    let geometry = editor.kernel::<Geometry>()?;
    let mapping = editor.fact::<Mapping>(read, "a read without coordinates")?;
    for (coordinate, &dim) in mapping.0.iter().zip(&ty.dims) {
        let entry = geometry.dim(dim);
        let whose = match (entry.tiling, entry.workgroup) {
            (Some(_), _) => "the part of another iteration",
            (None, Some(_)) => "another workgroup's part",
            (None, None) => continue,
        };
        let is_own = || is_own_block(coordinate, entry, geometry) || is_in_block(coordinate, dim, geometry);
        if coordinate.as_symbol() != Some(entry.symbol) && !is_own() {
            let name = entry.symbol.name();
            let text = format!("this coordinate along {name} may lie in {whose} of the value");
            let help = format!("the coordinate along {name} is `{name}`, or {name} is not divided");
            return Err(Diagnostic::invalid(text).at(at()).help(help));
        }
    }
    Ok(())
}

/// Whether a coordinate is that of the block in which an element of the base lies.
fn is_own_block(coordinate: &SymExpr, entry: &DimGeometry, geometry: &Geometry) -> bool {
    entry.scaled_from.is_some_and(|(base, by)| *coordinate == block_of(geometry.dim(base).symbol, by))
}

/// Whether a coordinate along `dim` is that of an element of a block, `K/2 * 2 + 1` or `K/32 * 32 + x % 32`:
/// the workgroup that has a block has all of its elements.
fn is_in_block(coordinate: &SymExpr, dim: Dim, geometry: &Geometry) -> bool {
    geometry.dims.values().any(|entry| match entry.scaled_from {
        Some((base, by)) if base == dim => {
            let first = SymExpr::from(entry.symbol) * i64::from(by);
            let is_place = |place: &SymExpr| {
                let is_number = matches!(place.node(), SymNode::Int(at) if (0..i128::from(by)).contains(at));
                let is_within = matches!(place.node(), SymNode::Operation(SymOp::Mod, _, within)
                    if *within.node() == SymNode::Int(by.into()));
                is_number || is_within
            };
            *coordinate == first
                || matches!(coordinate.node(), SymNode::Operation(SymOp::Add, block, place)
                    if *block == first && is_place(place))
        }
        _ => false,
    })
}

/// The nodes of a region with the writes of its values. Carried values stay side by side.
fn with_writes(
    editor: &KernelEditor<'_>,
    body: &[Entity],
    staged: &NodeMap<[Entity; 2]>,
) -> Result<NodeList, Bug> {
    let mut nodes = NodeList::new();
    let mut pending = NodeList::new();
    for &node in body {
        if editor.op(node)?.row().class != OpClass::Carried {
            nodes.extend(pending.drain(..));
        }
        nodes.push(node);
        pending.extend(staged.get(node).map(|made| made[1]));
    }
    nodes.extend(pending);
    Ok(nodes)
}
