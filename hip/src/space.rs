//! Device memory at addresses of the host.
//!
//! Every allocation is mapped memory of the process, lent to the simulator at its own address, so a pointer
//! means the same to both: what HIP promises of pinned and managed memory holds by itself. Between two
//! allocations lies a gap that is not mapped, and a freed one's addresses are not mapped again, so the
//! simulator reports a kernel that runs past an end or uses what was freed, and the host is stopped by the
//! system.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use groundswell::simulator::Simulator;

use crate::error::{Code, HipError, HipResult, invalid};

/// Where allocations begin: above everything that a loader or `malloc` places low, below the libraries and
/// the stack, and below the addresses that the simulator keeps for scratch.
const FIRST: u64 = 0x1000_0000_0000;
const END: u64 = 0x3000_0000_0000;
/// Pages are mapped.
pub const PAGE: u64 = 4096;
/// The least number of bytes between two allocations.
const GAP: u64 = 0x1_0000;

/// What an allocation was made as.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    /// `hipMalloc`: the host has no business there.
    Device,
    /// `hipHostMalloc`.
    Host,
    /// `hipMallocManaged`.
    Managed,
    /// `hipHostRegister`: memory of the program.
    Registered,
}

impl fmt::Display for MemoryKind {
    /// The function that makes such memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryKind::Device => "hipMalloc",
            MemoryKind::Host => "hipHostMalloc",
            MemoryKind::Managed => "hipMallocManaged",
            MemoryKind::Registered => "hipHostRegister",
        })
    }
}

/// An allocation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its first byte.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// What it was made as.
    pub kind: MemoryKind,
    /// The flags that it was asked for with.
    pub flags: u32,
}

/// All allocations of the process.
pub struct AddressSpace {
    places: Mutex<Places>,
}

/// An allocation that was given back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreedBlock {
    /// What it was.
    pub block: Block,
    /// Who gave it back, and when.
    pub by: String,
}

/// The most of them that are remembered.
const MOST_FREED: usize = 1 << 14;

struct Places {
    blocks: BTreeMap<u64, Block>,
    freed: BTreeMap<u64, FreedBlock>,
    next: u64,
    used: u64,
}

