#include "check.hpp"
// After a kernel has failed everything that uses the device answers its error, until the device is reset.
__global__ void store(int* p) { p[threadIdx.x] = 1; }
int main() {
    OnDevice<int> d(std::vector<int>(64));
    int* nowhere = reinterpret_cast<int*>(0x5000);
    void* p = nullptr;
    for (int round = 0; round < 2; ++round) {
        store<<<1, 64>>>(nowhere);
        IS_CODE(hipGetLastError(), hipErrorIllegalAddress);
        IS_CODE(hipDeviceSynchronize(), hipErrorIllegalAddress);
        IS_CODE(hipMalloc(&p, 16), hipErrorIllegalAddress);
        IS_CODE(hipHostMalloc(&p, 16), hipErrorIllegalAddress);
        IS_CODE(hipMemset(d.data, 0, 16), hipErrorIllegalAddress);
        IS_CODE(hipMemset2D(d.data, 16, 0, 8, 2), hipErrorIllegalAddress);
        store<<<1, 64>>>(d.data);
        IS_CODE(hipGetLastError(), hipErrorIllegalAddress);
        MUST(hipDeviceReset());
        SAME(hipGetLastError(), hipSuccess);
        MUST(hipDeviceSynchronize());
    }
    store<<<1, 64>>>(d.data);
    SAME(d.back()[9], 1);
    return good();
}
