//! What passes find out about a kernel: components of the kernel entity and of its nodes. They are part of
//! the representation, so the text form prints and reads them, the verifier looks at them and the interpreter
//! executes what they say.

use cranelift_entity::PrimaryMap;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::expr::{Expr, ExprArena, ExprError, Symbol};
use super::layout::{Dim, Layout, Mma, MmaType, UnitDims, UnitSize};
use super::node::{Dims, Origin, Trip, ValueType};
use super::reasons::{MaskReason, Narrowness, UnsharedReason};

/// The pass that left the kernel as it is: the passes after that one still have to run. On the kernel entity
/// of a kernel that was read from such a text.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelStage(pub Arc<str>);

/// The arena of all expressions of this compilation. On the kernel entity, whose components move whenever a
/// pass adds one: an arena is some kilobytes, which stay where they are.
#[derive(Component, Default)]
pub(crate) struct Expressions(pub Box<ExprArena>);

/// How one dimension is spread over the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DimGeometry {
    /// The dimension's symbol.
    pub symbol: Symbol,
    /// Its size: a number, or the symbol itself when it is dynamic; of a scaled dimension the blocks of that.
    pub size: Expr,
    /// Its size when it is known at compile time.
    pub static_size: Option<u32>,
    /// Of a scaled dimension: the one whose blocks it counts, and the elements of a block. It is spread as
    /// that one is.
    pub scaled_from: Option<(Dim, u32)>,
    /// Grid axis and elements per workgroup.
    pub workgroup: Option<(u32, u32)>,
    /// Elements per loop iteration.
    pub tiling: Option<u32>,
    /// The first and the end of the iterations that loops run, if these are not all: expressions of dynamic
    /// symbols and of the numbers that the hardware gives a workgroup.
    pub iterations: Option<(Expr, Expr)>,
    /// Of loops that do not run every iteration from the first on: the number of the tile that iteration 0
    /// takes, and tiles from one iteration to the next. Without it iterations have the numbers of their
    /// tiles.
    pub step: Option<(Expr, u32)>,
    /// Limits of the loops over it that follow from masks.
    pub(crate) masks: LoopMasks,
    /// Elements per wave.
    pub wave: Option<u32>,
    /// Elements that a workgroup's lanes cover, if it has the whole dimension and they cover more than there
    /// are.
    pub covered: Option<u32>,
    /// Index of the author's location of the latest constraint on the dimension.
    pub origin: u32,
}

/// Limits of loops over a dimension that follow from masks: first numbers and ends.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct LoopMasks {
    /// Iterations of loops that a pass has divided.
    pub(crate) divided: SmallVec<[(Expr, Expr); 1]>,
    /// Tiles in which masks hide nothing ([`UnmaskedTiles`]).
    pub(crate) unmasked: SmallVec<[(Expr, Expr); 1]>,
}

impl DimGeometry {
    /// All numbers of iterations and tiles that the code of a kernel computes.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (Expr, Expr)> + '_ {
        self.iterations.iter().chain(&self.masks.divided).chain(&self.masks.unmasked).copied()
    }

    /// A dimension that nothing divides yet.
    pub(crate) fn new(symbol: Symbol, size: Expr, static_size: Option<u32>) -> DimGeometry {
        DimGeometry {
            symbol,
            size,
            static_size,
            scaled_from: None,
            workgroup: None,
            tiling: None,
            iterations: None,
            step: None,
            masks: LoopMasks::default(),
            wave: None,
            covered: None,
            origin: u32::MAX,
        }
    }

    /// The number of the tile that an iteration of a loop takes.
    ///
    /// # Errors
    /// It leaves the range of 64 bits.
    pub(crate) fn tile_of(&self, iteration: Expr, arena: &mut ExprArena) -> Result<Expr, ExprError> {
        let Some((first, step)) = self.step else { return Ok(iteration) };
        let step = arena.int(i64::from(step));
        let beyond = arena.mul(iteration, step)?;
        arena.add(first, beyond)
    }

    /// Tiles from one iteration of a loop to the next.
    pub(crate) fn tiles_per_iteration(&self) -> u32 {
        self.step.map_or(1, |(_, step)| step)
    }

    /// Elements of the dimension that a workgroup touches at a time; `None` for a dynamic dimension without
    /// constraint.
    pub(crate) fn workgroup_extent(&self) -> Option<u32> {
        self.tiling.or(self.workgroup.map(|w| w.1)).or(self.covered).or(self.static_size)
    }

    /// Elements of the dimension that a wave touches at a time.
    pub(crate) fn wave_extent(&self) -> Option<u32> {
        self.wave.or_else(|| self.workgroup_extent())
    }
}

