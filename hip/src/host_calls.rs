//! Calls that kernels make to the host: `printf`, the text of a failed `assert`, and memory for `malloc`.
//!
//! A kernel that makes them has a pointer to a buffer of packets. A wave takes a packet from the stack of
//! free ones, fills in what its lanes want, pushes it to the stack of ready ones and waits until the host
//! clears the packet's flag. A thread of ours looks at that stack while such kernels run.
//!
//! Source of the layout: ROCm device libraries, `ockl/src/hostcall_impl.cl` as compiled; ROCm clr,
//! `devhostcall.cpp` and `devhcmessages.cpp`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use groundswell::object::{ArgumentKind, KernelMetadata};

use crate::error::HipResult;
use crate::heap;
use crate::printf;
use crate::runtime::Runtime;
use crate::space::MemoryKind;

/// Packets, a power of two: more than waves run at a time.
const PACKETS: u64 = 4096;
/// Lanes of a wave, each with eight words in a packet.
const LANES: u64 = 64;
const LANE_BYTES: u64 = 64;

// The buffer's head.
const HEADERS: u64 = 0;
const PAYLOADS: u64 = 8;
const DOORBELL: u64 = 16;
const FREE_STACK: u64 = 24;
const READY_STACK: u64 = 32;
const INDEX_MASK: u64 = 40;
/// Where our headers, the doorbell's signal and the payloads begin.
const SIGNAL_AT: u64 = 128;
const HEADERS_AT: u64 = 256;
const PAYLOADS_AT: u64 = HEADERS_AT + (PACKETS * HEADER_BYTES).next_multiple_of(64);

// A packet's header.
const HEADER_BYTES: u64 = 24;
const NEXT: u64 = 0;
const ACTIVE_LANES: u64 = 8;
const SERVICE: u64 = 16;
const CONTROL: u64 = 20;

/// The services that print and that have memory.
const PRINTF: u32 = 2;
const MEMORY: u32 = 3;
/// Set in the control word while the wave waits.
const READY: u32 = 1;

// A word that begins each piece of a message.
const BEGIN: u64 = 1;
const END: u64 = 2;
const LENGTH_SHIFT: u32 = 5;
const ID_SHIFT: u32 = 8;

/// Bytes of all that.
const BUFFER_BYTES: u64 = PAYLOADS_AT + PACKETS * LANES * LANE_BYTES;

/// The buffer of the process.
struct CallBuffer {
    address: u64,
    /// Messages that waves have begun, by their numbers.
    messages: Mutex<Messages>,
    /// Launches that may call.
    running: AtomicUsize,
}

#[derive(Default)]
struct Messages {
    next: u64,
    begun: BTreeMap<u64, Vec<u64>>,
}

/// Whether texts of kernels are dropped.
static SILENT: AtomicBool = AtomicBool::new(false);

static BUFFER: OnceLock<HipResult<CallBuffer>> = OnceLock::new();

/// True for an address of the buffer of calls.
pub(crate) fn owns(address: u64) -> bool {
    let Some(Ok(buffer)) = BUFFER.get() else { return false };
    address.wrapping_sub(buffer.address) < BUFFER_BYTES
}

impl CallBuffer {
    fn new(runtime: &Runtime) -> HipResult<CallBuffer> {
        let address = {
            let mut simulator = runtime.simulator_to_change();
            runtime.space.allocate(&mut simulator, BUFFER_BYTES, MemoryKind::Host, 0)?
        };
        let buffer = CallBuffer { address, messages: Mutex::default(), running: AtomicUsize::new(0) };
        buffer.word(HEADERS).store(address + HEADERS_AT, Ordering::Relaxed);
        buffer.word(PAYLOADS).store(address + PAYLOADS_AT, Ordering::Relaxed);
        // A signal of HSA without a mailbox: kernels count it up and interrupt nobody.
        buffer.word(DOORBELL).store(address + SIGNAL_AT, Ordering::Relaxed);
        buffer.word(INDEX_MASK).store(PACKETS - 1, Ordering::Relaxed);
        // Packets are named by their index and a tag above it. The name 0 ends a stack, so packet 0 has a
        // tag.
        let mut top = 0;
        for index in 0..PACKETS {
            buffer.word(HEADERS_AT + index * HEADER_BYTES + NEXT).store(top, Ordering::Relaxed);
            top = if index == 0 { PACKETS } else { index };
        }
        buffer.word(FREE_STACK).store(top, Ordering::Release);
        Ok(buffer)
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: the offset lies in the buffer, which is never freed, and is a multiple of 8. Whoever else
        // uses these bytes does so by atomic accesses, too: the simulator.
        unsafe { AtomicU64::from_ptr((self.address + offset) as *mut u64) }
    }

