#include "check.hpp"
__global__ void say(int n) {
    if (threadIdx.x < n) printf("lane %d of block %d: %.2f %s %c %%\n", int(threadIdx.x), int(blockIdx.x), 0.25 * threadIdx.x, threadIdx.x % 2 ? "odd" : "even", 'a' + threadIdx.x);
}
int main() {
    say<<<2, 64>>>(3);
    MUST(hipDeviceSynchronize());
    say<<<1, 64>>>(0);
    return good();
}
