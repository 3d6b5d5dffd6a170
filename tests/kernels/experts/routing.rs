//! Which experts a token gets, and with which weights.

use groundswell::kernels::MixtureOfExperts;
use groundswell::prelude::*;
use groundswell_testing::exact_case::of_numbers;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::ready_references::experts::best;

use crate::paged::cases::{Numbers, launched};

/// How experts are chosen.
#[derive(Copy, Clone, Debug)]
struct Choice {
    experts: usize,
    top_k: usize,
    is_sigmoid: bool,
    has_bias: bool,
    groups: Option<[usize; 2]>,
    is_renormalised: bool,
}

impl Choice {
    fn builder(&self) -> MixtureOfExperts {
        let mut builder = MixtureOfExperts::new(self.experts as u32, self.top_k as u32).scale(1.5);
        if self.is_sigmoid {
            builder = builder.sigmoid();
        }
        if self.has_bias {
            builder = builder.bias();
        }
        if let Some([groups, kept]) = self.groups {
            builder = builder.groups(groups as u32, kept as u32);
        }
        if self.is_renormalised { builder.renormalised() } else { builder }
    }

    /// The experts of a row of logits and their weights.
    fn expected(&self, row: &[f64], bias: &[f64]) -> Vec<(usize, f64)> {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
        let score = |x: &f64| if self.is_sigmoid { 1.0 / (1.0 + (-x).exp()) } else { (x - top).exp() / sum };
        let scores: Vec<f64> = row.iter().map(score).collect();
        let mut chances = scores.clone();
        if self.has_bias {
            chances.iter_mut().zip(bias).for_each(|(chance, bias)| *chance += bias);
        }
        if let Some([groups, kept]) = self.groups {
            let each = self.experts / groups;
            let counted = if self.has_bias { 2 } else { 1 };
            let of_group = |group: &[f64]| best(group, counted).into_iter().map(|at| group[at]).sum();
            let kept = best(&chances.chunks(each).map(of_group).collect::<Vec<f64>>(), kept);
            for (expert, chance) in chances.iter_mut().enumerate() {
                if !kept.contains(&(expert / each)) {
                    *chance = f64::NEG_INFINITY;
                }
            }
        }
        let chosen = best(&chances, self.top_k);
        let all: f64 = chosen.iter().map(|&expert| scores[expert]).sum();
        let by = if self.is_renormalised { 1.5 / all } else { 1.5 };
        chosen.into_iter().map(|expert| (expert, scores[expert] * by)).collect()
    }

    fn holds(&self, tokens: usize, target: Target, seed: Option<u64>) {
        let title = format!("{self:?}, {tokens} tokens on {target}, seed {seed:?}");
        let Choice { experts, top_k, .. } = *self;
        let mut numbers = Numbers(tokens as u64);
        let logits: Vec<f64> = (0..tokens * experts).map(|_| 3.0 * numbers.part()).collect();
        let bias: Vec<f64> = (0..experts).map(|_| numbers.part() / 4.0).collect();
        let kernel = self.builder().route().expect("a kernel");
        let mut sizes = vec![("EXPERTS", experts), ("BLOCK_T", 4)];
        if let Some([groups, _]) = self.groups {
            sizes.extend([("GROUPS", groups), ("GROUP", experts / groups)]);
        }
        let options = Options::new(target).dynamic("T");
        let options = sizes.iter().fold(options, |options, &(name, size)| options.set(name, size as i64));
        let executable = verified(&kernel, &options);
        let mut arguments = vec![of_numbers(F32, &[tokens, experts], &logits)];
        if self.has_bias {
            arguments.push(of_numbers(F32, &[experts], &bias));
        }
        arguments.push(of_numbers(I32, &[tokens, top_k], &vec![-9.0; tokens * top_k]));
        arguments.push(of_numbers(F32, &[tokens, top_k], &vec![f64::NAN; tokens * top_k]));
        let arguments: Vec<_> = arguments.into_iter().map(Into::into).collect();
        let mut after = launched(&title, &executable, &arguments, &[("T", tokens as i64)], seed);
        let (weights, ids) = (after.pop().expect("weights").to_f64(), after.pop().expect("ids").to_f64());
        for token in 0..tokens {
            let expected = self.expected(&logits[token * experts..][..experts], &bias);
            for (at, (expert, weight)) in expected.into_iter().enumerate() {
                let at = token * top_k + at;
                assert_eq!(ids[at], expert as f64, "{title}: choice {at}");
                let is_near = (weights[at] - weight).abs() <= 2f64.powi(-18) * weight;
                assert!(is_near, "{title}: weight {} of choice {at}, not {weight}", weights[at]);
            }
        }
        let value = |symbol: Symbol| {
            let size = sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1 as i64);
            size.or((symbol.name() == "T").then_some(tokens as i64))
        };
        assert_right(&kernel, &executable, &value, tokens as u64, &title);
    }
}

#[test]
fn every_way_of_choosing_equals_the_definition() {
    let chips = Target::ALL;
    let mut number = 0;
    for (experts, top_k, groups) in [
        (8, 2, None),
        (60, 4, None),
        (256, 8, Some([8, 4])),
        (16, 4, Some([4, 2])),
        (160, 6, Some([8, 3])),
        (3, 3, None),
        (1, 1, None),
        (384, 8, None),
        (6, 2, Some([6, 3])),
    ] {
        for is_sigmoid in [false, true] {
            for has_bias in [false, true] {
                let is_renormalised = number % 3 != 0;
                let choice = Choice { experts, top_k, is_sigmoid, has_bias, groups, is_renormalised };
                let tokens = [1, 7, 20, 64, 33][number % 5];
                choice.holds(tokens, chips[number % chips.len()], None);
                if number % 8 == 1 {
                    (0..5).for_each(|seed| choice.holds(tokens.min(9), Target::GFX942, Some(seed)));
                }
                number += 1;
            }
        }
    }
}
