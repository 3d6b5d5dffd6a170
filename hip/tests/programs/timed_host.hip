#include "check.hpp"
#include <atomic>
#include <chrono>
#include <thread>
// What the host writes while kernels are timed stays.
__global__ void work(int* p, int* pinned, int n) {
    for (int i = 0; i < n; ++i) p[threadIdx.x] += i;
    if (threadIdx.x == 0) atomicAdd(pinned, 1);
}
int main() {
    OnDevice<int> d(std::vector<int>(64));
    int *counter, *pinned;
    MUST(hipHostMalloc(&counter, 4096));
    MUST(hipHostMalloc(&pinned, 4096));
    std::atomic<bool> done{false};
    std::atomic<int> wrong{0};
    auto* count = reinterpret_cast<std::atomic<int>*>(counter);
    std::thread host([&] {
        for (int i = 1; !done; ++i) {
            count->store(i);
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            if (count->load() != i) ++wrong;
        }
    });
    for (int i = 0; i < 5; ++i) {
        work<<<1, 64>>>(d.data, pinned, 2000);
        MUST(hipDeviceSynchronize());
    }
    done = true;
    host.join();
    SAME(wrong.load(), 0);
    SAME(*pinned, 5);
    return good();
}
