//! 8-bit floats: every conversion from and to them, arithmetic, products, and how they go through LDS and
//! masks. The reference takes the formats apart by their definitions and looks for the nearest of all values;
//! it shares nothing with the crate.

use groundswell::kernels::{Gemm, Waves};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, zeros};
use groundswell_testing::floats::random;
use groundswell_testing::judged::verified;

const FORMATS: [DType; 5] = [F8E4M3Fnuz, F8E5M2Fnuz, F8E4M3Fn, F8E5M2, F8E8M0];

/// The value of an encoding: OCP's "8-bit floating point specification", its "Microscaling formats" for
/// scales, and for the other two the CDNA3 guide.
fn value(dtype: DType, bits: u8) -> f64 {
    if dtype == F8E8M0 {
        return if bits == 0xff { f64::NAN } else { 2f64.powi(i32::from(bits) - 127) };
    }
    let (fraction, bias) = match dtype {
        F8E4M3Fnuz => (3, 8),
        F8E5M2Fnuz => (2, 16),
        F8E4M3Fn => (3, 7),
        _ => (2, 15),
    };
    let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
    match (dtype, bits) {
        (F8E4M3Fnuz | F8E5M2Fnuz, 0x80) | (F8E4M3Fn, 0x7f | 0xff) => return f64::NAN,
        (F8E5M2, 0x7c | 0xfc) => return sign * f64::INFINITY,
        (F8E5M2, 0x7d..=0x7f | 0xfd..=0xff) => return f64::NAN,
        _ => {}
    }
    let exponent = i32::from(bits & 0x7f) >> fraction;
    let digits = f64::from(bits & ((1 << fraction) - 1)) / f64::from(1 << fraction);
    match exponent {
        0 => sign * digits * 2f64.powi(1 - bias),
        _ => sign * (1.0 + digits) * 2f64.powi(exponent - bias),
    }
}

/// The value that a conversion of `x` gives: the nearest one; at a tie that with the even encoding; beyond
/// the largest one what the format has for that.
fn nearest(dtype: DType, x: f64) -> f64 {
    if x.is_nan() {
        return f64::NAN;
    }
    if dtype == F8E8M0 {
        // The larger one of two at the same distance; no sign, no zero.
        let distance = |bits: &u8| (value(dtype, *bits) - x).abs();
        let best = (0..0xff).rev().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap();
        return if x < 0.0 || x >= 1.5 * 2f64.powi(127) { f64::NAN } else { value(dtype, best) };
    }
    let last = (0..=0x7f).rev().find(|&bits| value(dtype, bits).is_finite()).unwrap();
    let (largest, before) = (value(dtype, last), value(dtype, last - 1));
    let limit = largest + (largest - before) / 2.0;
    let beyond = if dtype == F8E5M2 { f64::INFINITY } else { f64::NAN };
    // The largest encodings are even for e4m3fn and odd for the others.
    if x.abs() > limit || x.abs() == limit && last & 1 == 1 {
        return if x < 0.0 { -beyond } else { beyond };
    }
    let distance = |bits: u8| (value(dtype, bits) - x.abs()).abs();
    let best =
        (0..=last).min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)))).unwrap();
    value(dtype, best).copysign(x)
}

fn same(got: f64, expected: f64) -> bool {
    got == expected || got.is_nan() && expected.is_nan()
}

/// Runs a kernel over a row of `from` that gives a row of `to`, and checks each result.
fn convert(from: DType, to: DType, bytes: &[u8], expected: impl Fn(f64) -> f64) {
    let n = bytes.len() / from.bytes() as usize;
    let input = Tensor::from_bytes(&[n], from, bytes).unwrap();
    let dn = Symbol::new("N");
    for tile in [256, 64] {
        let kernel = Kernel::trace("convert", |w| {
            w.distribute([workgroup(dn, tile, 0)]);
            let x = w.memory("x", [dn], Global, from);
            let y = w.memory("y", [dn], Global, to);
            w.write(w.read(x).cast(to), y);
        })
        .unwrap();
        let options = Options::new(Target::GFX942).set(dn, n);
        let executable = verified(&kernel, &options);
        let device = Device::simulator(Target::GFX942);
        let (x, y) = (device.upload_tensor(&input).unwrap(), device.upload_tensor(&zeros(to, &[n])).unwrap());
        device.launch(&executable).buffer(&x).buffer(&y).run().unwrap();
        let device_bytes = y.read_bytes().unwrap();
        let inputs = [input.clone(), zeros(to, &[n])];
        let after = Interpreter::run(&kernel, &|_| Some(n as i64), &inputs).unwrap();
        let got = Tensor::from_bytes(&[n], to, &device_bytes).unwrap().to_f64();
        for (at, ((&x, &got), interpreted)) in
            input.to_f64().iter().zip(&got).zip(after[1].to_f64()).enumerate()
        {
            let expected = expected(x);
            assert!(same(got, expected), "{from} {x:e} to {to}: {got}, should be {expected}");
            assert!(same(interpreted, expected), "{from} {x:e} to {to}: the interpreter has {interpreted}");
            let signs = [got, interpreted].map(f64::is_sign_negative);
            assert!(
                got.is_nan() || signs == [expected.is_sign_negative(); 2] || !signed_zero(to),
                "{at} {x}"
            );
        }
    }
}

