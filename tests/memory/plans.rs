//! Plans of accesses: the identity, said or not, comes to the same instructions, and what immediates cannot
//! hold goes elsewhere, in each space.

use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};

/// The instructions of an executable whose names begin so, each with its immediate, sorted.
fn accesses(executable: &Executable, prefixes: &[&str]) -> Vec<(String, u32)> {
    let text = executable.assembly().expect("assembly");
    let access = |line: &str| {
        let (name, rest) = line.trim().split_once(' ')?;
        let immediate = rest.split_once(" offset:").map_or("0", |parts| parts.1);
        let digits = immediate.split(|c: char| !c.is_ascii_digit()).next()?;
        let wanted = prefixes.iter().any(|prefix| name.starts_with(prefix));
        let name = if rest.ends_with(" lds") { format!("{name} lds") } else { name.to_owned() };
        wanted.then(|| (name, digits.parse().unwrap_or(0)))
    };
    let mut found: Vec<(String, u32)> = text.lines().filter_map(access).collect();
    found.sort();
    found
}

/// Tiles, their waves and sizes, of which the last ones leave a part of a tile.
const COPIES: [([i64; 2], [i64; 2], [i64; 2]); 6] = [
    ([16, 64], [8, 64], [32, 128]),
    ([64, 32], [16, 32], [128, 4096]),
    ([8, 256], [8, 64], [16, 1024]),
    ([32, 64], [32, 32], [33, 74]),
    ([16, 64], [8, 64], [7, 75]),
    ([64, 64], [16, 64], [129, 2052]),
];

#[test]
fn an_identity_that_is_said_comes_to_the_same_accesses() {
    let [m, n] = symbols(["M", "N"]);
    for (number, (tile, waves, size)) in COPIES.into_iter().enumerate() {
        for dtype in [F32, F16, I8] {
            let copied = |is_said: bool| {
                let kernel = Kernel::trace("copied", |w| {
                    w.distribute([workgroup(m, tile[0], 0), workgroup(n, tile[1], 1)]);
                    w.distribute([wave(m, waves[0]), wave(n, waves[1])]);
                    let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, dtype));
                    match is_said {
                        true => w.write_at(w.read_at(a, (m, n), [m, n]), b, (m, n)),
                        false => w.write(w.read(a), b),
                    }
                });
                let kernel = kernel.expect("a valid kernel");
                let options = Options::new(Target::GFX942).set(m, size[0]).set(n, size[1]);
                let executable = verified(&kernel, &options);
                let value =
                    |symbol: Symbol| [(m, size[0]), (n, size[1])].iter().find(|s| s.0 == symbol).map(|s| s.1);
                let title = format!("copy {number} of {dtype}, said: {is_said}");
                assert_right(&kernel, &executable, &value, number as u64, title);
                accesses(&executable, &["buffer_load", "buffer_store"])
            };
            assert_eq!(copied(true), copied(false), "copy {number} of {dtype}");
        }
    }
}

#[test]
fn immediates_stay_within_what_instructions_of_a_space_hold() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a valid kernel");
    let mut largest = [0, 0];
    for (target, tile, brought) in [
        (Target::GFX942, [128, 128, 64], GlobalToShared::Off),
        (Target::GFX950, [256, 256, 64], GlobalToShared::Off),
        (Target::GFX950, [256, 256, 64], GlobalToShared::Fitting),
    ] {
        let mut options = Options::new(target).schedule(Schedule::Prefetch).global_to_shared(brought);
        for (name, value) in
            ["BLOCK_M", "BLOCK_N", "BLOCK_K", "M", "N", "K"].into_iter().zip([&tile[..], &[512; 3]].concat())
        {
            options = options.set(Symbol::new(name), value);
        }
        let executable = verified(&kernel, &options);
        for (at, (prefixes, limit)) in [(&["buffer_"], 1 << 12), (&["ds_"], 1 << 16)].into_iter().enumerate()
        {
            let found = accesses(&executable, prefixes);
            assert!(
                !found.is_empty() && found.iter().all(|access| access.1 < limit),
                "{target} {tile:?}: {found:?}"
            );
            largest[at] = found.iter().map(|access| access.1).max().unwrap_or(0).max(largest[at]);
        }
        // An immediate would move the place in LDS as well.
        let straight: Vec<(String, u32)> = accesses(&executable, &["buffer_load"]);
        let straight: Vec<_> = straight.iter().filter(|access| access.0.ends_with(" lds")).collect();
        assert!(straight.iter().all(|access| access.1 == 0), "{straight:?}");
    }
    assert!(largest[0] >= 1 << 9 && largest[1] >= 1 << 15, "{largest:?} at most: too little to tell");
}
