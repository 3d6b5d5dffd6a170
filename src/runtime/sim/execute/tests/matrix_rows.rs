//! Every matrix row of the table on every chip that has it, with random data and modifiers, against element
//! by element multiplication.
//!
//! Where an element lies is written down as the CDNA4 ISA guide has it ("General input and output layout",
//! "Dense Matrix Layouts: 8-bit and Smaller", "Details of Sparsity Structure"); the published table of the
//! other chips is compared in [`matrix`](super::matrix).

use crate::codegen::isa::{Arch, Element, Inst, Meaning, Modifiers, Opcode, Operand, Shape, encode};

use super::super::super::program::Program;
use super::super::super::wave::{LANES, VectorRow};
use super::{Machine, int, v};

/// A sequence of numbers without pattern.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 ^ (self.0 >> 13) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.bits()) * u64::from(limit)) >> 32) as u32
    }
}

/// Format of the elements of A or B.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    F64,
    F32,
    Xf32,
    F16,
    Bf16,
    I8,
    /// Exponent bits, mantissa bits, bias, specials.
    Small(u32, u32, i32, Specials),
}

/// Which patterns of a small float are not numbers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Specials {
    None,
    /// All bits set but the sign: NaN.
    LastIsNan,
    /// As IEEE 754.
    InfinityAndNan,
    /// Minus zero is NaN.
    NegativeZeroIsNan,
}

const FORMATS: [Kind; 5] = [
    Kind::Small(4, 3, 7, Specials::LastIsNan),
    Kind::Small(5, 2, 15, Specials::InfinityAndNan),
    Kind::Small(2, 3, 1, Specials::None),
    Kind::Small(3, 2, 3, Specials::None),
    Kind::Small(2, 1, 1, Specials::None),
];

impl Kind {
    fn of(element: Element, arch: Arch) -> Kind {
        match (element, arch) {
            (Element::F64, _) => Kind::F64,
            (Element::F32, _) => Kind::F32,
            (Element::Xf32, _) => Kind::Xf32,
            (Element::F16, _) => Kind::F16,
            (Element::Bf16, _) => Kind::Bf16,
            (Element::I8, _) => Kind::I8,
            (Element::Fp8, Arch::Gfx942) => Kind::Small(4, 3, 8, Specials::NegativeZeroIsNan),
            (Element::Bf8, Arch::Gfx942) => Kind::Small(5, 2, 16, Specials::NegativeZeroIsNan),
            (Element::Fp8, _) => FORMATS[0],
            (Element::Bf8, _) => FORMATS[1],
            _ => panic!("{element:?} in a matrix"),
        }
    }

    fn width(self) -> usize {
        match self {
            Kind::F64 => 64,
            Kind::F32 | Kind::Xf32 => 32,
            Kind::F16 | Kind::Bf16 => 16,
            Kind::I8 => 8,
            Kind::Small(e, m, ..) => 1 + e as usize + m as usize,
        }
    }

    /// The number that a pattern means.
    fn value(self, bits: u64, arch: Arch) -> f64 {
        let flushed = |v: f64, least: f64| {
            if arch == Arch::Gfx90a && v.abs() < least { v * 0.0 } else { v }
        };
        match self {
            Kind::F64 => f64::from_bits(bits),
            Kind::F32 => f32::from_bits(bits as u32).into(),
            Kind::Xf32 => {
                let (kept, lost) = (bits as u32 & !0x1fff, bits & 0x1fff);
                let up = lost > 0x1000 || lost == 0x1000 && kept & 0x2000 != 0;
                let value = f32::from_bits(bits as u32);
                if value.is_nan() { f64::NAN } else { f32::from_bits(kept + u32::from(up) * 0x2000).into() }
            }
            Kind::F16 => flushed(half::f16::from_bits(bits as u16).to_f64(), 2f64.powi(-14)),
            Kind::Bf16 => flushed(half::bf16::from_bits(bits as u16).to_f64(), 2f64.powi(-126)),
            Kind::I8 => f64::from(bits as i8),
            Kind::Small(e_bits, m_bits, bias, specials) => {
                let mantissa = bits & ((1 << m_bits) - 1);
                let exponent = (bits >> m_bits & ((1 << e_bits) - 1)) as i32;
                let negative = bits >> (e_bits + m_bits) & 1 != 0;
                let ones = exponent == (1 << e_bits) - 1;
                let fraction = mantissa as f64 / f64::from(1 << m_bits);
                let magnitude = match specials {
                    Specials::LastIsNan if ones && mantissa == (1 << m_bits) - 1 => f64::NAN,
                    Specials::InfinityAndNan if ones && mantissa == 0 => f64::INFINITY,
                    Specials::InfinityAndNan if ones => f64::NAN,
                    Specials::NegativeZeroIsNan if negative && exponent == 0 && mantissa == 0 => f64::NAN,
                    _ if exponent == 0 => fraction * 2f64.powi(1 - bias),
                    _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
                };
                if negative { -magnitude } else { magnitude }
            }
        }
    }
}

