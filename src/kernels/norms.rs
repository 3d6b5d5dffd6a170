//! Layer norm and RMS norm over rows.

use std::panic::Location as Caller;

use super::row_tile::{distribute_rows, row_kernel};
use crate::prelude::*;

/// What rows are divided by, and what is subtracted before.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum NormKind {
    /// The mean is subtracted, the standard deviation divides.
    Layer,
    /// The root of the mean square divides.
    Rms,
}

/// Builder of norms over the rows of `x`, `[M, N]`, with a weight for each column.
///
/// - layer norm: `y = (x - mean) / sqrt(variance + epsilon) * weight + bias`; memories `x`, `weight`, `bias`,
///   `y`
/// - RMS norm: `y = x / sqrt(mean of x² + epsilon) * weight`; memories `x`, `weight`, `y`
///
/// All memories have one dtype: f16, bf16 or f32; all arithmetic is in f32, and the variance is that of the
/// differences from the mean, which a row in registers has at hand. [`super::RowTile`] has the symbols of the
/// tile.
///
/// # Example
/// ```
/// use groundswell::kernels::{Norm, RowTile};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 1).set("N", 2);
/// let executable = Norm::rms(F32).epsilon(0.0).kernel()?.compile(&RowTile::of(2).set_in(options))?;
///
/// let device = Device::open()?;
/// let [x, weight] = [device.upload(&[1f32, 7.0])?, device.upload(&[5f32, 10.0])?];
/// let y = device.upload(&[0f32; 2])?;
/// device.launch(&executable).buffer(&x).buffer(&weight).buffer(&y).run()?;
/// assert!((y.download::<f32>()?[1] - 14.0).abs() < 1e-5);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Copy, Clone, Debug)]
pub struct Norm {
    kind: NormKind,
    dtype: DType,
    epsilon: f64,
    residual: Option<Residual>,
    /// Where the kernel was asked for.
    caller: &'static Caller<'static>,
}

/// That a residual is added.
#[derive(Copy, Clone, Debug)]
struct Residual;

impl Norm {
    /// Layer norm.
    #[track_caller]
    pub fn layer(dtype: DType) -> Norm {
        Norm { kind: NormKind::Layer, dtype, epsilon: 1e-5, residual: None, caller: Caller::caller() }
    }

    /// RMS norm.
    #[track_caller]
    pub fn rms(dtype: DType) -> Norm {
        Norm { kind: NormKind::Rms, dtype, epsilon: 1e-5, residual: None, caller: Caller::caller() }
    }

    /// What is added below the root; 1e-5 unless chosen.
    #[must_use]
    pub fn epsilon(self, epsilon: f64) -> Norm {
        Norm { epsilon, ..self }
    }

    /// Adds `residual`, `[M, N]`, to `x` first, and writes the sum to `sum`, `[M, N]`: the residual of the
    /// layer that follows. `residual` comes after `x`, and `sum` last.
    #[must_use]
    pub fn residual(self) -> Norm {
        Norm { residual: Some(Residual), ..self }
    }

    /// The kernel.
    ///
    /// # Errors
    /// Another dtype.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        let name = match (self.kind, self.residual) {
            (NormKind::Layer, None) => "layer_norm",
            (NormKind::Layer, Some(_)) => "layer_norm_residual",
            (NormKind::Rms, None) => "rms_norm",
            (NormKind::Rms, Some(_)) => "rms_norm_residual",
        };
        row_kernel(name, self.dtype, self.caller, |w| self.trace(w))
    }

    fn trace(&self, w: &Tracer) {
        let [m, n] = distribute_rows(w);
        let matrix = |name| w.memory(name, [m, n], Global, self.dtype);
        let row = |name| w.memory(name, [n], Global, self.dtype);
        let x = matrix("x");
        let residual = self.residual.map(|_| matrix("residual"));
        let weight = row("weight");
        let bias = (self.kind == NormKind::Layer).then(|| row("bias"));
        let y = matrix("y");
        let sum = self.residual.map(|_| matrix("sum"));
        // All loads come before the first use, so that a row waits for memory once.
        let mut elements = w.read(x).tag("read_x");
        let residual = residual.map(|residual| w.read(residual).tag("read_residual"));
        let weight = w.read(weight).tag("read_weight");
        let bias = bias.map(|bias| w.read(bias).tag("read_bias"));
        elements = elements.cast(F32);
        if let Some(residual) = residual {
            elements += residual.cast(F32);
        }
        if let Some(sum) = sum {
            w.write(elements.cast(self.dtype), sum);
        }
        if self.kind == NormKind::Layer {
            elements -= elements.mean(n);
        }
        let scale = ((elements * elements).mean(n) + self.epsilon).rsqrt();
        let mut result = elements * scale * weight.cast(F32);
        if let Some(bias) = bias {
            result += bias.cast(F32);
        }
        w.write(result.cast(self.dtype), y);
    }
}
