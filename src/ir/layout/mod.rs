//! One algebra for everything that maps workers to data.
//!
//! A [`Layout`] says which element of a tile each (wave, lane, replica, register) holds. It is a list of
//! [`Mode`]s; each mode takes one digit of its source's index (least significant digit first) and adds
//! digit times stride to the coordinate of one dimension, or to none when the value is the same for every
//! digit. MMA operands ([`mma`]), cooperative loads ([`Layout::distribute`]) and task mappings
//! ([`task_mapping`]) are all values of this one type. What
//! such a layout costs in LDS is computed by `codegen::target`.
mod compose;
mod distribute;
pub(crate) mod mma;
mod mma_config;
mod mma_type;
mod queries;
pub(crate) mod task_mapping;
#[cfg(test)]
mod tests;
mod transpose;
pub(crate) mod within_wave;

pub use mma::Mma;
pub(crate) use mma::SCALED_BLOCK;
pub use mma_config::MmaConfig;
pub use mma_type::{MatrixShape, MmaType};
pub(crate) use transpose::{UnitDims, UnitSize};

pub(crate) use crate::ir::lanes::LANES;
use cranelift_entity::EntityRef;
use smallvec::SmallVec;
use std::fmt;

/// A dimension of the kernel's iteration space, by index.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dim(pub u8);

impl EntityRef for Dim {
    fn new(index: usize) -> Dim {
        debug_assert!(index <= usize::from(u8::MAX));
        Dim(index as u8)
    }

    fn index(self) -> usize {
        self.0.into()
    }
}

/// What a digit counts.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// Element inside the register vector of one instruction.
    Register,
    /// Which copy of an expanded node.
    Replica,
    /// Lane of a wave.
    Lane,
    /// Wave of a workgroup.
    Wave,
}

impl Source {
    /// Every source, in declaration order.
    pub const ALL: [Source; 4] = [Source::Register, Source::Replica, Source::Lane, Source::Wave];

    /// The name used in text.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Register => "register",
            Source::Replica => "replica",
            Source::Lane => "lane",
            Source::Wave => "wave",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One digit of one source, and what it contributes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mode {
    /// Whose index the digit is taken from.
    pub source: Source,
    /// How many values the digit has.
    pub extent: u32,
    /// Which coordinate it moves; `None` consumes the digit without effect (broadcast).
    pub dim: Option<Dim>,
    /// By how much one step moves it.
    pub stride: u32,
}

impl Mode {
    /// A digit that moves `dim` by `stride`.
    pub const fn new(source: Source, extent: u32, dim: Dim, stride: u32) -> Mode {
        Mode { source, extent, dim: Some(dim), stride }
    }

    /// A digit that moves nothing.
    pub const fn broadcast(source: Source, extent: u32) -> Mode {
        Mode { source, extent, dim: None, stride: 0 }
    }
}

/// A place that holds one element: an index for each source.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Place {
    /// Element inside the register vector.
    pub register: u32,
    /// Copy of the expanded node.
    pub replica: u32,
    /// Lane of the wave.
    pub lane: u32,
    /// Wave of the workgroup.
    pub wave: u32,
}

/// Why a layout does not exist.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum LayoutError {
    /// A digit or a tile without elements.
    #[error("an extent is zero")]
    ZeroExtent,
    /// The indices or coordinates do not fit in 32 bits.
    #[error("the layout is too large: its indices do not fit in 32 bits")]
    TooLarge,
    /// The same dimension twice in a tile.
    #[error("dimension {} is listed twice in a tile", .0.0)]
    DuplicateDim(Dim),
    /// Vectors do not fit a whole number of times into the innermost extent.
    #[error("the innermost extent {extent} (dimension {}) is not a multiple of {elements} elements per thread", .dim.0)]
    VectorDoesNotDivide {
        /// The innermost dimension.
        dim: Dim,
        /// Its extent.
        extent: u32,
        /// Elements per thread asked for.
        elements: u32,
    },
    /// More threads than vectors.
    #[error("the tile has {chunks} vectors for {threads} threads; use fewer elements per thread")]
    TooFewChunks {
        /// Vectors in the tile.
        chunks: u64,
        /// Lanes times waves.
        threads: u64,
    },
    /// No matrix instruction has this shape.
    #[error("not the shape of a matrix instruction: a wave of 64 lanes cannot hold its operands")]
    NotAnMmaShape,
    /// The workers of a source cannot be spread evenly.
    #[error("{workers} workers ({source_name}s) do not spread evenly over the tile: {left} is left over and does not divide extent {extent} (dimension {})", .dim.0)]
    WorkersDoNotDivide {
        /// Name of the source: lane or wave.
        source_name: Source,
        /// How many workers there are.
        workers: u32,
        /// The factor of them that found no extent to divide.
        left: u32,
        /// The dimension that does not divide.
        dim: Dim,
        /// What is left of its extent, in vectors.
        extent: u32,
    },
}

