//! Instructions that gfx950 has and its predecessors lack: 16-bit floats rounded two at a time, for every
//! number and every middle, and rows of lanes that change places in reductions. Its predecessors round
//! two f16 by two instructions, and join two bf16 by one, with the same results.

use groundswell::author::ReductionOp;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::device::DeviceElement;
use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::oracle::{Workspace, assert_equivalent};

/// `[N]` of f32 cast to another dtype.
fn rounded(to: DType) -> Kernel {
    let n = Symbol::new("N");
    Kernel::trace("rounded", |w| {
        w.distribute([workgroup(n, 1024, 0)]);
        let x = w.memory("x", [n], Global, F32);
        let y = w.memory("y", [n], Global, to);
        w.write(w.read(x).cast(to), y);
    })
    .expect("a kernel")
}

/// Each number of a 16-bit float with a greater one next to it, their middle, its neighbours in f32, and the
/// codes of what these are rounded to: the two numbers, of which the middle takes the even one.
fn numbers(widen: fn(u16) -> f32, infinity: u16) -> Vec<(f32, u16)> {
    let mut all = Vec::new();
    for code in 0..infinity {
        let (own, step) = match code + 1 == infinity {
            true => (widen(code), widen(code) - widen(code - 1)),
            false => (widen(code), widen(code + 1) - widen(code)),
        };
        let middle = (f64::from(own) + f64::from(step) / 2.0) as f32;
        let even = code + (code & 1);
        let [below, above] = [middle.to_bits() - 1, middle.to_bits() + 1].map(f32::from_bits);
        for (x, to) in [(own, code), (below, code), (middle, even), (above, code + 1)] {
            all.extend([(x, to), (-x, to | 0x8000)]);
        }
    }
    all.extend([(f32::INFINITY, infinity), (f32::NEG_INFINITY, infinity | 0x8000)]);
    all
}

/// Quiet and signalling NaNs of both signs, with payloads that a 16-bit float has no room for.
fn nans() -> Vec<f32> {
    let payloads = [1, 0x1000, 0x2000, 0xffff, 0x3f_ffff, 0x40_0000, 0x7f_ffff];
    payloads.iter().flat_map(|bits| [0x7f80_0000 | bits, 0xff80_0000 | bits]).map(f32::from_bits).collect()
}

/// What a kernel writes for an input.
fn results<T: DeviceElement>(device: &Device, executable: &Executable, x: &Buffer, zeros: Vec<T>) -> Vec<T> {
    let y = device.upload(&zeros).expect("memory");
    let report = device.launch(executable).buffer(x).buffer(&y).check(&CheckOptions { seed: 1 });
    let report = report.expect("a launch");
    assert!(report.is_clean(), "{report}");
    y.download::<T>().expect("memory")
}

#[test]
fn every_number_of_sixteen_bits_and_every_middle_is_rounded_to_nearest_even() {
    let space = Workspace::with_zig();
    let bf16s = numbers(|code| bf16::from_bits(code).to_f32(), 0x7f80);
    let f16s = numbers(|code| f16::from_bits(code).to_f32(), 0x7c00);
    let mut cases = vec![
        (Target::GFX950, Bf16, &bf16s, "v_cvt_pk_bf16_f32"),
        (Target::GFX950, F16, &f16s, "v_cvt_pk_f16_f32"),
    ];
    for target in Target::ALL.into_iter().filter(|&target| target != Target::GFX950) {
        cases.push((target, F16, &f16s, "dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE"));
        cases.push((target, Bf16, &bf16s, "v_perm_b32"));
    }
    for (target, dtype, numbers, name) in cases {
        let device = Device::simulator(target);
        let mut inputs: Vec<f32> = numbers.iter().map(|number| number.0).collect();
        inputs.extend(nans());
        let options = Options::new(target).set("N", inputs.len());
        let executable = compile_uncached(&rounded(dtype), &options, Verify::Off).expect("a cast");
        let text = executable.assembly().expect("text");
        assert!(text.contains(name) && !text.contains("v_lshl_or_b32"), "{text}");
        if let Some(space) = &space {
            assert_equivalent(executable.object(), &space.assemble(executable.target(), &text));
        }
        let x = device.upload(&inputs).expect("memory");
        let codes: Vec<u16> = match dtype {
            F16 => results(&device, &executable, &x, vec![f16::ZERO; inputs.len()])
                .into_iter()
                .map(f16::to_bits)
                .collect(),
            _ => results(&device, &executable, &x, vec![bf16::ZERO; inputs.len()])
                .into_iter()
                .map(bf16::to_bits)
                .collect(),
        };
        for (&(x, to), &code) in numbers.iter().zip(&codes) {
            assert_eq!(code, to, "{target}: {x:e} as {dtype}");
        }
        for (x, &code) in nans().iter().zip(&codes[numbers.len()..]) {
            let wide =
                if dtype == F16 { f16::from_bits(code).to_f32() } else { bf16::from_bits(code).to_f32() };
            assert!(wide.is_nan(), "{target}: {:#x} as {dtype} is {code:#x}", x.to_bits());
        }
    }
}

