//! What authors state of symbols: bounds and divisors.
use super::arena::Atom;
use super::facts::SymbolFacts;
use super::{ExprArena, ExprError, Symbol, rational};
use std::ops::{Bound, RangeBounds};

impl ExprArena {
    /// Assumes bounds of a symbol. An open end keeps what is known of it (at first: not negative, no upper
    /// bound); `i64::MIN..` lifts the lower bound. If there are several assumptions, all of them hold.
    pub(crate) fn assume_range(
        &mut self,
        symbol: Symbol,
        range: impl RangeBounds<i64>,
    ) -> Result<(), ExprError> {
        let mut facts = self.symbol_facts.get(&symbol).copied().unwrap_or(SymbolFacts::DEFAULT);
        let lo = match range.start_bound() {
            Bound::Included(&lo) => Some(lo),
            Bound::Excluded(&lo) => Some(lo.checked_add(1).ok_or(ExprError::NoValue(symbol))?),
            Bound::Unbounded => None,
        };
        let hi = match range.end_bound() {
            Bound::Included(&hi) => Some(hi),
            Bound::Excluded(&hi) => Some(hi.checked_sub(1).ok_or(ExprError::NoValue(symbol))?),
            Bound::Unbounded => None,
        };
        if let Some(lo) = lo {
            let stated = (lo != i64::MIN).then_some(lo);
            if facts.lo_stated {
                facts.lo = facts.lo.max(stated);
            } else {
                if lo < 0 && self.find_atom(Atom::Symbol(symbol)).is_some() {
                    return Err(ExprError::LateAssumption(symbol));
                }
                facts.lo = stated;
            }
            facts.lo_stated = true;
        }
        if let Some(hi) = hi {
            facts.hi = Some(facts.hi.map_or(hi, |old| old.min(hi)));
        }
        self.assume(symbol, facts)
    }

    /// Assumes that a symbol is a multiple of `divisor`.
    pub fn assume_divisible(&mut self, symbol: Symbol, divisor: i64) -> Result<(), ExprError> {
        if divisor <= 0 {
            return Err(ExprError::BadDivisor(symbol, divisor));
        }
        let mut facts = self.symbol_facts.get(&symbol).copied().unwrap_or(SymbolFacts::DEFAULT);
        facts.divisor = rational::lcm(facts.divisor, divisor)?;
        self.assume(symbol, facts)
    }

    fn assume(&mut self, symbol: Symbol, mut facts: SymbolFacts) -> Result<(), ExprError> {
        let d = facts.divisor;
        // Bounds tighten to the nearest multiples.
        facts.lo = match facts.lo {
            Some(lo) => Some(match lo.rem_euclid(d) {
                0 => lo,
                past => lo.checked_add(d - past).ok_or(ExprError::NoValue(symbol))?,
            }),
            None => None,
        };
        facts.hi = facts.hi.map(|hi| hi.saturating_sub(hi.rem_euclid(d)));
        if let (Some(lo), Some(hi)) = (facts.lo, facts.hi)
            && lo > hi
        {
            return Err(ExprError::NoValue(symbol));
        }
        // What is known already changes nothing: all expressions would be looked at again.
        if self.symbol_facts.insert(symbol, facts) == Some(facts) {
            return Ok(());
        }
        if self.find_atom(Atom::Symbol(symbol)).is_some() {
            self.memo.clear();
            self.refresh_facts()?;
        }
        Ok(())
    }
}
