//! What the model records while it runs: issues and stalls per instruction, how busy pipes are, loops,
//! events.

use std::ops::Range;

use super::hierarchy::Traffic;
use crate::codegen::target::ParameterSet;

macro_rules! names {
    ($(#[doc = $about:literal])* $type:ident { $($variant:ident $name:literal $doc:literal,)* }) => {
        $(#[doc = $about])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub enum $type { $(#[doc = $doc] $variant,)* }

        impl $type {
            /// Every one.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$variant),*];

            /// Its display name.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
    };
}

names! {
    /// Why a wave does not issue: the reasons of AMD's PC sampling.
    Stall {
        NoInstruction "no instruction available" "Code is being fetched.",
        AluDependency "ALU dependency" "A source is still being computed.",
        Waitcnt "waitcnt" "A wait for counters.",
        Internal "internal instruction" "Idle cycles that the program asks for.",
        Barrier "barrier wait" "The other waves of the workgroup are not there yet.",
        Other "other wait" "A counter is full, or the wave sleeps.",
        NotWon "arbiter not won" "Another wave of the SIMD issued an instruction of the class.",
        PipeStalled "arbiter won but pipe stalled" "The unit is busy.",
    }
}

names! {
    /// What instructions occupy.
    Pipe {
        Valu "VALU" "Vector ALUs of the four SIMDs.",
        Matrix "matrix" "Matrix cores of the four SIMDs.",
        Scalar "scalar" "The scalar unit.",
        Lds "LDS" "Buses between the two pairs of SIMDs and LDS, one for each direction.",
        LdsBanks "LDS banks" "Banks of LDS.",
        Vector "vector memory" "Address path and data return of vector memory.",
        Branch "branch" "The branch unit.",
    }
}

names! {
    /// What a loop takes time of: a compute unit's own, or its share of what compute units have together.
    Resource {
        Matrix "matrix cores" "Matrix cores of the four SIMDs.",
        Valu "VALU" "Vector ALUs of the four SIMDs.",
        Lds "LDS" "Banks of LDS, or a bus to it or from it.",
        Vector "vector memory" "The address path of vector memory, which brings the data of loads.",
        L2 "L2" "What is loaded from L2.",
        L2Writes "writes to L2" "What is stored.",
        Mall "Infinity Cache" "What L2 does not have, where there is an Infinity Cache.",
        Memory "HBM" "What no cache has.",
    }
}

/// What one instruction has asked of the compute unit and of what lies below it, all times together.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub(super) struct Demand {
    /// Clk of matrix cores and vector ALUs, all SIMDs together.
    pub matrix: u64,
    pub valu: u64,
    /// Clk of the buses from LDS and to it, both pairs of SIMDs together.
    pub lds_reads: f64,
    pub lds_writes: f64,
    /// Clk of the banks of LDS.
    pub banks: f64,
    /// Bytes that loads from memory put into LDS.
    pub to_lds: u64,
    /// Clk of the address path of vector memory.
    pub vector: f64,
    /// What it has moved between caches and memory.
    pub traffic: Traffic,
}

impl Demand {
    /// Adds that of another instruction.
    pub(super) fn join(&mut self, other: &Demand) {
        self.matrix += other.matrix;
        self.valu += other.valu;
        self.lds_reads += other.lds_reads;
        self.lds_writes += other.lds_writes;
        self.banks += other.banks;
        self.to_lds += other.to_lds;
        self.vector += other.vector;
        self.traffic.join(&other.traffic);
    }

    /// Adds what has come since it was `before` again so many times.
    fn repeat(&mut self, before: &Demand, times: u64) {
        let again = |now: &mut u64, before: u64| *now += (*now - before) * times;
        let again_f64 = |now: &mut f64, before: f64| *now += (*now - before) * times as f64;
        again(&mut self.matrix, before.matrix);
        again(&mut self.valu, before.valu);
        again(&mut self.to_lds, before.to_lds);
        again_f64(&mut self.lds_reads, before.lds_reads);
        again_f64(&mut self.lds_writes, before.lds_writes);
        again_f64(&mut self.banks, before.banks);
        again_f64(&mut self.vector, before.vector);
        self.traffic.repeat(&before.traffic, times);
    }
}

/// Counters of one instruction.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Counters {
    pub issued: u64,
    pub stalls: [u64; Stall::ALL.len()],
    /// Clk that bank conflicts of LDS cost.
    pub conflicts: u64,
    /// Cache lines that vector memory touched.
    pub lines: u64,
    pub demand: Demand,
}

impl Counters {
    /// Counts what has come since they were `before` again so many times.
    pub(super) fn repeat(&mut self, before: &Counters, times: u64) {
        let again = |now: &mut u64, before: u64| *now += (*now - before) * times;
        again(&mut self.issued, before.issued);
        again(&mut self.conflicts, before.conflicts);
        again(&mut self.lines, before.lines);
        self.stalls.iter_mut().zip(before.stalls).for_each(|(now, before)| again(now, before));
        self.demand.repeat(&before.demand, times);
    }
}

/// A loop: a branch that goes back.
#[derive(Clone, Debug)]
pub(super) struct LoopCounters {
    /// Step of the branch.
    pub step: usize,
    /// Times that it was taken.
    pub taken: u64,
    /// Clk from one time to the next in the same wave; not all of a long run.
    pub intervals: Vec<u32>,
    /// Iterations whose beginning and end are known.
    whole: u64,
    /// The times during which some wave was in one of these, one after the other.
    times: Vec<Range<u64>>,
    /// Clk in addition to these.
    more_clk: u64,
}

impl LoopCounters {
    /// A wave has gone round once, the last one that did so far.
    fn goes_round(&mut self, iteration: Range<u64>) {
        self.whole += 1;
        let mut time = iteration;
        while let Some(last) = self.times.pop_if(|last| last.end >= time.start) {
            time = last.start.min(time.start)..last.end.max(time.end);
        }
        self.times.push(time);
    }

    /// The totals that grow with every trip.
    pub(super) fn totals(&self) -> LoopTotals {
        LoopTotals { taken: self.taken, whole: self.whole, clk: self.clk() }
    }

    /// Clk during which some wave was in an iteration whose beginning and end are known.
    fn clk(&self) -> u64 {
        self.more_clk + self.times.iter().map(|time| time.end - time.start).sum::<u64>()
    }

    /// Iterations per clk, of all waves together, while any of them is in the loop.
    pub(super) fn pace(&self) -> f64 {
        let clk = self.clk();
        if clk == 0 { 0.0 } else { self.whole as f64 / clk as f64 }
    }
}

/// Totals of a loop that grow with every trip.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LoopTotals {
    pub taken: u64,
    whole: u64,
    clk: u64,
}

