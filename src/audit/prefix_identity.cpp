#include "audit/prefix_identity.h"

#include "audit/certificate.h"
#include "base/format.h"
#include "base/sha256.h"

namespace gimbal {

std::string salt_digest(std::string_view secret) {
  Sha256 sha;
  sha.add("gimbal-salt-1"), sha.add(secret);
  return sha.hex();
}

Result<std::string> prefix_identity(const ModelFile& model, const std::vector<Lora>& adapters,
                                    const ModelPlan& plan, std::string_view salt) {
  if (const std::string key = changed_arithmetic(*model.file); !key.empty())
    return Error{Code::Unsupported,
                 format("the prefix store cannot hold pages of this model: a setting took the place of the "
                        "file's {}",
                        key),
                 "leave the setting or the prefix store out"};
  const auto made = certified_model(model, adapters, true);
  if (!made) return made.error();
  std::string all = format("arithmetic {} model {} ", kArithmetic, made->sha256);
  for (const Certificate::Adapter& a : made->adapters) all += format("adapter {} ", a.sha256);
  for (const RopeChange& c : rope_changes(*model.file))
    all += format("rope {} '{}' {} ", c.key, c.text, c.number);
  // The length of the context chooses between the two sets of longrope's factors.
  if (model.file->tensors().find("rope_factors_long.weight"))
    all += format("context {} ", plan.options.context);
  return format("{}salt {}", all, salt);
}

Result<std::unique_ptr<PrefixStore>> prefix_store_of(const ModelFile& file, const std::vector<Lora>& adapters,
                                                     const Model& model, std::shared_ptr<PageStore> pages,
                                                     std::string_view salt) {
  const auto identity = prefix_identity(file, adapters, model.plan(), salt);
  if (!identity) return identity.error();
  return PrefixStore::create(std::move(pages), *identity, model);
}

}  // namespace gimbal
