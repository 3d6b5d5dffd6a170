//! Graphs as a whole: making and copying them, and executable ones, which are launched.

use std::ffi::{c_char, c_int, c_uint};

use crate::error::{Code, HipError, HipResult, invalid};
use crate::ffi::{InOut, Out, exports};
use crate::graphs::{self, Graph};
use crate::handles::Handle;
use crate::operations::{NodeKind, Operation, submit};
use crate::runtime::runtime;

/// An executable graph.
pub(crate) struct Exec {
    /// A copy that the program cannot reach.
    graph: Handle,
}

/// `hipGraphInstantiateParams`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct InstantiateParameters {
    error_node: Handle,
    flags: u64,
    result: c_int,
    stream: Handle,
}

/// Results of `hipGraphExecUpdate` (`hipGraphExecUpdateResult`).
const UPDATED: c_int = 0;
const TOPOLOGY_CHANGED: c_int = 2;
const KIND_CHANGED: c_int = 3;

/// The graph that an executable one consists of.
///
/// # Errors
/// There is none.
pub(crate) fn exec_graph(exec: Handle) -> HipResult<Handle> {
    Ok(runtime()?.execs.get(exec)?.graph)
}

fn instantiate(exec: Out<Handle>, graph: Handle) -> HipResult {
    let copy = graphs::copy(graph)?;
    // Whether there is an order is found out now.
    if let Err(error) = graphs::ordered(copy) {
        graphs::destroy(copy)?;
        return Err(error);
    }
    exec.put(runtime()?.execs.add(Exec { graph: copy })?)
}

fn launch(exec: Handle, stream: Handle) -> HipResult {
    submit(stream, Operation::Child(exec_graph(exec)?))
}

/// The kinds of a graph's nodes, and what each depends on by its number in their order; and what they do.
type Outline = (Vec<(NodeKind, Vec<usize>)>, Vec<Operation>);

fn outline(graph: &mut Graph) -> HipResult<Outline> {
    let order = graph.order()?;
    let number = |node: &Handle| order.iter().position(|other| other == node);
    let nodes = order.iter().filter_map(|node| graph.nodes.get(node));
    let shape = |node: &graphs::Node| (node.operation.kind(), node.after.iter().filter_map(number).collect());
    Ok(nodes.map(|node| (shape(node), node.operation.clone())).unzip())
}

/// Gives the nodes of an executable graph what those of a graph of the same shape do.
fn update(exec: Handle, graph: Handle) -> HipResult<c_int> {
    let own = exec_graph(exec)?;
    let (shape, operations) = graphs::with(graph, outline)?;
    let (old_shape, old) = graphs::with(own, outline)?;
    let edges =
        |shape: &[(NodeKind, Vec<usize>)]| shape.iter().map(|(_, after)| after.clone()).collect::<Vec<_>>();
    if edges(&shape) != edges(&old_shape) {
        return Ok(TOPOLOGY_CHANGED);
    }
    if shape != old_shape {
        return Ok(KIND_CHANGED);
    }
    let mut new = Vec::new();
    for operation in operations {
        new.push(match operation {
            Operation::Child(graph) => Operation::Child(graphs::copy(graph)?),
            other => other,
        });
    }
    graphs::with(own, |graph| {
        graph.order()?.into_iter().zip(new).try_for_each(|(node, operation)| graph.set(node, operation))
    })?;
    old.iter().try_for_each(|operation| match operation {
        Operation::Child(graph) => graphs::destroy(*graph),
        _ => Ok(()),
    })?;
    Ok(UPDATED)
}

exports! {
    fn hipGraphCreate(graph: Out<Handle>, flags: c_uint) {
        match flags {
            0 => graph.put(graphs::create()?),
            _ => Err(invalid("flags have to be 0")),
        }
    }
    fn hipGraphDestroy(graph: Handle) {
        graphs::destroy(graph)
    }
    fn hipGraphClone(copy: Out<Handle>, graph: Handle) {
        copy.put(graphs::copy(graph)?)
    }
    fn hipGraphInstantiate(exec: Out<Handle>, graph: Handle, node: Out<Handle>, _log: *mut c_char, _room: usize) {
        node.put_if_wanted(0);
        instantiate(exec, graph)
    }
    fn hipGraphInstantiateWithFlags(exec: Out<Handle>, graph: Handle, _flags: u64) {
        instantiate(exec, graph)
    }
    fn hipGraphInstantiateWithParams(exec: Out<Handle>, graph: Handle, parameters: InOut<InstantiateParameters>) {
        let given = parameters.value()?;
        parameters.put(InstantiateParameters { error_node: 0, result: 0, ..given })?;
        instantiate(exec, graph)
    }
    fn hipGraphLaunch(exec: Handle, stream: Handle) also hipGraphLaunch_spt {
        launch(exec, stream)
    }
    fn hipGraphUpload(exec: Handle, stream: Handle) {
        crate::streams::check_stream(runtime()?, stream)?;
        exec_graph(exec).map(drop)
    }
    fn hipGraphExecDestroy(exec: Handle) {
        graphs::destroy(runtime()?.execs.remove(exec)?.graph)
    }
    fn hipGraphExecUpdate(exec: Handle, graph: Handle, node: Out<Handle>, result: Out<c_int>) {
        let updated = update(exec, graph)?;
        node.put_if_wanted(0);
        result.put_if_wanted(updated);
        match updated {
            UPDATED => Ok(()),
            _ => Err(HipError::new(
                Code::GraphExecUpdateFailure,
                "the graph is not of the shape of the one that was instantiated",
            )),
        }
    }
}
