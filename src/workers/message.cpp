#include "workers/message.h"

#include "base/text.h"
#include "engine/report_fields.h"
#include "runtime/row_range.h"
#include "runtime/text_fields.h"

// ---- the fields of the parts of messages

namespace gimbal {

constexpr Finish last_value(Finish) { return Finish::Cancelled; }

template <class IO, FieldsOf<TokenProbability> S>
void row(IO& io, S& p) {
  io(p.token, p.logprob);
}

// The values and not the digest: the reader computes its own.
template <class IO, FieldsOf<EmbeddingSpan> S>
void row(IO& io, S& s) {
  if constexpr (std::is_const_v<S>) {
    const auto values = s.of->values();
    io(s.position, s.first, s.rows, s.of->width(), s.of->columns(),
       std::vector<float>(values.begin(), values.end()));
  } else {
    int width = 0, columns = 0;
    std::vector<float> values;
    io(s.position, s.first, s.rows, width, columns, values);
    auto made = io.right ? Embeddings::create(std::move(values), width, columns) : Error{};
    io.right = made && is_row_range(s.position, s.first, s.rows, (*made)->rows());
    if (io.right) s.of = std::move(*made);
  }
}

template <class IO, FieldsOf<Durations> S>
void fields(IO& io, S& d) {
  io("counts", d.counts), io("sum", d.sum);
}

}  // namespace gimbal

