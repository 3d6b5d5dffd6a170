//! The simulator against clang: kernels of `tests/sim/kernels.c` compiled for gfx942 and run, compared with
//! the host.

use std::sync::LazyLock;

use groundswell::simulator::{FaultKind, LaunchConfig, LaunchStats, Module, SimError, Simulator};
use groundswell::target::Target;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The compiled kernels, or nothing where clang is missing and not required.
static OBJECT: LazyLock<Option<Vec<u8>>> =
    LazyLock::new(|| groundswell_testing::clang::compile("sim/kernels.c", "gfx942", "-O3"));

struct Device {
    simulator: Simulator,
    module: Module,
}

/// A kernel argument.
enum Arg {
    Pointer(u64),
    Uint(u32),
    Float(f32),
}

impl Device {
    fn open() -> Option<Device> {
        let object = OBJECT.as_ref()?;
        let mut simulator = Simulator::new(Target::GFX942);
        let module = simulator.load(object).expect("clang's object loads");
        Some(Device { simulator, module })
    }

    fn upload<T: Copy, const N: usize>(&mut self, data: &[T], bytes: impl Fn(T) -> [u8; N]) -> Arg {
        let data: Vec<u8> = data.iter().flat_map(|&v| bytes(v)).collect();
        let address = self.simulator.alloc(data.len() as u64).expect("small");
        self.simulator.write(address, &data).expect("just allocated");
        Arg::Pointer(address)
    }

    fn download<T, const N: usize>(&self, arg: &Arg, count: usize, value: impl Fn([u8; N]) -> T) -> Vec<T> {
        let Arg::Pointer(address) = arg else { panic!("not a buffer") };
        let bytes = self.simulator.read(*address, count * N).expect("the buffer is that large");
        bytes.chunks_exact(N).map(|b| value(b.try_into().expect("N bytes"))).collect()
    }

    fn try_launch(&self, kernel: &str, config: LaunchConfig, args: &[&Arg]) -> Result<LaunchStats, SimError> {
        let mut kernarg = Vec::new();
        for arg in args {
            match arg {
                Arg::Pointer(address) => {
                    kernarg.resize(kernarg.len().next_multiple_of(8), 0);
                    kernarg.extend(address.to_le_bytes());
                }
                Arg::Uint(value) => kernarg.extend(value.to_le_bytes()),
                Arg::Float(value) => kernarg.extend(value.to_le_bytes()),
            }
        }
        self.simulator.launch(&self.module, kernel, config, &kernarg)
    }

    fn launch(&self, kernel: &str, grid: [u32; 3], block: [u32; 3], args: &[&Arg]) -> LaunchStats {
        self.try_launch(kernel, LaunchConfig::new(grid, block), args)
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

fn random_u32(seed: u64, count: usize) -> Vec<u32> {
    let mut rng = StdRng::seed_from_u64(seed);
    // All magnitudes, not only large ones.
    (0..count).map(|_| rng.random::<u32>() >> rng.random_range(0..32)).collect()
}

fn random_f32(seed: u64, count: usize, range: std::ops::Range<f32>) -> Vec<f32> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count).map(|_| rng.random_range(range.clone())).collect()
}

#[test]
fn saxpy_does_not_write_past_the_end() {
    let Some(mut device) = Device::open() else { return };
    let n = 1000;
    let (x, y) = (random_f32(1, n, -1.0..1.0), random_f32(2, n + 24, -1.0..1.0));
    let (dx, dy) = (device.upload(&x, f32::to_le_bytes), device.upload(&y, f32::to_le_bytes));
    let stats =
        device.launch("saxpy", [4, 1, 1], [256, 1, 1], &[&dy, &dx, &Arg::Float(2.5), &Arg::Uint(n as u32)]);
    let got = device.download(&dy, n + 24, f32::from_le_bytes);
    for i in 0..n + 24 {
        let expected = if i < n { 2.5f32.mul_add(x[i], y[i]) } else { y[i] };
        assert_eq!(got[i], expected, "element {i}");
    }
    assert_eq!((stats.waves, stats.global_load, stats.global_store), (16, 32, 16));
}

