//! 4-bit floats by a table and a search through it, and shapes for tests of them.

/// The numbers whose sign is not set, by their codes, as OCP's "Microscaling formats" lists them.
const NUMBERS: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// Sizes of M and K: whole bytes and tiles, odd rows, and neither.
pub const SHAPES: [[usize; 2]; 20] = [
    [16, 64],
    [32, 128],
    [8, 256],
    [16, 2],
    [16, 96],
    [1, 1],
    [1, 3],
    [3, 33],
    [5, 63],
    [7, 65],
    [16, 100],
    [17, 127],
    [20, 129],
    [33, 201],
    [2, 257],
    [4, 320],
    [31, 31],
    [9, 95],
    [15, 192],
    [19, 161],
];

/// The number of a code.
pub fn number_of(code: u8) -> f64 {
    let magnitude = NUMBERS[usize::from(code & 7)];
    if code & 8 == 0 { magnitude } else { -magnitude }
}

/// The code of the nearest number; of two that are equally near the even one. A NaN becomes 6.
pub fn nearest_code(x: f64) -> u8 {
    if x.is_nan() {
        return 7;
    }
    let sign = if x.is_sign_negative() { 8 } else { 0 };
    let magnitude = x.abs().min(8.0);
    let away = |code: u8| (NUMBERS[usize::from(code)] - magnitude).abs();
    let better = |best: u8, code: u8| match away(code).total_cmp(&away(best)) {
        std::cmp::Ordering::Less => code,
        std::cmp::Ordering::Equal if code.is_multiple_of(2) => code,
        _ => best,
    };
    sign | (1..8).fold(0, better)
}
