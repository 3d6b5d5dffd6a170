//! A row of the table of operations.

use super::traits::KernelTraits;
use crate::ir::types::DType;

/// One operation: everything about it except its meaning (`ir/interpreter`) and its instructions
/// (`codegen/lower`).
#[derive(Debug)]
pub struct OpRow {
    /// Its word in the text form and in messages.
    pub word: &'static str,
    /// How passes treat it.
    pub class: OpClass,
    /// Its operands in order; `None` for any number of values.
    pub takes: Option<&'static [NodeRole]>,
    /// What the nodes that use it see.
    pub gives: NodeRole,
    /// The dtypes that its operands may have.
    pub operands: DTypes,
    /// Where the type of its result comes from.
    pub result: ResultType,
    /// Whether it can be merged, moved and removed.
    pub purity: Purity,
    /// What it does to memory.
    pub memory: MemoryEffect,
    /// The unit that it occupies, as schedules see it.
    pub unit: OpUnit,
    /// Whether the bits of what it computes are the same everywhere.
    pub exactness: Exactness,
    /// The traits of every kernel that has it.
    pub(crate) raises: KernelTraits,
    /// What it does, in a line or two.
    pub doc: &'static str,
}

/// Operations that passes treat alike. A new class is a new case in every pass; a new operation of an
/// existing class is not.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OpClass {
    /// An argument of the kernel or an LDS buffer: it is not divided when its users are.
    Declaration,
    /// A value without operands.
    Constant,
    /// Reads or writes the memory that is its last operand.
    Access,
    /// An element of the result depends on the elements of the operands at the same coordinates: all have one
    /// layout.
    ElementWise,
    /// The elements of its operand in places of its own: its layout is none that follows from others.
    Rearrangement,
    /// Sums over the dimensions that its result lacks. Its layouts are those of matrix instructions.
    Contraction,
    /// Folds the elements along a dimension that its result lacks. The layout of its result is that of its
    /// operand without the dimension.
    Reduction,
    /// Sums up the elements along a dimension in front of each. The layout of its result is that of its
    /// operand.
    Scan,
    /// Holds nodes of its own, and carries values.
    Region,
    /// A value that a region carries, inside of it or after it.
    Carried,
    /// Affects order and time, and computes nothing.
    Order,
}

/// What the nodes that use a node see.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NodeRole {
    /// A value.
    Value,
    /// A kernel argument or an LDS buffer.
    Memory,
    /// A region that carries values.
    Loop,
    /// Nothing: it has no uses.
    Nothing,
}

impl NodeRole {
    /// As messages say it.
    pub fn name(self) -> &'static str {
        match self {
            NodeRole::Value => "a value",
            NodeRole::Memory => "a memory",
            NodeRole::Loop => "a loop",
            NodeRole::Nothing => "without a result",
        }
    }
}

/// Dtypes of the operands of element-wise operations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DTypes {
    /// Every dtype, or the operation has its own rule.
    Any,
    /// Every dtype but i1.
    Numbers,
    /// Floats.
    Floats,
    /// Floats but f64.
    FloatsToF32,
    /// Integers of every width.
    Integers,
    /// Integers and i1.
    Bits,
}

impl DTypes {
    /// Whether an operand may have the dtype.
    pub const fn admit(self, dtype: DType) -> bool {
        match self {
            DTypes::Any => true,
            DTypes::Numbers => !matches!(dtype, DType::I1),
            DTypes::Floats => dtype.is_float(),
            DTypes::FloatsToF32 => dtype.is_float() && !matches!(dtype, DType::F64),
            DTypes::Integers => !dtype.is_float() && !matches!(dtype, DType::I1),
            DTypes::Bits => !dtype.is_float(),
        }
    }

    /// What the list of all operations calls them.
    pub const fn name(self) -> &'static str {
        match self {
            DTypes::Any => "any",
            DTypes::Numbers => "numbers",
            DTypes::Floats => "floats",
            DTypes::FloatsToF32 => "floats to f32",
            DTypes::Integers => "integers",
            DTypes::Bits => "bits",
        }
    }

    /// What an author whose operand has the dtype, which is not admitted, can do.
    pub const fn help(self, dtype: DType) -> &'static str {
        match self {
            DTypes::FloatsToF32 if matches!(dtype, DType::F64) => {
                "cast to f32 first: this function has no form for f64"
            }
            DTypes::FloatsToF32 => "cast to a floating dtype first",
            DTypes::Numbers => "a condition is no number: `select` one where it holds, and another elsewhere",
            DTypes::Any | DTypes::Floats => "cast to a floating dtype first",
            DTypes::Integers | DTypes::Bits => "cast to an integer dtype first",
        }
    }
}

/// Whether an operation gives the same bits everywhere: in the interpreter, on every target, and however its
/// elements are spread over the machine. Without `fast_math`; which NaN is never said. Docs/numerics.md has
/// the bounds of the others.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Exactness {
    /// It does: where something is rounded, it is rounded in one way.
    Exact,
    /// Of integers it does. Floats are joined in an order that follows from tiles and target.
    Ordered,
    /// Of integers it does. Functions of floats are approximated.
    Bounded,
}

