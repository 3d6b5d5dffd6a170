//! Shadow of a workgroup's LDS: which wave wrote each piece last, which ones have read it since, and which
//! pieces were never written.
//!
//! Several waves may store the same value to one place, in any order, as in device memory (`device`): a read
//! is in order if it is ordered after one of these stores, and a store of another value has to be ordered
//! after all of them. So a cell has its last writer, and `common` all the others of the same value. Values
//! are the same if the same bits of them are undefined and all others are equal: copies of a tile whose
//! padding was never written are, and whoever uses the undefined bits is told so anyway. Unordered stores of
//! different values are a race unless all waves store the same in the end (`contested`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::error::MemoryAccess;
use super::super::execute::Footprint;
use super::super::wave::LANES;
use super::contested::{ContestOutcome, ContestedPlaces, LatestStore, StoredCell};
use super::data::StoreData;
use super::finding::{Memory, Unordered};
use super::flight::{LGKM, VM};
use super::order::{Clock, KnownOrder};
use super::registers::{UndefinedOrigin, Unwritten};
use super::runs::{LaneRun, runs, spans};
use super::undefined::{UndefinedLoad, UndefinedStore};

/// No wave.
const NOBODY: u8 = 0xff;
/// Flags beside the number of a wave.
const BY_DMA: u8 = 0x10;
const BY_ATOMIC: u8 = 0x20;
const UNDEFINED: u8 = 0x40;
const VALUED: u8 = 0x80;

/// The undefined part of a cell that has been written.
#[derive(Copy, Clone, Default)]
struct UndefinedCell {
    /// The undefined bits.
    bits: u32,
    /// Where they came from.
    origin: Option<UndefinedOrigin>,
}

/// Shadow of LDS.
pub(super) struct LdsShadow {
    /// Logarithm of the bytes of a cell.
    granule: u32,
    cells: usize,
    /// Last writer of each cell, with flags.
    writer: Vec<u8>,
    /// Number of its operation.
    written: Vec<u32>,
    /// The value that it has stored, if that is known.
    value: Vec<u32>,
    /// For written cells with [`UNDEFINED`], which bits are; empty until there is one.
    undefined: Vec<UndefinedCell>,
    reads: LastReads,
    /// By cell: the stores before the last one that have stored the same value, one of each wave.
    common: BTreeMap<usize, Vec<EarlierStore>>,
    /// The cells in which unordered stores of the waves differ.
    contested: ContestedPlaces<usize, EarlierStore, LateConflict>,
    /// The cells that have been accessed lie in here.
    touched: Range<usize>,
    /// For each wave its last read, its last write by LDS instructions, and its last write by loads to LDS.
    last: Vec<Last>,
}

/// Who has read cells.
#[derive(Default)]
struct LastReads {
    /// Number of the last reading operation of each wave, wave after wave.
    numbers: Vec<u32>,
    /// The waves whose last read found what is there still, as a bit for each.
    current: Vec<u16>,
    /// Where that is so: number of the last operation of each wave that read something else there.
    stale: Vec<u32>,
}

/// A store of a value that another wave has stored again.
#[derive(Copy, Clone)]
struct EarlierStore {
    wave: usize,
    /// Number of its operation.
    number: u32,
}

#[derive(Copy, Clone, Default)]
struct Last {
    read: u32,
    write: u32,
    dma: u32,
}

/// Two accesses that are not ordered.
#[derive(Copy, Clone)]
pub(super) struct LdsConflict {
    pub lane: usize,
    pub address: u64,
    pub other_wave: usize,
    /// Number of the other operation.
    pub number: u32,
    pub first: MemoryAccess,
    pub reason: Unordered,
}

/// A conflict of two stores that shows only later; it is the second store's.
#[derive(Copy, Clone)]
pub(super) struct LateConflict {
    pub wave: usize,
    pub step: u32,
    pub lanes: u64,
    pub conflict: LdsConflict,
}

impl LateConflict {
    /// Adds it to a list, in which there is one of each pair of stores.
    fn add_to(self, list: &mut Vec<LateConflict>) {
        let pair =
            |late: &LateConflict| (late.wave, late.step, late.conflict.other_wave, late.conflict.number);
        match list.iter_mut().find(|known| pair(known) == pair(&self)) {
            Some(known) => known.lanes |= self.lanes,
            None => list.push(self),
        }
    }
}

