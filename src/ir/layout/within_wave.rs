//! Layouts whose elements are in the same waves, in other registers and other lanes of these: where a place
//! of one finds its element in the other, and the way from one to the other in steps that a wave can make.
//!
//! All registers, replicas and lanes are numbers made of digits, and a layout says which digit of a
//! coordinate each of them is. So a conversion exchanges digits: a bit of the lane number with a digit that
//! counts registers (both have elements that the other needs), or bits of the lane number among themselves
//! (all lanes take a register of another lane).
use super::{Dim, LANES, Layout, Mode, Place, Source};
use smallvec::SmallVec;

/// Bits of a lane number.
pub(crate) const LANE_BITS: usize = LANES.ilog2() as usize;

/// Which lane each lane takes something from. Bits of the lane number do not depend on each other: a bit
/// that is set adds bits to the number of the other lane, by XOR.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LaneMap {
    /// The lane that lane 0 takes it from.
    pub(crate) first: u32,
    /// What each bit of a lane's own number adds.
    pub(crate) bits: [u32; LANE_BITS],
    /// Only the lanes count in whose numbers these bits have the values of `value`.
    pub(crate) known: u32,
    /// See `known`.
    pub(crate) value: u32,
}

impl LaneMap {
    /// The lane that a lane takes it from.
    pub(crate) fn source(&self, lane: u32) -> u32 {
        let bits = self.bits.iter().enumerate();
        bits.fold(self.first, |source, (at, &adds)| if lane >> at & 1 == 1 { source ^ adds } else { source })
    }

    /// The same where all lanes count.
    pub(crate) fn of_all_lanes(self) -> LaneMap {
        LaneMap { known: 0, value: 0, ..self }
    }

    /// What it changes, if it is an XOR of the lane number.
    pub(crate) fn as_xor(&self) -> Option<u32> {
        let same = self.bits.iter().enumerate().all(|(at, &adds)| adds == 1 << at);
        same.then_some(self.first)
    }
}

/// How places of a layout find their elements in another layout of the same wave.
pub(crate) struct Gathering<'a> {
    own: &'a Layout,
    from: &'a Layout,
    /// What each bit of the lane number adds to the place.
    bits: [Place; LANE_BITS],
    /// Bits of the lane number of `from` that make no difference.
    copies: u32,
    /// All lanes have their elements themselves.
    stays: bool,
}

impl<'a> Gathering<'a> {
    pub(crate) fn new(own: &'a Layout, from: &'a Layout) -> Gathering<'a> {
        let mut bits = [Place::default(); LANE_BITS];
        let mut places = bits.iter_mut();
        for mode in own.of_source(Source::Lane) {
            for (bit, place) in (0..mode.extent.ilog2()).zip(&mut places) {
                if let Some(dim) = mode.dim {
                    let at = mode.stride << bit;
                    *place = from.place_of(&Source::ALL, |other| if other == dim { at } else { 0 });
                }
            }
        }
        let (mut copies, mut weight) = (0, 1);
        for mode in from.of_source(Source::Lane) {
            if mode.dim.is_none() {
                copies |= weight * mode.extent - weight;
            }
            weight *= mode.extent;
        }
        let stays = bits.iter().enumerate().all(|(at, place)| {
            (place.register, place.replica) == (0, 0) && place.lane | copies & 1 << at == 1 << at
        });
        Gathering { own, from, bits, copies, stays }
    }

    /// Where lane 0 finds the element of a replica's register.
    pub(crate) fn place(&self, replica: u32, register: u32) -> Place {
        const WITHOUT_LANES: [Source; 2] = [Source::Register, Source::Replica];
        let place = Place { replica, register, ..Place::default() };
        let sources = if self.stays { &WITHOUT_LANES[..] } else { &Source::ALL };
        self.from.place_of(sources, |dim| self.own.coordinate(dim, place))
    }

    /// Bits of the lane number that decide from which register or replica a lane takes an element.
    pub(crate) fn choosing(&self) -> u32 {
        let chooses = |place: &Place| place.register != 0 || place.replica != 0;
        let bits = self.bits.iter().enumerate().filter(|(_, place)| chooses(place));
        bits.fold(0, |all, (at, _)| all | 1 << at)
    }

    /// All values of the choosing bits.
    pub(crate) fn choices(&self) -> impl Iterator<Item = u32> + use<> {
        let mask = self.choosing();
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let choice = next?;
            next = (choice != mask).then_some((choice | !mask).wrapping_add(1) & mask);
            Some(choice)
        })
    }

    /// The register and replica of an element that is at `place` for lane 0, for the lanes in whose numbers
    /// the choosing bits are those of `choice`.
    pub(crate) fn chosen(&self, place: Place, choice: u32) -> Place {
        let bits = self.bits.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1);
        bits.fold(place, |place, (_, adds)| Place {
            register: place.register + adds.register,
            replica: place.replica + adds.replica,
            ..place
        })
    }

    /// The lanes from which these lanes take it.
    pub(crate) fn lanes(&self, place: Place, choice: u32) -> LaneMap {
        let known = self.choosing();
        let mut map = LaneMap { first: place.lane, bits: [0; LANE_BITS], known, value: choice };
        for (at, adds) in self.bits.iter().enumerate() {
            let own = 1 << at;
            map.bits[at] = adds.lane | self.copies & own;
            let is_free = self.bits.iter().all(|adds| adds.lane & own == 0);
            if known & !self.copies & own != 0 && is_free {
                // What the other lanes would do does not matter: this is an XOR, or leaves the bit alone.
                map.bits[at] = own;
                map.first ^= choice & own;
            }
        }
        map
    }
}

