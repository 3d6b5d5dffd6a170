//! The schedule of a kernel for display: dependences, table, page. It is made on request, apart from a
//! compilation: executables carry none of it.

use crate::codegen::lower::with_workspace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::kernel::Kernel;
use crate::ir::walk;
use crate::passes::facts::Staggered;
use crate::passes::options::Options;
use crate::passes::schedule::graph::view::SchedulerView;
use crate::passes::schedule::judge::trip_barriers::{BarrierRole, roles};
use crate::passes::schedule::judge::wave_groups::groups_of;
use crate::passes::schedule::show::view::KernelView;
use crate::passes::schedule::show::{graph_text, operations, table, timeline};
use crate::passes::workspace::Verify;

/// How a schedule is shown.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ScheduleView {
    /// The dependence graphs of all loops, as a listing.
    Graph,
    /// The same as a drawing in the DOT language of Graphviz.
    Dot,
    /// The cycles of all nodes, as a table that [`ScheduleTable`](crate::ir::schedule::table::ScheduleTable)
    /// reads.
    Table,
    /// An author's schedule, as [`WaveSchedule::parse`](crate::ir::schedule::WaveSchedule::parse) reads it:
    /// the operations that a strategy has written, with the kernel's tags where they stand for the same
    /// nodes; the comments before it say which others have to be given. Loops whose strategies count cycles
    /// are left to them by name.
    Operations,
    /// A self-contained page of HTML.
    Timeline,
}

/// What each barrier of a loop is for whose waves do not run in step, for all such loops of a kernel.
///
/// # Errors
/// As [`schedule_of`].
pub fn barriers_of(kernel: &Kernel, options: &Options) -> Result<Vec<Vec<BarrierRole>>, Diagnostic> {
    with_workspace(|workspace| {
        workspace.load(kernel, options);
        workspace.run(None, Verify::Off, &mut Vec::new())?;
        let view = SchedulerView::new(workspace);
        let mut found = Vec::new();
        for region in walk::regions(view.world, view.root) {
            if view.world.get::<Staggered>(region).is_some() {
                found.push(roles(view, region, &groups_of(view, region)?)?);
            }
        }
        found.retain(|roles| !roles.is_empty());
        Ok(found)
    })
}

/// Runs the passes on a kernel and shows what became of its loops.
///
/// # Errors
/// What is wrong with the kernel or the options.
///
/// # Example
/// ```
/// use groundswell::kernels::Gemm;
/// use groundswell::prelude::*;
/// use groundswell::compile::{ScheduleView, schedule_of};
///
/// let gemm = Gemm::any_shape().kernel()?;
/// let mut options = Options::new(Target::GFX942);
/// for name in ["M", "N", "K"] {
///     options = options.set(Symbol::new(name), 512);
/// }
/// for (name, size) in [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)] {
///     options = options.set(Symbol::new(name), size);
/// }
/// let table = schedule_of(&gemm, &options.clone().schedule(Schedule::Prefetch), ScheduleView::Table)?;
/// // What is written can be edited, read, and compiled with.
/// let table = ScheduleTable::parse(&table, "gemm.table").expect("what was written reads");
/// assert_eq!(gemm.compile(&options.schedule_table(&table))?.report().schedule_applied, "table");
/// # Ok::<(), Diagnostic>(())
/// ```
pub fn schedule_of(kernel: &Kernel, options: &Options, view: ScheduleView) -> Result<String, Diagnostic> {
    with_workspace(|workspace| {
        workspace.load(kernel, options);
        // Later passes add barriers, which belong on the page but not in the graph.
        let last = if view == ScheduleView::Timeline { None } else { Some("schedule_loops") };
        workspace.run(last, Verify::Off, &mut Vec::new())?;
        let kernel = KernelView::new(SchedulerView::new(workspace))?;
        Ok(match view {
            ScheduleView::Graph => graph_text::listing(&kernel),
            ScheduleView::Dot => graph_text::dot(&kernel),
            ScheduleView::Table => table::write(&kernel),
            ScheduleView::Operations => operations::write(&kernel)?,
            ScheduleView::Timeline => timeline::page(&kernel)?,
        })
    })
}
