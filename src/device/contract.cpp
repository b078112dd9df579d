#include "device/contract.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "device/meanings.h"
#include "device/reason.h"

namespace gimbal {
namespace {

// All later fields are optional, or newer than the first version.
constexpr size_t kMinTableBytes = offsetof(gimbal_backend, measure);
constexpr size_t kMinPluginBytes = sizeof(gimbal_plugin);

Error mismatch(const std::string& whose, uint32_t version, uint32_t bytes, size_t fewest) {
  return {
      Code::NoBackend,
      format("{} speaks version {} of the contract with a table of {} bytes; this program speaks version {} "
             "with at least {} bytes",
             whose, version, bytes, GIMBAL_ABI_VERSION, fewest),
      "use the backend that belongs to this version of gimbal", reason::kAbiMismatch};
}

Error broken(const std::string& whose, const std::string& what) {
  return {Code::NoBackend, format("{} {}", whose, what),
          "it is damaged or was not made for gimbal: install it again, or remove it", reason::kBrokenPlugin};
}

// The error for the first number that both define with different meanings.
template <class Id>
Status same_meanings(const std::string& whose, const char* what, const gimbal_meanings& theirs,
                     const gimbal_meanings& ours) {
  if (theirs.count && !theirs.of)
    return broken(whose, format("gives numbers of {}s, but no names for them", what));
  for (size_t i = 0; i < std::min(theirs.count, ours.count); i++)
    if (theirs.of[i] && ours.of[i] && theirs.of[i] != ours.of[i])
      return Error{
          Code::NoBackend,
          format("{} uses {} {} with another meaning; here it is '{}'", whose, what, i, info(Id(i)).name),
          "use the backend that belongs to this version of gimbal", reason::kAbiMismatch};
  return Done{};
}

bool is_name(const char* s) {
  const size_t n = strnlen(s, 65);
  return n > 0 && n <= 64 && std::all_of(s, s + n, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

}  // namespace

Status check_plugin(const gimbal_plugin* p, const std::string& whose) {
  if (!p) return broken(whose, "has no description");
  if (p->abi_version != GIMBAL_ABI_VERSION || p->struct_size < kMinPluginBytes)
    return mismatch(whose, p->abi_version, p->struct_size, kMinPluginBytes);
  if (!p->backend) return broken(whose, "contains no backend");
  if (auto same = same_meanings<OpKind>(whose, "op", p->ops, kOpMeaningsHere); !same) return same;
  return same_meanings<DType>(whose, "format", p->dtypes, kDTypeMeaningsHere);
}

Status check_table(const gimbal_backend* t, const std::string& whose) {
  if (!t) return broken(whose, "has no table of functions");
  if (t->abi_version != GIMBAL_ABI_VERSION || t->struct_size < kMinTableBytes)
    return mismatch(whose, t->abi_version, t->struct_size, kMinTableBytes);
  if (!t->name || !is_name(t->name)) return broken(whose, "has no name made of a-z, 0-9 and _");
  std::string missing;
  auto need = [&](const char* name, bool there) {
    if (!there) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
#define NEED(function) need(#function, t->function != nullptr)
  NEED(device_count), NEED(open), NEED(close), NEED(describe), NEED(kernels);
  NEED(alloc), NEED(release), NEED(write), NEED(read), NEED(packed_bytes), NEED(pack), NEED(cache_bytes);
  NEED(compile), NEED(discard), NEED(submit), NEED(wait), NEED(last_error);
#undef NEED
  if (!missing.empty()) return broken(whose, "lacks functions that every backend has: " + missing);
  return Done{};
}

gimbal_backend as_known_here(const gimbal_backend& theirs) {
  gimbal_backend mine{};
  memcpy(&mine, &theirs, std::min<size_t>(theirs.struct_size, sizeof mine));
  mine.struct_size = uint32_t(std::min<size_t>(theirs.struct_size, sizeof mine));
  return mine;
}

const char* known_reason(std::string_view text) {
#define GIMBAL_REASON(constant, word) \
  if (text == reason::constant) return reason::constant;
  GIMBAL_REASONS(GIMBAL_REASON)
#undef GIMBAL_REASON
  return nullptr;
}

Error backend_error(const char* said, const char* otherwise) {
  Error e{Code::NoBackend, "no reason given", "", otherwise};
  std::string_view text = said ? said : "";
  if (const size_t last = text.rfind('\n'); last != text.npos)
    if (const char* code = known_reason(text.substr(last + 1))) e.reason = code, text = text.substr(0, last);
  if (text.empty()) return e;
  const size_t end = std::min(text.find('\n'), text.size());
  e.message = text.substr(0, end);
  if (end < text.size()) e.remedy = text.substr(end + 1);
  return e;
}

}  // namespace gimbal
