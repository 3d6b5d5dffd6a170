//! Addresses of mapped accesses taken apart.
//!
//! In global memory, what is the same for the workgroup at all times goes into the base of a buffer
//! descriptor (64 bits), what depends on the iteration alone into the scalar offset, a constant into the
//! immediate, and the rest into the vector offset. In LDS there are a register and an immediate.

use super::AddressLayer;
use super::access::{PlannedPiece, SpaceLimits};
use super::descriptors::MAX_RECORDS;
use crate::codegen::lower::values::dependence::DependenceClass;
use crate::ir::expr::{Expr, ExprArena, ExprError};
use crate::passes::facts::LdsBuffer;
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;

/// The farthest that the base of a descriptor moves so that offsets are not negative.
pub(super) const MOST_BIAS: i64 = 1 << 28;

/// Bytes of the largest unit of offsets: the largest power of two that an instruction holds as a constant
/// (CDNA3 ISA guide, "Scalar ALU operands"). Two constants from the scalar unit are one too many.
const LARGEST_UNIT: i64 = 64;

/// An address taken apart.
pub(super) struct Split {
    /// The part that all lanes have in common at all times.
    pub(super) uniform: Expr,
    /// By how much the base is moved down so that no offset is negative.
    pub(super) bias: i64,
    /// The pieces, without conditions.
    pub(super) pieces: Vec<PlannedPiece>,
    /// The largest offset, if it is known.
    pub(super) top: Option<i64>,
}

impl Split {
    /// True if offsets may be beyond what a descriptor spans. The highest one is that of the first byte of an
    /// instruction's access.
    pub(super) fn may_go_beyond_descriptors(&self) -> bool {
        let highest = i64::from(MAX_RECORDS) - i64::from(MAX_ACCESS_BYTES);
        self.top.is_none_or(|top| top > highest)
    }

    /// Offsets from the beginning of the memory: not negative wherever the element is inside.
    fn flat(addresses: &[Expr]) -> Split {
        let pieces = addresses.iter().map(|&address| PlannedPiece::of_expressions(address, Expr::ZERO, 0));
        Split { uniform: Expr::ZERO, bias: 0, pieces: pieces.collect(), top: None }
    }
}

