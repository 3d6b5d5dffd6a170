//! The part of an instruction after the operands.

use super::super::dpp::Dpp;
use super::super::encode::default_op_sel_hi;
use super::super::layout::memory;
use super::super::sdwa::{Sdwa, Select, Unused};
use super::super::{Arch, Arches, Format, Inst, Meaning, Modifiers, Omod, OpInfo};
use super::cursor::StatementCursor;
use super::error::{InstructionFault, LineError};
use super::expression::SymbolValues;
use super::fields::{choice, number, swizzle};
use super::{ParseContext, Surroundings};

/// A modifier, by its effect.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum ModifierKind {
    Offset,
    /// `offset0`, `offset1`
    HalfOffset(u32),
    Gds,
    Lds,
    /// Returns the old value, or caches less.
    Sc0,
    Sc1,
    Nt,
    Offen,
    Idxen,
    /// A status after the data.
    Tfe,
    /// Which components of an image.
    Dmask,
    Unorm,
    A16,
    Lwe,
    Da,
    D16,
    /// The high half of an attribute.
    High,
    /// A flag of an export.
    ExportFlag(u32),
    Clamp,
    Multiply,
    Divide,
    OpSel,
    OpSelHi,
    NegLo,
    NegHi,
    Cbsz,
    Abid,
    Blgp,
    /// Negation of F64 matrix operands, where others have blgp.
    Neg,
    Bitop3,
    QuadPerm,
    /// A DPP control with an argument or without.
    Control,
    RowMask,
    BankMask,
    BoundControl,
    FetchInactive,
    DstSelect,
    DstUnused,
    SrcSelect(usize),
}

use ModifierKind::*;

const NAMES: [(&str, ModifierKind); 56] = [
    ("offset", Offset),
    ("offset0", HalfOffset(0)),
    ("offset1", HalfOffset(1)),
    ("gds", Gds),
    ("lds", Lds),
    ("glc", Sc0),
    ("sc0", Sc0),
    ("scc", Sc1),
    ("sc1", Sc1),
    ("slc", Nt),
    ("nt", Nt),
    ("offen", Offen),
    ("idxen", Idxen),
    ("tfe", Tfe),
    ("dmask", Dmask),
    ("unorm", Unorm),
    ("a16", A16),
    ("lwe", Lwe),
    ("da", Da),
    ("d16", D16),
    ("high", High),
    ("compr", ExportFlag(1)),
    ("done", ExportFlag(2)),
    ("vm", ExportFlag(4)),
    ("clamp", Clamp),
    ("mul", Multiply),
    ("div", Divide),
    ("op_sel", OpSel),
    ("op_sel_hi", OpSelHi),
    ("neg_lo", NegLo),
    ("neg_hi", NegHi),
    ("cbsz", Cbsz),
    ("abid", Abid),
    ("blgp", Blgp),
    ("neg", Neg),
    ("bitop3", Bitop3),
    ("quad_perm", QuadPerm),
    ("row_shl", Control),
    ("row_shr", Control),
    ("row_ror", Control),
    ("row_bcast", Control),
    ("row_newbcast", Control),
    ("row_mirror", Control),
    ("row_half_mirror", Control),
    ("wave_shl", Control),
    ("wave_shr", Control),
    ("wave_rol", Control),
    ("wave_ror", Control),
    ("row_mask", RowMask),
    ("bank_mask", BankMask),
    ("bound_ctrl", BoundControl),
    ("fi", FetchInactive),
    ("dst_sel", DstSelect),
    ("dst_unused", DstUnused),
    ("src0_sel", SrcSelect(0)),
    ("src1_sel", SrcSelect(1)),
];

