#include "apps/options/sampling_options.h"

#include <random>

#include "base/format.h"
#include "runtime/sampling_table.h"

namespace gimbal {
namespace {

template <class T>
std::string help_of(const SamplingSetting& s, T default_) {
  if (s.off == double(default_)) return format("{} (default)", s.help);
  return format("{} (default {})", s.help, default_);
}

}  // namespace

void SamplingOptions::declare(Arguments& a) {
  a.section("Sampling");
  for (const SamplingSetting& s : kSamplingSettings) {
    if (!s.option) continue;
    if (const auto* flag = std::get_if<bool Sampling::*>(&s.member)) {
      a.flag(s.option, s.help, settings.**flag);
    } else if (std::holds_alternative<uint64_t Sampling::*>(s.member)) {
      a.whole(s.option, s.value, s.help, seed, uint64_t(0), UINT64_MAX);
    } else if (const auto* number = std::get_if<float Sampling::*>(&s.member)) {
      a.number(s.option, s.value, help_of(s, settings.**number).c_str(), settings.**number);
    } else if (const auto* whole = std::get_if<int Sampling::*>(&s.member)) {
      a.whole(s.option, s.value, help_of(s, settings.**whole).c_str(), settings.**whole, int(s.low),
              int(s.high));
    } else if (std::holds_alternative<std::vector<std::string> Sampling::*>(s.member)) {
      a.texts(s.option, s.value, s.help, texts[s.field]);
    }
  }
}

Status SamplingOptions::finish() {
  for (const SamplingSetting& s : kSamplingSettings) {
    const auto* member = std::get_if<std::vector<std::string> Sampling::*>(&s.member);
    if (!member || texts[s.field].empty()) continue;
    settings.** member = texts[s.field];
    if (texts[s.field] == std::vector<std::string>{"none"}) (settings.**member).clear();
  }
  settings.seed = seed ? *seed : std::random_device()();  // 32 bits: whole in every JSON reader
  return validate(settings);
}

}  // namespace gimbal
