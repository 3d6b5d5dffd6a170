//! Workgroup-cooperative distribution of a tile: which thread moves which vector.
use super::{Dim, Layout, LayoutError, Mode, Source};
use smallvec::SmallVec;

/// The part of one dimension that is left, counted in steps of `stride` elements.
struct RemainingDim {
    dim: Dim,
    extent: u32,
    stride: u32,
}

impl Layout {
    /// Spreads a dense tile (outermost dimension first) over a workgroup: each thread takes vectors of
    /// `elements_per_thread` along the innermost dimension; lanes, then waves, then replicas take the vectors
    /// in row-major order. Every element is held exactly once.
    ///
    /// Where a count of workers and an extent are not multiples of each other, their greatest common divisor
    /// is taken and the rest moves on to the next dimension outwards. That succeeds exactly when the number
    /// of vectors is a multiple of `lanes * waves`.
    pub fn distribute(
        tile: &[(Dim, u32)],
        elements_per_thread: u32,
        lanes: u32,
        waves: u32,
    ) -> Result<Layout, LayoutError> {
        let (mut rest, mut modes) = vectors(tile, elements_per_thread, [lanes, waves])?;
        let chunks: u64 = rest.iter().map(|rest| u64::from(rest.extent)).product();
        let threads = u64::from(lanes) * u64::from(waves);
        if chunks < threads {
            return Err(LayoutError::TooFewChunks { chunks, threads });
        }
        for (source, workers) in [(Source::Lane, lanes), (Source::Wave, waves)] {
            hand_out_all(&mut rest, &mut modes, source, workers)?;
        }
        with_replicas(rest, modes)
    }

    /// As [`Layout::distribute`], but the first lanes form a block: so many along each of the stated
    /// dimensions, the first of them fastest, as far as the tile has them. Waves take the last of these
    /// dimensions before others.
    pub(crate) fn distribute_in_blocks(
        tile: &[(Dim, u32)],
        elements_per_thread: u32,
        [lanes, waves]: [u32; 2],
        block: &[(Dim, u32)],
    ) -> Result<Layout, LayoutError> {
        let (rest, modes) = vectors(tile, elements_per_thread, [lanes, waves])?;
        in_blocks((rest, modes), [lanes, waves], block)
    }

    /// The same where each thread has elements of several rows: so many of a row, and of so many rows along
    /// a dimension.
    pub(crate) fn distribute_rows_in_blocks(
        tile: &[(Dim, u32)],
        (elements_per_thread, rows): (u32, (Dim, u32)),
        [lanes, waves]: [u32; 2],
        block: &[(Dim, u32)],
    ) -> Result<Layout, LayoutError> {
        let (mut rest, mut modes) = vectors(tile, elements_per_thread, [lanes, waves])?;
        let (dim, elements) = rows;
        for rest in rest.iter_mut().filter(|rest| rest.dim == dim) {
            if rest.extent % elements != 0 {
                return Err(LayoutError::VectorDoesNotDivide { dim, extent: rest.extent, elements });
            }
            modes.push(rest.take(Source::Register, elements));
        }
        in_blocks((rest, modes), [lanes, waves], block)
    }

    /// As [`Layout::distribute`], for a tile that does not give every worker a part of its own: those that
    /// are left over hold copies.
    pub(crate) fn distribute_copies(
        tile: &[(Dim, u32)],
        elements_per_thread: u32,
        lanes: u32,
        waves: u32,
    ) -> Result<Layout, LayoutError> {
        let (mut rest, mut modes) = vectors(tile, elements_per_thread, [lanes, waves])?;
        for (source, workers) in [(Source::Lane, lanes), (Source::Wave, waves)] {
            let left = hand_out(&mut rest, &mut modes, source, workers);
            modes.push(Mode::broadcast(source, left));
        }
        with_replicas(rest, modes)
    }
}

type Remaining = SmallVec<[RemainingDim; 4]>;
type Modes = SmallVec<[Mode; 12]>;

