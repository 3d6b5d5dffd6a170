//! Places the registers of one file: each one at the lowest free place of its whole live range, holes used.
//!
//! Long-lived registers come first, widest first: they stack up without gaps at the bottom; the short-lived
//! ones follow in program order, which for intervals of one width is optimal. The lowest place wins because
//! the number of registers decides how many waves fit. A part of a tuple takes its register only while it
//! holds a value.

use super::allocation_error::AllocationError;
use super::body::{MachineBody, RegisterFile};
use super::coalesce::Coalescer;
use super::liveness::{LiveSegment, Liveness, Position};
use super::occupancy::{
    EMPTY, RegisterOccupancy, Set, end_of, find_free, free_runs, intersect, parts_of_tuple, shift_down,
    tuple, unite,
};
use super::operands::{alignment, file_and_number};
use crate::codegen::isa::{Operand, VReg};
use cranelift_entity::{EntityRef, PrimaryMap};

/// The place of a register that has none.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Which registers are placed first.
#[derive(Copy, Clone, PartialEq, Eq)]
enum PlacingOrder {
    /// Long-lived ones by width, then the rest in program order.
    LongFirst,
    /// All by width: more registers in total, but less scattering.
    WideFirst,
}

/// What is to be placed.
#[derive(Copy, Clone)]
pub(super) struct Input<'a> {
    /// The body.
    pub body: &'a MachineBody,
    /// Live ranges; those of joined registers belong to the register that they are part of.
    pub liveness: &'a Liveness,
    /// Joined registers and hints.
    pub coalescer: &'a Coalescer,
    /// Registers that have a given place.
    pub fixed: &'a [(VReg, Operand)],
    /// Registers that no virtual register may get, by file.
    pub reserved: &'a [Set; 3],
}

/// The placer and its memory.
#[derive(Default)]
pub(super) struct RegisterPlacer {
    occupancy: RegisterOccupancy,
    /// First register of each virtual register within its file, or [`NOWHERE`].
    pub places: PrimaryMap<VReg, u32>,
    /// Sort keys; the low bits are the register.
    queue: Vec<u64>,
    /// A bit per position where a segment of the current file starts, and the number of such bits before each
    /// word.
    starts: Vec<u64>,
    ranks: Vec<usize>,
    /// Taken registers for each part of the tuple being placed.
    by_part: [Set; 32],
    /// Points and parts of its segments.
    segments: Vec<(usize, usize, u32)>,
}

impl RegisterPlacer {
    /// Places everything of one file below `limit`: returns how many registers it took, or the register that
    /// found no place.
    pub(super) fn place_file(
        &mut self,
        input: Input,
        file: RegisterFile,
        limit: u32,
    ) -> Result<Result<u32, VReg>, AllocationError> {
        self.number_points(input, file);
        let result = self.place_in_order(input, file, limit, PlacingOrder::LongFirst)?;
        match result {
            Ok(_) => Ok(result),
            Err(_) => self.place_in_order(input, file, limit, PlacingOrder::WideFirst),
        }
    }

    /// Two live ranges overlap exactly if one starts inside the other, so only starts need numbers of their
    /// own.
    fn number_points(&mut self, input: Input, file: RegisterFile) {
        self.starts.clear();
        self.starts.resize(Position::end(input.body).index() / 64 + 1, 0);
        for (id, register) in input.body.registers.iter() {
            if register.file == file {
                for segment in input.liveness.of(id) {
                    let start = segment.start.index();
                    self.starts[start / 64] |= 1 << (start % 64);
                }
            }
        }
        self.ranks.clear();
        let mut rank = 0;
        for word in &self.starts {
            self.ranks.push(rank);
            rank += word.count_ones() as usize;
        }
        self.ranks.push(rank);
    }

    /// First and last point of a segment.
    fn points(&self, segment: LiveSegment) -> (usize, usize) {
        let rank = |position: Position| {
            let (word, bit) = (position.index() / 64, position.index() % 64);
            self.ranks[word] + (self.starts[word] & (u64::MAX >> (63 - bit))).count_ones() as usize - 1
        };
        (rank(segment.start), rank(segment.end))
    }

