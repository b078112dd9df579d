#include "engine/explanation.h"

#include "engine/report_fields.h"

namespace gimbal {
namespace {

Json nullable(const std::string& text) { return text.empty() ? Json() : Json(text); }

// Adds "devices" and "host".
void add_memory(Json& to, const MemoryReport& m) {
  to["devices"] = JsonWriter::json(m.devices);
  to["host"] = JsonWriter::json(m.host);
}

}  // namespace

Json report_json(const Explanation& e) { return JsonWriter::json(e); }
Json report_json(const RotationChoice& r) { return JsonWriter::json(r); }
Json report_json(const MemoryPlan& m) { return JsonWriter::json(m); }
Json kernels_json(const std::vector<ReceiptLine>& lines) { return JsonWriter::json(lines); }

Json report_json(const std::vector<PlacedLayers>& placement) {
  Json all = Json::array();
  for (const PlacedLayers& p : placement)
    all.push_back({{"device", p.device},
                   {"layers", p.layers ? Json{p.first_layer, p.first_layer + p.layers - 1} : Json()},
                   {"embedding", p.embedding},
                   {"head", p.head},
                   {"moved_in", p.moved_in},
                   {"moved_out", p.moved_out},
                   {"packed", nullable(p.packed)},
                   {"reason", p.reason}});
  return all;
}

Json report_json(const std::vector<KernelCount>& counts) {
  Json all = Json::array();
  for (const KernelCount& k : counts) all.push_back({{"op", k.op}, {"kernel", k.kernel}, {"ops", k.ops}});
  return all;
}

Json report_json(const std::vector<ExplainedOp>& ops) {
  Json all = Json::array();
  for (const ExplainedOp& op : ops) {
    Json rejected = Json::array();
    for (const auto& [kernel, why] : op.rejected) rejected.push_back({{"kernel", kernel}, {"why", why}});
    all.push_back({{"op", op.op},
                   {"name", op.name},
                   {"inputs", op.inputs},
                   {"output", op.output},
                   {"device", op.device},
                   {"kernel", op.kernel},
                   {"why", op.why},
                   {"moved_by", nullable(op.moved)},
                   {"rejected", std::move(rejected)}});
  }
  return all;
}

Json report_json(const PlanReport& r) {
  Json j{{"model", r.model},     {"architecture", r.architecture},           {"file_bytes", r.file_bytes},
         {"context", r.context}, {"trained_context", r.trained_context},     {"batch", r.batch},
         {"kv_type", r.kv_type}, {"kv_rotation", report_json(r.kv_rotation)}};
  add_memory(j, r.memory);
  j["host_per_session"] = r.host_per_session;
  j["draft"] = nullptr;
  if (!r.draft_model.empty()) {
    j["draft"] = {{"model", r.draft_model}};
    add_memory(j["draft"], r.draft_memory);
  }
  j["placement"] = report_json(r.placement);
  j["fallbacks"] = r.fallbacks;
  j["fits"] = r.fits;
  j["remedy"] = r.fits ? Json() : Json(r.remedy);
  return j;
}

Json receipt_json(const std::vector<ReceiptLine>& lines) {
  Json all = Json::array();
  for (const ReceiptLine& l : lines)
    all.push_back({{"op", l.op},
                   {"format", l.format},
                   {"device", l.device},
                   {"kernel", l.kernel},
                   {"why", l.why},
                   {"ops", l.ops},
                   {"runs", l.not_counted.empty() ? Json(l.runs) : Json()}});
  return all;
}

}  // namespace gimbal
