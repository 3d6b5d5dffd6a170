//! Shadow of device memory: which wave wrote each piece last and which one read it (`cells`), for the pages
//! that are used.
//!
//! Workgroups that cannot hand over anything to each other run in parallel, each with a shadow of its own,
//! which is merged into one for all (`merged`) when the workgroup ends. Where they can, all share one shadow.
//!
//! Several waves may store the same value to one place, in any order. A read is in order if it is ordered
//! after one of these stores: whatever comes of the others, it finds that value. A store of another value
//! has to be ordered after all of them. So a cell has its last writer, and `common` all the others of the
//! same value.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::error::MemoryAccess;
use super::super::execute::Footprint;
use super::super::memory::WrittenBytes;
use super::cells::{
    AGENT, ATOMIC, AccessMark, COHERENT, COMMON, CURRENT, CURRENT_INSIDE, Cell, CellPage, CellPages, PAGE,
    VALUED,
};
use super::data::StoreData;
use super::finding::Unordered;
use super::flight::VM;
use super::model::SyncScope;
use super::order::{KnownOrder, Sight};
use super::runs::{LaneRun, runs, spans};
use super::touched::TouchKind;
use super::undefined::UndefinedLoad;

/// Shadow of all allocations.
pub(super) struct DeviceShadow {
    /// Logarithm of the bytes of a cell.
    granule: u32,
    pages: CellPages,
    common: CommonStores,
}

/// By allocation and cell: the stores before the last one that have stored the same value, one of each wave,
/// ordered by wave.
type CommonStores = BTreeMap<(usize, usize), Vec<AccessMark>>;

/// The wave that accesses.
#[derive(Copy, Clone)]
pub(super) struct DeviceAccessor<'a> {
    /// Number of the wave in the launch.
    pub wave: u32,
    /// First wave of its workgroup.
    pub first_wave: u32,
    pub number: u32,
    pub step: u32,
    pub known: &'a KnownOrder,
    pub scope: SyncScope,
    /// How it sees accesses of waves of its workgroup, and those of others.
    pub sight: [Sight; 2],
    /// The data of a store, if they are known.
    pub data: Option<StoreData<'a>>,
    /// All that it accesses was written before the launch.
    pub defined: bool,
    /// The parts of the allocation that were.
    pub written: &'a WrittenBytes,
}

/// A conflict with an earlier access.
pub(super) struct DeviceConflict {
    /// Byte of the allocation.
    pub offset: u64,
    pub first: MemoryAccess,
    pub wave: u32,
    pub step: u32,
    pub reason: Unordered,
}

/// The result of judging one access.
#[derive(Default)]
pub(super) struct DeviceVerdict {
    pub conflict: Option<DeviceConflict>,
    pub lanes: u64,
    /// A store of the same value that another wave has stored, and its lanes.
    pub repeated: Option<DeviceConflict>,
    pub repeated_lanes: u64,
    /// What is loaded that no kernel wrote, and that was not all written before; what of it was is checked
    /// later.
    pub unwritten: UndefinedLoad,
}

impl DeviceShadow {
    /// A shadow for allocations of these sizes.
    pub(super) fn new(sizes: impl Iterator<Item = u64>, granule: u32) -> DeviceShadow {
        let cells = sizes.map(|size| (size >> granule) as usize + 1);
        DeviceShadow { granule, pages: CellPages::new(cells), common: CommonStores::new() }
    }

    /// Forgets everything but keeps its memory.
    pub(super) fn reset(&mut self) {
        self.pages.reset();
        self.common.clear();
    }

    /// Pages in use: allocation, number of the page in it, cells.
    pub(super) fn pages(&self) -> impl Iterator<Item = (usize, usize, &CellPage)> {
        self.pages.used()
    }

