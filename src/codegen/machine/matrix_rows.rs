//! Results of matrix instructions, as data: wait states until another instruction may touch their registers.
//!
//! Sources as in `hazard_rows`: MI100, MI200, CDNA3 and CDNA4 instruction set guides, "Dependency resolution:
//! required independent instructions", and LLVM's GCNHazardRecognizer.cpp; where they differ, the larger
//! number counts.
//!
//! From gfx942 on the accumulator is forwarded within a chain of one opcode alone: another opcode on the same
//! registers needs the wait states of an overlap (llvm-project issue 218363; LLVM up to 22 compares registers
//! only).

use crate::codegen::isa::{Arch, Element, Generation, Meaning, OpInfo, Opcode, Unit};

/// Columns of the tables: one for each generation.
pub(super) const COLUMNS: usize = Generation::COUNT;

/// Pipe of a matrix instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum MatrixClass {
    /// Everything else.
    Xdl,
    /// F32 inputs, from CDNA 3 on.
    Sgemm,
    /// F64.
    Dgemm,
}

/// Class of a matrix instruction.
pub(super) fn matrix_class(info: &OpInfo, arch: Arch) -> Option<MatrixClass> {
    let Unit::Mfma(_) = info.unit else { return None };
    Some(match info.meaning {
        Meaning::Mfma(_, Element::F64, ..) => MatrixClass::Dgemm,
        Meaning::Mfma(_, Element::F32, ..) if arch.multiplies_f32_on_valu() => MatrixClass::Sgemm,
        _ => MatrixClass::Xdl,
    })
}

/// What a later instruction does with the registers of a matrix instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum MatrixUse {
    /// Its D is exactly the later one's C and can be forwarded ([`forwards`]); class of the later one.
    CSame(MatrixClass),
    /// The same registers without forwarding.
    CSameRegisters(MatrixClass),
    /// Its D overlaps the later one's C.
    COverlap(MatrixClass),
    /// Its D is in A, B, the index or a scale of a matrix instruction.
    AOrB,
    /// Its D is read by the vector ALU.
    ValuReads,
    /// Its D is written by the vector ALU, or loaded into.
    ValuWrites,
    /// Its D is read by a memory instruction.
    Memory,
    /// Its C is written by the vector ALU or loaded into.
    WritesC,
}

/// Whether the result of one matrix instruction is forwarded to another of as many passes on the same
/// registers: the guides ask for equal passes, chips from gfx942 on for the same opcode, too.
pub(super) fn forwards(arch: Arch, first: Opcode, then: Opcode) -> bool {
    arch.generation() < Generation::Cdna3 || first == then
}

/// Number of different [`MatrixUse`] values.
pub(super) const MATRIX_USES: usize = 14;

impl MatrixUse {
    /// Dense index.
    pub(super) const fn index(self) -> usize {
        match self {
            MatrixUse::CSame(class) => class as usize,
            MatrixUse::CSameRegisters(class) => 3 + class as usize,
            MatrixUse::COverlap(class) => 6 + class as usize,
            MatrixUse::AOrB => 9,
            MatrixUse::ValuReads => 10,
            MatrixUse::ValuWrites => 11,
            MatrixUse::Memory => 12,
            MatrixUse::WritesC => 13,
        }
    }
}

/// The column for a number of passes.
pub(super) const fn passes_column(passes: u8) -> usize {
    match passes {
        2 => 0,
        4 => 1,
        8 => 2,
        _ => 3,
    }
}

/// One hazard of a matrix result: wait states by [`Generation`](crate::codegen::isa::Generation) and by
/// passes 2, 4, 8, 16. DGEMM has two shapes: 4x4x4 is in the column of 4 passes, 16x16x4 in that of 8, in
/// CDNA 4 of 16.
pub(super) struct MatrixRow {
    pub first: MatrixClass,
    pub then: MatrixUse,
    pub waits: [[u8; 4]; COLUMNS],
}

const fn matrix(first: MatrixClass, then: MatrixUse, waits: [[u8; 4]; COLUMNS]) -> MatrixRow {
    MatrixRow { first, then, waits }
}

/// The largest number of wait states in [`MATRIX_ROWS`].
pub(super) const LONGEST_MATRIX_ROW: u32 = {
    let (mut longest, mut row) = (0, 0);
    while row < MATRIX_ROWS.len() {
        longest = longest_of(MATRIX_ROWS[row].waits.as_flattened(), longest);
        row += 1;
    }
    longest as u32
};

