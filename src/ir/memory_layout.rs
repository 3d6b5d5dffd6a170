//! How the elements of a memory lie: row after row, or with strides that its author gives; and memories that
//! a launch makes itself.

use bevy_ecs::prelude::Component;
use smallvec::SmallVec;

use super::expr::Symbol;
use super::node::Dims;

/// Of a memory whose elements do not lie row after row: for each of its dimensions the sizes whose product is
/// the number of elements from one coordinate to the next, none for one element. The elements of one
/// coordinate end before those of the next one begin, which is checked as soon as the numbers are known: when
/// symbols are bound, or at launch. If the last stride is one, strides fall from the first dimension to the
/// last; otherwise accesses say each coordinate ([`Mapping`](super::mapping::Mapping)), so that nothing
/// relies on an order. On the memory; it does not change what a kernel computes.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct Strides(pub SmallVec<[Dims; 4]>);

impl Strides {
    /// Whether the elements along the last dimension do not lie side by side.
    pub(crate) fn lie_apart(&self) -> bool {
        self.0.last().is_some_and(|last| !last.is_empty())
    }
}

/// Marks a memory that keeps values for the author to look at: `debug_log`. A launch makes its tensor and
/// hands it back. Its dimensions are those of its slots, if it has any, and then those of the value that is
/// written to it, which are unknown, like the dtype, until `type_logs` has seen the value.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct DebugLog;

/// Where the elements of a memory are that is a part of something larger: rows with a leading dimension, a
/// batch with a stride, a tensor with padding, a matrix whose columns lie side by side.
/// Symbols may be left open until the launch; [`assume_divisible`](crate::author::assume_divisible) says what
/// accesses need to stay wide.
///
/// # Example
/// The first columns of a matrix whose rows are longer:
/// ```
/// use groundswell::prelude::*;
/// let [m, n, lda] = symbols(["M", "N", "LDA"]);
/// let kernel = Kernel::trace("columns", |w| {
///     w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1), assume_divisible(lda, 4)]);
///     let a = w.memory_in("a", [m, n], &MemoryLayout::strides([lda]), Global, F32);
///     let b = w.memory("b", [m, n], Global, F32);
///     w.write(w.read(a), b);
/// })?;
/// let options = Options::new(Target::GFX942).set(m, 2).set(n, 3).dynamic(lda);
/// let executable = kernel.compile(&options)?;
/// let device = Device::open()?;
/// let a = device.upload(&[1.0f32, 2.0, 3.0, 0.0, 5.0, 6.0, 7.0, 0.0])?;
/// let b = device.upload(&[0.0f32; 6])?;
/// device.launch(&executable).buffer(&a).buffer(&b).set(lda, 4).run()?;
/// assert_eq!(b.download::<f32>()?, [1.0, 2.0, 3.0, 5.0, 6.0, 7.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MemoryLayout {
    /// One for each dimension: the factors of its stride.
    strides: Vec<Vec<Symbol>>,
}

impl MemoryLayout {
    /// Elements from one coordinate to the next, for each dimension, outermost first: symbols or numbers.
    /// That of the last dimension is 1 if it is left out, so for a matrix of rows this is the leading
    /// dimension: `strides([lda])`; for one of columns it is `strides([1.into(), lda])`. If the last one is
    /// 1, strides fall from the first dimension to the last.
    pub fn strides<S: Into<Symbol>>(strides: impl IntoIterator<Item = S>) -> MemoryLayout {
        MemoryLayout { strides: strides.into_iter().map(|s| vec![s.into()]).collect() }
    }

    /// The strides of all dimensions of a memory that has so many.
    pub(super) fn of_rank(&self, rank: usize) -> Vec<Vec<Symbol>> {
        let mut strides = self.strides.clone();
        if strides.len() + 1 == rank {
            strides.push(Vec::new());
        }
        strides
    }

    /// The elements are those of a larger tensor of this shape, from its beginning. The size of its first
    /// dimension does not matter.
    pub fn physical<S: Into<Symbol>>(shape: impl IntoIterator<Item = S>) -> MemoryLayout {
        let shape: Vec<Symbol> = shape.into_iter().map(Into::into).collect();
        let strides = (1..=shape.len()).map(|after| shape[after..].to_vec()).collect();
        MemoryLayout { strides }
    }
}
