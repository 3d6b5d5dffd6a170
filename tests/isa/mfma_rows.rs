//! The matrix rows of the instruction table against AMD's published tables: `tests/data/mfma.csv` lists every
//! matrix instruction of gfx908, gfx90a and gfx942 with opcode, shape, passes and registers, as AMD's matrix
//! instruction calculator prints them.

use groundswell::isa::{Arch, Inst, Meaning, Opcode, Unit};

const CSV: &str = include_str!("../data/mfma.csv");

/// What a row of the file says.
struct Record<'a> {
    columns: Vec<&'a str>,
    values: Vec<&'a str>,
}

impl<'a> Record<'a> {
    fn get(&self, column: &str) -> &'a str {
        let index = self.columns.iter().position(|name| *name == column);
        self.values[index.unwrap_or_else(|| panic!("no column {column}"))]
    }

    fn number(&self, column: &str) -> u32 {
        let text = self.get(column);
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.unwrap_or_else(|_| panic!("{column} of {} is not a number", self.get("mnemonic")))
    }
}

fn records() -> Vec<Record<'static>> {
    let mut lines = CSV.lines();
    let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
    lines.map(|line| Record { columns: columns.clone(), values: line.split(',').collect() }).collect()
}

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
