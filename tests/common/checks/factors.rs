//! Products of computed factors, summed over dimensions that no tile divides: what stands beyond the end
//! must take no part, whatever the arithmetic makes of it. Each kernel is compiled with two tiles, run, and
//! compared with loops over the elements that exist, which know nothing of the crate but its dtypes. So is
//! the interpreter.

use std::fmt::Write;

use groundswell::author::DType;
use groundswell::author::Kernel;
use groundswell::author::Symbol;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::interpreter::{Interpreter, Tensor};
use groundswell::options::{Options, Schedule};
use groundswell::target::Target;

use super::{Choices, Outcome};

/// A matrix instruction, its factors and sums, and the elements of K that it takes.
type Instruction = (&'static str, &'static str, &'static str, i64);

const INSTRUCTIONS: &[Instruction] = &[
    ("f32_16x16x16_f16", "f16", "f32", 16),
    ("f32_32x32x8_f16", "f16", "f32", 8),
    ("f32_16x16x4_f32", "f32", "f32", 4),
    ("i32_16x16x32_i8", "i8", "i32", 32),
    ("f32_16x16x16_bf16", "bf16", "f32", 16),
    ("f32_16x16x32_f8e4m3fnuz", "f8e4m3fnuz", "f32", 32),
    ("f64_16x16x4_f64", "f64", "f64", 4),
];

const SCHEDULES: &[Schedule] =
    &[Schedule::None, Schedule::Prefetch, Schedule::Modulo, Schedule::Automatic, Schedule::PingPong];

/// One step of a chain of arithmetic on a factor.
#[derive(Copy, Clone, Debug)]
enum Step {
    Add(f64),
    /// The number less the element.
    Less(f64),
    Times(f64),
    AtLeast(f64),
    AtMost(f64),
    Negated,
    Absolute,
    Inverted,
    PowerOfTwo,
    /// The first number where the element is less than the second.
    Instead(f64, f64),
    TimesScalar,
    /// Times a number of its row.
    TimesRow,
    /// Plus a number of its column.
    PlusColumn,
    /// Plus its place along the dimension that is summed over.
    PlusPlace,
    /// The number where the place along that dimension is not less than its size, which it always is.
    Guarded(f64),
}

/// What a factor is made of: a memory, and what is done to its elements.
struct Factor {
    steps: Vec<Step>,
    /// The memory has the dimension that is summed over first.
    is_turned: bool,
    space: &'static str,
    data: Vec<f64>,
    of_rows: Vec<f64>,
    of_columns: Vec<f64>,
}

struct Case {
    instruction: Instruction,
    sizes: [i64; 3],
    is_dynamic: bool,
    /// Elements of K per iteration; none for a product of the whole dimension.
    tiles: [Option<i64>; 2],
    /// The first iteration and their number, if the kernel chooses.
    iterations: Option<(i64, i64)>,
    factors: [Factor; 2],
    scalar: f64,
    schedule: Schedule,
    target: Target,
}

/// The check.
pub fn factors(data: &[u8]) -> Result<(), String> {
    factors_outcome(data).map(|_| ())
}

/// The same, telling whether the kernel ran with both tiles.
pub fn factors_outcome(data: &[u8]) -> Result<Outcome, String> {
    let case = Case::new(&mut Choices::new(data));
    let ran = case.tiles.iter().map(|&tile| {
        case.run(tile).map_err(|fault| {
            let Case { sizes, is_dynamic, schedule, target, scalar, .. } = &case;
            let text = case.text(tile);
            format!(
                "{fault}\n; {target} {sizes:?} dynamic {is_dynamic}, {schedule:?}, scalar {scalar}\n{text}"
            )
        })
    });
    let ran = ran.collect::<Result<Vec<_>, _>>()?;
    Ok(if ran.iter().all(|ran| *ran == Outcome::Ran) { Outcome::Ran } else { Outcome::Refused })
}

fn dtype(name: &str) -> DType {
    match name {
        "f16" => DType::F16,
        "f32" => DType::F32,
        "f64" => DType::F64,
        "bf16" => DType::Bf16,
        "i8" => DType::I8,
        "i32" => DType::I32,
        _ => DType::F8E4M3Fnuz,
    }
}

fn tensor(shape: &[usize], numbers: &[f64], name: &str) -> Result<Tensor, String> {
    let f32s: Vec<f32> = numbers.iter().map(|&number| number as f32).collect();
    let bytes = match dtype(name) {
        DType::F32 => f32s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::F64 => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::I8 => numbers.iter().map(|&number| number as i8 as u8).collect(),
        DType::I32 => numbers.iter().flat_map(|&number| (number as i32).to_le_bytes()).collect(),
        // The numbers have few bits: halves of f32 hold them.
        DType::Bf16 => {
            f32s.iter().flat_map(|number| ((number.to_bits() >> 16) as u16).to_le_bytes()).collect()
        }
        DType::F16 => numbers.iter().flat_map(|&number| half(number).to_le_bytes()).collect(),
        _ => numbers.iter().map(|&number| byte(number)).collect::<Vec<u8>>(),
    };
    Tensor::from_bytes(shape, dtype(name), &bytes).map_err(|e| e.to_string())
}

/// The bits of an f16, of a number that is one, not denormal, or infinite.
fn half(number: f64) -> u16 {
    let sign = u16::from(number.is_sign_negative()) << 15;
    if number == 0.0 {
        return sign;
    }
    if number.is_infinite() {
        return sign | 0x7c00;
    }
    let bits = (number as f32).to_bits();
    let exponent = (bits >> 23 & 255) as i32 - 127 + 15;
    sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16
}

/// The bits of an f8e4m3fnuz, of a number that is one and not denormal.
fn byte(number: f64) -> u8 {
    if number == 0.0 {
        return 0;
    }
    let bits = (number as f32).to_bits();
    let exponent = (bits >> 23 & 255) as i32 - 127 + 8;
    u8::from(number < 0.0) << 7 | (exponent as u8) << 3 | (bits >> 20 & 7) as u8
}

impl Case {
    fn new(choices: &mut Choices<'_>) -> Case {
        let instruction = choices.one(INSTRUCTIONS);
        let (name, .., k) = instruction;
        let targets: &[Target] = match name {
            "f32_16x16x16_f16" | "f32_32x32x8_f16" | "f32_16x16x4_f32" => {
                &[Target::GFX942, Target::GFX90A, Target::GFX950, Target::GFX908, Target::GFX906]
            }
            "f64_16x16x4_f64" => &[Target::GFX942, Target::GFX90A],
            _ => &[Target::GFX942],
        };
        let target = choices.one(targets);
        let sizes =
            [choices.one(&[16, 5, 40]), choices.one(&[16, 33, 1]), choices.one(&[20, 5, 70, 1, 33, 64])];
        let tile =
            |choices: &mut Choices<'_>| choices.one(&[Some(k), Some(2 * k), Some(4 * k), None, Some(8 * k)]);
        let mut tiles = [tile(choices), tile(choices)];
        if tiles[0] == tiles[1] {
            tiles[1] = Some(if tiles[0] == Some(k) { 2 * k } else { k });
        }
        let is_dynamic = !tiles.contains(&None) && choices.sometimes(3);
        let is_chosen = !tiles.contains(&None) && choices.sometimes(6);
        let iterations = is_chosen.then(|| (choices.below(3) as i64, 1 + choices.below(3) as i64));
        let schedule = choices.one(SCHEDULES);
        let scalar = choices.one(&[2.0, -0.5, f64::INFINITY, 0.0]);
        let factors = [0, 1].map(|at| Factor::new(choices, instruction.1, [sizes[at], sizes[2]]));
        Case { instruction, sizes, is_dynamic, tiles, iterations, factors, scalar, schedule, target }
    }

    fn text(&self, tile: Option<i64>) -> String {
        let (name, input, sum, _) = self.instruction;
        let side = if name.contains("32x32") { 32 } else { 16 };
        let mut text = format!("kernel factors {{\n  workgroup M, {side}, 0\n  workgroup N, {side}, 1\n");
        let mut put = |line: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {line}");
        };
        if let Some(tile) = tile {
            put(format!("tile K, {tile}"));
        }
        if let Some((first, count)) = self.iterations {
            put(format!("iterations K, {first}, {count}"));
        }
        put(format!("mma {name}"));
        for (own, name, factor) in [("M", "a", &self.factors[0]), ("N", "b", &self.factors[1])] {
            let dims = if factor.is_turned { format!("K, {own}") } else { format!("{own}, K") };
            put(format!("{name} = memory [{dims}] {} {input}", factor.space));
            put(format!("{name}_rows = memory [{own}] global {input}"));
            put(format!("{name}_columns = memory [K] global {input}"));
        }
        put(format!("c = memory [M, N] global {sum}"));
        if self.has_scalar() {
            put("s = scalar f32".to_owned());
        }
        put(format!("%zero = register [M, N] {sum} 0"));
        let indent = match tile {
            Some(_) => {
                put("%sum = iterate K (%acc = %zero) {".to_owned());
                "  "
            }
            None => "",
        };
        for (name, factor) in ["a", "b"].into_iter().zip(&self.factors) {
            put(format!("{indent}%{name} = read {name}"));
            let mut last = format!("%{name}");
            for (at, step) in factor.steps.iter().enumerate() {
                for line in step.lines(&last, &format!("%{name}{at}"), input, name) {
                    put(format!("{indent}{line}"));
                }
                last = format!("%{name}{at}");
            }
            put(format!("{indent}%{name}_factor = max {last}, {last}"));
        }
        match tile {
            Some(_) => {
                put("  %next = mma %a_factor, %b_factor, %acc".to_owned());
                put("  yield %next".to_owned());
                put("}".to_owned());
            }
            None => put("%sum = mma %a_factor, %b_factor, %zero".to_owned()),
        }
        put("write %sum, c".to_owned());
        text + "}\n"
    }

    fn has_scalar(&self) -> bool {
        self.factors.iter().flat_map(|factor| &factor.steps).any(|step| matches!(step, Step::TimesScalar))
    }

    /// The sums by plain loops, and for each how much its parts are together.
    fn expected(&self, tile: Option<i64>) -> Vec<(f64, f64)> {
        let [m, n, k] = self.sizes;
        let within = match (self.iterations, tile) {
            (Some((first, count)), Some(tile)) => (first * tile).min(k)..((first + count) * tile).min(k),
            _ => 0..k,
        };
        let mut sums = Vec::new();
        for row in 0..m {
            for column in 0..n {
                let (mut sum, mut magnitude) = (0.0, 0.0f64);
                for at in within.clone() {
                    let x = self.factors[0].element(row, at, self);
                    let y = self.factors[1].element(column, at, self);
                    sum += x * y;
                    magnitude += (x * y).abs();
                }
                sums.push((sum, magnitude));
            }
        }
        sums
    }

    fn run(&self, tile: Option<i64>) -> Result<Outcome, String> {
        let text = self.text(tile);
        let kernel = Kernel::parse(&text, "fuzz").map_err(|faults| format!("{faults:?}"))?;
        let [m, n, k] = self.sizes.map(|size| size as usize);
        let mut options = Options::new(self.target).schedule(self.schedule.clone());
        for (name, size) in ["M", "N", "K"].into_iter().zip(self.sizes) {
            let symbol = Symbol::new(name);
            options = if self.is_dynamic { options.dynamic(symbol) } else { options.set(symbol, size) };
        }
        let (_, input, sum, _) = self.instruction;
        let mut tensors = Vec::new();
        for (rows, factor) in [m, n].into_iter().zip(&self.factors) {
            let shape = if factor.is_turned { [k, rows] } else { [rows, k] };
            tensors.push(tensor(&shape, &factor.data, input)?);
            tensors.push(tensor(&[rows], &factor.of_rows, input)?);
            tensors.push(tensor(&[k], &factor.of_columns, input)?);
        }
        tensors.push(tensor(&[m, n], &vec![0.0; m * n], sum)?);
        let value = |s: Symbol| {
            let at = ["M", "N", "K"].iter().position(|name| *name == s.name())?;
            Some(self.sizes[at])
        };
        let scalar = self.has_scalar().then(|| Tensor::scalar(self.scalar as f32));
        let inputs: Vec<Tensor> = tensors.iter().cloned().chain(scalar).collect();
        let meant = Interpreter::run(&kernel, &value, &inputs).map_err(|e| format!("interpreter: {e}"))?;
        self.compare("the interpreter", &meant[6].to_f64(), tile)?;
        let executable = match compile_uncached(&kernel, &options, Verify::AfterEachPass) {
            Ok(executable) => executable,
            Err(fault) if fault.kind == Kind::Bug => return Err(format!("compile: {fault}")),
            Err(_) => return Ok(Outcome::Refused),
        };
        let device = Device::simulator(self.target);
        let buffers =
            tensors.iter().map(|tensor| device.upload_tensor(tensor)).collect::<Result<Vec<_>, _>>();
        let buffers = buffers.map_err(|e| e.to_string())?;
        let mut launch =
            buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
        if self.has_scalar() {
            launch = launch.scalar(self.scalar as f32);
        }
        if self.is_dynamic {
            for (name, size) in ["M", "N", "K"].into_iter().zip(self.sizes) {
                launch = launch.set(Symbol::new(name), size);
            }
        }
        launch.run().map_err(|e| format!("launch: {e}"))?;
        let bytes = buffers[6].read_bytes().map_err(|e| e.to_string())?;
        let got = Tensor::from_bytes(&[m, n], dtype(sum), &bytes).map_err(|e| e.to_string())?;
        self.compare("the machine", &got.to_f64(), tile)?;
        Ok(Outcome::Ran)
    }

    fn compare(&self, who: &str, got: &[f64], tile: Option<i64>) -> Result<(), String> {
        // Each factor is rounded after each of its steps.
        let error = match self.instruction.1 {
            "f64" => 1e-12,
            "f32" => 1e-5,
            "f16" => 8e-3,
            "bf16" => 6e-2,
            "f8e4m3fnuz" => 0.5,
            _ => 0.0,
        };
        for (at, (&got, (want, magnitude))) in got.iter().zip(self.expected(tile)).enumerate() {
            let want = if self.instruction.1 == "i8" { f64::from(want as i64 as i32) } else { want };
            let is_near =
                (got.is_nan() && want.is_nan()) || got == want || (got - want).abs() <= error * magnitude;
            if !is_near {
                return Err(format!("{who} with tile {tile:?}: element {at} is {got}, should be {want}"));
            }
        }
        Ok(())
    }
}

