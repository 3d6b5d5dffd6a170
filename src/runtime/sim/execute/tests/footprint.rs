//! Footprints and execution agree: an instruction changes no byte outside its stores, and its results follow
//! from the bytes of its loads alone. And what the instruction table says of an instruction's effect is what
//! its footprints do. Every memory instruction of every chip, with random addresses.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::codegen::isa::{
    Arch, Effect, Field, Format, Inst, Meaning, Modifiers, Opcode, Operand, OperandClass, Unit, encode,
};

use super::super::super::error::{FaultKind, MemoryAccess, Stopped};
use super::super::super::program::Action;
use super::super::super::wave::{EXEC, LANES, M0, PRIVATE_APERTURE, SHARED_APERTURE};
use super::super::footprint::{Footprint, MemorySpace, footprints};
use super::super::private::{FLAT_SCRATCH, SCRATCH_WINDOW, private_descriptor};
use super::{Machine, int, s, v};

const DEVICE_BYTES: usize = 8192;
const LDS_BYTES: usize = 4096;
const PRIVATE_WORDS: u32 = 32;

/// Everything that memory instructions can touch, byte by byte.
#[derive(Clone, PartialEq)]
struct Bytes {
    device: Vec<u8>,
    lds: Vec<u8>,
    private: Vec<u8>,
}

impl Bytes {
    fn random(rng: &mut StdRng) -> Bytes {
        let mut bytes = |count: usize| (0..count).map(|_| rng.random()).collect();
        let private = 4 * PRIVATE_WORDS as usize * LANES;
        Bytes { device: bytes(DEVICE_BYTES), lds: bytes(LDS_BYTES), private: bytes(private) }
    }

    fn of(m: &Machine, base: u64) -> Bytes {
        let mut device = vec![0; DEVICE_BYTES];
        m.memory.read(base, &mut device).expect("the allocation");
        let lds = (0..LDS_BYTES as u32).map(|at| m.lds.load(at, 1) as u8).collect();
        let private = m.wave.private.iter().flat_map(|word| word.to_le_bytes()).collect();
        Bytes { device, lds, private }
    }

    fn put(&self, m: &mut Machine, base: u64) {
        m.memory.write(base, &self.device).expect("the allocation");
        (0..).zip(&self.lds).for_each(|(at, &byte)| m.lds.store(at, 1, byte.into()));
        let words = self.private.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        m.wave.private = words.collect();
    }

    fn pieces(&mut self) -> [&mut Vec<u8>; 3] {
        [&mut self.device, &mut self.lds, &mut self.private]
    }
}

/// Which bytes footprints of these ways name.
fn named(found: &[Footprint], ways: [MemoryAccess; 2], base: u64) -> [Vec<bool>; 3] {
    let private_bytes = 4 * PRIVATE_WORDS as usize;
    let mut named = [vec![false; DEVICE_BYTES], vec![false; LDS_BYTES], vec![false; private_bytes * LANES]];
    for footprint in found.iter().filter(|f| ways.contains(&f.access)) {
        for lane in (0..LANES).filter(|lane| footprint.lanes >> lane & 1 != 0) {
            let (piece, start) = match footprint.space {
                MemorySpace::Device => (0, footprint.address[lane].wrapping_sub(base) as usize),
                MemorySpace::Lds => (1, footprint.address[lane] as usize),
                MemorySpace::Private => (2, lane * private_bytes + footprint.address[lane] as usize),
            };
            let end = start.saturating_add(footprint.bytes[lane].into());
            if let Some(bytes) = named[piece].get_mut(start..end) {
                bytes.fill(true);
            }
        }
    }
    named
}

