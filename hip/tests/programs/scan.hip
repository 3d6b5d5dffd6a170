#include "check.hpp"
constexpr int BLOCK = 256;
__global__ void scan_blocks(const int* from, int* to, int* sums, int n) {
    __shared__ int values[2][BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x, in = 0;
    values[0][threadIdx.x] = i < n ? from[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < BLOCK; offset *= 2, in ^= 1) {
        int value = values[in][threadIdx.x];
        if (threadIdx.x >= offset) value += values[in][threadIdx.x - offset];
        values[in ^ 1][threadIdx.x] = value;
        __syncthreads();
    }
    if (i < n) to[i] = values[in][threadIdx.x];
    if (threadIdx.x == BLOCK - 1) sums[blockIdx.x] = values[in][BLOCK - 1];
}
__global__ void add_before(int* to, const int* sums, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n && blockIdx.x > 0) to[i] += sums[blockIdx.x - 1];
}
int main() {
    const int n = 30000, blocks = (n + BLOCK - 1) / BLOCK;
    std::vector<int> from(n), expected(n);
    unsigned state = 3;
    for (int i = 0, sum = 0; i < n; i++) from[i] = next(state) % 100, expected[i] = sum += from[i];
    OnDevice<int> a(from), b(from), sums{std::vector<int>(blocks)}, scanned{std::vector<int>(blocks)},
        rest{std::vector<int>(1)};
    scan_blocks<<<blocks, BLOCK>>>(a.data, b.data, sums.data, n);
    scan_blocks<<<1, BLOCK>>>(sums.data, scanned.data, rest.data, blocks);
    add_before<<<blocks, BLOCK>>>(b.data, scanned.data, n);
    SAME(b.back(), expected);
    return good();
}
