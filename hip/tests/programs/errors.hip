#include "check.hpp"
#include <thread>
__global__ void nothing() {}
__global__ void __launch_bounds__(128) small() {}
int main() {
    SAME(hipGetLastError(), hipSuccess);
    IS_CODE(hipSetDevice(3), hipErrorInvalidDevice);
    SAME(hipPeekAtLastError(), hipErrorInvalidDevice);
    // Errors belong to threads.
    std::thread([] { SAME(hipGetLastError(), hipSuccess); }).join();
    SAME(hipGetLastError(), hipErrorInvalidDevice);
    SAME(hipGetLastError(), hipSuccess);
    SAME(std::strcmp(hipGetErrorName(hipErrorNoBinaryForGpu), "hipErrorNoBinaryForGpu"), 0);
    IS_CODE(hipMalloc(nullptr, 16), hipErrorInvalidValue);
    void* much = nullptr;
    IS_CODE(hipMalloc(&much, size_t(1) << 46), hipErrorOutOfMemory);
    void* some;
    MUST(hipMalloc(&some, 64));
    IS_CODE(hipFree(static_cast<char*>(some) + 4), hipErrorInvalidValue);
    IS_CODE(hipMemcpy(some, &much, 65, hipMemcpyHostToDevice), hipErrorInvalidValue);
    IS_CODE(hipMemcpy(&much, &some, 8, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    IS_CODE(hipMemcpy(some, &much, 8, hipMemcpyKind(9)), hipErrorInvalidMemcpyDirection);
    MUST(hipFree(some));
    IS_CODE(hipFree(some), hipErrorInvalidValue);
    MUST(hipFree(nullptr));
    (void)hipGetLastError();
    nothing<<<1, 1025>>>();
    IS_CODE(hipGetLastError(), hipErrorInvalidValue);
    nothing<<<0, 64>>>();
    IS_CODE(hipGetLastError(), hipErrorInvalidValue);
    small<<<1, 256>>>();
    IS_CODE(hipGetLastError(), hipErrorLaunchFailure);
    small<<<1, 128>>>();
    IS_CODE(hipGetLastError(), hipSuccess);
    hipArray* array;
    hipChannelFormatDesc elements = hipCreateChannelDesc<float>();
    IS_CODE(hipMallocArray(&array, &elements, 16, 16, 0), hipErrorNotSupported);
    int can = 1, count = 0, value = 0;
    MUST(hipDeviceCanAccessPeer(&can, 0, 0));
    SAME(can, 0);
    MUST(hipGetDeviceCount(&count));
    SAME(count, 1);
    hipDeviceProp_t properties;
    MUST(hipGetDeviceProperties(&properties, 0));
    SAME(std::strncmp(properties.gcnArchName, "gfx9", 4), 0);
    SAME(properties.warpSize, 64);
    MUST(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0));
    SAME(value, properties.multiProcessorCount);
    IS_CODE(hipDeviceGetAttribute(&value, hipDeviceAttribute_t(9998), 0), hipErrorInvalidValue);
    int blocks = 0, grid = 0, block = 0;
    MUST(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 256, 32768));
    SAME(blocks >= 2, true);
    MUST(hipOccupancyMaxPotentialBlockSize(&grid, &block, small, 0, 0));
    SAME(block <= 128 && block >= 64 && grid >= properties.multiProcessorCount, true);
    hipFuncAttributes attributes;
    MUST(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(small)));
    SAME(attributes.maxThreadsPerBlock, 128);
    (void)hipGetLastError();
    return good();
}
