//! Nodes of graphs: making them, their parameters, and what depends on what.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use crate::boxes::CopyParameters;
use crate::copies::{Direction, Fill, Transfer, in_variable};
use crate::error::{HipResult, invalid};
use crate::ffi::{Dim3, In, InOut, Out, exports};
use crate::graph_runs::exec_graph;
use crate::graphs;
use crate::handles::Handle;
use crate::launch::{Arguments, KernelCall, Residency, Shape};
use crate::memory::{OF_DEVICE, allocate_in_stream};
use crate::operations::{HostFunction, Operation};
use crate::registration;
use crate::runtime::runtime;
use crate::space::MemoryKind;

/// `hipKernelNodeParams`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct KernelParameters {
    block: Dim3,
    extra: In<u64>,
    function: u64,
    grid: Dim3,
    pointers: In<u64>,
    lds: c_uint,
}

/// `hipMemsetParams`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct FillParameters {
    to: u64,
    element: c_uint,
    height: usize,
    pitch: usize,
    value: c_uint,
    width: usize,
}

/// `hipHostNodeParams`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct HostParameters {
    function: Option<HostFunction>,
    data: u64,
}

/// `hipMemAllocNodeParams`.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct AllocationParameters {
    pool: [u8; 88],
    accesses: u64,
    count: usize,
    bytes: usize,
    address: u64,
}

fn kernel(parameters: In<KernelParameters>) -> HipResult<Operation> {
    let of = parameters.value()?;
    let function = registration::function(runtime()?, of.function)?;
    let shape = Shape::new(of.grid.sizes(), of.block.sizes(), of.lds as usize);
    let arguments = Arguments::new(of.pointers, of.extra, function.metadata()?)?;
    let call = KernelCall::new(function, of.function, shape, Residency::Independent, arguments)?;
    Ok(Operation::Kernel(Arc::new(call)))
}

fn copy(transfer: Transfer) -> HipResult<Operation> {
    transfer.check()?;
    if transfer.to.address == 0 || transfer.from.address == 0 {
        return Err(invalid("a pointer is null"));
    }
    Ok(Operation::Copy(transfer))
}

fn line(to: u64, from: u64, bytes: usize, kind: c_int) -> HipResult<Operation> {
    copy(Transfer::line(to, from, bytes, kind))
}

fn from_variable(to: u64, symbol: u64, bytes: usize, offset: usize, kind: c_int) -> HipResult<Operation> {
    line(to, in_variable(symbol, bytes, offset, kind, Direction::HostToDevice)?, bytes, kind)
}

fn to_variable(symbol: u64, from: u64, bytes: usize, offset: usize, kind: c_int) -> HipResult<Operation> {
    line(in_variable(symbol, bytes, offset, kind, Direction::DeviceToHost)?, from, bytes, kind)
}

fn fill(parameters: In<FillParameters>) -> HipResult<Operation> {
    let of = parameters.value()?;
    let pattern = of.value.to_le_bytes();
    let pattern = match of.element {
        element @ (1 | 2 | 4) => &pattern[..element as usize],
        other => return Err(invalid(format!("elements of {other} bytes cannot be set"))),
    };
    if of.to == 0 || of.width == 0 {
        return Err(invalid("there is nothing to set"));
    }
    Ok(Operation::Fill(Fill::plane(of.to, of.pitch, pattern, of.width, of.height.max(1))))
}

fn host(parameters: In<HostParameters>) -> HipResult<Operation> {
    let of = parameters.value()?;
    let function = of.function.ok_or_else(|| invalid("there is no function to call"))?;
    Ok(Operation::Host { function, data: of.data })
}

fn event(event: Handle, operation: fn(Handle) -> Operation) -> HipResult<Operation> {
    runtime()?.events.get(event)?;
    Ok(operation(event))
}

fn child(graph: Handle) -> HipResult<Operation> {
    Ok(Operation::Child(graphs::copy(graph)?))
}

/// Makes a node after others.
fn add(
    node: Out<Handle>,
    graph: Handle,
    after: In<Handle>,
    count: usize,
    operation: HipResult<Operation>,
) -> HipResult {
    let (after, operation) = (after.values(count)?, operation?);
    node.put(graphs::with(graph, |graph| graph.add(operation, &after))?)
}

/// Gives a node other parameters.
fn set(node: Handle, operation: HipResult<Operation>) -> HipResult {
    let operation = operation?;
    graphs::with_owner(node, |graph| graph.set(node, operation))
}

