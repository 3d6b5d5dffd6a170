//! Reductions that are made of other operations: places of extrema, largest elements, conditions on all
//! elements, means.

use bevy_ecs::prelude::Entity;

use super::Deriver;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::types::DType;

/// A reduction that is made of others, along any dimensions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::ir) enum DerivedReduction {
    ArgMax,
    ArgMin,
    Any,
    All,
    Mean,
}

impl DerivedReduction {
    /// Each with its word in the text form.
    pub(in crate::ir) const WORDS: &[(&str, DerivedReduction)] = &[
        ("argmax", DerivedReduction::ArgMax),
        ("argmin", DerivedReduction::ArgMin),
        ("any", DerivedReduction::Any),
        ("all", DerivedReduction::All),
        ("mean", DerivedReduction::Mean),
    ];
}

impl Deriver<'_> {
    /// A reduction along dimensions.
    pub(in crate::ir) fn reduction(&mut self, op: DerivedReduction, value: Entity, dims: &[Dim]) -> Entity {
        match op {
            DerivedReduction::ArgMax => self.extremum_place(ReductionOp::Max, value, dims),
            DerivedReduction::ArgMin => self.extremum_place(ReductionOp::Min, value, dims),
            DerivedReduction::Any => self.holds(ReductionOp::Max, value, dims),
            DerivedReduction::All => self.holds(ReductionOp::Min, value, dims),
            DerivedReduction::Mean => {
                let sum = self.reduce(ReductionOp::Sum, value, dims);
                let mut count = None;
                for &dim in dims {
                    let size = self.size(dim);
                    let size = self.cast(size, DType::F32);
                    count = Some(match count {
                        None => size,
                        Some(product) => self.binary(BinaryOp::Mul, product, size),
                    });
                }
                match count {
                    Some(count) => self.binary(BinaryOp::Div, sum, count),
                    None => sum,
                }
            }
        }
    }

    /// The first place of the elements that are the extremum, or 0.
    fn extremum_place(&mut self, op: ReductionOp, value: Entity, dims: &[Dim]) -> Entity {
        let extremum = self.reduce(op, value, dims);
        let mut place = None;
        for (at, &dim) in dims.iter().enumerate() {
            let own = self.self_index(dim);
            place = Some(match place {
                None => own,
                Some(before) => {
                    let size = self.size(dim);
                    let rows = self.binary(BinaryOp::Mul, before, size);
                    let rows = self.broadcast(rows, &dims[..=at]);
                    self.binary(BinaryOp::Add, rows, own)
                }
            });
        }
        let place = place.unwrap_or_else(|| self.integer(0));
        let equal = self.compare(Predicate::Eq, value, extremum);
        let none = self.integer(i32::MAX.into());
        let places = self.select(equal, place, none);
        let first = self.reduce(ReductionOp::Min, places, dims);
        self.place_or_zero(first)
    }

    /// A place, or 0 for the largest number, which is that of nothing.
    fn place_or_zero(&mut self, place: Entity) -> Entity {
        let none = self.integer(i32::MAX.into());
        let missing = self.compare(Predicate::Eq, place, none);
        let zero = self.integer(0);
        self.select(missing, zero, place)
    }

    /// The largest elements along a dimension with their places.
    pub(in crate::ir) fn topk(&mut self, value: Entity, dim: Dim, count: u32) -> Vec<(Entity, Entity)> {
        let mut left = value;
        let mut found = Vec::new();
        for number in 0..count {
            let value = self.reduce(ReductionOp::Max, left, &[dim]);
            let equal = self.compare(Predicate::Eq, left, value);
            let own = self.self_index(dim);
            let none = self.integer(i32::MAX.into());
            let places = self.select(equal, own, none);
            let first = self.reduce(ReductionOp::Min, places, &[dim]);
            let place = self.place_or_zero(first);
            // The maximum may be another zero than the element at the place; the sum has one sign for all.
            let zero = self.number(Constant::Float(0.0));
            found.push((self.binary(BinaryOp::Add, value, zero), place));
            if number + 1 < count {
                // Extrema pass over NaNs, so this takes the element out, and leaves infinities in.
                let taken = self.compare(Predicate::Eq, places, first);
                let nothing = self.number(Constant::Float(f64::NAN));
                left = self.select(taken, nothing, left);
            }
        }
        found
    }

    /// Whether a condition holds for any element, or for all.
    fn holds(&mut self, op: ReductionOp, condition: Entity, dims: &[Dim]) -> Entity {
        let (one, zero) = (self.integer(1), self.integer(0));
        let numbers = self.select(condition, one, zero);
        let folded = self.reduce(op, numbers, dims);
        let zero = self.integer(0);
        self.compare(Predicate::Ne, folded, zero)
    }
}
