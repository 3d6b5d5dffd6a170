//! GEMM under every schedule, trip count and shape: the result is the interpreter's, and check mode finds
//! nothing.

use groundswell::compile::Verify;
use groundswell::compile::{compile_uncached, fitting_options};
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::loops::largest_loop;
use groundswell_testing::meaning;
use groundswell_testing::tiles;

/// Sizes of one case, and whether they are known at compile time.
#[derive(Clone, Debug)]
struct Case {
    shape: [i64; 3],
    tile: [i64; 3],
    dynamic: bool,
    schedule: Schedule,
}

fn options(case: &Case) -> Options {
    let options = Options::new(Target::GFX942).schedule(case.schedule.clone());
    tiles::options(options, [case.shape, case.tile], case.dynamic)
}

fn compiled(kernel: &Kernel, case: &Case) -> Executable {
    verified(kernel, &options(case))
}

fn size(case: &Case, symbol: Symbol) -> Option<i64> {
    tiles::size([case.shape, case.tile], symbol)
}

fn run(kernel: &Kernel, case: &Case) -> Executable {
    let executable = compiled(kernel, case);
    let value = |symbol| size(case, symbol);
    assert_right(kernel, &executable, &value, 7, format_args!("{case:?}"));
    executable
}

#[test]
fn gemm_is_right_under_every_schedule() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a kernel");
    for schedule in Schedule::named() {
        for dynamic in [false, true] {
            for k in [32, 64, 96, 128, 160, 192, 224, 256, 288, 20, 40, 72, 200] {
                for shape in [[64, 64], [50, 70]] {
                    let (shape, schedule) = ([shape[0], shape[1], k], schedule.clone());
                    let case = Case { shape, tile: [32, 32, 32], dynamic, schedule };
                    run(&kernel, &case);
                    // One ragged size with several iterations and a remainder is compared after every pass.
                    if shape == [50, 70, 200] {
                        meaning::compare(&kernel, &options(&case), &|symbol| size(&case, symbol))
                            .unwrap_or_else(|fault| panic!("{case:?}: {fault}"));
                    }
                }
            }
        }
    }
}

/// Two waves for each SIMD, so that ping-pong is possible.
#[test]
fn ping_pong_is_right() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    for dynamic in [false, true] {
        for k in [64, 128, 192, 256, 320, 384, 448, 512, 576, 40, 100, 136, 200] {
            for (shape, tile) in [([128, 128], [128, 128, 64]), ([50, 130], [256, 256, 32])] {
                let schedule = Schedule::PingPong;
                let case = Case { shape: [shape[0], shape[1], k], tile, dynamic, schedule };
                let executable = run(&kernel, &case);
                // A tile is loaded two iterations before it is multiplied.
                if k >= 2 * tile[2] {
                    assert_eq!(
                        executable.report().schedule_applied,
                        "pingpong",
                        "{}",
                        executable.report().schedule_why
                    );
                }
            }
        }
    }
}

/// Four waves for each SIMD take turns in pairs.
#[test]
fn ping_pong_of_sixteen_waves_is_right() {
    let kernel = Gemm::any_shape().waves(Waves::new(4, 4)).kernel().expect("a kernel");
    for k in [64, 192, 200] {
        let schedule = Schedule::PingPong;
        let case = Case { shape: [256, 256, k], tile: [256, 256, 64], dynamic: k == 192, schedule };
        let executable = run(&kernel, &case);
        let report = executable.report();
        assert_eq!((report.schedule_applied, &report.schedule_why[..]), ("pingpong", ""));
    }
}

/// Two waves for each SIMD have 256 registers each.
#[test]
fn the_largest_tile_stays_within_the_register_file() {
    for waves in [Waves::new(2, 4), Waves::new(4, 2)] {
        let kernel = Gemm::any_shape().waves(waves).kernel().expect("a kernel");
        for (schedule, name) in [(Schedule::Prefetch, "prefetch"), (Schedule::PingPong, "pingpong")] {
            let case =
                |shape| Case { shape, tile: [256, 256, 64], dynamic: false, schedule: schedule.clone() };
            for executable in [compiled(&kernel, &case([4096; 3])), run(&kernel, &case([256, 256, 192]))] {
                let report = executable.report();
                let what = format!("{waves:?} {name}: {report:?}");
                assert_eq!((report.schedule_applied, &report.schedule_why[..]), (name, ""), "{what}");
                assert!(report.vgprs + report.agprs <= 256, "{what}");
                assert!(report.spills.is_none() && report.scratch_bytes == 0, "{what}");
                assert!(report.lds_bytes <= 64 << 10, "{what}");
            }
        }
    }
}

