// A request whose body is a form with a file: its texts become the fields of Call::body, as those of a JSON
// object, and the file's bytes Call::file. The field of the file has its name.
#pragma once
#include "server/api/call.h"

namespace gimbal::api {

inline constexpr size_t kMostFormText = size_t(64) << 10;  // bytes of a field that is no file

// `file`: the name of the file's field. A field whose name ends with "[]" becomes a list. Refused: 415
// without a form's type and boundary; 400 for a broken form, a field twice, or a text that is no UTF-8; as of
// read_body().
Refused read_form(Call&, std::string body, const char* file);

// Makes a number or a truth value of a text that is one. Forms have nothing but texts.
void read_as_json(Json& body, std::initializer_list<const char*> fields);

}  // namespace gimbal::api
