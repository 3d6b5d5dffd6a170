#include "check.hpp"
__global__ void reduce(const int* from, long long* sum, unsigned long long* ballots, int n) {
    __shared__ long long waves[16];
    long long value = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += from[i];
    unsigned long long odd = __ballot(value & 1);
    if (threadIdx.x % 64 == 0) ballots[(blockIdx.x * blockDim.x + threadIdx.x) / 64] = __popcll(odd);
    for (int offset = 32; offset > 0; offset /= 2) value += __shfl_down(value, offset);
    if (threadIdx.x % 64 == 0) waves[threadIdx.x / 64] = value;
    __syncthreads();
    if (threadIdx.x < 64) {
        value = threadIdx.x < blockDim.x / 64 ? waves[threadIdx.x] : 0;
        for (int offset = 8; offset > 0; offset /= 2) value += __shfl_xor(value, offset);
        if (threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(sum), (unsigned long long)value);
    }
}
int main() {
    const int n = 50001, blocks = 7, block = 512;
    std::vector<int> from(n);
    unsigned state = 1;
    long long expected = 0;
    for (int& x : from) expected += x = int(next(state) % 2001) - 1000;
    OnDevice<int> a(from);
    OnDevice<long long> sum(std::vector<long long>{0});
    OnDevice<unsigned long long> ballots(std::vector<unsigned long long>(blocks * block / 64));
    reduce<<<blocks, block>>>(a.data, sum.data, ballots.data, n);
    SAME(sum.back()[0], expected);
    std::vector<long long> parts(blocks * block);
    for (int i = 0; i < n; i++) parts[i % parts.size()] += from[i];
    std::vector<unsigned long long> odd = ballots.back();
    for (size_t wave = 0; wave < odd.size(); wave++) {
        unsigned long long count = 0;
        for (int lane = 0; lane < 64; lane++) count += parts[wave * 64 + lane] & 1;
        SAME(odd[wave], count);
    }
    return good();
}
