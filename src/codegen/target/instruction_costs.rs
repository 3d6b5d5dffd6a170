//! What an instruction costs before anything is known about addresses: read off its row, for time mode and
//! for the estimates that schedules are compared by.

use super::device_model::DeviceModel;
use super::matrix::MatrixInstruction;
use super::parameter_set::ParameterSet;
use super::parameters::DeviceParameter;
use crate::codegen::arch::Arch;
use crate::codegen::isa::{
    Calc, Counter, Effect, Element, Format, Inst, Meaning, Modifiers, OpInfo, Unit, WaitCounts,
};

/// Classes of which a SIMD issues one instruction each per turn (rocprofiler-compute documentation,
/// "Scheduler").
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum IssueClass {
    /// Vector and matrix instructions.
    Valu,
    /// Vector memory, flat included.
    Vector,
    /// Scalar instructions and scalar memory.
    Scalar,
    /// LDS.
    Lds,
    /// Branches and messages.
    Branch,
    /// Handled by the wave's own buffer: issues without arbitration.
    Internal,
}

/// Number of classes that are arbitrated.
pub(crate) const CLASSES: usize = IssueClass::Internal as usize;

/// Kinds of LDS instructions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum LdsKind {
    Read,
    Write,
    Atomic,
    /// Lane permutations: the path of LDS without its banks.
    Permute,
}

/// Kinds of vector memory instructions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum VectorKind {
    Load,
    LoadToLds,
    Store,
    Atomic,
    /// Cache control.
    Control,
}

/// The unit that an instruction occupies, and for how long.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum CostKind {
    /// The vector ALU for this many clk.
    Valu {
        clk: u64,
        /// May share a turn with another that may.
        pairs: bool,
        /// May issue while a matrix instruction runs.
        overlaps: bool,
    },
    /// The matrix core.
    Matrix {
        /// Its scales are fetched before it.
        scaled: bool,
        /// Its result is its addend.
        sparse: bool,
        /// Clk until the next matrix instruction may issue.
        occupancy: u64,
        /// Clk until the first vector instruction may issue, and the first one of LDS and vector memory.
        blocks: u64,
        memory: u64,
        /// Clk until the result may be read.
        result: u64,
        /// Clk until the result may be accumulated on.
        accumulate: u64,
    },
    Scalar,
    ScalarMemory,
    Lds {
        kind: LdsKind,
        dwords: u32,
    },
    Vector {
        kind: VectorKind,
        /// Bytes per lane.
        bytes: u32,
        bypasses_l1: bool,
    },
    Branch,
    /// Clk after the turn for which the wave idles.
    Nop {
        clk: u64,
    },
    Sleep {
        clk: u64,
    },
    Wait {
        vm: u32,
        lgkm: u32,
    },
    Barrier,
    Priority {
        level: u8,
    },
    End,
}

/// The cost of an instruction.
#[derive(Copy, Clone, Debug)]
pub(crate) struct InstructionCost {
    pub class: IssueClass,
    pub kind: CostKind,
    /// Turns that issuing takes.
    pub turns: u64,
    /// Entries in vmcnt and lgkmcnt.
    pub vm: u8,
    pub lgkm: u8,
    /// Floating-point or integer operations per lane (per wave for a matrix instruction).
    pub operations: u64,
    /// The parameters that the cost rests on.
    pub used: ParameterSet,
}

impl InstructionCost {
    /// The cost of something that is no instruction.
    pub(crate) const NOTHING: InstructionCost = InstructionCost {
        class: IssueClass::Scalar,
        kind: CostKind::Scalar,
        turns: 1,
        vm: 0,
        lgkm: 0,
        operations: 0,
        used: ParameterSet::of(&[]),
    };

    /// The cost of an instruction on a device; `only_vectors` says whether all of its operands are vector
    /// registers.
    pub(crate) fn of(
        device: &DeviceModel,
        arch: Arch,
        inst: &Inst,
        only_vectors: impl FnOnce() -> bool,
    ) -> InstructionCost {
        let mut cost = InstructionCost::NOTHING;
        match inst.op.info().counter {
            Counter::None => {}
            Counter::Vm => cost.vm = 1,
            Counter::Lgkm => cost.lgkm = 1,
            Counter::VmAndLgkm => (cost.vm, cost.lgkm) = (1, 1),
        }
        (cost.class, cost.kind) = kind(device, arch, inst, only_vectors, &mut cost);
        cost
    }
}

