//! The kernels of a backward pass on numbers: interpreted, executed, and compared with the definition.

use std::collections::BTreeMap;

use groundswell::compile::{Parameter, Verify, compile_uncached};
use groundswell::kernels::{Attention, AttentionBackward, AttentionLayout, BackwardKernel, BiasShape};
use groundswell::options::DebugInfo;
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::judged::assert_right;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::definition::Sizes;
use super::gradients::{Bounded, Differentiable, Dtypes, Gradients, gradients};
use super::trial::{Numbers, executed, random};

/// A backward pass, its sizes, and what it means.
pub struct BackwardTrial {
    pub title: String,
    pub attention: Attention,
    pub sizes: Sizes,
    pub dtypes: Dtypes,
    pub layout: AttentionLayout,
    pub open: Vec<&'static str>,
    pub meaning: Differentiable,
    /// What kernels have beside the tensors of attention.
    pub others: BTreeMap<&'static str, Tensor>,
    /// The shape of the bias, if there is one, whose function of scores comes after all with a slope.
    pub bias: Option<BiasShape>,
    /// Those that are tried, unless it is those that suit the chip.
    pub kernels: Option<Vec<BackwardKernel>>,
}

impl BackwardTrial {
    /// bf16 with heads before tokens, all sizes known.
    pub fn new(title: &str, attention: Attention, sizes: Sizes, meaning: Differentiable) -> BackwardTrial {
        BackwardTrial {
            title: format!("{title} {sizes:?}"),
            attention,
            sizes,
            dtypes: Dtypes { inputs: Bf16, output: Bf16, gradients: Bf16 },
            layout: AttentionLayout::Bhsd,
            open: Vec::new(),
            meaning,
            others: BTreeMap::new(),
            bias: None,
            kernels: None,
        }
    }

    fn size(&self, name: &str) -> Option<i64> {
        self.sizes.of(name).map(|size| size as i64)
    }

    fn backward(&self, target: Target) -> AttentionBackward {
        self.attention.backward().chosen_for(target).output(self.dtypes.gradients)
    }

    fn options(&self, backward: &AttentionBackward, kernel: BackwardKernel, target: Target) -> Options {
        let options = backward.options(kernel, target).debug_info(DebugInfo::None);
        ["B", "M", "N"].into_iter().fold(options, |options, name| match self.open.contains(&name) {
            true => options.dynamic(name),
            false => options.set(name, self.size(name).expect("a size")),
        })
    }

    /// All kernels, interpreted and executed on a chip, give what the definition says.
    pub fn holds_on(&self, target: Target) {
        let Sizes { batch, heads, kv_heads, queries, keys, dim, value_dim } = self.sizes;
        let mut rng = StdRng::seed_from_u64(self.title.len() as u64);
        let inputs = self.dtypes.inputs;
        let mut numbers = |count: usize, range: f64| random(inputs, count, range, &mut rng);
        let of_o = numbers(batch * heads * queries * value_dim, 1.0);
        let numbers = Numbers {
            q: numbers(batch * heads * queries * dim, 2.0),
            k: numbers(batch * kv_heads * keys * dim, 2.0),
            v: numbers(batch * kv_heads * keys * value_dim, 1.0),
        };
        let exact = gradients(&self.meaning, self.sizes, self.dtypes, &numbers, &of_o);
        let backward = self.backward(target);
        let mut terms = None;
        let kernels = self.kernels.clone().unwrap_or_else(|| backward.kernels(target));
        for kernel in kernels {
            let title =
                format!("{} {kernel:?} {:?} open {:?} on {target}", self.title, self.dtypes, self.open);
            let traced = backward.kernel(kernel).unwrap_or_else(|fault| panic!("{title}: {fault}"));
            let options = self.options(&backward, kernel, target);
            let executable = compile_uncached(&traced, &options, Verify::Off)
                .unwrap_or_else(|fault| panic!("{title}: {fault}\n{traced}"));
            let tensors = self.tensors(&executable, &numbers, &of_o, &exact, terms.as_ref());
            let values: Vec<Tensor> = tensors.iter().map(|(_, tensor)| tensor.clone()).collect();
            let value = |symbol: Symbol| self.size(symbol.name()).or_else(|| options.value(symbol));
            let meant = Interpreter::run(&traced, &value, &values)
                .unwrap_or_else(|fault| panic!("{title}: {fault}\n{traced}"));
            let open = self.open.iter().filter(|name| {
                let is_it =
                    |p: &Parameter| matches!(p, Parameter::Symbol { symbol, .. } if symbol.name() == **name);
                executable.parameters().iter().any(is_it)
            });
            let open: Vec<(&str, i64)> = open.map(|&name| (name, self.size(name).expect("a size"))).collect();
            let found = executed(&title, &executable, &tensors, &open, None);
            for (how, results) in [("interpreted", &meant), ("executed", &found)] {
                for ((name, _), result) in tensors.iter().zip(results) {
                    self.compare(&format!("{title}, {how}: {name}"), name, result, &exact);
                }
            }
            if kernel == BackwardKernel::Rows {
                terms = Some([3, 4].map(|at| found[at].clone()));
            }
        }
    }

