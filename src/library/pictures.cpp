// Prompts with pictures, as the inputs of a model.
#include "library/internal.h"

namespace gimbal::v1 {

Error no_certificate_of_pictures() {
  return usage("an answer to pictures has no 'certificate'", "leave one of them out", "certificate");
}

Error images_of_tokens() {
  return usage("'images' are for a prompt that is a text; messages have images of their own",
               "give the prompt as a text, or add the images to a message", "images");
}

Result<Inputs> Model::Impl::inputs(std::span<const Token> prompt,
                                   std::span<const std::shared_ptr<const std::string>> files) {
  if (files.empty()) return Inputs(std::vector<Token>(prompt.begin(), prompt.end()));
  if (!pictures)
    return usage("the model takes no images: it was loaded without a projector file",
                 "set 'mmproj' when loading it", "images");
  const std::lock_guard lock(pictures->mutex);
  std::vector<PictureRowsPtr> all;
  for (size_t i = 0; i < files.size(); i++) {
    const std::string digest = picture_digest(*files[i]);
    PictureRowsPtr rows = pictures->recent.find(digest);
    if (!rows) {
      auto made = rows_of_picture(*pictures->encoder, *tokenizer->own, *files[i]);
      if (!made) {
        Error e = to_public(made.error());
        e.message = format("image {} of {}: {}", i + 1, files.size(), e.message);
        if (e.code == Code::Usage) e.field = "images";
        return e;
      }
      pictures->recent.add(digest, rows = std::move(*made));
    }
    all.push_back(std::move(rows));
  }
  return with_pictures(prompt, all);
}

Result<Inputs> Model::Impl::inputs(std::string_view text, bool begins,
                                   const std::vector<std::string>& images) {
  const own::Tokenizer& own = *tokenizer->own;
  if (images.empty()) return Inputs(own.encode(text, {.add_bos = begins}));
  auto parts = parts_between_pictures(text, int(images.size()));
  if (!parts) {
    Error e = to_public(parts.error());
    e.field = "images";
    return e;
  }
  std::vector<Token> prompt;
  for (size_t i = 0; i < parts->size(); i++) {
    if (i > 0) prompt.push_back(kNoToken);
    const bool first = begins && i == 0;
    if (!first && (*parts)[i].empty()) continue;
    const auto tokens = own.encode((*parts)[i], {.add_bos = first});
    prompt.insert(prompt.end(), tokens.begin(), tokens.end());
  }
  std::vector<std::shared_ptr<const std::string>> files;
  for (const std::string& image : images) files.push_back(std::make_shared<const std::string>(image));
  return inputs(prompt, files);
}

}  // namespace gimbal::v1
