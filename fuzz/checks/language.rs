//! Kernels of the whole language: values of many dtypes over any of three dimensions, arithmetic, casts,
//! comparisons, places, mapped and indirect reads and writes, atomic updates, reductions, scans, products,
//! loops and conditionals inside each other, with every way to spread the dimensions and every schedule. They
//! are well typed by construction, and most of what they compute ends in a memory. A kernel is refused with a
//! reason, or means the same after every pass, gives what the interpreter gives, and check mode finds nothing
//! in it.

use std::fmt::Write;

use groundswell::author::{Kernel, Symbol};
use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::{Verify, compile_uncached};
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::internals::KernelResults;
use groundswell::options::{Options, Schedule};
use groundswell::simulator::FindingKind;
use groundswell::target::Target;

use super::{Choices, Outcome, stages};

/// A set of dimensions: bit `i` is `DIMS[i]`.
type DimSet = u8;

const DIMS: [&str; 3] = ["M", "N", "K"];
const M: DimSet = 1;
const N: DimSet = 2;
const K: DimSet = 4;

/// Dtypes of memories and values; i1 comes from comparisons alone.
const DTYPES: [&str; 8] = ["f32", "i32", "f16", "bf16", "i8", "i16", "f64", "i64"];

#[derive(Copy, Clone)]
struct Value {
    id: usize,
    dims: DimSet,
    dtype: &'static str,
}

impl Value {
    fn is_float(self) -> bool {
        self.dtype.starts_with('f') || self.dtype.starts_with('b')
    }
}

/// How a dimension is spread.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Spread {
    /// Over workgroups.
    Workgroups,
    /// Over the iterations of loops: it exists in them alone.
    Loop,
    /// Not at all.
    No,
}

struct Generator<'a, 'b> {
    choices: &'a mut Choices<'b>,
    spread: [Spread; 3],
    /// The matrix instruction and the dtypes of its factors and sums, if products are possible.
    product: Option<(&'static str, &'static str)>,
    declarations: String,
    body: String,
    depth: usize,
    values: Vec<Value>,
    next: usize,
    memories: usize,
    /// Memories that are read or written as a whole, by number, with their elements' dimensions and dtype.
    accessed: Vec<Value>,
    /// A loop over K is around what is written.
    in_loop: bool,
    steps: usize,
    /// By number of a value: something uses it.
    used: Vec<bool>,
}

fn names(dims: DimSet) -> Vec<&'static str> {
    (0..3).filter(|dim| dims >> dim & 1 != 0).map(|dim| DIMS[dim]).collect()
}

impl Generator<'_, '_> {
    fn line(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{:width$}{text}", "", width = 2 + 2 * self.depth);
        let operands = text.rsplit_once(" = ").map_or(text, |(_, operands)| operands);
        for word in operands.split("%v").skip(1) {
            let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
            if let Ok(id) = word[..digits].parse::<usize>() {
                self.used.resize(self.used.len().max(id + 1), false);
                self.used[id] = true;
            }
        }
    }

    /// Numbers from a place of the list on that nothing uses.
    fn idle(&self, from: usize) -> Vec<Value> {
        let idle = |v: &&Value| v.dtype != "i1" && !self.used.get(v.id).is_some_and(|&used| used);
        self.values[from.min(self.values.len())..].iter().filter(idle).copied().collect()
    }

    /// `value` joined with `other`, which is folded and cast for it; `value` alone where that cannot be done.
    fn joined(&mut self, value: Value, other: Value) -> Value {
        let surplus: Vec<usize> = (0..3).filter(|dim| (other.dims & !value.dims) >> dim & 1 != 0).collect();
        if surplus.iter().any(|dim| self.spread[*dim] == Spread::Workgroups) {
            return value;
        }
        let mut other = other;
        for dim in surplus {
            let word = self.choices.one(&["reduce_max", "reduce_sum"]);
            let text = format!("{word} %v{} over {}", other.id, DIMS[dim]);
            other = self.value(other.dims & !(1 << dim), other.dtype, &text);
        }
        if other.dtype != value.dtype {
            other = self.value(other.dims, value.dtype, &format!("cast %v{} {}", other.id, value.dtype));
        }
        let word = self.choices.one(&["add", "max", "sub"]);
        self.value(value.dims, value.dtype, &format!("{word} %v{}, %v{}", value.id, other.id))
    }

