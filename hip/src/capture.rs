//! Capturing streams: what a program gives a stream to do is kept as nodes of a graph and done when that is
//! launched.
//!
//! A capture begins with one stream. Others join it when they wait for an event that was recorded in it, and
//! have to be waited for by the first one before it ends. Calls that would wait for a captured stream are
//! errors, which spoil the capture (HIP documentation, "HIP graphs" and "hipStreamBeginCapture"; ROCm clr,
//! hip_stream.cpp and hip_graph.cpp of 6.4.3).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_uint};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use slotmap::{Key, SlotMap, new_key_type};

use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{In, InOut, Out, exports};
use crate::graphs;
use crate::handles::{Handle, fresh};
use crate::operations::Operation;
use crate::runtime::runtime;
use crate::streams::check_stream;

/// `hipStreamCaptureMode`: whose captures forbid calls that wait for the device.
#[derive(Copy, Clone, PartialEq, Eq)]
enum CaptureMode {
    Global,
    ThreadLocal,
    Relaxed,
}

/// `hipStreamCaptureStatus`.
const ACTIVE: c_int = 1;
const SPOILED: c_int = 2;
/// `hipStreamSetCaptureDependencies` of `hipStreamUpdateCaptureDependenciesFlags`.
const SET_DEPENDENCIES: c_uint = 1;
/// The default stream, `hipStreamLegacy` and `hipStreamPerThread`.
const LEGACY: [Handle; 2] = [0, 1];
const PER_THREAD: Handle = 2;

new_key_type! {
    /// The number of a capture.
    struct CaptureKey;
}

/// A capture.
struct Capture {
    graph: Handle,
    /// The stream with which it began.
    origin: Handle,
    mode: CaptureMode,
    thread: ThreadId,
    /// The graph was made for the capture, and goes with it if that fails.
    is_new: bool,
    /// A call that may not be made has been made.
    is_spoiled: bool,
}

/// A stream in a capture: what it is given next depends on these nodes.
struct Joined {
    capture: CaptureKey,
    last: BTreeSet<Handle>,
    /// What a program was told of them, for as long as it may look there.
    told: Box<[Handle]>,
}

#[derive(Default)]
struct Captures {
    captures: SlotMap<CaptureKey, Capture>,
    streams: BTreeMap<Handle, Joined>,
    /// Events that were recorded in a capture, and the nodes that they stand for.
    events: BTreeMap<Handle, (CaptureKey, BTreeSet<Handle>)>,
}

static CAPTURES: LazyLock<Mutex<Captures>> = LazyLock::new(Mutex::default);

thread_local! {
    /// What calls of this thread are forbidden by (`hipThreadExchangeStreamCaptureMode`).
    static MODE: Cell<CaptureMode> = const { Cell::new(CaptureMode::Global) };
    /// What stands for this thread's own stream.
    static OWN: u64 = fresh();
}

/// Whether a call has become a part of a capture.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Captured {
    Yes,
    No,
}

