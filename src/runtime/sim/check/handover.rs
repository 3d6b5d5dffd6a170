//! Handing over data through memory without a barrier: an access to a flag makes visible what its wave
//! has waited for (release), and a wave that sees it may rely on that once it has invalidated its caches
//! (acquire).
//!
//! What an access releases is settled when it is issued, because that decides which of the wave's earlier
//! operations are over. Who receives it is settled when it is performed, because that is when a load finds
//! what a store has left. And a load tells its wave only when a wait has covered it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use super::super::error::MemoryAccess;
use super::super::execute::Footprint;
use super::flight::{Flight, LGKM, VM};
use super::order::{Clock, KnownOrder, Reach};

/// What each place in memory has been handed.
#[derive(Default)]
pub(super) struct Handover {
    released: BTreeMap<u64, Rc<Released>>,
    /// What the waves have released that wait at the barrier of the grid.
    gathered: Released,
    /// The same of those that have opened it last.
    opened: Rc<Released>,
}

/// Operations of each wave that are ordered before an access.
#[derive(Clone, Default)]
pub(super) struct Released(BTreeMap<u32, Share>);

/// The operations of one wave.
#[derive(Copy, Clone, Default)]
struct Share {
    /// For its own workgroup.
    clock: Clock,
    /// For others.
    reach: Reach,
}

/// An operation in flight that hands over.
pub(super) struct PendingHandover {
    /// Its issue number.
    number: u32,
    /// The counter that says when it is over.
    counter: usize,
    is_performed: bool,
    work: Work,
}

enum Work {
    /// An access to a flag.
    Flag {
        addresses: Vec<u64>,
        /// What it releases, unless it only loads.
        releases: Option<Rc<Released>>,
        /// It leaves in place what others have released, too.
        joins: bool,
        /// It tells its wave what it has found.
        returns: bool,
        acquired: Vec<Rc<Released>>,
    },
    /// The L2 is written back: for each wave of the workgroup, the operations that were issued before that.
    WriteBack(Vec<u32>),
}

/// A wave in its workgroup, whose first wave has a number in the launch.
#[derive(Copy, Clone)]
pub(super) struct Member {
    pub wave: usize,
    pub first_wave: u32,
}

impl Released {
    /// What a wave releases with an access that it issues now.
    fn now(flight: &Flight, known: &KnownOrder, member: Member) -> Released {
        let Member { wave, first_wave } = member;
        let mut all = BTreeMap::new();
        for (&other, &reach) in known.handed(wave) {
            all.insert(other, Share { clock: Clock::default(), reach });
        }
        let model = known.model;
        for other in 0..known.waves() {
            let mut clock = known.of(wave, other);
            if other == wave {
                clock = Clock::of(flight, clock.back);
                // Who finds what the access itself leaves comes after it, too.
                clock.issued = flight.next();
                if clock.over[VM] == flight.issued {
                    clock.over[VM] = flight.next();
                }
            }
            // What another wave has issued before a barrier is passed on as it is (LLVM asks for no more than
            // that).
            let over = if other == wave || model.is_split { clock.over[VM] } else { clock.issued };
            let back = if model.has_several_l2 { clock.back } else { over };
            all.insert(first_wave + other as u32, Share { clock, reach: Reach { over, back } });
        }
        Released(all)
    }

    /// The later of the two for every wave.
    fn join(&mut self, other: &Released) {
        for (&wave, share) in &other.0 {
            let own = self.0.entry(wave).or_default();
            own.clock.join(share.clock);
            own.reach.over = own.reach.over.max(share.reach.over);
            own.reach.back = own.reach.back.max(share.reach.back);
        }
    }
}

impl PendingHandover {
    /// For an access to device memory, atomic or with scope bits, that is to be issued next; `returns` says
    /// whether its wave gets a result.
    pub(super) fn flag(
        footprint: &Footprint,
        lanes: u64,
        returns: bool,
        flight: &Flight,
        known: &KnownOrder,
        member: Member,
    ) -> PendingHandover {
        let mut addresses: Vec<u64> =
            (0..64).filter(|l| lanes >> l & 1 != 0).map(|l| footprint.address[l]).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let releases = footprint.access != MemoryAccess::Load;
        let releases = releases.then(|| Rc::new(Released::now(flight, known, member)));
        let joins = footprint.access == MemoryAccess::Atomic;
        let work = Work::Flag { addresses, releases, joins, returns, acquired: Vec::new() };
        PendingHandover { number: flight.next(), counter: VM, is_performed: false, work }
    }

