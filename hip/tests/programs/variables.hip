#include "check.hpp"
__constant__ float table[16];
__device__ int counter = 5;
__device__ int* where;
__managed__ int shared_value = 40;
__managed__ float shared_array[8];
__global__ void use(float* out) {
    out[threadIdx.x] = table[threadIdx.x % 16] + shared_array[threadIdx.x % 8];
    if (threadIdx.x == 0) {
        atomicAdd(&counter, 37);
        shared_value += 2;
        *where = shared_value;
    }
}
int main() {
    std::vector<float> numbers(16), out(64);
    for (int i = 0; i < 16; i++) numbers[i] = i * 1.5f;
    MUST(hipMemcpyToSymbol(HIP_SYMBOL(table), numbers.data(), sizeof(table)));
    MUST(hipMemcpyToSymbol(HIP_SYMBOL(table), &numbers[3], sizeof(float), 4 * sizeof(float)));
    numbers[4] = numbers[3];
    int* managed;
    MUST(hipMallocManaged(reinterpret_cast<void**>(&managed), sizeof(int)));
    *managed = -1;
    MUST(hipMemcpyToSymbol(HIP_SYMBOL(where), &managed, sizeof(managed)));
    for (int i = 0; i < 8; i++) shared_array[i] = i;
    SAME(shared_value, 40);
    OnDevice<float> o(out);
    use<<<1, 64>>>(o.data);
    MUST(hipDeviceSynchronize());
    SAME(shared_value, 42);
    SAME(*managed, 42);
    int count = 0;
    MUST(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), sizeof(count)));
    SAME(count, 42);
    void* address;
    size_t bytes;
    MUST(hipGetSymbolAddress(&address, HIP_SYMBOL(table)));
    MUST(hipGetSymbolSize(&bytes, HIP_SYMBOL(table)));
    SAME(bytes, sizeof(table));
    std::vector<float> back(16);
    MUST(hipMemcpy(back.data(), address, bytes, hipMemcpyDeviceToHost));
    SAME(back, numbers);
    out = o.back();
    for (int i = 0; i < 64; i++) SAME(out[i], numbers[i % 16] + i % 8);
    IS_CODE(hipMemcpyToSymbol(HIP_SYMBOL(table), numbers.data(), sizeof(table), 4), hipErrorInvalidValue);
    (void)hipGetLastError();
    MUST(hipFree(managed));
    return good();
}
