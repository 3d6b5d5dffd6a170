//! Matrix instructions.
//!
//! **Layout.** One rule covers the dense instructions with 32-bit results. Lanes fall into `64 / m` groups of m. Source A
//! holds column i of lane group g in lane `g * m + i`: block `g mod blocks`, and the k of its elements start at
//! `(g / blocks) * e`, e being the number of elements in the lane's registers, low bits first. B is the same with j for i.
//! Results go by rows of four: counted through all blocks, row number `4 q + r` (q: four rows, r: which of them) is in
//! register `4 * (q / groups) + r` of the lanes of group `q mod groups`, column j in lane j of the group. For f64 rows
//! go one by one instead of by four. (AMD matrix instruction calculator; tests compare with its table.)
//!
//! **Numerics.** Products of f16 are exact in f32. Results accumulate in f32 in rising k, starting with C, one rounding
//! (to nearest even) per product: `d = fma(a_k, b_k, d)`. Hardware adds groups of products before it rounds, in an order
//! that is not published; results may differ from it in the last bits. Denormals are kept on the way in and out. Integers
//! wrap. The xf32 forms round their sources to 10 bits of mantissa. EXEC and the round mode are ignored, as on hardware.
//!
//! **Speed.** Rows of A and B are widened to f32 lane by lane, which leaves them contiguous in i and j, and results are
//! updated in place: an outer product per k over contiguous lanes. Widened sources are kept per register and reused while
//! the register's bits are the same: a wave's tile reads each A and B several times.

use crate::codegen::isa::{Element, Shape};

use super::super::error::{FaultKind, Stopped};
use super::super::numerics::{from_bf16, from_f16, from_fnuz8, to_xf32};
use super::super::program::{Place, Step};
use super::super::wave::{LANES, Row, Wave};
use super::host;
use super::multiply::{Arithmetic, Tile};

/// Elements that a lane's two registers hold at most.
pub(super) const ELEMENTS: usize = 8;

/// A source widened to f32: element e of every lane, as bits.
pub(super) type Wide = [Row; ELEMENTS];

/// A widened source and what it was widened from.
#[derive(Debug)]
struct Entry {
    element: Element,
    source: [Row; 2],
    wide: Wide,
}

/// Widened sources by first register.
#[derive(Debug, Default)]
pub(in super::super) struct Cache(Vec<Option<Box<Entry>>>);

impl Cache {
    /// Widened source in row `row` (and the next). The first call for a row and every call after its bits changed widen.
    fn get(&mut self, rows: &[Row], row: usize, element: Element, registers: usize) -> &Wide {
        if self.0.len() <= row {
            self.0.resize_with(row + 1, || None);
        }
        let entry = self.0[row].get_or_insert_with(|| {
            // An element that no source has, so that the first comparison fails.
            Box::new(Entry { element: Element::B1024, source: [[0; LANES]; 2], wide: [[0; LANES]; ELEMENTS] })
        });
        let source = &rows[row..row + registers];
        if entry.element != element || entry.source[..registers] != *source {
            entry.source[..registers].copy_from_slice(source);
            entry.element = element;
            host::widen(element, &entry.source[..registers], &mut entry.wide);
        }
        &entry.wide
    }
}

/// Widens one source (called through [`host`]).
#[inline(always)]
pub(super) fn widen(element: Element, source: &[Row], wide: &mut Wide) {
    for (r, row) in source.iter().enumerate() {
        match element {
            Element::F16 => {
                for l in 0..LANES {
                    wide[2 * r][l] = from_f16(row[l]).to_bits();
                    wide[2 * r + 1][l] = from_f16(row[l] >> 16).to_bits();
                }
            }
            Element::Bf16 => {
                for l in 0..LANES {
                    wide[2 * r][l] = from_bf16(row[l]).to_bits();
                    wide[2 * r + 1][l] = from_bf16(row[l] >> 16).to_bits();
                }
            }
            Element::I8 | Element::Fp8 | Element::Bf8 => {
                for byte in 0..4 {
                    for l in 0..LANES {
                        let bits = row[l] >> (8 * byte) & 0xff;
                        wide[4 * r + byte][l] = match element {
                            Element::I8 => f32::from(bits as i8).to_bits(),
                            Element::Fp8 => from_fnuz8(bits, 4).to_bits(),
                            _ => from_fnuz8(bits, 5).to_bits(),
                        };
                    }
                }
            }
            Element::Xf32 => wide[r] = row.map(|v| to_xf32(f32::from_bits(v)).to_bits()),
            _ => wide[r] = *row,
        }
    }
}

