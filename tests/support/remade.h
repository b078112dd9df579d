// Golden models with another vocabulary and chat template: weights as they are, and some of the last tokens
// are marks of a model family, as control tokens or not. There is no golden model that has such marks.
#pragma once
#include <gtest/gtest.h>

#include "base/file.h"
#include "files/gguf.h"
#include "support/made_gguf.h"

namespace gimbal::test {

struct Mark {
  std::string text;
  bool control = true;
};

// A template as families have it; it names the tools, so that the model knows them.
inline std::string template_with(const std::string& marks) {
  return "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if tools %}{# " + marks +
         " #}tools: {{ tools | tojson }}\n{% endif %}assistant:";
}

// The bytes of the file, with these marks for its last tokens, in order.
inline std::string remade(const ModelSource& from, const std::string& chat_template,
                          const std::vector<Mark>& marks) {
  MadeGguf to;
  for (std::string_view key : from.metadata().keys()) {
    if (key == "tokenizer.ggml.tokens") {
      const auto old = from.metadata().array(key)->strings();
      std::vector<std::string> tokens(old.begin(), old.end());
      for (size_t i = 0; i < marks.size(); i++) tokens[tokens.size() - marks.size() + i] = marks[i].text;
      to.strings(key, tokens);
    } else if (key == "tokenizer.ggml.token_type") {
      const auto old = from.metadata().array(key)->integers();
      std::vector<int32_t> types(old.begin(), old.end());
      for (size_t i = 0; i < marks.size(); i++)
        types[types.size() - marks.size() + i] = marks[i].control ? 3 : 4;
      to.array<int32_t>(key, MetadataType::I32, types);
    } else if (key != "tokenizer.chat_template") {
      to.add(key, *from.metadata().find(key));
    }
  }
  to.string("tokenizer.chat_template", chat_template);
  for (const StoredTensor& t : from.tensors()) {
    const auto data = from.read(t);
    EXPECT_TRUE(data) << t.name;
    if (data) to.tensor(t, text_of(*data));
  }
  return to.build();
}

}  // namespace gimbal::test
