//! Regions: loops over tiles, conditionals and `while` loops, with the values that they carry.

use super::generator::{DIMS, DimSet, Generator, K, Spread, Value, list};

/// What a region is.
enum RegionKind {
    Loop(usize),
    Conditional,
    /// With the numbers of the counter's end and of its step.
    While {
        end: usize,
        step: usize,
    },
}

fn ids(ids: &[usize]) -> String {
    ids.iter().map(|id| format!("%v{id}")).collect::<Vec<_>>().join(", ")
}

impl Generator<'_, '_> {
    /// A loop, a conditional or a `while` loop, with values that it carries.
    pub(super) fn region(&mut self) {
        if self.depth >= 3 || self.steps > 40 {
            return;
        }
        let loops: Vec<usize> =
            (0..3).filter(|&dim| self.spread[dim] == Spread::Loop && self.loops >> dim & 1 == 0).collect();
        let chosen = match loops.is_empty() {
            true => None,
            false => Some(self.choices.one(&loops)).filter(|_| !self.choices.sometimes(3)),
        };
        // What exists in the loop alone is not carried.
        let lasting: DimSet = chosen.map_or(!0, |dim| !(1 << dim));
        let numbers: Vec<Value> = self.numbers().into_iter().filter(|v| v.dims & !lasting == 0).collect();
        if numbers.is_empty() {
            return;
        }
        let mut inits = self.initial(&numbers);
        let kind = match chosen {
            Some(dim) => RegionKind::Loop(dim),
            None if self.choices.sometimes(3) => {
                let [start, end, step] =
                    [&[0, 1, 5][..], &[3, 4, 0], &[1, 2]].map(|numbers| self.choices.one(numbers));
                let [start, end, step] = [start, end, step]
                    .map(|number: i32| self.value(0, "i32", &format!("register [] i32 {number}")));
                inits.insert(0, start);
                RegionKind::While { end: end.id, step: step.id }
            }
            None => RegionKind::Conditional,
        };
        let head = match kind {
            RegionKind::Loop(dim) => format!("iterate {}", DIMS[dim]),
            RegionKind::While { end, .. } => {
                let text = format!("compare lt %v{}, %v{end}", inits[0].id);
                format!("while %v{}", self.value(0, "i1", &text).id)
            }
            RegionKind::Conditional => {
                let in_loop = self.loops & K != 0;
                let number =
                    if in_loop && self.choices.below(2) == 0 { "iteration K" } else { "workgroup_id 0" };
                let number = self.value(0, "i32", number).id;
                let limit = self.choices.below(3);
                let predicate = self.choices.one(&["ge", "lt", "eq"]);
                let limit = self.value(0, "i32", &format!("register [] i32 {limit}")).id;
                let text = format!("compare {predicate} %v{number}, %v{limit}");
                format!("conditional %v{}", self.value(0, "i1", &text).id)
            }
        };
        let (outside, filled, were) = (self.values.len(), self.buffers.len(), self.loops);
        let arguments: Vec<Value> = inits
            .iter()
            .map(|init| {
                let value = Value { id: self.next, ..*init };
                self.next += 1;
                value
            })
            .collect();
        let results: Vec<usize> = (self.next..self.next + inits.len()).collect();
        self.next += inits.len();
        let carried: Vec<String> =
            arguments.iter().zip(&inits).map(|(a, init)| format!("%v{} = %v{}", a.id, init.id)).collect();
        self.line(&format!("{} = {head} ({}) {{", ids(&results), carried.join(", ")));
        self.values.extend(&arguments);
        self.depth += 1;
        if let RegionKind::Loop(dim) = kind {
            self.loops |= 1 << dim;
        }
        for _ in 0..1 + self.choices.below(6) {
            self.step();
        }
        let counters = usize::from(matches!(kind, RegionKind::While { .. }));
        let mut yields: Vec<Value> = arguments[counters..]
            .iter()
            .map(|argument| {
                let fits = |v: &&Value| v.dims == argument.dims && v.dtype == argument.dtype;
                let all: Vec<Value> = self.values.iter().filter(fits).copied().collect();
                self.recent(&all)
            })
            .collect();
        self.exchange(&arguments[counters..], &mut yields);
        // What the region has computed is of some use.
        for idle in self.idle(outside) {
            let at = self.choices.below(yields.len());
            if yields.iter().all(|value| value.id != idle.id) {
                yields[at] = self.joined(yields[at], idle);
            }
        }
        let mut yielded: Vec<usize> = yields.iter().map(|value| value.id).collect();
        if let RegionKind::While { end, step } = kind {
            let next = self.value(0, "i32", &format!("add %v{}, %v{step}", arguments[0].id)).id;
            yielded.insert(0, next);
            yielded.push(self.value(0, "i1", &format!("compare lt %v{next}, %v{end}")).id);
        }
        self.line(&format!("yield {}", ids(&yielded)));
        (self.depth, self.loops) = (self.depth - 1, were);
        self.line("}");
        self.values.truncate(outside);
        self.buffers.truncate(filled);
        self.values.extend(inits.iter().zip(results).map(|(init, id)| Value { id, ..*init }));
    }

    /// Values to start with, some of which are alike but not the same.
    fn initial(&mut self, numbers: &[Value]) -> Vec<Value> {
        let first = self.choices.one(numbers);
        let mut inits = vec![first];
        for _ in 0..self.choices.below(3) {
            let is_other = |v: &&Value| {
                v.dims == first.dims && v.dtype == first.dtype && inits.iter().all(|init| init.id != v.id)
            };
            let others: Vec<Value> = numbers.iter().filter(is_other).copied().collect();
            let next = match self.choices.below(3) {
                0 => self.choices.one(numbers),
                _ if others.is_empty() => {
                    let number = if first.dtype == "f8e8m0" { "4.0" } else { "3" };
                    let text = format!("register [{}] {} {number}", list(first.dims), first.dtype);
                    self.value(first.dims, first.dtype, &text)
                }
                _ => self.choices.one(&others),
            };
            inits.push(next);
        }
        inits
    }

    /// Lets values that are alike change places from one iteration to the next.
    fn exchange(&mut self, arguments: &[Value], yields: &mut [Value]) {
        let Some(first) = arguments.first() else { return };
        let is_alike = |at: &usize| (arguments[*at].dims, arguments[*at].dtype) == (first.dims, first.dtype);
        let alike: Vec<usize> = (0..arguments.len()).filter(is_alike).collect();
        if alike.len() > 1 && self.choices.below(2) == 1 {
            for (at, to) in alike.iter().enumerate() {
                yields[*to] = arguments[alike[(at + 1) % alike.len()]];
            }
        }
    }
}
