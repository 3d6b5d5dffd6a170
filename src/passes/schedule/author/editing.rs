//! Edits of a schedule: other orders, inserted barriers and controls, waves out of step.

use bevy_ecs::prelude::*;

use super::evaluation::{Evaluation, Which};
use super::reorder::{Disorder, reorder};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::node_map::NodeSet;
use crate::ir::nodes::NodeBundle;
use crate::ir::schedule::{Directive, InsertPlace, ValueId};
use crate::ir::walk;
use crate::passes::facts::OfSchedule;
use crate::passes::schedule::graph::dependences::{
    UnsuitableLoop, dependences_in_place, dependences_of_parts, straight_dependences,
};
use crate::passes::schedule::graph::resources::ResourceModel;

/// Nodes of a region that an edit may touch: from the first place to the one after the last.
#[derive(Copy, Clone, Debug)]
struct Stretch {
    region: Entity,
    first: usize,
    end: usize,
    repeats: bool,
}

impl Evaluation<'_, '_> {
    fn body(&self, region: Entity) -> Vec<Entity> {
        walk::body(self.kernel.world, region).to_vec()
    }

    /// The nodes that a loop, or a part of a pipelined one, names.
    fn stretch(&mut self, id: ValueId) -> Result<Stretch, Diagnostic> {
        let (region, which) = match self.part(id)? {
            Some(part) if part.which == Which::Kernel => (part.steady, Which::Kernel),
            Some(part) if part.whole == part.steady => {
                let fault = self.fault("a loop of one stage has no prologue and no epilogue");
                return Err(fault.help("name its kernel, or the loop itself"));
            }
            Some(part) => (part.whole, part.which),
            None => (self.one_loop(id)?, Which::Kernel),
        };
        let view = self.kernel.view();
        let body = view.body(region)?;
        let op = |at: &usize| view.op(body[*at]);
        let heads = (0..body.len()).take_while(|at| matches!(op(at), Ok(Op::IterArg(_)))).count();
        let all = Stretch { region, first: heads, end: body.len(), repeats: true };
        if which == Which::Kernel {
            return Ok(all);
        }
        // If the kernel is unrolled, the loop over the rest of its iterations stands after it.
        let mut loops = (0..body.len()).filter(|at| matches!(op(at), Ok(Op::Iterate(_))));
        let steady = loops.next().map(|first| [first, loops.next_back().unwrap_or(first)]);
        Ok(match (which, steady) {
            (Which::Kernel, _) | (_, None) => all,
            (Which::Prologue, Some([first, _])) => {
                Stretch { region, first: heads, end: first, repeats: false }
            }
            (Which::Epilogue, Some([_, last])) => {
                let results = (last + 1..body.len()).take_while(|at| matches!(op(at), Ok(Op::LoopResult(_))));
                let first = last + 1 + results.count();
                Stretch { region, first, end: body.len(), repeats: false }
            }
        })
    }

    pub(super) fn reorder_graph(&mut self, region: ValueId, clusters: &[ValueId]) -> Result<(), Diagnostic> {
        let stretch = self.stretch(region)?;
        let body = self.body(stretch.region);
        let model = ResourceModel::ABSTRACT;
        let found = if stretch.repeats {
            dependences_in_place(self.kernel.view(), stretch.region, &model)
        } else {
            straight_dependences(self.kernel.view(), &body[stretch.first..stretch.end], &model)
        };
        let unsuitable = |this: &Self, why: UnsuitableLoop| {
            this.not_schedulable(stretch.region, &format!("this cannot be reordered: {why}"))
        };
        let mut found = found.map_err(|why| unsuitable(self, why))?;
        let mut pieces = Vec::with_capacity(clusters.len());
        for &cluster in clusters {
            pieces.push(self.pieces(cluster)?);
        }
        // A loop's carried values are nodes of its graph that keep their place at its start.
        let mut order = reorder(self.kernel.world, &found, &pieces);
        // Other parts of a buffer may be overwritten before one is read.
        if let Err(Disorder::Against(..)) = order
            && stretch.repeats
        {
            found = dependences_of_parts(self.kernel.view(), stretch.region, &model)
                .map_err(|why| unsuitable(self, why))?;
            order = reorder(self.kernel.world, &found, &pieces);
        }
        let order = order.map_err(|why| self.disorder(why))?;
        let carried: NodeSet = found
            .body()
            .filter(|&node| found.is_carried(node))
            .map(|node| found.graph.nodes()[node].entity)
            .collect();
        let mut new = body[..stretch.first].to_vec();
        new.extend(order.into_iter().filter(|node| !carried.contains(*node)));
        new.extend_from_slice(&body[stretch.end..]);
        walk::set_body(self.kernel.world, stretch.region, &new);
        Ok(())
    }

