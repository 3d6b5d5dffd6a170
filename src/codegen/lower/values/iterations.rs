//! Which iteration an access belongs to: scalar offsets of global accesses, and the copy of an LDS buffer in
//! use.
//!
//! In a loop both are scalar registers that it advances, one for every distance from the first iteration of
//! the running trip; in front of and after the steady state of a pipelined loop they follow from the number
//! of the iteration. If a trip brings every LDS copy around to where it was, as in unrolled loops, the
//! copies stay the same and are part of the addresses.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::ValueLayer;
use super::places::ValuePlace;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::emit::emitter::Scalar;
use crate::ir::constraint::{SCALARS_OF_ITERATIONS, iteration_symbol};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprError, Symbol};
use crate::ir::layout::{Dim, SCALED_BLOCK};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::passes::facts::LdsBuffer;
use crate::passes::loops::expand::{Base, Iteration};

/// A loop that is being written.
#[derive(Clone, Debug)]
pub(crate) struct OpenLoop {
    /// The dimension it walks along.
    pub(crate) axis: Dim,
    /// True if it runs at most once: then its start is part of the lanes' offsets.
    pub(crate) single: bool,
    /// True for the region around the steady state of a pipelined loop.
    pub(crate) pipeline: bool,
    /// First tile.
    pub(crate) start: Scalar,
    iterations: LoopIterations,
    /// Iterations of one trip.
    pub(crate) per_trip: u32,
    /// Scalar offsets that advance with it.
    offsets: SmallVec<[LoopOffset; 4]>,
    /// True if it has mapped accesses, which may need numbers of iterations.
    has_mapped: bool,
    /// These numbers.
    numbers: SmallVec<[LoopOffset; 1]>,
    /// Places of LDS copies that advance with it.
    copies: SmallVec<[LoopCopy; 2]>,
    /// The number of the first iteration of the running trip, if something in the loop asks for it.
    number: Option<Operand>,
    /// Scalar offsets of iterations around the steady state.
    pub(crate) fixed: SmallVec<[(Entity, Iteration, Operand); 4]>,
}

/// Which tiles the iterations of a loop take.
#[derive(Clone, Debug)]
struct LoopIterations {
    first_tile: Expr,
    /// Tiles from one iteration to the next.
    step: u32,
    /// The iterations; for a pipeline, those of its steady state, and how that ends.
    trip: Trip,
    drain: Drain,
}

/// A scalar offset that a loop advances.
#[derive(Clone, Debug)]
pub(super) struct LoopOffset {
    /// Memories that it serves.
    memories: SmallVec<[Entity; 2]>,
    /// Iterations ahead of the first of the running trip.
    ahead: u32,
    register: Operand,
    /// Bytes per iteration, and per trip.
    step: Scalar,
    per_trip: Scalar,
    /// The offset of the last iteration, which it does not exceed.
    last: Option<Scalar>,
    /// True if it starts at the loop's own start, so that memories with the same step may share it.
    shared: bool,
}

/// Bytes from the first copy of an LDS buffer to the one in use, which a loop advances.
#[derive(Copy, Clone, Debug)]
pub(super) struct LoopCopy {
    /// Number of copies, and bytes from one to the next.
    copies: u32,
    stride: u32,
    /// Iterations ahead of the first of the running trip, modulo the number of copies.
    ahead: u32,
    /// How many copies further the next trip is; if none, the place is fixed.
    turn: u32,
    place: Scalar,
}

impl OpenLoop {
    fn new(axis: Dim, start: Scalar, iterations: LoopIterations) -> OpenLoop {
        OpenLoop {
            axis,
            single: false,
            pipeline: false,
            start,
            iterations,
            per_trip: 1,
            offsets: SmallVec::new(),
            has_mapped: false,
            numbers: SmallVec::new(),
            copies: SmallVec::new(),
            number: None,
            fixed: SmallVec::new(),
        }
    }

    /// Number of the first tile.
    pub(crate) fn first_tile(&self) -> Expr {
        self.iterations.first_tile
    }

    /// Tiles that lie so many iterations ahead.
    fn tiles_ahead(&self, iterations: u32) -> Scalar {
        Scalar::Const(i64::from(iterations) * i64::from(self.iterations.step))
    }

