//! Whole kernels, valid by construction: GEMMs with epilogues and element-wise kernels of random shapes,
//! tiles and dtypes. They are compiled, run on the simulator, and compared with the reference interpreter.

use std::fmt::Write;

use groundswell::author::DType;
use groundswell::author::Kernel;
use groundswell::author::Symbol;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::device::Device;
use groundswell::diagnostic::{Diagnostic, Kind};
use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::options::Options;
use groundswell::target::Target;

use super::{Choices, OF_NUMBERS, stages};

/// What became of a kernel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It ran and gave what the interpreter gives.
    Ran,
    /// The compiler said that it cannot be done.
    Refused,
}

/// A memory of a case.
struct Memory {
    name: String,
    dims: Vec<usize>,
    dtype: DType,
    written: bool,
}

/// A kernel as text, and what it is compiled and run with.
struct Case {
    text: String,
    /// Symbol and size; dynamic if so.
    sizes: Vec<(&'static str, i64, bool)>,
    memories: Vec<Memory>,
    /// How far results may be off, relative to their size.
    tolerance: f64,
}

/// The check: a kernel may be refused, but not give wrong results.
pub fn kernel(data: &[u8]) -> Result<(), String> {
    kernel_outcome(data).map(|_| ())
}

/// The same, telling whether the kernel ran.
pub fn kernel_outcome(data: &[u8]) -> Result<Outcome, String> {
    let mut choices = Choices::new(data);
    let case = if choices.below(2) == 0 { elementwise(&mut choices) } else { gemm(&mut choices) };
    run(&case).map_err(|fault| format!("{fault}\n{}\n{}", describe(&case), case.text))
}

fn describe(case: &Case) -> String {
    let mut line = String::from(";");
    for (name, size, dynamic) in &case.sizes {
        // Writing to a string cannot fail.
        let _ = write!(line, " {name}={size}{}", if *dynamic { " (dynamic)" } else { "" });
    }
    line
}

fn run(case: &Case) -> Result<Outcome, String> {
    let fail = |what: &str, e: &Diagnostic| format!("{what}: {e}");
    let kernel = Kernel::parse(&case.text, "fuzz").map_err(|faults| format!("{faults:?}"))?;
    let mut options = Options::new(Target::GFX942);
    for &(name, size, dynamic) in &case.sizes {
        let symbol = Symbol::new(name);
        options = if dynamic { options.dynamic(symbol) } else { options.set(symbol, size) };
    }
    let executable = match compile_uncached(&kernel, &options, Verify::AfterEachPass) {
        Ok(executable) => executable,
        Err(fault) if fault.kind == Kind::Bug => return Err(fail("compile", &fault)),
        Err(_) => return Ok(Outcome::Refused),
    };
    let tensors = case
        .memories
        .iter()
        .zip(1..)
        .map(|(memory, seed)| {
            let shape: Vec<usize> = memory.dims.iter().map(|&d| case.sizes[d].1 as usize).collect();
            Tensor::random(&shape, memory.dtype, seed)
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| fail("tensors", &e))?;
    let value = |s: Symbol| case.sizes.iter().find(|size| size.0 == s.name()).map(|size| size.1);
    let expected = Interpreter::run(&kernel, &value, &tensors).map_err(|e| fail("interpreter", &e))?;
    let device = Device::simulator(Target::GFX942);
    let buffers = tensors
        .iter()
        .map(|tensor| device.upload_tensor(tensor))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| fail("upload", &e))?;
    let mut launch = device.launch(&executable);
    for buffer in &buffers {
        launch = launch.buffer(buffer);
    }
    for &(name, size, _) in case.sizes.iter().filter(|size| size.2) {
        launch = launch.set(Symbol::new(name), size);
    }
    launch.run().map_err(|e| fail("launch", &e))?;
    for ((memory, buffer), want) in case.memories.iter().zip(&buffers).zip(&expected) {
        let bytes = buffer.read_bytes().map_err(|e| fail("download", &e))?;
        let got = Tensor::from_bytes(want.shape(), memory.dtype, &bytes).map_err(|e| fail("download", &e))?;
        compare(memory, &got, want, case.tolerance)?;
    }
    stages::check(&kernel, &options, &executable, &value, case.text.len())?;
    Ok(Outcome::Ran)
}

fn compare(memory: &Memory, got: &Tensor, want: &Tensor, tolerance: f64) -> Result<(), String> {
    let tolerance = if memory.written { tolerance } else { 0.0 };
    let (got, want) = (got.to_f64(), want.to_f64());
    let magnitude = want.iter().filter(|w| w.is_finite()).fold(0f64, |a, w| a.max(w.abs()));
    let near =
        |g: f64, w: f64| (g.is_nan() && w.is_nan()) || g == w || (g - w).abs() <= tolerance * magnitude;
    let wrong = got.iter().zip(&want).filter(|(g, w)| !near(**g, **w)).count();
    match got.iter().zip(&want).position(|(g, w)| !near(*g, *w)) {
        None => Ok(()),
        Some(at) => Err(format!(
            "{}: element {at} is {}, should be {} ({wrong} of {} are wrong)",
            memory.name,
            got[at],
            want[at],
            want.len()
        )),
    }
}

/// Sizes that meet tiles exactly, miss them by one, and lie far off.
const SIZES: &[i64] = &[16, 1, 2, 3, 7, 8, 15, 17, 31, 32, 33, 48, 63, 64, 65, 80, 100];

const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::Bf16];
const DTYPES: &[DType] =
    &[DType::F32, DType::F16, DType::Bf16, DType::I32, DType::I16, DType::I8, DType::I64, DType::F64];

