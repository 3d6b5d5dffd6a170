//! What an executable holds besides what launching takes: machine code, the object's parts, the report; and
//! objects with several kernels.

use std::fmt::Write as _;

use super::compiled_code::CompiledCode;
use super::executable::{Executable, Inner, LaunchExpressions};
use super::report::Report;
use crate::codegen::isa::{self, Arch, Meaning};
use crate::codegen::object::{self, KernelInfo, ObjectForm, ObjectOptions, assembly};
use crate::ir::diagnostic::{Diagnostic, Kind};

/// Dwords of arguments whose preloading never went wrong.
const SOUND_PRELOAD_DWORDS: u32 = 4;

impl Executable {
    /// Faults of its target that its launches may meet, in words; as a rule there are none.
    pub fn warnings(&self) -> Vec<&'static str> {
        // ROCm/rocm-systems 10145 and 10146, a fault of gfx950's firmware.
        let is_stale =
            self.target().arch == Arch::Gfx950 && self.report().kernarg_preload_dwords > SOUND_PRELOAD_DWORDS;
        let text = "after page faults on gfx950 waves may start with stale preloaded arguments beyond the fourth dword, \
                    until the machine is started anew";
        is_stale.then_some(text).into_iter().collect()
    }

    /// The approximate number of bytes that it keeps.
    pub(super) fn bytes(&self) -> usize {
        let Inner { object, parameters, code, .. } = &*self.inner;
        let CompiledCode { lines, info, words, report, .. } = code;
        let rows = lines.as_ref().map_or(0, |lines| size_of_val(&lines.rows[..]));
        let splits = report.split_accesses.iter().map(|access| access.what.len());
        let unshared = report.unshared_reads.iter().map(|read| read.what.len() + read.memory.len());
        let masked = report.masked_accesses.iter();
        let masked =
            masked.map(|access| access.memory.len() + access.dims.iter().map(String::len).sum::<usize>());
        let conversions = report.conversions.iter();
        let conversions = conversions.map(|c| c.what.len() + c.user.len() + c.from.len() + c.to.len());
        let named = splits.chain(unshared).chain(masked).chain(conversions);
        let accesses: usize = report.lds_accesses.iter().map(|access| access.what.len()).chain(named).sum();
        size_of::<Inner>()
            + object.len()
            + size_of_val(&words[..])
            + rows
            + size_of_val(&parameters[..])
            + size_of_val(&info.arguments[..])
            + size_of_val(&report.lds_accesses[..])
            + size_of_val(&report.split_accesses[..])
            + size_of_val(&report.masked_accesses[..])
            + size_of_val(&report.unshared_reads[..])
            + size_of_val(&report.conversions[..])
            + size_of_val(&report.reductions[..])
            + accesses
            + size_of_val(&report.phases[..])
    }

    /// Whether both are launched in the same way: with the same arguments and grids.
    pub(super) fn launches_like(&self, other: &Executable) -> bool {
        let texts = |of: &Executable| {
            let LaunchExpressions { arena, grid, reaches, numbered, .. } = &of.inner.launch;
            let all = grid.iter().chain(reaches).chain(numbered);
            all.map(|&e| arena.display(e).to_string()).collect::<Vec<_>>()
        };
        let fixed = |of: &Executable| (of.block(), of.kernarg_bytes());
        self.parameters() == other.parameters() && fixed(self) == fixed(other) && texts(self) == texts(other)
    }

    /// Machine code words of the kernel.
    pub fn code(&self) -> &[u32] {
        &self.inner.code.words
    }

    /// The compiler's report about the code.
    pub fn report(&self) -> &Report {
        &self.inner.code.report
    }

    /// Assembler text of the whole object, which LLVM's assembler and linker turn into the same code and
    /// descriptor.
    pub fn assembly(&self) -> Result<String, Diagnostic> {
        let bug = |text: String| Diagnostic::new(Kind::Bug, text);
        let body = listing(&self.inner.code.words, self.target().arch).map_err(bug)?;
        let text = assembly::KernelText { info: &self.inner.code.info, body: &body };
        let format = self.inner.code.format;
        assembly::print(format.target, format.version, &[text]).map_err(|error| bug(error.to_string()))
    }

    /// The kernel as an entry of an object with several kernels.
    pub fn kernel_info(&self) -> &KernelInfo {
        &self.inner.code.info
    }
}

