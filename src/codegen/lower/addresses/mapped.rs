//! Mapped accesses of global memory.
//!
//! Lane, wave, workgroup and iteration are symbols with ranges in the algebra of expressions, so the
//! coordinates of each element are expressions over them, and so is its address. An address is taken apart:
//! what is the same for the workgroup at all times goes into the base of a buffer descriptor (64 bits), what
//! depends on the iteration alone into the scalar offset, a constant into the immediate, and the rest into
//! the vector offset, which is computed in front of the loop as far as it does not depend on the iteration.
//!
//! An access is as wide as the algebra proves: the addresses of neighbouring registers are neighbours, their
//! alignment is that of a dword, and all of them are inside of the memory or none of them is. What can be
//! outside selects an offset that is always outside; all other elements are certainly inside, so the size in
//! the descriptor has nothing to decide.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::AddressLayer;
use super::access::InstructionPiece;
use super::descriptors::{DESCRIPTOR_WORD3, MAX_RECORDS};
use super::global::OUTSIDE;
use super::mapped_values::{DependenceClass, HeldValue, LateFacts};
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::codegen::lower::lowered::{Narrowness, SplitAccess};
use crate::codegen::lower::values::scalars::Sign;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprArena, ExprError, SymExpr, Symbol};
use crate::ir::layout::{Dim, Layout, Mode};
use crate::ir::mapping::{Mapping, operand_symbol};
use crate::ir::node::*;
use crate::passes::facts::{Bounds, LdsBuffer};
use crate::passes::layout::element_layouts::MAX_ACCESS_BYTES;
use crate::passes::loops::expand::Expansion;

/// Immediate offsets are 12 bits.
pub(super) const IMMEDIATE_BYTES: i64 = 4096;

/// Vector offsets that loops keep: more would take registers from everything else.
const MOST_KEPT: usize = 32;

/// The farthest that the base of a descriptor moves so that offsets are not negative.
const MOST_BIAS: i64 = 1 << 28;

/// The most that may be added to [`OUTSIDE`]: the sum is outside as well, and does not wrap.
const MOST_ADDED: i64 = 1 << 30;

/// How the pieces of one logical access are addressed.
#[derive(Clone, Debug)]
pub(super) struct MappedPlan {
    descriptor: Operand,
    /// Consecutive elements per instruction.
    granule: u32,
    /// So many of them side by side are one and the same element of the memory.
    repeats: u32,
    /// One per replica and piece; the pieces of a replica are adjacent.
    pieces: Vec<MappedPiece>,
}

/// One instruction's part of an access.
#[derive(Clone, Debug)]
struct MappedPiece {
    /// The part of the offset that differs from lane to lane.
    vector: Expr,
    /// The part that depends on the iteration alone.
    scalar: Expr,
    immediate: u32,
    /// `0 <= a < b` has to hold of each pair.
    conditions: SmallVec<[(Expr, Expr); 4]>,
    /// What is prepared in front of a loop.
    kept: KeptOffset,
}

/// What of an offset a loop finds in a register.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum KeptOffset {
    Nothing,
    /// The vector part, or an offset outside where a condition that does not change fails.
    Offset(Operand),
    /// What of the vector part does not change, or an offset outside where such a condition fails; what
    /// changes is added.
    Base(Operand),
    /// Zero, or an offset outside where such a condition fails.
    Poison(Operand),
}

/// An address taken apart.
struct Split {
    /// What all lanes have in common at all times.
    uniform: Expr,
    /// By how much the base is moved down so that no offset is negative.
    bias: i64,
    /// The pieces, without conditions.
    pieces: Vec<MappedPiece>,
    /// The largest offset, if it is known.
    top: Option<i64>,
}

/// A mapped access as expressions.
pub(super) struct MappedExpressions {
    pub(super) layout: Layout,
    /// Dimensions of the value; the symbol of the coordinate along each, and that coordinate in terms of
    /// lanes, waves, workgroups and iterations, without what register and replica add. Of an access of LDS
    /// also the coordinates inside the workgroup's tile.
    pub(super) dims: SmallVec<[(Dim, Symbol, Expr); 4]>,
    /// The address in bytes over these symbols.
    pub(super) address: Expr,
    /// Conditions over them.
    pub(super) conditions: SmallVec<[(Expr, Expr); 4]>,
    /// Layouts of the operands of the mapping.
    pub(super) operands: SmallVec<[Layout; 2]>,
}

