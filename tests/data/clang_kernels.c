// Kernels for the reverse test of the instruction table: whatever clang makes of them has to decode.
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef unsigned long ulong;
typedef float float4v __attribute__((ext_vector_type(4)));
typedef float float16v __attribute__((ext_vector_type(16)));
typedef double double4v __attribute__((ext_vector_type(4)));
typedef int int4v __attribute__((ext_vector_type(4)));
typedef short short2v __attribute__((ext_vector_type(2)));
typedef short short4v __attribute__((ext_vector_type(4)));
typedef _Float16 half2v __attribute__((ext_vector_type(2)));
typedef _Float16 half4v __attribute__((ext_vector_type(4)));
#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3), loader_uninitialized))
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#define X __builtin_amdgcn_workitem_id_x()
#define Y __builtin_amdgcn_workitem_id_y()
#define GX __builtin_amdgcn_workgroup_id_x()
#define GY __builtin_amdgcn_workgroup_id_y()
#define BARRIER __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
#define FROM_LANE(value, control) __builtin_amdgcn_update_dpp(0, value, control, 0xf, 0xf, 1)

KERNEL void saxpy(GLOBAL float *y, const GLOBAL float *x, float a, uint n) {
    uint i = GX * 256 + X;
    if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL void saxpy_wide(GLOBAL float4v *y, const GLOBAL float4v *x, float a, uint n) {
    for (uint i = GX * 256 + X; i < n; i += 65536) y[i] = a * x[i] + y[i];
}

KERNEL void reduction(GLOBAL uint *out, const GLOBAL uint *in, uint n) {
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

KERNEL void reduction_in_a_wave(GLOBAL float *out, const GLOBAL float *in) {
    int v = __builtin_bit_cast(int, in[X]);
#define ADD(control) v = __builtin_bit_cast(int, __builtin_bit_cast(float, v) + __builtin_bit_cast(float, FROM_LANE(v, control)))
    ADD(0x111); ADD(0x112); ADD(0x114); ADD(0x118); ADD(0x142); ADD(0x143);
    if (X == 63) out[GX] = __builtin_bit_cast(float, v);
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

KERNEL void gemm(GLOBAL float *c, const GLOBAL _Float16 *a, const GLOBAL _Float16 *b, uint n, uint k) {
    uint row = GY * 32 + X % 32, column = GX * 32 + X % 32, group = X / 32 * 4;
    float16v sum = {};
    for (uint kk = 0; kk < k; kk += 8) {
        half4v av = *(const GLOBAL half4v *)(a + row * k + kk + group);
        half4v bv = *(const GLOBAL half4v *)(b + column * k + kk + group);
        sum = __builtin_amdgcn_mfma_f32_32x32x8f16(av, bv, sum, 0, 0, 0);
    }
    for (uint r = 0; r < 16; ++r) c[(GY * 32 + r / 4 * 8 + group + r % 4) * n + column] = sum[r];
}

KERNEL void gemm_types(GLOBAL float4v *c, GLOBAL double4v *d, const GLOBAL short4v *a, const GLOBAL double *b) {
    float4v sum = c[X];
    sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a[X], a[X + 64], sum, 0, 0, 0);
    sum = __builtin_amdgcn_mfma_f32_16x16x4f32(b[0], b[1], sum, 0, 0, 0);
    c[X] = sum;
    d[X] = __builtin_amdgcn_mfma_f64_16x16x4f64(b[X], b[X + 64], d[X], 0, 0, 0);
}

KERNEL void histogram(GLOBAL uint *counts, const GLOBAL uint *in, uint n) {
    static LDS uint local[256];
    local[X] = 0;
    BARRIER;
    for (uint i = GX * 256 + X; i < n; i += 65536) __atomic_fetch_add(&local[in[i] & 255], 1u, __ATOMIC_RELAXED);
    BARRIER;
    __atomic_fetch_add(&counts[X], local[X], __ATOMIC_RELAXED);
}

KERNEL void atomics(GLOBAL uint *a, GLOBAL ulong *b, GLOBAL float *f, uint *flat) {
    uint old = __atomic_fetch_max(&a[0], X, __ATOMIC_SEQ_CST);
    old ^= __atomic_fetch_and(&a[1], old, __ATOMIC_ACQ_REL);
    old |= __atomic_exchange_n(&a[2], old, __ATOMIC_RELEASE);
    ulong expected = b[X];
    __atomic_compare_exchange_n(&b[0], &expected, old, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&b[1], expected, __ATOMIC_RELAXED);
    __atomic_fetch_xor(flat + X, old, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(flat, 1u, __ATOMIC_SEQ_CST);
    f[X] = __atomic_load_n(&a[3], __ATOMIC_ACQUIRE);
}

KERNEL void scan(GLOBAL uint *out, const GLOBAL uint *in) {
    static LDS uint sums[16];
    uint v = in[GX * 1024 + X];
    v += FROM_LANE(v, 0x111); v += FROM_LANE(v, 0x112); v += FROM_LANE(v, 0x114); v += FROM_LANE(v, 0x118);
    v += __builtin_amdgcn_update_dpp(0, v, 0x142, 0xa, 0xf, 0); v += __builtin_amdgcn_update_dpp(0, v, 0x143, 0xc, 0xf, 0);
    if (X % 64 == 63) sums[X / 64] = v;
    BARRIER;
    uint before = 0;
    for (uint i = 0; i < X / 64; ++i) before += sums[i];
    out[GX * 1024 + X] = v + before;
}

KERNEL void halves(GLOBAL half2v *out, const GLOBAL half2v *a, const GLOBAL half2v *b, GLOBAL _Float16 *one) {
    out[X] = a[X] * b[X] + a[X];
    one[X] = one[X] * one[X + 1] + (_Float16)(one[X + 2] > 0 ? 1 : -2);
}

KERNEL void narrow(GLOBAL uchar *bytes, GLOBAL ushort *shorts, GLOBAL short2v *packed, uint n) {
    for (uint i = X; i < n; i += 64) {
        bytes[i] = (uchar)(bytes[i] * 3 + bytes[i + 1]);
        shorts[i] = (ushort)(shorts[i] * shorts[i + 1] + (shorts[i + 2] >> 3));
        packed[i] = packed[i] + packed[i + 1] * (short2v){3, 5};
    }
}

KERNEL void doubles(GLOBAL double *out, const GLOBAL double *a, const GLOBAL float *f) {
    double d = a[X] / a[X + 64] + __builtin_sqrt(a[X]);
    float g = f[X] / f[X + 1] + __builtin_sqrtf(f[X]) + __builtin_exp2f(f[X]) + __builtin_fabsf(f[X + 2]);
    out[X] = __builtin_fma(d, g, __builtin_floor(d)) + (double)(long)d + (double)(ulong)g;
}

KERNEL void integers(GLOBAL ulong *out, const GLOBAL ulong *a, const GLOBAL uint *b) {
    ulong x = a[X], y = b[X] | 1;
    out[4 * X + 0] = x / y;
    out[4 * X + 1] = x * y + (x >> (y & 63)) + (ulong)((long)x >> 5);
    out[4 * X + 2] = __builtin_popcountl(x) + __builtin_clzl(y) + __builtin_ctzl(y);
    out[4 * X + 3] = __builtin_bitreverse64(x) ^ (b[X] % 1000u) ^ ((int)b[X] / 7);
}

KERNEL void stack(GLOBAL uint *out, const GLOBAL uint *in, uint n) {
    volatile uint local[32];
    for (uint i = 0; i < 32; ++i) local[i] = in[X] + i;
    uint sum = 0;
    for (uint i = 0; i < n; ++i) sum = sum * 3 + local[(in[X] + i) & 31];
    out[X] = sum;
}

__attribute__((noinline)) static uint called(uint v, uint n) {
    while (n--) v = v & 1 ? 3 * v + 1 : v / 2;
    return v;
}

KERNEL void calls(GLOBAL uint *out, uint n) {
    out[X] = called(X, n) + called(X + 1, n / 2);
    switch (out[X + 64]) {
    case 0: out[X] ^= 1; break;
    case 1: out[X] += 7; break;
    case 2: out[X] *= 3; break;
    case 3: out[X] -= n; break;
    default: out[X] = __builtin_amdgcn_readfirstlane(out[X]) + __builtin_amdgcn_readlane(out[X], 3);
    }
}

KERNEL void dots(GLOBAL int *out, const GLOBAL int *a, const GLOBAL half2v *h) {
    int v = __builtin_amdgcn_sdot4(a[X], a[X + 1], 3, 0);
    v += (int)__builtin_amdgcn_fdot2(h[X], h[X + 1], 1.0f, 1);
    out[X] = v + __builtin_amdgcn_ds_swizzle(v, 0x041f) + __builtin_amdgcn_mov_dpp(v, 0x1b, 0xf, 0xf, 1);
}
