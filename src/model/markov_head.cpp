#include "model/markov_head.h"

#include "base/format.h"
#include "tensor/quant.h"

namespace gimbal {
namespace {

constexpr const char *kOfToken = "markov_w1.weight", *kOfLogits = "markov_w2.weight",
                     *kScale = "markov_w2.scale";

Error markov_error(const ModelSource& file, const std::string& what) {
  return {Code::Malformed, format("{}: {}", file.path(), what), ""};
}

}  // namespace

Result<std::shared_ptr<const MarkovHead>> MarkovHead::open(const ModelSource& file, int64_t logits) {
  const StoredTensor *first = file.tensors().find(kOfToken), *second = file.tensors().find(kOfLogits);
  if (!first && !second) return std::shared_ptr<const MarkovHead>();
  for (const auto& [t, name] : {std::pair(first, kOfToken), {second, kOfLogits}}) {
    if (!t)
      return markov_error(file,
                          format("tensor '{}' is missing, and the other half of the head is there", name));
    const int64_t rows = t == second ? logits : t->dim[1];
    if (t->rank > 2 || t->dim[0] != first->dim[0] || t->dim[1] != rows)
      return markov_error(file, format("tensor '{}' is {} x {}; {} x {} is expected", name, t->dim[0],
                                       t->dim[1], first->dim[0], rows));
    if (!can_decode(t->type) || tensor_tail_bytes(t->type) || t->dim[0] % info(t->type).block)
      return markov_error(
          file, format("tensor '{}' is {}, whose rows cannot be read one by one", name, stored_name(*t)));
  }
  std::shared_ptr<MarkovHead> made(new MarkovHead(file));
  if (const StoredTensor* t = file.tensors().find(kScale)) {
    auto bytes = file.read(*t);
    if (!bytes) return bytes.error();
    if (t->rank != 1 || t->dim[0] != 1 || !can_decode(t->type))
      return markov_error(file, format("tensor '{}' is not one number", kScale));
    decode_tensor(t->type, bytes->data(), 1, &made->scale_);
  }
  return std::shared_ptr<const MarkovHead>(std::move(made));
}

Status MarkovHead::row(const StoredTensor& t, int64_t index, std::vector<float>& to) const {
  const auto bytes = size_t(row_bytes(t.type, t.dim[0]));
  std::vector<std::byte> stored(bytes);
  if (auto ok = file_.read(t, uint64_t(index) * bytes, stored.data(), bytes); !ok) return ok;
  to.resize(size_t(t.dim[0]));
  decode_tensor(t.type, stored.data(), t.dim[0], to.data());
  return Done{};
}

Status MarkovHead::add(int32_t token, std::span<const int32_t> logits, std::span<float> values) const {
  const StoredTensor &first = *file_.tensors().find(kOfToken), &second = *file_.tensors().find(kOfLogits);
  std::vector<float> of_token, of_logit;
  if (token < 0 || token >= first.dim[1]) return Done{};
  if (auto ok = row(first, token, of_token); !ok) return ok;
  for (size_t i = 0; i < logits.size(); i++) {
    if (auto ok = row(second, logits[i], of_logit); !ok) return ok;
    double sum = 0;
    for (size_t k = 0; k < of_token.size(); k++) sum += double(of_token[k]) * double(of_logit[k]);
    values[i] += float(sum * double(scale_));
  }
  return Done{};
}

}  // namespace gimbal
