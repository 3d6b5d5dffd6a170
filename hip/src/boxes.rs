//! Copies and fills of boxes, as the structures of HIP describe them. Arrays, which some of their fields are
//! for, are not there.

use std::ffi::{c_int, c_uint};

use crate::copies::{Fill, Rows, Transfer, at_once, fill, fill_in, in_order};
use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{In, exports};
use crate::handles::Handle;
use crate::memory::{Extent, PitchedPointer};
use crate::runtime::{HipVersion, version};

/// `hipPos`.
#[derive(Copy, Clone, Default)]
#[repr(C)]
pub(crate) struct Position {
    x: usize,
    y: usize,
    z: usize,
}

/// `hipMemcpy3DParms`.
#[derive(Copy, Clone, Default)]
#[repr(C)]
pub(crate) struct CopyParameters {
    from_array: u64,
    from_position: Position,
    from: PitchedPointer,
    to_array: u64,
    to_position: Position,
    to: PitchedPointer,
    extent: Extent,
    kind: c_int,
}

/// One side of `hip_Memcpy2D`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct PlaneSide {
    x: usize,
    y: usize,
    memory_type: c_int,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `hip_Memcpy2D`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct PlaneCopy {
    from: PlaneSide,
    to: PlaneSide,
    width: usize,
    height: usize,
}

/// One side of `HIP_MEMCPY3D` in HIP 5.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct BoxSide<T> {
    x: T,
    y: T,
    z: T,
    level: T,
    memory_type: c_int,
    host: u64,
    device: u64,
    array: u64,
    pitch: T,
    height: T,
}

/// `HIP_MEMCPY3D`: its sizes have 32 bits in HIP 5 and 64 from HIP 6 on.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct BoxCopy<T> {
    from: BoxSide<T>,
    to: BoxSide<T>,
    width: T,
    height: T,
    depth: T,
}

/// Directions of `hipMemcpyKind`.
const HOST_TO_HOST: c_int = 0;
const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;
const WITHIN_DEVICE: c_int = 3;
const DEFAULT: c_int = 4;

fn no_arrays() -> HipError {
    HipError::new(Code::NotSupported, "arrays are not there: copy between pointers")
}

/// Where a box begins in memory whose planes have `height` rows.
fn rows(address: u64, pitch: usize, height: usize, [x, y, z]: [usize; 3]) -> HipResult<Rows> {
    if address == 0 {
        return Err(invalid("a pointer is null"));
    }
    let (pitch, plane) = (pitch as u64, (pitch as u64).wrapping_mul(height as u64));
    let offset =
        (z as u64).wrapping_mul(plane).wrapping_add((y as u64).wrapping_mul(pitch)).wrapping_add(x as u64);
    Ok(Rows { address: address.wrapping_add(offset), pitch, plane })
}

/// What a driver's copy says of one side: its kind, as HIP's versions number them, and where it is.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Side {
    Host(u64),
    Device(u64),
    Any(u64),
}

impl Side {
    fn new(memory_type: c_int, host: u64, device: u64) -> HipResult<Side> {
        // `hipMemoryType`: host, device, array and unified of HIP 5; host, device, managed, array and unified
        // of HIP 6.
        match (version(), memory_type) {
            (HipVersion::V5, 0) | (HipVersion::V6 | HipVersion::V7, 1) => Ok(Side::Host(host)),
            (HipVersion::V5, 1) | (HipVersion::V6 | HipVersion::V7, 2) => Ok(Side::Device(device)),
            (HipVersion::V5, 3 | 4) | (HipVersion::V6 | HipVersion::V7, 3 | 11) => Ok(Side::Any(device)),
            (HipVersion::V5, 2) | (HipVersion::V6 | HipVersion::V7, 10) => Err(no_arrays()),
            (_, other) => Err(invalid(format!("{other} is no kind of memory"))),
        }
    }

    fn address(self) -> u64 {
        match self {
            Side::Host(address) | Side::Device(address) | Side::Any(address) => address,
        }
    }
}

/// The direction from one side to another.
fn direction(from: Side, to: Side) -> c_int {
    match (from, to) {
        (Side::Host(_), Side::Host(_)) => HOST_TO_HOST,
        (Side::Host(_), Side::Device(_)) => TO_DEVICE,
        (Side::Device(_), Side::Host(_)) => TO_HOST,
        (Side::Device(_), Side::Device(_)) => WITHIN_DEVICE,
        (Side::Any(_), _) | (_, Side::Any(_)) => DEFAULT,
    }
}

