//! Schedules of loops: the compiler's own and those of authors, their results, their code and their times.

mod attention;
mod automatic_schedules;
mod barrier_roles;
mod clusters;
mod interleaved;
mod launch_edges;
mod manual_schedules;
mod quadrants;
mod schedule_times;
mod schedules;
mod searched;
mod two_phase;
mod unit_factors;
mod unroll_schedules;
