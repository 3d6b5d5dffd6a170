//! Masks: selections whose conditions compare places, or data.

use super::generator::Generator;

impl Generator<'_, '_> {
    /// A selection of `value` or something else, which is one of these numbers, the value after a step, or
    /// another selection.
    pub(super) fn masked(&mut self, value: usize, others: &[&str]) -> usize {
        let condition = self.condition(0, value);
        let number = self.choices.one(others);
        let sum = self.dtypes.sum;
        let constant = self.value(&format!("register [] {sum} {number}"));
        let other = match self.choices.below(8) {
            5 => self.step(value),
            6 | 7 => {
                let inner = self.condition(1, value);
                let step = if self.choices.sometimes(2) { self.step(value) } else { value };
                self.value(&format!("select %v{inner}, %v{step}, %v{constant}"))
            }
            _ => constant,
        };
        match self.choices.sometimes(5) {
            true => self.value(&format!("select %v{condition}, %v{other}, %v{value}")),
            false => self.value(&format!("select %v{condition}, %v{value}, %v{other}")),
        }
    }

    /// A condition on places or on `value`, of others below a depth.
    fn condition(&mut self, depth: usize, value: usize) -> usize {
        if depth < 2 && self.choices.sometimes(4) {
            let a = self.condition(depth + 1, value);
            if self.choices.sometimes(4) {
                return self.value(&format!("not %v{a}"));
            }
            let b = self.condition(depth + 1, value);
            let op = self.choices.one(&["and", "and", "or", "xor"]);
            return self.value(&format!("{op} %v{a}, %v{b}"));
        }
        match self.choices.below(12) {
            0..6 => self.diagonal(),
            6 | 7 => self.window(),
            8 => {
                let place = self.place("L");
                let bound = self.choices.one(&[0, 16, 40, 64, 100]);
                let predicate = self.predicate();
                self.value(&format!("compare {predicate} %v{place}, {bound}"))
            }
            9 => {
                let place = self.place("X");
                let bound = self.choices.one(&[0, 16, 40, 64]);
                let predicate = self.predicate();
                self.value(&format!("compare {predicate} %v{place}, {bound}"))
            }
            10 => {
                let (place, size) = (self.place("L"), self.value("size L"));
                let before = self.choices.one(&[0, 1, 20, 33]);
                let shifted = self.value(&format!("sub %v{size}, {before}"));
                let predicate = self.predicate();
                self.value(&format!("compare {predicate} %v{place}, %v{shifted}"))
            }
            _ => {
                let zero = self.dtypes.number(0);
                self.value(&format!("compare gt %v{value}, {zero}"))
            }
        }
    }

    fn predicate(&mut self) -> &'static str {
        self.choices.one(&["le", "lt", "ge", "gt", "le", "ne", "eq"])
    }

    /// The place of elements along a dimension, as it is or after some linear arithmetic.
    fn place(&mut self, dim: &str) -> usize {
        let place = self.value(&format!("self_index {dim}"));
        match self.choices.below(10) {
            0 | 1 => {
                let by = self.choices.one(&[1, 16, 40, 70]);
                let op = self.choices.one(&["add", "sub"]);
                self.value(&format!("{op} %v{place}, {by}"))
            }
            2 => self.value(&format!("mul %v{place}, 2")),
            3 => self.value(&format!("neg %v{place}")),
            4 => {
                let (size, other) = (self.value("size L"), self.value("size X"));
                let shift = self.value(&format!("sub %v{size}, %v{other}"));
                self.value(&format!("add %v{place}, %v{shift}"))
            }
            5 => {
                let by = self.choices.one(&[16, 5, 32]);
                self.value(&format!("floor_div %v{place}, {by}"))
            }
            _ => place,
        }
    }

    /// The place of rows, for every score.
    fn rows(&mut self) -> usize {
        let (place, scores) = (self.place("X"), self.scores);
        self.value(&format!("broadcast %v{place} [{scores}]"))
    }

    fn diagonal(&mut self) -> usize {
        let (column, row) = (self.place("L"), self.rows());
        let predicate = self.predicate();
        match self.choices.sometimes(4) {
            true => self.value(&format!("compare {predicate} %v{row}, %v{column}")),
            false => self.value(&format!("compare {predicate} %v{column}, %v{row}")),
        }
    }

    fn window(&mut self) -> usize {
        let (column, row) = (self.place("L"), self.rows());
        let (left, right) = (self.choices.one(&[0, 10, 40]), self.choices.one(&[0, 5, 30]));
        let first = self.value(&format!("sub %v{row}, {left}"));
        let last = self.value(&format!("add %v{row}, {right}"));
        let after = self.value(&format!("compare ge %v{column}, %v{first}"));
        let before = self.value(&format!("compare le %v{column}, %v{last}"));
        self.value(&format!("and %v{after}, %v{before}"))
    }
}
