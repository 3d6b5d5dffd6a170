//! The families of operations. Operations of one family take the same kind of operands and are printed,
//! typed, executed and lowered alike: whoever has to tell operations apart asks for the family, and hands on
//! the operation as one of it to a function that knows this family alone.

/// Makes the enum of operations, that of families, an enum of the operations of each, and the functions from
/// one to the other: for each family its variant, its enum, what that derives beside the usual, and its
/// operations with what they say. Each has a row of its own (`=`), or one of a table of such operations
/// (`:`).
macro_rules! operations {
    ($($(#[$doc:meta])* $family:ident $ops:ident $(: $derived:ident)? {
        $($(#[$op_doc:meta])* $op:ident $(($part:ident: $ty:ty))? $(= $row:path)? $(: $table:expr)?;)*
    })*) => {
        /// The operation of a node. Operands are in [`Operands`](super::node::Operands), in the order given
        /// here.
        #[derive(Component, Copy, Clone, PartialEq, Debug)]
        pub enum Op {
            $($($(#[$op_doc])* $op $(($ty))?,)*)*
        }

        /// An operation as one of its family.
        #[derive(Copy, Clone, PartialEq, Debug)]
        pub(crate) enum OpFamily {
            $($(#[$doc])* $family($ops),)*
        }

        $(
            $(#[$doc])*
            #[derive(Copy, Clone, PartialEq, Debug $(, $derived)?)]
            pub(crate) enum $ops {
                $($op $(($ty))?,)*
            }
        )*

        /// Rows of the operations that are in no table of their own.
        const OTHERS: &[&OpRow] = &[$($($(&$row,)?)*)*];

        impl Op {
            /// The operation as one of its family.
            #[inline]
            pub(crate) const fn family(self) -> OpFamily {
                match self {
                    $($(Op::$op $(($part))? => OpFamily::$family($ops::$op $(($part))?),)*)*
                }
            }

            /// Everything that is known of the operation.
            #[expect(unused_variables, reason = "what an operation says is in its row for some alone")]
            pub const fn row(&self) -> &'static OpRow {
                match self {
                    $($(Op::$op $(($part))? => { $(&$row)? $($table.row())? })*)*
                }
            }
        }
    };
}
pub(super) use operations;
