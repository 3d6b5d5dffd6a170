#include "check.hpp"
// A captured stream, another one that joins it, a graph of nodes, and what programs ask about both.
__global__ void add(int* p, int by) { p[threadIdx.x] += by; }
static void count(void* data) { ++*static_cast<int*>(data); }
static void called(hipStream_t, hipError_t, void* data) { count(data); }
static int captured() {
    int *p, host[64];
    hipStream_t s, other;
    hipEvent_t fork, join;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipStreamCaptureStatus status;
    int calls = 0;
    MUST(hipMalloc(reinterpret_cast<void**>(&p), sizeof host));
    MUST(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    MUST(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    MUST(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
    MUST(hipEventCreateWithFlags(&join, hipEventDisableTiming));
    MUST(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
    MUST(hipMemsetAsync(p, 0, sizeof host, s));
    add<<<1, 64, 0, s>>>(p, 3);
    MUST(hipEventRecord(fork, s));
    MUST(hipStreamWaitEvent(other, fork, 0));
    add<<<1, 64, 0, other>>>(p, 4);
    MUST(hipStreamAddCallback(other, called, &calls, 0));
    MUST(hipEventRecord(join, other));
    IS_CODE(hipEventQuery(join), hipErrorCapturedEvent);
    MUST(hipStreamWaitEvent(s, join, 0));
    MUST(hipMemcpyAsync(host, p, sizeof host, hipMemcpyDeviceToHost, s));
    MUST(hipStreamIsCapturing(s, &status));
    SAME(status, hipStreamCaptureStatusActive);
    MUST(hipStreamEndCapture(s, &graph));
    MUST(hipStreamIsCapturing(s, &status));
    SAME(status, hipStreamCaptureStatusNone);
    SAME(calls, 0);
    MUST(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    size_t nodes = 0;
    MUST(hipGraphGetNodes(graph, nullptr, &nodes));
    SAME(nodes, 5u);
    for (int i = 1; i <= 2; i++) {
        host[5] = 0;
        MUST(hipGraphLaunch(exec, s));
        MUST(hipStreamSynchronize(s));
        SAME(host[5], 7);
        SAME(calls, i);
    }
    MUST(hipGraphExecDestroy(exec));
    MUST(hipGraphDestroy(graph));
    // Waiting for a captured stream spoils the capture, and an open fork is an error.
    MUST(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    IS_CODE(hipStreamSynchronize(s), hipErrorStreamCaptureUnsupported);
    IS_CODE(hipStreamEndCapture(s, &graph), hipErrorStreamCaptureInvalidated);
    MUST(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    MUST(hipEventRecord(fork, s));
    MUST(hipStreamWaitEvent(other, fork, 0));
    add<<<1, 64, 0, other>>>(p, 4);
    IS_CODE(hipStreamEndCapture(s, &graph), hipErrorStreamCaptureUnjoined);
    MUST(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
    int* more;
    IS_CODE(hipMalloc(reinterpret_cast<void**>(&more), 4), hipErrorStreamCaptureUnsupported);
    IS_CODE(hipStreamEndCapture(s, &graph), hipErrorStreamCaptureInvalidated);
    IS_CODE(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
    IS_CODE(hipStreamEndCapture(s, &graph), hipErrorIllegalState);
    MUST(hipFree(p));
    (void)hipGetLastError();
    return 0;
}
static int made() {
    int *p, host[64] = {}, by = 5, calls = 0;
    hipGraph_t graph, copy, child;
    hipGraphExec_t exec;
    hipGraphNode_t set, kernel, back, call, embedded, inner, found, empty;
    MUST(hipMalloc(reinterpret_cast<void**>(&p), sizeof host));
    MUST(hipGraphCreate(&graph, 0));
    hipMemsetParams zero{};
    zero.dst = p, zero.elementSize = 4, zero.width = 64, zero.height = 1, zero.value = 1;
    void* arguments[] = {&p, &by};
    hipKernelNodeParams of{};
    of.func = reinterpret_cast<void*>(add), of.gridDim = dim3(1), of.blockDim = dim3(64), of.kernelParams = arguments;
    // The copy is made first and comes last.
    MUST(hipGraphAddMemcpyNode1D(&back, graph, nullptr, 0, host, p, sizeof host, hipMemcpyDeviceToHost));
    MUST(hipGraphAddKernelNode(&kernel, graph, nullptr, 0, &of));
    by = 100;  // the node has its own copy
    MUST(hipGraphAddMemsetNode(&set, graph, nullptr, 0, &zero));
    MUST(hipGraphAddDependencies(graph, &set, &kernel, 1));
    MUST(hipGraphAddDependencies(graph, &kernel, &back, 1));
    hipHostNodeParams host_of{count, &calls};
    MUST(hipGraphAddHostNode(&call, graph, &back, 1, &host_of));
    MUST(hipGraphAddEmptyNode(&empty, graph, &call, 1));
    MUST(hipGraphCreate(&child, 0));
    MUST(hipGraphAddHostNode(&inner, child, nullptr, 0, &host_of));
    MUST(hipGraphAddChildGraphNode(&embedded, graph, &empty, 1, child));
    MUST(hipGraphDestroy(child));
    size_t nodes = 0, edges = 0;
    MUST(hipGraphGetNodes(graph, nullptr, &nodes));
    MUST(hipGraphGetEdges(graph, nullptr, nullptr, &edges));
    SAME(nodes, 6u);
    SAME(edges, 5u);
    hipGraphNode_t roots[2];
    size_t count_of_roots = 2;
    MUST(hipGraphGetRootNodes(graph, roots, &count_of_roots));
    SAME(count_of_roots, 1u);
    SAME(roots[0], set);
    hipGraphNodeType kind;
    MUST(hipGraphNodeGetType(kernel, &kind));
    SAME(kind, hipGraphNodeTypeKernel);
    MUST(hipGraphClone(&copy, graph));
    MUST(hipGraphNodeFindInClone(&found, kernel, copy));
    hipKernelNodeParams told{};
    MUST(hipGraphKernelNodeGetParams(found, &told));
    SAME(told.func, of.func);
    SAME(*static_cast<int*>(told.kernelParams[1]), 5);
    MUST(hipGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(hipGraphLaunch(exec, nullptr));
    SAME(host[63], 6);
    SAME(calls, 2);
    MUST(hipGraphExecKernelNodeSetParams(exec, kernel, &of));
    MUST(hipGraphLaunch(exec, nullptr));
    SAME(host[63], 101);
    // The copy has the first number still.
    hipGraphExecUpdateResult result;
    MUST(hipGraphExecUpdate(exec, copy, &found, &result));
    SAME(result, hipGraphExecUpdateSuccess);
    MUST(hipGraphLaunch(exec, nullptr));
    SAME(host[63], 6);
    MUST(hipGraphDestroyNode(embedded));
    IS_CODE(hipGraphExecUpdate(exec, graph, &found, &result), hipErrorGraphExecUpdateFailure);
    SAME(result, hipGraphExecUpdateErrorTopologyChanged);
    MUST(hipGraphAddDependencies(graph, &empty, &set, 1));
    hipGraphExec_t circle;
    IS_CODE(hipGraphInstantiate(&circle, graph, nullptr, nullptr, 0), hipErrorInvalidValue);
    MUST(hipGraphExecDestroy(exec));
    MUST(hipGraphDestroy(graph));
    MUST(hipGraphDestroy(copy));
    IS_CODE(hipGraphDestroy(graph), hipErrorInvalidValue);
    MUST(hipFree(p));
    (void)hipGetLastError();
    return 0;
}
int main() { return captured() || made() || good(); }
