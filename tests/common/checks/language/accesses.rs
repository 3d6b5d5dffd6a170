//! Accesses: memories as a whole and at coordinates, values at coordinates, LDS buffers, updates and logs.

use super::generator::{DIMS, DTYPES, DimSet, Generator, K, Spread, Value, list, names};

impl Generator<'_, '_> {
    pub(super) fn memory(&mut self, shape: &[&str], dtype: &str) -> usize {
        let space = if self.choices.sometimes(4) { "shared" } else { "global" };
        self.declare(shape, dtype, space)
    }

    /// A memory that is written to.
    fn output(&mut self, shape: &[&str], dtype: &str) -> usize {
        self.declare(shape, dtype, "global")
    }

    fn declare(&mut self, shape: &[&str], dtype: &str, space: &str) -> usize {
        let at = self.declared();
        let mut strides = String::new();
        // Rows with something between them, columns, and elements with something between them.
        if let [column, row] = shape
            && ![column, row].iter().any(|dim| dim.contains('/'))
            && !["f4e2m1", "f6e2m3", "f6e3m2"].contains(&dtype)
            && self.choices.sometimes(5)
        {
            let [rows, columns] = [column, row]
                .map(|dim| self.sizes.iter().find(|size| size.0 == *dim).map_or(1, |size| size.1));
            let symbol = format!("S{at}");
            let (known, length) = self.choices.one(&[
                (format!("[{symbol}, 1]"), columns),
                (format!("[1, {symbol}]"), rows.max(2)),
                (format!("[{symbol}, 2]"), 2 * columns),
            ]);
            strides = format!(" strides {known}");
            let stride = length + self.choices.one(&[0, 1, 8]);
            let is_open = self.choices.sometimes(3);
            self.sizes.push((symbol, stride, is_open));
        }
        self.declarations += &format!("  m{at} = memory [{}] {space} {dtype}{strides}\n", shape.join(", "));
        at
    }

    /// A read of a new memory, or of one that was read or written before.
    pub(super) fn read(&mut self) -> Value {
        if self.choices.sometimes(4) {
            let (around, wanted) = (self.around(), self.of_workgroups());
            let fits = |m: &&Value| m.dims & !around == 0 && wanted & !m.dims == 0;
            let all: Vec<Value> = self.accessed.iter().filter(fits).copied().collect();
            if !all.is_empty() {
                let memory = self.recent(&all);
                return self.value(memory.dims, memory.dtype, &format!("read m{}", memory.id));
            }
        }
        let (dims, dtype) = (self.dims(), self.choices.one(&DTYPES));
        let mut shape = names(dims);
        if self.choices.sometimes(3) {
            shape.reverse();
        }
        if self.has_follower && self.choices.sometimes(3) {
            let shape: Vec<&str> = shape.into_iter().map(|dim| if dim == "M" { "F" } else { dim }).collect();
            let memory = self.memory(&shape, dtype);
            return self.value(dims, dtype, &format!("read m{memory}"));
        }
        let memory = self.memory(&shape, dtype);
        self.remember(Value { id: memory, dims, dtype });
        let flag = self.flag();
        self.value(dims, dtype, &format!("read m{memory}{flag}"))
    }

    /// Notes a memory for other accesses. If its last stride is not 1, each of them has coordinates, and what
    /// is both read and written needs an order that is the same in both.
    fn remember(&mut self, memory: Value) {
        let head = format!("  m{} = ", memory.id);
        let line = self.declarations.lines().find(|line| line.starts_with(&head));
        if line.is_some_and(|line| !line.contains("strides") || line.ends_with(", 1]")) {
            self.accessed.push(memory);
        }
    }

