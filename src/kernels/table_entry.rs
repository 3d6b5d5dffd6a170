//! A row of the table of ready kernels, and what may be chosen about it.

use std::panic::Location as Caller;

use super::table_symbols::{Derived, SymbolDefault};
use super::{Attention, BackwardKernel, Gemm, Waves};
use crate::prelude::*;

/// The choices about a ready kernel in addition to its symbols; open ones take the kernel's default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choices {
    /// Element type of the inputs.
    pub dtype: Option<DType>,
    /// Element type of the output of a product.
    pub output: Option<DType>,
    /// Output tile of the matrix instruction, or the instruction.
    pub matrix: Option<MmaType>,
    /// Waves of a workgroup.
    pub waves: Option<Waves>,
}

/// A row of the table.
pub struct KernelEntry {
    /// Name in the program.
    pub name: &'static str,
    /// What it computes.
    pub description: &'static str,
    /// All symbols that must be bound.
    pub symbols: &'static [SymbolDefault],
    /// Element type of the inputs, unless chosen.
    pub dtype: DType,
    /// Waves of a workgroup, unless chosen; none where symbols say them.
    pub waves: Option<Waves>,
    /// Symbols whose defaults follow from those before them.
    pub(super) derived: &'static [Derived],
    pub(super) make: Make,
}

/// How a kernel is made from the dtype of its inputs, its matrix instruction or the shape of it, and its
/// waves.
pub(super) enum Make {
    /// As it is.
    Kernel(fn(DType, MmaType, Waves) -> Result<Kernel, Diagnostic>),
    /// A product, whose output may have a dtype of its own.
    Product(fn(DType, MmaType, Waves) -> Gemm),
    /// Attention, whose output may have a dtype of its own and whose waves follow from symbols.
    Attention(fn(Attention) -> Attention),
    /// A kernel of the backward pass of attention, likewise.
    Backward(fn(Attention) -> Attention, BackwardKernel),
}

impl KernelEntry {
    /// The values of all symbols where `given` has those that were chosen: open ones have their defaults,
    /// which may follow from the others, as the size of an output does.
    ///
    /// # Example
    /// ```
    /// use groundswell::kernels::find;
    /// let conv = find("conv2d").expect("a ready kernel");
    /// let values = conv.values(&|name| (name == "H").then_some(12));
    /// assert!(values.contains(&("HO", 10)));
    /// ```
    pub fn values(&self, given: &dyn Fn(&str) -> Option<i64>) -> Vec<(&'static str, i64)> {
        let mut values: Vec<(&'static str, i64)> = Vec::with_capacity(self.symbols.len());
        for symbol in self.symbols {
            let before = |name: &str| values.iter().find(|value| value.0 == name).map_or(0, |value| value.1);
            let derived = self.derived.iter().find(|derived| derived.0 == symbol.name);
            let default = derived.map_or(symbol.value, |(_, of)| of(&before));
            values.push((symbol.name, given(symbol.name).unwrap_or(default)));
        }
        values
    }

    /// Makes the kernel.
    ///
    /// # Errors
    /// Choices that do not fit the kernel.
    #[track_caller]
    pub fn kernel(&self, choices: &Choices) -> Result<Kernel, Diagnostic> {
        let asked = Location::from(Caller::caller());
        let dtype = choices.dtype.unwrap_or(self.dtype);
        if choices.waves.is_some() && self.waves.is_none() {
            let text = format!("the waves of {} are not chosen by their number", self.name);
            let help =
                "set WAVE_M and WAVE_N, the rows and columns of one wave, as far as the kernel has them";
            return Err(Diagnostic::invalid(text).help(help).at(Some(asked)));
        }
        let waves = choices.waves.or(self.waves).unwrap_or(Waves::new(1, 1));
        let matrix = choices.matrix.unwrap_or_default();
        let kernel = match (&self.make, choices.output) {
            (Make::Kernel(_), Some(output)) => {
                let text = format!("{} has no output whose dtype is chosen, as {output}", self.name);
                let help = "leave the dtype of the output out, or choose that of the inputs";
                return Err(Diagnostic::invalid(text).help(help).at(Some(asked)));
            }
            (Make::Kernel(make), None) => make(dtype, matrix, waves),
            (Make::Product(make), None) => make(dtype, matrix, waves).kernel(),
            (Make::Product(make), Some(output)) => make(dtype, matrix, waves).output(output).kernel(),
            (Make::Attention(make), output) => {
                let attention = make(Attention::any_shape().inputs(dtype));
                let attention = output.map_or(attention.clone(), |output| attention.output(output));
                choices.matrix.map_or(attention.clone(), |matrix| attention.matrix(matrix)).kernel()
            }
            (Make::Backward(make, kernel), output) => {
                let backward = make(Attention::any_shape().inputs(dtype)).backward();
                let backward = output.map_or(backward.clone(), |output| backward.output(output));
                let chosen = choices.matrix.map_or(backward.clone(), |matrix| backward.matrix(matrix));
                chosen.kernel(*kernel)
            }
        };
        kernel
            .map(|kernel| {
                let kernel = match (choices.waves, self.waves) {
                    (Some(waves), _) => waves.told_in(kernel, "chosen here", Some(&asked)),
                    (None, Some(waves)) => waves.told_in(kernel, "the default", None),
                    (None, None) => kernel,
                };
                kernel.told_at(Some(asked.clone()))
            })
            .map_err(|fault| fault.at(Some(asked)))
    }
}