fn space(choices: &mut Choices<'_>) -> &'static str {
    choices.one(&["global", "shared"])
}

/// Matrix instruction, input and accumulator.
const MMAS: &[(&str, DType, DType, [i64; 3])] = &[
    ("f32_16x16x16_f16", DType::F16, DType::F32, [16, 16, 16]),
    ("f32_32x32x8_f16", DType::F16, DType::F32, [32, 32, 8]),
    ("f32_16x16x16_bf16", DType::Bf16, DType::F32, [16, 16, 16]),
    ("f32_32x32x8_bf16", DType::Bf16, DType::F32, [32, 32, 8]),
    ("i32_16x16x32_i8", DType::I8, DType::I32, [16, 16, 32]),
    ("i32_32x32x16_i8", DType::I8, DType::I32, [32, 32, 16]),
    ("f32_16x16x32_f8e4m3fnuz", DType::F8E4M3Fnuz, DType::F32, [16, 16, 32]),
    ("f32_32x32x16_f8e5m2fnuz", DType::F8E5M2Fnuz, DType::F32, [32, 32, 16]),
    ("f64_16x16x4_f64", DType::F64, DType::F64, [16, 16, 4]),
    ("f32_16x16x4_f32", DType::F32, DType::F32, [16, 16, 4]),
    ("f32_32x32x2_f32", DType::F32, DType::F32, [32, 32, 2]),
];

fn gemm(choices: &mut Choices<'_>) -> Case {
    let &(mma, input, accumulator, [m, n, k]) = &MMAS[choices.below(MMAS.len())];
    let waves = [choices.one(&[1, 2, 4]), choices.one(&[1, 2])];
    let per_wave = [m * choices.one(&[1, 2]), n * choices.one(&[1, 2])];
    let step = k * choices.one(&[1, 2, 4]);
    let (block_m, block_n) = (per_wave[0] * waves[0], per_wave[1] * waves[1]);
    let batched = choices.sometimes(4);
    let transposed = choices.sometimes(4);
    let mut sizes = Vec::new();
    for name in ["M", "N", "K"] {
        sizes.push((name, choices.one(SIZES), choices.sometimes(3)));
    }
    if batched {
        sizes.push(("B", choices.one(&[1, 2, 3]), choices.sometimes(3)));
    }
    let batch = if batched { "B, " } else { "" };
    let mut text = format!(
        "kernel gemm {{\n  workgroup M, {block_m}, 0\n  workgroup N, {block_n}, 1\n  tile K, {step}\n  \
         wave M, {}\n  wave N, {}\n  mma {mma}\n",
        per_wave[0], per_wave[1]
    );
    if batched {
        text.push_str("  workgroup B, 1, 2\n");
    }
    let with_batch = |dims: &[usize]| -> Vec<usize> {
        let first = batched.then_some(3);
        first.into_iter().chain(dims.iter().copied()).collect()
    };
    let mut memories = vec![
        Memory { name: "a".into(), dims: with_batch(&[0, 2]), dtype: input, written: false },
        Memory {
            name: "b".into(),
            dims: with_batch(if transposed { &[2, 1] } else { &[1, 2] }),
            dtype: input,
            written: false,
        },
    ];
    let b_shape = if transposed { "K, N" } else { "N, K" };
    let (space_a, space_b) = (space(choices), space(choices));
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "  a = memory [{batch}M, K] {space_a} {input}\n  b = memory [{batch}{b_shape}] {space_b} {input}\n"
    );
    let zero = if accumulator.is_float() { "0.0" } else { "0" };
    let mut body = format!(
        "  %zero = register [{batch}M, N] {accumulator} {zero}\n  %sum = iterate K (%acc = %zero) {{\n    \
         %x = read a\n    %y = read b\n    %next = mma %x, %y, %acc\n    yield %next\n  }}\n"
    );
    let mut result = "sum".to_owned();
    for number in 0..choices.below(3) {
        let next = format!("e{number}");
        let _ = match choices.below(4) {
            0 => writeln!(
                body,
                "  %{next} = mul %{result}, {}",
                if accumulator.is_float() { "0.5" } else { "3" }
            ),
            1 => writeln!(body, "  %{next} = max %{result}, {zero}"),
            kind => {
                let name = format!("side{number}");
                // Everything, or a part: a value per column, per row, per batch.
                let parts: &[&[usize]] = match batched {
                    false => &[&[1], &[0], &[1, 0]],
                    true => &[&[1], &[3], &[0, 3], &[3, 1], &[0]],
                };
                let dims = if kind == 2 { choices.one(parts).to_vec() } else { with_batch(&[0, 1]) };
                let shape = dims.iter().map(|&dim| sizes[dim].0).collect::<Vec<_>>().join(", ");
                let _ = writeln!(text, "  {name} = memory [{shape}] global {accumulator}");
                memories.push(Memory { name: name.clone(), dims, dtype: accumulator, written: false });
                writeln!(body, "  %s{number} = read {name}\n  %{next} = add %{result}, %s{number}")
            }
        };
        result = next;
    }
    let output = if accumulator.is_float() { choices.one(FLOATS) } else { accumulator };
    if output != accumulator {
        let _ = writeln!(body, "  %out = cast %{result} {output}");
        result = "out".to_owned();
    }
    let _ = writeln!(text, "  c = memory [{batch}M, N] global {output}");
    memories.push(Memory { name: "c".into(), dims: with_batch(&[0, 1]), dtype: output, written: true });
    let _ = write!(text, "{body}  write %{result}, c\n}}\n");
    // Sums of the test data are exact in any order; a cast rounds them once.
    let tolerance = if accumulator.is_float() { 1e-6 } else { 0.0 };
    Case { text, sizes, memories, tolerance }
}

