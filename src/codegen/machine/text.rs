//! Text form of machine bodies, for tests and for looking at what a pass did: assembler text with virtual registers.
//!
//! ```text
//! bb0:
//!     v_mov_b32 %0:v1, 0                        first mention says file (s, v, a) and width
//!     ds_read_b128 %1:v4, %0 offset:16
//!     v_mfma_f32_16x16x16_f16 %2:v4, %1[0:1], %1[2:3], %2
//!     s_cbranch_scc1 bb0                        blocks are bb0, bb1, ... in layout order
//! ```
//!
//! `_e32` and `_e64` are left out unless the long encoding is asked for. `s_barrier nowait` is a barrier that hands over
//! no LDS data ([`BARRIER_WITHOUT_WAITS`]).

use std::fmt::Write;

use super::body::{Block, Body, MachineInst, RegisterFile, VirtualRegister};
use super::waits::BARRIER_WITHOUT_WAITS;
use crate::codegen::isa::{
    Dpp, Format, Inst, MAX_OPERANDS, Meaning, Modifiers, Opcode, Operand, OperandClass, Sdwa, Select, Unused,
    WaitCounts, write_inst,
};

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads a body. The source of each instruction is its line.
pub fn parse(text: &str) -> Result<Body, TextError> {
    let mut body = Body::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(';').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let fail = |message: String| TextError { line: number + 1, message };
        if let Some(label) = line.strip_suffix(':') {
            let index = block_index(label).map_err(fail)?;
            if index as usize != body.blocks.len() {
                return Err(fail(format!("expected bb{}", body.blocks.len())));
            }
            start_block(&mut body);
            continue;
        }
        if body.blocks.is_empty() {
            start_block(&mut body);
        }
        let inst = parse_inst(line, &mut body.registers).map_err(fail)?;
        body.insts.push(MachineInst { inst, source: number as u32 + 1 });
        if let Some(block) = body.blocks.last_mut() {
            block.end += 1;
        }
    }
    // A register that nobody mentions may be anything.
    body.registers.iter_mut().for_each(|register| register.width = register.width.max(1));
    let count = body.blocks.len() as u32;
    for index in 0..body.blocks.len() {
        let last = body.block(index).last().copied();
        let (falls, target) = match last.map(|i| (i.inst.op.info().meaning, i)) {
            Some((Meaning::Branch(_), i)) => (i.inst.op != Opcode::SBranch, Some(i.inst.imm)),
            Some((Meaning::EndProgram, _)) => (false, None),
            _ => (true, None),
        };
        if let (Some(target), Some(i)) = (target, last)
            && target >= count
        {
            return Err(TextError { line: i.source as usize, message: format!("there is no bb{target}") });
        }
        let next = index as u32 + 1;
        body.blocks[index].successors = [(falls && next < count).then_some(next), target];
    }
    Ok(body)
}

fn start_block(body: &mut Body) {
    let at = body.insts.len() as u32;
    body.blocks.push(Block { start: at, end: at, successors: [None; 2] });
}

fn block_index(label: &str) -> Result<u32, String> {
    label.strip_prefix("bb").and_then(|n| n.parse().ok()).ok_or_else(|| format!("`{label}` is no block"))
}

