//! The backward pass of sequences that lie one after the other: the gradients of each are those of its
//! definition, and nothing outside of them is read or written.

use groundswell::compile::{Parameter, Verify, compile_uncached};
use groundswell::kernels::{Attention, BackwardKernel};
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::definition::{Definition, Place, Sizes};
use super::gradients::{Bounded, Differentiable, Dtypes, Gradients, gradients};
use super::packed::{BATCHES, offsets, open_sizes};
use super::trial::{Numbers, executed, random};

const DIM: usize = 64;

/// A sequence: its numbers, the gradient of its output, and what should come of them.
struct OneSequence {
    numbers: Numbers,
    of_o: Vec<f64>,
    exact: Gradients,
}

/// Where the sequences lie in tensors of queries and in those of keys, and the heads of each.
struct Sides {
    ends: [Vec<f64>; 2],
    totals: [usize; 2],
    heads: [usize; 2],
}

impl Sides {
    /// Rows of all tokens from those of each sequence, which have heads before tokens; what is outside is
    /// `outside`.
    fn joined(&self, side: usize, dim: usize, of: &[Vec<f64>], outside: f64) -> Vec<f64> {
        let (heads, total) = (self.heads[side], self.totals[side]);
        let mut all = vec![outside; total * heads * dim];
        for (sequence, numbers) in of.iter().enumerate() {
            let (first, count) = self.rows(side, sequence);
            for (at, row) in numbers.chunks_exact(dim).enumerate() {
                let token = first + at % count;
                all[(token * heads + at / count) * dim..][..dim].copy_from_slice(row);
            }
        }
        all
    }

    /// The first row of a sequence, and how many it has.
    fn rows(&self, side: usize, sequence: usize) -> (usize, usize) {
        let ends = &self.ends[side];
        (ends[sequence] as usize, (ends[sequence + 1] - ends[sequence]) as usize)
    }

    /// A gradient against what it should be: outside it is as it was before.
    fn compare(&self, title: &str, side: usize, found: &[f64], should: &[&Bounded]) {
        let part = |of: &dyn Fn(&Bounded) -> Vec<f64>| should.iter().map(|one| of(one)).collect::<Vec<_>>();
        let exact = self.joined(side, DIM, &part(&|one| one.exact.clone()), 7.0);
        let bounds = self.joined(side, DIM, &part(&|one| one.bound.clone()), 0.0);
        for (at, ((is, should), bound)) in found.iter().zip(exact).zip(bounds).enumerate() {
            assert!((is - should).abs() <= bound, "{title} {at}: {is}, not {should} +- {bound}");
        }
    }
}