/// The result of judging one access.
#[derive(Default)]
pub(super) struct LdsVerdict {
    pub conflict: Option<LdsConflict>,
    /// How many lanes conflict.
    pub lanes: u64,
    /// A store of the same value that another wave has stored, and its lanes.
    pub repeated: Option<LdsConflict>,
    pub repeated_lanes: u64,
    /// Conflicts of earlier stores that show now.
    pub late: Vec<LateConflict>,
    /// The undefined part of what is loaded.
    pub undefined: UndefinedLoad,
}

/// What an access is meant to meet in any order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Meets {
    /// Nothing: it has to be ordered.
    Nothing,
    /// Atomics, as it is one.
    Atomics,
    /// Stores as well: it waits for one.
    Stores,
}

/// The wave that accesses.
#[derive(Copy, Clone)]
pub(super) struct LdsAccessor<'a> {
    pub wave: usize,
    /// Number of the operation.
    pub number: u32,
    pub step: u32,
    /// Lowest byte that it accesses, and the one after the highest.
    pub reach: (u64, u64),
    pub clock: Clock,
    pub known: &'a KnownOrder,
    /// A load to LDS.
    pub by_dma: bool,
    pub meets: Meets,
    /// The undefined part of what is stored, if any.
    pub undefined: Option<&'a UndefinedStore<'a>>,
    /// The data of a store, if they are known.
    pub data: Option<StoreData<'a>>,
}

impl LdsShadow {
    /// Empty.
    pub(super) fn new() -> LdsShadow {
        LdsShadow {
            granule: 2,
            cells: 0,
            writer: Vec::new(),
            written: Vec::new(),
            value: Vec::new(),
            undefined: Vec::new(),
            reads: LastReads::default(),
            common: BTreeMap::new(),
            contested: ContestedPlaces::new(),
            touched: 0..0,
            last: Vec::new(),
        }
    }

    /// LDS that has not been used yet.
    pub(super) fn reset(&mut self, bytes: u32, waves: usize, granule: u32) {
        let cells = (bytes as usize).div_ceil(1 << granule);
        if (self.cells, self.last.len()) != (cells, waves) {
            self.writer.clear();
            self.written.clear();
            self.reads.numbers.clear();
            self.reads.current.clear();
            self.touched = 0..0;
        }
        (self.granule, self.cells) = (granule, cells);
        // The next workgroup mostly needs as much as the one before it, which may have used little of it.
        let touched = std::mem::take(&mut self.touched);
        for wave in 0..if touched.is_empty() { 0 } else { waves } {
            self.reads.numbers[wave * cells..][touched.clone()].fill(0);
        }
        self.writer[touched.clone()].fill(NOBODY);
        self.written[touched.clone()].fill(0);
        self.reads.current[touched].fill(0);
        self.writer.resize(cells, NOBODY);
        self.written.resize(cells, 0);
        self.value.resize(cells, 0);
        self.undefined.clear();
        self.reads.numbers.resize(cells * waves, 0);
        self.reads.current.resize(cells, 0);
        // Looked at only where a wave is current, which it becomes together with its entry here.
        self.reads.stale.resize(cells * waves, 0);
        self.common.clear();
        self.contested = ContestedPlaces::new();
        self.last.clear();
        self.last.resize(waves, Last::default());
    }

    /// Notes that something in a range of bytes is accessed.
    fn touch(&mut self, reach: (u64, u64)) {
        let accessed = self.cells_of(reach.0, reach.1);
        self.touched = match self.touched.is_empty() {
            true => accessed,
            false => self.touched.start.min(accessed.start)..self.touched.end.max(accessed.end),
        };
    }

