//! What each ready kernel computes, as plain loops in f64 that know nothing of the kernels' sources: the
//! contents of its outputs, by name.

pub mod experts;
mod four_bit;
mod paged;

use std::collections::BTreeMap;

use groundswell::prelude::*;

use crate::exact_case::{made, number};

/// The sizes of a launch, and the contents of its arguments before it.
pub struct ReadyLaunch<'a> {
    pub sizes: &'a [(&'static str, i64)],
    pub arguments: BTreeMap<String, Vec<f64>>,
}

/// Outputs by name.
type Outputs = Vec<(&'static str, Vec<f64>)>;

/// An argument of a kernel, of `shape`: small integers, but where they are places or scales.
pub fn argument(name: &str, dtype: DType, shape: &[usize], sizes: &[(&'static str, i64)]) -> Tensor {
    let size = |name: &str| sizes.iter().find(|size| size.0 == name).map_or(1, |size| size.1);
    let of: Box<dyn Fn(usize) -> f64> = match name {
        // Some of them are outside, on either side.
        "ids" if sizes.iter().any(|size| size.0 == "CHOICES") => {
            Box::new(move |at| ((at as i64 * 29) % (size("EXPERTS") + 2) - 1) as f64)
        }
        "choice_of_place" => Box::new(move |at| ((at as i64 * 7) % (2 * size("T") + 3) - 2) as f64),
        "place_of_choice" => Box::new(move |at| ((at as i64 * 29) % (size("PLACES") + 4) - 2) as f64),
        "ids" => Box::new(move |at| ((at as i64 * 29) % (size("ROWS") + 4) - 2) as f64),
        "expert_of_block" => Box::new(move |at| ((at as i64 * 5) % (size("EXPERTS") + 2) - 1) as f64),
        _ if dtype == F8E8M0 => Box::new(|at| [0.5, 1.0, 2.0, 4.0][(at + at / 4) % 4]),
        "scale" | "row_scale" | "a_scale" | "b_scale" | "x_scale" | "h_scale" | "w_scale" => {
            Box::new(|at| [0.5, 1.0, 2.0, -4.0][at % 4])
        }
        "positions" => Box::new(|at| (at * 3) as f64),
        // Each page once.
        "page_table" => Box::new(move |at| ((at as i64 * 29) % size("PAGES")) as f64),
        "lengths" => {
            Box::new(move |at| ((at as i64 * 67 + 40) % (size("MAX_PAGES") * size("PAGE") + 1)) as f64)
        }
        "new_lengths" => Box::new(move |at| ((at as i64 * 67 + 40) % (size("NEW") + 1)) as f64),
        "scales" => Box::new(|at| [0.5, 1.0, 2.0, -4.0][at % 4]),
        "zeros" => Box::new(|at| (at * 7 % 16) as f64),
        // Four integers of four bits each.
        "w" if dtype == I16 => Box::new(|at| (at as i64 * 7919 % 65536 - 32768) as f64),
        // Two numbers of four bits.
        "a" if dtype == I8 && sizes.iter().any(|size| size.0 == "HALFWORDS") => {
            Box::new(|at| (at as i64 * 37 % 256 - 128) as f64)
        }
        "weights" => Box::new(|at| (at % 3 + 1) as f64),
        "minus_log_sum_exp" => Box::new(|at| -3.0 - (at % 5) as f64),
        // So that no weight and no gradient is much larger than all others.
        _ if name.starts_with("backward_") => Box::new(|at| number(at) / 12.0),
        _ => Box::new(number),
    };
    made(dtype, shape, of)
}

impl ReadyLaunch<'_> {
    fn size(&self, name: &str) -> usize {
        let found = self.sizes.iter().find(|size| size.0 == name);
        found.unwrap_or_else(|| panic!("no size {name}")).1 as usize
    }

    fn of(&self, name: &str) -> &[f64] {
        &self.arguments[name]
    }

    fn rows(&self, name: &str) -> impl Iterator<Item = &[f64]> {
        self.of(name).chunks(self.size("N"))
    }

    fn by_row(&self, from: &str, to: &'static str, row: impl Fn(&[f64]) -> Vec<f64>) -> Outputs {
        vec![(to, self.rows(from).flat_map(row).collect())]
    }

    fn by_element(&self, of: impl Fn(usize) -> f64) -> Outputs {
        vec![("out", (0..self.size("M") * self.size("N")).map(of).collect())]
    }

    /// Sums of `part` over K for each element of a matrix, which `end` finishes.
    fn product(&self, part: impl Fn([usize; 3]) -> f64, end: impl Fn(f64, usize, usize) -> f64) -> Vec<f64> {
        let [m, n, k] = ["M", "N", "K"].map(|name| self.size(name));
        let sum = |i, j| (0..k).map(|l| part([i, j, l])).sum();
        (0..m * n).map(|at| end(sum(at / n, at % n), at / n, at % n)).collect()
    }

    /// The product of the elements of A [M, K] and B [N, K].
    fn a_bt(&self, [i, j, l]: [usize; 3]) -> f64 {
        let k = self.size("K");
        self.of("a")[i * k + l] * self.of("b")[j * k + l]
    }

    /// A norm of rows: centred or not, with the residual and the bias that there are.
    fn norm(&self, is_centred: bool, has_residual: bool) -> Outputs {
        let n = self.size("N");
        let mut sum = self.of("x").to_vec();
        if has_residual {
            sum.iter_mut().zip(self.of("residual")).for_each(|(x, residual)| *x += residual);
        }
        let mut y = Vec::new();
        for row in sum.chunks(n) {
            let mean = if is_centred { row.iter().sum::<f64>() / n as f64 } else { 0.0 };
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
            let bias = |at: usize| if is_centred { self.of("bias")[at] } else { 0.0 };
            let scaled = |x: f64| (x - mean) / (variance + 1e-5).sqrt();
            y.extend(row.iter().enumerate().map(|(at, &x)| scaled(x) * self.of("weight")[at] + bias(at)));
        }
        if has_residual { vec![("y", y), ("sum", sum)] } else { vec![("y", y)] }
    }

    /// Pairs of elements turned by angles, whose cosines and sines are those of a token and a pair.
    fn rope(&self, is_interleaved: bool, angle: impl Fn(usize, usize) -> (f64, f64)) -> Outputs {
        let [heads, pairs] = ["HEADS", "PAIRS"].map(|name| self.size(name));
        let x = self.of("x");
        let mut y = vec![0.0; x.len()];
        for at in 0..x.len() / 2 {
            let (row, pair) = (at / pairs, at % pairs);
            let (cos, sin) = angle(row / heads, pair);
            let (one, other) = match is_interleaved {
                true => (2 * (row * pairs + pair), 2 * (row * pairs + pair) + 1),
                false => (2 * row * pairs + pair, (2 * row + 1) * pairs + pair),
            };
            y[one] = x[one] * cos - x[other] * sin;
            y[other] = x[other] * cos + x[one] * sin;
        }
        vec![("y", y)]
    }

    /// The dimensions of `a` in another order.
    fn permuted(&self, order: [usize; 4]) -> Outputs {
        let shape = ["D0", "D1", "D2", "D3"].map(|name| self.size(name));
        let mut b = vec![0.0; shape.iter().product()];
        for (at, &x) in self.of("a").iter().enumerate() {
            let mut rest = at;
            let mut place = [0; 4];
            for dim in (0..4).rev() {
                (place[dim], rest) = (rest % shape[dim], rest / shape[dim]);
            }
            b[order.iter().fold(0, |to, &dim| to * shape[dim] + place[dim])] = x;
        }
        vec![("b", b)]
    }

    /// A convolution with channels last or first, groups of channels, stride 1 and no padding.
    fn conv(&self, has_channels_last: bool, groups: usize) -> Outputs {
        let [n, h, width, c, nf] = ["N", "H", "W", "C", "NF"].map(|name| self.size(name));
        let [hf, wf, ho, wo] = ["HF", "WF", "HO", "WO"].map(|name| self.size(name));
        let index = |[i, z, y, x]: [usize; 4], [c, h, w]: [usize; 3]| match has_channels_last {
            true => ((i * h + y) * w + x) * c + z,
            false => ((i * c + z) * h + y) * w + x,
        };
        let (cg, nfg) = (c / groups, nf / groups);
        let (x, filters) = (self.of("x"), self.of("filters"));
        let mut y = vec![0.0; n * nf * ho * wo];
        for at in 0..y.len() {
            let (i, f, p, q) = (at / wo / ho / nf, at / wo / ho % nf, at / wo % ho, at % wo);
            let mut sum = 0.0;
            for (r, s, z) in (0..hf * wf * cg).map(|at| (at / cg / wf, at / cg % wf, at % cg)) {
                sum += x[index([i, f / nfg * cg + z, p + r, q + s], [c, h, width])]
                    * filters[index([f, z, r, s], [cg, hf, wf])];
            }
            y[index([i, f, p, q], [nf, ho, wo])] = sum;
        }
        vec![("y", y)]
    }

    /// A filter for each channel, of at most 3 x 3 pixels, channels last.
    fn depthwise(&self) -> Outputs {
        let [n, h, width, c, ho, wo] = ["N", "H", "W", "C", "HO", "WO"].map(|name| self.size(name));
        let (hf, wf) = (self.size("HF"), self.size("WF"));
        let (x, filters) = (self.of("x"), self.of("filters"));
        let element = |at: usize| {
            let (i, p, q, z) = (at / c / wo / ho, at / c / wo % ho, at / c % wo, at % c);
            let tap = |t: usize| x[((i * h + p + t / wf) * width + q + t % wf) * c + z] * filters[t * c + z];
            (0..hf * wf).map(tap).sum()
        };
        vec![("y", (0..n * ho * wo * c).map(element).collect())]
    }

    /// Attention of heads of which `group` have keys and values in common; queries see keys that are at most
    /// so far to the right of their own, where the last of both stand side by side.
    fn attention(&self, group: usize, right: Option<i64>) -> Outputs {
        let [batch, heads, m, n, d] = ["B", "H", "M", "N", "D"].map(|name| self.size(name));
        let [q, k, v] = ["q", "k", "v"].map(|name| self.of(name));
        let (mut o, mut log_sum_exp) = (Vec::new(), Vec::new());
        for row in 0..batch * heads * m {
            let first = row / m / heads * (heads / group) + row / m % heads / group;
            let is_seen = |key: usize| {
                let beyond = key as i64 - (row % m) as i64 - (n as i64 - m as i64);
                right.is_none_or(|right| beyond <= right)
            };
            let keys: Vec<usize> = (0..n).filter(|&key| is_seen(key)).map(|key| first * n + key).collect();
            let product = |key: usize| (0..d).map(|e| q[row * d + e] * k[key * d + e]).sum::<f64>();
            let scores: Vec<f64> = keys.iter().map(|&key| product(key) / (d as f64).sqrt()).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = scores.iter().map(|score| (score - most).exp()).sum();
            log_sum_exp.push(if keys.is_empty() { most } else { most + sum.ln() });
            let weights = softmax(&scores);
            o.extend((0..d).map(|e| {
                keys.iter().zip(&weights).map(|(key, weight)| weight * v[key * d + e]).sum::<f64>()
            }));
        }
        vec![("o", o), ("log_sum_exp", log_sum_exp)]
    }

    /// The gradients of attention of heads of which `group` have keys and values in common: those of queries,
    /// keys and values.
    fn gradients(&self, group: usize) -> Outputs {
        let [batch, heads, m, n, d] = ["B", "H", "M", "N", "D"].map(|name| self.size(name));
        let [q, k, of_o, sums] = ["q", "k", "do", "minus_log_sum_exp"].map(|name| self.of(name));
        let none: &[f64] = &[];
        let of = |name: &str| self.arguments.get(name).map_or(none, |found| found);
        let [v, deltas] = ["v", "minus_delta"].map(of);
        let scale = 1.0 / (d as f64).sqrt();
        let mut dq = vec![0.0; q.len()];
        let [mut dk, mut dv] = [vec![0.0; k.len()], vec![0.0; k.len()]];
        for row in 0..batch * heads * m {
            let first = (row / m / heads * (heads / group) + row / m % heads / group) * n;
            for key in first..first + n {
                let (q, k, of_o) = (&q[row * d..][..d], &k[key * d..][..d], &of_o[row * d..][..d]);
                let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let weight = (product(q, k) * scale * std::f64::consts::LOG2_E + sums[row]).exp2();
                let of_score = match deltas.get(row) {
                    Some(delta) => weight * (product(of_o, &v[key * d..][..d]) + delta) * scale,
                    None => 0.0,
                };
                for e in 0..d {
                    dq[row * d + e] += of_score * k[e];
                    dk[key * d + e] += of_score * q[e];
                    dv[key * d + e] += weight * of_o[e];
                }
            }
        }
        vec![("dq", dq), ("dk", dk), ("dv", dv)]
    }

    /// Parts of a product by workers that have as many steps each: worker, segment, row and column of a tile.
    fn shares(&self) -> Vec<f64> {
        let [m, n, k, workers, segments] = ["M", "N", "K", "WORKERS", "SEGMENTS"].map(|name| self.size(name));
        let [tm, tn, bk, share, steps, columns] =
            ["TILE_M", "TILE_N", "BLOCK_K", "SHARE", "STEPS", "COLUMN_TILES"].map(|name| self.size(name));
        let mut parts = vec![0.0; workers * segments * tm * tn];
        for step in 0..workers * share {
            let (worker, tile) = (step / share, step / steps);
            let segment = worker * segments + tile - worker * share / steps;
            for (i, j) in (0..tm * tn).map(|at| (at / tn, at % tn)) {
                let (row, column) = (tile / columns * tm + i, tile % columns * tn + j);
                if row < m && column < n {
                    let of_k = step % steps * bk..((step % steps + 1) * bk).min(k);
                    parts[(segment * tm + i) * tn + j] +=
                        of_k.map(|l| self.a_bt([row, column, l])).sum::<f64>();
                }
            }
        }
        parts
    }

    /// The sum of what the workers have of each tile.
    fn sum_of_shares(&self) -> Vec<f64> {
        let [m, n, segments] = ["M", "N", "SEGMENTS"].map(|name| self.size(name));
        let [tm, tn, share, steps, columns] =
            ["TILE_M", "TILE_N", "SHARE", "STEPS", "COLUMN_TILES"].map(|name| self.size(name));
        let element = |at: usize| {
            let (row, column) = (at / n, at % n);
            let tile = row / tm * columns + column / tn;
            let workers = tile * steps / share..=((tile + 1) * steps - 1) / share;
            let of = |worker: usize| {
                let segment = worker * segments + tile - worker * share / steps;
                self.of("parts")[(segment * tm + row % tm) * tn + column % tn]
            };
            workers.map(of).sum()
        };
        (0..m * n).map(element).collect()
    }
}

fn sorted(row: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&x, &y| row[x].total_cmp(&row[y]));
    order
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
    row.iter().map(|x| (x - most).exp() / sum).collect()
}

/// The error function by its series.
pub fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// What a kernel leaves; `None` for a kernel that has no plain loops here.
pub fn reference(kernel: &str, l: &ReadyLaunch<'_>) -> Option<Outputs> {
    let n = || l.size("N");
    Some(match kernel {
        "copy" | "copy_strided" => vec![("b", l.of("a").to_vec())],
        "transpose" => {
            let (m, n, a) = (l.size("M"), n(), l.of("a"));
            vec![("b", (0..m * n).map(|at| a[at % m * n + at / m]).collect())]
        }
        "permute" => l.permuted([0, 2, 1, 3]),
        "permute_reversed" => l.permuted([3, 2, 1, 0]),
        "gather" => {
            let (rows, n) = (l.size("ROWS") as f64, n());
            let row = |&id: &f64| match (0.0..rows).contains(&id) {
                true => l.of("table")[id as usize * n..][..n].to_vec(),
                false => vec![0.0; n],
            };
            vec![("out", l.of("ids").iter().flat_map(row).collect())]
        }
        "scatter_add" => {
            let (rows, n, mut table) = (l.size("ROWS") as f64, n(), l.of("table").to_vec());
            for (&id, row) in l.of("ids").iter().zip(l.rows("x")).filter(|(id, _)| (0.0..rows).contains(*id))
            {
                row.iter().enumerate().for_each(|(j, x)| table[id as usize * n + j] += x);
            }
            vec![("table", table)]
        }
        "histogram" => {
            let mut counts = l.of("counts").to_vec();
            for &x in l.of("x").iter().filter(|&&x| x >= 0.0 && x < counts.len() as f64).collect::<Vec<_>>() {
                counts[x as usize] += 1.0;
            }
            vec![("counts", counts)]
        }
        "add" => l.by_element(|at| l.of("a")[at] + l.of("b")[at]),
        "add_columns" => l.by_element(|at| l.of("a")[at] + l.of("b")[at % n()]),
        "mul" => l.by_element(|at| l.of("a")[at] * l.of("b")[at]),
        "silu_mul" => l.by_element(|at| l.of("a")[at] / (1.0 + (-l.of("a")[at]).exp()) * l.of("b")[at]),
        "gelu" => l.by_element(|at| l.of("a")[at] * (1.0 + erf(l.of("a")[at] / 2f64.sqrt())) / 2.0),
        "rope" | "rope_interleaved" => {
            let pairs = l.size("PAIRS");
            let angle = |token: usize, pair: usize| {
                (l.of("cos")[token * pairs + pair], l.of("sin")[token * pairs + pair])
            };
            l.rope(kernel == "rope_interleaved", angle)
        }
        "rope_positions" => l.rope(false, |token, pair| {
            let fraction = pair as f64 / l.size("PAIRS") as f64;
            let (sin, cos) = (l.of("positions")[token] * 1e4f64.powf(-fraction)).sin_cos();
            (cos, sin)
        }),
        "softmax" => l.by_row("a", "b", softmax),
        "log_softmax" => l.by_row("a", "b", |row| softmax(row).iter().map(|x| x.ln()).collect()),
        "layer_norm" | "layer_norm_residual" => l.norm(true, kernel == "layer_norm_residual"),
        "rms_norm" | "rms_norm_residual" => l.norm(false, kernel == "rms_norm_residual"),
        "row_sum" => l.by_row("a", "b", |row| vec![row.iter().sum()]),
        "row_max" => l.by_row("a", "b", |row| vec![row.iter().copied().fold(f64::MIN, f64::max)]),
        "row_argmax" => l.by_row("a", "b", |row| {
            let most = row.iter().copied().fold(f64::MIN, f64::max);
            vec![row.iter().position(|&x| x == most).unwrap_or(0) as f64]
        }),
        "cumsum" => l.by_row("a", "b", |row| (0..row.len()).map(|at| row[..=at].iter().sum()).collect()),
        "cumsum_exclusive" => {
            l.by_row("a", "b", |row| (0..row.len()).map(|at| row[..at].iter().sum()).collect())
        }
        "topk" => {
            let (mut values, mut places) = (Vec::new(), Vec::new());
            for row in l.rows("a") {
                // Sorting keeps the order of equal elements.
                let negative: Vec<f64> = row.iter().map(|x| -x).collect();
                let found = sorted(&negative).into_iter().map(|at| (row[at], at as f64));
                for (value, place) in found.chain(std::iter::repeat((f64::NAN, 0.0))).take(8) {
                    values.push(value);
                    places.push(place);
                }
            }
            vec![("values", values), ("places", places)]
        }
        "sort" => l.by_row("a", "b", |row| sorted(row).into_iter().map(|at| row[at]).collect()),
        "column_sum" => {
            vec![("b", (0..n()).map(|column| l.rows("a").map(|row| row[column]).sum()).collect())]
        }
        "gemm" | "persistent_gemm" => vec![("c", l.product(|at| l.a_bt(at), |sum, _, _| sum))],
        "gemm_ab" | "gemm_atb" | "gemm_atbt" => {
            let [m, n, k] = ["M", "N", "K"].map(|name| l.size(name));
            let (a, b) = (l.of("a"), l.of("b"));
            let part = |[i, j, e]: [usize; 3]| {
                let of_a = if kernel == "gemm_ab" { a[i * k + e] } else { a[e * m + i] };
                of_a * if kernel == "gemm_atbt" { b[j * k + e] } else { b[e * n + j] }
            };
            vec![("c", l.product(part, |sum, _, _| sum))]
        }
        "gemm_i8_scaled" => {
            vec![("c", l.product(|at| l.a_bt(at), |sum, _, j| sum * l.of("scale")[j] + l.of("bias")[j]))]
        }
        "gemm_bias_relu" => {
            vec![("c", l.product(|at| l.a_bt(at), |sum, _, j| (sum + l.of("bias")[j]).max(0.0)))]
        }
        "gemm_residual" => {
            vec![("c", l.product(|at| l.a_bt(at), |sum, i, j| sum + l.of("residual")[i * n() + j]))]
        }
        "gemm_f8_scaled" => {
            let end = |sum: f64, i: usize, j: usize| sum * l.of("row_scale")[i] * l.of("scale")[j];
            vec![("c", l.product(|at| l.a_bt(at), |sum, i, j| bf16::from_f64(end(sum, i, j)).to_f64()))]
        }
        "gemm_f8_blocks" => {
            let [m, blocks, block, scale_n] = ["M", "BLOCKS", "BLOCK_K", "SCALE_N"].map(|name| l.size(name));
            let scaled = |[i, j, e]: [usize; 3]| {
                let scale = l.of("a_scale")[e / block * m + i];
                l.a_bt([i, j, e]) * scale * l.of("b_scale")[j / scale_n * blocks + e / block]
            };
            vec![("c", l.product(scaled, |sum, _, _| sum))]
        }
        "gemm_mx" | "gemm_mx_w4" => {
            let [m, n] = ["M", "N"].map(|name| l.size(name));
            // Eight scales of each row side by side.
            let place = |rows: usize, row: usize, e: usize| (e / 256 * rows + row) * 8 + e / 32 % 8;
            let scaled = |[i, j, e]: [usize; 3]| {
                let scales = l.of("a_scale")[place(m, i, e)] * l.of("b_scale")[place(n, j, e)];
                l.a_bt([i, j, e]) * scales
            };
            vec![("c", l.product(scaled, |sum, _, _| sum))]
        }
        "gemm_mx_rows" => {
            let blocks = l.size("K").div_ceil(32);
            let scaled = |[i, j, e]: [usize; 3]| {
                let scales = l.of("a_scale")[i * blocks + e / 32] * l.of("b_scale")[j * blocks + e / 32];
                l.a_bt([i, j, e]) * scales
            };
            vec![("c", l.product(scaled, |sum, _, _| sum))]
        }
        "arrange_scales" => {
            let (rows, blocks, mut b) = (l.size("ROWS"), l.size("K").div_ceil(32), l.of("b").to_vec());
            for (at, &scale) in l.of("a").iter().enumerate() {
                let (row, block) = (at / blocks, at % blocks);
                b[(block / 8 * rows + row) * 8 + block % 8] = scale;
            }
            vec![("b", b)]
        }
        "batched_gemm" => {
            let [b, m, n, k] = ["B", "M", "N", "K"].map(|name| l.size(name));
            let element = |at: usize| {
                let (i, row, column) = (at / n / m, at / n % m, at % n);
                let part = |e: usize| l.of("a")[(i * m + row) * k + e] * l.of("b")[(i * n + column) * k + e];
                (0..k).map(part).sum()
            };
            vec![("c", (0..b * m * n).map(element).collect())]
        }
        "split_k_gemm" => {
            let [k, part] = ["K", "PART"].map(|name| l.size(name));
            let of = |s: usize| {
                let inside = move |e: usize| s * part <= e && e < ((s + 1) * part).min(k);
                l.product(|at| if inside(at[2]) { l.a_bt(at) } else { 0.0 }, |sum, _, _| sum)
            };
            vec![("parts", (0..l.size("SPLITS")).flat_map(of).collect())]
        }
        "split_k_sum" => {
            let all = l.size("M") * n();
            let sum = |at: usize| (0..l.size("SPLITS")).map(|s| l.of("parts")[s * all + at]).sum();
            vec![("c", (0..all).map(sum).collect())]
        }
        "split_k_gemm_atomic" => {
            vec![("c", l.product(|at| l.a_bt(at), |sum, i, j| sum + l.of("c")[i * n() + j]))]
        }
        "stream_k_gemm" => vec![("parts", l.shares())],
        "stream_k_sum" => vec![("c", l.sum_of_shares())],
        "grouped_gemm" => {
            let [blocks, rows, n, k, experts] =
                ["BLOCKS", "ROWS", "N", "K", "EXPERTS"].map(|name| l.size(name));
            let element = |at: usize| {
                let (block, row, column) = (at / n / rows, at / n % rows, at % n);
                let expert = l.of("expert_of_block")[block];
                if !(0.0..experts as f64).contains(&expert) {
                    return 0.0;
                }
                let (a, b) = ((block * rows + row) * k, (expert as usize * n + column) * k);
                (0..k).map(|e| l.of("a")[a + e] * l.of("b")[b + e]).sum()
            };
            vec![("c", (0..blocks * rows * n).map(element).collect())]
        }
        "int4_gemm" => vec![("c", l.int4_parts(128, l.size("K")))],
        "int4_gemm_zeros" => vec![("c", l.int4_parts(32, l.size("K")))],
        "int4_gemm_parts" => vec![("parts", l.int4_parts(128, l.size("SPLIT")))],
        "mxfp4_gemm" => l.mxfp4(),
        "arrange_int4" => l.arranged_int4(),
        "arrange_mxfp4" => l.arranged_mxfp4(),
        "moe_route" => l.routed(2),
        "moe_route_groups" => l.routed_in_groups(4, 2, 2.5),
        "moe_sort" => l.sorted_choices(),
        "moe_gate_up" => l.gated(|row| l.token(row, 2)),
        "moe_gate_up_gathered" => l.gated(Some),
        "moe_down" => l.downs(),
        "moe_down_atomic" => l.added_downs(2),
        "moe_combine" => l.combined(2),
        "moe_gate_up_f8" => l.hidden_scales(),
        "moe_down_f8" => l.scaled_downs(),
        "chained_gemm" => {
            let [m, of_l, n, k] = ["M", "L", "N", "K"].map(|name| l.size(name));
            // Sums of the first product are rounded.
            let first = |at: usize| f16::from_f64((0..k).map(|e| l.a_bt([at / of_l, at % of_l, e])).sum());
            let first: Vec<f64> = (0..m * of_l).map(|at| first(at).to_f64()).collect();
            let part = |i: usize, j: usize, e: usize| first[i * of_l + e] * l.of("c")[j * of_l + e];
            let element = |at: usize| (0..of_l).map(|e| part(at / n, at % n, e)).sum();
            vec![("d", (0..m * n).map(element).collect())]
        }
        "attention" => l.attention(1, None)[..1].to_vec(),
        "attention_causal" => l.attention(1, Some(0)),
        "attention_grouped" => l.attention(l.size("GROUP"), None)[..1].to_vec(),
        "attention_backward_rows" => {
            let sums = l.of("log_sum_exp").iter().map(|sum| -sum * std::f64::consts::LOG2_E).collect();
            let rows = l.of("o").chunks(l.size("D")).zip(l.of("do").chunks(l.size("D")));
            let deltas = rows.map(|(o, of_o)| -o.iter().zip(of_o).map(|(a, b)| a * b).sum::<f64>());
            vec![("minus_log_sum_exp", sums), ("minus_delta", deltas.collect())]
        }
        "attention_backward_queries" => l.gradients(1)[..1].to_vec(),
        "attention_backward_keys" => l.gradients(1)[1..2].to_vec(),
        "attention_backward_values" => l.gradients(1)[2..].to_vec(),
        "attention_backward_keys_and_values" => l.gradients(l.size("GROUP"))[1..].to_vec(),
        "attention_backward_sinks" => {
            let [batch, heads, m] = ["B", "H", "M"].map(|name| l.size(name));
            let of_row = |row: usize| {
                let exponent = l.of("sinks")[row / m % heads] * std::f64::consts::LOG2_E;
                (exponent + l.of("minus_log_sum_exp")[row]).exp2() * l.of("minus_delta")[row]
            };
            let of_head =
                |head: usize| (0..batch * heads * m).filter(|row| row / m % heads == head).map(of_row).sum();
            vec![("dsinks", (0..heads).map(of_head).collect())]
        }
        "conv2d" => l.conv(true, 1),
        "conv2d_nchw" => l.conv(false, 1),
        "conv2d_grouped" => l.conv(true, 4),
        "depthwise_conv2d" => l.depthwise(),
        "paged_decode" => l.parts(["k", "v"], l.size("D"), 32),
        "latent_decode" => l.parts(["cache", "cache"], l.size("DV"), 16),
        "paged_decode_combine" => l.joined_parts(),
        "paged_extend" => l.extended(),
        "paged_append" => l.appended(),
        _ => return None,
    })
}
