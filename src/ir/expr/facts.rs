//! What is known of an expression: bounds, and what it is a multiple of.
use super::rational::{self, Rational, integer};

/// Bounds of an integer, both included; `None` means no bound.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// Least value.
    pub lo: Option<i64>,
    /// Greatest value.
    pub hi: Option<i64>,
}

impl Range {
    /// No bounds at all.
    pub const ALL: Range = Range { lo: None, hi: None };

    /// Whether the value may be in it.
    #[cfg(test)]
    pub fn contains(self, value: i64) -> bool {
        self.lo.is_none_or(|lo| lo <= value) && self.hi.is_none_or(|hi| value <= hi)
    }

    /// Whether every value in it is at least `value`.
    pub(crate) fn at_least(self, value: i64) -> bool {
        self.lo.is_some_and(|lo| lo >= value)
    }

    /// Whether every value in it is at most `value`.
    pub fn at_most(self, value: i64) -> bool {
        self.hi.is_some_and(|hi| hi <= value)
    }
}

/// Bounds and content of a value. The value is an integer multiple of its content; a content of zero
/// belongs to the value zero.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub(super) range: Range,
    pub(super) content: Rational,
}

impl Facts {
    pub(super) fn of_constant(value: Rational) -> Facts {
        let lo = rational::floor(value);
        let hi = if *value.denom() == 1 { lo } else { lo + 1 };
        // The content of the least integer is not representable; 1 is a weaker truth.
        let content = rational::neg(value).map_or(integer(1), |negated| if lo < 0 { negated } else { value });
        Facts { range: Range { lo: Some(lo), hi: Some(hi) }, content }
    }

    pub(super) fn is_integer(self) -> bool {
        *self.content.denom() == 1
    }
}

/// What is assumed of a symbol.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct SymbolFacts {
    pub(super) lo: Option<i64>,
    pub(super) hi: Option<i64>,
    /// Whether `lo` was stated; until then it is the default of zero and a statement replaces it.
    pub(super) lo_stated: bool,
    pub(super) divisor: i64,
}

impl SymbolFacts {
    /// What is assumed of a symbol that nothing was said of.
    pub(super) const DEFAULT: SymbolFacts =
        SymbolFacts { lo: Some(0), hi: None, lo_stated: false, divisor: 1 };
}
