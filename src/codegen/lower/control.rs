//! Regions, loops, carried values, and matrix instructions.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::arithmetic::constant_register;
use super::emitter::{Branch, Scalar};
use super::mapped_values::MappedScope;
use super::{Lowering, ValuePlace};
use crate::codegen::isa::{Inst, Modifiers, Opcode, Operand, WaitCounts};
use crate::codegen::machine::waits::BARRIER_WITHOUT_WAITS;
use crate::codegen::machine::{BlockId, RegisterFile};
use crate::codegen::target::{AccumulationFile, Target};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::layout::{Dim, Mma, Source};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::nodes::ExpandedNodeItem;
use crate::ir::op::OpClass;
use crate::ir::types::DType;
use crate::passes::facts::Remainder;
use crate::passes::loops::expand::Expansion;

/// The most virtual registers: those that the allocator adds need numbers as well.
const MAX_REGISTERS: usize = 1 << 20;

/// What is valid at a point of the code: how much of each list of prepared values.
pub(super) struct Scope {
    scalars: usize,
    digits: usize,
    lane_values: usize,
    vector_copies: usize,
    constants: usize,
    constant_pairs: usize,
    wide_constants: usize,
    wide_copies: usize,
    global_plans: usize,
    lds_plans: usize,
    mapped_lds_plans: usize,
    to_lds_plans: usize,
    moved_addresses: usize,
    descriptors: usize,
    tile_places: usize,
    mapped_plans: usize,
    mapped: MappedScope,
}