/// Element `item` of a lane.
fn item(rows: &[VectorRow], lane: usize, item: usize, width: usize) -> u64 {
    (0..width).fold(0, |bits, bit| {
        let at = width * item + bit;
        bits | u64::from(rows[at / 32][lane] >> (at % 32) & 1) << bit
    })
}

/// Where elements of an instruction lie.
struct Layout {
    m: usize,
    k: usize,
    blocks: usize,
    double: bool,
}

impl Layout {
    /// Lane and item of column i (of A; of B: j) and k.
    fn consecutive(&self, block: usize, i: usize, k: usize) -> (usize, usize) {
        let k_l = self.k / (64 / (self.m * self.blocks));
        (i + self.m * (block + self.blocks * (k / k_l)), k % k_l)
    }

    /// The same where a lane holds `part` elements of one half of k and as many of the other.
    fn halves(&self, i: usize, k: usize, part: usize) -> (usize, usize) {
        let half = k / (part * 64 / self.m);
        (i + self.m * (k / part % (64 / self.m)), half * part + k % part)
    }

    /// Lane and item of an element of C and D.
    fn result(&self, block: usize, i: usize, j: usize) -> (usize, usize) {
        let n = self.m;
        if self.double {
            // As AMD's matrix instruction calculator has it; the guide's formula for H = 1 exchanges rows and
            // blocks of 4x4x4.
            let row = i * self.blocks + block;
            return (row % (64 / n) * n + j, row / (64 / n));
        }
        let h = 4;
        let b_i = 64usize.div_ceil(n * self.m / h);
        let m_i = 64 / b_i / n;
        let g = self.m / (h * m_i);
        (j + n * (i / h % m_i + m_i * (block % b_i)), i % h + h * (i / (h * m_i) + g * (block / b_i)))
    }
}

/// The instruction as the reference sees it.
struct Case<'a> {
    arch: Arch,
    meaning: Meaning,
    modifiers: Modifiers,
    kinds: [Kind; 2],
    /// Elements of A and B: items of all lanes.
    sources: [Vec<[f64; LANES]>; 2],
    /// Registers of C.
    c: &'a [VectorRow],
    /// Index, or scales of A and B.
    extra: [VectorRow; 2],
}

/// f32 sum as the head of mfma.rs describes it.
fn fused(a: f64, b: f64, scale: f64, c: f32) -> f32 {
    // Exact for formats of 8 bits; the others have no scale.
    if scale == 1.0 { (a as f32).mul_add(b as f32, c) } else { (a * b).mul_add(scale, c.into()) as f32 }
}

