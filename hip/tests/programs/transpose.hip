#include "check.hpp"
constexpr int TILE = 32;
__global__ void transpose(const int* from, int* to, int rows, int columns) {
    __shared__ int tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += blockDim.y) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && x < columns) tile[y][threadIdx.x] = from[row * columns + x];
    }
    __syncthreads();
    int row = blockIdx.y * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += blockDim.y) {
        int column = blockIdx.x * TILE + y;
        if (row < rows && column < columns) to[column * rows + row] = tile[threadIdx.x][y];
    }
}
int main() {
    const int rows = 100, columns = 70;
    std::vector<int> from(rows * columns);
    for (size_t i = 0; i < from.size(); i++) from[i] = i;
    OnDevice<int> a(from), b(from);
    transpose<<<dim3((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE), dim3(TILE, 8)>>>(a.data, b.data, rows,
                                                                                             columns);
    std::vector<int> to = b.back();
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) SAME(to[c * rows + r], from[r * columns + c]);
    return good();
}
