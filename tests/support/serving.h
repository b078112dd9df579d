// A server as users have it: a process, a model, a socket.
#pragma once
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/send_signal.h"
#include "support/cli.h"
#include "support/http_client.h"

namespace gimbal::test {

class Serving {
 public:
  // gimbal serve, with the built-in model. `log`: a file that gets what it says on stderr.
  explicit Serving(Args more = {}, const std::map<std::string, std::string>& environment = {},
                   const std::string& log = "")
      : Serving(Program, {std::getenv("GIMBAL"), "serve"}, std::move(more), environment, log) {}

  // Another program, which takes the same options.
  enum Whole { Program };
  Serving(Whole, Args args, const Args& more, const std::map<std::string, std::string>& environment = {},
          const std::string& log = "") {
    for (const char* word : {"--port", "0", "--json", "-t", "2"}) args.push_back(word);
    args.insert(args.end(), more.begin(), more.end());
    int out[2];
    EXPECT_EQ(pipe(out), 0);
    child_ = fork();
    if (child_ < 0) {
      ADD_FAILURE() << "no process could be started for the server: " << std::strerror(errno);
      return;
    }
    if (child_ == 0) {
      for (const auto& [name, value] : quiet_home()) setenv(name.c_str(), value.c_str(), 1);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      dup2(out[1], 1);
      if (!log.empty()) dup2(open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      std::vector<char*> argv;
      for (std::string& a : args) argv.push_back(a.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    std::string line;
    for (char c; read(out[0], &c, 1) == 1 && c != '\n';) line += c;
    close(out[0]);
    start = Json::parse(line, nullptr, false);
    if (start.is_discarded()) {
      ADD_FAILURE() << "the server said: " << line;
      return;
    }
    model = start["models"][0];
    const std::string url = start["url"];
    port = uint16_t(std::stoi(url.substr(url.rfind(':') + 1)));
  }
  ~Serving() {
    if (send_signal(child_, SIGKILL)) waitpid(child_, nullptr, 0);
  }
  int end(int signal) {
    int status = -1;
    if (!send_signal(child_, signal)) {
      ADD_FAILURE() << "there is no server to end";
      return -1;
    }
    waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  HttpAnswer ask(const std::string& bytes) const { return HttpClient(port).ask(bytes); }
  Json ask(const std::string& path, Json body) const {
    body["model"] = model;
    const HttpAnswer a = ask(post(path, body.dump()));
    EXPECT_EQ(a.status, 200) << a.body;
    return Json::parse(a.body, nullptr, false);
  }

  Json start;  // what it said
  std::string model;
  uint16_t port = 0;
  pid_t pid() const { return child_; }

 private:
  pid_t child_ = 0;
};

// Empty or cut off where reading fails, as that of /proc/PID/stat does when the process ends meanwhile. (An
// istreambuf_iterator would throw.)
inline std::string contents_of(const std::filesystem::path& file) {
  std::ostringstream contents;
  contents << std::ifstream(file, std::ios::binary).rdbuf();
  return contents.str();
}

// The processes whose parent is this one, and which say that they are workers.
inline std::vector<pid_t> workers_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const std::string text = contents_of(entry.path() / "stat"),
                      words = contents_of(entry.path() / "cmdline");
    // "pid (name) state parent ..."
    const size_t close = text.rfind(')');
    if (close == text.npos || words.find(std::string("\0worker\0", 8)) == words.npos) continue;
    if (std::atoi(text.c_str() + close + 4) == parent) found.push_back(pid_t(std::stoi(name)));
  }
  return found;
}

}  // namespace gimbal::test
