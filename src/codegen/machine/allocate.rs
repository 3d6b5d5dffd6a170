//! Register allocation: gives every virtual register of a body its physical place, or says where the registers run out.
//!
//! Registers are placed one after the other at the lowest free place of their whole live range, holes used. Long-lived
//! ones come first, widest first: they stack up without gaps at the bottom; the short-lived rest follows in program
//! order, which for intervals of one width is optimal. The lowest place wins because the number of registers decides
//! how many waves fit. Copies are removed when both sides can share a place.

use super::access::{as_copy, width};
use super::body::{Body, RegisterFile};
use super::liveness::{Liveness, NONE, Segment};
use super::occupancy::{EMPTY, Occupancy, Set, find_free, intersect, tuple};
use crate::codegen::isa::{Implicit, Operand, Role};

/// How many registers of each file a kernel may use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// SGPRs (at most 102).
    pub sgprs: u32,
    /// Architectural VGPRs (at most 256).
    pub vgprs: u32,
    /// Accumulation VGPRs (at most 256).
    pub agprs: u32,
    /// Both vector files together, the first one rounded up to a multiple of [`ACCUM_OFFSET_GRANULE`].
    pub vectors: u32,
}

/// Where AGPRs may start behind the VGPRs (LLVM AMDGPU usage, `ACCUM_OFFSET`).
pub const ACCUM_OFFSET_GRANULE: u32 = 4;

impl Limits {
    /// What one wave can name at most on gfx90a and later.
    pub const MAX: Limits = Limits { sgprs: 102, vgprs: 256, agprs: 256, vectors: 512 };
}

/// The place where most registers of a file are alive.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Peak {
    /// Number of 32-bit registers alive at once.
    pub registers: u32,
    /// Index of the instruction (before allocation).
    pub inst: u32,
    /// Its author location.
    pub source: u32,
}

/// What a finished allocation used: for each file one more than the highest register.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Allocation {
    /// SGPRs.
    pub sgprs: u32,
    /// Architectural VGPRs.
    pub vgprs: u32,
    /// Accumulation VGPRs.
    pub agprs: u32,
    /// VCC is read or written.
    pub vcc: bool,
    /// Pressure peaks of SGPRs, VGPRs and AGPRs.
    pub peaks: [Peak; 3],
}

/// Why a body cannot be allocated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AllocationError {
    /// More registers are alive at once than there are, or the free ones are scattered.
    #[error("out of {file}: {} are needed at once, {available} are available", .peak.registers)]
    Exhausted {
        /// Register file.
        file: RegisterFile,
        /// The limit.
        available: u32,
        /// Where most registers are alive, and how many; if there would be enough of them, how many the register would
        /// need that found no place among the scattered free ones, and where it starts.
        peak: Peak,
    },
    /// A register with a given place cannot have it.
    #[error("%{register} cannot be placed at {place:?}")]
    FixedPlace {
        /// Virtual register.
        register: u32,
        /// The place.
        place: Operand,
    },
    /// An operand names no register or goes beyond its end.
    #[error("operand {operand} of instruction {inst} does not lie in its virtual register")]
    BadOperand {
        /// Instruction.
        inst: u32,
        /// Operand.
        operand: u32,
    },
}

/// Which registers are placed first.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Order {
    /// Long-lived ones by width, then the rest as the program goes.
    LongFirst,
    /// All by width: worse in count, better against scattering.
    WideFirst,
}

/// The allocator and its memory, which is reused from body to body.
#[derive(Default)]
pub struct Allocator {
    liveness: Liveness,
    occupancy: Occupancy,
    /// First register of each virtual register within its file, or [`NONE`].
    places: Vec<u32>,
    /// Registers named directly in the body, by file: nobody else gets them.
    reserved: [Set; 3],
    /// Sort keys; the low bits are the register.
    queue: Vec<u64>,
    /// A bit per position where a segment of the current file starts, and the number of such bits before each word.
    starts: Vec<u64>,
    ranks: Vec<u32>,
    /// Change of pressure by position, 20 bits per file.
    pressure: Vec<i64>,
}

