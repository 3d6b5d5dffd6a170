//! A kernel on numbers: interpreted, executed, and compared with the definition.

use std::collections::BTreeMap;

use groundswell::compile::{Parameter, Verify, compile_uncached};
use groundswell::kernels::{Attention, AttentionLayout, RopePairs};
use groundswell::options::DebugInfo;
use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::judged::assert_right;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::definition::{Definition, Place, Sizes, allowed, row};

/// A kernel, its sizes, and what it means.
pub struct Trial {
    pub title: String,
    pub attention: Attention,
    pub inputs: DType,
    pub output: DType,
    pub layout: AttentionLayout,
    pub sizes: Sizes,
    pub open: Vec<&'static str>,
    pub definition: Definition,
    /// What the kernel has beside queries, keys, values and results.
    pub others: BTreeMap<&'static str, Tensor>,
    /// Factors of the random numbers of queries, keys and values.
    pub ranges: [f64; 3],
    /// Which pairs of elements are turned by their positions.
    pub rope: Option<RopePairs>,
}

/// Numbers as the kernel has them.
pub struct Numbers {
    pub q: Vec<f64>,
    pub k: Vec<f64>,
    pub v: Vec<f64>,
}

/// Random numbers of a dtype, about as large as `range`.
pub fn random(dtype: DType, count: usize, range: f64, rng: &mut StdRng) -> Vec<f64> {
    let numbers: Vec<f64> = (0..count).map(|_| rng.random_range(-1.0..1.0) * range).collect();
    of_numbers(dtype, &[count], &numbers).to_f64()
}

impl Trial {
    /// bf16 with heads before tokens, all sizes known.
    pub fn new(title: &str, attention: Attention, sizes: Sizes, definition: Definition) -> Trial {
        Trial {
            title: format!("{title} {sizes:?}"),
            attention,
            inputs: Bf16,
            output: Bf16,
            layout: AttentionLayout::Bhsd,
            sizes,
            open: Vec::new(),
            definition,
            others: BTreeMap::new(),
            ranges: [2.0, 2.0, 1.0],
            rope: None,
        }
    }

    /// The place of a row of a tensor with so many heads and rows.
    fn row_of(&self, [batch, head, at]: [usize; 3], heads: usize, rows: usize) -> usize {
        match self.layout {
            AttentionLayout::Bhsd => (batch * heads + head) * rows + at,
            _ => (batch * rows + at) * heads + head,
        }
    }

    fn shape(&self, heads: usize, rows: usize, dim: usize) -> [usize; 4] {
        match self.layout {
            AttentionLayout::Bhsd => [self.sizes.batch, heads, rows, dim],
            _ => [self.sizes.batch, rows, heads, dim],
        }
    }

    fn size(&self, name: &str) -> Option<i64> {
        let size = match name {
            "KEY_BLOCKS" => Some(self.sizes.keys.div_ceil(128)),
            "POSITIONS" => Some(self.sizes.keys + 3),
            _ => self.sizes.of(name),
        };
        size.map(|size| size as i64)
    }

    fn numbers(&self, seed: u64) -> Numbers {
        let Sizes { batch, heads, kv_heads, queries, keys, dim, value_dim } = self.sizes;
        let mut rng = StdRng::seed_from_u64(seed);
        let [q, k, v] = self.ranges;
        Numbers {
            q: random(self.inputs, batch * heads * queries * dim, q, &mut rng),
            k: random(self.inputs, batch * kv_heads * keys * dim, k, &mut rng),
            v: random(self.inputs, batch * kv_heads * keys * value_dim, v, &mut rng),
        }
    }

    /// The kernel, interpreted and executed on a chip, is what the definition says.
    pub fn holds_on(&self, target: Target) -> Executable {
        self.holds_with(target, &self.numbers(self.title.len() as u64))
    }

    pub fn holds_with(&self, target: Target, numbers: &Numbers) -> Executable {
        let title = format!("{} {} open {:?} on {target}", self.title, self.inputs, self.open);
        let attention = self.attention.clone().chosen_for(target);
        let kernel = attention.kernel().unwrap_or_else(|fault| panic!("{title}: {fault}"));
        let executable = compile_uncached(&kernel, &self.options(&attention, target), Verify::Off)
            .unwrap_or_else(|fault| panic!("{title}: {fault}\n{kernel}"));
        let tensors = self.tensors(&executable, numbers);
        let values: Vec<Tensor> = tensors.iter().map(|(_, tensor)| tensor.clone()).collect();
        let tile = attention.options(target);
        let value = |symbol: Symbol| self.size(symbol.name()).or_else(|| tile.value(symbol));
        let meant =
            Interpreter::run(&kernel, &value, &values).unwrap_or_else(|e| panic!("{title}: {e}\n{kernel}"));
        let numbers = &self.turned(numbers);
        let names: Vec<&str> = tensors.iter().map(|(name, _)| &name[..]).collect();
        self.compare(&format!("{title}, interpreted"), &names, &meant, numbers);
        let open: Vec<(&str, i64)> =
            self.open.iter().map(|&name| (name, self.size(name).expect("a size"))).collect();
        let found = executed(&title, &executable, &tensors, &open, None);
        self.compare(&format!("{title}, executed"), &names, &found, numbers);
        executable
    }

