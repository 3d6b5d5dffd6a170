//! Task mappings: which worker does which tasks, in which order, said by factors.
//!
//! A mapping is sugar over the layout algebra: `spatial` factors are digits of the worker's number (lanes of
//! a [`Layout`]), `repeat` factors are digits of the place in the worker's list (replicas), and products are
//! [`Layout::compose`]. What a mapping says is read from that layout; the factors are only kept to be
//! printed.
mod auto_map;
mod error;
mod factoring;
mod linear_form;
mod ownership;
#[cfg(test)]
mod tests;
mod text;

pub use auto_map::{auto_map, predicated_auto_map};
pub use error::MappingError;
pub use linear_form::LinearForm;

use super::{Dim, Layout, Mode, Place, Source};
use smallvec::SmallVec;
use std::ops::Mul;
use text::{factors_text, tuple_text};

/// Most dimensions of a mapping.
const MAX_DIMS: usize = 16;

/// MappingExtents of a mapping, one for each dimension.
type MappingExtents = SmallVec<[u32; 4]>;

/// The workers or tasks that a factor's digits count.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum FactorKind {
    /// Workers, one task each.
    Spatial,
    /// Tasks of one worker.
    Repeat,
}

impl FactorKind {
    const fn name(self) -> &'static str {
        match self {
            FactorKind::Spatial => "spatial",
            FactorKind::Repeat => "repeat",
        }
    }

    /// The digits of a layout that it becomes.
    const fn source(self) -> Source {
        match self {
            FactorKind::Spatial => Source::Lane,
            FactorKind::Repeat => Source::Replica,
        }
    }
}

/// A factor as the author wrote it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum MappingFactor {
    /// A box of workers or of tasks; the dimension with the greatest rank is the fastest.
    Digits { kind: FactorKind, extents: MappingExtents, ranks: SmallVec<[usize; 4]> },
    /// A product in which the coordinates of some dimensions are zero.
    Projected { factors: Vec<MappingFactor>, dims: Vec<usize> },
}

/// A mapping without a fault.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct MappingParts {
    factors: Vec<MappingFactor>,
    shape: MappingExtents,
    workers: u32,
    /// Nothing if an extent is zero: then there are no tasks.
    layout: Option<Layout>,
}

/// Which worker does which tasks in which order: a number of workers, the shape of the box of tasks, and an
/// ordered list of indices in that box for each worker.
///
/// Mappings are made by [`spatial`] (a worker for each task), [`repeat`] (one worker for all tasks) and
/// products: `f * g` has a whole `g` in place of each task of `f`. Products are associative, and not
/// commutative. A fault, such as different numbers of dimensions in a product, stays with the mapping and is
/// what its methods give.
///
/// # Example
/// The accumulators of a workgroup of four waves, each with 4 x 4 products of 16 x 16 elements:
/// ```
/// use groundswell::mapping::{MappingError, spatial};
/// let tile = spatial([2, 2]).repeat([4, 4]).spatial([4, 1]).repeat([4, 1]).spatial([1, 16]);
/// assert_eq!(tile.to_string(), "spatial(2,2)*repeat(4,4)*spatial(4,1)*repeat(4,1)*spatial(1,16)");
/// assert_eq!((tile.workers()?, tile.shape()?), (256, vec![128, 128]));
///
/// let mut first = Vec::new();
/// for [i, j] in tile.on(65)?.take(3) {
///     first.push((i, j));
/// }
/// assert_eq!(first, [(0, 65), (1, 65), (2, 65)]);
/// # Ok::<(), MappingError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TaskMapping {
    made: Result<MappingParts, MappingError>,
}

impl TaskMapping {
    fn of(made: Result<MappingParts, MappingError>) -> TaskMapping {
        TaskMapping { made }
    }

    /// The product with [`spatial`] inside.
    #[must_use]
    pub fn spatial(self, extents: impl AsRef<[u32]>) -> TaskMapping {
        self * spatial(extents)
    }

