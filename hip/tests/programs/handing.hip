#include "check.hpp"
// Waves that hand over data without a barrier: locks and flags in LDS and in memory, compare-and-swap.
constexpr int GROUP = __HIP_MEMORY_SCOPE_WORKGROUP;
constexpr int AGENT = __HIP_MEMORY_SCOPE_AGENT;
__global__ void lds_lock(int* out) {
    __shared__ int lock, sum;
    if (threadIdx.x == 0) lock = 0, sum = 0;
    __syncthreads();
    for (int lane = 0; lane < 4; ++lane) {
        if (threadIdx.x % 64 != lane) continue;
        while (atomicCAS(&lock, 0, 1) != 0) {}
        __threadfence_block();
        sum = sum + 1;
        __threadfence_block();
        atomicExch(&lock, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = sum;
}
__global__ void lds_min(const float* from, float* out) {
    __shared__ float least;
    if (threadIdx.x == 0) least = 1e30f;
    __syncthreads();
    atomicMin(&least, from[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) *out = least;
}
__global__ void lds_flag(const int* from, int* out) {
    __shared__ int flag, data[64];
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x < 64) {
        data[threadIdx.x] = from[threadIdx.x];
        if (threadIdx.x == 0) __hip_atomic_store(&flag, 1, __ATOMIC_RELEASE, GROUP);
    } else {
        while (__hip_atomic_load(&flag, __ATOMIC_ACQUIRE, GROUP) == 0) {}
        out[threadIdx.x - 64] = data[threadIdx.x - 64];
    }
}
__device__ int flag, data[64];
__global__ void global_flag(const int* from, int* out) {
    if (threadIdx.x < 64) {
        data[threadIdx.x] = from[threadIdx.x];
        if (threadIdx.x == 0) __hip_atomic_store(&flag, 1, __ATOMIC_RELEASE, GROUP);
    } else {
        while (__hip_atomic_load(&flag, __ATOMIC_ACQUIRE, GROUP) == 0) {}
        out[threadIdx.x - 64] = data[threadIdx.x - 64];
    }
}
// Through pointers that may lead anywhere.
__global__ void flat_flag(int** pointers, int* out) {
    if (threadIdx.x != 0) return;
    int *flag = pointers[0], *data = pointers[1];
    if (blockIdx.x == 0) {
        *data = 77;
        __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, AGENT);
    } else {
        while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, AGENT) == 0) {}
        *out = *data;
    }
}
int main() {
    std::vector<int> from(64), none(64);
    std::vector<float> floats(256);
    for (int i = 0; i < 64; ++i) from[i] = i * i;
    for (int i = 0; i < 256; ++i) floats[i] = 100 - i % 77;
    OnDevice<int> a(from), b(none), c(std::vector<int>(1)), pair(std::vector<int>(2));
    OnDevice<float> f(floats), least(std::vector<float>(1));
    OnDevice<int*> pointers(std::vector<int*>{pair.data, pair.data + 1});
    lds_lock<<<1, 256>>>(c.data);
    SAME(c.back()[0], 16);
    lds_min<<<1, 256>>>(f.data, least.data);
    SAME(least.back()[0], 24.0f);
    lds_flag<<<1, 128>>>(a.data, b.data);
    SAME(b.back(), from);
    MUST(hipMemset(b.data, 0, 256));
    global_flag<<<1, 128>>>(a.data, b.data);
    SAME(b.back(), from);
    flat_flag<<<2, 64>>>(pointers.data, c.data);
    SAME(c.back()[0], 77);
    return good();
}
