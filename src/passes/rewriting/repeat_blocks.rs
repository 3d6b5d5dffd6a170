//! Repetition along dimensions that follow others: where an operation joins a value along K/32 with one along
//! K, the value is read at the coordinates `K // 32`, so that each of its elements stands for its block.
//!
//! A value that is itself read from a memory which the kernel does not write, is read from the memory in this
//! way, also at coordinates of its own unless values are among them. Others go through LDS, as values at
//! coordinates do.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::kernel::{DimTable, Locations, ScaledDim};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::OpClass;
use crate::passes::PassResult;
use crate::passes::analysis::mapped_accesses::block_of;
use crate::passes::analysis::read_sources::ReadSources;
use crate::passes::facts::Geometry;
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module.
pub(crate) fn repeat_blocks(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let scaled = editor.kernel::<DimTable>()?.scaled();
    let repeater = BlockRepeater { scaled, sources: ReadSources::of(&editor)? };
    for region in editor.regions() {
        // Operations of one region share the repetition of a value.
        let mut made = Vec::new();
        editor.rewrite_region(region, &mut |editor, node| repeater.node(editor, node, &mut made))?;
    }
    Ok(())
}

struct BlockRepeater {
    scaled: SmallVec<[ScaledDim; 2]>,
    sources: ReadSources,
}

impl BlockRepeater {
    /// Lets an operation take repetitions; `made` has values, dimensions and the repetitions so far.
    fn node(
        &self,
        editor: &mut KernelEditor<'_>,
        node: Entity,
        made: &mut Vec<(Entity, Dims, Entity)>,
    ) -> PassResult {
        let seen = editor.node(node)?;
        if seen.op.row().class != OpClass::ElementWise {
            return Ok(());
        }
        let (operands, result) = (seen.operands.0.clone(), seen.ty.dims.clone());
        for (at, &value) in operands.iter().enumerate() {
            let Some(dims) = self.repeated(&editor.node(value)?.ty.dims, &result) else { continue };
            let known = made.iter().find(|made| made.0 == value && made.1 == dims).map(|made| made.2);
            let read = match known {
                Some(read) => read,
                None => {
                    let read = self.read(editor, value, &dims)?;
                    made.push((value, dims, read));
                    read
                }
            };
            editor.set_operand(node, at, read)?;
        }
        Ok(())
    }

    /// The dimensions of an operand with those in place of which its result has their bases; nothing if there
    /// are none.
    fn repeated(&self, operand: &Dims, result: &Dims) -> Option<Dims> {
        let base_of = |dim| {
            let follows = |scaled: &&ScaledDim| scaled.dim == dim && !result.contains(&dim);
            self.scaled.iter().find(follows).map_or(dim, |scaled| scaled.base)
        };
        let dims: Dims = operand.iter().map(|&dim| base_of(dim)).collect();
        (dims != *operand).then_some(dims)
    }

    /// The read of a value at the blocks of `dims`.
    fn read(&self, editor: &mut KernelEditor<'_>, value: Entity, dims: &Dims) -> Result<Entity, Diagnostic> {
        let own = editor.node(value)?.ty;
        let geometry = editor.kernel::<Geometry>()?;
        let number = |dim: &&_| geometry.dim(**dim).symbol.value().is_some_and(|size| size > 1);
        if let Some(&dim) = own.dims.iter().find(number) {
            let size = geometry.dim(dim).symbol;
            let at = editor.kernel::<Locations>()?.get(editor.origin().0);
            let text =
                format!("a value with the dimension {size} is repeated along the elements of its blocks");
            let help = format!("give the dimension {size} a name, and bind it to the number");
            return Err(Diagnostic::invalid(text).at(at).help(help));
        }
        let coordinate = |(&own, &base): (&_, &_)| {
            let by = geometry.dim(own).scaled_from.map_or(1, |(_, by)| by);
            let symbol = geometry.dim(base).symbol;
            match symbol.value() {
                Some(_) => SymExpr::from(0),
                None if own == base => symbol.into(),
                None => block_of(symbol, by),
            }
        };
        let mapping = Mapping(own.dims.iter().zip(dims).map(coordinate).collect());
        let ty = ValueType { dims: dims.clone(), dtype: own.dtype };
        if let (Some(memory), Some(Mapping(coordinates))) =
            (self.sources.mapped(editor, value)?, editor.get::<Mapping>(value))
        {
            // The same read, at the block of each element.
            let places = own.dims.iter().zip(&mapping.0);
            let place_of = |symbol: Symbol| {
                let place = places.clone().find(|(dim, _)| geometry.dim(**dim).symbol == symbol);
                place.map(|(_, coordinate)| coordinate.clone())
            };
            let of_blocks = coordinates.iter().map(|coordinate| coordinate.replaced(&place_of)).collect();
            let read = editor.add(Op::Read, &[memory], ty, Mapping(of_blocks));
            editor.copy::<Tag>(value, read);
            return Ok(read);
        }
        let source = self.sources.source(editor, value)?;
        let read = editor.add(Op::Read, &[source], ty, mapping);
        if source != value {
            editor.copy::<Tag>(value, read);
        }
        Ok(read)
    }
}
