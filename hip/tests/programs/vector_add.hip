#include "check.hpp"
__global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
int main() {
    for (int n : {1, 255, 256, 1000, 100003}) {
        std::vector<float> a(n), b(n);
        for (int i = 0; i < n; i++) a[i] = 0.5f * i, b[i] = 3.0f - i;
        OnDevice<float> da(a), db(b), dc(a);
        add<<<(n + 255) / 256, 256>>>(da.data, db.data, dc.data, n);
        std::vector<float> c = dc.back();
        for (int i = 0; i < n; i++) SAME(c[i], a[i] + b[i]);
    }
    return good();
}
