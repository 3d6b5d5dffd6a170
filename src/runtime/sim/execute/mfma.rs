//! Matrix instructions.
//!
//! **Layout.** One rule covers the dense instructions with 32-bit results. Lanes fall into `64 / m` groups of
//! m. Source A holds column i of lane group g in lane `g * m + i`: block `g mod blocks`, and the k of its
//! elements start at `(g / blocks) * e`, e being the number of elements in the lane's registers, low bits
//! first. B is the same with j for i. Results go by rows of four: counted through all blocks, row number
//! `4 q + r` (q: four rows, r: which of them) is in register `4 * (q / groups) + r` of the lanes of group
//! `q mod groups`, column j in lane j of the group. For f64 rows go one by one instead of by four. (AMD
//! matrix instruction calculator; CDNA4 ISA guide, "General input and output layout"; tests compare with
//! both.) Two kinds of sources lie in two parts, the second after the first parts of all groups: the B of the
//! wide sparse instructions, and f8 of the `_f8f6f4` instructions ("Sparse Matrix Index Layout", "Dense
//! Matrix Layouts: 8-bit and Smaller").
//!
//! **Sparse.** The A of `v_smfmac_*` holds two of every four elements of k. Two bits of the lane's index tell
//! for each of its elements which of the lane's four elements of B it meets. An index has as many bits as the
//! lane has elements of B; if CBSZ is zero, ABID tells which of those that fit into the register (CDNA3 ISA
//! guide, "Sparse Matrices"; the CDNA4 guide gives 16 bits to the wide 16-bit forms in its table and 8 in its
//! text, of which only the table can be).
//!
//! **Broadcast.** CBSZ lets every 2^CBSZ neighbouring blocks take A of the ABID-th of them (AMD matrix
//! instruction calculator; a formula of the CDNA4 guide has the 2^CBSZ parts of the lanes take A of the
//! ABID-th part, which is the same wherever 2^CBSZ is the number of blocks).
//!
//! **Numerics.** Products of f16, f8, f6 and f4 are exact in f32. Results accumulate in f32 in rising k,
//! starting with C, one rounding (to nearest even) per product: `d = fma(a_k, b_k, d)`, and `d = fma(a_k *
//! b_k, 2^(scale_a + scale_b), d)` if scaled. Hardware adds groups of products before it rounds, in an order
//! that is not published; results may differ from it in the last bits. Denormals are kept on the way in and
//! out, except for f16 and bf16 sources on gfx90a, where A, B, C and D lose them (MIOpen, "MI200 MFMA
//! behavior specifics"). The xf32 forms round their sources to 10 bits of mantissa. Integers wrap. With
//! FP16_OVFL set they stop at the ends of their range, and infinite results of finite A, B and C are the
//! largest number (CDNA3 ISA guide, MFMA, "Clamp"). EXEC and the round mode are ignored, as on hardware.
//!
//! **Speed.** Rows of A and B are widened to f32 lane by lane, which leaves them contiguous in i and j, and
//! results are updated in place: an outer product per k over contiguous lanes. Widened sources are kept per
//! register and reused while the register's bits are the same: a wave's tile reads each A and B several
//! times.

use crate::codegen::isa::{Arch, Element, Shape};

use super::super::error::{FaultKind, Stopped};
use super::super::numerics::flush;
use super::super::program::{OperandPlace, Step};
use super::super::wave::{LANES, VectorRow, Wave};
use super::host;
use super::multiply::{Arithmetic, BlockTile, OverflowMode, Sparse};
use super::widen::{ElementOrder, SourceFormat};
use super::widened::WidenedCache;

#[cold]
fn unsupported(what: &'static str) -> Stopped {
    Stopped::wave(FaultKind::Unsupported(what))
}

/// FP16_OVFL of the MODE register.
const FP16_OVFL: u32 = 1 << 23;

fn overflow(w: &Wave) -> OverflowMode {
    if w.mode & FP16_OVFL == 0 { OverflowMode::Usual } else { OverflowMode::Clamped }
}

/// Where the sources of a dense instruction lie and what they are.
struct MatrixSources {
    rows: [usize; 2],
    registers: [usize; 2],
    formats: [SourceFormat; 2],
    orders: [ElementOrder; 2],
}

