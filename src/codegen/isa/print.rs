//! Assembler text, as llvm-objdump prints it and llvm-mc reads it.

use std::fmt::{self, Write};

use super::buffer_format::{BufferFormat, write_format};
use super::dpp::{Dpp, write_dpp};
use super::encode::{default_op_sel_hi, encoding};
use super::fields::{
    CHANNELS, PARAMETERS, write_export_target, write_gpr_index, write_hwreg, write_message, write_swizzle,
    write_waitcnt,
};
use super::layout::Encoding;
use super::meaning::{Element, Meaning};
use super::operand::Operand;
use super::sdwa::{Sdwa, write_sdwa};
use super::spec::{Field, Format, OpInfo, OperandClass};
use super::{Inst, Modifiers, Omod, Opcode};
use crate::codegen::arch::Arch;

/// As gfx942 spells it, or the first chip that has it ([`Opcode::spelling`]).
impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_inst(f, self, self.op.spelling(), None)
    }
}

/// Writes one instruction as `arch` spells it; `label` takes the place of the immediate of a branch.
pub fn write_inst(f: &mut dyn Write, inst: &Inst, arch: Arch, label: Option<&str>) -> fmt::Result {
    let info = inst.op.info();
    f.write_str(info.mnemonic_on(arch))?;
    f.write_str(suffix(inst, info))?;
    match info.format {
        Format::Sopp => write_program_control(f, inst, label),
        Format::Sopk => write_immediate_form(f, inst, arch, label),
        Format::Exp => write_export(f, inst),
        _ => {
            if info.format.is_long_interpolation() {
                return write_interpolation(f, inst, info);
            }
            write_operands(f, inst, info)?;
            if info.format == Format::Vintrp {
                return write_attribute(f, inst);
            }
            if info.meaning == Meaning::SetGprIndexOn {
                f.write_str(", ")?;
                return write_gpr_index(f, inst.imm);
            }
            write_modifiers(f, inst, info, arch)
        }
    }
}

/// `_e32` or `_e64` for instructions that have both encodings (and those that LLVM treats alike).
fn suffix(inst: &Inst, info: &OpInfo) -> &'static str {
    if inst.modifiers.has_second_word() {
        return if inst.modifiers.has_dpp() { "_dpp" } else { "_sdwa" };
    }
    match (info.format, encoding(inst, info)) {
        (Format::Vop2Only | Format::Vintrp, _) => "_e32",
        (Format::VintrpLong, _) => "_e64",
        (format, _) if !format.has_e64() => "",
        (_, Encoding::Vop3a | Encoding::Vop3b) => "_e64",
        _ => "_e32",
    }
}

/// Export: the target, the registers, flags. A compressed register is for two places.
fn write_export(f: &mut dyn Write, inst: &Inst) -> fmt::Result {
    f.write_char(' ')?;
    write_export_target(f, inst.imm)?;
    let flags = inst.modifiers.get_export_flags();
    let places = if flags & 1 != 0 { [0, 0, 1, 1] } else { [0, 1, 2, 3] };
    for (at, index) in places.into_iter().enumerate() {
        f.write_str(if at == 0 { " " } else { ", " })?;
        write_value(f, inst, index)?;
    }
    for (bit, name) in [(2, " done"), (1, " compr"), (4, " vm")] {
        f.write_str(if flags & bit != 0 { name } else { "" })?;
    }
    Ok(())
}

/// Parameter, attribute and channel of an interpolation.
fn write_attribute(f: &mut dyn Write, inst: &Inst) -> fmt::Result {
    let info = inst.op.info();
    let attribute = inst.imm & 0xff;
    if info.operands.len() == 1 {
        let is_long = info.format.is_long_interpolation();
        let parameter = if is_long { inst.imm >> 8 } else { inst.modifiers.get_parameter() };
        match PARAMETERS.get(parameter as usize) {
            Some(name) => write!(f, ", {name}")?,
            None => write!(f, ", invalid_param_{parameter}")?,
        }
    }
    write!(f, ", attr{}.{}", attribute >> 2, CHANNELS[(attribute & 3) as usize])
}

/// Interpolation in the encoding of VOP3: the attribute stands after the first source.
fn write_interpolation(f: &mut dyn Write, inst: &Inst, info: &OpInfo) -> fmt::Result {
    let mut separator = " ";
    for (index, spec) in info.operands.iter().enumerate() {
        if spec.field == Field::Src2 {
            write_attribute(f, inst)?;
        }
        f.write_str(separator)?;
        write_operand(f, inst, info, index)?;
        separator = ", ";
    }
    if info.operands.len() < 3 {
        write_attribute(f, inst)?;
    }
    f.write_str(if inst.modifiers.get_op_sel() != 0 { " high" } else { "" })?;
    write_output_modifiers(f, inst.modifiers)
}