namespace gimbal::wire {

template <class IO, FieldsOf<MemoryNeed> S>
void row(IO& io, S& n) {
  io(n.device, n.total, n.weights, n.shared, n.free);
}

namespace {

// ---- the fields of each message

template <class IO, FieldsOf<Submit> S>
void fields(IO& io, S& m) {
  auto& r = m.request;
  io("id", m.id), io("prompt", r.prompt), io("embeddings", r.embeddings), io("written", r.written);
  io("adapters", r.adapters);
  if constexpr (std::is_const_v<S>) {
    std::vector<std::string> files;
    for (const auto& file : r.pictures) files.push_back(base64(*file));
    io("pictures", files);
  } else {
    std::vector<std::string> files;
    io("pictures", files);
    // Invalid base64 becomes an empty picture, which is refused.
    for (const std::string& file : files)
      r.pictures.push_back(std::make_shared<const std::string>(base64_decoded(file).value_or("")));
  }
  io("memory", r.memory), io("logprobs", r.logprobs), io("certify", r.certify);
  io("scores_prompt", r.scores_prompt), io("scored", r.scored);
  io("grammar", r.grammar), io("client", r.client), io("owner", r.owner);
  text_fields(io, r);
}

template <class IO, FieldsOf<NextToken> S>
void fields(IO& io, S& m) {
  io("id", m.id), io("index", m.told.index), io("token", m.told.token), io("text", m.told.text);
  io("memory", m.told.memory), io("logprob", m.told.logprob), io("top", m.told.top);
  io("row", m.told.row);
}

template <class IO, FieldsOf<Scored> S>
void fields(IO& io, S& m) {
  io("id", m.id), io("index", m.told.index), io("token", m.told.token);
  io("logprob", m.told.logprob), io("top", m.told.top);
}

template <class IO, FieldsOf<Ended> S>
void fields(IO& io, S& m) {
  auto& e = m.end;
  io("id", m.id), io("finish", e.finish), io("text", e.text), io("stop", e.stop);
  io("prompt_tokens", e.prompt_tokens), io("shared_tokens", e.shared_tokens), io("tokens", e.tokens);
  io("stored_tokens", e.stored_tokens), io("stored_page", e.stored_page);
  io("drafted", e.drafted), io("accepted", e.accepted), io("row", e.row);
}

template <class IO, FieldsOf<Hello> S>
void fields(IO& io, S& m) {
  io("context", m.context), io("pid", m.pid), io("generates", m.generates), io("devices", m.devices);
  io("kernels", m.kernels), io("explanation", m.explanation);
}

template <class IO, FieldsOf<Planned> S>
void fields(IO& io, S& m) {
  io("needs", m.needs);
}

template <class IO, FieldsOf<Pong> S>
void fields(IO& io, S& m) {
  auto& n = m.numbers;
  io("n", m.n), io("running", n.running), io("waiting", n.waiting), io("requests", n.requests);
  io("tokens_generated", n.tokens_generated), io("prompt_tokens", n.prompt_tokens);
  io("shared_tokens", n.shared_tokens), io("steps", n.steps), io("rows", n.rows);
  io("preemptions", n.preemptions), io("devices_lost", n.devices_lost), io("pages", n.pages);
  io("pages_running", n.pages_running), io("pages_kept", n.pages_kept), io("pages_shared", n.pages_shared);
  io("first_token", n.first_token), io("between_tokens", n.between_tokens);
}

template <class IO, FieldsOf<Embed> S>
void fields(IO& io, S& m) {
  io("id", m.id), io("texts", m.texts);
}

template <class IO, FieldsOf<Save> S>
void fields(IO& io, S& m) {
  io("id", m.id), io("text", m.text), io("writes", m.writes);
}

template <class IO, FieldsOf<Erase> S>
void fields(IO& io, S& m) {
  io("id", m.id), io("text", m.text);
}

template <class IO, FieldsOf<State> S>
void fields(IO& io, S& m) {
  io("id", m.id), io("tokens", m.tokens), io("text", m.text);
}

template <class IO, FieldsOf<Embedding> S>
void fields(IO& io, S& m) {
  io("id", m.id), io("text", m.text), io("values", m.values);
}

// ----

std::string line_of(const char* name, Json value) {
  Json line = Json::object();
  line[name] = std::move(value);
  return dump(line);
}

template <class M>
std::string line_of_fields(const char* name, const M& message) {
  JsonWriter io;
  fields(io, message);
  if constexpr (std::is_same_v<M, Hello>) io("protocol", kProtocol);
  return line_of(name, std::move(io.to));
}

Error malformed(const std::string& problem) {
  return {Code::Malformed, format("a message between the server and its worker: {}", problem)};
}

// The name and value of the one member of a line.
Result<std::pair<std::string, Json>> member_of(std::string_view line) {
  if (line.size() > kMaxLine) return malformed(format("{} bytes, more than {}", line.size(), kMaxLine));
  Json j = parse_json(line);
  if (!j.is_object() || j.size() != 1) return malformed("not an object with one member");
  return std::pair(j.begin().key(), std::move(j.begin().value()));
}

template <class Message, class M>
Result<Message> read_fields(const std::string& name, const Json& value) {
  M message{};
  JsonReader io(value, name);
  fields(io, message);
  if (!io.problem().empty()) return malformed(io.problem());
  return Message(std::move(message));
}

Json json_of(const Error& e) {
  JsonWriter io;
  io("code", int(e.code)), io("message", e.message), io("remedy", e.remedy),
      io("reason", std::string(e.reason));
  io("field", std::string(e.field)), io("value", e.value), io("limit", e.limit);
  return std::move(io.to);
}

// Error::reason and Error::field are literals: of those from another process, the literals that a front
// acts upon are restored.
const char* literal(const std::string& word) {
  for (const char* known : {reason::kOutOfRange, reason::kContextFull, reason::kQueueFull, "prompt",
                            "grammar", "logit_bias", "context", "max_tokens"})
    if (word == known) return known;
  return "";
}

bool has_protocol(const Json& value) {
  return value.is_object() && value.contains("protocol") && value["protocol"] == kProtocol;
}

Error other_version(const char* side) {
  return malformed(
      format("the {} does not speak protocol {}: it is of another version of gimbal", side, kProtocol));
}

bool is_whole(const Explanation& e) {
  for (const Explanation::Program& p : e.programs)
    for (const Explanation::Op& op : p.ops)
      if (op.choice >= e.choices.size()) return false;
  return true;
}

Result<FromWorker> read_failed(const Json& value) {
  Failed out{};
  int code = 0;
  std::string reason, field;
  JsonReader io(value, "failed");
  io("id", out.id), io("code", code), io("message", out.why.message), io("remedy", out.why.remedy);
  io("reason", reason), io("field", field), io("value", out.why.value), io("limit", out.why.limit);
  if (!io.problem().empty()) return malformed(io.problem());
  if (code < 0 || code > int(Code::DeviceLost)) return malformed(format("failed: there is no code {}", code));
  out.why.code = Code(code), out.why.reason = literal(reason), out.why.field = literal(field);
  return FromWorker(std::move(out));
}

}  // namespace

std::string encode(const ToWorker& message) {
  if (const auto* m = std::get_if<Load>(&message)) {
    Json j = json_of(*m);
    j["protocol"] = kProtocol;
    return line_of("load", std::move(j));
  }
  if (const auto* m = std::get_if<Submit>(&message)) return line_of_fields("submit", *m);
  if (const auto* m = std::get_if<Embed>(&message)) return line_of_fields("embed", *m);
  if (const auto* m = std::get_if<Cancel>(&message)) return line_of("cancel", m->id);
  if (std::holds_alternative<Go>(message)) return line_of("go", true);
  if (const auto* m = std::get_if<Save>(&message)) return line_of_fields("save", *m);
  if (const auto* m = std::get_if<Restore>(&message)) return line_of("restore", m->id);
  if (const auto* m = std::get_if<Erase>(&message)) return line_of_fields("erase", *m);
  return line_of("ping", std::get<Ping>(message).n);
}

std::string encode(const FromWorker& message) {
  if (const auto* m = std::get_if<NextToken>(&message)) return line_of_fields("token", *m);
  if (const auto* m = std::get_if<Scored>(&message)) return line_of_fields("scored", *m);
  if (const auto* m = std::get_if<Ended>(&message)) return line_of_fields("end", *m);
  if (const auto* m = std::get_if<Embedding>(&message)) return line_of_fields("embedding", *m);
  if (const auto* m = std::get_if<Pong>(&message)) return line_of_fields("pong", *m);
  if (const auto* m = std::get_if<Hello>(&message)) return line_of_fields("hello", *m);
  if (const auto* m = std::get_if<Planned>(&message)) return line_of_fields("planned", *m);
  if (const auto* m = std::get_if<Loading>(&message)) return line_of("loading", Json{m->done, m->total});
  if (const auto* m = std::get_if<Begun>(&message)) return line_of("begun", m->id);
  if (const auto* m = std::get_if<State>(&message)) return line_of_fields("state", *m);
  const Failed& m = std::get<Failed>(message);
  Json j = json_of(m.why);
  j["id"] = m.id;
  return line_of("failed", std::move(j));
}

Result<ToWorker> decode_to_worker(std::string_view line) {
  auto member = member_of(line);
  if (!member) return member.error();
  const auto& [name, value] = *member;
  if (name == "load") {
    if (!has_protocol(value)) return other_version("server");
    auto load = read_load(value);
    return load ? Result<ToWorker>(std::move(*load)) : load.error();
  }
  if (name == "submit") return read_fields<ToWorker, Submit>(name, value);
  if (name == "embed") return read_fields<ToWorker, Embed>(name, value);
  if (name == "go" && value == true) return ToWorker(Go{});
  if (name == "save") return read_fields<ToWorker, Save>(name, value);
  if (name == "erase") return read_fields<ToWorker, Erase>(name, value);
  if (name != "cancel" && name != "ping" && name != "restore")
    return malformed(format("there is no {}", gimbal::quoted(name)));
  if (!value.is_number_unsigned()) return malformed(format("{} has no number", name));
  if (name == "cancel") return ToWorker(Cancel{value.get<uint64_t>()});
  if (name == "restore") return ToWorker(Restore{value.get<uint64_t>()});
  return ToWorker(Ping{value.get<uint64_t>()});
}

Result<FromWorker> decode_from_worker(std::string_view line) {
  auto member = member_of(line);
  if (!member) return member.error();
  const auto& [name, value] = *member;
  if (name == "token") return read_fields<FromWorker, NextToken>(name, value);
  if (name == "scored") return read_fields<FromWorker, Scored>(name, value);
  if (name == "end") return read_fields<FromWorker, Ended>(name, value);
  if (name == "embedding") return read_fields<FromWorker, Embedding>(name, value);
  if (name == "planned") return read_fields<FromWorker, Planned>(name, value);
  if (name == "pong") return read_fields<FromWorker, Pong>(name, value);
  if (name == "failed") return read_failed(value);
  if (name == "state") return read_fields<FromWorker, State>(name, value);
  if (name == "begun") {
    if (!value.is_number_unsigned()) return malformed("begun has no number");
    return FromWorker(Begun{value.get<uint64_t>()});
  }
  if (name == "hello") {
    if (!has_protocol(value)) return other_version("worker");
    auto hello = read_fields<FromWorker, Hello>(name, value);
    if (hello && !is_whole(std::get<Hello>(*hello).explanation))
      return malformed("hello: an op of the explanation names a choice that does not exist");
    return hello;
  }
  if (name != "loading") return malformed(format("there is no {}", gimbal::quoted(name)));
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
      !value[1].is_number_unsigned())
    return malformed("loading must have two numbers");
  return FromWorker(Loading{value[0].get<uint64_t>(), value[1].get<uint64_t>()});
}

}  // namespace gimbal::wire
