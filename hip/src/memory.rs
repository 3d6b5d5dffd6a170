//! Allocating: device, pinned, managed and pitched memory; what pointers are.

use std::ffi::{c_int, c_uint, c_void};

use crate::caller::caller;
use crate::capture;
use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{Out, exports};
use crate::handles::Handle;
use crate::pools;
use crate::runtime::{Runtime, runtime};
use crate::space::{Block, MemoryKind};
use crate::streams::check_stream;

/// Bytes to which rows of pitched memory are aligned.
const PITCH: usize = 256;

/// Allocates; nothing for no bytes, as HIP does.
pub(crate) fn allocate(pointer: Out<u64>, bytes: usize, kind: MemoryKind, flags: u32) -> HipResult {
    let runtime = runtime()?;
    runtime.check_for_fault()?;
    capture::check_allowed()?;
    allocate_in_stream(runtime, pointer, bytes, kind, flags)
}

/// The same, also while a stream is captured.
pub(crate) fn allocate_in_stream(
    runtime: &Runtime,
    pointer: Out<u64>,
    bytes: usize,
    kind: MemoryKind,
    flags: u32,
) -> HipResult {
    if bytes == 0 {
        return pointer.put(0);
    }
    let mut simulator = runtime.simulator_to_change();
    let address = runtime.space.allocate(&mut simulator, bytes as u64, kind, flags)?;
    if kind != MemoryKind::Device {
        return pointer.put(address);
    }
    // What the host cannot write without being asked is undefined until it is written.
    simulator.forget_contents(address)?;
    pointer.put(address)
}

/// Gives memory back, for the function of that name.
pub(crate) fn free(pointer: u64, kinds: &[MemoryKind], function: &str) -> HipResult {
    let runtime = runtime()?;
    runtime.check_for_fault()?;
    if pointer == 0 {
        return Ok(());
    }
    capture::check_allowed()?;
    runtime.host_waits();
    give_back(runtime, pointer, kinds, function)
}

/// The same, also while a stream is captured.
pub(crate) fn free_in_stream(pointer: u64, kinds: &[MemoryKind], function: &str) -> HipResult {
    give_back(runtime()?, pointer, kinds, function)
}

fn give_back(runtime: &Runtime, pointer: u64, kinds: &[MemoryKind], function: &str) -> HipResult {
    let launches = match runtime.launches() {
        1 => "1 launch".to_owned(),
        count => format!("{count} launches"),
    };
    let at = caller().map_or_else(String::new, |at| format!(", called at {at}"));
    let by = format!("{function} gave it back after {launches}{at}");
    runtime.space.free(&mut runtime.simulator_to_change(), pointer, kinds, by)
}

/// `hipMemAttachGlobal` and `hipMemAttachHost`.
const ATTACH_GLOBAL: c_uint = 1;
const ATTACH_HOST: c_uint = 2;
/// `hipHostMallocCoherent` and `hipHostMallocNonCoherent`.
const COHERENT: c_uint = 0x4000_0000;
const NON_COHERENT: c_uint = 0x8000_0000;
/// These and `hipHostMallocPortable`, `Mapped`, `WriteCombined` and `NumaUser`.
const OF_PINNED: c_uint = COHERENT | NON_COHERENT | 0x2000_0000 | 0b111;

/// An error unless they are flags of pinned memory (hipamd/src/hip_memory.cpp of 6.4.3).
fn check_host_flags(flags: c_uint) -> HipResult {
    if flags & !OF_PINNED != 0 || flags & COHERENT != 0 && flags & NON_COHERENT != 0 {
        return Err(invalid(format!("{flags:#x} are no flags of pinned memory")));
    }
    Ok(())
}

pub(crate) const OF_DEVICE: &[MemoryKind] = &[MemoryKind::Device, MemoryKind::Managed];
const OF_HOST: &[MemoryKind] = &[MemoryKind::Host];

/// Pitched memory: its pitch.
fn allocate_pitched(pointer: Out<u64>, pitch: Out<usize>, width: usize, rows: usize) -> HipResult {
    let row = width.checked_next_multiple_of(PITCH);
    let bytes = row.and_then(|row| row.checked_mul(rows));
    let (Some(row), Some(bytes)) = (row, bytes) else {
        return Err(HipError::new(Code::OutOfMemory, format!("{rows} rows of {width} bytes are too many")));
    };
    allocate(pointer, bytes, MemoryKind::Device, 0)?;
    pitch.put(row)
}

/// The allocation that a pointer leads into.
fn block_of(runtime: &Runtime, pointer: u64) -> HipResult<Block> {
    runtime.space.find(pointer).ok_or_else(|| invalid(format!("{pointer:#x} is in no allocation of HIP")))
}

/// `hipPitchedPtr`.
#[derive(Copy, Clone, Default)]
#[repr(C)]
pub(crate) struct PitchedPointer {
    pub pointer: u64,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `hipExtent`.
#[derive(Copy, Clone, Default)]
#[repr(C)]
pub(crate) struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `hipPointerAttribute_t`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
    is_managed: c_int,
    flags: c_uint,
}

/// `hipMemoryType`, which has other numbers from HIP 6 on.
fn memory_type(kind: MemoryKind) -> c_int {
    use crate::runtime::{HipVersion, version};
    match (version(), kind) {
        (HipVersion::V5, MemoryKind::Host | MemoryKind::Registered) => 0,
        (HipVersion::V5, MemoryKind::Device) => 1,
        (HipVersion::V5, MemoryKind::Managed) => 4,
        (HipVersion::V6 | HipVersion::V7, MemoryKind::Host | MemoryKind::Registered) => 1,
        (HipVersion::V6 | HipVersion::V7, MemoryKind::Device) => 2,
        (HipVersion::V6 | HipVersion::V7, MemoryKind::Managed) => 3,
    }
}

