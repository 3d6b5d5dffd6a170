//! Random machine bodies through all machine passes: the result must satisfy the machine verifier, and
//! must not do so any more when a wait or a nop is weakened.

use std::sync::LazyLock;

use cranelift_entity::{EntityRef, PrimaryMap};
use groundswell::internals::index::Neighbours;
use groundswell::internals::machine::allocate::{AllocationError, Allocator, RegisterLimits, Spills};
use groundswell::internals::machine::branches::{Code, drop_branches_to_next, encode_body};
use groundswell::internals::machine::check::{
    Allocated, MachineFault, check_allocation, check_hazards, check_operands, check_order, check_replay,
    check_waits,
};
use groundswell::internals::machine::hazards::HazardResolver;
use groundswell::internals::machine::waits::{BARRIER_WITHOUT_WAITS, LdsLoads, WaitInserter};
use groundswell::internals::machine::{
    Block, BlockId, InstId, MachineBody, MachineInst, RegisterFile, VirtualRegister, interleave, text,
};
use groundswell::isa::Arch;
use groundswell::isa::{
    Field, Format, Implicit, Inst, Meaning, Modifiers, Opcode, Operand, OperandClass, OperandSpec, Role,
    Unit, VReg,
};
use groundswell::target::{AccumulationFile, DeviceModel, Target};
use groundswell_testing::weakened::{Seen, weaken_nops, weaken_waits, without};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const CASES: u64 = 300;

type Registers = PrimaryMap<VReg, VirtualRegister>;

