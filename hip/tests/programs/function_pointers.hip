#include "check.hpp"
typedef int (*Operation)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ Operation operations[2] = {plus, times};
__global__ void apply(int* data) { data[threadIdx.x] = operations[threadIdx.x / 64](threadIdx.x, 3); }
int main() {
    OnDevice<int> d(std::vector<int>(128));
    apply<<<1, 128>>>(d.data);
    std::vector<int> back = d.back();
    for (int i = 0; i < 128; i++) SAME(back[i], i < 64 ? i + 3 : i * 3);
    return good();
}
