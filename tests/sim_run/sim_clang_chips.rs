//! The simulator against clang on every chip that clang 19 knows: the kernels of
//! `tests/data/clang_kernels.c`, optimised and not, compute what the host computes. Values are such that no
//! result depends on rounding or on the order of lanes.

use std::fmt::Debug;

use groundswell::isa::Arch;
use groundswell::simulator::{LaunchConfig, SimError};
use groundswell::target::Target;
use groundswell_testing::oracle::Workspace;
use groundswell_testing::simulated::{Arg, Device, Plain};
use half::{bf16, f16};

const SOURCE: &str = include_str!("../data/clang_kernels.c");

/// What a check of a kernel gives: nothing, or what went wrong.
type Checked = Result<(), SimError>;

/// A kernel, the first chip that it does something on, and its check.
struct Case {
    kernel: &'static str,
    from: Arch,
    check: fn(&mut Device) -> Checked,
}

const fn case(kernel: &'static str, from: Arch, check: fn(&mut Device) -> Checked) -> Case {
    Case { kernel, from, check }
}

/// Every kernel of the source.
const CASES: [Case; 29] = [
    case("saxpy", Arch::Gfx906, saxpy),
    case("saxpy_wide", Arch::Gfx906, saxpy_wide),
    case("reduction", Arch::Gfx906, reduction),
    case("reduction_in_a_wave", Arch::Gfx906, reduction_in_a_wave),
    case("transpose", Arch::Gfx906, transpose),
    case("gemm", Arch::Gfx908, gemm),
    case("gemm_types", Arch::Gfx90a, gemm_types),
    case("histogram", Arch::Gfx906, histogram),
    case("atomics", Arch::Gfx906, atomics),
    case("scan", Arch::Gfx906, scan),
    case("halves", Arch::Gfx906, halves),
    case("narrow", Arch::Gfx906, narrow),
    case("doubles", Arch::Gfx906, doubles),
    case("integers", Arch::Gfx906, integers),
    case("stack", Arch::Gfx906, stack),
    case("calls", Arch::Gfx906, calls),
    case("dots", Arch::Gfx906, dots),
    case("dynamic_lds", Arch::Gfx906, dynamic_lds),
    case("identities", Arch::Gfx906, identities),
    case("wave_operations", Arch::Gfx906, wave_operations),
    case("atomics_of_all_kinds", Arch::Gfx906, atomics_of_all_kinds),
    case("float_atomics", Arch::Gfx90a, float_atomics),
    case("flat_pointers", Arch::Gfx906, flat_pointers),
    case("recursion", Arch::Gfx906, recursion),
    case("function_pointers", Arch::Gfx906, function_pointers),
    case("buffers", Arch::Gfx906, buffers),
    case("eight_bit_floats", Arch::Gfx942, eight_bit_floats),
    case("lines", Arch::Gfx906, lines),
    case("loads_to_lds", Arch::Gfx906, loads_to_lds),
];

/// Compiles for a chip, links, and checks all kernels.
fn check(target: Target, optimisation: &str) {
    let Some(workspace) = Workspace::with_tools(&["clang-19", "ld.lld-19"]) else { return };
    assert_eq!(SOURCE.matches("KERNEL void").count(), CASES.len(), "every kernel has its check");
    workspace.write("kernels.c", SOURCE);
    let options = format!("--target=amdgcn-amd-amdhsa -mcpu={target} {optimisation} -nogpulib");
    workspace.run(&format!("clang-19 -x c {options} -c kernels.c -o kernels.o"));
    workspace.run("ld.lld-19 -shared kernels.o -o kernels.co");
    let object = workspace.read("kernels.co");
    let mut wrong = Vec::new();
    for case in CASES.iter().filter(|case| target.arch >= case.from) {
        let mut device = Device::new(target, &object).expect("clang's object loads");
        if let Err(error) = (case.check)(&mut device) {
            wrong.push(format!("{}: {error}", case.kernel));
        }
    }
    assert!(wrong.is_empty(), "{target} {optimisation}\n{}", wrong.join("\n"));
}

