#include "check.hpp"
// Streams and flags that are not there, and names.
extern "C" const char* hipApiName(unsigned);
__global__ void one(int* p) { *p = 1; }
int main() {
    int host[4] = {1, 2, 3, 4};
    OnDevice<int> d(std::vector<int>(4));
    void* p = nullptr;
    hipStream_t wrong = reinterpret_cast<hipStream_t>(0x1234);
    IS_CODE(hipMemcpyAsync(d.data, host, 16, hipMemcpyHostToDevice, wrong), hipErrorInvalidHandle);
    IS_CODE(hipMemcpyHtoDAsync(d.data, host, 16, wrong), hipErrorInvalidHandle);
    IS_CODE(hipMemsetAsync(d.data, 0, 16, wrong), hipErrorInvalidHandle);
    IS_CODE(hipMemsetD32Async(d.data, 0, 4, wrong), hipErrorInvalidHandle);
    IS_CODE(hipMallocAsync(&p, 16, wrong), hipErrorInvalidHandle);
    IS_CODE(hipFreeAsync(d.data, wrong), hipErrorInvalidHandle);
    hipEvent_t event;
    IS_CODE(hipEventCreateWithFlags(&event, 0x1000), hipErrorInvalidValue);
    IS_CODE(hipEventCreateWithFlags(&event, hipEventReleaseToDevice | hipEventReleaseToSystem), hipErrorInvalidValue);
    MUST(hipEventCreateWithFlags(&event, hipEventDisableTiming | hipEventBlockingSync));
    IS_CODE(hipHostMalloc(&p, 64, 0x12345), hipErrorInvalidValue);
    IS_CODE(hipHostMalloc(&p, 64, hipHostMallocCoherent | hipHostMallocNonCoherent), hipErrorInvalidValue);
    MUST(hipHostMalloc(&p, 64, hipHostMallocMapped | hipHostMallocCoherent));
    MUST(hipHostFree(p));
    IS_CODE(hipMallocManaged(&p, 64, 99), hipErrorInvalidValue);
    MUST(hipMallocManaged(&p, 64));
    MUST(hipFree(p));
    hipModule_t module;
    IS_CODE(hipModuleLoad(&module, "/proc/self/exe"), hipErrorInvalidImage);
    IS_CODE(hipModuleLoadData(&module, "no object of any kind, but some bytes"), hipErrorInvalidImage);
    SAME(std::strcmp(hipKernelNameRefByPtr(reinterpret_cast<const void*>(one), nullptr), "_Z3onePi"), 0);
    SAME(hipApiName(1) != nullptr, true);
    hipGetLastError();
    one<<<1, 1>>>(d.data);
    SAME(d.back()[0], 1);
    return good();
}
