// Pictures for a text model: the projector file beside it, its encoder as a model of its own on the text
// model's device, and prompts with pictures.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/vision/picture_prompt.h"
#include "runtime/picture_encoder.h"

namespace gimbal {

// A projector file, opened for a text model.
struct ProjectorFile {
  bool hears() const { return vision.settings.rule == PieceRule::Sound; }  // sounds; else it sees pictures

  VisionFile vision;
  ModelFile source;  // its encoder
};
// Errors: those of open_gguf() and open_vision().
Result<std::shared_ptr<const ProjectorFile>> open_projector(const std::string& path);
// Errors: Usage for a projector whose rows have another width than the model takes.
Status check_projector(const ProjectorFile&, const ModelSource& text);

// The path of the projector file that belongs to a model: the only file *mmproj*.gguf of its folder whose
// rows fit. Empty: there is none, or several, or the model is no file.
std::string projector_beside(const ModelFile& text);

// Prepares a text model for rows of these pieces: sets RunOptions::embeddings, and a batch that holds the
// largest picture whose rows see each other. `pieces`: empty for any pictures.
void take_pictures(RunOptions& of_text, const ProjectorFile&, std::span<const Piece> pieces);

// Called while pictures are encoded: the rows of finished layers and pieces, and of all pieces. False ends it
// with cancelled(). May be empty.
using PictureWatch = std::function<bool(size_t rows, size_t all)>;

class PictureInput {
 public:
  // Loads the encoder. `of_text`: the text model's options, for the choice of devices. `patches`: of the
  // largest piece; 0: as many as the file allows. Errors: those of Engine::load.
  static Result<std::unique_ptr<PictureInput>> open(Registry&, const EngineOptions& of_text,
                                                    std::shared_ptr<const ProjectorFile>, const EventSink&,
                                                    int patches = 0);
  // Its plan, as from Engine::plan(). Errors: as open().
  static Result<PlannedModel> plan(Registry&, const EngineOptions& of_text, const ProjectorFile&,
                                   const EventSink&, Result<PlannedModel> (Engine::*plan)(const ModelFile&),
                                   int patches = 0);

  const ProjectorFile& projector() const { return *projector_; }
  const LoadedModel& model() const { return *model_; }
  // The rows of each piece. Errors: those of PictureEncoder::encode().
  Result<std::vector<EmbeddingsPtr>> encode(std::span<const Piece>, const PictureWatch& = {});

 private:
  std::shared_ptr<const ProjectorFile> projector_;
  std::unique_ptr<Engine> engine_;
  LoadedModelPtr model_;
};

// The patches of the largest piece. Errors: those of patch_grid().
Result<int> most_patches(const VisionFile&, std::span<const Piece>);

// The inputs of a prompt. `rows`: by piece.
Inputs inputs_of(std::span<const PromptChunk>, std::span<const EmbeddingsPtr> rows);

// The inputs of one picture, with the tokens around it. Errors: those of pieces_of() and encode().
Result<Inputs> inputs_of(PictureInput&, const Tokenizer&, const Picture&, const PictureWatch& = {});

}  // namespace gimbal