/// Vector registers of a modulo schedule's steady state are written by what computes them: values that
/// overlap themselves have names of their own, by unrolling where nothing else serves, and every trip count
/// finds its way through rounds and rest.
#[test]
fn modulo_loops_move_nothing() {
    // Waves along N, tile, iterations of a round of the steady state.
    let loops = [(2, [128, 128, 32], 1), (4, [128, 128, 32], 2), (2, [64, 64, 32], 3), (4, [64, 64, 32], 4)];
    for (waves, tile, round) in loops {
        let kernel = Gemm::any_shape().waves(Waves::new(2, waves)).kernel().expect("a kernel");
        let case = |k, dynamic| {
            let shape = [tile[0], tile[1], k];
            Case { shape, tile, dynamic, schedule: Schedule::Modulo }
        };
        let executable = compiled(&kernel, &case(4096, false));
        let text = executable.assembly().expect("assembly");
        let steady = largest_loop(&text).expect("a loop");
        let moves = steady.iter().filter(|line| line.trim().starts_with("v_mov")).count();
        assert_eq!(moves, 0, "{tile:?}: {steady:#?}");
        let products = steady.iter().filter(|line| line.trim().starts_with("v_mfma")).count() as i64;
        assert_eq!(
            products,
            round * tile[0] * tile[1] * tile[2] / (16 * 16 * 16 * 2 * i64::from(waves)),
            "{tile:?}"
        );
        if round > 1 {
            for iterations in [1, 4, 5, 6, 7, 8, 9, 11] {
                run(&kernel, &case(tile[2] * iterations - 8, iterations % 2 == 0));
            }
        }
    }
}

/// B as [K, N], in tiles of one matrix instruction: a loop that is not the usual order of loads, stores,
/// loads and products.
#[test]
fn small_transposed_gemm_is_right_under_every_schedule() {
    let text = Gemm::any_shape().waves(Waves::new(1, 1)).kernel().expect("a kernel").to_string();
    let turned = text.replace("b = memory [N, K]", "b = memory [K, N]");
    assert_ne!(turned, text);
    let kernel = Kernel::parse(&turned, "gemm.gsw").expect("a kernel");
    for schedule in [Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo, Schedule::PingPong] {
        for (k, dynamic) in [(16, false), (64, true), (150, false)] {
            let schedule = schedule.clone();
            run(&kernel, &Case { shape: [20, 30, k], tile: [16, 16, 16], dynamic, schedule });
        }
    }
}

/// A loop in another one, which is divided into whole trips and a remainder: both parts have a copy of the
/// inner loop, and these share their LDS buffers, whatever number of copies each would have alone.
/// A loop's first loads come before the constants that it begins with, unless these say what is loaded.
#[test]
fn what_a_loop_begins_with_may_say_what_it_loads_first() {
    let text = "kernel chased {
      workgroup M, 64, 0
      tile K, 1
      next = memory [P] global i32
      x = memory [K, P] global f32
      y = memory [M] global f32
      %zero = register [M] f32 0.0
      %start = register [M] i32 3
      %sum, %last = iterate K (%acc = %zero, %at = %start) {
        %value = read x at [K, %at] as [K, M]
        %one = reduce_sum %value over K
        %more = add %acc, %one
        %to = read next at [%at] as [M]
        yield %more, %to
      }
      write %sum, y
    }";
    let kernel = Kernel::parse(text, "chased.gsw").expect("well-formed");
    let sizes = [("M", 128), ("K", 32), ("P", 64)];
    let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
    for target in [Target::GFX90A, Target::GFX950] {
        for schedule in Schedule::named() {
            let options = Options::new(target).schedule(schedule.clone());
            let options = sizes.into_iter().fold(options, |options, (name, size)| options.set(name, size));
            let executable = kernel.compile(&options).expect("compiles");
            assert_right(&kernel, &executable, &value, 5, format_args!("{target} {}", schedule.name()));
        }
    }
}

