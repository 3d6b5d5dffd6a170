//! Cells of the shadow of device memory: the last write and a read of each piece, in pages that are taken as
//! they are needed.

use std::ops::Range;

use super::super::error::MemoryAccess;

/// Cells of a page.
pub(super) const PAGE: usize = 64;
/// Cells of a block, which are often accessed by one instruction.
pub(super) const BLOCK: usize = 16;
/// The access was atomic, or had scope bits.
pub(super) const COHERENT: u32 = 1 << 31;
/// It was an atomic.
pub(super) const ATOMIC: u32 = 1 << 30;
/// Its scope was the device.
pub(super) const AGENT: u32 = 1 << 29;
/// What it stored is known.
pub(super) const VALUED: u32 = 1 << 28;
/// Other waves have stored the same value.
pub(super) const COMMON: u32 = 1 << 27;
/// A read that found what is there still, as all reads of the cell did that are ordered before it.
pub(super) const CURRENT: u32 = 1 << 26;
/// The same of all reads but those that every wave of the reader's workgroup knows.
pub(super) const CURRENT_INSIDE: u32 = 1 << 25;
const WAVE: u32 = CURRENT_INSIDE - 1;

/// An access.
#[derive(Copy, Clone, Default)]
pub(super) struct AccessMark {
    /// Number of the wave in the launch plus one, with flags; 0: no wave.
    who: u32,
    /// Number of its operation.
    pub number: u32,
    /// Its step.
    pub step: u32,
}

impl AccessMark {
    /// An access of a wave, with flags.
    pub(super) fn new(wave: u32, flags: u32, number: u32, step: u32) -> AccessMark {
        AccessMark { who: wave.wrapping_add(1) & WAVE | flags, number, step }
    }

    /// The same with more flags.
    pub(super) fn with(self, flags: u32) -> AccessMark {
        AccessMark { who: self.who | flags, ..self }
    }

    /// The same without some flags.
    pub(super) fn without(self, flags: u32) -> AccessMark {
        AccessMark { who: self.who & !flags, ..self }
    }

    /// The flags of `flags` that it has.
    pub(super) fn flags(self, flags: u32) -> u32 {
        self.who & flags
    }

    /// True if there was an access.
    pub(super) fn is_set(self) -> bool {
        self.who != 0
    }

    /// By an atomic.
    pub(super) fn is_atomic(self) -> bool {
        self.who & ATOMIC != 0
    }

    /// How a write was done.
    pub(super) fn access(self) -> MemoryAccess {
        if self.is_atomic() { MemoryAccess::Atomic } else { MemoryAccess::Store }
    }

    /// With scope bits, or by an atomic.
    pub(super) fn is_coherent(self) -> bool {
        self.who & COHERENT != 0
    }

    /// The whole device sees it once it is over.
    pub(super) fn is_agent(self) -> bool {
        self.who & AGENT != 0
    }

    /// What it stored is known.
    pub(super) fn is_valued(self) -> bool {
        self.who & VALUED != 0
    }

    /// Other waves have stored the same value.
    pub(super) fn is_common(self) -> bool {
        self.who & COMMON != 0
    }

    /// It found what is there still.
    pub(super) fn is_current(self) -> bool {
        self.who & CURRENT != 0
    }

    /// It found what is there still, and all waves of its workgroup know of the reads that did not.
    pub(super) fn is_current_inside(self) -> bool {
        self.who & CURRENT_INSIDE != 0
    }

    /// Number of the wave in the launch.
    pub(super) fn wave(self) -> u32 {
        (self.who & WAVE).wrapping_sub(1)
    }
}

/// Last write and a read of a piece of memory.
#[derive(Copy, Clone, Default)]
pub(super) struct Cell {
    pub write: AccessMark,
    pub read: AccessMark,
    /// What the write has stored.
    pub value: u32,
}

/// One access of each cell of a page. What is looked at together lies side by side, because most accesses
/// are of many cells, and of cells that nobody else has accessed.
struct CellMarks {
    who: [u32; PAGE],
    number: [u32; PAGE],
    step: [u32; PAGE],
}

impl CellMarks {
    const NONE: CellMarks = CellMarks { who: [0; PAGE], number: [0; PAGE], step: [0; PAGE] };

    #[inline(always)]
    fn at(&self, cell: usize) -> AccessMark {
        AccessMark { who: self.who[cell], number: self.number[cell], step: self.step[cell] }
    }

    #[inline(always)]
    fn set(&mut self, cell: usize, mark: AccessMark) {
        (self.who[cell], self.number[cell], self.step[cell]) = (mark.who, mark.number, mark.step);
    }

    #[inline(always)]
    fn fill(&mut self, cells: Range<usize>, mark: AccessMark) {
        self.who[cells.clone()].fill(mark.who);
        self.number[cells.clone()].fill(mark.number);
        self.step[cells].fill(mark.step);
    }

