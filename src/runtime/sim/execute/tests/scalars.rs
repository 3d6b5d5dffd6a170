//! Scalar instructions on bits, relative registers, hardware registers, calls and forks.

use crate::codegen::isa::{Arch, Inst, Opcode, Opcode::*, Operand};

use super::super::super::error::FaultKind;
use super::super::super::wave::{EXEC, M0};
use super::{MODE, Machine, int, s, v};

/// Runs an instruction on the pair s[0:1] (and s2); returns the pair s[4:5] and SCC.
fn wide(op: Opcode, a: u64, b: u32) -> (u64, bool) {
    let mut m = Machine::new();
    m.wave.set_pair(0, a);
    m.wave.s[2] = b;
    let operands = [s(4), s(0), s(2)];
    m.run(&[Inst::new(op, &operands[..op.info().operands.len()])]).expect("a scalar instruction");
    (m.wave.pair(4), m.wave.scc)
}

#[test]
fn bits_are_counted_and_found() {
    for (op, source, expected, scc) in [
        (SBcnt0I32B32, 0xf0, 28, true),
        (SBcnt0I32B32, 0xffff_ffff, 0, false),
        (SBcnt0I32B64, u64::MAX, 0, false),
        (SBcnt0I32B64, 7, 61, true),
        (SFf0I32B32, 0xffff_fff7, 3, false),
        (SFf0I32B32, 0xffff_ffff, 0xffff_ffff, false),
        (SFf0I32B64, 0xffff_ffff, 32, false),
        (SFf0I32B64, u64::MAX, 0xffff_ffff, false),
        (SWqmB32, 0x0800_0010, 0x0f00_00f0, true),
        (SWqmB64, 0x0100_0000_0000_0002, 0x0f00_0000_0000_000f, true),
        (SQuadmaskB32, 0xf000_0021, 0b1000_0011, true),
        (SQuadmaskB32, 0, 0, false),
        (SQuadmaskB64, 0x8000_0000_0000_0100, 0b1000_0000_0000_0100, true),
        (SBitreplicateB64B32, 0x8000_0005, 0xc000_0000_0000_0033, false),
    ] {
        assert_eq!(wide(op, source, 0), (expected, scc), "{}", op.mnemonic());
    }
}

#[test]
fn single_bits_are_set_and_compared() {
    let mut m = Machine::new();
    m.wave.set_pair(0, 0xff);
    m.wave.set_pair(2, 0);
    (m.wave.s[4], m.wave.s[5]) = (35, 3);
    let program = [
        Inst::new(SBitset1B64, &[s(0), s(4)]),
        Inst::new(SBitset0B64, &[s(0), s(5)]),
        Inst::new(SBitset1B32, &[s(2), s(4)]),
        Inst::new(SBitset0B32, &[s(3), s(4)]),
        Inst::new(SBitcmp1B64, &[s(0), s(4)]),
    ];
    m.run(&program).expect("bit instructions");
    assert_eq!((m.wave.pair(0), m.wave.pair(2), m.wave.scc), (0x8_0000_00f7, 8, true));
    m.run(&[Inst::new(SBitcmp0B64, &[s(0), s(4)])]).expect("a comparison");
    assert!(!m.wave.scc);
    m.run(&[Inst::new(SBitcmp0B32, &[s(0), s(4)])]).expect("a comparison");
    assert!(m.wave.scc, "the place counts modulo 32, where a zero is");
}

#[test]
fn exec_is_combined_with_a_mask() {
    let (mask, exec) = (0xff00u64, 0x0ff0u64);
    for (op, expected, keeps) in [
        (SAndn1SaveexecB64, !mask & exec, true),
        (SOrn1SaveexecB64, !mask | exec, true),
        (SAndn1WrexecB64, !mask & exec, false),
        (SAndn2WrexecB64, mask & !exec, false),
    ] {
        let mut m = Machine::new();
        m.wave.set_pair(0, mask);
        m.wave.set_pair(EXEC, exec);
        m.run(&[Inst::new(op, &[s(2), s(0)])]).expect("a mask instruction");
        assert_eq!(m.wave.exec(), expected, "{}", op.mnemonic());
        assert_eq!(m.wave.pair(2), if keeps { exec } else { expected });
        assert!(m.wave.scc);
    }
}

#[test]
fn registers_relative_to_m0() {
    let mut m = Machine::new();
    for n in 0..20 {
        m.wave.s[n] = 100 + n as u32;
    }
    m.wave.s[M0] = 4;
    let program = [
        Inst::new(SMovrelsB32, &[s(30), s(2)]),
        Inst::new(SMovrelsB64, &[s(32), s(2)]),
        Inst::new(SMovreldB32, &[s(40), s(3)]),
        Inst::new(SMovreldB64, &[s(42), s(4)]),
    ];
    m.run(&program).expect("relative moves");
    assert_eq!(m.wave.s[30..34], [106, 0, 106, 107]);
    assert_eq!((m.wave.s[44], m.wave.s[46], m.wave.s[47]), (103, 104, 105));
    m.wave.s[M0] = 1000;
    m.run(&program[..1]).expect("a source out of range is s0");
    assert_eq!(m.wave.s[30], 100);
    let before = m.wave.s;
    m.run(&program[2..]).expect("a result out of range is dropped");
    assert_eq!(m.wave.s, before);
}

