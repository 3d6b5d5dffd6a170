//! Register allocation: gives every virtual register of a body its physical place, or says where the
//! registers run out.
//!
//! ```text
//! tie accumulators, on gfx908 in AGPRs
//! liveness -> coalesce -> place --------------------------------> rewrite
//!    ^                      | no place: evict -> rematerialise, AGPRs, spill
//!    +----------------------+------------------------------------+
//! ```
//!
//! Copies are removed first, by joining what they connect. Then each file is filled. If it is too small, the
//! registers that are used least in loops leave it: constants are made again where they are read; what matrix
//! instructions and memory accesses use goes to the AGPRs as far as the unified file has room, the rest to
//! scratch; SGPRs go to lanes of a VGPR. The code for that is inserted with virtual registers, and the body
//! is allocated again. Every round evicts registers that cannot leave their file twice, so the rounds come to
//! an end.

pub(crate) use super::allocation_error::Peak;
pub use super::allocation_error::{AllocationError, Spills};
use super::body::{MachineBody, MachineInst, Origins, RegisterFile};
use super::coalesce::{Coalescer, Joining, Tied};
use super::evict::{EvictionChoice, Evictor, Shortage, WaysOut};
use super::liveness::{Liveness, Position};
use super::loops::LoopDepths;
use super::occupancy::{Set, free_runs};
use super::place::{Input, NOWHERE, RegisterPlacer, physical};
use super::pressure::Pressure;
use super::spill::{Rewritten, Spiller};
use super::tie::Ties;
use crate::codegen::isa::{Format, Operand, VReg};
use crate::codegen::target::{AccumulationFile, FlatScratch};
use cranelift_entity::{PrimaryMap, iter_entity_range};

/// How many registers of each file a kernel may use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RegisterLimits {
    /// SGPRs (at most 102).
    pub sgprs: u32,
    /// Architectural VGPRs (at most 256).
    pub vgprs: u32,
    /// Accumulation VGPRs (at most 256).
    pub agprs: u32,
    /// Both vector files together, the first one rounded up to a multiple of the second one's granule. Where
    /// AGPRs have a file of their own, each of the two.
    pub vectors: u32,
    /// Where AGPRs live.
    pub accumulation: AccumulationFile,
    /// Bytes of scratch per work-item.
    pub scratch_bytes: u32,
    /// How scratch is addressed.
    pub flat_scratch: FlatScratch,
}

impl RegisterLimits {
    /// The most that one wave can name on gfx90a and later, and the most scratch that a work-item can have:
    /// the size of a wave's scratch is a field of 13 bits in units of 1024 bytes (LLVM
    /// `GCNSubtarget::getMaxWaveScratchSize`), for 64 lanes.
    pub const MAX: RegisterLimits = RegisterLimits {
        sgprs: 102,
        vgprs: 256,
        agprs: 256,
        vectors: 512,
        accumulation: AccumulationFile::Unified { granule: 4 },
        scratch_bytes: ((1 << 13) - 1) * 1024 / 64,
        flat_scratch: FlatScratch::Architected,
    };

    /// Architectural VGPRs that remain beside `agprs` AGPRs.
    fn vgprs_beside(&self, agprs: u32) -> u32 {
        let left = match self.accumulation {
            AccumulationFile::Unified { granule } if agprs > 0 => {
                self.vectors.saturating_sub(agprs) / granule * granule
            }
            _ => self.vectors,
        };
        left.min(self.vgprs).min(256)
    }

    /// AGPRs that remain beside `vgprs` architectural VGPRs.
    fn agprs_beside(&self, vgprs: u32) -> u32 {
        let left = match self.accumulation {
            AccumulationFile::None => 0,
            AccumulationFile::Separate => self.vectors,
            AccumulationFile::Unified { granule } => {
                self.vectors.saturating_sub(vgprs.max(1).next_multiple_of(granule))
            }
        };
        left.min(self.agprs).min(256)
    }
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
    /// Pressure peaks of SGPRs, VGPRs and AGPRs in the body before allocation.
    pub peaks: [Peak; 3],
    /// What did not stay in its file.
    pub spills: Spills,
    /// Accesses of scratch in loops without a loop in them.
    pub scratch_in_loops: u32,
}

/// Registers of a file that remain beside `taken` AGPRs.
fn limit(limits: &RegisterLimits, file: RegisterFile, taken: u32) -> u32 {
    match file {
        RegisterFile::Sgpr => limits.sgprs.min(102),
        RegisterFile::Agpr => limits.agprs_beside(0),
        RegisterFile::Vgpr => limits.vgprs_beside(taken),
    }
}

