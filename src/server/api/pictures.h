// The pictures and sounds of a request. The front checks their base64, kind and size; the process that
// computes decodes them. In the messages each is a mark (chat/picture_marks.h).
#pragma once
#include "chat/chat_request.h"
#include "server/api/fields.h"

namespace gimbal::api {

inline constexpr size_t kMostPictures = 16;                    // in one request
inline constexpr size_t kMostPictureBytes = size_t(20) << 20;  // of all together, encoded as files
inline constexpr size_t kMostHeldBytes = size_t(512) << 20;    // of all requests at once

// Whether a part of a message has a picture: "image_url" (OpenAI), "input_image" (/v1/responses), "image"
// (Anthropic).
bool is_picture_part(std::string_view type);
// Appends the mark of a part's picture to `text`, or of its sound ("input_audio"). `where`: for errors.
Refused read_picture_part(const Json& part, const std::string& where, ChatRequest& to, std::string& text);
// Ollama's "images": base64 of files. Puts the marks before `text`.
void read_pictures(Fields&, ChatRequest& to, std::string& text);

}  // namespace gimbal::api
