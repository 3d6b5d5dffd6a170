//! Values of values: element-wise operations, reductions, scans and products.

use super::generator::{DIMS, DTYPES, DimSet, Generator, K, M, N, Spread, Value, list, names};

/// Functions whose results may differ from the interpreter's in their last bits, so that no comparison and no
/// rounding may follow: they are written as they are.
const APPROXIMATE: [&str; 21] = [
    "exp",
    "log2",
    "reciprocal",
    "tanh",
    "rsqrt",
    "cbrt",
    "log",
    "log10",
    "log1p",
    "expm1",
    "sin",
    "cos",
    "sinh",
    "cosh",
    "erf",
    "sigmoid",
    "silu",
    "gelu",
    "gelu_tanh",
    "sqrt",
    "exp2",
];

impl Generator<'_, '_> {
    /// `value` joined with `other`, which is folded and cast for it; `value` alone where that cannot be done.
    pub(super) fn joined(&mut self, value: Value, other: Value) -> Value {
        let surplus: Vec<usize> = (0..3).filter(|dim| (other.dims & !value.dims) >> dim & 1 != 0).collect();
        if surplus.iter().any(|dim| self.spread[*dim] == Spread::Workgroups) {
            return value;
        }
        let mut other = other;
        for dim in surplus {
            let word = self.choices.one(&["reduce_max", "reduce_sum"]);
            let word = if self.may_sum(other.dtype) { word } else { "reduce_max" };
            let text = format!("{word} %v{} over {}", other.id, DIMS[dim]);
            other = self.value(other.dims & !(1 << dim), other.dtype, &text);
        }
        if other.dtype != value.dtype {
            other = self.value(other.dims, value.dtype, &format!("cast %v{} {}", other.id, value.dtype));
        }
        let word = self.choices.one(&["add", "max", "sub"]);
        self.value(value.dims, value.dtype, &format!("{word} %v{}, %v{}", value.id, other.id))
    }

    pub(super) fn constant(&mut self) -> Value {
        let (dims, dtype) = (self.dims(), self.choices.one(&DTYPES));
        let at = self.choices.below(4);
        let number = match dtype {
            "f8e8m0" => ["1.0", "0.5", "4.0", "2.0"][at],
            "f32" | "f64" | "f16" | "bf16" => ["0.0", "1.0", "-2.5", "-0.0"][at],
            "f8e4m3fnuz" | "f8e5m2fnuz" | "f8e4m3fn" | "f8e5m2" => ["0.0", "1.0", "-2.5", "0.25"][at],
            "f4e2m1" | "f6e2m3" | "f6e3m2" => ["0.0", "1.0", "-3.0", "0.5"][at],
            _ => ["0", "1", "-3", "100"][at],
        };
        self.value(dims, dtype, &format!("register [{}] {dtype} {number}", list(dims)))
    }

    pub(super) fn place(&mut self) -> Value {
        let dim = self.choices.below(3);
        match self.around() >> dim & 1 {
            0 => self.value(0, "i32", &format!("size {}", DIMS[dim])),
            _ => self.value(1 << dim, "i32", &format!("self_index {}", DIMS[dim])),
        }
    }

    pub(super) fn arithmetic(&mut self) -> Value {
        let a = self.any();
        let b = self.partner(a);
        let words: &[&str] = match a.is_float() {
            true => &["add", "sub", "mul", "min", "max", "div"],
            false => &[
                "add",
                "sub",
                "mul",
                "min",
                "max",
                "and",
                "or",
                "xor",
                "floor_div",
                "rem",
                "div",
                "shift_left",
                "shift_right",
            ],
        };
        let word = self.choices.one(words);
        self.value(a.dims | b.dims, a.dtype, &format!("{word} %v{}, %v{}", a.id, b.id))
    }

    pub(super) fn fma(&mut self) -> Option<Value> {
        let floats: Vec<Value> = self.values.iter().copied().filter(|v| v.is_float()).collect();
        let a = self.choices.one(floats.get(floats.len().saturating_sub(4)..).filter(|all| !all.is_empty())?);
        let (b, c) = (self.partner(a), self.partner(a));
        let dims = a.dims | b.dims | c.dims;
        // One operand has all dimensions.
        if [a, b, c].iter().all(|v| v.dims != dims) {
            return None;
        }
        Some(self.value(dims, a.dtype, &format!("fma %v{}, %v{}, %v{}", a.id, b.id, c.id)))
    }

