//! The matrix instruction of a chip for an [`Mma`], read off the rows of the instruction table.

use super::TargetInfo;
use crate::codegen::isa::{Arch, Element, Format, Meaning, Modifiers, Opcode, Shape};
use crate::ir::layout::Mma;
use crate::ir::types::DType;

/// A matrix instruction of a chip, or what lanes multiply by if it has none.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MatrixInstruction {
    /// Its row in the instruction table.
    pub opcode: Opcode,
    /// Passes of four clk for which it occupies the matrix core.
    pub passes: u8,
    /// What its modifiers CBSZ and BLGP say of A and B: their formats, or nothing.
    pub formats: [u8; 2],
}

impl TargetInfo {
    /// The matrix instruction that computes `mma`; none if the chip does not have one, or not all chips of a
    /// generic target have the same one.
    pub fn matrix_instruction(&self, mma: Mma) -> Option<MatrixInstruction> {
        self.common(&PLAIN, mma)
    }

    /// The matrix instruction that computes `mma` with a scale for each block of A and B, likewise.
    pub fn scaled_matrix_instruction(&self, mma: Mma) -> Option<MatrixInstruction> {
        self.common(&SCALED, mma)
    }

    fn common(&self, table: &InstructionTable, mma: Mma) -> Option<MatrixInstruction> {
        let of = |arch: Arch| table[arch as usize][mma as usize];
        let own = of(self.arch)?;
        let is_same = |of: MatrixInstruction| (of.opcode, of.formats) == (own.opcode, own.formats);
        self.instruction_sets().iter().all(|&arch| of(arch).is_some_and(is_same)).then_some(own)
    }
}

type InstructionTable = [[Option<MatrixInstruction>; Mma::ALL.len()]; Arch::ALL.len()];

static PLAIN: InstructionTable = instructions(Format::Mai);
static SCALED: InstructionTable = instructions(Format::MaiScaled);

/// The instructions of an encoding: the one with scales has its own.
const fn instructions(format: Format) -> InstructionTable {
    let mut table = [[None; Mma::ALL.len()]; Arch::ALL.len()];
    let (mut row, opcodes) = (0, Opcode::ALL);
    while row < opcodes.len() {
        let info = opcodes[row].info();
        let multiplies = matches!(info.meaning, Meaning::Mfma(..) | Meaning::FormattedMfma(_));
        let mut column = if multiplies { 0 } else { Mma::ALL.len() };
        while column < Mma::ALL.len() {
            let mut chip = 0;
            while chip < Arch::ALL.len() {
                let arch = Arch::ALL[chip];
                let mma = Mma::ALL[column];
                let formats = match info.meaning {
                    Meaning::FormattedMfma(shape) => formats(shape, mma),
                    meaning if computes(arch, meaning, mma) => Some([0; 2]),
                    _ => None,
                };
                let is_there = info.arches.contains(arch) && info.format as u8 == format as u8;
                if let (true, Some(formats)) = (is_there, formats) {
                    assert!(table[chip][column].is_none(), "two instructions of a chip compute the same");
                    let (opcode, modifiers) = (opcodes[row], Modifiers::new());
                    let modifiers = modifiers.cbsz(formats[0] as u32).blgp(formats[1] as u32);
                    let passes = info.passes_with(arch, modifiers);
                    table[chip][column] = Some(MatrixInstruction { opcode, passes, formats });
                }
                chip += 1;
            }
            column += 1;
        }
        row += 1;
    }
    let mut chip = if matches!(format, Format::Mai) { 0 } else { Arch::ALL.len() };
    while chip < Arch::ALL.len() {
        let mut row = 0;
        while row < OF_LANES.len() && !Arch::ALL[chip].has_matrix_instructions() {
            let (mma, opcode, passes) = OF_LANES[row];
            table[chip][mma as usize] = Some(MatrixInstruction { opcode, passes, formats: [0; 2] });
            row += 1;
        }
        chip += 1;
    }
    table
}

/// Products of lanes one by one, for chips without matrix instructions: their opcodes (two of that for bf16,
/// after conversion) and the times of four clk that they take (Vega 7nm ISA guide; AMD's figures for MI50:
/// f64 at half the rate of f32).
const OF_LANES: [(Mma, Opcode, u8); 5] = [
    (Mma::F32_8x8x2_F16, Opcode::VDot2F32F16, 1),
    (Mma::F32_8x8x2_BF16, Opcode::VFmaF32, 2),
    (Mma::I32_8x8x4_I8, Opcode::VDot4I32I8, 1),
    (Mma::F32_8x8x1_F32, Opcode::VFmaF32, 1),
    (Mma::F64_8x8x1_F64, Opcode::VFmaF64, 2),
];