/// Vector registers of four widths, scalar ones of four, accumulation registers. Where these have a file of
/// their own, bodies begin without them, as lowering makes them.
fn registers(rng: &mut StdRng, chip: Arch) -> Registers {
    let mut registers = Registers::default();
    let kinds: [(RegisterFile, &[u8], usize); 3] = [
        (RegisterFile::Vgpr, &[1, 1, 2, 2, 3, 4, 8, 16], 16),
        (RegisterFile::Sgpr, &[1, 1, 2, 2, 4, 8], 10),
        (RegisterFile::Agpr, &[1, 2, 4, 16], 6),
    ];
    for (file, widths, count) in kinds {
        if file == RegisterFile::Agpr && chip == Arch::Gfx908 {
            continue;
        }
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
    registers: &Registers,
    file: RegisterFile,
    width: u8,
    taken: &[VReg],
) -> Option<Operand> {
    let fits = |(id, r): &(VReg, &VirtualRegister)| r.file == file && r.width >= width && !taken.contains(id);
    let all: Vec<_> = registers.iter().filter(fits).collect();
    let (id, register) = *all.choose(rng)?;
    let step = match (file, width) {
        (_, 1) => 1,
        (RegisterFile::Sgpr, 3..) => 4,
        _ => 2,
    };
    let places = (register.width - width) / step + 1;
    Some(Operand::virtual_register(id, u32::from(step * rng.random_range(0..places))))
}

fn operand(
    rng: &mut StdRng,
    registers: &Registers,
    inst: &Inst,
    spec: &OperandSpec,
    width: u8,
    taken: &[VReg],
    chip: Arch,
) -> Option<Operand> {
    use OperandClass::*;
    let info = inst.op.info();
    let inline = |rng: &mut StdRng| Operand::inline_integer(rng.random_range(-16..=64));
    let of = |rng: &mut StdRng, file| pick(rng, registers, file, width, taken);
    match spec.class {
        Vgpr | BufferAddress | GlobalAddress | ImageAddress(_) => of(rng, RegisterFile::Vgpr),
        VgprOrAgpr | ImageData => match inst.operands[0].as_virtual() {
            // Data of one instruction are in one file.
            Some((id, _)) if spec.field == Field::Data0 || spec.field == Field::Data1 => {
                of(rng, registers[id].file)
            }
            _ => of(rng, RegisterFile::Vgpr),
        },
        Agpr => of(rng, RegisterFile::Agpr),
        MatrixC if rng.random_bool(0.7) => Some(inst.operands[0]),
        MatrixC if chip == Arch::Gfx908 => of(rng, RegisterFile::Vgpr),
        MatrixC => Operand::inline_integer(0),
        VectorSource | VectorInline if rng.random_bool(0.8) => of(rng, RegisterFile::Vgpr),
        // At most one scalar value per vector instruction.
        VectorSource if width == 1 && rng.random_bool(0.3) && !reads_scalar(inst, registers) => {
            of(rng, RegisterFile::Sgpr)
        }
        VectorSource | VectorInline => inline(rng),
        Sgpr | ScalarDst | ScalarRegister | ScalarBase => of(rng, RegisterFile::Sgpr),
        ScalarInline if info.format.is_vop() && reads_scalar(inst, registers) => inline(rng),
        ScalarSource | ScalarInline if rng.random_bool(0.7) => of(rng, RegisterFile::Sgpr),
        ScalarSource | ScalarInline => inline(rng),
        Mask | MaskSource if rng.random_bool(0.5) => Some(Operand::VCC),
        Mask | MaskSource => of(rng, RegisterFile::Sgpr),
        Literal => Some(Operand::LITERAL),
        ScalarOffset => Some(Operand::NONE),
        ScratchAddress | Exported | MatrixFormatted => None,
    }
}

fn reads_scalar(inst: &Inst, registers: &Registers) -> bool {
    let info = inst.op.info();
    let named = inst
        .operands
        .iter()
        .any(|operand| operand.as_virtual().is_some_and(|(id, _)| registers[id].file == RegisterFile::Sgpr));
    // A mask of lanes is one, and so is a literal.
    let scalar = [OperandClass::MaskSource, OperandClass::Literal];
    let mask = info.operands.iter().any(|spec| scalar.contains(&spec.class));
    named || mask || info.reads.contains(Implicit::VCC)
}

/// What bodies are made of: everything but instructions of graphics, which kernels have no use for.
static OPCODES: LazyLock<Vec<Opcode>> = LazyLock::new(|| {
    let is_graphics = |op: &&Opcode| {
        let info = op.info();
        matches!(info.format, Format::Mimg | Format::VintrpLong | Format::VintrpHalf)
            || info.meaning == Meaning::ScreenPartition
            || **op == Opcode::SEndpgmOrderedPsDone
    };
    Opcode::ALL.iter().filter(|op| !is_graphics(op)).copied().collect()
});

/// A random instruction that the hardware takes, or nothing.
fn instruction(rng: &mut StdRng, registers: &Registers, chip: Arch) -> Option<Inst> {
    let op = *OPCODES.choose(rng).filter(|op| op.on(chip))?;
    let info = op.info();
    let special = matches!(
        info.meaning,
        Meaning::GetPc
            | Meaning::SetHardwareRegister
            | Meaning::Nop
            | Meaning::Wait
            | Meaning::Barrier
            // Its register is even where tuples are, which no width says.
            | Meaning::GlobalWaveSync
            | Meaning::GlobalBarrier
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
        let taken: &[VReg] = if spec.role != Role::Use || separate { &results } else { &[] };
        inst.operands[index] = operand(rng, registers, &inst, spec, inst.width(index), taken, chip)?;
        if spec.role != Role::Use {
            results.extend(inst.operands[index].as_virtual().map(|(id, _)| id));
        }
    }
    Some(inst)
}

fn copy(rng: &mut StdRng, registers: &Registers, chip: Arch) -> Option<Inst> {
    let moves = [
        (Opcode::VMovB32, RegisterFile::Vgpr, 1),
        (Opcode::VMovB64, RegisterFile::Vgpr, 2),
        (Opcode::SMovB32, RegisterFile::Sgpr, 1),
        (Opcode::SMovB64, RegisterFile::Sgpr, 2),
        (Opcode::VAccvgprMovB32, RegisterFile::Agpr, 1),
    ];
    let (op, file, width) = *moves.choose(rng).filter(|(op, ..)| op.on(chip))?;
    let to = pick(rng, registers, file, width, &[])?;
    Some(Inst::new(op, &[to, pick(rng, registers, file, width, &[])?]))
}

fn body(rng: &mut StdRng, chip: Arch) -> MachineBody {
    let mut body = MachineBody { registers: registers(rng, chip), ..MachineBody::default() };
    let blocks = rng.random_range(1..6u32);
    for index in 0..blocks {
        let start = body.insts.next_key();
        let end = body.insts.len() + rng.random_range(0..20);
        while body.insts.len() < end {
            let inst = match rng.random_range(0..20) {
                0 => {
                    Some(Inst::new(Opcode::SBarrier, &[]).imm(rng.random_range(0..2) * BARRIER_WITHOUT_WAITS))
                }
                1..4 => copy(rng, &body.registers, chip),
                4 => Some(Inst::new(Opcode::SMovB64, &[Operand::EXEC, Operand::constant(u32::MAX)])),
                _ => instruction(rng, &body.registers, chip),
            };
            body.insts.extend(inst.map(|inst| MachineInst { inst, source: 0 }));
        }
        let next = (index + 1 < blocks).then_some(BlockId::from_u32(index + 1));
        let mut successors = [next, None];
        if rng.random_bool(0.6) {
            let target = rng.random_range(0..blocks);
            successors[1] = Some(BlockId::from_u32(target));
            let inst = Inst::new(Opcode::SCbranchScc1, &[]).imm(target);
            body.insts.push(MachineInst { inst, source: 0 });
        }
        body.blocks.push(Block { start, end: body.insts.next_key(), successors });
    }
    body
}

/// A loop in whose body matrix instructions stand among others.
fn loop_with_products(rng: &mut StdRng, chip: Arch) -> MachineBody {
    let mut body = MachineBody { registers: registers(rng, chip), ..MachineBody::default() };
    let start = body.insts.next_key();
    let is_product = |inst: &Inst| matches!(inst.op.info().unit, Unit::Mfma(_));
    // Most others may change places.
    let is_fixed = |inst: &Inst| {
        let info = inst.op.info();
        matches!(info.unit, Unit::Flat | Unit::Smem) || info.writes.contains(Implicit::EXEC)
    };
    while body.insts.len() < 60 {
        let inst = match rng.random_range(0..20) {
            0..3 => copy(rng, &body.registers, chip),
            3 => Some(Inst::new(Opcode::SBarrier, &[])).filter(|_| rng.random_bool(0.1)),
            // Plain arithmetic seldom comes out, and products always would.
            4 if rng.random_bool(0.5) => {
                (0..200).find_map(|_| instruction(rng, &body.registers, chip).filter(is_product))
            }
            _ => instruction(rng, &body.registers, chip)
                .filter(|inst| !is_fixed(inst) || rng.random_bool(0.05)),
        };
        body.insts.extend(inst.map(|inst| MachineInst { inst, source: 0 }));
    }
    let own = BlockId::from_u32(0);
    body.insts.push(MachineInst { inst: Inst::new(Opcode::SCbranchScc1, &[]).imm(0), source: 0 });
    let successors = [Some(own.next()), Some(own)];
    body.blocks.push(Block { start, end: body.insts.next_key(), successors });
    let start = body.insts.next_key();
    body.insts.push(MachineInst { inst: Inst::new(Opcode::SEndpgm, &[]), source: 0 });
    body.blocks.push(Block { start, end: body.insts.next_key(), successors: [None, None] });
    body
}

#[test]
fn random_loops_are_interleaved_without_a_change_of_meaning() {
    let targets = [Target::GFX90A, Target::GFX942, Target::GFX950];
    let mut changed = 0;
    for seed in 0..CASES {
        let rng = &mut StdRng::seed_from_u64(seed);
        let target = targets[seed as usize % targets.len()];
        let before = loop_with_products(rng, target.arch);
        let mut after = before.clone();
        interleave(&mut after, &[], (target.arch, DeviceModel::nearest(target)));
        assert_no(seed, check_order(&before, &after), &after);
        changed += u64::from(text::print(&before) != text::print(&after));
    }
    assert!(changed > CASES / 20, "{changed} of {CASES} loops have another order");
}

fn assert_no(seed: u64, faults: Vec<MachineFault>, body: &MachineBody) {
    assert!(faults.is_empty(), "seed {seed}: {faults:#?}\n{}", text::print(body));
}

#[test]
fn random_bodies_come_out_right() {
    let mut allocator = Allocator::default();
    let targets = [Arch::Gfx90a, Arch::Gfx942, Arch::Gfx950];
    let mut resolvers = targets.map(HazardResolver::new);
    let mut waits = targets.map(WaitInserter::new);
    let (mut instructions, mut waits_seen, mut nops_seen) = (0, Seen::default(), Seen::default());
    for seed in 0..CASES {
        let rng = &mut StdRng::seed_from_u64(seed);
        let virtual_body = body(rng, Arch::Gfx942);
        let mut allocated = virtual_body.clone();
        let result = allocator.allocate(&mut allocated, &RegisterLimits::MAX, &[]);
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
        assert_no(seed, check_operands(&allocated, Arch::Gfx942), &allocated);
        drop_branches_to_next(&mut allocated);

        let target = seed as usize % 3;
        let chip = targets[target];
        let mut waited = allocated.clone();
        waits[target].insert(&mut waited);
        assert_no(seed, check_waits(&allocated, &waited, chip, LdsLoads::Anywhere), &waited);
        weaken_waits(&allocated, &waited, chip, LdsLoads::Anywhere, &mut waits_seen);

        let mut resolved = waited.clone();
        resolvers[target].resolve(&mut resolved);
        assert_no(seed, check_hazards(&resolved, targets[target]), &resolved);
        assert_no(seed, check_replay(&resolved), &resolved);
        assert_no(seed, check_waits(&allocated, &resolved, chip, LdsLoads::Anywhere), &resolved);
        weaken_nops(&resolved, chip, &mut nops_seen);
        instructions += resolved.insts.len();

        if let Err(error) = encode_body(&resolved, Arch::Gfx942, &mut Code::default()) {
            panic!("seed {seed}: {error}\n{}", text::print(&resolved));
        }
    }
    println!("{instructions} instructions");
    for (name, seen) in [("waits", waits_seen), ("nops", nops_seen)] {
        seen.require(100, name);
    }
}

/// What the allocator did to a set of bodies under tight limits.
#[derive(Default, Debug)]
struct Tight {
    allocated: usize,
    exhausted: usize,
    scratch: usize,
    lanes: usize,
    agprs: usize,
    rematerialised: usize,
}

impl Tight {
    fn add(&mut self, spills: &Spills) {
        self.allocated += 1;
        self.scratch += usize::from(spills.to_scratch > 0);
        self.lanes += usize::from(spills.to_lanes > 0);
        self.agprs += usize::from(spills.to_agprs > 0);
        self.rematerialised += usize::from(spills.rematerialised > 0);
    }
}

/// Fewer registers step by step, until a body cannot be allocated any more: every result must be right up to
/// there, keep the limits, and go wrong in the verifier's eyes when an inserted instruction is left out.
#[test]
fn tight_limits_come_out_right() {
    tight_limits(Target::GFX942, Arch::Gfx942);
}

/// The same where AGPRs have a file of their own, to which accumulators are moved and in which VGPRs find
/// room.
#[test]
fn tight_limits_of_two_files_come_out_right() {
    tight_limits(Target::GFX908, Arch::Gfx908);
}

fn tight_limits(target: Target, chip: Arch) {
    let most = RegisterLimits {
        vectors: target.vgpr_file,
        accumulation: target.agprs,
        flat_scratch: target.flat_scratch,
        ..RegisterLimits::MAX
    };
    let mut allocator = Allocator::default();
    let mut seen = Tight::default();
    let mut left_out = Seen::default();
    for seed in 0..CASES / 2 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let plain = body(rng, chip);
        let virtual_body = observed(rng, plain);
        let mut free = virtual_body.clone();
        let Ok(needed) = allocator.allocate(&mut free, &most, &[]) else { continue };
        for eighths in [7, 6, 5, 4, 3] {
            let share = |count: u32| (count * eighths).div_ceil(8);
            let agprs = if rng.random_bool(0.5) { 256 } else { share(needed.agprs) };
            let vectors = match target.agprs {
                // What is too much for one file may go to the other one.
                AccumulationFile::Separate => share(needed.vgprs.max(needed.agprs)),
                _ if rng.random_bool(0.5) => 512,
                _ => share(needed.vgprs + needed.agprs + 4),
            };
            let limits = RegisterLimits {
                sgprs: if rng.random_bool(0.5) { 102 } else { share(needed.sgprs) },
                vgprs: share(needed.vgprs),
                agprs,
                vectors,
                ..most
            };
            let mut after = virtual_body.clone();
            let allocation = match allocator.allocate(&mut after, &limits, &[]) {
                Ok(allocation) => allocation,
                Err(AllocationError::Exhausted { .. }) => {
                    seen.exhausted += 1;
                    continue;
                }
                Err(error) => panic!("seed {seed}: {error}"),
            };
            seen.add(&allocation.spills);
            let within = allocation.sgprs <= limits.sgprs
                && allocation.vgprs <= limits.vgprs
                && allocation.agprs <= limits.agprs
                && target.total_vgprs(allocation.vgprs, allocation.agprs) <= vectors.max(1);
            assert!(within, "seed {seed}: {allocation:?} with {limits:?}");
            let checked = Allocated {
                before: &virtual_body,
                after: &after,
                origins: allocator.origins(),
                inputs: &[],
                scratch_bytes: allocation.spills.scratch_bytes,
            };
            let faults = check_allocation(&checked);
            if !faults.is_empty() {
                panic!(
                    "seed {seed}, {limits:?}: {faults:#?}\n{}\n{}",
                    text::print(&virtual_body),
                    text::print(&after)
                );
            }
            assert_no(seed, check_operands(&after, chip), &after);
            leave_out(rng, &checked, &mut left_out);
        }
    }
    println!("{seen:?}");
    let least = [seen.scratch, seen.lanes, seen.agprs, seen.rematerialised].into_iter().min();
    assert!(least > Some(100), "{seen:?}");
    // What is put away twice without being fetched in between is not missed.
    left_out.require(500, "inserted instructions");
}

