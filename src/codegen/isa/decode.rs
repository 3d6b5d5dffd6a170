//! From bytes to instructions.

use std::sync::LazyLock;

use super::buffer_format::BufferFormat;
use super::encode::{default_op_sel_hi, fits_short};
use super::error::DecodeError;
use super::layout::{
    BitRange, ENCODINGS, Encoding, GPR_INDEX_MODE, SIMM16, graphics, long_opcode, memory, segment, vop,
};
use super::meaning::{Calc, Meaning};
use super::second_word;
use super::spec::{Field, Format, OperandClass, OperandKinds, OperandSpec};
use super::verify::takes_lds_direct;
use super::{Inst, Modifiers, Omod, Opcode, Operand};
use crate::codegen::arch::Arch;

/// Decodes the first instruction of `words` as `arch` reads it; also returns how many words it takes.
pub fn decode(words: &[u32], arch: Arch) -> Result<(Inst, usize), DecodeError> {
    let first = *words.first().ok_or(DecodeError::Truncated)?;
    let unknown = DecodeError::Unknown { word: first };
    let encoding = family(first).ok_or(unknown)?;
    let long = encoding.layout().bytes == 8;
    let second = if long { *words.get(1).ok_or(DecodeError::Truncated)? } else { 0 };
    let word = u64::from(second) << 32 | u64::from(first);
    let tables = &TABLES[arch as usize];
    if encoding == Encoding::Vop3p && encoding.layout().opcode.read(word) == LOADS_SCALES {
        return decode_scaled(words, word, arch);
    }
    let op = tables.find(encoding, word, arch).ok_or(unknown)?;
    if !long
        && op.info().format.is_vop3()
        && second_word::is_announced(encoding.layout().field(Field::Src0).read(word))
    {
        let second = *words.get(1).ok_or(DecodeError::Truncated)?;
        let inst = second_word::decode(op, first, second, arch)?;
        return finish(inst, arch, 2);
    }
    let mut reader = FieldReader { inst: Inst::new(op, &[]), arch, encoding: refine(encoding, op), word };
    reader.rest();
    reader.operands();

    let mut inst = reader.inst;
    let info = op.info();
    let mut length = if long { 2 } else { 1 };
    if inst.operands.contains(&Operand::LITERAL) {
        if long {
            let index = inst.operands.iter().position(|&operand| operand == Operand::LITERAL);
            return Err(DecodeError::Operand { op, index: index.unwrap_or(0) });
        }
        inst.imm = *words.get(1).ok_or(DecodeError::Truncated)?;
        length = 2;
    }
    if long && info.format.has_e64() && fits_short(&inst, info) {
        inst.modifiers = inst.modifiers.e64();
    }
    finish(inst, arch, length)
}

/// Checks that operands and modifiers are of the row's kinds.
#[inline]
fn finish(inst: Inst, arch: Arch, length: usize) -> Result<(Inst, usize), DecodeError> {
    let (op, info) = (inst.op, inst.op.info());
    if !inst.modifiers.within(info.modifiers_on(arch, inst.modifiers)) || !inst.has_legal_components() {
        return Err(DecodeError::Modifiers { op });
    }
    for (index, spec) in info.operands.iter().enumerate() {
        if !OperandKinds::of(inst.operands[index]).inside(spec.class.kinds()) {
            return Err(DecodeError::Operand { op, index });
        }
        if inst.operands[index] == Operand::LDS_DIRECT && !takes_lds_direct(&inst, index, arch) {
            return Err(DecodeError::Operand { op, index });
        }
    }
    Ok((inst, length))
}

/// Opcode of the half that loads the scales of a matrix instruction.
const LOADS_SCALES: u32 = vop::LOAD_SCALES_OPCODE as u32;

/// A matrix instruction with scales: 16 bytes, the matrix half after the half with the scales.
fn decode_scaled(words: &[u32], scales: u64, arch: Arch) -> Result<(Inst, usize), DecodeError> {
    let [first, _, third, fourth, ..] = *words else { return Err(DecodeError::Truncated) };
    let word = u64::from(fourth) << 32 | u64::from(third);
    let encoding = Encoding::MaiScaled;
    let op = match family(third) {
        Some(Encoding::Vop3p) => TABLES[arch as usize].find(encoding, word, arch),
        _ => None,
    };
    let op = op.ok_or(DecodeError::Unknown { word: first })?;
    let mut reader = FieldReader { inst: Inst::new(op, &[]), arch, encoding, word };
    reader.rest();
    reader.inst.modifiers = reader.inst.modifiers.scale_select(vop::scale_select(scales));
    reader.operands();
    for (index, spec) in op.info().operands.iter().enumerate() {
        let range = match spec.field {
            Field::ScaleA => vop::SCALE_A,
            Field::ScaleB => vop::SCALE_B,
            _ => continue,
        };
        reader.inst.operands[index] = Operand::physical(range.read(scales));
    }
    finish(reader.inst, arch, 4)
}