#[test]
fn transpose_through_lds_with_ragged_edges() {
    let Some(mut device) = Device::open() else { return };
    let (width, height) = (70, 45);
    let input = random_u32(3, width * height);
    let (out, dev) =
        (device.upload(&vec![0; width * height], u32::to_le_bytes), device.upload(&input, u32::to_le_bytes));
    let args = [&out, &dev, &Arg::Uint(width as u32), &Arg::Uint(height as u32)];
    device.launch("transpose", [3, 2, 1], [32, 8, 1], &args);
    let got = device.download(&out, width * height, u32::from_le_bytes);
    for y in 0..height {
        for x in 0..width {
            assert_eq!(got[x * height + y], input[y * width + x], "({x}, {y})");
        }
    }
}

#[test]
fn reduction_with_barriers() {
    let Some(mut device) = Device::open() else { return };
    let input = random_u32(4, 1777);
    let (out, dev) = (device.upload(&[0], u32::to_le_bytes), device.upload(&input, u32::to_le_bytes));
    let stats = device.launch("reduce", [1, 1, 1], [256, 1, 1], &[&out, &dev, &Arg::Uint(1777)]);
    let expected = input.iter().fold(0u32, |a, &b| a.wrapping_add(b));
    assert_eq!(device.download(&out, 1, u32::from_le_bytes), [expected]);
    assert_eq!(stats.barrier, 4 * 9);
}

#[test]
fn atomics_of_parallel_workgroups_add_up() {
    let Some(mut device) = Device::open() else { return };
    let input = random_u32(5, 64 * 64);
    let (counts, dev) = (device.upload(&[0; 16], u32::to_le_bytes), device.upload(&input, u32::to_le_bytes));
    device.launch("histogram", [64, 1, 1], [64, 1, 1], &[&counts, &dev]);
    let mut expected = vec![0; 16];
    input.iter().for_each(|v| expected[(v & 15) as usize] += 1);
    assert_eq!(device.download(&counts, 16, u32::from_le_bytes), expected);
}

/// Bit patterns that are hard for a division: all exponents, zeros, denormals, infinities, NaN.
fn hard_floats(seed: u64, count: usize) -> Vec<f32> {
    let mut rng = StdRng::seed_from_u64(seed);
    let special =
        [0.0, -0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e-45, f32::MAX];
    (0..count)
        .map(|_| {
            if rng.random_range(0..4) == 0 {
                special[rng.random_range(0..9)]
            } else {
                f32::from_bits(rng.random())
            }
        })
        .collect()
}

#[test]
fn division_is_correctly_rounded() {
    let Some(mut device) = Device::open() else { return };
    let (a, b) = (hard_floats(6, 4096), hard_floats(7, 4096));
    let (da, db) = (device.upload(&a, f32::to_le_bytes), device.upload(&b, f32::to_le_bytes));
    let out = device.upload(&vec![0.0; 4096], f32::to_le_bytes);
    device.launch("divide", [64, 1, 1], [64, 1, 1], &[&out, &da, &db]);
    let got = device.download(&out, 4096, f32::from_le_bytes);
    for i in 0..4096 {
        let expected = a[i] / b[i];
        let same = got[i].to_bits() == expected.to_bits() || got[i].is_nan() && expected.is_nan();
        assert!(same, "{:e} / {:e}: {:e}, not {expected:e}", a[i], b[i], got[i]);
    }
}

#[test]
fn double_division_is_correctly_rounded() {
    let Some(mut device) = Device::open() else { return };
    let mut rng = StdRng::seed_from_u64(8);
    let mut values = || -> Vec<f64> { (0..1024).map(|_| f64::from_bits(rng.random())).collect() };
    let (a, b) = (values(), values());
    let (da, db) = (device.upload(&a, f64::to_le_bytes), device.upload(&b, f64::to_le_bytes));
    let out = device.upload(&vec![0.0; 1024], f64::to_le_bytes);
    device.launch("divide_double", [16, 1, 1], [64, 1, 1], &[&out, &da, &db]);
    let got = device.download(&out, 1024, f64::from_le_bytes);
    for i in 0..1024 {
        let expected = a[i] / b[i];
        let same = got[i].to_bits() == expected.to_bits() || got[i].is_nan() && expected.is_nan();
        assert!(same, "{:e} / {:e}: {:e}, not {expected:e}", a[i], b[i], got[i]);
    }
}

#[test]
fn square_roots_are_correctly_rounded() {
    let Some(mut device) = Device::open() else { return };
    let a: Vec<f32> = hard_floats(9, 1024);
    let (da, out) = (device.upload(&a, f32::to_le_bytes), device.upload(&vec![0.0; 1024], f32::to_le_bytes));
    device.launch("root", [16, 1, 1], [64, 1, 1], &[&out, &da]);
    for (x, got) in a.iter().zip(device.download(&out, 1024, f32::from_le_bytes)) {
        let expected = x.sqrt();
        assert!(
            got == expected || got.is_nan() && expected.is_nan(),
            "sqrt {x:e}: {got:e}, not {expected:e}"
        );
    }
}

