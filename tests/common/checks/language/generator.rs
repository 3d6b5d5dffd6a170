//! The kernel that is being written: its lines, the values that exist, what is spread how, and the steps that
//! a body is made of.

use std::fmt::Write;

use super::super::Choices;

/// A set of dimensions: bit `i` is `DIMS[i]`.
pub(super) type DimSet = u8;

pub(super) const DIMS: [&str; 3] = ["M", "N", "K"];
pub(super) const M: DimSet = 1;
pub(super) const N: DimSet = 2;
pub(super) const K: DimSet = 4;

/// Dtypes of memories and values; i1 comes from comparisons alone.
pub(super) const DTYPES: [&str; 16] = [
    "f32",
    "i32",
    "f16",
    "bf16",
    "i8",
    "i16",
    "f64",
    "i64",
    "f8e4m3fnuz",
    "f8e5m2fnuz",
    "f8e4m3fn",
    "f8e5m2",
    "f8e8m0",
    "f4e2m1",
    "f6e2m3",
    "f6e3m2",
];

#[derive(Copy, Clone)]
pub(super) struct Value {
    pub(super) id: usize,
    pub(super) dims: DimSet,
    pub(super) dtype: &'static str,
}

impl Value {
    pub(super) fn is_float(self) -> bool {
        self.dtype.starts_with('f') || self.dtype.starts_with('b')
    }
}

/// How a dimension is spread.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Spread {
    /// Over workgroups.
    Workgroups,
    /// Over the iterations of loops: it exists in them alone.
    Loop,
    /// Not at all.
    No,
}

/// A size: its symbol, its number, and whether it is left open until the launch.
pub(super) type Size = (String, i64, bool);

pub(super) struct Generator<'a, 'b> {
    pub(super) choices: &'a mut Choices<'b>,
    pub(super) spread: [Spread; 3],
    pub(super) sizes: Vec<Size>,
    /// The dtypes of factors and sums of the matrix instruction, if products are possible.
    pub(super) product: Option<(&'static str, &'static str)>,
    pub(super) declarations: String,
    /// LDS buffers, which come after all memories.
    pub(super) allocations: String,
    pub(super) body: String,
    pub(super) depth: usize,
    pub(super) values: Vec<Value>,
    pub(super) next: usize,
    pub(super) memories: usize,
    /// Memories that are read or written as a whole, by number, with their elements' dimensions and dtype.
    pub(super) accessed: Vec<Value>,
    /// LDS buffers that have been filled, by number.
    pub(super) buffers: Vec<Value>,
    /// Dimensions of the loops around what is written.
    pub(super) loops: DimSet,
    /// Whether nothing may be rounded in more than one way, so that results are compared bit by bit.
    pub(super) is_exact: bool,
    /// How many elements of each dimension a workgroup has at a time.
    pub(super) extents: [i64; 3],
    /// Memories alone have the dimension F, which follows M.
    pub(super) has_follower: bool,
    pub(super) steps: usize,
    /// By number of a value: something uses it.
    used: Vec<bool>,
}

pub(super) fn names(dims: DimSet) -> Vec<&'static str> {
    (0..3).filter(|dim| dims >> dim & 1 != 0).map(|dim| DIMS[dim]).collect()
}

/// The dimensions of a set as a list.
pub(super) fn list(dims: DimSet) -> String {
    names(dims).join(", ")
}