/// The encoding that the leading bits of the first word indicate (VOP3b as VOP3a, MAI as VOP3P).
fn family(first: u32) -> Option<Encoding> {
    if first >> 31 == 0 {
        return Some(match first >> 25 {
            0x3e => Encoding::Vopc,
            0x3f => Encoding::Vop1,
            _ => Encoding::Vop2,
        });
    }
    match first >> 26 {
        0x30 => Some(Encoding::Smem),
        0x34 if first >> 23 == 0x1a7 => Some(Encoding::Vop3p),
        0x34 => Some(Encoding::Vop3a),
        0x31 => Some(Encoding::Exp),
        0x35 => Some(Encoding::Vintrp),
        0x36 => Some(Encoding::Ds),
        0x37 => Some(Encoding::Flat),
        0x38 => Some(Encoding::Mubuf),
        0x3c => Some(Encoding::Mimg),
        0x3a => Some(Encoding::Mtbuf),
        0x20..=0x2f => Some(match first >> 23 {
            0x17d => Encoding::Sop1,
            0x17e => Encoding::Sopc,
            0x17f => Encoding::Sopp,
            0x160..=0x17c => Encoding::Sopk,
            _ => Encoding::Sop2,
        }),
        _ => None,
    }
}

/// The encoding, with the help of the row.
fn refine(encoding: Encoding, op: Opcode) -> Encoding {
    let info = op.info();
    match encoding {
        Encoding::Vop3a if info.operands.iter().any(|spec| spec.field == Field::Sdst) => Encoding::Vop3b,
        Encoding::Vop3p if info.format == Format::Mai => Encoding::Mai,
        other => other,
    }
}

/// Bit of an index that says "buffer load to LDS".
const TO_LDS: usize = 1 << 7;
/// Bit of an index that says "atomic that returns".
const RETURNS: usize = 1 << 9;

/// From opcode bits to opcode, one table per leading-bits family.
struct Tables(Vec<Vec<Option<Opcode>>>);

/// By [`Arch`].
static TABLES: LazyLock<[Tables; Arch::ALL.len()]> = LazyLock::new(|| Arch::ALL.map(tables));

fn tables(arch: Arch) -> Tables {
    let mut tables = Tables(vec![vec![None; 1 << 10]; ENCODINGS]);
    for &op in Opcode::ALL.iter().filter(|op| op.on(arch)) {
        let info = op.info();
        let encoding = match Encoding::of(info.format) {
            Encoding::Vop3b => Encoding::Vop3a,
            Encoding::Mai => Encoding::Vop3p,
            other => other,
        };
        let index = usize::from(info.code) | variant(info.format);
        tables.0[encoding as usize][index] = Some(op);
        if info.format.has_e64() {
            let code = long_opcode(info.format, info.code);
            tables.0[Encoding::Vop3a as usize][usize::from(code)] = Some(op);
        }
    }
    tables
}

/// Index bits of formats that share opcode bits.
fn variant(format: Format) -> usize {
    let segment = (segment(format) as usize) << 7;
    match format {
        Format::MubufLds => TO_LDS,
        Format::MubufRtn => RETURNS,
        Format::GlobalRtn | Format::FlatRtn => segment | RETURNS,
        // Loads never return, so the bit is free.
        Format::GlobalLds | Format::ScratchLds => segment | RETURNS,
        Format::Flat | Format::Global | Format::Scratch => segment,
        _ => 0,
    }
}

