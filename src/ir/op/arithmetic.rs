//! Rows of element-wise operations. Each table is a macro that hands its rows to another one: here they
//! become an enum and its table, in `ir/builder.rs` the author's methods. A row with a missing part does not
//! compile, and neither does one without a meaning (`ir/interpreter/arithmetic.rs`) or without instructions
//! (`codegen/lower/arithmetic/opcodes.rs`).

use super::row::{DTypes, Exactness, NodeRole, OpClass, OpRow, OpUnit, Purity, ROW, ResultType, Sizes};

/// Operations on one value: variant, word, method of `Value` (`operator` for one that Rust has an operator
/// for), dtypes of the operand, exactness, doc line.
macro_rules! unary_operations {
    ($then:ident) => {
        $then! {
            Neg "neg" operator Numbers Exact "The number with the other sign. Integers wrap.";
            Abs "abs" abs Numbers Exact "Absolute value, per element. Integers wrap.";
            Exp "exp" exp FloatsToF32 Bounded "e to the power of each element (floats).";
            Exp2 "exp2" exp2 FloatsToF32 Bounded "Two to the power of each element (floats).";
            Log2 "log2" log2 FloatsToF32 Bounded "Logarithm to base two of each element (floats).";
            Sqrt "sqrt" sqrt Floats Bounded "Square root of each element (floats).";
            Reciprocal "reciprocal" reciprocal Floats Exact "One over each element (floats).";
            Tanh "tanh" tanh FloatsToF32 Bounded "Hyperbolic tangent of each element (floats).";
            Floor "floor" floor Floats Exact "The largest whole number that is not above the element (floats).";
            Ceil "ceil" ceil Floats Exact "The smallest whole number that is not below the element (floats).";
            Trunc "trunc" trunc Floats Exact "The whole part of the element, rounded towards zero (floats).";
            RoundEven "round_even" round_even Floats Exact "The nearest whole number, of two the even one (floats).";
            Round "round" round Floats Exact "The nearest whole number, of two the one further from zero (floats).";
            Rsqrt "rsqrt" rsqrt FloatsToF32 Bounded "One over the square root of each element (floats).";
            Cbrt "cbrt" cbrt FloatsToF32 Bounded "Cube root of each element (floats).";
            Log "log" log FloatsToF32 Bounded "Natural logarithm of each element (floats).";
            Log10 "log10" log10 FloatsToF32 Bounded "Logarithm to base ten of each element (floats).";
            Log1p "log1p" log1p FloatsToF32 Bounded "Natural logarithm of one plus each element (floats), close to zero, too.";
            Expm1 "expm1" expm1 FloatsToF32 Bounded "e to the power of each element, less one (floats), close to zero, too.";
            Sin "sin" sin FloatsToF32 Bounded "Sine of each element, in radians (floats).";
            Cos "cos" cos FloatsToF32 Bounded "Cosine of each element, in radians (floats).";
            Sinh "sinh" sinh FloatsToF32 Bounded "Hyperbolic sine of each element (floats).";
            Cosh "cosh" cosh FloatsToF32 Bounded "Hyperbolic cosine of each element (floats).";
            Erf "erf" erf FloatsToF32 Bounded "The error function of each element (floats).";
            Sigmoid "sigmoid" sigmoid FloatsToF32 Bounded "`1 / (1 + e^-x)` of each element (floats).";
            Silu "silu" silu FloatsToF32 Bounded "Each element times its sigmoid (floats).";
            Gelu "gelu" gelu FloatsToF32 Bounded "`x (1 + erf(x / sqrt 2)) / 2` of each element (floats).";
            GeluTanh "gelu_tanh" gelu_tanh FloatsToF32 Bounded "`x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³))) / 2` of each element (floats).";
            Not "not" operator Bits Exact "Every bit the other way round; a condition holds where it did not.";
        }
    };
}
pub(in crate::ir) use unary_operations;

