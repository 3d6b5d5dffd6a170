//! The builder of the backward pass: what an author says, and the kernels that come of it.

use std::panic::Location as Caller;

use super::super::choices::{Attention, AttentionLayout};
use super::choices::AttentionBackward;
use super::kernels::BackwardKernel;
use super::tiles::GradientTile;
use super::{bias, checks, keys, queries, rows, sinks};
use crate::prelude::*;

impl Attention {
    /// The backward pass of this attention, with everything that has been chosen but the tile.
    #[must_use]
    #[track_caller]
    pub fn backward(&self) -> AttentionBackward {
        let mut attention = self.clone();
        attention.spread.tile = None;
        AttentionBackward { attention, output: None, tile: None, caller: Caller::caller() }
    }
}

impl AttentionBackward {
    /// Element type of dQ, dK and dV; without this that of the inputs.
    #[must_use]
    pub fn output(mut self, dtype: DType) -> AttentionBackward {
        self.output = Some(dtype);
        self
    }

    /// Rows of a workgroup and of a wave, and rows per iteration.
    #[must_use]
    #[track_caller]
    pub fn tile(mut self, tile: GradientTile) -> AttentionBackward {
        self.tile = Some((tile, Caller::caller()));
        self
    }

    /// Output tile of the matrix instruction, or the instruction.
    #[must_use]
    pub fn matrix(mut self, matrix: impl Into<MmaType>) -> AttentionBackward {
        self.attention.spread.matrix = Some(matrix.into());
        self
    }

    /// How loops are scheduled; without this by what takes the fewest clocks.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> AttentionBackward {
        self.attention.spread.schedule = Some(schedule);
        self
    }

    /// Tiles and matrix instructions, unless they are given, are those that suit this chip
    /// ([`AttentionBackward::compile`] says so itself).
    #[must_use]
    pub fn chosen_for(mut self, chip: impl Into<TargetId>) -> AttentionBackward {
        self.attention.spread.chip = chip.into().target();
        self
    }

    /// The kernels that give all gradients on a chip, in an order in which they may be launched. Sums of dK
    /// and dV together do not leave room in the registers for a wave to have 32 keys of large heads: these
    /// get a kernel for each, although both then compute the scores.
    pub fn kernels(&self, chip: impl Into<TargetId>) -> Vec<BackwardKernel> {
        let chip = chip.into().target();
        let mut kernels = vec![BackwardKernel::Rows, BackwardKernel::Queries];
        match self.attention.heads.largest_dim() {
            ..=64 => kernels.push(BackwardKernel::KeysAndValues),
            _ if chip == Target::GFX906 => kernels.push(BackwardKernel::KeysAndValues),
            _ => kernels.extend([BackwardKernel::Keys, BackwardKernel::Values]),
        }
        kernels.extend(self.attention.softmax.sinks.map(|_| BackwardKernel::Sinks));
        kernels.extend(self.attention.bias_step().map(|_| BackwardKernel::Bias));
        kernels
    }

    /// Options that bind the heads and the tile of a kernel, and the sizes that are known, with the schedule.
    /// They still have to bind the others, or to leave them open.
    pub fn options(&self, kernel: BackwardKernel, target: impl Into<TargetId>) -> Options {
        let options = self.attention.options_of_sizes(target.into());
        let by = self.tile.map_or(SetBy::Default, |(_, caller)| SetBy::Call(caller));
        let bound = self.choice(kernel).map(|(tile, _)| tile.bound(kernel));
        let bound = bound.into_iter().flatten();
        bound.fold(options, |options, (name, size)| options.set_by(name, size, by.clone()))
    }

    /// Compiles a kernel with tile, matrix instruction and schedule that suit the chip. Sizes that
    /// [`Attention::sizes`] does not say are left open until the launch.
    ///
    /// # Errors
    /// Those of [`AttentionBackward::kernel`], and of its compilation.
    pub fn compile(
        &self,
        kernel: BackwardKernel,
        target: impl Into<TargetId>,
    ) -> Result<Executable, Diagnostic> {
        let target = target.into();
        let backward = self.clone().chosen_for(target);
        let traced = backward.kernel(kernel)?;
        let options = backward.options(kernel, target);
        let open = backward.open_sizes(kernel).into_iter();
        traced.compile(&open.fold(options, Options::dynamic))
    }

    /// Symbols that [`AttentionBackward::compile`] leaves open.
    fn open_sizes(&self, kernel: BackwardKernel) -> Vec<Symbol> {
        let mut open = Vec::new();
        let of_rows = matches!(kernel, BackwardKernel::Rows | BackwardKernel::Sinks);
        let is_packed = self.attention.tensors.layout == AttentionLayout::Packed;
        let is_open = self.attention.sizes.is_none();
        open.extend(is_packed.then(|| Symbol::new("TOTAL_M")));
        open.extend((is_packed && !of_rows).then(|| Symbol::new("TOTAL_N")));
        open.extend((is_packed && !of_rows && is_open).then(|| Symbol::new("ENDS")));
        if is_open && !(is_packed && of_rows) {
            open.extend(symbols(["B", "M"]));
            open.extend((!of_rows).then(|| Symbol::new("N")));
        }
        if self.attention.tensors.strides.is_some() {
            for (memory, row) in kernel.tensors() {
                open.extend(["B", "H", row].map(|along| Symbol::new(&format!("{memory}_{along}"))));
            }
        }
        open
    }

    /// Traces a kernel. Sizes and tile are symbols ([`AttentionBackward::options`] binds them).
    ///
    /// # Errors
    /// All that the forward pass refuses, 8-bit inputs, turned queries, functions of scores without a
    /// derivative, gradients of sinks or of a bias that there are not, or that of a bias of packed sequences.
    pub fn kernel(&self, kernel: BackwardKernel) -> Result<Kernel, Diagnostic> {
        let asked = Some(Location::from(self.caller));
        let traced = checks::check(self, kernel).and_then(|()| match kernel {
            BackwardKernel::Rows => rows::trace(&self.attention),
            BackwardKernel::Queries => queries::trace(self),
            BackwardKernel::Sinks => sinks::trace(&self.attention),
            BackwardKernel::Bias => match self.attention.bias_step() {
                Some(step) => bias::trace(self, step),
                None => Err(checks::lacks("bias")),
            },
            _ => keys::trace(self, kernel),
        });
        match traced {
            Ok(kernel) => Ok(kernel.told_at(asked)),
            Err(fault) if fault.location.is_none() => Err(fault.at(asked)),
            Err(fault) => Err(fault),
        }
    }
}
