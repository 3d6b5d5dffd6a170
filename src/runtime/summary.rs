//! A report as text: a line for each fact, as [`Report`]'s `Display` and the program's `run` print them.

use std::fmt;
use std::time::Duration;

use super::report::{ConversionReport, LdsAccessReport, MaskedAccessReport, Report, SplitAccessReport};
use crate::passes::options::Schedule;

/// Reductions whose orders are shown one by one.
const SHOWN_ORDERS: usize = 3;

/// Reads that turn tiles which are named.
const SHOWN_READS: usize = 3;

/// Conversions of layouts that are shown one by one.
const SHOWN_CONVERSIONS: usize = 3;

/// Columns that the names of lines take.
pub const NAME_COLUMNS: usize = 10;

impl Report {
    /// Name and text of each line about the code. If the schedule is the one asked for and no tile goes
    /// straight into LDS, there are no lines about them.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("registers", self.registers()), ("LDS", self.lds())];
        lines.extend(self.turned().map(|text| ("turned", text)));
        lines.push((
            "occupancy",
            format!("{} waves per SIMD, limited by {}", self.waves_per_simd, self.limited_by),
        ));
        self.instruction_lines(&mut lines);
        if let Some(access) = self.split_accesses.first() {
            lines.push(("split", format!("{access}{}", and_more(&self.split_accesses))));
        }
        if let Some(access) = self.masked_accesses.first() {
            lines.push(("masked", format!("{access}{}", and_more(&self.masked_accesses))));
        }
        if let Some(read) = self.unshared_reads.first() {
            let others = and_more(&self.unshared_reads);
            lines.push(("unshared", format!("read of {}{others}: {}", read.what, read.why)));
        }
        for conversion in self.conversions.iter().take(SHOWN_CONVERSIONS) {
            lines.push(("layout", conversion.to_string()));
        }
        if let Some(more @ 1..) = self.conversions.len().checked_sub(SHOWN_CONVERSIONS) {
            lines.push(("layout", format!("{more} more conversions")));
        }
        if !self.reductions.is_empty() {
            lines.push(("order", self.orders()));
        }
        if !self.schedule_why.is_empty() {
            lines.push(("schedule", format!("{}: {}", self.schedule_applied, self.schedule_why)));
        } else if self.schedule_requested != Schedule::None.name() {
            lines.push(("schedule", self.schedule_applied.to_owned()));
        }
        for choice in &self.schedule_choices {
            for candidate in &choice.candidates {
                lines.push((
                    "candidate",
                    match self.schedule_choices.len() {
                        1 => candidate.to_string(),
                        _ => format!("{}: {candidate}", choice.what),
                    },
                ));
            }
        }
        if self.direct_loads > 0 || !self.direct_loads_why.is_empty() {
            let tiles = format!("{} loaded straight into LDS", self.direct_loads);
            let why = &self.direct_loads_why;
            lines.push(("tiles", if why.is_empty() { tiles } else { format!("{tiles}: {why}") }));
        }
        lines
    }

    /// The lines about instructions.
    fn instruction_lines(&self, lines: &mut Vec<(&'static str, String)>) {
        if let Some(mix) = self.main_loop {
            let entries = mix.entries();
            let used = entries.iter().filter(|e| e.1 > 0).map(|(name, count)| format!("{count} {name}"));
            lines.push(("main loop", used.collect::<Vec<_>>().join(", ")));
        }
        if self.seldom_instructions > 0 {
            let count = self.seldom_instructions;
            lines.push((
                "seldom",
                format!("{count} instructions, left out where factors are one or masks hide nothing"),
            ));
        }
        let (parts, branches) = (self.loops_of_masks, self.branches_of_masks);
        let without = "tiles of which they hide nothing do without";
        if branches > 0 {
            let noun = if branches == 1 { "branch" } else { "branches" };
            lines.push(("masks", format!("stand under {branches} {noun}: {without}")));
        } else if parts > 0 {
            lines.push(("masks", format!("divide loops into {parts}: {without}")));
        }
        if self.stores.total() > 0 {
            let stores = self.stores.entries().map(|(bytes, count)| format!("{count} of {bytes} bytes"));
            lines.push(("stores", stores.collect::<Vec<_>>().join(", ")));
        }
    }

    /// The size of the code.
    pub fn size(&self) -> String {
        format!(
            "{} expanded nodes, {} instructions, {} bytes",
            self.expanded_nodes, self.instructions, self.code_bytes
        )
    }

    /// The hashes of the orders in which the kernel adds up.
    fn orders(&self) -> String {
        let shown = self.reductions.iter().take(SHOWN_ORDERS);
        let shown = shown.map(|tree| format!("{} over {} {:016x}", tree.operation, tree.dim, tree.hash));
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if let Some(more @ 1..) = self.reductions.len().checked_sub(SHOWN_ORDERS) {
            text += &format!(", and {more} more");
        }
        text
    }

    fn registers(&self) -> String {
        let scratch = match self.scratch_bytes {
            0 => "no scratch".to_string(),
            bytes => format!("{bytes} bytes of scratch"),
        };
        let spills = self.spills.as_ref().map_or(String::new(), |spills| format!("; {spills}"));
        format!("{} VGPRs, {} AGPRs, {} SGPRs, {scratch}{spills}", self.vgprs, self.agprs, self.sgprs)
    }

    /// Which reads of LDS turn their tiles, if there are any.
    fn turned(&self) -> Option<String> {
        let is_turned = |access: &&LdsAccessReport| access.kind == LdsAccessReport::TRANSPOSING_READ;
        let names: Vec<&str> = self.lds_accesses.iter().filter(is_turned).map(|a| &a.what[..]).collect();
        let shown = &names[..names.len().min(SHOWN_READS)];
        let more = match names.len() - shown.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        (!names.is_empty())
            .then(|| format!("{} by reads of LDS: {}{more}", tiles(names.len()), shown.join(", ")))
    }

    fn lds(&self) -> String {
        if self.lds_bytes == 0 {
            return "none".to_string();
        }
        let worst =
            self.lds_accesses.iter().max_by_key(|a| a.conflict_degree).filter(|a| a.conflict_degree > 1);
        let conflicts = match worst {
            None => "no bank conflicts".to_string(),
            Some(a) => {
                format!("bank conflicts up to degree {} ({} of {})", a.conflict_degree, a.kind, a.what)
            }
        };
        format!("{} bytes, {conflicts}", self.lds_bytes)
    }
}

