#include "hostile/readers.h"

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "discovery/registry.h"
#include "files/gguf.h"
#include "files/npy.h"
#include "files/safetensors.h"
#include "grammar/grammar.h"
#include "grammar/states.h"
#include "runtime/model_plan.h"
#include "template/template.h"
#include "tokenizer/tokenizer.h"

namespace gimbal::test {
namespace {

constexpr size_t kMB = size_t(1) << 20;

Answer refused(const Error& e, bool named) {
  Answer a{false, e.message, {}};
  if (!named || e.message.size() > 2000) a.broken = format("an error without its place: {}", e.message);
  return a;
}

// A copy that ends where its allocation ends, so that AddressSanitizer sees a read behind it.
struct Exact {
  explicit Exact(const std::string& data) : bytes(new std::byte[data.size()]), size(data.size()) {
    std::memcpy(bytes.get(), data.data(), size);
  }
  Bytes view() const { return {bytes.get(), size}; }
  std::unique_ptr<std::byte[]> bytes;
  size_t size;
};

bool counts(const HostileFile& file, const char* name, size_t found) {
  return !file.about.contains(name) || file.about[name].get<size_t>() == found;
}

Answer read_gguf(const HostileFile& file, const std::string& data) {
  const Exact exact(data);
  const auto parsed = parse_gguf(exact.view(), "hostile.gguf");
  if (!parsed) return refused(parsed.error(), parsed.error().message.starts_with("'hostile.gguf' at byte "));
  Answer a{true, {}, {}};
  uint64_t sum = 0;
  for (const StoredTensor& t : parsed->tensors()) {
    if (t.offset > data.size() || t.stored > data.size() - t.offset || t.stored == 0)
      a.broken = format("tensor {} lies outside the file", gimbal::quoted(t.name));
    else sum += uint64_t(exact.bytes[t.offset]) + uint64_t(exact.bytes[t.offset + t.stored - 1]);
  }
  for (const auto& [key, entry] : parsed->metadata())
    if (const auto* array = std::get_if<MetadataArray>(&entry.value)) {
      for (const auto s : array->strings()) sum += s.empty() ? 0 : uint8_t(s.back());
      sum += array->integers().size() + array->floats().size();
    }
  if (!counts(file, "tensors", parsed->tensors().size()) ||
      !counts(file, "entries", parsed->metadata().size()))
    a.broken = format("found {} tensors and {} entries", parsed->tensors().size(), parsed->metadata().size());
  return sum == UINT64_MAX ? Answer{} : a;
}

Answer read_vocabulary(const HostileFile& file, const std::string& data) {
  const Exact exact(data);
  const auto parsed = parse_gguf(exact.view(), "hostile.gguf");
  if (!parsed) return refused(parsed.error(), parsed.error().message.starts_with("'hostile.gguf' at byte "));
  const auto made = Tokenizer::create(parsed->metadata());
  if (!made) return refused(made.error(), made.error().message.find("hostile.gguf") != std::string::npos);
  const Tokenizer& t = **made;
  Answer a{true, {}, {}};
  for (const std::string& text :
       {std::string("ab <0x-1>\n▁a <s></s>"), std::string("\xff\xfe\0\xc3", 4), std::string(3000, 'a')})
    for (const bool special : {false, true}) {
      const auto ids = t.encode(text, {.add_bos = special, .parse_special = special});
      for (const Token id : ids)
        if (id < 0 || id >= t.size()) a.broken = format("id {} of {}", id, t.size());
      (void)t.decode(ids, special);
    }
  if (!counts(file, "tokens", size_t(t.size()))) a.broken = format("found {} tokens", t.size());
  return a;
}

// Planned, not loaded: shapes and memory follow from hyperparameters.
Answer read_model(const HostileFile&, const std::string& data) {
  static const auto cpu = std::move(open_device({"cpu", 0, true, "threads=1"})->device);
  const auto parsed = parse_gguf(std::as_bytes(std::span(data)), "hostile.gguf");
  if (!parsed) return refused(parsed.error(), parsed.error().message.starts_with("'hostile.gguf' at byte "));
  const auto plan = make_model_plan(*parsed, *cpu, {});
  if (!plan) return refused(plan.error(), plan.error().message.find("hostile.gguf") != std::string::npos);
  return {true, {}, {}};
}

Answer read_template(const HostileFile& file, const std::string& data) {
  static const Json variables =
      Json::parse(R"({"messages": [{"role": "user", "content": "hi"}], "bos_token": "<s>", "n": 3})");
  const auto parsed = Template::parse(data);
  if (!parsed) return refused(parsed.error(), parsed.error().message.starts_with("chat template, "));
  RenderOptions options;
  options.limits = {1'000'000, 4 * kMB, 16 * kMB};
  const auto r = parsed->render(variables, options);
  if (!r) return refused(r.error(), r.error().message.starts_with("chat template, line "));
  Answer a{true, {}, {}};
  if (!is_utf8(r->text)) a.broken = "the text is no UTF-8";
  if (file.about.contains("renders") && r->text != file.about["renders"].get<std::string>())
    a.broken = format("rendered {}", gimbal::quoted(r->text));
  return a;
}

bool matches(States& states, const std::string& text) {
  states.allow(2'000'000);
  States::State s = states.start();
  for (const char c : text) s = states.next(s, uint8_t(c));
  return s != States::kDead && states.may_end(s);
}

Answer read_automaton(const HostileFile& file, const Result<Grammar>& grammar, const char* begins) {
  if (!grammar) return refused(grammar.error(), grammar.error().message.starts_with(begins));
  auto automaton = Automaton::create(*grammar);
  if (!automaton) return refused(automaton.error(), automaton.error().message.starts_with("grammar: "));
  States states(*automaton);
  Answer a{true, {}, {}};
  for (const auto& text : file.about.value("matches", nlohmann::ordered_json::array()))
    if (!matches(states, text))
      a.broken = format("does not match {}", gimbal::quoted(text.get<std::string>()));
  for (const auto& text : file.about.value("refuses", nlohmann::ordered_json::array()))
    if (matches(states, text)) a.broken = format("matches {}", gimbal::quoted(text.get<std::string>()));
  // Some way through it: whatever is allowed can be continued or may end.
  states.allow(200'000);
  States::State s = states.start();
  for (int i = 0; i < 64 && s != States::kDead; i++) {
    States::State next = States::kDead;
    for (int b = 0; b < 256 && next == States::kDead; b++) next = states.next(s, uint8_t(b + 97));
    if (states.exceeded()) return a;
    if (next == States::kDead && !states.may_end(s)) a.broken = "a dead end";
    s = next;
  }
  return a;
}

Answer read_grammar(const HostileFile& file, const std::string& data) {
  return read_automaton(file, Grammar::gbnf(data), "grammar, line ");
}

Answer read_schema(const HostileFile& file, const std::string& data) {
  return read_automaton(file, json_schema_grammar(data), "JSON schema");
}

// Lists the tensors, and reads the values of small ones: large ones may be what an archive promises.
Answer read_arrays(const HostileFile& file, const Exact& exact, const Result<ModelSource>& parsed) {
  if (!parsed) return refused(parsed.error(), parsed.error().message.starts_with("'hostile'"));
  Answer a{true, {}, {}};
  for (const StoredTensor& t : parsed->tensors()) {
    if (t.rank > kMaxStoredRank || t.bytes != uint64_t(t.values()) * info(t.type).bytes)
      a.broken = format("tensor {} has {} bytes", gimbal::quoted(t.name), t.bytes);
    if (t.bytes > kMB) continue;
    const auto bytes = parsed->read(t);
    if (!bytes) return refused(bytes.error(), bytes.error().message.starts_with("'hostile'"));
    if (file.kind() != "npz" && !std::equal(bytes->begin(), bytes->end(), exact.bytes.get() + t.offset))
      a.broken = format("tensor {} has other bytes than the file", gimbal::quoted(t.name));
  }
  if (!counts(file, "tensors", parsed->tensors().size()))
    a.broken = format("found {} tensors", parsed->tensors().size());
  return a;
}

Answer read_safetensors(const HostileFile& file, const std::string& data) {
  const Exact exact(data);
  return read_arrays(file, exact, parse_safetensors(exact.view(), "hostile"));
}
Answer read_npy(const HostileFile& file, const std::string& data) {
  const Exact exact(data);
  return read_arrays(file, exact, parse_npy(exact.view(), "hostile"));
}
Answer read_npz(const HostileFile& file, const std::string& data) {
  const Exact exact(data);
  return read_arrays(file, exact, parse_npz(exact.view(), "hostile"));
}

}  // namespace

std::optional<Answer> read_hostile(const HostileFile& file, const std::string& data) {
  static const std::map<std::string, std::function<Answer(const HostileFile&, const std::string&)>> readers =
      {{"gguf", read_gguf},
       {"vocabulary", read_vocabulary},
       {"model", read_model},
       {"template", read_template},
       {"grammar", read_grammar},
       {"schema", read_schema},
       {"safetensors", read_safetensors},
       {"npy", read_npy},
       {"npz", read_npz}};
  const auto reader = readers.find(file.kind());
  if (reader == readers.end()) return std::nullopt;
  return reader->second(file, data);
}

Allowance allowance(const std::string& kind, size_t bytes) {
  if (kind == "gguf") return {16 * bytes + kMB, 64 * bytes + 4 * kMB};
  if (kind == "vocabulary") return {64 * bytes + 16 * kMB, 512 * bytes + 64 * kMB};
  return {64 * kMB + 16 * bytes, size_t(1) << 30};
}

}  // namespace gimbal::test
