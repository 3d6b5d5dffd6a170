//! Matrix instructions against the published layouts (`tests/data/mfma.csv`) and plain loops.

use crate::codegen::isa::{Arch, Element, Inst, Meaning, Modifiers, Opcode, Operand};

use super::super::super::numerics::{from_f16, from_fnuz8};
use super::super::super::wave::LANES;
use super::{Machine, int, v};

/// A formula of the table over `lane`, `gpr` and `bit`: sums of products and quotients with parentheses.
fn evaluate(formula: &str, variables: [usize; 3]) -> usize {
    struct Parser<'a>(&'a str, [usize; 3]);
    impl Parser<'_> {
        fn take(&mut self, token: &str) -> bool {
            self.0 = self.0.trim_start();
            self.0.strip_prefix(token).map(|rest| self.0 = rest).is_some()
        }
        fn sum(&mut self) -> usize {
            let mut value = self.product();
            while self.take("+") {
                value += self.product();
            }
            value
        }
        fn product(&mut self) -> usize {
            let mut value = self.atom();
            loop {
                if self.take("*") {
                    value *= self.atom();
                } else if self.take("/") {
                    value /= self.atom();
                } else if self.take("%") {
                    value %= self.atom();
                } else {
                    return value;
                }
            }
        }
        fn atom(&mut self) -> usize {
            if self.take("(") {
                let value = self.sum();
                assert!(self.take(")"));
                return value;
            }
            for (name, value) in ["lane", "gpr", "bit"].into_iter().zip(self.1) {
                if self.take(name) {
                    return value;
                }
            }
            let digits = self.0.len() - self.0.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = self.0.split_at(digits);
            self.0 = rest;
            number.parse().unwrap_or_else(|_| panic!("a number at {:?}", self.0))
        }
    }
    let mut parser = Parser(formula, variables);
    let value = parser.sum();
    assert!(parser.0.trim().is_empty(), "{formula}: {:?} is left", parser.0);
    value
}

/// One row of the table by column name.
struct Published<'a> {
    header: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl<'a> Published<'a> {
    fn get(&self, column: &str) -> &'a str {
        self.cells[self.header.iter().position(|&h| h == column).expect("a column of the table")]
    }
    fn number(&self, column: &str) -> usize {
        self.get(column).parse().expect("a number")
    }
    fn at(&self, columns: [&str; 3], variables: [usize; 3]) -> [usize; 3] {
        columns.map(|c| evaluate(self.get(c), variables))
    }
}

/// Bits of one element that holds a small integer.
fn bits_of(element: Element, value: i32) -> u64 {
    let search = |exponent| (0..=0xff).find(|&b| from_fnuz8(b, exponent) == value as f32);
    match element {
        Element::F64 => f64::from(value).to_bits(),
        Element::F16 => half::f16::from_f32(value as f32).to_bits().into(),
        Element::Bf16 => half::bf16::from_f32(value as f32).to_bits().into(),
        Element::Fp8 => search(4).expect("a small integer is exact").into(),
        Element::Bf8 => search(5).expect("a small integer is exact").into(),
        Element::I8 => u64::from(value as u8),
        Element::I32 => u64::from(value as u32),
        _ => u64::from((value as f32).to_bits()),
    }
}

fn width(element: Element) -> usize {
    match element {
        Element::F64 => 64,
        Element::F16 | Element::Bf16 => 16,
        Element::Fp8 | Element::Bf8 | Element::I8 => 8,
        _ => 32,
    }
}

/// Deterministic small integers that every format holds.
fn sample(seed: usize) -> i32 {
    (seed.wrapping_mul(2_654_435_761) >> 7) as i32 % 4
}

fn opcode(mnemonic: &str) -> Option<Opcode> {
    Opcode::ALL.iter().copied().find(|op| op.mnemonic() == mnemonic)
}

