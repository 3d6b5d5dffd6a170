//! Loops of many forms: several in a row, the results of one the initial values of the next; carried values
//! that are swapped, repeated, unused, constant or from outside; initial values that one loop alone uses, or
//! that it shares with another loop or with what comes after it; one value in two matrix instructions; a loop
//! in a loop, which starts from what is outside of both; conditionals and while loops in them and beside
//! them; workgroups that share the tiles; trip counts that are known, dynamic, or dynamic with
//! an assumption. Each is compiled with some schedule, run in check mode, and compared with the interpreter.
//! There is one verdict on a kernel: what the compiler accepts, the verifier accepts and the interpreter
//! runs.

use std::fmt::Write;

use groundswell::author::Kernel;
use groundswell::author::Symbol;
use groundswell::check::with_findings;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::options::{Options, Schedule};
use groundswell::simulator::Limits;
use groundswell::target::Target;

use crate::schedules;

use super::{Choices, Outcome, stages};

/// A hundred times what the longest of these kernels takes: a loop that does not end is found soon.
const LIMITS: Limits = Limits { instructions: 1_000_000, time: None };

/// A kernel as text, and what it is compiled and run with.
struct Case {
    text: String,
    /// Sizes of M, N, K and J.
    sizes: [i64; 4],
    dynamic: [bool; 4],
    schedule: Schedule,
    /// A loop is inside another one over the same dimension: all have to reject it.
    wrong: bool,
}

/// The check.
pub fn loops(data: &[u8]) -> Result<(), String> {
    loops_outcome(data).map(|_| ())
}

/// The same, telling whether the kernel ran.
pub fn loops_outcome(data: &[u8]) -> Result<Outcome, String> {
    let case = case(&mut Choices::new(data));
    run(&case).map_err(|fault| {
        format!(
            "{fault}\n; {:?}, sizes {:?}, dynamic {:?}\n{}",
            case.schedule, case.sizes, case.dynamic, case.text
        )
    })
}

const NAMES: [&str; 4] = ["M", "N", "K", "J"];

fn run(case: &Case) -> Result<Outcome, String> {
    let kernel = Kernel::parse(&case.text, "fuzz").map_err(|faults| format!("{faults:?}"))?;
    let mut options = Options::new(Target::GFX942).schedule(case.schedule.clone());
    let used = kernel.symbols();
    for (at, name) in NAMES.into_iter().enumerate() {
        let symbol = Symbol::new(name);
        if used.contains(&symbol) {
            options =
                if case.dynamic[at] { options.dynamic(symbol) } else { options.set(symbol, case.sizes[at]) };
        }
    }
    let verified = compile_uncached(&kernel, &options, Verify::AfterEachPass);
    let executable = match compile_uncached(&kernel, &options, Verify::Off) {
        Err(fault) if fault.kind == Kind::Bug => return Err(format!("compile: {fault}")),
        Err(_) => return Ok(Outcome::Refused),
        Ok(_) if case.wrong => return Err("accepted a loop over K in a loop over K".to_owned()),
        Ok(executable) => executable,
    };
    verified.map_err(|fault| format!("compiled, but the verifier says: {fault}"))?;
    let value = |s: Symbol| NAMES.iter().position(|name| *name == s.name()).map(|at| case.sizes[at]);
    let device = Device::simulator(Target::GFX942).with_limits(LIMITS);
    let (report, comparison) =
        with_findings(&kernel, &executable, &device, &value, 3).map_err(|fault| format!("run: {fault}"))?;
    match (report.is_clean(), comparison.ok) {
        (true, true) => {
            stages::check(&kernel, &options, &executable, &value, kernel.to_string().len())?;
            Ok(Outcome::Ran)
        }
        (_, false) => Err(format!("wrong result: {comparison:?}")),
        (false, _) => Err(format!("findings: {report}")),
    }
}

