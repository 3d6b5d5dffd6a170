#include "check.hpp"
// Kernels that touch little of what there is: a few bytes at both ends, and in between at places far apart.
__global__ void add(int* p, size_t n) {
    p[threadIdx.x] += 1;
    p[n - 1 - threadIdx.x] += 2;
    p[64 + threadIdx.x * (n / 128)] += 3;
}
int main() {
    const size_t bytes = size_t(4) << 30, n = bytes / 4;
    int *p, first = 0, last = 0, far = 0;
    MUST(hipMalloc(&p, bytes));
    MUST(hipMemset(p, 0, 1024));
    for (int i = 0; i < 20; i++) add<<<1, 64>>>(p, n);
    MUST(hipMemcpy(&first, p, 4, hipMemcpyDeviceToHost));
    MUST(hipMemcpy(&last, p + n - 64, 4, hipMemcpyDeviceToHost));
    MUST(hipMemcpy(&far, p + 64 + 63 * (n / 128), 4, hipMemcpyDeviceToHost));
    SAME(first, 20);
    SAME(last, 40);
    SAME(far, 60);
    return good();
}
