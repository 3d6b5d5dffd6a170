//! The ready kernels that move data, against plain loops: whole tiles and ragged ones, static and dynamic
//! sizes. The interpreter and the machine code have to give what the loop gives, check mode has to find
//! nothing, and the text of each kernel reads back as itself. All numbers are small integers.

use groundswell::compile::{Verify, compile_uncached};
use groundswell::kernels::{Choices, Waves, gather, list, transpose};
use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;

/// A launch and what has to come out of it.
struct Case<'a> {
    kernel: &'a Kernel,
    sizes: Vec<(&'static str, i64)>,
    dynamic: &'a [&'static str],
    inputs: Vec<Tensor>,
    /// Contents of the last input afterwards.
    expected: Vec<f64>,
}

impl Case<'_> {
    fn check(&self) -> Executable {
        let name = format!("{} {:?} dynamic {:?}", self.kernel.name(), self.sizes, self.dynamic);
        let value = |symbol: Symbol| self.sizes.iter().find(|s| s.0 == symbol.name()).map(|s| s.1);
        let options = self.sizes.iter().fold(Options::new(Target::GFX942), |options, &(symbol, size)| {
            match self.dynamic.contains(&symbol) {
                true => options.dynamic(symbol),
                false => options.set(symbol, size),
            }
        });
        let last = self.inputs.len() - 1;
        let after =
            Interpreter::run(self.kernel, &value, &self.inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
        self.equal(&name, "the interpreter", &after[last].to_f64());
        let executable = compile_uncached(self.kernel, &options, Verify::AfterEachPass)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let device = Device::simulator(Target::GFX942);
        let upload = |t: &Tensor| device.upload_tensor(t).expect("fits");
        let buffers: Vec<Buffer> = self.inputs.iter().map(upload).collect();
        let report = {
            let launch =
                buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
            let size = |symbol: &'static str| value(Symbol::new(symbol)).expect("a size");
            let launch = self.dynamic.iter().fold(launch, |launch, &symbol| launch.set(symbol, size(symbol)));
            launch.check(&CheckOptions { seed: 7 }).unwrap_or_else(|e| panic!("{name}: {e}"))
        };
        assert!(report.findings.is_empty(), "{name}: {}", report.findings[0]);
        let bytes = buffers[last].read_bytes().expect("readable");
        let (shape, dtype) = (self.inputs[last].shape(), self.inputs[last].dtype());
        let got = Tensor::from_bytes(shape, dtype, &bytes).expect("whole").to_f64();
        self.equal(&name, "the machine code", &got);
        executable
    }

    fn equal(&self, name: &str, what: &str, got: &[f64]) {
        assert_eq!(got.len(), self.expected.len(), "{name}");
        for (at, (&got, &expected)) in got.iter().zip(&self.expected).enumerate() {
            assert!(got == expected, "{name}: {what} has {got} at {at}, should be {expected}");
        }
    }
}

fn tensor(dtype: DType, shape: &[usize]) -> Tensor {
    let number = |at: usize| ((at * 7 + at / 5 * 3) % 13) as f64 - 6.0;
    of_numbers(dtype, shape, &(0..shape.iter().product()).map(number).collect::<Vec<_>>())
}

fn of_numbers(dtype: DType, shape: &[usize], numbers: &[f64]) -> Tensor {
    let tensor = match dtype {
        F16 => Tensor::from_slice(shape, &numbers.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>()),
        Bf16 => Tensor::from_slice(shape, &numbers.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>()),
        I32 => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        I8 => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as i8).collect::<Vec<_>>()),
        _ => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as f32).collect::<Vec<_>>()),
    };
    tensor.expect("the shape holds the numbers")
}

/// A tensor of ones: what is not written shows.
fn ones(dtype: DType, shape: &[usize]) -> Tensor {
    of_numbers(dtype, shape, &vec![1.0; shape.iter().product()])
}