/// SOPP.
fn write_program_control(f: &mut dyn Write, inst: &Inst, label: Option<&str>) -> fmt::Result {
    let imm = inst.imm & 0xffff;
    match (inst.op.info().meaning, label) {
        (Meaning::Branch(_), Some(label)) => write!(f, " {label}"),
        (Meaning::EndProgram, _) if imm == 0 => Ok(()),
        _ if !inst.op.info().takes_immediate() => Ok(()),
        (Meaning::SetGprIndexMode, _) => {
            f.write_char(' ')?;
            write_gpr_index(f, imm)
        }
        (Meaning::Wait, _) => write_waitcnt(f, imm),
        (Meaning::SendMessage, _) => write_message(f, imm),
        (Meaning::Branch(_), None) | (Meaning::EndProgram, _) => write!(f, " {imm}"),
        _ => {
            f.write_char(' ')?;
            write_plain(f, imm)
        }
    }
}

/// SOPK.
fn write_immediate_form(f: &mut dyn Write, inst: &Inst, arch: Arch, label: Option<&str>) -> fmt::Result {
    let info = inst.op.info();
    let imm = inst.imm & 0xffff;
    f.write_char(' ')?;
    match inst.op {
        Opcode::SGetregB32 => {
            write_operand(f, inst, info, 0)?;
            f.write_str(", ")?;
            write_hwreg(f, imm, arch)
        }
        Opcode::SSetregB32 => {
            write_hwreg(f, imm, arch)?;
            f.write_str(", ")?;
            write_operand(f, inst, info, 0)
        }
        Opcode::SSetregImm32B32 => {
            write_hwreg(f, inst.modifiers.get_hwreg(), arch)?;
            f.write_str(", ")?;
            write_operand(f, inst, info, 0)
        }
        _ => {
            write_operand(f, inst, info, 0)?;
            match (info.meaning, label) {
                (Meaning::Call | Meaning::ForkIf, Some(label)) => write!(f, ", {label}"),
                (Meaning::Call | Meaning::ForkIf, None) => write!(f, ", {imm}"),
                _ => write!(f, ", {imm:#x}"),
            }
        }
    }
}

fn write_operands(f: &mut dyn Write, inst: &Inst, info: &OpInfo) -> fmt::Result {
    let mut separator = " ";
    if info.meaning == Meaning::ProbeAddress {
        f.write_char(' ')?;
        write_plain(f, inst.modifiers.get_probe())?;
        separator = ", ";
    }
    for (index, spec) in info.operands.iter().enumerate() {
        f.write_str(separator)?;
        separator = ", ";
        if spec.class == OperandClass::ScalarOffset {
            write_scalar_offset(f, inst, index)?;
        } else {
            write_operand(f, inst, info, index)?;
        }
    }
    Ok(())
}

/// Offset of a scalar load: a number, a register, or both.
fn write_scalar_offset(f: &mut dyn Write, inst: &Inst, index: usize) -> fmt::Result {
    let imm = inst.imm as i32;
    let sign = if imm < 0 { "-" } else { "" };
    let magnitude = imm.unsigned_abs();
    match (inst.operands[index].is_none(), imm) {
        (true, _) => write!(f, "{sign}{magnitude:#x}"),
        (false, 0) if !inst.modifiers.has_zero_offset() => write_register(f, inst.operands[index], 1),
        _ => {
            write_register(f, inst.operands[index], 1)?;
            write!(f, " offset:{sign}{magnitude:#x}")
        }
    }
}

/// One operand with its negation and absolute value.
fn write_operand(f: &mut dyn Write, inst: &Inst, info: &OpInfo, index: usize) -> fmt::Result {
    let spec = &info.operands[index];
    let bit = spec.field.source_bit();
    let prefixed = info.format.has_signs();
    let extended = prefixed && inst.modifiers.get_sign_extend() & bit != 0;
    let negated = prefixed && inst.modifiers.get_neg() & bit != 0;
    let absolute = prefixed && inst.modifiers.get_abs() & bit != 0;
    // A minus before a number would make it another number.
    let number = matches!(inst.operands[index].number(), Some(128..=208 | 240..=248));
    f.write_str(match (negated, absolute, number) {
        _ if extended => "sext(",
        (false, false, _) => "",
        (false, true, _) => "|",
        (true, true, _) => "-|",
        (true, false, true) => "neg(",
        (true, false, false) => "-",
    })?;
    write_value(f, inst, index)?;
    f.write_str(match (negated, absolute, number) {
        _ if extended => ")",
        (_, true, _) => "|",
        (true, false, true) => ")",
        _ => "",
    })
}

