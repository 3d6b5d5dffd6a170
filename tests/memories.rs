//! Memories that do not follow the grid: where the parts of tensors beyond 4 GiB are, and what workgroups may
//! not do to a memory that all of them have in common, however a kernel is written. Kernels of all
//! shapes of memories: `fuzz_smoke.rs`.

mod common;

use common::meaning;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::prelude::*;
use groundswell::simulator::{CheckOptions, FindingKind, LaunchConfig, Simulator};

/// Where the second workgroup along B begins to read a tensor `[B, M, N]` of f32, in bytes from its
/// beginning. The tensor is far too large to exist here: the access is one that check mode refuses.
fn second_batch([m, n]: [i64; 2], dynamic: bool) -> u64 {
    let text = "kernel copy {\n workgroup N, 64, 0\n workgroup M, 4, 1\n workgroup B, 1, 2\n \
                a = memory [B, M, N] global f32\n b = memory [B, M, N] global f32\n %x = read a\n write %x, b\n}\n";
    let kernel = Kernel::parse(text, "copy").unwrap();
    let [sizes_m, sizes_n, batch] = symbols(["M", "N", "B"]);
    let options = Options::new(Target::GFX942).set(batch, 2).set(sizes_n, n);
    let options = if dynamic { options.dynamic(sizes_m) } else { options.set(sizes_m, m) };
    let executable =
        compile_uncached(&kernel, &options, Verify::AfterEachPass).unwrap_or_else(|e| panic!("{e}"));
    let mut simulator = Simulator::new(Target::GFX942);
    let module = simulator.load(executable.object()).unwrap();
    let tile = (4 * n * 4) as u64;
    let [a, b] = [0; 2].map(|_| simulator.alloc(tile).unwrap());
    let mut kernarg: Vec<u8> = [a, b].iter().flat_map(|address| address.to_le_bytes()).collect();
    kernarg.extend((m as i32).to_le_bytes());
    kernarg.resize(executable.kernarg_bytes() as usize, 0);
    let config = LaunchConfig::new([1, 1, 2], executable.block());
    let report = simulator.check(&module, "copy", config, &kernarg, &CheckOptions { seed: 0 }).unwrap();
    let reads = report.findings.iter().filter_map(|finding| match &finding.kind {
        FindingKind::OutOfBounds { access, address, .. } if access.to_string() == "load" => Some(*address),
        _ => None,
    });
    reads.min().unwrap_or_else(|| panic!("{report}")) - a
}

#[test]
fn batches_beyond_4_gib_are_where_they_belong() {
    // Below 4 GiB, above, with more than 2^32 elements, and with a power of two of them.
    for [m, n] in [[1000, 1000], [40_000, 40_000], [70_000, 70_000], [1 << 17, 1 << 17], [1 << 20, 1 << 14]] {
        for dynamic in [false, true] {
            assert_eq!(second_batch([m, n], dynamic), (4 * m * n) as u64, "{m} x {n}");
        }
    }
}

#[test]
fn updates_by_all_workgroups_are_refused_where_they_are_traced() {
    let [m, n] = symbols(["M", "N"]);
    let (mut spread, mut read, mut write) = (0, 0, 0);
    let fault = Kernel::trace("increment", |w| {
        spread = line!() + 1;
        w.distribute([workgroup(m, 64, 0), workgroup(n, 16, 1)]);
        let a = w.memory("a", [m], Global, F32);
        let b = w.memory("b", [m, n], Global, F32);
        read = line!() + 1;
        let x = w.read(a);
        write = line!() + 1;
        w.write(x + 1.0, a);
        let y = w.read(b);
        w.write(y, b);
    })
    .expect_err("every workgroup along N updates `a`");
    assert_eq!(fault.message, "`a` is updated by every workgroup along N: it is read and then written");
    let line = |location: &Option<groundswell::diagnostic::Location>| location.as_ref().map(|l| l.line);
    assert_eq!(line(&fault.location), Some(write));
    assert_eq!(fault.notes.iter().map(|note| line(&note.1)).collect::<Vec<_>>(), [Some(read), Some(spread)]);
    assert!(fault.help.is_some_and(|help| help.contains("give `a` the dimension N")));
}

/// Workgroups that all store the same, and updates of memory that each has to itself, are not races.
#[test]
fn common_stores_and_own_updates_are_right() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("own", |w| {
        w.distribute([workgroup(m, 64, 0), workgroup(n, 16, 1), wave(n, 8)]);
        let a = w.memory("a", [m], Global, F32);
        let b = w.memory("b", [m, n], Global, F32);
        let c = w.memory("c", [m], Global, F32);
        let x = w.read(a);
        let y = w.read(b);
        w.write(y + x, b);
        w.write(x * 2.0, c);
        let again = w.read(c);
        let y = w.read(b);
        w.write(y - again, b);
    })
    .unwrap_or_else(|fault| panic!("{fault}"));
    let options = Options::new(Target::GFX942).set(m, 100).set(n, 37);
    let executable =
        compile_uncached(&kernel, &options, Verify::AfterEachPass).unwrap_or_else(|e| panic!("{e}"));
    let device = Device::simulator(Target::GFX942);
    let value = |s: Symbol| Some(if s == m { 100 } else { 37 });
    meaning::compare(&kernel, &options, &value).unwrap_or_else(|fault| panic!("{fault}"));
    let ran = groundswell::check::against_interpreter(&kernel, &executable, &device, &value, 1);
    assert!(ran.unwrap_or_else(|e| panic!("{e}")).comparison.ok);
}
