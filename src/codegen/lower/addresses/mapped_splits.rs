//! Addresses of mapped accesses taken apart.
//!
//! In global memory, what is the same for the workgroup at all times goes into the base of a buffer
//! descriptor (64 bits), what depends on the iteration alone into the scalar offset, a constant into the
//! immediate, and the rest into the vector offset. In LDS there are a register and an immediate.

use super::AddressLayer;
use super::access::MappedPiece;
use super::global::IMMEDIATE_BYTES;
use crate::codegen::lower::values::dependence::DependenceClass;
use crate::ir::expr::{Expr, ExprArena, ExprError};
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;

/// The farthest that the base of a descriptor moves so that offsets are not negative.
pub(super) const MOST_BIAS: i64 = 1 << 28;

/// An address taken apart.
pub(super) struct Split {
    /// The part that all lanes have in common at all times.
    pub(super) uniform: Expr,
    /// By how much the base is moved down so that no offset is negative.
    pub(super) bias: i64,
    /// The pieces, without conditions.
    pub(super) pieces: Vec<MappedPiece>,
    /// The largest offset, if it is known.
    pub(super) top: Option<i64>,
}

impl Split {
    /// Offsets from the beginning of the memory: not negative wherever the element is inside.
    pub(super) fn flat(addresses: &[Expr]) -> Split {
        let pieces = addresses.iter().map(|&address| MappedPiece::new(address, Expr::ZERO, 0)).collect();
        Split { uniform: Expr::ZERO, bias: 0, pieces, top: None }
    }
}

impl AddressLayer<'_> {
    /// Of the two forms of the addresses, with and without remainders, the one that divides less and can be
    /// taken apart.
    pub(super) fn shortest_split(&mut self, addresses: &[Expr]) -> Result<Option<Split>, ExprError> {
        let cost = |arena: &ExprArena, e: Option<&Expr>| e.map_or(0, |&e| arena.division_cost(e));
        let before = cost(self.arena, addresses.first());
        if before > 0 {
            let shorter = addresses.iter().map(|&e| self.arena.without_remainders(e));
            // An expression that gets too large stays as it is.
            if let Ok(shorter) = shorter.collect::<Result<Vec<Expr>, ExprError>>()
                && cost(self.arena, shorter.first()) < before
                && let Some(split) = self.split(&shorter)?
            {
                return Ok(Some(split));
            }
        }
        self.split(addresses)
    }

    /// Offsets from what all lanes have in common in the first address. `None` if it is not certain that
    /// offsets are not negative.
    fn split(&mut self, addresses: &[Expr]) -> Result<Option<Split>, ExprError> {
        let first = addresses.first().copied().unwrap_or(Expr::ZERO);
        let [uniform, _] =
            self.partition(first, |class| class == DependenceClass::default() && class.is_uniform())?;
        let range = self.arena.range(uniform);
        if self.denominator(first) != 1 || !range.at_least(i64::from(i32::MIN)) {
            return Ok(None);
        }
        let mut parts = Vec::with_capacity(addresses.len());
        let (mut lowest, mut least, mut most) = (0i64, 0i64, Some(0i64));
        for &address in addresses {
            let rest = self.arena.sub(address, uniform)?;
            let constant = self.arena.constant(rest);
            if *constant.denom() != 1 {
                return Ok(None);
            }
            let constant = *constant.numer();
            let whole = self.arena.int(constant);
            let moving = self.arena.sub(rest, whole)?;
            let [mut scalar, mut vector] = self.partition(moving, DependenceClass::is_uniform)?;
            if !self.arena.range(scalar).at_least(0) {
                vector = moving;
                scalar = Expr::ZERO;
            }
            let Some(low) = self.arena.range(vector).lo else { return Ok(None) };
            let high = self.arena.range(rest).hi;
            most = most.zip(high).map(|(most, high)| most.max(high));
            lowest = lowest.min(low);
            least = least.min(constant);
            parts.push((vector, scalar, constant));
        }
        // A whole number of the widest access, so that nothing becomes less aligned.
        let unit = i64::from(MAX_ACCESS_BYTES);
        let up = |value: i64| (value.saturating_neg().max(0) + unit - 1) / unit * unit;
        if lowest < -MOST_BIAS || least < -MOST_BIAS || (range.lo.is_none_or(|lo| lo < 0) && most.is_none()) {
            return Ok(None);
        }
        let (of_vector, of_constant) = (up(lowest), up(least));
        let mut pieces = Vec::with_capacity(parts.len());
        for (vector, scalar, constant) in parts {
            let constant = constant + of_constant;
            let immediate = constant % i64::from(IMMEDIATE_BYTES);
            let bias = self.arena.int(of_vector);
            let mut vector = self.arena.add(vector, bias)?;
            let far = self.arena.int(constant - immediate);
            // What changes with the iteration is then the same for all pieces.
            let scalar = if scalar == Expr::ZERO {
                far
            } else {
                vector = self.arena.add(vector, far)?;
                scalar
            };
            pieces.push(MappedPiece::new(vector, scalar, immediate as u32));
        }
        let bias = of_vector + of_constant;
        Ok(Some(Split { uniform, bias, pieces, top: most.map(|most| most + bias) }))
    }

    /// What of an address in a buffer of so many bytes goes into a register, and what is added to it by the
    /// instruction: a constant, if the rest is certainly not negative without it.
    pub(super) fn split_lds(&mut self, address: Expr, bytes: u32) -> Result<(Expr, u32), ExprError> {
        let constant = self.arena.constant(address);
        let fits = *constant.denom() == 1 && (0..i64::from(bytes)).contains(constant.numer());
        if fits {
            let whole = self.arena.int(*constant.numer());
            let rest = self.arena.sub(address, whole)?;
            if self.arena.range(rest).at_least(0) {
                return Ok((rest, *constant.numer() as u32));
            }
        }
        Ok((address, 0))
    }
}