/// Operations on two values of the same dtype, in the same form.
macro_rules! binary_operations {
    ($then:ident) => {
        $then! {
            Add "add" operator Numbers Exact "Sum. Integers wrap.";
            Sub "sub" operator Numbers Exact "Difference. Integers wrap.";
            Mul "mul" operator Numbers Exact "Product. Integers wrap.";
            Div "div" operator Numbers Exact "Quotient. That of integers is truncated, and zero where the divisor is zero.";
            Min "min" minimum Numbers Exact "The smaller of each pair of elements; for floats the other one if one is NaN, and -0 is less than +0.";
            Max "max" maximum Numbers Exact "The larger of each pair of elements; for floats the other one if one is NaN, and -0 is less than +0.";
            FloorDiv "floor_div" floor_div Integers Exact "Quotient rounded down (integers); zero where the divisor is zero.";
            Rem "rem" operator Integers Exact "What `floor_div` leaves (integers): it has the divisor's sign, and is the dividend where the divisor is zero.";
            Pow "pow" pow FloatsToF32 Bounded "The first to the power of the second (floats).";
            Atan2 "atan2" atan2 FloatsToF32 Bounded "The angle of the point whose height is the first and whose distance to the right the second (floats).";
            And "and" operator Bits Exact "The bits that both have; a condition holds where both do.";
            Or "or" operator Bits Exact "The bits that one of them has; a condition holds where one of them does.";
            Xor "xor" operator Bits Exact "The bits in which they differ; a condition holds where one of them does and the other does not.";
            ShiftLeft "shift_left" operator Integers Exact "Bits moved up, zeros below (integers). The count is taken modulo the width.";
            ShiftRight "shift_right" operator Integers Exact "Bits moved down, copies of the sign above (integers). The count is taken modulo the width.";
        }
    };
}
pub(in crate::ir) use binary_operations;

/// Operations on three values of the same dtype, in the same form.
macro_rules! ternary_operations {
    ($then:ident) => {
        $then! {
            Fma "fma" fma Floats Exact "The value times the first, plus the second, rounded once (floats; bf16 and 8-bit ones in f32).";
        }
    };
}
pub(in crate::ir) use ternary_operations;

/// Comparisons, whose word follows that of the operation: variant, word, method of `Value`, doc line.
macro_rules! predicates {
    ($then:ident) => {
        $then! {
            Eq "eq" equal "i1: equal.";
            Ne "ne" not_equal "i1: not equal.";
            Lt "lt" less "i1: less than.";
            Le "le" less_equal "i1: less than or equal.";
            Gt "gt" greater "i1: greater than.";
            Ge "ge" greater_equal "i1: greater than or equal.";
        }
    };
}
pub(in crate::ir) use predicates;

/// Changes of the dtype to the one that the node states: variant, word, method of `Value`, dtypes of the
/// operand, sizes that the result may have, exactness, doc line.
macro_rules! conversions {
    ($then:ident) => {
        $then! {
            Cast "cast" cast Any AnySize Exact "Numeric conversion: to integers truncating and saturating, to floats rounding to nearest even.";
            Bitcast "bitcast" bitcast Numbers SameSize Exact "The same bits seen as a dtype of the same size; i8 along `K/2` is f4e2m1 along K.";
        }
    };
}
pub(in crate::ir) use conversions;

/// What all element-wise rows have in common.
pub(super) const ELEMENT_WISE: OpRow = OpRow {
    class: OpClass::ElementWise,
    takes: None,
    gives: NodeRole::Value,
    result: ResultType::Joined,
    purity: Purity::Pure,
    unit: OpUnit::Vector,
    ..ROW
};

pub(super) const COMPARE: OpRow = OpRow {
    word: "compare",
    takes: Some(&[NodeRole::Value, NodeRole::Value]),
    operands: DTypes::Numbers,
    result: ResultType::Condition,
    doc: "Comparison of two values of one dtype, giving i1.",
    ..ELEMENT_WISE
};

pub(super) const SELECT: OpRow = OpRow {
    word: "select",
    takes: Some(&[NodeRole::Value, NodeRole::Value, NodeRole::Value]),
    operands: DTypes::Numbers,
    result: ResultType::Chosen,
    doc: "The second operand where the first one, which is i1, holds, and the third elsewhere.",
    ..ELEMENT_WISE
};

pub(super) const BROADCAST: OpRow = OpRow {
    word: "broadcast",
    takes: Some(&[NodeRole::Value]),
    result: ResultType::Repeated,
    doc: "The value with the stated dimensions, repeated along those that it lacks.",
    ..ELEMENT_WISE
};

