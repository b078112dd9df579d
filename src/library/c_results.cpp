// The results of the C interface as JSON: each struct with its members' names.
#include "library/c_handles.h"

namespace gimbal::v1::c {
namespace {

using c::json_of;

Json json_of(const Error& e) {
  Json changes = Json::array();
  for (const Change& c : e.changes)
    changes.push_back({{"field", c.field}, {"value", c.value}, {"effect", c.effect}});
  return {{"code", int(e.code) + 1}, {"message", e.message}, {"remedy", e.remedy}, {"reason", e.reason},
          {"field", e.field},        {"value", e.value},     {"limit", e.limit},   {"changes", changes}};
}

Json json_of(const Placement& p) {
  return {{"device", p.device},     {"first_layer", p.first_layer},
          {"layers", p.layers},     {"embedding", p.embedding},
          {"head", p.head},         {"why", p.why},
          {"moved_in", p.moved_in}, {"moved_out", p.moved_out}};
}

Json json_of(const Fallback& f) {
  return {{"what", f.what}, {"instead", f.instead}, {"why", json_of(f.why)}};
}

Json json_of(const PlannedMemory& m) {
  return {
      {"device", m.device}, {"weights", m.weights}, {"cache", m.cache},     {"activations", m.activations},
      {"step", m.step},     {"output", m.output},   {"scratch", m.scratch}, {"sessions", m.sessions},
      {"total", m.total},   {"free", m.free}};
}

Json json_of(const ReceiptLine& l) {
  return {{"op", l.op},   {"format", l.format}, {"device", l.device}, {"kernel", l.kernel},
          {"why", l.why}, {"ops", l.ops},       {"runs", l.runs},     {"not_counted", l.not_counted}};
}

Json json_of(const Device& d) {
  return {{"id", d.id},
          {"backend", d.backend},
          {"name", d.name},
          {"driver", d.driver},
          {"memory_total", d.memory_total},
          {"memory_free", d.memory_free},
          {"compute_capability", d.compute_capability},
          {"unified_memory", d.unified_memory},
          {"software", d.software}};
}

template <class T>
Json array_of(const std::vector<T>& all) {
  Json array = Json::array();
  for (const T& item : all) array.push_back(json_of(item));
  return array;
}

Json numbers(const std::vector<TokenProbability>& top) {
  Json array = Json::array();
  for (const TokenProbability& p : top) array.push_back({{"token", p.token}, {"logprob", p.logprob}});
  return array;
}

}  // namespace

// Names of files and devices may hold bytes that are no UTF-8.
std::string written(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json json_of(const ToolCall& c) {
  Json j = {{"name", c.name}, {"arguments", c.arguments}};
  if (!c.id.empty()) j["id"] = c.id;
  return j;
}

Json json_of(const Message& m) {
  Json j = {{"role", m.role}, {"content", m.content}};
  if (!m.reasoning.empty()) j["reasoning"] = m.reasoning;
  if (!m.tool_call_id.empty()) j["tool_call_id"] = m.tool_call_id;
  if (!m.tool_calls.empty()) j["tool_calls"] = array_of(m.tool_calls);
  return j;
}

Json json_of(const Generated& g) {
  constexpr const char* kFinishes[] = {"stop_token", "stop_string", "length", "context_full", "cancelled"};
  const auto places = [](const std::vector<std::vector<TokenProbability>>& all) {
    Json array = Json::array();
    for (const auto& place : all) array.push_back(numbers(place));
    return array;
  };
  Json j = {{"text", g.text},
            {"tokens", g.tokens},
            {"logprobs", g.logprobs},
            {"top", places(g.top)},
            {"prompt_logprobs", g.prompt_logprobs},
            {"prompt_top", places(g.prompt_top)},
            {"finish", kFinishes[int(g.finish)]},
            {"prompt_tokens", g.prompt_tokens},
            {"stored_tokens", g.stored_tokens},
            {"prompt_seconds", g.prompt_seconds},
            {"generate_seconds", g.generate_seconds},
            {"drafted", g.drafted},
            {"accepted", g.accepted}};
  if (g.certificate) j["certificate"] = parse_json(g.certificate->text());
  return j;
}

Json json_of(const std::vector<Backend>& all) {
  Json array = Json::array();
  for (const Backend& b : all)
    array.push_back({{"name", b.name},
                     {"available", b.available},
                     {"why_not", b.available ? Json() : json_of(b.why_not)},
                     {"devices", array_of(b.devices)}});
  return array;
}

Json json_of(const std::vector<LocalModel>& all) {
  Json array = Json::array();
  for (const LocalModel& m : all)
    array.push_back({{"name", m.name}, {"source", m.source}, {"path", m.path}, {"bytes", m.bytes}});
  return array;
}

Json json_of(const ModelPlan& p) {
  return {{"name", p.name},
          {"architecture", p.architecture},
          {"file_bytes", p.file_bytes},
          {"layers", p.layers},
          {"vocabulary", p.vocabulary},
          {"context", p.context},
          {"trained_context", p.trained_context},
          {"batch", p.batch},
          {"sequences", p.sequences},
          {"cache_type", p.cache_type},
          {"cache_rotated", p.cache_rotated},
          {"cache_rotation_reason", p.cache_rotation_reason},
          {"placement", array_of(p.placement)},
          {"fallbacks", array_of(p.fallbacks)},
          {"memory", array_of(p.memory)},
          {"draft_model", p.draft_model},
          {"draft_memory", array_of(p.draft_memory)},
          {"image_memory", array_of(p.image_memory)},
          {"fits", p.fits},
          {"misfit", p.fits ? Json() : json_of(p.misfit)}};
}

Json json_of(const Explanation& e) {
  Json programs = Json::array(), choices = Json::array();
  for (const ExplainedProgram& p : e.programs) {
    Json ops = Json::array();
    for (const ExplainedOp& op : p.ops)
      ops.push_back({{"name", op.name}, {"output", op.output}, {"choice", op.choice}});
    programs.push_back({{"purpose", p.purpose}, {"rows", p.rows}, {"ops", std::move(ops)}});
  }
  for (const KernelChoice& c : e.choices) {
    Json rejected = Json::array();
    for (const RejectedKernels& r : c.rejected) rejected.push_back({{"why", r.why}, {"kernels", r.kernels}});
    choices.push_back({{"op", c.op},
                       {"format", c.format},
                       {"device", c.device},
                       {"kernel", c.kernel},
                       {"why", c.why},
                       {"rejected", std::move(rejected)}});
  }
  return {{"plan", json_of(e.plan)},
          {"weight_bytes_per_token", e.weight_bytes_per_token},
          {"programs", std::move(programs)},
          {"choices", std::move(choices)}};
}

Json json_of(const Model& m) {
  return {{"name", m.name()},
          {"context", m.context()},
          {"vocabulary", m.vocabulary()},
          {"placement", array_of(m.placement())},
          {"fallbacks", array_of(m.fallbacks())},
          {"receipt", array_of(m.receipt())}};
}

std::string json_text(const ToolCall& c) { return written(json_of(c)); }
std::string json_text(const Generated& g, const Message* message) {
  Json json = json_of(g);
  if (message) json["text"] = message->content, json["message"] = json_of(*message);
  return written(json);
}
std::string json_text(const std::vector<Backend>& all) { return written(json_of(all)); }
std::string json_text(const std::vector<LocalModel>& all) { return written(json_of(all)); }
std::string json_text(const std::vector<ReceiptLine>& all) { return written(array_of(all)); }
std::string json_text(const ModelPlan& p) { return written(json_of(p)); }
std::string json_text(const Explanation& e) { return written(json_of(e)); }
std::string json_text(const Model& m) { return written(json_of(m)); }
std::string json_text(const PrefixStoreNumbers& n) {
  return written({{"hits", n.hits},
                  {"misses", n.misses},
                  {"tokens", n.tokens},
                  {"pages_read", n.pages_read},
                  {"pages_written", n.pages_written},
                  {"pages_damaged", n.pages_damaged},
                  {"pages_dropped", n.pages_dropped},
                  {"pages_evicted", n.pages_evicted},
                  {"bytes", n.bytes},
                  {"saved_seconds", n.saved_seconds},
                  {"errors", n.errors}});
}

}  // namespace gimbal::v1::c
