//! Schedules as an author would write them: a `schedule` block that stands after a text kernel, and the tags
//! that the kernel's operations need for it.

use std::fmt::Write;
use std::sync::Arc;

use bevy_ecs::prelude::*;

use super::stages::in_stages;
use super::view::{KernelView, LoopView};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::Op;
use crate::ir::schedule::WaveSchedule;
use crate::passes::options::Schedule;
use crate::passes::schedule::apply::written::TaggedNodes;
use crate::passes::schedule::author::tags::authors_tags;
use crate::passes::schedule::graph::words::describe_at;

/// The schedules of a kernel's loops as one block: what their strategies wrote, or the stages that they
/// found. A loop whose strategy counts cycles of a machine is left to it by name; loops that stayed as they
/// were written are comments.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn write(kernel: &KernelView) -> Result<String, Diagnostic> {
    let asked = kernel.view.settings()?.requested_schedule();
    if let Schedule::Manual(written) = asked {
        return Ok(written.to_string());
    }
    if let Schedule::Table(_) = asked {
        return Ok("; cycles of a table, which --emit schedule writes\n".to_owned());
    }
    let names = TagNames { kernel, authors: authors_tags(kernel.view)? };
    let mut comments = String::new();
    let mut whole: Option<WaveSchedule> = None;
    for view in &kernel.loops {
        let Some(part) = names.schedule(view, &mut comments)? else { continue };
        whole = Some(whole.map_or(part.clone(), |whole| whole.then(&part)));
    }
    if kernel.loops.is_empty() {
        comments.push_str("; there is no loop to schedule\n");
    }
    Ok(comments + &whole.map_or_else(String::new, |whole| whole.to_string()))
}

/// Names for what the tags of strategies' schedules stand for.
struct TagNames<'a> {
    kernel: &'a KernelView<'a>,
    /// The author's tags and what has them.
    authors: TaggedNodes,
}

impl TagNames<'_> {
    /// The schedule of a loop over tags of the author's where these stand for the same nodes, and over new
    /// ones otherwise, of which the comments tell what they are for. None if the loop has no schedule.
    fn schedule(&self, view: &LoopView, comments: &mut String) -> Result<Option<WaveSchedule>, Diagnostic> {
        let title = view.title();
        let why = view.why.replace('\n', " ");
        if view.schedule.is_none() {
            let why = if why.is_empty() { "no schedule was asked for" } else { &why };
            let _ = writeln!(comments, "; {title} stays as it was written: {why}");
            return Ok(None);
        }
        let strategy = view.strategy.unwrap_or(self.kernel.requested);
        let reason = if why.is_empty() { String::new() } else { format!(" ({why})") };
        let _ = writeln!(comments, "; {title}: {strategy}{reason}");
        let node = self.kernel.view.node(view.running)?.piece(view.running).logical;
        let stages = match &view.written {
            Some(_) => None,
            None => in_stages(&self.authors, view, node, strategy)?,
        };
        if let Some(written) = view.written.as_deref().or(stages.as_ref()) {
            let renamed = self.renamed(view, &written.tagged, comments);
            let find = |tag: &str| renamed.iter().find(|(old, _)| **old == *tag).map(|(_, new)| new.clone());
            return Ok(Some(written.schedule.with_tags(find)));
        }
        let tagged = TaggedNodes::from_iter([("loop".into(), [node].into_iter().collect())]);
        let renamed = self.renamed(view, &tagged, comments);
        let tag = renamed.first().map_or("loop", |(_, new)| new);
        WaveSchedule::trace(strategy, |s| s.schedule_loop(s.get_node_by_tag(tag), strategy)).map(Some)
    }

    /// A new name for each tag; the comments tell what has to get it.
    fn renamed(
        &self,
        view: &LoopView,
        tagged: &TaggedNodes,
        comments: &mut String,
    ) -> Vec<(Box<str>, Arc<str>)> {
        let mut renamed = Vec::new();
        for (tag, nodes) in tagged {
            let mut sorted = nodes.clone();
            sorted.sort_unstable();
            let own = self.authors.iter().find(|(_, own)| *own == sorted).map(|(own, _)| Arc::from(&**own));
            let name = own.unwrap_or_else(|| {
                let fresh = self.fresh(tag, view);
                let operations: Vec<String> = nodes.iter().map(|&node| self.described(node)).collect();
                let _ = writeln!(comments, ";   @{fresh}: {}", operations.join(", "));
                fresh.into()
            });
            renamed.push((tag.clone(), name));
        }
        renamed
    }

    /// A tag that the kernel does not have yet.
    fn fresh(&self, tag: &str, view: &LoopView) -> String {
        let mut fresh = match self.kernel.loops.len() {
            1 => tag.to_owned(),
            _ => format!("{tag}_of_loop_{}", view.number),
        };
        while self.authors.iter().any(|(own, _)| **own == *fresh) {
            fresh.push('_');
        }
        fresh
    }

    /// A logical operation and where it was written.
    fn described(&self, node: Entity) -> String {
        let (world, root) = (self.kernel.view.world, self.kernel.view.root);
        let what = describe_at(world, root, node);
        match world.get::<Op>(node) {
            Some(Op::Rearrange) => format!("{what}, which the compiler made: no tag can name it"),
            _ => what,
        }
    }
}
