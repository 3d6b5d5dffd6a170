//! The text of a kernel of chained products.

use std::fmt::Write;

use groundswell::options::{GlobalToShared, MaskedTiles, Schedule, UnitFactors};
use groundswell::target::Target;

use super::super::Choices;
use super::case::{Case, Size};
use crate::schedules;

/// The dtypes of a chain.
#[derive(Copy, Clone)]
pub(super) struct Dtypes {
    /// Of the factors of the first product, and of those of the second.
    pub(super) factors: [&'static str; 2],
    pub(super) sum: &'static str,
}

impl Dtypes {
    fn new(choices: &mut Choices<'_>, target: Target) -> Dtypes {
        let narrow = if target == Target::GFX950 {
            "f8e4m3fn"
        } else if target == Target::GFX942 {
            "f8e4m3fnuz"
        } else {
            "f16"
        };
        match choices.below(8) {
            6 => Dtypes { factors: ["i8", "i8"], sum: "i32" },
            7 if target != Target::GFX908 => Dtypes { factors: ["f64", "f64"], sum: "f64" },
            kind => {
                let floats = ["f16", "bf16", narrow, "f32"];
                let first = floats[[0, 0, 1, 1, 2, 3, 0, 0][kind]];
                let second = if choices.sometimes(4) { choices.one(&floats) } else { first };
                Dtypes { factors: [first, second], sum: "f32" }
            }
        }
    }

    pub(super) fn is_float(self) -> bool {
        self.sum != "i32"
    }

    /// A number in the text of a constant.
    pub(super) fn number(self, number: i32) -> String {
        if self.is_float() { format!("{number}.0") } else { number.to_string() }
    }

    fn tolerance(self) -> f64 {
        match self.factors[1] {
            "f8e4m3fn" | "f8e4m3fnuz" => 0.125,
            "bf16" => 8e-3,
            _ if self.sum == "i32" => 0.0,
            _ => 2e-3,
        }
    }
}

/// What is written so far, and how values are laid out.
pub(super) struct Generator<'a, 'b> {
    pub(super) choices: &'a mut Choices<'b>,
    pub(super) dtypes: Dtypes,
    /// In front of the dimensions of all tensors: heads, if there are any.
    pub(super) head: &'static str,
    /// The dimensions of what a first product makes: `L, X` or `X, L`.
    pub(super) scores: &'static str,
    /// The dimensions of sums: `E, X` or `X, E`.
    sums: &'static str,
    pub(super) memories: String,
    pub(super) body: String,
    depth: usize,
    /// Numbers handed out to values, and to memories.
    count: usize,
    named: usize,
}

impl Generator<'_, '_> {
    pub(super) fn line(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{}{text}", "  ".repeat(self.depth + 1));
    }

    /// A new value.
    pub(super) fn value(&mut self, text: &str) -> usize {
        self.count += 1;
        let number = self.count;
        self.line(&format!("%v{number} = {text}"));
        number
    }

    /// A new memory of these dimensions behind those of heads; its name.
    pub(super) fn memory(&mut self, dims: &str, space: &str, dtype: &str) -> String {
        self.named += 1;
        let (name, head) = (format!("m{}", self.named), self.head);
        let _ = writeln!(self.memories, "  {name} = memory [{head}{dims}] {space} {dtype}");
        name
    }

    /// A factor from a new memory of two dimensions in some order.
    fn factor(&mut self, [a, b]: [&str; 2], dtype: &str) -> usize {
        let dims = if self.choices.sometimes(4) { format!("{b}, {a}") } else { format!("{a}, {b}") };
        let space = self.choices.one(&["shared", "shared", "global"]);
        let name = self.memory(&dims, space, dtype);
        self.value(&format!("read {name}"))
    }

    pub(super) fn zeros(&mut self, dims: &str) -> usize {
        let (head, sum, zero) = (self.head, self.dtypes.sum, self.dtypes.number(0));
        self.value(&format!("register [{head}{dims}] {sum} {zero}"))
    }

    /// A product of `[along, ..]` and `[across, ..]` in the order that `dims` has them, added to `to`.
    fn product(&mut self, dims: &str, [(along, a), (_, b)]: [(&str, usize); 2], to: usize) -> usize {
        let [a, b] = if dims.starts_with(along) { [a, b] } else { [b, a] };
        self.value(&format!("mma %v{a}, %v{b}, %v{to}"))
    }

