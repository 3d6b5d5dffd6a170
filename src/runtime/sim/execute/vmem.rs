//! Vector memory: loads, stores and atomics of buffer, global, flat and scratch instructions.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::codegen::isa::MemoryData;

use super::super::error::{FaultKind, MemoryAccess, Stopped};
use super::super::memory::MemoryView;
use super::super::program::Step;
use super::super::wave::{EXEC, LANES, PRIVATE_APERTURE, SHARED_APERTURE, VectorRow, Wave};
use super::address::{
    AddressedMemory, CONTIGUOUS, OperandRoles, Targets, atomic_return_roles, load_roles, store_roles, targets,
};
use super::atomic::{self, AtomicOperation, AtomicRegisters};
use super::host;
use super::lds::{self, Lds};
use super::private;
use super::single::{self, outside};
use super::transfer::{clear_other_half, merge_loaded, store_value};

/// Components of an access and the bytes of each.
pub(super) fn components(kind: MemoryData) -> (u8, u32) {
    match kind {
        MemoryData::Dwords(n) => (n, 4),
        _ => (1, kind.bytes()),
    }
}

/// The words of all lanes' accesses of `count` dwords, and where each lane's begin, if all lanes are active,
/// in range, aligned and in one allocation: the fast path.
#[inline(always)]
fn together<'a>(
    w: &mut Wave,
    memory: &MemoryView<'a>,
    targets: &Targets,
    kind: MemoryData,
) -> Option<(&'a [AtomicU32], [usize; LANES], usize)> {
    let MemoryData::Dwords(count) = kind else { return None };
    if w.exec() != u64::MAX || targets.step != CONTIGUOUS || targets.valid != [count; LANES] {
        return None;
    }
    let (low, high, bits) = host::range(&targets.address);
    let bytes = high.checked_sub(low)?.checked_add(4 * u64::from(count))?;
    let (allocation, offset) = memory.find_around(&mut w.hint, low, bytes)?;
    // Allocations are aligned, so an aligned address is an aligned offset.
    let words = &allocation.words()[(offset / 4) as usize..];
    let mut starts = [0; LANES];
    for (start, address) in starts.iter_mut().zip(&targets.address) {
        *start = ((address - low) / 4) as usize;
    }
    (bits % 4 == 0).then_some((words, starts, count.into()))
}

/// Calls `f` for each space that a flat access touches, with EXEC reduced to its lanes and addresses made
/// relative.
fn by_space(
    w: &mut Wave,
    all: &mut Targets,
    mut f: impl FnMut(&mut Wave, &Targets, Option<&VectorRow>) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    if all.space != AddressedMemory::Flat {
        return f(w, all, None);
    }
    let exec = w.exec();
    let lanes_of = |aperture: u32| {
        (0..LANES).filter(|&l| (all.address[l] >> 32) as u32 == aperture).fold(0, |mask, l| mask | 1u64 << l)
    };
    let (shared, private) = (lanes_of(SHARED_APERTURE) & exec, lanes_of(PRIVATE_APERTURE) & exec);
    let low = all.address.map(|a| a as u32);
    let mut result = Ok(());
    if shared != 0 {
        w.set_pair(EXEC, shared);
        result = f(w, all, Some(&low));
    }
    if private != 0 && result.is_ok() {
        w.set_pair(EXEC, private);
        let address = all.address.map(|a| a & 0xffff_ffff);
        let private = Targets { space: AddressedMemory::Private, address, valid: all.valid, step: all.step };
        result = f(w, &private, None);
    }
    let device = exec & !shared & !private;
    if device != 0 && result.is_ok() {
        w.set_pair(EXEC, device);
        all.space = AddressedMemory::Device;
        result = f(w, all, None);
    }
    w.set_pair(EXEC, exec);
    result
}

/// Loads into the registers of operand 0.
pub(super) fn load(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    lds: &Lds,
    s: &Step,
    kind: MemoryData,
) -> Result<(), Stopped> {
    let Some(first) = s.operands[0].row() else { return Ok(()) };
    let (count, bytes) = components(kind);
    let mut all = targets(w, s, &load_roles(s.format), count, bytes)?;
    clear_other_half(w, s, kind, first);
    by_space(w, &mut all, |w, targets, shared| match (shared, targets.space) {
        (Some(addresses), _) => lds::load(w, lds, s, kind, addresses),
        (None, AddressedMemory::Private) => load_singly(w, memory, first, kind, targets),
        _ => {
            let _whole = s.is_whole.then(|| memory.keep_whole());
            load_device(w, memory, first, kind, targets)
        }
    })
}

