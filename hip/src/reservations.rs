//! Addresses that are reserved, memory that has none yet, and the one mapped to the other (HIP documentation,
//! "Virtual memory management").
//!
//! Memory without an address is an anonymous file of the system. Mapped, it is seen by kernels as soon as a
//! program asks for access to it; mappings side by side are then one allocation, so that accesses and copies
//! may cross from one to the next.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{In, Out, exports};
use crate::handles::Handle;
use crate::pools::{Access, HERE, Location, READ_AND_WRITE};
use crate::runtime::{HipVersion, Runtime, runtime, version};
use crate::space::PAGE;

/// Memory without an address.
pub(crate) struct Physical {
    file: OwnedFd,
    bytes: u64,
    properties: Properties,
}

/// `hipMemAllocationProp`: its fields lie at other places from HIP 6 on, and it has the same size.
type Properties = [u32; 8];

/// Memory at addresses of a reservation.
struct Mapping {
    bytes: u64,
    /// The memory's handle. The system keeps the pages for as long as they are mapped, even if that is
    /// released.
    handle: Handle,
    /// `hipMemAccessFlags`.
    access: c_int,
}

struct Reservation {
    bytes: u64,
    mappings: BTreeMap<u64, Mapping>,
    /// Where the simulator has memory of it.
    lent: Vec<u64>,
}

static RESERVATIONS: Mutex<BTreeMap<u64, Reservation>> = Mutex::new(BTreeMap::new());

fn reservations() -> MutexGuard<'static, BTreeMap<u64, Reservation>> {
    // A poisoned lock guards tables that are whole after each change.
    RESERVATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reservation that holds all of a range.
fn holding(all: &mut BTreeMap<u64, Reservation>, address: u64, bytes: u64) -> HipResult<&mut Reservation> {
    let found = all.range_mut(..=address).next_back();
    let inside = |start: u64, size: u64| bytes <= size && address - start <= size - bytes;
    let found = found.filter(|(start, reservation)| inside(**start, reservation.bytes));
    found.map(|(_, reservation)| reservation).ok_or_else(|| {
        invalid(format!("{bytes} bytes at {address:#x} are not inside of addresses that were reserved"))
    })
}

/// An error unless a size is one of whole pages.
fn check_pages(bytes: usize) -> HipResult<u64> {
    match bytes as u64 {
        bytes if bytes != 0 && bytes.is_multiple_of(PAGE) => Ok(bytes),
        bytes => Err(invalid(format!("{bytes} bytes are no whole pages of {PAGE} bytes"))),
    }
}

fn system_error(what: &str) -> HipError {
    HipError::new(Code::OutOfMemory, format!("{what}: {}", std::io::Error::last_os_error()))
}

/// The location in properties.
fn location(properties: &Properties) -> Location {
    let at = match version() {
        HipVersion::V5 => 1,
        HipVersion::V6 | HipVersion::V7 => 2,
    };
    Location { kind: properties[at] as c_int, device: properties[at + 1] as c_int }
}

impl Physical {
    fn new(bytes: u64, properties: Properties) -> HipResult<Physical> {
        // SAFETY: the name is a string that ends with a zero.
        let file = unsafe { libc::memfd_create(c"groundswell".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(system_error("there is no memory"));
        }
        // SAFETY: the system has made the descriptor just now, for us alone.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let size = libc::off_t::try_from(bytes).map_err(|_| invalid("the size is too large"))?;
        // SAFETY: the descriptor is open.
        match unsafe { libc::ftruncate(file.as_raw_fd(), size) } {
            0 => Ok(Physical { file, bytes, properties }),
            _ => Err(system_error("there is not enough memory")),
        }
    }
}

/// Maps pages of a reservation: those of a file, or with none those that nobody may touch.
fn map(address: u64, bytes: u64, file: Option<(&Physical, u64)>) -> HipResult {
    let (protection, flags, descriptor, offset) = match file {
        Some((memory, offset)) => {
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, memory.file.as_raw_fd(), offset)
        }
        None => (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0),
    };
    // SAFETY: the pages belong to a reservation of ours, and the simulator has given back what it had there.
    let place = unsafe {
        let (address, bytes) = (address as *mut libc::c_void, bytes as usize);
        libc::mmap(address, bytes, protection, flags | libc::MAP_FIXED, descriptor, offset as libc::off_t)
    };
    match place as u64 == address {
        true => Ok(()),
        false => Err(system_error("the pages cannot be mapped")),
    }
}

impl Reservation {
    /// Takes back from the simulator what it has.
    fn take_back(&mut self, runtime: &Runtime) -> HipResult {
        let mut simulator = runtime.simulator_to_change();
        self.lent.drain(..).try_for_each(|address| Ok(simulator.free(address)?))
    }

    /// Lends it what programs may access, as few pieces as there can be.
    fn lend(&mut self, runtime: &Runtime) -> HipResult {
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for (&start, mapping) in self.mappings.iter().filter(|(_, mapping)| mapping.access != 0) {
            match pieces.last_mut() {
                Some((address, bytes)) if *address + *bytes == start => *bytes += mapping.bytes,
                _ => pieces.push((start, mapping.bytes)),
            }
        }
        let mut simulator = runtime.simulator_to_change();
        for (address, bytes) in pieces {
            // SAFETY: the pages are mapped, readable and writable. Before they are mapped in another way,
            // they are taken back. No Rust reference leads there.
            unsafe { simulator.lend(address as *mut u8, bytes) }?;
            self.lent.push(address);
        }
        Ok(())
    }