/// So many tiles in words.
fn tiles(count: usize) -> String {
    match count {
        1 => "1 tile".to_owned(),
        count => format!("{count} tiles"),
    }
}

/// How many more there are than the first.
fn and_more<T>(all: &[T]) -> String {
    match all.len() {
        0 | 1 => String::new(),
        count => format!(", and {} more", count - 1),
    }
}

impl fmt::Display for SplitAccessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SplitAccessReport { kind, what, elements, possible, why, .. } = self;
        write!(f, "{kind} of {what}: {elements} of {possible} elements, as {why}")
    }
}

impl fmt::Display for MaskedAccessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} along {}", self.kind, self.memory, self.dims.join(", "))?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

impl fmt::Display for ConversionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [(self.vector_instructions, "vector"), (self.lds_instructions, "LDS")];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, unit)| format!("{count} {unit}")).collect();
        let counts = match &counts[..] {
            [] => "no instructions".to_string(),
            counts => format!("{} instructions", counts.join(" and ")),
        };
        let ConversionReport { what, user, way, from, to, .. } = self;
        write!(f, "{what} {}, {counts}: from {from} to {to}, for {user}", way.text())
    }
}

/// The summary that the program prints, without the parts about a launch.
///
/// ```
/// use groundswell::kernels::Gemm;
/// use groundswell::prelude::*;
///
/// let executable = Gemm::new(512, 512, 512).compile(Target::GFX942)?;
/// println!("{}", executable.report());
/// # Ok::<(), Diagnostic>(())
/// ```
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time: Duration = self.phases.iter().map(|phase| phase.1).sum();
        write!(f, "{:NAME_COLUMNS$} in {}, {}", "compiled", duration(time), self.size())?;
        self.lines().iter().try_for_each(|(name, text)| write!(f, "\n{name:NAME_COLUMNS$} {text}"))
    }
}

/// A time as people read it: `366.4 us`.
pub fn duration(time: Duration) -> String {
    let us = time.as_nanos() as f64 / 1000.0;
    match us {
        _ if us < 1.0 => format!("{:.0} ns", us * 1e3),
        _ if us < 1e3 => format!("{us:.1} us"),
        _ if us < 1e6 => format!("{:.2} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}