/// What is computed from bf16 numbers has no NaN that a sum would lose, so its cast to bf16 takes two
/// instructions for a number and one for two of them; what is computed from f32 numbers takes three more.
#[test]
fn nans_of_what_is_computed_from_bf16_numbers_survive_a_shorter_rounding() {
    let codes: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
    let n = Symbol::new("N");
    let kernel = |dtype: DType| {
        Kernel::trace("powers", |w| {
            w.distribute([workgroup(n, 256, 0)]);
            let x = w.memory("x", [n], Global, dtype);
            let y = w.memory("y", [n], Global, Bf16);
            let x = w.read(x).cast(F32);
            w.write((x * 0.75 - 0.125).exp2().cast(Bf16), y);
        })
        .expect("a kernel")
    };
    for target in Target::ALL.into_iter().filter(|&target| target != Target::GFX950) {
        let options = Options::new(target).set(n, codes.len()).fast_math();
        let compiled =
            |dtype| compile_uncached(&kernel(dtype), &options, Verify::AfterEachPass).expect("a cast");
        let [short, long] = [Bf16, F32].map(compiled);
        let rounds = |executable: &Executable| {
            let text = executable.assembly().expect("text");
            [text.matches("v_add3_u32").count(), text.matches("v_cndmask_b32").count()]
        };
        let [[sums, choices], [_, chosen]] = [rounds(&short), rounds(&long)];
        assert!(sums > 0 && choices == 0 && chosen > 0, "{target}");
        let device = Device::simulator(target);
        let narrow = device.upload(&codes).expect("memory");
        let wide: Vec<f32> = codes.iter().map(|code| code.to_f32()).collect();
        let wide = device.upload(&wide).expect("memory");
        let zeros = || vec![bf16::ZERO; codes.len()];
        let got = results(&device, &short, &narrow, zeros());
        let expected = results(&device, &long, &wide, zeros());
        for ((code, got), expected) in codes.iter().zip(got).zip(expected) {
            assert_eq!(got.to_bits(), expected.to_bits(), "{target}: {:#x}", code.to_bits());
            assert_eq!(got.to_f32().is_nan(), code.to_f32().is_nan(), "{target}: {:#x}", code.to_bits());
        }
    }
}

/// Every code of an 8-bit float is widened, two at a time.
#[test]
fn eight_bit_floats_are_widened_in_pairs() {
    let n = Symbol::new("N");
    let device = Device::simulator(Target::GFX950);
    let space = Workspace::with_zig();
    let codes: Vec<u8> = (0..=255).collect();
    for from in [F8E4M3Fn, F8E5M2] {
        let given = Tensor::from_bytes(&[256], from, &codes).expect("whole");
        for to in [F32, F16, Bf16] {
            let kernel = Kernel::trace("widened", |w| {
                w.distribute([workgroup(n, 256, 0)]);
                let x = w.memory("x", [n], Global, from);
                let y = w.memory("y", [n], Global, to);
                w.write(w.read(x).cast(to), y);
            });
            let options = Options::new(Target::GFX950).set(n, 256);
            let executable =
                compile_uncached(&kernel.expect("a kernel"), &options, Verify::Off).expect("a cast");
            let text = executable.assembly().expect("text");
            assert_eq!(text.matches("v_cvt_scalef32_pk_").count(), 2, "{text}");
            if let Some(space) = &space {
                assert_equivalent(executable.object(), &space.assemble(executable.target(), &text));
            }
            let [x, y] = [
                &given,
                &Tensor::from_bytes(&[256], to, &vec![0; 256 * to.bits() as usize / 8]).expect("whole"),
            ]
            .map(|tensor| device.upload_tensor(tensor).expect("memory"));
            device.launch(&executable).buffer(&x).buffer(&y).run().expect("a launch");
            let wide =
                Tensor::from_bytes(&[256], to, &y.read_bytes().expect("memory")).expect("whole").to_f64();
            for (code, (wide, expected)) in wide.into_iter().zip(given.to_f64()).enumerate() {
                let is_same = wide.to_bits() == expected.to_bits() || wide.is_nan() && expected.is_nan();
                assert!(is_same, "{code:#x} of {from} as {to} is {wide}, should be {expected}");
            }
        }
    }
}

