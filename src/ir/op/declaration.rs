//! Rows of what has no operands: arguments of the kernel, LDS buffers, and values that are what they are
//! wherever they stand.

use super::row::{NodeRole, OpClass, OpRow, OpUnit, Purity, ROW, ResultType};
use super::traits::KernelTraits;

const DECLARATION: OpRow = OpRow { gives: NodeRole::Memory, result: ResultType::Declared, ..ROW };

const CONSTANT: OpRow = OpRow {
    class: OpClass::Constant,
    gives: NodeRole::Value,
    result: ResultType::Declared,
    purity: Purity::Pure,
    ..ROW
};

pub(super) const MEMORY: OpRow =
    OpRow { word: "memory", purity: Purity::Effect, doc: "A kernel argument: a tensor.", ..DECLARATION };

/// Two scalars are two arguments, even if everything else about them is the same.
pub(super) const SCALAR: OpRow = OpRow {
    word: "scalar",
    gives: NodeRole::Value,
    purity: Purity::Effect,
    doc: "A kernel argument: a number.",
    ..DECLARATION
};

pub(super) const ALLOCATE: OpRow =
    OpRow { word: "allocate", doc: "An LDS buffer of the workgroup.", ..DECLARATION };

pub(super) const REGISTER: OpRow =
    OpRow { word: "register", doc: "A value whose elements are all the same constant.", ..CONSTANT };

pub(super) const SELF_INDEX: OpRow = OpRow {
    word: "self_index",
    unit: OpUnit::Vector,
    raises: KernelTraits::PLACES,
    doc: "The place of each element along a dimension, i32.",
    ..CONSTANT
};

pub(super) const SIZE: OpRow =
    OpRow { word: "size", doc: "The number of elements of a dimension, i32.", ..CONSTANT };

pub(super) const WORKGROUP_ID: OpRow = OpRow {
    word: "workgroup_id",
    doc: "The place of the workgroup along an axis of the grid, i32.",
    ..CONSTANT
};

pub(super) const ITERATION: OpRow = OpRow {
    word: "iteration",
    doc: "The number of the running iteration of the loop over a dimension, i32.",
    ..CONSTANT
};
