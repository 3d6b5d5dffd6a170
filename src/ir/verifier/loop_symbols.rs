//! Symbols that are set to values, in the iterations of loops: the loop comes after the statement, in the
//! same region or in one inside of it, and the symbol has one value there.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::Symbol;
use crate::ir::kernel::{Constraints, DimTable, Locations};
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::walk;

/// Every fault of the author's kernel `root`, in program order; `was_set` tells the symbols that its author
/// set to values.
pub(crate) fn check(world: &World, root: Entity, was_set: &dyn Fn(Symbol) -> bool) -> Vec<Diagnostic> {
    let constraints = world.get::<Constraints>(root).map(|c| &c.0[..]).unwrap_or_default();
    let Some(dims) = world.get::<DimTable>(root) else { return Vec::new() };
    let mut chosen: SmallVec<[(Dim, Symbol, u32); 2]> = SmallVec::new();
    for (constraint, origin) in constraints {
        if let Constraint::Iterations { dim, first, count, .. } = constraint
            && let Some(dim) = dim.as_dimension().and_then(|symbol| dims.find(symbol))
        {
            let mut see = |symbol: Symbol| {
                if was_set(symbol) {
                    chosen.push((dim, symbol, *origin));
                }
            };
            first.visit(&mut see);
            count.visit(&mut see);
        }
    }
    if chosen.is_empty() {
        return Vec::new();
    }
    let mut judge = SymbolJudge { world, root, dims, chosen, set: SmallVec::new(), faults: Vec::new() };
    judge.region(root);
    judge.faults
}

struct SymbolJudge<'w> {
    world: &'w World,
    root: Entity,
    dims: &'w DimTable,
    /// Symbols that loops over dimensions depend on, and where the author says so.
    chosen: SmallVec<[(Dim, Symbol, u32); 2]>,
    /// Symbols that have a value here, and where they were set.
    set: SmallVec<[(Symbol, Entity); 2]>,
    faults: Vec<Diagnostic>,
}

impl SymbolJudge<'_> {
    fn region(&mut self, region: Entity) {
        let before = self.set.len();
        for node in walk::body(self.world, region) {
            let op = self.world.get::<Op>(node);
            if let Some(&Op::SetSymbol(symbol)) = op {
                self.sets(node, symbol);
            } else if let Some(dim) = op.and_then(|op| op.over_tiles()) {
                self.counts(node, dim);
            }
            if self.world.get::<Body>(node).is_some() {
                self.region(node);
            }
        }
        self.set.truncate(before);
    }

    fn sets(&mut self, node: Entity, symbol: Symbol) {
        match self.set.iter().find(|set| set.0 == symbol) {
            None => self.set.push((symbol, node)),
            Some(&(_, first)) => {
                let text = format!("{symbol}, on which iterations depend, is set where it has a value");
                let fault = Diagnostic::invalid(text).at(self.location(node));
                let fault = fault.note("it is set here", self.location(first));
                self.faults.push(fault.help("set it once, or another symbol for other loops"));
            }
        }
    }

    fn counts(&mut self, node: Entity, dim: Dim) {
        let missing =
            |(of, symbol, _): &&(Dim, Symbol, u32)| *of == dim && self.set.iter().all(|set| set.0 != *symbol);
        let Some(&(_, symbol, origin)) = self.chosen.iter().find(missing) else { return };
        let dim = self.dims.name(dim);
        let text = format!("the iterations over {dim} depend on {symbol}, which has no value at this loop");
        let fault = Diagnostic::invalid(text)
            .at(self.location(node))
            .note("here is what they are", self.located(origin))
            .help(format!(
                "state `iterations` above everything, and set {symbol} before the loop, in the region around it"
            ));
        self.faults.push(fault);
    }

    fn location(&self, node: Entity) -> Option<Location> {
        self.located(self.world.get::<Origin>(node)?.0)
    }

    fn located(&self, origin: u32) -> Option<Location> {
        self.world.get::<Locations>(self.root)?.get(origin)
    }
}
