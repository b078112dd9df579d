#include "fetch/pull.h"

#include <algorithm>
#include <filesystem>

#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"
#include "fetch/pull_impl.h"
#include "files/gguf.h"

namespace gimbal {
namespace {

namespace fs = std::filesystem;

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

Status Pull::Impl::resolve_hub() {
  auto opened = Hub::open();
  if (!opened) return opened.error();
  hub = std::move(*opened);
  credential = hub->credential();
  if (const auto site = Url::parse(credential.origin);
      !credential.token.empty() && site && !credential.for_url(*site))
    watch().on({PullEvent::Hidden, "", 0, 0, credential.origin});
  auto revision = hub->revision(*http, address);
  if (!revision) return revision.error();
  commit = revision->commit;
  const std::vector<RemoteName> names(revision->files.begin(), revision->files.end());
  auto chosen = choose(names, address);
  if (!chosen) return chosen.error();
  for (size_t i : chosen->files) {
    const HubFile& f = revision->files[i];
    PullFile file{f.path, f.bytes, f.sha256, {}, false};
    std::string blob = f.blob;
    if (blob.empty()) blob = format("{:016x}", Hash().add(commit).add(f.path).value());
    auto place = hub_place(address, commit, f.path, blob);
    if (!place) return place.error();
    file.place = std::move(*place);
    files.push_back(std::move(file));
  }
  return Done{};
}

// A part of a split model stands for all of them.
Status Pull::Impl::resolve_url() {
  auto url = Url::parse(address.url);
  if (!url) return url.error();
  const auto split = split_name(url->path);
  if (split && split->number != 1)
    return Error{Code::Usage,
                 format("{} is part {} of {} of a model", url->shown(), split->number, split->count),
                 format("give the address of the first part: {}{}", url->origin(), split->path(1))};
  for (uint32_t part = 1; part <= (split ? split->count : 1); part++) {
    if (split) url->path = split->path(part);
    auto place = url_place(*url);
    if (!place) return place.error();
    files.push_back({last_part(url->path), 0, "", std::move(*place), false});
  }
  return Done{};
}

std::string Pull::Impl::url_of(const PullFile& f) const {
  if (hub) return hub->file_url(address, commit, f.name);
  auto url = Url::parse(address.url);
  url->path = url->path.substr(0, url->path.rfind('/') + 1) + f.name;
  return url->whole();
}

Result<Located> Pull::Impl::locate(const PullFile& f) const {
  const auto from = options.public_only && !hub ? std::optional(Reach::Public) : std::nullopt;
  return gimbal::locate(*http, credential, url_of(f), hub ? address.name() : last_part(f.name), from);
}

Result<std::unique_ptr<Pull>> Pull::resolve(const std::string& text, PullOptions options, PullWatch& watch) {
  auto address = parse_address(text);
  if (!address) return address.error();
  for (char& c : options.sha256)
    if (c >= 'A' && c <= 'F') c = char(c | 0x20);
  if (!options.sha256.empty() && !is_sha256(options.sha256))
    return Error{Code::Usage, "the sha256 must be 64 hexadecimal digits", "", "", "sha256", options.sha256};
  if (options.connections < 1 || options.connections > 16)
    return Error{Code::Usage, format("from 1 to 16 connections are possible, not {}", options.connections),
                 "", "", "connections"};
  std::unique_ptr<Pull> pull(new Pull(std::make_unique<Impl>(std::move(options), watch)));
  Impl& m = *pull->impl_;
  m.address = std::move(*address);
  auto http = Http::create(m.patience);
  if (!http) return http.error();
  m.http = std::move(*http);
  if (auto ok = m.address.repository.empty() ? m.resolve_url() : m.resolve_hub(); !ok) return ok.error();
  if (!m.options.sha256.empty()) {
    if (m.files.size() != 1)
      return Error{Code::Usage,
                   format("{} has {} files, but one sha256 was given", m.address.name(), m.files.size()), ""};
    if (!m.files[0].sha256.empty() && m.files[0].sha256 != m.options.sha256)
      return Error{Code::Failed,
                   format("{} has the sha256 {}, but {} was given", m.files[0].name, m.files[0].sha256,
                          m.options.sha256),
                   "this is not the expected file"};
    m.files[0].sha256 = m.options.sha256;
  }
  for (PullFile& f : m.files) {
    std::error_code e;
    const auto size = fs::file_size(f.place.blob, e);
    f.here = !e && (!f.bytes || size == f.bytes);
    if (f.here && !f.bytes) f.bytes = size;
    if (f.here || f.bytes) continue;
    auto at = m.locate(f);
    if (!at) return at.error();
    f.bytes = at->bytes;
  }
  return pull;
}

Pull::Pull(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pull::~Pull() = default;

const ModelAddress& Pull::address() const { return impl_->address; }
const std::string& Pull::commit() const { return impl_->commit; }
const std::vector<PullFile>& Pull::files() const { return impl_->files; }

uint64_t Pull::bytes() const {
  uint64_t sum = 0;
  for (const PullFile& f : impl_->files) sum += f.bytes;
  return sum;
}

uint64_t Pull::missing() const {
  uint64_t sum = 0;
  for (const PullFile& f : impl_->files) sum += f.here ? 0 : f.bytes;
  return sum;
}

Result<ModelSource> Pull::header(const TernaryChoice& choice) const {
  class Folder final : public RemoteFolder {
   public:
    explicit Folder(const Impl& m) : m_(m) {}
    Result<std::unique_ptr<RemoteFile>> open(const std::string& path) const override {
      for (const PullFile& f : m_.files) {
        if (last_part(f.name) != last_part(path)) continue;
        auto at = m_.locate(f);
        if (!at) return at.error();
        return open_remote(*m_.http, m_.credential, std::move(*at));
      }
      return Error{Code::NotFound,
                   format("{} has no file {}", m_.address.name(), gimbal::quoted(last_part(path))), ""};
    }

   private:
    const Impl& m_;
  };
  const PullFile& first = impl_->files[0];
  if (first.name == kFolderMark)
    return Error{Code::Unsupported,
                 format("{} is a folder, of which no header is read over the network", impl_->address.name()),
                 "fetch it first"};
  std::error_code e;
  if (std::all_of(impl_->files.begin(), impl_->files.end(),
                  [&](auto& f) { return f.here && fs::is_regular_file(f.place.path, e); }))
    return open_gguf(first.place.path, choice);
  const std::string path =
      impl_->hub ? "hf.co/" + impl_->address.repository + "/" + first.name : impl_->address.name();
  const Folder folder(*impl_);
  return open_gguf(path, choice, &folder);
}

Result<std::string> Pull::fetch() {
  for (PullFile& f : impl_->files)
    if (auto ok = impl_->fetch(f); !ok) {
      Error e = ok.error();
      if (e.reason == std::string_view(reason::kCancelled))
        e.message =
            format("interrupted while {} was fetched; the partial download is kept", impl_->address.name()),
        e.remedy = "run the same command again to resume";
      return e;
    }
  if (impl_->hub)
    if (auto ok = note_commit(impl_->address, impl_->commit); !ok) return ok.error();
  const PullFile& first = impl_->files[0];
  return first.name == kFolderMark ? fs::path(first.place.path).parent_path().string() : first.place.path;
}

}  // namespace gimbal