fn write_value(f: &mut dyn Write, inst: &Inst, index: usize) -> fmt::Result {
    let spec = &inst.op.info().operands[index];
    let operand = inst.operands[index];
    if operand.is_none() {
        return f.write_str("off");
    }
    if operand == Operand::LITERAL {
        // Linkers write literals that an inline constant could express, so these are printed as if inline. Of
        // 64 bits a literal is the low half, which is neither a negative number nor a float; of a double it
        // is the high half, which is not an integer.
        return match spec.element {
            Element::B64 | Element::U64 | Element::I64 if inst.imm > 64 => write!(f, "{:#x}", inst.imm),
            Element::F64 if inst.imm != 0 => {
                match Operand::inline_high_half(inst.imm).and_then(Operand::number) {
                    Some(number) => write_inline(f, number, Element::F64),
                    None => write!(f, "{:#x}", inst.imm),
                }
            }
            _ => write_plain(f, inst.imm),
        };
    }
    match operand.number() {
        Some(number @ 128..=248) => write_inline(f, number, spec.element),
        _ => write_register(f, operand, inst.width(index).into()),
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return write!(f, "-");
        }
        if let Some((id, first)) = self.as_virtual() {
            return write!(f, "{id}.{first}");
        }
        write_name(f, *self)
    }
}

/// A single physical operand as messages name it: the register, the constant, a literal without its value.
fn write_name(f: &mut dyn Write, operand: Operand) -> fmt::Result {
    match operand.number() {
        _ if operand == Operand::LITERAL => f.write_str("a literal"),
        Some(number @ 128..=248) => write_inline(f, number, Element::B32),
        Some(_) => write_register(f, operand, 1),
        None => f.write_char('?'),
    }
}

/// A number as LLVM prints plain immediates: decimal where an inline constant could stand, else hexadecimal.
fn write_plain(f: &mut dyn Write, bits: u32) -> fmt::Result {
    match (Operand::inline_integer(bits as i32), Operand::inline_float(bits)) {
        (Some(_), _) => write!(f, "{}", bits as i32),
        (_, Some(operand)) => match operand.number() {
            Some(number) => write_inline(f, number, Element::F32),
            None => Ok(()),
        },
        _ => write!(f, "{bits:#x}"),
    }
}

/// Bits of the inline floats as f16, by number from 240 on.
const HALVES: [u16; 9] = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];
/// Their text.
const FLOATS: [&str; 9] = ["0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"];

fn write_inline(f: &mut dyn Write, number: u32, element: Element) -> fmt::Result {
    match number {
        128..=192 => write!(f, "{}", number - 128),
        193..=208 => write!(f, "-{}", number - 192),
        240..=248 => {
            let index = number as usize - 240;
            match element {
                Element::B16 | Element::I16 | Element::U16 => write!(f, "{:#x}", HALVES[index]),
                _ if number == 248
                    && element.registers() == 2
                    && !matches!(element, Element::F32x2 | Element::B32x2) =>
                {
                    f.write_str("0.15915494309189532")
                }
                _ => f.write_str(FLOATS[index]),
            }
        }
        235 => f.write_str("src_shared_base"),
        236 => f.write_str("src_shared_limit"),
        237 => f.write_str("src_private_base"),
        238 => f.write_str("src_private_limit"),
        239 => f.write_str("src_pops_exiting_wave_id"),
        _ => write!(f, "?{number}"),
    }
}

/// Special scalar registers: first number, name, whether halves are `_lo` and `_hi`.
const PAIRS: [(u32, &str); 4] = [(102, "flat_scratch"), (104, "xnack_mask"), (106, "vcc"), (126, "exec")];

fn write_register(f: &mut dyn Write, operand: Operand, width: u32) -> fmt::Result {
    let Some(number) = operand.number() else {
        return write!(f, "{operand:?}");
    };
    let (prefix, first) = match number {
        0..=101 => ("s", number),
        108..=123 => ("ttmp", number - 108),
        124 => return f.write_str("m0"),
        251 => return f.write_str("src_vccz"),
        252 => return f.write_str("src_execz"),
        253 => return f.write_str("src_scc"),
        254 => return f.write_str("src_lds_direct"),
        256..512 => ("v", number - 256),
        512.. => ("a", number - 512),
        _ => return write_special(f, number, width),
    };
    match width {
        1 => write!(f, "{prefix}{first}"),
        _ => write!(f, "{prefix}[{first}:{}]", first + width - 1),
    }
}

