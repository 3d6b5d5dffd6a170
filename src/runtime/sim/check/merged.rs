//! Device memory as all workgroups of a launch have used it, in whatever order: for every piece, the first
//! and the last workgroup that wrote it, read it, or changed it atomically. If two of these differ they are a
//! race, because workgroups that cannot hand over anything are not ordered.

use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use super::super::error::MemoryAccess;
use super::cells::{self, BlockReads, BlockWrites, Cell, CellPage};
use super::device::DeviceShadow;
use super::model::CacheModel;
use super::touched::TouchKind;

/// Workgroup and step of the first and the last, in one number each.
type Ends = [u64; 2];
const NONE: Ends = [u64::MAX, 0];
/// Cells of a page.
const PAGE: usize = 16 * cells::PAGE;
/// Cells of a block.
const BLOCK: usize = cells::BLOCK;
/// Blocks of a page.
const BLOCKS: usize = PAGE / BLOCK;

/// What all workgroups have stored to the cells of a page.
struct MergedStores {
    /// The values, where they are one.
    values: [u32; PAGE],
    /// For each block, cells that something was stored to, as bits.
    stored: [u16; BLOCKS],
    /// Cells to which different values were stored, or unknown ones.
    several: [u16; BLOCKS],
}

impl MergedStores {
    const NONE: MergedStores = MergedStores { values: [0; PAGE], stored: [0; BLOCKS], several: [0; BLOCKS] };

    /// Adds what a workgroup has left in a cell.
    fn add(&mut self, cell: usize, value: Option<u32>) {
        let (block, bit) = (cell / BLOCK, 1 << (cell % BLOCK));
        let is_first = self.stored[block] & bit == 0;
        match value {
            Some(value) if is_first => self.values[cell] = value,
            Some(value) if self.values[cell] == value => {}
            _ => self.several[block] |= bit,
        }
        self.stored[block] |= bit;
    }

    /// The same for all cells of a block.
    fn add_block(&mut self, block: usize, values: &[u32]) {
        if self.stored[block] == 0 {
            self.values[block * BLOCK..][..BLOCK].copy_from_slice(values);
            self.stored[block] = u16::MAX;
        } else {
            (block * BLOCK..).zip(values).for_each(|(cell, &value)| self.add(cell, Some(value)));
        }
    }

    /// True if one value and no other was stored to a cell.
    fn is_one(&self, cell: usize) -> bool {
        (self.stored[cell / BLOCK] & !self.several[cell / BLOCK]) >> (cell % BLOCK) & 1 != 0
    }
}

/// One page.
#[derive(Default)]
struct Page {
    write: Plane,
    stored: Option<Box<MergedStores>>,
    read: Plane,
    atomic: Plane,
}

/// Accesses of one kind, if there are any.
#[derive(Default)]
struct Plane(Option<Box<PlaneBlocks>>);

/// Accesses of one kind to the blocks of a page.
struct PlaneBlocks {
    /// Those of whole blocks, as most are.
    whole: [Ends; BLOCKS],
    /// For each block that was accessed in part, its place in `cells` plus one.
    places: [u8; BLOCKS],
    cells: Vec<[Ends; BLOCK]>,
}

impl PlaneBlocks {
    const NONE: PlaneBlocks = PlaneBlocks { whole: [NONE; BLOCKS], places: [0; BLOCKS], cells: Vec::new() };

    /// The accesses to single cells of a block, if there are any.
    fn cells(&self, block: usize) -> Option<&[Ends; BLOCK]> {
        usize::from(self.places[block]).checked_sub(1).map(|place| &self.cells[place])
    }

    /// The same, with room for more.
    fn cells_mut(&mut self, block: usize) -> &mut [Ends; BLOCK] {
        if self.places[block] == 0 {
            self.cells.push([NONE; BLOCK]);
            self.places[block] = self.cells.len() as u8;
        }
        &mut self.cells[usize::from(self.places[block]) - 1]
    }

    /// The cells of a block that were accessed, as bits.
    fn used(&self, block: usize) -> u16 {
        if self.whole[block] != NONE {
            return u16::MAX;
        }
        let cells = self.cells(block).into_iter().flatten().enumerate();
        cells.fold(0, |used, (cell, ends)| used | u16::from(*ends != NONE) << cell)
    }
}

impl Plane {
    fn blocks(&mut self) -> &mut PlaneBlocks {
        self.0.get_or_insert_with(|| Box::new(PlaneBlocks::NONE))
    }