impl AddressSpace {
    /// No allocations yet.
    #[allow(clippy::new_without_default)]
    pub fn new() -> AddressSpace {
        AddressSpace { places: Mutex::new(Places::default()) }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        // A poisoned lock guards tables that are whole after each change.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Zeroed memory that the simulator has, too; its address is a multiple of a page.
    ///
    /// # Errors
    /// More than the host has is asked for.
    pub fn allocate(
        &self,
        simulator: &mut Simulator,
        bytes: u64,
        kind: MemoryKind,
        flags: u32,
    ) -> HipResult<u64> {
        let mut places = self.places();
        let total = total();
        let error = || {
            let reason = format!("{bytes} bytes are asked for, and the simulated device has {total}");
            HipError::new(Code::OutOfMemory, reason)
        };
        let mapped =
            bytes.checked_next_multiple_of(PAGE).filter(|&mapped| mapped <= total).ok_or_else(error)?;
        if places.used + mapped > total || places.next + mapped + GAP > END {
            return Err(error());
        }
        let address = map(places.next, mapped, libc::PROT_READ | libc::PROT_WRITE).ok_or_else(error)?;
        // SAFETY: the pages were mapped just now for this purpose alone, readable and writable; they are
        // unmapped in `free`, after the simulator has given them back. No Rust reference leads there.
        if let Err(refused) = unsafe { simulator.lend_in_pages(address as *mut u8, bytes, mapped) } {
            unmap(address, mapped);
            return Err(refused.into());
        }
        places.blocks.insert(address, Block { address, bytes, kind, flags });
        places.next = address + mapped + GAP;
        places.used += mapped;
        Ok(address)
    }

    /// Addresses without memory, for mappings to come.
    ///
    /// # Errors
    /// There are not so many.
    pub fn reserve(&self, bytes: u64, alignment: u64) -> HipResult<u64> {
        let error = || HipError::new(Code::OutOfMemory, format!("there are no {bytes} addresses"));
        let mut places = self.places();
        let start = places.next.checked_next_multiple_of(alignment).ok_or_else(error)?;
        let end = start.checked_add(bytes).filter(|end| *end < END).ok_or_else(error)?;
        let address =
            map(start, end - start, libc::PROT_NONE).filter(|&address| address == start).ok_or_else(error)?;
        places.next = (end + GAP).next_multiple_of(PAGE);
        Ok(address)
    }

    /// Gives up addresses that were reserved; memory is mapped there no more.
    pub fn give_up(&self, address: u64, bytes: u64) {
        unmap(address, bytes);
    }

    /// Memory of the program becomes visible to kernels.
    ///
    /// # Errors
    /// It is registered already.
    pub fn register(&self, simulator: &mut Simulator, address: u64, bytes: u64, flags: u32) -> HipResult {
        if address == 0 || bytes == 0 {
            return Err(invalid("there is nothing to register"));
        }
        let end = address.checked_add(bytes).ok_or_else(|| invalid("there is no such memory"))?;
        let mut places = self.places();
        let mut below = places.blocks.range(..end).rev();
        if below.next().is_some_and(|(_, block)| block.address + block.bytes > address) {
            return Err(HipError::new(Code::HostMemoryAlreadyRegistered, "the memory is registered already"));
        }
        // The simulator takes whole words.
        let start = address & !3;
        // SAFETY: `hipHostRegister` asks the program to keep the memory until it unregisters it; a word that
        // begins before it lies in the same page.
        unsafe { simulator.lend(start as *mut u8, bytes + (address - start)) }?;
        places.blocks.insert(address, Block { address, bytes, kind: MemoryKind::Registered, flags });
        Ok(())
    }

    /// Gives an allocation back that was made as one of `kinds`; `by` says whose wish that is, for those who
    /// use it afterwards.
    ///
    /// # Errors
    /// None begins at that address.
    pub fn free(
        &self,
        simulator: &mut Simulator,
        address: u64,
        kinds: &[MemoryKind],
        by: String,
    ) -> HipResult {
        let mut places = self.places();
        let Some(block) = places.blocks.get(&address).copied().filter(|block| kinds.contains(&block.kind))
        else {
            return Err(invalid(match places.freed.get(&address) {
                Some(freed) => format!("{address:#x} was freed before: {}", freed.by),
                None => format!("{address:#x} is not the start of such an allocation"),
            }));
        };
        simulator.free(address & !3)?;
        places.blocks.remove(&address);
        places.freed.insert(address, FreedBlock { block, by });
        if places.freed.len() > MOST_FREED {
            places.freed.pop_first();
        }
        if block.kind != MemoryKind::Registered {
            let mapped = block.bytes.next_multiple_of(PAGE);
            unmap(address, mapped);
            places.used -= mapped;
        }
        Ok(())
    }

    /// The allocation that an address lies in.
    pub fn find(&self, address: u64) -> Option<Block> {
        self.places().find(address)
    }

    /// Whether bytes lie in the pages of the allocation that begins at `base`, past its end or not.
    pub fn has_page(&self, base: u64, address: u64, bytes: u32) -> bool {
        let block =
            self.places().blocks.get(&base).copied().filter(|block| block.kind != MemoryKind::Registered);
        let end = block.map_or(0, |block| base + block.bytes.next_multiple_of(PAGE));
        address >= base && address.saturating_add(bytes.into()) <= end
    }

    /// The allocation that was given back and that an address lies in.
    pub fn find_freed(&self, address: u64) -> Option<FreedBlock> {
        let places = self.places();
        let (_, freed) = places.freed.range(..=address).next_back()?;
        (address - freed.block.address < freed.block.bytes).then(|| freed.clone())
    }

    /// Bytes that can still be allocated, and all that there are.
    pub fn left(&self) -> (u64, u64) {
        let total = total();
        (total.saturating_sub(self.places().used), total)
    }
}

impl Default for Places {
    fn default() -> Places {
        Places { blocks: BTreeMap::new(), freed: BTreeMap::new(), next: FIRST, used: 0 }
    }
}

impl Places {
    fn find(&self, address: u64) -> Option<Block> {
        let (_, block) = self.blocks.range(..=address).next_back()?;
        (address - block.address < block.bytes.max(1)).then_some(*block)
    }
}

/// Memory of the device: as much as the host has.
fn total() -> u64 {
    // SAFETY: a call that only reads what the system knows.
    let [pages, size] = [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|what| unsafe { libc::sysconf(what) });
    u64::try_from(pages).unwrap_or(0) * u64::try_from(size).unwrap_or(0)
}

/// Maps zeroed pages at `address`, or at the next place that is free; `protection` is that of the system.
fn map(address: u64, bytes: u64, protection: libc::c_int) -> Option<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    (address..END).step_by(GAP as usize).take(64).find_map(|address| {
        // SAFETY: `MAP_FIXED_NOREPLACE` takes nothing away from anybody: where something is mapped already,
        // the call fails.
        let place = unsafe {
            libc::mmap(
                address as *mut libc::c_void,
                usize::try_from(bytes.max(PAGE)).ok()?,
                protection,
                flags,
                -1,
                0,
            )
        };
        (place as u64 == address).then_some(address)
    })
}

