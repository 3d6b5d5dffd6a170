#include <hip/hip_runtime.h>
extern "C" __device__ float offset = 0;
extern "C" __global__ void __launch_bounds__(256) axpy(const float* x, float* y, double a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i] + offset;
}
