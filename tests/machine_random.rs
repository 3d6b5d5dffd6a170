//! Random machine bodies through all machine passes: what comes out must satisfy the machine verifier, and must not do so
//! any more when a wait or a nop is weakened.

use groundswell::codegen::isa::{
    Field, Implicit, Inst, Meaning, Modifiers, Opcode, Operand, OperandClass, OperandSpec, Role, Unit,
    WaitCounts,
};
use groundswell::codegen::machine::allocate::{Allocator, Limits};
use groundswell::codegen::machine::branches::{Code, drop_branches_to_next, encode_body};
use groundswell::codegen::machine::check::{
    Allocated, Fault, check_allocation, check_hazards, check_operands, check_waits,
};
use groundswell::codegen::machine::hazards::{HazardResolver, HazardTarget};
use groundswell::codegen::machine::waits::{BARRIER_WITHOUT_WAITS, WaitInserter};
use groundswell::codegen::machine::{Block, Body, MachineInst, RegisterFile, VirtualRegister, text};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const CASES: u64 = 300;

/// Vector registers of four widths, scalar ones of four, accumulation registers.
fn registers(rng: &mut StdRng) -> Vec<VirtualRegister> {
    let mut registers = Vec::new();
    let kinds: [(RegisterFile, &[u8], usize); 3] = [
        (RegisterFile::Vgpr, &[1, 1, 2, 2, 3, 4, 8, 16], 16),
        (RegisterFile::Sgpr, &[1, 1, 2, 2, 4, 8], 10),
        (RegisterFile::Agpr, &[1, 2, 4, 16], 6),
    ];
    for (file, widths, count) in kinds {
        // One of each width, so that every operand finds something.
        for &width in widths {
            registers.push(VirtualRegister { file, width });
        }
        for _ in 0..rng.random_range(0..count) {
            registers.push(VirtualRegister { file, width: *widths.choose(rng).unwrap() });
        }
    }
    registers
}

/// A part of some register of `file`, as wide as the operand; not of a register in `taken`.
fn pick(
    rng: &mut StdRng,
    registers: &[VirtualRegister],
    file: RegisterFile,
    width: u8,
    taken: &[u32],
) -> Option<Operand> {
    let fits = |(id, r): &(usize, &VirtualRegister)| {
        r.file == file && r.width >= width && !taken.contains(&(*id as u32))
    };
    let all: Vec<_> = registers.iter().enumerate().filter(fits).collect();
    let (id, register) = *all.choose(rng)?;
    let step = match (file, width) {
        (_, 1) => 1,
        (RegisterFile::Sgpr, 3..) => 4,
        _ => 2,
    };
    let places = (register.width - width) / step + 1;
    Some(Operand::virtual_register(id as u32, u32::from(step * rng.random_range(0..places))))
}

fn operand(
    rng: &mut StdRng,
    registers: &[VirtualRegister],
    inst: &Inst,
    spec: &OperandSpec,
    width: u8,
    taken: &[u32],
) -> Option<Operand> {
    use OperandClass::*;
    let info = inst.op.info();
    let inline = |rng: &mut StdRng| Operand::inline_integer(rng.random_range(-16..=64));
    let of = |rng: &mut StdRng, file| pick(rng, registers, file, width, taken);
    match spec.class {
        Vgpr | BufferAddress | GlobalAddress => of(rng, RegisterFile::Vgpr),
        VgprOrAgpr => match inst.operands[0].as_virtual() {
            // Data of one instruction are in one file.
            Some((id, _)) if spec.field == Field::Data0 || spec.field == Field::Data1 => {
                of(rng, registers[id as usize].file)
            }
            _ => of(rng, RegisterFile::Vgpr),
        },
        Agpr => of(rng, RegisterFile::Agpr),
        MatrixC if rng.random_bool(0.7) => Some(inst.operands[0]),
        MatrixC => Operand::inline_integer(0),
        VectorSource | VectorInline if rng.random_bool(0.8) => of(rng, RegisterFile::Vgpr),
        // At most one scalar value per vector instruction.
        VectorSource if width == 1 && rng.random_bool(0.3) && !reads_scalar(inst, registers) => {
            of(rng, RegisterFile::Sgpr)
        }
        VectorSource | VectorInline => inline(rng),
        Sgpr | ScalarDst | ScalarBase => of(rng, RegisterFile::Sgpr),
        ScalarInline if info.format.is_vop() && reads_scalar(inst, registers) => inline(rng),
        ScalarSource | ScalarInline if rng.random_bool(0.7) => of(rng, RegisterFile::Sgpr),
        ScalarSource | ScalarInline => inline(rng),
        Mask | MaskSource if rng.random_bool(0.5) => Some(Operand::VCC),
        Mask | MaskSource => of(rng, RegisterFile::Sgpr),
        Literal => Some(Operand::LITERAL),
        ScalarOffset => Some(Operand::NONE),
        ScratchAddress => None,
    }
}