    /// Adds an access to a cell.
    #[inline(always)]
    fn add(&mut self, cell: usize, workgroup: u64, step: u32) {
        note(&mut self.blocks().cells_mut(cell / BLOCK)[cell % BLOCK], workgroup, step);
    }

    /// Adds an access to all cells of a block.
    #[inline(always)]
    fn add_block(&mut self, block: usize, workgroup: u64, step: u32) {
        note(&mut self.blocks().whole[block], workgroup, step);
    }

    /// Adds accesses to cells of a block: the step of each that is accessed.
    #[inline(always)]
    fn add_some(&mut self, block: usize, workgroup: u64, steps: impl Iterator<Item = Option<u32>>) {
        for (ends, step) in self.blocks().cells_mut(block).iter_mut().zip(steps) {
            if let Some(step) = step {
                note(ends, workgroup, step);
            }
        }
    }

    /// True if there is no access.
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Cells that were accessed, as ranges of them in rising order.
    fn used(&self, mut f: impl FnMut(Range<usize>)) {
        let Some(blocks) = &self.0 else { return };
        let mut run = 0..0;
        for block in 0..BLOCKS {
            let mut left = blocks.used(block);
            while left != 0 {
                let first = left.trailing_zeros();
                let cells = (left >> first).trailing_ones();
                left &= !(u16::MAX >> (BLOCK as u32 - cells) << first);
                let start = block * BLOCK + first as usize;
                if start != run.end {
                    if !run.is_empty() {
                        f(run);
                    }
                    run = start..start;
                }
                run.end = start + cells as usize;
            }
        }
        if !run.is_empty() {
            f(run);
        }
    }

    /// The accesses to a cell.
    fn at(&self, cell: usize) -> Ends {
        let Some(blocks) = &self.0 else { return NONE };
        let own = blocks.cells(cell / BLOCK).map_or(NONE, |cells| cells[cell % BLOCK]);
        join(own, blocks.whole[cell / BLOCK])
    }

    /// The first and the last access to any cell of a block.
    fn ends(&self, block: usize) -> Ends {
        let Some(blocks) = &self.0 else { return NONE };
        let cells = blocks.cells(block).into_iter().flatten();
        cells.fold(blocks.whole[block], |all, &ends| join(all, ends))
    }
}

impl Page {
    /// True if several workgroups have accessed a block and at least one has changed it.
    fn may_race(&self, block: usize) -> bool {
        let changed = join(self.write.ends(block), self.atomic.ends(block));
        if changed == NONE {
            return false;
        }
        let [first, last] = join(changed, self.read.ends(block));
        first >> 32 < last >> 32
    }

    /// Calls `f` for the races of a cell: their sides, and whether all stores have the same value.
    fn races(&self, cell: usize, mut f: impl FnMut([RaceSide; 2], bool)) {
        let (write, read, atomic) = (self.write.at(cell), self.read.at(cell), self.atomic.at(cell));
        let pairs = [
            (write, MemoryAccess::Store, write, MemoryAccess::Store),
            (write, MemoryAccess::Store, read, MemoryAccess::Load),
            (write, MemoryAccess::Store, atomic, MemoryAccess::Atomic),
            (atomic, MemoryAccess::Atomic, read, MemoryAccess::Load),
        ];
        for (a, what, b, other) in pairs {
            let Some(sides) = differing(a, what, b, other) else { continue };
            let same = self.stored.as_ref().is_some_and(|stored| stored.is_one(cell));
            let is_repeated = same && sides.iter().all(|side| side.2 == MemoryAccess::Store);
            f(sides, is_repeated);
            // Notes are kept beside the first race.
            if !is_repeated {
                break;
            }
        }
    }
}

/// All of a launch.
pub(super) struct Merged {
    granule: u32,
    has_several_l2: bool,
    allocations: Vec<OnceLock<Box<[Mutex<Page>]>>>,
    pages: Vec<usize>,
}

/// An access of a workgroup: its number, the step, what it does.
type RaceSide = (u64, u32, MemoryAccess);

/// Accesses of two workgroups that race.
pub(super) struct Race {
    pub allocation: usize,
    /// Byte of the allocation.
    pub offset: u64,
    /// Earlier and later workgroup, in the order of their numbers.
    pub sides: [RaceSide; 2],
    /// Both store, and all stores have the same value.
    pub is_repeated: bool,
}

