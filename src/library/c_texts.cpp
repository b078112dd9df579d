// The C interface: tokens, embeddings, texts and conversations.
#include "library/c_handles.h"

using namespace gimbal::v1;
using namespace gimbal::v1::c;

namespace {

// Hands the parts of a text to the sink of a call.
struct Sink {
  gimbal_sink sink;
  void* user;
  const gimbal_cancel* cancel;

  bool operator()(int32_t part, const std::string& text) const {
    if (cancelled(cancel)) return false;
    return !sink || text.empty() || sink(part, text.c_str(), text.size(), user);
  }
  bool operator()(const ReplyPiece& piece) const {
    if (!(*this)(GIMBAL_PART_REASONING, piece.reasoning) || !(*this)(GIMBAL_PART_TEXT, piece.text))
      return false;
    for (const ToolCall& call : piece.tool_calls)
      if (!(*this)(GIMBAL_PART_TOOL_CALL, json_text(call))) return false;
    return true;
  }
};

gimbal_text* made_of(Generated&& g, const Message* message) {
  auto text = std::make_unique<gimbal_text>();
  text->json = json_text(g, message);
  text->text = message ? message->content : std::move(g.text);
  text->tokens = std::move(g.tokens), text->finish = int(g.finish);
  return text.release();
}

// A text and its number of bytes; NULL is the empty text.
std::string_view text_of(const char* text, size_t bytes) { return {text ? text : "", text ? bytes : 0}; }

}  // namespace

gimbal_result gimbal_tokenize(const gimbal_model* model, const char* text, size_t bytes, const char* options,
                              int32_t** tokens, size_t* count, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"model", model}, {"tokens", tokens}, {"count", count}}); !ok) return ok;
    *tokens = nullptr, *count = 0;
    Tokenizing o;
    if (auto ok = read(options, o); !ok) return ok;
    const auto ids = model->model.tokenizer().encode(text_of(text, bytes), o.add_bos, o.parse_special);
    *tokens = copy(ids.data(), ids.size());
    *count = ids.size();
    return Done{};
  });
}

gimbal_result gimbal_detokenize(const gimbal_model* model, const int32_t* tokens, size_t count,
                                int32_t special, char** text, size_t* bytes, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"model", model}, {"text", text}}); !ok) return ok;
    *text = nullptr;
    if (bytes) *bytes = 0;
    const std::string all =
        model->model.tokenizer().decode(std::span(tokens, tokens ? count : 0), special != 0);
    *text = copy(all);
    if (bytes) *bytes = all.size();
    return Done{};
  });
}

gimbal_result gimbal_embed(gimbal_model* model, const char* const* texts, size_t count, const char* options,
                           float** vectors, size_t* width, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"model", model}, {"vectors", vectors}, {"width", width}}); !ok) return ok;
    *vectors = nullptr, *width = 0;
    Embedding o;
    if (auto ok = read(options, o); !ok) return ok;
    std::vector<std::string> all;
    for (size_t i = 0; i < count; i++) {
      if (auto ok = given({{"texts", texts}}); !ok) return ok;
      if (auto ok = given({{"texts", texts[i]}}); !ok) return ok;
      all.emplace_back(texts[i]);
    }
    auto embedded = model->model.embed(all, o.pooling, o.normalised);
    if (!embedded) return embedded.error();
    std::vector<float> flat;
    for (const auto& vector : *embedded) flat.insert(flat.end(), vector.begin(), vector.end());
    *vectors = copy(flat.data(), flat.size());
    if (count) *width = flat.size() / count;
    return Done{};
  });
}

gimbal_result gimbal_sequence_new(gimbal_model* model, gimbal_sequence** sequence, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"model", model}, {"sequence", sequence}}); !ok) return ok;
    *sequence = nullptr;
    auto made = model->model.new_sequence();
    if (!made) return made.error();
    *sequence = new gimbal_sequence{std::move(*made)};
    return Done{};
  });
}
void gimbal_sequence_free(gimbal_sequence* s) { delete s; }
int32_t gimbal_sequence_position(const gimbal_sequence* s) { return s ? s->sequence.position() : -1; }
int32_t gimbal_sequence_room(const gimbal_sequence* s) { return s ? s->sequence.room() : -1; }
void gimbal_sequence_rewind(gimbal_sequence* s, int32_t position) {
  if (s && position < s->sequence.position()) s->sequence.rewind(std::max(position, 0));
}