    /// The opening of a loop that carries new values from `inits` on: its results and its arguments.
    fn open(&mut self, dim: &str, inits: &[usize]) -> [Vec<usize>; 2] {
        let carried = inits.len();
        let results: Vec<usize> = (1..=carried).map(|at| self.count + at).collect();
        let arguments: Vec<usize> = results.iter().map(|result| result + carried).collect();
        self.count += 2 * carried;
        let bound: Vec<String> =
            arguments.iter().zip(inits).map(|(to, from)| format!("%v{to} = %v{from}")).collect();
        self.line(&format!("{} = iterate {dim} ({}) {{", names(&results), bound.join(", ")));
        self.depth += 1;
        [results, arguments]
    }

    fn close(&mut self, yields: &[usize]) {
        self.line(&format!("yield {}", names(yields)));
        self.depth -= 1;
        self.line("}");
    }

    /// The first product of an iteration: of `[X, D]`, which `query` is if it was read before, and `[L, D]`.
    fn first(&mut self, query: Option<usize>, is_tiled: bool) -> usize {
        let (scores, dtype) = (self.scores, self.dtypes.factors[0]);
        let mut sum = self.zeros(scores);
        let opened = is_tiled.then(|| self.open("D", &[sum]));
        if let Some([_, arguments]) = &opened {
            sum = arguments[0];
        }
        let key = self.factor(["L", "D"], dtype);
        let query = match query {
            Some(query) => query,
            None => self.factor(["X", "D"], dtype),
        };
        let made = self.product(scores, [("L", key), ("X", query)], sum);
        match opened {
            Some([results, _]) => {
                self.close(&[made]);
                results[0]
            }
            None => made,
        }
    }

    /// `[E, X]` of `weights` and a new factor `[L, E]`, added to `to`.
    fn second(&mut self, weights: usize, to: usize) -> usize {
        let value = self.factor(["L", "E"], self.dtypes.factors[1]);
        self.product(self.sums, [("E", value), ("X", weights)], to)
    }

    /// The results of a chain in a loop over L, which go on from `before` if there was such a loop before.
    fn chain(&mut self, shape: Shape, before: Option<&[usize]>) -> Vec<usize> {
        let query = (!shape.is_tiled && !self.choices.sometimes(3)).then(|| {
            let query = self.factor(["X", "D"], self.dtypes.factors[0]);
            if self.choices.sometimes(4) && self.dtypes.sum == "f32" && !self.dtypes.factors[0].contains("f8")
            {
                self.value(&format!("mul %v{query}, 0.5"))
            } else {
                query
            }
        });
        let inits = match before {
            Some(before) => before.to_vec(),
            None => self.inits(shape),
        };
        let [results, arguments] = self.open("L", &inits);
        let mut score = self.first(query, shape.is_tiled);
        let other = shape.has_two_firsts.then(|| self.first(query, shape.is_tiled));
        score = self.scored(score, other);
        let mut yields = Vec::new();
        let sums = &arguments[shape.carried()..];
        let (weights, factor) = match shape.softmax {
            Some(softmax) => {
                let parts = self.softmax(softmax, score, &arguments[..shape.carried()]);
                yields.extend(parts.carried);
                (parts.weights, parts.factor)
            }
            None => (score, None),
        };
        for (at, &sum) in sums.iter().enumerate() {
            let own = if at > 0 && self.choices.sometimes(2) { self.step(weights) } else { weights };
            let own = self.cast(own);
            let sum = match factor {
                Some(factor) => self.value(&format!("mul %v{sum}, %v{factor}")),
                None => sum,
            };
            yields.push(if shape.has_third { self.third(own, sum) } else { self.second(own, sum) });
        }
        self.close(&yields);
        results
    }

    /// What the loop begins with.
    fn inits(&mut self, shape: Shape) -> Vec<usize> {
        let mut inits = match shape.softmax {
            Some(softmax) => self.softmax_inits(softmax),
            None => Vec::new(),
        };
        for _ in 0..shape.sums {
            let dims = if shape.has_third { "F, X" } else { self.sums };
            inits.push(self.zeros(dims));
        }
        inits
    }

