//! Rows of atomic updates: what joins an element of a memory with an element of a value in one step.

use super::row::{DTypes, MemoryEffect, NodeRole, OpClass, OpRow, OpUnit, Purity, ResultType};
use crate::ir::types::DType;

macro_rules! atomic_operations {
    ($($op:ident $word:literal [$($dtype:ident)*] $doc:literal;)*) => {
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
                takes: Some(&[NodeRole::Value, NodeRole::Memory]),
                gives: NodeRole::Value,
                operands: DTypes::Any,
                result: ResultType::OfOperand(0),
                purity: Purity::Effect,
                memory: MemoryEffect::Updates,
                unit: OpUnit::Memory,
                doc: $doc,
            }),*];

            /// Its row.
            pub const fn row(self) -> &'static OpRow {
                &AtomicOp::ROWS[self as usize]
            }

            /// Dtypes of the memories that it updates: those for which there is an instruction, of f64 from
            /// gfx90a on.
            pub const fn dtypes(self) -> &'static [DType] {
                match self {
                    $(AtomicOp::$op => &[$(DType::$dtype),*],)*
                }
            }
        }
    };
}

atomic_operations! {
    Add "atomic_add" [I32 F32 I64 F64] "Adds each element to one of a memory, in one step, and gives what was there before.";
    Min "atomic_min" [I32 I64 F64] "Leaves the smaller element in a memory, in one step, and gives what was there before.";
    Max "atomic_max" [I32 I64 F64] "Leaves the larger element in a memory, in one step, and gives what was there before.";
    And "atomic_and" [I32 I64] "Leaves the bits that are set in both in a memory, in one step, and gives what was there before.";
    Or "atomic_or" [I32 I64] "Leaves the bits that are set in either in a memory, in one step, and gives what was there before.";
    Xor "atomic_xor" [I32 I64] "Leaves the bits that differ in a memory, in one step, and gives what was there before.";
    Exchange "atomic_exchange" [I32 F32 I64 F64] "Puts each element into a memory, in one step, and gives what was there before.";
}
