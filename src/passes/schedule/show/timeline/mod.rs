//! Schedules as a page: one HTML file without scripts, fonts or pictures from elsewhere.
//!
//! For every loop there is a strip of prologue, steady state and epilogue, what each stage does in each slot
//! with the units in use, and what waves do between barriers, side by side where they do not run in step.

mod groups;
mod labels;
mod stages;

use std::fmt::Write;

use crate::ir::node::Drain;
use crate::ir::nodes::Bug;
use crate::ir::schedule::table::Checks;
use crate::passes::schedule::show::view::{KernelView, LoopView, ScheduledLoop};

const STYLE: &str = include_str!("style.css");

/// Appends to a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {{
        let _ = write!($out, $($argument)*);
    }};
}
use put;

/// The page of a kernel.
///
/// # Errors
/// A kernel that is broken.
pub(crate) fn page(kernel: &KernelView) -> Result<String, Bug> {
    let mut out = String::new();
    let name = escaped(&kernel.kernel);
    put!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Schedule of {name}</title>\n"
    );
    put!(out, "<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{name} on {}</h1>\n", kernel.target);
    let asked = match kernel.requested == kernel.applied {
        true => String::new(),
        false => format!(" (asked for: {})", kernel.requested),
    };
    put!(out, "<p>schedule <b>{}</b>{asked}</p>\n", kernel.applied);
    labels::legend(&mut out);
    out.push_str("</header>\n<main>\n");
    if kernel.loops.is_empty() {
        out.push_str("<p>The kernel has no loop to schedule.</p>\n");
    }
    for view in &kernel.loops {
        loop_section(kernel, view, &mut out)?;
    }
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(out)
}

fn loop_section(kernel: &KernelView, view: &LoopView, out: &mut String) -> Result<(), Bug> {
    let tag = view.tag.as_ref().map(|tag| format!(" <code>@{}</code>", escaped(tag))).unwrap_or_default();
    put!(out, "<section>\n<h2>{}{tag}</h2>\n", escaped(&view.title()));
    if !view.why.is_empty() {
        put!(out, "<p class=\"why\">{}</p>\n", escaped(&view.why));
    }
    match (view.scheduled(kernel), &view.found) {
        (Some(one), _) => {
            let ScheduledLoop { found, schedule, .. } = one;
            let assignment = &schedule.assignment;
            let cycles = match schedule.checks {
                Checks::Order => "phases: they keep an order, not times".to_owned(),
                Checks::Machine => format!("cycles of four clocks in the model of {}", view.chip.name),
            };
            put!(
                out,
                "<p class=\"facts\"><span>interval <b>{}</b></span><span><b>{}</b> stages</span><span><b>{}</b> nodes</span><span>{cycles}</span>",
                assignment.interval,
                assignment.stages(),
                found.nodes.len()
            );
            for buffer in &found.buffers {
                let lds = kernel.view.buffer(buffer.buffer)?;
                put!(out, "<span>LDS buffer of {} bytes &times; <b>{}</b></span>", lds.bytes, lds.copies);
            }
            if schedule.request.drain == Drain::Loop {
                out.push_str("<span>no epilogue: the last trips run in the loop</span>");
            }
            out.push_str("</p>\n");
            if assignment.stages() > 1 {
                stages::strip(assignment.stages(), schedule.request.drain, out);
            }
            stages::table(one, out)?;
        }
        (None, Err(why)) if view.why.is_empty() => {
            put!(out, "<p class=\"why\">no dependence graph: {}</p>\n", escaped(why));
        }
        _ => out.push_str("<p>The loop stays as it was written.</p>\n"),
    }
    groups::between_barriers(kernel, view, out)?;
    out.push_str("</section>\n");
    Ok(())
}

/// Text as HTML shows it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(letter),
        }
    }
    out
}

/// A bar of `part` in `whole`, with its text.
fn bar(part: u32, whole: u32, kind: &str, text: &str, out: &mut String) {
    let percent = (u64::from(part) * 100).checked_div(u64::from(whole)).unwrap_or(0);
    let over = if percent > 100 { " over" } else { "" };
    put!(
        out,
        "<span class=\"bar\"><i class=\"{kind}{over}\" style=\"width:{}%\"></i><em>{}</em></span>",
        percent.min(100),
        escaped(text)
    );
}
