//! Sizes and numbers for products of block floats: what every test of them multiplies.

/// M, N and K: whole tiles, ragged ones, blocks that K ends within, odd rows of 4-bit floats, one element.
pub const SHAPES: [[usize; 3]; 20] = [
    [64, 64, 256],
    [32, 32, 128],
    [1, 1, 1],
    [33, 50, 40],
    [17, 70, 96],
    [1, 64, 100],
    [64, 1, 33],
    [5, 5, 5],
    [16, 48, 384],
    [100, 31, 7],
    [31, 33, 31],
    [65, 65, 65],
    [2, 130, 20],
    [128, 32, 16],
    [40, 40, 200],
    [3, 3, 300],
    [63, 64, 129],
    [80, 16, 160],
    [1, 1, 777],
    [70, 90, 2],
];

/// Small numbers that every format holds.
pub fn number(at: usize) -> f64 {
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, -0.5, -1.0, -2.0, -6.0][(at * 7 + at / 11 * 5) % 11]
}

/// Scales from a quarter to 4.
pub fn scale(at: usize) -> f64 {
    [0.25, 0.5, 1.0, 2.0, 4.0][(at * 3 + at / 5) % 5]
}