#[test]
fn loops_in_the_parts_of_a_loop_agree_on_copies_of_their_buffers() {
    let text = "kernel products {
      workgroup M, 128, 0
      tile N, 128
      tile K, BLOCK_K
      wave M, 64
      wave N, 32
      mma 16x16
      a = memory [M, K] shared f16
      b = memory [N, K] shared f16
      c = memory [M, N] global f32
      iterate N () {
        %zero = register [M, N] f32 0.0
        %sum = iterate K (%acc = %zero) {
          %x = read a
          %y = read b
          %next = mma %x, %y, %acc
          yield %next
        }
        write %sum, c
      }
    }";
    let kernel = Kernel::parse(text, "products.gsw").expect("well-formed");
    let names = symbols(["M", "N", "K", "BLOCK_K"]);
    let schedules = [
        Schedule::PingPong,
        Schedule::Quadrants,
        Schedule::Interleaved,
        Schedule::TwoPhase,
        Schedule::Clusters,
        Schedule::Modulo,
        Schedule::Automatic,
    ];
    for target in [Target::GFX942, Target::GFX950] {
        for (sizes, dynamic) in
            [([128, 255, 256, 32], false), ([128, 256, 192, 64], true), ([1, 255, 512, 64], false)]
        {
            for schedule in &schedules {
                let options = Options::new(target).schedule(schedule.clone());
                let options = options.global_to_shared(GlobalToShared::Fitting);
                let options = names.iter().zip(sizes).fold(options, |options, (&name, size)| {
                    match dynamic && name.name() == "N" {
                        true => options.dynamic(name),
                        false => options.set(name, size),
                    }
                });
                let case = format!("{target}, {sizes:?}, {}", schedule.name());
                let executable = verified(&kernel, &options);
                let value = |symbol| names.iter().position(|&name| name == symbol).map(|at| sizes[at]);
                assert_right(&kernel, &executable, &value, 3, &case);
            }
        }
    }
}

/// Two products by loops after one another, whose buffers together are larger than LDS, inside of something.
fn two_products([constraint, before, after]: [&str; 3]) -> Kernel {
    let text = format!(
        "kernel products {{
          workgroup M, BLOCK_M, 0
          workgroup N, BLOCK_N, 1
          tile K, 64
          tile L, 64
          {constraint}
          wave M, BLOCK_M // 2
          wave N, BLOCK_N // WAVES_N
          mma 16x16
          a = memory [M, K] shared f16
          b = memory [N, K] shared f16
          d = memory [M, L] shared f16
          e = memory [N, L] shared f16
          c = memory [M, N] global f32
          %zero = register [M, N] f32 0.0
          {before}
            %first = iterate K (%acc = %start) {{
              %x = read a
              %y = read b
              %next = mma %x, %y, %acc
              yield %next
            }}
            %both = iterate L (%acc = %first) {{
              %x = read d
              %y = read e
              %next = mma %x, %y, %acc
              yield %next
            }}
          {after}
          write %sum, c
        }}"
    );
    Kernel::parse(&text, "products.gsw").expect("well-formed")
}