    /// Judges and notes the access of `lanes` to an allocation that starts at `base` and holds all of them.
    pub(super) fn access(
        &mut self,
        allocation: usize,
        base: u64,
        footprint: &Footprint,
        lanes: u64,
        by: &DeviceAccessor<'_>,
    ) -> DeviceVerdict {
        let mut judged = DeviceVerdict::default();
        let flags = [
            (by.scope > SyncScope::Wave, COHERENT),
            (by.scope == SyncScope::Agent, AGENT),
            (footprint.access == MemoryAccess::Atomic, ATOMIC),
        ];
        let flags = flags.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, flag)| all | flag);
        let mark = AccessMark::new(by.wave, flags, by.number, by.step);
        let granule = self.granule;
        if footprint.access == MemoryAccess::Load
            && by.defined
            && by.scope == SyncScope::Wave
            && self.loads_plainly((allocation, base), footprint, lanes, by, mark)
        {
            return judged;
        }
        runs(footprint, lanes, |run| {
            let run = LaneRun { address: run.address - base, ..run };
            let defined = by.defined || by.written.holds(run.address, run.end());
            let mut at = (run.address >> granule) as usize;
            let end = ((run.end() - 1) >> granule) as usize + 1;
            while at < end {
                let stop = end.min((at / PAGE + 1) * PAGE);
                let piece = PagePiece {
                    run,
                    granule,
                    allocation,
                    first: at,
                    cells: stop - at,
                    access: footprint.access,
                    mark,
                    defined,
                };
                piece.note(self.pages.page(allocation, at / PAGE), by, &mut self.common, &mut judged);
                at = stop;
            }
        });
        judged
    }
}

impl DeviceShadow {
    /// Notes a load of what was written before the launch and has not been stored to since: then it does not
    /// matter which lane loads what, and lanes often load the same. False if it has to be judged lane by
    /// lane; what has been noted by then is noted again.
    fn loads_plainly(
        &mut self,
        (allocation, base): (usize, u64),
        footprint: &Footprint,
        lanes: u64,
        by: &DeviceAccessor<'_>,
        mark: AccessMark,
    ) -> bool {
        let mut is_plain = true;
        spans(footprint, lanes, |start, end| {
            let mut at = ((start - base) >> self.granule) as usize;
            let end = ((end - 1 - base) >> self.granule) as usize + 1;
            while at < end && is_plain {
                let stop = end.min((at / PAGE + 1) * PAGE);
                let page = self.pages.page(allocation, at / PAGE);
                let places = at % PAGE..at % PAGE + (stop - at);
                is_plain = page.are_unwritten(places.clone());
                if is_plain {
                    by.note_loads(page, places, mark);
                }
                at = stop;
            }
        });
        is_plain
    }
}

/// The part of a run that lies in one page.
struct PagePiece {
    run: LaneRun,
    granule: u32,
    allocation: usize,
    /// First cell, and how many.
    first: usize,
    cells: usize,
    access: MemoryAccess,
    mark: AccessMark,
    /// All of the run was written before the launch.
    defined: bool,
}

impl PagePiece {
    #[inline(always)]
    fn note(
        &self,
        page: &mut CellPage,
        by: &DeviceAccessor<'_>,
        common: &mut CommonStores,
        judged: &mut DeviceVerdict,
    ) {
        match self.access {
            MemoryAccess::Load => self.load(page, by, common, judged),
            _ => self.store(page, by, common, judged),
        }
    }

    /// The numbers of its cells in the page.
    #[inline(always)]
    fn places(&self) -> Range<usize> {
        self.first % PAGE..self.first % PAGE + self.cells
    }

    /// True if every lane accesses whole cells, of which none is another lane's.
    #[inline(always)]
    fn covers_cells(&self) -> bool {
        (self.run.address | self.run.bytes) & ((1 << self.granule) - 1) == 0
    }

    /// The lane that accesses the first cell, and the number of the cell's first byte among the lane's.
    #[inline(always)]
    fn first_byte(&self) -> (usize, u64) {
        self.run.lane_of((self.first as u64) << self.granule)
    }

    /// The same for the cell after one.
    #[inline(always)]
    fn next_byte(&self, lane: usize, byte: u64) -> (usize, u64) {
        let next = byte + (1 << self.granule);
        if next >= self.run.bytes { (lane + 1, 0) } else { (lane, next) }
    }

    #[inline(always)]
    fn load(
        &self,
        page: &mut CellPage,
        by: &DeviceAccessor<'_>,
        common: &CommonStores,
        judged: &mut DeviceVerdict,
    ) {
        if self.defined && by.scope == SyncScope::Wave && page.are_unwritten(self.places()) {
            return by.note_loads(page, self.places(), self.mark);
        }
        let coherent = by.scope > SyncScope::Wave;
        let mut reader = (u32::MAX, 0);
        for (index, at) in self.places().enumerate() {
            let cell = page.cell(at);
            if let Some(write) = cell.conflicting_write(self.mark, self.access, by)
                && !self.knows_another(index, write, by, common)
            {
                self.conflict(index, write.access(), write, by, judged);
            }
            if !self.defined && !cell.write.is_set() {
                self.unwritten(index, judged);
            }
            if !coherent && (!cell.read.is_set() || by.knows_read(cell.read)) {
                let current = match cell.read {
                    _ if !cell.write.is_set() => 0,
                    read if !read.is_set() || read.is_current() => CURRENT | CURRENT_INSIDE,
                    read if read.is_current_inside() => CURRENT_INSIDE,
                    read => {
                        // Mostly all reads here are one wave's.
                        if reader.0 != read.wave() {
                            reader = (read.wave(), by.known_to_all(read.wave()));
                        }
                        if read.number <= reader.1 { CURRENT_INSIDE } else { 0 }
                    }
                };
                page.note_read(at, self.mark.with(current));
            }
        }
    }