/// The address and the conditions of the elements of one instruction.
pub(super) struct MappedDraft {
    pub(super) address: Expr,
    pub(super) conditions: SmallVec<[(Expr, Expr); 4]>,
}

impl AddressLayer<'_> {
    /// Makes the plan of a mapped access at this point of the code.
    pub(crate) fn plan_mapped(&mut self, node: Entity, memory: Entity) -> Result<(), Diagnostic> {
        if self.mapped_plans.get(node).is_some() {
            return Ok(());
        }
        let bytes = self.element_bytes(memory)?;
        let access = self.mapped_access(node, memory)?;
        let is_atomic = matches!(self.get::<Op>(node)?, Op::Atomic(_));
        let widest = if is_atomic { (4 / bytes).max(1) } else { MAX_ACCESS_BYTES / bytes };
        let (mut granule, mut drafts, why) =
            self.drafts(&access, bytes, widest).map_err(|e| self.unmappable(e))?;
        let runs = access.dims.iter().map(|d| access.layout.contiguous_run(d.0));
        let possible = runs.max().unwrap_or(1).min(widest);
        let mut repeats = 1;
        if granule == 1 && possible > 1 && *self.get::<Op>(node)? == Op::Read {
            let found = self.repeated_drafts(&access, bytes, possible).map_err(|e| self.unmappable(e))?;
            if let Some(found) = found {
                (granule, repeats, drafts) = found;
            }
        }
        if granule < possible {
            let why = why.unwrap_or(Narrowness::Apart);
            self.emitter.out.splits.push((node, SplitAccess { elements: granule, possible, why }));
        }
        if drafts.iter().any(|draft| !draft.conditions.is_empty()) {
            self.emitter.out.masked.push((node, memory));
        }
        let plan = self.taken_apart(node, memory, [granule, repeats], drafts)?;
        self.mapped_plans.insert(node, plan);
        Ok(())
    }

    pub(super) fn mapped_access(
        &mut self,
        node: Entity,
        memory: Entity,
    ) -> Result<MappedExpressions, Diagnostic> {
        let mapping = self.get::<Mapping>(node)?;
        let layout = self.get::<Placement>(node)?.0.clone();
        let bounds = self.get::<Bounds>(node)?;
        let operands = &self.get::<Operands>(node)?.0;
        let op = *self.get::<Op>(node)?;
        let typed = if op.is_write() { operands.first().copied().unwrap_or(node) } else { node };
        let value_dims = self.get::<ValueType>(typed)?.dims.clone();
        let memory_dims = self.get::<ValueType>(memory)?.dims.clone();
        let others = &operands[op.values_in_front()..operands.len() - 1];
        let mut held = SmallVec::new();
        for (number, &other) in others.iter().enumerate() {
            let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
            let assumed = self.arena.assume_range(operand_symbol(number), range);
            assumed.map_err(|e| self.unmappable(e))?;
            held.push(self.kernel.world.get::<Placement>(other).map(|p| p.0.clone()).unwrap_or_default());
        }
        let mut dims: SmallVec<[(Dim, Symbol, Expr); 4]> = SmallVec::new();
        for &dim in &value_dims {
            let entry = self.kernel.geometry.dim(dim);
            let symbol = Symbol::new(&format!("%at {}", entry.symbol.name()));
            let last = entry.static_size.map_or(i64::from(i32::MAX), i64::from) - 1;
            self.arena.assume_range(symbol, 0..=last).map_err(|e| self.unmappable(e))?;
            let place = self.coordinate_of(&layout, dim).map_err(|e| self.unmappable(e))?;
            dims.push((dim, symbol, place));
        }
        let geometry = self.kernel.geometry;
        let named = mapping.replaced(&|symbol| {
            let found = dims.iter().find(|d| geometry.dim(d.0).symbol == symbol);
            found.map(|d| SymExpr::from(d.1))
        });
        let mut coordinates: SmallVec<[Expr; 4]> = SmallVec::new();
        let mut address = Expr::ZERO;
        let element_bytes = self.element_bytes(memory)?;
        let buffer = self.kernel.world.get::<LdsBuffer>(memory);
        for ((coordinate, &dim), written) in named.0.iter().zip(&memory_dims).zip(&mapping.0) {
            let coordinate = coordinate.intern(self.arena).map_err(|e| self.unmappable(e))?;
            coordinates.push(coordinate);
            let (place, stride) = match buffer {
                None => (coordinate, self.stride_bytes(memory, &memory_dims, dim, element_bytes)?),
                Some(buffer) => {
                    let within = self.within_tile(&layout, dim, written, &mut dims);
                    let within = within.map_err(|e| self.unmappable(e))?;
                    (within.unwrap_or(coordinate), self.arena.int(buffer.stride(dim).into()))
                }
            };
            let part = self.arena.mul(place, stride).map_err(|e| self.unmappable(e))?;
            address = self.arena.add(address, part).map_err(|e| self.unmappable(e))?;
        }
        let mut conditions = SmallVec::new();
        // Of what an update gives back, the first copy alone is known.
        let written = operands.first().filter(|_| op == Op::Write);
        let of_update =
            written.is_some_and(|&value| matches!(self.kernel.world.get::<Op>(value), Some(Op::Atomic(_))));
        if of_update || matches!(op, Op::Atomic(_)) {
            let copies = |mode: &Mode| mode.dim.is_none().then_some(1);
            let parts = self.digits_of(&layout, &copies).map_err(|e| self.unmappable(e))?;
            let copy = self.sum(parts).map_err(|e| self.unmappable(e))?;
            conditions.push((copy, self.arena.int(1)));
        }
        for &(dim, symbol, _) in dims.iter().filter(|d| bounds.masks.contains(&d.0)) {
            conditions.push((self.arena.symbol(symbol), geometry.dim(dim).size));
        }
        for (&coordinate, &dim) in coordinates.iter().zip(&memory_dims) {
            if bounds.outside.contains(&dim) {
                conditions.push((coordinate, geometry.dim(dim).size));
            }
        }
        Ok(MappedExpressions { layout, dims, address, conditions, operands: held })
    }

    fn taken_apart(
        &mut self,
        node: Entity,
        memory: Entity,
        [granule, repeats]: [u32; 2],
        drafts: Vec<MappedDraft>,
    ) -> Result<MappedPlan, Diagnostic> {
        let addresses: Vec<Expr> = drafts.iter().map(|draft| draft.address).collect();
        let split = self.shortest_split(&addresses).map_err(|e| self.unmappable(e))?;
        let Split { uniform, bias, mut pieces, top } = match split {
            Some(split) => split,
            // Offsets from the beginning of the memory: not negative wherever the element is inside.
            None => {
                let flat = |&address: &Expr| MappedPiece {
                    vector: address,
                    scalar: Expr::ZERO,
                    immediate: 0,
                    conditions: SmallVec::new(),
                    kept: KeptOffset::Nothing,
                };
                let pieces = addresses.iter().map(flat).collect();
                Split { uniform: Expr::ZERO, bias: 0, pieces, top: None }
            }
        };
        for (piece, draft) in pieces.iter_mut().zip(drafts) {
            piece.conditions = draft.conditions;
        }
        if top.is_none_or(|top| top >= i64::from(MAX_RECORDS)) {
            // Offsets begin where the descriptor does, which may be in front of the memory. Bounds below that
            // of a bias are those of arguments of 32 bits, which say nothing.
            let lowest = self.arena.range(uniform).lo.filter(|lo| *lo >= -MOST_BIAS);
            let before = lowest.unwrap_or(0).min(0);
            self.reach_of_memory(node, memory, bias - before)?;
        }
        let descriptor = self.mapped_descriptor(memory, uniform, bias)?;
        if !self.loops.is_empty() {
            self.keep(&mut pieces)?;
        }
        Ok(MappedPlan { descriptor, granule, repeats, pieces })
    }

    /// Of the two forms of the addresses, with and without remainders, the one that divides less and can be
    /// taken apart.
    fn shortest_split(&mut self, addresses: &[Expr]) -> Result<Option<Split>, ExprError> {
        let cost = |arena: &ExprArena, e: Option<&Expr>| e.map_or(0, |&e| arena.division_cost(e));
        let before = cost(self.arena, addresses.first());
        if before > 0 {
            let shorter = addresses.iter().map(|&e| self.arena.without_remainders(e));
            // An expression that gets too large stays as it is.
            if let Ok(shorter) = shorter.collect::<Result<Vec<Expr>, ExprError>>()
                && cost(self.arena, shorter.first()) < before
                && let Some(split) = self.split(&shorter)?
            {
                return Ok(Some(split));
            }
        }
        self.split(addresses)
    }

    /// Offsets from what all lanes have in common in the first address. `None` if it is not certain that
    /// offsets are not negative.
    fn split(&mut self, addresses: &[Expr]) -> Result<Option<Split>, ExprError> {
        let first = addresses.first().copied().unwrap_or(Expr::ZERO);
        let [uniform, _] =
            self.partition(first, |class| class == DependenceClass::default() && class.is_uniform())?;
        let range = self.arena.range(uniform);
        if self.denominator(first) != 1 || !range.at_least(i64::from(i32::MIN)) {
            return Ok(None);
        }
        let mut parts = Vec::with_capacity(addresses.len());
        let (mut lowest, mut least, mut most) = (0i64, 0i64, Some(0i64));
        for &address in addresses {
            let rest = self.arena.sub(address, uniform)?;
            let constant = self.arena.constant(rest);
            if *constant.denom() != 1 {
                return Ok(None);
            }
            let constant = *constant.numer();
            let whole = self.arena.int(constant);
            let moving = self.arena.sub(rest, whole)?;
            let [mut scalar, mut vector] = self.partition(moving, DependenceClass::is_uniform)?;
            if !self.arena.range(scalar).at_least(0) {
                vector = moving;
                scalar = Expr::ZERO;
            }
            let Some(low) = self.arena.range(vector).lo else { return Ok(None) };
            let high = self.arena.range(rest).hi;
            most = most.zip(high).map(|(most, high)| most.max(high));
            lowest = lowest.min(low);
            least = least.min(constant);
            parts.push((vector, scalar, constant));
        }
        // A whole number of the widest access, so that nothing becomes less aligned.
        let unit = i64::from(MAX_ACCESS_BYTES);
        let up = |value: i64| (value.saturating_neg().max(0) + unit - 1) / unit * unit;
        if lowest < -MOST_BIAS || least < -MOST_BIAS || (range.lo.is_none_or(|lo| lo < 0) && most.is_none()) {
            return Ok(None);
        }
        let (of_vector, of_constant) = (up(lowest), up(least));
        let mut pieces = Vec::with_capacity(parts.len());
        for (vector, scalar, constant) in parts {
            let constant = constant + of_constant;
            let immediate = constant % IMMEDIATE_BYTES;
            let bias = self.arena.int(of_vector);
            let mut vector = self.arena.add(vector, bias)?;
            let far = self.arena.int(constant - immediate);
            // What changes with the iteration is then the same for all pieces.
            let scalar = if scalar == Expr::ZERO {
                far
            } else {
                vector = self.arena.add(vector, far)?;
                scalar
            };
            pieces.push(MappedPiece {
                vector,
                scalar,
                immediate: immediate as u32,
                conditions: SmallVec::new(),
                kept: KeptOffset::Nothing,
            });
        }
        let bias = of_vector + of_constant;
        Ok(Some(Split { uniform, bias, pieces, top: most.map(|most| most + bias) }))
    }

    /// Checks that a memory and the bytes in front of it have less than 2 GiB, now or at launch.
    fn reach_of_memory(&mut self, node: Entity, memory: Entity, before: i64) -> Result<(), Diagnostic> {
        let dims = self.get::<ValueType>(memory)?.dims.clone();
        let element_bytes = self.element_bytes(memory)?;
        let mut reach = self.arena.int(i64::from(element_bytes));
        // All coordinates along the first dimension, of which none reaches into the next one.
        let outermost = dims.first().copied();
        let inner = outermost.map(|dim| self.stride_factors(memory, &dims, dim)).unwrap_or_default();
        for dim in outermost.into_iter().chain(inner) {
            let size = self.kernel.geometry.dim(dim).size;
            reach = self.arena.mul(reach, size).map_err(|e| self.unmappable(e))?;
        }
        match self.arena.as_integer(reach) {
            Some(bytes) if bytes.saturating_add(before) > i64::from(MAX_RECORDS) => {
                let text = format!("a memory of {bytes} bytes is accessed at coordinates that are far apart");
                Err(Diagnostic::new(Kind::Limit, text)
                    .at(self.at(node))
                    .help("such memories have less than 2 GiB: make several of it"))
            }
            Some(_) => Ok(()),
            None => {
                let before = self.arena.int(before);
                let reach = self.arena.add(reach, before).map_err(|e| self.unmappable(e))?;
                if self.emitter.out.reaches.iter().all(|r| r.1 != reach) {
                    self.emitter.out.reaches.push((memory, reach));
                }
                Ok(())
            }
        }
    }

    /// A descriptor whose base is `uniform - bias` bytes after the beginning of a memory.
    fn mapped_descriptor(&mut self, memory: Entity, uniform: Expr, bias: i64) -> Result<Operand, Diagnostic> {
        let known = self.mapped.descriptors.iter().find(|d| (d.0, d.1, d.2) == (memory, uniform, bias));
        if let Some(&(_, _, _, descriptor)) = known {
            return Ok(descriptor);
        }
        let pointer = self.pointers.get(memory).copied();
        let pointer = pointer.ok_or_else(|| Diagnostic::bug("a memory that is no argument"))?;
        let mut base = [Scalar::Reg(pointer), Scalar::Reg(pointer.offset(1))];
        for (part, sign) in self.uniform_parts(uniform)? {
            base = self.sum64(base, part, sign);
        }
        if bias != 0 {
            base = self.sum64(base, [Scalar::Const(bias), Scalar::ZERO], Sign::Minus);
        }
        let descriptor = self.emitter.sgpr(4);
        let words = [
            base[0],
            base[1],
            Scalar::Const(i64::from(MAX_RECORDS)),
            Scalar::Const(i64::from(DESCRIPTOR_WORD3)),
        ];
        for (at, word) in (0..).zip(words) {
            self.emitter.with(Opcode::SMovB32, descriptor.offset(at), &[word]);
        }
        self.mapped.descriptors.push((memory, uniform, bias, descriptor));
        Ok(descriptor)
    }

    /// Numbers of 64 bits, with their signs, whose sum a uniform expression is.
    fn uniform_parts(&mut self, uniform: Expr) -> Result<Vec<([Scalar; 2], Sign)>, Diagnostic> {
        if uniform == Expr::ZERO {
            return Ok(Vec::new());
        }
        let range = self.arena.range(uniform);
        if range.at_least(0) && range.at_most(i64::from(i32::MAX)) {
            let HeldValue::Uniform(value) = self.held(uniform, &LateFacts::default())? else {
                return Err(Diagnostic::bug("a uniform offset in vector registers"));
            };
            return Ok(vec![([value, Scalar::ZERO], Sign::Plus)]);
        }
        let mut parts = Vec::new();
        for (coefficient, factors) in self.terms(uniform) {
            let magnitude = coefficient.numer().unsigned_abs();
            let mut all: SmallVec<[Scalar; 6]> = SmallVec::new();
            for factor in factors {
                let HeldValue::Uniform(value) = self.held(factor, &LateFacts::default())? else {
                    return Err(Diagnostic::bug("a uniform offset in vector registers"));
                };
                all.push(value);
            }
            // Factors have 32 bits.
            all.push(Scalar::Const((magnitude & 0xffff_ffff) as i64));
            let mut product = self.product64(&all);
            if magnitude >> 32 != 0 {
                all.pop();
                all.push(Scalar::Const((magnitude >> 32) as i64));
                let [high, _] = self.product64(&all);
                product = self.sum64(product, [Scalar::ZERO, high], Sign::Plus);
            }
            let sign = if *coefficient.numer() < 0 { Sign::Minus } else { Sign::Plus };
            parts.push((product, sign));
        }
        Ok(parts)
    }

    /// Prepares in front of a loop what does not change in it.
    fn keep(&mut self, pieces: &mut [MappedPiece]) -> Result<(), Diagnostic> {
        let early = |lowering: &mut Self, piece: &MappedPiece| -> SmallVec<[(Expr, Expr); 4]> {
            piece.conditions.iter().copied().filter(|c| lowering.class(c.0).is_early()).collect()
        };
        type Conditions = SmallVec<[(Expr, Expr); 4]>;
        let mut kept: Vec<(Expr, Conditions, Operand)> = Vec::new();
        for piece in pieces {
            let conditions = early(self, piece);
            let is_early = self.class(piece.vector).is_early();
            let base = self.base(piece.vector).map_err(|e| self.unmappable(e))?;
            let vector = if is_early { piece.vector } else { base.unwrap_or(Expr::ZERO) };
            let known = kept.iter().find(|k| k.0 == vector && k.1 == conditions).map(|k| k.2);
            let is_nothing = vector == Expr::ZERO && conditions.is_empty() && !is_early;
            let own = match known {
                _ if is_nothing => None,
                Some(known) => Some(known),
                None if kept.len() == MOST_KEPT => None,
                None => {
                    let held = self.held(vector, &LateFacts::default())?;
                    let offset = self.vector_of(held);
                    let offset = self.or_outside(offset, &conditions, &LateFacts::default())?;
                    kept.push((vector, conditions, offset));
                    Some(offset)
                }
            };
            let own = match own {
                None => KeptOffset::Nothing,
                Some(offset) if is_early => KeptOffset::Offset(offset),
                Some(offset) if base.is_some() => KeptOffset::Base(offset),
                Some(offset) => KeptOffset::Poison(offset),
            };
            piece.kept = own;
            if own != KeptOffset::Nothing {
                let classes: SmallVec<[bool; 4]> =
                    piece.conditions.iter().map(|c| self.class(c.0).is_early()).collect();
                let mut classes = classes.into_iter();
                piece.conditions.retain(|_| !classes.next().unwrap_or(false));
            }
            let late: SmallVec<[Expr; 8]> = [piece.vector, piece.scalar]
                .into_iter()
                .chain(piece.conditions.iter().map(|c| c.0))
                .collect();
            if kept.len() < MOST_KEPT {
                late.into_iter().try_for_each(|e| self.prepare(e))?;
            }
            if !piece.conditions.is_empty() {
                self.outside();
            }
        }
        Ok(())
    }

    /// What of an offset does not change, if what changes may be added to an offset outside as well.
    pub(crate) fn base(&mut self, vector: Expr) -> Result<Option<Expr>, ExprError> {
        let [early, late] = self.early_and_late(vector)?;
        let range = self.arena.range(late);
        let fits = early != Expr::ZERO
            && self.denominator(vector) == 1
            && range.at_least(0)
            && range.at_most(MOST_ADDED);
        Ok(fits.then_some(early))
    }

    /// The offset where all conditions hold, and [`OUTSIDE`] elsewhere.
    fn or_outside(
        &mut self,
        offset: Operand,
        conditions: &[(Expr, Expr)],
        late: &LateFacts,
    ) -> Result<Operand, Diagnostic> {
        let Some(mask) = self.lanes_inside(conditions, late)? else { return Ok(offset) };
        let outside = self.outside();
        let chosen = self.emitter.vgpr(1);
        self.emitter.op(Opcode::VCndmaskB32, &[chosen, outside, offset, mask]);
        Ok(chosen)
    }

    /// The mask of the lanes in which all conditions hold; `None` without conditions.
    pub(super) fn lanes_inside(
        &mut self,
        conditions: &[(Expr, Expr)],
        late: &LateFacts,
    ) -> Result<Option<Operand>, Diagnostic> {
        let mut all: Option<Operand> = None;
        for &(coordinate, size) in conditions {
            let coordinate = self.held(coordinate, late)?;
            let limit = self.held(size, late)?;
            let mask = self.emitter.sgpr(2);
            // A negative coordinate is a large one without a sign.
            match (coordinate, limit) {
                (HeldValue::Uniform(coordinate), HeldValue::Uniform(limit)) => {
                    let coordinate = self.emitter.in_sgpr(coordinate);
                    let (limit, literal) = limit.source();
                    self.emitter.push(Inst::new(Opcode::SCmpLtU32, &[coordinate, limit]).imm(literal));
                    let all_lanes = Operand::constant(u32::MAX);
                    self.emitter.op(Opcode::SCselectB64, &[mask, all_lanes, Operand::ZERO]);
                }
                (coordinate, limit) => {
                    let coordinate = self.vector_of(coordinate);
                    let limit = match limit {
                        HeldValue::Uniform(Scalar::Const(value)) => {
                            match Operand::inline_integer(value as i32) {
                                Some(inline) => inline,
                                None => self.constant_sgpr(value as u32),
                            }
                        }
                        HeldValue::Uniform(Scalar::Reg(register)) | HeldValue::Vector(register) => register,
                    };
                    self.emitter.op(Opcode::VCmpGtU32, &[mask, limit, coordinate]);
                }
            }
            all = Some(match all {
                None => mask,
                Some(others) => {
                    let both = self.emitter.sgpr(2);
                    self.emitter.op(Opcode::SAndB64, &[both, others, mask]);
                    both
                }
            });
        }
        Ok(all)
    }

    /// [`OUTSIDE`] in a VGPR.
    pub(super) fn outside(&mut self) -> Operand {
        if let Some(&known) = self.mapped.outside.last() {
            return known;
        }
        let outside = self.emitter.vgpr(1);
        self.emitter.with(Opcode::VMovB32, outside, &[Scalar::Const(i64::from(OUTSIDE))]);
        self.mapped.outside.push(outside);
        outside
    }

    /// How many elements side by side are the same in a read.
    pub(crate) fn repeats_of(&self, logical: Entity) -> u32 {
        self.mapped_plans.get(logical).map_or(1, |plan| plan.repeats)
    }

    /// Descriptor, elements per instruction and pieces of one expanded access.
    pub(super) fn mapped_pieces(
        &mut self,
        node: Entity,
        expansion: Expansion,
        registers: u32,
    ) -> Result<(Operand, u32, SmallVec<[InstructionPiece; 16]>), Diagnostic> {
        let plan = self.mapped_plans.get(expansion.logical);
        let plan = plan.ok_or_else(|| Diagnostic::bug("an access without a plan"))?;
        let (descriptor, granule) = (plan.descriptor, plan.granule);
        let count = (registers / granule) as usize;
        let first = expansion.replica as usize * count;
        let pieces = plan.pieces[first..first + count].to_vec();
        let expanded = self.expanded(node)?;
        let operands = &expanded.operands.0;
        let others = &operands[expanded.op.values_in_front()..operands.len() - 1];
        let late = LateFacts { iteration: expansion.iteration, operands: SmallVec::from_slice(others) };
        let mut done = SmallVec::new();
        for piece in pieces {
            done.push(self.mapped_piece(&piece, &late)?);
        }
        Ok((descriptor, granule, done))
    }

    fn mapped_piece(
        &mut self,
        piece: &MappedPiece,
        late: &LateFacts,
    ) -> Result<InstructionPiece, Diagnostic> {
        let mut offset = match piece.kept {
            KeptOffset::Offset(offset) => offset,
            KeptOffset::Base(base) => {
                let [_, rest] = self.early_and_late(piece.vector).map_err(|e| self.unmappable(e))?;
                self.held_onto(base, rest, late)?
            }
            KeptOffset::Nothing | KeptOffset::Poison(_) => {
                let held = self.held(piece.vector, late)?;
                self.vector_of(held)
            }
        };
        if let KeptOffset::Poison(poison) = piece.kept {
            let either = self.emitter.vgpr(1);
            self.emitter.op(Opcode::VOrB32, &[either, offset, poison]);
            offset = either;
        }
        offset = self.or_outside(offset, &piece.conditions, late)?;
        let scalar_offset = match self.held(piece.scalar, late)? {
            HeldValue::Uniform(Scalar::Const(0)) => Operand::ZERO,
            HeldValue::Uniform(scalar) => self.emitter.in_sgpr(scalar),
            HeldValue::Vector(_) => return Err(Diagnostic::bug("a scalar offset in vector registers")),
        };
        Ok(InstructionPiece { offset, scalar_offset, immediate: piece.immediate })
    }

    /// Whether an access has a plan of this kind.
    pub(super) fn is_mapped(&self, logical: Entity) -> bool {
        self.mapped_plans.get(logical).is_some()
    }
}