impl Allocator {
    /// Replaces all virtual registers of `body` by physical ones. `fixed` says where some of them (kernel inputs) are.
    pub fn allocate(
        &mut self,
        body: &mut Body,
        limits: &Limits,
        fixed: &[(u32, Operand)],
    ) -> Result<Allocation, AllocationError> {
        let mut allocation = Allocation { vcc: self.check_operands(body)?, ..Allocation::default() };
        self.liveness.compute(body);
        allocation.peaks = self.peaks(body);
        self.places.clear();
        self.places.resize(body.registers.len(), NONE);
        allocation.sgprs =
            self.place_file(body, RegisterFile::Sgpr, limits.sgprs.min(102), fixed, &allocation)?;
        let vgprs = limits.vgprs.min(limits.vectors).min(256);
        allocation.vgprs = self.place_file(body, RegisterFile::Vgpr, vgprs, fixed, &allocation)?;
        let left = limits.vectors.saturating_sub(allocation.vgprs.next_multiple_of(ACCUM_OFFSET_GRANULE));
        let agprs = limits.agprs.min(left).min(256);
        allocation.agprs = self.place_file(body, RegisterFile::Agpr, agprs, fixed, &allocation)?;
        self.rewrite(body);
        Ok(allocation)
    }

    /// The place that the last allocation gave to a virtual register; none if nothing mentions it.
    pub fn place(&self, body: &Body, register: u32) -> Option<Operand> {
        let place = *self.places.get(register as usize)?;
        (place != NONE).then(|| physical(body.registers[register as usize].file, place))
    }

    /// Finds operands that leave their register, physical registers, and uses of VCC.
    fn check_operands(&mut self, body: &Body) -> Result<bool, AllocationError> {
        self.reserved = [EMPTY; 3];
        let mut vcc = false;
        for (inst, i) in body.insts.iter().enumerate() {
            let info = i.inst.op.info();
            vcc |= info.reads.contains(Implicit::VCC) || info.writes.contains(Implicit::VCC);
            for (operand, (spec, &o)) in info.operands.iter().zip(&i.inst.operands).enumerate() {
                if o.is_none() || o.is_constant() {
                    continue;
                }
                let width = width(&i.inst, operand, spec);
                if let Some((id, first)) = o.as_virtual() {
                    let inside = body.registers.get(id as usize).is_some_and(|register| {
                        first + width <= u32::from(register.width) && register.width <= 32
                    });
                    if !inside {
                        return Err(AllocationError::BadOperand {
                            inst: inst as u32,
                            operand: operand as u32,
                        });
                    }
                } else if let Some((file, number)) = file_and_number(o) {
                    vcc |= o == Operand::VCC || o == Operand::VCC.offset(1);
                    let allocatable = if file == RegisterFile::Sgpr { 102 } else { 256 };
                    if number + width <= allocatable {
                        let set = tuple(number, width);
                        let reserved = &mut self.reserved[file as usize];
                        reserved.iter_mut().zip(set).for_each(|(word, more)| *word |= more);
                    } else if number < allocatable {
                        return Err(AllocationError::BadOperand {
                            inst: inst as u32,
                            operand: operand as u32,
                        });
                    }
                } else {
                    debug_assert!(spec.role == Role::Use, "a result is a register");
                }
            }
        }
        Ok(vcc)
    }

    fn peaks(&mut self, body: &Body) -> [Peak; 3] {
        let positions = 2 * body.insts.len() + 2;
        self.pressure.clear();
        self.pressure.resize(positions + 1, 0);
        for (id, register) in body.registers.iter().enumerate() {
            let weight = i64::from(register.width) << (20 * register.file as u32);
            for segment in self.liveness.of(id) {
                self.pressure[segment.start as usize] += weight;
                self.pressure[segment.end as usize + 1] -= weight;
            }
        }
        let (mut now, mut peaks, mut at) = (0, [0; 3], [0; 3]);
        for (position, change) in self.pressure.iter().enumerate() {
            now += change;
            if *change == 0 {
                continue;
            }
            for file in 0..3 {
                let registers = (now >> (20 * file) & 0xf_ffff) as u32;
                if registers > peaks[file] {
                    (peaks[file], at[file]) = (registers, position);
                }
            }
        }
        [0, 1, 2].map(|file| {
            let inst = (at[file].max(1) - 1) / 2;
            let source = body.insts.get(inst).map_or(u32::MAX, |i| i.source);
            Peak { registers: peaks[file], inst: inst as u32, source }
        })
    }

