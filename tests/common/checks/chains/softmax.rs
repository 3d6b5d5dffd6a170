//! A softmax of rows of which a tile at a time is seen.

use super::super::Choices;
use super::generator::Generator;

/// What a softmax is made of.
#[derive(Copy, Clone)]
pub(super) struct Softmax {
    /// A maximum is carried, and what was weighed before it rose is weighed anew.
    has_top: bool,
    /// The sum of the weights is carried.
    has_weight: bool,
    /// The maximum follows only where it rises by more than so many.
    threshold: Option<i32>,
    function: &'static str,
    /// Scores are made whole before their powers are taken: these are exact.
    is_whole: bool,
}

/// What an iteration of it makes.
pub(super) struct SoftmaxParts {
    pub(super) weights: usize,
    /// For what was weighed before.
    pub(super) factor: Option<usize>,
    /// What it hands on.
    pub(super) carried: Vec<usize>,
}

impl Softmax {
    pub(super) fn new(choices: &mut Choices<'_>) -> Softmax {
        let is_whole = choices.below(2) == 0;
        let function = if !is_whole && choices.sometimes(3) { "exp" } else { "exp2" };
        Softmax {
            has_top: !choices.sometimes(6),
            has_weight: !choices.sometimes(6),
            threshold: choices.sometimes(4).then(|| choices.one(&[1, 8])),
            function,
            is_whole,
        }
    }

    /// The number of values that it carries.
    pub(super) fn carried(self) -> usize {
        usize::from(self.has_top) + usize::from(self.has_weight)
    }

    /// Which of them is the sum of the weights.
    pub(super) fn weight(self) -> Option<usize> {
        self.has_weight.then_some(usize::from(self.has_top))
    }
}

impl Generator<'_, '_> {
    /// What the softmax begins with: the maximum, and the sum of weights.
    pub(super) fn softmax_inits(&mut self, softmax: Softmax) -> Vec<usize> {
        let mut inits = Vec::new();
        let head = self.head;
        if softmax.has_top {
            let lowest = self.choices.one(&[
                "-3.4028234663852886e38",
                "-inf",
                "-1000.0",
                "0.0",
                "-3.4028234663852886e38",
            ]);
            inits.push(self.value(&format!("register [{head}X] f32 {lowest}")));
        }
        if softmax.has_weight {
            inits.push(self.zeros("X"));
        }
        inits
    }

    /// The weights of the scores of a tile.
    pub(super) fn softmax(&mut self, softmax: Softmax, score: usize, before: &[usize]) -> SoftmaxParts {
        let function = softmax.function;
        let score = if softmax.is_whole { self.value(&format!("floor %v{score}")) } else { score };
        let (mut carried, mut factor, mut below) = (Vec::new(), None, score);
        if softmax.has_top {
            let top_before = before[0];
            let top_here = self.value(&format!("reduce_max %v{score} over L"));
            let top = match softmax.threshold {
                Some(threshold) => {
                    let most = self.value(&format!("add %v{top_before}, {threshold}.0"));
                    let rises = self.value(&format!("compare gt %v{top_here}, %v{most}"));
                    self.value(&format!("select %v{rises}, %v{top_here}, %v{top_before}"))
                }
                None => self.value(&format!("max %v{top_before}, %v{top_here}")),
            };
            below = self.value(&format!("sub %v{score}, %v{top}"));
            let risen = self.value(&format!("sub %v{top_before}, %v{top}"));
            factor = Some(self.value(&format!("{function} %v{risen}")));
            carried.push(top);
        } else {
            // Powers of what is not below a maximum shall stay in range.
            below = self.value(&format!("min %v{below}, 4.0"));
        }
        let mut weights = self.value(&format!("{function} %v{below}"));
        if self.choices.sometimes(8) {
            weights = self.masked(weights, &["0.0"]);
        }
        if let Some(at) = softmax.weight() {
            let sum = self.value(&format!("reduce_sum %v{weights} over L"));
            let kept = match factor {
                Some(factor) => self.value(&format!("mul %v{}, %v{factor}", before[at])),
                None => before[at],
            };
            carried.push(self.value(&format!("add %v{kept}, %v{sum}")));
        }
        SoftmaxParts { weights, factor, carried }
    }
}
