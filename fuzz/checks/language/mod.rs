//! Kernels of the whole language: values of all dtypes over any of three dimensions, arithmetic, functions,
//! casts, comparisons, places, mapped and indirect reads and writes, values at coordinates, LDS buffers and
//! their updates, logs, strides, scalars, reductions, scans, products, loops, `while` loops and conditionals
//! inside each other, with every way to spread the dimensions, orders, shared grids, chosen iterations and
//! every schedule. They are well typed by construction, and most of what they compute ends in a memory. A
//! kernel is refused with a reason, or means the same after every pass, gives what the interpreter gives, and
//! check mode finds nothing in it.

mod accesses;
mod case;
mod generator;
mod regions;
mod shrink;
mod values;

pub use shrink::smaller_kernel;

use std::fmt::Write;

use groundswell::options::Schedule;

use super::{Choices, Outcome};
use case::Case;
use generator::{DIMS, Generator, Spread};

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
    let mut sizes: Vec<(&str, i64, bool)> = Vec::new();
    let mut constraints = String::new();
    let mut spread = [Spread::Workgroups, Spread::No, Spread::Loop];
    let product = choices.one(&[
        None,
        Some(("f32_16x16x16_f16", "f16", "f32")),
        Some(("f32_16x16x16_bf16", "bf16", "f32")),
        Some(("i32_16x16x32_i8", "i8", "i32")),
        Some(("f32_16x16x4_f32", "f32", "f32")),
        Some(("f64_16x16x4_f64", "f64", "f64")),
        Some(("f32_16x16x32_f8e4m3fnuz", "f8e4m3fnuz", "f32")),
        Some(("f32_32x32x8_f16", "f16", "f32")),
    ]);
    // Matrix instructions want whole tiles of their own.
    let tiles: &[i64] = if product.is_some() { &[32, 64] } else { &[16, 32, 64, 8, 1] };
    let tile = choices.one(tiles);
    let axes = choices.one(&[[0, 1], [1, 0], [0, 2], [0, 3]]);
    let _ = writeln!(constraints, "  workgroup M, {tile}, {}", axes[0]);
    if choices.below(2) == 1 && tile > 1 {
        let waves = if product.is_some() { tile / 32 } else { choices.one(&[2, 2, 4, 8]).min(tile) };
        let _ = writeln!(constraints, "  wave M, {}", tile / waves);
    }
    sizes.push(("M", choices.one(&[16, 64, 5, 33, 1, 47]), choices.sometimes(4)));
    match choices.below(4) {
        0 => {
            spread[1] = Spread::Workgroups;
            let tile = choices.one(if product.is_some() { &[32, 64][..] } else { &[16, 32] });
            let _ = writeln!(constraints, "  workgroup N, {tile}, {}", axes[1]);
            sizes.push(("N", choices.one(&[16, 32, 40, 7]), choices.sometimes(4)));
        }
        1 => {
            let _ = writeln!(constraints, "  wave N, 32");
            sizes.push(("N", choices.one(&[32, 16, 5, 30]), false));
        }
        2 => {
            spread[1] = Spread::Loop;
            let tile = choices.one(if product.is_some() { &[32, 64][..] } else { &[16, 4] });
            let _ = writeln!(constraints, "  tile N, {tile}");
            sizes.push(("N", choices.one(&[32, 16, 5, 30]), choices.sometimes(4)));
        }
        _ => sizes.push(("N", choices.one(&[16, 4, 32, 1, 23]), false)),
    }
    match choices.below(3) {
        0 | 1 => {
            let tile = choices.one(if product.is_some() { &[32, 64][..] } else { &[32, 16, 4] });
            let _ = writeln!(constraints, "  tile K, {tile}");
            sizes.push(("K", choices.one(&[64, 32, 20, 100, 1]), choices.sometimes(3)));
            if choices.sometimes(5) {
                let [first, count] =
                    [&["0", "1", "workgroup_0", "L // 8"][..], &["2", "1", "0", "workgroup_0 + 1"]]
                        .map(|numbers| choices.one(numbers));
                let _ = writeln!(constraints, "  iterations K, {first}, {count}");
            }
        }
        _ => {
            spread[2] = Spread::No;
            sizes.push(("K", choices.one(&[16, 32, 2, 1, 11]), false));
        }
    }
    sizes.push(("L", choices.one(&[7, 64, 1]), choices.sometimes(4)));
    sizes.push(("LL", choices.one(&[5, 40]), choices.sometimes(4)));
    if choices.sometimes(5) {
        let order = choices.one(&["grouped 2", "xcd 8", "0, grid_0 - 1 - workgroup_0", "grouped 3"]);
        let _ = writeln!(constraints, "  reorder {order}");
    }
    if choices.sometimes(5) {
        let _ = writeln!(constraints, "  persistent {}", choices.one(&[1, 2, 3]));
    }
    if let Some((name, ..)) = product {
        let _ = writeln!(constraints, "  mma {name}");
    }
    let schedule = choices.one(&[
        Schedule::None,
        Schedule::Prefetch,
        Schedule::FourStage,
        Schedule::Modulo,
        Schedule::PingPong,
    ]);
    let seed = choices.below(256) as u64;
    let mut generator = Generator::new(&mut choices, spread);
    generator.product = product.map(|(_, factor, sum)| (factor, sum));
    generator.sizes = sizes.iter().map(|&(name, size, is_open)| (name.to_owned(), size, is_open)).collect();
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
    let is_used = |line: &&str| DIMS.iter().all(|dim| has(dim) || !line.contains(&format!(" {dim},")));
    let constraints: String = constraints.lines().filter(is_used).flat_map(|line| [line, "\n"]).collect();
    let text = format!("kernel language {{\n{constraints}{declarations}{allocations}{body}}}\n");
    Case { text, sizes, schedule, seed }
}
