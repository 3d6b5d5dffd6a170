#include "check.hpp"
// Writes one element past the end of an allocation, which is that of a page.
__global__ void fill(int* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) data[i] = i;
}
int main() {
    int* data;
    MUST(hipMalloc(reinterpret_cast<void**>(&data), 1024 * sizeof(int)));
    fill<<<9, 128>>>(data, 1024);
    IS_CODE(hipDeviceSynchronize(), hipErrorIllegalAddress);
    return 0;
}
