//! What the ready kernels of mixtures of experts compute, as plain loops in f64.

use super::{Outputs, ReadyLaunch};

/// The places of the largest elements, of equal ones the first.
pub fn best(elements: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..elements.len()).collect();
    order.sort_by(|&one, &other| elements[other].total_cmp(&elements[one]));
    order.truncate(count);
    order
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl ReadyLaunch<'_> {
    /// The best experts of each token by the softmax of logits.
    pub(super) fn routed(&self, top_k: usize) -> Outputs {
        let (mut ids, mut weights) = (Vec::new(), Vec::new());
        for row in self.of("logits").chunks(self.size("EXPERTS")) {
            let chosen = best(row, top_k);
            let sum: f64 = chosen.iter().map(|&expert| row[expert].exp()).sum();
            weights.extend(chosen.iter().map(|&expert| row[expert].exp() / sum));
            ids.extend(chosen.iter().map(|&expert| expert as f64));
        }
        vec![("ids", ids), ("weights", weights)]
    }

    /// The best experts of the best groups, by sigmoids and a bias.
    pub(super) fn routed_in_groups(&self, top_k: usize, kept: usize, scale: f64) -> Outputs {
        let each = self.size("GROUP");
        let (mut ids, mut weights) = (Vec::new(), Vec::new());
        for row in self.of("logits").chunks(self.size("EXPERTS")) {
            let chances: Vec<f64> =
                row.iter().zip(self.of("bias")).map(|(&x, bias)| sigmoid(x) + bias).collect();
            let of_group = |group: &[f64]| best(group, 2).into_iter().map(|at| group[at]).sum();
            let groups: Vec<f64> = chances.chunks(each).map(of_group).collect();
            let groups = best(&groups, kept);
            let is_kept = |expert: usize| groups.contains(&(expert / each));
            let masked = |(at, &chance)| if is_kept(at) { chance } else { f64::NEG_INFINITY };
            let chosen = best(&chances.iter().enumerate().map(masked).collect::<Vec<_>>(), top_k);
            let sum: f64 = chosen.iter().map(|&expert| sigmoid(row[expert])).sum();
            weights.extend(chosen.iter().map(|&expert| sigmoid(row[expert]) / sum * scale));
            ids.extend(chosen.iter().map(|&expert| expert as f64));
        }
        vec![("ids", ids), ("weights", weights)]
    }

    /// Choices by expert, in whole blocks.
    pub(super) fn sorted_choices(&self) -> Outputs {
        let [experts, rows, places] = ["EXPERTS", "ROWS", "PLACES"].map(|name| self.size(name));
        let ids = self.of("ids");
        let (mut choices, mut blocks) = (vec![-1.0; places], vec![-1.0; self.size("BLOCKS")]);
        let (mut of_choice, mut next) = (vec![-1.0; ids.len()], 0);
        for expert in 0..experts {
            let first = next;
            for (choice, _) in ids.iter().enumerate().filter(|(_, id)| **id == expert as f64) {
                of_choice[choice] = next as f64;
                if let Some(place) = choices.get_mut(next) {
                    *place = choice as f64;
                }
                next += 1;
            }
            next = next.next_multiple_of(rows);
            blocks.iter_mut().take(next / rows).skip(first / rows).for_each(|block| *block = expert as f64);
        }
        vec![("choice_of_place", choices), ("place_of_choice", of_choice), ("expert_of_block", blocks)]
    }

    /// The expert of a block, if it has one.
    fn expert_of(&self, block: usize) -> Option<usize> {
        let expert = self.of("expert_of_block")[block];
        (0.0..self.size("EXPERTS") as f64).contains(&expert).then_some(expert as usize)
    }

    /// Sums of `x[row]` times row `column` of the matrix number `matrix` of `w`.
    fn of_expert(&self, x: &str, row: Option<usize>, matrix: usize, column: usize) -> f64 {
        let [n, k] = ["N", "K"].map(|name| self.size(name));
        let row = row.map(|row| &self.of(x)[row * k..][..k]);
        let column = &self.of("w")[(matrix * n + column) * k..][..k];
        row.map_or(0.0, |row| row.iter().zip(column).map(|(x, w)| x * w).sum())
    }

    /// The first product, of the row of `x` that each row of a block has.
    pub(super) fn gated(&self, row_of: impl Fn(usize) -> Option<usize>) -> Outputs {
        let [blocks, rows, n] = ["BLOCKS", "ROWS", "N"].map(|name| self.size(name));
        let element = |at: usize| {
            let Some(expert) = self.expert_of(at / n / rows) else { return 0.0 };
            let of = |half| self.of_expert("x", row_of(at / n), 2 * expert + half, at % n);
            let gate = of(0);
            gate * sigmoid(gate) * of(1)
        };
        vec![("h", (0..blocks * rows * n).map(element).collect())]
    }

    /// The choice of a row, if it has one, and its token.
    pub(super) fn token(&self, row: usize, top_k: usize) -> Option<usize> {
        let choice = self.of("choice_of_place")[row];
        (0.0..(self.size("T") * top_k) as f64).contains(&choice).then(|| choice as usize / top_k)
    }

    fn down(&self, row: usize, column: usize) -> f64 {
        let expert = self.expert_of(row / self.size("ROWS"));
        expert.map_or(0.0, |expert| self.of_expert("h", Some(row), expert, column))
    }

    pub(super) fn downs(&self) -> Outputs {
        let [blocks, rows, n] = ["BLOCKS", "ROWS", "N"].map(|name| self.size(name));
        vec![("y", (0..blocks * rows * n).map(|at| self.down(at / n, at % n)).collect())]
    }

    /// Rows weighted and added to those of their tokens.
    pub(super) fn added_downs(&self, top_k: usize) -> Outputs {
        let [blocks, rows, n] = ["BLOCKS", "ROWS", "N"].map(|name| self.size(name));
        let mut out = self.of("out").to_vec();
        for row in 0..blocks * rows {
            let Some(token) = self.token(row, top_k) else { continue };
            let weight = self.of("weights")[self.of("choice_of_place")[row] as usize];
            (0..n).for_each(|column| out[token * n + column] += weight * self.down(row, column));
        }
        vec![("out", out)]
    }

    pub(super) fn combined(&self, top_k: usize) -> Outputs {
        let [t, n, places] = ["T", "N", "PLACES"].map(|name| self.size(name));
        let row = |place: f64| (0.0..places as f64).contains(&place).then_some(place as usize * n);
        let element = |at: usize| {
            let choices = at / n * top_k..(at / n + 1) * top_k;
            let of = |choice: usize| {
                row(self.of("place_of_choice")[choice]).map_or(0.0, |row| self.of("y")[row + at % n])
            };
            choices.map(|choice| self.of("weights")[choice] * of(choice)).sum()
        };
        vec![("out", (0..t * n).map(element).collect())]
    }

    /// Sums of row `row` of `x` times row `column` of matrix `matrix` of `w`, both with their scales: 128 of
    /// K have one, and as many columns.
    fn scaled(&self, x: &str, row: usize, [matrix, column]: [usize; 2]) -> f64 {
        let [k, columns] = ["K", "BLOCK_N"].map(|name| self.size(name));
        let rows = self.size("BLOCKS") * self.size("ROWS");
        let column = matrix * columns * self.size("N_BLOCKS") + column;
        let of_k = |at: usize| {
            let of_column = self.of("w_scale")[column / columns * k.div_ceil(128) + at / 128];
            let scales = self.of(&format!("{x}_scale"))[at / 128 * rows + row] * of_column;
            self.of(x)[row * k + at] * self.of("w")[column * k + at] * scales
        };
        (0..k).map(of_k).sum()
    }

    /// The scales of the hidden rows; an element itself may be a step of its format off.
    pub(super) fn hidden_scales(&self) -> Outputs {
        let [blocks, rows, block] = ["BLOCKS", "ROWS", "BLOCK_N"].map(|name| self.size(name));
        let element = |row: usize, column: usize| {
            let Some(expert) = self.expert_of(row / rows) else { return 0.0 };
            let [gate, up] = [0, 1].map(|half| self.scaled("x", row, [2 * expert + half, column]));
            (gate * sigmoid(gate) * up).abs()
        };
        let all = blocks * rows;
        let scale = |at: usize| {
            let columns = at / all * block..(at / all + 1) * block;
            columns.map(|column| element(at % all, column)).fold(0.0, f64::max) / 240.0
        };
        vec![("h_scale", (0..self.size("N_BLOCKS") * all).map(scale).collect())]
    }

    pub(super) fn scaled_downs(&self) -> Outputs {
        let rows = self.size("ROWS");
        let columns = self.size("N_BLOCKS") * self.size("BLOCK_N");
        let element = |at: usize| {
            let row = at / columns;
            self.expert_of(row / rows).map_or(0.0, |expert| self.scaled("h", row, [expert, at % columns]))
        };
        vec![("y", (0..self.size("BLOCKS") * rows * columns).map(element).collect())]
    }
}
