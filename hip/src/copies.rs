//! Copying and filling. Everything is done before the call returns, unless the stream is captured; that is in
//! order on every stream.

use std::ffi::{c_int, c_uint};
use std::ops::Range;

use groundswell::simulator::{SimError, TouchedBytes};

use crate::capture;
use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{exports, host_bytes, write_host};
use crate::handles::Handle;
use crate::heap;
use crate::host_calls;
use crate::operations::{Operation, submit};
use crate::order::HostThen;
use crate::registration;
use crate::runtime::{Runtime, runtime};
use crate::streams;

/// The stream of what is done at once.
const DEFAULT_STREAM: Handle = 0;
/// The bytes that are copied at a time.
const PART: u64 = 1 << 20;

/// Where bytes are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Place {
    Host,
    Device,
}

/// The directions of a copy (`hipMemcpyKind`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    Default,
}

impl Direction {
    fn new(number: c_int) -> HipResult<Direction> {
        Ok(match number {
            0 => Direction::HostToHost,
            1 => Direction::HostToDevice,
            2 => Direction::DeviceToHost,
            3 => Direction::DeviceToDevice,
            4 => Direction::Default,
            _ => {
                let reason = format!("{number} is no direction of a copy");
                return Err(HipError::new(Code::InvalidMemcpyDirection, reason));
            }
        })
    }

    /// Whether the destination and the source have to be memory of the device.
    fn of_device(self) -> [bool; 2] {
        match self {
            Direction::HostToDevice => [true, false],
            Direction::DeviceToHost => [false, true],
            Direction::DeviceToDevice => [true, true],
            Direction::HostToHost | Direction::Default => [false, false],
        }
    }
}

/// True for memory by which this library and kernels talk, which is none of the program's.
fn is_of_library(address: u64) -> bool {
    host_calls::owns(address) || heap::owns(address)
}

impl Runtime {
    /// Where an address is, if HIP knows it.
    fn place(&self, address: u64) -> Place {
        match self.simulator().allocation_of(address) {
            Some(_) => Place::Device,
            None => Place::Host,
        }
    }

    /// In check mode: a stream was given an operation, which uses memory of HIP's and perhaps of the
    /// program's. Of the latter nothing is known.
    pub(crate) fn note(
        &self,
        stream: Handle,
        then: HostThen,
        about: impl FnOnce() -> (String, TouchedBytes),
    ) {
        let Some(order) = &self.order else { return };
        let (what, mut used) = about();
        let simulator = self.simulator();
        for ranges in [&mut used.written, &mut used.updated, &mut used.read] {
            ranges.retain(|range| {
                simulator.allocation_of(range.start).is_some() && !is_of_library(range.start)
            });
        }
        drop(simulator);
        used.tidy();
        if let Some(found) = order.add(streams::place(self, stream), what, used, then) {
            self.report.unordered(&found);
        }
    }

    /// Copies bytes; either place may be memory of the program.
    pub(crate) fn copy(&self, to: u64, from: u64, bytes: u64) -> HipResult {
        if bytes == 0 {
            return Ok(());
        }
        if to == 0 || from == 0 {
            return Err(invalid("a pointer is null"));
        }
        let (to_place, from_place) = (self.place(to), self.place(from));
        let simulator = self.simulator();
        // Nothing is copied unless all of it can be.
        for (address, place) in [(to, to_place), (from, from_place)] {
            let inside = |(start, size): (u64, u64)| bytes <= size - (address - start);
            if place == Place::Device && !simulator.allocation_of(address).is_some_and(inside) {
                return Err(SimError::BadAddress { address, bytes }.into());
            }
        }
        let mut part = Vec::new();
        // A later part must not read what an earlier one has written.
        let backwards = to > from && to < from.saturating_add(bytes);
        let parts = bytes.div_ceil(PART);
        for number in 0..parts {
            let start = PART * if backwards { parts - 1 - number } else { number };
            let count = PART.min(bytes - start) as usize;
            let source = match from_place {
                Place::Device => {
                    part.resize(count, 0);
                    simulator.read_into(from + start, &mut part)?;
                    let end = from + start + count as u64;
                    let is_written =
                        |range: Range<u64>| simulator.is_written(range.start, range.end - range.start);
                    self.report.read(from + start..end, is_written);
                    &part[..]
                }
                // SAFETY: what is not HIP's is memory of the program, which passes it to be read.
                Place::Host => unsafe { host_bytes(from + start, count) },
            };
            match to_place {
                Place::Device => simulator.write(to + start, source)?,
                // SAFETY: likewise, to be written.
                Place::Host => unsafe { write_host(to + start, source) },
            }
        }
        Ok(())
    }
}

