//! What the fuzz targets check, as plain functions of bytes. The tests of `tests/fuzz_checks` run them too,
//! with bytes of their own.

mod assembler;
mod chains;
mod codegen;
mod factors;
mod kernel;
mod language;
mod loops;
mod memories;
mod numerics;
mod schedules;
mod simulator;
mod stages;

pub use assembler::assembler;
pub use chains::{chains, chains_outcome};
pub use codegen::{decoder, machine, object};
pub use factors::{factors, factors_outcome};
pub use kernel::{Outcome, kernel, kernel_outcome};
pub use language::{language, language_outcome, smaller_kernel};
pub use loops::{loops, loops_outcome};
pub use memories::{memories, memories_outcome};
pub use numerics::numerics;
pub use schedules::{Verdict, schedule_verdict, schedules};
pub use simulator::simulator;

use groundswell::author::Kernel;
use groundswell::schedule::WaveSchedule;
use groundswell::text::{Detail, parse_file};

/// A check: what is wrong, if something is. It must not panic either.
pub type Check = fn(&[u8]) -> Result<(), String>;

/// All checks.
pub const CHECKS: &[(&str, Check)] = &[
    ("text", text),
    ("decoder", decoder),
    ("object", object),
    ("machine", machine),
    ("assembler", assembler),
    ("kernel", kernel),
    ("memories", memories),
    ("numerics", numerics),
    ("loops", loops),
    ("chains", chains),
    ("language", language),
    ("factors", factors),
    ("simulator", simulator),
    ("schedules", schedules),
];

/// Bytes taken for a text kernel with or without a schedule, and for a schedule alone: it is read or refused;
/// what is read prints as something that reads back as the same.
pub fn text(data: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(data);
    match WaveSchedule::parse(&text, "fuzz") {
        Ok(alone) => schedule(&alone)?,
        Err(faults) if faults.is_empty() => return Err("refused without a fault".to_owned()),
        Err(_) => {}
    }
    let kernel = match parse_file(&text, "fuzz") {
        Ok((kernel, after)) => {
            after.iter().try_for_each(schedule)?;
            kernel
        }
        Err(faults) if faults.is_empty() => return Err("refused without a fault".to_owned()),
        Err(_) => return Ok(()),
    };
    for detail in [Detail::Identity, Detail::Source, Detail::Full] {
        let printed = kernel.text(detail);
        let again = Kernel::parse(&printed, "printed").map_err(|faults| format!("{printed}\n{faults:?}"))?;
        let twice = again.text(detail);
        if twice != printed {
            return Err(format!("printed:\n{printed}\nread and printed again:\n{twice}"));
        }
    }
    Ok(())
}

/// A schedule prints as something that reads back as the same.
fn schedule(schedule: &WaveSchedule) -> Result<(), String> {
    let printed = schedule.to_string();
    let again =
        WaveSchedule::parse(&printed, "printed").map_err(|faults| format!("{printed}\n{faults:?}"))?;
    let twice = again.to_string();
    if twice != printed || again != *schedule {
        return Err(format!("printed:\n{printed}\nread and printed again:\n{twice}"));
    }
    Ok(())
}

/// Operations on two numbers: floats have the first six, of which a quotient is not exact.
pub const OF_NUMBERS: &[&str] = &[
    "div",
    "add",
    "sub",
    "mul",
    "min",
    "max",
    "floor_div",
    "rem",
    "and",
    "or",
    "xor",
    "shift_left",
    "shift_right",
];

/// Bytes as a sequence of choices. When they are used up every choice is the first, so that fewer and smaller
/// bytes mean a simpler case.
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Choices from the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes }
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(first) % count.max(1)
    }

    /// One of `items`.
    pub fn one<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Happens once in `count` times; never when the bytes are used up.
    pub fn sometimes(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }
}