    /// Check mode finds nothing in five orders of execution, and gives what the interpreter gives.
    pub fn is_clean_on(&self, target: Target) {
        let attention = self.attention.clone().chosen_for(target);
        let kernel = attention.kernel().unwrap_or_else(|fault| panic!("{}: {fault}", self.title));
        let options = self.options(&attention, target);
        let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{}: {fault}", self.title));
        let tile = attention.options(target);
        let value = |symbol: Symbol| self.size(symbol.name()).or_else(|| tile.value(symbol));
        (0..5).for_each(|seed| assert_right(&kernel, &executable, &value, seed, &self.title));
    }

    fn options(&self, attention: &Attention, target: Target) -> Options {
        let options = attention.options(target).debug_info(DebugInfo::None);
        let options = ["KEY_BLOCKS", "POSITIONS"].into_iter().fold(options, |options, name| {
            if options.value(name).is_some() {
                options
            } else {
                options.set(name, self.size(name).expect("a size"))
            }
        });
        ["B", "M", "N"].into_iter().fold(options, |options, name| match self.open.contains(&name) {
            true => options.dynamic(name),
            false => options.set(name, self.size(name).expect("a size")),
        })
    }

    /// The arguments in the kernel's order, with results that are something else.
    fn tensors(&self, executable: &Executable, numbers: &Numbers) -> Vec<(String, Tensor)> {
        let Sizes { batch, heads, kv_heads, queries, keys, dim, value_dim } = self.sizes;
        let mut named = Vec::new();
        for parameter in executable.parameters() {
            let name = match parameter {
                Parameter::Buffer { name, .. } | Parameter::Scalar { name, .. } => name.to_string(),
                _ => continue,
            };
            let tensor = match &name[..] {
                "q" => self.laid_out(&numbers.q, [heads, queries, dim], self.inputs),
                "k" => self.laid_out(&numbers.k, [kv_heads, keys, dim], self.inputs),
                "v" => self.laid_out(&numbers.v, [kv_heads, keys, value_dim], self.inputs),
                "o" => {
                    let shape = self.shape(heads, queries, value_dim);
                    of_numbers(self.output, &shape, &vec![7.0; shape.iter().product()])
                }
                "log_sum_exp" => {
                    of_numbers(F32, &[batch, heads, queries], &vec![7.0; batch * heads * queries])
                }
                "cos" => self.angles(|(cos, _)| cos),
                "sin" => self.angles(|(_, sin)| sin),
                other => self.others.get(other).unwrap_or_else(|| panic!("no argument {other}")).clone(),
            };
            named.push((name, tensor));
        }
        named
    }

    /// The cosine and the sine of a pair at a position, as the tables have them: none outside of these.
    fn angle(&self, position: i64, pair: usize) -> (f32, f32) {
        let size = self.size("POSITIONS").expect("a size");
        if !(0..size).contains(&position) {
            return (0.0, 0.0);
        }
        let angle = position as f64 * 100f64.powf(-(pair as f64) / (self.sizes.dim / 2) as f64);
        (angle.cos() as f32, angle.sin() as f32)
    }

    /// A table of cosines or of sines.
    fn angles(&self, of: impl Fn((f32, f32)) -> f32) -> Tensor {
        let (positions, pairs) = (self.size("POSITIONS").expect("a size") as usize, self.sizes.dim / 2);
        let element = |at: usize| f64::from(of(self.angle((at / pairs) as i64, at % pairs)));
        of_numbers(F32, &[positions, pairs], &(0..positions * pairs).map(element).collect::<Vec<_>>())
    }