/// Each loop has all of LDS to itself: side by side, under a condition, in a loop that is divided into whole
/// trips and a remainder, and in one whose trips nobody knows.
#[test]
fn loops_after_one_another_share_lds_between_them() {
    let surroundings = [
        ["", "%start = mul %zero, 1.0", "%sum = mul %both, 1.0"],
        [
            "",
            "%size = size M
             %large = compare gt %size, 40
             %sum = conditional %large (%start = %zero) {",
            "yield %both\n}",
        ],
        ["tile J, 2", "%sum = iterate J (%start = %zero) {", "%half = mul %both, 0.5\nyield %half\n}"],
        [
            "",
            "%none = register [] i32 0
             %two = register [] i32 2
             %more = compare lt %none, %two
             _, %sum = while %more (%trip = %none, %start = %zero) {",
            "%one = constant 1
             %following = add %trip, %one
             %again = compare lt %following, %two
             yield %following, %both, %again
             }",
        ],
    ];
    let names = symbols(["BLOCK_M", "BLOCK_N", "WAVES_N", "M", "N", "K", "L", "J"]);
    let ways = [
        (Target::GFX942, GlobalToShared::Automatic, [128, 256, 4]),
        (Target::GFX942, GlobalToShared::Fitting, [64, 128, 4]),
        (Target::GFX950, GlobalToShared::Automatic, [256, 256, 4]),
        (Target::GFX90A, GlobalToShared::Off, [128, 256, 2]),
    ];
    for (number, inside) in surroundings.into_iter().enumerate() {
        let kernel = two_products(inside);
        for (target, direct, [block_m, block_n, waves_n]) in ways {
            for schedule in Schedule::named() {
                let sizes = [block_m, block_n, waves_n, block_m + 1, block_n, 320, 192, 3];
                let options = Options::new(target).schedule(schedule.clone()).global_to_shared(direct);
                let known = kernel.symbols();
                let set = |options: Options, (&name, size): (&Symbol, i64)| match known.contains(&name) {
                    true => options.set(name, size),
                    false => options,
                };
                let options = names.iter().zip(sizes).fold(options, set);
                let case = format!("surroundings {number}, {target}, {direct:?}, {}", schedule.name());
                let executable = verified(&kernel, &options);
                let why = &executable.report().schedule_why;
                if matches!(schedule, Schedule::Prefetch | Schedule::Automatic) {
                    assert!(why.is_empty(), "{case}: {why}");
                }
                let value = |symbol| names.iter().position(|&name| name == symbol).map(|at| sizes[at]);
                assert_right(&kernel, &executable, &value, 3, &case);
            }
        }
    }
}

/// Registers for the next tile's values make spills of values that fit before, and their code a loop that no
/// branch closes: the loop gets a simpler schedule or none, and the report says why.
#[test]
fn a_schedule_that_takes_more_than_there_is_is_left_out() {
    let kernel = Gemm::any_shape().waves(Waves::new(1, 1)).kernel().expect("a kernel");
    let names = symbols(["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"]);
    for ([m, n], asked, simpler) in
        [([144, 96], Schedule::Prefetch, Schedule::None), ([112, 112], Schedule::Modulo, Schedule::Prefetch)]
    {
        let sizes = [m, n, 1024, m, n, 64];
        let set = |options, (&name, size)| Options::set(options, name, size);
        let options = names.iter().zip(sizes).fold(Options::new(Target::GFX906), set);
        let [plain, left] = [&simpler, &asked].map(|schedule| {
            let options = options.clone().schedule(schedule.clone());
            compile_uncached(&kernel, &options, Verify::Off).expect("it fits with the simpler schedule")
        });
        assert!(plain.object() == left.object(), "the bytes differ");
        let report = left.report();
        assert_eq!([report.schedule_requested, report.schedule_applied], [asked.name(), simpler.name()]);
        let begin = format!("with {}, the code of this loop is ", asked.name());
        assert!(report.schedule_why.starts_with(&begin), "{}", report.schedule_why);
        let fitting = |asked: &Schedule| fitting_options(&kernel, &options.clone().schedule(asked.clone()));
        for schedule in [&asked, &simpler] {
            assert_eq!(*fitting(schedule).expect("it fits").requested_schedule(), simpler);
        }
    }
}

/// What the loop is left with is what prefetching alone gives.
#[test]
fn a_loop_without_ping_pong_has_none_of_its_barriers() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a kernel");
    let case = |schedule| Case { shape: [256; 3], tile: [64, 64, 32], dynamic: false, schedule };
    let [instead, prefetch] = [Schedule::PingPong, Schedule::Prefetch].map(|s| compiled(&kernel, &case(s)));
    assert_eq!(instead.report().schedule_applied, "prefetch");
    assert!(!instead.report().schedule_why.is_empty());
    assert_eq!(instead.code(), prefetch.code());
}

/// The ready GEMM with other tags.
fn tagged(names: [&str; 2]) -> Kernel {
    let text = Gemm::any_shape().waves(Waves::new(2, 2)).kernel().expect("a kernel").to_string();
    assert!(text.contains("@read_a") && text.contains("@mma"), "{text}");
    let text = text.replace("@read_a", &format!("@{}", names[0])).replace("@mma", &format!("@{}", names[1]));
    Kernel::parse(&text, "gemm.gsw").expect("its own text")
}