fn write_special(f: &mut dyn Write, number: u32, width: u32) -> fmt::Result {
    match PAIRS.iter().find(|(first, _)| *first == number & !1) {
        Some((_, name)) if width == 2 => f.write_str(name),
        Some((first, name)) => write!(f, "{name}_{}", if *first == number { "lo" } else { "hi" }),
        None => write!(f, "?{number}"),
    }
}

fn write_modifiers(f: &mut dyn Write, inst: &Inst, info: &OpInfo, arch: Arch) -> fmt::Result {
    let modifiers = inst.modifiers;
    if modifiers.has_second_word() {
        return write_second_word(f, inst, info);
    }
    match info.format {
        format if format.is_vop3() => {
            if info.format == Format::Vop1Swap {
                f.write_str(if modifiers.get_op_sel() & 2 != 0 { " bound_ctrl:1" } else { "" })?;
                return f.write_str(if modifiers.get_op_sel() & 1 != 0 { " fi:1" } else { "" });
            }
            if modifiers.get_bitop3() != 0 {
                match modifiers.get_bitop3() {
                    table @ 0..10 => write!(f, " bitop3:{table}")?,
                    table => write!(f, " bitop3:{table:#x}")?,
                }
            }
            if modifiers.get_op_sel() != 0 {
                let entries = info.op_sel_bits();
                // Bit 3 is the result whatever the number of sources.
                let low = modifiers.get_op_sel() & ((1 << (entries - 1)) - 1);
                write_bits(f, "op_sel", low | modifiers.get_op_sel() >> 3 << (entries - 1), entries)?;
            }
            write_output_modifiers(f, modifiers)
        }
        Format::Vop3p | Format::Vop3pMix => write_packed(f, inst, info),
        Format::Mai | Format::MaiScaled => write_matrix(f, inst, info, arch),
        Format::Smem if modifiers.has_sc0() => f.write_str(" glc"),
        Format::Ds | Format::Gws => {
            write_ds_offset(f, inst, info)?;
            f.write_str(if modifiers.has_gds() || info.format == Format::Gws { " gds" } else { "" })
        }
        Format::Mimg => write_image(f, inst),
        format if format.is_mubuf() || format.is_flat() => write_memory(f, inst, info, arch),
        _ => Ok(()),
    }
}

/// Output modifiers and the control of DPP or SDWA.
fn write_second_word(f: &mut dyn Write, inst: &Inst, info: &OpInfo) -> fmt::Result {
    write_output_modifiers(f, inst.modifiers)?;
    if inst.modifiers.has_dpp() {
        return write_dpp(f, Dpp::from_imm(inst.imm));
    }
    let sdwa = Sdwa::from_imm(inst.imm).unwrap_or_default();
    write_sdwa(f, sdwa, info.short_sources(), info.selects_result())
}

fn write_bits(f: &mut dyn Write, name: &str, bits: u32, count: u32) -> fmt::Result {
    write!(f, " {name}:[")?;
    for index in 0..count {
        write!(f, "{}{}", if index == 0 { "" } else { "," }, bits >> index & 1)?;
    }
    f.write_char(']')
}

fn write_output_modifiers(f: &mut dyn Write, modifiers: Modifiers) -> fmt::Result {
    if modifiers.has_clamp() {
        f.write_str(" clamp")?;
    }
    f.write_str(match modifiers.get_omod() {
        Omod::None => "",
        Omod::Mul2 => " mul:2",
        Omod::Mul4 => " mul:4",
        Omod::Div2 => " div:2",
    })
}

fn write_packed(f: &mut dyn Write, inst: &Inst, info: &OpInfo) -> fmt::Result {
    let modifiers = inst.modifiers;
    let sources = info.operands.len() as u32 - 1;
    let all = (1 << sources) - 1;
    let default = default_op_sel_hi(info.format) & all;
    if modifiers.get_op_sel() != 0 {
        write_bits(f, "op_sel", modifiers.get_op_sel(), sources)?;
    }
    if modifiers.get_op_sel_hi_flip() != 0 {
        write_bits(f, "op_sel_hi", modifiers.get_op_sel_hi_flip() ^ default, sources)?;
    }
    if info.format == Format::Vop3p {
        if modifiers.get_neg_lo() != 0 {
            write_bits(f, "neg_lo", modifiers.get_neg_lo(), sources)?;
        }
        if modifiers.get_neg_hi() != 0 {
            write_bits(f, "neg_hi", modifiers.get_neg_hi(), sources)?;
        }
    }
    if modifiers.has_clamp() { f.write_str(" clamp") } else { Ok(()) }
}