#[test]
fn layouts_are_the_published_ones() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mfma.csv");
    let table = std::fs::read_to_string(path).expect("the table is part of the repository");
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let mut tested = [0, 0];
    for line in lines {
        let row = Published { header: header.clone(), cells: line.split(',').collect() };
        let arch = Arch::from_name(row.get("gfx")).expect("a chip of the table");
        let named = |op: &&Opcode| op.on(arch) && op.info().mnemonic_on(arch) == row.get("mnemonic");
        let op = Opcode::ALL.iter().find(named);
        check_layout(*op.unwrap_or_else(|| panic!("no row for {}", row.get("mnemonic"))), arch, &row);
        tested[row.number("sparse")] += 1;
    }
    assert_eq!(tested, [79, 14]);
}

/// Which two of four elements a sparse A holds.
fn stored(i: usize, quad: usize) -> [usize; 2] {
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]][(7 * i + 13 * quad) % 6]
}

fn check_layout(op: Opcode, arch: Arch, row: &Published<'_>) {
    let (Meaning::Mfma(_, a_type, b_type, cd_type) | Meaning::SparseMfma(_, a_type, b_type, cd_type)) =
        op.info().meaning
    else {
        panic!("not an MFMA")
    };
    let sparse = row.number("sparse") == 1;
    let [m, n, k, blocks] = ["m", "n", "k", "blocks"].map(|c| row.number(c));
    let a = |block, i, kk| sample(1 + block + 7 * i + 131 * kk);
    let b = |block, kk, j| sample(5 + 3 * block + 17 * kk + 257 * j);
    let c = |block, i, j| sample(9 + 11 * block + 23 * i + 71 * j);
    let mut machine = Machine { arch, ..Machine::new() };
    let fill = |machine: &mut Machine,
                first: usize,
                registers: usize,
                element,
                value: &dyn Fn([usize; 3]) -> i32| {
        let element_bits = width(element);
        for lane in 0..LANES {
            for gpr in 0..registers {
                for bit in (0..32).step_by(element_bits) {
                    let bits = bits_of(element, value([lane, gpr, bit]));
                    // Of an f64 each register holds its half.
                    let part = if element_bits == 64 { bits >> (32 * (gpr % 2)) } else { bits << bit };
                    machine.wave.rows[first + gpr][lane] |= part as u32;
                }
            }
        }
    };
    let registers = ["a_regs", "b_regs", "d_regs"].map(|r| row.number(r));
    // Of a sparse A the table tells the first of the four elements of which a register holds two.
    let per_register = 32 / width(a_type).min(32);
    let element = |[_, gpr, bit]: [usize; 3]| per_register * gpr + bit / width(a_type).min(32);
    let a_at = |at: [usize; 3]| {
        let [i, kk, block] = row.at(["a_i", "a_k", "a_block"], at);
        let within = if sparse { stored(i, kk / 4)[element(at) % 2] } else { 0 };
        (block, i, kk + within, within)
    };
    fill(&mut machine, 2, registers[0], a_type, &|at| {
        let (block, i, kk, _) = a_at(at);
        a(block, i, kk)
    });
    fill(&mut machine, 4, registers[1], b_type, &|at| {
        let [j, kk, block] = row.at(["b_j", "b_k", "b_block"], at);
        b(block, kk, j)
    });
    // On gfx908 results are AGPRs, which lie after the VGPRs of B.
    let (third, d, d_row) = match (sparse, arch) {
        (true, _) => (v(1), v(16), 16),
        (_, Arch::Gfx908) => (Operand::agpr(16), Operand::agpr(16), 4 + registers[1] + 16),
        _ => (v(16), v(16), 16),
    };
    fill(&mut machine, d_row, registers[2], cd_type, &|at| {
        let [i, j, block] = row.at(["cd_i", "cd_j", "cd_block"], at);
        c(block, i, j)
    });
    if sparse {
        for lane in 0..LANES {
            let places = (0..registers[0])
                .flat_map(|gpr| (0..32).step_by(width(a_type)).map(move |bit| [lane, gpr, bit]));
            machine.wave.rows[1][lane] =
                places.fold(0, |index, at| index | (a_at(at).3 as u32) << (2 * element(at)));
        }
    }
    let name = op.info().mnemonic_on(arch);
    machine.run(&[Inst::new(op, &[d, v(2), v(4), third])]).unwrap_or_else(|e| panic!("{name}: {:?}", e.kind));
    for lane in 0..LANES {
        for gpr in 0..registers[2] {
            let [i, j, block] = row.at(["cd_i", "cd_j", "cd_block"], [lane, gpr, 0]);
            assert!(i < m && j < n && block < blocks);
            let holds = |kk: &usize| !sparse || stored(i, kk / 4).contains(&(kk % 4));
            let sum =
                (0..k).filter(holds).fold(c(block, i, j), |sum, kk| sum + a(block, i, kk) * b(block, kk, j));
            let bits = bits_of_result(cd_type, sum);
            let expected = if cd_type == Element::F64 { bits >> (32 * (gpr % 2)) } else { bits } as u32;
            assert_eq!(machine.wave.rows[d_row + gpr][lane], expected, "{name}: lane {lane}, register {gpr}");
        }
    }
}

