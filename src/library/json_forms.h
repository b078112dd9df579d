// Options and results of the public library as JSON texts, for the C interface and for other languages. Keys
// are the members' names. This header has the public structs alone.
#pragma once
#include <gimbal/engine.h>

namespace gimbal::v1::c {

// Options as a JSON object; nullptr: the defaults. Errors: Usage, naming the member in Error::field.
Status read(const char* json, Options&);
Status read(const char* json, ModelOptions&);
Status read(const char* json, TextOptions&);
Status read(const char* json, ChatOptions&);
Status read(const char* json, BatchOptions&);
struct Tokenizing {
  bool add_bos = true, parse_special = true;
};
Status read(const char* json, Tokenizing&);
struct Embedding {
  Pooling pooling = Pooling::OfFile;
  bool normalised = true;
};
Status read(const char* json, Embedding&);
struct Pulling {
  int connections = 4;
  std::string sha256;
};
Status read(const char* json, Pulling&);
Result<Message> message_of(const char* json);

// The members that read() takes: of Options, or of ModelOptions.
std::vector<std::string> names_of(const Options&);
std::vector<std::string> names_of(const ModelOptions&);

std::string json_text(const ToolCall&);
// `message`: of an answer to messages; else null.
std::string json_text(const Generated&, const Message* message);
std::string json_text(const std::vector<Backend>&);
std::string json_text(const std::vector<LocalModel>&);
std::string json_text(const std::vector<ReceiptLine>&);
std::string json_text(const ModelPlan&);
std::string json_text(const Explanation&);
std::string json_text(const Model&);
std::string json_text(const PrefixStoreNumbers&);

}  // namespace gimbal::v1::c
