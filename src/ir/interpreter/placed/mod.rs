//! What a kernel means once its values have places: workgroup by workgroup, wave by wave, lane by lane, from
//! the layouts, bounds, LDS buffers, trip counts and iterations that passes have found. It shares nothing
//! with lowering but the algebra of layouts.
//!
//! - `fragment`: what a wave holds of a value; an element may be undefined
//! - `trace`: loops and pipelines as a straight list of steps, for the sizes at hand; conditions go around
//!   parts of it
//! - `address`: which element of a memory, and which byte of LDS, a place is
//! - `lds`: the memory of a workgroup, and who touched it since the last barrier
//! - `held`: what a wave holds of a node, and how others see it
//! - `operate`: what one node does in one wave
//! - `product`: products of whole tiles, and single matrix instructions
//! - `rearrange`: elements that change places within a wave
//! - `reduce`: reductions, which may look at all waves
//!
//! As long as no pass has placed barriers, the waves of a workgroup go in step, node by node. From then on
//! each wave runs up to its next barrier before the next wave runs at all, and two waves that touch one byte
//! of LDS between the same two barriers, one of them writing, are a fault. Waves may write the same value,
//! and those that wrote it may read it. What a read brings from outside of a tensor, where no mask makes it
//! zero, is undefined, and so is LDS that has not been written; storing such an element is a fault.
//!
//! Every operation is complete before the next: loads that go straight into LDS are there at once, and a
//! barrier without a fence is one with it. Operations under way are left to the machine's verifier and to
//! check mode.

mod address;
mod fragment;
mod held;
mod lds;
mod mapped;
mod operate;
mod product;
mod rearrange;
mod reduce;
mod scan;
mod trace;
mod turned_units;

use std::collections::BTreeSet;
use std::rc::Rc;

use bevy_ecs::prelude::*;

use self::fragment::Fragment;
use self::lds::WorkgroupLds;
use self::trace::{LoopFrame, TraceStep};
use super::conditions::{MAX_TRIPS, endless};
use super::tensor::{self, Tensor};
use crate::ir::constraint::{GridSymbol, MAX_AXES, SCALARS_OF_ITERATIONS};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::expr::{Expr, Symbol};
use crate::ir::facts::{Expressions, Geometry, Synchronised};
use crate::ir::kernel::{Constraints, DimTable, Locations};
use crate::ir::layout::{Dim, LANES};
use crate::ir::node::{Name, *};
use crate::ir::node_map::{NodeMap, Side};
use crate::ir::types::DType;
use crate::ir::walk;

/// The most operations, of one lane each, that are executed.
const MAX_WORK: u64 = 1 << 26;

/// The contents of a memory while workgroups run; a scalar is one without dimensions.
#[derive(Clone)]
struct MemoryContents {
    dims: Dims,
    shape: Vec<usize>,
    dtype: DType,
    bits: Vec<u64>,
}

/// A kernel that is being executed.
struct Machine<'a> {
    world: &'a World,
    root: Entity,
    geometry: &'a Geometry,
    sizes: &'a dyn Fn(Symbol) -> Option<i64>,
    memories: Vec<MemoryContents>,
    /// Position in `memories`, by node.
    by_node: NodeMap<usize>,
    frames: Vec<LoopFrame>,
    /// The running iterations of the loops that are being unfolded, by their symbols.
    running: Vec<(Symbol, i64)>,
    /// The numbers that the hardware gives the workgroup that runs.
    numbers: [u32; 3],
    set: SetValues,
    /// `while` loops around the step that is listed.
    whiles: u32,
}

/// What a workgroup has set symbols of iterations to.
#[derive(Default)]
struct SetValues {
    /// One after the other, as far as they are known.
    values: Vec<i64>,
    /// How many of them the list of steps has come to.
    reached: usize,
    /// The value that a symbol is set to which is not known yet: the list of steps ends there.
    unknown: Option<Entity>,
}

/// One wave of a workgroup.
struct PlacedWave {
    number: u32,
    /// The values that nodes have so far.
    values: Side<Option<Rc<Fragment>>>,
    /// The next step.
    at: usize,
    /// How often it has gone back.
    trips: u32,
}

/// The workgroup that runs.
struct RunningGroup {
    /// Its place along each axis of the grid.
    id: [u32; MAX_AXES],
    lds: WorkgroupLds,
}

