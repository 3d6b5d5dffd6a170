//! Vector memory: loads, stores and atomics of buffer, global, flat and scratch instructions.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::codegen::isa::{Calc, Element, Memory};

use super::super::error::{Access, FaultKind, Stopped};
use super::super::memory::View;
use super::super::program::Step;
use super::super::wave::{EXEC, LANES, M0, PRIVATE_APERTURE, Row, SHARED_APERTURE, Wave};
use super::address::{Roles, Space, Targets, atomic_return_roles, load_roles, store_roles, targets};
use super::atomic;
use super::lds::{self, Lds};
use super::transfer::{merge_loaded, store_value};

/// Components of an access and the bytes of each.
pub(super) fn components(kind: Memory) -> (u8, u32) {
    match kind {
        Memory::Dwords(n) => (n, 4),
        _ => (1, kind.bytes()),
    }
}

#[cold]
fn outside(l: usize, access: Access, address: u64, bytes: u32) -> Stopped {
    Stopped::lane(l, FaultKind::Memory { access, address, bytes })
}

/// The words of all lanes' accesses of `count` dwords, and where each lane's begin, if all lanes are active, in range,
/// aligned and in one allocation: the fast path.
#[inline(always)]
fn together<'a>(
    w: &mut Wave,
    memory: &View<'a>,
    targets: &Targets,
    kind: Memory,
) -> Option<(&'a [AtomicU32], [usize; LANES], usize)> {
    let Memory::Dwords(count) = kind else { return None };
    if w.exec() != u64::MAX || targets.valid != [count; LANES] {
        return None;
    }
    let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
    for &address in &targets.address {
        (low, high, bits) = (low.min(address), high.max(address), bits | address);
    }
    let bytes = high.checked_sub(low)?.checked_add(4 * u64::from(count))?;
    let (allocation, offset) = memory.find(&mut w.hint, low, bytes)?;
    // Allocations are aligned, so an aligned address is an aligned offset.
    let words = &allocation.words()[(offset / 4) as usize..];
    (bits % 4 == 0).then(|| (words, targets.address.map(|a| ((a - low) / 4) as usize), count.into()))
}

/// Calls `f` for each space that a flat access touches, with EXEC reduced to its lanes and addresses made relative.
fn by_space(
    w: &mut Wave,
    mut all: Targets,
    mut f: impl FnMut(&mut Wave, &Targets, Option<&Row>) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    if all.space != Space::Flat {
        return f(w, &all, None);
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
        result = f(w, &all, Some(&low));
    }
    if private != 0 && result.is_ok() {
        w.set_pair(EXEC, private);
        let address = all.address.map(|a| a & 0xffff_ffff);
        result = f(w, &Targets { space: Space::Private, address, valid: all.valid }, None);
    }
    let device = exec & !shared & !private;
    if device != 0 && result.is_ok() {
        w.set_pair(EXEC, device);
        all.space = Space::Device;
        result = f(w, &all, None);
    }
    w.set_pair(EXEC, exec);
    result
}

/// Loads into the registers of operand 0.
pub(super) fn load(
    w: &mut Wave,
    memory: &View<'_>,
    lds: &Lds,
    s: &Step,
    kind: Memory,
) -> Result<(), Stopped> {
    let Some(first) = s.operands[0].row() else { return Ok(()) };
    let (count, bytes) = components(kind);
    let all = targets(w, s, &load_roles(s.format), count, bytes)?;
    by_space(w, all, |w, targets, shared| match (shared, targets.space) {
        (Some(addresses), _) => lds::load(w, lds, s, kind, addresses),
        (None, Space::Private) => w.each_lane(|w, l| {
            for index in 0..usize::from(count) {
                let value = private_load(w, l, targets.address[l] + 4 * index as u64, bytes)?;
                let register = &mut w.rows[first + index][l];
                *register = merge_loaded(kind, *register, value);
            }
            Ok(())
        }),
        _ => load_device(w, memory, first, kind, targets),
    })
}

