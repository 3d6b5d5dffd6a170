//! Gathering findings: the same finding of several waves is one, whichever thread saw it first.

use std::collections::BTreeMap;

use super::finding::FindingKind;

/// What an undefined value has led to.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Consequence {
    /// Something depends on it. So it is with all other findings.
    Decides,
    /// It was stored to device memory, where nobody need read it.
    Stored,
}

/// A finding before it is put into words.
#[derive(Clone)]
pub(super) struct Raw {
    /// The step where it shows.
    pub step: u32,
    /// What distinguishes it from others of its kind at that step: a register, an allocation.
    pub place: u64,
    pub kind: FindingKind,
    /// The other step.
    pub other: Option<u32>,
    pub workgroup: u64,
    pub wave: u32,
    pub lanes: u64,
    pub consequence: Consequence,
}

/// Step, kind, place, the other step, consequence.
type FindingKey = (u32, u8, u64, Option<u32>, Consequence);

/// All findings of a launch, or of one thread's part.
#[derive(Default)]
pub(super) struct FindingSet {
    by_key: BTreeMap<FindingKey, (Raw, u64)>,
}

impl FindingSet {
    /// One more.
    pub(super) fn add(&mut self, raw: Raw) {
        self.add_times(raw, 1);
    }

    fn add_times(&mut self, raw: Raw, times: u64) {
        // However many uses an undefined value has, it is one finding.
        let by_pair = !matches!(
            raw.kind,
            FindingKind::UninitialisedRegister { .. }
                | FindingKind::UninitialisedMemory { .. }
                | FindingKind::DivergentBarrier { .. }
                | FindingKind::EmptyBarrier
        );
        let key = (raw.step, rank(&raw.kind), raw.place, raw.other.filter(|_| by_pair), raw.consequence);
        let (known, count) = self.by_key.entry(key).or_insert_with(|| (raw.clone(), 0));
        *count += times;
        if (raw.workgroup, raw.wave) < (known.workgroup, known.wave) {
            *known = raw;
        }
    }

    /// Those of another part.
    pub(super) fn merge(&mut self, other: FindingSet) {
        for (raw, count) in other.by_key.into_values() {
            self.add_times(raw, count);
        }
    }

    /// In the order of the code, each with how often it happened.
    pub(super) fn into_sorted(self) -> impl Iterator<Item = (Raw, u64)> {
        // What decides something need not be told once more because it is stored as well.
        let mut before = None;
        self.by_key.into_iter().filter_map(move |((step, rank, place, other, _), finding)| {
            let what = Some((step, rank, place, other));
            (std::mem::replace(&mut before, what) != what).then_some(finding)
        })
    }
}

fn rank(kind: &FindingKind) -> u8 {
    use FindingKind::*;
    match kind {
        IllegalInstruction => 0,
        PastEnd => 1,
        RegisterBeyondAllocation { .. } => 2,
        MissingWait { .. } => 3,
        Hazard { .. } => 4,
        StaleVccz => 5,
        Replay => 6,
        UninitialisedRegister { .. } => 7,
        UninitialisedMemory { .. } => 8,
        OutOfBounds { .. } | Freed { .. } => 9,
        Misaligned { .. } => 10,
        Race { .. } => 11,
        WaitBeforeBarrier => 12,
        DivergentBarrier { .. } => 13,
        Endless { .. } => 14,
        Trap { .. } => 15,
        Unsupported { .. } => 16,
        RepeatedStore { .. } => 17,
        NoProgress => 18,
        TimedOut { .. } => 19,
        LeavesBuffer { .. } => 20,
        WideDescriptor { .. } => 21,
        UnreadStore { .. } => 22,
        Erratum(_) => 23,
        ClearedHalf => 24,
        UnmetBarrier => 25,
        ToleratedHazard { .. } => 26,
        EmptyBarrier => 27,
    }
}