    fn place_in_order(
        &mut self,
        input: Input,
        file: RegisterFile,
        limit: u32,
        order: PlacingOrder,
    ) -> Result<Result<u32, VReg>, AllocationError> {
        let Input { body, liveness, fixed, .. } = input;
        self.fill_queue(input, file, order);
        let reserved = input.reserved[file as usize];
        let mut used = end_of(&reserved);
        if self.queue.is_empty() && used == 0 {
            return Ok(Ok(0));
        }
        self.occupancy.reset(self.ranks.last().copied().unwrap_or(0));
        for &(register, place) in fixed {
            if body.registers.get(register).is_none_or(|r| r.file != file)
                || liveness.first[register].is_none()
            {
                continue;
            }
            let width = u32::from(body.registers[register].width);
            let error = AllocationError::FixedPlace { register, place };
            let number = match file_and_number(place) {
                Some((f, number)) if f == file && number + width <= limit => number,
                _ => return Err(error),
            };
            let (runs, _) = self.runs(liveness, register, width, limit, &EMPTY);
            if !intersect(&runs, &tuple(number, 1)) {
                return Err(error);
            }
            self.take(register, number);
            used = used.max(number + width);
        }
        for index in 0..self.queue.len() {
            let id = VReg::from_u32((self.queue[index] & 0x3f_ffff) as u32);
            if fixed.iter().any(|(register, _)| *register == id) {
                continue;
            }
            let width = u32::from(body.registers[id].width);
            let (runs, taken) = self.runs(liveness, id, width, limit, &reserved);
            let alignment = alignment(file, width);
            let place = self
                .hinted(input.coalescer, id, alignment, &runs)
                .or_else(|| find_free(&runs, &taken, alignment, used));
            let Some(place) = place else { return Ok(Err(id)) };
            self.take(id, place);
            used = used.max(place + width);
        }
        Ok(Ok(used))
    }

    /// Orders the registers of a file. Keys: class, then start and width in the order's sense, then the
    /// register.
    fn fill_queue(&mut self, input: Input, file: RegisterFile, order: PlacingOrder) {
        self.queue.clear();
        let long = input.body.insts.next_key().as_u32() / 4;
        for (id, register) in input.body.registers.iter() {
            if register.file != file || input.liveness.first[id].is_none() {
                continue;
            }
            self.places[id] = NOWHERE;
            let (mut start, mut end) = (Position::START, Position::START);
            for (n, segment) in input.liveness.of(id).enumerate() {
                start = if n == 0 { segment.start } else { start };
                end = segment.end;
            }
            let span = end.as_u32() - start.as_u32();
            let (start, narrowness) = (u64::from(start.as_u32()), u64::from(255 - register.width));
            let key = if order == PlacingOrder::WideFirst || span >= long {
                narrowness << 48 | start << 22
            } else {
                1 << 62 | start << 30 | narrowness << 22
            };
            self.queue.push(key | u64::from(id.as_u32()));
        }
        self.queue.sort_unstable();
    }

    /// Where a register can begin, and what is taken while all of its parts hold values.
    fn runs(&mut self, liveness: &Liveness, id: VReg, width: u32, limit: u32, reserved: &Set) -> (Set, Set) {
        let mut taken = *reserved;
        let all = ((1u64 << width) - 1) as u32;
        let mut partial = 0;
        self.segments.clear();
        for segment in liveness.of(id) {
            let (first, last) = self.points(segment);
            self.segments.push((first, last, segment.parts));
            let here = self.occupancy.taken(first, last);
            if segment.parts == all {
                unite(&mut taken, &here);
                continue;
            }
            if partial == 0 {
                self.by_part[..width as usize].fill(EMPTY);
            }
            partial |= segment.parts;
            let mut parts = segment.parts;
            while parts != 0 {
                unite(&mut self.by_part[parts.trailing_zeros() as usize], &here);
                parts &= parts - 1;
            }
        }
        let mut runs = free_runs(&taken, width, limit);
        for part in (0..width).filter(|part| partial >> part & 1 != 0) {
            let blocked = shift_down(&self.by_part[part as usize], part);
            runs.iter_mut().zip(blocked).for_each(|(word, blocked)| *word &= !blocked);
        }
        (runs, taken)
    }

    /// Puts the register that was last looked at into a place.
    fn take(&mut self, id: VReg, place: u32) {
        self.places[id] = place;
        for &(first, last, parts) in &self.segments {
            self.occupancy.take(first, last, &parts_of_tuple(place, parts));
        }
    }

    /// The place that makes a copy unnecessary, if it is free.
    fn hinted(&self, coalescer: &Coalescer, id: VReg, alignment: u32, runs: &Set) -> Option<u32> {
        coalescer.hints(id).find_map(|hint| {
            let other = self.places[hint.other];
            let place =
                other.checked_add_signed(hint.offset).filter(|place| other != NOWHERE && *place < 256)?;
            (place % alignment == 0 && intersect(runs, &tuple(place, 1))).then_some(place)
        })
    }
}

/// A register of a file as operand.
pub(super) fn physical(file: RegisterFile, number: u32) -> Operand {
    match file {
        RegisterFile::Sgpr => Operand::sgpr(number),
        RegisterFile::Vgpr => Operand::vgpr(number),
        RegisterFile::Agpr => Operand::agpr(number),
    }
}
