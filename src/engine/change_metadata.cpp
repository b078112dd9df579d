#include "engine/change_metadata.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

Error useless(const char* field, std::string message, std::string remedy) {
  return {Code::Usage, format("'{}' {}", field, std::move(message)), std::move(remedy), "", field};
}

struct RopeKey {
  const char* field;
  float ModelOptions::*member;
  const char* key;  // below "<architecture>.rope."
  bool of_yarn;
};
constexpr RopeKey kRopeKeys[] = {
    {"rope_freq_base", &ModelOptions::rope_freq_base, "freq_base", false},
    {"rope_freq_scale", &ModelOptions::rope_freq_scale, "scaling.factor", false},  // its inverse
    {"yarn_beta_fast", &ModelOptions::yarn_beta_fast, "scaling.yarn_beta_fast", true},
    {"yarn_beta_slow", &ModelOptions::yarn_beta_slow, "scaling.yarn_beta_slow", true},
    {"yarn_attn_factor", &ModelOptions::yarn_attn_factor, "scaling.attn_factor", true},
};

constexpr const char *kType = "scaling.type", *kOriginal = "scaling.original_context_length";

bool is_rope_key(std::string_view key) {
  for (const RopeKey& k : kRopeKeys)
    if (key == k.key) return true;
  return key == kType || key == kOriginal;
}

std::string rope_prefix(const ModelSource& file) {
  return std::string(file.metadata().string("general.architecture").value_or("")) + ".rope.";
}

// The setting that was given, nullptr: none.
const char* first_given(const ModelOptions& m, bool of_yarn_only) {
  if (!of_yarn_only && m.rope_scaling != "file") return "rope_scaling";
  for (const RopeKey& k : kRopeKeys)
    if (m.*k.member != 0 && (k.of_yarn || !of_yarn_only)) return k.field;
  return m.yarn_original_context ? "yarn_original_context" : nullptr;
}

Status change_rope(ModelSource& file, const ModelOptions& m) {
  const char* given = first_given(m, false);
  if (!given) return Done{};
  const Metadata& metadata = file.metadata();
  const std::string prefix = rope_prefix(file);
  bool rotates = false;  // a file says something of the rotation of every model that has one
  for (std::string_view key : metadata.keys()) rotates = rotates || key.starts_with(prefix);
  if (!rotates)
    return useless(given, format("is for rotary positions, and {} says of none", file.path()),
                   "leave it out");
  const std::string type_key = prefix + kType;
  const std::string type =
      m.rope_scaling != "file" ? m.rope_scaling : std::string(metadata.string(type_key).value_or("linear"));
  if (const char* yarn = first_given(m, true); yarn && type != "yarn")
    return useless(yarn, format("is for YaRN, and the scaling is {}", gimbal::quoted(type)),
                   "set 'rope_scaling' to yarn");
  if (m.rope_freq_scale != 0 && type != "linear" && type != "yarn")
    return useless("rope_freq_scale", format("has no effect with the scaling {}", gimbal::quoted(type)),
                   "set 'rope_scaling' to linear or yarn");
  if (m.rope_scaling == "yarn" && m.rope_freq_scale == 0 && !metadata.contains(prefix + "scaling.factor"))
    return useless("rope_scaling", "is yarn, and neither the file nor an option says by how much",
                   "set 'rope_freq_scale', such as 0.25 for a context four times as long");
  if (m.rope_scaling != "file") file.set(type_key, m.rope_scaling);
  for (const RopeKey& k : kRopeKeys)
    if (const float value = m.*k.member; value != 0)  // in float, as a file has it: 0.1 is the factor 10
      file.set(prefix + k.key, double(k.member == &ModelOptions::rope_freq_scale ? 1 / value : value));
  if (m.yarn_original_context) file.set(prefix + kOriginal, double(m.yarn_original_context));
  return Done{};
}

}  // namespace

std::vector<RopeChange> rope_changes(const ModelSource& file) {
  const std::string prefix = rope_prefix(file);
  std::vector<RopeChange> all;
  for (const std::string& key : file.changed()) {
    if (!key.starts_with(prefix)) continue;
    RopeChange& c = all.emplace_back();
    c.key = key.substr(prefix.size());
    if (c.key == kType) c.text = file.metadata().string(key).value_or("");
    else c.number = file.metadata().number(key).value_or(0);
  }
  std::ranges::sort(all, {}, &RopeChange::key);
  return all;
}

Status apply_rope_changes(ModelSource& file, std::span<const RopeChange> changes) {
  const std::string prefix = rope_prefix(file);
  for (const RopeChange& c : changes) {
    if (!is_rope_key(c.key))
      return Error{Code::Malformed, format("{} is no setting of rotary positions", gimbal::quoted(c.key)),
                   ""};
    if (c.key == kType) file.set(prefix + c.key, c.text);
    else file.set(prefix + c.key, c.number);
  }
  return Done{};
}

Status change_metadata(ModelSource& file, const ModelOptions& m) {
  if (!m.chat_template.empty()) file.set("tokenizer.chat_template", m.chat_template);
  return change_rope(file, m);
}

}  // namespace gimbal
