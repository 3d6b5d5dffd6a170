//! The report as text: the estimate, its limits, and the most expensive instructions with their reasons.

use std::fmt::{self, Write};

use super::Fidelity;
use super::record::Stall;
use super::report::{InstructionReport, TimeReport};

/// The most doubtful numbers that are named one by one.
const MOST_DOUBTS: usize = 8;

impl TimeReport {
    /// Writes the profile; `count` is the number of instructions.
    pub(crate) fn write_profile(&self, out: &mut dyn Write, count: usize) -> fmt::Result {
        self.write_estimate(out)?;
        self.write_limits(out)?;
        self.write_instructions(out, count)?;
        self.write_omissions(out)?;
        self.write_doubts(out)
    }

    /// The profile with the ten most expensive instructions.
    pub fn profile(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_profile(&mut text, 10);
        text
    }

    fn write_estimate(&self, out: &mut dyn Write) -> fmt::Result {
        let [x, y, z] = self.grid;
        let items: u64 = self.block.iter().map(|&n| u64::from(n)).product();
        let (e, unit) = (&self.estimate, &self.unit);
        let clock = &self.clock;
        writeln!(
            out,
            "{} on {} at {:.0} MHz ({}): {x} x {y} x {z} workgroups of {items}",
            self.kernel, self.device, clock.megahertz, clock.which
        )?;
        writeln!(
            out,
            "  estimate   {:.2} us, {:.2} us with launch; {:.1} Top/s, lanes {:.2} TB/s, HBM {:.2} TB/s",
            e.microseconds, e.microseconds_with_launch, e.tera_operations, e.bandwidth, e.memory_bandwidth
        )?;
        let ([least, most], (other, which)) = (e.microseconds_at_other_clock, clock.other());
        writeln!(out, "  other      {least:.2} to {most:.2} us at {other:.0} MHz ({which})")?;
        writeln!(
            out,
            "  unit       {} of its {} workgroups simulated, {} at a time (limited by {}), {} clk each",
            unit.workgroups,
            unit.assigned,
            self.workgroups_per_unit,
            self.limited_by,
            unit.clk_per_workgroup.round()
        )?;
        match (self.extent.fidelity, self.extent.why) {
            (Fidelity::Sampled, _) => {
                writeln!(
                    out,
                    "  sampled    what addresses and branches depend on, and a few trips of loops"
                )?;
            }
            (Fidelity::Full, Some(why)) => writeln!(out, "  in full    {why}")?,
            (Fidelity::Full, None) => {}
        }
        if let Some([least, most]) = unit.clk_of_workgroups {
            let (least, most) = (least.round(), most.round());
            writeln!(
                out,
                "  uneven     workgroups take {least} to {most} clk, and are dealt out one by one"
            )?;
        }
        if let Some(l) = &self.main_loop {
            let [first, last] = l.address;
            writeln!(
                out,
                "  main loop  {first:#x} to {last:#x}: {} clk per iteration of a wave, {:.1} of the unit",
                l.clk_per_iteration, l.unit_clk_per_iteration
            )?;
            writeln!(out, "  bound      {}", l.bound)?;
        }
        Ok(())
    }

    fn write_limits(&self, out: &mut dyn Write) -> fmt::Result {
        let pipes = self.pipes.iter().map(|p| format!("{} {:.0}%", p.name, 100.0 * p.utilisation));
        writeln!(out, "  pipes      {}", pipes.collect::<Vec<_>>().join(", "))?;
        let t = &self.unit.traffic;
        if t.l1_lines > 0 {
            let share = 100.0 * t.l1_hits as f64 / t.l1_lines as f64;
            writeln!(
                out,
                "  caches     L1 hits {share:.0}%; bytes from L2 {}, Infinity Cache {}, HBM {}",
                t.l2_bytes, t.mall_bytes, t.memory_read
            )?;
        }
        let all: u64 = self.instructions.iter().map(|i| self.cost(i)).sum::<u64>().max(1);
        let mut stalls: Vec<_> = self.stalls.iter().filter(|s| s.clk > 0).collect();
        stalls.sort_by_key(|s| std::cmp::Reverse(s.clk));
        let stalls = stalls.iter().map(|s| format!("{} {:.0}%", s.name, percent(s.clk, all)));
        writeln!(out, "  stalls     {}", stalls.collect::<Vec<_>>().join(", "))
    }

    fn write_instructions(&self, out: &mut dyn Write, count: usize) -> fmt::Result {
        let all: u64 = self.instructions.iter().map(|i| self.cost(i)).sum::<u64>().max(1);
        writeln!(out, "  most expensive instructions, in parts of the time of all waves")?;
        for instruction in self.most_expensive(count) {
            let cost = self.cost(instruction);
            writeln!(
                out,
                "    {:4.1}%  {:>8} x  {:6x}: {:<46} {}",
                percent(cost, all),
                instruction.issued,
                instruction.address,
                instruction.text,
                why(instruction, cost)
            )?;
        }
        Ok(())
    }

    /// Lists what pictures and listings do not show.
    fn write_omissions(&self, out: &mut dyn Write) -> fmt::Result {
        let (shown, all) = (self.timeline.events.len() as u64, self.unit.instructions);
        if shown > 0 && shown < all {
            writeln!(out, "  timeline   has the first {shown} of {all} issued instructions")?;
        }
        match self.instructions_left_out {
            0 => Ok(()),
            more => writeln!(out, "  listing    JSON and page leave out the last {more} instructions"),
        }
    }

    fn write_doubts(&self, out: &mut dyn Write) -> fmt::Result {
        if self.rests_on.is_empty() {
            return Ok(());
        }
        writeln!(out, "  rests on numbers of low confidence (L) or guesses (?)")?;
        // Guesses first.
        let mut doubts: Vec<_> = self.rests_on.iter().collect();
        doubts.sort_by_key(|d| std::cmp::Reverse(d.confidence));
        for d in doubts.iter().take(MOST_DOUBTS) {
            writeln!(out, "    {} {}: {} ({})", d.confidence, d.text, d.value, d.source)?;
        }
        match doubts.len().checked_sub(MOST_DOUBTS) {
            None | Some(0) => Ok(()),
            Some(more) => writeln!(out, "    and {more} more"),
        }
    }
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all as f64
}

/// The reasons that make up most of the cost, and what the instruction itself contributes to them.
fn why(instruction: &InstructionReport, cost: u64) -> String {
    let mut reasons: Vec<(u64, &str)> = Stall::ALL
        .into_iter()
        .map(|s| (instruction.stalls[s as usize], s.name()))
        .filter(|&(clk, _)| clk * 10 >= cost)
        .collect();
    reasons.sort_by_key(|&(clk, _)| std::cmp::Reverse(clk));
    let mut parts: Vec<String> =
        reasons.iter().map(|&(clk, name)| format!("{name} {:.0}%", percent(clk, cost))).collect();
    if parts.is_empty() {
        parts.push("issue".to_owned());
    }
    if instruction.bank_conflicts > 0 && instruction.issued > 0 {
        let each = instruction.bank_conflicts as f64 / instruction.issued as f64;
        parts.push(format!("{each:.1} clk of bank conflicts each"));
    }
    parts.join(", ")
}
