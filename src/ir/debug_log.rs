//! Logging values while a kernel is traced.

use std::panic::Location as Caller;

use super::builder::{MemoryRef, Tracer, Value, with};
use super::coordinates::Coordinate;
use super::expr::Symbol;

impl Tracer {
    /// Keeps `value` for its author to look at: the whole tensor, after the launch, under the name `name`
    /// ([`LaunchResult::logs`](crate::device::LaunchResult::logs)); `groundswell run` prints it. In a loop
    /// the last iteration stays, unless the value has the dimension of the loop; in a conditional, what its
    /// condition chooses is logged. Elements that no workgroup logs are NaN, or 0 of integers.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n] = symbols(["M", "N"]);
    /// let kernel = Kernel::trace("sums", |w| {
    ///     w.distribute([workgroup(m, 1, 0)]);
    ///     let x = w.memory("x", [m, n], Global, F32);
    ///     let y = w.memory("y", [m], Global, F32);
    ///     let squares = w.read(x) * w.read(x);
    ///     w.debug_log(squares, "squares");
    ///     w.write(squares.sum(n), y);
    /// })?;
    /// let executable = kernel.compile(&Options::new(Target::GFX942).set(m, 1).set(n, 3))?;
    /// let device = Device::open()?;
    /// let [x, y] = [device.upload(&[1.0f32, 2.0, 3.0])?, device.upload(&[0.0f32])?];
    /// let launched = device.launch(&executable).buffer(&x).buffer(&y).run()?;
    /// assert_eq!(launched.logs[0].tensor.as_slice::<f32>(), Some(&[1.0, 4.0, 9.0][..]));
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn debug_log(&self, value: Value, name: &str) {
        let log = self.log_with_slots(Caller::caller(), name, &[]);
        self.write(value, log);
    }

    /// As [`Tracer::debug_log`], with what the first iterations log side by side: `loops` names loops around
    /// the value, outermost first, and how many iterations of each are kept. The tensor's first dimension
    /// numbers them, those of the innermost loop one after the other.
    #[track_caller]
    pub fn debug_log_iterations<const N: usize>(&self, value: Value, name: &str, loops: [(Symbol, u32); N]) {
        let slots = loops.iter().fold(1u32, |slots, &(_, count)| slots.saturating_mul(count));
        let log = self.log_with_slots(Caller::caller(), name, &[Symbol::from(slots)]);
        // An iteration that is not kept has a number that no slot has: along the outermost loop by itself.
        let [mut slot, mut skipped]: [Option<Coordinate>; 2] = [None, None];
        for (dim, count) in loops {
            let number = Coordinate::from(self.iteration(dim));
            let count = i64::from(count.max(1));
            slot = Some(match slot {
                None => number,
                Some(outer) => {
                    let beyond = number.clone() / count;
                    skipped = Some(match skipped {
                        None => beyond,
                        Some(skipped) => skipped + beyond,
                    });
                    outer * count + number % count
                }
            });
        }
        let slot = match (slot.unwrap_or_else(|| Coordinate::from(0)), skipped) {
            (slot, None) => slot,
            (slot, Some(skipped)) => slot + skipped * i64::from(slots),
        };
        self.write_at(value, log, [slot]);
    }

    fn log_with_slots(&self, caller: &'static Caller<'static>, name: &str, slots: &[Symbol]) -> MemoryRef {
        let node = with(self.trace, |f| {
            let origin = f.location(caller);
            let node = f.nodes.debug_log(origin, name, slots);
            f.check(caller, node)
        });
        MemoryRef::new(node.flatten(), self.trace)
    }
}