    fn value(&mut self, dims: DimSet, dtype: &'static str, text: &str) -> Value {
        let id = self.next;
        self.next += 1;
        self.line(&format!("%v{id} = {text}"));
        let value = Value { id, dims, dtype };
        self.values.push(value);
        value
    }

    /// The dimensions that values may have here.
    fn around(&self) -> DimSet {
        let is_there = |dim: &usize| self.spread[*dim] != Spread::Loop || self.in_loop;
        (0..3).filter(is_there).fold(0, |dims, dim| dims | 1 << dim)
    }

    /// Dimensions that are spread over workgroups: what is written has all of them.
    fn of_workgroups(&self) -> DimSet {
        (0..3).filter(|&dim| self.spread[dim] == Spread::Workgroups).fold(0, |dims, dim| dims | 1 << dim)
    }

    fn dims(&mut self) -> DimSet {
        let around = self.around();
        let dims = (self.choices.below(8) as DimSet) & around;
        if dims == 0 { around & (M | N) } else { dims }
    }

    fn memory(&mut self, shape: &[&str], dtype: &str) -> usize {
        let (at, space) = (self.memories, if self.choices.sometimes(4) { "shared" } else { "global" });
        self.memories += 1;
        let _ = writeln!(self.declarations, "  m{at} = memory [{}] {space} {dtype}", shape.join(", "));
        at
    }

    /// A memory that is written to, whose name stands after those that are read.
    fn output(&mut self, shape: &[&str], dtype: &str) -> usize {
        let at = self.memories;
        self.memories += 1;
        let _ = writeln!(self.declarations, "  m{at} = memory [{}] global {dtype}", shape.join(", "));
        at
    }

    /// A read of a new memory, or of one that was read or written before.
    fn read(&mut self) -> Value {
        if self.choices.sometimes(4) {
            let (around, wanted) = (self.around(), self.of_workgroups());
            let fits = |m: &&Value| m.dims & !around == 0 && wanted & !m.dims == 0;
            let all: Vec<Value> = self.accessed.iter().filter(fits).copied().collect();
            if !all.is_empty() {
                let memory = self.recent(&all);
                return self.value(memory.dims, memory.dtype, &format!("read m{}", memory.id));
            }
        }
        let (dims, dtype) = (self.dims(), self.choices.one(&DTYPES));
        let mut shape = names(dims);
        if self.choices.sometimes(3) {
            shape.reverse();
        }
        let memory = self.memory(&shape, dtype);
        self.accessed.push(Value { id: memory, dims, dtype });
        self.value(dims, dtype, &format!("read m{memory}"))
    }

    /// A coordinate along a dimension of a table.
    fn coordinate(&mut self, dims: DimSet) -> String {
        let dim = self.choices.one(&names(dims));
        let ids: Vec<Value> =
            self.values.iter().copied().filter(|v| v.dtype == "i32" && v.dims & !dims == 0).collect();
        match self.choices.below(8) {
            0 => format!("{dim} + 1"),
            1 => format!("{dim} * 2 - 3"),
            2 => format!("{dim} // 3"),
            3 => format!("{dim} % 5"),
            4 => format!("L - 1 - {dim}"),
            5 if !ids.is_empty() => {
                let id = self.choices.one(&ids).id;
                format!("%v{id}")
            }
            _ => dim.to_owned(),
        }
    }

    fn mapped_read(&mut self) -> Value {
        let (dims, dtype) = (self.dims(), self.choices.one(&DTYPES));
        let rank = 1 + self.choices.below(2);
        let at: Vec<String> = (0..rank).map(|_| self.coordinate(dims)).collect();
        let memory = self.memory(&["L", "LL"][..rank], dtype);
        let text = format!("read m{memory} at [{}] as [{}]", at.join(", "), names(dims).join(", "));
        self.value(dims, dtype, &text)
    }

    fn constant(&mut self) -> Value {
        let (dims, dtype) = (self.dims(), self.choices.one(&DTYPES));
        let number = match (dtype, self.choices.below(4)) {
            ("f32" | "f64" | "f16" | "bf16", at) => ["0.0", "1.0", "-2.5", "-0.0"][at],
            (_, at) => ["0", "1", "-3", "100"][at],
        };
        self.value(dims, dtype, &format!("register [{}] {dtype} {number}", names(dims).join(", ")))
    }

