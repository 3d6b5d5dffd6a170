//! The matrix rows of the instruction table against AMD's published table, which has every instruction with
//! opcode, shape, passes and registers.

use groundswell::isa::{Arch, Inst, Meaning, Opcode, Unit};
use groundswell_testing::matrix_table::{Record, records};

fn is_matrix(op: Opcode) -> bool {
    matches!(op.info().unit, Unit::Mfma(_))
}

#[test]
fn every_published_instruction_has_a_row_that_says_the_same() {
    for record in records() {
        let (name, gfx) = (record.get("mnemonic"), record.get("gfx"));
        let arch = Arch::from_name(gfx).expect("a chip of the table");
        let named = |op: &&Opcode| op.on(arch) && op.info().mnemonic_on(arch) == name;
        let op = *Opcode::ALL.iter().find(named).unwrap_or_else(|| panic!("{name} is missing on {gfx}"));
        let (info, inst) = (op.info(), Inst::new(op, &[]));
        let shape = match info.meaning {
            Meaning::Mfma(shape, ..) | Meaning::SparseMfma(shape, ..) => shape,
            other => panic!("{name} means {other:?}"),
        };
        let ours = [
            u32::from(info.code),
            inst.passes(arch).into(),
            shape.m.into(),
            shape.n.into(),
            shape.k.into(),
            shape.blocks.into(),
            inst.width(0).into(),
            inst.width(1).into(),
            inst.width(2).into(),
        ];
        let columns = ["opcode", "passes", "m", "n", "k", "blocks", "d_regs", "a_regs", "b_regs"];
        assert_eq!(ours, columns.map(|column| record.number(column)), "{name} on {gfx}: {columns:?}");
    }
}

#[test]
fn every_matrix_row_is_published() {
    let records = records();
    for arch in [Arch::Gfx908, Arch::Gfx90a, Arch::Gfx942] {
        for &op in Opcode::ALL.iter().filter(|&&op| op.on(arch) && is_matrix(op)) {
            let name = op.info().mnemonic_on(arch);
            let published = |r: &Record| r.get("gfx") == arch.name() && r.get("mnemonic") == name;
            assert!(records.iter().any(published), "{name} on {arch}");
        }
    }
}
