//! Loops over the tiles of a dimension.

use bevy_ecs::prelude::*;

use super::tensor::MAX_ELEMENTS;
use super::{Interpreter, malformed};
use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::ExprArena;
use crate::ir::kernel::{Constraints, DimTable};
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::types::DType;

impl Interpreter<'_> {
    pub(super) fn iterate(&mut self, node: Entity, dim: Dim, init: &[Entity]) -> Result<(), Diagnostic> {
        if self.loops.iter().any(|l| l.dim == dim) {
            let text = format!("a loop over {} is inside a loop over {0}", self.name(dim));
            return Err(Diagnostic::invalid(text));
        }
        let body = &self.get::<Body>(node)?.0;
        let yields = &self.get::<Yields>(node)?.0;
        let size = self.size(dim)?;
        let tile = self.tile(dim)?;
        let depth = self.loops.len();
        let mut carried = Vec::with_capacity(init.len());
        for (number, &init) in init.iter().enumerate() {
            let value = self.value(init)?.clone();
            if self.tensor(&value)?.dtype() == DType::I1 {
                let text = format!("a loop carries i1{} as value {number}", self.names(&value.dims));
                return Err(Diagnostic::invalid(text).help(
                    "carry a number: `select` makes one of a condition, and `compare` the condition again",
                ));
            }
            if value.dims.contains(&dim) {
                let text = format!(
                    "carried value {number} has the dim {} that its loop iterates over",
                    self.name(dim)
                );
                return Err(Diagnostic::invalid(text).help("carry values that do not have that dim"));
            }
            carried.push(value);
        }
        if yields.len() != carried.len() {
            return Err(malformed());
        }
        let (tiles, step) = self.iterations(node, dim, size.div_ceil(tile))?;
        for start in tiles.step_by(step).map(|number| number * tile) {
            self.enter(dim, start, tile)?;
            self.carried.push(carried);
            self.region(body)?;
            let next = yields.iter().map(|&y| self.value(y).cloned()).collect::<Result<Vec<_>, _>>()?;
            self.loops.truncate(depth);
            let before = self.carried.pop().unwrap_or_default();
            for (number, (old, new)) in before.iter().zip(&next).enumerate() {
                self.same_type(number, old, new)?;
            }
            carried = next;
        }
        for value in &mut carried {
            value.depth = depth;
        }
        self.results.insert(node, carried);
        Ok(())
    }

    /// Elements of a dimension that an iteration takes.
    fn tile(&self, dim: Dim) -> Result<usize, Diagnostic> {
        if let Some(tile) = self.geometry(dim).and_then(|dim| dim.tiling) {
            return Ok(tile as usize);
        }
        let symbol = self.get::<DimTable>(self.root)?.0.get(dim).copied();
        let name = self.name(dim);
        let found =
            self.get::<Constraints>(self.root)?.0.iter().find_map(|(constraint, at)| match constraint {
                Constraint::Tiling { dim, tile } if dim.as_dimension() == symbol => Some((tile, *at)),
                _ => None,
            });
        let Some((tile, at)) = found else {
            return Err(Diagnostic::invalid(format!(
                "there is a loop over {name}, but {name} has no tile size"
            ))
            .help(format!("add the constraint tile({name}, ..)")));
        };
        let mut arena = ExprArena::new();
        let expr = tile.intern(&mut arena).map_err(|e| e.to_string());
        let value = expr.and_then(|e| arena.evaluate(e, &|s| (self.sizes)(s)).map_err(|e| e.to_string()));
        let constraint = ("the tile size is given here", self.locations().and_then(|l| l.get(at)));
        match value {
            Ok(tile @ 1..) if tile as u64 <= MAX_ELEMENTS as u64 => Ok(tile as usize),
            Ok(tile) => Err(Diagnostic::invalid(format!("the tile size of {name} is {tile}"))
                .note(constraint.0, constraint.1)
                .help(format!("it must be from 1 to {MAX_ELEMENTS}"))),
            Err(why) => Err(Diagnostic::invalid(format!("the tile size of {name} has no value: {why}"))
                .note(constraint.0, constraint.1)),
        }
    }
}