impl MatrixInstruction {
    /// The cost of the instruction on a device.
    pub(crate) fn cost(&self, device: &DeviceModel, arch: Arch) -> InstructionCost {
        let [of_a, of_b] = self.formats.map(u32::from);
        let modifiers = Modifiers::new().cbsz(of_a).blgp(of_b);
        let inst = Inst::new(self.opcode, &[]).modifiers(modifiers);
        InstructionCost::of(device, arch, &inst, || true)
    }
}

fn kind(
    device: &DeviceModel,
    arch: Arch,
    inst: &Inst,
    only_vectors: impl FnOnce() -> bool,
    cost: &mut InstructionCost,
) -> (IssueClass, CostKind) {
    let info = inst.op.info();
    match (info.unit, info.meaning) {
        (_, Meaning::EndProgram | Meaning::EndProgramSaved) => (IssueClass::Branch, CostKind::End),
        (Unit::Salu, Meaning::SetPc | Meaning::SwapPc | Meaning::Call) => {
            (IssueClass::Branch, CostKind::Branch)
        }
        (Unit::Salu, _) => (IssueClass::Scalar, CostKind::Scalar),
        (Unit::Smem, Meaning::ScalarLoad(count) | Meaning::ScalarBufferLoad(count)) => {
            // One count for a dword, two for more (CDNA3 ISA guide, "LGKM_CNT").
            cost.lgkm = if count > 1 { 2 } else { 1 };
            cost.used.mark(DeviceParameter::ScalarHit);
            (IssueClass::Scalar, CostKind::ScalarMemory)
        }
        (Unit::Smem, Meaning::ReadTime | Meaning::ReadRealTime) => {
            cost.lgkm = 2;
            cost.used.mark(DeviceParameter::ScalarHit);
            (IssueClass::Scalar, CostKind::ScalarMemory)
        }
        (Unit::Smem, _) => (IssueClass::Scalar, CostKind::ScalarMemory),
        (Unit::Valu | Unit::Trans, _) => (IssueClass::Valu, vector(device, inst, only_vectors, cost)),
        (Unit::Mfma(_), _) => (IssueClass::Valu, matrix(device, arch, inst, cost)),
        (Unit::Lds, _) => (IssueClass::Lds, lds(info, cost)),
        (Unit::Vmem | Unit::Flat, _) => (IssueClass::Vector, memory(inst, info, cost)),
        (Unit::Branch, _) => (IssueClass::Branch, CostKind::Branch),
        (Unit::Barrier, _) => {
            cost.used.mark(DeviceParameter::BarrierRelease);
            (IssueClass::Internal, CostKind::Barrier)
        }
        (Unit::Wait, _) => {
            let counts = WaitCounts::from_imm(inst.imm);
            (IssueClass::Internal, CostKind::Wait { vm: counts.vm.into(), lgkm: counts.lgkm.into() })
        }
        (Unit::Nop, Meaning::Sleep) => {
            // Between 64 (n - 1) and 64 n clk (CDNA3 ISA guide, "S_SLEEP").
            let clk = (64 * u64::from(inst.imm & 0x7f)).saturating_sub(32);
            (IssueClass::Internal, CostKind::Sleep { clk })
        }
        (Unit::Nop, _) => {
            let clk = device.count(DeviceParameter::Turn) * u64::from(inst.imm & 0xf);
            (IssueClass::Internal, CostKind::Nop { clk })
        }
        (Unit::Other, Meaning::SetPriority) => {
            (IssueClass::Internal, CostKind::Priority { level: (inst.imm & 3) as u8 })
        }
        (Unit::Other, _) => (IssueClass::Branch, CostKind::Scalar),
    }
}

