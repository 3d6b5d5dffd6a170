//! The strategies, one row each. The program's words, its help and reports are read from here.

use bevy_ecs::prelude::*;

use super::ping_pong::quadrants;
use super::strategy::{Asked, Find, Model, Strategy};
use super::{automatic, clusters, four_stage, interleaved, modulo, ping_pong, prefetch, two_phase};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::schedule::table::Checks;
use crate::passes::options::Schedule;
use crate::passes::schedule::apply::record::LoopRecord;
use crate::passes::schedule::author::{manual, table};
use crate::passes::schedule::graph::view::Scheduling;
use crate::spelling::closest;

/// No schedule.
pub static NONE: Strategy = Strategy {
    name: "none",
    about: "As written: loads, LDS, compute, one iteration after the other",
    asked: Asked::ByName(|| Schedule::None),
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::AsWritten,
    spares_search: false,
};

/// Two stages.
pub static PREFETCH: Strategy = Strategy {
    name: "prefetch",
    about: "Two stages: the next iteration's global loads and LDS writes beside this one's LDS reads and arithmetic",
    asked: Asked::ByName(|| Schedule::Prefetch),
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Cycles(|graph, _| prefetch::schedule(graph)),
    spares_search: false,
};

/// Four stages.
pub(crate) static FOUR_STAGE: Strategy = Strategy {
    name: "four_stage",
    about: "Four stages, one for each step of an iteration's data: global load, LDS write, LDS read, arithmetic",
    asked: Asked::ByName(|| Schedule::FourStage),
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Cycles(|graph, _| four_stage::schedule(graph)),
    spares_search: false,
};

/// The least interval.
pub(crate) static MODULO: Strategy = Strategy {
    name: "modulo",
    about: "The least interval between iterations that units and dependences of the target allow",
    asked: Asked::ByName(|| Schedule::Modulo),
    model: Model::Chip,
    checks: Checks::Machine,
    find: Find::Cycles(modulo::schedule),
    spares_search: false,
};

/// Waves that take turns.
pub static PING_PONG: Strategy = Strategy {
    name: "pingpong",
    about: "Prefetching, with two waves per SIMD that take turns: one computes while the other moves data",
    asked: Asked::ByName(|| Schedule::PingPong),
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Operations { write: ping_pong::write, otherwise: &PREFETCH },
    spares_search: false,
};

/// Waves that take turns quadrant by quadrant.
pub(crate) static QUADRANTS: Strategy = Strategy {
    name: "quadrants",
    about: "Ping-pong quadrant by quadrant of a wave's tile: fewer registers, and LDS refilled half a tile at a time",
    asked: Asked::ByName(|| Schedule::Quadrants),
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Operations { write: quadrants::write, otherwise: &PING_PONG },
    spares_search: false,
};

/// Waves that move data between matrix instructions.
pub(crate) static INTERLEAVED: Strategy = Strategy {
    name: "interleaved",
    about: "Prefetching, with each wave's loads, LDS writes and reads spread between its matrix instructions",
    asked: Asked::ByName(|| Schedule::Interleaved),
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Operations { write: interleaved::write, otherwise: &PREFETCH },
    spares_search: false,
};

/// Waves that multiply while others compute what stands between products.
pub(crate) static TWO_PHASE: Strategy = Strategy {
    name: "two_phase",
    about: "Loops of several products: of two waves per SIMD one multiplies while the other does everything else",
    asked: Asked::ByName(|| Schedule::TwoPhase),
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Operations { write: two_phase::write, otherwise: &PREFETCH },
    spares_search: true,
};

/// Waves that multiply and compute while others read the factors of their next product.
pub(crate) static CLUSTERS: Strategy = Strategy {
    name: "clusters",
    about: "Loops of several products: of two waves per SIMD one multiplies and computes while the other moves data",
    asked: Asked::ByName(|| Schedule::Clusters),
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Operations { write: clusters::write, otherwise: &TWO_PHASE },
    spares_search: true,
};

/// Whichever of these takes the fewest clocks.
pub(crate) static AUTOMATIC: Strategy = Strategy {
    name: "auto",
    about: "Whichever of the schedules above takes the fewest clocks per iteration on the target, loop by loop",
    asked: Asked::ByName(|| Schedule::Automatic),
    model: Model::Chip,
    checks: Checks::Order,
    find: Find::Cheapest {
        choose: automatic::schedule,
        among: &[
            &NONE,
            &PREFETCH,
            &FOUR_STAGE,
            &MODULO,
            &PING_PONG,
            &QUADRANTS,
            &INTERLEAVED,
            &TWO_PHASE,
            &CLUSTERS,
        ],
    },
    spares_search: false,
};