/// Memories that may be one tensor, by their names: one that is only read, and one that is written, of which
/// every element replaces the one that it was computed from. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct InPlace(pub Vec<[Arc<str>; 2]>);

/// Of a memory that holds two elements in a byte: what it is to its user. The node itself is one of bytes.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct PackedElements(pub ValueType);

/// The kernel's distribution with all symbols bound. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
pub struct Geometry {
    /// One entry per [`Dim`].
    pub dims: PrimaryMap<Dim, DimGeometry>,
    /// Waves per workgroup along the grid axes. Wave number `w` of a workgroup is at
    /// `(w mod waves[0], w / waves[0] mod waves[1], ...)`.
    pub waves: [u32; 3],
    /// Workgroups along the grid axes, three or more, as expressions of dynamic symbols. The hardware's third
    /// axis is all of those from the third on, of which the first one counts fastest.
    pub grid: SmallVec<[Expr; 3]>,
    /// The place of a workgroup along each of these axes, as expressions of the numbers that the hardware
    /// gives it (`GridSymbol::Workgroup` of its axes); empty if these are the places.
    pub places: SmallVec<[Expr; 3]>,
    /// The most workgroups of a launch, which share all places of the grid; each place has a workgroup of its
    /// own if there is no limit.
    pub persistent: Option<u32>,
    /// Matrix instruction of `mma` nodes that do not choose.
    pub mma: Option<MmaType>,
    /// Symbols that are kernel arguments, in argument order.
    pub dynamic: Vec<Symbol>,
    /// Symbols that the kernel sets to values on which the tiles of masks depend.
    pub mask_values: Vec<Symbol>,
}

impl Geometry {
    /// Entry of a dimension.
    pub fn dim(&self, dim: Dim) -> &DimGeometry {
        &self.dims[dim]
    }

    /// Elements along each of some dimensions in the workgroup's tile, which is what an LDS buffer holds.
    pub(crate) fn workgroup_tile(&self, dims: &[Dim]) -> Option<SmallVec<[u32; 4]>> {
        dims.iter().map(|&dim| self.dim(dim).workgroup_extent()).collect()
    }

    /// Elements of each iteration of loops over a dimension, where these take one tile after the other.
    pub(crate) fn loop_tile(&self, axis: Dim) -> Option<u32> {
        let entry = self.dim(axis);
        entry.tiling.filter(|_| entry.step.is_none())
    }

    /// The dimension that loops walk along where they walk along `dim`: itself or, of a scaled one, its base.
    pub(crate) fn loop_dim(&self, dim: Dim) -> Dim {
        self.dims.get(dim).and_then(|entry| entry.scaled_from).map_or(dim, |(base, _)| base)
    }

    /// The one of `dims` that a loop over `axis` walks along.
    pub(crate) fn walked(&self, dims: &[Dim], axis: Dim) -> Option<Dim> {
        dims.iter().copied().find(|&dim| self.loop_dim(dim) == axis)
    }