/// Whether a format has two zeros.
fn signed_zero(dtype: DType) -> bool {
    !matches!(dtype, F8E4M3Fnuz | F8E5M2Fnuz | F8E8M0 | I32 | I8)
}

#[test]
fn every_encoding_widens_to_its_value() {
    let all: Vec<u8> = (0..=255).collect();
    for from in FORMATS {
        assert_eq!(Tensor::from_bytes(&[256], from, &all).unwrap().to_bytes(), all);
        for (bits, of_tensor) in (0..=255).zip(Tensor::from_bytes(&[256], from, &all).unwrap().to_f64()) {
            assert!(same(of_tensor, value(from, bits)), "{from} {bits:#x}");
        }
        convert(from, F32, &all, |x| x);
        // The least f16 is 2^-24; what is half of it or less becomes zero, and 2^16 is too large.
        convert(from, F16, &all, |x| match x.abs() {
            small if small <= 2f64.powi(-25) => 0f64.copysign(x),
            large if large >= 65536.0 => f64::INFINITY.copysign(x),
            _ => x,
        });
        // Each value of one format in another one.
        for to in FORMATS {
            convert(from, to, &all, |x| nearest(to, x));
        }
        convert(from, I32, &all, |x| f64::from(x as i32));
    }
}

#[test]
fn numbers_of_32_bits_round_once() {
    let mut state = 5u64;
    let mut random = || random(&mut state);
    for to in FORMATS {
        let mut singles: Vec<f32> =
            vec![0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN];
        singles.extend([f32::MIN_POSITIVE, f32::from_bits(1), -f32::from_bits(1)]);
        // All values, the ties between them, and their neighbours.
        let last = if to == F8E8M0 { 0xff } else { 0x7f };
        for bits in 0..=last {
            let (a, b) = (value(to, bits) as f32, value(to, bits.wrapping_add(1) & last) as f32);
            for x in [a, (a + b) / 2.0] {
                singles.extend([x, x.next_up(), x.next_down(), -x, -x.next_up(), -x.next_down()]);
            }
        }
        for x in [448.0, 464.0, 480.0, 240.0, 248.0, 57344.0, 61440.0f32] {
            singles.extend([x, x.next_up(), x.next_down(), -x]);
        }
        singles.extend((0..4000).map(|_| f32::from_bits((random() >> 32) as u32)));
        singles.extend((0..4000).map(|_| {
            let exponent = 100 + (random() >> 40) as u32 % 50;
            f32::from_bits((random() >> 32) as u32 & 0x807f_ffff | exponent << 23)
        }));
        let bytes: Vec<u8> = singles.iter().flat_map(|x| x.to_le_bytes()).collect();
        convert(F32, to, &bytes, |x| nearest(to, x));
        let integers: Vec<u8> = (-600i32..600).flat_map(|x| x.to_le_bytes()).collect();
        convert(I32, to, &integers, |x| nearest(to, x));
    }
}

#[test]
fn arithmetic_is_that_of_f32_rounded_once() {
    let n = Symbol::new("N");
    for dtype in FORMATS {
        let pairs: Vec<[u8; 2]> =
            (0..=255u8).flat_map(|a| (0..=255u8).step_by(7).map(move |b| [a, b])).collect();
        for op in [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Max] {
            let kernel = Kernel::trace("arithmetic", |w| {
                w.distribute([workgroup(n, 256, 0)]);
                let [a, b, c] = ["a", "b", "c"].map(|name| w.memory(name, [n], Global, dtype));
                let (x, y) = (w.read(a), w.read(b));
                let result = match op {
                    BinaryOp::Add => x + y,
                    BinaryOp::Mul => x * y,
                    _ => x.maximum(y),
                };
                w.write(result, c);
            })
            .unwrap();
            let options = Options::new(Target::GFX942).set(n, pairs.len());
            let executable = verified(&kernel, &options);
            let device = Device::simulator(Target::GFX942);
            let of = |at: usize| {
                let bytes: Vec<u8> = pairs.iter().map(|pair| pair[at]).collect();
                device.upload_tensor(&Tensor::from_bytes(&[pairs.len()], dtype, &bytes).unwrap()).unwrap()
            };
            let c = device.upload_tensor(&zeros(dtype, &[pairs.len()])).unwrap();
            device.launch(&executable).buffer(&of(0)).buffer(&of(1)).buffer(&c).run().unwrap();
            for (pair, &got) in pairs.iter().zip(&c.read_bytes().unwrap()) {
                let [x, y] = pair.map(|bits| value(dtype, bits));
                let exact = match op {
                    BinaryOp::Add => x + y,
                    BinaryOp::Mul => x * y,
                    _ if x.is_nan() => y,
                    _ if y.is_nan() => x,
                    _ => x.max(y),
                };
                let expected = nearest(dtype, exact);
                assert!(same(value(dtype, got), expected), "{dtype} {op:?} {x} {y}: {}", value(dtype, got));
            }
        }
    }
}

