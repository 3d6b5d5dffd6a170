//! Volatile and non-temporal accesses: what they do to the code, and that masks stay; every launch against
//! plain loops.

use groundswell::compile::listing;
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, of_numbers, ones, tensor};
use groundswell_testing::judged::verified;
use groundswell_testing::matrix_shapes::SHAPES;

/// How many instructions of the kernel begin with a word and end with modifiers.
fn count(executable: &Executable, word: &str, modifiers: &str) -> usize {
    let text = listing(executable.code(), executable.target().arch).expect("decodes");
    let is_one = |line: &&str| {
        let line = line.split("//").next().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        line.starts_with(word) && (modifiers.is_empty() || line.ends_with(modifiers))
    };
    text.lines().filter(is_one).count()
}

/// Plain, mapped and split accesses with every combination of flags.
#[test]
fn masks_stay() {
    let [dm, dn] = symbols(["M", "N"]);
    type Flags = fn(MemoryRef) -> MemoryRef;
    let flags: [(Flags, &str); 3] = [
        (MemoryRef::volatile, "sc0 sc1"),
        (MemoryRef::non_temporal, "nt"),
        (|memory| memory.volatile().non_temporal(), "sc0 nt sc1"),
    ];
    for (flag, bits) in flags {
        for mapped in [false, true] {
            for (at, [m, n]) in SHAPES.into_iter().enumerate() {
                for dynamic in [[vec![], vec!["M", "N"]][at % 2].clone()] {
                    let kernel = Kernel::trace("flagged", |w| {
                        w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1), wave(dm, 8)]);
                        let a = w.memory("a", [dm, dn], Global, F16);
                        let t = w.memory("t", [dn, dm], Global, F16);
                        let b = w.memory("b", [dm, dn], Global, F16);
                        if mapped {
                            let x = w.read_at(flag(t), (dn, dm), [dm, dn]);
                            w.write_at(x + w.read(flag(a)), flag(b), (dm, dn));
                        } else {
                            w.write(w.read(flag(a)) * 2.0, flag(b));
                        }
                    })
                    .expect("well-formed");
                    let inputs = vec![tensor(F16, &[m, n]), tensor(F16, &[n, m]), ones(F16, &[m, n])];
                    let turned = |at: usize| number(at % n * m + at / n);
                    let element = |at: usize| number(at) + if mapped { turned(at) } else { number(at) };
                    let expected = (0..m * n).map(element).collect();
                    let name = format!("{bits} {m}x{n} mapped {mapped} {dynamic:?}");
                    let case = Case::plain(name, kernel, &[("M", m), ("N", n)], inputs);
                    let executable = Case { expected, dynamic: dynamic.clone(), ..case }.check();
                    for word in ["buffer_load", "buffer_store"] {
                        let [all, flagged] = ["", bits].map(|end| count(&executable, word, end));
                        assert!(all > 0 && all == flagged, "{word} {bits}: {flagged} of {all}");
                    }
                }
            }
        }
    }
}

