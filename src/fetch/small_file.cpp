#include "fetch/small_file.h"

#include "base/format.h"
#include "fetch/http.h"

namespace gimbal {
namespace {

class NoEnd final : public Patience {
 public:
  bool go_on() override { return true; }
};

}  // namespace

Status can_fetch() {
  auto curl = Curl::open();
  if (!curl) return curl.error();
  return Done{};
}

Result<std::string> fetch_small_file(const SmallFile& file) {
  NoEnd patience;
  auto http = Http::create(patience);
  if (!http) return http.error();
  // As if a site of the URL's own kind had led here: a name that means a private address is refused.
  auto answer = (*http)->get({.url = file.url.whole(),
                              .credential = {},
                              .max_body = file.max_bytes,
                              .from = reach_of(file.url.host),
                              .tries = 1,
                              .until = file.until,
                              .may_lead_to = file.may_lead_to});
  if (!answer) {
    const Error& e = answer.error();
    if (e.reason != std::string_view(reason::kLeadsInside)) return Error{e.code, e.message, "", e.reason};
    return Error{Code::Failed, format("{} leads to an address inside a private network", file.url.origin()),
                 "", e.reason};
  }
  if (answer->status != 200)
    return Error{Code::Failed, format("{} answers with status {}", answer->url.origin(), answer->status), ""};
  return std::move(answer->body);
}

}  // namespace gimbal