    /// Runs of cells that have a mark.
    fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at + self.who[at..].iter().position(|&who| who != 0)?;
            at = self.who[start..].iter().position(|&who| who == 0).map_or(PAGE, |cells| start + cells);
            Some(start..at)
        })
    }

    /// True if none of the cells has the mark of another wave.
    #[inline(always)]
    fn are_of(&self, cells: Range<usize>, wave: u32) -> bool {
        let own = wave.wrapping_add(1) & WAVE;
        let other = |who: u32| who != 0 && who & WAVE != own;
        !self.who[cells].iter().fold(false, |any, &who| any | other(who))
    }
}

/// How the cells of a block were read.
pub(super) enum BlockReads {
    /// None of them was.
    None,
    /// All of them at this step.
    ByOne(u32),
    /// Some, or at several steps.
    Several,
}

/// How the cells of a block were written.
pub(super) enum BlockWrites<'a> {
    /// None of them was.
    None,
    /// All of them at this step, with these values, and not by what may meet other accesses.
    ByOne(u32, &'a [u32]),
    /// Some, or in several ways.
    Several,
}

/// A page.
pub(super) struct CellPage {
    write: CellMarks,
    value: [u32; PAGE],
    read: CellMarks,
    /// Some cell has been written.
    is_written: bool,
}

impl CellPage {
    /// Nothing has been accessed.
    pub(super) const UNUSED: CellPage =
        CellPage { write: CellMarks::NONE, value: [0; PAGE], read: CellMarks::NONE, is_written: false };

    /// Forgets all accesses.
    pub(super) fn reset(&mut self) {
        self.read.who = [0; PAGE];
        if self.is_written {
            self.write.who = [0; PAGE];
            self.is_written = false;
        }
    }

    /// Some cell has been written.
    pub(super) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Cells that have been written, as runs of them.
    pub(super) fn written(&self) -> impl Iterator<Item = Range<usize>> {
        self.write.runs()
    }

    /// The reads of a block.
    #[inline(always)]
    pub(super) fn reads(&self, block: usize) -> BlockReads {
        let cells = block * BLOCK..(block + 1) * BLOCK;
        let (who, steps) = (&self.read.who[cells.clone()], &self.read.step[cells]);
        let (mut any, mut all, mut same) = (false, true, true);
        for (who, step) in who.iter().zip(steps) {
            any |= *who != 0;
            all &= *who != 0;
            same &= *step == steps[0];
        }
        match (any, all && same) {
            (false, _) => BlockReads::None,
            (true, true) => BlockReads::ByOne(steps[0]),
            (true, false) => BlockReads::Several,
        }
    }

    /// The step of each cell of a block that was read.
    #[inline(always)]
    pub(super) fn read_steps(&self, block: usize) -> impl Iterator<Item = Option<u32>> {
        let cells = block * BLOCK..(block + 1) * BLOCK;
        let marks = self.read.who[cells.clone()].iter().zip(&self.read.step[cells]);
        marks.map(|(&who, &step)| (who != 0).then_some(step))
    }

    /// The writes of a block.
    #[inline(always)]
    pub(super) fn writes(&self, block: usize) -> BlockWrites<'_> {
        if !self.is_written {
            return BlockWrites::None;
        }
        let cells = block * BLOCK..(block + 1) * BLOCK;
        let (who, steps) = (&self.write.who[cells.clone()], &self.write.step[cells.clone()]);
        let (mut any, mut same, mut flags) = (0, true, (VALUED, 0));
        for (&who, &step) in who.iter().zip(steps) {
            any |= who;
            same &= who != 0 && step == steps[0];
            flags = (flags.0 & who, flags.1 | who);
        }
        match any {
            0 => BlockWrites::None,
            _ if same && flags.0 != 0 && flags.1 & (COHERENT | ATOMIC | AGENT) == 0 => {
                BlockWrites::ByOne(steps[0], &self.value[cells])
            }
            _ => BlockWrites::Several,
        }
    }

    /// A cell.
    #[inline(always)]
    pub(super) fn cell(&self, cell: usize) -> Cell {
        Cell { write: self.write.at(cell), read: self.read.at(cell), value: self.value[cell] }
    }

    /// A cell's read.
    #[inline(always)]
    pub(super) fn read(&self, cell: usize) -> AccessMark {
        self.read.at(cell)
    }

    /// Notes a read.
    #[inline(always)]
    pub(super) fn note_read(&mut self, cell: usize, mark: AccessMark) {
        self.read.set(cell, mark);
    }

    /// The same of several cells.
    #[inline(always)]
    pub(super) fn note_reads(&mut self, cells: Range<usize>, mark: AccessMark) {
        self.read.fill(cells, mark);
    }

    /// Notes a write.
    #[inline(always)]
    pub(super) fn note_write(&mut self, cell: usize, mark: AccessMark, value: u32) {
        self.write.set(cell, mark);
        self.value[cell] = value;
        self.is_written = true;
    }

    /// The same of several cells; returns the place of their values, which are not written yet.
    #[inline(always)]
    pub(super) fn note_writes(&mut self, cells: Range<usize>, mark: AccessMark) -> &mut [u32] {
        self.write.fill(cells.clone(), mark);
        self.is_written = true;
        &mut self.value[cells]
    }

    /// True if nobody has written any of the cells.
    #[inline(always)]
    pub(super) fn are_unwritten(&self, cells: Range<usize>) -> bool {
        !self.is_written || self.write.who[cells].iter().fold(0, |all, who| all | who) == 0
    }

    /// True if no wave but `wave` has left its read in any of the cells.
    #[inline(always)]
    pub(super) fn are_read_by(&self, cells: Range<usize>, wave: u32) -> bool {
        self.read.are_of(cells, wave)
    }
}