/// Executes the kernel `root` of `world`, whose values have places. `sizes` binds its dynamic symbols;
/// `inputs` are the contents of its memories in the order of its arguments, and the result their contents
/// afterwards.
///
/// # Errors
/// What the kernel must not do, and what is too large to be executed.
pub(super) fn run(
    world: &World,
    root: Entity,
    sizes: &dyn Fn(Symbol) -> Option<i64>,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, Diagnostic> {
    let geometry = world.get::<Geometry>(root).ok_or_else(|| bug("a kernel without geometry"))?;
    let mut machine = Machine {
        world,
        root,
        geometry,
        sizes,
        memories: Vec::new(),
        by_node: NodeMap::default(),
        frames: Vec::new(),
        running: Vec::new(),
        numbers: [0; 3],
        set: SetValues::default(),
        whiles: 0,
    };
    machine.bind(inputs)?;
    let mut steps = machine.trace()?;
    let constraints = world.get::<Constraints>(root).map(|c| &c.0[..]).unwrap_or_default();
    let differs = geometry.divides_loops()
        || constraints.iter().any(|(constraint, _)| constraint.workgroup_axes() != 0);
    let sets =
        walk::nodes(world, root).iter().any(|&node| matches!(world.get::<Op>(node), Some(Op::SetSymbol(_))));
    let mut grid = [1u32; MAX_AXES];
    for (count, &expr) in grid.iter_mut().zip(&geometry.grid) {
        *count = u32::try_from(machine.evaluate(expr)?).map_err(|_| bug("a grid that is no size"))?;
    }
    let waves = geometry.wave_count();
    let groups = grid.iter().map(|&count| u64::from(count)).product::<u64>();
    let work = groups.saturating_mul(u64::from(waves * LANES)).saturating_mul(steps.len() as u64);
    if work > MAX_WORK {
        let text = format!("{work} operations of lanes are too many to execute one by one");
        return Err(Diagnostic::new(Kind::Limit, text).help("use smaller sizes"));
    }
    let mut taken = BTreeSet::new();
    for z in 0..grid[2..].iter().product() {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                let id = machine.place([x, y, z])?;
                if !taken.insert(id) || id.iter().zip(&grid).any(|(id, count)| id >= count) {
                    let text = format!("workgroup {:?} is at {id:?} of {grid:?}, which is taken", [x, y, z]);
                    return Err(Diagnostic::new(Kind::Bug, text));
                }
                machine.numbers = [x, y, z];
                if differs || sets {
                    steps = machine.steps_of(id)?;
                }
                machine.workgroup(id, &steps)?;
            }
        }
    }
    let after = machine.memories.into_iter();
    after.map(|memory| Tensor::new(&memory.shape, tensor::data_of(memory.dtype, &memory.bits))).collect()
}

fn bug(text: &str) -> Diagnostic {
    Diagnostic::new(Kind::Bug, text)
}

impl<'a> Machine<'a> {
    /// Gives the memories their contents.
    fn bind(&mut self, inputs: &[Tensor]) -> Result<(), Diagnostic> {
        let is_argument = |node: &Entity| self.world.get::<Op>(*node).is_some_and(|op| op.is_argument());
        let nodes: Vec<Entity> = walk::body(self.world, self.root).into_iter().filter(is_argument).collect();
        if nodes.len() != inputs.len() {
            let text = format!("the kernel has {} arguments, and {} are given", nodes.len(), inputs.len());
            return Err(Diagnostic::invalid(text));
        }
        for (node, input) in nodes.into_iter().zip(inputs) {
            let ty = self.get::<ValueType>(node)?;
            let shape = ty.dims.iter().map(|&dim| self.size(dim)).collect::<Result<Vec<_>, _>>()?;
            tensor::count(&shape)?;
            if input.shape() != shape || ty.dtype != Some(input.dtype()) {
                let name = self.world.get::<Name>(node).map_or("?", |name| &name.0);
                let text = format!("`{name}` is {shape:?}, but its tensor is {:?}", input.shape());
                return Err(Diagnostic::invalid(text));
            }
            self.by_node.insert(node, self.memories.len());
            self.memories.push(MemoryContents {
                dims: ty.dims.clone(),
                shape,
                dtype: input.dtype(),
                bits: tensor::bits_of(input.data()),
            });
        }
        Ok(())
    }

    /// The place in the grid of the workgroup to which the hardware gives `numbers`.
    fn place(&self, numbers: [u32; 3]) -> Result<[u32; MAX_AXES], Diagnostic> {
        let [x, y, z] = numbers;
        let mut id = [x, y, z, 0, 0];
        let expressions = self.get::<Expressions>(self.root)?;
        for (slot, &place) in id.iter_mut().zip(&self.geometry.places) {
            let value = |symbol| match GridSymbol::of(symbol) {
                Some(GridSymbol::Workgroup(axis)) => numbers.get(axis as usize).map(|&n| i64::from(n)),
                Some(GridSymbol::Size(_)) | None => (self.sizes)(symbol),
            };
            let place = expressions.0.evaluate(place, &value).ok().and_then(|at| u32::try_from(at).ok());
            *slot = place.ok_or_else(|| bug("a workgroup without place"))?;
        }
        Ok(id)
    }

