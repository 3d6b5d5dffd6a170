//! The families of operations. Operations of one family take the same kind of operands and are printed,
//! typed, executed and lowered alike: whoever has to tell operations apart asks for the family, and hands on
//! the operation as one of it to a function that knows this family alone.

use super::{
    AtomicOp, BinaryOp, Control, Conversion, Decoding, MmaChoice, Op, Predicate, Reduction, Scan, Sort,
    TernaryOp, UnaryOp,
};
use crate::ir::constant::Constant;
use crate::ir::expr::Symbol;
use crate::ir::layout::Dim;
use crate::ir::types::DType;

/// Makes the enum of families, an enum of the operations of each, and the function from one to the other: for
/// each family its variant, its enum, what that derives beside the usual, and its operations with what they
/// say.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident $ops:ident $(: $derived:ident)? {
        $($op:ident $(($part:ident: $ty:ty))?),* $(,)?
    })*) => {
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

        impl Op {
            /// The operation as one of its family.
            #[inline]
            pub(crate) const fn family(self) -> OpFamily {
                match self {
                    $($(Op::$op $(($part))? => OpFamily::$family($ops::$op $(($part))?),)*)*
                }
            }
        }
    };
}

families! {
    /// Arguments of the kernel, and LDS buffers.
    Declaration DeclarationOp { Memory, Scalar, Allocate }
    /// Values without operands.
    Constant ConstantOp {
        Register(constant: Constant),
        SelfIndex(dim: Dim),
        Size(dim: Dim),
        WorkgroupId(axis: u32),
        Iteration(dim: Dim),
    }
    /// Operations that read or write a memory.
    Access AccessOp { Read, Write, Atomic(op: AtomicOp), GlobalToShared }
    /// Operations that make an element of those at the same coordinates.
    ElementWise ElementWiseOp: Hash {
        Unary(op: UnaryOp),
        Binary(op: BinaryOp),
        Ternary(op: TernaryOp),
        Compare(predicate: Predicate),
        Select,
        Convert(conversion: Conversion),
        Decode(decoding: Decoding),
        Encode(dtype: DType),
        Broadcast,
    }
    /// Operations that leave elements as they are, and move them to other places.
    Rearrangement RearrangementOp { Rearrange }
    /// Products of matrices.
    Contraction ContractionOp { Mma(choice: MmaChoice), ScaledMma(choice: MmaChoice) }
    /// Operations that run along a dimension.
    AlongDim AlongDimOp: Hash { Reduce(reduction: Reduction), Scan(scan: Scan), Sort(sort: Sort) }
    /// Operations that hold nodes of their own.
    Region RegionOp { Iterate(dim: Dim), Conditional, While, Pipeline(dim: Dim) }
    /// Values that a region carries, inside of it or after it.
    Carried CarriedOp { IterArg(number: u32), LoopResult(number: u32) }
    /// Operations that affect order and time, and compute nothing.
    Order OrderOp { Barrier, SetSymbol(symbol: Symbol), Control(control: Control) }
}

impl ContractionOp {
    /// Its choice of a matrix instruction.
    pub(crate) const fn choice(self) -> MmaChoice {
        match self {
            ContractionOp::Mma(choice) | ContractionOp::ScaledMma(choice) => choice,
        }
    }
}
