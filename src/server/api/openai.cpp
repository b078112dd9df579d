#include "server/api/openai.h"

#include "server/api/text.h"

namespace gimbal::api {

Json openai_usage(const Usage& u) {
  return {{"prompt_tokens", u.prompt_tokens},
          {"completion_tokens", u.completion_tokens},
          {"total_tokens", u.prompt_tokens + u.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", u.shared_tokens}}}};
}

std::string fingerprint(const std::string& version) { return "gimbal-" + version; }

bool read_stream(Fields& f, bool& usage) {
  const bool stream = f.flag("stream").value_or(false);
  if (const Json* j = f.object("stream_options")) {
    Fields options(*j, "stream_options");
    usage = options.flag("include_usage").value_or(false);
    options.refuse("include_obfuscation", "events have nothing but what they say", false);
    if (auto no = options.finish()) f.wrong_as(*no);
    if (!stream) f.wrong("stream_options", "'stream_options' needs 'stream': true");
  }
  return stream;
}

void read_verbosity(Fields& f) { f.word("verbosity", {"low", "medium", "high"}); }

void add_openai_error(std::string& out, const ApiError& e) {
  add_event(out, "", error_text(Dialect::OpenAi, e, ""));
  out += "data: [DONE]\n\n";
}

}  // namespace gimbal::api