/// The same body with every register written before it and read after it, and with constants among its
/// sources, so that no value is without consequence.
fn observed(rng: &mut StdRng, mut body: MachineBody) -> MachineBody {
    let (v0, s0) = (Operand::vgpr(0), Operand::sgpr(0));
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for (id, register) in body.registers.iter() {
        for part in 0..register.width.into() {
            let r = Operand::virtual_register(id, part);
            let (write, read) = match register.file {
                RegisterFile::Sgpr => {
                    (Inst::new(Opcode::SAddU32, &[r, s0, s0]), Inst::new(Opcode::SAddU32, &[s0, s0, r]))
                }
                RegisterFile::Vgpr => {
                    (Inst::new(Opcode::VAddU32, &[r, v0, v0]), Inst::new(Opcode::VAddU32, &[v0, v0, r]))
                }
                RegisterFile::Agpr => {
                    (Inst::new(Opcode::DsReadB32, &[r, v0]), Inst::new(Opcode::DsWriteB32, &[v0, r]))
                }
            };
            first.push(write);
            last.push(read);
        }
    }
    // Constants, and what XORs with constants make of a register that is read again at the end, or is not.
    let vector = VirtualRegister { file: RegisterFile::Vgpr, width: 1 };
    let base = Operand::virtual_register(body.registers.push(vector), 0);
    first.push(Inst::new(Opcode::VAddU32, &[base, v0, v0]));
    if rng.random_bool(0.8) {
        last.push(Inst::new(Opcode::VAddU32, &[v0, v0, base]));
    }
    for number in 0..10 {
        let scalar = number % 2 == 0 && number < 6;
        let file = if scalar { RegisterFile::Sgpr } else { RegisterFile::Vgpr };
        let constant = Operand::virtual_register(body.registers.push(VirtualRegister { file, width: 1 }), 0);
        let value = Operand::constant(number);
        let made = match number {
            0..6 if scalar => Inst::new(Opcode::SMovB32, &[constant, value]),
            0..6 => Inst::new(Opcode::VMovB32, &[constant, value]),
            _ => Inst::new(Opcode::VXorB32, &[constant, value, base]),
        };
        first.push(made.imm(number));
        for i in body.insts.values_mut() {
            for (index, spec) in i.inst.op.info().operands.iter().enumerate() {
                let fits = match scalar {
                    true => spec.class == OperandClass::ScalarSource,
                    false => matches!(spec.class, OperandClass::VectorSource | OperandClass::VectorInline),
                };
                let plain = spec.role == Role::Use && spec.width == 1 && i.inst.operands[index].is_virtual();
                if fits && plain && rng.random_bool(0.1) {
                    i.inst.operands[index] = constant;
                }
            }
        }
    }
    let plain = |inst| MachineInst { inst, source: 0 };
    let (prologue, epilogue) = (InstId::new(first.len()), InstId::new(first.len() + body.insts.len()));
    let mut blocks = PrimaryMap::<BlockId, Block>::default();
    blocks.push(Block { start: InstId::new(0), end: prologue, successors: [Some(BlockId::new(1)), None] });
    for block in body.blocks.values() {
        let [start, end] = [block.start, block.end].map(|inst| InstId::new(inst.index() + first.len()));
        blocks.push(Block { start, end, successors: block.successors.map(|block| Some(block?.next())) });
    }
    for i in body.insts.values_mut() {
        i.inst.imm += u32::from(matches!(i.inst.op.info().meaning, Meaning::Branch(_)));
    }
    let next = blocks.next_key();
    if let Some((_, block)) = blocks.last_mut() {
        block.successors[0] = Some(next);
    }
    let last = last.into_iter().map(plain);
    body.insts = first.into_iter().map(plain).chain(body.insts.values().copied()).chain(last).collect();
    blocks.push(Block { start: epilogue, end: body.insts.next_key(), successors: [None; 2] });
    body.blocks = blocks;
    body
}

/// Leaves one inserted instruction out.
fn leave_out(rng: &mut StdRng, checked: &Allocated, seen: &mut Seen) {
    let origins = checked.origins;
    // The base of a scratch access may stand in its register already.
    let is_base = |at: InstId| {
        let [to, ..] = checked.after.insts[at].inst.operands;
        let next = checked.after.insts.get(at.next()).map(|next| next.inst);
        next.is_some_and(|next| next.op.mnemonic().starts_with("scratch_") && next.operands[2] == to)
    };
    let inserted: Vec<InstId> = origins.keys().filter(|&at| origins[at].is_none() && !is_base(at)).collect();
    let Some(&at) = inserted.choose(rng) else { return };
    let after = without(checked.after, at);
    let origins = origins.iter().filter(|(index, _)| *index != at).map(|(_, origin)| *origin).collect();
    let without = Allocated { after: &after, origins: &origins, ..*checked };
    seen.count(!check_allocation(&without).is_empty());
}
