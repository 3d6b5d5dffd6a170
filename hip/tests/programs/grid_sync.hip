#include "check.hpp"
#include <hip/hip_cooperative_groups.h>
namespace cg = cooperative_groups;
// Each round every block writes, and after all have reads its neighbour's: wrong unless the whole grid waits.
template <bool waits>
__global__ void rounds(int* data, int n) {
    cg::grid_group grid = cg::this_grid();
    for (int round = 0; round < n; round++) {
        if (threadIdx.x == 0) data[blockIdx.x] += 1;
        if (waits) grid.sync();
        int* at = &data[(blockIdx.x + 1) % gridDim.x];
        int next = waits ? __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) : *at;
        grid.sync();
        if (threadIdx.x == 0 && next != round + 1) data[blockIdx.x] = -1000;
    }
    if (!grid.is_valid()) data[blockIdx.x] = -1;
}
int main(int count, char**) {
    const unsigned blocks = 60;
    OnDevice<int> data{std::vector<int>(blocks)};
    int n = 3;
    void* arguments[] = {&data.data, &n};
    // With an argument they do not wait between the writes and the reads.
    void* kernel = reinterpret_cast<void*>(count > 1 ? rounds<false> : rounds<true>);
    MUST(hipLaunchCooperativeKernel(kernel, dim3(blocks), dim3(128), arguments, 0, nullptr));
    SAME(data.back(), std::vector<int>(blocks, n));
    IS_CODE(hipLaunchCooperativeKernel(kernel, dim3(1 << 20), dim3(128), arguments, 0, nullptr),
            hipErrorCooperativeLaunchTooLarge);
    (void)hipGetLastError();
    return good();
}