    /// The dimension that the waves along an axis of [`Geometry::waves`] divide: the one whose workgroups lie
    /// along that axis of the grid. Dimensions that no workgroups divide take the other axes, in their order.
    pub(crate) fn wave_dim(&self, axis: u32) -> Option<Dim> {
        let divided = |own: u32| {
            move |dim: &DimGeometry| dim.wave.is_some() && dim.workgroup.is_some_and(|w| w.0 == own)
        };
        if let Some(dim) = self.dims.keys().find(|&dim| divided(axis)(&self.dims[dim])) {
            return Some(dim);
        }
        let before = (0..axis).filter(|&other| !self.dims.values().any(divided(other))).count();
        let is_whole =
            |dim: &DimGeometry| dim.wave.is_some() && dim.workgroup.is_none() && dim.scaled_from.is_none();
        let whole = self.dims.iter().filter(|(_, dim)| is_whole(dim));
        whole.map(|(dim, _)| dim).nth(before)
    }

    /// True if the code of a kernel computes with the numbers of its workgroup.
    pub(crate) fn counts_workgroups(&self) -> bool {
        !self.places.is_empty() || self.dims.values().any(|dim| dim.limits().next().is_some())
    }

    /// True if a pass has divided the iterations of some loop.
    pub(crate) fn divides_loops(&self) -> bool {
        self.dims.values().any(|dim| !dim.masks.divided.is_empty())
    }

    /// How many loops there are instead of those whose iterations a pass has divided.
    pub(crate) fn divided_loops(&self) -> u32 {
        self.dims.values().map(|dim| dim.masks.divided.len() as u32).sum()
    }

    /// True if the author says which iterations some loop runs.
    pub(crate) fn chooses_iterations(&self) -> bool {
        self.dims.values().any(|dim| dim.iterations.is_some())
    }

    /// The matrix instruction of `mma` nodes that do not choose, if the kernel says which one it is.
    pub(crate) fn instruction(&self) -> Option<Mma> {
        if let Some(MmaType::Instruction(mma)) = self.mma { Some(mma) } else { None }
    }

    /// Waves per workgroup.
    pub(crate) fn wave_count(&self) -> u32 {
        self.waves.iter().product()
    }
}

/// On a loop: it runs at most once and covers the part of the dimension that whole tiles leave over.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub struct Remainder;

/// On a loop: masks hide something in its tiles, and nothing in those of the loop that it was divided from.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct MaskedPart;

/// On a read or write of global memory: which elements it may not touch, and how wide one instruction may be.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub struct Bounds {
    /// Dimensions along which the access can leave the tensor.
    pub leaves: SmallVec<[Dim; 4]>,
    /// Those of them along which it must read zeros or write nothing.
    pub masks: SmallVec<[Dim; 4]>,
    /// Why it has masks; none without them.
    pub masked_as: Option<MaskReason>,
    /// Of a mapped access, whose other dimensions are those of its value: dimensions of the memory along
    /// which a coordinate can be outside of it.
    pub outside: SmallVec<[Dim; 4]>,
    /// Consecutive elements that are all inside or all outside: no instruction covers more.
    pub granule: u32,
    /// Of an access of rows: the elements that would be moved at once if that did not keep them apart, and
    /// why it does.
    pub narrowed: Option<(u32, Narrowness)>,
}

/// On an access that takes more instructions than the elements that a lane has side by side would need: what
/// lowering can prove of its coordinates with the symbols that it has for lanes and waves, and no pass before
/// it.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct SplitAccess {
    /// Elements that an instruction moves for each lane.
    pub(crate) elements: u32,
    /// Elements that it could move.
    pub(crate) possible: u32,
    pub(crate) why: Narrowness,
}

/// Why a node is there: it ends a conversion of layouts, which an operation asked for. The conversion begins
/// with the operand of the first rearrangement or, through LDS, with the value that is written there.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct LayoutConversion {
    /// The word of the operation, and where its author wrote it; a loop hands values on.
    pub user: &'static str,
    pub origin: Origin,
    /// Vector instructions that it is estimated to take.
    pub vector: u32,
    /// Instructions of LDS.
    pub lds: u32,
}

/// On a read of a shared memory: it does not go through LDS.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct Unshared(pub UnsharedReason);

/// On a barrier, a wait or another control: the schedule of a loop has put it there.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct OfSchedule;