/// Where the rows of a box are: the address of its first byte, and the bytes from row to row and from plane
/// to plane.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rows {
    pub address: u64,
    pub pitch: u64,
    pub plane: u64,
}

impl Rows {
    /// Rows without planes.
    fn new(address: u64, pitch: usize) -> Rows {
        Rows { address, pitch: pitch as u64, plane: 0 }
    }

    /// The address of each row.
    fn each(self, [_, rows, planes]: [usize; 3]) -> impl Iterator<Item = u64> {
        let plane = move |z| self.address.wrapping_add(self.plane.wrapping_mul(z));
        (0..planes as u64).flat_map(move |z| {
            (0..rows as u64).map(move |y| plane(z).wrapping_add(self.pitch.wrapping_mul(y)))
        })
    }

    /// The bytes of all rows.
    fn ranges(self, extent: [usize; 3]) -> Vec<Range<u64>> {
        self.each(extent).map(|start| start..start.saturating_add(extent[0] as u64)).collect()
    }
}

/// A copy of a box of bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Transfer {
    pub to: Rows,
    pub from: Rows,
    /// Bytes of a row, rows of a plane, planes.
    pub extent: [usize; 3],
    /// `hipMemcpyKind`.
    pub kind: c_int,
}

impl Transfer {
    /// Bytes side by side.
    pub(crate) fn line(to: u64, from: u64, bytes: usize, kind: c_int) -> Transfer {
        Transfer::plane([to, 0], [from, 0], bytes, 1, kind)
    }

    /// Rows; each place is an address and its pitch.
    pub(crate) fn plane(to: [u64; 2], from: [u64; 2], width: usize, rows: usize, kind: c_int) -> Transfer {
        let [to, from] = [to, from].map(|[address, pitch]| Rows::new(address, pitch as usize));
        Transfer { to, from, extent: [width, rows, 1], kind }
    }

    /// An error unless its direction is one and its rows are as long as they have to be.
    pub(crate) fn check(&self) -> HipResult<()> {
        Direction::new(self.kind)?;
        let [width, rows, _] = self.extent;
        let pitches = [self.to.pitch, self.from.pitch];
        if width != 0 && pitches.iter().any(|&pitch| pitch < width as u64 && (rows > 1 || pitch != 0)) {
            let reason =
                format!("rows of {width} bytes are more than a pitch of {} or {}", pitches[0], pitches[1]);
            return Err(HipError::new(Code::InvalidPitchValue, reason));
        }
        Ok(())
    }

    /// What the host does after a copy in a stream: it waits where the destination is not pinned.
    pub(crate) fn host_then(&self, runtime: &Runtime) -> HostThen {
        match runtime.place(self.to.address) {
            Place::Host => HostThen::Waits,
            Place::Device => HostThen::GoesOn,
        }
    }

    /// Copies, as what a stream was given.
    ///
    /// # Errors
    /// Something is not where the direction says, or not inside of an allocation.
    pub(crate) fn run_in(&self, runtime: &Runtime, stream: Handle, then: HostThen) -> HipResult {
        self.run(runtime)?;
        runtime.note(stream, then, || {
            let bytes = self.extent.iter().product::<usize>();
            let used = TouchedBytes {
                written: self.to.ranges(self.extent),
                read: self.from.ranges(self.extent),
                ..TouchedBytes::default()
            };
            (format!("a copy of {bytes} bytes"), used)
        });
        Ok(())
    }