/// The pages of all allocations that are in use.
pub(super) struct CellPages {
    /// For each allocation, for each of its pages: index of the page plus one. Empty for allocations that
    /// have not been accessed.
    tables: Vec<Vec<u32>>,
    /// Pages of each allocation.
    sizes: Vec<usize>,
    pages: Vec<CellPage>,
    /// Allocation and number of the pages in use.
    used: Vec<(u32, u32)>,
}

impl CellPages {
    /// No page is in use; allocations have that many cells.
    pub(super) fn new(cells: impl Iterator<Item = usize>) -> CellPages {
        let sizes: Vec<usize> = cells.map(|cells| cells.div_ceil(PAGE)).collect();
        CellPages { tables: vec![Vec::new(); sizes.len()], sizes, pages: Vec::new(), used: Vec::new() }
    }

    /// Forgets everything but keeps its memory.
    pub(super) fn reset(&mut self) {
        for (page, &(allocation, number)) in self.pages.iter_mut().zip(&self.used) {
            self.tables[allocation as usize][number as usize] = 0;
            page.reset();
        }
        self.used.clear();
    }

    /// Pages in use: allocation, number of the page in it, cells.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, usize, &CellPage)> {
        self.used.iter().zip(&self.pages).map(|(&(a, p), page)| (a as usize, p as usize, page))
    }

    /// A page, which is in use from now on.
    #[inline(always)]
    pub(super) fn page(&mut self, allocation: usize, page: usize) -> &mut CellPage {
        let index = match self.tables[allocation].get(page) {
            Some(&index) if index != 0 => index,
            _ => self.take(allocation, page),
        };
        &mut self.pages[index as usize - 1]
    }

    #[cold]
    fn take(&mut self, allocation: usize, page: usize) -> u32 {
        let table = &mut self.tables[allocation];
        if table.len() <= page {
            // All of it at once, because the part that is never touched takes no memory then.
            *table = vec![0; self.sizes[allocation].max(page + 1)];
        }
        self.used.push((allocation as u32, page as u32));
        if self.pages.len() < self.used.len() {
            self.pages.push(CellPage::UNUSED);
        }
        table[page] = self.used.len() as u32;
        table[page]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_knows_who_has_accessed_what() {
        let mut page = CellPage::UNUSED;
        let mark = |wave, step| AccessMark::new(wave, 0, 1, step);
        page.note_reads(0..BLOCK, mark(0, 5));
        page.note_reads(BLOCK..BLOCK + 2, mark(0, 5));
        assert!(matches!(page.reads(0), BlockReads::ByOne(5)));
        assert!(matches!(page.reads(1), BlockReads::Several));
        assert!(matches!(page.reads(2), BlockReads::None));
        page.note_read(3, mark(1, 6));
        assert!(matches!(page.reads(0), BlockReads::Several));
        assert!(page.are_read_by(0..3, 0) && !page.are_read_by(0..4, 0) && page.are_read_by(20..PAGE, 7));
        page.note_writes(8..12, mark(2, 7)).fill(9);
        page.note_write(PAGE - 1, mark(2, 8), 4);
        assert_eq!(page.written().collect::<Vec<_>>(), [8..12, PAGE - 1..PAGE]);
        assert!(page.are_unwritten(0..8) && !page.are_unwritten(11..20));
        assert_eq!((page.cell(8).value, page.cell(8).write.wave()), (9, 2));
        page.note_writes(BLOCK..2 * BLOCK, mark(2, 7).with(VALUED)).fill(9);
        assert!(matches!(page.writes(1), BlockWrites::ByOne(7, values) if *values == [9; BLOCK]));
        assert!(matches!((page.writes(0), page.writes(2)), (BlockWrites::Several, BlockWrites::None)));
        page.note_write(BLOCK, mark(2, 7).with(VALUED | ATOMIC), 9);
        assert!(matches!(page.writes(1), BlockWrites::Several));
        page.reset();
        assert!(!page.is_written() && page.are_unwritten(0..PAGE) && page.are_read_by(0..PAGE, 9));
    }

    #[test]
    fn pages_are_taken_as_they_are_needed() {
        let mut pages = CellPages::new([1, 10 * PAGE].into_iter());
        pages.page(1, 9).note_read(0, AccessMark::new(0, 0, 1, 1));
        pages.page(0, 0);
        pages.page(1, 9);
        assert_eq!(pages.used().map(|(a, p, _)| (a, p)).collect::<Vec<_>>(), [(1, 9), (0, 0)]);
        pages.reset();
        assert_eq!(pages.used().count(), 0);
        assert!(pages.page(1, 9).are_read_by(0..PAGE, 5));
    }
}
