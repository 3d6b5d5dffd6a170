//! What comes before what, for check mode: two operations that nothing orders and that use the same bytes.
//!
//! Every operation is complete before its call returns, so nothing goes wrong here; on a device streams go
//! their own ways, and the host its own. So the operations of the process have numbers, and a *clock* says
//! for each stream up to which of its operations everything is known to have happened. Each stream has a
//! clock, what its next operation comes after; each recorded event has that of its place; and the host has
//! one, of what it has waited for. The rules are those of HIP's documentation ("Asynchronous concurrent
//! execution" and "Stream management"):
//!
//! - An operation comes after what its stream was given before, and after all that the host knows of.
//! - The default stream comes after all other streams and they after it, but for those of
//!   `hipStreamNonBlocking`. A thread's own default stream is one like any other.
//! - A stream that waits for an event comes after all that the event stands for.
//! - The host knows of what it has waited for: a stream, an event, or the device, or asked about with
//!   success; a copy or fill that is no asynchronous one; the asynchronous copy into memory that is not
//!   pinned, which AMD's library waits for; memory that is freed. What a stream's function of the host has
//!   followed is known, too, because that function may tell.
//!
//! The threads of the host count as one, in the order of their calls, as how they wait for each other is not
//! seen; so nothing is found between threads that these have ordered. A graph is one operation after another.
//! The bytes of a copy or fill are those that it was asked for, the bytes of a kernel those that check mode
//! has seen it use, where atomics of two kernels may meet. Operations that the host knows of are forgotten:
//! whatever comes later is after them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use groundswell::simulator::TouchedBytes;
use serde_json::{Value, json};

use crate::handles::Handle;

/// The most ranges of bytes that are remembered, of all operations together: the oldest ones are forgotten.
const MOST_RANGES: usize = 1 << 22;
/// The default stream.
const DEFAULT: Handle = 0;

/// How a stream and the default stream go together.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Blocking {
    /// They wait for each other.
    Blocking,
    /// They do not (`hipStreamNonBlocking`).
    NonBlocking,
}

/// A stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub stream: Handle,
    pub blocking: Blocking,
}

impl Place {
    /// The default stream.
    pub(crate) const DEFAULT: Place = Place { stream: DEFAULT, blocking: Blocking::Blocking };

    fn name(self) -> String {
        match self.stream {
            DEFAULT => "the default stream".to_owned(),
            stream => format!("stream {stream:#x}"),
        }
    }
}

/// What the host does after it has given an operation to a stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum HostThen {
    Waits,
    GoesOn,
}

/// For each stream, the number of the last of its operations that has happened.
#[derive(Clone, Default, Debug)]
struct Clock(BTreeMap<Handle, u64>);

impl Clock {
    fn of(&self, stream: Handle) -> u64 {
        self.0.get(&stream).copied().unwrap_or(0)
    }

    /// What has happened for `other` has happened here.
    fn join(&mut self, other: &Clock) {
        for (&stream, &number) in &other.0 {
            let own = self.0.entry(stream).or_default();
            *own = number.max(*own);
        }
    }
}

/// An operation that the host does not know to have happened.
struct Open {
    number: u64,
    what: String,
    used: TouchedBytes,
}

struct StreamOrder {
    place: Place,
    clock: Clock,
    /// In the order of their numbers.
    open: VecDeque<Open>,
}

#[derive(Default)]
struct State {
    operations: u64,
    host: Clock,
    streams: BTreeMap<Handle, StreamOrder>,
    events: BTreeMap<Handle, Clock>,
    /// Ranges of all open operations.
    ranges: usize,
    /// The pairs that were told.
    told: BTreeSet<[String; 2]>,
}

/// The order of the operations of the process.
#[derive(Default)]
pub(crate) struct Order {
    state: Mutex<State>,
}

/// One of two operations that are not ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Side {
    number: u64,
    what: String,
    place: Place,
    access: &'static str,
}

