//! Random bodies of physical registers, drawn from every row of every chip, through the passes for waits and
//! hazards: the machine verifier, which has rules of its own, must find nothing, and must find something when
//! a wait or a nop is weakened.

use groundswell::internals::machine::check::{
    MachineFault, check_hazards, check_operands, check_replay, check_waits,
};
use groundswell::internals::machine::hazards::HazardResolver;
use groundswell::internals::machine::waits::{BARRIER_WITHOUT_WAITS, LdsLoads, WaitInserter};
use groundswell::internals::machine::{Block, BlockId, MachineBody, MachineInst, text};
use groundswell::isa::{Arch, Format, Inst, Meaning, Opcode, Operand, Unit, check as check_operands_of};
use groundswell::target::Target;
use groundswell_testing::corpus::corpus;
use groundswell_testing::weakened::{Seen, weaken_nops, weaken_waits};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const CASES: u64 = 400;

/// Instructions of one chip, those of a kind together, so that rare kinds are drawn as often as plain
/// arithmetic.
struct Pool {
    arch: Arch,
    kinds: Vec<Vec<Inst>>,
}

/// Everything but instructions of graphics, which kernels have no use for.
fn is_for_kernels(inst: &Inst) -> bool {
    let info = inst.op.info();
    !matches!(info.format, Format::Mimg | Format::VintrpLong | Format::VintrpHalf)
        && info.meaning != Meaning::ScreenPartition
        && inst.op != Opcode::SEndpgmOrderedPsDone
}

impl Pool {
    /// Those of a chip that `takes` accepts.
    fn new(arch: Arch, takes: impl Fn(&Inst) -> bool) -> Pool {
        let mut kinds: Vec<(String, Vec<Inst>)> = Vec::new();
        for inst in corpus(arch, |_| true).into_iter().filter(|inst| belongs(inst) && takes(inst)) {
            let name = kind(&inst);
            match kinds.iter_mut().find(|(known, _)| *known == name) {
                Some((_, insts)) => insts.push(inst),
                None => kinds.push((name, vec![inst])),
            }
        }
        Pool { arch, kinds: kinds.into_iter().map(|(_, insts)| insts).collect() }
    }

    /// Some instruction, on few registers, so that it meets others.
    fn inst(&self, rng: &mut StdRng) -> Option<Inst> {
        let from = *self.kinds.choose(rng)?.choose(rng)?;
        (0..30).find_map(|_| {
            let inst = crowd(rng, from);
            (check_operands_of(&inst, self.arch).is_ok() && !overwrites_own_base(&inst)).then_some(inst)
        })
    }
}

/// Scalar loads of several registers into their own address, which no pass could save from a replay.
fn overwrites_own_base(inst: &Inst) -> bool {
    if inst.op.info().unit != Unit::Smem || inst.op.info().operands.is_empty() {
        return false;
    }
    let range = |index: usize| {
        let first = inst.operands[index].number().unwrap_or(1000);
        first..first + u32::from(inst.width(index))
    };
    (1..inst.op.info().operands.len()).any(|source| {
        let (result, source) = (range(0), range(source));
        inst.width(0) > 1 && result.start < source.end && source.start < result.end
    })
}

/// Rows with hazards of their own are kinds of their own.
fn kind(inst: &Inst) -> String {
    let info = inst.op.info();
    let form = (inst.modifiers.has_dpp(), inst.modifiers.has_sdwa());
    let special = match info.meaning {
        Meaning::Vector(..) | Meaning::Scalar(..) | Meaning::Atomic(..) | Meaning::AtomicReturn(..) => {
            "plain".into()
        }
        Meaning::Compare(..) | Meaning::CompareClass(_) => "compare".into(),
        Meaning::CompareExec(..) | Meaning::CompareClassExec(_) => "compare exec".into(),
        Meaning::Convert(..) | Meaning::ScalarCompare(..) | Meaning::CompareImmediate(..) => "rest".into(),
        Meaning::Packed(..) | Meaning::SaveExec(_) | Meaning::WriteExec(_) => "more".into(),
        other => format!("{other:?}").split('(').next().unwrap_or_default().to_owned(),
    };
    format!("{:?} {form:?} {special}", info.unit)
}