fn vector(
    device: &DeviceModel,
    inst: &Inst,
    only_vectors: impl FnOnce() -> bool,
    cost: &mut InstructionCost,
) -> CostKind {
    use Meaning::*;
    let info = inst.op.info();
    let parameter = match (info.unit, info.meaning) {
        (Unit::Trans, Vector(_, Element::F64)) => DeviceParameter::TransDouble,
        (Unit::Trans, _) => DeviceParameter::Trans,
        (
            _,
            Convert(..)
            | ConvertRound(_)
            | ConvertNormalized(..)
            | PackConvert(..)
            | PackConvertNearest(..)
            | PackConvertNormalized(..)
            | ConvertStochastic(..)
            | ConvertScaled(..)
            | ConvertScaledStochastic(..),
        ) => DeviceParameter::Conversion,
        (_, Vector(Calc::Mul | Calc::MulHigh, Element::U32 | Element::I32) | MulAddWide(_)) => {
            DeviceParameter::WideMultiply
        }
        _ => DeviceParameter::Valu,
    };
    cost.used.mark(parameter);
    cost.operations = operations(info.meaning);
    let clk = device.count(parameter);
    let plain =
        info.unit == Unit::Valu && parameter == DeviceParameter::Valu && !inst.modifiers.has_second_word();
    let simple = match info.meaning {
        // Three 64-bit sources, or an f16 FMA, block the second instruction.
        Vector(calc, Element::F64) => !matches!(calc, Calc::Fma | Calc::MulAdd),
        Vector(Calc::Fma | Calc::MulAdd, Element::F16) => false,
        Vector(..) => true,
        _ => false,
    };
    let pairs = device.get(DeviceParameter::SecondValu) != 0.0 && plain && simple && only_vectors();
    // LLVM's list of instructions that never co-issue with a matrix instruction, except for transcendental
    // ones (PYHIP) and conversions (GT), which were measured to do so.
    let never = matches!(info.meaning, Packed(..) | PackedMove | Dot(_))
        || matches!(info.meaning, Vector(Calc::QuadSumAbsDiff | Calc::MaskedQuadSumAbsDiff, _));
    if never {
        cost.used.mark(DeviceParameter::PackedAfterMatrix);
    }
    CostKind::Valu { clk, pairs, overlaps: !never }
}

/// Operations per lane, as performance figures count them.
fn operations(meaning: Meaning) -> u64 {
    use Element::{Bf16, F16, F32, F64, I4, I8, I16, U4, U8, U16};
    let one = |calc| match calc {
        Calc::Fma | Calc::MulAdd | Calc::MulAddLegacy => 2,
        Calc::Add | Calc::Sub | Calc::SubRev | Calc::Mul | Calc::MulLegacy => 1,
        _ => 0,
    };
    match meaning {
        Meaning::Vector(calc, F16 | Bf16 | F32 | F64) => one(calc),
        Meaning::Packed(calc, F16 | Bf16 | F32) => 2 * one(calc),
        Meaning::FmaMix(_) | Meaning::FmaMixHigh => 2,
        // A product and a sum for each element of a register.
        Meaning::Dot(F16 | Bf16 | I16 | U16) => 4,
        Meaning::Dot(I8 | U8) => 8,
        Meaning::Dot(I4 | U4) => 16,
        _ => 0,
    }
}

