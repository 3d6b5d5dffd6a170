//! Tiles that masks hide: which are visited, and what is not seen of those that are not.

use groundswell::kernels::{Attention, AttentionTile, Diagonal};
use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::schedules::OF_PRODUCTS;

/// Queries and keys.
const LENGTH: usize = 256;
/// Elements of a head.
const DIM: usize = 32;

fn base() -> Attention {
    Attention::new(1, DIM as u32).tile(AttentionTile::new(64, 16, 32)).sizes(1, LENGTH as u32, LENGTH as u32)
}

/// What a launch leaves in the output, and its matrix instructions.
fn run(attention: &Attention, masked: MaskedTiles, values: &Tensor) -> (Vec<f64>, u64) {
    let kernel = attention.kernel().expect("a kernel");
    let options = attention.options(Target::GFX942).masked_tiles(masked);
    let executable = kernel.compile(&options).expect("compiles");
    let device = Device::simulator(Target::GFX942);
    let shape = [1, 1, LENGTH, DIM];
    let [q, k] = [1, 2].map(|seed| Tensor::random(&shape, DType::Bf16, seed).expect("fits"));
    let buffers = [&q, &k, values, &q].map(|tensor| device.upload_tensor(tensor).expect("fits"));
    let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    let result = launch.run().expect("runs");
    let bytes = buffers[3].read_bytes().expect("readable");
    let output = Tensor::from_bytes(&shape, DType::Bf16, &bytes).expect("whole");
    (output.to_f64(), result.stats.mfma)
}

fn values() -> Tensor {
    Tensor::random(&[1, 1, LENGTH, DIM], DType::Bf16, 3).expect("fits")
}

/// Of 8 tiles of keys that each of 4 workgroups would visit.
#[test]
fn tiles_that_masks_hide_are_not_visited() {
    for (title, attention, visited) in [
        ("causal", base().causal(), 2 + 4 + 6 + 8),
        ("a window", base().window(31, 0), 2 + 3 + 3 + 3),
        ("a mask of the author's", base().mask(|_, query, key| key.less_equal(query - 64)), 2 + 4 + 6),
        ("all keys", base(), 32),
        // Nothing is known of places that are multiplied.
        ("squares", base().mask(|_, query, key| (key * key).less_equal(query)), 32),
    ] {
        let [(skipped, fewer), (whole, all)] =
            [MaskedTiles::Skip, MaskedTiles::Visit].map(|masked| run(&attention, masked, &values()));
        assert_eq!(fewer * 32, all * visited, "{title}");
        let differs =
            |at: &usize| (skipped[*at] - whole[*at]).abs() > 2f64.powi(-7) * whole[*at].abs().max(0.1);
        assert_eq!((0..whole.len()).find(differs), None, "{title}");
    }
}

/// Sequences of a packed batch have tiles of their own that masks hide: of the workgroups of the long one,
/// the first sees three quarters of the keys and the second all; that of the short one sees all of its keys.
#[test]
fn tiles_that_masks_hide_in_packed_sequences_are_not_visited() {
    let attention = Attention::new(1, DIM as u32).tile(AttentionTile::new(64, 16, 32)).packed();
    let mut products = Vec::new();
    for (attention, masked) in [
        (attention.clone().causal_along(Diagonal::BottomRight), MaskedTiles::Skip),
        (attention.clone().causal_along(Diagonal::BottomRight), MaskedTiles::Visit),
        (attention.clone(), MaskedTiles::Skip),
    ] {
        let kernel = attention.kernel().expect("a kernel");
        let options = attention.options(Target::GFX942).masked_tiles(masked);
        let options = [("B", 2), ("M", 128), ("N", 256), ("TOTAL_M", 192), ("TOTAL_N", 320), ("ENDS", 3)]
            .into_iter()
            .fold(options, |options, (symbol, size)| options.set(symbol, size));
        let executable = kernel.compile(&options).expect("compiles");
        let branches = executable.report().branches_of_masks;
        assert_eq!(branches > 0, masked == MaskedTiles::Skip);
        let device = Device::simulator(Target::GFX942);
        let rows = |rows: usize, seed| Tensor::random(&[rows, 1, DIM], DType::Bf16, seed).expect("fits");
        let upload = |tensor: &Tensor| device.upload_tensor(tensor).expect("fits");
        let [q, o, k, v] =
            [(192, 1), (192, 2), (320, 3), (320, 4)].map(|(count, seed)| upload(&rows(count, seed)));
        let [queries, keys] = [[0, 128, 192], [0, 256, 320]].map(|ends| device.upload(&ends).expect("fits"));
        let launch = [&q, &k, &v, &queries, &keys, &o]
            .iter()
            .fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
        let run = launch.check(&CheckOptions { seed: 3 });
        assert!(run.expect("runs").is_clean());
        let launch = [&q, &k, &v, &queries, &keys, &o]
            .iter()
            .fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
        products.push((launch.run().expect("runs").stats.mfma, o.read_bytes().expect("readable")));
    }
    let [skipped, visited, all] = &products[..] else { panic!("three launches") };
    assert_eq!(skipped.1, visited.1);
    // Of 8 tiles of 32 keys: 6 and 8 for both workgroups of the long sequence, and 2 for that of the short.
    assert_eq!(visited.0, all.0);
    assert_eq!(skipped.0 * (8 + 8 + 2), all.0 * (6 + 8 + 2));
}