    fn run(&self, runtime: &Runtime) -> HipResult {
        runtime.check_for_fault()?;
        self.check()?;
        if self.extent.contains(&0) {
            return Ok(());
        }
        let of_device = Direction::new(self.kind)?.of_device();
        for (of_device, address) in of_device.into_iter().zip([self.to.address, self.from.address]) {
            if of_device && runtime.place(address) != Place::Device {
                return Err(invalid(format!("{address:#x} is in no allocation of HIP, or was freed")));
            }
        }
        self.to
            .each(self.extent)
            .zip(self.from.each(self.extent))
            .try_for_each(|(to, from)| runtime.copy(to, from, self.extent[0] as u64))
    }
}

/// The most bytes of a pattern.
const PATTERN: usize = 4;

/// Filling a box with copies of a pattern.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fill {
    pub to: Rows,
    pub pattern: [u8; PATTERN],
    /// Bytes of the pattern.
    pub element: usize,
    /// Patterns of a row, rows of a plane, planes.
    pub extent: [usize; 3],
}

impl Fill {
    /// Patterns side by side.
    fn line(to: u64, pattern: &[u8], count: usize) -> Fill {
        Fill::plane(to, 0, pattern, count, 1)
    }

    /// Rows, `pitch` bytes apart.
    pub(crate) fn plane(to: u64, pitch: usize, pattern: &[u8], count: usize, rows: usize) -> Fill {
        let mut bytes = [0; PATTERN];
        bytes[..pattern.len()].copy_from_slice(pattern);
        Fill { to: Rows::new(to, pitch), pattern: bytes, element: pattern.len(), extent: [count, rows, 1] }
    }

    /// Fills, as what a stream was given.
    ///
    /// # Errors
    /// It is not inside of one allocation.
    pub(crate) fn run_in(&self, runtime: &Runtime, stream: Handle, then: HostThen) -> HipResult {
        self.run(runtime)?;
        runtime.note(stream, then, || {
            let [count, rows, planes] = self.extent;
            let written = self.to.ranges([count * self.element, rows, planes]);
            let bytes = count * self.element * rows * planes;
            (format!("a fill of {bytes} bytes"), TouchedBytes { written, ..TouchedBytes::default() })
        });
        Ok(())
    }

    fn run(&self, runtime: &Runtime) -> HipResult {
        runtime.check_for_fault()?;
        let [count, rows, planes] = self.extent;
        if self.extent.contains(&0) {
            return Ok(());
        }
        let Rows { address, pitch, plane } = self.to;
        let bytes = count.checked_mul(self.element).ok_or_else(|| invalid("the size overflows"))?;
        if rows > 1 && pitch < bytes as u64 {
            let reason = format!("rows of {bytes} bytes are more than a pitch of {pitch}");
            return Err(HipError::new(Code::InvalidPitchValue, reason));
        }
        // Nothing is filled unless all of it can be.
        let last =
            (rows as u64 - 1).saturating_mul(pitch).saturating_add((planes as u64 - 1).saturating_mul(plane));
        let end = last.saturating_add(bytes as u64);
        let simulator = runtime.simulator();
        let inside = |(start, size): (u64, u64)| end <= size - (address - start);
        if !simulator.allocation_of(address).is_some_and(inside) {
            return Err(invalid(format!(
                "{end} bytes at {address:#x} are not inside of an allocation of HIP"
            )));
        }
        let pattern = &self.pattern[..self.element];
        let part = pattern.repeat((PART as usize / pattern.len()).min(count));
        for start in self.to.each(self.extent) {
            for at in (0..bytes).step_by(part.len()) {
                simulator.write(start + at as u64, &part[..part.len().min(bytes - at)])?;
            }
        }
        Ok(())
    }
}

/// A copy that is done when its call returns, whatever is captured.
fn copy(to: u64, from: u64, bytes: usize, direction: c_int) -> HipResult {
    at_once(Transfer::line(to, from, bytes, direction))
}

