//! Kernels on memories of all shapes: any dimensions in any order, of which some are spread over workgroups
//! (one element each, or a tile), some are walked by a loop and some belong to all; memories are read
//! again, updated in place, and written by workgroups that all have the same value. A kernel is refused when
//! it races and only then; what is not refused means the same after every pass, gives what the interpreter
//! gives, and check mode finds nothing in it.

use std::fmt::Write;

use groundswell::author::Kernel;
use groundswell::author::Symbol;
use groundswell::check::{against_interpreter, with_findings};
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::device::Device;
use groundswell::diagnostic::Kind;
use groundswell::internals::KernelResults;
use groundswell::options::Options;
use groundswell::simulator::{FindingKind, MemoryAccess};
use groundswell::target::Target;

use super::{Choices, Outcome, stages};

/// How a dimension is spread.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Spread {
    /// Over workgroups.
    Workgroups,
    /// Over the iterations of the loop around everything.
    Loop,
    /// Not at all.
    No,
}

/// A set of dimensions: bit `i` is dimension `i`.
type DimSet = u8;

struct Memory {
    dims: DimSet,
    /// Something has read it.
    read: bool,
    written: bool,
}

#[derive(Copy, Clone)]
struct Value {
    id: usize,
    dims: DimSet,
}

struct Builder {
    spread: Vec<Spread>,
    /// Name and size of each dimension, and whether it is left open until the launch; after them the same of
    /// strides.
    sizes: Vec<(&'static str, i64, bool)>,
    memories: Vec<Memory>,
    values: Vec<Value>,
    next: usize,
    body: String,
    declarations: String,
    integer: bool,
    dtype: &'static str,
    /// What workgroups do to memories that belong to all of them.
    common: Common,
}

/// What workgroups do to a memory that belongs to all of them.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Common {
    /// Nothing but read it.
    Reads,
    /// All of them store the same once.
    Stores,
    /// They update it.
    Races,
}

const NAMES: [&str; 4] = ["P", "M", "N", "K"];

/// Names of strides: three for each memory.
const STRIDES: [&str; 36] = [
    "S00", "S01", "S02", "S10", "S11", "S12", "S20", "S21", "S22", "S30", "S31", "S32", "S40", "S41", "S42",
    "S50", "S51", "S52", "S60", "S61", "S62", "S70", "S71", "S72", "S80", "S81", "S82", "S90", "S91", "S92",
    "S100", "S101", "S102", "S110", "S111", "S112",
];

impl Builder {
    /// True if `dims` lacks a dimension that is spread so.
    fn lacks(&self, dims: DimSet, spread: Spread) -> bool {
        (0..self.spread.len()).any(|dim| self.spread[dim] == spread && dims >> dim & 1 == 0)
    }

    fn memory(&mut self, choices: &mut Choices<'_>, dims: DimSet) -> usize {
        let mut order: Vec<usize> = (0..self.spread.len()).filter(|dim| dims >> dim & 1 != 0).collect();
        if choices.sometimes(3) {
            order.reverse();
        }
        let shape: Vec<&str> = order.iter().map(|&dim| NAMES[dim]).collect();
        let number = self.memories.len();
        // Writing to a string cannot fail.
        let strides =
            if choices.sometimes(3) { self.strides(choices, &order, number) } else { String::new() };
        let (shape, dtype) = (shape.join(", "), self.dtype);
        let _ = writeln!(self.declarations, "  m{number} = memory [{shape}] global {dtype}{strides}");
        self.memories.push(Memory { dims, read: false, written: false });
        number
    }

    /// Strides of a memory whose dimensions are these: numbers, or symbols that are bound or left open.
    fn strides(&mut self, choices: &mut Choices<'_>, order: &[usize], number: usize) -> String {
        let mut strides = vec!["1".to_owned()];
        let mut span = 1;
        for (at, pair) in order.windows(2).enumerate().rev() {
            span *= self.sizes[pair[1]].1;
            span += choices.one(&[0, 0, 1, 2, 4, 8, 13]);
            strides.push(match choices.below(3) {
                0 => span.to_string(),
                kind => {
                    let name = STRIDES[number.min(11) * 3 + at.min(2)];
                    self.sizes.push((name, span, kind == 1));
                    name.to_owned()
                }
            });
        }
        strides.reverse();
        format!(" strides [{}]", strides.join(", "))
    }

    fn value(&mut self, dims: DimSet, text: &str) -> Value {
        let value = Value { id: self.next, dims };
        self.next += 1;
        let _ = writeln!(self.body, "  %v{} = {text}", value.id);
        self.values.push(value);
        value
    }

    fn read(&mut self, memory: usize) -> Value {
        self.memories[memory].read = true;
        self.value(self.memories[memory].dims, &format!("read m{memory}"))
    }

    fn write(&mut self, value: Value, memory: usize) {
        let dims = self.memories[memory].dims;
        let again = self.memories[memory].written || self.memories[memory].read;
        // Missing dimensions of workgroups: all of them write it, in no order; of a loop: it is written in
        // every iteration.
        if self.lacks(dims, Spread::Workgroups) {
            let races = again || self.lacks(dims, Spread::Loop);
            self.common = self.common.max(if races { Common::Races } else { Common::Stores });
        }
        self.memories[memory].written = true;
        let _ = writeln!(self.body, "  write %v{}, m{memory}", value.id);
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let a = choices.one(&self.values);
        match choices.below(5) {
            0 => {
                let memory = choices.below(self.memories.len());
                self.read(memory);
            }
            1 => {
                let b = choices.one(&self.values);
                if a.dims & b.dims == a.dims || a.dims & b.dims == b.dims {
                    self.value(a.dims | b.dims, &format!("max %v{}, %v{}", a.id, b.id));
                }
            }
            2 => {
                let number = if self.integer { "1" } else { "0.5" };
                self.value(a.dims, &format!("sub %v{}, {number}", a.id));
            }
            _ => {
                let number = self.memories.len();
                let fit = (0..number).filter(|&memory| self.memories[memory].dims == a.dims);
                let mut fit: Vec<usize> = fit.collect();
                fit.push(number);
                let memory = choices.one(&fit);
                if memory == number {
                    self.memory(choices, a.dims);
                }
                self.write(a, memory);
            }
        }
    }
}