/// Two operations that nothing orders, and bytes that both use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unordered {
    first: Side,
    then: Side,
    bytes: Range<u64>,
}

impl Order {
    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock guards clocks that are whole after each change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream is given an operation that uses these bytes: what it has to be ordered with and is not,
    /// unless the like of it was told before.
    pub(crate) fn add(
        &self,
        place: Place,
        what: String,
        used: TouchedBytes,
        then: HostThen,
    ) -> Option<Unordered> {
        self.state().add(place, what, used, then)
    }

    /// An event stands for all that a stream was given.
    pub(crate) fn record(&self, event: Handle, place: Place) {
        let mut state = self.state();
        let clock = state.before(place);
        state.events.insert(event, clock);
    }

    /// What a stream is given next comes after an event.
    pub(crate) fn wait(&self, place: Place, event: Handle) {
        let mut state = self.state();
        if let Some(clock) = state.events.get(&event).cloned() {
            state.stream(place).clock.join(&clock);
        }
    }

    /// The host knows that all has happened that a stream was given.
    pub(crate) fn host_waits_for_stream(&self, place: Place) {
        let mut state = self.state();
        let clock = state.before(place);
        state.host_knows(&clock);
    }

    /// The host knows that an event has happened.
    pub(crate) fn host_waits_for_event(&self, event: Handle) {
        let mut state = self.state();
        if let Some(clock) = state.events.get(&event).cloned() {
            state.host_knows(&clock);
        }
    }

    /// The host knows that everything has happened: whatever comes is after all that was.
    pub(crate) fn host_waits_for_all(&self) {
        let mut state = self.state();
        let State { operations, told, .. } = std::mem::take(&mut *state);
        *state = State { operations, told, ..State::default() };
    }

    /// An event is no more.
    pub(crate) fn forget_event(&self, event: Handle) {
        self.state().events.remove(&event);
    }
}

impl State {
    fn stream(&mut self, place: Place) -> &mut StreamOrder {
        let new = || StreamOrder { place, clock: Clock::default(), open: VecDeque::new() };
        self.streams.entry(place.stream).or_insert_with(new)
    }

    /// What comes before the next operation of a stream.
    fn before(&mut self, place: Place) -> Clock {
        let mut clock = self.host.clone();
        clock.join(&self.stream(place).clock);
        let waits_for = |other: &StreamOrder| match (place.blocking, other.place.blocking) {
            (Blocking::Blocking, Blocking::Blocking) => {
                place.stream == DEFAULT || other.place.stream == DEFAULT
            }
            _ => false,
        };
        self.streams.values().filter(|other| waits_for(other)).for_each(|other| clock.join(&other.clock));
        clock
    }

    fn add(&mut self, place: Place, what: String, used: TouchedBytes, then: HostThen) -> Option<Unordered> {
        let mut clock = self.before(place);
        self.operations += 1;
        let number = self.operations;
        let found = self.conflict(place, &clock, &used).map(|(first, access, bytes)| Unordered {
            first,
            then: Side { number, what: what.clone(), place, access },
            bytes,
        });
        clock.0.insert(place.stream, number);
        let stream = self.stream(place);
        stream.clock = clock.clone();
        let ranges = count(&used);
        if ranges > 0 {
            stream.open.push_back(Open { number, what, used });
            self.ranges += ranges;
        }
        if then == HostThen::Waits {
            self.host_knows(&clock);
        }
        self.forget_oldest();
        found.filter(|found| self.told.insert([&found.first, &found.then].map(|side| side.what.clone())))
    }

    /// An open operation of another stream that is not among those of `clock` and that uses bytes that are
    /// used now, how they are used now, and the first of these bytes.
    fn conflict(
        &self,
        place: Place,
        clock: &Clock,
        used: &TouchedBytes,
    ) -> Option<(Side, &'static str, Range<u64>)> {
        let others = self.streams.values().filter(|stream| stream.place.stream != place.stream);
        others.into_iter().find_map(|stream| {
            let happened = clock.of(stream.place.stream);
            let first = stream.open.partition_point(|open| open.number <= happened);
            stream.open.range(first..).find_map(|open| {
                let (access, now, bytes) = common(&open.used, used)?;
                let side = Side { number: open.number, what: open.what.clone(), place: stream.place, access };
                Some((side, now, bytes))
            })
        })
    }

