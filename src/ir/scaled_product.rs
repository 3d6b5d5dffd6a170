//! Products of block floats, as authors write them.

use std::panic::Location as Caller;

use super::builder::{Tracer, Value};
use super::layout::MmaType;
use super::node::{MmaChoice, Op, ValueType};

impl Tracer {
    /// Matrix product of block floats: `acc[m, n]` and the sum over k of `lhs[m, k] * lhs_scale[m, k / 32] *
    /// rhs[n, k] * rhs_scale[n, k / 32]`, in f32. The factors are f8e4m3fn, f8e5m2, f6e2m3, f6e3m2 or f4e2m1,
    /// each of its own dtype, the scales f8e8m0 along `k.scaled(32)`, as OCP's MX formats have them. gfx950
    /// has instructions for it; for other chips [`Options::emulate`](crate::prelude::Options::emulate) says
    /// in which dtype the factors are multiplied with their scales. Scales of `Shared` memories go through
    /// LDS, as the ping-pong schedule needs them.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n, k] = symbols(["M", "N", "K"]);
    /// let product = Kernel::trace("product", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(n, 16, 1), tile(k, 128)]);
    ///     w.mma_type(MatrixShape::M16x16);
    ///     let [a, b] = [("a", m), ("b", n)].map(|(name, row)| w.memory(name, [row, k], Shared, F4E2M1));
    ///     let [a_scale, b_scale] = [("a_scale", m), ("b_scale", n)]
    ///         .map(|(name, row)| w.memory(name, [row, k.scaled(32)], Global, F8E8M0));
    ///     let c = w.memory("c", [m, n], Global, F32);
    ///     let zero = w.register([m, n], F32, 0.0);
    ///     let [sum] = w.iterate(k, [zero], |w, [sum]| {
    ///         [w.scaled_mma(w.read(a), w.read(a_scale), w.read(b), w.read(b_scale), sum)]
    ///     });
    ///     w.write(sum, c);
    /// })?;
    /// let options = Options::new(Target::GFX950).set(m, 20).set(n, 40).set(k, 320);
    /// product.compile(&options)?;
    /// product.compile(&options.for_target(Target::GFX942).emulate(Bf16))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn scaled_mma(
        &self,
        lhs: Value,
        lhs_scale: Value,
        rhs: Value,
        rhs_scale: Value,
        acc: Value,
    ) -> Value {
        let operands = [lhs, rhs, acc, lhs_scale, rhs_scale].map(|value| (value.node, value.trace));
        self.node(Caller::caller(), Op::ScaledMma(MmaChoice::Kernel), &operands, ValueType::unknown())
    }

    /// [`Tracer::scaled_mma`] with a matrix instruction, or a shape, of its own.
    #[track_caller]
    pub fn scaled_mma_with(
        &self,
        mma: impl Into<MmaType>,
        [lhs, lhs_scale]: [Value; 2],
        [rhs, rhs_scale]: [Value; 2],
        acc: Value,
    ) -> Value {
        let operands = [lhs, rhs, acc, lhs_scale, rhs_scale].map(|value| (value.node, value.trace));
        let op = Op::ScaledMma(mma.into().into());
        self.node(Caller::caller(), op, &operands, ValueType::unknown())
    }
}
