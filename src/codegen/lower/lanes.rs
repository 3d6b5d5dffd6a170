//! Values that differ from lane to lane: digits of the lane number, coordinates, and masks.

use smallvec::SmallVec;

use super::Lowering;
use super::emitter::{MOST_DIVIDED, Scalar, magic_divisor};
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::target::LANES;
use crate::ir::layout::{Dim, Layout, Mode, Source};

impl Lowering<'_> {
    /// Lane and wave number from the work-item id. Workgroups are one-dimensional, so the id is in bits 9:0
    /// of v0 (AMDGPUUsage, "Initial kernel execution state": packed work-item ids on gfx90a and later).
    pub(super) fn thread_position(&mut self, packed: Operand) {
        let thread = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VAndB32, thread, &[Scalar::Const(0x3ff), Scalar::Reg(packed)]);
        if self.geometry.wave_count() == 1 {
            self.lane = thread;
            return;
        }
        let wave = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VLshrrevB32, wave, &[Scalar::Const(6), Scalar::Reg(thread)]);
        let number = self.emitter.sgpr(1);
        self.emitter.op(Opcode::VReadfirstlaneB32, &[number, wave]);
        self.wave = Scalar::Reg(number);
        let lane = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VAndB32, lane, &[Scalar::Const(63), Scalar::Reg(thread)]);
        self.lane = lane;
    }

    /// `(lane / weight) mod extent` in a VGPR.
    pub(super) fn lane_digit(&mut self, weight: u32, extent: u32) -> Operand {
        if weight == 1 && extent == LANES {
            return self.lane;
        }
        if let Some(&(_, _, digit)) = self.digits.iter().find(|d| (d.0, d.1) == (weight, extent)) {
            return digit;
        }
        let (lane, digit) = (Scalar::Reg(self.lane), self.emitter.vgpr(1));
        let top = weight * extent == LANES;
        if weight.is_power_of_two() && extent.is_power_of_two() {
            let (shift, bits) = (i64::from(weight.ilog2()), i64::from(extent.ilog2()));
            if weight == 1 {
                self.emitter.with(Opcode::VAndB32, digit, &[Scalar::Const(i64::from(extent) - 1), lane]);
            } else if top {
                self.emitter.with(Opcode::VLshrrevB32, digit, &[Scalar::Const(shift), lane]);
            } else {
                let field = [lane, Scalar::Const(shift), Scalar::Const(bits)];
                self.emitter.with(Opcode::VBfeU32, digit, &field);
            }
        } else {
            let quotient = self.vector_divide(self.lane, weight);
            if top {
                self.digits.push((weight, extent, quotient));
                return quotient;
            }
            let rounds = self.vector_divide(quotient, extent);
            let whole = self.scaled(rounds, Scalar::Const(i64::from(extent)));
            self.emitter.op(Opcode::VSubU32, &[digit, quotient, whole]);
        }
        self.digits.push((weight, extent, digit));
        digit
    }

    /// `value / divisor` of a small vector value.
    fn vector_divide(&mut self, value: Operand, divisor: u32) -> Operand {
        if divisor == 1 {
            return value;
        }
        let quotient = self.emitter.vgpr(1);
        if divisor.is_power_of_two() {
            let shift = Scalar::Const(i64::from(divisor.ilog2()));
            self.emitter.with(Opcode::VLshrrevB32, quotient, &[shift, Scalar::Reg(value)]);
            return quotient;
        }
        let (magic, shift) = magic_divisor(divisor, MOST_DIVIDED);
        let magic = self.constant_sgpr(magic);
        let high = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VMulHiU32, &[high, magic, value]);
        self.emitter.with(
            Opcode::VLshrrevB32,
            quotient,
            &[Scalar::Const(i64::from(shift)), Scalar::Reg(high)],
        );
        quotient
    }

    /// A constant in an SGPR, for instructions that take no literal.
    pub(super) fn constant_sgpr(&mut self, bits: u32) -> Operand {
        if let Some(&(_, register)) = self.constants.iter().chain(&self.constant_pairs).find(|c| c.0 == bits)
        {
            return register;
        }
        let register = self.emitter.sgpr(1);
        self.emitter.with(Opcode::SMovB32, register, &[Scalar::Const(i64::from(bits))]);
        self.constants.push((bits, register));
        register
    }

    /// `value * factor`, low 32 bits, in a VGPR.
    pub(super) fn scaled(&mut self, value: Operand, factor: Scalar) -> Operand {
        let product = match factor {
            Scalar::Const(1) => return value,
            Scalar::Const(_) | Scalar::Reg(_) => self.emitter.vgpr(1),
        };
        match factor {
            Scalar::Const(f) if f > 0 && (f as u64).is_power_of_two() => {
                let shift = Scalar::Const(i64::from(f.trailing_zeros()));
                self.emitter.with(Opcode::VLshlrevB32, product, &[shift, Scalar::Reg(value)]);
            }
            Scalar::Const(f) => {
                let factor = match Operand::inline_integer(f as i32) {
                    Some(inline) => inline,
                    None => self.constant_sgpr(f as u32),
                };
                self.emitter.op(Opcode::VMulLoU32, &[product, value, factor]);
            }
            Scalar::Reg(factor) => self.emitter.op(Opcode::VMulLoU32, &[product, value, factor]),
        }
        product
    }

    /// `sum + value * factor`, in a VGPR.
    pub(super) fn add_scaled(&mut self, sum: Option<Operand>, value: Operand, factor: Scalar) -> Operand {
        let Some(sum) = sum else { return self.scaled(value, factor) };
        let total = self.emitter.vgpr(1);
        match factor {
            Scalar::Const(f) if f > 0 && (f as u64).is_power_of_two() => {
                let shift = Scalar::Const(i64::from(f.trailing_zeros()));
                let parts = [Scalar::Reg(value), shift, Scalar::Reg(sum)];
                self.emitter.with(Opcode::VLshlAddU32, total, &parts);
            }
            Scalar::Const(_) | Scalar::Reg(_) => {
                let product = self.scaled(value, factor);
                self.emitter.op(Opcode::VAddU32, &[total, product, sum]);
            }
        }
        total
    }

    /// `vector + scalar` in a VGPR; the vector may be missing (zero).
    pub(super) fn add_uniform(&mut self, vector: Option<Operand>, scalar: Scalar) -> Operand {
        match (vector, scalar) {
            (Some(vector), Scalar::Const(0)) => vector,
            (Some(vector), _) => {
                let sum = self.emitter.vgpr(1);
                self.emitter.with(Opcode::VAddU32, sum, &[scalar, Scalar::Reg(vector)]);
                sum
            }
            (None, _) => {
                let copy = self.emitter.vgpr(1);
                self.emitter.with(Opcode::VMovB32, copy, &[scalar]);
                copy
            }
        }
    }

    /// Digits of the lane number in `layout` along `dim`: digit and stride.
    pub(super) fn lane_parts(&mut self, layout: &Layout, dim: Dim) -> SmallVec<[(Operand, u32); 4]> {
        let mut parts = SmallVec::new();
        let mut weight = 1;
        for mode in layout.of_source(Source::Lane) {
            if mode.dim == Some(dim) && mode.extent > 1 {
                parts.push((self.lane_digit(weight, mode.extent), mode.stride));
            }
            weight *= mode.extent;
        }
        parts
    }

    /// The part of the coordinate along `dim` that the wave number contributes.
    pub(super) fn wave_part(&mut self, layout: &Layout, dim: Dim) -> Scalar {
        self.wave_digits(layout, |mode| (mode.dim == Some(dim)).then_some(mode.stride))
    }

    /// The sum of those digits of the wave number that have a weight, times that.
    fn wave_digits(&mut self, layout: &Layout, weighs: impl Fn(&Mode) -> Option<u32>) -> Scalar {
        let mut sum = Scalar::ZERO;
        let mut weight = 1;
        let total = layout.extent(Source::Wave);
        for mode in layout.of_source(Source::Wave) {
            if let Some(stride) = weighs(mode).filter(|_| mode.extent > 1) {
                let quotient = self.emitter.divide(self.wave, weight);
                let digit = if weight * mode.extent == total {
                    quotient
                } else if mode.extent.is_power_of_two() {
                    let mask = Scalar::Const(i64::from(mode.extent) - 1);
                    self.emitter.binary(Opcode::SAndB32, quotient, mask)
                } else {
                    let rounds = self.emitter.divide(quotient, mode.extent);
                    let whole = self.emitter.mul(rounds, Scalar::Const(i64::from(mode.extent)));
                    self.emitter.sub(quotient, whole)
                };
                let part = self.emitter.mul(digit, Scalar::Const(i64::from(stride)));
                sum = self.emitter.add(sum, part);
            }
            weight *= mode.extent;
        }
        sum
    }

    /// Zero in the first of the lanes and waves that hold the same elements, and something positive in the
    /// others; `None` if all hold different ones.
    pub(super) fn copy_digit(&mut self, layout: &Layout) -> Option<Operand> {
        let (mut sum, mut weight) = (None, 1);
        for mode in layout.of_source(Source::Lane) {
            if mode.dim.is_none() && mode.extent > 1 {
                let digit = self.lane_digit(weight, mode.extent);
                sum = Some(self.add_scaled(sum, digit, Scalar::Const(1)));
            }
            weight *= mode.extent;
        }
        match self.wave_digits(layout, |mode| mode.dim.is_none().then_some(1)) {
            Scalar::Const(0) => sum,
            wave @ (Scalar::Const(_) | Scalar::Reg(_)) => Some(self.add_uniform(sum, wave)),
        }
    }

    /// The part of the coordinate along `dim` that depends on lane and wave, in a VGPR; `None` where it is
    /// zero.
    pub(super) fn vector_coordinate(&mut self, layout: &Layout, dim: Dim) -> Option<Operand> {
        let mut sum = None;
        for (digit, stride) in self.lane_parts(layout, dim) {
            sum = Some(self.add_scaled(sum, digit, Scalar::Const(i64::from(stride))));
        }
        match self.wave_part(layout, dim) {
            Scalar::Const(0) => sum,
            wave @ (Scalar::Const(_) | Scalar::Reg(_)) => Some(self.add_uniform(sum, wave)),
        }
    }

    /// A mask (SGPR pair) of the lanes where `coordinate < limit`, signed; a missing coordinate is zero.
    pub(super) fn below(&mut self, coordinate: Option<Operand>, limit: Scalar) -> Operand {
        let mask = self.emitter.sgpr(2);
        let coordinate = self.add_uniform(coordinate, Scalar::ZERO);
        let limit = match limit {
            Scalar::Const(value) => match Operand::inline_integer(value as i32) {
                Some(inline) => inline,
                None => self.constant_sgpr(value as u32),
            },
            Scalar::Reg(register) => register,
        };
        self.emitter.op(Opcode::VCmpGtI32, &[mask, limit, coordinate]);
        mask
    }
}