    fn place(&mut self) -> Value {
        let dim = self.choices.below(3);
        match self.around() >> dim & 1 {
            0 => self.value(0, "i32", &format!("size {}", DIMS[dim])),
            _ => self.value(1 << dim, "i32", &format!("self_index {}", DIMS[dim])),
        }
    }

    /// A value with the dtype of `like` and comparable dimensions.
    fn partner(&mut self, like: Value) -> Value {
        let fits =
            |v: &&Value| v.dtype == like.dtype && (v.dims & !like.dims == 0 || like.dims & !v.dims == 0);
        let all: Vec<Value> = self.values.iter().filter(fits).copied().collect();
        self.recent(&all)
    }

    /// One of some values: half the time one of the last, so that few values are of no use.
    fn recent(&mut self, all: &[Value]) -> Value {
        let from = if self.choices.below(2) == 0 { all.len().saturating_sub(3) } else { 0 };
        self.choices.one(&all[from..])
    }

    fn numbers(&self) -> Vec<Value> {
        self.values.iter().copied().filter(|v| v.dtype != "i1").collect()
    }

    fn any(&mut self) -> Value {
        let numbers = self.numbers();
        self.recent(&numbers)
    }

    fn arithmetic(&mut self) -> Value {
        let a = self.any();
        let b = self.partner(a);
        let words: &[&str] = match a.is_float() {
            true => &["add", "sub", "mul", "min", "max"],
            false => &["add", "sub", "mul", "min", "max", "and", "xor", "floor_div", "rem"],
        };
        let word = self.choices.one(words);
        self.value(a.dims | b.dims, a.dtype, &format!("{word} %v{}, %v{}", a.id, b.id))
    }

    fn unary(&mut self) -> Value {
        let a = self.any();
        let words: &[&str] = match (a.dtype, a.is_float()) {
            ("f64", _) => &["abs", "neg", "floor", "sqrt"],
            (_, true) => &["abs", "neg", "floor", "exp2"],
            (_, false) => &["abs", "neg", "not"],
        };
        let word = self.choices.one(words);
        self.value(a.dims, a.dtype, &format!("{word} %v{}", a.id))
    }

    fn cast(&mut self) -> Value {
        let (a, dtype) = (self.any(), self.choices.one(&DTYPES));
        self.value(a.dims, dtype, &format!("cast %v{} {dtype}", a.id))
    }

    fn choice(&mut self) -> Value {
        let a = self.any();
        let b = self.partner(a);
        let predicate = self.choices.one(&["lt", "ge", "eq"]);
        let condition =
            self.value(a.dims | b.dims, "i1", &format!("compare {predicate} %v{}, %v{}", a.id, b.id));
        let (yes, no) = match self.choices.below(2) {
            0 => (a, b),
            _ => (b, a),
        };
        let text = format!("select %v{}, %v{}, %v{}", condition.id, yes.id, no.id);
        self.value(a.dims | b.dims, a.dtype, &text)
    }

    fn broadcast(&mut self) -> Value {
        let a = self.any();
        let dims = a.dims | self.dims();
        self.value(dims, a.dtype, &format!("broadcast %v{} [{}]", a.id, names(dims).join(", ")))
    }

    fn reduction(&mut self) -> Option<Value> {
        let a = self.any();
        let dims = self.foldable(a);
        let dim = *dims.get(self.choices.below(dims.len()))?;
        let word = self.choices.one(&["reduce_sum", "reduce_max", "reduce_min"]);
        if dims.len() > 1 && self.choices.sometimes(3) {
            let all: DimSet = dims.iter().fold(0, |all, dim| all | 1 << dim);
            let text = format!("{word} %v{} over [{}]", a.id, names(all).join(", "));
            return Some(self.value(a.dims & !all, a.dtype, &text));
        }
        Some(self.value(a.dims & !(1 << dim), a.dtype, &format!("{word} %v{} over {}", a.id, DIMS[dim])))
    }

    /// Dimensions of a value of which a workgroup has all that it sees.
    fn foldable(&self, value: Value) -> Vec<usize> {
        let foldable = |dim: &usize| value.dims >> dim & 1 != 0 && self.spread[*dim] != Spread::Workgroups;
        (0..3).filter(foldable).collect()
    }

