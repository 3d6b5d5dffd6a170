//! What a trip of a loop would take on the chip, before the loop is rebuilt.
//!
//! A [`trip::PlannedTrip`] is what waves would do, step by step ([`steps`]); [`node_code`] is what its nodes
//! become, of which `program_writer` makes the [`program`] of the trip, in the order that `interleaving`
//! gives it; [`unit`] runs a few trips of the waves that a compute unit holds, with the numbers of the device
//! that stands for the chip, and `load_path` is their way to memory; [`needs`] are the times that no order
//! makes shorter. Authors' schedules, of which ping-pong and interleaving are two, are read on paper
//! ([`sketch`]).

mod barriers;
mod interleaving;
mod load_path;
pub(crate) mod needs;
pub(crate) mod node_code;
pub(crate) mod program;
mod program_writer;
pub(crate) mod sketch;
pub(crate) mod steps;
pub(crate) mod trip;
pub(crate) mod unit;
