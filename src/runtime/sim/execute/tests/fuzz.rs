//! No code makes the simulator panic: random words, and random operands for every instruction of the table.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::codegen::isa::{Arch, decode};

use super::super::super::wave::EXEC;
use super::super::footprint::footprints;
use super::super::private::{FLAT_SCRATCH, SCRATCH_WINDOW, private_descriptor};
use super::Machine;

/// A wave with random registers, among them the address of an allocation and a descriptor of it.
fn machine(rng: &mut StdRng, arch: Arch) -> Machine {
    let mut m = Machine::on(arch);
    let base = m.memory.allocate(4096).expect("small");
    rng.fill(&mut m.wave.s[..]);
    for first in (0..100).step_by(8) {
        m.wave.set_pair(first, base);
        m.wave.s[first + 2] &= 0x1fff;
        // Some descriptors are of private memory, whole or nearly.
        if rng.random_range(0..4) == 0 {
            m.wave.s[first..first + 4].copy_from_slice(&private_descriptor(SCRATCH_WINDOW));
        }
    }
    for row in &mut m.wave.rows {
        rng.fill(&mut row[..]);
        let small = rng.random_range(0..32);
        row.iter_mut().for_each(|v| *v >>= small);
    }
    m.wave.private_words = 4;
    m.wave.private = vec![0; 4 * 64];
    m.wave.set_pair(FLAT_SCRATCH, SCRATCH_WINDOW);
    let exec = if rng.random() { u64::MAX } else { rng.random() };
    m.wave.set_pair(EXEC, exec);
    m
}

#[test]
fn random_words_never_panic() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..500 {
        let mut words = [0u32; 32];
        rng.fill(&mut words);
        let _ = machine(&mut rng, Arch::ALL[round % Arch::ALL.len()]).run_words(&words, 200);
    }
}

#[test]
fn random_instructions_never_panic() {
    let mut rng = StdRng::seed_from_u64(2);
    let mut executed = 0;
    let mut round = 0;
    while executed < 60_000 {
        let arch = Arch::ALL[round % Arch::ALL.len()];
        round += 1;
        let mut m = machine(&mut rng, arch);
        for _ in 0..50 {
            // Encodings are sparse in their top bits; what they hold further down may be anything.
            let top = [
                0xbe,
                0x80 + rng.random_range(0..0x40),
                0x7e,
                0x7c,
                0xd1,
                0xd2,
                0xd3,
                0xd8,
                0xd9,
                0xe0,
                0xdc,
                0xc0,
            ][rng.random_range(0..12)];
            let words = [rng.random::<u32>() & 0xff_ffff | top << 24, rng.random()];
            if let Ok((_, length)) = decode(&words, arch) {
                let program = m.program(&words[..length]);
                let _ = footprints(&m.wave, &program.steps[0], &mut Vec::new());
                let _ = m.run_program(&program, 3);
                executed += 1;
            }
        }
    }
}
