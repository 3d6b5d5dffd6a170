#undef NDEBUG
#include "check.hpp"
#include <cassert>
__global__ void check(int* data) { assert(data[threadIdx.x] == 1); }
int main() {
    OnDevice<int>* d = new OnDevice<int>(std::vector<int>(64, 2));
    check<<<1, 64>>>(d->data);
    SAME(hipDeviceSynchronize() == hipSuccess, false);
    return 0;
}
