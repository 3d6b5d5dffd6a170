//! Code bytes decoded once: a dense list of steps whose operands say directly where a value is kept.

use crate::codegen::isa::{
    Arch, Element, Field, Format, Generation, Inst, MAX_OPERANDS, Meaning, MemoryData, Modifiers, OpInfo,
    Opcode, Operand, OperandClass, OperandSpec, decode,
};
use crate::float16::{bf16, f16};

use super::execute::{Fast, GPR_INDEX, VSKIP, writes_mode};
use super::stats::InstructionClass;
use super::wave::{PRIVATE_APERTURE, SHARED_APERTURE};

/// Where a source comes from or a result goes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum OperandPlace {
    /// Nowhere.
    None,
    /// SGPR or special scalar register at its operand number.
    Scalar(u8),
    /// Vector register: VGPRs, then accumulation VGPRs.
    Row(u16),
    /// Constant, zero-extended where 64 bits are wanted.
    Low(u32),
    /// Constant, sign-extended where 64 bits are wanted.
    Signed(u32),
    /// Constant; where 64 bits are wanted it is the high half and the low half is zero.
    High(u32),
    /// The f64 inline constant 1 / (2 pi).
    InverseTwoPi,
    /// SCC as a value.
    Scc,
    /// 1 if VCC is zero.
    VccZero,
    /// 1 if EXEC is zero.
    ExecZero,
}

impl OperandPlace {
    /// The register `by` after this one; constants have no neighbours.
    #[inline(always)]
    pub(super) fn offset(self, by: usize) -> OperandPlace {
        match self {
            OperandPlace::Scalar(n) => OperandPlace::Scalar(n + by as u8),
            OperandPlace::Row(n) => OperandPlace::Row(n + by as u16),
            other => other,
        }
    }

    /// Number of the row, for a vector register.
    #[inline(always)]
    pub(super) fn row(self) -> Option<usize> {
        if let OperandPlace::Row(n) = self { Some(n.into()) } else { None }
    }
}

/// What executing a step does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// Executes the meaning of its row.
    Do(Meaning),
    /// The same, with operands that its form or a mode may change (DPP, SDWA, VGPR indexing), or not at all.
    Adjusted(Meaning),
    /// A fault: the bytes are no instruction.
    Undecodable,
    /// A fault: the instruction uses something that the simulator lacks.
    Unsupported(&'static str),
}

/// One instruction, ready to execute.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What to do.
    pub action: Action,
    /// The instruction, if the bytes are one.
    pub op: Option<Opcode>,
    /// Encoding.
    pub format: Format,
    /// For the statistics.
    pub class: InstructionClass,
    /// Operands in the order of the row.
    pub operands: [OperandPlace; MAX_OPERANDS],
    /// Literal, offset or simm16.
    pub imm: u32,
    /// Modifiers.
    pub modifiers: Modifiers,
    /// Byte offset from the start of the code.
    pub offset: u32,
    /// Encoded bytes.
    pub bytes: u32,
    /// Index of the step that a branch goes to, or [`NOWHERE`].
    pub target: u32,
    /// A 16-bit result, or what a load writes of a register, keeps the rest of it.
    pub keeps_other_half: bool,
    /// The result is also the addend.
    pub accumulates: bool,
    /// A load or store of several dwords that others see only as a whole, as hardware keeps what an atomic
    /// load or store of 64 bits becomes.
    pub is_whole: bool,
    /// The fast path of a frequent operation.
    pub fast: Fast,
}

/// Rows after a wave's registers that hold adjusted sources and results: two each for two sources and a
/// result.
pub(super) const SCRATCH: usize = 6;

/// No step.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Decoded code of a module.
#[derive(Debug)]
pub(super) struct Program {
    /// All steps in order of their addresses.
    pub steps: Vec<Step>,
    /// Instruction set of the code.
    pub arch: Arch,
    /// Device address of the first byte.
    pub address: u64,
    /// Step that starts at each dword, or [`NOWHERE`].
    starts: Vec<u32>,
    vgprs: u16,
    agprs: u16,
    /// Bits of MODE, apart from those of arithmetic, that some instruction may set: VGPR indexing and
    /// skipping of vector instructions.
    modes: u32,
}

