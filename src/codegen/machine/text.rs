//! Text form of machine bodies, for tests and for looking at the result of a pass: assembler text with
//! virtual registers.
//!
//! ```text
//! bb0:
//!     v_mov_b32 %0:v1, 0                        first mention says file (s, v, a) and width
//!     ds_read_b128 %1:v4, %0 offset:16
//!     v_mfma_f32_16x16x16_f16 %2:v4, %1[0:1], %1[2:3], %2
//!     s_cbranch_scc1 bb0                        blocks are bb0, bb1, ... in layout order
//! ```
//!
//! Instructions are read by the assembler's parser, which does not apply rules between operands here: a body
//! may break them, and the machine verifier reports it. `_e32` and `_e64` are left out unless the long
//! encoding is asked for. `s_barrier nowait` is a barrier that hands over no LDS data
//! ([`BARRIER_WITHOUT_WAITS`]).

use std::fmt::Write;

use super::body::{Block, BlockId, MachineBody, MachineInst, RegisterFile, VirtualRegister};
use super::waits::BARRIER_WITHOUT_WAITS;
use crate::codegen::isa::parse::cursor::StatementCursor;
use crate::codegen::isa::parse::{NoSymbols, ParseContext, Surroundings, parse_statement};
use crate::codegen::isa::{Arch, Inst, Meaning, Opcode, Operand, VReg, write_inst};
use crate::index::Neighbours;
use cranelift_entity::{PrimaryMap, SecondaryMap};

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
pub fn parse(text: &str) -> Result<MachineBody, TextError> {
    let mut body = MachineBody::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(';').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let fail = |message: String| TextError { line: number + 1, message };
        if let Some(label) = line.strip_suffix(':') {
            let block = block_id(label).map_err(fail)?;
            if block != body.blocks.next_key() {
                return Err(fail(format!("expected {}", body.blocks.next_key())));
            }
            start_block(&mut body);
            continue;
        }
        if body.blocks.is_empty() {
            start_block(&mut body);
        }
        let before = body.blocks.last().and_then(|(block, _)| body.block(block).last());
        if before.is_some_and(|i| matches!(i.inst.op.info().meaning, Meaning::Branch(_))) {
            return Err(fail(format!("a branch ends its block: expected {}", body.blocks.next_key())));
        }
        let inst = parse_inst(line, &mut body.registers).map_err(fail)?;
        body.insts.push(MachineInst { inst, source: number as u32 + 1 });
        if let Some((_, block)) = body.blocks.last_mut() {
            block.end = body.insts.next_key();
        }
    }
    // A register that is not mentioned may be anything.
    body.registers.values_mut().for_each(|register| register.width = register.width.max(1));
    let count = body.blocks.next_key();
    for index in body.blocks.keys() {
        let last = body.block(index).last().copied();
        let (falls, target) = match last.map(|i| (i.inst.op.info().meaning, i)) {
            Some((Meaning::Branch(_), i)) => {
                (i.inst.op != Opcode::SBranch, Some(BlockId::from_bits(i.inst.imm)))
            }
            Some((Meaning::EndProgram, _)) => (false, None),
            _ => (true, None),
        };
        if let (Some(target), Some(i)) = (target, last)
            && target >= count
        {
            return Err(TextError { line: i.source as usize, message: format!("there is no {target}") });
        }
        let next = index.next();
        body.blocks[index].successors = [(falls && next < count).then_some(next), target];
    }
    Ok(body)
}

fn start_block(body: &mut MachineBody) {
    let at = body.insts.next_key();
    body.blocks.push(Block { start: at, end: at, successors: [None; 2] });
}

fn block_id(label: &str) -> Result<BlockId, String> {
    // A number of any size may be written.
    let number = label.strip_prefix("bb").and_then(|n| n.parse().ok());
    number.map(BlockId::from_bits).ok_or_else(|| format!("`{label}` is not a block"))
}

