#include "check.hpp"
#include <fstream>
#include <iterator>
// The code object of `module_kernels.hip` is the first argument.
int main(int, char** arguments) {
    std::ifstream file(arguments[1], std::ios::binary);
    std::vector<char> image((std::istreambuf_iterator<char>(file)), {});
    hipModule_t module, again;
    hipFunction_t function;
    MUST(hipModuleLoadData(&module, image.data()));
    MUST(hipModuleLoad(&again, arguments[1]));
    MUST(hipModuleUnload(again));
    IS_CODE(hipModuleGetFunction(&function, module, "nothing"), hipErrorNotFound);
    IS_CODE(hipModuleLoad(&again, "/nowhere/at/all"), hipErrorFileNotFound);
    IS_CODE(hipModuleLoadData(&again, "hello, this is not an image"), hipErrorInvalidImage);
    MUST(hipModuleGetFunction(&function, module, "axpy"));
    hipDeviceptr_t offset;
    size_t bytes;
    MUST(hipModuleGetGlobal(&offset, &bytes, module, "offset"));
    SAME(bytes, sizeof(float));
    float value = 100;
    MUST(hipMemcpyHtoD(offset, &value, bytes));
    int n = 300;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = i, y[i] = 2;
    OnDevice<float> dx(x), dy(y);
    double a = 0.5;
    void* pointers[] = {&dx.data, &dy.data, &a, &n};
    MUST(hipModuleLaunchKernel(function, 3, 1, 1, 128, 1, 1, 0, nullptr, pointers, nullptr));
    struct {
        float *x, *y;
        double a;
        int n;
    } packed = {dx.data, dy.data, a, n};
    size_t size = sizeof(packed);
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     HIP_LAUNCH_PARAM_END};
    MUST(hipModuleLaunchKernel(function, 3, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
    IS_CODE(hipModuleLaunchKernel(function, 3, 1, 1, 128, 1, 1, 0, nullptr, pointers, extra), hipErrorInvalidValue);
    IS_CODE(hipModuleLaunchKernel(function, 3, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorInvalidValue);
    IS_CODE(hipModuleLaunchKernel(function, 0, 1, 1, 128, 1, 1, 0, nullptr, pointers, nullptr), hipErrorInvalidValue);
    IS_CODE(hipModuleLaunchKernel(function, 1, 1, 1, 0, 1, 1, 0, nullptr, pointers, nullptr),
            hipErrorInvalidConfiguration);
    IS_CODE(hipModuleLaunchKernel(nullptr, 1, 1, 1, 64, 1, 1, 0, nullptr, pointers, nullptr), hipErrorInvalidHandle);
    size = 8;
    IS_CODE(hipModuleLaunchKernel(function, 3, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra), hipErrorInvalidValue);
    std::vector<float> back = dy.back();
    for (int i = 0; i < n; i++) SAME(back[i], 2 + 2 * (0.5f * i + 100));
    int registers = 0, threads = 0;
    MUST(hipFuncGetAttribute(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, function));
    MUST(hipFuncGetAttribute(&threads, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    SAME(registers > 0 && threads == 256, true);
    MUST(hipModuleUnload(module));
    IS_CODE(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, pointers, nullptr), hipErrorInvalidHandle);
    IS_CODE(hipModuleUnload(module), hipErrorInvalidHandle);
    (void)hipGetLastError();
    return good();
}