    fn offset_of(&self, memory: Entity, ahead: u32) -> Option<Operand> {
        let offset = self.offsets.iter().find(|o| o.ahead == ahead && o.memories.contains(&memory));
        offset.map(|o| o.register)
    }
}

impl ValueLayer<'_> {
    /// Elements side by side along the dimension of a `decode` that a lane has.
    pub(crate) fn decoded_run(&self, logical: Entity, decoding: Decoding) -> u32 {
        let layout = self.kernel.world.get::<Placement>(logical).map(|placement| &placement.0);
        match (decoding.along, layout) {
            (Some(dim), Some(layout)) => layout.aligned_run(dim, SCALED_BLOCK),
            _ => 1,
        }
    }

    /// The dimension along which a `decode` asks for the places of its elements, if it does: where a lane has
    /// single elements of bytes of two.
    fn decoded_places(&self, logical: Entity, decoding: Decoding) -> Option<Dim> {
        let asks = decoding.form == CodeForm::Bytes && self.decoded_run(logical, decoding) <= 1;
        decoding.along.filter(|_| asks)
    }

    /// Bytes that one iteration of the loop over `axis` moves on in `memory`.
    fn loop_step(&mut self, memory: Entity, axis: Dim) -> Result<Option<Expr>, Diagnostic> {
        let dims = self.get::<ValueType>(memory)?.dims.clone();
        let Some(dim) = self.kernel.geometry.walked(&dims, axis) else { return Ok(None) };
        let element_bytes = self.element_bytes(memory)?;
        let stride = self.stride_bytes(memory, &dims, dim, element_bytes)?;
        let tile = self.arena.int(i64::from(self.kernel.geometry.dim(dim).tiling.unwrap_or(1)));
        let step = self.arena.mul(stride, tile);
        step.map(Some).map_err(|e| self.too_large(&e))
    }

    /// A loop over `axis` with the iterations `trip`.
    pub(crate) fn open_loop(&mut self, axis: Dim, trip: Trip) -> Result<OpenLoop, Diagnostic> {
        let first = self.tile_of(axis, trip.start)?;
        let start = self.scalar(first)?;
        let step = self.kernel.geometry.dim(axis).tiles_per_iteration();
        let iterations = LoopIterations { first_tile: first, step, trip, drain: Drain::Epilogue };
        Ok(OpenLoop::new(axis, start, iterations))
    }

    /// The region of a pipelined loop whose steady state has the iterations `trip`.
    pub(crate) fn open_pipeline(
        &mut self,
        axis: Dim,
        trip: Trip,
        drain: Drain,
    ) -> Result<OpenLoop, Diagnostic> {
        let mut open = self.open_loop(axis, trip)?;
        open.pipeline = true;
        open.iterations.drain = drain;
        Ok(open)
    }

    /// The number of the tile that an iteration of a loop over `axis` takes.
    fn tile_of(&mut self, axis: Dim, iteration: Expr) -> Result<Expr, Diagnostic> {
        self.kernel.geometry.dim(axis).tile_of(iteration, self.arena).map_err(Self::trip_error)
    }

    /// The number of the tile that the iteration before `end` takes.
    fn last_tile(&mut self, axis: Dim, end: Expr) -> Result<Scalar, Diagnostic> {
        let tiles = self.kernel.geometry.dim(axis).tiles_per_iteration();
        let beyond = self.tile_of(axis, end)?;
        let beyond = self.scalar(beyond)?;
        Ok(self.emitter.sub(beyond, Scalar::Const(i64::from(tiles))))
    }

    fn trip_error(error: ExprError) -> Diagnostic {
        Diagnostic::new(Kind::Bug, format!("a number of an iteration: {error}"))
    }

    /// True if a loop around this point iterates over `memory`.
    pub(crate) fn advances(&self, memory: Entity) -> Result<bool, Diagnostic> {
        let dims = &self.get::<ValueType>(memory)?.dims;
        Ok(self
            .loops
            .iter()
            .any(|open| !open.single && self.kernel.geometry.walked(dims, open.axis).is_some()))
    }

    /// Calls `see` with the accesses below `node`, and how many iterations of the loop `node` each is ahead
    /// of the first of its running trip.
    fn visit_accesses(
        &self,
        node: Entity,
        see: &mut dyn FnMut(&ExpandedNodeItem, u32),
    ) -> Result<(), Diagnostic> {
        for &inner in &self.get::<Body>(node)?.0 {
            let expanded = self.expanded(inner)?;
            if expanded.op.is_access() {
                see(&expanded, expanded.expansion.map_or(0, |e| e.iteration.ahead));
            }
            // Iterations of an inner loop are its own.
            if expanded.body.is_some() {
                self.visit_accesses(inner, &mut |access, _| see(access, 0))?;
            }
        }
        Ok(())
    }

    /// A register that begins with what `of_tile` makes of the tile so many iterations after the first of a
    /// loop, and what it makes of the last tile, if iterations end in the loop.
    fn advancing(
        &mut self,
        open: &OpenLoop,
        ahead: u32,
        of_tile: &dyn Fn(&mut Self, Scalar) -> Scalar,
    ) -> Result<(Operand, Option<Scalar>), Diagnostic> {
        let first = self.emitter.add(open.start, open.tiles_ahead(ahead));
        let (mut first, mut last) = (of_tile(self, first), None);
        let around = self.loops.last().filter(|around| around.iterations.drain == Drain::Loop);
        if let Some(end) = around.filter(|_| ahead >= open.per_trip).map(|around| around.iterations.trip.end)
        {
            let tile = self.last_tile(open.axis, end)?;
            let end = of_tile(self, tile);
            first = self.least(first, end);
            last = Some(end);
        }
        let register = self.emitter.sgpr(1);
        self.emitter.with(Opcode::SMovB32, register, &[first]);
        Ok((register, last))
    }

    /// Scalar offsets of the global accesses in a loop, one register for each different step and distance.
    pub(crate) fn open_offsets(&mut self, node: Entity, open: &mut OpenLoop) -> Result<(), Diagnostic> {
        let mut accesses: SmallVec<[(Entity, u32); 8]> = SmallVec::new();
        self.visit_accesses(node, &mut |access, ahead| {
            let memories = match &access.operands.0[..] {
                memories if access.op.copies() => memories,
                _ if self.has_mapping(access) => {
                    open.has_mapped = true;
                    &[]
                }
                memories => memories.last().map_or(&[][..], std::slice::from_ref),
            };
            for &memory in memories {
                if !accesses.contains(&(memory, ahead)) {
                    accesses.push((memory, ahead));
                }
            }
        })?;
        for (memory, ahead) in accesses {
            if *self.get::<Op>(memory)? != Op::Memory {
                continue;
            }
            let Some(step) = self.loop_step(memory, open.axis)? else { continue };
            let step = self.scalar(step)?;
            // A loop around this one has already given the memory an offset of its own.
            let outer = self.outer_offset(memory);
            let shared = outer.is_none();
            let mut known = open.offsets.iter_mut();
            if let Some(known) = known.find(|o| shared && o.shared && o.step == step && o.ahead == ahead) {
                known.memories.push(memory);
                continue;
            }
            let (register, last) = self.advancing(open, ahead, &|lowering, tile| {
                let bytes = lowering.emitter.mul(tile, step);
                outer.map_or(bytes, |outer| lowering.emitter.add(bytes, Scalar::Reg(outer)))
            })?;
            let per_trip = self.emitter.mul(step, open.tiles_ahead(open.per_trip));
            let memories = smallvec![memory];
            open.offsets.push(LoopOffset { memories, ahead, register, step, per_trip, last, shared });
        }
        Ok(())
    }

    /// The number of the running iteration, if a node in a loop is about places along its dimension.
    pub(crate) fn open_number(&mut self, node: Entity, open: &mut OpenLoop) -> Result<(), Diagnostic> {
        if self.names_places(node, open.axis)? || self.iteration_that_chooses(open.axis).is_some() {
            let register = self.emitter.sgpr(1);
            self.emitter.with(Opcode::SMovB32, register, &[open.start]);
            open.number = Some(register);
        }
        Ok(())
    }

    /// True if the iterations of some loop depend on a symbol.
    pub(crate) fn chooses_iterations(&self, symbol: Symbol) -> bool {
        let chosen = self.kernel.geometry.dims.values().filter_map(|dim| dim.iterations);
        let mut limits = chosen.flat_map(|(first, end)| [first, end]);
        limits.any(|limit| self.arena.symbols(limit).contains(&symbol))
    }

    /// The symbol of the running iteration of a loop over `axis`, if iterations of other loops depend on it.
    fn iteration_that_chooses(&self, axis: Dim) -> Option<Symbol> {
        self.kernel.geometry.chooses_iterations().then_some(())?;
        Some(iteration_symbol(self.kernel.geometry.dim(axis).symbol))
            .filter(|&symbol| self.chooses_iterations(symbol))
    }

    /// Gives the running iteration of the innermost loop its symbol, if iterations of loops inside of it
    /// depend on it; returns how many symbols there were before.
    pub(crate) fn name_iteration(&mut self) -> usize {
        let before = self.symbols.len();
        let Some(open) = self.loops.last() else { return before };
        let (number, start) = (open.number, open.start);
        if let Some(symbol) = self.iteration_that_chooses(open.axis) {
            let register = number.unwrap_or_else(|| self.emitter.in_sgpr(start));
            self.symbols.push((symbol, register));
        }
        before
    }

    /// Gives a symbol in the iterations of loops its register: a value that all lanes have, within the bounds
    /// that sums of two of them allow.
    pub(crate) fn set_symbol(&mut self, symbol: Symbol, value: Entity) -> Result<(), Diagnostic> {
        self.settle(value)?;
        let value = match *self.place(value)? {
            ValuePlace::Constant(bits) => Scalar::Const(i64::from(bits as u32 as i32)),
            ValuePlace::Uniform(register) => Scalar::Reg(register),
            ValuePlace::Registers(register) => Scalar::Reg(self.first_lane(register)),
            ValuePlace::Scattered(first) => {
                Scalar::Reg(self.first_lane(self.places.scattered[first as usize]))
            }
            ValuePlace::Comparison(_) | ValuePlace::Flags(_) => {
                return Err(Diagnostic::bug("a symbol is set to a condition"));
            }
        };
        let (least, most) = SCALARS_OF_ITERATIONS.into_inner();
        let value = self.emitter.in_sgpr(value);
        let value = self.emitter.binary(Opcode::SMaxI32, Scalar::Reg(value), Scalar::Const(least));
        let value = self.emitter.binary(Opcode::SMinI32, value, Scalar::Const(most));
        let register = self.emitter.in_sgpr(value);
        self.symbols.push((symbol, register));
        Ok(())
    }

    fn first_lane(&mut self, register: Operand) -> Operand {
        let number = self.emitter.sgpr(1);
        self.emitter.op(Opcode::VReadfirstlaneB32, &[number, register]);
        number
    }

    /// True if a node below `region` is about places along `axis`.
    fn names_places(&self, region: Entity, axis: Dim) -> Result<bool, Diagnostic> {
        for &inner in &self.get::<Body>(region)?.0 {
            let expanded = self.expanded(inner)?;
            let mut places = false;
            if let Op::SelfIndex(dim) | Op::Iteration(dim) = *expanded.op {
                places = self.kernel.geometry.loop_dim(dim) == axis;
            } else if let (Op::Decode(decoding), Some(expansion)) = (*expanded.op, expanded.expansion) {
                let own = self.decoded_places(expansion.logical, decoding);
                places = own.is_some_and(|dim| self.kernel.geometry.loop_dim(dim) == axis);
            }
            if places || (expanded.body.is_some() && self.names_places(inner, axis)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The number of an iteration of the loop over `dim`; `None` outside of such a loop.
    pub(crate) fn iteration_number(
        &mut self,
        dim: Dim,
        iteration: Iteration,
    ) -> Result<Option<Scalar>, Diagnostic> {
        let axis = self.kernel.geometry.loop_dim(dim);
        let Some(at) = self.loops.iter().rposition(|open| open.axis == axis) else { return Ok(None) };
        let innermost = at + 1 == self.loops.len();
        let ahead = if innermost { iteration.ahead } else { 0 };
        if innermost && let Some(base) = self.fixed_number(iteration) {
            let ahead = self.arena.int(i64::from(ahead));
            let number = self.arena.add(base, ahead).map_err(Self::trip_error)?;
            let number = self.tile_of(axis, number)?;
            return self.scalar(number).map(Some);
        }
        let open = &self.loops[at];
        let ahead = open.tiles_ahead(ahead);
        let number = match (open.number, open.single) {
            (Some(register), _) => Scalar::Reg(register),
            (None, true) => open.start,
            (None, false) => return Err(Diagnostic::bug("the number of an iteration that no loop counts")),
        };
        Ok(Some(self.emitter.add(number, ahead)))
    }

    fn has_mapping(&self, access: &ExpandedNodeItem) -> bool {
        access.expansion.is_some_and(|e| self.kernel.world.get::<Mapping>(e.logical).is_some())
    }

    /// Numbers of the iterations to which mapped accesses in a loop belong, one register for each distance.
    pub(crate) fn open_numbers(&mut self, node: Entity, open: &mut OpenLoop) -> Result<(), Diagnostic> {
        if !open.has_mapped {
            return Ok(());
        }
        let mut distances: SmallVec<[u32; 2]> = SmallVec::new();
        self.visit_accesses(node, &mut |access, ahead| {
            if self.is_mapped_along(access, open.axis) && !distances.contains(&ahead) {
                distances.push(ahead);
            }
        })?;
        for ahead in distances {
            let (register, last) = self.advancing(open, ahead, &|_, tile| tile)?;
            let (step, per_trip) = (open.tiles_ahead(1), open.tiles_ahead(open.per_trip));
            let memories = SmallVec::new();
            open.numbers.push(LoopOffset { memories, ahead, register, step, per_trip, last, shared: false });
        }
        Ok(())
    }

    /// The number of an iteration of the loop over `axis`, to which an access belongs.
    pub(crate) fn mapped_iteration(&mut self, axis: Dim, iteration: Iteration) -> Result<Scalar, Diagnostic> {
        let missing = "an access in an iteration of no loop";
        let innermost = self.loops.last().is_some_and(|open| open.axis == axis);
        if innermost && let Some(base) = self.fixed_number(iteration) {
            let number = self.fixed_tile(axis, base, iteration.ahead)?;
            return self.scalar(number);
        }
        let open = self.loops.iter().rev().find(|open| open.axis == axis && !open.pipeline);
        let open = open.ok_or_else(|| Diagnostic::bug(missing))?;
        let ahead = if innermost { iteration.ahead } else { 0 };
        let number = open.numbers.iter().find(|number| number.ahead == ahead).map(|number| number.register);
        match number {
            Some(register) => Ok(Scalar::Reg(register)),
            None if open.single => Ok(open.start),
            None => Err(Diagnostic::bug(missing)),
        }
    }

    /// The smaller one, unsigned.
    fn least(&mut self, a: Scalar, b: Scalar) -> Scalar {
        match (a, b) {
            (Scalar::Const(a), Scalar::Const(b)) => Scalar::Const(a.min(b)),
            _ => self.emitter.binary(Opcode::SMinU32, a, b),
        }
    }

    /// The scalar offset to which the loops around have brought a memory.
    fn outer_offset(&self, memory: Entity) -> Option<Operand> {
        self.loops.iter().rev().find_map(|open| open.offset_of(memory, 0))
    }

    /// Places of the copies of LDS buffers that are used in a loop.
    pub(crate) fn open_copies(&mut self, node: Entity, open: &mut OpenLoop) -> Result<(), Diagnostic> {
        let world = self.kernel.world;
        let mut used: SmallVec<[(u32, u32, u32); 4]> = SmallVec::new();
        for &inner in &self.get::<Body>(node)?.0 {
            let expanded = self.expanded(inner)?;
            let Some(expansion) = expanded.expansion.filter(|e| e.iteration.base == Base::Trip) else {
                continue;
            };
            if expanded.op.is_access()
                && let Some(buffer) = world.get::<LdsBuffer>(expanded.memory()?)
                && buffer.copies > 1
            {
                let ahead = expansion.iteration.ahead % buffer.copies;
                let key = (buffer.copies, buffer.copy_stride(), ahead);
                if !used.contains(&key) {
                    used.push(key);
                }
            }
        }
        for (copies, stride, ahead) in used {
            let first = self.copy_number(open.iterations.trip.start, ahead, copies)?;
            let first = self.emitter.mul(first, Scalar::Const(i64::from(stride)));
            let turn = open.per_trip % copies;
            let place = match turn {
                0 => first,
                _ => {
                    let register = self.emitter.sgpr(1);
                    self.emitter.with(Opcode::SMovB32, register, &[first]);
                    Scalar::Reg(register)
                }
            };
            open.copies.push(LoopCopy { copies, stride, ahead, turn, place });
        }
        Ok(())
    }

    /// `(base + ahead) mod copies`.
    fn copy_number(&mut self, base: Expr, ahead: u32, copies: u32) -> Result<Scalar, Diagnostic> {
        let ahead = self.arena.int(i64::from(ahead));
        let number = self.arena.add(base, ahead).map_err(Self::trip_error)?;
        let copies = self.arena.int(i64::from(copies));
        let number = self.arena.modulo(number, copies).map_err(Self::trip_error)?;
        self.scalar(number)
    }

    /// Advances the places of LDS buffers with more than two copies to the next trip of the innermost loop.
    pub(crate) fn wrap_copies(&mut self) {
        let Some(open) = self.loops.last() else { return };
        for LoopCopy { copies, stride, turn, place, .. } in open.copies.clone() {
            let Scalar::Reg(register) = place else { continue };
            let step = Scalar::Const(i64::from(stride * turn));
            let end = Scalar::Const(i64::from(stride * copies));
            match (copies, turn) {
                (_, 0) | (2, _) => {}
                (_, 1) => {
                    let (end, literal) = end.source();
                    self.emitter.with(Opcode::SAddU32, register, &[place, step]);
                    self.emitter.push(Inst::new(Opcode::SCmpLgU32, &[register, end]).imm(literal));
                    self.emitter.op(Opcode::SCselectB32, &[register, register, Operand::ZERO]);
                }
                _ => {
                    // The difference borrows, which sets SCC, if the end is not reached yet.
                    let around = self.emitter.sgpr(1);
                    self.emitter.with(Opcode::SAddU32, register, &[place, step]);
                    self.emitter.with(Opcode::SSubU32, around, &[place, end]);
                    self.emitter.op(Opcode::SCselectB32, &[register, register, around]);
                }
            }
        }
    }

    /// Advances everything else that depends on the iteration of the innermost loop to its next trip.
    pub(crate) fn advance(&mut self) {
        let Some(open) = self.loops.last().cloned() else { return };
        if let Some(number) = open.number {
            let trip = open.tiles_ahead(open.per_trip);
            self.emitter.with(Opcode::SAddU32, number, &[Scalar::Reg(number), trip]);
        }
        for LoopOffset { register, per_trip, last, .. } in open.offsets.into_iter().chain(open.numbers) {
            self.emitter.with(Opcode::SAddU32, register, &[Scalar::Reg(register), per_trip]);
            if let Some(last) = last {
                self.emitter.with(Opcode::SMinU32, register, &[Scalar::Reg(register), last]);
            }
        }
        for LoopCopy { copies, stride, turn, place, .. } in open.copies {
            if let (Scalar::Reg(register), 2, 1) = (place, copies, turn) {
                let step = Scalar::Const(i64::from(stride * turn));
                self.emitter.with(Opcode::SSubU32, register, &[step, place]);
            }
        }
    }

    /// The number of an iteration that is known without a loop register: none for a loop's running trip.
    fn fixed_number(&self, iteration: Iteration) -> Option<Expr> {
        let around = self.loops.iter().rev().find(|open| open.pipeline);
        match iteration.base {
            Base::Written => None,
            Base::Trip => self.loops.last().filter(|open| open.single).map(|open| open.iterations.trip.start),
            Base::Start => around.map(|open| open.iterations.trip.start),
            Base::End => around.map(|open| open.iterations.trip.end),
        }
    }

    /// The tile of an iteration that lies so far ahead of one with a known number. A pipeline that ends in
    /// its loop says where the iterations end, around a loop of one trip, too.
    fn fixed_tile(&mut self, axis: Dim, base: Expr, ahead: u32) -> Result<Expr, Diagnostic> {
        let ahead = self.arena.int(i64::from(ahead));
        let mut number = self.arena.add(base, ahead).map_err(Self::trip_error)?;
        let around = self.loops.iter().rev().find(|open| open.pipeline);
        if let Some(around) = around.filter(|around| around.iterations.drain == Drain::Loop) {
            let (end, one) = (around.iterations.trip.end, self.arena.int(1));
            let last = self.arena.sub(end, one).map_err(Self::trip_error)?;
            number = self.arena.min(number, last).map_err(Self::trip_error)?;
        }
        self.tile_of(axis, number)
    }

    /// The scalar offset of accesses to `memory` in an iteration.
    pub(crate) fn iteration_offset(
        &mut self,
        memory: Entity,
        iteration: Iteration,
    ) -> Result<Operand, Diagnostic> {
        let missing = "an access that no loop advances";
        let Some(base) = self.fixed_number(iteration) else {
            let own = self.loops.last().and_then(|open| open.offset_of(memory, iteration.ahead));
            return own.or_else(|| self.outer_offset(memory)).ok_or_else(|| Diagnostic::bug(missing));
        };
        let at = self.loops.iter().rposition(|open| open.pipeline || open.single);
        let at = at.ok_or_else(|| Diagnostic::bug(missing))?;
        let known = self.loops[at].fixed.iter().find(|f| f.0 == memory && f.1 == iteration);
        if let Some(&(_, _, register)) = known {
            return Ok(register);
        }
        let outer = self.outer_offset(memory).map_or(Scalar::ZERO, Scalar::Reg);
        let mut offset = outer;
        let axis = self.loops[at].axis;
        if let Some(step) = self.loop_step(memory, axis)? {
            let tile = self.fixed_tile(axis, base, iteration.ahead)?;
            let bytes = self.arena.mul(tile, step).map_err(Self::trip_error)?;
            let bytes = self.scalar(bytes)?;
            offset = self.emitter.add(bytes, outer);
        }
        let register = if offset == Scalar::ZERO { Operand::ZERO } else { self.emitter.in_sgpr(offset) };
        self.loops[at].fixed.push((memory, iteration, register));
        Ok(register)
    }

    /// Bytes from the first copy of an LDS buffer to the one that an iteration uses.
    pub(crate) fn copy_offset(
        &mut self,
        allocation: Entity,
        iteration: Iteration,
    ) -> Result<Scalar, Diagnostic> {
        let buffer = self.get::<LdsBuffer>(allocation)?;
        let (copies, stride) = (buffer.copies, buffer.copy_stride());
        // A loop as it was written needs one copy.
        if copies == 1 || iteration.base == Base::Written {
            return Ok(Scalar::ZERO);
        }
        if let Some(base) = self.fixed_number(iteration) {
            let number = self.copy_number(base, iteration.ahead, copies)?;
            return Ok(self.emitter.mul(number, Scalar::Const(i64::from(stride))));
        }
        let ahead = iteration.ahead % copies;
        let open = self.loops.last().map(|open| &open.copies[..]).unwrap_or_default();
        let found = open.iter().find(|c| (c.copies, c.stride, c.ahead) == (copies, stride, ahead));
        found.map(|c| c.place).ok_or_else(|| Diagnostic::bug("a copy that no loop advances"))
    }

    /// True if an access has a mapping and its coordinates move along a dimension.
    fn is_mapped_along(&self, access: &ExpandedNodeItem, dim: Dim) -> bool {
        let Some(logical) = access.expansion.map(|expansion| expansion.logical) else { return false };
        let world = self.kernel.world;
        if world.get::<Mapping>(logical).is_none() {
            return false;
        }
        let written = world.get::<Operands>(logical).and_then(|operands| operands.0.first().copied());
        let typed = written.filter(|_| access.op.is_write()).unwrap_or(logical);
        let ty = world.get::<ValueType>(typed);
        ty.is_some_and(|ty| self.kernel.geometry.walked(&ty.dims, dim).is_some())
    }
}