impl Program {
    /// Decodes `code` of `arch`, which lies at device address `address`. Decoding starts afresh at each of
    /// the byte offsets `entries` (in rising order), so that data between two kernels does not spoil the
    /// second.
    pub(super) fn new(code: &[u8], arch: Arch, address: u64, entries: &[u64]) -> Program {
        let words: Vec<u32> =
            code.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let mut insts: Vec<(u32, u32, Option<Inst>)> = Vec::new();
        let mut entries = entries.iter().map(|&e| (e / 4) as usize).peekable();
        let mut at = 0;
        while at < words.len() {
            while entries.next_if(|&e| e <= at).is_some() {}
            let end = entries.peek().map_or(words.len(), |&e| e.min(words.len()));
            let (inst, length) = match decode(&words[at..end], arch) {
                Ok((inst, length)) if length > 0 => (Some(inst), length),
                _ => (None, 1),
            };
            insts.push((at as u32 * 4, length as u32 * 4, inst));
            at += length;
        }
        let mut program = Program {
            steps: Vec::new(),
            arch,
            address,
            starts: vec![NOWHERE; words.len()],
            vgprs: 1,
            agprs: 0,
            modes: 0,
        };
        for (_, _, inst) in &insts {
            inst.iter().for_each(|inst| program.note_registers(inst));
        }
        if program.modes & GPR_INDEX != 0 {
            program.vgprs = 256;
        }
        for (index, (offset, bytes, inst)) in insts.iter().enumerate() {
            program.starts[*offset as usize / 4] = index as u32;
            program.steps.push(program.step(*offset, *bytes, inst.as_ref()));
        }
        for index in 0..program.steps.len() {
            let step = &program.steps[index];
            if let Action::Do(Meaning::Branch(_)) = step.action {
                let target = i64::from(step.offset + step.bytes) + i64::from(step.imm as i16) * 4;
                program.steps[index].target = program.find(target).unwrap_or(NOWHERE);
            }
        }
        program.keep_whole();
        program
    }

    /// Marks the loads and stores that others see only as a whole: those of agent or system scope. Before
    /// gfx942 stores have no scope, so there all count as soon as the program has other accesses that do
    /// (LLVM, "User Guide for AMDGPU Backend", "Memory Model GFX90A", `store atomic monotonic`).
    fn keep_whole(&mut self) {
        let has_scope_bits = self.arch.has_scope_bits();
        let mut is_shared = false;
        for step in &mut self.steps {
            let scoped = if has_scope_bits { step.modifiers.has_sc1() } else { step.modifiers.has_sc0() };
            step.is_whole = scoped && (is_wide(step, Meaning::Load) || is_wide(step, Meaning::Store));
            is_shared |= step.is_whole || is_wide_atomic(step);
        }
        if is_shared && !has_scope_bits {
            for step in &mut self.steps {
                step.is_whole |= is_wide(step, Meaning::Store);
            }
        }
    }

    /// Rows of a wave: its vector registers, and what adjusted steps need.
    pub(super) fn rows(&self) -> usize {
        usize::from(self.vgprs) + usize::from(self.agprs) + SCRATCH
    }

    /// VGPRs and accumulation VGPRs of a wave.
    pub(super) fn registers(&self) -> (usize, usize) {
        (self.vgprs.into(), self.agprs.into())
    }

    /// VGPRs of a wave; its accumulation VGPRs are the rows after them.
    pub(super) fn vgprs(&self) -> usize {
        self.vgprs.into()
    }

    /// The step that starts at this byte offset.
    pub(super) fn find(&self, offset: i64) -> Option<u32> {
        let dword = usize::try_from(offset).ok().filter(|o| o % 4 == 0)? / 4;
        self.starts.get(dword).copied().filter(|&step| step != NOWHERE)
    }

