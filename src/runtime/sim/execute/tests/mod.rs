//! Unit tests of the units: short programs from the encoder, run on one wave.

mod alu;
mod footprint;
mod fuzz;
mod matrix;
mod matrix_rows;
mod memory;
mod memory_forms;

use crate::codegen::isa::{Arch, Inst, Opcode, Operand, encode};

use super::super::error::Stopped;
use super::super::memory::{Allocation, Memory};
use super::super::program::Program;
use super::super::wave::{EXEC, LANES, Row, VCC, Wave};
use super::{Cache, Context, Lds, run};

/// MODE with denormals kept, DX10 clamp and IEEE mode.
const MODE: u32 = 0x3f0;

fn v(n: u32) -> Operand {
    Operand::vgpr(n)
}

fn s(n: u32) -> Operand {
    Operand::sgpr(n)
}

fn int(value: i32) -> Operand {
    Operand::inline_integer(value).expect("tests use small constants here")
}

/// Everything that one wave needs.
struct Machine {
    wave: Wave,
    memory: Memory,
    lds: Lds,
    arch: Arch,
}

impl Machine {
    /// A wave with all lanes active and registers v0 to v63, whose v0 holds the lane's number.
    fn new() -> Machine {
        let mut wave = Wave::new();
        wave.rows = vec![[0; LANES]; 64];
        wave.rows[0] = std::array::from_fn(|l| l as u32);
        wave.mode = MODE;
        wave.set_pair(EXEC, u64::MAX);
        let mut lds = Lds::default();
        lds.reset(4096);
        Machine { wave, memory: Memory::new(), lds, arch: Arch::Gfx942 }
    }

    /// The same for another chip.
    fn on(arch: Arch) -> Machine {
        Machine { arch, ..Machine::new() }
    }

    /// Runs the instructions and `s_endpgm`.
    fn run(&mut self, insts: &[Inst]) -> Result<(), Stopped> {
        let mut words = Vec::new();
        for inst in insts.iter().chain(&[Inst::new(Opcode::SEndpgm, &[])]) {
            encode(inst, self.arch, &mut words).unwrap_or_else(|error| panic!("{inst}: {error}"));
        }
        self.run_words(&words, 10_000)
    }

    /// The words decoded, and registers for them.
    fn program(&mut self, words: &[u32]) -> Program {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let program = Program::new(&bytes, self.arch, 0x1000, &[0]);
        // Tests use few registers; accumulation VGPRs lie behind the program's last VGPR.
        self.wave.rows.resize(self.wave.rows.len().max(program.rows()), [0; LANES]);
        program
    }

    /// Runs any words.
    fn run_words(&mut self, words: &[u32], budget: u64) -> Result<(), Stopped> {
        let program = self.program(words);
        self.run_program(&program, budget)
    }

    fn run_program(&mut self, program: &Program, budget: u64) -> Result<(), Stopped> {
        self.wave.pc = 0;
        self.wave.progress = super::super::wave::Progress::Running;
        let extra: [Allocation; 0] = [];
        let view = self.memory.view(&extra);
        let mut caches = <[Cache; 2]>::default();
        let context =
            &mut Context { program, memory: &view, lds: &mut self.lds, caches: &mut caches, budget };
        run(&mut self.wave, context)
    }

    /// Runs one instruction that must not fault, and returns v`register`.
    fn row(&mut self, inst: Inst, register: usize) -> Row {
        self.run(&[inst]).unwrap_or_else(|stopped| panic!("{inst}: {:?}", stopped.kind));
        self.wave.rows[register]
    }

    fn vcc(&self) -> u64 {
        self.wave.pair(VCC)
    }
}