/// One digit of two, or of a number without a factor of two.
type Digit = (Dim, u32, u32);

/// The digits of a layout one by one.
struct WaveDigits {
    lanes: [Option<Digit>; LANE_BITS],
    slots: SmallVec<[Mode; 16]>,
    waves: SmallVec<[Mode; 4]>,
}

fn digit(mode: &Mode) -> Option<Digit> {
    mode.dim.map(|dim| (dim, mode.stride, mode.extent))
}

impl WaveDigits {
    /// Nothing for layouts whose lanes are not a wave, or whose registers hold copies.
    fn of(layout: &Layout) -> Option<WaveDigits> {
        let mut digits =
            WaveDigits { lanes: [None; LANE_BITS], slots: SmallVec::new(), waves: SmallVec::new() };
        let mut lane = 0;
        for mode in layout.canonical().modes() {
            if mode.source == Source::Wave {
                digits.waves.push(*mode);
                continue;
            }
            let (mut stride, mut left) = (mode.stride, mode.extent);
            while left > 1 {
                let extent = if left.is_multiple_of(2) { 2 } else { left };
                let part = Mode { extent, stride, ..*mode };
                if mode.source != Source::Lane {
                    part.dim?;
                    digits.slots.push(part);
                } else if extent == 2 {
                    *digits.lanes.get_mut(lane)? = digit(&part);
                    lane += 1;
                } else {
                    return None;
                }
                (stride, left) = (stride * extent, left / extent);
            }
        }
        (lane == LANE_BITS).then_some(digits)
    }

    fn slot(&self, of: Digit) -> Option<usize> {
        self.slots.iter().position(|slot| digit(slot) == Some(of))
    }

    /// The digits of registers, replicas and lanes, sorted.
    fn all(&self) -> SmallVec<[Digit; 24]> {
        let mut all: SmallVec<[Digit; 24]> = self.slots.iter().filter_map(digit).collect();
        all.extend(self.lanes.iter().flatten().copied());
        all.sort_unstable();
        all
    }

    fn layout(&self) -> Option<Layout> {
        let lane = |of: &Option<Digit>| match *of {
            Some((dim, stride, extent)) => Mode::new(Source::Lane, extent, dim, stride),
            None => Mode::broadcast(Source::Lane, 2),
        };
        let modes = self.slots.iter().copied().chain(self.lanes.iter().map(lane));
        Layout::new(modes.chain(self.waves.iter().copied())).ok()
    }

    /// Brings a digit of the registers to a bit of the lane number, and what that was to the registers.
    fn exchange(&mut self, slot: usize, lane: usize) {
        let moved = digit(&self.slots[slot]);
        match self.lanes[lane] {
            Some((dim, stride, extent)) => {
                let source = self.slots[slot].source;
                self.slots[slot] = Mode::new(source, extent, dim, stride);
            }
            // Lanes with copies choose.
            None => {
                self.slots.remove(slot);
            }
        }
        self.lanes[lane] = moved;
    }
}

impl Layout {
    /// The place of the element with these coordinates, as far as it is asked for. Digits that hold copies
    /// are zero.
    pub(super) fn place_of(&self, sources: &[Source], coordinate: impl Fn(Dim) -> u32) -> Place {
        let mut index = [0; Source::ALL.len()];
        for &source in sources {
            let mut weight = 1;
            for mode in self.of_source(source) {
                if let Some(dim) = mode.dim {
                    index[source as usize] += coordinate(dim) / mode.stride % mode.extent * weight;
                }
                weight *= mode.extent;
            }
        }
        let [register, replica, lane, wave] = index;
        Place { register, replica, lane, wave }
    }