/// A copy in a stream.
fn copy_in(stream: Handle, to: u64, from: u64, bytes: usize, direction: c_int) -> HipResult {
    in_order(stream, Transfer::line(to, from, bytes, direction))
}

/// Copies at once.
pub(crate) fn at_once(transfer: Transfer) -> HipResult {
    capture::check_allowed()?;
    transfer.run_in(runtime()?, DEFAULT_STREAM, HostThen::Waits)
}

/// Copies in a stream.
pub(crate) fn in_order(stream: Handle, transfer: Transfer) -> HipResult {
    transfer.check()?;
    submit(stream, Operation::Copy(transfer))
}

/// A copy to or from a variable: its address there, after a check that the bytes are inside and that the
/// direction is neither from host to host nor `wrong`.
pub(crate) fn in_variable(
    symbol: u64,
    bytes: usize,
    offset: usize,
    kind: c_int,
    wrong: Direction,
) -> HipResult<u64> {
    let direction = Direction::new(kind)?;
    if direction == wrong || direction == Direction::HostToHost {
        let reason = format!("{kind} is not the direction of this copy");
        return Err(HipError::new(Code::InvalidMemcpyDirection, reason));
    }
    let (address, size) = registration::variable(runtime()?, symbol)?;
    if offset.checked_add(bytes).is_none_or(|end| end as u64 > size) {
        return Err(invalid(format!(
            "{bytes} bytes at {offset} are not inside of a variable of {size} bytes"
        )));
    }
    Ok(address + offset as u64)
}

/// Fills at once.
pub(crate) fn fill(fill: Fill) -> HipResult {
    capture::check_allowed()?;
    fill.run_in(runtime()?, DEFAULT_STREAM, HostThen::Waits)
}

/// Fills in a stream.
pub(crate) fn fill_in(stream: Handle, fill: Fill) -> HipResult {
    submit(stream, Operation::Fill(fill))
}

const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;
const WITHIN_DEVICE: c_int = 3;
const DEFAULT: c_int = 4;