/// Matrix instruction, input and accumulator, and the elements of K that it takes.
const MMAS: &[(&str, &str, &str, i64)] = &[
    ("f32_16x16x16_f16", "f16", "f32", 16),
    ("f32_32x32x8_f16", "f16", "f32", 8),
    ("i32_16x16x32_i8", "i8", "i32", 32),
];

/// What is written so far.
struct Writer {
    body: String,
    /// Numbers handed out to values.
    count: usize,
    accumulator: &'static str,
    /// Memories that loops write.
    outputs: usize,
}

impl Writer {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{}{text}", "  ".repeat(depth + 1));
    }

    /// A new value.
    fn value(&mut self, depth: usize, text: &str) -> usize {
        self.count += 1;
        let number = self.count;
        self.line(depth, &format!("%v{number} = {text}"));
        number
    }

    fn constant(&self, choices: &mut Choices<'_>) -> &'static str {
        match self.accumulator {
            "f32" => choices.one(&["0.0", "1.5", "-3.0"]),
            _ => choices.one(&["0", "3", "-7"]),
        }
    }

    fn register(&mut self, choices: &mut Choices<'_>, depth: usize) -> usize {
        let (dtype, constant) = (self.accumulator, self.constant(choices));
        self.value(depth, &format!("register [M, N] {dtype} {constant}"))
    }

    /// A value that equals no other one: equal values become one, which has uses.
    fn lone(&mut self, choices: &mut Choices<'_>, depth: usize) -> usize {
        let (dtype, constant) = (self.accumulator, self.count + 10);
        let point = if dtype == "f32" { ".0" } else { "" };
        match choices.below(3) {
            0 => {
                let from = self.value(depth, "read e");
                self.value(depth, &format!("add %v{from}, {constant}{point}"))
            }
            1 => self.value(depth, "read d"),
            _ => self.value(depth, &format!("register [M, N] {dtype} {constant}{point}")),
        }
    }

    fn elementwise(&mut self, choices: &mut Choices<'_>, depth: usize, values: &[usize]) -> usize {
        let a = choices.one(values);
        match choices.below(4) {
            0 => {
                let factor = if self.accumulator == "f32" { "0.5" } else { "3" };
                self.value(depth, &format!("mul %v{a}, {factor}"))
            }
            1 => {
                let b = choices.one(values);
                let condition = self.value(depth, &format!("compare lt %v{a}, %v{b}"));
                self.value(depth, &format!("select %v{condition}, %v{b}, %v{a}"))
            }
            kind => {
                let (b, op) = (choices.one(values), if kind == 2 { "add" } else { "min" });
                self.value(depth, &format!("{op} %v{a}, %v{b}"))
            }
        }
    }

    /// An initial value of a loop: a new one, one of `kept`, or one of `outside`, which may lose it.
    fn initial(
        &mut self,
        choices: &mut Choices<'_>,
        depth: usize,
        outside: &mut Vec<usize>,
        kept: &[usize],
    ) -> usize {
        match choices.below(7) {
            0 => self.register(choices, depth),
            1 => self.value(depth, "read e"),
            2..=4 if !kept.is_empty() => choices.one(kept),
            2..=4 if outside.len() > 1 => outside.remove(choices.below(outside.len().min(4))),
            _ => choices.one(outside),
        }
    }

    /// A condition that all lanes have in common: of numbers of the workgroup, the iteration and sizes.
    fn condition(&mut self, choices: &mut Choices<'_>, depth: usize, dim: Option<&str>) -> usize {
        let number = match (choices.below(4), dim) {
            (0 | 1, Some(dim)) => self.value(depth, &format!("iteration {dim}")),
            (0 | 2, _) => self.value(depth, &format!("workgroup_id {}", choices.below(2))),
            _ => self.value(depth, "size K"),
        };
        let (predicate, bound) = (choices.one(&["lt", "ge", "eq", "ne"]), choices.one(&[0, 1, 2, 40]));
        self.value(depth, &format!("compare {predicate} %v{number}, {bound}"))
    }

    /// A conditional or a while loop that may use `outside`, in a loop over `dim` that has `factors` of
    /// products; the numbers of its results.
    fn under_condition(
        &mut self,
        choices: &mut Choices<'_>,
        depth: usize,
        dim: Option<&str>,
        (outside, factors): (&[usize], Option<[usize; 2]>),
    ) -> Vec<usize> {
        let names = |values: &[usize]| values.iter().map(|v| format!("%v{v}")).collect::<Vec<_>>().join(", ");
        let trips = if choices.sometimes(3) { Some(choices.below(4)) } else { None };
        let counter = trips.map(|_| self.value(depth, "register [] i32 0"));
        let condition = match (counter, trips) {
            (Some(counter), Some(trips)) => self.value(depth, &format!("compare lt %v{counter}, {trips}")),
            _ => self.condition(choices, depth, dim),
        };
        let own = choices.below(3);
        let mut inits: Vec<usize> = (0..own).map(|_| choices.one(outside)).collect();
        inits.extend(counter);
        let carried = inits.len();
        let results: Vec<usize> = (1..=carried).map(|at| self.count + at).collect();
        let arguments: Vec<usize> = results.iter().map(|result| result + carried).collect();
        self.count += 2 * carried;
        let bound = arguments.iter().zip(&inits).map(|(to, from)| format!("%v{to} = %v{from}"));
        let word = if trips.is_some() { "while" } else { "conditional" };
        let head = format!("{word} %v{condition} ({}) {{", bound.collect::<Vec<_>>().join(", "));
        match carried {
            0 => self.line(depth, &head),
            _ => self.line(depth, &format!("{} = {head}", names(&results))),
        }
        let inside = depth + 1;
        let mut values: Vec<usize> = arguments[..own].iter().chain(outside).copied().collect();
        for _ in 0..choices.below(4) {
            let made = match (choices.below(5), factors) {
                (0 | 1, Some([x, y])) => {
                    let sum = choices.one(&values);
                    self.value(inside, &format!("mma %v{x}, %v{y}, %v{sum}"))
                }
                (2, _) => self.value(inside, "read e"),
                (3, _) if depth < 2 => {
                    let results = self.under_condition(choices, inside, dim, (&values, factors));
                    values.extend(results);
                    continue;
                }
                _ => self.elementwise(choices, inside, &values),
            };
            values.push(made);
        }
        if own == 0 || choices.sometimes(4) {
            let (from, number) = (values[values.len() - 1], self.outputs);
            self.outputs += 1;
            self.line(inside, &format!("write %v{from}, o{number}"));
        }
        let newest = values[values.len() - 1];
        let mut yields: Vec<usize> =
            (0..own).map(|_| if choices.sometimes(2) { newest } else { choices.one(&values) }).collect();
        if let (Some(trips), Some(&counter)) = (trips, arguments.last()) {
            let next = self.value(inside, &format!("add %v{counter}, 1"));
            let again = self.value(inside, &format!("compare lt %v{next}, {trips}"));
            yields.extend([next, again]);
        }
        if !yields.is_empty() {
            self.line(inside, &format!("yield {}", names(&yields)));
        }
        self.line(depth, "}");
        results[..own].to_vec()
    }

    /// A loop over `dim` whose initial values are among `outside`, from which it takes what nobody else may
    /// use, and `kept`, which only initial values are; the numbers of its results.
    fn iterate(
        &mut self,
        choices: &mut Choices<'_>,
        dim: &str,
        depth: usize,
        outside: &mut Vec<usize>,
        kept: &[usize],
    ) -> Vec<usize> {
        let inner = match dim == "K" && depth == 0 && choices.sometimes(5) {
            true => Some(if choices.sometimes(6) { "K" } else { "J" }),
            false => None,
        };
        // For the loops inside alone: they start from it again in every iteration.
        let mut for_inner = Vec::new();
        if inner.is_some() && !choices.sometimes(4) {
            for_inner.push(self.lone(choices, depth));
        }
        let carried = choices.below(4);
        let results: Vec<usize> = (1..=carried).map(|at| self.count + at).collect();
        let arguments: Vec<usize> = results.iter().map(|result| result + carried).collect();
        self.count += 2 * carried;
        let names = |values: &[usize]| values.iter().map(|v| format!("%v{v}")).collect::<Vec<_>>().join(", ");
        // A value of its own that the loop hands on to itself and nothing else looks at.
        let dead = if carried > 0 && choices.sometimes(4) { Some(choices.below(carried)) } else { None };
        let mut inits = Vec::new();
        // It goes on with what the loop before has left, which comes first.
        let goes_on = kept.is_empty() && choices.sometimes(2);
        for (at, argument) in arguments.iter().enumerate() {
            let init = match dead == Some(at) {
                true => self.lone(choices, depth),
                false if goes_on && outside.len() > 1 => outside.remove(0),
                false => self.initial(choices, depth, outside, kept),
            };
            inits.push(format!("%v{argument} = %v{init}"));
        }
        let head = format!("iterate {dim} ({}) {{", inits.join(", "));
        match carried {
            0 => self.line(depth, &head),
            _ => self.line(depth, &format!("{} = {head}", names(&results))),
        }
        let inside = depth + 1;
        let (a, b) = if dim == "K" { ("a", "b") } else { ("p", "q") };
        let x = self.value(inside, &format!("read {a}"));
        let y = self.value(inside, &format!("read {b}"));
        let mut factors = vec![x];
        if choices.sometimes(3) {
            let factor = if self.accumulator == "f32" { "0.5" } else { "3" };
            factors.push(self.value(inside, &format!("mul %v{x}, {factor}")));
        }
        // What the loop may use and yield: its arguments first, so that simple cases accumulate.
        let used =
            arguments.iter().enumerate().filter(|(at, _)| dead != Some(*at)).map(|(_, argument)| argument);
        let mut values: Vec<usize> = used.chain(&*outside).copied().collect();
        let first = choices.one(&values);
        values.push(self.value(inside, &format!("mma %v{x}, %v{y}, %v{first}")));
        for _ in 0..choices.below(4) {
            let made = match choices.below(4) {
                0 | 1 => {
                    let (factor, sum) = (choices.one(&factors), choices.one(&values));
                    self.value(inside, &format!("mma %v{factor}, %v{y}, %v{sum}"))
                }
                2 => self.elementwise(choices, inside, &values),
                _ => self.register(choices, inside),
            };
            values.push(made);
        }
        if let Some(inner) = inner {
            for _ in 0..1 + usize::from(choices.sometimes(4)) {
                let results = self.iterate(choices, inner, inside, &mut values, &for_inner);
                values.extend(results);
            }
        }
        if choices.sometimes(6) {
            let results = self.under_condition(choices, inside, Some(dim), (&values, Some([factors[0], y])));
            values.extend(results);
        }
        if carried == 0 || choices.sometimes(5) {
            let (from, number) = (values[values.len() - 1], self.outputs);
            self.outputs += 1;
            self.line(inside, &format!("write %v{from}, o{number}"));
        }
        if carried > 0 {
            let newest = values[values.len() - 1];
            let handed_on = dead.map(|at| {
                let argument = arguments[at];
                if choices.sometimes(2) { self.elementwise(choices, inside, &[argument]) } else { argument }
            });
            let is_same = choices.sometimes(3);
            let yields: Vec<usize> = (0..carried)
                .map(|at| match (handed_on, if is_same { 0 } else { choices.below(4) }) {
                    (Some(value), _) if dead == Some(at) => value,
                    (_, 0 | 1) => newest,
                    (_, 2) => choices.one(&values),
                    _ => {
                        let other = (at + choices.below(2)) % carried;
                        if dead == Some(other) { newest } else { arguments[other] }
                    }
                })
                .collect();
            self.line(inside, &format!("yield {}", names(&yields)));
        }
        self.line(depth, "}");
        let used = results.into_iter().enumerate().filter(|(at, _)| dead != Some(*at));
        used.map(|(_, result)| result).collect()
    }
}