/// Gives workers what is left in blocks, as [`Layout::distribute_in_blocks`] does.
fn in_blocks(
    (mut rest, mut modes): (Remaining, Modes),
    [lanes, waves]: [u32; 2],
    block: &[(Dim, u32)],
) -> Result<Layout, LayoutError> {
    let mut left = lanes;
    for &(dim, most) in block {
        for rest in rest.iter_mut().filter(|rest| rest.dim == dim) {
            let common = gcd(gcd(left, most), rest.extent);
            modes.push(rest.take(Source::Lane, common));
            left /= common;
        }
    }
    hand_out_all(&mut rest, &mut modes, Source::Lane, left)?;
    // What is left for replicas then lies along the first dimension as far as possible.
    let mut left = waves;
    for &(dim, _) in block.iter().rev() {
        for rest in rest.iter_mut().filter(|rest| rest.dim == dim) {
            let common = gcd(left, rest.extent);
            modes.push(rest.take(Source::Wave, common));
            left /= common;
        }
    }
    hand_out_all(&mut rest, &mut modes, Source::Wave, left)?;
    with_replicas(rest, modes)
}

/// What is left of a tile, innermost dimension first, when each thread has vectors of some elements.
fn vectors(
    tile: &[(Dim, u32)],
    elements_per_thread: u32,
    [lanes, waves]: [u32; 2],
) -> Result<(Remaining, Modes), LayoutError> {
    if tile.iter().any(|(_, extent)| *extent == 0) || elements_per_thread == 0 || lanes == 0 || waves == 0 {
        return Err(LayoutError::ZeroExtent);
    }
    // This checks for duplicates and for size.
    Layout::row_major(Source::Replica, tile)?;
    let mut rest: Remaining = tile
        .iter()
        .rev()
        .map(|(dim, extent)| RemainingDim { dim: *dim, extent: *extent, stride: 1 })
        .collect();
    let mut modes = Modes::new();
    if let Some(innermost) = rest.first_mut() {
        if innermost.extent % elements_per_thread != 0 {
            let RemainingDim { dim, extent, .. } = *innermost;
            return Err(LayoutError::VectorDoesNotDivide { dim, extent, elements: elements_per_thread });
        }
        modes.push(innermost.take(Source::Register, elements_per_thread));
    }
    Ok((rest, modes))
}

/// Gives workers parts of what is left, innermost dimension first; returns how often the workers with parts
/// of their own are contained in all of them.
fn hand_out(rest: &mut Remaining, modes: &mut Modes, source: Source, workers: u32) -> u32 {
    let mut left = workers;
    for rest in rest {
        let common = gcd(left, rest.extent);
        modes.push(rest.take(source, common));
        left /= common;
    }
    left
}

/// As [`hand_out`], where every worker has to have a part of its own.
fn hand_out_all(
    rest: &mut Remaining,
    modes: &mut Modes,
    source: Source,
    workers: u32,
) -> Result<(), LayoutError> {
    let left = hand_out(rest, modes, source, workers);
    if left == 1 {
        return Ok(());
    }
    let blocking = rest.iter().find(|rest| rest.extent > 1).or(rest.first());
    let (dim, extent) = blocking.map_or((Dim(0), 1), |rest| (rest.dim, rest.extent));
    Err(LayoutError::WorkersDoNotDivide { source_name: source, workers, left, dim, extent })
}

fn with_replicas(mut rest: Remaining, mut modes: Modes) -> Result<Layout, LayoutError> {
    for rest in &mut rest {
        modes.push(rest.take(Source::Replica, rest.extent));
    }
    modes.retain(|mode| mode.extent > 1);
    Layout::new(modes)
}

impl RemainingDim {
    /// Gives `extent` steps, which divide what is left, to a digit.
    fn take(&mut self, source: Source, extent: u32) -> Mode {
        let mode = Mode::new(source, extent, self.dim, self.stride);
        self.extent /= extent;
        self.stride *= extent;
        mode
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
