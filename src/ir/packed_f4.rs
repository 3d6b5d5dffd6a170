//! Bytes of two 4-bit floats each, as authors have them who keep the bytes in memories of i8 themselves:
//! along a scaled dimension `K/2`, where element `2i` of K is in the lower half of byte `i`.

use super::builder::Value;
use super::expr::Symbol;
use super::types::DType;

impl Value {
    /// The `f4e2m1` numbers of packed bytes, as f32, which is exact: of an i8 value whose last dimension is
    /// the blocks of 2 of the last one of `dims`, a value of dimensions `dims`. A number is a sign, two bits
    /// of exponent and one of fraction: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, of both signs.
    ///
    /// # Example
    /// Elements of 4 bits with a power of two for each 32 of them:
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, k] = symbols(["M", "K"]);
    /// let widened = Kernel::trace("widened", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(k, 64, 1)]);
    ///     let packed = w.memory("packed", [m, k.scaled(2)], Global, I8);
    ///     let scales = w.memory("scales", [m, k.scaled(32)], Global, F8E8M0);
    ///     let y = w.memory("y", [m, k], Global, F32);
    ///     w.write(w.read(packed).unpack_f4e2m1([m, k]) * w.read(scales).cast(F32), y);
    /// })?;
    /// # widened.compile(&Options::new(Target::GFX942).set(m, 20).set(k, 100))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn unpack_f4e2m1<const N: usize>(self, dims: [Symbol; N]) -> Value {
        self.bitcast(DType::F4E2M1).cast(DType::F32).broadcast(dims)
    }

    /// The bytes of the nearest `f4e2m1` numbers: of a value of float elements with dimensions `dims`, an i8
    /// value along the blocks of 2 of the last one. Of two that are equally near it is the one whose fraction
    /// is 0. What is too large becomes 6 with its sign, and a NaN becomes 6. The half byte that an odd number
    /// of elements leaves is 0.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, k] = symbols(["M", "K"]);
    /// let narrowed = Kernel::trace("narrowed", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(k, 64, 1)]);
    ///     let x = w.memory("x", [m, k], Global, F32);
    ///     let packed = w.memory("packed", [m, k.scaled(2)], Global, I8);
    ///     w.write(w.read(x).pack_f4e2m1([m, k]), packed);
    /// })?;
    /// # narrowed.compile(&Options::new(Target::GFX942).set(m, 20).set(k, 100))?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn pack_f4e2m1<const N: usize>(self, dims: [Symbol; N]) -> Value {
        let bytes = self.cast(DType::F4E2M1).bitcast(DType::I8);
        let mut of_bytes = dims;
        if let Some(last) = of_bytes.last_mut() {
            *last = last.scaled(2);
        }
        bytes.broadcast(of_bytes)
    }
}