impl Tables {
    #[inline]
    fn find(&self, encoding: Encoding, word: u64, arch: Arch) -> Option<Opcode> {
        let table = &self.0[encoding as usize];
        let code = encoding.layout().opcode.read(word) as usize;
        let (index, returns) = match encoding {
            Encoding::Mubuf => {
                let lds = memory::MUBUF_LDS.read(word) as usize * TO_LDS;
                (code | lds, memory::MUBUF_SC0.read(word) != 0)
            }
            Encoding::Flat => {
                let index = code | (memory::SEGMENT.read(word) as usize) << 7;
                if !arch.adds_scratch_addresses() && memory::FLAT_LDS.read(word) != 0 {
                    return table
                        .get(index | RETURNS)
                        .copied()
                        .flatten()
                        .filter(|op| op.info().may_store_to_lds());
                }
                (index, memory::FLAT_SC0.read(word) != 0)
            }
            _ => return table.get(code).copied().flatten(),
        };
        let returning = if returns { table.get(index | RETURNS).copied().flatten() } else { None };
        returning.filter(|op| !op.info().may_store_to_lds()).or_else(|| table.get(index).copied().flatten())
    }
}

struct FieldReader {
    inst: Inst,
    arch: Arch,
    encoding: Encoding,
    word: u64,
}

impl FieldReader {
    /// Immediate and modifiers.
    fn rest(&mut self) {
        (self.inst.imm, self.inst.modifiers) = match self.encoding {
            Encoding::Vop3a | Encoding::Vop3b | Encoding::Vop3p | Encoding::Mai | Encoding::MaiScaled => {
                self.vector_rest()
            }
            Encoding::Sopk | Encoding::Sopc | Encoding::Sopp => self.scalar_rest(),
            Encoding::Exp | Encoding::Vintrp => self.graphics_rest(),
            Encoding::Smem | Encoding::Flat | Encoding::Ds => self.memory_rest(),
            Encoding::Mubuf | Encoding::Mtbuf | Encoding::Mimg => self.buffer_rest(),
            _ => (0, Modifiers::new()),
        };
    }

    /// A modifier if its bit is set.
    fn set(&self, range: BitRange, yes: Modifiers) -> Modifiers {
        if range.read(self.word) == 0 { Modifiers::new() } else { yes }
    }

    /// Those of scalar instructions.
    fn scalar_rest(&self) -> (u32, Modifiers) {
        let (info, none) = (self.inst.op.info(), Modifiers::new());
        let mut imm = 0;
        let read = |range: BitRange| range.read(self.word);
        let modifiers = match self.encoding {
            Encoding::Sopk if self.inst.op == Opcode::SSetregImm32B32 => none.hwreg(read(SIMM16)),
            Encoding::Sopc if info.takes_immediate() => {
                imm = read(GPR_INDEX_MODE);
                none
            }
            Encoding::Sopk | Encoding::Sopp => {
                imm = if info.takes_immediate() { read(SIMM16) } else { 0 };
                none
            }
            _ => none,
        };
        (imm, modifiers)
    }

    /// Those of long vector and matrix instructions.
    fn vector_rest(&self) -> (u32, Modifiers) {
        let (info, none) = (self.inst.op.info(), Modifiers::new());
        let mut imm = 0;
        let read = |range: BitRange| range.read(self.word);
        let set = |range: BitRange, yes: Modifiers| self.set(range, yes);
        let modifiers = match self.encoding {
            Encoding::Vop3a if matches!(info.meaning, Meaning::Vector(Calc::BitOperation3, _)) => {
                let table = read(vop::NEG) | read(vop::ABS) << 3 | read(vop::OMOD) << 6;
                none.bitop3(table).op_sel(read(vop::OP_SEL))
            }
            Encoding::Vop3a if info.format.is_long_interpolation() => {
                imm = read(graphics::LONG_ATTRIBUTE) << 2 | read(graphics::LONG_CHANNEL);
                if info.operands.len() == 1 {
                    imm |= read(graphics::LONG_PARAMETER) << 8;
                }
                none.neg(read(vop::NEG))
                    .abs(read(vop::ABS))
                    .omod(Omod::from_bits(read(vop::OMOD)))
                    .op_sel(read(graphics::LONG_HIGH))
                    .union(set(vop::CLAMP, none.clamp()))
            }
            Encoding::Vop3a | Encoding::Vop3b => {
                let omod = Omod::from_bits(read(vop::OMOD));
                let all = none.neg(read(vop::NEG)).omod(omod).union(set(vop::CLAMP, none.clamp()));
                match self.encoding {
                    Encoding::Vop3a => all.abs(read(vop::ABS)).op_sel(read(vop::OP_SEL)),
                    _ => all,
                }
            }
            // op_sel_hi of the accumulation register moves has no meaning.
            Encoding::Vop3p if info.modifiers.is_empty() => none,
            Encoding::Vop3p => {
                let op_sel_hi = read(vop::OP_SEL_HI_2) << 2 | read(vop::OP_SEL_HI_01);
                let meaningful = info.modifiers_on(self.arch, none).get_op_sel_hi_flip();
                none.neg_lo(read(vop::NEG))
                    .neg_hi(read(vop::ABS))
                    .op_sel(read(vop::PACKED_OP_SEL))
                    .op_sel_hi_flip((op_sel_hi ^ default_op_sel_hi(info.format)) & meaningful)
                    .union(set(vop::CLAMP, none.clamp()))
            }
            Encoding::Mai => none.cbsz(read(vop::CBSZ)).abid(read(vop::ABID)).blgp(read(vop::BLGP)),
            Encoding::MaiScaled => none.cbsz(read(vop::CBSZ)).blgp(read(vop::BLGP)),
            _ => none,
        };
        (imm, modifiers)
    }

