//! Memory pools, and memory that is allocated and freed in a stream. As every operation is complete when its
//! call returns, memory that is freed goes back at once, and a pool holds what is in use.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::capture;
use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{In, InOut, Out, exports};
use crate::handles::Handle;
use crate::memory::{OF_DEVICE, allocate_in_stream, free_in_stream};
use crate::operations::{Operation, submit};
use crate::runtime::{Runtime, runtime, runtime_if_used};
use crate::space::MemoryKind;
use crate::streams::check_stream;

/// A pool.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// Sizes of what was allocated from it, by address.
    used: BTreeMap<u64, u64>,
    /// The most bytes that were in use.
    high: u64,
    /// Settings that change nothing here: what memory may be used again for, and how much is kept.
    reuse: [c_int; 3],
    threshold: u64,
}

/// `hipMemPoolProps`, of which the first fields matter.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct PoolProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location: Location,
    rest: [u64; 9],
}

/// `hipMemLocation`.
#[derive(Copy, Clone, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Location {
    pub kind: c_int,
    pub device: c_int,
}

/// `hipMemAccessDesc`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct Access {
    pub location: Location,
    pub flags: c_int,
}

/// The only place where memory can be: `hipMemLocationTypeDevice` of device 0.
pub(crate) const HERE: Location = Location { kind: 1, device: 0 };
/// `hipMemAccessFlagsProtReadWrite`.
pub(crate) const READ_AND_WRITE: c_int = 3;
/// `hipMemAllocationTypePinned`.
const PINNED: c_int = 1;

/// The attributes of a pool (`hipMemPoolAttr`).
const REUSE: std::ops::RangeInclusive<c_int> = 1..=3;
const THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const RESERVED_HIGH: c_int = 6;
const USED: c_int = 7;
const USED_HIGH: c_int = 8;

static DEFAULT: OnceLock<HipResult<Handle>> = OnceLock::new();
/// The pool that `hipMallocAsync` takes from.
static CURRENT: Mutex<Option<Handle>> = Mutex::new(None);

fn add(runtime: &Runtime) -> HipResult<Handle> {
    runtime.pools.add(Pool { state: Mutex::new(PoolState { reuse: [1; 3], ..PoolState::default() }) })
}

fn default(runtime: &Runtime) -> HipResult<Handle> {
    DEFAULT.get_or_init(|| add(runtime)).clone()
}

fn current(runtime: &Runtime) -> HipResult<Handle> {
    // A poisoned lock guards a handle that is whole after each change.
    let current = *CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    current.filter(|&pool| runtime.pools.get(pool).is_ok()).map_or_else(|| default(runtime), Ok)
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        // A poisoned lock guards numbers that are whole after each change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn bytes(&self) -> u64 {
        self.used.values().sum()
    }
}

fn check_device(device: c_int) -> HipResult {
    match device {
        0 => Ok(()),
        _ => Err(HipError::new(Code::InvalidDevice, format!("there is device 0 and no device {device}"))),
    }
}

/// Allocates from a pool, in a stream.
fn allocate(pool: Handle, pointer: Out<u64>, bytes: usize, stream: Handle) -> HipResult {
    let runtime = runtime()?;
    check_stream(runtime, stream)?;
    let pool = runtime.pools.get(pool)?;
    let mut address = 0;
    if pointer.is_null() {
        return Err(invalid("the pointer for the result is null"));
    }
    runtime.check_for_fault()?;
    allocate_in_stream(runtime, Out::to(&mut address), bytes, MemoryKind::Device, 0)?;
    pointer.put(address)?;
    if address == 0 {
        return Ok(());
    }
    let mut state = pool.state();
    state.used.insert(address, bytes as u64);
    state.high = state.high.max(state.bytes());
    drop(state);
    // Of a captured stream it is a node.
    submit(stream, Operation::Allocate { address, bytes })
}

/// Memory was freed: no pool has it any more.
pub(crate) fn forget(address: u64) {
    for pool in runtime_if_used().into_iter().flat_map(|runtime| runtime.pools.all()) {
        pool.state().used.remove(&address);
    }
}

fn no_sharing() -> HipResult {
    Err(HipError::new(Code::NotSupported, "memory of a pool cannot be shared with other processes"))
}

