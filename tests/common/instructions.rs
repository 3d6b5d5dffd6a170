//! What the tests of single instructions do with each: encode it, print it, gather what is wrong.

use groundswell::isa::{Arch, Element, Format, Inst, Operand, encode, write_inst};

/// The words of a legal instruction.
pub fn encoded(inst: &Inst, arch: Arch) -> Vec<u32> {
    let mut words = Vec::new();
    encode(inst, arch, &mut words).unwrap_or_else(|error| panic!("{inst}: {error}"));
    words
}

/// Its text.
pub fn text(inst: &Inst, arch: Arch) -> String {
    let mut out = String::new();
    write_inst(&mut out, inst, arch, None).expect("writing to a string does not fail");
    out
}

/// False where the text does not say all of the instruction, here as in LLVM: inline floats in 16-bit integer
/// sources print as their bits, which are a literal when read; scope bits of cache instructions of gfx90a,
/// which LLVM's compiler sets, have no words.
pub fn is_readable(inst: &Inst, arch: Arch) -> bool {
    let info = inst.op.info();
    let sets_scope = arch == Arch::Gfx90a && info.format == Format::MubufBare && !inst.modifiers.is_empty();
    !sets_scope && !has_inline_float_of_16_bits(inst)
}

/// Whether a 16-bit integer source is an inline float, which prints as its bits.
pub fn has_inline_float_of_16_bits(inst: &Inst) -> bool {
    use Element::{B16, I16, U16};
    let is_inline_float = |operand: Operand| matches!(operand.number(), Some(240..=248));
    let mut operands = inst.op.info().operands.iter().zip(inst.operands);
    operands.any(|(spec, operand)| matches!(spec.element, B16 | I16 | U16) && is_inline_float(operand))
}

/// Fails with the first of them if anything is wrong.
pub fn complain(what: &str, wrong: &[String]) {
    let shown = wrong.iter().take(60).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{what}: {} disagreements\n{shown}", wrong.len());
}
