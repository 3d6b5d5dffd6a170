//! Memories that do not follow the grid: where the parts of tensors beyond 4 GiB are, and what workgroups may
//! not do to a memory that all of them have in common, however a kernel is written. Kernels of all
//! shapes of memories: `fuzz_checks/fuzz_smoke.rs`.

use groundswell::prelude::*;
use groundswell::simulator::{CheckOptions, FindingKind, LaunchConfig, Simulator};
use groundswell_testing::judged::verified;
use groundswell_testing::meaning;

/// Where the second workgroup along B begins to read a tensor `[B, M, N]` of f32, in bytes from its
/// beginning. The tensor is far too large to exist here: the access is one that check mode refuses.
fn second_batch([m, n]: [i64; 2], dynamic: bool) -> u64 {
    let text = "kernel copy {\n workgroup N, 64, 0\n workgroup M, 4, 1\n workgroup B, 1, 2\n \
                a = memory [B, M, N] global f32\n b = memory [B, M, N] global f32\n %x = read a\n write %x, b\n}\n";
    let kernel = Kernel::parse(text, "copy").unwrap();
    let [sizes_m, sizes_n, batch] = symbols(["M", "N", "B"]);
    let options = Options::new(Target::GFX942).set(batch, 2).set(sizes_n, n);
    let options = if dynamic { options.dynamic(sizes_m) } else { options.set(sizes_m, m) };
    let executable = verified(&kernel, &options);
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
    let executable = verified(&kernel, &options);
    let device = Device::simulator(Target::GFX942);
    let value = |s: Symbol| Some(if s == m { 100 } else { 37 });
    meaning::compare(&kernel, &options, &value).unwrap_or_else(|fault| panic!("{fault}"));
    let ran = groundswell::check::against_interpreter(&kernel, &executable, &device, &value, 1);
    assert!(ran.unwrap_or_else(|e| panic!("{e}")).comparison.ok);
}

/// A kernel of 64 x 64 and the like, in text.
fn compiled(body: &str) -> Executable {
    let head = "kernel k {\n  workgroup M, 16, 0\n  workgroup N, 16, 1\n  x = memory [M, N] global f32\n";
    compiled_text(&format!("{head}{body}\n}}\n"))
}

fn compiled_text(text: &str) -> Executable {
    let kernel = Kernel::parse(text, "k.gsw").unwrap_or_else(|e| panic!("{e}"));
    let sizes = [("M", 64), ("N", 64), ("K", 64), ("LDA", 128)];
    let used = sizes.into_iter().filter(|(name, _)| kernel.symbols().iter().any(|s| s.name() == *name));
    let options = used.fold(Options::new(Target::GFX942), |options, (name, size)| options.set(name, size));
    verified(&kernel, &options)
}

