#include "check.hpp"
#include <dlfcn.h>
// What public programs ask for beside launches and copies: contexts, pools, boxes, limits, addresses of functions.
__global__ void fill(int* p) { p[threadIdx.x] = threadIdx.x; }
static void boxes() {
    const size_t width = 12, height = 3, depth = 2;
    unsigned char host[depth][height][width], back[depth][height][width] = {};
    for (size_t i = 0; i < sizeof host; i++) host[0][0][i] = static_cast<unsigned char>(i);
    hipPitchedPtr box;
    MUST(hipMalloc3D(&box, make_hipExtent(width, height, depth)));
    MUST(hipMemset3D(box, 7, make_hipExtent(width, height, depth)));
    hipMemcpy3DParms of{};
    of.srcPtr = make_hipPitchedPtr(host, width, width, height);
    of.dstPtr = box;
    of.extent = make_hipExtent(width - 4, height, depth);
    of.srcPos = make_hipPos(2, 0, 0);
    of.dstPos = make_hipPos(4, 0, 0);
    of.kind = hipMemcpyHostToDevice;
    MUST(hipMemcpy3D(&of));
    hipMemcpy3DParms to{};
    to.srcPtr = box;
    to.dstPtr = make_hipPitchedPtr(back, width, width, height);
    to.extent = make_hipExtent(width, height, depth);
    to.kind = hipMemcpyDeviceToHost;
    MUST(hipMemcpy3DAsync(&to, nullptr));
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++)
            for (size_t x = 0; x < width; x++) SAME(back[z][y][x], x < 4 ? 7 : host[z][y][x - 2]);
    MUST(hipFree(box.ptr));
    hipMemcpy3DParms none{};
    IS_CODE(hipMemcpy3D(&none), hipErrorInvalidValue);
}
static void contexts() {
    hipCtx_t made, current;
    hipDevice_t device;
    unsigned flags;
    MUST(hipCtxCreate(&made, 4, 0));
    MUST(hipCtxGetCurrent(&current));
    SAME(current, made);
    MUST(hipCtxGetFlags(&flags));
    SAME(flags, 4u);
    MUST(hipCtxGetDevice(&device));
    MUST(hipCtxSynchronize());
    MUST(hipCtxPopCurrent(&current));
    SAME(current, made);
    IS_CODE(hipCtxPopCurrent(&current), hipErrorInvalidContext);
    MUST(hipCtxPushCurrent(made));
    MUST(hipCtxDestroy(made));
    IS_CODE(hipCtxSetCurrent(made), hipErrorInvalidContext);
    MUST(hipDevicePrimaryCtxRetain(&made, 0));
    MUST(hipDevicePrimaryCtxRelease(0));
}
static void pools() {
    hipMemPool_t pool, own;
    int *p, host[64];
    uint64_t value = 0;
    hipStream_t s;
    MUST(hipStreamCreate(&s));
    MUST(hipDeviceGetDefaultMemPool(&pool, 0));
    value = 1 << 20;
    MUST(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &value));
    MUST(hipMallocAsync(reinterpret_cast<void**>(&p), sizeof host, s));
    MUST(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &value));
    SAME(value, sizeof host);
    fill<<<1, 64, 0, s>>>(p);
    MUST(hipMemcpyAsync(host, p, sizeof host, hipMemcpyDeviceToHost, s));
    SAME(host[63], 63);
    MUST(hipFreeAsync(p, s));
    MUST(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &value));
    SAME(value, 0u);
    MUST(hipMemPoolTrimTo(pool, 0));
    hipMemPoolProps of{};
    of.allocType = hipMemAllocationTypePinned;
    of.location.type = hipMemLocationTypeDevice;
    MUST(hipMemPoolCreate(&own, &of));
    MUST(hipMallocFromPoolAsync(reinterpret_cast<void**>(&p), 8, own, s));
    MUST(hipMemPoolGetAttribute(own, hipMemPoolAttrUsedMemHigh, &value));
    SAME(value, 8u);
    MUST(hipFree(p));
    MUST(hipMemPoolDestroy(own));
    IS_CODE(hipMemPoolDestroy(own), hipErrorInvalidHandle);
}
static void mappings() {
    // Memory that grows: two pieces side by side are one buffer.
    const size_t page = 4096;
    hipMemAllocationProp of{};
    of.type = hipMemAllocationTypePinned;
    of.location.type = hipMemLocationTypeDevice;
    size_t granularity;
    MUST(hipMemGetAllocationGranularity(&granularity, &of, hipMemAllocationGranularityMinimum));
    SAME(granularity, page);
    void* start;
    hipMemGenericAllocationHandle_t pieces[2];
    MUST(hipMemAddressReserve(&start, 4 * page, 0, nullptr, 0));
    char* next = static_cast<char*>(start);
    hipMemAccessDesc access{};
    access.location = of.location;
    access.flags = hipMemAccessFlagsProtReadWrite;
    for (auto& piece : pieces) {
        MUST(hipMemCreate(&piece, page, &of, 0));
        MUST(hipMemMap(next, page, 0, piece, 0));
        MUST(hipMemSetAccess(next, page, &access, 1));
        next += page;
    }
    IS_CODE(hipMemMap(start, page, 0, pieces[0], 0), hipErrorInvalidValue);
    int* p = static_cast<int*>(start) + 1024 - 32;
    fill<<<1, 64>>>(p);
    int host[64];
    MUST(hipMemcpy(host, p, sizeof host, hipMemcpyDeviceToHost));
    SAME(host[63], 63);
    MUST(hipMemUnmap(start, page));
    IS_CODE(hipMemcpy(host, p, sizeof host, hipMemcpyDeviceToHost), hipErrorInvalidValue);
    MUST(hipMemcpy(host, p + 32, 32 * sizeof(int), hipMemcpyDeviceToHost));
    SAME(host[31], 63);
    MUST(hipMemUnmap(static_cast<char*>(start) + page, page));
    for (auto& piece : pieces) MUST(hipMemRelease(piece));
    MUST(hipMemAddressFree(start, 4 * page));
    (void)hipGetLastError();
}
// Functions that are newer than the headers.
template <typename F> static F* newer(const char* name) {
    void* address = dlsym(RTLD_DEFAULT, name);
    SAME(address != nullptr, true);
    return reinterpret_cast<F*>(address);
}
static void others() {
    auto hipGetProcAddress = newer<hipError_t(const char*, void**, int, uint64_t, int*)>("hipGetProcAddress");
    auto hipDeviceSetLimit = newer<hipError_t(int, size_t)>("hipDeviceSetLimit");
    size_t value;
    MUST(hipDeviceSetLimit(0, 4096));
    MUST(hipDeviceGetLimit(&value, static_cast<hipLimit_t>(0)));
    SAME(value, 4096u);
    void* address = nullptr;
    int status = 1;
    MUST(hipGetProcAddress("hipGetDeviceCount", &address, 600, 0, &status));
    int count = 0;
    MUST(reinterpret_cast<hipError_t (*)(int*)>(address)(&count));
    SAME(count, 1);
    IS_CODE(hipGetProcAddress("hipNothing", &address, 600, 0, &status), hipErrorInvalidValue);
    // What other processes or graphics would have to share is refused by name.
    hipIpcMemHandle_t handle;
    IS_CODE(hipIpcGetMemHandle(&handle, address), hipErrorNotSupported);
    hipModule_t module;
    IS_CODE(hipModuleLoad(&module, "/dev/zero"), hipErrorInvalidImage);
    IS_CODE(hipModuleLoad(&module, "/nowhere"), hipErrorFileNotFound);
    (void)hipGetLastError();
}
int main() {
    boxes();
    contexts();
    pools();
    mappings();
    others();
    return good();
}