/// What a branch that may go back does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum LoopBranch {
    /// It goes back.
    Back,
    /// It leaves the loop.
    Leaves,
}

/// When a wave last was at a loop's branch.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LoopVisit {
    /// When the branch was last taken.
    pub back: Option<u64>,
    /// The wave has not left the loop since.
    pub is_inside: bool,
}

/// Most intervals that are kept of a loop.
const MOST_INTERVALS: usize = 1 << 16;

/// A wave issues an instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct IssueEvent {
    /// Wave in the order of launches.
    pub wave: u32,
    pub step: u32,
    pub issued: u64,
    /// When it is over.
    pub end: u64,
}

/// A wave does not issue, before an instruction or because of it. Waits leave no gaps: the waits and the
/// issues of a wave make up all of its life.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Wait {
    /// Wave in the order of launches.
    pub wave: u32,
    pub step: u32,
    pub start: u64,
    pub end: u64,
    pub stall: Stall,
}

/// A time during which a pipe is busy.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Busy {
    pub pipe: Pipe,
    /// SIMD, or port.
    pub unit: u8,
    pub start: u64,
    pub end: u64,
    pub step: u32,
    pub wave: u32,
}

/// When a wave ran.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WaveTime {
    /// Linear number of its workgroup.
    pub workgroup: u64,
    /// Number in its workgroup.
    pub wave: u32,
    /// SIMD that it ran on.
    pub simd: u32,
    /// Clk of its start and of its end.
    pub start: u64,
    /// The end.
    pub end: u64,
    /// Instructions that it issued.
    pub instructions: u64,
}

/// Everything that is recorded.
#[derive(Debug)]
pub(super) struct Record {
    pub counters: Vec<Counters>,
    pub loops: Vec<LoopCounters>,
    /// Loop of each step, or [`NO_LOOP`].
    loop_of: Vec<u32>,
    pub busy_clk: [f64; Pipe::ALL.len()],
    pub operations: u64,
    pub used: ParameterSet,
    pub events: Vec<IssueEvent>,
    pub waits: Vec<Wait>,
    pub busy: Vec<Busy>,
    /// Events that may still be kept.
    pub room: usize,
}

