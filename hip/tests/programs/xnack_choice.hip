#include "check.hpp"
// Which of the objects of the program was taken.
__global__ void which(char* out) {
#ifdef __amdgcn_feature_xnack__
    *out = __amdgcn_feature_xnack__ ? '+' : '-';
#else
    *out = '?';
#endif
}
int main() {
    char *device, host = 0;
    MUST(hipMalloc(&device, 1));
    which<<<1, 1>>>(device);
    MUST(hipGetLastError());
    MUST(hipMemcpy(&host, device, 1, hipMemcpyDeviceToHost));
    std::printf("%c\n", host);
}
