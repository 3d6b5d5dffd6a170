//! Twenty shapes of every ready kernel: aligned, ragged and of single elements, static and dynamic.

use groundswell::kernels::KernelEntry;

pub const SHAPES: usize = 20;

/// Sizes of rows and columns, some of them whole tiles.
const SIZES: [i64; SHAPES] = [1, 64, 5, 33, 128, 2, 65, 16, 100, 7, 96, 31, 3, 130, 32, 17, 48, 8, 127, 72];

/// Sizes of images, and of dimensions that are multiplied with others.
const FEW: [i64; 5] = [4, 7, 3, 12, 9];

/// What a symbol is in the shape with a number; none where its default or the others say it.
fn size(symbol: &str, number: usize, at: usize) -> Option<i64> {
    let few = FEW[(number * 3 + at) % FEW.len()];
    match symbol {
        "M" | "N" | "K" | "T" | "PAIRS" | "BINS" | "CHOICES" => {
            Some(SIZES[(number * (2 * at + 1) + 5 * at) % SHAPES])
        }
        "ROWS" => Some(32 << (number % 3)),
        "H" | "W" | "D0" | "D1" | "HEADS" => Some(few),
        "D2" | "D3" => Some(2 * few + 3),
        "B" | "BLOCKS" | "EXPERTS" | "WORKGROUPS" | "WORKERS" | "SPLITS" => Some(few.min(5)),
        "HF" | "WF" => Some(1 + (number as i64 + at as i64) % 3),
        "C" | "NF" | "C1" | "N1" => Some(8 * few),
        _ => None,
    }
}

/// A kernel's symbols in the shape with a number, and those that are left open.
pub fn shape(entry: &KernelEntry, number: usize) -> (Vec<(&'static str, i64)>, Vec<&'static str>) {
    // Images of convolutions and rows that follow from others keep what they mean.
    let is_image = entry.symbols.iter().any(|symbol| symbol.name == "HO");
    // Over pages the number of heads and groups follow from each other.
    let has = |name: &str| entry.symbols.iter().any(|symbol| symbol.name == name);
    let is_attention = has("D") && !has("PAGES");
    let given = |name: &str| {
        let at = entry.symbols.iter().position(|symbol| symbol.name == name)?;
        match name {
            "M" | "K" if is_image => None,
            "EXPERTS" if has("GROUPS") => None,
            "B" | "H" | "KV" | "GROUP" if is_attention => {
                let is_free = name != "H" || entry.symbols.iter().all(|symbol| symbol.name != "GROUP");
                is_free.then_some(1 + (number + at) as i64 % 3)
            }
            "N" if is_image => Some(1 + number as i64 % 3),
            _ => size(name, number, at),
        }
    };
    let values = entry.values(&given);
    let has_derived = |name: &str| entry.symbols.iter().any(|symbol| symbol.name == name);
    let is_open = |name: &&str| match *name {
        "M" => number % 2 == 1,
        "N" | "K" => number % 4 == 3 && has_derived("BLOCK_N") && has_derived("BLOCK_K"),
        _ => false,
    };
    let open = values.iter().map(|value| value.0).filter(is_open).collect();
    (values, open)
}