    /// Judges and notes an access whose `lanes` lie inside.
    pub(super) fn access(&mut self, footprint: &Footprint, lanes: u64, by: &LdsAccessor<'_>) -> LdsVerdict {
        let mut judged = LdsVerdict::default();
        if lanes == 0 {
            return judged;
        }
        self.touch(by.reach);
        // Whether any wave could conflict at all: usually everything is ordered by a barrier.
        let others = || (0..self.last.len()).filter(|&w| w != by.wave);
        let open_writes = others().any(|w| {
            let clock = by.known.of(by.wave, w);
            self.last[w].write > clock.over[LGKM] || self.last[w].dma > clock.over[VM]
        }) || !by.by_dma && self.last[by.wave].dma > by.clock.over[VM];
        let open_reads = footprint.access != MemoryAccess::Load
            && others().any(|w| self.last[w].read > by.known.of(by.wave, w).over[LGKM]);
        let floor = if open_writes { self.writes_over(by) } else { 0 };
        if footprint.access == MemoryAccess::Load
            && by.meets == Meets::Nothing
            && self.contested.is_empty()
            && self.loads_plainly(footprint, lanes, open_writes.then_some(floor), by)
        {
            self.last[by.wave].read = by.number;
            return judged;
        }
        runs(footprint, lanes, |run| {
            let cells = self.cells_of(run.address, run.end());
            if !self.contested.is_empty() && by.meets < Meets::Stores {
                self.contest(cells.clone(), &run, footprint.access, by, &mut judged);
            }
            if by.meets == Meets::Stores {
                // It waits for whatever is stored there.
            } else if open_writes
                && (!self.common.is_empty() || Self::is_newer(&self.written, cells.clone(), floor))
                || open_reads && self.is_read_anew(cells.clone(), by)
            {
                self.conflicts(
                    cells.clone(),
                    &run,
                    footprint.access,
                    (open_writes, open_reads),
                    by,
                    &mut judged,
                );
            }
            match footprint.access {
                MemoryAccess::Load => self.load(cells, &run, by, &mut judged),
                access => self.store(cells, &run, access, by, &mut judged),
            }
        });
        let last = &mut self.last[by.wave];
        match footprint.access {
            MemoryAccess::Load if by.meets > Meets::Nothing => {}
            MemoryAccess::Load => last.read = by.number,
            _ if by.by_dma => last.dma = by.number,
            _ => last.write = by.number,
        }
        judged
    }

    /// The cells of some bytes.
    #[inline(always)]
    fn cells_of(&self, start: u64, end: u64) -> Range<usize> {
        let end = ((end - 1) >> self.granule) as usize + 1;
        (start >> self.granule) as usize..end.min(self.cells)
    }

    /// Notes a load of cells that are defined, and whose writes are over: then it does not matter which lane
    /// loads what, and many lanes often load the same. Writes after number `floor`, if there is one, may not
    /// be over. False if the load has to be judged lane by lane; what has been noted by then is noted again.
    fn loads_plainly(
        &mut self,
        footprint: &Footprint,
        lanes: u64,
        floor: Option<u32>,
        by: &LdsAccessor<'_>,
    ) -> bool {
        if floor.is_some() && !self.common.is_empty() {
            return false;
        }
        let mut is_plain = true;
        spans(footprint, lanes, |start, end| {
            let cells = self.cells_of(start, end);
            let worst = self.writer[cells.clone()].iter().fold(0, |all, w| all | w);
            let is_open = floor.is_some_and(|floor| Self::is_newer(&self.written, cells.clone(), floor));
            is_plain &= worst & UNDEFINED == 0 && !is_open;
            if is_plain {
                self.note_load(cells, by);
            }
        });
        is_plain
    }

    /// The conflicts of stores that have never been settled: the workgroup has ended.
    pub(super) fn unsettled(&mut self) -> Vec<LateConflict> {
        let mut late = Vec::new();
        self.contested.drain().for_each(|conflict| conflict.add_to(&mut late));
        late
    }

    /// An access to cells of which some may be contested.
    #[cold]
    fn contest(
        &mut self,
        cells: Range<usize>,
        run: &LaneRun,
        access: MemoryAccess,
        by: &LdsAccessor<'_>,
        judged: &mut LdsVerdict,
    ) {
        let data = self.exact(run, access, by).filter(|_| by.meets == Meets::Nothing);
        for cell in cells {
            if !self.contested.holds(cell) {
                continue;
            }
            let Some(data) = data else {
                self.contested.take(cell).into_iter().for_each(|late| late.add_to(&mut judged.late));
                continue;
            };
            let stored = self.stored(&data, run.lane_of((cell as u64) << self.granule), by);
            let mark = EarlierStore { wave: by.wave, number: by.number };
            let new = LatestStore { mark, wave: by.wave as u32, stored };
            match self.contested.store(cell, new, |store| by.knows(&store.mark)) {
                ContestOutcome::Contested => {}
                ContestOutcome::Conflict(late) => late.add_to(&mut judged.late),
                ContestOutcome::Agreed(mut others) => {
                    // As if the others had been first.
                    let Some(last) = others.pop() else { continue };
                    self.writer[cell] = last.wave as u8 & 0xf | VALUED;
                    self.written[cell] = last.mark.number;
                    self.value[cell] = last.stored.value;
                    if last.stored.undefined != 0
                        && let Some(known) = self.undefined.get_mut(cell)
                    {
                        self.writer[cell] |= UNDEFINED;
                        known.bits = last.stored.undefined;
                    }
                    self.renew(cell);
                    if !others.is_empty() {
                        self.common.insert(cell, others.iter().map(|store| store.mark).collect());
                    }
                }
            }
        }
    }

