#include "check.hpp"
// Half of what a kernel stores was never written. Nobody reads that, the host does, or a kernel does.
__global__ void leaves(int* out) {
    __shared__ volatile int never[64];
    out[threadIdx.x] = threadIdx.x < 32 ? 1 : never[threadIdx.x];
}
__global__ void decides(const int* in, int* out) { out[0] = in[63] > 0 ? out[1] : 2; }
int main(int argc, char** argv) {
    const char* reader = argc > 1 ? argv[1] : "nobody";
    int* data;
    MUST(hipMalloc(&data, 64 * sizeof(int)));
    leaves<<<1, 64>>>(data);
    int back[64];
    MUST(hipMemcpy(back, data, 32 * sizeof(int), hipMemcpyDeviceToHost));
    SAME(back[31], 1);
    if (!strcmp(reader, "later")) MUST(hipMemset(data, 0, 64 * sizeof(int)));
    if (strcmp(reader, "nobody") && strcmp(reader, "kernel")) {
        MUST(hipMemcpy(back, data, 64 * sizeof(int), hipMemcpyDeviceToHost));
    }
    OnDevice<int> result(std::vector<int>(2, 1));
    if (!strcmp(reader, "kernel")) decides<<<1, 1>>>(data, result.data);
    MUST(hipDeviceSynchronize());
    std::printf("good\n");
    return 0;
}