    /// True if the access is ordered after another store of the value that `write` has stored.
    #[cold]
    fn knows_another(
        &self,
        index: usize,
        write: AccessMark,
        by: &DeviceAccessor<'_>,
        common: &CommonStores,
    ) -> bool {
        let Some(others) = self.others(index, write, common) else { return false };
        // Mostly its own.
        others.binary_search_by_key(&by.wave, |mark| mark.wave()).is_ok()
            || others.iter().any(|&mark| by.knows_write(mark))
    }

    /// The other stores of the value that `write` has stored.
    fn others<'a>(
        &self,
        index: usize,
        write: AccessMark,
        common: &'a CommonStores,
    ) -> Option<&'a [AccessMark]> {
        let found = || common.get(&(self.allocation, self.first + index));
        write.is_common().then(found).flatten().map(|marks| &marks[..])
    }

    #[inline(always)]
    fn store(
        &self,
        page: &mut CellPage,
        by: &DeviceAccessor<'_>,
        common: &mut CommonStores,
        judged: &mut DeviceVerdict,
    ) {
        // Stores that cover only part of a cell are noted but not judged.
        let exact = self.covers_cells();
        let data = by.data.filter(|_| exact && self.access == MemoryAccess::Store);
        let needs_contents = !self.defined && self.access == MemoryAccess::Atomic;
        // Most of what is stored nobody else has accessed.
        if !needs_contents && page.are_unwritten(self.places()) && page.are_read_by(self.places(), by.wave) {
            let flags = if data.is_some() { VALUED } else { 0 };
            let values = page.note_writes(self.places(), self.mark.with(flags));
            match data {
                Some(data) => self.values(data, values),
                None => values.fill(0),
            }
            return;
        }
        let (mut lane, mut byte) = self.first_byte();
        for (index, at) in self.places().enumerate() {
            let cell = page.cell(at);
            let value = data.map(|data| data.value(lane % 64, byte as usize, self.granule));
            let repeats = cell.write.is_valued() && value == Some(cell.value);
            if exact {
                self.judge_store(index, &cell, repeats, by, common, judged);
            }
            if needs_contents && !cell.write.is_set() {
                self.unwritten(index, judged);
            }
            let mut flags = if value.is_some() { VALUED } else { 0 };
            if repeats {
                flags |= self.join(index, cell.write, by, common);
            } else {
                if cell.write.is_common() {
                    common.remove(&(self.allocation, self.first + index));
                }
                page.note_read(at, cell.read.without(CURRENT | CURRENT_INSIDE));
            }
            page.note_write(at, self.mark.with(flags), value.unwrap_or(0));
            (lane, byte) = self.next_byte(lane, byte);
        }
    }

    /// Puts down what a store leaves in the cells.
    #[inline(always)]
    fn values(&self, data: StoreData<'_>, values: &mut [u32]) {
        let (mut lane, mut byte) = self.first_byte();
        if self.granule == 2
            && let Some(dwords) = data.dwords(lane, values.len())
        {
            return values.copy_from_slice(dwords);
        }
        for value in values {
            *value = data.value(lane % 64, byte as usize, self.granule);
            (lane, byte) = self.next_byte(lane, byte);
        }
    }

    /// Adds the last writer of a cell to those of the same value, unless this wave was the only one; returns
    /// the flag of the next.
    fn join(
        &self,
        index: usize,
        last: AccessMark,
        by: &DeviceAccessor<'_>,
        common: &mut CommonStores,
    ) -> u32 {
        if last.wave() == by.wave {
            return last.flags(COMMON);
        }
        let marks = common.entry((self.allocation, self.first + index)).or_default();
        match marks.binary_search_by_key(&last.wave(), |mark| mark.wave()) {
            Ok(at) => marks[at] = last,
            Err(at) => marks.insert(at, last),
        }
        COMMON
    }

    #[inline(always)]
    fn judge_store(
        &self,
        index: usize,
        cell: &Cell,
        repeats: bool,
        by: &DeviceAccessor<'_>,
        common: &CommonStores,
        judged: &mut DeviceVerdict,
    ) {
        let conflicting = cell.conflicting_write(self.mark, self.access, by);
        match conflicting {
            Some(write) if repeats => self.repeated(index, write, by, judged),
            Some(write) => self.conflict(index, write.access(), write, by, judged),
            None if !repeats => {
                let others = self.others(index, cell.write, common).unwrap_or_default();
                let mut unordered = others.iter().filter(|write| by.is_open(self.mark, self.access, **write));
                if let Some(&write) = unordered.next() {
                    self.conflict(index, write.access(), write, by, judged);
                }
            }
            None => {}
        }
        let read = cell.read;
        // Who has read this value already reads the same with this store or without it.
        let is_current = read.is_current() || read.is_current_inside() && by.inside(read.wave()).is_some();
        let finds_same = repeats && is_current;
        if read.is_set() && read.wave() != by.wave && !finds_same && !by.knows_read(read) {
            self.conflict(index, MemoryAccess::Load, read, by, judged);
        }
    }

    /// The place of a cell, and the lane that touches it.
    fn place(&self, index: usize) -> (u64, u64) {
        let offset = ((self.first + index) as u64) << self.granule;
        (offset, 1 << (self.run.lane_of(offset).0 % 64))
    }

    #[cold]
    fn conflict(
        &self,
        index: usize,
        first: MemoryAccess,
        other: AccessMark,
        by: &DeviceAccessor<'_>,
        judged: &mut DeviceVerdict,
    ) {
        let (offset, lane) = self.place(index);
        judged.lanes |= lane;
        judged.conflict.get_or_insert_with(|| DeviceConflict {
            offset,
            first,
            wave: other.wave(),
            step: other.step,
            reason: by.reason(first, other),
        });
    }

    #[cold]
    fn repeated(&self, index: usize, other: AccessMark, by: &DeviceAccessor<'_>, judged: &mut DeviceVerdict) {
        let (offset, lane) = self.place(index);
        judged.repeated_lanes |= lane;
        judged.repeated.get_or_insert_with(|| DeviceConflict {
            offset,
            first: MemoryAccess::Store,
            wave: other.wave(),
            step: other.step,
            reason: by.reason(MemoryAccess::Store, other),
        });
    }

    #[cold]
    fn unwritten(&self, index: usize, judged: &mut DeviceVerdict) {
        self.run.pieces((self.first + index) << self.granule, self.granule, |lane, byte, _, bits| {
            judged.unwritten.add(lane, byte, bits, None);
        });
    }
}

