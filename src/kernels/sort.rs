//! Rows in order, by a network of exchanges among the elements that a wave holds.

use std::panic::Location as Caller;

use super::asked::asked_at;
use super::row_tile::check_rows;
use crate::prelude::*;

/// The longest row that a wave sorts.
const LONGEST: u32 = 1024;

/// Names of the digits of a place in a row, the least significant one first.
const DIGITS: [&str; 10] = ["D0", "D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9"];

/// Which elements of a sorted row come first.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum SortOrder {
    /// The least ones.
    Ascending,
    /// The greatest ones.
    Descending,
}

/// The elements of each row in order: for `a` of shape `[M, length]`, f16, bf16 or f32, and `b` of the same
/// shape and dtype. NaNs come after all numbers in both orders. Zeros are equal, whichever sign they have.
///
/// A row is a bitonic network (Batcher, "Sorting networks and their applications", 1968) over the next power
/// of two of elements: the place of an element is a number of binary digits, each a dimension of two
/// elements, and an exchange is the least and the greatest element along a digit. So `D0`, the least
/// significant one, to `D9` are bound to 2, as many as there are; [`sort_digits`] has them. A workgroup is a
/// wave, which sorts `BLOCK_M` rows. The read is tagged `read_a`.
///
/// # Errors
/// Another dtype, or rows that are not from 1 to 1024 elements long.
///
/// # Example
/// ```
/// use groundswell::kernels::{SortOrder, sort, sort_digits};
/// use groundswell::prelude::*;
///
/// let options = Options::new(Target::GFX942).set("M", 1).set("BLOCK_M", 1);
/// let options = sort_digits(5).fold(options, |options, (digit, size)| options.set(digit, size));
/// let executable = sort(F32, 5, SortOrder::Ascending)?.compile(&options)?;
///
/// let device = Device::open()?;
/// let a = device.upload(&[1f32, 7.0, -3.0, 7.0, 0.5])?;
/// let b = device.upload(&[0f32; 5])?;
/// device.launch(&executable).buffer(&a).buffer(&b).run()?;
/// assert_eq!(b.download::<f32>()?, [-3.0, 0.5, 1.0, 7.0, 7.0]);
/// # Ok::<(), Diagnostic>(())
/// ```
#[track_caller]
pub fn sort(dtype: DType, length: u32, order: SortOrder) -> Result<Kernel, Diagnostic> {
    let made = match sort_digits(length).count() {
        _ if !(1..=LONGEST).contains(&length) => {
            Err(Diagnostic::invalid(format!("a sort of {length} elements"))
                .help(format!("a wave sorts rows of 1 to {LONGEST} elements")))
        }
        1 => trace::<2>(dtype, length, order),
        2 => trace::<3>(dtype, length, order),
        3 => trace::<4>(dtype, length, order),
        4 => trace::<5>(dtype, length, order),
        5 => trace::<6>(dtype, length, order),
        6 => trace::<7>(dtype, length, order),
        7 => trace::<8>(dtype, length, order),
        8 => trace::<9>(dtype, length, order),
        9 => trace::<10>(dtype, length, order),
        _ => trace::<11>(dtype, length, order),
    };
    asked_at(Caller::caller(), made)
}

/// The digits of the places in rows of so many elements, for [`sort`], and the size of each.
pub fn sort_digits(length: u32) -> impl Iterator<Item = (&'static str, i64)> {
    let digits = length.clamp(2, LONGEST).next_power_of_two().ilog2();
    DIGITS.into_iter().take(digits as usize).map(|digit| (digit, 2))
}

/// The kernel with `DIMS - 1` digits.
fn trace<const DIMS: usize>(dtype: DType, length: u32, order: SortOrder) -> Result<Kernel, Diagnostic> {
    check_rows(dtype)?;
    let (m, n) = (Symbol::new("M"), Symbol::from(length));
    // The most significant digit comes first, behind the row.
    let dims: [Symbol; DIMS] =
        std::array::from_fn(|at| if at == 0 { m } else { Symbol::new(DIGITS[DIMS - 1 - at]) });
    let digit = |number: usize| dims[DIMS - 1 - number];
    let place = || {
        let digits = dims[1..].iter();
        digits.fold(SymExpr::from(0), |place, &digit| place * 2 + digit)
    };
    Kernel::trace("sort", |w| {
        w.distribute([workgroup(m, Symbol::new("BLOCK_M"), 0)]);
        let a = w.memory("a", [m, n], Global, dtype);
        let b = w.memory("b", [m, n], Global, dtype);
        let last = match order {
            SortOrder::Ascending => f64::INFINITY,
            SortOrder::Descending => f64::NEG_INFINITY,
        };
        let mut column = w.self_index(digit(0)).broadcast(dims);
        for number in 1..DIMS - 1 {
            column += w.self_index(digit(number)) * (1 << number);
        }
        let x = w.read_at(a, [m.into(), place()], dims).tag("read_a").cast(F32);
        let is_inside = column.less(w.size(n));
        // What is no number is sorted as infinities are, and counted: so many are at the end of the row.
        let is_number = x.equal(x);
        let mut numbers = w.select(is_inside, w.select(is_number, 1, 0), 0);
        for &digit in &dims[1..] {
            numbers = numbers.sum(digit);
        }
        let mut x = w.select(is_inside, w.select(is_number, x, last), last);
        for block in 1..DIMS {
            for exchanged in (0..block).rev() {
                let [least, greatest] = [x.min(digit(exchanged)), x.max(digit(exchanged))];
                let own = w.self_index(digit(exchanged)).broadcast(dims);
                // Runs of each length are in turn ascending and descending; the last run is the row.
                let is_first =
                    if block < DIMS - 1 { own.equal(w.self_index(digit(block))) } else { own.equal(0) };
                x = match order {
                    SortOrder::Ascending => w.select(is_first, least, greatest),
                    SortOrder::Descending => w.select(is_first, greatest, least),
                };
            }
        }
        x = w.select(column.less(numbers), x, f64::NAN);
        w.write_at(x.cast(dtype), b, [m.into(), place()]);
    })
}
