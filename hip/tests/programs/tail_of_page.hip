#include "check.hpp"
// A block stores more words than the buffer has, all of them in its last page, which no hardware notices.
__global__ void fill(int* p) { p[threadIdx.x] = threadIdx.x; }
int main() {
    int* p;
    MUST(hipMalloc(reinterpret_cast<void**>(&p), 40));
    for (int i = 0; i < 3; i++) fill<<<1, 64>>>(p);
    return good();
}
