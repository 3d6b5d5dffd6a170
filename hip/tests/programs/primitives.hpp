// What the programs over rocPRIM share: sizes from the command line, elements, and calls with their temporary
// memory.
#pragma once
#include "check.hpp"
#include <algorithm>
#include <numeric>
#include <rocprim/rocprim.hpp>
#include <type_traits>

template <typename T> std::vector<T> numbers(size_t n, unsigned seed, unsigned range) {
    std::vector<T> all(n);
    for (T& x : all) {
        int value = int(next(seed) % range) - (std::is_unsigned<T>::value ? 0 : int(range / 2));
        x = sizeof(T) == 8 ? T(value) * T(1 << 20) : T(value);
    }
    return all;
}

// Calls twice: for the size of the temporary memory, and with it.
template <typename F> void primitive(F f) {
    size_t bytes = 0;
    MUST(f(nullptr, bytes));
    char* memory;
    MUST(hipMalloc(reinterpret_cast<void**>(&memory), std::max<size_t>(bytes, 1)));
    MUST(f(memory, bytes));
    MUST(hipDeviceSynchronize());
    MUST(hipFree(memory));
}

template <typename F> int for_sizes(int count, char** arguments, F f) {
    for (int i = 1; i < count; i++) f(size_t(std::atoll(arguments[i])));
    return good();
}