    fn note_registers(&mut self, inst: &Inst) {
        self.modes |= modes(inst);
        for (spec, &operand) in inst.op.info().operands.iter().zip(&inst.operands) {
            let width = u32::from(width(inst, spec));
            if let Some(n) = operand.as_vgpr() {
                self.vgprs = self.vgprs.max((n + width).min(256) as u16);
            } else if let Some(n) = operand.as_agpr() {
                self.agprs = self.agprs.max((n + width).min(256) as u16);
            }
        }
    }

    fn step(&self, offset: u32, bytes: u32, inst: Option<&Inst>) -> Step {
        let mut step = Step {
            action: Action::Undecodable,
            op: None,
            format: Format::Sopp,
            class: InstructionClass::Other,
            operands: [OperandPlace::None; MAX_OPERANDS],
            imm: 0,
            modifiers: Modifiers::default(),
            offset,
            bytes,
            target: NOWHERE,
            keeps_other_half: false,
            accumulates: false,
            is_whole: false,
            fast: Fast::None,
        };
        let Some(inst) = inst else { return step };
        let info = inst.op.info();
        step.action = match not_simulated(inst, self.arch) {
            Some(what) => Action::Unsupported(what),
            None if self.adjusts(inst) => Action::Adjusted(info.meaning),
            None => Action::Do(info.meaning),
        };
        step.op = Some(inst.op);
        step.format = info.format;
        step.class = InstructionClass::of(info);
        step.imm = inst.imm;
        step.modifiers = inst.modifiers;
        step.keeps_other_half = match info.meaning {
            // With SRAM ECC, which chips from CDNA2 on always have, the other half becomes zero (LLVM,
            // `GCNSubtarget::d16PreservesUnusedBits`; Tensile, `HasEccHalf`).
            Meaning::Load(_) | Meaning::LoadFormatHigh => self.arch.generation() < Generation::Cdna2,
            _ => info.format == Format::Vop3Sel && has_half_result(info),
        };
        step.accumulates = info.format.is_vop() && info.tied().is_some();
        for (index, (spec, &operand)) in info.operands.iter().zip(&inst.operands).enumerate() {
            match self.place(inst, spec, operand) {
                Ok(place) => step.operands[index] = place,
                Err(what) => step.action = Action::Unsupported(what),
            }
        }
        step.fast = Fast::of(&step, info.meaning);
        step
    }

    /// True if executing the instruction may involve more than its own operands.
    fn adjusts(&self, inst: &Inst) -> bool {
        let format = inst.op.info().format;
        let memory = format.is_ds() || format.is_mubuf() || format.is_flat();
        inst.modifiers.has_second_word()
            || format.is_vop() && self.modes != 0
            || memory && self.modes & VSKIP != 0
    }

    fn place(&self, inst: &Inst, spec: &OperandSpec, operand: Operand) -> Result<OperandPlace, &'static str> {
        let width = u32::from(width(inst, spec));
        if operand.is_none() || width == 0 {
            return Ok(OperandPlace::None);
        }
        if let Some(n) = operand.as_vgpr() {
            return if n + width <= 256 { Ok(OperandPlace::Row(n as u16)) } else { Err("VGPRs past v255") };
        }
        if let Some(n) = operand.as_agpr() {
            let inside = n + width <= 256;
            return if inside {
                Ok(OperandPlace::Row(self.vgprs + n as u16))
            } else {
                Err("AGPRs past a255")
            };
        }
        let number = operand.number().ok_or("a virtual register")?;
        if number < 128 {
            return if number + width <= 128 {
                Ok(OperandPlace::Scalar(number as u8))
            } else {
                Err("SGPRs past the last")
            };
        }
        constant(number, constant_element(inst, spec), inst.imm)
    }
}

