//! Speed of the simulator's run mode, and of check mode on the same GEMM.
//!
//! What the throughput counts is in the group's name: lane operations (at least 1e9 per second are wanted),
//! matrix instructions (5e6), and one GEMM of 1024 x 1024 x 1024 in f16, of which the time counts (0.25 s;
//! check mode: at most 8 times as long). The groups of single instructions count instructions of a wave.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use groundswell::isa::{Arch, Inst, Modifiers, Opcode, Operand, encode};
use groundswell::kernels::Gemm;
use groundswell::object::{KernelCode, KernelInfo, KernelResources, WorkgroupSize, write};
use groundswell::prelude::*;
use groundswell::simulator::{CheckOptions, LaunchConfig, Module, Simulator};

const WORKGROUPS: u32 = 32;
const WAVES: u32 = 4;
const ITERATIONS: u32 = 100;

fn v(n: u32) -> Operand {
    Operand::vgpr(n)
}

fn s(n: u32) -> Operand {
    Operand::sgpr(n)
}

fn int(value: i32) -> Operand {
    Operand::inline_integer(value).expect("the benchmark uses small constants")
}

/// A code object whose kernel `bench` runs `body` in a loop of [`ITERATIONS`], with 4 * lane in v1 and a
/// buffer descriptor for the kernel's only argument in s[4:7].
fn kernel(body: &[Inst]) -> Vec<u8> {
    let mut insts = vec![
        Inst::new(Opcode::SLoadDwordx2, &[s(4), s(0), Operand::NONE]),
        Inst::new(Opcode::SMovB32, &[s(6), Operand::LITERAL]).imm(1 << 16),
        Inst::new(Opcode::SMovB32, &[s(7), Operand::LITERAL]).imm(0x0002_7000),
        Inst::new(Opcode::SMovB32, &[s(8), Operand::LITERAL]).imm(ITERATIONS),
        Inst::new(Opcode::VLshlrevB32, &[v(1), int(2), v(0)]),
    ];
    let start = insts.len();
    insts.extend_from_slice(body);
    insts.push(Inst::new(Opcode::SSubU32, &[s(8), s(8), int(1)]));
    insts.push(Inst::new(Opcode::SCmpLgU32, &[s(8), int(0)]));
    let mut words = Vec::new();
    let mut loop_start = 0;
    for (index, inst) in insts.iter().enumerate() {
        if index == start {
            loop_start = words.len();
        }
        encode(inst, Arch::Gfx942, &mut words).expect("a legal instruction");
    }
    let back = loop_start as i32 - (words.len() as i32 + 1);
    encode(&Inst::new(Opcode::SCbranchScc1, &[]).imm(back as u32 & 0xffff), Arch::Gfx942, &mut words)
        .expect("a branch");
    encode(&Inst::new(Opcode::SEndpgm, &[]), Arch::Gfx942, &mut words).expect("an end");
    let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let info = KernelInfo {
        name: "bench".into(),
        resources: KernelResources {
            vgprs: 128,
            sgprs: 16,
            lds_bytes: 16_384,
            kernarg_bytes: 8,
            ..KernelResources::default()
        },
        arguments: [].into(),
        workgroup_size: WorkgroupSize::AtMost(64 * WAVES),
    };
    write(Target::GFX942, &[KernelCode { info: &info, code: &code, lines: None }]).expect("a valid object")
}

struct Loaded {
    simulator: Simulator,
    module: Module,
    kernarg: Vec<u8>,
}

fn load(body: &[Inst]) -> Loaded {
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(&kernel(body)).expect("the object loads");
    let buffer = simulator.alloc(1 << 16).expect("small");
    Loaded { simulator, module, kernarg: buffer.to_le_bytes().to_vec() }
}

impl Loaded {
    fn run(&self) {
        let config = LaunchConfig::new([WORKGROUPS, 1, 1], [64 * WAVES, 1, 1]);
        self.simulator.launch(&self.module, "bench", config, &self.kernarg).expect("the kernel runs");
    }
}

/// 4 x 4 tiles: four A and four B sources, sixteen results, as in a GEMM.
fn tiles(op: Opcode, result_registers: u32) -> Vec<Inst> {
    let mut body = Vec::new();
    for i in 0..4 {
        for j in 0..4 {
            let d = v(32 + (4 * i + j) * result_registers);
            body.push(Inst::new(op, &[d, v(8 + 2 * i), v(16 + 2 * j), d]));
        }
    }
    body
}

