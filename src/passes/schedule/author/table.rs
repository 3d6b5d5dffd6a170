//! Tables on a kernel: matched node by node, judged, and applied.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;

use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::node::{Drain, Op};
use crate::ir::schedule::table::{Checks, LoopTable, ScheduleTable, TableRow};
use crate::passes::options::Schedule;
use crate::passes::schedule::apply::pipeline::Rebuilt;
use crate::passes::schedule::apply::rebuild::{NotRebuilt, Unfit, rebuild};
use crate::passes::schedule::apply::record::{Applied, LoopRecord};
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::{Edge, NodeId};
use crate::passes::schedule::graph::dependences::{LoopGraph, dependences};
use crate::passes::schedule::graph::keys::keys;
use crate::passes::schedule::graph::loops::{Candidates, chip_model};
use crate::passes::schedule::graph::resources::{Resource, ResourceModel};
use crate::passes::schedule::graph::view::Scheduling;
use crate::passes::schedule::graph::words::bug;
use crate::passes::schedule::graph::words::{describe, place};
use crate::passes::schedule::judge::usage;
use crate::passes::schedule::judge::usage::Overused;
use crate::passes::schedule::judge::verify::{Broken, broken, broken_fault, early_fault, too_few_fault};
use crate::spelling::closest;
use cranelift_entity::PrimaryMap;

/// The most nodes that prologue, steady state and epilogue may have together: as many as a kernel may have.
const MOST_NODES: u64 = 1 << 16;

/// The most users of a unit that a fault names.
const NAMED_USERS: usize = 4;

/// Gives loops the schedules of the table that the options bring.
///
/// # Errors
/// What is wrong with the table; a kernel that is broken.
pub(crate) fn schedule(
    kernel: &mut Scheduling,
    loops: &Candidates,
    asked: &Schedule,
) -> Result<Vec<LoopRecord>, Diagnostic> {
    let Schedule::Table(table) = asked else { return Err(bug("no table of cycles")) };
    apply(kernel, loops, table)
}

/// Gives loops the schedules of a table; loops that the table leaves out stay as they were written.
fn apply(
    kernel: &mut Scheduling,
    loops: &Candidates,
    table: &ScheduleTable,
) -> Result<Vec<LoopRecord>, Diagnostic> {
    if loops.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(unknown) = table.loops().iter().find(|one| one.number as usize >= loops.len()) {
        let text = format!("the kernel has no loop {}", unknown.number);
        let fault = Diagnostic::invalid(text).at(Some(unknown.location.clone()));
        return Err(match loops.len() {
            1 => fault.help("it has loop 0 alone"),
            count => fault.help(format!("it has loops 0 to {}", count - 1)),
        });
    }
    let mut records = Vec::new();
    for (number, &[region, node]) in loops.iter().enumerate() {
        let own = table.loops().iter().find(|one| one.number as usize == number);
        let Some(own) = own else {
            records.push(LoopRecord::refused(node, format!("the table has no loop {number}")));
            continue;
        };
        let record = TableJudge { kernel, node, table: own }
            .applied(region)
            .map_err(|fault| fault.note("by this table", Some(table.location())))?;
        records.push(record);
    }
    Ok(records)
}

/// A loop and the schedule that it is to get.
struct TableJudge<'a, 'w> {
    kernel: &'a mut Scheduling<'w>,
    node: Entity,
    table: &'a LoopTable,
}

impl TableJudge<'_, '_> {
    fn fault(&self, text: impl Into<String>) -> Diagnostic {
        Diagnostic::invalid(text).at(Some(self.table.location.clone()))
    }

    fn describe(&self, found: &LoopGraph, node: NodeId) -> String {
        describe(self.kernel.world, self.kernel.root, found.graph.nodes()[node].entity)
    }

