//! Instructions generated from the table: for every row of a chip, every form of it, with operands and
//! modifiers of every kind in random combinations.

use groundswell::isa::{
    Arch, Dpp, Element, Field, Format, Inst, Meaning, Modifiers, Omod, OpInfo, Opcode, Operand, OperandClass,
    OperandSpec, Sdwa, Select, Unused, check,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Instructions per row and form.
const PER_FORM: usize = 24;

/// How a row is encoded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Form {
    Plain,
    Dpp,
    Sdwa,
}

struct Generator {
    random: StdRng,
    arch: Arch,
}

/// Distinct legal instructions of every row that `arch` has and `wanted` accepts.
///
/// # Panics
/// If a row has a form of which no legal instruction is found.
pub fn corpus(arch: Arch, wanted: impl Fn(&Inst) -> bool) -> Vec<Inst> {
    let mut generator = Generator { random: StdRng::seed_from_u64(942), arch };
    let mut all = Vec::new();
    for &op in Opcode::ALL.iter().filter(|op| op.on(arch)) {
        for form in [Form::Plain, Form::Dpp, Form::Sdwa] {
            if !has(op.info(), form, arch) {
                continue;
            }
            let mut found: Vec<Inst> = Vec::new();
            for _ in 0..PER_FORM * 30 {
                if found.len() == PER_FORM {
                    break;
                }
                match generator.inst(op, form) {
                    Some(inst) if wanted(&inst) && !found.contains(&inst) => found.push(inst),
                    _ => {}
                }
            }
            assert!(!found.is_empty(), "{op:?}: no legal instruction found in the form {form:?} of {arch}");
            all.extend(found);
        }
    }
    all
}

fn has(info: &OpInfo, form: Form, arch: Arch) -> bool {
    match form {
        Form::Plain => true,
        Form::Dpp => !info.dpp_modifiers.is_empty() && (!info.is_wide() || arch >= Arch::Gfx90a),
        Form::Sdwa => !info.sdwa_modifiers.is_empty(),
    }
}