    fn place_file(
        &mut self,
        body: &Body,
        file: RegisterFile,
        limit: u32,
        fixed: &[(u32, Operand)],
        allocation: &Allocation,
    ) -> Result<u32, AllocationError> {
        self.number_points(body, file);
        let mut result = self.place_in_order(body, file, limit, fixed, Order::LongFirst)?;
        if result.is_err() {
            result = self.place_in_order(body, file, limit, fixed, Order::WideFirst)?;
        }
        result.map_err(|register| {
            let mut peak = allocation.peaks[file as usize];
            if peak.registers <= limit {
                peak.registers = limit + u32::from(body.registers[register as usize].width);
                peak.inst =
                    self.liveness.of(register as usize).next().map_or(peak.inst, |s| (s.start - 1) / 2);
                peak.source = body.insts.get(peak.inst as usize).map_or(u32::MAX, |i| i.source);
            }
            AllocationError::Exhausted { file, available: limit, peak }
        })
    }

    /// Two live ranges meet exactly if one starts inside the other, so only starts need to be told apart.
    fn number_points(&mut self, body: &Body, file: RegisterFile) {
        self.starts.clear();
        self.starts.resize((2 * body.insts.len() + 2) / 64 + 1, 0);
        for (id, register) in body.registers.iter().enumerate() {
            if register.file == file {
                for segment in self.liveness.of(id) {
                    self.starts[segment.start as usize / 64] |= 1 << (segment.start % 64);
                }
            }
        }
        self.ranks.clear();
        let mut rank = 0;
        for word in &self.starts {
            self.ranks.push(rank);
            rank += word.count_ones();
        }
        self.ranks.push(rank);
    }

    /// First and last point of a segment.
    fn points(&self, segment: Segment) -> (usize, usize) {
        let rank = |position: u32| {
            let (word, bit) = (position as usize / 64, position % 64);
            self.ranks[word] + (self.starts[word] & (u64::MAX >> (63 - bit))).count_ones() - 1
        };
        (rank(segment.start) as usize, rank(segment.end) as usize)
    }

    /// Places everything of one file: how many registers it took, or the register that found no place.
    fn place_in_order(
        &mut self,
        body: &Body,
        file: RegisterFile,
        limit: u32,
        fixed: &[(u32, Operand)],
        order: Order,
    ) -> Result<Result<u32, u32>, AllocationError> {
        self.fill_queue(body, file, order);
        let reserved = self.reserved[file as usize];
        let mut used = (0..256).rev().find(|&r| intersect(&reserved, &tuple(r, 1))).map_or(0, |r| r + 1);
        if self.queue.is_empty() && used == 0 {
            return Ok(Ok(0));
        }
        let points = self.ranks.last().copied().unwrap_or(0) as usize;
        self.occupancy.reset(points);
        for &(register, place) in fixed {
            let id = register as usize;
            if body.registers.get(id).is_none_or(|r| r.file != file) || self.liveness.first[id] == NONE {
                continue;
            }
            let width = u32::from(body.registers[id].width);
            let error = AllocationError::FixedPlace { register, place };
            let number = match file_and_number(place) {
                Some((f, number)) if f == file && number + width <= limit => number,
                _ => return Err(error),
            };
            if intersect(&self.taken(id), &tuple(number, width)) {
                return Err(error);
            }
            self.take(id, number, width);
            used = used.max(number + width);
        }
        for index in 0..self.queue.len() {
            let id = (self.queue[index] & 0x3f_ffff) as usize;
            if fixed.iter().any(|(register, _)| *register as usize == id) {
                continue;
            }
            let width = u32::from(body.registers[id].width);
            let mut taken = self.taken(id);
            taken.iter_mut().zip(reserved).for_each(|(word, more)| *word |= more);
            let alignment = alignment(file, width);
            let place = self
                .hinted(id, width, alignment, limit, &taken)
                .or_else(|| find_free(&taken, width, alignment, limit, used));
            let Some(place) = place else { return Ok(Err(id as u32)) };
            self.take(id, place, width);
            used = used.max(place + width);
        }
        Ok(Ok(used))
    }

