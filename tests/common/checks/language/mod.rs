//! Kernels of the whole language: values of all dtypes over any of three dimensions, arithmetic, functions,
//! casts, comparisons, places, mapped and indirect reads and writes, values at coordinates, LDS buffers and
//! their updates, logs, strides, scalars, reductions, scans, products, loops, `while` loops and conditionals
//! inside each other, with every way to spread the dimensions, orders, shared grids, chosen iterations and
//! every schedule. They are well typed by construction, and most of what they compute ends in a memory. A
//! kernel is refused with a reason, or means the same after every pass, gives what the interpreter gives, and
//! check mode finds nothing in it.

mod accesses;
mod case;
mod distribution;
mod generator;
mod regions;
mod shrink;
mod values;

pub use shrink::smaller_kernel;

use groundswell::options::{GlobalToShared, Schedule};

use super::{Choices, Outcome};
use case::Case;
use distribution::Distribution;
use generator::{DIMS, Generator};

/// The check.
pub fn language(data: &[u8]) -> Result<(), String> {
    language_outcome(data).map(|_| ())
}

/// The same, telling whether the kernel ran.
pub fn language_outcome(data: &[u8]) -> Result<Outcome, String> {
    let case = generated(data);
    case.run().map_err(|fault| format!("{fault}\n{case}"))
}

/// A kernel with sizes and options, all by choice.
fn generated(data: &[u8]) -> Case {
    let mut choices = Choices::new(data);
    let is_exact = choices.below(2) == 1;
    let Distribution { constraints, sizes, spread, extents, product, is_counted, has_follower } =
        Distribution::new(&mut choices);
    let schedule = choices.one(&[
        Schedule::None,
        Schedule::Prefetch,
        Schedule::FourStage,
        Schedule::Modulo,
        Schedule::PingPong,
    ]);
    let loads = if choices.sometimes(4) { GlobalToShared::Fitting } else { GlobalToShared::Off };
    let seed = choices.below(256) as u64;
    let mut generator = Generator::new(&mut choices, spread);
    (generator.is_exact, generator.has_follower) = (is_exact, has_follower);
    generator.extents = extents;
    generator.product = product.map(|(_, factor, sum)| (factor, sum));
    generator.sizes = sizes.iter().map(|&(name, size, is_open)| (name.to_owned(), size, is_open)).collect();
    if is_counted {
        generator.count();
    }
    generator.read();
    for _ in 0..2 + generator.choices.below(16) {
        generator.step();
    }
    // What nothing uses is written.
    for idle in generator.idle(0) {
        generator.write(idle);
    }
    let Generator { declarations, allocations, body, sizes, .. } = generator;
    // A dimension that nothing has cannot be spread.
    let has = |dim: &str| {
        let of_dim = |word: &str| word == dim;
        let words = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(of_dim);
        words(&declarations) || words(&body)
    };
    let is_used = |line: &&str| {
        let names =
            |dim: &str| line.contains(&format!(" {dim},")) || line.contains(&format!("assume {dim} "));
        DIMS.iter().chain(&["F"]).all(|dim| has(dim) || !names(dim))
    };
    let constraints: String = constraints.lines().filter(is_used).flat_map(|line| [line, "\n"]).collect();
    let text = format!("kernel language {{\n{constraints}{declarations}{allocations}{body}}}\n");
    Case { text, sizes, schedule, loads, seed }
}
