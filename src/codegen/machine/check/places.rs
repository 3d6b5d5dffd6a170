//! What the check of an allocation knows at a point of the body: the places that hold each value, for active
//! and inactive lanes separately.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::codegen::isa::Operand;

/// A set of lanes: the active ones, the inactive ones.
pub(super) type LaneSets = u8;
pub(super) const ACTIVE: LaneSets = 1;
pub(super) const INACTIVE: LaneSets = 2;
pub(super) const ALL: LaneSets = 3;

/// A 32-bit place: a register by its number, a dword of scratch, a lane of a VGPR.
pub(super) type ValueLocation = u32;
pub(super) const FIRST_SLOT: ValueLocation = 1 << 12;
pub(super) const FIRST_LANE: ValueLocation = 1 << 24;

pub(super) fn lane_of(vgpr: u32, lane: u32) -> ValueLocation {
    FIRST_LANE + vgpr * 64 + lane
}

/// Dense numbers of values: parts of virtual registers, then physical registers named in the body, then
/// constants.
pub(super) type ValueNumber = usize;

#[derive(Clone)]
pub(super) struct AllocationState {
    /// Where each value is.
    pub(super) at: Vec<SmallVec<[(ValueLocation, LaneSets); 2]>>,
    /// Values that have been at each place, and may still be there.
    pub(super) values: BTreeMap<ValueLocation, SmallVec<[u32; 4]>>,
    /// Lanes in which a value may be anything, because it has not been written there.
    pub(super) free: Vec<LaneSets>,
    /// Lanes in which a value is known to be a constant.
    pub(super) known: Vec<Option<(u32, LaneSets)>>,
    /// Lanes in which the result of each XOR with a constant is what doing it again would give.
    pub(super) repeatable: Vec<LaneSets>,
    /// Lanes may be off.
    pub(super) masked: bool,
    /// Something is kept in a lane of a VGPR.
    pub(super) lanes_kept: bool,
    /// Among these, some more than once, are all values of which anything is known of active or of inactive
    /// lanes alone. A change of EXEC looks at them and at no others.
    pub(super) divided: Vec<u32>,
}

impl AllocationState {
    pub(super) fn lanes(&self, value: ValueNumber, location: ValueLocation) -> LaneSets {
        self.at[value].iter().find(|(at, _)| *at == location).map_or(0, |(_, lanes)| *lanes)
    }

    /// Lanes in which reading `location` gives `value`.
    pub(super) fn reads_as(&self, value: ValueNumber, location: ValueLocation) -> LaneSets {
        let constant =
            self.known[value].map_or(0, |(constant, lanes)| self.lanes(constant as usize, location) & lanes);
        self.lanes(value, location) | self.free[value] | constant
    }

    /// Places that hold a value in some lanes, or a constant that it is known to be. Constants have larger
    /// numbers than the values that they are constants of, so going through all values in order sees what was
    /// known of constants before.
    pub(super) fn locations(&self, value: ValueNumber) -> SmallVec<[ValueLocation; 4]> {
        let constant = self.known[value].map(|(constant, _)| constant as usize);
        let all = [Some(value), constant].into_iter().flatten().flat_map(|value| &self.at[value]);
        let mut locations = SmallVec::new();
        for (location, _) in all {
            if !locations.contains(location) {
                locations.push(*location);
            }
        }
        locations
    }

    /// Notes a value of which `lanes` is known now.
    fn note(&mut self, value: ValueNumber, lanes: LaneSets) {
        if lanes != 0 && lanes != ALL {
            self.divided.push(value as u32);
        }
    }

    pub(super) fn set(&mut self, value: ValueNumber, location: ValueLocation, lanes: LaneSets) {
        self.note(value, lanes);
        let list = &mut self.at[value];
        match list.iter().position(|(at, _)| *at == location) {
            Some(index) if lanes == 0 => {
                list.swap_remove(index);
            }
            Some(index) => list[index].1 = lanes,
            None if lanes == 0 => {}
            None => {
                list.push((location, lanes));
                let values = self.values.entry(location).or_default();
                if !values.contains(&(value as u32)) {
                    values.push(value as u32);
                }
            }
        }
    }