    /// Orders the registers of a file. Keys: class, then start and width in the order's sense, then the register.
    fn fill_queue(&mut self, body: &Body, file: RegisterFile, order: Order) {
        self.queue.clear();
        let long = body.insts.len() as u32 / 4;
        for (id, register) in body.registers.iter().enumerate() {
            if register.file != file || self.liveness.first[id] == NONE {
                continue;
            }
            self.places[id] = NONE;
            let (mut start, mut end) = (0, 0);
            for (n, segment) in self.liveness.of(id).enumerate() {
                start = if n == 0 { segment.start } else { start };
                end = segment.end;
            }
            let (start, narrowness) = (u64::from(start), u64::from(255 - register.width));
            let key = if order == Order::WideFirst || end - start as u32 >= long {
                narrowness << 48 | start << 22
            } else {
                1 << 62 | start << 30 | narrowness << 22
            };
            self.queue.push(key | id as u64);
        }
        self.queue.sort_unstable();
    }

    fn taken(&self, id: usize) -> Set {
        let mut taken = EMPTY;
        for segment in self.liveness.of(id) {
            let (first, last) = self.points(segment);
            let some = self.occupancy.taken(first, last);
            taken.iter_mut().zip(some).for_each(|(word, more)| *word |= more);
        }
        taken
    }

    fn take(&mut self, id: usize, place: u32, width: u32) {
        self.places[id] = place;
        let registers = tuple(place, width);
        let mut next = self.liveness.first[id];
        while let Some(&segment) = self.liveness.segments.get(next as usize) {
            let (first, last) = self.points(segment);
            self.occupancy.take(first, last, &registers);
            next = segment.next;
        }
    }

    /// The place that makes a copy unnecessary, if it is free.
    fn hinted(&self, id: usize, width: u32, alignment: u32, limit: u32, taken: &Set) -> Option<u32> {
        let hint = self.liveness.hints[id];
        let other = *self.places.get(hint.other as usize)?;
        if other == NONE {
            return None;
        }
        let place = other.checked_add_signed(hint.offset)?;
        let fits = place % alignment == 0 && place + width <= limit;
        (fits && !intersect(taken, &tuple(place, width))).then_some(place)
    }

    /// Puts the places in and drops copies that have become empty.
    fn rewrite(&self, body: &mut Body) {
        let mut kept = 0;
        for block in &mut body.blocks {
            let range = block.start..block.end;
            block.start = kept;
            for index in range {
                let mut i = body.insts[index as usize];
                for operand in &mut i.inst.operands {
                    if let Some((id, first)) = operand.as_virtual() {
                        let file = body.registers[id as usize].file;
                        *operand = physical(file, self.places[id as usize] + first);
                    }
                }
                if as_copy(&i.inst).is_none_or(|(to, from)| to != from) {
                    body.insts[kept as usize] = i;
                    kept += 1;
                }
            }
            block.end = kept;
        }
        body.insts.truncate(kept as usize);
    }
}

/// SGPR pairs are even and larger SGPR tuples at multiples of four; vector tuples are even (CDNA3 ISA guide, "SGPR
/// alignment"; LLVM `FeatureGFX90AInsts`, "RequiresAlignedVGPRs").
fn alignment(file: RegisterFile, width: u32) -> u32 {
    match (file, width) {
        (_, 1) => 1,
        (RegisterFile::Sgpr, 3..) => 4,
        _ => 2,
    }
}

fn physical(file: RegisterFile, number: u32) -> Operand {
    match file {
        RegisterFile::Sgpr => Operand::sgpr(number),
        RegisterFile::Vgpr => Operand::vgpr(number),
        RegisterFile::Agpr => Operand::agpr(number),
    }
}

fn file_and_number(operand: Operand) -> Option<(RegisterFile, u32)> {
    let sgpr = || operand.number().filter(|_| operand.is_scalar_register()).map(|n| (RegisterFile::Sgpr, n));
    let agpr = || operand.as_agpr().map(|n| (RegisterFile::Agpr, n));
    operand.as_vgpr().map(|n| (RegisterFile::Vgpr, n)).or_else(agpr).or_else(sgpr)
}
