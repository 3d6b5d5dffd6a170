//! The code object, and what it holds of a kernel in addition to its code: the descriptor, the arguments, the
//! author's lines.

use super::Compilation;
use crate::codegen::lower::{ArgumentSlot, preload};
use crate::codegen::object::{
    self, Access, ArgumentInfo, ArgumentKind, KernelCode, KernelInfo, KernelResources, ObjectForm,
    ObjectOptions, SourceLines, SourcePlace, WorkgroupSize, WorkitemIds,
};
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::kernel::{Declaration, KernelName, Locations};
use crate::ir::node::Name;
use crate::passes::facts::LdsBytes;
use crate::passes::options::DebugInfo;

/// A code object, and its parts.
pub(super) struct CodeObject {
    pub(super) info: KernelInfo,
    pub(super) lines: Option<SourceLines>,
    pub(super) format: ObjectOptions,
    pub(super) bytes: Vec<u8>,
}

impl Compilation<'_> {
    /// Writes the code object.
    pub(super) fn object(&mut self) -> Result<CodeObject, Diagnostic> {
        let info = self.kernel_info()?;
        let machine = &mut *self.machine;
        machine.bytes.clear();
        machine.bytes.extend(machine.code.words.iter().flat_map(|w| w.to_le_bytes()));
        let lines = match self.options.requested_debug_info() {
            DebugInfo::Lines => Some(self.source_lines()),
            DebugInfo::None => None,
        };
        let format = ObjectOptions {
            target: self.options.target_id(),
            version: self.options.requested_object_version(),
            form: ObjectForm::Loadable,
        };
        let code = KernelCode { info: &info, code: &self.machine.bytes, lines: lines.as_ref() };
        let bytes = object::write(format, &[code])
            .map_err(|error| Diagnostic::bug(format!("the object could not be written: {error}")))?;
        Ok(CodeObject { info, lines, format, bytes })
    }

    /// Where each instruction was written; instructions without a place of their own get the kernel's.
    fn source_lines(&self) -> SourceLines {
        let (workspace, machine) = (&self.workspace, &self.machine);
        let world = &workspace.world;
        let locations = world.get::<Locations>(workspace.root).map(|l| &l.0[..]).unwrap_or_default();
        let declaration = world.get::<Declaration>(workspace.root).and_then(|d| d.0.as_ref());
        let mut lines = SourceLines { rows: Vec::with_capacity(64), ..SourceLines::default() };
        let place = |lines: &mut SourceLines, at: &Location| {
            let file = lines.file(&at.file);
            SourcePlace { file, line: at.line, column: at.column }
        };
        lines.declaration = declaration.map(|at| place(&mut lines, at));
        let body = if self.lowered.preloaded_dwords > 0 { preload::PROLOGUE_BYTES } else { 0 };
        lines.push(0, lines.declaration);
        let mut last = u32::MAX;
        for (inst, offset) in machine.body.insts.values().zip(machine.code.offsets.values()) {
            if inst.source != last {
                last = inst.source;
                let at = locations.get(last as usize).map(|at| place(&mut lines, at));
                lines.push(body + offset, at.or(lines.declaration));
            }
        }
        lines
    }

    /// The kernel's descriptor and arguments.
    fn kernel_info(&self) -> Result<KernelInfo, Diagnostic> {
        let (world, lowered, allocation) = (&self.workspace.world, &self.lowered, &self.allocation);
        let name = self.fact::<KernelName>()?.0.to_string();
        let arguments = lowered
            .arguments
            .iter()
            .map(|slot| match *slot {
                ArgumentSlot::Pointer { memory, offset } => ArgumentInfo {
                    name: world.get::<Name>(memory).map(|n| n.0.to_string()).unwrap_or_default(),
                    size: 8,
                    offset,
                    kind: ArgumentKind::GlobalBuffer,
                    access: Some(if lowered.written.contains(memory) {
                        Access::ReadWrite
                    } else {
                        Access::ReadOnly
                    }),
                },
                ArgumentSlot::Scalar { scalar, bytes, offset } => ArgumentInfo {
                    name: world.get::<Name>(scalar).map(|n| n.0.to_string()).unwrap_or_default(),
                    size: bytes,
                    offset,
                    kind: ArgumentKind::ByValue,
                    access: None,
                },
                ArgumentSlot::Symbol { symbol, offset } => ArgumentInfo {
                    name: symbol.name().to_string(),
                    size: 4,
                    offset,
                    kind: ArgumentKind::ByValue,
                    access: None,
                },
            })
            .collect();
        let resources = KernelResources {
            vgprs: allocation.vgprs.max(1),
            agprs: allocation.agprs,
            sgprs: allocation.sgprs,
            vcc: allocation.vcc,
            lds_bytes: self.fact::<LdsBytes>()?.0,
            scratch_bytes: allocation.spills.scratch_bytes,
            kernarg_bytes: lowered.kernarg_bytes,
            kernarg_preload_dwords: lowered.preloaded_dwords,
            workgroup_ids: lowered.workgroup_ids,
            workitem_ids: WorkitemIds::X,
            ieee_mode: !lowered.float_extremum,
            ..KernelResources::default()
        };
        Ok(KernelInfo { name, resources, arguments, workgroup_size: WorkgroupSize::Exactly(self.block()?) })
    }
}
