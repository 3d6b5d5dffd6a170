//! What the ready kernels over paged caches compute, as plain loops in f64.

use super::{Outputs, ReadyLaunch};

/// The sum of 2 to the power of a number's exponent.
const LOG2_E: f64 = std::f64::consts::LOG2_E;

impl ReadyLaunch<'_> {
    /// Where key `n` of sequence `b` is in a cache of rows, if it is in a page.
    fn in_pages(&self, b: usize, n: usize) -> Option<usize> {
        let [page, pages, max_pages] = ["PAGE", "PAGES", "MAX_PAGES"].map(|name| self.size(name));
        let number = self.of("page_table")[b * max_pages + n / page];
        (0.0..pages as f64).contains(&number).then(|| number as usize * page + n % page)
    }

    /// Attention to each part of the keys: sums, maxima and weights.
    pub(super) fn parts(&self, [k, v]: [&str; 2], value_dim: usize, tile: usize) -> Outputs {
        let [batch, new, kv, group, dim] = ["B", "NEW", "KV", "GROUP", "D"].map(|name| self.size(name));
        let parts = self.size("PARTS");
        let (mut sums, mut tops, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..batch * kv * parts * new * group {
            let (row, part) = (at % (new * group), at / (new * group) % parts);
            let (head, b) = (at / (new * group) / parts % kv, at / (new * group) / parts / kv);
            let length = self.of("lengths")[b] as usize;
            let each = length.div_ceil(tile).div_ceil(parts) * tile;
            let end = length.min((part + 1) * each).min((length + row / group + 1).saturating_sub(new));
            let query = ((b * new + row / group) * kv * group + head * group + row % group) * dim;
            let row_of = |cache: &str, n: usize, count: usize| -> Vec<f64> {
                match self.in_pages(b, n) {
                    Some(place) => self.of(cache)[(place * kv + head) * dim..][..count].to_vec(),
                    None => vec![0.0; count],
                }
            };
            let score = |n: usize| {
                let key = row_of(k, n, dim);
                let product: f64 = self.of("q")[query..].iter().zip(&key).map(|(a, b)| a * b).sum();
                product / (dim as f64).sqrt() * LOG2_E
            };
            let scores: Vec<(usize, f64)> = (part * each..end).map(|n| (n, score(n))).collect();
            let top = scores.iter().map(|score| score.1).fold(f64::from(f32::MIN), f64::max);
            let mut sum = vec![0.0; value_dim];
            for &(n, score) in &scores {
                let weight = (score - top).exp2();
                row_of(v, n, value_dim).iter().zip(&mut sum).for_each(|(x, sum)| *sum += weight * x);
            }
            sums.extend(sum);
            tops.push(top);
            weights.push(scores.iter().map(|score| (score.1 - top).exp2()).sum());
        }
        vec![("sums", sums), ("tops", tops), ("weights", weights)]
    }

    /// Parts joined, and the natural logarithm of their weights.
    pub(super) fn joined_parts(&self) -> Outputs {
        let [batch, new, heads, group, dim] = ["B", "NEW", "HQ", "GROUP", "D"].map(|name| self.size(name));
        let [parts, rows] = ["PARTS", "R"].map(|name| self.size(name));
        let (mut out, mut logs) = (Vec::new(), Vec::new());
        for at in 0..batch * new * heads {
            let (b, token, head) = (at / heads / new, at / heads % new, at % heads);
            let row = token * group + head % group;
            let of: Vec<usize> = (0..parts)
                .map(|part| ((b * (heads / group) + head / group) * parts + part) * rows + row)
                .collect();
            let top = of.iter().map(|&at| self.of("tops")[at]).fold(f64::MIN, f64::max);
            let sum = |value: &dyn Fn(usize) -> f64| -> f64 {
                of.iter().map(|&at| (self.of("tops")[at] - top).exp2() * value(at)).sum()
            };
            let weight = sum(&|at| self.of("weights")[at]);
            out.extend((0..dim).map(|d| sum(&|at| self.of("sums")[at * dim + d]) / weight));
            logs.push((top + weight.log2()) / LOG2_E);
        }
        vec![("out", out), ("log_sum_exp", logs)]
    }

    /// Caches that new tokens have joined.
    pub(super) fn appended(&self) -> Outputs {
        let [batch, new, kv, dim, page] = ["B", "NEW", "KV", "D", "PAGE"].map(|name| self.size(name));
        let of = |from: &str, to: &'static str| {
            let mut cache = self.of(to).to_vec();
            for at in 0..batch * new {
                let place = self.of("lengths")[at / new] as i64 + (at % new) as i64 - new as i64;
                let room = 0..(self.size("MAX_PAGES") * page) as i64;
                let place = room.contains(&place).then(|| self.in_pages(at / new, place as usize)).flatten();
                if let Some(place) = place {
                    let row = kv * dim;
                    cache[place * row..][..row].copy_from_slice(&self.of(from)[at * row..][..row]);
                }
            }
            (to, cache)
        };
        vec![of("k", "k_cache"), of("v", "v_cache")]
    }

    /// Attention of new tokens to a prefix in pages and to each other.
    pub(super) fn extended(&self) -> Outputs {
        let [batch, new, kv, group, dim] = ["B", "NEW", "KV", "GROUP", "D"].map(|name| self.size(name));
        let mut out = Vec::new();
        for at in 0..batch * new * kv * group {
            let (b, token, head) =
                (at / (kv * group) / new, at / (kv * group) % new, at % (kv * group) / group);
            let [prefix, count] = ["lengths", "new_lengths"].map(|name| self.of(name)[b] as usize);
            let in_cache = |cache: &str, n: usize| -> Vec<f64> {
                match self.in_pages(b, n) {
                    Some(place) => self.of(cache)[(place * kv + head) * dim..][..dim].to_vec(),
                    None => vec![0.0; dim],
                }
            };
            let among_new =
                |which: &str, n: usize| self.of(which)[((b * new + n) * kv + head) * dim..][..dim].to_vec();
            let query = &self.of("q")[at * dim..][..dim];
            let seen = if token < count { prefix + token + 1 } else { 0 };
            let rows: Vec<[Vec<f64>; 2]> = (0..seen)
                .map(|n| match n < prefix {
                    true => ["k", "v"].map(|cache| in_cache(cache, n)),
                    false => ["k_new", "v_new"].map(|which| among_new(which, n - prefix)),
                })
                .collect();
            let score =
                |key: &[f64]| query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>() / (dim as f64).sqrt();
            let scores: Vec<f64> = rows.iter().map(|row| score(&row[0])).collect();
            let weights = if scores.is_empty() { Vec::new() } else { super::softmax(&scores) };
            let value =
                |d: usize| weights.iter().zip(&rows).map(|(weight, row)| weight * row[1][d]).sum::<f64>();
            out.extend((0..dim).map(value));
        }
        vec![("out", out)]
    }
}
