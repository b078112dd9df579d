// Zip archives, which npz files are: the directory at the end, entries stored or deflated. Sizes are checked
// against the file before memory is allocated. Format: PKWARE's APPNOTE.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "files/file_bytes.h"

namespace gimbal {

struct ZipEntry {
  std::string name;  // a key: nothing is ever written under it
  uint64_t begin;    // of its data in the file
  uint64_t packed, bytes;
  uint32_t crc;
  bool deflated;
};

// The entries, by the directory. Errors: Malformed, with the reason; Unsupported for encryption, several
// disks or other methods; those of reading.
Result<std::vector<ZipEntry>> read_zip_directory(const FileBytes&, const std::string& name);

// Unpacks an entry piece by piece, in order, and compares the checksum at its end. `take` gets the pieces; it
// may end the unpacking early by returning false, and then the checksum is not compared. Memory: two pieces
// of 64 kB. Errors: Malformed (damaged, other size or checksum); those of reading.
Status unpack_zip_entry(const FileBytes&, const ZipEntry&, const std::string& name,
                        const std::function<bool(Bytes piece)>& take);

}  // namespace gimbal