fn bits_of_result(element: Element, value: i32) -> u64 {
    match element {
        Element::F64 => f64::from(value).to_bits(),
        Element::I32 => u64::from(value as u32),
        _ => u64::from((value as f32).to_bits()),
    }
}

/// A = f16 values of this seed, in the registers from `first` on.
fn random_halves(machine: &mut Machine, first: usize, seed: u32) {
    let mut state = seed;
    for row in &mut machine.wave.rows[first..first + 2] {
        for value in row.iter_mut() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Exponents from 2^-14 to 2, denormals among them.
            *value = state >> 3 & 0x3fff | (state >> 17 & 0x3fff) << 16 | state & 0x8000_0000;
        }
    }
}

#[test]
fn sums_run_in_rising_k_with_one_rounding_each() {
    let mut machine = Machine::new();
    random_halves(&mut machine, 2, 1);
    random_halves(&mut machine, 4, 2);
    let value = |machine: &Machine, first: usize, i: usize, k: usize| {
        let (lane, register, half) = (16 * (k / 4) + i, k % 4 / 2, k % 2);
        from_f16(machine.wave.rows[first + register][lane] >> (16 * half))
    };
    let op = opcode("v_mfma_f32_16x16x16_f16").expect("in the table");
    machine.run(&[Inst::new(op, &[v(8), v(2), v(4), int(1)])]).expect("plain");
    for i in 0..16 {
        for j in 0..16 {
            let start = f32::from_bits(1);
            let expected =
                (0..16).fold(start, |sum, k| value(&machine, 2, i, k).mul_add(value(&machine, 4, j, k), sum));
            assert_eq!(machine.wave.rows[8 + i % 4][16 * (i / 4) + j], expected.to_bits(), "({i}, {j})");
        }
    }
}

#[test]
fn results_do_not_depend_on_former_contents_of_sources() {
    let op = opcode("v_mfma_f32_32x32x8_f16").expect("in the table");
    let program = [
        Inst::new(op, &[v(8), v(2), v(4), int(0)]),
        // Changes one lane of A between two uses of the same registers.
        Inst::new(Opcode::VWritelaneB32, &[v(2), int(0), int(5)]),
        Inst::new(op, &[v(24), v(2), v(4), int(0)]),
    ];
    let mut machine = Machine::new();
    random_halves(&mut machine, 2, 3);
    random_halves(&mut machine, 4, 4);
    machine.run(&program).expect("plain");
    let mut fresh = Machine::new();
    fresh.wave.rows[2..6].copy_from_slice(&machine.wave.rows[2..6]);
    fresh.run(&program[2..]).expect("plain");
    assert_eq!(machine.wave.rows[24..40], fresh.wave.rows[24..40]);
    assert_ne!(machine.wave.rows[8..24], machine.wave.rows[24..40]);
}

#[test]
fn exec_is_ignored_and_results_may_overlap_sources() {
    let op = opcode("v_mfma_f32_16x16x16_f16").expect("in the table");
    let mut machine = Machine::new();
    random_halves(&mut machine, 2, 5);
    random_halves(&mut machine, 4, 6);
    machine.run(&[Inst::new(op, &[v(8), v(2), v(4), int(0)])]).expect("plain");
    machine.wave.set_pair(super::EXEC, 1);
    machine.run(&[Inst::new(op, &[v(2), v(2), v(4), int(0)])]).expect("plain");
    assert_eq!(machine.wave.rows[2..6], machine.wave.rows[8..12].to_vec());
}

