//! Kernels written by hand as assembler text.

use std::fmt::Display;

use groundswell::assembler::{AssemblerOptions, assemble};

/// The object of a kernel `k` of this code, whose arguments are at s[0:1], with 16 vector registers and 32
/// scalar ones where the directives do not say otherwise.
pub fn object(target: impl Display, code: &str, directives: &[&str]) -> Vec<u8> {
    let usual = [".amdhsa_next_free_vgpr 16", ".amdhsa_next_free_sgpr 32", ".amdhsa_accum_offset 16"];
    let is_said = |line: &str| {
        let name = line.split(' ').next().unwrap_or_default();
        directives.iter().any(|said| said.starts_with(name))
    };
    let usual = usual.into_iter().filter(|line| !is_said(line));
    let lines: Vec<&str> = usual.chain(directives.iter().copied()).collect();
    let text = format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa--{target}\"
.text
.globl k
.p2align 8
.type k,@function
k:
{code}
.size k, . - k
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_user_sgpr_kernarg_segment_ptr 1
{}
.end_amdhsa_kernel
",
        lines.join("\n")
    );
    assemble(&text, AssemblerOptions::default()).unwrap_or_else(|faults| panic!("{faults}\n{text}")).object
}