/// Unmaps what [`map`] has mapped.
fn unmap(address: u64, bytes: u64) {
    // SAFETY: the pages are those of one allocation, which nobody uses any more.
    unsafe { libc::munmap(address as *mut libc::c_void, bytes.max(PAGE) as usize) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use groundswell::target::Target;

    #[test]
    fn the_host_and_the_device_see_the_same_bytes() {
        let (space, mut simulator) = (AddressSpace::new(), Simulator::new(Target::GFX942));
        let address = space.allocate(&mut simulator, 100, MemoryKind::Host, 0).expect("small");
        // SAFETY: the memory was allocated above, and nobody else knows of it.
        unsafe { crate::ffi::write_host(address, &[1, 2, 3]) };
        assert_eq!(simulator.read(address, 4).expect("inside"), [1, 2, 3, 0]);
        simulator.write(address + 97, &[9]).expect("inside");
        // SAFETY: as above.
        assert_eq!(unsafe { crate::ffi::host_bytes(address + 97, 1) }, [9]);
        assert!(simulator.write(address + 97, &[0; 4]).is_err());
        assert_eq!(space.find(address + 99).map(|block| block.bytes), Some(100));
        assert_eq!(space.find(address + 100), None);
        let other = space.allocate(&mut simulator, 1, MemoryKind::Device, 0).expect("small");
        assert!(other >= address + 100 + GAP);
        let error = space
            .free(&mut simulator, address, &[MemoryKind::Device], String::new())
            .expect_err("it is the host's");
        assert_eq!(error.code, Code::InvalidValue);
        space.free(&mut simulator, address, &[MemoryKind::Host], String::new()).expect("allocated above");
        assert!(simulator.read(address, 1).is_err());
        assert!(space.free(&mut simulator, address, &[MemoryKind::Host], String::new()).is_err());
        assert!(space.allocate(&mut simulator, 5, MemoryKind::Host, 0).expect("small") > other);
    }

    #[test]
    fn memory_of_the_program_is_registered_once() {
        let (space, mut simulator) = (AddressSpace::new(), Simulator::new(Target::GFX942));
        let mut words = [7u32; 18];
        let odd = words.as_mut_ptr() as u64 + 65;
        space.register(&mut simulator, odd, 3, 0).expect("at any address");
        space.free(&mut simulator, odd, &[MemoryKind::Registered], String::new()).expect("registered above");
        let address = words.as_mut_ptr() as u64;
        space.register(&mut simulator, address, 64, 0).expect("aligned");
        assert_eq!(simulator.read(address, 4).expect("registered"), [7, 0, 0, 0]);
        for (start, bytes) in [(address + 8, 8), (address - 8, 100), (address - 4, 8)] {
            let error = space.register(&mut simulator, start, bytes, 0).expect_err("it overlaps");
            assert_eq!(error.code, Code::HostMemoryAlreadyRegistered);
        }
        space
            .free(&mut simulator, address, &[MemoryKind::Registered], String::new())
            .expect("registered above");
        assert!(simulator.read(address, 4).is_err());
    }

    #[test]
    fn more_than_there_is_is_refused() {
        let (space, mut simulator) = (AddressSpace::new(), Simulator::new(Target::GFX942));
        for bytes in [u64::MAX, 1 << 60, total() + PAGE] {
            let error = space.allocate(&mut simulator, bytes, MemoryKind::Device, 0).expect_err("too much");
            assert_eq!(error.code, Code::OutOfMemory);
        }
    }
}
