//! Packed 4-bit floats as other operations: `f4e2m1` of OCP's "Microscaling formats", two in a byte. Memories
//! hold the bytes, as i8 along a scaled dimension `K/2`; element `2i` of K is in the lower half of byte `i`.

use super::builder::{Tracer, Value};
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
        let w = Tracer { trace: self.trace };
        let bytes = self.broadcast(dims).cast(DType::I32);
        // In a shape without dimensions there is nothing to unpack, and the broadcast is an error.
        let Some(&last) = dims.last() else { return bytes };
        let code = bytes >> ((w.self_index(last) & 1) * 4);
        // With exponent and fraction in their places the number is off by a power of two.
        let magnitude = ((code & 7) << 22).bitcast(DType::F32) * (2f64).powi(126);
        (magnitude.bitcast(DType::I32) | ((code & 8) << 28)).bitcast(DType::F32)
    }

    /// The bytes of the nearest `f4e2m1` numbers: of a value of float elements with dimensions `dims`, an i8
    /// value along the blocks of 2 of the last one. Of two that are equally near it is the one whose fraction
    /// is 0. What is too large, and a NaN, becomes 6 with its sign. The half byte that an odd number of
    /// elements leaves is 0.
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
        let w = Tracer { trace: self.trace };
        let Some(&last) = dims.last() else { return self };
        let x = self.cast(DType::F32);
        let magnitude = x.abs().minimum(6.0);
        // Below 2 numbers are halves, below 4 ones, and from there on twos; their codes follow one another.
        let (halves, ones) = (magnitude.less(2.0), magnitude.less(4.0));
        let scale = w.select(halves, 2.0, w.select(ones, 1.0, 0.5));
        let first = w.select(halves, 0.0, w.select(ones, 2.0, 4.0));
        let nearest = ((magnitude * scale).round_even() + first).cast(DType::I32);
        let code = nearest | ((x.bitcast(DType::I32) >> 28) & 8);
        let half = |which: i64| {
            let mut places: Vec<super::coordinates::Coordinate> =
                dims.iter().map(|&dim| dim.into()).collect();
            if let Some(place) = places.last_mut() {
                *place = (last.scaled(2) * 2 + which).into();
            }
            let mut of_bytes = dims;
            if let Some(dim) = of_bytes.last_mut() {
                *dim = last.scaled(2);
            }
            code.at(places, of_bytes)
        };
        let byte = half(0) | (half(1) << 4);
        // As a number from -128 to 127, which a cast keeps.
        ((byte ^ 0x80) - 0x80).cast(DType::I8)
    }
}
