#include "check.hpp"
template <typename T, int N, typename F> __global__ void map(T* data, int n, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int j = 0; j < N; j++)
        if (i * N + j < n) data[i * N + j] = f(data[i * N + j], j);
}
struct Scale {
    double by;
    __device__ double operator()(double x, int j) const { return x * by + j; }
};
int main() {
    const int n = 1000;
    std::vector<int> ints(n);
    std::vector<double> doubles(n);
    for (int i = 0; i < n; i++) ints[i] = i, doubles[i] = i * 0.25;
    OnDevice<int> a(ints);
    OnDevice<double> b(doubles);
    int three = 3;
    map<int, 4><<<4, 64>>>(a.data, n, [three] __device__(int x, int j) { return x * three + j; });
    map<double, 2><<<8, 64>>>(b.data, n, Scale{1.5});
    ints = a.back(), doubles = b.back();
    for (int i = 0; i < n; i++) SAME(ints[i], i * 3 + i % 4);
    for (int i = 0; i < n; i++) SAME(doubles[i], i * 0.25 * 1.5 + i % 2);
    return good();
}
