// hot: digests of stored pages lie between a request and its first token
#include "base/sha256.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace gimbal {
namespace {

// The fractions of the cube roots of the first 64 primes.
constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void portable_block(std::array<uint32_t, 8>& state, const char* bytes) {
  uint32_t w[64];
  for (size_t i = 0; i < 16; i++) {
    w[i] = 0;
    for (size_t b = 0; b < 4; b++) w[i] = w[i] << 8 | uint8_t(bytes[i * 4 + b]);
  }
  for (size_t i = 16; i < 64; i++) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  std::array<uint32_t, 8> s = state;
  for (size_t i = 0; i < 64; i++) {
    const uint32_t e = s[4], a = s[0];
    const uint32_t one = s[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                         ((e & s[5]) ^ (~e & s[6])) + kRound[i] + w[i];
    const uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    s = {one + two, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
  }
  for (size_t i = 0; i < 8; i++) state[i] += s[i];
}

using States = std::array<std::array<uint32_t, 8>*, 4>;
using Texts = std::array<const char*, 4>;

#if defined(__x86_64__)
bool find_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & (1u << 29);
}

// `count` blocks of each of N texts. An instruction computes two rounds, on the state as {A, B, E, F} and
// {C, D, G, H}.
template <size_t N>
__attribute__((target("sha,sse4.1,ssse3"))) void instruction_blocks(const States& states, const Texts& texts,
                                                                    size_t count) {
  const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto load = [](const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
  __m128i abef[N], cdgh[N];
  for (size_t t = 0; t < N; t++) {
    const __m128i dcba = _mm_shuffle_epi32(load(&(*states[t])[0]), 0xb1),
                  hgfe = _mm_shuffle_epi32(load(&(*states[t])[4]), 0x1b);
    abef[t] = _mm_alignr_epi8(dcba, hgfe, 8), cdgh[t] = _mm_blend_epi16(hgfe, dcba, 0xf0);
  }
  for (size_t block = 0; block < count; block++) {
    __m128i abef_before[N], cdgh_before[N], w[N][4];
#pragma GCC unroll 4
    for (size_t t = 0; t < N; t++) {
      abef_before[t] = abef[t], cdgh_before[t] = cdgh[t];
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; i++) w[t][i] = _mm_shuffle_epi8(load(texts[t] + 64 * block + 16 * i), order);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i++) {
      const __m128i constants = load(&kRound[4 * i]);
#pragma GCC unroll 4
      for (size_t t = 0; t < N; t++) {
        __m128i& now = w[t][i % 4];
        if (i >= 4) {
          const __m128i last = w[t][(i + 3) % 4], before = w[t][(i + 2) % 4];
          now = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[t][(i + 1) % 4]), _mm_alignr_epi8(last, before, 4));
          now = _mm_sha256msg2_epu32(now, last);
        }
        const __m128i sum = _mm_add_epi32(now, constants);
        cdgh[t] = _mm_sha256rnds2_epu32(cdgh[t], abef[t], sum);
        abef[t] = _mm_sha256rnds2_epu32(abef[t], cdgh[t], _mm_shuffle_epi32(sum, 0x0e));
      }
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < N; t++)
      abef[t] = _mm_add_epi32(abef[t], abef_before[t]), cdgh[t] = _mm_add_epi32(cdgh[t], cdgh_before[t]);
  }
  for (size_t t = 0; t < N; t++) {
    const __m128i feba = _mm_shuffle_epi32(abef[t], 0x1b), dchg = _mm_shuffle_epi32(cdgh[t], 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&(*states[t])[0]), _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&(*states[t])[4]), _mm_alignr_epi8(dchg, feba, 8));
  }
}
#else
bool find_instructions() { return false; }
template <size_t N>
void instruction_blocks(const States&, const Texts&, size_t) {}
#endif

}  // namespace

Sha256::Sha256(bool hardware) {
  static const bool found = find_instructions();  // the question is slow in a virtual machine
  hardware_ = hardware && found;
}

void Sha256::blocks(const char* bytes, size_t count) {
  if (hardware_) return instruction_blocks<1>({&state_}, {bytes}, count);
  for (; count > 0; count--, bytes += 64) portable_block(state_, bytes);
}

void Sha256::add(std::string_view bytes) {
  bytes_ += bytes.size();
  if (!rest_.empty()) {
    const size_t n = std::min(bytes.size(), 64 - rest_.size());
    rest_ += bytes.substr(0, n);
    bytes.remove_prefix(n);
    if (rest_.size() < 64) return;
    blocks(rest_.data(), 1);
    rest_.clear();
  }
  const size_t whole = bytes.size() / 64;
  blocks(bytes.data(), whole);
  bytes.remove_prefix(64 * whole);
  rest_ = bytes;
}

Sha256::Digest Sha256::digest() {
  const uint64_t bits = bytes_ * 8;
  rest_ += char(0x80);
  while (rest_.size() % 64 != 56) rest_ += char(0);
  for (int shift = 56; shift >= 0; shift -= 8) rest_ += char(bits >> shift);
  blocks(rest_.data(), rest_.size() / 64);
  Digest out;
  for (size_t i = 0; i < out.size(); i++) out[i] = uint8_t(state_[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

std::array<Sha256::Digest, 4> Sha256::four(const std::array<std::string_view, 4>& texts, bool hardware) {
  std::array<Sha256, 4> sums{Sha256(hardware), Sha256(hardware), Sha256(hardware), Sha256(hardware)};
  States states;
  Texts begins;
  size_t together = texts[0].size() / 64;  // whole blocks that all of them have
  for (size_t t = 0; t < 4; t++) {
    states[t] = &sums[t].state_, begins[t] = texts[t].data();
    together = std::min(together, texts[t].size() / 64);
  }
  if (sums[0].hardware_) instruction_blocks<4>(states, begins, together);
  else together = 0;
  std::array<Digest, 4> all;
  for (size_t t = 0; t < 4; t++) {
    sums[t].bytes_ = 64 * together;
    sums[t].add(texts[t].substr(64 * together));
    all[t] = sums[t].digest();
  }
  return all;
}

std::string Sha256::hex() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (uint8_t byte : digest()) out += {kDigits[byte >> 4], kDigits[byte & 15]};
  return out;
}

}  // namespace gimbal