impl Cell {
    /// The earlier write that an access conflicts with.
    #[inline(always)]
    fn conflicting_write(
        &self,
        mark: AccessMark,
        access: MemoryAccess,
        by: &DeviceAccessor<'_>,
    ) -> Option<AccessMark> {
        let write = self.write;
        (write.is_set() && by.is_open(mark, access, write)).then_some(write)
    }
}

impl DeviceAccessor<'_> {
    /// Number of a wave in the accessing workgroup, if it belongs to it.
    #[inline(always)]
    fn inside(&self, wave: u32) -> Option<usize> {
        let other = wave.wrapping_sub(self.first_wave) as usize;
        (other < self.known.waves()).then_some(other)
    }

    fn own(&self) -> usize {
        (self.wave - self.first_wave) as usize
    }

    /// True if a load is ordered before this store.
    #[inline(always)]
    fn knows_read(&self, mark: AccessMark) -> bool {
        mark.wave() == self.wave || mark.number <= self.known_reads(mark.wave())
    }

    /// Notes a load of cells that nobody has stored to.
    #[inline(always)]
    fn note_loads(&self, page: &mut CellPage, cells: Range<usize>, mark: AccessMark) {
        if page.are_read_by(cells.clone(), self.wave) {
            return page.note_reads(cells, mark);
        }
        // Mostly all other reads here are one wave's.
        let mut other = (self.wave, u32::MAX);
        for at in cells {
            let read = page.read(at);
            if read.is_set() && read.wave() != other.0 {
                let is_own = read.wave() == self.wave;
                other = (read.wave(), if is_own { u32::MAX } else { self.known_reads(read.wave()) });
            }
            if !read.is_set() || read.number <= other.1 {
                page.note_read(at, mark);
            }
        }
    }

    /// How many loads of another wave are ordered before this access.
    #[inline(always)]
    fn known_reads(&self, wave: u32) -> u32 {
        match self.inside(wave) {
            Some(other) => self.known.within(self.own(), other, Sight::Memory),
            None => self.known.abroad(self.own(), wave, Sight::Memory).over,
        }
    }

    /// How many operations of a wave all waves of the workgroup know, if it is one of them.
    #[cold]
    fn known_to_all(&self, wave: u32) -> u32 {
        let Some(other) = self.inside(wave) else { return 0 };
        let others = (0..self.known.waves()).filter(|&wave| wave != other);
        others.map(|wave| self.known.within(wave, other, Sight::Memory)).min().unwrap_or(u32::MAX)
    }

    /// True if a write is ordered before this access, which sees it.
    #[inline(always)]
    fn knows_write(&self, mark: AccessMark) -> bool {
        let wave = mark.wave();
        match self.inside(wave) {
            Some(other) => mark.number <= self.known.within(self.own(), other, self.sight[0]),
            None => {
                let reach = self.known.abroad(self.own(), wave, self.sight[1]);
                // Stores for the whole device are not held back.
                mark.number <= if mark.is_agent() { reach.over } else { reach.back }
            }
        }
    }

    /// True if another wave's write is not ordered before this access, and is not meant to meet it.
    #[inline(always)]
    fn is_open(&self, mark: AccessMark, access: MemoryAccess, write: AccessMark) -> bool {
        write.wave() != self.wave && !self.knows_write(write) && !self.allows(mark, access, write)
    }

    /// True if two unordered accesses are meant to meet: atomics, and loads and stores with scope bits that
    /// are wide enough for both.
    fn allows(&self, mark: AccessMark, access: MemoryAccess, write: AccessMark) -> bool {
        let model = self.known.model;
        let both = write.is_coherent() && mark.is_coherent();
        match (access, self.inside(write.wave())) {
            (MemoryAccess::Load, Some(_)) => {
                mark.is_coherent() && (both || !model.is_split || !model.has_several_l2)
            }
            // Stores have no scope bits there.
            (MemoryAccess::Load, None) if !model.has_several_l2 => mark.is_coherent(),
            (_, None) if !model.has_several_l2 => write.is_coherent() || mark.is_coherent(),
            (_, Some(_)) => both,
            (_, None) => write.is_agent() && mark.is_agent(),
        }
    }

    /// What is missing between an earlier access and this one.
    fn reason(&self, first: MemoryAccess, other: AccessMark) -> Unordered {
        let (known, own, number) = (self.known, self.own(), other.number);
        if let Some(other) = self.inside(other.wave()) {
            let clock = known.of(own, other);
            return match () {
                () if number <= clock.over[VM] => Unordered::NotInvalidated,
                () if number <= clock.issued => Unordered::NotWaited,
                () => Unordered::NoBarrier,
            };
        }
        let reach = known.abroad(own, other.wave(), Sight::Memory);
        let needed = if first == MemoryAccess::Load || other.is_agent() { reach.over } else { reach.back };
        match () {
            () if number <= needed => Unordered::NotInvalidated,
            () if number <= reach.over => Unordered::NotWrittenBack,
            () if self.scope > SyncScope::Wave && other.is_coherent() => Unordered::NarrowScope,
            () => Unordered::OtherWorkgroup,
        }
    }
}

impl DeviceShadow {
    /// Bytes that were written, as ranges of each allocation.
    pub(super) fn written(&self, mut f: impl FnMut(usize, u64, u64)) {
        for (allocation, page, cells) in self.pages().filter(|(_, _, cells)| cells.is_written()) {
            let first = (page * PAGE) as u64;
            for run in cells.written() {
                f(
                    allocation,
                    (first + run.start as u64) << self.granule,
                    (first + run.end as u64) << self.granule,
                );
            }
        }
    }

    /// How bytes were used, as ranges of each allocation.
    pub(super) fn touched(&self, mut f: impl FnMut(TouchKind, usize, Range<u64>)) {
        for (allocation, page, cells) in self.pages() {
            for at in 0..PAGE {
                let cell = cells.cell(at);
                let first = (page * PAGE + at) as u64;
                let bytes = first << self.granule..(first + 1) << self.granule;
                if cell.write.is_set() {
                    let kind = match cell.write.is_coherent() {
                        true => TouchKind::Update,
                        false => TouchKind::Write,
                    };
                    f(kind, allocation, bytes.clone());
                }
                if cell.read.is_set() {
                    f(TouchKind::Read, allocation, bytes);
                }
            }
        }
    }
}
