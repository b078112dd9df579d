// libFuzzer over chat templates: whatever a template says, rendering ends within its limits, with text whose
// marks lie inside it or with an error that says where.
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "require.h"
#include "template/template.h"

namespace {

using namespace gimbal;

const Json& variables() {
  static const Json v = Json::parse(R"({
    "bos_token": "<s>", "add_generation_prompt": true, "n": 3, "x": 1.5, "nothing": null, "s": "Grüße 你好 a,b",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " hi\n"},
      {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdef123", "function": {"name": "f", "arguments": {"a": [1, 2]}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]})");
  return v;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = Template::parse(source);
  if (!parsed) {
    require(parsed.error().message.find("chat template, ") == 0);
    return 0;
  }
  RenderOptions options;
  options.limits = {200'000, 1 << 20, 16 << 20};
  const auto r = parsed->render(variables(), options);
  if (!r) {
    require(r.error().message.find("chat template, line ") == 0);
    return 0;
  }
  require(is_utf8(r->text) && r->text.size() <= options.limits.output_bytes);
  uint32_t at = 0;
  for (const tmpl::Span& s : r->foreign) {
    require(s.begin >= at && s.end > s.begin && s.end <= r->text.size());
    at = s.end;
  }
  return 0;
}