/// An author's operations.
pub(crate) static MANUAL: Strategy = Strategy {
    name: "manual",
    about: "The `schedule` block after a text kernel",
    asked: Asked::ByBlock,
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Kernel(|kernel, _, asked| manual::schedule(kernel, asked, schedule_by_name)),
    spares_search: false,
};

/// A table of cycles; each loop's part of it says which machine it is made for and what it respects.
pub(crate) static TABLE: Strategy = Strategy {
    name: "table",
    about: "The cycles of a table that was written before",
    asked: Asked::ByFile,
    model: Model::Abstract,
    checks: Checks::Order,
    find: Find::Kernel(table::schedule),
    spares_search: false,
};

/// A bounded search, which is made before a compilation: what it finds is an author's schedule.
pub static SEARCH: Strategy = Strategy {
    name: "search",
    about: "What small changes of the schedules above make shorter still, by the same estimate",
    asked: Asked::ByFile,
    ..AUTOMATIC
};

/// All strategies that a compilation knows.
pub static STRATEGIES: [&Strategy; 12] = [
    &NONE,
    &PREFETCH,
    &FOUR_STAGE,
    &MODULO,
    &PING_PONG,
    &QUADRANTS,
    &INTERLEAVED,
    &TWO_PHASE,
    &CLUSTERS,
    &AUTOMATIC,
    &MANUAL,
    &TABLE,
];

impl Schedule {
    /// The strategy that this asks for.
    pub fn strategy(&self) -> &'static Strategy {
        match self {
            Schedule::None => &NONE,
            Schedule::Prefetch => &PREFETCH,
            Schedule::FourStage => &FOUR_STAGE,
            Schedule::Modulo => &MODULO,
            Schedule::PingPong => &PING_PONG,
            Schedule::Quadrants => &QUADRANTS,
            Schedule::Interleaved => &INTERLEAVED,
            Schedule::TwoPhase => &TWO_PHASE,
            Schedule::Clusters => &CLUSTERS,
            Schedule::Automatic => &AUTOMATIC,
            Schedule::Manual(_) => &MANUAL,
            Schedule::Table(_) => &TABLE,
        }
    }

    /// The name of its strategy.
    pub fn name(&self) -> &'static str {
        self.strategy().name
    }

    /// Every schedule that a name asks for, in the order of [`STRATEGIES`].
    pub fn named() -> impl Iterator<Item = Schedule> {
        STRATEGIES.iter().filter_map(|strategy| strategy.option())
    }

    /// The schedule that a name asks for.
    ///
    /// # Errors
    /// No schedule has the name, or it takes more than that to ask for it.
    pub fn from_name(name: &str) -> Result<Schedule, Diagnostic> {
        strategy_of_loop(name).map(|(_, schedule)| schedule)
    }
}

/// The strategy of a name that may be asked for by it.
fn strategy_of_loop(name: &str) -> Result<(&'static Strategy, Schedule), Diagnostic> {
    let asked = named(name).and_then(|row| Some((row, row.option()?)));
    asked.ok_or_else(|| {
        let words = || Schedule::named().map(|schedule| schedule.name());
        let fault = Diagnostic::invalid(format!("there is no schedule `{name}` for a loop"));
        match closest(name, words()) {
            Some(close) => fault.help(format!("did you mean `{close}`?")),
            None => fault.help(format!("the schedules are {}", words().collect::<Vec<_>>().join(", "))),
        }
    })
}

/// Schedules a loop by the strategy that an author's schedule names for it.
fn schedule_by_name(
    kernel: &mut Scheduling,
    place: [Entity; 2],
    name: &str,
) -> Result<LoopRecord, Diagnostic> {
    let (row, _) = strategy_of_loop(name)?;
    Ok(row.schedule_loop(kernel, place)?.by(row.name))
}

/// The strategy of a name.
pub fn named(name: &str) -> Option<&'static Strategy> {
    STRATEGIES.iter().find(|row| row.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_options_name_each_other() {
        for row in STRATEGIES {
            assert_eq!(named(row.name).map(|found| found.about), Some(row.about));
            if let Some(option) = row.option() {
                assert_eq!(option.name(), row.name);
            }
        }
    }
}