/// No loop.
const NO_LOOP: u32 = u32::MAX;

impl Record {
    /// Nothing yet, with room for `room` events.
    pub(super) fn new(steps: usize, room: usize) -> Record {
        Record {
            counters: vec![Counters::default(); steps],
            loops: Vec::new(),
            loop_of: vec![NO_LOOP; steps],
            busy_clk: [0.0; Pipe::ALL.len()],
            operations: 0,
            used: ParameterSet::default(),
            events: Vec::new(),
            waits: Vec::new(),
            busy: Vec::new(),
            room,
        }
    }

    /// A wave does not issue.
    #[inline]
    pub(super) fn wait(&mut self, wait: Wait) {
        if wait.end <= wait.start {
            return;
        }
        if let Some(counters) = self.counters.get_mut(wait.step as usize) {
            counters.stalls[wait.stall as usize] += wait.end - wait.start;
        }
        if self.room > 0 {
            self.waits.push(wait);
        }
    }

    /// A pipe is busy.
    #[inline]
    pub(super) fn busy(&mut self, busy: Busy) {
        let clk = busy.end - busy.start;
        self.busy_clk[busy.pipe as usize] += clk as f64;
        if let Some(counters) = self.counters.get_mut(busy.step as usize) {
            match busy.pipe {
                Pipe::Matrix => counters.demand.matrix += clk,
                Pipe::Valu => counters.demand.valu += clk,
                // What these are asked for is less than the time for which they are taken.
                Pipe::Scalar | Pipe::Lds | Pipe::LdsBanks | Pipe::Vector | Pipe::Branch => {}
            }
        }
        if self.room > 0 {
            self.busy.push(busy);
        }
    }

    /// An instruction is issued.
    #[inline]
    pub(super) fn event(&mut self, event: IssueEvent) {
        if self.room > 0 {
            self.room -= 1;
            self.events.push(event);
        }
    }

    /// Number of the loop whose branch is `step`.
    fn loop_number(&mut self, step: usize) -> usize {
        if self.loop_of[step] == NO_LOOP {
            self.loop_of[step] = self.loops.len() as u32;
            let counters = LoopCounters {
                step,
                taken: 0,
                intervals: Vec::new(),
                whole: 0,
                times: Vec::new(),
                more_clk: 0,
            };
            self.loops.push(counters);
        }
        self.loop_of[step] as usize
    }

    /// The loop whose branch is `step`.
    pub(super) fn loop_of_branch(&self, step: usize) -> Option<&LoopCounters> {
        self.loops.get(self.loop_of[step] as usize)
    }

    /// Counts what has come of a loop since its totals were `before` again so many times.
    pub(super) fn repeat_loop(&mut self, step: usize, before: &LoopTotals, times: u64) {
        let Some(it) = self.loops.get_mut(self.loop_of[step] as usize) else { return };
        let now = it.totals();
        it.taken += (now.taken - before.taken) * times;
        it.whole += (now.whole - before.whole) * times;
        it.more_clk += (now.clk - before.clk) * times;
    }

    /// A wave is at a branch that goes back or may do so; `visits` are those of the wave to all loops.
    pub(super) fn branch(&mut self, step: usize, does: LoopBranch, clk: u64, visits: &mut Vec<LoopVisit>) {
        // A branch that was never taken is no loop's.
        if does == LoopBranch::Leaves && self.loop_of[step] == NO_LOOP {
            return;
        }
        let number = self.loop_number(step);
        if visits.len() <= number {
            visits.resize(number + 1, LoopVisit::default());
        }
        let (it, visit) = (&mut self.loops[number], &mut visits[number]);
        if let Some(back) = visit.back.filter(|_| visit.is_inside) {
            it.goes_round(back..clk);
        }
        visit.is_inside = does == LoopBranch::Back;
        if does == LoopBranch::Back {
            it.taken += 1;
            if let Some(back) = visit.back.replace(clk)
                && it.intervals.len() < MOST_INTERVALS
            {
                it.intervals.push((clk - back) as u32);
            }
        }
    }
}
