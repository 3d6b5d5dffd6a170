//! Sequences that lie one after the other: each is its definition, and nothing outside of them is read or
//! written.

use std::collections::BTreeMap;

use groundswell::compile::{Parameter, Verify, compile_uncached};
use groundswell::kernels::{Attention, AttentionTile, BiasShape};
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::definition::{Definition, Place, allowed, row};
use super::trial::{executed, random};

const DIM: usize = 64;

/// Lengths of queries and keys: ragged, single, none of one or of both, longer than a tile.
pub const BATCHES: [&[[usize; 2]]; 20] = [
    &[[1, 1]],
    &[[5, 7], [7, 5]],
    &[[0, 0], [3, 3], [0, 0]],
    &[[64, 64], [1, 100], [100, 1]],
    &[[0, 5], [5, 0], [2, 2]],
    &[[130, 70]],
    &[[33, 65], [65, 33]],
    &[[1, 200], [1, 3], [1, 77]],
    &[[4, 4], [0, 9], [0, 9], [8, 1]],
    &[[128, 128], [128, 128]],
    &[[17, 0]],
    &[[2, 63], [2, 64], [2, 65]],
    &[[63, 2], [64, 2], [65, 2]],
    &[[31, 129]],
    &[[9, 9], [90, 90]],
    &[[1, 1], [1, 1], [1, 1], [1, 1]],
    &[[70, 140], [0, 0]],
    &[[12, 34], [56, 78]],
    &[[0, 1], [1, 0]],
    &[[100, 100], [3, 190]],
];

/// Tokens before the first sequence and behind the last one.
const OUTSIDE: [usize; 2] = [3, 2];

struct Packed {
    attention: Attention,
    heads: [usize; 2],
    definition: Definition,
    others: BTreeMap<&'static str, Tensor>,
}

/// Where sequences begin, and the number of all tokens.
pub fn offsets(lengths: &[[usize; 2]], of: usize) -> (Vec<f64>, usize) {
    let mut ends = vec![OUTSIDE[0] as f64];
    for length in lengths {
        ends.push(ends[ends.len() - 1] + length[of] as f64);
    }
    let all = ends[ends.len() - 1] as usize + OUTSIDE[1];
    (ends, all)
}

/// The sizes of packed sequences, with so many queries and keys in all.
pub fn open_sizes(lengths: &[[usize; 2]], [queries, keys]: [usize; 2]) -> [(&'static str, i64); 6] {
    let longest = |of: usize| lengths.iter().map(|length| length[of]).max().unwrap_or(0).max(1);
    let sizes = [
        ("B", lengths.len()),
        ("M", longest(0)),
        ("N", longest(1)),
        ("ENDS", lengths.len() + 1),
        ("TOTAL_M", queries),
        ("TOTAL_N", keys),
    ];
    sizes.map(|(name, size)| (name, size as i64))
}

impl Packed {
    fn holds(&self, title: &str, lengths: &[[usize; 2]], target: Target, seed: Option<u64>) {
        let title = format!("{title} {lengths:?} on {target}");
        let attention = self.attention.clone().tile(AttentionTile::new(64, 32, 32));
        let attention = attention.matrix(MatrixShape::M32x32).chosen_for(target);
        let kernel = attention.kernel().unwrap_or_else(|fault| panic!("{title}: {fault}"));
        let [heads, kv_heads] = self.heads;
        let ((cu_q, total_q), (cu_k, total_k)) = (offsets(lengths, 0), offsets(lengths, 1));
        let open = open_sizes(lengths, [total_q, total_k]);
        let is_known = |name: &str| lengths.len() == 2 && name != "M";
        let options = open.iter().fold(attention.options(target), |options, &(name, size)| {
            if is_known(name) { options.set(name, size) } else { options.dynamic(name) }
        });
        let executable = compile_uncached(&kernel, &options, Verify::Off)
            .unwrap_or_else(|fault| panic!("{title}: {fault}\n{kernel}"));
        // What is outside of sequences would make everything NaN that it gets into.
        let mut rng = StdRng::seed_from_u64(title.len() as u64);
        let mut rows = |all: usize, heads: usize, cu: &[f64]| {
            let mut numbers = random(Bf16, all * heads * DIM, 2.0, &mut rng);
            let inside = cu[0] as usize * heads * DIM..cu[cu.len() - 1] as usize * heads * DIM;
            numbers
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| !inside.contains(at))
                .for_each(|(_, x)| *x = f64::NAN);
            numbers
        };
        let (q, k) = (rows(total_q, heads, &cu_q), rows(total_k, kv_heads, &cu_k));
        let v = rows(total_k, kv_heads, &cu_k);
        let mut tensors = Vec::new();
        for parameter in executable.parameters() {
            let (Parameter::Buffer { name, .. } | Parameter::Scalar { name, .. }) = parameter else {
                continue;
            };
            let tensor = match &name[..] {
                "q" => of_numbers(Bf16, &[total_q, heads, DIM], &q),
                "k" => of_numbers(Bf16, &[total_k, kv_heads, DIM], &k),
                "v" => of_numbers(Bf16, &[total_k, kv_heads, DIM], &v),
                "o" => of_numbers(Bf16, &[total_q, heads, DIM], &vec![7.0; total_q * heads * DIM]),
                "log_sum_exp" => of_numbers(F32, &[heads, total_q], &vec![7.0; heads * total_q]),
                "cu_seqlens_q" => of_numbers(I32, &[cu_q.len()], &cu_q),
                "cu_seqlens_k" => of_numbers(I32, &[cu_k.len()], &cu_k),
                other => self.others[other].clone(),
            };
            tensors.push((name.to_string(), tensor));
        }
        let values: Vec<Tensor> = tensors.iter().map(|(_, tensor)| tensor.clone()).collect();
        let value = |symbol: Symbol| {
            let size = open.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
            size.or_else(|| attention.options(target).value(symbol))
        };
        let meant =
            Interpreter::run(&kernel, &value, &values).unwrap_or_else(|e| panic!("{title}: {e}\n{kernel}"));
        let left: Vec<(&str, i64)> = open.into_iter().filter(|size| !is_known(size.0)).collect();
        let found = executed(&title, &executable, &tensors, &left, seed);
        for (how, results) in [("interpreted", meant), ("executed", found)] {
            let of = |name: &str| {
                let at = tensors.iter().position(|tensor| tensor.0 == name).expect("a result");
                results[at].to_f64()
            };
            self.compare(
                &format!("{title} {how}"),
                [&q, &k, &v],
                [&cu_q, &cu_k],
                [&of("o"), &of("log_sum_exp")],
            );
        }
    }

    fn compare(&self, title: &str, [q, k, v]: [&[f64]; 3], [cu_q, cu_k]: [&[f64]; 2], [o, lse]: [&[f64]; 2]) {
        let [heads, kv_heads] = self.heads;
        let total = o.len() / heads / DIM;
        for at in 0..total * heads {
            let (token, head) = (at / heads, at % heads);
            let is = &o[at * DIM..][..DIM];
            let sequence = cu_q.windows(2).position(|ends| (ends[0]..ends[1]).contains(&(token as f64)));
            let Some(sequence) = sequence else {
                assert!(is.iter().all(|&x| x == 7.0) && lse[head * total + token] == 7.0, "{title}: {token}");
                continue;
            };
            let [first, keys] = [cu_k[sequence] as usize, (cu_k[sequence + 1] - cu_k[sequence]) as usize];
            let query = token - cu_q[sequence] as usize;
            let queries = (cu_q[sequence + 1] - cu_q[sequence]) as usize;
            let place = Place { batch: sequence, head, query, key: 0, queries, keys };
            let of = |tensor| {
                let tensor: &[f64] = tensor;
                move |key: usize| {
                    &tensor[((first + key) * kv_heads + head / (heads / kv_heads)) * DIM..][..DIM]
                }
            };
            let exact = row(&self.definition, place, &q[at * DIM..][..DIM], &of(k), &of(v));
            for (column, &is) in is.iter().enumerate() {
                let should = exact.values.get(column).copied().unwrap_or(0.0);
                let bound = if exact.values.is_empty() { 0.0 } else { allowed(&exact, column, Bf16, Bf16) };
                assert!(
                    (is - should).abs() <= bound,
                    "{title}: {is} at {place:?} {column}, not {should} +- {bound}"
                );
            }
            let (is, should) = (lse[head * total + token], exact.log_sum_exp);
            let bound = 2f64.powi(-20) * (1.0 + should.abs()) + exact.exponent_error;
            assert!(
                is == should || (is - should).abs() <= bound,
                "{title}: log-sum-exp {is} at {place:?}, not {should}"
            );
        }
    }
}