/// An instruction of this row that the chip encodes.
fn instruction(op: Opcode, arch: Arch, rng: &mut StdRng) -> Inst {
    let info = op.info();
    let is_lds = info.format.is_ds();
    let mut inst = Inst::new(op, &[]);
    let mut modifiers = Modifiers::new();
    if info.format.is_mubuf() {
        modifiers = if rng.random() { modifiers.offen() } else { modifiers };
        modifiers = if rng.random() { modifiers.idxen() } else { modifiers };
    } else if info.is_scalar_atomic() && rng.random() {
        modifiers = modifiers.sc0();
    }
    if modifiers.within(info.modifiers_on(arch, modifiers)) {
        inst.modifiers = modifiers;
    }
    let has_base = rng.random::<bool>();
    let mut data = 8;
    for (index, spec) in info.operands.iter().enumerate() {
        inst.operands[index] = match (spec.class, spec.field) {
            (OperandClass::Vgpr, Field::Addr) => v(2),
            (OperandClass::Vgpr | OperandClass::VgprOrAgpr, _) => {
                data += 8;
                v(data - 8)
            }
            (OperandClass::BufferAddress, _) => {
                let is_there = inst.modifiers.has_offen() || inst.modifiers.has_idxen();
                if is_there { v(4) } else { Operand::NONE }
            }
            (OperandClass::GlobalAddress, _) => {
                if has_base {
                    v(4)
                } else {
                    v(2)
                }
            }
            (OperandClass::ScratchAddress, _) => {
                if has_base {
                    Operand::NONE
                } else {
                    v(4)
                }
            }
            (OperandClass::ScalarBase, _) => {
                let small = info.format == Format::Scratch || info.format == Format::ScratchLds;
                if has_base { s(if small { 30 } else { 8 }) } else { Operand::NONE }
            }
            (OperandClass::ScalarOffset, _) => {
                if has_base {
                    s(30)
                } else {
                    Operand::NONE
                }
            }
            (OperandClass::ScalarInline, _) => {
                if has_base {
                    s(30)
                } else {
                    int(0)
                }
            }
            (_, Field::Base) => {
                if spec.width == 4 {
                    s(4)
                } else {
                    s(8)
                }
            }
            _ => s(40),
        };
    }
    inst.imm = match info.format {
        _ if !info.takes_immediate() => 0,
        // Two offsets, and the distance of two places.
        Format::Ds => match info.meaning {
            Meaning::LoadTwo(..) | Meaning::StoreTwo(..) | Meaning::ExchangeTwo(..) => {
                rng.random_range(0..4) | rng.random_range(0..4) << 8
            }
            Meaning::AtomicFromLds(..) | Meaning::StoreFromLds(_) => rng.random_range(0..8) * 2,
            _ => rng.random_range(0..16) * 8,
        },
        _ => rng.random_range(0..8) * 8,
    };
    if is_lds && info.takes_immediate() && matches!(info.meaning, Meaning::CountLanes(_)) {
        inst.imm &= !3;
    }
    inst
}

/// Registers whose addresses are mostly inside.
fn prepare(m: &mut Machine, op: Opcode, base: u64, rng: &mut StdRng) {
    for row in &mut m.wave.rows {
        rng.fill(&mut row[..]);
    }
    rng.fill(&mut m.wave.s[..106]);
    m.wave.set_pair(FLAT_SCRATCH, SCRATCH_WINDOW);
    m.wave.s[M0] = rng.random_range(0..64) * 8;
    let exec = if rng.random_range(0..3) == 0 { rng.random() } else { u64::MAX };
    m.wave.set_pair(EXEC, exec);
    let step = [1, 4, 8, 16][rng.random_range(0..4)];
    // Few places, so that lanes meet.
    let apart = rng.random_range(1..120u32);
    let info = op.info();
    for l in 0..LANES {
        let small = rng.random_range(0..apart) * step;
        let address = match info.format {
            _ if info.format.is_ds() => u64::from(small),
            Format::Flat | Format::FlatRtn => match l % 3 {
                0 => base + u64::from(small),
                1 => u64::from(SHARED_APERTURE) << 32 | u64::from(small),
                _ => u64::from(PRIVATE_APERTURE) << 32 | u64::from((small % 48) & !7),
            },
            _ => base + u64::from(small),
        };
        [m.wave.rows[2][l], m.wave.rows[3][l]] = [address as u32, (address >> 32) as u32];
        let is_scratch = matches!(info.format, Format::Scratch | Format::ScratchLds);
        m.wave.rows[4][l] = if is_scratch { small % 32 } else { small };
        m.wave.rows[5][l] = rng.random_range(0..20) * 4;
    }
    let records = rng.random_range(0..4096);
    let stride = if rng.random() { 0 } else { rng.random_range(0..16) * 4 };
    let format = rng.random_range(1..15) << 15 | [0, 4, 5, 7][rng.random_range(0..4)] << 12;
    let layout = rng.random_range(0..4) << 21 | rng.random_range(0..2) << 23;
    let swizzled = rng.random_range(0..2u32) << 31;
    let high = (base >> 32) as u32 | stride << 16 | swizzled;
    m.wave.s[4..8].copy_from_slice(&[base as u32, high, records, format | layout | 0xfac]);
    if rng.random_range(0..4) == 0 {
        m.wave.s[4..8].copy_from_slice(&private_descriptor(SCRATCH_WINDOW));
        m.wave.rows[4] = std::array::from_fn(|_| rng.random_range(0..14) * 4);
        m.wave.rows[5] = m.wave.rows[4];
    }
    m.wave.set_pair(8, base);
    m.wave.s[30] = rng.random_range(0..4) * 16;
    let is_window = info.format == Format::Smem && rng.random_range(0..4) == 0;
    if is_window {
        m.wave.set_pair(8, SCRATCH_WINDOW);
    }
}

fn is_memory(op: Opcode) -> bool {
    matches!(op.info().unit, Unit::Smem | Unit::Lds | Unit::Vmem | Unit::Flat)
}

/// Images are refused by name before they execute.
fn is_image(op: Opcode) -> bool {
    op.info().format == Format::Mimg
}

/// What footprints of a row did: loaded, stored, stored to LDS without being an LDS or flat instruction.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
struct Seen {
    load: bool,
    store: bool,
    to_lds: bool,
}