    /// Those of instructions of memory, without buffers and images.
    fn memory_rest(&self) -> (u32, Modifiers) {
        let (info, none) = (self.inst.op.info(), Modifiers::new());
        let mut imm = 0;
        let read = |range: BitRange| range.read(self.word);
        let set = |range: BitRange, yes: Modifiers| self.set(range, yes);
        let modifiers = match self.encoding {
            Encoding::Smem => {
                if memory::SMEM_IMM.read(self.word) != 0 && info.takes_immediate() {
                    imm = memory::SMEM_OFFSET.read_signed(self.word);
                }
                let beside = memory::SMEM_SGPR_ENABLE.read(self.word) & memory::SMEM_IMM.read(self.word) != 0;
                let is_zero = beside && imm == 0 && info.takes_immediate();
                let probe = match info.meaning {
                    Meaning::ProbeAddress => self.encoding.layout().field(Field::Dst).read(self.word),
                    _ => 0,
                };
                let zero = if is_zero { none.zero_offset() } else { none };
                zero.probe(probe).union(set(memory::SMEM_GLC, none.sc0()))
            }
            Encoding::Ds => {
                imm = if info.takes_immediate() { read(memory::DS_OFFSET) } else { 0 };
                if info.format == Format::Gws { none } else { set(memory::DS_GDS, none.gds()) }
            }
            Encoding::Flat => {
                imm = match info.format {
                    Format::Flat | Format::FlatRtn => read(memory::FLAT_OFFSET),
                    _ => memory::GLOBAL_OFFSET.read_signed(self.word),
                };
                let sc0 = if info.format.returns() { none } else { none.sc0() };
                set(memory::FLAT_SC0, sc0)
                    .union(set(memory::FLAT_SC1, none.sc1()))
                    .union(set(memory::FLAT_NT, none.nt()))
            }
            _ => none,
        };
        (imm, modifiers)
    }

    /// Those of buffers and images.
    fn buffer_rest(&self) -> (u32, Modifiers) {
        let (info, none) = (self.inst.op.info(), Modifiers::new());
        let mut imm = 0;
        let read = |range: BitRange| range.read(self.word);
        let set = |range: BitRange, yes: Modifiers| self.set(range, yes);
        let modifiers = match self.encoding {
            Encoding::Mubuf => {
                imm = if info.takes_immediate() { read(memory::MUBUF_OFFSET) } else { 0 };
                let sc0 = if info.format.returns() { none } else { none.sc0() };
                set(memory::MUBUF_SC0, sc0)
                    .union(set(memory::MUBUF_SC1, none.sc1()))
                    .union(set(memory::MUBUF_NT, none.nt()))
                    .union(set(memory::MUBUF_OFFEN, none.offen()))
                    .union(set(memory::MUBUF_IDXEN, none.idxen()))
                    .union(self.tfe(memory::TFE))
            }
            Encoding::Mtbuf => {
                imm = read(memory::MUBUF_OFFSET);
                none.format_flip(read(memory::MTBUF_FORMAT) ^ BufferFormat::USUAL.to_bits())
                    .union(set(memory::MUBUF_SC0, none.sc0()))
                    .union(set(memory::MTBUF_SC1, none.sc1()))
                    .union(set(memory::MTBUF_NT, none.nt()))
                    .union(set(memory::MUBUF_OFFEN, none.offen()))
                    .union(set(memory::MUBUF_IDXEN, none.idxen()))
            }
            Encoding::Mimg => none
                .dmask(read(memory::IMAGE_DMASK))
                .union(set(memory::IMAGE_UNORM, none.unorm()))
                .union(set(memory::IMAGE_SC0, none.sc0()))
                .union(set(memory::IMAGE_SC1, none.sc1()))
                .union(set(memory::IMAGE_NT, none.nt()))
                .union(set(memory::IMAGE_DA, none.da()))
                .union(set(memory::IMAGE_A16, none.a16()))
                .union(set(memory::IMAGE_LWE, none.lwe()))
                .union(set(memory::IMAGE_D16, none.d16()))
                .union(self.tfe(memory::IMAGE_TFE)),
            _ => none,
        };
        (imm, modifiers)
    }