fn holds(attention: &Attention, meaning: &Differentiable, heads: [usize; 2], number: usize) {
    let lengths = BATCHES[number];
    let target = [Target::GFX942, Target::GFX950, Target::GFX90A][number % 3];
    let ((cu_q, total_q), (cu_k, total_k)) = (offsets(lengths, 0), offsets(lengths, 1));
    let sides = Sides { ends: [cu_q.clone(), cu_k.clone()], totals: [total_q, total_k], heads };
    let mut rng = StdRng::seed_from_u64(number as u64);
    let mut numbers =
        |rows: usize, heads: usize, range: f64| random(Bf16, rows * heads * DIM, range, &mut rng);
    let dtypes = Dtypes { inputs: Bf16, output: Bf16, gradients: Bf16 };
    let mut all: Vec<OneSequence> = Vec::new();
    for &[queries, keys] in lengths {
        let sizes =
            Sizes { batch: 1, heads: heads[0], kv_heads: heads[1], queries, keys, dim: DIM, value_dim: DIM };
        let of_o = numbers(queries, heads[0], 1.0);
        let own = Numbers {
            q: numbers(queries, heads[0], 2.0),
            k: numbers(keys, heads[1], 2.0),
            v: numbers(keys, heads[1], 1.0),
        };
        let exact = gradients(meaning, sizes, dtypes, &own, &of_o);
        all.push(OneSequence { numbers: own, of_o, exact });
    }
    let open = open_sizes(lengths, [total_q, total_k]);
    let backward = attention.backward().chosen_for(target);
    let mut terms: Option<[Tensor; 2]> = None;
    for kernel in backward.kernels(target) {
        let title = format!("packed {kernel:?} {lengths:?} on {target}");
        let traced = backward.kernel(kernel).unwrap_or_else(|fault| panic!("{title}: {fault}"));
        let options = backward.options(kernel, target);
        let is_known = |name: &str| lengths.len() == 2 && name != "M";
        let dynamic = |options: Options, name| options.dynamic(name);
        let options = open.iter().fold(options, |options, &(name, size)| match is_known(name) {
            true => options.set(name, size),
            false => dynamic(options, name),
        });
        let executable = compile_uncached(&traced, &options, Verify::Off)
            .unwrap_or_else(|fault| panic!("{title}: {fault}\n{traced}"));
        let joined = |side: usize, of: &dyn Fn(&OneSequence) -> Vec<f64>| {
            let parts: Vec<Vec<f64>> = all.iter().map(of).collect();
            let numbers = sides.joined(side, DIM, &parts, f64::NAN);
            of_numbers(Bf16, &[sides.totals[side], heads[side], DIM], &numbers)
        };
        let empty = |side: usize| {
            let shape = [sides.totals[side], heads[side], DIM];
            of_numbers(Bf16, &shape, &vec![7.0; shape.iter().product()])
        };
        let of_rows = [heads[0], total_q];
        let mut tensors = Vec::new();
        for parameter in executable.parameters() {
            let Parameter::Buffer { name, .. } = parameter else { continue };
            let tensor = match (&name[..], &terms) {
                ("q", _) => joined(0, &|one| one.numbers.q.clone()),
                ("k", _) => joined(1, &|one| one.numbers.k.clone()),
                ("v", _) => joined(1, &|one| one.numbers.v.clone()),
                ("do", _) => joined(0, &|one| one.of_o.clone()),
                ("o", _) => joined(0, &|one| one.exact.o.clone()),
                ("log_sum_exp", _) => {
                    let parts: Vec<Vec<f64>> = all.iter().map(|one| one.exact.log_sum_exp.clone()).collect();
                    let by_token = sides.joined(0, 1, &parts, f64::NAN);
                    let at = |at: usize| by_token[at % total_q * heads[0] + at / total_q];
                    of_numbers(F32, &of_rows, &(0..by_token.len()).map(at).collect::<Vec<_>>())
                }
                ("minus_log_sum_exp", Some([sums, _])) => sums.clone(),
                ("minus_delta", Some([_, deltas])) => deltas.clone(),
                ("minus_log_sum_exp" | "minus_delta", None) => {
                    of_numbers(F32, &of_rows, &vec![7.0; of_rows.iter().product()])
                }
                ("dq", _) => empty(0),
                ("dk" | "dv", _) => empty(1),
                ("cu_seqlens_q", _) => of_numbers(I32, &[cu_q.len()], &cu_q),
                ("cu_seqlens_k", _) => of_numbers(I32, &[cu_k.len()], &cu_k),
                (other, _) => panic!("no argument {other}"),
            };
            tensors.push((name.to_string(), tensor));
        }
        let values: Vec<Tensor> = tensors.iter().map(|(_, tensor)| tensor.clone()).collect();
        let value = |symbol: Symbol| {
            let size = open.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
            size.or_else(|| options.value(symbol))
        };
        let meant = Interpreter::run(&traced, &value, &values)
            .unwrap_or_else(|fault| panic!("{title}: {fault}\n{traced}"));
        let is_left = |name: &str| {
            let is_it =
                |p: &Parameter| matches!(p, Parameter::Symbol { symbol, .. } if symbol.name() == name);
            executable.parameters().iter().any(is_it)
        };
        let left: Vec<(&str, i64)> = open.into_iter().filter(|size| is_left(size.0)).collect();
        let seed = number.is_multiple_of(4).then_some(number as u64);
        let found = executed(&title, &executable, &tensors, &left, seed);
        for (how, results) in [("interpreted", &meant), ("executed", &found)] {
            for ((name, _), result) in tensors.iter().zip(results) {
                let of = |side: usize, of: &dyn Fn(&Gradients) -> &Bounded| {
                    let should: Vec<&Bounded> = all.iter().map(|one| of(&one.exact)).collect();
                    sides.compare(&format!("{title}, {how}: {name}"), side, &result.to_f64(), &should);
                };
                match &name[..] {
                    "dq" => of(0, &|own| &own.dq),
                    "dk" => of(1, &|own| &own.dk),
                    "dv" => of(1, &|own| &own.dv),
                    _ => {}
                }
            }
        }
        if kernel == BackwardKernel::Rows {
            terms = Some([3, 4].map(|at| found[at].clone()));
        }
    }
}

#[test]
fn gradients_of_packed_sequences_are_those_of_their_definition() {
    for number in 0..BATCHES.len() {
        let heads = [[2, 1], [2, 2]][number % 2];
        let attention = Attention::new(2, DIM as u32).kv_heads(heads[1] as u32).packed();
        let plain = Definition::plain(DIM);
        let (attention, definition) = match number / 2 % 3 {
            0 => (attention, plain),
            1 => {
                let sees = |at: Place| at.beyond() <= 0;
                (attention.causal(), Definition { sees: Box::new(sees), ..plain })
            }
            _ => {
                let sees = |at: Place| (-9..=2).contains(&at.beyond());
                (attention.window(9, 2), Definition { sees: Box::new(sees), ..plain })
            }
        };
        holds(&attention, &Differentiable::shifted(definition), heads, number);
    }
}
