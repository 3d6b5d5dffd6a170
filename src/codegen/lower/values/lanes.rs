//! Values that differ from lane to lane: digits of the lane number, coordinates, and masks.

use smallvec::SmallVec;

use super::ValueLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::target::LANES;
use crate::ir::layout::{Dim, Layout, Mode, Source};

impl ValueLayer<'_> {
    /// Lane and wave number from the work-item id. Workgroups are one-dimensional, so the id is in bits 9:0
    /// of v0 (AMDGPUUsage, "Initial kernel execution state": packed work-item ids on gfx90a and later).
    pub(crate) fn thread_position(&mut self, packed: Operand) {
        let thread = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VAndB32, thread, &[Scalar::Const(0x3ff), Scalar::Reg(packed)]);
        if self.kernel.geometry.wave_count() == 1 {
            self.thread.lane = thread;
            return;
        }
        let wave = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VLshrrevB32, wave, &[Scalar::Const(6), Scalar::Reg(thread)]);
        let number = self.emitter.sgpr(1);
        self.emitter.op(Opcode::VReadfirstlaneB32, &[number, wave]);
        self.thread.wave = Scalar::Reg(number);
        let lane = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VAndB32, lane, &[Scalar::Const(63), Scalar::Reg(thread)]);
        self.thread.lane = lane;
    }

    /// `(lane / weight) mod extent` in a VGPR.
    pub(crate) fn lane_digit(&mut self, weight: u32, extent: u32) -> Operand {
        if weight == 1 && extent == LANES {
            return self.thread.lane;
        }
        if let Some(&(_, _, digit)) = self.digits.iter().find(|d| (d.0, d.1) == (weight, extent)) {
            return digit;
        }
        let (lane, digit) = (Scalar::Reg(self.thread.lane), self.emitter.vgpr(1));
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
            let number = self.thread.lane;
            let quotient = self.vector_divide(number, weight);
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

    /// Digits of the lane number in `layout` along `dim`: digit and stride.
    pub(crate) fn lane_parts(&mut self, layout: &Layout, dim: Dim) -> SmallVec<[(Operand, u32); 4]> {
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
    pub(crate) fn wave_part(&mut self, layout: &Layout, dim: Dim) -> Scalar {
        self.wave_digits(layout, |mode| (mode.dim == Some(dim)).then_some(mode.stride))
    }

    /// The sum of those digits of the wave number that have a weight, times that.
    fn wave_digits(&mut self, layout: &Layout, weighs: impl Fn(&Mode) -> Option<u32>) -> Scalar {
        let mut sum = Scalar::ZERO;
        let mut weight = 1;
        let total = layout.extent(Source::Wave);
        for mode in layout.of_source(Source::Wave) {
            if let Some(stride) = weighs(mode).filter(|_| mode.extent > 1) {
                let wave = self.thread.wave;
                let quotient = self.emitter.divide(wave, weight);
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
    pub(crate) fn copy_digit(&mut self, layout: &Layout) -> Option<Operand> {
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
    pub(crate) fn vector_coordinate(&mut self, layout: &Layout, dim: Dim) -> Option<Operand> {
        let mut sum = None;
        for (digit, stride) in self.lane_parts(layout, dim) {
            sum = Some(self.add_scaled(sum, digit, Scalar::Const(i64::from(stride))));
        }
        match self.wave_part(layout, dim) {
            Scalar::Const(0) => sum,
            wave @ (Scalar::Const(_) | Scalar::Reg(_)) => Some(self.add_uniform(sum, wave)),
        }
    }
}
