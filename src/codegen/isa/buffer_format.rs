//! The format of a typed buffer instruction: how the data lie in memory, and what the numbers are.
//!
//! Names and numbers: Vega ISA guide, table "Buffer data formats"; LLVM, SIDefines.h, `MTBUFFormat`.

use std::fmt::{self, Write};

/// A data format (four bits) and a number format (three bits).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct BufferFormat {
    data: u32,
    number: u32,
}

const DATA: [&str; 16] = [
    "BUF_DATA_FORMAT_INVALID",
    "BUF_DATA_FORMAT_8",
    "BUF_DATA_FORMAT_16",
    "BUF_DATA_FORMAT_8_8",
    "BUF_DATA_FORMAT_32",
    "BUF_DATA_FORMAT_16_16",
    "BUF_DATA_FORMAT_10_11_11",
    "BUF_DATA_FORMAT_11_11_10",
    "BUF_DATA_FORMAT_10_10_10_2",
    "BUF_DATA_FORMAT_2_10_10_10",
    "BUF_DATA_FORMAT_8_8_8_8",
    "BUF_DATA_FORMAT_32_32",
    "BUF_DATA_FORMAT_16_16_16_16",
    "BUF_DATA_FORMAT_32_32_32",
    "BUF_DATA_FORMAT_32_32_32_32",
    "BUF_DATA_FORMAT_RESERVED_15",
];

const NUMBER: [&str; 8] = [
    "BUF_NUM_FORMAT_UNORM",
    "BUF_NUM_FORMAT_SNORM",
    "BUF_NUM_FORMAT_USCALED",
    "BUF_NUM_FORMAT_SSCALED",
    "BUF_NUM_FORMAT_UINT",
    "BUF_NUM_FORMAT_SINT",
    "BUF_NUM_FORMAT_RESERVED_6",
    "BUF_NUM_FORMAT_FLOAT",
];

impl BufferFormat {
    /// Eight bits as a fraction of one: the format of assembler text that says none.
    pub const USUAL: BufferFormat = BufferFormat { data: 1, number: 0 };

    /// The format of the instruction's seven bits; higher ones are ignored.
    pub const fn from_bits(bits: u32) -> BufferFormat {
        BufferFormat { data: bits & 0xf, number: bits >> 4 & 7 }
    }

    /// The seven bits.
    pub const fn to_bits(self) -> u32 {
        self.data | self.number << 4
    }

    /// The data format.
    pub const fn data(self) -> u32 {
        self.data
    }

    /// The number format.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// The same with another data format.
    #[must_use]
    pub(super) const fn with_data(self, data: u32) -> BufferFormat {
        BufferFormat { data: data & 0xf, ..self }
    }

    /// The same with another number format.
    #[must_use]
    pub(super) const fn with_number(self, number: u32) -> BufferFormat {
        BufferFormat { number: number & 7, ..self }
    }

    /// The data format of that name.
    pub(super) fn data_from_name(name: &str) -> Option<u32> {
        DATA.iter().position(|known| *known == name).map(|number| number as u32)
    }

    /// The number format of that name.
    pub(super) fn number_from_name(name: &str) -> Option<u32> {
        NUMBER.iter().position(|known| *known == name).map(|number| number as u32)
    }
}

/// The modifier, with the names that are not the usual ones; nothing for the usual format.
pub(super) fn write_format(f: &mut dyn Write, format: BufferFormat) -> fmt::Result {
    let usual = BufferFormat::USUAL;
    let (data, number) = (DATA[format.data as usize], NUMBER[format.number as usize]);
    match (format.data == usual.data, format.number == usual.number) {
        (true, true) => Ok(()),
        (false, true) => write!(f, " format:[{data}]"),
        (true, false) => write!(f, " format:[{number}]"),
        (false, false) => write!(f, " format:[{data},{number}]"),
    }
}