/// What is folded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Fold {
    Rows,
    Columns,
}

/// Rows or columns folded by one wave, whose lanes have parts of several.
fn folded(op: ReductionOp, dtype: DType, fold: Fold) -> Kernel {
    let [m, n] = symbols(["M", "N"]);
    Kernel::trace("folded", |w| {
        let (kept, n, tile) = match fold {
            Fold::Rows => (m, n, 4),
            Fold::Columns => (n, m, 16),
        };
        w.distribute([workgroup(kept, tile, 0)]);
        let x = w.memory("x", [m, Symbol::new("N")], Global, dtype);
        let y = w.memory("y", [kept], Global, dtype);
        let x = w.read(x);
        let folded = match op {
            ReductionOp::Sum => x.sum(n),
            ReductionOp::Product => x.product(n),
            ReductionOp::Min => x.min(n),
            ReductionOp::Max => x.max(n),
        };
        w.write(folded, y);
    })
    .expect("a kernel")
}

#[test]
fn rows_of_lanes_change_places_in_reductions() {
    let space = Workspace::with_zig();
    let mut swapped = [0; 2];
    for (at, dtype) in [F32, I32, F64, I64].into_iter().enumerate() {
        for (turn, op) in [ReductionOp::Sum, ReductionOp::Max, ReductionOp::Min].into_iter().enumerate() {
            for (number, n) in [16i64, 64, 100, 128, 256, 1024].into_iter().enumerate() {
                let fold = [Fold::Rows, Fold::Columns][(number + turn) % 2];
                let kernel = folded(op, dtype, fold);
                let other = [4, 7, 29][(at + turn + number) % 3];
                let (m, n) = if fold == Fold::Rows { (other, n) } else { (n, other) };
                let title = format!("{op:?} of {fold:?} of {m} x {n} {dtype}");
                let options = Options::new(Target::GFX950).set("M", m).set("N", n);
                let executable = verified(&kernel, &options);
                let text = executable.assembly().expect("text");
                for (count, name) in swapped.iter_mut().zip(["v_permlane16_swap", "v_permlane32_swap"]) {
                    *count += usize::from(text.contains(name));
                }
                assert!(!text.contains("ds_swizzle") && !text.contains("ds_bpermute"), "{title}: {text}");
                let value = |symbol: Symbol| Some(if symbol.name() == "M" { m } else { n });
                assert_right(&kernel, &executable, &value, at as u64, &title);
                if let (Some(space), 0) = (&space, number % 3) {
                    assert_equivalent(executable.object(), &space.assemble(executable.target(), &text));
                }
            }
        }
    }
    assert!(swapped.iter().all(|&count| count >= 12), "{swapped:?}");
}

/// Sums of whole numbers are exact in any order, so a plain loop gives their bits.
#[test]
fn sums_over_rows_of_lanes_equal_a_loop() {
    let device = Device::simulator(Target::GFX950);
    for (m, n) in [(6usize, 64usize), (6, 128), (7, 200), (64, 6), (100, 40)] {
        let numbers: Vec<f32> = (0..m * n).map(|at| ((at * 7919) % 101) as f32 - 50.0).collect();
        let rows: Vec<f32> = numbers.chunks(n).map(|row| row.iter().sum()).collect();
        let columns: Vec<f32> = (0..n).map(|at| numbers.iter().skip(at).step_by(n).sum()).collect();
        for (fold, expected) in [(Fold::Rows, rows), (Fold::Columns, columns)] {
            let options = Options::new(Target::GFX950).set("M", m).set("N", n);
            let executable = folded(ReductionOp::Sum, F32, fold).compile(&options).expect("a sum");
            let x = device.upload(&numbers).expect("memory");
            let sums = results(&device, &executable, &x, vec![0f32; expected.len()]);
            assert_eq!(sums, expected, "{fold:?} of {m} x {n}");
        }
    }
}
