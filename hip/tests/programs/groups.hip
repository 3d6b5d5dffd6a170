#include "check.hpp"
#include <hip/hip_cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void sum(const int* from, int* tiles, int* blocks) {
    __shared__ int values[256];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    int i = blockIdx.x * blockDim.x + block.thread_rank(), value = from[i];
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) value += tile.shfl_down(value, offset);
    if (tile.thread_rank() == 0) tiles[i / 16] = value;
    values[block.thread_rank()] = from[i];
    block.sync();
    for (int half = block.size() / 2; half > 0; half /= 2) {
        if (block.thread_rank() < half) values[block.thread_rank()] += values[block.thread_rank() + half];
        block.sync();
    }
    if (block.thread_rank() == 0) blocks[blockIdx.x] = values[0];
}
int main() {
    const int n = 1024;
    std::vector<int> from(n), tiles(n / 16), blocks(n / 256);
    for (int i = 0; i < n; i++) from[i] = i * 7 % 13, tiles[i / 16] += from[i], blocks[i / 256] += from[i];
    OnDevice<int> a(from), b(std::vector<int>(tiles.size())), c(std::vector<int>(blocks.size()));
    sum<<<n / 256, 256>>>(a.data, b.data, c.data);
    SAME(b.back(), tiles);
    SAME(c.back(), blocks);
    return good();
}
