#include "quantize/patterns.h"

#include <regex.h>

#include <memory>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {

Result<std::vector<std::optional<DType>>> formats_by_name(const TensorTable& tensors,
                                                          const std::vector<FormatOfNames>& rules) {
  std::vector<std::optional<DType>> all(tensors.size());
  for (const FormatOfNames& rule : rules) {
    regex_t compiled;
    if (const int code = regcomp(&compiled, rule.pattern.c_str(), REG_EXTENDED | REG_NOSUB); code != 0) {
      char why[128];
      regerror(code, nullptr, why, sizeof why);
      return Error{Code::Usage, format("{} is no pattern of names: {}", quoted(rule.pattern), why),
                   "a POSIX extended regular expression is expected, such as 'ffn_down' or "
                   "'blk\\.[0-3]\\.attn_(k|v)'"};
    }
    const std::unique_ptr<regex_t, void (*)(regex_t*)> owned(&compiled, [](regex_t* r) { regfree(r); });
    for (const StoredTensor& t : tensors)
      if (!all[t.index] && regexec(&compiled, std::string(t.name).c_str(), 0, nullptr, 0) == 0)
        all[t.index] = rule.format;
  }
  return all;
}

}  // namespace gimbal