/// A register that found no place.
#[derive(Copy, Clone)]
struct AllocationFailure {
    file: RegisterFile,
    register: VReg,
    /// Registers of the file, without those that are named directly.
    limit: u32,
    available: u32,
    /// AGPRs that are still available.
    agprs: u32,
}

/// Whether registers could leave a file for nothing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Room {
    Made,
    NoneForFree,
}

/// The allocator and its memory, which is reused from body to body.
#[derive(Default)]
pub struct Allocator {
    liveness: Liveness,
    loops: LoopDepths,
    pressure: Pressure,
    ties: Ties,
    coalescer: Coalescer,
    placer: RegisterPlacer,
    evictor: Evictor,
    spiller: Spiller,
    /// Registers named directly in the body, by file: no virtual register gets them.
    reserved: [Set; 3],
    /// The final place of each virtual register.
    placed: PrimaryMap<VReg, Operand>,
}

impl Allocator {
    /// Replaces all virtual registers of `body` by physical ones. `fixed` says where some of them (kernel
    /// inputs) have to be.
    ///
    /// # Errors
    /// An operand outside its register, a given place that is not free, or too few registers for what one
    /// instruction needs.
    pub fn allocate(
        &mut self,
        body: &mut MachineBody,
        limits: &RegisterLimits,
        fixed: &[(VReg, Operand)],
    ) -> Result<Allocation, AllocationError> {
        self.spiller.start(body, limits.flat_scratch, limits.accumulation);
        self.liveness.compute(body, fixed)?;
        self.reserved = self.liveness.operands.named;
        let vcc = self.liveness.operands.vcc;
        self.loops.compute(body);
        let is_fixed = |id: VReg| fixed.iter().any(|(register, _)| *register == id);
        let (origins, coalescer) = (&mut self.spiller.origins, &mut self.coalescer);
        let (ties, liveness) = (&mut self.ties, &mut self.liveness);
        ties.tie(body, origins, liveness, &self.loops, coalescer, (Tied::Accumulators, is_fixed));
        if limits.accumulation == AccumulationFile::Separate
            && self.spiller.accumulate_in_agprs(body, &self.liveness)? == Rewritten::Instructions
        {
            self.liveness.compute(body, fixed)?;
        }
        let peaks = self.pressure.peaks(body, &self.liveness);
        let mut joining = Joining::Join;
        let mut copies_tied = false;
        let mut slack = [0; 3];
        // Of room that costs nothing: what is asked for there says nothing of what has to leave at a cost.
        let mut free_slack = 0;
        let mut now = peaks;
        let [sgprs, vgprs, agprs] = loop {
            let failure = match self.foresee(limits, &now) {
                Some(failure) => failure,
                None => match self.place(body, limits, fixed, joining)? {
                    Ok(used) => break used,
                    Err(failure) => {
                        // Registers that were joined to others are left out.
                        self.liveness.compute(body, fixed)?;
                        failure
                    }
                },
            };
            let peak = now[failure.file as usize];
            if peak.registers <= failure.available && joining == Joining::Join {
                match self.make_free_room(body, limits, fixed, failure, &mut free_slack)? {
                    Room::Made => now = self.pressure.peaks(body, &self.liveness),
                    Room::NoneForFree => joining = Joining::HintOnly,
                }
                continue;
            }
            if failure.file == RegisterFile::Vgpr
                && failure.agprs > 0
                && !std::mem::replace(&mut copies_tied, true)
            {
                let (origins, coalescer) = (&mut self.spiller.origins, &mut self.coalescer);
                let (ties, liveness) = (&mut self.ties, &mut self.liveness);
                ties.tie(body, origins, liveness, &self.loops, coalescer, (Tied::VectorCopies, is_fixed));
                now = self.pressure.peaks(body, &self.liveness);
                continue;
            }
            let slack = &mut slack[failure.file as usize];
            if let Err(peak) = self.make_room(body, limits, fixed, failure, peak, slack)? {
                let all = peaks[failure.file as usize];
                return Err(self.exhausted(body, failure, peak, all));
            }
            now = self.pressure.peaks(body, &self.liveness);
        };
        self.rewrite(body);
        let spills = self.spiller.spills;
        let scratch_in_loops = if spills.to_scratch > 0 { self.scratch_in_loops(body) } else { 0 };
        Ok(Allocation { sgprs, vgprs, agprs, vcc, peaks, spills, scratch_in_loops })
    }

