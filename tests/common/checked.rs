//! Kernels of this crate and of clang, launched in check mode with arguments that take them through all of
//! their code.

use groundswell::compile::{Parameter, Size};
use groundswell::object::ObjectFile;
use groundswell::prelude::*;
use groundswell::simulator::{CheckOptions, CheckReport, LaunchConfig, Module, SimError, Simulator};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Instructions of one wave after which something must be wrong.
const BUDGET: u64 = 1_000_000;

/// A kernel with everything that a launch needs.
pub struct Checked {
    simulator: Simulator,
    module: Module,
    kernel: String,
    config: LaunchConfig,
    kernarg: Vec<u8>,
    /// What is in memory before a launch.
    contents: Vec<(u64, Vec<u8>)>,
}

impl Checked {
    /// One launch in check mode.
    pub fn check(&self, seed: u64) -> Result<CheckReport, SimError> {
        let options = CheckOptions { seed };
        for (address, data) in &self.contents {
            self.simulator.write(*address, data)?;
        }
        self.simulator.check(&self.module, &self.kernel, self.config, &self.kernarg, &options)
    }

    /// An executable on random data; `object` is its own or a changed one.
    pub fn executable(
        executable: &Executable,
        object: &[u8],
        value: &impl Fn(Symbol) -> Option<i64>,
    ) -> Checked {
        let mut rng = StdRng::seed_from_u64(1);
        let mut simulator = Simulator::new(executable.target_id());
        let module = simulator.load(object).expect("an object");
        let mut contents = Vec::new();
        let mut kernarg = vec![0; executable.kernarg_bytes() as usize];
        for parameter in executable.parameters() {
            match parameter {
                Parameter::Buffer { dtype, shape, written, offset, .. } => {
                    let size = |size: &Size| match size {
                        Size::Static(n) => u64::from(*n),
                        Size::Dynamic(symbol) => value(*symbol).expect("bound") as u64,
                    };
                    let bytes = shape.iter().map(size).product::<u64>() * u64::from(dtype.bytes());
                    let address = simulator.alloc(bytes).expect("small");
                    if !written {
                        contents.push((address, (0..bytes).map(|_| rng.random_range(0..0x3c)).collect()));
                    }
                    kernarg[*offset as usize..][..8].copy_from_slice(&address.to_le_bytes());
                }
                Parameter::Scalar { .. } | Parameter::Log { .. } => {
                    unimplemented!("kernels with scalars or logs are launched by their tests")
                }
                Parameter::Symbol { symbol, offset } => {
                    let value = value(*symbol).expect("bound") as i32;
                    kernarg[*offset as usize..][..4].copy_from_slice(&value.to_le_bytes());
                }
            }
        }
        let config = LaunchConfig::new(executable.grid(value).expect("bound"), executable.block());
        let kernel = executable.name().to_owned();
        Checked { simulator, module, kernel, config: config.instruction_budget(BUDGET), kernarg, contents }
    }

    /// A kernel of clang's object on random data.
    pub fn clang(object: &[u8], launched: &Launched) -> Result<Checked, SimError> {
        let Launched { kernel, grid, block, dynamic_lds, buffers, numbers } = *launched;
        let mut simulator = Simulator::new(ObjectFile::parse(object).expect("clang's object").target);
        let module = simulator.load(object)?;
        let (mut kernarg, mut contents) = (Vec::new(), Vec::new());
        let mut rng = StdRng::seed_from_u64(7);
        for &(bytes, what) in buffers {
            let address = simulator.alloc(bytes as u64)?;
            let mut data: Vec<u8> = match what {
                Nothing => Vec::new(),
                Zeros => vec![0; bytes],
                Random | Sparse => (0..bytes).map(|_| rng.random_range(1..0x3c)).collect(),
            };
            if what == Sparse {
                data.chunks_mut(4).filter(|_| rng.random()).for_each(|dword| dword.fill(0));
            }
            contents.push((address, data));
            kernarg.extend(address.to_le_bytes());
        }
        numbers.iter().for_each(|n| kernarg.extend(n.to_le_bytes()));
        kernarg.resize(kernarg.len().next_multiple_of(8), 0);
        let config = LaunchConfig::new(grid, block).instruction_budget(BUDGET).dynamic_lds(dynamic_lds);
        Ok(Checked { simulator, module, kernel: kernel.to_owned(), config, kernarg, contents })
    }
}

/// What the host has written to a buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    Nothing,
    Zeros,
    Random,
    /// Every other dword zero, in no order.
    Sparse,
}

use Contents::{Nothing, Random, Sparse, Zeros};

/// A launch of one of clang's kernels.
#[derive(Copy, Clone, Debug)]
pub struct Launched {
    pub kernel: &'static str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_lds: u32,
    /// Bytes and contents; they come first among the arguments.
    pub buffers: &'static [(usize, Contents)],
    /// Arguments after the buffers.
    pub numbers: &'static [u32],
}

const fn launch(
    kernel: &'static str,
    [groups, items]: [u32; 2],
    buffers: &'static [(usize, Contents)],
    numbers: &'static [u32],
) -> Launched {
    Launched { kernel, grid: [groups, 1, 1], block: [items, 1, 1], dynamic_lds: 0, buffers, numbers }
}

const fn in_grid(launched: Launched, grid: [u32; 3], block: [u32; 3]) -> Launched {
    Launched { grid, block, ..launched }
}

