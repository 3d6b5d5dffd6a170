//! Loops and pipelines: what comes in front of their bodies, and what after them.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::ControlLayer;
use crate::codegen::isa::{Inst, Opcode, Operand};
use crate::codegen::lower::addresses::AddressScope;
use crate::codegen::lower::emit::emitter::{Branch, Scalar};
use crate::codegen::lower::values::places::ValuePlace;
use crate::codegen::machine::BlockId;
use crate::index::Neighbours;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::{Expr, ExprError};
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::passes::facts::{MaskedPart, Remainder};
use crate::passes::loops::expand::Expansion;

/// A loop or pipeline whose body comes next.
pub(super) struct EnteredLoop {
    /// Prepared values that were valid in front of it.
    scope: AddressScope,
    /// Symbols that had names in front of it.
    symbols: usize,
    /// Places in which the body finds the carried values.
    carried: SmallVec<[ValuePlace; 4]>,
    /// The body runs exactly once: what it yields are the results.
    once: bool,
    /// The branch around it, if it may run not at all.
    guard: Option<Branch>,
    back: Option<BackEdge>,
}

/// How a loop gets back to its beginning.
#[derive(Copy, Clone)]
struct BackEdge {
    /// Iterations still to come after the current trip.
    counter: Operand,
    /// Iterations of one trip.
    per_trip: u32,
    /// The first block of the body.
    block: BlockId,
}

fn bad(error: ExprError) -> Diagnostic {
    Diagnostic::new(Kind::Bug, format!("a trip count: {error}"))
}

