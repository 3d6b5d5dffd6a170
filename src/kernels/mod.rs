//! Ready kernels, written with the public API only: any author could have written them.
//!
//! - [`copy`](copy()): B = A, [`copy_strided`]: of parts of larger matrices
//! - [`transpose`](transpose()): B = Aᵀ
//! - [`permute`](permute()): the dimensions of a tensor in another order
//! - [`Elementwise`]: functions of each element, and of what its row or column has
//! - [`Rope`]: rotary position embedding
//! - [`gather`](gather()), [`scatter_add`]: rows of a table, chosen by a list of numbers
//! - [`histogram`]: how often each number occurs
//! - [`Conv2d`]: convolution of images, channels last or first, with stride, padding, dilation
//!   and groups, or a filter for each channel
//! - [`softmax`](softmax()), [`log_softmax`], [`Norm`]: functions of whole rows, which stay in registers
//! - [`cumsum()`], [`cumsum_exclusive`]: running sums of rows
//! - [`row_sum`], [`row_max`], [`row_argmax`], [`column_sum`]: one number for each row or column
//! - [`Gemm`]: products of matrices, alone or over a batch, with an epilogue
//! - [`split_k`](split_k()), [`split_k_atomic`]: products whose sums are shared among workgroups
//! - [`stream_k`](stream_k()): products whose work is shared evenly by a fixed number of workgroups
//! - [`grouped_gemm`](grouped_gemm()): rows that are multiplied by the matrices of their experts
//! - [`MixtureOfExperts`]: routing, sorting by expert, both products and what joins them
//! - [`chained_gemm`](chained_gemm()): two products one after the other
//! - [`Attention`]: softmax of products of queries and keys, times values, with its variants
//! - [`AttentionBackward`]: its gradients
//! - [`block_scaled_gemm`]: products of narrow floats with a scale for each block
//! - [`block_float_gemm`]: products of OCP's MX formats: 4-, 6- and 8-bit floats with a scale for each 32
//! - [`arrange_scales`]: their scales in the order in which products take them
//! - [`FourBitGemm`]: products of few rows with weights of 4 bits, integers or MXFP4
//! - [`arrange_int4`], [`arrange_mxfp4`]: these weights in the order in which products take them
//! - [`PagedDecode`], [`LatentDecode`]: attention of new tokens over keys and values that lie in pages
//! - [`PagedExtend`]: of many new tokens, over these and over each other
//! - [`paged_append`](paged_append()): new keys and values into these pages
//! - [`topk`](topk()): the largest elements of each row
//! - [`sort`](sort()): the elements of each row in order
//! - [`list`]: the same as a table, by name, with default symbols: what the program offers
//!
//! ```
//! use groundswell::kernels::Gemm;
//! use groundswell::prelude::*;
//!
//! let executable = Gemm::new(1000, 500, 256).inputs(Bf16).bias().relu().compile(Target::GFX942)?;
//! assert_eq!(executable.parameters().len(), 4); // a, b, c, bias
//! println!("{}", executable.report());
//! # Ok::<(), Diagnostic>(())
//! ```

mod asked;
mod attention;
mod block_float;
mod block_scaled;
mod chained_gemm;
mod conv2d;
mod copy;
mod depthwise;
mod elementwise;
mod experts;
mod four_bit;
mod gather;
mod gemm;
mod grouped_gemm;
mod norms;
mod permute;
mod rope;
mod row_reductions;
mod row_tile;
mod scans;
mod scatter;
mod softmax;
mod sort;
mod split_k;
mod stream_k;
mod sums;
mod table;
mod table_attention;
mod table_entry;
mod table_symbols;
#[cfg(test)]
mod tests;
mod topk;
mod transpose;

use std::panic::Location as Caller;

use crate::prelude::*;
use asked::asked_at;

pub use attention::{
    Attention, AttentionBackward, AttentionLayout, AttentionScales, AttentionTile, BackwardKernel, BiasShape,
    Diagonal, GradientTile, LatentDecode, PagedDecode, PagedExtend, paged_append,
};
pub use block_float::{ScaleOrder, arrange_scales, block_float_gemm};
pub use block_scaled::block_scaled_gemm;
pub use chained_gemm::chained_gemm;
pub use conv2d::{Conv2d, ImageLayout};
pub use copy::{copy, copy_strided};
pub use elementwise::{Elementwise, OperandShape};
pub use experts::MixtureOfExperts;
pub use four_bit::{FourBitGemm, arrange_int4, arrange_mxfp4};
pub use gather::gather;
pub use gemm::{Form, Gemm};
pub use grouped_gemm::grouped_gemm;
pub use norms::Norm;
pub use permute::{permute, permute_others};
pub use rope::{Rope, RopePairs};
pub use row_reductions::{column_sum, row_argmax, row_max, row_sum};
pub use row_tile::RowTile;
pub use scans::{cumsum, cumsum_exclusive};
pub use scatter::{histogram, scatter_add};
pub use softmax::{log_softmax, softmax};
pub use sort::{SortOrder, sort};
pub use split_k::{SplitK, split_k, split_k_atomic, split_k_into};
pub use stream_k::{StreamK, stream_k};
pub use table::{find, list};
pub use table_entry::{Choices, KernelEntry};
pub use table_symbols::SymbolDefault;
pub use topk::topk;
pub use transpose::transpose;

/// Elements of C that a workgroup computes, and of K that it takes per iteration.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// Rows of C: `BLOCK_M`.
    pub m: u32,
    /// Columns of C: `BLOCK_N`.
    pub n: u32,
    /// Elements of K per iteration: `BLOCK_K`.
    pub k: u32,
}

/// Waves of a workgroup along the rows and the columns of its output tile.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Waves {
    /// Along M.
    pub m: u32,
    /// Along N.
    pub n: u32,
}

impl Waves {
    /// `m` by `n` waves.
    pub const fn new(m: u32, n: u32) -> Waves {
        Waves { m, n }
    }

    /// The kernel that `trace` makes with these waves; its faults are those of the caller who asked for them.
    fn asked_by(
        self,
        caller: &'static Caller<'static>,
        trace: impl FnOnce(Waves) -> Result<Kernel, Diagnostic>,
    ) -> Result<Kernel, Diagnostic> {
        let kernel = self.check().and_then(trace);
        asked_at(caller, kernel.map(|kernel| self.told_in(kernel, "asked for here", Some(&caller.into()))))
    }

    /// The kernel that has these waves; its faults mention them: `by` ends `2 waves along M are ..`.
    fn told_in(self, kernel: Kernel, by: &str, location: Option<&Location>) -> Kernel {
        let told = |kernel: Kernel, name: &str, count: u32| {
            let waves = if count == 1 { "wave" } else { "waves" };
            let are = if count == 1 { "is" } else { "are" };
            kernel.chosen_for(
                name.into(),
                format!("{count} {waves} along {name} {are} {by}"),
                location.cloned(),
            )
        };
        told(told(kernel, "M", self.m), "N", self.n)
    }

    fn check(self) -> Result<Waves, Diagnostic> {
        if self.m == 0 || self.n == 0 {
            let text = format!("{} x {} waves are no workgroup", self.m, self.n);
            return Err(Diagnostic::invalid(text).help("use at least one wave along each dimension"));
        }
        Ok(self)
    }
}