/// Files of kernels and how each of their kernels is launched.
pub const CLANG: [(&str, &[Launched]); 2] = [("sim/kernels.c", SMALL), ("data/clang_kernels.c", MORE)];

const SMALL: &[Launched] = &[
    launch("saxpy", [4, 256], &[(4000, Random), (4000, Random)], &[0x3f80_0000, 1000]),
    in_grid(
        launch("transpose", [0, 0], &[(4 * 70 * 45, Nothing), (4 * 70 * 45, Random)], &[70, 45]),
        [3, 2, 1],
        [32, 8, 1],
    ),
    launch("reduce", [1, 256], &[(4, Nothing), (4 * 6001, Random)], &[6001]),
    launch("histogram", [16, 64], &[(64, Random), (4096, Random)], &[]),
    launch("divide", [4, 64], &[(1024, Nothing), (1024, Random), (1024, Random)], &[]),
    launch("divide_double", [2, 64], &[(1024, Nothing), (1024, Random), (1024, Random)], &[]),
    launch("root", [4, 64], &[(1024, Nothing), (1024, Random)], &[]),
    launch("integers", [2, 64], &[(4096, Nothing), (512, Random), (512, Random)], &[]),
    launch("collatz", [2, 64], &[(400, Nothing)], &[100]),
    launch("halves", [2, 64], &[(256, Nothing), (256, Random), (256, Random)], &[]),
    launch("shuffle", [1, 64], &[(256, Nothing), (256, Random)], &[]),
    launch("scratch", [1, 64], &[(256, Nothing), (256, Random)], &[20]),
    launch("bytes", [2, 64], &[(128, Nothing), (129, Random)], &[]),
    in_grid(
        launch("gemm", [0, 0], &[(4 * 48 * 32, Nothing), (6144, Random), (4096, Random)], &[32, 64]),
        [2, 3, 1],
        [64, 1, 1],
    ),
];

const MORE: &[Launched] = &[
    launch("saxpy", [4, 256], &[(4000, Random), (4000, Random)], &[0x3f80_0000, 1000]),
    launch("saxpy_wide", [2, 256], &[(8000, Random), (8000, Random)], &[0x3f80_0000, 500]),
    launch("reduction", [1, 256], &[(4, Nothing), (4 * 6001, Random)], &[6001]),
    launch("reduction_in_a_wave", [1, 64], &[(4, Nothing), (256, Random)], &[]),
    in_grid(
        launch("transpose", [0, 0], &[(4 * 70 * 45, Nothing), (4 * 70 * 45, Random)], &[70, 45]),
        [3, 2, 1],
        [32, 8, 1],
    ),
    in_grid(
        launch("gemm", [0, 0], &[(8192, Nothing), (8192, Random), (4096, Random)], &[32, 64]),
        [1, 2, 1],
        [64, 1, 1],
    ),
    launch("gemm_types", [1, 64], &[(1024, Random), (2048, Random), (1024, Random), (1024, Random)], &[]),
    launch("histogram", [2, 256], &[(1024, Random), (4000, Random)], &[1000]),
    launch("atomics", [1, 64], &[(16, Random), (512, Random), (256, Nothing), (256, Random)], &[]),
    launch("scan", [1, 1024], &[(4096, Nothing), (4096, Random)], &[]),
    launch("halves", [1, 64], &[(256, Nothing), (256, Random), (256, Random), (132, Random)], &[]),
    launch("narrow", [1, 64], &[(101, Random), (204, Random), (404, Random)], &[100]),
    launch("doubles", [1, 64], &[(512, Nothing), (1024, Random), (264, Random)], &[]),
    launch("integers", [1, 64], &[(2048, Nothing), (512, Sparse), (256, Random)], &[]),
    launch("stack", [1, 64], &[(256, Nothing), (256, Random)], &[20]),
    launch("calls", [1, 64], &[(512, Random)], &[5]),
    launch("dots", [1, 64], &[(256, Nothing), (260, Random), (260, Random)], &[]),
    Launched {
        dynamic_lds: 4 * 192,
        ..launch("dynamic_lds", [2, 192], &[(4 * 384, Nothing), (4 * 384, Random)], &[])
    },
    launch("identities", [3, 128], &[(16 * 384, Nothing)], &[]),
    launch("wave_operations", [1, 64], &[(2048, Nothing), (256, Random)], &[]),
    launch(
        "atomics_of_all_kinds",
        [1, 256],
        &[(4 * 302, Zeros), (8, Zeros), (40, Zeros), (4 * 301, Zeros)],
        &[],
    ),
    launch("float_atomics", [1, 64], &[(260, Zeros), (32, Zeros), (8, Zeros)], &[]),
    launch("flat_pointers", [1, 64], &[(256, Nothing), (256, Random)], &[]),
    launch("recursion", [1, 64], &[(256, Nothing)], &[]),
    launch("function_pointers", [1, 64], &[(256, Nothing), (256, Random)], &[]),
    launch("buffers", [1, 64], &[(2400, Zeros), (2400, Random)], &[1000]),
    launch("eight_bit_floats", [1, 64], &[(1024, Zeros), (256, Zeros), (256, Random)], &[]),
    launch("lines", [1, 64], &[(2048, Nothing), (2048, Random)], &[3]),
    launch("loads_to_lds", [1, 64], &[(256, Nothing), (1024, Random)], &[]),
];
