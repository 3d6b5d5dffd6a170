//! Unit tests of the units: short programs from the encoder, run on one wave.

mod alu;
mod conversions;
mod fast;
mod floats;
mod footprint;
mod forms;
mod fuzz;
mod integers;
mod matrix;
mod matrix_rows;
mod memory;
mod memory_forms;
mod modes;
mod scalars;
mod table;

use crate::codegen::isa::{Arch, Field, Inst, Modifiers, Opcode, Operand, OperandClass, encode};

use super::super::error::Stopped;
use super::super::memory::{DeviceAllocation, DeviceMemory};
use super::super::program::{Program, SCRATCH};
use super::super::wave::{EXEC, LANES, VCC, VectorRow, Wave};
use super::private::{FLAT_SCRATCH, SCRATCH_WINDOW};
use super::{ExecutionContext, Lds, WidenedCache, run};

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
    memory: DeviceMemory,
    lds: Lds,
    arch: Arch,
}

impl Machine {
    /// A wave with all lanes active and registers v0 to v63, whose v0 holds the lane's number.
    fn new() -> Machine {
        let mut wave = Wave::new();
        wave.rows = vec![[0; LANES]; 64 + SCRATCH];
        wave.rows[0] = std::array::from_fn(|l| l as u32);
        wave.mode = MODE;
        wave.set_pair(EXEC, u64::MAX);
        wave.set_pair(FLAT_SCRATCH, SCRATCH_WINDOW);
        let mut lds = Lds::default();
        lds.reset(4096);
        Machine { wave, memory: DeviceMemory::new(), lds, arch: Arch::Gfx942 }
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

    /// The same on any chip.
    fn run_on(&mut self, arch: Arch, insts: &[Inst]) -> Result<(), Stopped> {
        self.arch = arch;
        self.run(insts)
    }

    /// The words decoded, and registers for them.
    fn program(&mut self, words: &[u32]) -> Program {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let program = Program::new(&bytes, self.arch, 0x1000, &[0]);
        // Tests use few registers; accumulation VGPRs lie after the program's last VGPR.
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
        let extra: [DeviceAllocation; 0] = [];
        let view = self.memory.view(&extra);
        let mut caches = <[WidenedCache; 2]>::default();
        let context =
            &mut ExecutionContext { program, memory: &view, lds: &mut self.lds, caches: &mut caches, budget };
        run(&mut self.wave, context)
    }

    /// Runs one instruction that must not fault, and returns v`register`.
    fn row(&mut self, inst: Inst, register: usize) -> VectorRow {
        self.run(&[inst]).unwrap_or_else(|stopped| panic!("{inst}: {:?}", stopped.kind));
        self.wave.rows[register]
    }

    fn vcc(&self) -> u64 {
        self.wave.pair(VCC)
    }
}

/// Runs single vector instructions whose sources are the same in every lane.
#[derive(Copy, Clone)]
struct Alu {
    arch: Arch,
    mode: u32,
    modifiers: Modifiers,
    /// What the registers of the result hold before.
    old: u32,
}

/// First register of results and of sources in [`Alu`].
const RESULT: u32 = 4;
const SOURCES: u32 = 40;

impl Alu {
    fn on(arch: Arch) -> Alu {
        Alu { arch, mode: MODE, modifiers: Modifiers::new(), old: 0 }
    }

    fn modifiers(mut self, modifiers: Modifiers) -> Alu {
        self.modifiers = modifiers;
        self
    }

    fn mode(mut self, mode: u32) -> Alu {
        self.mode = mode;
        self
    }

    fn old(mut self, old: u32) -> Alu {
        self.old = old;
        self
    }

    /// Registers of the result, given those of each source.
    fn registers(&self, op: Opcode, sources: &[&[u32]]) -> Vec<u32> {
        let mut m = Machine::new();
        m.wave.mode = self.mode;
        m.wave.rows = vec![[0; LANES]; 160];
        m.wave.rows[RESULT as usize..SOURCES as usize].fill([self.old; LANES]);
        let (mut next, mut left) = (SOURCES, sources.iter());
        let mut width = 1;
        let operands: Vec<Operand> = (op.info().operands.iter())
            .map(|spec| match (spec.field, spec.class) {
                (Field::Dst, OperandClass::Vgpr) => {
                    width = usize::from(spec.width);
                    v(RESULT)
                }
                (_, OperandClass::Mask | OperandClass::MaskSource) => Operand::VCC,
                _ => {
                    let values = left.next().expect("a value for each source");
                    let first = next;
                    next += values.len().next_multiple_of(2) as u32;
                    for (row, &value) in m.wave.rows[first as usize..].iter_mut().zip(*values) {
                        *row = [value; LANES];
                    }
                    v(first)
                }
            })
            .collect();
        let inst = Inst::new(op, &operands).modifiers(self.modifiers);
        m.run_on(self.arch, &[inst]).unwrap_or_else(|stopped| panic!("{inst}: {:?}", stopped.kind));
        let first = RESULT as usize;
        assert!(m.wave.rows[first..first + width].iter().all(|row| row.iter().all(|v| *v == row[0])));
        m.wave.rows[first..first + width].iter().map(|row| row[0]).collect()
    }

    /// A 32-bit result of 32-bit sources.
    fn word(&self, op: Opcode, sources: &[u32]) -> u32 {
        let sources: Vec<&[u32]> = sources.iter().map(std::slice::from_ref).collect();
        self.registers(op, &sources)[0]
    }

    /// An f32 result of f32 sources.
    fn float(&self, op: Opcode, sources: &[f32]) -> f32 {
        let sources: Vec<u32> = sources.iter().map(|v| v.to_bits()).collect();
        f32::from_bits(self.word(op, &sources))
    }

    /// An f64 result of f64 sources.
    fn double(&self, op: Opcode, sources: &[f64]) -> f64 {
        let pairs: Vec<[u32; 2]> = sources.iter().map(|v| pair(v.to_bits())).collect();
        let sources: Vec<&[u32]> = pairs.iter().map(|p| p.as_slice()).collect();
        let result = self.registers(op, &sources);
        f64::from_bits(u64::from(result[0]) | u64::from(result[1]) << 32)
    }
}

/// Both registers of a 64-bit value.
fn pair(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// Bits of an f16.
fn half_bits(value: f32) -> u32 {
    half::f16::from_f32(value).to_bits().into()
}
