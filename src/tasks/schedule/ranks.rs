//! The functions of the tracer that take arrays, for lists of dimensions and values whose length is known
//! only when a task is scheduled.

use crate::prelude::*;

/// Calls an expression with the list as an array of up to five.
macro_rules! of_rank {
    ($list:expr, $array:ident => $call:expr, $other:expr) => {
        match *$list {
            [] => {
                let $array = [];
                $call
            }
            [a] => {
                let $array = [a];
                $call
            }
            [a, b] => {
                let $array = [a, b];
                $call
            }
            [a, b, c] => {
                let $array = [a, b, c];
                $call
            }
            [a, b, c, d] => {
                let $array = [a, b, c, d];
                $call
            }
            [a, b, c, d, e] => {
                let $array = [a, b, c, d, e];
                $call
            }
            _ => $other,
        }
    };
}

/// A memory of the kernel; plans have at most five dimensions of one.
pub(super) fn memory(
    w: &Tracer,
    name: &str,
    dims: &[Symbol],
    (space, dtype): (AddressSpace, DType),
) -> MemoryRef {
    of_rank!(dims, shape => w.memory(name, shape, space, dtype), w.memory(name, [], space, dtype))
}

/// Elements of a memory at coordinates, over these dimensions.
pub(super) fn read_at(w: &Tracer, memory: MemoryRef, at: Vec<Coordinate>, dims: &[Symbol]) -> Value {
    of_rank!(dims, dims => w.read_at(memory, at, dims), w.read_at(memory, at, []))
}

/// A value repeated along the dimensions that it lacks.
pub(super) fn broadcast(value: Value, dims: &[Symbol]) -> Value {
    of_rank!(dims, dims => value.broadcast(dims), value)
}

/// A value of these dimensions with the same number everywhere.
pub(super) fn register_float(w: &Tracer, dims: &[Symbol], dtype: DType, number: f64) -> Value {
    of_rank!(dims, dims => w.register(dims, dtype, number), w.register([], dtype, number))
}

/// The same of an integer.
pub(super) fn register_integer(w: &Tracer, dims: &[Symbol], dtype: DType, number: i64) -> Value {
    of_rank!(dims, dims => w.register(dims, dtype, number), w.register([], dtype, number))
}

/// A loop over the tiles of a dimension that carries up to five values.
pub(super) fn iterate(
    w: &Tracer,
    dim: Symbol,
    carried: &[Value],
    body: impl FnOnce(&Tracer, &[Value]) -> Vec<Value>,
) -> Vec<Value> {
    of_rank!(
        carried,
        carried => w.iterate(dim, carried, |w, carried| {
            let next = body(w, &carried);
            let mut last = carried;
            last.iter_mut().zip(next).for_each(|(last, next)| *last = next);
            last
        }).to_vec(),
        carried.to_vec()
    )
}
