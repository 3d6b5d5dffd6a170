//! Shadow of device memory: who wrote each piece last and who read it, page by page, as far as it is touched.
//!
//! Workgroups that cannot hand anything over to each other run in parallel, each with a shadow of its own, which is merged
//! into one for all (`merged`) when the workgroup ends. Where they can, all share one shadow.

use super::super::error::Access;
use super::super::execute::Footprint;
use super::lds::Dwords;
use super::order::{Foreign, Known};
use super::runs::{Run, runs};

/// Cells of a page.
pub(super) const PAGE: usize = 1024;
/// The access was atomic, or had scope bits.
const COHERENT: u32 = 1 << 31;
/// It was an atomic.
const ATOMIC: u32 = 1 << 30;
const WAVE: u32 = ATOMIC - 1;

/// An access.
#[derive(Copy, Clone, Default)]
pub(super) struct Mark {
    /// Number of the wave in the launch plus one, with flags; 0: nobody.
    who: u32,
    /// Number of its operation.
    number: u32,
    /// Its step.
    pub step: u32,
}

impl Mark {
    /// Somebody has.
    pub fn is_set(self) -> bool {
        self.who != 0
    }

    /// By an atomic.
    pub fn is_atomic(self) -> bool {
        self.who & ATOMIC != 0
    }

    /// With scope bits, or by an atomic.
    pub fn is_coherent(self) -> bool {
        self.who & COHERENT != 0
    }

    /// Number of the wave in the launch.
    pub fn wave(self) -> u32 {
        (self.who & WAVE).wrapping_sub(1)
    }
}

/// Last write and a read of a piece of memory.
#[derive(Copy, Clone, Default)]
pub(super) struct Cell {
    pub write: Mark,
    pub read: Mark,
}

/// Shadow of all allocations.
pub(super) struct Shadow {
    /// Logarithm of the bytes of a cell.
    granule: u32,
    /// Of each allocation, of each of its pages: index of the page plus one.
    tables: Vec<Vec<u32>>,
    pages: Vec<Box<[Cell; PAGE]>>,
    /// Allocation and number of the pages in use.
    used: Vec<(u32, u32)>,
}

/// Who accesses.
#[derive(Copy, Clone)]
pub(super) struct Accessor<'a> {
    /// Number of the wave in the launch.
    pub wave: u32,
    /// First wave of its workgroup.
    pub first_wave: u32,
    pub number: u32,
    pub step: u32,
    pub known: &'a Known,
    pub foreign: &'a Foreign,
    pub coherent: bool,
    /// The allocation was written throughout before the launch.
    pub defined: bool,
}

/// A conflict with an earlier access.
pub(super) struct Conflict {
    /// Byte of the allocation.
    pub offset: u64,
    pub first: Access,
    pub wave: u32,
    pub step: u32,
}

/// What one access finds.
#[derive(Default)]
pub(super) struct Judged {
    pub conflict: Option<Conflict>,
    pub lanes: u64,
    /// Lanes that load something that no kernel wrote, by dword; whether the host did remains to be seen.
    pub unwritten: Dwords,
}

impl Shadow {
    /// Of memory with so many allocations.
    pub fn new(allocations: usize, granule: u32) -> Shadow {
        Shadow { granule, tables: vec![Vec::new(); allocations], pages: Vec::new(), used: Vec::new() }
    }

    /// Forgets everything but keeps its memory.
    pub fn reset(&mut self) {
        for (index, &(allocation, page)) in self.used.iter().enumerate() {
            self.tables[allocation as usize][page as usize] = 0;
            self.pages[index].fill(Cell::default());
        }
        self.used.clear();
    }

    /// Pages in use: allocation, number of the page in it, cells.
    pub fn pages(&self) -> impl Iterator<Item = (usize, usize, &[Cell; PAGE])> {
        self.used.iter().zip(&self.pages).map(|(&(a, p), cells)| (a as usize, p as usize, &**cells))
    }

    fn page(&mut self, allocation: usize, page: usize) -> &mut [Cell; PAGE] {
        let table = &mut self.tables[allocation];
        if table.len() <= page {
            table.resize(page + 1, 0);
        }
        if table[page] == 0 {
            self.used.push((allocation as u32, page as u32));
            if self.pages.len() < self.used.len() {
                self.pages.push(Box::new([Cell::default(); PAGE]));
            }
            table[page] = self.used.len() as u32;
        }
        &mut self.pages[table[page] as usize - 1]
    }