impl Case<'_> {
    fn value(&self, source: usize, (lane, at): (usize, usize)) -> f64 {
        self.sources[source][at][lane]
    }

    /// Products of one element of the result, in rising k: factors and their scale.
    fn products(&self, layout: &Layout, block: usize, i: usize, j: usize) -> Vec<(f64, f64, f64)> {
        let modifiers = self.modifiers;
        let [cbsz, abid, blgp] = [modifiers.get_cbsz(), modifiers.get_abid(), modifiers.get_blgp()];
        let (abid, broadcast) = (abid as usize, 1 << cbsz);
        match self.meaning {
            Meaning::Mfma(_, Element::F64, ..) => {
                let sign = |bit: u32| if blgp >> bit & 1 == 1 { -1.0 } else { 1.0 };
                let terms = (0..layout.k).map(|k| {
                    let a = self.value(0, layout.consecutive(block, i, k));
                    (sign(0) * a, sign(1) * self.value(1, layout.consecutive(block, j, k)), 1.0)
                });
                terms.collect()
            }
            Meaning::Mfma(..) => {
                let a_block = if cbsz == 0 { block } else { block / broadcast * broadcast + abid };
                let terms = (0..layout.k).map(|k| {
                    let (lane, at) = layout.consecutive(block, j, k);
                    let lane = match blgp {
                        0 => lane,
                        1 => lane % 32,
                        2 => lane % 32 + 32,
                        3 => (lane + 16) % 64,
                        _ => lane % 16 + 16 * (blgp as usize - 4),
                    };
                    (self.value(0, layout.consecutive(a_block, i, k)), self.value(1, (lane, at)), 1.0)
                });
                terms.collect()
            }
            Meaning::FormattedMfma(_) => {
                let place = |source: usize, i, k| match self.kinds[source].width() {
                    8 => layout.halves(i, k, 16),
                    _ => layout.consecutive(0, i, k),
                };
                let scaled = self.extra != [[0; LANES]; 2];
                let select = modifiers.get_scale_select();
                let scale = |source: usize, i: usize, k: usize| {
                    let byte = select >> (2 * source) & 3;
                    match self.extra[source][i + layout.m * (k / 32)] >> (8 * byte) & 0xff {
                        0xff => f64::NAN,
                        exponent => 2f64.powi(exponent as i32 - 127),
                    }
                };
                let terms = (0..layout.k).map(|k| {
                    let scale = if scaled { scale(0, i, k) * scale(1, j, k) } else { 1.0 };
                    (self.value(0, place(0, i, k)), self.value(1, place(1, j, k)), scale)
                });
                terms.collect()
            }
            Meaning::SparseMfma(..) => {
                let part = 64 / self.kinds[0].width() * 2;
                // Bits of the lane's index: two for each element of A, of which B has twice as many.
                let index_bits = layout.k * layout.m / 64;
                let set = match (index_bits, cbsz % 4) {
                    (8, 0) => abid % 4,
                    (16, 0) => abid % 2,
                    _ => 0,
                };
                let mut terms = Vec::new();
                for quad in 0..layout.k / 4 {
                    let (lane, first) = layout.halves(i, 4 * quad, part);
                    for e in [first / 2, first / 2 + 1] {
                        let which = self.extra[0][lane] >> (index_bits * set + 2 * e) & 3;
                        let b = self.value(1, layout.halves(j, 4 * quad + which as usize, part));
                        terms.push((self.value(0, (lane, e)), b, 1.0));
                    }
                }
                terms
            }
            other => panic!("{other:?} is no matrix instruction"),
        }
    }

    /// Result registers.
    fn results(&self, shape: Shape) -> Vec<VectorRow> {
        let [m, k, blocks] = [shape.m, shape.k, shape.blocks].map(usize::from);
        let double = self.kinds[0] == Kind::F64;
        let layout = Layout { m, k, blocks, double };
        let width = if double { 64 } else { 32 };
        let mut rows = vec![[0; LANES]; m * m * blocks * width / 32 / 64];
        let flushes = self.arch == Arch::Gfx90a && self.kinds[0].width() == 16;
        let flush = |v: f32| if flushes && v.is_subnormal() { 0.0f32.copysign(v) } else { v };
        for (block, i, j) in (0..blocks * m * m).map(|n| (n / m / m, n / m % m, n % m)) {
            let (lane, at) = layout.result(block, i, j);
            let c = item(self.c, lane, at, width);
            let products = self.products(&layout, block, i, j);
            let d = match self.kinds[0] {
                Kind::F64 => {
                    let sign = if self.modifiers.get_blgp() & 4 == 0 { 1.0 } else { -1.0 };
                    let sum = f64::from_bits(c) * sign;
                    products.iter().fold(sum, |sum, &(a, b, _)| a.mul_add(b, sum)).to_bits()
                }
                Kind::I8 => {
                    let sum: i64 = products.iter().map(|&(a, b, _)| (a * b) as i64).sum();
                    u64::from((i64::from(c as i32) + sum) as u32)
                }
                _ => {
                    let sum = flush(f32::from_bits(c as u32));
                    let sum = products.iter().fold(sum, |sum, &(a, b, scale)| fused(a, b, scale, sum));
                    flush(sum).to_bits().into()
                }
            };
            for part in 0..width / 32 {
                rows[at * width / 32 + part][lane] = (d >> (32 * part)) as u32;
            }
        }
        rows
    }
}

/// Bits of an element of moderate size.
fn moderate(random: &mut Random, kind: Kind, arch: Arch) -> u64 {
    loop {
        let bits = u64::from(random.bits()) << 32 | u64::from(random.bits());
        let bits = if kind.width() == 64 { bits } else { bits & ((1 << kind.width()) - 1) };
        let magnitude = kind.value(bits, arch).abs();
        if kind.width() <= 8 && magnitude.is_finite() || (0.001..1000.0).contains(&magnitude) {
            return bits;
        }
    }
}

