//! Tags that a schedule gives to operations, which it names by their places in the kernel.

use crate::ir::diagnostic::Diagnostic;
use crate::ir::schedule::{Operation, WaveSchedule};
use crate::passes::schedule::apply::written::TaggedNodes;
use crate::passes::schedule::author::tags::authors_tags;
use crate::passes::schedule::graph::node_names::node_names;
use crate::passes::schedule::graph::view::SchedulerView;
use crate::spelling::closest;

/// All tags that a schedule can speak of, its own ones first, if it gives any: operations that it tags itself
/// have none of the kernel's tags for it.
///
/// # Errors
/// A place at which the kernel has no operation, a tag that it has; a kernel that is broken.
pub(super) fn tagged(
    view: SchedulerView,
    schedule: &WaveSchedule,
) -> Result<Option<TaggedNodes>, Diagnostic> {
    let given = schedule.operations().iter().filter_map(|one| {
        let Operation::TagNodes { tag, nodes } = &one.operation else { return None };
        Some((tag, nodes, &one.location))
    });
    let mut given = given.peekable();
    if given.peek().is_none() {
        return Ok(None);
    }
    let (names, authors) = (node_names(view)?, authors_tags(view)?);
    let mut tagged = TaggedNodes::new();
    for (tag, nodes, at) in given {
        let fault = |text: String| Diagnostic::invalid(text).at(Some(at.clone()));
        if authors.iter().any(|(known, _)| **known == **tag) {
            let text = format!("operations of the kernel have the tag \"{}\"", tag.escape_default());
            return Err(fault(text).help("take another tag for the nodes of the schedule"));
        }
        let find = |name: &str| {
            let found = names.iter().find(|(known, _)| known == name).map(|(_, node)| *node);
            found.ok_or_else(|| {
                let fault = fault(format!("the kernel has no operation `{}`", name.escape_default()));
                match closest(name, names.iter().map(|(known, _)| &known[..])) {
                    Some(close) => fault.help(format!("did you mean `{close}`?")),
                    None => {
                        fault.help("--emit schedule shows the names; they change with kernel and options")
                    }
                }
            })
        };
        let nodes = nodes.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
        tagged.push(((**tag).into(), nodes));
    }
    tagged.extend(authors);
    Ok(Some(tagged))
}
