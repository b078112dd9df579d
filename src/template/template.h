// Chat templates: the Jinja that a model file carries in tokenizer.chat_template, rendered byte for byte as
// Python's jinja2 does in the sandbox of transformers (trim_blocks, lstrip_blocks, loop controls; tojson
// keeps order and characters). A template reads nothing but its variables and the clock it is given.
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
  uint64_t steps = 20'000'000;  // evaluations, and the length of what they look at
  size_t output_bytes = size_t(64) << 20;
  size_t memory_bytes = size_t(512) << 20;  // of values
};

struct RenderOptions {
  std::tm now{};  // local time, for strftime_now
  RenderLimits limits;
};

struct Rendered {
  std::string text;
  // The bytes that came in with the variables, in order. Not among them: strings directly in the variables
  // (bos_token and the like), and plain words under the key "role".
  std::vector<tmpl::Span> foreign;
};

// Error::reason of what a template itself refused, by raise_exception(), and of one of RenderLimits.
namespace reason {
inline constexpr const char* kTemplateRaised = "template-raised";
inline constexpr const char* kTemplateLimit = "template-limit";
}  // namespace reason

class Template {
 public:
  // Errors: Malformed, naming the line; Unsupported for what would read other files.
  static Result<Template> parse(std::string_view source);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // `variables`: an object. Thread-safe. Errors: Failed, naming line and construct: what the template raised,
  // a mistake in it, a limit that was reached.
  Result<Rendered> render(const Json& variables, const RenderOptions& options) const;

 private:
  explicit Template(std::unique_ptr<const tmpl::Tree>);
  std::unique_ptr<const tmpl::Tree> tree_;
};

}  // namespace gimbal