/// The same for an executable graph; the node is that of the graph it was made from.
fn set_in(exec: Handle, node: Handle, operation: HipResult<Operation>) -> HipResult {
    let operation = operation?;
    graphs::with(exec_graph(exec)?, |graph| {
        let node = graph.copy_of(node)?;
        graph.set(node, operation)
    })
}

/// What a node does, as `f` tells it if it is of the right kind.
fn get<T>(node: Handle, f: impl FnOnce(&Operation) -> Option<T>) -> HipResult<T> {
    let operation = graphs::with_owner(node, |graph| Ok(graph.node(node)?.operation.clone()))?;
    f(&operation).ok_or_else(|| invalid(format!("the node is of kind {:?}", operation.kind())))
}

/// Writes a list as HIP's functions do: without a place only its length; with more room than it has, zeros
/// follow.
fn put_list(list: &[Handle], place: Out<Handle>, count: InOut<usize>) -> HipResult {
    if place.is_null() {
        return count.put(list.len());
    }
    let room = count.value()?;
    let padded: Vec<Handle> = list.iter().copied().chain(std::iter::repeat(0)).take(room).collect();
    place.put_all(&padded)?;
    count.put(list.len().min(room))
}

/// Adds or removes dependencies.
fn depend(
    graph: Handle,
    from: In<Handle>,
    to: In<Handle>,
    count: usize,
    change: fn(&mut graphs::Node, Handle) -> HipResult,
) -> HipResult {
    let (from, to) = (from.values(count)?, to.values(count)?);
    graphs::with(graph, |graph| {
        from.into_iter().zip(to).try_for_each(|(from, to)| {
            graph.node(from)?;
            if from == to {
                return Err(invalid("a node cannot depend on itself"));
            }
            change(graph.node(to)?, from)
        })
    })
}