fn with<R>(f: impl FnOnce(&mut Captures) -> R) -> R {
    // A poisoned lock guards tables that are whole after each change.
    f(&mut CAPTURES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Every thread has a stream of its own.
pub(crate) fn key(stream: Handle) -> Handle {
    if stream == PER_THREAD { OWN.with(|own| *own) } else { stream }
}

impl CaptureMode {
    fn new(number: c_int) -> HipResult<CaptureMode> {
        match number {
            0 => Ok(CaptureMode::Global),
            1 => Ok(CaptureMode::ThreadLocal),
            2 => Ok(CaptureMode::Relaxed),
            _ => Err(invalid(format!("{number} is no mode of capturing"))),
        }
    }
}

fn spoiled() -> HipError {
    HipError::new(
        Code::StreamCaptureInvalidated,
        "the capture was spoiled by a call that may not be made in it",
    )
}

impl Captures {
    /// The capture that a stream is in.
    fn of(&mut self, stream: Handle) -> Option<(CaptureKey, &mut Capture)> {
        let number = self.streams.get(&key(stream))?.capture;
        Some((number, self.captures.get_mut(number)?))
    }

    /// The capture that a stream is in, if it is not spoiled.
    fn good(&mut self, stream: Handle) -> HipResult<Option<(CaptureKey, &mut Capture)>> {
        match self.of(stream) {
            Some((_, capture)) if capture.is_spoiled => Err(spoiled()),
            other => Ok(other),
        }
    }

    /// Begins a capture, with a new graph or after nodes of one that is there.
    fn begin(
        &mut self,
        stream: Handle,
        mode: CaptureMode,
        graph: Handle,
        after: Option<BTreeSet<Handle>>,
    ) -> HipResult {
        if LEGACY.contains(&stream) {
            return Err(HipError::new(
                Code::StreamCaptureUnsupported,
                "the default stream cannot be captured",
            ));
        }
        if self.of(stream).is_some() {
            return Err(HipError::new(Code::IllegalState, "the stream is captured already"));
        }
        let (origin, thread) = (key(stream), thread::current().id());
        let is_new = after.is_none();
        let number = self.captures.insert(Capture { graph, origin, mode, thread, is_new, is_spoiled: false });
        let last = after.unwrap_or_default();
        self.streams.insert(origin, Joined { capture: number, last, told: Box::default() });
        Ok(())
    }

    /// Ends the capture of a stream: its graph.
    fn end(&mut self, stream: Handle) -> HipResult<Handle> {
        let wrong = |code, reason: &str| Err(HipError::new(code, reason));
        let Some((number, capture)) = self.of(stream) else {
            return wrong(Code::IllegalState, "the stream is not captured");
        };
        if capture.origin != key(stream) {
            return wrong(Code::StreamCaptureUnmatched, "the capture did not begin with this stream");
        }
        if capture.mode != CaptureMode::Relaxed && capture.thread != thread::current().id() {
            return wrong(Code::StreamCaptureWrongThread, "another thread has begun the capture");
        }
        let (graph, is_new, is_spoiled) = (capture.graph, capture.is_new, capture.is_spoiled);
        let is_ours = |joined: &Joined| joined.capture == number;
        let last = self.streams.get(&key(stream)).map(|joined| joined.last.clone()).unwrap_or_default();
        let open = self.streams.values().filter(|joined| is_ours(joined)).flat_map(|joined| &joined.last);
        let is_joined = graphs::with(graph, |graph| {
            let mut before = BTreeSet::new();
            let mut next: Vec<Handle> = last.into_iter().collect();
            while let Some(node) = next.pop() {
                if before.insert(node) {
                    next.extend(graph.nodes.get(&node).into_iter().flat_map(|node| &node.after));
                }
            }
            Ok(open.copied().all(|node| before.contains(&node)))
        });
        self.captures.remove(number);
        self.streams.retain(|_, joined| joined.capture != number);
        self.events.retain(|_, (capture, _)| *capture != number);
        if is_spoiled || !is_joined? {
            if is_new {
                graphs::destroy(graph)?;
            }
            return match is_spoiled {
                true => Err(spoiled()),
                false => wrong(
                    Code::StreamCaptureUnjoined,
                    "the first stream does not wait for all that have joined",
                ),
            };
        }
        Ok(graph)
    }

    /// What a program asks about a stream: status, number and graph.
    fn info(&mut self, stream: Handle) -> (c_int, u64, Handle) {
        match self.of(stream) {
            None => (0, 0, 0),
            Some((number, capture)) => {
                let status = if capture.is_spoiled { SPOILED } else { ACTIVE };
                (status, number.data().as_ffi(), capture.graph)
            }
        }
    }
}

/// Keeps an operation if its stream is captured, otherwise hands it back.
///
/// # Errors
/// The capture is spoiled.
pub(crate) fn keep(stream: Handle, operation: Operation) -> HipResult<Option<Operation>> {
    with(|captures| {
        let Some((_, capture)) = captures.good(stream)? else { return Ok(Some(operation)) };
        let graph = capture.graph;
        if let Some(joined) = captures.streams.get_mut(&key(stream)) {
            let after: Vec<Handle> = joined.last.iter().copied().collect();
            joined.last = BTreeSet::from([graphs::with(graph, |graph| graph.add(operation, &after))?]);
        }
        Ok(None)
    })
}

/// Has an event stand for all that a captured stream was given.
pub(crate) fn record(event: Handle, stream: Handle) -> HipResult<Captured> {
    with(|captures| {
        if captures.good(stream)?.is_none() {
            captures.events.remove(&event);
            return Ok(Captured::No);
        }
        if let Some(joined) = captures.streams.get(&key(stream)) {
            captures.events.insert(event, (joined.capture, joined.last.clone()));
        }
        Ok(Captured::Yes)
    })
}

/// Has a stream wait for an event. If that stands for a place in a capture, the stream joins it.
pub(crate) fn wait(stream: Handle, event: Handle) -> HipResult {
    with(|captures| {
        let Some((number, nodes)) = captures.events.get(&event).cloned() else {
            return match captures.good(stream)? {
                None => Ok(()),
                Some((_, capture)) => {
                    capture.is_spoiled = true;
                    let reason = "a captured stream waits for an event that was not recorded in a capture";
                    Err(HipError::new(Code::StreamCaptureIsolation, reason))
                }
            };
        };
        let joined = captures.streams.entry(key(stream)).or_insert_with(|| Joined {
            capture: number,
            last: BTreeSet::new(),
            told: Box::default(),
        });
        if joined.capture != number {
            return Err(HipError::new(Code::StreamCaptureMerge, "the event was recorded in another capture"));
        }
        joined.last.extend(nodes);
        Ok(())
    })
}

/// Whether a stream is captured.
pub(crate) fn is_captured(stream: Handle) -> bool {
    with(|captures| captures.of(stream).is_some())
}

/// To be asked before a program waits for a stream.
///
/// # Errors
/// The stream is captured, and what it was given is not done before the graph is launched.
pub(crate) fn check_waiting(stream: Handle) -> HipResult {
    with(|captures| match captures.of(stream) {
        None => Ok(()),
        Some((_, capture)) => {
            capture.is_spoiled = true;
            Err(HipError::new(Code::StreamCaptureUnsupported, "a captured stream cannot be waited for"))
        }
    })
}

/// To be asked before a program waits for an event.
///
/// # Errors
/// It stands for a place in a capture.
pub(crate) fn check_event(event: Handle) -> HipResult {
    with(|captures| match captures.events.get(&event) {
        None => Ok(()),
        Some(_) => Err(HipError::new(Code::CapturedEvent, "the event was recorded in a captured stream")),
    })
}

/// To be asked by calls that wait for the device, or for its memory.
///
/// # Errors
/// A capture forbids that. It is spoiled.
pub(crate) fn check_allowed() -> HipResult {
    let (mode, thread) = (MODE.get(), thread::current().id());
    with(|captures| {
        let forbids = |capture: &&mut Capture| match (mode, capture.mode) {
            (CaptureMode::Relaxed, _) | (_, CaptureMode::Relaxed) => false,
            (CaptureMode::Global, CaptureMode::Global) => true,
            (CaptureMode::Global | CaptureMode::ThreadLocal, _) => capture.thread == thread,
        };
        let mut found = captures.captures.values_mut().filter(forbids).peekable();
        if found.peek().is_none() {
            return Ok(());
        }
        found.for_each(|capture| capture.is_spoiled = true);
        let reason =
            "a stream is captured in a mode that forbids this call (hipStreamCaptureModeRelaxed allows it)";
        Err(HipError::new(Code::StreamCaptureUnsupported, reason))
    })
}

/// A stream was destroyed.
pub(crate) fn forget_stream(stream: Handle) {
    with(|captures| {
        if let Some((_, capture)) = captures.of(stream) {
            capture.is_spoiled = true;
        }
        captures.streams.remove(&key(stream));
    });
}

exports! {
    fn hipStreamBeginCapture(stream: Handle, mode: c_int) also hipStreamBeginCapture_spt {
        check_stream(runtime()?, stream)?;
        let mode = CaptureMode::new(mode)?;
        let graph = graphs::create()?;
        with(|captures| captures.begin(stream, mode, graph, None)).inspect_err(|_| {
            // It was made just now.
            let _ = graphs::destroy(graph);
        })
    }
    fn hipStreamBeginCaptureToGraph(
        stream: Handle,
        graph: Handle,
        after: In<Handle>,
        _data: u64,
        count: usize,
        mode: c_int,
    ) {
        check_stream(runtime()?, stream)?;
        let mode = CaptureMode::new(mode)?;
        let after = after.values(count)?;
        graphs::with(graph, |graph| after.iter().try_for_each(|&node| graph.node(node).map(drop)))?;
        with(|captures| captures.begin(stream, mode, graph, Some(after.into_iter().collect())))
    }
    fn hipStreamEndCapture(stream: Handle, graph: Out<Handle>) also hipStreamEndCapture_spt {
        check_stream(runtime()?, stream)?;
        let ended = with(|captures| captures.end(stream));
        graph.put(ended.as_ref().copied().unwrap_or(0))?;
        ended.map(drop)
    }
    fn hipStreamIsCapturing(stream: Handle, status: Out<c_int>) also hipStreamIsCapturing_spt {
        check_stream(runtime()?, stream)?;
        status.put(with(|captures| captures.info(stream).0))
    }
    fn hipStreamGetCaptureInfo(stream: Handle, status: Out<c_int>, number: Out<u64>) also hipStreamGetCaptureInfo_spt {
        check_stream(runtime()?, stream)?;
        let info = with(|captures| captures.info(stream));
        number.put_if_wanted(info.1);
        status.put(info.0)
    }
    fn hipStreamGetCaptureInfo_v2(
        stream: Handle,
        status: Out<c_int>,
        number: Out<u64>,
        graph: Out<Handle>,
        nodes: Out<u64>,
        count: Out<usize>,
    ) also hipStreamGetCaptureInfo_v2_spt {
        check_stream(runtime()?, stream)?;
        with(|captures| {
            let info = captures.info(stream);
            number.put_if_wanted(info.1);
            graph.put_if_wanted(info.2);
            if let Some(joined) = captures.streams.get_mut(&key(stream)) {
                joined.told = joined.last.iter().copied().collect();
                nodes.put_if_wanted(joined.told.as_ptr() as u64);
                count.put_if_wanted(joined.told.len());
            } else {
                nodes.put_if_wanted(0);
                count.put_if_wanted(0);
            }
            status.put(info.0)
        })
    }
    fn hipStreamUpdateCaptureDependencies(stream: Handle, nodes: In<Handle>, count: usize, flags: c_uint) {
        check_stream(runtime()?, stream)?;
        let nodes = nodes.values(count)?;
        with(|captures| {
            let Some((_, capture)) = captures.good(stream)? else {
                return Err(HipError::new(Code::IllegalState, "the stream is not captured"));
            };
            graphs::with(capture.graph, |graph| nodes.iter().try_for_each(|&node| graph.node(node).map(drop)))?;
            if let Some(joined) = captures.streams.get_mut(&key(stream)) {
                if flags == SET_DEPENDENCIES {
                    joined.last.clear();
                }
                joined.last.extend(nodes);
            }
            Ok(())
        })
    }
    fn hipThreadExchangeStreamCaptureMode(mode: InOut<c_int>) {
        let new = CaptureMode::new(mode.value()?)?;
        mode.put(MODE.replace(new) as c_int)
    }
}