    /// The contents of a place are lost in `lanes`.
    pub(super) fn clobber(&mut self, location: ValueLocation, lanes: LaneSets) {
        let mut values = self.values.remove(&location).unwrap_or_default();
        values.retain(|value| {
            let left = self.lanes(*value as usize, location) & !lanes;
            let list = &mut self.at[*value as usize];
            list.retain(|(at, _)| *at != location);
            if left != 0 {
                list.push((location, left));
                self.note(*value as usize, left);
            }
            left != 0
        });
        if !values.is_empty() {
            self.values.insert(location, values);
        }
    }

    /// A register is written: so are the lanes kept in it.
    pub(super) fn overwrite(&mut self, location: ValueLocation, lanes: LaneSets) {
        self.clobber(location, lanes);
        if self.lanes_kept && (Operand::FIRST_VGPR..Operand::FIRST_AGPR).contains(&location) {
            let vgpr = location - Operand::FIRST_VGPR;
            (0..64).for_each(|lane| self.clobber(lane_of(vgpr, lane), ALL));
        }
    }

    /// `lanes` of a place take the contents of another one.
    pub(super) fn copy(&mut self, to: ValueLocation, from: ValueLocation, lanes: LaneSets) {
        if to == from {
            return;
        }
        let values = self.values.get(&from).cloned().unwrap_or_default();
        let arriving: SmallVec<[(u32, LaneSets); 4]> =
            values.iter().map(|&value| (value, self.lanes(value as usize, from) & lanes)).collect();
        self.overwrite(to, lanes);
        for (value, lanes) in arriving {
            let kept = self.lanes(value as usize, to);
            self.set(value as usize, to, kept | lanes);
        }
    }

    /// A value changes in `lanes`: no place holds the new one yet.
    pub(super) fn renew(&mut self, value: ValueNumber, lanes: LaneSets, rewritten: bool) {
        self.note(value, lanes);
        for (_, held) in &mut self.at[value] {
            *held &= !lanes;
        }
        self.at[value].retain(|(_, held)| *held != 0);
        self.free[value] &= !lanes;
        if lanes != ALL && !rewritten {
            self.free[value] |= INACTIVE;
        }
        self.known[value] =
            self.known[value].map(|(c, held)| (c, held & !lanes)).filter(|known| known.1 != 0);
    }

    /// A value becomes another one in `lanes`: it is now wherever the other one is.
    pub(super) fn rename(&mut self, to: ValueNumber, from: ValueNumber, lanes: LaneSets, rewritten: bool) {
        if to == from {
            return;
        }
        let (at, free, known) = (self.at[from].clone(), self.free[from] & lanes, self.known[from]);
        self.renew(to, lanes, rewritten);
        self.free[to] |= free;
        self.note(to, self.free[to]);
        for (location, held) in at {
            let kept = self.lanes(to, location);
            self.set(to, location, kept | held & lanes);
        }
        self.know(to, known.map(|(constant, held)| (constant, held & lanes)));
    }

    pub(super) fn know(&mut self, value: ValueNumber, known: Option<(u32, LaneSets)>) {
        let Some((constant, lanes)) = known.filter(|known| known.1 != 0) else { return };
        let kept = self.known[value].filter(|(other, _)| *other == constant).map_or(0, |(_, lanes)| lanes);
        self.known[value] = Some((constant, kept | lanes));
        self.note(value, kept | lanes);
    }

    /// EXEC changes: only what holds in all lanes is still known.
    pub(super) fn change_exec(&mut self, masked: bool) {
        let mut divided = std::mem::take(&mut self.divided);
        divided.sort_unstable();
        divided.dedup();
        for value in divided.into_iter().map(|value| value as ValueNumber) {
            let free = self.free[value];
            for location in self.locations(value) {
                let everywhere = self.reads_as(value, location) == ALL;
                self.set(value, location, if everywhere { ALL } else { 0 });
            }
            self.known[value] =
                self.known[value].filter(|(_, lanes)| *lanes | free == ALL).map(|k| (k.0, ALL));
            self.free[value] = if free == ALL { ALL } else { 0 };
        }
        self.repeatable.iter_mut().filter(|lanes| **lanes != ALL).for_each(|lanes| *lanes = 0);
        self.masked = masked;
    }