#[test]
fn packed_sequences_are_their_definition() {
    for (number, lengths) in BATCHES.into_iter().enumerate() {
        let heads = [[2, 1], [2, 2]][number % 2];
        let attention = Attention::new(2, DIM as u32).kv_heads(heads[1] as u32).packed().log_sum_exp();
        let packed = Packed { attention, heads, definition: Definition::plain(DIM), others: BTreeMap::new() };
        let target = [Target::GFX942, Target::GFX950, Target::GFX90A][number % 3];
        packed.holds("packed", lengths, target, (number % 4 == 0).then_some(number as u64));
    }
}

#[test]
fn packed_sequences_have_masks_along_their_own_diagonals() {
    for (number, lengths) in BATCHES.into_iter().enumerate() {
        let attention = Attention::new(2, DIM as u32).packed().log_sum_exp();
        let slopes = [0.25, 0.5];
        let bias: Vec<f64> = (0..200 * 200).map(|at| (at % 7) as f64 / 4.0).collect();
        let mut others = BTreeMap::new();
        others.insert("slopes", of_numbers(F32, &[2], &slopes));
        let [queries, keys] =
            [0, 1].map(|of| lengths.iter().map(|length| length[of]).max().unwrap_or(0).max(1));
        others.insert("bias", of_numbers(Bf16, &[queries, keys], &bias[..queries * keys]));
        let plain = Definition::plain(DIM);
        let (attention, definition) = match number % 3 {
            0 => {
                let sees = |at: Place| at.beyond() <= 0;
                (attention.causal(), Definition { sees: Box::new(sees), ..plain })
            }
            1 => {
                let sees = |at: Place| (-9..=2).contains(&at.beyond());
                (attention.window(9, 2), Definition { sees: Box::new(sees), ..plain })
            }
            _ => {
                let score = move |at: Place, score: f64| {
                    score - slopes[at.head] * at.beyond().abs() as f64 + bias[at.query * keys + at.key]
                };
                let attention = attention.alibi().bias(BiasShape::One);
                (attention, Definition { score: Box::new(score), ..plain })
            }
        };
        let packed = Packed { attention, heads: [2, 2], definition, others };
        packed.holds("masked", lengths, Target::GFX942, (number % 5 == 0).then_some(number as u64));
    }
}
