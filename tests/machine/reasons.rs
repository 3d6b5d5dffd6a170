//! What machine code says of its waits and barriers: each of them has a reason, and the rest is the code of
//! the executable.

use groundswell::compile::{machine_code_after, machine_code_with_reasons};
use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::prelude::*;
use groundswell_testing::tiles;

fn is_wait(line: &str) -> bool {
    ["s_waitcnt", "s_nop", "s_barrier"].iter().any(|word| line.trim_start().starts_with(word))
}

#[test]
fn each_wait_says_what_would_go_wrong_without_it() {
    let sizes = [("M", 256), ("N", 256), ("BLOCK_M", 16), ("BLOCK_N", 64)];
    let sized = |options: Options| sizes.iter().fold(options, |o, &(name, size)| o.set(name, size));
    let copy = copy(F32, Waves::new(4, 1)).expect("a kernel");
    let mut cases = vec![(copy, sized(Options::new(Target::GFX90A)))];
    for target in [Target::GFX906, Target::GFX908, Target::GFX942, Target::GFX950] {
        let gemm = Gemm::new(256, 256, 256);
        cases.push((gemm.kernel().expect("a kernel"), gemm.options(target)));
    }
    let mut waits = 0;
    for (kernel, options) in cases {
        let text = machine_code_with_reasons(&kernel, &options).expect("it compiles");
        let mut plain = String::new();
        for line in text.lines().skip_while(|line| line.starts_with("; ")) {
            let (code, reason) =
                line.split_once("    ; ").map_or((line, None), |(code, why)| (code, Some(why)));
            assert_eq!(reason.is_some(), is_wait(code), "{line}");
            let is_needed = reason.is_none_or(|why| why.starts_with("or: ") || why.starts_with("asked for"));
            assert!(is_needed, "{line}");
            waits += u32::from(reason.is_some_and(|why| why.starts_with("or: ")));
            plain += code;
            plain.push('\n');
        }
        assert_eq!(plain, machine_code_after(&kernel, &options, "hazards").expect("it compiles"));
    }
    assert!(waits > 60, "{waits}");
}

/// A barrier says what its node does: which accesses it keeps in order, or that a schedule has put it there.
#[test]
fn barriers_say_what_they_keep_in_order() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let barriers = |schedule: Schedule| {
        let options = Options::new(Target::GFX942).schedule(schedule);
        let options = tiles::options(options, [[256, 256, 512], [128, 256, 64]], false);
        let text = machine_code_with_reasons(&kernel, &options).expect("it compiles");
        let lines = text.lines().filter(|line| line.trim_start().starts_with("s_barrier"));
        lines.map(|line| line.split_once("    ; ").expect("a reason").1.to_owned()).collect::<Vec<_>>()
    };
    let placed = barriers(Schedule::None);
    assert!(placed.len() > 1, "{placed:?}");
    for reason in placed {
        let (later, earlier) = reason.split_once(" before the ").expect("two accesses");
        let is_access = |text: &str| ["read of ", "write of "].iter().any(|kind| text.starts_with(kind));
        assert!(is_access(later.trim_start_matches("or: the ")) && is_access(earlier), "{reason}");
        assert!(earlier.ends_with(" in all waves"), "{reason}");
    }
    let scheduled = barriers(Schedule::PingPong);
    let of_schedule = scheduled.iter().filter(|reason| *reason == "asked for by its loop's schedule");
    assert!(of_schedule.count() > 2, "{scheduled:?}");
}

/// What was decided before there was machine code stands at its head.
#[test]
fn layouts_splits_and_masks_are_at_the_head() {
    let gemm = Gemm::new(200, 256, 256);
    let text = machine_code_with_reasons(&gemm.kernel().expect("a kernel"), &gemm.options(Target::GFX942));
    let text = text.expect("it compiles");
    let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("; ")).collect();
    let masks = head
        .iter()
        .filter(|line| line.starts_with("; masked: ") && line.contains(" along M (200 in tiles of "));
    assert_eq!(masks.count(), head.len(), "{text}");
    assert!(!head.is_empty(), "{text}");
    // A layout says which operation needs it, a split what keeps it from being wider.
    let kernel = Kernel::trace("turned", |w| {
        let [m, n] = symbols(["M", "N"]);
        w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1), wave(m, 32), wave(n, 32)]);
        let (x, y) = (w.memory("x", [m, n], Global, F16), w.memory("y", [n, m], Global, F16));
        let shifted = w.read_at(x, [m.into(), SymExpr::from(n) + 1], [m, n]).tag("shifted");
        w.write(w.read(x).tag("plain") + shifted, y);
    });
    let options = Options::new(Target::GFX942).set("M", 64).set("N", 64);
    let text = machine_code_with_reasons(&kernel.expect("a kernel"), &options).expect("it compiles");
    let has =
        |start: &str, part: &str| text.lines().any(|line| line.starts_with(start) && line.contains(part));
    assert!(has("; layout: ", ", for add at tests/machine/reasons.rs:"), "{text}");
    let split = "; split: read of shifted: ";
    assert!(has(split, "as more are not certainly neighbours in memory"), "{text}");
    assert!(has("; masked: read of x along N (by its coordinates)", ""), "{text}");
    // A load straight into LDS is a read of global memory.
    let gemm = Gemm::new(256, 256, 250);
    let options = gemm.options(Target::GFX950).global_to_shared(GlobalToShared::Fitting);
    let text = machine_code_with_reasons(&gemm.kernel().expect("a kernel"), &options).expect("it compiles");
    let masked =
        text.lines().filter(|line| line.starts_with("; masked: read of a along K (250 in tiles of "));
    assert!(masked.count() > 0 && text.contains(" offen lds"), "{text}");
    // What a loop of the author's makes of one access is one line.
    let kernel = Kernel::trace("taps", |w| {
        let [m, n] = symbols(["M", "N"]);
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
        let [x, y] = ["x", "y"].map(|name| w.memory(name, [m, n], Global, F32));
        let taps: Vec<_> =
            (1..=3).map(|by| w.read_at(x, [SymExpr::from(m) + by, n.into()], [m, n])).collect();
        w.write(taps[0] + taps[1] + taps[2], y);
    });
    let options = Options::new(Target::GFX942).set("M", 60).set("N", 64);
    let text = machine_code_with_reasons(&kernel.expect("a kernel"), &options).expect("it compiles");
    let reads = text.lines().filter(|line| line.starts_with("; masked: read of ")).collect::<Vec<_>>();
    let ends = "along M (60 in tiles of 16), M (by its coordinates): coordinates of what does not exist lead \
                anywhere (3 of them)";
    assert!(matches!(&reads[..], [line] if line.ends_with(ends)), "{text}");
}
