//! What tests and fuzz targets have in common: generated instructions ([`corpus`]) and
//! what is done with each ([`instructions`]), launches with exact results ([`exact_case`]) and such as the
//! interpreter judges ([`judged`]), what atomic updates do ([`atomics`]), kernels to compile ([`kernels`]) or
//! to assemble ([`by_hand`]), sizes of products in tiles ([`tiles`]), loops of a listing ([`loops`]), what
//! kernels mean after every pass ([`meaning`]), the LLVM tools to compare with ([`oracle`]) and what becomes
//! of tests without them ([`skipped`]), clang's objects ([`clang`]), a simulated device ([`simulated`]), what
//! every device does ([`device_suite`]), launches in check mode ([`checked`]) of kernels of this crate
//! ([`ours`]) and of clang, and what they become with a wait less ([`mutants`]), which of their stores all
//! waves make ([`same_in_waves`]), float formats and functions ([`floats`]), the 4-bit and 6-bit ones
//! ([`small_float`]), sizes and numbers for products of block floats ([`block_floats`]), kernels for time
//! mode ([`timed`]), files of the host with device code inside ([`host_files`]), random words
//! ([`random_words`]), lists of schedules ([`schedules`]), AMD's table of matrix instructions
//! ([`matrix_table`]), machine bodies with a wait less ([`weakened`]), what fuzz targets check ([`checks`]),
//! files of cases that are like each other ([`case_files`]), figures of pages ([`figures`]), and where files
//! are ([`places`]).

pub mod atomics;
pub mod block_floats;
pub mod by_hand;
pub mod case_files;
pub mod checked;
pub mod checks;
pub mod clang;
pub mod corpus;
pub mod device_suite;
pub mod exact_case;
pub mod figures;
pub mod floats;
pub mod host_files;
pub mod instructions;
pub mod judged;
pub mod kernels;
pub mod loops;
pub mod matrix_shapes;
pub mod matrix_table;
pub mod meaning;
pub mod mutants;
pub mod oracle;
pub mod ours;
pub mod places;
pub mod random_words;
pub mod ready_references;
pub mod ready_shapes;
pub mod same_in_waves;
pub mod schedules;
pub mod simulated;
pub mod skipped;
pub mod small_float;
pub mod tiles;
pub mod timed;
pub mod weakened;
