//! A launch with an exact result: the kernel's text, the interpreter, the passes and the machine code have to
//! agree with plain loops, and check mode has to find nothing. All numbers are small integers.

use crate::judged::verified;
use std::cell::Cell;

use crate::meaning;
use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;

/// A launch and what has to come out of it.
pub struct Case {
    pub name: String,
    pub kernel: Kernel,
    pub sizes: Vec<(&'static str, i64)>,
    pub dynamic: Vec<&'static str>,
    pub schedule: Schedule,
    pub inputs: Vec<Tensor>,
    /// Contents of the last input afterwards.
    pub expected: Vec<f64>,
}

thread_local! {
    /// Cases of this test so far, which has a thread of its own: the first one and each sixteenth after it
    /// are compared after every pass, the same ones in every run.
    static CHECKED: Cell<u64> = const { Cell::new(0) };
}

impl Case {
    /// A case without schedule and open sizes, of which nothing is expected yet.
    pub fn plain(name: String, kernel: Kernel, sizes: &[(&'static str, usize)], inputs: Vec<Tensor>) -> Case {
        let sizes = sizes.iter().map(|&(symbol, size)| (symbol, size as i64)).collect();
        let schedule = Schedule::None;
        Case { name, kernel, sizes, dynamic: Vec::new(), schedule, inputs, expected: Vec::new() }
    }

    /// Text read back, interpreter and machine code, run or, each third time, checked, give what is expected.
    pub fn check(&self) -> Executable {
        let number = CHECKED.get() + 1;
        self.check_in_order(number.is_multiple_of(3).then_some(number))
    }

    /// As [`Case::check`]; check mode executes in the order of the seed, run mode if there is none.
    pub fn check_in_order(&self, seed: Option<u64>) -> Executable {
        self.check_on(Target::GFX942, seed)
    }

    /// The same on a chip.
    pub fn check_on(&self, target: Target, seed: Option<u64>) -> Executable {
        let name = &self.name;
        let text = self.kernel.to_string();
        let again = Kernel::parse(&text, "again.gsw").unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        assert_eq!(again.to_string(), text, "{name}");
        let options = self.options(target);
        let last = self.inputs.len() - 1;
        let after = Interpreter::run(&self.kernel, &|symbol| self.size(symbol), &self.inputs);
        let after = after.unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        self.equal("the interpreter", &after[last].to_f64());
        let executable = verified(&self.kernel, &options);
        let number = CHECKED.replace(CHECKED.get() + 1);
        if number.is_multiple_of(16) {
            self.check_stages(target);
        }
        self.equal("the machine code", &self.launched(&executable, target, seed));
        executable
    }

    /// Sizes that are known, and those that are open.
    pub fn options(&self, target: Target) -> Options {
        let options = Options::new(target).schedule(self.schedule.clone());
        self.sizes.iter().fold(options, |options, &(symbol, size)| match self.dynamic.contains(&symbol) {
            true => options.dynamic(symbol),
            false => options.set(symbol, size),
        })
    }

    /// Every pass keeps what the kernel means, and its text after each compiles to the same object.
    pub fn check_stages(&self, target: Target) {
        let options = self.options(target);
        let compared = meaning::compare(&self.kernel, &options, &|symbol| self.size(symbol));
        compared.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        meaning::reads_back(&self.name, &self.kernel, &options);
    }

    /// What a launch leaves in the last buffer.
    fn launched(&self, executable: &Executable, target: Target, seed: Option<u64>) -> Vec<f64> {
        let (name, last) = (&self.name, self.inputs.len() - 1);
        let device = Device::simulator(target);
        let upload = |t: &Tensor| device.upload_tensor(t).expect("fits");
        let buffers: Vec<Buffer> = self.inputs.iter().map(upload).collect();
        let mut launch = device.launch(executable);
        for (input, buffer) in self.inputs.iter().zip(&buffers) {
            // Tensors without dimensions are scalars.
            let number = input.to_f64();
            launch = match (input.shape(), input.dtype(), &number[..]) {
                ([], I32, &[value]) => launch.scalar(value as i32),
                ([], I64, &[value]) => launch.scalar(value as i64),
                ([], F32, &[value]) => launch.scalar(value as f32),
                ([], F64, &[value]) => launch.scalar(value),
                _ => launch.buffer(buffer),
            };
        }
        for &symbol in &self.dynamic {
            launch = launch.set(symbol, self.size(Symbol::new(symbol)).expect("a size"));
        }
        match seed {
            None => drop(launch.run().unwrap_or_else(|e| panic!("{name}: {e}"))),
            Some(seed) => {
                let report = launch.check(&CheckOptions { seed }).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(report.findings.is_empty(), "{name}: {}", report.findings[0]);
            }
        }
        let bytes = buffers[last].read_bytes().expect("readable");
        let (shape, dtype) = (self.inputs[last].shape(), self.inputs[last].dtype());
        Tensor::from_bytes(shape, dtype, &bytes).expect("whole").to_f64()
    }

    fn size(&self, symbol: Symbol) -> Option<i64> {
        self.sizes.iter().find(|(name, _)| *name == symbol.name()).map(|&(_, size)| size)
    }

    fn equal(&self, what: &str, got: &[f64]) {
        for (at, (&got, &expected)) in got.iter().zip(&self.expected).enumerate() {
            let is_equal = got == expected || got.is_nan() && expected.is_nan();
            assert!(is_equal, "{}: {what} has {got} at {at}, should be {expected}", self.name);
        }
        assert_eq!(got.len(), self.expected.len(), "{}", self.name);
    }
}

/// What is left open until the launch, by the number of the case.
pub fn open(number: usize) -> Vec<&'static str> {
    match number % 4 {
        0 | 1 => Vec::new(),
        2 => vec!["K"],
        _ => vec!["M", "K"],
    }
}

/// Small whole numbers of both signs.
pub fn number(at: usize) -> f64 {
    ((at * 7 + at / 5 * 3) % 13) as f64 - 6.0
}

/// Whole numbers between -2 and 2, so that all sums are exact in f16.
pub fn small(at: usize) -> f64 {
    (number(at) / 3.0).trunc()
}

/// A tensor of [`number`]s.
pub fn tensor(dtype: DType, shape: &[usize]) -> Tensor {
    made(dtype, shape, number)
}

/// A tensor whose elements are made of their places.
pub fn made(dtype: DType, shape: &[usize], of: impl Fn(usize) -> f64) -> Tensor {
    of_numbers(dtype, shape, &(0..shape.iter().product()).map(of).collect::<Vec<_>>())
}

/// A tensor of these numbers.
pub fn of_numbers(dtype: DType, shape: &[usize], numbers: &[f64]) -> Tensor {
    let tensor = match dtype {
        F16 => Tensor::from_slice(shape, &numbers.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>()),
        Bf16 => Tensor::from_slice(shape, &numbers.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>()),
        F8E4M3Fnuz => {
            Tensor::from_slice(shape, &numbers.iter().map(|&x| f8e4m3fnuz::from_f64(x)).collect::<Vec<_>>())
        }
        F8E5M2Fnuz => {
            Tensor::from_slice(shape, &numbers.iter().map(|&x| f8e5m2fnuz::from_f64(x)).collect::<Vec<_>>())
        }
        F8E4M3Fn => {
            Tensor::from_slice(shape, &numbers.iter().map(|&x| f8e4m3fn::from_f64(x)).collect::<Vec<_>>())
        }
        F8E5M2 => {
            Tensor::from_slice(shape, &numbers.iter().map(|&x| f8e5m2::from_f64(x)).collect::<Vec<_>>())
        }
        F8E8M0 => {
            Tensor::from_slice(shape, &numbers.iter().map(|&x| f8e8m0::from_f64(x)).collect::<Vec<_>>())
        }
        F4E2M1 => {
            Tensor::from_slice(shape, &numbers.iter().map(|&x| f4e2m1::from_f64(x)).collect::<Vec<_>>())
        }
        F6E2M3 => {
            Tensor::from_slice(shape, &numbers.iter().map(|&x| f6e2m3::from_f64(x)).collect::<Vec<_>>())
        }
        F6E3M2 => {
            Tensor::from_slice(shape, &numbers.iter().map(|&x| f6e3m2::from_f64(x)).collect::<Vec<_>>())
        }
        I16 => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as i16).collect::<Vec<_>>()),
        I32 => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        I64 => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as i64).collect::<Vec<_>>()),
        F64 => Tensor::from_slice(shape, numbers),
        I8 => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as i8).collect::<Vec<_>>()),
        _ => Tensor::from_slice(shape, &numbers.iter().map(|&x| x as f32).collect::<Vec<_>>()),
    };
    tensor.expect("the shape holds the numbers")
}

/// A tensor of ones: what is not written shows.
pub fn ones(dtype: DType, shape: &[usize]) -> Tensor {
    of_numbers(dtype, shape, &vec![1.0; shape.iter().product()])
}

/// A tensor of zeros.
pub fn zeros(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, dtype).expect("small")
}