impl ModifierKind {
    /// True if an instruction of the row may have it on `arch`.
    fn is_on(self, info: &OpInfo, arch: Arch) -> bool {
        let (format, all) = (info.format, info.modifiers_on(arch, Modifiers::new()));
        let (dpp, sdwa) = (info.dpp_modifiers, info.sdwa_modifiers);
        let is_image = format == Format::Mimg;
        let has_cache_bits = format.is_mubuf() || format.is_flat() || is_image || format == Format::Smem;
        let is_packed = matches!(format, Format::Vop3p | Format::Vop3pMix);
        let is_matrix = matches!(format, Format::Mai | Format::MaiScaled);
        let is_scaled = format == Format::MaiScaled;
        let is_swap = format == Format::Vop1Swap;
        // The bits of op_sel have names of their own.
        let has_own_names = is_swap || format == Format::VintrpHalf;
        match self {
            Offset => offset_range(info).is_some() && !info.has_two_offsets(),
            HalfOffset(_) => info.has_two_offsets(),
            Gds => format.is_ds() && (all.has_gds() || format == Format::Gws),
            Lds => format.is_to_lds(),
            Sc0 => has_cache_bits && (all.has_sc0() || format.returns()),
            Sc1 => has_cache_bits && all.has_sc1(),
            Nt => has_cache_bits && all.has_nt(),
            Offen => format.is_mubuf() && all.has_offen(),
            Idxen => format.is_mubuf() && all.has_idxen(),
            Tfe => (format.is_mubuf() || is_image) && all.has_tfe(),
            Dmask | Unorm | A16 | Lwe | Da => is_image,
            D16 => is_image && all.has_d16(),
            High => format == Format::VintrpHalf,
            ExportFlag(_) => format == Format::Exp,
            Clamp if is_packed => all.has_clamp(),
            Clamp => format.is_vop3() && (all.has_clamp() || sdwa.has_clamp()),
            Multiply | Divide => {
                format.is_vop3() && (all.get_omod() != Omod::None || sdwa.get_omod() != Omod::None)
            }
            OpSel => is_scaled || (is_packed || format.is_vop3() && !has_own_names) && all.get_op_sel() != 0,
            OpSelHi => is_scaled || is_packed && all.get_op_sel_hi_flip() != 0,
            NegLo => format == Format::Vop3p && all.get_neg_lo() != 0,
            NegHi => format == Format::Vop3p && all.get_neg_hi() != 0,
            Cbsz => is_matrix && all.get_cbsz() != 0,
            Abid => is_matrix && !is_scaled && all.get_abid() != 0,
            Blgp => is_matrix && all.get_blgp() != 0,
            // Signs of F64 factors came with gfx942.
            Neg => is_matrix && is_double_matrix(info) && arch.has_scope_bits(),
            Bitop3 => format.is_vop3() && all.get_bitop3() != 0,
            BoundControl => is_swap || !dpp.is_empty(),
            FetchInactive => is_swap,
            QuadPerm | Control | RowMask | BankMask => !dpp.is_empty(),
            DstSelect | DstUnused => !sdwa.is_empty() && info.selects_result(),
            SrcSelect(index) => !sdwa.is_empty() && index < info.short_sources(),
        }
    }
}

fn is_double_matrix(info: &OpInfo) -> bool {
    matches!(info.meaning, Meaning::Mfma(_, _, _, super::super::Element::F64))
}

/// Offsets that a memory instruction can have.
pub(super) fn offset_range(info: &OpInfo) -> Option<(i64, i64)> {
    if !info.takes_immediate() {
        return None;
    }
    Some(match info.format {
        Format::Ds | Format::Gws => memory::DS_OFFSET.numbers(),
        Format::Flat | Format::FlatRtn => memory::FLAT_OFFSET.numbers(),
        format if format.is_mubuf() => memory::MUBUF_OFFSET.numbers(),
        format if format.is_flat() => memory::GLOBAL_OFFSET.signed_numbers(),
        Format::Smem if info.has_buffer_descriptor() => memory::SMEM_BUFFER_OFFSET.numbers(),
        Format::Smem => memory::SMEM_OFFSET.signed_numbers(),
        _ => return None,
    })
}