impl AddressLayer<'_> {
    /// The addresses taken apart: those of global memory, or of an LDS buffer.
    pub(super) fn split(
        &mut self,
        addresses: &[Expr],
        buffer: Option<&LdsBuffer>,
    ) -> Result<Split, ExprError> {
        match buffer {
            Some(buffer) => self.split_in_lds(addresses, buffer),
            None => Ok(self.shortest_split(addresses)?.unwrap_or_else(|| Split::flat(addresses))),
        }
    }

    /// Of the two forms of the addresses, with and without remainders, the one that divides less and can be
    /// taken apart.
    fn shortest_split(&mut self, addresses: &[Expr]) -> Result<Option<Split>, ExprError> {
        let cost = |arena: &ExprArena, e: Option<&Expr>| e.map_or(0, |&e| arena.division_cost(e));
        let before = cost(self.arena, addresses.first());
        if before > 0 {
            let shorter = addresses.iter().map(|&e| self.arena.without_remainders(e));
            // An expression that gets too large stays as it is.
            if let Ok(shorter) = shorter.collect::<Result<Vec<Expr>, ExprError>>()
                && cost(self.arena, shorter.first()) < before
                && let Some(split) = self.split_in_memory(&shorter)?
            {
                return Ok(Some(split));
            }
        }
        self.split_in_memory(addresses)
    }

    /// Offsets from what all lanes have in common in the first address. `None` if it is not certain that
    /// offsets are not negative.
    fn split_in_memory(&mut self, addresses: &[Expr]) -> Result<Option<Split>, ExprError> {
        let first = addresses.first().copied().unwrap_or(Expr::ZERO);
        let [uniform, _] =
            self.partition(first, |class| class == DependenceClass::default() && class.is_uniform())?;
        let range = self.arena.range(uniform);
        if self.denominator(first) != 1 || !range.at_least(i64::from(i32::MIN)) {
            return Ok(None);
        }
        let mut parts = Vec::with_capacity(addresses.len());
        let (mut lowest, mut least, mut most) = (0i64, 0i64, Some(0i64));
        let mut known = None;
        for &address in addresses {
            let rest = self.arena.sub(address, uniform)?;
            let Some((constant, moving)) = self.constant_and_rest(rest)? else { return Ok(None) };
            // Pieces mostly differ by constants alone.
            let [mut scalar, mut vector] = match known {
                Some((same, parts)) if same == moving => parts,
                _ => self.partition(moving, DependenceClass::is_uniform)?,
            };
            known = Some((moving, [scalar, vector]));
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
            let immediate = constant % i64::from(SpaceLimits::GLOBAL.immediates);
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
            pieces.push(PlannedPiece::of_expressions(vector, scalar, immediate as u32));
        }
        let bias = of_vector + of_constant;
        Ok(Some(Split { uniform, bias, pieces, top: most.map(|most| most + bias) }))
    }

    /// Offsets in units from what all lanes have in common in the first address, or from the beginning of the
    /// memory, and the bytes of a unit: the largest power of two that all addresses are multiples of but for
    /// what immediates hold. They have signs, and are right where the element is inside. `None` for addresses
    /// that are not sums of whole numbers.
    pub(super) fn split_in_units(&mut self, addresses: &[Expr]) -> Result<Option<(Split, u32)>, ExprError> {
        let first = addresses.first().copied().unwrap_or(Expr::ZERO);
        let mut unit = LARGEST_UNIT;
        for &address in addresses {
            let Some((_, moving)) = self.constant_and_rest(address)? else { return Ok(None) };
            while !self.arena.is_multiple_of(moving, unit) {
                if unit == 1 {
                    return Ok(None);
                }
                unit /= 2;
            }
        }
        let [mut uniform, _] =
            self.partition(first, |class| class == DependenceClass::default() && class.is_uniform())?;
        for &address in addresses {
            let rest = self.arena.sub(address, uniform)?;
            let (most, range) = (unit << 31, self.arena.range(rest));
            if !(range.at_least(-most) && range.at_most(most - 1)) {
                uniform = Expr::ZERO;
            }
        }
        let mut pieces = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let rest = self.arena.sub(address, uniform)?;
            let Some((constant, _)) = self.constant_and_rest(rest)? else { return Ok(None) };
            let immediate = constant.rem_euclid(i64::from(SpaceLimits::GLOBAL.immediates));
            let [bytes, beside] = [unit, immediate].map(|number| self.arena.int(number));
            let offset = self.arena.sub(rest, beside)?;
            let units = self.arena.floor_div(offset, bytes)?;
            pieces.push(PlannedPiece::of_expressions(units, Expr::ZERO, immediate as u32));
        }
        Ok(Some((Split { uniform, bias: 0, pieces, top: None }, unit as u32)))
    }

    /// A constant of an address goes into the immediate if the rest is certainly not negative without it.
    fn split_in_lds(&mut self, addresses: &[Expr], buffer: &LdsBuffer) -> Result<Split, ExprError> {
        let mut pieces = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let (rest, constant) = match self.constant_and_rest(address)? {
                Some((constant, rest))
                    if (0..i64::from(buffer.bytes)).contains(&constant)
                        && self.arena.range(rest).at_least(0) =>
                {
                    (rest, constant as u32)
                }
                _ => (address, 0),
            };
            pieces.push(PlannedPiece::of_expressions(rest, Expr::ZERO, buffer.offset + constant));
        }
        Ok(Split { uniform: Expr::ZERO, bias: 0, pieces, top: None })
    }

    /// The constant of a sum, if it is an integer, and what else is added.
    fn constant_and_rest(&mut self, e: Expr) -> Result<Option<(i64, Expr)>, ExprError> {
        let constant = self.arena.constant(e);
        if *constant.denom() != 1 {
            return Ok(None);
        }
        let whole = self.arena.int(*constant.numer());
        Ok(Some((*constant.numer(), self.arena.sub(e, whole)?)))
    }
}
