//! Reductions as the machine does them: on elements of 32 or 64 bits, and with what the waves of a workgroup
//! share exchanged through LDS.
//!
//! A reduction of a narrower dtype becomes a cast, the reduction, and a cast of the result, which so is
//! rounded once. Where several waves hold parts of the dimension, each reduces its own part and writes the
//! result to an LDS buffer with a dimension that counts the waves; every wave reads all results and reduces
//! them in its registers, in the order of the waves. A scan is given the
//! results of all waves in the same way.
//!
//! The layout of a result is that of the operand, projected: lanes and waves then hold copies.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::{Dim, Layout, Mode, Source};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::op::{AlongDimOp, OpFamily};
use crate::ir::types::DType;
use crate::passes::PassResult;
use crate::passes::analysis::counted_dims::{counted_dim, dim_name};
use crate::passes::kernel_editor::KernelEditor;
use crate::passes::layout::element_layouts::{projected, too_large};

/// Registers of one value: the widest tuple of VGPRs, 1024 bits (LLVM `VReg_1024`).
const MAX_REGISTERS: u32 = 32;

/// The pass itself; see the module. It makes nodes that use one another, so it takes the whole world.
pub(crate) fn split_reductions(world: &mut World) -> PassResult {
    KernelEditor::new(world)?.rewrite(|editor, node| {
        let OpFamily::AlongDim(op) = editor.op(node)?.family() else { return Ok(()) };
        match op {
            AlongDimOp::Reduce(reduction) => Splitter { editor, node }.split(reduction),
            AlongDimOp::Scan(scan) => Splitter { editor, node }.split_scan(scan),
            AlongDimOp::Sort(_) => Err(Bug::new("a sort that no pass has made a network of").into()),
        }
    })
}

/// The dtype in which elements are folded.
pub(super) fn folded_as(dtype: DType) -> DType {
    match (dtype.bits(), dtype.is_float()) {
        (64, _) => dtype,
        (_, true) => DType::F32,
        (_, false) => DType::I32,
    }
}

/// One reduction; what it takes is made in front of it.
struct Splitter<'e, 'w> {
    editor: &'e mut KernelEditor<'w>,
    node: Entity,
}

impl Splitter<'_, '_> {
    fn split(&mut self, reduction: Reduction) -> PassResult {
        let Reduction { op, dim, parts } = reduction;
        if parts.is_some() {
            return Ok(());
        }
        let value = self.editor.node(self.node)?.operand(0)?;
        let narrow = self.editor.node(value)?.ty.clone();
        let dtype = narrow.dtype.ok_or(Bug::new("a value without dtype"))?;
        let wide = folded_as(dtype);
        let layout = self.editor.fact::<Placement>(value, "a reduced value without layout")?.0.clone();
        let waves =
            layout.of_source(Source::Wave).find(|mode| mode.dim == Some(dim) && mode.extent > 1).copied();
        if wide == dtype && waves.is_none() {
            return Ok(());
        }
        let mut value = value;
        if wide != dtype {
            let ty = ValueType { dims: narrow.dims.clone(), dtype: Some(wide) };
            value = self.push(Op::Convert(Conversion::Cast), &[value], ty, &layout);
        }
        let result = self.editor.node(self.node)?.ty.clone();
        let kept = ValueType { dims: result.dims.clone(), dtype: Some(wide) };
        let mut last = reduction;
        if let Some(waves) = waves {
            let parts = self.counting(dim, waves.extent)?;
            value = self.exchange(Reduction { parts: Some(parts), ..reduction }, value, &layout, waves)?;
            last = Reduction { op, dim: parts, parts: None };
        }
        let (last, value) = if wide == dtype {
            (Op::Reduce(last), value)
        } else {
            let own = projected(&layout, &kept.dims)?;
            (Op::Convert(Conversion::Cast), self.push(Op::Reduce(last), &[value], kept, &own))
        };
        self.editor.turn_into(self.node, last, &[value]);
        Ok(())
    }