/// The formats with which an instruction that takes elements of several computes `mma`, if it does: 0 is
/// f8e4m3fn, 1 f8e5m2, 2 f6e2m3, 3 f6e3m2 and 4 f4e2m1 (CDNA4 ISA guide, `V_MFMA_F32_16X16X128_F8F6F4`).
const fn formats(shape: Shape, mma: Mma) -> Option<[u8; 2]> {
    let [a, b] = mma.inputs();
    match (format(a), format(b)) {
        (Some(a), Some(b)) if has_extents(shape, mma) => Some([a, b]),
        _ => None,
    }
}

const fn format(dtype: DType) -> Option<u8> {
    if matches!(dtype, DType::F8E4M3Fn) {
        Some(0)
    } else if matches!(dtype, DType::F8E5M2) {
        Some(1)
    } else if matches!(dtype, DType::F6E2M3) {
        Some(2)
    } else if matches!(dtype, DType::F6E3M2) {
        Some(3)
    } else if matches!(dtype, DType::F4E2M1) {
        Some(4)
    } else {
        None
    }
}

const fn has_extents(shape: Shape, mma: Mma) -> bool {
    shape.m as u32 == mma.m() && shape.n as u32 == mma.n() && shape.k as u32 == mma.k() && shape.blocks == 1
}

/// True if an instruction with that meaning computes `mma` on a chip.
const fn computes(arch: Arch, meaning: Meaning, mma: Mma) -> bool {
    let Meaning::Mfma(shape, a, b, accumulator) = meaning else { return false };
    has_extents(shape, mma)
        && is(arch, a, mma.inputs()[0])
        && is(arch, b, mma.inputs()[1])
        && is(arch, accumulator, mma.accumulator())
}

/// True if a register element of a chip is of that type.
const fn is(arch: Arch, element: Element, dtype: DType) -> bool {
    let (fp8, bf8) = match arch.has_ocp_floats() {
        true => (DType::F8E4M3Fn, DType::F8E5M2),
        false => (DType::F8E4M3Fnuz, DType::F8E5M2Fnuz),
    };
    let is_float8 = matches!(element, Element::Fp8) && dtype as u8 == fp8 as u8
        || matches!(element, Element::Bf8) && dtype as u8 == bf8 as u8;
    is_float8
        || matches!(
            (element, dtype),
            (Element::F32, DType::F32)
                | (Element::F64, DType::F64)
                | (Element::F16, DType::F16)
                | (Element::Bf16, DType::Bf16)
                | (Element::I32, DType::I32)
                | (Element::I8, DType::I8)
        )
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;
    use crate::codegen::isa::Inst;

    /// AMD's matrix instruction calculator: 32 and 64 cycles on CDNA 2 become 16 and 32 on CDNA 3.
    #[test]
    fn passes_of_matrix_instructions_differ_between_targets() {
        let passes = |target: Target, op| u32::from(Inst::new(op, &[]).passes(target.arch));
        assert_eq!(passes(Target::GFX90A, Opcode::VMfmaF32_16x16x16F16), 8);
        assert_eq!(passes(Target::GFX942, Opcode::VMfmaF32_16x16x16F16), 4);
        assert_eq!(passes(Target::GFX90A, Opcode::VMfmaF32_32x32x1_2bF32), 16);
        assert_eq!(passes(Target::GFX950, Opcode::VMfmaF64_16x16x4F64), 16);
        assert_eq!(passes(Target::GFX942, Opcode::VAddF32), 0);
    }

    #[test]
    fn a_generic_target_multiplies_what_all_of_its_chips_multiply() {
        let has = |target: Target, mma| target.matrix_instruction(mma).is_some();
        for mma in Mma::all() {
            let by_all = Target::GFX9_4_GENERIC.chips().all(|chip| has(chip, mma));
            assert_eq!(has(Target::GFX9_4_GENERIC, mma), by_all, "{mma}");
        }
        assert!(has(Target::GFX9_4_GENERIC, Mma::F32_16x16x16_F16));
        assert!(!has(Target::GFX9_4_GENERIC, Mma::F32_16x16x32_F16));
    }
}