fn load_device(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    first: usize,
    kind: MemoryData,
    targets: &Targets,
) -> Result<(), Stopped> {
    if let Some((words, starts, count)) = together(w, memory, targets, kind) {
        for (index, row) in w.rows[first..first + count].iter_mut().enumerate() {
            let words = &words[index..];
            for (register, &start) in row.iter_mut().zip(&starts) {
                *register = words[start].load(Relaxed);
            }
        }
        return Ok(());
    }
    if targets.step != CONTIGUOUS {
        return load_singly(w, memory, first, kind, targets);
    }
    let (count, bytes) = components(kind);
    let mut hint = w.hint;
    let result = w.each_lane(|w, l| {
        let (address, valid) = (targets.address[l], targets.valid[l]);
        for index in valid..count {
            let register = &mut w.rows[first + usize::from(index)][l];
            *register = merge_loaded(kind, *register, 0);
        }
        if valid == 0 {
            return Ok(());
        }
        let size = bytes * u32::from(valid);
        let (allocation, offset) = memory
            .find(&mut hint, address, size.into())
            .ok_or_else(|| outside(l, MemoryAccess::Load, address, size))?;
        if bytes == 4 && offset % 4 == 0 {
            let words = &allocation.words()[(offset / 4) as usize..][..usize::from(valid)];
            for (row, word) in w.rows[first..].iter_mut().zip(words) {
                row[l] = word.load(Relaxed);
            }
            return Ok(());
        }
        for index in 0..usize::from(valid) {
            let value = allocation.load(offset + 4 * index as u64, bytes);
            let register = &mut w.rows[first + index][l];
            *register = merge_loaded(kind, *register, value);
        }
        Ok(())
    });
    w.hint = hint;
    result
}

/// Loads lane by lane and component by component.
fn load_singly(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    first: usize,
    kind: MemoryData,
    targets: &Targets,
) -> Result<(), Stopped> {
    let (count, bytes) = components(kind);
    w.each_lane(|w, l| {
        let values = single::gather(w, memory, targets, l, bytes)?;
        for (row, &value) in w.rows[first..first + usize::from(count)].iter_mut().zip(&values) {
            row[l] = merge_loaded(kind, row[l], value);
        }
        Ok(())
    })
}

/// Stores.
pub(super) fn store(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    lds: &mut Lds,
    s: &Step,
    kind: MemoryData,
) -> Result<(), Stopped> {
    let roles = store_roles(s.format);
    let Some(first) = s.operands[roles.data].row() else { return Ok(()) };
    let (count, bytes) = components(kind);
    let mut all = targets(w, s, &roles, count, bytes)?;
    by_space(w, &mut all, |w, targets, shared| match (shared, targets.space) {
        (Some(addresses), _) => lds::store(w, lds, s, roles.data, kind, addresses),
        (None, AddressedMemory::Private) => store_singly(w, memory, first, kind, targets),
        _ => {
            let _whole = s.is_whole.then(|| memory.keep_whole());
            store_device(w, memory, first, kind, targets)
        }
    })
}

fn store_device(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    first: usize,
    kind: MemoryData,
    targets: &Targets,
) -> Result<(), Stopped> {
    if let Some((words, starts, count)) = together(w, memory, targets, kind) {
        // Lane by lane: where several lanes store to one place the last one wins, dword by dword.
        for (l, start) in starts.into_iter().enumerate() {
            for (word, row) in words[start..start + count].iter().zip(&w.rows[first..]) {
                word.store(row[l], Relaxed);
            }
        }
        return Ok(());
    }
    if targets.step != CONTIGUOUS {
        return store_singly(w, memory, first, kind, targets);
    }
    let (_, bytes) = components(kind);
    let mut hint = w.hint;
    let result = w.each_lane(|w, l| {
        let (address, valid) = (targets.address[l], targets.valid[l]);
        if valid == 0 {
            return Ok(());
        }
        let size = bytes * u32::from(valid);
        let (allocation, offset) = memory
            .find(&mut hint, address, size.into())
            .ok_or_else(|| outside(l, MemoryAccess::Store, address, size))?;
        if bytes == 4 && offset % 4 == 0 {
            let words = &allocation.words()[(offset / 4) as usize..][..usize::from(valid)];
            for (row, word) in w.rows[first..].iter().zip(words) {
                word.store(row[l], Relaxed);
            }
            return Ok(());
        }
        for index in 0..usize::from(valid) {
            allocation.store(offset + 4 * index as u64, bytes, store_value(kind, w.rows[first + index][l]));
        }
        Ok(())
    });
    w.hint = hint;
    result
}