    fn scan(&mut self) -> Option<Value> {
        let a = self.any();
        let dims = self.foldable(a);
        let dim = *dims.get(self.choices.below(dims.len()))?;
        let word = self.choices.one(&["cumsum", "cumsum_exclusive"]);
        Some(self.value(a.dims, a.dtype, &format!("{word} %v{} over {}", a.id, DIMS[dim])))
    }

    fn factors(&mut self) -> Option<Value> {
        let (factor, sum) = self.product.filter(|_| self.around() & K != 0)?;
        let operand = |this: &mut Self, dims: DimSet, dtype: &'static str| {
            let fits = |v: &&Value| v.dims == dims && v.dtype == dtype;
            let all: Vec<Value> = this.values.iter().filter(fits).copied().collect();
            if all.is_empty() || this.choices.sometimes(3) {
                let mut shape = names(dims);
                if this.choices.sometimes(3) {
                    shape.reverse();
                }
                let memory = this.memory(&shape, dtype);
                return this.value(dims, dtype, &format!("read m{memory}"));
            }
            this.choices.one(&all)
        };
        let (a, b) = (operand(self, M | K, factor), operand(self, N | K, factor));
        let c = match self.values.iter().rev().find(|v| v.dims == M | N && v.dtype == sum).copied() {
            Some(c) if !self.choices.sometimes(3) => c,
            _ => self.value(M | N, sum, &format!("register [M, N] {sum} 0")),
        };
        Some(self.value(M | N, sum, &format!("mma %v{}, %v{}, %v{}", a.id, b.id, c.id)))
    }

    fn write(&mut self, value: Value) {
        let wanted = value.dims | self.of_workgroups();
        let value = match wanted == value.dims {
            true => value,
            false => self.value(
                wanted,
                value.dtype,
                &format!("broadcast %v{} [{}]", value.id, names(wanted).join(", ")),
            ),
        };
        let mut shape = names(value.dims);
        if self.choices.sometimes(3) {
            shape.reverse();
        }
        if matches!(value.dtype, "i32" | "i64") && self.choices.sometimes(5) {
            let at = self.coordinate(value.dims);
            let memory = self.output(&["L"], value.dtype);
            let word = self.choices.one(&["atomic_add", "atomic_max", "atomic_xor"]);
            let id = self.next;
            self.next += 1;
            return self.line(&format!("%v{id} = {word} %v{}, m{memory} at [{at}]", value.id));
        }
        let fits = |m: &&Value| m.dims == value.dims && m.dtype == value.dtype;
        let known: Vec<usize> = self.accessed.iter().filter(fits).map(|memory| memory.id).collect();
        let memory = match known.last() {
            Some(&known) if self.choices.sometimes(3) => known,
            _ => self.output(&shape, value.dtype),
        };
        self.accessed.push(Value { id: memory, ..value });
        self.line(&format!("write %v{}, m{memory}", value.id));
    }

    fn step(&mut self) {
        self.steps += 1;
        match self.choices.below(15) {
            0 => drop(self.read()),
            1 => drop(self.mapped_read()),
            2 => drop(self.constant()),
            3 => drop(self.place()),
            4 | 5 => drop(self.arithmetic()),
            6 => drop(self.unary()),
            7 => drop(self.cast()),
            8 => drop(self.choice()),
            9 => drop(self.broadcast()),
            10 => drop(self.reduction()),
            11 => drop(self.factors()),
            12 => self.region(),
            13 => drop(self.scan()),
            _ => {
                let value = self.any();
                // Iterations write elements of their own.
                if !self.in_loop || value.dims & K != 0 {
                    self.write(value);
                }
            }
        }
    }

    /// A loop over K, or a conditional, with values that it carries.
    fn region(&mut self) {
        if self.depth >= 3 || self.steps > 40 {
            return;
        }
        let is_loop = self.spread[2] == Spread::Loop && !self.in_loop && !self.choices.sometimes(4);
        // What exists in the loop alone is not carried.
        let lasting = if is_loop { !K } else { !0 };
        let numbers: Vec<Value> = self.numbers().into_iter().filter(|v| v.dims & !lasting == 0).collect();
        let inits: Vec<Value> = (0..1 + self.choices.below(2)).map(|_| self.choices.one(&numbers)).collect();
        let head = if is_loop {
            "iterate K".to_owned()
        } else {
            let number =
                if self.in_loop && self.choices.below(2) == 0 { "iteration K" } else { "workgroup_id 0" };
            let number = self.value(0, "i32", number).id;
            let limit = self.choices.below(3);
            let predicate = self.choices.one(&["ge", "lt", "eq"]);
            let limit = self.value(0, "i32", &format!("register [] i32 {limit}")).id;
            let condition = self.value(0, "i1", &format!("compare {predicate} %v{number}, %v{limit}"));
            format!("conditional %v{}", condition.id)
        };
        let (outside, was_in_loop) = (self.values.len(), self.in_loop);
        let arguments: Vec<Value> = inits
            .iter()
            .map(|init| {
                let value = Value { id: self.next, ..*init };
                self.next += 1;
                value
            })
            .collect();
        let results: Vec<usize> = (self.next..self.next + inits.len()).collect();
        self.next += inits.len();
        let list = |ids: &[usize]| ids.iter().map(|id| format!("%v{id}")).collect::<Vec<_>>().join(", ");
        let carried: Vec<String> =
            arguments.iter().zip(&inits).map(|(a, init)| format!("%v{} = %v{}", a.id, init.id)).collect();
        self.line(&format!("{} = {head} ({}) {{", list(&results), carried.join(", ")));
        self.values.extend(&arguments);
        (self.depth, self.in_loop) = (self.depth + 1, self.in_loop || is_loop);
        for _ in 0..1 + self.choices.below(6) {
            self.step();
        }
        let mut yields: Vec<Value> = arguments
            .iter()
            .map(|argument| {
                let fits = |v: &&Value| v.dims == argument.dims && v.dtype == argument.dtype;
                let all: Vec<Value> = self.values.iter().filter(fits).copied().collect();
                self.recent(&all)
            })
            .collect();
        // What the region has computed is of some use.
        for idle in self.idle(outside) {
            let at = self.choices.below(yields.len());
            if yields.iter().all(|value| value.id != idle.id) {
                yields[at] = self.joined(yields[at], idle);
            }
        }
        let yields: Vec<usize> = yields.iter().map(|value| value.id).collect();
        self.line(&format!("yield {}", list(&yields)));
        (self.depth, self.in_loop) = (self.depth - 1, was_in_loop);
        self.line("}");
        self.values.truncate(outside);
        self.values.extend(inits.iter().zip(results).map(|(init, id)| Value { id, ..*init }));
    }
}