#[test]
fn accumulation_registers_are_registers() {
    let op = opcode("v_mfma_f32_16x16x16_f16").expect("in the table");
    let mut machine = Machine::new();
    random_halves(&mut machine, 2, 7);
    random_halves(&mut machine, 4, 8);
    let a = Operand::agpr;
    let read = |n: u32| Inst::new(Opcode::VAccvgprReadB32, &[v(16 + n), a(4 + n)]);
    machine.wave.rows.truncate(20);
    machine
        .run(&[
            Inst::new(op, &[v(8), v(2), v(4), int(0)]),
            Inst::new(op, &[a(4), v(2), v(4), int(0)]),
            read(0),
            read(1),
            read(2),
            read(3),
        ])
        .expect("plain");
    assert_eq!(machine.wave.rows[16..20], machine.wave.rows[8..12].to_vec());
}

#[test]
fn broadcasts_of_blocks() {
    let op = opcode("v_mfma_f32_4x4x1_16b_f32").expect("in the table");
    let mut machine = Machine::new();
    machine.wave.rows[2] = std::array::from_fn(|l| (l as f32).to_bits());
    machine.wave.rows[4] = std::array::from_fn(|l| (100.0 + l as f32).to_bits());
    // Every four blocks take A of their third one.
    let broadcast = Modifiers::new().cbsz(2).abid(2);
    machine.run(&[Inst::new(op, &[v(8), v(2), v(4), int(0)]).modifiers(broadcast)]).expect("plain");
    for lane in 0..LANES {
        for i in 0..4 {
            let block = lane / 4 / 4 * 4 + 2;
            let expected = (4 * block + i) as f32 * (100.0 + lane as f32);
            assert_eq!(f32::from_bits(machine.wave.rows[8 + i][lane]), expected, "lane {lane}, row {i}");
        }
    }
    let regrouped = Modifiers::new().blgp(2);
    machine.run(&[Inst::new(op, &[v(8), v(2), v(4), int(0)]).modifiers(regrouped)]).expect("plain");
    assert_eq!(f32::from_bits(machine.wave.rows[8][1]), 0.0 * 133.0);
    assert_eq!(f32::from_bits(machine.wave.rows[9][1]), 1.0 * 133.0);
}

#[test]
fn fp16_ovfl_stops_results_at_the_ends_of_their_range() {
    let run = |clamps: bool, op: Opcode, a: u32, b: u32, c: u32| {
        let mut machine = Machine::new();
        machine.wave.mode |= u32::from(clamps) << 23;
        machine.wave.rows[2] = [a; LANES];
        machine.wave.rows[4] = [b; LANES];
        machine.wave.rows[8..12].fill([c; LANES]);
        machine.run(&[Inst::new(op, &[v(8), v(2), v(4), v(8)])]).expect("plain");
        machine.wave.rows[11][63]
    };
    let op = opcode("v_mfma_i32_4x4x4_16b_i8").expect("in the table");
    let integer = |clamps, b, c: i32| run(clamps, op, 0x7f7f_7f7f, b, c as u32) as i32;
    let product = 4 * 127 * 127;
    assert_eq!(integer(false, 0x7f7f_7f7f, i32::MAX - 5), i32::MIN + product - 6);
    assert_eq!(integer(true, 0x7f7f_7f7f, i32::MAX - 5), i32::MAX);
    assert_eq!(integer(true, 0x8181_8181, i32::MIN + 5), i32::MIN);
    assert_eq!(integer(true, 0x8181_8181, 5), 5 - product);
    let op = opcode("v_mfma_f32_4x4x1_16b_f32").expect("in the table");
    let float =
        |clamps, a: f32, c: f32| f32::from_bits(run(clamps, op, a.to_bits(), (-2f32).to_bits(), c.to_bits()));
    assert_eq!(float(false, f32::MAX, 0.0), f32::NEG_INFINITY);
    assert_eq!(float(true, f32::MAX, 0.0), f32::MIN);
    // Of infinite sources nothing else can come.
    assert_eq!(float(true, f32::INFINITY, 0.0), f32::NEG_INFINITY);
    assert_eq!(float(true, 1.0, f32::INFINITY), f32::INFINITY);
}
