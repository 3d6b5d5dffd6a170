//! The independent oracle: instructions are executed several times with other junk in the undefined bits, and
//! what is called defined may not change. And cases in which values that are undefined in part must not
//! count.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::codegen::isa::{Arch, Inst, Modifiers, Opcode, Operand, Unit, check, encode};

use super::super::super::execute::{self, ExecutionContext, Lds};
use super::super::super::memory::{DeviceAllocation, DeviceMemory};
use super::super::super::program::Program;
use super::super::super::register_bits::{FIRST_VECTOR, SCC};
use super::super::super::wave::{EXEC as EXEC_PAIR, LANES, VectorRow, Wave};
use super::super::facts::InstructionFacts;
use super::super::registers::RegisterShadow;
use super::rules::{DefinednessMethod, way};
use super::{Executed, Undefined, propagate};
use corpus::corpus;

#[path = "../../../../../tests/common/corpus.rs"]
mod corpus;

/// Executions with other junk.
const VARIANTS: usize = 3;
/// Of so many instructions of the corpus one is looked at.
const ONE_OF: usize = 3;

/// An instruction by itself, with a wave and the definedness of its registers.
struct Trial {
    program: Program,
    facts: InstructionFacts,
    arch: Arch,
    wave: Wave,
    registers: RegisterShadow,
}

impl Trial {
    fn new(inst: Inst, arch: Arch) -> Trial {
        let mut words = Vec::new();
        encode(&inst, arch, &mut words).unwrap_or_else(|error| panic!("{inst}: {error}"));
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let program = Program::new(&bytes, arch, 0x1000, &[0]);
        let mut wave = Wave::new();
        wave.reset(&program, 0);
        wave.mode = 0x3f0;
        wave.set_pair(EXEC_PAIR, u64::MAX);
        let mut registers = RegisterShadow::new();
        registers.define_vectors();
        (0..128).for_each(|number| registers.define(number));
        registers.define(SCC);
        Trial { program, facts: InstructionFacts::of(inst, arch), arch, wave, registers }
    }

    fn row(&self, number: u32) -> usize {
        match number {
            512.. => number as usize - 512 + self.program.vgprs(),
            _ => number as usize - 256,
        }
    }

    fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.facts.uses.all.iter().flat_map(|r| r.first..r.end).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Definedness after the instruction, and what was found.
    fn judge(&mut self) -> Vec<Undefined> {
        let mut found = Vec::new();
        let executed =
            Executed { facts: &self.facts, step: &self.program.steps[0], number: 0, arch: self.arch };
        propagate(executed, &self.wave, &mut self.registers, &mut found);
        found
    }

    /// A wave after the instruction; none if the simulator does not know this form.
    fn execute(&self, mut wave: Wave) -> Option<Wave> {
        let (memory, extra): (_, [DeviceAllocation; 0]) = (DeviceMemory::new(), []);
        let (view, mut lds, mut caches) = (memory.view(&extra), Lds::default(), Default::default());
        let context = &mut ExecutionContext {
            program: &self.program,
            memory: &view,
            lds: &mut lds,
            caches: &mut caches,
            budget: 1,
        };
        execute::one(&mut wave, context, &self.program.steps[0]).ok().map(|_| wave)
    }

    /// Bits in which two waves differ, by register.
    fn differing(&self, a: &Wave, b: &Wave, number: u32) -> VectorRow {
        match number {
            FIRST_VECTOR.. => {
                let row = self.row(number);
                std::array::from_fn(|l| a.rows[row][l] ^ b.rows[row][l])
            }
            SCC => [u32::from(a.scc != b.scc); LANES],
            _ => [a.s[number as usize] ^ b.s[number as usize]; LANES],
        }
    }

    fn undefined(&self, number: u32) -> VectorRow {
        match number {
            FIRST_VECTOR.. => self.registers.undefined_bits(number),
            SCC => [u32::from(!self.registers.scc()); LANES],
            _ => [!self.registers.scalar(number); LANES],
        }
    }
}