pub(super) const REARRANGE: OpRow = OpRow {
    word: "rearrange",
    class: OpClass::Rearrangement,
    result: ResultType::OfOperand(0),
    doc: "The value in other registers or lanes.",
    ..ELEMENT_WISE
};

/// Makes the enum of a family of operations, with a row for each: what is not said is as for element-wise
/// operations.
macro_rules! family {
    ($(#[$about:meta])* $name:ident: $($op:ident $doc:literal { $($field:ident: $value:expr,)* })*) => {
        $(#[$about])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $(#[doc = $doc] $op,)*
        }

        impl $name {
            /// All of them, in the order of the table.
            pub const ALL: &'static [$name] = &[$($name::$op),*];

            const ROWS: &'static [OpRow] = &[$(OpRow { $($field: $value,)* doc: $doc, ..ELEMENT_WISE }),*];

            /// Its row.
            pub const fn row(self) -> &'static OpRow {
                &$name::ROWS[self as usize]
            }
        }
    };
}
pub(super) use family;

macro_rules! unary_family {
    ($($op:ident $word:literal $method:ident $dtypes:ident $exactness:ident $doc:literal;)*) => {
        family! {
            /// Arithmetic on one value. docs/numerics.md says how exact it is.
            UnaryOp: $($op $doc {
                word: $word,
                takes: Some(&[NodeRole::Value]),
                operands: DTypes::$dtypes,
                exactness: Exactness::$exactness,
                result: ResultType::OfOperand(0),
            })*
        }
    };
}
unary_operations!(unary_family);

macro_rules! binary_family {
    ($($op:ident $word:literal $method:ident $dtypes:ident $exactness:ident $doc:literal;)*) => {
        family! {
            /// Arithmetic on two values of one dtype; dims broadcast.
            BinaryOp: $($op $doc {
                word: $word,
                takes: Some(&[NodeRole::Value, NodeRole::Value]),
                operands: DTypes::$dtypes,
                exactness: Exactness::$exactness,
                result: ResultType::Joined,
            })*
        }
    };
}
binary_operations!(binary_family);

macro_rules! ternary_family {
    ($($op:ident $word:literal $method:ident $dtypes:ident $exactness:ident $doc:literal;)*) => {
        family! {
            /// Arithmetic on three values of one dtype; dims broadcast.
            TernaryOp: $($op $doc {
                word: $word,
                takes: Some(&[NodeRole::Value, NodeRole::Value, NodeRole::Value]),
                operands: DTypes::$dtypes,
                exactness: Exactness::$exactness,
                result: ResultType::Joined,
            })*
        }
    };
}
ternary_operations!(ternary_family);

macro_rules! conversion_family {
    ($($op:ident $word:literal $method:ident $dtypes:ident $sizes:ident $exactness:ident $doc:literal;)*) => {
        family! {
            /// Changes of the dtype to that of the node's type, which is not i1.
            Conversion: $($op $doc {
                word: $word,
                takes: Some(&[NodeRole::Value]),
                operands: DTypes::$dtypes,
                exactness: Exactness::$exactness,
                result: ResultType::Converted(Sizes::$sizes),
            })*
        }
    };
}
conversions!(conversion_family);

macro_rules! predicate_family {
    ($($op:ident $word:literal $method:ident $doc:literal;)*) => {
        /// Comparison predicates: signed for integers, ordered for floats (false when an operand is NaN,
        /// except `Ne`, which is true).
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Predicate {
            $(#[doc = $doc] $op,)*
        }

        impl Predicate {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Predicate] = &[$(Predicate::$op),*];

            const WORDS: &'static [&'static str] = &[$($word),*];

            /// Its word in the text form.
            pub const fn word(self) -> &'static str {
                Predicate::WORDS[self as usize]
            }
        }
    };
}
predicates!(predicate_family);

/// Rows whose parts contradict each other do not compile.
const _: () = {
    let tables = [UnaryOp::ROWS, BinaryOp::ROWS, TernaryOp::ROWS, Conversion::ROWS];
    let mut table = 0;
    while table < tables.len() {
        let mut at = 0;
        while at < tables[table].len() {
            assert!(tables[table][at].is_consistent());
            at += 1;
        }
        table += 1;
    }
};
