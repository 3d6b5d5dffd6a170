#include "primitives.hpp"

template <typename K> void sort_keys(size_t n, unsigned range) {
    std::vector<K> keys = numbers<K>(n, 1, range);
    OnDevice<K> from(keys), to(keys);
    primitive([&](void* t, size_t& b) { return rocprim::radix_sort_keys(t, b, from.data, to.data, n); });
    std::sort(keys.begin(), keys.end());
    SAME(to.back(), keys);
    primitive([&](void* t, size_t& b) { return rocprim::radix_sort_keys_desc(t, b, from.data, to.data, n); });
    std::reverse(keys.begin(), keys.end());
    SAME(to.back(), keys);
}

// Sorts are stable: equal keys keep the order of their values.
template <typename K> void sort_pairs(size_t n, unsigned range, bool merge) {
    std::vector<K> keys = numbers<K>(n, 2, range);
    std::vector<int> values(n), order(n);
    std::iota(values.begin(), values.end(), 0);
    OnDevice<K> from(keys), to(keys);
    OnDevice<int> values_from(values), values_to(values);
    primitive([&](void* t, size_t& b) {
        return merge ? rocprim::merge_sort(t, b, from.data, to.data, values_from.data, values_to.data, n)
                     : rocprim::radix_sort_pairs(t, b, from.data, to.data, values_from.data, values_to.data, n);
    });
    std::stable_sort(values.begin(), values.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    std::sort(keys.begin(), keys.end());
    SAME(to.back(), keys);
    SAME(values_to.back(), values);
}

int main(int count, char** arguments) {
    return for_sizes(count, arguments, [](size_t n) {
        sort_keys<unsigned>(n, 1 << 24);
        sort_keys<float>(n, 2001);
        sort_pairs<long long>(n, 1000, false);
        sort_pairs<int>(n, 500, true);
    });
}
