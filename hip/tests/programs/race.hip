#include "check.hpp"
// A barrier is missing between two waves that share LDS.
__global__ void shift(int* data) {
    __shared__ int values[128];
    values[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = values[(threadIdx.x + 64) % 128];
}
int main() {
    OnDevice<int> d(std::vector<int>(128, 1));
    shift<<<1, 128>>>(d.data);
    MUST(hipDeviceSynchronize());
    return 0;
}