fn matrix(device: &DeviceModel, arch: Arch, inst: &Inst, cost: &mut InstructionCost) -> CostKind {
    let info = inst.op.info();
    let passes = u64::from(inst.passes(arch));
    let turn = device.count(DeviceParameter::Turn);
    let scaled = info.format == Format::MaiScaled;
    let occupancy = passes * turn;
    let (mut blocked, mut memory) = (0, device.count(DeviceParameter::MatrixMemoryLoss));
    if scaled {
        // Fetching the scales of the next instruction lies over the end of this one.
        blocked = device.count(DeviceParameter::ScaledMemoryLoss);
        memory = blocked;
        cost.turns = 2;
    }
    let (shape, on_valu, sparse) = match info.meaning {
        Meaning::Mfma(shape, _, _, Element::F64) => (Some(shape), true, false),
        Meaning::Mfma(shape, Element::F32, ..) => (Some(shape), arch.multiplies_f32_on_valu(), false),
        Meaning::Mfma(shape, ..) | Meaning::FormattedMfma(shape) => (Some(shape), false, false),
        Meaning::SparseMfma(shape, ..) => (Some(shape), false, true),
        _ => (None, false, false),
    };
    if let Some(s) = shape {
        cost.operations = 2 * u64::from(s.m) * u64::from(s.n) * u64::from(s.k) * u64::from(s.blocks);
    }
    let wide = matches!(info.meaning, Meaning::FormattedMfma(_))
        && (inst.modifiers.get_cbsz() < 2 || inst.modifiers.get_blgp() < 2);
    let loss = match (sparse, wide) {
        (true, _) => DeviceParameter::SparseWindowLoss,
        (_, true) => DeviceParameter::WideWindowLoss,
        _ => DeviceParameter::MatrixWindowLoss,
    };
    let result = if on_valu { DeviceParameter::MatrixResultOnValu } else { DeviceParameter::MatrixResult };
    cost.used.join(ParameterSet::of(&[loss, result]));
    CostKind::Matrix {
        scaled,
        sparse,
        occupancy,
        blocks: if on_valu { occupancy } else { device.count(loss).max(blocked).min(occupancy) },
        memory: memory.min(occupancy),
        // Wait states are those between the two instructions.
        result: turn * (passes + device.count(result) + 1),
        // Two passes are too short for a result to be forwarded without two wait states (LLVM,
        // GCNHazardRecognizer).
        accumulate: occupancy.max(3 * turn),
    }
}

fn lds(info: &OpInfo, cost: &mut InstructionCost) -> CostKind {
    use Meaning::*;
    let bytes = match info.meaning {
        Load(m) | Store(m) => m.bytes(),
        Atomic(_, element) | AtomicReturn(_, element) | AtomicFromLds(_, element) => {
            4 * u32::from(element.registers())
        }
        LoadTwo(dwords, _) | StoreTwo(dwords, _) | ExchangeTwo(dwords, _) | StoreFromLds(dwords) => {
            4 * u32::from(dwords)
        }
        LoadTransposed(_, registers) => 4 * u32::from(registers),
        ConditionalExchange => 8,
        _ => 4,
    };
    let kind = match info.meaning.effect() {
        Effect::Load | Effect::LoadToLds => LdsKind::Read,
        Effect::Store | Effect::StoreFromLds => LdsKind::Write,
        Effect::Atomic => LdsKind::Atomic,
        Effect::None => LdsKind::Permute,
    };
    if kind == LdsKind::Atomic {
        cost.used.mark(DeviceParameter::LdsAtomicFactor);
    }
    let latency = if bytes > 4 { DeviceParameter::LdsLatencyWide } else { DeviceParameter::LdsLatency };
    let port =
        if kind == LdsKind::Write { DeviceParameter::LdsPortWrite } else { DeviceParameter::LdsPortRead };
    cost.used.join(ParameterSet::of(&[latency, port, DeviceParameter::LdsBanks]));
    CostKind::Lds { kind, dwords: bytes.div_ceil(4) }
}

fn memory(inst: &Inst, info: &OpInfo, cost: &mut InstructionCost) -> CostKind {
    const LOAD: ParameterSet = ParameterSet::of(&[DeviceParameter::L1Latency, DeviceParameter::VectorBytes]);
    let kind = match info.meaning.effect() {
        Effect::Load => {
            cost.used.join(LOAD);
            VectorKind::Load
        }
        Effect::LoadToLds => {
            cost.used.join(LOAD);
            cost.used.mark(DeviceParameter::DirectLds);
            VectorKind::LoadToLds
        }
        Effect::Store | Effect::StoreFromLds => {
            cost.used.mark(DeviceParameter::VectorBytes);
            VectorKind::Store
        }
        Effect::Atomic => {
            cost.used.mark(DeviceParameter::AtomicLatency);
            VectorKind::Atomic
        }
        Effect::None => VectorKind::Control,
    };
    // Loads that are not to be kept skip L1 (measured on MI300X by published cache benchmarks).
    let bypasses_l1 = inst.modifiers.has_nt() || inst.modifiers.has_sc1();
    let bytes = match info.meaning {
        Meaning::Load(m) | Meaning::Store(m) | Meaning::LoadToLds(m) => m.bytes(),
        _ => 4,
    };
    CostKind::Vector { kind, bytes, bypasses_l1 }
}