    /// Judges and notes the access of lanes `lanes` to an allocation that starts at `base` and holds all of them.
    pub fn access(
        &mut self,
        allocation: usize,
        base: u64,
        footprint: &Footprint,
        lanes: u64,
        by: &Accessor<'_>,
    ) -> Judged {
        let mut judged = Judged::default();
        let atomic = footprint.access == Access::Atomic;
        let who =
            ((by.wave + 1) & WAVE) | if by.coherent { COHERENT } else { 0 } | if atomic { ATOMIC } else { 0 };
        let mark = Mark { who, number: by.number, step: by.step };
        runs(footprint, lanes, |run| {
            let run = Run { address: run.address - base, ..run };
            let mut at = (run.address >> self.granule) as usize;
            let end = ((run.end() - 1) >> self.granule) as usize + 1;
            while at < end {
                let stop = end.min((at / PAGE + 1) * PAGE);
                let granule = self.granule;
                let page = self.page(allocation, at / PAGE);
                let cells = &mut page[at % PAGE..at % PAGE + (stop - at)];
                let piece = Piece { run, granule, first: at, access: footprint.access, mark };
                piece.note(cells, by, &mut judged);
                at = stop;
            }
        });
        judged
    }
}

/// The part of a run that lies in one page.
struct Piece {
    run: Run,
    granule: u32,
    /// First cell.
    first: usize,
    access: Access,
    mark: Mark,
}

impl Piece {
    #[inline(always)]
    fn note(&self, cells: &mut [Cell], by: &Accessor<'_>, judged: &mut Judged) {
        let is_load = self.access == Access::Load;
        // Stores that cover cells in part are noted but not judged.
        let exact = is_load || (self.run.address | self.run.bytes) & ((1 << self.granule) - 1) == 0;
        let needs_contents = !by.defined && self.access != Access::Store;
        for (index, cell) in cells.iter_mut().enumerate() {
            if exact && let Some((first, other)) = cell.conflict(self.mark, self.access, by) {
                self.conflict(index, first, other, judged);
            }
            if needs_contents && cell.write.who == 0 {
                self.unwritten(index, judged);
            }
            if !is_load {
                cell.write = self.mark;
            } else if !by.coherent && (cell.read.who == 0 || by.knows(cell.read)) {
                cell.read = self.mark;
            }
        }
    }

    #[cold]
    fn conflict(&self, index: usize, first: Access, other: Mark, judged: &mut Judged) {
        let offset = ((self.first + index) as u64) << self.granule;
        let (lane, _) = self.run.lane_of(offset);
        judged.lanes |= 1 << (lane % 64);
        judged.conflict.get_or_insert(Conflict { offset, first, wave: other.wave(), step: other.step });
    }

    #[cold]
    fn unwritten(&self, index: usize, judged: &mut Judged) {
        // Several lanes may share a cell.
        let start = ((self.first + index) as u64) << self.granule;
        let mut at = start.max(self.run.address);
        while at < (start + (1 << self.granule)).min(self.run.end()) {
            let (lane, byte) = self.run.lane_of(at);
            judged.unwritten[(byte / 4 % 16) as usize] |= 1 << (lane % 64);
            at += self.run.bytes - byte;
        }
    }
}

impl Cell {
    /// The earlier access that `mark` conflicts with.
    #[inline(always)]
    fn conflict(&self, mark: Mark, access: Access, by: &Accessor<'_>) -> Option<(Access, Mark)> {
        let write = self.write;
        if write.who != 0 && write.wave() != by.wave && !by.knows(write) {
            // Loads with scope bits poll; atomics do not race with each other.
            let allowed = match access {
                Access::Load => by.coherent,
                _ => write.is_coherent() && mark.is_coherent(),
            };
            if !allowed {
                return Some((if write.is_atomic() { Access::Atomic } else { Access::Store }, write));
            }
        }
        let read = self.read;
        if access != Access::Load && read.who != 0 && read.wave() != by.wave && !by.knows(read) {
            return Some((Access::Load, read));
        }
        None
    }
}

impl Accessor<'_> {
    /// True if an access lies before this one.
    #[inline(always)]
    fn knows(&self, mark: Mark) -> bool {
        let wave = mark.wave();
        if wave == self.wave {
            return true;
        }
        let other = wave.wrapping_sub(self.first_wave) as usize;
        if other < self.known.waves() {
            return mark.number <= self.known.of((self.wave - self.first_wave) as usize, other).issued;
        }
        self.foreign.get(&wave).is_some_and(|&number| mark.number <= number)
    }
}

impl Shadow {
    /// Bytes that were written, as ranges of each allocation.
    pub fn written(&self, mut f: impl FnMut(usize, u64, u64)) {
        for (allocation, page, cells) in self.pages() {
            for (index, _) in cells.iter().enumerate().filter(|(_, cell)| cell.write.is_set()) {
                let start = ((page * PAGE + index) as u64) << self.granule;
                f(allocation, start, start + (1 << self.granule));
            }
        }
    }
}
