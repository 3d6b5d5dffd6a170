//! Tuning: the best kernel of a template for a shape, by time mode and without a GPU.
//!
//! A [`Template`] makes kernels for one task from a [`Point`]: a value for each choice of its
//! [`TuningSpace`]. The [`Tuner`] compiles candidates and lets a
//! [sample](crate::simulator::time::Fidelity::Sampled) of time mode judge them, on all cores, in an order
//! that a seed-free search decides: all of them, fewer at each of several lengths, or from the template's own
//! expectation to the neighbours of the best. The result is a [`Tuned`]: the ranking, what was left out and
//! why, and what the winner's time consists of. A [`Database`] keeps winners as text that can be merged.
//!
//! ```
//! use groundswell::prelude::*;
//! use groundswell::templates::Matmul;
//! use groundswell::tuning::{SearchLevel, Tuner};
//!
//! let matmul = Matmul::new([64, 256, 512]);
//! let tuned = Tuner::new(Target::GFX942)?.level(SearchLevel::Zero).tune(&matmul)?;
//! let executable = matmul.compile(Target::GFX942, &tuned.best().point)?;
//! assert_eq!(executable.parameters().len(), 3);
//! # Ok::<(), Diagnostic>(())
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `point` | values of choices, and their text |
//! | `space` | choices and constraints, and the points that they leave |
//! | `template` | what a template has to say |
//! | `judge` | what a candidate takes, and what of |
//! | `search` | which candidates are tried, in which order |
//! | `tuner` | the settings of a search, and its result |
//! | `database` | winners as text |

mod database;
mod judge;
mod point;
mod search;
mod space;
mod template;
mod tuner;

pub use database::{Database, WinnerKey, WinnerRecord};
pub use judge::{CandidateTime, TimeShares};
pub use point::{ChoiceValue, Point};
pub use search::{Budget, Search};
pub use space::{ConstraintCount, EnumeratedSpace, SearchLevel, TuningSpace};
pub use template::{InstanceKernel, Template};
pub use tuner::{JudgedCandidate, RefusedCandidate, Tuned, Tuner};