/// One instruction in the assembler's syntax, with virtual registers and blocks.
fn parse_inst(line: &str, registers: &mut PrimaryMap<VReg, VirtualRegister>) -> Result<Inst, String> {
    if line.split_whitespace().eq(["s_barrier", "nowait"]) {
        return Ok(Inst::new(Opcode::SBarrier, &[]).imm(BARRIER_WITHOUT_WAITS));
    }
    let mut cursor = StatementCursor::new(line);
    let mut read = |text: &str| {
        let length = virtual_length(text);
        let (operand, width) = parse_virtual(&text[1..length], registers)?;
        Ok((operand, width, length))
    };
    let surroundings = Surroundings::Body;
    let arch = Arch::USUAL;
    let mut context = ParseContext { arch, symbols: &NoSymbols, surroundings, registers: Some(&mut read) };
    let parsed = parse_statement(&mut cursor, &mut context).map_err(|error| error.to_string())?;
    let mut inst = parsed.inst;
    if let Some(reference) = parsed.reference {
        let label = reference.label().ok_or("a branch goes to a block")?;
        inst.imm = block_id(label)?.as_u32();
    } else if matches!(inst.op.info().meaning, Meaning::Branch(_)) {
        return Err("a branch goes to a block".to_owned());
    }
    Ok(inst)
}

/// Length of a virtual register with its part and declaration, and the `%` before them.
fn virtual_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = 1 + digits(1);
    if text[end..].starts_with('[') {
        end += text[end..].find(']').map_or(0, |close| close + 1);
    }
    if text[end..].starts_with([':']) && text[end + 1..].starts_with(['s', 'v', 'a']) {
        end += 2 + digits(end + 2);
    }
    end
}

fn parse_integer(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a number"))
}

/// `7` or `[4:7]` to first and count.
fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| parse_integer(text).map(|n| n.min(1 << 20));
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
/// Texts are written by people, who do not need more.
const MOST_REGISTERS: u32 = 1 << 16;

/// `3`, `3:v4`, `3[0:1]`, `3[0:1]:v4`.
fn parse_virtual(
    text: &str,
    registers: &mut PrimaryMap<VReg, VirtualRegister>,
) -> Result<(Operand, u32), String> {
    let bad = || format!("`%{text}` is not a register");
    let id_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let id = VReg::from_bits(text[..id_end].parse().map_err(|_| bad())?);
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
        if !(1..=32).contains(&width) || id.as_u32() >= MOST_REGISTERS {
            return Err(bad());
        }
        while registers.next_key() <= id {
            registers.push(UNDECLARED);
        }
        if std::mem::replace(&mut registers[id], VirtualRegister { file, width }).width > 0 {
            return Err(format!("{id} is declared twice"));
        }
    }
    let register = registers.get(id).filter(|register| register.width > 0);
    let register = register.ok_or_else(|| format!("{id} is not declared"))?;
    let (first, width) = if part.is_empty() { (0, u32::from(register.width)) } else { parse_range(part)? };
    if first + width > u32::from(register.width) {
        return Err(format!("{id} has {} registers", register.width));
    }
    Ok((Operand::virtual_register(id, first), width))
}

/// Writes a body.
pub fn print(body: &MachineBody) -> String {
    let mut out = String::new();
    let mut declared = SecondaryMap::new();
    declared.resize(body.registers.len());
    for index in body.blocks.keys() {
        let _ = writeln!(out, "{index}:");
        for i in body.block(index) {
            let _ = writeln!(out, "    {}", inst_text(&i.inst, body, &mut declared));
        }
    }
    out
}

fn inst_text(inst: &Inst, body: &MachineBody, declared: &mut SecondaryMap<VReg, bool>) -> String {
    let mut plain = String::new();
    let is_branch = matches!(inst.op.info().meaning, Meaning::Branch(_));
    let label = is_branch.then(|| BlockId::from_bits(inst.imm).to_string());
    let _ = write_inst(&mut plain, inst, inst.op.spelling(), label.as_deref());
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

fn virtual_text(
    id: VReg,
    first: u32,
    width: u32,
    body: &MachineBody,
    declared: &mut SecondaryMap<VReg, bool>,
) -> String {
    let mut out = id.to_string();
    let Some(register) = body.registers.get(id) else { return out };
    if width != u32::from(register.width) {
        let _ = match width {
            1 => write!(out, "[{first}]"),
            _ => write!(out, "[{first}:{}]", first + width - 1),
        };
    }
    if !std::mem::replace(&mut declared[id], true) {
        let file = match register.file {
            RegisterFile::Sgpr => 's',
            RegisterFile::Vgpr => 'v',
            RegisterFile::Agpr => 'a',
        };
        let _ = write!(out, ":{file}{}", register.width);
    }
    out
}