    fn disorder(&self, why: Disorder) -> Diagnostic {
        let name = |node| self.describe(node);
        let at = |node| self.place(node);
        match why {
            Disorder::Stranger(node) => {
                let text = format!("{} is not among the nodes that are reordered", name(node));
                let fault = self.fault(text).note("it is written here", at(node));
                fault.help("take the copies of one part: filter_nodes with the part as its stage")
            }
            Disorder::Twice(node) => {
                let text = format!("{} is named twice", name(node));
                self.fault(text).note("it is written here", at(node)).help("name every node once")
            }
            Disorder::Against(first, second) => {
                let text = format!(
                    "{} has to come before {}, and the clusters say otherwise",
                    name(first),
                    name(second)
                );
                self.fault(text)
                    .note("what has to come first is here", at(first))
                    .note("what depends on it is here", at(second))
                    .help("put the first into an earlier cluster")
            }
        }
    }

    fn spawn(&mut self, op: Op) -> Entity {
        NodeBundle::effect(op, self.origin).spawn(self.kernel.world, OfSchedule)
    }

    fn insert_at(&mut self, region: Entity, at: usize, op: Op) {
        let new = self.spawn(op);
        if let Some(mut body) = self.kernel.world.get_mut::<Body>(region) {
            let at = at.min(body.0.len());
            body.0.insert(at, new);
        }
    }

    pub(super) fn insert(
        &mut self,
        place: InsertPlace,
        target: ValueId,
        directive: Directive,
    ) -> Result<(), Diagnostic> {
        let op = directive.op();
        if matches!(place, InsertPlace::AtStart | InsertPlace::AtEnd) {
            let Stretch { region, first, end, .. } = self.stretch(target)?;
            self.insert_at(region, if place == InsertPlace::AtStart { first } else { end }, op);
            return Ok(());
        }
        let nodes = match self.part(target)? {
            Some(part) if part.which == Which::Kernel => vec![part.steady],
            Some(_) => {
                let Stretch { region, first, end, .. } = self.stretch(target)?;
                self.body(region)[first..end].to_vec()
            }
            None => self.nodes(target)?.to_vec(),
        };
        let end = if place == InsertPlace::Before { nodes.first() } else { nodes.last() };
        let &node = end.ok_or_else(|| {
            self.fault("there is no node to insert something at")
                .help("take a list that is not empty, or insert at the start or at the end of a part")
        })?;
        let region = walk::region_of(self.kernel.world, self.kernel.root, node);
        let region =
            region.ok_or_else(|| self.fault("the node to insert something at is not in the kernel"))?;
        let at = self.body(region).iter().position(|&n| n == node).unwrap_or(0);
        self.insert_at(region, if place == InsertPlace::Before { at } else { at + 1 }, op);
        Ok(())
    }

    /// Holds back the second half of the waves by one barrier for the duration of a loop.
    pub(super) fn stagger(&mut self, region: ValueId) -> Result<(), Diagnostic> {
        let node = match self.part(region)? {
            Some(part) if part.which == Which::Kernel => part.steady,
            Some(_) => {
                return Err(self.fault("only a loop can be staggered").help("stagger the pipeline's kernel"));
            }
            None => self.one_loop(region)?,
        };
        let waves = self.kernel.view().waves()?;
        if waves < 2 || !waves.is_multiple_of(2) {
            let text = match waves {
                1 => "the one wave of a workgroup has no two halves to stagger".to_owned(),
                _ => format!("{waves} waves of a workgroup have no two halves to stagger"),
            };
            return Err(self.fault(text).help("use an even number of waves"));
        }
        let around = walk::region_of(self.kernel.world, self.kernel.root, node);
        let around = around.ok_or_else(|| self.fault("the loop is not in the kernel"))?;
        let half = |predicate| {
            let condition = WaveCondition { predicate, bound: WaveBound::WavesOver(2) };
            Op::Control(Control::ConditionalBarrier(condition))
        };
        let at = self.body(around).iter().position(|&n| n == node).unwrap_or(0);
        self.insert_at(around, at + 1, half(Predicate::Lt));
        self.insert_at(around, at, half(Predicate::Ge));
        Ok(())
    }
}
