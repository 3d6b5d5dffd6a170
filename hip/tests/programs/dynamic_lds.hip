#include "check.hpp"
__global__ void reverse(int* data, int n) {
    extern __shared__ int values[];
    values[threadIdx.x] = data[blockIdx.x * n + threadIdx.x];
    __syncthreads();
    data[blockIdx.x * n + threadIdx.x] = values[n - 1 - threadIdx.x];
}
int main() {
    for (int n : {64, 200, 1024}) {
        std::vector<int> data(3 * n);
        for (int i = 0; i < 3 * n; i++) data[i] = i;
        OnDevice<int> d(data);
        reverse<<<3, n, n * sizeof(int)>>>(d.data, n);
        std::vector<int> back = d.back();
        for (int i = 0; i < 3 * n; i++) SAME(back[i], i / n * n + n - 1 - i % n);
    }
    OnDevice<int> d(std::vector<int>(64));
    reverse<<<1, 64, 1 << 20>>>(d.data, 64);
    IS_CODE(hipGetLastError(), hipErrorInvalidValue);
    return good();
}