/// Kernels that may have an input and an output in one place, and what they give there.
#[test]
fn kernels_in_place_give_what_they_give_elsewhere() {
    let rows = "kernel k {\n  workgroup M, 4, 0\n  wave M, 1\n  x = memory [M, N] global f32\n";
    let whole = format!(
        "{rows}  y = memory [M, N] global f32\n  %x = read x\n  %m = reduce_max %x over N\n  \
                         %e = sub %x, %m\n  write %e, y\n}}\n"
    );
    let shared =
        whole.replace("workgroup M, 4, 0\n  wave M, 1", "workgroup M, 4, 0\n  wave M, 4\n  wave N, 16");
    let sums = format!(
        "{}  tile N, 16\n  y = memory [M, N] global f32\n  %zero = register [M] f32 0.0\n  \
                        %sum = iterate N (%acc = %zero) {{\n    %x = read x\n    %s = reduce_sum %x over N\n    \
                        %t = add %acc, %s\n    yield %t\n  }}\n  iterate N () {{\n    %x = read x\n    \
                        %d = sub %x, %sum\n    write %d, y\n    yield\n  }}\n}}\n",
        rows
    );
    let device = Device::simulator(Target::GFX942);
    let data: Vec<f32> = (0..64 * 64).map(|at| (at * 37 % 101) as f32).collect();
    for executable in [
        compiled("  y = memory [M, N] global f32\n  %x = read x\n  %y = mul %x, 3.0\n  write %y, y"),
        compiled("  y = memory [M, N] global i32\n  %x = read x\n  %y = cast %x i32\n  write %y, y"),
        compiled(
            "  y = memory [M, N] global f32\n  %x = read x\n  %y = read y\n  %z = add %x, %y\n  write %z, y",
        ),
        compiled_text(&whole),
        compiled_text(&shared),
        compiled_text(&sums),
    ] {
        assert_eq!(executable.in_place(), [[0, 1]], "{}", executable.name());
        let untyped = || {
            let buffer = device.allocate(4 * data.len() as u64).unwrap();
            buffer.write_bytes(&data.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>()).unwrap();
            buffer
        };
        let [x, y, both] = [untyped(), untyped(), untyped()];
        device.launch(&executable).buffer(&x).buffer(&y).run().unwrap();
        device.launch(&executable).buffer(&both).buffer(&both).run().unwrap();
        assert!(both.read_bytes().unwrap() == y.read_bytes().unwrap());
        for seed in 0..4 {
            let both = untyped();
            let launch = device.launch(&executable).buffer(&both).buffer(&both);
            let report = launch.check(&CheckOptions { seed }).unwrap();
            assert!(report.findings.is_empty(), "{report}");
            assert!(both.read_bytes().unwrap() == y.read_bytes().unwrap(), "{seed}");
        }
    }
}

/// What is read elsewhere, by others, or again after it was written, is refused in one place with what is
/// written; and so are tensors that overlap without being one.
#[test]
fn arguments_that_share_memory_are_refused_where_that_is_not_safe() {
    let device = Device::simulator(Target::GFX942);
    let buffer = device.allocate(4 * 64 * 64 + 4 * 64 * 128).unwrap();
    let out = "  y = memory [M, N] global f32\n  ";
    let bodies = [
        // Elsewhere.
        "  y = memory [N, M] global f32\n  %x = read x\n  write %x, y".to_owned(),
        format!("{out}%x = read x at [M, (N + 1)] as [M, N]\n  write %x, y"),
        format!("{out}%x = read x\n  write %x, y at [M, (63 - N)]"),
        // Again, for other results.
        format!(
            "{out}z = memory [M, N] global f32\n  %x = read x\n  %one = register [M, N] f32 1.0\n  write %one, y\n  write %x, z"
        ),
        // Before the element itself.
        format!("{out}%x = read x\n  %s = cumsum_exclusive %x over N\n  write %s, y"),
    ];
    for body in &bodies {
        let Ok(kernel) = Kernel::parse(
            &format!(
                "kernel k {{\n  workgroup M, 16, 0\n{}  x = memory [M, N] global f32\n{body}\n}}\n",
                if body.contains("over N") { "" } else { "  workgroup N, 16, 1\n" }
            ),
            "k.gsw",
        ) else {
            panic!("{body}");
        };
        let options = Options::new(Target::GFX942).set("M", 64).set("N", 64);
        let executable = verified(&kernel, &options);
        let others = executable.parameters().len() - 2;
        let more: Vec<Buffer> = (0..others).map(|_| device.allocate(4 * 64 * 64).unwrap()).collect();
        let launch = device.launch(&executable).buffer(&buffer).buffer(&buffer);
        let fault =
            more.iter().fold(launch, |launch, own| launch.buffer(own)).run().map(drop).expect_err(body);
        assert_eq!(fault.message, "`x` and `y` share memory, and `k` writes `y`", "{body}");
        assert!(fault.help.is_some_and(|help| help.contains("another buffer for `y`")), "{body}");
    }
    // A product reads what other workgroups write; its accumulator may be its result.
    let product = compiled_text(
        "kernel gemm {\n  workgroup M, 64, 0\n  workgroup N, 64, 1\n  tile K, 32\n  mma f32_16x16x16_f16\n  \
         a = memory [M, K] shared f16\n  b = memory [N, K] shared f16\n  r = memory [M, N] global f32\n  \
         c = memory [M, N] global f32\n  %zero = register [M, N] f32 0.0\n  %sum = iterate K (%acc = %zero) {\n    \
         %a = read a\n    %b = read b\n    %m = mma %a, %b, %acc\n    yield %m\n  }\n  %r = read r\n  \
         %c = add %sum, %r\n  write %c, c\n}\n",
    );
    let names: Vec<[u32; 2]> = product.in_place().to_vec();
    assert_eq!(names, [[2, 3]]);
    let [a, b, c] = [0; 3].map(|_| device.allocate(4 * 64 * 64).unwrap());
    let launch = |a, b, r, c| device.launch(&product).buffer(a).buffer(b).buffer(r).buffer(c).run().map(drop);
    assert_eq!(launch(&a, &b, &c, &c), Ok(()));
    assert_eq!(launch(&a, &a, &b, &c), Ok(()), "two that are only read");
    let fault = launch(&c, &b, &a, &c).unwrap_err();
    assert_eq!(fault.message, "`a` and `c` share memory, and `gemm` writes `c`");
}

