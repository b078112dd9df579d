#include "runtime/prefix_keys.h"

#include "ops/op.h"

namespace gimbal {
namespace {

template <class T>
std::string_view raw(const T* data, size_t n) {
  return {reinterpret_cast<const char*>(data), n * sizeof(T)};
}

void add(Sha256& sha, std::string_view part) {
  const auto bytes = uint64_t(part.size());
  sha.add(raw(&bytes, 1)), sha.add(part);
}

// An identity: the token; of an embedding kNoToken, the digest of its block, and the row.
void add(Sha256& sha, const InputItem& input) {
  sha.add(raw(&input.token, 1));
  if (!input.of) return;
  const auto row = int32_t(input.row);
  add(sha, (*input.of)->digest()), sha.add(raw(&row, 1));
}

}  // namespace

PrefixKeys::PrefixKeys(const PageKey& root, std::span<const float> adapters, std::string_view owner) {
  Sha256 sha;
  sha.add("gimbal-text-1");
  add(sha, raw(root.data(), root.size())), add(sha, raw(adapters.data(), adapters.size())), add(sha, owner);
  chain_.push_back(sha.digest());
}

void PrefixKeys::extend(const InputView& text, int pages) {
  while (this->pages() < pages) {
    const size_t begin = size_t(this->pages()) * kPagePositions;
    Sha256 sha;
    sha.add(raw(chain_.back().data(), chain_.back().size()));
    for (size_t i = begin; i < begin + kPagePositions; i++) add(sha, text[i]);
    chain_.push_back(sha.digest());
  }
}

PageKey PrefixKeys::key(int page, size_t pool) const {
  const auto number = uint64_t(pool);
  const PageKey& behind = chain_[size_t(page) + 1];
  Sha256 sha;
  sha.add("gimbal-pool-1");
  sha.add(raw(behind.data(), behind.size())), sha.add(raw(&number, 1));
  return sha.digest();
}

}  // namespace gimbal
