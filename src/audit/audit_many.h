// Audits certificates of any models: checks signatures, opens the models, and loads each once for all
// certificates with its settings. For the command line and the public library.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "engine/engine.h"

namespace gimbal {

// One certificate, with the outcome of its audit.
struct Audited {
  std::string name = {};  // for people
  std::optional<Certificate> certificate = {};
  std::optional<Result<AuditResult>> result = {};  // nothing: not checked yet
  enum class Signature : uint8_t { None, Valid, Invalid, Unchecked } signature = Signature::None;
  // Of all that were checked together with it: with opening and loading the model; computing alone.
  double seconds = 0, compute_seconds = 0;
};
const char* name_of(Audited::Signature);  // "none", "valid", "invalid", "unchecked"

struct AuditPlan {
  // Opens a model by its name, with these options in place of others. Errors: those of open_model_file().
  std::function<Result<ModelFile>(const std::string& name, const ModelFileOptions&)> open;
  ModelFileOptions file = {};              // adapters, and the layout of ternary weights
  std::optional<std::string> model = {};   // in place of the ones that the certificates name
  std::vector<Token> prompt = {};          // of certificates without one
  std::optional<std::string> signer = {};  // accept only certificates that this Ed25519 key (hex) signed
  EngineOptions engine = {};               // devices; the certificates decide the rest
  AuditOptions how = {};
  // Called with each loaded model after its certificates are checked; the cache then has room for a whole
  // context. No call for certificates that need no model, or whose model cannot be loaded.
  std::function<void(Engine&, const LoadedModelPtr&, const Tokenizer&)> then = {};
};

class AuditMany {
 public:
  // `registry` outlives it.
  AuditMany(Registry& registry, AuditPlan plan, EventSink events = {})
      : registry_(registry), plan_(std::move(plan)), events_(std::move(events)) {}

  // Gives each certificate without a result its result.
  void run(std::vector<Audited>&);

 private:
  std::optional<Result<AuditResult>> before_the_model(Audited&);
  std::optional<AuditResult> check_signature(Audited&);
  const std::string& model_of(const Certificate& c) const {
    return plan_.model ? *plan_.model : c.model.name;
  }
  void check_like(std::vector<Audited>&, size_t first);
  Status check_together(std::vector<Audited>&, const std::vector<size_t>& which);
  Result<Certificate::Model> identity_of(const ModelFile&);

  Registry& registry_;
  const AuditPlan plan_;
  const EventSink events_;
  std::map<std::string, Certificate::Model> identities_;  // by path
};

}  // namespace gimbal
