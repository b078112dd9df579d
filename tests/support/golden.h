// Where the reference data lies, and how to read it. tests/data holds what a clone needs; when the whole
// collection (../shared/golden) is beside the checkout, it is used instead and the output says so.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gimbal::test {

// Folder of the reference data in use; the first call prints which one it is.
const std::string& golden_dir();
bool whole_collection();  // true when golden_dir() is the whole collection

// Where GIMBAL_FEWER_CASES is set, tests leave out repetitions of the same code with other weights or another
// random seed. CI sets it under the sanitizers, which look at the code, and on GPUs.
bool fewer_cases();

// Models of more/arch with states that every position changes: scans of both kinds, delta nets, short
// convolutions, beside pages of attention and with experts. With fewer cases two that have most of these.
std::vector<std::string> recurrent_models();

// Files golden_dir()/folder/*suffix, sorted, as paths. Fails the calling test when there is none.
std::vector<std::string> golden_files(const std::string& folder, const std::string& suffix);

nlohmann::ordered_json read_json(const std::string& path);
std::string base64_decode(const std::string& text);
std::vector<float> base64_floats(const std::string& text);  // little-endian float32
std::string gunzip_file(const std::string& path);           // the whole file, unpacked
std::string temporary_path(const std::string& name);        // in a folder of this process, removed at exit

}  // namespace gimbal::test
