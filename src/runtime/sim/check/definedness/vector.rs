//! Definedness through the vector ALU, lane by lane.

use smallvec::SmallVec;

use crate::codegen::isa::{Calc, Condition, Element, Field, Half, Inst, Meaning, OperandClass, Sdwa, Select};
use crate::codegen::rules::{EXEC, UsedRegisters, VCC};

use super::super::super::execute::{self, dpp_lanes, sdwa_extract, sdwa_insert};
use super::super::super::program::OperandPlace;
use super::super::super::register_bits::FIRST_VECTOR;
use super::super::super::wave::{LANES, VectorRow};
use super::super::finding::Use;
use super::super::registers::UndefinedOrigin;
use super::known::{KnownBits, low_bits};
use super::rules::{DefinednessMethod, DefinednessRule, IntegerKind, way};
use super::slices::{BitSlice, ValuePiece, pieces};
use super::{DefinednessFlow, Undefined};

/// A source, lane by lane.
struct LaneSource {
    value: [u64; LANES],
    undefined: [u64; LANES],
}

impl LaneSource {
    fn lane(&self, l: usize) -> KnownBits {
        KnownBits { value: self.value[l], undefined: self.undefined[l] }
    }
}

/// Undefined bits that an instruction writes to a register, and which of its bits it writes.
struct WrittenBits {
    number: u32,
    bits: u32,
    undefined: VectorRow,
    /// Where undefined bits come from, if that is known better than for the whole instruction.
    origin: Option<UndefinedOrigin>,
}

