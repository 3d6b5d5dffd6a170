//! The checks of the fuzz targets, on inputs of their own.

mod fuzz_smoke;
mod random_schedules;
