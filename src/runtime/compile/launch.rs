//! The data for launching an executable: its parameters, and expressions of their sizes.

use std::sync::Arc;

use bevy_ecs::prelude::*;

use super::Compilation;
use crate::codegen::lower::ArgumentSlot;
use crate::codegen::object::{Access, KernelInfo};
use crate::ir::constraint::{Constraint, GridSymbol};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, ExprArena, Symbol};
use crate::ir::kernel::Constraints;
use crate::ir::layout::Dim;
use crate::ir::memory_layout::{DebugLog, Strides};
use crate::ir::node::{Name, Origin, ValueType};
use crate::passes::analysis::loop_iterations;
use crate::passes::facts::{BoundsChecks, Expressions, Geometry, InPlace, PackedElements};
use crate::runtime::executable::{Assumption, BoundsCheck, LaunchExpressions, Parameter, Size};

/// A symbol and its bounds.
type BoundedSymbol = (Symbol, (i64, i64));

impl Compilation<'_> {
    /// What a launch has to give, in the order of the arguments; `info` is the code object's description of
    /// them.
    pub(super) fn parameters(&self, info: &KernelInfo) -> Result<Vec<Parameter>, Diagnostic> {
        let slots = self.lowered.arguments.iter().zip(info.arguments.iter());
        let parameters = slots.map(|(slot, argument)| match *slot {
            ArgumentSlot::Symbol { symbol, offset } => Ok(Parameter::Symbol { symbol, offset }),
            ArgumentSlot::Scalar { scalar, offset, .. } => {
                let ty = self.workspace.world.get::<ValueType>(scalar);
                let ty = ty.ok_or_else(|| Diagnostic::bug("a scalar without type"))?;
                let dtype = ty.dtype.ok_or_else(|| Diagnostic::bug("a scalar without dtype"))?;
                Ok(Parameter::Scalar { name: self.name_of(scalar), dtype, offset })
            }
            ArgumentSlot::Pointer { memory, offset } => {
                self.memory_parameter(memory, offset, argument.access)
            }
        });
        parameters.collect()
    }

    fn name_of(&self, argument: Entity) -> Arc<str> {
        self.workspace.world.get::<Name>(argument).map_or("".into(), |n| n.0.clone())
    }

    /// The tensor or log that a pointer is to.
    fn memory_parameter(
        &self,
        memory: Entity,
        offset: u32,
        access: Option<Access>,
    ) -> Result<Parameter, Diagnostic> {
        let world = &self.workspace.world;
        let geometry = self.fact::<Geometry>()?;
        let ty = world.get::<ValueType>(memory).ok_or_else(|| Diagnostic::bug("a memory without type"))?;
        // Two elements in a byte are two to who launches.
        let ty = world.get::<PackedElements>(memory).map_or(ty, |packed| &packed.0);
        let size = |&dim: &Dim| {
            let entry = geometry.dim(dim);
            entry.static_size.map_or(Size::Dynamic(entry.symbol), Size::Static)
        };
        if world.get::<DebugLog>(memory).is_some() {
            let origin = world.get::<Origin>(memory);
            let checks = world.get::<BoundsChecks>(memory).map_or(&[][..], |checks| &checks.0);
            let checks = checks.iter().map(|check| BoundsCheck {
                at: self.location(check.origin.0),
                memory: check.memory.clone(),
                dim: geometry.dim(check.dim).symbol.name(),
                size: size(&check.dim),
            });
            return Ok(Parameter::Log {
                name: self.name_of(memory),
                checks: checks.collect(),
                at: origin.and_then(|origin| self.location(origin.0)),
                dtype: ty.dtype.ok_or_else(|| Diagnostic::bug("a log without dtype"))?,
                shape: ty.dims.iter().map(size).collect(),
                offset,
            });
        }
        let strides = world.get::<Strides>(memory);
        Ok(Parameter::Buffer {
            name: self.name_of(memory),
            dtype: ty.dtype.ok_or_else(|| Diagnostic::bug("a memory without dtype"))?,
            shape: ty.dims.iter().map(size).collect(),
            strides: strides
                .map(|strides| strides.0.iter().map(|s| s.iter().map(size).collect()).collect())
                .unwrap_or_default(),
            written: access == Some(Access::ReadWrite),
            offset,
        })
    }

    /// Parameters that may be one tensor, by number.
    pub(super) fn in_place(&self, parameters: &[Parameter]) -> Vec<[u32; 2]> {
        let Some(found) = self.workspace.world.get::<InPlace>(self.workspace.root) else { return Vec::new() };
        // A name that two memories have names none of them.
        let number = |wanted: &str| {
            let is_wanted = |(_, parameter): &(u32, &Parameter)| matches!(parameter, Parameter::Buffer { name, .. } if **name == *wanted);
            let mut named = (0..).zip(parameters).filter(is_wanted);
            named.next().filter(|_| named.next().is_none()).map(|(number, _)| number)
        };
        let pairs = found.0.iter();
        pairs.filter_map(|[read, written]| Some([number(read)?, number(written)?])).collect()
    }

    /// The grid, and the conditions on sizes that a launch chooses.
    pub(super) fn launch_expressions(&self) -> Result<LaunchExpressions, Diagnostic> {
        // Only expressions that are evaluated go into the executable's own arena.
        let from = &self.fact::<Expressions>()?.0;
        let mut arena = ExprArena::new();
        let mut import = |e: Expr| -> Result<Expr, Diagnostic> {
            if let Some(value) = from.as_integer(e) {
                return Ok(arena.int(value));
            }
            // The text form is the one exchange format between arenas.
            arena
                .parse(&from.display(e).to_string())
                .map_err(|error| Diagnostic::bug(format!("a launch expression: {error}")))
        };
        let geometry = self.fact::<Geometry>()?;
        let counts = geometry.grid.iter().map(|&count| import(count)).collect::<Result<Vec<_>, _>>()?;
        let mut iterations = Vec::new();
        for dim in geometry.dims.values() {
            for (first, end) in dim.limits() {
                if !loop_iterations::iterations_fit(geometry, from, &[first, end]) {
                    iterations.push((dim.symbol, [import(first)?, import(end)?]));
                }
            }
        }
        let reaches = self.lowered.reaches.iter().map(|&(_, e)| import(e)).collect::<Result<_, _>>()?;
        let overflow = |error| Diagnostic::bug(format!("a launch expression: {error}"));
        let mut grid = [Expr::ONE; 3];
        for (axis, &count) in counts.iter().enumerate() {
            let slot = &mut grid[axis.min(2)];
            *slot = arena.mul(*slot, count).map_err(overflow)?;
        }
        let tiles = grid;
        let mut numbered = None;
        if !geometry.places.is_empty() || geometry.persistent.is_some() {
            let mut all = Expr::ONE;
            for count in counts {
                all = arena.mul(all, count).map_err(overflow)?;
            }
            numbered = Some(all);
            if let Some(most) = geometry.persistent {
                let most = arena.int(i64::from(most));
                grid = [arena.min(all, most).map_err(overflow)?, Expr::ONE, Expr::ONE];
            }
        }
        let (counted, assumptions) = (self.counted()?, self.assumptions()?);
        Ok(LaunchExpressions { arena, grid, tiles, numbered, reaches, iterations, counted, assumptions })
    }

    /// Scalars on which iterations depend, with their bounds.
    fn counted(&self) -> Result<Vec<BoundedSymbol>, Diagnostic> {
        let (from, geometry) = (&self.fact::<Expressions>()?.0, self.fact::<Geometry>()?);
        let mut counted: Vec<BoundedSymbol> = Vec::new();
        let ends = geometry.dims.values().flat_map(|dim| dim.limits());
        for end in ends.flat_map(|(first, end)| [first, end]) {
            for symbol in from.symbols(end) {
                let is_size = GridSymbol::of(symbol).is_some() || geometry.dynamic.contains(&symbol);
                if !is_size && !counted.iter().any(|known| known.0 == symbol) {
                    counted.push((symbol, loop_iterations::bounds_of(geometry, from, symbol)));
                }
            }
        }
        Ok(counted)
    }

    /// Assumptions of the author about sizes.
    fn assumptions(&self) -> Result<Vec<(Symbol, Assumption)>, Diagnostic> {
        let constraints = self.fact::<Constraints>()?.0.iter();
        let assumptions = constraints.filter_map(|(constraint, _)| {
            let (symbol, assumption) = match constraint {
                Constraint::Divisible { symbol, by } => (symbol, Assumption::Divisible(*by)),
                Constraint::AtLeast { symbol, least } => (symbol, Assumption::AtLeast(*least)),
                Constraint::AtMost { symbol, most } => (symbol, Assumption::AtMost(*most)),
                _ => return None,
            };
            Some((symbol.as_symbol()?, assumption))
        });
        Ok(assumptions.collect())
    }
}