    /// How many accesses of scratch are in loops without a loop in them: nothing but spills uses scratch.
    fn scratch_in_loops(&self, body: &MachineBody) -> u32 {
        let accesses_scratch = |i: &&MachineInst| i.inst.op.info().format == Format::Scratch;
        let accesses = |block| body.block(block).iter().filter(accesses_scratch).count() as u32;
        self.loops.innermost().flat_map(iter_entity_range).map(accesses).sum()
    }

    /// For every instruction of the last body allocated: which instruction it was before; none for those
    /// that were inserted.
    pub fn origins(&self) -> &Origins {
        &self.spiller.origins
    }

    /// What did not stay in its file in the last body allocated.
    pub fn spills(&self) -> Spills {
        self.spiller.spills
    }

    /// A file in which more registers are alive at once than it has: placing them is not worth trying.
    fn foresee(&self, limits: &RegisterLimits, peaks: &[Peak; 3]) -> Option<AllocationFailure> {
        let agprs = peaks[RegisterFile::Agpr as usize].registers;
        let files = [RegisterFile::Sgpr, RegisterFile::Agpr, RegisterFile::Vgpr];
        let mut failures = files.map(|file| self.failure(limits, file, agprs, VReg::default())).into_iter();
        failures.find(|failure| peaks[failure.file as usize].registers > failure.available)
    }

    /// The registers of a file that remain beside `taken` AGPRs, for a register that finds no place there.
    fn failure(
        &self,
        limits: &RegisterLimits,
        file: RegisterFile,
        taken: u32,
        register: VReg,
    ) -> AllocationFailure {
        let limit = limit(limits, file, taken);
        let named = self.reserved[file as usize];
        let available = free_runs(&named, 1, limit).iter().map(|word| word.count_ones()).sum();
        let agprs = match file {
            RegisterFile::Vgpr => limits.agprs_beside(limit).saturating_sub(taken),
            _ => 0,
        };
        AllocationFailure { file, register, limit, available, agprs }
    }

    /// Places everything: returns the registers used of each file, or what found no place.
    fn place(
        &mut self,
        body: &MachineBody,
        limits: &RegisterLimits,
        fixed: &[(VReg, Operand)],
        joining: Joining,
    ) -> Result<Result<[u32; 3], AllocationFailure>, AllocationError> {
        let is_fixed = |id: VReg| fixed.iter().any(|(register, _)| *register == id);
        self.coalescer.join(body, &mut self.liveness, &self.loops, is_fixed, joining);
        self.placer.places.clear();
        self.placer.places.extend(body.registers.values().map(|_| NOWHERE));
        let input = Input {
            body,
            liveness: &self.liveness,
            coalescer: &self.coalescer,
            fixed,
            reserved: &self.reserved,
        };
        let mut used = [0; 3];
        // AGPRs before VGPRs: they have less to choose from.
        for file in [RegisterFile::Sgpr, RegisterFile::Agpr, RegisterFile::Vgpr] {
            let taken = used[RegisterFile::Agpr as usize];
            match self.placer.place_file(input, file, limit(limits, file, taken))? {
                Ok(count) => used[file as usize] = count,
                Err(register) => return Ok(Err(self.failure(limits, file, taken, register))),
            }
        }
        Ok(Ok(used))
    }

    /// Takes registers out of a file whose free registers are scattered, as far as they can be in AGPRs
    /// without copies in loops: accumulators, mostly. Copies that are left because registers are not joined
    /// would be in the loops that these registers are for.
    fn make_free_room(
        &mut self,
        body: &mut MachineBody,
        limits: &RegisterLimits,
        fixed: &[(VReg, Operand)],
        failure: AllocationFailure,
        slack: &mut u32,
    ) -> Result<Room, AllocationError> {
        let AllocationFailure { file, register, available, agprs, .. } = failure;
        if file != RegisterFile::Vgpr || agprs == 0 {
            return Ok(Room::NoneForFree);
        }
        let accumulation = limits.accumulation;
        let mut more = (2 * *slack).max(body.registers[register].width.into());
        while more < available {
            let (limit, ways) = (available - more, WaysOut::FreeInLoops);
            let capacity = limits.agprs_beside(failure.limit);
            let shortage = Shortage { file, accumulation, limit, agprs, capacity, memory: 0, ways };
            let spiller = &self.spiller;
            let stays =
                |id: VReg| spiller.is_temporary(id) || fixed.iter().any(|(register, _)| *register == id);
            self.evictor.choose(body, &self.liveness, &self.loops, shortage, stays);
            if !self.evictor.evicted.is_empty() {
                *slack = more;
                self.move_evicted(body, fixed)?;
                return Ok(Room::Made);
            }
            more *= 2;
        }
        Ok(Room::NoneForFree)
    }