const char* gimbal_text_string(const gimbal_text* t, size_t* bytes) {
  if (bytes) *bytes = t ? t->text.size() : 0;
  return t ? t->text.c_str() : "";
}
const int32_t* gimbal_text_tokens(const gimbal_text* t, size_t* count) {
  if (count) *count = t ? t->tokens.size() : 0;
  return t ? t->tokens.data() : nullptr;
}
int32_t gimbal_text_finish(const gimbal_text* t) { return t ? t->finish : -1; }
const char* gimbal_text_json(const gimbal_text* t) { return t ? t->json.c_str() : "{}"; }
void gimbal_text_free(gimbal_text* t) { delete t; }

gimbal_result gimbal_generate(gimbal_sequence* sequence, const char* prompt, size_t bytes,
                              const char* options, gimbal_sink sink, void* user, const gimbal_cancel* cancel,
                              gimbal_text** text, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (text) *text = nullptr;
    if (auto ok = given({{"sequence", sequence}}); !ok) return ok;
    TextOptions o;
    if (auto ok = read(options, o); !ok) return ok;
    o.on_prompt = [&](size_t, size_t) { return !cancelled(cancel); };
    const Sink to{sink, user, cancel};
    auto g = sequence->sequence.generate(text_of(prompt, bytes), o, [&](std::string_view piece) {
      return to(GIMBAL_PART_TEXT, std::string(piece));
    });
    if (!g) return g.error();
    if (text) *text = made_of(std::move(*g), nullptr);
    return Done{};
  });
}

gimbal_messages* gimbal_messages_new(void) { return new (std::nothrow) gimbal_messages; }
void gimbal_messages_free(gimbal_messages* m) { delete m; }
size_t gimbal_messages_count(const gimbal_messages* m) { return m ? m->all.size() : 0; }
void gimbal_messages_drop(gimbal_messages* m, size_t count) {
  if (m) m->all.erase(m->all.end() - std::ptrdiff_t(std::min(count, m->all.size())), m->all.end());
}

gimbal_result gimbal_messages_add(gimbal_messages* messages, const char* role, const char* content,
                                  gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"messages", messages}, {"role", role}, {"content", content}}); !ok) return ok;
    const std::string_view word = role;
    if (word != "system" && word != "user" && word != "assistant")
      return usage(gimbal::format("there is no role {} here", gimbal::quoted(word)),
                   "use one of system, user, assistant; gimbal_messages_add_json() takes results of tools",
                   "role");
    messages->all.push_back({std::string(word), content});
    return Done{};
  });
}

gimbal_result gimbal_messages_add_json(gimbal_messages* messages, const char* json, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"messages", messages}, {"json", json}}); !ok) return ok;
    auto message = message_of(json);
    if (!message) return message.error();
    messages->all.push_back(std::move(*message));
    return Done{};
  });
}

gimbal_result gimbal_chat(gimbal_sequence* sequence, gimbal_messages* messages, const char* options,
                          gimbal_sink sink, void* user, const gimbal_cancel* cancel, gimbal_text** text,
                          gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (text) *text = nullptr;
    if (auto ok = given({{"sequence", sequence}, {"messages", messages}}); !ok) return ok;
    ChatOptions o;
    if (auto ok = read(options, o); !ok) return ok;
    o.on_prompt = [&](size_t, size_t) { return !cancelled(cancel); };
    auto reply = sequence->sequence.chat(messages->all, o, Sink{sink, user, cancel});
    if (!reply) return reply.error();
    if (text) *text = made_of(std::move(reply->generated), &reply->message);
    messages->all.push_back(std::move(reply->message));
    return Done{};
  });
}

gimbal_result gimbal_chat_prompt(const gimbal_model* model, const gimbal_messages* messages,
                                 const char* options, char** text, gimbal_error** error) {
  return guarded(error, [&]() -> Status {
    if (auto ok = given({{"model", model}, {"messages", messages}, {"text", text}}); !ok) return ok;
    *text = nullptr;
    ChatOptions o;
    if (auto ok = read(options, o); !ok) return ok;
    auto prompt = model->model.chat_prompt(messages->all, o);
    if (!prompt) return prompt.error();
    *text = copy(prompt->text);
    return Done{};
  });
}
