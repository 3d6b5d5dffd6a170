//! A server that compiles for every shape that arrives: one hundred thousand of them in one process, while
//! the cache and the process stay as small as they were told to.

use groundswell::cache;
use groundswell::kernels::{Waves, copy};
use groundswell::prelude::*;

const SHAPES: i64 = 100_000;
const LIMIT: u64 = 16 << 20;
/// What threads, their arenas and allocations that come and go take beside the cache.
const BESIDE: u64 = 24 << 20;

/// Bytes of memory that the process has, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

#[test]
fn a_hundred_thousand_shapes_stay_within_the_limit() {
    let kernel = copy(F32, Waves::new(1, 1)).expect("a valid kernel");
    let base = Options::new(Target::GFX942).set(Symbol::new("N"), 256);
    let base = base.set(Symbol::new("BLOCK_M"), 16).set(Symbol::new("BLOCK_N"), 64);
    let compile = |number: i64| {
        let options = base.clone().set(Symbol::new("M"), 16 * (number + 1));
        kernel.compile(&options).expect("compiles")
    };
    cache::set_limit(LIMIT);
    // What a process needs once: tables, and the arenas of two threads.
    let run = |range: std::ops::Range<i64>| {
        std::thread::scope(|scope| {
            for half in 0..2 {
                let compile = &compile;
                let numbers = range.clone().skip(half).step_by(2);
                scope.spawn(move || {
                    for number in numbers {
                        assert!(compile(number).object().starts_with(b"\x7fELF"));
                        if number % 1000 == 0 {
                            let usage = cache::usage();
                            assert!(usage.bytes <= LIMIT, "{usage:?}");
                        }
                    }
                });
            }
        });
    };
    run(0..200);
    let before = resident();
    run(200..SHAPES);
    let usage = cache::usage();
    assert!(usage.bytes <= LIMIT && usage.bytes > LIMIT / 2, "{usage:?}");
    if let (Some(before), Some(after)) = (before, resident()) {
        let grown = after.saturating_sub(before);
        assert!(grown <= LIMIT + BESIDE, "the process has grown by {grown} bytes, the limit is {LIMIT}");
        println!("grown by {} KiB beside a cache of {} KiB", grown >> 10, usage.bytes >> 10);
    }
    cache::set_limit(cache::DEFAULT_LIMIT);
}