/// The check.
pub fn memories(data: &[u8]) -> Result<(), String> {
    memories_outcome(data).map(|_| ())
}

/// The same, telling whether the kernel ran.
pub fn memories_outcome(data: &[u8]) -> Result<Outcome, String> {
    let mut choices = Choices::new(data);
    let rank = 2 + choices.below(3);
    let mut sizes: Vec<(&'static str, i64, bool)> = Vec::new();
    let mut text = String::from("kernel memories {\n");
    let mut axes = vec![0, 1, 2];
    let mut spread = Vec::new();
    for &name in &NAMES[..rank] {
        let kind = choices.below(8);
        let axis = choices.below(3);
        let (size, how) = match kind {
            0 if name != "M" => (choices.one(&[1, 2, 4, 16]), Spread::No),
            1 if name != "M" && !spread.contains(&Spread::Loop) => {
                let _ = writeln!(text, "  tile {name}, 16");
                (choices.one(&[16, 32, 5, 40]), Spread::Loop)
            }
            _ if axes.is_empty() => (choices.one(&[1, 2]), Spread::No),
            _ => {
                let axis = axes.remove(axis % axes.len());
                let tile = if kind < 5 && name != "M" { 1 } else { choices.one(&[64, 16, 32]) };
                let _ = writeln!(text, "  workgroup {name}, {tile}, {axis}");
                if tile > 1 && choices.sometimes(3) {
                    let _ = writeln!(text, "  wave {name}, {}", tile / 2);
                }
                // Tensors stay small: check mode looks at every element.
                let elements: i64 = sizes.iter().map(|size| size.1).product();
                let some: &[i64] = match (tile, elements) {
                    (1, _) => &[2, 3, 1, 5],
                    (_, ..100) => &[64, 1, 7, 33, 75, 100],
                    _ => &[17, 1, 7],
                };
                (choices.one(some), Spread::Workgroups)
            }
        };
        spread.push(how);
        sizes.push((name, size, how != Spread::No && choices.sometimes(4)));
    }
    let dtype = choices.one(&["f32", "f16", "i32", "i8"]);
    let mut builder = Builder {
        spread,
        sizes,
        memories: Vec::new(),
        values: Vec::new(),
        next: 0,
        body: String::new(),
        declarations: String::new(),
        integer: dtype.starts_with('i'),
        dtype,
        common: Common::Reads,
    };
    let all: DimSet = (1 << rank) - 1;
    let mut whole = None;
    for number in 0..2 + choices.below(3) {
        let dims = if number == 0 { all } else { (choices.below(all.into()) + 1) as DimSet };
        let memory = builder.memory(&mut choices, dims);
        let read = builder.read(memory);
        whole = Some(match whole {
            None => read,
            Some(Value { id, .. }) => builder.value(all, &format!("add %v{id}, %v{}", read.id)),
        });
    }
    // A write of everything decides how small values are spread, too.
    let result = builder.memory(&mut choices, all);
    if let Some(whole) = whole {
        builder.write(whole, result);
    }
    for _ in 0..choices.below(8) {
        builder.step(&mut choices);
    }
    text.push_str(&builder.declarations);
    match builder.spread.iter().position(|&spread| spread == Spread::Loop) {
        Some(dim) => {
            let _ = write!(text, "  iterate {} () {{\n{}    yield\n  }}\n}}\n", NAMES[dim], builder.body);
        }
        None => {
            let _ = writeln!(text, "{}}}", builder.body);
        }
    }
    let seed = choices.below(256) as u64;
    let sizes = &builder.sizes;
    run(&text, sizes, builder.common, seed).map_err(|fault| format!("{fault}\n; {sizes:?}\n{text}"))
}

fn run(text: &str, sizes: &[(&str, i64, bool)], common: Common, seed: u64) -> Result<Outcome, String> {
    let kernel = match (Kernel::parse(text, "fuzz"), common == Common::Races) {
        (Ok(kernel), false) => kernel,
        (Ok(_), true) => return Err("a kernel that races is not refused".to_owned()),
        (Err(_), true) => return Ok(Outcome::Refused),
        (Err(faults), false) => return Err(format!("{faults:?}")),
    };
    let mut options = Options::new(Target::GFX942);
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
    let (report, comparison) =
        with_findings(&kernel, &executable, &device, &value, seed).map_err(|e| e.to_string())?;
    // Two unordered stores may be reported, even if they store the same.
    let stores = |kind: &FindingKind| {
        matches!(kind, FindingKind::Race { first: MemoryAccess::Store, then: MemoryAccess::Store, .. })
    };
    let is_right = |kind: &FindingKind| common == Common::Stores && stores(kind);
    if !report.findings.iter().all(|finding| is_right(&finding.kind)) || !comparison.ok {
        return Err(format!("check mode: {comparison:?} {report}"));
    }
    Ok(Outcome::Ran)
}