    /// The steps of a workgroup. As long as a loop depends on a value that is not known, the steps up to
    /// there are taken for that value alone.
    fn steps_of(&mut self, id: [u32; MAX_AXES]) -> Result<Vec<TraceStep>, Diagnostic> {
        self.set.values.clear();
        loop {
            let steps = self.trace()?;
            let Some(value) = self.set.unknown else { return Ok(steps) };
            let before = self.memories.clone();
            let waves = self.workgroup(id, &steps)?;
            self.memories = before;
            // Under a condition that does not hold there is none, and no loop that depends on it.
            let value = waves.first().and_then(|wave| wave.values[value].as_ref()?.bits.first().copied());
            let (least, most) = SCALARS_OF_ITERATIONS.into_inner();
            self.set.values.push(i64::from(value.unwrap_or(0) as u32 as i32).clamp(least, most));
        }
    }

    fn workgroup(&mut self, id: [u32; MAX_AXES], steps: &[TraceStep]) -> Result<Vec<PlacedWave>, Diagnostic> {
        let nodes = walk::nodes(self.world, self.root);
        let wave = |number| PlacedWave { number, values: Side::of(&nodes, None), at: 0, trips: 0 };
        let mut waves: Vec<PlacedWave> = (0..self.geometry.wave_count()).map(wave).collect();
        let mut group = RunningGroup { id, lds: WorkgroupLds::new(self)? };
        if self.world.get::<Synchronised>(self.root).is_none() {
            while let Some(step) = waves.first().and_then(|wave| steps.get(wave.at)) {
                waves.iter_mut().for_each(|wave| wave.at += 1);
                if self.is_shared(step, &mut waves, &group)? {
                    continue;
                }
                for wave in &mut waves {
                    self.step(step, wave, &mut group)?;
                }
                if waves.iter().any(|wave| wave.at != waves[0].at) {
                    return Err(Diagnostic::invalid("waves of a workgroup do not agree on a condition")
                        .help("a condition must not depend on what one wave reads and another one writes"));
                }
            }
            return Ok(waves);
        }
        loop {
            for wave in &mut waves {
                while let Some(step) = steps.get(wave.at) {
                    wave.at += 1;
                    if self.is_barrier(step, wave.number) {
                        break;
                    }
                    self.step(step, wave, &mut group)?;
                }
            }
            group.lds.barrier();
            let over = waves.iter().filter(|wave| wave.at >= steps.len() && !self.waits(steps, wave)).count();
            if over == waves.len() {
                return Ok(waves);
            }
            if over > 0 {
                return Err(Diagnostic::invalid("some waves wait at a barrier, and others are at their end")
                    .help("every wave has to meet as many barriers"));
            }
        }
    }

    /// Takes a step in which waves look at each other's values: a reduction or a scan along what they share.
    /// False for other steps.
    fn is_shared(
        &self,
        step: &TraceStep,
        waves: &mut [PlacedWave],
        group: &RunningGroup,
    ) -> Result<bool, Diagnostic> {
        let &TraceStep::Node { node, frame } = step else { return Ok(false) };
        let all: Vec<&PlacedWave> = waves.iter().collect();
        let results: Result<Vec<_>, _> = match self.world.get::<Op>(node) {
            Some(&Op::Reduce(reduction)) => all
                .iter()
                .map(|wave| self.reduce(node, reduction, wave.number, &all, (frame, group)))
                .collect(),
            Some(&Op::Scan(scan)) => {
                all.iter().map(|wave| self.scan(node, scan, wave.number, &all)).collect()
            }
            _ => return Ok(false),
        };
        let results = results.map_err(|fault| self.anchored(node, fault))?;
        for (wave, result) in waves.iter_mut().zip(results) {
            wave.values[node] = Some(Rc::new(result));
        }
        Ok(true)
    }

    /// True if the last step of a wave was a barrier.
    fn waits(&self, steps: &[TraceStep], wave: &PlacedWave) -> bool {
        wave.at
            .checked_sub(1)
            .and_then(|last| steps.get(last))
            .is_some_and(|step| wave.at < steps.len() && self.is_barrier(step, wave.number))
    }

