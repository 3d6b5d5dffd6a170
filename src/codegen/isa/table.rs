//! The instruction table put together: [`Opcode`] and its [`OpInfo`] rows, from the files in `rows/`.

use super::meaning::BranchCondition::*;
use super::meaning::Calc::*;
use super::meaning::Condition::*;
use super::meaning::Element::*;
use super::meaning::Half::*;
use super::meaning::MemoryData::*;
use super::meaning::Permutation::*;
use super::meaning::{Meaning, shape};
use super::modifiers::Modifiers;
use super::rows::kinds::*;
use super::spec::{Counter, Format, Implicit, OpInfo, Unit};
use crate::codegen::arch::{Arch, Arches};

/// The default, or the row's own value in its place.
const fn last<T: Copy>(list: &[T]) -> T {
    list[list.len() - 1]
}

macro_rules! define_table {
    ([] $(
        $name:ident $mnemonic:literal $format:ident($code:literal) [$($operand:expr),*]
        $unit:ident $(($passes:literal $(, $other_passes:literal on $passing:ident)?))? $meaning:ident $(($($argument:expr),*))?
        $(, reads($($read:ident),*))? $(, writes($($write:ident),*))?
        $(, on($arches:ident))? $(, alias($aliased:ident, $alias:literal))?;
    )*) => {
        /// Every instruction. The documentation of the rows says how names are formed: the mnemonic with its
        /// parts capitalised and joined, with an underscore between two digits.
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum Opcode {
            $(#[doc = concat!("`", $mnemonic, "`")] $name,)*
        }

        impl Opcode {
            /// Every opcode in the order of the table.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$name),*];
        }

        static TABLE: [OpInfo; Opcode::ALL.len()] = [$(
            OpInfo {
                mnemonic: $mnemonic,
                alias: last(&[None $(, Some(($alias, Arches::$aliased)))?]),
                arches: last(&[Arches::ALL $(, Arches::$arches)?]),
                format: Format::$format,
                code: $code,
                operands: &[$($operand),*],
                unit: Unit::$unit $(($passes))?,
                other_passes: last(&[None $($(, Some(($other_passes, Arches::$passing)))?)?]),
                counter: Counter::None,
                reads: Implicit::NONE $($(.with(Implicit::$read))*)?,
                writes: Implicit::NONE $($(.with(Implicit::$write))*)?,
                modifiers: Modifiers::new(),
                dpp_modifiers: Modifiers::new(),
                sdwa_modifiers: Modifiers::new(),
                meaning: Meaning::$meaning $(($($argument),*))?,
            }
            .complete(),
        )*];
    };
}

scalar_rows! {
    [
        smem_rows vector_rows compare_rows vector3_rows packed_rows matrix_rows lds_rows buffer_rows flat_rows
        image_rows define_table
    ]
}

impl Opcode {
    /// The row of the table.
    #[inline]
    pub const fn info(self) -> &'static OpInfo {
        &TABLE[self as usize]
    }

    /// True if `arch` has it.
    #[inline]
    pub fn on(self, arch: Arch) -> bool {
        self.info().arches.contains(arch)
    }

    /// The chip whose spelling is used where no chip is given: the usual one, or the first that has the
    /// instruction.
    pub fn spelling(self) -> Arch {
        let arches = self.info().arches;
        let first = if arches.contains(Arch::USUAL) { None } else { arches.iter().next() };
        first.unwrap_or(Arch::USUAL)
    }

    /// Mnemonic without encoding suffix.
    pub fn mnemonic(self) -> &'static str {
        self.info().mnemonic
    }
}
