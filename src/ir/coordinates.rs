//! What an author writes as the coordinates of a mapped access.

use std::ops::{Add, Div, Mul, Rem, Sub};

use bevy_ecs::prelude::Entity;
use smallvec::SmallVec;

use super::expr::{SymExpr, SymOp, Symbol};
use super::mapping::{Mapping, operand_number, operand_symbol};

/// A value of a trace.
pub(super) type TracedValue = (Entity, u32);

/// A coordinate of an element in a memory: an expression over dimensions, sizes and i32 values. Symbols,
/// expressions over them ([`SymExpr`]), integers and values become one; an expression that begins with a
/// value is written `Coordinate::from(ids) * 16 + k % 16`. Division and modulo round towards minus infinity.
#[derive(Clone, Debug)]
pub struct Coordinate {
    /// Its values are [`operand_symbol`]s.
    expression: SymExpr,
    values: SmallVec<[TracedValue; 1]>,
}

impl<T: Into<SymExpr>> From<T> for Coordinate {
    fn from(expression: T) -> Coordinate {
        Coordinate { expression: expression.into(), values: SmallVec::new() }
    }
}

impl Coordinate {
    /// The element of an i32 value.
    pub(super) fn of_value(value: TracedValue) -> Coordinate {
        Coordinate { expression: operand_symbol(0).into(), values: SmallVec::from_elem(value, 1) }
    }

    /// The same with an i32 value in place of a symbol.
    pub(super) fn with_traced(mut self, symbol: Symbol, value: TracedValue) -> Coordinate {
        let number = self.values.iter().position(|known| *known == value).unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        let replace = |found: Symbol| (found == symbol).then(|| operand_symbol(number).into());
        Coordinate { expression: self.expression.replaced(&replace), values: self.values }
    }

    /// Its expression with the values numbered as in `values`, which get those that are missing.
    fn among(&self, values: &mut SmallVec<[TracedValue; 1]>) -> SymExpr {
        let numbers: SmallVec<[usize; 2]> = self
            .values
            .iter()
            .map(|value| {
                values.iter().position(|known| known == value).unwrap_or_else(|| {
                    values.push(*value);
                    values.len() - 1
                })
            })
            .collect();
        let renumber = |symbol: Symbol| {
            let number = numbers.get(operand_number(symbol)?)?;
            Some(operand_symbol(*number).into())
        };
        self.expression.replaced(&renumber)
    }

    /// The quotient rounded towards plus infinity.
    #[must_use]
    pub fn ceil_div(self, divisor: impl Into<Coordinate>) -> Coordinate {
        Coordinate::operation(SymOp::CeilDiv, self, divisor.into())
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(self, other: impl Into<Coordinate>) -> Coordinate {
        Coordinate::operation(SymOp::Min, self, other.into())
    }

    /// The larger of two.
    #[must_use]
    pub fn max(self, other: impl Into<Coordinate>) -> Coordinate {
        Coordinate::operation(SymOp::Max, self, other.into())
    }

    fn operation(op: SymOp, a: Coordinate, b: Coordinate) -> Coordinate {
        let mut values = SmallVec::new();
        let (a, b) = (a.among(&mut values), b.among(&mut values));
        Coordinate { expression: SymExpr::operation(op, a, b), values }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<R: Into<Coordinate>> $trait<R> for Coordinate {
            type Output = Coordinate;
            fn $method(self, other: R) -> Coordinate {
                Coordinate::operation(SymOp::$op, self, other.into())
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div FloorDiv;
    Rem rem Mod;
}

/// The coordinates of an element, one for each dimension of the memory: an array, or a tuple of whatever
/// becomes a [`Coordinate`].
pub trait IntoCoordinates {
    /// As a list.
    #[doc(hidden)]
    fn into_list(self) -> SmallVec<[Coordinate; 4]>;
}

impl<T: Into<Coordinate>, const N: usize> IntoCoordinates for [T; N] {
    fn into_list(self) -> SmallVec<[Coordinate; 4]> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<T: Into<Coordinate>> IntoCoordinates for Vec<T> {
    fn into_list(self) -> SmallVec<[Coordinate; 4]> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => {$(
        impl<$($name: Into<Coordinate>),+> IntoCoordinates for ($($name,)+) {
            #[allow(non_snake_case, reason = "each is called like its type")]
            fn into_list(self) -> SmallVec<[Coordinate; 4]> {
                let ($($name,)+) = self;
                [$($name.into()),+].into_iter().collect()
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
}

/// The mapping of coordinates, and the values that it uses.
pub(super) fn mapping_of(coordinates: impl IntoCoordinates) -> (Mapping, SmallVec<[TracedValue; 1]>) {
    let mut values = SmallVec::new();
    let list = coordinates.into_list();
    let mapping = Mapping(list.iter().map(|coordinate| coordinate.among(&mut values)).collect());
    (mapping, values)
}
