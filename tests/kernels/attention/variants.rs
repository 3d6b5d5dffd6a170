//! Windows, biases, ALiBi, soft caps, sinks, scores and masks of the author's, and all of them together.

use groundswell::kernels::{Attention, BiasShape, Diagonal};
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;

use super::definition::{Definition, Sizes};
use super::forward::{LENGTHS, causal, open};
use super::trial::{Trial, random};
use rand::SeedableRng;
use rand::rngs::StdRng;

fn sizes([queries, keys]: [usize; 2]) -> Sizes {
    Sizes { batch: 2, heads: 2, kv_heads: 1, queries, keys, dim: 64, value_dim: 64 }
}

fn base() -> Attention {
    Attention::new(2, 64).kv_heads(1).log_sum_exp()
}

/// Each length with a trial by its number, checked on three of them.
fn each(title: &str, of: impl Fn(usize, Sizes) -> (Attention, Definition, Vec<(&'static str, Tensor)>)) {
    for (number, lengths) in LENGTHS.into_iter().enumerate() {
        let (attention, definition, others) = of(number, sizes(lengths));
        let trial = Trial::new(title, attention, sizes(lengths), definition);
        let trial = Trial { open: open(number), others: others.into_iter().collect(), ..trial };
        trial.holds_on(if number % 4 == 1 { Target::GFX950 } else { Target::GFX942 });
        if number % 8 == 5 {
            trial.is_clean_on(Target::GFX942);
        }
    }
}

#[test]
fn windows_are_seen_and_nothing_else() {
    each("window", |number, _| {
        let [left, right] = [[0, 0], [5, 0], [0, 3], [20, 10], [200, 200], [63, 1]][number % 6];
        let diagonal = [Diagonal::BottomRight, Diagonal::TopLeft][number % 2];
        let sees = move |at: super::definition::Place| {
            let beyond = match diagonal {
                Diagonal::BottomRight => at.beyond(),
                Diagonal::TopLeft => at.key as i64 - at.query as i64,
            };
            (-left..=right).contains(&beyond)
        };
        let definition = Definition { sees: Box::new(sees), ..Definition::plain(64) };
        (base().window_along(diagonal, left, right), definition, Vec::new())
    });
}

#[test]
fn biases_of_every_shape_are_added() {
    each("bias", |number, sizes| {
        let Sizes { batch, heads, queries, keys, .. } = sizes;
        let shape = [BiasShape::Own, BiasShape::OfHeads, BiasShape::OfSequences, BiasShape::One][number % 4];
        let dims = match shape {
            BiasShape::Own => vec![batch, heads, queries, keys],
            BiasShape::OfHeads => vec![heads, queries, keys],
            BiasShape::OfSequences => vec![batch, queries, keys],
            BiasShape::One => vec![queries, keys],
        };
        let mut rng = StdRng::seed_from_u64(number as u64);
        let numbers = random(Bf16, dims.iter().product(), 4.0, &mut rng);
        let bias = of_numbers(Bf16, &dims, &numbers);
        let score = move |at: super::definition::Place, score: f64| {
            let outer = match shape {
                BiasShape::Own => at.batch * heads + at.head,
                BiasShape::OfHeads => at.head,
                BiasShape::OfSequences => at.batch,
                BiasShape::One => 0,
            };
            score + numbers[(outer * queries + at.query) * keys + at.key]
        };
        let definition = Definition { score: Box::new(score), ..Definition::plain(64) };
        (base().bias(shape), definition, vec![("bias", bias)])
    });
}

#[test]
fn slopes_caps_and_sinks() {
    each("alibi, cap and sinks", |number, _| {
        let slopes = [0.5, 0.03125];
        let sinks = [[1.5, -3.0], [f64::NEG_INFINITY, 20.0]][number % 2];
        let others =
            vec![("slopes", of_numbers(F32, &[2], &slopes)), ("sinks", of_numbers(F32, &[2], &sinks))];
        let (attention, score): (_, Box<dyn Fn(super::definition::Place, f64) -> f64>) = match number % 3 {
            0 => (base().alibi(), Box::new(move |at, s| s - slopes[at.head] * at.beyond().abs() as f64)),
            1 => (base().soft_cap(2.0), Box::new(|_, s| 2.0 * (s / 2.0).tanh())),
            _ => (base(), Box::new(|_, s| s)),
        };
        let definition = Definition { score, sinks: sinks.to_vec(), ..Definition::plain(64) };
        (attention.sinks(), definition, others)
    });
}

/// A prefix that all queries see, scores by the author, and every ready step on top of them.
#[test]
fn steps_of_the_author_and_all_steps_together() {
    each("together", |number, _| {
        let own = base()
            .score(|_, score, query, key| score + ((query + key) % 3).cast(F32))
            .mask(|_, query, key| key.less(16) | key.less_equal(query));
        let more = |at: super::definition::Place| ((at.query + at.key) % 3) as f64;
        let prefix = |at: super::definition::Place| at.key < 16 || at.key <= at.query;
        let plain = Definition::plain(64);
        if number % 2 == 0 {
            let score = move |at, score| score + more(at);
            return (own, Definition { score: Box::new(score), sees: Box::new(prefix), ..plain }, vec![]);
        }
        let (slopes, sinks) = ([0.25, 0.125], [0.5, 2.0]);
        let all = own.soft_cap(3.0).alibi().causal().window(50, 4).sinks().threshold(6.0);
        let score = move |at: super::definition::Place, score: f64| {
            3.0 * ((score + more(at)) / 3.0).tanh() - slopes[at.head] * at.beyond().abs() as f64
        };
        let below = causal(Diagonal::BottomRight);
        let sees = move |at: super::definition::Place| prefix(at) && below(at) && at.beyond() >= -50;
        let definition =
            Definition { score: Box::new(score), sees: Box::new(sees), sinks: sinks.to_vec(), ..plain };
        let others =
            vec![("slopes", of_numbers(F32, &[2], &slopes)), ("sinks", of_numbers(F32, &[2], &sinks))];
        (all, definition, others)
    });
}