fn reads_scalar(inst: &Inst, registers: &[VirtualRegister]) -> bool {
    let info = inst.op.info();
    let named = inst.operands.iter().any(|operand| {
        operand.as_virtual().is_some_and(|(id, _)| registers[id as usize].file == RegisterFile::Sgpr)
    });
    let mask = info.operands.iter().any(|spec| spec.class == OperandClass::MaskSource);
    named || mask || info.reads.contains(Implicit::VCC)
}

/// A random instruction that the hardware takes, or nothing.
fn instruction(rng: &mut StdRng, registers: &[VirtualRegister]) -> Option<Inst> {
    let op = *Opcode::ALL.choose(rng)?;
    let info = op.info();
    let special = matches!(
        info.meaning,
        Meaning::GetPc | Meaning::SetHardwareRegister | Meaning::Nop | Meaning::Wait | Meaning::Barrier
    );
    if special || matches!(info.unit, Unit::Branch | Unit::Other | Unit::Nop) {
        return None;
    }
    // Most of the table is plain arithmetic: thin it out, so that more depends on more.
    let plain = info.unit == Unit::Valu && !info.writes.contains(Implicit::EXEC);
    let lanes = matches!(info.meaning, Meaning::ReadFirstLane | Meaning::ReadLane | Meaning::WriteLane);
    if plain && !lanes && rng.random_bool(0.7) {
        return None;
    }
    let mut inst = Inst::new(op, &[]);
    let spec_at = |class| info.operands.iter().position(|spec| spec.class == class);
    if spec_at(OperandClass::BufferAddress).is_some() && rng.random_bool(0.7) {
        inst.modifiers = Modifiers::new().offen();
    }
    let mut results = Vec::new();
    let separate = matches!(info.unit, Unit::Mfma(_) | Unit::Smem);
    // The scalar base first: it decides how wide the address is.
    let mut order: Vec<usize> = (0..info.operands.len()).collect();
    order.sort_by_key(|&index| info.operands[index].class != OperandClass::ScalarBase);
    for index in order {
        let spec = &info.operands[index];
        let without_address = spec.class == OperandClass::BufferAddress && !inst.modifiers.has_offen();
        let without_base = spec.class == OperandClass::ScalarBase && rng.random_bool(0.5);
        if without_address || without_base {
            continue;
        }
        let taken: &[u32] = if spec.role != Role::Use || separate { &results } else { &[] };
        inst.operands[index] = operand(rng, registers, &inst, spec, inst.width(index), taken)?;
        if spec.role != Role::Use {
            results.extend(inst.operands[index].as_virtual().map(|(id, _)| id));
        }
    }
    Some(inst)
}

fn copy(rng: &mut StdRng, registers: &[VirtualRegister]) -> Option<Inst> {
    let (op, file, width) = *[
        (Opcode::VMovB32, RegisterFile::Vgpr, 1),
        (Opcode::VMovB64, RegisterFile::Vgpr, 2),
        (Opcode::SMovB32, RegisterFile::Sgpr, 1),
        (Opcode::SMovB64, RegisterFile::Sgpr, 2),
        (Opcode::VAccvgprMovB32, RegisterFile::Agpr, 1),
    ]
    .choose(rng)?;
    let to = pick(rng, registers, file, width, &[])?;
    Some(Inst::new(op, &[to, pick(rng, registers, file, width, &[])?]))
}

fn body(rng: &mut StdRng) -> Body {
    let mut body = Body { registers: registers(rng), ..Body::default() };
    let blocks = rng.random_range(1..6u32);
    for index in 0..blocks {
        let start = body.insts.len() as u32;
        let length = rng.random_range(0..20);
        while body.insts.len() < (start + length) as usize {
            let inst = match rng.random_range(0..20) {
                0 => {
                    Some(Inst::new(Opcode::SBarrier, &[]).imm(rng.random_range(0..2) * BARRIER_WITHOUT_WAITS))
                }
                1..4 => copy(rng, &body.registers),
                4 => Some(Inst::new(Opcode::SMovB64, &[Operand::EXEC, Operand::constant(u32::MAX)])),
                _ => instruction(rng, &body.registers),
            };
            body.insts.extend(inst.map(|inst| MachineInst { inst, source: 0 }));
        }
        let next = (index + 1 < blocks).then_some(index + 1);
        let mut successors = [next, None];
        if rng.random_bool(0.6) {
            let target = rng.random_range(0..blocks);
            successors[1] = Some(target);
            let inst = Inst::new(Opcode::SCbranchScc1, &[]).imm(target);
            body.insts.push(MachineInst { inst, source: 0 });
        }
        body.blocks.push(Block { start, end: body.insts.len() as u32, successors });
    }
    body
}