/// `hipChannelFormatDesc`.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct ChannelFormat {
    bits: [c_int; 4],
    kind: c_int,
}

/// `hipCreateChannelDesc`: textures are not there, but their headers describe elements before they ask for
/// one.
#[unsafe(no_mangle)]
pub extern "C" fn hipCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> ChannelFormat {
    ChannelFormat { bits: [x, y, z, w], kind }
}

exports! {
    fn hipMalloc(pointer: Out<u64>, bytes: usize) {
        allocate(pointer, bytes, MemoryKind::Device, 0)
    }

    fn hipExtMallocWithFlags(pointer: Out<u64>, bytes: usize, flags: c_uint) {
        allocate(pointer, bytes, MemoryKind::Device, flags)
    }

    fn hipMallocManaged(pointer: Out<u64>, bytes: usize, flags: c_uint) {
        if !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
            return Err(invalid(format!("{flags:#x} is neither hipMemAttachGlobal nor hipMemAttachHost")));
        }
        allocate(pointer, bytes, MemoryKind::Managed, flags)
    }

    fn hipHostMalloc(pointer: Out<u64>, bytes: usize, flags: c_uint) {
        check_host_flags(flags)?;
        allocate(pointer, bytes, MemoryKind::Host, flags)
    }

    fn hipHostAlloc(pointer: Out<u64>, bytes: usize, flags: c_uint) {
        check_host_flags(flags)?;
        allocate(pointer, bytes, MemoryKind::Host, flags)
    }

    fn hipMallocHost(pointer: Out<u64>, bytes: usize) {
        allocate(pointer, bytes, MemoryKind::Host, 0)
    }

    fn hipMemAllocHost(pointer: Out<u64>, bytes: usize) {
        allocate(pointer, bytes, MemoryKind::Host, 0)
    }

    fn hipMallocPitch(pointer: Out<u64>, pitch: Out<usize>, width: usize, rows: usize) {
        allocate_pitched(pointer, pitch, width, rows)
    }

    fn hipMemAllocPitch(pointer: Out<u64>, pitch: Out<usize>, width: usize, rows: usize, _element: c_uint) {
        allocate_pitched(pointer, pitch, width, rows)
    }

    fn hipMalloc3D(pointer: Out<PitchedPointer>, extent: Extent) {
        let (mut address, mut pitch) = (0, 0);
        let rows = extent.height.checked_mul(extent.depth);
        let rows = rows.ok_or_else(|| HipError::new(Code::OutOfMemory, "there are too many rows"))?;
        allocate_pitched(Out::to(&mut address), Out::to(&mut pitch), extent.width, rows)?;
        pointer.put(PitchedPointer { pointer: address, pitch, width: extent.width, height: extent.height })
    }

    fn hipFree(pointer: u64) {
        free(pointer, OF_DEVICE, "hipFree")?;
        pools::forget(pointer);
        Ok(())
    }

    fn hipHostFree(pointer: u64) {
        free(pointer, OF_HOST, "hipHostFree")
    }

    fn hipFreeHost(pointer: u64) {
        free(pointer, OF_HOST, "hipFreeHost")
    }

    fn hipHostRegister(pointer: u64, bytes: usize, flags: c_uint) {
        let runtime = runtime()?;
        runtime.space.register(&mut runtime.simulator_to_change(), pointer, bytes as u64, flags)
    }

    fn hipHostUnregister(pointer: u64) {
        let runtime = runtime()?;
        let freed = give_back(runtime, pointer, &[MemoryKind::Registered], "hipHostUnregister");
        freed.map_err(|error| HipError::new(Code::HostMemoryNotRegistered, error.reason))
    }

    fn hipHostGetDevicePointer(device: Out<u64>, host: u64, _flags: c_uint) {
        let block = block_of(runtime()?, host)?;
        match block.kind {
            MemoryKind::Device => Err(invalid(format!("{host:#x} is memory of the device"))),
            MemoryKind::Host | MemoryKind::Managed | MemoryKind::Registered => device.put(host),
        }
    }

    fn hipHostGetFlags(flags: Out<c_uint>, host: u64) {
        flags.put(block_of(runtime()?, host)?.flags)
    }

    fn hipMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let (left, all) = runtime()?.space.left();
        free.put(left as usize)?;
        total.put(all as usize)
    }

    fn hipMemPtrGetInfo(pointer: u64, bytes: Out<usize>) {
        bytes.put(block_of(runtime()?, pointer)?.bytes as usize)
    }

    fn hipMemGetAddressRange(start: Out<u64>, bytes: Out<usize>, pointer: u64) {
        let block = block_of(runtime()?, pointer)
            .map_err(|error| HipError::new(Code::NotFound, error.reason))?;
        start.put_if_wanted(block.address);
        bytes.put_if_wanted(block.bytes as usize);
        Ok(())
    }

    fn hipPointerGetAttributes(attributes: Out<PointerAttributes>, pointer: u64) {
        let block = block_of(runtime()?, pointer)?;
        let is_device = block.kind == MemoryKind::Device;
        attributes.put(PointerAttributes {
            kind: memory_type(block.kind),
            device: 0,
            device_pointer: pointer,
            host_pointer: if is_device { 0 } else { pointer },
            is_managed: (block.kind == MemoryKind::Managed).into(),
            flags: block.flags,
        })
    }

    fn hipMemAdvise(_pointer: *const c_void, _bytes: usize, _advice: c_int, _device: c_int) {
        Ok(())
    }

    fn hipMemPrefetchAsync(pointer: u64, _bytes: usize, _device: c_int, stream: Handle) {
        check_stream(runtime()?, stream)?;
        block_of(runtime()?, pointer).map(drop)
    }
}