    /// True if a store of these cells, which is not ordered after `first`, may turn out to be the same: both
    /// of a known value, by LDS instructions. Then the cell is contested from now on.
    #[cold]
    fn becomes_contested(
        &mut self,
        cell: usize,
        new: Option<StoredCell>,
        by: &LdsAccessor<'_>,
        conflict: LdsConflict,
    ) -> bool {
        let who = self.writer[cell];
        let Some(stored) = new.filter(|_| who & VALUED != 0 && who & (BY_DMA | BY_ATOMIC) == 0) else {
            return false;
        };
        if by.by_dma || by.meets > Meets::Nothing {
            return false;
        }
        let last = EarlierStore { wave: usize::from(who & 0xf), number: self.written[cell] };
        let before = self.contents(cell);
        let open = self.earlier(cell).iter().chain([&last]);
        let open = open.filter(|store| store.wave != by.wave && !by.knows(store));
        let mut stores: Vec<LatestStore<EarlierStore>> =
            open.map(|&mark| LatestStore { mark, wave: mark.wave as u32, stored: before }).collect();
        let mark = EarlierStore { wave: by.wave, number: by.number };
        stores.push(LatestStore { mark, wave: by.wave as u32, stored });
        let lanes = 1 << (conflict.lane % LANES);
        self.contested.add(cell, stores, LateConflict { wave: by.wave, step: by.step, lanes, conflict });
        true
    }

    /// Writes up to this number are over, whoever has made them.
    fn writes_over(&self, by: &LdsAccessor<'_>) -> u32 {
        let over = |wave: usize| {
            let clock = if wave == by.wave { by.clock } else { by.known.of(by.wave, wave) };
            let by_dma = if self.last[wave].dma > 0 { clock.over[VM] } else { u32::MAX };
            let by_lds = if wave == by.wave { u32::MAX } else { clock.over[LGKM] };
            by_dma.min(by_lds)
        };
        (0..self.last.len()).map(over).min().unwrap_or(0)
    }

    /// True if one of the numbers of some cells is above `floor`: asked for all at once, because hardly any
    /// is.
    #[inline(always)]
    fn is_newer(numbers: &[u32], cells: Range<usize>, floor: u32) -> bool {
        numbers[cells].iter().fold(false, |any, &number| any | (number > floor))
    }

    /// True if another wave has read one of the cells, and that may not be over.
    fn is_read_anew(&self, cells: Range<usize>, by: &LdsAccessor<'_>) -> bool {
        (0..self.last.len()).filter(|&wave| wave != by.wave).any(|wave| {
            let plane = &self.reads.numbers[wave * self.cells..(wave + 1) * self.cells];
            Self::is_newer(plane, cells.clone(), by.known.of(by.wave, wave).over[LGKM])
        })
    }

    #[inline(always)]
    fn load(&mut self, cells: Range<usize>, run: &LaneRun, by: &LdsAccessor<'_>, judged: &mut LdsVerdict) {
        // Nobody has to wait for a load that is meant to meet stores.
        if by.meets == Meets::Nothing {
            self.note_load(cells.clone(), by);
        }
        let worst = self.writer[cells.clone()].iter().fold(0, |all, w| all | w);
        if worst & UNDEFINED != 0 {
            self.loads_undefined(cells, run, by, judged);
        }
    }