/// The check.
pub fn language(data: &[u8]) -> Result<(), String> {
    language_outcome(data).map(|_| ())
}

/// The same, telling whether the kernel ran.
pub fn language_outcome(data: &[u8]) -> Result<Outcome, String> {
    let mut choices = Choices::new(data);
    let mut sizes: Vec<(&str, i64, bool)> = Vec::new();
    let mut constraints = String::new();
    let mut spread = [Spread::Workgroups, Spread::No, Spread::Loop];
    let tile = choices.one(&[16, 32, 64]);
    let _ = writeln!(constraints, "  workgroup M, {tile}, 0");
    if choices.below(2) == 1 {
        let _ = writeln!(constraints, "  wave M, {}", tile / 2);
    }
    sizes.push(("M", choices.one(&[16, 64, 5, 33, 1]), choices.sometimes(4)));
    match choices.below(3) {
        0 => {
            spread[1] = Spread::Workgroups;
            let tile = choices.one(&[16, 32]);
            let _ = writeln!(constraints, "  workgroup N, {tile}, 1");
            sizes.push(("N", choices.one(&[16, 32, 40, 7]), choices.sometimes(4)));
        }
        1 => {
            let _ = writeln!(constraints, "  wave N, 32");
            sizes.push(("N", choices.one(&[32, 16, 5, 30]), false));
        }
        _ => sizes.push(("N", choices.one(&[16, 4, 32, 1]), false)),
    }
    match choices.below(3) {
        0 | 1 => {
            let tile = choices.one(&[32, 16]);
            let _ = writeln!(constraints, "  tile K, {tile}");
            sizes.push(("K", choices.one(&[64, 32, 20, 100]), choices.sometimes(3)));
        }
        _ => {
            spread[2] = Spread::No;
            sizes.push(("K", choices.one(&[16, 32, 2, 1]), false));
        }
    }
    sizes.push(("L", choices.one(&[7, 64, 1]), choices.sometimes(4)));
    sizes.push(("LL", choices.one(&[5, 40]), choices.sometimes(4)));
    let product = choices.one(&[
        None,
        Some(("f32_16x16x16_f16", "f16", "f32")),
        Some(("f32_16x16x16_bf16", "bf16", "f32")),
        Some(("i32_16x16x32_i8", "i8", "i32")),
        Some(("f32_16x16x4_f32", "f32", "f32")),
        Some(("f64_16x16x4_f64", "f64", "f64")),
    ]);
    if let Some((name, ..)) = product {
        let _ = writeln!(constraints, "  mma {name}");
    }
    let schedule = choices.one(&[Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo]);
    let seed = choices.below(256) as u64;
    let mut generator = Generator {
        choices: &mut choices,
        spread,
        product: product.map(|(_, factor, sum)| (factor, sum)),
        declarations: String::new(),
        body: String::new(),
        depth: 0,
        values: Vec::new(),
        next: 0,
        memories: 0,
        accessed: Vec::new(),
        in_loop: false,
        steps: 0,
        used: Vec::new(),
    };
    generator.read();
    for _ in 0..2 + generator.choices.below(16) {
        generator.step();
    }
    // What nothing uses is written.
    for idle in generator.idle(0) {
        generator.write(idle);
    }
    let Generator { declarations, body, .. } = generator;
    // A dimension that nothing has cannot be spread.
    let has = |dim: &str| {
        let of_dim = |word: &str| word == dim;
        let words = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(of_dim);
        words(&declarations) || words(&body)
    };
    let is_used = |line: &&str| DIMS.iter().all(|dim| has(dim) || !line.contains(&format!(" {dim},")));
    let constraints: String = constraints.lines().filter(is_used).flat_map(|line| [line, "\n"]).collect();
    let text = format!("kernel language {{\n{constraints}{declarations}{body}}}\n");
    run(&text, &sizes, schedule.clone(), seed)
        .map_err(|fault| format!("{fault}\n; {sizes:?} {schedule:?} seed {seed}\n{text}"))
}

