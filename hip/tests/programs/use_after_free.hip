#include "check.hpp"
__global__ void fill(int* data) { data[threadIdx.x] = threadIdx.x; }
int main() {
    int* data;
    MUST(hipMalloc(reinterpret_cast<void**>(&data), 64 * sizeof(int)));
    fill<<<1, 64>>>(data);
    MUST(hipDeviceSynchronize());
    MUST(hipFree(data));
    fill<<<1, 64>>>(data);
    IS_CODE(hipDeviceSynchronize(), hipErrorIllegalAddress);
    return 0;
}