/// Elements of A or B in a lane.
fn elements(shape: Shape) -> usize {
    usize::from(shape.k) * usize::from(shape.m) * usize::from(shape.blocks) / LANES
}

/// Result registers of 32 bits.
fn results(shape: Shape) -> usize {
    usize::from(shape.m) * usize::from(shape.n) * usize::from(shape.blocks) / LANES
}

/// Types of the sources as formats.
#[inline(always)]
fn formats(types: [Element; 3], arch: Arch) -> Option<[SourceFormat; 2]> {
    Some([SourceFormat::of(types[0], arch)?, SourceFormat::of(types[1], arch)?])
}

fn arithmetic(w: &Wave, formats: [SourceFormat; 2]) -> Arithmetic {
    match formats {
        [SourceFormat::I8, _] => Arithmetic::Integer(overflow(w)),
        [SourceFormat::F32 | SourceFormat::Xf32 | SourceFormat::Bf16 | SourceFormat::Bf16Flushed, _] => {
            Arithmetic::Fused
        }
        _ => Arithmetic::ExactProduct,
    }
}

/// Executes a dense matrix instruction: D := A * B + C.
pub(super) fn execute(
    w: &mut Wave,
    caches: &mut [WidenedCache; 2],
    arch: Arch,
    step: &Step,
    shape: Shape,
    types: [Element; 3],
) -> Result<(), Stopped> {
    let [d, a, b, c, ..] = step.operands;
    let (Some(d_row), Some(a_row), Some(b_row)) = (d.row(), a.row(), b.row()) else { return Ok(()) };
    if types[2] == Element::F64 {
        return double(w, step, shape, [d_row, a_row, b_row], c);
    }
    let [cbsz, abid, blgp] =
        [step.modifiers.get_cbsz(), step.modifiers.get_abid(), step.modifiers.get_blgp()];
    let (m, blocks) = (usize::from(shape.m), usize::from(shape.blocks));
    if 1usize << cbsz > blocks || abid >> cbsz != 0 {
        return Err(unsupported("cbsz or abid beyond the blocks"));
    }
    let formats = formats(types, arch).ok_or_else(|| unsupported("this type of matrix"))?;
    let sources = MatrixSources {
        rows: [a_row, b_row],
        registers: formats.map(|f| elements(shape) * f.bits() / 32),
        formats,
        orders: [ElementOrder::Kept; 2],
    };
    let [a, b] = sources.widened(w, caches);
    let mut regrouped = Vec::new();
    let b = if blgp == 0 {
        b
    } else {
        regrouped.extend(b.iter().map(|row| regroup(row, blgp)));
        &regrouped
    };
    // A and B are widened copies by now, so C may go to its place even where D overlaps them.
    let count = results(shape);
    place_c(w, c, d_row, count);
    let tile = BlockTile { blocks, block_mask: (1 << cbsz) - 1, block: abid as usize };
    let arithmetic = arithmetic(w, formats);
    let flushes = matches!(formats[0], SourceFormat::F16Flushed | SourceFormat::Bf16Flushed);
    let d = d_row..d_row + count;
    if let Arithmetic::Integer(_) = arithmetic {
        host::accumulate(m, arithmetic, &tile, a, b, &mut w.rows[d]);
    } else {
        finished(w, [a, b], d, flushes, |d| host::accumulate(m, arithmetic, &tile, a, b, d));
    }
    Ok(())
}

impl MatrixSources {
    /// Both sources as f32.
    fn widened<'a>(&self, w: &Wave, caches: &'a mut [WidenedCache; 2]) -> [&'a [VectorRow]; 2] {
        let [a_cache, b_cache] = caches;
        [
            a_cache.get(&w.rows, self.rows[0], self.registers[0], self.formats[0], self.orders[0]),
            b_cache.get(&w.rows, self.rows[1], self.registers[1], self.formats[1], self.orders[1]),
        ]
    }
}

