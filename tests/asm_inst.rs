//! The parser of instructions: what our printer writes reads back as the same instruction for every row of every chip, and
//! what LLVM's assembler takes beside that gives the bytes that it gives.

mod common;

use common::corpus::corpus;
use groundswell::codegen::isa::{Arch, Element, Inst, Operand, decode, encode, parse_inst, write_inst};

/// Inline floats in 16-bit integer sources print as their bits, which are a literal when read, as in llvm-mc.
fn is_readable(inst: &Inst) -> bool {
    use Element::{B16, I16, U16};
    let is_inline_float = |operand: Operand| matches!(operand.number(), Some(240..=248));
    let operands = inst.op.info().operands.iter().zip(inst.operands);
    !operands
        .into_iter()
        .any(|(spec, operand)| matches!(spec.element, B16 | I16 | U16) && is_inline_float(operand))
}

fn encoded(inst: &Inst, arch: Arch) -> Vec<u32> {
    let mut words = Vec::new();
    encode(inst, arch, &mut words).unwrap_or_else(|error| panic!("{inst}: {error}"));
    words
}

fn complain(what: &str, wrong: &[String]) {
    let shown = wrong.iter().take(60).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{what}: {} disagreements\n{shown}", wrong.len());
}

fn text(inst: &Inst, arch: Arch) -> String {
    let mut out = String::new();
    write_inst(&mut out, inst, arch, None).expect("writing to a string does not fail");
    out
}

#[test]
fn what_is_printed_reads_back_as_the_same_instruction() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for arch in Arch::ALL {
        for inst in corpus(arch, is_readable) {
            count += 1;
            let (words, printed) = (encoded(&inst, arch), text(&inst, arch));
            let (normal, _) = decode(&words, arch).expect("what was encoded decodes");
            match parse_inst(&printed, arch) {
                Ok(parsed) if parsed.reference.is_some() => {
                    wrong.push(format!("{arch} {printed}: a reference"))
                }
                Ok(parsed) if encoded(&parsed.inst, arch) != words => {
                    let again = encoded(&parsed.inst, arch);
                    wrong.push(format!("{arch} {printed}: {again:08x?} not {words:08x?}"));
                }
                Ok(parsed) if parsed.inst != normal => {
                    wrong.push(format!("{arch} {printed}: {:?} not {normal:?}", parsed.inst));
                }
                Ok(_) => {}
                Err(error) => wrong.push(format!("{arch} {printed}: {error}")),
            }
        }
    }
    complain(&format!("parser, {count} instructions"), &wrong);
}
