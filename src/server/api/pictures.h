// The pictures and sounds of a request. The front checks their base64, kind and size; the process that
// computes decodes them. In the messages each is a mark (chat/picture_marks.h).
#pragma once
#include <vector>

#include "chat/chat_request.h"
#include "server/api/fields.h"

namespace gimbal::api {

inline constexpr size_t kMostPictures = 16;                    // in one request
inline constexpr size_t kMostPictureBytes = size_t(20) << 20;  // of all together, encoded as files
inline constexpr size_t kMostHeldBytes = size_t(512) << 20;    // of all requests at once

// A picture that the request has as an address.
struct PictureAddress {
  size_t picture;  // index in ChatRequest::pictures, nullptr until it is fetched
  std::string url;
  std::string where;  // the field, for errors
};

struct ChatInput : ChatRequest {
  std::vector<PictureAddress> addresses = {};
};

// Whether a part of a message has a picture: "image_url" (OpenAI), "input_image" (/v1/responses), "image"
// (Anthropic).
bool is_picture_part(std::string_view type);
// Appends the mark of a part's picture to `text`, or of its sound ("input_audio"). `where`: for errors. A
// picture with an address of http or https is fetched later.
Refused read_picture_part(const Json& part, const std::string& where, ChatInput& to, std::string& text);
// Ollama's "images": base64 of files. Puts the marks before `text`.
void read_pictures(Fields&, ChatInput& to, std::string& text);
// Appends the mark of a sound to `text`. Refused, in this field: as of keep_bytes().
Refused add_sound(std::string bytes, const std::string& where, ChatInput& to, std::string& text);
// Checks the bytes of a picture or a sound by `check`, and puts them in their place. Refused, in this field:
// they are unusable, or too many for this request or this server.
Refused keep_bytes(std::string bytes, const std::string& where, Status (*check)(std::string_view),
                   ChatInput& to, size_t place);
// Of the request's pictures so far.
size_t picture_bytes(const ChatInput&);

}  // namespace gimbal::api