/// A value of an element-wise kernel.
#[derive(Copy, Clone)]
struct Element {
    id: usize,
    dtype: DType,
    full: bool,
    /// Computed without an approximate instruction, so that comparisons and conversions are certain.
    exact: bool,
}

struct Elements {
    body: String,
    values: Vec<Element>,
}

impl Elements {
    fn push(&mut self, dtype: DType, full: bool, exact: bool, text: &str) -> Element {
        let element = Element { id: self.values.len(), dtype, full, exact };
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "  %v{} = {text}", element.id);
        self.values.push(element);
        element
    }

    /// `value` in another dtype, if that is certain.
    fn cast(&mut self, value: Element, dtype: DType) -> Element {
        match value.dtype == dtype {
            true => value,
            false => self.push(dtype, value.full, value.exact, &format!("cast %v{} {dtype}", value.id)),
        }
    }
}

fn elementwise(choices: &mut Choices<'_>) -> Case {
    let rank = 1 + choices.below(3);
    let names = &["M", "N", "B"][..rank];
    let shape = names.iter().rev().copied().collect::<Vec<_>>().join(", ");
    let dims: Vec<usize> = (0..rank).rev().collect();
    let mut sizes = Vec::new();
    let mut text = String::from("kernel elementwise {\n");
    for (axis, &name) in names.iter().enumerate() {
        let size = if axis == 2 { choices.one(&[1, 2, 5]) } else { choices.one(SIZES) };
        sizes.push((name, size, choices.sometimes(3)));
        let block = if axis == 0 { choices.one(&[64, 128, 256]) } else { choices.one(&[1, 2, 4, 16]) };
        let _ = writeln!(text, "  workgroup {name}, {block}, {axis}");
        let waves = choices.one(&[1, 2, 4]);
        if waves > 1 && block % waves == 0 {
            let _ = writeln!(text, "  wave {name}, {}", block / waves);
        }
    }
    let mut memories = Vec::new();
    let mut elements = Elements { body: String::new(), values: Vec::new() };
    for number in 0..1 + choices.below(3) {
        let dtype = choices.one(DTYPES);
        let full = number == 0 || !choices.sometimes(3);
        let (shape, dims) = if full { (shape.as_str(), dims.clone()) } else { ("M", vec![0]) };
        let name = format!("i{number}");
        let _ = writeln!(text, "  {name} = memory [{shape}] {} {dtype}", space(choices));
        elements.push(dtype, dims.len() == rank, true, &format!("read {name}"));
        memories.push(Memory { name, dims, dtype, written: false });
    }
    for _ in 0..choices.below(7) {
        step(choices, &mut elements);
    }
    let values: Vec<Element> =
        elements.values.iter().copied().filter(|v| v.full && v.dtype != DType::I1).collect();
    let last = values[values.len() - 1];
    let output = if last.exact { choices.one(DTYPES) } else { last.dtype };
    let result = elements.cast(last, output);
    let _ = writeln!(text, "  o = memory [{shape}] global {output}");
    memories.push(Memory { name: "o".into(), dims, dtype: output, written: true });
    let _ = write!(text, "{}  write %v{}, o\n}}\n", elements.body, result.id);
    let exact = result.exact;
    let tolerance = match output {
        _ if exact => 0.0,
        DType::F16 => 4e-3,
        DType::Bf16 => 3e-2,
        _ => 1e-4,
    };
    Case { text, sizes, memories, tolerance }
}

