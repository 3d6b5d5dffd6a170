//! Data and number formats of buffer descriptors: bits in memory to components and back.
//!
//! Names and numbers are those of the descriptor's fields (Vega ISA guide, tables "Buffer resource
//! descriptor" and "Buffer data formats"). Widths are listed from the lowest bit on, which is the reverse of
//! the formats' names.

use super::super::numerics::{from_f16, to_f16};
use crate::codegen::isa;

/// What a component of a buffer is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Numeric {
    /// Fraction of one.
    Unorm,
    /// Signed fraction of one.
    Snorm,
    /// Integer that becomes a float.
    Uscaled,
    /// Signed integer that becomes a float.
    Sscaled,
    /// Unsigned integer.
    Uint,
    /// Signed integer.
    Sint,
    /// Float.
    Float,
}

/// A format: the components' widths in bits, and what they are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ElementFormat {
    widths: &'static [u32],
    numeric: Numeric,
    /// Which component each of x, y, z and w takes.
    selects: [u32; 4],
}

const WIDTHS: [&[u32]; 15] = [
    &[],
    &[8],
    &[16],
    &[8, 8],
    &[32],
    &[16, 16],
    &[11, 11, 10],
    &[10, 11, 11],
    &[2, 10, 10, 10],
    &[10, 10, 10, 2],
    &[8, 8, 8, 8],
    &[32, 32],
    &[16, 16, 16, 16],
    &[32, 32, 32],
    &[32, 32, 32, 32],
];

impl ElementFormat {
    /// The format in the last word of a descriptor, if it exists.
    pub(super) fn new(word: u32) -> Option<ElementFormat> {
        use Numeric::*;
        let widths = *WIDTHS.get((word >> 15 & 0xf) as usize).filter(|widths| !widths.is_empty())?;
        let numeric = [Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Uint, Float][(word >> 12 & 7) as usize];
        let wide = widths[0] == 32;
        let exists = match (word >> 12 & 7, numeric) {
            (6, _) => false,
            (_, Float) => !matches!(widths, [8, ..] | [10, 10, ..] | [2, ..]),
            (_, Unorm | Snorm | Uscaled | Sscaled) => !wide,
            _ => true,
        };
        let selects = [0, 3, 6, 9].map(|shift| word >> shift & 7);
        exists.then_some(ElementFormat { widths, numeric, selects })
    }

    /// The format that an instruction gives itself, with each component in its own place (Vega ISA guide,
    /// table "Buffer instructions": of the descriptor's word it takes nothing).
    pub(super) fn of_instruction(format: isa::BufferFormat) -> Option<ElementFormat> {
        const IN_PLACE: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;
        ElementFormat::new(format.data() << 15 | format.number() << 12 | IN_PLACE)
    }

    /// Bytes of all components together.
    pub(super) fn bytes(self) -> u32 {
        self.widths.iter().sum::<u32>() / 8
    }

    /// Number and bytes of the pieces of an access.
    pub(super) fn pieces(self) -> (u8, u32) {
        let bytes = self.bytes();
        if bytes <= 4 { (1, bytes) } else { ((bytes / 4) as u8, 4) }
    }

    /// The values that x, y, z and w load.
    pub(super) fn load(self, pieces: [u32; 4]) -> [u32; 4] {
        let one = if matches!(self.numeric, Numeric::Uint | Numeric::Sint) { 1 } else { 1f32.to_bits() };
        self.selects.map(|select| match select {
            1 => one,
            4..=7 => {
                let component = select as usize - 4;
                let missing = if component == 3 { one } else { 0 };
                self.field(pieces, component).map_or(missing, |(bits, width)| self.decode(bits, width))
            }
            _ => 0,
        })
    }

    /// The values stored for x, y, z and w.
    pub(super) fn store(self, components: [u32; 4]) -> [u32; 4] {
        let (mut all, mut shift) = (0u128, 0);
        for (&width, &value) in self.widths.iter().zip(&components) {
            all |= u128::from(self.encode(value, width)) << shift;
            shift += width;
        }
        [0, 32, 64, 96].map(|shift| (all >> shift) as u32)
    }