    /// The numbers with queries and keys turned by their positions, in f32, and rounded to their dtype.
    fn turned(&self, numbers: &Numbers) -> Numbers {
        let Sizes { queries, keys, dim, .. } = self.sizes;
        let turned = |elements: &[f64], rows: usize, shift: i64| {
            let Some(pairs) = self.rope else { return elements.to_vec() };
            let mut turned = elements.to_vec();
            for (row, (from, to)) in elements.chunks(dim).zip(turned.chunks_mut(dim)).enumerate() {
                for pair in 0..dim / 2 {
                    let (cos, sin) = self.angle((row % rows) as i64 + shift, pair);
                    let [one, other] = match pairs {
                        RopePairs::Halves => [pair, pair + dim / 2],
                        RopePairs::Interleaved => [2 * pair, 2 * pair + 1],
                    };
                    let (x, y) = (from[one] as f32, from[other] as f32);
                    to[one] = f64::from(x * cos - y * sin);
                    to[other] = f64::from(y * cos + x * sin);
                }
            }
            of_numbers(self.inputs, &[turned.len()], &turned).to_f64()
        };
        Numbers {
            q: turned(&numbers.q, queries, keys as i64 - queries as i64),
            k: turned(&numbers.k, keys, 0),
            v: numbers.v.clone(),
        }
    }

    /// Rows of heads in the order of the layout.
    fn laid_out(&self, numbers: &[f64], [heads, rows, dim]: [usize; 3], dtype: DType) -> Tensor {
        let mut elements = vec![0.0; numbers.len()];
        for (from, row) in numbers.chunks_exact(dim).enumerate() {
            let (batch, head, at) = (from / rows / heads, from / rows % heads, from % rows);
            elements[self.row_of([batch, head, at], heads, rows) * dim..][..dim].copy_from_slice(row);
        }
        of_numbers(dtype, &self.shape(heads, rows, dim), &elements)
    }

    fn compare(&self, title: &str, names: &[&str], found: &[Tensor], numbers: &Numbers) {
        let of = |name: &str| names.iter().position(|known| *known == name).map(|at| found[at].to_f64());
        let o = of("o").expect("an output");
        let log_sum_exp = of("log_sum_exp");
        let Sizes { batch, heads, kv_heads, queries, keys, dim, value_dim } = self.sizes;
        for at in 0..batch * heads * queries {
            let (sequence, head, query) = (at / queries / heads, at / queries % heads, at % queries);
            let first = (sequence * kv_heads + head / (heads / kv_heads)) * keys;
            let place = Place { batch: sequence, head, query, key: 0, queries, keys };
            let key = |key: usize| &numbers.k[(first + key) * dim..][..dim];
            let value = |key: usize| &numbers.v[(first + key) * value_dim..][..value_dim];
            let exact = row(&self.definition, place, &numbers.q[at * dim..][..dim], &key, &value);
            let from = self.row_of([sequence, head, query], heads, queries) * value_dim;
            for (column, &is) in o[from..][..value_dim].iter().enumerate() {
                let should = exact.values.get(column).copied().unwrap_or(0.0);
                let bound = if exact.values.is_empty() {
                    0.0
                } else {
                    allowed(&exact, column, self.inputs, self.output)
                };
                let place = [sequence, head, query, column];
                assert!((is - should).abs() <= bound, "{title}: {is} at {place:?}, not {should} +- {bound}");
            }
            if let Some(found) = &log_sum_exp {
                let (is, should) = (found[at], exact.log_sum_exp);
                let bound = 2f64.powi(-20) * (1.0 + should.abs()) + exact.exponent_error;
                let is_close = is == should || (is - should).abs() <= bound;
                assert!(is_close, "{title}: log-sum-exp {is} at {at}, not {should} +- {bound}");
            }
        }
    }
}

/// What the launch of an executable leaves in its tensors, where `open` sizes are given; in check mode, which
/// finds nothing, with a seed.
pub fn executed(
    title: &str,
    executable: &Executable,
    tensors: &[(String, Tensor)],
    open: &[(&str, i64)],
    seed: Option<u64>,
) -> Vec<Tensor> {
    let device = Device::simulator(executable.target());
    let buffers: Vec<Buffer> =
        tensors.iter().map(|(_, tensor)| device.upload_tensor(tensor).expect("fits")).collect();
    let mut launch = device.launch(executable);
    for ((_, tensor), buffer) in tensors.iter().zip(&buffers) {
        launch = match (tensor.shape(), tensor.dtype()) {
            ([], F32) => launch.scalar(tensor.to_f64()[0] as f32),
            _ => launch.buffer(buffer),
        };
    }
    let launch = open.iter().fold(launch, |launch, &(name, size)| launch.set(name, size));
    match seed {
        None => drop(launch.run().unwrap_or_else(|e| panic!("{title}: {e}"))),
        Some(seed) => {
            let report = launch.check(&CheckOptions { seed }).unwrap_or_else(|e| panic!("{title}: {e}"));
            assert!(report.findings.is_empty(), "{title}: {}", report.findings[0]);
        }
    }
    let read = |((_, tensor), buffer): (&(String, Tensor), &Buffer)| {
        let bytes = buffer.read_bytes().expect("readable");
        Tensor::from_bytes(tensor.shape(), tensor.dtype(), &bytes).expect("whole")
    };
    tensors.iter().zip(&buffers).map(read).collect()
}