    fn applied(&mut self, region: Entity) -> Result<LoopRecord, Diagnostic> {
        self.same_dim()?;
        let model = self.model()?;
        let found = dependences(self.kernel.view(), self.node, &model)
            .map_err(|why| self.fault(format!("this loop cannot be scheduled: {why}")))?;
        let (assignment, rows) = self.assignment(&found)?;
        let table = self.table;
        if let Some(fault) = broken(&found, &assignment, Checks::Order) {
            let [from, to] = [fault.edge.from, fault.edge.to].map(|n| rows.get(n));
            let told = broken_fault(self.kernel.world, self.kernel.root, &found, &assignment, fault);
            let told = told.at(to.map(|row| row.location.clone()));
            return Err([to, from].into_iter().flatten().fold(told, |told, row| {
                told.note(format!("the row of {}", row.key), Some(row.location.clone()))
            }));
        }
        if table.checks == Checks::Machine {
            self.delays(&found, &assignment, &rows)?;
            if let Some(over) = usage::overused(&found.graph, &model, &assignment) {
                return Err(self.overused(&found, &model, &assignment, over, &rows));
            }
        }
        let location = Some(table.location.clone());
        if table.request.drain == Drain::Loop
            && let Some(fault) =
                early_fault(self.kernel.world, self.kernel.root, &found, &assignment, self.node)
        {
            return Err(fault.at(location));
        }
        if let Some(copies) = table.request.copies
            && let Some(fault) = too_few_fault(self.kernel.view(), &found, &assignment, copies)?
        {
            return Err(fault.at(location));
        }
        let all = u64::from(assignment.stages()) * found.nodes.len() as u64;
        if all > MOST_NODES {
            let text = format!("{} stages of {} nodes are too many", assignment.stages(), found.nodes.len());
            let fault = Diagnostic::new(Kind::Limit, text).at(location);
            return Err(fault.help(format!("a pipelined loop has at most {MOST_NODES} nodes")));
        }
        match rebuild(self.kernel, [region, self.node], &found, &assignment, table.request, table.checks) {
            Ok((_, Rebuilt { steady, .. })) => {
                let (request, checks) = (table.request, table.checks);
                let applied =
                    Applied { instead: None, written: None, steady, found, assignment, request, checks };
                Ok(LoopRecord::applied(self.node, applied))
            }
            Err(NotRebuilt::Unfit(Unfit::Lds(why))) => {
                Err(self.fault(why.to_string()).help("use fewer stages, or smaller tiles"))
            }
            Err(NotRebuilt::Unfit(why)) => Ok(LoopRecord::refused(self.node, why.to_string())),
            Err(NotRebuilt::Fault(fault)) => Err(fault),
        }
    }

    fn same_dim(&mut self) -> Result<(), Diagnostic> {
        let view = self.kernel.view();
        let Op::Iterate(dim) = view.op(self.node)? else { return Err(bug("no loop")) };
        let name = view.dims()?.name(dim);
        let LoopTable { number, dim, .. } = self.table;
        match **dim == *name {
            true => Ok(()),
            false => Err(self.fault(format!("loop {number} runs over {name}, not over {dim}"))),
        }
    }

    /// The machine that the table's cycles belong to.
    fn model(&mut self) -> Result<ResourceModel, Diagnostic> {
        let chip = chip_model(self.kernel.view(), self.node)?;
        let models = [ResourceModel::ABSTRACT, chip];
        let Some((name, location)) = &self.table.model else {
            return Ok(if self.table.checks == Checks::Machine { chip } else { ResourceModel::ABSTRACT });
        };
        models.into_iter().find(|model| *model.name == **name).ok_or_else(|| {
            Diagnostic::invalid(format!("the table is for {name}, and this is compiled for {}", chip.name))
                .at(Some(location.clone()))
                .help(format!("`model: {}` claims its units and delays, `checks: order` none", chip.name))
        })
    }