/// Undefined bits as they come: none, all, halves, bytes, single ones.
fn some_bits(rng: &mut StdRng) -> u32 {
    match rng.random_range(0..10) {
        0..4 => 0,
        4 => u32::MAX,
        5 => 0xffff << (16 * rng.random_range(0..2)),
        6 => 0xff << (8 * rng.random_range(0..4)),
        7 => 1 << rng.random_range(0..32),
        8 => u32::MAX << rng.random_range(0..32),
        _ => rng.random(),
    }
}

fn some_value(rng: &mut StdRng) -> u32 {
    match rng.random_range(0..4) {
        0 => rng.random_range(0..64),
        1 => [0, u32::MAX, 0x3f80_0000, 0x8000_0000, 0x3c00_3c00][rng.random_range(0..5)],
        _ => rng.random(),
    }
}

/// Values and undefined bits for everything that the instruction touches.
fn fill(trial: &mut Trial, rng: &mut StdRng) {
    let exec = if rng.random() { u64::MAX } else { rng.random() };
    trial.wave.set_pair(EXEC_PAIR, exec);
    trial.wave.mode = [0x3f0, 0x300, 0x2c0, 0xf | 1 << 23][rng.random_range(0..4)];
    trial.wave.scc = rng.random();
    for number in trial.numbers() {
        match number {
            FIRST_VECTOR.. => {
                let row = trial.row(number);
                let one = some_bits(rng);
                let each = rng.random_range(0..3);
                let bits: VectorRow = std::array::from_fn(|_| match each {
                    0 => one,
                    _ => some_bits(rng),
                });
                trial.wave.rows[row] = std::array::from_fn(|_| some_value(rng));
                trial.registers.write_bits(number, u64::MAX, &bits);
            }
            SCC => trial.registers.set_scc(rng.random()),
            126 | 127 => {}
            _ => {
                trial.wave.s[number as usize] = some_value(rng);
                trial.registers.set_scalar(number, !some_bits(rng));
            }
        }
    }
}

/// The same wave with other junk where nothing is defined.
fn with_junk(trial: &Trial, rng: &mut StdRng) -> Wave {
    let mut wave = trial.wave.clone();
    for number in trial.numbers() {
        let undefined = trial.undefined(number);
        match number {
            FIRST_VECTOR.. => {
                let row = trial.row(number);
                for (value, undefined) in wave.rows[row].iter_mut().zip(undefined) {
                    *value ^= undefined & rng.random::<u32>();
                }
            }
            SCC => wave.scc ^= undefined[0] != 0 && rng.random(),
            _ => wave.s[number as usize] ^= undefined[0] & rng.random::<u32>(),
        }
    }
    wave
}

fn is_followed(inst: &Inst) -> bool {
    let info = inst.op.info();
    let followed = !matches!(
        way(info.meaning),
        DefinednessMethod::Memory | DefinednessMethod::Decides | DefinednessMethod::Defined
    );
    followed && !matches!(info.unit, Unit::Branch | Unit::Wait)
}

/// Some instruction of the corpus, perhaps with one register twice.
fn variation(inst: Inst, arch: Arch, rng: &mut StdRng) -> Inst {
    let mut other = inst;
    if rng.random_range(0..4) == 0 {
        other.operands[2] = other.operands[1];
    }
    let legal = |inst: &Inst| {
        let mut words = Vec::new();
        check(inst, arch).is_ok() && encode(inst, arch, &mut words).is_ok()
    };
    if legal(&other) { other } else { inst }
}