/// XOR swizzle of an LDS buffer: unit number `u` of row `r` is stored at unit `u ^ phase(r)`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Swizzle {
    /// Bytes that move as one unit: a power of two, and no access is wider.
    pub unit: u32,
    /// Rows that share a phase: rows that together fill all banks once.
    pub group: u32,
    /// Number of phases, a power of two. Where a row has fewer units, the units of the rows after it count on
    /// from its own, and those of all rows that lie in as many units are exchanged.
    pub phases: u32,
    /// Rows of a block, a power of two: phases begin anew with each block, one later than with the block
    /// before. Rows that are a block apart, which a lane writes that holds a column of the block, are in
    /// different banks as well as rows that follow one another.
    pub block: Option<u32>,
}

impl Swizzle {
    /// What a row's units are XORed with. A XOR of bits of the row: the phase of a sum of rows without common
    /// bits is the XOR of their phases.
    pub fn phase(&self, row: u32) -> u32 {
        let of_block = self.block.map_or(0, |block| row / block);
        ((row / self.group) ^ of_block) % self.phases
    }

    /// Bytes within which units are exchanged.
    pub fn span(&self) -> u32 {
        self.unit * self.phases
    }

    /// Rows after which phases repeat.
    pub fn period(&self) -> u32 {
        self.group.max(self.block.unwrap_or(1)) * self.phases
    }
}

/// On an allocation: where and how its tile lies in LDS.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub struct LdsBuffer {
    /// Dimensions, slowest first.
    pub dims: Dims,
    /// Elements per dimension, in the order of `dims`.
    pub extents: SmallVec<[u32; 4]>,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Bytes from one row (all dims but the last) to the next.
    pub pitch: u32,
    /// Room inside rows, if there is some.
    pub spacing: Option<WordSpacing>,
    /// XOR swizzle inside rows.
    pub swizzle: Option<Swizzle>,
    /// First byte in the workgroup's LDS.
    pub offset: u32,
    /// Size of one copy in bytes.
    pub bytes: u32,
    /// How many copies there are: iteration `i` of a pipelined loop uses copy `i` modulo this number.
    pub copies: u32,
}

/// Room inside rows of an LDS buffer: so many elements lie side by side, and then comes room.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WordSpacing {
    /// Elements that lie side by side.
    pub together: u32,
    /// From the first of them to the first of the next ones, in elements.
    pub apart: u32,
}

impl LdsBuffer {
    /// Where an element of a row lies, in elements.
    pub(crate) fn place_in_row(&self, column: u32) -> u32 {
        self.spacing
            .map_or(column, |WordSpacing { together, apart }| column / together * apart + column % together)
    }

    /// Elements of that layout as places in rows; none if a digit of it counts some of what lies side by side
    /// and more.
    pub(crate) fn places_in_rows(&self, layout: Layout) -> Option<Layout> {
        match (self.spacing, self.dims.last()) {
            (Some(WordSpacing { together, apart }), Some(&inner)) => layout.spaced(inner, [together, apart]),
            _ => Some(layout),
        }
    }

    /// Alignment of every copy, which LDS accesses of 16 bytes need.
    pub(crate) const ALIGN: u32 = 16;

    /// Bytes from one element to the next along a dimension, in a buffer without swizzle.
    pub(crate) fn stride(&self, dim: Dim) -> u32 {
        let mut stride = self.element_bytes;
        for (at, (&own, &extent)) in self.dims.iter().zip(&self.extents).enumerate().rev() {
            if own == dim {
                return stride;
            }
            let is_row = at + 1 == self.dims.len();
            stride = if is_row { self.pitch } else { stride.saturating_mul(extent) };
        }
        0
    }

    /// Bytes from one copy to the next.
    pub(crate) fn copy_stride(&self) -> u32 {
        self.bytes.next_multiple_of(LdsBuffer::ALIGN)
    }

    /// Bytes of all copies.
    pub(crate) fn all_bytes(&self) -> u32 {
        self.copy_stride().saturating_mul(self.copies)
    }
}

