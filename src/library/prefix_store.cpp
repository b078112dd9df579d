// The prefix store of an engine: opened with the first model that uses it, and shared by all of them.
#include "library/internal.h"

namespace gimbal::v1 {
namespace {

Status check(const PrefixStoreSettings& s) {
  const auto wrong = [](const char* field, const std::string& value, const std::string& limit) {
    Error e = usage(format("'{}' must be {}, not {}", field, limit, value), "", field);
    e.reason = reason::kOutOfRange, e.value = value, e.limit = limit;
    return e;
  };
  if (s.bytes < kLeastFolderBytes)
    return wrong("prefix_store_bytes", format("{}", s.bytes), format("{} or more", kLeastFolderBytes));
  if (!s.salt.empty() && (s.salt.size() < kLeastSalt || s.salt.size() > kMostSalt))
    return wrong("prefix_store_salt", format("{} bytes", s.salt.size()),  // the secret itself stays out
                 format("a secret of {} to {} bytes", kLeastSalt, kMostSalt));
  return Done{};
}

}  // namespace

Result<std::shared_ptr<PageStore>> Engine::Impl::open_pages() {
  const PrefixStoreSettings& s = options.prefix_store;
  const std::lock_guard lock(pages_mutex);
  if (s.folder.empty() || pages) return pages;
  if (auto ok = check(s); !ok) return ok.error();
  auto folder = PageFolder::open({s.folder, s.bytes, !s.salt.empty(), {}});
  if (!folder) return to_public(folder.error());
  auto store = PageStore::create(std::move(*folder), [all = page_errors](const std::string& sentence) {
    const std::lock_guard adding(all->mutex);
    all->sentences.push_back(sentence);
  });
  if (!store) return to_public(store.error());
  pages = std::move(*store);
  return pages;
}

Status Model::Impl::open_prefixes(Engine::Impl& of) {
  auto pages = of.open_pages();
  if (!pages) return pages.error();
  if (!*pages) return Done{};
  auto made = prefix_store_of(loaded->source, adapters, *loaded->model, *pages,
                              salt_digest(of.options.prefix_store.salt));
  if (!made) return to_public(made.error());
  prefixes = std::move(*made);
  return Done{};
}

PrefixStoreNumbers Engine::prefix_store_numbers() const {
  PrefixStoreNumbers to;
  const std::lock_guard lock(impl_->pages_mutex);
  if (!impl_->pages) return to;
  const PageStoreNumbers n = impl_->pages->numbers();
  to.hits = n.hits, to.misses = n.misses, to.tokens = n.tokens;
  to.pages_read = n.pages_read, to.pages_written = n.pages_written, to.pages_damaged = n.pages_damaged;
  to.pages_dropped = n.pages_dropped, to.pages_evicted = n.pages_evicted, to.bytes = n.bytes;
  to.saved_seconds = n.saved_seconds;
  const std::lock_guard reading(impl_->page_errors->mutex);
  to.errors = impl_->page_errors->sentences;
  return to;
}

}  // namespace gimbal::v1