    #[inline(always)]
    fn note_load(&mut self, cells: Range<usize>, by: &LdsAccessor<'_>) {
        let plane = by.wave * self.cells + cells.start..by.wave * self.cells + cells.end;
        let bit = 1 << (by.wave % 16);
        let current = &mut self.reads.current[cells];
        for ((read, stale), current) in
            self.reads.numbers[plane.clone()].iter_mut().zip(&mut self.reads.stale[plane]).zip(current)
        {
            *stale = if *current & bit == 0 { *read } else { *stale };
            *current |= bit;
            *read = by.number;
        }
    }

    #[cold]
    fn loads_undefined(
        &self,
        cells: Range<usize>,
        run: &LaneRun,
        by: &LdsAccessor<'_>,
        judged: &mut LdsVerdict,
    ) {
        for cell in cells.filter(|&c| self.writer[c] & UNDEFINED != 0) {
            let known = self.undefined.get(cell).filter(|_| self.writer[cell] != NOBODY);
            let (bits, origin) = known.map_or((u32::MAX, None), |known| (known.bits, known.origin));
            run.pieces(cell << self.granule, self.granule, |lane, byte, at, mask| {
                let what = Unwritten::Memory(Memory::Lds, at);
                let origin = origin.unwrap_or(UndefinedOrigin { step: by.step, what });
                let shift = 8 * (at - ((cell << self.granule) as u64));
                judged.undefined.add(lane, byte, bits >> shift & mask, Some(origin));
            });
        }
    }

    /// Notes the undefined part of a store.
    #[cold]
    fn stores_undefined(&mut self, run: &LaneRun, stored: &UndefinedStore<'_>) {
        for lane in (run.lane..run.lane + run.lanes).filter(|l| stored.lanes() >> l & 1 != 0) {
            for byte in 0..run.bytes {
                let Some((bits, origin)) = stored.byte(lane, byte as usize) else { continue };
                let at = run.address + (lane - run.lane) as u64 * run.bytes + byte;
                let (cell, inside) = ((at >> self.granule) as usize, at & ((1 << self.granule) - 1));
                if cell >= self.cells {
                    continue;
                }
                if self.undefined.is_empty() {
                    self.undefined.resize(self.cells, UndefinedCell::default());
                }
                let known = &mut self.undefined[cell];
                if self.writer[cell] & UNDEFINED == 0 {
                    *known = UndefinedCell::default();
                }
                known.bits |= u32::from(bits) << (8 * inside);
                known.origin.get_or_insert(origin);
                self.writer[cell] |= UNDEFINED;
            }
        }
    }

    #[inline(always)]
    fn store(
        &mut self,
        cells: Range<usize>,
        run: &LaneRun,
        access: MemoryAccess,
        by: &LdsAccessor<'_>,
        judged: &mut LdsVerdict,
    ) {
        let mut who = by.wave as u8 & 0xf | if by.by_dma { BY_DMA } else { 0 };
        if by.meets > Meets::Nothing {
            who |= BY_ATOMIC;
        }
        if access == MemoryAccess::Atomic {
            self.loads_undefined(cells.clone(), run, by, judged);
        }
        if by.meets == Meets::Stores {
            // As long as it waits it leaves what is there; afterwards it is the next one that it meets.
            return;
        }
        if let Some(data) = self.exact(run, access, by) {
            who |= VALUED;
            if self.stores_plainly(cells.clone(), &data, run, by) {
                self.writer[cells.clone()].fill(who);
                self.written[cells].fill(by.number);
                return;
            }
            let mut at = run.lane_of((cells.start as u64) << self.granule);
            for cell in cells.clone() {
                let stored = self.stored(&data, at, by);
                if self.holds(cell, stored) {
                    self.join(cell, by);
                } else {
                    self.value[cell] = stored.value;
                    self.renew(cell);
                }
                at.1 += 1 << self.granule;
                if at.1 >= run.bytes {
                    at = (at.0 + 1, 0);
                }
            }
        } else {
            cells.clone().for_each(|cell| self.renew(cell));
        }
        self.writer[cells.clone()].fill(who);
        self.written[cells.clone()].fill(by.number);
        if let Some(stored) = by.undefined {
            self.stores_undefined(run, stored);
        }
    }

