// What a built module says of its kernels: PTX text, and AMD code objects (ELF, read as the AMDGPU usage
// document of LLVM describes it). For the fake driver, and for the tests that look at what was built.
#pragma once
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gimbal::test {

struct PtxKernel {
  std::string name;
  uint32_t pointers = 0;      // arguments that are addresses
  uint32_t params_bytes = 0;  // of the struct behind them
  uint32_t lanes = 0;
};

inline std::vector<PtxKernel> ptx_kernels(std::string_view text) {
  std::vector<PtxKernel> all;
  constexpr std::string_view kEntry = ".visible .entry ";
  auto number_behind = [&](std::string_view in, std::string_view word) -> uint32_t {
    const size_t at = in.find(word);
    return at == in.npos ? 0 : uint32_t(std::stoul(std::string(in.substr(at + word.size(), 9))));
  };
  for (size_t at = text.find(kEntry); at != text.npos; at = text.find(kEntry, at + 1)) {
    const size_t name = at + kEntry.size(), open = text.find('(', name), close = text.find(')', open),
                 body = text.find('{', close);
    if (body == text.npos) break;
    PtxKernel k;
    k.name = text.substr(name, open - name);
    const std::string_view arguments = text.substr(open, close - open);
    for (size_t i = arguments.find(".param .u64"); i != arguments.npos;
         i = arguments.find(".param .u64", i + 1))
      k.pointers++;
    if (const size_t i = arguments.find(".b8 "); i != arguments.npos)
      k.params_bytes = number_behind(arguments.substr(i), "[");
    k.lanes = number_behind(text.substr(close, body - close), ".maxntid ");
    all.push_back(k);
  }
  return all;
}

struct AmdKernel {
  std::string name;
  uint32_t shared_bytes = 0, private_bytes = 0, argument_bytes = 0;
  uint32_t float_mode = 0;  // rounding and denormal modes
};
struct CodeObject {
  uint32_t machine = 0;  // EF_AMDGPU_MACH: 0x3f is gfx90a
  uint32_t abi = 0;      // 2: code object version 4
  std::vector<AmdKernel> kernels;
  std::vector<std::string> undefined;
};

// The names of the kernels in NVIDIA's machine code (a cubin): each has a section .text.<name>. Empty when it
// is none.
inline std::vector<std::string> cubin_kernels(std::span<const uint8_t> file) {
  Elf64_Ehdr h;
  std::vector<std::string> names;
  if (file.size() < sizeof h) return names;
  memcpy(&h, file.data(), sizeof h);
  if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_machine != EM_CUDA) return names;
  auto section = [&](size_t i) {
    Elf64_Shdr s;
    memcpy(&s, file.data() + h.e_shoff + i * h.e_shentsize, sizeof s);
    return s;
  };
  for (size_t i = 0; i < h.e_shnum; i++) {
    const std::string name(
        reinterpret_cast<const char*>(file.data() + section(h.e_shstrndx).sh_offset + section(i).sh_name));
    if (name.starts_with(".text.")) names.push_back(name.substr(6));
  }
  return names;
}

// The bytes of an ELF file, from its beginning alone: its table of sections is the last thing in it.
inline size_t elf_bytes(const void* image) {
  Elf64_Ehdr h;
  memcpy(&h, image, sizeof h);
  return h.e_shoff + size_t(h.e_shnum) * h.e_shentsize;
}

inline std::optional<CodeObject> read_code_object(std::span<const uint8_t> file) {
  Elf64_Ehdr h;
  auto take = [&](uint64_t at, auto* out) {
    if (at > file.size() || sizeof *out > file.size() - at) return false;
    memcpy(out, file.data() + at, sizeof *out);
    return true;
  };
  if (!take(0, &h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_machine != 224) return std::nullopt;
  CodeObject out;
  out.machine = h.e_flags & 0xff, out.abi = h.e_ident[EI_ABIVERSION];
  std::vector<Elf64_Shdr> sections(h.e_shnum);
  for (size_t i = 0; i < sections.size(); i++)
    if (!take(h.e_shoff + i * h.e_shentsize, &sections[i])) return std::nullopt;
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_type != SHT_DYNSYM || s.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[s.sh_link];
    for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= s.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!take(s.sh_offset + at, &symbol) || names.sh_offset + symbol.st_name >= file.size())
        return std::nullopt;
      const std::string name(reinterpret_cast<const char*>(file.data() + names.sh_offset + symbol.st_name));
      if (symbol.st_shndx == SHN_UNDEF) {
        out.undefined.push_back(name);
        continue;
      }
      if (!name.ends_with(".kd") || symbol.st_shndx >= sections.size()) continue;
      // The kernel descriptor: three sizes at the front, COMPUTE_PGM_RSRC1 at byte 48, whose bits 12 to 19
      // are the mode.
      const Elf64_Shdr& in = sections[symbol.st_shndx];
      uint32_t words[16];
      if (!take(symbol.st_value - in.sh_addr + in.sh_offset, &words)) return std::nullopt;
      out.kernels.push_back(
          {name.substr(0, name.size() - 3), words[0], words[1], words[2], words[12] >> 12 & 0xff});
    }
  }
  return out;
}

}  // namespace gimbal::test
