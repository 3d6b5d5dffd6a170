//! The judge of interleaving: each instruction still reads what the same instructions have written, and
//! memory is accessed in an order that changes nothing.

use std::collections::BTreeMap;

use super::super::access::{accesses, hidden_read, implicit_ranges, is_lds_dma};
use super::super::body::{InstId, MachineBody, MachineInst};
use super::MachineFault;
use crate::codegen::isa::{Effect, Inst, Meaning, Operand, Unit};
use cranelift_entity::EntityRef;

/// A 32-bit register: a number of the hardware, or a part of a virtual one.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum WrittenPlace {
    Hardware(u32),
    Virtual(u32, u32),
}

/// Faults of `after`, whose blocks have the instructions of those of `before` in another order.
pub fn check_order(before: &MachineBody, after: &MachineBody) -> Vec<MachineFault> {
    let mut faults = Vec::new();
    if before.blocks != after.blocks || before.registers != after.registers {
        faults.push(MachineFault::new(InstId::new(0), "blocks or registers are others than before"));
        return faults;
    }
    for (block, own) in before.blocks.iter() {
        let start = own.start.index();
        let (old, new) = (before.block(block), after.block(block));
        let Some(numbers) = numbers(old, new) else {
            faults.push(MachineFault::new(own.start, format!("{block} has other instructions than before")));
            continue;
        };
        let as_written: Vec<u32> = (0..old.len() as u32).collect();
        let expected = history(old, &as_written);
        let found = history(new, &numbers);
        let fault = |at: u32, what: &str| MachineFault::new(InstId::new(start + at as usize), what);
        for (at, (expected, found)) in expected.sources.iter().zip(&found.sources).enumerate() {
            if expected != found {
                faults.push(fault(at as u32, "reads what other instructions have written"));
            }
        }
        if expected.last != found.last {
            faults.push(fault(0, "leaves other values in registers"));
        }
        if expected.memory != found.memory {
            faults.push(fault(0, "accesses memory in another order"));
        }
    }
    faults
}

/// For each instruction of `new` its number in `old`, of equal ones the first that is left.
fn numbers(old: &[MachineInst], new: &[MachineInst]) -> Option<Vec<u32>> {
    let mut taken = vec![false; old.len()];
    let mut first = 0;
    let numbers = new.iter().map(|inst| {
        while first < old.len() && taken[first] {
            first += 1;
        }
        let at = (first..old.len()).find(|&at| !taken[at] && old[at] == *inst)?;
        taken[at] = true;
        Some(at as u32)
    });
    let numbers: Option<Vec<u32>> = numbers.collect();
    numbers.filter(|numbers| numbers.len() == old.len())
}

/// Effects of the instructions of a block, by their numbers in the order in which they were written.
struct History {
    /// For each, who wrote what it reads: nobody of the block, or an instruction.
    sources: Vec<Vec<Option<u32>>>,
    /// Who wrote each register last.
    last: BTreeMap<WrittenPlace, u32>,
    /// For each instruction that accesses memory or that others must not pass, the ones before it whose order
    /// matters.
    memory: BTreeMap<u32, Vec<u32>>,
}

fn history(insts: &[MachineInst], numbers: &[u32]) -> History {
    let mut history =
        History { sources: vec![Vec::new(); insts.len()], last: BTreeMap::new(), memory: BTreeMap::new() };
    for (at, (inst, &number)) in insts.iter().zip(numbers).enumerate() {
        let inst = &inst.inst;
        let sources =
            places(inst, false).into_iter().map(|place| history.last.get(&place).copied()).collect();
        history.sources[number as usize] = sources;
        for place in places(inst, true) {
            history.last.insert(place, number);
        }
        let conflicts = |(other, _): &(&MachineInst, &u32)| conflict(&other.inst, inst);
        let before = insts[..at].iter().zip(numbers).filter(conflicts);
        let mut before: Vec<u32> = before.map(|(_, &number)| number).collect();
        before.sort_unstable();
        history.memory.insert(number, before);
    }
    history
}