    /// Cycles of all nodes, and the row of each node of the body.
    fn assignment(
        &self,
        found: &LoopGraph,
    ) -> Result<(Assignment, PrimaryMap<NodeId, &TableRow>), Diagnostic> {
        let keys = keys(found);
        let body = || found.body().map(|number| keys[number].as_str());
        let numbers: FxHashMap<&str, NodeId> = body().zip(found.body()).collect();
        let mut rows: PrimaryMap<NodeId, Option<&TableRow>> = vec![None; found.nodes.len()].into();
        for row in &self.table.rows {
            let Some(&number) = numbers.get(&*row.key) else {
                let text = format!("loop {} has no node {}", self.table.number, row.key);
                let fault = Diagnostic::invalid(text).at(Some(row.location.clone()));
                return Err(match closest(&row.key, body()) {
                    Some(close) => fault.help(format!("did you mean {close}?")),
                    None => fault.help("nodes are those of the dependence graph"),
                });
            };
            rows[number] = Some(row);
        }
        let mut complete: PrimaryMap<NodeId, &TableRow> = PrimaryMap::default();
        for (number, &row) in rows.iter() {
            complete.push(row.ok_or_else(|| {
                let node = found.graph.nodes()[number].entity;
                let text = format!("{} ({}) has no cycle", self.describe(found, number), keys[number]);
                self.fault(text)
                    .note("it is written here", place(self.kernel.world, self.kernel.root, node))
                    .help("give every node of the loop a row")
            })?);
        }
        let mut cycles: PrimaryMap<NodeId, u32> = complete.values().map(|row| row.cycle).collect();
        for junction in found.junctions() {
            let entering = found.graph.entering(junction);
            let last = entering.filter_map(|edge| cycles.get(edge.from)).max();
            cycles.push(last.copied().unwrap_or(0));
        }
        Ok((Assignment { interval: self.table.interval, cycles }, complete))
    }

    /// Checks that every result is available when it is used.
    fn delays(
        &self,
        found: &LoopGraph,
        assignment: &Assignment,
        rows: &PrimaryMap<NodeId, &TableRow>,
    ) -> Result<(), Diagnostic> {
        let Some(Broken { edge, legal }) = broken(found, assignment, Checks::Machine) else {
            return Ok(());
        };
        let Edge { from, to, latency, distance, .. } = edge;
        let [from_text, to_text] = [from, to].map(|n| self.describe(found, n));
        let [from_cycle, to_cycle] = [from, to].map(|n| assignment.cycles[n]);
        let which = match distance {
            0 => "of the same iteration".to_owned(),
            1 => "of the iteration before".to_owned(),
            more => format!("{more} iterations before"),
        };
        let text = format!(
            "{to_text} is in cycle {to_cycle}, before {from_text} {which} is over: that begins in cycle {from_cycle} and takes \
             {latency} cycles"
        );
        let entity = |n: NodeId| found.graph.nodes()[n].entity;
        let row = |n: NodeId| rows.get(n).map(|row| row.location.clone());
        Err(Diagnostic::invalid(text)
            .at(row(to))
            .note("what has to be over first", row(from))
            .note(
                format!("{to_text} is written here"),
                place(self.kernel.world, self.kernel.root, entity(to)),
            )
            .note(
                format!("{from_text} is written here"),
                place(self.kernel.world, self.kernel.root, entity(from)),
            )
            .help(format!("the first legal cycle is {legal}; `checks: order` would let it wait")))
    }

    fn overused(
        &self,
        found: &LoopGraph,
        model: &ResourceModel,
        assignment: &Assignment,
        over: Overused,
        rows: &PrimaryMap<NodeId, &TableRow>,
    ) -> Diagnostic {
        let Overused { slot, resource, used } = over;
        let units = model.units[resource as usize];
        let users = usage::users(&found.graph, model, assignment, over);
        let named: Vec<String> = users.iter().take(NAMED_USERS).map(|&n| self.describe(found, n)).collect();
        let more = match users.len().saturating_sub(NAMED_USERS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let last = users.iter().rev().find_map(|&n| rows.get(n));
        let text = format!(
            "{used} units `{}` are used in cycle {slot} of the interval, and {} has {units}",
            resource.name(),
            model.name
        );
        let mut fault = Diagnostic::invalid(text)
            .at(last.map(|row| row.location.clone()))
            .note(format!("they are used by {}{more}", named.join(", ")), None);
        for &user in users.iter().take(NAMED_USERS) {
            if let Some(row) = rows.get(user) {
                fault = fault.note(row.key.to_string(), Some(row.location.clone()));
            }
        }
        match free_slot(found, model, assignment, resource) {
            Some(free) => fault.help(format!("cycle {free} of the interval has a free one")),
            None => fault.help("all cycles of the interval are full: it has to be longer"),
        }
    }
}

/// The first cycle of the interval with a free unit.
fn free_slot(
    found: &LoopGraph,
    model: &ResourceModel,
    assignment: &Assignment,
    resource: Resource,
) -> Option<usize> {
    let uses = usage::uses(&found.graph, model, assignment);
    uses.iter().position(|slot| slot[resource as usize] < u32::from(model.units[resource as usize]))
}
