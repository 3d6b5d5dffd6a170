//! Sources of matrix instructions as f32: number formats, and their packing in registers.
//!
//! Elements lie in a lane's registers one after the other, low bits first; those of 6 bits cross the borders
//! of registers (CDNA4 ISA guide, "General input and output layout"). The formats of 4, 6 and 8 bits are
//! those of the guide's table "Small Float Data Formats"; gfx942 has other 8-bit formats (FNUZ: one zero,
//! 0x80 is NaN, no infinities).

use crate::codegen::isa::{Arch, Element};

use super::super::numerics::{flush, from_bf16, from_f16, to_xf32};
use super::super::wave::{LANES, VectorRow};

/// Number format of a source.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum SourceFormat {
    F32,
    /// f32 of which 10 bits of mantissa count.
    Xf32,
    F16,
    /// f16 whose denormals count as zeros.
    F16Flushed,
    Bf16,
    /// bf16 whose denormals count as zeros.
    Bf16Flushed,
    /// Held as the f32 of the same value.
    I8,
    Fp8Fnuz,
    Bf8Fnuz,
    Fp8,
    Bf8,
    Fp6,
    Bf6,
    Fp4,
}

impl SourceFormat {
    /// Format of a source of this type. The chip decides about 8-bit floats and about denormal f16 and bf16.
    #[inline]
    pub(super) fn of(element: Element, arch: Arch) -> Option<SourceFormat> {
        let (flushed, ocp) = (arch.flushes_matrix_denormals(), arch.has_ocp_floats());
        Some(match element {
            Element::F32 => SourceFormat::F32,
            Element::Xf32 => SourceFormat::Xf32,
            Element::F16 if flushed => SourceFormat::F16Flushed,
            Element::F16 => SourceFormat::F16,
            Element::Bf16 if flushed => SourceFormat::Bf16Flushed,
            Element::Bf16 => SourceFormat::Bf16,
            Element::I8 => SourceFormat::I8,
            Element::Fp8 if ocp => SourceFormat::Fp8,
            Element::Bf8 if ocp => SourceFormat::Bf8,
            Element::Fp8 => SourceFormat::Fp8Fnuz,
            Element::Bf8 => SourceFormat::Bf8Fnuz,
            _ => return None,
        })
    }

    /// Format that CBSZ or BLGP of a `_f8f6f4` instruction selects (CDNA4 ISA guide, "8-bit and Smaller
    /// Matrix Operations").
    pub(super) fn selected(selector: u32) -> Option<SourceFormat> {
        [SourceFormat::Fp8, SourceFormat::Bf8, SourceFormat::Fp6, SourceFormat::Bf6, SourceFormat::Fp4]
            .get(selector as usize)
            .copied()
    }

    /// Bits of an element.
    pub(super) fn bits(self) -> usize {
        match self {
            SourceFormat::F32 | SourceFormat::Xf32 => 32,
            SourceFormat::F16 | SourceFormat::F16Flushed | SourceFormat::Bf16 | SourceFormat::Bf16Flushed => {
                16
            }
            SourceFormat::I8
            | SourceFormat::Fp8Fnuz
            | SourceFormat::Bf8Fnuz
            | SourceFormat::Fp8
            | SourceFormat::Bf8 => 8,
            SourceFormat::Fp6 | SourceFormat::Bf6 => 6,
            SourceFormat::Fp4 => 4,
        }
    }
}

/// The order of k in which the elements of a source are needed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ElementOrder {
    /// As they lie in the registers.
    Kept,
    /// The lane's registers hold 16 elements of the lower half of k and 16 of the upper half; the result
    /// needs 32 consecutive ones. The number is that of the lanes in a group.
    HalvesJoined(usize),
}

/// Widens one source (called through [`host`](super::host)).
#[inline(always)]
pub(super) fn widen(format: SourceFormat, source: &[VectorRow], wide: &mut [VectorRow]) {
    match format {
        SourceFormat::F32 => wide.copy_from_slice(source),
        SourceFormat::Xf32 => unpack::<32>(source, wide, |bits| to_xf32(f32::from_bits(bits))),
        SourceFormat::F16 => unpack::<16>(source, wide, from_f16),
        SourceFormat::F16Flushed => {
            unpack::<16>(source, wide, |bits| {
                from_f16(if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits })
            });
        }
        SourceFormat::Bf16 => unpack::<16>(source, wide, from_bf16),
        SourceFormat::Bf16Flushed => unpack::<16>(source, wide, |bits| flush(from_bf16(bits))),
        SourceFormat::I8 => unpack::<8>(source, wide, |bits| f32::from(bits as i8)),
        SourceFormat::Fp8Fnuz => unpack::<8>(source, wide, fnuz::<4>),
        SourceFormat::Bf8Fnuz => unpack::<8>(source, wide, fnuz::<5>),
        SourceFormat::Fp8 => {
            unpack::<8>(
                source,
                wide,
                |bits| {
                    if bits & 0x7f == 0x7f { f32::NAN } else { small::<4, 3>(bits, 7) }
                },
            )
        }
        SourceFormat::Bf8 => unpack::<8>(source, wide, |bits| match bits & 0x7f {
            0x7c => f32::from_bits(f32::INFINITY.to_bits() | (bits & 0x80) << 24),
            0x7d..=0x7f => f32::NAN,
            _ => small::<5, 2>(bits, 15),
        }),
        SourceFormat::Fp6 => unpack::<6>(source, wide, |bits| small::<2, 3>(bits, 1)),
        SourceFormat::Bf6 => unpack::<6>(source, wide, |bits| small::<3, 2>(bits, 3)),
        SourceFormat::Fp4 => unpack::<4>(source, wide, |bits| small::<2, 1>(bits, 1)),
    }
}

