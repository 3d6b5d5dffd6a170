//! Streams and events. An operation is complete when its call returns, so a stream has nothing in it that
//! could be waited for; events are times. What a program orders by them, check mode keeps account of.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::capture::{self, Captured};
use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{Out, exports};
use crate::handles::Handle;
use crate::operations::{HostFunction, Operation, StreamCallback, submit};
use crate::order::{Blocking, Place};
use crate::runtime::{Runtime, runtime};

/// A stream.
pub(crate) struct Stream {
    flags: c_uint,
    priority: c_int,
}

/// An event.
pub(crate) struct Event {
    /// No time is asked for.
    untimed: bool,
    recorded: Mutex<Option<Duration>>,
}

/// The greatest handle of the streams that are always there: the default one, `hipStreamLegacy` and
/// `hipStreamPerThread`.
const LAST_DEFAULT_STREAM: Handle = 2;
/// `hipStreamLegacy`.
const LEGACY_STREAM: Handle = 1;
/// `hipStreamNonBlocking`.
const NON_BLOCKING: c_uint = 1;
/// `hipEventDisableTiming`.
const DISABLE_TIMING: c_uint = 2;
/// `hipEventReleaseToDevice` and `hipEventReleaseToSystem`.
const RELEASE_TO_DEVICE: c_uint = 0x4000_0000;
const RELEASE_TO_SYSTEM: c_uint = 0x8000_0000;
/// These and `hipEventBlockingSync`, `Interprocess` and `DisableSystemFence`.
const OF_EVENTS: c_uint = DISABLE_TIMING | RELEASE_TO_DEVICE | RELEASE_TO_SYSTEM | 0x2000_0000 | 0b101;

impl Event {
    fn time(&self) -> HipResult<Duration> {
        if self.untimed {
            return Err(HipError::new(Code::InvalidHandle, "the event was made without timing"));
        }
        let recorded = *self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.ok_or_else(|| HipError::new(Code::InvalidHandle, "the event was never recorded"))
    }
}

/// Everything that a stream was given has happened now.
///
/// # Errors
/// There is no such event.
pub(crate) fn record_now(runtime: &Runtime, event: Handle, stream: Handle) -> HipResult {
    let recorded = runtime.events.get(event)?;
    *recorded.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime.clock());
    if let Some(order) = &runtime.order {
        order.record(event, place(runtime, stream));
    }
    Ok(())
}

/// A stream, for what is ordered with it. One that is gone waits for nobody.
pub(crate) fn place(runtime: &Runtime, stream: Handle) -> Place {
    let blocking = match stream {
        0..=LEGACY_STREAM => return Place::DEFAULT,
        LAST_DEFAULT_STREAM => Blocking::Blocking,
        _ => match runtime.streams.get(stream) {
            Ok(stream) if stream.flags & NON_BLOCKING == 0 => Blocking::Blocking,
            _ => Blocking::NonBlocking,
        },
    };
    Place { stream: capture::key(stream), blocking }
}

/// An error unless a stream exists.
pub(crate) fn check_stream(runtime: &Runtime, stream: Handle) -> HipResult {
    match stream {
        0..=LAST_DEFAULT_STREAM => Ok(()),
        _ => runtime.streams.get(stream).map(drop),
    }
}

/// The stream's flags and priority.
fn properties(stream: Handle) -> HipResult<(c_uint, c_int)> {
    match stream {
        0..=LAST_DEFAULT_STREAM => Ok((0, 0)),
        _ => runtime()?.streams.get(stream).map(|stream| (stream.flags, stream.priority)),
    }
}

fn make_stream(stream: Out<Handle>, flags: c_uint, priority: c_int) -> HipResult {
    if flags > 1 {
        return Err(invalid(format!("{flags:#x} are no flags of a stream")));
    }
    stream.put(runtime()?.streams.add(Stream { flags, priority: priority.clamp(-1, 1) })?)
}

fn make_event(event: Out<Handle>, flags: c_uint) -> HipResult {
    let both = RELEASE_TO_DEVICE | RELEASE_TO_SYSTEM;
    if flags & !OF_EVENTS != 0 || flags & both == both {
        return Err(invalid(format!("{flags:#x} are no flags of an event")));
    }
    let untimed = flags & DISABLE_TIMING != 0;
    event.put(runtime()?.events.add(Event { untimed, recorded: Mutex::new(None) })?)
}

/// Everything in a stream has happened; an error if a kernel has failed, or if the stream is captured.
fn finished(stream: Handle) -> HipResult {
    let runtime = runtime()?;
    check_stream(runtime, stream)?;
    capture::check_waiting(stream)?;
    if let Some(order) = &runtime.order {
        order.host_waits_for_stream(place(runtime, stream));
    }
    runtime.check_for_fault()
}