fn parse_inst(line: &str, registers: &mut Vec<VirtualRegister>) -> Result<Inst, String> {
    let (mnemonic, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    const FORMS: [(&str, Modifiers); 3] = [
        ("_e64", Modifiers::new().e64()),
        ("_dpp", Modifiers::new().dpp()),
        ("_sdwa", Modifiers::new().sdwa()),
    ];
    let form = FORMS.iter().find_map(|(suffix, form)| Some((mnemonic.strip_suffix(suffix)?, *form)));
    let (mnemonic, form) = form.unwrap_or((mnemonic, Modifiers::new()));
    let (mut operands, mut tail) = split_operands(rest.trim());
    let returns = tail.contains(&"sc0");
    let to_lds = tail.contains(&"lds");
    let op = Opcode::ALL.iter().copied().find(|op| {
        let info = op.info();
        let returning = matches!(info.format, Format::MubufRtn | Format::GlobalRtn | Format::FlatRtn);
        let by_bit = matches!(info.format, Format::MubufLds | Format::GlobalLds | Format::ScratchLds);
        info.mnemonic == mnemonic
            && by_bit == to_lds
            && (!returning || returns)
            && !(returns && matches!(info.meaning, Meaning::Atomic(..)))
    });
    let op = op.ok_or_else(|| format!("`{mnemonic}` is no instruction"))?;
    let info = op.info();
    if info.operands.is_empty() && info.format != Format::Sopp {
        tail.append(&mut operands);
    }
    let mut inst = Inst::new(op, &[]);
    let mut widths = [None; MAX_OPERANDS];
    let mut operands = operands.into_iter();
    match (info.format, info.meaning) {
        (Format::Sopp, Meaning::Branch(_)) => {
            inst.imm = block_index(operands.next().unwrap_or(""))?;
        }
        (Format::Sopp, Meaning::Wait) => {
            inst.imm = parse_waits(rest)?.to_imm();
            operands = Vec::new().into_iter();
        }
        (Format::Sopp, Meaning::Barrier) => {
            inst.imm = if operands.next() == Some("nowait") { BARRIER_WITHOUT_WAITS } else { 0 };
        }
        (Format::Sopp, _) => inst.imm = operands.next().map_or(Ok(0), parse_integer)? as u32,
        _ => {
            let hwreg_first = matches!(info.meaning, Meaning::SetHardwareRegister);
            if hwreg_first {
                let hwreg = parse_integer(operands.next().unwrap_or(""))? as u32;
                match op {
                    Opcode::SSetregImm32B32 => inst.modifiers = Modifiers::new().hwreg(hwreg),
                    _ => inst.imm = hwreg,
                }
            }
            for (index, spec) in info.operands.iter().enumerate() {
                let text = operands.next().ok_or("an operand is missing")?;
                (inst.operands[index], widths[index]) =
                    parse_operand(text, &mut inst.imm, spec.class, registers)?;
            }
            let index_mode = info.meaning == Meaning::SetGprIndexOn;
            if info.format == Format::Sopk && !hwreg_first || index_mode {
                inst.imm = parse_integer(operands.next().unwrap_or(""))? as u32;
            }
        }
    }
    if let Some(extra) = operands.next() {
        return Err(format!("`{extra}` is too much"));
    }
    inst.modifiers = inst.modifiers.union(form);
    if inst.modifiers.has_dpp() {
        inst.imm = Dpp::new(0).to_imm();
    } else if inst.modifiers.has_sdwa() {
        inst.imm = Sdwa { sources: [Select::Dword; 2], ..Sdwa::default() }.to_imm();
    }
    if info.format != Format::Sopp {
        for word in tail {
            parse_modifier(word, &mut inst)?;
        }
    }
    for (index, width) in widths.iter().enumerate() {
        if width.is_some_and(|width| width != u32::from(inst.width(index))) {
            return Err(format!("operand {index} has {} registers", inst.width(index)));
        }
    }
    Ok(inst)
}

/// Operands at the commas; what follows the last one behind a space are modifiers.
fn split_operands(text: &str) -> (Vec<&str>, Vec<&str>) {
    let mut operands: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    // Lists in modifiers have commas too: op_sel:[0,1].
    if let Some(colon) = text.find(":[") {
        let start = text[..colon].rfind(char::is_whitespace).unwrap_or(0);
        let (mut operands, mut tail) = split_operands(&text[..start]);
        operands.retain(|part| !part.is_empty());
        tail.extend(text[start..].split_whitespace());
        return (operands, tail);
    }
    let Some(last) = operands.pop() else { return (operands, Vec::new()) };
    let mut words = last.split_whitespace();
    operands.extend(words.next());
    (operands, words.collect())
}

fn parse_integer(text: &str) -> Result<i64, String> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    value.map(|value| if negative { -value } else { value }).map_err(|_| format!("`{text}` is no number"))
}

fn parse_waits(text: &str) -> Result<WaitCounts, String> {
    let mut counts = WaitCounts::NONE;
    for part in text.split_whitespace() {
        let (name, count) =
            part.strip_suffix(')').and_then(|p| p.split_once('(')).ok_or("a count is expected")?;
        let count = parse_integer(count)? as u8;
        match name {
            "vmcnt" => counts.vm = count,
            "lgkmcnt" => counts.lgkm = count,
            "expcnt" => counts.exp = count,
            _ => return Err(format!("`{name}` is no counter")),
        }
    }
    Ok(counts)
}