#[test]
fn optimised_kernels_of_gfx906() {
    check(Target::GFX906, "-O3");
}

#[test]
fn unoptimised_kernels_of_gfx906() {
    check(Target::GFX906, "-O0");
}

#[test]
fn optimised_kernels_of_gfx908() {
    check(Target::GFX908, "-O3");
}

#[test]
fn unoptimised_kernels_of_gfx908() {
    check(Target::GFX908, "-O0");
}

#[test]
fn optimised_kernels_of_gfx90a() {
    check(Target::GFX90A, "-O3");
}

#[test]
fn unoptimised_kernels_of_gfx90a() {
    check(Target::GFX90A, "-O0");
}

#[test]
fn scratch_instructions_of_gfx90a() {
    check(Target::GFX90A, "-O0 -Xclang -target-feature -Xclang +enable-flat-scratch");
}

#[test]
fn optimised_kernels_of_gfx942() {
    check(Target::GFX942, "-O3");
}

#[test]
fn unoptimised_kernels_of_gfx942() {
    check(Target::GFX942, "-O0");
}

#[test]
fn preloaded_arguments_of_gfx942() {
    check(Target::GFX942, "-O3 -mllvm -amdgpu-kernarg-preload-count=8");
}

fn config(groups: u32, items: u32) -> LaunchConfig {
    LaunchConfig::new([groups, 1, 1], [items, 1, 1])
}

/// Panics with the name of the kernel and the first difference.
fn same<T: Plain + PartialEq + Debug>(kernel: &str, got: &[T], expected: &[T]) {
    assert_eq!(got.len(), expected.len(), "{kernel}");
    if let Some(at) = (0..got.len()).find(|&at| got[at] != expected[at]) {
        panic!("{kernel}: element {at} is {:?}, not {:?}", got[at], expected[at]);
    }
}

/// Numbers without a pattern.
fn mixed(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| i.wrapping_add(1).wrapping_mul(0x9e37_79b9) ^ (i << 7)).collect()
}

/// Small whole numbers without a pattern, negative ones among them.
fn small(count: usize, seed: u32) -> Vec<i32> {
    mixed(count + seed as usize).into_iter().skip(seed as usize).map(|v| (v >> 13) as i32 % 17 - 8).collect()
}

