#include "check.hpp"
// Takes long: in one launch, or in many that are short.
__global__ void count(int* out, int rounds) {
    int x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = x * 1664525 + (x >> 7);
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
int main(int argc, char** argv) {
    bool many = argc > 1 && std::strcmp(argv[1], "many") == 0;
    int blocks = many ? 4 : 4096, rounds = many ? 10 : 100000;
    int* out;
    MUST(hipMalloc(&out, 4 * 64 * blocks));
    for (int i = 0; i < (many ? 1000000 : 1) && hipGetLastError() == hipSuccess; ++i) count<<<blocks, 64>>>(out, rounds);
    std::printf("%s\n", hipGetErrorName(hipDeviceSynchronize()));
}
