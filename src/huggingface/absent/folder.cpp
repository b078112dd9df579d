// without huggingface: folders are refused.
#include "huggingface/folder.h"
#include "base/result.h"
#include "huggingface/folder_files.h"

namespace gimbal {
namespace {

Error refusal() { return absent_feature_error("a folder of Hugging Face's", "huggingface"); }

}  // namespace

Result<ModelSource> open_folder(const std::string&) { return refusal(); }

Result<std::vector<std::string>> files_of_folder(const std::string&) { return refusal(); }

}  // namespace gimbal