impl Seen {
    fn add(&mut self, op: Opcode, found: &[Footprint]) {
        for footprint in found.iter().filter(|f| f.lanes != 0) {
            self.load |= footprint.access != MemoryAccess::Store;
            self.store |= footprint.access != MemoryAccess::Load;
            let direct = op.info().unit == Unit::Vmem && footprint.space == MemorySpace::Lds;
            self.to_lds |= direct && footprint.access == MemoryAccess::Store;
        }
    }

    /// What the table says of a row.
    fn of(op: Opcode) -> Seen {
        let info = op.info();
        Seen { load: info.may_load(), store: info.may_store(), to_lds: info.may_store_to_lds() }
    }
}

#[test]
fn execution_stays_inside_the_footprint() {
    let mut rng = StdRng::seed_from_u64(3);
    let mut never = Vec::new();
    for arch in Arch::ALL {
        for &op in Opcode::ALL.iter().filter(|&&op| op.on(arch) && is_memory(op) && !is_image(op)) {
            let (mut times, mut seen) = (0, Seen::default());
            // Random addresses may fault, or be out of range; three that are neither are enough.
            for _ in 0..60 {
                if (times < 3 || seen != Seen::of(op)) && agree(op, arch, &mut rng, &mut seen) {
                    times += 1;
                }
            }
            if times == 0 {
                never.push(op.mnemonic());
            } else {
                assert_eq!(seen, Seen::of(op), "{op:?} on {arch}");
            }
        }
    }
    // What never finishes is an error by name.
    let is_of_dispatches = |name: &&str| name.starts_with("ds_gws") || *name == "ds_ordered_count";
    assert!(never.iter().all(is_of_dispatches), "{never:?}");
}

#[test]
fn nothing_but_memory_instructions_touches_memory() {
    for &op in Opcode::ALL {
        assert!(is_memory(op) || op.info().meaning.effect() == Effect::None, "{op:?}");
    }
}

/// Compares one random instance; true if it executed without a fault.
fn agree(op: Opcode, arch: Arch, rng: &mut StdRng, seen: &mut Seen) -> bool {
    let inst = instruction(op, arch, rng);
    let mut words = Vec::new();
    encode(&inst, arch, &mut words).unwrap_or_else(|error| panic!("{inst} on {arch}: {error}"));
    let mut m = Machine::on(arch);
    let base = m.memory.allocate(DEVICE_BYTES as u64).expect("small");
    let program = m.program(&words);
    assert!(matches!(program.steps[0].action, Action::Do(_)), "{inst} on {arch}");
    prepare(&mut m, op, base, rng);
    m.wave.private_words = PRIVATE_WORDS;
    let before = Bytes::random(rng);
    before.put(&mut m, base);
    let start = m.wave.clone();

    let mut found = Vec::new();
    let foretold = footprints(&m.wave, &program.steps[0], &mut found);
    m.wave.executed = 0;
    let executed = m.run_program(&program, 1).err().filter(|stopped| !is_end(stopped));
    if let Some(stopped) = executed {
        assert!(!matches!(stopped.kind, FaultKind::Undecodable), "{inst} on {arch}");
        return false;
    }
    foretold.unwrap_or_else(|stopped| panic!("{inst} on {arch}: {:?}", stopped.kind));
    seen.add(op, &found);
    let mut after = Bytes::of(&m, base);
    let mut old = before.clone();
    let stores = named(&found, [MemoryAccess::Store, MemoryAccess::Atomic], base);
    for ((new, old), stores) in after.pieces().into_iter().zip(old.pieces()).zip(&stores) {
        for (at, (new, old)) in new.iter().zip(old.iter()).enumerate() {
            assert!(new == old || stores[at], "{inst} on {arch} changes byte {at:#x}");
        }
    }

    // Again, where nothing is as it was but what the instruction loads.
    let loads = named(&found, [MemoryAccess::Load, MemoryAccess::Atomic], base);
    let mut other = Bytes::random(rng);
    let mut same = before.clone();
    for ((other, same), loads) in other.pieces().into_iter().zip(same.pieces()).zip(&loads) {
        for (at, (other, same)) in other.iter_mut().zip(same.iter()).enumerate() {
            *other = if loads[at] { *same } else { *other };
        }
    }
    let first = std::mem::replace(&mut m.wave, start);
    other.put(&mut m, base);
    m.wave.executed = 0;
    let again = m.run_program(&program, 1).err().filter(|stopped| !is_end(stopped));
    assert!(again.is_none(), "{inst} on {arch} faults the second time");
    assert!(first.rows == m.wave.rows && first.s == m.wave.s, "{inst} on {arch} loads what it does not name");
    true
}

/// The code has one instruction: running on is how it ends.
fn is_end(stopped: &Stopped) -> bool {
    matches!(stopped.kind, FaultKind::Budget(_) | FaultKind::ProgramCounter { .. })
}