    /// Notes the values of a store that is defined throughout, to cells that are so too or are new, unless
    /// another wave has stored the same value to one of them.
    #[inline(always)]
    fn stores_plainly(
        &mut self,
        cells: Range<usize>,
        data: &StoreData<'_>,
        run: &LaneRun,
        by: &LdsAccessor<'_>,
    ) -> bool {
        let writers = &self.writer[cells.clone()];
        let own = by.wave as u8 & 0xf;
        let foreign = |who: u8| who != NOBODY && (who & UNDEFINED != 0 || who & 0xf != own);
        if by.undefined.is_some()
            || !self.common.is_empty()
            || writers.iter().fold(false, |any, &who| any | foreign(who))
        {
            return false;
        }
        let (mut lane, mut byte) = run.lane_of((cells.start as u64) << self.granule);
        let old = self.value[cells.clone()].iter_mut().zip(&mut self.reads.current[cells]);
        let renew = |who: u8, value: &mut u32, current: &mut u16, new: u32| {
            let same = who & (VALUED | UNDEFINED) == VALUED && *value == new;
            *current = if same { *current } else { 0 };
            *value = new;
        };
        if self.granule == 2
            && let Some(dwords) = data.dwords(lane, writers.len())
        {
            for ((&who, &new), (value, current)) in writers.iter().zip(dwords).zip(old) {
                renew(who, value, current, new);
            }
            return true;
        }
        for (&who, (value, current)) in writers.iter().zip(old) {
            renew(who, value, current, data.value(lane, byte as usize, self.granule));
            byte += 1 << self.granule;
            if byte >= run.bytes {
                (lane, byte) = (lane + 1, 0);
            }
        }
        true
    }

    /// What a store puts into the cell that starts with byte `at.1` of the data of lane `at.0`.
    #[inline(always)]
    fn stored(&self, data: &StoreData<'_>, (lane, byte): (usize, u64), by: &LdsAccessor<'_>) -> StoredCell {
        let value = data.value(lane, byte as usize, self.granule);
        let undefined = by.undefined.map_or(0, |undefined| undefined.cell(lane, byte as usize, self.granule));
        StoredCell { value, undefined }
    }

    /// True if a store has left the same in a cell.
    #[inline(always)]
    fn holds(&self, cell: usize, stored: StoredCell) -> bool {
        let who = self.writer[cell];
        who != NOBODY && who & VALUED != 0 && self.contents(cell).is_same(stored)
    }

    /// What is in a cell that somebody has stored to.
    #[inline(always)]
    fn contents(&self, cell: usize) -> StoredCell {
        let undefined = match self.undefined.get(cell) {
            Some(known) if self.writer[cell] & UNDEFINED != 0 => known.bits,
            _ => 0,
        };
        StoredCell { value: self.value[cell], undefined }
    }

    /// Something else is in a cell from now on.
    #[inline(always)]
    fn renew(&mut self, cell: usize) {
        self.reads.current[cell] = 0;
        if !self.common.is_empty() {
            self.common.remove(&cell);
        }
    }

    /// Adds the last writer of a cell to those of the same value, unless it is the wave that stores now.
    fn join(&mut self, cell: usize, by: &LdsAccessor<'_>) {
        let last = EarlierStore { wave: usize::from(self.writer[cell] & 0xf), number: self.written[cell] };
        if last.wave == by.wave {
            return;
        }
        let stores = self.common.entry(cell).or_default();
        match stores.iter_mut().find(|store| store.wave == last.wave) {
            Some(store) => *store = last,
            None => stores.push(last),
        }
    }

    /// The stores before the last one that have stored what is in a cell.
    fn earlier(&self, cell: usize) -> &[EarlierStore] {
        self.common.get(&cell).map_or(&[], |stores| &stores[..])
    }

