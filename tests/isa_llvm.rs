//! The instruction table against LLVM 19: every row, with many choices of operands and modifiers, goes through our
//! printer and encoder, through llvm-mc and through llvm-objdump, and all have to agree.
//!
//! Where LLVM takes a liberty that we do not, the corpus avoids the case. The whole list:
//!
//! - inline floats in 16-bit integer sources ([`avoided`]);
//! - bits of simm16 without meaning in `s_waitcnt`, and named geometry and system messages ([`Generator::immediate`]);
//! - `ds_swizzle_b32` masks that are not the first of those that do the same ([`Generator::swizzle`]);
//! - a 64-bit encoded `v_nop`, which prints as the 32-bit one (the table has the latter only).

use std::path::PathBuf;
use std::process::Command;

use groundswell::codegen::isa::{
    Element, Field, Format, Inst, Meaning, Modifiers, Omod, Opcode, Operand, OperandClass, OperandSpec,
    check, decode, encode, size_in_bytes,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Instructions per row of the table.
const PER_ROW: usize = 40;

fn is_16_bit_integer(element: Element) -> bool {
    matches!(element, Element::B16 | Element::I16 | Element::U16)
}

/// What LLVM does its own way.
fn avoided(inst: &Inst) -> bool {
    let info = inst.op.info();
    let is_inline_float = |operand: Operand| matches!(operand.number(), Some(240..=248));
    // Inline floats in 16-bit integer sources are printed as their bits, which llvm-mc then reads as a literal.
    info.operands
        .iter()
        .zip(inst.operands)
        .any(|(spec, operand)| is_16_bit_integer(spec.element) && is_inline_float(operand))
}

struct Generator {
    random: StdRng,
}

impl Generator {
    fn chance(&mut self, one_in: u32) -> bool {
        self.random.random_range(0..one_in) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *from.choose(&mut self.random).expect("the list is not empty")
    }

    /// An SGPR tuple: the first, the last, a special one or any.
    fn sgpr(&mut self, width: u32) -> Operand {
        let alignment = width.next_power_of_two().min(4);
        let last = (102 - width) / alignment;
        let special: &[u32] = match width {
            1 => &[106, 107, 102, 104, 108, 123],
            2 => &[106, 102, 104, 108, 122],
            4 => &[108, 120],
            _ => &[0],
        };
        let number = match self.random.random_range(0..8) {
            0 => 0,
            1 => last * alignment,
            2 => self.pick(special),
            _ => self.random.random_range(0..=last) * alignment,
        };
        Operand::sgpr(number)
    }

    /// A VGPR or AGPR tuple: the first, the last or any.
    fn vector(&mut self, width: u32, agpr: bool) -> Operand {
        let alignment = if width > 1 { 2 } else { 1 };
        let last = (256 - width) / alignment;
        let index = match self.random.random_range(0..6) {
            0 => 0,
            1 => last,
            _ => self.random.random_range(0..=last),
        };
        if agpr { Operand::agpr(index * alignment) } else { Operand::vgpr(index * alignment) }
    }

    fn inline(&mut self) -> Operand {
        let number = match self.random.random_range(0..4) {
            0 => self.random.random_range(240..=248),
            1 => self.pick(&[235, 236, 237, 238, 251, 252, 253]),
            _ => self.random.random_range(128..=208),
        };
        Operand::physical(number)
    }

    fn operand(&mut self, spec: &OperandSpec, agpr: bool, modifiers: Modifiers) -> Operand {
        let width = u32::from(spec.width);
        match spec.class {
            OperandClass::Sgpr => self.sgpr(width),
            OperandClass::Mask | OperandClass::MaskSource if self.chance(2) => Operand::VCC,
            OperandClass::Mask | OperandClass::MaskSource => self.sgpr(2),
            OperandClass::ScalarDst if self.chance(6) => Operand::EXEC,
            OperandClass::ScalarDst if width == 1 && self.chance(6) => Operand::M0,
            OperandClass::ScalarDst => self.sgpr(width),
            OperandClass::ScalarSource => match self.random.random_range(0..6) {
                0 => Operand::EXEC,
                1 => self.inline(),
                2 => Operand::LITERAL,
                3 if width == 1 => Operand::M0,
                _ => self.sgpr(width),
            },
            OperandClass::ScalarInline => match self.random.random_range(0..4) {
                0 => Operand::M0,
                1 => Operand::physical(self.random.random_range(128..=192)),
                _ => self.sgpr(1),
            },
            OperandClass::Vgpr | OperandClass::GlobalAddress => self.vector(width, false),
            OperandClass::Agpr => self.vector(width, true),
            OperandClass::VgprOrAgpr => self.vector(width, agpr),
            OperandClass::MatrixC if self.chance(3) => self.inline(),
            OperandClass::MatrixC => self.vector(width, agpr),
            OperandClass::VectorSource | OperandClass::VectorInline => match self.random.random_range(0..8) {
                0 => self.inline(),
                1 => Operand::LITERAL,
                2 | 3 => self.sgpr(width),
                4 if width == 1 => Operand::M0,
                _ => self.vector(width, false),
            },
            OperandClass::BufferAddress => match (modifiers.has_offen(), modifiers.has_idxen()) {
                (true, true) => self.vector(2, false),
                (false, false) => Operand::NONE,
                _ => self.vector(1, false),
            },
            OperandClass::ScratchAddress if self.chance(2) => Operand::NONE,
            OperandClass::ScratchAddress => self.vector(1, false),
            OperandClass::ScalarBase if self.chance(2) => Operand::NONE,
            OperandClass::ScalarBase => self.sgpr(width),
            OperandClass::ScalarOffset if self.chance(2) => Operand::NONE,
            OperandClass::ScalarOffset if self.chance(3) => Operand::M0,
            OperandClass::ScalarOffset => self.sgpr(1),
            OperandClass::Literal => Operand::LITERAL,
        }
    }

    fn modifiers(&mut self, op: Opcode) -> Modifiers {
        let info = op.info();
        let (all, none) = (info.modifiers, Modifiers::new());
        let bits: u32 = self.random.random();
        let candidates = match info.format {
            Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3b => vec![
                none.neg(bits & all.get_neg()),
                none.abs(bits >> 3 & all.get_abs()),
                none.op_sel(bits >> 6 & all.get_op_sel()),
                none.clamp(),
                none.omod([Omod::Mul2, Omod::Mul4, Omod::Div2][bits as usize >> 12 & 1]),
                none.e64(),
            ],
            Format::Vop3p | Format::Vop3pMix => vec![
                none.neg_lo(bits & all.get_neg_lo()),
                none.neg_hi(bits >> 3 & all.get_neg_hi()),
                none.op_sel(bits >> 6 & all.get_op_sel()),
                none.op_sel_hi_flip(bits >> 9 & all.get_op_sel_hi_flip()),
                none.clamp(),
            ],
            Format::Mai => vec![none.cbsz(bits & 7), none.abid(bits >> 3 & 15), none.blgp(bits >> 7 & 7)],
            Format::Sopk => vec![none.hwreg(bits & 0xffff)],
            _ => vec![none.sc0(), none.sc1(), none.nt(), none.offen(), none.idxen()],
        };
        let mut found = none;
        for candidate in candidates {
            if candidate.within(all) && self.chance(3) {
                found = found.union(candidate);
            }
        }
        found
    }

    /// Offset of `ds_swizzle_b32`. Several masks do the same to the lane number; llvm-mc knows one of each.
    fn swizzle(&mut self) -> u32 {
        if self.chance(3) {
            return self.random.random_range(0x8000..=0xffff);
        }
        (0..5).map(|bit| self.pick(&[0, 1, 1 << 5, 1 | 1 << 10]) << bit).sum()
    }

    fn immediate(&mut self, op: Opcode) -> u32 {
        match op.info().meaning {
            Meaning::Barrier | Meaning::InvalidateCode => return 0,
            // The other bits mean nothing, and llvm-mc clears them.
            Meaning::Wait => return self.random.random_range(0..=0xffff) & 0xcf7f,
            // Geometry and system messages are printed by name in LLVM, by number here.
            Meaning::SendMessage => return self.pick(&[0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 0x77, 0x101, 0xffff]),
            Meaning::LaneSwizzle => return self.swizzle(),
            _ => {}
        }
        let (low, high) = match op.info().format {
            Format::Sopk | Format::Sopp | Format::Ds => (0, 0xffff),
            Format::Smem if matches!(op.info().meaning, Meaning::ScalarBufferLoad(_)) => (0, (1 << 20) - 1),
            Format::Smem if op.info().operands.len() == 3 => (-(1 << 20), (1 << 20) - 1),
            Format::Mubuf | Format::MubufLds | Format::MubufRtn | Format::Flat => (0, 0xfff),
            Format::Global | Format::GlobalRtn | Format::Scratch => (-0x1000, 0xfff),
            _ => return 0,
        };
        let value: i32 = match self.random.random_range(0..4) {
            0 => 0,
            1 => self.pick(&[low, high]),
            _ => self.random.random_range(low..=high),
        };
        value as u32
    }

    /// A literal that no inline constant expresses, and that fits 16 bits where the source has no more.
    fn literal(&mut self, op: Opcode) -> u32 {
        let source = op.info().operands.iter().find(|spec| spec.field == Field::Src0);
        let narrow = |element| is_16_bit_integer(element) || matches!(element, Element::F16 | Element::F16x2);
        match source {
            Some(spec) if narrow(spec.element) => self.random.random_range(0x100..0x3000),
            _ => self.random.random_range(0x100..0x7fff_ffff),
        }
    }

    /// A random instruction of the row, or none if this try gave an illegal one.
    fn inst(&mut self, op: Opcode) -> Option<Inst> {
        let info = op.info();
        let mut inst = Inst::new(op, &[]).modifiers(self.modifiers(op)).imm(self.immediate(op));
        let agpr = self.chance(2);
        for (index, spec) in info.operands.iter().enumerate() {
            inst.operands[index] = self.operand(spec, agpr, inst.modifiers);
        }
        if matches!(info.meaning, Meaning::Mfma(..)) {
            if self.chance(2) {
                inst.operands[1] = self.vector(info.operands[1].width.into(), !agpr);
            }
            if self.chance(2) {
                inst.operands[3] = inst.operands[0];
            }
        }
        if inst.operands.contains(&Operand::LITERAL) {
            inst.imm = self.literal(op);
        }
        (check(&inst).is_ok() && !avoided(&inst)).then_some(inst)
    }
}

fn corpus() -> Vec<Inst> {
    let mut generator = Generator { random: StdRng::seed_from_u64(942) };
    let mut all = Vec::new();
    for &op in Opcode::ALL {
        let mut found: Vec<Inst> = Vec::new();
        for _ in 0..PER_ROW * 20 {
            if found.len() == PER_ROW {
                break;
            }
            match generator.inst(op) {
                Some(inst) if !found.contains(&inst) => found.push(inst),
                _ => {}
            }
        }
        assert!(!found.is_empty(), "{op:?}: no legal instruction found");
        all.extend(found);
    }
    all
}

fn encoded(inst: &Inst) -> Vec<u32> {
    let mut words = Vec::new();
    encode(inst, &mut words).unwrap_or_else(|error| panic!("{inst}: {error}"));
    words
}

/// Runs a tool; none if it is not installed and need not be.
fn run(tool: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(tool).args(arguments).output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{tool} failed:\n{}",
                errors.chars().take(8000).collect::<String>()
            );
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            let required = std::env::var_os("GROUNDSWELL_REQUIRE_ORACLES").is_some_and(|value| value == "1");
            assert!(!required, "{tool}: {error}");
            eprintln!("skipped: {tool} is not installed");
            None
        }
    }
}

