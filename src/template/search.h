// Search in time linear in both texts: a template chooses them, and std::string_view::find() compares up to
// the length of the needle at each position.
#pragma once
#include <cstddef>
#include <string_view>

namespace gimbal::tmpl {

// Byte offset of the first occurrence that begins at `from` or later; npos if there is none.
size_t find_text(std::string_view in, std::string_view what, size_t from = 0);
// Byte offset of the last occurrence; npos if there is none.
size_t rfind_text(std::string_view in, std::string_view what);

}  // namespace gimbal::tmpl
