// POST /v1/embeddings, and /embeddings in the form of llama.cpp.
#include <cctype>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "server/api/call.h"
#include "server/api/prompt.h"

namespace gimbal::api {
namespace {

// Models trained so that the first numbers of a vector are a smaller embedding (A. Kusupati et al.,
// "Matryoshka Representation Learning", 2022), with the fewest numbers that their publishers name in the
// source beside each (read in November 2026). Files do not say it.
struct Shortenable {
  std::string_view name;  // part of general.name, letters and digits only
  int64_t least;
};
constexpr Shortenable kShortenable[] = {
    // nomic.ai/blog/posts/nomic-embed-matryoshka: "any embedding dimension between 64 and 768"
    {"nomicembedtextv15", 64},
    // huggingface.co/nomic-ai/nomic-embed-text-v2-moe: from 768 to 256
    {"nomicembedtextv2", 256},
    // huggingface.co/mixedbread-ai/mxbai-embed-large-v1: the only number is 512, in its example
    {"mxbaiembedlargev1", 512},
    // huggingface.co/Qwen/Qwen3-Embedding-0.6B, -4B and -8B: output dimensions from 32
    {"qwen3embedding", 32},
    // developers.googleblog.com/gemma-explained-embeddinggemma-architecture-and-recipe: 512, 256 and 128
    {"embeddinggemma", 128},
    // jina.ai/news/jina-embeddings-v3-a-frontier-multilingual-embedding-model: "down to 32"
    {"jinaembeddingsv3", 32},
    // huggingface.co/Snowflake/snowflake-arctic-embed-m-v1.5: 256 numbers, then 128 bytes by quantization
    {"snowflakearcticembedmv15", 256},
    // huggingface.co/Snowflake/snowflake-arctic-embed-m-v2.0 and -l-v2.0: 256 numbers
    {"snowflakearcticembedmv20", 256},
    {"snowflakearcticembedlv20", 256},
};

// Nothing: its vectors can only be used whole.
std::optional<int64_t> fewest_dimensions(const ServedModel& model) {
  std::string name;
  const Metadata& about = model.file().metadata();
  for (const std::string& part :
       {std::string(about.string("general.name").value_or("")), std::string("/"), model.id()})
    for (char c : part)
      if (std::isalnum(uint8_t(c)) || c == '/') name += char(std::tolower(uint8_t(c)));
  for (const Shortenable& one : kShortenable)
    if (name.find(one.name) != name.npos) return one.least;
  return {};
}

// The first numbers, again of length 1.
std::vector<float> shortened(std::span<const float> e, size_t dimensions) {
  e = e.first(std::min(dimensions, e.size()));
  double squares = 0;
  for (float x : e) squares += double(x) * x;
  const double length = squares > 0 ? std::sqrt(squares) : 1;
  std::vector<float> out;
  for (float x : e) out.push_back(float(x / length));
  return out;
}

}  // namespace

namespace {

struct EmbeddingInput {
  ServedModelPtr model;
  std::vector<std::vector<Token>> texts;
  size_t tokens = 0;  // of all texts
};

// Reads the model, and the texts from the field `name`.
Refused read_input(Call& call, Fields& f, const char* name, EmbeddingInput& to) {
  if (auto no = find_model(call, f, false, to.model)) return no;
  if (auto no = no_embeddings(*to.model)) return no;
  if (auto no = raw_prompts(f, name, *to.model, 2048, to.texts)) return no;
  for (const auto& t : to.texts) {
    if (int64_t(t.size()) > to.model->context()) {
      ApiError e = context_exceeded(t.size(), to.model->context());
      e.param = name;
      return e;
    }
    to.tokens += t.size();
  }
  return {};
}

// llama.cpp's `embd_normalize`: 0: the largest number becomes 32760; p: the p-norm becomes 1.
std::vector<double> normalized(std::span<const float> e, int64_t p) {
  double sum = 0;
  for (const float x : e)
    if (p == 0) sum = std::max(sum, std::abs(double(x)) / 32760);
    else sum += std::pow(std::abs(double(x)), double(p));
  if (p > 0) sum = std::pow(sum, 1 / double(p));
  std::vector<double> out(e.begin(), e.end());
  for (double& x : out) x = sum > 0 ? x / sum : 0;
  return out;
}

}  // namespace

Refused embeddings(Call& call) {
  Fields f(call.body);
  EmbeddingInput input;
  if (auto no = read_input(call, f, "input", input)) return no;
  const bool as_bytes = f.word("encoding_format", {"float", "base64"}) == "base64";
  const auto dimensions = f.whole("dimensions", 1, INT32_MAX);
  f.harmless({"user"});
  if (auto no = f.finish()) return no;
  const auto fewest = fewest_dimensions(*input.model);
  if (dimensions && fewest && *dimensions < *fewest)
    return wrong_field("dimensions", format("'dimensions' must be at least {} for this model", *fewest));

  Json data = Json::array();
  size_t width = 0;
  auto ok = input.model->embed(input.texts, [&](size_t i, std::span<const float> e) -> Status {
    width = e.size();
    std::vector<float> cut;
    if (dimensions && fewest && size_t(*dimensions) < width) e = cut = shortened(e, size_t(*dimensions));
    Json one = {{"object", "embedding"}, {"index", i}, {"embedding", nullptr}};
    if (as_bytes)
      one["embedding"] = base64({reinterpret_cast<const char*>(e.data()), e.size() * sizeof(float)});
    else one["embedding"] = e;
    data.push_back(std::move(one));
    return Done{};
  });
  if (!ok) return of(ok.error());
  if (dimensions && (fewest ? size_t(*dimensions) > width : size_t(*dimensions) != width))
    return wrong_field("dimensions",
                       fewest ? format("'dimensions' must be from {} to {} for this model", *fewest, width)
                              : format("'dimensions' must be {}: gimbal does not know this model as one "
                                       "whose vectors can be shortened",
                                       width));
  call.answer_json({{"object", "list"},
                    {"data", std::move(data)},
                    {"model", input.model->id()},
                    {"usage", {{"prompt_tokens", input.tokens}, {"total_tokens", input.tokens}}}});
  return {};
}

Refused llama_embeddings(Call& call) {
  Fields f(call.body);
  EmbeddingInput input;
  const char* field = call.body.contains("content") ? "content" : "input";
  if (auto no = read_input(call, f, field, input)) return no;
  const int64_t norm = f.whole("embd_normalize", -1, 64).value_or(2);
  if (norm < 0) f.wrong("embd_normalize", "'embd_normalize' must be 0 or more: the vectors have length 1");
  f.word("encoding_format", {"float"});
  f.harmless({"user"});
  if (auto no = f.finish()) return no;

  Json all = Json::array();
  auto ok = input.model->embed(input.texts, [&](size_t i, std::span<const float> e) -> Status {
    Json vector = norm == 2 ? Json(e) : Json(normalized(e, norm));
    all.push_back({{"index", i}, {"embedding", Json::array({std::move(vector)})}});
    return Done{};
  });
  if (!ok) return of(ok.error());
  call.answer_json(all);
  return {};
}

}  // namespace gimbal::api
