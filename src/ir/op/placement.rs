//! The rules of an operation for the passes that spread elements over the machine: whose layout it takes
//! ([`LayoutRule`], which `passes/layout` reads), and which nodes it becomes when each is made of pieces
//! ([`ExpansionRule`], which `passes/loops/expand` reads). Both follow from the family.

use super::scan::Scan;
use super::{AlongDimOp, CarriedOp, Op, OpFamily};
use crate::ir::layout::Dim;

/// The origin of the layout of a value, and what has to agree with it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum LayoutRule {
    /// It has none, and asks for none.
    None,
    /// Its users decide.
    OfUsers,
    /// It follows from nothing, and nothing follows from it.
    Own,
    /// All of its operands have it as well.
    WithOperands,
    /// The first so many operands have it as well. Others but the last, which is the memory, are spread as it
    /// is, and do not decide.
    WithValues(usize),
    /// A matrix instruction dictates those of its operands, and has the sum where it adds to it.
    OfInstruction,
    /// It is that of the first operand, in an order along this dimension that may matter.
    Along(Dim),
    /// The values that it carries keep theirs: those that it starts with and those that it hands on.
    Carries,
    /// It is that of what a region starts with and hands on.
    Carried(CarriedOp),
}

/// Which nodes one becomes, where each is of the size of a few machine instructions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ExpansionRule {
    /// Itself, for all pieces of what uses it.
    Shared,
    /// One, whose body and carried values are expanded.
    Region,
    /// Pieces of the values that a region carries.
    Carried(CarriedOp),
    /// One for each piece of its result, of the pieces of its operands at the same coordinates.
    Pieces,
    /// One for each piece of its result, of those of its operand whose elements this takes.
    Gathered,
    /// One for each piece of its result, of all those of its operand along a dimension.
    Folded(Dim),
    /// One for each piece of its result, each of the one before it along a dimension.
    Chained(Scan),
    /// One for each piece of its result and each step along the dimension that it sums over, chained by the
    /// sum.
    Steps,
}

impl Op {
    /// The origin of the layout of its result.
    pub(crate) fn layout_rule(self) -> LayoutRule {
        match self.family() {
            OpFamily::Declaration(_) | OpFamily::Order(_) => LayoutRule::None,
            OpFamily::Constant(_) => LayoutRule::OfUsers,
            // `sort_rows` has made other operations of sorts by then.
            OpFamily::Rearrangement(_) | OpFamily::AlongDim(AlongDimOp::Sort(_)) => LayoutRule::Own,
            OpFamily::ElementWise(_) => LayoutRule::WithOperands,
            OpFamily::Access(_) => LayoutRule::WithValues(self.values_in_front()),
            OpFamily::Contraction(_) => LayoutRule::OfInstruction,
            OpFamily::AlongDim(AlongDimOp::Reduce(reduction)) => LayoutRule::Along(reduction.dim),
            OpFamily::AlongDim(AlongDimOp::Scan(scan)) => LayoutRule::Along(scan.dim),
            OpFamily::Region(_) => LayoutRule::Carries,
            OpFamily::Carried(carried) => LayoutRule::Carried(carried),
        }
    }

    /// Which nodes it becomes.
    pub(crate) fn expansion_rule(self) -> ExpansionRule {
        match self.family() {
            OpFamily::Declaration(_) => ExpansionRule::Shared,
            OpFamily::Region(_) => ExpansionRule::Region,
            OpFamily::Carried(carried) => ExpansionRule::Carried(carried),
            OpFamily::Rearrangement(_) | OpFamily::AlongDim(AlongDimOp::Sort(_)) => ExpansionRule::Gathered,
            OpFamily::Contraction(_) => ExpansionRule::Steps,
            OpFamily::AlongDim(AlongDimOp::Reduce(reduction)) => ExpansionRule::Folded(reduction.dim),
            OpFamily::AlongDim(AlongDimOp::Scan(scan)) => ExpansionRule::Chained(scan),
            OpFamily::Constant(_) | OpFamily::Access(_) | OpFamily::ElementWise(_) | OpFamily::Order(_) => {
                ExpansionRule::Pieces
            }
        }
    }
}