/// Random registers: any bits, or elements of moderate size.
fn registers(random: &mut Random, count: usize, kind: Option<Kind>, arch: Arch) -> Vec<VectorRow> {
    let mut rows = vec![[0; LANES]; count];
    let Some(kind) = kind else {
        rows.iter_mut().flatten().for_each(|v| *v = random.bits());
        return rows;
    };
    let width = kind.width();
    for lane in 0..LANES {
        for element in 0..count * 32 / width {
            let bits = moderate(random, kind, arch);
            for bit in 0..width {
                let at = width * element + bit;
                rows[at / 32][lane] |= ((bits >> bit & 1) as u32) << (at % 32);
            }
        }
    }
    rows
}

/// Where C and D are.
#[derive(Copy, Clone, Debug)]
enum Results {
    /// In VGPRs (on gfx908 in AGPRs), D and C apart.
    Vgprs,
    /// In AGPRs, D and C the same, A and B in AGPRs.
    Agprs,
    /// The same, but C is a constant.
    Constant,
    /// D is A and more.
    OverSource,
}

/// Runs one instruction and compares.
fn check(random: &mut Random, arch: Arch, op: Opcode, modifiers: Modifiers, results: Results, any: bool) {
    let info = op.info();
    let (shape, kinds) = match info.meaning {
        Meaning::Mfma(shape, a, b, _) | Meaning::SparseMfma(shape, a, b, _) => {
            (shape, [Kind::of(a, arch), Kind::of(b, arch)])
        }
        Meaning::FormattedMfma(shape) => {
            (shape, [modifiers.get_cbsz(), modifiers.get_blgp()].map(|f| FORMATS[f as usize]))
        }
        other => panic!("{other:?} is no matrix instruction"),
    };
    let is_sparse = matches!(info.meaning, Meaning::SparseMfma(..));
    let is_scaled = info.operands.len() == 6;
    // The results of gfx908 are AGPRs.
    let r = if arch == Arch::Gfx908 { Operand::agpr } else { v };
    let (d, a, b, c) = match results {
        Results::Vgprs => (r(64), v(8), v(16), r(32)),
        Results::Agprs => (Operand::agpr(32), Operand::agpr(8), Operand::agpr(16), Operand::agpr(32)),
        Results::Constant => (r(64), v(8), v(16), int(-3)),
        Results::OverSource => (r(8), r(8), v(48), r(64)),
    };
    let mut operands = vec![d, a, b, if is_sparse { v(2) } else { c }];
    if is_scaled {
        operands.extend([v(4), v(5)]);
    }
    let inst = Inst::new(op, &operands).modifiers(modifiers);
    let mut words = Vec::new();
    encode(&inst, arch, &mut words).unwrap_or_else(|error| panic!("{inst} on {arch}: {error}"));
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let program = Program::new(&bytes, arch, 0, &[0]);
    let place = |operand: usize| program.steps[0].operands[operand].row();

    let mut machine = Machine { arch, ..Machine::new() };
    machine.wave.rows = registers(random, program.rows().max(128), None, arch);
    for source in [0, 1] {
        let (row, count) = (place(1 + source).expect("a register"), usize::from(inst.width(1 + source)));
        let values = registers(random, count, (!any).then_some(kinds[source]), arch);
        machine.wave.rows[row..row + count].copy_from_slice(&values);
    }
    let c_kind = match kinds[0] {
        Kind::F64 => Kind::F64,
        _ => Kind::F32,
    };
    let count = usize::from(inst.width(0));
    let c_row = if is_sparse { place(0) } else { place(3) };
    if let Some(row) = c_row {
        // Of integers any bits will do.
        let kind = (!any && kinds[0] != Kind::I8).then_some(c_kind);
        let c = registers(random, count, kind, arch);
        if !is_sparse || !matches!(results, Results::OverSource) {
            machine.wave.rows[row..row + count].copy_from_slice(&c);
        }
    }
    if is_scaled {
        // Exponents around the middle; a few that are zero or NaN.
        for value in machine.wave.rows[4..6].iter_mut().flatten() {
            let bytes = [(); 4].map(|()| match random.below(if any { 40 } else { 1000 }) {
                0 => 0,
                1 => 255,
                _ => 117 + random.below(20) as u8,
            });
            *value = u32::from_le_bytes(bytes);
        }
    }
    let before = machine.wave.rows.clone();
    let source = |source: usize| {
        let row = place(1 + source).expect("a register");
        let (kind, count) = (kinds[source], usize::from(inst.width(1 + source)));
        let value = |lane, at| kind.value(item(&before[row..row + count], lane, at, kind.width()), arch);
        let items = (0..count * 32 / kind.width()).map(|at| std::array::from_fn(|lane| value(lane, at)));
        items.collect::<Vec<[f64; LANES]>>()
    };
    let constant: Vec<VectorRow> = (0..count)
        .map(|r| match kinds[0] {
            Kind::F64 => [if r % 2 == 0 { -3i32 as u32 } else { u32::MAX }; LANES],
            _ => [-3i32 as u32; LANES],
        })
        .collect();
    let case = Case {
        arch,
        meaning: info.meaning,
        modifiers,
        kinds,
        sources: [source(0), source(1)],
        c: c_row.map_or(&constant, |row| &before[row..row + count]),
        extra: match (is_sparse, is_scaled) {
            (true, _) => [before[2], [0; LANES]],
            (_, true) => [before[4], before[5]],
            _ => [[0; LANES]; 2],
        },
    };
    let expected = case.results(shape);
    machine.run(&[inst]).unwrap_or_else(|stopped| panic!("{inst} on {arch}: {:?}", stopped.kind));
    let d_row = place(0).expect("a register");
    let got = &machine.wave.rows[d_row..d_row + count];
    let number = |rows: &[VectorRow], register: usize, lane: usize| match kinds[0] {
        Kind::I8 => f64::from(rows[register][lane] as i32),
        Kind::F64 => f64::from_bits(item(rows, lane, register / 2, 64)),
        _ => f32::from_bits(rows[register][lane]).into(),
    };
    for (register, lane) in (0..count * LANES).map(|n| (n / LANES, n % LANES)) {
        let [ours, theirs] = [got, &expected].map(|rows| number(rows, register, lane));
        let same = got[register][lane] == expected[register][lane] || ours.is_nan() && theirs.is_nan();
        assert!(same, "{inst} on {arch} ({results:?}): register {register}, lane {lane}: {ours} != {theirs}");
    }
    for (row, (now, then)) in machine.wave.rows.iter().zip(&before).enumerate() {
        assert!((d_row..d_row + count).contains(&row) || now == then, "{inst} on {arch} writes row {row}");
    }
}

