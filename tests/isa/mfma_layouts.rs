//! The layout rule of matrix instructions against AMD's published table, which has formulas for the element
//! that a (lane, register, bit) holds. Each formula is evaluated for every lane and element of A, B and D and
//! compared with the layout that the shape alone gives.

use groundswell::internals::layout::{Dim, Layout, Place};
use groundswell::internals::layout::{Mma, MmaShape, Sparsity};
use groundswell::mapping::MmaConfig;
use groundswell::prelude::DType;
use groundswell::target::Target;
use groundswell_testing::matrix_table::{Record, records};

const ROW: Dim = Dim(0);
const COLUMN: Dim = Dim(1);
const BLOCK: Dim = Dim(2);

fn element_bits(format: &str) -> u32 {
    match format {
        "FP64" => 64,
        "FP32" | "XF32" | "int32" => 32,
        "FP16" | "BF16" => 16,
        "int8" | "FP8" | "BF8" => 8,
        other => panic!("unknown format {other}"),
    }
}

/// Evaluates a formula over `lane`, `gpr` and `bit` with `+ * / %` and brackets; `/` truncates.
struct Formula<'a> {
    rest: &'a str,
    variables: [(&'static str, u32); 3],
}

impl Formula<'_> {
    fn eval(text: &str, lane: u32, gpr: u32, bit: u32) -> u32 {
        let mut formula = Formula { rest: text, variables: [("lane", lane), ("gpr", gpr), ("bit", bit)] };
        let value = formula.sum();
        assert!(formula.rest.trim().is_empty(), "left over in {text}: {}", formula.rest);
        value
    }

    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> u32 {
        let mut value = self.product();
        while self.take("+") {
            value += self.product();
        }
        value
    }

    fn product(&mut self) -> u32 {
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

    fn atom(&mut self) -> u32 {
        if self.take("(") {
            let value = self.sum();
            assert!(self.take(")"), "no closing bracket before {}", self.rest);
            return value;
        }
        if let Some((_, value)) = self.variables.into_iter().find(|(name, _)| self.take(name)) {
            return value;
        }
        let digits = self.rest.chars().take_while(char::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        number.parse().expect("a number, a variable or a bracket")
    }
}

fn shape(record: &Record) -> MmaShape {
    let extents = ["m", "n", "k", "blocks"].map(|column| record.number(column));
    let sparsity = if record.get("sparse") == "1" { Sparsity::TwoOfFour } else { Sparsity::Dense };
    MmaShape::new(extents, element_bits(record.get("cd_type")), sparsity)
        .unwrap_or_else(|error| panic!("{}: {error}", record.get("mnemonic")))
}

/// Compares one operand in every lane and element; returns how many were compared.
fn compare(
    record: &Record,
    layout: &Layout,
    registers: &str,
    format: &str,
    formulas: [(Dim, &str); 3],
) -> u32 {
    let bits = element_bits(record.get(format));
    let elements = record.number(registers) * 32 / bits;
    assert_eq!(
        layout.extent(groundswell::internals::layout::Source::Register),
        elements,
        "{}: elements of an operand in a lane",
        record.get("mnemonic")
    );
    for lane in 0..64 {
        for element in 0..elements {
            let (gpr, bit) = (element * bits / 32, element * bits % 32);
            let place = Place { lane, register: element, ..Place::default() };
            for (dim, column) in formulas {
                let expected = Formula::eval(record.get(column), lane, gpr, bit);
                let got = layout.coordinate(dim, place);
                assert_eq!(
                    got,
                    expected,
                    "{} {}: {column} in lane {lane}, element {element}",
                    record.get("gfx"),
                    record.get("mnemonic")
                );
            }
        }
    }
    64 * elements
}

#[test]
fn every_published_instruction_has_the_layouts_of_the_rule() {
    let records = records();
    assert_eq!(records.len(), 93);
    let mut compared = 0;
    for record in &records {
        let shape = shape(record);
        let a = shape.a_layout(ROW, COLUMN, Some(BLOCK));
        compared +=
            compare(record, &a, "a_regs", "a_type", [(ROW, "a_i"), (COLUMN, "a_k"), (BLOCK, "a_block")]);
        let b = shape.b_layout(COLUMN, ROW, Some(BLOCK));
        compared +=
            compare(record, &b, "b_regs", "b_type", [(COLUMN, "b_j"), (ROW, "b_k"), (BLOCK, "b_block")]);
        let d = shape.c_layout(ROW, COLUMN, Some(BLOCK));
        compared +=
            compare(record, &d, "d_regs", "cd_type", [(ROW, "cd_i"), (COLUMN, "cd_j"), (BLOCK, "cd_block")]);
    }
    println!("{compared} elements compared");
}

/// The same table against the task mappings of each dense instruction, list by list.
#[test]
fn task_mappings_list_what_the_table_says() {
    let mut compared = 0;
    for record in records().iter().filter(|record| record.get("sparse") == "0") {
        let extents = ["m", "n", "k", "blocks"].map(|column| record.number(column));
        let accumulator = match element_bits(record.get("cd_type")) {
            64 => DType::F64,
            _ => DType::F32,
        };
        let config = MmaConfig::of_blocks(extents, accumulator)
            .unwrap_or_else(|fault| panic!("{}: {fault}", record.get("mnemonic")));
        let operands = [
            (config.a_load_map(), config.a_elements(), "a_type", ["a_block", "a_i", "a_k"]),
            (config.b_load_map(), config.b_elements(), "b_type", ["b_block", "b_k", "b_j"]),
            (config.c_store_map(), config.c_elements(), "cd_type", ["cd_block", "cd_i", "cd_j"]),
        ];
        for (map, elements, format, columns) in operands {
            let bits = element_bits(record.get(format));
            assert_eq!(map.workers(), Ok(64));
            for lane in 0..64 {
                let tasks = map.on::<3>(lane).expect("three dimensions");
                assert_eq!(tasks.len(), elements as usize);
                for (task, element) in tasks.zip(0..) {
                    let (gpr, bit) = (element * bits / 32, element * bits % 32);
                    let expected = columns.map(|column| Formula::eval(record.get(column), lane, gpr, bit));
                    assert_eq!(task, expected, "{} {map} lane {lane}", record.get("mnemonic"));
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 50_000, "{compared}");
}

#[test]
fn dense_operands_hold_each_element_once() {
    for record in records().iter().filter(|record| record.get("sparse") == "0") {
        let shape = shape(record);
        let [m, n, k, blocks] = ["m", "n", "k", "blocks"].map(|column| record.number(column));
        let operands = [
            (shape.a_layout(ROW, COLUMN, Some(BLOCK)), m, k),
            (shape.b_layout(ROW, COLUMN, Some(BLOCK)), n, k),
            (shape.c_layout(ROW, COLUMN, Some(BLOCK)), m, n),
        ];
        for (layout, rows, columns) in operands {
            assert!(layout.is_injective(), "{}", record.get("mnemonic"));
            assert!(
                layout.covers(&[(ROW, rows), (COLUMN, columns), (BLOCK, blocks)]),
                "{}",
                record.get("mnemonic")
            );
        }
    }
}

#[test]
fn the_table_of_instructions_agrees_with_the_published_one() {
    let records = records();
    let mut found = Vec::new();
    for (mma, target) in Mma::all().flat_map(|mma| Target::ALL.map(|target| (mma, target))) {
        assert_eq!(Mma::from_name(mma.name()), Some(mma));
        // The published table knows three chips.
        let Some(instruction) = target.matrix_instruction(mma) else { continue };
        if !records.iter().any(|record| record.get("gfx") == target.name) {
            continue;
        }
        found.push((mma, target));
        let mnemonic = instruction.opcode.info().mnemonic_on(target.arch);
        let record = records
            .iter()
            .find(|record| record.get("gfx") == target.name && record.get("mnemonic") == mnemonic)
            .unwrap_or_else(|| panic!("{mnemonic} is not in the table of {target}"));
        let shape = [mma.m(), mma.n(), mma.k()];
        assert_eq!(shape, ["m", "n", "k"].map(|column| record.number(column)), "{mma}");
        assert_eq!(u32::from(instruction.passes), record.number("passes"), "{mma} on {target}");
        assert_eq!(mma.input_registers(0), record.number("a_regs"), "{mma}");
        assert_eq!(mma.accumulator_registers(), record.number("d_regs"), "{mma}");
        let bits = ["a_type", "b_type"].map(|column| element_bits(record.get(column)));
        assert_eq!(mma.inputs().map(DType::bits), bits, "{mma}");
        assert_eq!(mma.accumulator().bits(), element_bits(record.get("cd_type")), "{mma}");
        assert_eq!(mma.shape(0), self::shape(record), "{mma}");
    }
    let on = |target| Mma::all().filter(|mma| found.contains(&(*mma, target))).count();
    assert_eq!([Target::GFX908, Target::GFX90A, Target::GFX942].map(on), [8, 11, 17]);
    assert!(Mma::all().all(|mma| Target::GFX906.matrix_instruction(mma).is_some() == mma.is_of_lanes()));
    // Its 8-bit floats are other ones than those of gfx942, and older chips multiply i8 and bf16 in smaller
    // steps of k, or lane by lane.
    let is_older = |mma: Mma| {
        mma.is_of_lanes()
            || matches!(mma.input(), DType::F8E4M3Fnuz | DType::F8E5M2Fnuz)
            || matches!(mma, Mma::I32_16x16x16_I8 | Mma::I32_32x32x8_I8)
            || matches!(mma, Mma::F32_16x16x8_BF16 | Mma::F32_32x32x4_BF16)
    };
    assert!(Mma::all().all(|mma| Target::GFX950.matrix_instruction(mma).is_some() != is_older(mma)));
}

/// Where lanes multiply one by one, each holds the row of A and the column of B of its element of the result.
#[test]
fn lanes_hold_what_they_multiply() {
    for mma in Mma::all().filter(|mma| mma.is_of_lanes()) {
        let sums = mma.c_layout(ROW, COLUMN);
        let (left, right) = (mma.a_layout(ROW, BLOCK), mma.b_layout(COLUMN, BLOCK));
        assert!(sums.covers(&[(ROW, mma.m()), (COLUMN, mma.n())]), "{mma}");
        for (lane, register) in (0..64).flat_map(|lane| (0..mma.k()).map(move |register| (lane, register))) {
            let place = Place { lane, register, ..Place::default() };
            let of_sum = Place { lane, ..Place::default() };
            assert_eq!(left.coordinate(ROW, place), sums.coordinate(ROW, of_sum), "{mma} lane {lane}");
            assert_eq!(right.coordinate(COLUMN, place), sums.coordinate(COLUMN, of_sum), "{mma} lane {lane}");
            assert_eq!([&left, &right].map(|layout| layout.coordinate(BLOCK, place)), [register; 2], "{mma}");
        }
    }
}

/// Sources of 32 bytes of the instructions that gfx950 has for 8-bit floats: a lane holds 16 elements of each
/// half of k, and lanes of the next group the 16 after them (CDNA4 ISA guide, `V_MFMA_F32_16X16X128_F8F6F4`).
#[test]
fn lanes_hold_a_group_of_each_half_of_a_long_k() {
    for (mma, rows) in [(Mma::F32_16x16x128_F8E4M3FN, 16), (Mma::F32_32x32x64_F8E5M2, 32)] {
        let (a, b) = (mma.a_layout(ROW, COLUMN), mma.b_layout(ROW, COLUMN));
        for (lane, register) in (0..64).flat_map(|lane| (0..32).map(move |register| (lane, register))) {
            let place = Place { lane, register, ..Place::default() };
            let k = register / 16 * (mma.k() / 2) + lane / rows * 16 + register % 16;
            for layout in [&a, &b] {
                assert_eq!(layout.coordinate(ROW, place), lane % rows, "{mma} lane {lane}");
                assert_eq!(layout.coordinate(COLUMN, place), k, "{mma} lane {lane} register {register}");
            }
        }
    }
}

/// Four-bit factors and scales of gfx950, by the tables of the CDNA4 ISA guide ("Dense Matrix Layouts: 8-bit
/// and Smaller", "Block Scaling"), as loops over elements: lane l holds row l mod m and, of k, the 32
/// elements from 32 (l / m) on, the first of each two in the lower half of a byte, and the scale of these.
#[test]
fn four_bit_factors_and_scales_lie_as_the_guide_says() {
    for (mma, rows, k) in [(Mma::F32_16x16x128_F4E2M1, 16, 128), (Mma::F32_32x32x64_F4E2M1, 32, 64)] {
        assert_eq!([mma.m(), mma.n(), mma.k(), mma.held_k(0)], [rows, rows, k, k / 2]);
        assert_eq!([mma.input_registers(0), mma.input_registers(1)], [4; 2]);
        assert!(mma.has_scales() && mma.inputs() == [DType::F4E2M1; 2]);
        let [a, b] = [mma.a_layout(ROW, COLUMN), mma.b_layout(ROW, COLUMN)];
        let scales = mma.scale_layout(ROW, COLUMN);
        for (row, column) in (0..rows).flat_map(|row| (0..k).map(move |column| (row, column))) {
            let lane = column / 32 * rows + row;
            let register = column % 32 / 2;
            for layout in [&a, &b] {
                let place = Place { lane, register, ..Place::default() };
                assert_eq!(
                    [ROW, COLUMN].map(|dim| layout.coordinate(dim, place)),
                    [row, column / 2],
                    "{mma}"
                );
            }
            let place = Place { lane, ..Place::default() };
            assert_eq!([ROW, COLUMN].map(|dim| scales.coordinate(dim, place)), [row, column / 32], "{mma}");
        }
    }
    // Those of 8 bits, of which a lane holds two parts: 16 from 16 (l / m) on, and 16 after half of k.
    for (mma, rows, k) in [(Mma::F32_16x16x128_F8E5M2, 16, 128), (Mma::F32_32x32x64_F8E4M3FN, 32, 64)] {
        assert!(mma.has_scales() && mma.held_k(0) == k);
        let a = mma.a_layout(ROW, COLUMN);
        for (row, column) in (0..rows).flat_map(|row| (0..k).map(move |column| (row, column))) {
            let (part, within) = (column / (k / 2), column % (k / 2));
            let place = Place {
                lane: within / 16 * rows + row,
                register: part * 16 + within % 16,
                ..Place::default()
            };
            assert_eq!([ROW, COLUMN].map(|dim| a.coordinate(dim, place)), [row, column], "{mma}");
        }
    }
    // Each factor lies as its own dtype says; of 6 bits a lane has the six registers of a block.
    for (mma, rows, k) in
        [(Mma::F32_16x16x128_F6E2M3_F8E5M2, 16, 128), (Mma::F32_32x32x64_F4E2M1_F6E3M2, 32, 64)]
    {
        let is_six = mma.inputs().map(|dtype| dtype.bits() == 6);
        let six = is_six.iter().position(|&is_six| is_six).expect("a factor of 6 bits");
        assert_eq!((mma.held_k(six), mma.input_registers(six)), (k / 32, 6));
        assert_ne!(mma.held_k(1 - six), k / 32);
        let layout = if six == 0 { mma.a_layout(ROW, COLUMN) } else { mma.b_layout(ROW, COLUMN) };
        for lane in 0..64 {
            let place = Place { lane, ..Place::default() };
            assert_eq!(
                [ROW, COLUMN].map(|dim| layout.coordinate(dim, place)),
                [lane % rows, lane / rows],
                "{mma}"
            );
        }
    }
    let with_scales = |target: Target| {
        Mma::all().filter(|&mma| target.scaled_matrix_instruction(mma).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(with_scales(Target::GFX950), Mma::all().filter(|mma| mma.has_scales()).collect::<Vec<_>>());
    assert_eq!(with_scales(Target::GFX950).len(), 50);
    assert!([Target::GFX90A, Target::GFX942].map(with_scales).iter().all(Vec::is_empty));
    let passes = |mma| Target::GFX950.scaled_matrix_instruction(mma).map(|found| found.passes);
    assert_eq!(passes(Mma::F32_16x16x128_F4E2M1), Some(4));
    assert_eq!(passes(Mma::F32_16x16x128_F8E5M2), Some(8));
    assert_eq!(passes(Mma::F32_32x32x64_F4E2M1), Some(8));
    assert_eq!(passes(Mma::F32_16x16x128_F6E2M3_F4E2M1), Some(4));
    assert_eq!(passes(Mma::F32_16x16x128_F6E3M2_F8E4M3FN), Some(8));
}
