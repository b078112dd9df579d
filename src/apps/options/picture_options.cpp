#include "apps/options/picture_options.h"

#include <algorithm>
#include <filesystem>

#include "apps/reports/prompt_progress.h"
#include "apps/reports/stderr_sink.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "files/gguf.h"
#include "media/pieces.h"

namespace gimbal {
namespace {

constexpr std::string_view kDataUrl = "data:", kBase64 = ";base64,";

Result<std::string> picture_bytes(const std::string& name) {
  if (!name.starts_with(kDataUrl)) return read_file(name, kMaxPictureBytes);
  const size_t at = name.find(kBase64);
  auto bytes =
      at == name.npos ? std::nullopt : base64_decoded(std::string_view(name).substr(at + kBase64.size()));
  if (bytes) return std::move(*bytes);
  return Error{Code::Usage, "a picture's URL must be data:TYPE;base64,BYTES", ""};
}

Error in_file(const std::string& name, Error e) {
  e.message = format("{}: {}", gimbal::quoted(name.starts_with(kDataUrl) ? "data:" : name), e.message);
  return e;
}

}  // namespace

Result<Picture> read_picture(const std::string& name) {
  auto bytes = picture_bytes(name);
  if (!bytes) return bytes.error();
  auto picture = decode_picture(*bytes);
  if (!picture) return in_file(name, picture.error());
  return picture;
}

Result<std::vector<PromptChunk>> GivenPictures::chunks(const Tokenizer& tokenizer,
                                                       std::string_view text) const {
  return picture_prompt(tokenizer, projector->vision.settings, text, pieces, pictures);
}

void PictureOptions::declare(Arguments& a) {
  a.texts(
      "--image", "FILE",
      "a picture: PNG, JPEG, WebP or GIF, or a URL data:...;base64,...; repeatable. <__media__> in the text "
      "is its place; without such marks pictures precede the text",
      images_);
  a.texts("--audio", "FILE", "a sound in place of pictures: WAV, FLAC or MP3; repeatable", sounds_);
  a.text("--mmproj", "FILE",
         "the projector file (mmproj) of the model, which encodes pictures (default: the one beside the "
         "model, if only one fits)",
         mmproj_);
}

bool PictureOptions::is_input(const std::string& path) const {
  std::error_code e;
  for (const auto* list : {&images_, &sounds_})
    for (const std::string& input : *list)
      if (std::filesystem::equivalent(path, input, e) && !e) return true;
  return mmproj_ && std::filesystem::equivalent(path, *mmproj_, e) && !e;
}

Result<std::vector<Picture>> PictureOptions::read() const {
  if (!sounds_.empty())
    return Error{Code::Usage, "--stage rgb is for pictures", "give --stage pixels for sounds"};
  std::vector<Picture> all;
  for (const std::string& image : images_) {
    auto picture = read_picture(image);
    if (!picture) return picture.error();
    all.push_back(std::move(*picture));
  }
  return all;
}

Error PictureOptions::no_projector() const {
  return {
      Code::Usage,
      format("{} needs --mmproj, the projector file of the model", images_.empty() ? "--audio" : "--image"),
      "give the mmproj file that belongs to the model"};
}

Result<PreprocessSettings> PictureOptions::settings() const {
  if (!mmproj_) return no_projector();
  auto file = open_gguf(*mmproj_);
  if (!file) return file.error();
  return preprocess_settings(file->metadata());
}

Result<std::vector<Piece>> PictureOptions::pieces(const PreprocessSettings& settings) const {
  if (!images_.empty() && !sounds_.empty())
    return Error{Code::Usage, "--image and --audio exclude each other", "no known projector takes both"};
  std::vector<Piece> all;
  const auto add = [&](const std::string& name, Result<std::vector<Piece>> pieces) -> Status {
    if (!pieces) return in_file(name, pieces.error());
    for (Piece& p : *pieces) all.push_back(std::move(p));
    return Done{};
  };
  for (size_t i = 0; i < images_.size(); i++) {
    auto picture = read_picture(images_[i]);
    if (!picture) return picture.error();
    if (auto ok = add(images_[i], pieces_of(settings, *picture, int(i))); !ok) return ok.error();
  }
  for (size_t i = 0; i < sounds_.size(); i++) {
    auto bytes = read_file(sounds_[i], kMaxSoundBytes);
    if (!bytes) return bytes.error();
    auto sound = decode_sound(*bytes);
    if (!sound) return in_file(sounds_[i], sound.error());
    if (auto ok = add(sounds_[i], pieces_of(settings, *sound, int(i))); !ok) return ok.error();
  }
  return all;
}

Result<GivenPictures> PictureOptions::open() const {
  if (!mmproj_) return no_projector();
  auto projector = open_projector(*mmproj_);
  if (!projector) return projector.error();
  return with(std::move(*projector));
}

Result<GivenPictures> PictureOptions::open(const ModelFile& text, bool quiet) const {
  auto projector = projector_of(text, quiet);
  if (!projector) return projector.error();
  return with(std::move(*projector));
}

Result<GivenPictures> PictureOptions::with(std::shared_ptr<const ProjectorFile> projector) const {
  auto all = pieces(projector->vision.settings);
  if (!all) return all.error();
  return GivenPictures{std::move(projector), std::move(*all), int(images_.size() + sounds_.size())};
}

Result<std::shared_ptr<const ProjectorFile>> PictureOptions::projector_of(const ModelFile& text,
                                                                          bool quiet) const {
  const std::string path = mmproj_ ? *mmproj_ : projector_beside(text);
  if (path.empty()) return no_projector();
  auto projector = open_projector(path);
  if (!projector) return projector.error();
  if (auto ok = check_projector(**projector, *text.file); !ok) return ok.error();
  if (!mmproj_ && !quiet) note(format("--mmproj {}: it is beside the model", gimbal::quoted(path)));
  return projector;
}

Result<EncodedPictures> encode_pictures(const GivenPictures& all, const EngineOptions& of_text, bool quiet) {
  auto patches = most_patches(all.projector->vision, all.pieces);
  if (!patches) return patches.error();
  auto encoder = PictureInput::open(backend_registry(), of_text, all.projector, stderr_sink(quiet), *patches);
  if (!encoder) return encoder.error();
  InterruptGuard guard;
  PictureProgress progress(!quiet);
  const double begun = now();
  auto rows = (*encoder)->encode(all.pieces, [&](size_t rows, size_t of) { return progress(rows, of); });
  if (!rows) return rows.error();
  return EncodedPictures{std::move(*rows), now() - begun};
}

Result<Inputs> PictureOptions::inputs(const ModelFile& text_model, const Tokenizer& tokenizer,
                                      std::string_view text, EngineOptions& options, bool quiet) const {
  auto given = open(text_model, quiet);
  if (!given) return given.error();
  auto chunks = given->chunks(tokenizer, text);
  if (!chunks) return chunks.error();
  size_t all = 0;
  for (const PromptChunk& c : *chunks)
    all += c.piece < 0 ? c.tokens.size()
                       : size_t(rows_of(given->projector->vision.settings, given->pieces[size_t(c.piece)]));
  const auto config = configure(*text_model.file);
  const int context = options.run.context > 0 ? options.run.context : config ? default_context(*config) : 0;
  if (config && all > size_t(context))
    return Error{
        Code::Usage,
        format("the text and its pictures have {} rows, but the context has {} positions", all, context),
        format("use a 'context' of {} or more", all), reason::kContextFull, "context"};
  auto encoded = encode_pictures(*given, options, quiet);
  if (!encoded) return encoded.error();
  take_pictures(options.run, *given->projector, given->pieces);
  return inputs_of(*chunks, encoded->rows);
}

Result<std::unique_ptr<PictureInput>> PictureOptions::open_chat(const ModelFile& text_model,
                                                                EngineOptions& options, bool quiet) const {
  if (!sounds_.empty()) return Error{Code::Usage, "--audio is not for a chat", "give -p TEXT without --chat"};
  auto projector = projector_of(text_model, quiet);
  if (!projector) return projector.error();
  auto encoder = PictureInput::open(backend_registry(), options, *projector, stderr_sink(quiet));
  if (encoder) take_pictures(options.run, **projector, {});
  return encoder;
}

Json pieces_json(const PreprocessSettings& settings, std::span<const Piece> pieces) {
  const VisionArch* arch = find_vision(settings.projector);
  Json list = Json::array();
  for (const Piece& piece : pieces) {
    Json row = {{"image", piece.image}, {"what", name_of(piece.what)}};
    if (piece.what == PieceKind::Tile) row.update({{"row", piece.row}, {"column", piece.column}});
    row.update({{"width", piece.width}, {"height", piece.height}, {"rows", rows_of(settings, piece)}});
    if (arch && arch->grid) {
      const PieceGrid grid = grid_of(settings, piece);
      row["grid"] = {grid.columns, grid.rows};
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json chunks_json(const GivenPictures& given, std::span<const PromptChunk> chunks) {
  const VisionFile& vision = given.projector->vision;
  Json list = Json::array();
  std::vector<Token> tokens;
  int position = 0;
  for (const PromptChunk& c : chunks) {
    if (c.piece < 0) {
      list.push_back({{"tokens", c.tokens}, {"position", position}});
      tokens.insert(tokens.end(), c.tokens.begin(), c.tokens.end());
      position += int(c.tokens.size());
      continue;
    }
    const Piece& piece = given.pieces[size_t(c.piece)];
    const int rows = rows_of(vision.settings, piece);
    const PieceGrid grid = grid_of(vision.settings, piece);
    const int positions = vision.arch->grid ? std::max(grid.columns, grid.rows) : rows;
    list.push_back({{"piece", c.piece}, {"rows", rows}, {"position", position}, {"positions", positions}});
    tokens.insert(tokens.end(), size_t(rows), kNoToken);
    position += positions;
  }
  return {{"tokens", tokens},
          {"chunks", std::move(list)},
          {"pieces", pieces_json(vision.settings, given.pieces)},
          {"rows", tokens.size()},
          {"next_position", position}};
}

}  // namespace gimbal