fn write_matrix(f: &mut dyn Write, inst: &Inst, info: &OpInfo, arch: Arch) -> fmt::Result {
    let modifiers = inst.modifiers;
    if info.format == Format::MaiScaled {
        let select = modifiers.get_scale_select();
        let low = select & 1 | select >> 1 & 2;
        if low != 0 {
            write_bits(f, "op_sel", low, 3)?;
        }
        write_bits(f, "op_sel_hi", select >> 1 & 1 | select >> 2 & 2, 3)?;
    }
    if modifiers.get_cbsz() != 0 {
        write!(f, " cbsz:{}", modifiers.get_cbsz())?;
    }
    if modifiers.get_abid() != 0 {
        write!(f, " abid:{}", modifiers.get_abid())?;
    }
    match (modifiers.get_blgp(), info.meaning) {
        (0, _) => Ok(()),
        (neg, Meaning::Mfma(_, _, _, Element::F64)) if arch.has_scope_bits() => write_bits(f, "neg", neg, 3),
        (blgp, _) => write!(f, " blgp:{blgp}"),
    }
}

fn write_ds_offset(f: &mut dyn Write, inst: &Inst, info: &OpInfo) -> fmt::Result {
    match info.meaning {
        _ if info.has_two_offsets() => {
            for (name, offset) in [("offset0", inst.imm & 0xff), ("offset1", inst.imm >> 8 & 0xff)] {
                if offset != 0 {
                    write!(f, " {name}:{offset}")?;
                }
            }
            Ok(())
        }
        _ if inst.imm == 0 => Ok(()),
        Meaning::LaneSwizzle => write_swizzle(f, inst.imm),
        _ => write!(f, " offset:{}", inst.imm),
    }
}

/// Components and flags of an image instruction; the chips that have any call the scope bits glc, slc, scc.
fn write_image(f: &mut dyn Write, inst: &Inst) -> fmt::Result {
    let modifiers = inst.modifiers;
    if modifiers.get_dmask() != 0 {
        write!(f, " dmask:{:#x}", modifiers.get_dmask())?;
    }
    for (is_set, name) in [
        (modifiers.has_unorm(), " unorm"),
        (modifiers.has_sc0(), " glc"),
        (modifiers.has_nt(), " slc"),
        (modifiers.has_sc1(), " scc"),
        (modifiers.has_a16(), " a16"),
        (modifiers.has_tfe(), " tfe"),
        (modifiers.has_lwe(), " lwe"),
        (modifiers.has_da(), " da"),
        (modifiers.has_d16(), " d16"),
    ] {
        f.write_str(if is_set { name } else { "" })?;
    }
    Ok(())
}

fn write_memory(f: &mut dyn Write, inst: &Inst, info: &OpInfo, arch: Arch) -> fmt::Result {
    let modifiers = inst.modifiers;
    // LLVM's compiler sets bits here on gfx90a that its assembler has no words for.
    if info.format == Format::MubufBare && !arch.has_scope_bits() {
        return Ok(());
    }
    if info.format == Format::Mtbuf {
        let usual = BufferFormat::USUAL.to_bits();
        write_format(f, BufferFormat::from_bits(modifiers.get_format_flip() ^ usual))?;
    }
    if modifiers.has_idxen() {
        f.write_str(" idxen")?;
    }
    if modifiers.has_offen() {
        f.write_str(" offen")?;
    }
    if inst.imm != 0 && info.format != Format::MubufBare {
        write!(f, " offset:{}", inst.imm as i32)?;
    }
    let is_store_of_lds = info.meaning == Meaning::StoreFromLdsToMemory;
    if is_store_of_lds {
        f.write_str(" lds")?;
    }
    let [sc0, nt, sc1] =
        if arch.has_scope_bits() { [" sc0", " nt", " sc1"] } else { [" glc", " slc", " scc"] };
    if modifiers.has_sc0() || info.format.returns() {
        f.write_str(sc0)?;
    }
    if modifiers.has_nt() {
        f.write_str(nt)?;
    }
    if modifiers.has_sc1() {
        f.write_str(sc1)?;
    }
    if info.format.is_mubuf() && modifiers.has_tfe() {
        f.write_str(" tfe")?;
    }
    if info.format.is_to_lds() && !is_store_of_lds {
        f.write_str(" lds")?;
    }
    Ok(())
}
