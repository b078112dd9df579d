#include "runtime/model_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "runtime/sampler.h"

namespace gimbal {
namespace {

constexpr int kPrompt = 24;      // tokens of check_splits: more than most kernels compute at once,
constexpr int kOneByOne = 8;     // and how many of them are then computed alone
constexpr int kFirstTokens = 8;  // of check_first_layers

// Any tokens will do, as long as they differ.
std::vector<int32_t> some_tokens(int vocabulary, int count) {
  std::vector<int32_t> all;
  for (int64_t i = 0; i < count; i++) all.push_back(int32_t((17 + i * 7919) % vocabulary));
  return all;
}

// The logits after `tokens`, which the session gets in pieces of these sizes; the hidden state of a model
// that has none.
Result<std::vector<float>> last_output(Model& model, std::span<const int32_t> tokens,
                                       const std::vector<int>& pieces) {
  auto session = Session::create(model);
  if (!session) return session.error();
  std::vector<float> last;
  const Output output = model.plan().width(Output::Logits) ? Output::Logits : Output::Hidden;
  size_t at = 0;
  for (int piece : pieces) {
    const bool end = at + size_t(piece) == tokens.size();
    auto ok = (*session)->advance(
        tokens.subspan(at, size_t(piece)), end ? Session::Wanted::Last : Session::Wanted::None,
        [&](size_t, std::span<const float> l) { last.assign(l.begin(), l.end()); }, output);
    if (!ok) return ok.error();
    at += size_t(piece);
  }
  return last;
}

// Adds the comparison of `got` with the expected `want` to the findings.
void compare(const std::vector<float>& want, const std::vector<float>& got, double allowed, const char* what,
             ModelCheck& found) {
  double squares = 0, most = 0;
  size_t at = 0;
  bool finite = want.size() == got.size() && !want.empty();
  for (size_t i = 0; finite && i < want.size(); i++) {
    squares += double(want[i]) * want[i];
    const double difference = std::fabs(double(want[i]) - got[i]);
    finite = std::isfinite(difference);
    if (difference > most || !finite) most = difference, at = i;
  }
  const double scale = std::sqrt(squares / double(std::max<size_t>(1, want.size())));
  const double relative = !finite ? INFINITY : most == 0 ? 0 : most / std::max(scale, 1e-30);
  const bool same_bits = finite && std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) == 0;
  found.worst = std::max(found.worst, relative);
  found.equal = found.equal && same_bits;
  if (!found.wrong.empty() || relative < allowed || same_bits) return;
  found.wrong =
      format("{}: logit {} is {:.9g} instead of {:.9g}, {:.2g} of the root mean square ({:.2g} allowed)",
             what, at, at < got.size() ? got[at] : NAN, at < want.size() ? want[at] : NAN, relative, allowed);
}

bool all_exact(const ModelPlan& b) {
  for (const Stage& stage : b.stages)
    for (const Bucket& bucket : stage.buckets)
      for (const Choice& c : bucket.choices)
        if (stage.device->kernel(c.kernel).numerics != GIMBAL_EXACT) return false;
  return true;
}

}  // namespace

Result<ModelCheck> check_splits(Model& model) {
  ModelCheck found;
  const bool whole_texts = model.plan().whole_texts;
  const int n = found.tokens = std::min(kPrompt, whole_texts ? model.plan().options.batch : model.context());
  const int alone = std::min(kOneByOne, n - 1);
  const std::vector<int32_t> tokens = some_tokens(model.config().vocabulary, n);
  auto whole = last_output(model, tokens, {n});
  if (!whole) return whole.error();
  if (auto ok = check_logits(*whole); !ok) return ok.error();
  if (n == 1 || whole_texts) return found;  // cannot be cut
  const double allowed = all_exact(model.plan()) ? 0 : kFastAgreement;
  std::vector<int> decoded(size_t(alone), 1);
  decoded.insert(decoded.begin(), n - alone);
  const int first = n / 2 + n / 16;
  for (const auto& [pieces, what] :
       {std::pair(std::vector<int>{first, n - first}, "a prompt in two batches differs from one batch"),
        std::pair(decoded, "tokens one by one differ from one batch")}) {
    auto cut = last_output(model, tokens, pieces);
    if (!cut) return cut.error();
    compare(*whole, *cut, allowed, what, found);
  }
  return found;
}

Result<ModelCheck> check_first_layers(const ModelSource& file, const Device& device, const Device& cpu,
                                      const RunOptions& options, int layers) {
  RunOptions few = options;
  few.first_layers = layers, few.state_layers.clear();
  few.context = few.batch = kFirstTokens;
  few.sequences = few.logit_rows = 1;
  ModelCheck found;
  found.tokens = kFirstTokens;
  std::vector<float> logits[2];
  for (auto [where, out] : {std::pair(&cpu, &logits[0]), std::pair(&device, &logits[1])}) {
    RunOptions o = few;
    if (where == &cpu) o.kernels = {}, o.tensor_rules.clear();  // these apply to the device only
    auto plan = make_model_plan(file, *where, o);
    if (!plan) return plan.error();
    auto model = Model::load(std::move(*plan), file);
    if (!model) return model.error();
    const auto tokens = some_tokens((*model)->config().vocabulary, kFirstTokens);
    auto last = last_output(**model, tokens, {kFirstTokens});
    if (!last) return last.error();
    // NaN on the CPU comes from the weights; NaN on the device alone is the device's fault.
    if (where == &cpu)
      if (auto ok = check_logits(*last); !ok) return ok.error();
    *out = std::move(*last);
  }
  compare(logits[0], logits[1], kDeviceAgreement,
          format("the first {} layers differ from those on {}", layers, cpu.id()).c_str(), found);
  return found;
}

}  // namespace gimbal