/// Stores lane by lane and component by component.
fn store_singly(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    first: usize,
    kind: MemoryData,
    targets: &Targets,
) -> Result<(), Stopped> {
    let (count, bytes) = components(kind);
    w.each_lane(|w, l| {
        let mut values = [0; single::COMPONENTS];
        for (value, row) in values.iter_mut().zip(&w.rows[first..first + usize::from(count)]) {
            *value = store_value(kind, row[l]);
        }
        single::scatter(w, memory, targets, l, bytes, values)
    })
}

/// Whether an atomic returns the former value.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Returns {
    /// No.
    Nothing,
    /// Into operand 0.
    Former,
}

/// Atomic operation.
pub(super) fn atomic(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    lds: &mut Lds,
    s: &Step,
    operation: AtomicOperation,
    returns: Returns,
) -> Result<(), Stopped> {
    let roles: OperandRoles = match returns {
        Returns::Nothing => store_roles(s.format),
        Returns::Former => atomic_return_roles(s.format),
    };
    let Some(data) = s.operands[roles.data].row() else { return Ok(()) };
    let result = if returns == Returns::Former { s.operands[0].row() } else { None };
    let (calc, element) = operation;
    let registers = AtomicRegisters::consecutive(data, element, calc, result);
    let bytes = 4 * u32::from(element.registers());
    let mut all = targets(w, s, &roles, 1, bytes)?;
    by_space(w, &mut all, |w, targets, shared| {
        if let Some(addresses) = shared {
            return lds::atomic(w, lds, operation, registers, addresses);
        }
        let mut hint = w.hint;
        w.each_lane(|w, l| {
            let wide = bytes == 8;
            let address = targets.address[l];
            let operands = [registers.data, registers.second].map(|row| atomic::operand(w, row, l, wide));
            let old = if targets.valid[l] == 0 {
                0
            } else if address % u64::from(bytes) != 0 {
                return Err(Stopped::lane(l, FaultKind::Misaligned { address }));
            } else if targets.space == AddressedMemory::Private {
                update_private(w, l, address, operation, operands)?
            } else {
                update(memory, &mut hint, address, operation, operands)
                    .map_err(|stopped| Stopped { lane: Some(l as u32), ..stopped })?
            };
            if let Some(row) = registers.result {
                atomic::put(w, row, l, wide, old);
            }
            Ok(())
        })?;
        w.hint = hint;
        Ok(())
    })
}

/// Atomic operation on an aligned place of device memory; returns the former value.
pub(super) fn update(
    memory: &MemoryView<'_>,
    hint: &mut usize,
    address: u64,
    operation: AtomicOperation,
    [data, second]: [u64; 2],
) -> Result<u64, Stopped> {
    let bytes = 4 * u32::from(operation.1.registers());
    let (allocation, offset) = memory
        .find(hint, address, bytes.into())
        .ok_or_else(|| Stopped::wave(FaultKind::Memory { access: MemoryAccess::Atomic, address, bytes }))?;
    // Once outside the update, which may run several times and cannot fail.
    atomic::apply(operation, 0, data, second)?;
    let apply = |old: u64| atomic::apply(operation, old, data, second).unwrap_or(old);
    let index = (offset / 4) as usize;
    Ok(if bytes == 8 {
        memory.update_wide(allocation, index, apply)
    } else {
        allocation.update(index, |old| apply(old.into()) as u32).into()
    })
}

/// The same on private memory, which no other wave accesses.
pub(super) fn update_private(
    w: &mut Wave,
    l: usize,
    address: u64,
    operation: AtomicOperation,
    [data, second]: [u64; 2],
) -> Result<u64, Stopped> {
    let wide = operation.1.registers() == 2;
    let mut old = u64::from(private::load(w, l, address, 4)?);
    if wide {
        old |= u64::from(private::load(w, l, address + 4, 4)?) << 32;
    }
    let new = atomic::apply(operation, old, data, second)?;
    private::store(w, l, address, 4, new as u32)?;
    if wide {
        private::store(w, l, address + 4, 4, (new >> 32) as u32)?;
    }
    Ok(old)
}
