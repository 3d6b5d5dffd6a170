#include "check.hpp"
// What compilers make of correct programs without optimisation: lanes that have left a kernel before a barrier are
// there again for its last instructions, and structures of doubles move by 16 bytes from multiples of 8.
__global__ void early(int* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    __syncthreads();
    out[i] = i;
}
struct Three {
    double a, b, c;
};
__global__ void wide(Three* out) {
    __shared__ int before[2];
    __shared__ Three three[3];
    Three* place = &three[1];
    if (threadIdx.x == 0) *place = out[0];
    __syncthreads();
    if (threadIdx.x == 0) out[1] = *place, out[0].a = before == nullptr;
}
int main() {
    OnDevice<int> out(std::vector<int>(256));
    early<<<1, 64>>>(out.data, 6);
    early<<<1, 200>>>(out.data, 70);
    early<<<1, 200>>>(out.data, 64);
    SAME(out.back()[69], 69);
    OnDevice<Three> three(std::vector<Three>{{1, 2, 3}, {0, 0, 0}});
    wide<<<1, 64>>>(three.data);
    SAME(three.back()[1].c, 3);
    return good();
}