/// Copies C to D.
#[inline]
fn place_c(w: &mut Wave, c: OperandPlace, d_row: usize, count: usize) {
    match c.row() {
        Some(c_row) if c_row == d_row => {}
        Some(c_row) => w.rows.copy_within(c_row..c_row + count, d_row),
        None => {
            let value = w.scalar(c);
            w.rows[d_row..d_row + count].fill([value; LANES]);
        }
    }
}

/// Runs `accumulate` on the result registers of f32, which hold C, with flushed denormals and clamped results
/// where the chip or the mode ask for that.
#[inline]
fn finished(
    w: &mut Wave,
    sources: [&[VectorRow]; 2],
    d: std::ops::Range<usize>,
    flushes: bool,
    accumulate: impl FnOnce(&mut [VectorRow]),
) {
    let clamps = w.mode & FP16_OVFL != 0;
    let d = &mut w.rows[d];
    if !flushes && !clamps {
        return accumulate(d);
    }
    let flush_all = |rows: &mut [VectorRow]| {
        for v in rows.iter_mut().flatten().filter(|_| flushes) {
            *v = flush(f32::from_bits(*v)).to_bits();
        }
    };
    flush_all(d);
    let finite = |rows: &[VectorRow]| rows.iter().flatten().all(|&v| f32::from_bits(v).is_finite());
    let clamps = clamps && sources.into_iter().all(finite);
    let c = if clamps { d.to_vec() } else { Vec::new() };
    accumulate(d);
    flush_all(d);
    for (v, c) in d.iter_mut().flatten().zip(c.iter().flatten()) {
        if f32::from_bits(*v).is_infinite() && f32::from_bits(*c).is_finite() {
            *v = f32::MAX.copysign(f32::from_bits(*v)).to_bits();
        }
    }
}

/// B with its groups of lanes rearranged (CDNA3 ISA guide, MFMA, "BLGP").
fn regroup(row: &VectorRow, blgp: u32) -> VectorRow {
    let from = |l: usize| match blgp {
        1 => l % 32,
        2 => 32 + l % 32,
        3 => (l + 16) % 64,
        _ => 16 * (blgp as usize - 4) + l % 16,
    };
    std::array::from_fn(|l| row[from(l)])
}

/// f64 forms: elements are register pairs, and rows of the result go one by one through the lane groups.
fn double(w: &mut Wave, step: &Step, shape: Shape, rows: [usize; 3], c: OperandPlace) -> Result<(), Stopped> {
    let [d_row, a_row, b_row] = rows;
    let (m, k, blocks) = (usize::from(shape.m), usize::from(shape.k), usize::from(shape.blocks));
    if m != usize::from(shape.n) || k * m * blocks != LANES {
        return Err(unsupported("this matrix shape"));
    }
    // The BLGP bits negate A, B and C.
    let sign = |bit: u32| if step.modifiers.get_blgp() >> bit & 1 != 0 { -1.0 } else { 1.0 };
    let a = w.lanes_wide(OperandPlace::Row(a_row as u16)).map(|v| f64::from_bits(v) * sign(0));
    let b = w.lanes_wide(OperandPlace::Row(b_row as u16)).map(|v| f64::from_bits(v) * sign(1));
    let groups = LANES / m;
    let registers = m * m * blocks / LANES;
    let c: Vec<[u64; LANES]> = (0..registers).map(|r| w.lanes_wide(c.offset(2 * r))).collect();
    for r in 0..registers {
        for lane in 0..LANES {
            let row = groups * r + lane / m;
            let (i, block, j) = (row / blocks, row % blocks, lane % m);
            let mut sum = f64::from_bits(c[r][lane]) * sign(2);
            for kk in 0..k {
                let group = kk * blocks + block;
                sum = a[group * m + i].mul_add(b[group * m + j], sum);
            }
            let bits = sum.to_bits();
            w.rows[d_row + 2 * r][lane] = bits as u32;
            w.rows[d_row + 2 * r + 1][lane] = (bits >> 32) as u32;
        }
    }
    Ok(())
}