    /// The product with [`repeat`] inside.
    #[must_use]
    pub fn repeat(self, extents: impl AsRef<[u32]>) -> TaskMapping {
        self * repeat(extents)
    }

    /// The product with [`col_spatial`] inside.
    #[must_use]
    pub fn col_spatial(self, extents: impl AsRef<[u32]>) -> TaskMapping {
        self * col_spatial(extents)
    }

    /// The product with [`col_repeat`] inside.
    #[must_use]
    pub fn col_repeat(self, extents: impl AsRef<[u32]>) -> TaskMapping {
        self * col_repeat(extents)
    }

    /// The mapping with the ranks of its one factor: the dimension of rank 0 is the slowest. A fault for
    /// products.
    #[must_use]
    pub fn ranks(self, ranks: impl AsRef<[usize]>) -> TaskMapping {
        let ranked = |parts: MappingParts| match &parts.factors[..] {
            [MappingFactor::Digits { kind, extents, .. }] => {
                MappingParts::of_digits(*kind, extents, Some(ranks.as_ref()))
            }
            factors => Err(MappingError::RanksOfProduct { mapping: factors_text(factors) }),
        };
        TaskMapping::of(self.made.and_then(ranked))
    }

    /// The mapping without a fault.
    fn parts(&self) -> Result<&MappingParts, MappingError> {
        self.made.as_ref().map_err(MappingError::clone)
    }

    /// The mapping itself, if nothing is wrong with it.
    ///
    /// # Errors
    /// The fault of one of its factors or products.
    pub fn checked(self) -> Result<TaskMapping, MappingError> {
        self.made.map(|parts| TaskMapping { made: Ok(parts) })
    }

    /// How many workers there are.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`].
    pub fn workers(&self) -> Result<u32, MappingError> {
        Ok(self.parts()?.workers)
    }

    /// Tasks along each dimension.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`].
    pub fn shape(&self) -> Result<Vec<u32>, MappingError> {
        Ok(self.parts()?.shape.to_vec())
    }

    /// Tasks of each worker: as many for every one.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`].
    pub fn tasks_per_worker(&self) -> Result<u32, MappingError> {
        Ok(self.parts()?.tasks())
    }

    /// The tasks of a worker, in order.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`]; a number that is no worker's; a mapping that has not `N` dimensions.
    pub fn on<const N: usize>(
        &self,
        worker: u32,
    ) -> Result<impl ExactSizeIterator<Item = [u32; N]> + use<'_, N>, MappingError> {
        let parts = self.parts()?;
        parts.check_worker(worker)?;
        if parts.shape.len() != N {
            let (mapping, dims) = (parts.text(), parts.shape.len());
            return Err(MappingError::Rank { mapping, dims, asked: N });
        }
        let at = move |task| std::array::from_fn(|dim| parts.coordinate(dim, worker, task));
        Ok((0..parts.tasks()).map(at))
    }

    /// The same for any number of dimensions, as a list.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`]; a number that is no worker's.
    pub fn list(&self, worker: u32) -> Result<Vec<Vec<u32>>, MappingError> {
        let parts = self.parts()?;
        parts.check_worker(worker)?;
        let dims = 0..parts.shape.len();
        let at = |task| dims.clone().map(|dim| parts.coordinate(dim, worker, task)).collect();
        Ok((0..parts.tasks()).map(at).collect())
    }

    /// The only task of a worker.
    ///
    /// # Errors
    /// As [`TaskMapping::on`]; a worker that has not exactly one task.
    pub fn single<const N: usize>(&self, worker: u32) -> Result<[u32; N], MappingError> {
        let tasks = self.tasks_per_worker()?;
        match (tasks, self.on(worker)?.next()) {
            (1, Some(task)) => Ok(task),
            _ => Err(MappingError::NotSingle { mapping: self.to_string(), worker, tasks }),
        }
    }

    /// The mapping in which the coordinates along these dimensions are zero, and their extents one: workers
    /// that differed along them only have the same tasks.
    #[must_use]
    pub fn projection(self, dims: impl AsRef<[usize]>) -> TaskMapping {
        TaskMapping::of(self.made.and_then(|parts| parts.projected(dims.as_ref())))
    }

    /// The layout that says the same: workers are lanes, the tasks of one are replicas in order, and the
    /// dimensions are numbered. Nothing if an extent is zero.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`].
    pub(crate) fn layout(&self) -> Result<Option<&Layout>, MappingError> {
        Ok(self.parts()?.layout.as_ref())
    }

    /// True if both have the same shape, the same workers, and for each of them the same list of tasks.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`], of either.
    pub fn equivalent(&self, other: &TaskMapping) -> Result<bool, MappingError> {
        let (a, b) = (self.parts()?, other.parts()?);
        let alike = match (&a.layout, &b.layout) {
            (Some(a), Some(b)) => a.equivalent(b),
            (None, None) => true,
            _ => false,
        };
        Ok(alike && a.shape == b.shape && a.workers == b.workers)
    }
}