impl<'a, 'b> Generator<'a, 'b> {
    pub(super) fn new(choices: &'a mut Choices<'b>, spread: [Spread; 3]) -> Generator<'a, 'b> {
        Generator {
            choices,
            spread,
            sizes: Vec::new(),
            product: None,
            declarations: String::new(),
            allocations: String::new(),
            body: String::new(),
            depth: 0,
            values: Vec::new(),
            next: 0,
            memories: 0,
            accessed: Vec::new(),
            buffers: Vec::new(),
            loops: 0,
            is_exact: false,
            extents: [1; 3],
            has_follower: false,
            steps: 0,
            used: Vec::new(),
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{:width$}{text}", "", width = 2 + 2 * self.depth);
        let operands = text.rsplit_once(" = ").map_or(text, |(_, operands)| operands);
        for word in operands.split("%v").skip(1) {
            let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
            if let Ok(id) = word[..digits].parse::<usize>() {
                self.used.resize(self.used.len().max(id + 1), false);
                self.used[id] = true;
            }
        }
    }

    /// Numbers from a place of the list on that nothing uses.
    pub(super) fn idle(&self, from: usize) -> Vec<Value> {
        let idle = |v: &&Value| v.dtype != "i1" && !self.used.get(v.id).is_some_and(|&used| used);
        self.values[from.min(self.values.len())..].iter().filter(idle).copied().collect()
    }

    pub(super) fn value(&mut self, dims: DimSet, dtype: &'static str, text: &str) -> Value {
        let value = self.result(dims, dtype, text);
        self.values.push(value);
        value
    }

    /// A value that no later step uses.
    pub(super) fn result(&mut self, dims: DimSet, dtype: &'static str, text: &str) -> Value {
        let id = self.next;
        self.next += 1;
        self.line(&format!("%v{id} = {text}"));
        Value { id, dims, dtype }
    }

    /// The number of a new dimension, memory or scalar.
    pub(super) fn declared(&mut self) -> usize {
        self.memories += 1;
        self.memories - 1
    }

    /// The dimensions that values may have here.
    pub(super) fn around(&self) -> DimSet {
        let is_there = |dim: &usize| self.spread[*dim] != Spread::Loop || self.loops >> dim & 1 != 0;
        (0..3).filter(is_there).fold(0, |dims, dim| dims | 1 << dim)
    }

    /// Dimensions that are spread in some way.
    pub(super) fn spread_as(&self, how: Spread) -> DimSet {
        (0..3).filter(|&dim| self.spread[dim] == how).fold(0, |dims, dim| dims | 1 << dim)
    }

    /// Dimensions that are spread over workgroups: what is written has all of them.
    pub(super) fn of_workgroups(&self) -> DimSet {
        self.spread_as(Spread::Workgroups)
    }

    pub(super) fn dims(&mut self) -> DimSet {
        let around = self.around();
        let dims = (self.choices.below(8) as DimSet) & around;
        let dims = if dims == 0 { around & (M | N) } else { dims };
        if self.has_room(dims) { dims } else { dims & !K }
    }

    /// How many elements of a value with these dimensions a workgroup has at a time.
    pub(super) fn elements(&self, dims: DimSet) -> i64 {
        (0..3).filter(|dim| dims >> dim & 1 != 0).map(|dim| self.extents[dim]).product()
    }

    /// Whether registers have room for some values with these dimensions: what is spilled takes a long time.
    pub(super) fn has_room(&self, dims: DimSet) -> bool {
        self.elements(dims) <= 4096
    }

    /// Whether a value is compared bit by bit if it is folded by sums.
    pub(super) fn may_sum(&self, dtype: &str) -> bool {
        !self.is_exact || dtype.starts_with('i')
    }

    /// A value with the dtype of `like` and comparable dimensions.
    pub(super) fn partner(&mut self, like: Value) -> Value {
        let fits =
            |v: &&Value| v.dtype == like.dtype && (v.dims & !like.dims == 0 || like.dims & !v.dims == 0);
        let all: Vec<Value> = self.values.iter().filter(fits).copied().collect();
        self.recent(&all)
    }

    /// One of some values: half the time one of the last, so that few values are of no use.
    pub(super) fn recent(&mut self, all: &[Value]) -> Value {
        let from = if self.choices.below(2) == 0 { all.len().saturating_sub(3) } else { 0 };
        self.choices.one(&all[from..])
    }

    pub(super) fn numbers(&self) -> Vec<Value> {
        self.values.iter().copied().filter(|v| v.dtype != "i1").collect()
    }

    pub(super) fn any(&mut self) -> Value {
        let numbers = self.numbers();
        self.recent(&numbers)
    }

    pub(super) fn broadcast_to(&mut self, value: Value, dims: DimSet) -> Value {
        self.value(dims, value.dtype, &format!("broadcast %v{} [{}]", value.id, list(dims)))
    }

    /// `value`, repeated along the dimensions that it lacks of those that what is written has here; none if
    /// there is no room for that.
    pub(super) fn with_written_dims(&mut self, value: Value) -> Option<Value> {
        let wanted = value.dims | self.of_workgroups();
        if !self.has_room(wanted) {
            return None;
        }
        Some(if wanted == value.dims { value } else { self.broadcast_to(value, wanted) })
    }

    pub(super) fn step(&mut self) {
        self.steps += 1;
        match self.choices.below(32) {
            0 => drop(self.read()),
            1 => drop(self.mapped_read()),
            2 => drop(self.constant()),
            3 => drop(self.place()),
            4 | 5 => drop(self.arithmetic()),
            6 => drop(self.unary()),
            7 => drop(self.cast()),
            8 => drop(self.choice()),
            9 => {
                let value = self.any();
                let dims = value.dims | self.dims();
                if self.has_room(dims) {
                    self.broadcast_to(value, dims);
                }
            }
            10 => drop(self.reduction()),
            11 => drop(self.factors()),
            12 | 13 | 29 => self.region(),
            14 | 28 => drop(self.scan()),
            15 => drop(self.at_coordinates()),
            16 => self.fill_buffer(),
            17 => self.use_buffer(),
            18 => drop(self.scalar()),
            19 => self.log(),
            20 => drop(self.fma()),
            21 | 22 => drop(self.rounded()),
            23 => drop(self.derived()),
            24 => drop(self.condition()),
            25 => drop(self.expression()),
            26 => drop(self.scaled()),
            27 => drop(self.updated()),
            _ => {
                let value = self.any();
                // Iterations write elements of their own.
                if self.loops & !value.dims == 0 {
                    self.write(value);
                }
            }
        }
    }
}
