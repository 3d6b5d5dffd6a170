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

/// What all workgroups have stored to the cells of a page.
struct MergedStores {
    /// The values, where they are one.
    values: [u32; PAGE],
    /// For each block, cells that something was stored to, as bits.
    stored: [u16; PAGE / BLOCK],
    /// Cells to which different values were stored, or unknown ones.
    several: [u16; PAGE / BLOCK],
}

impl MergedStores {
    const NONE: MergedStores =
        MergedStores { values: [0; PAGE], stored: [0; PAGE / BLOCK], several: [0; PAGE / BLOCK] };

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

/// Accesses of one kind.
#[derive(Default)]
struct Plane {
    cells: Option<Box<[Ends; PAGE]>>,
    /// Those of whole blocks of cells, as most are.
    blocks: Option<Box<[Ends; PAGE / BLOCK]>>,
}

impl Plane {
    /// Adds an access to a cell.
    #[inline(always)]
    fn add(&mut self, cell: usize, workgroup: u64, step: u32) {
        let cells = self.cells.get_or_insert_with(|| Box::new([NONE; PAGE]));
        note(&mut cells[cell], workgroup, step);
    }

    /// Adds an access to all cells of a block.
    #[inline(always)]
    fn add_block(&mut self, block: usize, workgroup: u64, step: u32) {
        let blocks = self.blocks.get_or_insert_with(|| Box::new([NONE; PAGE / BLOCK]));
        note(&mut blocks[block], workgroup, step);
    }

    /// True if there is no access.
    fn is_empty(&self) -> bool {
        self.cells.is_none() && self.blocks.is_none()
    }

    /// Cells that were accessed, as ranges of them.
    fn used(&self, mut f: impl FnMut(Range<usize>)) {
        if self.is_empty() {
            return;
        }
        for block in (0..PAGE).step_by(BLOCK) {
            if self.blocks.as_ref().is_some_and(|blocks| blocks[block / BLOCK] != NONE) {
                f(block..block + BLOCK);
                continue;
            }
            let cells = self.cells.iter().flat_map(|cells| &cells[block..block + BLOCK]);
            (block..).zip(cells).filter(|(_, ends)| **ends != NONE).for_each(|(cell, _)| f(cell..cell + 1));
        }
    }

    /// The accesses to a cell.
    fn at(&self, cell: usize) -> Ends {
        let [first, last] = self.cells.as_ref().map_or(NONE, |cells| cells[cell]);
        let of_block = self.blocks.as_ref().map_or(NONE, |blocks| blocks[cell / BLOCK]);
        [first.min(of_block[0]), last.max(of_block[1])]
    }

    /// The first and the last access to any cell of a block.
    fn ends(&self, block: usize) -> Ends {
        let [mut first, mut last] = self.blocks.as_ref().map_or(NONE, |blocks| blocks[block]);
        for ends in self.cells.iter().flat_map(|cells| &cells[block * BLOCK..][..BLOCK]) {
            (first, last) = (first.min(ends[0]), last.max(ends[1]));
        }
        [first, last]
    }
}

impl Page {
    /// True if several workgroups have accessed a block.
    fn is_shared(&self, block: usize) -> bool {
        let (mut first, mut last) = (u64::MAX, 0);
        for plane in [&self.write, &self.read, &self.atomic] {
            let ends = plane.ends(block);
            (first, last) = (first.min(ends[0]), last.max(ends[1]));
        }
        first >> 32 < last >> 32
    }
}

/// All of a launch.
pub(super) struct Merged {
    granule: u32,
    has_several_l2: bool,
    allocations: Vec<OnceLock<Box<[Mutex<Page>]>>>,
    pages: Vec<usize>,
}

/// Accesses of two workgroups that race.
pub(super) struct Race {
    pub allocation: usize,
    /// Byte of the allocation.
    pub offset: u64,
    /// Earlier and later workgroup, in the order of their numbers: workgroup, step, access.
    pub sides: [(u64, u32, MemoryAccess); 2],
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
            if page.write.is_empty() && page.atomic.is_empty() {
                return;
            }
            let is_written = |index: usize| page.write.at(index) != NONE || page.atomic.at(index) != NONE;
            let first = (number * PAGE) as u64;
            let mut at = 0;
            while let Some(start) = (at..PAGE).find(|&index| is_written(index)) {
                at = (start..PAGE).find(|&index| !is_written(index)).unwrap_or(PAGE);
                f(allocation, (first + start as u64) << self.granule, (first + at as u64) << self.granule);
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
                    let [start, end] =
                        [cells.start, cells.end].map(|at| ((first + at) as u64) << self.granule);
                    f(kind, allocation, start..end);
                });
            }
        });
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
        let mut is_shared = false;
        self.each_page(|allocation, number, page| {
            let Page { write, stored, read, atomic } = page;
            if write.is_empty() && atomic.is_empty() {
                return;
            }
            for index in 0..PAGE {
                // Mostly only one workgroup has accessed it.
                if index % BLOCK == 0 {
                    is_shared = page.is_shared(index / BLOCK);
                }
                if !is_shared {
                    continue;
                }
                let (write, read, atomic) = (write.at(index), read.at(index), atomic.at(index));
                let pairs = [
                    (write, MemoryAccess::Store, write, MemoryAccess::Store),
                    (write, MemoryAccess::Store, read, MemoryAccess::Load),
                    (write, MemoryAccess::Store, atomic, MemoryAccess::Atomic),
                    (atomic, MemoryAccess::Atomic, read, MemoryAccess::Load),
                ];
                let offset = ((number * PAGE + index) as u64) << self.granule;
                let races = pairs.into_iter().filter_map(|(a, what, b, other)| {
                    let sides = differing(a, what, b, other)?;
                    let same = stored.as_ref().is_some_and(|stored| stored.is_one(index));
                    let is_repeated = same && sides.iter().all(|side| side.2 == MemoryAccess::Store);
                    Some(Race { allocation, offset, sides, is_repeated })
                });
                // Notes are kept beside the first race.
                for race in races {
                    let goes_on = race.is_repeated;
                    f(race);
                    if !goes_on {
                        break;
                    }
                }
            }
        });
    }
}

/// Adds an access of a workgroup.
#[inline(always)]
fn note(ends: &mut Ends, workgroup: u64, step: u32) {
    let value = workgroup << 32 | u64::from(step);
    *ends = [ends[0].min(value), ends[1].max(value)];
}

/// An access of one set and one of the other from different workgroups.
fn differing(
    a: Ends,
    what: MemoryAccess,
    b: Ends,
    other: MemoryAccess,
) -> Option<[(u64, u32, MemoryAccess); 2]> {
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
}
