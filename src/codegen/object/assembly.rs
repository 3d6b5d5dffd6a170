//! Assembler text of whole objects: the text around an instruction listing from which an assembler and a
//! linker make the same code and the same descriptors as [`write`](super::write()) does.

use super::KernelInfo;
use super::elf::{FETCH_PADDING, WriteError, check_names, describe};
use super::metadata::{KernelMetadata, to_yaml};
use crate::codegen::target::{ObjectVersion, TargetId};
use std::fmt::Write;

/// A kernel and the listing of its instructions.
#[derive(Copy, Clone, Debug)]
pub struct KernelText<'a> {
    /// What the object says about it.
    pub info: &'a KernelInfo,
    /// Instructions, labels and comments, one a line.
    pub body: &'a str,
}

/// The text of an object with these kernels, for `llvm-mc -triple=amdgcn-amd-amdhsa -mcpu=`*target* and
/// `ld.lld -shared`; modes of a target id are `-mattr=-xnack` and so on for `llvm-mc`.
pub fn print(
    target: impl Into<TargetId>,
    version: ObjectVersion,
    kernels: &[KernelText<'_>],
) -> Result<String, WriteError> {
    let target = target.into();
    check_names(kernels.iter().map(|kernel| kernel.info))?;
    let (id, version) = (target.with_triple(), version.number());
    let mut text = format!(".amdgcn_target \"{id}\"\n.amdhsa_code_object_version {version}\n\n.text\n");
    for kernel in kernels {
        let name = &kernel.info.name;
        let body = kernel.body.trim_end_matches('\n');
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            ".globl {name}\n.protected {name}\n.p2align 8\n.type {name},@function\n{name}:\n{body}\n.size {name}, . - {name}\n\n"
        );
    }
    let _ = write!(text, ".p2alignl 6, 0xbf800000\n.fill {}, 4, 0xbf800000\n\n", FETCH_PADDING / 4);
    text.push_str(".rodata\n");
    let mut metadata = Vec::with_capacity(kernels.len());
    for kernel in kernels {
        let descriptor = describe(target, kernel.info)?;
        text.push_str(".p2align 6\n");
        text.push_str(&descriptor.directives(target, &kernel.info.name, &kernel.info.resources));
        text.push('\n');
        metadata.push(KernelMetadata::new(target, kernel.info));
    }
    text.push_str(&to_yaml(target, &metadata));
    Ok(text)
}
