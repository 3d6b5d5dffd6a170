//! Rotary position embedding: pairs of elements of a head, turned by angles that depend on the token.

use std::panic::Location as Caller;

use super::asked::asked_at;
use crate::prelude::*;

/// Which elements of a head form a pair.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum RopePairs {
    /// Element i and element i + `PAIRS`: the halves of the head.
    #[default]
    Halves,
    /// Elements 2i and 2i + 1.
    Interleaved,
}

/// Builder of kernels that turn pair i of each head of token t by an angle: `y = (x0 cos - x1 sin, x1 cos +
/// x0 sin)` for a pair `x = (x0, x1)`.
///
/// `x` and `y` have tokens, heads and the `2 * PAIRS` elements of a head, in this order; the kernel sees
/// them as `[T, HEADS, 2, PAIRS]`, or `[T, HEADS, PAIRS, 2]` where neighbours form a pair. The angles come
/// from tables `cos` and `sin` of shape `[T, PAIRS]` and f32, or from i32 `positions` of shape `[T]`: the
/// angle of pair i is `position * base^(-i / PAIRS)`. All arithmetic is in f32. A workgroup has `BLOCK_T`
/// tokens and `BLOCK_H` heads, one wave for each token; `WAVE_P` is `PAIRS` rounded up to a power of two.
///
/// # Example
/// ```
/// use groundswell::kernels::{Rope, RopePairs};
/// use groundswell::prelude::*;
///
/// let rope = Rope::new(F32).pairs(RopePairs::Interleaved);
/// let options = Options::new(Target::GFX942).set("T", 1).set("HEADS", 1).set("PAIRS", 2);
/// let executable = rope.kernel()?.compile(&options.set("BLOCK_T", 1).set("BLOCK_H", 1).set("WAVE_P", 2))?;
///
/// let device = Device::open()?;
/// let x = device.upload(&[1f32, 2.0, 3.0, 4.0])?;
/// // A quarter of a turn for the first pair, none for the second.
/// let cos = device.upload(&[0f32, 1.0])?;
/// let sin = device.upload(&[1f32, 0.0])?;
/// let y = device.upload(&[0f32; 4])?;
/// device.launch(&executable).buffer(&x).buffer(&cos).buffer(&sin).buffer(&y).run()?;
/// assert_eq!(y.download::<f32>()?, [-2.0, 1.0, 3.0, 4.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rope {
    dtype: DType,
    pairs: RopePairs,
    /// The base of computed angles; tables without.
    base: Option<f64>,
    caller: &'static Caller<'static>,
}

impl Rope {
    /// Pairs of halves of elements of `dtype`, which is f16, bf16 or f32, with tables.
    #[track_caller]
    pub fn new(dtype: DType) -> Rope {
        Rope { dtype, pairs: RopePairs::Halves, base: None, caller: Caller::caller() }
    }

    /// Which elements form a pair.
    #[must_use]
    pub fn pairs(mut self, pairs: RopePairs) -> Rope {
        self.pairs = pairs;
        self
    }

    /// Angles computed from `positions` and this base, which usually is 10000. The angle is a product of f32,
    /// so it has their relative error: at position 10^5 a result may be off by 0.02.
    #[must_use]
    pub fn positions(mut self, base: f64) -> Rope {
        self.base = Some(base);
        self
    }

    /// Traces the kernel.
    ///
    /// # Errors
    /// Another dtype, or a base that is no positive number.
    pub fn kernel(&self) -> Result<Kernel, Diagnostic> {
        asked_at(self.caller, self.trace())
    }

    fn trace(&self) -> Result<Kernel, Diagnostic> {
        if !matches!(self.dtype, F16 | Bf16 | F32) {
            let text = format!("rope turns f16, bf16 and f32, not {}", self.dtype);
            return Err(Diagnostic::invalid(text).help("convert the elements first"));
        }
        if self.base.is_some_and(|base| !(base.is_finite() && base > 0.0)) {
            return Err(Diagnostic::invalid("the base of the angles is no positive number")
                .help("use a base such as 10000"));
        }
        let [t, heads, pairs] = symbols(["T", "HEADS", "PAIRS"]);
        let two = Symbol::from(2u32);
        let [block_t, block_h, wave_p] = symbols(["BLOCK_T", "BLOCK_H", "WAVE_P"]);
        Kernel::trace("rope", |w| {
            w.distribute([
                workgroup(t, block_t, 0),
                workgroup(heads, block_h, 1),
                wave(t, 1),
                wave(pairs, wave_p),
            ]);
            let element = |half: i64| -> [SymExpr; 4] {
                match self.pairs {
                    RopePairs::Halves => [t.into(), heads.into(), half.into(), pairs.into()],
                    RopePairs::Interleaved => [t.into(), heads.into(), pairs.into(), half.into()],
                }
            };
            let shape = match self.pairs {
                RopePairs::Halves => [t, heads, two, pairs],
                RopePairs::Interleaved => [t, heads, pairs, two],
            };
            let x = w.memory("x", shape, Global, self.dtype);
            let (cos, sin) = self.angles(w, [t, pairs]);
            let y = w.memory("y", shape, Global, self.dtype);
            let half = |half: i64| w.read_at(x, element(half), [t, heads, pairs]).tag("read_x").cast(F32);
            let (x0, x1) = (half(0), half(1));
            w.write_at((x0 * cos - x1 * sin).cast(self.dtype), y, element(0));
            w.write_at((x1 * cos + x0 * sin).cast(self.dtype), y, element(1));
        })
    }

    /// Cosine and sine of the angles `[T, PAIRS]`.
    fn angles(&self, w: &Tracer, [t, pairs]: [Symbol; 2]) -> (Value, Value) {
        let Some(base) = self.base else {
            let table = |name: &str| w.read(w.memory(name, [t, pairs], Global, F32)).tag("read_table");
            return (table("cos"), table("sin"));
        };
        let positions = w.memory("positions", [t], Global, I32);
        let position = w.read(positions).tag("read_positions").cast(F32).broadcast([t, pairs]);
        let fraction = w.self_index(pairs).cast(F32) / w.size(pairs).cast(F32);
        let angle = position * (fraction * -base.log2()).exp2();
        (angle.cos(), angle.sin())
    }
}