fn assert_no(seed: u64, faults: Vec<Fault>, body: &Body) {
    assert!(faults.is_empty(), "seed {seed}: {faults:#?}\n{}", text::print(body));
}

#[test]
fn random_bodies_come_out_right() {
    let mut allocator = Allocator::default();
    let mut waits = WaitInserter::default();
    let targets = [HazardTarget::Gfx90a, HazardTarget::Gfx942, HazardTarget::Gfx950];
    let mut resolvers = targets.map(HazardResolver::new);
    let (mut instructions, mut waits_seen, mut nops_seen) = (0, Seen::default(), Seen::default());
    for seed in 0..CASES {
        let rng = &mut StdRng::seed_from_u64(seed);
        let virtual_body = body(rng);
        let mut allocated = virtual_body.clone();
        let result = allocator.allocate(&mut allocated, &Limits::MAX, &[]);
        if let Err(error) = result {
            panic!("seed {seed}: {error}\n{}", text::print(&virtual_body));
        }
        let checked = Allocated {
            before: &virtual_body,
            after: &allocated,
            origins: allocator.origins(),
            inputs: &[],
            scratch_bytes: 0,
        };
        assert_no(seed, check_allocation(&checked), &allocated);
        assert_no(seed, check_operands(&allocated), &allocated);

        let mut waited = allocated.clone();
        waits.insert(&mut waited);
        assert_no(seed, check_waits(&allocated, &waited), &waited);
        waits_seen.add(weaken_waits(&allocated, &waited));

        let target = seed as usize % 3;
        let mut resolved = waited.clone();
        resolvers[target].resolve(&mut resolved);
        assert_no(seed, check_hazards(&resolved, targets[target]), &resolved);
        assert_no(seed, check_waits(&allocated, &resolved), &resolved);
        nops_seen.add(weaken_nops(&resolved, targets[target]));
        instructions += resolved.insts.len();

        drop_branches_to_next(&mut resolved);
        if let Err(error) = encode_body(&resolved, &mut Code::default()) {
            panic!("seed {seed}: {error}\n{}", text::print(&resolved));
        }
    }
    println!("{instructions} instructions");
    for (name, seen) in [("waits", waits_seen), ("nops", nops_seen)] {
        println!("{name}: {} of {} are needed", seen.needed, seen.all);
        // Paths that only meet on paper make a few of them stricter than they must be.
        assert!(seen.all > 100 && seen.needed * 100 >= seen.all * 95, "{name}");
    }
}

/// How many of the inserted waits or nops are needed: weakened by one, something goes wrong.
#[derive(Default)]
struct Seen {
    all: usize,
    needed: usize,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.all += other.all;
        self.needed += other.needed;
    }
}

fn weaken_waits(before: &Body, waited: &Body) -> Seen {
    let mut seen = Seen::default();
    for index in 0..waited.insts.len() {
        let inst = waited.insts[index].inst;
        if inst.op != Opcode::SWaitcnt {
            continue;
        }
        let counts = WaitCounts::from_imm(inst.imm);
        let weaker =
            [WaitCounts { vm: counts.vm + 1, ..counts }, WaitCounts { lgkm: counts.lgkm + 1, ..counts }];
        let waits = [counts.vm < WaitCounts::NONE.vm, counts.lgkm < WaitCounts::NONE.lgkm];
        for counts in weaker.into_iter().zip(waits).filter_map(|(counts, waits)| waits.then_some(counts)) {
            let mut weak = waited.clone();
            weak.insts[index].inst.imm = counts.to_imm();
            seen.all += 1;
            seen.needed += usize::from(!check_waits(before, &weak).is_empty());
        }
    }
    seen
}

fn weaken_nops(resolved: &Body, target: HazardTarget) -> Seen {
    let mut seen = Seen::default();
    for index in 0..resolved.insts.len() {
        let inst = resolved.insts[index].inst;
        if inst.op != Opcode::SNop {
            continue;
        }
        let mut weak = resolved.clone();
        if inst.imm > 0 {
            weak.insts[index].inst.imm -= 1;
        } else {
            weak.insts.remove(index);
            for block in &mut weak.blocks {
                block.start -= u32::from(block.start as usize > index);
                block.end -= u32::from(block.end as usize > index);
            }
        }
        seen.all += 1;
        seen.needed += usize::from(!check_hazards(&weak, target).is_empty());
    }
    seen
}