/// Executes a sparse matrix instruction: D := A * B + D, A with two of four elements.
pub(super) fn sparse(
    w: &mut Wave,
    caches: &mut [WidenedCache; 2],
    arch: Arch,
    step: &Step,
    shape: Shape,
    types: [Element; 3],
) -> Result<(), Stopped> {
    let [d, a, b, index, ..] = step.operands;
    let (Some(d_row), Some(a_row), Some(b_row)) = (d.row(), a.row(), b.row()) else { return Ok(()) };
    let formats = formats(types, arch).ok_or_else(|| unsupported("this type of matrix"))?;
    let count = elements(shape);
    if !matches!(shape.m, 16 | 32) || count > 32 || shape.blocks != 1 {
        return Err(unsupported("this matrix shape"));
    }
    let (a_bits, b_bits) = (formats[0].bits(), formats[1].bits());
    let sources = MatrixSources {
        rows: [a_row, b_row],
        registers: [count / 2 * a_bits / 32, count * b_bits / 32],
        formats,
        orders: [ElementOrder::Kept; 2],
    };
    // The lane's index and, where several fit into the register, which of them.
    let sets = 32 / count as u32;
    let set = if step.modifiers.get_cbsz() & 3 == 0 { step.modifiers.get_abid() % sets } else { 0 };
    let index = w.lanes(index).map(|v| v >> (set * count as u32));
    let [a, b] = sources.widened(w, caches);
    // B lies in parts of four registers.
    let sparse = Sparse { a, index: &index, part: 4 * 32 / b_bits / 2 };
    let arithmetic = arithmetic(w, formats);
    let (m, d) = (usize::from(shape.m), d_row..d_row + results(shape));
    if let Arithmetic::Integer(_) = arithmetic {
        host::accumulate_sparse(m, arithmetic, &sparse, b, &mut w.rows[d]);
    } else {
        finished(w, [a, b], d, false, |d| host::accumulate_sparse(m, arithmetic, &sparse, b, d));
    }
    Ok(())
}

/// Executes a `_f8f6f4` matrix instruction: D := A * B + C, with a power of two for every 32 elements of A
/// and B if it has operands for them.
pub(super) fn formatted(
    w: &mut Wave,
    caches: &mut [WidenedCache; 2],
    step: &Step,
    shape: Shape,
) -> Result<(), Stopped> {
    let [d, a, b, c, scale_a, scale_b] = step.operands;
    let (Some(d_row), Some(a_row), Some(b_row)) = (d.row(), a.row(), b.row()) else { return Ok(()) };
    let selected = [step.modifiers.get_cbsz(), step.modifiers.get_blgp()].map(SourceFormat::selected);
    let [Some(a_format), Some(b_format)] = selected else {
        return Err(unsupported("this format of matrix elements"));
    };
    let (m, formats) = (usize::from(shape.m), [a_format, b_format]);
    let sources = MatrixSources {
        rows: [a_row, b_row],
        registers: formats.map(|f| elements(shape) * f.bits() / 32),
        formats,
        orders: formats
            .map(|f| if f.bits() == 8 { ElementOrder::HalvesJoined(m) } else { ElementOrder::Kept }),
    };
    let scales = match (scale_a, scale_b) {
        (OperandPlace::None, _) | (_, OperandPlace::None) => None,
        (scale_a, scale_b) => {
            let select = step.modifiers.get_scale_select();
            Some([scales(w, scale_a, select & 3), scales(w, scale_b, select >> 2 & 3)])
        }
    };
    let [a, b] = sources.widened(w, caches);
    let count = results(shape);
    place_c(w, c, d_row, count);
    let d = d_row..d_row + count;
    finished(w, [a, b], d, false, |d| match &scales {
        Some(scales) => host::accumulate_scaled(m, scales, a, b, d),
        None => {
            let tile = BlockTile { blocks: 1, block_mask: 0, block: 0 };
            host::accumulate(m, Arithmetic::ExactProduct, &tile, a, b, d);
        }
    });
    Ok(())
}

/// Scale of every lane: byte number `byte` as a power of two, of which 255 is NaN.
fn scales(w: &Wave, place: OperandPlace, byte: u32) -> [f64; LANES] {
    w.lanes(place).map(|v| match v >> (8 * byte) & 0xff {
        0xff => f64::NAN,
        exponent => f64::from_bits(u64::from(exponent + 1023 - 127) << 52),
    })
}
