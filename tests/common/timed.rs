//! Kernels for time mode, loaded and ready to be timed: a loop around any instructions, a copy, and this
//! crate's GEMM.

use groundswell::assembler::{AssemblerOptions, assemble};
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::{Executable, Kernel, Options, Schedule, symbols};
use groundswell::simulator::time::{ClockChoice, DeviceModel, TimeOptions, TimeReport};
use groundswell::simulator::{LaunchConfig, Module, SimError, Simulator};

/// A kernel on a simulated device, with its launch.
pub struct Timed {
    pub simulator: Simulator,
    pub module: Module,
    pub kernel: String,
    pub config: LaunchConfig,
    pub kernarg: Vec<u8>,
}

impl Timed {
    pub fn run(&self, options: &TimeOptions) -> Result<TimeReport, SimError> {
        self.simulator.time(&self.module, &self.kernel, self.config, &self.kernarg, options)
    }
}

/// A kernel `k` that repeats `body` `iterations` times: buffer address in s[4:5], work-item in v0, workgroup
/// in s2, zero in most registers.
pub struct Loop<'a> {
    pub device: &'static DeviceModel,
    pub prologue: &'a str,
    pub body: String,
    pub iterations: u32,
    pub waves: u32,
    pub workgroups: u32,
    /// Contents of the buffer.
    pub buffer: &'a [u8],
    /// Bytes of the buffer, if there are more than its contents; the others are zero.
    pub room: u64,
    /// Bytes of another buffer, which nothing is loaded from.
    pub results: u64,
    pub lds: u32,
    /// Vector registers, and AGPRs from `accumulators` on.
    pub registers: u32,
    pub accumulators: u32,
}

impl Default for Loop<'_> {
    fn default() -> Self {
        Loop {
            device: DeviceModel::MI300X,
            prologue: "",
            body: String::new(),
            iterations: 1,
            waves: 1,
            workgroups: 1,
            buffer: &[],
            room: 0,
            results: 0,
            lds: 32768,
            registers: 128,
            accumulators: 128,
        }
    }
}