/// True if a step accesses several dwords of each lane in this way.
fn is_wide(step: &Step, way: fn(MemoryData) -> Meaning) -> bool {
    let (Action::Do(meaning) | Action::Adjusted(meaning)) = step.action else { return false };
    (2..=4).any(|dwords| meaning == way(MemoryData::Dwords(dwords)))
}

/// True for an atomic of 64 bits.
fn is_wide_atomic(step: &Step) -> bool {
    match step.action {
        Action::Do(Meaning::Atomic(_, element) | Meaning::AtomicReturn(_, element)) => {
            element.registers() == 2
        }
        _ => false,
    }
}

/// As what an operand sees a constant. A source of V_FMA_MIX* is an f16 where op_sel_hi says so (LLVM, pull
/// request 183487).
fn constant_element(inst: &Inst, spec: &OperandSpec) -> Element {
    let meaning = inst.op.info().meaning;
    let mixes = matches!(meaning, Meaning::FmaMix(_) | Meaning::FmaMixHigh);
    let own = inst.op.info().constant_element(spec);
    let source = match spec.field {
        Field::Src0 => 0,
        Field::Src1 => 1,
        Field::Src2 => 2,
        _ => return own,
    };
    match mixes && inst.modifiers.get_op_sel_hi_flip() >> source & 1 != 0 {
        true => Element::F16,
        false => own,
    }
}

/// Forms of an instruction that do more than the meaning of its row.
fn not_simulated(inst: &Inst, arch: Arch) -> Option<&'static str> {
    let info = inst.op.info();
    let halves = inst.modifiers.get_op_sel() | inst.modifiers.get_op_sel_hi_flip();
    match info.meaning {
        _ if info.format.is_ds() && inst.modifiers.has_gds() => Some("the global data share"),
        _ if info.format.is_mubuf() && inst.modifiers.has_tfe() => Some("texture fail enable"),
        _ if info.format == Format::Mimg => Some("image instructions"),
        Meaning::Export | Meaning::Interpolate | Meaning::ScreenPartition => {
            Some("instructions of graphics pipelines")
        }
        // The bits are signs from gfx942 on.
        Meaning::Mfma(.., Element::F64) if inst.modifiers.get_blgp() != 0 && !arch.has_scope_bits() => {
            Some("blgp of F64 matrices")
        }
        // The manuals do not say which bytes halves would be.
        Meaning::Dot(Element::I8 | Element::U8 | Element::I4 | Element::U4)
            if info.format == Format::Vop3p && halves != 0 =>
        {
            Some("op_sel of dot products of bytes and nibbles")
        }
        _ => None,
    }
}

/// Bits of MODE, apart from those of arithmetic, that the instruction may set.
fn modes(inst: &Inst) -> u32 {
    let of_setreg = |half_word| {
        [GPR_INDEX, VSKIP]
            .into_iter()
            .filter(|&bit| writes_mode(half_word, bit))
            .fold(0, |all, bit| all | bit)
    };
    match inst.op.info().meaning {
        Meaning::SetGprIndexOn => GPR_INDEX,
        Meaning::SetVskip => VSKIP,
        Meaning::SetHardwareRegister if inst.op == Opcode::SSetregImm32B32 => {
            of_setreg(inst.modifiers.get_hwreg())
        }
        Meaning::SetHardwareRegister => of_setreg(inst.imm),
        _ => 0,
    }
}

/// True if the result is 16 bits wide.
fn has_half_result(info: &OpInfo) -> bool {
    use Element::{B16, F16, I16, U16};
    matches!(info.operands, [first, ..] if matches!(first.element, B16 | F16 | I16 | U16))
}

/// Number of registers that an operand covers.
fn width(inst: &Inst, spec: &OperandSpec) -> u8 {
    match spec.class {
        OperandClass::BufferAddress => {
            u8::from(inst.modifiers.has_offen()) + u8::from(inst.modifiers.has_idxen())
        }
        OperandClass::GlobalAddress => {
            let base = inst.op.info().operands.iter().position(|o| o.field == Field::Offset);
            if base.is_some_and(|base| !inst.operands[base].is_none()) { 1 } else { 2 }
        }
        OperandClass::MatrixFormatted => {
            let index = inst.op.info().operands.iter().position(|o| o.field == spec.field);
            index.map_or(spec.width, |index| inst.width(index))
        }
        _ => spec.width,
    }
}