/// Operand and the width that the text says.
fn parse_operand(
    text: &str,
    imm: &mut u32,
    class: OperandClass,
    registers: &mut Vec<VirtualRegister>,
) -> Result<(Operand, Option<u32>), String> {
    const NAMES: [(&str, Operand, u32); 13] = [
        ("off", Operand::NONE, 0),
        ("vcc", Operand::VCC, 2),
        ("vcc_lo", Operand::VCC, 1),
        ("vcc_hi", Operand::VCC.offset(1), 1),
        ("exec", Operand::EXEC, 2),
        ("exec_lo", Operand::EXEC, 1),
        ("exec_hi", Operand::EXEC.offset(1), 1),
        ("m0", Operand::M0, 1),
        ("flat_scratch", Operand::sgpr(102), 2),
        ("flat_scratch_lo", Operand::sgpr(102), 1),
        ("flat_scratch_hi", Operand::sgpr(103), 1),
        ("src_vccz", Operand::VCCZ, 1),
        ("src_execz", Operand::EXECZ, 1),
    ];
    if let Some((_, operand, width)) = NAMES.iter().find(|(name, ..)| *name == text) {
        return Ok((*operand, (*width > 0).then_some(*width)));
    }
    if let Some(text) = text.strip_prefix('%') {
        return parse_virtual(text, registers);
    }
    if let Some((make, limit)) = match text.as_bytes().first() {
        Some(b'v') => Some((Operand::vgpr as fn(u32) -> Operand, 256)),
        Some(b'a') => Some((Operand::agpr as fn(u32) -> Operand, 256)),
        Some(b's') => Some((Operand::sgpr as fn(u32) -> Operand, 102)),
        _ => None,
    } {
        let (first, width) = parse_range(&text[1..])?;
        if first + width > limit {
            return Err(format!("there is no {text}"));
        }
        return Ok((make(first), Some(width)));
    }
    if text.contains('.') {
        let value: f32 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
        let operand = Operand::inline_float(value.to_bits()).ok_or("only inline constants have a point")?;
        return Ok((operand, None));
    }
    let value = parse_integer(text)?;
    if class == OperandClass::ScalarOffset {
        *imm = value as u32;
        return Ok((Operand::NONE, None));
    }
    let operand =
        if class == OperandClass::Literal { Operand::LITERAL } else { Operand::constant(value as u32) };
    if operand == Operand::LITERAL {
        *imm = value as u32;
    }
    Ok((operand, None))
}

/// `7` or `[4:7]` to first and count.
fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| parse_integer(text).map(|n| n.clamp(0, 1 << 20) as u32);
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        None => Ok((number(text)?, 1)),
        Some(range) => {
            let (first, last) = range.split_once(':').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(format!("`{text}` ends before it starts"));
            }
            Ok((first, last - first + 1))
        }
    }
}

/// Stands for ids that are not mentioned.
const UNDECLARED: VirtualRegister = VirtualRegister { file: RegisterFile::Vgpr, width: 0 };
/// Texts are written by people: no need for more.
const MOST_REGISTERS: u32 = 1 << 16;

/// `3`, `3:v4`, `3[0:1]`, `3[0:1]:v4`.
fn parse_virtual(text: &str, registers: &mut Vec<VirtualRegister>) -> Result<(Operand, Option<u32>), String> {
    let bad = || format!("`%{text}` is no register");
    let id_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let id: u32 = text[..id_end].parse().map_err(|_| bad())?;
    let (part, declared) = match text[id_end..].rsplit_once(':') {
        Some((part, declared)) if !declared.ends_with(']') => (part, Some(declared)),
        _ => (&text[id_end..], None),
    };
    if let Some(declared) = declared {
        let file = match declared.as_bytes().first() {
            Some(b's') => RegisterFile::Sgpr,
            Some(b'v') => RegisterFile::Vgpr,
            Some(b'a') => RegisterFile::Agpr,
            _ => return Err(bad()),
        };
        let width: u8 = declared[1..].parse().map_err(|_| bad())?;
        if !(1..=32).contains(&width) || id >= MOST_REGISTERS {
            return Err(bad());
        }
        if registers.len() <= id as usize {
            registers.resize(id as usize + 1, UNDECLARED);
        }
        if std::mem::replace(&mut registers[id as usize], VirtualRegister { file, width }).width > 0 {
            return Err(format!("%{id} is declared twice"));
        }
    }
    let register = registers.get(id as usize).filter(|register| register.width > 0);
    let register = register.ok_or_else(|| format!("%{id} is not declared"))?;
    let (first, width) = if part.is_empty() { (0, u32::from(register.width)) } else { parse_range(part)? };
    if first + width > u32::from(register.width) {
        return Err(format!("%{id} has {} registers", register.width));
    }
    Ok((Operand::virtual_register(id, first), Some(width)))
}

