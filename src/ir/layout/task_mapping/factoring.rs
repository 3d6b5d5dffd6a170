//! The product of factors that says what a layout says.
use super::{FactorKind, MappingError, MappingExtents, MappingParts, TaskMapping};
use crate::ir::layout::{Dim, Layout, Mode, Source};
use smallvec::SmallVec;

impl TaskMapping {
    /// The mapping of a layout over dimensions 0 to `dims - 1`: lanes, then waves, are workers; registers,
    /// then replicas, are the order of their tasks. Of the products that say so it is one with few factors.
    ///
    /// # Errors
    /// A layout that no product has, with `object` as its name: one that holds copies, or whose tiles do not
    /// lie in one another.
    pub(crate) fn of_layout(layout: &Layout, dims: usize, object: &str) -> Result<TaskMapping, MappingError> {
        let refused = |reason| MappingError::NoForm { object: object.to_owned(), reason };
        let canonical = layout.canonical();
        if canonical.modes().iter().any(|mode| mode.dim.is_none()) {
            return Err(refused("some of its lanes or registers hold copies of the same elements"));
        }
        let digits = |sources: [Source; 2]| {
            let mut digits: Vec<Mode> =
                sources.into_iter().flat_map(|s| canonical.of_source(s).copied()).collect();
            digits.reverse();
            digits
        };
        // The last is the least significant.
        let mut workers = digits([Source::Lane, Source::Wave]);
        let mut tasks = digits([Source::Register, Source::Replica]);
        let mut inner = MappingExtents::from_elem(1, dims);
        let mut product = MappingParts::of_digits(FactorKind::Repeat, &inner, None)?;
        let mut is_first = true;
        while !(workers.is_empty() && tasks.is_empty()) {
            let repeated = take_factor(&mut tasks, &inner);
            let (kind, run) = match repeated.is_empty() {
                false => (FactorKind::Repeat, repeated),
                true => (FactorKind::Spatial, take_factor(&mut workers, &inner)),
            };
            if run.is_empty() {
                return Err(refused("its tiles do not lie in one another"));
            }
            let mut extents = MappingExtents::from_elem(1, dims);
            for mode in &run {
                let dim = usize::from(mode.dim.map_or(0, |dim| dim.0));
                extents[dim] = mode.extent;
                inner[dim] *= mode.extent;
            }
            let factor = MappingParts::of_digits(kind, &extents, Some(&ranks(&run, dims)))?;
            product = if is_first { factor } else { factor.around(&product)? };
            is_first = false;
        }
        Ok(TaskMapping { made: Ok(product) })
    }
}

/// Takes the digits from the end that one factor around tiles of the extents `inner` has.
fn take_factor(digits: &mut Vec<Mode>, inner: &[u32]) -> SmallVec<[Mode; 4]> {
    let mut run: SmallVec<[Mode; 4]> = SmallVec::new();
    while let Some(&mode) = digits.last() {
        let tile = mode.dim.and_then(|dim| inner.get(usize::from(dim.0)));
        if tile != Some(&mode.stride) || run.iter().any(|taken| taken.dim == mode.dim) {
            break;
        }
        run.push(mode);
        digits.pop();
    }
    run
}

/// The ranks of a factor whose digits these are, the fastest first. Dimensions without digits may have any:
/// they keep their places if that gives the usual order, which needs no ranks in text.
fn ranks(run: &[Mode], dims: usize) -> Vec<usize> {
    let by_rows = run.windows(2).all(|pair| pair[0].dim > pair[1].dim);
    if by_rows {
        return (0..dims).collect();
    }
    let has_digit = |dim: usize| run.iter().position(|mode| mode.dim == Some(Dim(dim as u8)));
    let mut slowest_first: Vec<usize> = (0..dims).filter(|&dim| has_digit(dim).is_none()).collect();
    slowest_first.extend(run.iter().rev().filter_map(|mode| mode.dim).map(|dim| usize::from(dim.0)));
    let mut ranks = vec![0; dims];
    slowest_first.iter().enumerate().for_each(|(rank, &dim)| ranks[dim] = rank);
    ranks
}