/// On a read of LDS: lanes load other elements than they get, parts of rows, and the instruction turns these
/// among sixteen lanes, so that each lane has elements of several rows. The tile lies in LDS as in memory.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct TransposingRead {
    /// The dimension along which rows lie in LDS.
    pub along: Dim,
    /// Elements of a row that a lane loads with one instruction.
    pub elements: u32,
}

impl TransposingRead {
    /// Bytes that a lane loads with one instruction, if elements are not of 6 bits.
    pub(crate) const WIDTH: u32 = 8;
    /// Elements of 6 bits that a lane loads, as many as of 4 bits (CDNA4 ISA guide, `DS_READ_B96_TR_B6`).
    const OF_6_BITS: u32 = 16;

    /// Elements of so many bits that a lane loads with one instruction.
    pub(crate) const fn elements_of(bits: u32) -> u32 {
        if bits == 6 { TransposingRead::OF_6_BITS } else { 8 * TransposingRead::WIDTH / bits }
    }

    /// Bits of an element.
    pub(crate) fn bits(self, units: Option<&TurnedUnits>) -> u32 {
        units.map_or(8 * TransposingRead::WIDTH / self.elements, |units| units.bits)
    }

    /// Bytes that a lane loads with one instruction.
    pub(crate) fn width(self, units: Option<&TurnedUnits>) -> u32 {
        self.elements * self.bits(units) / 8
    }

    /// How elements of LDS lie that it loads: of words of 6-bit floats three in the room of four, because 12
    /// bytes have to begin at a multiple of 16 (rocRoller, `extraLDSBytesPerElementBlock`).
    pub(crate) fn spacing(self, units: Option<&TurnedUnits>) -> Option<WordSpacing> {
        let words = self.width(units) * 8 / WORD_BITS;
        (!words.is_power_of_two()).then(|| WordSpacing { together: words, apart: words.next_power_of_two() })
    }

    /// The elements that lanes load for a value of that layout, or, of a value whose units are turned, the
    /// units of the memory; none if the instruction does not give it.
    pub(crate) fn loaded(self, layout: &Layout, units: Option<&TurnedUnits>) -> Option<Layout> {
        let Some(units) = units else { return layout.before_transposing(self.elements, self.along) };
        let layout = layout.in_elements(units.held, units.size())?;
        layout.before_transposing(self.elements, self.along)?.in_units(units.stored, units.size())
    }
}

/// On a read of a memory whose elements share units, bytes of two or blocks of 32: those of the value lie
/// along another dimension than those of the memory. `[K, N/2]` is read as `[K/2, N]`, and `[K, N/32, 6]` as
/// `[K/32, N, 6]`, because a product sums along K.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct TurnedUnits {
    /// What elements lie along that share a unit of the memory.
    pub stored: UnitDims,
    /// The same of the value.
    pub held: UnitDims,
    /// Elements of a unit.
    pub elements: u32,
    /// Bits of an element.
    pub bits: u32,
}

impl TurnedUnits {
    /// That of a read, or of the one of which it is a piece.
    pub(crate) fn of(world: &World, node: Entity) -> Option<&TurnedUnits> {
        let logical = world.get::<Expansion>(node).map_or(node, |expansion| expansion.logical);
        world.get::<TurnedUnits>(logical)
    }

    /// How many elements and words units have.
    pub(crate) fn size(&self) -> UnitSize {
        let words = if self.stored.words.is_some() { self.elements * self.bits / WORD_BITS } else { 1 };
        UnitSize { elements: self.elements, words }
    }

