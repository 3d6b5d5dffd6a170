//! Values whose elements change places within a wave: other registers, and other lanes.
//!
//! Elements that fill registers stay where they are if their lanes need them, and the value is the list of
//! them: what reads elements one by one reads them there, and only what needs them side by side, as stores
//! do, has them copied. Narrower ones are packed anew.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::OperationLayer;
use crate::codegen::isa::{Opcode, Operand};
use crate::codegen::lower::arithmetic::lane_moves::{ByChoice, SwappedRegisters};
use crate::codegen::lower::values::lane_values::MovedRegisters;
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::target::{LaneMove, RowSwap};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::within_wave::{Gathering, LaneMap};
use crate::ir::layout::{Layout, Place, Source};
use crate::ir::node::*;
use crate::passes::loops::expand::Expansion;

impl OperationLayer<'_> {
    /// One piece of a value in other registers or lanes; `pieces` are those of the value that it takes
    /// elements of.
    pub(crate) fn rearrange(
        &mut self,
        node: Entity,
        expansion: Expansion,
        pieces: &[Entity],
    ) -> Result<(), Diagnostic> {
        let world = self.kernel.world;
        let missing = || Diagnostic::bug("a value without layout is rearranged".to_string());
        let layout_of = |of: Entity| world.get::<Placement>(of).map(|placement| &placement.0);
        let own = layout_of(expansion.logical).ok_or_else(missing)?;
        let first = *pieces.first().ok_or_else(|| Diagnostic::bug("nothing is rearranged"))?;
        let from = layout_of(Expansion::at(world, first).logical).ok_or_else(missing)?;
        let bytes = self.element_bytes(expansion.logical)?;
        for &piece in pieces {
            self.finish(piece);
        }
        if let place @ (ValuePlace::Constant(_) | ValuePlace::Uniform(_)) = *self.place(first)? {
            self.set_place(node, place);
            return Ok(());
        }
        let elements = GatheredElements::new([own, from], pieces, expansion.replica, bytes);
        let place = match bytes {
            4 | 8 => self.gathered_dwords(&elements)?,
            _ => ValuePlace::Registers(self.gathered_parts(&elements)?),
        };
        self.set_place(node, place);
        Ok(())
    }

    /// The registers of a value in the order of the write that takes it, where it is held in another one.
    ///
    /// # Errors
    /// Broken kernels.
    pub(super) fn in_order_of(
        &mut self,
        write: Expansion,
        value: Entity,
    ) -> Result<Option<Operand>, Diagnostic> {
        let world = self.kernel.world;
        let layout_of = |of: Entity| world.get::<Placement>(of).map(|placement| &placement.0);
        let logical = Expansion::at(world, value).logical;
        let (Some(own), Some(from)) = (layout_of(write.logical), layout_of(logical)) else { return Ok(None) };
        if own == from || !own.holds_registers_of(from) {
            return Ok(None);
        }
        self.finish(value);
        let bytes = self.element_bytes(logical)?;
        let pieces = [value];
        let elements = GatheredElements::new([own, from], &pieces, write.replica, bytes);
        if !matches!((*self.place(value)?, bytes), (ValuePlace::Registers(_), 1 | 2)) {
            return Ok(None);
        }
        self.gathered_parts(&elements).map(Some)
    }

    /// A register of an element, or the one that it is in: one source for each choice.
    fn gathered(
        &self,
        of: &GatheredElements,
        register: u32,
        dword: u32,
    ) -> Result<ByChoice<ElementSource>, Diagnostic> {
        let place = of.gathering.place(of.replica, register);
        let found = of.choices.iter().map(|&choice| {
            let at = of.gathering.chosen(place, choice);
            let byte = at.register * of.bytes + 4 * dword;
            let source = self.dword(of.pieces, at, byte / 4)?;
            let lanes = of.gathering.lanes(place, choice);
            // Elements of one register come in one move.
            let lanes = if of.bytes < 4 { lanes.of_all_lanes() } else { lanes };
            Ok(ElementSource { register: source, byte: byte % 4, lanes })
        });
        found.collect()
    }

    /// The exchange of rows that brings a register from its two sources, if there is one.
    fn exchange_of(&self, of: &GatheredElements, parts: &[ElementSource]) -> Option<RowSwap> {
        let lanes: ByChoice<LaneMap> = parts.iter().map(|part| part.lanes).collect();
        RowSwap::of(self.target, of.gathering.choosing(), &lanes)
    }

    /// Elements that fill registers.
    fn gathered_dwords(&mut self, of: &GatheredElements) -> Result<ValuePlace, Diagnostic> {
        let (mut moved, mut swapped) = (MovedRegisters::default(), SwappedRegisters::default());
        let mut dwords: SmallVec<[Operand; 32]> = SmallVec::new();
        for register in 0..of.registers {
            for dword in 0..of.bytes / 4 {
                let parts = self.gathered(of, register, dword)?;
                dwords.push(match (self.exchange_of(of, &parts), &parts[..]) {
                    (Some(swap), [without, with]) => {
                        self.swapped(&mut swapped, [without.register, with.register], swap)
                    }
                    _ => {
                        let all = parts.iter().map(|part| part.moved(self, &mut moved).register);
                        let all = all.collect();
                        self.chosen_by_lane(all, of.gathering.choosing())
                    }
                });
            }
            if of.bytes == 8 {
                self.pair_last(&mut dwords);
            }
        }
        let first = self.places.scattered.len() as u32;
        self.places.scattered.extend(dwords);
        Ok(ValuePlace::Scattered(first))
    }

    /// Elements that share registers.
    fn gathered_parts(&mut self, of: &GatheredElements) -> Result<Operand, Diagnostic> {
        let (mut moved, mut swapped) = (MovedRegisters::default(), SwappedRegisters::default());
        let value = self.emitter.vgpr((of.registers * of.bytes).div_ceil(4));
        let beside = 4 / of.bytes;
        for at in 0..of.registers.div_ceil(beside) {
            let mut elements: SmallVec<[ByChoice<ElementSource>; 4]> = SmallVec::new();
            for register in (at * beside)..of.registers.min((at + 1) * beside) {
                elements.push(self.gathered(of, register, 0)?);
            }
            if let (Some(swap), [without, with]) = (self.exchange_of(of, &elements[0]), &elements[0][..])
                && fills_register(&elements, of.bytes)
            {
                let result = self.swapped(&mut swapped, [without.register, with.register], swap);
                self.emitter.op(Opcode::VMovB32, &[value.offset(at), result]);
                continue;
            }
            let mut groups: ByChoice<NarrowGroup> = SmallVec::from_elem(NarrowGroup::new(), of.choices.len());
            for parts in &elements {
                for (group, part) in groups.iter_mut().zip(parts) {
                    group.push(part.moved(self, &mut moved));
                }
            }
            self.packed_by_lane(&groups, of.gathering.choosing(), of.bytes, value.offset(at));
        }
        Ok(value)
    }

    /// Brings the halves of an element of 64 bits, the last two, side by side if they are apart.
    fn pair_last(&mut self, dwords: &mut [Operand]) {
        let [.., low, high] = dwords else { return };
        if *high == low.offset(1) {
            return;
        }
        let pair = self.emitter.vgpr(2);
        for (half, at) in [low, high].into_iter().zip(0..) {
            self.emitter.op(Opcode::VMovB32, &[pair.offset(at), *half]);
            *half = pair.offset(at);
        }
    }

    /// A register of the piece of a value that is the replica at `place`.
    fn dword(&self, pieces: &[Entity], place: Place, at: u32) -> Result<Operand, Diagnostic> {
        let is_it = |piece: &&Entity| Expansion::at(self.kernel.world, **piece).replica == place.replica;
        let piece = *pieces.iter().find(is_it).ok_or_else(|| Diagnostic::bug("an element of no piece"))?;
        match *self.place(piece)? {
            ValuePlace::Registers(first) => Ok(first.offset(at)),
            ValuePlace::Scattered(first) => Ok(self.places.scattered[(first + at) as usize]),
            ValuePlace::Constant(_)
            | ValuePlace::Uniform(_)
            | ValuePlace::Comparison(_)
            | ValuePlace::Flags(_) => Err(Diagnostic::bug("what is rearranged is in no registers")),
        }
    }

    /// Elements that are narrower than a register side by side in `to`, which the lanes take from different
    /// registers: for each choice the elements.
    fn packed_by_lane(&mut self, groups: &[NarrowGroup], choosing: u32, bytes: u32, to: Operand) {
        if let [group] = groups {
            self.side_by_side(group, bytes, to);
            return;
        }
        let mut sources: SmallVec<[Operand; 8]> = groups.iter().flatten().map(|part| part.register).collect();
        sources.sort_unstable();
        sources.dedup();
        match (&sources[..], groups) {
            // The bytes of two registers, which each lane picks by a selector of its own.
            (&[low, high], [no, yes]) => {
                let selectors = [no, yes].map(|group| {
                    group.iter().enumerate().fold(0, |all, (at, part)| {
                        let first = part.byte + if part.register == high { 4 } else { 0 };
                        all | selected_bytes(first, bytes) << (8 * bytes * at as u32)
                    })
                });
                let selector = self.constant_by_lane(selectors, choosing);
                self.emitter.op(Opcode::VPermB32, &[to, high, low, selector]);
            }
            _ => {
                let all = groups.iter().map(|group| {
                    let register = self.emitter.vgpr(1);
                    self.side_by_side(group, bytes, register);
                    register
                });
                let all = all.collect();
                let chosen = self.chosen_by_lane(all, choosing);
                self.emitter.op(Opcode::VMovB32, &[to, chosen]);
            }
        }
    }

    /// Elements of one or two bytes, side by side in one register.
    fn side_by_side(&mut self, group: &[ElementRegister], bytes: u32, to: Operand) {
        let in_order = (0..).zip(group).all(|(at, part)| part.byte == at * bytes);
        let from_one = group.iter().all(|part| part.register == group[0].register);
        if in_order && from_one {
            self.emitter.op(Opcode::VMovB32, &[to, group[0].register]);
            return;
        }
        // Neighbours join to pairs, pairs to quadruples.
        let mut parts: NarrowGroup = group.into();
        let mut size = bytes;
        while parts.len() > 1 {
            let is_last = parts.len() == 2;
            let pairs = parts.chunks(2).map(|pair| match *pair {
                [low, high] => {
                    let register = if is_last { to } else { self.emitter.vgpr(1) };
                    self.join_pair([low, high], size, register);
                    ElementRegister { register, byte: 0 }
                }
                _ => pair[0],
            });
            parts = pairs.collect();
            size *= 2;
        }
        if group.len() == 1 {
            self.join_pair([parts[0]; 2], bytes, to);
        }
    }

    /// Two elements of `size` bytes in the low bytes of a register.
    fn join_pair(&mut self, [low, high]: [ElementRegister; 2], size: u32, to: Operand) {
        let selector = selected_bytes(low.byte, size) | selected_bytes(4 + high.byte, size) << (8 * size);
        let selector = self.constant_sgpr(selector);
        self.emitter.op(Opcode::VPermB32, &[to, high.register, low.register, selector]);
    }
}

