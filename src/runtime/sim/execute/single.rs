//! Device and private memory one lane at a time: the path of accesses that are rare.

use super::super::error::{FaultKind, MemoryAccess, Stopped};
use super::super::memory::MemoryView;
use super::super::wave::Wave;
use super::address::{AddressedMemory, Targets};
use super::private;

#[cold]
pub(super) fn outside(l: usize, access: MemoryAccess, address: u64, bytes: u32) -> Stopped {
    Stopped::lane(l, FaultKind::Memory { access, address, bytes })
}

/// Most components that an access has.
pub(super) const COMPONENTS: usize = 4;

/// The components of lane `l`, each of `bytes` bytes; those out of range are zero.
pub(super) fn gather(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    targets: &Targets,
    l: usize,
    bytes: u32,
) -> Result<[u32; COMPONENTS], Stopped> {
    let mut values = [0; COMPONENTS];
    for (index, value) in values.iter_mut().enumerate().take(targets.valid[l].into()) {
        let address = targets.component(l, index);
        *value = if targets.space == AddressedMemory::Private {
            private::load(w, l, address, bytes)?
        } else {
            let (allocation, offset) = memory
                .find(&mut w.hint, address, bytes.into())
                .ok_or_else(|| outside(l, MemoryAccess::Load, address, bytes))?;
            allocation.load(offset, bytes)
        };
    }
    Ok(values)
}

/// Stores the components of lane `l` that are in range.
pub(super) fn scatter(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    targets: &Targets,
    l: usize,
    bytes: u32,
    values: [u32; COMPONENTS],
) -> Result<(), Stopped> {
    for (index, value) in values.into_iter().enumerate().take(targets.valid[l].into()) {
        let address = targets.component(l, index);
        if targets.space == AddressedMemory::Private {
            private::store(w, l, address, bytes, value)?;
        } else {
            let (allocation, offset) = memory
                .find(&mut w.hint, address, bytes.into())
                .ok_or_else(|| outside(l, MemoryAccess::Store, address, bytes))?;
            allocation.store(offset, bytes, value);
        }
    }
    Ok(())
}
