//! What a stream is given to do: done at once, or kept as a node of a graph while the stream is captured.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::capture;
use crate::copies::{Fill, Transfer};
use crate::error::HipResult;
use crate::graphs;
use crate::handles::Handle;
use crate::launch::KernelCall;
use crate::order::HostThen;
use crate::runtime::{HipVersion, Runtime, runtime, version};
use crate::streams::{check_stream, place, record_now};

/// `hipStreamCallback_t`.
pub(crate) type StreamCallback = extern "C" fn(Handle, c_int, *mut c_void);
/// `hipHostFn_t`.
pub(crate) type HostFunction = extern "C" fn(*mut c_void);

/// Something to do.
#[derive(Clone)]
pub(crate) enum Operation {
    Kernel(Arc<KernelCall>),
    Copy(Transfer),
    Fill(Fill),
    /// A function of the program, with what it is given.
    Host {
        function: HostFunction,
        data: u64,
    },
    Callback {
        callback: StreamCallback,
        stream: Handle,
        data: u64,
    },
    /// All that another graph does.
    Child(Handle),
    Empty,
    Record(Handle),
    Wait(Handle),
    /// Memory that a graph has of its own. It is there from the time the node is made, so that its address is
    /// known, and for as long as the process, as a graph may be launched again.
    Allocate {
        address: u64,
        bytes: usize,
    },
    Free {
        address: u64,
    },
}

/// The kind of a node, without its parameters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    Kernel,
    Copy,
    Fill,
    Host,
    Graph,
    Empty,
    Wait,
    Record,
    Allocate,
    Free,
}

impl NodeKind {
    /// The number of the kind: `hipGraphNodeType` of hip_runtime_api.h. HIP 5.2 counts from one.
    pub(crate) fn number(self) -> c_int {
        let number = match self {
            NodeKind::Kernel => 0,
            NodeKind::Copy => 1,
            NodeKind::Fill => 2,
            NodeKind::Host => 3,
            NodeKind::Graph => 4,
            NodeKind::Empty => 5,
            NodeKind::Wait => 6,
            NodeKind::Record => 7,
            NodeKind::Allocate => 10,
            NodeKind::Free => 11,
        };
        match version() {
            HipVersion::V5 => number + 1,
            HipVersion::V6 | HipVersion::V7 => number,
        }
    }
}

impl Operation {
    /// Its kind.
    pub(crate) fn kind(&self) -> NodeKind {
        match self {
            Operation::Kernel(_) => NodeKind::Kernel,
            Operation::Copy(_) => NodeKind::Copy,
            Operation::Fill(_) => NodeKind::Fill,
            Operation::Host { .. } | Operation::Callback { .. } => NodeKind::Host,
            Operation::Child(_) => NodeKind::Graph,
            Operation::Empty => NodeKind::Empty,
            Operation::Record(_) => NodeKind::Record,
            Operation::Wait(_) => NodeKind::Wait,
            Operation::Allocate { .. } => NodeKind::Allocate,
            Operation::Free { .. } => NodeKind::Free,
        }
    }

    /// Does it, as what a stream was given.
    pub(crate) fn run(&self, runtime: &Runtime, stream: Handle) -> HipResult {
        match self {
            Operation::Kernel(call) => runtime.launch(call, stream),
            Operation::Copy(transfer) => transfer.run_in(runtime, stream, transfer.host_then(runtime)),
            Operation::Fill(fill) => fill.run_in(runtime, stream, HostThen::GoesOn),
            Operation::Host { function, data } => {
                runtime.check_for_fault()?;
                function(*data as *mut c_void);
                host_was_told(runtime, stream);
                Ok(())
            }
            Operation::Callback { callback, stream: given, data } => {
                runtime.check_for_fault()?;
                callback(*given, 0, *data as *mut c_void);
                host_was_told(runtime, stream);
                Ok(())
            }
            Operation::Child(graph) => {
                graphs::ordered(*graph)?.iter().try_for_each(|operation| operation.run(runtime, stream))
            }
            Operation::Record(event) => record_now(runtime, *event, stream),
            Operation::Allocate { address, .. } => Ok(runtime.simulator().forget_contents(*address)?),
            Operation::Wait(event) => {
                if let Some(order) = &runtime.order {
                    order.wait(place(runtime, stream), *event);
                }
                Ok(())
            }
            // Everything before has happened when something is done.
            Operation::Empty | Operation::Free { .. } => Ok(()),
        }
    }
}

/// A function of the program has run in a stream: it may have told the rest of the program.
fn host_was_told(runtime: &Runtime, stream: Handle) {
    if let Some(order) = &runtime.order {
        order.host_waits_for_stream(place(runtime, stream));
    }
}

/// Does an operation, or adds it to the graph of a stream that is captured.
///
/// # Errors
/// There is no such stream, or the operation fails.
pub(crate) fn submit(stream: Handle, operation: Operation) -> HipResult {
    let runtime = runtime()?;
    check_stream(runtime, stream)?;
    match capture::keep(stream, operation)? {
        None => Ok(()),
        Some(operation) => operation.run(runtime, stream),
    }
}