    fn host_knows(&mut self, clock: &Clock) {
        self.host.join(clock);
        let State { host, streams, ranges, .. } = self;
        for stream in streams.values_mut() {
            let happened = host.of(stream.place.stream);
            while let Some(open) = stream.open.pop_front_if(|open| open.number <= happened) {
                *ranges -= count(&open.used);
            }
        }
    }

    fn forget_oldest(&mut self) {
        while self.ranges > MOST_RANGES {
            let oldest = |stream: &&mut StreamOrder| stream.open.front().map_or(u64::MAX, |open| open.number);
            let open = self.streams.values_mut().min_by_key(oldest).and_then(|s| s.open.pop_front());
            let Some(open) = open else { return };
            self.ranges -= count(&open.used);
        }
    }
}

fn count(used: &TouchedBytes) -> usize {
    used.written.len() + used.updated.len() + used.read.len()
}

/// How two operations use the same bytes in a way that depends on which is first, and the first such bytes.
fn common(first: &TouchedBytes, then: &TouchedBytes) -> Option<(&'static str, &'static str, Range<u64>)> {
    const WRITES: &str = "writes";
    const CHANGES: &str = "changes";
    const READS: &str = "reads";
    let pairs = [
        (WRITES, &first.written, WRITES, &then.written),
        (WRITES, &first.written, READS, &then.read),
        (READS, &first.read, WRITES, &then.written),
        (WRITES, &first.written, CHANGES, &then.updated),
        (CHANGES, &first.updated, WRITES, &then.written),
        (CHANGES, &first.updated, READS, &then.read),
        (READS, &first.read, CHANGES, &then.updated),
    ];
    pairs.into_iter().find_map(|(a, of_a, b, of_b)| Some((a, b, both(of_a, of_b)?)))
}

/// The first bytes that are in one of these and in one of those, each in rising order.
fn both(these: &[Range<u64>], those: &[Range<u64>]) -> Option<Range<u64>> {
    let (mut a, mut b) = (0, 0);
    while let (Some(this), Some(that)) = (these.get(a), those.get(b)) {
        let bytes = this.start.max(that.start)..this.end.min(that.end);
        if !bytes.is_empty() {
            return Some(bytes);
        }
        match this.end <= that.end {
            true => a += 1,
            false => b += 1,
        }
    }
    None
}

impl Unordered {
    /// As `groundswell hip` tells findings.
    pub(crate) fn to_json(&self) -> Value {
        let side = |side: &Side| {
            json!({
                "operation": side.number, "what": side.what, "stream": side.place.stream, "access": side.access,
            })
        };
        json!({
            "kind": "unordered_operations",
            "address": self.bytes.start,
            "bytes": self.bytes.end - self.bytes.start,
            "first": side(&self.first),
            "then": side(&self.then),
            "text": self.text(),
        })
    }

