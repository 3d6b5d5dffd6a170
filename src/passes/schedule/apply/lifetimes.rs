//! How long values of a steady state live, and what that asks of its loop.
//!
//! A value that is still used in a later trip of the loop needs a register while its successors are already
//! being made. Where the last use comes before the successor, one register serves them all. Where it does
//! not, the loop would have to move values from register to register at the end of each trip, and even wait
//! for those that are still on their way from memory. There are two ways out: the read moves to a later place
//! in the trip, or the loop is unrolled until every value that is alive at once has a name of its own (modulo
//! variable expansion; Lam, "Software Pipelining", PLDI 1988, section 2.3).
//!
//! Schedules in real cycles (`Checks::Machine`) do it: a value that no later trip uses is not carried, a
//! read comes after the last use of what it brought in the previous trip where the cycles of its users leave
//! time, and where values of one node still overlap, the steady state is unrolled to as many trips as such
//! values are alive at once.

use super::pipeline::OrderPlace;
use super::pressure::{before_overwritten, places, reads};
use crate::ir::schedule::table::Checks;
use crate::passes::schedule::graph::assignment::Assignment;
use crate::passes::schedule::graph::dependence_graph::{Dependence, Edge, NodeId};
use crate::passes::schedule::graph::dependences::LoopGraph;
use crate::passes::schedule::graph::resources::Class;
use crate::passes::schedule::graph::view::SchedulerView;

/// The most nodes of an unrolled steady state: about as many instructions of eight bytes as fill half of the
/// 64 KB of instruction cache that two compute units share (CDNA3 white paper), so that the code of other
/// waves has room, too.
const MOST_NODES: usize = 4096;

/// Moves reads after the last use of what they brought in the previous trip, where the cycles of their users
/// leave time for it: the old value and the new one then take turns in the same registers.
pub(crate) fn take_turns(
    view: SchedulerView,
    found: &LoopGraph,
    assignment: &Assignment,
    order: &mut [NodeId],
) {
    let (at, nodes) = (places(found, order), found.graph.nodes());
    let interval = u64::from(assignment.interval);
    let mut overwritten = None;
    let mut moved = at.clone();
    for node in found.body().filter(|&node| reads(found, node)) {
        let trips = |e: &Edge| (assignment.stage(e.to) + e.distance).saturating_sub(assignment.stage(node));
        let users = found.graph.leaving(node);
        // An access that overwrites a memory that is not filled anew is kept in order by a junction, and
        // carried values have users of their own.
        if users.iter().any(|e| nodes[e.to].class == Class::Free || trips(e) > 1) {
            continue;
        }
        let next_round = users.iter().filter(|e| trips(e) == 1);
        let Some(last) = next_round.max_by_key(|e| at[e.to]) else { continue };
        let place = at[last.to];
        if place < at[node] {
            continue;
        }
        let cycle = u64::from(assignment.stage(node)) * interval + u64::from(assignment.slot(last.to));
        let in_time = |e: &Edge| {
            let used = u64::from(assignment.cycles[e.to]) + u64::from(e.distance) * interval;
            used >= cycle + u64::from(e.latency)
        };
        let before_users = users.iter().all(|e| trips(e) == 1 || at[e.to] > place);
        let overwritten = overwritten.get_or_insert_with(|| {
            let mut latest = found.graph.table(OrderPlace::from_u32(u32::MAX));
            before_overwritten(view, found, assignment, &at, &mut latest);
            latest
        });
        if before_users && overwritten[node] > place && users.iter().all(in_time) {
            moved[node] = place;
        }
    }
    if overwritten.is_some() {
        let key = |node: NodeId| (moved[node], moved[node] != at[node], at[node]);
        order.sort_by_key(|&node| key(node));
    }
}

/// How many trips of the steady state are to become one, so that no value has to be moved to make room for
/// its successor: as many as values of one node are alive at once. One where that would make the loop too
/// long.
fn trips(found: &LoopGraph, assignment: &Assignment, order: &[NodeId]) -> u32 {
    let most = alive_at_once(found, assignment, order).map(|(_, alive)| alive).max().unwrap_or(1);
    if most as usize * order.len() > MOST_NODES { 1 } else { most }
}

/// How many trips of the steady state become one in a loop of `most` iterations at the most, if a bound is
/// known: one where the steady state may not have so many. Other schedules than those that are checked
/// against the machine say how many iterations a trip has, so their trips stay as they are.
pub(crate) fn merged_trips(
    found: &LoopGraph,
    assignment: &Assignment,
    order: &[NodeId],
    checks: Checks,
    most: Option<u32>,
) -> u32 {
    let steady = most.map(|most| most.saturating_sub(assignment.stages() - 1));
    match checks {
        Checks::Machine => {
            let trips = trips(found, assignment, order);
            if steady.is_none_or(|steady| steady >= trips) { trips } else { 1 }
        }
        Checks::Order => 1,
    }
}

/// Vector registers that a trip of the steady state moves to make room for successors, if trips are not
/// merged: of the values of one node that are alive at once all but the newest.
pub(crate) fn moved_registers(found: &LoopGraph, assignment: &Assignment, order: &[NodeId]) -> u32 {
    let moved = alive_at_once(found, assignment, order)
        .map(|(node, alive)| (alive - 1).saturating_mul(found.nodes[node].registers));
    moved.fold(0, u32::saturating_add)
}

/// The nodes of an order, each with how many of its values are alive at once, at least 1.
fn alive_at_once<'a>(
    found: &'a LoopGraph,
    assignment: &'a Assignment,
    order: &'a [NodeId],
) -> impl Iterator<Item = (NodeId, u32)> + 'a {
    let at = places(found, order);
    order.iter().map(move |&node| {
        let mut most = 1;
        let alive = |user: NodeId, distance: u32| {
            let later = (assignment.stage(user) + distance).saturating_sub(assignment.stage(node));
            later + u32::from(at[user] > at[node])
        };
        for edge in found.graph.leaving(node).iter().filter(|edge| edge.kind == Dependence::Value) {
            if !found.is_carried(edge.to) {
                most = most.max(alive(edge.to, edge.distance));
                continue;
            }
            for user in found.graph.leaving(edge.to).iter().filter(|user| user.kind == Dependence::Value) {
                most = most.max(alive(user.to, edge.distance + user.distance));
            }
        }
        (node, most)
    })
}