fn is_16_bit(element: Element) -> bool {
    use Element::*;
    matches!(element, B16 | I16 | U16 | F16 | F16x2 | Bf16 | Bf16x2 | I16x2)
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
            1 => &[106, 107, 102, 108, 123],
            2 => &[106, 102, 108, 122],
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
        let alignment = if width > 1 && self.arch >= Arch::Gfx90a { 2 } else { 1 };
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

    fn operand(&mut self, inst: &Inst, index: usize, agpr: bool) -> Operand {
        let (info, modifiers) = (inst.op.info(), inst.modifiers);
        let spec = &info.operands[index];
        let width = u32::from(inst.width(index));
        let implied = modifiers.has_second_word() && matches!(spec.field, Field::Sdst | Field::Src2);
        match spec.class {
            OperandClass::Sgpr => self.sgpr(width),
            OperandClass::Mask | OperandClass::MaskSource if implied || self.chance(2) => Operand::VCC,
            OperandClass::Mask if self.chance(4) => Operand::EXEC,
            OperandClass::Mask | OperandClass::MaskSource => self.sgpr(2),
            OperandClass::ScalarDst if self.chance(6) => Operand::EXEC,
            OperandClass::ScalarDst if width == 1 && self.chance(6) => Operand::M0,
            OperandClass::ScalarDst | OperandClass::ScalarRegister => self.sgpr(width),
            OperandClass::ScalarSource => match self.random.random_range(0..6) {
                0 => Operand::EXEC,
                1 => self.inline(),
                2 => Operand::LITERAL,
                3 if width == 1 => Operand::M0,
                _ => self.sgpr(width),
            },
            OperandClass::ScalarInline => match self.random.random_range(0..4) {
                0 if width == 1 => Operand::M0,
                1 => Operand::physical(self.random.random_range(128..=192)),
                _ => self.sgpr(width),
            },
            OperandClass::Vgpr | OperandClass::GlobalAddress | OperandClass::ImageAddress(_) => {
                self.vector(width, false)
            }
            OperandClass::Agpr => self.vector(width, true),
            OperandClass::VgprOrAgpr | OperandClass::MatrixFormatted | OperandClass::ImageData => {
                self.vector(width, agpr)
            }
            OperandClass::MatrixC if self.chance(3) => Operand::physical(self.random.random_range(128..=208)),
            OperandClass::MatrixC => self.vector(width, agpr),
            OperandClass::VectorSource | OperandClass::VectorInline if modifiers.has_dpp() => {
                self.vector(width, false)
            }
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
            OperandClass::ScratchAddress | OperandClass::Exported if self.chance(2) => Operand::NONE,
            OperandClass::ScratchAddress | OperandClass::Exported => self.vector(1, false),
            OperandClass::ScalarBase if self.chance(2) => Operand::NONE,
            OperandClass::ScalarBase => self.sgpr(width),
            OperandClass::ScalarOffset if self.chance(2) => Operand::NONE,
            OperandClass::ScalarOffset if self.chance(3) => Operand::M0,
            OperandClass::ScalarOffset => self.sgpr(1),
            OperandClass::Literal => Operand::LITERAL,
        }
    }

    fn modifiers(&mut self, info: &OpInfo, form: Form) -> Modifiers {
        let none = Modifiers::new();
        let start = match form {
            Form::Plain => none,
            Form::Dpp => none.dpp(),
            Form::Sdwa => none.sdwa(),
        };
        let all = info.modifiers_on(self.arch, start);
        let bits: u32 = self.random.random();
        let candidates = match info.format {
            format if format.is_vop3() => vec![
                none.neg(bits & all.get_neg()),
                none.abs(bits >> 3 & all.get_abs()),
                none.op_sel(bits >> 6 & all.get_op_sel()),
                none.clamp(),
                none.omod([Omod::Mul2, Omod::Mul4, Omod::Div2][bits as usize >> 12 & 1]),
                none.sign_extend(bits >> 14 & all.get_sign_extend()),
                none.bitop3(bits >> 16 & all.get_bitop3()),
                none.e64(),
            ],
            Format::Vop3p | Format::Vop3pMix => vec![
                none.neg_lo(bits & all.get_neg_lo()),
                none.neg_hi(bits >> 3 & all.get_neg_hi()),
                none.op_sel(bits >> 6 & all.get_op_sel()),
                none.op_sel_hi_flip(bits >> 9 & all.get_op_sel_hi_flip()),
                none.clamp(),
            ],
            Format::Mai | Format::MaiScaled => {
                let formats = matches!(info.meaning, Meaning::FormattedMfma(_));
                let [a, b] = if formats { [bits % 5, bits / 5 % 5] } else { [bits & 7, bits >> 7 & 7] };
                vec![
                    none.cbsz(a),
                    none.abid(bits >> 3 & 15),
                    none.blgp(b),
                    none.scale_select(bits >> 10 & 15),
                ]
            }
            Format::Sopk => vec![none.hwreg(bits & 0xffff)],
            // Compressed ones have two registers alone.
            Format::Exp => vec![none.export_flags(bits & 0b110)],
            Format::Vintrp => vec![none.parameter(bits % 3)],
            Format::Mimg => vec![
                none.dmask(1 << (bits & 3)),
                none.dmask(bits >> 2 & 15),
                none.dmask(if bits & 64 == 0 { 3 } else { 15 }),
                none.sc0(),
                none.sc1(),
                none.nt(),
                none.unorm(),
                none.a16(),
                none.tfe(),
                none.lwe(),
                none.da(),
                none.d16(),
            ],
            Format::Smem => vec![none.sc0(), none.probe(bits & all.get_probe())],
            Format::Mubuf | Format::Mtbuf => {
                let format = none.format_flip(bits & all.get_format_flip());
                vec![none.sc0(), none.sc1(), none.nt(), none.offen(), none.idxen(), none.tfe(), format]
            }
            _ => vec![none.sc0(), none.sc1(), none.nt(), none.offen(), none.idxen(), none.gds()],
        };
        let mut found = start;
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

    fn dpp(&mut self, wide: bool) -> u32 {
        let control = match self.random.random_range(0..6) {
            _ if wide => self.random.random_range(0x150..=0x15f),
            0 | 1 => self.random.random_range(0..=0xff),
            2 | 3 => self.pick(&[0x100, 0x110, 0x120]) + self.random.random_range(1..=15),
            4 => self.pick(&[0x130, 0x134, 0x138, 0x13c, 0x140, 0x141, 0x142, 0x143]),
            _ if self.arch >= Arch::Gfx90a => self.random.random_range(0x150..=0x15f),
            _ => 0x1b,
        };
        let mut mask = || if self.chance(2) { 0xf } else { self.random.random_range(0..=0xf) };
        let (row_mask, bank_mask) = (mask(), mask());
        Dpp { control, row_mask, bank_mask, bound_control: self.chance(3) }.to_imm()
    }

    fn sdwa(&mut self, info: &OpInfo) -> u32 {
        use Select::*;
        let mut select = || self.pick(&[Byte0, Byte1, Byte2, Byte3, Word0, Word1, Dword]);
        let mut sdwa = Sdwa { dst: select(), sources: [select(), select()], unused: Unused::Pad };
        sdwa.unused = self.pick(&[Unused::Pad, Unused::SignExtend, Unused::Preserve]);
        if !info.selects_result() {
            (sdwa.dst, sdwa.unused) = (Dword, Unused::Pad);
        }
        if !info.operands.iter().any(|spec| spec.field == Field::Src1) {
            sdwa.sources[1] = Byte0;
        }
        sdwa.to_imm()
    }

    fn immediate(&mut self, op: Opcode, form: Form) -> u32 {
        let info = op.info();
        match (form, info.meaning) {
            (Form::Dpp, _) => return self.dpp(info.is_wide()),
            (Form::Sdwa, _) => return self.sdwa(info),
            (_, Meaning::SetGprIndexOn | Meaning::SetGprIndexMode) => {
                return self.random.random_range(0..=15);
            }
            _ if !info.takes_immediate() => return 0,
            // The other bits mean nothing, and llvm-mc clears them.
            (_, Meaning::Wait) => return self.random.random_range(0..=0xffff) & 0xcf7f,
            // Geometry and system messages are printed by name in LLVM, by number here.
            (_, Meaning::SendMessage) => {
                return self.pick(&[0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 0x77, 0x101, 0xffff]);
            }
            (_, Meaning::LaneSwizzle) => return self.swizzle(),
            (_, Meaning::Export) => return self.pick(&[0, 7, 8, 9, 12, 15, 32, 63]),
            (_, Meaning::Interpolate) => {
                let attribute = self.random.random_range(0..=0x7f);
                let has_parameter = info.format == Format::VintrpLong && info.operands.len() == 1;
                return attribute | if has_parameter { self.random.random_range(0..3) << 8 } else { 0 };
            }
            _ => {}
        }
        let (low, high) = match info.format {
            Format::Sopk | Format::Sopp | Format::Ds | Format::Gws => (0, 0xffff),
            Format::Smem if info.has_buffer_descriptor() => (0, (1 << 20) - 1),
            Format::Smem => (-(1 << 20), (1 << 20) - 1),
            format if format.is_mubuf() => (0, 0xfff),
            Format::Flat | Format::FlatRtn => (0, 0xfff),
            format if format.is_flat() => (-0x1000, 0xfff),
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
        let narrow = op
            .info()
            .operands
            .iter()
            .any(|spec| matches!(spec.field, Field::Src0 | Field::Src1) && is_16_bit(spec.element));
        let is_double = |spec: &OperandSpec| spec.field == Field::Src0 && spec.element == Element::F64;
        let of_doubles = op.info().operands.iter().any(is_double);
        if narrow {
            self.random.random_range(0x100..0x3000)
        } else if of_doubles && self.chance(2) {
            // What would be an inline constant of 32 bits is none as the high half of a double.
            let values = [u32::MAX, 0xffff_fff0, 0x3f80_0000, 0xc080_0000, 0x3e22_f983];
            values[self.random.random_range(0..values.len())]
        } else {
            self.random.random_range(0x100..0x7fff_ffff)
        }
    }

    /// A random instruction of the row in the form, or none if this try gave an illegal one.
    fn inst(&mut self, op: Opcode, form: Form) -> Option<Inst> {
        let info = op.info();
        let mut inst = Inst::new(op, &[]).modifiers(self.modifiers(info, form)).imm(self.immediate(op, form));
        let agpr = self.chance(2);
        for index in 0..info.operands.len() {
            inst.operands[index] = self.operand(&inst, index, agpr);
        }
        if matches!(info.format, Format::Mai | Format::MaiScaled) {
            if self.chance(2) {
                let width = inst.width(1).into();
                inst.operands[1] = self.vector(width, !agpr);
            }
            if self.chance(2) && info.operands[3].class == OperandClass::MatrixC {
                inst.operands[3] = inst.operands[0];
            }
        }
        if inst.operands.contains(&Operand::LITERAL) {
            inst.imm = self.literal(op);
        }
        check(&inst, self.arch).is_ok().then_some(inst)
    }
}
