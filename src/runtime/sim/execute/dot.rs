//! Dot products of the packed elements of two registers.

use crate::codegen::isa::{Element, Half};

use super::super::error::Stopped;
use super::super::numerics::{flush, from_bf16, from_f16};
use super::super::program::Step;
use super::super::wave::{LANES, VectorRow, Wave};
use super::lanes::{clamp, flush_f16, unsupported};
use super::packed::{half, selected};

/// Executes a dot product. Integer sums are exact; with clamp they saturate to 32 bits, otherwise they wrap.
pub(super) fn dot(w: &mut Wave, s: &Step, element: Element) -> Result<(), Stopped> {
    let addend = w.lanes(s.operands[if s.accumulates { 0 } else { 3 }]);
    let (bits, signed) = match element {
        Element::F16 | Element::Bf16 => {
            let values = float(w, s, element, &addend);
            w.set_lanes(s.operands[0], &values);
            return Ok(());
        }
        Element::I16 => (16, true),
        Element::U16 => (16, false),
        Element::I8 => (8, true),
        Element::U8 => (8, false),
        Element::I4 => (4, true),
        Element::U4 => (4, false),
        _ => return Err(unsupported()),
    };
    // The element moved to the top of the register and down again, with or without its sign.
    let part = move |v: u32, i: u32| {
        let top = v << (32 - bits - i * bits);
        if signed { i64::from(top as i32 >> (32 - bits)) } else { i64::from(top >> (32 - bits)) }
    };
    let clamps = s.modifiers.has_clamp();
    // Halves are where op_sel says; what is smaller has no such choice.
    let [a, b] = [1, 2].map(|index| match bits {
        16 => {
            let source = index as u32 - 1;
            let [low, high] = [Half::Low, Half::High].map(|side| selected(w, s, index, source, side));
            std::array::from_fn(|l| low[l] | high[l] << 16)
        }
        _ => w.lanes(s.operands[index]),
    });
    let values = std::array::from_fn(|l| {
        let start = if signed { i64::from(addend[l] as i32) } else { i64::from(addend[l]) };
        let sum = (0..32 / bits).fold(start, |sum, i| sum + part(a[l], i) * part(b[l], i));
        match (clamps, signed) {
            (false, _) => sum as u32,
            (true, true) => sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
            (true, false) => sum.clamp(0, u32::MAX.into()) as u32,
        }
    });
    w.set_lanes(s.operands[0], &values);
    Ok(())
}

/// Float sums go from the low to the high element, each product and sum rounded to f32 (products of f16 and
/// bf16 are exact); f16 start with the addend, bf16 end with it (CDNA4 ISA guide, V_DOT2_F32_F16 and
/// V_DOT2_F32_BF16). MODE does not matter: denormals are flushed on the way in and out (section "Denormalized
/// and Rounding Modes").
fn float(w: &Wave, s: &Step, element: Element, addend: &VectorRow) -> VectorRow {
    let value = |bits: u32| match element {
        Element::F16 => from_f16(flush_f16(bits)),
        _ => flush(from_bf16(bits)),
    };
    let sides = [Half::Low, Half::High]
        .map(|side| (half(w, s, 1, 0, side).map(value), half(w, s, 2, 1, side).map(value)));
    // The sign of the addend of bf16 products cannot be changed.
    let flip = if element == Element::F16 { (s.modifiers.get_neg_lo() >> 2 & 1) << 31 } else { 0 };
    let (clamps, nan) = (s.modifiers.has_clamp(), w.clamps_nan());
    let products: [[f32; 2]; LANES] = std::array::from_fn(|l| {
        let product = |(a, b): &([f32; LANES], [f32; LANES])| a[l] * b[l];
        [product(&sides[0]), product(&sides[1])]
    });
    std::array::from_fn(|l| {
        let start = flush(f32::from_bits(addend[l] ^ flip));
        let [low, high] = products[l];
        let sum = if element == Element::F16 { start + low + high } else { low + high + start };
        let sum = flush(sum);
        if clamps { clamp(sum, nan) } else { sum }.to_bits()
    })
}
