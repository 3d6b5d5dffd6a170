// Kernels for the oracle test of the simulator, compiled by clang. Sizes are arguments, so nothing is hidden.
typedef unsigned int uint;
typedef unsigned char uchar;
typedef float float4v __attribute__((ext_vector_type(4)));
typedef _Float16 half4v __attribute__((ext_vector_type(4)));
#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3), loader_uninitialized))
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#define X __builtin_amdgcn_workitem_id_x()
#define Y __builtin_amdgcn_workitem_id_y()
#define GX __builtin_amdgcn_workgroup_id_x()
#define GY __builtin_amdgcn_workgroup_id_y()
#define BARRIER __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")

KERNEL void saxpy(GLOBAL float *y, const GLOBAL float *x, float a, uint n) {
    uint i = GX * 256 + X;
    if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL void transpose(GLOBAL float *out, const GLOBAL float *in, uint width, uint height) {
    static LDS float tile[32][33];
    uint x = GX * 32 + X, y = GY * 32 + Y;
    for (uint j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[Y + j][X] = in[(y + j) * width + x];
    BARRIER;
    uint u = GY * 32 + X, v = GX * 32 + Y;
    for (uint j = 0; j < 32; j += 8)
        if (u < height && v + j < width) out[(v + j) * height + u] = tile[X][Y + j];
}

KERNEL void reduce(GLOBAL uint *out, const GLOBAL uint *in, uint n) {
    static LDS uint partial[256];
    uint sum = 0;
    for (uint i = X; i < n; i += 256) sum += in[i];
    partial[X] = sum;
    BARRIER;
    for (uint step = 128; step; step /= 2) {
        if (X < step) partial[X] += partial[X + step];
        BARRIER;
    }
    if (X == 0) out[0] = partial[0];
}

KERNEL void histogram(GLOBAL uint *counts, const GLOBAL uint *in) {
    __atomic_fetch_add(&counts[in[GX * 64 + X] & 15], 1u, __ATOMIC_RELAXED);
}

KERNEL void divide(GLOBAL float *out, const GLOBAL float *a, const GLOBAL float *b) {
    uint i = GX * 64 + X;
    out[i] = a[i] / b[i];
}

KERNEL void divide_double(GLOBAL double *out, const GLOBAL double *a, const GLOBAL double *b) {
    uint i = GX * 64 + X;
    out[i] = a[i] / b[i];
}

KERNEL void root(GLOBAL float *out, const GLOBAL float *a) {
    uint i = GX * 64 + X;
    out[i] = __builtin_sqrtf(a[i]);
}

KERNEL void integers(GLOBAL uint *out, const GLOBAL uint *a, const GLOBAL uint *b) {
    uint i = GX * 64 + X;
    uint x = a[i], y = b[i] | 1;
    long w = (long)(int)x * (int)y;
    out[8 * i + 0] = x / y;
    out[8 * i + 1] = (uint)((int)x % (int)y);
    out[8 * i + 2] = (uint)(w >> 7);
    out[8 * i + 3] = __builtin_popcount(x) + __builtin_clz(y);
    out[8 * i + 4] = (x << (y & 31)) | (x >> (32 - (y & 31) & 31));
    out[8 * i + 5] = (int)x < (int)y ? x : y;
    out[8 * i + 6] = (uint)(((unsigned long)x * 0x123456789abcdefUL + y) >> 32);
    out[8 * i + 7] = __builtin_bitreverse32(x) ^ (uint)((int)x >> 3);
}

KERNEL void collatz(GLOBAL uint *out, uint n) {
    uint i = GX * 64 + X;
    if (i >= n) return;
    uint steps = 0;
    for (uint v = i + 1; v != 1; ++steps) v = v & 1 ? 3 * v + 1 : v / 2;
    out[i] = steps;
}

KERNEL void halves(GLOBAL _Float16 *out, const GLOBAL _Float16 *a, const GLOBAL _Float16 *b) {
    uint i = GX * 64 + X;
    out[i] = a[i] * b[i] + a[i] - (_Float16)(float)b[i];
}

KERNEL void shuffle(GLOBAL uint *out, const GLOBAL uint *in) {
    uint v = in[X];
    uint swapped = __builtin_amdgcn_ds_bpermute((X ^ 5) * 4, v);
    uint first = __builtin_amdgcn_readfirstlane(v);
    out[X] = swapped + first;
}

KERNEL void scratch(GLOBAL uint *out, const GLOBAL uint *in, uint n) {
    volatile uint stack[16];
    for (uint i = 0; i < 16; ++i) stack[i] = in[X] + i;
    uint sum = 0;
    for (uint i = 0; i < n; ++i) sum = sum * 3 + stack[(in[X] + i) & 15];
    out[X] = sum;
}

// One wave computes a 16x16 tile: C = A * B, A row-major M x K, B column-major (rows of B transposed).
KERNEL void gemm(GLOBAL float *c, const GLOBAL _Float16 *a, const GLOBAL _Float16 *b, uint n, uint k) {
    uint row = GY * 16 + X % 16, column = GX * 16 + X % 16, group = X / 16 * 4;
    float4v sum = {0, 0, 0, 0};
    for (uint kk = 0; kk < k; kk += 16) {
        half4v av = *(const GLOBAL half4v *)(a + row * k + kk + group);
        half4v bv = *(const GLOBAL half4v *)(b + column * k + kk + group);
        sum = __builtin_amdgcn_mfma_f32_16x16x16f16(av, bv, sum, 0, 0, 0);
    }
    for (uint r = 0; r < 4; ++r) c[(GY * 16 + group + r) * n + column] = sum[r];
}

KERNEL void bytes(GLOBAL uchar *out, const GLOBAL uchar *in) {
    uint i = GX * 64 + X;
    out[i] = (uchar)(in[i] - in[i + 1]);
}

KERNEL void fault(GLOBAL uint *out) { out[GX * 1000000 + X] = 1; }

KERNEL void forever(GLOBAL uint *out) {
    for (;;) __atomic_fetch_add(out, 1u, __ATOMIC_RELAXED);
}
