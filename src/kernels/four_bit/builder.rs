//! The builder of products with weights of 4 bits.

use std::panic::Location as Caller;

use super::int4::{Int4Product, Zeros};
use super::mxfp4;
use super::parts::{FourBitResults, part_of_wave};
use crate::kernels::asked::asked_at;
use crate::prelude::*;

/// Builder of `c[i, j] = sum over k of a[i, k] * w[j, k]` for few rows of `a` and weights of 4 bits, which
/// are widened in registers.
///
/// - `a` is `[M, K]` of bf16, or f16 ([`FourBitGemm::inputs`])
/// - `w` of [`FourBitGemm::int4`] is `[K/128, 4, N, 8]` of i16: integers from 0 to 15 in the order of
///   [`super::arrange_int4`]. With the scales `[K/G, N]`, of the dtype of `a`, weight `w[j, k]` is
///   `(q[j, k] - 8) * scales[k / G, j]`; with [`FourBitGemm::zeros`] `zeros[k / G, j]` stands in place of 8:
///   `zeros` is `[K/G, N]` of i8, from 0 to 15
/// - `w` of [`FourBitGemm::mxfp4`] is `[K/8, N, 8]` of f4e2m1, with `scales` of f8e8m0, `[K/32, N]`, in the
///   order of [`super::arrange_mxfp4`]
/// - `c` is `[M, N]` of the dtype of `a`; sums are f32
///
/// The arguments are `a`, `w`, `scales`, `zeros` if there are some, and `c`. Each of the `WAVES` waves of a
/// workgroup has a part of K, of `PART` elements, and all of `BLOCK_N` columns; their sums are added through
/// LDS, in a fixed order. Where that is too few workgroups, [`FourBitGemm::parts`] divides K among `SPLITS`
/// workgroups, too. The loop is tagged `k_loop`, the operations `read_a`, `read_w`, `read_scales`,
/// `read_zeros` and `mma`.
///
/// # Example
/// ```
/// use groundswell::kernels::FourBitGemm;
/// use groundswell::prelude::*;
///
/// let product = FourBitGemm::int4(128).zeros();
/// let options = product.options(Target::GFX942, [1, 8192, 8192]).dynamic("M");
/// let executable = product.kernel()?.compile(&options)?;
/// assert_eq!(executable.parameters().len(), 5 + 1); // a, w, scales, zeros, c; M
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Copy, Clone, Debug)]
pub struct FourBitGemm {
    weights: Weights,
    inputs: DType,
    /// The caller who asked for the kernel.
    caller: &'static Caller<'static>,
}

/// What the bits of a weight mean.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Weights {
    /// Integers in groups of so many.
    Int4(u32, Zeros),
    /// OCP's MXFP4.
    Mxfp4,
}

/// The most rows whose loads take no longer than those of weights, so that it does not matter how few columns
/// share them. Time mode finds these waves, columns and schedules for N = K = 8192 on MI300X and MI355X.
const FEW_ROWS: u32 = 8;

/// The most rows whose sums a lane of eight waves has registers for.
const MANY_ROWS: u32 = 32;

impl FourBitGemm {
    /// Integers with a scale for each `group` elements of K: 32, 64 or 128.
    #[track_caller]
    pub fn int4(group: u32) -> FourBitGemm {
        FourBitGemm { weights: Weights::Int4(group, Zeros::Middle), inputs: Bf16, caller: Caller::caller() }
    }

    /// OCP's 4-bit floats with a power of two for each 32 elements of K.
    #[track_caller]
    pub fn mxfp4() -> FourBitGemm {
        FourBitGemm { weights: Weights::Mxfp4, inputs: Bf16, caller: Caller::caller() }
    }

    /// Groups of integers have zeros of their own, instead of 8. MXFP4 has none, and stays as it is.
    #[must_use]
    pub fn zeros(self) -> FourBitGemm {
        match self.weights {
            Weights::Int4(group, _) => FourBitGemm { weights: Weights::Int4(group, Zeros::OfGroups), ..self },
            Weights::Mxfp4 => self,
        }
    }

    /// Element type of `a`, `c` and the scales of integers: bf16, unless it is f16. MXFP4 is multiplied with
    /// bf16 alone, which holds its scales.
    #[must_use]
    pub fn inputs(self, dtype: DType) -> FourBitGemm {
        FourBitGemm { inputs: dtype, ..self }
    }