fn floats(values: &[i32]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

fn saxpy(device: &mut Device) -> Checked {
    let (n, (x, y)) = (1000, (floats(&small(1000, 1)), floats(&small(1024, 2))));
    let (dy, dx) = (device.upload(&y), device.upload(&x));
    device.launch("saxpy", config(4, 256), &[dy, dx, Arg::Float(2.5), Arg::Uint(n as u32)])?;
    let expected: Vec<f32> = (0..1024).map(|i| if i < n { 2.5 * x[i] + y[i] } else { y[i] }).collect();
    same("saxpy", &device.download(dy, 1024), &expected);
    Ok(())
}

fn saxpy_wide(device: &mut Device) -> Checked {
    let (n, (x, y)) = (300, (floats(&small(1200, 3)), floats(&small(1300, 4))));
    let (dy, dx) = (device.upload(&y), device.upload(&x));
    device.launch("saxpy_wide", config(2, 256), &[dy, dx, Arg::Float(-3.0), Arg::Uint(n)])?;
    let expected: Vec<f32> = (0..1300).map(|i| if i < 1200 { -3.0 * x[i] + y[i] } else { y[i] }).collect();
    same("saxpy_wide", &device.download(dy, 1300), &expected);
    Ok(())
}

fn reduction(device: &mut Device) -> Checked {
    let input = mixed(1777);
    let (out, dev) = (device.upload(&[0u32]), device.upload(&input));
    device.launch("reduction", config(1, 256), &[out, dev, Arg::Uint(1777)])?;
    let sum = input.iter().fold(0u32, |a, &b| a.wrapping_add(b));
    same("reduction", &device.download(out, 1), &[sum]);
    Ok(())
}

fn reduction_in_a_wave(device: &mut Device) -> Checked {
    let input = floats(&small(64, 5));
    let (out, dev) = (device.upload(&[0f32]), device.upload(&input));
    device.launch("reduction_in_a_wave", config(1, 64), &[out, dev])?;
    same("reduction_in_a_wave", &device.download(out, 1), &[input.iter().sum::<f32>()]);
    Ok(())
}

fn transpose(device: &mut Device) -> Checked {
    let (width, height) = (70, 45);
    let input = floats(&small(width * height, 6));
    let (out, dev) = (device.upload(&vec![0f32; width * height]), device.upload(&input));
    let args = [out, dev, Arg::Uint(width as u32), Arg::Uint(height as u32)];
    device.launch("transpose", LaunchConfig::new([3, 2, 1], [32, 8, 1]), &args)?;
    let expected: Vec<f32> = (0..width * height).map(|at| input[at % height * width + at / height]).collect();
    same("transpose", &device.download(out, width * height), &expected);
    Ok(())
}

fn gemm(device: &mut Device) -> Checked {
    let (m, n, k) = (64, 32, 48);
    let half = |values: Vec<i32>| -> Vec<f16> { values.iter().map(|&v| f16::from_f32(v as f32)).collect() };
    let (a, b) = (small(m * k, 7), small(n * k, 8));
    let (da, db) = (device.upload(&half(a.clone())), device.upload(&half(b.clone())));
    let c = device.upload(&vec![0f32; m * n]);
    let args = [c, da, db, Arg::Uint(n as u32), Arg::Uint(k as u32)];
    device.launch("gemm", LaunchConfig::new([1, 2, 1], [64, 1, 1]), &args)?;
    let dot = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum::<i32>() as f32;
    let expected: Vec<f32> = (0..m * n).map(|at| dot(at / n, at % n)).collect();
    same("gemm", &device.download(c, m * n), &expected);
    Ok(())
}

fn gemm_types(device: &mut Device) -> Checked {
    let (c, d) = (small(256, 9), small(256, 10));
    // A in the first 64 lanes' places, B in the next.
    let (a, b) = (small(512, 11), small(128, 12));
    let brain: Vec<bf16> = a.iter().map(|&v| bf16::from_f32(v as f32)).collect();
    let doubles = |values: &[i32]| -> Vec<f64> { values.iter().map(|&v| v.into()).collect() };
    let args = [
        device.upload(&floats(&c)),
        device.upload(&doubles(&d)),
        device.upload(&brain),
        device.upload(&doubles(&b)),
    ];
    device.launch("gemm_types", config(1, 64), &args)?;
    // Lane l of A holds row l % 16 from column 4 (l / 16) on, of B column l % 16.
    let brain_at = |side: usize, i: usize, k: usize| a[side * 256 + (k / 4 * 16 + i) * 4 + k % 4];
    let expected: Vec<f32> = (0..256)
        .map(|at| {
            let (lane, r) = (at / 4, at % 4);
            let (i, j) = (lane / 16 * 4 + r, lane % 16);
            let sum: i32 = (0..16).map(|k| brain_at(0, i, k) * brain_at(1, j, k)).sum();
            (c[at] + sum + 4 * b[0] * b[1]) as f32
        })
        .collect();
    same("gemm_types", &device.download(args[0], 256), &expected);
    let expected: Vec<f64> = (0..256)
        .map(|at| {
            let (lane, r) = (at / 4, at % 4);
            let (i, j) = (lane / 16 + 4 * r, lane % 16);
            f64::from(d[at] + (0..4).map(|k| b[k * 16 + i] * b[64 + k * 16 + j]).sum::<i32>())
        })
        .collect();
    same("gemm_types, doubles", &device.download(args[1], 256), &expected);
    Ok(())
}

fn histogram(device: &mut Device) -> Checked {
    let input = mixed(700);
    let (counts, dev) = (device.upload(&[1u32; 256]), device.upload(&input));
    device.launch("histogram", config(3, 256), &[counts, dev, Arg::Uint(700)])?;
    let mut expected = [1u32; 256];
    input.iter().for_each(|v| expected[(v & 255) as usize] += 1);
    same("histogram", &device.download(counts, 256), &expected);
    Ok(())
}

fn atomics(device: &mut Device) -> Checked {
    let (a, b) = (device.upload(&[9u32, u32::MAX, 5, 77]), device.upload(&[3u64; 64]));
    let (f, flat) = (device.upload(&[0f32; 64]), device.upload(&[0u32; 64]));
    device.launch("atomics", config(1, 64), &[a, b, f, flat])?;
    same("atomics", &device.download(a, 1), &[63u32]);
    same("atomics, loads", &device.download(f, 64), &[77f32; 64]);
    Ok(())
}

fn scan(device: &mut Device) -> Checked {
    let input = mixed(2048);
    let (out, dev) = (device.upload(&vec![0u32; 2048]), device.upload(&input));
    device.launch("scan", config(2, 1024), &[out, dev])?;
    let mut expected = Vec::new();
    for group in input.chunks(1024) {
        let mut sum = 0u32;
        expected.extend(group.iter().map(|&v| {
            sum = sum.wrapping_add(v);
            sum
        }));
    }
    same("scan", &device.download(out, 2048), &expected);
    Ok(())
}

fn halves(device: &mut Device) -> Checked {
    let half = |v: &i32| f16::from_f32(*v as f32);
    let (a, b, one) = (small(128, 13), small(128, 14), small(66, 15));
    let upload =
        |device: &mut Device, values: &[i32]| device.upload(&values.iter().map(half).collect::<Vec<f16>>());
    let out = device.upload(&[f16::ZERO; 128]);
    let args = [out, upload(device, &a), upload(device, &b), upload(device, &one)];
    device.launch("halves", config(1, 64), &args)?;
    let expected: Vec<f16> = (0..128).map(|i| half(&(a[i] * b[i] + a[i]))).collect();
    same("halves", &device.download(out, 128), &expected);
    let expected: Vec<f16> =
        (0..64).map(|i| half(&(one[i] * one[i + 1] + if one[i + 2] > 0 { 1 } else { -2 }))).collect();
    same("halves, one", &device.download(args[3], 64), &expected);
    Ok(())
}

fn narrow(device: &mut Device) -> Checked {
    let n = 100;
    let bytes: Vec<u8> = mixed(n + 1).into_iter().map(|v| v as u8).collect();
    let shorts: Vec<u16> = mixed(n + 2).into_iter().map(|v| (v >> 9) as u16).collect();
    let packed: Vec<i16> = mixed(2 * n + 2).into_iter().map(|v| (v >> 5) as i16).collect();
    let args = [device.upload(&bytes), device.upload(&shorts), device.upload(&packed), Arg::Uint(n as u32)];
    device.launch("narrow", config(1, 64), &args)?;
    let expected: Vec<u8> = (0..n).map(|i| bytes[i].wrapping_mul(3).wrapping_add(bytes[i + 1])).collect();
    same("narrow, bytes", &device.download(args[0], n), &expected);
    let expected: Vec<u16> =
        (0..n).map(|i| shorts[i].wrapping_mul(shorts[i + 1]).wrapping_add(shorts[i + 2] >> 3)).collect();
    same("narrow, shorts", &device.download(args[1], n), &expected);
    let expected: Vec<i16> =
        (0..2 * n).map(|i| packed[i].wrapping_add(packed[i + 2].wrapping_mul([3, 5][i % 2]))).collect();
    same("narrow, packed", &device.download(args[2], 2 * n), &expected);
    Ok(())
}

fn doubles(device: &mut Device) -> Checked {
    let a: Vec<f64> = (0..128)
        .map(|i| if i < 64 { f64::from(i * i) } else { [1.0, 2.0, 0.5, 4.0][i as usize % 4] })
        .collect();
    let f: Vec<f32> = (0..66).map(|i| [1.0, 4.0, 16.0][i % 3]).collect();
    let args = [device.upload(&[0f64; 64]), device.upload(&a), device.upload(&f)];
    device.launch("doubles", config(1, 64), &args)?;
    let expected: Vec<f64> = (0..64)
        .map(|i| {
            let d = a[i] / a[i + 64] + a[i].sqrt();
            let g = f[i] / f[i + 1] + f[i].sqrt() + f[i].exp2() + f[i + 2].abs();
            d.mul_add(g.into(), d.floor()) + d.trunc() + f64::from(g.trunc())
        })
        .collect();
    same("doubles", &device.download(args[0], 64), &expected);
    Ok(())
}

fn integers(device: &mut Device) -> Checked {
    let a: Vec<u64> = mixed(128).chunks(2).map(|p| u64::from(p[0]) << 32 | u64::from(p[1])).collect();
    let b: Vec<u32> = mixed(64).iter().enumerate().map(|(i, v)| v >> (i % 32)).collect();
    let args = [device.upload(&[0u64; 256]), device.upload(&a), device.upload(&b)];
    device.launch("integers", config(1, 64), &args)?;
    let expected: Vec<u64> = (0..64)
        .flat_map(|i| {
            let (x, y) = (a[i], u64::from(b[i]) | 1);
            [
                x / y,
                x.wrapping_mul(y).wrapping_add(x >> (y & 63)).wrapping_add((x as i64 >> 5) as u64),
                u64::from(x.count_ones() + y.leading_zeros() + y.trailing_zeros()),
                x.reverse_bits() ^ u64::from(b[i] % 1000) ^ i64::from(b[i] as i32 / 7) as u64,
            ]
        })
        .collect();
    same("integers", &device.download(args[0], 256), &expected);
    Ok(())
}

fn stack(device: &mut Device) -> Checked {
    let input = mixed(64);
    let args = [device.upload(&[0u32; 64]), device.upload(&input), Arg::Uint(20)];
    device.launch("stack", config(1, 64), &args)?;
    let of = |v: u32| {
        (0..20u32)
            .fold(0u32, |sum, i| sum.wrapping_mul(3).wrapping_add(v.wrapping_add(v.wrapping_add(i) & 31)))
    };
    same("stack", &device.download(args[0], 64), &input.iter().map(|&v| of(v)).collect::<Vec<u32>>());
    Ok(())
}

fn calls(device: &mut Device) -> Checked {
    let n = 11;
    let called = |v: u32, n: u32| (0..n).fold(v, |v, _| if v & 1 != 0 { 3 * v + 1 } else { v / 2 });
    let value = |x: u32| called(x, n).wrapping_add(called(x + 1, n / 2));
    for all_default in [false, true] {
        let mut data = vec![0u32; 64];
        data.extend((0..64u32).map(|i| if all_default { 4 } else { i % 4 }));
        let out = device.upload(&data);
        device.launch("calls", config(1, 64), &[out, Arg::Uint(n)])?;
        let expected: Vec<u32> = (0..64u32)
            .map(|x| match data[64 + x as usize] {
                0 => value(x) ^ 1,
                1 => value(x).wrapping_add(7),
                2 => value(x).wrapping_mul(3),
                3 => value(x).wrapping_sub(n),
                _ => value(0).wrapping_add(value(3)),
            })
            .collect();
        same("calls", &device.download(out, 64), &expected);
    }
    Ok(())
}

fn dots(device: &mut Device) -> Checked {
    let a: Vec<i32> = mixed(65).into_iter().map(|v| v as i32).collect();
    let h = small(130, 16);
    let halves: Vec<f16> = h.iter().map(|&v| f16::from_f32(v as f32)).collect();
    let args = [device.upload(&[0i32; 64]), device.upload(&a), device.upload(&halves)];
    device.launch("dots", config(1, 64), &args)?;
    let value = |x: usize| {
        let bytes = |v: i32| v.to_le_bytes().map(|b| i32::from(b as i8));
        let (p, q) = (bytes(a[x]), bytes(a[x + 1]));
        let half = h[2 * x] * h[2 * x + 2] + h[2 * x + 1] * h[2 * x + 3] + 1;
        (0..4).map(|i| p[i] * q[i]).sum::<i32>() + 3 + half.clamp(0, 1)
    };
    let expected: Vec<i32> = (0..64).map(|x| value(x) + value(x ^ 1) + value(x ^ 3)).collect();
    same("dots", &device.download(args[0], 64), &expected);
    Ok(())
}

fn dynamic_lds(device: &mut Device) -> Checked {
    let input = mixed(192);
    let args = [device.upload(&[0u32; 192]), device.upload(&input)];
    device.launch("dynamic_lds", config(2, 96).dynamic_lds(4 * 96), &args)?;
    let expected: Vec<u32> = input.chunks(96).flat_map(|group| group.iter().rev().copied()).collect();
    same("dynamic_lds", &device.download(args[0], 192), &expected);
    Ok(())
}

fn identities(device: &mut Device) -> Checked {
    let ([nx, ny, nz], [bx, by, bz]) = ([19, 5, 3], [8, 4, 2]);
    let items = (nx * ny * nz) as usize;
    let out = device.upload(&vec![0u32; 4 * items]);
    let config = LaunchConfig::items([nx, ny, nz], [bx, by, bz]).global_offset([9, 0, 0]);
    device.launch("identities", config, &[out])?;
    let pack = |[x, y, z]: [u32; 3]| x | y << 8 | z << 16;
    let expected: Vec<u32> = (0..nx * ny * nz)
        .flat_map(|i| {
            let [x, y, z] = [i % nx, i / nx % ny, i / nx / ny];
            let complete = pack([nx / bx, ny / by, nz / bz]);
            let remainder = pack([nx % bx, ny % by, nz % bz]) | 9 << 24;
            [pack([x / bx, y / by, z / bz]), pack([x % bx, y % by, z % bz]), complete, remainder]
        })
        .collect();
    same("identities", &device.download(out, 4 * items), &expected);
    Ok(())
}

fn wave_operations(device: &mut Device) -> Checked {
    let mut input = mixed(64);
    input[0] = 2 | 37 << 6;
    let args = [device.upload(&[0u32; 512]), device.upload(&input)];
    device.launch("wave_operations", config(1, 64), &args)?;
    let odd = |x: usize| input[x] & 1 != 0;
    let first_odd = (0..64).find(|&x| odd(x)).expect("one of them");
    let ones = (0..64).filter(|&x| odd(x)).count() as u32;
    let expected: Vec<u32> = (0..64)
        .flat_map(|x| {
            let mut sent = 0;
            (0..64).filter(|from| from * 5 % 64 == x).for_each(|from| sent = input[from]);
            let shifted = if x % 16 == 0 { 7 } else { input[x - 1] };
            let quad = if x / 16 % 2 == 0 { input[x ^ 2] } else { 9 };
            [
                (0..x).filter(|&y| odd(y)).count() as u32,
                input[x ^ 21],
                sent,
                input[(input[0] & 63) as usize].wrapping_add(input[0]),
                shifted.wrapping_add(quad),
                input[x ^ 1],
                if odd(x) { input[first_odd] } else { 0 },
                ones + 15,
            ]
        })
        .collect();
    same("wave_operations", &device.download(args[0], 512), &expected);
    Ok(())
}

fn atomics_of_all_kinds(device: &mut Device) -> Checked {
    let mut a = vec![0u32; 302];
    (a[2], a[6]) = (u32::MAX, 500);
    a[7..263].fill(0xff00_ff0f);
    let args = [
        device.upload(&a),
        device.upload(&[0i32; 2]),
        device.upload(&[0u64; 5]),
        device.upload(&[0u32; 301]),
    ];
    device.launch("atomics_of_all_kinds", config(4, 64), &args)?;
    let all = 0..256u32;
    let sum: u32 = all.clone().sum();
    let mut expected = a;
    expected[0] = sum;
    expected[1] = 0u32.wrapping_sub(sum);
    expected[2] = 0;
    expected[3] = (1 << 29) - 1;
    expected[4] = all.clone().fold(0, |x, i| x ^ (i * i));
    (expected[5], expected[6]) = (255, 0);
    all.clone().for_each(|i| expected[7 + i as usize] = !(0xff00_ff0f & i));
    // Both go round 101 values: 256 steps are 54.
    (expected[300], expected[301]) = (54, 47);
    same("atomics_of_all_kinds", &device.download(args[0], 302), &expected);
    same("atomics_of_all_kinds, signed", &device.download(args[1], 2), &[127i32, -128]);
    let xor = all.fold(0, |x, i| x ^ u64::from(i) << 29);
    let wide = [u64::from(sum) << 30, xor, 255 << 31, 256, 768];
    same("atomics_of_all_kinds, wide", &device.download(args[2], 5), &wide);
    let mut tickets = vec![1u32; 256];
    tickets.resize(300, 0);
    tickets.push(2016u32.wrapping_add(u32::MAX).wrapping_add(64 + 63 + 5));
    same("atomics_of_all_kinds, tickets", &device.download(args[3], 301), &tickets);
    Ok(())
}

fn float_atomics(device: &mut Device) -> Checked {
    let args = [device.upload(&[0f32; 65]), device.upload(&[0f64; 4]), device.upload(&[f16::ZERO; 2])];
    device.launch("float_atomics", config(1, 64), &args)?;
    let mut f: Vec<f32> = device.download(args[0], 65);
    assert_eq!(f[0], 2016.0);
    f[1..].sort_by(f32::total_cmp);
    same("float_atomics", &f[1..], &(0..64).map(|i| i as f32).collect::<Vec<f32>>());
    same("float_atomics, doubles", &device.download(args[1], 4), &[1008.0, -60.0, 15.75, 64.0]);
    same("float_atomics, halves", &device.download(args[2], 2), &[64.0, 128.0].map(f16::from_f32));
    Ok(())
}

fn flat_pointers(device: &mut Device) -> Checked {
    let global = mixed(64);
    let args = [device.upload(&[0u32; 64]), device.upload(&global)];
    device.launch("flat_pointers", config(1, 64), &args)?;
    let shared = |x: usize| 1000 + x as u32 + if (x ^ 1) % 3 == 1 { 12 } else { 0 };
    let expected: Vec<u32> = (0..64)
        .map(|x| {
            let own = x as u32 + (x as u32 & 3);
            let old = [global[x], 1000 + (x as u32 ^ 1), own][x % 3];
            let own = own + if x % 3 == 2 { 12 } else { 0 };
            old.wrapping_add(3 * own).wrapping_add(5 * shared(x))
        })
        .collect();
    same("flat_pointers", &device.download(args[0], 64), &expected);
    let stored: Vec<u32> = (0..64).map(|x| global[x].wrapping_add(if x % 3 == 0 { 12 } else { 0 })).collect();
    same("flat_pointers, global", &device.download(args[1], 64), &stored);
    Ok(())
}

fn recursion(device: &mut Device) -> Checked {
    let out = device.upload(&[0u32; 64]);
    device.launch("recursion", config(1, 64), &[out])?;
    let ackermann = |m: u32, n: u32| [n + 1, n + 2, 2 * n + 3][m as usize];
    let expected: Vec<u32> = (0..64).map(|x| ackermann(x & 1, x / 2) + ackermann(2, x & 3)).collect();
    same("recursion", &device.download(out, 64), &expected);
    Ok(())
}

fn function_pointers(device: &mut Device) -> Checked {
    let input = mixed(64);
    let args = [device.upload(&[0u32; 64]), device.upload(&input)];
    device.launch("function_pointers", config(1, 64), &args)?;
    let expected: Vec<u32> = input
        .iter()
        .map(|&first| {
            (0..3).fold(first, |v, i| match first.wrapping_add(i) % 3 {
                0 => v.wrapping_mul(2),
                1 => v.wrapping_mul(v),
                _ => v.wrapping_add(1),
            })
        })
        .collect();
    same("function_pointers", &device.download(args[0], 64), &expected);
    Ok(())
}

fn buffers(device: &mut Device) -> Checked {
    for bytes in [1100, 700] {
        let input = mixed(300);
        let args = [device.upload(&[0u32; 600]), device.upload(&input), Arg::Uint(bytes)];
        device.launch("buffers", config(1, 64), &args)?;
        let mut expected = vec![0u32; 600];
        (0..256).filter(|i| 4 * i + 4 <= bytes as usize).for_each(|i| expected[i] = input[i].wrapping_add(1));
        for x in (0..64).filter(|x| 1024 + 2 * x + 2 <= bytes) {
            expected[256 + x as usize / 2] |= x << (16 * (x % 2));
        }
        let byte = |at: usize| input[at / 4] >> (8 * (at % 4)) & 0xff;
        (0..64).for_each(|x| expected[512 + x] = byte(3 * x + 4));
        same("buffers", &device.download(args[0], 600), &expected);
    }
    Ok(())
}

/// Value of a float of eight bits as gfx942 has them: one zero, and one NaN in its place.
fn fnuz(bits: u32, mantissa_bits: u32, bias: i32) -> f32 {
    let (exponent, mantissa) = ((bits & 0x7f) >> mantissa_bits, bits & ((1 << mantissa_bits) - 1));
    let hidden = if exponent == 0 { 0 } else { 1 << mantissa_bits };
    let scale = exponent.max(1) as i32 - bias - mantissa_bits as i32;
    let magnitude = (hidden + mantissa) as f32 * (scale as f32).exp2();
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

fn eight_bit_floats(device: &mut Device) -> Checked {
    let input: Vec<u32> = mixed(64)
        .into_iter()
        .map(|v| u32::from_le_bytes(v.to_le_bytes().map(|byte| if byte == 0x80 { 1 } else { byte })))
        .collect();
    let args = [device.upload(&[0f32; 256]), device.upload(&[0u32; 64]), device.upload(&input)];
    device.launch("eight_bit_floats", config(1, 64), &args)?;
    let byte = |v: u32, number: u32| v >> (8 * number) & 0xff;
    let expected: Vec<f32> = input
        .iter()
        .flat_map(|&v| {
            [fnuz(byte(v, 0), 3, 8), fnuz(byte(v, 2), 3, 8), fnuz(byte(v, 1), 2, 16), fnuz(byte(v, 3), 2, 16)]
        })
        .collect();
    same("eight_bit_floats", &device.download(args[0], 256), &expected);
    let expected: Vec<u32> = input.iter().map(|&v| 0xc840 | byte(v, 0) << 16 | byte(v, 2) << 24).collect();
    same("eight_bit_floats, packed", &device.download(args[1], 64), &expected);
    Ok(())
}

fn lines(device: &mut Device) -> Checked {
    let input = mixed(512);
    for by in [3, 6] {
        let args = [device.upload(&[0u32; 512]), device.upload(&input), Arg::Uint(by as u32)];
        device.launch("lines", config(1, 64), &args)?;
        let mut expected = vec![0; 512];
        for (from, to) in input.chunks(8).zip(expected.chunks_mut(8)) {
            (0..8).for_each(|i| to[(i + by) & 7] = from[i] ^ from[(i * by) & 7]);
        }
        same("lines", &device.download(args[0], 512), &expected);
    }
    Ok(())
}

fn loads_to_lds(device: &mut Device) -> Checked {
    let input = mixed(192);
    let args = [device.upload(&[0u32; 64]), device.upload(&input)];
    device.launch("loads_to_lds", config(1, 64), &args)?;
    let expected: Vec<u32> = (0..64).map(|x| input[3 * (63 - x)]).collect();
    same("loads_to_lds", &device.download(args[0], 64), &expected);
    Ok(())
}
