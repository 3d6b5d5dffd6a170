#include "check.hpp"
// Sums by compare-and-swap begin with a plain load that guesses; what `peeks` loads is kept.
__global__ void adds(unsigned long long* sum) {
    unsigned long long old = *sum, seen;
    do {
        seen = old;
        old = atomicCAS(sum, seen, __double_as_longlong(1.0 + __longlong_as_double(seen)));
    } while (old != seen);
}
__global__ void adds_floats(float* sum) { atomicAdd(sum, 1.0f); }
__global__ void peeks(float* sum, float* kept) {
    kept[blockIdx.x] = *sum;
    atomicAdd(sum, 1.0f);
}
int main(int argc, char**) {
    OnDevice<float> kept(std::vector<float>(4, 0)), sum(std::vector<float>(1, 0));
    if (argc > 1) {
        peeks<<<4, 256>>>(sum.data, kept.data);
    } else {
        OnDevice<unsigned long long> doubles(std::vector<unsigned long long>(1, 0));
        adds<<<4, 256>>>(doubles.data);
        adds_floats<<<4, 256>>>(sum.data);
        double found;
        MUST(hipMemcpy(&found, doubles.data, 8, hipMemcpyDeviceToHost));
        SAME(found, 1024.0);
    }
    SAME(sum.back()[0], 1024.0f);
    std::printf("good\n");
    return 0;
}
