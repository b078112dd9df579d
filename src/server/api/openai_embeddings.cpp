// POST /v1/embeddings
#include <cstring>

#include "base/format.h"
#include "server/api/call.h"
#include "server/api/prompt.h"

namespace gimbal::api {

Refused embeddings(Call& call) {
  Fields f(call.body);
  f.need("model");
  const auto name = f.text("model");
  if (!f.ok()) return f.error();
  ServedModelPtr model;
  if (auto no = find_model(call, *name, false, model)) return no;
  if (auto no = no_embeddings(*model)) return no;
  std::vector<std::vector<Token>> texts;
  if (auto no = raw_prompts(f, "input", *model, 2048, texts)) return no;
  const bool as_bytes = f.word("encoding_format", {"float", "base64"}) == "base64";
  const auto dimensions = f.whole("dimensions", 1, INT32_MAX);
  f.harmless({"user"});
  if (auto no = f.finish()) return no;

  Json data = Json::array();
  size_t tokens = 0;
  for (const auto& t : texts) {
    if (int64_t(t.size()) > model->context()) {
      ApiError e = context_exceeded(t.size(), model->context());
      e.param = "input";
      return e;
    }
    tokens += t.size();
  }
  size_t width = 0;
  auto ok = model->embed(texts, [&](size_t i, std::span<const float> e) -> Status {
    width = e.size();
    Json one = {{"object", "embedding"}, {"index", i}, {"embedding", nullptr}};
    if (as_bytes)
      one["embedding"] = base64({reinterpret_cast<const char*>(e.data()), e.size() * sizeof(float)});
    else one["embedding"] = e;
    data.push_back(std::move(one));
    return Done{};
  });
  if (!ok) return of(ok.error());
  // A vector cut short would be another one: models that may be cut say so nowhere in their files.
  if (dimensions && size_t(*dimensions) != width)
    return wrong_field("dimensions", format("'dimensions' must be {}, which this model has", width));
  call.answer_json({{"object", "list"},
                    {"data", std::move(data)},
                    {"model", model->id()},
                    {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
  return {};
}

}  // namespace gimbal::api