impl Merged {
    /// For memory with allocations of these sizes.
    pub(super) fn new(sizes: &[u64], granule: u32, model: CacheModel) -> Merged {
        let pages = sizes.iter().map(|size| ((size >> granule) as usize + 1).div_ceil(PAGE)).collect();
        let allocations = sizes.iter().map(|_| OnceLock::new()).collect();
        Merged { granule, has_several_l2: model.has_several_l2, allocations, pages }
    }

    /// Adds what a workgroup has done.
    pub(super) fn add(&self, workgroup: u64, shadow: &DeviceShadow) {
        for (allocation, number, cells) in shadow.pages() {
            let pages = self.allocations[allocation]
                .get_or_init(|| (0..self.pages[allocation]).map(|_| Mutex::default()).collect());
            let first = number * cells::PAGE;
            let Some(page) = pages.get(first / PAGE) else { continue };
            // A poisoned lock means that another thread panicked, which `workers::run` passes on.
            let mut page = page.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            for block in 0..cells::PAGE / BLOCK {
                self.add_block(&mut page, first % PAGE, block, workgroup, cells);
            }
        }
    }

    /// Adds what a workgroup has done to block `block` of `cells`, whose first cell is number `first` of the
    /// page.
    fn add_block(&self, page: &mut Page, first: usize, block: usize, workgroup: u64, cells: &CellPage) {
        let place = first / BLOCK + block;
        match (cells.writes(block), cells.reads(block)) {
            (BlockWrites::None, BlockReads::None) => {}
            (BlockWrites::None, BlockReads::ByOne(step)) => page.read.add_block(place, workgroup, step),
            (BlockWrites::None, BlockReads::Several) => {
                page.read.add_some(place, workgroup, cells.read_steps(block));
            }
            (BlockWrites::ByOne(step, values), BlockReads::None) => {
                page.write.add_block(place, workgroup, step);
                page.stored.get_or_insert_with(|| Box::new(MergedStores::NONE)).add_block(place, values);
            }
            _ => {
                for at in block * BLOCK..(block + 1) * BLOCK {
                    self.add_cell(page, first + at, workgroup, &cells.cell(at));
                }
            }
        }
    }

    fn add_cell(&self, page: &mut Page, index: usize, workgroup: u64, cell: &Cell) {
        // Who has read the value that the own workgroup has stored is not disturbed by a store of the same
        // value, and any other store is in conflict with the own one.
        let is_own = cell.read.is_current() && !self.is_atomic(cell);
        if cell.read.is_set() && !is_own {
            page.read.add(index, workgroup, cell.read.step);
        }
        if !cell.write.is_set() {
            return;
        }
        if self.is_atomic(cell) {
            return page.atomic.add(index, workgroup, cell.write.step);
        }
        page.write.add(index, workgroup, cell.write.step);
        let stored = page.stored.get_or_insert_with(|| Box::new(MergedStores::NONE));
        stored.add(index, cell.write.is_valued().then_some(cell.value));
    }

    /// True if accesses of others may coincide with the write of a cell.
    fn is_atomic(&self, cell: &Cell) -> bool {
        if self.has_several_l2 { cell.write.is_agent() } else { cell.write.is_coherent() }
    }

    /// Bytes that were written, as ranges of each allocation.
    pub(super) fn written(&self, mut f: impl FnMut(usize, u64, u64)) {
        self.each_page(|allocation, number, page| {
            let first = number * PAGE;
            for plane in [&page.write, &page.atomic] {
                plane.used(|cells| {
                    let [start, end] = self.bytes(first, cells);
                    f(allocation, start, end);
                });
            }
        });
    }

    /// How bytes were used, as ranges of each allocation.
    pub(super) fn touched(&self, mut f: impl FnMut(TouchKind, usize, Range<u64>)) {
        self.each_page(|allocation, number, page| {
            let first = number * PAGE;
            let planes = [
                (TouchKind::Write, &page.write),
                (TouchKind::Update, &page.atomic),
                (TouchKind::Read, &page.read),
            ];
            for (kind, plane) in planes {
                plane.used(|cells| {
                    let [start, end] = self.bytes(first, cells);
                    f(kind, allocation, start..end);
                });
            }
        });
    }

    /// The first byte of cells of the page that starts with cell `first`, and the byte after the last one.
    fn bytes(&self, first: usize, cells: Range<usize>) -> [u64; 2] {
        [cells.start, cells.end].map(|cell| ((first + cell) as u64) << self.granule)
    }

    fn each_page(&self, mut f: impl FnMut(usize, usize, &Page)) {
        for (allocation, pages) in self.allocations.iter().enumerate() {
            for (number, page) in pages.get().into_iter().flatten().enumerate() {
                let page = page.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                f(allocation, number, &page);
            }
        }
    }