exports! {
    fn hipMallocAsync(pointer: Out<u64>, bytes: usize, stream: Handle) {
        allocate(current(runtime()?)?, pointer, bytes, stream)
    }
    fn hipMallocFromPoolAsync(pointer: Out<u64>, bytes: usize, pool: Handle, stream: Handle) {
        allocate(pool, pointer, bytes, stream)
    }
    fn hipFreeAsync(pointer: u64, stream: Handle) {
        let runtime = runtime()?;
        check_stream(runtime, stream)?;
        runtime.check_for_fault()?;
        if pointer == 0 {
            return Err(invalid("there is nothing to free"));
        }
        if capture::is_captured(stream) {
            return submit(stream, Operation::Free { address: pointer });
        }
        forget(pointer);
        free_in_stream(pointer, OF_DEVICE, "hipFreeAsync")
    }
    fn hipDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) {
        check_device(device)?;
        pool.put(default(runtime()?)?)
    }
    fn hipDeviceGetMemPool(pool: Out<Handle>, device: c_int) {
        check_device(device)?;
        pool.put(current(runtime()?)?)
    }
    fn hipDeviceSetMemPool(device: c_int, pool: Handle) {
        check_device(device)?;
        runtime()?.pools.get(pool)?;
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(pool);
        Ok(())
    }
    fn hipMemPoolCreate(pool: Out<Handle>, properties: In<PoolProperties>) {
        let of = properties.value()?;
        if of.allocation_type != PINNED || of.location != HERE {
            return Err(invalid("a pool has pinned memory of device 0"));
        }
        if of.handle_types != 0 {
            return no_sharing();
        }
        pool.put(add(runtime()?)?)
    }
    fn hipMemPoolDestroy(pool: Handle) {
        let runtime = runtime()?;
        if pool == default(runtime)? {
            return Err(invalid("the default pool stays"));
        }
        runtime.pools.remove(pool).map(drop)
    }
    fn hipMemPoolTrimTo(pool: Handle, _least: usize) {
        runtime()?.pools.get(pool).map(drop)
    }
    fn hipMemPoolSetAttribute(pool: Handle, attribute: c_int, value: In<u64>) {
        let pool = runtime()?.pools.get(pool)?;
        let mut state = pool.state();
        match attribute {
            which if REUSE.contains(&which) => state.reuse[which as usize - 1] = value.cast::<c_int>().value()?,
            THRESHOLD => state.threshold = value.value()?,
            RESERVED_HIGH | USED_HIGH if value.value()? == 0 => state.high = state.bytes(),
            _ => return Err(invalid(format!("attribute {attribute} of a pool cannot be set so"))),
        }
        Ok(())
    }
    fn hipMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Out<u64>) {
        let pool = runtime()?.pools.get(pool)?;
        let state = pool.state();
        match attribute {
            which if REUSE.contains(&which) => value.cast::<c_int>().put(state.reuse[which as usize - 1]),
            THRESHOLD => value.put(state.threshold),
            RESERVED | USED => value.put(state.bytes()),
            RESERVED_HIGH | USED_HIGH => value.put(state.high),
            _ => Err(invalid(format!("{attribute} is no attribute of a pool"))),
        }
    }
    fn hipMemPoolSetAccess(pool: Handle, accesses: In<Access>, count: usize) {
        runtime()?.pools.get(pool)?;
        let right = |access: &Access| access.location == HERE && access.flags == READ_AND_WRITE;
        match accesses.values(count)?.iter().all(right) {
            true => Ok(()),
            false => Err(invalid("device 0 reads and writes all of its memory, and there is no other device")),
        }
    }
    fn hipMemPoolGetAccess(flags: Out<c_int>, pool: Handle, location: InOut<Location>) {
        runtime()?.pools.get(pool)?;
        match location.value()? == HERE {
            true => flags.put(READ_AND_WRITE),
            false => Err(HipError::new(Code::InvalidDevice, "there is device 0 and no other")),
        }
    }
    fn hipMemPoolExportPointer(_data: u64, _pointer: u64) {
        no_sharing()
    }
    fn hipMemPoolImportPointer(_pointer: u64, _pool: Handle, _data: u64) {
        no_sharing()
    }
    fn hipMemPoolExportToShareableHandle(_shared: u64, _pool: Handle, _kind: c_int, _flags: u32) {
        no_sharing()
    }
    fn hipMemPoolImportFromShareableHandle(_pool: u64, _shared: u64, _kind: c_int, _flags: u32) {
        no_sharing()
    }
}