#[test]
fn integer_arithmetic() {
    let Some(mut device) = Device::open() else { return };
    let (a, b) = (random_u32(10, 1024), random_u32(11, 1024));
    let (da, db) = (device.upload(&a, u32::to_le_bytes), device.upload(&b, u32::to_le_bytes));
    let out = device.upload(&vec![0; 8192], u32::to_le_bytes);
    device.launch("integers", [16, 1, 1], [64, 1, 1], &[&out, &da, &db]);
    let got = device.download(&out, 8192, u32::from_le_bytes);
    for i in 0..1024 {
        let (x, y) = (a[i], b[i] | 1);
        let wide = i64::from(x as i32) * i64::from(y as i32);
        let expected = [
            x / y,
            (x as i32).wrapping_rem(y as i32) as u32,
            (wide >> 7) as u32,
            x.count_ones() + y.leading_zeros(),
            x.rotate_left(y & 31),
            (x as i32).min(y as i32) as u32,
            (u64::from(x).wrapping_mul(0x0123_4567_89ab_cdef).wrapping_add(y.into()) >> 32) as u32,
            x.reverse_bits() ^ (x as i32 >> 3) as u32,
        ];
        assert_eq!(got[8 * i..8 * i + 8], expected, "{x:#x}, {y:#x}");
    }
}

#[test]
fn lanes_leave_a_loop_one_by_one() {
    let Some(mut device) = Device::open() else { return };
    let out = device.upload(&[u32::MAX; 128], u32::to_le_bytes);
    device.launch("collatz", [2, 1, 1], [64, 1, 1], &[&out, &Arg::Uint(100)]);
    let got = device.download(&out, 128, u32::from_le_bytes);
    for (i, &steps) in got.iter().enumerate() {
        let mut value = i as u32 + 1;
        let mut expected = 0;
        while value != 1 {
            value = if value % 2 == 1 { 3 * value + 1 } else { value / 2 };
            expected += 1;
        }
        assert_eq!(steps, if i < 100 { expected } else { u32::MAX }, "element {i}");
    }
}

#[test]
fn half_precision() {
    use half::f16;
    let Some(mut device) = Device::open() else { return };
    let values =
        |seed| -> Vec<f16> { random_f32(seed, 256, -100.0..100.0).into_iter().map(f16::from_f32).collect() };
    let (a, b) = (values(12), values(13));
    let (da, db) = (device.upload(&a, f16::to_le_bytes), device.upload(&b, f16::to_le_bytes));
    let out = device.upload(&[f16::ZERO; 256], f16::to_le_bytes);
    device.launch("halves", [4, 1, 1], [64, 1, 1], &[&out, &da, &db]);
    for (i, got) in device.download(&out, 256, f16::from_le_bytes).into_iter().enumerate() {
        // clang contracts the product and the sum.
        let fused = f16::from_f64(a[i].to_f64() * b[i].to_f64() + a[i].to_f64());
        let expected = f16::from_f32(fused.to_f32() - b[i].to_f32());
        assert_eq!(got, expected, "{}, {}", a[i], b[i]);
    }
}

#[test]
fn values_move_between_lanes() {
    let Some(mut device) = Device::open() else { return };
    let input = random_u32(14, 64);
    let (out, dev) = (device.upload(&[0; 64], u32::to_le_bytes), device.upload(&input, u32::to_le_bytes));
    device.launch("shuffle", [1, 1, 1], [64, 1, 1], &[&out, &dev]);
    let got = device.download(&out, 64, u32::from_le_bytes);
    for lane in 0..64 {
        assert_eq!(got[lane], input[lane ^ 5].wrapping_add(input[0]), "lane {lane}");
    }
}

#[test]
fn private_memory_is_private() {
    let Some(mut device) = Device::open() else { return };
    let input = random_u32(15, 64);
    let (out, dev) = (device.upload(&[0; 64], u32::to_le_bytes), device.upload(&input, u32::to_le_bytes));
    device.launch("scratch", [1, 1, 1], [64, 1, 1], &[&out, &dev, &Arg::Uint(20)]);
    let got = device.download(&out, 64, u32::from_le_bytes);
    for (lane, &value) in input.iter().enumerate() {
        let expected = (0..20u32).fold(0u32, |sum, i| {
            sum.wrapping_mul(3).wrapping_add(value.wrapping_add(value.wrapping_add(i) & 15))
        });
        assert_eq!(got[lane], expected, "lane {lane}");
    }
}

