// Fetches a model with progress on stderr, and prints its path.
//   pull ADDRESS [BYTES]     ADDRESS as hf.co/OWNER/REPO:Q4_K_M; with BYTES it ends itself behind so many
#include <gimbal/pull.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 2) return std::printf("usage: pull ADDRESS [BYTES]\n"), 0;
  const unsigned long long most = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : ~0ull;
  gimbal::PullOptions options;
  options.events = [&](const gimbal::PullEvent& e) {
    if (e.kind == gimbal::PullEvent::Note) std::fprintf(stderr, "%s\n", e.text.c_str());
    if (e.kind == gimbal::PullEvent::Progress && e.total)
      std::fprintf(stderr, "%s: %llu of %llu bytes\n", e.file.c_str(), (unsigned long long)e.done,
                   (unsigned long long)e.total);
    return e.done < most;
  };
  auto model = gimbal::pull(argv[1], options);
  if (!model) {
    const gimbal::Error& e = model.error();
    return std::fprintf(stderr, "%s (%s)\n  %s\n", e.message.c_str(), e.reason.c_str(), e.remedy.c_str()), 1;
  }
  std::printf("%s\n", model->path.c_str());
}