fn load_device(
    w: &mut Wave,
    memory: &View<'_>,
    first: usize,
    kind: Memory,
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
            .ok_or_else(|| outside(l, Access::Load, address, size))?;
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

/// Stores.
pub(super) fn store(
    w: &mut Wave,
    memory: &View<'_>,
    lds: &mut Lds,
    s: &Step,
    kind: Memory,
) -> Result<(), Stopped> {
    let roles = store_roles(s.format);
    let Some(first) = s.operands[roles.data].row() else { return Ok(()) };
    let (count, bytes) = components(kind);
    let all = targets(w, s, &roles, count, bytes)?;
    by_space(w, all, |w, targets, shared| match (shared, targets.space) {
        (Some(addresses), _) => lds::store(w, lds, s, roles.data, kind, addresses),
        (None, Space::Private) => w.each_lane(|w, l| {
            for index in 0..usize::from(count) {
                let value = store_value(kind, w.rows[first + index][l]);
                private_store(w, l, targets.address[l] + 4 * index as u64, bytes, value)?;
            }
            Ok(())
        }),
        _ => store_device(w, memory, first, kind, targets),
    })
}

fn store_device(
    w: &mut Wave,
    memory: &View<'_>,
    first: usize,
    kind: Memory,
    targets: &Targets,
) -> Result<(), Stopped> {
    if let Some((words, starts, count)) = together(w, memory, targets, kind) {
        // Lane by lane: where lanes store to one place the last one wins, dword by dword.
        for (l, start) in starts.into_iter().enumerate() {
            for (word, row) in words[start..start + count].iter().zip(&w.rows[first..]) {
                word.store(row[l], Relaxed);
            }
        }
        return Ok(());
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
            .ok_or_else(|| outside(l, Access::Store, address, size))?;
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

/// Loads from a buffer into LDS: lane l goes to M0 + instruction offset + 4 l (CDNA3 ISA guide, "Memory buffer load to
/// LDS").
pub(super) fn load_to_lds(
    w: &mut Wave,
    memory: &View<'_>,
    lds: &mut Lds,
    s: &Step,
    kind: Memory,
) -> Result<(), Stopped> {
    let (count, bytes) = components(kind);
    if count > 1 {
        return Err(Stopped::wave(FaultKind::Unsupported("loads to LDS of more than a dword")));
    }
    let targets = targets(w, s, &load_roles(s.format), count, bytes)?;
    let mut values = [0; LANES];
    let mut hint = w.hint;
    w.each_lane(|_, l| {
        if targets.valid[l] != 0 {
            let address = targets.address[l];
            let (allocation, offset) = memory
                .find(&mut hint, address, bytes.into())
                .ok_or_else(|| outside(l, Access::Load, address, bytes))?;
            values[l] = merge_loaded(kind, 0, allocation.load(offset, bytes));
        }
        Ok(())
    })?;
    w.hint = hint;
    let base = (w.s[M0] & 0xffff) + s.imm;
    lds::store_loaded(w, lds, base, &values)
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
    memory: &View<'_>,
    lds: &mut Lds,
    s: &Step,
    operation: (Calc, Element),
    returns: Returns,
) -> Result<(), Stopped> {
    let roles: Roles = match returns {
        Returns::Nothing => store_roles(s.format),
        Returns::Former => atomic_return_roles(s.format),
    };
    let Some(data) = s.operands[roles.data].row() else { return Ok(()) };
    let result = if returns == Returns::Former { s.operands[0].row() } else { None };
    let (calc, element) = operation;
    let wide = element.registers() == 2;
    let bytes = if wide { 8 } else { 4 };
    let all = targets(w, s, &roles, 1, bytes)?;
    by_space(w, all, |w, targets, shared| {
        if let Some(addresses) = shared {
            return lds::atomic(w, lds, operation, data, result, addresses);
        }
        if targets.space == Space::Private {
            return Err(Stopped::wave(FaultKind::Unsupported("atomics on private memory")));
        }
        let mut hint = w.hint;
        w.each_lane(|w, l| {
            let address = targets.address[l];
            if targets.valid[l] == 0 {
                if let Some(row) = result {
                    atomic::put(w, row, l, wide, 0);
                }
                return Ok(());
            }
            let (allocation, offset) = memory
                .find(&mut hint, address, bytes.into())
                .ok_or_else(|| outside(l, Access::Atomic, address, bytes))?;
            if address % u64::from(bytes) != 0 {
                return Err(Stopped::lane(l, FaultKind::Misaligned { address }));
            }
            let operand = atomic::operand(w, data, l, wide);
            // Once outside the update, which may run several times and cannot fail.
            atomic::apply(calc, element, 0, operand)?;
            let apply = |old: u64| atomic::apply(calc, element, old, operand).unwrap_or(old);
            let index = (offset / 4) as usize;
            let old = if wide {
                memory.update_wide(allocation, index, apply)
            } else {
                allocation.update(index, |old| apply(old.into()) as u32).into()
            };
            if let Some(row) = result {
                atomic::put(w, row, l, wide, old);
            }
            Ok(())
        })?;
        w.hint = hint;
        Ok(())
    })
}

/// Index of the word of lane `l` that holds the byte, and the shift of the byte in it.
fn private_byte(w: &Wave, l: usize, address: u64) -> Option<(usize, u32)> {
    let word = address / 4;
    let inside = word < u64::from(w.private_words);
    inside.then(|| (l * w.private_words as usize + word as usize, (address % 4 * 8) as u32))
}

fn private_load(w: &Wave, l: usize, address: u64, bytes: u32) -> Result<u32, Stopped> {
    let mut value = 0;
    for byte in 0..bytes {
        let (index, shift) = private_byte(w, l, address + u64::from(byte))
            .ok_or_else(|| outside(l, Access::Load, address, bytes))?;
        value |= (w.private[index] >> shift & 0xff) << (8 * byte);
    }
    Ok(value)
}

fn private_store(w: &mut Wave, l: usize, address: u64, bytes: u32, value: u32) -> Result<(), Stopped> {
    for byte in 0..bytes {
        let (index, shift) = private_byte(w, l, address + u64::from(byte))
            .ok_or_else(|| outside(l, Access::Store, address, bytes))?;
        w.private[index] = w.private[index] & !(0xff << shift) | (value >> (8 * byte) & 0xff) << shift;
    }
    Ok(())
}