impl Factor {
    fn new(choices: &mut Choices<'_>, input: &str, [rows, columns]: [i64; 2]) -> Factor {
        let is_integer = input == "i8";
        let steps = (0..choices.below(4)).map(|_| Step::new(choices, input)).collect();
        let (is_turned, space) = (choices.sometimes(4), choices.one(&["global", "shared"]));
        let seed = choices.below(256) as i64;
        // Multiples of a half, which all dtypes hold, and which 8-bit floats hold in small numbers.
        let number = move |at: i64| {
            let number = ((at + seed) * 37 % 11 - 5) as f64;
            if is_integer { number } else { number / 2.0 }
        };
        let has_infinities = !is_integer && input != "f8e4m3fnuz" && choices.sometimes(8);
        let row = move |at: i64| match has_infinities && at % 3 == 1 {
            true => f64::INFINITY,
            false => number(at * 3),
        };
        Factor {
            steps,
            is_turned,
            space,
            data: (0..rows * columns).map(number).collect(),
            of_rows: (0..rows).map(row).collect(),
            of_columns: (0..columns).map(|at| number(at * 5)).collect(),
        }
    }

    /// The element of a row and a place along the dimension that is summed over.
    fn element(&self, row: i64, at: i64, case: &Case) -> f64 {
        let (k, rows) = (case.sizes[2], self.of_rows.len() as i64);
        let place = if self.is_turned { at * rows + row } else { row * k + at };
        let mut x = self.data[place as usize];
        for step in &self.steps {
            x = match *step {
                Step::Add(number) => x + number,
                Step::Less(number) => number - x,
                Step::Times(number) => x * number,
                Step::AtLeast(number) if number.total_cmp(&x).is_gt() || x.is_nan() => number,
                Step::AtLeast(_) => x,
                Step::AtMost(number) if number.total_cmp(&x).is_lt() || x.is_nan() => number,
                Step::AtMost(_) => x,
                Step::Negated => -x,
                Step::Absolute => x.abs(),
                Step::Inverted => 1.0 / x,
                Step::PowerOfTwo => x.exp2(),
                Step::Instead(number, least) => {
                    if x < least {
                        number
                    } else {
                        x
                    }
                }
                Step::TimesScalar => x * case.scalar,
                Step::TimesRow => x * self.of_rows[row as usize],
                Step::PlusColumn => x + self.of_columns[at as usize],
                Step::PlusPlace => x + at as f64,
                Step::Guarded(_) => x,
            };
            x = match case.instruction.1 {
                "i8" => f64::from(x as i64 as i8),
                "f16" if x.abs() > 65504.0 => x.signum() * f64::INFINITY,
                "f32" | "bf16" if x.abs() > f64::from(f32::MAX) => x.signum() * f64::INFINITY,
                _ => x,
            };
        }
        x
    }
}