    /// Those of exports and interpolation.
    fn graphics_rest(&self) -> (u32, Modifiers) {
        let (info, none) = (self.inst.op.info(), Modifiers::new());
        let mut imm = 0;
        let read = |range: BitRange| range.read(self.word);
        let modifiers = match self.encoding {
            Encoding::Exp => {
                imm = read(graphics::TARGET);
                none.export_flags(read(graphics::EXPORT_FLAGS))
            }
            Encoding::Vintrp => {
                imm = read(graphics::ATTRIBUTE);
                none.parameter(if info.operands.len() == 1 { read(graphics::PARAMETER) } else { 0 })
            }
            _ => none,
        };
        (imm, modifiers)
    }

    /// The bit is the register file's where the files are one, and has no meaning in instructions without
    /// it.
    fn tfe(&self, range: BitRange) -> Modifiers {
        const TFE: Modifiers = Modifiers::new().tfe();
        let allowed = self.inst.op.info().modifiers_on(self.arch, Modifiers::new());
        if TFE.within(allowed) && range.read(self.word) != 0 { TFE } else { Modifiers::new() }
    }

    fn operands(&mut self) {
        for (index, spec) in self.inst.op.info().operands.iter().enumerate() {
            self.inst.operands[index] = self.operand(spec);
        }
    }

    fn operand(&self, spec: &OperandSpec) -> Operand {
        let range = self.encoding.layout().field(spec.field);
        let modifiers = self.inst.modifiers;
        match spec.class {
            OperandClass::Literal => return Operand::LITERAL,
            OperandClass::Mask | OperandClass::MaskSource if range.is_absent() => return Operand::VCC,
            OperandClass::BufferAddress if !modifiers.wants_buffer_address() => {
                return Operand::NONE;
            }
            OperandClass::ScratchAddress if !self.has_scratch_address() => return Operand::NONE,
            OperandClass::Exported if !self.is_exported(spec.field) => return Operand::NONE,
            OperandClass::ScalarBase if range.read(self.word) == memory::NO_BASE => return Operand::NONE,
            OperandClass::ScalarOffset => return self.scalar_offset(),
            _ => {}
        }
        let number = range.read(self.word);
        let in_sources = if range.width == 8 && spec.class.is_vector() { number + 256 } else { number };
        let to_acc = self.is_acc(spec) && (256..512).contains(&in_sources);
        Operand::physical(if to_acc { in_sources + 256 } else { in_sources })
    }

    /// A bit says that the vector address is there, or the absence of the scalar one.
    fn has_scratch_address(&self) -> bool {
        if self.arch.adds_scratch_addresses() {
            return memory::SCRATCH_VADDR.read(self.word) != 0;
        }
        Encoding::Flat.layout().field(Field::Offset).read(self.word) == memory::NO_BASE
    }

    /// Compressed exports have two registers, each for two places.
    fn is_exported(&self, field: Field) -> bool {
        let enabled = graphics::ENABLED.read(self.word);
        let is_compressed = graphics::EXPORT_FLAGS.read(self.word) & 1 != 0;
        let places = match (field, is_compressed) {
            (Field::Addr, false) => 0b0001,
            (Field::Data0, false) => 0b0010,
            (Field::Data1, false) => 0b0100,
            (_, false) => 0b1000,
            (Field::Addr, true) => 0b0011,
            (Field::Data0, true) => 0b1100,
            (_, true) => 0,
        };
        enabled & places != 0
    }

    /// A scalar load has its register in addition to the offset or in place of it.
    fn scalar_offset(&self) -> Operand {
        let beside = memory::SMEM_SGPR_ENABLE.read(self.word) != 0;
        let number = match (beside, memory::SMEM_IMM.read(self.word) != 0) {
            (true, _) => self.encoding.layout().field(Field::Offset).read(self.word),
            (false, true) => return Operand::NONE,
            (false, false) => memory::SMEM_OFFSET.read(self.word) & 0x7f,
        };
        Operand::physical(number)
    }