    /// What the word of the value at a coordinate is made of.
    pub(crate) fn parts(&self, coordinate: impl Fn(Dim) -> u32) -> SmallVec<[UnitPart; 16]> {
        let unit = self.elements * self.bits;
        let word = if self.stored.words.is_some() { WORD_BITS } else { unit };
        let first = self.held.words.map_or(0, &coordinate) * word;
        let along = coordinate(self.stored.elements) % self.elements * self.bits;
        let mut parts = SmallVec::new();
        let mut at = first;
        while at < unit.min(first + word) {
            let stored = along + at % self.bits;
            let left = (self.bits - at % self.bits).min(first + word - at);
            let bits = left.min(word - stored % word);
            let (number, from, to) = (at / self.bits, stored % word, at - first);
            parts.push(UnitPart { number, word: stored / word, from, to, bits });
            at += bits;
        }
        parts
    }

    /// The coordinate along a dimension of the memory of a part of a word of the value, which is at
    /// `coordinate`.
    pub(crate) fn stored_coordinate(
        &self,
        dim: Dim,
        part: &UnitPart,
        coordinate: impl Fn(Dim) -> u32,
    ) -> u32 {
        if dim == self.held.elements {
            coordinate(self.held.units) * self.elements + part.number
        } else if dim == self.stored.units {
            coordinate(self.stored.elements) / self.elements
        } else if Some(dim) == self.stored.words {
            part.word
        } else {
            coordinate(dim)
        }
    }
}

/// Bits of a word, where units have several.
const WORD_BITS: u32 = 32;

/// Bits of an element that are in one word of the memory and go to one word of the value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnitPart {
    /// The number of the element in its unit of the value.
    number: u32,
    /// The word of the memory's unit.
    word: u32,
    /// The lowest of the bits there.
    from: u32,
    /// The same in the word of the value.
    to: u32,
    /// How many bits.
    bits: u32,
}

impl UnitPart {
    /// The bits as they are in the word of the value, of the word of the memory.
    pub(crate) fn of(&self, stored: u64) -> u64 {
        (stored >> self.from & ((1 << self.bits) - 1)) << self.to
    }
}

/// On an LDS access: how many times longer its slowest instruction takes than without conflicts (1: no
/// conflict).
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct BankConflicts(pub u32);

/// On the kernel entity: LDS bytes per workgroup.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct LdsBytes(pub u32);

/// Where an expanded node comes from.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
pub struct Expansion {
    /// The logical node.
    pub logical: Entity,
    /// Which replica of its layout.
    pub replica: u32,
    /// For `mma`: first register elements of lhs and rhs that this step multiplies; with scales, first those
    /// of the scales.
    pub slice: u32,
    /// Which iteration of the surrounding loop the node belongs to.
    pub iteration: Iteration,
    /// Which of the copies that unrolling made it is.
    pub copy: u32,
}

impl Expansion {
    /// The first replica of a logical node, in the loop as it was written.
    pub fn of(logical: Entity) -> Expansion {
        Expansion { logical, replica: 0, slice: 0, iteration: Iteration::default(), copy: 0 }
    }

    /// What a node is a replica of; a node that was not expanded is its own first replica.
    pub fn at(world: &World, node: Entity) -> Expansion {
        world.get::<Expansion>(node).copied().unwrap_or(Expansion::of(node))
    }
}

/// What the number of an iteration is counted from.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Base {
    /// The running iteration of a loop as it was written.
    #[default]
    Written,
    /// The first iteration of a pipelined loop.
    Start,
    /// The first iteration of the running trip of its steady state, or of an unrolled loop.
    Trip,
    /// The first iteration that its steady state does not begin.
    End,
}

/// The iteration that a node belongs to.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Iteration {
    /// Where counting starts.
    pub base: Base,
    /// How many iterations ahead of that.
    pub ahead: u32,
}

/// Memories and scalars of the kernel in argument order. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Arguments(pub Vec<Entity>);

/// Number of expanded nodes. On the kernel entity.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub struct ExpandedCount(pub u32);

/// The nodes of the kernel's body before it was expanded: the nodes that [`Expansion::logical`] refers to are
/// in it, or in its loops. On the kernel entity.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
#[component(storage = "SparseSet")]
pub struct LogicalBody(pub Vec<Entity>);

/// On a loop: it runs the iterations that an unrolled loop leaves, and schedules do not name its nodes.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct Rest;

