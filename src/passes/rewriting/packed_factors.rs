//! Packed factors: a product takes the words of its factors, as in registers elements of k lie as in memory.

use bevy_ecs::prelude::*;

use super::pack_small_floats::{SmallFloat, SmallFloatPacker};
use super::packed_rows::PackedRow;
use super::turned_units::{UnturnedFactor, turned_read};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::DimTable;
use crate::ir::layout::MmaType;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::passes::PassResult;
use crate::passes::facts::Geometry;
use crate::passes::kernel_editor::KernelEditor;

impl SmallFloatPacker {
    /// Lets a product take words.
    pub(super) fn product(
        &mut self,
        editor: &mut KernelEditor<'_>,
        node: Entity,
        operands: &[Entity],
    ) -> PassResult {
        let sum_dims = editor.dims(*operands.get(2).ok_or(Bug::new("a product without accumulator"))?)?;
        for (at, &factor) in operands.iter().enumerate().take(2) {
            if let Some(small) = self.codes.get(factor).copied() {
                let words = self.words(editor, node, (factor, small), &sum_dims)?;
                editor.set_operand(node, at, words)?;
            }
        }
        // Words do not say of which floats they are, and the instruction does.
        let (op, geometry) = (editor.op(node)?, editor.kernel::<Geometry>()?);
        if let (Some(MmaChoice::Kernel), Some(MmaType::Instruction(mma))) = (op.product(), geometry.mma) {
            editor.attach(node, op.with_instruction(MmaChoice::Explicit(mma)));
        }
        Ok(())
    }

    /// The words of a factor of a product, along the dimension that it sums over.
    fn words(
        &mut self,
        editor: &mut KernelEditor<'_>,
        product: Entity,
        (factor, small): (Entity, SmallFloat),
        sum_dims: &Dims,
    ) -> Result<Entity, Diagnostic> {
        let dims = editor.dims(factor)?;
        let k = dims.iter().copied().find(|dim| !sum_dims.contains(dim));
        let k = k.ok_or(Bug::new("a product that sums over nothing"))?;
        if let Some(&read) = self.reads.whole.get(factor) {
            if dims.last() == Some(&k) {
                return Ok(read);
            }
            let unturned = UnturnedFactor { read, dims: &dims, k, sum_dims, packing: small.packing };
            // Reads at coordinates are not turned.
            if editor.get::<Mapping>(read).is_none()
                && let Some(turned) = self.turned(editor, &unturned)?
            {
                return Ok(turned);
            }
        }
        let Some(row) = PackedRow::along(editor, k, small.packing)? else {
            return Err(
                without_units(editor.kernel::<DimTable>()?.name(k), small).at(editor.location(product))
            );
        };
        Ok(row.words_of(editor, factor)?)
    }

    /// The read in whose value units lie along the summed dimension, if reads of LDS turn such elements.
    fn turned(
        &mut self,
        editor: &mut KernelEditor<'_>,
        factor: &UnturnedFactor<'_>,
    ) -> Result<Option<Entity>, Diagnostic> {
        let &UnturnedFactor { read, k, .. } = factor;
        if let Some(&(turned, _)) = self.turned.get(read).filter(|turned| turned.1 == k) {
            return Ok(Some(turned));
        }
        let Some(turned) = turned_read(editor, factor)? else { return Ok(None) };
        // Where the author reads it or, if that is outside of the region, once for each product: it leaves
        // the region later.
        let written = editor.written();
        match written.iter().rposition(|&other| other == read) {
            Some(at) => {
                written.insert(at + 1, turned);
                self.turned.insert(read, (turned, k));
            }
            None => written.push(turned),
        }
        Ok(Some(turned))
    }
}

/// The fault of factors that no memory holds in units along `name`.
fn without_units(name: &str, SmallFloat { dtype, format, packing }: SmallFloat) -> Diagnostic {
    let units = match packing.elements {
        2 => "bytes of two".to_owned(),
        together => format!("blocks of {together}"),
    };
    let bits = format.bits();
    let text =
        format!("{bits}-bit factors are multiplied in {units} along {name}, and no memory holds them so");
    Diagnostic::invalid(text)
        .help(format!("let a memory of {dtype} end with {name}, as `memory [M, {name}]`"))
}