/// Matrix rows of a chip.
fn matrix_rows(arch: Arch) -> impl Iterator<Item = Opcode> {
    Opcode::ALL.iter().copied().filter(move |op| {
        let meaning = op.info().meaning;
        let is_matrix =
            matches!(meaning, Meaning::Mfma(..) | Meaning::SparseMfma(..) | Meaning::FormattedMfma(_));
        op.on(arch) && is_matrix
    })
}

/// Modifiers of one row, all there are of those that change where elements are found.
fn modifiers(random: &mut Random, arch: Arch, op: Opcode) -> Vec<Modifiers> {
    let none = Modifiers::new();
    match op.info().meaning {
        Meaning::Mfma(_, Element::F64, ..) if arch < Arch::Gfx942 => vec![none; 4],
        Meaning::Mfma(_, Element::F64, ..) => (0..8).map(|blgp| none.blgp(blgp)).collect(),
        Meaning::Mfma(shape, ..) => {
            let broadcasts = (0..=shape.blocks.ilog2())
                .map(|cbsz| none.cbsz(cbsz).abid(random.below(1 << cbsz)))
                .collect::<Vec<_>>();
            (0..8).zip(broadcasts.into_iter().cycle()).map(|(blgp, m)| m.blgp(blgp)).collect()
        }
        Meaning::SparseMfma(..) => (0..5).map(|n| none.abid(n % 4).cbsz(n / 4)).collect(),
        _ => {
            let scaled = op.info().operands.len() == 6;
            (0..25)
                .map(|n| {
                    let select = if scaled { random.below(16) } else { 0 };
                    none.cbsz(n / 5).blgp(n % 5).scale_select(select)
                })
                .collect()
        }
    }
}

/// Every row of a chip; returns their number.
fn walk(arch: Arch) -> usize {
    let mut random = Random(arch as u64);
    let mut rows = 0;
    for op in matrix_rows(arch) {
        let all = modifiers(&mut random, arch, op);
        let results = [Results::Vgprs, Results::Agprs, Results::Constant, Results::OverSource];
        for (index, &modifiers) in all.iter().enumerate() {
            check(&mut random, arch, op, modifiers, results[index % 4], index % 3 == 2);
        }
        rows += 1;
    }
    rows
}

#[test]
fn gfx908_multiplies_element_by_element() {
    assert_eq!(walk(Arch::Gfx908), 20);
}

#[test]
fn gfx90a_multiplies_element_by_element() {
    assert_eq!(walk(Arch::Gfx90a), 27);
}

#[test]
fn gfx942_multiplies_element_by_element() {
    assert_eq!(walk(Arch::Gfx942), 46);
}

#[test]
fn gfx950_multiplies_element_by_element() {
    assert_eq!(walk(Arch::Gfx950), 68);
}