/// Which element of a tile each place holds. See the module's introduction.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    modes: SmallVec<[Mode; 12]>,
}

impl Layout {
    /// A layout from its modes, least significant digit first within each source.
    pub fn new(modes: impl IntoIterator<Item = Mode>) -> Result<Layout, LayoutError> {
        let layout = Layout { modes: modes.into_iter().collect() };
        for source in Source::ALL {
            let extents = layout.of_source(source).map(|mode| mode.extent);
            let product = extents.into_iter().try_fold(1u32, |product, extent| match extent {
                0 => Err(LayoutError::ZeroExtent),
                _ => product.checked_mul(extent).ok_or(LayoutError::TooLarge),
            });
            product?;
        }
        for dim in layout.dims() {
            let greatest = layout.of_dim(dim).try_fold(0u32, |sum, mode| {
                (mode.extent - 1).checked_mul(mode.stride).and_then(|reach| sum.checked_add(reach))
            });
            if greatest.is_none_or(|greatest| greatest == u32::MAX) {
                return Err(LayoutError::TooLarge);
            }
        }
        Ok(layout)
    }

    /// The modes, least significant digit first within each source.
    pub fn modes(&self) -> &[Mode] {
        &self.modes
    }

    /// The modes of one source, least significant digit first.
    pub fn of_source(&self, source: Source) -> impl Iterator<Item = &Mode> + Clone {
        self.modes.iter().filter(move |mode| mode.source == source)
    }

    fn of_dim(&self, dim: Dim) -> impl Iterator<Item = &Mode> + Clone {
        self.modes.iter().filter(move |mode| mode.dim == Some(dim))
    }

    /// The dimensions that any mode moves, ascending.
    pub fn dims(&self) -> SmallVec<[Dim; 12]> {
        let mut dims: SmallVec<[Dim; 12]> = self.modes.iter().filter_map(|mode| mode.dim).collect();
        dims.sort_unstable();
        dims.dedup();
        dims
    }

    /// How many values the index of a source has.
    pub fn extent(&self, source: Source) -> u32 {
        self.of_source(source).map(|mode| mode.extent).product()
    }

    /// The greatest coordinate in `dim`, plus one.
    pub(crate) fn tile_extent(&self, dim: Dim) -> u32 {
        1 + self.of_dim(dim).map(|mode| (mode.extent - 1) * mode.stride).sum::<u32>()
    }

    /// The coordinate in `dim` of the element at `place`. An index beyond its source's extent wraps around.
    pub fn coordinate(&self, dim: Dim, place: Place) -> u32 {
        let mut sum = 0;
        let mut index = [place.register, place.replica, place.lane, place.wave];
        for mode in &self.modes {
            let digits = &mut index[mode.source as usize];
            // Mostly all but one or two of the four are zero, and division is slow.
            if *digits == 0 {
                continue;
            }
            if mode.dim == Some(dim) {
                sum += *digits % mode.extent * mode.stride;
            }
            *digits /= mode.extent;
        }
        sum
    }

    /// The coordinates of the element at `place`, one for each of [`Layout::dims`].
    pub fn coordinates(&self, place: Place) -> SmallVec<[(Dim, u32); 4]> {
        self.dims().into_iter().map(|dim| (dim, self.coordinate(dim, place))).collect()
    }

    /// Every place, registers fastest, then replicas, lanes and waves.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let [registers, replicas, lanes, waves] = Source::ALL.map(|source| self.extent(source));
        (0..waves).flat_map(move |wave| {
            (0..lanes).flat_map(move |lane| {
                (0..replicas).flat_map(move |replica| {
                    (0..registers).map(move |register| Place { register, replica, lane, wave })
                })
            })
        })
    }
}

impl fmt::Display for Layout {
    /// `lane: m*16:1, k*4:4; register: k*4:1` with dimensions by index: `d0*16:1` is extent 16 and stride 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for source in Source::ALL {
            let mut modes = self.of_source(source).peekable();
            if modes.peek().is_none() {
                continue;
            }
            write!(f, "{separator}{source}:")?;
            separator = "; ";
            for (at, mode) in modes.enumerate() {
                let comma = if at == 0 { "" } else { "," };
                match mode.dim {
                    Some(dim) => write!(f, "{comma} d{}*{}:{}", dim.0, mode.extent, mode.stride)?,
                    None => write!(f, "{comma} _*{}", mode.extent)?,
                }
            }
        }
        Ok(())
    }
}
