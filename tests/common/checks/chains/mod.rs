//! Chained products in a loop, as attention has them: a product, arithmetic on its result, masks of places
//! and of data, a softmax whose maximum and sum are carried with rescaling or are not, a cast, and one or two
//! products with the result; first products of two factors, a third product in the chain, first products in a
//! loop of their own, chains in a loop of a plain product and one after another. Tiles, waves, memories,
//! schedules, dtypes, chips and what a compilation may leave out are by choice, and sizes are ragged.
//! Each is compiled, run in check mode, and compared with the interpreter.

mod case;
mod generator;
mod masks;
mod scores;
mod softmax;

use super::{Choices, Outcome};

/// The check.
pub fn chains(data: &[u8]) -> Result<(), String> {
    chains_outcome(data).map(|_| ())
}

/// The same, telling whether the kernel ran.
pub fn chains_outcome(data: &[u8]) -> Result<Outcome, String> {
    let case = generator::case(&mut Choices::new(data));
    case.run().map_err(|fault| format!("{fault}\n{case}"))
}
