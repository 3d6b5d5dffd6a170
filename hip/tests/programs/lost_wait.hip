#include "check.hpp"
// A workgroup hands over data by an add that releases, just after it has waited for another atomic.
constexpr int AGENT = __HIP_MEMORY_SCOPE_AGENT;
__global__ void hand_over(int* data, int* taken, int* flag, int* out) {
    if (blockIdx.x == 0) {
        *data = 77;
        if (__hip_atomic_fetch_or(taken, 1, __ATOMIC_RELAXED, AGENT) == 0)
            __hip_atomic_fetch_add(flag, 1, __ATOMIC_RELEASE, AGENT);
    } else {
        while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, AGENT) == 0) {}
        *out = *data;
    }
}
int main() {
    OnDevice<int> data(std::vector<int>(1)), taken(std::vector<int>(1)), flag(std::vector<int>(1));
    OnDevice<int> out(std::vector<int>(1));
    hand_over<<<2, 1>>>(data.data, taken.data, flag.data, out.data);
    SAME(out.back()[0], 77);
    return good();
}
