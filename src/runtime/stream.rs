//! Streams: work that a device does in order while the host goes on. On the simulator everything is done at
//! once.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::buffer::Buffer;
use super::device::Device;
use super::hip::{HipEvent, HipStream, PinnedMemory};
use crate::ir::diagnostic::Diagnostic;

/// A stream of a device. What is enqueued on it happens in that order; streams do not wait for each other
/// unless told to ([`wait`](Self::wait)).
///
/// A stream keeps the buffers that its launches and copies use until they have happened, so they may be
/// dropped at any time. Dropping a stream waits for it.
///
/// # Example
/// ```
/// use groundswell::device::DeviceElement;
/// use groundswell::kernels::{Waves, copy};
/// use groundswell::prelude::*;
/// let device = Device::open()?;
/// let options = [("M", 64), ("N", 64), ("BLOCK_M", 16), ("BLOCK_N", 64)]
///     .iter()
///     .fold(Options::new(device.target()), |o, &(name, size)| o.set(name, size));
/// let copy = copy(F32, Waves::new(4, 1))?.compile(&options)?;
/// let (a, b) = (device.upload(&vec![1f32; 64 * 64])?, device.upload(&vec![0f32; 64 * 64])?);
/// let stream = device.stream()?;
/// let begin = stream.record()?;
/// device.launch(&copy).buffer(&a).buffer(&b).enqueue(&stream)?;
/// let copied = stream.download(&b)?;
/// let end = stream.record()?;
/// assert_eq!(f32::from_bytes(&copied.wait()?), vec![1f32; 64 * 64]);
/// assert!(end.milliseconds_since(&begin)? >= 0.0);
/// # Ok::<(), Diagnostic>(())
/// ```
pub struct Stream {
    device: Device,
    hip: Option<HipStream>,
    /// What work under way needs.
    kept: Mutex<StreamHoldings>,
}

#[derive(Default)]
struct StreamHoldings {
    buffers: Vec<Buffer>,
    uploads: Vec<PinnedMemory>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({})", self.device.name())
    }
}

/// A point in a stream.
pub struct Event {
    hip: Option<HipEvent>,
    at: Instant,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.hip.is_some() { "Event(hip)" } else { "Event(simulator)" })
    }
}

/// Bytes on their way from a device.
#[must_use = "the bytes come with `wait`"]
pub struct Download<'a> {
    stream: &'a Stream,
    bytes: Downloaded,
}

enum Downloaded {
    Here(Vec<u8>),
    Coming(PinnedMemory),
}

impl Device {
    /// A new stream.
    ///
    /// # Errors
    /// The device has no room for it, or is lost.
    pub fn stream(&self) -> Result<Stream, Diagnostic> {
        let hip = self.shared.backend.hip().map(HipStream::new).transpose()?;
        Ok(Stream::of_hip(self, hip))
    }
}

impl Stream {
    /// A stream that somebody else has made.
    pub(super) fn of_hip(device: &Device, hip: Option<HipStream>) -> Stream {
        Stream { device: device.clone(), hip, kept: Mutex::default() }
    }

    /// The device it is of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// HIP's stream, if the device is a GPU.
    pub(super) fn hip(&self) -> Option<&HipStream> {
        self.hip.as_ref()
    }