/// One task for each worker, the last dimension fastest.
pub fn spatial(extents: impl AsRef<[u32]>) -> TaskMapping {
    TaskMapping::of(MappingParts::of_digits(FactorKind::Spatial, extents.as_ref(), None))
}

/// All tasks for one worker, the last dimension fastest.
pub fn repeat(extents: impl AsRef<[u32]>) -> TaskMapping {
    TaskMapping::of(MappingParts::of_digits(FactorKind::Repeat, extents.as_ref(), None))
}

/// As [`spatial`], the first dimension fastest.
pub fn col_spatial(extents: impl AsRef<[u32]>) -> TaskMapping {
    TaskMapping::of(MappingParts::by_columns(FactorKind::Spatial, extents.as_ref()))
}

/// As [`repeat`], the first dimension fastest.
pub fn col_repeat(extents: impl AsRef<[u32]>) -> TaskMapping {
    TaskMapping::of(MappingParts::by_columns(FactorKind::Repeat, extents.as_ref()))
}

impl Mul for TaskMapping {
    type Output = TaskMapping;

    /// A whole `inner` in place of each task of `self`.
    fn mul(self, inner: TaskMapping) -> TaskMapping {
        TaskMapping::of(match (self.made, inner.made) {
            (Ok(outer), Ok(inner)) => outer.around(&inner),
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
        })
    }
}

impl Mul<&TaskMapping> for TaskMapping {
    type Output = TaskMapping;

    fn mul(self, inner: &TaskMapping) -> TaskMapping {
        self * inner.clone()
    }
}

impl MappingParts {
    fn text(&self) -> String {
        factors_text(&self.factors)
    }

    fn by_columns(kind: FactorKind, extents: &[u32]) -> Result<MappingParts, MappingError> {
        let ranks: SmallVec<[usize; 4]> = (0..extents.len()).rev().collect();
        MappingParts::of_digits(kind, extents, Some(&ranks))
    }

