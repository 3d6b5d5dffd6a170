//! The steps of a kernel for the given sizes: loops, pipelines and unrolled code, one iteration after the
//! other. All waves of all workgroups take the same steps.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::{Machine, bug};
use crate::ir::constraint::iteration_symbol;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;
use crate::ir::facts::{Base, Expansion, Iteration};
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::op::Runs;
use crate::ir::walk;

/// The most steps of a kernel.
const MAX_STEPS: usize = 1 << 22;

/// One step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TraceStep {
    /// A node, in the iterations of a frame.
    Node { node: Entity, frame: usize },
    /// Values that loops hand on, all at once: to, from.
    Carry(SmallVec<[(Entity, Entity); 4]>),
    /// Goes on at another step, unless the condition holds.
    Unless { condition: Entity, to: usize },
    /// Goes back to another step if the condition holds.
    Back { condition: Entity, to: usize },
}

/// The loops around a step, outermost first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct LoopFrame(SmallVec<[Around; 3]>);

/// A loop, or the region of a pipelined one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Around {
    dim: Dim,
    /// First iteration of the running trip; of a pipeline its first iteration.
    current: i64,
    /// The tile of iteration 0, and tiles from one iteration to the next.
    tiles: (i64, i64),
    /// For a pipeline: the first iteration that its steady state does not begin, and the end of those that
    /// exist if the steady state goes on to load beyond it.
    pipeline: Option<(i64, Option<i64>)>,
}

impl LoopFrame {
    /// The iteration of the loop over `dim` that an access belongs to; `None` outside of such a loop.
    pub(super) fn iteration(&self, dim: Dim, iteration: Iteration) -> Option<i64> {
        let at = self.0.iter().rposition(|around| around.dim == dim)?;
        let innermost = self.0.last().is_some_and(|around| around.dim == dim);
        let around = self.0[at];
        if !innermost {
            return Some(around.current);
        }
        let pipeline = self.0.iter().rev().find(|around| around.dim == dim && around.pipeline.is_some());
        let ahead = i64::from(iteration.ahead);
        Some(match (iteration.base, pipeline) {
            (Base::Written, _) => around.current,
            (Base::Trip, _) => around.current + ahead,
            (Base::Start, Some(pipeline)) => pipeline.current + ahead,
            (Base::End, Some(pipeline)) => pipeline.pipeline.map_or(0, |p| p.0) + ahead,
            (Base::Start | Base::End, None) => return None,
        })
    }

    /// The number of the tile that an iteration of the loop over `dim` takes; `None` outside of such a loop.
    fn tile(&self, dim: Dim, iteration: i64) -> Option<i64> {
        let (first, step) = self.0.iter().rev().find(|around| around.dim == dim)?.tiles;
        Some(first + step * iteration)
    }

    /// The number of the tile of the iteration that a node belongs to; `None` outside of such a loop.
    pub(super) fn tile_of(&self, dim: Dim, iteration: Iteration) -> Option<i64> {
        self.tile(dim, self.iteration(dim, iteration)?)
    }

    /// The tile that a global access takes: for an iteration that does not exist, that of the last one.
    pub(super) fn existing_tile(&self, dim: Dim, iteration: Iteration) -> Option<i64> {
        let number = self.iteration(dim, iteration)?;
        let last = self.0.iter().rev().find_map(|around| around.pipeline.filter(|_| around.dim == dim)?.1);
        self.tile(dim, last.map_or(number, |end| number.min(end - 1)))
    }

    /// The innermost loop's dimension.
    pub(super) fn innermost(&self) -> Option<Dim> {
        self.0.last().map(|around| around.dim)
    }
}