    /// All races between workgroups.
    pub(super) fn races(&self, mut f: impl FnMut(Race)) {
        self.each_page(|allocation, number, page| {
            if page.write.is_empty() && page.atomic.is_empty() {
                return;
            }
            // Mostly only one workgroup has accessed a block.
            for block in (0..BLOCKS).filter(|&block| page.may_race(block)) {
                for index in block * BLOCK..(block + 1) * BLOCK {
                    let offset = self.bytes(number * PAGE, index..index)[0];
                    page.races(index, |sides, is_repeated| {
                        f(Race { allocation, offset, sides, is_repeated });
                    });
                }
            }
        });
    }
}

/// Adds an access of a workgroup.
#[inline(always)]
fn note(ends: &mut Ends, workgroup: u64, step: u32) {
    let value = workgroup << 32 | u64::from(step);
    *ends = join(*ends, [value; 2]);
}

/// The first and the last access of two sets.
fn join(a: Ends, b: Ends) -> Ends {
    [a[0].min(b[0]), a[1].max(b[1])]
}

/// An access of one set and one of the other from different workgroups.
fn differing(a: Ends, what: MemoryAccess, b: Ends, other: MemoryAccess) -> Option<[RaceSide; 2]> {
    if a == NONE || b == NONE {
        return None;
    }
    let split = |value: u64, access: MemoryAccess| (value >> 32, value as u32, access);
    let pairs = [(a[0], b[1]), (b[0], a[1])];
    let different = |(x, y): &(u64, u64)| x >> 32 != y >> 32;
    let index = pairs.iter().position(different)?;
    let (x, y) = pairs[index];
    let (of_x, of_y) = if index == 0 { (what, other) } else { (other, what) };
    let mut sides = [split(x, of_x), split(y, of_y)];
    sides.sort_by_key(|side| side.0);
    Some(sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_workgroup_does_not_race_with_itself() {
        let of = |workgroup: u64, step: u64| workgroup << 32 | step;
        let one = [of(3, 1), of(3, 9)];
        assert!(differing(one, MemoryAccess::Store, one, MemoryAccess::Store).is_none());
        assert!(differing(NONE, MemoryAccess::Store, one, MemoryAccess::Load).is_none());
        let two = [of(2, 5), of(3, 9)];
        let sides = differing(one, MemoryAccess::Store, two, MemoryAccess::Load).expect("workgroup 2 reads");
        assert_eq!(sides, [(2, 5, MemoryAccess::Load), (3, 9, MemoryAccess::Store)]);
    }
    #[test]
    fn whole_and_partial_blocks_are_one_plane() {
        let mut plane = Plane::default();
        assert!(plane.is_empty() && plane.at(0) == NONE && plane.ends(0) == NONE);
        plane.add_block(1, 7, 3);
        plane.add(2 * BLOCK, 4, 9);
        plane.add_some(1, 5, (0..BLOCK).map(|cell| (cell % 2 == 0).then_some(2)));
        plane.add_some(BLOCKS - 1, 6, (0..BLOCK).map(|cell| (cell > 12).then_some(1)));
        let mut used = Vec::new();
        plane.used(|cells| used.push(cells));
        assert_eq!(used, [BLOCK..2 * BLOCK + 1, PAGE - 3..PAGE]);
        let of = |workgroup: u64, step: u64| workgroup << 32 | step;
        assert_eq!(plane.at(BLOCK), [of(5, 2), of(7, 3)]);
        assert_eq!((plane.at(BLOCK + 1), plane.at(2 * BLOCK)), ([of(7, 3); 2], [of(4, 9); 2]));
        assert_eq!((plane.ends(1), plane.ends(0)), ([of(5, 2), of(7, 3)], NONE));
    }

    #[test]
    fn only_changed_blocks_of_several_workgroups_may_race() {
        let mut page = Page::default();
        page.read.add_block(0, 1, 1);
        page.read.add_block(0, 2, 1);
        assert!(!page.may_race(0), "nobody changes it");
        page.write.add(3, 2, 5);
        assert!(page.may_race(0) && !page.may_race(1));
        let mut races = Vec::new();
        (0..BLOCK).for_each(|cell| page.races(cell, |sides, repeated| races.push((cell, sides, repeated))));
        let sides = [(1, 1, MemoryAccess::Load), (2, 5, MemoryAccess::Store)];
        assert_eq!(races, [(3, sides, false)]);
    }
}
