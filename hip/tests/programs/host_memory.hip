#include "check.hpp"
__global__ void twice(int* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= 2;
}
int main() {
    const int n = 1000;
    int *pinned, *device;
    MUST(hipHostMalloc(reinterpret_cast<void**>(&pinned), n * sizeof(int), hipHostMallocMapped));
    for (int i = 0; i < n; i++) pinned[i] = i;
    MUST(hipHostGetDevicePointer(reinterpret_cast<void**>(&device), pinned, 0));
    twice<<<4, 256>>>(device, n);
    MUST(hipDeviceSynchronize());
    for (int i = 0; i < n; i++) SAME(pinned[i], 2 * i);
    std::vector<int> own(n);
    for (int i = 0; i < n; i++) own[i] = -i;
    MUST(hipHostRegister(own.data(), n * sizeof(int), hipHostRegisterDefault));
    IS_CODE(hipHostRegister(own.data(), n * sizeof(int), 0), hipErrorHostMemoryAlreadyRegistered);
    MUST(hipHostGetDevicePointer(reinterpret_cast<void**>(&device), own.data(), 0));
    twice<<<4, 256>>>(device, n);
    MUST(hipStreamSynchronize(nullptr));
    for (int i = 0; i < n; i++) SAME(own[i], -2 * i);
    MUST(hipHostUnregister(own.data()));
    IS_CODE(hipHostUnregister(own.data()), hipErrorHostMemoryNotRegistered);
    hipPointerAttribute_t attributes;
    MUST(hipPointerGetAttributes(&attributes, pinned + 3));
    SAME(attributes.hostPointer, (void*)(pinned + 3));
    SAME(attributes.memoryType, hipMemoryTypeHost);
    (void)hipGetLastError();
    MUST(hipHostFree(pinned));
    // Rows with a pitch.
    char *pitched, rows[5][100], back[5][100];
    size_t pitch;
    for (int i = 0; i < 500; i++) rows[i / 100][i % 100] = i % 113;
    MUST(hipMallocPitch(reinterpret_cast<void**>(&pitched), &pitch, 100, 5));
    SAME(pitch >= 100 && pitch % 128 == 0, true);
    MUST(hipMemcpy2D(pitched, pitch, rows, 100, 100, 5, hipMemcpyHostToDevice));
    MUST(hipMemset2D(pitched + 10, pitch, 7, 3, 5));
    MUST(hipMemcpy2D(back, 100, pitched, pitch, 100, 5, hipMemcpyDeviceToHost));
    for (int i = 0; i < 500; i++) SAME(back[i / 100][i % 100], i % 100 / 10 == 1 && i % 100 < 13 ? 7 : rows[i / 100][i % 100]);
    MUST(hipFree(pitched));
    unsigned* words;
    MUST(hipMalloc(reinterpret_cast<void**>(&words), 400));
    MUST(hipMemsetD32(words, 0x01020304, 100));
    MUST(hipMemsetD8(reinterpret_cast<char*>(words) + 4, 9, 4));
    std::vector<unsigned> found(100);
    MUST(hipMemcpyDtoH(found.data(), words, 400));
    SAME(found[0], 0x01020304u);
    SAME(found[1], 0x09090909u);
    SAME(found[99], 0x01020304u);
    MUST(hipFree(words));
    return good();
}