    /// True if a vector register operand is in the accumulation file.
    fn is_acc(&self, spec: &OperandSpec) -> bool {
        let range = match (spec.class, self.encoding, spec.field) {
            (OperandClass::Agpr, ..) => return true,
            (OperandClass::MatrixC, ..)
            | (OperandClass::VgprOrAgpr, Encoding::Mai | Encoding::MaiScaled, Field::Dst) => {
                if !self.arch.has_unified_registers() {
                    return true;
                }
                vop::ACC_CD
            }
            (
                OperandClass::VgprOrAgpr | OperandClass::MatrixFormatted,
                Encoding::Mai | Encoding::MaiScaled,
                Field::Src0,
            ) => vop::ACC_A,
            (
                OperandClass::VgprOrAgpr | OperandClass::MatrixFormatted,
                Encoding::Mai | Encoding::MaiScaled,
                _,
            ) => vop::ACC_B,
            (class, ..) if class.is_vgpr_or_agpr() && !self.arch.has_unified_registers() => return false,
            (OperandClass::VgprOrAgpr, Encoding::Ds, _) => memory::DS_ACC,
            (OperandClass::VgprOrAgpr, ..) => memory::ACC,
            (OperandClass::ImageData, ..) => memory::IMAGE_ACC,
            _ => return false,
        };
        range.read(self.word) != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{encode, size_in_bytes, write_inst};
    use super::*;

    /// Words whose leading bits are those of an encoding more often than by chance.
    fn words() -> impl Strategy<Value = Vec<u32>> {
        let families = prop::sample::select(vec![
            0u32,
            0x7c00_0000,
            0x7e00_0000,
            0x8000_0000,
            0xb000_0000,
            0xbe80_0000,
            0xbf00_0000,
            0xbf80_0000,
            0xc000_0000,
            0xd000_0000,
            0xd380_0000,
            0xd800_0000,
            0xdc00_0000,
            0xe000_0000,
            0xe800_0000,
            0xf000_0000,
        ]);
        (families, any::<u32>(), any::<[u32; 2]>())
            .prop_map(|(family, first, [second, third])| vec![family | first & 0x03ff_ffff, second, third])
    }

    fn holds(words: &[u32]) -> Result<(), TestCaseError> {
        let Ok((inst, length)) = decode(words, Arch::Gfx942) else { return Ok(()) };
        prop_assert!(length <= words.len());
        let mut text = String::new();
        prop_assert!(write_inst(&mut text, &inst, Arch::Gfx942, None).is_ok());
        prop_assert!(!text.contains('?'), "{}", text);
        let mut again = Vec::new();
        // Bits without a meaning may be set in the words; the bits with a meaning are kept.
        if encode(&inst, Arch::Gfx942, &mut again).is_ok() {
            prop_assert_eq!(4 * again.len() as u32, size_in_bytes(&inst));
            prop_assert_eq!(decode(&again, Arch::Gfx942), Ok((inst, again.len())), "{}", text);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_words_decode_to_something_printable_or_to_an_error(words in words()) {
            holds(&words)?;
        }

        #[test]
        fn random_words_do_not_panic(words in prop::collection::vec(any::<u32>(), 0..4)) {
            holds(&words)?;
        }
    }

    #[test]
    fn a_second_word_leaves_no_room_for_a_literal() {
        let error = decode(&[0x00bf_faf9, 0xd3d2_00ff, 0x1234_5678], Arch::Gfx942);
        assert_eq!(error, Err(DecodeError::Operand { op: Opcode::VCndmaskB32, index: 1 }));
    }

    #[test]
    fn code_that_ends_inside_an_instruction_is_truncated() {
        assert_eq!(decode(&[], Arch::Gfx942), Err(DecodeError::Truncated));
        assert_eq!(decode(&[0x0200_04ff], Arch::Gfx942), Err(DecodeError::Truncated));
        assert_eq!(decode(&[0xd101_0000], Arch::Gfx942), Err(DecodeError::Truncated));
    }

    #[test]
    fn no_two_rows_share_an_encoding() {
        for arch in Arch::ALL {
            for &op in Opcode::ALL.iter().filter(|op| op.on(arch)) {
                let tables = &TABLES[arch as usize].0;
                let found = tables.iter().flatten().filter(|&&entry| entry == Some(op)).count();
                let expected = if op.info().format.has_e64() { 2 } else { 1 };
                assert_eq!(found, expected, "{op:?} on {arch}");
            }
        }
    }
}