#[test]
fn what_is_called_defined_does_not_depend_on_junk() {
    let mut rng = StdRng::seed_from_u64(13);
    let (mut tried, mut faults) = (0, Vec::new());
    for arch in [Arch::Gfx906, Arch::Gfx90a, Arch::Gfx942, Arch::Gfx950] {
        for (index, inst) in corpus(arch, |_| true).into_iter().filter(is_followed).enumerate() {
            if index % ONE_OF != 0 {
                continue;
            }
            let mut trial = Trial::new(variation(inst, arch, &mut rng), arch);
            if matches!(trial.program.steps[0].action, super::super::super::program::Action::Unsupported(_)) {
                continue;
            }
            fill(&mut trial, &mut rng);
            tried += 1;
            let waves: Vec<Wave> = (0..VARIANTS).map(|_| with_junk(&trial, &mut rng)).collect();
            if !trial.judge().is_empty() {
                continue;
            }
            let Some(first) = trial.execute(trial.wave.clone()) else { continue };
            for wave in waves {
                let Some(other) = trial.execute(wave) else { continue };
                for number in trial.numbers() {
                    let (differing, undefined) =
                        (trial.differing(&first, &other, number), trial.undefined(number));
                    let wrong = (0..LANES).find(|&l| differing[l] & !undefined[l] != 0);
                    faults.extend(wrong.map(|l| {
                        let inst = trial.facts.inst.as_ref().expect("it has one");
                        let (name, differing, undefined) =
                            (super::super::facts::name(number), differing[l], undefined[l]);
                        format!(
                            "{arch}: {inst}: {name} lane {l}: {differing:#x} differ, {undefined:#x} undefined"
                        )
                    }));
                }
            }
        }
    }
    // One of each kind.
    faults.dedup_by_key(|fault: &mut String| fault.split(' ').nth(1).map(str::to_owned));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults[..faults.len().min(60)].join("\n"));
    assert!(tried > 5_000, "{tried}");
}

fn v(n: u32) -> Operand {
    Operand::vgpr(n)
}

/// Undefined bits of v0 and v1 after an instruction on registers of which `undefined` says the undefined
/// bits.
fn result(inst: Inst, values: &[(u32, u32)], undefined: &[(u32, u32)]) -> [u32; 2] {
    let mut trial = Trial::new(inst, Arch::Gfx942);
    trial.wave.rows.resize(32, [0; LANES]);
    values.iter().for_each(|&(n, value)| trial.wave.rows[n as usize] = [value; LANES]);
    undefined.iter().for_each(|&(n, bits)| trial.registers.write_bits(256 + n, u64::MAX, &[bits; LANES]));
    assert!(trial.judge().is_empty());
    [256, 257].map(|n| trial.registers.undefined_bits_of(n, 5))
}

const ALL: u32 = u32::MAX;