fn parse_modifier(word: &str, inst: &mut Inst) -> Result<(), String> {
    let m = inst.modifiers;
    let (name, value) = word.split_once(':').map_or((word, None), |(name, value)| (name, Some(value)));
    let list = |value: Option<&str>| -> Result<u32, String> {
        let inner = value.and_then(|v| v.strip_prefix('[')).and_then(|v| v.strip_suffix(']'));
        let bits = inner.ok_or("a list is expected")?.split(',');
        bits.enumerate().try_fold(0, |sum, (n, bit)| Ok(sum | (parse_integer(bit)? as u32 & 1) << n))
    };
    let number = |value: Option<&str>| parse_integer(value.unwrap_or("")).map(|n| n as u32);
    if m.has_second_word() && parse_second_word(name, value, inst)? {
        return Ok(());
    }
    inst.modifiers = match name {
        "offset" => {
            inst.imm = number(value)?;
            m
        }
        "offset0" => {
            inst.imm |= number(value)? & 0xff;
            m
        }
        "offset1" => {
            inst.imm |= (number(value)? & 0xff) << 8;
            m
        }
        // The low and the high bit of the bytes of both scales.
        "op_sel" | "op_sel_hi" if inst.op.info().format == Format::MaiScaled => {
            let bits = list(value)?;
            let bits = bits & 1 | bits << 1 & 4;
            m.scale_select(m.get_scale_select() | if name == "op_sel" { bits } else { bits << 1 })
        }
        "op_sel" => {
            let sources = inst.op.info().operands.len() as u32 - 1;
            let bits = list(value)?;
            // All four bits, or one for each source and one for the result.
            let all = value.is_some_and(|value| value.split(',').count() == 4);
            m.op_sel(if all { bits } else { bits & ((1 << sources) - 1) | bits >> sources << 3 })
        }
        "sc0" if matches!(inst.op.info().format, Format::MubufRtn | Format::GlobalRtn | Format::FlatRtn) => m,
        "gds" if inst.op.info().format == Format::Gws => m,
        "gds" => m.gds(),
        "sc0" | "glc" => m.sc0(),
        "sc1" => m.sc1(),
        "nt" => m.nt(),
        "offen" => m.offen(),
        "idxen" => m.idxen(),
        "clamp" => m.clamp(),
        "lds" => m,
        "cbsz" => m.cbsz(number(value)?),
        "abid" => m.abid(number(value)?),
        "blgp" => m.blgp(number(value)?),
        _ => return Err(format!("`{word}` is no modifier")),
    };
    Ok(())
}