impl Exactness {
    /// Whether the bits of a result of this dtype are the same everywhere.
    pub const fn is_of(self, dtype: DType) -> bool {
        matches!(self, Exactness::Exact) || !dtype.is_float()
    }

    /// What the list of all operations calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Exactness::Exact => "exact",
            Exactness::Ordered => "by order",
            Exactness::Bounded => "bounded",
        }
    }
}

/// Where the type of a result comes from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ResultType {
    /// There is no result.
    None,
    /// It is written on the node.
    Declared,
    /// It is the type of the operand with this number.
    OfOperand(usize),
    /// The operands have one dtype, which is also the result's; one operand has all of the result's
    /// dimensions.
    Joined,
    /// As [`ResultType::Joined`], but the result is i1.
    Condition,
    /// As [`ResultType::Joined`] for all operands but the first, which is i1.
    Chosen,
    /// Dimensions of the operand, and the dtype that is written on the node, which is not i1.
    Converted(Sizes),
    /// The dtype of the operand, and the dimensions that are written on the node, which include the
    /// operand's.
    Repeated,
    /// The type of the operand without the dimension that is reduced.
    Reduced,
    /// The type of a value that the region starts with.
    Carried,
}

/// Which dtypes a conversion gives.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// Those of every size.
    AnySize,
    /// Those of the operand's size.
    SameSize,
}

impl Sizes {
    /// Whether a conversion can give `to` from `from`.
    pub const fn admit(self, from: DType, to: DType) -> bool {
        match (self, to) {
            (_, DType::I1) => false,
            (Sizes::AnySize, _) => true,
            // Two in a byte.
            (Sizes::SameSize, DType::F4E2M1) if matches!(from, DType::I8) => true,
            (Sizes::SameSize, DType::I8) if matches!(from, DType::F4E2M1) => true,
            (Sizes::SameSize, _) => from.bits() == to.bits(),
        }
    }
}

/// Whether an operation can be merged, moved and removed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Purity {
    /// It has no effect, and its result depends on its operands alone.
    Pure,
    /// A read: as good as pure where nothing writes the memory.
    OfMemory,
    /// Neither, but it may be removed if it has no uses.
    Unmoved,
    /// It stays where it is.
    Effect,
}

/// What an operation does to the memories among its operands, the last of which is the one that it writes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MemoryEffect {
    /// Nothing.
    None,
    /// Reads it.
    Reads,
    /// Writes it.
    Writes,
    /// Reads and writes it in one step.
    Updates,
    /// Reads the first and writes the last.
    Copies,
    /// No access to memory moves across it.
    Fence,
}

/// The unit that an operation occupies.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OpUnit {
    /// Nothing.
    None,
    /// The path to the memory that it touches.
    Memory,
    /// The vector unit.
    Vector,
    /// The matrix unit.
    Matrix,
}

impl MemoryEffect {
    /// True for what writes a memory.
    pub const fn writes(self) -> bool {
        match self {
            MemoryEffect::Writes | MemoryEffect::Updates | MemoryEffect::Copies => true,
            MemoryEffect::None | MemoryEffect::Reads | MemoryEffect::Fence => false,
        }
    }
}

/// The values that most rows have.
pub(super) const ROW: OpRow = OpRow {
    word: "",
    class: OpClass::Declaration,
    takes: Some(&[]),
    gives: NodeRole::Nothing,
    operands: DTypes::Any,
    result: ResultType::None,
    purity: Purity::Unmoved,
    memory: MemoryEffect::None,
    unit: OpUnit::None,
    exactness: Exactness::Exact,
    raises: KernelTraits::empty(),
    doc: "",
};

impl OpRow {
    /// Whether the parts of the row agree with each other.
    pub(super) const fn is_consistent(&self) -> bool {
        let gives_value = matches!(self.gives, NodeRole::Value);
        let memory = !matches!(self.memory, MemoryEffect::None);
        match self.class {
            OpClass::Declaration => matches!(self.result, ResultType::Declared) && !memory,
            OpClass::Constant => gives_value && matches!(self.result, ResultType::Declared) && !memory,
            OpClass::Access => {
                memory && matches!(self.unit, OpUnit::Memory) && !matches!(self.purity, Purity::Pure)
            }
            OpClass::ElementWise
            | OpClass::Rearrangement
            | OpClass::Contraction
            | OpClass::Reduction
            | OpClass::Scan => {
                gives_value
                    && matches!(self.purity, Purity::Pure)
                    && !memory
                    && !matches!(self.unit, OpUnit::Memory)
            }
            OpClass::Region => matches!(self.gives, NodeRole::Loop) && self.takes.is_none() && !memory,
            OpClass::Carried => gives_value && matches!(self.result, ResultType::Carried) && !memory,
            OpClass::Order => matches!((self.gives, self.purity), (NodeRole::Nothing, Purity::Effect)),
        }
    }
}
