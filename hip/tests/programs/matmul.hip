#include "check.hpp"
constexpr int TILE = 16;
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float at[TILE][TILE], bt[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        int ak = start + threadIdx.x, bk = start + threadIdx.y;
        at[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[row * k + ak] : 0;
        bt[threadIdx.y][threadIdx.x] = bk < k && column < n ? b[bk * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += at[threadIdx.y][i] * bt[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
int main() {
    const int m = 50, n = 37, k = 45;
    std::vector<float> a(m * k), b(k * n), c(m * n);
    unsigned state = 5;
    for (float& x : a) x = int(next(state) % 17) - 8;
    for (float& x : b) x = int(next(state) % 17) - 8;
    OnDevice<float> da(a), db(b), dc(c);
    matmul<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), dim3(TILE, TILE)>>>(da.data, db.data, dc.data, m, n,
                                                                                    k);
    c = dc.back();
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++) sum += a[i * k + l] * b[l * n + j];
            SAME(c[i * n + j], sum);
        }
    return good();
}
