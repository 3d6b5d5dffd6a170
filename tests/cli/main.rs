//! The program, what it and other processes leave on disk, and what documentation shows of it. These tests
//! belong to the package of the program, as cargo tells them alone where it is.

#[path = "../common/figures.rs"]
mod figures;
#[path = "../common/host_files.rs"]
mod host_files;
#[path = "../common/kernels.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod kernels;
#[path = "../common/places.rs"]
mod places;

mod cli;
mod cli_bundles;
mod cli_exit_codes;
mod cli_generic;
mod cli_limits;
mod cli_outputs;
mod cli_packages;
mod cli_scalars;
mod cli_tune;
mod disk_cache;
mod documentation;
mod figures_of_kernels;
mod gallery;
mod program;
mod split_reasons;
