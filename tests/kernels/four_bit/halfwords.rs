//! Integers of 16 bits, of which two share a register, in every operation.

use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};

const TEXT: &str = "
kernel halfwords {
  workgroup M, 4, 0
  a = memory [M, N] global i16
  b = memory [M, N] global i16
  s = memory [M] global i16
  c = memory [M, N] global i16
  %x = read a
  %y = read b
  %r = read s
  %1 = add %x, %y
  %2 = sub %1, 7
  %3 = sub 100, %2
  %4 = mul %3, %y
  %5 = min %4, %x
  %6 = max %5, -300
  %7 = shift_left %6, %y
  %8 = shift_right %7, 3
  %9 = or %8, %x
  %10 = xor %9, 12345
  %11 = not %10
  %12 = and %11, %y
  %13 = add %12, %r
  %14 = shift_right %13, %r
  %15 = sub %14, %x
  write %15, c
}
";

#[test]
fn integers_of_16_bits_wrap_on_every_chip() {
    let kernel = Kernel::parse(TEXT, "halfwords.gsw").unwrap_or_else(|fault| panic!("{fault}"));
    for target in Target::ALL {
        for (seed, n) in [128, 77, 1, 2, 250].into_iter().enumerate() {
            let options = Options::new(target).set("M", 9).set("N", n);
            let executable = verified(&kernel, &options);
            let value = |symbol: Symbol| Some(if symbol.name() == "M" { 9 } else { n });
            assert_right(&kernel, &executable, &value, seed as u64, format!("{target}, {n} columns"));
        }
    }
}
