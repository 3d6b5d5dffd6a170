//! How many vector registers the values of a region take, beside those that live through it.

use cranelift_entity::{EntityRef, SecondaryMap};

/// A value in a region.
#[derive(Copy, Clone, Default)]
struct RegionValue {
    /// Instructions that access it and are still to come.
    left: u32,
    /// Instructions of the region that access it.
    own: u32,
    is_alive: bool,
}

/// An instruction's access of a value.
#[derive(Copy, Clone)]
pub(crate) struct ValueAccess<K> {
    /// The value.
    pub value: K,
    /// The instruction makes it.
    pub makes: bool,
}

/// Registers that are alive while the instructions of a region pass, for values with numbers `K`.
pub(crate) struct LiveRegisters<K: EntityRef> {
    /// Registers of each value, and instructions of the whole body that access it.
    width: SecondaryMap<K, u32>,
    all: SecondaryMap<K, u32>,
    values: SecondaryMap<K, RegionValue>,
    /// The accesses of the region's instructions, and where those of each end.
    accesses: Vec<ValueAccess<K>>,
    ends: Vec<u32>,
    now: u32,
    most: u32,
}

impl<K: EntityRef> Default for LiveRegisters<K> {
    fn default() -> LiveRegisters<K> {
        LiveRegisters {
            width: SecondaryMap::new(),
            all: SecondaryMap::new(),
            values: SecondaryMap::new(),
            accesses: Vec::new(),
            ends: Vec::new(),
            now: 0,
            most: 0,
        }
    }
}

impl<K: EntityRef> LiveRegisters<K> {
    /// Begins with a body.
    pub(crate) fn begin(&mut self) {
        self.width.clear();
        self.all.clear();
    }

    /// Registers that a value takes; none if nothing is said.
    pub(crate) fn set_width(&mut self, value: K, width: u32) {
        self.width[value] = width;
    }

    /// True if a value takes registers.
    pub(crate) fn has_registers(&self, value: K) -> bool {
        self.width[value] > 0
    }

    /// An instruction accesses a value. One that instructions outside of a region access outlives it.
    pub(crate) fn count(&mut self, value: K) {
        self.all[value] += 1;
    }

    /// Begins with a region of the body.
    pub(crate) fn begin_region(&mut self) {
        self.values.clear();
        self.accesses.clear();
        self.ends.clear();
    }

    /// Adds the next instruction of the region, with the values that it accesses, each once.
    pub(crate) fn push(&mut self, accesses: impl IntoIterator<Item = ValueAccess<K>>) {
        for access in accesses {
            self.values[access.value].own += 1;
            self.accesses.push(access);
        }
        self.ends.push(self.accesses.len() as u32);
    }

    /// The region is whole: as many registers may be alive as in the order in which it stands.
    pub(crate) fn enter(&mut self) {
        self.begin_order();
        let mut most = 0;
        for number in 0..self.ends.len() as u32 {
            self.pass(number);
            most = most.max(self.now);
        }
        self.begin_order();
        self.most = most;
    }

    fn begin_order(&mut self) {
        // A value that is read before it is made comes from outside.
        for access in self.accesses.iter().rev() {
            let value = &mut self.values[access.value];
            (value.left, value.is_alive) = (value.own, !access.makes);
        }
        self.now = 0;
    }

    /// The places of an instruction's accesses.
    fn places(&self, number: u32) -> std::ops::Range<usize> {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[at] as usize
    }

    /// Registers that come to life with an instruction, and that are free after it.
    fn change(&self, number: u32) -> [u32; 2] {
        let (mut made, mut freed) = (0, 0);
        for access in &self.accesses[self.places(number)] {
            let (value, width) = (&self.values[access.value], self.width[access.value]);
            if !value.is_alive {
                made += width;
            }
            if value.left == 1 && value.own == self.all[access.value] {
                freed += width;
            }
        }
        [made, freed]
    }

    /// True if there are registers for an instruction if it comes next.
    pub(crate) fn allows(&self, number: u32) -> bool {
        let [made, freed] = self.change(number);
        made <= freed || self.now + made - freed <= self.most
    }

    /// Lets an instruction come next.
    pub(crate) fn pass(&mut self, number: u32) {
        let [made, freed] = self.change(number);
        self.now = (self.now + made).saturating_sub(freed);
        for at in self.places(number) {
            let value = &mut self.values[self.accesses[at].value];
            value.left -= 1;
            value.is_alive = true;
        }
    }
}