#[test]
fn bytes_are_loaded_and_stored() {
    let Some(mut device) = Device::open() else { return };
    let input: Vec<u8> = random_u32(16, 129).into_iter().map(|v| v as u8).collect();
    let (out, dev) = (device.upload(&[0u8; 128], u8::to_le_bytes), device.upload(&input, u8::to_le_bytes));
    device.launch("bytes", [2, 1, 1], [64, 1, 1], &[&out, &dev]);
    for (i, got) in device.download(&out, 128, u8::from_le_bytes).into_iter().enumerate() {
        assert_eq!(got, input[i].wrapping_sub(input[i + 1]), "byte {i}");
    }
}

#[test]
fn gemm_with_matrix_instructions() {
    use half::f16;
    let Some(mut device) = Device::open() else { return };
    let (m, n, k) = (48, 32, 64);
    let values = |seed, count| -> Vec<f16> {
        random_f32(seed, count, -1.0..1.0).into_iter().map(f16::from_f32).collect()
    };
    let (a, b) = (values(17, m * k), values(18, n * k));
    let (da, db) = (device.upload(&a, f16::to_le_bytes), device.upload(&b, f16::to_le_bytes));
    let c = device.upload(&vec![0.0; m * n], f32::to_le_bytes);
    let args = [&c, &da, &db, &Arg::Uint(n as u32), &Arg::Uint(k as u32)];
    let stats = device.launch("gemm", [n as u32 / 16, m as u32 / 16, 1], [64, 1, 1], &args);
    let got = device.download(&c, m * n, f32::from_le_bytes);
    for i in 0..m {
        for j in 0..n {
            let expected =
                (0..k).fold(0.0f32, |sum, l| a[i * k + l].to_f32().mul_add(b[j * k + l].to_f32(), sum));
            assert_eq!(got[i * n + j], expected, "({i}, {j})");
        }
    }
    assert_eq!(stats.mfma, 6 * 4);
}

#[test]
fn an_access_outside_is_a_fault_that_says_where() {
    let Some(mut device) = Device::open() else { return };
    let out = device.upload(&[0; 64], u32::to_le_bytes);
    let error = device.try_launch("fault", LaunchConfig::new([3, 1, 1], [128, 1, 1]), &[&out]).unwrap_err();
    let SimError::Fault(fault) = &error else { panic!("{error}") };
    assert_eq!((fault.workgroup, fault.wave, fault.lane), ([0, 0, 0], 1, Some(0)));
    assert!(matches!(fault.kind, FaultKind::Memory { bytes: 4, .. }), "{error}");
    assert!(fault.instruction.starts_with("global_store_dword"), "{error}");
}

#[test]
fn an_endless_loop_is_a_fault() {
    let Some(mut device) = Device::open() else { return };
    let out = device.upload(&[0], u32::to_le_bytes);
    let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]).instruction_budget(10_000);
    let error = device.try_launch("forever", config, &[&out]).unwrap_err();
    assert!(matches!(&error, SimError::Fault(f) if f.kind == FaultKind::Budget(10_000)), "{error}");
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let Some(mut device) = Device::open() else { return };
    let out = device.upload(&[0], u32::to_le_bytes);
    let launch = |config, args: &[&Arg]| device.try_launch("fault", config, args).unwrap_err();
    assert!(matches!(launch(LaunchConfig::new([1, 1, 1], [1025, 1, 1]), &[&out]), SimError::Launch { .. }));
    assert!(matches!(launch(LaunchConfig::new([0, 1, 1], [64, 1, 1]), &[&out]), SimError::Launch { .. }));
    assert!(matches!(launch(LaunchConfig::new([1, 1, 1], [64, 1, 1]), &[]), SimError::Launch { .. }));
    let lds = LaunchConfig::new([1, 1, 1], [64, 1, 1]).dynamic_lds(65_537);
    assert!(matches!(launch(lds, &[&out]), SimError::Launch { .. }));
    let config = LaunchConfig::new([1, 1, 1], [64, 1, 1]);
    let none = device.try_launch("no_such_kernel", config, &[]).unwrap_err();
    assert_eq!(none, SimError::NoKernel("no_such_kernel".into()));
}