/// Immediate of `s_getreg` and `s_setreg`.
fn hwreg(register: u32, offset: u32, size: u32) -> u32 {
    register | offset << 6 | (size - 1) << 11
}

#[test]
fn hardware_registers() {
    let mut m = Machine::new();
    m.wave.scc = true;
    m.wave.hardware_id = 0x15;
    m.wave.s[0] = 0b11;
    m.wave.s[1] = 0x1ff;
    let get = |n, imm| Inst::new(SGetregB32, &[s(n)]).imm(imm);
    let program = [
        get(10, hwreg(1, 0, 32)),
        Inst::new(SSetregB32, &[s(0)]).imm(hwreg(1, 2, 2)),
        get(11, hwreg(1, 0, 32)),
        get(12, hwreg(2, 0, 32)),
        Inst::new(SSetregB32, &[s(1)]).imm(hwreg(3, 0, 9)),
        get(13, hwreg(3, 4, 8)),
        get(14, hwreg(4, 0, 8)),
        get(15, hwreg(6, 12, 10)),
        get(16, hwreg(20, 0, 32)),
        Inst::new(SSetregB32, &[s(1)]).imm(hwreg(2, 0, 9)),
        get(17, hwreg(15, 0, 32)),
    ];
    m.run(&program).expect("hardware registers");
    assert_eq!(m.wave.s[10..12], [MODE, MODE | 0b1100]);
    // STATUS: SCC, VCC is zero, valid.
    assert_eq!(m.wave.s[12], 1 | 1 << 10 | 1 << 16);
    // The machine has 4096 bytes of LDS in units of 256.
    assert_eq!(m.wave.s[13..17], [0x1f, 0x15, 16, 0]);
    assert_eq!(m.wave.s[17], 0x0001_0002, "upper halves of the apertures");
}

#[test]
fn literal_to_mode() {
    let mut m = Machine::new();
    let modifiers = crate::codegen::isa::Modifiers::new().hwreg(hwreg(1, 0, 4));
    let inst = Inst::new(SSetregImm32B32, &[Operand::LITERAL]).imm(0b1001).modifiers(modifiers);
    m.run(&[inst]).expect("a write of MODE");
    assert_eq!(m.wave.mode, MODE | 0b1001);
}

#[test]
fn calls_keep_the_address_of_the_next_instruction() {
    let mut m = Machine::new();
    let program = [
        Inst::new(SCallB64, &[s(0)]).imm(1),
        Inst::new(SMovB32, &[s(2), int(1)]),
        Inst::new(SMovB32, &[s(3), int(2)]),
    ];
    m.run(&program).expect("a call");
    assert_eq!((m.wave.pair(0), m.wave.s[2], m.wave.s[3]), (0x1004, 0, 2));
    m.wave.set_pair(0, 0x1234);
    let stopped = m.run(&[Inst::new(SSetpcB64, &[s(0)])]).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::ProgramCounter { target: 0x234 });
}

#[test]
fn a_fork_runs_both_paths() {
    // Lanes of the mask s[20:21] take the jump and add 2, the others fall through and add 1; both meet at the
    // join.
    for (mask, exec) in [(0xf, u64::MAX), (!0xf, u64::MAX), (0, u64::MAX), (u64::MAX, u64::MAX), (0xf0, 0xff)]
    {
        let mut m = Machine::new();
        m.wave.set_pair(20, mask);
        m.wave.set_pair(EXEC, exec);
        let program = [
            Inst::new(SGetregB32, &[s(30)]).imm(hwreg(1, 29, 3)),
            Inst::new(SCbranchIFork, &[s(20)]).imm(2),
            Inst::new(VAddU32, &[v(1), int(1), v(1)]),
            Inst::new(SBranch, &[]).imm(1),
            Inst::new(VAddU32, &[v(1), int(2), v(1)]),
            Inst::new(SCbranchJoin, &[s(30)]),
            Inst::new(VAddU32, &[v(2), int(1), v(2)]),
        ];
        m.run_on(Arch::Gfx906, &program).expect("a fork and a join");
        for l in 0..64 {
            let (on, taken) = (exec >> l & 1 != 0, mask >> l & 1 != 0);
            assert_eq!(
                m.wave.rows[1][l],
                if !on {
                    0
                } else if taken {
                    2
                } else {
                    1
                },
                "lane {l} of {mask:#x}"
            );
        }
        assert_eq!(m.wave.mode, MODE, "the stack is empty again");
    }
}

#[test]
fn trap_handlers_are_an_error() {
    let mut m = Machine::new();
    let stopped = m.run(&[Inst::new(SRfeB64, &[s(0)])]).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::Unsupported("returning from a trap handler"));
    let stopped = m.run(&[Inst::new(STrap, &[]).imm(2)]).unwrap_err();
    assert_eq!(stopped.kind, FaultKind::Trap(2));
}
