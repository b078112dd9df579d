#include "engine/picture_input.h"

#include <algorithm>
#include <filesystem>

#include "base/format.h"
#include "base/result.h"
#include "files/gguf.h"

namespace gimbal {
namespace {

// On the text model's device; the encoder is never divided.
EngineOptions options_of_encoder(const EngineOptions& of_text, const VisionFile& v, int patches) {
  EngineOptions o = of_text;
  o.split.clear(), o.gpu_layers.reset(), o.overrides.clear(), o.cache = {};
  o.run = encoder_options(v, patches > 0 ? patches : v.most_patches, of_text.run.kernels);
  return o;
}

}  // namespace

Result<std::shared_ptr<const ProjectorFile>> open_projector(const std::string& path) {
  auto file = open_gguf(path);
  if (!file) return file.error();
  auto vision = open_vision(*file);
  if (!vision) return vision.error();
  auto p = std::make_shared<ProjectorFile>();
  p->source = {std::filesystem::path(path).stem().string(), path, vision->source};
  p->vision = std::move(*vision);
  return std::shared_ptr<const ProjectorFile>(std::move(p));
}

Status check_projector(const ProjectorFile& p, const ModelSource& text) {
  auto config = configure(text);
  if (!config) return config.error();
  Hyperparameters read(text.metadata(), config->arch);
  const int parts = 1 + read.count("n_deepstack_layers", 0, 0);
  if (read.error()) return *read.error();
  if (p.vision.row_width == int64_t(config->width) * parts) return Done{};
  return Error{Code::Usage,
               format("{}: its rows have {} values, but the model takes {}", p.source.file->path(),
                      p.vision.row_width, int64_t(config->width) * parts),
               "give the mmproj file that belongs to the model", "", "mmproj"};
}

std::string projector_beside(const ModelFile& text) {
  namespace fs = std::filesystem;
  constexpr int kMostFiles = 10'000, kMostProjectors = 16;  // of a folder
  std::error_code error;
  const fs::path model = text.path;
  if (text.path.empty() || !fs::exists(model, error)) return "";
  const fs::path folder = fs::is_directory(model, error) ? model : model.parent_path();
  std::vector<std::string> named;
  fs::directory_iterator at(folder.empty() ? fs::path(".") : folder, error), end;
  for (int i = 0; !error && at != end && i < kMostFiles; i++, at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(".gguf") && name.find("mmproj") != name.npos) named.push_back(at->path().string());
  }
  if (named.size() > kMostProjectors) return "";
  std::string found;
  for (const std::string& path : named) {
    auto projector = open_projector(path);
    if (!projector || !check_projector(**projector, *text.file)) continue;
    if (!found.empty()) return "";
    found = path;
  }
  return found;
}

void take_pictures(RunOptions& run, const ProjectorFile& p, std::span<const Piece> pieces) {
  run.embeddings = true;
  if (!p.vision.together) return;
  int rows = pieces.empty() ? p.vision.most_patches / p.vision.patches_per_row() : 0;
  for (const Piece& piece : pieces) rows = std::max(rows, rows_of(p.vision.settings, piece));
  run.batch = std::max(run.batch, rows + run.sequences);
}

Result<int> most_patches(const VisionFile& v, std::span<const Piece> pieces) {
  int most = 1;
  for (const Piece& piece : pieces) {
    auto grid = patch_grid(v, piece);
    if (!grid) return grid.error();
    most = std::max(most, grid->patches);
  }
  return most;
}

Result<std::unique_ptr<PictureInput>> PictureInput::open(Registry& registry, const EngineOptions& of_text,
                                                         std::shared_ptr<const ProjectorFile> projector,
                                                         const EventSink& events, int patches) {
  auto made = std::make_unique<PictureInput>();
  made->engine_ =
      std::make_unique<Engine>(registry, options_of_encoder(of_text, projector->vision, patches), events);
  auto loaded = made->engine_->load(projector->source);
  if (!loaded) return loaded.error();
  made->model_ = std::move(*loaded), made->projector_ = std::move(projector);
  return made;
}

Result<PlannedModel> PictureInput::plan(Registry& registry, const EngineOptions& of_text,
                                        const ProjectorFile& projector, const EventSink& events,
                                        Result<PlannedModel> (Engine::*plan)(const ModelFile&), int patches) {
  Engine engine(registry, options_of_encoder(of_text, projector.vision, patches), events);
  return (engine.*plan)(projector.source);
}

Result<std::vector<EmbeddingsPtr>> PictureInput::encode(std::span<const Piece> pieces,
                                                        const PictureWatch& watch) {
  const VisionFile& vision = projector_->vision;
  size_t all = 0, done = 0;
  for (const Piece& piece : pieces) all += size_t(rows_of(vision.settings, piece));
  std::vector<EmbeddingsPtr> rows;
  for (const Piece& piece : pieces) {
    if (watch && !watch(done, all)) return cancelled();
    const auto here = size_t(rows_of(vision.settings, piece));
    const auto go_on = [&](size_t part, size_t parts) {
      return !watch || watch(done + here * part / parts, all);
    };
    auto made = PictureEncoder(*model_->model, vision).encode(piece, go_on);
    if (!made) return made.error();
    rows.push_back(std::move(*made));
    done += here;
  }
  if (watch && !watch(done, all)) return cancelled();
  return rows;
}

Inputs inputs_of(std::span<const PromptChunk> chunks, std::span<const EmbeddingsPtr> rows) {
  Inputs all;
  for (const PromptChunk& c : chunks) {
    for (Token t : c.tokens) all.push(t);
    if (c.piece < 0) continue;
    const EmbeddingsPtr& of = rows[size_t(c.piece)];
    for (int i = 0; i < of->rows(); i++) all.push({kNoToken, &of, i});
  }
  return all;
}

Result<Inputs> inputs_of(PictureInput& encoder, const Tokenizer& tokenizer, const Picture& picture,
                         const PictureWatch& watch) {
  const PreprocessSettings& settings = encoder.projector().vision.settings;
  auto pieces = pieces_of(settings, picture, 0);
  if (!pieces) return pieces.error();
  auto rows = encoder.encode(*pieces, watch);
  if (!rows) return rows.error();
  return inputs_of(picture_chunks(tokenizer, settings, *pieces), *rows);
}

}  // namespace gimbal