impl ControlLayer<'_> {
    /// Writes what comes in front of the body of a loop; `None` if the body never runs.
    pub(super) fn enter_loop(
        &mut self,
        node: Entity,
        axis: Dim,
        inits: &[Entity],
    ) -> Result<Option<EnteredLoop>, Diagnostic> {
        let trip = *self.get::<Trip>(node)?;
        let logical = self.get::<Expansion>(node)?.logical;
        let remainder = self.kernel.world.get::<Remainder>(logical).is_some();
        let count = self.arena.sub(trip.end, trip.start).map_err(bad)?;
        let known = self.arena.as_integer(count);
        let runs = self.arena.range(count).at_least(1);
        let scope = self.scope();
        let mut open = self.open_loop(axis, trip)?;
        let per_trip = Unrolled::of(self.kernel.world, node);
        let once = known == Some(i64::from(per_trip));
        // The copies that unrolling made need the offsets of their iterations, even if they run once.
        let single = (once && per_trip == 1) || remainder;
        // What runs exactly once carries nothing: its arguments are the initial values.
        let straight = once && runs;
        let carried = if straight { self.initial_places(inits)? } else { self.carried_registers(inits)? };
        if known == Some(0) {
            self.renew_contents(&carried);
            self.results.insert(node, carried);
            return Ok(None);
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
        self.prepare_body(node, axis)?;
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
        let guard = if runs { None } else { Some(self.guard(trip)?) };
        let mut back = None;
        if let Some(counter) = counter {
            let block = match guard {
                // The guard has closed the block already.
                Some(_) => self.emitter.current_block(),
                None => self.emitter.next_block(None),
            };
            self.note_body(logical, block);
            back = Some(BackEdge { counter, per_trip, block });
        }
        Ok(Some(EnteredLoop { scope, symbols, carried, once, guard, back }))
    }

    /// Notes the first block of a loop's body.
    fn note_body(&mut self, logical: Entity, block: BlockId) {
        let is_masked = self.kernel.world.get::<MaskedPart>(logical).is_some();
        let loops = &mut self.emitter.out.loops;
        if is_masked {
            loops.masked.push(loops.bodies.len());
        }
        loops.bodies.push(block..block.next());
    }

    /// Writes what comes in front of a pipelined loop, which runs once, or not at all when the loop is
    /// shorter than the pipeline.
    pub(super) fn enter_pipeline(
        &mut self,
        node: Entity,
        axis: Dim,
        inits: &[Entity],
    ) -> Result<EnteredLoop, Diagnostic> {
        let trip = *self.get::<Trip>(node)?;
        let pipelined = *self.get::<Pipelined>(node)?;
        let per_trip = i64::from(Unrolled::of(self.kernel.world, node));
        let needed = i64::from(pipelined.needed()) * per_trip;
        let count = self.arena.sub(trip.end, trip.start).map_err(bad)?;
        let trips = self.arena.int(i64::from(pipelined.ahead) * per_trip);
        let steady = match pipelined.drain {
            Drain::Epilogue => Trip { start: trip.start, end: self.arena.sub(trip.end, trips).map_err(bad)? },
            Drain::Loop => trip,
        };
        let once = self.arena.range(count).at_least(needed);
        let (scope, symbols) = (self.scope(), self.symbols.len());
        let open = self.open_pipeline(axis, steady, pipelined.drain)?;
        let mark = self.emitter.mark();
        let carried = self.carried_registers(inits)?;
        if once {
            self.emitter.put_off_constants(mark.inst);
        }
        self.loops.push(open);
        let planned = self.emitter.mark();
        self.prepare_body(node, axis)?;
        self.emitter.put_uses_of_arguments_last(planned);
        self.renew_contents(&carried);
        self.place_arguments(node, &carried)?;
        let mut guard = None;
        if !once {
            self.finish_all();
            let count = self.scalar(count)?;
            let count = self.emitter.in_sgpr(count);
            let (least, literal) = Scalar::Const(needed).source();
            self.emitter.push(Inst::new(Opcode::SCmpLtI32, &[count, least]).imm(literal));
            guard = Some(self.emitter.branch_ahead(Opcode::SCbranchScc1));
        }
        Ok(EnteredLoop { scope, symbols, carried, once, guard, back: None })
    }

    /// Writes what comes after the body of a loop or pipeline.
    pub(super) fn leave_loop(&mut self, node: Entity, entered: EnteredLoop) -> Result<(), Diagnostic> {
        let EnteredLoop { scope, symbols, carried, once, guard, back } = entered;
        let results = if once {
            self.yielded(node)?
        } else {
            self.carry(node, &carried)?;
            carried
        };
        if let Some(back) = back {
            self.go_back(back);
        }
        if let Some(branch) = guard {
            let exit = match back {
                Some(_) => self.emitter.current_block(),
                None => self.emitter.next_block(None),
            };
            self.emitter.patch(branch, exit);
        }
        self.symbols.truncate(symbols);
        self.loops.pop();
        self.leave(&scope);
        self.results.insert(node, results);
        Ok(())
    }

    /// Computes, in front of a loop, addresses and the limits of the tiles in which masks of it hide nothing.
    fn prepare_body(&mut self, node: Entity, axis: Dim) -> Result<(), Diagnostic> {
        self.plan_body(node)?;
        for &(first, end) in &self.kernel.geometry.dim(axis).masks.unmasked {
            self.scalar(first)?;
            self.scalar(end)?;
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
    fn counter(&mut self, count: Expr, per_trip: u32) -> Result<Operand, Diagnostic> {
        let count = self.scalar(count)?;
        let rest = self.emitter.sub(count, Scalar::Const(i64::from(per_trip)));
        let counter = self.emitter.sgpr(1);
        self.emitter.with(Opcode::SMovB32, counter, &[rest]);
        Ok(counter)
    }

    /// Advances everything that follows the iteration and goes back while iterations are left: subtracting
    /// from zero borrows, which sets SCC.
    fn go_back(&mut self, BackEdge { counter, per_trip, block }: BackEdge) {
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
        let after = self.emitter.next_block(Some(block));
        // One with loops in it counts up to the first of them.
        if let Some(own) = self.emitter.out.loops.bodies.last_mut().filter(|own| own.start == block) {
            own.end = after;
        }
    }
}