    /// Check mode finds nothing in five orders of execution, and gives what the interpreter gives.
    pub fn is_clean_on(&self, target: Target) {
        let backward = self.backward(target);
        let kernels = self.kernels.clone().unwrap_or_else(|| backward.kernels(target));
        for kernel in kernels {
            let title = format!("{} {kernel:?}", self.title);
            let traced = backward.kernel(kernel).unwrap_or_else(|fault| panic!("{title}: {fault}"));
            let options = self.options(&backward, kernel, target);
            let executable = traced.compile(&options).unwrap_or_else(|fault| panic!("{title}: {fault}"));
            let value = |symbol: Symbol| self.size(symbol.name()).or_else(|| options.value(symbol));
            (0..5).for_each(|seed| assert_right(&traced, &executable, &value, seed, &title));
        }
    }

    /// The arguments in the kernel's order, with results that are something else.
    fn tensors(
        &self,
        executable: &Executable,
        numbers: &Numbers,
        of_o: &[f64],
        exact: &Gradients,
        terms: Option<&[Tensor; 2]>,
    ) -> Vec<(String, Tensor)> {
        let Sizes { batch, heads, kv_heads, queries, keys, dim, value_dim } = self.sizes;
        let Dtypes { inputs, output, gradients } = self.dtypes;
        let [of_queries, of_values] = [[heads, queries, dim], [heads, queries, value_dim]];
        let [of_keys, of_shared] = [[kv_heads, keys, dim], [kv_heads, keys, value_dim]];
        let empty = |[heads, rows, dim]: [usize; 3]| vec![7.0; batch * heads * rows * dim];
        let rows = [batch, heads, queries];
        let mut named = Vec::new();
        for parameter in executable.parameters() {
            let name = match parameter {
                Parameter::Buffer { name, .. } | Parameter::Scalar { name, .. } => name.to_string(),
                _ => continue,
            };
            let tensor = match (&name[..], terms) {
                ("q", _) => self.laid_out(&numbers.q, of_queries, inputs),
                ("k", _) => self.laid_out(&numbers.k, of_keys, inputs),
                ("v", _) => self.laid_out(&numbers.v, of_shared, inputs),
                ("do", _) => self.laid_out(of_o, of_values, inputs),
                ("o", _) => self.laid_out(&exact.o, of_values, output),
                ("dq", _) => self.laid_out(&empty(of_queries), of_queries, gradients),
                ("dk", _) => self.laid_out(&empty(of_keys), of_keys, gradients),
                ("dv", _) => self.laid_out(&empty(of_shared), of_shared, gradients),
                ("log_sum_exp", _) => of_numbers(F32, &rows, &exact.log_sum_exp),
                ("minus_log_sum_exp", Some([sums, _])) => sums.clone(),
                ("minus_delta", Some([_, deltas])) => deltas.clone(),
                ("minus_log_sum_exp" | "minus_delta", None) => {
                    of_numbers(F32, &rows, &vec![7.0; rows.iter().product()])
                }
                ("dbias", _) => {
                    let shape = self.shape_of_bias();
                    of_numbers(gradients, &shape, &vec![7.0; shape.iter().product()])
                }
                ("dsinks", _) => of_numbers(F32, &[heads], &vec![7.0; heads]),
                (other, _) => self.others.get(other).unwrap_or_else(|| panic!("no argument {other}")).clone(),
            };
            named.push((name, tensor));
        }
        named
    }

