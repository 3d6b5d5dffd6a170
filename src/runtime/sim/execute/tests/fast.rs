//! The short way of frequent operations against the long one.

use crate::codegen::isa::{Arch, Inst, Meaning, Opcode, Operand, encode};

use super::super::super::program::Program;
use super::super::fast::Fast;
use super::super::{host, vector};
use super::{EXEC, Machine, s, v};

#[test]
fn the_short_way_gives_the_bits_of_the_long_way() {
    let mut tested = 0;
    let special =
        [0u32, 1 << 31, 1, 0x7f80_0000, 0xff80_0000, 0x7fc0_1234, 0x7fa0_0001, 0x3f80_0000, u32::MAX];
    for &op in Opcode::ALL.iter().filter(|op| op.on(Arch::Gfx942)) {
        let info = op.info();
        let Meaning::Vector(calc, element) = info.meaning else { continue };
        // A result, then sources: registers, an SGPR in between, and the literal if the row has one.
        let sources = [v(2), v(3), v(4)];
        for scalar in [false, true] {
            let mut operands: Vec<Operand> = vec![v(1)];
            operands.extend(&sources[..info.operands.len() - 1]);
            if scalar {
                operands[1] = s(8);
            }
            let mut words = Vec::new();
            if encode(&Inst::new(op, &operands), Arch::Gfx942, &mut words).is_err() {
                continue;
            }
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let program = Program::new(&bytes, Arch::Gfx942, 0, &[0]);
            let step = &program.steps[0];
            if step.fast == Fast::None {
                continue;
            }
            for exec in [u64::MAX, 0x0123_4567_89ab_cdef] {
                let [mut short, mut long] = [Machine::new(), Machine::new()];
                let mut state = 7u32;
                for value in short.wave.rows[1..8].iter_mut().flatten() {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let which = (state >> 27) as usize;
                    *value = special.get(which).copied().unwrap_or(state);
                }
                short.wave.s[8] = 0x4148_0003;
                short.wave.set_pair(EXEC, exec);
                long.wave.rows.clone_from(&short.wave.rows);
                long.wave.s = short.wave.s;
                assert!(step.fast.usable(&short.wave));
                host::fast(&mut short.wave, step, step.fast);
                vector::calculate(&mut long.wave, step, calc, element).expect("an operation of the table");
                // Of two NaN the host may take either payload.
                let same = |(a, b): (&u32, &u32)| {
                    let nan = |v: u32| f32::from_bits(v).is_nan();
                    a == b || element == crate::codegen::isa::Element::F32 && nan(*a) && nan(*b)
                };
                let rows = short.wave.rows.iter().flatten().zip(long.wave.rows.iter().flatten());
                assert!(rows.into_iter().all(same), "{}", op.mnemonic());
                tested += 1;
            }
        }
    }
    assert!(tested > 100, "{tested}");
}
