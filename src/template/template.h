// Chat templates: the Jinja in a model file's tokenizer.chat_template. Renders byte for byte like Python's
// jinja2 in the sandbox of transformers (trim_blocks, lstrip_blocks, loop controls; tojson keeps order and
// characters). A template reads only its variables and the given clock.
#pragma once
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "template/text.h"

namespace gimbal {

namespace tmpl {
struct Tree;
}

struct RenderLimits {
  uint64_t steps = 20'000'000;  // evaluations, plus the lengths of their operands
  size_t output_bytes = size_t(64) << 20;
  size_t memory_bytes = size_t(512) << 20;  // of values
};

struct RenderOptions {
  std::tm now{};  // local time, for strftime_now
  // Whether the variables date_string and datetime say the day, as llama.cpp's server has them, unless they
  // are given. Off where `now` is a given time: then the template has its own default, as in transformers.
  bool names_date = false;
  RenderLimits limits;
};

struct Rendered {
  std::string text;
  // The bytes that came from the variables, in order. Excluded: control tokens (bos_token and other variables
  // with "_token" at the end of their names), and plain words under the key "role".
  std::vector<tmpl::Span> foreign;
};

// Values of Error::reason: an error raised by the template's raise_exception(); one of RenderLimits.
namespace reason {
inline constexpr const char* kTemplateRaised = "template-raised";
inline constexpr const char* kTemplateLimit = "template-limit";
}  // namespace reason

class Template {
 public:
  // Errors: Malformed, naming the line; Unsupported for tags that read other files.
  static Result<Template> parse(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // `variables`: an object. Thread-safe. Errors: Failed, naming line and construct: an error raised by the
  // template or a fault in it, or a limit that was reached.
  Result<Rendered> render(const Json& variables, const RenderOptions& options) const;

 private:
  explicit Template(std::unique_ptr<const tmpl::Tree>);
  std::unique_ptr<const tmpl::Tree> tree_;
};

}  // namespace gimbal
