// Heap sort in place, over a strict order after(a, b): a sorts after b.
#pragma once

// Sifts down from `at`, so that the last value is at the root.
template <class T, class After>
inline void sift(T* heap, int64_t at, int64_t n, After after) {
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && after(heap[child + 1], heap[child])) child++;
    if (!after(heap[child], heap[at])) return;
    const T moved = heap[at];
    heap[at] = heap[child], heap[child] = moved;
  }
}
template <class T, class After>
inline void make_heap(T* heap, int64_t n, After after) {
  for (int64_t i = n / 2; i-- > 0;) sift(heap, i, n, after);
}
// Of a heap: the values in order.
template <class T, class After>
inline void sort_heap(T* heap, int64_t n, After after) {
  for (int64_t end = n; end-- > 1;) {
    const T last = heap[0];
    heap[0] = heap[end], heap[end] = last;
    sift(heap, 0, end, after);
  }
}
