#include "check.hpp"
// `malloc` and `free` in kernels: small pieces, large ones, and one that another kernel frees.
struct Node {
    int value;
    Node* next;
};
__global__ void lists(int* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Node* first = nullptr;
    for (int k = 0; k <= i % 4; ++k) {
        Node* node = static_cast<Node*>(malloc(sizeof(Node)));
        if (node == nullptr) return;
        node->value = i + k, node->next = first, first = node;
    }
    int sum = 0;
    while (first != nullptr) {
        Node* node = first;
        sum += node->value, first = node->next;
        free(node);
    }
    sums[i] = sum;
}
__global__ void make(int** large) {
    int* memory = static_cast<int*>(malloc(10000 * sizeof(int)));
    if (memory != nullptr)
        for (int i = 0; i < 100; ++i) memory[i * 99] = i;
    *large = memory;
}
__global__ void take(int** large, int* sum) {
    for (int i = 0; i < 100; ++i) *sum += (*large)[i * 99];
    free(*large);
}
int main() {
    std::vector<int> expected(128);
    for (int i = 0; i < 128; ++i)
        for (int k = 0; k <= i % 4; ++k) expected[i] += i + k;
    OnDevice<int> sums(std::vector<int>(128)), sum(std::vector<int>(1));
    OnDevice<int*> large(std::vector<int*>(1));
    lists<<<2, 64>>>(sums.data);
    SAME(sums.back(), expected);
    make<<<1, 1>>>(large.data);
    take<<<1, 1>>>(large.data, sum.data);
    SAME(sum.back()[0], 4950);
    size_t bytes = 0;
    MUST(hipDeviceGetLimit(&bytes, hipLimitMallocHeapSize));
    SAME(bytes > 0, true);
    return good();
}