/// Sixteen instructions of the kinds that vector code is made of.
fn vector_mix() -> Vec<Inst> {
    let ops: [(Opcode, usize); 8] = [
        (Opcode::VFmaF32, 3),
        (Opcode::VAddF32, 2),
        (Opcode::VAndB32, 2),
        (Opcode::VMulF32, 2),
        (Opcode::VAddU32, 2),
        (Opcode::VMaxF32, 2),
        (Opcode::VLshlrevB32, 2),
        (Opcode::VXorB32, 2),
    ];
    let insts = ops.iter().cycle().take(16).zip(0..).map(|(&(op, sources), i)| {
        let operands = [v(32 + i), v(2 + i % 4), v(8 + i), v(33 + i)];
        Inst::new(op, &operands[..1 + sources])
    });
    insts.collect()
}

/// Kernels in whose loop there is one kind of instruction.
fn instructions(c: &mut Criterion) {
    let offen = Modifiers::new().offen();
    let bodies: [(&str, Vec<Inst>); 7] = [
        ("mfma_16x16x32_i8", tiles(Opcode::VMfmaI32_16x16x32I8, 4)),
        (
            "fma_f32",
            (0..16).map(|i| Inst::new(Opcode::VFmaF32, &[v(32 + i), v(2), v(3), v(4 + i)])).collect(),
        ),
        ("add_u32", (0..16).map(|i| Inst::new(Opcode::VAddU32, &[v(32 + i), v(0), v(4 + i)])).collect()),
        ("mul_sgpr", (0..16).map(|i| Inst::new(Opcode::VMulF32, &[v(32 + i), s(8), v(4 + i)])).collect()),
        ("s_add", (0..16).map(|i| Inst::new(Opcode::SAddU32, &[s(9), s(9), int(i)])).collect()),
        (
            "ds_read_b128",
            (0..16).map(|i| Inst::new(Opcode::DsReadB128, &[v(32 + 4 * i), v(1)]).imm(16 * i)).collect(),
        ),
        (
            "buffer_load_dwordx4",
            (0..16)
                .map(|i| {
                    let operands = [v(32 + 4 * i), v(1), s(4), int(0)];
                    Inst::new(Opcode::BufferLoadDwordx4, &operands).modifiers(offen).imm(16 * i)
                })
                .collect(),
        ),
    ];
    for (name, body) in &bodies {
        measure(c, "instructions", name, body, 1);
    }
}

/// Measures the kernel with this body; one instruction counts as `factor`.
fn measure(c: &mut Criterion, group: &str, name: &str, body: &[Inst], factor: u64) {
    let loaded = load(body);
    let mut group = c.benchmark_group(group);
    let executed = body.len() as u64 * u64::from(WORKGROUPS * WAVES * ITERATIONS);
    group.throughput(Throughput::Elements(executed * factor));
    group.bench_function(name, |b| b.iter(|| loaded.run()));
    group.finish();
}

fn kernels(c: &mut Criterion) {
    measure(c, "lane_operations", "valu", &vector_mix(), 64);
    measure(c, "mfma_instructions", "16x16x16_f16", &tiles(Opcode::VMfmaF32_16x16x16F16, 4), 1);
}

const EDGE: i64 = 1024;

fn gemm(c: &mut Criterion) {
    let kernel = Gemm::any_shape().kernel().expect("a valid kernel");
    let mut options = Options::new(Target::GFX942);
    let names = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    for (symbol, value) in names.into_iter().zip([EDGE, EDGE, EDGE, 128, 128, 32]) {
        options = options.set(symbol, value);
    }
    let executable = kernel.compile(&options).expect("the kernel compiles");
    let device = Device::simulator(Target::GFX942);
    let buffers = [(F16, 1), (F16, 2), (F32, 3)].map(|(dtype, seed)| {
        let tensor = Tensor::random(&[EDGE as usize, EDGE as usize], dtype, seed).expect("random values");
        device.upload_tensor(&tensor).expect("memory is large enough")
    });
    let mut launch = device.launch(&executable);
    for buffer in &buffers {
        launch = launch.buffer(buffer);
    }
    let mut group = c.benchmark_group("gemm_f16");
    group.throughput(Throughput::Elements((2 * EDGE * EDGE * EDGE) as u64));
    group.bench_function("1024", |b| b.iter(|| launch.run().expect("the kernel runs")));
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(executable.object()).expect("the object loads");
    let mut kernarg = Vec::new();
    for bytes in [2, 2, 4] {
        let size = (EDGE * EDGE * bytes) as usize;
        let address = simulator.alloc(size as u64).expect("memory is large enough");
        simulator.write(address, &vec![0x11; size]).expect("just allocated");
        kernarg.extend(address.to_le_bytes());
    }
    let config = LaunchConfig::new([EDGE as u32 / 128, EDGE as u32 / 128, 1], executable.block());
    let mut seed = 0;
    group.bench_function("1024_check", |b| {
        b.iter(|| {
            seed += 1;
            let options = CheckOptions { seed };
            let report = simulator.check(&module, executable.name(), config, &kernarg, &options);
            assert!(report.expect("the kernel runs").is_clean());
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(std::time::Duration::from_secs(2));
    targets = kernels, gemm, instructions
}
criterion_main!(benches);