/// The selector of consecutive bytes in `v_perm_b32`: bytes 0 to 3 are those of the last source, 4 to 7 those
/// of the one before (CDNA3 ISA guide, V_PERM_B32).
fn selected_bytes(first: u32, count: u32) -> u32 {
    (0..count).fold(0, |all, at| all | (first + at) << (8 * at))
}

/// Whether elements that are to share a register do so in the same order where they are, and come from the
/// same lanes, whatever lanes choose.
fn fills_register(elements: &[ByChoice<ElementSource>], bytes: u32) -> bool {
    let first = &elements[0];
    elements.len() as u32 * bytes == 4
        && (0..).zip(elements).all(|(at, parts)| {
            parts.iter().zip(first).all(|(part, first)| {
                part.byte == at * bytes && part.register == first.register && part.lanes == first.lanes
            })
        })
}

/// The elements of one replica of a value, and where they are gathered from.
struct GatheredElements<'a> {
    gathering: Gathering<'a>,
    choices: SmallVec<[u32; 4]>,
    /// The pieces of the value that has them.
    pieces: &'a [Entity],
    replica: u32,
    /// Elements of a lane, and the bytes of each.
    registers: u32,
    bytes: u32,
}

impl<'a> GatheredElements<'a> {
    fn new([own, from]: [&'a Layout; 2], pieces: &'a [Entity], replica: u32, bytes: u32) -> Self {
        let gathering = Gathering::new(own, from);
        let (choices, registers) = (gathering.choices().collect(), own.extent(Source::Register));
        GatheredElements { gathering, choices, pieces, replica, registers, bytes }
    }
}

/// Elements that are to share a register.
type NarrowGroup = SmallVec<[ElementRegister; 4]>;

/// Where an element comes from.
#[derive(Copy, Clone)]
struct ElementSource {
    register: Operand,
    /// Its first byte there, if it is narrower than a register.
    byte: u32,
    /// The lanes that have it.
    lanes: LaneMap,
}

impl ElementSource {
    /// The same in the lanes that need it.
    fn moved(&self, lowering: &mut OperationLayer<'_>, known: &mut MovedRegisters) -> ElementRegister {
        let register = lowering.moved(known, self.register, LaneMove::of(&self.lanes));
        ElementRegister { register, byte: self.byte }
    }
}

/// Where an element is.
#[derive(Copy, Clone)]
struct ElementRegister {
    register: Operand,
    /// Its first byte there, if it is narrower than a register.
    byte: u32,
}
