//! Rows of atomic updates: what joins an element of a memory with an element of a value in one step.

use super::row::{Exactness, MemoryEffect, NodeRole, OpClass, OpRow, OpUnit, Purity, ROW, ResultType};
use crate::ir::types::{AddressSpace, DType};

/// The operands of an update by so many values.
const fn takes(values: usize) -> &'static [NodeRole] {
    match values {
        2 => &[NodeRole::Value, NodeRole::Value, NodeRole::Memory],
        _ => &[NodeRole::Value, NodeRole::Memory],
    }
}

macro_rules! atomic_operations {
    ($($op:ident $word:literal $values:literal [$($dtype:ident)*] [$($in_lds:ident)*] $doc:literal;)*) => {
        /// What an atomic update leaves in a memory.
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        pub enum AtomicOp {
            $(#[doc = $doc] $op,)*
        }

        impl AtomicOp {
            /// All of them, in the order of the table.
            pub const ALL: &'static [AtomicOp] = &[$(AtomicOp::$op),*];

            const ROWS: &'static [OpRow] = &[$(OpRow {
                word: $word,
                class: OpClass::Access,
                takes: Some(takes($values)),
                gives: NodeRole::Value,
                result: ResultType::OfOperand(0),
                purity: Purity::Effect,
                memory: MemoryEffect::Updates,
                unit: OpUnit::Memory,
                exactness: Exactness::Ordered,
                doc: $doc,
                ..ROW
            }),*];

            /// Its row.
            pub const fn row(self) -> &'static OpRow {
                &AtomicOp::ROWS[self as usize]
            }

            /// How many values it joins with each element: one, and of a comparison also the expected one, in
            /// front of it.
            pub const fn values(self) -> usize {
                match self {
                    $(AtomicOp::$op => $values,)*
                }
            }

            /// Dtypes of what it updates: those for which there is an instruction, of f64 from gfx90a on.
            /// Pairs of 16-bit floats are updated together (`*_pk_add_*`).
            pub fn dtypes(self, space: AddressSpace) -> impl Iterator<Item = DType> {
                let [both, in_lds]: [&[DType]; 2] = match self {
                    $(AtomicOp::$op => [&[$(DType::$dtype),*], &[$(DType::$in_lds),*]],)*
                };
                let in_lds = in_lds.iter().copied().filter(move |_| space == AddressSpace::Shared);
                both.iter().copied().chain(in_lds)
            }

            /// Whether there is an instruction for a dtype.
            pub fn admits(self, dtype: DType, space: AddressSpace) -> bool {
                self.dtypes(space).any(|known| known == dtype)
            }
        }
    };
}

atomic_operations! {
    Add "atomic_add" 1 [I32 F32 I64 F64 F16] [Bf16] "Adds each element to one of a memory, in one step, and gives what was there before.";
    Min "atomic_min" 1 [I32 I64 F64] [F32] "Leaves the smaller element in a memory, in one step, and gives what was there before.";
    Max "atomic_max" 1 [I32 I64 F64] [F32] "Leaves the larger element in a memory, in one step, and gives what was there before.";
    And "atomic_and" 1 [I32 I64] [] "Leaves the bits that are set in both in a memory, in one step, and gives what was there before.";
    Or "atomic_or" 1 [I32 I64] [] "Leaves the bits that are set in either in a memory, in one step, and gives what was there before.";
    Xor "atomic_xor" 1 [I32 I64] [] "Leaves the bits that differ in a memory, in one step, and gives what was there before.";
    Exchange "atomic_exchange" 1 [I32 F32 I64 F64] [] "Puts each element into a memory, in one step, and gives what was there before.";
    CompareExchange "atomic_compare_exchange" 2 [I32 I64] [] "Puts each element of the second value into a memory that holds that of the first, in one step, and gives what was there before.";
}