    /// The data of a store that covers its cells completely.
    #[inline(always)]
    fn exact<'a>(&self, run: &LaneRun, access: MemoryAccess, by: &LdsAccessor<'a>) -> Option<StoreData<'a>> {
        let covers = (run.address | run.bytes) & ((1 << self.granule) - 1) == 0;
        by.data.filter(|_| covers && access == MemoryAccess::Store)
    }

    #[cold]
    fn conflicts(
        &mut self,
        cells: Range<usize>,
        run: &LaneRun,
        access: MemoryAccess,
        (writes, reads): (bool, bool),
        by: &LdsAccessor<'_>,
        judged: &mut LdsVerdict,
    ) {
        for cell in cells {
            let at = (run, (cell << self.granule) as u64);
            let new = self.exact(run, access, by).map(|data| self.stored(&data, run.lane_of(at.1), by));
            let is_repeated = new.is_some_and(|new| self.holds(cell, new));
            if writes && self.writer[cell] != NOBODY && !self.contested.holds(cell) {
                self.conflict_with_stores(cell, at, access, new, by, judged);
            }
            for wave in (0..self.last.len()).filter(|&wave| reads && wave != by.wave) {
                // Who has read this value already reads the same with this store or without it.
                let finds_same = is_repeated && self.reads.current[cell] >> (wave % 16) & 1 != 0;
                let numbers = if finds_same { &self.reads.stale } else { &self.reads.numbers };
                let number = numbers[wave * self.cells + cell];
                let clock = by.known.of(by.wave, wave);
                if number > clock.over[LGKM] {
                    judged.add(by.conflict(at, MemoryAccess::Load, (wave, number), clock));
                }
            }
        }
    }

    /// Judges an access to a cell that somebody has stored to.
    fn conflict_with_stores(
        &mut self,
        cell: usize,
        at: (&LaneRun, u64),
        access: MemoryAccess,
        new: Option<StoredCell>,
        by: &LdsAccessor<'_>,
        judged: &mut LdsVerdict,
    ) {
        let is_repeated = new.is_some_and(|new| self.holds(cell, new));
        let who = self.writer[cell];
        let (wave, dma, atomic) = (usize::from(who & 0xf), who & BY_DMA != 0, who & BY_ATOMIC != 0);
        let clock = if wave == by.wave { by.clock } else { by.known.of(by.wave, wave) };
        let counter = if dma { VM } else { LGKM };
        // LDS instructions of one wave are in order, and so are its loads to LDS; a load to LDS takes longer
        // than LDS instructions before it (LLVM, SIInsertWaitcnts.cpp).
        let own = wave == by.wave && (!dma || by.by_dma);
        let both_atomic = atomic && by.meets > Meets::Nothing;
        let number = self.written[cell];
        let is_open = !own && !both_atomic && number > clock.over[counter];
        let first = if atomic { MemoryAccess::Atomic } else { MemoryAccess::Store };
        let conflict = match access {
            _ if is_open && is_repeated => {
                judged.repeat(by.conflict(at, first, (wave, number), clock));
                return;
            }
            MemoryAccess::Load if is_open && self.earlier(cell).iter().any(|s| by.knows(s)) => return,
            _ if is_open => by.conflict(at, first, (wave, number), clock),
            MemoryAccess::Load => return,
            _ if is_repeated => return,
            _ => {
                let Some(&store) = self.earlier(cell).iter().find(|store| !by.knows(store)) else { return };
                let clock = by.known.of(by.wave, store.wave);
                by.conflict(at, first, (store.wave, store.number), clock)
            }
        };
        if !self.becomes_contested(cell, new, by, conflict) {
            judged.add(conflict);
        }
    }
}

impl LdsAccessor<'_> {
    /// Its conflict at an address with the access `number` of a wave, of which it knows what `clock` says.
    fn conflict(
        &self,
        (run, address): (&LaneRun, u64),
        first: MemoryAccess,
        (other_wave, number): (usize, u32),
        clock: Clock,
    ) -> LdsConflict {
        let reason = match other_wave == self.wave || number <= clock.issued {
            true => Unordered::NotWaited,
            false => Unordered::NoBarrier,
        };
        LdsConflict { lane: run.lane_of(address).0, address, other_wave, number, first, reason }
    }

    /// True if the access is ordered after a store of which the value is known, which are those by LDS
    /// instructions.
    fn knows(&self, store: &EarlierStore) -> bool {
        store.wave == self.wave || store.number <= self.known.of(self.wave, store.wave).over[LGKM]
    }
}

impl LdsVerdict {
    /// One more conflict; the first one is kept.
    fn add(&mut self, conflict: LdsConflict) {
        self.lanes |= 1 << (conflict.lane % LANES);
        self.conflict.get_or_insert(conflict);
    }

    /// One more store of the same value.
    fn repeat(&mut self, conflict: LdsConflict) {
        self.repeated_lanes |= 1 << (conflict.lane % LANES);
        self.repeated.get_or_insert(conflict);
    }
}
