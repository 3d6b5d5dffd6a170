//! Sizes of ready products in tiles: M, N and K, and the part of each that a tile has.

use groundswell::prelude::*;

const NAMES: [&str; 6] = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];

/// The size that a symbol stands for.
pub fn size(sizes: [[i64; 3]; 2], symbol: Symbol) -> Option<i64> {
    NAMES.iter().zip(sizes.as_flattened()).find(|(name, _)| **name == symbol.name()).map(|(_, &size)| size)
}

/// Options with these sizes, of which those of the whole are known at the launch only if they are dynamic.
pub fn options(options: Options, sizes: [[i64; 3]; 2], dynamic: bool) -> Options {
    NAMES.iter().zip(sizes.as_flattened()).fold(options, |options, (&name, &size)| match dynamic {
        true if name.len() == 1 => options.dynamic(name),
        _ => options.set(name, size),
    })
}
