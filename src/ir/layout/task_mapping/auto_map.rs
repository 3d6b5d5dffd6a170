//! Mappings that are found for a shape and a number of workers.
use super::text::tuple_text;
use super::{FactorKind, MappingError, MappingExtents, MappingParts, TaskMapping};

/// Shares the tasks of a shape evenly among workers: `repeat(shape / g) * spatial(g)`, where `g` takes from
/// the fastest dimension to the slowest the greatest common divisor of its extent and of the workers that are
/// left. With ranks the dimension of rank 0 is the slowest; without, the first one.
///
/// # Errors
/// Tasks that are no multiple of the workers, with both numbers; an extent of zero, or no workers; ranks that
/// are no order of the dimensions.
///
/// # Example
/// ```
/// use groundswell::mapping::{MappingError, auto_map};
/// assert_eq!(auto_map([8, 96], 64, None)?.to_string(), "repeat(4,3)*spatial(2,32)");
/// let fault = auto_map([8, 41], 64, None).unwrap_err().to_string();
/// assert!(fault.contains("328 tasks of (8,41)"), "{fault}");
/// # Ok::<(), MappingError>(())
/// ```
pub fn auto_map(
    shape: impl AsRef<[u32]>,
    workers: u32,
    ranks: Option<&[usize]>,
) -> Result<TaskMapping, MappingError> {
    let shape = shape.as_ref();
    let shared = Shared::of(shape, workers, ranks)?;
    let tasks = shape.iter().try_fold(1u64, |tasks, &extent| tasks.checked_mul(extent.into()));
    let tasks = tasks.ok_or_else(|| MappingError::TooLarge { mapping: tuple_text(shape) })?;
    if tasks % u64::from(workers) != 0 {
        return Err(MappingError::TasksDoNotDivide { shape: tuple_text(shape), tasks, workers });
    }
    let mut left = workers;
    let mut taken = MappingExtents::from_elem(1, shape.len());
    for &dim in &shared.fastest_first {
        taken[dim] = greatest_common_divisor(left, shape[dim]);
        left /= taken[dim];
    }
    shared.mapping(&taken)
}

/// As [`auto_map`], for tasks that workers cannot share evenly: the mapping, and how many of the workers it
/// has; the others have no tasks. A dimension that fits into the workers that are left is theirs as a whole;
/// the first that does not takes the greatest common divisor, and those after it are repeated.
///
/// # Errors
/// As [`auto_map`], but for the first.
pub fn predicated_auto_map(
    shape: impl AsRef<[u32]>,
    workers: u32,
    ranks: Option<&[usize]>,
) -> Result<(TaskMapping, u32), MappingError> {
    let shape = shape.as_ref();
    let shared = Shared::of(shape, workers, ranks)?;
    let (mut left, mut used) = (workers, 1);
    let mut taken = MappingExtents::from_elem(1, shape.len());
    for &dim in &shared.fastest_first {
        let fits = shape[dim] <= left;
        taken[dim] = if fits { shape[dim] } else { greatest_common_divisor(left, shape[dim]) };
        left /= taken[dim];
        used *= taken[dim];
        if !fits {
            break;
        }
    }
    Ok((shared.mapping(&taken)?, used))
}

/// A shape whose tasks are shared out.
struct Shared<'a> {
    shape: &'a [u32],
    ranks: Option<&'a [usize]>,
    fastest_first: Vec<usize>,
}

impl<'a> Shared<'a> {
    fn of(shape: &'a [u32], workers: u32, ranks: Option<&'a [usize]>) -> Result<Shared<'a>, MappingError> {
        // This checks the ranks and the size.
        MappingParts::of_digits(FactorKind::Repeat, shape, ranks)?;
        if shape.contains(&0) || workers == 0 {
            return Err(MappingError::NothingToShare { shape: tuple_text(shape), workers });
        }
        let mut fastest_first: Vec<usize> = (0..shape.len()).rev().collect();
        if let Some(ranks) = ranks {
            fastest_first.sort_by_key(|&dim| std::cmp::Reverse(ranks[dim]));
        }
        Ok(Shared { shape, ranks, fastest_first })
    }

    /// The mapping in which workers take so much of each dimension.
    fn mapping(&self, taken: &[u32]) -> Result<TaskMapping, MappingError> {
        let repeated: MappingExtents =
            self.shape.iter().zip(taken).map(|(extent, taken)| extent / taken).collect();
        let repeated = MappingParts::of_digits(FactorKind::Repeat, &repeated, self.ranks)?;
        let spatial = MappingParts::of_digits(FactorKind::Spatial, taken, self.ranks)?;
        TaskMapping::of(repeated.around(&spatial)).checked()
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
