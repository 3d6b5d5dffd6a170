//! The cache of compilations: bounded by bytes, and useful to programs that cycle through more kernels
//! than fit.

use groundswell::cache;
use groundswell::kernels::{Waves, copy};
use groundswell::prelude::*;

/// Rounds through all kernels, and after how many of them hits are counted.
const ROUNDS: usize = 12;
const WARM: usize = 4;

#[test]
fn a_cycle_of_more_than_fits_finds_much_of_it_and_stays_in_bounds() {
    let kernel = copy(F32, Waves::new(1, 1)).expect("a valid kernel");
    let base = Options::new(Target::GFX942).set(Symbol::new("N"), 256);
    let base = base.set(Symbol::new("BLOCK_M"), 16).set(Symbol::new("BLOCK_N"), 64);
    let options = |number: usize| base.clone().set(Symbol::new("M"), 16 * (number as i64 + 1));
    kernel.compile(&options(0)).expect("compiles");
    let one = cache::usage().bytes;
    assert!((2_000..200_000).contains(&one), "{one} bytes for one kernel");

    let fits = 60;
    cache::set_limit(fits * one + one / 2);
    let number = fits as usize * 3 / 2;
    // An executable that comes back with the same bytes in the same place has not been compiled again.
    let mut last: Vec<Option<Executable>> = vec![None; number];
    let (mut hits, mut asked) = (0, 0);
    for round in 0..ROUNDS {
        for (at, last) in last.iter_mut().enumerate() {
            let now = kernel.compile(&options(at)).expect("compiles");
            let hit = last.as_ref().is_some_and(|last| last.object().as_ptr() == now.object().as_ptr());
            if round >= WARM {
                asked += 1;
                hits += usize::from(hit);
            }
            *last = Some(now);
            let usage = cache::usage();
            assert!(usage.bytes <= usage.limit, "{usage:?}");
        }
    }
    let percent = 100 * hits / asked;
    assert!(percent >= 40, "{percent}% of the compilations were found");
    assert!(cache::usage().entries as u64 >= fits * 9 / 10, "{:?}", cache::usage());

    cache::clear();
    let empty = cache::Usage { entries: 0, bytes: 0, limit: fits * one + one / 2 };
    assert_eq!(cache::usage(), empty);
    // Executables that are in use stay.
    assert!(last.iter().flatten().all(|executable| executable.object().starts_with(b"\x7fELF")));

    // What is larger than the whole cache is not kept, and compiles all the same.
    cache::set_limit(one / 2);
    kernel.compile(&options(0)).expect("compiles");
    assert_eq!(cache::usage().entries, 0);
    cache::set_limit(cache::DEFAULT_LIMIT);
}
