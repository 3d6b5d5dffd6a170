#include "primitives.hpp"

template <typename T> void scans(size_t n) {
    std::vector<T> from = numbers<T>(n, 3, 100), inclusive(n), exclusive(n);
    std::partial_sum(from.begin(), from.end(), inclusive.begin());
    for (size_t i = 0; i < n; i++) exclusive[i] = T(7) + (i > 0 ? inclusive[i - 1] : T(0));
    OnDevice<T> a(from), b(from), sum(std::vector<T>(1));
    primitive([&](void* t, size_t& s) { return rocprim::inclusive_scan(t, s, a.data, b.data, n, rocprim::plus<T>()); });
    SAME(b.back(), inclusive);
    primitive([&](void* t, size_t& s) {
        return rocprim::exclusive_scan(t, s, a.data, b.data, T(7), n, rocprim::plus<T>());
    });
    SAME(b.back(), exclusive);
    primitive([&](void* t, size_t& s) { return rocprim::reduce(t, s, a.data, sum.data, T(5), n, rocprim::plus<T>()); });
    SAME(sum.back()[0], T(5) + inclusive[n - 1]);
    primitive([&](void* t, size_t& s) {
        return rocprim::reduce(t, s, a.data, sum.data, from[0], n, rocprim::maximum<T>());
    });
    SAME(sum.back()[0], *std::max_element(from.begin(), from.end()));
}

void by_key(size_t n) {
    std::vector<int> keys = numbers<int>(n, 4, 3), values = numbers<int>(n, 5, 50), unique, sums;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) unique.push_back(keys[i]), sums.push_back(0);
        sums.back() += values[i];
    }
    OnDevice<int> k(keys), v(values), unique_to(keys), sums_to(values);
    OnDevice<unsigned> count(std::vector<unsigned>(1));
    primitive([&](void* t, size_t& s) {
        return rocprim::reduce_by_key(t, s, k.data, v.data, n, unique_to.data, sums_to.data, count.data,
                                      rocprim::plus<int>());
    });
    SAME(count.back()[0], unique.size());
    std::vector<int> found = unique_to.back(), found_sums = sums_to.back();
    found.resize(unique.size()), found_sums.resize(unique.size());
    SAME(found, unique);
    SAME(found_sums, sums);
    OnDevice<int> only(keys);
    primitive([&](void* t, size_t& s) { return rocprim::unique(t, s, k.data, only.data, count.data, n); });
    SAME(count.back()[0], unique.size());
    found = only.back();
    found.resize(unique.size());
    SAME(found, unique);
}

void histogram(size_t n) {
    std::vector<float> samples = numbers<float>(n, 6, 300);
    std::vector<int> expected(20);
    for (float x : samples)
        if (x >= -100 && x < 100) expected[int((x + 100) / 10)]++;
    OnDevice<float> a(samples);
    OnDevice<int> bins(std::vector<int>(20, -1));
    primitive([&](void* t, size_t& s) {
        return rocprim::histogram_even(t, s, a.data, unsigned(n), bins.data, 21u, -100.0f, 100.0f);
    });
    SAME(bins.back(), expected);
}

int main(int count, char** arguments) {
    return for_sizes(count, arguments, [](size_t n) {
        scans<int>(n);
        scans<double>(n);
        by_key(n);
        histogram(n);
    });
}
