#include "check.hpp"
// A walk over an array in private memory that begins before the array: compilers fold the 1 into the instruction.
__global__ void length(int* out, int zero) {
    char text[12] = {'l', 'o', 'c', 'a', 'l', ' ', 't', 'e', 'x', 't', 0};
    text[1] += zero;
    const char* end = text;
    asm volatile("" : "+v"(end));
    while (*end++ != 0) {
    }
    out[0] = end - text - 1;
    char other[16];
    volatile char* bytes = other;
    for (int i = 0; i < 16; i++) bytes[i] = i < 5 ? 'a' + i : 0;
    __attribute__((address_space(5))) char* start = (__attribute__((address_space(5))) char*)other;
    unsigned before = (unsigned)(size_t)start - 1u, value;
#ifdef __gfx90a__
    asm volatile("s_waitcnt vmcnt(0)\nbuffer_load_ubyte %0, %1, s[0:3], 0 offen offset:1\ns_waitcnt vmcnt(0)"
                 : "=v"(value)
                 : "v"(before)
                 : "memory");
#else
    value = before + 1 == (unsigned)(size_t)start ? other[0] : 0;
#endif
    out[1] = value;
}
int main() {
    OnDevice<int> out(std::vector<int>(2));
    length<<<1, 1>>>(out.data, 0);
    SAME(out.back(), (std::vector<int>{10, 'a'}));
    return good();
}