/// Instructions of an executable whose name begins with `prefix`.
fn count(executable: &Executable, prefix: &str) -> usize {
    let listing = executable.assembly().expect("a listing");
    listing.lines().filter(|line| line.trim_start().starts_with(prefix)).count()
}

#[test]
fn the_text_of_every_ready_kernel_reads_back_as_itself() {
    for entry in list() {
        let text = entry.kernel(&Choices::default()).expect("the defaults fit").to_string();
        let again = Kernel::parse(&text, "again.gsw").unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        assert_eq!(again.to_string(), text);
    }
}

#[test]
fn transpose_equals_a_loop() {
    let shapes =
        [[64, 64], [128, 192], [65, 66], [1, 1], [1, 100], [100, 1], [77, 130], [16, 8], [63, 200], [8, 64]];
    for (number, [m, n]) in shapes.into_iter().enumerate() {
        for (variant, dtype) in [F32, F16, Bf16, I8].into_iter().enumerate() {
            let kernel = transpose(dtype, Waves::new(2, 2)).expect("the options fit");
            let a = tensor(dtype, &[m, n]);
            let numbers = a.to_f64();
            let mut expected = vec![0.0; m * n];
            for i in 0..m {
                for j in 0..n {
                    expected[j * m + i] = numbers[i * n + j];
                }
            }
            let dynamic: &[&str] = if (number + variant) % 2 == 0 { &[] } else { &["M", "N"] };
            let executable = Case {
                kernel: &kernel,
                sizes: vec![("M", m as i64), ("N", n as i64), ("BLOCK_M", 64), ("BLOCK_N", 64)],
                dynamic,
                inputs: vec![a, ones(dtype, &[n, m])],
                expected,
            }
            .check();
            if m % 64 == 0 && n % 64 == 0 && dynamic.is_empty() {
                // 256 lanes with 16 bytes each.
                let wide = 64 * 64 * dtype.bytes() as usize / (256 * 16);
                for (prefix, expected) in [
                    ("buffer_load_dwordx4", wide),
                    ("buffer_load", wide),
                    ("buffer_store_dwordx4", wide),
                    ("buffer_store", wide),
                ] {
                    assert_eq!(count(&executable, prefix), expected, "{prefix} of {dtype}");
                }
            }
        }
    }
}

#[test]
fn gather_equals_a_loop() {
    let shapes =
        [[16, 256, 40], [33, 75, 9], [5, 130, 64], [64, 8, 100], [1, 1, 1], [17, 513, 3], [48, 64, 1000]];
    for (number, [m, n, rows]) in shapes.into_iter().enumerate() {
        for (variant, dtype) in [F32, F16, Bf16, I8].into_iter().enumerate() {
            let kernel = gather(dtype, Waves::new(4, 1)).expect("the options fit");
            let table = tensor(dtype, &[rows, n]);
            let numbers = table.to_f64();
            // Some of them are outside, on either side.
            let mut ids: Vec<f64> = (0..m).map(|i| ((i * 29) % (rows + 4)) as f64 - 2.0).collect();
            if let [first, .., last] = &mut ids[..] {
                (*first, *last) = (f64::from(i32::MIN), f64::from(i32::MAX));
            }
            let of = |i: usize, j: usize| match (0.0..rows as f64).contains(&ids[i]) {
                true => numbers[ids[i] as usize * n + j],
                false => 0.0,
            };
            let expected = (0..m * n).map(|at| of(at / n, at % n)).collect();
            let dynamic: &[&str] = match (number + variant) % 3 {
                0 => &[],
                1 => &["M", "N", "ROWS"],
                _ => &["ROWS"],
            };
            Case {
                kernel: &kernel,
                sizes: vec![
                    ("M", m as i64),
                    ("N", n as i64),
                    ("ROWS", rows as i64),
                    ("BLOCK_M", 16),
                    ("BLOCK_N", 256),
                ],
                dynamic,
                inputs: vec![table, of_numbers(I32, &[m], &ids), ones(dtype, &[m, n])],
                expected,
            }
            .check();
        }
    }
}