    /// Takes registers out of a file that is too small, and `slack` more than needed if free ones are
    /// scattered.
    ///
    /// # Errors
    /// `Err` with the place where most registers are alive, if none of them can leave.
    fn make_room(
        &mut self,
        body: &mut MachineBody,
        limits: &RegisterLimits,
        fixed: &[(VReg, Operand)],
        failure: AllocationFailure,
        mut peak: Peak,
        slack: &mut u32,
    ) -> Result<Result<(), Peak>, AllocationError> {
        let AllocationFailure { file, register, available, agprs, .. } = failure;
        let scattered = peak.registers <= available;
        let width = u32::from(body.registers[register].width);
        if scattered {
            *slack = (2 * *slack).max(width);
        }
        loop {
            let memory = match file {
                RegisterFile::Sgpr if limits.vgprs_beside(0) > 0 => u32::MAX,
                RegisterFile::Sgpr => 0,
                _ => limits.scratch_bytes.saturating_sub(self.spiller.spills.scratch_bytes) / 4,
            };
            let (limit, accumulation) = (available.saturating_sub(*slack), limits.accumulation);
            let (capacity, ways) = (limits.agprs_beside(failure.limit), WaysOut::All);
            let shortage = Shortage { file, accumulation, limit, agprs, capacity, memory, ways };
            let spiller = &self.spiller;
            let stays =
                |id: VReg| spiller.is_temporary(id) || fixed.iter().any(|(register, _)| *register == id);
            self.evictor.choose(body, &self.liveness, &self.loops, shortage, stays);
            let to_memory = self.evictor.evicted.iter().any(|(_, choice)| *choice == EvictionChoice::Memory);
            if !self.spiller.has_begun() && (to_memory || self.evictor.evicted.is_empty()) {
                // Inputs may leave, too.
                self.spiller.release_inputs(body, fixed);
                self.liveness.compute(body, fixed)?;
                peak = self.pressure.peaks(body, &self.liveness)[file as usize];
                continue;
            }
            if !self.evictor.evicted.is_empty() {
                break;
            }
            if !scattered || *slack >= available {
                return Ok(Err(peak));
            }
            *slack *= 2;
        }
        self.move_evicted(body, fixed)?;
        Ok(Ok(()))
    }

    /// Takes the registers that have been chosen out of their file.
    fn move_evicted(
        &mut self,
        body: &mut MachineBody,
        fixed: &[(VReg, Operand)],
    ) -> Result<(), AllocationError> {
        self.spiller.start_round(body);
        for &(id, choice) in &self.evictor.evicted {
            match choice {
                EvictionChoice::Agpr => self.spiller.move_to_agprs(body, id),
                EvictionChoice::Memory => self.spiller.move_to_memory(body, id),
                EvictionChoice::Rematerialise => {
                    if let Some(index) = self.evictor.maker(body, id) {
                        self.spiller.rematerialise(body, id, index);
                    }
                }
            }
        }
        // A register that only changes its file keeps its live range.
        if self.spiller.rewrite(body, &self.liveness) == Rewritten::Instructions {
            self.liveness.compute(body, fixed)?;
        }
        Ok(())
    }

    fn exhausted(
        &self,
        body: &MachineBody,
        failure: AllocationFailure,
        mut peak: Peak,
        all: Peak,
    ) -> AllocationError {
        let AllocationFailure { file, register, limit, available, .. } = failure;
        if peak.registers <= available {
            let start = self.liveness.of(register).next().map_or(Position::START, |s| s.start);
            peak = Peak::at(body, start, available + u32::from(body.registers[register].width));
        }
        peak.registers += limit - available;
        // As an instruction of the body before allocation: for an inserted one, the instruction that it
        // serves.
        let origins = &self.spiller.origins;
        let later = iter_entity_range(peak.inst..origins.next_key()).find_map(|inst| origins[inst].expand());
        peak.inst = later.unwrap_or(peak.inst);
        AllocationError::Exhausted { file, available: limit, peak, all, spills: self.spiller.spills }
    }

    /// Replaces virtual registers by their places and drops copies that have become empty.
    fn rewrite(&mut self, body: &mut MachineBody) {
        self.placed.clear();
        self.placed.extend(body.registers.iter().map(|(id, register)| {
            let (root, part) = self.coalescer.root(id);
            match self.placer.places[root] {
                NOWHERE => Operand::NONE,
                place => physical(register.file, place + part),
            }
        }));
        let placed = &self.placed;
        body.rename(&mut self.spiller.origins, |id, first| placed[id].offset(first), |_| ());
    }
}