fn record(event: Handle, stream: Handle) -> HipResult {
    let runtime = runtime()?;
    check_stream(runtime, stream)?;
    runtime.events.get(event)?;
    match capture::record(event, stream)? {
        Captured::No => record_now(runtime, event, stream),
        Captured::Yes => Ok(()),
    }
}

fn wait(stream: Handle, event: Handle) -> HipResult {
    let runtime = runtime()?;
    check_stream(runtime, stream)?;
    runtime.events.get(event)?;
    capture::wait(stream, event)?;
    if let Some(order) = &runtime.order {
        order.wait(place(runtime, stream), event);
    }
    Ok(())
}

/// Everything before an event has happened; an error if a kernel has failed, or if it stands for a place in a
/// capture.
fn happened(event: Handle) -> HipResult {
    let runtime = runtime()?;
    runtime.events.get(event)?;
    capture::check_event(event)?;
    if let Some(order) = &runtime.order {
        order.host_waits_for_event(event);
    }
    runtime.check_for_fault()
}

/// `hipEventRecordExternal`: of a captured stream, the event is a node of the graph.
const RECORD_EXTERNAL: c_uint = 1;
/// `hipEventWaitExternal`, likewise.
const WAIT_EXTERNAL: c_uint = 1;

exports! {
    fn hipStreamCreate(stream: Out<Handle>) {
        make_stream(stream, 0, 0)
    }
    fn hipStreamCreateWithFlags(stream: Out<Handle>, flags: c_uint) {
        make_stream(stream, flags, 0)
    }
    fn hipStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int) {
        make_stream(stream, flags, priority)
    }
    fn hipStreamDestroy(stream: Handle) {
        runtime()?.streams.remove(stream)?;
        capture::forget_stream(stream);
        Ok(())
    }
    fn hipStreamSynchronize(stream: Handle) also hipStreamSynchronize_spt {
        finished(stream)
    }
    fn hipStreamQuery(stream: Handle) also hipStreamQuery_spt {
        finished(stream)
    }
    fn hipStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) also hipStreamWaitEvent_spt {
        match flags {
            WAIT_EXTERNAL => submit(stream, Operation::Wait(event)),
            _ => wait(stream, event),
        }
    }
    fn hipStreamGetFlags(stream: Handle, flags: Out<c_uint>) also hipStreamGetFlags_spt {
        flags.put(properties(stream)?.0)
    }
    fn hipStreamGetPriority(stream: Handle, priority: Out<c_int>) also hipStreamGetPriority_spt {
        priority.put(properties(stream)?.1)
    }
    fn hipStreamGetDevice(stream: Handle, device: Out<c_int>) {
        properties(stream)?;
        device.put(0)
    }
    fn hipStreamAddCallback(
        stream: Handle,
        callback: StreamCallback,
        data: *mut c_void,
        _flags: c_uint,
    ) also hipStreamAddCallback_spt {
        submit(stream, Operation::Callback { callback, stream, data: data as u64 })
    }
    fn hipLaunchHostFunc(
        stream: Handle,
        function: HostFunction,
        data: *mut c_void,
    ) also hipLaunchHostFunc_spt {
        submit(stream, Operation::Host { function, data: data as u64 })
    }
    fn hipStreamAttachMemAsync(stream: Handle, _pointer: *mut c_void, _bytes: usize, _flags: c_uint) {
        properties(stream).map(drop)
    }
    fn hipEventCreate(event: Out<Handle>) {
        make_event(event, 0)
    }
    fn hipEventCreateWithFlags(event: Out<Handle>, flags: c_uint) {
        make_event(event, flags)
    }
    fn hipEventDestroy(event: Handle) {
        let runtime = runtime()?;
        if let Some(order) = &runtime.order {
            order.forget_event(event);
        }
        runtime.events.remove(event).map(drop)
    }
    fn hipEventRecord(event: Handle, stream: Handle) also hipEventRecord_spt {
        record(event, stream)
    }
    fn hipEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint) {
        match flags {
            RECORD_EXTERNAL => submit(stream, Operation::Record(event)),
            _ => record(event, stream),
        }
    }
    fn hipEventSynchronize(event: Handle) {
        happened(event)
    }
    fn hipEventQuery(event: Handle) {
        happened(event)
    }
    fn hipEventElapsedTime(milliseconds: Out<f32>, start: Handle, stop: Handle) {
        let runtime = runtime()?;
        let [start, stop] = [runtime.events.get(start)?.time()?, runtime.events.get(stop)?.time()?];
        milliseconds.put(((stop.as_secs_f64() - start.as_secs_f64()) * 1e3) as f32)
    }
}

/// `hipGetStreamDeviceId`: the only device, or -1 for a stream that is not there.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetStreamDeviceId(stream: Handle) -> c_int {
    properties(stream).map_or(-1, |_| 0)
}