/// Results of matrix instructions, by GCN 5 and CDNA 1 to 4. Combinations that are missing need no wait
/// states.
#[rustfmt::skip]
pub(super) static MATRIX_ROWS: &[MatrixRow] = &{
    use MatrixClass::*;
    use MatrixUse::*;
    const NO: [u8; 4] = [0; 4];
    const P: [u8; 4] = [2, 4, 8, 16];
    const P1: [u8; 4] = [3, 5, 9, 17];
    const P2: [u8; 4] = [4, 6, 10, 18];
    const P3: [u8; 4] = [5, 7, 11, 19];
    // CDNA 4: one more than CDNA 3 except after two passes.
    const P4: [u8; 4] = [5, 8, 12, 20];
    const P2_CDNA4: [u8; 4] = [3, 6, 10, 18];
    const FIRST: [u8; 4] = [2, 0, 0, 0];
    const SMALL: [u8; 4] = [0, 4, 0, 0];
    const C9: [u8; 4] = [0, 4, 9, 0];
    const C17: [u8; 4] = [0, 4, 0, 17];
    const V11: [u8; 4] = [0, 6, 11, 0];
    const V19: [u8; 4] = [0, 6, 0, 19];
    const M18: [u8; 4] = [0, 9, 18, 0];
    const M18_CDNA4: [u8; 4] = [0, 9, 0, 18];
    [
        matrix(Xdl, CSame(Xdl), [NO, NO, NO, FIRST, FIRST]),
        matrix(Xdl, CSameRegisters(Xdl), [NO, [2; 4], P, P1, P2]),
        matrix(Xdl, COverlap(Xdl), [NO, [2; 4], P, P1, P2]),
        matrix(Xdl, CSame(Sgemm), [NO, NO, NO, P1, P2_CDNA4]),
        matrix(Xdl, CSameRegisters(Sgemm), [NO, NO, NO, P1, P2_CDNA4]),
        matrix(Xdl, COverlap(Sgemm), [NO, NO, NO, P1, P2_CDNA4]),
        matrix(Xdl, CSame(Dgemm), [NO, NO, P1, P1, P2_CDNA4]),
        matrix(Xdl, CSameRegisters(Dgemm), [NO, NO, P1, P1, P2_CDNA4]),
        matrix(Xdl, COverlap(Dgemm), [NO, NO, P1, P1, P2_CDNA4]),
        matrix(Xdl, AOrB, [NO, [4; 4], P3, P3, P4]),
        matrix(Xdl, ValuReads, [NO, P2, P3, P3, P4]),
        matrix(Xdl, ValuWrites, [NO, [1, 3, 7, 15], P3, P3, P4]),
        matrix(Xdl, Memory, [NO, NO, P3, P3, P4]),
        matrix(Xdl, WritesC, [NO, [0, 1, 5, 13], [1, 7, 11, 19], [1, 3, 7, 15], [1, 3, 7, 15]]),
        matrix(Sgemm, CSame(Sgemm), [NO, NO, NO, FIRST, FIRST]),
        matrix(Sgemm, CSameRegisters(Sgemm), [NO, NO, NO, P, P]),
        matrix(Sgemm, COverlap(Sgemm), [NO, NO, NO, P, P]),
        matrix(Sgemm, CSameRegisters(Xdl), [NO, NO, NO, P, FIRST]),
        matrix(Sgemm, COverlap(Xdl), [NO, NO, NO, P, NO]),
        matrix(Sgemm, CSame(Dgemm), [NO, NO, NO, P, P]),
        matrix(Sgemm, CSameRegisters(Dgemm), [NO, NO, NO, P, P]),
        matrix(Sgemm, COverlap(Dgemm), [NO, NO, NO, P, P]),
        matrix(Sgemm, AOrB, [NO, NO, NO, P2, P2]),
        matrix(Sgemm, ValuReads, [NO, NO, NO, P2, P2]),
        matrix(Sgemm, ValuWrites, [NO, NO, NO, P2, P2]),
        matrix(Sgemm, Memory, [NO, NO, NO, P2, P2]),
        matrix(Dgemm, CSame(Dgemm), [NO, NO, SMALL, SMALL, SMALL]),
        matrix(Dgemm, CSameRegisters(Dgemm), [NO, NO, C9, C9, C17]),
        matrix(Dgemm, COverlap(Dgemm), [NO, NO, C9, C9, C17]),
        matrix(Dgemm, CSame(Sgemm), [NO, NO, NO, C9, C17]),
        matrix(Dgemm, CSameRegisters(Sgemm), [NO, NO, NO, C9, C17]),
        matrix(Dgemm, COverlap(Sgemm), [NO, NO, NO, C9, C17]),
        matrix(Dgemm, AOrB, [NO, NO, V11, V11, V19]),
        matrix(Dgemm, ValuReads, [NO, NO, V11, V11, V19]),
        matrix(Dgemm, ValuWrites, [NO, NO, V11, V11, V19]),
        matrix(Dgemm, Memory, [NO, NO, M18, M18, M18_CDNA4]),
    ]
};

/// The largest of some wait states and `than`.
pub(super) const fn longest_of(waits: &[u8], than: u8) -> u8 {
    let (mut longest, mut at) = (than, 0);
    while at < waits.len() {
        longest = if waits[at] > longest { waits[at] } else { longest };
        at += 1;
    }
    longest
}
