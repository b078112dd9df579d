// Shared libraries made in memory: x86-64 ELF with given symbols, needed libraries and sections.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gimbal::test {

struct ElfRecipe {
  std::vector<std::string> exported = {}, undefined = {}, needed = {};
  std::string soname = {}, runpath = {};
  std::string code = "\xc3";  // of .text
  std::string data = {};      // of .rodata
  std::string data_name = ".rodata";
  uint64_t data_padding = 0;  // bytes that `data` is said to have more: for a sparse file
};

class ElfMaker {
 public:
  explicit ElfMaker(const ElfRecipe& r) : recipe_(r) {}

  // Without the padding, which the caller appends: the sections' headers come before the data.
  std::string make() {
    for (const char* s : {".dynsym", ".dynstr", ".dynamic", ".text", ".shstrtab"})
      section_names_[s] = shstr(s);
    section_names_["data"] = shstr(recipe_.data_name);
    std::string symbols(24, '\0');
    for (const auto& [names, defined] : {std::pair(&recipe_.exported, true), {&recipe_.undefined, false}})
      for (const std::string& name : *names) symbols += symbol(string(name), defined);
    std::string dynamic;
    for (const std::string& n : recipe_.needed) dynamic += pair(1, string(n));
    if (!recipe_.soname.empty()) dynamic += pair(14, string(recipe_.soname));
    if (!recipe_.runpath.empty()) dynamic += pair(29, string(recipe_.runpath));
    const uint64_t dynamic_bytes = dynamic.size() + 16 * 4;
    const uint64_t at_symbols = kHead, at_strings = at_symbols + symbols.size(),
                   at_dynamic = (at_strings + strings_.size() + 7) / 8 * 8,
                   at_code = at_dynamic + dynamic_bytes, at_names = at_code + recipe_.code.size(),
                   at_headers = (at_names + shstr_.size() + 7) / 8 * 8,
                   at_data = (at_headers + 7 * 64 + 15) / 16 * 16;
    dynamic += pair(5, at_strings) + pair(6, at_symbols) + pair(10, strings_.size()) + pair(0, 0);
    std::string file =
        header(at_headers) + segment(1, 5, 0, at_data) + segment(2, 6, at_dynamic, dynamic.size());
    file.resize(kHead);
    file += symbols + strings_;
    file.resize(at_dynamic);
    file += dynamic + recipe_.code + shstr_;
    file.resize(at_headers);
    file += std::string(64, '\0') + section(".dynsym", 11, 2, at_symbols, symbols.size(), 2) +
            section(".dynstr", 3, 2, at_strings, strings_.size(), 0) +
            section(".dynamic", 6, 3, at_dynamic, dynamic.size(), 2) +
            section(".text", 1, 6, at_code, recipe_.code.size(), 0) +
            section(".shstrtab", 3, 0, at_names, shstr_.size(), 0) +
            section("data", 1, 2, at_data, recipe_.data.size() + recipe_.data_padding, 0);
    file.resize(at_data);
    return file + recipe_.data;
  }

 private:
  static constexpr uint64_t kHead = 64 + 2 * 56;

  template <class T>
  static std::string bytes(T v) {
    std::string s(sizeof v, '\0');
    std::memcpy(s.data(), &v, sizeof v);
    return s;
  }
  uint64_t string(const std::string& s) {
    const uint64_t at = strings_.size();
    strings_ += s + '\0';
    return at;
  }
  uint32_t shstr(const std::string& s) {
    const auto at = uint32_t(shstr_.size());
    shstr_ += s + '\0';
    return at;
  }
  static std::string symbol(uint64_t name, bool defined) {
    return bytes(uint32_t(name)) + bytes(uint8_t(0x12)) + bytes(uint8_t(0)) +
           bytes(uint16_t(defined ? 4 : 0)) + bytes(uint64_t(0)) + bytes(uint64_t(0));
  }
  static std::string pair(uint64_t tag, uint64_t value) { return bytes(tag) + bytes(value); }
  static std::string segment(uint32_t type, uint32_t flags, uint64_t at, uint64_t size) {
    return bytes(type) + bytes(flags) + bytes(at) + bytes(at) + bytes(at) + bytes(size) + bytes(size) +
           bytes(uint64_t(8));
  }
  std::string section(const char* name, uint32_t type, uint64_t flags, uint64_t at, uint64_t size,
                      uint32_t link) const {
    return bytes(section_names_.at(name)) + bytes(type) + bytes(flags) + bytes(at) + bytes(at) + bytes(size) +
           bytes(link) + bytes(uint32_t(1)) + bytes(uint64_t(8)) + bytes(uint64_t(0));
  }
  static std::string header(uint64_t sections) {
    std::string h(
        "\x7f"
        "ELF\2\1\1",
        7);
    h.resize(16);
    return h + bytes(uint16_t(3)) + bytes(uint16_t(62)) + bytes(uint32_t(1)) + bytes(uint64_t(0)) +
           bytes(uint64_t(64)) + bytes(sections) + bytes(uint32_t(0)) + bytes(uint16_t(64)) +
           bytes(uint16_t(56)) + bytes(uint16_t(2)) + bytes(uint16_t(64)) + bytes(uint16_t(7)) +
           bytes(uint16_t(5));
  }

  ElfRecipe recipe_;
  std::string strings_ = std::string(1, '\0'), shstr_ = std::string(1, '\0');
  std::map<std::string, uint32_t> section_names_;
};

inline std::string made_elf(const ElfRecipe& r) { return ElfMaker(r).make(); }

}  // namespace gimbal::test
