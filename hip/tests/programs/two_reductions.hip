#include "check.hpp"
// Two reductions share a buffer of LDS, and a barrier between them is missing: a race, but waves that stay
// together come out right, as on a GPU. Prints whether they did.
__device__ float both(float v, float *shared, bool sum) {
    for (int step = 32; step; step /= 2) {
        float other = __shfl_xor(v, step);
        v = sum ? v + other : fmaxf(v, other);
    }
    if (threadIdx.x % 64 == 0) shared[threadIdx.x / 64] = v;
    __syncthreads();
    float a = shared[0], b = shared[1];
    return sum ? a + b : fmaxf(a, b);
}
__global__ void softmax(float *x) {
    __shared__ float shared[2];
    float largest = both(x[threadIdx.x], shared, false);
    float e = expf(x[threadIdx.x] - largest);
    x[threadIdx.x] = e / both(e, shared, true);
}
int main() {
    std::vector<float> host(128);
    float total = 0, worst = 0;
    for (int i = 0; i < 128; i++) total += expf(host[i] = i % 13 * .5f);
    OnDevice<float> d(host);
    softmax<<<1, 128>>>(d.data);
    MUST(hipDeviceSynchronize());
    std::vector<float> out = d.back();
    for (int i = 0; i < 128; i++) worst = fmaxf(worst, fabsf(out[i] - expf(host[i]) / total));
    puts(worst < 1e-5f ? "together" : "apart");
    return 0;
}