impl Loop<'_> {
    fn text(&self) -> String {
        format!(
            "    .amdgcn_target \"amdgcn-amd-amdhsa--{target}\"
    .globl k
    .p2align 8
    .type k,@function
k:
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    {prologue}
    s_movk_i32 s10, {iterations}
    .p2alignl 6, 3212836864
loop:
{body}
    s_sub_u32 s10, s10, 1
    s_cmp_lg_u32 s10, 0
    s_cbranch_scc1 loop
    s_endpgm
    .size k, . - k
    .rodata
    .p2align 6
    .amdhsa_kernel k
      .amdhsa_next_free_vgpr {registers}
      .amdhsa_next_free_sgpr 96
      .amdhsa_accum_offset {accumulators}
      .amdhsa_group_segment_fixed_size {lds}
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_kernarg_size 16
    .end_amdhsa_kernel
",
            registers = self.registers,
            accumulators = self.accumulators,
            lds = self.lds,
            target = self.device.target,
            prologue = self.prologue,
            iterations = self.iterations,
            body = self.body,
        )
    }

    pub fn load(&self) -> Result<Timed, SimError> {
        let text = self.text();
        let object = assemble(&text, AssemblerOptions::default())
            .unwrap_or_else(|faults| panic!("{faults}\n{}", &text[..text.len().min(2000)]))
            .object;
        let mut simulator = Simulator::new(self.device.target);
        let module = simulator.load(&object)?;
        let buffer = simulator.alloc(self.room.max(self.buffer.len() as u64).max(64))?;
        simulator.write(buffer, self.buffer)?;
        let config = LaunchConfig::new([self.workgroups, 1, 1], [64 * self.waves, 1, 1]);
        let results = if self.results == 0 { 0 } else { simulator.alloc(self.results)? };
        let kernarg = [buffer, results].map(u64::to_le_bytes).concat();
        Ok(Timed { simulator, module, kernel: "k".to_owned(), config, kernarg })
    }

    pub fn run_with(&self, options: &TimeOptions) -> Result<TimeReport, SimError> {
        self.load()?.run(options)
    }

    pub fn run(&self) -> TimeReport {
        self.run_at(ClockChoice::Sustained)
    }

    /// The same at another clock.
    pub fn run_at(&self, clock: ClockChoice) -> TimeReport {
        let options = TimeOptions::new(self.device).clock(clock);
        self.run_with(&options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Clk of one pass through the body: of the fastest wave, the slowest wave, and the compute unit.
    pub fn slope(&mut self, iterations: [u32; 2]) -> [f64; 3] {
        self.slope_at(ClockChoice::Sustained, iterations)
    }

    /// The same at another clock.
    pub fn slope_at(&mut self, clock: ClockChoice, iterations: [u32; 2]) -> [f64; 3] {
        let [few, many] = iterations.map(|n| {
            self.iterations = n;
            let report = self.run_at(clock);
            let lengths = report.unit.waves.iter().map(|w| w.end - w.start);
            let least = lengths.clone().min().expect("a wave");
            [least, lengths.max().expect("a wave"), report.unit.clk]
        });
        let steps = f64::from(iterations[1] - iterations[0]);
        [0, 1, 2].map(|n| (many[n] as f64 - few[n] as f64) / steps)
    }
}

/// Asserts that the model comes close to a published figure.
#[track_caller]
pub fn close(what: &str, got: f64, expected: f64, tolerance: f64) {
    eprintln!("{what:<50} expected {expected:8.2}  got {got:8.2}");
    assert!((got - expected).abs() <= tolerance * expected, "{what}: {got} instead of {expected}");
}

/// The same instruction many times.
pub fn repeat(text: &str, times: usize) -> String {
    format!("    {text}\n").repeat(times)
}

/// A copy of 16 bytes per work-item, 256 of them in a workgroup.
pub fn copy(device: &'static DeviceModel, workgroups: u32) -> Timed {
    let text = format!(
        "    .amdgcn_target \"amdgcn-amd-amdhsa--{target}\"
    .globl copy
    .p2align 8
    .type copy,@function
copy:
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    v_lshlrev_b32 v1, 4, v0
    s_lshl_b32 s3, s2, 12
    v_add_u32 v1, s3, v1
    s_waitcnt lgkmcnt(0)
    global_load_dwordx4 v[4:7], v1, s[4:5]
    s_waitcnt vmcnt(0)
    global_store_dwordx4 v1, v[4:7], s[6:7]
    s_endpgm
    .size copy, . - copy
    .rodata
    .p2align 6
    .amdhsa_kernel copy
      .amdhsa_next_free_vgpr 8
      .amdhsa_next_free_sgpr 8
      .amdhsa_accum_offset 8
      .amdhsa_user_sgpr_kernarg_segment_ptr 1
      .amdhsa_kernarg_size 16
    .end_amdhsa_kernel
",
        target = device.target
    );
    let object = assemble(&text, AssemblerOptions::default()).expect("the copy assembles").object;
    let mut simulator = Simulator::new(device.target);
    let module = simulator.load(&object).expect("the copy loads");
    let bytes = u64::from(workgroups) * 4096;
    let [from, to] = [bytes, bytes].map(|n| simulator.alloc(n).expect("memory for the copy"));
    let kernarg: Vec<u8> = [from, to].iter().flat_map(|a| a.to_le_bytes()).collect();
    let config = LaunchConfig::new([workgroups, 1, 1], [256, 1, 1]);
    Timed { simulator, module, kernel: "copy".to_owned(), config, kernarg }
}

/// This crate's f16 GEMM of `edge` cubed in tiles of `block` (M, N, K), as it is written, by four waves.
pub fn gemm(device: &'static DeviceModel, edge: i64, block: [i64; 3]) -> Timed {
    scheduled_gemm(device, edge, block, Waves::new(2, 2), Schedule::None)
}

/// The same by other waves and with a schedule.
pub fn scheduled_gemm(
    device: &'static DeviceModel,
    edge: i64,
    block: [i64; 3],
    waves: Waves,
    schedule: Schedule,
) -> Timed {
    shaped_gemm(device, [edge; 3], block, waves, schedule)
}

/// The same of matrices that are not square: `shape` is M, N, K.
pub fn shaped_gemm(
    device: &'static DeviceModel,
    shape: [i64; 3],
    block: [i64; 3],
    waves: Waves,
    schedule: Schedule,
) -> Timed {
    let kernel = Gemm::any_shape().waves(waves).kernel().expect("a valid kernel");
    let [m, n, k] = shape;
    product(device, &kernel, [shape, block], schedule, &[m * k * 2, n * k * 2, m * n * 4])
}

/// A matrix product of a shape in tiles (M, N, K each), whose buffers have so many bytes.
pub fn product(
    device: &'static DeviceModel,
    kernel: &Kernel,
    [shape, block]: [[i64; 3]; 2],
    schedule: Schedule,
    buffers: &[i64],
) -> Timed {
    let mut options = Options::new(device.target).schedule(schedule);
    let names = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    for (symbol, value) in names.into_iter().zip(shape.into_iter().chain(block)) {
        options = options.set(symbol, value);
    }
    let executable = kernel.compile(&options).expect("the kernel compiles");
    let [m, n, _] = shape;
    let grid = [(m / block[0]) as u32, (n / block[1]) as u32, 1];
    launched(&executable, device, grid, (buffers, &[]))
}

/// A launch of an executable with buffers of so many bytes, and then the bytes of its scalars.
pub fn launched(
    executable: &Executable,
    device: &'static DeviceModel,
    grid: [u32; 3],
    (buffers, scalars): (&[i64], &[u8]),
) -> Timed {
    let mut simulator = Simulator::new(device.target);
    let module = simulator.load(executable.object()).expect("the object loads");
    let mut kernarg = Vec::new();
    for &bytes in buffers {
        let address = simulator.alloc(bytes as u64).expect("memory is large enough");
        kernarg.extend(address.to_le_bytes());
    }
    kernarg.extend(scalars);
    let config = LaunchConfig::new(grid, executable.block());
    Timed { simulator, module, kernel: executable.name().to_owned(), config, kernarg }
}