impl Lowering<'_> {
    pub(super) fn scope(&self) -> Scope {
        Scope {
            scalars: self.scalars.len(),
            digits: self.digits.len(),
            lane_values: self.lane_values.len(),
            vector_copies: self.vector_copies.len(),
            constants: self.constants.len(),
            constant_pairs: self.constant_pairs.len(),
            wide_constants: self.wide_constants.len(),
            wide_copies: self.wide_copies.len(),
            global_plans: self.global_plans.len(),
            lds_plans: self.lds_plans.len(),
            mapped_lds_plans: self.mapped_lds_plans.len(),
            to_lds_plans: self.to_lds_plans.len(),
            moved_addresses: self.moved_addresses.len(),
            descriptors: self.descriptors.len(),
            tile_places: self.tile_places.len(),
            mapped_plans: self.mapped_plans.len(),
            mapped: self.mapped.scope(),
        }
    }

    pub(super) fn leave(&mut self, scope: &Scope) {
        self.scalars.truncate(scope.scalars);
        self.digits.truncate(scope.digits);
        self.lane_values.truncate(scope.lane_values);
        self.vector_copies.truncate(scope.vector_copies);
        self.constants.truncate(scope.constants);
        self.constant_pairs.truncate(scope.constant_pairs);
        self.wide_constants.truncate(scope.wide_constants);
        self.wide_copies.truncate(scope.wide_copies);
        self.global_plans.truncate(scope.global_plans);
        self.lds_plans.truncate(scope.lds_plans);
        self.mapped_lds_plans.truncate(scope.mapped_lds_plans);
        self.to_lds_plans.truncate(scope.to_lds_plans);
        self.moved_addresses.truncate(scope.moved_addresses);
        self.descriptors.truncate(scope.descriptors);
        self.tile_places.truncate(scope.tile_places);
        self.mapped_plans.truncate(scope.mapped_plans);
        self.mapped.leave(scope.mapped);
    }

    /// Counts how often each expanded value is used, and sizes the tables by entity index.
    pub(super) fn count_uses(&mut self, root: Entity) -> Result<(), Diagnostic> {
        let size = self.count_uses_below(root)?.max(self.uses.len());
        self.uses.resize(size, 0);
        self.places.resize(size, None);
        self.unfinished.resize(size, Vec::new());
        Ok(())
    }

    /// The same for a region; one more than the largest entity index in it.
    fn count_uses_below(&mut self, region: Entity) -> Result<usize, Diagnostic> {
        let mut size = 0;
        for &node in &self.get::<Body>(region)?.0 {
            size = size.max(node.index_u32() as usize + 1);
            let expanded = self.first_seen(node)?;
            self.multiplies |= matches!(expanded.op, Op::Mma(_) | Op::ScaledMma(_));
            self.count_all(&expanded.operands.0);
            if expanded.body.is_some() {
                self.count_all(&self.get::<Yields>(node)?.0);
                size = size.max(self.count_uses_below(node)?);
            }
        }
        Ok(size)
    }

    fn count_all(&mut self, values: &[Entity]) {
        for value in values {
            let index = value.index_u32() as usize;
            if index >= self.uses.len() {
                self.uses.resize(index + 1, 0);
            }
            self.uses[index] += 1;
        }
    }

    /// Writes the nodes of a region.
    pub(super) fn region(&mut self, region: Entity) -> Result<(), Diagnostic> {
        // Instructions after the region belong to the node that owns it.
        let around = self.emitter.source;
        self.widened_pairs.clear();
        for &node in &self.get::<Body>(region)?.0 {
            let expanded = self.expanded(node)?;
            if !self.may_precede_writes(&expanded)? {
                self.emitter.late.write_all(self.emitter.body);
            }
            self.emitter.source = expanded.origin.0;
            self.node(node, &expanded)?;
            if is_product(expanded.op) {
                self.emitter.late.write_one(self.emitter.body);
            }
            if self.emitter.body.registers.len() > MAX_REGISTERS {
                let text = format!("the tiles of one wave take more than {MAX_REGISTERS} virtual registers");
                return Err(Diagnostic::new(Kind::Limit, text)
                    .at(self.locations.get(self.emitter.source))
                    .help("use smaller tiles, or more waves"));
            }
        }
        self.emitter.late.write_all(self.emitter.body);
        self.widened_pairs.clear();
        self.emitter.source = around;
        Ok(())
    }

    /// True if a node may come before writes to LDS that were put off.
    fn may_precede_writes(&self, node: &ExpandedNodeItem) -> Result<bool, Diagnostic> {
        if self.emitter.late.is_empty() || is_product(node.op) {
            return Ok(true);
        }
        if *node.op != Op::Read || self.world.get::<Mapping>(node.expansion()?.logical).is_some() {
            return Ok(false);
        }
        let memory = node.memory()?;
        Ok(*self.get::<Op>(memory)? == Op::Allocate && !self.emitter.late.are_of(memory))
    }

    fn node(&mut self, node: Entity, expanded: &ExpandedNodeItem) -> Result<(), Diagnostic> {
        let (op, operands) = (*expanded.op, &expanded.operands.0[..]);
        match op {
            Op::Read | Op::Write => {
                let (memory, expansion) = (expanded.memory()?, expanded.expansion()?);
                let memory_op = self.plan(expanded)?;
                match (op, memory_op) {
                    (Op::Read, Op::Allocate) if self.is_mapped_in_lds(expansion.logical) => {
                        self.read_lds_mapped(node, expansion, memory)
                    }
                    (Op::Write, Op::Allocate) if self.is_mapped_in_lds(expansion.logical) => {
                        self.write_lds_mapped(node, expansion, operands[0], memory)
                    }
                    (Op::Read, Op::Allocate) => self.read_lds(node, expansion, memory),
                    (Op::Read, _) => self.load_global(node, expansion, memory),
                    (_, Op::Allocate) => self.write_lds(expansion, operands[0], memory),
                    _ => self.store_global(node, expansion, operands[0], memory),
                }
            }
            Op::Atomic(op) => {
                let (memory, expansion) = (expanded.memory()?, expanded.expansion()?);
                let values = &operands[..op.values()];
                match self.plan(expanded)? == Op::Allocate {
                    true => self.atomic_lds(node, op, expansion, values, memory),
                    false => self.atomic(node, op, expansion, values, memory),
                }
            }
            Op::GlobalToShared => {
                self.plan(expanded)?;
                self.load_to_lds(expanded.expansion()?, operands[0], operands[1])
            }
            Op::Mma(MmaChoice::Explicit(mma)) | Op::ScaledMma(MmaChoice::Explicit(mma)) => {
                let slice = expanded.expansion()?.slice;
                self.mma(node, mma, slice, operands)
            }
            Op::Iterate(axis) => self.iterate(node, axis, operands),
            // Their places are set together with their loop.
            Op::IterArg(_) | Op::LoopResult(_) => self.carried(node, op, operands),
            Op::Barrier => {
                self.emitter.op(Opcode::SBarrier, &[]);
                Ok(())
            }
            Op::Control(control) => {
                self.control(control);
                Ok(())
            }
            Op::Pipeline(axis) => self.pipeline(node, axis, operands),
            Op::SetSymbol(symbol) => self.set_symbol(symbol, operands[0]),
            Op::Conditional | Op::While => self.under_condition(node, op, operands),
            Op::SelfIndex(dim) => self.self_index(node, expanded.expansion()?, dim),
            Op::Size(dim) => self.size(node, dim),
            Op::WorkgroupId(axis) => self.workgroup_id(node, axis),
            Op::Iteration(dim) => self.iteration(node, expanded.expansion()?, dim),
            Op::Rearrange => self.rearrange(node, expanded.expansion()?, operands),
            Op::Reduce(reduction) => self.reduce(node, expanded.expansion()?, reduction, operands),
            Op::Scan(scan) => self.scan(node, expanded.expansion()?, scan, operands),
            Op::Decode(decoding) => self.decode(node, expanded.expansion()?, decoding, operands),
            Op::Encode(dtype) => self.encode(node, expanded.expansion()?, dtype, operands),
            Op::Sort(_) => Err(self.bug("a sort that no pass has made a network of")),
            Op::Memory | Op::Scalar | Op::Allocate => Ok(()),
            Op::Mma(MmaChoice::Kernel | MmaChoice::Shape(_))
            | Op::ScaledMma(MmaChoice::Kernel | MmaChoice::Shape(_)) => {
                Err(self.bug("an mma without instruction"))
            }
            Op::Register(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Ternary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Convert(_)
            | Op::Broadcast => self.elementwise(node, expanded.expansion()?, op, operands),
        }
    }

    fn control(&mut self, control: Control) {
        match control {
            Control::WorkgroupBarrier => self.barrier_without_waits(),
            Control::SetWavePriority(priority) => {
                self.emitter.push(Inst::new(Opcode::SSetprio, &[]).imm(u32::from(priority)));
            }
            // The order of the nodes is the order of the code.
            Control::SchedulingBarrier => {}
            Control::WaitForLoads(count) => {
                self.wait(WaitCounts { vm: count.min(WaitCounts::NONE.vm), ..WaitCounts::NONE });
            }
            Control::WaitForShared(count) => {
                self.wait(WaitCounts { lgkm: count.min(WaitCounts::NONE.lgkm), ..WaitCounts::NONE });
            }
            Control::ConditionalBarrier(condition) => self.conditional_barrier(condition),
        }
    }

    fn wait(&mut self, counts: WaitCounts) {
        self.emitter.push(Inst::new(Opcode::SWaitcnt, &[]).imm(counts.to_imm()));
    }

    fn barrier_without_waits(&mut self) {
        self.emitter.push(Inst::new(Opcode::SBarrier, &[]).imm(BARRIER_WITHOUT_WAITS));
    }

    /// A barrier in a block of its own, which the other waves jump over.
    fn conditional_barrier(&mut self, condition: WaveCondition) {
        let waves = self.geometry.wave_count();
        let bound = match condition.bound {
            WaveBound::Wave(number) => number,
            WaveBound::WavesOver(divisor) => waves / divisor.max(1),
        };
        // The opposite comparison jumps.
        let op = match condition.predicate {
            Predicate::Eq => Opcode::SCmpLgU32,
            Predicate::Ne => Opcode::SCmpEqU32,
            Predicate::Lt => Opcode::SCmpGeU32,
            Predicate::Le => Opcode::SCmpGtU32,
            Predicate::Gt => Opcode::SCmpLeU32,
            Predicate::Ge => Opcode::SCmpLtU32,
        };
        let wave = self.emitter.in_sgpr(self.wave);
        let (bound, literal) = Scalar::Const(i64::from(bound)).source();
        self.emitter.push(Inst::new(op, &[wave, bound]).imm(literal));
        let branch = self.emitter.branch_ahead(Opcode::SCbranchScc1);
        self.barrier_without_waits();
        let after = self.emitter.next_block(None);
        self.emitter.patch(branch, after);
    }

    /// Prepares the addresses of an access, if that is still to be done; returns the operation of its memory.
    fn plan(&mut self, access: &ExpandedNodeItem) -> Result<Op, Diagnostic> {
        let (logical, memory) = (access.expansion()?.logical, access.memory()?);
        let memory_op = *self.get::<Op>(memory)?;
        match (access.op, memory_op) {
            (Op::GlobalToShared, _) => self.plan_load_to_lds(logical, access.operands.at(0)?, memory),
            (_, Op::Allocate) if self.world.get::<Mapping>(logical).is_some() => {
                self.plan_mapped_lds(logical, memory)
            }
            (_, Op::Allocate) => self.plan_lds(logical, memory),
            _ if self.world.get::<Mapping>(logical).is_some() => self.plan_mapped(logical, memory),
            _ => self.plan_global(logical, memory, None),
        }?;
        Ok(memory_op)
    }

    fn mma(&mut self, node: Entity, mma: Mma, slice: u32, operands: &[Entity]) -> Result<(), Diagnostic> {
        let (&[lhs, rhs, acc], scales) =
            operands.split_first_chunk().ok_or_else(|| self.bug("an mma without three operands"))?;
        // A product with scales takes a part of these: a byte of their registers.
        let (slice, byte) = if scales.is_empty() { (slice, 0) } else { (0, slice) };
        let mut factors = [Operand::LITERAL; 2];
        for (at, &factor) in [lhs, rhs].iter().enumerate() {
            let bytes = mma.held(at).dtype.bytes();
            let held = self.in_registers(factor, slice + mma.taken_elements(at), bytes)?;
            factors[at] = held.offset(slice * bytes / 4);
        }
        let [a, b] = factors;
        let width = mma.accumulator_registers();
        // The sum has registers of its own. Where nothing reads the accumulator afterwards, the allocator
        // makes them one. Zeros, with which most sums begin, need no registers at all (CDNA3 guide, 7.1: SrcC
        // is a register or an inline constant); gfx908 takes registers alone (LLVM,
        // `FeatureMFMAInlineLiteralBug`).
        let c = if let ValuePlace::Constant(bits) = *self.place(acc)?
            && self.target.agprs != AccumulationFile::Separate
            && let (constant, _) = Scalar::Const(i64::from(bits as u32)).source()
            && constant != Operand::LITERAL
            && (mma.accumulator().bits() == 32 || bits == 0)
        {
            constant
        } else {
            self.in_registers(acc, width, 4)?
        };
        let instruction = match scales {
            [] => self.target.matrix_instruction(mma),
            _ => self.target.scaled_matrix_instruction(mma),
        };
        let instruction = instruction.ok_or_else(|| lacks(self.target, mma).at(self.at(node)))?;
        if mma.input() == DType::Bf16 && mma.is_of_lanes() {
            let sum = self.multiply_bf16(a, b, c);
            self.set_place(node, ValuePlace::Registers(sum));
            return Ok(());
        }
        let sum = self.emitter.vgpr(width);
        let [of_a, of_b] = instruction.formats.map(u32::from);
        let mut sources: SmallVec<[Operand; 6]> = SmallVec::from_slice(&[sum, a, b, c]);
        for &scale in scales {
            sources.push(self.in_registers(scale, byte + 1, 1)?);
        }
        let inst = Inst::new(instruction.opcode, &sources);
        self.emitter
            .push(inst.modifiers(Modifiers::new().cbsz(of_a).blgp(of_b).scale_select(byte | byte << 2)));
        self.set_place(node, ValuePlace::Registers(sum));
        Ok(())
    }

    /// Writes a place into registers.
    pub(super) fn copy_into(
        &mut self,
        to: Operand,
        place: &ValuePlace,
        width: u32,
    ) -> Result<(), Diagnostic> {
        for at in 0..width {
            let source = match place {
                ValuePlace::Registers(from) => Scalar::Reg(from.offset(at)),
                ValuePlace::Scattered(first) => Scalar::Reg(self.scattered[(first + at) as usize]),
                ValuePlace::Constant(bits) => constant_register(*bits, at),
                ValuePlace::Uniform(register) => Scalar::Reg(register.offset(at)),
                ValuePlace::Comparison(_) | ValuePlace::Flags(_) => {
                    return Err(self.bug("a condition is carried as a value"));
                }
            };
            self.emitter.with(Opcode::VMovB32, to.offset(at), &[source]);
        }
        Ok(())
    }

    fn carried(&mut self, node: Entity, op: Op, operands: &[Entity]) -> Result<(), Diagnostic> {
        if let (Op::LoopResult(number), [owner]) = (op, operands) {
            // The loop noted the places of its results under its own init operands' positions.
            let place = self.results.get(*owner).and_then(|results| results.get(number as usize));
            let place = place.cloned().ok_or_else(|| self.bug("a loop result without loop"))?;
            self.set_place(node, place);
        }
        Ok(())
    }

    fn iterate(&mut self, node: Entity, axis: Dim, inits: &[Entity]) -> Result<(), Diagnostic> {
        let trip = *self.get::<Trip>(node)?;
        let logical = self.get::<Expansion>(node)?.logical;
        let remainder = self.world.get::<Remainder>(logical).is_some();
        let bad = |e| Diagnostic::new(Kind::Bug, format!("a trip count: {e}"));
        let count = self.arena.sub(trip.end, trip.start).map_err(bad)?;
        let known = self.arena.as_integer(count);
        let runs = self.arena.range(count);
        let scope = self.scope();
        let mut open = self.open_loop(axis, trip)?;
        let per_trip = Unrolled::of(self.world, node);
        let once = known == Some(i64::from(per_trip));
        // The copies that unrolling made need the offsets of their iterations, even if they run once.
        let single = (once && per_trip == 1) || remainder;
        // What runs exactly once carries nothing: its arguments are the initial values.
        let straight = once && runs.at_least(1);
        let carried = if straight { self.initial_places(inits)? } else { self.carried_registers(inits)? };
        if known == Some(0) {
            self.renew_contents(&carried);
            self.results.insert(node, carried);
            return Ok(());
        }
        open.single = single;
        open.per_trip = per_trip;
        if !single {
            self.open_offsets(node, &mut open)?;
            self.open_number(node, &mut open)?;
            self.open_copies(node, &mut open)?;
            self.open_numbers(node, &mut open)?;
        }
        self.loops.push(open);
        let symbols = self.name_iteration();
        self.plan_body(node)?;
        if !straight {
            self.renew_contents(&carried);
        }
        self.place_arguments(node, &carried)?;
        // Everything that the loop needs is ready before the guard, which opens the block that a loop goes
        // back to.
        if !straight {
            self.finish_all();
        }
        let counter = if once || single { None } else { Some(self.counter(count, per_trip)?) };
        let guard = if runs.at_least(1) { None } else { Some(self.guard(trip)?) };
        let results = if once {
            self.region(node)?;
            self.yielded(node)?
        } else {
            let block = match guard {
                // The guard has closed the block already.
                Some(_) => self.emitter.current_block(),
                None if single => self.emitter.current_block(),
                None => self.emitter.next_block(None),
            };
            if !single {
                self.out.loops.push(block..block.next());
            }
            self.region(node)?;
            self.carry(node, &carried)?;
            if let Some(counter) = counter {
                self.close_loop(counter, per_trip, block);
            }
            carried
        };
        if let Some(branch) = guard {
            let exit = match known {
                _ if !single => self.emitter.current_block(),
                _ => self.emitter.next_block(None),
            };
            self.emitter.patch(branch, exit);
        }
        self.symbols.truncate(symbols);
        self.loops.pop();
        self.leave(&scope);
        self.results.insert(node, results);
        Ok(())
    }

    /// Registers of the carried values, holding the initial ones. An initial value gives up its registers if
    /// this is the only use of their contents, and if they are written anew whenever the loop is entered.
    pub(super) fn carried_registers(
        &mut self,
        inits: &[Entity],
    ) -> Result<SmallVec<[ValuePlace; 4]>, Diagnostic> {
        let mut carried = SmallVec::with_capacity(inits.len());
        for &init in inits {
            self.settle(init)?;
            let place = *self.place(init)?;
            if let ValuePlace::Registers(registers) = place
                && self.emitter.file(registers) == RegisterFile::Vgpr
                && self.contents(registers).is_some_and(|c| c.uses == 1 && c.depth >= self.depth())
            {
                carried.push(place);
                continue;
            }
            let width = self.width(init)?;
            let registers = self.emitter.vgpr(width);
            self.copy_into(registers, &place, width)?;
            carried.push(ValuePlace::Registers(registers));
        }
        Ok(carried)
    }

    /// Where the initial values are.
    fn initial_places(&mut self, inits: &[Entity]) -> Result<SmallVec<[ValuePlace; 4]>, Diagnostic> {
        inits
            .iter()
            .map(|&init| {
                self.settle(init)?;
                self.place(init).copied()
            })
            .collect()
    }

    /// Registers of a value.
    pub(super) fn width(&self, node: Entity) -> Result<u32, Diagnostic> {
        let logical = Expansion::at(self.world, node).logical;
        let elements = self.world.get::<Placement>(logical).map_or(1, |p| p.0.extent(Source::Register));
        let bytes = self.element_bytes(logical)?;
        Ok((elements * bytes).div_ceil(4))
    }

    /// Gives the arguments of a loop's body the registers that carry them.
    pub(super) fn place_arguments(&mut self, node: Entity, carried: &[ValuePlace]) -> Result<(), Diagnostic> {
        for &argument in &self.get::<Body>(node)?.0 {
            // They come first.
            let Op::IterArg(number) = *self.expanded(argument)?.op else { break };
            if let Some(place) = carried.get(number as usize) {
                self.set_place(argument, *place);
            }
        }
        Ok(())
    }

    /// Writes a pipelined loop: once, or not at all when the loop is shorter than the pipeline.
    fn pipeline(&mut self, node: Entity, axis: Dim, inits: &[Entity]) -> Result<(), Diagnostic> {
        let trip = *self.get::<Trip>(node)?;
        let pipelined = *self.get::<Pipelined>(node)?;
        let per_trip = i64::from(Unrolled::of(self.world, node));
        let needed = i64::from(pipelined.needed()) * per_trip;
        let bad = |e| Diagnostic::new(Kind::Bug, format!("a trip count: {e}"));
        let count = self.arena.sub(trip.end, trip.start).map_err(bad)?;
        let trips = self.arena.int(i64::from(pipelined.ahead) * per_trip);
        let steady = match pipelined.drain {
            Drain::Epilogue => Trip { start: trip.start, end: self.arena.sub(trip.end, trips).map_err(bad)? },
            Drain::Loop => trip,
        };
        let scope = self.scope();
        let open = self.open_pipeline(axis, steady, pipelined.drain)?;
        let carried = self.carried_registers(inits)?;
        self.loops.push(open);
        self.plan_body(node)?;
        self.renew_contents(&carried);
        self.place_arguments(node, &carried)?;
        let results = if self.arena.range(count).at_least(needed) {
            self.region(node)?;
            self.yielded(node)?
        } else {
            self.finish_all();
            let count = self.scalar(count)?;
            let count = self.emitter.in_sgpr(count);
            let (least, literal) = Scalar::Const(needed).source();
            self.emitter.push(Inst::new(Opcode::SCmpLtI32, &[count, least]).imm(literal));
            let branch = self.emitter.branch_ahead(Opcode::SCbranchScc1);
            self.region(node)?;
            self.carry(node, &carried)?;
            let exit = self.emitter.next_block(None);
            self.emitter.patch(branch, exit);
            carried
        };
        self.loops.pop();
        self.leave(&scope);
        self.results.insert(node, results);
        Ok(())
    }

    /// Prepares the addresses of all accesses of the body in front of it.
    pub(super) fn plan_body(&mut self, node: Entity) -> Result<(), Diagnostic> {
        let mut last = None;
        let in_pipeline = self.loops.last().is_some_and(|open| open.pipeline);
        for &inner in &self.get::<Body>(node)?.0 {
            let expanded = self.expanded(inner)?;
            // Addresses that only the steady state of a pipeline, or a region under a condition, needs are
            // prepared in front of all of it.
            if (in_pipeline || matches!(expanded.op, Op::Conditional | Op::While)) && expanded.body.is_some()
            {
                self.plan_body(inner)?;
                continue;
            }
            if expanded.op.is_access() {
                let logical = expanded.expansion()?.logical;
                if last != Some(logical) {
                    self.plan(&expanded)?;
                    last = Some(logical);
                }
            }
        }
        Ok(())
    }

    /// Skips the loop when it does not run: a branch at the end of its block, to be patched with the exit.
    fn guard(&mut self, trip: Trip) -> Result<Branch, Diagnostic> {
        let (start, end) = (self.scalar(trip.start)?, self.scalar(trip.end)?);
        let (start, end) = (self.emitter.in_sgpr(start), self.emitter.in_sgpr(end));
        self.emitter.op(Opcode::SCmpGeI32, &[start, end]);
        Ok(self.emitter.branch_ahead(Opcode::SCbranchScc1))
    }

    /// Iterations still to come after the current trip.
    fn counter(&mut self, count: crate::ir::expr::Expr, per_trip: u32) -> Result<Operand, Diagnostic> {
        let count = self.scalar(count)?;
        let rest = self.emitter.sub(count, Scalar::Const(i64::from(per_trip)));
        let counter = self.emitter.sgpr(1);
        self.emitter.with(Opcode::SMovB32, counter, &[rest]);
        Ok(counter)
    }

    /// Advances everything that follows the iteration and goes back while iterations are left: subtracting
    /// from zero borrows, which sets SCC.
    fn close_loop(&mut self, counter: Operand, per_trip: u32, block: BlockId) {
        let mark = self.emitter.mark();
        self.wrap_copies();
        self.emitter.move_beside_products(mark.inst);
        self.advance();
        self.emitter.with(
            Opcode::SSubU32,
            counter,
            &[Scalar::Reg(counter), Scalar::Const(i64::from(per_trip))],
        );
        self.emitter.push(Inst::new(Opcode::SCbranchScc0, &[]).imm(block.as_u32()));
        self.emitter.next_block(Some(block));
    }

    /// Places of the values that the body yields, for a body that runs exactly once.
    fn yielded(&mut self, node: Entity) -> Result<SmallVec<[ValuePlace; 4]>, Diagnostic> {
        let world = self.world;
        let yields = world.get::<Yields>(node).map(|y| &y.0[..]).unwrap_or_default();
        yields
            .iter()
            .map(|&value| {
                self.settle(value)?;
                let place = *self.place(value)?;
                // The results of the loop have the same contents, and their uses count instead.
                if let ValuePlace::Registers(registers) = place
                    && let Some(contents) = self.contents_mut(registers)
                {
                    contents.uses = contents.uses.saturating_sub(1);
                }
                Ok(place)
            })
            .collect()
    }
}

/// True for products of matrices.
fn is_product(op: &Op) -> bool {
    op.row().class == OpClass::Contraction
}

/// The fault of a matrix instruction that a chip does not have.
fn lacks(target: Target, mma: Mma) -> Diagnostic {
    let with: Vec<&str> =
        Target::ALL.iter().filter(|t| t.matrix_instruction(mma).is_some()).map(|t| t.name).collect();
    let is_other =
        |other: &Mma| other.inputs() == mma.inputs() && target.matrix_instruction(*other).is_some();
    if let Some(other) = Mma::all().find(is_other) {
        let text =
            format!("{target} has no matrix instruction {mma}; it multiplies {} by others", mma.input());
        return Diagnostic::new(Kind::Unsupported, text).help(format!(
            "say the shape of the result alone (`mma 16x16`, `MatrixShape`), which here becomes {other} or another \
             one, or compile for {}",
            with.join(" or ")
        ));
    }
    let text = format!("{target} has no matrix instruction {mma}: it does not multiply {}", mma.input());
    let others = match with.as_slice() {
        [] => String::new(),
        with => format!("compile for {}, or ", with.join(" or ")),
    };
    Diagnostic::new(Kind::Unsupported, text).help(format!("{others}cast to a dtype that the chip multiplies"))
}
