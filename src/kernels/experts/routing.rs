//! The experts of each token and their weights.

use crate::prelude::*;

/// How logits become scores.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum RouterScores {
    /// Powers of e, over their sum.
    Softmax,
    /// Each by itself.
    Sigmoid,
}

/// Experts in groups, of which a token keeps some.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ExpertGroups {
    pub(super) groups: u32,
    pub(super) kept: u32,
}

/// That a bias is added for the choice.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct SelectionBias;

/// That weights are divided by their sum.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Renormalised;

/// What the choice of experts is made of.
#[derive(Copy, Clone, Debug)]
pub(super) struct Routing {
    pub(super) experts: u32,
    pub(super) top_k: u32,
    pub(super) scores: RouterScores,
    pub(super) bias: Option<SelectionBias>,
    pub(super) groups: Option<ExpertGroups>,
    pub(super) renormalised: Option<Renormalised>,
    pub(super) scale: f64,
}

/// What a sum of weights has at least: one of zeros divides as well.
const LEAST_SUM: f64 = 1e-20;

/// The most experts of a token: each is a pass over a row in registers.
const MOST_CHOICES: u32 = 32;

impl Routing {
    pub(super) fn check(&self) -> Result<(), Diagnostic> {
        let Routing { experts, top_k, groups, .. } = *self;
        if !(1..=MOST_CHOICES).contains(&top_k) || top_k > experts {
            let text = format!("each token has {top_k} of {experts} experts");
            return Err(Diagnostic::invalid(text)
                .help(format!("use from 1 to {MOST_CHOICES}, and not more than there are experts")));
        }
        let Some(ExpertGroups { groups, kept }) = groups else { return Ok(()) };
        if groups == 0 || !experts.is_multiple_of(groups) || kept == 0 || kept > groups {
            let text = format!("{kept} of {groups} groups of {experts} experts");
            return Err(Diagnostic::invalid(text)
                .help("use a number of groups that divides that of experts, and keep from one to all"));
        }
        if kept * (experts / groups) < top_k {
            let text = format!("{kept} groups of {} experts have no {top_k} experts", experts / groups);
            return Err(Diagnostic::invalid(text).help("keep more groups, or choose fewer experts"));
        }
        Ok(())
    }

    pub(super) fn trace(&self) -> Result<Kernel, Diagnostic> {
        let [t, experts, block_t] = symbols(["T", "EXPERTS", "BLOCK_T"]);
        let top_k = Symbol::from(self.top_k);
        Kernel::trace("moe_route", |w| {
            w.distribute([workgroup(t, block_t, 0), wave(t, 1)]);
            let logits = w.memory("logits", [t, experts], Global, F32);
            let bias = self.bias.map(|_| w.memory("bias", [experts], Global, F32));
            let ids = w.memory("ids", [t, top_k], Global, I32);
            let weights = w.memory("weights", [t, top_k], Global, F32);
            let row = w.read(logits).tag("read_logits");
            let of_row = self.row(row, experts);
            let scores = self.scores(row, of_row);
            let mut chances = scores;
            if let Some(bias) = bias {
                chances += w.read(bias).tag("read_bias");
            }
            if let Some(groups) = self.groups {
                let is_kept = self.kept(w, groups, (logits, bias), of_row);
                chances = w.select(is_kept, chances, f64::NEG_INFINITY);
            }
            let chosen = chances.topk(experts, self.top_k);
            let of_chosen: Vec<Value> =
                chosen.iter().map(|element| scores.at((t, element.place), [t])).collect();
            let mut factor = w.register([t], F32, self.scale);
            if self.renormalised.is_some() {
                let sum = of_chosen.iter().skip(1).fold(of_chosen[0], |sum, &weight| sum + weight);
                factor /= sum + LEAST_SUM;
            }
            for (at, (element, weight)) in (0i64..).zip(chosen.iter().zip(of_chosen)) {
                let place = || [t.into(), SymExpr::from(at)];
                w.write_at(element.place, ids, place());
                w.write_at(weight * factor, weights, place());
            }
        })
    }

    /// The largest logit of a row and the sum of its powers, where scores need them.
    fn row(&self, row: Value, experts: Symbol) -> Option<[Value; 2]> {
        let most = row.max(experts);
        (self.scores == RouterScores::Softmax).then(|| [most, (row - most).exp().sum(experts)])
    }

    fn scores(&self, logits: Value, of_row: Option<[Value; 2]>) -> Value {
        match of_row {
            Some([most, sum]) => (logits - most).exp() / sum,
            None => logits.sigmoid(),
        }
    }

    /// Whether the group of each expert is kept. A group counts as its best expert, or with a bias as the sum
    /// of its best two.
    fn kept(
        &self,
        w: &Tracer,
        ExpertGroups { groups, kept }: ExpertGroups,
        (logits, bias): (MemoryRef, Option<MemoryRef>),
        of_row: Option<[Value; 2]>,
    ) -> Value {
        let [t, experts, of_groups, in_group] = symbols(["T", "EXPERTS", "GROUPS", "GROUP"]);
        let each = self.experts / groups;
        let place = || of_groups * i64::from(each) + in_group;
        let row = w.read_at(logits, [t.into(), place()], [t, of_groups, in_group]).tag("read_logits");
        let mut chances = self.scores(row, of_row);
        if let Some(bias) = bias {
            chances += w.read_at(bias, [place()], [of_groups, in_group]).tag("read_bias");
        }
        let best = chances.topk(in_group, if bias.is_some() && each > 1 { 2 } else { 1 });
        let of_group = best.iter().skip(1).fold(best[0].value, |sum, next| sum + next.value);
        let group =
            w.apply_expr(Coordinate::from(w.self_index(experts)) / i64::from(each)).broadcast([t, experts]);
        let chosen = of_group.topk(of_groups, kept);
        let is_one = |element: &TopElement| group.equal(element.place);
        chosen.iter().skip(1).fold(is_one(&chosen[0]), |any, element| any | is_one(element))
    }
}