/// Writes one code object with several compiled kernels.
///
/// # Errors
/// Kernels for different targets or of different object versions, or two of one name.
pub fn link(executables: &[&Executable]) -> Result<Vec<u8>, Diagnostic> {
    write_together(&with_names(executables), ObjectForm::Loadable)
}

/// Writes one object with several compiled kernels for a linker, which makes a code object of it and of
/// others: `ld.lld -shared`.
///
/// # Errors
/// Those of [`link`].
pub fn relocatable(executables: &[&Executable]) -> Result<Vec<u8>, Diagnostic> {
    write_together(&with_names(executables), ObjectForm::Relocatable)
}

fn with_names<'a>(executables: &[&'a Executable]) -> Vec<(&'a str, &'a Executable)> {
    executables.iter().map(|executable| (executable.name(), *executable)).collect()
}

/// Writes one loadable code object with several compiled kernels under other names than their own.
///
/// # Errors
/// Those of [`link`].
pub(super) fn link_named(executables: &[(&str, &Executable)]) -> Result<Vec<u8>, Diagnostic> {
    write_together(executables, ObjectForm::Loadable)
}

fn write_together(executables: &[(&str, &Executable)], form: ObjectForm) -> Result<Vec<u8>, Diagnostic> {
    let Some((_, first)) = executables.first() else {
        return Err(Diagnostic::invalid("an object needs at least one kernel"));
    };
    let format = ObjectOptions { form, ..first.inner.code.format };
    if executables.iter().any(|(_, e)| e.inner.code.format.target != format.target) {
        return Err(Diagnostic::invalid("one object cannot hold kernels for different targets"));
    }
    if executables.iter().any(|(_, e)| e.inner.code.format.version != format.version) {
        return Err(Diagnostic::invalid("one object cannot hold kernels of different object versions"));
    }
    let codes: Vec<Vec<u8>> =
        executables.iter().map(|(_, e)| e.code().iter().flat_map(|w| w.to_le_bytes()).collect()).collect();
    let named =
        |&(name, e): &(&str, &Executable)| KernelInfo { name: name.to_owned(), ..e.inner.code.info.clone() };
    let infos: Vec<KernelInfo> = executables.iter().map(named).collect();
    let kernels: Vec<object::KernelCode> = executables
        .iter()
        .zip(&infos)
        .zip(&codes)
        .map(|(((_, e), info), code)| object::KernelCode { info, code, lines: e.inner.code.lines.as_ref() })
        .collect();
    object::write(format, &kernels).map_err(|error| Diagnostic::invalid(error.to_string()))
}

/// Instructions of a kernel as assembler text with labels.
pub fn listing(code: &[u32], arch: Arch) -> Result<String, String> {
    let mut insts = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let (inst, words) =
            isa::decode(&code[at..], arch).map_err(|e| format!("at byte {:#x}: {e}", at * 4))?;
        insts.push((at, inst));
        at += words;
    }
    let target = |at: usize, inst: &isa::Inst| -> Option<usize> {
        matches!(inst.op.info().meaning, Meaning::Branch(_))
            .then(|| usize::try_from(at as i64 + 1 + i64::from(inst.imm as u16 as i16)).ok())
            .flatten()
    };
    let mut labels: Vec<usize> = insts.iter().filter_map(|(at, inst)| target(*at, inst)).collect();
    labels.sort_unstable();
    labels.dedup();
    let mut out = String::with_capacity(insts.len() * 48);
    for (at, inst) in &insts {
        if let Ok(label) = labels.binary_search(at) {
            let _ = writeln!(out, ".L{label}:");
        }
        out.push('\t');
        let label = target(*at, inst).and_then(|t| labels.binary_search(&t).ok()).map(|l| format!(".L{l}"));
        let _ = isa::write_inst(&mut out, inst, arch, label.as_deref());
        out.push('\n');
    }
    Ok(out)
}