/// The cache knows kernels by what they compute; where a schedule speaks of tags, by those too.
#[test]
fn tags_tell_kernels_apart_where_a_schedule_speaks_of_them() {
    let mut options = Options::new(Target::GFX942);
    let sizes = [("M", 64), ("N", 64), ("K", 256), ("BLOCK_M", 32), ("BLOCK_N", 32), ("BLOCK_K", 32)];
    for (name, value) in sizes {
        options = options.set(Symbol::new(name), value);
    }
    let (kernel, other) = (tagged(["read_a", "mma"]), tagged(["read_a", "product"]));
    assert_eq!(kernel.identity(), other.identity());
    let schedule = WaveSchedule::trace("touch", |s| {
        s.get_node_by_tag("mma");
    });
    let manual = options.clone().wave_schedule(&schedule.expect("a schedule"));
    kernel.compile(&manual).expect("it has the tag");
    let fault = other.compile(&manual).expect_err("it has not");
    assert!(fault.to_string().contains("no node has the tag \"mma\""), "{fault}");
    assert!(kernel.compile(&manual).is_ok());
    // Without a schedule tags are nothing.
    let code = |kernel: &Kernel| kernel.compile(&options).expect("it compiles").code().to_vec();
    assert_eq!(code(&kernel), code(&other));
}

/// Schedules of one kernel, traced at two places: equal ones share an executable, others have their own.
#[test]
fn the_cache_tells_schedules_apart() {
    let kernel = tagged(["read_a", "mma"]);
    let mut options = Options::new(Target::GFX942);
    let sizes = [("M", 64), ("N", 64), ("K", 512), ("BLOCK_M", 32), ("BLOCK_N", 32), ("BLOCK_K", 32)];
    for (name, value) in sizes {
        options = options.set(Symbol::new(name), value);
    }
    let with_priority = |priority| {
        let schedule = WaveSchedule::trace("priority", |s| {
            s.insert_before(s.get_node_by_tag("mma"), SetWavePriority(priority));
        });
        options.clone().wave_schedule(&schedule.expect("a schedule"))
    };
    let all: Vec<Options> = Schedule::named()
        // The tile suits none of these, which leave prefetching, and the automatic one is one of the others.
        .filter(|schedule| {
            let others = ["pingpong", "quadrants", "interleaved", "two_phase", "clusters", "auto"];
            !others.contains(&schedule.name())
        })
        .map(|schedule| options.clone().schedule(schedule))
        .chain((0..3).map(with_priority))
        .collect();
    let codes: Vec<Vec<u32>> =
        all.iter().map(|options| kernel.compile(options).expect("it compiles").code().to_vec()).collect();
    for (at, options) in all.iter().enumerate() {
        let own = verified(&kernel, options);
        assert_eq!(own.code(), codes[at], "{options:?}");
        assert!(codes[..at].iter().all(|other| *other != codes[at]), "{options:?}");
    }
    assert_eq!(kernel.compile(&with_priority(2)).expect("it compiles").code(), codes[all.len() - 1]);
}

/// Waves of a ping-pong wait for the tiles of the first trip before they enter the loop, and not for those of
/// the second one, for which the loop waits itself.
#[test]
fn waves_enter_a_ping_pong_with_later_tiles_under_way() {
    let kernel = Gemm::any_shape().waves(Waves::new(2, 4)).kernel().expect("a kernel");
    let options = Options::new(Target::GFX950).schedule(Schedule::PingPong);
    let options = tiles::options(options, [[256, 256, 320], [256, 256, 64]], false);
    let executable = verified(&kernel, &options);
    let text = executable.assembly().expect("assembly");
    // The first tile is waited for, and the second one is on its way when the matrix instructions begin.
    let (entry, after) = text.split_once("s_barrier").expect("a barrier");
    let (before_products, _) = after.split_once("v_mfma").expect("a product");
    let loads = |part: &str| {
        part.lines().filter(|line| line.contains("buffer_load") && line.contains(" lds")).count()
    };
    assert_eq!(loads(entry), 8, "a tile of both factors: {entry}");
    assert!(loads(before_products) >= 8, "and another one: {before_products}");
    let waits = |part: &str| {
        let waits = part.lines().filter(|line| line.contains("s_waitcnt") && line.contains("vmcnt"));
        waits.map(|line| line.trim().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(waits(entry), ["s_waitcnt vmcnt(0)"], "{entry}");
    assert!(waits(before_products).is_empty(), "{before_products}");
    assert_eq!(executable.report().schedule_applied, "pingpong");
}
