//! Ready templates: kernels of `crate::kernels` whose hyper-parameters are the choices of a space, to be
//! tuned by [`crate::tuning`]. They are written with the public API alone, as templates of your own are.
//!
//! | file | what it makes |
//! | --- | --- |
//! | `matmul` | products of matrices: whole, or in parts of K |
//! | `ready` | any ready kernel: its blocks, waves and schedule |

mod matmul;
mod ready;

pub use matmul::Matmul;
pub use ready::ReadyTemplate;

use crate::prelude::*;

/// The words of schedules in spaces.
const SCHEDULES: [(&str, Schedule); 9] = [
    ("none", Schedule::None),
    ("prefetch", Schedule::Prefetch),
    ("four_stage", Schedule::FourStage),
    ("modulo", Schedule::Modulo),
    ("pingpong", Schedule::PingPong),
    ("quadrants", Schedule::Quadrants),
    ("interleaved", Schedule::Interleaved),
    ("two_phase", Schedule::TwoPhase),
    ("auto", Schedule::Automatic),
];

/// The schedule of that word.
fn schedule(word: &str) -> Result<Schedule, Diagnostic> {
    let found = SCHEDULES.iter().find(|schedule| schedule.0 == word);
    found.map(|schedule| schedule.1.clone()).ok_or_else(|| {
        let words: Vec<&str> = SCHEDULES.iter().map(|schedule| schedule.0).collect();
        Diagnostic::invalid(format!("no template takes the schedule `{word}`"))
            .help(format!("they take {}", words.join(", ")))
    })
}