/// What a source number from 128 on stands for in an operand of the given type (CDNA3 ISA guide, "Scalar
/// source operands"; how 16-bit and packed operands see constants: LLVM, AMDGPUBaseInfo.cpp,
/// getInlineEncodingV216).
fn constant(number: u32, element: Element, literal: u32) -> Result<OperandPlace, &'static str> {
    use Element::*;
    const VALUES: [f32; 8] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];
    Ok(match number {
        128..=192 => OperandPlace::Signed(number - 128),
        193..=208 => OperandPlace::Signed(192u32.wrapping_sub(number)),
        240..=248 => {
            let value = VALUES.get(number as usize - 240).copied();
            match element {
                F64 | B64 | U64 | I64 => match value {
                    Some(value) => OperandPlace::High((f64::from(value).to_bits() >> 32) as u32),
                    None => OperandPlace::InverseTwoPi,
                },
                F16 | F16x2 => OperandPlace::Low(value.map_or(0x3118, |v| f16::from_f32(v).to_bits().into())),
                Bf16 | Bf16x2 => {
                    OperandPlace::Low(value.map_or(0x3e22, |v| bf16::from_f32(v).to_bits().into()))
                }
                // Integers of 16 bits, too, are those of the f32 number.
                _ => OperandPlace::Low(value.map_or(0x3e22_f983, f32::to_bits)),
            }
        }
        255 => match element {
            F64 => OperandPlace::High(literal),
            I64 => OperandPlace::Signed(literal),
            _ => OperandPlace::Low(literal),
        },
        235 => OperandPlace::High(SHARED_APERTURE),
        237 => OperandPlace::High(PRIVATE_APERTURE),
        251 => OperandPlace::VccZero,
        252 => OperandPlace::ExecZero,
        253 => OperandPlace::Scc,
        _ => return Err("this source operand"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_follow_the_type_of_the_operand() {
        assert_eq!(constant(192, Element::B32, 0), Ok(OperandPlace::Signed(64)));
        assert_eq!(constant(208, Element::B64, 0), Ok(OperandPlace::Signed(-16i32 as u32)));
        assert_eq!(constant(242, Element::F32, 0), Ok(OperandPlace::Low(0x3f80_0000)));
        assert_eq!(constant(242, Element::F16x2, 0), Ok(OperandPlace::Low(0x3c00)));
        assert_eq!(constant(242, Element::Bf16, 0), Ok(OperandPlace::Low(0x3f80)));
        assert_eq!(constant(242, Element::U16, 0), Ok(OperandPlace::Low(0x3f80_0000)));
        assert_eq!(constant(242, Element::I16x2, 0), Ok(OperandPlace::Low(0x3f80_0000)));
        assert_eq!(constant(247, Element::F64, 0), Ok(OperandPlace::High(0xc010_0000)));
        assert_eq!(constant(248, Element::F64, 0), Ok(OperandPlace::InverseTwoPi));
        assert_eq!(constant(255, Element::F64, 7), Ok(OperandPlace::High(7)));
        assert!(constant(234, Element::B32, 0).is_err());
    }

    #[test]
    fn bytes_that_are_no_instruction_become_faulting_steps() {
        let program = Program::new(&[0xff; 12], Arch::Gfx942, 0x1000, &[0]);
        assert!(program.steps.iter().all(|s| s.action == Action::Undecodable));
        assert_eq!(program.find(0), Some(0));
        assert_eq!((program.find(2), program.find(-4), program.find(12)), (None, None, None));
    }

    const _: () = assert!(size_of::<OperandPlace>() == 8);
}
