// Golden models with another vocabulary and chat template: weights as they are, and some of the last tokens
// are marks of a model family, as control tokens or not. There is no golden model that has such marks.
#pragma once
#include <gtest/gtest.h>

#include "base/file.h"
#include "files/gguf.h"
#include "support/gguf_writer.h"

namespace gimbal::test {

struct Mark {
  std::string text;
  bool control = true;
};

// A template as families have it; it names the tools, so that the model is told of them.
inline std::string template_with(const std::string& marks) {
  return "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if tools %}{# " + marks +
         " #}tools: {{ tools | tojson }}\n{% endif %}assistant:";
}

// The bytes of the file, with these marks for its last tokens, in order.
inline std::string remade(const Gguf& from, const std::string& chat_template,
                          const std::vector<Mark>& marks) {
  GgufWriter to;
  const auto raw = [&](std::string_view key, const GgufEntry& e) {
    const auto id = uint32_t(e.type);
    if (const auto* a = std::get_if<GgufArray>(&e.value)) {
      const std::string_view data(reinterpret_cast<const char*>(a->data.data()), a->data.size());
      to.raw(key, id, le(uint32_t(a->type)) + le(a->count) + std::string(data));
    } else if (const auto* s = std::get_if<std::string_view>(&e.value)) {
      to.string(key, *s);
    } else if (const auto* b = std::get_if<bool>(&e.value)) {
      to.boolean(key, *b);
    } else if (const auto* f = std::get_if<double>(&e.value)) {
      e.type == GgufType::F32 ? to.f32(key, float(*f)) : to.scalar(key, id, *f);
    } else {
      const auto* u = std::get_if<uint64_t>(&e.value);
      const uint64_t n = u ? *u : uint64_t(std::get<int64_t>(e.value));
      const size_t bytes = e.type == GgufType::U8 || e.type == GgufType::I8     ? 1
                           : e.type == GgufType::U16 || e.type == GgufType::I16 ? 2
                           : e.type == GgufType::U64 || e.type == GgufType::I64 ? 8
                                                                                : 4;
      to.raw(key, id, le(n).substr(0, bytes));
    }
  };
  for (const auto& [key, entry] : from.metadata()) {
    if (key == "tokenizer.ggml.tokens") {
      const auto old = from.array(key)->strings();
      std::vector<std::string> tokens(old.begin(), old.end());
      for (size_t i = 0; i < marks.size(); i++) tokens[tokens.size() - marks.size() + i] = marks[i].text;
      to.strings(key, tokens);
    } else if (key == "tokenizer.ggml.token_type") {
      const auto old = from.array(key)->integers();
      std::vector<int32_t> types(old.begin(), old.end());
      for (size_t i = 0; i < marks.size(); i++)
        types[types.size() - marks.size() + i] = marks[i].control ? 3 : 4;
      to.array(key, kI32, types);
    } else if (key != "tokenizer.chat_template") {
      raw(key, entry);
    }
  }
  to.string("tokenizer.chat_template", chat_template);
  for (const GgufTensor& t : from.tensors()) {
    const auto data = from.read(t);
    EXPECT_TRUE(data) << t.name;
    if (data)
      to.tensor(t.name, {t.dim, t.dim + t.rank}, info(t.type).gguf,
                {reinterpret_cast<const char*>(data->data()), data->size()});
  }
  return to.build();
}

}  // namespace gimbal::test