/// True for what a body may have in its midst.
fn belongs(inst: &Inst) -> bool {
    let info = inst.op.info();
    !matches!(info.unit, Unit::Branch | Unit::Nop | Unit::Wait | Unit::Barrier)
        && !matches!(
            info.meaning,
            Meaning::Trap | Meaning::SetHalt | Meaning::SetKill | Meaning::InvalidateCode
        )
}

/// The same instruction with other registers: few of each file.
fn crowd(rng: &mut StdRng, mut inst: Inst) -> Inst {
    let count = inst.op.info().operands.len();
    for index in 0..count {
        let operand = inst.operands[index];
        let (width, Some(number)) = (u32::from(inst.width(index)), operand.number()) else { continue };
        let align = |n: u32, to: u32| n / to * to;
        let even =
            width > 1 || matches!(inst.op.info().meaning, Meaning::GlobalWaveSync | Meaning::GlobalBarrier);
        inst.operands[index] = match number {
            0..102 => Operand::sgpr(align(rng.random_range(0..12), width.next_power_of_two().min(4))),
            256..512 => Operand::vgpr(align(rng.random_range(0..20), if even { 2 } else { 1 })),
            512.. => Operand::agpr(align(rng.random_range(0..20), if even { 2 } else { 1 })),
            _ => operand,
        };
    }
    // C of a matrix instruction is D most of the time.
    let dense = matches!(inst.op.info().meaning, Meaning::Mfma(..) | Meaning::FormattedMfma(_));
    if dense && !inst.operands[3].is_constant() && rng.random_bool(0.7) {
        inst.operands[3] = inst.operands[0];
    }
    if inst.op.info().meaning == Meaning::SetHardwareRegister
        || inst.op.info().meaning == Meaning::GetHardwareRegister
    {
        // MODE and its neighbours, without indexing of VGPRs.
        let register = rng.random_range(1..4) | [0, 28 << 6, 4 << 6].choose(rng).copied().unwrap_or(0);
        match inst.op {
            Opcode::SSetregImm32B32 => inst.modifiers = groundswell::isa::Modifiers::new().hwreg(register),
            _ => inst.imm = register,
        }
    }
    inst
}

fn body(rng: &mut StdRng, pool: &Pool) -> MachineBody {
    let mut body = MachineBody::default();
    let blocks = rng.random_range(1..5u32);
    // Indexing of VGPRs makes everything depend on everything.
    let indexing = rng.random_bool(0.1);
    for index in 0..blocks {
        let start = body.insts.next_key();
        let next = BlockId::from_u32(index + 1);
        for _ in 0..rng.random_range(0..25) {
            let inst = match rng.random_range(0..30) {
                0 => {
                    let imm = rng.random_range(0..2) * BARRIER_WITHOUT_WAITS;
                    Some(Inst::new(Opcode::SBarrier, &[]).imm(imm))
                }
                _ => pool.inst(rng).filter(|inst| indexing || !sets_index(inst)),
            };
            body.insts.extend(inst.map(|inst| MachineInst { inst, source: 0 }));
        }
        let mut successors = [(index + 1 < blocks).then_some(next), None];
        if rng.random_bool(0.6) {
            let target = rng.random_range(0..blocks);
            successors[1] = Some(BlockId::from_u32(target));
            let op = *[Opcode::SCbranchScc1, Opcode::SCbranchVccz, Opcode::SCbranchExecnz]
                .choose(rng)
                .unwrap_or(&Opcode::SCbranchScc1);
            body.insts.push(MachineInst { inst: Inst::new(op, &[]).imm(target), source: 0 });
        } else if index + 1 == blocks {
            body.insts.push(MachineInst { inst: Inst::new(Opcode::SEndpgm, &[]), source: 0 });
        }
        body.blocks.push(Block { start, end: body.insts.next_key(), successors });
    }
    body
}