    fn half(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: as in `word`, with multiples of 4.
        unsafe { AtomicU32::from_ptr((self.address + offset) as *mut u32) }
    }

    /// Answers all packets that are ready.
    fn answer(&self) {
        let mut packet = self.word(READY_STACK).swap(0, Ordering::Acquire);
        while packet != 0 {
            let index = packet & (PACKETS - 1);
            let header = HEADERS_AT + index * HEADER_BYTES;
            // Once the flag is cleared the packet is the wave's again.
            let next = self.word(header + NEXT).load(Ordering::Relaxed);
            let service = self.half(header + SERVICE).load(Ordering::Relaxed);
            let active = self.word(header + ACTIVE_LANES).load(Ordering::Relaxed);
            for lane in (0..LANES).filter(|lane| active >> lane & 1 != 0) {
                self.lane(service, PAYLOADS_AT + (index * LANES + lane) * LANE_BYTES);
            }
            let control = self.half(header + CONTROL);
            control.store(control.load(Ordering::Relaxed) & !READY, Ordering::Release);
            packet = next;
        }
    }

    /// Answers one lane, whose words are at `offset`.
    fn lane(&self, service: u32, offset: u64) {
        let word = |at: u64| self.word(offset + 8 * at);
        if service == MEMORY {
            let [address, bytes] = [0, 1].map(|at| word(at).load(Ordering::Relaxed));
            word(0).store(heap::request(address, bytes), Ordering::Relaxed);
            return;
        }
        if service != PRINTF {
            eprintln!("groundswell: a kernel calls service {service} of the host, which is not there");
            word(0).store(0, Ordering::Relaxed);
            return;
        }
        let descriptor = word(0).load(Ordering::Relaxed);
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match descriptor & BEGIN {
            0 => descriptor >> ID_SHIFT,
            _ => {
                messages.next += 1;
                messages.next
            }
        };
        let message = messages.begun.entry(id).or_default();
        let length = descriptor >> LENGTH_SHIFT & 7;
        message.extend((1..=length).map(|at| word(at).load(Ordering::Relaxed)));
        if descriptor & END == 0 {
            let named = descriptor & !BEGIN & ((1 << ID_SHIFT) - 1) | id << ID_SHIFT;
            word(0).store(named, Ordering::Relaxed);
            return;
        }
        let words = messages.begun.remove(&id).unwrap_or_default();
        let answer = match printf::message(&words) {
            Some((stream, text)) => {
                if !SILENT.load(Ordering::Acquire) {
                    printf::write(stream, &text);
                }
                text.len() as u64
            }
            None => u64::MAX,
        };
        word(0).store(answer, Ordering::Relaxed);
    }
}

/// The buffer for a launch of a kernel, or zero if it calls nobody.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn for_launch(runtime: &Runtime, kernel: &KernelMetadata) -> HipResult<u64> {
    let calls = |kind: &ArgumentKind| kind.name() == "hidden_hostcall_buffer";
    if !kernel.arguments.iter().any(|argument| calls(&argument.kind)) {
        return Ok(0);
    }
    // Objects before version 5 have the structure of the heap themselves, and do not say that they use it.
    heap::for_launch(runtime)?;
    let buffer = BUFFER.get_or_init(|| CallBuffer::new(runtime)).as_ref().map_err(Clone::clone)?;
    if buffer.running.fetch_add(1, Ordering::AcqRel) == 0 {
        std::thread::spawn(move || listen(buffer));
    }
    Ok(buffer.address)
}

/// Does something while texts of kernels are dropped: their calls are answered all the same.
pub(crate) fn silently<R>(work: impl FnOnce() -> R) -> R {
    SILENT.store(true, Ordering::Release);
    let result = work();
    // Calls of waves that have ended are answered while the flag is up.
    if let Some(Ok(calls)) = BUFFER.get() {
        calls.answer();
    }
    SILENT.store(false, Ordering::Release);
    result
}

/// Answers calls until no launch runs that could make any.
fn listen(buffer: &CallBuffer) {
    while buffer.running.load(Ordering::Acquire) > 0 {
        buffer.answer();
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// The launch that [`for_launch`] has given `buffer` to is over.
pub(crate) fn finish(buffer: u64) {
    if let (Some(Ok(calls)), true) = (BUFFER.get(), buffer != 0) {
        calls.answer();
        calls.running.fetch_sub(1, Ordering::AcqRel);
    }
}
