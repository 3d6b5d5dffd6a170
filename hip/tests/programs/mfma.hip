#include "check.hpp"
typedef float v4f __attribute__((ext_vector_type(4)));
typedef _Float16 v4h __attribute__((ext_vector_type(4)));
// A row of A and a column of B for each 16 lanes, four of k each (v_mfma_f32_16x16x16_f16).
__global__ void product(const _Float16* a, const _Float16* b, float* c, int k) {
    int row = threadIdx.x % 16, group = threadIdx.x / 16;
    v4f sum = {0, 0, 0, 0};
    for (int start = 0; start < k; start += 16) {
        v4h x, y;
        for (int i = 0; i < 4; i++) {
            x[i] = a[row * k + start + group * 4 + i];
            y[i] = b[row * k + start + group * 4 + i];
        }
        sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sum, 0, 0, 0);
    }
    for (int i = 0; i < 4; i++) c[(group * 4 + i) * 16 + row] = sum[i];
}
int main() {
    const int k = 64;
    std::vector<_Float16> a(16 * k), b(16 * k);
    unsigned state = 9;
    for (_Float16& x : a) x = int(next(state) % 9) - 4;
    for (_Float16& x : b) x = int(next(state) % 9) - 4;
    OnDevice<_Float16> da(a), db(b);
    OnDevice<float> dc(std::vector<float>(256));
    product<<<1, 64>>>(da.data, db.data, dc.data, k);
    std::vector<float> c = dc.back();
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++) sum += float(a[i * k + l]) * float(b[j * k + l]);
            SAME(c[i * 16 + j], sum);
        }
    return good();
}