    /// The row of a tensor in memory that has the row of this number of those with heads before tokens.
    fn row_of(&self, at: usize, heads: usize, rows: usize) -> usize {
        let (batch, head, row) = (at / rows / heads, at / rows % heads, at % rows);
        match self.layout {
            AttentionLayout::Bhsd => at,
            _ => (batch * rows + row) * heads + head,
        }
    }

    /// Rows of heads in the order of the layout.
    fn laid_out(&self, numbers: &[f64], [heads, rows, dim]: [usize; 3], dtype: DType) -> Tensor {
        let batch = self.sizes.batch;
        let shape = match self.layout {
            AttentionLayout::Bhsd => [batch, heads, rows, dim],
            _ => [batch, rows, heads, dim],
        };
        let mut elements = vec![0.0; numbers.len()];
        for (at, row) in numbers.chunks_exact(dim).enumerate() {
            elements[self.row_of(at, heads, rows) * dim..][..dim].copy_from_slice(row);
        }
        of_numbers(dtype, &shape, &elements)
    }

    fn shape_of_bias(&self) -> Vec<usize> {
        let Sizes { batch, heads, queries, keys, .. } = self.sizes;
        match self.bias {
            None | Some(BiasShape::Own) => vec![batch, heads, queries, keys],
            Some(BiasShape::OfHeads) => vec![heads, queries, keys],
            Some(BiasShape::OfSequences) => vec![batch, queries, keys],
            Some(BiasShape::One) => vec![queries, keys],
        }
    }

    /// The gradient of the bias: the sum of those of the scores that have an element of it.
    fn of_bias(&self, scores: &Bounded) -> Bounded {
        let Sizes { heads, queries, keys, .. } = self.sizes;
        let count = self.shape_of_bias().iter().product();
        let mut all = Bounded { exact: vec![0.0; count], bound: vec![0.0; count] };
        for (at, (exact, bound)) in scores.exact.iter().zip(&scores.bound).enumerate() {
            let (outer, inner) = (at / (queries * keys), at % (queries * keys));
            let outer = match self.bias {
                None | Some(BiasShape::Own) => outer,
                Some(BiasShape::OfHeads) => outer % heads,
                Some(BiasShape::OfSequences) => outer / heads,
                Some(BiasShape::One) => 0,
            };
            all.exact[outer * queries * keys + inner] += exact;
            all.bound[outer * queries * keys + inner] += bound;
        }
        all.stored(self.dtypes.gradients)
    }

    /// A result against what it should be.
    fn compare(&self, title: &str, name: &str, found: &Tensor, exact: &Gradients) {
        let Sizes { heads, kv_heads, queries, keys, dim, value_dim, .. } = self.sizes;
        let of_bias = if name == "dbias" { Some(self.of_bias(&exact.scores)) } else { None };
        let (should, [heads, rows, dim]): (&Bounded, _) = match name {
            "dbias" => (of_bias.as_ref().expect("it has just been made"), [1, 1, 1]),
            "dq" => (&exact.dq, [heads, queries, dim]),
            "dk" => (&exact.dk, [kv_heads, keys, dim]),
            "dv" => (&exact.dv, [kv_heads, keys, value_dim]),
            "minus_delta" => (&exact.minus_delta, [heads, queries, 1]),
            "dsinks" => (&exact.dsinks, [1, heads, 1]),
            _ => return,
        };
        let is_of_heads = matches!(name, "dq" | "dk" | "dv");
        let found = found.to_f64();
        for (at, (should, bound)) in should.exact.iter().zip(&should.bound).enumerate() {
            let row = if is_of_heads { self.row_of(at / dim, heads, rows) } else { at / dim };
            let is = found[row * dim + at % dim];
            assert!((is - should).abs() <= *bound, "{title} {at}: {is}, not {should} +- {bound}");
        }
    }
}