/// Products whose tiles are loaded without being kept in caches, through registers, straight to LDS, and
/// pipelined; and with volatile reads, which do not go through LDS.
#[test]
fn tiles_in_lds_are_loaded_with_flags() {
    let [dm, dn, dk] = symbols(["M", "N", "K"]);
    let kernel = |volatile: bool| {
        Kernel::trace("product", |w| {
            w.distribute([workgroup(dm, 64, 0), workgroup(dn, 64, 1), tile(dk, 32), wave(dm, 32)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            let [a, b] = [("a", dm), ("b", dn)].map(|(name, rows)| w.memory(name, [rows, dk], Shared, F16));
            let b = if volatile { b.volatile() } else { b.non_temporal() };
            let c = w.memory("c", [dm, dn], Global, F32);
            let zero = w.register([dm, dn], F32, 0.0);
            let [sum] = w.iterate(dk, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            w.write(sum, c);
        })
        .expect("well-formed")
    };
    for [m, n, k] in [[64, 64, 64], [70, 50, 100], [128, 64, 31]] {
        for schedule in [Schedule::None, Schedule::Prefetch] {
            for volatile in [false, true] {
                let small = |at: usize| (at % 3) as f64 - 1.0;
                let [a, b] = [m * k, n * k].map(|count| (0..count).map(small).collect::<Vec<_>>());
                let dot = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[at % n * k + i]).sum::<f64>();
                let expected = (0..m * n).map(dot).collect();
                let inputs =
                    vec![of_numbers(F16, &[m, k], &a), of_numbers(F16, &[n, k], &b), ones(F32, &[m, n])];
                let name = format!("{m}x{n}x{k} {schedule:?} volatile {volatile}");
                let case = Case::plain(name, kernel(volatile), &[("M", m), ("N", n), ("K", k)], inputs);
                let executable = Case { expected, schedule: schedule.clone(), ..case }.check();
                let bits = if volatile { "sc0 sc1" } else { "nt" };
                let [all, flagged] = ["", bits].map(|end| count(&executable, "buffer_load", end));
                assert!(0 < flagged && flagged < all, "{flagged} of {all}");
            }
        }
    }
    let options = Options::new(Target::GFX942).set(dm, 64).set(dn, 64).set(dk, 64);
    let options = options.global_to_shared(GlobalToShared::Fitting);
    let executable = verified(&kernel(false), &options);
    assert!(count(&executable, "buffer_load", "nt lds") > 0);
}

/// Volatile accesses are made as often as they are written: they are not merged, taken out of loops or left
/// out, and no loop that holds one is pipelined.
#[test]
fn volatile_accesses_are_made_as_written() {
    let [dm, dn] = symbols(["M", "N"]);
    let loads = |volatile: bool| {
        let kernel = || {
            let kernel = Kernel::trace("often", |w| {
                w.distribute([workgroup(dm, 64, 0), tile(dn, 4)]);
                let a = w.memory("a", [dm], Global, F32);
                let a = if volatile { a.volatile() } else { a };
                let b = w.memory("b", [dm], Global, F32);
                let zero = w.register([dm], F32, 0.0);
                w.read(a);
                let [sum] = w.iterate(dn, [zero], |w, [sum]| [sum + w.read(a) + w.read(a)]);
                w.write(sum, b);
            });
            kernel.expect("well-formed")
        };
        let mut stats = Vec::new();
        for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Modulo] {
            let inputs = vec![tensor(F32, &[100]), ones(F32, &[100])];
            let expected = (0..100).map(|at| number(at) * 2.0 * 3.0).collect();
            let case = Case::plain(format!("often {volatile}"), kernel(), &[("M", 100), ("N", 12)], inputs);
            let executable = Case { expected, schedule, ..case }.check();
            stats.push(count(&executable, "buffer_load", ""));
        }
        stats
    };
    assert_eq!(loads(false), [1, 1, 1]);
    assert_eq!(loads(true), [3, 3, 3]);
}

/// Both flags are in the text, and a kernel with them is another kernel.
#[test]
fn flags_are_written() {
    let dn = Symbol::new("N");
    let kernel = |flag: fn(MemoryRef) -> MemoryRef| {
        let kernel = Kernel::trace("copy", |w| {
            w.distribute([workgroup(dn, 64, 0)]);
            let [a, b] = ["a", "b"].map(|name| w.memory(name, [dn], Global, F32));
            w.write(w.read(flag(a)), b);
        });
        kernel.expect("well-formed").to_string()
    };
    assert!(kernel(|a| a.non_temporal().volatile()).contains("= read a volatile non_temporal\n"));
    assert!(kernel(|a| a).contains("= read a\n"));
    let fault = Kernel::trace("updated", |w| {
        w.distribute([workgroup(dn, 64, 0)]);
        let a = w.memory("a", [dn], Global, I32);
        w.atomic(AtomicOp::Add, w.register([dn], I32, 1.0), a.volatile());
    });
    let text = fault.map(drop).expect_err("updates take no flags").to_string();
    assert!(text.contains("an atomic update is volatile") && text.contains("access_flags.rs"), "{text}");
}
