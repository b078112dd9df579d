// Converts structs to JSON and back by one list of their fields, so that writer and reader cannot differ.
// Input is not trusted: every field must exist, with its type and within its range.
//
//   template <class IO, FieldsOf<Point> S>
//   void fields(IO& io, S& p) { io("x", p.x), io("y", p.y); }    {"x": 1, "y": 2}
//   template <class IO, FieldsOf<Point> S>
//   void row(IO& io, S& p) { io(p.x, p.y); }                     [1, 2]
//   constexpr Colour last_value(Colour) { return Colour::Blue; } an enum, as its number
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/json.h"

namespace gimbal {

template <class S, class Struct>
concept FieldsOf = std::same_as<std::remove_const_t<S>, Struct>;

inline constexpr size_t kMaxListFromJson = size_t(1) << 22;  // entries: tokens of a prompt

class JsonWriter {
 public:
  Json to = Json::object();

  // Not inline: each is called for a dozen fields.
  template <class T>
  [[gnu::noinline]] void operator()(const char* name, const T& x) {
    to[name] = json(x);
  }
  // Follows from other fields: written, and not read.
  template <class T>
  void derived(const char* name, const T& x) {
    (*this)(name, x);
  }

  static Json json(bool x) { return x; }
  static Json json(int x) { return x; }
  static Json json(int64_t x) { return x; }
  static Json json(uint64_t x) { return x; }
  static Json json(double x) { return x; }
  static Json json(const std::string& x) { return x; }
  static Json json(const char*) = delete;  // it would be a bool
  // JSON has no infinities, and a logit bias of -infinity forbids a token.
  static Json json(float x) {
    if (std::isfinite(x)) return x;
    return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  }
  template <class E>
  requires std::is_enum_v<E>
  static Json json(E x) { return int(x); }
  template <class T>
  static Json json(const std::optional<T>& x) {
    return x ? json(*x) : Json();
  }
  template <class T>
  static Json json(const std::vector<T>& all) {
    return list(all);
  }
  template <class T, size_t N>
  static Json json(const std::array<T, N>& all) {
    return list(all);
  }
  template <class A, class B>
  static Json json(const std::pair<A, B>& x) {
    Json out = Json::array();
    out.push_back(json(x.first)), out.push_back(json(x.second));
    return out;
  }
  template <class T>
  requires std::is_class_v<T>
  static Json json(const T& x) {
    if constexpr (requires(Row & io) { row(io, x); }) {
      Row io;
      row(io, x);
      return std::move(io.to);
    } else {
      JsonWriter io;
      fields(io, x);
      return std::move(io.to);
    }
  }

 private:
  struct Row {
    Json to = Json::array();
    template <class... T>
    void operator()(const T&... x) {
      (to.push_back(json(x)), ...);
    }
  };
  template <class List>
  static Json list(const List& all) {
    Json out = Json::array();
    for (const auto& x : all) out.push_back(json(x));
    return out;
  }
};

class JsonReader {
 public:
  // `where` names the object in problem().
  JsonReader(const Json& from, std::string where) : from_(from), where_(std::move(where)) {
    if (!from.is_object()) problem_ = format("{} is not an object", where_);
  }
  // The first thing that is wrong; empty: nothing is.
  const std::string& problem() const { return problem_; }

  template <class T>
  void operator()(const char* name, T& x) {
    if (!problem_.empty()) return;
    const auto at = from_.find(name);
    if (at == from_.end()) problem_ = format("{} has no {}", where_, name);
    else if (!read(*at, x)) problem_ = format("{}: {} has the wrong type or is out of range", where_, name);
  }
  template <class T>
  void derived(const char*, const T&) {}

  static bool read(const Json& j, bool& x) { return j.is_boolean() && (x = j.get<bool>(), true); }
  static bool read(const Json& j, std::string& x) {
    return j.is_string() && (x = j.get_ref<const std::string&>(), true);
  }
  static bool read(const Json& j, uint64_t& x) {
    return j.is_number_unsigned() && (x = j.get<uint64_t>(), true);
  }
  static bool read(const Json& j, int64_t& x) {
    if (!j.is_number_integer() || (j.is_number_unsigned() && j.get<uint64_t>() > uint64_t(INT64_MAX)))
      return false;
    return x = j.get<int64_t>(), true;
  }
  static bool read(const Json& j, int& x) {
    constexpr int64_t kLeast = std::numeric_limits<int>::min(), kMost = std::numeric_limits<int>::max();
    int64_t n;
    return read(j, n) && n >= kLeast && n <= kMost && (x = int(n), true);
  }
  static bool read(const Json& j, double& x) { return j.is_number() && (x = j.get<double>(), true); }
  static bool read(const Json& j, float& x) {
    if (j.is_number()) return x = j.get<float>(), true;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    if (j == "inf") return x = kInfinity, true;
    if (j == "-inf") return x = -kInfinity, true;
    if (j == "nan") return x = std::numeric_limits<float>::quiet_NaN(), true;
    return false;
  }
  template <class E>
  requires std::is_enum_v<E>
  static bool read(const Json& j, E& x) {
    int n;
    return read(j, n) && n >= 0 && n <= int(last_value(E{})) && (x = E(n), true);
  }
  template <class T>
  static bool read(const Json& j, std::optional<T>& x) {
    if (j.is_null()) return x.reset(), true;
    return read(j, x.emplace());
  }
  template <class T>
  static bool read(const Json& j, std::vector<T>& x) {
    if (!j.is_array() || j.size() > kMaxListFromJson) return false;
    x.resize(j.size());
    return entries(j, x);
  }
  template <class T, size_t N>
  static bool read(const Json& j, std::array<T, N>& x) {
    return j.is_array() && j.size() == N && entries(j, x);
  }
  template <class A, class B>
  static bool read(const Json& j, std::pair<A, B>& x) {
    return j.is_array() && j.size() == 2 && read(j[0], x.first) && read(j[1], x.second);
  }
  template <class T>
  requires std::is_class_v<T>
  static bool read(const Json& j, T& x) {
    if constexpr (requires(Row & io) { row(io, x); }) {
      Row io{j};
      row(io, x);
      return io.right;
    } else {
      JsonReader io(j, "");
      fields(io, x);
      return io.problem().empty();
    }
  }

 private:
  struct Row {
    const Json& from;
    bool right = true;
    template <class... T>
    void operator()(T&... x) {
      size_t i = 0;
      right = from.is_array() && from.size() == sizeof...(x) && (read(from[i++], x) && ...);
    }
  };
  template <class List>
  static bool entries(const Json& j, List& x) {
    for (size_t i = 0; i < x.size(); i++)
      if (!read(j[i], x[i])) return false;
    return true;
  }

  const Json& from_;
  std::string where_, problem_;
};

}  // namespace gimbal
