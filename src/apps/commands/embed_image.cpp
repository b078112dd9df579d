// gimbal embed-image: a picture on its way into a model, stage by stage, as raw numbers.
#include "apps/commands/command.h"
#include "apps/options/options.h"
#include "apps/options/picture_options.h"
#include "apps/toolkit/input_output.h"
#include "apps/toolkit/terminal.h"
#include "base/json.h"

namespace gimbal {
namespace {

enum class MediaStage : uint8_t { Rgb, Pixels, Rows };

class EmbedImage final : public Command {
 public:
  void declare(Arguments& a) override {
    pictures_.declare(a);
    a.choice("--stage",
             "rgb: decoded pictures, 8 bits a value; pixels: the encoder's input, float32; rows: its output, "
             "float32 (default)",
             stage_, {"rgb", "pixels", "rows"});
    a.text("-o,--output", "FILE", "output: raw little-endian values; -: stdout", output_);
    gimbal::declare(a, engine_, Needs::Device);
    a.example("gimbal embed-image --image cat.jpg --stage rgb -o cat.rgb --json");
    a.example("gimbal embed-image --mmproj mmproj.gguf --image cat.jpg -o cat.f32 --json");
  }

  Result<int> run() override {
    if (!pictures_.given() || !output_)
      return Error{Code::Usage, "--image (or --audio) and --output are both needed",
                   "for example: gimbal embed-image --image cat.jpg --stage rgb --output cat.rgb"};
    auto options = engine_options(engine_);
    if (!options) return options.error();
    Json result;
    if (stage_ == MediaStage::Rgb) {
      auto pictures = pictures_.read();
      if (!pictures) return pictures.error();
      for (const Picture& p : *pictures)
        add(p.rgb.data(), p.rgb.size()),
            result["images"].push_back({{"width", p.width}, {"height", p.height}});
    } else if (stage_ == MediaStage::Pixels) {
      auto settings = pictures_.settings();
      if (!settings) return settings.error();
      auto pieces = pictures_.pieces(*settings);
      if (!pieces) return pieces.error();
      add_pixels(*settings, *pieces);
      result["pieces"] = pieces_json(*settings, *pieces);
    } else {
      auto given = pictures_.open();
      if (!given) return given.error();
      auto encoded = encode_pictures(*given, *options, quiet);
      if (!encoded) return encoded.error();
      for (const EmbeddingsPtr& of : encoded->rows) add(of->values().data(), of->values().size_bytes());
      result["pieces"] = pieces_json(given->projector->vision.settings, given->pieces);
      result["width"] = given->projector->vision.row_width;
      result["seconds"] = encoded->seconds;
    }
    return write(result);
  }

 private:
  void add(const void* data, size_t bytes) { bytes_.append(static_cast<const char*>(data), bytes); }

  void add_pixels(const PreprocessSettings& settings, std::span<const Piece> pieces) {
    for (const Piece& piece : pieces) {
      std::vector<float> values(piece.rgb.size() + piece.mel.size());
      normalised(settings, piece, values.data());
      add(values.data(), values.size() * sizeof(float));
    }
  }

  Result<int> write(const Json& result) {
    auto out = BinaryOutput::open(output_, [&](const std::string& p) { return pictures_.is_input(p); });
    if (!out) return out.error();
    if (auto ok = out->write(bytes_.data(), bytes_.size()); !ok) return ok.error();
    if (auto ok = out->close(); !ok) return ok.error();
    if (json && *output_ != "-") print_json(result, true);
    return kDone;
  }

  PictureOptions pictures_;
  std::optional<std::string> output_;
  MediaStage stage_ = MediaStage::Rows;
  CommonOptions engine_;
  std::string bytes_;  // of the output
};

}  // namespace

std::unique_ptr<Command> make_embed_image() { return std::make_unique<EmbedImage>(); }

}  // namespace gimbal
