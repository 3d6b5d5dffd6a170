//! Rows and columns of matrices for tests of memories.

/// Aligned, ragged, single and odd.
pub const SHAPES: [[usize; 2]; 20] = [
    [1, 1],
    [3, 5],
    [16, 64],
    [37, 130],
    [64, 1],
    [1, 200],
    [65, 257],
    [2, 2],
    [1, 2],
    [4, 64],
    [2, 7],
    [5, 16],
    [17, 33],
    [16, 16],
    [32, 8],
    [100, 3],
    [4, 128],
    [15, 31],
    [33, 65],
    [7, 77],
];
