//! What the rules of all families share: what they read, what is wrong with types, and how messages show it.

use smallvec::SmallVec;

use crate::ir::diagnostic::Diagnostic;
use crate::ir::facts::TurnedUnits;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::types::{AddressSpace, DType};

/// Whose node it is: some things only passes make, and some only they may leave.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum WrittenBy {
    /// An author's, before any pass.
    Author,
    /// A node as passes leave it: factors may be packed, and regions carry conditions.
    Passes,
}

/// The facts about the kernel that rules need.
#[derive(Copy, Clone)]
pub(crate) struct TypeRules<'a> {
    /// Its dimensions.
    pub dims: &'a DimTable,
    /// Whose nodes they are.
    pub written_by: WrittenBy,
}

/// An operation with the types that its rule is about.
pub(crate) struct TypedNode<'a> {
    /// Its operation.
    pub op: Op,
    /// The type that is written on the node.
    pub stated: &'a ValueType,
    /// The types of its operands; of a carried value, that of its initial one.
    pub operands: SmallVec<[&'a ValueType; 5]>,
    /// Facts about an access beside its operands.
    pub access: TypedAccess<'a>,
}

/// Facts, beside its operands, on which the type of an access depends.
#[derive(Copy, Clone, Default)]
pub(crate) struct TypedAccess<'a> {
    /// Its coordinates, if they are not those of its value.
    pub mapping: Option<&'a Mapping>,
    /// How it turns units, if it does.
    pub turned: Option<&'a TurnedUnits>,
    /// True if it accesses an LDS buffer.
    pub in_lds: bool,
}

impl TypedAccess<'_> {
    pub(super) fn space(&self) -> AddressSpace {
        if self.in_lds { AddressSpace::Shared } else { AddressSpace::Global }
    }
}

/// The part of a rule that types break.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum BrokenRule {
    /// The number or the kind of operands, which is no matter of types.
    Operands,
    /// The dtypes of operands.
    Dtypes,
    /// The dimensions of operands.
    Dims,
    /// The scales of a product.
    Scales,
}

/// A fault of types.
#[derive(Debug)]
pub(crate) struct TypeFault {
    /// The part of the rule.
    pub broken: BrokenRule,
    /// As the author is told.
    pub diagnostic: Diagnostic,
}

impl TypeFault {
    pub(super) fn new(broken: BrokenRule, text: String, help: impl Into<String>) -> TypeFault {
        TypeFault { broken, diagnostic: Diagnostic::invalid(text).help(help) }
    }

    pub(super) fn dtypes(text: String, help: impl Into<String>) -> TypeFault {
        TypeFault::new(BrokenRule::Dtypes, text, help)
    }

    pub(super) fn dims(text: String, help: impl Into<String>) -> TypeFault {
        TypeFault::new(BrokenRule::Dims, text, help)
    }

    pub(super) fn operands() -> TypeFault {
        let diagnostic = Diagnostic::bug("an operation with operands that it does not take");
        TypeFault { broken: BrokenRule::Operands, diagnostic }
    }
}

impl TypeRules<'_> {
    /// Rejects a constant that its dtype does not hold.
    pub(crate) fn holds(&self, dtype: DType, constant: Constant) -> Result<(), TypeFault> {
        let fault = constant.bits(dtype).err();
        fault.map_or(Ok(()), |diagnostic| Err(TypeFault { broken: BrokenRule::Dtypes, diagnostic }))
    }

    /// A type as messages show it.
    pub(crate) fn show(&self, ty: &ValueType) -> String {
        let names: Vec<_> = ty.dims.iter().map(|&d| self.dims.name(d)).collect();
        format!("[{}] {}", names.join(", "), ty.dtype.map_or("?", DType::name))
    }

    /// How a value gets dimensions that it lacks.
    pub(super) fn widen(&self, dims: &Dims) -> String {
        let names: Vec<_> = dims.iter().map(|&d| self.dims.name(d)).collect();
        let names = names.join(", ");
        format!("repeat it with `broadcast %x [{names}]` (in Rust, `broadcast([..])`)")
    }

    /// True if a dimension of an operand is one of the result, or follows one of them: its elements are
    /// repeated then.
    pub(super) fn repeats(&self, dim: Dim, result: &Dims) -> bool {
        result.contains(&dim) || self.dims.scaled_from(dim).is_some_and(|(base, _)| result.contains(&base))
    }

    /// Rejects an operand whose dtype the row of the operation does not admit.
    pub(super) fn admitted(&self, op: Op, operand: &ValueType) -> Result<(), TypeFault> {
        let row = op.row();
        let Some(dtype) = operand.dtype else {
            let text = format!("{} of a constant without a dtype", row.word);
            return Err(TypeFault::dtypes(text, "give it one: `register [] f32 1.0`"));
        };
        if row.operands.admit(dtype) {
            return Ok(());
        }
        let text = format!("`{}` does not take {}", row.word, self.show(operand));
        Err(TypeFault::dtypes(text, row.operands.help(dtype)))
    }
}

/// True for the same dimensions in any order.
pub(crate) fn same_dims(x: &Dims, y: &Dims) -> bool {
    x.len() == y.len() && x.iter().all(|dim| y.contains(dim))
}
