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
        if tile.iter().any(|(_, extent)| *extent == 0) || elements_per_thread == 0 || lanes == 0 || waves == 0
        {
            return Err(LayoutError::ZeroExtent);
        }
        // This checks for duplicates and for size.
        Layout::row_major(Source::Replica, tile)?;
        let mut rest: SmallVec<[RemainingDim; 4]> = tile
            .iter()
            .rev()
            .map(|(dim, extent)| RemainingDim { dim: *dim, extent: *extent, stride: 1 })
            .collect();
        let mut modes: SmallVec<[Mode; 12]> = SmallVec::new();
        if let Some(innermost) = rest.first_mut() {
            if innermost.extent % elements_per_thread != 0 {
                let RemainingDim { dim, extent, .. } = *innermost;
                return Err(LayoutError::VectorDoesNotDivide { dim, extent, elements: elements_per_thread });
            }
            modes.push(innermost.take(Source::Register, elements_per_thread));
        }
        let chunks: u64 = rest.iter().map(|rest| u64::from(rest.extent)).product();
        let threads = u64::from(lanes) * u64::from(waves);
        if chunks < threads {
            return Err(LayoutError::TooFewChunks { chunks, threads });
        }
        for (source, workers) in [(Source::Lane, lanes), (Source::Wave, waves)] {
            let mut left = workers;
            for rest in &mut rest {
                let common = gcd(left, rest.extent);
                modes.push(rest.take(source, common));
                left /= common;
            }
            if left > 1 {
                let blocking = rest.iter().find(|rest| rest.extent > 1).or(rest.first());
                let (dim, extent) = blocking.map_or((Dim(0), 1), |rest| (rest.dim, rest.extent));
                return Err(LayoutError::WorkersDoNotDivide {
                    source_name: source,
                    workers,
                    left,
                    dim,
                    extent,
                });
            }
        }
        for rest in &mut rest {
            modes.push(rest.take(Source::Replica, rest.extent));
        }
        modes.retain(|mode| mode.extent > 1);
        Layout::new(modes)
    }
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
