// The maps against reference data by mpmath, NumPy and exact integers (../shared/golden/README.md,
// "Tensors"): maps.json, promote.json and compare.json. Cases with views, broadcasts or inputs of two dtypes
// belong to the tests of tensors.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "ops/map_reference.h"
#include "ops/map_variants.h"
#include "support/golden.h"
#include "tensor/half.h"

namespace gimbal {
namespace {

using nlohmann::ordered_json;
using test::map_variants, test::MapVariant;

struct GoldenDType {
  size_t bytes;
  int bits;  // of integers as map_abi.h has them; 0: floats
};
const std::map<std::string, GoldenDType> kGoldenDTypes = {
    {"f16", {2, 0}},  {"bf16", {2, 0}}, {"f32", {4, 0}},   {"f64", {8, 0}},  {"u8", {1, -8}},
    {"i16", {2, 16}}, {"i32", {4, 32}}, {"u32", {4, -32}}, {"i64", {8, 64}}, {"bool", {1, -1}}};

template <class T>
std::vector<T> values_of(const std::string& bytes, size_t size) {
  std::vector<T> out;
  for (size_t i = 0; i + size <= bytes.size(); i += size) {
    T v{};
    std::memcpy(&v, &bytes[i], size);  // little-endian
    out.push_back(v);
  }
  return out;
}
std::vector<uint64_t> bits_of(const ordered_json& tensor) {
  return values_of<uint64_t>(test::base64_decode(tensor["b64"]), kGoldenDTypes.at(tensor["dtype"]).bytes);
}
float float_of(const std::string& dtype, uint64_t bits) {
  if (dtype == "f16") return half_to_float(uint16_t(bits));
  if (dtype == "bf16") return bf16_to_float(uint16_t(bits));
  return std::bit_cast<float>(uint32_t(bits));
}
uint64_t bits_of_float(const std::string& dtype, float v) {
  if (std::isnan(v)) return dtype == "f16" ? 0x7e00 : dtype == "bf16" ? 0x7fc0 : std::bit_cast<uint32_t>(v);
  if (dtype == "f16") return float_to_half(v);
  if (dtype == "bf16") return float_to_bf16(v);
  return std::bit_cast<uint32_t>(v);
}
int64_t integer_of(int bits, uint64_t v) {
  const int unused = 64 - std::abs(bits == -1 ? 8 : bits);
  return bits < 0 ? int64_t(v) : int64_t(v << unused) >> unused;
}

// The function of a case and its numbers; nullptr: not one of maps.def.
const MapFacts* function_of(const ordered_json& c, double* f) {
  const std::string op = c["op"];
  const ordered_json params = c.value("params", ordered_json::object());
  if (op == "pow_scalar") return f[0] = params["exponent"], map_facts("powf");
  if (op == "add_scalar") return f[0] = 1, f[1] = params["scalar"], map_facts("affine");
  if (op == "affine") f[0] = params["mul"], f[1] = params["add"];
  if (op == "elu") f[0] = params["alpha"];
  return map_facts(op);
}
bool is_plain(const ordered_json& c) {
  if (c.contains("error")) return false;
  const ordered_json& first = c["in"][0];
  for (const ordered_json& in : c["in"])
    if (in.contains("steps") || in["dtype"] != first["dtype"] || in["dims"] != first["dims"]) return false;
  const std::string in = first["dtype"], out = c["out"][0]["dtype"];
  return in == out || out == "bool";  // else the inputs are cast first
}

// Whether the result with these bits is right, by the rules of the README.
bool is_right(const ordered_json& out, size_t at, uint64_t got, uint64_t want, double exact) {
  const std::string dtype = out["dtype"];
  const bool single = dtype != "f64";
  const double value = single ? double(float_of(dtype, got)) : std::bit_cast<double>(got);
  if (out.value("exact", false)) {
    if (kGoldenDTypes.at(dtype).bits) return got == want;
    const double wanted = single ? double(float_of(dtype, want)) : std::bit_cast<double>(want);
    if (std::isnan(value) || std::isnan(wanted)) return std::isnan(value) && std::isnan(wanted);
    return got == want || (value == 0 && wanted == 0 && !out.value("zero_sign", true));
  }
  if (std::isnan(value) || std::isnan(exact)) return std::isnan(value) && std::isnan(exact);
  double tolerance = out.value("abs", 0.0);
  if (out.contains("tol")) tolerance += double(values_of<float>(test::base64_decode(out["tol"]), 4)[at]);
  const double unit = single ? unit_of<float>(exact) : unit_of<double>(exact);
  tolerance += out["ulps"].get<double>() * unit;
  if (dtype == "f16" || dtype == "bf16") {  // computed in f32, rounded once
    const int digits = dtype == "f16" ? 11 : 8, least = dtype == "f16" ? -14 : -126;
    const double larger = std::max(std::abs(value), std::abs(exact));
    if (std::isinf(value) && std::abs(exact) >= (dtype == "f16" ? 65519 : 3.39e38))
      return (value > 0) == (exact > 0);
    tolerance += 0.5 * std::ldexp(1.0, std::max(larger > 0 ? std::ilogb(larger) : least, least) - digits + 1);
  }
  if (std::isinf(value) || std::isinf(exact)) return value == exact;
  return std::abs(value - exact) <= tolerance;
}

std::vector<uint64_t> computed(const MapKernels& k, const ordered_json& c, const double* f) {
  const std::string dtype = c["in"][0]["dtype"], out = c["out"][0]["dtype"];
  const int bits = kGoldenDTypes.at(dtype).bits;
  const std::vector<uint64_t> a = bits_of(c["in"][0]), b = bits_of(c["in"][c["in"].size() - 1]);
  std::vector<uint64_t> got(a.size());
  const auto run = [&]<class T>(auto launch, T, auto read, auto write) {
    std::vector<T> x, y, z(a.size());
    for (uint64_t v : a) x.push_back(read(v));
    for (uint64_t v : b) y.push_back(read(v));
    launch(x.data(), y.data(), z.data(), int64_t(a.size()));
    for (size_t i = 0; i < a.size(); i++) got[i] = out == "bool" ? uint64_t(z[i] != T(0)) : write(z[i]);
  };
  if (bits)
    run([&](auto* x, auto* y, auto* z, int64_t n) { k.integer(x, y, f, z, n, bits); }, int64_t(0),
        [&](uint64_t v) { return integer_of(bits, v); },
        [&](int64_t v) {
          const size_t size = kGoldenDTypes.at(out).bytes;
          return size == 8 ? uint64_t(v) : uint64_t(v) & ((uint64_t(1) << 8 * size) - 1);
        });
  else if (dtype == "f64")
    run([&](auto* x, auto* y, auto* z, int64_t n) { k.f64(x, y, f, z, n); }, 0.0,
        [](uint64_t v) { return std::bit_cast<double>(v); },
        [](double v) { return std::bit_cast<uint64_t>(v); });
  else
    run([&](auto* x, auto* y, auto* z, int64_t n) { k.f32(x, y, f, z, n); }, 0.f,
        [&](uint64_t v) { return float_of(dtype, v); }, [&](float v) { return bits_of_float(dtype, v); });
  return got;
}

int check_cases(const std::string& file) {
  int cases = 0;
  const ordered_json golden = test::read_json(test::golden_dir() + "/tensors/" + file);
  for (const ordered_json& c : golden["cases"]) {
    double f[2] = {0, 0};
    const MapFacts* facts = function_of(c, f);
    if (!facts || !is_plain(c)) continue;
    const ordered_json& out = c["out"][0];
    const std::vector<uint64_t> want = out.contains("b64") ? bits_of(out) : std::vector<uint64_t>();
    const std::vector<double> exact =
        out.contains("f64") ? values_of<double>(test::base64_decode(out["f64"]), 8) : std::vector<double>();
    for (const MapVariant& v : map_variants()) {
      const std::vector<uint64_t> got = computed(*v.kernels(int(facts->function)), c, f);
      EXPECT_EQ(got.size(), want.size() + exact.size());
      for (size_t i = 0; i < got.size(); i++) {
        const uint64_t wanted = want.empty() ? 0 : want[i];
        if (is_right(out, i, got[i], wanted, exact.empty() ? 0 : exact[i])) continue;
        ADD_FAILURE() << file << ": " << c["name"] << " on " << v.name << ", value " << i << ": bits "
                      << std::hex << got[i] << (exact.empty() ? ", expected bits " : ", expected the value ")
                      << (exact.empty() ? wanted : 0) << " " << (exact.empty() ? 0.0 : exact[i]) << " of "
                      << bits_of(c["in"][0])[i] << ", " << bits_of(c["in"][c["in"].size() - 1])[i];
        break;
      }
    }
    cases++;
  }
  return cases;
}

TEST(MapsGolden, Functions) { EXPECT_GE(check_cases("maps.json"), test::whole_collection() ? 270 : 90); }
TEST(MapsGolden, Comparisons) { EXPECT_GE(check_cases("compare.json"), test::whole_collection() ? 60 : 20); }
TEST(MapsGolden, SumsOfEveryDType) {
  EXPECT_GE(check_cases("promote.json"), test::whole_collection() ? 15 : 5);
}

}  // namespace
}  // namespace gimbal
