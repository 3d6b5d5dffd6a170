// Stands in for hipBLAS, hipBLASLt, rocBLAS and rocRAND, which the tested wheels ask for and no package index has: products
// are computed on the host, in doubles; everything else fails. One library serves under all of their names.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 7, TO_DEVICE = 1, TO_HOST = 2 };

static void *stream;

static int copy(void *to, const void *from, size_t bytes, int direction) {
    int (*copies)(void *, const void *, size_t, int) = dlsym(RTLD_DEFAULT, "hipMemcpy");
    return copies ? copies(to, from, bytes, direction) : FAILED;
}

static int wait_for_stream(void) {
    int (*synchronizes)(void *) = dlsym(RTLD_DEFAULT, "hipStreamSynchronize");
    return synchronizes ? synchronizes(stream) : FAILED;
}

// Element types: hipBLAS 2 has numbers of its own, hipBLAS 3 those of HIP.
enum element { UNKNOWN, F32, F16, BF16 };

static enum element element_of(int type) {
    switch (type) {
    case 0:
    case 151: return F32;
    case 2:
    case 150: return F16;
    case 14:
    case 168: return BF16;
    default: return UNKNOWN;
    }
}

static size_t bytes_of(enum element type) { return type == F32 ? 4 : 2; }

static double get(const void *memory, size_t at, enum element type) {
    if (type == F32) return ((const float *)memory)[at];
    if (type == F16) return ((const _Float16 *)memory)[at];
    uint32_t bits = (uint32_t)((const uint16_t *)memory)[at] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static void put(void *memory, size_t at, enum element type, float value) {
    if (type == F32) {
        ((float *)memory)[at] = value;
    } else if (type == F16) {
        ((_Float16 *)memory)[at] = (_Float16)value;
    } else {
        uint32_t bits;
        memcpy(&bits, &value, 4);
        ((uint16_t *)memory)[at] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
}

// A matrix in device memory, by columns.
struct matrix {
    const void *memory;
    enum element type;
    int stride;
    int is_transposed;
};

static void *on_host(struct matrix of, int rows, int columns) {
    int stored = of.is_transposed ? rows : columns, length = of.is_transposed ? columns : rows;
    size_t bytes = ((size_t)of.stride * (stored - 1) + length) * bytes_of(of.type);
    void *host = malloc(bytes);
    if (host && copy(host, of.memory, bytes, TO_HOST)) {
        free(host);
        return NULL;
    }
    return host;
}

static size_t place(struct matrix of, int row, int column) {
    return of.is_transposed ? (size_t)row * of.stride + column : (size_t)column * of.stride + row;
}

// C = alpha A B + beta C
static int product(int m, int n, int k, double alpha, struct matrix a, struct matrix b, double beta, struct matrix c) {
    if (a.type == UNKNOWN || b.type == UNKNOWN || c.type == UNKNOWN || wait_for_stream()) return FAILED;
    void *left = on_host(a, m, k), *right = on_host(b, k, n), *result = on_host(c, m, n);
    int failed = !left || !right || !result;
    for (int column = 0; column < n && !failed; column++) {
        for (int row = 0; row < m; row++) {
            double sum = 0;
            for (int at = 0; at < k; at++)
                sum += get(left, place(a, row, at), a.type) * get(right, place(b, at, column), b.type);
            size_t to = place(c, row, column);
            double before = beta != 0 ? beta * get(result, to, c.type) : 0;
            put(result, to, c.type, (float)(alpha * sum + before));
        }
    }
    size_t bytes = ((size_t)c.stride * (n - 1) + m) * bytes_of(c.type);
    if (!failed) failed = copy((void *)c.memory, result, bytes, TO_DEVICE);
    free(left);
    free(right);
    free(result);
    return failed ? FAILED : 0;
}

static struct matrix matrix(const void *memory, int type, int stride, int operation) {
    return (struct matrix){memory, element_of(type), stride, operation != 111};
}

static double scalar(const void *value, int type) { return get(value, 0, element_of(type) == F16 ? F16 : F32); }

static int create(void **handle) {
    *handle = malloc(1);
    return *handle ? 0 : FAILED;
}

int hipblasCreate(void **handle) { return create(handle); }
int rocblas_create_handle(void **handle) { return create(handle); }

int hipblasDestroy(void *handle) {
    free(handle);
    return 0;
}

int hipblasSetStream(void *handle, void *new_stream) {
    stream = new_stream;
    return 0;
}

int hipblasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda,
                  const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute, int algorithm) {
    return product(m, n, k, scalar(alpha, compute), matrix(a, a_type, lda, ta), matrix(b, b_type, ldb, tb), scalar(beta, compute),
                   matrix(c, c_type, ldc, 111));
}

int hipblasSgemm(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int lda, const void *b,
                 int ldb, const float *beta, void *c, int ldc) {
    return product(m, n, k, *alpha, matrix(a, 0, lda, ta), matrix(b, 0, ldb, tb), *beta, matrix(c, 0, ldc, 111));
}

int hipblasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const char *a, int a_type,
                                int lda, long long a_step, const char *b, int b_type, int ldb, long long b_step, const void *beta,
                                char *c, int c_type, int ldc, long long c_step, int count, int compute, int algorithm) {
    int failed = 0;
    for (int at = 0; at < count && !failed; at++) {
        failed = hipblasGemmEx(handle, ta, tb, m, n, k, alpha, a + at * a_step * bytes_of(element_of(a_type)), a_type, lda,
                               b + at * b_step * bytes_of(element_of(b_type)), b_type, ldb, beta,
                               c + at * c_step * bytes_of(element_of(c_type)), c_type, ldc, compute, algorithm);
    }
    return failed;
}

int hipblasSgemmStridedBatched(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const char *a, int lda,
                               long long a_step, const char *b, int ldb, long long b_step, const float *beta, char *c, int ldc,
                               long long c_step, int count) {
    return hipblasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, 0, lda, a_step, b, 0, ldb, b_step, beta, c, 0, ldc,
                                       c_step, count, 0, 0);
}

int hipblasGemmBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *const *a, int a_type,
                         int lda, const void *const *b, int b_type, int ldb, const void *beta, void *const *c, int c_type, int ldc,
                         int count, int compute, int algorithm) {
    size_t bytes = count * sizeof(void *);
    void **all = malloc(3 * bytes);
    int failed = !all || wait_for_stream() || copy(all, a, bytes, TO_HOST) || copy(all + count, b, bytes, TO_HOST)
                 || copy(all + 2 * count, c, bytes, TO_HOST);
    for (int at = 0; at < count && !failed; at++) {
        failed = hipblasGemmEx(handle, ta, tb, m, n, k, alpha, all[at], a_type, lda, all[count + at], b_type, ldb, beta,
                               all[2 * count + at], c_type, ldc, compute, algorithm);
    }
    free(all);
    return failed ? FAILED : 0;
}

#define FAILS(name) \
    int name(void) { \
        fprintf(stderr, "%s is not there\n", #name); \
        return FAILED; \
    }
FAILS(hipblasStrsmBatched)
FAILS(hipblasLtMatmul)
FAILS(hipblasLtMatmulAlgoGetHeuristic)
FAILS(hipblasLtMatmulDescCreate)
FAILS(hipblasLtMatmulDescDestroy)
FAILS(hipblasLtMatmulDescSetAttribute)
FAILS(hipblasLtMatmulPreferenceCreate)
FAILS(hipblasLtMatmulPreferenceSetAttribute)
FAILS(hipblasLtMatrixLayoutCreate)
FAILS(hipblasLtMatrixLayoutDestroy)