    pub(super) fn unary(&mut self) -> Value {
        let a = self.any();
        let words: &[&str] = match (a.dtype, a.is_float()) {
            (_, true) if self.is_exact => {
                &["abs", "neg", "floor", "reciprocal", "ceil", "trunc", "round_even", "round"]
            }
            ("f64", _) => &["abs", "neg", "floor", "sqrt", "ceil", "trunc", "round_even", "round"],
            (_, true) => &["abs", "neg", "floor", "exp2", "ceil", "trunc", "round_even", "round"],
            (_, false) => &["abs", "neg", "not"],
        };
        let word = self.choices.one(words);
        self.value(a.dims, a.dtype, &format!("{word} %v{}", a.id))
    }

    pub(super) fn cast(&mut self) -> Value {
        let (a, dtype) = (self.any(), self.choices.one(&DTYPES));
        self.value(a.dims, dtype, &format!("cast %v{} {dtype}", a.id))
    }

    /// A function of a value that is about to be written; the value itself where it has none.
    pub(super) fn approximated(&mut self, value: Value) -> Value {
        if self.is_exact || !matches!(value.dtype, "f32" | "f16" | "bf16") || !self.choices.sometimes(3) {
            return value;
        }
        let word = self.choices.one(&APPROXIMATE);
        self.result(value.dims, value.dtype, &format!("{word} %v{}", value.id))
    }

    /// A scalar argument joined with a value of its dtype.
    pub(super) fn scalar(&mut self) -> Option<Value> {
        let is_scalar = |v: &&Value| matches!(v.dtype, "f32" | "f64" | "i32" | "i64");
        let all: Vec<Value> = self.values.iter().filter(is_scalar).copied().collect();
        if all.is_empty() {
            return None;
        }
        let value = self.recent(&all);
        let at = self.declared();
        self.declarations += &format!("  s{at} = scalar {}\n", value.dtype);
        let word = self.choices.one(&["add", "mul", "min", "sub"]);
        let text = match self.choices.below(2) {
            0 => format!("{word} %v{}, s{at}", value.id),
            _ => format!("{word} s{at}, %v{}", value.id),
        };
        Some(self.value(value.dims, value.dtype, &text))
    }

    pub(super) fn choice(&mut self) -> Value {
        let a = self.any();
        let b = self.partner(a);
        let predicate = self.choices.one(&["lt", "ge", "eq", "ne", "le", "gt"]);
        let condition =
            self.value(a.dims | b.dims, "i1", &format!("compare {predicate} %v{}, %v{}", a.id, b.id));
        let (yes, no) = match self.choices.below(2) {
            0 => (a, b),
            _ => (b, a),
        };
        let text = format!("select %v{}, %v{}, %v{}", condition.id, yes.id, no.id);
        self.value(a.dims | b.dims, a.dtype, &text)
    }

    pub(super) fn reduction(&mut self) -> Option<Value> {
        let (a, dim) = self.with_foldable()?;
        let dims = self.foldable(a);
        let words: &[&str] = match self.may_sum(a.dtype) {
            true => &["reduce_sum", "reduce_max", "reduce_min", "reduce_product"],
            false => &["reduce_min", "reduce_max"],
        };
        let word = self.choices.one(words);
        if dims.len() > 1 && self.choices.sometimes(3) {
            let all: DimSet = dims.iter().fold(0, |all, dim| all | 1 << dim);
            let text = format!("{word} %v{} over [{}]", a.id, list(all));
            return Some(self.value(a.dims & !all, a.dtype, &text));
        }
        Some(self.value(a.dims & !(1 << dim), a.dtype, &format!("{word} %v{} over {}", a.id, DIMS[dim])))
    }

    /// Dimensions of a value of which a workgroup has all that it sees.
    pub(super) fn foldable(&self, value: Value) -> Vec<usize> {
        let foldable = |dim: &usize| value.dims >> dim & 1 != 0 && self.spread[*dim] != Spread::Workgroups;
        (0..3).filter(foldable).collect()
    }

    /// A value, and a dimension of it that may be folded.
    fn with_foldable(&mut self) -> Option<(Value, usize)> {
        let mut all = self.numbers();
        all.retain(|v| !self.foldable(*v).is_empty());
        if all.is_empty() {
            return None;
        }
        let value = self.recent(&all);
        let dims = self.foldable(value);
        Some((value, self.choices.one(&dims)))
    }

    pub(super) fn scan(&mut self) -> Option<Value> {
        let (a, dim) = self.with_foldable()?;
        if self.spread[dim] == Spread::No && self.elements(a.dims) <= 512 && self.choices.sometimes(3) {
            return Some(self.sorted(a, dim));
        }
        if !self.may_sum(a.dtype) {
            return None;
        }
        let word = self.choices.one(&["cumsum", "cumsum_exclusive"]);
        Some(self.value(a.dims, a.dtype, &format!("{word} %v{} over {}", a.id, DIMS[dim])))
    }