exports! {
    fn hipGraphAddKernelNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, of: In<KernelParameters>) {
        add(node, graph, after, count, kernel(of))
    }
    fn hipGraphKernelNodeGetParams(node: Handle, parameters: Out<KernelParameters>) {
        let call = get(node, |operation| match operation {
            Operation::Kernel(call) => Some(call.clone()),
            _ => None,
        })?;
        let shape = call.shape;
        let [block, grid] = [shape.block, shape.grid].map(|[x, y, z]| Dim3 { x, y, z });
        let (extra, pointers) = (In::null(), call.pointers());
        parameters.put(KernelParameters {
            block, extra, function: call.host, grid, pointers, lds: shape.dynamic_lds as c_uint,
        })
    }
    fn hipGraphKernelNodeSetParams(node: Handle, of: In<KernelParameters>) {
        set(node, kernel(of))
    }
    fn hipGraphExecKernelNodeSetParams(exec: Handle, node: Handle, of: In<KernelParameters>) {
        set_in(exec, node, kernel(of))
    }
    fn hipGraphAddMemcpyNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, of: In<CopyParameters>) {
        add(node, graph, after, count, of.value().and_then(CopyParameters::transfer).and_then(copy))
    }
    fn hipGraphMemcpyNodeGetParams(node: Handle, parameters: Out<CopyParameters>) {
        parameters.put(get(node, |operation| match operation {
            Operation::Copy(transfer) => Some(CopyParameters::of(transfer)),
            _ => None,
        })?)
    }
    fn hipGraphMemcpyNodeSetParams(node: Handle, of: In<CopyParameters>) {
        set(node, of.value().and_then(CopyParameters::transfer).and_then(copy))
    }
    fn hipGraphExecMemcpyNodeSetParams(exec: Handle, node: Handle, of: In<CopyParameters>) {
        set_in(exec, node, of.value().and_then(CopyParameters::transfer).and_then(copy))
    }
    fn hipGraphAddMemcpyNode1D(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize,
        to: u64, from: u64, bytes: usize, kind: c_int,
    ) {
        add(node, graph, after, count, line(to, from, bytes, kind))
    }
    fn hipGraphMemcpyNodeSetParams1D(node: Handle, to: u64, from: u64, bytes: usize, kind: c_int) {
        set(node, line(to, from, bytes, kind))
    }
    fn hipGraphExecMemcpyNodeSetParams1D(
        exec: Handle, node: Handle, to: u64, from: u64, bytes: usize, kind: c_int,
    ) {
        set_in(exec, node, line(to, from, bytes, kind))
    }
    fn hipGraphAddMemcpyNodeFromSymbol(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize,
        to: u64, symbol: u64, bytes: usize, offset: usize, kind: c_int,
    ) {
        add(node, graph, after, count, from_variable(to, symbol, bytes, offset, kind))
    }
    fn hipGraphMemcpyNodeSetParamsFromSymbol(
        node: Handle, to: u64, symbol: u64, bytes: usize, offset: usize, kind: c_int,
    ) {
        set(node, from_variable(to, symbol, bytes, offset, kind))
    }
    fn hipGraphExecMemcpyNodeSetParamsFromSymbol(
        exec: Handle, node: Handle, to: u64, symbol: u64, bytes: usize, offset: usize, kind: c_int,
    ) {
        set_in(exec, node, from_variable(to, symbol, bytes, offset, kind))
    }
    fn hipGraphAddMemcpyNodeToSymbol(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize,
        symbol: u64, from: u64, bytes: usize, offset: usize, kind: c_int,
    ) {
        add(node, graph, after, count, to_variable(symbol, from, bytes, offset, kind))
    }
    fn hipGraphMemcpyNodeSetParamsToSymbol(
        node: Handle, symbol: u64, from: u64, bytes: usize, offset: usize, kind: c_int,
    ) {
        set(node, to_variable(symbol, from, bytes, offset, kind))
    }
    fn hipGraphExecMemcpyNodeSetParamsToSymbol(
        exec: Handle, node: Handle, symbol: u64, from: u64, bytes: usize, offset: usize, kind: c_int,
    ) {
        set_in(exec, node, to_variable(symbol, from, bytes, offset, kind))
    }
    fn hipGraphAddMemsetNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, of: In<FillParameters>) {
        add(node, graph, after, count, fill(of))
    }
    fn hipGraphMemsetNodeGetParams(node: Handle, parameters: Out<FillParameters>) {
        parameters.put(get(node, |operation| match operation {
            Operation::Fill(fill) => Some(FillParameters {
                to: fill.to.address,
                element: fill.element as c_uint,
                height: fill.extent[1],
                pitch: fill.to.pitch as usize,
                value: u32::from_le_bytes(fill.pattern),
                width: fill.extent[0],
            }),
            _ => None,
        })?)
    }
    fn hipGraphMemsetNodeSetParams(node: Handle, of: In<FillParameters>) {
        set(node, fill(of))
    }
    fn hipGraphExecMemsetNodeSetParams(exec: Handle, node: Handle, of: In<FillParameters>) {
        set_in(exec, node, fill(of))
    }
    fn hipGraphAddHostNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, of: In<HostParameters>) {
        add(node, graph, after, count, host(of))
    }
    fn hipGraphHostNodeGetParams(node: Handle, parameters: Out<HostParameters>) {
        parameters.put(get(node, |operation| match *operation {
            Operation::Host { function, data } => Some(HostParameters { function: Some(function), data }),
            _ => None,
        })?)
    }
    fn hipGraphHostNodeSetParams(node: Handle, of: In<HostParameters>) {
        set(node, host(of))
    }
    fn hipGraphExecHostNodeSetParams(exec: Handle, node: Handle, of: In<HostParameters>) {
        set_in(exec, node, host(of))
    }
    fn hipGraphAddChildGraphNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, of: Handle) {
        add(node, graph, after, count, child(of))
    }
    fn hipGraphChildGraphNodeGetGraph(node: Handle, graph: Out<Handle>) {
        graph.put(get(node, |operation| match *operation {
            Operation::Child(graph) => Some(graph),
            _ => None,
        })?)
    }
    fn hipGraphExecChildGraphNodeSetParams(exec: Handle, node: Handle, of: Handle) {
        set_in(exec, node, child(of))
    }
    fn hipGraphAddEmptyNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) {
        add(node, graph, after, count, Ok(Operation::Empty))
    }
    fn hipGraphAddEventRecordNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, of: Handle) {
        add(node, graph, after, count, event(of, Operation::Record))
    }
    fn hipGraphEventRecordNodeGetEvent(node: Handle, event: Out<Handle>) {
        event.put(get(node, |operation| match *operation {
            Operation::Record(event) => Some(event),
            _ => None,
        })?)
    }
    fn hipGraphEventRecordNodeSetEvent(node: Handle, of: Handle) {
        set(node, event(of, Operation::Record))
    }
    fn hipGraphExecEventRecordNodeSetEvent(exec: Handle, node: Handle, of: Handle) {
        set_in(exec, node, event(of, Operation::Record))
    }
    fn hipGraphAddEventWaitNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, of: Handle) {
        add(node, graph, after, count, event(of, Operation::Wait))
    }
    fn hipGraphEventWaitNodeGetEvent(node: Handle, event: Out<Handle>) {
        event.put(get(node, |operation| match *operation {
            Operation::Wait(event) => Some(event),
            _ => None,
        })?)
    }
    fn hipGraphEventWaitNodeSetEvent(node: Handle, of: Handle) {
        set(node, event(of, Operation::Wait))
    }
    fn hipGraphExecEventWaitNodeSetEvent(exec: Handle, node: Handle, of: Handle) {
        set_in(exec, node, event(of, Operation::Wait))
    }
    fn hipGraphAddMemAllocNode(
        node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, of: InOut<AllocationParameters>,
    ) {
        let mut parameters = of.value()?;
        let bytes = parameters.bytes;
        if bytes == 0 {
            return Err(invalid("there is nothing to allocate"));
        }
        allocate_in_stream(runtime()?, Out::to(&mut parameters.address), bytes, MemoryKind::Device, 0)?;
        of.put(parameters)?;
        add(node, graph, after, count, Ok(Operation::Allocate { address: parameters.address, bytes }))
    }
    fn hipGraphMemAllocNodeGetParams(node: Handle, parameters: Out<AllocationParameters>) {
        let (address, bytes) = get(node, |operation| match *operation {
            Operation::Allocate { address, bytes } => Some((address, bytes)),
            _ => None,
        })?;
        parameters.put(AllocationParameters { pool: [0; 88], accesses: 0, count: 0, bytes, address })
    }
    fn hipGraphAddMemFreeNode(node: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, address: u64) {
        let block = runtime()?.space.find(address).filter(|block| OF_DEVICE.contains(&block.kind));
        let block = block.ok_or_else(|| invalid(format!("{address:#x} is in no allocation of HIP")))?;
        add(node, graph, after, count, Ok(Operation::Free { address: block.address }))
    }
    fn hipGraphMemFreeNodeGetParams(node: Handle, address: Out<u64>) {
        address.put(get(node, |operation| match *operation {
            Operation::Free { address } => Some(address),
            _ => None,
        })?)
    }
    fn hipGraphNodeGetType(node: Handle, kind: Out<c_int>) {
        kind.put(get(node, |operation| Some(operation.kind()))?.number())
    }
    fn hipGraphDestroyNode(node: Handle) {
        let operation = graphs::with_owner(node, |graph| {
            let operation = graph.node(node)?.operation.clone();
            graph.remove(node);
            Ok(operation)
        })?;
        match operation {
            Operation::Child(graph) => graphs::destroy(graph),
            _ => Ok(()),
        }
    }
    fn hipGraphAddDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        depend(graph, from, to, count, |node, from| match node.after.insert(from) {
            true => Ok(()),
            false => Err(invalid("the dependency is there already")),
        })
    }
    fn hipGraphRemoveDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        depend(graph, from, to, count, |node, from| match node.after.remove(&from) {
            true => Ok(()),
            false => Err(invalid("there is no such dependency")),
        })
    }
    fn hipGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: InOut<usize>) {
        put_list(&graphs::with(graph, |graph| graph.order())?, nodes, count)
    }
    fn hipGraphGetRootNodes(graph: Handle, nodes: Out<Handle>, count: InOut<usize>) {
        let roots: Vec<Handle> = graphs::with(graph, |graph| {
            let roots = graph.nodes.iter().filter(|(_, node)| node.after.is_empty());
            Ok(roots.map(|(&node, _)| node).collect())
        })?;
        put_list(&roots, nodes, count)
    }
    fn hipGraphGetEdges(graph: Handle, from: Out<Handle>, to: Out<Handle>, count: InOut<usize>) {
        let (first, second): (Vec<Handle>, Vec<Handle>) =
            graphs::with(graph, |graph| Ok(graph.edges()))?.into_iter().unzip();
        if from.is_null() != to.is_null() {
            return Err(invalid("only one of the two lists has a place"));
        }
        let room = if from.is_null() { 0 } else { count.value()? };
        put_list(&first, from, count)?;
        if !to.is_null() {
            count.put(room)?;
        }
        put_list(&second, to, count)
    }
    fn hipGraphNodeGetDependencies(node: Handle, nodes: Out<Handle>, count: InOut<usize>) {
        let before: Vec<Handle> =
            graphs::with_owner(node, |graph| Ok(graph.node(node)?.after.iter().copied().collect()))?;
        put_list(&before, nodes, count)
    }
    fn hipGraphNodeGetDependentNodes(node: Handle, nodes: Out<Handle>, count: InOut<usize>) {
        let after: Vec<Handle> = graphs::with_owner(node, |graph| Ok(graph.dependents(node).collect()))?;
        put_list(&after, nodes, count)
    }
    fn hipGraphNodeFindInClone(node: Out<Handle>, original: Handle, copy: Handle) {
        node.put(graphs::with(copy, |graph| graph.copy_of(original))?)
    }
}
