//! Questions about a layout, answered from its modes without enumerating places where possible.
//!
//! Each mode moves at most one dimension and digits are independent, so the set of elements held is the
//! product of one set of coordinates for each dimension: questions split by dimension.
use super::{Dim, Layout, Mode, Place, Source};
use smallvec::SmallVec;

impl Layout {
    /// Whether no two places hold the same element.
    pub fn is_injective(&self) -> bool {
        let effective = self.modes.iter().filter(|mode| mode.extent > 1);
        effective.clone().all(|mode| mode.dim.is_some() && mode.stride > 0)
            && self.dims().into_iter().all(|dim| is_injective_in(&self.sorted(dim)))
    }

    /// Whether every element of the dense tile is held at some place. Dimensions that are not listed do not
    /// matter.
    pub fn covers(&self, tile: &[(Dim, u32)]) -> bool {
        tile.iter().all(|(dim, extent)| {
            // By ascending stride the coordinates grow as one gapless run, until a stride jumps over the
            // end of the run: nothing later can reach that gap.
            let mut run = 1u32;
            for mode in self.sorted(*dim) {
                if mode.stride > run {
                    break;
                }
                run += (mode.extent - 1) * mode.stride;
            }
            run >= *extent
        })
    }

    /// Whether a digit of `source` changes nothing: several of its workers hold the same elements.
    pub(crate) fn is_replicated(&self, source: Source) -> bool {
        self.of_source(source).any(|mode| mode.extent > 1 && (mode.dim.is_none() || mode.stride == 0))
    }

    /// Whether no two waves hold the same element.
    pub(crate) fn waves_hold_apart(&self) -> bool {
        !self.is_replicated(Source::Wave)
            && self.dims().into_iter().all(|dim| is_injective_in(&self.sorted(dim)))
    }

    /// Whether a place is in the first of the lanes and waves that hold the same elements: the digits that
    /// move nothing are zero there.
    pub fn is_first_copy(&self, place: Place) -> bool {
        [(Source::Lane, place.lane), (Source::Wave, place.wave)].into_iter().all(|(source, index)| {
            let mut rest = index;
            self.of_source(source).all(|mode| {
                let digit = rest % mode.extent;
                rest /= mode.extent;
                mode.dim.is_some() || digit == 0
            })
        })
    }

    /// Whether lanes or waves hold the same elements as others.
    pub(crate) fn has_copies(&self) -> bool {
        let across = |mode: &&Mode| matches!(mode.source, Source::Lane | Source::Wave);
        self.modes.iter().filter(across).any(|mode| mode.dim.is_none() && mode.extent > 1)
    }

    /// How many consecutive registers, in aligned groups, advance `dim` by one each and nothing else: the
    /// width that one memory access can have.
    pub(crate) fn contiguous_run(&self, dim: Dim) -> u32 {
        let canonical = self.canonical();
        match canonical.of_source(Source::Register).next() {
            Some(mode) if mode.dim == Some(dim) && mode.stride == 1 => mode.extent,
            _ => 1,
        }
    }

    /// The same up to blocks of `most`, which is a power of two, in which the first register of a group has
    /// a coordinate that is a multiple of the result.
    pub(crate) fn aligned_run(&self, dim: Dim, most: u32) -> u32 {
        let canonical = self.canonical();
        let others = canonical.modes().iter().filter(|mode| mode.dim == Some(dim) && mode.stride > 1);
        let steps = others.map(|mode| mode.stride).chain([self.contiguous_run(dim), most]);
        1 << steps.map(u32::trailing_zeros).min().unwrap_or(0)
    }

    /// Bits of the lane number that are digits of `dim`.
    pub(crate) fn lane_bits(&self, dim: Dim) -> u32 {
        let (mut bits, mut weight) = (0, 1);
        for mode in self.of_source(Source::Lane) {
            if mode.dim == Some(dim) {
                // Lanes are a power of two, and so are their digits.
                bits |= weight * mode.extent - weight;
            }
            weight *= mode.extent;
        }
        bits
    }

    /// Whether the lanes that share `dim` are one or more whole rows of 16, as the lowest bits of the lane
    /// number: scans go from row to row then.
    pub(crate) fn scans_rows(&self, dim: Dim) -> bool {
        matches!(self.lane_bits(dim), 0xf | 0x1f | 0x3f)
    }

    /// Whether every lane holds the same elements in both, in whatever registers and replicas.
    pub(crate) fn lanes_hold_alike(&self, other: &Layout) -> bool {
        let held = |layout: &Layout| {
            let canonical = layout.canonical();
            let place = |mode: &Mode| match mode.source {
                Source::Register | Source::Replica => (false, mode.dim, mode.stride),
                Source::Lane | Source::Wave => (true, None, 0),
            };
            let mut digits: SmallVec<[(Source, Mode); 32]> = SmallVec::new();
            for mode in canonical.modes() {
                let source = match mode.source {
                    Source::Register | Source::Replica => Source::Register,
                    source => source,
                };
                let (mut stride, mut left) = (mode.stride, mode.extent);
                while left > 1 {
                    let extent = if left.is_multiple_of(2) { 2 } else { left };
                    digits.push((source, Mode { source, extent, stride, ..*mode }));
                    (stride, left) = (stride * extent, left / extent);
                }
            }
            digits.sort_by_key(|(source, mode)| (*source, place(mode)));
            digits
        };
        held(self) == held(other)
    }

    fn sorted(&self, dim: Dim) -> SmallVec<[Mode; 12]> {
        let mut modes: SmallVec<[Mode; 12]> =
            self.of_dim(dim).filter(|mode| mode.extent > 1 && mode.stride > 0).copied().collect();
        modes.sort_unstable_by_key(|mode| mode.stride);
        modes
    }
}

/// Whether the digits of one dimension, by ascending stride, never add up to the same coordinate twice.
fn is_injective_in(modes: &[Mode]) -> bool {
    let (mut places, mut run) = (1u64, 1u64);
    let mut nested = true;
    for mode in modes {
        nested &= u64::from(mode.stride) >= run;
        places *= u64::from(mode.extent);
        run += u64::from(mode.extent - 1) * u64::from(mode.stride);
        if places > run {
            return false;
        }
    }
    // Digits that do not nest may still avoid each other, like strides 2 and 3; only listing the sums tells.
    nested || {
        let mut sums: Vec<u32> = vec![0];
        for mode in modes {
            let steps = (0..mode.extent).map(|digit| digit * mode.stride);
            sums = steps.flat_map(|step| sums.iter().map(move |sum| sum + step)).collect();
        }
        sums.sort_unstable();
        sums.windows(2).all(|pair| pair[0] != pair[1])
    }
}
