// llama.cpp's endpoints about prompts: /tokenize, /detokenize, /apply-template and
// /v1/chat/completions/input_tokens.
#include "base/format.h"
#include "base/text.h"
#include "server/api/llama.h"
#include "server/api/openai.h"

namespace gimbal::api {
namespace {

// Of a text or a list: an answer has about 60 bytes for each token.
constexpr size_t kMostBytes = 1 << 20, kMostTokens = 1 << 20;

// A piece of valid UTF-8 as text, else its bytes.
Json piece_json(const std::string& piece) {
  if (is_utf8(piece)) return piece;
  Json bytes = Json::array();
  for (char c : piece) bytes.push_back(uint8_t(c));
  return bytes;
}

}  // namespace

Refused tokenize(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, false, model)) return no;
  f.need("content");
  const std::string text = f.text("content").value_or("");
  if (text.size() > kMostBytes)
    f.wrong("content",
            format("'content' has {} bytes; at most {} are taken at once", text.size(), kMostBytes));
  const bool begins = f.flag("add_special").value_or(false);
  const bool special = f.flag("parse_special").value_or(true);
  const bool pieces = f.flag("with_pieces").value_or(false);
  if (auto no = f.finish()) return no;

  Json all = Json::array();
  for (Token t : model->tokenizer().encode(text, {.add_bos = begins, .parse_special = special}))
    if (pieces) all.push_back({{"id", t}, {"piece", piece_json(model->tokenizer().piece(t, true))}});
    else all.push_back(t);
  call.answer_json({{"tokens", std::move(all)}});
  return {};
}

Refused detokenize(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, false, model)) return no;
  f.need("tokens");
  const Json* list = f.array("tokens");
  const int size = model->tokenizer().size();
  std::vector<Token> tokens;
  if (list && list->size() > kMostTokens)
    f.wrong("tokens",
            format("'tokens' has {} entries; at most {} are taken at once", list->size(), kMostTokens));
  for (size_t i = 0; list && i < list->size() && f.ok(); i++) {
    const Json& id = (*list)[i];
    if (id.is_number_integer() && id >= 0 && id < size) tokens.push_back(id.get<Token>());
    else f.wrong("tokens", format("'tokens[{}]' is no token id from 0 to {}", i, size - 1));
  }
  if (auto no = f.finish()) return no;
  call.answer_json({{"content", model->tokenizer().decode(tokens, true)}});
  return {};
}

Refused apply_template(Call& call) {
  ChatCall chat;
  if (auto no = read_chat(call, chat)) return no;
  // /completion puts BOS before a text.
  std::string_view text = chat.prompt.text;
  const std::string& bos = chat.model->chat().bos;
  if (chat.model->tokenizer().adds_bos() && text.starts_with(bos)) text.remove_prefix(bos.size());
  call.answer_json({{"prompt", text}});
  return {};
}

Refused chat_input_tokens(Call& call) {
  ChatCall chat;
  if (auto no = read_chat(call, chat)) return no;
  if (auto no = countable(chat.input, *chat.model, "messages")) return no;
  call.answer_json({{"object", "response.input_tokens"}, {"input_tokens", chat.prompt.tokens.size()}});
  return {};
}

}  // namespace gimbal::api
