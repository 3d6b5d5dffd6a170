#include "check.hpp"
#include <thread>
__global__ void step(int* data, int n, int by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * 2 + by;
}
static void host(hipStream_t, hipError_t status, void* data) { *static_cast<int*>(data) += status == hipSuccess ? 1 : 100; }
int main() {
    const int n = 4096, count = 4;
    hipStream_t streams[count];
    hipEvent_t start, stop, done[count];
    int* pinned;
    MUST(hipHostMalloc(reinterpret_cast<void**>(&pinned), count * n * sizeof(int), hipHostMallocDefault));
    MUST(hipEventCreate(&start));
    MUST(hipEventCreate(&stop));
    MUST(hipEventRecord(start, nullptr));
    std::vector<int*> data(count);
    int called = 0;
    for (int s = 0; s < count; s++) {
        MUST(hipStreamCreateWithFlags(&streams[s], hipStreamNonBlocking));
        MUST(hipEventCreateWithFlags(&done[s], hipEventDisableTiming));
        MUST(hipMalloc(reinterpret_cast<void**>(&data[s]), n * sizeof(int)));
        MUST(hipMemsetAsync(data[s], 0, n * sizeof(int), streams[s]));
        step<<<n / 256, 256, 0, streams[s]>>>(data[s], n, s + 1);
        if (s > 0) MUST(hipStreamWaitEvent(streams[s], done[s - 1], 0));
        step<<<n / 256, 256, 0, streams[s]>>>(data[s], n, s + 1);
        MUST(hipMemcpyAsync(pinned + s * n, data[s], n * sizeof(int), hipMemcpyDeviceToHost, streams[s]));
        MUST(hipStreamAddCallback(streams[s], host, &called, 0));
        MUST(hipEventRecord(done[s], streams[s]));
    }
    for (int s = 0; s < count; s++) {
        MUST(hipStreamSynchronize(streams[s]));
        MUST(hipStreamQuery(streams[s]));
        MUST(hipEventQuery(done[s]));
        for (int i = 0; i < n; i++) SAME(pinned[s * n + i], 3 * (s + 1));
    }
    SAME(called, count);
    MUST(hipEventRecord(stop, nullptr));
    MUST(hipEventSynchronize(stop));
    float ms = -1;
    MUST(hipEventElapsedTime(&ms, start, stop));
    SAME(ms > 0, true);
    // Eight threads, each with its own memory and all four streams, of which each waits for the one before.
    std::vector<std::thread> threads;
    std::vector<int> sums(8);
    for (int t = 0; t < 8; t++)
        threads.emplace_back([&, t] {
            int* mine;
            MUST(hipMalloc(reinterpret_cast<void**>(&mine), n * sizeof(int)));
            MUST(hipMemset(mine, 0, n * sizeof(int)));
            hipEvent_t before;
            MUST(hipEventCreateWithFlags(&before, hipEventDisableTiming));
            for (int i = 0; i < 8; i++) {
                hipStream_t stream = streams[(t + i) % count];
                MUST(hipStreamWaitEvent(stream, before, 0));
                step<<<n / 256, 256, 0, stream>>>(mine, n, t);
                MUST(hipEventRecord(before, stream));
            }
            MUST(hipEventSynchronize(before));
            MUST(hipEventDestroy(before));
            std::vector<int> back(n);
            MUST(hipMemcpy(back.data(), mine, n * sizeof(int), hipMemcpyDeviceToHost));
            for (int x : back) sums[t] += x;
            MUST(hipFree(mine));
        });
    for (std::thread& thread : threads) thread.join();
    for (int t = 0; t < 8; t++) SAME(sums[t], 255 * t * n);
    for (int s = 0; s < count; s++) {
        MUST(hipStreamDestroy(streams[s]));
        MUST(hipEventDestroy(done[s]));
        MUST(hipFree(data[s]));
    }
    IS_CODE(hipEventQuery(done[0]), hipErrorInvalidHandle);
    (void)hipGetLastError();
    MUST(hipHostFree(pinned));
    return good();
}