impl DefinednessFlow<'_> {
    /// Lanes that a vector instruction writes.
    fn written_lanes(&self, inst: &Inst) -> u64 {
        let exec = self.w.exec();
        match inst.modifiers.has_dpp() {
            true => dpp_lanes(self.step.imm, exec).1,
            false => exec,
        }
    }

    pub(super) fn vector(&mut self, meaning: Meaning) {
        let Some(inst) = self.facts.inst else { return };
        let lanes = self.written_lanes(&inst);
        let way = way(meaning);
        if way == DefinednessMethod::Moves {
            return self.moves(&inst, meaning);
        }
        // Some instructions keep part of the result's register.
        let keeps = self.step.keeps_other_half || inst.modifiers.has_sdwa();
        if !keeps && !self.reads_undefined(lanes, inst.modifiers.has_dpp()) {
            return self.settle(lanes);
        }
        self.origin = self.first_undefined(lanes);
        match way {
            DefinednessMethod::Values => self.values(&inst, meaning, lanes),
            DefinednessMethod::Mask => self.mask(&inst, meaning, lanes),
            DefinednessMethod::Carries => self.carries(&inst, meaning, lanes),
            DefinednessMethod::Selection => self.selection(&inst, lanes),
            _ => self.lane_by_lane(lanes),
        }
    }

    /// True if something undefined could matter to `lanes`.
    fn reads_undefined(&self, lanes: u64, crosses_lanes: bool) -> bool {
        self.facts.uses.all.iter().filter(|r| r.is_read).any(|r| {
            let lanes = if crosses_lanes && r.field == Some(Field::Src0) { self.w.exec() } else { lanes };
            (r.first..r.end).any(|number| !self.r.is_defined(number, lanes))
        })
    }

    fn first_undefined(&self, lanes: u64) -> Option<UndefinedOrigin> {
        let reads = || self.facts.uses.all.iter().filter(|r| r.is_read);
        // Lanes that DPP writes keep nothing of what was in the result's register before: what is undefined
        // there came from a source, if need be from another lane.
        let has_dpp = self.facts.inst.is_some_and(|inst| inst.modifiers.has_dpp());
        let only_kept = |r: &&UsedRegisters| {
            has_dpp && r.is_written && !self.step.accumulates && !self.step.keeps_other_half
        };
        let sources = || reads().filter(|r| !only_kept(r)).flat_map(|r| r.first..r.end);
        let bad = sources().find(|&number| !self.r.is_defined(number, lanes));
        let exec = self.w.exec();
        let bad = bad.or_else(|| sources().find(|&number| !self.r.is_defined(number, exec)));
        let bad = bad.or_else(|| reads().flat_map(|r| r.first..r.end).find(|&n| !self.r.is_defined(n, exec)));
        bad.map(|number| self.r.origin(number, self.number))
    }

    /// 32 bits of an operand: values and undefined bits of every lane.
    fn row(&self, inst: &Inst, operand: usize, register: usize) -> (VectorRow, VectorRow) {
        let place = self.step.operands[operand].offset(register);
        let values = self.w.lanes(place);
        let number = inst.operands[operand].number().unwrap_or(0) + register as u32;
        let undefined = match place {
            OperandPlace::Row(_) => self.r.undefined_bits(number),
            OperandPlace::Scalar(_) => [!self.r.scalar(number); LANES],
            OperandPlace::Scc if !self.r.scc() => [1; LANES],
            OperandPlace::VccZero if self.r.pair(VCC) != u64::MAX => [1; LANES],
            _ => [0; LANES],
        };
        (values, undefined)
    }

    /// The same as the instruction sees it: from other lanes (DPP) or in part (SDWA).
    fn adjusted(&self, inst: &Inst, operand: usize, register: usize) -> (VectorRow, VectorRow) {
        let (values, undefined) = self.row(inst, operand, register);
        let field = inst.op.info().operands[operand].field;
        if inst.modifiers.has_dpp() && field == Field::Src0 {
            let (from, _) = dpp_lanes(self.step.imm, self.w.exec());
            let gather = |row: VectorRow| from.map(|lane| lane.map_or(0, |lane| row[lane]));
            return (gather(values), gather(undefined));
        }
        let source = match field {
            Field::Src0 => 0,
            Field::Src1 => 1,
            _ => return (values, undefined),
        };
        match Sdwa::from_imm(self.step.imm).filter(|_| inst.modifiers.has_sdwa()) {
            Some(sdwa) => {
                let signed = self.step.modifiers.get_sign_extend() >> source & 1 != 0;
                let part = |row: VectorRow| row.map(|bits| sdwa_extract(bits, sdwa.sources[source], signed));
                (part(values), part(undefined))
            }
            None => (values, undefined),
        }
    }

    fn source(&self, inst: &Inst, slice: BitSlice) -> LaneSource {
        let (values, undefined) = self.adjusted(inst, slice.operand, slice.register);
        let cut =
            |row: VectorRow| row.map(|bits| u64::from(bits >> slice.shift) & low_bits(slice.bits.min(32)));
        if slice.bits <= 32 {
            return LaneSource { value: cut(values), undefined: cut(undefined) };
        }
        let value = self.w.lanes_wide(self.step.operands[slice.operand]);
        let is_register =
            inst.operands[slice.operand].number().is_some_and(|n| !(128..FIRST_VECTOR).contains(&n));
        let high = match is_register {
            true => self.adjusted(inst, slice.operand, slice.register + 1),
            false => ([0; LANES], [0; LANES]),
        };
        let join = |low: VectorRow, high: VectorRow| -> [u64; LANES] {
            std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32)
        };
        match inst.modifiers.has_dpp() && is_register {
            true => LaneSource { value: join(values, high.0), undefined: join(undefined, high.1) },
            false => LaneSource { value, undefined: join(undefined, high.1) },
        }
    }

    /// Sources of a piece; sources that it lacks are zero.
    fn sources(&self, inst: &Inst, from: [Option<BitSlice>; 3]) -> [LaneSource; 3] {
        from.map(|slice| match slice {
            Some(slice) => self.source(inst, slice),
            None => LaneSource { value: [0; LANES], undefined: [0; LANES] },
        })
    }

    fn values(&mut self, inst: &Inst, meaning: Meaning, lanes: u64) {
        if meaning == Meaning::ConvertToByte {
            return self.convert_to_byte(inst, lanes);
        }
        if let Meaning::MaskedBitCount(half) = meaning {
            return self.masked_bit_count(inst, half, lanes);
        }
        let mut written: SmallVec<[WrittenBits; 4]> = SmallVec::new();
        let implicit = self.implicit_mask();
        for piece in &pieces(inst, self.step, meaning) {
            let sources = self.sources(inst, piece.from);
            let result = self.piece(inst, piece, &sources, lanes);
            let origin = self.origin_of(inst, piece, &sources, &result);
            let Some(first) = inst.operands[piece.to.operand].number() else { continue };
            let to = piece.to;
            for word in 0..to.bits.div_ceil(32) {
                let bits = (low_bits(to.bits.min(32)) << to.shift) as u32;
                let undefined = std::array::from_fn(|l| match implicit >> l & 1 {
                    0 => (result[l] >> (32 * word)) as u32 & (bits >> to.shift),
                    _ => bits >> to.shift,
                });
                let undefined = undefined.map(|u: u32| u << to.shift);
                let bits = if piece.keeps { bits } else { u32::MAX };
                let number = first + to.register as u32 + word;
                written.push(WrittenBits { number, bits, undefined, origin });
            }
        }
        self.write(inst, &written, lanes);
    }

    /// Lanes whose bit of an implicitly read VCC is undefined.
    fn implicit_mask(&self) -> u64 {
        let is_read = self.facts.uses.all.iter().any(|r| r.is_read && r.field.is_none() && r.first == VCC);
        if is_read { !self.r.pair(VCC) } else { 0 }
    }

    fn piece(&self, inst: &Inst, piece: &ValuePiece, sources: &[LaneSource; 3], lanes: u64) -> [u64; LANES] {
        let mut result = [0; LANES];
        // Sources that are the same bits of the same register have the same name.
        let same = |a: usize, b: usize| match (piece.from[a], piece.from[b]) {
            (Some(x), Some(y)) => {
                let operand =
                    |slice: BitSlice| (inst.operands[slice.operand], slice.register, slice.shift, slice.bits);
                let plain = !inst.modifiers.has_dpp() && !inst.modifiers.has_sdwa();
                plain && !inst.operands[x.operand].is_constant() && operand(x) == operand(y)
            }
            _ => false,
        };
        let second = if same(0, 1) { 0 } else { 1 };
        let third = if same(0, 2) {
            0
        } else if same(1, 2) {
            second
        } else {
            2
        };
        let names = [0, second, third];
        let width = piece.to.bits;
        for l in (0..LANES).filter(|l| lanes >> l & 1 != 0) {
            if sources.iter().all(|source| source.undefined[l] == 0) {
                continue;
            }
            let known = [0, 1, 2].map(|number| sources[number].lane(l));
            result[l] = match piece.rule {
                DefinednessRule::Whole => low_bits(width),
                rule => rule.apply(piece.kind, known, names).undefined,
            };
        }
        result
    }

    /// Where the undefined bits of a piece come from: the first source of which a bit is undefined in a lane
    /// where the result is. Registers that the instruction names without reading them (`op_sel_hi` takes one
    /// for both halves) have no part in it.
    fn origin_of(
        &self,
        inst: &Inst,
        piece: &ValuePiece,
        sources: &[LaneSource; 3],
        result: &[u64; LANES],
    ) -> Option<UndefinedOrigin> {
        let bits = |source: &LaneSource| {
            let lanes = source.undefined.iter().zip(result);
            lanes.fold(0, |all, (&undefined, &result)| if result == 0 { all } else { all | undefined })
        };
        piece.from.iter().zip(sources).find_map(|(slice, source)| {
            let (slice, bits) = ((*slice)?, bits(source));
            let first = inst.operands[slice.operand].number()? + slice.register as u32;
            // Bits beyond 32 are in the next register.
            let number = if bits & 0xffff_ffff != 0 { first } else { first + 1 };
            (bits != 0).then(|| self.r.origin(number, self.number))
        })
    }

    /// Notes results, to be called after all sources have been looked at.
    fn write(&mut self, inst: &Inst, written: &[WrittenBits], lanes: u64) {
        let sdwa = Sdwa::from_imm(self.step.imm).filter(|_| inst.modifiers.has_sdwa());
        let mut rows: SmallVec<[(u32, VectorRow); 4]> = SmallVec::new();
        let mut origins: SmallVec<[Option<UndefinedOrigin>; 4]> = SmallVec::new();
        for part in written {
            let at = match rows.iter().position(|(number, _)| *number == part.number) {
                Some(at) => at,
                None => {
                    rows.push((part.number, self.r.undefined_bits(part.number)));
                    origins.push(None);
                    rows.len() - 1
                }
            };
            origins[at] = origins[at].or(part.origin);
            for (row, undefined) in rows[at].1.iter_mut().zip(part.undefined) {
                *row = *row & !part.bits | undefined;
            }
        }
        for ((number, mut row), origin) in rows.into_iter().zip(origins) {
            if let Some(sdwa) = sdwa.filter(|sdwa| sdwa.dst != Select::Dword) {
                let old = self.r.undefined_bits(number);
                row = std::array::from_fn(|l| sdwa_insert(old[l], row[l], sdwa));
            }
            self.r.write_bits(number, lanes, &row);
            self.note(number, origin.or(self.origin));
        }
    }

    fn note_origin(&mut self, number: u32) {
        self.note(number, self.origin);
    }

    fn note(&mut self, number: u32, origin: Option<UndefinedOrigin>) {
        if let Some(origin) = origin.filter(|_| !self.r.is_defined(number, u64::MAX)) {
            self.r.set_origin(number, origin);
        }
    }

    /// Lanes in which any bit that the instruction reads is undefined, for instructions without a rule of
    /// their own.
    fn undefined_lanes(&self, inst: &Inst, kept: bool) -> u64 {
        let mut undefined = self.implicit_mask();
        for (operand, spec) in inst.op.info().operands.iter().enumerate() {
            let is_read = matches!(spec.field, Field::Src0 | Field::Src1 | Field::Src2)
                || spec.field == Field::Dst && self.step.accumulates && !kept;
            if !is_read || matches!(spec.class, OperandClass::MaskSource) {
                continue;
            }
            for register in 0..usize::from(inst.width(operand)) {
                let (_, bits) = self.adjusted(inst, operand, register);
                undefined |= (0..LANES).fold(0, |lanes, l| lanes | u64::from(bits[l] != 0) << l);
            }
        }
        undefined
    }

    /// All written bits depend on everything that is read.
    fn lane_by_lane(&mut self, lanes: u64) {
        let Some(inst) = self.facts.inst else { return };
        let kept = execute::kept_bits(self.step, inst.op.info().meaning, self.arch);
        let undefined = self.undefined_lanes(&inst, kept != 0);
        let Some(first) = inst.operands[0].number() else { return };
        let written: SmallVec<[WrittenBits; 4]> = (0..u32::from(inst.width(0)))
            .map(|register| WrittenBits {
                number: first + register,
                bits: !kept,
                undefined: std::array::from_fn(|l| if undefined >> l & 1 != 0 { !kept } else { 0 }),
                origin: None,
            })
            .collect();
        self.write(&inst, &written, lanes);
    }

    /// V_CVT_PK_U8_F32 and V_CVT_PKACCUM_U8_F32: `b` says which byte of `c` is replaced by the value of `a`.
    fn convert_to_byte(&mut self, inst: &Inst, lanes: u64) {
        let word = |operand| BitSlice { operand, register: 0, shift: 0, bits: 32 };
        let addend = if self.step.accumulates { 0 } else { 3 };
        let [a, b, c] = self.sources(inst, [Some(word(1)), Some(word(2)), Some(word(addend))]);
        let undefined = std::array::from_fn(|l| match b.undefined[l] & 3 {
            0 => {
                let byte = 0xffu64 << (8 * (b.value[l] & 3));
                (c.undefined[l] & !byte | if a.undefined[l] != 0 { byte } else { 0 }) as u32
            }
            _ => u32::MAX,
        });
        let Some(number) = inst.operands[0].number() else { return };
        self.write(inst, &[WrittenBits { number, bits: u32::MAX, undefined, origin: None }], lanes);
    }

    /// The bits of a mask below a lane's own, counted.
    fn masked_bit_count(&mut self, inst: &Inst, half: Half, lanes: u64) {
        let word = |operand| BitSlice { operand, register: 0, shift: 0, bits: 32 };
        let [mask, base, _] = self.sources(inst, [Some(word(1)), Some(word(2)), None]);
        let undefined = std::array::from_fn(|l| {
            let below = match half {
                Half::Low => l.min(32) as u32,
                Half::High => l.saturating_sub(32) as u32,
            };
            let mask = mask.lane(l).masked(low_bits(below));
            let count = KnownBits::of_all(mask.value.count_ones().into(), &[mask]);
            count.plus(base.lane(l), KnownBits::new(0)).undefined as u32
        });
        let Some(number) = inst.operands[0].number() else { return };
        self.write(inst, &[WrittenBits { number, bits: u32::MAX, undefined, origin: None }], lanes);
    }

    /// Sets the mask that an instruction writes; lanes that are off are zero there.
    fn write_mask(&mut self, inst: &Inst, operand: usize, undefined: u64) {
        let Some(first) = inst.operands[operand].number() else { return };
        for (number, shift) in [(first, 0), (first + 1, 32)] {
            if number == EXEC || number == EXEC + 1 {
                continue;
            }
            self.r.set_scalar(number, !(undefined >> shift) as u32);
            self.note_origin(number);
        }
        if first == EXEC && undefined != 0 {
            self.found_exec(undefined);
        }
    }

    fn found_exec(&mut self, lanes: u64) {
        let origin = self.origin.unwrap_or(self.r.origin(EXEC, self.number));
        self.found.push(Undefined { origin, used_in: Use::Exec, lanes });
    }

    fn mask(&mut self, inst: &Inst, meaning: Meaning, lanes: u64) {
        let undefined = lanes
            & match meaning {
                Meaning::Compare(condition, element) | Meaning::CompareExec(condition, element)
                    if !element.is_float() =>
                {
                    self.compared(inst, condition, element)
                }
                Meaning::Compare(Condition::False | Condition::True, _)
                | Meaning::CompareExec(Condition::False | Condition::True, _) => 0,
                _ => self.undefined_halves(inst),
            };
        if matches!(meaning, Meaning::DivScale(_)) {
            let Some(first) = inst.operands[0].number() else { return };
            let row = std::array::from_fn(|l| if undefined >> l & 1 != 0 { u32::MAX } else { 0 });
            for number in first..first + u32::from(inst.width(0)) {
                self.r.write_bits(number, lanes, &row);
                self.note_origin(number);
            }
            return self.write_mask(inst, 1, undefined);
        }
        self.write_mask(inst, 0, undefined);
        if matches!(meaning, Meaning::CompareExec(..) | Meaning::CompareClassExec(_)) && undefined != 0 {
            self.found_exec(undefined);
        }
    }

    /// Lanes with an undefined bit that a comparison of floats, or of a class, reads.
    fn undefined_halves(&self, inst: &Inst) -> u64 {
        let mut undefined = 0;
        for (operand, spec) in inst.op.info().operands.iter().enumerate() {
            let half = spec.element == Element::F16;
            let shift = match spec.field {
                Field::Src0 if half => 16 * (self.step.modifiers.get_op_sel() & 1),
                Field::Src1 if half => 16 * (self.step.modifiers.get_op_sel() >> 1 & 1),
                Field::Src0 | Field::Src1 | Field::Src2 => 0,
                _ => continue,
            };
            for register in 0..usize::from(inst.width(operand)) {
                let (_, bits) = self.adjusted(inst, operand, register);
                let mask = if half { 0xffff << shift } else { u32::MAX };
                undefined |= (0..LANES).fold(0, |lanes, l| lanes | u64::from(bits[l] & mask != 0) << l);
            }
        }
        undefined
    }

    /// Lanes in which a comparison of integers is not known.
    fn compared(&self, inst: &Inst, condition: Condition, element: Element) -> u64 {
        let kind = IntegerKind::of(element);
        let slice = |operand| BitSlice { operand, register: 0, shift: 0, bits: kind.width };
        let [a, b, _] = self.sources(inst, [Some(slice(1)), Some(slice(2)), None]);
        let signed = matches!(element, Element::I16 | Element::I32 | Element::I64);
        (0..LANES).fold(0, |lanes, l| {
            let known = a.lane(l).is_comparison_known(b.lane(l), condition, kind.width, signed);
            lanes | u64::from(!known) << l
        })
    }

    fn carries(&mut self, inst: &Inst, meaning: Meaning, lanes: u64) {
        let word = |operand| BitSlice { operand, register: 0, shift: 0, bits: 32 };
        let carry_in = match meaning {
            Meaning::CarryInOut(_) => {
                let number = inst.operands[4].number();
                let mask = self.w.scalar_wide(self.step.operands[4]);
                let undefined = number.filter(|&n| n < 128).map_or(0, |n| !self.r.pair(n));
                Some((mask, undefined))
            }
            _ => None,
        };
        let (wide, clamps) = (matches!(meaning, Meaning::MulAddWide(_)), self.step.modifiers.has_clamp());
        let third = wide.then_some(BitSlice { bits: 64, ..word(4) });
        let [a, b, c] = self.sources(inst, [Some(word(2)), Some(word(3)), third]);
        let (mut sums, mut carries) = ([0; LANES], 0);
        for l in (0..LANES).filter(|l| lanes >> l & 1 != 0) {
            let carry = carry_in.map_or(KnownBits::new(0), |(mask, undefined)| KnownBits {
                value: mask >> l & 1,
                undefined: undefined >> l & 1,
            });
            let (a, b, c) = (a.lane(l), b.lane(l), c.lane(l));
            if a.undefined | b.undefined | c.undefined | carry.undefined == 0 {
                continue;
            }
            let (sum, known) = match meaning {
                Meaning::MulAddWide(element) => {
                    let signed = element == Element::I32;
                    let factor = |k: KnownBits| if signed { k.sign_extended(32) } else { k };
                    let product = factor(a).times(factor(b));
                    let known = !signed && product.is_carry_known(c, KnownBits::new(0), 64);
                    (product.plus(c, KnownBits::new(0)), known)
                }
                Meaning::CarryOut(Calc::Add) | Meaning::CarryInOut(Calc::Add) => {
                    (a.plus(b, carry), a.is_carry_known(b, carry, 32))
                }
                Meaning::CarryOut(Calc::SubRev) | Meaning::CarryInOut(Calc::SubRev) => {
                    (b.minus(a, carry), b.is_borrow_known(a, carry))
                }
                _ => (a.minus(b, carry), a.is_borrow_known(b, carry)),
            };
            sums[l] = if clamps { u64::MAX } else { sum.undefined };
            carries |= u64::from(!known) << l;
        }
        let Some(first) = inst.operands[0].number() else { return };
        let written: SmallVec<[WrittenBits; 4]> = (0..u32::from(inst.width(0)))
            .map(|register| WrittenBits {
                number: first + register,
                bits: u32::MAX,
                undefined: sums.map(|sum| (sum >> (32 * register)) as u32),
                origin: None,
            })
            .collect();
        self.write(inst, &written, lanes);
        self.write_mask(inst, 1, carries);
    }

    fn selection(&mut self, inst: &Inst, lanes: u64) {
        let word = |operand| BitSlice { operand, register: 0, shift: 0, bits: 32 };
        let [no, yes, _] = self.sources(inst, [Some(word(1)), Some(word(2)), None]);
        let mask = self.w.scalar_wide(self.step.operands[3]);
        let unknown = inst.operands[3].number().filter(|&n| n < 128).map_or(0, |n| !self.r.pair(n));
        let undefined = std::array::from_fn(|l| {
            let either = no.undefined[l] | yes.undefined[l] | no.value[l] ^ yes.value[l];
            // Signs may change on the way.
            let signs =
                if self.step.modifiers.get_abs() | self.step.modifiers.get_neg() != 0 { 1 << 31 } else { 0 };
            (match (unknown >> l & 1, mask >> l & 1) {
                (0, 0) => no.undefined[l],
                (0, _) => yes.undefined[l],
                _ => either | signs,
            }) as u32
        });
        let Some(number) = inst.operands[0].number() else { return };
        self.write(inst, &[WrittenBits { number, bits: u32::MAX, undefined, origin: None }], lanes);
    }

    /// Values that move: their undefined bits move with them.
    fn moves(&mut self, inst: &Inst, meaning: Meaning) {
        let [to, from] = [0, 1].map(|operand| inst.operands[operand].number().unwrap_or(u32::MAX));
        let exec = self.w.exec();
        let origins = [from, to].map(|n| if n < 768 { Some(self.r.origin(n, self.number)) } else { None });
        match meaning {
            Meaning::ReadFirstLane | Meaning::ReadLane => {
                let lane = match meaning {
                    Meaning::ReadLane => self.selected_lane(inst),
                    _ => (exec.trailing_zeros() % 64) as usize,
                };
                let bits = if from >= FIRST_VECTOR { self.r.undefined_bits(from)[lane] } else { 0 };
                self.r.set_scalar(to, !bits);
                if let Some(origin) = origins[0].filter(|_| bits != 0) {
                    self.r.set_origin(to, origin);
                }
            }
            Meaning::WriteLane => {
                let lane = self.selected_lane(inst);
                // Masks of lanes that are kept in a lane may be partly undefined.
                let bits = if from < 128 { !self.r.scalar(from) } else { 0 };
                let row = [bits; LANES];
                self.r.write_bits(to, 1 << lane, &row);
                if let Some(origin) = origins[0].filter(|_| bits != 0) {
                    self.r.set_origin(to, origin);
                }
            }
            _ => {
                let (first, second) = (self.r.undefined_bits(to), self.r.undefined_bits(from));
                let (to_first, to_second) = match meaning {
                    Meaning::SwapRows(row) => {
                        execute::swapped_rows(self.step, exec, row.into(), &first, &second)
                    }
                    _ => (second, first),
                };
                self.r.write_bits(to, exec, &to_first);
                self.r.write_bits(from, exec, &to_second);
                for (number, origin) in [(to, origins[0]), (from, origins[1])] {
                    if let Some(origin) = origin.filter(|_| !self.r.is_defined(number, u64::MAX)) {
                        self.r.set_origin(number, origin);
                    }
                }
            }
        }
    }

    /// The lane that `v_readlane` and `v_writelane` name; a finding if it is not defined.
    fn selected_lane(&mut self, inst: &Inst) -> usize {
        let number = inst.operands[2].number().filter(|&n| n < 128);
        if let Some(number) = number.filter(|&n| self.r.scalar(n) & 63 != 63) {
            self.report(number, Use::Lane, 0);
        }
        self.w.scalar(self.step.operands[2]) as usize % LANES
    }
}
