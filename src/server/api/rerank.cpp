// POST /v1/rerank: which documents answer a question, the best first.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "chat/task_prompts.h"
#include "runtime/embedding.h"
#include "server/api/call.h"
#include "server/api/text.h"

namespace gimbal::api {
namespace {

constexpr size_t kMostDocuments = 2048;

std::vector<std::string> read_documents(Fields& f) {
  std::vector<std::string> all;
  if (!f.need("documents")) return all;
  const Json* list = f.array("documents");
  if (list && (list->empty() || list->size() > kMostDocuments))
    f.wrong("documents", format("'documents' must have 1 to {} entries", kMostDocuments));
  for (size_t i = 0; list && i < list->size() && f.ok(); i++) {
    const Json& one = (*list)[i];
    if (one.is_string()) {
      all.push_back(one.get<std::string>());
      continue;
    }
    Fields document(one, format("documents[{}]", i));
    document.need("text");
    all.push_back(document.text("text").value_or(""));
    if (auto no = document.finish()) f.wrong_as(*no);
  }
  return all;
}

struct Ranking {
  size_t index;
  double score;
};

// By the model's own judgement of each pair, from 0 to 1: its "yes" against its "no", where it has both.
Status by_reranker(ServedModel& model, std::span<const std::vector<Token>> pairs, std::vector<Ranking>& to) {
  return model.embed(pairs, [&](size_t i, std::span<const float> x) -> Status {
    to.push_back({i, ranked_score(x)});
    return Done{};
  });
}

// By the angle between the embeddings, from -1 to 1; the first text is the question.
Status by_embeddings(ServedModel& model, std::span<const std::vector<Token>> texts,
                     std::vector<Ranking>& to) {
  std::vector<float> query;
  return model.embed(texts, [&](size_t i, std::span<const float> x) -> Status {
    double sum = 0;
    if (i == 0) query.assign(x.begin(), x.end());
    else {
      for (size_t k = 0; k < x.size(); k++) sum += double(query[k]) * double(x[k]);
      to.push_back({i - 1, sum});
    }
    return Done{};
  });
}

bool is_reranker(const ServedModel& model) {
  const auto pooling = pooling_of(model.file().metadata());
  return pooling && *pooling == Pooling::Rank;
}

}  // namespace

Refused no_embeddings(const ServedModel& model) {
  if (!is_reranker(model)) return {};
  return wrong_field("model", format("the model {} ranks documents, and makes no embeddings: ask /v1/rerank",
                                     quoted_briefly(model.id())));
}

Refused rerank(Call& call) {
  Fields f(call.body);
  ServedModelPtr model;
  if (auto no = find_model(call, f, false, model)) return no;
  f.need("query");
  const std::string query = f.text("query").value_or("");
  const std::vector<std::string> documents = read_documents(f);
  const auto most = f.whole("top_n", 1, INT32_MAX);
  const bool whole = f.flag("return_documents").value_or(false);
  f.harmless({"user"});
  if (auto no = f.finish()) return no;

  const bool ranks = is_reranker(*model);
  std::vector<std::vector<Token>> texts;
  if (!ranks) texts.push_back(model->tokenizer().encode(query, {.parse_special = false}));
  for (const std::string& d : documents)
    texts.push_back(ranks ? ranked_pair(model->file().metadata(), model->tokenizer(), query, d)
                          : model->tokenizer().encode(d, {.parse_special = false}));
  size_t tokens = 0;
  for (size_t i = 0; i < texts.size(); i++) {
    const bool is_query = !ranks && i == 0;
    const char* field = is_query ? "query" : "documents";
    if (texts[i].empty()) return wrong_field(field, format("'{}' has a text without tokens", field));
    if (int64_t(texts[i].size()) > model->context()) {
      ApiError e = context_exceeded(texts[i].size(), model->context());
      e.param = field;
      return e;
    }
    tokens += texts[i].size();
  }
  std::vector<Ranking> all;
  if (auto ok = ranks ? by_reranker(*model, texts, all) : by_embeddings(*model, texts, all); !ok)
    return of(ok.error());
  std::stable_sort(all.begin(), all.end(),
                   [](const Ranking& a, const Ranking& b) { return a.score > b.score; });
  if (most && size_t(*most) < all.size()) all.resize(size_t(*most));
  Json results = Json::array();
  for (const Ranking& r : all) {
    Json one = {{"index", r.index}, {"relevance_score", r.score}};
    if (whole) one["document"] = {{"text", documents[r.index]}};
    results.push_back(std::move(one));
  }
  call.answer_json({{"id", new_id("rerank-")},
                    {"object", "list"},
                    {"model", model->id()},
                    {"method", ranks ? "reranker" : "cosine-similarity"},
                    {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}},
                    {"results", std::move(results)}});
  return {};
}

}  // namespace gimbal::api