    /// Keeps what both states know; true if that is less than before.
    pub(super) fn join(&mut self, other: &AllocationState) -> bool {
        let mut changed = other.masked && !self.masked;
        self.masked |= other.masked;
        self.lanes_kept |= other.lanes_kept;
        for value in 0..self.at.len() {
            let (own_free, other_free) = (self.free[value], other.free[value]);
            let (own, others) = (self.locations(value), other.locations(value));
            let new = others.iter().filter(|location| !own.contains(location));
            for &location in own.iter().chain(new) {
                let old = self.lanes(value, location);
                let both = self.reads_as(value, location) & other.reads_as(value, location);
                changed |= old | own_free != both | own_free & other_free;
                self.set(value, location, both);
            }
            let known = match (self.known[value], other.known[value]) {
                (Some((a, x)), Some((b, y))) if a == b => Some((a, (x | own_free) & (y | other_free))),
                (Some((a, x)), _) => Some((a, x & other_free)),
                (_, Some((b, y))) => Some((b, y & own_free)),
                (None, None) => None,
            };
            let known = known.filter(|known| known.1 != 0);
            changed |= known != self.known[value] || own_free & other_free != own_free;
            self.known[value] = known;
            self.free[value] = own_free & other_free;
            self.note(value, self.free[value]);
            self.note(value, known.map_or(0, |(_, lanes)| lanes));
        }
        for (own, other) in self.repeatable.iter_mut().zip(&other.repeatable) {
            changed |= *own & other != *own;
            *own &= other;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    const VALUES: usize = 6;
    const CONSTANTS: usize = 2;
    const LOCATIONS: u32 = 5;

    fn random_step(state: &mut AllocationState, rng: &mut StdRng) {
        let lanes = [ACTIVE, INACTIVE, ALL][rng.random_range(0..3)];
        let mut value = || rng.random_range(0..VALUES);
        let (one, other) = (value(), value());
        let mut location = || Operand::FIRST_VGPR + rng.random_range(0..LOCATIONS);
        let (to, from) = (location(), location());
        let constant = (VALUES + rng.random_range(0..CONSTANTS)) as u32;
        match rng.random_range(0..8) {
            0 => state.set(one, to, lanes),
            1 => state.set(constant as usize, to, lanes),
            2 => state.overwrite(to, lanes),
            3 => state.copy(to, from, lanes),
            4 => state.renew(one, lanes, rng.random()),
            5 => state.rename(one, other, lanes, rng.random()),
            6 => {
                state.renew(one, lanes, true);
                state.know(one, Some((constant, lanes)));
            }
            _ => state.free[one] = ALL,
        }
    }

    #[test]
    fn a_change_of_exec_looks_at_no_value_in_vain_and_at_none_too_few() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut ends: Vec<AllocationState> = Vec::new();
        for _ in 0..2000 {
            let mut state = AllocationState {
                at: vec![SmallVec::new(); VALUES + CONSTANTS],
                values: BTreeMap::new(),
                free: vec![0; VALUES + CONSTANTS],
                known: vec![None; VALUES + CONSTANTS],
                repeatable: Vec::new(),
                masked: false,
                lanes_kept: false,
                divided: Vec::new(),
            };
            for _ in 0..rng.random_range(0..20) {
                random_step(&mut state, &mut rng);
            }
            if let Some(end) = ends.pop() {
                state.join(&end);
            }
            let mut all = state.clone();
            all.divided = (0..all.at.len() as u32).collect();
            all.change_exec(true);
            let before = state.divided.len();
            state.change_exec(true);
            assert!(before <= 200 && state.divided.is_empty());
            for value in 0..VALUES + CONSTANTS {
                for location in (0..LOCATIONS).map(|at| Operand::FIRST_VGPR + at) {
                    let [few, many] = [&state, &all].map(|state| state.reads_as(value, location));
                    assert_eq!(few, many, "value {value}");
                    assert!(few == 0 || few == ALL);
                }
            }
            ends.push(state);
        }
    }
}
