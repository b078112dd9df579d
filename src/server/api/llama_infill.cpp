// POST /infill, and prompts with a suffix in other APIs: the model writes between two texts.

#include "base/format.h"
#include "server/api/llama.h"
#include "server/api/prompt.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr size_t kMostFiles = 256;

std::vector<InfillFile> read_files(Fields& f) {
  std::vector<InfillFile> files;
  const Json* list = f.array("input_extra");
  if (list && list->size() > kMostFiles)
    f.wrong("input_extra", format("'input_extra' has more than {} entries", kMostFiles));
  for (size_t i = 0; list && i < list->size() && f.ok(); i++) {
    Fields one((*list)[i], format("input_extra[{}]", i));
    one.need("text");
    files.push_back({one.text("filename").value_or("tmp"), one.text("text").value_or("")});
    if (auto no = one.finish()) f.wrong_as(*no);
  }
  return files;
}

}  // namespace

Refused tokens_for_infill(const ServedModel& model, const char* field, InfillTokens& to) {
  to = infill_tokens(model.file().metadata(), model.tokenizer());
  if (to.complete()) return {};
  return wrong_field(field,
                     format("the model {} cannot fill in the middle: its vocabulary has no tokens for it; "
                            "serve a model for code that was trained to, such as Qwen2.5-Coder",
                            quoted_briefly(model.id())));
}

Refused prompts_with_suffix(Fields& f, const ServedModel& model, const std::string& suffix, size_t most,
                            std::vector<std::vector<Token>>& to) {
  InfillTokens tokens;
  if (auto no = tokens_for_infill(model, "suffix", tokens)) f.wrong_as(*no);
  tokens.repository = tokens.file = -1;  // the suffix alone says nothing of files
  f.need("prompt");
  const std::vector<std::string> prompts = f.texts("prompt", most);
  if (f.ok() && prompts.empty()) f.wrong("prompt", "'prompt' must not be an empty list");
  for (size_t i = 0; f.ok() && i < prompts.size(); i++)
    to.push_back(infill_prompt(tokens, model.tokenizer(), prompts[i], suffix));
  return f.error();
}

Refused llama_infill(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, true, model)) return no;
  InfillTokens tokens;
  for (const char* name : {"input_prefix", "input_suffix"}) f.need(name);
  const std::string before = f.text("input_prefix").value_or(""),
                    behind = f.text("input_suffix").value_or("");
  const std::string typed = f.text("prompt").value_or("");
  const std::vector<InfillFile> files = read_files(f);
  LlamaRequest r = default_llama_request();
  read_llama_request(f, call, *model, r);
  if (auto no = f.finish()) return no;
  if (auto no = tokens_for_infill(*model, "model", tokens)) return no;
  std::vector<std::vector<Token>> prompts;
  prompts.push_back(infill_prompt(tokens, model->tokenizer(), before, behind, typed, files));
  return start_completion(call, std::move(model), std::move(r), std::move(prompts), true);
}

}  // namespace gimbal::api