/// The registers that an instruction reads, or those that it writes.
fn places(inst: &Inst, writes: bool) -> Vec<WrittenPlace> {
    let info = inst.op.info();
    let implicit = implicit_ranges(if writes { info.writes } else { info.reads });
    let hidden = hidden_read(info).filter(|_| !writes);
    let mut places: Vec<WrittenPlace> = implicit
        .chain(hidden)
        .flat_map(|range| range.numbers())
        .map(|number| WrittenPlace::Hardware(number as u32))
        .collect();
    for access in accesses(inst).filter(|access| if writes { access.writes() } else { access.reads() }) {
        places.extend((0..access.width).filter_map(|part| place(access.operand, part)));
    }
    places
}

fn place(operand: Operand, part: u32) -> Option<WrittenPlace> {
    match operand.as_virtual() {
        Some((register, first)) => Some(WrittenPlace::Virtual(register.as_u32(), first + part)),
        None => operand.number().map(|number| WrittenPlace::Hardware(number + part)),
    }
}

/// True if two instructions must not change places for what they do to memory or to other waves.
fn conflict(one: &Inst, other: &Inst) -> bool {
    let [one, other] = [one, other].map(|inst| {
        let info = inst.op.info();
        let effect = info.meaning.effect();
        let is_fence = info.meaning == Meaning::SetHardwareRegister
            || matches!(
                info.unit,
                Unit::Branch | Unit::Barrier | Unit::Wait | Unit::Nop | Unit::Other | Unit::Flat | Unit::Smem
            );
        let in_memory = info.unit == Unit::Vmem;
        let in_lds = info.unit == Unit::Lds && effect != Effect::None || is_lds_dma(info);
        (is_fence, in_memory, in_lds, in_lds && effect == Effect::Load)
    });
    one.0 || other.0 || one.1 && other.1 || one.2 && other.2 && !(one.3 && other.3)
}

#[cfg(test)]
mod tests {
    use super::super::super::text;
    use super::*;

    /// Faults of a body whose second and third instruction change places.
    fn faults_of_a_swap(instructions: [&str; 3]) -> Vec<String> {
        let body = |order: [usize; 3]| {
            let lines: String = order.iter().map(|&at| format!("    {}\n", instructions[at])).collect();
            let mut body = text::parse(&format!("bb0:\n{lines}    s_endpgm\n")).expect("a body");
            // Lines of the text say where an instruction stands, and not where it comes from.
            body.insts.values_mut().for_each(|inst| inst.source = 0);
            body
        };
        let faults = check_order(&body([0, 1, 2]), &body([0, 2, 1]));
        faults.into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn an_order_that_changes_something_is_found() {
        let independent = ["v_mov_b32 v1, v0", "v_add_u32 v2, v1, v1", "v_add_u32 v3, v1, v1"];
        assert!(faults_of_a_swap(independent).is_empty());
        let reads = ["ds_read_b32 v1, v0", "ds_read_b32 v2, v0", "ds_read_b32 v3, v0"];
        assert!(faults_of_a_swap(reads).is_empty());
        for swapped in [
            // A result before it is there, one that others still read, and two of one register.
            ["v_mov_b32 v1, v0", "v_mov_b32 v2, v0", "v_add_u32 v3, v2, v1"],
            ["v_mov_b32 v1, v0", "v_add_u32 v2, v1, v1", "v_mov_b32 v1, 0"],
            ["v_mov_b32 v2, v0", "v_mov_b32 v1, v0", "v_mov_b32 v1, 0"],
            // What nobody names, memory, and barriers.
            ["s_mov_b32 s2, 0", "s_cmp_eq_u32 s0, s1", "s_addc_u32 s2, s2, 0"],
            ["v_mov_b32 v1, v0", "ds_read_b32 v2, v0", "ds_write_b32 v0, v1"],
            ["v_mov_b32 v1, v0", "global_store_dword v0, v1, s[0:1]", "global_load_dword v2, v0, s[0:1]"],
            ["v_mov_b32 v1, v0", "s_barrier", "ds_read_b32 v2, v0"],
        ] {
            assert!(!faults_of_a_swap(swapped).is_empty(), "{swapped:?}");
        }
    }
}
