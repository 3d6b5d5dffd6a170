//! Arithmetic on the result of a product.

use super::generator::Generator;

impl Generator<'_, '_> {
    /// Some steps of arithmetic and masks on the result of a product, with that of another one if there is
    /// one.
    pub(super) fn scored(&mut self, mut score: usize, other: Option<usize>) -> usize {
        let masks = self.choices.one(&[1, 0, 1, 2, 1, 3]);
        let early = if self.choices.sometimes(3) { masks.min(1) } else { 0 };
        for _ in 0..early {
            score = self.masked_score(score);
        }
        for _ in 0..self.choices.below(4) {
            score = self.step(score);
        }
        if self.choices.sometimes(4) {
            score = self.biased(score);
        }
        if let Some(other) = other {
            let op = self.choices.one(&["add", "mul", "max", "sub"]);
            score = self.value(&format!("{op} %v{score}, %v{other}"));
        }
        for _ in early..masks {
            score = self.masked_score(score);
        }
        score
    }

    fn masked_score(&mut self, score: usize) -> usize {
        let others: &[&str] = match self.dtypes.sum {
            "i32" => &["0", "-7", "90"],
            "f64" => &["0.0", "-2.5"],
            _ => &["-inf", "-inf", "-1.0e30", "0.0", "-3.5"],
        };
        self.masked(score, others)
    }

    /// One step of arithmetic on a value.
    pub(super) fn step(&mut self, value: usize) -> usize {
        let half = if self.dtypes.is_float() { "0.5" } else { "3" };
        let [one, three, zero] = [1, 3, 0].map(|number| self.dtypes.number(number));
        match self.choices.below(8) {
            0 => self.value(&format!("mul %v{value}, {half}")),
            1 => self.value(&format!("add %v{value}, {one}")),
            2 => self.value(&format!("max %v{value}, {zero}")),
            3 => self.value(&format!("min %v{value}, {three}")),
            4 => self.value(&format!("abs %v{value}")),
            5 => self.value(&format!("neg %v{value}")),
            6 if self.dtypes.sum == "f32" => {
                let capped = self.value(&format!("tanh %v{value}"));
                self.value(&format!("mul %v{capped}, 4.0"))
            }
            _ => {
                let condition = self.value(&format!("compare gt %v{value}, {one}"));
                let other = self.value(&format!("mul %v{value}, {half}"));
                self.value(&format!("select %v{condition}, %v{other}, %v{value}"))
            }
        }
    }

    /// What is added to scores: numbers of rows, of columns, of both, or places.
    fn biased(&mut self, score: usize) -> usize {
        let sum = self.dtypes.sum;
        let bias = match self.choices.below(4) {
            0 => {
                let place = self.value("self_index L");
                let place = if sum == "i32" { place } else { self.value(&format!("cast %v{place} {sum}")) };
                self.value(&format!("mul %v{place}, {}", if sum == "i32" { "2" } else { "-0.0625" }))
            }
            kind => {
                let dims = ["X", "L", self.scores][kind - 1];
                let space = self.choices.one(&["global", "shared"]);
                let memory = self.memory(dims, space, sum);
                self.value(&format!("read {memory}"))
            }
        };
        self.value(&format!("add %v{score}, %v{bias}"))
    }
}
