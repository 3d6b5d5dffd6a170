#include "check.hpp"
constexpr int BINS = 64;
__global__ void histogram(const unsigned* from, int n, unsigned* bins, float* sums, double* total) {
    __shared__ unsigned local[BINS];
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[from[i] % BINS], 1u);
        atomicAdd(&sums[from[i] % 4], 1.0f);
        unsafeAtomicAdd(total, 0.5);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
__global__ void extremes(const unsigned* from, int n, unsigned* least, unsigned* most, unsigned* last) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicMin(least, from[i]);
    atomicMax(most, from[i]);
    unsigned old = *last, seen;
    do {
        seen = old;
        old = atomicCAS(last, seen, seen ^ from[i]);
    } while (old != seen);
}
int main() {
    const int n = 20000;
    std::vector<unsigned> from(n), bins(BINS), expected(BINS);
    std::vector<float> sums(4), expected_sums(4);
    unsigned state = 7, least = ~0u, most = 0, all = 0;
    for (unsigned& x : from) {
        x = next(state);
        expected[x % BINS]++, expected_sums[x % 4] += 1;
        least = x < least ? x : least, most = x > most ? x : most, all ^= x;
    }
    OnDevice<unsigned> a(from), b(bins), c(std::vector<unsigned>{~0u, 0, 0});
    OnDevice<float> s(sums);
    OnDevice<double> t(std::vector<double>{0});
    histogram<<<5, 256>>>(a.data, n, b.data, s.data, t.data);
    extremes<<<(n + 127) / 128, 128>>>(a.data, n, c.data, c.data + 1, c.data + 2);
    SAME(b.back(), expected);
    SAME(s.back(), expected_sums);
    SAME(t.back()[0], 0.5 * n);
    SAME(c.back(), (std::vector<unsigned>{least, most, all}));
    return good();
}