/// Assembles text and returns the disassembly: text and words of each instruction.
fn through_llvm(name: &str, text: &str) -> Option<Vec<(String, Vec<u32>)>> {
    let file = |extension| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension(extension);
    let (source, object) = (file("s"), file("o"));
    std::fs::write(&source, text).expect("the target directory can be written");
    let (source, object) = (source.to_string_lossy(), object.to_string_lossy());
    run(
        "llvm-mc-19",
        &["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj", "-o", &object, &source],
    )?;
    let listing = run("llvm-objdump-19", &["-d", "--mcpu=gfx942", &object])?;
    let mut found = Vec::new();
    for line in listing.lines() {
        let Some((text, bytes)) = line.split_once("//") else { continue };
        let Some((_, bytes)) = bytes.split_once(':') else { continue };
        let words = bytes.split_whitespace().map_while(|word| u32::from_str_radix(word, 16).ok()).collect();
        found.push((text.split_whitespace().collect::<Vec<_>>().join(" "), words));
    }
    Some(found)
}

fn complain(what: &str, wrong: &[String]) {
    let shown = wrong.iter().take(60).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{what}: {} disagreements\n{shown}", wrong.len());
}

#[test]
fn llvm_assembles_our_text_to_our_bytes_and_prints_our_text() {
    let corpus = corpus();
    let text: String = corpus.iter().map(|inst| format!("{inst}\n")).collect();
    let Some(listing) = through_llvm("isa_corpus", &text) else { return };
    assert_eq!(listing.len(), corpus.len());
    let mut wrong = Vec::new();
    for (inst, (text, words)) in corpus.iter().zip(&listing) {
        if encoded(inst) != *words {
            wrong.push(format!("{inst}: ours {:08x?}, LLVM {words:08x?}", encoded(inst)));
        } else if inst.to_string() != *text {
            wrong.push(format!("ours {inst} | LLVM {text}"));
        }
    }
    complain("LLVM", &wrong);
}

#[test]
fn decoding_gives_back_what_was_encoded() {
    let mut wrong = Vec::new();
    for inst in corpus() {
        let words = encoded(&inst);
        assert_eq!(4 * words.len() as u32, size_in_bytes(&inst), "{inst}");
        let decoded = decode(&words);
        if decoded != Ok((normal(&inst), words.len())) {
            wrong.push(format!("{inst}: {:?}\n  {decoded:?}", normal(&inst)));
        }
    }
    complain("decode", &wrong);
}

/// Of the records that encode alike the one that the decoder gives: e64 is set only where the short form would do.
fn normal(inst: &Inst) -> Inst {
    let without = inst.modifiers(inst.modifiers.without_e64());
    if size_in_bytes(&without) == 8 && !without.operands.contains(&Operand::LITERAL) {
        without
    } else {
        *inst
    }
}
