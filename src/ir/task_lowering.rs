//! Task mappings as code: loops around indices that are expressions of the worker's number.

use super::diagnostic::Diagnostic;
use super::expr::{SymExpr, Symbol};
use super::layout::Source;
use super::layout::task_mapping::{MappingError, TaskMapping};

impl From<MappingError> for Diagnostic {
    fn from(error: MappingError) -> Diagnostic {
        Diagnostic::invalid(error.to_string())
    }
}

/// The tasks of a worker as a nest of loops with one index in its body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoweredTasks {
    /// The counter of each loop and how often it runs, the outermost loop first.
    pub loops: Vec<(Symbol, u32)>,
    /// The index of the task in the body, one expression of the counters and of the worker's number for each
    /// dimension.
    pub index: Vec<SymExpr>,
    /// If there may be numbers that are no worker's: only those below this one run the loops.
    pub guard: Option<u32>,
}

impl TaskMapping {
    /// The tasks of the worker with the number `worker`, an expression between 0 and `running - 1`, in
    /// order. The counters of the loops are the symbols `task_0`, `task_1` and so on.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`]; fewer running workers than the mapping has, whose tasks nobody would do.
    ///
    /// # Example
    /// ```
    /// use groundswell::mapping::{repeat, spatial};
    /// use groundswell::prelude::*;
    /// let lane = Symbol::new("lane");
    /// let tasks = repeat([4, 1]).spatial([4, 16]).lowered(lane, 64)?;
    /// assert_eq!(tasks.loops, [(Symbol::new("task_0"), 4)]);
    /// assert_eq!(tasks.guard, None);
    /// # Ok::<(), Diagnostic>(())
    /// ```
    pub fn lowered(&self, worker: impl Into<SymExpr>, running: u32) -> Result<LoweredTasks, Diagnostic> {
        let (worker, workers, dims) = (worker.into(), self.workers()?, self.shape()?.len());
        if running < workers {
            let text = format!("{self} has {workers} workers, and only {running} run");
            return Err(Diagnostic::invalid(text).help("map the tasks to as many workers as run, or fewer"));
        }
        let guard = (workers < running).then_some(workers);
        let counter = |at: usize| Symbol::new(&format!("task_{at}"));
        let mut index = vec![SymExpr::from(0); dims];
        let Some(layout) = self.layout()? else {
            return Ok(LoweredTasks { loops: vec![(counter(0), 0)], index, guard });
        };
        let layout = layout.canonical();
        let mut add = |mode: &super::layout::Mode, digit: SymExpr| {
            let Some(dim) = mode.dim else { return };
            let moved = if mode.stride == 1 { digit } else { digit * mode.stride };
            let sum = &mut index[usize::from(dim.0)];
            *sum = if sum.as_integer() == Some(0) { moved } else { &*sum + moved };
        };
        let mut loops: Vec<(Symbol, u32)> = Vec::new();
        let tasks: Vec<_> = layout.of_source(Source::Replica).collect();
        for (at, mode) in tasks.into_iter().rev().enumerate() {
            add(mode, counter(at).into());
            loops.push((counter(at), mode.extent));
        }
        let mut weight = 1;
        for mode in layout.of_source(Source::Lane) {
            let above = if weight == 1 { worker.clone() } else { &worker / weight };
            weight *= mode.extent;
            // The slowest digit needs no modulo: numbers beyond it do not run.
            add(mode, if weight == workers { above } else { above % mode.extent });
        }
        Ok(LoweredTasks { loops, index, guard })
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::task_mapping::{col_spatial, repeat, spatial};
    use super::*;
    use proptest::prelude::*;

    /// What the loops do for a number, running as many as they say.
    fn interpreted(tasks: &LoweredTasks, worker: (Symbol, u32)) -> Vec<Vec<u32>> {
        let runs = tasks.guard.is_none_or(|workers| worker.1 < workers);
        let trips: u32 = if runs { tasks.loops.iter().map(|(_, trips)| trips).product() } else { 0 };
        let at = |trip: u32| {
            let value = |symbol: Symbol| {
                let mut rest = trip;
                for &(counter, trips) in tasks.loops.iter().rev() {
                    if counter == symbol {
                        return Some(i64::from(rest % trips));
                    }
                    rest /= trips;
                }
                (symbol == worker.0).then(|| i64::from(worker.1))
            };
            let index = tasks.index.iter().map(|e| e.value(&value).expect("a value") as u32);
            index.collect::<Vec<u32>>()
        };
        (0..trips).map(at).collect()
    }

    fn check(mapping: &TaskMapping, running: u32) {
        let worker = Symbol::new("worker");
        let tasks = mapping.lowered(worker, running).unwrap();
        for number in 0..running {
            let expected = mapping.list(number).unwrap_or_default();
            assert_eq!(interpreted(&tasks, (worker, number)), expected, "{mapping}, worker {number}");
        }
    }

    #[test]
    fn unit_dims_keep_the_order_of_columns_and_guards_hide_others() {
        // Rebuilding a mapping without its dimension of one must not make rows of columns.
        check(&col_spatial([1, 4, 8]), 32);
        assert_eq!(col_spatial([1, 4, 8]).list(1).unwrap(), [[0, 1, 0]]);
        check(&spatial([3, 20]), 64);
        check(&(repeat([0, 2]) * spatial([2, 2])), 4);
        check(&spatial([]), 1);
        let fault = spatial([8, 8]).lowered(Symbol::new("worker"), 32).unwrap_err();
        assert_eq!(fault.message, "spatial(8,8) has 64 workers, and only 32 run");
    }

    fn factor() -> impl Strategy<Value = TaskMapping> {
        let extents = proptest::collection::vec(1u32..=5, 3);
        let ranks = Just(vec![0usize, 1, 2]).prop_shuffle();
        (any::<bool>(), extents, ranks).prop_map(|(is_spatial, extents, ranks)| {
            if is_spatial { spatial(extents) } else { repeat(extents) }.ranks(ranks)
        })
    }

    proptest! {
        #[test]
        fn lowered_loops_do_what_the_mapping_lists(
            factors in proptest::collection::vec(factor(), 1..4),
            more in 0u32..40,
        ) {
            let product = factors.into_iter().reduce(|product, factor| product * factor).expect("some");
            let (workers, tasks) = (product.workers().unwrap(), product.tasks_per_worker().unwrap());
            prop_assume!(u64::from(workers) * u64::from(tasks) <= 20_000);
            check(&product, workers + more);
        }
    }
}