/// One more operation on what there is.
fn step(choices: &mut Choices<'_>, elements: &mut Elements) {
    let numbers: Vec<Element> = elements.values.iter().copied().filter(|v| v.dtype != DType::I1).collect();
    let a = choices.one(&numbers);
    let (id, dtype) = (a.id, a.dtype);
    match choices.below(6) {
        0 => {
            let op =
                choices.one(if dtype.is_float() { &["neg", "abs", "round"] } else { &["neg", "abs", "not"] });
            elements.push(dtype, a.full, a.exact, &format!("{op} %v{id}"));
        }
        1 if dtype.is_float() => {
            // Arguments where the function is tame: approximations are compared by the size of results.
            let positive = elements.push(dtype, a.full, a.exact, &format!("abs %v{id}"));
            let above = elements.push(dtype, a.full, a.exact, &format!("add %v{}, 1.0", positive.id));
            let below = elements.push(dtype, a.full, a.exact, &format!("min %v{}, 8.0", above.id));
            let op = choices.one(&[
                "exp2",
                "log2",
                "sqrt",
                "reciprocal",
                "tanh",
                "rsqrt",
                "cbrt",
                "sigmoid",
                "silu",
                "gelu",
                "gelu_tanh",
                "erf",
            ]);
            elements.push(dtype, a.full, false, &format!("{op} %v{}", below.id));
        }
        2 if a.exact => {
            elements.cast(a, choices.one(DTYPES));
        }
        3 if a.exact => {
            let other = choices.one(&numbers);
            if other.exact && (a.full || other.full) {
                let other = elements.cast(other, dtype);
                let predicate = choices.one(&["eq", "ne", "lt", "le", "gt", "ge"]);
                let full = a.full || other.full;
                let condition = elements.push(
                    DType::I1,
                    full,
                    true,
                    &format!("compare {predicate} %v{id}, %v{}", other.id),
                );
                let condition = match choices.below(4) {
                    0 => elements.push(DType::I1, full, true, &format!("not %v{}", condition.id)),
                    1 => {
                        let op = choices.one(&["and", "or", "xor"]);
                        let less = format!("compare lt %v{}, %v{id}", other.id);
                        let less = elements.push(DType::I1, full, true, &less);
                        elements.push(
                            DType::I1,
                            full,
                            true,
                            &format!("{op} %v{}, %v{}", condition.id, less.id),
                        )
                    }
                    _ => condition,
                };
                elements.push(
                    dtype,
                    full,
                    true,
                    &format!("select %v{}, %v{id}, %v{}", condition.id, other.id),
                );
            }
        }
        4 => {
            let number = if dtype.is_float() {
                choices.one(&["0.5", "2.0", "-1.0"])
            } else {
                choices.one(&["2", "3", "-1", "8", "10"])
            };
            let op = choices.one(if dtype.is_float() { &OF_NUMBERS[..6] } else { OF_NUMBERS });
            let exact = a.exact && (op != "div" || !dtype.is_float());
            elements.push(dtype, a.full, exact, &format!("{op} %v{id}, {number}"));
        }
        _ => {
            let other = choices.one(&numbers);
            if other.exact || other.dtype == dtype {
                let other = elements.cast(other, dtype);
                let op = choices.one(if dtype.is_float() { &OF_NUMBERS[1..6] } else { OF_NUMBERS });
                elements.push(
                    dtype,
                    a.full || other.full,
                    a.exact && other.exact,
                    &format!("{op} %v{id}, %v{}", other.id),
                );
            }
        }
    }
}
