#include "fetch/curl.h"

#include <dlfcn.h>

#include <type_traits>

#include "base/format.h"

namespace gimbal {
namespace {

// The same interface in all of them; Debian's second one is built with another TLS library.
#ifdef __APPLE__
constexpr const char* kNames[] = {"libcurl.4.dylib"};
#else
constexpr const char* kNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
#endif

Result<const Curl*> load() {
  void* library = nullptr;
  std::string why;
  for (const char* name : kNames) {
    if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
    const char* said = dlerror();
    why += format("{}{}", why.empty() ? "" : "; ", said ? said : name);
  }
  constexpr const char* kRemedy =
      "install it: apt-get install libcurl4 (Debian, Ubuntu), dnf install libcurl (Fedora), apk add libcurl "
      "(Alpine); or give the path of a file that another program has loaded";
  if (!library) return Error{Code::Unsupported, format("HTTP needs libcurl: {}", why), kRemedy};
  static Curl c;
  const char* missing = nullptr;
  const auto find = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
    if (!to && !missing) missing = name;
  };
  decltype(&curl_global_init) global_init;
  find(global_init, "curl_global_init");
  find(c.init, "curl_easy_init"), find(c.cleanup, "curl_easy_cleanup"), find(c.set, "curl_easy_setopt");
  find(c.perform, "curl_easy_perform"), find(c.info, "curl_easy_getinfo");
  find(c.send, "curl_easy_send"), find(c.receive, "curl_easy_recv");
  find(c.reset, "curl_easy_reset"), find(c.error_text, "curl_easy_strerror");
  find(c.append, "curl_slist_append"), find(c.free_list, "curl_slist_free_all");
  find(c.multi_init, "curl_multi_init"), find(c.multi_cleanup, "curl_multi_cleanup");
  find(c.multi_add, "curl_multi_add_handle"), find(c.multi_remove, "curl_multi_remove_handle");
  find(c.multi_perform, "curl_multi_perform"), find(c.multi_poll, "curl_multi_poll");
  find(c.multi_read, "curl_multi_info_read");
  if (missing)
    return Error{Code::Unsupported, format("the libcurl of this machine is too old: it lacks {}", missing),
                 "version 7.66 or newer is needed"};
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return Error{Code::Failed, "libcurl could not be started", ""};
  return &c;
}

}  // namespace

Result<const Curl*> Curl::open() {
  static const Result<const Curl*> one = load();
  return one;
}

}  // namespace gimbal