impl CopyParameters {
    /// The copy that they describe.
    pub(crate) fn transfer(self) -> HipResult<Transfer> {
        if self.from_array != 0 || self.to_array != 0 {
            return Err(no_arrays());
        }
        let place = |at: PitchedPointer, Position { x, y, z }: Position| {
            rows(at.pointer, at.pitch, at.height, [x, y, z])
        };
        let Extent { width, height, depth } = self.extent;
        Ok(Transfer {
            to: place(self.to, self.to_position)?,
            from: place(self.from, self.from_position)?,
            extent: [width, height, depth],
            kind: self.kind,
        })
    }

    /// Parameters that describe a copy.
    pub(crate) fn of(transfer: &Transfer) -> CopyParameters {
        let [width, height, depth] = transfer.extent;
        let pointer = |rows: &Rows| PitchedPointer {
            pointer: rows.address,
            pitch: rows.pitch as usize,
            width,
            height: rows.plane.checked_div(rows.pitch).map_or(height, |rows| rows as usize),
        };
        CopyParameters {
            from: pointer(&transfer.from),
            to: pointer(&transfer.to),
            extent: Extent { width, height, depth },
            kind: transfer.kind,
            ..CopyParameters::default()
        }
    }
}

impl PlaneCopy {
    fn transfer(self) -> HipResult<Transfer> {
        let side = |of: PlaneSide| -> HipResult<(Side, Rows)> {
            let side = Side::new(of.memory_type, of.host, of.device)?;
            Ok((side, rows(side.address(), of.pitch, 0, [of.x, of.y, 0])?))
        };
        let ((from, from_rows), (to, to_rows)) = (side(self.from)?, side(self.to)?);
        let extent = [self.width, self.height, 1];
        Ok(Transfer { to: to_rows, from: from_rows, extent, kind: direction(from, to) })
    }
}

impl<T: Copy + TryInto<usize>> BoxCopy<T> {
    fn transfer(self) -> HipResult<Transfer> {
        let size = |value: T| value.try_into().map_err(|_| invalid("a size is too large"));
        let side = |of: BoxSide<T>| -> HipResult<(Side, Rows)> {
            let side = Side::new(of.memory_type, of.host, of.device)?;
            let at = [size(of.x)?, size(of.y)?, size(of.z)?];
            Ok((side, rows(side.address(), size(of.pitch)?, size(of.height)?, at)?))
        };
        let ((from, from_rows), (to, to_rows)) = (side(self.from)?, side(self.to)?);
        let extent = [size(self.width)?, size(self.height)?, size(self.depth)?];
        Ok(Transfer { to: to_rows, from: from_rows, extent, kind: direction(from, to) })
    }
}

/// The copy of a `HIP_MEMCPY3D`, as the version of HIP has it.
fn driver_transfer(parameters: In<BoxCopy<c_uint>>) -> HipResult<Transfer> {
    match version() {
        HipVersion::V5 => parameters.value()?.transfer(),
        HipVersion::V6 | HipVersion::V7 => parameters.cast::<BoxCopy<usize>>().value()?.transfer(),
    }
}

/// Filling a box with a byte.
fn box_fill(to: PitchedPointer, value: c_int, extent: Extent) -> HipResult<Fill> {
    let to = rows(to.pointer, to.pitch, to.height, [0; 3])?;
    let pattern = [value as u8, 0, 0, 0];
    Ok(Fill { to, pattern, element: 1, extent: [extent.width, extent.height, extent.depth] })
}

exports! {
    fn hipMemcpy3D(of: In<CopyParameters>) also hipMemcpy3D_spt {
        at_once(of.value()?.transfer()?)
    }
    fn hipMemcpy3DAsync(of: In<CopyParameters>, stream: Handle) also hipMemcpy3DAsync_spt {
        in_order(stream, of.value()?.transfer()?)
    }
    fn hipDrvMemcpy3D(of: In<BoxCopy<c_uint>>) {
        at_once(driver_transfer(of)?)
    }
    fn hipDrvMemcpy3DAsync(of: In<BoxCopy<c_uint>>, stream: Handle) {
        in_order(stream, driver_transfer(of)?)
    }
    fn hipMemcpyParam2D(of: In<PlaneCopy>) {
        at_once(of.value()?.transfer()?)
    }
    fn hipMemcpyParam2DAsync(of: In<PlaneCopy>, stream: Handle) {
        in_order(stream, of.value()?.transfer()?)
    }
    fn hipDrvMemcpy2DUnaligned(of: In<PlaneCopy>) {
        at_once(of.value()?.transfer()?)
    }
    fn hipMemset3D(to: PitchedPointer, value: c_int, extent: Extent) also hipMemset3D_spt {
        fill(box_fill(to, value, extent)?)
    }
    fn hipMemset3DAsync(
        to: PitchedPointer,
        value: c_int,
        extent: Extent,
        stream: Handle,
    ) also hipMemset3DAsync_spt {
        fill_in(stream, box_fill(to, value, extent)?)
    }
}