    /// One factor. Without ranks the last dimension is the fastest.
    fn of_digits(
        kind: FactorKind,
        extents: &[u32],
        ranks: Option<&[usize]>,
    ) -> Result<MappingParts, MappingError> {
        let factor = || format!("{}{}", kind.name(), tuple_text(extents));
        if extents.len() > MAX_DIMS {
            return Err(MappingError::TooManyDims { factor: factor(), dims: extents.len(), most: MAX_DIMS });
        }
        let dims = 0..extents.len();
        let ranks: SmallVec<[usize; 4]> = ranks.map_or_else(|| dims.clone().collect(), SmallVec::from_slice);
        if ranks.len() != extents.len() || !dims.clone().all(|rank| ranks.contains(&rank)) {
            return Err(MappingError::Ranks { factor: factor(), ranks: ranks.to_vec(), dims: extents.len() });
        }
        let mut fastest_first: SmallVec<[usize; 4]> = dims.collect();
        fastest_first.sort_by_key(|&dim| std::cmp::Reverse(ranks[dim]));
        let too_large = |_| MappingError::TooLarge { mapping: factor() };
        let count = || extents.iter().try_fold(1u32, |count, &extent| count.checked_mul(extent));
        let layout = if extents.contains(&0) {
            None
        } else {
            let digit = |&dim: &usize| Mode::new(kind.source(), extents[dim], Dim(dim as u8), 1);
            Some(Layout::new(fastest_first.iter().map(digit)).map_err(too_large)?)
        };
        let workers = match kind {
            // Not more than those without a zero, which fit.
            FactorKind::Spatial if layout.is_none() => 0,
            FactorKind::Spatial => count().ok_or(MappingError::TooLarge { mapping: factor() })?,
            FactorKind::Repeat => 1,
        };
        let shape = MappingExtents::from_slice(extents);
        let factors = vec![MappingFactor::Digits { kind, extents: shape.clone(), ranks }];
        Ok(MappingParts { factors, shape, workers, layout })
    }

    /// The product, `self` outside.
    fn around(mut self, inner: &MappingParts) -> Result<MappingParts, MappingError> {
        if self.shape.len() != inner.shape.len() {
            return Err(MappingError::DimsDiffer {
                outer: self.text(),
                outer_dims: self.shape.len(),
                inner: inner.text(),
                inner_dims: inner.shape.len(),
            });
        }
        self.factors.extend_from_slice(&inner.factors);
        let too_large = || MappingError::TooLarge { mapping: self.text() };
        let pairs = self.shape.iter().zip(&inner.shape);
        let shape: Option<MappingExtents> = pairs.map(|(outer, inner)| outer.checked_mul(*inner)).collect();
        let workers = self.workers.checked_mul(inner.workers);
        let (Some(shape), Some(workers)) = (shape, workers) else { return Err(too_large()) };
        let layout = match (&self.layout, &inner.layout) {
            (Some(outer), Some(inner)) => Some(outer.compose(inner).map_err(|_| too_large())?),
            _ => None,
        };
        Ok(MappingParts { factors: self.factors, shape, workers, layout })
    }

    fn projected(mut self, dims: &[usize]) -> Result<MappingParts, MappingError> {
        if let Some(&dim) = dims.iter().find(|&&dim| dim >= self.shape.len()) {
            return Err(MappingError::NoSuchDim { mapping: self.text(), dims: self.shape.len(), dim });
        }
        dims.iter().for_each(|&dim| self.shape[dim] = 1);
        let kept: SmallVec<[Dim; 4]> =
            (0..self.shape.len()).filter(|dim| !dims.contains(dim)).map(|dim| Dim(dim as u8)).collect();
        let layout = self.layout.map(|layout| layout.project(&kept));
        let factors = vec![MappingFactor::Projected { factors: self.factors, dims: dims.to_vec() }];
        Ok(MappingParts { factors, layout, ..self })
    }

    fn tasks(&self) -> u32 {
        self.layout.as_ref().map_or(0, |layout| layout.extent(Source::Replica))
    }

    fn check_worker(&self, worker: u32) -> Result<(), MappingError> {
        if worker < self.workers {
            return Ok(());
        }
        Err(MappingError::NoSuchWorker { mapping: self.text(), workers: self.workers, worker })
    }

    /// The coordinate along a dimension of a task of a worker.
    fn coordinate(&self, dim: usize, worker: u32, task: u32) -> u32 {
        let place = Place { lane: worker, replica: task, ..Place::default() };
        self.layout.as_ref().map_or(0, |layout| layout.coordinate(Dim(dim as u8), place))
    }
}