#[test]
fn bits_that_do_not_count_leave_the_result_defined() {
    use Opcode::*;
    let op = |op, operands: &[Operand]| Inst::new(op, operands);
    let int = |n: i32| Operand::inline_integer(n).expect("a small number");
    let none = Modifiers::new();
    // The high half of a 64-bit addend.
    for mad in [VMadU64U32, VMadI64I32] {
        let inst = op(mad, &[v(0), Operand::VCC, v(2), v(3), v(4)]);
        assert_eq!(result(inst, &[(2, 7), (3, 9)], &[(5, ALL)]), [0, ALL]);
        assert_eq!(result(inst, &[(2, 7), (3, 9)], &[(4, ALL)]), [ALL, 1], "no more than a carry");
        assert_eq!(result(inst, &[(2, 7), (3, 9)], &[(2, 1 << 31)])[0], 1 << 31);
    }
    // Packed f32 that takes the low register twice.
    let packed = op(VPkMulF32, &[v(0), v(2), v(4)]).modifiers(none.op_sel_hi_flip(0b10));
    assert_eq!(result(packed, &[], &[(5, ALL)]), [0, 0]);
    assert_eq!(result(packed, &[], &[(4, 1)]), [ALL, ALL]);
    assert_eq!(result(op(VPkMulF32, &[v(0), v(2), v(4)]), &[], &[(5, 1)]), [0, ALL]);
    // One half of 64-bit shifts and sums.
    assert_eq!(result(op(VLshlrevB64, &[v(0), int(8), v(2)]), &[], &[(3, ALL)]), [0, ALL << 8]);
    assert_eq!(result(op(VLshlrevB64, &[v(0), int(8), v(2)]), &[], &[(2, ALL)]), [ALL << 8, 0xff]);
    assert_eq!(result(op(VLshrrevB64, &[v(0), int(32), v(2)]), &[], &[(2, ALL)]), [0, 0]);
    assert_eq!(result(op(VLshrrevB64, &[v(0), v(6), v(2)]), &[(2, 1)], &[(6, 1)]), [ALL, ALL]);
    assert_eq!(result(op(VLshrrevB64, &[v(0), v(6), v(2)]), &[(2, 1)], &[(6, 64)]), [0, 0]);
    let sum = op(VLshlAddU64, &[v(0), v(2), int(2), v(4)]);
    assert_eq!(result(sum, &[], &[(3, ALL)]), [0, ALL << 2]);
    // Carries stop at zeros.
    let add = op(VAddU32, &[v(0), v(2), v(3)]);
    assert_eq!(result(add, &[], &[(2, 0xff)])[0], 0xff);
    assert_eq!(result(add, &[(3, 1)], &[(2, 0xff)])[0], 0x1ff);
    // What a known bit decides.
    assert_eq!(result(op(VAndB32, &[v(0), v(2), v(3)]), &[(3, 0xff)], &[(2, ALL)])[0], 0xff);
    assert_eq!(result(op(VAndB32, &[v(0), int(0), v(3)]), &[], &[(3, ALL)])[0], 0);
    assert_eq!(result(op(VOrB32, &[v(0), v(2), v(3)]), &[(3, !0xff)], &[(2, ALL)])[0], 0xff);
    assert_eq!(result(op(VXorB32, &[v(0), v(2), v(2)]), &[], &[(2, ALL)])[0], 0);
    assert_eq!(result(op(VXorB32, &[v(0), v(2), v(3)]), &[], &[(2, 5)])[0], 5);
    // Bytes and bits in other places.
    let permute = op(VPermB32, &[v(0), v(2), v(3), v(4)]);
    assert_eq!(result(permute, &[(4, 0x0c00_0504)], &[(3, ALL)])[0], 0xff << 16);
    assert_eq!(result(permute, &[(4, 0x0c00_0504)], &[(2, 0x100)])[0], 0xff00 & 0x100);
    assert_eq!(result(permute, &[(4, 0x0c00_0504)], &[(4, 0x10)])[0], 0xff);
    let insert = op(VBfiB32, &[v(0), v(2), v(3), v(4)]);
    assert_eq!(result(insert, &[(2, 0xffff)], &[(3, ALL << 16), (4, 0xffff)])[0], 0);
    assert_eq!(result(insert, &[(2, 0xffff)], &[(3, ALL), (4, ALL)])[0], ALL);
    assert_eq!(result(insert, &[(2, 0xffff), (3, 3), (4, 1)], &[(2, ALL)])[0], 2);
    let align = op(VAlignbitB32, &[v(0), v(2), v(3), int(16)]);
    assert_eq!(result(align, &[], &[(2, ALL << 16), (3, 0xffff)])[0], 0);
    assert_eq!(result(align, &[], &[(2, 1), (3, 1 << 16)])[0], 1 << 16 | 1);
    let extract = op(VBfeU32, &[v(0), v(2), int(8), int(8)]);
    assert_eq!(result(extract, &[], &[(2, !0xff00)])[0], 0);
    assert_eq!(result(extract, &[], &[(2, 0x100)])[0], 1);
    // Halves and bytes.
    let half = op(VCvtF32F16, &[v(0), v(2)]);
    assert_eq!(result(half, &[], &[(2, ALL << 16)])[0], 0);
    assert_eq!(result(half, &[], &[(2, 1)])[0], ALL);
    assert_eq!(result(op(VCvtF32Ubyte1, &[v(0), v(2)]), &[], &[(2, !0xff00)])[0], 0);
    // The part of a register that an instruction keeps.
    let fp8 = op(VCvtPkFp8F32, &[v(0), v(2), v(3)]);
    assert_eq!(result(fp8, &[], &[(0, ALL)])[0], ALL << 16);
    assert_eq!(result(fp8.modifiers(none.op_sel(8)), &[], &[(0, ALL << 16)])[0], 0);
    assert_eq!(result(fp8, &[], &[(3, 1)])[0], 0xff00);
    // Float arithmetic needs all bits.
    assert_eq!(result(op(VAddF32, &[v(0), v(2), v(3)]), &[], &[(3, 1)])[0], ALL);
    assert_eq!(result(op(VMulLoU32, &[v(0), v(2), v(3)]), &[(3, 16)], &[(2, ALL << 8)])[0], ALL << 12);
    assert_eq!(result(op(VMulLoU32, &[v(0), int(0), v(3)]), &[], &[(3, ALL)])[0], 0);
}