    /// `weights` times `[L, E]`, cast, times `[F, E]`, added to `to`: a chain of three.
    fn third(&mut self, weights: usize, to: usize) -> usize {
        let zeros = self.zeros(self.sums);
        let mut middle = self.second(weights, zeros);
        if self.choices.sometimes(2) {
            middle = self.step(middle);
        }
        let middle = self.cast(middle);
        let last = self.factor(["F", "E"], self.dtypes.factors[1]);
        self.product("F, X", [("F", last), ("X", middle)], to)
    }

    /// A sum as the dtype of the second product's factors.
    fn cast(&mut self, from: usize) -> usize {
        let Dtypes { factors: [_, to], sum } = self.dtypes;
        if to == sum {
            return from;
        }
        let from = match sum {
            "i32" => {
                let above = self.value(&format!("max %v{from}, -100"));
                self.value(&format!("min %v{above}, 100"))
            }
            _ => from,
        };
        self.value(&format!("cast %v{from} {to}"))
    }

    /// The results of the loops, divided by the sum of weights or not, end in memories.
    fn finish(&mut self, shape: Shape, results: &[usize]) {
        let dims = if shape.has_third { "F, X" } else { self.sums };
        let (parts, sums) = results.split_at(shape.carried());
        let weight = shape.softmax.and_then(|softmax| softmax.weight()).map(|at| parts[at]);
        for &sum in sums {
            let result = match weight {
                Some(weight) if !self.choices.sometimes(4) => self.value(&format!("div %v{sum}, %v{weight}")),
                _ => sum,
            };
            let rows = if shape.has_third || dims == "E, X" { "X, E" } else { dims };
            let dims = if shape.has_third { "X, F" } else { rows };
            let memory = self.memory(dims, "global", self.dtypes.sum);
            self.line(&format!("write %v{result}, {memory}"));
        }
        for &part in parts {
            if self.choices.sometimes(4) {
                let memory = self.memory("X", "global", self.dtypes.sum);
                self.line(&format!("write %v{part}, {memory}"));
            }
        }
    }
}

fn names(values: &[usize]) -> String {
    values.iter().map(|v| format!("%v{v}")).collect::<Vec<_>>().join(", ")
}

/// What a kernel has.
#[derive(Copy, Clone)]
struct Shape {
    softmax: Option<super::softmax::Softmax>,
    /// Sums that the loop carries, one or two.
    sums: usize,
    has_two_firsts: bool,
    has_third: bool,
    /// The first product has a loop over D.
    is_tiled: bool,
}

impl Shape {
    /// The values that the loop carries for its softmax.
    fn carried(self) -> usize {
        self.softmax.map_or(0, super::softmax::Softmax::carried)
    }
}

/// Tiles and waves: the constraints, and the sizes.
fn distribution(
    choices: &mut Choices<'_>,
    shape: Shape,
    has_heads: bool,
    has_outer: bool,
) -> (String, Vec<Size>) {
    let edge = choices.one(&[16, 16, 32]);
    let waves = choices.one(&[1, 2, 4, 8]);
    // Large tiles take long, and few waves can have them as well.
    let rows = edge * if waves > 2 { 1 } else { choices.one(&[1, 1, 2]) };
    let block = rows * waves;
    let tile = edge.max(32) * choices.one(&[1, 2, 1]) / if edge == 16 { choices.one(&[1, 1, 2]) } else { 1 };
    let trips = 1 + choices.below(6) as i64;
    let ragged = choices.one(&[0, 0, 5, -3, 17]);
    let length = (tile * trips + ragged).max(1);
    let widths = [block, 1, block / 2 + 3, block + 1, 2 * block, 2 * block - 5];
    let width = choices.one(&widths[..if block > 64 { 4 } else { 6 }]);
    let depth = choices.one(&[32, 16, 64, 24, 5, 40]);
    let mut sizes: Vec<Size> = vec![
        ("X", width, choices.sometimes(4)),
        ("L", length, choices.sometimes(3)),
        ("D", depth, shape.is_tiled && choices.sometimes(2)),
        ("E", choices.one(&[16, 32, 64, 20, 9]), false),
    ];
    let mut text =
        format!("  workgroup X, {block}, 0\n  tile L, {tile}\n  wave X, {rows}\n  mma {edge}x{edge}\n");
    if has_heads {
        text.push_str("  workgroup H, 1, 1\n");
        sizes.push(("H", 2, choices.sometimes(4)));
    }
    if shape.is_tiled {
        let _ = writeln!(text, "  tile D, {}", choices.one(&[32, 64]));
    }
    if has_outer {
        let _ = writeln!(text, "  tile J, {}", choices.one(&[32, 64]));
        sizes.push(("J", choices.one(&[32, 64, 70]), choices.sometimes(3)));
    }
    if shape.has_third {
        sizes.push(("F", choices.one(&[16, 32, 20]), false));
    } else if choices.sometimes(6) {
        let _ = writeln!(text, "  workgroup E, {edge}, 2");
    }
    if choices.sometimes(10) {
        let _ = writeln!(text, "  persistent {}", choices.one(&[1, 3]));
    }
    (text, sizes)
}

/// A kernel with sizes and options, all by choice.
pub(super) fn case(choices: &mut Choices<'_>) -> Case {
    let target = choices.one(&[
        Target::GFX942,
        Target::GFX950,
        Target::GFX90A,
        Target::GFX942,
        Target::GFX950,
        Target::GFX908,
        Target::GFX906,
    ]);
    let schedule = match choices.below(16) {
        at @ 0..10 => schedules::ALL[at].clone(),
        10 | 11 => Schedule::TwoPhase,
        12 | 13 => Schedule::Clusters,
        _ => Schedule::Automatic,
    };
    let loads = if choices.sometimes(4) { GlobalToShared::Fitting } else { GlobalToShared::default() };
    let masked = if choices.sometimes(4) { MaskedTiles::Visit } else { MaskedTiles::Skip };
    let factors = if choices.sometimes(4) { UnitFactors::Multiply } else { UnitFactors::default() };
    let dtypes = Dtypes::new(choices, target);
    let softmax =
        (dtypes.sum == "f32" && choices.below(3) < 2).then(|| super::softmax::Softmax::new(choices));
    let shape = Shape {
        softmax,
        sums: 1 + usize::from(choices.sometimes(3)),
        has_two_firsts: choices.sometimes(5),
        has_third: choices.sometimes(8),
        is_tiled: choices.sometimes(8),
    };
    let (has_heads, has_outer) = (choices.sometimes(4), !shape.has_third && choices.sometimes(8));
    let (constraints, sizes) = distribution(choices, shape, has_heads, has_outer);
    let mut generator = Generator {
        dtypes,
        head: if has_heads { "H, " } else { "" },
        scores: if choices.sometimes(3) { "X, L" } else { "L, X" },
        sums: if choices.sometimes(2) { "X, E" } else { "E, X" },
        choices,
        memories: String::new(),
        body: String::new(),
        depth: 0,
        count: 0,
        named: 0,
    };
    let results = match has_outer {
        true => generator.in_a_loop(shape),
        false => {
            let results = generator.chain(shape, None);
            if generator.choices.sometimes(10) { generator.chain(shape, Some(&results)) } else { results }
        }
    };
    generator.finish(shape, &results);
    let Generator { memories, body, .. } = generator;
    let text = format!("kernel chain {{\n{constraints}{memories}{body}}}\n");
    Case { text, sizes, target, schedule, loads, masked, factors, tolerance: dtypes.tolerance() }
}

impl Generator<'_, '_> {
    /// A chain in a loop over J, which adds a product to the first sum.
    fn in_a_loop(&mut self, shape: Shape) -> Vec<usize> {
        let inits = self.inits(shape);
        let [results, arguments] = self.open("J", &inits);
        let dtype = self.dtypes.factors[0];
        let [a, b] = [self.factor(["E", "J"], dtype), self.factor(["X", "J"], dtype)];
        let mut made = self.chain(shape, Some(&arguments));
        let sum = made[shape.carried()];
        made[shape.carried()] = self.product(self.sums, [("E", a), ("X", b)], sum);
        self.close(&made);
        results
    }
}
