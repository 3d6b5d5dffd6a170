#include "check.hpp"
// Waves that wait for other waves of their workgroup, and workgroups that wait for other workgroups.
constexpr int AGENT = __HIP_MEMORY_SCOPE_AGENT;
__device__ int load(int* p) { return __hip_atomic_load(p, __ATOMIC_ACQUIRE, AGENT); }
__device__ void store(int* p, int value) { __hip_atomic_store(p, value, __ATOMIC_RELEASE, AGENT); }
__device__ int add(int* p, int value) { return __hip_atomic_fetch_add(p, value, __ATOMIC_ACQ_REL, AGENT); }

// The last wave goes first.
__global__ void backwards(int* flags, int* order) {
    int wave = threadIdx.x / 64, waves = blockDim.x / 64;
    if (threadIdx.x % 64 != 0) return;
    while (wave + 1 < waves && load(&flags[wave + 1]) == 0) {}
    order[wave] = wave + 1 < waves ? order[wave + 1] + 1 : 1;
    store(&flags[wave], 1);
}
// Two waves take turns.
__global__ void ping_pong(int* flag, int* sum, int rounds) {
    int wave = threadIdx.x / 64;
    if (threadIdx.x % 64 != 0) return;
    for (int i = 0; i < rounds; ++i) {
        while (load(flag) != 2 * i + wave) {}
        *sum = 3 * *sum % 1000003 + wave;
        store(flag, 2 * i + wave + 1);
    }
}
__global__ void lock(int* lock, int* sum) {
    for (int lane = 0; lane < 64; ++lane) {
        if (threadIdx.x % 64 != lane) continue;
        while (__hip_atomic_exchange(lock, 1, __ATOMIC_ACQUIRE, AGENT) != 0) __builtin_amdgcn_s_sleep(1);
        *sum += 1;
        store(lock, 0);
    }
}
// A lock of one workgroup, which does not wait for its stores to memory before it opens the lock.
__global__ void lock_in_lds(int* sum) {
    constexpr int GROUP = __HIP_MEMORY_SCOPE_WORKGROUP;
    __shared__ int lock;
    if (threadIdx.x == 0) lock = 0;
    __syncthreads();
    for (int lane = 0; lane < 64; ++lane) {
        if (threadIdx.x % 64 != lane) continue;
        while (__hip_atomic_exchange(&lock, 1, __ATOMIC_ACQUIRE, GROUP) != 0) __builtin_amdgcn_s_sleep(1);
        *sum += 1;
        __hip_atomic_store(&lock, 0, __ATOMIC_RELEASE, GROUP);
    }
}
__device__ void grid_barrier(int* arrived, int target) {
    __syncthreads();
    if (threadIdx.x == 0) {
        add(arrived, 1);
        while (load(arrived) < target) __builtin_amdgcn_s_sleep(2);
    }
    __syncthreads();
}
__global__ void rounds(int* arrived, int* a, int* b, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int round = 1; round <= count; ++round) {
        b[i] = a[(i + 3 * blockDim.x) % n] + 1;
        grid_barrier(arrived, 2 * round * gridDim.x - gridDim.x);
        a[i] = b[(i + 5 * blockDim.x) % n];
        grid_barrier(arrived, 2 * round * gridDim.x);
    }
}
// All work-items look at the flag, with barriers between, and count how often they have: such states do not repeat.
__global__ void counted(int* flag, int* trips) {
    __shared__ int seen;
    if (blockIdx.x == gridDim.x - 1) {
        if (threadIdx.x == 0) store(flag, 1);
        return;
    }
    int count = 0;
    do {
        if (threadIdx.x == 0) seen = load(flag);
        __syncthreads();
        ++count;
        if (seen != 0) break;
        __syncthreads();
    } while (true);
    trips[blockIdx.x * blockDim.x + threadIdx.x] = count > 0;
}
int main(int count, char** arguments) {
    bool all = count < 2;
    for (int waves : {2, 5, 16}) {
        std::vector<int> none(waves);
        OnDevice<int> flags(none), order(none);
        backwards<<<1, 64 * waves>>>(flags.data, order.data);
        std::vector<int> found = order.back();
        for (int wave = 0; wave < waves; ++wave) SAME(found[wave], waves - wave);
    }
    OnDevice<int> flag(std::vector<int>(2));
    int expected = 0, turns = all ? 500 : 5;
    for (int i = 0; i < 2 * turns; ++i) expected = 3 * expected % 1000003 + i % 2;
    ping_pong<<<1, 128>>>(flag.data, flag.data + 1, turns);
    SAME(flag.back(), (std::vector<int>{2 * turns, expected}));
    OnDevice<int> locked(std::vector<int>(2));
    lock<<<all ? 5 : 2, 256>>>(locked.data, locked.data + 1);
    SAME(locked.back(), (std::vector<int>{0, all ? 5 * 256 : 2 * 256}));
    OnDevice<int> counted_in_lds(std::vector<int>(1));
    lock_in_lds<<<1, 256>>>(counted_in_lds.data);
    SAME(counted_in_lds.back(), std::vector<int>{256});

    int blocks = all ? 150 : 6, threads = 128, n = blocks * threads;
    OnDevice<int> arrived(std::vector<int>(1)), b(std::vector<int>(n, 0));
    std::vector<int> from(n), host(n);
    for (int i = 0; i < n; ++i) from[i] = i;
    OnDevice<int> a(from);
    int steps = all ? 20 : 2;
    rounds<<<blocks, threads>>>(arrived.data, a.data, b.data, steps);
    for (int step = 0; step < steps; ++step) {
        for (int i = 0; i < n; ++i) host[i] = from[(i + 3 * threads) % n] + 1;
        for (int i = 0; i < n; ++i) from[i] = host[(i + 5 * threads) % n];
    }
    SAME(a.back(), from);
    if (all) {
        OnDevice<int> set(std::vector<int>(1)), trips(std::vector<int>(6 * 128));
        counted<<<7, 128>>>(set.data, trips.data);
        SAME(trips.back(), std::vector<int>(6 * 128, 1));
    }
    return good();
}
