//! Lists of schedules that tests go through.

use groundswell::prelude::Schedule;

/// Those of loops of any kind.
pub const GENERAL: [Schedule; 5] =
    [Schedule::None, Schedule::Prefetch, Schedule::Modulo, Schedule::FourStage, Schedule::PingPong];

/// And those of products with tiles of any size.
pub const OF_PRODUCTS: [Schedule; 8] = [
    Schedule::None,
    Schedule::Prefetch,
    Schedule::FourStage,
    Schedule::Modulo,
    Schedule::PingPong,
    Schedule::Interleaved,
    Schedule::TwoPhase,
    Schedule::Clusters,
];

/// All, with the one that the compiler chooses.
pub const ALL: [Schedule; 10] = [
    Schedule::None,
    Schedule::Prefetch,
    Schedule::FourStage,
    Schedule::Modulo,
    Schedule::PingPong,
    Schedule::Quadrants,
    Schedule::Interleaved,
    Schedule::TwoPhase,
    Schedule::Clusters,
    Schedule::Automatic,
];