    /// The same for LDS, where every access of a wave comes after all its earlier ones.
    pub(super) fn lds_flag(
        footprint: &Footprint,
        lanes: u64,
        returns: bool,
        flight: &Flight,
        known: &KnownOrder,
        member: Member,
    ) -> PendingHandover {
        let mut handover = PendingHandover::flag(footprint, lanes, returns, flight, known, member);
        handover.counter = LGKM;
        if let Work::Flag { addresses, releases, .. } = &mut handover.work {
            addresses.iter_mut().for_each(|address| *address += lds_of(member.first_wave).start);
            let own = releases.as_mut().and_then(Rc::get_mut);
            let own = own.and_then(|own| own.0.get_mut(&(member.first_wave + member.wave as u32)));
            if let Some(share) = own.filter(|_| flight.keeps_lds_order()) {
                share.clock.over[LGKM] = flight.next();
            }
        }
        handover
    }

    /// For a write-back of L2 that is to be issued next.
    pub(super) fn write_back(flight: &Flight, known: &KnownOrder, wave: usize) -> PendingHandover {
        let issued = |other| if other == wave { flight.issued } else { known.of(wave, other).issued };
        let work = Work::WriteBack((0..known.waves()).map(issued).collect());
        PendingHandover { number: flight.next(), counter: VM, is_performed: false, work }
    }
}

impl Handover {
    /// To be called when a workgroup has ended: its LDS is no more.
    pub(super) fn forget_lds(&mut self, first_wave: u32) {
        let places: Vec<u64> = self.released.range(lds_of(first_wave)).map(|(&place, _)| place).collect();
        places.iter().for_each(|place| drop(self.released.remove(place)));
    }

    /// A wave arrives at the barrier of the grid.
    pub(super) fn arrive(&mut self, flight: &Flight, known: &KnownOrder, member: Member) {
        self.gathered.join(&Released::now(flight, known, member));
    }

    /// The wave that has arrived last opens the barrier.
    pub(super) fn open(&mut self) {
        self.opened = Rc::new(std::mem::take(&mut self.gathered));
    }

    /// A wave goes on after the barrier: it comes after all that the waves there have waited for.
    pub(super) fn pass(&self, known: &mut KnownOrder, member: Member) {
        learn(&self.opened, known, member);
    }

    /// Checks which of a wave's operations have been performed since the last time, and which are over.
    pub(super) fn follow(
        &mut self,
        pending: &mut Vec<PendingHandover>,
        flight: &Flight,
        known: &mut KnownOrder,
        member: Member,
    ) {
        for handover in pending.iter_mut() {
            if !handover.is_performed && flight.is_performed(handover.number) {
                handover.is_performed = true;
                self.perform(&mut handover.work);
            }
            if flight.is_over(handover.number, handover.counter) {
                tell(&handover.work, known, member);
            }
        }
        pending.retain(|handover| !flight.is_over(handover.number, handover.counter));
    }

    fn perform(&mut self, work: &mut Work) {
        let Work::Flag { addresses, releases, joins, returns, acquired } = work else { return };
        for address in addresses {
            let found = self.released.get(address).cloned();
            acquired.extend(found.iter().filter(|_| *returns).cloned());
            let Some(releases) = releases else { continue };
            let left = match found.filter(|_| *joins) {
                Some(found) => {
                    let mut both = (*found).clone();
                    both.join(releases);
                    Rc::new(both)
                }
                None => releases.clone(),
            };
            self.released.insert(*address, left);
        }
    }
}

/// Where the LDS of a workgroup lies among the places of flags: above all addresses of the device.
fn lds_of(first_wave: u32) -> Range<u64> {
    let start = 1 << 63 | u64::from(first_wave) << 20;
    start..start + (1 << 20)
}

/// An operation is over: its wave learns what it has brought.
fn tell(work: &Work, known: &mut KnownOrder, member: Member) {
    match work {
        Work::Flag { acquired, .. } => {
            acquired.iter().for_each(|released| learn(released, known, member));
        }
        Work::WriteBack(issued) => {
            for (other, &back) in issued.iter().enumerate() {
                known.learn(member.wave, other, Clock { back, ..Clock::default() });
            }
        }
    }
}

/// A wave learns what was released.
fn learn(released: &Released, known: &mut KnownOrder, member: Member) {
    let Member { wave, first_wave } = member;
    for (&other, share) in &released.0 {
        let inside = other.wrapping_sub(first_wave) as usize;
        if inside < known.waves() {
            known.learn(wave, inside, share.clock);
            // What a wave of this workgroup has done may come back from another one.
            let Reach { over, back } = share.reach;
            known.learn(wave, inside, Clock { issued: over, over: [over, 0], back });
        } else {
            known.hand(wave, other, share.reach);
        }
    }
}
