// Kernels for the reverse test of the instruction table (whatever clang makes of them has to decode) and for the simulator
// (whatever clang makes of them has to compute what the host does).
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
#define Z __builtin_amdgcn_workitem_id_z()
#define GZ __builtin_amdgcn_workgroup_id_z()
#define HIDDEN(type, offset) (*(const __attribute__((address_space(4))) type *)(__builtin_amdgcn_implicitarg_ptr() + (offset)))
#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define FROM_GFX90A 1
#endif
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
#ifndef __gfx906__
    uint row = GY * 32 + X % 32, column = GX * 32 + X % 32, group = X / 32 * 4;
    float16v sum = {};
    for (uint kk = 0; kk < k; kk += 8) {
        half4v av = *(const GLOBAL half4v *)(a + row * k + kk + group);
        half4v bv = *(const GLOBAL half4v *)(b + column * k + kk + group);
        sum = __builtin_amdgcn_mfma_f32_32x32x8f16(av, bv, sum, 0, 0, 0);
    }
    for (uint r = 0; r < 16; ++r) c[(GY * 32 + r / 4 * 8 + group + r % 4) * n + column] = sum[r];
#endif
}

KERNEL void gemm_types(GLOBAL float4v *c, GLOBAL double4v *d, const GLOBAL short4v *a, const GLOBAL double *b) {
#ifdef FROM_GFX90A
    float4v sum = c[X];
    sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a[X], a[X + 64], sum, 0, 0, 0);
    sum = __builtin_amdgcn_mfma_f32_16x16x4f32(b[0], b[1], sum, 0, 0, 0);
    c[X] = sum;
    d[X] = __builtin_amdgcn_mfma_f64_16x16x4f64(b[X], b[X + 64], d[X], 0, 0, 0);
#endif
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

// Reverses the elements of a workgroup, through LDS whose size the launch decides.
extern __attribute__((address_space(3))) uint dynamic[];
KERNEL void dynamic_lds(GLOBAL uint *out, const GLOBAL uint *in) {
    static LDS uint fixed[3];
    uint count = HIDDEN(uint, 120) / 4;
    if (X == 0) fixed[1] = count;
    dynamic[X] = in[GX * count + X];
    BARRIER;
    out[GX * count + X] = dynamic[fixed[1] - 1 - X];
}

// Who am I, for every work-item of a grid that need not be a multiple of the workgroup.
KERNEL void identities(GLOBAL uint *out) {
    const __attribute__((address_space(4))) uint *packet = (const __attribute__((address_space(4))) uint *)__builtin_amdgcn_dispatch_ptr();
    uint x = GX * HIDDEN(ushort, 12) + X, y = GY * HIDDEN(ushort, 14) + Y, z = GZ * HIDDEN(ushort, 16) + Z;
    uint i = (z * packet[4] + y) * packet[3] + x;
    out[4 * i + 0] = GX | GY << 8 | GZ << 16;
    out[4 * i + 1] = X | Y << 8 | Z << 16;
    out[4 * i + 2] = HIDDEN(uint, 0) | HIDDEN(uint, 4) << 8 | HIDDEN(uint, 8) << 16;
    out[4 * i + 3] = HIDDEN(ushort, 18) | HIDDEN(ushort, 20) << 8 | HIDDEN(ushort, 22) << 16 | (uint)HIDDEN(ulong, 40) << 24;
}

KERNEL void wave_operations(GLOBAL uint *out, const GLOBAL uint *in) {
    uint v = in[X];
    ulong odd = __builtin_amdgcn_ballot_w64(v & 1);
    uint below = __builtin_amdgcn_mbcnt_hi(odd >> 32, __builtin_amdgcn_mbcnt_lo(odd, 0));
    out[8 * X + 0] = below;
    out[8 * X + 1] = __builtin_amdgcn_ds_bpermute((X ^ 21) * 4, v);
    out[8 * X + 2] = __builtin_amdgcn_ds_permute((X * 5 & 63) * 4, v);
    out[8 * X + 3] = __builtin_amdgcn_readlane(v, in[0] & 63) + __builtin_amdgcn_readfirstlane(v);
    out[8 * X + 4] = __builtin_amdgcn_update_dpp(7, v, 0x111, 0xf, 0xf, 0) + __builtin_amdgcn_update_dpp(9, v, 0x4e, 0x5, 0xf, 0);
    out[8 * X + 5] = __builtin_amdgcn_ds_swizzle(v, 0x041f);
    if (v & 1) out[8 * X + 6] = __builtin_amdgcn_readfirstlane(v);
    out[8 * X + 7] = __builtin_popcountl(odd) + (uint)(__builtin_amdgcn_read_exec() >> 60);
}

