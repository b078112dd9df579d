#include "server/api/pictures.h"

#include <atomic>
#include <numeric>

#include "base/format.h"
#include "base/text.h"
#include "chat/picture_marks.h"
#include "media/picture.h"
#include "media/sound.h"

namespace gimbal::api {
namespace {

// The files of all requests that wait or run: each is freed when its answer has ended.
constinit std::atomic<size_t> held_bytes = 0;

std::shared_ptr<const std::string> held(std::string file) {
  held_bytes += file.size();
  return {new std::string(std::move(file)), [](const std::string* f) { held_bytes -= f->size(), delete f; }};
}

// Makes room for a picture or sound, with its mark in the message.
Refused place(const std::string& where, ChatInput& to, std::string& message) {
  if (to.pictures.size() >= kMostPictures)
    return wrong_field(where, format("'{}': a request has at most {} pictures", where, kMostPictures));
  if (to.picture_mark.empty()) to.picture_mark = new_picture_marks();
  message += picture_mark(to.picture_mark, to.pictures.size());
  to.pictures.push_back(nullptr);
  return {};
}

ApiError no_base64(const std::string& where) {
  return wrong_field(where, format("'{}' is no base64, whole and with its padding", where));
}

Refused add_picture(std::string_view text, const std::string& where, ChatInput& to, std::string& message) {
  if (auto no = place(where, to, message)) return no;
  auto bytes = base64_decoded(text);
  if (!bytes) return no_base64(where);
  return keep_bytes(std::move(*bytes), where, check_picture_bytes, to, to.pictures.size() - 1);
}

// The sound of a part "input_audio".
Refused read_sound(Fields& part, ChatInput& to, std::string& message) {
  part.need("input_audio");
  const Json* j = part.object("input_audio");
  if (!j) return part.error();
  Fields sound(*j, part.path("input_audio"));
  sound.text("format");  // decided by the bytes
  sound.need("data");
  if (const auto data = sound.text("data")) {
    auto bytes = base64_decoded(*data);
    if (!bytes) return no_base64(sound.path("data"));
    if (auto no = add_sound(std::move(*bytes), sound.path("data"), to, message)) return no;
  }
  return sound.finish();
}

Refused add_address(const std::string& url, const std::string& where, ChatInput& to, std::string& message) {
  constexpr std::string_view kData = "data:", kBase64 = ";base64";
  const std::string scheme = http::lower(std::string_view(url).substr(0, url.find(':')));
  if (scheme == "http" || scheme == "https") {
    if (auto no = place(where, to, message)) return no;
    to.addresses.push_back({to.pictures.size() - 1, url, where});
    return {};
  }
  if (!url.starts_with(kData))
    return wrong_field(where, format("'{}': this server fetches no pictures from there; send the picture "
                                     "itself, as 'data:image/png;base64,...'",
                                     where));
  const size_t comma = url.find(',');
  const std::string_view head = std::string_view(url).substr(0, std::min(comma, url.size()));
  if (comma == url.npos || !head.ends_with(kBase64))
    return wrong_field(where,
                       format("'{}' is no data: URL with base64, as 'data:image/png;base64,...'", where));
  return add_picture(std::string_view(url).substr(comma + 1), where, to, message);
}

// The picture of a block of Anthropic's API.
Refused read_source(Fields& part, ChatInput& to, std::string& message) {
  part.need("source");
  const Json* j = part.object("source");
  if (!j) return part.error();
  Fields source(*j, part.path("source"));
  source.need("type");
  const auto type = source.word("type", {"base64", "url"});
  if (type == "url") {
    source.need("url");
    if (const auto url = source.text("url"))
      if (auto no = add_address(*url, source.path("url"), to, message)) return no;
  } else if (type) {
    source.text("media_type");  // decided by the bytes
    source.need("data");
    if (const auto data = source.text("data"))
      if (auto no = add_picture(*data, source.path("data"), to, message)) return no;
  }
  return source.finish();
}

}  // namespace

size_t picture_bytes(const ChatInput& input) {
  return std::accumulate(input.pictures.begin(), input.pictures.end(), size_t(0),
                         [](size_t sum, const auto& p) { return sum + (p ? p->size() : 0); });
}

Refused keep_bytes(std::string bytes, const std::string& where, Status (*check)(std::string_view),
                   ChatInput& to, size_t place) {
  if (auto ok = check(bytes); !ok)
    return wrong_field(where, format("'{}': {}{}{}", where, ok.error().message,
                                     ok.error().remedy.empty() ? "" : "; ", ok.error().remedy));
  if (picture_bytes(to) + bytes.size() > kMostPictureBytes)
    return wrong_field(
        where, format("'{}': the pictures of a request have at most {} MB together; make them smaller", where,
                      kMostPictureBytes >> 20));
  if (held_bytes + bytes.size() > kMostHeldBytes)
    return ApiError{429, "too many pictures wait already; try again later", "", "queue_full", 1};
  to.pictures[place] = held(std::move(bytes));
  return {};
}

Refused add_sound(std::string bytes, const std::string& where, ChatInput& to, std::string& text) {
  if (auto no = place(where, to, text)) return no;
  to.sounds++;
  return keep_bytes(std::move(bytes), where, check_sound_bytes, to, to.pictures.size() - 1);
}

bool is_picture_part(std::string_view type) {
  return type == "image_url" || type == "input_image" || type == "image";
}

Refused read_picture_part(const Json& j, const std::string& where, ChatInput& to, std::string& text) {
  Fields part(j, where);
  const std::string type = part.text("type").value_or("");
  part.harmless({"cache_control", "detail"});
  if (type == "image") {
    if (auto no = read_source(part, to, text)) return no;
    return part.finish();
  }
  if (type == "input_audio") {
    if (auto no = read_sound(part, to, text)) return no;
    return part.finish();
  }
  part.refuse("file_id", "this server keeps no files: send the picture as a data: URL");
  part.need("image_url");
  const Json* address = part.any("image_url");
  if (!address) return part.error();
  if (address->is_object()) {
    Fields url(*address, part.path("image_url"));
    url.need("url");
    url.harmless({"detail"});
    if (const auto one = url.text("url"))
      if (auto no = add_address(*one, url.path("url"), to, text)) return no;
    if (auto no = url.finish()) return no;
  } else if (const auto one = part.text("image_url")) {
    if (auto no = add_address(*one, part.path("image_url"), to, text)) return no;
  }
  return part.finish();
}

void read_pictures(Fields& f, ChatInput& to, std::string& text) {
  const Json* list = f.array("images");
  std::string marks;
  for (size_t i = 0; list && i < list->size() && f.ok(); i++) {
    const std::string where = format("{}[{}]", f.path("images"), i);
    if (!(*list)[i].is_string()) return f.wrong("images", format("'{}' must be base64 of a picture", where));
    if (auto no = add_picture((*list)[i].get_ref<const std::string&>(), where, to, marks))
      return f.wrong_as(*no);
  }
  text.insert(0, marks);
}

}  // namespace gimbal::api