    fn is_barrier(&self, step: &TraceStep, wave: u32) -> bool {
        let TraceStep::Node { node, .. } = step else { return false };
        match self.world.get::<Op>(*node) {
            Some(Op::Barrier | Op::Control(Control::WorkgroupBarrier)) => true,
            Some(Op::Control(Control::ConditionalBarrier(condition))) => {
                condition.holds(wave, self.geometry.wave_count())
            }
            _ => false,
        }
    }

    fn step(
        &mut self,
        step: &TraceStep,
        wave: &mut PlacedWave,
        group: &mut RunningGroup,
    ) -> Result<(), Diagnostic> {
        match step {
            TraceStep::Node { node, frame } => {
                self.node(*node, *frame, wave, group).map_err(|fault| self.anchored(*node, fault))
            }
            TraceStep::Carry(moves) => {
                let values: Vec<_> = moves.iter().map(|(_, from)| wave.values[*from].clone()).collect();
                for ((to, from), value) in moves.iter().zip(values) {
                    let value = value.ok_or_else(|| bug("a loop carries a value that does not exist"));
                    wave.values[*to] = Some(value.map_err(|fault| self.anchored(*from, fault))?);
                }
                Ok(())
            }
            TraceStep::Unless { condition, to } => {
                if !self.holds(*condition, wave)? {
                    wave.at = *to;
                }
                Ok(())
            }
            TraceStep::Back { condition, to } => {
                if self.holds(*condition, wave)? {
                    wave.at = *to;
                    wave.trips += 1;
                    if wave.trips == MAX_TRIPS {
                        return Err(self.anchored(*condition, endless()));
                    }
                }
                Ok(())
            }
        }
    }

    /// Whether a condition, on which all lanes agree, holds in a wave.
    fn holds(&self, condition: Entity, wave: &PlacedWave) -> Result<bool, Diagnostic> {
        let value = wave.values[condition].as_ref().ok_or_else(|| bug("a condition that has no value"))?;
        if value.defined.contains(&false) {
            return Err(self.anchored(condition, Diagnostic::invalid("an undefined condition decides")));
        }
        let holds = value.bits.first().is_some_and(|&bit| bit != 0);
        if value.bits.iter().any(|&bit| (bit != 0) != holds) {
            return Err(self.anchored(condition, bug("lanes do not agree on a condition")));
        }
        Ok(holds)
    }

    fn anchored(&self, node: Entity, fault: Diagnostic) -> Diagnostic {
        if fault.location.is_some() { fault } else { fault.at(self.location(node)) }
    }

    fn location(&self, node: Entity) -> Option<Location> {
        self.world.get::<Locations>(self.root)?.get(self.world.get::<Origin>(node)?.0)
    }

    fn get<C: Component>(&self, node: Entity) -> Result<&'a C, Diagnostic> {
        let missing = || bug(&format!("a node has no {}", std::any::type_name::<C>()));
        self.world.get::<C>(node).ok_or_else(missing)
    }

    /// Elements of a dimension.
    fn size(&self, dim: Dim) -> Result<usize, Diagnostic> {
        let entry = self.geometry.dims.get(dim).ok_or_else(|| bug("a dimension without size"))?;
        let size = self.evaluate(entry.size)?;
        usize::try_from(size).map_err(|_| Diagnostic::invalid(format!("{} is {size}", entry.symbol)))
    }

    /// What a symbol stands for that is the name of a scalar, or the running iteration of a loop around.
    fn counted(&self, symbol: Symbol) -> Option<i64> {
        if let Some(&(_, number)) = self.running.iter().rev().find(|(of, _)| *of == symbol) {
            return Some(number);
        }
        if self.get::<DimTable>(self.root).ok()?.find(symbol).is_some() {
            return None;
        }
        let scalar = walk::body(self.world, self.root).into_iter().find(|&node| {
            self.world.get::<Op>(node) == Some(&Op::Scalar)
                && self.world.get::<Name>(node).is_some_and(|name| &*name.0 == symbol.name())
        })?;
        let contents = self.memories.get(*self.by_node.get(scalar)?)?;
        (contents.dtype == DType::I32).then_some(())?;
        contents.bits.first().map(|&bits| i64::from(bits as u32 as i32))
    }

    fn evaluate(&self, expr: Expr) -> Result<i64, Diagnostic> {
        let expressions = self.get::<Expressions>(self.root)?;
        let value = expressions.0.evaluate(expr, &|symbol| match GridSymbol::of(symbol) {
            Some(GridSymbol::Workgroup(axis)) => self.numbers.get(axis as usize).map(|&n| i64::from(n)),
            Some(GridSymbol::Size(_)) | None => self.counted(symbol).or_else(|| (self.sizes)(symbol)),
        });
        value.map_err(|error| Diagnostic::invalid(format!("a size has no value: {error}")))
    }
}
