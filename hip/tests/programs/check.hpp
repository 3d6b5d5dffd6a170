// What the programs share: a call has to succeed, and a result has to be the host's.
#pragma once
#include <hip/hip_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define MUST(call)                                                                                             \
    do {                                                                                                       \
        hipError_t error_ = (call);                                                                            \
        if (error_ != hipSuccess) {                                                                            \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(error_));                \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

#define SAME(found, expected)                                                                                  \
    do {                                                                                                       \
        if (!((found) == (expected))) {                                                                        \
            std::printf("%s:%d: %s is not %s\n", __FILE__, __LINE__, #found, #expected);                       \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

#define IS_CODE(call, code)                                                                                    \
    do {                                                                                                       \
        hipError_t error_ = (call);                                                                            \
        if (error_ != (code)) {                                                                                \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(error_));                \
            std::exit(1);                                                                                      \
        }                                                                                                      \
    } while (0)

// Memory of the device with the elements of a vector.
template <typename T> struct OnDevice {
    T* data = nullptr;
    size_t count;
    explicit OnDevice(const std::vector<T>& from) : count(from.size()) {
        MUST(hipMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)));
        MUST(hipMemcpy(data, from.data(), count * sizeof(T), hipMemcpyHostToDevice));
    }
    ~OnDevice() { MUST(hipFree(data)); }
    std::vector<T> back() const {
        std::vector<T> to(count);
        MUST(hipMemcpy(to.data(), data, count * sizeof(T), hipMemcpyDeviceToHost));
        return to;
    }
};

// Numbers that are the same everywhere.
inline unsigned next(unsigned& state) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

inline int good() {
    MUST(hipDeviceSynchronize());
    SAME(hipGetLastError(), hipSuccess);
    std::puts("good");
    return 0;
}