/// Elements per register.
fn per_register(element: Element) -> usize {
    match element {
        Element::F16 | Element::Bf16 => 2,
        Element::I8 | Element::Fp8 | Element::Bf8 => 4,
        _ => 1,
    }
}

/// Executes a matrix instruction: D := A * B + C.
pub(super) fn execute(
    w: &mut Wave,
    caches: &mut [Cache; 2],
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
        return Err(Stopped::wave(FaultKind::Unsupported("cbsz or abid beyond the blocks")));
    }
    let elements = usize::from(shape.k) * m * blocks / LANES;
    let registers = [types[0], types[1]].map(|t| elements / per_register(t));
    if registers.iter().any(|&r| r == 0 || r > 2) || shape.m != shape.n || !matches!(shape.m, 4 | 16 | 32) {
        return Err(Stopped::wave(FaultKind::Unsupported("this matrix shape")));
    }
    let [a_cache, b_cache] = caches;
    let a = &a_cache.get(&w.rows, a_row, types[0], registers[0])[..elements];
    let b = &b_cache.get(&w.rows, b_row, types[1], registers[1])[..elements];
    let mut regrouped = [[0; LANES]; ELEMENTS];
    let b = if blgp == 0 {
        b
    } else {
        for (to, from) in regrouped.iter_mut().zip(b) {
            let row = regroup(from, blgp)?;
            *to = row;
        }
        &regrouped[..elements]
    };
    // A and B are widened copies by now, so C may go to its place even where D overlaps them.
    let count = m * m * blocks / LANES;
    match c.row() {
        Some(c_row) if c_row == d_row => {}
        Some(c_row) => w.rows.copy_within(c_row..c_row + count, d_row),
        None => {
            let value = w.scalar(c);
            w.rows[d_row..d_row + count].fill([value; LANES]);
        }
    }
    let arithmetic = match types {
        [_, _, Element::I32] => Arithmetic::Integer,
        [Element::F16, Element::F16, _] => Arithmetic::ExactProduct,
        _ => Arithmetic::Fused,
    };
    let tile = Tile { blocks, block_mask: (1 << cbsz) - 1, block: abid as usize };
    host::accumulate(m, arithmetic, &tile, a, b, &mut w.rows[d_row..d_row + count]);
    Ok(())
}

/// B with its groups of lanes rearranged (CDNA3 ISA guide, MFMA, "BLGP").
fn regroup(row: &Row, blgp: u32) -> Result<Row, Stopped> {
    let from = |l: usize| match blgp {
        1 => l % 32,
        2 => 32 + l % 32,
        3 => (l + 16) % 64,
        _ => 16 * (blgp as usize - 4) + l % 16,
    };
    Ok(std::array::from_fn(|l| row[from(l)]))
}

/// f64 forms: elements are register pairs, and rows of the result go one by one through the lane groups.
fn double(w: &mut Wave, step: &Step, shape: Shape, rows: [usize; 3], c: Place) -> Result<(), Stopped> {
    let [d_row, a_row, b_row] = rows;
    let (m, k, blocks) = (usize::from(shape.m), usize::from(shape.k), usize::from(shape.blocks));
    if m != usize::from(shape.n) || k * m * blocks != LANES {
        return Err(Stopped::wave(FaultKind::Unsupported("this matrix shape")));
    }
    // The BLGP bits negate A, B and C.
    let sign = |bit: u32| if step.modifiers.get_blgp() >> bit & 1 != 0 { -1.0 } else { 1.0 };
    let a = w.lanes_wide(Place::Row(a_row as u16)).map(|v| f64::from_bits(v) * sign(0));
    let b = w.lanes_wide(Place::Row(b_row as u16)).map(|v| f64::from_bits(v) * sign(1));
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