    /// Options for [`FourBitGemm::kernel`] that bind all symbols but `M`, which is to be set, or left open
    /// for the launch, with tiles for a product of about `[m, n, k]`.
    pub fn options(&self, target: impl Into<TargetId>, sizes: [u32; 3]) -> Options {
        self.tile(target.into(), sizes, 1).0
    }

    /// The same for [`FourBitGemm::parts`], of `splits` parts.
    pub fn parts_options(&self, target: impl Into<TargetId>, sizes: [u32; 3], splits: u32) -> Options {
        let (options, split) = self.tile(target.into(), sizes, splits);
        let options = options.set_by("SPLITS", i64::from(splits), SetBy::Call(self.caller));
        options.set_by("SPLIT", split, SetBy::Default)
    }

    /// The symbols of both kernels, and the elements of K of a workgroup.
    fn tile(&self, target: TargetId, [m, n, k]: [u32; 3], splits: u32) -> (Options, i64) {
        let (waves, block_n, schedule) = match self.weights {
            Weights::Int4(..) if m <= FEW_ROWS => (4, 16, Schedule::Modulo),
            Weights::Int4(..) if m <= MANY_ROWS => (8, 32, Schedule::None),
            Weights::Mxfp4 if m <= MANY_ROWS => (8, 32, Schedule::Modulo),
            Weights::Int4(..) | Weights::Mxfp4 => (4, 32, Schedule::None),
        };
        let part = part_of_wave(k.into(), waves * i64::from(splits.max(1)));
        let block_m = m.clamp(16, 64).next_power_of_two();
        let options = [("N", n), ("K", k)].iter().fold(Options::new(target), |options, &(name, size)| {
            options.set_by(name, i64::from(size), SetBy::Call(self.caller))
        });
        let tile = [("WAVES", waves), ("BLOCK_M", i64::from(block_m)), ("BLOCK_N", block_n), ("PART", part)];
        let of_weights: &[(&str, i64)] = match self.weights {
            Weights::Int4(..) => &[("HALFWORDS", part / 4)],
            Weights::Mxfp4 => &[("ELEMENTS", part), ("EIGHT", 8), ("BLOCK_K", 256)],
        };
        let options = tile
            .iter()
            .chain(of_weights)
            .fold(options, |options, &(name, size)| options.set_by(name, size, SetBy::Default));
        (options.schedule(schedule), part.saturating_mul(waves))
    }

    /// The kernel whose workgroups have all of K.
    ///
    /// # Errors
    /// A group of another size, or inputs of another dtype.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.trace(FourBitResults::Whole))
    }

    /// The kernel that leaves the sums of each of `SPLITS` parts of K: `parts`, `[SPLITS, M, N]` of f32, in
    /// place of `c`. The second kernel of [`super::super::split_k`] adds them up.
    ///
    /// # Errors
    /// Those of [`FourBitGemm::kernel`].
    pub fn parts(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.trace(FourBitResults::Parts))
    }

    fn trace(&self, results: FourBitResults) -> Result<Kernel, Diagnostic> {
        let inputs = self.inputs;
        match (self.weights, inputs) {
            (Weights::Int4(group @ (32 | 64 | 128), zeros), F16 | Bf16) => {
                Int4Product { inputs, group, zeros }.trace(results)
            }
            (Weights::Int4(..), F16 | Bf16) => {
                Err(Diagnostic::invalid("integers of 4 bits have a scale for each 32, 64 or 128 of K")
                    .help("use a group of 32, 64 or 128; larger ones can repeat their scales"))
            }
            (Weights::Mxfp4, Bf16) => mxfp4::trace(inputs, results),
            (Weights::Int4(..), _) => {
                Err(Diagnostic::invalid(format!("weights of 4 bits are not multiplied with {inputs}"))
                    .help("use inputs of bf16 or f16"))
            }
            (Weights::Mxfp4, _) => Err(Diagnostic::invalid(format!(
                "MXFP4 is not multiplied with {inputs}, which lacks its scales"
            ))
            .help("use inputs of bf16, or block_float_gemm for narrow ones")),
        }
    }
}
