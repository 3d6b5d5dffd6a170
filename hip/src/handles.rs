//! Handles: what HIP's opaque pointers are. A handle is the key of a slot map, whose slots count how often
//! they were used, so one that was destroyed is found to be so; and it names its kind, so that one of another
//! kind is no value either.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use slotmap::{DefaultKey, Key, KeyData, SlotMap};

use crate::error::{Code, HipError, HipResult};

/// A handle as it crosses the C interface: from the highest bit on, 32 bits that count the uses of a slot, 4
/// of the kind, 24 of the slot, and 4 that are zero, because programs may take handles for aligned pointers.
pub type Handle = u64;

/// Bits of a slot's number.
const SLOT_BITS: u32 = 24;
const ZERO_BITS: u32 = 4;
const KIND_SHIFT: u32 = SLOT_BITS + ZERO_BITS;

/// What a handle stands for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum HandleKind {
    /// A number without a table. Small ones are HIP's own handles: the default streams.
    Number,
    /// A module.
    Module,
    /// A function of a module.
    Function,
    /// A stream.
    Stream,
    /// An event.
    Event,
    /// A graph.
    Graph,
    /// An executable graph.
    Exec,
    /// A memory pool.
    Pool,
    /// A context.
    Context,
    /// Memory without an address.
    Physical,
}

/// Values by their handles.
pub struct Handles<T> {
    kind: HandleKind,
    values: RwLock<SlotMap<DefaultKey, Arc<T>>>,
}

/// How many numbers without a table there are, with those that are HIP's.
static NEXT: AtomicU64 = AtomicU64::new(0x100);

/// A handle that stands for nothing yet, and is larger than all before it.
pub fn fresh() -> Handle {
    let number = NEXT.fetch_add(1, Relaxed);
    HandleKind::Number.compose(number >> SLOT_BITS, number & ((1 << SLOT_BITS) - 1))
}

impl HandleKind {
    fn compose(self, uses: u64, slot: u64) -> Handle {
        uses << 32 | (self as u64) << KIND_SHIFT | slot << ZERO_BITS
    }

    /// What errors call it.
    fn name(self) -> &'static str {
        match self {
            HandleKind::Number => "number",
            HandleKind::Module => "module",
            HandleKind::Function => "function",
            HandleKind::Stream => "stream",
            HandleKind::Event => "event",
            HandleKind::Graph => "graph",
            HandleKind::Exec => "executable graph",
            HandleKind::Pool => "memory pool",
            HandleKind::Context => "context",
            HandleKind::Physical => "memory without an address",
        }
    }

    /// Keeps a value of this kind.
    ///
    /// # Errors
    /// There are as many as handles can name.
    pub fn insert<T>(self, values: &mut SlotMap<DefaultKey, T>, value: T) -> HipResult<Handle> {
        if values.len() + 1 >= 1 << SLOT_BITS {
            let reason = format!("there are 2^{SLOT_BITS} of the kind \"{}\" already", self.name());
            return Err(HipError::new(Code::OutOfMemory, reason));
        }
        Ok(self.handle(values.insert(value)))
    }

    /// The handle of a value of this kind.
    fn handle(self, key: DefaultKey) -> Handle {
        let data = key.data().as_ffi();
        self.compose(data >> 32, data & u64::from(u32::MAX))
    }

    /// The key of a handle, if it is one of this kind.
    pub fn key(self, handle: Handle) -> Option<DefaultKey> {
        let slot = handle >> ZERO_BITS & ((1 << SLOT_BITS) - 1);
        let key = DefaultKey::from(KeyData::from_ffi(handle >> 32 << 32 | slot));
        // Not so for another kind, nor for what no slot map has made.
        (self.handle(key) == handle).then_some(key)
    }

    fn unknown(self, handle: Handle) -> HipError {
        let name = self.name();
        let reason = match handle {
            0 => format!("the {name} is null"),
            _ => format!("{handle:#x} is no {name} of this process, or it was destroyed"),
        };
        HipError::new(Code::InvalidHandle, reason)
    }
}

impl<T> Handles<T> {
    /// No values yet.
    pub fn new(kind: HandleKind) -> Handles<T> {
        Handles { kind, values: RwLock::default() }
    }

    // A poisoned lock guards a map that is whole after each change.
    fn values(&self) -> RwLockReadGuard<'_, SlotMap<DefaultKey, Arc<T>>> {
        self.values.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn values_to_change(&self) -> RwLockWriteGuard<'_, SlotMap<DefaultKey, Arc<T>>> {
        self.values.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a value.
    ///
    /// # Errors
    /// There are as many as handles can name.
    pub fn add(&self, value: T) -> HipResult<Handle> {
        self.kind.insert(&mut self.values_to_change(), Arc::new(value))
    }

    /// The value of a handle.
    ///
    /// # Errors
    /// There is none, or there is none any more.
    pub fn get(&self, handle: Handle) -> HipResult<Arc<T>> {
        let found = self.kind.key(handle).and_then(|key| self.values().get(key).cloned());
        found.ok_or_else(|| self.kind.unknown(handle))
    }

    /// All values.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.values().values().cloned().collect()
    }

    /// Forgets a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn remove(&self, handle: Handle) -> HipResult<Arc<T>> {
        let gone = self.kind.key(handle).and_then(|key| self.values_to_change().remove(key));
        gone.ok_or_else(|| self.kind.unknown(handle))
    }

    /// Forgets the values for which `goes` holds.
    pub fn remove_where(&self, goes: impl Fn(&T) -> bool) {
        self.values_to_change().retain(|_, value| !goes(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_that_are_not_live_are_errors() {
        let (streams, events) = (Handles::new(HandleKind::Stream), Handles::new(HandleKind::Event));
        let stream = streams.add("a").expect("there is room");
        let event = events.add("b").expect("there is room");
        assert_eq!((*streams.get(stream).expect("live"), *events.get(event).expect("live")), ("a", "b"));
        streams.remove(stream).expect("live");
        let next = streams.add("c").expect("there is room");
        assert_eq!(*streams.get(next).expect("live"), "c");
        // Null, HIP's own, one that is gone though its slot is used again, one of another kind, and some that
        // nothing has made.
        let neighbours = (0..64).map(|bit| next ^ 1 << bit);
        for handle in [0, 1, 2, stream, event, fresh(), u64::MAX].into_iter().chain(neighbours) {
            assert!(streams.get(handle).is_err() && streams.remove(handle).is_err(), "{handle:#x}");
        }
        assert_eq!(*streams.get(next).expect("live"), "c");
    }

    #[test]
    fn handles_look_like_pointers_and_numbers_grow() {
        let streams = Handles::new(HandleKind::Stream);
        let made: Vec<Handle> = (0..9).map(|n| streams.add(n).expect("there is room")).collect();
        let numbers: Vec<Handle> = (0..9).map(|_| fresh()).collect();
        assert!(made.iter().chain(&numbers).all(|handle| handle.is_multiple_of(16) && *handle >= 0x1000));
        assert!(numbers.is_sorted());
    }
}