    /// A loaded component, converted to half a register.
    pub(super) fn narrow(self, value: u32) -> u32 {
        match self.numeric {
            Numeric::Uint => value.min(0xffff),
            Numeric::Sint => (value as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff,
            _ => to_f16(f32::from_bits(value)) & 0xffff,
        }
    }

    /// A component to store, converted from half a register.
    pub(super) fn widen(self, half: u32) -> u32 {
        match self.numeric {
            Numeric::Uint => half & 0xffff,
            Numeric::Sint => i32::from(half as i16) as u32,
            _ => from_f16(half & 0xffff).to_bits(),
        }
    }

    /// Bits and width of a component.
    fn field(self, pieces: [u32; 4], component: usize) -> Option<(u32, u32)> {
        let width = *self.widths.get(component)?;
        let shift: u32 = self.widths[..component].iter().sum();
        let all = pieces.iter().rev().fold(0u128, |all, &piece| all << 32 | u128::from(piece));
        Some(((all >> shift) as u32 & mask(width), width))
    }

    fn decode(self, bits: u32, width: u32) -> u32 {
        let signed = (bits << (32 - width)) as i32 >> (32 - width);
        match self.numeric {
            Numeric::Unorm => (f64::from(bits) / f64::from(mask(width))) as f32,
            Numeric::Snorm => (f64::from(signed) / f64::from(mask(width - 1))).max(-1.0) as f32,
            Numeric::Uscaled => bits as f32,
            Numeric::Sscaled => signed as f32,
            Numeric::Uint => return bits,
            Numeric::Sint => return signed as u32,
            Numeric::Float if width == 32 => return bits,
            // The small floats are an f16 without sign and without the last bits.
            Numeric::Float if width < 16 => from_f16(bits << (15 - width)),
            Numeric::Float => from_f16(bits),
        }
        .to_bits()
    }

    fn encode(self, value: u32, width: u32) -> u32 {
        let float = f64::from(f32::from_bits(value));
        // Casts saturate and turn NaN into zero.
        let most = f64::from(mask(width));
        let (low, high) = (-f64::from(mask(width - 1)) - 1.0, f64::from(mask(width - 1)));
        let bits = match self.numeric {
            Numeric::Unorm => (float.clamp(0.0, 1.0) * most).round_ties_even() as u32,
            Numeric::Snorm => (float.clamp(-1.0, 1.0) * high).round_ties_even() as i32 as u32,
            Numeric::Uscaled => float.clamp(0.0, most) as u32,
            Numeric::Sscaled => float.clamp(low, high) as i32 as u32,
            Numeric::Uint => value.min(mask(width)),
            Numeric::Sint => f64::from(value as i32).clamp(low, high) as i32 as u32,
            Numeric::Float if width == 32 => value,
            Numeric::Float if width < 16 => {
                let value = f32::from_bits(value);
                to_f16(if value < 0.0 { 0.0 } else { value }) >> (15 - width)
            }
            Numeric::Float => to_f16(f32::from_bits(value)),
        };
        bits & mask(width)
    }
}

fn mask(width: u32) -> u32 {
    u32::MAX >> (32 - width)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Last word of a descriptor with x, y, z, w in their places.
    fn word(data: u32, number: u32) -> u32 {
        data << 15 | number << 12 | 4 | 5 << 3 | 6 << 6 | 7 << 9
    }

    fn format(data: u32, number: u32) -> ElementFormat {
        ElementFormat::new(word(data, number)).expect("a format")
    }

    #[test]
    fn components_come_back() {
        let floats = |values: [f32; 4]| values.map(f32::to_bits);
        assert_eq!(
            format(10, 0).load([0xff00_8040, 0, 0, 0]),
            floats([64.0 / 255.0, 128.0 / 255.0, 0.0, 1.0])
        );
        assert_eq!(format(10, 1).load([0x7f80_8100, 0, 0, 0]), floats([0.0, -1.0, -1.0, 1.0]));
        assert_eq!(format(5, 5).load([0xffff_0001, 0, 0, 0]), [1, u32::MAX, 0, 1]);
        assert_eq!(format(9, 4).load([1 | 2 << 10 | 3 << 20 | 1 << 30, 0, 0, 0]), [1, 2, 3, 1]);
        assert_eq!(format(8, 4).load([1 | 2 << 2 | 3 << 12 | 4 << 22, 0, 0, 0]), [1, 2, 3, 4]);
        assert_eq!(format(12, 7).load([0xc000_3c00, 0x3800, 0, 0]), floats([1.0, -2.0, 0.5, 0.0]));
        // Eleven bits: five of exponent, six of mantissa; ten: five and five.
        let packed = 0x3c0 | 0x400 << 11 | 0x1c0 << 22;
        assert_eq!(format(6, 7).load([packed, 0, 0, 0]), floats([1.0, 2.0, 0.5, 1.0]));
        for data in 1..15 {
            for number in [0, 1, 2, 3, 4, 5, 7] {
                let Some(format) = ElementFormat::new(word(data, number)) else { continue };
                let pieces = [0x2d15_1a57, 0x1122_3344, 0x0102_0304, 0x4000_0001];
                let stored = format.store(format.load(pieces));
                let bits = 8 * format.bytes();
                let all = |p: [u32; 4]| p.iter().rev().fold(0u128, |a, &b| a << 32 | u128::from(b));
                assert_eq!(all(stored), all(pieces) & (u128::MAX >> (128 - bits)), "{data}, {number}");
            }
        }
    }

    #[test]
    fn values_outside_are_clamped() {
        assert_eq!(format(1, 0).store([2f32.to_bits(), 0, 0, 0])[0], 255);
        assert_eq!(format(1, 0).store([f32::NAN.to_bits(), 0, 0, 0])[0], 0);
        assert_eq!(format(2, 5).store([-70_000i32 as u32, 0, 0, 0])[0], 0x8000);
        assert_eq!(format(2, 3).store([(-1e9f32).to_bits(), 0, 0, 0])[0], 0x8000);
        assert!(ElementFormat::new(word(4, 0)).is_none() && ElementFormat::new(word(0, 7)).is_none());
        assert!(ElementFormat::new(word(15, 4)).is_none() && ElementFormat::new(word(10, 7)).is_none());
    }

    #[test]
    fn selections_swap_and_set() {
        let swapped = ElementFormat::new(3 << 15 | 4 << 12 | 5 | 4 << 3 | 1 << 6).expect("a format");
        assert_eq!(swapped.load([0x0201, 0, 0, 0]), [2, 1, 1, 0]);
    }
}
