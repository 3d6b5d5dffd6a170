#include "check.hpp"
// Two operations on one piece of memory: `right` ones are ordered, `wrong` ones are ordered by nothing.
__global__ void fill(int* p, int v) { p[blockIdx.x * blockDim.x + threadIdx.x] = v; }
__global__ void add(const int* p, int* q) { q[blockIdx.x * blockDim.x + threadIdx.x] = p[blockIdx.x * blockDim.x + threadIdx.x] + 1; }
__global__ void count(int* p) { atomicAdd(p, 1); }
int main(int argc, char** argv) {
    const int n = 4096;
    const char* what = argv[1];
    bool right = argv[2][0] == 'r';
    auto is = [&](const char* name) { return std::strcmp(what, name) == 0; };
    int *p, *q, *pinned;
    MUST(hipMalloc(&p, n * 4));
    MUST(hipMalloc(&q, n * 4));
    MUST(hipHostMalloc(reinterpret_cast<void**>(&pinned), n * 4, 0));
    MUST(hipMemset(p, 0, n * 4));
    MUST(hipMemset(q, 0, n * 4));
    hipStream_t a, b, blocking;
    hipEvent_t event;
    MUST(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
    MUST(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
    MUST(hipStreamCreate(&blocking));
    MUST(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    if (is("copy")) { // The default stream does not wait for `a`.
        fill<<<16, 256, 0, a>>>(p, 5);
        if (right) MUST(hipMemcpyAsync(q, p, n * 4, hipMemcpyDeviceToDevice, a));
        else MUST(hipMemcpy(q, p, n * 4, hipMemcpyDeviceToDevice));
    } else if (is("kernels")) {
        fill<<<16, 256, 0, a>>>(p, 5);
        if (right) {
            MUST(hipEventRecord(event, a));
            MUST(hipStreamWaitEvent(b, event, 0));
        }
        add<<<16, 256, 0, b>>>(p, q);
    } else if (is("memset")) {
        MUST(hipMemsetAsync(p, 1, n * 4, right ? a : nullptr));
        add<<<16, 256, 0, a>>>(p, q);
    } else if (is("default")) { // It waits for `blocking`, which waits for it.
        fill<<<16, 256, 0, right ? blocking : a>>>(p, 5);
        add<<<16, 256>>>(p, q);
        fill<<<16, 256, 0, right ? blocking : a>>>(q, 6);
    } else if (is("blocking")) { // Such streams do not wait for each other.
        fill<<<16, 256, 0, blocking>>>(p, 5);
        if (right) MUST(hipMemsetAsync(q, 0, 4, nullptr));
        hipStream_t other;
        MUST(hipStreamCreate(&other));
        add<<<16, 256, 0, other>>>(p, q);
    } else if (is("overwritten")) { // A kernel still reads what is copied over.
        add<<<16, 256, 0, a>>>(p, q);
        if (right) MUST(hipStreamSynchronize(a));
        std::vector<int> zeros(n);
        MUST(hipMemcpyAsync(p, zeros.data(), n * 4, hipMemcpyHostToDevice, b));
    } else if (is("pinned")) { // The host reads what is not there yet.
        MUST(hipMemcpyAsync(pinned, p, n * 4, hipMemcpyDeviceToHost, a));
        if (right) while (hipStreamQuery(a) != hipSuccess) {}
        std::vector<int> there(n);
        MUST(hipMemcpy(there.data(), pinned, n * 4, hipMemcpyHostToHost));
    } else if (is("event")) { // It stands for what came before it alone.
        fill<<<16, 256, 0, a>>>(p, 5);
        if (!right) MUST(hipEventRecord(event, a));
        fill<<<16, 256, 0, a>>>(p, 6);
        if (right) MUST(hipEventRecord(event, a));
        MUST(hipEventSynchronize(event));
        add<<<16, 256, 0, b>>>(p, q);
    } else if (is("parts")) { // Rows of one piece of memory, each with its stream.
        for (int i = 0; i < 2; i++) {
            hipStream_t stream = i ? a : b;
            MUST(hipMemset2DAsync(p + 8 * i, 64, i, right ? 32 : 36, 16, stream));
        }
    } else if (is("atomics")) {
        count<<<16, 256, 0, a>>>(p);
        count<<<16, 256, 0, b>>>(p);
        if (!right) MUST(hipMemsetAsync(p, 0, 4, b));
    } else {
        return 2;
    }
    MUST(hipDeviceSynchronize());
    fill<<<16, 256, 0, a>>>(p, 7);
    MUST(hipStreamSynchronize(a));
    MUST(hipMemcpy(q, p, n * 4, hipMemcpyDeviceToDevice));
    return good();
}