/// On a loop: its waves do not run in step. For each group, how many barriers more than the others it has met
/// before the loop.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct Staggered(pub SmallVec<[u32; 4]>);

/// On a loop with [`Staggered`]: its accesses of LDS are over when its waves have met after it, also as far
/// as other waves can see.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct Settled;

/// On a loop with [`Staggered`]: what is read of LDS in front of it is over before its waves write there.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct EnteredInOrder;

/// On a loop with [`Staggered`]: so many loads may be under way when waves enter it, because its own waits
/// are for them.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct EnteredWithLoads(pub u32);

/// On a product: those of its operands, by number, that may bring what changes the sum from beyond the end of
/// the dimension that is summed over. The first two are the factors, the others their scales.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct PaddedFactors(pub SmallVec<[u32; 4]>);

/// On a product of numbers: the operand at this place is a factor that is one in most elements most of the
/// time.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct UnitFactor(pub u32);

/// On a selection in a loop: in these tiles it selects its first value for every element.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct UnmaskedTiles(pub Trip);

/// On arithmetic of which only selections with [`UnmaskedTiles`] make use, as their conditions: it is done
/// where they are made.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct OnDemand;

/// On a cast to bf16: what rounds numbers keeps NaNs, too, because none of them has bits that are cut off, or
/// ones down to these.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct RoundsPlainly;

/// Why a pass has put a barrier: logical node `later` touches memory that `earlier` touches in other waves,
/// in front of it or in an iteration before. On the barrier.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct OrderedAccesses {
    pub later: Entity,
    pub earlier: Entity,
}

/// Where reductions and products could take elements that do not exist, others stand that change nothing. On
/// the kernel entity.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct FoldsMasked;

/// Barriers have been placed wherever waves have to wait for each other. On the kernel entity.
#[derive(Component, Copy, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct Synchronised;

/// How tiles come into LDS. On the kernel entity, if loads straight into LDS were asked for.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct DirectLoads {
    /// Tiles that are loaded straight into LDS.
    pub tiles: u32,
    /// Why the first tile that is not loaded in this way goes through registers; empty if there is none.
    pub why: String,
}

/// What became of the loops. On the kernel entity, if a schedule was asked for.
#[derive(Component, Clone, PartialEq, Eq, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct ScheduledLoops {
    /// Name of the schedule that at least one loop got.
    pub applied: &'static str,
    /// Why loops did not get it; empty if all did.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::Swizzle;

    /// What lowering relies on: it computes the phase of a lane's rows, and XORs into it that of the rows
    /// that replicas add.
    #[test]
    fn phases_of_rows_without_common_bits_add_up() {
        for (group, phases, block) in
            [(1, 8, None), (2, 4, Some(8)), (1, 8, Some(8)), (4, 2, Some(16)), (2, 4, Some(2))]
        {
            let swizzle = Swizzle { unit: 16, group, phases, block };
            for row in 0..256 {
                for other in (0..256).filter(|other| other & row == 0) {
                    assert_eq!(swizzle.phase(row + other), swizzle.phase(row) ^ swizzle.phase(other));
                }
                assert_eq!(swizzle.phase(row + swizzle.period()), swizzle.phase(row), "{swizzle:?}");
            }
        }
    }
}

/// What is added to a coordinate that a check of bounds notes: 0 stands for nothing.
pub(crate) const BOUNDS_BIAS: i64 = 1 << 32;

/// A coordinate that the kernel checks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CheckedCoordinate {
    /// The memory that it is to stay inside of.
    pub memory: Arc<str>,
    /// The dimension of the memory.
    pub dim: Dim,
    /// The place of the access.
    pub origin: Origin,
}

/// What the elements of a log are about: checks of bounds. On the log.
#[derive(Component, Clone, PartialEq, Eq, Default, Debug)]
#[component(storage = "SparseSet")]
pub(crate) struct BoundsChecks(pub Vec<CheckedCoordinate>);