/// Parts of the second word of DPP and SDWA; false if the modifier is none of them.
fn parse_second_word(name: &str, value: Option<&str>, inst: &mut Inst) -> Result<bool, String> {
    let number = || parse_integer(value.unwrap_or("")).map(|n| n as u32);
    if inst.modifiers.has_sdwa() {
        let mut sdwa = Sdwa::from_imm(inst.imm).unwrap_or_default();
        let select = Select::from_name(value.unwrap_or(""));
        match (name, select, Unused::from_name(value.unwrap_or(""))) {
            ("dst_sel", Some(select), _) => sdwa.dst = select,
            ("src0_sel", Some(select), _) => sdwa.sources[0] = select,
            ("src1_sel", Some(select), _) => sdwa.sources[1] = select,
            ("dst_unused", _, Some(unused)) => sdwa.unused = unused,
            _ => return Ok(false),
        }
        inst.imm = sdwa.to_imm();
        return Ok(true);
    }
    let mut dpp = Dpp::from_imm(inst.imm);
    match name {
        "row_mask" => dpp.row_mask = number()?,
        "bank_mask" => dpp.bank_mask = number()?,
        "bound_ctrl" => dpp.bound_control = true,
        "quad_perm" => {
            let lanes = value.and_then(|v| v.strip_prefix('[')?.strip_suffix(']')).unwrap_or("");
            let lanes: Vec<u32> = lanes.split(',').filter_map(|lane| lane.parse().ok()).collect();
            let lanes = lanes.try_into().map_err(|_| "four lanes are expected")?;
            dpp.control = Dpp::quad_perm(lanes);
        }
        _ => {
            let argument = if Dpp::takes_argument(name) { number()? } else { 0 };
            match Dpp::control(name, argument) {
                Some(control) => dpp.control = control,
                None => return Ok(false),
            }
        }
    }
    inst.imm = dpp.to_imm();
    Ok(true)
}

/// Writes a body.
pub fn print(body: &Body) -> String {
    let mut out = String::new();
    let mut declared = vec![false; body.registers.len()];
    for index in 0..body.blocks.len() {
        let _ = writeln!(out, "bb{index}:");
        for i in body.block(index) {
            let _ = writeln!(out, "    {}", inst_text(&i.inst, body, &mut declared));
        }
    }
    out
}

fn inst_text(inst: &Inst, body: &Body, declared: &mut [bool]) -> String {
    let mut plain = String::new();
    let label = format!("bb{}", inst.imm);
    let label = matches!(inst.op.info().meaning, Meaning::Branch(_)).then_some(label.as_str());
    let _ = write_inst(&mut plain, inst, inst.op.spelling(), label);
    plain_immediate(&mut plain, inst);
    let (mnemonic, rest) = plain.split_once(' ').unwrap_or((&plain, ""));
    let long = inst.modifiers.has_e64();
    let short = mnemonic.strip_suffix("_e32").or_else(|| mnemonic.strip_suffix("_e64")).unwrap_or(mnemonic);
    let mut out = String::from(if long { mnemonic } else { short });
    if !rest.is_empty() {
        out.push(' ');
    }
    let mut virtuals = (0..inst.op.info().operands.len()).filter(|&index| inst.operands[index].is_virtual());
    let mut pieces = rest.split('%');
    out.push_str(pieces.next().unwrap_or(""));
    for piece in pieces {
        // The plain text has `id.first` here; name, part and declaration take its place.
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(piece.len());
        if let Some(index) = virtuals.next()
            && let Some((id, first)) = inst.operands[index].as_virtual()
        {
            out.push_str(&virtual_text(id, first, inst.width(index).into(), body, declared));
        }
        out.push_str(&piece[end..]);
    }
    if inst.op.info().meaning == Meaning::Barrier && inst.imm == BARRIER_WITHOUT_WAITS {
        out.push_str(" nowait");
    }
    out
}

/// Immediates with an inner structure stand as a number here.
fn plain_immediate(text: &mut String, inst: &Inst) {
    let long = inst.op == Opcode::SSetregImm32B32;
    let bits = if long { inst.modifiers.get_hwreg() } else { inst.imm };
    for name in ["sendmsg(", "hwreg(", "swizzle(", "gpr_idx("] {
        if let Some(start) = text.find(name)
            && let Some(length) = text[start..].find(')')
        {
            text.replace_range(start..=start + length, &format!("{bits:#x}"));
        }
    }
}

fn virtual_text(id: u32, first: u32, width: u32, body: &Body, declared: &mut [bool]) -> String {
    let mut out = format!("%{id}");
    let Some(register) = body.registers.get(id as usize) else { return out };
    if width != u32::from(register.width) {
        let _ = match width {
            1 => write!(out, "[{first}]"),
            _ => write!(out, "[{first}:{}]", first + width - 1),
        };
    }
    if !std::mem::replace(&mut declared[id as usize], true) {
        let file = match register.file {
            RegisterFile::Sgpr => 's',
            RegisterFile::Vgpr => 'v',
            RegisterFile::Agpr => 'a',
        };
        let _ = write!(out, ":{file}{}", register.width);
    }
    out
}