    /// The elements in order, or their places, which those of 64 bits do not have.
    fn sorted(&mut self, value: Value, dim: usize) -> Value {
        let places = !value.dtype.ends_with("64") && self.choices.sometimes(2);
        let (words, dtype) = match places {
            true => (["argsort", "argsort_descending"], "i32"),
            false => (["sort", "sort_descending"], value.dtype),
        };
        let word = self.choices.one(&words);
        self.value(value.dims, dtype, &format!("{word} %v{} over {}", value.id, DIMS[dim]))
    }

    pub(super) fn factors(&mut self) -> Option<Value> {
        let there = M | N | K;
        let (factor, sum) = self.product.filter(|_| self.around() == there)?;
        if !self.may_sum(sum) {
            return None;
        }
        let operand = |this: &mut Self, dims: DimSet, dtype: &'static str| {
            let fits = |v: &&Value| v.dims == dims && v.dtype == dtype;
            let all: Vec<Value> = this.values.iter().filter(fits).copied().collect();
            if all.is_empty() || this.choices.sometimes(3) {
                let mut shape = names(dims);
                if this.choices.sometimes(3) {
                    shape.reverse();
                }
                let memory = this.memory(&shape, dtype);
                return this.value(dims, dtype, &format!("read m{memory}"));
            }
            this.choices.one(&all)
        };
        let (a, b) = (operand(self, M | K, factor), operand(self, N | K, factor));
        let (a, b) = (self.computed(a), self.computed(b));
        let c = match self.values.iter().rev().find(|v| v.dims == M | N && v.dtype == sum).copied() {
            Some(c) if !self.choices.sometimes(3) => c,
            _ => self.value(M | N, sum, &format!("register [M, N] {sum} 0")),
        };
        Some(self.value(M | N, sum, &format!("mma %v{}, %v{}, %v{}", a.id, b.id, c.id)))
    }

    /// A factor, or what arithmetic makes of it: of the zeros beyond the end of a dimension, too.
    fn computed(&mut self, factor: Value) -> Value {
        let Value { id, dims, dtype } = factor;
        let has_infinities = matches!(dtype, "f16" | "bf16" | "f32" | "f64");
        let text = match self.choices.below(6) {
            0 if has_infinities => format!("reciprocal %v{id}"),
            1 if has_infinities => format!("mul %v{id}, inf"),
            2 if has_infinities => format!("max %v{id}, -inf"),
            3 if has_infinities => format!("sub 0.5, %v{id}"),
            3 => format!("sub 1, %v{id}"),
            _ => return factor,
        };
        self.value(dims, dtype, &text)
    }

    /// A cast to a narrow float, of sums many of which lie half-way between two of its numbers: of multiples
    /// of a sixteenth, which arguments are, and of smaller ones.
    pub(super) fn rounded(&mut self) -> Option<Value> {
        let (dtype, small) = self.choices.one(&[
            ("bf16", "0.03125"),
            ("f16", "0.00390625"),
            ("f8e4m3fnuz", "0.5"),
            ("f8e5m2", "0.5"),
        ]);
        let is_source = |v: &&Value| matches!(v.dtype, "f32" | "f64");
        let sources: Vec<Value> = self.values.iter().filter(is_source).copied().collect();
        let large = match sources.is_empty() {
            true => {
                let dims = self.dims();
                let memory = self.memory(&names(dims), "f32");
                self.value(dims, "f32", &format!("read m{memory}"))
            }
            false => self.recent(&sources),
        };
        let other = self.partner(large);
        let small = self.result(0, large.dtype, &format!("register [] {} {small}", large.dtype));
        let part = self.result(other.dims, large.dtype, &format!("mul %v{}, %v{}", other.id, small.id));
        let dims = large.dims | other.dims;
        let sum = self.result(dims, large.dtype, &format!("add %v{}, %v{}", large.id, part.id));
        Some(self.value(dims, dtype, &format!("cast %v{} {dtype}", sum.id)))
    }

    /// What is made of several operations: places of extrema, the largest elements, a mean.
    pub(super) fn derived(&mut self) -> Option<Value> {
        let (a, dim) = self.with_foldable()?;
        let (folded, over) = (a.dims & !(1 << dim), DIMS[dim]);
        match self.choices.below(4) {
            0 => Some(self.value(folded, "i32", &format!("argmax %v{} over {over}", a.id))),
            1 => Some(self.value(folded, "i32", &format!("argmin %v{} over {over}", a.id))),
            2 if a.is_float() && !self.is_exact => {
                Some(self.value(folded, a.dtype, &format!("mean %v{} over {over}", a.id)))
            }
            _ if self.spread[dim] == Spread::No && a.is_float() => {
                let first = self.next;
                self.next += 4;
                let results: Vec<String> = (first..first + 4).map(|id| format!("%v{id}")).collect();
                self.line(&format!("{} = topk %v{} over {over}", results.join(", "), a.id));
                let result = |at: usize| {
                    let dtype = if at.is_multiple_of(2) { a.dtype } else { "i32" };
                    Value { id: first + at, dims: folded, dtype }
                };
                self.values.extend((0..4).map(result));
                Some(result(2))
            }
            _ => None,
        }
    }

    /// A choice by a condition that is made of others.
    pub(super) fn condition(&mut self) -> Option<Value> {
        let chosen = self.choice();
        let is_condition = |v: &&Value| v.dtype == "i1" && v.id < chosen.id;
        let all: Vec<Value> = self.values.iter().filter(is_condition).copied().collect();
        let a = self.recent(&all);
        let dims = self.foldable(a);
        let condition = match self.choices.below(3) {
            0 if !dims.is_empty() => {
                let dim = self.choices.one(&dims);
                let word = self.choices.one(&["any", "all"]);
                self.value(a.dims & !(1 << dim), "i1", &format!("{word} %v{} over {}", a.id, DIMS[dim]))
            }
            1 => self.value(a.dims, "i1", &format!("not %v{}", a.id)),
            _ => {
                let b = self.partner(a);
                let word = self.choices.one(&["and", "or", "xor"]);
                self.value(a.dims | b.dims, "i1", &format!("{word} %v{}, %v{}", a.id, b.id))
            }
        };
        let yes = self.any();
        let no = self.partner(yes);
        let dims = condition.dims | yes.dims | no.dims;
        // One operand has all dimensions.
        if [condition, yes, no].iter().all(|v| v.dims != dims) {
            return None;
        }
        let text = format!("select %v{}, %v{}, %v{}", condition.id, yes.id, no.id);
        Some(self.value(dims, yes.dtype, &text))
    }

    /// The value of an expression over sizes and values.
    pub(super) fn expression(&mut self) -> Option<Value> {
        let is_number = |v: &&Value| v.dtype == "i32";
        let all: Vec<Value> = self.values.iter().filter(is_number).copied().collect();
        if all.is_empty() || self.choices.sometimes(3) {
            let (dims, dtype) = (self.dims(), self.choices.one(&["i32", "f32", "i64", "bf16"]));
            let number = self.choices.one(&["N // 2 + 1", "L * 3", "M - K", "L % 5"]);
            return Some(self.value(dims, dtype, &format!("register [{}] {dtype} ({number})", list(dims))));
        }
        let a = self.recent(&all);
        let text = match self.choices.below(4) {
            0 => format!("apply_expr %v{} * 2 + N", a.id),
            1 => format!("apply_expr %v{} // 3 - L", a.id),
            2 => format!("apply_expr %v{} % 7 * M", a.id),
            _ => format!("apply_expr L - 1 - %v{}", a.id),
        };
        Some(self.value(a.dims, "i32", &text))
    }

    /// A value joined with one of blocks of its elements.
    pub(super) fn scaled(&mut self) -> Option<Value> {
        let (value, by) = (self.any(), self.choices.one(&[4, 2, 8]));
        let holds_blocks = |dim: &usize| {
            let is_divided = self.spread[*dim] != Spread::No;
            value.dims >> dim & 1 != 0 && !(is_divided && self.extents[*dim] % by != 0)
        };
        let dims: Vec<usize> = (0..3).filter(holds_blocks).collect();
        let scaled = DIMS[*dims.get(self.choices.below(dims.len()))?];
        let block = format!("{scaled}/{by}");
        let mut shape = names(value.dims);
        if shape.len() > 1 && self.choices.sometimes(3) {
            shape.retain(|dim| *dim == scaled);
        }
        let shape: Vec<&str> =
            shape.into_iter().map(|dim| if dim == scaled { &block } else { dim }).collect();
        let memory = self.memory(&shape, value.dtype);
        // What has blocks is used here alone: values have dimensions of three kinds.
        let mut blocks = self.result(0, value.dtype, &format!("read m{memory}"));
        if self.choices.sometimes(3) {
            blocks = self.result(0, value.dtype, &format!("add %v{}, %v{}", blocks.id, blocks.id));
        }
        let word = self.choices.one(&["mul", "add", "max"]);
        Some(self.value(value.dims, value.dtype, &format!("{word} %v{}, %v{}", value.id, blocks.id)))
    }
}
