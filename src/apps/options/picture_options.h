// The options for pictures: the same in every command that takes them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/toolkit/arguments.h"
#include "base/json_fwd.h"
#include "engine/picture_input.h"
#include "media/picture.h"

namespace gimbal {

// A picture of a command line: a file, or a URL data:...;base64,... Errors: those of read_file() and
// decode_picture(), with the file's name.
Result<Picture> read_picture(const std::string& name);

// The pictures of a command line, cut into pieces.
struct GivenPictures {
  std::shared_ptr<const ProjectorFile> projector;
  std::vector<Piece> pieces;
  int pictures = 0;

  // Errors: those of picture_prompt().
  Result<std::vector<PromptChunk>> chunks(const Tokenizer&, std::string_view text) const;
};

class PictureOptions {
 public:
  void declare(Arguments&);
  bool given() const { return !images_.empty() || !sounds_.empty(); }
  bool has_projector() const { return mmproj_.has_value(); }
  // Whether the path names one of the files.
  bool is_input(const std::string& path) const;
  // Decoded pictures. Errors: those of read_picture(); Usage for sounds.
  Result<std::vector<Picture>> read() const;
  // Of the projector file. Errors: Usage without one; those of open_gguf() and preprocess_settings().
  Result<PreprocessSettings> settings() const;
  // Errors: those of read_picture(), decode_sound() and pieces_of(); Usage for pictures and sounds together.
  Result<std::vector<Piece>> pieces(const PreprocessSettings&) const;
  // Without --mmproj the projector file beside the model. Errors: Usage without either; those of
  // open_projector(), check_projector() and pieces().
  Result<GivenPictures> open(const ModelFile& text, bool quiet) const;
  // Without a text model.
  Result<GivenPictures> open() const;
  // The inputs of a text with the pictures, which are encoded; `options`: of the text model, set to take
  // them. Errors: those of open(), picture_prompt() and encode_pictures().
  Result<Inputs> inputs(const ModelFile& text_model, const Tokenizer&, std::string_view text,
                        EngineOptions& options, bool quiet) const;

  // The encoder for a conversation; `options`: of the text model, set to take any picture. Errors: as open();
  // Usage for sounds.
  Result<std::unique_ptr<PictureInput>> open_chat(const ModelFile& text_model, EngineOptions& options,
                                                  bool quiet) const;
  const std::vector<std::string>& images() const { return images_; }

 private:
  Error no_projector() const;
  Result<std::shared_ptr<const ProjectorFile>> projector_of(const ModelFile& text, bool quiet) const;
  Result<GivenPictures> with(std::shared_ptr<const ProjectorFile>) const;

  std::vector<std::string> images_, sounds_;
  std::optional<std::string> mmproj_;
};

struct EncodedPictures {
  std::vector<EmbeddingsPtr> rows;  // of each piece
  double seconds;                   // of encoding, without loading
};
// Loads the encoder, computes the rows of all pieces, and unloads it. Shows progress unless `quiet`. Errors:
// those of PictureInput; cancelled() after Ctrl-C.
Result<EncodedPictures> encode_pictures(const GivenPictures&, const EngineOptions& of_text, bool quiet);

// {"image", "what", "row", "column", "width", "height", "rows", "grid"} of each piece.
Json pieces_json(const PreprocessSettings&, std::span<const Piece>);
// The chunks of a prompt with their positions, and its size: {"chunks", "rows", "next_position", "tokens"}.
Json chunks_json(const GivenPictures&, std::span<const PromptChunk>);

}  // namespace gimbal