    /// The mappings of a range.
    ///
    /// # Errors
    /// They are not all of it, or more.
    fn of(&self, address: u64, bytes: u64) -> HipResult<Vec<u64>> {
        let (mut next, end) = (address, address.saturating_add(bytes));
        let mut found = Vec::new();
        while next < end {
            let mapping = self.mappings.get(&next);
            let mapping = mapping.ok_or_else(|| invalid(format!("nothing is mapped from {next:#x} on")))?;
            found.push(next);
            next += mapping.bytes;
        }
        match next == end {
            true => Ok(found),
            false => Err(invalid("the range ends inside of a mapping")),
        }
    }
}

exports! {
    fn hipMemGetAllocationGranularity(bytes: Out<usize>, properties: In<Properties>, _option: c_int) {
        properties.value()?;
        bytes.put(PAGE as usize)
    }
    fn hipMemAddressReserve(pointer: Out<u64>, bytes: usize, alignment: usize, _wish: u64, flags: u64) {
        let bytes = check_pages(bytes)?;
        if flags != 0 || !(alignment == 0 || alignment.is_power_of_two()) {
            return Err(invalid("flags have to be 0, and an alignment a power of two"));
        }
        let address = runtime()?.space.reserve(bytes, (alignment as u64).max(PAGE))?;
        reservations().insert(address, Reservation { bytes, mappings: BTreeMap::new(), lent: Vec::new() });
        pointer.put(address)
    }
    fn hipMemAddressFree(address: u64, bytes: usize) {
        let mut all = reservations();
        match all.get(&address) {
            Some(found) if found.bytes == bytes as u64 && found.mappings.is_empty() => {}
            Some(_) => return Err(invalid("the addresses are of another size, or memory is mapped there")),
            None => return Err(invalid(format!("{address:#x} was not reserved"))),
        }
        all.remove(&address);
        runtime()?.space.give_up(address, bytes as u64);
        Ok(())
    }
    fn hipMemCreate(handle: Out<Handle>, bytes: usize, properties: In<Properties>, flags: u64) {
        let (bytes, properties) = (check_pages(bytes)?, properties.value()?);
        if flags != 0 || location(&properties) != HERE {
            return Err(invalid("flags have to be 0, and the memory that of device 0"));
        }
        let runtime = runtime()?;
        if bytes > runtime.space.left().0 {
            return Err(HipError::new(Code::OutOfMemory, format!("there are no {bytes} bytes")));
        }
        handle.put(runtime.physical.add(Physical::new(bytes, properties)?)?)
    }
    fn hipMemRelease(handle: Handle) {
        runtime()?.physical.remove(handle).map(drop)
    }
    fn hipMemGetAllocationPropertiesFromHandle(properties: Out<Properties>, handle: Handle) {
        properties.put(runtime()?.physical.get(handle)?.properties)
    }
    fn hipMemMap(address: u64, bytes: usize, offset: usize, handle: Handle, flags: u64) {
        let bytes = check_pages(bytes)?;
        let memory = runtime()?.physical.get(handle)?;
        if flags != 0 || !address.is_multiple_of(PAGE) || offset != 0 || bytes > memory.bytes {
            return Err(invalid("the mapping is not of the memory's first pages, or flags are not 0"));
        }
        let mut all = reservations();
        let reservation = holding(&mut all, address, bytes)?;
        let before = reservation.mappings.range(..address + bytes).next_back();
        if before.is_some_and(|(&start, mapping)| start + mapping.bytes > address) {
            return Err(invalid("memory is mapped there already"));
        }
        map(address, bytes, Some((&memory, 0)))?;
        reservation.mappings.insert(address, Mapping { bytes, handle, access: 0 });
        Ok(())
    }
    fn hipMemUnmap(address: u64, bytes: usize) {
        let (runtime, bytes) = (runtime()?, check_pages(bytes)?);
        let mut all = reservations();
        let reservation = holding(&mut all, address, bytes)?;
        let gone = reservation.of(address, bytes)?;
        reservation.take_back(runtime)?;
        for start in &gone {
            reservation.mappings.remove(start);
        }
        map(address, bytes, None)?;
        reservation.lend(runtime)
    }
    fn hipMemSetAccess(address: u64, bytes: usize, accesses: In<Access>, count: usize) {
        let (runtime, bytes) = (runtime()?, check_pages(bytes)?);
        let accesses = accesses.values(count)?;
        let known = |access: &Access| access.location == HERE && matches!(access.flags, 0 | 1 | READ_AND_WRITE);
        let Some(last) = accesses.last().filter(|_| accesses.iter().all(known)) else {
            return Err(invalid("access is that of device 0: none, reading, or reading and writing"));
        };
        let mut all = reservations();
        let reservation = holding(&mut all, address, bytes)?;
        let changed = reservation.of(address, bytes)?;
        reservation.take_back(runtime)?;
        for start in changed {
            if let Some(mapping) = reservation.mappings.get_mut(&start) {
                mapping.access = last.flags;
            }
        }
        reservation.lend(runtime)
    }
    fn hipMemGetAccess(flags: Out<u64>, location: In<Location>, address: u64) {
        if location.value()? != HERE {
            return Err(HipError::new(Code::InvalidDevice, "there is device 0 and no other"));
        }
        let mut all = reservations();
        let mapping = mapping_at(holding(&mut all, address, 1)?, address)?;
        flags.put(mapping.access as u64)
    }
    fn hipMemRetainAllocationHandle(handle: Out<Handle>, address: u64) {
        let mut all = reservations();
        handle.put(mapping_at(holding(&mut all, address, 1)?, address)?.handle)
    }
}

/// The mapping that an address lies in.
fn mapping_at(reservation: &Reservation, address: u64) -> HipResult<&Mapping> {
    let found = reservation.mappings.range(..=address).next_back();
    let found = found.filter(|(start, mapping)| address - **start < mapping.bytes);
    found.map(|(_, mapping)| mapping).ok_or_else(|| invalid(format!("nothing is mapped at {address:#x}")))
}
