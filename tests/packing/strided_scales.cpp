// The loop over the scales of q3_k in src/packing/pack.cpp, alone. Every read is within the block and every
// shift below 32, so all compilers must agree; clang 22.1.8 from -O1 on gives wrong bytes for 11 of the 16
// groups. Exit code 1: this compiler has the fault.
#include <stdint.h>
#include <stdio.h>
static inline int32_t scale_of(const uint8_t* block, uint32_t group) {
  const uint32_t low = (uint32_t(block[96 + (group & 7)]) >> (4 * (group >> 3))) & 15;
  const uint32_t top = (uint32_t(block[104 + (group & 3)]) >> (2 * (group >> 2))) & 3;
  return int32_t(low | (top << 4)) - 32;
}
__attribute__((noinline)) void scales(const uint8_t* row, uint8_t* chunk, int lane) {
  for (uint32_t g = 0; g < 16; g++) chunk[16 * g + lane] = uint8_t(scale_of(row, g));
}
int main() {
  uint8_t block[110], out[256] = {};
  for (int i = 0; i < 110; i++) block[i] = uint8_t(37 * i + 11);
  scales(block, out, 0);
  int wrong = 0;
  for (volatile uint32_t g = 0; g < 16; g = g + 1) {
    uint32_t h = g;
    if (out[16 * h] != uint8_t(scale_of(block, h)))
      printf("group %u: %d, expected %d\n", h, out[16 * h], uint8_t(scale_of(block, h))), wrong++;
  }
  printf("%d wrong\n", wrong);
  return wrong ? 1 : 0;
}