/// Counts that masks compare places with may be anything: sums with them wrap.
#[test]
fn counts_beyond_all_places_hide_what_they_hide() {
    let text = r"kernel counted {
        workgroup M, 64, 0
        workgroup W, 1, 1
        tile N, 32
        wave M, 16
        mma 16x16
        q = memory [M, D] global f16
        k = memory [N, D] shared f16
        counts = memory [W] global i32
        o = memory [W, D, M] global f32
        %q = read q
        %w = workgroup_id 1
        %count = read counts at [%w] as []
        %lowest = register [] f32 -inf
        %row = self_index M
        %top = register [M] f32 -60000.0
        %nothing = register [D, M] f32 0.0
        %most, %sum = iterate N (%before = %top, %so_far = %nothing) {
            %k = read k
            %zero = register [N, M] f32 0.0
            %product = mma %k, %q, %zero
            %col = self_index N
            %last = add %row, %count
            %at = broadcast %last [N, M]
            %sees = compare COMPARISON %col, %at
            %score = select %sees, %product, %lowest
            %greatest = reduce_max %score over N
            %now = max %before, %greatest
            %less = sub %score, %now
            %weights = exp2 %less
            %drop = sub %before, %now
            %factor = exp2 %drop
            %kept = mul %so_far, %factor
            %rounded = cast %weights f16
            %values = read k
            %next = mma %values, %rounded, %kept
            yield %now, %next
        }
        %tops = broadcast %most [D, M]
        %both = add %sum, %tops
        %all = broadcast %both [W, D, M]
        write %all, o
    }";
    let counts = [
        0,
        1,
        -1,
        31,
        -32,
        33,
        -100,
        100,
        300,
        -300,
        1 << 27,
        -(1 << 27),
        (1 << 28) - 1,
        1 << 28,
        -(1 << 28),
        (1 << 28) + 1,
        1 << 29,
        -(1 << 29),
        1 << 30,
        i32::MAX,
        i32::MAX - 100,
        i32::MIN,
        i32::MIN + 100,
    ];
    let sizes = [("M", 128), ("N", 208), ("D", 32), ("W", counts.len() as i64)];
    for comparison in ["le", "lt", "ge", "gt"] {
        let kernel = Kernel::parse(&text.replace("COMPARISON", comparison), "counted").expect("a kernel");
        let outcome = |masked: MaskedTiles, schedule: &Schedule| {
            let options = sizes
                .iter()
                .fold(Options::new(Target::GFX942), |options, &(symbol, size)| options.set(symbol, size));
            let executable =
                kernel.compile(&options.masked_tiles(masked).schedule(schedule.clone())).expect("compiles");
            let device = Device::simulator(Target::GFX942);
            let [q, k] = [(128, 1), (208, 2)].map(|(rows, seed)| {
                device
                    .upload_tensor(&Tensor::random(&[rows, 32], DType::F16, seed).expect("fits"))
                    .expect("fits")
            });
            let of_device = device.upload(&counts).expect("fits");
            let out = device.upload(&vec![0f32; counts.len() * 32 * 128]).expect("fits");
            let result =
                device.launch(&executable).buffer(&q).buffer(&k).buffer(&of_device).buffer(&out).run();
            (out.read_bytes().expect("readable"), result.expect("runs").stats.mfma)
        };
        let (expected, all) = outcome(MaskedTiles::Visit, &Schedule::None);
        for schedule in [Schedule::None, Schedule::Prefetch, Schedule::TwoPhase] {
            let (bytes, products) = outcome(MaskedTiles::Skip, &schedule);
            assert!(bytes == expected, "{comparison} {schedule:?}");
            assert!(products < all, "{comparison} {schedule:?}");
        }
    }
}