#[test]
fn every_row_has_a_way_that_fits_its_unit() {
    for &op in Opcode::ALL {
        let info = op.info();
        let way = way(info.meaning);
        let fits = match info.unit {
            Unit::Valu | Unit::Trans => {
                matches!(
                    way,
                    DefinednessMethod::Values
                        | DefinednessMethod::Lanes
                        | DefinednessMethod::Mask
                        | DefinednessMethod::Carries
                        | DefinednessMethod::Selection
                        | DefinednessMethod::Moves
                ) || way == DefinednessMethod::Defined && info.operands.is_empty()
            }
            Unit::Mfma(_) => way == DefinednessMethod::Matrix,
            Unit::Salu => matches!(
                way,
                DefinednessMethod::Scalars | DefinednessMethod::Decides | DefinednessMethod::Defined
            ),
            Unit::Branch => matches!(way, DefinednessMethod::Decides | DefinednessMethod::Defined),
            Unit::Vmem | Unit::Flat | Unit::Smem | Unit::Lds => {
                matches!(way, DefinednessMethod::Memory | DefinednessMethod::Defined)
            }
            Unit::Barrier | Unit::Wait | Unit::Nop | Unit::Other => way == DefinednessMethod::Defined,
        };
        assert!(fits, "{op:?} is {way:?}");
        // Whatever reads registers and writes some is followed.
        let reads = info.operands.iter().any(|spec| spec.role != crate::codegen::isa::Role::Def);
        let writes = info.operands.iter().any(|spec| spec.role != crate::codegen::isa::Role::Use);
        assert!(!(reads && writes && way == DefinednessMethod::Defined), "{op:?} is not followed");
    }
}

#[test]
fn a_bitwise_result_is_defined_if_it_is_the_same_for_all_undefined_bits() {
    use super::known::KnownBits;
    let bits: Vec<KnownBits> =
        [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(value, undefined)| KnownBits { value, undefined }).to_vec();
    for table in 0..=u8::MAX {
        for (i, a) in bits.iter().enumerate() {
            for b in &bits {
                for c in &bits {
                    let names = if i % 2 == 0 && a == b { [0, 0, 2] } else { [0, 1, 2] };
                    let choices = |k: &KnownBits| if k.undefined == 0 { vec![k.value] } else { vec![0, 1] };
                    let mut results = Vec::new();
                    for x in choices(a) {
                        for y in if names[1] == 0 { vec![x] } else { choices(b) } {
                            results.extend(choices(c).iter().map(|z| table >> (4 * x + 2 * y + z) & 1));
                        }
                    }
                    let same = results.iter().all(|r| *r == results[0]);
                    let known = KnownBits::bit_by_bit(table, [*a, *b, *c], names);
                    assert_eq!(known.undefined & 1 == 0, same, "{table:#b} of {a:?}, {b:?}, {c:?}");
                }
            }
        }
    }
}