fn run(text: &str, sizes: &[(&str, i64, bool)], schedule: Schedule, seed: u64) -> Result<Outcome, String> {
    let kernel = match Kernel::parse(text, "fuzz") {
        Ok(kernel) => kernel,
        Err(faults) => {
            // What the verifier refuses is no mistake of the text.
            let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
            return Err(format!("not read: {}", shown.join("\n")));
        }
    };
    let mut options = Options::new(Target::GFX942).schedule(schedule);
    for &(name, size, dynamic) in sizes {
        let symbol = Symbol::new(name);
        options = if dynamic { options.dynamic(symbol) } else { options.set(symbol, size) };
    }
    let executable = match compile_uncached(&kernel, &options, Verify::AfterEachPass) {
        Ok(executable) => executable,
        Err(fault) if fault.kind == Kind::Bug => return Err(format!("compile: {fault}")),
        Err(_) => return Ok(Outcome::Refused),
    };
    let device = Device::simulator(Target::GFX942);
    let value = |s: Symbol| sizes.iter().find(|size| size.0 == s.name()).map(|size| size.1);
    // All of them would take too long.
    if seed.is_multiple_of(8) {
        stages::compare(&kernel, &options, KernelResults::of(&kernel, &options, &value, seed))?;
    }
    let ran = against_interpreter(&kernel, &executable, &device, &value, seed).map_err(|e| e.to_string())?;
    if !ran.comparison.ok {
        return Err(format!("run mode: {:?}", ran.comparison));
    }
    if seed.is_multiple_of(4) {
        let (report, comparison) =
            with_findings(&kernel, &executable, &device, &value, seed).map_err(|e| e.to_string())?;
        // Waves may load the same small tile.
        let is_note = |kind: &FindingKind| matches!(kind, FindingKind::RepeatedStore { .. });
        if !report.findings.iter().all(|finding| is_note(&finding.kind)) || !comparison.ok {
            return Err(format!("check mode: {comparison:?} {report}"));
        }
    }
    Ok(Outcome::Ran)
}
