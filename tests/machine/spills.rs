//! Kernels that do not fit into their registers: small `max_vgprs` and large accumulators give the same
//! results on the simulator as the interpreter, and the report says what it took. That is so on chips whose
//! kernels find their scratch by themselves, with AGPRs in the same file or in one of their own, and on one
//! whose hardware finds it.

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell::report::{CandidateOutcome, Report, ScheduleCandidate};
use groundswell_testing::judged::verified;

type Bindings = Vec<(Symbol, i64)>;

fn bindings(pairs: &[(&str, i64)]) -> Bindings {
    pairs.iter().map(|&(name, value)| (Symbol::new(name), value)).collect()
}

/// Checks a kernel on three chips; the report is that for gfx942.
fn check(
    kernel: &Kernel,
    bindings: &Bindings,
    adjust: impl Fn(Options) -> Options,
    tensors: &[Tensor],
) -> Report {
    let report = check_on(Target::GFX942, kernel, bindings, &adjust, tensors);
    let other = check_on(Target::GFX90A, kernel, bindings, &adjust, tensors);
    assert_eq!(other.scratch_bytes > 0, report.scratch_bytes > 0, "{other:?}");
    // Where AGPRs have a file of their own, more or less may fit.
    check_on(Target::GFX908, kernel, bindings, &adjust, tensors);
    report
}

/// Compiles with the machine verifier on, runs, and compares the last tensor with the interpreter's.
fn check_on(
    target: Target,
    kernel: &Kernel,
    bindings: &Bindings,
    adjust: &impl Fn(Options) -> Options,
    tensors: &[Tensor],
) -> Report {
    let options = bindings.iter().fold(Options::new(target), |o, &(s, v)| o.set(s, v));
    let executable = verified(kernel, &adjust(options));
    let report = executable.report().clone();
    let sizes = |s: Symbol| bindings.iter().find(|b| b.0 == s).map(|b| b.1);
    let expected = Interpreter::run(kernel, &sizes, tensors).unwrap_or_else(|e| panic!("{e}"));
    let device = Device::simulator(target);
    let buffers: Vec<Buffer> = tensors.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
    let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    launch.run().unwrap_or_else(|e| panic!("{e}"));
    let (last, buffer) = (expected.last().expect("a tensor"), buffers.last().expect("a buffer"));
    let shape: Vec<usize> = last.shape().to_vec();
    let bytes = buffer.read_bytes().expect("readable");
    let got = Tensor::from_bytes(&shape, last.dtype(), &bytes).expect("whole").to_f64();
    let wanted = last.to_f64();
    let largest = wanted.iter().fold(0f64, |a, b| a.max(b.abs()));
    for (at, (g, w)) in got.iter().zip(&wanted).enumerate() {
        assert!((g - w).abs() <= 1e-3 * largest, "{target}: element {at} is {g}, should be {w}\n{report:?}");
    }
    report
}

fn gemm(tile: [i64; 3], waves: [u32; 2], shape: [i64; 3], adjust: impl Fn(Options) -> Options) -> Report {
    let kernel = Gemm::any_shape().waves(Waves::new(waves[0], waves[1])).kernel().expect("a valid kernel");
    let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
    let values: Vec<(&str, i64)> = names.into_iter().zip(shape.into_iter().chain(tile)).collect();
    let [m, n, k] = shape.map(|size| size as usize);
    let tensors = [
        Tensor::random(&[m, k], F16, 1).expect("small"),
        Tensor::random(&[n, k], F16, 2).expect("small"),
        Tensor::random(&[m, n], F32, 3).expect("small"),
    ];
    check(&kernel, &bindings(&values), adjust, &tensors)
}

/// A kernel of one wave that keeps this many values of a 64x64 tile alive at once.
fn many_values(count: usize) -> Kernel {
    let mut text =
        "kernel many {\n  workgroup M, 64, 0\n  workgroup N, 64, 1\n  a = memory [M, N] global f32\n  \
                    c = memory [M, N] global f32\n  %x = read a\n  %v0 = add %x, %x\n"
            .to_owned();
    for at in 1..count {
        text += &format!("  %v{at} = add %v{}, %x\n", at - 1);
    }
    text += &format!("  %s0 = sub %v{}, %v0\n", count - 1);
    for at in 1..count {
        text += &format!("  %s{at} = sub %v{at}, %s{}\n", at - 1);
    }
    text += &format!("  write %s{}, c\n}}\n", count - 1);
    Kernel::parse(&text, "many.gsw").expect("a valid kernel")
}