    fn text(&self) -> String {
        let Unordered { first, then, bytes } = self;
        let side = |side: &Side| {
            format!("operation {}: {} in {} {}", side.number, side.what, side.place.name(), side.access)
        };
        let is_default = [first, then].iter().any(|side| side.place.stream == DEFAULT);
        let default = match is_default {
            true => "; a stream of hipStreamNonBlocking and the default stream do not wait for each other",
            false => "",
        };
        format!(
            "error: two operations that nothing orders use the same memory\n  --> {} {} bytes at {:#x}\n  \
             with {} them\n   = help: let the later stream wait for the earlier one (hipEventRecord and \
             hipStreamWaitEvent), wait on the host in between (hipStreamSynchronize), or use one stream for \
             both{default}",
            side(then),
            bytes.end - bytes.start,
            bytes.start,
            side(first),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Place = Place { stream: 16, blocking: Blocking::NonBlocking };
    const B: Place = Place { stream: 32, blocking: Blocking::NonBlocking };
    const C: Place = Place { stream: 48, blocking: Blocking::Blocking };
    const EVENT: Handle = 64;

    /// An operation that uses some bytes; whether it was in order.
    fn goes(order: &Order, place: Place, used: TouchedBytes, then: HostThen) -> bool {
        let number = order.state().operations;
        order.add(place, format!("operation {number}"), used, then).is_none()
    }

    fn one(bytes: Range<u64>) -> Vec<Range<u64>> {
        std::iter::once(bytes).collect()
    }

    fn written() -> TouchedBytes {
        TouchedBytes { written: one(0..16), ..TouchedBytes::default() }
    }

    fn write(order: &Order, place: Place) -> bool {
        goes(order, place, written(), HostThen::GoesOn)
    }

    fn read(order: &Order, place: Place) -> bool {
        goes(order, place, TouchedBytes { read: one(0..16), ..TouchedBytes::default() }, HostThen::GoesOn)
    }

    #[test]
    fn streams_are_ordered_by_what_they_wait_for() {
        let order = Order::default();
        assert!(write(&order, A) && write(&order, A));
        assert!(!read(&order, B));
        order.record(EVENT, A);
        order.wait(B, EVENT);
        assert!(read(&order, B) && read(&order, A));
        // The event does not stand for what came later.
        assert!(!write(&order, A));
        order.wait(B, EVENT);
        assert!(!read(&order, B));
        order.host_waits_for_event(EVENT);
        assert!(!read(&order, C));
        order.host_waits_for_stream(A);
        assert!(read(&order, C));
        order.host_waits_for_all();
        assert!(write(&order, B));
        assert_eq!(order.state().ranges, 1);
    }

    #[test]
    fn the_default_stream_waits_for_those_that_block() {
        let order = Order::default();
        assert!(write(&order, C) && write(&order, Place::DEFAULT) && write(&order, C));
        assert!(!write(&order, A));
        order.host_waits_for_all();
        assert!(write(&order, A) && !read(&order, Place::DEFAULT));
        order.host_waits_for_stream(A);
        assert!(goes(&order, Place::DEFAULT, written(), HostThen::Waits) && read(&order, B));
        // An event of the default stream stands for the streams that it waits for.
        order.host_waits_for_all();
        assert!(write(&order, C));
        order.record(EVENT, Place::DEFAULT);
        order.wait(A, EVENT);
        assert!(write(&order, A));
    }

    #[test]
    fn reads_and_atomics_may_meet_and_a_pair_is_told_once() {
        let order = Order::default();
        let used = |read: Range<u64>, updated: Range<u64>| TouchedBytes {
            read: one(read),
            updated: one(updated),
            ..TouchedBytes::default()
        };
        let add = |place, used| order.add(place, "it".to_owned(), used, HostThen::GoesOn);
        assert_eq!(add(A, used(0..8, 8..16)), None);
        assert_eq!(add(B, used(0..8, 8..16)), None);
        let found = add(C, used(4..12, 20..24)).expect("it reads what was changed");
        assert_eq!((found.bytes.clone(), found.first.access, found.then.access), (8..12, "changes", "reads"));
        let text = found.text();
        assert!(text.contains("operation 3: it in stream 0x30 reads 4 bytes at 0x8"), "{text}");
        assert!(text.contains("with operation 1: it in stream 0x10 changes them"), "{text}");
        assert_eq!(add(C, used(4..12, 20..24)), None);
    }

    #[test]
    fn the_first_common_bytes_are_found() {
        assert_eq!(both(&[0..4, 8..12], &[4..8, 11..20]), Some(11..12));
        assert_eq!(both(&[0..4, 8..12], &[4..8, 12..20]), None);
        assert_eq!(both(&[], &one(4..8)), None);
    }
}