    /// The layouts on the way from this one to another one, which is the last of them, if each wave holds the
    /// same elements in both. In each step at most one bit of the lane number decides from which register a
    /// lane takes an element.
    pub(crate) fn steps_within_wave(&self, to: &Layout) -> Option<SmallVec<[Layout; 4]>> {
        let (mut now, aim) = (WaveDigits::of(self)?, WaveDigits::of(to)?);
        if now.waves != aim.waves || now.all() != aim.all() {
            return None;
        }
        let mut steps = SmallVec::new();
        let leaves =
            |now: &WaveDigits, lane: usize| now.lanes[lane].is_some_and(|own| aim.slot(own).is_some());
        // Digits of registers that become bits of the lane number: where they are to be, if something else is
        // to leave from there, otherwise anywhere.
        for at_their_place in [true, false] {
            for (lane, wanted) in aim.lanes.iter().enumerate() {
                let Some(slot) = wanted.and_then(|wanted| now.slot(wanted)) else { continue };
                let mut lanes = 0..LANE_BITS;
                let place = match at_their_place {
                    true => Some(lane).filter(|&lane| now.lanes[lane].is_none() || leaves(&now, lane)),
                    false => lanes
                        .clone()
                        .find(|&lane| leaves(&now, lane))
                        .or_else(|| lanes.find(|&lane| now.lanes[lane].is_none())),
                };
                if let Some(place) = place {
                    now.exchange(slot, place);
                    steps.push(now.layout()?);
                }
            }
        }
        // The last step also renames registers, which takes no instructions. Only bits of the lane number
        // that are still elsewhere, or by which lanes have elements that all need, take one more.
        if now.lanes == aim.lanes {
            steps.pop();
        }
        steps.push(to.clone());
        Some(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Digits of two of two dimensions, three of another and copies, in some order: the first six are lanes.
    fn layout(order: &[usize], lanes: usize) -> Layout {
        let digits = [
            Mode::new(Source::Lane, 2, Dim(0), 1),
            Mode::new(Source::Lane, 2, Dim(0), 2),
            Mode::new(Source::Lane, 2, Dim(0), 4),
            Mode::new(Source::Lane, 2, Dim(0), 8),
            Mode::new(Source::Lane, 2, Dim(1), 1),
            Mode::new(Source::Lane, 2, Dim(1), 2),
            Mode::new(Source::Lane, 2, Dim(1), 4),
            Mode::new(Source::Lane, 2, Dim(1), 8),
        ];
        let slots = order.iter().skip(lanes).enumerate().map(|(at, &digit)| Mode {
            source: if at % 2 == 0 { Source::Register } else { Source::Replica },
            ..digits[digit]
        });
        let three = Mode::new(Source::Replica, 3, Dim(2), 1);
        let copies = Mode::broadcast(Source::Lane, 1 << (LANE_BITS - lanes));
        let lanes = order.iter().take(lanes).map(|&digit| digits[digit]);
        Layout::new(lanes.chain([copies]).chain(slots).chain([three])).expect("small")
    }

    /// Checks that all lanes find what they are to have; whether more than one bit of the lane number
    /// chooses.
    fn gathers(own: &Layout, from: &Layout) -> bool {
        let gathering = Gathering::new(own, from);
        for place in own.places() {
            let choice = place.lane & gathering.choosing();
            let found = gathering.place(place.replica, place.register);
            let map = gathering.lanes(found, choice);
            let chosen = gathering.chosen(found, choice);
            let held = Place { lane: map.source(place.lane), ..chosen };
            assert_eq!(own.coordinates(place), from.coordinates(held), "{own} from {from} at {place:?}");
        }
        gathering.choosing().count_ones() > 1
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn steps_lead_from_one_layout_to_the_other(
            one in Just([0, 1, 2, 3, 4, 5, 6, 7]).prop_shuffle(),
            other in Just([0, 1, 2, 3, 4, 5, 6, 7]).prop_shuffle(),
            lanes in [3usize..=6, 3usize..=6],
        ) {
            let (from, to) = (layout(&one, lanes[0]), layout(&other, lanes[1]));
            gathers(&to, &from);
            let steps = from.steps_within_wave(&to).expect("all are in one wave");
            prop_assert!(steps.len() <= 1 + LANE_BITS);
            let mut before = &from;
            for step in &steps {
                prop_assert!(!gathers(step, before), "{} from {}", step, before);
                before = step;
            }
            prop_assert!(before.equivalent(&to));
        }
    }

    #[test]
    fn other_waves_are_out_of_reach() {
        let tile = [(Dim(0), 64), (Dim(1), 4)];
        let one = Layout::distribute(&tile, 1, 64, 4).expect("small");
        let turned = Layout::distribute(&[tile[1], tile[0]], 1, 64, 4).expect("small");
        assert!(one.steps_within_wave(&turned).is_none());
        assert_eq!(one.steps_within_wave(&one).map(|steps| steps.len()), Some(1));
    }
}