    /// What caches are told of an access.
    fn flag(&mut self) -> &'static str {
        match self.choices.sometimes(8) {
            true => self.choices.one(&[" non_temporal", " volatile"]),
            false => "",
        }
    }

    /// An update of elements of a new memory, each by one element of a value: what was there before.
    pub(super) fn updated(&mut self) -> Option<Value> {
        let is_updated = |v: &&Value| matches!(v.dtype, "i32" | "i64");
        let all: Vec<Value> = self.values.iter().filter(is_updated).copied().collect();
        if all.is_empty() {
            return None;
        }
        let value = self.recent(&all);
        let value = self.with_written_dims(value)?;
        // Iterations update elements of their own.
        if value.dims == 0 || self.loops & !value.dims != 0 {
            return None;
        }
        let shape = names(value.dims);
        let at = shape.join(", ");
        let memory = self.output(&shape, value.dtype);
        let word = self.choices.one(&[
            "atomic_add",
            "atomic_exchange",
            "atomic_or",
            "atomic_min",
            "atomic_compare_exchange",
        ]);
        let expected =
            if word == "atomic_compare_exchange" { format!("%v{}, ", value.id) } else { String::new() };
        let text = format!("{word} {expected}%v{}, m{memory} at [{at}]", value.id);
        Some(self.value(value.dims, value.dtype, &text))
    }

    /// A coordinate along some dimension, for a value with `dims`.
    fn coordinate(&mut self, dims: DimSet) -> String {
        let ids: Vec<Value> =
            self.values.iter().copied().filter(|v| v.dtype == "i32" && v.dims & !dims == 0).collect();
        if dims == 0 {
            return match ids.is_empty() {
                true => "0".to_owned(),
                false => format!("%v{}", self.choices.one(&ids).id),
            };
        }
        let dim = self.choices.one(&names(dims));
        match self.choices.below(9) {
            0 => format!("{dim} + 1"),
            1 => format!("{dim} * 2 - 3"),
            2 => format!("{dim} // 3"),
            3 => format!("{dim} % 5"),
            4 => format!("L - 1 - {dim}"),
            5 if !ids.is_empty() => {
                let id = self.choices.one(&ids).id;
                format!("%v{id}")
            }
            6 => "L // 2".to_owned(),
            _ => dim.to_owned(),
        }
    }

    /// A coordinate that is another one for each element along a dimension.
    fn place_of_its_own(&mut self, dim: &str) -> String {
        match self.choices.below(5) {
            0 => format!("{dim} + 2"),
            1 => format!("{dim} * 2 - 1"),
            2 => format!("L - 1 - {dim}"),
            _ => dim.to_owned(),
        }
    }

    pub(super) fn mapped_read(&mut self) -> Value {
        let (dims, dtype) = (self.dims(), self.choices.one(&DTYPES));
        let rank = 1 + self.choices.below(2);
        let at: Vec<String> = (0..rank).map(|_| self.coordinate(dims)).collect();
        let memory = self.memory(&["L", "LL"][..rank], dtype);
        let text = format!("read m{memory} at [{}] as [{}]", at.join(", "), list(dims));
        self.value(dims, dtype, &text)
    }

    /// The number of iterations, of an element that is read.
    pub(super) fn count(&mut self) {
        let memory = self.declare(&["L"], "i32", "global");
        let number = self.choices.one(&["0", "L // 2"]);
        let element = self.value(0, "i32", &format!("read m{memory} at [{number}] as []"));
        let count = self.value(0, "i32", &format!("rem %v{}, 4", element.id));
        self.line(&format!("set_symbol COUNT, %v{}", count.id));
    }

    /// Where a value of `dims` finds what a workgroup has of the dimensions `of`: along those that are
    /// divided it is in its own place.
    fn local_coordinates(&mut self, of: DimSet, dims: DimSet) -> String {
        let all: Vec<usize> = (0..3).filter(|dim| of >> dim & 1 != 0).collect();
        let mut at = Vec::with_capacity(all.len());
        for dim in all {
            at.push(match self.spread[dim] {
                Spread::No => self.coordinate(dims),
                Spread::Workgroups | Spread::Loop => DIMS[dim].to_owned(),
            });
        }
        at.join(", ")
    }

    /// Dimensions of what is read of something that has `of`: all that are divided, and some others.
    fn local_dims(&mut self, of: DimSet) -> DimSet {
        let divided = of & !self.spread_as(Spread::No);
        let whole = self.spread_as(Spread::No) & self.around();
        let dims = divided | self.choices.below(8) as DimSet & whole;
        if dims == 0 { of } else { dims }
    }

    /// A value read at coordinates, or a buffer.
    pub(super) fn at_coordinates(&mut self) -> Value {
        let value = self.any();
        // Coordinates come in the order of the value's dimensions.
        let value = self.broadcast_to(value, value.dims);
        let dims = self.local_dims(value.dims);
        if dims == 0 || !self.has_room(dims) {
            return value;
        }
        let at = self.local_coordinates(value.dims, dims);
        let text = format!("read %v{} at [{at}] as [{}]", value.id, list(dims));
        self.value(dims, value.dtype, &text)
    }

    /// A new buffer that holds a value.
    pub(super) fn fill_buffer(&mut self) {
        let value = self.any();
        let Some(value) = self.with_written_dims(value) else { return };
        // Three dimensions fill LDS.
        if value.dims.count_ones() > 2 {
            return;
        }
        let at = self.declared();
        self.allocations += &format!("  %b{at} = allocate [{}] {}\n", list(value.dims), value.dtype);
        self.line(&format!("write %v{}, %b{at}", value.id));
        self.buffers.push(Value { id: at, ..value });
    }

    /// Reads a buffer, writes it, or updates its elements.
    pub(super) fn use_buffer(&mut self) {
        let around = self.around();
        let there: Vec<Value> = self.buffers.iter().copied().filter(|b| b.dims & !around == 0).collect();
        if there.is_empty() {
            return;
        }
        let buffer = self.recent(&there);
        let fits = |v: &&Value| v.dims == buffer.dims && v.dtype == buffer.dtype;
        let fitting: Vec<Value> = self.values.iter().filter(fits).copied().collect();
        let own: Vec<String> = names(buffer.dims)
            .into_iter()
            .map(|dim| {
                let is_whole =
                    self.spread_as(Spread::No) & 1 << DIMS.iter().position(|d| *d == dim).unwrap_or(0);
                if is_whole != 0 { self.place_of_its_own(dim) } else { dim.to_owned() }
            })
            .collect();
        let own = own.join(", ");
        match self.choices.below(5) {
            0 if !fitting.is_empty() => {
                let value = self.recent(&fitting);
                self.line(&format!("write %v{}, %b{}", value.id, buffer.id));
            }
            1 if !fitting.is_empty() => {
                let value = self.recent(&fitting);
                self.line(&format!("write %v{}, %b{} at [{own}]", value.id, buffer.id));
            }
            2 if !fitting.is_empty() && matches!(buffer.dtype, "i32" | "i64") => {
                let value = self.recent(&fitting);
                let word =
                    self.choices.one(&["atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_xor"]);
                // Updates of one element by several may come in any order: nobody looks at what was there.
                match self.choices.below(2) {
                    0 => {
                        let at = self.local_coordinates(buffer.dims, buffer.dims);
                        let text = format!("{word} %v{}, %b{} at [{at}]", value.id, buffer.id);
                        self.result(buffer.dims, buffer.dtype, &text);
                    }
                    _ => {
                        let text = format!("{word} %v{}, %b{} at [{own}]", value.id, buffer.id);
                        self.value(buffer.dims, buffer.dtype, &text);
                    }
                }
            }
            3 => drop(self.value(buffer.dims, buffer.dtype, &format!("read %b{}", buffer.id))),
            _ => {
                let dims = self.local_dims(buffer.dims);
                let at = self.local_coordinates(buffer.dims, dims);
                let text = format!("read %b{} at [{at}] as [{}]", buffer.id, list(dims));
                self.value(dims, buffer.dtype, &text);
            }
        }
    }

    /// A log of a value, or one that keeps those of the first iterations.
    pub(super) fn log(&mut self) {
        let value = self.any();
        let Some(value) = self.with_written_dims(value) else { return };
        let at = self.declared();
        if self.loops & !value.dims == 0 {
            self.declarations += &format!("  g{at} = debug_log\n");
            return self.line(&format!("write %v{}, g{at}", value.id));
        }
        if self.loops == K && value.dims & K == 0 && value.dims != 0 {
            self.declarations += &format!("  g{at} = debug_log [2]\n");
            let number = self.value(0, "i32", "iteration K").id;
            self.line(&format!("write %v{}, g{at} at [%v{number}]", value.id));
        }
    }

    pub(super) fn write(&mut self, value: Value) {
        let Some(value) = self.with_written_dims(value) else { return };
        let value = self.approximated(value);
        let mut shape = names(value.dims);
        if self.choices.sometimes(3) {
            shape.reverse();
        }
        if matches!(value.dtype, "i32" | "i64") && self.choices.sometimes(5) {
            let at = self.coordinate(value.dims);
            let memory = self.output(&["L"], value.dtype);
            let word = self.choices.one(&["atomic_add", "atomic_max", "atomic_xor"]);
            let text = format!("{word} %v{}, m{memory} at [{at}]", value.id);
            self.result(value.dims, value.dtype, &text);
            return;
        }
        if shape.len() <= 2 && !shape.is_empty() && self.choices.sometimes(6) {
            let at: Vec<String> = shape.iter().map(|dim| self.place_of_its_own(dim)).collect();
            let memory = self.output(&["L", "LL"][..shape.len()], value.dtype);
            return self.line(&format!("write %v{}, m{memory} at [{}]", value.id, at.join(", ")));
        }
        // What is shared is not written.
        let fits = |m: &&Value| {
            let is_global =
                self.declarations.contains(&format!("  m{} = memory [{}] global", m.id, list(m.dims)));
            m.dims == value.dims && m.dtype == value.dtype && is_global
        };
        let known: Vec<usize> = self.accessed.iter().filter(fits).map(|memory| memory.id).collect();
        let memory = match known.last() {
            Some(&known) if self.choices.sometimes(3) => known,
            _ => self.output(&shape, value.dtype),
        };
        self.remember(Value { id: memory, ..value });
        let flag = self.flag();
        self.line(&format!("write %v{}, m{memory}{flag}", value.id));
    }
}