/// Every element of `BITS` bits through `decode`.
#[inline(always)]
fn unpack<const BITS: usize>(source: &[VectorRow], wide: &mut [VectorRow], decode: impl Fn(u32) -> f32) {
    let mask = u32::MAX >> (32 - BITS);
    for (e, row) in wide.iter_mut().enumerate() {
        let (register, shift) = (e * BITS / 32, e * BITS % 32);
        let low = &source[register];
        if shift + BITS <= 32 {
            for l in 0..LANES {
                row[l] = decode(low[l] >> shift & mask).to_bits();
            }
        } else {
            let high = &source[register + 1];
            for l in 0..LANES {
                row[l] = decode((low[l] >> shift | high[l] << (32 - shift)) & mask).to_bits();
            }
        }
    }
}

/// Value of a small float without regard to infinities and NaN: a sign, `E` bits of exponent, `M` of
/// mantissa. Exact.
#[inline(always)]
fn small<const E: u32, const M: u32>(bits: u32, bias: u32) -> f32 {
    // With the exponent field in place the value is 2^(127 - bias) too small, which holds for denormals too.
    let magnitude =
        f32::from_bits((bits & ((1 << (E + M)) - 1)) << (23 - M)) * f32::from_bits((254 - bias) << 23);
    f32::from_bits(magnitude.to_bits() | (bits >> (E + M) & 1) << 31)
}

/// Value of an 8-bit float of gfx942.
#[inline(always)]
fn fnuz<const E: u32>(bits: u32) -> f32 {
    super::super::numerics::from_fnuz8(bits, E)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value of every pattern of a format.
    fn values(format: SourceFormat) -> Vec<f32> {
        let registers = if format.bits() == 6 { 6 } else { 4 };
        let mut wide = vec![[0; LANES]; registers * 32 / format.bits()];
        (0..1u32 << format.bits())
            .map(|pattern| {
                let mut source = vec![[0; LANES]; registers];
                // The second element: of 6 bits it lies inside a register.
                source[0][5] = pattern.checked_shl(format.bits() as u32).unwrap_or(0);
                widen(format, &source, &mut wide);
                f32::from_bits(wide[1][5])
            })
            .collect()
    }

    #[test]
    fn small_floats_are_those_of_the_guide() {
        let largest = |format| values(format).into_iter().filter(|v| v.is_finite()).fold(0.0, f32::max);
        let smallest = |format| values(format).into_iter().filter(|&v| v > 0.0).fold(f32::INFINITY, f32::min);
        // Largest and smallest positive number: CDNA4 ISA guide, "Small Float Data Formats"; FNUZ: OCP's
        // ranges at half the value and with one more exponent.
        for (format, high, low) in [
            (SourceFormat::Fp8, 448.0, 2.0f32.powi(-9)),
            (SourceFormat::Bf8, 57344.0, 2.0f32.powi(-16)),
            (SourceFormat::Fp6, 7.5, 0.125),
            (SourceFormat::Bf6, 28.0, 0.0625),
            (SourceFormat::Fp4, 6.0, 0.5),
            (SourceFormat::Fp8Fnuz, 240.0, 2.0f32.powi(-10)),
            (SourceFormat::Bf8Fnuz, 57344.0, 2.0f32.powi(-17)),
        ] {
            assert_eq!((largest(format), smallest(format)), (high, low), "{format:?}");
        }
        let nans = |format| values(format).iter().filter(|v| v.is_nan()).count();
        assert_eq!(
            [SourceFormat::Fp8, SourceFormat::Bf8, SourceFormat::Fp8Fnuz, SourceFormat::Bf8Fnuz].map(nans),
            [2, 6, 1, 1]
        );
        assert_eq!(values(SourceFormat::Bf8)[0xfc], f32::NEG_INFINITY);
        assert_eq!(
            values(SourceFormat::Fp4),
            [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
        );
    }

    #[test]
    fn elements_of_six_bits_cross_registers() {
        let mut source = vec![[0; LANES]; 6];
        // Element 5 in bits 35:30, element 31 in bits 191:186.
        source[0][3] = 1 << 30;
        source[1][3] = 1 << 1;
        source[5][3] = 0b011111 << 26;
        let mut wide = vec![[0; LANES]; 32];
        widen(SourceFormat::Fp6, &source, &mut wide);
        assert_eq!(f32::from_bits(wide[5][3]), 0.125 + 1.0);
        assert_eq!(f32::from_bits(wide[31][3]), 7.5);
        assert_eq!(wide.iter().flatten().filter(|&&v| v != 0).count(), 2);
    }
}
