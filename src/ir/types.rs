//! Element types and address spaces: the two small facts that every tensor and every register carries.
use std::fmt;

/// What one element is, named as the text form names it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DType {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    Bf16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 8-bit integer.
    I8,
    /// One bit: the result of a comparison.
    I1,
    /// 8-bit float of gfx942 with 3 bits of fraction: finite numbers and one NaN.
    F8E4M3Fnuz,
    /// 8-bit float of gfx942 with 2 bits of fraction: finite numbers and one NaN.
    F8E5M2Fnuz,
    /// OCP's 8-bit float with 3 bits of fraction: finite numbers and NaNs.
    F8E4M3Fn,
    /// OCP's 8-bit float with 2 bits of fraction: numbers, infinities and NaNs.
    F8E5M2,
    /// Signed 16-bit integer.
    I16,
    /// Signed 64-bit integer.
    I64,
    /// IEEE binary64.
    F64,
    /// OCP's 8-bit scale: a power of two or NaN.
    F8E8M0,
    /// OCP's 4-bit float: numbers alone. A memory holds two in a byte.
    F4E2M1,
    /// OCP's 6-bit float with 3 bits of fraction: numbers alone. A memory holds 32 in six words of 32 bits.
    F6E2M3,
    /// OCP's 6-bit float with 2 bits of fraction: numbers alone. A memory holds 32 in six words of 32 bits.
    F6E3M2,
}

/// How memory holds elements of which several share a unit of whole bytes: along the last dimension, the
/// first one in the lowest bits. Every row begins with a unit.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PackedUnit {
    /// Elements of a unit.
    pub(crate) elements: u32,
    /// Words of a unit.
    pub(crate) words: u32,
    /// The integer of a word's size.
    pub(crate) word: DType,
}

impl PackedUnit {
    /// Bytes of a unit.
    pub(crate) const fn bytes(self) -> u32 {
        self.words * self.word.bytes()
    }

    /// Bits of an element.
    pub(crate) const fn bits(self) -> u32 {
        8 * self.bytes() / self.elements
    }
}

/// One row per dtype: the type, its name, its width in bits, whether it is a float.
const DTYPES: [(DType, &str, u32, bool); 17] = [
    (DType::F32, "f32", 32, true),
    (DType::F16, "f16", 16, true),
    (DType::Bf16, "bf16", 16, true),
    (DType::I32, "i32", 32, false),
    (DType::I8, "i8", 8, false),
    (DType::I1, "i1", 1, false),
    (DType::F8E4M3Fnuz, "f8e4m3fnuz", 8, true),
    (DType::F8E5M2Fnuz, "f8e5m2fnuz", 8, true),
    (DType::F8E4M3Fn, "f8e4m3fn", 8, true),
    (DType::F8E5M2, "f8e5m2", 8, true),
    (DType::I16, "i16", 16, false),
    (DType::I64, "i64", 64, false),
    (DType::F64, "f64", 64, true),
    (DType::F8E8M0, "f8e8m0", 8, true),
    (DType::F4E2M1, "f4e2m1", 4, true),
    (DType::F6E2M3, "f6e2m3", 6, true),
    (DType::F6E3M2, "f6e3m2", 6, true),
];

impl DType {
    /// Every dtype, in declaration order.
    pub fn all() -> impl Iterator<Item = DType> {
        DTYPES.iter().map(|row| row.0)
    }

    /// Width of one element in bits.
    pub const fn bits(self) -> u32 {
        DTYPES[self as usize].2
    }

    /// Width of one element in memory, in whole bytes (`i1` takes one). An `f4e2m1` has half a byte, and
    /// 6-bit floats share bytes: see [`DType::row_bytes`].
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// The bytes of a row of so many elements, along the last dimension of a memory.
    pub const fn row_bytes(self, elements: u64) -> Option<u64> {
        match self.packing() {
            Some(packing) => elements.div_ceil(packing.elements as u64).checked_mul(packing.bytes() as u64),
            None => elements.checked_mul(self.bytes() as u64),
        }
    }

    /// How memory holds elements that are not whole bytes; nothing of others. 32 elements of 6 bits, a block
    /// that has a scale, are what a lane holds for a matrix instruction (CDNA4 ISA guide, "8-bit and
    /// Smaller Matrix Operations").
    pub(crate) const fn packing(self) -> Option<PackedUnit> {
        match self {
            DType::F4E2M1 => Some(PackedUnit { elements: 2, words: 1, word: DType::I8 }),
            DType::F6E2M3 | DType::F6E3M2 => Some(PackedUnit { elements: 32, words: 6, word: DType::I32 }),
            _ => None,
        }
    }

    /// Whether the type is a floating-point format.
    pub const fn is_float(self) -> bool {
        DTYPES[self as usize].3
    }

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        DTYPES[self as usize].1
    }

    /// The dtype with this name, if there is one.
    pub fn from_name(name: &str) -> Option<DType> {
        DTYPES.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

/// A dtype is stored by its name.
impl serde::Serialize for DType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for DType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        let name = <&str>::deserialize(deserializer)?;
        DType::from_name(name).ok_or_else(|| serde::de::Error::custom(format!("no dtype is called {name}")))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a value is kept.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AddressSpace {
    /// Device memory, visible to every workgroup.
    Global,
    /// LDS, visible to one workgroup.
    Shared,
    /// Registers, visible to one lane.
    Register,
}

const ADDRESS_SPACES: [(AddressSpace, &str); 3] = [
    (AddressSpace::Global, "global"),
    (AddressSpace::Shared, "shared"),
    (AddressSpace::Register, "register"),
];

impl AddressSpace {
    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        ADDRESS_SPACES[self as usize].1
    }

    /// The address space with this name, if there is one.
    pub fn from_name(name: &str) -> Option<AddressSpace> {
        ADDRESS_SPACES.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

impl fmt::Display for AddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_row_sits_at_its_own_index_and_its_name_reads_back() {
        for (index, row) in DTYPES.iter().enumerate() {
            assert_eq!(row.0 as usize, index);
            assert_eq!(DType::from_name(row.0.name()), Some(row.0));
        }
        for (index, row) in ADDRESS_SPACES.iter().enumerate() {
            assert_eq!(row.0 as usize, index);
            assert_eq!(AddressSpace::from_name(row.0.name()), Some(row.0));
        }
        assert_eq!(DType::from_name("f128"), None);
    }

    #[test]
    fn widths_are_those_of_the_formats() {
        let widths: Vec<_> =
            DType::all().map(|t| (t.to_string(), t.bits(), t.bytes(), t.is_float())).collect();
        let expected = [
            ("f32", 32, 4, true),
            ("f16", 16, 2, true),
            ("bf16", 16, 2, true),
            ("i32", 32, 4, false),
            ("i8", 8, 1, false),
            ("i1", 1, 1, false),
            ("f8e4m3fnuz", 8, 1, true),
            ("f8e5m2fnuz", 8, 1, true),
            ("f8e4m3fn", 8, 1, true),
            ("f8e5m2", 8, 1, true),
            ("i16", 16, 2, false),
            ("i64", 64, 8, false),
            ("f64", 64, 8, true),
            ("f8e8m0", 8, 1, true),
            ("f4e2m1", 4, 1, true),
            ("f6e2m3", 6, 1, true),
            ("f6e3m2", 6, 1, true),
        ];
        assert_eq!(widths, expected.map(|(n, b, y, f)| (n.to_string(), b, y, f)));
    }
}