#[test]
fn products_equal_plain_loops() {
    let shapes = [[16, 16, 32], [64, 64, 64], [1, 1, 1], [37, 70, 100], [128, 96, 160], [3, 130, 33]];
    for dtype in [F8E4M3Fnuz, F8E5M2Fnuz] {
        for (at, [m, n, k]) in shapes.into_iter().enumerate() {
            for matrix in [MatrixShape::M16x16, MatrixShape::M32x32] {
                let schedule = [Schedule::None, Schedule::Prefetch, Schedule::Modulo][at % 3].clone();
                let tensor = |rows: usize, first: usize| {
                    let encodings = (0..rows * k).map(|at| nearest_bits(dtype, number(at + first)));
                    Tensor::from_bytes(&[rows, k], dtype, &encodings.collect::<Vec<_>>()).unwrap()
                };
                let (a, b) = (tensor(m, 0), tensor(n, 3));
                let (left, right) = (a.to_f64(), b.to_f64());
                let element = |at: usize| {
                    let (i, j) = (at / n, at % n);
                    (0..k).map(|x| left[i * k + x] * right[j * k + x]).sum::<f64>()
                };
                let expected = (0..m * n).map(element).collect();
                let kernel = Gemm::any_shape().inputs(dtype).matrix(matrix).waves(Waves::new(2, 2)).kernel();
                let (sm, sn, sk) = (m as i64, n as i64, k as i64);
                Case {
                    name: format!("{dtype} {m}x{n}x{k} {matrix:?}"),
                    kernel: kernel.unwrap(),
                    sizes: vec![
                        ("M", sm),
                        ("N", sn),
                        ("K", sk),
                        ("BLOCK_M", 64),
                        ("BLOCK_N", 64),
                        ("BLOCK_K", 32),
                    ],
                    dynamic: if at % 2 == 0 { vec![] } else { vec!["M", "N", "K"] },
                    schedule,
                    inputs: vec![a.clone(), b.clone(), zeros(F32, &[m, n])],
                    expected,
                }
                .check();
            }
        }
    }
}

/// The encoding of a number that the format has.
fn nearest_bits(dtype: DType, x: f64) -> u8 {
    (0..=255).find(|&bits| value(dtype, bits) == x).unwrap()
}

#[test]
fn products_of_formats_that_the_chip_lacks_say_so() {
    for dtype in [F8E4M3Fn, F8E5M2] {
        let gemm = Gemm::new(64, 64, 64).inputs(dtype).compile(Target::GFX942);
        let text = gemm.map(drop).unwrap_err().to_string();
        let expected = format!("gfx942 has no matrix instruction of 16x16 that multiplies {dtype}");
        assert!(text.contains(&expected), "{text}");
        assert!(text.contains("compile for gfx950, or cast"), "{text}");
    }
}

/// The VOP1 encoding of these conversions is unreliable on gfx942 (LLVM, `FeatureCvtFP8Vop1Bug`).
#[test]
fn gfx942_converts_by_sdwa_alone() {
    let text = "kernel wide {
  workgroup M, 16, 0
  workgroup N, 256, 1
  x = memory [M, N] global DTYPE
  y = memory [M, N] global f32
  %x = read x
  %s = cast %x f32
  write %s, y
}";
    for dtype in ["f8e4m3fnuz", "f8e5m2fnuz"] {
        let kernel = Kernel::parse(&text.replace("DTYPE", dtype), "wide.gsw").expect("well-formed");
        let options = Options::new(Target::GFX942).set("M", 16).set("N", 256);
        let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{dtype}: {fault}"));
        let code = executable.assembly().expect("text");
        let conversions: Vec<&str> = code.lines().filter(|line| line.contains("v_cvt_f32_")).collect();
        assert!(conversions.len() >= 4, "{dtype}\n{code}");
        assert!(conversions.iter().all(|line| line.contains("_sdwa")), "{dtype}\n{code}");
    }
}