exports! {
    fn hipMemcpy(to: u64, from: u64, bytes: usize, kind: c_int) also hipMemcpy_spt {
        copy(to, from, bytes, kind)
    }
    fn hipMemcpyAsync(to: u64, from: u64, bytes: usize, kind: c_int, stream: Handle) also hipMemcpyAsync_spt {
        copy_in(stream, to, from, bytes, kind)
    }
    fn hipMemcpyWithStream(to: u64, from: u64, bytes: usize, kind: c_int, stream: Handle) {
        copy_in(stream, to, from, bytes, kind)?;
        // The host waits for it, unless the stream is captured.
        let runtime = runtime()?;
        if let Some(order) = &runtime.order {
            order.host_waits_for_stream(streams::place(runtime, stream));
        }
        Ok(())
    }
    fn hipMemcpyHtoD(to: u64, from: u64, bytes: usize) {
        copy(to, from, bytes, TO_DEVICE)
    }
    fn hipMemcpyHtoDAsync(to: u64, from: u64, bytes: usize, stream: Handle) {
        copy_in(stream, to, from, bytes, TO_DEVICE)
    }
    fn hipMemcpyDtoH(to: u64, from: u64, bytes: usize) {
        copy(to, from, bytes, TO_HOST)
    }
    fn hipMemcpyDtoHAsync(to: u64, from: u64, bytes: usize, stream: Handle) {
        copy_in(stream, to, from, bytes, TO_HOST)
    }
    fn hipMemcpyDtoD(to: u64, from: u64, bytes: usize) {
        copy(to, from, bytes, WITHIN_DEVICE)
    }
    fn hipMemcpyDtoDAsync(to: u64, from: u64, bytes: usize, stream: Handle) {
        copy_in(stream, to, from, bytes, WITHIN_DEVICE)
    }
    fn hipMemcpyPeer(to: u64, _to_device: c_int, from: u64, _from_device: c_int, bytes: usize) {
        copy(to, from, bytes, WITHIN_DEVICE)
    }
    fn hipMemcpyPeerAsync(to: u64, _td: c_int, from: u64, _fd: c_int, bytes: usize, stream: Handle) {
        copy_in(stream, to, from, bytes, WITHIN_DEVICE)
    }
    fn hipMemcpy2D(
        to: u64,
        tp: usize,
        from: u64,
        fp: usize,
        width: usize,
        rows: usize,
        kind: c_int,
    ) also hipMemcpy2D_spt {
        at_once(Transfer::plane([to, tp as u64], [from, fp as u64], width, rows, kind))
    }
    fn hipMemcpy2DAsync(
        to: u64,
        tp: usize,
        from: u64,
        fp: usize,
        width: usize,
        rows: usize,
        kind: c_int,
        stream: Handle,
    ) also hipMemcpy2DAsync_spt {
        in_order(stream, Transfer::plane([to, tp as u64], [from, fp as u64], width, rows, kind))
    }
    fn hipMemcpyToSymbol(symbol: u64, from: u64, bytes: usize, offset: usize, kind: c_int) also hipMemcpyToSymbol_spt {
        copy(in_variable(symbol, bytes, offset, kind, Direction::DeviceToHost)?, from, bytes, DEFAULT)
    }
    fn hipMemcpyToSymbolAsync(symbol: u64, from: u64, bytes: usize, offset: usize, kind: c_int, stream: Handle) also hipMemcpyToSymbolAsync_spt {
        copy_in(stream, in_variable(symbol, bytes, offset, kind, Direction::DeviceToHost)?, from, bytes, DEFAULT)
    }
    fn hipMemcpyFromSymbol(
        to: u64,
        symbol: u64,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) also hipMemcpyFromSymbol_spt {
        copy(to, in_variable(symbol, bytes, offset, kind, Direction::HostToDevice)?, bytes, DEFAULT)
    }
    fn hipMemcpyFromSymbolAsync(to: u64, symbol: u64, bytes: usize, offset: usize, kind: c_int, stream: Handle) also hipMemcpyFromSymbolAsync_spt {
        copy_in(stream, to, in_variable(symbol, bytes, offset, kind, Direction::HostToDevice)?, bytes, DEFAULT)
    }
    fn hipMemset(to: u64, value: c_int, bytes: usize) also hipMemset_spt {
        fill(Fill::line(to, &[value as u8], bytes))
    }
    fn hipMemsetAsync(to: u64, value: c_int, bytes: usize, stream: Handle) also hipMemsetAsync_spt {
        fill_in(stream, Fill::line(to, &[value as u8], bytes))
    }
    fn hipMemsetD8(to: u64, value: u8, count: usize) {
        fill(Fill::line(to, &[value], count))
    }
    fn hipMemsetD8Async(to: u64, value: u8, count: usize, stream: Handle) {
        fill_in(stream, Fill::line(to, &[value], count))
    }
    fn hipMemsetD16(to: u64, value: u16, count: usize) {
        fill(Fill::line(to, &value.to_le_bytes(), count))
    }
    fn hipMemsetD16Async(to: u64, value: u16, count: usize, stream: Handle) {
        fill_in(stream, Fill::line(to, &value.to_le_bytes(), count))
    }
    fn hipMemsetD32(to: u64, value: c_uint, count: usize) {
        fill(Fill::line(to, &value.to_le_bytes(), count))
    }
    fn hipMemsetD32Async(to: u64, value: c_uint, count: usize, stream: Handle) {
        fill_in(stream, Fill::line(to, &value.to_le_bytes(), count))
    }
    fn hipMemset2D(to: u64, pitch: usize, value: c_int, width: usize, rows: usize) also hipMemset2D_spt {
        fill(Fill::plane(to, pitch, &[value as u8], width, rows))
    }
    fn hipMemset2DAsync(to: u64, pitch: usize, value: c_int, width: usize, rows: usize, stream: Handle) also hipMemset2DAsync_spt {
        fill_in(stream, Fill::plane(to, pitch, &[value as u8], width, rows))
    }
}