    /// Keeps buffers until everything that was enqueued so far has happened.
    pub(super) fn keep<'a>(&self, buffers: impl IntoIterator<Item = &'a Buffer>) {
        if self.hip.is_some() {
            self.kept().buffers.extend(buffers.into_iter().cloned());
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, StreamHoldings> {
        // A poisoned lock guards lists that are whole after each change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everything that was enqueued has happened.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn synchronize(&self) -> Result<(), Diagnostic> {
        let Some(hip) = &self.hip else { return Ok(()) };
        // What is enqueued meanwhile by others stays kept.
        let kept = std::mem::take(&mut *self.kept());
        let result = hip.synchronize();
        drop(kept);
        result
    }

    /// Whether everything that was enqueued has happened.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn is_finished(&self) -> Result<bool, Diagnostic> {
        self.hip.as_ref().map_or(Ok(true), HipStream::is_finished)
    }

    /// A point after everything that was enqueued.
    ///
    /// # Errors
    /// The device has no room for it, or is lost.
    pub fn record(&self) -> Result<Event, Diagnostic> {
        let hip = self.hip.as_ref().map(HipStream::record).transpose()?;
        Ok(Event { hip, at: Instant::now() })
    }

    /// What is enqueued from now on waits for an event of another stream.
    ///
    /// # Errors
    /// The device is lost.
    pub fn wait(&self, event: &Event) -> Result<(), Diagnostic> {
        match (&self.hip, &event.hip) {
            (Some(stream), Some(event)) => stream.wait(event),
            _ => Ok(()),
        }
    }

    /// Enqueues a copy of bytes to the beginning of a buffer, through pinned memory.
    ///
    /// # Errors
    /// The buffer is smaller, or of another device.
    pub fn upload(&self, buffer: &Buffer, bytes: &[u8]) -> Result<(), Diagnostic> {
        buffer.check_room(bytes.len() as u64)?;
        buffer.check_device(&self.device)?;
        let (Some(stream), Some(device)) = (&self.hip, self.device.shared.backend.hip()) else {
            return buffer.write_bytes(bytes);
        };
        let mut pinned = PinnedMemory::new(device, bytes.len())?;
        pinned.bytes_mut().copy_from_slice(bytes);
        stream.write(buffer.address(), &pinned, bytes.len())?;
        let mut kept = self.kept();
        kept.uploads.push(pinned);
        kept.buffers.push(buffer.clone());
        Ok(())
    }

    /// Enqueues a copy of a buffer to the host.
    ///
    /// # Errors
    /// The buffer is of another device, or the host has no pinned memory for it.
    pub fn download(&self, buffer: &Buffer) -> Result<Download<'_>, Diagnostic> {
        buffer.check_device(&self.device)?;
        let (Some(stream), Some(device)) = (&self.hip, self.device.shared.backend.hip()) else {
            return Ok(Download { stream: self, bytes: Downloaded::Here(buffer.read_bytes()?) });
        };
        let bytes = buffer.bytes() as usize;
        let pinned = PinnedMemory::new(device, bytes)?;
        stream.read(&pinned, buffer.address(), bytes)?;
        self.keep([buffer]);
        Ok(Download { stream: self, bytes: Downloaded::Coming(pinned) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A failure here cannot be handled; memory that is kept may be freed either way.
        let _ = self.synchronize();
    }
}

impl Download<'_> {
    /// Waits for the stream, and gives the bytes.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn wait(mut self) -> Result<Vec<u8>, Diagnostic> {
        self.stream.synchronize()?;
        Ok(match &mut self.bytes {
            Downloaded::Here(bytes) => std::mem::take(bytes),
            Downloaded::Coming(pinned) => pinned.bytes().to_vec(),
        })
    }
}

impl Drop for Download<'_> {
    fn drop(&mut self) {
        if let Downloaded::Coming(_) = self.bytes {
            // The copy may still be under way to memory that is freed now. A failure cannot be handled.
            let _ = self.stream.synchronize();
        }
    }
}

impl Event {
    /// Waits until it has happened.
    ///
    /// # Errors
    /// A kernel before it has failed.
    pub fn synchronize(&self) -> Result<(), Diagnostic> {
        self.hip.as_ref().map_or(Ok(()), HipEvent::synchronize)
    }

    /// Whether it has happened.
    ///
    /// # Errors
    /// A kernel before it has failed.
    pub fn has_happened(&self) -> Result<bool, Diagnostic> {
        self.hip.as_ref().map_or(Ok(true), HipEvent::has_happened)
    }

    /// Milliseconds from an earlier event to this one, by the device's clock; by the host's on the simulator.
    /// Both are waited for.
    ///
    /// # Errors
    /// A kernel before one of them has failed, or they are of different devices.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f64, Diagnostic> {
        match (&self.hip, &start.hip) {
            (Some(stop), Some(start)) => stop.milliseconds_since(start),
            _ => Ok(self.at.saturating_duration_since(start.at).as_secs_f64() * 1e3),
        }
    }
}
