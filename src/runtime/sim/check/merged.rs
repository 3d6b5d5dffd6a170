//! Device memory as all workgroups of a launch have used it, in whatever order: for every piece, the first
//! and the last workgroup that wrote it, read it, or changed it atomically. If two of these differ they are a
//! race, because workgroups that cannot hand over anything are not ordered.

use std::sync::{Mutex, OnceLock};

use super::super::error::MemoryAccess;
use super::cells::{self, BlockReads, Cell, CellPage};
use super::device::DeviceShadow;
use super::model::CacheModel;

/// Workgroup and step of the first and the last, in one number each.
type Ends = [u64; 2];
const NONE: Ends = [u64::MAX, 0];
/// Cells of a page.
const PAGE: usize = 16 * cells::PAGE;
/// Cells of a block.
const BLOCK: usize = cells::BLOCK;

/// What all workgroups have stored: nothing, one value, or values that differ or are unknown.
#[derive(Copy, Clone, PartialEq, Eq)]
enum MergedStore {
    Nothing,
    One(u32),
    Several,
}

impl MergedStore {
    /// Combined with what another workgroup has left.
    fn and(self, value: Option<u32>) -> MergedStore {
        match (self, value) {
            (MergedStore::Nothing, Some(value)) => MergedStore::One(value),
            (MergedStore::One(one), Some(value)) if one == value => self,
            _ => MergedStore::Several,
        }
    }
}

/// One page.
#[derive(Default)]
struct Page {
    write: Option<Box<[Ends; PAGE]>>,
    stored: Option<Box<[MergedStore; PAGE]>>,
    read: Option<Box<[Ends; PAGE]>>,
    /// Reads of whole blocks of cells, as most are.
    read_blocks: Option<Box<[Ends; PAGE / BLOCK]>>,
    atomic: Option<Box<[Ends; PAGE]>>,
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
            match cells.is_written() {
                true => self.add_cells(&mut page, first % PAGE, workgroup, cells),
                false => add_reads(&mut page, first % PAGE, workgroup, cells),
            }
        }
    }

    fn add_cells(&self, page: &mut Page, first: usize, workgroup: u64, cells: &CellPage) {
        let note = |plane: &mut Option<Box<[Ends; PAGE]>>, index: usize, step: u32| {
            note(&mut plane.get_or_insert_with(|| Box::new([NONE; PAGE]))[index], workgroup, step);
        };
        for at in 0..cells::PAGE {
            let (cell, index) = (cells.cell(at), first + at);
            // Who has read the value that the own workgroup has stored is not disturbed by a store of the
            // same value, and any other store is in conflict with the own one.
            let is_own = cell.read.is_current() && !self.is_atomic(&cell);
            if cell.read.is_set() && !is_own {
                note(&mut page.read, index, cell.read.step);
            }
            if cell.write.is_set() {
                let plane = if self.is_atomic(&cell) { &mut page.atomic } else { &mut page.write };
                note(plane, index, cell.write.step);
                if !self.is_atomic(&cell) {
                    let stored = page.stored.get_or_insert_with(|| Box::new([MergedStore::Nothing; PAGE]));
                    stored[index] = stored[index].and(cell.write.is_valued().then_some(cell.value));
                }
            }
        }
    }

    /// True if accesses of others may coincide with the write of a cell.
    fn is_atomic(&self, cell: &Cell) -> bool {
        if self.has_several_l2 { cell.write.is_agent() } else { cell.write.is_coherent() }
    }

    /// Bytes that were written, as ranges of each allocation.
    pub(super) fn written(&self, mut f: impl FnMut(usize, u64, u64)) {
        self.each_page(|allocation, number, page| {
            let is_written = |index: usize| {
                let written =
                    |plane: &Option<Box<[Ends; PAGE]>>| plane.as_ref().is_some_and(|p| p[index] != NONE);
                written(&page.write) || written(&page.atomic)
            };
            let first = (number * PAGE) as u64;
            let mut at = 0;
            while let Some(start) = (at..PAGE).find(|&index| is_written(index)) {
                at = (start..PAGE).find(|&index| !is_written(index)).unwrap_or(PAGE);
                f(allocation, (first + start as u64) << self.granule, (first + at as u64) << self.granule);
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
        self.each_page(|allocation, number, page| {
            let Page { write, stored, read, read_blocks, atomic } = page;
            if write.is_none() && atomic.is_none() {
                return;
            }
            for index in 0..PAGE {
                let at = |plane: &Option<Box<[Ends; PAGE]>>| plane.as_ref().map_or(NONE, |p| p[index]);
                let (write, mut read, atomic) = (at(write), at(read), at(atomic));
                if let Some(blocks) = read_blocks {
                    let block = blocks[index / BLOCK];
                    read = [read[0].min(block[0]), read[1].max(block[1])];
                }
                let [first, last] = [0, 1].map(|end| [write, read, atomic].map(|ends| ends[end] >> 32));
                // Mostly only one workgroup has accessed it.
                if first.into_iter().min() >= last.into_iter().max() {
                    continue;
                }
                let pairs = [
                    (write, MemoryAccess::Store, write, MemoryAccess::Store),
                    (write, MemoryAccess::Store, read, MemoryAccess::Load),
                    (write, MemoryAccess::Store, atomic, MemoryAccess::Atomic),
                    (atomic, MemoryAccess::Atomic, read, MemoryAccess::Load),
                ];
                let offset = ((number * PAGE + index) as u64) << self.granule;
                let races = pairs.into_iter().filter_map(|(a, what, b, other)| {
                    let sides = differing(a, what, b, other)?;
                    let same = stored.as_ref().is_some_and(|s| matches!(s[index], MergedStore::One(_)));
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

/// Adds a page of what a workgroup has only read.
fn add_reads(page: &mut Page, first: usize, workgroup: u64, cells: &CellPage) {
    for block in 0..cells::PAGE / BLOCK {
        let place = first / BLOCK + block;
        match cells.reads(block) {
            BlockReads::None => {}
            BlockReads::ByOne(step) => {
                let ends = page.read_blocks.get_or_insert_with(|| Box::new([NONE; PAGE / BLOCK]));
                note(&mut ends[place], workgroup, step);
            }
            BlockReads::Several => {
                let ends = page.read.get_or_insert_with(|| Box::new([NONE; PAGE]));
                for (at, ends) in ends[place * BLOCK..][..BLOCK].iter_mut().enumerate() {
                    let read = cells.read(block * BLOCK + at);
                    if read.is_set() {
                        note(ends, workgroup, read.step);
                    }
                }
            }
        }
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
