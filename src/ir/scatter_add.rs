//! `scatter_add`: an atomic sum whose position along one dimension of the memory comes from a value.

use std::panic::Location as Caller;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::assemble::KernelAssembler;
use super::builder::{MemoryRef, Tracer, Value, with};
use super::coordinates::Coordinate;
use super::diagnostic::Diagnostic;
use super::expr::Symbol;
use super::op::AtomicOp;

impl Tracer {
    /// Adds each element of `value` to the element of `memory` whose position along `dim` is that of `ids`,
    /// an i32 value with some of the dimensions of `value`; along all other dimensions of the memory, which
    /// are dimensions of the value, the coordinate is the value's own. Several elements may be added to one;
    /// positions outside the memory are dropped. Gives what was there before. It is
    /// [`Tracer::atomic_at`] with these coordinates.
    ///
    /// # Example
    /// Rows of `x`, each added to the row of a table that `ids` names:
    /// ```
    /// use groundswell::prelude::*;
    /// let [m, n, rows] = symbols(["M", "N", "ROWS"]);
    /// let kernel = Kernel::trace("add_rows", |w| {
    ///     w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
    ///     let x = w.memory("x", [m, n], Global, F32);
    ///     let ids = w.memory("ids", [m], Global, I32);
    ///     let table = w.memory("table", [rows, n], Global, F32);
    ///     w.scatter_add(w.read(x), w.read(ids), rows, table);
    /// })?;
    /// # Ok::<(), Diagnostic>(())
    /// ```
    #[track_caller]
    pub fn scatter_add(&self, value: Value, ids: Value, dim: impl Into<Symbol>, memory: MemoryRef) -> Value {
        let caller = Caller::caller();
        let dim = dim.into();
        let dims = with(self.trace, |f| {
            let dims = f.nodes.scattered_dims(memory.node, dim);
            f.check(caller, dims)
        });
        let place = |own: Symbol| if own == dim { Coordinate::from(ids) } else { Coordinate::from(own) };
        let at: Vec<Coordinate> = dims.flatten().unwrap_or_default().into_iter().map(place).collect();
        self.update_at(caller, AtomicOp::Add, &[value], memory, at)
    }
}

impl KernelAssembler {
    /// The dimensions of a memory, one of which is `dim`.
    ///
    /// # Errors
    /// It has no such dimension.
    pub(crate) fn scattered_dims(
        &self,
        memory: Entity,
        dim: Symbol,
    ) -> Result<SmallVec<[Symbol; 4]>, Diagnostic> {
        let dims = self.dims_of(memory);
        if dims.is_empty() || dims.contains(&dim) {
            return Ok(dims);
        }
        let names: Vec<&str> = dims.iter().map(|dim| dim.name()).collect();
        let text = format!("a memory [{}] has no dimension {dim} to scatter along", names.join(", "));
        Err(Diagnostic::invalid(text).help("name the dimension of the memory that the positions are along"))
    }
}
