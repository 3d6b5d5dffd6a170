//! The checks of the fuzz targets, on inputs of their own.

#[path = "../../fuzz/checks/mod.rs"]
mod checks;

mod fuzz_smoke;
mod random_schedules;