KERNEL void atomics_of_all_kinds(GLOBAL uint *a, GLOBAL int *b, GLOBAL ulong *c, GLOBAL uint *out) {
    static LDS uint local[4];
    static LDS ulong wide[2];
    uint i = GX * 64 + X;
    if (X < 4) local[X] = 0;
    if (X < 2) wide[X] = 0;
    BARRIER;
    __atomic_fetch_add(&a[0], i, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&a[1], i, __ATOMIC_RELAXED);
    __atomic_fetch_and(&a[2], ~(1u << (i & 31)), __ATOMIC_RELAXED);
    __atomic_fetch_or(&a[3], 1u << (i % 29), __ATOMIC_RELAXED);
    __atomic_fetch_xor(&a[4], i * i, __ATOMIC_RELAXED);
    __atomic_fetch_max(&a[5], i * 37 & 255, __ATOMIC_RELAXED);
    __atomic_fetch_min(&a[6], i * 37 & 255, __ATOMIC_RELAXED);
    __atomic_fetch_max(&b[0], (int)(i * 37 & 255) - 128, __ATOMIC_RELAXED);
    __atomic_fetch_min(&b[1], (int)(i * 37 & 255) - 128, __ATOMIC_RELAXED);
    __atomic_fetch_nand(&a[7 + i], i, __ATOMIC_RELAXED);
    __builtin_amdgcn_atomic_inc32(&a[300], 100, __ATOMIC_RELAXED, "agent");
    __builtin_amdgcn_atomic_dec32(&a[301], 100, __ATOMIC_RELAXED, "agent");
    __atomic_fetch_add(&c[0], (ulong)i << 30, __ATOMIC_RELAXED);
    __atomic_fetch_xor(&c[1], (ulong)i << 29, __ATOMIC_RELAXED);
    __atomic_fetch_max(&c[2], (ulong)(i * 37 & 255) << 31, __ATOMIC_RELAXED);
    __builtin_amdgcn_atomic_inc64((GLOBAL unsigned long long *)&c[3], 1000, __ATOMIC_RELAXED, "agent");
    // Every item draws a ticket with a loop.
    ulong seen = __atomic_load_n(&c[4], __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&c[4], &seen, seen + 3, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    out[seen / 3] = 1;
    __atomic_fetch_add(&local[0], X, __ATOMIC_RELAXED);
    __atomic_fetch_or(&local[1], 1u << (X & 31), __ATOMIC_RELAXED);
    uint ticket = __atomic_fetch_add(&local[2], 1u, __ATOMIC_RELAXED);
    __atomic_fetch_max(&wide[0], (ulong)ticket << 33, __ATOMIC_RELAXED);
    __atomic_exchange_n(&wide[1], 5ul, __ATOMIC_RELAXED);
    BARRIER;
    if (X == 0) out[300] = local[0] + local[1] + local[2] + (uint)(wide[0] >> 33) + (uint)wide[1];
}

KERNEL void float_atomics(GLOBAL float *f, GLOBAL double *d, GLOBAL half2v *h) {
#ifdef FROM_GFX90A
    __builtin_amdgcn_global_atomic_fadd_f32(&f[0], (float)X);
    __builtin_amdgcn_global_atomic_fadd_f64(&d[0], 0.5 * X);
    __builtin_amdgcn_global_atomic_fmin_f64(&d[1], 3.0 - X);
    __builtin_amdgcn_global_atomic_fmax_f64(&d[2], 0.25 * X);
    __builtin_amdgcn_global_atomic_fadd_v2f16(&h[0], (half2v){1, 2});
    f[1 + X] = __builtin_amdgcn_global_atomic_fadd_f64(&d[3], 1.0);
#endif
}

// One pointer into three memories.
KERNEL void flat_pointers(GLOBAL uint *out, GLOBAL uint *global) {
    static LDS uint shared[64];
    uint own[4] = {X, X + 1, X + 2, X + 3};
    shared[X] = 1000 + X;
    BARRIER;
    uint *p = X % 3 == 0 ? (uint *)&global[X] : X % 3 == 1 ? (uint *)&shared[X ^ 1] : &own[X & 3];
    uint old = *(volatile uint *)p;
    *(volatile uint *)p = old + 7;
    __atomic_fetch_add(p, 5u, __ATOMIC_RELAXED);
    BARRIER;
    out[X] = old + 3 * own[X & 3] + 5 * shared[X];
}

__attribute__((noinline)) static uint ackermann(uint m, uint n) {
    volatile uint kept[3] = {m, n, m + n};
    if (m == 0) return n + 1;
    uint inner = n == 0 ? 1 : ackermann(m, n - 1);
    return ackermann(kept[0] - 1, inner) + (kept[2] - kept[0] - kept[1]);
}

KERNEL void recursion(GLOBAL uint *out) { out[X] = ackermann(X & 1, X / 2) + ackermann(2, X & 3); }

__attribute__((noinline)) static uint twice(uint v) { return 2 * v; }
__attribute__((noinline)) static uint square(uint v) { return v * v; }
__attribute__((noinline)) static uint plus_one(uint v) { return v + 1; }

KERNEL void function_pointers(GLOBAL uint *out, const GLOBAL uint *in) {
    uint v = in[X];
    for (uint i = 0; i < 3; ++i) {
        // No table of them: an assembler without relocations for data takes this.
        uint which = (in[X] + i) % 3;
        uint (*function)(uint) = which == 0 ? twice : which == 1 ? square : plus_one;
        v = function(v);
    }
    out[X] = v;
}

typedef uint uint4v __attribute__((ext_vector_type(4)));

// Through a descriptor whose range ends inside the data.
KERNEL void buffers(GLOBAL uint *out, GLOBAL uint *in, uint bytes) {
    __amdgpu_buffer_rsrc_t source = __builtin_amdgcn_make_buffer_rsrc((void *)in, 0, bytes, 0x27000);
    __amdgpu_buffer_rsrc_t target = __builtin_amdgcn_make_buffer_rsrc((void *)out, 0, bytes, 0x27000);
    uint4v four = __builtin_amdgcn_raw_buffer_load_b128(source, X * 16, 0, 0);
    __builtin_amdgcn_raw_buffer_store_b128(four + 1, target, X * 16, 0, 0);
    __builtin_amdgcn_raw_buffer_store_b16((ushort)X, target, X * 2, 1024, 0);
    out[512 + X] = __builtin_amdgcn_raw_buffer_load_b8(source, X * 3, 4, 0);
}

KERNEL void eight_bit_floats(GLOBAL float *out, GLOBAL uint *packed, const GLOBAL uint *in) {
#if defined(__gfx942__)
    uint v = in[X];
    out[4 * X + 0] = __builtin_amdgcn_cvt_f32_fp8(v, 0);
    out[4 * X + 1] = __builtin_amdgcn_cvt_f32_fp8(v, 2);
    out[4 * X + 2] = __builtin_amdgcn_cvt_f32_bf8(v, 1);
    out[4 * X + 3] = __builtin_amdgcn_cvt_f32_bf8(v, 3);
    packed[X] = __builtin_amdgcn_cvt_pk_fp8_f32(out[4 * X], out[4 * X + 1], __builtin_amdgcn_cvt_pk_fp8_f32(1.0f, -2.0f, 0, 0), 1);
#endif
}

// A line of eight dwords of private memory, copied and turned.
typedef struct { uint words[8]; } line;
KERNEL void lines(GLOBAL line *out, const GLOBAL line *in, uint by) {
    line a = in[X], b;
    for (uint i = 0; i < 8; ++i) b.words[(i + by) & 7] = a.words[i] ^ a.words[(i * by) & 7];
    out[X] = b;
}

// Global memory to LDS without registers. In assembly, as clang's builtin breaks its scheduler.
#if defined(__gfx942__)
#define LOAD_TO_LDS "global_load_lds_dword %0, off"
#else
#define LOAD_TO_LDS "global_load_dword %0, off lds"
#endif
KERNEL void loads_to_lds(GLOBAL uint *out, const GLOBAL uint *in) {
    static LDS uint tile[64];
    tile[X] = 0;
    __asm__ volatile("v_readfirstlane_b32 s20, %1\n s_mov_b32 m0, s20\n s_nop 0\n " LOAD_TO_LDS "\n s_waitcnt vmcnt(0)"
                     : : "v"(&in[X * 3]), "v"((uint)&tile[0]) : "memory", "s20");
    BARRIER;
    out[X] = tile[63 - X];
}