/// The report counts the branches, and its mix is that of the loop without masks.
#[test]
fn reports_say_that_masks_stand_under_branches() {
    let compiled = |attention: &Attention| {
        let options = attention.options(Target::GFX942).schedule(Schedule::None);
        attention.kernel().expect("a kernel").compile(&options).expect("compiles")
    };
    let [causal, plain] = [base().causal(), base()].map(|attention| compiled(&attention));
    assert_eq!([&causal, &plain].map(|executable| executable.report().branches_of_masks), [1, 0]);
    let lines = causal.report().lines();
    let line = lines.iter().find(|line| line.0 == "masks").expect("a line");
    assert_eq!(line.1, "stand under 1 branch: tiles of which they hide nothing do without");
    let mixes = [&causal, &plain].map(|executable| executable.report().main_loop.expect("a loop"));
    assert_eq!(mixes[0].valu, mixes[1].valu);
}

/// The bits of a launch of one head of a form with masks, and how many branches are around them.
fn bits(attention: &Attention, target: Target, schedule: &Schedule, masked: MaskedTiles) -> (Vec<u8>, u32) {
    let kernel = attention.kernel().expect("a kernel");
    let options = attention.options(target).schedule(schedule.clone()).masked_tiles(masked);
    let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{schedule:?}: {fault}"));
    let device = Device::simulator(target);
    let [queries, keys] = [[1, 1, 300, 64], [1, 1, 450, 64]];
    let tensors = [(queries, 1), (keys, 2), (keys, 3), (queries, 4)]
        .map(|(shape, seed)| Tensor::random(&shape, DType::Bf16, seed).expect("fits"));
    let buffers = tensors.each_ref().map(|tensor| device.upload_tensor(tensor).expect("fits"));
    let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    let findings = launch.check(&CheckOptions { seed: 7 }).expect("runs");
    assert!(findings.is_clean(), "{schedule:?}: {findings}");
    (buffers[3].read_bytes().expect("readable"), executable.report().branches_of_masks)
}

/// Lengths that tiles do not divide, and the schedules that overlap iterations.
#[test]
fn masks_under_branches_change_no_bits() {
    let base = || Attention::new(1, 64).tile(AttentionTile::new(256, 32, 64)).sizes(1, 300, 450);
    let forms = [base().causal(), base().window(100, 20), base().mask(|_, q, k| (k - 70).less_equal(q))];
    for attention in &forms {
        for target in [Target::GFX942, Target::GFX950] {
            let (expected, none) = bits(attention, target, &Schedule::None, MaskedTiles::Visit);
            assert_eq!(none, 0);
            for schedule in OF_PRODUCTS {
                let (bytes, branches) = bits(attention, target, &schedule, MaskedTiles::Skip);
                assert!(bytes == expected, "{schedule:?} on {target}");
                assert!(branches > 0, "{schedule:?} on {target}");
            }
        }
    }
}

/// What stands in a tile that nobody visits is not multiplied with zero.
#[test]
fn what_is_no_number_is_seen_where_a_tile_is_visited() {
    let mut numbers = values().to_f64();
    numbers[200 * DIM..201 * DIM].fill(f64::NAN);
    let values = of_numbers(DType::Bf16, &[1, 1, LENGTH, DIM], &numbers);
    let [(skipped, _), (visited, _)] =
        [MaskedTiles::Skip, MaskedTiles::Visit].map(|masked| run(&base().causal(), masked, &values));
    assert!(visited.iter().all(|number| number.is_nan()));
    let (before, with) = skipped.split_at(192 * DIM);
    assert!(before.iter().all(|number| number.is_finite()));
    assert!(with.iter().all(|number| number.is_nan()));
}