impl Machine<'_> {
    /// All steps of the kernel.
    pub(super) fn trace(&mut self) -> Result<Vec<TraceStep>, Diagnostic> {
        let mut steps = Vec::new();
        self.frames.clear();
        self.running.clear();
        (self.set.reached, self.set.unknown) = (0, None);
        self.region(self.root, &LoopFrame::default(), &mut steps)?;
        Ok(steps)
    }

    fn region(
        &mut self,
        region: Entity,
        frame: &LoopFrame,
        steps: &mut Vec<TraceStep>,
    ) -> Result<(), Diagnostic> {
        let number = self.frames.len();
        self.frames.push(frame.clone());
        let symbols = self.running.len();
        for node in walk::body(self.world, region) {
            if self.set.unknown.is_some() {
                break;
            }
            match *self.get::<Op>(node)? {
                op if let Some(runs) = op.runs() => match runs {
                    Runs::ForTiles(dim) => self.iterate(node, dim, frame, steps)?,
                    Runs::ForStages(dim) => self.pipeline(node, dim, frame, steps)?,
                    Runs::UnderConditions { .. } => self.under_condition(node, op, frame, steps)?,
                },
                // A loop carries values to these.
                Op::IterArg(_) => {}
                Op::LoopResult(result) => {
                    let of = self
                        .get::<Operands>(node)?
                        .0
                        .first()
                        .copied()
                        .ok_or_else(|| bug("a result without its loop"))?;
                    let from = self.arguments(of).get(result as usize).copied();
                    let from = from.ok_or_else(|| bug("a result that its loop does not carry"))?;
                    steps.push(TraceStep::Carry(SmallVec::from_slice(&[(node, from)])));
                }
                Op::SetSymbol(symbol) => self.set_symbol(node, symbol)?,
                _ => steps.push(TraceStep::Node { node, frame: number }),
            }
            if steps.len() > MAX_STEPS {
                let text = format!("the kernel takes more than {MAX_STEPS} steps");
                return Err(Diagnostic::new(Kind::Limit, text).help("use smaller sizes"));
            }
        }
        self.running.truncate(symbols);
        Ok(())
    }

    /// Gives a symbol its value, or ends the list of steps if that is not known yet.
    fn set_symbol(&mut self, node: Entity, symbol: Symbol) -> Result<(), Diagnostic> {
        if self.whiles > 0 {
            let text = format!("{symbol} is set inside of a `while`, for iterations of a loop");
            return Err(Diagnostic::new(Kind::Limit, text).help("the steps of such kernels are not listed"));
        }
        match self.set.values.get(self.set.reached) {
            Some(&value) => self.running.push((symbol, value)),
            None => self.set.unknown = Some(self.get::<Operands>(node)?.at(0)?),
        }
        self.set.reached += 1;
        Ok(())
    }

    fn arguments(&self, node: Entity) -> SmallVec<[Entity; 4]> {
        let is_argument = |node: &Entity| matches!(self.world.get::<Op>(*node), Some(Op::IterArg(_)));
        walk::body(self.world, node).into_iter().take_while(is_argument).collect()
    }

    /// What a loop hands on: its initial values, or what its body yields.
    fn carry(&self, node: Entity, values: &[Entity], steps: &mut Vec<TraceStep>) {
        let moves: SmallVec<[_; 4]> = self.arguments(node).into_iter().zip(values.iter().copied()).collect();
        if !moves.is_empty() {
            steps.push(TraceStep::Carry(moves));
        }
    }

    /// The iterations of a loop, by its trip count or, as long as it has none, by its tile.
    fn trip(&self, node: Entity, dim: Dim) -> Result<(i64, i64), Diagnostic> {
        if let Some(&Trip { start, end }) = self.world.get::<Trip>(node) {
            return Ok((self.evaluate(start)?, self.evaluate(end)?));
        }
        let entry = self.geometry.dims.get(dim).ok_or_else(|| bug("a loop over an unknown dimension"))?;
        let tile = entry.tiling.ok_or_else(|| bug("a loop without tile"))? as usize;
        if let Some((first, end)) = entry.iterations {
            return Ok((self.evaluate(first)?, self.evaluate(end)?));
        }
        Ok((0, self.size(dim)?.div_ceil(tile) as i64))
    }

    /// The tile of iteration 0 of loops over a dimension, and tiles from one iteration to the next.
    fn tiles(&self, dim: Dim) -> Result<(i64, i64), Diagnostic> {
        match self.geometry.dims.get(dim).and_then(|entry| entry.step) {
            Some((first, step)) => Ok((self.evaluate(first)?, i64::from(step))),
            None => Ok((0, 1)),
        }
    }

    fn iterate(
        &mut self,
        node: Entity,
        dim: Dim,
        frame: &LoopFrame,
        steps: &mut Vec<TraceStep>,
    ) -> Result<(), Diagnostic> {
        let ((start, end), tiles) = (self.trip(node, dim)?, self.tiles(dim)?);
        let per_trip = i64::from(Unrolled::of(self.world, node).max(1));
        let yields = self.get::<Yields>(node)?.0.clone();
        self.carry(node, &self.get::<Operands>(node)?.0.clone(), steps);
        let mut current = start;
        while current < end && self.set.unknown.is_none() {
            let mut inner = frame.clone();
            inner.0.push(Around { dim, current, tiles, pipeline: None });
            let symbol = self.geometry.dims.get(dim).map(|entry| iteration_symbol(entry.symbol));
            self.running.extend(symbol.map(|symbol| (symbol, tiles.0 + tiles.1 * current)));
            self.region(node, &inner, steps)?;
            self.running.pop();
            if self.set.unknown.is_some() {
                return Ok(());
            }
            self.carry(node, &yields, steps);
            current += per_trip;
        }
        Ok(())
    }

    fn pipeline(
        &mut self,
        node: Entity,
        dim: Dim,
        frame: &LoopFrame,
        steps: &mut Vec<TraceStep>,
    ) -> Result<(), Diagnostic> {
        let ((start, end), tiles) = (self.trip(node, dim)?, self.tiles(dim)?);
        let per_trip = i64::from(Unrolled::of(self.world, node).max(1));
        let &pipelined = self.get::<Pipelined>(node)?;
        let yields = self.get::<Yields>(node)?.0.clone();
        self.carry(node, &self.get::<Operands>(node)?.0.clone(), steps);
        if end - start < i64::from(pipelined.needed()) * per_trip {
            return Ok(());
        }
        let beyond = match pipelined.drain {
            Drain::Epilogue => (end - i64::from(pipelined.ahead) * per_trip, None),
            Drain::Loop => (end, Some(end)),
        };
        let mut inner = frame.clone();
        inner.0.push(Around { dim, current: start, tiles, pipeline: Some(beyond) });
        self.region(node, &inner, steps)?;
        self.carry(node, &yields, steps);
        Ok(())
    }

    /// A region that runs under a condition, and a step that goes around it.
    fn under_condition(
        &mut self,
        node: Entity,
        op: Op,
        frame: &LoopFrame,
        steps: &mut Vec<TraceStep>,
    ) -> Result<(), Diagnostic> {
        let operands = self.get::<Operands>(node)?.0.clone();
        let yields = self.get::<Yields>(node)?.0.clone();
        let condition = op.condition(&operands);
        self.carry(node, op.initial(&operands), steps);
        let guard = steps.len();
        steps.extend(condition.map(|condition| TraceStep::Unless { condition, to: guard }));
        let first = steps.len();
        self.whiles += u32::from(op.repeats());
        self.region(node, frame, steps)?;
        self.whiles -= u32::from(op.repeats());
        if self.set.unknown.is_none() {
            let next = op.handed_on(&yields);
            self.carry(node, next, steps);
            let again = yields.get(next.len());
            steps.extend(again.map(|&condition| TraceStep::Back { condition, to: first }));
        }
        if let Some(condition) = condition {
            steps[guard] = TraceStep::Unless { condition, to: steps.len() };
        }
        Ok(())
    }

    /// Which iteration a node belongs to.
    pub(super) fn iteration_of(&self, node: Entity) -> Iteration {
        self.world.get::<Expansion>(node).map(|expansion| expansion.iteration).unwrap_or_default()
    }
}