impl Step {
    fn new(choices: &mut Choices<'_>, input: &str) -> Step {
        let number = choices.one(&[1.0, 2.0, -3.0, 0.0]);
        let all = [
            Step::Add(number),
            Step::Less(number),
            Step::Times(number),
            Step::AtLeast(number),
            Step::AtMost(number),
            Step::Negated,
            Step::TimesRow,
            Step::PlusColumn,
            Step::Guarded(number),
            Step::Absolute,
            Step::Instead(number, 1.0),
            // Of small floats and integers these are others.
            Step::Inverted,
            Step::PowerOfTwo,
            Step::PlusPlace,
            Step::TimesScalar,
        ];
        let few = match input {
            "i8" => 11,
            "f8e4m3fnuz" => 6,
            "f32" => 15,
            "f64" => 12,
            _ => 13,
        };
        choices.one(&all[..few])
    }

    /// The lines that make `to` of `from`.
    fn lines(self, from: &str, to: &str, input: &str, name: &str) -> Vec<String> {
        let number =
            |number: f64| if input == "i8" { format!("{}", number as i64) } else { format!("{number:?}") };
        match self {
            Step::Add(n) => vec![format!("{to} = add {from}, {}", number(n))],
            Step::Less(n) => vec![format!("{to} = sub {}, {from}", number(n))],
            Step::Times(n) => vec![format!("{to} = mul {from}, {}", number(n))],
            Step::AtLeast(n) => vec![format!("{to} = max {from}, {}", number(n))],
            Step::AtMost(n) => vec![format!("{to} = min {from}, {}", number(n))],
            Step::Negated => vec![format!("{to} = neg {from}")],
            Step::Absolute => vec![format!("{to} = abs {from}")],
            Step::Inverted => vec![format!("{to} = reciprocal {from}")],
            Step::PowerOfTwo => vec![format!("{to} = exp2 {from}")],
            Step::Instead(n, least) => vec![
                format!("{to}_c = compare lt {from}, {}", number(least)),
                format!("{to}_e = register [] {input} {}", number(n)),
                format!("{to} = select {to}_c, {to}_e, {from}"),
            ],
            Step::TimesScalar => vec![format!("{to} = mul {from}, s")],
            Step::TimesRow => {
                vec![format!("{to}_r = read {name}_rows"), format!("{to} = mul {from}, {to}_r")]
            }
            Step::PlusColumn => {
                vec![format!("{to}_k = read {name}_columns"), format!("{to} = add {from}, {to}_k")]
            }
            Step::PlusPlace => vec![
                format!("{to}_i = self_index K"),
                format!("{to}_p = cast {to}_i {input}"),
                format!("{to} = add {from}, {to}_p"),
            ],
            Step::Guarded(n) => vec![
                format!("{to}_i = self_index K"),
                format!("{to}_n = size K"),
                format!("{to}_c = compare lt {to}_i, {to}_n"),
                format!("{to}_e = register [] {input} {}", number(n)),
                format!("{to} = select {to}_c, {from}, {to}_e"),
            ],
        }
    }
}