    /// A scan on elements of 32 or 64 bits, and with what the parts of all waves sum up to.
    fn split_scan(&mut self, scan: Scan) -> PassResult {
        let value = self.editor.node(self.node)?.operand(0)?;
        let narrow = self.editor.node(value)?.ty.clone();
        let dtype = narrow.dtype.ok_or(Bug::new("a value without dtype"))?;
        let wide = folded_as(dtype);
        let layout = self.editor.fact::<Placement>(value, "a scanned value without layout")?.0.clone();
        let shares = |mode: &&Mode| mode.dim == Some(scan.dim) && mode.extent > 1;
        let waves = layout.of_source(Source::Wave).find(shares).copied();
        let ty = ValueType { dims: narrow.dims, dtype: Some(wide) };
        let mut operands: SmallVec<[Entity; 4]> = smallvec![value];
        if wide != dtype {
            operands[0] = self.push(Op::Convert(Conversion::Cast), &[value], ty.clone(), &layout);
        }
        let mut own = scan;
        if let Some(waves) = waves {
            let parts = self.counting(scan.dim, waves.extent)?;
            let partial = Reduction { op: scan.op.joins(), dim: scan.dim, parts: Some(parts) };
            operands.push(self.exchange(partial, operands[0], &layout, waves)?);
            own.by_wave = Some(parts);
        }
        if wide == dtype {
            self.editor.turn_into(self.node, Op::Scan(own), &operands);
        } else {
            let wide = self.push(Op::Scan(own), &operands, ty, &layout);
            self.editor.turn_into(self.node, Op::Convert(Conversion::Cast), &[wide]);
        }
        Ok(())
    }

    /// Reduces each wave's part, and brings the results of all waves to each.
    fn exchange(
        &mut self,
        partial: Reduction,
        value: Entity,
        layout: &Layout,
        waves: Mode,
    ) -> Result<Entity, Diagnostic> {
        let from = self.editor.node(value)?.ty.clone();
        let parts = partial.parts.ok_or(Bug::new("a reduction that waves do not share"))?;
        let mut dims = from.dims.clone();
        dims.retain(|dim| *dim != partial.dim);
        let kept = projected(layout, &dims)?;
        dims.push(parts);
        // The digit that counted parts of the reduced dimension now counts the results.
        let counts = |mode: &Mode| mode.source == Source::Wave && mode.dim == waves.dim;
        let part = Mode::new(Source::Wave, waves.extent, parts, 1);
        let counted = layout.modes().iter().map(|mode| if counts(mode) { part } else { *mode });
        let own = projected(&Layout::new(counted).map_err(too_large)?, &dims)?;
        let ty = ValueType { dims, dtype: from.dtype };
        let part = self.push(Op::Reduce(partial), &[value], ty.clone(), &own);
        let buffer = self.editor.add_buffer(ty.clone());
        self.editor.add(Op::Write, &[part, buffer], ValueType::unknown(), Placement(own));
        // As many results side by side as a value has registers for; the others are values of their own.
        let words = from.dtype.map_or(1, |dtype| dtype.bytes().div_ceil(4));
        let room = (MAX_REGISTERS / (kept.extent(Source::Register) * words)).max(1);
        let beside = (1..=waves.extent.min(room)).rev().find(|count| waves.extent.is_multiple_of(*count));
        let beside = beside.unwrap_or(1);
        let all = [Mode::new(Source::Register, beside, parts, 1)]
            .into_iter()
            .chain(kept.modes().iter().copied())
            .chain([Mode::new(Source::Replica, waves.extent / beside, parts, beside)]);
        let all = Layout::new(all.filter(|mode| mode.extent > 1)).map_err(too_large)?;
        Ok(self.push(Op::Read, &[buffer], ty, &all))
    }

    fn push(&mut self, op: Op, operands: &[Entity], ty: ValueType, layout: &Layout) -> Entity {
        self.editor.add(op, operands, ty, Placement(layout.clone()))
    }

    /// The dimension that counts the waves along `dim`.
    fn counting(&mut self, dim: Dim, waves: u32) -> Result<Dim, Diagnostic> {
        let name = format!("waves of {}", dim_name(self.editor, dim)?);
        counted_dim(self.editor, &name, waves, None)
    }
}
