// Kernels for the assembler's tests: data that code finds relative to itself, functions that are called, scratch, LDS.
typedef unsigned int uint;
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#define GLOBAL __attribute__((address_space(1)))
#define LOCAL __attribute__((address_space(3), loader_uninitialized))

static const __attribute__((address_space(4))) uint table[64] = {
    3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5,
};

static LOCAL uint shared[256];

static __attribute__((noinline)) uint mix(uint a, uint b) {
    for (uint i = 0; i < (b & 15); i++) {
        a = a * 1664525u + 1013904223u;
    }
    return a ^ b;
}

KERNEL void lookup(GLOBAL uint *out, GLOBAL const uint *in, uint n) {
    uint i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    if (i < n) {
        out[i] = table[in[i] & 63];
    }
}

KERNEL void calls(GLOBAL uint *out, GLOBAL const uint *in) {
    uint i = __builtin_amdgcn_workitem_id_x();
    out[i] = mix(in[i], i) + mix(i, in[i]);
}

KERNEL void scratch(GLOBAL uint *out, GLOBAL const uint *in) {
    uint values[32];
    uint i = __builtin_amdgcn_workitem_id_x();
    for (uint k = 0; k < 32; k++) {
        values[(in[k] + k) & 31] = in[i + k];
    }
    out[i] = values[in[i] & 31];
}

KERNEL void exchange(GLOBAL uint *out, GLOBAL const uint *in) {
    uint i = __builtin_amdgcn_workitem_id_x();
    shared[i & 255] = in[i];
    __builtin_amdgcn_s_barrier();
    out[i] = shared[(i + 1) & 255];
}
