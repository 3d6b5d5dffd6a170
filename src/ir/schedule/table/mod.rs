//! Schedules as files: a readable table of every node's cycle, which can be edited and compiled with.
//!
//! ```text
//! schedule table of gemm
//! requested: modulo
//!
//! loop 0 over K
//!   interval: 3            ; cycles from the start of one iteration to the start of the next
//!   stages: 2              ; follows from the cycles
//!   model: gfx942          ; machine that cycles belong to: `abstract`, or the name of the target
//!   checks: machine        ; `order`: dependences; `machine`: delays and units of the model too
//!   buffers: fitting       ; copies of LDS buffers: as many as it takes, or a number
//!   drain: epilogue        ; the last iterations end after the loop, or in the `loop`
//!
//!   slot  | global | shared | mma | valu | shuffle
//!   units | 1      | 1      | 1   | 1    | 1
//!   0     | 1      | 0      | 1   | 0    | 0
//!
//!   node              | cycle | slot | stage | what    | predecessors        | successors
//!   read_global.0.0.0 | 0     | 0    | 0     | @read_a |                     | write_shared.1.0.0 +0
//! ```
//!
//! Each line holds one thing; `;` begins a comment. Rows have cells between `|`, and a table begins with the
//! row that names its columns. Nodes, their cycles and the lines `interval`, `model`, `checks`, `buffers` and
//! `drain` decide; everything else is for the reader, and may be left out. Nodes are named by keys such as
//! `read_shared.3.5.0`. `+1` is the distance of a dependence in iterations.
//!
//! A table that is read back is judged like every schedule: all nodes once, dependences, LDS, trip counts,
//! and delays and units if it claims to respect them.

mod read;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::ir::diagnostic::{Diagnostics, Location};
use crate::ir::node::Drain;

/// Longest interval that schedulers consider. It bounds the size of reservation tables; a loop body of that
/// many cycles gains nothing from overlapping iterations.
pub(crate) const MOST_CYCLES: u32 = 1 << 16;

/// Last cycle that an assignment may have, so that sums of a few cycles do not wrap.
pub(crate) const LAST_CYCLE: i64 = 1 << 30;

/// How a loop is to be rebuilt, in addition to its assignment.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Request {
    /// Copies of every LDS buffer, instead of as many as the assignment needs.
    pub copies: Option<u32>,
    /// Where the later stages of the last iterations run.
    pub drain: Drain,
}

/// What an assignment respects.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Checks {
    /// The order of nodes that depend on each other. Cycles are phases, and a phase takes as long as its
    /// nodes do.
    #[default]
    Order,
    /// The delays and units of the chip's resource model.
    Machine,
}

/// A table of cycles that replaces the scheduler of loops. Cheap to clone; two tables are equal if their
/// texts are.
///
/// # Example
/// ```
/// use groundswell::schedule::table::ScheduleTable;
/// let text = "loop 0 over K\n interval: 2\n node | cycle\n read_global.0.0.0 | one\n";
/// let faults = ScheduleTable::parse(text, "k.table").unwrap_err();
/// assert_eq!(faults[0].message, "`one` is not a cycle");
/// assert_eq!(faults[0].location.as_ref().map(|at| (at.line, at.column)), Some((4, 22)));
/// ```
#[derive(Clone)]
pub struct ScheduleTable {
    data: Arc<TableData>,
}

struct TableData {
    text: String,
    loops: Vec<LoopTable>,
    /// The beginning of the text.
    location: Location,
}

/// The schedule of one loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopTable {
    /// Number of the loop in the kernel.
    pub number: u32,
    /// Name of its dimension.
    pub dim: Box<str>,
    /// Cycles from the start of one iteration to that of the next.
    pub interval: u32,
    /// Name of the model that cycles belong to; none where the table does not say it.
    pub model: Option<(Box<str>, Location)>,
    /// What the cycles respect.
    pub checks: Checks,
    /// How the loop is to be rebuilt.
    pub request: Request,
    /// Its nodes.
    pub rows: Vec<TableRow>,
    /// Where it is written.
    pub location: Location,
}

/// One node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableRow {
    /// The key of the node.
    pub key: Box<str>,
    /// Its cycle.
    pub cycle: u32,
    /// Where it is written.
    pub location: Location,
}

impl ScheduleTable {
    /// Reads a table. `file` is the name that diagnostics give the text.
    ///
    /// # Errors
    /// All mistakes found, in the order of the text, each with its line (at most twenty).
    pub fn parse(text: &str, file: &str) -> Result<ScheduleTable, Diagnostics> {
        let file: Arc<str> = file.into();
        let loops = read::read(text, &file).map_err(|faults| Diagnostics::of_text(faults, &file, text))?;
        let location = Location { file, line: 1, column: 1 };
        Ok(ScheduleTable { data: Arc::new(TableData { text: text.to_owned(), loops, location }) })
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.data.text
    }

    /// Its loops, as they are written.
    pub fn loops(&self) -> &[LoopTable] {
        &self.data.loops
    }

    /// The beginning of its text.
    pub fn location(&self) -> Location {
        self.data.location.clone()
    }
}

impl PartialEq for ScheduleTable {
    fn eq(&self, other: &ScheduleTable) -> bool {
        Arc::ptr_eq(&self.data, &other.data) || self.data.text == other.data.text
    }
}

impl Eq for ScheduleTable {}

impl Hash for ScheduleTable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.data.text.hash(state);
    }
}

/// The text.
impl fmt::Debug for ScheduleTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.data.text)
    }
}
