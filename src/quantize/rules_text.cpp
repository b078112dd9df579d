// Names of mixtures, and rules as text, for the metadata of quantized files.
#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "base/text.h"
#include "quantize/mixture.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

constexpr Mixture kMixtures[] = {
#define GIMBAL_MIXTURE(id, file_type, format) {Mix::id, #id, file_type, DType::format},
#include "quantize/mixtures.def"
#undef GIMBAL_MIXTURE
};

std::string in_capitals(std::string_view text) {
  std::string all(text);
  for (char& c : all) c = char(std::toupper(static_cast<unsigned char>(c)));
  return all;
}

}  // namespace

std::vector<std::string> mixture_names() {
  std::vector<std::string> all;
  for (const Mixture& m : kMixtures) all.emplace_back(m.name);
  return all;
}

Result<Mixture> mixture_named(std::string_view name) {
  std::string wanted = in_capitals(name);
  if (wanted == "Q3_K" || wanted == "Q4_K" || wanted == "Q5_K") wanted += "_M";
  for (const Mixture& m : kMixtures)
    if (wanted == m.name) return m;
  const auto similar = nearest(wanted, mixture_names());
  std::string known;
  for (const std::string& m : mixture_names()) known += (known.empty() ? "" : ", ") + m;
  return Error{Code::Usage, format("{} is no mixture of formats", quoted(name)),
               similar ? format("did you mean {}?", *similar) : "known: " + known};
}

std::string QuantizeRules::text() const {
  std::string all = format("mixture={}\n", mixture.name);
  if (pure) all += "pure\n";
  if (output) all += format("output={}\n", info(*output).name);
  if (embedding) all += format("embedding={}\n", info(*embedding).name);
  for (const FormatOfNames& n : names) all += format("names={}={}\n", info(n.format).name, n.pattern);
  return all;
}

Result<QuantizeRules> QuantizeRules::parsed(std::string_view text) {
  QuantizeRules rules{};
  const auto unknown = [](std::string_view line) {
    return Error{Code::Malformed, format("{} is no rule of quantizing", quoted(line)), ""};
  };
  bool has_mixture = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto equals = line.find('=');
    const std::string_view key = line.substr(0, equals),
                           value = equals == line.npos ? "" : line.substr(equals + 1);
    const auto type_of = [](std::string_view name) {
      const auto t = dtype_named(name);
      return t && can_encode(*t) ? t : std::nullopt;
    };
    if (key == "mixture") {
      auto m = mixture_named(value);
      if (!m) return unknown(line);
      rules.mixture = *m, has_mixture = true;
    } else if (line == "pure") rules.pure = true;
    else if (key == "output" && type_of(value)) rules.output = type_of(value);
    else if (key == "embedding" && type_of(value)) rules.embedding = type_of(value);
    else if (const auto second = value.find('=');
             key == "names" && second != value.npos && type_of(value.substr(0, second)))
      rules.names.push_back({std::string(value.substr(second + 1)), *type_of(value.substr(0, second))});
    else return unknown(line);
  }
  if (!has_mixture) return unknown("");
  return rules;
}

}  // namespace gimbal