#[test]
fn three_hundred_values_of_a_tile_are_spilled() {
    let sizes = bindings(&[("M", 64), ("N", 64)]);
    let tensors = [
        Tensor::random(&[64, 64], F32, 1).expect("small"),
        Tensor::random(&[64, 64], F32, 2).expect("small"),
    ];
    let report = check(&many_values(300), &sizes, |o| o, &tensors);
    // 64 registers for each value, of which a wave has 512.
    assert!(report.scratch_bytes > 4 * (300 * 64 - 512), "{report:?}");
}

#[test]
fn more_values_than_registers_and_scratch_hold_are_refused_for_what_they_are() {
    let options = Options::new(Target::GFX942).set(Symbol::new("M"), 64).set(Symbol::new("N"), 64);
    let fault = compile_uncached(&many_values(700), &options, Verify::Off).expect_err("too many");
    let text = fault.to_string();
    for part in [
        "44801 vector registers are alive at once, and scratch memory is full",
        "a wave has 512 vector registers here; 32",
        "the 131056 bytes of scratch that a work-item can have",
        "use smaller wave tiles",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_gemm_with_ever_fewer_registers() {
    let free = gemm([64, 64, 32], [2, 2], [100, 70, 90], |o| o);
    assert_eq!(free.spills, None, "{free:?}");
    let needed = free.vgprs + free.agprs;
    let mut spilled = 0;
    for limit in [needed - 4, needed * 3 / 4, needed / 2, 24] {
        let report = gemm([64, 64, 32], [2, 2], [100, 70, 90], |o| o.max_vgprs(limit));
        assert!(report.vgprs + report.agprs <= limit, "{limit}: {report:?}");
        let spills = report.spills.as_ref().expect("fewer than needed");
        assert_eq!(report.scratch_bytes, spills.counts.scratch_bytes);
        println!("{limit} of {needed}: {spills}");
        spilled = report.scratch_bytes;
    }
    assert!(spilled >= 64, "{spilled} bytes of scratch");
}

#[test]
fn an_elementwise_kernel_with_ever_fewer_registers() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("elementwise", |w| {
        w.distribute([workgroup(m, 32, 0), workgroup(n, 64, 1), wave(m, 32), wave(n, 64)]);
        let a = w.memory("a", [m, n], Global, F32);
        let b = w.memory("b", [m, n], Global, F32);
        let c = w.memory("c", [m, n], Global, F32);
        let (a, b) = (w.read(a), w.read(b));
        let sum = a + b;
        let result = sum * (a * b) + sum;
        w.write(result, c);
    })
    .expect("a valid kernel");
    let tensor = |seed| Tensor::random(&[37, 75], F32, seed).expect("small");
    let tensors = [tensor(1), tensor(2), tensor(3)];
    let sizes = bindings(&[("M", 37), ("N", 75)]);
    let free = check(&kernel, &sizes, |o| o, &tensors);
    assert_eq!(free.spills, None);
    let mut seen = 0;
    for limit in [free.vgprs * 3 / 4, free.vgprs / 2, 16, 12] {
        let report = check(&kernel, &sizes, |o| o.max_vgprs(limit), &tensors);
        assert!(report.vgprs + report.agprs <= limit, "{limit}: {report:?}");
        println!("{limit} of {}: {:?}", free.vgprs, report.spills);
        seen += u32::from(report.scratch_bytes > 0);
    }
    assert!(seen >= 2, "{seen} of the limits spill");
}

/// 256 accumulators in each of four waves, 128 in each of eight: with the rest that is more than the VGPRs
/// for the former.
#[test]
fn large_accumulators_go_to_agprs() {
    let four = gemm([256, 256, 32], [2, 2], [256, 256, 64], |o| o.deny(Deny::Spills));
    assert!(four.agprs >= 16 && four.scratch_bytes == 0, "{four:?}");
    assert!(four.vgprs <= 256 && four.vgprs + four.agprs <= 512, "{four:?}");
    let spills = four.spills.as_ref().expect("VGPRs are too few");
    assert!(spills.counts.to_agprs >= four.agprs && spills.counts.to_scratch == 0, "{spills}");
    let mix = four.main_loop.expect("a loop");
    assert!(mix.valu <= 2, "no copies in the loop: {mix:?}");
    let eight = gemm([256, 256, 64], [4, 2], [256, 256, 128], |o| o.deny(Deny::Spills));
    assert!(eight.vgprs + eight.agprs <= 256, "two waves share a SIMD: {eight:?}");
    assert_eq!(eight.scratch_bytes, 0);
}

/// The epilogue converts accumulators, which it has to copy from AGPRs for that, and factors need no copy
/// there. So factors go first, those that a loop hands on from trip to trip as a whole.
#[test]
fn large_tiles_with_narrow_results_spill_nothing() {
    for target in [Target::GFX942, Target::GFX950] {
        for output in [F16, Bf16] {
            let kernel = Gemm::any_shape().waves(Waves::new(2, 2)).output(output).kernel().expect("valid");
            for schedule in [Schedule::Interleaved, Schedule::Prefetch, Schedule::Automatic] {
                let sizes = [("M", 256), ("N", 256), ("K", 512)];
                let tile = [("BLOCK_M", 256), ("BLOCK_N", 256), ("BLOCK_K", 64)];
                let options = Options::new(target).schedule(schedule.clone());
                let options =
                    bindings(&[sizes, tile].concat()).iter().fold(options, |o, &(s, v)| o.set(s, v));
                let report = verified(&kernel, &options).report().clone();
                let what = format!("{target}, {output}, {schedule:?}: {report:?}");
                assert_eq!(report.scratch_bytes, 0, "{what}");
                let mix = report.main_loop.expect("a loop");
                // Addresses of LDS, and no copies of accumulators.
                assert!(mix.valu <= 8 && mix.global_store == 0, "{what}");
            }
        }
    }
}

/// Which schedules spill is known only when registers have been allocated. What the estimates prefer and what
/// turns out to spill makes room for another one that does not, or less.
#[test]
fn automatic_schedules_that_spill_are_rejected() {
    let kernel = Gemm::any_shape().waves(Waves::new(4, 4)).kernel().expect("valid");
    for target in [Target::GFX90A, Target::GFX942] {
        let sizes =
            [("M", 256), ("N", 256), ("K", 1024), ("BLOCK_M", 256), ("BLOCK_N", 256), ("BLOCK_K", 64)];
        let compiled = |schedule: Schedule| {
            let options = Options::new(target).schedule(schedule);
            let options = bindings(&sizes).iter().fold(options, |o, &(s, v)| o.set(s, v));
            compile_uncached(&kernel, &options, Verify::Off)
                .unwrap_or_else(|e| panic!("{e}"))
                .report()
                .clone()
        };
        let report = compiled(Schedule::Automatic);
        let [choice] = &report.schedule_choices[..] else { panic!("{target}: {report:?}") };
        let rejected: Vec<&ScheduleCandidate> = choice
            .candidates
            .iter()
            .filter(
                |c| matches!(&c.outcome, CandidateOutcome::Refused(why) if why.contains("registers spill")),
            )
            .collect();
        let [rejected] = rejected[..] else { panic!("{target}: {choice:?}") };
        let chosen = choice.candidates.iter().find(|candidate| candidate.chosen).expect("one is chosen");
        assert_ne!(chosen.strategy, rejected.strategy, "{target}");
        assert_eq!(rejected.strategy, Schedule::PingPong.name(), "{target}");
        assert!(compiled(Schedule::PingPong).scratch_bytes > 0, "{target}");
        assert_eq!(report.scratch_bytes, 0, "{target}: {report:?}");
    }
}

/// Sixteen waves share the SIMDs by four, so each gets 128 vector registers however many it would like.
#[test]
fn all_waves_of_a_workgroup_fit_at_once() {
    let report = gemm([256, 256, 32], [4, 4], [256, 256, 64], |o| o);
    assert!(report.vgprs + report.agprs <= 128, "{report:?}");
    assert!(report.waves_per_simd >= 4, "{report:?}");
}