fn sets_index(inst: &Inst) -> bool {
    matches!(inst.op.info().meaning, Meaning::SetGprIndexOn)
}

fn assert_no(seed: u64, arch: Arch, faults: Vec<MachineFault>, body: &MachineBody) {
    assert!(faults.is_empty(), "seed {seed}, {arch}: {faults:#?}\n{}", text::print(body));
}

#[test]
fn every_chip_comes_out_right() {
    for arch in Arch::ALL {
        let pool = Pool::new(arch, |_| true);
        let mut inserter = WaitInserter::new(arch);
        let mut resolver = HazardResolver::new(arch);
        let (mut waits, mut nops, mut rows) = (Seen::default(), Seen::default(), Vec::new());
        for seed in 0..CASES {
            let rng = &mut StdRng::seed_from_u64(seed);
            let before = body(rng, &pool);
            rows.extend(before.insts.values().map(|i| i.inst.op));
            assert_no(seed, arch, check_operands(&before, arch), &before);
            let loads = [LdsLoads::Anywhere, LdsLoads::AfterBarriers][seed as usize % 2];
            inserter.set_lds_loads(loads);
            let mut waited = before.clone();
            inserter.insert(&mut waited);
            assert_no(seed, arch, check_waits(&before, &waited, arch, loads), &waited);
            weaken_waits(&before, &waited, arch, loads, &mut waits);

            let mut resolved = waited.clone();
            resolver.resolve(&mut resolved);
            assert_no(seed, arch, check_hazards(&resolved, arch), &resolved);
            assert_no(seed, arch, check_replay(&resolved), &resolved);
            assert_no(seed, arch, check_waits(&before, &resolved, arch, loads), &resolved);
            weaken_nops(&resolved, arch, &mut nops);
        }
        rows.sort();
        rows.dedup();
        let kinds = pool.kinds.len();
        println!("{arch}: {} opcodes of {kinds} kinds", rows.len());
        assert!(rows.len() > 500, "{arch}: only {} opcodes", rows.len());
        for (name, seen) in [("waits", waits), ("nops", nops)] {
            seen.require(200, &format!("{arch}: {name}"));
        }
    }
}

/// Code for a generic target keeps the distances of all of its chips, for which those of one of them
/// are not enough.
#[test]
fn generic_code_comes_out_right_for_all_of_its_chips() {
    let target = Target::GFX9_4_GENERIC;
    let sets = target.instruction_sets();
    let pool = Pool::new(sets[0], |inst| target.executes(inst.op) && is_for_kernels(inst));
    let mut resolver = HazardResolver::new(sets[0]).also_for(sets[1]);
    let mut alone: Vec<_> = sets.iter().map(|&set| (set, HazardResolver::new(set))).collect();
    let mut too_near = vec![0; sets.len()];
    let resolved = |resolver: &mut HazardResolver, before: &MachineBody| {
        let mut after = before.clone();
        resolver.resolve(&mut after);
        after
    };
    for seed in 0..CASES {
        let before = body(&mut StdRng::seed_from_u64(seed), &pool);
        let after = resolved(&mut resolver, &before);
        for &set in sets {
            assert_no(seed, set, check_operands(&before, set), &before);
            assert_no(seed, set, check_hazards(&after, set), &after);
        }
        for ((set, resolver), count) in alone.iter_mut().zip(&mut too_near) {
            let after = resolved(resolver, &before);
            let other = sets.iter().find(|other| *other != set).expect("two chips");
            *count += usize::from(!check_hazards(&after, *other).is_empty());
        }
    }
    assert!(too_near.iter().all(|&count| count > 0), "{too_near:?}");
}