fn case(choices: &mut Choices<'_>) -> Case {
    let &(mma, input, accumulator, k) = &MMAS[choices.below(MMAS.len())];
    let tile = k * choices.one(&[1, 2, 4]);
    let waves = choices.one(&[1, 2]);
    let block = 32 * waves;
    // One iteration often: what it yields becomes the result as it is.
    let trips = if choices.sometimes(4) { 1 } else { 1 + choices.below(9) as i64 };
    let whole = tile * trips;
    let assumed = choices.one(&[0, k, tile, 2 * tile]);
    let size = match assumed {
        0 => (whole + choices.one(&[0, 0, 5, -3])).max(1),
        by => (whole / by * by).max(by),
    };
    let sizes = [choices.one(&[32, 64, 37]), choices.one(&[32, 64, 75]), size, choices.one(&[32, 64, 20])];
    let dynamic = [choices.sometimes(5), choices.sometimes(5), choices.sometimes(2), choices.sometimes(3)];
    let schedule = choices.one(&schedules::ALL);
    let mut writer = Writer { body: String::new(), count: 0, accumulator, outputs: 0 };
    let mut values = vec![writer.register(choices, 0)];
    values.push(writer.value(0, "read e"));
    for _ in 0..1 + choices.below(3) {
        // The results of the loop before come first.
        let results = writer.iterate(choices, "K", 0, &mut values, &[]);
        values.splice(0..0, results);
        if choices.sometimes(4) {
            let made = writer.elementwise(choices, 0, &values);
            values.push(made);
        }
        if choices.sometimes(5) {
            let results = writer.under_condition(choices, 0, None, (&values, None));
            values.splice(0..0, results);
        }
    }
    for _ in 0..1 + choices.below(3) {
        // Mostly a result that the last loop has left.
        let few = if choices.sometimes(2) { values.len() } else { values.len().min(4) };
        let (from, number) = (values[choices.below(few)], writer.outputs);
        writer.outputs += 1;
        writer.line(0, &format!("write %v{from}, o{number}"));
    }
    let spaces = [choices.one(&["shared", "global"]), choices.one(&["shared", "global"])];
    let mut text = format!(
        "kernel loops {{\n  workgroup M, {block}, 0\n  workgroup N, {block}, 1\n  wave M, 32\n  wave N, 32\n  \
         tile K, {tile}\n  mma {mma}\n"
    );
    if choices.sometimes(6) {
        let _ = writeln!(text, "  persistent {}", choices.one(&[1, 3]));
    }
    if assumed > 0 {
        let _ = writeln!(text, "  assume K % {assumed} == 0");
    }
    let _ = writeln!(
        text,
        "  a = memory [M, K] {} {input}\n  b = memory [N, K] {} {input}",
        spaces[0], spaces[1]
    );
    let nested = writer.body.contains("iterate J");
    if nested {
        let _ = writeln!(
            text,
            "  tile J, {k}\n  p = memory [M, J] {} {input}\n  q = memory [N, J] global {input}",
            spaces[1]
        );
    }
    let _ = writeln!(text, "  e = memory [M, N] global {accumulator}");
    if writer.body.contains("read d\n") {
        let _ = writeln!(text, "  d = memory [M, N] global {accumulator}");
    }
    for number in 0..writer.outputs {
        let _ = writeln!(text, "  o{number} = memory [M, N] global {accumulator}");
    }
    let wrong = writer.body.lines().any(|line| line.starts_with("    ") && line.contains("iterate K"));
    let _ = writeln!(text, "{}}}", writer.body);
    Case { text, sizes, dynamic, schedule, wrong }
}