/// The modifiers of one instruction so far.
pub(super) struct Tail<'a> {
    info: &'static OpInfo,
    arch: Arch,
    /// The chips that the modifiers so far may be for: in a body the chip is not known.
    chips: Arches,
    symbols: &'a dyn SymbolValues,
    seen: Vec<&'static str>,
    pub modifiers: Modifiers,
    pub imm: u32,
    dpp: Option<Dpp>,
    has_control: bool,
    sdwa: Option<Sdwa>,
    /// The offset was among the operands.
    has_offset: bool,
    /// `mul:1` or `div:1`, which only ask for the long encoding.
    pub has_neutral_omod: bool,
}

impl<'a> Tail<'a> {
    pub(super) fn new(inst: &Inst, context: &ParseContext<'a>) -> Tail<'a> {
        let info = inst.op.info();
        let chips = match context.surroundings {
            Surroundings::Body => info.arches,
            Surroundings::Alone | Surroundings::File => Arches::NONE.with(context.arch),
        };
        Tail {
            info,
            arch: context.arch,
            chips,
            symbols: context.symbols,
            seen: Vec::new(),
            modifiers: inst.modifiers,
            imm: inst.imm,
            dpp: None,
            has_control: false,
            sdwa: None,
            has_offset: info.scalar_offset().is_some_and(|index| inst.operands[index].is_none()),
            has_neutral_omod: false,
        }
    }

    /// Reads to the end of the statement.
    pub(super) fn parse(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        cursor.eat(",");
        while !cursor.is_at_end() {
            self.one(cursor)?;
            cursor.eat(",");
        }
        if self.info.format.is_to_lds() && !self.seen.contains(&"lds") {
            return Err(cursor.expected("`lds`"));
        }
        if matches!(self.info.format, Format::Gws) && !self.seen.contains(&"gds") {
            return Err(cursor.expected("`gds`"));
        }
        if self.dpp.is_some() && !self.has_control {
            return Err(cursor.expected("a DPP control"));
        }
        Ok(())
    }

    /// The immediate of the DPP form, if there were modifiers of it.
    pub(super) fn dpp(&self) -> Option<u32> {
        self.dpp.map(Dpp::to_imm)
    }

    /// The immediate of the SDWA form, if there were modifiers of it.
    pub(super) fn sdwa(&self) -> Option<u32> {
        self.sdwa.map(Sdwa::to_imm)
    }

    /// The immediate of the SDWA form without any modifier.
    pub(super) fn default_sdwa(&self) -> Sdwa {
        let unused = if self.info.selects_result() { Unused::Preserve } else { Unused::Pad };
        // The part of a source that does not exist is all zeros.
        let second = if self.info.short_sources() == 2 { Select::Dword } else { Select::Byte0 };
        Sdwa { dst: Select::Dword, unused, sources: [Select::Dword, second] }
    }

    fn one(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        let Some(text) = cursor.take_name() else { return Err(cursor.expected("a modifier")) };
        let known = |text: &str| NAMES.iter().find(|(name, _)| *name == text).copied();
        let (found, on) = match known(text) {
            Some(found) => (Some(found), true),
            None => (text.strip_prefix("no").and_then(known), false),
        };
        let unknown = || start.fault(InstructionFault::NoModifier { name: text.to_owned() });
        let (name, kind) = found.ok_or_else(unknown)?;
        let is_graphics_flag = matches!(kind, Unorm | A16 | Lwe | Da | D16 | High);
        let is_flag =
            is_graphics_flag || matches!(kind, Gds | Lds | Sc0 | Sc1 | Nt | Offen | Idxen | Tfe | Clamp);
        if !on && !is_flag {
            return Err(unknown());
        }
        self.check_home(name, kind).map_err(|fault| start.fault(fault))?;
        if self.seen.contains(&name) {
            return Err(start.fault(InstructionFault::Twice { name: name.to_owned() }));
        }
        if !on {
            return Ok(());
        }
        self.seen.push(name);
        self.apply(name, kind, &start, cursor)
    }

    /// Checks that row and chip have the modifier, under this name.
    fn check_home(&self, name: &'static str, kind: ModifierKind) -> Result<(), InstructionFault> {
        let has = |arch| self.info.arches.contains(arch) && kind.is_on(self.info, arch);
        if self.chips.iter().any(has) {
            let scoped = self.arch.has_scope_bits() && self.info.format != Format::Smem;
            let names = if scoped { ["sc0", "sc1", "nt"] } else { ["glc", "scc", "slc"] };
            let other = match kind {
                Sc0 => names[0],
                Sc1 => names[1],
                Nt => names[2],
                _ => name,
            };
            return match other == name || self.chips.iter().count() > 1 {
                true => Ok(()),
                false => Err(InstructionFault::Renamed { name, other, arch: self.arch }),
            };
        }
        let elsewhere = Arch::ALL.into_iter().filter(|&arch| has(arch)).fold(Arches::NONE, Arches::with);
        let mnemonic = self.info.mnemonic_on(self.arch);
        Err(match elsewhere == Arches::NONE {
            true => InstructionFault::Modifier { mnemonic, name: name.to_owned() },
            false => InstructionFault::Arch { name: name.to_owned(), arch: self.arch, arches: elsewhere },
        })
    }

    fn apply(
        &mut self,
        name: &'static str,
        kind: ModifierKind,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        let m = self.modifiers;
        let twice = |name: &str| Err(start.fault(InstructionFault::Twice { name: name.to_owned() }));
        self.modifiers = match kind {
            Offset if self.has_offset => return twice(name),
            Offset => return self.offset(cursor),
            Multiply | Divide if self.seen.contains(&"mul") && self.seen.contains(&"div") => {
                return twice("output modifier");
            }
            HalfOffset(half) => return self.half_offset(half, cursor),
            Gds if self.info.format == Format::Gws => m,
            Gds => m.gds(),
            Lds => m,
            Sc0 if self.info.format.returns() => m,
            Sc0 => m.sc0(),
            Sc1 => m.sc1(),
            Nt => m.nt(),
            Offen => m.offen(),
            Idxen => m.idxen(),
            Tfe => m.tfe(),
            Dmask => m.dmask(self.number(cursor, "dmask", (0, 15))?),
            Unorm => m.unorm(),
            A16 => m.a16(),
            Lwe => m.lwe(),
            Da => m.da(),
            D16 => m.d16(),
            High => m.op_sel(1),
            ExportFlag(flag) => m.export_flags(m.get_export_flags() | flag),
            Clamp => m.clamp(),
            Multiply | Divide => {
                let omod = self.output_modifier(kind, cursor)?;
                self.has_neutral_omod |= omod == Omod::None;
                m.omod(omod)
            }
            OpSel | OpSelHi | NegLo | NegHi => return self.list(name, kind, start, cursor),
            Cbsz => m.cbsz(self.number(cursor, "cbsz", (0, 7))?),
            Abid => m.abid(self.number(cursor, "abid", (0, 15))?),
            Blgp => m.blgp(self.number(cursor, "blgp", (0, 7))?),
            Neg => m.blgp(self.bits(cursor)?.0),
            Bitop3 => m.bitop3(self.number(cursor, "bitop3", (0, 0xff))?),
            BoundControl if self.info.format == Format::Vop1Swap => {
                // As with DPP, 0 is the older way to write 1.
                self.number(cursor, "bound_ctrl", (0, 1))?;
                m.op_sel(m.get_op_sel() | 0b10)
            }
            FetchInactive => m.op_sel(m.get_op_sel() | self.number(cursor, "fi", (0, 1))?),
            QuadPerm | Control | RowMask | BankMask | BoundControl => {
                return self.lanes(name, kind, start, cursor);
            }
            DstSelect | DstUnused | SrcSelect(_) => return self.parts(kind, cursor),
        };
        Ok(())
    }

    /// `offset0:1`, `offset1:2`
    fn half_offset(&mut self, half: u32, cursor: &mut StatementCursor) -> Result<(), LineError> {
        self.imm |= self.number(cursor, "the offset", (0, 0xff))? << (8 * half);
        Ok(())
    }

    /// `mul:2`, `div:2`
    fn output_modifier(&self, kind: ModifierKind, cursor: &mut StatementCursor) -> Result<Omod, LineError> {
        const FACTORS: [Omod; 3] = [Omod::None, Omod::Mul2, Omod::Mul4];
        const DIVISORS: [Omod; 2] = [Omod::None, Omod::Div2];
        Ok(match kind {
            Multiply => FACTORS[self.choice(cursor, "mul", &[1, 2, 4])?],
            _ => DIVISORS[self.choice(cursor, "div", &[1, 2])?],
        })
    }

    fn number(
        &self,
        cursor: &mut StatementCursor,
        what: &'static str,
        range: (i64, i64),
    ) -> Result<u32, LineError> {
        cursor.expect(":")?;
        Ok(number(cursor, self.symbols, what, range)? as u32)
    }

    fn choice(
        &self,
        cursor: &mut StatementCursor,
        what: &'static str,
        values: &[i64],
    ) -> Result<usize, LineError> {
        cursor.expect(":")?;
        choice(cursor, self.symbols, what, values)
    }

    fn offset(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        if self.info.meaning == Meaning::LaneSwizzle {
            let mut next = *cursor;
            if next.eat(":") && next.is_call("swizzle", b'(') {
                *cursor = next;
                self.imm = swizzle(cursor, self.symbols)?;
                return Ok(());
            }
        }
        let range = offset_range(self.info).unwrap_or((0, 0));
        self.imm = self.number(cursor, "the offset", range)?;
        if self.info.format == Format::Smem && self.imm == 0 {
            self.modifiers = self.modifiers.zero_offset();
        }
        Ok(())
    }

    /// `[1,0,1]`: the bits, and how many there are.
    fn bits(&self, cursor: &mut StatementCursor) -> Result<(u32, u32), LineError> {
        const MOST: u32 = 4;
        cursor.expect(":")?;
        cursor.expect("[")?;
        let (mut bits, mut count) = (0, 0);
        loop {
            bits |= (number(cursor, self.symbols, "each of the list", (0, 1))? as u32) << count;
            count += 1;
            if cursor.eat("]") {
                return Ok((bits, count));
            }
            if count == MOST {
                return Err(cursor.expected("`]`"));
            }
            cursor.expect(",")?;
        }
    }

    fn list(
        &mut self,
        name: &'static str,
        kind: ModifierKind,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        let (bits, _) = self.bits(cursor)?;
        let (info, m) = (self.info, self.modifiers);
        let entries = match info.format {
            Format::Vop3p | Format::Vop3pMix => info.operands.len() as u32 - 1,
            Format::MaiScaled => 2,
            _ => info.op_sel_bits(),
        };
        if bits >> entries != 0 {
            let found = bits.into();
            return Err(start.fault(InstructionFault::Range {
                what: name,
                low: 0,
                high: (1 << entries) - 1,
                found,
            }));
        }
        let all = (1 << entries) - 1;
        self.modifiers = match kind {
            OpSel if info.format == Format::MaiScaled => {
                m.scale_select(m.get_scale_select() | bits & 1 | (bits & 2) << 1)
            }
            OpSelHi if info.format == Format::MaiScaled => {
                m.scale_select(m.get_scale_select() | (bits & 1) << 1 | (bits & 2) << 2)
            }
            OpSel if matches!(info.format, Format::Vop3p | Format::Vop3pMix) => m.op_sel(bits),
            OpSel => {
                // The last of the list is the result, whose bit is the fourth whatever the number of sources.
                let result = bits >> (entries - 1) << 3;
                m.op_sel(bits & (all >> 1) | result)
            }
            OpSelHi => m.op_sel_hi_flip((bits ^ default_op_sel_hi(info.format)) & all),
            NegLo => m.neg_lo(bits),
            _ => m.neg_hi(bits),
        };
        Ok(())
    }

    fn lanes(
        &mut self,
        name: &'static str,
        kind: ModifierKind,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        let mut dpp = self.dpp.unwrap_or(Dpp::new(0));
        match kind {
            RowMask => dpp.row_mask = self.number(cursor, "row_mask", (0, 15))?,
            BankMask => dpp.bank_mask = self.number(cursor, "bank_mask", (0, 15))?,
            BoundControl => {
                // Once 0 stood for the bit, later 1 did; both mean the same.
                self.number(cursor, "bound_ctrl", (0, 1))?;
                dpp.bound_control = true;
            }
            _ => {
                if std::mem::replace(&mut self.has_control, true) {
                    return Err(start.fault(InstructionFault::Twice { name: "DPP control".to_owned() }));
                }
                dpp.control = match kind {
                    QuadPerm => self.quad_perm(cursor)?,
                    _ => self.control(name, start, cursor)?,
                };
            }
        }
        self.dpp = Some(dpp);
        Ok(())
    }

    fn quad_perm(&self, cursor: &mut StatementCursor) -> Result<u32, LineError> {
        cursor.expect(":")?;
        let mut lanes = [0; 4];
        let mut before = "[";
        for lane in &mut lanes {
            cursor.expect(before)?;
            *lane = number(cursor, self.symbols, "the lane", (0, 3))? as u32;
            before = ",";
        }
        cursor.expect("]")?;
        Ok(Dpp::quad_perm(lanes))
    }

    fn control(
        &self,
        name: &'static str,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<u32, LineError> {
        let mut argument = 0;
        if Dpp::takes_argument(name) {
            argument = self.number(cursor, "the lanes", (0, 31))?;
        }
        let found = argument.into();
        let control = Dpp::control(name, argument);
        let control = control.ok_or_else(|| start.fault(InstructionFault::Choice { what: name, found }))?;
        let is_legal = |arch: Arch| Dpp::new(control).is_legal(arch, self.info.is_wide());
        if self.chips.iter().any(is_legal) {
            return Ok(control);
        }
        let legal = Arch::ALL.into_iter().filter(|&arch| self.info.arches.contains(arch) && is_legal(arch));
        let arches = legal.fold(Arches::NONE, Arches::with);
        Err(start.fault(match arches == Arches::NONE {
            true => InstructionFault::Modifier {
                mnemonic: self.info.mnemonic_on(self.arch),
                name: name.to_owned(),
            },
            false => InstructionFault::Arch { name: name.to_owned(), arch: self.arch, arches },
        }))
    }

    fn parts(&mut self, kind: ModifierKind, cursor: &mut StatementCursor) -> Result<(), LineError> {
        const PART: &str = "`DWORD`, `BYTE_0` to `BYTE_3`, `WORD_0` or `WORD_1`";
        const REST: &str = "`UNUSED_PAD`, `UNUSED_SEXT` or `UNUSED_PRESERVE`";
        let mut sdwa = self.sdwa.unwrap_or(self.default_sdwa());
        cursor.expect(":")?;
        let start = *cursor;
        let name = cursor.take_name().unwrap_or("");
        let part = || Select::from_name(name).ok_or_else(|| start.expected(PART));
        match kind {
            DstSelect => sdwa.dst = part()?,
            SrcSelect(index) => sdwa.sources[index.min(1)] = part()?,
            _ => sdwa.unused = Unused::from_name(name).ok_or_else(|| start.expected(REST))?,
        }
        self.sdwa = Some(sdwa);
        Ok(())
    }
}