/// Sizes of nothing launch nothing, on streams and in check mode as well; where results would be left as they
/// are, a launch says so.
#[test]
fn sizes_of_zero_launch_nothing() {
    let device = Device::simulator(Target::GFX942);
    let text = "kernel k {\n  workgroup M, 16, 0\n  tile K, 16\n  x = memory [M, K] global f32\n  y = memory [M] global \
                f32\n  %zero = register [M] f32 0.0\n  %sum = iterate K (%acc = %zero) {\n    %x = read x\n    \
                %s = reduce_sum %x over K\n    %t = add %acc, %s\n    yield %t\n  }\n  write %sum, y\n}\n";
    let kernel = Kernel::parse(text, "k.gsw").unwrap();
    let options = Options::new(Target::GFX942).dynamic("M").dynamic("K");
    let executable = verified(&kernel, &options);
    let x = device.upload(&[1f32; 64]).unwrap();
    let y = device.upload(&[7f32; 4]).unwrap();
    let launch = |m: i64, k: i64| device.launch(&executable).buffer(&x).buffer(&y).set("M", m).set("K", k);
    for k in [0, 16] {
        let result = launch(0, k).run().unwrap();
        assert_eq!(result.grid, [0; 3]);
        launch(0, k).enqueue(&device.stream().unwrap()).unwrap();
        assert!(launch(0, k).check(&CheckOptions { seed: 1 }).unwrap().findings.is_empty());
    }
    assert_eq!(y.download::<f32>().unwrap(), [7.0; 4]);
    let fault = launch(4, 0).run().map(drop).unwrap_err().to_string();
    assert!(fault.contains("K = 0 leaves nothing to compute the results from"), "{fault}");
    assert!(launch(-1, 16).run().is_err());
    launch(4, 16).run().unwrap();
    assert_eq!(y.download::<f32>().unwrap(), [16.0; 4]);
    // No buffer needs anything in it.
    let nothing = device.upload::<f32>(&[]).unwrap();
    let launch = device.launch(&executable).buffer(&nothing).buffer(&nothing).set("M", 0).set("K", 0);
    launch.run().unwrap();
}

/// A buffer that nobody has written takes no memory of the host.
#[test]
fn memory_is_taken_when_it_is_written() {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let device = Device::simulator(Target::GFX942);
    let before = resident();
    let buffer = device.allocate(4 << 30).unwrap();
    buffer.write_bytes(&[1; 64]).unwrap();
    if let (Some(before), Some(after)) = (before, resident()) {
        // Other tests of this file run meanwhile.
        assert!(after < before + (1 << 20), "{before} KiB, then {after}");
    }
}
